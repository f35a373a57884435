/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads of one process that want one lock, beside those of another client and through everything
 * that can end a wait or a hold: time-outs, cancels, re-entries, force, a kill. What they do is
 * counted under the lock, with its tokens: two at once, a token that is not new, somebody who is
 * never served. On every engine there is; no time is asserted.
 */

#include "lib/proc.h"
#include "lib/redis_server.h"
#include "lib/tmp.h"
#include "lib/wait.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <snib/snib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define THREADS 24
#define OTHERS 3
#define ROUNDS 60
#define LEASE_MS 1500
#define BRIEF_MS 2

/* What the lock protects, and who was in. */
struct shop {
        snib_lock *lock, *others;
        bool forced; /* holds are ended by force: two may be in at once, one of whom is refused */
        atomic_int inside, overlaps, repeated, errors, lost;
        atomic_int unknown;   /* waits that ended before the engine answered: a busy machine */
        _Atomic int64_t last; /* token that was accepted */
        atomic_int served[THREADS + OTHERS];
        atomic_bool stop;
};

struct worker {
        pthread_t thread;
        struct shop *shop;
        int number;
        bool other;
};

static const char *url_redis, *url_local;
static int kind; /* enum snib_lock_kind */

/* As a store would that checks tokens. */
static void write_with(struct shop *s, int64_t token)
{
        int64_t last = atomic_load(&s->last);

        do {
                if (token == last)
                        atomic_fetch_add(&s->repeated, 1);
                if (token < last && !s->forced)
                        atomic_fetch_add(&s->overlaps, 1);
        } while (token > last && !atomic_compare_exchange_weak(&s->last, &last, token));
}

static void work(struct shop *s, struct worker *w, snib_lock *lock, snib_grant *g, int round)
{
        snib_grant *again = NULL;

        if (atomic_fetch_add(&s->inside, 1) != 0 && !s->forced)
                atomic_fetch_add(&s->overlaps, 1);
        write_with(s, snib_grant_token(g));
        if (round % 7 == w->number % 7 && snib_lock_acquire(lock, SNIB_FOREVER, &again, NULL) == 1) {
                if (again != g || snib_grant_token(again) != snib_grant_token(g))
                        atomic_fetch_add(&s->errors, 1);
                (void)snib_grant_release(again, NULL);
        }
        atomic_fetch_sub(&s->inside, 1);
        atomic_fetch_add(&s->served[w->number], 1);
}

/* Whether this is how an acquire or a release may end here. */
static bool passes(const struct shop *s, int r)
{
        return r >= 0 || r == SNIB_ECANCELLED || (s->forced && r == SNIB_ELOST);
}

static void come_and_go(struct shop *s, struct worker *w, int round)
{
        snib_lock *lock = w->other ? s->others : s->lock;
        int64_t wait_ms = round % 5 == w->number % 5 ? BRIEF_MS : round % 11 == w->number % 11 ? 0 : SNIB_FOREVER;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g = NULL;
        int r = snib_lock_acquire(lock, wait_ms, &g, &err);

        if (r == SNIB_EUNKNOWN && wait_ms == BRIEF_MS) {
                atomic_fetch_add(&s->unknown, 1); /* what it may have got is given back in the background */
                return;
        }
        if (r == 1) {
                work(s, w, lock, g, round);
                r = snib_grant_release(g, &err);
                atomic_fetch_add(&s->lost, r == SNIB_ELOST);
        }
        if (!passes(s, r)) {
                print_message("# %d: %s\n", r, err.text);
                atomic_fetch_add(&s->errors, 1);
        }
}

static void *worker_main(void *arg)
{
        struct worker *w = arg;

        for (int i = 0; i < ROUNDS || (w->other && !atomic_load(&w->shop->stop)); i++)
                come_and_go(w->shop, w, i);
        return NULL;
}

static snib_client *open_at(const char *url)
{
        snib_client *c = NULL;

        assert_int_equal(snib_open(&c, url, NULL, NULL), 0);
        return c;
}

static snib_lock *lock_at(snib_client *c)
{
        struct snib_lock_options o = {
            .size = sizeof(struct snib_lock_options), .kind = kind, .lease_ms = LEASE_MS * wait_slow()};
        snib_lock *l = NULL;

        assert_int_equal(snib_lock_new(c, "counter", &o, &l, NULL), 0);
        return l;
}

/* While they work: what else may happen to a lock. */
static void disturb(struct shop *s, bool force)
{
        for (int i = 0; i < 20; i++) {
                wait_moment();
                (void)snib_lock_cancel(s->lock);
                if (force)
                        assert_true(snib_lock_force_release(s->others, NULL) >= 0);
        }
}

static void run(const char *url, bool force)
{
        struct shop s = {.forced = force};
        struct worker w[THREADS + OTHERS];
        snib_client *c = open_at(url), *other = open_at(url);
        snib_grant *g;

        s.lock = lock_at(c);
        s.others = lock_at(other);
        for (int i = 0; i < THREADS + OTHERS; i++) {
                w[i] = (struct worker){.shop = &s, .number = i, .other = i >= THREADS};
                assert_int_equal(pthread_create(&w[i].thread, NULL, worker_main, &w[i]), 0);
        }
        disturb(&s, force);
        for (int i = 0; i < THREADS; i++)
                (void)pthread_join(w[i].thread, NULL);
        atomic_store(&s.stop, true);
        for (int i = THREADS; i < THREADS + OTHERS; i++)
                (void)pthread_join(w[i].thread, NULL);
        assert_int_equal(s.overlaps, 0);
        assert_int_equal(s.repeated, 0);
        assert_int_equal(s.errors, 0);
        for (int i = 0; i < THREADS + OTHERS; i++)
                assert_true(s.served[i] > 0);
        /* Nothing was left, but what is on its way back. */
        assert_int_equal(snib_lock_acquire(s.lock, s.unknown ? SNIB_FOREVER : 0, &g, NULL), 1);
        assert_true(snib_grant_token(g) > s.last);
        assert_int_equal(snib_grant_release(g, NULL), 1);
        snib_lock_free(s.lock);
        snib_lock_free(s.others);
        snib_close(c);
        snib_close(other);
}

static void run_everywhere(bool force)
{
        run(force ? "mem:cohort-forced" : "mem:cohort", force);
        run(url_local, force);
        if (url_redis)
                run(url_redis, force);
}

static void threads_of_two_clients_exclude_each_other(void **state)
{
        (void)state;
        for (kind = SNIB_LOCK_REENTRANT; kind <= SNIB_LOCK_FENCED; kind++)
                run_everywhere(false);
}

static void a_hold_that_is_ended_by_force_is_refused_by_its_token(void **state)
{
        (void)state;
        for (kind = SNIB_LOCK_REENTRANT; kind <= SNIB_LOCK_FENCED; kind++)
                run_everywhere(true);
}

/* ---- a process that is killed */

struct killed {
        const char *url;
        struct shop *shop; /* shared with the parent */
};

static void *hammer(void *arg)
{
        struct worker *w = arg;

        for (int i = 0;; i++)
                come_and_go(w->shop, w, i);
        return NULL;
}

static void crowd_process(struct proc *me, void *arg)
{
        const struct killed *k = arg;
        struct worker w[THREADS];
        snib_client *c = open_at(k->url);

        k->shop->lock = lock_at(c);
        for (int i = 0; i < THREADS; i++) {
                w[i] = (struct worker){.shop = k->shop, .number = i};
                if (pthread_create(&w[i].thread, NULL, hammer, &w[i]) != 0)
                        bail("no thread");
        }
        for (int i = 0; i < THREADS; i++)
                while (atomic_load(&k->shop->served[i]) < 2)
                        wait_moment();
        proc_say(me, 'r');
        (void)proc_hear(me, 600000);
}

/* What it held ends with its lease, whichever of its threads had it, and nothing else is left of
 * it. */
static void killed_at(const char *url)
{
        struct shop *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct killed k = {url, s};
        struct proc p;
        snib_client *c;
        snib_lock *l;
        snib_grant *g = NULL;

        assert_ptr_not_equal(s, MAP_FAILED);
        proc_start(&p, crowd_process, &k);
        assert_int_equal(proc_hear(&p, 60000 * wait_slow()), 'r');
        (void)proc_kill(&p, SIGKILL);
        assert_int_equal(s->overlaps, 0);
        assert_int_equal(s->repeated, 0);
        assert_int_equal(s->errors, 0);
        c = open_at(url);
        l = lock_at(c);
        assert_int_equal(snib_lock_acquire(l, SNIB_FOREVER, &g, NULL), 1);
        assert_true(snib_grant_token(g) > s->last);
        assert_int_equal(snib_grant_release(g, NULL), 1);
        snib_lock_free(l);
        snib_close(c);
        (void)munmap(s, sizeof(*s));
}

static void a_process_with_a_cohort_is_killed(void **state)
{
        (void)state;
        if (!wait_threads_after_fork()) {
                print_message("# this sanitizer allows no threads in a forked child\n");
                skip();
        }
        for (kind = SNIB_LOCK_REENTRANT; kind <= SNIB_LOCK_FENCED; kind++) {
                killed_at(url_local);
                if (url_redis)
                        killed_at(url_redis);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_process_with_a_cohort_is_killed),
            cmocka_unit_test(threads_of_two_clients_exclude_each_other),
            cmocka_unit_test(a_hold_that_is_ended_by_force_is_refused_by_its_token),
        };
        struct redis_server *server = redis_server_unavailable() ? NULL : redis_server_start(NULL);
        char local[300];
        int r;

        (void)snprintf(local, sizeof(local), "local:%s", tmp_dir());
        url_local = local;
        url_redis = server ? redis_server_url(server) : NULL;
        if (!server)
                print_message("# without Redis: %s\n", redis_server_unavailable());
        r = cmocka_run_group_tests_name("cohort", tests, NULL, NULL);
        redis_server_free(server);
        return r;
}
