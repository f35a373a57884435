/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The room of the check: what is true of a core between any two events. Run after each of them by
 * the tests and the simulator, never in production. Pure; changes nothing.
 */

#include "core/internal.h"

static const char *check_hold(const struct snib__core *c, const struct snib__hold *h)
{
        bool held = atomic_load_explicit(&h->valid_until, memory_order_relaxed) != 0;
        bool waits = h->state == SNIB__ASKING || h->state == SNIB__WAITING;

        if (h->state == SNIB__HELD && snib__hold_momentary(h))
                return "what is momentary is never held";
        if (h->state != SNIB__HELD && !waits && snib__list_linked(&h->postponed))
                return "only what is held is renewed";
        if (held != (h->state == SNIB__HELD))
                return "valid exactly while held";
        if (waits != snib__tree_linked(&h->by_wait))
                return "among the waiters exactly while asking or waiting";
        if (h->state == SNIB__ASKING && !h->request.outstanding)
                return "asking has a question under way";
        if (h->state == SNIB__WAITING && h->request.outstanding)
                return "waiting has no question under way";
        if (waits && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return "somebody waits for every wait";
        if (h->state == SNIB__HELD && h->depth == 0 && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return "a hold that nobody has is released";
        if (h->known.silent &&
            (h->state != SNIB__WAITING || h->known.queued || h->request.in_doubt || h->known.watch.on))
                return "who waits silently has no place at the engine";
        if (h->known.silent && !snib__cohort_speaker(c, h) && !SNIB__BUG(cohort_silence))
                return "somebody asks for whoever waits silently";
        if ((waits || h->state == SNIB__HELD || h->request.outstanding) && !h->known.silent &&
            !snib__timer_armed(&h->timer))
                return "whatever goes on has a time limit";
        if (h->known.watch.on && !waits)
                return "only waiters watch";
        return NULL;
}

const char *snib__core_check(const struct snib__core *c, snib__ns now)
{
        int outstanding = 0, renewing = 0;

        snib__list_each (it, (struct snib__list *)&c->holds) {
                const struct snib__hold *h = snib__container(it, struct snib__hold, all);
                const char *broken = check_hold(c, h);

                if (broken)
                        return broken;
                outstanding += h->request.outstanding;
                renewing += h->request.outstanding && h->verb == SNIB__RENEW;
        }
        snib__list_each (it, (struct snib__list *)&c->asks)
                outstanding += snib__container(it, struct snib__ask, link)->request.outstanding;
        if (outstanding != c->outstanding)
                return "the count of outstanding requests is right";
        if (renewing != c->renewing)
                return "the count of renewals under way is right";
        if (outstanding == 0 && !snib__list_empty((struct snib__list *)&c->postponed))
                return "a renewal waits only for others";
        return NULL;
}
