/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/multilock.h: checks what the calls are given, puts the members in order, and hands over to
 * whoever steps the machine (multi_run.c). Any thread.
 */

#include "api/multi.h"
#include "base/alloc.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

#define NODE_TIMEOUT_DEFAULT_MS 200
#define NODE_TIMEOUT_MAX_MS 3600000

static struct snib__multi_key key_of(const struct snib__object *object)
{
        return (struct snib__multi_key){
            .name = {object->name, object->name_length}, .place = object->client->place, .kind = object->kind};
}

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
static int pair_check(struct snib_lock *const *members, size_t i, size_t k, bool red, struct snib_error *err)
{
        const struct snib__object *a = &members[i]->object, *b = &members[k]->object;
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

static int members_check(struct snib_lock *const *members, size_t count, bool red, struct snib_error *err)
{
        int r = count_check(count, red, err);

        if (r == 0 && !members)
                r = snib__null("members", err);
        for (size_t i = 0; i < count && r == 0; i++) {
                r = members[i] ? snib__alive(members[i]->object.client, err) : snib__null("members[]", err);
                for (size_t k = 0; k < i && r == 0; k++)
                        r = pair_check(members, k, i, red, err);
        }
        return r;
}

static void sort(struct snib_multilock *m)
{
        struct snib__multi_key keys[SNIB_MULTILOCK_MAX];

        for (size_t i = 0; i < m->count; i++)
                keys[i] = key_of(&m->members[i]->object);
        snib__multi_order(keys, m->count, m->order);
}

int snib_multilock_new(snib_lock *const *members, size_t count, const struct snib_multilock_options *options,
                       snib_multilock **ret_multilock, struct snib_error *err)
{
        struct snib_multilock_options o;
        struct snib_multilock *m;
        int r;

        if (!ret_multilock)
                return snib__null("ret_multilock", err);
        if ((r = snib__options_copy(&o, sizeof(o), SNIB__FIRST_MULTILOCK_OPTIONS, options, "options", err)) < 0 ||
            (r = options_check(&o, err)) < 0 || (r = members_check(members, count, o.red, err)) < 0)
                return r;
        m = snib__alloc(sizeof(*m) + count * sizeof(m->members[0]));
        if (!m)
                return snib__error(err, SNIB_ENOMEM, "no memory for a multilock; free some and try again");
        (void)pthread_mutex_init(&m->lock, NULL);
        snib__list_init(&m->waits);
        m->count = count;
        m->red = o.red;
        m->node_timeout = (o.node_timeout_ms ? o.node_timeout_ms : NODE_TIMEOUT_DEFAULT_MS) * SNIB__MS;
        memcpy(m->members, members, count * sizeof(m->members[0]));
        sort(m);
        *ret_multilock = m;
        return 0;
}

void snib_multilock_free(snib_multilock *multilock)
{
        free(multilock); /* its mutex owns nothing, and may be held for ever in a forked child */
}

/* 0, or SNIB_EINVAL, or SNIB_EFORK. */
static int multilock_check(const struct snib_multilock *m, struct snib_error *err)
{
        int r = m ? 0 : snib__null("multilock", err);

        for (size_t i = 0; r == 0 && i < m->count; i++)
                r = snib__alive(m->members[i]->object.client, err);
        return r;
}

static int grant_check(const struct snib_multigrant *g, struct snib_error *err)
{
        int r = g ? 0 : snib__null("grant", err);

        for (size_t i = 0; r == 0 && i < g->machine.count; i++)
                if (!atomic_load(&g->parts[i].closed) && g->members[i].base.client)
                        r = snib__alive(g->members[i].base.client, err);
        return r;
}

/* `missing` names an argument that is NULL and may not be. */
static int acquire_begin(snib_multilock *multilock, int64_t wait_ms, const char *missing, struct snib_multigrant **ret,
                         struct snib_error *err)
{
        struct snib__patience patience;
        int r = multilock_check(multilock, err);

        if (r == 0 && missing)
                r = snib__null(missing, err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &patience, err);
        return r < 0 ? r : snib__multi_new(multilock, &patience, ret, err);
}

int snib_multilock_acquire(snib_multilock *multilock, int64_t wait_ms, snib_multigrant **ret_grant,
                           struct snib_error *err)
{
        struct snib_multigrant *g;
        int r = acquire_begin(multilock, wait_ms, ret_grant ? NULL : "ret_grant", &g, err);

        if (r < 0)
                return r;
        snib__multi_wait(g, &g->machine.answered);
        r = g->machine.result; /* nobody changes it before the release, and of a failure nobody does */
        if (r == 1)
                *ret_grant = g;
        else if (r < 0)
                (void)snib__error_engine(err, r, g->err.engine_code, "%s", g->err.text);
        snib__multi_unref(g);
        return r;
}

int snib_multilock_try(snib_multilock *multilock, snib_multigrant **ret_grant, struct snib_error *err)
{
        return snib_multilock_acquire(multilock, 0, ret_grant, err);
}

int snib_multilock_acquire_async(snib_multilock *multilock, int64_t wait_ms, snib_multilocked_callback *acquired,
                                 void *arg, struct snib_error *err)
{
        struct snib_multigrant *g;
        int r = acquire_begin(multilock, wait_ms, acquired ? NULL : "acquired", &g, err);

        if (r < 0)
                return r;
        g->acquired = acquired;
        g->acquired_arg = arg;
        snib__multi_run(g);
        snib__multi_unref(g);
        return 0;
}

/* One that waits and was not told yet, with a reference. */
static struct snib_multigrant *cancel_one(struct snib_multilock *m)
{
        struct snib_multigrant *found = NULL;

        (void)pthread_mutex_lock(&m->lock);
        for (struct snib__list *it = m->waits.next; it != &m->waits && !found; it = it->next) {
                struct snib_multigrant *g = snib__container(it, struct snib_multigrant, of_multilock);

                if (snib__multi_cancel(&g->machine)) {
                        snib__multi_ref(g);
                        found = g;
                }
        }
        (void)pthread_mutex_unlock(&m->lock);
        return found;
}

int snib_multilock_cancel(snib_multilock *multilock)
{
        struct snib_multigrant *g;
        int count = multilock_check(multilock, NULL);

        while (count >= 0 && (g = cancel_one(multilock))) {
                snib__multi_run(g);
                snib__multi_unref(g);
                count++;
        }
        return count;
}

int snib_multilock_force_release(snib_multilock *multilock, struct snib_error *err)
{
        int r = multilock_check(multilock, err), any = 0, first = 0;
        size_t failed = 0;

        if (r < 0)
                return r;
        for (size_t i = 0; i < multilock->count; i++) {
                struct snib_error why = SNIB_ERROR_INIT;

                r = snib_lock_force_release(multilock->members[i], &why);
                any |= r == 1;
                if (r < 0 && failed++ == 0)
                        first = snib__error_engine(err, r, why.engine_code, "member %zu of %zu: %s", i + 1,
                                                   multilock->count, why.text);
        }
        return failed > (multilock->red ? (multilock->count - 1) / 2 : 0) ? first : any;
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
        struct snib__hold *hold = grant && index < grant->machine.count
                                      ? atomic_load_explicit(&grant->parts[index].held, memory_order_acquire)
                                      : NULL;

        return hold ? snib__container(hold, struct snib_grant, hold) : NULL;
}

int snib_multigrant_loss(const snib_multigrant *grant)
{
        return grant ? atomic_load(&grant->machine.loss) : SNIB_LOSS_NONE;
}

int snib_multigrant_on_loss(snib_multigrant *grant, snib_multiloss_callback *lost, void *arg, struct snib_error *err)
{
        int r = grant_check(grant, err);

        if (r < 0)
                return r;
        (void)pthread_mutex_lock(&grant->lock);
        grant->lost = lost;
        grant->lost_arg = arg;
        if (lost && atomic_load(&grant->machine.loss) && !snib__multi_post(grant)) {
                grant->lost = NULL;
                r = snib__closed(err);
        }
        (void)pthread_mutex_unlock(&grant->lock);
        return r;
}

int snib_multigrant_loss_fd(snib_multigrant *grant)
{
        int fd = grant_check(grant, NULL);

        if (fd < 0)
                return fd;
        (void)pthread_mutex_lock(&grant->lock);
        fd = atomic_load(&grant->loss_fd);
        if (fd < 0) {
                fd = snib__os_event_new();
                atomic_store(&grant->loss_fd, fd < 0 ? -1 : fd);
                /* A loss comes before the store, and is seen here, or after it, and finds the
                 * descriptor. */
                if (fd >= 0 && atomic_load(&grant->machine.loss))
                        snib__os_event_set(fd);
        }
        (void)pthread_mutex_unlock(&grant->lock);
        return fd < 0 ? SNIB_ESYSTEM : fd;
}

/* In a forked child nobody else refers to the copy, and nothing will ever happen to it. */
static void copy_free(struct snib_multigrant *g)
{
        int fd = atomic_load(&g->loss_fd);

        snib__os_close(&fd);
        snib__os_close(&g->wake_fd);
        free(g);
}

/* The release begins, with a reference for the caller: 0, or an error. */
static int release_begin(struct snib_multigrant *g, snib_done_callback *done, void *arg, struct snib_error *err)
{
        int r = grant_check(g, err);

        if (r == SNIB_EFORK)
                copy_free(g);
        if (r < 0)
                return r;
        (void)pthread_mutex_lock(&g->lock);
        if (g->machine.phase == SNIB__MULTI_HELD) {
                snib__multi_ref(g);
                g->done = done;
                g->done_arg = arg;
                g->lost = NULL;
                snib__multi_release(&g->machine, snib__os_now());
        } else {
                r = snib__error(err, SNIB_ENOTOWNER, "the grant is being released already; release it once");
        }
        (void)pthread_mutex_unlock(&g->lock);
        return r;
}

int snib_multigrant_release(snib_multigrant *grant, struct snib_error *err)
{
        int r = release_begin(grant, NULL, NULL, err);

        if (r < 0)
                return r;
        snib__multi_wait(grant, &grant->machine.released);
        r = grant->machine.result;
        if (r < 0)
                (void)snib__error_engine(err, r, grant->err.engine_code, "%s", grant->err.text);
        snib__multi_unref(grant);
        return r;
}

int snib_multigrant_release_async(snib_multigrant *grant, snib_done_callback *done, void *arg, struct snib_error *err)
{
        int r = done ? release_begin(grant, done, arg, err) : snib__null("done", err);

        if (r < 0)
                return r;
        snib__multi_run(grant);
        snib__multi_unref(grant);
        return 0;
}
