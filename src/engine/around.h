/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_AROUND_H
#define SNIB_ENGINE_AROUND_H

/*
 * An engine around another one: what a decorator begins with. It hands everything on and has the
 * facts of the inner one; a decorator embeds it first in its own struct and puts its own functions
 * into `ops`, which call those here.
 */

#include "engine/engine.h"

struct snib__around {
        struct snib__engine base;
        struct snib__engine_ops ops; /* base.ops; what the inner engine has not is NULL */
        struct snib__engine *inner;
};

/* `a` stands in place of `inner` from now on. */
void snib__around_init(struct snib__around *a, struct snib__engine *inner);

bool snib__around_submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now);
bool snib__around_list(struct snib__engine *e, struct snib__tag tag, snib__ns now);
void snib__around_watch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now);
void snib__around_unwatch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now);
void snib__around_interest(struct snib__engine *e, snib__ns now, struct snib__interest *ret);
void snib__around_process(struct snib__engine *e, const struct snib__interest *ready, snib__ns now);
void snib__around_unheard(struct snib__engine *e, struct snib__tag tag);
bool snib__around_next(struct snib__engine *e, struct snib__note *ret);
void snib__around_forked(struct snib__engine *e);
/* Closes the inner one. The decorator frees itself. */
void snib__around_close(struct snib__engine *e);

#endif
