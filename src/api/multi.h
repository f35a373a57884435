/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_API_MULTI_H
#define SNIB_API_MULTI_H

/*
 * What the files of a multilock share. One record, struct snib_multigrant, lives from the first
 * request to the last release. The machine in it (core/multi.h) decides what happens next,
 * multi_effects.c does it, multi_run.c sees to it that somebody steps the machine when something
 * has happened, multilock.c is the public calls. doc/design/multilock.md tells the whole story.
 *
 * Locks, in order: a record's, its handle's, a client's. What a client tells a part comes under
 * that client's lock, and therefore only sets atomics.
 */

#include "api/internal.h"
#include "core/multi.h"
#include "runtime/part.h"

struct snib__member {
        struct snib__part base;
        struct snib_multigrant *of;
        struct snib__object *object; /* not to be used once the acquire was answered */
        char name[SNIB__ABOUT_MAX];  /* cut, fit to be shown */
        atomic_bool ended;           /* the call under way was; the machine has not heard of it yet */
};

struct snib_multigrant {
        pthread_mutex_t lock;
        /* The record itself until it is over, a caller inside, calls under way, what is posted,
         * pauses. */
        atomic_int refs;

        /* Constant. */
        size_t owner_length;
        char owner[SNIB__OWNER_KEY_MAX]; /* of members without an owner key: who asked */

        /* The thread that waits, if one does. */
        atomic_bool waiting;
        _Atomic uint32_t word; /* 0: nothing new */
        int wake_fd;           /* the same for one who polls; -1: nobody ever does */

        /* Under the lock, but for the machine's atomics. */
        struct snib__multi machine;
        struct snib_multilock *multilock; /* until the acquire is answered */
        struct snib__list of_multilock;
        snib__ns pause_until; /* somebody will look again, then */
        bool over;            /* the record's own reference was dropped */
        struct snib_error err;

        atomic_int loss_fd; /* -1: none wanted yet */
        snib_multiloss_callback *lost;
        void *lost_arg;
        snib_multilocked_callback *acquired; /* asynchronous: due when answered */
        void *acquired_arg;
        snib_done_callback *done; /* asynchronous release: due when released */
        void *done_arg;

        struct snib__multi_part *parts; /* the machine's: after the members */
        struct snib__member members[];
};

struct snib_multilock {
        pthread_mutex_t lock;
        struct snib__list waits; /* records whose acquire is not answered */
        size_t count;
        bool red;
        snib__ns node_timeout;
        size_t order[SNIB_MULTILOCK_MAX];
        struct snib_lock *members[];
};

/* multi_effects.c: under the record's lock. Steps the machine as long as there is something to be
 * done, and does it; answers when to look again though nothing happens. */
snib__ns snib__multi_advance(struct snib_multigrant *g);

/* multi_run.c */
/* A record of an acquire that is about to begin, with a reference for the caller; its parts are
 * attached. */
int snib__multi_new(struct snib_multilock *m, const struct snib__patience *patience, struct snib_multigrant **ret,
                    struct snib_error *err);
void snib__multi_ref(struct snib_multigrant *g);
void snib__multi_unref(struct snib_multigrant *g);
/* Steps the machine on behalf of nobody who waits: what is due is posted or paused for. Without
 * locks. */
void snib__multi_run(struct snib_multigrant *g);
/* Steps the machine until *flag, driving the clients that nobody else drives. Without locks. */
void snib__multi_wait(struct snib_multigrant *g, const bool *flag);
/* One that waits looks again. */
void snib__multi_wake(struct snib_multigrant *g);
/* What is due is told from where callbacks run: false, every client is gone. Under the record's
 * lock. */
bool snib__multi_post(struct snib_multigrant *g);

#endif
