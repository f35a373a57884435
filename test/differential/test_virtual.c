/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model against the engine, its scripts and fakeredis, in virtual time: leases end, tokens and
 * versions are compared exactly, nothing is waited for. And the proof that this comparison sees
 * bugs: scripts with one bug each must be found. The time moves by multiples of 10 ms and leases
 * end in 5, so no question is asked at the very end of a lease, where Redis is one millisecond more
 * generous than the model. SNIB_DIFF_OPS, SNIB_DIFF_SEED.
 */

#include "engine/redis/redis.h"
#include "engine/redis/script.h"
#include "fakeredis.h"
#include "transport.h"
#include "twin.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPS_DEFAULT 200000

struct world {
        struct fakeredis *server;
        int64_t now_ms;
        struct twin twin;
};

static uint64_t from_env(const char *name, uint64_t otherwise)
{
        return getenv(name) ? strtoull(getenv(name), NULL, 10) : otherwise;
}

static snib__ns boot_time(const struct world *w)
{
        return w->now_ms * SNIB__MS;
}

static void pass(struct world *w, int64_t ms)
{
        w->now_ms += ms;
        fakeredis_set_time(w->server, w->now_ms * 1000);
}

static struct snib__clock clock_of(void *arg)
{
        struct world *w = arg;

        return (struct snib__clock){.lease_ms = w->now_ms, .wall_us = w->now_ms * 1000};
}

static struct snib__reply ask(void *arg, struct pump *p, const struct snib__op *op)
{
        struct world *w = arg;
        const struct snib__engine_ops *ops = p->engine->ops;
        struct snib__note n;

        ops->submit(p->engine, (struct snib__tag){.object = p, .attempt = 2}, op, boot_time(w));
        for (int i = 0; i < 10; i++) {
                ops->process(p->engine, NULL, boot_time(w));
                while (ops->next(p->engine, &n))
                        if (n.kind == SNIB__NOTE_REPLY)
                                return n.reply;
        }
        fail_msg("no answer");
        return n.reply;
}

static void open_world(struct world *w, uint64_t seed)
{
        memset(w, 0, sizeof(*w));
        w->server = fakeredis_new();
        w->now_ms = INT64_C(1700000000000);
        pass(w, 0);
        for (unsigned i = 0; i < 2; i++) {
                struct snib__engine_config config;
                struct snib__engine *e;
                pump_config(&config, "redis://fake", i + 1);
                assert_int_equal(
                    snib__redis_open_with(&e, &config, &fakeredis_transport, w->server, boot_time(w), NULL), 0);
                pump_config_done(&config);
                w->twin.pump[i] = pump_over(e, i + 1);
                e->ops->process(e, NULL, boot_time(w));
        }
        w->twin.prng.state = seed;
        w->twin.exact = true;
        w->twin.clock = clock_of;
        w->twin.ask = ask;
        w->twin.arg = w;
        twin_init(&w->twin);
}

static void close_world(struct world *w)
{
        pump_close(w->twin.pump[0]);
        pump_close(w->twin.pump[1]);
        fakeredis_free(w->server);
}

static void one(struct world *w)
{
        pass(w, 10 + 10 * (int64_t)snib__prng_below(&w->twin.prng, 8));
        twin_step(&w->twin);
        if (snib__prng_below(&w->twin.prng, 500) == 0)
                fakeredis_script_flush(w->server);
}

static void the_engine_does_what_the_model_says_in_virtual_time(void **state)
{
        uint64_t ops = from_env("SNIB_DIFF_OPS", OPS_DEFAULT), seed = from_env("SNIB_DIFF_SEED", 1);
        static struct world w;

        (void)state;
        open_world(&w, seed);
        for (uint64_t n = 0; n < ops; n++) {
                one(&w);
                if (w.twin.different[0])
                        fail_msg("seed %" PRIu64 " op %" PRIu64 ": %s", seed, n, w.twin.different);
        }
        close_world(&w);
}

/* Runs with one script replaced; the comparison must see it. */
static void must_be_seen(enum snib__redis_script_id id, const char *text)
{
        struct snib__redis_script scripts[SNIB__SCRIPTS];
        static struct world w;
        uint64_t n = 0;

        memcpy(scripts, snib__redis_scripts_built_in, sizeof(scripts));
        scripts[id].text = text;
        scripts[id].length = strlen(text);
        fakeredis_sha1(text, strlen(text), scripts[id].sha1);
        snib__redis_scripts = scripts;
        open_world(&w, 1);
        while (n++ < OPS_DEFAULT && !w.twin.different[0])
                one(&w);
        snib__redis_scripts = snib__redis_scripts_built_in;
        close_world(&w);
        if (!w.twin.different[0])
                fail_msg("the bug in %s.lua was not seen", scripts[id].name);
        print_message("# %s.lua: seen after %" PRIu64 " ops: %s\n", scripts[id].name, n, w.twin.different);
}

/* The script as it is, but for one place. */
static void must_see_change(enum snib__redis_script_id id, const char *from, const char *to)
{
        const char *text = snib__redis_scripts_built_in[id].text, *at = strstr(text, from);
        char *changed = NULL;

        if (!at)
                fail_msg("%s.lua has no \"%s\"", snib__redis_scripts_built_in[id].name, from);
        assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
        must_be_seen(id, changed);
        free(changed);
}

static void scripts_with_bugs_are_seen(void **state)
{
        (void)state;
        must_be_seen(SNIB__SCRIPT_RELEASE, "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[2], '0') return {1}");
        must_be_seen(SNIB__SCRIPT_RENEW, "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return {1}");
        must_be_seen(SNIB__SCRIPT_FORCE, "return {0, -2, ''}");
        must_be_seen(SNIB__SCRIPT_ACQUIRE, "redis.call('HSET', KEYS[1], ARGV[1], '1') redis.call('PEXPIRE', KEYS[1], "
                                           "ARGV[2]) return {1, '1700000000000000'}");
        must_be_seen(SNIB__SCRIPT_ACQUIRE_FENCED,
                     "if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then "
                     "return {0, redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1]} end "
                     "redis.call('HSET', KEYS[1], ARGV[1], '1') redis.call('PEXPIRE', KEYS[1], ARGV[2]) "
                     "return {1, tostring(redis.call('INCR', KEYS[2]))}");
}

static void queueing_and_sharing_scripts_with_bugs_are_seen(void **state)
{
        (void)state;
        must_see_change(SNIB__SCRIPT_FAIR, "head == id", "true");
        must_see_change(SNIB__SCRIPT_FAIR, "place = i", "place = i + 1");
        must_see_change(SNIB__SCRIPT_FAIR, "ZRANGEBYSCORE', KEYS[4], '-inf', now",
                        "ZRANGEBYSCORE', KEYS[4], '-inf', 0");
        must_see_change(SNIB__SCRIPT_RW, "(reader and side == '6')", "(false and side == '6')");
        must_see_change(SNIB__SCRIPT_RW, "writer ~= ARGV[8] .. ':write'", "false");
        must_see_change(SNIB__SCRIPT_RW, "side == '5' and not writer and reader", "side == '5' and reader");
}

static void counting_scripts_with_bugs_are_seen(void **state)
{
        (void)state;
        must_see_change(SNIB__SCRIPT_SEMAPHORE_ACQUIRE, "if took then", "if false then");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_ACQUIRE, "free < tonumber", "free <= tonumber");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_UNDO, "math.min(took,", "math.min(took - 1,");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_SET, "if ARGV[2] == '0' then", "if true then");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_ADD, "if done then", "if false then");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_ADD, "redis.pcall('INCRBY', KEYS[1], ARGV[1])",
                        "sum redis.call('SET', KEYS[1], sum)");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_DRAIN, "tonumber(free) <= 0", "false");
        must_see_change(SNIB__SCRIPT_PERMITS_ACQUIRE, "#ids <= left", "left > 0");
        must_see_change(SNIB__SCRIPT_PERMITS_ACQUIRE, "#own > 0 and 2", "false and 2");
        must_see_change(SNIB__SCRIPT_PERMITS_ACQUIRE, "and redis.call('INCRBY', KEYS[1], dead)", "and free + 0");
        must_see_change(SNIB__SCRIPT_PERMITS_RELEASE, "if KEYS[3] and #members", "if false and #members");
        must_see_change(SNIB__SCRIPT_PERMITS_RENEW, "now + ARGV[1]", "now");
        must_see_change(SNIB__SCRIPT_PERMITS_CHANGE, "ARGV[2] - out", "ARGV[2] + 0");
        must_see_change(SNIB__SCRIPT_PERMITS_QUERY, "free + dead", "free + 0");
        must_see_change(SNIB__SCRIPT_LATCH_ADD, "if done then", "if false then");
        must_see_change(SNIB__SCRIPT_LATCH_SET, "tonumber(count) > 0", "false");
        must_see_change(SNIB__SCRIPT_LATCH_SET, "ARGV[4] == '1'", "false");
        must_see_change(SNIB__SCRIPT_SEMAPHORE_DRAIN, "ARGV[2] == '1'", "false");
        must_see_change(SNIB__SCRIPT_REGISTER_WRITE, "tonumber(ARGV[1]) ~= version", "false");
        must_see_change(SNIB__SCRIPT_REGISTER_DELETE, "tonumber(ARGV[1]) ~= version", "false");
        must_see_change(SNIB__SCRIPT_REGISTER_QUERY, "if ARGV[1] and", "if false and");
}

/* What is said to a client that waits for the lock "x". */
static struct snib__note noted(struct world *w, struct pump *p, enum snib__note_kind kind)
{
        struct snib__note n;

        for (int i = 0; i < 10; i++) {
                p->engine->ops->process(p->engine, NULL, boot_time(w));
                while (p->engine->ops->next(p->engine, &n))
                        if (n.kind == kind)
                                return n;
        }
        fail_msg("never told");
        return n;
}

static struct snib__reply asked(struct world *w, struct pump *p, enum snib__verb verb, struct snib__id id)
{
        struct snib__op op = pump_op(p, verb, "x", id, 30000);

        op.kind = SNIB_KIND_LOCK;
        op.enqueue = op.settled = true;
        return ask(w, p, &op);
}

/* Who is made holder by a force has a token that is a time yet to come: who comes after it, however
 * soon, has a higher one. */
static void S3_tokens_rise_over_two_forces_in_a_row(void **state)
{
        static const struct snib__topic x_lock = {.name = {"x", 1}};
        static struct world w;
        struct pump *a, *b;
        int64_t first, second, third;

        (void)state;
        open_world(&w, 1);
        a = w.twin.pump[0];
        b = w.twin.pump[1];
        b->engine->ops->watch(b->engine, &x_lock, boot_time(&w));
        (void)noted(&w, b, SNIB__NOTE_WATCHING);
        first = asked(&w, a, SNIB__ACQUIRE, pump_id(a)).token;
        assert_int_equal(asked(&w, b, SNIB__ACQUIRE, pump_id(b)).position, 1);
        assert_true(asked(&w, a, SNIB__FORCE, (struct snib__id){{0}}).held);
        second = noted(&w, b, SNIB__NOTE_GRANTED).reply.token;
        assert_true(second >= first + SNIB__TOKEN_BLOCK);
        assert_true(asked(&w, a, SNIB__FORCE, (struct snib__id){{0}}).held);
        third = asked(&w, a, SNIB__ACQUIRE, pump_id(a)).token;
        assert_true(third > second);
        close_world(&w);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_engine_does_what_the_model_says_in_virtual_time),
            cmocka_unit_test(S3_tokens_rise_over_two_forces_in_a_row),
            cmocka_unit_test(scripts_with_bugs_are_seen),
            cmocka_unit_test(queueing_and_sharing_scripts_with_bugs_are_seen),
            cmocka_unit_test(counting_scripts_with_bugs_are_seen),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
