/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MODEL_RECORD_H
#define SNIB_MODEL_RECORD_H

/*
 * What a correct server does with one request about one object of any kind: a pure function on a
 * stored record. It is the mem: engine, the body of every local: transaction, the server of the
 * simulator and the oracle that Redis is compared with.
 *
 * One record serves all kinds: seats that are taken (holders), a queue of those who wait for one, a
 * number, a value, the last token, and the requests executed lately. What differs between kinds is
 * one question: may this one sit down now?
 *
 *   lock family   when nobody sits
 *   READ          when no writer sits, or the writer is `under`;   WRITE   when nobody sits
 *   SEMAPHORE     when value >= n: value falls by n. The seat is kept, as a memory of who took, for SNIB__DONE_MS: the
 *                 same id is answered GRANTED again, and its RELEASE gives back. At most SNIB__DONES_MAX such memories
 *                 are kept, the newest; they go with the semaphore and are never in the way of a new seat. That it was
 *                 released is remembered like a change: an ACQUIRE with the same id that arrives late is BUSY
 *   PERMITS       when value - seats >= n: one seat for each permit (value is the limit)
 *   LATCH         when value is 0; takes no seat
 *   REGISTER      nobody sits: only observers wait
 *
 * The queue is first come, first served, whatever the kind: whoever may not sit is not overtaken by
 * one who came later and may, except that READ goes in under its own writer. So a waiting writer is
 * never starved, and neither is one who waits for many permits. Observers stand in the queue
 * without blocking it, and leave it at the first change of what they observe, told.
 *
 * Invariants after every call: no id stands twice in seats (PERMITS: with one index) and queue;
 * nobody at the head of the queue may sit down; the token never falls, and rises with every new
 * hold (each READ hold too) and every new value of a register; nobody's lease is over; PERMITS:
 * seats <= limit unless the limit was lowered; a LATCH that is 0 and a SEMAPHORE whose TTL is over
 * do not exist. snib__record_check tells whether a record is one; whoever loads a record from
 * outside the process asks it first.
 *
 * Hand-over: whoever makes room seats those who may sit now in the same step. A waiter that said
 * the number of its latest ACQUIRE is told that number, and has its whole lease from then on: it
 * knows that its hold began after that request was sent, and goes on without asking. Where that is
 * not possible (no number, no lease, or a SEMAPHORE, whose permits are nobody's once they are given
 * out) such a hold lasts the shorter of the waiter's lease and SNIB__CLAIM_MS until the waiter
 * confirms it with ACQUIRE; a SEMAPHORE's permits that are not confirmed in that time go back. A
 * waiter stays in the queue for SNIB__WAITER_LEASE_MS after its last ACQUIRE or OBSERVE; it repeats
 * it as a safety net well within that time.
 *
 * Numbers: SET of what exists, ADD with if_exists of what does not, ADD to an open latch and WRITE
 * or DELETE of another version change nothing: `applied` is false. DELETE of PERMITS ends all that
 * are out. ADD without if_exists makes a semaphore or permits that do not exist, from 0. RELEASE
 * and RENEW by permit id want all of op->permits out, each named once, else GONE. A hold of PERMITS
 * of which some were released by id is GONE for RENEW; what is left of it ends by RELEASE or its
 * lease.
 *
 * Replies: `holders`, `value` and `limit` are -1 where they make no sense; of what does not exist
 * `value` is -1, but 0 for a latch (it is open) and a register (version 0). `held` is: somebody
 * sits (locks), or it exists (the others); after GONE, somebody sits who excludes the one that is
 * gone. `holder` is the own hold when it was confirmed, else the writer, else the longest;
 * `left_ms` is of that hold, for PERMITS until the first of all expires. `waiters` and `position`
 * do not count observers. QUERY of a register answers token and value with the version.
 */

#include "model/op.h"

#define SNIB__CLAIM_MS 5000
#define SNIB__WAITER_LEASE_MS 5000
/* More waiters than this on one name are told BUSY without a place in the queue; they poll. Bounds
 * the record. */
#define SNIB__WAITERS_MAX 1024
/* More seats than this are refused as if they were taken. Bounds the record. */
#define SNIB__SEATS_MAX 4096
/* Requests remembered per name; beyond, the oldest is forgotten. */
#define SNIB__DONES_MAX 64

struct snib__holder {
        struct snib__seat seat; /* expires_ms INT64_MAX: never */
        int kind;               /* enum snib_kind as it was asked for */
        int64_t token;
        int64_t lease_ms; /* as asked for */
        int64_t n;        /* SEMAPHORE: how many it took; else 1 */
        int64_t index;    /* PERMITS: number of the permit within the hold */
        bool claimed;     /* confirmed by its owner; false after a hand-over until then */
};

struct snib__waiter {
        struct snib__seat seat; /* expires_ms: end of its place in the queue */
        int kind;
        int64_t lease_ms; /* of the hold it asks for */
        int64_t n;
        uint32_t number; /* of its latest ACQUIRE; 0: not said */
        bool observer;
        int64_t seen; /* observer: the state it knows */
};

/* A request that was executed and what it was answered. */
struct snib__done {
        struct snib__id id;
        int64_t expires_ms;
        int64_t value;
        bool applied;
};

/* The arrays are the caller's; a record that is all zero but for them is an empty one. Before a
 * call each must have as much room as snib__record_room() says. What finds no room is refused as if
 * it were taken. */
struct snib__record {
        enum snib__family family; /* NONE: nothing is stored under the name (but perhaps a last token) */
        int64_t token;            /* last token given out, 0 never; outlives the holds */
        int64_t value;            /* SEMAPHORE: free permits; PERMITS: the limit; LATCH: the count */
        bool exists;              /* SEMAPHORE, PERMITS, LATCH, REGISTER: was made and not deleted */
        int64_t version;          /* REGISTER: of the present value, 0 none */
        int64_t expires_ms;       /* SEMAPHORE that exists: end of its TTL, INT64_MAX none */
        size_t held, held_room;
        struct snib__holder *holder; /* longest first */
        size_t queued, queue_room;
        struct snib__waiter *queue;
        size_t unseen; /* more waiters, see below; usually 0 */
        size_t dones, dones_room;
        struct snib__done *done; /* oldest first */
        const void *data;        /* REGISTER: the value; WRITE points it at op->data, for the caller to copy */
        size_t data_length;
};

/* A long queue need not be there in full for somebody who does not stand in it: `queue` is its head
 * then or, of a lock, its end, and `unseen` says how many more wait; none of these observes. What
 * is decided from a head is right if the last of it still stands there: nobody behind had to be
 * looked at. What is decided from an end is right if all of it still stand there, and neither seats
 * nor anything else but the queue changed: then nobody before it got in. (Whose time is over among
 * the unseen counts as one who waits until somebody looks.) */

/* The server's clocks at one instant. */
struct snib__clock {
        int64_t lease_ms; /* the clock on which leases run: does not jump */
        int64_t wall_us;  /* microseconds since 1970: floor for tokens, and since_ms */
};

/* Whom to tell what, for engines that send wake-ups. */
enum snib__tell_kind {
        SNIB__TELL_GRANTED = 1, /* a waiter that may go on: its seat is taken for it, the latch is open, what it
                                   observes changed. It asks again with its id, but with a number: it need not if that
                                   is its latest request's; the hold is `token`'s */
        SNIB__TELL_ENDED = 2    /* a hold that ended without its owner's release (expired, dead, forced) */
};
struct snib__tell {
        enum snib__tell_kind kind;
        struct snib__id id;
        uint32_t number;
        int64_t token;
};

/* What one call changed, for engines that store differences. `tell` is the caller's array; what
 * finds no room in it is left out: whoever is concerned looks by itself within a poll. */
struct snib__change {
        bool record; /* family, token, value, exists, version, expires_ms, data */
        bool holders, queue, dones;
        size_t tells, tell_room;
        struct snib__tell *tell;
};

/* How many of each a record may have after a request and the hand-overs before and after it, and
 * how many one call may tell. */
struct snib__room {
        size_t held, queued, dones, tells;
};
struct snib__room snib__record_room(const struct snib__record *record, const struct snib__op *op);

/* Applies one request. First ends holds, waits, memories and TTLs whose time is over, then does
 * what `op` says, then hands over. Only fails with SNIB_EKIND (another family holds the name),
 * SNIB_ELIMIT (a number would leave its range) and SNIB_EUNSUPPORTED (this kind has no such
 * change); then nothing was changed but what was over. `ret_change` must come with `tell` and
 * `tell_room` set; the rest is overwritten. */
void snib__record_apply(struct snib__record *record, const struct snib__op *op, struct snib__clock now,
                        struct snib__reply *ret_reply, struct snib__change *ret_change);

/* Takes an id out, wherever it stands, because its process is known to be dead, and hands over. A
 * SEMAPHORE's permits that were confirmed stay taken. True if it stood anywhere. */
bool snib__record_bury(struct snib__record *record, const struct snib__id *id, struct snib__clock now,
                       struct snib__change *ret_change);

/* When the next thing in it ends by time (lease, place, memory, TTL), on the lease clock;
 * INT64_MAX: nothing does. */
int64_t snib__record_due(const struct snib__record *record);

/* Nothing is stored under the name but perhaps a last token: nobody sits or waits, it does not
 * exist, and no request is remembered. (`family` is NONE already when only requests are.) */
bool snib__record_idle(const struct snib__record *record);

/* max(previous + 1, microseconds now): a lost counter cannot bring an old token back. Stays below
 * 2^53 until 2255. */
int64_t snib__token_next(int64_t previous, int64_t wall_us);

/* NULL, or what should be true of every record and is not of this one. Quadratic. */
const char *snib__record_check(const struct snib__record *record);

#endif
