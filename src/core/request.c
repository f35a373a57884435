/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The room of the request: the latest one of a hold, which is sent, answered or forgotten, and what
 * follows from its failures; and the hold's one timer, which with a request outstanding is its
 * time-out. Not what an answer means: that depends on the state (wait.c, held.c, release.c). Pure;
 * one thread at a time.
 *
 * Of a hold at most one request is outstanding, and the core counts those that are.
 */

#include "core/internal.h"
#include <string.h>

/* The hold's one timer: its next action, or the end of what its state lasts at most. */
static void rearm(struct snib__core *c, struct snib__hold *h)
{
        snib__ns due = h->wake_at;

        if (h->state == SNIB__HELD || h->state == SNIB__RELEASING || h->state == SNIB__LOST)
                due = snib__min(due, h->deadline);
        if (h->state == SNIB__IDLE)
                due = SNIB__NEVER;
        snib__timer_set(c, &h->timer, due);
}

void snib__hold_set(struct snib__core *c, struct snib__hold *h, enum snib__hold_state state)
{
        h->state = state;
        rearm(c, h);
}

void snib__hold_wake_at(struct snib__core *c, struct snib__hold *h, snib__ns when)
{
        h->wake_at = when;
        rearm(c, h);
}

static void set_outstanding(struct snib__core *c, struct snib__hold *h, bool value)
{
        int change = (int)value - (int)h->outstanding;

        c->outstanding += change;
        c->renewing += h->verb == SNIB__RENEW ? change : 0;
        h->outstanding = value;
        snib__assert(c->outstanding >= 0);
}

void snib__hold_unpostpone(struct snib__hold *h)
{
        if (!snib__tree_linked(&h->by_wait))
                snib__list_remove(&h->postponed);
}

void snib__hold_answered(struct snib__core *c, struct snib__hold *h)
{
        set_outstanding(c, h, false);
}

void snib__hold_submit(struct snib__core *c, struct snib__hold *h, enum snib__verb verb, snib__ns now)
{
        set_outstanding(c, h, false); /* nobody listens to an earlier answer */
        snib__hold_unpostpone(h);
        h->attempt++;
        h->verb = verb;
        h->sent_at = now;
        h->submit = true;
        set_outstanding(c, h, true);
        snib__hold_dirty(c, h);
        snib__hold_wake_at(c, h, snib__after(now, c->config.op_timeout));
}

void snib__hold_forget(struct snib__core *c, struct snib__hold *h)
{
        set_outstanding(c, h, false);
        h->submit = false;
}

void snib__hold_finish(struct snib__core *c, struct snib__hold *h)
{
        snib__assert(snib__list_empty(&h->calls));
        c->farewells -= h->farewell;
        h->farewell = false;
        snib__assert(atomic_load_explicit(&h->valid_until, memory_order_relaxed) == 0);
        snib__tree_remove(&c->by_owner, &h->by_owner);
        snib__tree_remove(&c->by_wait, &h->by_wait);
        snib__hold_forget(c, h);
        h->cookie = 0;
        h->wake_at = SNIB__NEVER;
        snib__list_remove(&h->all);
        snib__hold_set(c, h, SNIB__IDLE);
        snib__hold_dirty(c, h);
}

void snib__fault_set(struct snib__fault *f, const struct snib__reply *r)
{
        size_t n = r->error_text ? strnlen(r->error_text, sizeof(f->text) - 1) : 0;

        f->code = r->error;
        f->engine_code = r->engine_code;
        if (n)
                memcpy(f->text, r->error_text, n);
        f->text[n] = 0;
}

snib__ns snib__hold_backoff(struct snib__core *c, struct snib__hold *h, snib__ns most)
{
        h->failures += h->failures < UINT8_MAX;
        return snib__backoff(c, h->failures, most);
}

snib__ns snib__backoff(struct snib__core *c, int failures, snib__ns most)
{
        int doublings = failures < 1 ? 0 : failures > 20 ? 20 : failures - 1;
        snib__ns limit = snib__min(snib__max(most, SNIB__BACKOFF_MIN), SNIB__BACKOFF_MIN << doublings);

        return limit / 4 + (snib__ns)snib__prng_below(&c->prng, (uint64_t)(limit - limit / 4));
}

bool snib__reply_passing(const struct snib__reply *r)
{
        return r->error == SNIB_EUNKNOWN || r->error == SNIB_EUNREACHABLE || r->error == SNIB_ENOTREADY;
}

bool snib__hold_momentary(const struct snib__hold *h)
{
        return h->observe || snib__kind(h->kind)->momentary;
}

snib__ns snib__lease_trusted(snib__ns lease)
{
        if (SNIB__BUG(no_drift_margin))
                return lease;
        return lease - lease / 500 - 2 * SNIB__MS;
}
