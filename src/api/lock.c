/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/lock.h, but for the scope: checks what the calls are given and passes them on to the
 * runtime. No waiting, no retry and no re-entry is decided here; what a handle is stands in
 * object.c. Any thread.
 */

#include "api/internal.h"
#include "base/error.h"
#include <string.h>

static int lock_check(const snib_lock *lock, struct snib_error *err)
{
        return snib__object_check(SNIB__OBJECT(lock), "lock", err);
}

static const struct snib__lock_kind kinds[] = {
    [SNIB_LOCK_REENTRANT] = {SNIB_KIND_LOCK, true, true},
    [SNIB_LOCK_NON_REENTRANT] = {SNIB_KIND_LOCK, true, false},
    [SNIB_LOCK_FENCED] = {SNIB_KIND_FENCED, true, true},
    [SNIB_LOCK_FAIR] = {SNIB_KIND_FAIR, true, true},
    [SNIB_LOCK_SPIN] = {SNIB_KIND_SPIN, true, true},
    [SNIB_LOCK_FAIR_NON_REENTRANT] = {SNIB_KIND_FAIR, true, false},
};

const struct snib__lock_kind *snib__lock_kind(int kind)
{
        bool listed = kind >= 0 && kind < (int)(sizeof(kinds) / sizeof(kinds[0]));

        return listed && kinds[kind].there ? &kinds[kind] : NULL;
}

int snib_lock_new(snib_client *client, const char *name, const struct snib_lock_options *options, snib_lock **ret_lock,
                  struct snib_error *err)
{
        struct snib_lock_options o;
        struct snib__object *object;
        int r = ret_lock ? snib__object_options(&o, options, true, err) : snib__null("ret_lock", err);

        if (r == 0)
                r = snib__object_new(&object, client, name, snib__lock_kind(o.kind)->kind, &o, err);
        if (r < 0)
                return r;
        object->reentrant = snib__lock_kind(o.kind)->reentrant;
        *ret_lock = snib__container(object, struct snib_lock, object);
        return 0;
}

void snib_lock_free(snib_lock *lock)
{
        snib__object_free(SNIB__OBJECT(lock));
}

const char *snib_lock_name(const snib_lock *lock)
{
        return lock ? lock->object.name : "";
}

int snib_lock_acquire(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__take(&lock->object, wait_ms, ret_grant, err);
}

int snib_lock_acquire_info(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant, struct snib_lock_info *ret_holder,
                           struct snib_error *err)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib__want want = {0};
        int r = lock_check(lock, err);

        if (r == 0 && !ret_grant)
                r = snib__null("ret_grant", err);
        if (r == 0)
                r = snib__result_check(ret_holder, "ret_holder", err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &want.patience, err);
        if (r < 0)
                return r;
        r = snib__acquire(&lock->object, &want, ret_grant, &info, err);
        if (r == 0)
                (void)snib__result_copy(ret_holder, &info, sizeof(info), SNIB__FIRST_LOCK_INFO, "ret_holder", err);
        return r;
}

int snib_lock_try(snib_lock *lock, snib_grant **ret_grant, struct snib_error *err)
{
        return snib_lock_acquire(lock, 0, ret_grant, err);
}

int snib_lock_acquire_async(snib_lock *lock, int64_t wait_ms, snib_acquired_callback *acquired, void *arg,
                            struct snib_error *err)
{
        int r = lock_check(lock, err);

        if (r == 0 && !acquired)
                r = snib__null("acquired", err);
        return r < 0 ? r : snib__take_async(&lock->object, wait_ms, acquired, arg, err);
}

int snib_lock_cancel(snib_lock *lock)
{
        return snib__object_cancel(SNIB__OBJECT(lock));
}

int snib_lock_release(snib_lock *lock, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__release_mine(&lock->object, err);
}

snib_grant *snib_lock_grant(snib_lock *lock)
{
        return lock_check(lock, NULL) < 0 ? NULL : snib__grant_mine(&lock->object);
}

int snib_lock_force_release(snib_lock *lock, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__count(&lock->object, &(struct snib__op){.verb = SNIB__FORCE}, snib__here(NULL), err);
}

int snib_lock_drop_waiter(snib_lock *lock, const char *waiter, struct snib_error *err)
{
        struct snib__op op = {.verb = SNIB__FORCE};
        int r = lock_check(lock, err);

        if (r < 0)
                return r;
        if (!waiter)
                return snib__null("waiter", err);
        if (lock->object.kind != SNIB_KIND_FAIR)
                return snib__error(err, SNIB_EINVAL,
                                   "only a fair lock's queue has an order to leave; see SNIB_LOCK_FAIR");
        if (!*waiter || strlen(waiter) >= sizeof(op.under.text))
                return snib__error(err, SNIB_EINVAL, "waiter is no id of a waiter; take snib_lock_info.next");
        memcpy(op.under.text, waiter, strlen(waiter) + 1);
        return snib__count(&lock->object, &op, snib__here(NULL), err);
}

int snib_lock_query(snib_lock *lock, struct snib_lock_info *ret_info, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__describe(&lock->object, ret_info, "ret_info", err);
}

int snib_lock_query_async(snib_lock *lock, snib_info_callback *done, void *arg, struct snib_error *err)
{
        int r = lock_check(lock, err);

        return r < 0 ? r : snib__describe_async(&lock->object, done, arg, err);
}

int64_t snib_list(snib_client *client, snib_list_callback *each, void *arg, struct snib_error *err)
{
        int r = client ? snib__alive(client, err) : snib__null("client", err);

        if (r == 0 && !each)
                r = snib__null("each", err);
        return r < 0 ? r : snib__list(client, each, arg, err);
}

/* Whatever stands under a name, to be asked about. It need not live longer than the call. */
static int any_init(struct snib__object *ret, snib_client *client, const char *name, size_t name_len,
                    struct snib_error *err)
{
        int r = client ? snib__alive(client, err) : snib__null("client", err);

        *ret = (struct snib__object){.client = client, .name = (char *)name, .kind = SNIB_KIND_ANY};
        return r < 0 ? r : snib__name_check(name, name_len, &ret->name_length, err);
}

int snib_describe(snib_client *client, const char *name, size_t name_len, struct snib_lock_info *ret_info,
                  struct snib_error *err)
{
        struct snib__object any;
        int r = any_init(&any, client, name, name_len, err);

        return r < 0 ? r : snib__describe(&any, ret_info, "ret_info", err);
}

int snib_describe_async(snib_client *client, const char *name, size_t name_len, snib_info_callback *done, void *arg,
                        struct snib_error *err)
{
        struct snib__object any;
        int r = any_init(&any, client, name, name_len, err);

        return r < 0 ? r : snib__describe_async(&any, done, arg, err);
}
