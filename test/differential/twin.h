/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_DIFFERENTIAL_TWIN_H
#define SNIB_TEST_DIFFERENTIAL_TWIN_H

/*
 * The model beside an engine: random requests of every kind to both, and the first answer in which
 * they differ. Who asks (test_model.c: a real server in real time; test_virtual.c: fakeredis in
 * virtual time) gives the clock and the engine.
 *
 * What is different by design, and therefore not asked or not compared:
 *   - Redis keeps no queue but that of a fair lock; nobody else enqueues here. Where the model
 *     makes the next one holder, Redis waits until it asks: here it asks at once.
 *     A waiter that was silent for too long leaves Redis' queue when the next one asks: until then
 *     its release finds
 * it.
 *   - A read-write lock has one lease on Redis for the writer and its reads, and shows another of
 *     several readers: there leases do not end here, and only a holder that is alone is compared.
 *   - The token of a lock without fencing, and of permits, is an instant: the same only in virtual
 *     time.
 *   - The server does not know a semaphore from a latch or from permits of which none is out: each
 *     has its own name.
 *   - What was refused for a condition that was not met is not remembered by Redis: a repetition is
 *     judged anew. Only repetitions of what was done are compared.
 *   - The model forgets who took a semaphore's permits when the semaphore is deleted; Redis
 *     remembers the request until its time is over. Whoever took something of what is gone starts
 *     anew here.
 */

#include "base/prng.h"
#include "model/record.h"
#include "pump.h"

#define TWIN_ACTORS 4
#define TWIN_SEATS 64
#define TWIN_DATA_MAX 64

/* One who asks about one object. `n` is what its hold is about. */
struct twin_actor {
        struct snib__id id;
        int64_t n;
        int64_t token; /* of its hold, as the engine told it; 0 none */
        bool queued;   /* was told a place in the queue, and nothing since */
};

/* A number that the two do not call the same where time is real: a version, a state. */
struct twin_pair {
        int64_t model, engine;
};

struct twin_object {
        int kind;
        const char *name;
        struct snib__record record;
        struct snib__holder holders[TWIN_SEATS];
        struct snib__waiter queue[TWIN_SEATS];
        struct snib__done dones[SNIB__DONES_MAX + 1];
        char data[TWIN_DATA_MAX];
        struct twin_actor actor[TWIN_ACTORS];
        struct twin_pair now, before; /* register: its version; election: its state */
        struct snib__id turn;         /* fair: was made holder by the model and has not asked yet */
        int64_t highest;              /* token that the engine ever gave out */
        struct snib__op again;        /* was done or refused; verb 0: none was */
        char again_data[TWIN_DATA_MAX];
        int64_t again_until;
};

#define TWIN_OBJECTS 10
struct twin {
        struct pump *pump[2];
        struct snib__prng prng;
        bool exact; /* time stands still during a request: everything is compared */
        struct snib__clock (*clock)(void *arg);
        struct snib__reply (*ask)(void *arg, struct pump *p, const struct snib__op *op);
        void *arg;
        struct twin_object object[TWIN_OBJECTS];
        char different[400]; /* empty: nothing yet */
};

/* Fills what depends on pump, prng and clock, which the caller has set. */
void twin_init(struct twin *t);

/* One request to both. */
void twin_step(struct twin *t);

#endif
