/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client machine of core/core.h: its events, and which part of a hold's life each of them
 * concerns. Not the behaviour itself: that is in wait.c, held.c, release.c, cohort.c and ask.c,
 * which stand on the rooms index.c, request.c, timer.c and out.c. Pure; one thread at a time.
 *
 * Every entry point first does what is due, so that no event is looked at by a hold whose deadline
 * has already passed.
 */

#include "core/internal.h"
#include <string.h>

void snib__core_init(struct snib__core *c, const struct snib__core_config *config)
{
        memset(c, 0, sizeof(*c));
        c->config = *config;
        c->prng.state = config->seed;
        snib__list_init(&c->holds);
        snib__list_init(&c->asks);
        snib__list_init(&c->dirty_holds);
        snib__list_init(&c->dirty_asks);
        snib__list_init(&c->answered);
        snib__list_init(&c->postponed);
        snib__index_init(c);
        snib__timers_init(c);
}

static void attach(struct snib__core *c, struct snib__hold *h, struct snib__call *call)
{
        call->hold = h;
        call->timer.node.tag = SNIB__TIMER_CALL;
        if (!snib__list_empty(&h->calls)) {
                /* What those who wait have heard goes for this one, too. */
                call->fault = snib__call_of(h->calls.next)->fault;
                call->holder = snib__call_of(h->calls.next)->holder;
                atomic_store(&call->heard, atomic_load(&snib__call_of(h->calls.next)->heard));
        }
        snib__list_append(&h->calls, &call->link);
        snib__timer_set(c, &call->timer, call->once ? SNIB__NEVER : call->deadline);
}

void snib__core_begin(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        snib__assert(h->state == SNIB__IDLE);
        snib__assert(h->name.length > 0 && snib__id_set(&h->known.id) && h->lease > 0);
        snib__list_init(&h->calls);
        h->cookie = ++c->cookies;
        h->n = h->n > 1 ? h->n : 1;
        h->timer.node.tag = SNIB__TIMER_HOLD;
        h->request.wake_at = h->deadline = SNIB__NEVER;
        snib__list_append(&c->holds, &h->all);
        if (h->owner.length == 0)
                h->owner = (struct snib__name){h->known.id.text, strlen(h->known.id.text)};
        snib__tree_add(&c->by_owner, &h->by_owner);
        attach(c, h, call);
        snib__wait_begin(c, h, now);
}

void snib__core_join(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        attach(c, h, call);
        if (h->state == SNIB__LOST || !h->reentrant)
                snib__call_answer(c, call, h->state == SNIB__LOST ? SNIB_ELOST : SNIB_EREENTRY, NULL);
        else if (h->state == SNIB__HELD)
                snib__held_join(c, h, now);
        else
                snib__wait_joined(c, h, call, now);
}

void snib__core_renew(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        attach(c, h, call);
        if (h->state != SNIB__HELD)
                snib__call_answer(c, call, SNIB_ELOST, NULL);
        else if (!h->request.outstanding)
                snib__hold_submit(c, h, SNIB__RENEW, now);
}

void snib__core_release(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        snib__assert(h->depth > 0);
        snib__assert(h->state == SNIB__HELD || h->state == SNIB__LOST);
        attach(c, h, call);
        h->depth--;
        if (SNIB__BUG(cohort_after_loss) && h->state == SNIB__LOST && !h->depth && snib__cohort_hand_over(c, h, now))
                return;
        if (h->state == SNIB__LOST) {
                snib__call_answer(c, call, SNIB_ELOST, NULL);
                snib__lost_maybe_finish(c, h);
        } else if (h->depth > 0 || snib__calls_want(h, SNIB__CALL_ACQUIRE)) {
                snib__call_answer(c, call, 0, NULL);
        } else if (call->leave > now) {
                snib__leave_begin(c, h, call->leave, now);
        } else if (!snib__cohort_hand_over(c, h, now)) {
                snib__release_begin(c, h, now);
        }
}

void snib__core_cancel(struct snib__core *c, struct snib__call *call, int code, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = call->hold;
        if (!h)
                return;
        snib__call_answer(c, call, code, NULL);
        if (call->kind != SNIB__CALL_ACQUIRE || snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return;
        if (h->state == SNIB__ASKING || h->state == SNIB__WAITING)
                snib__wait_leave(c, h, now);
        else if (h->state == SNIB__HELD)
                snib__held_idle(c, h, now);
}

void snib__core_hurry(struct snib__core *c, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        if (call->hold)
                snib__wait_call_over(c, call, now);
}

void snib__core_disown(struct snib__core *c, struct snib__hold *h, int reason, snib__ns now)
{
        snib__core_tick(c, now);
        if (h->state == SNIB__HELD)
                snib__held_lose(c, h, reason, now);
}

/* What somebody had, or was giving back, is worth waiting for; what was only asked for is not. */
static void close_hold(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        h->farewell = h->state == SNIB__HELD || snib__calls_want(h, SNIB__CALL_RELEASE);
        c->farewells += h->farewell;
        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, SNIB_ECLOSED, NULL);
        snib__calls_answer(c, h, SNIB__CALL_RENEW, SNIB_ECLOSED, NULL);
        if (h->state == SNIB__ASKING || h->state == SNIB__WAITING)
                snib__wait_leave(c, h, now);
        if (h->state == SNIB__CANCELLING)
                snib__cancelling_close(c, h, now);
        else if (h->state == SNIB__HELD)
                snib__held_lose(c, h, SNIB_LOSS_CLOSED, now);
        if (h->state == SNIB__LOST) {
                h->depth = 0;
                snib__lost_maybe_finish(c, h);
        }
}

void snib__core_close(struct snib__core *c, snib__ns now)
{
        snib__core_tick(c, now);
        for (struct snib__list *it = c->holds.next, *next; it != &c->holds; it = next) {
                next = it->next;
                close_hold(c, snib__container(it, struct snib__hold, all), now);
        }
        for (struct snib__list *it = c->asks.next, *next; it != &c->asks; it = next) {
                next = it->next;
                snib__ask_answer(c, snib__container(it, struct snib__ask, link), SNIB_ECLOSED);
        }
}

static void dispatch_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        switch (h->state) {
        case SNIB__ASKING:
                snib__wait_reply(c, h, r, now);
                break;
        case SNIB__CANCELLING:
                snib__cancelling_reply(c, h, r, now);
                break;
        case SNIB__HELD:
                snib__held_reply(c, h, r, now);
                break;
        case SNIB__RELEASING:
        case SNIB__LOST:
                snib__release_reply(c, h, r, now);
                break;
        case SNIB__WAITING:
        case SNIB__IDLE:
                break; /* nothing is outstanding in these states */
        }
}

bool snib__core_reply_hold(struct snib__core *c, struct snib__hold *h, uint64_t cookie, uint32_t attempt,
                           const struct snib__reply *r, snib__ns now)
{
        snib__core_tick(c, now);
        if (h->cookie != cookie || cookie == 0)
                return false;
        if (!SNIB__BUG(reply_matched_by_id_only) && (h->request.attempt != attempt || !h->request.outstanding))
                return false;
        snib__hold_answered(c, h);
        dispatch_reply(c, h, r, now);
        snib__held_resume(c, now);
        return true;
}

/* The latch was open when it was asked for, and something happened to it: it was set. By the time
 * of the next question it may be open again, so that one is to be answered whatever is found. */
static void latch_noticed(struct snib__hold *h)
{
        if (h->observe && snib__family_of(h->kind) == SNIB__FAMILY_LATCH &&
            (h->state == SNIB__WAITING || h->request.attempt > 1))
                h->token = SNIB__ANY_STATE;
}

void snib__core_refused(struct snib__core *c, const struct snib__effect *e, snib__ns now)
{
        static const struct snib__reply no_memory = {
            .status = SNIB__FAILED, .error = SNIB_ENOMEM, .error_text = "no memory for a request"};

        if (SNIB__BUG(refused_request_waited_for))
                return;
        if (e->hold)
                (void)snib__core_reply_hold(c, e->hold, e->cookie, e->attempt, &no_memory, now);
        else
                (void)snib__core_reply_ask(c, e->ask, e->cookie, e->attempt, &no_memory, now);
}

void snib__core_changed(struct snib__core *c, struct snib__name name, bool all, snib__ns now)
{
        struct snib__hold *next;
        bool taken = false;

        snib__core_tick(c, now);
        if (SNIB__BUG(notification_dropped))
                return;
        for (struct snib__hold *h = snib__wait_first(c, name); h; h = next) {
                next = snib__wait_next(h);
                if (h->known.silent)
                        continue;
                latch_noticed(h);
                if (h->observe && !(taken && SNIB__BUG(observer_waits_its_turn)))
                        snib__wait_poke(c, h, false, now); /* takes nothing from anybody */
                else if (!taken || (all && h->kind != SNIB_KIND_WRITE))
                        snib__wait_poke(c, h, true, now); /* of several writers at most one gets in */
                taken |= !h->observe;
        }
}

void snib__core_watching(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns since,
                         snib__ns now)
{
        struct snib__hold *next;

        snib__core_tick(c, now);
        for (struct snib__hold *h = snib__wait_first(c, name); h; h = next) {
                next = snib__wait_next(h);
                if (!h->known.watch.on || since < h->request.sent_at ||
                    (since == h->request.sent_at && h->known.watch.asked) ||
                    (snib__id_set(id) && !snib__id_equal(id, &h->known.id)))
                        continue;
                if (!(h->request.attempt > 1 ? SNIB__BUG(no_retry_after_reconnecting)
                                             : SNIB__BUG(no_retry_after_subscribing)))
                        snib__wait_poke(c, h, false, now);
                h->known.watch.asked = true;
        }
}

static struct snib__hold *waiter(struct snib__core *c, struct snib__name name, const struct snib__id *id)
{
        struct snib__hold *h = snib__wait_first(c, name);

        while (h && !snib__id_equal(&h->known.id, id))
                h = snib__wait_next(h);
        return SNIB__BUG(notification_dropped) ? NULL : h;
}

void snib__core_granted(struct snib__core *c, struct snib__name name, const struct snib__id *id, uint32_t attempt,
                        const struct snib__reply *r, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = waiter(c, name, id);
        if (!h)
                return;
        latch_noticed(h);
        h->known.streak = r->streak; /* also if it has to ask whether it holds: others wait for the end of the streak */
        if (!snib__wait_granted(c, h, attempt, r, now))
                snib__wait_poke(c, h, false, now);
}

void snib__core_next_in_line(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = waiter(c, name, id);
        if (h && h->state == SNIB__WAITING)
                snib__hold_wake_at(c, h, snib__min(h->request.wake_at, snib__after(now, SNIB__YIELD)));
        else if (h)
                snib__wait_poke(c, h, false, now);
}

void snib__core_ended(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = snib__core_held(c, name, id);
        if (h)
                snib__held_check(c, h, now);
}

/* The link is back: what was tried in vain is tried again at once, what is held is checked, who
 * waits may have missed a change. */
static void relink(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (h->known.silent)
                return;
        if (h->state == SNIB__WAITING) {
                if (!SNIB__BUG(no_retry_after_reconnecting))
                        snib__wait_poke(c, h, false, now);
        } else if (h->state == SNIB__HELD)
                snib__held_check(c, h, now);
        else if (!h->request.outstanding && h->request.wake_at != SNIB__NEVER)
                snib__release_wake(c, h, now);
}

/* `concerns` NULL: all. */
static void relink_those(struct snib__core *c, snib__concerns *concerns, const void *arg, snib__ns now)
{
        for (struct snib__list *it = c->holds.next, *next; it != &c->holds; it = next) {
                struct snib__hold *h = snib__container(it, struct snib__hold, all);

                next = it->next;
                if (!concerns || concerns(arg, h->name))
                        relink(c, h, now);
        }
        for (struct snib__list *it = c->asks.next, *next; it != &c->asks; it = next) {
                struct snib__ask *a = snib__container(it, struct snib__ask, link);

                next = it->next;
                if (!concerns || (a->op.verb && concerns(arg, a->op.name)))
                        snib__ask_retry_now(c, a, now);
        }
}

void snib__core_relinked(struct snib__core *c, snib__concerns *concerns, const void *arg, snib__ns now)
{
        snib__core_tick(c, now);
        if (!SNIB__BUG(relinked_ignored))
                relink_those(c, concerns, arg, now);
}

static void link_is_down(struct snib__core *c, const struct snib__reply *why, snib__ns now)
{
        if (c->downs++ == 0)
                c->down_since = now;
        for (struct snib__list *it = c->holds.next, *next; it != &c->holds; it = next) {
                struct snib__hold *h = snib__container(it, struct snib__hold, all);

                next = it->next;
                if (h->state != SNIB__WAITING || h->known.silent)
                        continue;
                snib__hold_failed(h, why);
                snib__wait_link_down(c, h, now);
        }
}

void snib__core_link(struct snib__core *c, bool up, int error, int engine_code, const char *text, snib__ns now)
{
        struct snib__reply why = {
            .status = SNIB__FAILED, .error = error, .engine_code = engine_code, .error_text = text};

        snib__core_tick(c, now);
        c->link_up = up;
        if (!up) {
                link_is_down(c, &why, now);
                return;
        }
        c->downs = 0;
        relink_those(c, NULL, NULL, now);
}

/* An answer that did not come in time is one whose fate is unknown. */
static void time_out(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        snib__hold_forget(c, h);
        dispatch_reply(c, h, &snib__late, now);
}

static void wake_hold(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (h->state == SNIB__HELD && now >= h->deadline)
                snib__held_wake(c, h, now);
        else if ((h->state == SNIB__RELEASING || h->state == SNIB__LOST) && now >= h->deadline)
                snib__release_wake(c, h, now);
        else if (h->request.outstanding)
                time_out(c, h, now);
        else if (h->state == SNIB__WAITING)
                snib__wait_wake(c, h, now);
        else if (h->state == SNIB__HELD)
                snib__held_wake(c, h, now);
        else
                snib__release_wake(c, h, now);
}

static void wake_call(struct snib__core *c, struct snib__call *call, snib__ns now)
{
        if (call->kind == SNIB__CALL_ACQUIRE)
                snib__wait_call_over(c, call, now);
        else
                snib__release_call_over(c, call, now);
}

static void wake(struct snib__core *c, struct snib__timer *t, snib__ns now)
{
        switch ((enum snib__timer_of)t->node.tag) {
        case SNIB__TIMER_HOLD:
                wake_hold(c, snib__container(t, struct snib__hold, timer), now);
                break;
        case SNIB__TIMER_CALL:
                wake_call(c, snib__container(t, struct snib__call, timer), now);
                break;
        case SNIB__TIMER_ASK:
                snib__ask_wake(c, snib__container(t, struct snib__ask, timer), now);
                break;
        }
}

void snib__core_tick(struct snib__core *c, snib__ns now)
{
        struct snib__timer *t;

        while ((t = snib__timer_first(c)) && t->due <= now) {
                snib__timer_set(c, t, SNIB__NEVER);
                wake(c, t, now);
        }
        snib__held_resume(c, now);
}

snib__ns snib__core_deadline(const struct snib__core *c)
{
        const struct snib__timer *t = snib__timer_first(c);

        return t ? t->due : SNIB__NEVER;
}
