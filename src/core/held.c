/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hold while it is held: re-entry, renewal, and the loss. Not the release (release.c).
 *
 * A re-entry asks the engine with the same id: still held, and the lease starts again, or a new
 * hold with a new token, which shows a loss that nobody had noticed. Renewal is tried every third
 * of the lease; after a failure again and again until the deadline, and not longer.
 *
 * Renewals come in small crowds: each hold has one of some points in the round, so that those which
 * began together are spread over half of it, and yet those that share a point leave together, which
 * engines make one request of.
 */

#include "core/internal.h"

/* A renewal of a fixed lease that nobody asked for: it must not lengthen the hold. At the engine it
 * starts the whole lease again: a shorter one, executed late, would cut the lease that a later
 * re-entry was granted. */
static bool is_check(const struct snib__hold *h)
{
        return h->verb == SNIB__RENEW && !h->keep && !snib__calls_want(h, SNIB__CALL_RENEW);
}

snib__ns snib__lease_given(const struct snib__hold *h, const struct snib__reply *r)
{
        if (r->lease_ms <= 0 || r->lease_ms >= h->lease / SNIB__MS || SNIB__BUG(given_lease_ignored))
                return h->lease;
        return r->lease_ms * SNIB__MS;
}

snib__ns snib__held_lease(const struct snib__hold *h)
{
        return h->known.given_ms ? h->known.given_ms * SNIB__MS : h->lease;
}

/* When to renew what was confirmed by the latest request: the last instant of the hold's own phase
 * that is not later than a third of the lease after it was sent, and so not earlier than a sixth;
 * from the second time on it is a third. */
static snib__ns renewal_at(const struct snib__core *c, const struct snib__hold *h)
{
        snib__ns lease = SNIB__BUG(renewed_by_the_asked_lease) ? h->lease : snib__held_lease(h);
        snib__ns period = snib__max(lease / 6, 1), latest = snib__after(h->request.sent_at, lease / 3);
        uint64_t group = h->cookie / (uint64_t)c->config.neighbours;
        snib__ns phases = c->config.phases,
                 point = (snib__ns)((uint32_t)(group * 2654435769U) * (uint64_t)phases >> 32);
        snib__ns phase = period / phases * point + period % phases * point / phases;

        return latest - (latest % period - phase + period) % period;
}

/* The lease was confirmed by this answer to the latest request. */
static void extend(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        snib__ns from = SNIB__BUG(deadline_from_reply) ? now : h->request.sent_at, lease = snib__lease_given(h, r);
        snib__ns until = snib__after(from, snib__lease_trusted(lease));

        h->known.given_ms = lease < h->lease ? (uint32_t)snib__min(lease / SNIB__MS, UINT32_MAX) : 0;
        h->request.failures = 0;
        h->request.fault = 0;
        h->refused = false;
        if (h->state == SNIB__HELD)
                until = is_check(h) ? h->deadline : snib__max(until, h->deadline);
        h->deadline = h->hold_end ? snib__min(until, h->hold_end) : until;
        /* Release: whoever sees the hold valid also sees the record that the acquire filled. */
        atomic_store_explicit(&h->valid_until, h->deadline, memory_order_release);
        snib__hold_wake_at(c, h, h->keep ? renewal_at(c, h) : SNIB__NEVER);
}

/* Those who joined are in: answers them and counts them. */
static void admit(struct snib__core *c, struct snib__hold *h)
{
        snib__list_each (it, &h->calls)
                h->depth += snib__container(it, struct snib__call, link)->kind == SNIB__CALL_ACQUIRE;
        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, 1, NULL);
}

/* What this owner waits to read it may read now. */
static void let_own_reader_in(struct snib__core *c, const struct snib__hold *writer, snib__ns now)
{
        struct snib__hold *h = snib__core_find(c, writer->name, writer->owner, SNIB_KIND_READ);

        if (h && (h->state == SNIB__ASKING || h->state == SNIB__WAITING))
                snib__wait_poke(c, h, false, now);
}

void snib__held_begin(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        h->token = r->token;
        h->passed = 0;
        h->given_at = now;
        h->again = false;
        h->request.in_doubt = false;
        h->known.queued = false;
        h->hold_end = h->max_hold > 0 ? snib__after(h->request.sent_at, h->max_hold) : 0;
        extend(c, h, r, now);
        snib__hold_set(c, h, SNIB__HELD);
        snib__wait_done(c, h, SNIB__GRANTED, now);
        admit(c, h);
        if (h->kind == SNIB_KIND_WRITE)
                let_own_reader_in(c, h, now);
}

void snib__held_take_over(struct snib__core *c, struct snib__hold *h, struct snib__hold *from)
{
        atomic_store_explicit(&from->valid_until, 0, memory_order_release);
        h->token = from->token + !SNIB__BUG(cohort_token_not_new);
        h->passed = from->passed + 1;
        h->given_at = from->given_at;
        h->deadline = from->deadline;
        if (SNIB__BUG(cohort_lease_begun_anew))
                h->deadline = snib__after(from->deadline, h->lease / 16);
        atomic_store_explicit(&h->valid_until, h->deadline, memory_order_release);
        snib__hold_set(c, h, SNIB__HELD);
        admit(c, h);
}

void snib__held_join(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (!h->request.outstanding)
                snib__hold_submit(c, h, SNIB__ACQUIRE, now);
}

/* Whether a renewal that is due can wait for the answers to others, and does so: until half of the
 * lease is over. */
static bool postpone(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        snib__ns lease = snib__held_lease(h), until = h->deadline - lease / 2;

        until -= until % snib__max(lease / 64, 1); /* at few instants: what is due together is one node (timer.c) */
        if (c->renewing < c->config.renewals || now >= until || !snib__list_empty(&h->calls))
                return false;
        snib__list_append(&c->postponed, &h->postponed);
        snib__hold_wake_at(c, h, until);
        return true;
}

/* Asks for what is wanted next, now. A re-entry whose fate is unknown may have begun a new hold
 * after an unnoticed loss; a renewal would find that one in order, only another acquire shows its
 * token. */
static void ask_next(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        bool acquire = h->request.in_doubt || snib__calls_want(h, SNIB__CALL_ACQUIRE);

        snib__hold_unpostpone(h);
        if (acquire || !postpone(c, h, now))
                snib__hold_submit(c, h, acquire ? SNIB__ACQUIRE : SNIB__RENEW, now);
}

void snib__held_resume(struct snib__core *c, snib__ns now)
{
        while (c->renewing < c->config.renewals && !snib__list_empty(&c->postponed))
                ask_next(c, snib__container(c->postponed.next, struct snib__hold, postponed), now);
}

void snib__held_check(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (h->state == SNIB__HELD && !h->request.outstanding)
                ask_next(c, h, now);
}

void snib__held_idle(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (h->depth == 0 && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                snib__release_begin(c, h, now);
}

/* What is wrong with it while it is held: a code, or 0. */
static int trouble_of(const struct snib__hold *h)
{
        return h->request.fault < 0 || !h->request.outstanding ? h->request.fault : SNIB_EUNKNOWN;
}

int snib__core_trouble(const struct snib__core *c, const struct snib__hold *h, struct snib__fault *ret_fault,
                       snib__ns *ret_since)
{
        int code = h->state == SNIB__HELD ? trouble_of(h) : h->state == SNIB__LOST ? (int)h->lost_by : 0;
        bool silent = h->state == SNIB__HELD && code && h->request.fault == 0;

        *ret_fault = (struct snib__fault){.code = code};
        *ret_since = silent ? h->request.sent_at : c->downs ? c->down_since : SNIB__NEVER;
        if (code && !silent && c->trouble.code == code)
                *ret_fault = c->trouble;
        return code;
}

void snib__held_lose(struct snib__core *c, struct snib__hold *h, int reason, snib__ns now)
{
        /* Of several permits some may be left. */
        bool gone = (reason == SNIB_LOSS_TAKEN || reason == SNIB_LOSS_GONE) && h->n <= 1;

        atomic_store_explicit(&h->valid_until, 0, memory_order_release);
        h->loss = reason;
        h->lost_by = trouble_of(h);
        snib__hold_unpostpone(h);
        if (h->depth > 0 && !SNIB__BUG(loss_not_told)) {
                h->lost_pending = true;
                c->losses++;
                snib__hold_dirty(c, h);
        }
        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, SNIB_ELOST, NULL);
        snib__calls_answer(c, h, SNIB__CALL_RENEW, SNIB_ELOST, NULL);
        h->deadline = SNIB__NEVER;
        if (!h->request.outstanding)
                h->request.wake_at = SNIB__NEVER;
        snib__hold_set(c, h, SNIB__LOST);
        if (!gone || h->request.in_doubt)
                snib__release_begin(c, h, now);
        snib__lost_maybe_finish(c, h);
}

static int reason_at_deadline(const struct snib__hold *h)
{
        if (h->deadline == h->hold_end)
                return SNIB_LOSS_MAX_HOLD;
        if (!h->keep)
                return SNIB_LOSS_EXPIRED;
        if (h->refused)
                return SNIB_LOSS_REFUSED;
        return h->request.outstanding || h->request.fault < 0 ? SNIB_LOSS_UNREACHABLE : SNIB_LOSS_EXPIRED;
}

void snib__held_wake(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (now >= h->deadline)
                snib__held_lose(c, h, reason_at_deadline(h), now);
        else
                ask_next(c, h, now);
}

static void answer_once(struct snib__core *c, struct snib__hold *h, int code)
{
        for (struct snib__list *it = h->calls.next, *next; it != &h->calls; it = next) {
                struct snib__call *call = snib__container(it, struct snib__call, link);

                next = it->next;
                if (call->kind == SNIB__CALL_RENEW || call->once)
                        snib__call_answer(c, call, code, SNIB__HEARD);
        }
}

static void failed(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        snib__hold_failed(h, r);
        snib__fault_set(&c->trouble, r);
        h->request.in_doubt |= h->verb == SNIB__ACQUIRE && r->error == SNIB_EUNKNOWN;
        if (!snib__reply_passing(r)) {
                h->refused = true;
                snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, r->error, SNIB__HEARD);
        }
        answer_once(c, h, r->error);
        snib__hold_wake_at(
            c, h,
            snib__after(now,
                        snib__request_backoff(c, &h->request, snib__min(SNIB__BACKOFF_MAX, snib__held_lease(h) / 8))));
        snib__held_idle(c, h, now);
}

static void confirmed(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        if (r->token != 0 && r->token != h->token - h->passed && !SNIB__BUG(token_not_compared_on_reentry)) {
                h->request.in_doubt = true; /* our id holds it, but not without a gap: give that new hold back */
                snib__held_lose(c, h, SNIB_LOSS_GONE, now);
                return;
        }
        extend(c, h, r, now);
        h->request.in_doubt &= r->status != SNIB__GRANTED;
        if (r->status == SNIB__GRANTED)
                admit(c, h);
        else
                snib__calls_answer(c, h, SNIB__CALL_RENEW, 1, NULL);
        if (!snib__list_empty(&h->calls))
                ask_next(c, h, now);
        else
                snib__held_idle(c, h, now);
}

void snib__held_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        if (r->status == SNIB__GRANTED || r->status == SNIB__RENEWED)
                confirmed(c, h, r, now);
        else if (r->status == SNIB__BUSY)
                snib__held_lose(c, h, SNIB_LOSS_TAKEN, now);
        else if (r->status == SNIB__GONE)
                snib__held_lose(c, h, r->held ? SNIB_LOSS_TAKEN : SNIB_LOSS_GONE, now);
        else if (r->status == SNIB__FAILED && r->error == SNIB_EKIND)
                snib__held_lose(c, h, SNIB_LOSS_GONE, now);
        else
                failed(c, h, r, now);
}
