/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_BATON_H
#define SNIB_RUNTIME_BATON_H

/*
 * Who drives the engine next, and who is to be woken for it. Pure: no lock, no thread, no system
 * call; the caller holds the client's lock. test/runtime explores every interleaving of three
 * waiters and a keeper.
 *
 *      enter            take: nobody drives             leave, pass
 *   ──────────▶ waiting ─────────────────────▶ driving ─────────────▶ the latest waiter drives, or nobody
 *                  │ done (its answer came from another driver)
 *                  ▼
 *                done ──── leave ────▶ gone
 *
 * Invariants: at most one drives. While anyone waits, somebody drives, or somebody was woken or is
 * awake and will take the baton. Who drives next is not done: its own answer is still to come, and
 * of all those who wait the latest comer's comes last, so that it drives longest.
 */

#include "base/list.h"

struct snib__baton_member {
        struct snib__list link; /* in baton.waiting; the keeper's is in no list */
};

struct snib__baton {
        struct snib__list waiting;         /* not done, in the order of coming; the driver stays in it */
        struct snib__baton_member *driver; /* NULL: nobody */
};

void snib__baton_init(struct snib__baton *b);

/* `m` begins to wait. */
void snib__baton_enter(struct snib__baton *b, struct snib__baton_member *m);

/* True: `m` drives now, because it did already, was chosen, or nobody did. False: it must sleep
 * until it is woken. */
bool snib__baton_take(struct snib__baton *b, struct snib__baton_member *m);

/* What `m` waited for has come: it is not to drive any more, unless it does already. */
void snib__baton_done(struct snib__baton *b, struct snib__baton_member *m);

/* `m` no longer waits. Answers whom to wake: the waiter that drives from now on, or NULL. */
struct snib__baton_member *snib__baton_leave(struct snib__baton *b, struct snib__baton_member *m);

/* `m`, which waits for nothing itself (the keeper), stops driving. As snib__baton_leave(). */
struct snib__baton_member *snib__baton_pass(struct snib__baton *b, struct snib__baton_member *m);

#endif
