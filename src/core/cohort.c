/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cohorts: waiters of one client for one lock. One of them asks the engine, the others wait
 * silently; and when the holder gives back, the next of them has the lock without the engine's
 * knowing. Not for locks that promise an order of their own, and not the end of the turn, which is
 * an ordinary release.
 *
 * What the engine knows is an id. A hold, or a place in its queue, belongs to an id and not to one
 * of our records, and nothing but the record's own requests names it. So a record without a request
 * under way may give its id, with everything that was ever asked under it, to another one: the two
 * are exchanged, and the engine cannot tell. Two such exchanges are all there is:
 *
 * - Hand-over: the waiter gets the holder's id and is the holder, with a new token and what is left
 *   of the lease; the former holder is the waiter then, and leaves as any waiter leaves.
 * - A waiter that asked, and leaves, gives its place to the first that waited silently. What it
 *   gets in exchange is an id that the engine never heard of. Where nobody waits silently its place
 *   is released, as ever.
 *
 * Tokens. The first of a cohort has the engine's token, number k after it that token + k, as many
 * as the engine says that come with a grant. With one there is no hand-over. They are below every
 * token that the engine gives later:
 *
 * - Where it counts (the model, Redis for fenced locks) it gives out blocks: the counter is past
 *   this one.
 * - A plain lock's token on Redis is the server's time in us, T. Whoever gets it later is let in
 *   after our release, which was sent after the hand-over, which was made at least k + 2 us after
 *   the answer to the acquire had come, by our clock. Clocks differ by less than 1 in 500 and k <
 *   16, so more than k + 1.9 us passed at the server, and its time, which is cut to us, shows at
 *   least T + k + 1. Who gets it without our release, after a loss, gets it a lease later, or by
 *   force: then two may believe in their holds anyhow, and whatever checks tokens refuses one of
 *   them.
 *
 * The lease counts from the request that the engine answered, for all of the cohort. Handed over is
 * only what is younger than SNIB__COHORT_TIME and an eighth of its lease, so nobody gets much less
 * than he asked for.
 *
 * The turn of others comes after so many holds or so long a time, whichever is first: with a
 * release, which wakes whoever waits elsewhere, and nothing of ours travels with it.
 */

#include "core/internal.h"

/* How long after the engine gave it a hold is handed over. */
#define SNIB__COHORT_TIME (5 * SNIB__MS)

static bool eligible(const struct snib__hold *h)
{
        return snib__kind(h->kind)->tokens > 1 && !h->observe && h->owner.bytes != h->known.id.text;
}

/* Somebody waits for it who will go on waiting. */
static bool patient(const struct snib__hold *h)
{
        snib__list_each (it, (struct snib__list *)&h->calls) {
                const struct snib__call *call = snib__container(it, struct snib__call, link);

                if (call->kind == SNIB__CALL_ACQUIRE && !call->once)
                        return true;
        }
        return false;
}

/* The one can have what the other asked for. */
static bool alike(const struct snib__hold *a, const struct snib__hold *b)
{
        return a->kind == b->kind && a->lease == b->lease && a->keep == b->keep && !a->max_hold && !b->max_hold;
}

const struct snib__hold *snib__cohort_speaker(const struct snib__core *c, const struct snib__hold *h)
{
        struct snib__hold *w = snib__wait_first((struct snib__core *)c, h->name);

        while (w && (!eligible(w) || w->known.silent))
                w = snib__wait_next(w);
        return w;
}

bool snib__cohort_covers(struct snib__core *c, const struct snib__hold *h)
{
        struct snib__hold *w = snib__wait_first(c, h->name);

        if (!eligible(h) || !patient(h))
                return false;
        while (w && (!eligible(w) || w->known.silent || !patient(w)))
                w = snib__wait_next(w);
        return w;
}

#define SWAP(type, a, b, part)         \
        do {                           \
                type t = (a)->part;    \
                (a)->part = (b)->part; \
                (b)->part = t;         \
        } while (0)

static void exchange_watches(struct snib__core *c, struct snib__hold *a, struct snib__hold *b)
{
        SWAP(struct snib__watching, a, b, known.watch);
        snib__hold_dirty(c, a);
        snib__hold_dirty(c, b);
}

/* Exchanges the ids, and what the engine may know and say of them. */
static void exchange(struct snib__core *c, struct snib__hold *a, struct snib__hold *b)
{
        snib__assert(!a->request.outstanding && !b->request.outstanding);
        SWAP(struct snib__standing, a, b, known);
        SWAP(struct snib__request, a, b, request);
        /* Requests are counted by record: an answer to an earlier one of either is never taken for
         * that of a later. */
        a->request.attempt = b->request.attempt = snib__max(a->request.attempt, b->request.attempt);
        snib__hold_wake_at(c, a, a->request.wake_at);
        snib__hold_wake_at(c, b, b->request.wake_at);
        snib__hold_dirty(c, a);
        snib__hold_dirty(c, b);
}

/* The first that waits silently, if nobody asks for it. */
static struct snib__hold *unspoken(struct snib__core *c, struct snib__name name)
{
        struct snib__hold *w = snib__wait_first(c, name);

        for (; w && !w->known.silent; w = snib__wait_next(w))
                if (eligible(w) && patient(w))
                        return NULL;
        return w;
}

void snib__cohort_left(struct snib__core *c, struct snib__hold *h, bool woken, snib__ns now)
{
        struct snib__hold *next = eligible(h) && !SNIB__BUG(cohort_silence) ? unspoken(c, h->name) : NULL;

        if (!next)
                return;
        if (h->state == SNIB__WAITING && alike(h, next)) {
                exchange(c, h, next);
                return;
        }
        if (h->known.watch.on && h->kind == next->kind)
                exchange_watches(c, h, next);
        snib__wait_poke(c, next, woken, now);
}

static bool may_hand_over(const struct snib__core *c, const struct snib__hold *h, snib__ns now)
{
        snib__ns age = now - h->given_at;
        int k = h->passed + 1;
        int block = SNIB__BUG(cohort_tokens_not_given) ? SNIB__TOKEN_BLOCK : c->config.token_block;

        if (SNIB__BUG(cohort_after_loss) && h->state == SNIB__LOST)
                return !h->request.outstanding;
        if (!eligible(h) || h->request.outstanding || h->request.in_doubt || h->refused || h->request.failures)
                return false;
        if (h->deadline - now < snib__lease_trusted(snib__held_lease(h)) / 2 || age < (k + 2) * 1000)
                return false;
        if (SNIB__BUG(cohort_unbounded))
                return true;
        return k < block && age < snib__min(SNIB__COHORT_TIME, snib__held_lease(h) / 8);
}

/* The first that could have it now. Whose question is under way is answered by the engine. */
static struct snib__hold *successor(struct snib__core *c, const struct snib__hold *h)
{
        struct snib__hold *w = snib__wait_first(c, h->name);

        while (w && (w->state != SNIB__WAITING || !eligible(w) || !alike(h, w)))
                w = snib__wait_next(w);
        return w;
}

bool snib__cohort_hand_over(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        struct snib__hold *next = may_hand_over(c, h, now) ? successor(c, h) : NULL;

        if (!next)
                return false;
        snib__calls_answer(c, h, SNIB__CALL_RELEASE, 1, NULL);
        exchange(c, h, next);
        snib__tree_remove(&c->by_wait, &next->by_wait);
        snib__held_take_over(c, next, h);
        snib__hold_unpostpone(h);
        snib__hold_set(c, h, SNIB__WAITING);
        snib__tree_add(&c->by_wait, &h->by_wait);
        snib__wait_leave(c, h, now);
        return true;
}
