/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Redis engine on a real server against the model: see twin.h. One request after the other,
 * over two connections; the same status, holder, numbers and data, tokens and versions as far as
 * they are promised. Leases are long, so that nothing depends on the instant. SNIB_DIFF_OPS,
 * SNIB_DIFF_SEED.
 */

#include "redis_server.h"
#include "twin.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define OPS_DEFAULT 40000

static struct redis_server *server;
static struct twin twin;

static uint64_t from_env(const char *name, uint64_t otherwise)
{
        return getenv(name) ? strtoull(getenv(name), NULL, 10) : otherwise;
}

static struct snib__clock clock_now(void *arg)
{
        struct timespec t;

        (void)arg;
        clock_gettime(CLOCK_REALTIME, &t);
        return (struct snib__clock){.lease_ms = pump_now() / SNIB__MS,
                                    .wall_us = t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000};
}

static struct snib__reply ask(void *arg, struct pump *p, const struct snib__op *op)
{
        (void)arg;
        return pump_do(p, op);
}

static void the_engine_does_what_the_model_says(void **state)
{
        uint64_t ops = from_env("SNIB_DIFF_OPS", OPS_DEFAULT), seed = from_env("SNIB_DIFF_SEED", 1);

        (void)state;
        twin.prng.state = seed;
        twin_init(&twin);
        for (uint64_t n = 0; n < ops; n++) {
                twin_step(&twin);
                if (twin.different[0])
                        fail_msg("seed %" PRIu64 " op %" PRIu64 ": %s", seed, n, twin.different);
                if (n % 5000 == 4999)
                        freeReplyObject(redis_server_do(server, "SCRIPT FLUSH"));
        }
}

static int start(void **state)
{
        struct snib__op first;

        (void)state;
        server = redis_server_start(NULL);
        twin = (struct twin){.clock = clock_now, .ask = ask};
        for (unsigned i = 0; i < 2; i++) {
                twin.pump[i] = pump_connect(redis_server_url(server), i + 1);
                /* An attempt above 1 may be repeated: the engine leaves the server its memory of
                 * the request. */
                first = pump_op(twin.pump[i], SNIB__QUERY, "nothing", pump_id(twin.pump[i]), 0);
                (void)pump_do(twin.pump[i], &first);
        }
        return 0;
}

static int stop(void **state)
{
        (void)state;
        pump_close(twin.pump[0]);
        pump_close(twin.pump[1]);
        redis_server_free(server);
        return 0;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(the_engine_does_what_the_model_says, start, stop)};

        if (redis_server_skips_all())
                return 0;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
