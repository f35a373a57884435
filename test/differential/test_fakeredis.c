/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fakeredis against a real server: random commands and production scripts to both, every reply and, again and again,
 * all data compared. The fake's clock is set to this machine's before each command; what depends on the instant (TTLs,
 * tokens) may differ by as much as a loaded machine is late, everything else by nothing. Of errors the first word is
 * compared, which is all that may be relied on. SNIB_DIFF_OPS, SNIB_DIFF_SEED.
 */

#include "base/prng.h"
#include "engine/redis/script.h"
#include "fakeredis.h"
#include "redis_server.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define OPS_DEFAULT 30000
#define LATE_MS 20000 /* tolerance for TTLs; those set are far longer */
#define ARGS_MAX 16

static struct redis_server *server;
static struct fakeredis *fake;
static struct fakeredis_conn *conn;
static redisReader *reader;
static struct snib__prng prng;

struct command {
        int count;
        char text[ARGS_MAX][2048];
        size_t length[ARGS_MAX];
};

static uint64_t from_env(const char *name, uint64_t otherwise)
{
        return getenv(name) ? strtoull(getenv(name), NULL, 10) : otherwise;
}

static void arg(struct command *c, const char *text, size_t length)
{
        assert_true(c->count < ARGS_MAX && length < sizeof(c->text[0]));
        memcpy(c->text[c->count], text, length);
        c->text[c->count][length] = 0;
        c->length[c->count++] = length;
}

static void text(struct command *c, const char *t)
{
        arg(c, t, strlen(t));
}

static const char *pick(const char *const *list)
{
        size_t n = 0;

        while (list[n])
                n++;
        return list[snib__prng_below(&prng, n)];
}

static const char *a_key(void)
{
        static const char *const keys[] = {
            "a", "b", "{c}", "d e\n", "redisson_lock_token:{a}", "redisson_lock_token:{b}", "s", NULL};
        return pick(keys);
}

static const char *an_id(void)
{
        static const char *const ids[] = {"00000001-0000-4000-8000-000000000000:1",
                                          "00000001-0000-4000-8000-000000000000:2",
                                          "00000002-0000-4000-8000-000000000000:1", "mode", NULL};
        return pick(ids);
}

static const char *a_value(void)
{
        static const char *const values[] = {"1",   "0",  "-1", "9223372036854775807", "x", "",
                                             "1.5", "01", " 1", "1700000000000000",    NULL};
        return pick(values);
}

static const char *a_ttl(void)
{
        static const char *const ttls[] = {"600000", "3600000", "1000000", "0", "-5", "x", NULL};
        return pick(ttls);
}

/* A script with its arguments, sometimes too few, by text or by name. */
static void a_script(struct command *c)
{
        enum snib__redis_script_id id = (enum snib__redis_script_id)snib__prng_below(&prng, SNIB__SCRIPTS);
        const struct snib__redis_script *s = &snib__redis_scripts[id];
        bool fenced = id == SNIB__SCRIPT_ACQUIRE_FENCED;
        bool by_text = snib__prng_below(&prng, 4) == 0;
        static const char *const names[] = {"a", "b", "{c}", "s", NULL};
        const char *name = pick(names);
        char token[64];

        text(c, by_text ? "EVAL" : "EVALSHA");
        arg(c, by_text ? s->text : s->sha1, by_text ? s->length : 40);
        text(c, fenced ? "2" : "1");
        text(c, name);
        snprintf(token, sizeof(token), "redisson_lock_token:{%s}", name);
        if (fenced)
                text(c, token);
        if (id == SNIB__SCRIPT_FORCE || id == SNIB__SCRIPT_QUERY)
                text(c, "channel");
        else
                text(c, an_id());
        if (id == SNIB__SCRIPT_RELEASE)
                text(c, "channel");
        else
                text(c, snib__prng_below(&prng, 20) ? "600000" : a_ttl());
        if (fenced || id == SNIB__SCRIPT_ACQUIRE)
                text(c, snib__prng_below(&prng, 3) ? "0" : "1700000000000001");
}

/* Rows: command and arguments; k key, i id or field, v value, t TTL. */
static void a_command(struct command *c)
{
        static const char *const shapes[] = {
            "GET k",          "SET k v",           "SET k v PX t", "SET k v NX",   "SET k v XX",    "SET k v EX t",
            "DEL k",          "DEL k k",           "EXISTS k",     "TYPE k",       "INCR k",        "HSET k i v",
            "HSET k i v i v", "HSET k i",          "HDEL k i",     "HDEL k i i",   "HGET k i",      "HLEN k",
            "HEXISTS k i",    "HKEYS k",           "HGETALL k",    "PEXPIRE k t",  "PTTL k",        "PERSIST k",
            "PUBLISH k v",    "PUBSUB NUMSUB k k", "ECHO v",       "PING",         "PING v",        "DBSIZE",
            "SELECT v",       "SELECT 0",          "NOSUCH k v",   "GET",          "GET k k",       "HGET k",
            "EVALSHA v 0",    "EVALSHA v 5 k",     "EVAL v x",     "SCRIPT FLUSH", "UNSUBSCRIBE k", NULL};
        char shape[64];
        char *rest = NULL;

        snprintf(shape, sizeof(shape), "%s", pick(shapes));
        for (char *word = strtok_r(shape, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
                bool hole = !word[1] && c->count;
                text(c, hole && *word == 'k'   ? a_key()
                        : hole && *word == 'i' ? an_id()
                        : hole && *word == 'v' ? a_value()
                        : hole && *word == 't' ? a_ttl()
                                               : word);
        }
}

/* Small programs about the conversion between Lua and replies. */
static void a_conversion(struct command *c)
{
        static const char *const programs[] = {"return 3.99",
                                               "return -3.99",
                                               "return {1, 2, nil, 4}",
                                               "return {1, {2, {3}}, 'x', true, false}",
                                               "return nil",
                                               "return true",
                                               "return false",
                                               "return {}",
                                               "return {ok='fine'}",
                                               "return {err='BAD thing'}",
                                               "return redis.error_reply('BAD thing')",
                                               "return redis.error_reply('-BAD thing')",
                                               "return redis.error_reply('single')",
                                               "return redis.status_reply('fine')",
                                               "return redis.call('GET', KEYS[1])",
                                               "return redis.pcall('GET', KEYS[1])",
                                               "return redis.call('HGETALL', KEYS[1])",
                                               "return redis.pcall('NOSUCH')",
                                               "return redis.call('GET')",
                                               "return redis.pcall('GET', {})",
                                               "return redis.pcall()",
                                               "return type(redis.call('GET', KEYS[1]))",
                                               "return undefined_global",
                                               "x = 1",
                                               "local",
                                               "return ARGV[2]",
                                               "return redis.call('SET', KEYS[1], 10.5)",
                                               "return redis.call('SET', KEYS[1], 2^53)",
                                               "return tostring(redis.call('PTTL', 'none'))",
                                               "return redis.sha1hex('')",
                                               "error('boom')",
                                               "return redis.pcall('SUBSCRIBE', 'x')",
                                               "return #redis.call('TIME')",
                                               "return 2^53 + 1",
                                               "return {1, 2^31, -1.5}",
                                               "return string.format('%.0f', 2^60)",
                                               "return {redis.call('EXISTS', KEYS[1]), KEYS, ARGV}",
                                               NULL};

        text(c, "EVAL");
        text(c, pick(programs));
        text(c, "1");
        text(c, a_key());
        text(c, a_value());
}

static redisReply *to_fake(const struct command *c)
{
        const char *argv[ARGS_MAX], *out;
        char *bytes = NULL;
        struct timespec t;
        void *reply = NULL;
        int n;

        for (int i = 0; i < c->count; i++)
                argv[i] = c->text[i];
        n = (int)redisFormatCommandArgv(&bytes, c->count, argv, c->length);
        clock_gettime(CLOCK_REALTIME, &t);
        fakeredis_set_time(fake, t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000);
        for (int at = 0; at < n;) { /* in two pieces, split anywhere */
                int piece = at ? n - at : (int)snib__prng_below(&prng, (uint64_t)n) + 1;
                fakeredis_feed(conn, bytes + at, (size_t)piece);
                at += piece;
        }
        redisFreeCommand(bytes);
        size_t length = fakeredis_output(conn, &out);
        redisReaderFeed(reader, out, length);
        fakeredis_take(conn, length);
        assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
        assert_non_null(reply);
        return reply;
}

/* The admin connection takes a format; this one takes what it gets. */
static redisReply *to_real(redisContext *c, const struct command *command)
{
        const char *argv[ARGS_MAX];

        for (int i = 0; i < command->count; i++)
                argv[i] = command->text[i];
        return redisCommandArgv(c, command->count, argv, command->length);
}

static bool near(long long a, long long b)
{
        long long both = a < b ? a : b, apart = a < b ? b - a : a - b;

        if (both > INT64_C(1700000000000)) /* microseconds: tokens */
                return apart < LATE_MS * 1000LL;
        return both > 2 * LATE_MS && apart < LATE_MS;
}

static bool number(const redisReply *r, long long *ret)
{
        char *rest = NULL;

        if (r->type == REDIS_REPLY_INTEGER)
                *ret = r->integer;
        else if (r->type == REDIS_REPLY_STRING && r->len > 5)
                *ret = strtoll(r->str, &rest, 10);
        return r->type == REDIS_REPLY_INTEGER || (rest && !*rest);
}

static bool same(const redisReply *a, const redisReply *b)
{
        long long x, y;

        if (a->type != b->type)
                return false;
        if (a->type == REDIS_REPLY_ERROR)
                return strcspn(a->str, " ") == strcspn(b->str, " ") && !strncmp(a->str, b->str, strcspn(a->str, " "));
        if (a->type == REDIS_REPLY_ARRAY) {
                bool equal = a->elements == b->elements;
                for (size_t i = 0; equal && i < a->elements; i++)
                        equal = same(a->element[i], b->element[i]);
                return equal;
        }
        if (a->type == REDIS_REPLY_INTEGER && a->integer == b->integer)
                return true;
        if ((a->type == REDIS_REPLY_STRING || a->type == REDIS_REPLY_STATUS) && a->len == b->len &&
            !memcmp(a->str, b->str, (size_t)a->len))
                return true;
        return a->type == REDIS_REPLY_NIL || (number(a, &x) && number(b, &y) && near(x, y));
}

static void show(const char *who, const redisReply *r)
{
        print_message("%s: type %d integer %lld text \"%s\" elements %zu\n", who, r->type, r->integer,
                      r->str ? r->str : "", r->elements);
        for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
                show("  ", r->element[i]);
}

static void compare(redisContext *real, const struct command *c, uint64_t seed, uint64_t op)
{
        redisReply *r = to_real(real, c), *f = to_fake(c);

        assert_non_null(r);
        if (!same(r, f)) {
                print_message("seed %" PRIu64 " op %" PRIu64 ":", seed, op);
                for (int i = 0; i < c->count; i++)
                        print_message(" [%s]", c->text[i]);
                print_message("\n");
                show("real", r);
                show("fake", f);
                fail();
        }
        freeReplyObject(r);
        freeReplyObject(f);
}

/* Every key's type, TTL and value. */
static void compare_data(redisContext *real, uint64_t seed, uint64_t op)
{
        static const char *const keys[] = {"a",
                                           "b",
                                           "{c}",
                                           "d e\n",
                                           "redisson_lock_token:{a}",
                                           "redisson_lock_token:{b}",
                                           "redisson_lock_token:{{c}}",
                                           "redisson_lock_token:{s}",
                                           "s"};
        static const char *const questions[] = {"TYPE", "PTTL", "GET", "HGETALL"};
        struct command c = {0};

        text(&c, "DBSIZE");
        compare(real, &c, seed, op);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                for (size_t j = 0; j < sizeof(questions) / sizeof(questions[0]); j++) {
                        c.count = 0;
                        text(&c, questions[j]);
                        text(&c, keys[i]);
                        compare(real, &c, seed, op);
                }
}

static void fakeredis_answers_like_a_real_server(void **state)
{
        uint64_t ops = from_env("SNIB_DIFF_OPS", OPS_DEFAULT), seed = from_env("SNIB_DIFF_SEED", 1);
        redisContext *real = redisConnectUnix(redis_server_socket(server));
        static struct command c;

        (void)state;
        prng.state = seed;
        assert_true(real && !real->err);
        for (uint64_t op = 0; op < ops; op++) {
                uint64_t what = snib__prng_below(&prng, 100);
                c.count = 0;
                if (what < 55)
                        a_script(&c);
                else if (what < 90)
                        a_command(&c);
                else
                        a_conversion(&c);
                compare(real, &c, seed, op);
                if (op % 500 == 499) {
                        compare_data(real, seed, op);
                        c.count = 0;
                        text(&c, "FLUSHALL");
                        compare(real, &c, seed, op);
                }
        }
        redisFree(real);
}

/* At maxmemory the same commands are refused, alone and in scripts. */
static void fakeredis_is_full_like_a_real_server(void **state)
{
        redisContext *real = redisConnectUnix(redis_server_socket(server));
        static struct command c;

        (void)state;
        prng.state = from_env("SNIB_DIFF_SEED", 1);
        freeReplyObject(redis_server_do(server, "FLUSHALL"));
        fakeredis_flushall(fake);
        for (int round = 0; round < 40; round++) {
                freeReplyObject(redis_server_do(server, "CONFIG SET maxmemory %s", round % 2 ? "1" : "0"));
                fakeredis_set_full(fake, round % 2);
                for (uint64_t op = 0; op < 50; op++) {
                        c.count = 0;
                        if (op % 2)
                                a_script(&c);
                        else
                                a_command(&c);
                        compare(real, &c, 1, op);
                }
                compare_data(real, 1, (uint64_t)round);
        }
        redisFree(real);
}

static int start(void **state)
{
        (void)state;
        server = redis_server_start(NULL);
        fake = fakeredis_new();
        conn = fakeredis_connect(fake);
        reader = redisReaderCreate();
        return 0;
}

static int stop(void **state)
{
        (void)state;
        redisReaderFree(reader);
        fakeredis_free(fake);
        redis_server_free(server);
        return 0;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(fakeredis_answers_like_a_real_server, start, stop),
            cmocka_unit_test_setup_teardown(fakeredis_is_full_like_a_real_server, start, stop),
        };
        const char *why = redis_server_unavailable();

        if (why) {
                printf("1..0 # SKIP %s\n", why);
                return 0;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
