/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known of an id belongs to the id: when the core gives a hold, or a place in a queue, from
 * one thread's record to another's, the log goes along. And the invariant of hand-overs within a
 * client (L6): so many in a row, and for so long after the server gave it, and to the first who can
 * have it. Names are those of doc/design/sim.md.
 */

#include "fleet.h"
#include <string.h>

/* core/cohort.c: SNIB__COHORT_TIME. */
#define COHORT_TIME (5 * SNIB__MS)

static bool waits(const struct sim_hold *h)
{
        return h->used && (h->hold.state == SNIB__WAITING || h->hold.state == SNIB__ASKING);
}

static void check_turn(struct sim *w, struct sim_client *c, const struct sim_hold *h)
{
        struct sim_log *log = h->log;
        snib__ns age = sim_local(w, c) - log->heard_at;

        if (++log->passed >= SNIB__TOKEN_BLOCK)
                sim_fail(w, SIM_UNSAFE, "L6", "client %d handed #%d on %d times", c->index, log->number, log->passed);
        else if (age > COHORT_TIME)
                sim_fail(w, SIM_UNSAFE, "L6", "client %d hands #%d on, which it got %lld us ago", c->index, log->number,
                         (long long)age / 1000);
}

/* Whom it passes over has another lock in mind, or its question is under way. */
static void check_first(struct sim *w, struct sim_client *c, const struct sim_hold *h)
{
        for (int i = 0; i < SIM_HOLDS; i++) {
                const struct sim_hold *o = &c->holds[i];

                if (o != h && o->used && o->name == h->name && o->hold.state == SNIB__WAITING && o->since < h->since &&
                    o->hold.kind == h->hold.kind && o->hold.lease == h->hold.lease && o->hold.keep == h->hold.keep &&
                    !o->hold.max_hold)
                        sim_fail(w, SIM_UNSAFE, "L6", "client %d hands #%d to one who came after #%d", c->index,
                                 h->log->number, o->log->number);
        }
}

/* What the former record of this id knew of the server, for one that waits in its place. */
static void inherit(struct sim *w, struct sim_hold *h, const struct sim_hold *from)
{
        h->open_since = from->open_since;
        h->open_unsaid = from->open_unsaid;
        sim_check_open(w, h, true);
}

/* A member of a multilock has what its thread has, until that is handed on. */
static void tell_member(const struct sim_owner *o)
{
        const struct sim_hold *h = o->stake[o->member->side].hold;

        if (!h || !h->used || h->handed_on)
                return;
        o->member->log = h->log;
        o->member->passed = h->log->passed;
}

void sim_cohort_follow(struct sim *w, struct sim_client *c)
{
        struct sim_hold before[SIM_HOLDS];
        bool moved[SIM_HOLDS];

        memcpy(before, c->holds, sizeof(before));
        for (int i = 0; i < SIM_HOLDS; i++) {
                struct sim_hold *h = &c->holds[i];

                moved[i] = h->used && sim_log_of(w, &h->hold.known.id) != h->log;
                if (moved[i])
                        h->log = sim_log_of(w, &h->hold.known.id);
        }
        for (int i = 0; i < SIM_HOLDS; i++)
                for (int k = 0; k < SIM_HOLDS; k++) {
                        struct sim_hold *h = &c->holds[i];

                        if (!moved[i] || !moved[k] || before[k].log != h->log)
                                continue;
                        h->log->owner = before[i].log->owner;
                        if (waits(h))
                                inherit(w, h, &before[k]);
                        if (h->hold.state != SNIB__HELD)
                                continue;
                        c->holds[k].handed_on = true;
                        check_turn(w, c, h);
                        check_first(w, c, h);
                }
        for (int i = 0; i < SIM_HOLDS; i++) {
                struct sim_hold *h = &c->holds[i];

                if (waits(h) && h->hold.known.watch.on && !h->watch_sent && !h->hold.known.watch.begin &&
                    h->watching_at == SNIB__NEVER)
                        h->watching_at = c->watching_at[h->name];
        }
        for (int i = 0; i < SIM_OWNERS_ALL; i++)
                if (c->owners[i].member)
                        tell_member(&c->owners[i]);
}
