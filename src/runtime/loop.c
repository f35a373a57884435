/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client without threads (SNIB_THREADS_NONE), driven by the application's event loop. snib_fd()
 * is an epoll descriptor over the engine's own descriptors and the wake-up, which is set when
 * something changed that the loop's present poll does not cover: a nearer deadline, another
 * descriptor, a callback that is due.
 */

#include "runtime/client.h"
#include "runtime/runtime.h"
#include <string.h>

void snib__loop_settle(struct snib_client *c)
{
        bool callbacks = !snib__list_empty(&c->dispatcher.queue) && !c->dispatcher.running;
        snib__ns until = snib__drive_deadline(c);

        snib__drive_register(c);
        if (c->kicked || (!callbacks && until >= c->loop_until))
                return;
        snib__drive_kick(c);
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
        if (c->timer.due <= snib__os_now()) /* left by a call that blocked */
                snib__alarm_clear(&c->timer);
        c->activity++;
        /* While a thread of the program waits in a blocking call, it reads. */
        if (!c->baton.driver) {
                c->engine->ops->process(c->engine, NULL, snib__os_now());
                snib__notes_take(c);
        }
        snib__drive_step(c);
        c->loop_until = 0; /* the loop asks for its time-out anew before it polls: nothing can come too early for it */
        snib__drive_settle(c);
        snib__client_unlock(c);
        snib__dispatch_here(c);
        return 0;
}

void snib__loop_turn(struct snib_client *const *clients, int count, int fd, snib__ns until)
{
        struct pollfd fds[SNIB_MULTILOCK_MAX + 1];
        snib__ns timeout = until == SNIB__NEVER ? SNIB__NEVER : snib__max(until - snib__os_now(), 0);

        for (int i = 0; i < count; i++) {
                int64_t ms = snib__loop_timeout_ms(clients[i]);

                fds[i] = (struct pollfd){.fd = snib__loop_fd(clients[i]), .events = POLLIN};
                if (ms >= 0)
                        timeout = snib__min(timeout, ms * SNIB__MS);
        }
        fds[count] = (struct pollfd){.fd = fd, .events = POLLIN};
        snib__os_poll(fds, count + 1, timeout);
        for (int i = 0; i < count; i++)
                (void)snib__loop_process(clients[i]);
}
