/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handle that every noun is made of: a name, as what kind it is used, and how. Checks names,
 * options and what the engine can do; makes and frees. Not the calls: each noun has its own file.
 * Any thread.
 */

#include "api/internal.h"
#include "base/alloc.h"
#include "base/error.h"
#include "engine/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWNER_MAX 200
_Static_assert(OWNER_MAX + 3 <= SNIB__OWNER_KEY_MAX, "an owner key has room for its prefix and a NUL");

int snib__name_check(const char *name, size_t given_length, size_t *ret_length, struct snib_error *err)
{
        size_t length = given_length;

        if (!name)
                return snib__error(err, SNIB_ENAME, "the argument name is NULL; pass 1 to %d bytes", SNIB_NAME_MAX);
        if (length == 0)
                length = strnlen(name, SNIB_NAME_MAX + 1);
        if (length == 0)
                return snib__error(err, SNIB_ENAME, "the name is empty; pass 1 to %d bytes", SNIB_NAME_MAX);
        if (length > SNIB_NAME_MAX)
                return snib__error(err, SNIB_ENAME, "the name is longer than %d bytes; shorten or hash it",
                                   SNIB_NAME_MAX);
        if (given_length && memchr(name, 0, length))
                return snib__error(err, SNIB_ENAME,
                                   "the name has a NUL byte within its length (%zu bytes); names are bytes without NUL",
                                   given_length);
        *ret_length = length;
        return 0;
}

static int owner_check(const char *owner, struct snib_error *err)
{
        if (!owner)
                return 0;
        if (!*owner)
                return snib__error(err, SNIB_EINVAL,
                                   "options.owner is empty; pass 1 to %d bytes, or NULL for the calling thread",
                                   OWNER_MAX);
        if (strnlen(owner, OWNER_MAX + 1) > OWNER_MAX)
                return snib__error(err, SNIB_EINVAL, "options.owner is longer than %d bytes; shorten or hash it",
                                   OWNER_MAX);
        return 0;
}

static int kind_check(int kind, bool lock, struct snib_error *err)
{
        if (!lock && kind != 0)
                return snib__error(err, SNIB_EINVAL, "options.kind is %d; only locks have kinds, leave it 0", kind);
        if (!snib__lock_kind(kind))
                return snib__error(err, SNIB_EINVAL, "options.kind is %d; use one of enum snib_lock_kind", kind);
        return 0;
}

int snib__object_options(struct snib_lock_options *ret, const struct snib_lock_options *given, bool lock,
                         struct snib_error *err)
{
        int r;

        if ((r = snib__options_copy(ret, sizeof(*ret), SNIB__FIRST_LOCK_OPTIONS, given, "options", err)) < 0 ||
            (r = kind_check(ret->kind, lock, err)) < 0)
                return r;
        if (ret->fixed_lease != 0 && ret->fixed_lease != 1)
                return snib__error(err, SNIB_EINVAL, "options.fixed_lease is %d; use 0 or 1", ret->fixed_lease);
        if (ret->max_hold_ms < 0)
                return snib__error(err, SNIB_EINVAL,
                                   "options.max_hold_ms is %lld; use a positive number of milliseconds, or 0 for none",
                                   (long long)ret->max_hold_ms);
        if ((r = owner_check(ret->owner, err)) < 0)
                return r;
        return snib__lease_check(ret->lease_ms, "options.lease_ms", err);
}

static int engine_check(const struct snib_client *c, int kind, struct snib_error *err)
{
        const struct snib__facts *own = c->engine->ops->facts(c->engine), *f;
        unsigned cap = snib__kind(kind)->cap;
        char others[128] = "no engine of this build does";

        if (!(cap & ~own->info.caps))
                return 0;
        for (int i = 0, n = 0; (f = snib__engine_form(i)); i++)
                if ((f->info.caps & cap) && n < (int)sizeof(others))
                        n += snprintf(others + n, sizeof(others) - (size_t)n, "%s%s:", n ? ", " : "use ", f->info.name);
        return snib__error(err, SNIB_EUNSUPPORTED, "the engine %s has nothing of the kind \"%s\"; %s", own->info.name,
                           snib__kind(kind)->text, others);
}

/* With Redis Cluster, "{...}" chooses the slot. A brace that opens and does not close, or closes at
 * once, looks like it and is none. */
static void braces_warn(struct snib_client *client, const char *name, size_t length)
{
        const char *open = memchr(name, '{', length);
        const char *close = open ? memchr(open, '}', length - (size_t)(open - name)) : NULL;

        if ((open && (!close || close == open + 1)) || (!open && memchr(name, '}', length)))
                snib__client_trace(client, "warning: the braces in a name are no hash tag: they will not keep its keys "
                                           "in one slot of a cluster");
}

static int owner_copy(struct snib__object *object, const char *owner)
{
        size_t length = owner ? strlen(owner) : 0;

        if (!owner)
                return 0;
        object->owner_length = length + 2;
        object->owner = snib__alloc(length + 3);
        if (!object->owner)
                return SNIB_ENOMEM;
        memcpy(object->owner, "k:", 2); /* a thread's key begins with "t:" */
        memcpy(object->owner + 2, owner, length);
        return 0;
}

int snib__object_init(struct snib__object *object, struct snib_client *client, const char *name, int kind,
                      const struct snib_lock_options *o, struct snib_error *err)
{
        size_t length = 0;
        int r;

        snib__list_init(&object->waits);
        if (!client)
                return snib__null("client", err);
        if ((r = snib__alive(client, err)) < 0 || (r = snib__name_check(name, o->name_len, &length, err)) < 0 ||
            (r = engine_check(client, kind, err)) < 0)
                return r;
        object->client = client;
        object->name = snib__copy(name, length);
        if (!object->name || owner_copy(object, o->owner) < 0)
                return snib__error(err, SNIB_ENOMEM, "no memory for a handle; free some and try again");
        object->name_length = length;
        object->kind = kind;
        object->reentrant = true;
        object->fixed = o->fixed_lease;
        object->lease = o->lease_ms ? o->lease_ms * SNIB__MS : client->lease;
        object->max_hold = o->max_hold_ms > SNIB__NEVER / SNIB__MS ? SNIB__NEVER : o->max_hold_ms * SNIB__MS;
        braces_warn(client, name, length);
        return 0;
}

void snib__object_done(struct snib__object *object)
{
        /* Usually nothing waits, and then the client is not touched: it may be closed already. */
        if (!snib__list_empty(&object->waits) && snib__alive(object->client, NULL) == 0)
                snib__object_detach(object);
        free(object->name);
        free(object->owner);
}

int snib__object_new(struct snib__object **ret, struct snib_client *client, const char *name, int kind,
                     const struct snib_lock_options *o, struct snib_error *err)
{
        struct snib__object *object = snib__alloc(sizeof(*object));
        int r;

        if (!object)
                return snib__error(err, SNIB_ENOMEM, "no memory for a handle; free some and try again");
        r = snib__object_init(object, client, name, kind, o, err);
        if (r < 0)
                snib__object_free(object);
        else
                *ret = object;
        return r;
}

void snib__object_free(struct snib__object *object)
{
        if (!object)
                return;
        snib__object_done(object);
        free(object);
}

int snib__object_check(const struct snib__object *object, const char *what, struct snib_error *err)
{
        return object ? snib__alive(object->client, err) : snib__null(what, err);
}

int snib__object_cancel(struct snib__object *object)
{
        int r = snib__object_check(object, "handle", NULL);

        return r < 0 ? r : snib__cancel(object);
}

int snib__count(struct snib__object *object, const struct snib__op *op, struct snib__receiver to,
                struct snib_error *err)
{
        struct snib__then then = {.value = to.done, .arg = to.arg};
        struct snib__asked asked = {0};
        int r;

        if (to.later)
                return to.done ? snib__ask_async(object, op, &then, err) : snib__null("done", err);
        r = snib__ask(object, op, &asked, err);
        if (r == 1 && to.ret_value)
                *to.ret_value = asked.reply.value;
        return r;
}

int snib__take(struct snib__object *object, int64_t wait_ms, struct snib_grant **ret_grant, struct snib_error *err)
{
        struct snib__want want = {0};
        int r = ret_grant ? snib__patience_check(wait_ms, &want.patience, err) : snib__null("ret_grant", err);

        return r < 0 ? r : snib__acquire(object, &want, ret_grant, NULL, err);
}

int snib__take_async(struct snib__object *object, int64_t wait_ms, snib_acquired_callback *acquired, void *arg,
                     struct snib_error *err)
{
        struct snib__then then = {.acquired = acquired, .arg = arg};
        struct snib__want want = {0};
        int r = snib__patience_check(wait_ms, &want.patience, err);

        return r < 0 ? r : snib__acquire_async(object, &want, &then, err);
}

int snib__describe(struct snib__object *object, struct snib_lock_info *ret_info, const char *what,
                   struct snib_error *err)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib__asked asked = {.info = &info};
        int r = snib__result_check(ret_info, what, err);

        if (r < 0)
                return r;
        r = snib__ask(object, &(struct snib__op){.verb = SNIB__QUERY}, &asked, err);
        if (r >= 0)
                (void)snib__result_copy(ret_info, &info, sizeof(info), SNIB__FIRST_LOCK_INFO, what, err);
        return r;
}

int snib__describe_async(struct snib__object *object, snib_info_callback *done, void *arg, struct snib_error *err)
{
        struct snib__then then = {.info = done, .arg = arg};

        return done ? snib__ask_async(object, &(struct snib__op){.verb = SNIB__QUERY}, &then, err)
                    : snib__null("done", err);
}
