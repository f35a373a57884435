/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client without threads (SNIB_THREADS_NONE), driven by the application's event loop. snib_fd() is an epoll
 * descriptor over the engine's own descriptors and the wake-up, which is set when something changed that the loop's
 * present poll does not cover: a nearer deadline, another descriptor, a callback that is due.
 */

#include "runtime/client.h"
#include "runtime/runtime.h"
#include <string.h>

static bool wanted(const struct snib__interest *i, int fd)
{
        for (int k = 0; k < i->count; k++)
                if (i->fds[k].fd == fd)
                        return true;
        return false;
}

/* Every descriptor is set again, changed or not: the engine may have closed one and got the same number for another. */
static void sync_descriptors(struct snib_client *c, const struct snib__interest *i)
{
        for (int k = 0; k < c->registered.count; k++)
                if (!wanted(i, c->registered.fds[k].fd))
                        snib__os_epoll_remove(c->epoll, c->registered.fds[k].fd);
        for (int k = 0; k < i->count; k++)
                (void)snib__os_epoll_set(c->epoll, i->fds[k].fd, i->fds[k].events);
        c->registered = *i;
}

void snib__loop_settle(struct snib_client *c)
{
        struct snib__interest i = {.deadline = SNIB__NEVER};
        bool callbacks = !snib__list_empty(&c->dispatcher.queue) && !c->dispatcher.running;

        c->engine->ops->interest(c->engine, snib__os_now(), &i);
        sync_descriptors(c, &i);
        if (c->kicked || (!callbacks && snib__min(i.deadline, snib__core_deadline(&c->core)) >= c->loop_until))
                return;
        c->kicked = true;
        snib__os_event_set(c->wake_fd);
}

int snib__loop_fd(struct snib_client *c)
{
        return c->epoll;
}

int64_t snib__loop_timeout_ms(struct snib_client *c)
{
        snib__ns now = snib__os_now(), until;

        snib__client_lock(c);
        until = snib__drive_deadline(c);
        c->loop_until = until;
        snib__client_unlock(c);
        if (until == SNIB__NEVER)
                return -1;
        return until <= now ? 0 : (until - now + SNIB__MS - 1) / SNIB__MS;
}

int snib__loop_process(struct snib_client *c)
{
        snib__client_lock(c);
        if (c->kicked) {
                c->kicked = false;
                snib__os_event_clear(c->wake_fd);
        }
        c->activity++;
        /* While a thread of the program waits in a blocking call, it reads. */
        if (!c->baton.driver) {
                c->engine->ops->process(c->engine, NULL, snib__os_now());
                snib__notes_take(c, snib__os_now());
        }
        snib__drive_step(c);
        c->loop_until = 0; /* the loop asks for its time-out anew before it polls: nothing can come too early for it */
        snib__drive_settle(c);
        snib__client_unlock(c);
        snib__dispatch_here(c);
        return 0;
}
