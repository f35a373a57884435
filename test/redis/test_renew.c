/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Renewals that go together, against a real server: every hold gets its own right answer, whatever
 * became of its neighbours, and the server is asked once for a hundred.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"

#define HOLDS 250

static struct snib__op hold[HOLDS];
static char name[HOLDS][16];
static uint32_t asked[HOLDS];

static int kind_of(int i)
{
        static const int kinds[] = {SNIB_KIND_LOCK, SNIB_KIND_FENCED, SNIB_KIND_FAIR, SNIB_KIND_SPIN,
                                    SNIB_KIND_ELECTION};

        return kinds[i % 5];
}

/* Every hold for 30 seconds; its next request is a renewal for 60. */
static void hold_all(void)
{
        for (int i = 0; i < HOLDS; i++) {
                snprintf(name[i], sizeof(name[i]), "x%d", i);
                hold[i] = pump_op(kit_a, SNIB__ACQUIRE, name[i], pump_id(kit_a), 30000);
                hold[i].kind = kind_of(i);
                asked[i] = pump_submit(kit_a, &hold[i]);
        }
        for (int i = 0; i < HOLDS; i++) {
                assert_int_equal(pump_answer(kit_a, asked[i]).status, SNIB__GRANTED);
                hold[i].verb = SNIB__RENEW;
                hold[i].lease_ms = 60000;
        }
}

static void renew_all(void)
{
        for (int i = 0; i < HOLDS; i++)
                asked[i] = pump_submit(kit_a, &hold[i]);
}

static void all_renewed(void)
{
        for (int i = 0; i < HOLDS; i++) {
                assert_int_equal(pump_answer(kit_a, asked[i]).status, SNIB__RENEWED);
                kit_near(kit_number("PTTL %s", name[i]), 60000, 5000);
        }
}

/* How many scripts the server ran since CONFIG RESETSTAT. */
static int scripts_run(void)
{
        redisReply *r = redis_server_do(kit_server, "INFO commandstats");
        int calls, sum = 0;

        assert_non_null(r);
        for (const char *at = r->str; (at = strstr(at, "cmdstat_eval")); at++)
                if (sscanf(at, "cmdstat_eval:calls=%d", &calls) == 1 ||
                    sscanf(at, "cmdstat_evalsha:calls=%d", &calls) == 1)
                        sum += calls;
        freeReplyObject(r);
        return sum;
}

static void a_hundred_holds_go_in_one_request(void **state)
{
        (void)state;
        hold_all();
        kit_do("CONFIG RESETSTAT");
        renew_all();
        all_renewed();
        assert_int_equal(scripts_run(), 3);
}

static void each_of_a_batch_has_its_own_lease(void **state)
{
        (void)state;
        hold_all();
        for (int i = 0; i < HOLDS; i += 7)
                hold[i].lease_ms = 90000 + i;
        renew_all();
        for (int i = 0; i < HOLDS; i++) {
                assert_int_equal(pump_answer(kit_a, asked[i]).status, SNIB__RENEWED);
                kit_near(kit_number("PTTL %s", name[i]), (int)hold[i].lease_ms, 5000);
        }
}

static void one_alone_goes_by_the_script_for_one(void **state)
{
        struct snib__id id = pump_id(kit_a);
        struct snib__op op = pump_op(kit_a, SNIB__ACQUIRE, "x", id, 30000);

        (void)state;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        op.verb = SNIB__RENEW;
        op.lease_ms = 60000;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RENEWED);
        kit_near(kit_number("PTTL x"), 60000, 5000);
}

#define OTHER "b2a3c0de-1111-4222-8333-444455556666:7"

/* What became of a hold behind its owner's back. */
static void meddle(int i)
{
        switch (i % 10) {
        case 1: /* its lease ended, or somebody deleted it */
                kit_do("DEL %s", name[i]);
                break;
        case 3: /* another has it */
                kit_do("DEL %s", name[i]);
                kit_do("HSET %s " OTHER " 1", name[i]);
                kit_do("PEXPIRE %s 20000", name[i]);
                break;
        case 5: /* something else stands there */
                kit_do("SET %s text", name[i]);
                break;
        case 7:
                kit_do("DEL %s", name[i]);
                kit_do("HSET %s mode write " OTHER ":write 1", name[i]);
                break;
        default:
                break;
        }
}

static void answered_rightly(int i, const struct snib__reply *r)
{
        if (i % 10 == 5 || i % 10 == 7) {
                assert_int_equal(r->status, SNIB__FAILED);
                assert_int_equal(r->error, SNIB_EKIND);
                assert_null(strstr(r->error_text, name[i])); /* the runtime's to say */
                return;
        }
        assert_int_equal(r->status, i % 2 && i % 10 != 9 ? SNIB__GONE : SNIB__RENEWED);
        assert_int_equal(r->held, i % 10 == 3);
        if (i % 10 == 3) {
                assert_string_equal(r->holder.id.text, OTHER);
                kit_near(r->left_ms, 20000, 5000);
        }
        if (r->status == SNIB__RENEWED)
                kit_near(kit_number("PTTL %s", name[i]), 60000, 5000);
}

/* Rows F9, F39, F40, F52: of a batch every hold has its own fate. */
static void F52_each_hold_of_a_batch_gets_its_own_answer(void **state)
{
        (void)state;
        hold_all();
        for (int i = 0; i < HOLDS; i++)
                meddle(i);
        renew_all();
        for (int i = 0; i < HOLDS; i++) {
                struct snib__reply r = pump_answer(kit_a, asked[i]);

                answered_rightly(i, &r);
        }
        assert_int_equal(kit_number("EXISTS x1"), 0);
        kit_near(kit_number("PTTL x3"), 20000, 5000);
        assert_int_equal(kit_number("PTTL x5"), -1);
        assert_int_equal(kit_number("PTTL x7"), -1);
}

static void F51_a_flushed_script_is_sent_again_for_all(void **state)
{
        (void)state;
        hold_all();
        renew_all();
        all_renewed();
        for (int round = 0; round < 2; round++) {
                kit_do("SCRIPT FLUSH");
                renew_all();
                all_renewed();
        }
}

/* Those of the batch whose names were asked for again meanwhile may not be executed after that. */
static void F51_a_flushed_script_renews_nothing_after_its_release(void **state)
{
        uint32_t end, again;

        (void)state;
        hold_all();
        renew_all();
        all_renewed();
        kit_do("SCRIPT FLUSH");
        renew_all();
        hold[7].verb = SNIB__RELEASE;
        end = pump_submit(kit_a, &hold[7]);
        again = pump_submit(kit_a, &hold[8]);
        for (int i = 0; i < HOLDS; i++) {
                struct snib__reply r = pump_answer(kit_a, asked[i]);

                assert_int_equal(r.status, i == 7 || i == 8 ? SNIB__FAILED : SNIB__RENEWED);
                assert_int_equal(r.error, i == 7 || i == 8 ? SNIB_ENOTREADY : 0);
        }
        assert_int_equal(pump_answer(kit_a, end).status, SNIB__RELEASED);
        assert_int_equal(pump_answer(kit_a, again).status, SNIB__RENEWED);
}

static void the_order_of_requests_is_kept(void **state)
{
        uint32_t release, late;

        (void)state;
        hold_all();
        asked[0] = pump_submit(kit_a, &hold[0]);
        asked[1] = pump_submit(kit_a, &hold[1]);
        hold[0].verb = SNIB__RELEASE;
        release = pump_submit(kit_a, &hold[0]);
        hold[0].verb = SNIB__RENEW;
        late = pump_submit(kit_a, &hold[0]);
        asked[2] = pump_submit(kit_a, &hold[2]);
        for (int i = 0; i < 3; i++)
                assert_int_equal(pump_answer(kit_a, asked[i]).status, SNIB__RENEWED);
        assert_int_equal(pump_answer(kit_a, release).status, SNIB__RELEASED);
        assert_int_equal(pump_answer(kit_a, late).status, SNIB__GONE);
}

/* Row F15: the connection ends while batches are under way: each is answered once, with what is
 * known. */
static void F15_a_killed_connection_leaves_a_batch_unknown(void **state)
{
        (void)state;
        hold_all();
        renew_all();
        pump_turn(kit_a, 0); /* they leave */
        kit_do("CLIENT KILL TYPE normal SKIPME yes");
        for (int i = 0; i < HOLDS; i++) {
                struct snib__reply r = pump_answer(kit_a, asked[i]);

                if (r.status != SNIB__RENEWED)
                        assert_int_equal(r.error, SNIB_EUNKNOWN);
        }
        (void)pump_wait(kit_a, SNIB__NOTE_LINK_UP);
        renew_all();
        all_renewed();
        assert_int_equal(kit_a->count, 1); /* LINK_DOWN: no second answer came */
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, kit_open, kit_close)

int main(void)
{
        static const struct CMUnitTest tests[] = {
            TEST(a_hundred_holds_go_in_one_request),
            TEST(each_of_a_batch_has_its_own_lease),
            TEST(one_alone_goes_by_the_script_for_one),
            TEST(F52_each_hold_of_a_batch_gets_its_own_answer),
            TEST(F51_a_flushed_script_is_sent_again_for_all),
            TEST(F51_a_flushed_script_renews_nothing_after_its_release),
            TEST(the_order_of_requests_is_kept),
            TEST(F15_a_killed_connection_leaves_a_batch_unknown),
        };

        return kit_run(tests, kit_start, kit_stop);
}
