/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/lock.h, but for the scope: checks names, options and owners, makes handles, and passes calls on to the runtime.
 * No waiting, no retry and no re-entry is decided here. Any thread.
 */

#include "api/internal.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

#define OWNER_MAX 200
_Static_assert(OWNER_MAX + 3 <= SNIB__OWNER_KEY_MAX, "an owner key has room for its prefix and a NUL");

static int lock_check(const snib_lock *lock, struct snib_error *err)
{
        return lock ? snib__alive(lock->client, err) : snib__null("lock", err);
}

static int name_check(const char *name, size_t given_length, size_t *ret_length, struct snib_error *err)
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
                                   "the name has a NUL byte within options.name_len (%zu) bytes; names are bytes "
                                   "without NUL",
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

static int options_check(const struct snib_lock_options *o, struct snib_error *err)
{
        int r;

        if (o->kind < SNIB_LOCK_REENTRANT || o->kind > SNIB_LOCK_FENCED)
                return snib__error(err, SNIB_EINVAL,
                                   "options.kind is %d; use SNIB_LOCK_REENTRANT, SNIB_LOCK_NON_REENTRANT or "
                                   "SNIB_LOCK_FENCED",
                                   o->kind);
        if (o->fixed_lease != 0 && o->fixed_lease != 1)
                return snib__error(err, SNIB_EINVAL, "options.fixed_lease is %d; use 0 or 1", o->fixed_lease);
        if (o->max_hold_ms < 0)
                return snib__error(err, SNIB_EINVAL,
                                   "options.max_hold_ms is %lld; use a positive number of milliseconds, or 0 for none",
                                   (long long)o->max_hold_ms);
        if ((r = owner_check(o->owner, err)) < 0)
                return r;
        return snib__lease_check(o->lease_ms, "options.lease_ms", err);
}

/* With Redis Cluster, "{...}" chooses the slot. A brace that opens and does not close, or closes at once, looks like it
 * and is none. */
static void braces_warn(struct snib_client *client, const char *name, size_t length)
{
        const char *open = memchr(name, '{', length);
        const char *close = open ? memchr(open, '}', length - (size_t)(open - name)) : NULL;

        if ((open && (!close || close == open + 1)) || (!open && memchr(name, '}', length)))
                snib__client_trace(client,
                                   "warning: the braces in a lock's name are no hash tag: they will not keep its keys "
                                   "in one slot of a cluster");
}

static void lock_freep(snib_lock **lock)
{
        snib_lock_free(*lock);
}

static int owner_copy(snib_lock *lock, const char *owner)
{
        size_t length = owner ? strlen(owner) : 0;

        if (!owner)
                return 0;
        lock->owner_length = length + 2;
        lock->owner = snib__alloc(length + 3);
        if (!lock->owner)
                return SNIB_ENOMEM;
        memcpy(lock->owner, "k:", 2); /* a thread's key begins with "t:" */
        memcpy(lock->owner + 2, owner, length);
        return 0;
}

int snib_lock_new(snib_client *client, const char *name, const struct snib_lock_options *options, snib_lock **ret_lock,
                  struct snib_error *err)
{
        struct snib_lock_options o;
        size_t length = 0;
        int r;

        if (!client)
                return snib__null("client", err);
        if (!ret_lock)
                return snib__null("ret_lock", err);
        if ((r = snib__alive(client, err)) < 0 ||
            (r = snib__options_copy(&o, sizeof(o), options, "options", err)) < 0 ||
            (r = name_check(name, o.name_len, &length, err)) < 0 || (r = options_check(&o, err)) < 0)
                return r;
        _cleanup_(lock_freep) snib_lock *lock = snib__alloc(sizeof(*lock));
        if (lock) {
                snib__list_init(&lock->waits);
                lock->client = client;
                lock->name = snib__copy(name, length);
        }
        if (!lock || !lock->name || owner_copy(lock, o.owner) < 0)
                return snib__error(err, SNIB_ENOMEM, "no memory for a lock handle; free some and try again");
        lock->name_length = length;
        lock->kind = o.kind;
        lock->fixed = o.fixed_lease;
        lock->lease = o.lease_ms ? o.lease_ms * SNIB__MS : client->lease;
        lock->max_hold = o.max_hold_ms > SNIB__NEVER / SNIB__MS ? SNIB__NEVER : o.max_hold_ms * SNIB__MS;
        braces_warn(client, name, length);
        *ret_lock = TAKE(lock);
        return 0;
}

void snib_lock_free(snib_lock *lock)
{
        if (!lock)
                return;
        /* Usually nothing waits, and then the client is not touched: it may be closed already. */
        if (!snib__list_empty(&lock->waits) && snib__alive(lock->client, NULL) == 0)
                snib__lock_detach(lock);
        free(lock->name);
        free(lock->owner);
        free(lock);
}

const char *snib_lock_name(const snib_lock *lock)
{
        return lock ? lock->name : "";
}

int snib_lock_acquire(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant, struct snib_error *err)
{
        struct snib__patience patience;
        int r = lock_check(lock, err);

        if (r == 0 && !ret_grant)
                r = snib__null("ret_grant", err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &patience, err);
        return r < 0 ? r : snib__acquire(lock, patience, ret_grant, NULL, err);
}

int snib_lock_acquire_info(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant, struct snib_lock_info *ret_holder,
                           struct snib_error *err)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib__patience patience;
        int r = lock_check(lock, err);

        if (r == 0 && !ret_grant)
                r = snib__null("ret_grant", err);
        if (r == 0)
                r = snib__result_check(ret_holder, "ret_holder", err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &patience, err);
        if (r < 0)
                return r;
        r = snib__acquire(lock, patience, ret_grant, &info, err);
        if (r == 0)
                (void)snib__result_copy(ret_holder, &info, sizeof(info), "ret_holder", err);
        return r;
}

int snib_lock_try(snib_lock *lock, snib_grant **ret_grant, struct snib_error *err)
{
        return snib_lock_acquire(lock, 0, ret_grant, err);
}

int snib_lock_acquire_async(snib_lock *lock, int64_t wait_ms, snib_acquired_callback *acquired, void *arg,
                            struct snib_error *err)
{
        struct snib__patience patience;
        int r = lock_check(lock, err);

        if (r == 0 && !acquired)
                r = snib__null("acquired", err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &patience, err);
        return r < 0 ? r : snib__acquire_async(lock, patience, acquired, arg, err);
}

int snib_lock_cancel(snib_lock *lock)
{
        int r = lock_check(lock, NULL);

        return r < 0 ? r : snib__cancel(lock);
}

int snib_lock_release(snib_lock *lock, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__release_mine(lock, err);
}

snib_grant *snib_lock_grant(snib_lock *lock)
{
        return lock_check(lock, NULL) < 0 ? NULL : snib__grant_mine(lock);
}

int snib_lock_force_release(snib_lock *lock, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__force(lock, err);
}

int snib_lock_query(snib_lock *lock, struct snib_lock_info *ret_info, struct snib_error *err)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        int r = lock_check(lock, err);

        if (r == 0)
                r = snib__result_check(ret_info, "ret_info", err);
        if (r < 0)
                return r;
        r = snib__query(lock, &info, err);
        if (r >= 0)
                (void)snib__result_copy(ret_info, &info, sizeof(info), "ret_info", err);
        return r;
}

int snib_lock_query_async(snib_lock *lock, snib_info_callback *done, void *arg, struct snib_error *err)
{
        int r = lock_check(lock, err);

        if (r == 0 && !done)
                r = snib__null("done", err);
        return r < 0 ? r : snib__query_async(lock, done, arg, err);
}

int64_t snib_list(snib_client *client, snib_list_callback *each, void *arg, struct snib_error *err)
{
        int r = client ? snib__alive(client, err) : snib__null("client", err);

        if (r == 0 && !each)
                r = snib__null("each", err);
        return r < 0 ? r : snib__list(client, each, arg, err);
}
