/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BENCH_H
#define SNIB_BENCH_H

/*
 * What the benchmarks share: a contender does one thing again and again; contenders that do the same thing are run in
 * turn, round by round, so that whatever else the machine does meets them all.
 */

#include <snib/snib.h>
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
        int64_t crowd_ms; /* of a hand-over: longer than a waiter sleeps that was told nothing */
};

/* Runs all contenders in turn and prints one line for each: medians of the rounds, and the ratios to the first. */
void bench_compare(const struct bench_plan *plan, const struct bench_contender *const *contenders, int count,
                   const char *where, int threads);
void bench_head(const char *title);

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);

int64_t bench_now(void); /* ns */

/* nouns.c: every object as something that is taken and given back. */
enum bench_noun {
        BENCH_LOCK = 0,
        BENCH_FENCED,
        BENCH_FAIR,
        BENCH_SPIN,
        BENCH_READ,
        BENCH_WRITE,
        BENCH_SEMAPHORE,
        BENCH_PERMITS,
        BENCH_LATCH,
        BENCH_REGISTER,
        BENCH_NOUNS
};

/* Of one thread. */
struct bench_seat {
        enum bench_noun noun;
        snib_lock *lock;
        snib_rwlock *rwlock;
        snib_semaphore *semaphore;
        snib_permits *permits;
        snib_latch *latch;
        snib_register *reg;
        snib_grant *grant;
};

const char *bench_noun_text(enum bench_noun noun);
const char *bench_noun_pair(enum bench_noun noun);

/* What is counted has one permit. `where` makes the name: all who say the same want the same. Failures end the
 * program. */
void bench_seat_begin(struct bench_seat *s, snib_client *client, enum bench_noun noun, const char *where);
void bench_seat_end(struct bench_seat *s);
/* False: not in time. A latch and a register know no wait: set, and written. */
bool bench_seat_take(struct bench_seat *s, int64_t wait_ms);
/* Of a latch: counted down; of a register: read. */
void bench_seat_give(struct bench_seat *s);

/* costs.c */
struct bench_engine {
        const char *name, *url;
};
void bench_costs(const struct bench_engine *engines, int count);

/* crowd.c: `server` NULL: the engine is not Redis, and nothing is asked of it. */
struct redis_server;
void bench_crowd(const struct bench_plan *plan, const char *url, struct redis_server *server);

/* redis.c: pairs a second of one blocking socket that runs the two scripts of a lock of any kind, a write side, a
 * semaphore or permits. */
double bench_redis_bare_rate(enum bench_noun noun, const char *url, int64_t run_ms);

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
