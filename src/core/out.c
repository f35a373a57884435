/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The room of what goes out: the calls that have their answer, the holds and asks that want
 * something, and the effects, which are pulled of them one by one. Not the decisions. Pure; one
 * thread at a time.
 *
 * Losses come first, answers before requests: whoever is told something knows already what he lost.
 */

#include "core/internal.h"

void snib__hold_dirty(struct snib__core *c, struct snib__hold *h)
{
        if (!snib__list_linked(&h->dirty))
                snib__list_append(&c->dirty_holds, &h->dirty);
}

struct snib__call *snib__call_of(struct snib__list *link)
{
        return snib__container(link, struct snib__call, link);
}

const struct snib__fault snib__heard;

void snib__call_answer(struct snib__core *c, struct snib__call *call, int result, const struct snib__fault *fault)
{
        snib__assert(call->hold);
        call->hold = NULL;
        call->result = result;
        if (!fault)
                call->fault.engine_code = call->fault.text[0] = 0;
        else if (fault != SNIB__HEARD)
                call->fault = *fault;
        call->fault.code = fault ? result : 0;
        snib__timer_set(c, &call->timer, SNIB__NEVER);
        snib__list_remove(&call->link);
        snib__list_append(&c->answered, &call->link);
}

void snib__hold_failed(struct snib__hold *h, const struct snib__reply *r)
{
        h->request.fault = (int16_t)r->error;
        snib__list_each (it, &h->calls)
                snib__fault_set(&snib__call_of(it)->fault, r);
}

void snib__calls_answer(struct snib__core *c, struct snib__hold *h, enum snib__call_kind kind, int result,
                        const struct snib__fault *fault)
{
        for (struct snib__list *it = h->calls.next, *next; it != &h->calls; it = next) {
                next = it->next;
                if (snib__call_of(it)->kind == kind)
                        snib__call_answer(c, snib__call_of(it), result, fault);
        }
}

bool snib__calls_want(const struct snib__hold *h, enum snib__call_kind kind)
{
        snib__list_each (it, (struct snib__list *)&h->calls)
                if (snib__call_of(it)->kind == kind)
                        return true;
        return false;
}

static bool effect(struct snib__effect *ret, enum snib__effect_kind kind, struct snib__hold *h)
{
        *ret = (struct snib__effect){.kind = kind, .hold = h};
        return true;
}

/* The write hold of the same owner lets a reader in, also one that began to wait before the owner
 * had it. */
static void name_own_writer(struct snib__core *c, const struct snib__hold *h, struct snib__id *ret)
{
        const struct snib__hold *writer = snib__core_find(c, h->name, h->owner, SNIB_KIND_WRITE);

        if (writer && writer->state == SNIB__HELD)
                *ret = writer->known.id;
}

/* What a hold asks for, in the core's own op: the fields that no hold sets stay zero. */
static void fill_op(struct snib__core *c, struct snib__hold *h, struct snib__op *op)
{
        op->verb = h->verb;
        op->kind = h->kind;
        op->enqueue = h->verb == SNIB__ACQUIRE && h->known.queued;
        op->n = h->n;
        op->settled = !h->request.stray;
        op->number = h->request.attempt;
        op->streak = h->generous ? SNIB__STREAK_MAX : h->known.streak;
        op->name = h->name;
        op->id = h->known.id;
        op->who = c->config.who;
        op->lease_ms = h->lease / SNIB__MS;
        op->leave = h->leaving;
        if (h->leaving)
                op->lease_ms = (snib__max(h->leave_end - h->request.sent_at, 1) + SNIB__MS - 1) / SNIB__MS;
        op->token = 0;
        op->under.text[0] = 0;
        if (h->verb != SNIB__ACQUIRE)
                return;
        if (h->observe)
                op->verb = SNIB__OBSERVE;
        if (h->observe || !SNIB__BUG(token_not_compared_on_reentry))
                op->token = h->token - h->passed;
        if (h->kind == SNIB_KIND_READ && !SNIB__BUG(own_writer_not_named))
                name_own_writer(c, h, &op->under);
}

static bool submit_hold(struct snib__core *c, struct snib__hold *h, struct snib__effect *ret)
{
        effect(ret, SNIB__EFFECT_SUBMIT, h);
        fill_op(c, h, &c->op);
        h->request.submit = false;
        ret->op = &c->op;
        ret->cookie = h->cookie;
        ret->attempt = h->request.attempt;
        return true;
}

/* The next effect of a dirty hold, in the order in which they make sense; false if it has none
 * left. */
static bool next_of_hold(struct snib__core *c, struct snib__hold *h, struct snib__effect *ret)
{
        if (h->lost_pending) {
                h->lost_pending = false;
                c->losses--;
                return effect(ret, SNIB__EFFECT_LOST, h);
        }
        if (h->known.watch.end) {
                h->known.watch.end = false;
                return effect(ret, SNIB__EFFECT_UNWATCH, h);
        }
        if (h->known.watch.begin) {
                h->known.watch.begin = false;
                return effect(ret, SNIB__EFFECT_WATCH, h);
        }
        if (h->request.submit)
                return submit_hold(c, h, ret);
        snib__list_remove(&h->dirty);
        return h->state == SNIB__IDLE && effect(ret, SNIB__EFFECT_FREE, h);
}

/* Whoever was told of it goes to the end: where all are lost the next one is the first. */
static bool next_loss(struct snib__core *c, struct snib__effect *ret)
{
        snib__list_each (it, &c->dirty_holds) {
                struct snib__hold *h = snib__container(it, struct snib__hold, dirty);

                if (!h->lost_pending)
                        continue;
                snib__list_remove(&h->dirty);
                snib__list_append(&c->dirty_holds, &h->dirty);
                return next_of_hold(c, h, ret);
        }
        return false;
}

bool snib__core_next(struct snib__core *c, struct snib__effect *ret)
{
        if (c->losses > 0 && next_loss(c, ret))
                return true;
        if (!snib__list_empty(&c->answered)) {
                struct snib__call *call = snib__call_of(snib__list_take(&c->answered));

                effect(ret, SNIB__EFFECT_ANSWER, NULL);
                ret->call = call;
                return true;
        }
        while (!snib__list_empty(&c->dirty_asks)) {
                struct snib__ask *a = snib__container(snib__list_take(&c->dirty_asks), struct snib__ask, dirty);

                effect(ret, a->answered ? SNIB__EFFECT_ANSWER_ASK : SNIB__EFFECT_SUBMIT, NULL);
                ret->ask = a;
                ret->op = &a->op;
                ret->cookie = a->cookie;
                ret->attempt = a->request.attempt;
                if (a->answered || a->request.submit) {
                        a->request.submit = false;
                        return true;
                }
        }
        while (!snib__list_empty(&c->dirty_holds))
                if (next_of_hold(c, snib__container(c->dirty_holds.next, struct snib__hold, dirty), ret))
                        return true;
        return false;
}
