/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A real server behind a proxy that cuts, splits, garbles, delays, swallows and refuses.
 *
 * The cuts go through every byte: for each number n, a connection is cut after n bytes of requests,
 * or of replies, of one cycle of acquire, renew, release. After each cut whatever was answered must
 * be true, and a second client must get in.
 */

#include "fault.h"
#include "proxy.h"
#include <stdio.h>
#include <string.h>

struct scene {
        struct redis_server *server;
        struct proxy *proxy;
        snib_client *client; /* behind the proxy */
        snib_lock *lock;
        snib_client *direct;
        snib_lock *other;
};

static void scene_begin(struct scene *s, int64_t timeout_ms, int64_t lease_ms)
{
        *s = (struct scene){.server = fault_server(NULL)};
        s->proxy = proxy_start(redis_server_socket(s->server));
        s->client = fault_open(proxy_url(s->proxy), timeout_ms);
        s->direct = fault_open(redis_server_url(s->server), 0);
        s->lock = fault_lock(s->client, "stock", "a", lease_ms);
        s->other = fault_lock(s->direct, "stock", "b", lease_ms);
        (void)fault_passes(s->lock, 0); /* the scripts are loaded */
}

static void scene_end(struct scene *s)
{
        proxy_heal(s->proxy);
        snib_lock_free(s->lock);
        snib_lock_free(s->other);
        snib_close(s->client);
        snib_close(s->direct);
        proxy_free(s->proxy);
        redis_server_free(s->server);
}

/* A rule for the connections that are open now, not for those that come. */
static void present(struct proxy *p, void (*rule)(struct proxy *, int))
{
        int n = proxy_accepted(p);

        for (int i = 0; i < n; i++)
                if (proxy_is_open(p, i))
                        rule(p, i);
}

static int open_now(struct proxy *p)
{
        int n = proxy_accepted(p);
        int open = 0;

        for (int i = 0; i < n; i++)
                open += proxy_is_open(p, i);
        return open;
}

static void must_be_a_failed_link(int r, const char *what)
{
        int class = snib_error_class(r);

        if (class != SNIB_CLASS_UNKNOWN && class != SNIB_CLASS_UNAVAILABLE && class != SNIB_CLASS_CORRUPT)
                fail_msg("%s answered %d %s", what, r, snib_error_name(r));
}

/* The server must say what the client believes. */
static void must_be_true(struct scene *s, snib_grant *grant)
{
        redisReply *r = redis_server_do(s->server, "HEXISTS stock %s", snib_grant_owner(grant));

        assert_non_null(r);
        if (snib_grant_valid(grant))
                assert_int_equal(r->integer, 1);
        freeReplyObject(r);
}

struct cut {
        enum proxy_way way;
        enum proxy_event event;
        uint64_t at;
        bool wait; /* acquire waits: then the cut must not show */
};

static void set_rule(struct scene *s, const struct cut *cut)
{
        for (int i = 0; i < proxy_accepted(s->proxy); i++)
                if (proxy_is_open(s->proxy, i))
                        proxy_after(s->proxy, i, cut->way, cut->at, cut->event);
}

static void cycle_one_try(struct scene *s)
{
        snib_grant *grant = NULL;
        int r = snib_lock_try(s->lock, &grant, NULL);

        if (r != 1) {
                must_be_a_failed_link(r, "try");
                assert_null(grant);
                if (snib_error_class(r) == SNIB_CLASS_UNAVAILABLE)
                        assert_false(fault_key(s->server, "stock")); /* "certainly not executed" */
                return;
        }
        must_be_true(s, grant);
        r = snib_grant_renew(grant, NULL);
        if (r != 1)
                must_be_a_failed_link(r, "renew");
        must_be_true(s, grant);
        r = snib_grant_release(grant, NULL);
        if (r != 1)
                must_be_a_failed_link(r, "release");
        else
                assert_false(fault_key(s->server, "stock"));
}

static void cycle_waiting(struct scene *s)
{
        snib_grant *grant = fault_acquire(s->lock, 5000);
        int r;

        must_be_true(s, grant);
        r = snib_grant_renew(grant, NULL);
        if (r != 1)
                must_be_a_failed_link(r, "renew");
        must_be_true(s, grant);
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_false(fault_key(s->server, "stock"));
}

/* A client of its own for each cut: its first reconnection comes soon. It has used every script
 * before. */
static void fresh_client(struct scene *s)
{
        snib_lock_free(s->lock);
        snib_close(s->client);
        s->client = fault_open(proxy_url(s->proxy), 300 * wait_slow());
        s->lock = fault_lock(s->client, "stock", "a", 0);
        cycle_waiting(s);
}

/* One cut and its aftermath. False: nothing was cut, the cycle has no byte with that number. */
static bool cut_once(struct scene *s, const struct cut *cut)
{
        int64_t lease = fault_lease_ms();
        int before = proxy_accepted(s->proxy);
        int open;
        bool fired;

        fresh_client(s);
        open = open_now(s->proxy);
        set_rule(s, cut);
        if (cut->wait)
                cycle_waiting(s);
        else
                cycle_one_try(s);
        fired = open_now(s->proxy) < open || proxy_accepted(s->proxy) > before + 1;
        set_rule(s, &(struct cut){.way = cut->way, .event = 0});
        int64_t start = wait_now_ms();
        (void)fault_passes(s->other, lease * 2);
        assert_true(wait_now_ms() - start <= lease + fault_late_ms());
        assert_true(eventually(!fault_key(s->server, "stock"), lease));
        return fired;
}

static void cut_everywhere(enum proxy_way way, bool wait)
{
        struct scene s;
        struct cut cut = {.way = way, .event = PROXY_CUT, .wait = wait};
        uint64_t before;

        scene_begin(&s, 300, 0);
        fresh_client(&s);
        before = proxy_bytes(s.proxy, PROXY_ALL, way);
        if (wait)
                cycle_waiting(&s);
        else
                cycle_one_try(&s);
        uint64_t cycle = proxy_bytes(s.proxy, PROXY_ALL, way) - before;
        assert_true(cycle > 10 && cycle < 2000);
        uint64_t stride = wait_slow() > 1 ? 13 : 1;
        uint64_t fired = 0;
        for (cut.at = 0; cut.at < cycle; cut.at += stride)
                fired += cut_once(&s, &cut);
        assert_true(fired == (cycle + stride - 1) / stride);
        scene_end(&s);
}

static void F15_F16_cut_at_every_byte_of_requests_one_try(void **state)
{
        cut_everywhere(PROXY_UP, false);
}

static void F15_F16_cut_at_every_byte_of_replies_one_try(void **state)
{
        cut_everywhere(PROXY_DOWN, false);
}

static void F15_F16_cut_at_every_byte_of_requests_waiting(void **state)
{
        cut_everywhere(PROXY_UP, true);
}

static void F15_F16_cut_at_every_byte_of_replies_waiting(void **state)
{
        cut_everywhere(PROXY_DOWN, true);
}

static void F21_replies_and_requests_split_at_every_byte(void **state)
{
        struct scene s;

        scene_begin(&s, 2000, 0);
        proxy_split(s.proxy, PROXY_ALL, PROXY_DOWN, true);
        proxy_split(s.proxy, PROXY_ALL, PROXY_UP, true);
        for (int i = 0; i < 20; i++)
                cycle_waiting(&s);
        snib_client *fresh = fault_open(proxy_url(s.proxy), 2000); /* and the handshake */
        snib_close(fresh);
        scene_end(&s);
}

static void F137_every_byte_of_the_replies_garbled(void **state)
{
        struct scene s;
        struct cut cut = {.way = PROXY_DOWN, .event = PROXY_GARBLE};
        uint64_t before;

        scene_begin(&s, 300, 0);
        fresh_client(&s);
        before = proxy_bytes(s.proxy, PROXY_ALL, PROXY_DOWN);
        cycle_one_try(&s);
        uint64_t cycle = proxy_bytes(s.proxy, PROXY_ALL, PROXY_DOWN) - before;
        for (cut.at = 0; cut.at<cycle; cut.at += wait_slow()> 1 ? 3 : 1) {
                snib_grant *grant = NULL;

                fresh_client(&s);
                set_rule(&s, &cut);
                int r = snib_lock_try(s.lock, &grant, NULL);
                assert_true(r != 0); /* the lock was free: no garbled byte makes somebody else hold it */
                if (r == 1) {
                        must_be_true(&s, grant);
                        (void)snib_grant_renew(grant, NULL);
                        must_be_true(&s, grant);
                        (void)snib_grant_release(grant, NULL);
                }
                set_rule(&s, &(struct cut){.way = PROXY_DOWN});
                (void)fault_passes(s.other, fault_lease_ms() * 2);
                assert_true(eventually(!fault_key(s.server, "stock"), fault_lease_ms()));
        }
        scene_end(&s);
}

static void drop_both(struct proxy *p, int i)
{
        proxy_drop(p, i, PROXY_UP, true);
        proxy_drop(p, i, PROXY_DOWN, true);
}

static void drop_up(struct proxy *p, int i)
{
        proxy_drop(p, i, PROXY_UP, true);
}

static void drop_down(struct proxy *p, int i)
{
        proxy_drop(p, i, PROXY_DOWN, true);
}

/* The connections die silently, new ones work: detected, replaced, nothing lost. */
static void half_open(void (*rule)(struct proxy *, int))
{
        struct scene s;
        struct fault_loss loss;
        int64_t lease = 2000 * wait_slow();

        scene_begin(&s, 300 * wait_slow(), lease);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_watch(grant, &loss);
        int before = proxy_accepted(s.proxy);
        present(s.proxy, rule);
        assert_true(eventually(proxy_accepted(s.proxy) > before, 2000));
        assert_true(eventually(fault_pttl(s.server, "stock") > lease * 9 / 10, lease));
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        scene_end(&s);
}

static void F19_half_open_both_ways_is_detected(void **state)
{
        half_open(drop_both);
}

static void F20_requests_vanish_is_detected(void **state)
{
        half_open(drop_up);
}

static void F20_replies_vanish_is_detected(void **state)
{
        half_open(drop_down);
}

static void F19_nothing_passes_is_a_loss_in_time(void **state)
{
        struct scene s;
        struct fault_loss loss;
        int64_t lease = fault_lease_ms();
        int64_t dropped;

        scene_begin(&s, 200, lease);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_watch(grant, &loss);
        dropped = wait_now_ms();
        drop_both(s.proxy, PROXY_ALL);
        snib_grant *next = fault_acquire(s.other, lease * 2);
        assert_false(snib_grant_valid(grant)); /* over before anybody else could get it */
        int reason = fault_lost(grant, &loss, 500);
        assert_true(reason == SNIB_LOSS_UNREACHABLE || reason == SNIB_LOSS_EXPIRED);
        assert_true(atomic_load(&loss.at_ms) <= dropped + lease + fault_late_ms());
        assert_true(snib_grant_token(next) > snib_grant_token(grant));
        assert_true(snib_grant_release(grant, NULL) < 0);
        assert_true(snib_grant_valid(next));
        assert_result(snib_grant_release(next, NULL), 1);
        scene_end(&s);
}

/* A waiter whose connections died silently gets in all the same. */
static void F19_a_waiter_on_dead_connections_gets_in(void **state)
{
        struct scene s;
        struct fault_waiter w;

        scene_begin(&s, 300 * wait_slow(), 20000);
        snib_grant *grant = fault_acquire(s.other, 0);
        fault_wait(&w, s.lock, SNIB_FOREVER);
        assert_true(eventually(fault_subscribers(s.server, "stock") == 1, 5000));
        present(s.proxy, drop_both);
        assert_result(snib_grant_release(grant, NULL), 1);
        int64_t start = wait_now_ms();
        assert_result(fault_join(&w), 1);
        assert_true(w.got_ms - start < 3000 * wait_slow());
        assert_result(snib_grant_release(w.grant, NULL), 1);
        scene_end(&s);
}

/* The subscription alone is dead: the safety net, and its renewal. */
static void F31_messages_that_are_lost_cost_a_second(void **state)
{
        struct scene s;
        struct fault_waiter w;

        scene_begin(&s, 1000, 20000);
        snib_grant *grant = fault_acquire(s.other, 0);
        fault_wait(&w, s.lock, SNIB_FOREVER);
        assert_true(eventually(fault_subscribers(s.server, "stock") == 1, 5000));
        fault_do(s.server, "DEL stock"); /* nobody is told */
        int64_t start = wait_now_ms();
        assert_result(fault_join(&w), 1);
        assert_true(w.got_ms - start < 1500 * wait_slow());
        (void)snib_grant_release(grant, NULL);
        assert_result(snib_grant_release(w.grant, NULL), 1);
        scene_end(&s);
}

static void F22_a_slow_link_loses_nothing(void **state)
{
        struct scene s;
        struct fault_loss loss;
        int64_t lease = 1000 * wait_slow();

        scene_begin(&s, 2000, lease);
        proxy_delay(s.proxy, PROXY_ALL, PROXY_DOWN, 140);
        proxy_delay(s.proxy, PROXY_ALL, PROXY_UP, 140);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_watch(grant, &loss);
        assert_false(eventually(atomic_load(&loss.calls) > 0 || !snib_grant_valid(grant), 2500));
        assert_result(snib_grant_release(grant, NULL), 1);
        scene_end(&s);
}

static void F85_renewal_is_tried_until_the_deadline(void **state)
{
        struct scene s;
        struct fault_loss loss;
        int64_t lease = 4000 * wait_slow();

        scene_begin(&s, 300, lease);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_watch(grant, &loss);
        proxy_refuse(s.proxy, true);
        proxy_cut(s.proxy, PROXY_ALL);
        /* Past the first renewal and several attempts to reconnect. */
        assert_true(eventually(fault_pttl(s.server, "stock") < lease * 6 / 10, lease));
        assert_true(proxy_refused(s.proxy) >= 3);
        proxy_refuse(s.proxy, false);
        assert_true(eventually(fault_pttl(s.server, "stock") > lease * 9 / 10, lease));
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        scene_end(&s);
}

static void F83_a_release_nobody_answers_ends_renewal(void **state)
{
        struct scene s;
        int64_t lease = 2000 * wait_slow();

        scene_begin(&s, 200, lease);
        snib_grant *grant = fault_acquire(s.lock, 0);
        drop_up(s.proxy, PROXY_ALL);
        int64_t start = wait_now_ms();
        must_be_a_failed_link(snib_grant_release(grant, NULL), "release");
        assert_true(wait_now_ms() - start < 1500 * wait_slow());
        assert_true(fault_key(s.server, "stock"));
        assert_true(
            eventually(fault_pttl(s.server, "stock") < lease / 2, lease)); /* past every renewal there might be */
        proxy_heal(s.proxy);
        proxy_cut(s.proxy, PROXY_ALL);
        start = wait_now_ms();
        (void)fault_passes(s.other, lease);
        assert_true(wait_now_ms() - start < lease / 2 + fault_late_ms()); /* released in the background or run out */
        scene_end(&s);
}

static void F18_an_acquire_executed_after_its_caller_left_is_undone(void **state)
{
        struct scene s;
        struct fault_waiter w;

        scene_begin(&s, 5000, 20000);
        proxy_hold(s.proxy, PROXY_ALL, PROXY_UP, true);
        fault_wait(&w, s.lock, SNIB_FOREVER);
        assert_true(eventually(snib_lock_cancel(s.lock) == 1, 2000));
        assert_result(fault_join(&w), SNIB_ECANCELLED);
        assert_false(fault_key(s.server, "stock"));
        proxy_hold(s.proxy, PROXY_ALL, PROXY_UP, false);
        int64_t start = wait_now_ms();
        (void)fault_passes(s.other, 5000);
        assert_true(wait_now_ms() - start < 2500 * wait_slow()); /* not 20 s */
        assert_true(eventually(!fault_key(s.server, "stock"), 2000));
        scene_end(&s);
}

#define HERD 50

/* 50 clients whose server goes away and comes back: their attempts spread. */
static void F26_no_herd_after_a_restart(void **state)
{
        struct redis_server *server = fault_server(NULL);
        struct proxy *proxy = proxy_start(redis_server_socket(server));
        snib_client *clients[HERD];
        snib_lock *locks[HERD];
        struct fault_waiter waiters[HERD];
        static int64_t at[4096];

        for (int i = 0; i < HERD; i++) {
                clients[i] = fault_open(proxy_url(proxy), 0);
                locks[i] = fault_lock(clients[i], "stock", "w", 20000);
        }
        snib_client *direct = fault_open(redis_server_url(server), 0);
        snib_lock *holder = fault_lock(direct, "stock", "h", 20000);
        snib_grant *grant = fault_acquire(holder, 0);
        for (int i = 0; i < HERD; i++)
                fault_wait(&waiters[i], locks[i], SNIB_FOREVER);
        assert_true(eventually(fault_subscribers(server, "stock") == HERD, 10000));

        proxy_refuse(proxy, true);
        int first = proxy_attempts(proxy, at, 4096);
        int64_t start = wait_now_ms();
        proxy_cut(proxy, PROXY_ALL);
        assert_true(
            eventually(wait_now_ms() - start > 2000, 5000)); /* how they behave in two seconds is the question */
        int last = proxy_attempts(proxy, at, 4096);
        proxy_refuse(proxy, false);

        /* Two connections a client: with doubling pauses up to a second at most some 12 each in two
         * seconds, and many at first. */
        assert_true(last - first >= HERD);
        assert_true(last - first <= HERD * 2 * 14);
        int late[100] = {0};
        int sum = 0;
        for (int i = first; i < last; i++)
                if (at[i] - start >= 1000 && at[i] - start < 2000) {
                        late[(at[i] - start - 1000) / 10]++;
                        sum++;
                }
        for (int i = 0; i < 100; i++)
                if (late[i] > 10 + sum / 5)
                        fail_msg("%d of the %d attempts of the second second came in the same 10 ms", late[i], sum);

        assert_result(snib_grant_release(grant, NULL), 1);
        start = wait_now_ms();
        for (int done = 0; done < HERD; wait_moment()) { /* everybody gets in, one after the other */
                assert_true(wait_now_ms() - start < 30000 * wait_slow());
                for (int i = 0; i < HERD; i++)
                        if (atomic_load(&waiters[i].done) && waiters[i].lock) {
                                assert_result(fault_join(&waiters[i]), 1);
                                assert_result(snib_grant_release(waiters[i].grant, NULL), 1);
                                waiters[i].lock = NULL;
                                done++;
                        }
        }
        for (int i = 0; i < HERD; i++) {
                snib_lock_free(locks[i]);
                snib_close(clients[i]);
        }
        snib_lock_free(holder);
        snib_close(direct);
        proxy_free(proxy);
        redis_server_free(server);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F15_F16_cut_at_every_byte_of_requests_one_try),
            cmocka_unit_test(F15_F16_cut_at_every_byte_of_replies_one_try),
            cmocka_unit_test(F15_F16_cut_at_every_byte_of_requests_waiting),
            cmocka_unit_test(F15_F16_cut_at_every_byte_of_replies_waiting),
            cmocka_unit_test(F21_replies_and_requests_split_at_every_byte),
            cmocka_unit_test(F137_every_byte_of_the_replies_garbled),
            cmocka_unit_test(F19_half_open_both_ways_is_detected),
            cmocka_unit_test(F20_requests_vanish_is_detected),
            cmocka_unit_test(F20_replies_vanish_is_detected),
            cmocka_unit_test(F19_nothing_passes_is_a_loss_in_time),
            cmocka_unit_test(F19_a_waiter_on_dead_connections_gets_in),
            cmocka_unit_test(F31_messages_that_are_lost_cost_a_second),
            cmocka_unit_test(F22_a_slow_link_loses_nothing),
            cmocka_unit_test(F85_renewal_is_tried_until_the_deadline),
            cmocka_unit_test(F83_a_release_nobody_answers_ends_renewal),
            cmocka_unit_test(F18_an_acquire_executed_after_its_caller_left_is_undone),
            cmocka_unit_test(F26_no_herd_after_a_restart),
        };

        return fault_run_all("network", tests);
}
