/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The machine of a multilock: see multi.h. It looks at what its members have been answered, decides
 * their next calls, and says when to look again. It waits for nothing and calls nobody. A member
 * has at most one effect that was not pulled.
 */

#include "core/multi.h"
#include "base/assert.h"
#include "base/seedbug.h"
#include <snib/error.h>
#include <string.h>

/* A member that others are held for is waited for in slices of about this long for each member:
 * somebody may hold it who waits for one of ours, because he takes them in an order of his own.
 * Slices are drawn from a wide range, so that one may outlast several others: with members that
 * queue, those who got one first stand before those who need it second. What is held must not end
 * by itself meanwhile: its end is not drawn, and those who wait for each other would lose and take
 * their members in step for ever. */
#define SLICE (1500 * SNIB__MS)
/* Pauses between rounds grow up to this; each is drawn anew. */
#define PAUSE_MIN (8 * SNIB__MS)
#define PAUSE_MAX (256 * SNIB__MS)
/* A red round whose time is up waits so much longer for members to say what became of them. */
#define GRACE (50 * SNIB__MS)
/* Red: who was granted too few holds what others may lack, who hold what he lacks. After about this
 * long, more in each round, he gives it back. */
#define SPLIT (4 * SNIB__MS)
/* What a failed round holds is given back; so long the answer waits for the engines'
 * confirmation. */
#define UNDO (200 * SNIB__MS)

/* ---- what any thread may ask ---- */

/* Redlock's allowance for clocks that run at different rates, and for the engines' milliseconds.
 * Core allows for less: there it is one clock against one. */
static snib__ns drift(snib__ns lease)
{
        return lease / 100 + 2 * SNIB__MS;
}

static snib__ns trusted_until(const struct snib__multi *m, const struct snib__multi_member *p,
                              const struct snib__hold *hold)
{
        snib__ns until = atomic_load_explicit(&hold->valid_until, memory_order_acquire);

        if (m->red && !SNIB__BUG(red_without_drift))
                until -= drift(p->lease) - (p->lease - snib__lease_trusted(p->lease));
        return until;
}

snib__ns snib__multi_member_left(const struct snib__multi *m, size_t member, snib__ns now)
{
        const struct snib__multi_member *p = &m->members[member];
        const struct snib__hold *hold = atomic_load_explicit(&p->held, memory_order_acquire);

        return hold && !atomic_load(&p->loss) ? trusted_until(m, p, hold) - now : 0;
}

/* The least of those that are needed: the `needed`-th largest. */
snib__ns snib__multi_left(const struct snib__multi *m, snib__ns now)
{
        snib__ns left[SNIB_MULTILOCK_MAX];
        size_t n = 0;

        if (!atomic_load(&m->granted) || atomic_load(&m->loss))
                return 0;
        for (size_t i = 0; i < m->count; i++) {
                snib__ns one = snib__multi_member_left(m, i, now);
                size_t k = n++;

                for (; k > 0 && left[k - 1] < one; k--)
                        left[k] = left[k - 1];
                left[k] = one;
        }
        return snib__max(left[m->needed - 1], 0);
}

/* So many members were lost that the whole is. True: it was not before. */
static bool check_loss(struct snib__multi *m, int reason)
{
        size_t live = 0, needed = SNIB__BUG(red_lost_with_the_last) ? 1 : m->needed;
        int none = SNIB_LOSS_NONE;

        if (!atomic_load(&m->granted))
                return false;
        for (size_t i = 0; i < m->count; i++)
                live += atomic_load(&m->members[i].held) && !atomic_load(&m->members[i].loss);
        return live < needed && atomic_compare_exchange_strong(&m->loss, &none, reason);
}

bool snib__multi_lost(struct snib__multi *m, size_t member, int reason, bool gone)
{
        atomic_store(&m->members[member].loss, reason);
        if (gone)
                atomic_store(&m->members[member].held, NULL);
        return check_loss(m, reason);
}

void snib__multi_closed(struct snib__multi *m, size_t member)
{
        atomic_store(&m->members[member].held, NULL);
        atomic_store(&m->members[member].closed, true);
}

bool snib__multi_cancel(struct snib__multi *m)
{
        int open = SNIB__MULTI_OPEN;

        return atomic_compare_exchange_strong(&m->fate, &open, SNIB__MULTI_ENDED);
}

static bool is_cancelled(const struct snib__multi *m)
{
        return atomic_load(&m->fate) == SNIB__MULTI_ENDED;
}

/* ---- effects ---- */

static int blame(struct snib__multi *m, size_t member, enum snib__multi_why why, int code)
{
        m->blame = (struct snib__multi_effect){.kind = SNIB__MULTI_BLAME, .member = member, .why = why, .code = code};
        return code;
}

static void want(struct snib__multi *m, size_t member, struct snib__multi_effect effect)
{
        snib__assert(m->members[member].effect.kind == SNIB__MULTI_NOTHING);
        effect.member = member;
        m->members[member].effect = effect;
}

bool snib__multi_next(struct snib__multi *m, struct snib__multi_effect *ret)
{
        struct snib__multi_effect *e = &m->blame;

        for (size_t i = 0; i < m->count && !e->kind; i++)
                e = &m->members[i].effect;
        *ret = *e;
        e->kind = SNIB__MULTI_NOTHING;
        return ret->kind != SNIB__MULTI_NOTHING;
}

static void ask(struct snib__multi *m, size_t member, bool once, snib__ns wait)
{
        struct snib__multi_member *p = &m->members[member];

        atomic_store(&p->loss, SNIB_LOSS_NONE);
        p->cancelled = p->hurried = false;
        p->said = 0;
        p->state = SNIB__MEMBER_ASKING;
        want(m, member, (struct snib__multi_effect){.kind = SNIB__MULTI_ASK, .once = once, .wait = wait});
}

static void give_back(struct snib__multi *m, size_t member, snib__ns patience)
{
        struct snib__multi_member *p = &m->members[member];

        atomic_store(&p->held, NULL);
        p->state = SNIB__MEMBER_RELEASING;
        want(m, member, (struct snib__multi_effect){.kind = SNIB__MULTI_RELEASE, .wait = patience});
}

/* It may grant yet. */
static bool is_asked(const struct snib__multi_member *p)
{
        return p->state == SNIB__MEMBER_ASKING && !atomic_load(&p->closed);
}

/* What was asked for is wanted no more. True: there was something to be done. */
static bool cancel(struct snib__multi *m, size_t member)
{
        struct snib__multi_member *p = &m->members[member];

        if (!is_asked(p) || p->cancelled)
                return false;
        p->cancelled = true;
        want(m, member, (struct snib__multi_effect){.kind = SNIB__MULTI_CANCEL});
        return true;
}

/* The same of what is held. */
static bool end(struct snib__multi *m, size_t member, snib__ns patience)
{
        bool forget =
            member == m->order[0] && ((SNIB__BUG(multi_rollback_forgets_one) && m->phase == SNIB__MULTI_UNDOING) ||
                                      (SNIB__BUG(multi_release_forgets_one) && m->phase == SNIB__MULTI_RELEASING));

        if (m->members[member].state != SNIB__MEMBER_HELD)
                return false;
        if (!forget) {
                give_back(m, member, patience);
        } else {
                atomic_store(&m->members[member].held, NULL);
                m->members[member].state = SNIB__MEMBER_IDLE;
        }
        return true;
}

void snib__multi_answer(struct snib__multi *m, size_t member, int result, struct snib__hold *hold, int64_t token)
{
        struct snib__multi_member *p = &m->members[member];

        snib__assert(p->state == SNIB__MEMBER_ASKING || p->state == SNIB__MEMBER_RELEASING);
        p->said = p->cancelled && result == SNIB_ECANCELLED ? 0 : result;
        /* One that stops waiting may be granted on the way out: that is released by its id. */
        p->cancelled |= p->state == SNIB__MEMBER_ASKING && m->patient && p->said == 0;
        if (p->state == SNIB__MEMBER_ASKING && p->said == 1) {
                p->state = SNIB__MEMBER_HELD;
                p->hold = hold;
                p->token = token;
        } else {
                p->state = SNIB__MEMBER_IDLE;
        }
}

/* ---- rounds ---- */

static bool all_idle(const struct snib__multi *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->members[i].state != SNIB__MEMBER_IDLE)
                        return false;
        return true;
}

static snib__ns jitter(struct snib__multi *m, snib__ns below)
{
        return (snib__ns)snib__prng_below(&m->prng, (uint64_t)below);
}

/* An eighth of it to two and an eighth. */
static snib__ns slice_of(const struct snib__multi *m)
{
        snib__ns slice = SLICE * (snib__ns)m->count;

        for (size_t i = 0; i < m->at; i++)
                slice = snib__min(slice, m->members[m->order[i]].lasts / 3);
        return slice;
}

static void ask_in_order(struct snib__multi *m, snib__ns now)
{
        snib__ns wait = m->deadline == SNIB__NEVER ? SNIB__NEVER : snib__max(m->deadline - now, 0);
        snib__ns slice = slice_of(m);

        if (m->at > 0 && !SNIB__BUG(multi_without_slices)) /* who holds nothing stands in nobody's way */
                wait = snib__min(wait, slice / 8 + jitter(m, 2 * slice));
        ask(m, m->order[m->at], m->once, wait);
}

/* All at once, and each as long as there is time. */
static void ask_all(struct snib__multi *m, snib__ns now)
{
        snib__ns wait = m->deadline == SNIB__NEVER ? SNIB__NEVER : snib__max(m->deadline - now, 0);

        m->patient = !m->once && wait > 0;
        m->end = m->patient ? snib__after(m->deadline, snib__min(GRACE, m->node_timeout))
                            : snib__after(now, m->node_timeout);
        m->due = m->end;
        m->votes = 0;
        m->split = SNIB__NEVER;
        m->ending = false;
        for (size_t i = 0; i < m->count; i++)
                ask(m, i, !m->patient, wait);
}

static void begin_round(struct snib__multi *m, snib__ns now)
{
        m->phase = SNIB__MULTI_ASKING;
        m->begun = now;
        m->round++;
        m->at = 0;
        m->again = false;
        m->due = SNIB__NEVER;
        if (m->red)
                ask_all(m, now);
        else
                ask_in_order(m, now);
}

/* The round has failed. `again`: unless time is up, there is another. */
static void undo(struct snib__multi *m, int result, bool again)
{
        m->phase = SNIB__MULTI_UNDOING;
        m->result = result;
        m->again = again;
        m->due = SNIB__NEVER;
}

static int cancelled(struct snib__multi *m)
{
        return blame(m, m->count, SNIB__MULTI_CANCELLED, SNIB_ECANCELLED);
}

/* The acquire is answered, and can be cancelled no more. False: it was, and members are held. */
static bool answer(struct snib__multi *m, int result)
{
        int open = SNIB__MULTI_OPEN;
        bool in_time = atomic_compare_exchange_strong(&m->fate, &open, SNIB__MULTI_ANSWERED);

        if (!in_time && result == 1)
                return false;
        m->result = !in_time && result == 0 ? cancelled(m) : result;
        m->answered = true;
        m->due = SNIB__NEVER;
        m->phase = result == 1 ? SNIB__MULTI_HELD : SNIB__MULTI_OVER;
        return true;
}

static bool is_vote(const struct snib__multi *m, const struct snib__multi_member *p, snib__ns now)
{
        if (p->state != SNIB__MEMBER_HELD || atomic_load(&p->loss) || atomic_load(&p->closed))
                return false;
        return !m->red || trusted_until(m, p, p->hold) > now;
}

static void granted(struct snib__multi *m, snib__ns now)
{
        int reason = SNIB_LOSS_NONE;

        m->token = 0;
        for (size_t i = 0; i < m->count; i++) {
                struct snib__multi_member *p = &m->members[i];

                if (is_vote(m, p, now)) {
                        atomic_store_explicit(&p->held, p->hold, memory_order_release);
                        if (m->red && p->token > m->token && !(m->token && SNIB__BUG(red_token_of_the_first)))
                                m->token = p->token;
                } else if (is_asked(p)) {
                        /* It may still come: one that the majority can do without. */
                        want(m, i, (struct snib__multi_effect){.kind = SNIB__MULTI_LET_GO});
                }
        }
        if (!answer(m, 1)) {
                undo(m, cancelled(m), false);
                return;
        }
        atomic_store(&m->granted, true);
        for (size_t i = 0; i < m->count && !reason; i++)
                reason = atomic_load(&m->members[i].loss);
        if (reason)
                (void)check_loss(m, reason);
}

/* One of those held was lost meanwhile. */
static bool undo_lost(struct snib__multi *m)
{
        for (size_t i = 0; i < m->count; i++) {
                int loss = atomic_load(&m->members[i].loss);

                if (m->members[i].state != SNIB__MEMBER_HELD || !loss || SNIB__BUG(multi_lost_member_counts))
                        continue;
                if (loss == SNIB_LOSS_THREAD_EXIT)
                        undo(m, blame(m, i, SNIB__MULTI_THREAD_ENDED, SNIB_ELOST), false);
                else
                        undo(m, 0, true);
                return true;
        }
        return false;
}

static void step_plain(struct snib__multi *m, snib__ns now)
{
        const struct snib__multi_member *p = &m->members[m->order[m->at]];

        if (undo_lost(m) || p->state == SNIB__MEMBER_ASKING)
                return;
        if (p->said < 0)
                undo(m, blame(m, m->order[m->at], SNIB__MULTI_SAID, p->said), false);
        else if (p->said == 0)
                undo(m, 0, true);
        else if (++m->at == m->count)
                granted(m, now);
        else
                ask_in_order(m, now);
}

/* A reason that another round may do away with. */
static bool is_passing(int code)
{
        switch (code) {
#define PASSING(name, number, class, text) \
        case number:                       \
                return (class) == SNIB_CLASS_UNAVAILABLE || (class) == SNIB_CLASS_UNKNOWN;
                SNIB_ERRORS(PASSING)
#undef PASSING
        default:
                return false;
        }
}

/* Why a member's vote is missing: 0, because somebody else holds it, or there was no time for it to
 * answer. */
static int complaint(const struct snib__multi *m, const struct snib__multi_member *p, snib__ns now,
                     enum snib__multi_why *ret)
{
        *ret = p->state == SNIB__MEMBER_ASKING ? SNIB__MULTI_SILENT
               : p->state == SNIB__MEMBER_HELD ? SNIB__MULTI_LATE
                                               : SNIB__MULTI_SAID;
        if (p->state == SNIB__MEMBER_ASKING)
                return now - m->begun >= m->node_timeout ? SNIB_EUNKNOWN : 0;
        if (p->state == SNIB__MEMBER_HELD)
                return is_vote(m, p, now) ? 0 : SNIB_ENOTREADY;
        return p->said < 0 ? p->said : 0;
}

/* Not enough members granted. What they said decides whether that is an answer, an error, or an
 * error at once. */
static void red_failed(struct snib__multi *m, snib__ns now)
{
        size_t first = m->count, refused = m->count, failed = 0, refusals = 0;
        enum snib__multi_why why;

        for (size_t i = 0; i < m->count; i++) {
                int code = complaint(m, &m->members[i], now, &why);
                bool refusal = code && !is_passing(code);

                failed += code != 0;
                refusals += refusal;
                first = code && first == m->count ? i : first;
                refused = refusal && refused == m->count ? i : refused;
        }
        if (refusals > m->count - m->needed) {
                undo(m, blame(m, refused, SNIB__MULTI_SAID, m->members[refused].said), false);
        } else if (failed <= m->count - m->needed) {
                undo(m, 0, true);
        } else {
                int code = complaint(m, &m->members[first], now, &why);

                undo(m, blame(m, first, why, code), true);
        }
}

static bool has_heard(const struct snib__multi_member *p)
{
        return atomic_load_explicit(p->heard, memory_order_acquire) != 0;
}

/* A member may grant at any moment, because nothing was heard of it yet. One that is silent for
 * node_timeout is given up. */
static bool is_open(const struct snib__multi *m, snib__ns now)
{
        for (size_t i = 0; i < m->count; i++)
                if (is_asked(&m->members[i]) && !has_heard(&m->members[i]))
                        return now < snib__after(m->begun, m->node_timeout);
        return false;
}

/* How long the grants of one release may be apart: as much as the servers are away, twice, and
 * drawn. */
static snib__ns spread(struct snib__multi *m)
{
        snib__ns base = SPLIT << snib__min(m->round - 1, 6), away = 0;

        for (size_t i = 0; i < m->count; i++) {
                snib__ns heard = atomic_load_explicit(m->members[i].heard, memory_order_acquire);

                away = snib__max(away, snib__min(heard - m->begun, m->node_timeout));
        }
        return base / 2 + jitter(m, base) + 2 * away;
}

/* Whether what is held is to be given back, of a majority that others may have: see SPLIT. */
static bool is_split(struct snib__multi *m, size_t votes, snib__ns now)
{
        if (votes != m->votes)
                m->split = votes && !SNIB__BUG(red_keeps_a_minority) ? snib__after(now, spread(m)) : SNIB__NEVER;
        else if (now >= m->split && is_open(m, now))
                m->split = snib__after(now, snib__max(spread(m), now - m->begun));
        m->votes = votes;
        m->due = snib__min(m->end, m->split);
        return now >= m->split;
}

/* The round is over, but for what those say who waited: whether somebody holds it, or they were
 * never reached. Answers how many those are. */
static size_t end_round(struct snib__multi *m, snib__ns now)
{
        size_t hurried = 0;

        m->ending = true;
        m->due = m->end = snib__min(m->end, snib__after(now, m->node_timeout));
        for (size_t i = 0; i < m->count; i++) {
                struct snib__multi_member *p = &m->members[i];

                p->hurried = is_asked(p) && has_heard(p);
                if (p->hurried)
                        want(m, i, (struct snib__multi_effect){.kind = SNIB__MULTI_HURRY});
                hurried += p->hurried;
        }
        return hurried;
}

static void step_red(struct snib__multi *m, snib__ns now)
{
        size_t votes = 0, open = 0, hurried = 0, needed = m->needed;

        for (size_t i = 0; i < m->count; i++) {
                const struct snib__multi_member *p = &m->members[i];
                bool asked = is_asked(p);

                votes += is_vote(m, p, now);
                open += asked;
                hurried += asked && p->hurried;
        }
        if (SNIB__BUG(red_majority_of_answers))
                needed = (m->count - open) / 2 + 1;
        if (votes >= needed) {
                granted(m, now);
                return;
        }
        if (votes + open >= m->needed && m->patient && !m->ending && is_split(m, votes, now))
                hurried = end_round(m, now);
        if (votes + open < m->needed || now >= m->end || (m->ending && hurried == 0))
                red_failed(m, now);
}

static bool step_asking(struct snib__multi *m, snib__ns now)
{
        enum snib__multi_phase before = m->phase;
        size_t at = m->at;

        if (m->round == 0) {
                begin_round(m, now);
                return true;
        }
        if (is_cancelled(m))
                undo(m, cancelled(m), false);
        else if (m->red)
                step_red(m, now);
        else
                step_plain(m, now);
        return m->phase != before || m->at != at;
}

static bool step_undoing(struct snib__multi *m, snib__ns now)
{
        snib__ns pause = snib__min(PAUSE_MIN << snib__min(m->round, 8), PAUSE_MAX);
        bool any = false;

        for (size_t i = 0; i < m->count; i++)
                any |= cancel(m, i) || end(m, i, m->red ? m->node_timeout : UNDO);
        if (any || !all_idle(m))
                return any;
        if (!m->again || m->once || now >= m->deadline || is_cancelled(m)) {
                (void)answer(m, m->result);
                return true;
        }
        m->phase = SNIB__MULTI_PAUSING;
        m->due = snib__min(snib__after(now, pause / 4 + jitter(m, pause)), m->deadline);
        return true;
}

/* The first member whose client is being closed, if the members left are not enough; or the number
 * of members. */
static size_t shut(const struct snib__multi *m)
{
        size_t closed = 0, first = m->count;

        for (size_t i = 0; i < m->count; i++) {
                if (!atomic_load(&m->members[i].closed))
                        continue;
                closed++;
                first = first == m->count ? i : first;
        }
        return closed > m->count - m->needed ? first : m->count;
}

static bool step_pausing(struct snib__multi *m, snib__ns now)
{
        if (now >= m->deadline || is_cancelled(m))
                (void)answer(m, m->result);
        else if (shut(m) < m->count)
                (void)answer(m, blame(m, shut(m), SNIB__MULTI_SHUT, SNIB_ECLOSED));
        else if (now >= m->due)
                begin_round(m, now);
        else
                return false;
        return true;
}

void snib__multi_give_up(struct snib__multi *m, int result, snib__ns now)
{
        m->result = result;
        m->deadline = m->due = now;
}

/* ---- held ---- */

/* Members of a red multilock that granted when the rest had been enough: welcome while the whole is
 * certain. Otherwise somebody may have been told that it is not, and must not find that it is
 * again. */
static bool step_held(struct snib__multi *m, snib__ns now)
{
        bool any = false;

        for (size_t i = 0; i < m->count; i++) {
                struct snib__multi_member *p = &m->members[i];

                if (p->state != SNIB__MEMBER_HELD || atomic_load(&p->held) || atomic_load(&p->loss))
                        continue;
                if (snib__multi_left(m, now) > 0) {
                        atomic_store_explicit(&p->held, p->hold, memory_order_release);
                } else {
                        give_back(m, i, m->node_timeout);
                        any = true;
                }
        }
        return any;
}

/* Nobody can find that we have it. What was cancelled may have been granted all the same, and is
 * released by its id. */
static bool is_free(const struct snib__multi *m, const struct snib__multi_member *p)
{
        return p->state == SNIB__MEMBER_IDLE && ((p->said >= 0 && !p->cancelled) || (m->red && p->said == SNIB_ELOST));
}

/* 1 or an error: which, when all members have answered. Red: as soon as a majority is certainly
 * free for the next. */
static void verdict(struct snib__multi *m)
{
        size_t open = 0, freed = 0, failed = 0, bad = m->count;

        for (size_t i = 0; i < m->count; i++) {
                const struct snib__multi_member *p = &m->members[i];

                open += p->state != SNIB__MEMBER_IDLE;
                freed += is_free(m, p);
                if (p->state != SNIB__MEMBER_IDLE || is_free(m, p) || !p->to_release)
                        continue;
                failed++;
                bad = bad == m->count ? i : bad;
        }
        if (open > 0 && !(m->red && freed >= m->needed))
                return;
        m->released = true;
        m->due = SNIB__NEVER;
        m->result = 1;
        if (failed > m->count - m->needed && m->members[bad].cancelled)
                m->result = blame(m, bad, SNIB__MULTI_SILENT, SNIB_EUNKNOWN);
        else if (failed > m->count - m->needed)
                m->result = blame(m, bad, SNIB__MULTI_SAID, m->members[bad].said);
        else if (atomic_load(&m->loss))
                m->result = blame(m, m->count, SNIB__MULTI_LOST, SNIB_ELOST);
}

/* Members that have not answered yet may do so, for a while: what they grant is then given back,
 * while what a cancelled one grants could stand in the way of the next acquire for a moment. Who
 * waits at one has to go at once: it would be granted what the next is to have. */
static bool step_releasing(struct snib__multi *m, snib__ns now)
{
        bool any = false;

        for (size_t i = 0; i < m->count; i++) {
                any |= end(m, i, m->red ? m->node_timeout : SNIB__NEVER);
                if (now >= m->due || has_heard(&m->members[i]))
                        any |= cancel(m, i);
        }
        if (any)
                return true;
        if (!m->released)
                verdict(m);
        if (!all_idle(m))
                return false;
        m->phase = SNIB__MULTI_OVER;
        return true;
}

/* Its acquire ended, and the engine may have executed it, or stand by to do so. */
static bool may_be_held(const struct snib__multi_member *p)
{
        return p->cancelled || p->said == SNIB_EUNKNOWN || p->said == SNIB_ECLOSED;
}

void snib__multi_release(struct snib__multi *m, snib__ns now)
{
        m->phase = SNIB__MULTI_RELEASING;
        atomic_store(&m->granted, false);
        m->due = SNIB__NEVER;
        for (size_t i = 0; i < m->count; i++) {
                m->members[i].to_release = m->members[i].state != SNIB__MEMBER_IDLE || may_be_held(&m->members[i]);
                if (m->members[i].state == SNIB__MEMBER_ASKING)
                        m->due = snib__after(now, m->node_timeout);
        }
}

bool snib__multi_step(struct snib__multi *m, snib__ns now)
{
        switch (m->phase) {
        case SNIB__MULTI_ASKING:
                return step_asking(m, now);
        case SNIB__MULTI_UNDOING:
                return step_undoing(m, now);
        case SNIB__MULTI_PAUSING:
                return step_pausing(m, now);
        case SNIB__MULTI_HELD:
                return step_held(m, now);
        case SNIB__MULTI_RELEASING:
                return step_releasing(m, now);
        case SNIB__MULTI_OVER:
                break;
        }
        return false;
}

void snib__multi_init(struct snib__multi *m, const struct snib__multi_config *config,
                      struct snib__multi_member *members)
{
        memset(m, 0, sizeof(*m));
        m->count = config->count;
        m->needed = config->red ? config->count / 2 + 1 : config->count;
        m->red = config->red;
        m->node_timeout = config->node_timeout;
        m->once = config->once;
        m->deadline = config->deadline;
        memcpy(m->order, config->order, config->count * sizeof(m->order[0]));
        m->prng.state = config->seed;
        m->due = SNIB__NEVER;
        m->members = members;
}

/* ---- order ---- */

static int by_name(struct snib__name a, struct snib__name b)
{
        size_t n = a.length < b.length ? a.length : b.length;
        int r = memcmp(a.bytes, b.bytes, n);

        return r ? r : (a.length > b.length) - (a.length < b.length);
}

/* Of a read-write lock the write side comes first: under it its owner may read, while a reader
 * could not become the writer. */
int snib__multi_compare(const struct snib__multi_key *a, const struct snib__multi_key *b)
{
        int r = by_name(a->name, b->name);

        if (r == 0)
                r = strcmp(a->place, b->place);
        return r ? r : b->kind - a->kind;
}

/* By insertion. */
void snib__multi_order(const struct snib__multi_key *keys, size_t count, size_t *ret_order)
{
        for (size_t i = 0; i < count; i++) {
                size_t k = i;

                for (; k > 0 && !SNIB__BUG(multi_order_of_the_caller) &&
                       snib__multi_compare(&keys[ret_order[k - 1]], &keys[i]) > 0;
                     k--)
                        ret_order[k] = ret_order[k - 1];
                ret_order[k] = i;
        }
}

/* ---- the invariants of the machine itself ---- */

const char *snib__multi_check(const struct snib__multi *m)
{
        bool whole = m->phase == SNIB__MULTI_HELD;

        if (m->answered != (m->phase >= SNIB__MULTI_HELD))
                return "it is answered when it is held or over";
        if (m->answered && m->phase != SNIB__MULTI_OVER && !m->released && m->result != 1)
                return "what is held was answered with 1";
        if (atomic_load(&m->granted) != whole)
                return "losses count while it is held";
        if (atomic_load(&m->fate) == SNIB__MULTI_OPEN && m->answered)
                return "what is answered can be cancelled no more";
        if ((m->phase == SNIB__MULTI_PAUSING || m->phase == SNIB__MULTI_OVER) && !all_idle(m))
                return "between rounds and at the end nothing is held or under way";
        for (size_t i = 0; i < m->count; i++) {
                const struct snib__multi_member *p = &m->members[i];

                if (atomic_load(&p->held) && p->state != SNIB__MEMBER_HELD)
                        return "only what is held counts";
                if (!m->red && m->phase == SNIB__MULTI_ASKING && p->state == SNIB__MEMBER_ASKING &&
                    i != m->order[m->at])
                        return "one after another";
        }
        return NULL;
}
