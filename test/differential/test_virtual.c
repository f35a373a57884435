/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model against the engine, its scripts and fakeredis, in virtual time: leases end, tokens are compared exactly,
 * nothing is waited for. And the proof that this comparison sees bugs: scripts with one bug each must be found. The
 * time moves by multiples of 10 ms and leases end in 5, so no question is asked at the very end of a lease, where Redis
 * is one millisecond more generous than the model. SNIB_DIFF_OPS, SNIB_DIFF_SEED.
 */

#include "base/prng.h"
#include "engine/redis/redis.h"
#include "engine/redis/script.h"
#include "fakeredis.h"
#include "model/lock.h"
#include "pump.h"
#include "transport.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPS_DEFAULT 100000
#define NAMES 2 /* 0 plain, 1 fenced */
#define IDS 4

struct world {
        struct fakeredis *server;
        struct pump *pump[2];
        struct snib__prng prng;
        int64_t now_ms;
        struct snib__lock_record record[NAMES];
        struct snib__id id[NAMES][IDS];
        int64_t known[NAMES][IDS];
        char different[256]; /* empty: nothing yet */
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

static struct snib__reply ask(struct world *w, struct pump *p, const struct snib__op *op)
{
        const struct snib__engine_ops *ops = p->engine->ops;
        struct snib__note n;

        ops->submit(p->engine, (struct snib__tag){.object = p}, op, boot_time(w));
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
        w->prng.state = seed;
        w->now_ms = INT64_C(1700000000000);
        pass(w, 0);
        for (unsigned i = 0; i < 2; i++) {
                struct snib__engine_config config;
                struct snib__engine *e;
                pump_config(&config, "redis://fake", i + 1);
                assert_int_equal(
                    snib__redis_open_with(&e, &config, &fakeredis_transport, w->server, boot_time(w), NULL), 0);
                pump_config_done(&config);
                w->pump[i] = pump_over(e, i + 1);
                e->ops->process(e, NULL, boot_time(w));
        }
        for (int i = 0; i < NAMES; i++)
                for (int j = 0; j < IDS; j++)
                        w->id[i][j] = pump_id(w->pump[j % 2]);
}

static void close_world(struct world *w)
{
        pump_close(w->pump[0]);
        pump_close(w->pump[1]);
        fakeredis_free(w->server);
}

static void check(struct world *w, bool equal, const char *what, int64_t model, int64_t real)
{
        if (!equal && !w->different[0])
                snprintf(w->different, sizeof(w->different), "%s: the model says %" PRId64 ", the engine %" PRId64,
                         what, model, real);
}

static void compare(struct world *w, const struct snib__op *op, const struct snib__reply *m,
                    const struct snib__reply *r)
{
        bool told = m->status == SNIB__BUSY || m->status == SNIB__GONE || m->status == SNIB__INFO;

        check(w, m->status == r->status, "status", m->status, r->status);
        if (m->status == SNIB__GRANTED && (op->kind == SNIB_KIND_FENCED || op->token || m->token == w->now_ms * 1000))
                check(w, m->token == r->token, "token", m->token, r->token);
        if (!told)
                return;
        check(w, m->held == r->held, "held", m->held, r->held);
        if (m->held && r->held) {
                check(w, snib__id_equal(&m->holder.id, &r->holder.id), "holder", 0, 0);
                check(w, m->left_ms == r->left_ms, "time left", m->left_ms, r->left_ms);
        }
}

static void one(struct world *w)
{
        static const char *const names[NAMES] = {"plain", "fenced"};
        int which = (int)snib__prng_below(&w->prng, NAMES), who = (int)snib__prng_below(&w->prng, IDS);
        enum snib__verb verb =
            (enum snib__verb)(snib__prng_below(&w->prng, 30) == 0 ? SNIB__FORCE : 1 + snib__prng_below(&w->prng, 4));
        struct pump *p = w->pump[who % 2];
        struct snib__op op =
            pump_op(p, verb, names[which], w->id[which][who], 105 + 10 * (int64_t)snib__prng_below(&w->prng, 30));
        struct snib__reply model, real;
        struct snib__lock_change change;
        bool holds;

        pass(w, 10 + 10 * (int64_t)snib__prng_below(&w->prng, 8));
        holds = snib__id_equal(&w->record[which].holder.id, &op.id) && w->record[which].holder.expires_ms > w->now_ms;
        op.kind = which == 1 ? SNIB_KIND_FENCED : SNIB_KIND_LOCK;
        op.token = verb == SNIB__ACQUIRE && holds && snib__prng_below(&w->prng, 3) ? w->known[which][who] : 0;
        snib__lock_apply(&w->record[which], &op,
                         (struct snib__clock){.lease_ms = w->now_ms, .wall_us = w->now_ms * 1000}, &model, &change);
        real = ask(w, p, &op);
        compare(w, &op, &model, &real);
        if (model.status == SNIB__GRANTED)
                w->known[which][who] = model.token;
        else if (model.status == SNIB__RELEASED || model.status == SNIB__GONE)
                w->id[which][who] = pump_id(p);
        if (snib__prng_below(&w->prng, 500) == 0)
                fakeredis_script_flush(w->server);
}

static void the_engine_does_what_the_model_says_in_virtual_time(void **state)
{
        uint64_t ops = from_env("SNIB_DIFF_OPS", OPS_DEFAULT), seed = from_env("SNIB_DIFF_SEED", 1);
        struct world w;

        (void)state;
        open_world(&w, seed);
        for (uint64_t n = 0; n < ops; n++) {
                one(&w);
                if (w.different[0])
                        fail_msg("seed %" PRIu64 " op %" PRIu64 ": %s", seed, n, w.different);
        }
        close_world(&w);
}

/* Runs with one script replaced; the comparison must see it. */
static void must_be_seen(enum snib__redis_script_id id, const char *text)
{
        struct snib__redis_script scripts[SNIB__SCRIPTS];
        struct world w;
        uint64_t n = 0;

        memcpy(scripts, snib__redis_scripts_built_in, sizeof(scripts));
        scripts[id].text = text;
        scripts[id].length = strlen(text);
        fakeredis_sha1(text, strlen(text), scripts[id].sha1);
        snib__redis_scripts = scripts;
        open_world(&w, 1);
        while (n++ < OPS_DEFAULT && !w.different[0])
                one(&w);
        snib__redis_scripts = snib__redis_scripts_built_in;
        close_world(&w);
        if (!w.different[0])
                fail_msg("the bug in %s.lua was not seen", scripts[id].name);
        print_message("# %s.lua: seen after %" PRIu64 " ops: %s\n", scripts[id].name, n, w.different);
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

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_engine_does_what_the_model_says_in_virtual_time),
            cmocka_unit_test(scripts_with_bugs_are_seen),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
