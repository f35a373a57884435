/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/semaphore.h: checks numbers and says which request a call is. A blocking call and its
 * asynchronous twin share the making of the request. Any thread.
 */

#include "api/internal.h"
#include "base/error.h"

struct snib_semaphore {
        struct snib__object object;
};

static int check(snib_semaphore *semaphore, struct snib_error *err)
{
        return snib__object_check(SNIB__OBJECT(semaphore), "semaphore", err);
}

int snib_semaphore_new(snib_client *client, const char *name, size_t name_len, snib_semaphore **ret_semaphore,
                       struct snib_error *err)
{
        struct snib_lock_options o = {.name_len = name_len};
        struct snib__object *object;
        int r = ret_semaphore ? snib__object_new(&object, client, name, SNIB_KIND_SEMAPHORE, &o, err)
                              : snib__null("ret_semaphore", err);

        if (r == 0)
                *ret_semaphore = snib__container(object, struct snib_semaphore, object);
        return r;
}

void snib_semaphore_free(snib_semaphore *semaphore)
{
        snib__object_free(SNIB__OBJECT(semaphore));
}

static int prepare_acquire(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms, struct snib__want *ret,
                           struct snib_error *err)
{
        int r = check(semaphore, err);

        if (r == 0)
                r = snib__number_check(permits, 1, SNIB_PERMITS_MAX, "permits", err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &ret->patience, err);
        ret->n = permits;
        return r;
}

int snib_semaphore_acquire(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms, struct snib_error *err)
{
        struct snib__want want = {0};
        int r = prepare_acquire(semaphore, permits, wait_ms, &want, err);

        return r < 0 ? r : snib__acquire(&semaphore->object, &want, NULL, NULL, err);
}

int snib_semaphore_try(snib_semaphore *semaphore, int64_t permits, struct snib_error *err)
{
        return snib_semaphore_acquire(semaphore, permits, 0, err);
}

int snib_semaphore_acquire_async(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms, snib_done_callback *done,
                                 void *arg, struct snib_error *err)
{
        struct snib__then then = {.done = done, .arg = arg};
        struct snib__want want = {0};
        int r = prepare_acquire(semaphore, permits, wait_ms, &want, err);

        if (r == 0 && !done)
                r = snib__null("done", err);
        return r < 0 ? r : snib__acquire_async(&semaphore->object, &want, &then, err);
}

int snib_semaphore_cancel(snib_semaphore *semaphore)
{
        return snib__object_cancel(SNIB__OBJECT(semaphore));
}

static int set(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms, struct snib__receiver to,
               struct snib_error *err)
{
        struct snib__op op = {.verb = SNIB__SET, .n = permits, .ttl_ms = ttl_ms};
        int r = check(semaphore, err);

        if (r == 0)
                r = snib__number_check(permits, 0, SNIB_PERMITS_MAX, "permits", err);
        if (r == 0)
                r = snib__number_check(ttl_ms, 0, SNIB_LEASE_MAX_MS, "ttl_ms", err);
        return r < 0 ? r : snib__count(&semaphore->object, &op, to, err);
}

int snib_semaphore_set(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms, struct snib_error *err)
{
        return set(semaphore, permits, ttl_ms, snib__here(NULL), err);
}

int snib_semaphore_set_async(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms, snib_value_callback *done,
                             void *arg, struct snib_error *err)
{
        return set(semaphore, permits, ttl_ms, snib__later(done, arg), err);
}

static int release(snib_semaphore *semaphore, int64_t permits, bool if_exists, struct snib__receiver to,
                   struct snib_error *err)
{
        struct snib__op op = {.verb = SNIB__ADD, .n = permits, .if_exists = if_exists};
        int r = check(semaphore, err);

        if (r == 0)
                r = snib__number_check(permits, 1, SNIB_PERMITS_MAX, "permits", err);
        return r < 0 ? r : snib__count(&semaphore->object, &op, to, err);
}

int snib_semaphore_release(snib_semaphore *semaphore, int64_t permits, struct snib_error *err)
{
        return release(semaphore, permits, false, snib__here(NULL), err);
}

int snib_semaphore_release_if_exists(snib_semaphore *semaphore, int64_t permits, struct snib_error *err)
{
        return release(semaphore, permits, true, snib__here(NULL), err);
}

int snib_semaphore_release_async(snib_semaphore *semaphore, int64_t permits, int only_if_exists,
                                 snib_value_callback *done, void *arg, struct snib_error *err)
{
        return release(semaphore, permits, only_if_exists != 0, snib__later(done, arg), err);
}

static int add(snib_semaphore *semaphore, int64_t delta, struct snib__receiver to, struct snib_error *err)
{
        int r = check(semaphore, err);

        if (r == 0)
                r = snib__delta_check(delta, err);
        return r < 0 ? r : snib__count(&semaphore->object, &(struct snib__op){.verb = SNIB__ADD, .n = delta}, to, err);
}

int snib_semaphore_add(snib_semaphore *semaphore, int64_t delta, int64_t *ret_value, struct snib_error *err)
{
        return add(semaphore, delta, snib__here(ret_value), err);
}

int snib_semaphore_add_async(snib_semaphore *semaphore, int64_t delta, snib_value_callback *done, void *arg,
                             struct snib_error *err)
{
        return add(semaphore, delta, snib__later(done, arg), err);
}

/* What needs no number. */
static int plain(snib_semaphore *semaphore, enum snib__verb verb, struct snib__receiver to, struct snib_error *err)
{
        int r = check(semaphore, err);

        return r < 0 ? r : snib__count(&semaphore->object, &(struct snib__op){.verb = verb}, to, err);
}

int snib_semaphore_drain(snib_semaphore *semaphore, int64_t *ret_drained, struct snib_error *err)
{
        return ret_drained ? plain(semaphore, SNIB__DRAIN, snib__here(ret_drained), err)
                           : snib__null("ret_drained", err);
}

int snib_semaphore_query(snib_semaphore *semaphore, int64_t *ret_available, struct snib_error *err)
{
        return ret_available ? plain(semaphore, SNIB__QUERY, snib__here(ret_available), err)
                             : snib__null("ret_available", err);
}

int snib_semaphore_delete(snib_semaphore *semaphore, struct snib_error *err)
{
        return plain(semaphore, SNIB__DELETE, snib__here(NULL), err);
}

int snib_semaphore_drain_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg, struct snib_error *err)
{
        return plain(semaphore, SNIB__DRAIN, snib__later(done, arg), err);
}

int snib_semaphore_query_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg, struct snib_error *err)
{
        return plain(semaphore, SNIB__QUERY, snib__later(done, arg), err);
}

int snib_semaphore_delete_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg, struct snib_error *err)
{
        return plain(semaphore, SNIB__DELETE, snib__later(done, arg), err);
}
