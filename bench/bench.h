/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BENCH_H
#define SNIB_BENCH_H

/*
 * What the benchmarks share: a contender does one thing again and again; contenders that do the same thing are run in
 * turn, round by round, so that whatever else the machine does meets them all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_CONTENDERS_MAX 6
#define BENCH_ROUNDS_MAX 15

struct bench_contender {
        const char *name;
        /* What all threads of a run share. NULL ends the program. */
        void *(*open)(const char *where);
        void (*close)(void *shared);
        /* What one thread has. NULL ends the program. */
        void *(*begin)(void *shared, const char *where, int thread);
        void (*end)(void *mine);
        /* One acquire and one release. False ends the program. */
        bool (*pair)(void *mine);
};

struct bench_plan {
        int rounds;
        int64_t warm_ms;
        int64_t run_ms;
};

/* Runs all contenders in turn and prints one line for each: medians of the rounds, and the ratios to the first. */
void bench_compare(const struct bench_plan *plan, const struct bench_contender *const *contenders, int count,
                   const char *where, int threads);
void bench_head(const char *title);

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);

/* red.c: starts servers of its own. */
void bench_red(const struct bench_plan *plan);

/* The text and the SHA-1 come from snib's own table of scripts; what they do is in src/engine/redis/scripts/. */
extern const struct bench_contender bench_redis_bare;
extern const struct bench_contender bench_redis_hiredis;
extern const struct bench_contender bench_snib;    /* any URL; the caller drives */
extern const struct bench_contender bench_snib_io; /* any URL; an I/O thread drives */
extern const struct bench_contender bench_sqlite;  /* where: a directory */
extern const struct bench_contender bench_flock;   /* where: a directory */

#endif
