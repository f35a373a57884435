/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A real server that dies, restarts, forgets its scripts, pauses, or kills connections. Refusals
 * are in test_refusal.c.
 */

#include "fault.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void restart_is_a_loss(int kind)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c = fault_open(redis_server_url(s), 0);
        struct snib_lock_options o = {
            .size = sizeof(struct snib_lock_options), .kind = kind, .owner = "a", .lease_ms = 20000};
        struct snib_lock_options p = {
            .size = sizeof(struct snib_lock_options), .kind = kind, .owner = "b", .lease_ms = 20000};
        snib_lock *lock = fault_lock_with(c, "stock", &o);
        snib_lock *other = fault_lock_with(c, "stock", &p);
        snib_grant *grant = fault_acquire(lock, 0);
        int64_t token = snib_grant_token(grant);
        struct fault_loss loss;

        fault_watch(grant, &loss);
        redis_server_restart(s);
        /* The lease would have lasted 20 s: it is the empty server that tells, at once after
         * reconnection. */
        assert_int_equal(fault_lost(grant, &loss, 5000), SNIB_LOSS_GONE);
        assert_true(fault_passes(other, 3000) > token);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(fault_passes(lock, 3000) > token);
        snib_lock_free(other);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F38_kill9_without_persistence_is_a_loss(void **state)
{
        restart_is_a_loss(SNIB_LOCK_REENTRANT);
}

static void F38_kill9_without_persistence_fenced_tokens_rise(void **state)
{
        restart_is_a_loss(SNIB_LOCK_FENCED);
}

static void F38_kill9_tells_waiters_and_lets_them_in(void **state)
{
        struct fault_pair pair = fault_pair("stock", 20000);
        snib_grant *grant = fault_acquire(pair.lock, 0);
        struct fault_loss loss;
        struct fault_waiter w;

        fault_watch(grant, &loss);
        fault_wait(&w, pair.other, SNIB_FOREVER);
        assert_true(eventually(fault_subscribers(pair.server, "stock") == 1, 5000));
        redis_server_restart(pair.server);
        (void)fault_lost(grant, &loss, 5000);
        assert_result(fault_join(&w), 1);
        assert_true(snib_grant_token(w.grant) > snib_grant_token(grant));
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(snib_grant_valid(w.grant));
        assert_result(snib_grant_release(w.grant, NULL), 1);
        fault_pair_done(&pair);
}

static const char *const logged[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

static void F39_kill9_with_a_log_keeps_the_hold(void **state)
{
        struct redis_server *s = fault_server(logged);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 5000);
        snib_lock *other = fault_lock(c, "stock", "b", 5000);
        snib_grant *grant = fault_acquire(lock, 0);
        snib_grant *none = NULL;
        int64_t token = snib_grant_token(grant);
        struct fault_loss loss;

        fault_watch(grant, &loss);
        redis_server_restart(s);
        /* Renewed by the reconnected client: a later deadline than the first lease can give. */
        assert_true(eventually(snib_grant_renew(grant, NULL) == 1, 5000));
        assert_true(fault_pttl(s, "stock") > 4000);
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_int_equal(snib_grant_token(grant), token);
        assert_result(snib_lock_try(other, &none, NULL), 0);
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_true(fault_passes(other, 3000) > token);
        snib_lock_free(other);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* The incremental file of the append-only log. */
static void log_path(struct redis_server *s, char *ret, size_t size)
{
        snprintf(ret, size, "%s/appendonlydir/appendonly.aof.1.incr.aof", redis_server_dir(s));
}

static void F39_power_loss_of_the_last_second_is_a_loss(void **state)
{
        struct redis_server *s = fault_server(logged);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 20000);
        char path[256];
        struct stat before;
        struct fault_loss loss;

        assert_true(fault_passes(lock, 0) > 0);
        log_path(s, path, sizeof(path));
        assert_int_equal(stat(path, &before), 0);
        snib_grant *grant = fault_acquire(lock, 0);
        int64_t token = snib_grant_token(grant);
        fault_watch(grant, &loss);
        redis_server_kill(s);
        assert_int_equal(truncate(path, before.st_size), 0);
        redis_server_restart(s);
        assert_int_equal(fault_lost(grant, &loss, 5000), SNIB_LOSS_GONE);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(fault_passes(lock, 3000) > token);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F51_script_flush_is_not_noticed(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        (void)fault_passes(lock, 0);
        for (int i = 0; i < 3; i++) {
                fault_do(s, "SCRIPT FLUSH");
                snib_grant *grant = fault_acquire(lock, 0);
                fault_do(s, "SCRIPT FLUSH");
                assert_result(snib_grant_renew(grant, NULL), 1);
                fault_do(s, "SCRIPT FLUSH");
                assert_result(snib_lock_query(lock, &info, NULL), 1);
                assert_true(info.mine);
                fault_do(s, "SCRIPT FLUSH");
                assert_result(snib_grant_release(grant, NULL), 1);
                assert_false(fault_key(s, "stock"));
        }
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F53_pause_shorter_than_the_lease_loses_nothing(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t lease = fault_lease_ms();
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", lease * 2);
        snib_grant *grant = fault_acquire(lock, 0);
        struct fault_loss loss;
        int64_t start = wait_now_ms();

        fault_watch(grant, &loss);
        /* Begins right before the first renewal is due and ends before the deadline. */
        fault_do(s, "CLIENT PAUSE %lld WRITE", (long long)lease);
        assert_result(snib_grant_renew(grant, NULL), 1);
        assert_true(wait_now_ms() - start >= lease / 2);
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F53_pause_longer_than_the_lease_is_told_in_time(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t lease = fault_lease_ms();
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", lease);
        int64_t start = wait_now_ms();
        snib_grant *grant = fault_acquire(lock, 0);
        int64_t acquired = wait_now_ms();
        struct fault_loss loss;

        fault_watch(grant, &loss);
        fault_do(s, "CLIENT PAUSE %lld ALL", (long long)lease * 2);
        (void)fault_lost(grant, &loss, lease * 2);
        /* With the lease, which began after `start`, or with a renewal before the pause: not when
         * the server answers again.
         */
        assert_true(atomic_load(&loss.at_ms) < acquired + lease + fault_late_ms());
        assert_true(atomic_load(&loss.at_ms) >= start + lease / 2);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        assert_true(fault_passes(lock, lease * 3) > 0);
        assert_true(eventually(!fault_key(s, "stock"), lease * 3));
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F8_a_hold_born_dead_is_not_returned(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t lease = fault_lease_ms() / 2;
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", lease);
        struct snib_lock_options fixed = {
            .size = sizeof(struct snib_lock_options), .owner = "b", .lease_ms = lease, .fixed_lease = 1};
        snib_lock *brief = fault_lock_with(c, "brief", &fixed);
        snib_grant *grant = NULL;

        (void)fault_passes(lock, 0);
        fault_do(s, "CLIENT PAUSE %lld ALL", (long long)lease * 2);
        int r = snib_lock_try(brief, &grant, NULL); /* one try: it cannot be held any more when its answer comes */
        assert_true(r < 0);
        assert_null(grant);
        assert_true(eventually(!fault_key(s, "brief"), lease * 3));

        fault_do(s, "CLIENT PAUSE %lld ALL", (long long)lease * 2);
        grant = fault_acquire(lock, 5000); /* asks again, and holds for what its lease says */
        assert_true(snib_grant_left_ms(grant) > 0);
        assert_true(fault_key(s, "stock"));
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_false(fault_key(s, "stock"));
        snib_lock_free(brief);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F27_a_frozen_server_has_a_time_limit(void **state)
{
        struct redis_server *s = fault_server_tcp(NULL);
        struct snib_options o = {.size = sizeof(struct snib_options), .timeout_ms = 300};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *c = fault_open(redis_server_url(s), 300);
        snib_lock *lock = fault_lock(c, "stock", "a", 20000);
        snib_client *none = NULL;
        snib_grant *grant = NULL;
        int64_t start;

        (void)fault_passes(lock, 0);
        redis_server_pause(s);
        start = wait_now_ms();
        int r = snib_lock_try(lock, &grant, &err);
        assert_true(r == SNIB_EUNKNOWN || r == SNIB_EUNREACHABLE);
        assert_true(err.text[0]);
        assert_true(wait_now_ms() - start < 2000 * wait_slow());

        start = wait_now_ms();
        r = snib_open(&none, redis_server_url(s), &o, &err); /* the kernel connects, nobody answers */
        assert_true(r == SNIB_EUNREACHABLE || r == SNIB_ENOTREADY || r == SNIB_EUNKNOWN);
        assert_null(none);
        assert_true(wait_now_ms() - start < 2000 * wait_slow());

        start = wait_now_ms();
        r = snib_lock_acquire(lock, 500, &grant, &err);
        assert_true(r < 0);
        assert_true(wait_now_ms() - start < 2500 * wait_slow());
        redis_server_resume(s);
        assert_true(fault_passes(lock, 5000) > 0);
        /* What the frozen server found in its buffers has been taken back, long before its lease of
         * 20 s. */
        assert_true(eventually(!fault_key(s, "stock"), 5000));
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F54_a_killed_command_connection_keeps_its_holds(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t lease = 4000 * wait_slow();
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", lease);
        snib_grant *grant = fault_acquire(lock, 0);
        struct fault_loss loss;

        fault_watch(grant, &loss);
        for (int i = 0; i < 4; i++) { /* each costs a longer pause before it dials, up to 400 ms here */
                assert_true(fault_kill(s, "normal") >= 1);
                assert_true(eventually(snib_grant_renew(grant, NULL) == 1, 2000));
                assert_true(fault_pttl(s, "stock") > lease * 9 / 10);
        }
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_false(fault_key(s, "stock"));
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F29_a_killed_subscription_is_made_again(void **state)
{
        struct fault_pair pair = fault_pair("stock", 20000);

        for (int i = 0; i < 5; i++) {
                snib_grant *grant = fault_acquire(pair.lock, 0);
                struct fault_waiter w;

                fault_wait(&w, pair.other, SNIB_FOREVER);
                assert_true(eventually(fault_subscribers(pair.server, "stock") == 1, 5000));
                assert_true(fault_kill(pair.server, "pubsub") == 1);
                assert_true(eventually(fault_subscribers(pair.server, "stock") == 1, 5000));
                int64_t start = wait_now_ms();
                assert_result(snib_grant_release(grant, NULL), 1);
                assert_result(fault_join(&w), 1);
                assert_true(w.got_ms - start < 800); /* by the message; the safety net is a second wide */
                assert_result(snib_grant_release(w.grant, NULL), 1);
        }
        fault_pair_done(&pair);
}

static void F29_a_release_while_nobody_listened_is_found(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t longest = 0;

        for (int i = 0; i < 5; i++) {
                snib_client *a = fault_open(redis_server_url(s), 0); /* with a fresh back-off */
                snib_lock *lock = fault_lock(a, "stock", "a", 20000);
                struct fault_waiter w;

                fault_do(s, "HSET stock b2a3c0de-1111-4222-8333-444455556666:1 1");
                fault_wait(&w, lock, SNIB_FOREVER);
                assert_true(eventually(fault_subscribers(s, "stock") == 1, 5000));
                int64_t start = wait_now_ms();
                /* In one step: no message can be heard, no poll can come between. */
                fault_do(s, "MULTI");
                fault_do(s, "CLIENT KILL TYPE pubsub");
                fault_do(s, "DEL stock");
                fault_do(s, "EXEC");
                assert_result(fault_join(&w), 1);
                longest = w.got_ms - start > longest ? w.got_ms - start : longest;
                assert_result(snib_grant_release(w.grant, NULL), 1);
                snib_lock_free(lock);
                snib_close(a);
        }
        /* Each took the reconnection and one question; by luck with the one-second poll all five
         * cannot be this short.
         */
        assert_true(longest < 500 * wait_slow());
        redis_server_free(s);
}

static void F54_maxclients_is_said_and_waited_out(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 20000);
        struct snib_options o = {.size = sizeof(struct snib_options), .timeout_ms = 500};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *none = NULL;
        snib_grant *grant = fault_acquire(lock, 0);
        long long connected = fault_info(s, "connected_clients");

        assert_true(connected >= 2);
        fault_do(s, "CONFIG SET maxclients %lld", connected);
        int r = snib_open(&none, redis_server_url(s), &o, &err);
        assert_int_equal(snib_error_class(r), SNIB_CLASS_UNAVAILABLE);
        if (!strstr(err.text, "max number of clients"))
                fail_msg("the text does not say it: %s", err.text);
        assert_result(snib_grant_renew(grant, NULL), 1);
        assert_result(snib_grant_release(grant, NULL), 1);
        fault_do(s, "CONFIG SET maxclients 1000");
        none = fault_open(redis_server_url(s), 0);
        snib_close(none);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F24_idle_connections_may_be_cut(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);

        for (int i = 0; i < 10; i++) {
                (void)fault_passes(lock, 2000);
                assert_true(fault_kill(s, "normal") >= 1);
        }
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* Two holds that must outlive a server which is loading its data; a waiter who must not be told an
 * error for it. */
static void F47_loading_is_waited_out(void **state)
{
        static const char *const slow[] = {"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024",
                                           NULL};
        struct redis_server *s = fault_server(slow);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 15000);
        snib_lock *other = fault_lock(c, "free", "b", 15000);
        snib_grant *grant = fault_acquire(lock, 0);
        struct fault_loss loss;
        struct fault_waiter w;

        fault_watch(grant, &loss);
        for (int i = 0; i < 40; i++)
                fault_do(s, "EVAL %s 0 %d", "for i = 1, 50 do redis.call('SET', ARGV[1] .. ':' .. i, i) end", i);
        fault_do(s, "SAVE");
        redis_server_kill(s);
        fault_wait(&w, other, SNIB_FOREVER);
        redis_server_restart(s); /* answers -LOADING for a second */
        assert_result(fault_join(&w), 1);
        assert_true(eventually(snib_grant_renew(grant, NULL) == 1, 5000));
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_true(fault_calls(s, "ping") > 1);
        assert_result(snib_grant_release(w.grant, NULL), 1);
        assert_result(snib_grant_release(grant, NULL), 1);
        snib_lock_free(other);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F38_kill9_without_persistence_is_a_loss),
            cmocka_unit_test(F38_kill9_without_persistence_fenced_tokens_rise),
            cmocka_unit_test(F38_kill9_tells_waiters_and_lets_them_in),
            cmocka_unit_test(F39_kill9_with_a_log_keeps_the_hold),
            cmocka_unit_test(F39_power_loss_of_the_last_second_is_a_loss),
            cmocka_unit_test(F51_script_flush_is_not_noticed),
            cmocka_unit_test(F53_pause_shorter_than_the_lease_loses_nothing),
            cmocka_unit_test(F53_pause_longer_than_the_lease_is_told_in_time),
            cmocka_unit_test(F8_a_hold_born_dead_is_not_returned),
            cmocka_unit_test(F27_a_frozen_server_has_a_time_limit),
            cmocka_unit_test(F54_a_killed_command_connection_keeps_its_holds),
            cmocka_unit_test(F54_maxclients_is_said_and_waited_out),
            cmocka_unit_test(F29_a_killed_subscription_is_made_again),
            cmocka_unit_test(F29_a_release_while_nobody_listened_is_found),
            cmocka_unit_test(F24_idle_connections_may_be_cut),
            cmocka_unit_test(F47_loading_is_waited_out),
        };

        return fault_run_all("server", tests);
}
