/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib sem: a semaphore, plain or (-x) of permits that expire. Permits that expire are taken by `snib run` and
 * `snib acquire`, which hold them. Main thread only.
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

static int open_handle(struct session *s, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = s->options->expiring ? snib_permits_new(s->client, name, NULL, &permits, &err)
                                     : snib_semaphore_new(s->client, name, 0, &sem, &err);

        return r < 0 ? snib__verb_exit(s, r, &err) : 0;
}

static int set(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int wrong = number(argv[0], 0, &n);

        (void)name, (void)argc;
        if (!wrong && permits && s->options->ttl_ms)
                wrong = snib__out_fail(EXIT_USAGE, NULL, "--ttl: not with -x");
        if (wrong)
                return wrong;
        return snib__verb_exit(
            s, permits ? snib_permits_set(permits, n, &err) : snib_semaphore_set(sem, n, s->options->ttl_ms, &err),
            &err);
}

static int cancel_acquire(void *handle)
{
        return snib_semaphore_cancel(handle);
}

static int acquire(struct session *s, const char *name, int argc, char **argv)
{
        static struct verb_wait w = {.err = SNIB_ERROR_INIT};
        const struct options *o = s->options;
        int64_t n;
        int wrong = number_or_one(argc, argv, &n);

        (void)name;
        if (wrong)
                return wrong;
        int started = snib_semaphore_acquire_async(sem, n, o->nonblock ? 0 : o->wait_ms, snib__verb_done, &w, &w.err);
        return snib__verb_wait(s, &w, started, cancel_acquire, sem);
}

static int release(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n;
        int wrong = number_or_one(argc, argv, &n);

        (void)name;
        if (wrong)
                return wrong;
        return snib__verb_exit(s,
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
        return snib__verb_number(s, name, "free", r, value, &err);
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
        return snib__verb_number(s, name, "drained", r, n, &err);
}

static int show(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int r = snib_semaphore_query(sem, &n, &err);

        (void)argc, (void)argv;
        return snib__verb_number(s, name, "free", r, n, &err);
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
        return snib__verb_exit(s, r, &err);
}

static int delete (struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        (void)name, (void)argc, (void)argv;
        return snib__verb_exit(s, permits ? snib_permits_delete(permits, &err) : snib_semaphore_delete(sem, &err),
                               &err);
}

static int resize(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int wrong = number(argv[0], 0, &n);

        (void)name, (void)argc;
        return wrong ? wrong : snib__verb_exit(s, snib_permits_resize(permits, n, &err), &err);
}

static int release_ids(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_permits_release_ids(permits, (const char *const *)argv, (size_t)argc, &err);

        (void)name;
        return snib__verb_exit(s, r == SNIB_ENOTOWNER ? 0 : r, &err);
}

static int renew_id(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t lease_ms = s->options->lease_ms > 0 ? s->options->lease_ms : SNIB_LEASE_DEFAULT_MS;
        int r = snib_permits_renew_id(permits, argv[0], lease_ms, &err);

        (void)name, (void)argc;
        return snib__verb_exit(s, r == SNIB_ENOTOWNER ? 0 : r, &err);
}

static int force(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        (void)name, (void)argc, (void)argv;
        return snib__verb_exit(s, snib_permits_force_release(permits, &err), &err);
}

static const struct verb plain[] = {{"set", 1, 1, set},   {"acquire", 0, 1, acquire},    {"release", 0, 1, release},
                                    {"add", 1, 1, add},   {"remove", 1, 1, remove_some}, {"drain", 0, 0, drain},
                                    {"show", 0, 0, show}, {"delete", 0, 0, delete},      {NULL, 0, 0, NULL}};
static const struct verb expiring[] = {{"set", 1, 1, set},
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

        return snib__verbs_run(snib__opt_command("sem"), o->expiring ? expiring : plain, &noun, o, argc, argv);
}
