/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The hand-over of the baton: see baton.h. The driver that leaves names its successor at once,
 * under the same lock, so that no wake-up can fall between two drivers; a successor that was
 * answered meanwhile leaves in turn and names the next.
 */

#include "runtime/baton.h"

void snib__baton_init(struct snib__baton *b)
{
        snib__list_init(&b->waiting);
        b->driver = NULL;
}

void snib__baton_enter(struct snib__baton *b, struct snib__baton_member *m)
{
        snib__list_append(&b->waiting, &m->link);
}

bool snib__baton_take(struct snib__baton *b, struct snib__baton_member *m)
{
        if (!b->driver)
                b->driver = m;
        return b->driver == m;
}

void snib__baton_done(struct snib__baton *b, struct snib__baton_member *m)
{
        if (b->driver != m)
                snib__list_remove(&m->link);
}

struct snib__baton_member *snib__baton_leave(struct snib__baton *b, struct snib__baton_member *m)
{
        snib__list_remove(&m->link);
        return snib__baton_pass(b, m);
}

struct snib__baton_member *snib__baton_pass(struct snib__baton *b, struct snib__baton_member *m)
{
        if (b->driver != m)
                return NULL;
        b->driver = NULL;
        if (snib__list_empty(&b->waiting))
                return NULL;
        b->driver = snib__container(b->waiting.prev, struct snib__baton_member, link);
        return b->driver;
}
