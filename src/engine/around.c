/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hands every function of an engine on to the one inside. Not a decorator: it changes nothing and
 * keeps nothing. Every thread of engine.h's rules is that of the inner engine.
 */

#include "engine/around.h"
#include "base/list.h"

static struct snib__engine *inner_of(const struct snib__engine *e)
{
        return snib__container(e, const struct snib__around, base)->inner;
}

static const struct snib__facts *facts(const struct snib__engine *e)
{
        return inner_of(e)->ops->facts(inner_of(e));
}

bool snib__around_submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        return inner_of(e)->ops->submit(inner_of(e), tag, op, now);
}

bool snib__around_list(struct snib__engine *e, struct snib__tag tag, snib__ns now)
{
        return inner_of(e)->ops->list(inner_of(e), tag, now);
}

void snib__around_watch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now)
{
        inner_of(e)->ops->watch(inner_of(e), topic, now);
}

void snib__around_unwatch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now)
{
        inner_of(e)->ops->unwatch(inner_of(e), topic, now);
}

void snib__around_interest(struct snib__engine *e, snib__ns now, struct snib__interest *ret)
{
        inner_of(e)->ops->interest(inner_of(e), now, ret);
}

static void flush(struct snib__engine *e)
{
        inner_of(e)->ops->flush(inner_of(e));
}

void snib__around_process(struct snib__engine *e, const struct snib__interest *ready, snib__ns now)
{
        inner_of(e)->ops->process(inner_of(e), ready, now);
}

void snib__around_unheard(struct snib__engine *e, struct snib__tag tag)
{
        inner_of(e)->ops->unheard(inner_of(e), tag);
}

bool snib__around_next(struct snib__engine *e, struct snib__note *ret)
{
        return inner_of(e)->ops->next(inner_of(e), ret);
}

static bool concerns(const struct snib__engine *e, const struct snib__note *n, struct snib__name name)
{
        return inner_of(e)->ops->concerns(inner_of(e), n, name);
}

void snib__around_close(struct snib__engine *e)
{
        inner_of(e)->ops->close(inner_of(e));
}

void snib__around_forked(struct snib__engine *e)
{
        inner_of(e)->ops->forked(inner_of(e));
}

void snib__around_init(struct snib__around *a, struct snib__engine *inner)
{
        const struct snib__engine_ops *of = inner->ops;

        a->inner = inner;
        a->base.ops = &a->ops;
        a->ops = *of;
        a->ops.facts = facts;
        a->ops.submit = snib__around_submit;
        a->ops.list = snib__around_list;
        a->ops.watch = of->watch ? snib__around_watch : NULL;
        a->ops.unwatch = of->unwatch ? snib__around_unwatch : NULL;
        a->ops.interest = snib__around_interest;
        a->ops.flush = of->flush ? flush : NULL;
        a->ops.process = snib__around_process;
        a->ops.unheard = of->unheard ? snib__around_unheard : NULL;
        a->ops.next = snib__around_next;
        a->ops.concerns = of->concerns ? concerns : NULL;
        a->ops.close = snib__around_close;
        a->ops.forked = snib__around_forked;
}
