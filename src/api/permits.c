/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/permits.h: checks numbers and ids of permits, and says which request a call is. An acquire
 * is a hold like a lock's, but nobody's in particular. Any thread.
 */

#include "api/internal.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

struct snib_permits {
        struct snib__object object;
};

static int check(snib_permits *permits, struct snib_error *err)
{
        return snib__object_check(SNIB__OBJECT(permits), "permits", err);
}

int snib_permits_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                     snib_permits **ret_permits, struct snib_error *err)
{
        struct snib_lock_options o;
        struct snib__object *object;
        int r = ret_permits ? snib__object_options(&o, options, false, err) : snib__null("ret_permits", err);

        if (r == 0 && o.owner)
                r = snib__error(err, SNIB_EINVAL,
                                "options.owner is set; every acquire of permits is an owner of its own, leave it NULL");
        if (r == 0)
                r = snib__object_new(&object, client, name, SNIB_KIND_PERMITS, &o, err);
        if (r == 0)
                *ret_permits = snib__container(object, struct snib_permits, object);
        return r;
}

void snib_permits_free(snib_permits *permits)
{
        snib__object_free(SNIB__OBJECT(permits));
}

static int limit(snib_permits *permits, enum snib__verb verb, int64_t n, struct snib__receiver to,
                 struct snib_error *err)
{
        int r = check(permits, err);

        if (r == 0)
                r = snib__number_check(n, 0, SNIB_PERMITS_MAX, "limit", err);
        return r < 0 ? r : snib__count(&permits->object, &(struct snib__op){.verb = verb, .n = n}, to, err);
}

int snib_permits_set(snib_permits *permits, int64_t n, struct snib_error *err)
{
        return limit(permits, SNIB__SET, n, snib__here(NULL), err);
}

int snib_permits_set_async(snib_permits *permits, int64_t n, snib_value_callback *done, void *arg,
                           struct snib_error *err)
{
        return limit(permits, SNIB__SET, n, snib__later(done, arg), err);
}

int snib_permits_resize(snib_permits *permits, int64_t n, struct snib_error *err)
{
        return limit(permits, SNIB__RESIZE, n, snib__here(NULL), err);
}

int snib_permits_add(snib_permits *permits, int64_t delta, int64_t *ret_free, struct snib_error *err)
{
        int r = check(permits, err);

        if (r == 0)
                r = snib__delta_check(delta, err);
        return r < 0 ? r
                     : snib__count(&permits->object, &(struct snib__op){.verb = SNIB__ADD, .n = delta},
                                   snib__here(ret_free), err);
}

static int prepare_acquire(snib_permits *permits, int64_t count, int64_t wait_ms, struct snib__want *ret,
                           struct snib_error *err)
{
        int r = check(permits, err);

        if (r == 0)
                r = snib__number_check(count, 1, SNIB_PERMITS_AT_ONCE_MAX, "count", err);
        *ret = (struct snib__want){.n = count};
        return r < 0 ? r : snib__patience_check(wait_ms, &ret->patience, err);
}

int snib_permits_acquire(snib_permits *permits, int64_t count, int64_t wait_ms, snib_grant **ret_grant,
                         struct snib_error *err)
{
        struct snib__want want;
        int r = prepare_acquire(permits, count, wait_ms, &want, err);

        if (r == 0 && !ret_grant)
                r = snib__null("ret_grant", err);
        return r < 0 ? r : snib__acquire(&permits->object, &want, ret_grant, NULL, err);
}

int snib_permits_try(snib_permits *permits, int64_t count, snib_grant **ret_grant, struct snib_error *err)
{
        return snib_permits_acquire(permits, count, 0, ret_grant, err);
}

int snib_permits_acquire_async(snib_permits *permits, int64_t count, int64_t wait_ms, snib_acquired_callback *acquired,
                               void *arg, struct snib_error *err)
{
        struct snib__then then = {.acquired = acquired, .arg = arg};
        struct snib__want want;
        int r = prepare_acquire(permits, count, wait_ms, &want, err);

        if (r == 0 && !acquired)
                r = snib__null("acquired", err);
        return r < 0 ? r : snib__acquire_async(&permits->object, &want, &then, err);
}

int snib_permits_cancel(snib_permits *permits)
{
        return snib__object_cancel(SNIB__OBJECT(permits));
}

/* 32 hex digits, in lower case as the engine has them. */
static int id_read(const char *id, size_t index, char ret[33], struct snib_error *err)
{
        size_t n = 0;

        for (; id && n < 32 && id[n] && strchr("0123456789abcdefABCDEF", id[n]); n++)
                ret[n] = (char)(id[n] >= 'A' && id[n] <= 'F' ? id[n] + 'a' - 'A' : id[n]);
        ret[n] = 0;
        if (n == 32 && !id[n])
                return 0;
        return snib__error(err, SNIB_EINVAL, "id %zu is %s; the id of a permit is 32 hex digits", index,
                           id ? "none" : "NULL");
}

static int id_compare(const void *a, const void *b)
{
        return memcmp(a, b, 33);
}

static int ids_read(const char *const *ids, size_t count, char (*ret)[33], struct snib_error *err)
{
        int r;

        for (size_t i = 0; i < count; i++)
                if ((r = id_read(ids[i], i, ret[i], err)) < 0)
                        return r;
        qsort(ret, count, sizeof(ret[0]), id_compare);
        for (size_t i = 1; i < count; i++)
                if (!id_compare(ret[i - 1], ret[i]))
                        return snib__error(err, SNIB_EINVAL, "the permit %s stands twice in ids; name each once",
                                           ret[i]);
        return 0;
}

int snib_permits_release_ids(snib_permits *permits, const char *const *ids, size_t count, struct snib_error *err)
{
        char list[SNIB_PERMITS_AT_ONCE_MAX][33];
        int r = check(permits, err);

        if (r == 0 && !ids)
                r = snib__null("ids", err);
        if (r == 0)
                r = snib__number_check(count > INT64_MAX ? INT64_MAX : (int64_t)count, 1, SNIB_PERMITS_AT_ONCE_MAX,
                                       "count", err);
        if (r == 0)
                r = ids_read(ids, count, list, err);
        if (r < 0)
                return r;
        return snib__count(
            &permits->object,
            &(struct snib__op){.verb = SNIB__RELEASE, .permits = (const char(*)[33])list, .permit_count = count},
            snib__here(NULL), err);
}

int snib_permits_renew_id(snib_permits *permits, const char *id, int64_t lease_ms, struct snib_error *err)
{
        char list[1][33];
        struct snib__op op = {.verb = SNIB__RENEW, .permits = (const char(*)[33])list, .permit_count = 1};
        int r = check(permits, err);

        if (r == 0)
                r = id_read(id, 0, list[0], err);
        if (r == 0)
                r = snib__lease_check(lease_ms, "lease_ms", err);
        if (r < 0)
                return r;
        op.lease_ms = lease_ms ? lease_ms : permits->object.lease / SNIB__MS;
        return snib__count(&permits->object, &op, snib__here(NULL), err);
}

int snib_permits_query(snib_permits *permits, struct snib_permits_info *ret_info, struct snib_error *err)
{
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        struct snib__asked asked = {0};
        int r = check(permits, err);

        if (r == 0)
                r = snib__result_check(ret_info, "ret_info", err);
        if (r == 0)
                r = snib__ask(&permits->object, &(struct snib__op){.verb = SNIB__QUERY}, &asked, err);
        if (r != 1)
                return r;
        info.free = asked.reply.value;
        info.taken = asked.reply.holders;
        info.limit = asked.reply.limit;
        info.next_expiry_ms = asked.reply.left_ms;
        info.waiters = asked.reply.waiters;
        (void)snib__result_copy(ret_info, &info, sizeof(info), SNIB__FIRST_PERMITS_INFO, "ret_info", err);
        return 1;
}

static int plain(snib_permits *permits, enum snib__verb verb, struct snib_error *err)
{
        int r = check(permits, err);

        return r < 0 ? r : snib__count(&permits->object, &(struct snib__op){.verb = verb}, snib__here(NULL), err);
}

int snib_permits_force_release(snib_permits *permits, struct snib_error *err)
{
        return plain(permits, SNIB__FORCE, err);
}

int snib_permits_delete(snib_permits *permits, struct snib_error *err)
{
        return plain(permits, SNIB__DELETE, err);
}
