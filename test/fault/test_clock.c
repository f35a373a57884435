/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clocks that jump: the server's, and the client's. Both run with skew_shim.so preloaded; the
 * client is this program again, run with
 * "--hold URL LEASE_MS".
 */

#include "fault.h"
#include "proc.h"
#include "skew.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

/* A server on a clock of its own. */
struct scene {
        struct skew *skew;
        struct redis_server *server;
        snib_client *client;
        snib_lock *lock, *other;
};

static void scene_begin(struct scene *s, int kind, int64_t lease_ms, int64_t ahead_ms)
{
        struct snib_lock_options a = {
            .size = sizeof(struct snib_lock_options), .kind = kind, .owner = "a", .lease_ms = lease_ms};
        struct snib_lock_options b = {
            .size = sizeof(struct snib_lock_options), .kind = kind, .owner = "b", .lease_ms = lease_ms};

        s->skew = skew_new(getenv("SNIB_SKEW_SHIM"));
        skew_wall_ms(s->skew, ahead_ms);
        skew_begin(s->skew);
        s->server = redis_server_start(NULL);
        skew_end(s->skew);
        s->client = fault_open(redis_server_url(s->server), 0);
        s->lock = fault_lock_with(s->client, "stock", &a);
        s->other = fault_lock_with(s->client, "stock", &b);
}

static void scene_end(struct scene *s)
{
        snib_lock_free(s->lock);
        snib_lock_free(s->other);
        snib_close(s->client);
        redis_server_free(s->server);
        skew_free(s->skew);
}

/* Seconds of the server's clock. */
static long long server_time(struct redis_server *s)
{
        redisReply *r = redis_server_do(s, "TIME");
        long long n = r && r->elements == 2 ? strtoll(r->element[0]->str, NULL, 10) : 0;

        freeReplyObject(r);
        return n;
}

static void F1_the_servers_clock_steps_forward(void **state)
{
        struct scene s;
        struct fault_loss loss;

        scene_begin(&s, SNIB_LOCK_REENTRANT, fault_lease_ms(), 0);
        long long before = server_time(s.server);
        snib_grant *grant = fault_acquire(s.lock, 0);
        int64_t token = snib_grant_token(grant);
        fault_watch(grant, &loss);
        skew_wall_ms(s.skew, 40000);
        assert_true(server_time(s.server) - before >= 40); /* the shim works */
        assert_true(eventually(!fault_key(s.server, "stock"), 1000));
        int reason = fault_lost(grant, &loss, fault_lease_ms()); /* the next renewal finds it */
        assert_true(reason == SNIB_LOSS_GONE || reason == SNIB_LOSS_TAKEN);
        assert_true(fault_passes(s.other, 1000) > token);
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        scene_end(&s);
}

static void F2_the_servers_clock_steps_back(void **state)
{
        struct scene s;
        struct fault_loss loss;

        scene_begin(&s, SNIB_LOCK_FENCED, fault_lease_ms(), 0);
        snib_grant *grant = fault_acquire(s.lock, 0);
        int64_t token = snib_grant_token(grant);
        fault_watch(grant, &loss);
        skew_wall_ms(s.skew, -HOUR_MS);
        assert_true(fault_pttl(s.server, "stock") > HOUR_MS / 2);
        /* The next renewal says again how long it lasts. */
        assert_true(eventually(fault_pttl(s.server, "stock") <= fault_lease_ms(), fault_lease_ms() * 2));
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        for (int i = 0; i < 3; i++) {
                int64_t next = fault_passes(s.other, 1000);

                assert_true(next > token); /* the counter is ahead of the clock */
                token = next;
        }
        scene_end(&s);
}

static void F11_the_year_2040(void **state)
{
        struct scene s;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        int64_t last = 0;

        for (int kind = SNIB_LOCK_REENTRANT; kind <= SNIB_LOCK_FENCED; kind += SNIB_LOCK_FENCED) {
                scene_begin(&s, kind, 30000, 14 * 365 * DAY_MS);
                assert_true(server_time(s.server) > INT64_C(1) << 31);
                snib_grant *grant = fault_acquire(s.lock, 0);
                assert_true(snib_grant_token(grant) > last);
                assert_result(snib_grant_renew(grant, NULL), 1);
                assert_result(snib_lock_query(s.other, &info, NULL), 1);
                assert_true(info.lease_left_ms > 25000 && info.lease_left_ms <= 30000);
                last = snib_grant_token(grant);
                assert_result(snib_grant_release(grant, NULL), 1);
                assert_true(fault_passes(s.other, 1000) > last);
                scene_end(&s);
        }
}

/* What the skewed client tells at its end. */
struct report {
        int losses, valid, result;
};

/* The child: holds one lock until told, then waits for another that is not free. */
static int hold(const char *url, int64_t lease_ms)
{
        struct proc me = {.in = 0, .out = 1};
        struct fault_loss loss;
        struct report report = {0};
        snib_client *c = fault_open(url, 0);
        snib_lock *lock = fault_lock(c, "held", "child", lease_ms);
        snib_lock *busy = fault_lock(c, "busy", "child", lease_ms);
        snib_grant *grant = fault_acquire(lock, 0);
        snib_grant *none = NULL;

        fault_watch(grant, &loss);
        proc_say(&me, 'h');
        (void)proc_hear(&me, 60000);
        report.valid = snib_grant_valid(grant);
        proc_say(&me, 'v');
        proc_give(&me, &report.valid, sizeof(report.valid));
        (void)proc_hear(&me, 60000);
        report.result = snib_lock_acquire(busy, 500, &none, NULL);
        report.losses = atomic_load(&loss.calls);
        (void)snib_grant_release(grant, NULL);
        snib_lock_free(lock);
        snib_lock_free(busy);
        snib_close(c);
        proc_give(&me, &report, sizeof(report));
        return 0;
}

static void start_client(struct proc *p, struct skew *skew, const char *url, int64_t lease_ms)
{
        char lease[32];

        snprintf(lease, sizeof(lease), "%lld", (long long)lease_ms);
        proc_exec(p, (const char *[]){"/proc/self/exe", "--hold", url, lease, NULL}, skew_env(skew));
        assert_int_equal(proc_hear(p, 10000), 'h');
}

static void F3_the_clients_wall_clock_jumps(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct skew *skew = skew_new(getenv("SNIB_SKEW_SHIM"));
        int64_t lease = fault_lease_ms();
        struct report report;
        struct proc p;
        int valid = -1;

        fault_do(s, "HSET busy b2a3c0de-1111-4222-8333-444455556666:1 1");
        start_client(&p, skew, redis_server_url(s), lease);
        for (int i = 0; i < 4; i++) { /* forward and back by days, past several renewals */
                skew_wall_ms(skew, i % 2 ? -3 * DAY_MS : 3 * DAY_MS);
                assert_true(eventually(fault_pttl(s, "held") < lease * 8 / 10, lease));
                assert_true(eventually(fault_pttl(s, "held") > lease * 9 / 10, lease));
        }
        proc_say(&p, '1');
        assert_int_equal(proc_hear(&p, 5000), 'v');
        assert_true(proc_take(&p, &valid, sizeof(valid), 5000));
        assert_int_equal(valid, 1);
        int64_t start = wait_now_ms();
        proc_say(&p, '2');
        assert_true(eventually(wait_now_ms() - start > 150, 1000));
        skew_wall_ms(skew, 30 * DAY_MS); /* in the middle of its wait */
        assert_true(proc_take(&p, &report, sizeof(report), 10000));
        assert_result(report.result, 0);
        assert_in_range(wait_now_ms() - start, 490, 1000 + 500 * wait_slow());
        assert_int_equal(report.losses, 0);
        assert_int_equal(proc_wait(&p, 5000), 0);
        skew_free(skew);
        redis_server_free(s);
}

static void F5_a_suspend_ends_the_hold(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct skew *skew = skew_new(getenv("SNIB_SKEW_SHIM"));
        struct report report;
        struct proc p;
        int valid = -1;

        fault_do(s, "HSET busy b2a3c0de-1111-4222-8333-444455556666:1 1");
        start_client(&p, skew, redis_server_url(s), 20000);
        skew_boot_ms(skew, 25000); /* as after a resume: the clock that counts suspend has gone on */
        proc_say(&p, '1');
        assert_int_equal(proc_hear(&p, 5000), 'v');
        assert_true(proc_take(&p, &valid, sizeof(valid), 5000));
        assert_int_equal(valid, 0); /* at the very first look */
        proc_say(&p, '2');
        assert_true(proc_take(&p, &report, sizeof(report), 10000));
        assert_int_equal(report.losses, 1);
        assert_int_equal(proc_wait(&p, 5000), 0);
        skew_free(skew);
        redis_server_free(s);
}

int main(int argc, char **argv)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F1_the_servers_clock_steps_forward),
            cmocka_unit_test(F2_the_servers_clock_steps_back),
            cmocka_unit_test(F11_the_year_2040),
            cmocka_unit_test(F3_the_clients_wall_clock_jumps),
            cmocka_unit_test(F5_a_suspend_ends_the_hold),
        };

        if (argc == 4 && !strcmp(argv[1], "--hold"))
                return hold(argv[2], strtoll(argv[3], NULL, 10));
        return fault_run_all("clock", tests);
}
