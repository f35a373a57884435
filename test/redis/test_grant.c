/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Direct grant on a real server (doc/design/direct-grant.md): who stands in the queue, to whom a
 * release or a force hands the lock and what it is told, who is skipped, what others hear; and what
 * is left of it on servers that are full, forget, refuse, or hold something else under its keys.
 * Two clients, and a listener that hears every message.
 */

#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "model/record.h"

#define CHANNEL "redisson_lock__channel:{x}"
#define KEYS_OF_THE_QUEUE "EXISTS snib_queue:{x} snib_share:{x}"
/* The second at the end of the first entry of the queue. Commands are split at blanks. */
#define ASKED "EVAL return(string.match(redis.call('LINDEX',KEYS[1],0),'[0-9]+$')) 1 snib_queue:{x}"
#define SET_ASKED                                                                                            \
        "EVAL redis.call('LSET',KEYS[1],0,(string.gsub(redis.call('LINDEX',KEYS[1],0),'[0-9]+$',ARGV[1]))) " \
        "1 snib_queue:{x} %lld"

#define STANDS_TWICE "EVAL redis.call('RPUSH',KEYS[1],redis.call('LINDEX',KEYS[1],0)) 1 snib_queue:{x}"
#define STANDS \
        "EVAL redis.call('RPUSH',KEYS[1],table.concat({ARGV[1],30000,1,0,'9000000000'},'\\32')) 1 snib_queue:{x} "

/* What was said of the latest grant. */
static uint8_t streak;

/* ---- short hands */

static struct snib__op asked(struct pump *p, enum snib__verb verb, int kind, const struct snib__id *id)
{
        struct snib__op op = pump_op(p, verb, "x", id ? *id : (struct snib__id){{0}}, 30000);

        op.kind = kind;
        op.enqueue = verb == SNIB__ACQUIRE;
        op.settled = true;
        op.streak = streak;
        return op;
}

static struct snib__reply with(struct pump *p, enum snib__verb verb, int kind, const struct snib__id *id)
{
        struct snib__op op = asked(p, verb, kind, id);

        return pump_do(p, &op);
}

static struct snib__id granted(struct pump *p, int kind)
{
        struct snib__id id = pump_id(p);

        assert_int_equal(with(p, SNIB__ACQUIRE, kind, &id).status, SNIB__GRANTED);
        return id;
}

static struct snib__id queued(struct pump *p, int kind, int64_t place)
{
        struct snib__id id = pump_id(p);
        struct snib__reply r = with(p, SNIB__ACQUIRE, kind, &id);

        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.position, place);
        assert_true(r.waiters >= place && r.waiters_at_least);
        return id;
}

static void released(struct pump *p, int kind, const struct snib__id *id)
{
        assert_int_equal(with(p, SNIB__RELEASE, kind, id).status, SNIB__RELEASED);
}

static const struct snib__topic x_lock = {.name = {"x", 1}};

static void watch(struct pump *p)
{
        p->engine->ops->watch(p->engine, &x_lock, pump_now());
        (void)pump_wait(p, SNIB__NOTE_WATCHING);
}

/* Both clients can be told. */
static int open_watching(void **state)
{
        int r = kit_open(state);

        streak = 0;
        watch(kit_a);
        watch(kit_b);
        return r;
}

/* This client is told that this hold has it; the token. */
static int64_t told(struct pump *p, const struct snib__id *id)
{
        struct pump_note n = pump_wait(p, SNIB__NOTE_GRANTED);
        char channel[64], text[256];
        int tokens;

        assert_string_equal(n.note.id.text, id->text);
        assert_string_equal(n.name, "x");
        snprintf(channel, sizeof(channel), "snib_granted:%s", p->uuid);
        tokens = kit_number("EXISTS redisson_lock_token:{x}") ? SNIB__TOKEN_BLOCK : 0;
        streak = n.note.reply.streak;
        snprintf(text, sizeof(text), "%s %lld %d %u %d x", id->text,
                 (long long)n.note.reply.token + (tokens ? tokens - 1 : 0), tokens, n.note.tag.attempt, streak);
        kit_heard(channel, text);
        assert_int_equal(kit_number("HGET x %s", id->text), 1);
        kit_near(kit_number("PTTL x"), 30000, 1000);
        return n.note.reply.token;
}

/* Somebody who listens as Java does. */
static struct pump *a_java_waiter(void)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 3);
        struct snib__topic topic = {.name = {"x", 1}, .kind = SNIB_KIND_ELECTION}; /* the bare channel */

        p->engine->ops->watch(p->engine, &topic, pump_now());
        (void)pump_wait(p, SNIB__NOTE_WATCHING);
        return p;
}

/* ---- the queue */

static void waiters_stand_in_order_of_arrival(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_LOCK, 1),
                        second = queued(kit_a, SNIB_KIND_LOCK, 2), alone = pump_id(kit_a);
        struct snib__op op = asked(kit_a, SNIB__ACQUIRE, SNIB_KIND_LOCK, &alone);
        struct snib__reply r;

        (void)state;
        kit_near(kit_number(ASKED), kit_now_ms() / 1000, 2);
        kit_near(kit_number("PTTL snib_queue:{x}"), 60000, 1000);
        r = with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first); /* again: no second place */
        assert_int_equal(r.position, 1);
        assert_int_equal(r.waiters, 2);
        assert_string_equal(r.holder.id.text, holder.text);
        op.enqueue = false; /* a single try takes none */
        r = pump_do(kit_a, &op);
        assert_int_equal(r.position, 0);
        assert_int_equal(r.waiters, 2);
        r = with(kit_b, SNIB__QUERY, SNIB_KIND_LOCK, NULL);
        assert_int_equal(r.waiters, 2);
        assert_true(r.waiters_at_least);
        assert_int_equal(with(kit_b, SNIB__QUERY, SNIB_KIND_ANY, NULL).waiters, 2);
        released(kit_a, SNIB_KIND_LOCK, &second);
        assert_int_equal(kit_number("LLEN snib_queue:{x}"), 1);
        assert_int_equal(with(kit_a, SNIB__RELEASE, SNIB_KIND_LOCK, &second).status, SNIB__GONE);
        kit_heard_nothing();
}

static void whoever_cannot_be_told_takes_no_place(void **state)
{
        (void)state;
        (void)granted(kit_a, SNIB_KIND_LOCK);
        (void)queued(kit_b, SNIB_KIND_LOCK, 0);
        assert_int_equal(kit_number(KEYS_OF_THE_QUEUE), 0);
}

static void a_release_hands_it_to_the_first(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_LOCK, 1),
                        second = queued(kit_a, SNIB_KIND_LOCK, 2);
        struct pump_note n;
        int64_t token;

        (void)state;
        released(kit_a, SNIB_KIND_LOCK, &holder);
        token = told(kit_b, &first);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first).status, SNIB__GRANTED);
        released(kit_b, SNIB_KIND_LOCK, &first);
        assert_true(told(kit_a, &second) > token);
        released(kit_a, SNIB_KIND_LOCK, &second);
        kit_heard(CHANNEL, "0"); /* nobody is left */
        kit_heard_nothing();
        assert_false(pump_try(kit_b, SNIB__NOTE_GRANTED, 0, &n));
        assert_int_equal(kit_number(KEYS_OF_THE_QUEUE), 0);
        assert_int_equal(kit_number("EXISTS x"), 0);
}

static void a_force_hands_it_on_too(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FENCED), first = queued(kit_b, SNIB_KIND_FENCED, 1);
        struct snib__reply r = with(kit_a, SNIB__FORCE, SNIB_KIND_FENCED, NULL);

        (void)state;
        assert_true(r.held);
        assert_string_equal(r.holder.id.text, holder.text);
        assert_int_equal(told(kit_b, &first) + SNIB__TOKEN_BLOCK - 1, kit_number("GET redisson_lock_token:{x}"));
        assert_int_equal(with(kit_a, SNIB__RELEASE, SNIB_KIND_FENCED, &holder).status, SNIB__GONE);
}

static void tokens_of_fenced_locks_are_the_counters(void **state)
{
        struct snib__id holder, first, second;
        int64_t token;

        (void)state;
        kit_do("SET redisson_lock_token:{x} 9007199254740993"); /* beyond what Lua counts exactly */
        holder = granted(kit_a, SNIB_KIND_FENCED);
        first = queued(kit_b, SNIB_KIND_FENCED, 1);
        second = queued(kit_a, SNIB_KIND_FENCED, 2);
        released(kit_a, SNIB_KIND_FENCED, &holder);
        assert_int_equal(told(kit_b, &first), INT64_C(9007199254741010));
        kit_do("DEL redisson_lock_token:{x}"); /* the time is above what it was before that, and above 0 */
        released(kit_b, SNIB_KIND_FENCED, &first);
        token = told(kit_a, &second);
        assert_true(token > INT64_C(1700000000000000));
        assert_int_equal(token + SNIB__TOKEN_BLOCK - 1, kit_number("GET redisson_lock_token:{x}"));
}

static void a_plain_holder_hands_a_fenced_waiter_its_token(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_FENCED, 1);

        (void)state;
        assert_int_equal(kit_number("EXISTS redisson_lock_token:{x}"), 0);
        released(kit_a, SNIB_KIND_LOCK, &holder);
        assert_int_equal(told(kit_b, &first) + SNIB__TOKEN_BLOCK - 1, kit_number("GET redisson_lock_token:{x}"));
}

static void whoever_takes_a_free_lock_stands_no_more(void **state)
{
        struct snib__id first, second;

        (void)state;
        (void)granted(kit_a, SNIB_KIND_LOCK);
        first = queued(kit_b, SNIB_KIND_LOCK, 1);
        second = queued(kit_b, SNIB_KIND_LOCK, 2);
        kit_do("DEL x"); /* its lease is over */
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &second).status, SNIB__GRANTED);
        assert_int_equal(kit_number("LLEN snib_queue:{x}"), 1);
        released(kit_b, SNIB_KIND_LOCK, &second);
        (void)told(kit_b, &first);
}

/* A question of it whose answer was lost is executed after a later one. */
static void whoever_stands_there_twice_is_served_once(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_LOCK, 1);
        struct snib__op again = asked(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first),
                        release = asked(kit_b, SNIB__RELEASE, SNIB_KIND_LOCK, &first);

        (void)state;
        again.settled = release.settled = false;
        assert_int_equal(pump_do(kit_b, &again).position, 1);
        assert_int_equal(with(kit_b, SNIB__QUERY, SNIB_KIND_LOCK, NULL).waiters, 1);
        kit_do(STANDS_TWICE);
        released(kit_a, SNIB_KIND_LOCK, &holder);
        (void)told(kit_b, &first);
        assert_int_equal(kit_number(KEYS_OF_THE_QUEUE), 0);
        holder = first;
        first = queued(kit_b, SNIB_KIND_LOCK, 1);
        kit_do(STANDS_TWICE);
        assert_int_equal(with(kit_b, SNIB__RELEASE, SNIB_KIND_LOCK, &first).status, SNIB__RELEASED);
        assert_int_equal(kit_number(KEYS_OF_THE_QUEUE), 0);
        kit_do(STANDS "%s", holder.text);
        assert_int_equal(pump_do(kit_b, &release).status, SNIB__RELEASED);
        kit_heard(CHANNEL, "0");
        assert_int_equal(kit_number(KEYS_OF_THE_QUEUE), 0);
        holder = granted(kit_a, SNIB_KIND_LOCK);
        kit_do(STANDS "%s", holder.text);
        released(kit_a, SNIB_KIND_LOCK, &holder); /* to itself least of all */
        kit_heard(CHANNEL, "0");
        assert_int_equal(kit_number("EXISTS x"), 0);
}

/* ---- the dead */

static void F92_the_dead_are_skipped(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 3);
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), silent = queued(kit_a, SNIB_KIND_LOCK, 1), first;
        char uuid[sizeof(p->uuid)];

        (void)state;
        memcpy(uuid, p->uuid, sizeof(uuid));
        watch(p);
        (void)queued(p, SNIB_KIND_LOCK, 2);
        pump_close(p); /* without a release, as if it were killed */
        while (kit_number("PUBLISH snib_granted:%s nobody", uuid) > 1)
                ; /* the server has not noticed yet; 1: the listener of this test */
        first = queued(kit_b, SNIB_KIND_LOCK, 3);
        kit_do(SET_ASKED, kit_now_ms() / 1000 - SNIB__WAITER_LEASE_MS / 1000);
        pump_forget(kit_b);
        released(kit_a, SNIB_KIND_LOCK, &holder);
        assert_int_equal(kit_number("HGET x %s", first.text), 1);
        assert_string_equal(pump_wait(kit_b, SNIB__NOTE_GRANTED).note.id.text, first.text);
        assert_int_equal(kit_number(KEYS_OF_THE_QUEUE), 0);
        /* Of the one that was silent for too long nothing is left but what it asks now. */
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_LOCK, &silent).position, 1);
}

static void if_all_are_dead_everybody_is_woken(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK);

        (void)state;
        (void)queued(kit_a, SNIB_KIND_LOCK, 1);
        kit_do(SET_ASKED, 1LL);
        released(kit_a, SNIB_KIND_LOCK, &holder);
        kit_heard(CHANNEL, "0");
        (void)pump_wait(kit_b, SNIB__NOTE_CHANGED);
        assert_int_equal(kit_number("EXISTS x snib_queue:{x}"), 0);
}

/* ---- others */

static void others_get_their_share(void **state)
{
        struct pump *java = a_java_waiter();
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first, last;
        struct snib__reply r;
        struct pump_note n;
        char channel[64], text[256];
        long long ttl_ms;

        (void)state;
        for (int i = 0; i < 16; i++) {
                struct pump *from = i % 2 ? kit_b : kit_a, *to = i % 2 ? kit_a : kit_b;
                first = queued(to, SNIB_KIND_LOCK, 1);
                released(from, SNIB_KIND_LOCK, &holder);
                (void)told(to, &first);
                assert_int_equal(streak, i + 1);
                holder = first;
        }
        first = queued(kit_b, SNIB_KIND_LOCK, 1);
        kit_do("CONFIG SET notify-keyspace-events K$"); /* a SET is heard, however soon it is over */
        released(kit_a, SNIB_KIND_LOCK, &holder);
        kit_do("CONFIG SET notify-keyspace-events A"); /* by nobody */
        snprintf(channel, sizeof(channel), "snib_granted:%s", kit_b->uuid);
        n = pump_wait(kit_b, SNIB__NOTE_NEXT);
        assert_string_equal(n.note.id.text, first.text);
        snprintf(text, sizeof(text), "%s 0 0 %u 0 x", first.text, n.note.tag.attempt);
        kit_heard(channel, text);
        kit_heard("__keyspace@0__:snib_share:{x}", "set");
        kit_heard(CHANNEL, "00");
        assert_int_equal(kit_number("EXISTS x"), 0);
        ttl_ms = kit_number("PTTL snib_share:{x}");
        assert_true(ttl_ms <= 25 && ttl_ms != -1);                /* it is over soon, or is over */
        assert_false(pump_try(kit_a, SNIB__NOTE_CHANGED, 0, &n)); /* that is not for us */
        /* For a moment it is free for others only. */
        kit_do("SET snib_share:{x} 1");
        last = pump_id(kit_a);
        r = with(kit_a, SNIB__ACQUIRE, SNIB_KIND_LOCK, &last);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_false(r.held);
        assert_int_equal(r.position, 2);
        kit_do("HSET x b2a3c0de-1111-4222-8333-444455556666:42 1");
        kit_do("PEXPIRE x 30000");
        r = with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first); /* it is first still, after whoever was faster */
        assert_true(r.held && r.position == 1);
        kit_do("DEL x");
        kit_do("DEL snib_share:{x}");
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_LOCK, &last).status, SNIB__GRANTED);
        streak = 0;
        released(kit_a, SNIB_KIND_LOCK, &last);
        (void)told(kit_b, &first); /* and the count begins anew */
        pump_close(java);
}

static void where_only_ours_listen_nothing_is_left_free(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first;

        (void)state;
        for (int i = 0; i < 40; i++) {
                struct pump *from = i % 2 ? kit_b : kit_a, *to = i % 2 ? kit_a : kit_b;
                first = queued(to, SNIB_KIND_LOCK, 1);
                released(from, SNIB_KIND_LOCK, &holder);
                (void)told(to, &first);
                assert_int_equal(streak, i % 16 + 1);
                holder = first;
        }
}

static void a_javas_release_wakes_everybody(void **state)
{
        (void)state;
        kit_do("HSET x b2a3c0de-1111-4222-8333-444455556666:42 1");
        kit_do("PEXPIRE x 30000");
        (void)queued(kit_b, SNIB_KIND_LOCK, 1);
        kit_do("DEL x");
        kit_do("PUBLISH " CHANNEL " 0");
        (void)pump_wait(kit_a, SNIB__NOTE_CHANGED);
        (void)pump_wait(kit_b, SNIB__NOTE_CHANGED);
}

/* ---- subscriptions */

static void a_subscription_stays_for_a_moment(void **state)
{
        struct pump_note first, second;

        (void)state;
        kit_b->engine->ops->unwatch(kit_b->engine, &x_lock, pump_now());
        kit_do("PUBLISH " CHANNEL " 0");
        assert_string_equal(pump_wait(kit_b, SNIB__NOTE_CHANGED).name, "x"); /* for who asks at this moment */
        kit_b->engine->ops->watch(kit_b->engine, &x_lock, pump_now());
        first = pump_wait(kit_b, SNIB__NOTE_WATCHING);
        assert_true(first.note.since < pump_now());
        kit_b->engine->ops->watch(kit_b->engine, &x_lock, pump_now());
        second = pump_wait(kit_b, SNIB__NOTE_WATCHING);
        assert_true(first.note.since == second.note.since); /* nothing was missed in between */
        for (int i = 0; i < 2; i++)
                kit_b->engine->ops->unwatch(kit_b->engine, &x_lock, pump_now());
        kit_a->engine->ops->unwatch(kit_a->engine, &x_lock, pump_now());
        while (kit_number("PUBLISH " CHANNEL " 0") > 1 || kit_number("PUBLISH snib_listening:{x} 0") > 1) {
                pump_turn(kit_a, pump_now());
                pump_turn(kit_b, pump_now());
                pump_forget(kit_a);
                pump_forget(kit_b);
        }
}

/* ---- servers that fail */

static void an_evicted_queue_costs_a_question(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_LOCK, 1);

        (void)state;
        kit_do("DEL snib_queue:{x}");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first).position, 1);
        released(kit_a, SNIB_KIND_LOCK, &holder);
        (void)told(kit_b, &first);
        released(kit_b, SNIB_KIND_LOCK, &first);
        kit_heard(CHANNEL, "0");
        /* Asked no more before the release: everybody is woken, as ever. */
        holder = granted(kit_a, SNIB_KIND_LOCK);
        (void)queued(kit_b, SNIB_KIND_LOCK, 1);
        kit_do("DEL snib_queue:{x}");
        released(kit_a, SNIB_KIND_LOCK, &holder);
        kit_heard(CHANNEL, "0");
        assert_int_equal(kit_number("EXISTS x"), 0);
}

static void F52_something_else_under_the_queues_keys(void **state)
{
        struct snib__id holder, waiter;

        (void)state;
        kit_do("SET snib_queue:{x} text");
        holder = granted(kit_a, SNIB_KIND_FENCED);
        waiter = queued(kit_b, SNIB_KIND_FENCED, 0);
        released(kit_a, SNIB_KIND_FENCED, &holder);
        kit_heard(CHANNEL, "0");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FENCED, &waiter).status, SNIB__GRANTED);
        assert_int_equal(with(kit_a, SNIB__FORCE, SNIB_KIND_FENCED, NULL).held, true);
        kit_heard(CHANNEL, "0");
        kit_do("DEL snib_queue:{x}");
        kit_do("RPUSH snib_share:{x} text");
        waiter = pump_id(kit_b);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FENCED, &waiter).status, SNIB__BUSY);
        kit_do("DEL snib_share:{x}");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FENCED, &waiter).status, SNIB__GRANTED);
}

static void nonsense_in_the_queue_is_thrown_out(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first;

        (void)state;
        kit_do("RPUSH snib_queue:{x} nonsense b2a3c0de:1");
        kit_do("RPUSH snib_queue:{x} b2a3c0de-1111-4222-8333-444455556666:1");
        kit_do("RPUSH snib_queue:{x} 30000");
        first = queued(kit_b, SNIB_KIND_LOCK, 5);
        released(kit_a, SNIB_KIND_LOCK, &holder);
        (void)told(kit_b, &first);
        assert_int_equal(kit_number("EXISTS snib_queue:{x}"), 0);
}

static void F48_a_full_server_hands_on(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_FENCED), first = queued(kit_b, SNIB_KIND_FENCED, 1), other;

        (void)state;
        kit_do("CONFIG SET maxmemory 1");
        other = queued(kit_a, SNIB_KIND_FENCED, 0); /* nobody joins */
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_FENCED, &first).position, 1);
        released(kit_a, SNIB_KIND_FENCED, &holder);
        assert_true(told(kit_b, &first) > 0);
        released(kit_b, SNIB_KIND_FENCED, &first);
        kit_heard(CHANNEL, "0");
        kit_do("CONFIG SET maxmemory 0");
        assert_int_equal(with(kit_a, SNIB__ACQUIRE, SNIB_KIND_FENCED, &other).status, SNIB__GRANTED);
}

static void F51_forgotten_scripts_keep_the_queue(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_LOCK, 1);

        (void)state;
        kit_do("SCRIPT FLUSH");
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first).position, 1);
        kit_do("SCRIPT FLUSH");
        released(kit_a, SNIB_KIND_LOCK, &holder);
        (void)told(kit_b, &first);
}

static void F38_a_flushed_queue_is_nobodys(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK), first = queued(kit_b, SNIB_KIND_LOCK, 1);

        (void)state;
        kit_do("FLUSHALL");
        assert_int_equal(with(kit_a, SNIB__RELEASE, SNIB_KIND_LOCK, &holder).status, SNIB__GONE);
        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &first).status, SNIB__GRANTED);
}

/* Without rights to the queue, or to tell and to ask who listens, it is a lock whose waiters are
 * woken by message. */
static void F55_without_the_rights_there_is_no_queue(void **state)
{
        static const struct {
                const char *rights;
                bool joins, hands_on;
        } lacking[] = {{"~x ~redisson* ~snib_client* &* +@all", false, false},
                       {"~* &* +@all -lpop", true, false},
                       {"~* &* +@all -rpush", false, true},
                       {"~* &* +@all -pubsub|numsub", true, false},
                       {"~* &redisson_lock__channel:* &snib_listening:* +@all", false, false}};
        char url[128];
        struct pump *p;

        (void)state;
        snprintf(url, sizeof(url), "redis://few:secret@127.0.0.1:%d", redis_server_port(kit_server));
        for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
                struct snib__id holder, waiter;
                kit_do("ACL SETUSER few reset on >secret %s", lacking[i].rights);
                p = pump_connect(url, 3);
                p->engine->ops->watch(p->engine, &x_lock, pump_now());
                (void)pump_wait(p, SNIB__NOTE_WATCHING);
                holder = granted(p, SNIB_KIND_LOCK);
                waiter = pump_id(kit_b);
                assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &waiter).status, SNIB__BUSY);
                released(p, SNIB_KIND_LOCK, &holder);
                if (lacking[i].hands_on) {
                        (void)told(kit_b, &waiter);
                } else {
                        kit_heard(CHANNEL, "0");
                        assert_int_equal(with(kit_b, SNIB__ACQUIRE, SNIB_KIND_LOCK, &waiter).status, SNIB__GRANTED);
                }
                holder = pump_id(p);
                assert_int_equal(with(p, SNIB__ACQUIRE, SNIB_KIND_LOCK, &holder).position, lacking[i].joins);
                released(kit_b, SNIB_KIND_LOCK, &waiter);
                assert_int_equal(with(p, SNIB__ACQUIRE, SNIB_KIND_LOCK, &holder).status, SNIB__GRANTED);
                released(p, SNIB_KIND_LOCK, &holder);
                pump_close(p);
                kit_do("ACL DELUSER few");
                kit_close(state);
                open_watching(state);
        }
}

/* ---- what others see */

static void a_list_tells_no_queue(void **state)
{
        struct snib__id holder = granted(kit_a, SNIB_KIND_LOCK);
        struct pump_note n;

        (void)state;
        (void)queued(kit_b, SNIB_KIND_LOCK, 1);
        kit_a->engine->ops->list(kit_a->engine, (struct snib__tag){0}, pump_now());
        n = pump_wait(kit_a, SNIB__NOTE_LISTED);
        assert_string_equal(n.name, "x");
        assert_string_equal(n.note.reply.holder.id.text, holder.text);
        assert_int_equal(n.note.reply.waiters, 1);
        assert_false(pump_try(kit_a, SNIB__NOTE_LISTED, 0, &n));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_watching, kit_close)
        static const struct CMUnitTest tests[] = {
            TEST(waiters_stand_in_order_of_arrival),
            cmocka_unit_test_setup_teardown(whoever_cannot_be_told_takes_no_place, kit_open, kit_close),
            TEST(a_release_hands_it_to_the_first),
            TEST(a_force_hands_it_on_too),
            TEST(tokens_of_fenced_locks_are_the_counters),
            TEST(a_plain_holder_hands_a_fenced_waiter_its_token),
            TEST(whoever_takes_a_free_lock_stands_no_more),
            TEST(whoever_stands_there_twice_is_served_once),
            TEST(F92_the_dead_are_skipped),
            TEST(if_all_are_dead_everybody_is_woken),
            TEST(others_get_their_share),
            TEST(where_only_ours_listen_nothing_is_left_free),
            TEST(a_javas_release_wakes_everybody),
            TEST(a_subscription_stays_for_a_moment),
            TEST(an_evicted_queue_costs_a_question),
            TEST(F52_something_else_under_the_queues_keys),
            TEST(nonsense_in_the_queue_is_thrown_out),
            TEST(F48_a_full_server_hands_on),
            TEST(F51_forgotten_scripts_keep_the_queue),
            TEST(F38_a_flushed_queue_is_nobodys),
            TEST(F55_without_the_rights_there_is_no_queue),
            TEST(a_list_tells_no_queue),
        };

        return kit_run(tests, kit_start, kit_stop);
}
