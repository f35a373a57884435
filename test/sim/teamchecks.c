/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of multilocks (M1 to M8) and of the segments of striped locks (T1, T2), in words
 * of their own: from what the members' clients and servers have, not from what the machine thinks.
 * Names are those of doc/design/sim.md.
 *
 * Weakened where a member's own promise is (checks.c): a hold that ended by force, or because its
 * server lost its data or its clock stepped, excuses those who believe in it until its client hears
 * of it. Two majorities that share such a member are excused; any others are not.
 */

#include "core/stripe.h"
#include "fleet.h"
#include <snib/error.h>
#include <stdatomic.h>
#include <string.h>

static bool is_held(const struct sim_team *t)
{
        return t->busy && t->machine.phase == SNIB__MULTI_HELD;
}

static bool is_valid(struct sim_team *t)
{
        return is_held(t) && snib__multi_left(&t->machine, sim_team_now(t)) > 0;
}

/* The member's hold as its client has it; NULL: none counts. */
static const struct snib__hold *counted(const struct sim_team *t, size_t i)
{
        return atomic_load(&t->members[i].held);
}

static bool is_there(const struct sim_member *p)
{
        const struct sim_client *c = sim_member_client(p);

        return c->alive && c->incarnation == p->incarnation && p->owner->member == p;
}

/* A loss, or the end of the client, explains anything. */
static size_t certain(const struct sim_team *t)
{
        size_t n = 0;

        for (size_t i = 0; i < t->machine.count; i++)
                n += counted(t, i) && counted(t, i)->state == SNIB__HELD;
        return n;
}

static uint64_t counting(const struct sim_team *t)
{
        uint64_t bits = 0;

        for (size_t i = 0; i < t->machine.count; i++)
                bits |= counted(t, i) ? (uint64_t)1 << i : 0;
        return bits;
}

/* ---- M3: what the grant is worth ---- */

/* Until when a member counts, by the book: red trusts it a hundredth of its lease and 2 ms less
 * than the server has it.
 */
static snib__ns end_of(const struct sim_team *t, size_t i)
{
        const struct snib__hold *h = counted(t, i);

        if (!h || h->state != SNIB__HELD)
                return 0;
        if (!t->machine.red)
                return atomic_load(&h->valid_until);
        return atomic_load(&h->valid_until) - snib__lease_trusted(h->lease) + h->lease - h->lease / 100 - 2 * SNIB__MS;
}

static void check_validity(struct sim_team *t, snib__ns now)
{
        struct sim *w = sim_ground(t->fleet);
        snib__ns end = now + snib__multi_left(&t->machine, now);
        size_t enough = 0, needed = t->machine.red ? t->machine.count / 2 + 1 : t->machine.count;

        for (size_t i = 0; i < t->machine.count; i++)
                enough += end_of(t, i) >= end;
        if (enough < needed)
                sim_fail(w, SIM_UNSAFE, "M3", "client %d: team %d is valid for %lld us more, but only %d of %d are",
                         t->process, t->index, (long long)(end - now) / 1000, (int)enough, (int)needed);
}

static void check_held(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);
        snib__ns now = sim_team_now(t);
        bool lost = atomic_load(&t->machine.loss), valid = snib__multi_left(&t->machine, now) > 0;

        if (!lost && certain(t) < t->machine.needed && sim_team_running(t))
                sim_fail(w, SIM_UNSAFE, "M4", "client %d: team %d has lost what it held, and is not told", t->process,
                         t->index);
        if (valid && t->over && counting(t) & ~t->over)
                sim_fail(w, SIM_UNSAFE, "M4",
                         "client %d: what team %d held was over, and a late member makes it valid again", t->process,
                         t->index);
        if (!valid && !t->over)
                t->over = counting(t) | (uint64_t)1 << 63;
        if (valid)
                check_validity(t, now);
        if (t->told > 1)
                sim_fail(w, SIM_UNSAFE, "M4", "client %d: team %d is told of one loss twice", t->process, t->index);
}

/* ---- M5: tokens ---- */

/* By how much the clocks of two servers can differ by now, and the engines' milliseconds. */
static snib__ns clocks_apart(const struct sim_fleet *f)
{
        return 2 * f->options.ppm * (f->servers[0].now / 1000000) + 10 * SNIB__MS;
}

static bool clocks_are_right(const struct sim_fleet *f)
{
        for (int i = 0; i < f->options.servers; i++)
                if (f->servers[i].options.steps)
                        return false;
        return true;
}

static void check_token(struct sim_team *t)
{
        struct sim_fleet *f = t->fleet;
        struct sim *w = sim_ground(f);
        snib__ns begun = sim_world_time(&w->clients[t->process], t->machine.begun);
        int64_t largest = 0;

        for (size_t i = 0; i < t->machine.count; i++)
                if (counted(t, i) && counted(t, i)->token > largest)
                        largest = counted(t, i)->token;
        if (t->machine.token != largest)
                sim_fail(w, SIM_UNSAFE, "M5", "client %d: the token is %lld, the largest is %lld", t->process,
                         (long long)t->machine.token, (long long)largest);
        if (clocks_are_right(f) && begun - f->last_at > clocks_apart(f) && t->machine.token <= f->last_token)
                sim_fail(w, SIM_UNSAFE, "M5", "client %d: token %lld after %lld, %lld ms later", t->process,
                         (long long)t->machine.token, (long long)f->last_token,
                         (long long)((begun - f->last_at) / SNIB__MS));
        f->last_token = t->machine.token;
        f->last_at = w->now;
}

/* ---- M2, M6, M7: what an answer leaves ---- */

static void check_granted(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);

        if (certain(t) < t->machine.needed)
                sim_fail(w, SIM_UNSAFE, "M3", "client %d: team %d is granted with %d of %d members", t->process,
                         t->index, (int)certain(t), (int)t->machine.needed);
        if (t->machine.red)
                check_token(t);
}

/* Nothing is held or under way at any member. */
static void check_rest(struct sim_team *t, const char *invariant)
{
        for (size_t i = 0; i < t->machine.count; i++) {
                const struct sim_member *p = &t->member[i];

                if (is_there(p) && !sim_member_client(p)->closing &&
                    (p->owner->stake[p->side].depth || p->owner->calling))
                        sim_fail(p->server, SIM_UNSAFE, invariant, "client %d: member %d of team %d is left behind",
                                 t->process, (int)i, t->index);
        }
}

static void check_released(struct sim_team *t)
{
        size_t taken = 0;

        for (size_t i = 0; i < t->machine.count; i++) {
                const struct sim_log *log = t->member[i].log;

                /* What was lost by time runs out by time at the server too, a moment later; what
                 * was handed on within its client is another's. */
                taken += log && log->installed && !log->ended && !log->stale && !log->told && is_there(&t->member[i]) &&
                         log->passed == t->member[i].passed;
        }
        if (t->machine.result == 1 && taken > t->machine.count - t->machine.needed)
                sim_fail(sim_ground(t->fleet), SIM_UNSAFE, "M6",
                         "client %d: team %d is told that all is released, and %d members are held", t->process,
                         t->index, (int)taken);
}

static void check_refused(struct sim_team *t)
{
        if (t->machine.result == 0 && !t->machine.once && sim_team_now(t) < t->machine.deadline)
                sim_fail(sim_ground(t->fleet), SIM_UNSAFE, "M7", "client %d: team %d gives up before its time",
                         t->process, t->index);
}

void sim_check_team(struct sim_team *t)
{
        const char *broken = snib__multi_check(&t->machine);
        enum snib__multi_phase now = t->machine.phase, before = t->phase;

        if (broken)
                sim_fail(sim_ground(t->fleet), SIM_CRASHED, "core", "team %d: not so: %s", t->index, broken);
        if (now == SNIB__MULTI_HELD && before < SNIB__MULTI_HELD)
                check_granted(t);
        if (now == SNIB__MULTI_PAUSING || (now == SNIB__MULTI_OVER && before < SNIB__MULTI_HELD))
                check_rest(t, "M2");
        else if (now == SNIB__MULTI_OVER)
                check_rest(t, "M6");
        if (now == SNIB__MULTI_OVER && before < SNIB__MULTI_HELD)
                check_refused(t);
        if (t->machine.released && !t->released)
                check_released(t);
        t->released = t->machine.released;
        t->phase = now;
}

/* ---- M7, M8: in time ---- */

static void check_limit(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);
        bool waits = t->machine.phase == SNIB__MULTI_RELEASING ? !t->machine.released : !t->machine.answered;

        if (w->settled && waits && sim_team_running(t) && w->now - w->settled_at > 2 * w->options.lateness &&
            sim_team_now(t) > t->limit)
                sim_fail(w, SIM_STUCK, "M7", "client %d: the %s of team %d is not answered in time", t->process,
                         t->machine.answered ? "release" : "acquire", t->index);
        if (w->quiet && w->now - w->settled_at > 500 * SNIB__S)
                sim_fail(w, SIM_STUCK, "M8", "client %d: team %d does not get on, though nobody begins anything",
                         t->process, t->index);
}

static struct sim_team *team_at(struct sim_fleet *f, int i)
{
        return &f->team[i / f->options.teams][i % f->options.teams];
}

static int teams(const struct sim_fleet *f)
{
        return f->options.clients * f->options.teams;
}

/* The member that it is asking for while it holds others; NULL: it is not waiting. */
static const struct sim_member *wanted(const struct sim_team *t)
{
        if (!t->busy || t->machine.red || t->machine.phase != SNIB__MULTI_ASKING || t->machine.at == 0)
                return NULL;
        return &t->member[t->machine.order[t->machine.at]];
}

static const struct sim_member *same_member(const struct sim_team *t, const struct sim_member *p)
{
        for (size_t i = 0; t->busy && i < t->machine.count; i++)
                if (t->member[i].server == p->server && t->member[i].name == p->name)
                        return &t->member[i];
        return NULL;
}

/* Who has what it waits for. */
static struct sim_team *holder(struct sim_fleet *f, const struct sim_member *p)
{
        for (int i = 0; i < teams(f); i++) {
                const struct sim_member *theirs = same_member(team_at(f, i), p);

                if (theirs && theirs->team != p->team &&
                    theirs->team->members[theirs->number].state == SNIB__MEMBER_HELD)
                        return theirs->team;
        }
        return NULL;
}

/* In the one order nobody waits, over any number of others, for himself. */
static void check_circle(struct sim_fleet *f, struct sim_team *t)
{
        struct sim_team *other = t;
        bool foreign = t->foreign;

        for (int i = 0; i < teams(f) && other && wanted(other); i++) {
                other = holder(f, wanted(other));
                foreign |= other && other->foreign;
                if (other == t && !foreign)
                        sim_fail(sim_ground(f), SIM_UNSAFE, "M8", "client %d: team %d waits for itself", t->process,
                                 t->index);
        }
}

/* ---- M1, T1: who believes at the same time ---- */

static bool is_excused(const struct sim_member *p)
{
        return !p->log || p->log->stale;
}

static void check_pair(struct sim_team *a, struct sim_team *b)
{
        bool conflict = a->machine.red, excused = false;

        for (size_t i = 0; i < a->machine.count; i++) {
                const struct sim_member *mine = &a->member[i], *theirs = same_member(b, mine);

                if (!theirs || !counted(a, i) || !counted(b, (size_t)theirs->number) || (mine->side && theirs->side))
                        continue;
                if (is_excused(mine) || is_excused(theirs))
                        excused = true;
                else
                        conflict = true;
        }
        if (conflict && !(a->machine.red && excused))
                sim_fail(sim_ground(a->fleet), SIM_UNSAFE, "M1",
                         "team %d of client %d and team %d of client %d hold at the same time", a->index, a->process,
                         b->index, b->process);
}

/* Who has all segments is alone. */
static void check_segments(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);

        for (int i = 0; i < w->options.clients; i++) {
                struct sim_client *c = &w->clients[i];

                if (!c->alive)
                        continue;
                snib__list_each (it, &c->core.holds) {
                        const struct snib__hold *hold = snib__container(it, struct snib__hold, all);
                        const struct sim_hold *h = snib__container(hold, struct sim_hold, hold);
                        const struct sim_member *member = c->owners[h->owner].member;
                        bool stale = h->log->stale;

                        for (size_t k = 0; k < t->machine.count; k++)
                                stale |= t->member[k].name == h->name && is_excused(&t->member[k]);
                        if (atomic_load(&hold->valid_until) > sim_local(w, c) && !stale &&
                            (!member || member->team != t))
                                sim_fail(w, SIM_UNSAFE, "T1",
                                         "team %d of client %d has all segments, and #%d of client %d has %s", t->index,
                                         t->process, h->log->number, i, w->names[h->name]);
                }
        }
}

void sim_check_teams(struct sim_fleet *f)
{
        for (int i = 0; i < teams(f); i++) {
                struct sim_team *t = team_at(f, i);

                if (!t->busy)
                        continue;
                check_limit(t);
                if (is_held(t))
                        check_held(t);
                else if (wanted(t))
                        check_circle(f, t);
                if (!is_valid(t))
                        continue;
                if (f->options.fleet == SIM_STRIPED)
                        check_segments(t);
                for (int k = 0; k < i; k++)
                        if (is_valid(team_at(f, k)))
                                check_pair(t, team_at(f, k));
        }
}

/* ---- T2: segments ---- */

/* Each has a name of its own; and keys that differ only in the high halves of their bytes do not
 * all meet in a few. */
void sim_check_stripes(struct sim_fleet *f)
{
        struct sim *w = sim_ground(f);
        bool used[SIM_NAMES] = {false};

        for (int i = 0; i < w->options.names; i++)
                for (int k = 0; k < i; k++)
                        if (strcmp(w->names[i], w->names[k]) == 0)
                                sim_fail(w, SIM_UNSAFE, "T2", "segments %d and %d are both %s", k, i, w->names[i]);
        for (int i = 0; i < 256; i++) {
                const unsigned char key[8] = {(unsigned char)(i & 0xf0), (unsigned char)(i << 4 & 0xf0)};
                size_t at = snib__stripe_index(key, sizeof(key), (size_t)w->options.names);

                if (at < SIM_NAMES)
                        used[at] = true;
        }
        for (int i = 0; i < w->options.names; i++)
                if (!used[i])
                        sim_fail(w, SIM_UNSAFE, "T2", "of 256 keys none belongs to segment %d of %d", i,
                                 w->options.names);
}
