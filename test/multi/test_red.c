/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A majority of five real servers: which die, freeze, forget and answer late.
 */

#include "multi.h"
#include "proxy.h"
#include <stdio.h>
#include <string.h>

#define NODES 5
#define NAME "red"

/* One who wants the lock: a client and a lock at each server. */
struct party {
        snib_client *client[NODES];
        snib_lock *lock[NODES];
        snib_multilock *multilock;
};

static struct redis_server *servers[NODES];

static void party_open_at(struct party *p, const char *const *urls, const char *owner, int64_t lease_ms,
                          int64_t node_timeout_ms)
{
        for (int i = 0; i < NODES; i++) {
                p->client[i] = fault_open(urls[i], 0);
                p->lock[i] = fault_lock(p->client[i], NAME, owner, lease_ms);
        }
        p->multilock = multi_red(p->lock, NODES, node_timeout_ms);
}

static void party_open_patiently(struct party *p, const char *owner, int64_t lease_ms, int64_t node_timeout_ms)
{
        const char *urls[NODES];

        for (int i = 0; i < NODES; i++)
                urls[i] = redis_server_url(servers[i]);
        party_open_at(p, urls, owner, lease_ms, node_timeout_ms);
}

static void party_open(struct party *p, const char *owner, int64_t lease_ms)
{
        party_open_patiently(p, owner, lease_ms, 0);
}

static void party_close(struct party *p)
{
        snib_multilock_free(p->multilock);
        for (int i = 0; i < NODES; i++) {
                snib_lock_free(p->lock[i]);
                snib_close(p->client[i]);
        }
}

static void two_open(struct party *we, struct party *they, int64_t lease_ms)
{
        party_open(we, "we", lease_ms);
        party_open(they, "they", lease_ms);
}

static void two_close(struct party *we, struct party *they)
{
        party_close(they);
        party_close(we);
}

static int set_up(void **state)
{
        for (int i = 0; i < NODES; i++)
                servers[i] = fault_server(NULL);
        return 0;
}

static int tear_down(void **state)
{
        for (int i = 0; i < NODES; i++)
                redis_server_free(servers[i]);
        return 0;
}

static int held_at(struct party *p, int from)
{
        int n = 0;

        for (int i = from; i < NODES; i++)
                n += snib_lock_grant(p->lock[i]) != NULL;
        return n;
}

/* The lock's key on the servers from this one on. */
static int keys(int from)
{
        int n = 0;

        for (int i = from; i < NODES; i++)
                n += fault_key(servers[i], NAME);
        return n;
}

static void a_majority_is_held_and_the_rest_comes_in_time(void **state)
{
        struct party we, they;
        snib_multigrant *grant, *theirs;
        int64_t token, largest = 0, lease;

        two_open(&we, &they, 0);
        lease = fault_lease_ms();
        grant = multi_acquire(we.multilock, 0);
        assert_true(snib_multigrant_left_ms(grant) <= lease - lease / 100 - 2);
        token = snib_multigrant_token(grant);
        assert_true(eventually(keys(0) == NODES, 5000));
        assert_true(eventually(snib_multigrant_member(grant, 0) && snib_multigrant_member(grant, 1) &&
                                   snib_multigrant_member(grant, 2) && snib_multigrant_member(grant, 3) &&
                                   snib_multigrant_member(grant, 4),
                               5000));
        for (size_t i = 0; i < NODES; i++) {
                int64_t t = snib_grant_token(snib_multigrant_member(grant, i));

                largest = t > largest ? t : largest;
        }
        assert_true(token > 0 && token <= largest);
        (void)multi_refused(they.multilock, 0, 0);
        assert_int_equal(held_at(&they, 0), 0);
        multi_release(grant, 1);
        assert_true(eventually(keys(0) == 0, 5000));
        /* These servers have one clock. */
        theirs = multi_acquire(they.multilock, 0);
        assert_true(snib_multigrant_token(theirs) > token);
        multi_release(theirs, 1);
        two_close(&we, &they);
}

static void it_is_renewed_while_held(void **state)
{
        struct party we, they;
        snib_multigrant *grant;

        two_open(&we, &they, 0);
        grant = multi_acquire(we.multilock, 0);
        (void)multi_refused(they.multilock, 2 * fault_lease_ms(), 0);
        assert_true(snib_multigrant_valid(grant));
        multi_release(grant, 1);
        two_close(&we, &they);
}

static void a_waiter_gets_it_after_the_release(void **state)
{
        struct party we, they;
        snib_multigrant *grant;
        struct multi_waiter w;

        two_open(&we, &they, 20000);
        grant = multi_acquire(we.multilock, 0);
        multi_wait(&w, they.multilock, SNIB_FOREVER);
        assert_false(wait_readable(snib_multigrant_loss_fd(grant), 100));
        assert_false(atomic_load(&w.done));
        multi_release(grant, 1);
        assert_result(multi_join(&w), 1);
        multi_release(w.grant, 1);
        multi_wait(&w, they.multilock, SNIB_FOREVER);
        assert_result(multi_join(&w), 1);
        multi_release(w.grant, 1);
        two_close(&we, &they);
}

/* How many wait at the server, as clients of snib do. */
static long long queued(struct redis_server *s)
{
        redisReply *r = redis_server_do(s, "LLEN snib_queue:{" NAME "}");
        long long n = r && r->type == REDIS_REPLY_INTEGER ? r->integer : -1;

        freeReplyObject(r);
        return n;
}

static bool queued_at_all(long long n)
{
        for (int i = 0; i < NODES; i++)
                if (queued(servers[i]) != n)
                        return false;
        return true;
}

/* Every server hands it on where it is released, and nobody asks in between. */
static void a_waiter_stands_in_every_queue_and_is_handed_the_lock(void **state)
{
        struct party we, they;
        snib_multigrant *grant;
        struct multi_waiter w;

        two_open(&we, &they, 20000);
        grant = multi_acquire(we.multilock, 0);
        assert_true(eventually(keys(0) == NODES, 5000));
        multi_wait(&w, they.multilock, SNIB_FOREVER);
        assert_true(eventually(queued_at_all(1), 10000));
        assert_false(atomic_load(&w.done));
        multi_release(grant, 1);
        assert_result(multi_join(&w), 1);
        assert_true(eventually(held_at(&they, 0) == NODES, 5000));
        assert_true(queued_at_all(0));
        for (int i = 0; i < NODES; i++) /* where a release leaves nobody waiting nobody is told of a free lock */
                assert_true(fault_key(servers[i], NAME));
        multi_release(w.grant, 1);
        two_close(&we, &they);
}

/* Others have a majority, one by one, and for long. What is left over is not kept from who wants no
 * more. */
static void a_waiter_gives_a_minority_back(void **state)
{
        struct party we, they, third;
        snib_grant *busy[3];
        struct multi_waiter w;

        two_open(&we, &they, 20000);
        party_open(&third, "third", 20000);
        for (int i = 0; i < 3; i++)
                busy[i] = fault_acquire(we.lock[i], 0);
        multi_wait(&w, they.multilock, SNIB_FOREVER);
        assert_true(eventually(queued(servers[0]) == 1, 10000));
        for (int i = 3; i < NODES; i++)
                assert_true(fault_passes(third.lock[i], 10000) > 0);
        assert_false(atomic_load(&w.done));
        for (int i = 0; i < 3; i++)
                assert_result(snib_grant_release(busy[i], NULL), 1);
        assert_result(multi_join(&w), 1);
        multi_release(w.grant, 1);
        party_close(&third);
        two_close(&we, &they);
}

/* A waiter that was cancelled, or whose time was up, stands in no queue. */
static void a_waiter_that_leaves_stands_in_no_queue(void **state)
{
        struct party we, they;
        snib_multigrant *grant;
        struct multi_waiter w;

        two_open(&we, &they, 20000);
        grant = multi_acquire(we.multilock, 0);
        assert_true(eventually(keys(0) == NODES, 5000));
        multi_wait(&w, they.multilock, SNIB_FOREVER);
        assert_true(eventually(queued_at_all(1), 10000));
        assert_int_equal(snib_multilock_cancel(they.multilock), 1);
        assert_result(multi_join(&w), SNIB_ECANCELLED);
        assert_true(eventually(queued_at_all(0), 10000));
        (void)multi_refused(they.multilock, 50, 0);
        assert_true(eventually(queued_at_all(0), 10000));
        multi_release(grant, 1);
        assert_true(eventually(keys(0) == 0, 5000));
        two_close(&we, &they);
}

static void F68_one_and_two_dead_servers_do_not_matter(void **state)
{
        struct party we;

        party_open(&we, "we", 0);
        for (int dead = 0; dead < 2; dead++) {
                redis_server_kill(servers[dead]);
                for (int i = 0; i < 20; i++)
                        multi_release(multi_acquire(we.multilock, 0), 1);
        }
        assert_true(eventually(keys(2) == 0, 5000));
        party_close(&we);
}

static void F67_three_dead_servers_are_no_majority_of_five(void **state)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant = NULL;
        struct party we;
        int64_t took;

        party_open(&we, "we", 20000);
        for (int i = 0; i < 3; i++)
                redis_server_kill(servers[i]);
        took = multi_refused(we.multilock, 500, SNIB_EUNREACHABLE);
        assert_true(took >= 499);
        assert_true(snib_multilock_try(we.multilock, &grant, &err) < 0);
        assert_non_null(strstr(err.text, "member 1 of 5, \"" NAME "\": "));
        /* Long before its lease would have ended. */
        assert_true(eventually(keys(3) == 0, 5000));
        /* One comes back: with a majority there again, it is had again. */
        redis_server_restart(servers[2]);
        multi_release(multi_acquire(we.multilock, 10000), 1);
        party_close(&we);
}

static void F68_a_frozen_server_does_not_delay_a_success(void **state)
{
        struct party we;
        int64_t begun;
        long long before;

        party_open_patiently(&we, "we", 20000, 5000);
        multi_release(multi_acquire(we.multilock, 0), 1);
        assert_true(eventually(keys(0) == 0, 5000));
        before = fault_calls(servers[4], "evalsha");
        redis_server_pause(servers[4]);
        begun = wait_now_ms();
        for (int i = 0; i < 10; i++)
                multi_release(multi_acquire(we.multilock, 0), 1);
        assert_true(wait_now_ms() - begun < 5000); /* one time-out of a node would be as long */
        redis_server_resume(servers[4]);
        /* F69: what it was asked while it was frozen it executes now, and nothing of it stays. */
        assert_true(eventually(fault_calls(servers[4], "evalsha") > before, 5000));
        assert_true(eventually(keys(0) == 0, 5000));
        party_close(&we);
}

static void F69_three_frozen_servers_delay_a_failure_by_a_node_time_out_and_keep_nothing(void **state)
{
        struct party we, they;
        int64_t took;

        two_open(&we, &they, 20000);
        for (int i = 0; i < 3; i++)
                redis_server_pause(servers[i]);
        took = multi_refused(we.multilock, 0, SNIB_EUNKNOWN);
        assert_true(took >= 199);
        assert_true(took < 2900); /* the client's own time-out is 3 s */
        assert_true(eventually(keys(3) == 0, 5000));
        for (int i = 0; i < 3; i++)
                redis_server_resume(servers[i]);
        /* The others, which were cancelled by their ids, are given back as well: nobody is in the
         * next one's way. */
        multi_release(multi_acquire(they.multilock, 10000), 1);
        assert_true(eventually(keys(0) == 0, 10000));
        two_close(&we, &they);
}

static void F73_a_round_that_cannot_succeed_is_cancelled_at_once(void **state)
{
        struct party we, they;
        snib_grant *busy[3];
        int64_t took;

        party_open_patiently(&we, "we", 20000, 5000);
        party_open(&they, "they", 20000);
        for (int i = 0; i < 3; i++)
                busy[i] = fault_acquire(they.lock[i], 0);
        redis_server_pause(servers[3]);
        took = multi_refused(we.multilock, 0, 0); /* three say no: it does not matter what the fourth would say */
        assert_true(took < 4000);
        redis_server_resume(servers[3]);
        assert_true(eventually(keys(3) == 0, 5000));
        assert_int_equal(held_at(&we, 0), 0);
        for (int i = 0; i < 3; i++)
                assert_result(snib_grant_release(busy[i], NULL), 1);
        multi_release(multi_acquire(we.multilock, 5000), 1);
        two_close(&we, &they);
}

static void F70_a_server_that_restarts_empty_does_not_end_or_share_the_hold(void **state)
{
        struct party we, they;
        snib_multigrant *grant;
        struct multi_loss loss;

        two_open(&we, &they, 20000);
        grant = multi_acquire(we.multilock, 0);
        assert_true(eventually(keys(0) == NODES, 5000));
        multi_watch(grant, &loss);
        redis_server_restart(servers[0]);
        redis_server_restart(servers[1]);
        /* Theirs for the asking, but two are no majority. */
        assert_true(eventually(snib_grant_loss(snib_multigrant_member(grant, 0)) == SNIB_LOSS_GONE &&
                                   snib_grant_loss(snib_multigrant_member(grant, 1)) == SNIB_LOSS_GONE,
                               10000));
        (void)multi_refused(they.multilock, 300, 0);
        assert_true(snib_multigrant_valid(grant));
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_false(fault_key(servers[0], NAME)); /* not taken again by us either */
        /* A third: now it is lost, and told once. */
        redis_server_restart(servers[2]);
        assert_int_equal(multi_lost(grant, &loss, 10000), SNIB_LOSS_GONE);
        multi_release(grant, SNIB_ELOST);
        assert_int_equal(atomic_load(&loss.calls), 1);
        multi_release(multi_acquire(they.multilock, 5000), 1);
        two_close(&we, &they);
}

static void F71_votes_that_come_too_late_are_none(void **state)
{
        struct proxy *proxies[NODES];
        const char *urls[NODES];
        struct party we;
        int64_t lease = fault_lease_ms();
        snib_multigrant *grant;

        for (int i = 0; i < NODES; i++) {
                proxies[i] = proxy_start(redis_server_socket(servers[i]));
                urls[i] = proxy_unix_url(proxies[i]);
        }
        party_open_at(&we, urls, "we", 0, 10000);
        for (int i = 0; i < NODES; i++)
                proxy_delay(proxies[i], PROXY_ALL, PROXY_DOWN, (int)(lease / 2));
        /* Half a lease is gone when the votes are in. */
        grant = multi_acquire(we.multilock, 0);
        assert_true(snib_multigrant_left_ms(grant) <= lease / 2);
        multi_release(grant, 1);
        assert_true(eventually(keys(0) == 0, 10000));
        for (int i = 0; i < 3; i++)
                proxy_delay(proxies[i], PROXY_ALL, PROXY_DOWN, (int)lease);
        assert_true(multi_refused(we.multilock, 0, SNIB_ENOTREADY) >= lease - 1);
        assert_true(eventually(keys(0) == 0, 10000));
        for (int i = 0; i < NODES; i++)
                proxy_heal(proxies[i]);
        multi_release(multi_acquire(we.multilock, 10000), 1);
        party_close(&we);
        for (int i = 0; i < NODES; i++)
                proxy_free(proxies[i]);
}

static void F72_renewed_at_a_minority_is_lost(void **state)
{
        struct party we;
        snib_multigrant *grant;
        struct multi_loss loss;

        party_open(&we, "we", 0);
        grant = multi_acquire(we.multilock, 0);
        assert_true(eventually(keys(0) == NODES, 5000));
        multi_watch(grant, &loss);
        redis_server_kill(servers[0]);
        redis_server_kill(servers[1]);
        /* Three renew: that is enough, for as long as one likes. */
        assert_false(wait_readable(snib_multigrant_loss_fd(grant), 3 * fault_lease_ms()));
        assert_true(snib_multigrant_valid(grant));
        redis_server_kill(servers[2]);
        assert_int_equal(multi_lost(grant, &loss, 5 * fault_lease_ms()), SNIB_LOSS_UNREACHABLE);
        multi_release(grant, SNIB_ELOST);
        assert_true(eventually(keys(3) == 0, 5000));
        party_close(&we);
}

static void a_release_does_not_wait_for_a_frozen_minority(void **state)
{
        struct party we, they;
        snib_multigrant *grant;
        int64_t begun;

        party_open_patiently(&we, "we", 20000, 5000);
        party_open(&they, "they", 20000);
        grant = multi_acquire(we.multilock, 0);
        assert_true(eventually(keys(0) == NODES, 5000));
        redis_server_pause(servers[0]);
        redis_server_pause(servers[1]);
        begun = wait_now_ms();
        multi_release(grant, 1);
        assert_true(wait_now_ms() - begun < 4000);
        multi_release(multi_acquire(they.multilock, 5000), 1);
        redis_server_resume(servers[0]);
        redis_server_resume(servers[1]);
        assert_true(eventually(keys(0) == 0, 10000));
        two_close(&we, &they);
}

/* One pair of each of so many owners. */
static void pairs_of_owners(struct party *p, int from, int to)
{
        for (int k = from; k < to; k++) {
                snib_lock *locks[NODES];
                snib_multilock *m;
                char owner[16];

                snprintf(owner, sizeof(owner), "owner %d", k);
                for (int i = 0; i < NODES; i++)
                        locks[i] = fault_lock(p->client[i], NAME, owner, 20000);
                m = multi_red(locks, NODES, 0);
                multi_release(multi_acquire(m, 0), 1);
                snib_multilock_free(m);
                for (int i = 0; i < NODES; i++)
                        snib_lock_free(locks[i]);
        }
}

static void a_frozen_server_does_not_gather_requests(void **state)
{
        struct party we;
        int64_t until;
        long long before;

        party_open(&we, "we", 20000);
        multi_release(multi_acquire(we.multilock, 0), 1);
        assert_true(eventually(keys(0) == 0, 5000));
        before = fault_calls(servers[4], "evalsha");
        redis_server_pause(servers[4]);
        until = wait_now_ms() + 300 * wait_slow();
        pairs_of_owners(&we, 0, 40);
        while (wait_now_ms() < until)
                wait_moment();
        /* After a node time-out of silence it is not asked any more. */
        pairs_of_owners(&we, 40, 140);
        redis_server_resume(servers[4]);
        assert_true(eventually(fault_calls(servers[4], "evalsha") - before >= 40, 10000));
        assert_true(eventually(!fault_key(servers[4], NAME), 10000));
        assert_true(fault_calls(servers[4], "evalsha") - before <
                    220); /* two of each of 40, and repetitions; not of 140 */
        /* And it is again when it answers. */
        snib_multigrant *grant = multi_acquire(we.multilock, 1000);
        assert_true(eventually(snib_multigrant_member(grant, 4) != NULL, 5000));
        multi_release(grant, 1);
        party_close(&we);
}

static void force_release_reaches_all_that_live(void **state)
{
        struct party we, they;
        snib_multigrant *grant;
        struct multi_loss loss;
        struct snib_error err = SNIB_ERROR_INIT;

        two_open(&we, &they, 20000);
        assert_int_equal(snib_multilock_force_release(they.multilock, &err), 0);
        grant = multi_acquire(we.multilock, 0);
        multi_watch(grant, &loss);
        redis_server_kill(servers[0]);
        assert_int_equal(snib_multilock_force_release(they.multilock, &err), 1);
        (void)multi_lost(grant, &loss, 10000);
        multi_release(grant, SNIB_ELOST);
        redis_server_kill(servers[1]);
        redis_server_kill(servers[2]);
        assert_true(snib_multilock_force_release(they.multilock, &err) < 0);
        assert_non_null(strstr(err.text, "member 1 of 5: "));
        two_close(&we, &they);
}

static void a_majority_that_refuses_is_an_error_at_once(void **state)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant = NULL;
        struct party we;

        party_open(&we, "we", 20000);
        fault_do(servers[1], "SET " NAME " text");
        fault_do(servers[2], "SET " NAME " text");
        multi_release(multi_acquire(we.multilock, 0), 1);
        fault_do(servers[4], "SET " NAME " text");
        assert_result(snib_multilock_acquire(we.multilock, SNIB_FOREVER, &grant, &err), SNIB_EKIND);
        assert_non_null(strstr(err.text, "member 2 of 5, \"" NAME "\": "));
        assert_true(eventually(!fault_key(servers[0], NAME) && !fault_key(servers[3], NAME), 5000));
        party_close(&we);
}

static void members_must_be_one_lock_on_several_servers(void **state)
{
        struct snib_multilock_options o = {.size = sizeof(struct snib_multilock_options), .red = 1};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *c[3] = {fault_open("mem:one", 0), fault_open("mem:two", 0), fault_open("mem:three", 0)};
        snib_client *again = fault_open("mem:one?timeout=1s", 0);
        snib_lock *lock[3], *twice = fault_lock(again, NAME, "we", 0), *other = fault_lock(c[2], "blue", "we", 0);
        snib_multilock *m = NULL;

        for (int i = 0; i < 3; i++)
                lock[i] = fault_lock(c[i], NAME, "we", 0);
        assert_result(snib_multilock_new(lock, 2, &o, &m, &err), SNIB_EINVAL);
        assert_result(snib_multilock_new((snib_lock *[]){lock[0], lock[1], other}, 3, &o, &m, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "different names"));
        assert_result(snib_multilock_new((snib_lock *[]){lock[0], lock[1], twice}, 3, &o, &m, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "members 1 and 3 are on one server"));
        assert_null(m);
        m = multi_red(lock, 3, 0);
        multi_release(multi_acquire(m, 0), 1);
        snib_multilock_free(m);
        for (int i = 0; i < 3; i++) {
                snib_lock_free(lock[i]);
                snib_close(c[i]);
        }
        snib_lock_free(twice);
        snib_lock_free(other);
        snib_close(again);
}

#define with_servers(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(members_must_be_one_lock_on_several_servers),
            with_servers(a_majority_is_held_and_the_rest_comes_in_time),
            with_servers(it_is_renewed_while_held),
            with_servers(a_waiter_gets_it_after_the_release),
            with_servers(a_waiter_stands_in_every_queue_and_is_handed_the_lock),
            with_servers(a_waiter_gives_a_minority_back),
            with_servers(a_waiter_that_leaves_stands_in_no_queue),
            with_servers(F67_three_dead_servers_are_no_majority_of_five),
            with_servers(F68_one_and_two_dead_servers_do_not_matter),
            with_servers(F68_a_frozen_server_does_not_delay_a_success),
            with_servers(F69_three_frozen_servers_delay_a_failure_by_a_node_time_out_and_keep_nothing),
            with_servers(F70_a_server_that_restarts_empty_does_not_end_or_share_the_hold),
            with_servers(F71_votes_that_come_too_late_are_none),
            with_servers(F72_renewed_at_a_minority_is_lost),
            with_servers(F73_a_round_that_cannot_succeed_is_cancelled_at_once),
            with_servers(a_release_does_not_wait_for_a_frozen_minority),
            with_servers(a_frozen_server_does_not_gather_requests),
            with_servers(force_release_reaches_all_that_live),
            with_servers(a_majority_that_refuses_is_an_error_at_once),
        };

        return fault_run("red", tests, sizeof(tests) / sizeof(tests[0]), sizeof(tests) / sizeof(tests[0]) - 1);
}
