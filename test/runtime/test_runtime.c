/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client on mem:, through the public headers: threads, callbacks, event loop, fork, close,
 * loss. What an engine means is test/conformance's business. Waiting is always for an event; a
 * sleep occurs only where the passing of time is what is tested.
 */

#include "base/alloc.h"
#include "lib/loop.h"
#include "lib/wait.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <snib/snib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const int modes[] = {SNIB_THREADS_KEEPER, SNIB_THREADS_IO, SNIB_THREADS_NONE};
#define MODES ((int)(sizeof(modes) / sizeof(modes[0])))

/* A space of its own for every call, shared by the clients of one test. */
static const char *space(void)
{
        static char url[32];
        static int count;

        (void)snprintf(url, sizeof(url), "mem:t%d", ++count);
        return url;
}

static snib_client *open_mode(const char *url, int mode)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .threads = mode};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *c = NULL;
        int r = snib_open(&c, url, &o, &err);

        if (r < 0)
                print_message("# %s\n", err.text);
        assert_int_equal(r, 0);
        return c;
}

static snib_lock *lock_of(snib_client *c, const char *name, const struct snib_lock_options *o)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_lock *l = NULL;
        int r = snib_lock_new(c, name, o, &l, &err);

        if (r < 0)
                print_message("# %s\n", err.text);
        assert_int_equal(r, 0);
        return l;
}

static snib_grant *acquire(snib_lock *l, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g = NULL;
        int r = snib_lock_acquire(l, wait_ms, &g, &err);

        if (r != 1)
                print_message("# acquire: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
        assert_non_null(g);
        return g;
}

static void release(snib_grant *g)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_grant_release(g, &err);

        if (r != 1)
                print_message("# release: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
}

static void until_set(snib_client *c, int mode, atomic_int *flag, int want)
{
        assert_true(loop_reaches(c, mode, flag, want, 10000));
}

/* ---- what bad input gets */

struct bad_name {
        const char *name;
        size_t len;
        int code;
};

static void F115_names_that_are_refused_and_names_that_are_not(void **state)
{
        static char big[SNIB_NAME_MAX + 2], million[1 << 20];
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);

        memset(big, 'x', sizeof(big) - 1);
        memset(million, 'y', sizeof(million) - 1);
        const struct bad_name table[] = {
            {NULL, 0, SNIB_ENAME},
            {"", 0, SNIB_ENAME},
            {big, 0, SNIB_ENAME},
            {million, 0, SNIB_ENAME},
            {"a\0b", 3, SNIB_ENAME},
            {big, SIZE_MAX, SNIB_ENAME},
            {big, SNIB_NAME_MAX, 0},
            {"a\nb", 0, 0},
            {"{", 0, 0},
            {"{}", 0, 0},
            {"a:b", 0, 0},
            {"../../etc", 0, 0},
            {"\xc3\xa4\xff\x01", 0, 0},
            {" ", 0, 0},
            {"%s%n", 0, 0},
        };
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .name_len = table[i].len};
                struct snib_error err = SNIB_ERROR_INIT;
                snib_lock *l = NULL;
                int r = snib_lock_new(c, table[i].name, &o, &l, &err);

                assert_int_equal(r, table[i].code);
                if (r < 0) {
                        assert_null(l);
                        assert_int_equal(err.code, r);
                        assert_non_null(strstr(err.text, "name"));
                } else {
                        release(acquire(l, 0));
                        snib_lock_free(l);
                }
        }
        snib_close(c);
}

static void F12_leases_outside_the_range_are_refused_with_the_range(void **state)
{
        static const int64_t bad[] = {-1, 1, 99, SNIB_LEASE_MAX_MS + 1, INT64_MIN, INT64_MAX, (1LL << 53) + 1};
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER), *never = NULL;
        struct snib_error err = SNIB_ERROR_INIT;
        char given[32];

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = bad[i]};
                struct snib_options co = {.size = sizeof(struct snib_options), .lease_ms = bad[i]};
                snib_lock *l = NULL;

                (void)snprintf(given, sizeof(given), "%lld", (long long)bad[i]);
                assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_ELEASE);
                assert_non_null(strstr(err.text, given));
                assert_non_null(strstr(err.text, "options.lease_ms"));
                assert_non_null(strstr(err.text, "31536000000"));
                assert_null(l);
                assert_int_equal(snib_open(&never, "mem:", &co, &err), SNIB_ELEASE);
                assert_null(never);
        }
        for (int64_t lease = SNIB_LEASE_MIN_MS; lease; lease = lease == SNIB_LEASE_MIN_MS ? SNIB_LEASE_MAX_MS : 0) {
                struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = lease};
                snib_lock *l = lock_of(c, "x", &o);
                snib_grant *g = acquire(l, 0);

                assert_true(snib_grant_left_ms(g) <= lease);
                release(g);
                snib_lock_free(l);
        }
        snib_close(c);
}

static void F13_waits_of_every_size(void **state)
{
        const char *url = space();
        snib_client *a = open_mode(url, SNIB_THREADS_KEEPER), *b = open_mode(url, SNIB_THREADS_KEEPER);
        snib_lock *la = lock_of(a, "x", NULL), *lb = lock_of(b, "x", NULL);
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g, *none = NULL;
        int64_t before;

        assert_int_equal(snib_lock_acquire(la, -2, &none, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "wait_ms"));
        assert_int_equal(snib_lock_acquire(la, INT64_MIN, &none, &err), SNIB_EINVAL);
        release(acquire(la, SNIB_FOREVER));
        release(acquire(la, INT64_MAX));
        g = acquire(la, 1);
        before = wait_now_ms();
        assert_int_equal(snib_lock_try(lb, &none, NULL), 0);
        assert_int_equal(snib_lock_acquire(lb, 1, &none, NULL), 0);
        assert_true(wait_now_ms() - before < 2000);
        before = wait_now_ms();
        assert_int_equal(snib_lock_acquire(lb, 120, &none, NULL), 0);
        assert_in_range(wait_now_ms() - before, 119, 2000);
        assert_null(none);
        release(g);
        snib_lock_free(la);
        snib_lock_free(lb);
        snib_close(a);
        snib_close(b);
}

static void never_acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        abort();
}

static void never_done(void *arg, int result, const struct snib_error *err)
{
        abort();
}

static void never_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        abort();
}

static void null_arguments_are_named(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);
        snib_lock *l = lock_of(c, "x", NULL), *made = NULL;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT, wrong_size = {.size = 4};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g;

#define REFUSED(call, word)                              \
        do {                                             \
                memset(err.text, 0, sizeof(err.text));   \
                assert_int_equal((call), SNIB_EINVAL);   \
                assert_non_null(strstr(err.text, word)); \
        } while (0)
        REFUSED(snib_open(NULL, "mem:", NULL, &err), "ret_client");
        REFUSED(snib_lock_new(NULL, "x", NULL, &made, &err), "client");
        REFUSED(snib_lock_new(c, "x", NULL, NULL, &err), "ret_lock");
        REFUSED(snib_lock_acquire(NULL, 0, &g, &err), "lock");
        REFUSED(snib_lock_acquire(l, 0, NULL, &err), "ret_grant");
        REFUSED(snib_lock_acquire_info(l, 0, &g, NULL, &err), "ret_holder");
        REFUSED(snib_lock_acquire_info(l, 0, &g, &wrong_size, &err), "ret_holder");
        REFUSED(snib_lock_try(l, NULL, &err), "ret_grant");
        REFUSED(snib_lock_acquire_async(l, 0, NULL, NULL, &err), "acquired");
        REFUSED(snib_lock_acquire_async(NULL, 0, never_acquired, NULL, &err), "lock");
        REFUSED(snib_lock_acquire_async(l, -7, never_acquired, NULL, &err), "wait_ms");
        REFUSED(snib_lock_release(NULL, &err), "lock");
        REFUSED(snib_lock_force_release(NULL, &err), "lock");
        REFUSED(snib_lock_query(NULL, &info, &err), "lock");
        REFUSED(snib_lock_query(l, NULL, &err), "ret_info");
        REFUSED(snib_lock_query(l, &wrong_size, &err), "ret_info");
        REFUSED(snib_lock_query_async(l, NULL, NULL, &err), "done");
        REFUSED(snib_lock_query_async(NULL, never_info, NULL, &err), "lock");
        REFUSED((int)snib_list(NULL, NULL, NULL, &err), "client");
        REFUSED((int)snib_list(c, NULL, NULL, &err), "each");
        REFUSED(snib_grant_release(NULL, &err), "grant");
        REFUSED(snib_grant_release_async(NULL, never_done, NULL, &err), "grant");
        REFUSED(snib_grant_renew(NULL, &err), "grant");
        REFUSED(snib_grant_on_loss(NULL, NULL, NULL, &err), "grant");
        g = acquire(l, 0);
        REFUSED(snib_grant_release_async(g, NULL, NULL, &err), "done");
        assert_int_equal(snib_grant_depth(g), 1);
        release(g);
        assert_int_equal(snib_lock_cancel(NULL), SNIB_EINVAL);
        assert_int_equal(snib_grant_valid(NULL), 0);
        assert_int_equal(snib_grant_token(NULL), 0);
        assert_int_equal(snib_grant_left_ms(NULL), 0);
        assert_int_equal(snib_grant_depth(NULL), 0);
        assert_int_equal(snib_grant_loss(NULL), 0);
        assert_int_equal(snib_grant_loss_fd(NULL), SNIB_EINVAL);
        assert_string_equal(snib_grant_owner(NULL), "");
        assert_string_equal(snib_lock_name(NULL), "");
        assert_null(snib_lock_grant(NULL));
        assert_int_equal(snib_fd(NULL), SNIB_EINVAL);
        assert_int_equal(snib_events(NULL), SNIB_EINVAL);
        assert_int_equal(snib_timeout_ms(NULL), SNIB_EINVAL);
        assert_int_equal(snib_process(NULL), SNIB_EINVAL);
        assert_int_equal(snib_engine_at(0, NULL), SNIB_EINVAL);
        assert_int_equal(snib_engine_at(-1, NULL), 0);
        snib_lock_free(NULL);
        snib_scope_leave(NULL);
        assert_null(snib_scope_enter(NULL, l, 0));
        snib_close(NULL);
        snib_lock_free(l);
        snib_close(c);
}

struct longer {
        struct snib_lock_options known;
        int64_t later;
};

static void options_of_other_versions(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER), *no = NULL;
        struct longer longer = {{sizeof(struct longer)}, 0};
        struct snib_lock_options o = SNIB_LOCK_OPTIONS_INIT;
        struct snib_options co = {.size = sizeof(struct snib_options), .threads = 3};
        struct snib_error err = SNIB_ERROR_INIT;
        char owner[202];
        snib_lock *l = NULL;

        assert_int_equal(snib_lock_new(c, "x", &longer.known, &l, &err), 0);
        snib_lock_free(l);
        longer.later = 1;
        assert_int_equal(snib_lock_new(c, "x", &longer.known, &l, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "options"));
        o.size = sizeof(size_t);
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "size"));
        /* An older, shorter struct: what lies beyond it is not looked at. */
        o = (struct snib_lock_options){.size = offsetof(struct snib_lock_options, lease_ms), .lease_ms = -5};
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), 0);
        snib_lock_free(l);
        for (int kind = -1; kind < 2000; kind += 1001) {
                o = (struct snib_lock_options){.size = sizeof(struct snib_lock_options), .kind = kind};
                assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL);
                assert_non_null(strstr(err.text, "kind"));
        }
        memset(owner, 'o', sizeof(owner) - 1);
        owner[201] = 0;
        o = (struct snib_lock_options){.size = sizeof(struct snib_lock_options), .owner = owner};
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL);
        o.owner = "";
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL);
        o = (struct snib_lock_options){.size = sizeof(struct snib_lock_options), .max_hold_ms = -1};
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL);
        o = (struct snib_lock_options){.size = sizeof(struct snib_lock_options), .fixed_lease = 2};
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL);
        assert_int_equal(snib_open(&no, "mem:", &co, &err), SNIB_EINVAL);
        co = (struct snib_options){.size = sizeof(struct snib_options), .timeout_ms = -1};
        assert_int_equal(snib_open(&no, "mem:", &co, &err), SNIB_EINVAL);
        co = (struct snib_options){.size = sizeof(struct snib_options), .spin_us = SNIB_SPIN_MAX_US + 1};
        assert_int_equal(snib_open(&no, "mem:", &co, &err), SNIB_EINVAL);
        co.spin_us = SNIB_SPIN_OFF - 1;
        assert_int_equal(snib_open(&no, "mem:", &co, &err), SNIB_EINVAL);
        assert_null(no);
        snib_close(c);
}

/* A size of 0 is that of the first version: every field of it counts, in both directions. */
static void zeroed_structs_are_the_first_version_s(void **state)
{
        struct snib_options co = {.threads = 3};
        struct snib_lock_options o = {.owner = "ann", .kind = SNIB_LOCK_NON_REENTRANT, .max_hold_ms = -1};
        struct snib_multilock_options mo = {.red = 1};
        struct snib_lock_info info = {0}, listed = {0};
        struct snib_engine_info engine = {0};
        struct snib_permits_info free_ones = {0};
        struct snib_error err = {0};
        snib_multilock *all = NULL;
        snib_permits *permits;
        snib_client *c = NULL;
        snib_lock *l = NULL;
        snib_grant *g;

        assert_int_equal(snib_open(&c, space(), &co, &err), SNIB_EINVAL);
        assert_int_equal(err.code, SNIB_EINVAL);
        assert_non_null(strstr(err.text, "options.threads"));
        co = (struct snib_options){0};
        assert_int_equal(snib_open(&c, space(), &co, &err), 0);
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), SNIB_EINVAL); /* the last field of 0.1 counts */
        o.max_hold_ms = 0;
        assert_int_equal(snib_lock_new(c, "x", &o, &l, &err), 0);
        g = acquire(l, 0);
        assert_int_equal(snib_lock_query(l, &info, &err), 1);
        assert_true(info.held == 1 && info.mine == 1 && info.holders == 1 && info.limit == -1);
        assert_int_equal(snib_describe(c, "x", 0, &listed, &err), 1);
        assert_int_equal(snib_multilock_new(&l, 1, &mo, &all, &err), SNIB_EINVAL); /* red wants three */
        mo = (struct snib_multilock_options){0};
        assert_int_equal(snib_multilock_new(&l, 1, &mo, &all, &err), 0);
        release(g);
        assert_int_equal(snib_permits_new(c, "p", NULL, &permits, &err), 0);
        assert_int_equal(snib_permits_set(permits, 4, &err), 1);
        assert_int_equal(snib_permits_query(permits, &free_ones, &err), 1);
        assert_true(free_ones.free == 4 && free_ones.limit == 4);
        assert_int_equal(snib_engine_at(0, &engine), 1);
        assert_true(engine.caps != 0);
        snib_permits_free(permits);
        snib_multilock_free(all);
        snib_lock_free(l);
        snib_close(c);
}

static void urls_that_are_refused(void **state)
{
        static const char *const bad[] = {"",
                                          "nothing",
                                          "ftp://x",
                                          "mem:?what=1",
                                          "mem:?timeout=x",
                                          "mem:?timeout=0",
                                          "mem:?timeout=9999h",
                                          "mem:?spin=off",
                                          "redis://127.0.0.1:1?spin=50",
                                          "redis://127.0.0.1:1?spin=0us",
                                          "redis://127.0.0.1:1?spin=50usec",
                                          "redis://127.0.0.1:1?spin=2000us",
                                          "redis://",
                                          "local:?mode=q"};
        struct snib_error err;
        snib_client *c = NULL;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                err = (struct snib_error)SNIB_ERROR_INIT;
                int r = snib_open(&c, bad[i], NULL, &err);

                if (!strcmp(bad[i], "redis://") &&
                    r != SNIB_EURL) { /* a default host is legal, if nobody listens there */
                        snib_close(c);
                        c = NULL;
                        continue;
                }
                if (r != SNIB_EURL)
                        print_message("# \"%s\": %d %s\n", bad[i], r, err.text);
                assert_int_equal(r, SNIB_EURL);
                assert_true(strlen(err.text) > 10);
                assert_null(c);
        }
        assert_int_equal(setenv("SNIB_URL", "ftp://env", 1), 0);
        assert_int_equal(snib_open(&c, NULL, NULL, &err), SNIB_EURL);
        assert_int_equal(setenv("SNIB_URL", "mem:", 1), 0);
        assert_int_equal(snib_open(&c, NULL, NULL, &err), 0);
        snib_close(c);
        (void)unsetenv("SNIB_URL");
}

/* ---- one thread, every mode */

static void re_entry_in_every_mode(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *l = lock_of(c, "x", NULL);
                snib_grant *g = acquire(l, 1000), *again = acquire(l, 1000);

                assert_ptr_equal(g, again);
                assert_int_equal(snib_grant_depth(g), 2);
                assert_true(snib_grant_valid(g));
                assert_true(snib_grant_token(g) > 0);
                assert_ptr_equal(snib_lock_grant(l), g);
                assert_int_equal(snib_grant_renew(g, NULL), 1);
                assert_int_equal(snib_lock_release(l, NULL), 0);
                assert_int_equal(snib_lock_release(l, NULL), 1);
                assert_int_equal(snib_lock_release(l, NULL), SNIB_ENOTOWNER);
                assert_null(snib_lock_grant(l));
                assert_int_equal(snib_grant_release(g, NULL), SNIB_ENOTOWNER);
                snib_lock_free(l);
                snib_close(c);
        }
}

static void kinds_and_owners(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);
        struct snib_lock_options once = {.size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_NON_REENTRANT};
        struct snib_lock_options fenced = {.size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FENCED};
        struct snib_lock_options ann = {.size = sizeof(struct snib_lock_options), .owner = "ann"},
                                 bob = {.size = sizeof(struct snib_lock_options), .owner = "bob"};
        snib_lock *l = lock_of(c, "x", &once), *f = lock_of(c, "x", &fenced), *a = lock_of(c, "y", &ann),
                  *a2 = lock_of(c, "y", &ann), *b = lock_of(c, "y", &bob);
        snib_grant *g = acquire(l, 0), *none = NULL;

        assert_int_equal(snib_lock_acquire(l, 1000, &none, NULL), SNIB_EREENTRY);
        assert_int_equal(snib_grant_depth(g), 1);
        assert_int_equal(snib_lock_acquire(f, 1000, &none, NULL), SNIB_EKIND);
        release(g);
        g = acquire(a, 0);
        assert_ptr_equal(acquire(a2, 0), g);
        assert_int_equal(snib_lock_try(b, &none, NULL), 0);
        assert_int_equal(snib_lock_release(b, NULL), SNIB_ENOTOWNER);
        assert_int_equal(snib_lock_release(a2, NULL), 0);
        release(g);
        snib_lock_free(l);
        snib_lock_free(f);
        snib_lock_free(a);
        snib_lock_free(a2);
        snib_lock_free(b);
        snib_close(c);
}

/* ---- scope */

static int with_return(snib_lock *l)
{
        struct snib_scope held = SNIB_SCOPE_INIT;

        SNIB_WITH_LOCK (held, l, 0) {
                assert_true(snib_grant_valid(held.grant));
                return 7;
        }
        return 0;
}

static bool is_free(snib_lock *l)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        return snib_lock_query(l, &info, NULL) == 0;
}

static void the_scope_releases_on_every_way_out(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);
        snib_lock *l = lock_of(c, "x", NULL);
        struct snib_scope held = SNIB_SCOPE_INIT;
        int runs = 0;

        SNIB_WITH_LOCK (held, l, 0) {
                assert_false(is_free(l));
                runs++;
        }
        assert_true(is_free(l));
        SNIB_WITH_LOCK (held, l, 0) {
                runs++;
                break;
        }
        assert_true(is_free(l));
        SNIB_WITH_LOCK (held, l, 0) {
                runs++;
                continue;
        }
        assert_true(is_free(l));
        SNIB_WITH_LOCK (held, l, 0) {
                runs++;
                goto out;
        }
        runs = 100;
out:
        assert_int_equal(runs, 4);
        assert_true(is_free(l));
        assert_int_equal(with_return(l), 7);
        assert_true(is_free(l));
        snib_lock_free(l);
        snib_close(c);
}

/* Runs a block under the lock and says what it said afterwards. */
static struct snib_scope run_under(snib_lock *l, struct snib_error *err, snib_lock *forced, int *runs)
{
        struct snib_scope held = {.err = err}; /* a size of 0 */

        SNIB_WITH_LOCK (held, l, 0) {
                ++*runs;
                assert_int_equal(held.result, 1);
                if (forced)
                        assert_int_equal(snib_lock_force_release(forced, NULL), 1);
        }
        assert_null(held.grant);
        return held;
}

static void the_scope_tells_busy_from_error_from_done_from_lost(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);
        struct snib_lock_options ann = {.owner = "ann"}, once = {.kind = SNIB_LOCK_NON_REENTRANT};
        snib_lock *l = lock_of(c, "x", NULL), *other = lock_of(c, "x", &ann), *strict = lock_of(c, "x", &once);
        struct snib_scope held = SNIB_SCOPE_INIT;
        struct snib_error err = {0};
        int runs = 0;
        snib_grant *g;

        held = run_under(l, &err, NULL, &runs);
        assert_true(held.result == 1 && held.released == 1 && runs == 1);
        g = acquire(other, 0);
        held = run_under(l, &err, NULL, &runs);
        assert_true(held.result == 0 && held.released == 0 && runs == 1);
        assert_string_equal(err.text, "");
        release(g);
        g = acquire(l, 0);
        held = run_under(l, &err, NULL, &runs);
        assert_true(held.result == 1 && held.released == 0 && runs == 2); /* held further out */
        held = run_under(strict, &err, NULL, &runs);
        assert_true(held.result == SNIB_EREENTRY && held.released == 0 && runs == 2);
        assert_true(strlen(err.text) > 0);
        release(g);
        held = run_under(l, &err, other, &runs);
        assert_true(held.result == 1 && held.released == SNIB_ELOST && runs == 3);
        snib_lock_free(strict);
        snib_lock_free(other);
        snib_lock_free(l);
        snib_close(c);
}

static void a_scope_that_is_in_use_is_refused(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);
        snib_lock *l = lock_of(c, "x", NULL), *m = lock_of(c, "y", NULL);
        struct snib_scope held = SNIB_SCOPE_INIT;

        SNIB_WITH_LOCK (held, l, 0) {
                assert_null(snib_scope_enter(&held, m, 0));
                assert_int_equal(held.result, SNIB_EINVAL);
                assert_true(snib_grant_valid(held.grant));
        }
        assert_int_equal(held.released, 1);
        assert_true(is_free(l) && is_free(m));
        snib_lock_free(m);
        snib_lock_free(l);
        snib_close(c);
}

/* ---- threads */

enum { COUNTERS = 3, ROUNDS = 300, THREADS = 6 };

struct crowd {
        snib_client *clients[2];
        int counter[COUNTERS]; /* plain: the locks are what protects it */
        int64_t token[COUNTERS];
};

static void *count(void *arg)
{
        struct crowd *crowd = arg;
        static atomic_int numbers;
        int number = atomic_fetch_add(&numbers, 1);

        for (int i = 0; i < ROUNDS; i++) {
                int k = (number + i) % COUNTERS;
                char name[8] = {'c', (char)('0' + k), 0};
                snib_lock *l = lock_of(crowd->clients[(number + i / 7) % 2], name, NULL);
                snib_grant *g = acquire(l, SNIB_FOREVER);

                assert_true(snib_grant_token(g) > crowd->token[k]);
                crowd->token[k] = snib_grant_token(g);
                crowd->counter[k]++;
                release(g);
                snib_lock_free(l);
        }
        return NULL;
}

static void many_threads_count_under_locks(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                struct crowd crowd = {.clients = {open_mode(url, modes[m]), open_mode(url, modes[(m + 1) % MODES])}};
                pthread_t t[THREADS];
                int sum = 0;

                for (int i = 0; i < THREADS; i++)
                        assert_int_equal(pthread_create(&t[i], NULL, count, &crowd), 0);
                for (int i = 0; i < THREADS; i++)
                        (void)pthread_join(t[i], NULL);
                for (int k = 0; k < COUNTERS; k++)
                        sum += crowd.counter[k];
                assert_int_equal(sum, THREADS * ROUNDS);
                snib_close(crowd.clients[0]);
                snib_close(crowd.clients[1]);
        }
}

struct waiter {
        snib_lock *lock;
        int64_t wait_ms;
        int result;
        snib_grant *grant;
        struct snib_error err;
        atomic_int ended;
};

static void *wait_for_lock(void *arg)
{
        struct waiter *w = arg;

        w->err.size = sizeof(w->err);
        w->result = snib_lock_acquire(w->lock, w->wait_ms, &w->grant, &w->err);
        atomic_store(&w->ended, 1);
        return NULL;
}

static int64_t waiters_of(snib_lock *l)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        assert_true(snib_lock_query(l, &info, NULL) >= 0);
        return info.waiters;
}

static void cancel_from_another_thread(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                struct snib_lock_options ann = {.size = sizeof(struct snib_lock_options), .owner = "ann"};
                snib_lock *mine = lock_of(c, "x", NULL), *theirs = lock_of(c, "x", &ann);
                struct waiter w = {.lock = theirs, .wait_ms = SNIB_FOREVER};
                snib_grant *g = acquire(mine, 0);
                pthread_t t;

                assert_int_equal(snib_lock_cancel(theirs), 0);
                assert_int_equal(pthread_create(&t, NULL, wait_for_lock, &w), 0);
                assert_true(eventually(waiters_of(mine) == 1, 10000));
                assert_int_equal(snib_lock_cancel(mine), 0);
                assert_int_equal(snib_lock_cancel(theirs), 1);
                (void)pthread_join(t, NULL);
                assert_int_equal(w.result, SNIB_ECANCELLED);
                assert_null(w.grant);
                assert_true(eventually(waiters_of(mine) == 0, 10000));
                release(g);
                assert_true(is_free(mine));
                snib_lock_free(mine);
                snib_lock_free(theirs);
                snib_close(c);
        }
}

static void F113_close_during_a_wait(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                snib_client *c = open_mode(url, modes[m]), *holder = open_mode(url, SNIB_THREADS_KEEPER);
                snib_lock *l = lock_of(c, "x", NULL), *lh = lock_of(holder, "x", NULL);
                struct waiter w[2] = {{.lock = l, .wait_ms = SNIB_FOREVER}, {.lock = l, .wait_ms = 100000}};
                snib_grant *g = acquire(lh, 0);
                pthread_t t[2];

                assert_int_equal(pthread_create(&t[0], NULL, wait_for_lock, &w[0]), 0);
                assert_int_equal(pthread_create(&t[1], NULL, wait_for_lock, &w[1]), 0);
                assert_true(eventually(waiters_of(l) == 2, 10000));
                assert_int_equal(waiters_of(lh), 1); /* one of them asks for both */
                snib_close(c);
                for (int i = 0; i < 2; i++) {
                        (void)pthread_join(t[i], NULL);
                        assert_int_equal(w[i].result, SNIB_ECLOSED);
                }
                assert_int_equal(waiters_of(lh), 0);
                release(g);
                snib_lock_free(lh);
                snib_close(holder);
                snib_lock_free(l); /* a handle may outlive its client, if it is only freed */
        }
}

/* More than share a bed, and more than are woken one by one: see sleep.c. */
static void a_crowd_that_is_cancelled_wakes_together(void **state)
{
        struct waiter w[100] = {{0}};
        pthread_t t[100];

        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *lock = lock_of(c, "x", NULL);
                snib_grant *g = acquire(lock, 0);

                for (int round = 0, count = 100; round < 3; round++, count /= 10) {
                        for (int i = 0; i < count; i++) {
                                w[i] = (struct waiter){.lock = lock, .wait_ms = SNIB_FOREVER};
                                assert_int_equal(pthread_create(&t[i], NULL, wait_for_lock, &w[i]), 0);
                        }
                        assert_true(eventually(waiters_of(lock) == count, 10000));
                        assert_int_equal(snib_lock_cancel(lock), count);
                        for (int i = 0; i < count; i++) {
                                (void)pthread_join(t[i], NULL);
                                assert_int_equal(w[i].result, SNIB_ECANCELLED);
                        }
                }
                release(g);
                snib_lock_free(lock);
                snib_close(c);
        }
}

static void close_gives_back_what_is_held(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                snib_client *c = open_mode(url, modes[m]), *other = open_mode(url, SNIB_THREADS_KEEPER);
                snib_lock *l = lock_of(c, "x", NULL), *lo = lock_of(other, "x", NULL);

                (void)acquire(l, 0);
                (void)acquire(l, 0);
                snib_lock_free(l);
                snib_close(c);
                release(acquire(lo, 0));
                snib_lock_free(lo);
                snib_close(other);
        }
}

/* ---- callbacks */

struct seen {
        atomic_int acquired, released, info, lost;
        int result, reason;
        snib_grant *grant;
        snib_lock *lock; /* freed in the callback, if set */
        pthread_t thread;
};

static void on_acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct seen *s = arg;

        s->result = result;
        s->grant = grant;
        s->thread = pthread_self();
        snib_lock_free(s->lock);
        s->lock = NULL;
        atomic_fetch_add(&s->acquired, 1);
}

static void on_released(void *arg, int result, const struct snib_error *err)
{
        struct seen *s = arg;

        s->result = result;
        atomic_fetch_add(&s->released, 1);
}

static void on_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        struct seen *s = arg;

        s->result = result;
        if (result == 1)
                assert_int_equal(info->mine, 1);
        atomic_fetch_add(&s->info, 1);
}

static void on_lost(void *arg, snib_grant *grant, int reason)
{
        struct seen *s = arg;

        assert_false(snib_grant_valid(grant));
        s->reason = reason;
        atomic_fetch_add(&s->lost, 1);
}

static void asynchronous_calls_in_every_mode(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *l = lock_of(c, "x", NULL);
                struct seen s = {0};

                assert_int_equal(snib_lock_acquire_async(l, 5000, on_acquired, &s, NULL), 0);
                until_set(c, modes[m], &s.acquired, 1);
                assert_int_equal(s.result, 1);
                assert_true(snib_grant_valid(s.grant));
                assert_true(snib_grant_token(s.grant) > 0);
                assert_int_equal(!pthread_equal(s.thread, pthread_self()), modes[m] != SNIB_THREADS_NONE);
                assert_int_equal(snib_lock_query_async(l, on_info, &s, NULL), 0);
                until_set(c, modes[m], &s.info, 1);
                assert_int_equal(s.result, 1);
                assert_int_equal(snib_grant_release_async(s.grant, on_released, &s, NULL), 0);
                until_set(c, modes[m], &s.released, 1);
                assert_int_equal(s.result, 1);
                assert_true(is_free(l));
                snib_lock_free(l);
                snib_close(c);
        }
}

static void an_asynchronous_wait_is_granted_when_another_client_releases(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                snib_client *c = open_mode(url, modes[m]), *other = open_mode(url, SNIB_THREADS_KEEPER);
                snib_lock *l = lock_of(c, "x", NULL), *lo = lock_of(other, "x", NULL);
                struct seen s = {.lock = l};
                snib_grant *g = acquire(lo, 0);

                assert_int_equal(snib_lock_acquire_async(l, SNIB_FOREVER, on_acquired, &s, NULL), 0);
                if (modes[m] == SNIB_THREADS_NONE)
                        assert_int_equal(snib_process(c), 0);
                assert_true(eventually(waiters_of(lo) == 1, 10000));
                assert_int_equal(atomic_load(&s.acquired), 0);
                release(g);
                until_set(c, modes[m], &s.acquired, 1);
                assert_int_equal(s.result, 1);
                assert_int_equal(atomic_load(&s.acquired), 1);
                assert_int_equal(snib_grant_release(s.grant, NULL), 1);
                snib_lock_free(lo);
                snib_close(c);
                snib_close(other);
        }
}

static void close_completes_what_is_asynchronous(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                snib_client *c = open_mode(url, modes[m]), *other = open_mode(url, SNIB_THREADS_KEEPER);
                snib_lock *l = lock_of(c, "x", NULL), *lo = lock_of(other, "x", NULL), *held = lock_of(c, "y", NULL);
                struct seen s = {0}, h = {0};
                snib_grant *g = acquire(lo, 0);

                assert_int_equal(snib_grant_on_loss(acquire(held, 0), on_lost, &h, NULL), 0);
                assert_int_equal(snib_lock_acquire_async(l, SNIB_FOREVER, on_acquired, &s, NULL), 0);
                snib_lock_free(held);
                snib_lock_free(l);
                snib_close(c);
                assert_int_equal(atomic_load(&s.acquired), 1);
                assert_int_equal(s.result, SNIB_ECLOSED);
                assert_null(s.grant);
                assert_int_equal(atomic_load(&h.lost), 1);
                assert_int_equal(h.reason, SNIB_LOSS_CLOSED);
                release(g);
                snib_lock_free(lo);
                snib_close(other);
        }
}

struct chain {
        snib_client *client;
        atomic_int steps;
};

static void chain_released(void *arg, int result, const struct snib_error *err)
{
        struct chain *chain = arg;

        assert_int_equal(result, 1);
        atomic_fetch_add(&chain->steps, 1);
}

/* Calls that block, and calls that do not, from inside a callback. */
static void chain_acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct chain *chain = arg;
        snib_lock *l = lock_of(chain->client, "inner", NULL);

        assert_int_equal(result, 1);
        release(acquire(l, 1000));
        snib_lock_free(l);
        atomic_fetch_add(&chain->steps, 1);
        assert_int_equal(snib_grant_release_async(grant, chain_released, chain, NULL), 0);
}

static void callbacks_may_call_the_library(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *l = lock_of(c, "outer", NULL);
                struct chain chain = {.client = c};

                assert_int_equal(snib_lock_acquire_async(l, 1000, chain_acquired, &chain, NULL), 0);
                until_set(c, modes[m], &chain.steps, 2);
                assert_true(is_free(l));
                snib_lock_free(l);
                snib_close(c);
        }
}

struct gate {
        atomic_int in, open;
};

static void blocks(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        struct gate *gate = arg;

        atomic_store(&gate->in, 1);
        assert_true(eventually(atomic_load(&gate->open), 60000));
}

static void F9_a_callback_that_blocks_delays_no_renewal(void **state)
{
        for (int m = 0; m < 2; m++) {
                int64_t lease = 300 * wait_slow(), until;
                snib_client *c = open_mode(space(), modes[m]);
                struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = lease};
                snib_lock *l = lock_of(c, "x", &o);
                snib_grant *g = acquire(l, 0);
                struct gate gate = {0};
                bool always = true;

                assert_int_equal(snib_lock_query_async(l, blocks, &gate, NULL), 0);
                assert_true(eventually(atomic_load(&gate.in), 10000));
                until = wait_now_ms() + 3 * lease; /* it is the passing of three leases that is tested */
                while (always && wait_now_ms() < until) {
                        always = snib_grant_valid(g);
                        wait_moment();
                }
                assert_true(always);
                atomic_store(&gate.open, 1);
                release(g);
                snib_lock_free(l);
                snib_close(c);
        }
}

/* ---- loss */

static bool readable(int fd)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};

        return poll(&p, 1, 0) == 1;
}

static void process_if_none(snib_client *c, int mode)
{
        if (mode == SNIB_THREADS_NONE)
                assert_int_equal(snib_process(c), 0);
}

static void a_forced_release_is_told_once_by_callback_and_descriptor(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                snib_client *c = open_mode(url, modes[m]), *other = open_mode(url, SNIB_THREADS_KEEPER);
                snib_lock *l = lock_of(c, "x", NULL), *lo = lock_of(other, "x", NULL);
                struct seen s = {0}, late = {0};
                snib_grant *g = acquire(l, 0), *none = NULL;
                int fd = snib_grant_loss_fd(g);

                assert_true(fd >= 0);
                assert_int_equal(snib_grant_loss_fd(g), fd);
                assert_int_equal(snib_grant_on_loss(g, on_lost, &s, NULL), 0);
                assert_false(readable(fd));
                assert_int_equal(snib_lock_force_release(lo, NULL), 1);
                assert_int_equal(snib_lock_force_release(lo, NULL), 0);
                until_set(c, modes[m], &s.lost, 1);
                assert_int_equal(s.reason, SNIB_LOSS_GONE);
                assert_int_equal(snib_grant_loss(g), SNIB_LOSS_GONE);
                assert_true(readable(fd));
                assert_true(readable(fd));
                assert_false(snib_grant_valid(g));
                assert_int_equal(snib_grant_left_ms(g), 0);
                /* Set after the loss, it comes too; but the first is not called again. */
                assert_int_equal(snib_grant_on_loss(g, on_lost, &late, NULL), 0);
                until_set(c, modes[m], &late.lost, 1);
                assert_int_equal(atomic_load(&s.lost), 1);
                assert_int_equal(snib_lock_acquire(l, 0, &none, NULL), SNIB_ELOST);
                assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
                process_if_none(c, modes[m]);
                release(acquire(l, 1000));
                assert_int_equal(atomic_load(&s.lost) + atomic_load(&late.lost), 2);
                snib_lock_free(l);
                snib_lock_free(lo);
                snib_close(c);
                snib_close(other);
        }
}

static void a_removed_callback_is_not_called(void **state)
{
        const char *url = space();
        snib_client *c = open_mode(url, SNIB_THREADS_NONE), *other = open_mode(url, SNIB_THREADS_KEEPER);
        snib_lock *l = lock_of(c, "x", NULL), *lo = lock_of(other, "x", NULL);
        struct seen s = {0};
        snib_grant *g = acquire(l, 0);
        int fd = snib_grant_loss_fd(g);

        assert_int_equal(snib_grant_on_loss(g, on_lost, &s, NULL), 0);
        assert_int_equal(snib_grant_on_loss(g, NULL, NULL, NULL), 0);
        assert_int_equal(snib_lock_force_release(lo, NULL), 1);
        for (int i = 0; i < 1000 && !readable(fd); i++)
                assert_int_equal(snib_process(c), 0);
        assert_true(readable(fd));
        assert_int_equal(snib_process(c), 0);
        assert_int_equal(atomic_load(&s.lost), 0);
        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
        snib_lock_free(l);
        snib_lock_free(lo);
        snib_close(c);
        snib_close(other);
}

/* The record of a grant is used again; who wanted to be told of its loss did not mean the next
 * one's. */
static void a_callback_ends_with_its_grant(void **state)
{
        const char *url = space();
        snib_client *c = open_mode(url, SNIB_THREADS_NONE), *other = open_mode(url, SNIB_THREADS_KEEPER);
        snib_lock *l = lock_of(c, "x", NULL), *lo = lock_of(other, "x", NULL);
        struct seen s = {0};
        snib_grant *first = acquire(l, 0), *second;
        int fd;

        assert_int_equal(snib_grant_on_loss(first, on_lost, &s, NULL), 0);
        release(first);
        second = acquire(l, 0);
        assert_ptr_equal(second, first);
        fd = snib_grant_loss_fd(second);
        assert_int_equal(snib_lock_force_release(lo, NULL), 1);
        for (int i = 0; i < 1000 && !readable(fd); i++)
                assert_int_equal(snib_process(c), 0);
        assert_true(readable(fd));
        assert_int_equal(snib_grant_release(second, NULL), SNIB_ELOST);
        assert_int_equal(snib_process(c), 0);
        assert_int_equal(atomic_load(&s.lost), 0);
        snib_lock_free(l);
        snib_lock_free(lo);
        snib_close(c);
        snib_close(other);
}

static void lose_in_time(int mode, const struct snib_lock_options *o, int reason)
{
        snib_client *c = open_mode(space(), mode);
        snib_lock *l = lock_of(c, "x", o);
        struct seen s = {0};
        snib_grant *g = acquire(l, 0);

        assert_int_equal(snib_grant_on_loss(g, on_lost, &s, NULL), 0);
        until_set(c, mode, &s.lost, 1);
        assert_int_equal(s.reason, reason);
        assert_false(snib_grant_valid(g));
        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
        process_if_none(c, mode);
        release(acquire(l, 2000));
        snib_lock_free(l);
        snib_close(c);
}

static void fixed_leases_and_caps_on_the_hold_end(void **state)
{
        const struct snib_lock_options fixed = {
            .size = sizeof(struct snib_lock_options), .lease_ms = 200, .fixed_lease = 1};
        const struct snib_lock_options capped = {
            .size = sizeof(struct snib_lock_options), .lease_ms = 300, .max_hold_ms = 500};

        for (int m = 0; m < MODES; m++) {
                lose_in_time(modes[m], &fixed, SNIB_LOSS_EXPIRED);
                lose_in_time(modes[m], &capped, SNIB_LOSS_MAX_HOLD);
        }
}

static void *hold_and_end(void *arg)
{
        struct waiter *w = arg;

        w->result = snib_lock_acquire(w->lock, 1000, &w->grant, NULL);
        return NULL;
}

static void F81_the_end_of_the_owning_thread_is_a_loss(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *l = lock_of(c, "x", NULL);
                struct waiter w = {.lock = l};
                struct seen s = {0};
                pthread_t t;

                assert_int_equal(pthread_create(&t, NULL, hold_and_end, &w), 0);
                (void)pthread_join(t, NULL);
                assert_int_equal(w.result, 1);
                assert_false(snib_grant_valid(w.grant));
                assert_int_equal(snib_grant_loss(w.grant), SNIB_LOSS_THREAD_EXIT);
                assert_int_equal(snib_grant_on_loss(w.grant, on_lost, &s, NULL), 0);
                until_set(c, modes[m], &s.lost, 1);
                assert_int_equal(s.reason, SNIB_LOSS_THREAD_EXIT);
                release(acquire(l, 2000));
                assert_int_equal(snib_grant_release(w.grant, NULL), SNIB_ELOST);
                snib_lock_free(l);
                snib_close(c);
        }
}

/* ---- fork */

/* TSan cannot start threads in the child of a process that had several. */
#if defined(__SANITIZE_THREAD__)
#define THREADS_IN_CHILD SNIB_THREADS_NONE
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_IN_CHILD SNIB_THREADS_NONE
#endif
#endif
#ifndef THREADS_IN_CHILD
#define THREADS_IN_CHILD SNIB_THREADS_KEEPER
#endif

static int in_child(snib_client *c, snib_lock *l, snib_grant *g)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_options o = {.size = sizeof(struct snib_options), .threads = THREADS_IN_CHILD};
        snib_client *fresh = NULL;
        snib_grant *out = NULL;
        snib_lock *l2 = NULL;

        if (snib_grant_valid(g) || snib_grant_left_ms(g) || snib_grant_depth(g) || snib_grant_loss(g))
                return 1;
        if (snib_lock_acquire(l, SNIB_FOREVER, &out, &err) != SNIB_EFORK || !strstr(err.text, "fork"))
                return 2;
        if (snib_grant_release(g, &err) != SNIB_EFORK || snib_lock_release(l, NULL) != SNIB_EFORK ||
            snib_grant_renew(g, NULL) != SNIB_EFORK || snib_lock_query(l, &info, NULL) != SNIB_EFORK)
                return 3;
        if (snib_lock_cancel(l) != SNIB_EFORK || snib_grant_loss_fd(g) != SNIB_EFORK || snib_process(c) != SNIB_EFORK ||
            snib_fd(c) != SNIB_EFORK || snib_lock_force_release(l, NULL) != SNIB_EFORK || snib_lock_grant(l))
                return 4;
        if (snib_lock_new(c, "y", NULL, &l2, NULL) != SNIB_EFORK || snib_list(c, NULL, NULL, NULL) != SNIB_EFORK ||
            snib_lock_acquire_async(l, 0, never_acquired, NULL, NULL) != SNIB_EFORK ||
            snib_lock_query_async(l, never_info, NULL, NULL) != SNIB_EFORK ||
            snib_grant_release_async(g, never_done, NULL, NULL) != SNIB_EFORK ||
            snib_grant_on_loss(g, on_lost, NULL, NULL) != SNIB_EFORK)
                return 5;
        snib_lock_free(l);
        snib_close(c);
        /* A new client works in the child, with a new identity. */
        if (snib_open(&fresh, "mem:", &o, &err) < 0 || snib_lock_new(fresh, "x", NULL, &l2, NULL) < 0 ||
            snib_lock_acquire(l2, 1000, &out, NULL) != 1 || snib_grant_release(out, NULL) != 1)
                return 6;
        snib_lock_free(l2);
        snib_close(fresh);
        return 0;
}

static void *churn(void *arg)
{
        struct waiter *w = arg;

        while (!atomic_load(&w->ended))
                release(acquire(w->lock, 1000));
        return NULL;
}

static void F107_a_forked_child_has_nothing_and_disturbs_nothing(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *l = lock_of(c, "x", NULL);
                struct waiter w = {.lock = lock_of(c, "busy", NULL)};
                snib_grant *g = acquire(l, 0);
                pthread_t t;

                assert_int_equal(pthread_create(&t, NULL, churn, &w), 0);
                for (int i = 0; i < 10; i++) {
                        int status;
                        pid_t pid = fork();

                        if (pid == 0)
                                _exit(in_child(c, l, g));
                        assert_true(pid > 0);
                        assert_int_equal(waitpid(pid, &status, 0), pid);
                        assert_int_equal(status, 0);
                }
                atomic_store(&w.ended, 1);
                (void)pthread_join(t, NULL);
                assert_true(snib_grant_valid(g));
                release(g);
                snib_lock_free(l);
                snib_lock_free(w.lock);
                snib_close(c);
        }
}

/* ---- memory */

static void no_allocation_for_an_uncontended_pair_after_warm_up(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_lock *l = lock_of(c, "x", NULL);
                uint64_t before;

                for (int i = 0; i < 10; i++)
                        release(acquire(l, 1000));
                before = atomic_load(&snib__alloc_count);
                for (int i = 0; i < 1000; i++)
                        release(acquire(l, 1000));
                assert_int_equal(atomic_load(&snib__alloc_count) - before, 0);
                snib_lock_free(l);
                snib_close(c);
        }
}

static int each_name(void *arg, const char *name, size_t length, const struct snib_lock_info *info)
{
        return 0;
}

/* What a whole life of a client does, as far as memory allows: the first error, or 0. Nothing stays
 * behind. */
static int whole_life(const char *url, int mode)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .threads = mode};
        struct snib_lock_options ann = {.size = sizeof(struct snib_lock_options), .owner = "ann"};
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        struct seen s = {0};
        snib_client *c = NULL;
        snib_lock *l = NULL, *a = NULL;
        snib_grant *g = NULL, *none = NULL;
        int r = snib_open(&c, url, &o, &err);

        if (r < 0)
                return r;
        if ((r = snib_lock_new(c, "a name", NULL, &l, &err)) == 0 &&
            (r = snib_lock_new(c, "a name", &ann, &a, &err)) == 0 && (r = snib_lock_acquire(l, 1000, &g, &err)) == 1 &&
            (r = snib_lock_query(l, &info, &err)) == 1 && (r = (int)snib_list(c, each_name, NULL, &err)) == 1 &&
            (r = snib_lock_acquire(a, 5, &none, &err)) == 0 && (r = snib_grant_on_loss(g, on_lost, &s, &err)) == 0 &&
            (r = snib_grant_release(g, &err)) == 1) {
                g = NULL;
                r = snib_lock_acquire_async(a, 1000, on_acquired, &s, &err);
                if (r == 0) {
                        until_set(c, mode, &s.acquired, 1);
                        r = s.result;
                        if (r == 1)
                                r = snib_grant_release_async(s.grant, on_released, &s, &err);
                        if (r == 0)
                                until_set(c, mode, &s.released, 1);
                }
        }
        if (r < 0 && !err.code && s.result >= 0)
                r = -1000; /* an error without its detail */
        snib_lock_free(l);
        snib_lock_free(a);
        snib_close(c);
        return r < 0 ? r : 0;
}

static void F111_every_allocation_fails_once(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                int failures = 0, r = -1;

                for (uint64_t n = 1; n < 500; n++) {
                        uint64_t start = atomic_load(&snib__alloc_count);

                        atomic_store(&snib__alloc_fail_at, start + n);
                        r = whole_life(url, modes[m]);
                        atomic_store(&snib__alloc_fail_at, 0);
                        if (r != 0 && r != SNIB_ENOMEM && r != SNIB_EUNREACHABLE && r != SNIB_EUNKNOWN)
                                print_message("# allocation %d: %s\n", (int)n, snib_error_name(r));
                        assert_true(r == 0 || r == SNIB_ENOMEM || r == SNIB_EUNREACHABLE || r == SNIB_EUNKNOWN);
                        failures += r != 0;
                        if (atomic_load(&snib__alloc_count) < start + n)
                                break; /* it asks for less than n */
                }
                assert_true(failures >= 3);
                assert_int_equal(r, 0);
                /* Nothing of all this is still held. */
                snib_client *c = open_mode(url, SNIB_THREADS_KEEPER);
                snib_lock *l = lock_of(c, "a name", NULL);
                release(acquire(l, 0));
                snib_lock_free(l);
                snib_close(c);
        }
}

/* ---- small things */

static void errors_have_names_texts_and_classes(void **state)
{
        for (int code = -1; code >= SNIB_ECONFIG; code--) {
                assert_memory_equal(snib_error_name(code), "SNIB_E", 6);
                assert_true(strlen(snib_strerror(code)) > 5);
                assert_in_range(snib_error_class(code), SNIB_CLASS_USAGE, SNIB_CLASS_CORRUPT);
        }
        assert_int_equal(snib_error_class(1), 0);
        assert_int_equal(snib_error_class(-1000), 0);
        assert_string_equal(snib_error_name(3), "SNIB_OK");
        assert_string_equal(snib_error_name(0), "SNIB_OK");
        assert_string_equal(snib_error_name(-99), "(not an error code of snib)");
        assert_string_equal(snib_strerror(-99), "not an error code of snib");
        for (int loss = SNIB_LOSS_NONE; loss <= SNIB_LOSS_REFUSED; loss++)
                assert_string_not_equal(snib_loss_text(loss), "unknown reason");
        assert_string_equal(snib_loss_text(99), "unknown reason");
        assert_string_equal(snib_loss_text(-1), "unknown reason");
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_COUNTER; kind++)
                assert_string_not_equal(snib_kind_text(kind), "object");
        assert_string_equal(snib_kind_text(SNIB_KIND_ANY), "object");
        assert_string_equal(snib_kind_text(1000), "object");
        assert_string_equal(snib_version(), SNIB_VERSION);
}

static void engines_are_listed(void **state)
{
        struct snib_engine_info info = SNIB_ENGINE_INFO_INIT;
        int n = 0;

        while (snib_engine_at(n, &info) == 1) {
                assert_true(strlen(info.name) && strlen(info.schemes) && strlen(info.exclusion) && info.caps);
                n++;
        }
        assert_int_equal(n, 3);
}

static void trace_line(void *arg, const char *line)
{
        atomic_fetch_add((atomic_int *)arg, strstr(line, "warning: the braces") != NULL);
}

static void braces_that_are_no_hash_tag_are_warned_of(void **state)
{
        atomic_int warned = 0;
        struct snib_options o = {.size = sizeof(struct snib_options), .trace = trace_line, .trace_arg = &warned};
        snib_client *c;

        assert_int_equal(snib_open(&c, space(), &o, NULL), 0);
        snib_lock_free(lock_of(c, "{a}b", NULL));
        snib_lock_free(lock_of(c, "ab", NULL));
        assert_int_equal(atomic_load(&warned), 0);
        snib_lock_free(lock_of(c, "{}b", NULL));
        snib_lock_free(lock_of(c, "{a", NULL));
        snib_lock_free(lock_of(c, "a}", NULL));
        assert_int_equal(atomic_load(&warned), 3);
        snib_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(F12_leases_outside_the_range_are_refused_with_the_range),
            cmocka_unit_test(F13_waits_of_every_size),
            cmocka_unit_test(F115_names_that_are_refused_and_names_that_are_not),
            cmocka_unit_test(null_arguments_are_named),
            cmocka_unit_test(options_of_other_versions),
            cmocka_unit_test(urls_that_are_refused),
            cmocka_unit_test(re_entry_in_every_mode),
            cmocka_unit_test(kinds_and_owners),
            cmocka_unit_test(zeroed_structs_are_the_first_version_s),
            cmocka_unit_test(the_scope_releases_on_every_way_out),
            cmocka_unit_test(the_scope_tells_busy_from_error_from_done_from_lost),
            cmocka_unit_test(a_scope_that_is_in_use_is_refused),
            cmocka_unit_test(many_threads_count_under_locks),
            cmocka_unit_test(cancel_from_another_thread),
            cmocka_unit_test(a_crowd_that_is_cancelled_wakes_together),
            cmocka_unit_test(F113_close_during_a_wait),
            cmocka_unit_test(close_gives_back_what_is_held),
            cmocka_unit_test(asynchronous_calls_in_every_mode),
            cmocka_unit_test(an_asynchronous_wait_is_granted_when_another_client_releases),
            cmocka_unit_test(close_completes_what_is_asynchronous),
            cmocka_unit_test(callbacks_may_call_the_library),
            cmocka_unit_test(F9_a_callback_that_blocks_delays_no_renewal),
            cmocka_unit_test(a_forced_release_is_told_once_by_callback_and_descriptor),
            cmocka_unit_test(a_removed_callback_is_not_called),
            cmocka_unit_test(a_callback_ends_with_its_grant),
            cmocka_unit_test(fixed_leases_and_caps_on_the_hold_end),
            cmocka_unit_test(F81_the_end_of_the_owning_thread_is_a_loss),
            cmocka_unit_test(F107_a_forked_child_has_nothing_and_disturbs_nothing),
            cmocka_unit_test(no_allocation_for_an_uncontended_pair_after_warm_up),
            cmocka_unit_test(F111_every_allocation_fails_once),
            cmocka_unit_test(errors_have_names_texts_and_classes),
            cmocka_unit_test(engines_are_listed),
            cmocka_unit_test(braces_that_are_no_hash_tag_are_warned_of),
        };

        return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
