/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client in GLib's main loop, and so in a program of GTK: a GSource of its own, which asks for
 * the time-out before each poll and is dispatched when the descriptor is readable or the time has
 * come. What is done with the lock is in worker.c.
 *
 *     loop-glib [URL]
 */

#include "worker.h"
#include <glib-unix.h>
#include <glib.h>

/* The client as a source of events. GLib knows the first field. */
struct source {
        GSource base;
        gpointer tag; /* of the descriptor */
        struct worker *worker;
};

static gboolean prepare(GSource *base, gint *ret_timeout)
{
        int64_t timeout_ms = snib_timeout_ms(((struct source *)base)->worker->client);

        *ret_timeout = timeout_ms > G_MAXINT ? G_MAXINT : (gint)timeout_ms;
        return timeout_ms == 0;
}

static gboolean check(GSource *base)
{
        struct source *source = (struct source *)base;

        return g_source_query_unix_fd(base, source->tag) != 0 || snib_timeout_ms(source->worker->client) == 0;
}

static gboolean dispatch(GSource *base, GSourceFunc callback, gpointer arg)
{
        (void)callback;
        (void)arg;
        worker_process(((struct source *)base)->worker);
        return G_SOURCE_CONTINUE;
}

static GSourceFuncs functions = {.prepare = prepare, .check = check, .dispatch = dispatch};

static gboolean tick(gpointer arg)
{
        worker_tick(arg);
        return G_SOURCE_CONTINUE;
}

static void over(void *arg)
{
        g_main_loop_quit(arg);
}

static GSource *source_of(struct worker *worker)
{
        GSource *base = g_source_new(&functions, sizeof(struct source));
        struct source *source = (struct source *)base;

        source->worker = worker;
        source->tag = g_source_add_unix_fd(base, snib_fd(worker->client), G_IO_IN);
        g_source_attach(base, NULL);
        return base;
}

int main(int argc, char **argv)
{
        GMainLoop *loop = g_main_loop_new(NULL, FALSE);
        struct worker worker;

        if (worker_start(&worker, argc > 1 ? argv[1] : NULL, "example:loop-glib", over, loop) == 0) {
                GSource *source = source_of(&worker);

                g_timeout_add(WORKER_TICK_MS, tick, &worker);
                g_main_loop_run(loop);
                g_source_destroy(source); /* before snib_close(), which closes the descriptor */
                g_source_unref(source);
        }
        g_main_loop_unref(loop);
        return worker_end(&worker);
}
