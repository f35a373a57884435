/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a multilock does: the machine. It is stepped under the record's lock whenever something may have happened; it
 * looks at what its parts have been answered, begins their next calls, and says when to look again. It waits for
 * nothing and calls nobody back.
 *
 * Plain: members are asked one after another in the handle's order; red: all at once. A round that fails gives back
 * what it took before anything else happens, and what was asked and not answered is cancelled: what the engine grants
 * to it later is released by its id. So at no time does a failed round leave a part behind.
 */

#include "api/multi.h"
#include "base/error.h"

static size_t number(const struct snib_multigrant *g, const struct snib__multi_part *p)
{
        return (size_t)(p - g->parts) + 1;
}

/* An error of a member, with its name. */
static int blame(struct snib_multigrant *g, const struct snib__multi_part *p, int code, const struct snib_error *why)
{
        g->err = (struct snib_error)SNIB_ERROR_INIT;
        return snib__error_engine(&g->err, code, why->engine_code, "member %zu of %zu, \"%s\": %s", number(g, p),
                                  g->count, p->name, why->text[0] ? why->text : snib_strerror(code));
}

/* Redlock's allowance for clocks that run at different rates, and for the engines' milliseconds. Core allows for less:
 * there it is one clock against one. */
static snib__ns drift(snib__ns lease)
{
        return lease / 100 + 2 * SNIB__MS;
}

snib__ns snib__multi_part_left(const struct snib_multigrant *g, const struct snib__multi_part *p, snib__ns now)
{
        const struct snib_grant *grant = atomic_load_explicit(&p->held, memory_order_acquire);
        snib__ns until;

        if (!grant)
                return 0;
        until = atomic_load_explicit(&grant->hold.valid_until, memory_order_acquire);
        if (g->red)
                until -= drift(p->lease) - (p->lease - snib__lease_trusted(p->lease));
        return until - now;
}

/* The least of those that are needed: the `needed`-th largest. */
snib__ns snib__multi_left(const struct snib_multigrant *g, snib__ns now)
{
        snib__ns left[SNIB_MULTILOCK_MAX];
        size_t n = 0;

        if (!atomic_load(&g->granted) || atomic_load(&g->loss))
                return 0;
        for (size_t i = 0; i < g->count; i++) {
                snib__ns one = snib__multi_part_left(g, &g->parts[i], now);
                size_t k = n++;

                for (; k > 0 && left[k - 1] < one; k--)
                        left[k] = left[k - 1];
                left[k] = one;
        }
        return snib__max(left[g->needed - 1], 0);
}

void snib__multi_check_loss(struct snib_multigrant *g, int reason)
{
        size_t live = 0;
        int none = SNIB_LOSS_NONE, fd;

        if (!atomic_load(&g->granted))
                return;
        for (size_t i = 0; i < g->count; i++)
                live += atomic_load(&g->parts[i].held) && !atomic_load(&g->parts[i].loss);
        if (live >= g->needed || !atomic_compare_exchange_strong(&g->loss, &none, reason))
                return;
        fd = atomic_load(&g->loss_fd);
        if (fd >= 0)
                snib__os_event_set(fd);
}

static struct snib__name owner_of(const struct snib_multigrant *g, const struct snib__multi_part *p)
{
        if (p->lock->owner)
                return (struct snib__name){p->lock->owner, p->lock->owner_length};
        return (struct snib__name){g->owner, g->owner_length};
}

/* Begins an acquire of a member. One that cannot begin was answered at once. */
static void ask(struct snib_multigrant *g, struct snib__multi_part *p, bool once, snib__ns wait)
{
        struct snib__want want = {.patience = {once, wait}, .owner = owner_of(g, p)};

        atomic_store(&p->loss, SNIB_LOSS_NONE);
        p->cancelled = false;
        p->said = 0;
        p->base.err = (struct snib_error)SNIB_ERROR_INIT;
        if (atomic_load(&p->closed)) {
                p->said = snib__closed(&p->base.err);
                return;
        }
        p->state = SNIB__PART_ASKING;
        snib__multi_ref(g);
        p->said = snib__part_acquire(&p->base, p->lock, &want, &p->base.err);
        if (p->said < 0) {
                p->state = SNIB__PART_IDLE;
                snib__multi_unref(g);
        }
}

static void give_back(struct snib_multigrant *g, struct snib__multi_part *p, snib__ns patience)
{
        atomic_store(&p->held, NULL);
        if (atomic_load(&p->closed)) {
                p->state = SNIB__PART_IDLE;
                p->said = snib__closed(&p->base.err);
                return;
        }
        p->state = SNIB__PART_RELEASING;
        snib__multi_ref(g);
        p->said = snib__part_release(&p->base, patience, &p->base.err);
        if (p->said < 0) {
                p->state = SNIB__PART_IDLE;
                snib__multi_unref(g);
        }
}

/* What was asked for is wanted no more. True: there was something to be done. */
static bool cancel(struct snib__multi_part *p)
{
        if (p->state != SNIB__PART_ASKING || p->cancelled || atomic_load(&p->closed))
                return false;
        p->cancelled = true;
        snib__part_cancel(&p->base);
        return true;
}

/* The same of what is held. */
static bool end(struct snib_multigrant *g, struct snib__multi_part *p, snib__ns patience)
{
        if (p->state != SNIB__PART_HELD)
                return false;
        give_back(g, p, patience);
        return true;
}

/* Takes note of what was answered. */
static bool collect(struct snib_multigrant *g)
{
        bool any = false;

        for (size_t i = 0; i < g->count; i++) {
                struct snib__multi_part *p = &g->parts[i];

                if (!atomic_exchange(&p->ended, false))
                        continue;
                any = true;
                p->said = p->cancelled && p->base.result == SNIB_ECANCELLED ? 0 : p->base.result;
                p->state = p->state == SNIB__PART_ASKING && p->said == 1 ? SNIB__PART_HELD : SNIB__PART_IDLE;
        }
        return any;
}

static bool has_ended(const struct snib_multigrant *g)
{
        for (size_t i = 0; i < g->count; i++)
                if (atomic_load(&g->parts[i].ended))
                        return true;
        return false;
}

static bool all_idle(const struct snib_multigrant *g)
{
        for (size_t i = 0; i < g->count; i++)
                if (g->parts[i].state != SNIB__PART_IDLE)
                        return false;
        return true;
}

static snib__ns jitter(snib__ns below)
{
        uint64_t r = 0;

        if (snib__os_random(&r, sizeof(r)) < 0)
                r = (uint64_t)snib__os_now();
        return (snib__ns)(r % (uint64_t)below);
}

static void ask_in_order(struct snib_multigrant *g, snib__ns now)
{
        snib__ns wait = g->deadline == SNIB__NEVER ? SNIB__NEVER : snib__max(g->deadline - now, 0);
        snib__ns slice = SNIB__MULTI_SLICE * (snib__ns)g->count;

        if (g->at > 0) /* who holds nothing stands in nobody's way */
                wait = snib__min(wait, slice / 2 + jitter(slice));
        ask(g, &g->parts[g->order[g->at]], g->once, wait);
}

static void begin_round(struct snib_multigrant *g, snib__ns now)
{
        snib__ns limit = snib__after(now, g->node_timeout);

        g->phase = SNIB__MULTI_ASKING;
        g->begun = now;
        g->round++;
        g->at = 0;
        g->again = false;
        g->due = SNIB__NEVER;
        if (!g->red) {
                ask_in_order(g, now);
                return;
        }
        g->due = g->once || g->deadline <= now ? limit : snib__min(limit, g->deadline);
        for (size_t i = 0; i < g->count; i++) {
                struct snib__multi_part *p = &g->parts[i];

                if (!atomic_load(&p->closed) && snib__part_is_stuck(&p->base, g->node_timeout)) {
                        /* It would only gather requests that are executed when nobody wants them any more. */
                        p->base.err = (struct snib_error)SNIB_ERROR_INIT;
                        p->said = snib__error(&p->base.err, SNIB_EUNKNOWN, "the server does not answer");
                } else {
                        ask(g, p, true, 0);
                }
        }
}

/* The round has failed. `again`: unless time is up, there is another. */
static void undo(struct snib_multigrant *g, int result, bool again)
{
        g->phase = SNIB__MULTI_UNDOING;
        g->result = result;
        g->again = again;
        g->due = SNIB__NEVER;
}

static int cancelled(struct snib_multigrant *g)
{
        g->err = (struct snib_error)SNIB_ERROR_INIT;
        return snib__error(&g->err, SNIB_ECANCELLED, "the multilock's cancel call ended the wait");
}

/* The acquire is answered, and can be cancelled no more. False: it was, and members are held. */
static bool answer(struct snib_multigrant *g, int result)
{
        struct snib_multilock *m = g->multilock;

        (void)pthread_mutex_lock(&m->lock);
        if (result >= 0 && atomic_load(&g->cancelled)) {
                if (result == 1) {
                        (void)pthread_mutex_unlock(&m->lock);
                        return false;
                }
                result = cancelled(g);
        }
        snib__list_remove(&g->of_multilock);
        (void)pthread_mutex_unlock(&m->lock);
        g->multilock = NULL;
        g->result = result;
        g->answered = true;
        g->due = SNIB__NEVER;
        g->phase = result == 1 ? SNIB__MULTI_HELD : SNIB__MULTI_OVER;
        return true;
}

static bool is_vote(const struct snib_multigrant *g, const struct snib__multi_part *p, snib__ns now)
{
        if (p->state != SNIB__PART_HELD || atomic_load(&p->loss))
                return false;
        return !g->red || g->begun + p->lease - drift(p->lease) > now;
}

static void granted(struct snib_multigrant *g, snib__ns now)
{
        int reason = SNIB_LOSS_NONE;

        for (size_t i = 0; i < g->count; i++) {
                struct snib__multi_part *p = &g->parts[i];

                if (is_vote(g, p, now)) {
                        atomic_store_explicit(&p->held, p->base.grant, memory_order_release);
                        if (g->red && p->base.grant->hold.token > g->token)
                                g->token = p->base.grant->hold.token;
                } else if (p->state == SNIB__PART_ASKING && !atomic_load(&p->closed)) {
                        snib__part_let_go(&p->base); /* may still come: one that the majority can do without */
                }
        }
        if (!answer(g, 1)) {
                undo(g, cancelled(g), false);
                return;
        }
        atomic_store(&g->granted, true);
        for (size_t i = 0; i < g->count && !reason; i++)
                reason = atomic_load(&g->parts[i].loss);
        if (reason)
                snib__multi_check_loss(g, reason);
}

static void step_plain(struct snib_multigrant *g, snib__ns now)
{
        struct snib__multi_part *p = &g->parts[g->order[g->at]];
        int loss;

        for (size_t i = 0; i < g->count; i++) {
                loss = atomic_load(&g->parts[i].loss);
                if (g->parts[i].state != SNIB__PART_HELD || !loss)
                        continue;
                if (loss == SNIB_LOSS_THREAD_EXIT) {
                        struct snib_error why = {.text = "the thread that asked for it ended"};
                        undo(g, blame(g, &g->parts[i], SNIB_ELOST, &why), false);
                } else {
                        undo(g, 0, true);
                }
                return;
        }
        if (p->state == SNIB__PART_ASKING)
                return;
        if (p->said < 0) {
                undo(g, blame(g, p, p->said, &p->base.err), false);
        } else if (p->said == 0) {
                undo(g, 0, true);
        } else if (++g->at == g->count) {
                granted(g, now);
        } else {
                ask_in_order(g, now);
        }
}

static bool is_passing(int code)
{
        int class = snib_error_class(code);

        return class == SNIB_CLASS_UNAVAILABLE || class == SNIB_CLASS_UNKNOWN;
}

/* Why a member's vote is missing: 0, because somebody else holds it, or there was no time for it to answer. */
static int complaint(const struct snib_multigrant *g, const struct snib__multi_part *p, snib__ns now,
                     const struct snib_error **ret)
{
        static const struct snib_error silent = {.text = "the server did not answer in time"},
                                       late = {.text = "the server granted it too late to be worth anything"};

        *ret = p->state == SNIB__PART_ASKING ? &silent : p->state == SNIB__PART_HELD ? &late : &p->base.err;
        if (p->state == SNIB__PART_ASKING)
                return now - g->begun >= g->node_timeout ? SNIB_EUNKNOWN : 0;
        if (p->state == SNIB__PART_HELD)
                return is_vote(g, p, now) ? 0 : SNIB_ENOTREADY;
        return p->said < 0 ? p->said : 0;
}

/* Not enough members granted. What they said decides whether that is an answer, an error, or an error at once. */
static void red_failed(struct snib_multigrant *g, snib__ns now)
{
        const struct snib__multi_part *first = NULL, *refused = NULL;
        const struct snib_error *why;
        size_t failed = 0, refusals = 0;

        for (size_t i = 0; i < g->count; i++) {
                const struct snib__multi_part *p = &g->parts[i];
                int code = complaint(g, p, now, &why);
                bool refusal = code && !is_passing(code);

                failed += code != 0;
                refusals += refusal;
                first = code && !first ? p : first;
                refused = refusal && !refused ? p : refused;
        }
        if (refusals > g->count - g->needed)
                undo(g, blame(g, refused, refused->said, &refused->base.err), false);
        else if (failed <= g->count - g->needed)
                undo(g, 0, true);
        else {
                int code = complaint(g, first, now, &why);

                undo(g, blame(g, first, code, why), true);
        }
}

static void step_red(struct snib_multigrant *g, snib__ns now)
{
        size_t votes = 0, open = 0;

        for (size_t i = 0; i < g->count; i++) {
                votes += is_vote(g, &g->parts[i], now);
                open += g->parts[i].state == SNIB__PART_ASKING && !atomic_load(&g->parts[i].closed);
        }
        if (votes >= g->needed)
                granted(g, now);
        else if (votes + open < g->needed || now >= g->due)
                red_failed(g, now);
}

static bool step_asking(struct snib_multigrant *g, snib__ns now)
{
        enum snib__multi_phase before = g->phase;
        size_t at = g->at;

        if (atomic_load(&g->cancelled))
                undo(g, cancelled(g), false);
        else if (g->red)
                step_red(g, now);
        else
                step_plain(g, now);
        return g->phase != before || g->at != at;
}

static bool step_undoing(struct snib_multigrant *g, snib__ns now)
{
        snib__ns pause = snib__min(SNIB__MULTI_PAUSE_MIN << snib__min(g->round, 8), SNIB__MULTI_PAUSE_MAX);
        bool any = false;

        for (size_t i = 0; i < g->count; i++)
                any |= cancel(&g->parts[i]) || end(g, &g->parts[i], g->red ? g->node_timeout : SNIB__MULTI_UNDO);
        if (any || !all_idle(g))
                return any;
        if (!g->again || g->once || now >= g->deadline || atomic_load(&g->cancelled)) {
                (void)answer(g, g->result);
                return true;
        }
        g->phase = SNIB__MULTI_PAUSING;
        g->due = snib__min(snib__after(now, pause / 4 + jitter(pause)), g->deadline);
        return true;
}

/* So many clients are being closed that the members left are not enough. */
static bool is_closed(const struct snib_multigrant *g)
{
        size_t closed = 0;

        for (size_t i = 0; i < g->count; i++)
                closed += atomic_load(&g->parts[i].closed);
        return closed > g->count - g->needed;
}

static bool step_pausing(struct snib_multigrant *g, snib__ns now)
{
        if (now < g->due && !atomic_load(&g->cancelled) && !is_closed(g))
                return false;
        if (now >= g->deadline || atomic_load(&g->cancelled))
                (void)answer(g, g->result);
        else
                begin_round(g, now);
        return true;
}

/* Members of a red multilock that granted when the rest had been enough: welcome while the whole is certain. Otherwise
 * somebody may have been told that it is not, and must not find that it is again. */
static bool step_held(struct snib_multigrant *g, snib__ns now)
{
        bool any = false;

        for (size_t i = 0; i < g->count; i++) {
                struct snib__multi_part *p = &g->parts[i];

                if (p->state != SNIB__PART_HELD || atomic_load(&p->held) || atomic_load(&p->loss))
                        continue;
                if (snib__multi_left(g, now) > 0) {
                        atomic_store_explicit(&p->held, p->base.grant, memory_order_release);
                } else {
                        give_back(g, p, g->node_timeout);
                        any = true;
                }
        }
        return any;
}

/* 1 or an error: which, when all members have answered. Red: as soon as a majority is certainly free for the next. */
static void verdict(struct snib_multigrant *g)
{
        const struct snib__multi_part *bad = NULL;
        size_t open = 0, freed = 0, failed = 0;

        for (size_t i = 0; i < g->count; i++) {
                const struct snib__multi_part *p = &g->parts[i];

                if (p->state != SNIB__PART_IDLE) {
                        open++;
                } else if (p->said >= 0 || (g->red && p->said == SNIB_ELOST)) {
                        freed++;
                } else if (p->to_release) {
                        failed++;
                        bad = bad ? bad : p;
                }
        }
        if (open > 0 && !(g->red && freed >= g->needed))
                return;
        g->released = true;
        g->due = SNIB__NEVER;
        g->result = 1;
        if (failed > g->count - g->needed)
                g->result = blame(g, bad, bad->said, &bad->base.err);
        else if (atomic_load(&g->loss)) {
                g->err = (struct snib_error)SNIB_ERROR_INIT;
                g->result = snib__error(&g->err, SNIB_ELOST, "the majority was lost before: %s",
                                        snib_loss_text(atomic_load(&g->loss)));
        }
}

/* Members that were asked and have not answered yet may do so, for a while: what they grant is then given back, while
 * what a cancelled one grants could stand in the way of the next acquire for a moment. */
static bool step_releasing(struct snib_multigrant *g, snib__ns now)
{
        bool any = false;

        for (size_t i = 0; i < g->count; i++) {
                any |= end(g, &g->parts[i], g->red ? g->node_timeout : SNIB__NEVER);
                if (now >= g->due)
                        any |= cancel(&g->parts[i]);
        }
        if (any)
                return true;
        if (!g->released)
                verdict(g);
        if (!all_idle(g))
                return false;
        g->phase = SNIB__MULTI_OVER;
        return true;
}

void snib__multi_release(struct snib_multigrant *g)
{
        g->phase = SNIB__MULTI_RELEASING;
        atomic_store(&g->granted, false);
        g->lost = NULL;
        g->due = SNIB__NEVER;
        for (size_t i = 0; i < g->count; i++) {
                g->parts[i].to_release = g->parts[i].state != SNIB__PART_IDLE;
                if (g->parts[i].state == SNIB__PART_ASKING)
                        g->due = snib__after(snib__os_now(), g->node_timeout);
        }
}

snib__ns snib__multi_step(struct snib_multigrant *g)
{
        snib__ns now;
        bool again;

        do {
                again = collect(g);
                now = snib__os_now();
                switch (g->phase) {
                case SNIB__MULTI_ASKING:
                        if (g->round == 0)
                                begin_round(g, now);
                        again |= step_asking(g, now);
                        break;
                case SNIB__MULTI_UNDOING:
                        again |= step_undoing(g, now);
                        break;
                case SNIB__MULTI_PAUSING:
                        again |= step_pausing(g, now);
                        break;
                case SNIB__MULTI_HELD:
                        again |= step_held(g, now);
                        break;
                case SNIB__MULTI_RELEASING:
                        again |= step_releasing(g, now);
                        break;
                case SNIB__MULTI_OVER:
                        break;
                }
        } while (again || has_ended(g));
        return g->due;
}
