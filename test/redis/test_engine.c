/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Redis engine against a real server: what it answers, and what stands in the server
 * afterwards, byte for byte what Redisson reads and writes. One server for all of it, flushed
 * before each test. The faults are in test_faults.c.
 */

#include "engine/redis/script.h"
#include <inttypes.h>
#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"

static struct pump *a, *b;

static int open_both(void **state)
{
        (void)state;
        assert_int_not_equal(redis_server_int(kit_server, "DBSIZE"), INT64_MIN);
        freeReplyObject(redis_server_do(kit_server, "FLUSHALL"));
        a = pump_connect(redis_server_url(kit_server), 1);
        b = pump_connect(redis_server_unix_url(kit_server), 2);
        return 0;
}

static int close_both(void **state)
{
        (void)state;
        pump_close(a);
        pump_close(b);
        return 0;
}

static void assert_text(const char *expected, const char *format, const char *key)
{
        redisReply *r = redis_server_do(kit_server, format, key);

        assert_non_null(r);
        assert_int_equal(r->type, REDIS_REPLY_STRING);
        assert_string_equal(r->str, expected);
        freeReplyObject(r);
}

/* The hash holds one field, this id, with the value 1, and a TTL in (least, most]. */
static void assert_hold(const char *name, const char *id, long long least, long long most)
{
        redisReply *r = redis_server_do(kit_server, "HGETALL %s", name);
        long long left = redis_server_int(kit_server, "PTTL %s", name);

        assert_non_null(r);
        assert_int_equal(r->elements, 2);
        assert_string_equal(r->element[0]->str, id);
        assert_string_equal(r->element[1]->str, "1");
        freeReplyObject(r);
        assert_true(left > least && left <= most);
}

static void acquire_writes_redissons_hash(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "orders", id, 30000);
        struct snib__reply r = pump_do(a, &op);

        (void)state;
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_true(r.token > INT64_C(1700000000000000));
        assert_hold("orders", id.text, 29000, 30000);
}

/* As the model: a re-entry confirms a hold and begins none. */
static void F79_a_late_reentry_begins_no_hold(void **state)
{
        (void)state;
        for (int fenced = 0; fenced < 2; fenced++) {
                struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", pump_id(a), 5000);
                struct snib__op other = pump_op(b, SNIB__ACQUIRE, "x", pump_id(b), 5000);
                op.kind = other.kind = fenced ? SNIB_KIND_FENCED : SNIB_KIND_LOCK;
                op.token = pump_do(a, &op).token;
                assert_int_equal(pump_do(a, &op).status, SNIB__GRANTED);
                freeReplyObject(redis_server_do(kit_server, "DEL x"));
                struct snib__reply r = pump_do(a, &op);
                assert_int_equal(r.status, SNIB__GONE);
                assert_false(r.held);
                assert_int_equal(redis_server_int(kit_server, "EXISTS x"), 0);
                assert_int_equal(pump_do(b, &other).status, SNIB__GRANTED);
                r = pump_do(a, &op);
                assert_int_equal(r.status, SNIB__GONE);
                assert_true(r.held);
                other.verb = SNIB__RELEASE;
                assert_int_equal(pump_do(b, &other).status, SNIB__RELEASED);
        }
}

static void acquire_again_confirms(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", id, 5000);
        struct snib__reply r = pump_do(a, &op);
        int64_t token = r.token;

        (void)state;
        op.token = token;
        op.lease_ms = 60000;
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_int_equal(r.token, token);
        assert_hold("x", id.text, 59000, 60000);
        op.token = 0; /* the first answer was lost */
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_true(r.token >= token);
        assert_hold("x", id.text, 59000, 60000);
}

static void acquire_of_a_held_lock_is_busy(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", id, 5000);
        struct snib__reply r = pump_do(a, &op);

        (void)state;
        op = pump_op(b, SNIB__ACQUIRE, "x", pump_id(b), 60000);
        r = pump_do(b, &op);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_true(r.held && r.left_ms > 4000 && r.left_ms <= 5000);
        assert_string_equal(r.holder.id.text, id.text);
        assert_hold("x", id.text, 4000, 5000);
        /* The holder's record was looked up in the meantime: a later refusal says who it is. */
        for (int i = 0; i < 100 && !r.holder.who.host[0]; i++)
                r = pump_do(b, &op);
        assert_string_equal(r.holder.who.host, "host1");
        assert_string_equal(r.holder.who.label, "label1");
        assert_int_equal(r.holder.who.pid, 1001);
}

static void release_deletes_and_publishes(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", id, 5000);
        struct snib__reply r = pump_do(a, &op);

        (void)state;
        b->engine->ops->watch(b->engine, &(struct snib__topic){.name = {"x", 1}}, pump_now());
        assert_string_equal(pump_wait(b, SNIB__NOTE_WATCHING).name, "x");
        op.verb = SNIB__RELEASE;
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__RELEASED);
        assert_int_equal(redis_server_int(kit_server, "EXISTS x"), 0);
        struct pump_note n = pump_wait(b, SNIB__NOTE_CHANGED);
        assert_string_equal(n.name, "x");
        assert_false(n.note.all);
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__GONE);
        assert_false(r.held);
}

static void release_by_another_changes_nothing(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", id, 5000);
        struct snib__reply r = pump_do(a, &op);

        (void)state;
        for (int verb = SNIB__RELEASE; verb <= SNIB__RENEW; verb++) {
                op = pump_op(b, (enum snib__verb)verb, "x", pump_id(b), 90000);
                r = pump_do(b, &op);
                assert_int_equal(r.status, SNIB__GONE);
                assert_true(r.held);
                assert_string_equal(r.holder.id.text, id.text);
                assert_hold("x", id.text, 4000, 5000);
        }
}

static void renew_starts_the_lease_again(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", id, 1000);
        struct snib__reply r = pump_do(a, &op);

        (void)state;
        op = pump_op(a, SNIB__RENEW, "x", id, 30000);
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__RENEWED);
        assert_hold("x", id.text, 29000, 30000);
        freeReplyObject(redis_server_do(kit_server, "DEL x"));
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__GONE);
        assert_false(r.held);
        assert_int_equal(redis_server_int(kit_server, "EXISTS x"), 0);
}

static void fenced_counter_is_redissons_and_rises(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "f", id, 5000);
        char text[32];

        (void)state;
        op.kind = SNIB_KIND_FENCED;
        struct snib__reply r = pump_do(a, &op);
        int64_t first = r.token;
        assert_int_equal(r.status, SNIB__GRANTED);
        snprintf(text, sizeof(text), "%" PRId64, first + SNIB__TOKEN_BLOCK - 1);
        assert_text(text, "GET %s", "redisson_lock_token:{f}");
        assert_int_equal(redis_server_int(kit_server, "PTTL redisson_lock_token:{f}"), -1);
        op.token = first;
        r = pump_do(a, &op); /* a confirmation keeps it */
        assert_int_equal(r.token, first);
        op.verb = SNIB__RELEASE;
        (void)pump_do(a, &op);
        assert_text(text, "GET %s", "redisson_lock_token:{f}");
        op = pump_op(b, SNIB__ACQUIRE, "f", pump_id(b), 5000);
        op.kind = SNIB_KIND_FENCED;
        assert_true(pump_do(b, &op).token > first);
}

static void a_lost_counter_brings_no_token_back(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "f", id, 5000);

        (void)state;
        op.kind = SNIB_KIND_FENCED;
        int64_t first = pump_do(a, &op).token;
        freeReplyObject(redis_server_do(kit_server, "DEL redisson_lock_token:{f}"));
        op.token = first;
        assert_int_equal(pump_do(a, &op).token, first); /* under a live hold it is put back */
        assert_int_equal(redis_server_int(kit_server, "GET redisson_lock_token:{f}"), first + SNIB__TOKEN_BLOCK - 1);
        freeReplyObject(redis_server_do(kit_server, "FLUSHALL"));
        op.id = pump_id(a);
        op.token = 0;
        assert_true(pump_do(a, &op).token > first);
}

static void F58_tokens_above_2_to_53_stay_exact(void **state)
{
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "f", pump_id(a), 5000);

        (void)state;
        op.kind = SNIB_KIND_FENCED;
        freeReplyObject(redis_server_do(kit_server, "SET redisson_lock_token:{f} 9007199254740993"));
        assert_int_equal(pump_do(a, &op).token, INT64_C(9007199254740994));
        op.verb = SNIB__RELEASE;
        (void)pump_do(a, &op);
        op = pump_op(a, SNIB__ACQUIRE, "f", pump_id(a), 5000);
        op.kind = SNIB_KIND_FENCED;
        assert_int_equal(pump_do(a, &op).token, INT64_C(9007199254740994) + SNIB__TOKEN_BLOCK);
        freeReplyObject(redis_server_do(kit_server, "DEL f"));
        freeReplyObject(redis_server_do(kit_server, "SET redisson_lock_token:{f} 9223372036854775807"));
        struct snib__reply r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__FAILED);
        assert_int_equal(r.error, SNIB_EREFUSED);
        assert_int_equal(redis_server_int(kit_server, "EXISTS f"), 0);
}

static void force_ends_whoevers_hold(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", id, 5000);
        struct snib__reply r = pump_do(a, &op);

        (void)state;
        b->engine->ops->watch(b->engine, &(struct snib__topic){.name = {"x", 1}}, pump_now());
        (void)pump_wait(b, SNIB__NOTE_WATCHING);
        op = pump_op(b, SNIB__FORCE, "x", (struct snib__id){{0}}, 0);
        r = pump_do(b, &op);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.held);
        assert_string_equal(r.holder.id.text, id.text);
        assert_string_equal(r.holder.who.host, "host1");
        assert_int_equal(redis_server_int(kit_server, "EXISTS x"), 0);
        (void)pump_wait(b, SNIB__NOTE_CHANGED);
        r = pump_do(b, &op);
        assert_int_equal(r.status, SNIB__INFO);
        assert_false(r.held);
}

static void query_tells_holder_waiters_and_token(void **state)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "q", id, 5000);

        (void)state;
        op.kind = SNIB_KIND_FENCED;
        int64_t token = pump_do(a, &op).token;
        b->engine->ops->watch(b->engine, &(struct snib__topic){.name = {"q", 1}}, pump_now());
        (void)pump_wait(b, SNIB__NOTE_WATCHING);
        op = pump_op(b, SNIB__ACQUIRE, "q", pump_id(b), 5000);
        op.kind = SNIB_KIND_FENCED;
        op.enqueue = true;
        assert_int_equal(pump_do(b, &op).position, 1);
        op = pump_op(b, SNIB__QUERY, "q", (struct snib__id){{0}}, 0);
        op.kind = SNIB_KIND_FENCED;
        struct snib__reply r = pump_do(b, &op);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.held && r.left_ms > 4000);
        assert_int_equal(r.token, token + SNIB__TOKEN_BLOCK - 1); /* the last that its holder may have given itself */
        assert_int_equal(r.holder.since_ms, r.token / 1000);
        assert_int_equal(r.waiters, 1);
        assert_true(r.waiters_at_least);
        assert_string_equal(r.holder.id.text, id.text);
        assert_string_equal(r.holder.who.label, "label1");
        op = pump_op(b, SNIB__QUERY, "nobody", (struct snib__id){{0}}, 0);
        r = pump_do(b, &op);
        assert_int_equal(r.status, SNIB__INFO);
        assert_false(r.held);
        assert_int_equal(r.waiters, 0);
}

static void a_java_holder_is_shown_as_redisson(void **state)
{
        const char *owner = "b2a3c0de-1111-4222-8333-444455556666:42";
        struct snib__op op = pump_op(a, SNIB__QUERY, "j", (struct snib__id){{0}}, 0);

        (void)state;
        freeReplyObject(redis_server_do(kit_server, "HSET j %s 3", owner));
        freeReplyObject(redis_server_do(kit_server, "PEXPIRE j 30000"));
        struct snib__reply r = pump_do(a, &op);
        assert_true(r.held);
        assert_string_equal(r.holder.id.text, owner);
        assert_string_equal(r.holder.who.label, "redisson");
        assert_string_equal(r.holder.who.host, "");
        assert_int_equal(r.holder.who.pid, -1);
        assert_int_equal(r.holder.since_ms, -1);
        freeReplyObject(redis_server_do(kit_server, "PERSIST j"));
        op = pump_op(a, SNIB__ACQUIRE, "j", pump_id(a), 1000);
        r = pump_do(a, &op);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.left_ms, -1); /* no expiry: the waiter polls */
}

static void list_tells_locks_only(void **state)
{
        char name[32];
        struct snib__op op;
        struct pump_note n;
        bool seen[250] = {0};
        unsigned locks = 0;

        (void)state;
        for (int i = 0; i < 250; i++) {
                snprintf(name, sizeof(name), "lock%d", i);
                op = pump_op(i % 2 ? a : b, SNIB__ACQUIRE, name, pump_id(i % 2 ? a : b), 30000);
                assert_int_equal(pump_do(i % 2 ? a : b, &op).status, SNIB__GRANTED);
        }
        freeReplyObject(redis_server_do(kit_server, "HSET user:1 name Ann"));
        freeReplyObject(redis_server_do(kit_server, "HSET user:2 name Ann mail a@b"));
        freeReplyObject(redis_server_do(kit_server, "SET text 1"));
        assert_int_equal(pump_answer(a, pump_list(a)).status, SNIB__INFO);
        while (pump_try(a, SNIB__NOTE_LISTED, 0, &n)) {
                int i = (int)strtol(n.name + 4, NULL, 10);
                assert_memory_equal(n.name, "lock", 4);
                assert_true(i >= 0 && i < 250);
                assert_int_equal(n.note.tag.attempt, a->attempts);
                assert_true(n.note.reply.held && n.note.reply.left_ms > 0);
                assert_string_equal(n.note.reply.holder.who.host, i % 2 ? "host1" : "host2");
                locks += !seen[i];
                seen[i] = true;
        }
        assert_int_equal(locks, 250);
}

static void names_are_bytes(void **state)
{
        static const char *const names[] = {
            "a b", "a\nb", "a\r\n*1\r\n$4\r\nPING\r\n",    "quo\"te'", "\xc3\xbcml\xc3\xa4ut", "{a}", "a{b}c",
            "}{",  "%s%n", "'); redis.call('FLUSHALL')--", "*",        "\xff\xfe\x01"};

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                struct snib__id id = pump_id(a);
                struct snib__op op = pump_op(a, SNIB__ACQUIRE, names[i], id, 30000);
                b->engine->ops->watch(b->engine, &(struct snib__topic){.name = op.name}, pump_now());
                assert_string_equal(pump_wait(b, SNIB__NOTE_WATCHING).name, names[i]);
                op.kind = SNIB_KIND_FENCED;
                assert_int_equal(pump_do(a, &op).status, SNIB__GRANTED);
                assert_hold(names[i], id.text, 29000, 30000);
                op.verb = SNIB__RELEASE;
                assert_int_equal(pump_do(a, &op).status, SNIB__RELEASED);
                assert_string_equal(pump_wait(b, SNIB__NOTE_CHANGED).name, names[i]);
                b->engine->ops->unwatch(b->engine, &(struct snib__topic){.name = op.name}, pump_now());
        }
}

static void channel_names_are_redissons(void **state)
{
        struct snib__op op;

        (void)state;
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = {"plain", 5}}, pump_now());
        (void)pump_wait(a, SNIB__NOTE_WATCHING);
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = {"x{y", 3}}, pump_now());
        (void)pump_wait(a, SNIB__NOTE_WATCHING);
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{plain} 0"), 1);
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:x{y 0"), 1);
        assert_string_equal(pump_wait(a, SNIB__NOTE_CHANGED).name, "plain");
        assert_string_equal(pump_wait(a, SNIB__NOTE_CHANGED).name, "x{y");
        /* "plain" and "{plain}" are two locks with one channel. */
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = {"{plain}", 7}}, pump_now());
        assert_string_equal(pump_wait(a, SNIB__NOTE_WATCHING).name, "{plain}");
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{plain} 1"), 1);
        assert_true(pump_wait(a, SNIB__NOTE_CHANGED).note.all);
        assert_true(pump_wait(a, SNIB__NOTE_CHANGED).note.all);
        a->engine->ops->unwatch(a->engine, &(struct snib__topic){.name = {"plain", 5}}, pump_now());
        op = pump_op(a, SNIB__QUERY, "plain", (struct snib__id){{0}}, 0);
        (void)pump_do(a, &op);
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{plain} 0"),
                         1); /* the other needs it */
        a->engine->ops->unwatch(a->engine, &(struct snib__topic){.name = {"{plain}", 7}}, pump_now());
        while (redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{plain} 0")) { /* for a moment it stays */
                (void)pump_do(a, &op);
                pump_forget(a);
        }
}

static void watches_are_counted(void **state)
{
        struct snib__name x = {"x", 1};
        struct pump_note n;

        (void)state;
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = x}, pump_now());
        (void)pump_wait(a, SNIB__NOTE_WATCHING);
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = x}, pump_now());
        (void)pump_wait(a, SNIB__NOTE_WATCHING); /* it is in effect, whatever happened before may have been missed */
        a->engine->ops->unwatch(a->engine, &(struct snib__topic){.name = x}, pump_now());
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 0"), 1);
        (void)pump_wait(a, SNIB__NOTE_CHANGED);
        a->engine->ops->unwatch(a->engine, &(struct snib__topic){.name = x}, pump_now());
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = x},
                              pump_now()); /* while the UNSUBSCRIBE is under way */
        (void)pump_wait(a, SNIB__NOTE_WATCHING);
        assert_false(pump_try(a, SNIB__NOTE_WATCHING, 0, &n));
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 0"), 1);
        (void)pump_wait(a, SNIB__NOTE_CHANGED);
        (void)redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 7"); /* means nothing */
        (void)redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 0");
        (void)pump_wait(a, SNIB__NOTE_CHANGED);
        assert_false(pump_try(a, SNIB__NOTE_CHANGED, 0, &n));
}

static void F139_F140_a_flooded_channel_is_one_note(void **state)
{
        struct pump_note n;
        unsigned notes = 0;

        (void)state;
        a->engine->ops->watch(a->engine, &(struct snib__topic){.name = {"x", 1}}, pump_now());
        (void)pump_wait(a, SNIB__NOTE_WATCHING);
        freeReplyObject(
            redis_server_do(kit_server, "EVAL %s 0",
                            "for i = 1, 100000 do redis.call('PUBLISH', 'redisson_lock__channel:{x}', '0') end"));
        (void)redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 1");
        for (bool all = false; !all; notes++) {
                n = pump_wait(a, SNIB__NOTE_CHANGED);
                all = n.note.all;
        }
        assert_true(
            notes <
            2000); /* one for every turn at most: 5.6 MB in reads of half a megabyte, not one for every message */
}

static void the_record_of_a_client_comes_and_goes(void **state)
{
        struct snib__op op = pump_op(a, SNIB__ACQUIRE, "x", pump_id(a), 5000);
        char key[64];

        (void)state;
        snprintf(key, sizeof(key), "snib_client:{%s}", a->uuid);
        assert_int_equal(redis_server_int(kit_server, "EXISTS %s", key), 0);
        (void)pump_do(a, &op);
        (void)pump_do(a, &op);
        assert_text("1001\nhost1\nlabel1", "GET %s", key);
        assert_true(redis_server_int(kit_server, "PTTL %s", key) > 50000);
        pump_close(a);
        while (redis_server_int(kit_server, "EXISTS %s", key)) /* sent, and the server will read it */
                assert_int_not_equal(redis_server_int(kit_server, "EXISTS %s", key), INT64_MIN);
        a = pump_connect(redis_server_url(kit_server), 1);
}

static void bad_urls_are_refused(void **state)
{
        static const char *const urls[] = {"redis://h/x",
                                           "redis://h/70000",
                                           "redis://h/1?db=2",
                                           "redis://h?bogus=1",
                                           "redis+unix:///",
                                           "redis+unix://host/p",
                                           "redis://h?timeout=0",
                                           "redis://h?timeout=x",
                                           "redis://u@h",
                                           "redis://:p@h?password=q",
                                           "redis://u:p@h?user=v",
                                           "redis:h",
                                           "redis://h?db=-1",
                                           "redis://h?connect_timeout=",
                                           "redis://h?password_file=/nonexistent/file"};

        (void)state;
        for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
                struct snib__engine_config config;
                struct snib_error err = SNIB_ERROR_INIT;
                struct snib__engine *e = NULL;
                const struct snib__engine_ops *ops = snib__engine_find("redis");

                pump_config(&config, urls[i], 1);
                if (ops->open(&e, &config, pump_now(), &err) == 0)
                        fail_msg("%s is accepted", urls[i]);
                assert_int_equal(err.code, i == 14 ? SNIB_EAUTH : SNIB_EURL);
                assert_true(strlen(err.text) > 10);
                pump_config_done(&config);
        }
}

static void a_database_is_selected(void **state)
{
        char url[128];
        struct pump *p;
        struct snib__op op;

        (void)state;
        snprintf(url, sizeof(url), "%s/5", redis_server_url(kit_server));
        p = pump_connect(url, 3);
        op = pump_op(p, SNIB__ACQUIRE, "in5", pump_id(p), 5000);
        assert_int_equal(pump_do(p, &op).status, SNIB__GRANTED);
        assert_int_equal(redis_server_int(kit_server, "EXISTS in5"), 0);
        pump_close(p);
        snprintf(url, sizeof(url), "%s?db=99", redis_server_unix_url(kit_server));
        p = pump_open(url, 3);
        struct pump_note n = pump_wait(p, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.note.reply.error, SNIB_EREFUSED);
        assert_non_null(strstr(n.text, "SELECT"));
        pump_close(p);
}

static void scripts_are_what_the_server_knows_them_by(void **state)
{
        static const char *const names[SNIB__SCRIPTS] = {[SNIB__SCRIPT_ACQUIRE] = "acquire",
                                                         [SNIB__SCRIPT_ACQUIRE_FENCED] = "acquire_fenced",
                                                         [SNIB__SCRIPT_RELEASE] = "release",
                                                         [SNIB__SCRIPT_RENEW] = "renew",
                                                         [SNIB__SCRIPT_RENEW_MANY] = "renew_many",
                                                         [SNIB__SCRIPT_FORCE] = "force",
                                                         [SNIB__SCRIPT_QUERY] = "query",
                                                         [SNIB__SCRIPT_FAIR] = "fair",
                                                         [SNIB__SCRIPT_RW] = "rw",
                                                         [SNIB__SCRIPT_SEMAPHORE_ACQUIRE] = "semaphore_acquire",
                                                         [SNIB__SCRIPT_SEMAPHORE_UNDO] = "semaphore_undo",
                                                         [SNIB__SCRIPT_SEMAPHORE_SET] = "semaphore_set",
                                                         [SNIB__SCRIPT_SEMAPHORE_ADD] = "semaphore_add",
                                                         [SNIB__SCRIPT_SEMAPHORE_DRAIN] = "semaphore_drain",
                                                         [SNIB__SCRIPT_SEMAPHORE_QUERY] = "semaphore_query",
                                                         [SNIB__SCRIPT_SEMAPHORE_DELETE] = "semaphore_delete",
                                                         [SNIB__SCRIPT_PERMITS_ACQUIRE] = "permits_acquire",
                                                         [SNIB__SCRIPT_PERMITS_RELEASE] = "permits_release",
                                                         [SNIB__SCRIPT_PERMITS_RENEW] = "permits_renew",
                                                         [SNIB__SCRIPT_PERMITS_CHANGE] = "permits_change",
                                                         [SNIB__SCRIPT_PERMITS_QUERY] = "permits_query",
                                                         [SNIB__SCRIPT_PERMITS_FORCE] = "permits_force",
                                                         [SNIB__SCRIPT_PERMITS_DELETE] = "permits_delete",
                                                         [SNIB__SCRIPT_LATCH_SET] = "latch_set",
                                                         [SNIB__SCRIPT_LATCH_ADD] = "latch_add",
                                                         [SNIB__SCRIPT_LATCH_DELETE] = "latch_delete",
                                                         [SNIB__SCRIPT_REGISTER_WRITE] = "register_write",
                                                         [SNIB__SCRIPT_REGISTER_DELETE] = "register_delete",
                                                         [SNIB__SCRIPT_REGISTER_QUERY] = "register_query"};

        (void)state;
        for (int i = 0; i < SNIB__SCRIPTS; i++) {
                assert_string_equal(snib__redis_scripts[i].name, names[i]);
                assert_int_equal(snib__redis_scripts[i].length, strlen(snib__redis_scripts[i].text));
                assert_text(snib__redis_scripts[i].sha1, "SCRIPT LOAD %s", snib__redis_scripts[i].text);
        }
}

static void many_requests_keep_their_order(void **state)
{
        struct snib__op op;
        uint32_t first = 0;

        (void)state;
        for (int i = 0; i < 500; i++) {
                struct snib__id id = pump_id(a);
                uint32_t n;
                op = pump_op(a, SNIB__ACQUIRE, "x", id, 30000);
                n = pump_submit(a, &op);
                first = i ? first : n;
                op.verb = SNIB__RELEASE;
                (void)pump_submit(a, &op);
        }
        for (uint32_t i = 0; i < 1000; i++)
                assert_int_equal(pump_answer(a, first + i).status, i % 2 ? SNIB__RELEASED : SNIB__GRANTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
        static const struct CMUnitTest tests[] = {
            TEST(acquire_writes_redissons_hash),
            TEST(acquire_again_confirms),
            TEST(F79_a_late_reentry_begins_no_hold),
            TEST(acquire_of_a_held_lock_is_busy),
            TEST(release_deletes_and_publishes),
            TEST(release_by_another_changes_nothing),
            TEST(renew_starts_the_lease_again),
            TEST(fenced_counter_is_redissons_and_rises),
            TEST(a_lost_counter_brings_no_token_back),
            TEST(F58_tokens_above_2_to_53_stay_exact),
            TEST(force_ends_whoevers_hold),
            TEST(query_tells_holder_waiters_and_token),
            TEST(a_java_holder_is_shown_as_redisson),
            TEST(list_tells_locks_only),
            TEST(names_are_bytes),
            TEST(channel_names_are_redissons),
            TEST(watches_are_counted),
            TEST(F139_F140_a_flooded_channel_is_one_note),
            TEST(the_record_of_a_client_comes_and_goes),
            TEST(bad_urls_are_refused),
            TEST(a_database_is_selected),
            TEST(scripts_are_what_the_server_knows_them_by),
            TEST(many_requests_keep_their_order),
        };

        return kit_run(tests, kit_start, kit_stop);
}
