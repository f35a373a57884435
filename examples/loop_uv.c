/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client in a loop of libuv: its descriptor is a uv_poll_t, its time-out a uv_timer_t that a
 * uv_prepare_t sets right before each poll. What is done with the lock is in worker.c.
 *
 *     loop-uv [URL]
 */

#include "worker.h"
#include <stdio.h>
#include <uv.h>

struct program {
        uv_loop_t loop;
        uv_poll_t poll;
        uv_timer_t timeout, tick;
        uv_prepare_t prepare;
        struct worker worker;
};

static void over(void *arg)
{
        struct program *p = arg;

        uv_stop(&p->loop);
}

static void readable(uv_poll_t *poll, int status, int events)
{
        struct program *p = poll->data;

        (void)status;
        (void)events;
        worker_process(&p->worker);
}

static void timed_out(uv_timer_t *timer)
{
        struct program *p = timer->data;

        worker_process(&p->worker);
}

static void before_poll(uv_prepare_t *prepare)
{
        struct program *p = prepare->data;
        int64_t timeout_ms = snib_timeout_ms(p->worker.client);

        uv_update_time(&p->loop); /* a timer counts from the loop's idea of now */
        if (timeout_ms < 0)
                uv_timer_stop(&p->timeout);
        else
                uv_timer_start(&p->timeout, timed_out, (uint64_t)timeout_ms, 0);
}

static void tick(uv_timer_t *timer)
{
        struct program *p = timer->data;

        worker_tick(&p->worker);
}

static void close_each(uv_handle_t *handle, void *arg)
{
        (void)arg;
        uv_close(handle, NULL);
}

int main(int argc, char **argv)
{
        struct program p;

        uv_loop_init(&p.loop);
        if (worker_start(&p.worker, argc > 1 ? argv[1] : NULL, "example:loop-uv", over, &p) == 0) {
                uv_poll_init(&p.loop, &p.poll, snib_fd(p.worker.client));
                uv_timer_init(&p.loop, &p.timeout);
                uv_timer_init(&p.loop, &p.tick);
                uv_prepare_init(&p.loop, &p.prepare);
                p.poll.data = p.timeout.data = p.tick.data = p.prepare.data = &p;
                uv_poll_start(&p.poll, UV_READABLE, readable);
                uv_timer_start(&p.tick, tick, WORKER_TICK_MS, WORKER_TICK_MS);
                uv_prepare_start(&p.prepare, before_poll);
                uv_run(&p.loop, UV_RUN_DEFAULT);
                uv_walk(&p.loop, close_each, NULL); /* before snib_close(), which closes the descriptor */
                uv_run(&p.loop, UV_RUN_DEFAULT);
        }
        uv_loop_close(&p.loop);
        return worker_end(&p.worker);
}
