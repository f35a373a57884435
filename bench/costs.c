/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one pair on each object costs a lone caller, on each engine: the time and the allocations,
 * side by side. No floor stands beside it; the first rows of bench_compare() have that.
 */

#include "base/alloc.h"
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>

#define WARM_PAIRS 200
#define COUNTED_PAIRS 1000

static void cost(struct bench_seat *seat, double *ret_us, double *ret_allocations)
{
        static int64_t took[COUNTED_PAIRS];
        uint64_t before = 0;

        for (int i = -WARM_PAIRS; i < COUNTED_PAIRS; i++) {
                int64_t start = bench_now();

                if (i == 0)
                        before = snib__alloc_count;
                if (!bench_seat_take(seat, 1000))
                        bench_die("%s: busy, though nobody else wants it", bench_noun_text(seat->noun));
                bench_seat_give(seat);
                if (i >= 0)
                        took[i] = bench_now() - start;
        }
        *ret_allocations = (double)(snib__alloc_count - before) / COUNTED_PAIRS;
        *ret_us = bench_p50_us(took, COUNTED_PAIRS);
}

static void tell(const char *noun, const char *engine, double us, double allocations)
{
        char system[64];

        snprintf(system, sizeof(system), "%s on %s", noun, engine);
        bench_report_row("objects", 1, system);
        bench_report_figure("p50_us", &us, 1);
        bench_report_figure("allocations", &allocations, 1);
}

void bench_costs(const struct bench_engine *engines, int count)
{
        printf("\nEvery object: one pair of a lone caller, p50 in us of %d pairs, and allocations of snib's own code\n",
               COUNTED_PAIRS);
        printf("%-12s %-17s", "", "");
        for (int i = 0; i < count; i++)
                printf(" %9s %7s", engines[i].name, "allocs");
        printf("\n");
        for (int noun = 0; noun < BENCH_NOUNS; noun++) {
                printf("%-12s %-17s", bench_noun_text(noun), bench_noun_pair(noun));
                for (int i = 0; i < count; i++) {
                        struct snib_error err = SNIB_ERROR_INIT;
                        struct bench_seat seat;
                        snib_client *client;
                        double us, allocations;

                        if (snib_open(&client, engines[i].url, NULL, &err) < 0)
                                bench_die("%s", err.text);
                        bench_seat_begin(&seat, client, noun, "costs");
                        cost(&seat, &us, &allocations);
                        bench_seat_end(&seat);
                        snib_close(client);
                        printf(" %9.1f %7g", us, allocations);
                        tell(bench_noun_text(noun), engines[i].name, us, allocations);
                }
                printf("\n");
                fflush(stdout);
        }
}
