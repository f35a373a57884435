/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions about a lock that no hold stands behind: query and force-release. Asked again after a failure that may
 * pass, until the deadline.
 */

#include "core/internal.h"

static void dirty(struct snib__core *c, struct snib__ask *a)
{
        if (!snib__list_linked(&a->dirty))
                snib__list_append(&c->dirty_asks, &a->dirty);
}

static void set_outstanding(struct snib__core *c, struct snib__ask *a, bool value)
{
        c->outstanding += (int)value - (int)a->outstanding;
        a->outstanding = value;
}

static void sleep_until(struct snib__core *c, struct snib__ask *a, snib__ns when)
{
        a->wake_at = when;
        snib__timer_set(c, &a->timer, snib__min(when, a->deadline));
}

static void submit(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        a->attempt++;
        a->submit = true;
        set_outstanding(c, a, true);
        dirty(c, a);
        sleep_until(c, a, snib__after(now, c->config.op_timeout));
}

void snib__core_ask(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        snib__core_tick(c, now);
        a->cookie = ++c->cookies;
        a->timer.of = SNIB__TIMER_ASK;
        snib__list_append(&c->asks, &a->link);
        submit(c, a, now);
}

void snib__ask_answer(struct snib__core *c, struct snib__ask *a, int result)
{
        a->result = result;
        a->answered = true;
        a->submit = false;
        a->cookie = 0;
        set_outstanding(c, a, false);
        snib__timer_set(c, &a->timer, SNIB__NEVER);
        snib__list_remove(&a->link);
        dirty(c, a);
}

void snib__core_reply_ask(struct snib__core *c, struct snib__ask *a, uint64_t cookie, uint32_t attempt,
                          const struct snib__reply *r, snib__ns now)
{
        if (a->cookie != cookie || cookie == 0 || a->attempt != attempt || !a->outstanding)
                return;
        set_outstanding(c, a, false);
        if (r->status == SNIB__INFO) {
                a->reply = *r;
                /* A force whose first try may have worked and that now finds nothing has done its work. */
                snib__ask_answer(c, a, r->held || (a->in_doubt && a->op.verb == SNIB__FORCE));
        } else if (r->status != SNIB__FAILED) {
                a->fault = (struct snib__fault){SNIB_EPROTOCOL, 0, "the engine's answer is not one to this question"};
                snib__ask_answer(c, a, SNIB_EPROTOCOL);
        } else if (snib__reply_passing(r)) {
                snib__fault_set(&a->fault, r);
                a->failures++;
                a->in_doubt |= r->error == SNIB_EUNKNOWN;
                sleep_until(c, a, snib__after(now, snib__backoff(c, a->failures, SNIB__BACKOFF_MAX)));
        } else {
                snib__fault_set(&a->fault, r);
                snib__ask_answer(c, a, r->error);
        }
}

void snib__ask_wake(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        static const struct snib__reply late = {
            .status = SNIB__FAILED, .error = SNIB_EUNKNOWN, .error_text = "the engine did not answer in time"};

        if (a->outstanding && (now >= a->wake_at || now >= a->deadline)) {
                set_outstanding(c, a, false);
                a->submit = false;
                a->in_doubt = true;
                snib__fault_set(&a->fault, &late);
        }
        if (now >= a->deadline)
                snib__ask_answer(c, a, a->fault.code < 0 ? a->fault.code : SNIB_EUNKNOWN);
        else
                submit(c, a, now);
}

void snib__ask_retry_now(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        if (!a->outstanding)
                submit(c, a, now);
}
