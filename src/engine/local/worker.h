/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_WORKER_H
#define SNIB_LOCAL_WORKER_H

/*
 * One thread per store that waits at the gate in the place of callers who may not. Started by the
 * first item, ended with the store. Items are run in the order in which they came; each under a
 * gate hold of its own.
 */

#include "base/list.h"
#include "base/time.h"
#include "engine/local/place.h"
#include <stdbool.h>
#include <stdint.h>

struct snib__store;
struct snib__worker;

/* A piece of work: embedded in the caller's struct. */
struct snib__work {
        struct snib__list link;
        bool gate;    /* it writes: run it under the gate */
        bool patient; /* told to run(): it may wait for another program that is in SQLite */
        bool again; /* told by run(): it has done nothing and wants to be run once more, with what it set in `gate`, or
                       patiently */
        bool finished;
        /* With store.lock, and with the gate if `gate`. A patient one does not ask to be run
         * patiently again. */
        void (*run)(struct snib__work *work);
        /* After both are free again, with the worker's lock held: hand the result over. Must not
         * block. */
        void (*deliver)(struct snib__work *work);
        /* After both are free again, without any lock: what takes its time. May be NULL. */
        void (*after)(struct snib__work *work);
};

int snib__worker_new(struct snib__worker **ret_worker, struct snib__store *store, const struct snib__place *place,
                     struct snib_error *err);
/* No work is left in it. Frees it, or leaves that to its thread when this hangs at the gate. */
void snib__worker_stop(struct snib__worker *w);

/* Tries to run the work at once, on this thread: gate free, nobody in the store; then after() too,
 * but not deliver(). False: it would have to wait. */
bool snib__worker_now(struct snib__store *store, struct snib__work *work);
/* Hands it to the thread: 0, or an error if that cannot be started. */
int snib__worker_add(struct snib__worker *w, struct snib__work *work, struct snib_error *err);
/* Takes it back. False: it is running or was finished. */
bool snib__worker_cancel(struct snib__worker *w, struct snib__work *work);
/* Waits until it is finished. False: it was not so by `deadline` and was taken back. Work that is
 * running is waited for. */
bool snib__worker_wait(struct snib__worker *w, struct snib__work *work, snib__ns deadline);

/* The lock that protects what deliver() writes to. */
void snib__worker_lock(struct snib__worker *w);
void snib__worker_unlock(struct snib__worker *w);

/* Frees what a child inherited. */
void snib__worker_free(struct snib__worker *w);
void snib__worker_before_fork(struct snib__worker *w);
void snib__worker_after_fork(struct snib__worker *w, bool child);

#endif
