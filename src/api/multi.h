/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_API_MULTI_H
#define SNIB_API_MULTI_H

/*
 * What the files of a multilock share. One record, struct snib_multigrant, lives from the first request to the last
 * release. multi_step.c decides what happens next, multi_run.c sees to it that somebody asks multi_step.c when
 * something has happened, multilock.c is the public calls. doc/design/multilock.md tells the whole story.
 *
 * Locks, in order: a record's, its handle's, a client's. What a client tells a part comes under that client's lock, and
 * therefore only sets atomics.
 */

#include "api/internal.h"
#include "runtime/part.h"

/* A member that others are held for is waited for in slices of this long for each member: somebody may hold it who
 * waits for one of ours, because he takes them in an order of his own. */
#define SNIB__MULTI_SLICE (1500 * SNIB__MS)
/* Pauses between rounds grow up to this; each is drawn anew. */
#define SNIB__MULTI_PAUSE_MIN (8 * SNIB__MS)
#define SNIB__MULTI_PAUSE_MAX (256 * SNIB__MS)
/* What a failed round holds is given back; so long the answer waits for the engines' confirmation. */
#define SNIB__MULTI_UNDO (200 * SNIB__MS)

enum snib__multi_phase {
        SNIB__MULTI_ASKING = 0, /* a round goes on */
        SNIB__MULTI_UNDOING,    /* it failed, and what it took is being given back */
        SNIB__MULTI_PAUSING,    /* until the next */
        SNIB__MULTI_HELD,       /* answered with 1 */
        SNIB__MULTI_RELEASING,
        SNIB__MULTI_OVER /* answered with something else, or released; nothing is under way at any member */
};

enum snib__multi_state { SNIB__PART_IDLE = 0, SNIB__PART_ASKING, SNIB__PART_HELD, SNIB__PART_RELEASING };

struct snib__multi_part {
        struct snib__part base;
        struct snib_multigrant *of;
        struct snib_lock *lock; /* not to be used once the acquire was answered */
        snib__ns lease;
        char name[SNIB__ABOUT_MAX]; /* cut, fit to be shown */
        /* Set by what is told. */
        atomic_bool ended;  /* the call under way was; not yet taken note of */
        atomic_bool closed; /* the client is going away */
        atomic_int loss;    /* enum snib_loss, of what it held last */
        /* Counts for the whole; read without a lock. */
        struct snib_grant *_Atomic held;
        /* The machine's, under the record's lock. */
        enum snib__multi_state state;
        bool cancelled;
        bool to_release; /* it was held or asked when the release began */
        int said;        /* the last answer */
};

struct snib_multigrant {
        pthread_mutex_t lock;
        /* The record itself until it is over, a caller inside, calls under way, what is posted, pauses. */
        atomic_int refs;

        /* Constant. */
        size_t count;
        size_t needed; /* members: all, or a majority of them */
        bool red;
        snib__ns node_timeout;
        size_t order[SNIB_MULTILOCK_MAX]; /* in which members are acquired */
        size_t owner_length;
        char owner[SNIB__OWNER_KEY_MAX]; /* of members without an owner key: who asked */

        /* The thread that waits, if one does. */
        atomic_bool waiting;
        _Atomic uint32_t word; /* 0: nothing new */
        int wake_fd;           /* the same for one who polls; -1: nobody ever does */

        /* The machine's, under the lock. */
        enum snib__multi_phase phase;
        struct snib_multilock *multilock; /* until the acquire is answered */
        struct snib__list of_multilock;
        atomic_bool cancelled;
        bool once;
        snib__ns deadline;
        unsigned round;
        snib__ns begun;       /* of the round */
        snib__ns due;         /* when to look again though nothing happened */
        snib__ns pause_until; /* somebody will, then */
        size_t at;            /* plain: members held, and the place in `order` of the one that is asked */
        bool again;           /* another round may do better */
        int result;           /* of the round; then of the acquire */
        bool answered;
        bool released; /* `result` is that of the release */
        bool over;     /* the record's own reference was dropped */
        struct snib_error err;

        int64_t token;
        atomic_bool granted; /* losses count */
        atomic_int loss;     /* enum snib_loss */
        atomic_int loss_fd;  /* -1: none wanted yet */
        snib_multiloss_callback *lost;
        void *lost_arg;
        snib_multilocked_callback *acquired; /* asynchronous: due when answered */
        void *acquired_arg;
        snib_done_callback *done; /* asynchronous release: due when released */
        void *done_arg;

        struct snib__multi_part parts[];
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

/* multi_step.c: under the record's lock. */
/* Does what is to be done now; answers when to look again though nothing happens. */
snib__ns snib__multi_step(struct snib_multigrant *g);
/* Begins to give all back. */
void snib__multi_release(struct snib_multigrant *g);
/* From any thread, without a lock: how long a member's hold may still be trusted; 0 or less: it may not. */
snib__ns snib__multi_part_left(const struct snib_multigrant *g, const struct snib__multi_part *p, snib__ns now);
/* The same for the whole. */
snib__ns snib__multi_left(const struct snib_multigrant *g, snib__ns now);
/* Whether so many members were lost that the whole is; tells it, once. */
void snib__multi_check_loss(struct snib_multigrant *g, int reason);

/* multi_run.c */
/* A record of an acquire that is about to begin, with a reference for the caller; its parts are attached. */
int snib__multi_new(struct snib_multilock *m, const struct snib__patience *patience, struct snib_multigrant **ret,
                    struct snib_error *err);
void snib__multi_ref(struct snib_multigrant *g);
void snib__multi_unref(struct snib_multigrant *g);
/* Steps the machine on behalf of nobody who waits: what is due is posted or paused for. Without locks. */
void snib__multi_run(struct snib_multigrant *g);
/* Steps the machine until *flag, driving the clients that nobody else drives. Without locks. */
void snib__multi_wait(struct snib_multigrant *g, const bool *flag);
/* One that waits looks again. */
void snib__multi_wake(struct snib_multigrant *g);
/* What is due is told from where callbacks run: false, every client is gone. Under the record's lock. */
bool snib__multi_post(struct snib_multigrant *g);

#endif
