/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib elect: a command that runs while this candidate leads (cmd_run.c does that), and the
 * questions who leads and when that changes. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "run.h"
#include "session.h"
#include "waiting.h"
#include <string.h>

static void print(const struct session *s, const char *name, const struct snib_lock_info *info)
{
        char safe[SNIB__SAFE_MAX], holder[SNIB__HOLDER_MAX];
        struct json j;

        if (s->options->json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__holder_json(&j, info);
                snib__json_end(&j, stdout);
        } else if (info->held) {
                printf("%s  term %lld  %s\n", snib__out_safe(name, strlen(name), safe, sizeof(safe)),
                       (long long)info->token, snib__holder_text(info, holder));
        } else {
                printf("%s  nobody leads\n", snib__out_safe(name, strlen(name), safe, sizeof(safe)));
        }
        fflush(stdout);
}

static int leader(struct session *s, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        int r = snib_election_leader(s->target.election, &info, &err);

        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        print(s, name, &info);
        return r == 1 ? EXIT_OK : EXIT_NOTHING;
}

/* The state at once, then a line for every change. */
static int observe(struct session *s, const char *name)
{
        static struct answer now = {.err = SNIB_ERROR_INIT};
        snib_election *e = s->target.election;
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib__session_ask(s, &now, snib_election_leader_async(e, snib__answer_info, &now, &now.err));
        int64_t wait_ms = snib__session_left_ms(s, s->options->nonblock ? 0 : s->options->wait_ms);
        int64_t end = wait_ms < 0 ? -1 : snib__clock_boot() / 1000000 + wait_ms;
        struct snib_lock_info info = now.info;

        info.size = sizeof(info);
        if (!now.done)
                r = snib_election_observe(e, 0, wait_ms, &info, &err);
        else if (r < 0)
                return snib__session_fail(s, r, &now.err, NULL);
        while (r >= 0) {
                int64_t left = end < 0 ? SNIB_FOREVER : end - snib__clock_boot() / 1000000;

                print(s, name, &info);
                if (snib__out_written() != 0)
                        return EXIT_FAILURE_OWN; /* nobody reads on */
                if (wait_ms > 0 && left <= 0)
                        return EXIT_OK; /* a try would have no limit but the time-out */
                info.size = sizeof(info);
                r = snib_election_observe(e, info.held ? info.token : 0, wait_ms ? left : 0, &info, &err);
                if (r == 0)
                        return EXIT_OK;
        }
        return snib__session_fail(s, r, &err, NULL);
}

static int depose(struct session *s, const char *name)
{
        struct out_no no = {.exit = s->options->conflict_exit, .event = "not_done", .name = name};
        struct snib_error err = SNIB_ERROR_INIT;
        char safe[SNIB__SAFE_MAX];
        int r = snib_election_depose(s->target.election, &err);

        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        if (r == 1)
                return EXIT_OK;
        return snib__out_no(&no, "nobody leads %s", snib__out_safe(name, strlen(name), safe, sizeof(safe)));
}

static int ask(const struct options *o, const char *name)
{
        static struct session s; /* outlives the last callback */
        int exit = snib__session_check(o, name);

        if (exit)
                return exit;
        exit = snib__session_open(&s, o, NULL);
        if (!exit)
                exit = snib__target_open_election(&s.target, &s, name);
        if (!exit)
                exit = o->who ? leader(&s, name) : o->observe ? observe(&s, name) : depose(&s, name);
        snib__session_close(&s);
        return exit;
}

int snib__cmd_elect(const struct options *o, int argc, char **argv)
{
        const struct command *c = snib__opt_command("elect");
        int questions = o->who + o->observe + o->depose;

        if (questions > 1)
                return snib__opt_wrong(c, "give one of --leader, --observe, --depose");
        if (questions && argc != 1)
                return snib__opt_wrong(c, argc ? "one NAME only, and no CMD" : "NAME is missing");
        return questions ? ask(o, argv[0]) : snib__run_elected(c, o, argc, argv);
}
