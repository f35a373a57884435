/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tools of the suite, as kit.h says. Not a test. Threads are started for waiters; everything
 * else is for the thread that calls.
 */

#include "kit.h"
#include "lib/loop.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

char url[512];
struct redis_server *server;
unsigned caps;

snib_client *open_mode(const char *label, int threads)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .label = label, .threads = threads};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *c = NULL;
        int r = snib_open(&c, url, &o, &err);

        if (r < 0)
                bail("%s: %s", url, err.text);
        return c;
}

snib_client *open_as(const char *label)
{
        static atomic_int count;

        return open_mode(label, atomic_fetch_add(&count, 1) % 2 ? SNIB_THREADS_IO : SNIB_THREADS_KEEPER);
}

snib_lock *lock_with(snib_client *c, const char *name, struct snib_lock_options o)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_lock *l = NULL;

        o.size = sizeof(struct snib_lock_options);
        if (snib_lock_new(c, name, &o, &l, &err) < 0)
                bail("snib_lock_new: %s", err.text);
        return l;
}

snib_lock *lock_of(snib_client *c, const char *name)
{
        return lock_with(c, name, (struct snib_lock_options){0});
}

snib_grant *acquire(snib_lock *l, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g = NULL;
        int r = snib_lock_acquire(l, wait_ms, &g, &err);

        if (r != 1)
                print_message("# acquire: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
        return g;
}

void release(snib_grant *g)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_grant_release(g, &err);

        if (r != 1)
                print_message("# release: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
}

struct snib_lock_info query(snib_lock *l)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_lock_query(l, &info, &err);

        if (r < 0)
                print_message("# query: %d %s\n", r, err.text);
        assert_true(r >= 0);
        assert_int_equal(r, info.held);
        return info;
}

struct pair pair_with(const char *name, struct snib_lock_options o)
{
        struct pair p = {.a = open_as("first"), .b = open_as("second")};

        p.la = lock_with(p.a, name, o);
        p.lb = lock_with(p.b, name, o);
        return p;
}

struct pair pair_of(const char *name)
{
        return pair_with(name, (struct snib_lock_options){0});
}

void pair_done(struct pair *p)
{
        snib_lock_free(p->la);
        snib_lock_free(p->lb);
        snib_close(p->a);
        snib_close(p->b);
}

void refused(snib_lock *l, int64_t wait_ms)
{
        snib_grant *none = NULL;
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_lock_acquire(l, wait_ms, &none, &err);

        if (r != 0)
                print_message("# %d %s\n", r, err.text);
        assert_int_equal(r, 0);
        assert_null(none);
}

static void *wait_run(void *arg)
{
        struct waiter *w = arg;

        w->result = snib_lock_acquire(w->lock, w->wait_ms, &w->grant, NULL);
        w->at = wait_now_ms();
        if (w->order)
                w->place = atomic_fetch_add(w->order, 1);
        if (w->result == 1)
                (void)snib_grant_release(w->grant, NULL);
        return NULL;
}

void wait_begin(struct waiter *w)
{
        if (pthread_create(&w->thread, NULL, wait_run, w))
                bail("pthread_create");
}

void wait_end(struct waiter *w)
{
        (void)pthread_join(w->thread, NULL);
}

/* ---- what is told, and until it is */

void on_loss(void *arg, snib_grant *grant, int reason)
{
        struct loss *loss = arg;

        atomic_store(&loss->reason, reason);
        atomic_fetch_add(&loss->count, 1);
}

void loop_until(snib_client *c, int mode, atomic_int *flag, int want)
{
        assert_true(loop_reaches(c, mode, flag, want, 20000));
}

void on_value(void *arg, int result, int64_t value, const struct snib_error *err)
{
        struct answer *a = arg;

        a->result = result;
        a->value = value;
        atomic_fetch_add(&a->count, 1);
}

void on_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        struct answer *a = arg;

        a->result = result;
        if (info)
                a->info = *info;
        atomic_fetch_add(&a->count, 1);
}

void threads_run(int count, void *(*run)(void *arg), void *arg)
{
        pthread_t t[THREADS_MAX];

        assert_in_range(count, 1, THREADS_MAX);
        for (int i = 0; i < count; i++)
                if (pthread_create(&t[i], NULL, run, arg))
                        bail("pthread_create");
        for (int i = 0; i < count; i++)
                (void)pthread_join(t[i], NULL);
}
