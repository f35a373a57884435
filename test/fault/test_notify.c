/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages between waiters and a real Redis: many waiters, forged messages, floods. How often the
 * server is asked is counted by the server.
 */

#include "fault.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CROWD 200
#define ROUNDS 11

/* What 200 asynchronous waiters were told. */
static _Atomic int granted, failed;
static snib_grant *_Atomic latest;

static void got_it(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        if (result == 1)
                atomic_store(&latest, grant);
        atomic_fetch_add(result == 1 ? &granted : &failed, 1);
}

static long long scripts(struct redis_server *s)
{
        return fault_calls(s, "evalsha") + fault_calls(s, "eval");
}

static int by_size(const void *a, const void *b)
{
        return *(const int *)a - *(const int *)b;
}

static void F32_200_waiters_one_release_one_wake_up(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *a = fault_open(redis_server_url(s), 0);
        snib_client *b = fault_open(redis_server_url(s), 0);
        snib_lock *holder = fault_lock(a, "stock", "h", 100000);
        static snib_lock *locks[CROWD];
        char owner[16];
        int asked[ROUNDS];

        atomic_store(&granted, 0);
        atomic_store(&failed, 0);
        snib_grant *grant = fault_acquire(holder, 0);
        for (int i = 0; i < CROWD; i++) {
                snprintf(owner, sizeof(owner), "w%d", i);
                locks[i] = fault_lock(b, "stock", owner, 100000);
                assert_result(snib_lock_acquire_async(locks[i], SNIB_FOREVER, got_it, NULL, NULL), 0);
        }
        assert_true(eventually(fault_subscribers(s, "stock") == 1, 5000)); /* one for all of them */
        assert_true(eventually(scripts(s) >= 3, 5000)); /* one asks for all of them, and again when it is there */
        for (int round = 0; round < ROUNDS; round++) {
                int before = atomic_load(&granted);

                fault_do(s, "CONFIG RESETSTAT");
                assert_result(snib_grant_release(grant, NULL), 1);
                assert_true(eventually(atomic_load(&granted) > before, 2000));
                asked[round] =
                    (int)scripts(s) - 1; /* without the release, which passes from one to the next without one */
                grant = atomic_load(&latest);
        }
        /* Each waiter also looks about once a second by itself, many of them together, which may
         * fall into a round or two. */
        qsort(asked, ROUNDS, sizeof(asked[0]), by_size);
        if (asked[ROUNDS / 2] > 2)
                fail_msg("one release made the waiters ask %d times", asked[ROUNDS / 2]);
        assert_int_equal(atomic_load(&granted), ROUNDS);
        for (int i = 0; i < CROWD; i++)
                (void)snib_lock_cancel(locks[i]);
        assert_true(eventually(atomic_load(&failed) == CROWD - ROUNDS, 5000));
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_true(eventually(fault_subscribers(s, "stock") == 0, 5000));
        (void)fault_passes(holder, 1000); /* nobody who left was granted it */
        for (int i = 0; i < CROWD; i++)
                snib_lock_free(locks[i]);
        snib_lock_free(holder);
        snib_close(b);
        snib_close(a);
        redis_server_free(s);
}

/* Publishes `count` times in few round trips. */
static void flood(struct redis_server *s, int count, const char *payload)
{
        redisContext *c = redisConnectUnix(redis_server_socket(s));
        redisReply *r = NULL;

        assert_non_null(c);
        for (int i = 0; i < count; i++)
                assert_int_equal(redisAppendCommand(c, "PUBLISH redisson_lock__channel:{stock} %s", payload), REDIS_OK);
        for (int i = 0; i < count; i++) {
                assert_int_equal(redisGetReply(c, (void **)&r), REDIS_OK);
                freeReplyObject(r);
        }
        redisFree(c);
}

static void F139_forged_messages_are_hints(void **state)
{
        static const char *const payloads[] = {"0", "1", "2", "-1", "", "x", "9223372036854775808", "granted"};
        struct fault_pair pair = fault_pair("stock", 100000);
        snib_grant *grant = fault_acquire(pair.lock, 0);
        struct fault_waiter w;

        fault_wait(&w, pair.other, SNIB_FOREVER);
        assert_true(eventually(fault_subscribers(pair.server, "stock") == 1, 5000));
        for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++)
                flood(pair.server, 10, payloads[i]);
        fault_do(pair.server, "CONFIG RESETSTAT");
        flood(pair.server, 1, "0");
        assert_true(eventually(scripts(pair.server) >= 1, 2000)); /* it looked */
        assert_false(atomic_load(&w.done));                       /* and saw that it was not true */
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_result(fault_join(&w), 1);
        assert_result(snib_grant_release(w.grant, NULL), 1);
        fault_pair_done(&pair);
}

static void F140_a_flood_costs_neither_memory_nor_the_lock(void **state)
{
        struct fault_pair pair = fault_pair("stock", 100000);
        snib_grant *grant = fault_acquire(pair.lock, 0);
        struct fault_waiter w;
        int64_t start;

        fault_wait(&w, pair.other, SNIB_FOREVER);
        assert_true(eventually(fault_subscribers(pair.server, "stock") == 1, 5000));
        flood(pair.server, 5000, "0");
        long before = fault_memory_kb("VmRSS:");
        fault_do(pair.server, "CONFIG RESETSTAT");
        for (int i = 0; i < 10; i++)
                flood(pair.server, 5000, "0");
        /* Many messages that wait together are one question: not 50,000. */
        assert_true(scripts(pair.server) < 25000);
        if (wait_slow() == 1 && fault_memory_kb("VmRSS:") - before > 8192) /* a sanitizer keeps what is freed */
                fail_msg("%ld kB grew to %ld kB", before, fault_memory_kb("VmRSS:"));
        assert_false(atomic_load(&w.done));
        start = wait_now_ms();
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_result(fault_join(&w), 1);
        assert_true(w.got_ms - start < 1500 * wait_slow());
        assert_result(snib_grant_release(w.grant, NULL), 1);
        fault_pair_done(&pair);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F32_200_waiters_one_release_one_wake_up),
            cmocka_unit_test(F139_forged_messages_are_hints),
            cmocka_unit_test(F140_a_flood_costs_neither_memory_nor_the_lock),
        };

        return fault_run_all("notify", tests);
}
