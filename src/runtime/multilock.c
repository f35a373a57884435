/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of a multilock and of its grant: what begins, ends or asks about a record. What happens
 * in between is the machine's (core/multi.h), and who steps it multi_run.c's. Any thread.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/multi.h"
#include <stdlib.h>
#include <string.h>

int snib__multilock_new(struct snib__object *const *members, size_t count, bool red, snib__ns node_timeout,
                        struct snib_multilock **ret, struct snib_error *err)
{
        struct snib__multi_key keys[SNIB_MULTILOCK_MAX];
        struct snib_multilock *m = snib__alloc(sizeof(*m) + count * sizeof(m->members[0]));

        if (!m)
                return snib__error(err, SNIB_ENOMEM, "no memory for a multilock; free some and try again");
        (void)pthread_mutex_init(&m->lock, NULL);
        snib__list_init(&m->waits);
        m->count = count;
        m->red = red;
        m->node_timeout = node_timeout;
        for (size_t i = 0; i < count; i++) {
                const struct snib__object *o = m->members[i] = members[i];

                keys[i] = (struct snib__multi_key){
                    .name = {o->name, o->name_length}, .place = o->client->place, .kind = o->kind};
        }
        snib__multi_order(keys, count, m->order);
        *ret = m;
        return 0;
}

/* What a blocking call is answered. Nobody changes it any more, but for the release of what was
 * acquired. Drops the caller's reference. */
static int answer(struct snib_multigrant *g, struct snib_error *err)
{
        int r = g->machine.result;

        if (r < 0)
                (void)snib__error_engine(err, r, g->err.engine_code, "%s", g->err.text);
        snib__multi_unref(g);
        return r;
}

int snib__multilock_acquire(struct snib_multilock *m, const struct snib__patience *patience,
                            struct snib_multigrant **ret, struct snib_error *err)
{
        struct snib_multigrant *g;
        int r = snib__multi_new(m, patience, NULL, NULL, &g, err);

        if (r < 0)
                return r;
        snib__multi_wait(g, &g->machine.answered);
        r = answer(g, err);
        if (r == 1)
                *ret = g;
        return r;
}

int snib__multilock_acquire_async(struct snib_multilock *m, const struct snib__patience *patience,
                                  snib_multilocked_callback *acquired, void *arg, struct snib_error *err)
{
        struct snib_multigrant *g;
        int r = snib__multi_new(m, patience, acquired, arg, &g, err);

        if (r < 0)
                return r;
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

int snib__multilock_cancel(struct snib_multilock *m)
{
        struct snib_multigrant *g;
        int count = 0;

        for (; (g = cancel_one(m)); count++) {
                snib__multi_run(g);
                snib__multi_unref(g);
        }
        return count;
}

int snib__multilock_force(struct snib_multilock *m, struct snib_error *err)
{
        int any = 0, first = 0;
        size_t failed = 0;

        for (size_t i = 0; i < m->count; i++) {
                struct snib_error why = SNIB_ERROR_INIT;
                int r =
                    snib__ask(m->members[i], &(struct snib__op){.verb = SNIB__FORCE}, &(struct snib__asked){0}, &why);

                any |= r == 1;
                if (r < 0 && failed++ == 0)
                        first = snib__error_engine(err, r, why.engine_code, "member %zu of %zu: %s", i + 1, m->count,
                                                   why.text);
        }
        return failed > (m->red ? (m->count - 1) / 2 : 0) ? first : any;
}

struct snib_grant *snib__multigrant_member(const struct snib_multigrant *g, size_t index)
{
        struct snib__hold *hold = index < g->machine.count
                                      ? atomic_load_explicit(&g->machine.members[index].held, memory_order_acquire)
                                      : NULL;

        return hold ? snib__grant_of(hold) : NULL;
}

int snib__multigrant_on_loss(struct snib_multigrant *g, snib_multiloss_callback *lost, void *arg,
                             struct snib_error *err)
{
        int r = 0;

        (void)pthread_mutex_lock(&g->lock);
        g->lost = lost;
        g->lost_arg = arg;
        if (lost && atomic_load(&g->machine.loss) && !snib__multi_post(g)) {
                g->lost = NULL;
                r = snib__closed(err);
        }
        (void)pthread_mutex_unlock(&g->lock);
        return r;
}

int snib__multigrant_loss_fd(struct snib_multigrant *g)
{
        int fd;

        (void)pthread_mutex_lock(&g->lock);
        fd = atomic_load(&g->loss_fd);
        if (fd < 0) {
                fd = snib__os_event_new();
                atomic_store(&g->loss_fd, fd < 0 ? -1 : fd);
                /* A loss comes before the store, and is seen here, or after it, and finds the
                 * descriptor. */
                if (fd >= 0 && atomic_load(&g->machine.loss))
                        snib__os_event_set(fd);
        }
        (void)pthread_mutex_unlock(&g->lock);
        return fd < 0 ? SNIB_ESYSTEM : fd;
}

/* The release begins, with a reference for the caller: 0, or an error. */
static int release_begin(struct snib_multigrant *g, snib_done_callback *done, void *arg, struct snib_error *err)
{
        int r = 0;

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

int snib__multigrant_release(struct snib_multigrant *g, struct snib_error *err)
{
        int r = release_begin(g, NULL, NULL, err);

        if (r < 0)
                return r;
        snib__multi_wait(g, &g->machine.released);
        return answer(g, err);
}

int snib__multigrant_release_async(struct snib_multigrant *g, snib_done_callback *done, void *arg,
                                   struct snib_error *err)
{
        int r = release_begin(g, done, arg, err);

        if (r < 0)
                return r;
        snib__multi_run(g);
        snib__multi_unref(g);
        return 0;
}

void snib__multigrant_forget(struct snib_multigrant *g)
{
        int fd = atomic_load(&g->loss_fd);

        snib__os_close(&fd);
        snib__os_close(&g->bell.fd);
        free(g);
}
