/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fakeredis against a real server: random commands and production scripts to both, every reply and,
 * again and again, all data compared. The fake's clock is set to this machine's before each
 * command; what depends on the instant (TTLs, tokens) may differ by as much as a loaded machine is
 * late, everything else by nothing. Of errors the first word is compared, which is all that may be
 * relied on. SNIB_DIFF_OPS, SNIB_DIFF_SEED.
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
        char text[ARGS_MAX][8192];
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

/* Names by what stands under them; scripts about one kind of object rarely get one of another. */
static const char *const locks[] = {"a", "b", "{c}", "d e\n", NULL};
static const char *const sides[] = {"rw", "{rw}2", NULL};
static const char *const counts[] = {"s", "s2", "latch", NULL};
static const char *const permits[] = {"p", "{p}2", NULL};
static const char *const registers[] = {"r", "r2", NULL};
static const char *const lists[] = {"l", "redisson_lock_queue:{a}", NULL};
static const char *const zsets[] = {"z", "redisson_lock_timeout:{a}", "{p}:timeout", NULL};
static const char *const *const pools[] = {locks, sides, counts, permits, registers, lists, zsets};
#define POOLS (sizeof(pools) / sizeof(pools[0]))

static const char *a_key(void)
{
        return pick(pools[snib__prng_below(&prng, POOLS)]);
}

static const char *mostly(const char *const *pool)
{
        return snib__prng_below(&prng, 20) ? pick(pool) : a_key();
}

static const char *const ids[] = {"00000001-0000-4000-8000-000000000000:1", "00000001-0000-4000-8000-000000000000:2",
                                  "00000002-0000-4000-8000-000000000000:1", "mode", NULL};

static const char *an_id(void)
{
        return pick(ids);
}

static const char *a_value(void)
{
        static const char *const values[] = {"1",   "0",  "-1", "9223372036854775807", "x", "",
                                             "1.5", "01", " 1", "1700000000000000",    NULL};
        return pick(values);
}

static const char *a_small_number(void)
{
        static const char *const numbers[] = {"1", "2", "3", "1", "0", "-1", "-2", "2147483647", "x", NULL};
        return pick(numbers);
}

static const char *a_ttl(void)
{
        static const char *const ttls[] = {"600000", "3600000", "1000000", "0", "-5", "x", NULL};
        return pick(ttls);
}

static const char *a_lease(void)
{
        return snib__prng_below(&prng, 20) ? "600000" : a_ttl();
}

static const char *a_score(void)
{
        static const char *const scores[] = {"1", "2.5",           "-3", "1e3", "inf", "-inf", "nan",
                                             "x", "1795270000000", "1",  NULL};
        return pick(scores);
}

static const char *a_range(void)
{
        static const char *const ends[] = {"0", "-1", "1", "x", "(1", "-inf", "+inf", "5", "-100", "100", NULL};
        return pick(ends);
}

static const char *a_token(void)
{
        return snib__prng_below(&prng, 3) ? "0" : "1700000000000001";
}

static const char *a_version(void)
{
        static const char *const versions[] = {"-1", "-1", "0", "1700000000000001", "x", NULL};
        return pick(versions);
}

static const char *a_verb(void)
{
        static const char *const verbs[] = {"1", "2", "3", "5", NULL};
        return pick(verbs);
}

static const char *a_change(void)
{
        static const char *const changes[] = {"7", "8", "9", NULL};
        return pick(changes);
}

static const char *a_flag(void)
{
        return snib__prng_below(&prng, 2) ? "1" : "0";
}

static const char *a_list(void)
{
        return mostly(lists);
}

static const char *a_zset(void)
{
        return mostly(zsets);
}

/* Keys and channels beside a name, as the engine makes them. */
static const char *beside(char form, const char *name, char *ret, size_t room)
{
        bool tagged = strchr(name, '{') != NULL;
        const char *before = form == 'T'   ? "redisson_lock_token:"
                             : form == 'Q' ? "redisson_lock_queue:"
                             : form == 'U' ? "redisson_lock_timeout:"
                             : form == 'W' ? "snib_waiting:"
                             : form == 'R' ? "snib_request:"
                             : form == 'C' ? "channel:"
                                           : "";

        snprintf(ret, room, "%s%s%s%s%s%s", before, tagged ? "" : "{", name, tagged ? "" : "}",
                 form == 'P'   ? ":timeout"
                 : form == 'R' ? ":"
                               : "",
                 form == 'R' ? an_id() : "");
        return ret;
}

/* One to three permit ids of 16 bytes that are not text. */
static void some_permits(struct command *c)
{
        char raw[48] = {0};
        size_t n = 1 + snib__prng_below(&prng, 3), first = snib__prng_below(&prng, 4);

        for (size_t i = 0; i < n; i++) {
                raw[16 * i] = '\n';
                raw[16 * i + 7] = (char)0xff;
                raw[16 * i + 15] = (char)(first + i);
        }
        arg(c, raw, 16 * n);
}

/* Letters of shapes that stand for one of a few values. */
static const struct {
        char letter;
        const char *(*any)(void);
} holes[] = {{'k', a_key},   {'i', an_id},    {'v', a_value}, {'n', a_small_number}, {'t', a_ttl},
             {'l', a_lease}, {'s', a_score},  {'r', a_range}, {'o', a_token},        {'e', a_version},
             {'b', a_verb},  {'c', a_change}, {'f', a_flag},  {'y', a_list},         {'z', a_zset}};

/* What a letter of a shape stands for. Upper case: beside the name that the shape began with. */
static void a_hole(struct command *c, char letter, const char *name)
{
        char derived[256];

        if (letter == 'x') {
                some_permits(c);
                return;
        }
        for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++)
                if (holes[i].letter == letter) {
                        text(c, holes[i].any());
                        return;
                }
        text(c, beside(letter, name, derived, sizeof(derived)));
}

/* How each script is called: the pool of its name, how many keys, the arguments after the name. A
 * word of more than one letter stands for itself. */
static const struct {
        const char *script;
        const char *const *pool;
        const char *keys, *rest;
} calls[] = {{"acquire", locks, "1", "i l o"},
             {"acquire_fenced", locks, "2", "T i l o"},
             {"release", locks, "1", "i C"},
             {"renew", locks, "1", "i l"},
             {"renew_many", locks, "3", "k k i i i l"},
             {"force", locks, "1", "C"},
             {"query", NULL, "1", "B T Q P"},
             {"fair", locks, "4", "Q U W b i C l o f 600000"},
             {"rw", sides, "1", "b f5 i B C l o i"},
             {"semaphore_acquire", counts, "2", "R n 600000"},
             {"semaphore_undo", counts, "2", "R C 600000"},
             {"semaphore_set", counts, "2", "R n l C 600000"},
             {"semaphore_add", counts, "2", "R n f C 600000"},
             {"semaphore_drain", counts, "2", "R 600000"},
             {"semaphore_query", counts, "1", ""},
             {"semaphore_delete", counts, "2", "R 600000"},
             {"permits_acquire", permits, "2", "P l o x C"},
             {"permits_release", permits, "2", "P x C"},
             {"permits_renew", permits, "2", "P l x C"},
             {"permits_change", permits, "3", "P R c n f C 600000"},
             {"permits_query", permits, "2", "P"},
             {"permits_force", permits, "2", "P C"},
             {"permits_delete", permits, "3", "P R 600000"},
             {"latch_set", counts, "2", "R n C 600000"},
             {"latch_add", counts, "2", "R n C 600000"},
             {"latch_delete", counts, "2", "R C 600000"},
             {"register_write", registers, "2", "R e v C 600000"},
             {"register_delete", registers, "2", "R e C 600000"},
             {"register_query", registers, "1", "e"}};

static void words(struct command *c, const char *shape, const char *name)
{
        char copy[128];
        char *rest = NULL;

        snprintf(copy, sizeof(copy), "%s", shape);
        for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                if (!strcmp(word, "f5")) /* a side of a read-write lock */
                        text(c, snib__prng_below(&prng, 2) ? "5" : "6");
                else if (word[1] || !c->count)
                        text(c, word);
                else
                        a_hole(c, *word, name);
}

/* A script with its arguments, by text or by name. */
static void a_script(struct command *c)
{
        size_t id = snib__prng_below(&prng, SNIB__SCRIPTS), call = 0;
        const struct snib__redis_script *s = &snib__redis_scripts[id];
        bool by_text = snib__prng_below(&prng, 4) == 0;
        const char *name;

        while (call < sizeof(calls) / sizeof(calls[0]) && strcmp(calls[call].script, s->name) != 0)
                call++;
        if (call == sizeof(calls) / sizeof(calls[0]))
                fail_msg("nothing is known of how %s.lua is called", s->name);
        name = calls[call].pool ? mostly(calls[call].pool) : a_key();
        text(c, by_text ? "EVAL" : "EVALSHA");
        arg(c, by_text ? s->text : s->sha1, by_text ? s->length : 40);
        text(c, calls[call].keys);
        text(c, name);
        words(c, calls[call].rest, name);
}

/* Rows: command and arguments; for the letters see a_hole(). */
static void a_command(struct command *c)
{
        static const char *const shapes[] = {"GET k",       "SET k v",       "SET k v PX t",    "SET k v NX",
                                             "SET k v XX",  "SET k v EX t",  "SET k v KEEPTTL", "SET k v KEEPTTL PX t",
                                             "DEL k",       "DEL k k",       "UNLINK k",        "EXISTS k",
                                             "TYPE k",      "INCR k",        "DECR k",          "INCRBY k n",
                                             "INCRBY k v",  "DECRBY k n",    "HSET k i v",      "HSET k i v i v",
                                             "HSET k i",    "HDEL k i",      "HDEL k i i",      "HGET k i",
                                             "HMGET k i i", "HINCRBY k i n", "HINCRBY k i v",   "HLEN k",
                                             "HEXISTS k i", "HKEYS k",       "HGETALL k",       "PEXPIRE k t",
                                             "PTTL k",      "PERSIST k",     "PUBLISH k v",     "PUBSUB NUMSUB k k",
                                             "ECHO v",      "PING",          "PING v",          "DBSIZE",
                                             "SELECT v",    "SELECT 0",      "NOSUCH k v",      "GET",
                                             "GET k k",     "HGET k",        "EVALSHA v 0",     "EVALSHA v 5 k",
                                             "EVAL v x",    "SCRIPT FLUSH",  "UNSUBSCRIBE k",   NULL};
        static const char *const collections[] = {"LPUSH y i",
                                                  "RPUSH y i i",
                                                  "RPUSH y i",
                                                  "LPOP y",
                                                  "RPOP y",
                                                  "LINDEX y r",
                                                  "LLEN y",
                                                  "LRANGE y r r",
                                                  "LREM y n i",
                                                  "LREM y r i",
                                                  "ZADD z s i",
                                                  "ZADD z s i s i",
                                                  "ZADD z NX s i",
                                                  "ZADD z XX s i",
                                                  "ZADD z NX XX s i",
                                                  "ZADD z s i s",
                                                  "ZADD z XX s",
                                                  "ZINCRBY z s i",
                                                  "ZREM z i",
                                                  "ZREM z i i",
                                                  "ZCARD z",
                                                  "ZSCORE z i",
                                                  "ZRANK z i",
                                                  "ZCOUNT z r r",
                                                  "ZRANGE z r r",
                                                  "ZRANGE z r r WITHSCORES",
                                                  "ZRANGE z 0 -1 NONSENSE",
                                                  "ZRANGEBYSCORE z r r",
                                                  "ZRANGEBYSCORE z r r WITHSCORES",
                                                  "ZRANGEBYSCORE z r r LIMIT n n",
                                                  "ZREMRANGEBYSCORE z r r",
                                                  "ZRANGEBYSCORE z r r LIMIT 0",
                                                  "DEL y",
                                                  "DEL z",
                                                  NULL};

        words(c, pick(snib__prng_below(&prng, 2) ? shapes : collections), a_key());
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

/* Members with their scores. Two that were set in one millisecond here and in two there stand in
 * another order. */
static bool same_scores(const redisReply *a, const redisReply *b)
{
        bool equal = a->elements == b->elements;

        for (size_t i = 0; equal && i + 1 < a->elements; i += 2) {
                equal = false;
                for (size_t k = 0; !equal && k + 1 < b->elements; k += 2)
                        equal = same(a->element[i], b->element[k]) && same(a->element[i + 1], b->element[k + 1]);
        }
        return equal;
}

static bool same_answer(const struct command *c, const redisReply *a, const redisReply *b)
{
        if (a->type == REDIS_REPLY_ARRAY && b->type == a->type && !strcmp(c->text[c->count - 1], "WITHSCORES"))
                return same_scores(a, b);
        return same(a, b);
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
        if (!same_answer(c, r, f)) {
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

static void compare_key(redisContext *real, const char *key, uint64_t seed, uint64_t op)
{
        static const char *const questions[] = {"TYPE", "PTTL", "GET", "HGETALL", "LRANGE", "ZRANGE"};
        struct command c;

        for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
                c.count = 0;
                text(&c, questions[i]);
                text(&c, key);
                if (i >= 4) {
                        text(&c, "0");
                        text(&c, "-1");
                }
                if (i == 5)
                        text(&c, "WITHSCORES");
                compare(real, &c, seed, op);
        }
}

/* Every key's type, TTL and value. */
static void compare_data(redisContext *real, uint64_t seed, uint64_t op)
{
        struct command c = {0};
        char key[256];

        text(&c, "DBSIZE");
        compare(real, &c, seed, op);
        for (size_t i = 0; i < POOLS; i++)
                for (size_t j = 0; pools[i][j]; j++) {
                        compare_key(real, pools[i][j], seed, op);
                        for (const char *form = "TQUWP"; *form; form++)
                                compare_key(real, beside(*form, pools[i][j], key, sizeof(key)), seed, op);
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
                if (what < 60)
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

        if (redis_server_skips_all())
                return 0;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
