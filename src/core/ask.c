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
        a->sent_at = now;
        set_outstanding(c, a, true);
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
        a->submit = false;
        a->cookie = 0;
        set_outstanding(c, a, false);
        snib__timer_set(c, &a->timer, SNIB__NEVER);
        snib__list_remove(&a->link);
        dirty(c, a);
}

/* Changes something that a repetition would change again, but for the engine's memory of the id. */
static bool counts(const struct snib__ask *a)
{
        return snib__verb_changes(a->op.verb) || a->op.verb == SNIB__RELEASE;
}

/* The latest request may have been executed, or not. */
static void doubt(struct snib__ask *a)
{
        if (!a->in_doubt)
                a->doubt_since = a->sent_at;
        a->in_doubt = true;
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
                snib__ask_answer(c, a, r->held || (a->in_doubt && verb == SNIB__FORCE));
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
        if (a->fault.code == 0 || (a->in_doubt && counts(a) && !SNIB__BUG(doubt_told_as_failure)))
                a->fault.code = SNIB_EUNKNOWN;
        return a->fault.code;
}

bool snib__core_reply_ask(struct snib__core *c, struct snib__ask *a, uint64_t cookie, uint32_t attempt,
                          const struct snib__reply *r, snib__ns now)
{
        if (a->cookie != cookie || cookie == 0 || a->attempt != attempt || !a->outstanding)
                return false;
        set_outstanding(c, a, false);
        if (r->status != SNIB__FAILED) {
                if (take(c, a, r))
                        return true;
                a->fault = (struct snib__fault){SNIB_EPROTOCOL, 0, "the engine's answer is not one to this question"};
                snib__ask_answer(c, a, SNIB_EPROTOCOL);
        } else if (snib__reply_passing(r)) {
                snib__fault_set(&a->fault, r);
                a->failures++;
                if (r->error == SNIB_EUNKNOWN)
                        doubt(a);
                sleep_until(c, a, snib__after(now, snib__backoff(c, a->failures, SNIB__BACKOFF_MAX)));
        } else {
                snib__fault_set(&a->fault, r); /* an earlier copy may still be executed, and not be refused */
                snib__ask_answer(c, a, blame_code(a));
        }
        return true;
}

void snib__ask_wake(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        static const struct snib__reply late = {
            .status = SNIB__FAILED, .error = SNIB_EUNKNOWN, .error_text = "the engine did not answer in time"};

        if (a->outstanding && (now >= a->wake_at || now >= a->deadline)) {
                set_outstanding(c, a, false);
                a->submit = false;
                doubt(a);
                snib__fault_set(&a->fault, &late);
        }
        if (!a->op.verb)
                snib__ask_answer(c, a, 0);
        else if (now >= a->deadline)
                snib__ask_answer(c, a, blame_code(a));
        else if (a->in_doubt && counts(a) && now - a->doubt_since > SNIB__DOUBT_MAX)
                snib__ask_answer(c, a, SNIB_EUNKNOWN);
        else
                submit(c, a, now);
}

void snib__ask_retry_now(struct snib__core *c, struct snib__ask *a, snib__ns now)
{
        if (!a->outstanding && a->op.verb)
                snib__ask_wake(c, a, now);
}
