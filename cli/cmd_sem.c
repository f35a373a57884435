/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib sem: a semaphore, plain or (-x) of permits that expire. Permits that expire are taken by
 * `snib run` and `snib acquire`, which hold them. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "verbs.h"
#include <string.h>

static snib_semaphore *sem;
static snib_permits *permits;

static int number(const char *text, int64_t least, int64_t *ret)
{
        return snib__opt_number("N", text, least, SNIB_PERMITS_MAX, ret);
}

/* N of [N], 1 if it is not there. */
static int number_or_one(int argc, char **argv, int64_t *ret)
{
        *ret = 1;
        return argc ? number(argv[0], 1, ret) : 0;
}

static void close_handles(void)
{
        snib_permits_free(permits);
        snib_semaphore_free(sem);
}

static int missing(const struct session *s, const char *name)
{
        return snib__verb_no(s, name, (struct verb_fact){0}, "does not exist");
}

/* A result that is 0 for what does not exist. */
static int done(const struct session *s, const char *name, int r, const struct snib_error *err)
{
        return r ? snib__verb_exit(s, r, err) : missing(s, name);
}

static int open_handle(struct session *s, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = s->options->expiring ? snib_permits_new(s->client, name, NULL, &permits, &err)
                                     : snib_semaphore_new(s->client, name, 0, &sem, &err);

        return r < 0 ? snib__verb_exit(s, r, &err) : 0;
}

/* It was there before, and keeps its number. */
static int exists(const struct session *s, const char *name)
{
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        int64_t n = 0;

        if (s->options->quiet)
                return s->options->conflict_exit;
        if (permits && snib_permits_query(permits, &info, NULL) == 1)
                return snib__verb_no(s, name, (struct verb_fact){"limit", info.limit},
                                     "exists already, with %lld permits; resize changes that", (long long)info.limit);
        if (sem && snib_semaphore_query(sem, &n, NULL) == 1)
                return snib__verb_no(s, name, (struct verb_fact){"free", n},
                                     "exists already, with %lld free; add and remove change that", (long long)n);
        return snib__verb_no(s, name, (struct verb_fact){0}, "existed already");
}

static int set(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int wrong = number(argv[0], 0, &n);

        (void)argc;
        if (!wrong && permits && s->options->ttl_ms)
                wrong = snib__out_fail(EXIT_USAGE, NULL, "--ttl: not with -x");
        if (wrong)
                return wrong;
        int r = permits ? snib_permits_set(permits, n, &err) : snib_semaphore_set(sem, n, s->options->ttl_ms, &err);
        return r ? snib__verb_exit(s, r, &err) : exists(s, name);
}

static int cancel_acquire(void *handle)
{
        return snib_semaphore_cancel(handle);
}

static int too_few(struct session *s, const char *name, int64_t wanted)
{
        static struct answer a = {.err = SNIB_ERROR_INIT};
        int r = s->options->quiet
                    ? -1
                    : snib__verb_answer_soon(s, &a, snib_semaphore_query_async(sem, snib__answer_value, &a, NULL));
        int64_t n = a.value;

        if (r == 0)
                return snib__verb_gave_up(s, name, (struct verb_fact){0},
                                          "does not exist; make it with: snib sem set NAME N");
        if (r < 0)
                return snib__verb_gave_up(s, name, (struct verb_fact){0}, "has fewer than %lld free",
                                          (long long)wanted);
        return snib__verb_gave_up(s, name, (struct verb_fact){"free", n}, "has %lld free, and %lld %s wanted",
                                  (long long)n, (long long)wanted, wanted == 1 ? "is" : "are");
}

static int acquire(struct session *s, const char *name, int argc, char **argv)
{
        static struct verb_wait w = {.err = SNIB_ERROR_INIT};
        const struct options *o = s->options;
        int64_t n;
        int wrong = number_or_one(argc, argv, &n);

        if (wrong)
                return wrong;
        int64_t left_ms = snib__session_left_ms(s, o->nonblock ? 0 : o->wait_ms);
        int started = snib_semaphore_acquire_async(sem, n, left_ms, snib__verb_done, &w, &w.err);
        int exit = snib__verb_wait(s, &w, started, cancel_acquire, sem);
        return exit || w.result ? exit : too_few(s, name, n);
}

static int release(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n;
        int wrong = number_or_one(argc, argv, &n);

        if (wrong)
                return wrong;
        return done(s, name,
                    s->options->if_exists ? snib_semaphore_release_if_exists(sem, n, &err)
                                          : snib_semaphore_release(sem, n, &err),
                    &err);
}

static int change(struct session *s, const char *name, char **argv, int sign)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n, value = 0;
        int wrong = number(argv[0], 1, &n);

        if (wrong)
                return wrong;
        int r = permits ? snib_permits_add(permits, sign * n, &value, &err)
                        : snib_semaphore_add(sem, sign * n, &value, &err);
        return r == 1 ? snib__verb_number(s, name, "free", value) : done(s, name, r, &err);
}

static int add(struct session *s, const char *name, int argc, char **argv)
{
        (void)argc;
        return change(s, name, argv, 1);
}

static int remove_some(struct session *s, const char *name, int argc, char **argv)
{
        (void)argc;
        return change(s, name, argv, -1);
}

static int drain(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int r = snib_semaphore_drain(sem, &n, &err);

        (void)argc, (void)argv;
        return r == 1 ? snib__verb_number(s, name, "drained", n) : done(s, name, r, &err);
}

/* To a question 1 is the answer no. */
static int shown_missing(const struct session *s, const char *name, int r, const struct snib_error *err)
{
        const struct out_no no = {.exit = EXIT_NOTHING, .event = "not_done", .name = name};
        char safe[SNIB__SAFE_MAX];

        if (r < 0)
                return snib__verb_exit(s, r, err);
        return snib__out_no(&no, "%s does not exist", snib__out_safe(name, strlen(name), safe, sizeof(safe)));
}

static int show(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int r = snib_semaphore_query(sem, &n, &err);

        (void)argc, (void)argv;
        return r == 1 ? snib__verb_number(s, name, "free", n) : shown_missing(s, name, r, &err);
}

static int show_expiring(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        int r = snib_permits_query(permits, &info, &err);
        char text[SNIB__DURATION_MAX];
        struct json j;

        (void)argc, (void)argv;
        if (r == 1 && s->options->json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__json_int(&j, "free", info.free);
                snib__json_int(&j, "taken", info.taken);
                snib__json_int(&j, "limit", info.limit);
                if (info.next_expiry_ms >= 0)
                        snib__json_int(&j, "next_expiry_ms", info.next_expiry_ms);
                if (info.waiters >= 0)
                        snib__json_int(&j, "waiters", info.waiters);
                snib__json_end(&j, stdout);
        } else if (r == 1) {
                printf("%lld free, %lld of %lld taken", (long long)info.free, (long long)info.taken,
                       (long long)info.limit);
                if (info.next_expiry_ms >= 0)
                        printf(", the first expires in %s", snib__out_duration(info.next_expiry_ms, text));
                printf("\n");
        }
        return r ? snib__verb_exit(s, r, &err) : shown_missing(s, name, r, &err);
}

static int delete (struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        (void)argc, (void)argv;
        return done(s, name, permits ? snib_permits_delete(permits, &err) : snib_semaphore_delete(sem, &err), &err);
}

static int resize(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int wrong = number(argv[0], 0, &n);

        (void)argc;
        return wrong ? wrong : done(s, name, snib_permits_resize(permits, n, &err), &err);
}

static int release_ids(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_permits_release_ids(permits, (const char *const *)argv, (size_t)argc, &err);

        if (r == 0 || r == SNIB_ENOTOWNER)
                return snib__verb_no(s, name, (struct verb_fact){0},
                                     argc > 1 ? "has not all of these permits out; none was given back"
                                              : "has no such permit out");
        return snib__verb_exit(s, r, &err);
}

static int renew_id(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t lease_ms = s->options->lease_ms > 0 ? s->options->lease_ms : SNIB_LEASE_DEFAULT_MS;
        int r = snib_permits_renew_id(permits, argv[0], lease_ms, &err);

        (void)argc;
        if (r == 0 || r == SNIB_ENOTOWNER)
                return snib__verb_no(s, name, (struct verb_fact){0}, "has no such permit out");
        return snib__verb_exit(s, r, &err);
}

static int force(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        int r = snib_permits_force_release(permits, &err);

        (void)argc, (void)argv;
        return r ? snib__verb_exit(s, r, &err) : snib__verb_no(s, name, (struct verb_fact){0}, "has no permit out");
}

const struct verb snib__sem_plain[] = {{"set", 1, 1, set},   {"acquire", 0, 1, acquire},    {"release", 0, 1, release},
                                       {"add", 1, 1, add},   {"remove", 1, 1, remove_some}, {"drain", 0, 0, drain},
                                       {"show", 0, 0, show}, {"delete", 0, 0, delete},      {NULL, 0, 0, NULL}};
const struct verb snib__sem_expiring[] = {{"set", 1, 1, set},
                                          {"resize", 1, 1, resize},
                                          {"add", 1, 1, add},
                                          {"remove", 1, 1, remove_some},
                                          {"release", 1, SNIB_PERMITS_AT_ONCE_MAX, release_ids},
                                          {"renew", 1, 1, renew_id},
                                          {"show", 0, 0, show_expiring},
                                          {"force", 0, 0, force},
                                          {"delete", 0, 0, delete},
                                          {NULL, 0, 0, NULL}};

int snib__cmd_sem(const struct options *o, int argc, char **argv)
{
        static const struct verb_noun noun = {open_handle, close_handles};

        return snib__verbs_run(snib__opt_command("sem"), o->expiring ? snib__sem_expiring : snib__sem_plain, &noun, o,
                               argc, argv);
}
