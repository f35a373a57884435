/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The room of the check: what is true of a core between any two events. Run after each of them by
 * the tests and the simulator, never in production. Pure; changes nothing.
 */

#include "core/internal.h"

#define IN(state) (1U << SNIB__##state)
#define ANY (~0U)
#define WAITS (IN(ASKING) | IN(WAITING))
#define ENDS (IN(LOST) | IN(RELEASING))

/* The bits of a hold; what each means stands at its declaration (core.h). In the states of the
 * first column it may be set, in all others it must not be; in those of the second it must be set,
 * in all others it may be unset; and where it is set, the last column is true. */
#define BITS(X)                                                                      \
        /* bit, may be set in, must be set in, needs */                              \
        X(request.outstanding, ~IN(WAITING), IN(ASKING) | IN(CANCELLING), true)      \
        X(request.submit, ~IN(WAITING), 0, h->request.outstanding)                   \
        X(request.in_doubt, ANY, 0, !h->known.silent)                                \
        X(request.stray, ANY, 0, true)                                               \
        X(known.queued, WAITS | IN(CANCELLING) | IN(RELEASING), 0, !h->known.silent) \
        X(known.woken, WAITS, 0, !h->known.silent)                                   \
        X(known.silent, IN(WAITING), 0, true)                                        \
        X(known.watch.on, WAITS, 0, !h->known.silent)                                \
        X(known.watch.begin, WAITS, 0, h->known.watch.on)                            \
        X(known.watch.end, ANY, 0, !h->known.watch.on)                               \
        X(known.watch.asked, ANY, 0, true)                                           \
        X(again, IN(ASKING) | IN(CANCELLING) | IN(RELEASING), 0, true)               \
        X(lost_pending, IN(LOST), 0, true)                                           \
        X(refused, IN(HELD) | ENDS, 0, true)                                         \
        X(release_in_doubt, ENDS, 0, true)                                           \
        X(leaving, IN(RELEASING), 0, true)                                           \
        X(farewell, ENDS, 0, true)

static const char *check_bits(const struct snib__hold *h)
{
        unsigned state = 1U << h->state;

#define CHECK(bit, may, must, needs)                                         \
        if (h->bit && !(state & (may)))                                      \
                return #bit " is set in a state that has no use for it";     \
        if (!h->bit && (state & (must)))                                     \
                return #bit " is not set in a state that cannot be without"; \
        if (h->bit && !(needs))                                              \
                return #bit " needs: " #needs;
        BITS(CHECK)
#undef CHECK
        return NULL;
}

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
        if (waits && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return "somebody waits for every wait";
        if (h->state == SNIB__HELD && h->depth == 0 && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return "a hold that nobody has is released";
        if (h->known.silent && !snib__cohort_speaker(c, h) && !SNIB__BUG(cohort_silence))
                return "somebody asks for whoever waits silently";
        if ((waits || h->state == SNIB__HELD || h->request.outstanding) && !h->known.silent &&
            !snib__timer_armed(&h->timer))
                return "whatever goes on has a time limit";
        return check_bits(h);
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
