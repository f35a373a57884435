/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib run: a command under a lock. The order of things, and which exit code each way out has; the
 * work is in waiting.c and child.c. Main thread only.
 */

#include "child.h"
#include "cmd.h"
#include "exit.h"
#include "flock.h"
#include "nest.h"
#include "out.h"
#include "run.h"
#include "session.h"
#include "waiting.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS ((int64_t)1000000)
#define GRACE_DEFAULT_MS 5000
#define MARGIN_MIN_MS 20
#define MARGIN_MAX_MS 1000

struct run {
        const struct options *options;
        bool elected;              /* the name is an election's */
        const char *name;          /* NULL: --key options */
        char text[SNIB__SAFE_MAX]; /* the names as they are shown */
        char **argv;
        char *shell[4];
        int64_t grace_ms;
        int64_t margin_ms;
        int64_t kept_ms; /* how long the engine was asked to keep the lock after CMD */
        sigset_t mask;
        struct session session;
        struct waiting waiting;
        struct child child;
        bool leaving; /* what was held is lost, and nobody need wait for the engine to hear of it */
};

/* NAME [--] CMD..., NAME -c STRING (as flock(1) writes it), or -c STRING NAME. No NAME with --key
 * options. */
static int read_arguments(struct run *r, const struct command *c, int argc, char **argv)
{
        const char *string = r->options->shell;
        int wrong = r->elected ? 0 : snib__flock_check(c, r->options, argc, argv);

        if (wrong)
                return wrong;
        if (argc < 1 && !r->options->keys.count)
                return snib__opt_wrong(c, "NAME is missing");
        if (!r->options->keys.count) {
                r->name = *argv++;
                argc--;
        }
        snib__target_text(r->options, r->name, r->text, sizeof(r->text));
        if (!string) {
                wrong = snib__flock_string(c, argc, argv, &string);
                if (wrong > 1)
                        return wrong;
                argc = string ? 0 : argc;
        }
        if (!string && argc > 0 && !strcmp(*argv, "--")) {
                argv++;
                argc--;
        }
        if (string && argc > 0)
                return snib__opt_wrong(c, "give CMD or -c STRING, not both");
        if (!string && argc == 0)
                return snib__opt_wrong(c, "CMD is missing");
        r->argv = argv;
        if (string) {
                memcpy(
                    r->shell,
                    ((char *[]){(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)string, NULL}),
                    sizeof(r->shell));
                r->argv = r->shell;
        }
        return 0;
}

/*
 * The times a command is stopped by count backwards from the lease: there must be room for them.
 * Half of it is left for what the watchdog needs: it renews at a third, so that two thirds remain
 * in the worst good case.
 */
static int plan_times(struct run *r)
{
        const struct options *o = r->options;
        int64_t lease = o->lease_ms > 0 ? o->lease_ms : SNIB_LEASE_DEFAULT_MS;
        char text[3][SNIB__DURATION_MAX];

        r->margin_ms = lease / 20;
        r->margin_ms = r->margin_ms < MARGIN_MIN_MS   ? MARGIN_MIN_MS
                       : r->margin_ms > MARGIN_MAX_MS ? MARGIN_MAX_MS
                                                      : r->margin_ms;
        r->grace_ms = o->grace_ms;
        if (r->grace_ms < 0)
                r->grace_ms = lease / 4 < GRACE_DEFAULT_MS ? lease / 4 : GRACE_DEFAULT_MS;
        if (r->grace_ms <= lease / 2 - r->margin_ms)
                return 0;
        return snib__out_fail(
            EXIT_USAGE, "SNIB_ELEASE",
            "--lease: %s is too short for a --grace of %s; half of it must hold the grace and %s more",
            snib__out_duration(lease, text[0]), snib__out_duration(r->grace_ms, text[1]),
            snib__out_duration(r->margin_ms, text[2]));
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash && slash[1] ? slash + 1 : path;
}

static int from_status(int status)
{
        return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The terminal gave an interrupt to the command's group alone; the script that called us would have
 * had it too. */
static void pass_interrupt_up(const struct child *c)
{
        if (c->terminal >= 0 && c->ended && WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGINT &&
            getpgrp() != getpid())
                kill(0, SIGINT); /* blocked here */
}

static int no_exec(const struct child *c)
{
        char safe[SNIB__SAFE_MAX];
        int error = c->error;

        snib__out_safe(c->argv[0], strlen(c->argv[0]), safe, sizeof(safe));
        return snib__out_fail(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, NULL, "cannot run %s: %s", safe,
                              strerror(error));
}

static int lost(const struct run *r, int exit, const char *why, const char *end)
{
        char safe[SNIB__SAFE_MAX];

        snib__out_safe(r->text, strlen(r->text), safe, sizeof(safe));
        return snib__out_fail(exit, "SNIB_ELOST", "lost %s: %s; %s", safe, why, end);
}

/* Whether the engine, or who stands between, is what the hold was lost by. */
static bool has_cause(int loss)
{
        return loss == SNIB_LOSS_NONE || loss == SNIB_LOSS_EXPIRED || loss == SNIB_LOSS_UNREACHABLE ||
               loss == SNIB_LOSS_REFUSED;
}

/* Why, and what the engine said, as far as that is known. Answers `ret`. */
static const char *why_lost(const struct run *r, int loss, char *ret, size_t size)
{
        struct snib_error err = SNIB_ERROR_INIT;
        char safe[4 * SNIB_ERROR_TEXT_MAX] = "";
        const char *why = loss ? snib_loss_text(loss) : "the lease was about to end without a renewal";

        if (has_cause(loss) && snib__held_trouble(&r->waiting.held, &err) < 0)
                snib__out_safe(err.text, strlen(err.text), safe, sizeof(safe));
        snprintf(ret, size, "%s%s%s", why, safe[0] ? ": " : "", safe);
        return ret;
}

/* The exit code once the command is gone. `loss` and `why` are as they were before the release. */
static int judge(const struct run *r, int released, const struct snib_error *err, int loss, const char *why)
{
        const struct child *c = &r->child;
        char text[SNIB__DURATION_MAX];
        bool within;

        if (c->error)
                return no_exec(c);
        if (c->too_late)
                return lost(r, EXIT_LOST, why, "the command was not started");
        if (c->supervisor_died && !c->reason)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM",
                                      "the supervising process was killed; the command with it");
        if (c->reason == STOP_MAX_HOLD)
                return snib__out_fail(EXIT_MAX_HOLD, NULL, "--max-hold: held for %s; the command was stopped",
                                      snib__out_duration(r->options->max_hold_ms, text));
        if (c->reason)
                return c->ended && c->by_itself
                           ? lost(r, EXIT_LOST_AFTER, why, "the command ended by itself; its result may be unsafe")
                           : lost(r, EXIT_LOST, why, "the command was stopped");
        /* Ran out by our own clock, but only after the command had ended: it ran wholly under the
         * lock. */
        within = (loss == SNIB_LOSS_EXPIRED || loss == SNIB_LOSS_UNREACHABLE) && c->ended_ns < c->deadline_ns;
        if ((loss != SNIB_LOSS_NONE || released == SNIB_ELOST) && !within)
                return lost(r, EXIT_LOST_AFTER, why, "the command had ended by itself; its result may be unsafe");
        if (released < 0 && released != SNIB_ELOST && r->kept_ms)
                snib__out_warn("hold_unconfirmed", "that the lock stays for --hold-at-least is not confirmed (%s)",
                               err->text[0] ? err->text : snib_strerror(released));
        else if (released < 0 && released != SNIB_ELOST)
                snib__out_warn("release_unconfirmed", "the release is not confirmed (%s); the lease ends the hold",
                               err->text[0] ? err->text : snib_strerror(released));
        return from_status(c->status);
}

/* How long the engine is to keep the lock beyond CMD, 0: not at all. What could not be run is no
 * reason to keep others from running. */
static int64_t rest_of_hold(const struct run *r, int64_t granted_ns)
{
        int64_t rest = granted_ns + r->options->min_hold_ms * MS - snib__clock_boot();

        return r->child.error || r->child.too_late || rest <= 0 ? 0 : (rest + MS - 1) / MS;
}

/* The end of the hold, or, with --hold-at-least, of our part in it. */
static int give_back(struct run *r, int64_t granted_ns, struct snib_error *err)
{
        char text[SNIB__DURATION_MAX];

        r->kept_ms = rest_of_hold(r, granted_ns);
        if (!r->kept_ms)
                return snib__held_release(r->child.held, err);
        if (r->options->verbose)
                snib__out_note("kept", "the engine keeps %s for %s more", r->text,
                               snib__out_duration(r->kept_ms, text));
        return snib__held_leave(r->child.held, r->kept_ms, err);
}

static int run_held(struct run *r)
{
        int64_t granted_ns = snib__clock_boot();
        struct snib_error err = SNIB_ERROR_INIT;
        struct child *c = &r->child;

        *c = (struct child){.session = &r->session,
                            .held = &r->waiting.held,
                            .name = r->text,
                            .argv = r->argv,
                            .signals = r->waiting.signals,
                            .mask = &r->mask,
                            .grace_ms = r->grace_ms,
                            .margin_ms = r->margin_ms};
        int wrong = snib__child_run(c);
        int loss = snib__held_loss(c->held);
        char text[8 * SNIB_ERROR_TEXT_MAX];
        const char *why = why_lost(r, loss, text, sizeof(text));
        bool gone = loss || (c->reason && c->reason != STOP_MAX_HOLD);
        int released = gone    ? snib__held_drop(c->held)
                       : wrong ? snib__held_release(c->held, &err)
                               : give_back(r, granted_ns, &err);

        r->leaving |= gone;
        if (wrong)
                return wrong;
        if (released == SNIB_ELOST && !gone)
                why = "the engine says it was not held any more";
        pass_interrupt_up(c);
        return judge(r, released, &err, loss, why);
}

/* One wait and one run. */
static int run_once(struct run *r, int64_t wait_ms)
{
        r->waiting = (struct waiting){
            .session = &r->session, .name = r->text, .signals = r->waiting.signals, .err = SNIB_ERROR_INIT};
        int exit = snib__waiting_acquire(&r->waiting, wait_ms);

        return snib__held_any(&r->waiting.held) ? run_held(r) : exit;
}

static void set_number(const char *variable, int64_t value)
{
        char text[24];

        snprintf(text, sizeof(text), "%lld", (long long)value);
        setenv(variable, text, 1);
}

/* Becomes the command, under the hold of a snib run above. Its supervisor ends all that runs below
 * it in time, so this process is not needed any more. */
static int join(struct run *r, const struct nest_hold *hold, int64_t left_ms)
{
        const char *url = snib__session_child_url(&r->session);

        setenv("SNIB_NAME", r->text, 1);
        setenv("SNIB_OWNER", hold->owner, 1);
        set_number("SNIB_TOKEN", hold->token);
        if (left_ms >= 0)
                set_number("SNIB_DEADLINE_MS", snib__clock_wall_ms() + left_ms);
        if (url)
                setenv("SNIB_URL", url, 1);
        snib__session_close(&r->session);
        sigprocmask(SIG_SETMASK, &r->mask, NULL);
        execvp(r->argv[0], r->argv);
        r->child = (struct child){.argv = r->argv, .error = errno};
        return no_exec(&r->child);
}

static int run_session(struct run *r, int64_t wait_ms)
{
        const struct options *o = r->options;
        char label[SNIB_LABEL_MAX];
        struct nest_hold above;
        int64_t left_ms;
        int exit;

        snprintf(label, sizeof(label), "%s", o->label ? o->label : base_name(r->argv[0]));
        exit = snib__session_open(&r->session, o, label);
        if (!exit)
                exit = r->elected ? snib__target_open_election(&r->session.target, &r->session, r->name)
                                  : snib__target_open(&r->session.target, &r->session, r->name);
        if (exit)
                return exit;
        if (o->reentrant && snib__nest_covers(&r->session, &above, &left_ms))
                return join(r, &above, left_ms);
        do
                exit = run_once(r, wait_ms);
        while (r->elected && !o->once && exit == EXIT_LOST && !r->child.asked_to_end); /* deposed: a candidate again */
        return exit;
}

static int run(const struct command *c, const struct options *o, int64_t wait_ms, int argc, char **argv, bool elected)
{
        static struct run r; /* outlives the session's last callback */
        int wrong;

        r.options = o;
        r.elected = elected;
        wrong = read_arguments(&r, c, argc, argv);
        if (!wrong)
                wrong = snib__session_check(o, r.name);
        if (!wrong && o->reentrant && (o->max_hold_ms || o->min_hold_ms))
                wrong =
                    snib__opt_wrong(c, "--reentrant: neither with --max-hold nor with --hold-at-least; a hold that is "
                                       "joined has its own limits");
        if (!wrong)
                wrong = plan_times(&r);
        if (wrong)
                return wrong;
        r.waiting.signals = snib__signals_open(&r.mask);
        if (r.waiting.signals < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "signalfd: %s", strerror(errno));
        int exit = run_session(&r, wait_ms);
        if (r.leaving)
                snib__session_leave(&r.session);
        snib__session_close(&r.session);
        return exit;
}

int snib__run(const struct command *c, const struct options *o, int64_t wait_ms, int argc, char **argv)
{
        return run(c, o, wait_ms, argc, argv, false);
}

int snib__run_elected(const struct command *c, const struct options *o, int argc, char **argv)
{
        return run(c, o, o->nonblock ? 0 : o->wait_ms, argc, argv, true);
}

int snib__cmd_run(const struct options *o, int argc, char **argv)
{
        return snib__run(snib__opt_command("run"), o, o->nonblock ? 0 : o->wait_ms, argc, argv);
}
