/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a hold means, on mem:, local: and a real Redis alike: re-entry, ownership, loss, names,
 * leases and waits. Each test runs once for each engine, whose URL is the test's state.
 */

#include "fault.h"
#include "tmp.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct redis_server *server;

/* Two clients of one store, and two owners of one name. */
struct scene {
        snib_client *client, *second;
        snib_lock *lock, *other;
        struct snib_error err;
};

static void scene_begin(struct scene *s, void **state, int64_t lease_ms)
{
        const char *url = *state;

        if (server)
                fault_do(server, "FLUSHALL");
        *s = (struct scene){.err = SNIB_ERROR_INIT};
        s->client = fault_open(url, 0);
        s->second = fault_open(url, 0);
        s->lock = fault_lock(s->client, "stock", "a", lease_ms);
        s->other = fault_lock(s->second, "stock", "b", lease_ms);
}

static void scene_end(struct scene *s)
{
        snib_lock_free(s->lock);
        snib_lock_free(s->other);
        snib_close(s->client);
        snib_close(s->second);
}

static void must_be_busy(snib_lock *lock)
{
        snib_grant *none = NULL;

        assert_result(snib_lock_try(lock, &none, NULL), 0);
        assert_null(none);
}

#define DEEP 20

static void F78_reentry_deep_with_failures_in_between(void **state)
{
        struct scene s;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *none = NULL;

        scene_begin(&s, state, 30000);
        snib_grant *grant = fault_acquire(s.lock, 0);
        int64_t token = snib_grant_token(grant);
        for (int depth = 2; depth <= DEEP; depth++) {
                snib_grant *same = NULL;
                int r = snib_lock_acquire(s.lock, 5000, &same, &err);

                if (r != 1)
                        fail_msg("depth %d: %s: %s", depth, snib_error_name(r), err.text);
                assert_ptr_equal(same, grant);
                assert_int_equal(snib_grant_depth(grant), depth);
                assert_true(snib_grant_token(grant) == token); /* F104: a re-entry is the same hold */
                if (server && depth % 7 == 0)
                        (void)fault_kill(server, "normal");
        }
        for (int depth = DEEP - 1; depth >= 1; depth--) {
                assert_result(snib_grant_release(grant, NULL), 0);
                assert_int_equal(snib_grant_depth(grant), depth);
                assert_true(eventually(snib_lock_try(s.other, &none, NULL) == 0, 2000)); /* it may have to dial again */
                assert_null(none);
        }
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_true(fault_passes(s.other, 0) > token);
        scene_end(&s);
}

static void F104_a_fenced_reentry_has_the_same_token(void **state)
{
        struct scene s;
        struct snib_lock_options o = {
            .size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FENCED, .owner = "a", .lease_ms = 30000};
        struct snib_lock_options p = {
            .size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FENCED, .owner = "b", .lease_ms = 30000};

        scene_begin(&s, state, 0);
        snib_lock *lock = fault_lock_with(s.client, "fenced", &o);
        snib_lock *other = fault_lock_with(s.second, "fenced", &p);
        int64_t last = 0;
        for (int i = 0; i < 3; i++) {
                snib_grant *grant = fault_acquire(lock, 0);
                int64_t token = snib_grant_token(grant);

                assert_true(token > last);
                assert_ptr_equal(fault_acquire(lock, 0), grant);
                assert_true(snib_grant_token(grant) == token);
                assert_result(snib_grant_release(grant, NULL), 0);
                assert_result(snib_grant_release(grant, NULL), 1);
                last = fault_passes(other, 0);
                assert_true(last > token);
        }
        snib_lock_free(lock);
        snib_lock_free(other);
        scene_end(&s);
}

/* Taken away and given to nobody: the re-entry finds the gap. */
static void F79_reentry_after_an_unnoticed_loss(void **state)
{
        struct scene s;
        snib_grant *same = NULL;

        scene_begin(&s, state, 30000);
        snib_grant *grant = fault_acquire(s.lock, 0);
        int64_t token = snib_grant_token(grant);
        assert_result(snib_lock_force_release(s.other, NULL), 1);
        int r = snib_lock_acquire(s.lock, 2000, &same, &s.err);
        if (r != SNIB_ELOST)
                fail_msg("the re-entry answered %d %s", r, snib_error_name(r));
        assert_null(same);
        assert_false(snib_grant_valid(grant));
        /* What the re-entry may have taken at the store is given back before its lease of 30 s
         * ends. */
        assert_true(fault_passes(s.other, 3000) > token);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(fault_passes(s.lock, 3000) > token);
        scene_end(&s);
}

static void F79_reentry_while_somebody_else_holds(void **state)
{
        struct scene s;
        snib_grant *same = NULL;

        scene_begin(&s, state, 30000);
        snib_grant *grant = fault_acquire(s.lock, 0);
        assert_result(snib_lock_force_release(s.other, NULL), 1);
        snib_grant *next = fault_acquire(s.other, 2000);
        assert_result(snib_lock_acquire(s.lock, 2000, &same, NULL), SNIB_ELOST);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(snib_grant_token(next) > 0);
        assert_true(snib_grant_valid(next));
        assert_result(snib_grant_renew(next, NULL), 1); /* F82: nothing of that touched it */
        assert_result(snib_grant_release(next, NULL), 1);
        scene_end(&s);
}

static void F82_only_the_owner_releases(void **state)
{
        struct scene s;

        scene_begin(&s, state, 30000);
        snib_lock *neighbour = fault_lock(s.client, "stock", "n", 30000); /* another owner in the same client */
        assert_result(snib_lock_release(s.lock, NULL), SNIB_ENOTOWNER);
        snib_grant *grant = fault_acquire(s.lock, 0);
        assert_result(snib_lock_release(neighbour, &s.err), SNIB_ENOTOWNER);
        assert_result(snib_lock_release(s.other, &s.err), SNIB_ENOTOWNER);
        assert_true(snib_grant_valid(grant));
        must_be_busy(s.other);
        assert_result(snib_lock_release(s.lock, NULL), 1);
        assert_result(snib_lock_release(s.lock, NULL), SNIB_ENOTOWNER); /* twice */
        (void)fault_passes(s.other, 0);
        snib_lock_free(neighbour);
        scene_end(&s);
}

static void F82_a_release_after_the_lease_is_told(void **state)
{
        struct scene s;
        struct snib_lock_options o = {
            .size = sizeof(struct snib_lock_options), .owner = "f", .lease_ms = fault_lease_ms() / 2, .fixed_lease = 1};
        struct fault_loss loss;

        scene_begin(&s, state, 30000);
        snib_lock *fixed = fault_lock_with(s.client, "stock", &o);
        snib_grant *grant = fault_acquire(fixed, 0);
        fault_watch(grant, &loss);
        snib_grant *next = fault_acquire(s.other, fault_lease_ms() * 2);
        assert_false(snib_grant_valid(grant)); /* over before the other could get it */
        assert_int_equal(fault_lost(grant, &loss, 500), SNIB_LOSS_EXPIRED);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(snib_grant_valid(next));
        assert_result(snib_grant_release(next, NULL), 1);
        snib_lock_free(fixed);
        scene_end(&s);
}

/* The release of a grant may come from any thread; the release by handle goes by its caller. */
struct elsewhere {
        snib_lock *lock;
        snib_grant *grant;
        int by_handle, by_grant;
};

static void *release_elsewhere(void *arg)
{
        struct elsewhere *e = arg;

        e->by_handle = snib_lock_release(e->lock, NULL);
        e->by_grant = snib_grant_release(e->grant, NULL);
        return NULL;
}

static void F82_another_thread_releases_by_grant_only(void **state)
{
        struct scene s;
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options),
                                      .lease_ms = 30000}; /* the thread is the owner */
        pthread_t thread;

        scene_begin(&s, state, 30000);
        snib_lock *mine = fault_lock_with(s.client, "stock", &o);
        struct elsewhere e = {.lock = mine, .grant = fault_acquire(mine, 0)};
        assert_int_equal(pthread_create(&thread, NULL, release_elsewhere, &e), 0);
        pthread_join(thread, NULL);
        assert_result(e.by_handle, SNIB_ENOTOWNER);
        assert_result(e.by_grant, 1);
        assert_null(snib_lock_grant(mine));
        (void)fault_passes(s.other, 0);
        snib_lock_free(mine);
        scene_end(&s);
}

static void F87_a_forced_release_is_told_once(void **state)
{
        struct scene s;
        struct fault_loss loss;

        scene_begin(&s, state, fault_lease_ms());
        assert_result(snib_lock_force_release(s.other, NULL), 0);
        snib_grant *grant = fault_acquire(s.lock, 0);
        int64_t token = snib_grant_token(grant);
        fault_watch(grant, &loss);
        assert_result(snib_lock_force_release(s.other, NULL), 1);
        int reason = fault_lost(grant, &loss, fault_lease_ms() * 2);
        assert_true(reason == SNIB_LOSS_GONE || reason == SNIB_LOSS_TAKEN);
        assert_true(fault_passes(s.other, 2000) > token);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_int_equal(atomic_load(&loss.calls), 1);
        scene_end(&s);
}

/* Two handles on one name with different leases: the lease is the hold's. */
static void F10_F14_the_lease_belongs_to_the_hold(void **state)
{
        struct scene s;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        scene_begin(&s, state, 1000);
        snib_lock *longer = fault_lock(s.client, "stock", "c", 100000);
        (void)fault_passes(longer, 0);
        snib_grant *grant = fault_acquire(s.lock, 0);
        assert_result(snib_lock_query(s.other, &info, NULL), 1);
        assert_true(info.lease_left_ms > 0 && info.lease_left_ms <= 1000);
        assert_true(snib_grant_left_ms(grant) > 0 && snib_grant_left_ms(grant) < 1000);
        must_be_busy(longer);
        assert_result(snib_grant_renew(grant, NULL), 1);
        assert_result(snib_lock_query(longer, &info, NULL), 1);
        assert_true(info.lease_left_ms <= 1000); /* the other handle's lease did not come in */
        assert_result(snib_grant_release(grant, NULL), 1);
        grant = fault_acquire(longer, 0);
        assert_result(snib_lock_query(s.other, &info, NULL), 1);
        assert_true(info.lease_left_ms > 90000 && info.lease_left_ms <= 100000);
        assert_true(snib_grant_left_ms(grant) > 90000);
        assert_result(snib_grant_release(grant, NULL), 1);
        snib_lock_free(longer);
        scene_end(&s);
}

static void F12_leases_that_are_none_change_nothing(void **state)
{
        static const int64_t bad[] = {-1,        -1000,    1, 99, SNIB_LEASE_MAX_MS + 1, INT64_C(9007199254740993),
                                      INT64_MAX, INT64_MIN};
        struct scene s;

        scene_begin(&s, state, 30000);
        snib_grant *grant = fault_acquire(s.lock, 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = bad[i]};
                struct snib_options c = {.size = sizeof(struct snib_options), .lease_ms = bad[i]};
                snib_lock *none = NULL;
                snib_client *no_client = NULL;

                assert_result(snib_lock_new(s.client, "stock", &o, &none, &s.err), SNIB_ELEASE);
                assert_true(strstr(s.err.text, "lease") != NULL);
                assert_true(snib_open(&no_client, *state, &c, &s.err) < 0);
        }
        assert_true(snib_grant_valid(grant));
        must_be_busy(s.other);
        assert_result(snib_grant_release(grant, NULL), 1);
        struct snib_lock_options most = {
            .size = sizeof(struct snib_lock_options), .lease_ms = SNIB_LEASE_MAX_MS, .owner = "y"};
        snib_lock *year = fault_lock_with(s.client, "stock", &most);
        grant = fault_acquire(year, 0);
        assert_true(snib_grant_left_ms(grant) > SNIB_LEASE_MAX_MS / 100 * 99);
        assert_result(snib_grant_release(grant, NULL), 1);
        snib_lock_free(year);
        scene_end(&s);
}

static void F13_F101_waits_of_every_size(void **state)
{
        struct scene s;
        struct fault_waiter w;
        snib_grant *none = NULL;
        int64_t start;

        scene_begin(&s, state, 30000);
        snib_grant *grant = fault_acquire(s.lock, INT64_MAX / 2 / wait_slow()); /* no overflow on the way */
        start = wait_now_ms();
        assert_result(snib_lock_acquire(s.other, 0, &none, NULL), 0);
        assert_true(wait_now_ms() - start < 1000 * wait_slow());
        start = wait_now_ms();
        assert_result(snib_lock_acquire(s.other, 20 * wait_slow(), &none, NULL), 0);
        assert_true(wait_now_ms() - start < 1000 * wait_slow());
        start = wait_now_ms();
        assert_result(snib_lock_acquire(s.other, 200, &none, NULL), 0);
        assert_in_range(wait_now_ms() - start, 195, 200 + 800 * wait_slow());
        assert_true(snib_lock_acquire(s.other, -2, &none, NULL) == SNIB_EINVAL);
        for (int i = 0; i < 2; i++) {
                fault_wait(&w, s.other, i ? SNIB_FOREVER : INT64_MAX);
                assert_false(eventually(atomic_load(&w.done), 100)); /* it waits */
                start = wait_now_ms();
                assert_result(snib_grant_release(grant, NULL), 1);
                assert_result(fault_join(&w), 1);
                assert_true(w.got_ms - start < 800); /* woken, not polled */
                assert_result(snib_grant_release(w.grant, NULL), 1);
                grant = fault_acquire(s.lock, 1000);
        }
        assert_result(snib_grant_release(grant, NULL), 1);
        scene_end(&s);
}

/* True when the waiter has its answer; a grant is released. */
static bool over(struct fault_waiter *w, bool cancelled)
{
        if (!atomic_load(&w->done))
                return false;
        if (fault_join(w) == 1)
                assert_result(snib_grant_release(w->grant, NULL), 1);
        else if (!cancelled)
                fail_msg("a waiter that nobody cancelled got %s", snib_error_name(w->result));
        else
                assert_result(w->result, SNIB_ECANCELLED);
        return true;
}

static void F37_F92_a_cancelled_waiter_leaves_nothing(void **state)
{
        struct scene s;
        struct fault_waiter w;

        scene_begin(&s, state, 30000);
        snib_lock *third = fault_lock(s.second, "stock", "c", 30000);
        for (int i = 0; i < 20; i++) {
                struct fault_waiter behind;
                snib_grant *grant = fault_acquire(s.lock, 3000);

                fault_wait(&w, s.other, SNIB_FOREVER);
                fault_wait(&behind, third, SNIB_FOREVER);
                if (i % 2) { /* the release and the cancel at the same moment */
                        assert_result(snib_grant_release(grant, NULL), 1);
                        (void)snib_lock_cancel(s.other);
                } else {
                        assert_true(eventually(snib_lock_cancel(s.other) == 1, 2000));
                        assert_result(snib_grant_release(grant, NULL), 1);
                }
                int64_t start = wait_now_ms();
                bool open = true, open_behind = true;
                while (open || open_behind) { /* either may be first, if the cancel came before the wait had begun */
                        assert_true(wait_now_ms() - start < 2500 * wait_slow());
                        open = open && !over(&w, true);
                        open_behind = open_behind && !over(&behind, false);
                        wait_moment();
                }
        }
        (void)fault_passes(s.lock, 1000);
        snib_lock_free(third);
        scene_end(&s);
}

static void F62_F115_F141_names_are_bytes(void **state)
{
        static char longest[SNIB_NAME_MAX + 1];
        static const char *const names[] = {"a",           "{",
                                            "}",           "{}",
                                            "{a}b",        "a{b}c",
                                            "a:b",         "../../etc/passwd",
                                            "/",           ".",
                                            "..",          "\n",
                                            "\r\n",        " ",
                                            "\x01\x7f",    "\xff\xfe\x80",
                                            "*",           "[a-z]?",
                                            "' OR 1=1 --", "\";DROP TABLE locks;",
                                            "%s%n%x",      "') redis.call('FLUSHALL') --",
                                            "return 1",    "\xc3\xa4\xe2\x82\xac",
                                            "mode",        longest};
        struct scene s;
        enum { COUNT = sizeof(names) / sizeof(names[0]) };
        snib_grant *grants[COUNT];
        snib_lock *locks[COUNT], *others[COUNT];

        memset(longest, 'n', SNIB_NAME_MAX);
        scene_begin(&s, state, 30000);
        for (int i = 0; i < COUNT; i++) { /* all at once: no two are the same lock */
                locks[i] = fault_lock(s.client, names[i], "a", 30000);
                others[i] = fault_lock(s.second, names[i], "b", 30000);
                grants[i] = fault_acquire(locks[i], 0);
                assert_string_equal(snib_lock_name(locks[i]), names[i]);
        }
        for (int i = 0; i < COUNT; i++) {
                struct fault_waiter w;

                must_be_busy(others[i]);
                fault_wait(&w, others[i], SNIB_FOREVER);
                assert_false(eventually(atomic_load(&w.done), 5));
                assert_result(snib_grant_release(grants[i], NULL), 1);
                assert_result(fault_join(&w), 1);
                assert_result(snib_grant_release(w.grant, NULL), 1);
        }
        for (int i = 0; i < COUNT; i++) {
                snib_lock_free(locks[i]);
                snib_lock_free(others[i]);
        }
        scene_end(&s);
}

static void F115_names_that_are_refused(void **state)
{
        static char too_long[SNIB_NAME_MAX + 2];
        struct scene s;
        snib_lock *none = NULL;
        struct snib_lock_options nul = {.size = sizeof(struct snib_lock_options), .name_len = 3};

        memset(too_long, 'n', SNIB_NAME_MAX + 1);
        scene_begin(&s, state, 30000);
        assert_result(snib_lock_new(s.client, "", NULL, &none, &s.err), SNIB_ENAME);
        assert_result(snib_lock_new(s.client, too_long, NULL, &none, &s.err), SNIB_ENAME);
        assert_result(snib_lock_new(s.client, "a\0b", &nul, &none, &s.err), SNIB_ENAME);
        assert_null(none);
        snib_lock *part = fault_lock_with(s.client, "abcdef", &nul); /* a part of a longer text is a name */
        assert_string_equal(snib_lock_name(part), "abc");
        snib_lock_free(part);
        scene_end(&s);
}

#define MANY 2000

/* As many holds on one client: all are renewed by its one keeper. */
static void F86_two_thousand_holds_are_renewed(void **state)
{
        struct scene s;
        static snib_lock *locks[MANY];
        static snib_grant *grants[MANY];
        int64_t lease = 2000 * wait_slow();
        int many = strncmp(*state, "local:", 6) ? MANY : MANY / 20; /* each renewal is a transaction there */
        char name[32];

        scene_begin(&s, state, lease);
        for (int i = 0; i < many; i++) {
                snprintf(name, sizeof(name), "many-%d", i);
                locks[i] = fault_lock(s.client, name, "a", lease);
                grants[i] = fault_acquire(locks[i], 1000);
        }
        int64_t all = wait_now_ms();
        while (wait_now_ms() - all < lease * 3 / 2) {
                for (int i = 0; i < many; i++)
                        if (!snib_grant_valid(grants[i]))
                                fail_msg("hold %d, %lld ms after the last acquire: %s", i,
                                         (long long)(wait_now_ms() - all), snib_loss_text(snib_grant_loss(grants[i])));
                wait_moment();
        }
        for (int i = 0; i < many; i++) {
                assert_result(snib_grant_release(grants[i], NULL), 1);
                snib_lock_free(locks[i]);
        }
        if (server && !strncmp(*state, "redis", 5))
                assert_int_equal(redis_server_int(server, "EVAL %s 0", "return #redis.call('KEYS', 'many-*')"), 0);
        scene_end(&s);
}

struct closing {
        _Atomic int calls, result;
};

static void closed(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct closing *c = arg;

        atomic_store(&c->result, result);
        atomic_fetch_add(&c->calls, 1);
}

static void F113_close_ends_waits_and_frees_holds(void **state)
{
        struct scene s;
        struct closing c = {0};
        struct fault_loss loss;

        scene_begin(&s, state, 30000);
        snib_lock *another = fault_lock(s.client, "another", "a", 30000);
        snib_lock *watched = fault_lock(s.second, "another", "b", 30000);
        snib_grant *grant = fault_acquire(s.other, 0);
        snib_grant *kept = fault_acquire(another, 0);
        fault_watch(kept, &loss);
        assert_result(snib_lock_acquire_async(s.lock, SNIB_FOREVER, closed, &c, NULL), 0);
        snib_lock_free(another);
        snib_lock_free(s.lock);
        snib_close(s.client);
        assert_int_equal(c.calls, 1);
        assert_result(c.result, SNIB_ECLOSED);
        assert_int_equal(loss.calls, 1);
        assert_int_equal(loss.reason, SNIB_LOSS_CLOSED);
        (void)fault_passes(watched, 500); /* released, not left to its lease */
        assert_result(snib_grant_release(grant, NULL), 1);
        s.client = fault_open(*state, 0);
        s.lock = fault_lock(s.client, "stock", "a", 30000);
        (void)fault_passes(s.lock, 1000); /* nothing waits in front of it */
        snib_lock_free(watched);
        scene_end(&s);
}

static void F80_threads_are_owners_of_their_own(void **state)
{
        struct scene s;
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = 30000};
        int64_t last = 0;

        scene_begin(&s, state, 30000);
        snib_lock *lock = fault_lock_with(s.client, "stock", &o);
        for (int i = 0; i < 20; i++) { /* threads that follow each other get each other's numbers and stacks */
                struct fault_waiter w;

                fault_wait(&w, lock, 3000);
                assert_result(fault_join(&w), 1);
                assert_true(snib_grant_token(w.grant) > last); /* never a re-entry of the dead one's hold */
                last = snib_grant_token(w.grant);
                assert_int_equal(snib_grant_depth(w.grant), 1);
                (void)snib_grant_release(w.grant, NULL);
        }
        snib_lock_free(lock);
        scene_end(&s);
}

/* The tests, once for each engine. */
static const struct {
        const char *name;
        CMUnitTestFunction run;
} cases[] = {
#define CASE(f)       \
        {             \
#f, f \
        }
    CASE(F78_reentry_deep_with_failures_in_between),
    CASE(F104_a_fenced_reentry_has_the_same_token),
    CASE(F79_reentry_after_an_unnoticed_loss),
    CASE(F79_reentry_while_somebody_else_holds),
    CASE(F82_only_the_owner_releases),
    CASE(F82_a_release_after_the_lease_is_told),
    CASE(F82_another_thread_releases_by_grant_only),
    CASE(F87_a_forced_release_is_told_once),
    CASE(F10_F14_the_lease_belongs_to_the_hold),
    CASE(F12_leases_that_are_none_change_nothing),
    CASE(F13_F101_waits_of_every_size),
    CASE(F37_F92_a_cancelled_waiter_leaves_nothing),
    CASE(F62_F115_F141_names_are_bytes),
    CASE(F115_names_that_are_refused),
    CASE(F86_two_thousand_holds_are_renewed),
    CASE(F113_close_ends_waits_and_frees_holds),
    CASE(F80_threads_are_owners_of_their_own),
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

int main(void)
{
        static char urls[3 * CASES][256]; /* a store for each, so that a failure spoils nothing else */
        static char names[3 * CASES][128];
        static struct CMUnitTest tests[3 * CASES];
        static const char *const engines[] = {"mem", "local", "redis"};
        int failed;

        if (!redis_server_unavailable())
                server = redis_server_start(NULL);
        for (int i = 0; i < 3 * CASES; i++) {
                const char *engine = engines[i / CASES];

                if (i / CASES == 0)
                        snprintf(urls[i], sizeof(urls[i]), "mem:hold-%d", i);
                else if (i / CASES == 1)
                        snprintf(urls[i], sizeof(urls[i]), "local:%s", tmp_dir());
                else if (server)
                        snprintf(urls[i], sizeof(urls[i]), "%s", redis_server_url(server));
                snprintf(names[i], sizeof(names[i]), "%s %s", cases[i % CASES].name, engine);
                tests[i] = (struct CMUnitTest){
                    .name = names[i], .test_func = cases[i % CASES].run, .initial_state = urls[i][0] ? urls[i] : NULL};
        }
        failed = fault_run("hold", tests, 3 * CASES, CASES);
        redis_server_free(server);
        return failed;
}
