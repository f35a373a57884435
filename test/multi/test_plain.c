/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All of several locks or none: on one engine and on three at once, in one order, under failures of
 * one member.
 */

#include "multi.h"
#include "tmp.h"
#include <stdio.h>
#include <string.h>

/* Two locks of one owner, and the same two names of another, on one client of `mem:`. */
struct pair {
        snib_client *client;
        snib_lock *ours[2];   /* in the order of their names */
        snib_lock *theirs[2]; /* another owner */
        snib_multilock *multilock;
};

static void pair_open(struct pair *p, const char *url)
{
        p->client = fault_open(url, 0);
        for (int i = 0; i < 2; i++) {
                p->ours[i] = fault_lock(p->client, i ? "b" : "a", "we", 0);
                p->theirs[i] = fault_lock(p->client, i ? "b" : "a", "they", 0);
        }
        p->multilock = multi_new((snib_lock *[]){p->ours[1], p->ours[0]}, 2);
}

static void pair_close(struct pair *p)
{
        snib_multilock_free(p->multilock);
        for (int i = 0; i < 2; i++) {
                snib_lock_free(p->ours[i]);
                snib_lock_free(p->theirs[i]);
        }
        snib_close(p->client);
}

static void all_are_held_and_given_back(void **state)
{
        struct pair p;
        snib_multigrant *grant;

        pair_open(&p, "mem:plain");
        grant = multi_acquire(p.multilock, 0);
        for (int i = 0; i < 2; i++) {
                snib_grant *none = NULL;

                assert_result(snib_lock_try(p.theirs[i], &none, NULL), 0);
        }
        /* Members are numbered as they were given. */
        assert_ptr_equal(snib_multigrant_member(grant, 0), snib_lock_grant(p.ours[1]));
        assert_ptr_equal(snib_multigrant_member(grant, 1), snib_lock_grant(p.ours[0]));
        assert_null(snib_multigrant_member(grant, 2));
        assert_true(snib_multigrant_left_ms(grant) <= fault_lease_ms());
        multi_release(grant, 1);
        assert_true(fault_passes(p.theirs[0], 0) > 0);
        assert_true(fault_passes(p.theirs[1], 0) > 0);
        pair_close(&p);
}

static void members_are_renewed_while_held(void **state)
{
        struct pair p;
        snib_multigrant *grant;
        snib_grant *none = NULL;

        pair_open(&p, "mem:plain");
        grant = multi_acquire(p.multilock, 0);
        /* Refused for two leases. */
        assert_result(snib_lock_acquire(p.theirs[0], 2 * fault_lease_ms(), &none, NULL), 0);
        assert_true(snib_multigrant_valid(grant));
        multi_release(grant, 1);
        pair_close(&p);
}

static void F69_a_single_try_that_fails_leaves_nothing(void **state)
{
        struct pair p;
        snib_grant *theirs;

        pair_open(&p, "mem:plain");
        theirs = fault_acquire(p.theirs[1], 0);
        (void)multi_refused(p.multilock, 0, 0);
        assert_false(multi_held(p.ours[0]));
        assert_result(snib_grant_release(theirs, NULL), 1);
        multi_release(multi_acquire(p.multilock, 0), 1);
        pair_close(&p);
}

static void F69_a_wait_that_ends_leaves_nothing(void **state)
{
        struct pair p;
        snib_grant *theirs;

        pair_open(&p, "mem:plain");
        theirs = fault_acquire(p.theirs[1], 0);
        assert_true(multi_refused(p.multilock, 120, 0) >= 119);
        assert_false(multi_held(p.ours[0]));
        assert_null(snib_lock_grant(p.ours[0]));
        assert_result(snib_grant_release(theirs, NULL), 1);
        pair_close(&p);
}

static void F73_cancel_gives_back_what_was_taken(void **state)
{
        struct pair p;
        snib_grant *theirs;
        struct multi_waiter w;

        pair_open(&p, "mem:plain");
        assert_int_equal(snib_multilock_cancel(p.multilock), 0);
        theirs = fault_acquire(p.theirs[1], 0);
        multi_wait(&w, p.multilock, SNIB_FOREVER);
        assert_true(eventually(multi_held(p.ours[0]), 5000));
        assert_int_equal(snib_multilock_cancel(p.multilock), 1);
        assert_result(multi_join(&w), SNIB_ECANCELLED);
        assert_null(w.grant);
        assert_false(multi_held(p.ours[0]));
        assert_int_equal(snib_multilock_cancel(p.multilock), 0);
        assert_result(snib_grant_release(theirs, NULL), 1);
        assert_true(fault_passes(p.theirs[1], 0) > 0);
        pair_close(&p);
}

static void a_release_lets_a_waiter_in(void **state)
{
        struct pair p;
        snib_grant *theirs;
        struct multi_waiter w;

        pair_open(&p, "mem:plain");
        theirs = fault_acquire(p.theirs[1], 0);
        multi_wait(&w, p.multilock, SNIB_FOREVER);
        assert_true(eventually(multi_held(p.ours[0]), 5000));
        assert_result(snib_grant_release(theirs, NULL), 1);
        assert_result(multi_join(&w), 1);
        assert_true(snib_multigrant_valid(w.grant));
        multi_release(w.grant, 1);
        pair_close(&p);
}

static void F74_members_are_taken_in_one_order(void **state)
{
        struct pair p;
        snib_multilock *other;
        snib_grant *theirs;
        struct multi_waiter w;

        pair_open(&p, "mem:plain");
        other = multi_new((snib_lock *[]){p.ours[0], p.ours[1]}, 2);
        for (int k = 0; k < 2; k++) {
                snib_multilock *m = k ? other : p.multilock;

                /* Whoever waits for "a" holds no "b", however its members were given. */
                theirs = fault_acquire(p.theirs[0], 0);
                multi_wait(&w, m, SNIB_FOREVER);
                assert_true(eventually(({
                                               struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
                                               snib_lock_query(p.theirs[0], &info, NULL) == 1 && info.waiters > 0;
                                       }),
                                       5000));
                assert_false(multi_held(p.ours[1]));
                assert_result(snib_grant_release(theirs, NULL), 1);
                assert_result(multi_join(&w), 1);
                multi_release(w.grant, 1);
        }
        snib_multilock_free(other);
        pair_close(&p);
}

/* Redisson's MultiLock keeps the order of its caller. */
static void *foreign_order(void *arg)
{
        struct pair *p = arg;
        snib_grant *a = NULL;

        assert_result(snib_lock_acquire(p->theirs[0], SNIB_FOREVER, &a, NULL), 1);
        assert_result(snib_grant_release(a, NULL), 1);
        assert_result(snib_lock_release(p->theirs[1], NULL), 1);
        return NULL;
}

static void F74_somebody_elses_order_does_not_deadlock_us(void **state)
{
        struct pair p;
        struct multi_waiter w;
        pthread_t they;

        pair_open(&p, "mem:plain");
        (void)fault_acquire(p.theirs[1], 0); /* they hold b, and will want a */
        multi_wait(&w, p.multilock, SNIB_FOREVER);
        assert_true(eventually(multi_held(p.ours[0]), 5000)); /* we hold a, and want b */
        assert_int_equal(pthread_create(&they, NULL, foreign_order, &p), 0);
        assert_result(multi_join(&w), 1);
        pthread_join(they, NULL);
        multi_release(w.grant, 1);
        pair_close(&p);
}

static void the_same_owner_may_acquire_again(void **state)
{
        struct pair p;
        snib_multigrant *outer, *inner;
        snib_grant *none = NULL;

        pair_open(&p, "mem:plain");
        outer = multi_acquire(p.multilock, 0);
        inner = multi_acquire(p.multilock, 0);
        assert_ptr_not_equal(outer, inner);
        assert_int_equal(snib_grant_depth(snib_multigrant_member(outer, 0)), 2);
        multi_release(outer, 1);
        assert_true(snib_multigrant_valid(inner));
        assert_result(snib_lock_try(p.theirs[0], &none, NULL), 0);
        multi_release(inner, 1);
        assert_true(fault_passes(p.theirs[0], 0) > 0);
        pair_close(&p);
}

static void one_lost_member_is_the_loss_of_the_whole(void **state)
{
        struct pair p;
        snib_multigrant *grant;
        struct multi_loss loss, late;

        pair_open(&p, "mem:plain");
        grant = multi_acquire(p.multilock, 0);
        multi_watch(grant, &loss);
        assert_int_equal(snib_lock_force_release(p.theirs[0], NULL), 1);
        assert_int_equal(multi_lost(grant, &loss, 5000), SNIB_LOSS_GONE);
        /* The rest stays held until the program has put things in order. */
        assert_true(multi_held(p.ours[1]));
        assert_true(snib_grant_valid(snib_multigrant_member(grant, 0)));
        /* Who asks late is told at once, and the other one not again. */
        late = (struct multi_loss){.calls = 0};
        multi_watch(grant, &late);
        (void)multi_lost(grant, &late, 5000);
        multi_release(grant, SNIB_ELOST);
        assert_int_equal(atomic_load(&loss.calls), 1);
        assert_false(multi_held(p.ours[1]));
        multi_release(multi_acquire(p.multilock, 0), 1);
        pair_close(&p);
}

static void F76_a_lost_member_is_never_renewed_or_released_for_its_next_owner(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct pair p;
        snib_multigrant *grant;
        snib_grant *theirs;
        struct multi_loss loss;
        struct snib_lock_options o = {
            .size = sizeof(struct snib_lock_options), .owner = "third", .lease_ms = 600000, .fixed_lease = 1};

        pair_open(&p, redis_server_url(s));
        snib_lock *third = fault_lock_with(p.client, "a", &o);
        grant = multi_acquire(p.multilock, 0);
        multi_watch(grant, &loss);
        assert_int_equal(snib_lock_force_release(p.theirs[0], NULL), 1);
        theirs = fault_acquire(third, 0);
        (void)multi_lost(grant, &loss, 5000);
        /* Two watchdog periods of the rest. */
        assert_false(wait_readable(snib_grant_loss_fd(theirs), fault_lease_ms()));
        assert_true(fault_pttl(s, "a") > 500000);
        multi_release(grant, SNIB_ELOST);
        assert_true(fault_pttl(s, "a") > 500000);
        assert_true(snib_grant_valid(theirs));
        assert_result(snib_grant_release(theirs, NULL), 1);
        snib_lock_free(third);
        pair_close(&p);
        redis_server_free(s);
}

static void F75_one_failed_release_does_not_keep_the_others(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c[3] = {fault_open("mem:plain", 0), fault_open(redis_server_url(s), 300 * wait_slow()),
                             fault_open("mem:plain", 0)};
        snib_lock *lock[3], *theirs[3];
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multilock *m;
        snib_multigrant *grant;

        for (int i = 0; i < 3; i++) {
                char name[] = {(char)('x' + i), 0};

                lock[i] = fault_lock(c[i], name, "we", 20000);
                theirs[i] = fault_lock(c[i], name, "they", 20000);
        }
        m = multi_new(lock, 3);
        grant = multi_acquire(m, 0);
        redis_server_pause(s);
        assert_result(snib_multigrant_release(grant, &err), SNIB_EUNKNOWN);
        assert_non_null(strstr(err.text, "member 2 of 3, \"y\": "));
        assert_true(fault_passes(theirs[0], 0) > 0);
        assert_true(fault_passes(theirs[2], 0) > 0);
        redis_server_resume(s);
        assert_true(fault_passes(theirs[1], 10000) > 0); /* released in the background, long before its lease ends */
        snib_multilock_free(m);
        for (int i = 0; i < 3; i++) {
                snib_lock_free(lock[i]);
                snib_lock_free(theirs[i]);
                snib_close(c[i]);
        }
        redis_server_free(s);
}

static void an_error_names_the_member_and_leaves_nothing(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant = NULL;
        struct pair p;

        pair_open(&p, redis_server_url(s));
        fault_do(s, "SET b text");
        assert_result(snib_multilock_acquire(p.multilock, 5000, &grant, &err), SNIB_EKIND);
        assert_int_equal(err.code, SNIB_EKIND);
        assert_non_null(strstr(err.text, "member 1 of 2, \"b\": "));
        assert_false(multi_held(p.ours[0]));
        redis_server_kill(s);
        assert_true(snib_multilock_acquire(p.multilock, 0, &grant, &err) < 0);
        assert_non_null(strstr(err.text, "member 2 of 2, \"a\": "));
        pair_close(&p);
        redis_server_free(s);
}

static void F77_members_on_three_engines_at_once(void **state)
{
        struct redis_server *s = fault_server(NULL);
        char local[300];
        snib_client *c[3];
        snib_lock *lock[3], *theirs[3];
        snib_multilock *m;
        snib_multigrant *grant;
        struct multi_loss loss;
        struct multi_waiter w;

        snprintf(local, sizeof(local), "local:%s", tmp_dir());
        const char *urls[3] = {"mem:plain", local, redis_server_url(s)};
        for (int i = 0; i < 3; i++) {
                c[i] = fault_open(urls[i], 0);
                lock[i] = fault_lock(c[i], "one name", "we", 0);
                theirs[i] = fault_lock(c[i], "one name", "they", 0);
        }
        m = multi_new(lock, 3);
        for (int i = 0; i < 3; i++) {
                snib_grant *busy = fault_acquire(theirs[i], 0);

                (void)multi_refused(m, 0, 0);
                multi_wait(&w, m, SNIB_FOREVER);
                assert_false(wait_readable(snib_grant_loss_fd(busy), 20));
                assert_result(snib_grant_release(busy, NULL), 1);
                assert_result(multi_join(&w), 1);
                for (int k = 0; k < 3; k++)
                        assert_true(multi_held(theirs[k]));
                multi_release(w.grant, 1);
                for (int k = 0; k < 3; k++)
                        assert_false(multi_held(theirs[k]));
        }
        for (int i = 0; i < 3; i++) {
                grant = multi_acquire(m, 0);
                multi_watch(grant, &loss);
                assert_int_equal(snib_lock_force_release(theirs[i], NULL), 1);
                (void)multi_lost(grant, &loss, 5000);
                multi_release(grant, SNIB_ELOST);
        }
        assert_int_equal(snib_multilock_force_release(m, NULL), 0);
        grant = multi_acquire(m, 0);
        assert_int_equal(snib_multilock_force_release(m, NULL), 1);
        assert_false(multi_held(lock[0]) || multi_held(lock[1]) || multi_held(lock[2]));
        multi_release(grant, SNIB_ELOST);
        snib_multilock_free(m);
        for (int i = 0; i < 3; i++) {
                snib_lock_free(lock[i]);
                snib_lock_free(theirs[i]);
                snib_close(c[i]);
        }
        redis_server_free(s);
}

static void sides_of_read_write_locks_are_members(void **state)
{
        struct snib_lock_options we = {.size = sizeof(struct snib_lock_options), .owner = "we"},
                                 they = {.size = sizeof(struct snib_lock_options), .owner = "they"};
        snib_client *c = fault_open("mem:plain", 0);
        snib_rwlock *ours, *theirs;
        snib_grant *grant = NULL, *none = NULL;
        snib_multigrant *both;
        snib_lock *lock = fault_lock(c, "z", "we", 0);

        assert_result(snib_rwlock_new(c, "rw", &we, &ours, NULL), 0);
        assert_result(snib_rwlock_new(c, "rw", &they, &theirs, NULL), 0);
        snib_multilock *m = multi_new((snib_lock *[]){snib_rwlock_read(ours), lock}, 2);
        both = multi_acquire(m, 0);
        assert_result(snib_lock_try(snib_rwlock_write(theirs), &none, NULL), 0);
        assert_result(snib_lock_try(snib_rwlock_read(theirs), &grant, NULL), 1);
        assert_result(snib_grant_release(grant, NULL), 1);
        multi_release(both, 1);
        snib_multilock_free(m);
        /* Both sides of one: the write side first, and under it the read side. */
        m = multi_new((snib_lock *[]){snib_rwlock_read(ours), snib_rwlock_write(ours)}, 2);
        both = multi_acquire(m, 0);
        assert_result(snib_lock_try(snib_rwlock_read(theirs), &none, NULL), 0);
        multi_release(both, 1);
        assert_result(snib_lock_try(snib_rwlock_write(theirs), &grant, NULL), 1);
        assert_result(snib_grant_release(grant, NULL), 1);
        snib_multilock_free(m);
        snib_lock_free(lock);
        snib_rwlock_free(ours);
        snib_rwlock_free(theirs);
        snib_close(c);
}

static void kinds_can_be_mixed(void **state)
{
        static const int kinds[] = {SNIB_LOCK_REENTRANT, SNIB_LOCK_NON_REENTRANT, SNIB_LOCK_FENCED, SNIB_LOCK_FAIR,
                                    SNIB_LOCK_SPIN};
        snib_client *c = fault_open("mem:plain", 0);
        snib_lock *locks[5];
        snib_multilock *m;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant, *none = NULL;

        for (int i = 0; i < 5; i++) {
                char name[] = {(char)('0' + i), 0};
                struct snib_lock_options o = {
                    .size = sizeof(struct snib_lock_options), .kind = kinds[i], .owner = "we"};

                locks[i] = fault_lock_with(c, name, &o);
        }
        m = multi_new(locks, 5);
        grant = multi_acquire(m, 0);
        /* The multilock is as re-entrant as its members. */
        assert_result(snib_multilock_try(m, &none, &err), SNIB_EREENTRY);
        assert_non_null(strstr(err.text, "member 2 of 5, \"1\": "));
        assert_int_equal(snib_grant_depth(snib_multigrant_member(grant, 0)), 1);
        multi_release(grant, 1);
        snib_multilock_free(m);
        for (int i = 0; i < 5; i++)
                snib_lock_free(locks[i]);
        snib_close(c);
}

static void a_hold_that_ends_while_others_are_waited_for_is_taken_again(void **state)
{
        struct pair p;
        snib_grant *theirs;
        struct multi_waiter w;

        pair_open(&p, "mem:plain");
        theirs = fault_acquire(p.theirs[1], 0);
        multi_wait(&w, p.multilock, SNIB_FOREVER);
        assert_true(eventually(multi_held(p.ours[0]), 5000));
        assert_int_equal(snib_lock_force_release(p.theirs[0], NULL), 1);
        assert_result(snib_grant_release(theirs, NULL), 1);
        assert_result(multi_join(&w), 1);
        assert_true(snib_multigrant_valid(w.grant));
        assert_true(multi_held(p.ours[0]) && multi_held(p.ours[1]));
        multi_release(w.grant, 1);
        pair_close(&p);
}

static void a_member_released_by_another_call_is_a_loss(void **state)
{
        struct pair p;
        snib_multigrant *grant;
        struct multi_loss loss;

        pair_open(&p, "mem:plain");
        grant = multi_acquire(p.multilock, 0);
        multi_watch(grant, &loss);
        assert_result(snib_lock_release(p.ours[0], NULL), 1);
        assert_int_equal(multi_lost(grant, &loss, 5000), SNIB_LOSS_GONE);
        assert_null(snib_multigrant_member(grant, 1));
        multi_release(grant, SNIB_ENOTOWNER);
        assert_false(multi_held(p.ours[1]));
        pair_close(&p);
}

static void arguments_are_checked(void **state)
{
        struct pair p;
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_multilock_options o = {.size = sizeof(struct snib_multilock_options), .red = 2};
        snib_multilock *m = NULL;
        snib_multigrant *grant = NULL;
        snib_lock *many[SNIB_MULTILOCK_MAX + 1];

        pair_open(&p, "mem:plain");
        snib_lock *same = fault_lock(p.client, "a", "another", 0);
        for (size_t i = 0; i <= SNIB_MULTILOCK_MAX; i++)
                many[i] = p.ours[0];
        assert_result(snib_multilock_new(p.ours, 0, NULL, &m, &err), SNIB_EINVAL);
        assert_result(snib_multilock_new(NULL, 2, NULL, &m, &err), SNIB_EINVAL);
        assert_result(snib_multilock_new(p.ours, 2, NULL, NULL, &err), SNIB_EINVAL);
        assert_result(snib_multilock_new(many, SNIB_MULTILOCK_MAX + 1, NULL, &m, &err), SNIB_EINVAL);
        assert_result(snib_multilock_new(many, 2, NULL, &m, &err), SNIB_EINVAL);
        assert_string_equal(err.text, "members 1 and 2 are the same lock on the same client");
        assert_result(snib_multilock_new((snib_lock *[]){p.ours[0], p.ours[1], same}, 3, NULL, &m, &err), SNIB_EINVAL);
        assert_string_equal(err.text, "members 1 and 3 are the same lock on the same client");
        assert_result(snib_multilock_new((snib_lock *[]){p.ours[0], NULL}, 2, NULL, &m, &err), SNIB_EINVAL);
        assert_result(snib_multilock_new(p.ours, 2, &o, &m, &err), SNIB_EINVAL);
        o.red = 0;
        o.node_timeout_ms = -1;
        assert_result(snib_multilock_new(p.ours, 2, &o, &m, &err), SNIB_EINVAL);
        assert_null(m);
        assert_result(snib_multilock_acquire(p.multilock, -2, &grant, &err), SNIB_EINVAL);
        assert_result(snib_multilock_acquire(p.multilock, 0, NULL, &err), SNIB_EINVAL);
        assert_result(snib_multilock_acquire(NULL, 0, &grant, &err), SNIB_EINVAL);
        assert_result(snib_multilock_acquire_async(p.multilock, 0, NULL, NULL, &err), SNIB_EINVAL);
        assert_result(snib_multilock_force_release(NULL, &err), SNIB_EINVAL);
        assert_result(snib_multilock_cancel(NULL), SNIB_EINVAL);
        assert_result(snib_multigrant_release(NULL, &err), SNIB_EINVAL);
        assert_result(snib_multigrant_on_loss(NULL, NULL, NULL, &err), SNIB_EINVAL);
        assert_result(snib_multigrant_loss_fd(NULL), SNIB_EINVAL);
        assert_int_equal(snib_multigrant_valid(NULL), 0);
        assert_int_equal(snib_multigrant_left_ms(NULL), 0);
        assert_int_equal(snib_multigrant_token(NULL), 0);
        assert_null(snib_multigrant_member(NULL, 0));
        snib_multilock_free(NULL);
        snib_lock_free(same);
        pair_close(&p);
}

static void *again_and_again(void *arg)
{
        for (int i = 0; i < 200; i++)
                multi_release(multi_acquire(arg, 1000), 1); /* less than a slice: nobody ever had to step back */
        return NULL;
}

/* The order of acquiring does not follow who asks or for how long: F74 with members that differ in
 * their URLs only. */
static void F74_passwords_and_time_outs_do_not_change_the_order(void **state)
{
        static const char *const secret[] = {"--requirepass", "secret", NULL};
        struct redis_server *s[2] = {fault_server_tcp(secret), fault_server_tcp(secret)};
        snib_client *c[2][2];
        snib_lock *lock[2][2];
        snib_multilock *m[2];
        char url[200];
        pthread_t we;

        for (int i = 0; i < 2; i++) {
                redis_server_auth(s[i], "secret");
                for (int who = 0; who < 2; who++) {
                        snprintf(url, sizeof(url), "redis://%s@127.0.0.1:%d%s", i == who ? "default:secret" : ":secret",
                                 redis_server_port(s[i]), i == who ? "?timeout=2s" : "");
                        c[i][who] = fault_open(url, 0);
                        lock[i][who] = fault_lock(c[i][who], "one", who ? "they" : "we", 0);
                }
        }
        for (int who = 0; who < 2; who++)
                m[who] = multi_new((snib_lock *[]){lock[who][who], lock[!who][who]}, 2);
        assert_int_equal(pthread_create(&we, NULL, again_and_again, m[0]), 0);
        (void)again_and_again(m[1]);
        pthread_join(we, NULL);
        for (int i = 0; i < 2; i++) {
                snib_multilock_free(m[i]);
                for (int who = 0; who < 2; who++) {
                        snib_lock_free(lock[i][who]);
                        snib_close(c[i][who]);
                }
        }
        redis_server_free(s[0]);
        redis_server_free(s[1]);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(all_are_held_and_given_back),
            cmocka_unit_test(members_are_renewed_while_held),
            cmocka_unit_test(F69_a_single_try_that_fails_leaves_nothing),
            cmocka_unit_test(F69_a_wait_that_ends_leaves_nothing),
            cmocka_unit_test(F73_cancel_gives_back_what_was_taken),
            cmocka_unit_test(a_release_lets_a_waiter_in),
            cmocka_unit_test(F74_members_are_taken_in_one_order),
            cmocka_unit_test(F74_somebody_elses_order_does_not_deadlock_us),
            cmocka_unit_test(the_same_owner_may_acquire_again),
            cmocka_unit_test(one_lost_member_is_the_loss_of_the_whole),
            cmocka_unit_test(sides_of_read_write_locks_are_members),
            cmocka_unit_test(kinds_can_be_mixed),
            cmocka_unit_test(a_hold_that_ends_while_others_are_waited_for_is_taken_again),
            cmocka_unit_test(a_member_released_by_another_call_is_a_loss),
            cmocka_unit_test(arguments_are_checked),
            cmocka_unit_test(F74_passwords_and_time_outs_do_not_change_the_order),
            cmocka_unit_test(F75_one_failed_release_does_not_keep_the_others),
            cmocka_unit_test(F76_a_lost_member_is_never_renewed_or_released_for_its_next_owner),
            cmocka_unit_test(F77_members_on_three_engines_at_once),
            cmocka_unit_test(an_error_names_the_member_and_leaves_nothing),
        };

        return fault_run("plain", tests, sizeof(tests) / sizeof(tests[0]), 5);
}
