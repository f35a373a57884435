/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The room of the request: what a hold or an ask sends, and sends again, until its fate is known;
 * answered, forgotten, in doubt; how long to wait after a failure. And a hold's one timer, which
 * with a request outstanding is its time-out. Not what an answer means: that depends on the state
 * (wait.c, held.c, release.c, ask.c). Pure; one thread at a time.
 *
 * Of each at most one request is outstanding, and the core counts those that are.
 */

#include "core/internal.h"
#include <string.h>

/* The hold's one timer: its next action, or the end of what its state lasts at most. */
static void rearm(struct snib__core *c, struct snib__hold *h)
{
        snib__ns due = h->request.wake_at;

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
        h->request.wake_at = when;
        rearm(c, h);
}

void snib__request_send(struct snib__core *c, struct snib__request *r, snib__ns now)
{
        snib__assert(!r->outstanding);
        c->outstanding++;
        r->outstanding = true;
        r->submit = true;
        r->attempt++;
        r->sent_at = now;
}

bool snib__request_end(struct snib__core *c, struct snib__request *r)
{
        bool ended = r->outstanding;

        c->outstanding -= ended;
        r->outstanding = false;
        snib__assert(c->outstanding >= 0);
        return ended;
}

void snib__request_doubt(struct snib__request *r)
{
        if (!r->in_doubt)
                r->doubt_since = r->sent_at;
        r->in_doubt = r->stray = true;
}

bool snib__request_too_old(const struct snib__request *r, snib__ns now)
{
        return r->in_doubt && now - r->doubt_since > SNIB__DOUBT_MAX;
}

static snib__ns backoff(struct snib__core *c, int failures, snib__ns most)
{
        int doublings = failures < 1 ? 0 : failures > 20 ? 20 : failures - 1;
        snib__ns limit = snib__min(snib__max(most, SNIB__BACKOFF_MIN), SNIB__BACKOFF_MIN << doublings);

        return limit / 4 + (snib__ns)snib__prng_below(&c->prng, (uint64_t)(limit - limit / 4));
}

snib__ns snib__request_backoff(struct snib__core *c, struct snib__request *r, snib__ns most)
{
        r->failures += r->failures < UINT8_MAX;
        return backoff(c, r->failures, most);
}

void snib__hold_unpostpone(struct snib__hold *h)
{
        if (!snib__tree_linked(&h->by_wait))
                snib__list_remove(&h->postponed);
}

void snib__hold_answered(struct snib__core *c, struct snib__hold *h)
{
        if (snib__request_end(c, &h->request) && h->verb == SNIB__RENEW)
                c->renewing--;
}

void snib__hold_submit(struct snib__core *c, struct snib__hold *h, enum snib__verb verb, snib__ns now)
{
        snib__hold_answered(c, h); /* nobody listens to an earlier answer */
        snib__hold_unpostpone(h);
        h->verb = verb;
        c->renewing += verb == SNIB__RENEW;
        snib__request_send(c, &h->request, now);
        snib__hold_dirty(c, h);
        snib__hold_wake_at(c, h, snib__after(now, c->config.op_timeout));
}

void snib__hold_forget(struct snib__core *c, struct snib__hold *h)
{
        snib__hold_answered(c, h);
        h->request.submit = false;
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
        h->request.wake_at = SNIB__NEVER;
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

#define LATE "the engine did not answer in time"
const struct snib__reply snib__late = {.status = SNIB__FAILED, .error = SNIB_EUNKNOWN, .error_text = LATE};
const struct snib__fault snib__late_fault = {SNIB_EUNKNOWN, 0, LATE};

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
