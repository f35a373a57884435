/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/multilock.h: checks what the calls are given, and passes them on to the runtime. Any thread.
 */

#include "api/internal.h"
#include "base/error.h"
#include "runtime/multi.h"
#include <stdlib.h>
#include <string.h>

#define NODE_TIMEOUT_DEFAULT_MS 200
#define NODE_TIMEOUT_MAX_MS 3600000

static int options_check(const struct snib_multilock_options *o, struct snib_error *err)
{
        if (o->red != 0 && o->red != 1)
                return snib__error(err, SNIB_EINVAL, "options.red is %d; use 0 or 1", o->red);
        if (o->node_timeout_ms < 0 || o->node_timeout_ms > NODE_TIMEOUT_MAX_MS)
                return snib__error(err, SNIB_EINVAL,
                                   "options.node_timeout_ms is %lld; use 1 to %d ms, or 0 for the default of %d ms",
                                   (long long)o->node_timeout_ms, NODE_TIMEOUT_MAX_MS, NODE_TIMEOUT_DEFAULT_MS);
        return 0;
}

static int count_check(size_t count, bool red, struct snib_error *err)
{
        if (count > SNIB_MULTILOCK_MAX)
                return snib__error(err, SNIB_EINVAL, "there are %zu members; a multilock has at most %d", count,
                                   SNIB_MULTILOCK_MAX);
        if (count < 1)
                return snib__error(err, SNIB_EINVAL, "there is no member; a multilock has at least one");
        if (red && count < 3)
                return snib__error(err, SNIB_EINVAL,
                                   "there are %zu members; a red multilock has at least 3, so that a majority can do "
                                   "without one",
                                   count);
        return 0;
}

/* Two members that one acquire could not have both, or that would be one vote counted twice. */
static int pair_check(struct snib__object *const *members, size_t i, size_t k, bool red, struct snib_error *err)
{
        const struct snib__object *a = members[i], *b = members[k];
        bool one_name = a->name_length == b->name_length && !memcmp(a->name, b->name, a->name_length);

        if (red && !one_name)
                return snib__error(err, SNIB_EINVAL,
                                   "members %zu and %zu have different names; the members of a red multilock are one "
                                   "lock on several servers",
                                   i + 1, k + 1);
        if (red && !strcmp(a->client->place, b->client->place))
                return snib__error(err, SNIB_EINVAL,
                                   "members %zu and %zu are on one server; a red multilock needs independent servers",
                                   i + 1, k + 1);
        if (a == b || (a->client == b->client && a->kind == b->kind && one_name))
                return snib__error(err, SNIB_EINVAL, "members %zu and %zu are the same lock on the same client", i + 1,
                                   k + 1);
        return 0;
}

static int members_check(snib_lock *const *members, size_t count, bool red, struct snib__object **ret,
                         struct snib_error *err)
{
        int r = count_check(count, red, err);

        if (r == 0 && !members)
                r = snib__null("members", err);
        for (size_t i = 0; i < count && r == 0; i++) {
                ret[i] = SNIB__OBJECT(members[i]);
                r = snib__object_check(ret[i], "members[]", err);
                for (size_t k = 0; k < i && r == 0; k++)
                        r = pair_check(ret, k, i, red, err);
        }
        return r;
}

int snib_multilock_new(snib_lock *const *members, size_t count, const struct snib_multilock_options *options,
                       snib_multilock **ret_multilock, struct snib_error *err)
{
        struct snib__object *objects[SNIB_MULTILOCK_MAX];
        struct snib_multilock_options o;
        int r;

        if (!ret_multilock)
                return snib__null("ret_multilock", err);
        if ((r = snib__options_copy(&o, sizeof(o), SNIB__FIRST_MULTILOCK_OPTIONS, options, "options", err)) < 0 ||
            (r = options_check(&o, err)) < 0 || (r = members_check(members, count, o.red, objects, err)) < 0)
                return r;
        if (!o.node_timeout_ms)
                o.node_timeout_ms = NODE_TIMEOUT_DEFAULT_MS;
        return snib__multilock_new(objects, count, o.red, o.node_timeout_ms * SNIB__MS, ret_multilock, err);
}

void snib_multilock_free(snib_multilock *multilock)
{
        free(multilock); /* its mutex owns nothing, and may be held for ever in a forked child */
}

/* 0, or SNIB_EINVAL, or SNIB_EFORK. */
static int multilock_check(const snib_multilock *m, struct snib_error *err)
{
        int r = m ? 0 : snib__null("multilock", err);

        for (size_t i = 0; r == 0 && i < m->count; i++)
                r = snib__alive(m->members[i]->client, err);
        return r;
}

static int grant_check(const snib_multigrant *g, struct snib_error *err)
{
        int r = g ? 0 : snib__null("grant", err);

        for (size_t i = 0; r == 0 && i < g->machine.count; i++)
                if (snib__member_is_there(&g->members[i]))
                        r = snib__alive(g->members[i].client, err);
        return r;
}

/* `missing` names an argument that is NULL and may not be. */
static int acquire_check(const snib_multilock *multilock, const char *missing, int64_t wait_ms,
                         struct snib__patience *ret, struct snib_error *err)
{
        int r = multilock_check(multilock, err);

        if (r == 0 && missing)
                r = snib__null(missing, err);
        return r < 0 ? r : snib__patience_check(wait_ms, ret, err);
}

int snib_multilock_acquire(snib_multilock *multilock, int64_t wait_ms, snib_multigrant **ret_grant,
                           struct snib_error *err)
{
        struct snib__patience patience;
        int r = acquire_check(multilock, ret_grant ? NULL : "ret_grant", wait_ms, &patience, err);

        return r < 0 ? r : snib__multilock_acquire(multilock, &patience, ret_grant, err);
}

int snib_multilock_try(snib_multilock *multilock, snib_multigrant **ret_grant, struct snib_error *err)
{
        return snib_multilock_acquire(multilock, 0, ret_grant, err);
}

int snib_multilock_acquire_async(snib_multilock *multilock, int64_t wait_ms, snib_multilocked_callback *acquired,
                                 void *arg, struct snib_error *err)
{
        struct snib__patience patience;
        int r = acquire_check(multilock, acquired ? NULL : "acquired", wait_ms, &patience, err);

        return r < 0 ? r : snib__multilock_acquire_async(multilock, &patience, acquired, arg, err);
}

int snib_multilock_cancel(snib_multilock *multilock)
{
        int r = multilock_check(multilock, NULL);

        return r < 0 ? r : snib__multilock_cancel(multilock);
}

int snib_multilock_force_release(snib_multilock *multilock, struct snib_error *err)
{
        int r = multilock_check(multilock, err);

        return r < 0 ? r : snib__multilock_force(multilock, err);
}

int snib_multigrant_valid(const snib_multigrant *grant)
{
        return grant && snib__multi_left(&grant->machine, snib__os_now()) > 0;
}

int64_t snib_multigrant_token(const snib_multigrant *grant)
{
        return grant ? grant->machine.token : 0;
}

int64_t snib_multigrant_left_ms(const snib_multigrant *grant)
{
        return grant ? snib__multi_left(&grant->machine, snib__os_now()) / SNIB__MS : 0;
}

snib_grant *snib_multigrant_member(const snib_multigrant *grant, size_t index)
{
        return grant ? snib__multigrant_member(grant, index) : NULL;
}

int snib_multigrant_loss(const snib_multigrant *grant)
{
        return grant ? atomic_load(&grant->machine.loss) : SNIB_LOSS_NONE;
}

int snib_multigrant_on_loss(snib_multigrant *grant, snib_multiloss_callback *lost, void *arg, struct snib_error *err)
{
        int r = grant_check(grant, err);

        return r < 0 ? r : snib__multigrant_on_loss(grant, lost, arg, err);
}

int snib_multigrant_loss_fd(snib_multigrant *grant)
{
        int r = grant_check(grant, NULL);

        return r < 0 ? r : snib__multigrant_loss_fd(grant);
}

/* The pointer is not to be used again, in a forked child neither. */
static int release_check(snib_multigrant *grant, struct snib_error *err)
{
        int r = grant_check(grant, err);

        if (r == SNIB_EFORK)
                snib__multigrant_forget(grant);
        return r;
}

int snib_multigrant_release(snib_multigrant *grant, struct snib_error *err)
{
        int r = release_check(grant, err);

        return r < 0 ? r : snib__multigrant_release(grant, err);
}

int snib_multigrant_release_async(snib_multigrant *grant, snib_done_callback *done, void *arg, struct snib_error *err)
{
        int r = done ? release_check(grant, err) : snib__null("done", err);

        return r < 0 ? r : snib__multigrant_release_async(grant, done, arg, err);
}
