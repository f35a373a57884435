/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_MULTI_H
#define SNIB_RUNTIME_MULTI_H

/*
 * What the files of a multilock share, and what api/ calls of them. One record, struct
 * snib_multigrant, lives from the first request to the last release. The machine in it
 * (core/multi.h) decides what happens next, multi_effects.c does it, multi_run.c sees to it that
 * somebody steps the machine when something has happened, member.c is one member at its client,
 * multilock.c is the calls. doc/design/multilock.md tells the whole story.
 *
 * Locks, in order: a record's, its handle's, a client's. What a client tells a member comes under
 * that client's lock, and therefore only sets atomics, rings and posts.
 */

#include "core/multi.h"
#include "runtime/runtime.h"

/* One member of a multilock, as its client sees it too. */
struct snib__member {
        struct snib_multigrant *of;
        struct snib__object *object; /* not to be used once the acquire was answered */
        char name[SNIB__ABOUT_MAX];  /* cut, fit to be shown */
        atomic_bool ended;           /* the call under way was; the machine has not heard of it yet */

        struct snib_client *client; /* NULL: not attached */
        struct snib_grant *grant;   /* what it holds */
        int result;                 /* of the last call, and its error */
        struct snib_error err;
        bool gone; /* the grant ended without this member's release: there is none to give back */
        struct snib__wait wait;
        struct snib__event event;
        struct snib__list of_client;
        struct snib__list of_grant;
};

struct snib_multigrant {
        pthread_mutex_t lock;
        /* The record itself until it is over, a caller inside, calls under way, what is posted,
         * pauses. */
        atomic_int refs;

        /* Constant. */
        size_t owner_length;
        char owner[SNIB__OWNER_KEY_MAX]; /* of members without an owner key: who asked */

        struct snib__bell bell; /* for the thread that waits, if one does */

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

        struct snib__member members[]; /* then the machine's own */
};

struct snib_multilock {
        pthread_mutex_t lock;
        struct snib__list waits; /* records whose acquire is not answered */
        size_t count;
        bool red;
        snib__ns node_timeout;
        size_t order[SNIB_MULTILOCK_MAX];
        struct snib__object *members[];
};

/* ---- multilock.c: what api/ calls, arguments checked */

/* `members` is copied. */
int snib__multilock_new(struct snib__object *const *members, size_t count, bool red, snib__ns node_timeout,
                        struct snib_multilock **ret, struct snib_error *err);
int snib__multilock_acquire(struct snib_multilock *m, const struct snib__patience *patience,
                            struct snib_multigrant **ret, struct snib_error *err);
int snib__multilock_acquire_async(struct snib_multilock *m, const struct snib__patience *patience,
                                  snib_multilocked_callback *acquired, void *arg, struct snib_error *err);
int snib__multilock_cancel(struct snib_multilock *m);
int snib__multilock_force(struct snib_multilock *m, struct snib_error *err);
struct snib_grant *snib__multigrant_member(const struct snib_multigrant *g, size_t index);
int snib__multigrant_on_loss(struct snib_multigrant *g, snib_multiloss_callback *lost, void *arg,
                             struct snib_error *err);
int snib__multigrant_loss_fd(struct snib_multigrant *g);
int snib__multigrant_release(struct snib_multigrant *g, struct snib_error *err);
int snib__multigrant_release_async(struct snib_multigrant *g, snib_done_callback *done, void *arg,
                                   struct snib_error *err);
/* A forked child's copy: nobody else refers to it, and nothing will ever happen to it. */
void snib__multigrant_forget(struct snib_multigrant *g);

/* ---- multi_effects.c: under the record's lock */

/* Steps the machine as long as there is something to be done, and does it; answers when to look
 * again though nothing happens. */
snib__ns snib__multi_advance(struct snib_multigrant *g);

/* ---- multi_run.c */

/* A record of an acquire that is about to begin, with a reference for the caller; its members are
 * attached, and whoever cancels finds it. `acquired` is NULL for a call that waits. */
int snib__multi_new(struct snib_multilock *m, const struct snib__patience *patience,
                    snib_multilocked_callback *acquired, void *arg, struct snib_multigrant **ret,
                    struct snib_error *err);
void snib__multi_ref(struct snib_multigrant *g);
void snib__multi_unref(struct snib_multigrant *g);
/* Steps the machine on behalf of nobody who waits: what is due is posted or paused for. Without
 * locks. */
void snib__multi_run(struct snib_multigrant *g);
/* Steps the machine until *flag, driving the clients that nobody else drives. Without locks. */
void snib__multi_wait(struct snib_multigrant *g, const bool *flag);
/* What is due is told from where callbacks run: false, every client is gone. Under the record's
 * lock. */
bool snib__multi_post(struct snib_multigrant *g);
/* What a member is told, under its client's lock, by whichever thread noticed: the call under way
 * was answered (`result`, `grant`, `err`); what it holds was lost; the client goes away, so that no
 * call is under way and nothing is held any more. None may block, nor call this or any client, but
 * for snib__member_post(). */
void snib__multigrant_ended(struct snib__member *p);
void snib__multigrant_lost(struct snib__member *p, int reason);
void snib__multigrant_closed(struct snib__member *p);
/* What was posted: where callbacks run, with no lock held. */
void snib__multigrant_posted(struct snib__member *p);

/* ---- member.c: one thread at a time, but for snib__member_post() */

/* From attach to detach the member is known to its client, whose close tells it. 0, or an error. */
int snib__member_attach(struct snib__member *p, struct snib_error *err);
void snib__member_detach(struct snib__member *p);
/* Attached, and its client is not going away: it may be called until the record's lock is given
 * back. */
bool snib__member_is_there(const struct snib__member *p);
/* Both begin a call, which snib__multigrant_ended() ends: 0, or an error, and it is not called. */
int snib__member_acquire(struct snib__member *p, const struct snib__want *want, struct snib_error *err);
/* Waits at most `patience` for the engine to confirm it; goes on in the background. */
int snib__member_release(struct snib__member *p, snib__ns patience, struct snib_error *err);
/* Ends an acquire under way, if it is; what the engine grants to it later is given back. Its end is
 * told from within. */
void snib__member_cancel(struct snib__member *p);
/* Ends the wait of an acquire under way as its time-out would: its end is told from within, unless
 * the engine has not said anything yet. */
void snib__member_hurry(struct snib__member *p);
/* The acquire under way is no longer one of the handle, which may be freed. */
void snib__member_let_go(struct snib__member *p);
/* Queues snib__multigrant_posted(), unless it is queued already: true if it was not. From within
 * what is told. */
bool snib__member_post(struct snib__member *p);
/* The same from elsewhere. */
bool snib__member_post_locked(struct snib__member *p);
/* The client cannot go away until it is let go of, and goes on being driven: false, it is being
 * closed. For a moment only: close waits for it. */
bool snib__member_pin(struct snib__member *p);
void snib__member_unpin(struct snib_client *c);
/* Requests gather at the client, and for so long none has been answered: the server is frozen or
 * cut off. A few that wait are no sign of it: perhaps it is we who have not read. */
bool snib__member_is_stuck(struct snib__member *p, snib__ns patience);

/* What becomes of what is followed. Under the client's lock. */
void snib__members_lost(struct snib_grant *g);
void snib__members_freed(struct snib_grant *g);
void snib__members_closed(struct snib_client *c);

#endif
