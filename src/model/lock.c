/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The meaning of every request about one lock: model/lock.h says what it promises. Not a store and not a clock: the
 * caller loads the record, says what time it is, and stores what is different afterwards. Pure: no I/O, no allocation,
 * no state of its own, so any thread may call it on a record of its own.
 *
 * Order of every call: end what is over (sweep), do what is asked, hand over if nobody holds. Handing over last is what
 * bounds a call's effect to one hold ended and one begun. Two requests that end nothing come after the hand-over: an
 * ACQUIRE that is refused, so that the newcomer finds the place that became free, and RENEW, so that its answer is
 * about the holder there is now.
 */

#include "model/lock.h"
#include "base/assert.h"
#include "base/seedbug.h"
#include <string.h>

/* a + b without overflow; `b` is a duration and not negative. */
static int64_t later(int64_t a, int64_t b)
{
        return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* The end of a lease. One that is not positive is none the API lets through; it counts as the shortest there is. */
static int64_t lease_end(struct snib__clock now, int64_t lease_ms)
{
        return later(now.lease_ms, lease_ms > 0 ? lease_ms : 1);
}

/* What is left of a lease that is not over. */
static int64_t left(const struct snib__seat *seat, struct snib__clock now)
{
        if (now.lease_ms < 0 && seat->expires_ms > INT64_MAX + now.lease_ms)
                return INT64_MAX;
        return seat->expires_ms - now.lease_ms;
}

__attribute__((weak)) int64_t snib__token_next(int64_t previous, int64_t wall_us)
{
        int64_t next = previous < INT64_MAX ? previous + 1 : previous;

        return next > wall_us ? next : wall_us;
}

static bool held(const struct snib__lock_record *r)
{
        return snib__id_set(&r->holder.id);
}

static bool holds(const struct snib__lock_record *r, const struct snib__id *id)
{
        return held(r) && snib__id_equal(&r->holder.id, id);
}

/* The index in the queue, r->queued if it is not there. */
static size_t find(const struct snib__lock_record *r, const struct snib__id *id)
{
        size_t i = 0;

        while (i < r->queued && !snib__id_equal(&r->queue[i].seat.id, id))
                i++;
        return i;
}

static void unqueue(struct snib__lock_record *r, size_t i, struct snib__lock_change *change)
{
        snib__assert(i < r->queued);
        memmove(&r->queue[i], &r->queue[i + 1], (r->queued - i - 1) * sizeof(r->queue[0]));
        r->queued--;
        change->queue = true;
}

/* Nobody holds from here on. */
static void vacate(struct snib__lock_record *r, struct snib__lock_change *change)
{
        memset(&r->holder, 0, sizeof(r->holder));
        change->holder = true;
}

/* The same, and the owner did not ask for it. */
static void evict(struct snib__lock_record *r, struct snib__lock_change *change)
{
        change->ended = r->holder.id;
        vacate(r, change);
}

/* A new hold, with a new token. */
static void install(struct snib__lock_record *r, const struct snib__id *id, const struct snib__who *who,
                    int64_t lease_ms, struct snib__clock now, struct snib__lock_change *change)
{
        snib__assert(!held(r));
        r->holder.id = *id;
        r->holder.who = *who;
        r->holder.since_ms = now.wall_us / 1000;
        r->holder.expires_ms = lease_end(now, lease_ms);
        if (!SNIB__BUG(token_not_raised) || r->token == 0)
                r->token = snib__token_next(r->token, now.wall_us);
        change->holder = true;
}

/* Ends what is over. */
static void sweep(struct snib__lock_record *r, struct snib__clock now, struct snib__lock_change *change)
{
        size_t kept = 0;

        for (size_t i = 0; i < r->queued; i++) {
                if (r->queue[i].seat.expires_ms <= now.lease_ms)
                        continue;
                if (kept != i)
                        r->queue[kept] = r->queue[i];
                kept++;
        }
        if (kept != r->queued) {
                r->queued = kept;
                change->queue = true;
        }
        if (held(r) && r->holder.expires_ms <= now.lease_ms)
                evict(r, change);
}

/* Nobody holds and somebody waits: the first one holds, for as long as it may take to confirm. */
static void hand_over(struct snib__lock_record *r, struct snib__clock now, struct snib__lock_change *change)
{
        if (held(r) || r->queued == 0)
                return;

        size_t chosen = SNIB__BUG(hand_over_skips_queue) ? r->queued - 1 : 0;
        struct snib__waiter w = r->queue[chosen];

        unqueue(r, chosen, change);
        install(r, &w.seat.id, &w.seat.who, w.lease_ms < SNIB__CLAIM_MS ? w.lease_ms : SNIB__CLAIM_MS, now, change);
        change->granted = w.seat.id;
}

/* Puts a waiter that is not queued at the end, if there is room. */
static void enqueue(struct snib__lock_record *r, const struct snib__op *op, struct snib__clock now,
                    struct snib__lock_change *change)
{
        if (r->queued >= SNIB__WAITERS_MAX || r->queued >= r->room)
                return;

        struct snib__waiter *w = &r->queue[r->queued++];

        memset(w, 0, sizeof(*w));
        w->seat.id = op->id;
        w->seat.who = op->who;
        w->seat.since_ms = now.wall_us / 1000;
        w->seat.expires_ms = later(now.lease_ms, SNIB__WAITER_LEASE_MS);
        w->lease_ms = op->lease_ms;
        change->queue = true;
}

/* The waiter is still there: its place is kept for another while. */
static void refresh(struct snib__waiter *w, const struct snib__op *op, struct snib__clock now,
                    struct snib__lock_change *change)
{
        int64_t expires_ms = later(now.lease_ms, SNIB__WAITER_LEASE_MS);

        if (w->seat.expires_ms == expires_ms && w->lease_ms == op->lease_ms)
                return;
        w->seat.expires_ms = expires_ms;
        w->lease_ms = op->lease_ms;
        change->queue = true;
}

/* The holder's lease starts again. */
static void extend(struct snib__lock_record *r, const struct snib__op *op, struct snib__clock now,
                   struct snib__lock_change *change)
{
        int64_t expires_ms = lease_end(now, op->lease_ms);

        if (r->holder.expires_ms == expires_ms)
                return;
        r->holder.expires_ms = expires_ms;
        change->holder = true;
}

/* Which token op brings along is not looked at, only whether: a client that finds another one in the reply knows that
 * its hold was not continuous. */
static enum snib__status acquire(struct snib__lock_record *r, const struct snib__op *op, struct snib__clock now,
                                 struct snib__lock_change *change)
{
        size_t place = find(r, &op->id);

        if (holds(r, &op->id)) {
                extend(r, op, now, change);
                return SNIB__GRANTED;
        }
        if (op->token > 0)
                return SNIB__GONE;
        if (!held(r) && place == 0) {
                if (r->queued)
                        unqueue(r, place, change);
                install(r, &op->id, &op->who, op->lease_ms, now, change);
                return SNIB__GRANTED;
        }
        if (place < r->queued)
                refresh(&r->queue[place], op, now, change);
        bool stands = place < r->queued && !SNIB__BUG(repeated_acquire_counted_twice);
        hand_over(r, now, change);
        if (!stands && op->enqueue)
                enqueue(r, op, now, change);
        return SNIB__BUSY;
}

static enum snib__status release(struct snib__lock_record *r, const struct snib__op *op,
                                 struct snib__lock_change *change)
{
        size_t place = find(r, &op->id);

        if (holds(r, &op->id) || (held(r) && SNIB__BUG(release_without_owner_check)))
                vacate(r, change);
        else if (place < r->queued)
                unqueue(r, place, change);
        else
                return SNIB__GONE;
        return SNIB__RELEASED;
}

static enum snib__status renew(struct snib__lock_record *r, const struct snib__op *op, struct snib__clock now,
                               struct snib__lock_change *change)
{
        hand_over(r, now, change);
        if (!holds(r, &op->id) && !(held(r) && SNIB__BUG(renewal_without_owner_check)))
                return SNIB__GONE;
        extend(r, op, now, change);
        return SNIB__RENEWED;
}

/* What there is now. */
static void describe(const struct snib__lock_record *r, struct snib__clock now, struct snib__reply *reply)
{
        reply->held = held(r);
        if (!reply->held)
                return;
        reply->holder = r->holder;
        reply->token = r->token;
        reply->left_ms = left(&r->holder, now);
}

static void place_of(const struct snib__lock_record *r, const struct snib__id *id, struct snib__reply *reply)
{
        size_t place = find(r, id);

        reply->waiters = (int64_t)r->queued;
        reply->position = place < r->queued ? (int64_t)place + 1 : 0;
}

void snib__lock_apply(struct snib__lock_record *record, const struct snib__op *op, struct snib__clock now,
                      struct snib__reply *ret_reply, struct snib__lock_change *ret_change)
{
        struct snib__lock_record *r = record;

        snib__assert(snib__id_set(&op->id) || op->verb == SNIB__QUERY || op->verb == SNIB__FORCE);
        snib__assert(r->queued <= r->room);
        memset(ret_reply, 0, sizeof(*ret_reply));
        memset(ret_change, 0, sizeof(*ret_change));
        ret_reply->left_ms = -1;

        sweep(r, now, ret_change);
        switch (op->verb) {
        case SNIB__ACQUIRE:
                ret_reply->status = acquire(r, op, now, ret_change);
                break;
        case SNIB__RELEASE:
                ret_reply->status = release(r, op, ret_change);
                break;
        case SNIB__RENEW:
                ret_reply->status = renew(r, op, now, ret_change);
                break;
        case SNIB__QUERY:
                ret_reply->status = SNIB__INFO;
                break;
        case SNIB__FORCE:
                ret_reply->status = SNIB__INFO;
                describe(r, now, ret_reply);
                if (held(r))
                        evict(r, ret_change);
                break;
        default:
                break; /* requests about other objects are not for a lock */
        }
        snib__assert(ret_reply->status != 0);
        hand_over(r, now, ret_change);
        /* FORCE told what there was; a release that succeeded is not about what others do now. */
        if (op->verb != SNIB__FORCE && ret_reply->status != SNIB__RELEASED)
                describe(r, now, ret_reply);
        place_of(r, &op->id, ret_reply);
        snib__assert(held(r) || r->queued == 0);
}

bool snib__lock_bury(struct snib__lock_record *record, const struct snib__id *id, struct snib__clock now,
                     struct snib__lock_change *ret_change)
{
        struct snib__lock_record *r = record;
        size_t place = find(r, id);
        bool stood = holds(r, id) || place < r->queued;

        memset(ret_change, 0, sizeof(*ret_change));
        if (place < r->queued)
                unqueue(r, place, ret_change);
        sweep(r, now, ret_change);
        if (holds(r, id))
                evict(r, ret_change);
        hand_over(r, now, ret_change);
        snib__assert(held(r) || r->queued == 0);
        return stood;
}

const char *snib__lock_check(const struct snib__lock_record *record)
{
        const struct snib__lock_record *r = record;

        if (r->token < 0)
                return "the token is not negative";
        if (held(r) && r->token == 0)
                return "a hold has a token";
        if (r->queued > r->room)
                return "the queue fits its room";
        if (!held(r) && r->queued)
                return "the queue is empty while the lock is free";
        for (size_t i = 0; i < r->queued; i++) {
                const struct snib__id *id = &r->queue[i].seat.id;

                if (!snib__id_set(id))
                        return "every waiter has an id";
                if (snib__id_equal(id, &r->holder.id))
                        return "the holder does not wait";
                for (size_t j = 0; j < i; j++)
                        if (snib__id_equal(id, &r->queue[j].seat.id))
                                return "nobody stands in the queue twice";
        }
        return NULL;
}
