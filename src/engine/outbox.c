/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two lists of an outbox, and the one way to fail. Not where notes are made: each engine writes
 * its own. Invariants: a letter is on at most one list; the order of posting is that of taking.
 */

#include "engine/outbox.h"

void snib__outbox_init(struct snib__outbox *o, void *owner)
{
        snib__list_init(&o->posted);
        snib__list_init(&o->taken);
        o->owner = owner;
}

void snib__outbox_post(struct snib__outbox *o, struct snib__letter *l, const struct snib__letter_kind *kind)
{
        if (snib__list_linked(&l->link))
                return;
        l->kind = kind;
        snib__list_append(&o->posted, &l->link);
}

void snib__outbox_withdraw(struct snib__letter *l)
{
        snib__list_remove(&l->link);
}

static struct snib__letter *take(struct snib__list *from)
{
        struct snib__list *first = snib__list_take(from);

        return first ? snib__container(first, struct snib__letter, link) : NULL;
}

bool snib__outbox_next(struct snib__outbox *o, struct snib__note *ret)
{
        struct snib__letter *l = take(&o->posted);

        if (!l)
                return false;
        if (l->kind->write(o->owner, l, ret))
                snib__list_append(o->posted.next, &l->link); /* before the first */
        else if (l->kind->back)
                snib__list_append(&o->taken, &l->link);
        return true;
}

void snib__outbox_recycle(struct snib__outbox *o, snib__ns now)
{
        for (struct snib__letter *l; (l = take(&o->taken));)
                l->kind->back(o->owner, l, now);
}

struct snib__letter *snib__outbox_drain(struct snib__outbox *o)
{
        struct snib__letter *l = take(&o->posted);

        return l ? l : take(&o->taken);
}

const struct snib_error snib__reply_no_memory = {
    .size = sizeof(struct snib_error), .code = SNIB_ENOMEM, .text = "out of memory"};

struct snib__reply snib__reply_failed(int kind, const struct snib_error *why)
{
        return (struct snib__reply){.status = SNIB__FAILED,
                                    .kind = kind,
                                    .error = why->code,
                                    .engine_code = why->engine_code,
                                    .error_text = why->text,
                                    .left_ms = -1,
                                    .waiters = -1,
                                    .holders = -1,
                                    .value = -1,
                                    .limit = -1};
}
