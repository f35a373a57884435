/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fair locks, read-write locks, spin locks and elections of the Redis engine against a real server:
 * what is answered, what stands in the server afterwards, key by key as Redisson has it, and which
 * messages go out. Two clients, and a listener that hears every message. What Java clients leave is
 * written by hand.
 */

#include <inttypes.h>
#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"

#define JAVA1 "b2a3c0de-1111-4222-8333-444455556666:42"
#define JAVA2 "b2a3c0de-1111-4222-8333-444455556666:43"

/* ---- short hands */

/* The elements of the answer, joined by single spaces. */
static void answer_is(const char *expected, const char *command)
{
        char text[2048] = "";
        redisReply *r = redis_server_do(kit_server, command);

        assert_non_null(r);
        assert_int_equal(r->type, REDIS_REPLY_ARRAY);
        for (size_t i = 0; i < r->elements; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", r->element[i]->str);
        freeReplyObject(r);
        assert_string_equal(text, expected);
}

static struct snib__op asked(struct pump *p, enum snib__verb verb, int kind, const struct snib__id *id)
{
        struct snib__op op = pump_op(p, verb, "x", id ? *id : (struct snib__id){{0}}, 30000);

        op.kind = kind;
        op.enqueue = verb == SNIB__ACQUIRE && kind == SNIB_KIND_FAIR;
        return op;
}

static struct snib__reply with(struct pump *p, enum snib__verb verb, int kind, const struct snib__id *id)
{
        struct snib__op op = asked(p, verb, kind, id);

        return pump_do(p, &op);
}

static struct snib__reply leased(struct pump *p, enum snib__verb verb, int kind, const struct snib__id *id,
                                 int64_t lease)
{
        struct snib__op op = asked(p, verb, kind, id);

        op.lease_ms = lease;
        return pump_do(p, &op);
}

static struct snib__id granted(struct pump *p, int kind)
{
        struct snib__id id = pump_id(p);
        struct snib__reply r = with(p, SNIB__ACQUIRE, kind, &id);

        if (r.status != SNIB__GRANTED)
                fail_msg("status %d, error %s", r.status, r.status == SNIB__FAILED ? r.error_text : "none");
        assert_true(r.token > INT64_C(1700000000000000));
        return id;
}

static struct snib__id queued(struct pump *p, int64_t place)
{
        struct snib__id id = pump_id(p);
        struct snib__reply r = with(p, SNIB__ACQUIRE, SNIB_KIND_FAIR, &id);

        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.position, place);
        assert_true(r.waiters >= place);
        return id;
}

static void released(struct pump *p, int kind, const struct snib__id *id)
{
        assert_int_equal(with(p, SNIB__RELEASE, kind, id).status, SNIB__RELEASED);
}

static void turn_message(const struct snib__id *id)
{
        char channel[128];

        snprintf(channel, sizeof(channel), "redisson_lock__channel:{x}:%s", id->text);
        kit_heard(channel, "0");
}

static void queue_is(const char *first, const char *second)
{
        char text[256];

        snprintf(text, sizeof(text), "%s%s%s", first, second ? " " : "", second ? second : "");
        answer_is(text, "LRANGE redisson_lock_queue:{x} 0 -1");
        assert_int_equal(kit_number("ZCARD redisson_lock_timeout:{x}"), kit_number("LLEN redisson_lock_queue:{x}"));
}

#define TURN(id) kit_number("ZSCORE redisson_lock_timeout:{x} %s", (id).text)

/* ---- fair */

static void fair_waiters_stand_in_redissons_queue(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first, second;
        struct snib__reply r;

        (void)state;
        first = queued(kit_b, 1);
        kit_near(TURN(first), kit_now_ms() + 30000 + 300000, 1000);
        kit_near(kit_number("ZSCORE snib_waiting:{x} %s", first.text), kit_now_ms() + 5000, 1000);
        second = queued(kit_a, 2);
        assert_int_equal(TURN(second), TURN(first) + 300000);
        queue_is(first.text, second.text);
        kit_near(kit_number("PTTL redisson_lock_queue:{x}"), 86400000, 60000);
        kit_near(kit_number("PTTL redisson_lock_timeout:{x}"), 86400000, 60000);
        kit_near(kit_number("PTTL snib_waiting:{x}"), 86400000, 60000);
        assert_int_equal(kit_number("HGET x %s", holder.text), 1);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        /* Asking again keeps the place, and is no second one. */
        r = with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first);
        assert_int_equal(r.position, 1);
        assert_int_equal(r.waiters, 2);
        assert_true(r.held && r.left_ms > 29000);
        assert_string_equal(r.holder.id.text, holder.text);
        queue_is(first.text, second.text);
        r = with(kit_b, SNIB__QUERY, SNIB_KIND_FAIR, NULL);
        assert_int_equal(r.waiters, 2);
        assert_false(r.waiters_at_least);
        assert_int_equal(with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL).kind, SNIB_KIND_FAIR);
        kit_heard_nothing();
}

static void fair_one_try_leaves_nothing(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), waiter, id = pump_id(kit_b);
        struct snib__op op = asked(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &id);
        struct snib__reply r;

        (void)state;
        op.enqueue = false;
        r = pump_do(kit_b, &op);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.position, 0);
        assert_int_equal(kit_number("EXISTS redisson_lock_queue:{x} redisson_lock_timeout:{x} snib_waiting:{x}"), 0);
        waiter = queued(kit_a, 1);
        released(kit_a, SNIB_KIND_FAIR, &holder);
        r = pump_do(kit_b, &op); /* free, but there is one before us */
        assert_int_equal(r.status, SNIB__BUSY);
        assert_false(r.held);
        assert_int_equal(r.left_ms, -1);
        assert_int_equal(r.waiters, 1);
        queue_is(waiter.text, NULL);
}

static void F92_release_tells_the_head_and_nobody_else(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1), second = queued(kit_a, 2);
        struct snib__topic topic = {{"x", 1}, SNIB_KIND_FAIR, first}, other = {{"x", 1}, SNIB_KIND_FAIR, second};
        struct pump_note n;
        long long turn;

        (void)state;
        kit_b->engine->ops->watch(kit_b->engine, &topic, pump_now());
        n = pump_wait(kit_b, SNIB__NOTE_WATCHING);
        assert_string_equal(n.note.id.text, first.text);
        assert_string_equal(n.name, "x");
        kit_a->engine->ops->watch(kit_a->engine, &other, pump_now());
        (void)pump_wait(kit_a, SNIB__NOTE_WATCHING);
        released(kit_a, SNIB_KIND_FAIR, &holder);
        turn_message(&first);
        n = pump_wait(kit_b, SNIB__NOTE_GRANTED);
        assert_string_equal(n.note.id.text, first.text);
        assert_string_equal(n.name, "x");
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &second).position, 2); /* free, but not its turn */
        turn_message(&first); /* which reminds whose turn it is */
        assert_false(pump_try(kit_a, SNIB__NOTE_GRANTED, 0, &n));
        turn = TURN(second);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).status, SNIB__GRANTED);
        queue_is(second.text, NULL);
        assert_int_equal(TURN(second), turn - 300000); /* as Redisson: the turn before it is over */
        kit_heard_nothing();
        kit_b->engine->ops->unwatch(kit_b->engine, &topic, pump_now());
        released(kit_b, SNIB_KIND_FAIR, &first);
        turn_message(&second);
        assert_string_equal(pump_wait(kit_a, SNIB__NOTE_GRANTED).note.id.text, second.text);
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &second).status, SNIB__GRANTED);
        released(kit_a, SNIB_KIND_FAIR, &second);
        kit_heard_nothing();
        assert_int_equal(
            kit_number("DBSIZE") - kit_number("EXISTS snib_client:{%s} snib_client:{%s}", kit_a->uuid, kit_b->uuid), 0);
}

static void F88_fifty_waiters_are_served_in_order(void **state)
{
        struct snib__id id[51];

        (void)state;
        id[0] = granted(kit_a, SNIB_KIND_FAIR);
        for (int i = 1; i <= 50; i++)
                id[i] = queued(i % 2 ? kit_b : kit_a, i);
        for (int i = 0; i < 50; i++) {
                struct snib__id latest = id[50];
                released(i % 2 ? kit_b : kit_a, SNIB_KIND_FAIR, &id[i]);
                if (i < 49) /* whoever asks out of turn stays where it is */
                        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &latest).position, 50 - i);
                assert_int_equal(with((i + 1) % 2 ? kit_b : kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &id[i + 1]).status,
                                 SNIB__GRANTED);
        }
        assert_int_equal(kit_number("EXISTS redisson_lock_queue:{x} redisson_lock_timeout:{x} snib_waiting:{x}"), 0);
}

static void F92_whoever_gives_up_passes_its_turn_on(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1), second = queued(kit_b, 2),
                        third = queued(kit_a, 3);
        long long turn = TURN(third);

        (void)state;
        released(kit_b, SNIB_KIND_FAIR, &second); /* from the middle, while it is held: nobody has to know */
        kit_heard_nothing();
        queue_is(first.text, third.text);
        assert_int_equal(TURN(third), turn - 300000);
        released(kit_a, SNIB_KIND_FAIR, &holder);
        turn_message(&first);
        released(kit_b, SNIB_KIND_FAIR, &first);
        turn_message(&third);
        assert_int_equal(with(kit_b, SNIB__RELEASE, SNIB_KIND_FAIR, &first).status, SNIB__GONE);
        turn_message(&third);
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &third).status, SNIB__GRANTED);
        assert_int_equal(kit_number("EXISTS redisson_lock_queue:{x} redisson_lock_timeout:{x} snib_waiting:{x}"), 0);
}

static void F89_our_dead_are_skipped_wherever_they_stand(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1), second = queued(kit_a, 2),
                        third = queued(kit_b, 3), last = queued(kit_a, 4);
        long long turn = TURN(last);

        (void)state;
        released(kit_a, SNIB_KIND_FAIR, &holder);
        turn_message(&first);
        kit_do("ZADD snib_waiting:{x} 1 %s 1 %s", first.text, third.text); /* unheard for too long */
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &last).position, 2);
        turn_message(&second);
        queue_is(second.text, last.text);
        assert_int_equal(TURN(last), turn - 600000);
        assert_int_equal(kit_number("ZCARD snib_waiting:{x}"), 2);
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &second).status, SNIB__GRANTED);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).position,
                         2); /* it lived: at the end again */
}

static void F89_release_and_force_skip_the_dead(void **state)
{
        (void)state;
        for (int verb = SNIB__RELEASE; verb <= SNIB__FORCE; verb += SNIB__FORCE - SNIB__RELEASE) {
                struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), dead = queued(kit_b, 1),
                                second = queued(kit_a, 2);

                kit_do("ZADD snib_waiting:{x} 1 %s", dead.text);
                assert_true(with(kit_a, (enum snib__verb)verb, SNIB_KIND_FAIR, &holder).status ==
                            (verb == SNIB__FORCE ? SNIB__INFO : SNIB__RELEASED));
                turn_message(&second);
                queue_is(second.text, NULL);
                kit_do("FLUSHALL");
        }
}

static void F90_java_waiters_are_purged_by_redissons_rule(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), ours;

        (void)state;
        kit_do("RPUSH redisson_lock_queue:{x} " JAVA1);
        kit_do("ZADD redisson_lock_timeout:{x} %lld " JAVA1, kit_now_ms() + 60000);
        ours = queued(kit_b, 2);
        kit_near(TURN(ours), kit_now_ms() + 60000 + 300000, 1000); /* chained behind the Java waiter's */
        released(kit_a, SNIB_KIND_FAIR, &holder);
        kit_heard("redisson_lock__channel:{x}:" JAVA1, "0");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &ours).position, 2); /* it has time to come */
        kit_heard("redisson_lock__channel:{x}:" JAVA1, "0");
        kit_do("ZADD redisson_lock_timeout:{x} %lld " JAVA1, kit_now_ms() - 1);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &ours).status, SNIB__GRANTED);
        assert_int_equal(kit_number("EXISTS redisson_lock_queue:{x} redisson_lock_timeout:{x} snib_waiting:{x}"), 0);
        kit_heard_nothing();
}

static void F91_a_head_without_a_turn_is_repaired(void **state)
{
        struct snib__id ours;

        (void)state;
        /* What eviction, or an old client, leaves; Redisson 4.7 would wait for ever. Twice in the
         * list besides. */
        kit_do("RPUSH redisson_lock_queue:{x} " JAVA1 " " JAVA2 " " JAVA1);
        ours = granted(kit_a, SNIB_KIND_FAIR);
        assert_int_equal(kit_number("EXISTS redisson_lock_queue:{x} redisson_lock_timeout:{x}"), 0);
        (void)ours;
}

static void F91_parts_of_the_queue_that_are_lost_come_back(void **state)
{
        static const char *const lost[] = {"redisson_lock_timeout:{x}", "snib_waiting:{x}",
                                           "redisson_lock_timeout:{x} snib_waiting:{x}", "redisson_lock_queue:{x}"};
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1), second = queued(kit_a, 2);

        (void)state;
        for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
                kit_do("DEL %s", lost[i]);
                assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).position, 1);
                assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &second).position, 2);
                queue_is(first.text, second.text);
                assert_int_equal(kit_number("ZCARD snib_waiting:{x}"), 2);
        }
        released(kit_a, SNIB_KIND_FAIR, &holder);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).status, SNIB__GRANTED);
}

static void F91_javas_changes_of_turns_cost_no_place(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1), second = queued(kit_a, 2);

        (void)state;
        kit_do("ZINCRBY redisson_lock_timeout:{x} -900000 %s", first.text);
        kit_do("ZINCRBY redisson_lock_timeout:{x} -900000 %s", second.text);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).position, 1);
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &second).position, 2);
        kit_near(TURN(first), kit_now_ms() + 300000, 1000);
        kit_near(TURN(second), kit_now_ms() + 600000, 1000); /* room for one more who takes its turn before */
        queue_is(first.text, second.text);
        /* Purged by a Java client all the same: it asks again, at the end. */
        kit_do("LPOP redisson_lock_queue:{x}");
        kit_do("ZREM redisson_lock_timeout:{x} %s", first.text);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).position, 2);
        queue_is(second.text, first.text);
        (void)holder;
}

static void fair_force_keeps_the_queue(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1);
        struct snib__reply r = with(kit_b, SNIB__FORCE, SNIB_KIND_FAIR, NULL);

        (void)state;
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.held);
        assert_string_equal(r.holder.id.text, holder.text);
        assert_string_equal(r.holder.who.host, "host1");
        turn_message(&first);
        queue_is(first.text, NULL);
        assert_false(with(kit_b, SNIB__FORCE, SNIB_KIND_FAIR, NULL).held);
        assert_int_equal(with(kit_a, SNIB__RENEW, SNIB_KIND_FAIR, &holder).status, SNIB__GONE);
        assert_int_equal(with(kit_a, SNIB__RELEASE, SNIB_KIND_FAIR, &holder).status, SNIB__GONE);
}

static void F79_a_late_reentry_of_a_fair_lock_begins_nothing(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR);
        struct snib__op op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_FAIR, &holder);

        (void)state;
        op.token = 1700000000000001;
        assert_int_equal(pump_do(kit_a, &op).token, op.token);
        kit_do("DEL x");
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        assert_int_equal(kit_number("EXISTS x redisson_lock_queue:{x}"), 0);
}

static void fair_queues_are_bounded(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), id = pump_id(kit_b);

        (void)state;
        freeReplyObject(redis_server_do(kit_server, "EVAL %s 0",
                                        "for i = 1, 1024 do redis.call('RPUSH', 'redisson_lock_queue:{x}', 'j:' .. i) "
                                        "redis.call('ZADD', 'redisson_lock_timeout:{x}', 9e12, 'j:' .. i) end"));
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &id).position, 0);
        assert_int_equal(kit_number("LLEN redisson_lock_queue:{x}"), 1024);
        (void)holder;
}

/* ---- read-write */

#define HOLD_KEY "{x}:%s:rwlock_timeout:1"

static void a_reader_writes_redissons_hash_and_key(void **state)
{
        struct snib__id first = granted(kit_a, SNIB_KIND_READ), second = pump_id(kit_b);
        char text[256];

        (void)state;
        snprintf(text, sizeof(text), "mode read %s 1", first.text);
        answer_is(text, "HGETALL x");
        assert_int_equal(kit_number("GET " HOLD_KEY, first.text), 1);
        kit_near(kit_number("PTTL " HOLD_KEY, first.text), 30000, 1000);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        /* A shorter one beside it, and its renewals, shorten nothing. */
        assert_int_equal(leased(kit_b, SNIB__ACQUIRE, SNIB_KIND_READ, &second, 5000).status, SNIB__GRANTED);
        kit_near(kit_number("PTTL " HOLD_KEY, second.text), 5000, 1000);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        assert_int_equal(leased(kit_b, SNIB__RENEW, SNIB_KIND_READ, &second, 6000).status, SNIB__RENEWED);
        kit_near(kit_number("PTTL " HOLD_KEY, second.text), 6000, 900);
        kit_near(kit_number("PTTL " HOLD_KEY, first.text), 30000, 1000);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        assert_int_equal(leased(kit_b, SNIB__RENEW, SNIB_KIND_READ, &second, 90000).status, SNIB__RENEWED);
        kit_near(kit_number("PTTL x"), 90000, 1000);
        /* When the longest goes, the lock lasts as long as those that are left. */
        released(kit_b, SNIB_KIND_READ, &second);
        kit_near(kit_number("PTTL x"), 30000, 2000);
        assert_int_equal(kit_number("EXISTS " HOLD_KEY, second.text), 0);
        kit_heard_nothing();
        released(kit_a, SNIB_KIND_READ, &first);
        kit_heard("redisson_rwlock:{x}", "0");
        assert_int_equal(kit_number("EXISTS x " HOLD_KEY, first.text), 0);
        assert_int_equal(with(kit_a, SNIB__RELEASE, SNIB_KIND_READ, &first).status, SNIB__GONE);
        kit_heard_nothing();
}

static void a_writer_writes_redissons_hash(void **state)
{
        struct snib__id writer = granted(kit_a, SNIB_KIND_WRITE), other = pump_id(kit_b);
        char text[256];
        struct snib__reply r;

        (void)state;
        snprintf(text, sizeof(text), "mode write %s:write 1", writer.text);
        answer_is(text, "HGETALL x");
        kit_near(kit_number("PTTL x"), 30000, 1000);
        for (int kind = SNIB_KIND_READ; kind <= SNIB_KIND_WRITE; kind++) {
                r = with(kit_b, SNIB__ACQUIRE, kind, &other);
                assert_int_equal(r.status, SNIB__BUSY);
                assert_string_equal(r.holder.id.text, writer.text);
                assert_true(r.held && r.left_ms > 29000);
                assert_int_equal(with(kit_b, SNIB__RELEASE, kind, &other).status, SNIB__GONE);
                assert_int_equal(with(kit_b, SNIB__RENEW, kind, &other).status, SNIB__GONE);
        }
        assert_int_equal(leased(kit_a, SNIB__RENEW, SNIB_KIND_WRITE, &writer, 60000).status, SNIB__RENEWED);
        kit_near(kit_number("PTTL x"), 60000, 1000);
        answer_is(text, "HGETALL x");
        released(kit_a, SNIB_KIND_WRITE, &writer);
        kit_heard("redisson_rwlock:{x}", "1");
        assert_int_equal(kit_number("EXISTS x"), 0);
}

static void acquires_of_sides_are_counted_once(void **state)
{
        (void)state;
        for (int kind = SNIB_KIND_READ; kind <= SNIB_KIND_WRITE; kind++) {
                struct snib__id id = granted(kit_a, kind);
                struct snib__op op = asked(kit_a, SNIB__ACQUIRE, kind, &id);

                assert_int_equal(leased(kit_a, SNIB__ACQUIRE, kind, &id, 60000).status, SNIB__GRANTED);
                assert_int_equal(kit_number("HLEN x"), 2);
                kit_near(kit_number("PTTL x"), 60000, 1000);
                op.token = 1700000000000001;
                assert_int_equal(pump_do(kit_a, &op).token, op.token);
                released(kit_a, kind, &id);
                assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
                assert_int_equal(kit_number("EXISTS x " HOLD_KEY, id.text), 0);
        }
}

static void readers_keep_a_writer_out(void **state)
{
        struct snib__id first = granted(kit_a, SNIB_KIND_READ), second = granted(kit_b, SNIB_KIND_READ),
                        writer = pump_id(kit_b);
        struct snib__reply r = with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &writer);

        (void)state;
        assert_int_equal(r.status, SNIB__BUSY);
        assert_true(r.held && r.left_ms > 29000);
        r = with(kit_b, SNIB__QUERY, SNIB_KIND_WRITE, NULL);
        assert_int_equal(r.kind, SNIB_KIND_READ);
        assert_int_equal(r.holders, 2);
        released(kit_a, SNIB_KIND_READ, &first);
        kit_heard_nothing();
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &writer).status, SNIB__BUSY);
        released(kit_b, SNIB_KIND_READ, &second);
        kit_heard("redisson_rwlock:{x}", "0");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &writer).status, SNIB__GRANTED);
}

static struct snib__id read_under(struct pump *p, const struct snib__id *writer, int64_t lease,
                                  enum snib__status status)
{
        struct snib__id id = pump_id(p);
        struct snib__op op = asked(p, SNIB__ACQUIRE, SNIB_KIND_READ, &id);

        op.under = *writer;
        op.lease_ms = lease;
        assert_int_equal(pump_do(p, &op).status, status);
        return id;
}

static void F93_a_downgrade_lets_readers_in_and_no_writer(void **state)
{
        struct snib__id writer = granted(kit_a, SNIB_KIND_WRITE), reader, other = pump_id(kit_b);
        char text[256];

        (void)state;
        (void)read_under(kit_b, &other, 30000, SNIB__BUSY); /* under what it does not have */
        reader = read_under(kit_a, &writer, 10000, SNIB__GRANTED);
        assert_int_equal(kit_number("HLEN x"), 3);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        assert_int_equal(with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL).kind, SNIB_KIND_WRITE);
        assert_int_equal(with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL).holders, 2);
        released(kit_a, SNIB_KIND_WRITE, &writer);
        kit_heard("redisson_rwlock:{x}", "1");
        snprintf(text, sizeof(text), "mode read %s 1", reader.text);
        answer_is(text, "HGETALL x");
        kit_near(kit_number("PTTL x"), 10000, 1000);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &other).status, SNIB__BUSY);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_READ, &other).status, SNIB__GRANTED);
        released(kit_b, SNIB_KIND_READ, &other);
        released(kit_a, SNIB_KIND_READ, &reader);
        kit_heard("redisson_rwlock:{x}", "0");
        assert_int_equal(kit_number("EXISTS x"), 0);
}

static void F95_the_other_order_of_releases(void **state)
{
        struct snib__id writer = granted(kit_a, SNIB_KIND_WRITE),
                        reader = read_under(kit_a, &writer, 60000, SNIB__GRANTED);
        char text[256];

        (void)state;
        kit_near(kit_number("PTTL x"), 60000, 1000);
        assert_int_equal(leased(kit_a, SNIB__RENEW, SNIB_KIND_WRITE, &writer, 5000).status, SNIB__RENEWED);
        kit_near(kit_number("PTTL x"), 60000, 1500); /* not below what the reader has */
        released(kit_a, SNIB_KIND_READ, &reader);
        snprintf(text, sizeof(text), "mode write %s:write 1", writer.text);
        answer_is(text, "HGETALL x");
        kit_heard_nothing();
        released(kit_a, SNIB_KIND_WRITE, &writer);
        kit_heard("redisson_rwlock:{x}", "1");
        assert_int_equal(
            kit_number("DBSIZE") - kit_number("EXISTS snib_client:{%s} snib_client:{%s}", kit_a->uuid, kit_b->uuid), 0);
}

static void F94_a_dead_readers_hold_ends_with_its_own_lease(void **state)
{
        struct snib__id dead = granted(kit_a, SNIB_KIND_READ), reader = granted(kit_b, SNIB_KIND_READ),
                        writer = pump_id(kit_b);
        struct snib__op op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_READ, &dead);
        char text[256];

        (void)state;
        kit_do("HSET x " JAVA1 " 2"); /* a Java reader, twice in, of whose keys none is left */
        kit_do("DEL " HOLD_KEY, dead.text);
        assert_int_equal(with(kit_a, SNIB__RENEW, SNIB_KIND_READ, &dead).status, SNIB__GONE);
        assert_false(
            with(kit_a, SNIB__RENEW, SNIB_KIND_READ, &dead).held); /* the other reader has taken nothing from it */
        op.token = 1700000000000001;
        assert_int_equal(pump_do(kit_a, &op).status, SNIB__GONE);
        assert_int_equal(with(kit_a, SNIB__QUERY, SNIB_KIND_READ, NULL).holders, 1);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &writer).status, SNIB__BUSY);
        kit_do("SET {x}:" JAVA1 ":rwlock_timeout:2 1 PX 5000"); /* one of them lives */
        released(kit_b, SNIB_KIND_READ, &reader);
        kit_heard_nothing();
        kit_near(kit_number("PTTL x"), 5000, 1000);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &writer).status, SNIB__BUSY);
        kit_do("DEL {x}:" JAVA1 ":rwlock_timeout:2");
        kit_do("PEXPIRE x 30000");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &writer).status, SNIB__GRANTED);
        snprintf(text, sizeof(text), "mode write %s:write 1", writer.text);
        answer_is(text, "HGETALL x");
}

static void F94_the_last_live_reader_takes_the_dead_along(void **state)
{
        struct snib__id dead = granted(kit_a, SNIB_KIND_READ), reader = granted(kit_b, SNIB_KIND_READ);

        (void)state;
        kit_do("DEL " HOLD_KEY, dead.text);
        released(kit_b, SNIB_KIND_READ, &reader);
        kit_heard("redisson_rwlock:{x}", "0");
        assert_int_equal(kit_number("EXISTS x"), 0);
        /* And a dead one that gives its hold back takes its traces along. */
        dead = granted(kit_a, SNIB_KIND_READ);
        kit_do("DEL " HOLD_KEY, dead.text);
        assert_int_equal(with(kit_a, SNIB__RELEASE, SNIB_KIND_READ, &dead).status, SNIB__GONE);
        kit_heard("redisson_rwlock:{x}", "0");
        assert_int_equal(kit_number("EXISTS x"), 0);
}

static void readers_are_forced_and_so_is_the_writer(void **state)
{
        struct snib__id first = granted(kit_a, SNIB_KIND_READ), second = granted(kit_b, SNIB_KIND_READ), writer, reader;
        struct snib__reply r;

        (void)state;
        assert_false(with(kit_a, SNIB__FORCE, SNIB_KIND_WRITE, NULL).held);
        assert_int_equal(kit_number("HLEN x"), 3);
        kit_heard_nothing();
        assert_true(with(kit_a, SNIB__FORCE, SNIB_KIND_READ, NULL).held);
        kit_heard("redisson_rwlock:{x}", "1");
        assert_int_equal(kit_number("EXISTS x " HOLD_KEY " " HOLD_KEY, first.text, second.text), 0);
        assert_false(with(kit_a, SNIB__FORCE, SNIB_KIND_READ, NULL).held);
        writer = granted(kit_a, SNIB_KIND_WRITE);
        reader = read_under(kit_a, &writer, 30000, SNIB__GRANTED);
        assert_false(with(kit_b, SNIB__FORCE, SNIB_KIND_READ, NULL).held);
        assert_int_equal(kit_number("HLEN x"), 3);
        r = with(kit_b, SNIB__FORCE, SNIB_KIND_WRITE, NULL);
        assert_true(r.held);
        assert_string_equal(r.holder.id.text, writer.text);
        assert_string_equal(r.holder.who.host, "host1");
        kit_heard("redisson_rwlock:{x}", "1");
        kit_heard_nothing();
        assert_int_equal(kit_number("EXISTS x " HOLD_KEY, reader.text),
                         0); /* its own read goes with it, as in Redisson */
        assert_int_equal(with(kit_a, SNIB__RENEW, SNIB_KIND_WRITE, &writer).status, SNIB__GONE);
}

static void a_mode_that_nobody_has_is_repaired(void **state)
{
        struct snib__id reader = granted(kit_a, SNIB_KIND_READ), other = pump_id(kit_b);

        (void)state;
        kit_do("HSET x mode write"); /* readers, and no writer */
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_WRITE, &other).status, SNIB__BUSY);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_READ, &other).status, SNIB__GRANTED);
        assert_int_equal(kit_number("HLEN x"), 3);
        answer_is("read", "HMGET x mode");
        (void)reader;
}

static void a_hash_without_ttl_gets_one_from_the_next_reader(void **state)
{
        struct snib__id reader;

        (void)state;
        kit_do("HSET x mode read " JAVA1 " 1");
        reader = granted(kit_a, SNIB_KIND_READ);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        released(kit_a, SNIB_KIND_READ, &reader);
        assert_int_equal(kit_number("EXISTS x"), 0); /* the other one has no key: it is dead */
}

/* The first in the queue is told with its time, whoever it is; and a dead one of Java's, which
 * would
 * keep everybody waiting for its turn's 5 minutes, can be thrown out. */
static void the_head_of_a_fair_queue_is_told_and_can_be_dropped(void **state)
{
        struct snib__id waiter, holder;
        struct snib__op op = asked(kit_a, SNIB__FORCE, SNIB_KIND_FAIR, NULL);
        struct snib__reply r;

        (void)state;
        assert_string_equal(with(kit_a, SNIB__QUERY, SNIB_KIND_ANY, NULL).next.text, "");
        kit_do("RPUSH redisson_lock_queue:{x} " JAVA1);
        kit_do("ZADD redisson_lock_timeout:{x} %lld " JAVA1, kit_now_ms() + 300000);
        waiter = queued(kit_b, 2);
        r = with(kit_a, SNIB__QUERY, SNIB_KIND_ANY, NULL);
        assert_string_equal(r.next.text, JAVA1);
        kit_near(r.next_left_ms, 300000, 5000);
        kit_heard("redisson_lock__channel:{x}:" JAVA1, "0"); /* the free lock was asked for: its turn */
        snprintf(op.under.text, sizeof(op.under.text), "%s", JAVA1);
        assert_true(pump_do(kit_a, &op).held);
        turn_message(&waiter);
        queue_is(waiter.text, NULL);
        assert_int_equal(kit_number("ZSCORE redisson_lock_timeout:{x} " JAVA1), INT64_MIN);
        assert_false(pump_do(kit_a, &op).held); /* once */
        assert_string_equal(with(kit_a, SNIB__QUERY, SNIB_KIND_FAIR, NULL).next.text, waiter.text);
        op = asked(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &waiter);
        assert_int_equal(pump_do(kit_b, &op).status, SNIB__GRANTED);
        holder = waiter;
        op = asked(kit_a, SNIB__FORCE, SNIB_KIND_FAIR, NULL);
        op.under = holder; /* it waits no more: the hold is not touched */
        assert_false(pump_do(kit_a, &op).held);
        assert_int_equal(kit_number("HEXISTS x %s", holder.text), 1);
        kit_heard_nothing();
}

/* While one of ours waits its traces vanish by themselves; where only Java waits the keys are as
 * Redisson makes them. */
static void a_fair_queue_has_a_ttl_while_one_of_ours_waits(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), waiter;

        (void)state;
        kit_do("RPUSH redisson_lock_queue:{x} " JAVA1);
        kit_do("ZADD redisson_lock_timeout:{x} %lld " JAVA1, kit_now_ms() + 300000);
        waiter = queued(kit_b, 2);
        kit_near(kit_number("PTTL redisson_lock_queue:{x}"), 86400000, 60000);
        kit_near(kit_number("PTTL redisson_lock_timeout:{x}"), 86400000, 60000);
        released(kit_b, SNIB_KIND_FAIR, &waiter);
        assert_int_equal(kit_number("PTTL redisson_lock_queue:{x}"), -1);
        assert_int_equal(kit_number("PTTL redisson_lock_timeout:{x}"), -1);
        queue_is(JAVA1, NULL);
        /* One that died is found by the next of ours. */
        waiter = queued(kit_b, 2);
        kit_do("ZADD snib_waiting:{x} XX 1 %s", waiter.text);
        released(kit_a, SNIB_KIND_FAIR, &holder);
        assert_int_equal(kit_number("PTTL redisson_lock_queue:{x}"), -1);
        queue_is(JAVA1, NULL);
        kit_do("FLUSHALL");
}

/* ---- kinds on one name */

static void wrong(int kind, const char *part)
{
        static const enum snib__verb verbs[] = {SNIB__ACQUIRE, SNIB__QUERY, SNIB__FORCE};
        struct snib__id id = pump_id(kit_a);

        for (size_t i = 0; i < 3; i++) {
                struct snib__reply r = with(kit_a, verbs[i], kind, &id);
                if (r.status != SNIB__FAILED || r.error != SNIB_EKIND || !strstr(r.error_text, part))
                        fail_msg("verb %d of kind %d: status %d, \"%s\"", verbs[i], kind, r.status,
                                 r.status == SNIB__FAILED ? r.error_text : "");
        }
}

static void F52_kinds_are_not_mixed(void **state)
{
        static const int locks[] = {SNIB_KIND_LOCK, SNIB_KIND_FENCED, SNIB_KIND_FAIR, SNIB_KIND_SPIN,
                                    SNIB_KIND_ELECTION};

        (void)state;
        for (size_t i = 0; i < 5; i++) {
                struct snib__id id = granted(kit_a, locks[i]);
                wrong(SNIB_KIND_READ, "a lock");
                wrong(SNIB_KIND_WRITE, "a lock");
                assert_int_equal(with(kit_b, SNIB__QUERY, locks[i], NULL).kind, locks[i]);
                released(kit_a, locks[i], &id);
        }
        for (int kind = SNIB_KIND_READ; kind <= SNIB_KIND_WRITE; kind++) {
                struct snib__id id = granted(kit_a, kind);
                for (size_t i = 0; i < 5; i++)
                        wrong(locks[i], "a read-write lock");
                assert_int_equal(kit_number("HLEN x"), 2);
                released(kit_a, kind, &id);
        }
        kit_do("HSET x a 1 b 2");
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++)
                wrong(kind, "a hash of 2 fields");
        kit_do("DEL x");
        kit_do("RPUSH x 1");
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++)
                wrong(kind, "use another name");
        assert_int_equal(kit_number("LLEN x"), 1);
}

/* A lock's fields are ids, and their values positive numbers: any other hash is left alone,
 * whatever
 * is asked of it, and neither shown as held nor waited for. */
static void F52_a_hash_of_somebody_else_is_no_lock(void **state)
{
        static const char *const hashes[] = {"email a@b.c",
                                             "email 1",
                                             JAVA1 " 0",
                                             JAVA1 " -1",
                                             JAVA1 " 1.5",
                                             JAVA1 " a@b.c",
                                             "b2a3c0de-1111-4222-8333-444455556666 1",
                                             "b2a3c0de-1111-4222-8333-44445555666:1 1",
                                             "mode read",
                                             "mode write",
                                             "mode read path 1",
                                             "mode write path:write 1",
                                             "mode dark " JAVA1 " 1",
                                             "mode read " JAVA1 " 1 path 1",
                                             "mode read " JAVA1 " 0",
                                             "email a@b.c name Ann"};
        static const enum snib__verb verbs[] = {SNIB__ACQUIRE, SNIB__RELEASE, SNIB__RENEW, SNIB__QUERY, SNIB__FORCE};

        (void)state;
        for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
                kit_do("DEL x");
                kit_do("HSET x %s", hashes[i]);
                redisReply *before = redis_server_do(kit_server, "DUMP x");
                for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++)
                        for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
                                struct snib__id id = pump_id(kit_a);
                                struct snib__op op = asked(kit_a, verbs[v], kind, &id);

                                op.enqueue = verbs[v] == SNIB__ACQUIRE;
                                struct snib__reply r = pump_do(kit_a, &op);
                                if (r.status != SNIB__FAILED || r.error != SNIB_EKIND)
                                        fail_msg("%s, kind %d, verb %d: status %d", hashes[i], kind, verbs[v],
                                                 r.status);
                        }
                assert_int_equal(with(kit_a, SNIB__QUERY, SNIB_KIND_ANY, NULL).error, SNIB_EKIND);
                redisReply *after = redis_server_do(kit_server, "DUMP x");
                assert_int_equal(before->len, after->len);
                assert_memory_equal(before->str, after->str, before->len);
                freeReplyObject(before);
                freeReplyObject(after);
                assert_int_equal(kit_number("DBSIZE"), 1 + kit_number("EXISTS snib_client:{%s}", kit_a->uuid));
        }
}

static void any_tells_what_is_there(void **state)
{
        struct snib__reply r = with(kit_a, SNIB__QUERY, SNIB_KIND_ANY, NULL);

        (void)state;
        assert_int_equal(r.status, SNIB__INFO);
        assert_false(r.held);
        assert_int_equal(r.kind, SNIB_KIND_ANY);
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++) {
                struct snib__id id = granted(kit_a, kind);
                r = with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL);
                assert_true(r.held && !r.foreign);
                assert_int_equal(r.holders, 1);
                assert_int_equal(r.waiters, 0);
                assert_string_equal(r.holder.id.text, id.text);
                assert_int_equal(r.kind, kind == SNIB_KIND_ELECTION || kind == SNIB_KIND_FENCED ? SNIB_KIND_FENCED
                                         : kind >= SNIB_KIND_READ                               ? kind
                                                                                                : SNIB_KIND_LOCK);
                released(kit_a, kind, &id);
                kit_do("DEL redisson_lock_token:{x}");
        }
        kit_do("SET x -3");
        r = with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL);
        assert_int_equal(r.kind, SNIB_KIND_COUNTER);
        assert_int_equal(r.value, -3);
        kit_do("ZADD {x}:timeout 9e12 0123456789abcdef 1 fedcba9876543210");
        kit_do("SET x 4");
        r = with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL);
        assert_int_equal(r.kind, SNIB_KIND_PERMITS);
        assert_int_equal(r.value, 4);
        assert_int_equal(r.holders, 1);
        kit_do("SET x text");
        wrong(SNIB_KIND_FAIR, "use another name");
        assert_int_equal(with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL).error, SNIB_EKIND);
}

static void F80_java_holders_are_told_as_foreign(void **state)
{
        struct snib__reply r;

        (void)state;
        kit_do("HSET x " JAVA1 " 1");
        kit_do("PEXPIRE x 30000");
        r = with(kit_a, SNIB__QUERY, SNIB_KIND_LOCK, NULL);
        assert_true(r.held && r.foreign);
        assert_true(with(kit_a, SNIB__QUERY, SNIB_KIND_ANY, NULL).foreign); /* from the cache */
        kit_do("DEL x");
        kit_do("HSET x mode write " JAVA1 ":write 1");
        r = with(kit_a, SNIB__QUERY, SNIB_KIND_ANY, NULL);
        assert_true(r.foreign);
        assert_string_equal(r.holder.id.text, JAVA1);
        assert_string_equal(r.holder.who.label, "redisson");
}

static void list_tells_every_kind_that_is_held(void **state)
{
        static const struct {
                const char *name;
                int kind;
        } made[] = {{"l", SNIB_KIND_LOCK},      {"f", SNIB_KIND_FENCED},  {"q", SNIB_KIND_FAIR},
                    {"r", SNIB_KIND_READ},      {"w", SNIB_KIND_WRITE},   {"p", SNIB_KIND_PERMITS},
                    {"{t}", SNIB_KIND_PERMITS}, {"v", SNIB_KIND_REGISTER}};
        struct snib__id id;
        struct pump_note n;
        unsigned seen = 0;

        (void)state;
        for (size_t i = 0; i < 5; i++) {
                id = pump_id(kit_b);
                struct snib__op op = pump_op(kit_b, SNIB__ACQUIRE, made[i].name, id, 30000);
                op.kind = made[i].kind;
                assert_int_equal(pump_do(kit_b, &op).status, SNIB__GRANTED);
        }
        id = pump_id(kit_a);
        struct snib__op op = pump_op(kit_a, SNIB__ACQUIRE, "q", id, 30000);
        op.kind = SNIB_KIND_FAIR;
        op.enqueue = true;
        assert_int_equal(pump_do(kit_a, &op).position, 1);
        kit_do("SET p 1");
        kit_do("ZADD {p}:timeout 9e12 0123456789abcdef");
        kit_do("SET {t} 1");
        kit_do("ZADD {t}:timeout 9e12 0123456789abcdef");
        kit_do("HSET v snib register version 7 value text");
        kit_do("ZADD other:timeout 1 x");
        assert_int_equal(pump_answer(kit_a, pump_list(kit_a)).status, SNIB__INFO);
        while (pump_try(kit_a, SNIB__NOTE_LISTED, 0, &n)) {
                size_t i = 0;
                while (i < 8 && strcmp(n.name, made[i].name) != 0)
                        i++;
                assert_true(i < 8);
                assert_int_equal(n.note.reply.kind, made[i].kind);
                if (i < 5)
                        assert_string_equal(n.note.reply.holder.who.host, "host2");
                else
                        assert_int_equal(n.note.reply.holders, made[i].kind == SNIB_KIND_PERMITS);
                seen |= 1u << i;
        }
        assert_int_equal(seen, 255);
}

/* ---- spin locks, elections, observers */

static void a_spin_lock_tells_nobody(void **state)
{
        struct snib__id id = granted(kit_a, SNIB_KIND_SPIN);

        (void)state;
        released(kit_a, SNIB_KIND_SPIN, &id);
        id = granted(kit_a, SNIB_KIND_SPIN);
        assert_true(with(kit_b, SNIB__FORCE, SNIB_KIND_SPIN, NULL).held);
        kit_heard_nothing();
        assert_int_equal(kit_number("EXISTS x"), 0);
}

static struct snib__reply observed(struct pump *p, int kind, int64_t seen)
{
        struct snib__id id = pump_id(p);
        struct snib__op op = asked(p, SNIB__OBSERVE, kind, &id);

        op.token = seen;
        return pump_do(p, &op);
}

static void F105_terms_are_told_to_observers(void **state)
{
        struct snib__topic election = {.name = {"x", 1}, .kind = SNIB_KIND_ELECTION}, lock = {.name = {"x", 1}};
        struct snib__id id;
        struct snib__op op;
        struct pump_note n;
        int64_t term;

        (void)state;
        assert_int_equal(observed(kit_b, SNIB_KIND_ELECTION, 0).status, SNIB__BUSY);
        kit_b->engine->ops->watch(kit_b->engine, &election, pump_now());
        (void)pump_wait(kit_b, SNIB__NOTE_WATCHING);
        kit_a->engine->ops->watch(kit_a->engine, &lock, pump_now());
        (void)pump_wait(kit_a, SNIB__NOTE_WATCHING);
        id = pump_id(kit_a);
        op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_ELECTION, &id);
        op.token = 0;
        term = pump_do(kit_a, &op).token;
        kit_heard("redisson_lock__channel:{x}", "2");
        (void)pump_wait(kit_b, SNIB__NOTE_CHANGED);
        assert_false(pump_try(kit_a, SNIB__NOTE_CHANGED, 0, &n)); /* it lets no contender in */
        assert_int_equal(pump_do(kit_a, &op).token, term);
        kit_heard_nothing();
        struct snib__reply r = observed(kit_b, SNIB_KIND_ELECTION, 0);
        assert_int_equal(r.status, SNIB__INFO);
        assert_int_equal(r.token, term);
        assert_string_equal(r.holder.who.host, "host1");
        assert_int_equal(r.holder.since_ms, term / 1000);
        assert_int_equal(observed(kit_b, SNIB_KIND_ELECTION, term).status, SNIB__BUSY);
        released(kit_a, SNIB_KIND_ELECTION, &id);
        kit_heard("redisson_lock__channel:{x}", "0");
        (void)pump_wait(kit_b, SNIB__NOTE_CHANGED);
        r = observed(kit_b, SNIB_KIND_ELECTION, term);
        assert_int_equal(r.status, SNIB__INFO);
        assert_false(r.held);
        assert_int_equal(r.token, 0);
        assert_int_equal(kit_number("GET redisson_lock_token:{x}"), term);
}

static void latches_can_be_observed(void **state)
{
        struct snib__id id = pump_id(kit_a);
        struct snib__op set = asked(kit_a, SNIB__SET, SNIB_KIND_LATCH, &id);
        struct snib__reply r;

        (void)state;
        assert_int_equal(observed(kit_b, SNIB_KIND_LATCH, 0).status, SNIB__BUSY);
        assert_int_equal(observed(kit_b, SNIB_KIND_LATCH, -1).status, SNIB__INFO);
        set.n = 2;
        assert_true(pump_do(kit_a, &set).applied);
        r = observed(kit_b, SNIB_KIND_LATCH, 0);
        assert_int_equal(r.status, SNIB__INFO);
        assert_int_equal(r.token, 1);
        assert_int_equal(r.value, 2);
        assert_int_equal(observed(kit_b, SNIB_KIND_LATCH, 1).status, SNIB__BUSY);
        kit_do("SET x 0"); /* as Java can leave it */
        assert_int_equal(observed(kit_b, SNIB_KIND_LATCH, 0).status, SNIB__BUSY);
}

static void plain_locks_can_be_observed(void **state)
{
        struct snib__id id;

        (void)state;
        assert_int_equal(observed(kit_b, SNIB_KIND_LOCK, 0).status, SNIB__BUSY);
        id = granted(kit_a, SNIB_KIND_LOCK);
        struct snib__reply r = observed(kit_b, SNIB_KIND_LOCK, 0);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.held && r.token > 0);
        assert_int_equal(observed(kit_b, SNIB_KIND_LOCK, r.token).status, SNIB__BUSY);
        released(kit_a, SNIB_KIND_LOCK, &id);
}

static void channels_of_kinds_are_redissons(void **state)
{
        static const struct {
                int kind;
                const char *channel, *one, *all, *nothing;
        } rows[] = {{SNIB_KIND_READ, "redisson_rwlock:{x}", "0", "1", "7"},
                    {SNIB_KIND_WRITE, "redisson_rwlock:{x}", "0", "1", "-1"},
                    {SNIB_KIND_SEMAPHORE, "redisson_sc:{x}", "3", NULL, "-3"},
                    {SNIB_KIND_PERMITS, "redisson_sc:{x}", "12", NULL, "0"},
                    {SNIB_KIND_LATCH, "redisson_countdownlatch__channel__{x}", NULL, "0", "x"},
                    {SNIB_KIND_LATCH, "redisson_countdownlatch__channel__{x}", NULL, "1", "x"},
                    {SNIB_KIND_REGISTER, "snib_register:{x}", NULL, "42", NULL},
                    {SNIB_KIND_ELECTION, "redisson_lock__channel:{x}", "2", "1", "x"}};
        struct pump_note n;

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct snib__topic topic = {.name = {"x", 1}, .kind = rows[i].kind};

                kit_a->engine->ops->watch(kit_a->engine, &topic, pump_now());
                assert_string_equal(pump_wait(kit_a, SNIB__NOTE_WATCHING).name, "x");
                if (rows[i].nothing)
                        assert_int_equal(kit_number("PUBLISH %s %s", rows[i].channel, rows[i].nothing), 2);
                for (int all = 0; all < 2; all++) {
                        const char *payload = all ? rows[i].all : rows[i].one;
                        if (!payload)
                                continue;
                        assert_int_equal(kit_number("PUBLISH %s %s", rows[i].channel, payload), 2);
                        n = pump_wait(kit_a, SNIB__NOTE_CHANGED);
                        assert_string_equal(n.name, "x");
                        assert_int_equal(n.note.all, all);
                        assert_false(pump_try(kit_a, SNIB__NOTE_CHANGED, 0, &n));
                }
                kit_a->engine->ops->unwatch(kit_a->engine, &topic, pump_now());
        }
        /* A latch's channel has braces around whatever the name is. */
        struct snib__topic topic = {.name = {"{y}", 3}, .kind = SNIB_KIND_LATCH};
        kit_a->engine->ops->watch(kit_a->engine, &topic, pump_now());
        assert_string_equal(pump_wait(kit_a, SNIB__NOTE_WATCHING).name, "{y}");
        assert_int_equal(kit_number("PUBLISH redisson_countdownlatch__channel__{{y}} 0"), 2);
        assert_string_equal(pump_wait(kit_a, SNIB__NOTE_CHANGED).name, "{y}");
}

/* ---- the server's troubles */

static void values_up_to_the_limit_come_back(void **state)
{
        static const size_t sizes[] = {0, 65535, 65536, 70000, 1 << 20};
        char *bytes = malloc(1 << 20);

        (void)state;
        assert_non_null(bytes);
        memset(bytes, '\n', 1 << 20);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                struct snib__id id = pump_id(kit_a);
                struct snib__op op = asked(kit_a, SNIB__WRITE, SNIB_KIND_REGISTER, &id);
                op.expected = -1;
                op.data = bytes;
                op.data_length = sizes[i];
                assert_int_equal(pump_do(kit_a, &op).status, SNIB__DONE);
                struct snib__reply r = with(kit_b, SNIB__QUERY, SNIB_KIND_REGISTER, NULL);
                assert_int_equal(r.status, SNIB__INFO);
                assert_int_equal(r.data_length, sizes[i]);
        }
        free(bytes);
}

static void F51_every_kind_survives_forgotten_scripts(void **state)
{
        (void)state;
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++) {
                struct snib__id id = granted(kit_a, kind);

                kit_do("SCRIPT FLUSH");
                assert_int_equal(with(kit_a, SNIB__RENEW, kind, &id).status, SNIB__RENEWED);
                kit_do("SCRIPT FLUSH");
                assert_int_equal(with(kit_a, SNIB__QUERY, kind, NULL).status, SNIB__INFO);
                kit_do("SCRIPT FLUSH");
                released(kit_a, kind, &id);
                kit_do("SCRIPT FLUSH");
                id = granted(kit_a, kind);
                kit_do("SCRIPT FLUSH");
                assert_true(with(kit_a, SNIB__FORCE, kind, NULL).held);
        }
}

static void full(bool is)
{
        kit_do("CONFIG SET maxmemory %s", is ? "1" : "0");
}

static void F48_a_full_server_releases_every_kind(void **state)
{
        (void)state;
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++) {
                struct snib__id id = granted(kit_a, kind), other = pump_id(kit_b);

                full(true);
                assert_int_equal(with(kit_a, SNIB__RENEW, kind, &id).status, SNIB__RENEWED);
                released(kit_a, kind, &id);
                assert_int_equal(kit_number("EXISTS x " HOLD_KEY, id.text), 0);
                struct snib__reply r = with(kit_b, SNIB__ACQUIRE, kind, &other);
                assert_int_equal(r.status, SNIB__FAILED);
                assert_int_equal(r.error, SNIB_EREFUSED);
                assert_int_equal(kit_number("EXISTS x " HOLD_KEY, other.text), 0);
                full(false);
                id = granted(kit_a, kind);
                full(true);
                assert_true(with(kit_b, SNIB__FORCE, kind, NULL).held);
                full(false);
                assert_int_equal(kit_number("EXISTS x"), 0);
        }
}

static void F48_a_full_server_serves_a_queue_that_stands(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FAIR), first = queued(kit_b, 1), second = queued(kit_a, 2),
                        late = pump_id(kit_b);

        (void)state;
        kit_do("ZADD snib_waiting:{x} XX %lld %s", kit_now_ms() + 500, first.text);
        full(true);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &late).error, SNIB_EREFUSED);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FAIR, &first).position, 1);
        kit_near(kit_number("ZSCORE snib_waiting:{x} %s", first.text), kit_now_ms() + 5000, 1000); /* it lives on */
        released(kit_b, SNIB_KIND_FAIR, &first);
        released(kit_a, SNIB_KIND_FAIR, &holder);
        turn_message(&second);
        queue_is(second.text, NULL);
        full(false);
}

static void F48_a_full_server_downgrades(void **state)
{
        struct snib__id writer = granted(kit_a, SNIB_KIND_WRITE),
                        reader = read_under(kit_a, &writer, 30000, SNIB__GRANTED);

        (void)state;
        full(true);
        released(kit_a, SNIB_KIND_WRITE, &writer);
        assert_int_equal(kit_number("HLEN x"), 2);
        answer_is("read", "HMGET x mode");
        released(kit_a, SNIB_KIND_READ, &reader);
        assert_int_equal(kit_number("EXISTS x " HOLD_KEY, reader.text), 0);
        full(false);
}

/* What doc/design/redis.md says a user needs. */
static void F55_the_rights_that_are_named_are_enough(void **state)
{
        static const char base[] =
            "+ping +subscribe +unsubscribe +eval +evalsha +hlen +hset +hexists +hgetall +hget +hdel "
            "+del +pexpire +pttl +time +publish";
        static const char *const more[] = {
            [SNIB_KIND_LOCK] = "",
            [SNIB_KIND_FENCED] = "+get +set +incrby",
            [SNIB_KIND_FAIR] = "+exists +lrange +lindex +lrem +rpush +zadd +zincrby +zrem +zscore +zrangebyscore",
            [SNIB_KIND_SPIN] = "",
            [SNIB_KIND_ELECTION] = "+get +set +incrby",
            [SNIB_KIND_READ] = "+exists +set",
            [SNIB_KIND_WRITE] = "+exists +set"};
        char url[128];

        (void)state;
        snprintf(url, sizeof(url), "redis://few:secret@127.0.0.1:%d", redis_server_port(kit_server));
        for (int kind = SNIB_KIND_LOCK; kind <= SNIB_KIND_WRITE; kind++) {
                kit_do("ACL SETUSER few reset on >secret ~* &* %s %s", base, more[kind]);
                struct pump *p = pump_connect(url, 3);
                struct snib__id id = granted(p, kind), other = pump_id(kit_a), waiter = pump_id(p);

                assert_int_equal(with(kit_a, SNIB__ACQUIRE, kind, &other).status,
                                 kind == SNIB_KIND_READ ? SNIB__GRANTED : SNIB__BUSY);
                assert_true(with(p, SNIB__ACQUIRE, kind, &waiter).status < SNIB__GONE);
                (void)with(p, SNIB__RELEASE, kind, &waiter);
                assert_int_equal(with(p, SNIB__RENEW, kind, &id).status, SNIB__RENEWED);
                released(p, kind, &id);
                (void)with(kit_a, SNIB__RELEASE, kind, &other);
                /* Whatever is missing: no hold without a lease. */
                static const char *const needed[] = {"hset", "pexpire", "time", "set"};
                for (size_t i = 0; i < (kind == SNIB_KIND_READ ? 4 : 3); i++) {
                        kit_do("ACL SETUSER few -%s", needed[i]);
                        id = pump_id(p);
                        assert_int_equal(with(p, SNIB__ACQUIRE, kind, &id).error, SNIB_EPERM);
                        assert_int_equal(kit_number("EXISTS x " HOLD_KEY, id.text), 0);
                        kit_do("ACL SETUSER few +%s", needed[i]);
                }
                id = granted(p, kind);
                assert_true(with(p, SNIB__FORCE, kind, NULL).held);
                kit_do("ACL SETUSER few +pubsub|numsub +get +type +llen +zcard +zcount");
                assert_int_equal(with(p, SNIB__QUERY, kind, NULL).status, SNIB__INFO);
                assert_int_equal(with(p, SNIB__QUERY, SNIB_KIND_ANY, NULL).status, SNIB__INFO);
                pump_close(p);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_open, kit_close)

int main(void)
{
        static const struct CMUnitTest tests[] = {
            TEST(fair_waiters_stand_in_redissons_queue),
            TEST(fair_one_try_leaves_nothing),
            TEST(F92_release_tells_the_head_and_nobody_else),
            TEST(F88_fifty_waiters_are_served_in_order),
            TEST(F92_whoever_gives_up_passes_its_turn_on),
            TEST(F89_our_dead_are_skipped_wherever_they_stand),
            TEST(F89_release_and_force_skip_the_dead),
            TEST(F90_java_waiters_are_purged_by_redissons_rule),
            TEST(F91_a_head_without_a_turn_is_repaired),
            TEST(F91_parts_of_the_queue_that_are_lost_come_back),
            TEST(F91_javas_changes_of_turns_cost_no_place),
            TEST(fair_force_keeps_the_queue),
            TEST(F79_a_late_reentry_of_a_fair_lock_begins_nothing),
            TEST(fair_queues_are_bounded),
            TEST(a_reader_writes_redissons_hash_and_key),
            TEST(a_writer_writes_redissons_hash),
            TEST(acquires_of_sides_are_counted_once),
            TEST(readers_keep_a_writer_out),
            TEST(F93_a_downgrade_lets_readers_in_and_no_writer),
            TEST(F95_the_other_order_of_releases),
            TEST(F94_a_dead_readers_hold_ends_with_its_own_lease),
            TEST(F94_the_last_live_reader_takes_the_dead_along),
            TEST(readers_are_forced_and_so_is_the_writer),
            TEST(a_mode_that_nobody_has_is_repaired),
            TEST(a_hash_without_ttl_gets_one_from_the_next_reader),
            TEST(the_head_of_a_fair_queue_is_told_and_can_be_dropped),
            TEST(a_fair_queue_has_a_ttl_while_one_of_ours_waits),
            TEST(F52_kinds_are_not_mixed),
            TEST(F52_a_hash_of_somebody_else_is_no_lock),
            TEST(any_tells_what_is_there),
            TEST(F80_java_holders_are_told_as_foreign),
            TEST(list_tells_every_kind_that_is_held),
            TEST(a_spin_lock_tells_nobody),
            TEST(F105_terms_are_told_to_observers),
            TEST(latches_can_be_observed),
            TEST(plain_locks_can_be_observed),
            TEST(channels_of_kinds_are_redissons),
            TEST(values_up_to_the_limit_come_back),
            TEST(F51_every_kind_survives_forgotten_scripts),
            TEST(F48_a_full_server_releases_every_kind),
            TEST(F48_a_full_server_serves_a_queue_that_stands),
            TEST(F48_a_full_server_downgrades),
            TEST(F55_the_rights_that_are_named_are_enough),
        };

        return kit_run(tests, kit_start, kit_stop);
}
