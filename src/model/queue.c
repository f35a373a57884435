/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who waits: first come, first served, and observers, who stand in the queue without being in
 * anybody's way. Not who may sit (seats.c). Pure; any thread may call it on a record of its own.
 */

#include "base/assert.h"
#include "base/seedbug.h"
#include "model/internal.h"
#include <string.h>

void snib__queue_tell(struct snib__step *s, struct snib__tell tell)
{
        struct snib__change *c = s->change;
        const struct snib__tell *last = c->tells ? &c->tell[c->tells - 1] : NULL;

        /* The permits of one hold end one after the other. */
        if (c->tells == c->tell_room || (last && last->kind == tell.kind && snib__id_equal(&last->id, &tell.id)))
                return;
        c->tell[c->tells++] = tell;
}

size_t snib__queue_find(const struct snib__record *r, const struct snib__id *id)
{
        size_t i = 0;

        while (i < r->queued && !snib__id_equal(&r->queue[i].seat.id, id))
                i++;
        return i;
}

size_t snib__queue_ahead(const struct snib__record *r, size_t place)
{
        size_t n = 0;

        for (size_t i = 0; i < place; i++)
                n += !r->queue[i].observer;
        return n;
}

struct snib__waiter snib__queue_wish(const struct snib__step *s)
{
        const struct snib__op *op = s->op;
        struct snib__waiter w;

        memset(&w, 0, sizeof(w));
        w.seat.id = op->id;
        if (op->who)
                w.seat.who = *op->who;
        w.seat.since_ms = s->now.wall_us / 1000;
        w.seat.expires_ms = snib__later(s->now.lease_ms, SNIB__WAITER_LEASE_MS);
        w.kind = op->kind;
        w.lease_ms = op->lease_ms;
        w.n = op->n > 0 ? op->n : 1;
        w.number = op->number;
        w.observer = op->verb == SNIB__OBSERVE;
        w.seen = w.observer ? op->token : 0;
        return w;
}

void snib__queue_join(struct snib__step *s)
{
        struct snib__record *r = s->r;

        if (r->queued + r->unseen >= SNIB__WAITERS_MAX || r->queued >= r->queue_room)
                return;
        r->queue[r->queued++] = snib__queue_wish(s);
        s->change->queue = true;
}

void snib__queue_refresh(struct snib__step *s, size_t place)
{
        struct snib__waiter *w = &s->r->queue[place];
        int64_t expires_ms = snib__later(s->now.lease_ms, SNIB__WAITER_LEASE_MS);
        int64_t seen = w->observer ? s->op->token : 0;

        if (w->seat.expires_ms == expires_ms && w->lease_ms == s->op->lease_ms && w->seen == seen &&
            w->number == s->op->number)
                return;
        w->seat.expires_ms = expires_ms;
        w->number = s->op->number;
        w->lease_ms = s->op->lease_ms;
        w->seen = seen;
        s->change->queue = true;
}

void snib__queue_leave(struct snib__step *s, size_t place)
{
        struct snib__record *r = s->r;

        snib__assert(place < r->queued);
        memmove(&r->queue[place], &r->queue[place + 1], (r->queued - place - 1) * sizeof(r->queue[0]));
        r->queued--;
        s->change->queue = true;
}

/* Closes the gaps after a pass over the queue that kept the first `kept` so far and has looked at
 * all. */
static void shrink(struct snib__step *s, size_t kept)
{
        s->change->queue |= kept != s->r->queued;
        s->r->queued = kept;
}

static size_t keep(struct snib__record *r, size_t kept, size_t i)
{
        if (kept != i)
                r->queue[kept] = r->queue[i];
        return kept + 1;
}

void snib__queue_sweep(struct snib__step *s)
{
        struct snib__record *r = s->r;
        size_t kept = 0;

        for (size_t i = 0; i < r->queued; i++)
                if (r->queue[i].seat.expires_ms > s->now.lease_ms)
                        kept = keep(r, kept, i);
        shrink(s, kept);
}

/* It can go on without asking: then its lease must be all that it asked for from now on. */
static bool goes_on(const struct snib__waiter *w)
{
        return w->number && w->lease_ms > 0 && !snib__kind(w->kind)->momentary;
}

static void seat(struct snib__step *s, const struct snib__waiter *w)
{
        struct snib__tell tell = {.kind = SNIB__TELL_GRANTED, .id = w->seat.id};
        bool whole = goes_on(w) && !SNIB__BUG(direct_grant_lease_short);

        tell.token = snib__seat_take(s, w, whole);
        tell.number = goes_on(w) ? w->number : 0;
        snib__queue_tell(s, tell);
}

void snib__queue_hand_over(struct snib__step *s)
{
        struct snib__record *r = s->r;
        size_t first = SNIB__BUG(hand_over_skips_queue) && r->queued ? r->queued - 1 : 0;
        size_t kept = first;
        bool blocked = false;

        for (size_t i = first; i < r->queued; i++) {
                const struct snib__waiter *w = &r->queue[i];

                if (!w->observer && !blocked && snib__seat_may(r, w->kind, w->n, NULL)) {
                        seat(s, w);
                        blocked = SNIB__BUG(latch_wakes_one) && snib__family_of(w->kind) == SNIB__FAMILY_LATCH;
                } else {
                        blocked |= !w->observer;
                        kept = keep(r, kept, i);
                }
        }
        shrink(s, kept);
}

void snib__queue_notify(struct snib__step *s)
{
        struct snib__record *r = s->r;
        size_t kept = 0;

        for (size_t i = 0; i < r->queued; i++) {
                const struct snib__waiter *w = &r->queue[i];

                if (!w->observer || w->seen == snib__record_state(r, w->kind) || SNIB__BUG(observer_not_told))
                        kept = keep(r, kept, i);
                else
                        snib__queue_tell(s, (struct snib__tell){.kind = SNIB__TELL_GRANTED, .id = w->seat.id});
        }
        shrink(s, kept);
}
