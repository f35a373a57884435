/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model against the Redis engine on a real server: random acquires, releases, renewals, force-releases and queries
 * by a few ids on a few names, one after the other; the same status, the same holder, the same tokens as far as they
 * are promised. Leases are long, so that nothing depends on the instant. SNIB_DIFF_OPS, SNIB_DIFF_SEED.
 */

#include "base/prng.h"
#include "model/lock.h"
#include "pump.h"
#include "redis_server.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define OPS_DEFAULT 20000
#define NAMES 3
#define IDS 4
#define LATE_MS 20000

static struct redis_server *server;
static struct pump *pump[2];
static struct snib__prng prng;

/* One lock: what the model stores, and what the clients know. */
struct lock {
        struct snib__lock_record record;
        int64_t known[IDS];  /* token of the hold by this id, 0 none */
        int64_t highest;     /* token ever given out by Redis */
        int64_t redis_token; /* of the present hold */
};
static struct lock locks[NAMES];
static struct snib__id ids[NAMES][IDS];

static uint64_t from_env(const char *name, uint64_t otherwise)
{
        return getenv(name) ? strtoull(getenv(name), NULL, 10) : otherwise;
}

static struct snib__clock clock_now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_REALTIME, &t);
        return (struct snib__clock){.lease_ms = pump_now() / SNIB__MS,
                                    .wall_us = t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000};
}

static void check(bool condition, const char *what, uint64_t op)
{
        if (!condition)
                fail_msg("seed %" PRIu64 " op %" PRIu64 ": %s", from_env("SNIB_DIFF_SEED", 1), op, what);
}

static void check_token(struct lock *l, int id, const struct snib__op *op, const struct snib__reply *real,
                        bool was_holder, uint64_t n)
{
        if (was_holder && op->token)
                check(real->token == op->token, "a confirmation changed the token", n);
        else if (was_holder)
                check(real->token >= l->redis_token, "a confirmation without a known token lowered it", n);
        else
                check(real->token > l->highest, "a new hold's token does not rise", n);
        l->redis_token = l->known[id] = real->token;
        l->highest = real->token > l->highest ? real->token : l->highest;
}

static void compare(const struct snib__reply *model, const struct snib__reply *real, uint64_t n)
{
        check(model->status == real->status, "different status", n);
        if (model->status == SNIB__GRANTED || model->status == SNIB__RENEWED || model->status == SNIB__RELEASED)
                return;
        check(model->held == real->held, "different opinion on whether it is held", n);
        if (!model->held)
                return;
        check(!strcmp(model->holder.id.text, real->holder.id.text), "different holder", n);
        check(model->left_ms - real->left_ms < LATE_MS && real->left_ms - model->left_ms < LATE_MS,
              "different time left", n);
}

static void one(uint64_t n)
{
        static const char *const names[NAMES] = {"plain", "fenced", "{braced}"};
        int which = (int)snib__prng_below(&prng, NAMES), id = (int)snib__prng_below(&prng, IDS);
        enum snib__verb verb =
            (enum snib__verb)(snib__prng_below(&prng, 20) == 0 ? SNIB__FORCE : 1 + snib__prng_below(&prng, 4));
        struct lock *l = &locks[which];
        struct pump *p = pump[id % 2];
        struct snib__op op =
            pump_op(p, verb, names[which], ids[which][id], 600000 + 300000 * (int64_t)snib__prng_below(&prng, 3));
        struct snib__reply model, real;
        struct snib__lock_change change;
        bool was_holder;

        op.kind = which == 1 ? SNIB_KIND_FENCED : SNIB_KIND_LOCK;
        was_holder = snib__id_set(&l->record.holder.id) && snib__id_equal(&l->record.holder.id, &op.id);
        op.token = verb == SNIB__ACQUIRE && snib__prng_below(&prng, was_holder ? 4 : 2) ? l->known[id] : 0;
        snib__lock_apply(&l->record, &op, clock_now(), &model, &change);
        real = pump_do(p, &op);
        compare(&model, &real, n);
        if (real.status == SNIB__GRANTED)
                check_token(l, id, &op, &real, was_holder, n);
        if (real.status == SNIB__RELEASED)
                ids[which][id] = pump_id(p); /* an id is used for one hold */
        if (verb == SNIB__QUERY && op.kind == SNIB_KIND_FENCED && real.held)
                check(real.token == l->redis_token, "a query tells another token", n);
}

static void the_engine_does_what_the_model_says(void **state)
{
        uint64_t ops = from_env("SNIB_DIFF_OPS", OPS_DEFAULT);

        (void)state;
        prng.state = from_env("SNIB_DIFF_SEED", 1);
        for (int i = 0; i < NAMES; i++)
                for (int j = 0; j < IDS; j++)
                        ids[i][j] = pump_id(pump[j % 2]);
        for (uint64_t n = 0; n < ops; n++) {
                one(n);
                if (n % 5000 == 4999)
                        freeReplyObject(redis_server_do(server, "SCRIPT FLUSH"));
        }
}

static int start(void **state)
{
        (void)state;
        server = redis_server_start(NULL);
        pump[0] = pump_connect(redis_server_url(server), 1);
        pump[1] = pump_connect(redis_server_url(server), 2);
        return 0;
}

static int stop(void **state)
{
        (void)state;
        pump_close(pump[0]);
        pump_close(pump[1]);
        redis_server_free(server);
        return 0;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(the_engine_does_what_the_model_says, start, stop)};
        const char *why = redis_server_unavailable();

        if (why) {
                printf("1..0 # SKIP %s\n", why);
                return 0;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
