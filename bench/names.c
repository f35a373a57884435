/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many names: what a lock object costs that nobody holds, and whether a pair costs more because
 * there are many. Each size lives in a process of its own, so that its memory is its own; it makes
 * so many objects of one client, and then takes and gives back random ones for a while. Nobody else
 * wants them. What is held is the question of another table.
 */

#include "base/prng.h"
#include "bench.h"
#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX (1 << 20)

/* Shared with the process that measures. */
struct outcome {
        double bytes; /* resident, for each name */
        double new_us;
        double p50_us;
};

static double p50_of_pairs(snib_lock **locks, int names, int64_t run_ms)
{
        int64_t *took = malloc(PAIRS_MAX * sizeof(*took)), start = bench_now(), until = start + run_ms * 1000000;
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__prng prng = {.state = 1};
        snib_grant *grant;
        int count = 0;

        if (!took)
                bench_die("out of memory");
        for (; count < PAIRS_MAX && start < until; count++) {
                snib_lock *lock = locks[snib__prng_below(&prng, (uint64_t)names)];

                if (snib_lock_try(lock, &grant, &err) != 1 || snib_grant_release(grant, &err) != 1)
                        bench_die("a pair failed: %s", err.text);
                int64_t end = bench_now();
                took[count] = end - start;
                start = end;
        }
        double p50 = bench_p50_us(took, count);
        free(took);
        return p50;
}

/* In a process of its own. */
static void measure(const char *url, int names, int64_t run_ms, struct outcome *ret)
{
        snib_lock **locks = calloc((size_t)names, sizeof(*locks));
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *client;
        char name[32];

        if (!locks || snib_open(&client, url, NULL, &err) < 0)
                bench_die("%s", err.text);
        memset(locks, 1, (size_t)names * sizeof(*locks)); /* resident before it counts */
        double before = bench_resident();
        int64_t start = bench_now();
        for (int i = 0; i < names; i++) {
                snprintf(name, sizeof(name), "bench:name:%d", i);
                if (snib_lock_new(client, name, NULL, &locks[i], &err) < 0)
                        bench_die("%s", err.text);
        }
        ret->new_us = (double)(bench_now() - start) / 1e3 / names;
        ret->bytes = (bench_resident() - before) / names;
        ret->p50_us = p50_of_pairs(locks, names, run_ms);
}

struct task {
        const char *url;
        int names;
        int64_t run_ms;
};

static void measure_task(const void *task, void *ret)
{
        const struct task *t = task;

        measure(t->url, t->names, t->run_ms, ret);
}

static struct outcome run(const char *url, int names, int64_t run_ms)
{
        struct outcome o;

        bench_apart(measure_task, &(struct task){url, names, run_ms}, &o, sizeof(o));
        return o;
}

static void tell(const char *engine, int names, const struct outcome *o)
{
        printf("%9d  %-8s %12.0f %10.2f %10.1f\n", names, engine, o->bytes, o->new_us, o->p50_us);
        fflush(stdout);
        bench_report_row("names", names, engine);
        bench_report_figure("bytes", &o->bytes, 1);
        bench_report_figure("new_us", &o->new_us, 1);
        bench_report_figure("p50_us", &o->p50_us, 1);
}

void bench_names(const struct bench_plan *plan, const struct bench_engine *engines, int count)
{
        static const int names[] = {1, 1000, 100000, 1000000};

        printf("\nMany names: lock objects of one client, nobody holds them; and a pair on a random one\n"
               "%9s  %-8s %12s %10s %10s\n",
               "names", "", "bytes each", "new us", "pair p50");
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                for (int k = 0; k < count; k++) {
                        struct outcome o = run(engines[k].url, names[i], plan->run_ms);

                        tell(engines[k].name, names[i], &o);
                }
}
