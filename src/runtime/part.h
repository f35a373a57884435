/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_PART_H
#define SNIB_RUNTIME_PART_H

/*
 * A part: one member of a multilock as the member's client sees it. It asks, holds and releases as
 * any caller does, but what becomes of it is told at once, under the client's lock and by whichever
 * thread noticed, so that nobody's callback stands in its way.
 *
 * From attach to detach the part is known to the client, whose close tells it. What is told may not
 * block, nor call this or any client, but for snib__part_post().
 *
 * Thread class: one thread at a time, but for snib__part_post().
 */

#include "runtime/runtime.h"

struct snib__part;

struct snib__part_events {
        void (*ended)(struct snib__part *p);            /* the call under way was answered: `result`, `grant`, `err` */
        void (*lost)(struct snib__part *p, int reason); /* what it holds was lost */
        void (*closed)(struct snib__part *p); /* the client goes away: no call is under way, nothing is held any more.
                                                 Posts, so that the client waits for run() */
        void (*run)(struct snib__part *p);    /* what was posted: where callbacks run, with no lock held */
};

struct snib__part {
        const struct snib__part_events *told;
        struct snib_client *client; /* NULL: not attached, or closed */
        struct snib_grant *grant;   /* what it holds */
        int result;                 /* of the last call, and its error */
        struct snib_error err;
        bool gone; /* the grant ended without this part's release: there is none to give back */
        struct snib__wait wait;
        struct snib__event event;
        struct snib__list of_client;
        struct snib__list of_grant;
};

/* 0, or an error. The part is zeroed but for `told`. */
int snib__part_attach(struct snib__part *p, struct snib_client *c, struct snib_error *err);
void snib__part_detach(struct snib__part *p);

/* Both begin a call, which ended() ends: 0, or an error, and ended() is not called. */
int snib__part_acquire(struct snib__part *p, struct snib__object *object, const struct snib__want *want,
                       struct snib_error *err);
/* Waits at most `patience` for the engine to confirm it; goes on in the background. */
int snib__part_release(struct snib__part *p, snib__ns patience, struct snib_error *err);
/* Ends an acquire under way, if it is; what the engine grants to it later is given back. ended()
 * comes from within. */
void snib__part_cancel(struct snib__part *p);
/* Ends the wait of an acquire under way as its time-out would: ended() comes from within, unless
 * the engine has not said anything yet. */
void snib__part_hurry(struct snib__part *p);
/* The acquire under way is no longer one of the handle, which may be freed. */
void snib__part_let_go(struct snib__part *p);

/* Queues run(), unless it is queued already: true if it was not. From within what is told. */
bool snib__part_post(struct snib__part *p);
/* The same from elsewhere. */
bool snib__part_post_locked(struct snib__part *p);

/* The client cannot go away until it is let go of, and goes on being driven: false, it is being
 * closed. For a moment only: close waits for it. */
bool snib__part_pin(struct snib__part *p);
void snib__part_unpin(struct snib_client *c);

/* Requests gather at the client, and for so long none has been answered: the server is frozen or
 * cut off. A few that wait are no sign of it: perhaps it is we who have not read. */
bool snib__part_is_stuck(struct snib__part *p, snib__ns patience);

/* What becomes of what is followed. Under the client's lock. */
void snib__parts_lost(struct snib_grant *g);
void snib__parts_freed(struct snib_grant *g);
void snib__parts_closed(struct snib_client *c);

#endif
