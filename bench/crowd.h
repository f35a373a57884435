/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BENCH_CROWD_H
#define SNIB_BENCH_CROWD_H

/* One run of a crowd that wants one name (crowd.c), as the tables of handover.c use it. */

#include "bench.h"

struct redis_server;

/* What a run gives. */
enum figure {
        RATE,
        RATIO,
        MEAN,
        LONGEST,
        LATEST,
        SERVED,
        GAP,
        POLLS,
        CPU,
        SWITCHES,
        SCRIPTS,
        SUBSCRIPTIONS,
        FORGETS,
        REQUESTS,
        EXECUTED,
        CHANNELS,
        SUBSCRIBERS,
        FIGURES
};

/* What a Redis server says of itself. */
struct crowd_load {
        double scripts, subscriptions, forgets; /* requests of clients so far */
        double executed;                        /* commands so far, those inside scripts among them */
        double channels, subscribers;           /* now */
};

/* Who takes part. */
struct crowd_cast {
        enum bench_noun noun;
        const char *url;
        struct redis_server *server; /* NULL: there is none */
        int processes;
        int threads; /* of each process */
};

/* Sets all of enum figure that a crowd has; RATIO is the caller's. */
void crowd_run(const struct bench_plan *plan, const struct crowd_cast *cast, double *ret);

/* Everything 0 without a server. */
struct crowd_load crowd_load_at(struct redis_server *server, int64_t instant);
void crowd_set_load(const struct crowd_load load[2], double grants, double *ret);

#endif
