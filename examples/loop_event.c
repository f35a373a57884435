/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client in a loop of libevent: one event for its descriptor, one for its time-out, which is
 * set anew after each snib_process(). That is enough: if a call shortens the time-out, the
 * descriptor becomes readable. What is done with the lock is in worker.c.
 *
 *     loop-event [URL]
 */

#include "worker.h"
#include <event2/event.h>
#include <stdio.h>

struct program {
        struct event_base *base;
        struct event *readable, *timeout, *tick;
        struct worker worker;
};

static void over(void *arg)
{
        struct program *p = arg;

        event_base_loopbreak(p->base);
}

static struct timeval timeval_of(int64_t ms)
{
        return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

static void set_timeout(struct program *p)
{
        int64_t timeout_ms = snib_timeout_ms(p->worker.client);
        struct timeval timeout = timeval_of(timeout_ms);

        if (timeout_ms < 0)
                event_del(p->timeout);
        else
                event_add(p->timeout, &timeout);
}

static void due(evutil_socket_t fd, short what, void *arg)
{
        struct program *p = arg;

        (void)fd;
        (void)what;
        worker_process(&p->worker);
        set_timeout(p);
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
        struct program *p = arg;

        (void)fd;
        (void)what;
        worker_tick(&p->worker);
}

int main(int argc, char **argv)
{
        struct timeval every = timeval_of(WORKER_TICK_MS);
        struct program p;

        p.base = event_base_new();
        if (!p.base)
                return 1;
        if (worker_start(&p.worker, argc > 1 ? argv[1] : NULL, "example:loop-event", over, &p) == 0) {
                p.readable = event_new(p.base, snib_fd(p.worker.client), EV_READ | EV_PERSIST, due, &p);
                p.timeout = event_new(p.base, -1, 0, due, &p);
                p.tick = event_new(p.base, -1, EV_PERSIST, tick, &p);
                event_add(p.readable, NULL);
                event_add(p.tick, &every);
                set_timeout(&p);
                event_base_dispatch(p.base);
                event_free(p.readable); /* before snib_close(), which closes the descriptor */
                event_free(p.timeout);
                event_free(p.tick);
        }
        event_base_free(p.base);
        return worker_end(&p.worker);
}
