/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of a hold at the engine: by its owner, or in the background after a wait that was given
 * up or a hold that was lost. Not the counting of re-entries (core.c).
 *
 * The release names the hold's id, so repeating it, or its arriving late, can end nothing else. It
 * is repeated until the engine answered or everything that was granted to this id must have run
 * out, or cannot be told from others'. A repetition that finds nothing, after one whose fate is
 * unknown, means that the first one was executed.
 */

#include "core/internal.h"

/* How long what this id may have at the engine stays there without a release: permits of a
 * semaphore for ever, but for so long only does the engine know whose they are. */
static snib__ns lasts(const struct snib__hold *h)
{
        return snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE ? SNIB__DONE_MS * SNIB__MS : h->lease;
}

/* The request that ends it, or leaves it to its lease. */
static enum snib__verb last_verb(const struct snib__hold *h)
{
        return h->leaving && !SNIB__BUG(left_is_released) ? SNIB__RENEW : SNIB__RELEASE;
}

void snib__leave_begin(struct snib__core *c, struct snib__hold *h, snib__ns end, snib__ns now)
{
        h->leaving = true;
        h->leave_end = end;
        snib__release_begin(c, h, now);
}

void snib__release_begin(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        bool asked = h->request.outstanding && h->verb == SNIB__ACQUIRE;

        atomic_store_explicit(&h->valid_until, 0, memory_order_release);
        h->request.failures = 0;
        h->request.fault = 0;
        h->deadline = snib__after(now, lasts(h));
        if (h->state != SNIB__LOST)
                snib__tree_remove(&c->by_owner, &h->by_owner);
        snib__hold_set(c, h, h->state == SNIB__LOST ? SNIB__LOST : SNIB__RELEASING);
        /* An acquire under way may not be overtaken: it could take the lock after the release. */
        if (!asked)
                snib__hold_submit(c, h, SNIB__BUG(renew_after_release) ? SNIB__RENEW : last_verb(h), now);
}

void snib__lost_maybe_finish(struct snib__core *c, struct snib__hold *h)
{
        /* Paid back: the owner's next acquire is a new hold, also while this one's release is still
         * under way. */
        if (h->state == SNIB__LOST && h->depth == 0)
                snib__tree_remove(&c->by_owner, &h->by_owner);
        if (h->state == SNIB__LOST && h->depth == 0 && !h->request.outstanding && h->request.wake_at == SNIB__NEVER)
                snib__hold_finish(c, h);
}

static void end(struct snib__core *c, struct snib__hold *h, int result, const struct snib__fault *fault)
{
        snib__calls_answer(c, h, SNIB__CALL_RELEASE, result, fault);
        if (h->state == SNIB__RELEASING) {
                snib__hold_finish(c, h);
                return;
        }
        h->deadline = SNIB__NEVER;
        snib__hold_wake_at(c, h, SNIB__NEVER);
        snib__lost_maybe_finish(c, h);
}

static void retry(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        h->release_in_doubt |= r->error == SNIB_EUNKNOWN;
        snib__hold_failed(h, r);
        if (!snib__reply_passing(r))
                snib__calls_answer(c, h, SNIB__CALL_RELEASE, r->error, SNIB__HEARD);
        snib__hold_wake_at(c, h, snib__after(now, snib__request_backoff(c, &h->request, SNIB__BACKOFF_MAX)));
}

void snib__release_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        bool doubt = h->release_in_doubt && !SNIB__BUG(repeated_release_counted_twice);

        if (h->verb != last_verb(h))
                snib__hold_submit(c, h, last_verb(h), now); /* what had to be waited for is answered */
        else if (r->status == SNIB__RELEASED || (h->leaving && r->status == SNIB__RENEWED))
                end(c, h, 1, NULL);
        else if (r->status == SNIB__GONE)
                end(c, h, doubt && !h->leaving ? 1 : SNIB_ELOST, NULL);
        else if (r->status == SNIB__FAILED && r->error == SNIB_EKIND)
                end(c, h, SNIB_ELOST, NULL);
        else
                retry(c, h, r, now);
}

void snib__release_wake(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        static const struct snib__fault silent = {SNIB_EUNKNOWN, 0, "the engine did not confirm the release"};

        if (now >= h->deadline) {
                /* Whatever this id held has run out by now, or nobody knows that it was its. */
                snib__hold_forget(c, h);
                end(c, h, SNIB_EUNKNOWN, &silent);
        } else {
                snib__hold_submit(c, h, last_verb(h), now);
        }
}

void snib__release_call_over(struct snib__core *c, struct snib__call *call, snib__ns now)
{
        struct snib__hold *h = call->hold;
        bool doubt = h->release_in_doubt || h->request.outstanding || h->request.fault == 0;

        snib__call_answer(c, call, doubt ? SNIB_EUNKNOWN : h->request.fault, doubt ? &snib__late_fault : SNIB__HEARD);
}
