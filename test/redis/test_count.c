/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Semaphores, permits, latches and registers of the Redis engine against a real server: what is
 * answered, what stands in the server afterwards, key by key as Redisson has it, and which messages
 * go out. What Java clients leave is written by hand.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include <snib/error.h>
#include <snib/register.h>

#define CHANNEL "redisson_sc:{x}"
#define LATCH_CHANNEL "redisson_countdownlatch__channel__{x}"
#define NEVER 922337203685477LL

/* A request with an id of its own. */
static struct snib__op asked(struct pump *p, enum snib__verb verb, int kind, int64_t n)
{
        struct snib__op op = pump_op(p, verb, "x", pump_id(p), 30000);

        op.kind = kind;
        op.n = n;
        return op;
}

static struct snib__reply done(enum snib__verb verb, int kind, int64_t n)
{
        struct snib__op op = asked(kit_a, verb, kind, n);

        return pump_do(kit_a, &op);
}

/* A change that is made, and the value after it. */
static void changes(enum snib__verb verb, int kind, int64_t n, int64_t value)
{
        struct snib__reply r = done(verb, kind, n);

        if (r.status == SNIB__FAILED)
                fail_msg("%s", r.error_text);
        assert_int_equal(r.status, SNIB__DONE);
        assert_true(r.applied);
        assert_int_equal(r.value, value);
}

static void is_refused(struct pump *p, const struct snib__op *op, int error)
{
        struct snib__reply r = pump_do(p, op);

        assert_int_equal(r.status, SNIB__FAILED);
        assert_int_equal(r.error, error);
}

/* The first request of a client has attempt 1, so its memory is taken back, and the record of who
 * the client is gets written: both are over before what is to be seen here. */
static int open_with_past(void **state)
{
        int r = kit_open(state);

        (void)done(SNIB__ACQUIRE, SNIB_KIND_PERMITS, 1);
        struct snib__op op = asked(kit_b, SNIB__ACQUIRE, SNIB_KIND_PERMITS, 1);
        (void)pump_do(kit_b, &op);
        return r;
}

/* ---- semaphore */

static void a_semaphore_is_redissons_string(void **state)
{
        (void)state;
        changes(SNIB__SET, SNIB_KIND_SEMAPHORE, 3, 3);
        kit_text_is("3", "GET x");
        assert_int_equal(kit_number("PTTL x"), -1);
        kit_heard(CHANNEL, "3");
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2).status, SNIB__GRANTED);
        kit_text_is("1", "GET x");
        struct snib__reply r = done(SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.value, 1);
        kit_text_is("1", "GET x");
        kit_heard_nothing();
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, 4, 5);
        kit_heard(CHANNEL, "5");
        changes(SNIB__DRAIN, SNIB_KIND_SEMAPHORE, 0, 5);
        kit_text_is("0", "GET x");
        changes(SNIB__DRAIN, SNIB_KIND_SEMAPHORE, 0, 0);
        kit_heard_nothing();
        assert_false(done(SNIB__SET, SNIB_KIND_SEMAPHORE, 9).applied);
        changes(SNIB__DELETE, SNIB_KIND_SEMAPHORE, 0, -1);
        assert_int_equal(kit_number("EXISTS x"), 0);
        assert_false(done(SNIB__DELETE, SNIB_KIND_SEMAPHORE, 0).applied);
        kit_heard_nothing();
}

static void a_semaphore_keeps_its_ttl(void **state)
{
        struct snib__op op = asked(kit_a, SNIB__SET, SNIB_KIND_SEMAPHORE, 3);

        (void)state;
        op.ttl_ms = 50000;
        assert_true(pump_do(kit_a, &op).applied);
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, 1, 4);
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 1).status, SNIB__GRANTED);
        changes(SNIB__DRAIN, SNIB_KIND_SEMAPHORE, 0, 3);
        kit_near(kit_number("PTTL x"), 50000, 20000);
}

static void F97_what_does_not_exist_stays_so(void **state)
{
        struct snib__op op = asked(kit_a, SNIB__ADD, SNIB_KIND_SEMAPHORE, 2);
        struct snib__reply r = done(SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 1);

        (void)state;
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.value, -1);
        assert_false(done(SNIB__QUERY, SNIB_KIND_SEMAPHORE, 0).held);
        op.if_exists = true;
        assert_false(pump_do(kit_a, &op).applied);
        assert_int_equal(kit_number("EXISTS x"), 0);
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, 2, 2); /* as Redisson's release */
        op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 1);
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        changes(SNIB__DELETE, SNIB_KIND_SEMAPHORE, 0, -1);
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        assert_int_equal(kit_number("EXISTS x"), 0);
}

/* A Java listener throws at a negative number. */
static void no_negative_number_is_published(void **state)
{
        (void)state;
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, -5, -5);
        kit_text_is("-5", "GET x");
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, 2, -3);
        changes(SNIB__DRAIN, SNIB_KIND_SEMAPHORE, 0, 0);
        kit_text_is("-3", "GET x");
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 1).value, -3);
        assert_int_equal(done(SNIB__QUERY, SNIB_KIND_SEMAPHORE, 0).value, -3);
        kit_heard_nothing();
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, 3, 0);
        kit_heard(CHANNEL, "0");
}

static void F18_an_acquire_is_undone_whenever_it_arrives(void **state)
{
        struct snib__op op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2), undo = op;

        (void)state;
        undo.verb = SNIB__RELEASE;
        kit_do("SET x 3");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        assert_int_equal(pump_do(kit_a, &undo).status, SNIB__RELEASED);
        kit_heard(CHANNEL, "3");
        assert_int_equal(pump_do(kit_a, &undo).status, SNIB__GONE);
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__BUSY); /* a copy that was on its way for long */
        kit_text_is("3", "GET x");
        op = undo = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2);
        undo.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &undo).status, SNIB__GONE);
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__BUSY);
        kit_text_is("3", "GET x");
        kit_heard_nothing();
}

/* ---- all that counts */

/* The same request again answers the same and changes nothing. */
static void twice(struct snib__op op, enum snib__status status, const char *ask, const char *after)
{
        struct snib__reply first = pump_do(kit_a, &op), second;

        if (first.status == SNIB__FAILED)
                fail_msg("%s", first.error_text);
        assert_int_equal(first.status, status);
        kit_text_is(after, ask);
        second = pump_do(kit_b, &op);
        assert_int_equal(second.status, status);
        assert_int_equal(second.value, first.value);
        assert_int_equal(second.applied, first.applied);
        kit_text_is(after, ask);
}

static void F102_repeated_requests_count_once(void **state)
{
        const int semaphore = SNIB_KIND_SEMAPHORE, permits = SNIB_KIND_PERMITS, latch = SNIB_KIND_LATCH;
        struct snib__op op;

        (void)state;
        twice(asked(kit_a, SNIB__SET, semaphore, 5), SNIB__DONE, "GET x", "5");
        twice(asked(kit_a, SNIB__ACQUIRE, semaphore, 2), SNIB__GRANTED, "GET x", "3");
        twice(asked(kit_a, SNIB__ADD, semaphore, 4), SNIB__DONE, "GET x", "7");
        twice(asked(kit_a, SNIB__ADD, semaphore, -1), SNIB__DONE, "GET x", "6");
        op = asked(kit_a, SNIB__DRAIN, semaphore, 0);
        twice(op, SNIB__DONE, "GET x", "0");
        kit_do("SET x 2");
        assert_int_equal(pump_do(kit_a, &op).value, 6);
        kit_text_is("2", "GET x");
        twice(asked(kit_a, SNIB__DELETE, semaphore, 0), SNIB__DONE, "GET x", NULL);
        twice(asked(kit_a, SNIB__SET, permits, 5), SNIB__DONE, "GET x", "5");
        twice(asked(kit_a, SNIB__ADD, permits, 2), SNIB__DONE, "GET x", "7");
        twice(asked(kit_a, SNIB__RESIZE, permits, 4), SNIB__DONE, "GET x", "4");
        twice(asked(kit_a, SNIB__ACQUIRE, permits, 3), SNIB__GRANTED, "GET x", "1");
        twice(asked(kit_a, SNIB__DELETE, permits, 0), SNIB__DONE, "GET x", NULL);
        twice(asked(kit_a, SNIB__SET, latch, 5), SNIB__DONE, "GET x", "5");
        twice(asked(kit_a, SNIB__ADD, latch, -2), SNIB__DONE, "GET x", "3");
        twice(asked(kit_a, SNIB__ADD, latch, -3), SNIB__DONE, "GET x", NULL);
        kit_do("SET x 2");
        twice(asked(kit_a, SNIB__DELETE, latch, 0), SNIB__DONE, "GET x", NULL);
        op = asked(kit_a, SNIB__WRITE, SNIB_KIND_REGISTER, 0);
        op.data = "abc";
        op.data_length = 3;
        twice(op, SNIB__DONE, "HGET x value", "abc");
        op = asked(kit_a, SNIB__DELETE, SNIB_KIND_REGISTER, 0);
        op.expected = -1;
        twice(op, SNIB__DONE, "GET x", NULL);
}

/* A repetition is refused; then what stood in its way is gone, and an older copy arrives that was
 * delayed. It must not do what the client was told is not done. */
static void stays_refused(struct snib__op op, const char *unmet, const char *met, const char *ask, const char *after)
{
        struct snib__reply first, late;

        kit_do("%s", unmet);
        first = pump_do(kit_a, &op); /* an attempt above 1: see open_with_past() */
        assert_int_equal(first.status, op.verb == SNIB__RELEASE ? SNIB__GONE : SNIB__DONE);
        assert_int_equal(first.applied, op.verb == SNIB__DRAIN);
        kit_near(kit_number("PTTL snib_request:{x}:%s", op.id.text), 60000, 20000);
        kit_do("%s", met);
        kit_b->attempts = 0;
        late = pump_do(kit_b, &op);
        assert_int_equal(late.status, first.status);
        assert_int_equal(late.applied, first.applied);
        assert_int_equal(late.value, first.value);
        kit_text_is(after, ask);
        kit_do("DEL x");
}

static void F102_a_repetition_that_was_refused_stays_refused(void **state)
{
        const int semaphore = SNIB_KIND_SEMAPHORE, permits = SNIB_KIND_PERMITS, latch = SNIB_KIND_LATCH;
        const char *written = "HSET x snib register version 5 value abc";
        struct snib__op op = asked(kit_a, SNIB__ADD, semaphore, 2);

        (void)state;
        op.if_exists = true;
        stays_refused(op, "DEL x", "SET x 1", "GET x", "1");
        op = asked(kit_a, SNIB__ADD, permits, 2);
        op.if_exists = true;
        stays_refused(op, "DEL x", "SET x 1", "GET x", "1");
        stays_refused(asked(kit_a, SNIB__SET, semaphore, 5), "SET x -3", "DEL x", "GET x", NULL);
        stays_refused(asked(kit_a, SNIB__DRAIN, semaphore, 0), "DEL x", "SET x 2", "GET x", "2");
        stays_refused(asked(kit_a, SNIB__DELETE, semaphore, 0), "DEL x", "SET x 2", "GET x", "2");
        stays_refused(asked(kit_a, SNIB__SET, permits, 5), "SET x 3", "DEL x", "GET x", NULL);
        stays_refused(asked(kit_a, SNIB__DELETE, permits, 0), "DEL x", "SET x 2", "GET x", "2");
        stays_refused(asked(kit_a, SNIB__SET, latch, 5), "SET x 3", "DEL x", "GET x", NULL);
        stays_refused(asked(kit_a, SNIB__ADD, latch, -1), "DEL x", "SET x 2", "GET x", "2");
        stays_refused(asked(kit_a, SNIB__DELETE, latch, 0), "DEL x", "SET x 2", "GET x", "2");
        stays_refused(asked(kit_a, SNIB__DELETE, latch, 0), "SET x 0", "SET x 2", "GET x", "2");
        op = asked(kit_a, SNIB__WRITE, SNIB_KIND_REGISTER, 0);
        op.expected = 5;
        stays_refused(op, "HSET x snib register version 1700000000000001 value z", written, "HGET x value", "abc");
        op = asked(kit_a, SNIB__DELETE, SNIB_KIND_REGISTER, 0);
        op.expected = 5;
        stays_refused(op, "DEL x", written, "HGET x value", "abc");
}

/* Older than the first copy there is nothing: its refusal takes no room, and a repetition may still
 * be executed, once.
 */
static void a_first_copy_that_was_refused_is_not_remembered(void **state)
{
        struct snib__op op = asked(kit_a, SNIB__SET, SNIB_KIND_LATCH, 5);

        (void)state;
        kit_do("SET x 3");
        kit_a->attempts = 0;
        assert_false(pump_do(kit_a, &op).applied);
        assert_int_equal(kit_number("EXISTS snib_request:{x}:%s", op.id.text), 0);
        kit_do("DEL x");
        assert_true(pump_do(kit_a, &op).applied);
}

/* A deletion that is repeated late does not take what was made anew. */
static void a_repeated_deletion_leaves_the_next_one(void **state)
{
        static const int kinds[] = {SNIB_KIND_SEMAPHORE, SNIB_KIND_PERMITS, SNIB_KIND_LATCH};

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                struct snib__op op = asked(kit_a, SNIB__DELETE, kinds[i], 0);
                kit_do("SET x 2");
                assert_true(pump_do(kit_a, &op).applied);
                kit_do("SET x 3");
                assert_true(pump_do(kit_a, &op).applied);
                kit_text_is("3", "GET x");
        }
}

static void requests_are_remembered_while_they_may_be_repeated(void **state)
{
        struct pump *c = pump_connect(redis_server_url(kit_server), 3);
        struct snib__op first = asked(c, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1), second;

        (void)state;
        assert_true(pump_do(c, &first).applied); /* attempt 1: sent once, and here is the answer */
        for (int i = 2; i < 4; i++) { /* the second one takes the UNLINK along, the third one comes behind it */
                second = asked(c, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1);
                assert_int_equal(pump_do(c, &second).value, i);
        }
        assert_int_equal(kit_number("EXISTS snib_request:{x}:%s", first.id.text), 0);
        kit_near(kit_number("PTTL snib_request:{x}:%s", second.id.text), 60000, 20000);
        pump_close(c);
}

/* The answer to the first came too late for who asked, and was thrown away: the third must find the
 * memory. */
static void F15_a_late_answer_does_not_end_the_memory(void **state)
{
        struct pump *c = pump_connect(redis_server_url(kit_server), 3);
        struct snib__op op = asked(c, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1), other;
        uint32_t first = pump_submit(c, &op), second = pump_submit(c, &op);

        (void)state;
        assert_int_equal(first, 1);
        assert_int_equal(pump_answer(c, first).value, 1);
        assert_int_equal(pump_answer(c, second).value, 1);
        other = asked(c, SNIB__QUERY, SNIB_KIND_SEMAPHORE, 0);
        (void)pump_do(c, &other);
        assert_int_equal(pump_do(c, &op).value, 1);
        kit_text_is("1", "GET x");
        pump_close(c);
}

/* It came after its time, and whoever asked has not asked again yet. */
static void F15_an_answer_that_nobody_heard_keeps_its_memory(void **state)
{
        struct pump *c = pump_connect(redis_server_url(kit_server), 3);
        struct snib__op op = asked(c, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1);

        (void)state;
        assert_int_equal(pump_answer(c, pump_submit(c, &op)).value, 1);
        c->engine->ops->unheard(c->engine, (struct snib__tag){.object = c, .cookie = 7, .attempt = 1});
        for (int i = 0; i < 2; i++)
                assert_int_equal(pump_do(c, &op).value, 1);
        kit_text_is("1", "GET x");
        pump_close(c);
}

/* Whoever gave up while the answer was on its way undoes it at once: the memory must last until
 * then. */
static void F18_an_acquire_that_was_just_answered_can_be_undone(void **state)
{
        struct pump *c = pump_connect(redis_server_url(kit_server), 3);
        struct snib__op op = asked(c, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2), last;

        (void)state;
        kit_do("SET x 3");
        assert_int_equal(pump_do(c, &op).status, SNIB__GRANTED);
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(c, &op).status, SNIB__RELEASED);
        kit_text_is("3", "GET x");
        op = asked(c, SNIB__QUERY, SNIB_KIND_SEMAPHORE, 0);
        (void)pump_do(c, &op);
        last = asked(c, SNIB__QUERY, SNIB_KIND_SEMAPHORE, 0);
        assert_int_equal(pump_do(c, &last).value, 3);
        pump_close(c);
}

static void F48_a_full_server_takes_back_and_renews(void **state)
{
        struct snib__op took = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2), held, op;

        (void)state;
        kit_do("SET x 3");
        assert_int_equal(pump_do(kit_a, &took).status, SNIB__GRANTED);
        held = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, 2);
        held.name = (struct snib__name){"p", 1};
        kit_do("SET p 3");
        assert_int_equal(pump_do(kit_a, &held).status, SNIB__GRANTED);
        kit_do("SET latch 2");
        kit_do("CONFIG SET maxmemory 1");
        op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 1);
        is_refused(kit_a, &op, SNIB_EREFUSED);
        op = asked(kit_a, SNIB__ADD, SNIB_KIND_SEMAPHORE, -1);
        is_refused(kit_a, &op, SNIB_EREFUSED);
        op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, 1);
        op.name = held.name;
        is_refused(kit_a, &op, SNIB_EREFUSED);
        assert_false(done(SNIB__SET, SNIB_KIND_SEMAPHORE, 9).applied); /* there is no room to remember that */
        assert_int_equal(pump_do(kit_a, &held).status, SNIB__GRANTED); /* confirmed */
        held.verb = SNIB__RENEW;
        assert_int_equal(pump_do(kit_a, &held).status, SNIB__RENEWED);
        took.verb = held.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &took).status, SNIB__RELEASED);
        changes(SNIB__ADD, SNIB_KIND_SEMAPHORE, 2, 5);
        assert_int_equal(pump_do(kit_a, &held).status, SNIB__RELEASED);
        kit_text_is("3", "GET p");
        op = asked(kit_a, SNIB__ADD, SNIB_KIND_LATCH, -1);
        op.name = (struct snib__name){"latch", 5};
        assert_int_equal(pump_do(kit_a, &op).value, 1);
        kit_do("CONFIG SET maxmemory 0");
}

static void F100_numbers_stay_in_their_range(void **state)
{
        struct snib__op op = asked(kit_a, SNIB__ADD, SNIB_KIND_SEMAPHORE, SNIB__NUMBER_MAX);

        (void)state;
        kit_do("SET x 1");
        is_refused(kit_a, &op, SNIB_ELIMIT);
        kit_text_is("1", "GET x");
        op = asked(kit_a, SNIB__ADD, SNIB_KIND_PERMITS, SNIB__NUMBER_MAX);
        is_refused(kit_a, &op, SNIB_ELIMIT);
        op = asked(kit_a, SNIB__ADD, SNIB_KIND_PERMITS, -2);
        is_refused(kit_a, &op, SNIB_ELIMIT);
        kit_text_is("1", "GET x");
        assert_int_equal(kit_number("EXISTS snib_request:{x}:%s", op.id.text), 0);
        kit_do("SET x 2147483647"); /* an undo that would leave the range fills it */
        op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, 2);
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        kit_do("SET x 2147483646");
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RELEASED);
        kit_text_is("2147483647", "GET x");
}

static void what_nobody_knows_is_refused(void **state)
{
        static const struct {
                int kind;
                enum snib__verb verb;
        } odd[] = {{SNIB_KIND_COUNTER, SNIB__ACQUIRE}, {SNIB_KIND_ANY, SNIB__ACQUIRE}, {1000, SNIB__QUERY},
                   {SNIB_KIND_LOCK, SNIB__SET},        {SNIB_KIND_LATCH, 33},          {SNIB_KIND_READ, SNIB__OBSERVE}};

        (void)state;
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
                struct snib__op op = asked(kit_a, odd[i].verb, odd[i].kind, 1);
                long long before = kit_number("DBSIZE");
                struct snib__reply r = pump_do(kit_a, &op);

                assert_int_equal(r.status, SNIB__FAILED);
                assert_int_equal(r.error, SNIB_EUNSUPPORTED);
                assert_string_equal(r.error_text, snib__kind_refusal(odd[i].kind, odd[i].verb, false));
                assert_int_equal(kit_number("DBSIZE"), before);
        }
}

/* What stands under a name is not touched by requests about something else. */
static void F52_other_keys_are_left_alone(void **state)
{
        static const char *const things[] = {"HSET x f 1", "SET x hello", "RPUSH x 1", "SET x 1.5", "SET x 0x10"};
        static const int kinds[] = {SNIB_KIND_SEMAPHORE, SNIB_KIND_PERMITS, SNIB_KIND_LATCH, SNIB_KIND_REGISTER};

        (void)state;
        for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
                for (size_t k = 0; k < 4; k++)
                        for (int verb = SNIB__ACQUIRE; verb <= SNIB__DELETE; verb++) {
                                struct snib__op op = asked(kit_a, (enum snib__verb)verb, kinds[k], 1);
                                struct snib__reply r;
                                op.expected = -1;
                                op.n = verb == SNIB__ADD && kinds[k] == SNIB_KIND_LATCH ? -1 : 1;
                                kit_do("DEL x");
                                kit_do("%s", things[i]);
                                long long before = kit_number("DBSIZE");
                                r = pump_do(kit_a, &op);
                                assert_int_equal(r.status, SNIB__FAILED);
                                assert_true(r.error == SNIB_EKIND || r.error == SNIB_EUNSUPPORTED);
                                assert_int_equal(kit_number("DBSIZE"), before);
                        }
        kit_do("DEL x");
        kit_do("SET x 1");
        kit_do("SET {x}:timeout 1"); /* permits whose second key is something else */
        for (int verb = SNIB__ACQUIRE; verb <= SNIB__FORCE; verb++) {
                struct snib__op op = asked(kit_a, (enum snib__verb)verb, SNIB_KIND_PERMITS, 1);
                is_refused(kit_a, &op, SNIB_EKIND);
        }
        kit_text_is("1", "GET x");
        kit_text_is("1", "GET {x}:timeout");
        kit_heard_nothing();
}

/* ---- permits */

static struct snib__op permits(struct pump *p, enum snib__verb verb, const struct snib__id *id, int64_t n,
                               int64_t lease_ms)
{
        struct snib__op op = asked(p, verb, SNIB_KIND_PERMITS, n);

        if (id)
                op.id = *id;
        op.lease_ms = lease_ms;
        return op;
}

static enum snib__status by_ids(enum snib__verb verb, char (*ids)[33], size_t count)
{
        struct snib__op op = permits(kit_b, verb, NULL, 1, 40000);

        op.permits = (const char(*)[33])ids;
        op.permit_count = count;
        return pump_do(kit_b, &op).status;
}

/* The score of permit `index` of a hold, whose member is 16 bytes; -1: it is not out. */
static long long score(const struct snib__id *hold, int64_t index)
{
        char hex[33];
        unsigned char raw[16];
        redisReply *r;
        long long n;

        assert_true(snib__permit_id(hold, index, hex));
        for (int i = 0; i < 16; i++)
                assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &raw[i]), 1);
        r = redis_server_do(kit_server, "ZSCORE {x}:timeout %b", raw, sizeof(raw));
        n = r->type == REDIS_REPLY_STRING ? strtoll(r->str, NULL, 10) : -1;
        freeReplyObject(r);
        return n;
}

static void permits_are_redissons_string_and_set(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 2, 30000), forever;

        (void)state;
        changes(SNIB__SET, SNIB_KIND_PERMITS, 5, 5);
        kit_heard(CHANNEL, "5");
        struct snib__reply r = pump_do(kit_a, &op);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_true(r.token > INT64_C(1700000000000000));
        kit_text_is("3", "GET x");
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 2);
        kit_near(score(&op.id, 0), kit_now_ms() + 30000, 10000);
        assert_int_equal(score(&op.id, 1), score(&op.id, 0));
        forever = permits(kit_b, SNIB__ACQUIRE, NULL, 1, 0);
        assert_int_equal(pump_do(kit_b, &forever).status, SNIB__GRANTED);
        assert_int_equal(score(&forever.id, 0), NEVER);
        kit_heard_nothing();
        op.token = r.token;
        op.lease_ms = 50000;
        assert_int_equal(pump_do(kit_a, &op).token, r.token);
        kit_near(score(&op.id, 1), kit_now_ms() + 50000, 10000);
        kit_text_is("2", "GET x");
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RELEASED);
        kit_heard(CHANNEL, "4");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        op.verb = SNIB__ACQUIRE; /* executed late, it begins no hold */
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        kit_text_is("4", "GET x");
        kit_heard_nothing();
}

static void F99_permits_are_taken_all_or_none(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 3, 30000), more;
        struct snib__reply r;

        (void)state;
        kit_do("SET x 4");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        more = permits(kit_b, SNIB__ACQUIRE, NULL, 2, 30000);
        r = pump_do(kit_b, &more);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.value, 1);
        kit_near(r.left_ms, 30000, 10000);
        kit_text_is("1", "GET x");
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 3);
        r = done(SNIB__QUERY, SNIB_KIND_PERMITS, 0);
        assert_true(r.held);
        assert_int_equal(r.value, 1);
        assert_int_equal(r.holders, 3);
        assert_int_equal(r.limit, 4);
        kit_near(r.left_ms, 30000, 10000);
}

static void permits_are_released_and_renewed_by_their_ids(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 3, 30000), again, early;
        char ids[3][33];

        (void)state;
        kit_do("SET x 3");
        for (int i = 0; i < 3; i++)
                assert_true(snib__permit_id(&op.id, i, ids[i]));
        early = permits(kit_b, SNIB__RELEASE, NULL, 1, 0);
        early.permits = (const char(*)[33])ids;
        early.permit_count = 1;
        assert_int_equal(pump_do(kit_b, &early).status, SNIB__GONE);
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        assert_int_equal(pump_do(kit_b, &early).status, SNIB__GONE); /* an older copy, of what was refused before */
        kit_text_is("0", "GET x");
        assert_int_equal(by_ids(SNIB__RENEW, ids, 1), SNIB__RENEWED);
        kit_near(score(&op.id, 0), kit_now_ms() + 40000, 10000);
        kit_near(score(&op.id, 1), kit_now_ms() + 30000, 10000);
        again = permits(kit_b, SNIB__RELEASE, NULL, 1, 0);
        again.permits = (const char(*)[33])ids;
        again.permit_count = 1;
        assert_int_equal(pump_do(kit_b, &again).status, SNIB__RELEASED);
        kit_heard(CHANNEL, "1");
        assert_int_equal(pump_do(kit_b, &again).status, SNIB__RELEASED); /* the same request */
        assert_int_equal(by_ids(SNIB__RELEASE, ids, 3), SNIB__GONE);     /* the first one is not out */
        assert_int_equal(by_ids(SNIB__RENEW, ids, 3), SNIB__GONE);
        kit_text_is("1", "GET x");
        memcpy(ids[0], ids[1], sizeof(ids[0]));
        assert_int_equal(by_ids(SNIB__RELEASE, ids, 2), SNIB__GONE); /* one, named twice */
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 2);
        op.verb = SNIB__RENEW; /* the hold is not whole any more */
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RELEASED);
        kit_text_is("3", "GET x");
        kit_heard(CHANNEL, "3");
        kit_heard_nothing();
}

/* Redisson up to 3.16 writes ids as text. */
static void permits_of_old_java_clients_are_found(void **state)
{
        char ids[2][33] = {"00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"};

        (void)state;
        kit_do("SET x 1");
        for (int i = 0; i < 2; i++)
                kit_do("ZADD {x}:timeout %lld %s", kit_now_ms() + 20000, ids[i]);
        assert_int_equal(by_ids(SNIB__RENEW, ids, 2), SNIB__RENEWED);
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 2);
        kit_near(kit_number("ZSCORE {x}:timeout %s", ids[1]), kit_now_ms() + 40000, 10000);
        assert_int_equal(by_ids(SNIB__RELEASE, ids, 2), SNIB__RELEASED);
        kit_text_is("3", "GET x");
        kit_heard(CHANNEL, "3");
        assert_int_equal(kit_number("EXISTS {x}:timeout"), 0);
        assert_int_equal(by_ids(SNIB__RELEASE, ids, 1), SNIB__GONE);
}

static void expired(int count)
{
        redisReply *r = redis_server_do(
            kit_server, "EVAL %s 1 {x}:timeout %d %lld",
            "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], ARGV[2], string.format('%016d', i)) end return ARGV[1]",
            count, kit_now_ms() - 1000);

        assert_non_null(r);
        assert_int_not_equal(r->type, REDIS_REPLY_ERROR);
        freeReplyObject(r);
}

static void twenty_thousand_expired_permits_come_back(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 3, 30000);
        struct snib__reply r;

        (void)state;
        kit_do("SET x 0");
        expired(20000);
        r = done(SNIB__QUERY, SNIB_KIND_PERMITS, 0);
        assert_int_equal(r.value, 20000);
        assert_int_equal(r.holders, 0);
        assert_int_equal(r.left_ms, -1);
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 20000); /* a question changes nothing */
        kit_heard_nothing();
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        kit_text_is("19997", "GET x");
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 3);
        kit_heard(CHANNEL, "19997");
}

/* Whoever comes first takes back what expired: then all waiters hear of it. */
static void every_request_takes_expired_permits_back(void **state)
{
        static const struct {
                enum snib__verb verb;
                int64_t n;
                const char *after;
        } rows[] = {{SNIB__RENEW, 1, "3"}, {SNIB__RELEASE, 1, "3"}, {SNIB__RESIZE, 6, "6"},
                    {SNIB__ADD, 2, "5"},   {SNIB__FORCE, 0, "3"},   {SNIB__ACQUIRE, 9, "3"}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct snib__op op = asked(kit_a, rows[i].verb, SNIB_KIND_PERMITS, rows[i].n);
                kit_do("SET x 1");
                expired(2);
                assert_int_not_equal(pump_do(kit_a, &op).status, SNIB__FAILED);
                kit_text_is(rows[i].after, "GET x");
                assert_int_equal(kit_number("EXISTS {x}:timeout"), 0);
                kit_heard(CHANNEL, rows[i].after);
        }
}

static void an_expired_permit_cannot_be_renewed(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 1, 30000);
        redisReply *r;

        (void)state;
        kit_do("SET x 1");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        r = redis_server_do(
            kit_server, "EVAL %s 1 {x}:timeout",
            "local m = redis.call('ZRANGE', KEYS[1], 0, 0) return redis.call('ZADD', KEYS[1], 1, m[1])");
        freeReplyObject(r);
        op.verb = SNIB__RENEW;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        kit_text_is("1", "GET x");
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        kit_text_is("1", "GET x");
}

static void F100_a_limit_is_lowered_while_permits_are_out(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 3, 30000);
        struct snib__reply r;

        (void)state;
        kit_do("SET x 3");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        changes(SNIB__RESIZE, SNIB_KIND_PERMITS, 1, -2);
        kit_text_is("-2", "GET x");
        r = done(SNIB__QUERY, SNIB_KIND_PERMITS, 0);
        assert_int_equal(r.value, -2);
        assert_int_equal(r.limit, 1);
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_PERMITS, 1).status, SNIB__BUSY);
        kit_heard_nothing();
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RELEASED);
        kit_heard(CHANNEL, "1");
        changes(SNIB__RESIZE, SNIB_KIND_PERMITS, 4, 4);
        kit_heard(CHANNEL, "4");
        changes(SNIB__ADD, SNIB_KIND_PERMITS, -1, 3);
        kit_heard_nothing();
}

static void permits_are_forced_and_deleted(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 3, 30000);
        struct snib__reply r;

        (void)state;
        kit_do("SET x 4");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        r = done(SNIB__FORCE, SNIB_KIND_PERMITS, 0);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.held);
        assert_int_equal(r.holders, 3);
        kit_text_is("4", "GET x");
        kit_heard(CHANNEL, "4");
        assert_false(done(SNIB__FORCE, SNIB_KIND_PERMITS, 0).held);
        kit_heard_nothing();
        op = permits(kit_a, SNIB__ACQUIRE, NULL, 1, 30000);
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        changes(SNIB__DELETE, SNIB_KIND_PERMITS, 0, -1);
        assert_int_equal(kit_number("EXISTS x {x}:timeout"), 0);
        op.verb = SNIB__RENEW;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        assert_int_equal(kit_number("EXISTS x {x}:timeout"), 0);
        kit_heard_nothing();
}

/* The number went (evicted, deleted by hand), those who are out did not. */
static void permits_without_their_number(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 2, 30000);

        (void)state;
        kit_do("SET x 3");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        kit_do("DEL x");
        assert_false(done(SNIB__QUERY, SNIB_KIND_PERMITS, 0).held);
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_PERMITS, 1).value, -1);
        op.verb = SNIB__RENEW;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RENEWED);
        changes(SNIB__SET, SNIB_KIND_PERMITS, 3, 1);
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RELEASED);
        kit_text_is("3", "GET x");
}

static void permits_live_as_long_as_their_number(void **state)
{
        (void)state;
        kit_do("SET x 3 PX 70000");
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_PERMITS, 1).status, SNIB__GRANTED);
        kit_near(kit_number("PTTL {x}:timeout"), 70000, 20000);
        kit_near(kit_number("PTTL x"), 70000, 20000);
}

static void a_thousand_permits_at_once(void **state)
{
        struct snib__op op = permits(kit_a, SNIB__ACQUIRE, NULL, 1000, 30000);

        (void)state;
        kit_do("SET x 1500");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GRANTED);
        assert_int_equal(kit_number("ZCARD {x}:timeout"), 1000);
        op.verb = SNIB__RENEW;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RENEWED);
        op.verb = SNIB__RELEASE;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__RELEASED);
        kit_text_is("1500", "GET x");
}

/* ---- latch */

static void a_latch_is_redissons_string(void **state)
{
        (void)state;
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_LATCH, 1).status, SNIB__GRANTED);
        changes(SNIB__SET, SNIB_KIND_LATCH, 3, 3);
        kit_text_is("3", "GET x");
        assert_int_equal(kit_number("PTTL x"), -1);
        kit_heard(LATCH_CHANNEL, "1");
        assert_false(done(SNIB__SET, SNIB_KIND_LATCH, 9).applied);
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_LATCH, 1).status, SNIB__BUSY);
        changes(SNIB__ADD, SNIB_KIND_LATCH, -1, 2);
        kit_heard_nothing();
        assert_int_equal(done(SNIB__QUERY, SNIB_KIND_LATCH, 0).value, 2);
        changes(SNIB__ADD, SNIB_KIND_LATCH, -5, 0);
        assert_int_equal(kit_number("EXISTS x"), 0);
        kit_heard(LATCH_CHANNEL, "0");
        assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_LATCH, 1).status, SNIB__GRANTED);
        assert_false(done(SNIB__ADD, SNIB_KIND_LATCH, -1).applied);
        kit_heard_nothing();
}

static void F103_deleting_a_latch_opens_it(void **state)
{
        (void)state;
        kit_do("SET x 2");
        changes(SNIB__DELETE, SNIB_KIND_LATCH, 0, 0);
        assert_int_equal(kit_number("EXISTS x"), 0);
        kit_heard(LATCH_CHANNEL, "0");
        assert_false(done(SNIB__DELETE, SNIB_KIND_LATCH, 0).applied);
        kit_heard_nothing();
}

/* trySetCount(0) leaves such a key, which Java cannot set again. */
static void a_latch_that_java_left_at_zero_is_open(void **state)
{
        static const char *const left[] = {"SET x 0", "SET x -3"};

        (void)state;
        for (int i = 0; i < 2; i++) {
                kit_do("%s", left[i]);
                assert_int_equal(done(SNIB__ACQUIRE, SNIB_KIND_LATCH, 1).status, SNIB__GRANTED);
                assert_false(done(SNIB__QUERY, SNIB_KIND_LATCH, 1).held);
                assert_false(done(SNIB__ADD, SNIB_KIND_LATCH, -1).applied);
                changes(SNIB__SET, SNIB_KIND_LATCH, 2, 2);
                kit_heard(LATCH_CHANNEL, "1");
                kit_do("%s", left[i]);
                assert_false(done(SNIB__DELETE, SNIB_KIND_LATCH, 0).applied);
                assert_int_equal(kit_number("EXISTS x"), 0);
        }
        kit_heard_nothing();
}

static void a_latchs_channel_always_gets_braces(void **state)
{
        struct snib__op op = asked(kit_a, SNIB__SET, SNIB_KIND_LATCH, 1);

        (void)state;
        op.name = (struct snib__name){"a{b}c", 5};
        assert_true(pump_do(kit_a, &op).applied);
        kit_heard("redisson_countdownlatch__channel__{a{b}c}", "1");
        kit_near(kit_number("PTTL snib_request:a{b}c:%s", op.id.text), 60000, 20000);
}

/* ---- register */

static struct snib__op writing(const char *value, size_t length, int64_t expected)
{
        struct snib__op op = asked(kit_a, SNIB__WRITE, SNIB_KIND_REGISTER, 0);

        op.data = value;
        op.data_length = length;
        op.expected = expected;
        return op;
}

static void a_register_has_a_value_and_a_version(void **state)
{
        struct snib__op op = writing("one", 3, 0);
        struct snib__reply r = pump_do(kit_a, &op);
        int64_t first = r.value;
        char text[32];

        (void)state;
        assert_true(r.status == SNIB__DONE && r.applied);
        kit_near(first / 1000, kit_now_ms(), 10000);
        snprintf(text, sizeof(text), "%lld", (long long)first);
        kit_text_is("register", "HGET x snib");
        kit_text_is(text, "HGET x version");
        kit_text_is("one", "HGET x value");
        assert_int_equal(kit_number("HLEN x"), 3);
        assert_int_equal(kit_number("PTTL x"), -1);
        kit_heard("snib_register:{x}", text);
        op = writing("two", 3, 0); /* there is one */
        r = pump_do(kit_a, &op);
        assert_false(r.applied);
        assert_int_equal(r.value, first);
        op = writing("two", 3, first);
        r = pump_do(kit_a, &op);
        assert_true(r.applied && r.value > first);
        op = writing("three", 5, first);
        assert_false(pump_do(kit_a, &op).applied);
        op = asked(kit_a, SNIB__QUERY, SNIB_KIND_REGISTER, 0);
        r = pump_do(kit_a, &op);
        assert_true(r.held && r.token > first);
        assert_int_equal(r.data_length, 3);
        assert_memory_equal(r.data, "two", 3);
}

static void a_version_is_never_used_again(void **state)
{
        struct snib__op op = writing("one", 3, -1), gone;
        int64_t version = pump_do(kit_a, &op).value;

        (void)state;
        gone = asked(kit_a, SNIB__DELETE, SNIB_KIND_REGISTER, 0);
        gone.expected = version - 1;
        assert_false(pump_do(kit_a, &gone).applied);
        gone = asked(kit_a, SNIB__DELETE, SNIB_KIND_REGISTER, 0);
        gone.expected = version;
        assert_true(pump_do(kit_a, &gone).applied);
        assert_int_equal(kit_number("EXISTS x"), 0);
        op = writing("two", 3, 0);
        assert_true(pump_do(kit_a, &op).value > version);
        kit_do("HSET x version 8000000000000000"); /* a clock that was ahead: the next is higher all the same */
        op = writing("three", 5, INT64_C(8000000000000000));
        assert_int_equal(pump_do(kit_a, &op).value, INT64_C(8000000000000001));
}

static void a_register_is_observed(void **state)
{
        struct snib__op look = asked(kit_b, SNIB__OBSERVE, SNIB_KIND_REGISTER, 0), op;
        struct snib__reply r;
        int64_t version;

        (void)state;
        assert_int_equal(pump_do(kit_b, &look).status, SNIB__BUSY);
        op = writing("one", 3, -1);
        version = pump_do(kit_a, &op).value;
        r = pump_do(kit_b, &look);
        assert_int_equal(r.status, SNIB__INFO);
        assert_int_equal(r.token, version);
        assert_memory_equal(r.data, "one", 3);
        look.token = version;
        assert_int_equal(pump_do(kit_b, &look).status, SNIB__BUSY);
        op = asked(kit_a, SNIB__DELETE, SNIB_KIND_REGISTER, 0);
        op.expected = -1;
        assert_true(pump_do(kit_a, &op).applied);
        r = pump_do(kit_b, &look);
        assert_int_equal(r.status, SNIB__INFO);
        assert_int_equal(r.token, 0);
        assert_false(r.held);
}

static void a_value_is_a_mebibyte_of_any_bytes(void **state)
{
        size_t length = SNIB_REGISTER_MAX;
        char *value = malloc(length);
        struct snib__op op, question = asked(kit_a, SNIB__QUERY, SNIB_KIND_REGISTER, 0);
        struct snib__reply r;

        (void)state;
        assert_non_null(value);
        for (size_t i = 0; i < length; i++)
                value[i] = (char)(i * 7 + i / 251);
        op = writing(value, length, -1);
        assert_true(pump_do(kit_a, &op).applied);
        r = pump_do(kit_a, &question);
        assert_int_equal(r.data_length, length);
        assert_memory_equal(r.data, value, length);
        op = writing("", 0, -1);
        assert_true(pump_do(kit_a, &op).applied);
        r = pump_do(kit_a, &question);
        assert_true(r.held);
        assert_int_equal(r.data_length, 0);
        free(value);
}

static void other_hashes_are_no_registers(void **state)
{
        static const char *const hashes[] = {"HSET x snib register version nan value v",
                                             "HSET x snib register version 99999999999999999 value v",
                                             "HSET x snib register version -1 value v", "HSET x version 1 value v"};

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                struct snib__op op = writing("v", 1, -1);
                kit_do("DEL x");
                kit_do("%s", hashes[i]);
                is_refused(kit_a, &op, SNIB_EKIND);
                op = asked(kit_a, SNIB__QUERY, SNIB_KIND_REGISTER, 0);
                is_refused(kit_a, &op, SNIB_EKIND);
                op = asked(kit_a, SNIB__DELETE, SNIB_KIND_REGISTER, 0);
                is_refused(kit_a, &op, SNIB_EKIND);
                assert_int_equal(kit_number("EXISTS x"), 1);
        }
        kit_heard_nothing();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_with_past, kit_close)

int main(void)
{
        static const struct CMUnitTest tests[] = {
            TEST(a_semaphore_is_redissons_string),
            TEST(a_semaphore_keeps_its_ttl),
            TEST(F97_what_does_not_exist_stays_so),
            TEST(no_negative_number_is_published),
            TEST(F18_an_acquire_is_undone_whenever_it_arrives),
            TEST(F102_repeated_requests_count_once),
            TEST(F102_a_repetition_that_was_refused_stays_refused),
            TEST(a_first_copy_that_was_refused_is_not_remembered),
            TEST(a_repeated_deletion_leaves_the_next_one),
            TEST(requests_are_remembered_while_they_may_be_repeated),
            TEST(F15_a_late_answer_does_not_end_the_memory),
            TEST(F15_an_answer_that_nobody_heard_keeps_its_memory),
            TEST(F18_an_acquire_that_was_just_answered_can_be_undone),
            TEST(F48_a_full_server_takes_back_and_renews),
            TEST(F100_numbers_stay_in_their_range),
            TEST(F52_other_keys_are_left_alone),
            TEST(permits_are_redissons_string_and_set),
            TEST(F99_permits_are_taken_all_or_none),
            TEST(permits_are_released_and_renewed_by_their_ids),
            TEST(permits_of_old_java_clients_are_found),
            TEST(twenty_thousand_expired_permits_come_back),
            TEST(every_request_takes_expired_permits_back),
            TEST(an_expired_permit_cannot_be_renewed),
            TEST(F100_a_limit_is_lowered_while_permits_are_out),
            TEST(permits_are_forced_and_deleted),
            TEST(permits_without_their_number),
            TEST(permits_live_as_long_as_their_number),
            TEST(a_thousand_permits_at_once),
            TEST(a_latch_is_redissons_string),
            TEST(F103_deleting_a_latch_opens_it),
            TEST(a_latch_that_java_left_at_zero_is_open),
            TEST(a_latchs_channel_always_gets_braces),
            TEST(a_register_has_a_value_and_a_version),
            TEST(a_version_is_never_used_again),
            TEST(a_register_is_observed),
            TEST(what_nobody_knows_is_refused),
            TEST(a_value_is_a_mebibyte_of_any_bytes),
            TEST(other_hashes_are_no_registers),
        };

        return kit_run(tests, kit_start, kit_stop);
}
