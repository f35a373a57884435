/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MODEL_LOCK_H
#define SNIB_MODEL_LOCK_H

/*
 * What a correct server does with one request about one lock: a pure function on a stored record. It is the mem:
 * engine, the body of every local: transaction, the server of the simulator and the oracle that Redis is compared with.
 *
 * Record: at most one holder; a queue of waiters, first come first served; the last token.
 *
 *   free ──ACQUIRE──▶ held(id) ──RELEASE, FORCE, lease over──▶ free, or held(first of the queue)
 *
 * Invariants after every call: no id stands twice in holder and queue; the queue is empty while the lock is free; the
 * token never falls, and rises with every new hold; nobody's lease is over. snib__lock_check tells whether a record is
 * one; whoever loads a record from outside the process asks it first.
 *
 * Hand-over: whoever ends a hold installs the first live waiter as holder in the same step. That hold lasts the shorter
 * of the waiter's lease and SNIB__CLAIM_MS until the waiter confirms it with ACQUIRE, so that a waiter that died
 * unnoticed blocks nobody for a whole lease. A waiter stays in the queue for SNIB__WAITER_LEASE_MS after its last
 * ACQUIRE; it repeats it as a safety net well within that time.
 */

#include "model/op.h"

#define SNIB__CLAIM_MS 5000
#define SNIB__WAITER_LEASE_MS 5000
/* More waiters than this on one name are told BUSY without a place in the queue; they poll. Bounds the record. */
#define SNIB__WAITERS_MAX 1024

struct snib__waiter {
        struct snib__seat seat; /* expires_ms: end of its place in the queue */
        int64_t lease_ms;       /* of the hold it asks for */
};

struct snib__lock_record {
        int64_t token;            /* last token given out, 0 never; outlives the hold */
        struct snib__seat holder; /* empty id: free. expires_ms on snib__clock.lease_ms */
        size_t queued;
        size_t room; /* of `queue`, the caller's array; at least queued + 1 for an ACQUIRE that may enqueue */
        struct snib__waiter *queue;
};

/* The server's clocks at one instant. */
struct snib__clock {
        int64_t lease_ms; /* the clock on which leases run: does not jump */
        int64_t wall_us;  /* microseconds since 1970: floor for tokens, and since_ms */
};

/* What one call changed, for engines that store differences and send wake-ups. Fixed size: at most one hold ends and
 * one begins, the queue loses waiters at any place and gains at most one at its end. */
struct snib__lock_change {
        bool holder;             /* the holder or the token is not what it was */
        bool queue;              /* the queue is not what it was */
        struct snib__id granted; /* a waiter that became holder by hand-over: wake it */
        struct snib__id ended;   /* the hold that ended without its owner's release (expired, dead, forced): tell it */
};

/* Applies one request. First ends holds and waits whose time is over, then does what `op` says, then hands over. Never
 * fails. */
void snib__lock_apply(struct snib__lock_record *record, const struct snib__op *op, struct snib__clock now,
                      struct snib__reply *ret_reply, struct snib__lock_change *ret_change);

/* Takes an id out, wherever it stands, because its process is known to be dead, and hands over. True if it stood
 * anywhere. */
bool snib__lock_bury(struct snib__lock_record *record, const struct snib__id *id, struct snib__clock now,
                     struct snib__lock_change *ret_change);

/* max(previous + 1, microseconds now): a lost counter cannot bring an old token back. Stays below 2^53 until 2255. */
int64_t snib__token_next(int64_t previous, int64_t wall_us);

/* NULL, or what should be true of every record and is not of this one. Quadratic in the queue. */
const char *snib__lock_check(const struct snib__lock_record *record);

#endif
