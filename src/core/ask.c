/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that no hold stands behind: questions, forced releases, changes of a number or a value.
 * Sent again after a failure that may pass, with the same id, until the deadline, or until the
 * engine may have forgotten what it did with the id. And pauses: nothing is asked, and the deadline
 * is the answer.
 */

#include "core/internal.h"

static void dirty(struct snib__core *c, struct snib__ask *a)
{
        if (!snib__list_linked(&a->dirty))
                snib__list_append(&c->dirty_asks, &a->dirty);
}

static void sleep_until(struct snib__core *c, struct snib__ask *a, snib__ns when)
{
        a->request.wake_at = when;
        snib__timer_set(c, &a->timer, snib__min(when, a->deadline));
}

static void submit(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        snib__request_send(c, &a->request, now);
        dirty(c, a);
        sleep_until(c, a, snib__after(now, c->config.op_timeout));
}

void snib__core_ask(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        snib__core_tick(c, now);
        a->cookie = ++c->cookies;
        a->timer.node.tag = SNIB__TIMER_ASK;
        snib__list_append(&c->asks, &a->link);
        if (a->op.verb)
                submit(c, a, now);
        else
                sleep_until(c, a, a->deadline);
}

void snib__ask_answer(struct snib__core *c, struct snib__ask *a, int result)
{
        a->result = result;
        a->answered = true;
        a->request.submit = false;
        a->cookie = 0;
        snib__request_end(c, &a->request);
        snib__timer_set(c, &a->timer, SNIB__NEVER);
        snib__list_remove(&a->link);
        dirty(c, a);
}

/* Changes something that a repetition would change again, but for the engine's memory of the id. */
static bool counts(const struct snib__ask *a)
{
        return snib__verb_changes(a->op.verb) || a->op.verb == SNIB__RELEASE;
}

/* What an answer means; false: it is not one to this request. */
static bool take(struct snib__core *c, struct snib__ask *a, const struct snib__reply *r)
{
        enum snib__verb verb = a->op.verb;
        bool change = snib__verb_changes(verb);

        a->reply = *r;
        if (r->status == SNIB__INFO && (verb == SNIB__QUERY || verb == SNIB__FORCE))
                /* A force whose first try may have worked and that now finds nothing has done its
                 * work. */
                snib__ask_answer(c, a, r->held || (a->request.in_doubt && verb == SNIB__FORCE));
        else if (r->status == SNIB__DONE && change)
                snib__ask_answer(c, a, r->applied);
        else if (r->status == (verb == SNIB__RELEASE ? SNIB__RELEASED : SNIB__RENEWED) && !change)
                snib__ask_answer(c, a, 1);
        else if (r->status == SNIB__GONE && (verb == SNIB__RELEASE || verb == SNIB__RENEW))
                snib__ask_answer(c, a, SNIB_ENOTOWNER);
        else
                return false;
        return true;
}

/* "Certainly not executed", or refused, only if that is so. */
static int blame_code(struct snib__ask *a)
{
        if (a->fault.code == 0 || (a->request.in_doubt && counts(a) && !SNIB__BUG(doubt_told_as_failure)))
                a->fault.code = SNIB_EUNKNOWN;
        return a->fault.code;
}

bool snib__core_reply_ask(struct snib__core *c, struct snib__ask *a, uint64_t cookie, uint32_t attempt,
                          const struct snib__reply *r, snib__ns now)
{
        if (a->cookie != cookie || cookie == 0 || a->request.attempt != attempt || !a->request.outstanding)
                return false;
        snib__request_end(c, &a->request);
        if (r->status != SNIB__FAILED) {
                if (take(c, a, r))
                        return true;
                a->fault = (struct snib__fault){SNIB_EPROTOCOL, 0, "the engine's answer is not one to this question"};
                snib__ask_answer(c, a, SNIB_EPROTOCOL);
        } else if (snib__reply_passing(r)) {
                snib__fault_set(&a->fault, r);
                if (r->error == SNIB_EUNKNOWN)
                        snib__request_doubt(&a->request);
                sleep_until(c, a, snib__after(now, snib__request_backoff(c, &a->request, SNIB__BACKOFF_MAX)));
        } else {
                snib__fault_set(&a->fault, r); /* an earlier copy may still be executed, and not be refused */
                snib__ask_answer(c, a, blame_code(a));
        }
        return true;
}

void snib__ask_wake(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        if (a->request.outstanding && (now >= a->request.wake_at || now >= a->deadline)) {
                snib__request_end(c, &a->request);
                a->request.submit = false;
                snib__request_doubt(&a->request);
                snib__fault_set(&a->fault, &snib__late);
        }
        if (!a->op.verb)
                snib__ask_answer(c, a, 0);
        else if (now >= a->deadline)
                snib__ask_answer(c, a, blame_code(a));
        else if (counts(a) && snib__request_too_old(&a->request, now))
                snib__ask_answer(c, a, SNIB_EUNKNOWN);
        else
                submit(c, a, now);
}

void snib__ask_retry_now(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        if (!a->request.outstanding && a->op.verb)
                snib__ask_wake(c, a, now);
}
