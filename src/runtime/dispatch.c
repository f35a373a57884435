/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where user callbacks run: on the dispatcher thread, or, for a client without threads, at the end
 * of snib_process() and of blocking calls. One at a time, in the order they fell due, without the
 * lock and without the baton: a callback that blocks delays callbacks and nothing else.
 */

#include "base/error.h"
#include "runtime/client.h"

static struct snib__event *event_of(struct snib__list *link)
{
        return link ? snib__container(link, struct snib__event, link) : NULL;
}

/* Runs callbacks until there are none. With the lock, which is dropped around each. */
static void run_queue(struct snib_client *c)
{
        struct snib__dispatcher *d = &c->dispatcher;
        struct snib__event *e;

        if (d->running)
                return; /* we are inside a callback, or another thread is: it goes on afterwards */
        d->running = true;
        while ((e = event_of(snib__list_take(&d->queue)))) {
                d->gather_until = snib__after(c->now, SNIB__GATHER);
                snib__drive_send(c); /* unless more are due */
                snib__client_unlock(c);
                e->run(c, e);
                snib__client_lock(c);
        }
        d->running = false;
}

static void sleep_until_queued(struct snib_client *c)
{
        struct snib__dispatcher *d = &c->dispatcher;

        atomic_store_explicit(&d->word, 0, memory_order_relaxed);
        d->asleep = true;
        snib__client_unlock(c);
        snib__os_sleep(&d->word, 0, SNIB__NEVER);
        snib__client_lock(c);
        d->asleep = false;
}

static void *run(void *arg)
{
        struct snib_client *c = arg;
        struct snib__dispatcher *d = &c->dispatcher;

        snib__client_lock(c);
        while (!d->quit || !snib__list_empty(&d->queue)) {
                if (snib__list_empty(&d->queue))
                        sleep_until_queued(c);
                else
                        run_queue(c);
        }
        snib__client_unlock(c);
        return NULL;
}

static void wake(struct snib__dispatcher *d)
{
        atomic_store_explicit(&d->word, 1, memory_order_release);
        if (d->asleep)
                snib__os_wake(&d->word); /* lives as long as the client: no need to wait for the unlock */
        d->asleep = false;
}

void snib__dispatch_queue(struct snib_client *c, struct snib__event *event)
{
        if (!snib__list_linked(&event->link))
                snib__list_append(&c->dispatcher.queue, &event->link);
        if (!c->dispatcher.running)
                c->dispatcher.gather_until = snib__after(c->now, SNIB__GATHER);
        wake(&c->dispatcher);
}

void snib__dispatch_here(struct snib_client *c)
{
        if (c->threads != SNIB_THREADS_NONE)
                return;
        snib__client_lock(c);
        run_queue(c);
        snib__client_unlock(c);
}

int snib__dispatch_start(struct snib_client *c, struct snib_error *err)
{
        struct snib__dispatcher *d = &c->dispatcher;
        int r;

        if (d->started || c->threads == SNIB_THREADS_NONE)
                return 0;
        r = snib__os_thread_start(&d->thread, run, c, "snib-callbacks");
        if (r < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -r, "pthread_create");
        d->started = true;
        return 0;
}

void snib__dispatch_stop(struct snib_client *c)
{
        struct snib__dispatcher *d = &c->dispatcher;

        snib__dispatch_here(c);
        if (!d->started)
                return;
        snib__client_lock(c);
        d->quit = true;
        wake(d);
        snib__client_unlock(c);
        (void)pthread_join(d->thread, NULL);
        d->started = false;
}
