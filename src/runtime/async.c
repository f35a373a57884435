/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of every asynchronous call: a pooled record that waits in the program's place, and is
 * queued for the dispatcher when core has answered. What is asked for is begun elsewhere (hold.c,
 * ask.c), with the same functions as for a blocking call.
 */

#include "base/error.h"
#include "runtime/runtime.h"

/* All that a callback can be told. */
struct told {
        int result;
        struct snib_grant *grant;
        struct snib_lock_info info;
        int64_t number;
        struct snib_value found;
        struct snib_error err;
};

static void take_call(struct snib__async *a, struct told *ret)
{
        const struct snib__call *call = &a->wait.call;

        ret->result = call->result;
        ret->grant = call->result == 1 ? a->wait.grant : NULL;
        ret->number = call->holder.value;
        if (call->result < 0)
                (void)snib__fault_error(&ret->err, call->result, &call->fault, &a->wait.about);
}

static void take_question(struct snib__async *a, struct told *ret)
{
        struct snib__question *q = a->question;

        ret->result = q->ask.result;
        ret->number = q->ask.reply.value;
        ret->found = q->found;
        q->found = (struct snib_value)SNIB_VALUE_INIT;
        if (q->ask.result < 0)
                (void)snib__fault_error(&ret->err, q->ask.result, &q->ask.fault, &a->wait.about);
}

static void tell(const struct snib__then *then, struct told *t)
{
        const struct snib_error *err = t->result < 0 ? &t->err : NULL;

        if (then->acquired)
                then->acquired(then->arg, t->result, t->grant, err);
        else if (then->done)
                then->done(then->arg, t->result, err);
        else if (then->info)
                then->info(then->arg, t->result, err ? NULL : &t->info, err);
        else if (then->value)
                then->value(then->arg, t->result, t->number, err);
        else
                then->read(then->arg, t->result, err ? NULL : &t->found, err);
}

/* The record is free again before the callback, which may begin the next call. */
static void run(struct snib_client *c, struct snib__event *event)
{
        struct snib__async *a = snib__container(event, struct snib__async, event);
        struct snib__then then = a->then;
        struct told t = {.err = SNIB_ERROR_INIT};

        snib__client_lock(c);
        if (a->question)
                take_question(a, &t);
        else
                take_call(a, &t);
        if (then.info)
                t.info = a->info;
        if (a->question)
                snib__question_free(c, a->question);
        snib__async_free(c, a);
        snib__client_unlock(c);
        tell(&then, &t);
        snib__value_free(&t.found);
}

int snib__async_enter(struct snib_client *c, const struct snib__then *then, struct snib__async **ret,
                      struct snib_error *err)
{
        struct snib__async *a;
        int r;

        *ret = NULL;
        snib__client_enter(c);
        if (c->closing)
                return snib__closed(err);
        if ((r = snib__keeper_start(c, err)) < 0 || (r = snib__dispatch_start(c, err)) < 0)
                return r;
        if (!(a = snib__async_new(c)))
                return snib__no_memory(err);
        a->event.run = run;
        a->then = *then;
        if (then->info) {
                a->info = (struct snib_lock_info)SNIB_LOCK_INFO_INIT;
                a->wait.info = &a->info;
        }
        *ret = a;
        return 0;
}

int snib__async_leave(struct snib_client *c, struct snib__async *a, int result)
{
        if (result == 0)
                c->background++;
        else if (a)
                snib__async_free(c, a);
        snib__drive_step(c);
        snib__client_leave(c);
        return result;
}
