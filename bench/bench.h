/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BENCH_H
#define SNIB_BENCH_H

/*
 * What the benchmarks share: a contender does one thing again and again; contenders that do the
 * same thing are run in turn, round by round, so that whatever else the machine does meets them
 * all.
 */

#include <snib/snib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#define BENCH_CONTENDERS_MAX 16
#define BENCH_ROUNDS_MAX 15

/* What a run gives. The names in the results are in measure.c. */
enum bench_figure {
        BENCH_RATE = 0,    /* pairs a second */
        BENCH_P50,         /* us */
        BENCH_P99,         /* us */
        BENCH_LONGEST,     /* us */
        BENCH_CPU,         /* us of the process a pair */
        BENCH_VOLUNTARY,   /* context switches a pair; NAN: it cannot tell */
        BENCH_INVOLUNTARY, /* context switches a pair; NAN: it cannot tell */
        BENCH_FIGURES
};

struct bench_peer;

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
        /* Server and callers on one processor: nobody looks for an answer while it is made. */
        bool same_core;
        /* Instead of all of the above but the name: another program, which does the whole run. */
        struct bench_peer *peer;
};

struct bench_plan {
        bool quick;
        int rounds;
        int64_t warm_ms;
        int64_t run_ms;
        int64_t crowd_ms; /* of a hand-over: longer than a waiter sleeps that was told nothing */
        int crowd_rounds; /* of a plain lock */
};

/* Runs all contenders in turn and prints one line for each: medians of the rounds, and the ratios
 * to the first. The results get a row for each, under the title's scenario and with the number of
 * threads as size. */
void bench_compare(const struct bench_plan *plan, const struct bench_contender *const *contenders, int count,
                   const char *where, int threads);
void bench_head(const char *scenario, const char *title);
/* Puts this thread, those that it will start and the server onto one processor, and back to where
 * they were. */
void bench_server_is(pid_t server);
void bench_share_a_core(void);
void bench_spread_again(void);
#define BENCH_VALUES_MAX 200
double bench_median(const double *values, int count); /* at most so many; NAN if one of them is */

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);

int64_t bench_now(void); /* ns */
void bench_sleep_until(int64_t instant);
double bench_cpu_us(const struct rusage *u); /* in the program and in the kernel */
double bench_own_cpu_us(void);
double bench_resident(void); /* bytes of this process */
/* Measures in a process of its own, so that its memory is its own, and ends that without giving
 * anything back. */
void bench_apart(void (*measure)(const void *task, void *ret), const void *task, void *ret, size_t size);
double bench_p50_us(int64_t *took, int count); /* of ns, which are sorted by it; NAN of none */

/* report.c: what was measured as JSON, besides the tables; report.py reads it. Without an open file
 * nothing is written. First facts about the run, then rows: one for each system at each size of a
 * scenario. A figure has a value for each round; what could not be measured is NAN. */
void bench_report_open(const char *path);
void bench_report_fact(const char *name, const char *text);
void bench_report_row(const char *scenario, int size, const char *system);
void bench_report_figure(const char *name, const double *rounds, int count);
void bench_report_close(void);

/* peer.c: other processes. One that fails is left out from then on: what it is told is not sent,
 * and nothing heard. */
#define BENCH_PEERS 5
typedef void bench_peer_main(FILE *in, FILE *out, const char *url);
/* Those of bench/peers/ that were prepared in a directory; says why others were not. */
void bench_peers_start(const char *directory, const char *url);
const struct bench_contender *bench_peer_at(int i); /* NULL: no more */
void bench_peers_end(void);
struct bench_peer *bench_peer_fork(const char *name, bench_peer_main *serve, const char *url);
struct bench_peer *bench_peer_again(const struct bench_peer *other); /* another process of the same program */
void bench_peer_end(struct bench_peer *p);
__attribute__((format(printf, 2, 3))) void bench_peer_tell(struct bench_peer *p, const char *format, ...);
/* What follows the word in its next line, valid until the next call. NULL: it failed. */
const char *bench_peer_hear(struct bench_peer *p, const char *word);
/* All of enum bench_figure; NAN if it failed. */
void bench_peer_run(struct bench_peer *p, const char *mode, int threads, int64_t warm_ms, int64_t run_ms, double *ret);

/* wake.c: a process that holds and waits in turn, as it is told, until the end; and one round of
 * two of them that pass a lock to and fro: p50 from the release to the grant in us. */
struct bench_wake_holder {
        void *mine;
        void (*wait)(void *mine);
        void (*release)(void *mine);
};
void bench_wake_serve(const struct bench_wake_holder *h, FILE *in, FILE *out);
double bench_wake_round(struct bench_peer *const *pair, int64_t run_ms);

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

/* What is counted has one permit. `where` makes the name: all who say the same want the same.
 * Failures end the program. */
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
/* names.c */
void bench_names(const struct bench_plan *plan, const struct bench_engine *engines, int count);

/* handover.c: `server` NULL: the engine is not Redis, and nothing is asked of it. */
struct redis_server;
void bench_crowd(const struct bench_plan *plan, const char *url, struct redis_server *server);

/* held.c */
void bench_held(const struct bench_plan *plan, struct redis_server *server);

/* redis.c: scripts of snib on a blocking hiredis connection, for others than the contenders
 * there. */
struct redisContext;
void *bench_redis_connect(const char *url); /* a redisContext; every script is loaded */
void bench_redis_disconnect(void *context);
/* `arguments`: the number of keys, keys, others, NULL. */
bool bench_redis_ask(struct redisContext *c, int script, const char *const *arguments);

/* redis.c: pairs a second of one blocking socket that runs the two scripts of a lock of any kind, a
 * write side, a semaphore or permits. */
double bench_redis_bare_rate(enum bench_noun noun, const char *url, int64_t run_ms);

/* red.c: starts servers of its own. */
void bench_red(const struct bench_plan *plan);

/* busy.c */
void bench_busy(const struct bench_plan *plan, const char *url);
/* delays.c: has a server of its own */
void bench_delays(const struct bench_plan *plan);

/* async.c, wake.c */
void bench_async(const struct bench_plan *plan, const char *url);
void bench_wake(const struct bench_plan *plan, const char *url);

/* The text and the SHA-1 come from snib's own table of scripts; what they do is in
 * src/engine/redis/scripts/. */
extern const struct bench_contender bench_redis_bare;
extern const struct bench_contender bench_redis_bare_same_core;
extern const struct bench_contender bench_redis_looking; /* reads without blocking first, for up to 50 us */
extern const struct bench_contender bench_redis_hiredis;
/* The bare loop on a server that knows every script: blocking, or reading without blocking first,
 * for so many us. */
extern const struct bench_contender bench_delayed_sleeping, bench_delayed_looking_50, bench_delayed_looking_200;
extern const struct bench_contender bench_delayed_looking_500;
extern const struct bench_contender bench_snib; /* any URL; the caller drives */
extern const struct bench_contender bench_snib_same_core;
extern const struct bench_contender bench_snib_unlooking; /* sleeps for every answer */
extern const struct bench_contender bench_snib_io;        /* any URL; an I/O thread drives */
extern const struct bench_contender bench_sqlite;         /* where: a directory */
extern const struct bench_contender bench_flock;          /* where: a directory */

#endif
