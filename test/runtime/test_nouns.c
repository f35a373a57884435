/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every object on mem:, in every mode of threads: waiting threads, cancel, close, callbacks that
 * call back, fork beside busy threads, memory that runs out, pauses. What the objects mean is
 * test/conformance's business. Waiting is for events.
 */

#include "base/alloc.h"
#include "conformance/nouns.h"
#include "lib/loop.h"
#include "lib/wait.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const int modes[] = {SNIB_THREADS_KEEPER, SNIB_THREADS_IO, SNIB_THREADS_NONE};
#define MODES ((int)(sizeof(modes) / sizeof(modes[0])))

static const char *space(void)
{
        static char url[32];
        static int count;

        (void)snprintf(url, sizeof(url), "mem:n%d", ++count);
        return url;
}

static snib_client *open_mode(const char *url, int mode)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .threads = mode};
        snib_client *c = NULL;

        assert_int_equal(snib_open(&c, url, &o, NULL), 0);
        return c;
}

static void until_set(snib_client *c, int mode, atomic_int *flag, int want)
{
        assert_true(loop_reaches(c, mode, flag, want, 20000));
}

/* A client of each mode, another that shuts what it wants, and one to look on. */
struct stage {
        int mode;
        snib_client *c, *other;
        struct obj *mine, *theirs;
};

static struct stage stage_of(const struct noun *noun, int mode)
{
        const char *url = space();
        struct stage s = {.mode = mode, .c = open_mode(url, mode), .other = open_mode(url, SNIB_THREADS_KEEPER)};

        s.mine = obj_new(noun, s.c, "x");
        s.theirs = obj_new(noun, s.other, "x");
        obj_shut(s.theirs);
        obj_see(s.mine);
        return s;
}

static void stage_done(struct stage *s)
{
        obj_clean(s->theirs);
        obj_free(s->mine);
        obj_free(s->theirs);
        snib_close(s->c);
        snib_close(s->other);
}

#define EACH(noun, m)                                                             \
        for (const struct noun *noun = nouns; noun < nouns + nouns_count; noun++) \
                for (int m = 0; m < MODES; m++)

struct taker {
        struct obj *obj;
        int result;
        pthread_t thread;
};

static void *take_run(void *arg)
{
        struct taker *t = arg;

        t->result = obj_take(t->obj, SNIB_FOREVER, NULL);
        if (t->result == 1)
                obj_give(t->obj);
        return NULL;
}

static void take_begin(struct taker *t, struct obj *obj)
{
        t->obj = obj;
        assert_int_equal(pthread_create(&t->thread, NULL, take_run, t), 0);
}

static int64_t waiters(snib_client *seen_by)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        assert_true(snib_describe(seen_by, "x", 0, &info, NULL) >= 0);
        return info.waiters;
}

/* Observers and spinners stand in no queue that is counted. */
static bool is_counted(const struct noun *noun)
{
        return noun->cap != SNIB_CAP_REGISTER && noun->lock_kind != SNIB_LOCK_SPIN;
}

static void a_waiting_thread_is_let_in_or_cancelled(void **state)
{
        EACH(noun, m)
        {
                for (int cancel = 0; cancel < 2; cancel++) {
                        struct stage s = stage_of(noun, modes[m]);
                        struct taker t;

                        take_begin(&t, s.mine);
                        if (is_counted(noun))
                                assert_true(eventually(waiters(s.other) == 1, 20000));
                        if (cancel)
                                assert_true(eventually(obj_cancel(s.mine) == 1, 20000));
                        else
                                obj_open(s.theirs);
                        (void)pthread_join(t.thread, NULL);
                        assert_int_equal(t.result, cancel ? SNIB_ECANCELLED : 1);
                        if (cancel)
                                obj_open(s.theirs);
                        stage_done(&s);
                }
        }
}

static void F113_close_ends_threads_and_callbacks_that_wait(void **state)
{
        EACH(noun, m)
        {
                struct stage s = stage_of(noun, modes[m]);
                struct obj *async = obj_new(noun, s.c, "x");
                struct taker t;

                obj_see(async);
                assert_int_equal(obj_take_async(async, SNIB_FOREVER, NULL), 0);
                if (is_counted(noun)) {
                        take_begin(&t, s.mine);
                        assert_true(eventually(waiters(s.c) == 2, 20000));
                }
                snib_close(s.c);
                s.c = NULL;
                if (is_counted(noun)) {
                        (void)pthread_join(t.thread, NULL);
                        assert_int_equal(t.result, SNIB_ECLOSED);
                        assert_int_equal(waiters(s.other), 0);
                }
                assert_int_equal(atomic_load(&async->answers), 1);
                assert_int_equal(async->result, SNIB_ECLOSED);
                obj_free(async);
                obj_open(s.theirs);
                stage_done(&s);
        }
}

struct inner {
        snib_client *client;
        const struct noun *noun;
        atomic_int done;
        int result;
};

/* Blocks, from inside a callback. */
static void take_within(void *arg, int result, const struct snib_error *err)
{
        struct inner *i = arg;
        struct obj *o = obj_new(i->noun, i->client, "x");

        obj_see(o);
        i->result = obj_take(o, 20, NULL);
        obj_free(o);
        atomic_fetch_add(&i->done, 1);
}

static void callbacks_may_wait(void **state)
{
        EACH(noun, m)
        {
                struct stage s = stage_of(noun, modes[m]);
                struct inner inner = {.client = s.c, .noun = noun};

                assert_int_equal(snib__pause_async(s.c, 0, take_within, &inner, NULL), 0);
                until_set(s.c, modes[m], &inner.done, 1);
                assert_int_equal(inner.result, 0);
                obj_open(s.theirs);
                stage_done(&s);
        }
}

static void on_pause(void *arg, int result, const struct snib_error *err)
{
        atomic_fetch_add((atomic_int *)arg, result == 0 ? 1 : result == SNIB_ECLOSED ? 1000 : 1000000);
}

static void a_pause_lasts_as_long_as_it_says(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                atomic_int pauses = 0;
                int64_t before = wait_now_ms();

                assert_int_equal(snib__pause(c, 30 * SNIB__MS, NULL), 0);
                assert_true(wait_now_ms() - before >= 29);
                before = wait_now_ms();
                assert_int_equal(snib__pause_async(c, 40 * SNIB__MS, on_pause, &pauses, NULL), 0);
                assert_int_equal(snib__pause_async(c, 20 * SNIB__MS, on_pause, &pauses, NULL), 0);
                until_set(c, modes[m], &pauses, 2);
                assert_true(wait_now_ms() - before >= 39);
                assert_int_equal(snib__pause_async(c, 3600 * SNIB__S, on_pause, &pauses, NULL), 0);
                snib_close(c);
                assert_int_equal(atomic_load(&pauses), 1002);
        }
}

/* ---- owners */

static void *take_permits(void *arg)
{
        snib_grant *g = NULL;

        assert_int_equal(snib_permits_try(arg, 2, &g, NULL), 1);
        return g;
}

/* Its owner is the acquire, not the thread. */
static void permits_outlive_the_thread_that_took_them(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
                snib_permits *p = NULL;
                pthread_t t;
                void *g = NULL;

                assert_int_equal(snib_permits_new(c, "x", NULL, &p, NULL), 0);
                assert_int_equal(snib_permits_set(p, 2, NULL), 1);
                assert_int_equal(pthread_create(&t, NULL, take_permits, p), 0);
                (void)pthread_join(t, &g);
                assert_true(snib_grant_valid(g));
                assert_int_equal(snib_permits_query(p, &info, NULL), 1);
                assert_int_equal(info.taken, 2);
                assert_int_equal(snib_grant_release(g, NULL), 1);
                snib_permits_free(p);
                snib_close(c);
        }
}

static void *read_and_end(void *arg)
{
        snib_grant *g = NULL;

        assert_int_equal(snib_lock_try(snib_rwlock_read(arg), &g, NULL), 1);
        return g;
}

static void F81_the_end_of_a_reading_thread_is_a_loss(void **state)
{
        for (int m = 0; m < MODES; m++) {
                snib_client *c = open_mode(space(), modes[m]);
                snib_rwlock *rw = NULL;
                snib_grant *w = NULL;
                pthread_t t;
                void *g = NULL;

                assert_int_equal(snib_rwlock_new(c, "x", NULL, &rw, NULL), 0);
                assert_int_equal(pthread_create(&t, NULL, read_and_end, rw), 0);
                (void)pthread_join(t, &g);
                assert_false(snib_grant_valid(g));
                assert_int_equal(snib_grant_loss(g), SNIB_LOSS_THREAD_EXIT);
                assert_int_equal(snib_lock_acquire(snib_rwlock_write(rw), 20000, &w, NULL), 1);
                assert_int_equal(snib_grant_release(w, NULL), 1);
                assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
                snib_rwlock_free(rw);
                snib_close(c);
        }
}

/* ---- fork */

static int in_child(struct obj *o)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_permits_info permits = SNIB_PERMITS_INFO_INIT;
        struct snib_value value = SNIB_VALUE_INIT;
        int64_t n;

        if (obj_take(o, SNIB_FOREVER, &err) != SNIB_EFORK || !strstr(err.text, "fork") || obj_cancel(o) != SNIB_EFORK ||
            obj_take_async(o, 0, NULL) != SNIB_EFORK)
                return 1;
        if (o->sem && (snib_semaphore_query(o->sem, &n, NULL) != SNIB_EFORK ||
                       snib_semaphore_set(o->sem, 1, 0, NULL) != SNIB_EFORK ||
                       snib_semaphore_release(o->sem, 1, NULL) != SNIB_EFORK))
                return 2;
        if (o->permits && (snib_permits_query(o->permits, &permits, NULL) != SNIB_EFORK ||
                           snib_permits_resize(o->permits, 1, NULL) != SNIB_EFORK))
                return 3;
        if (o->latch && (snib_latch_query(o->latch, &n, NULL) != SNIB_EFORK ||
                         snib_latch_count_down(o->latch, 1, NULL, NULL) != SNIB_EFORK))
                return 4;
        if (o->election && (snib_election_leader(o->election, &info, NULL) != SNIB_EFORK ||
                            snib_election_observe(o->election, 0, 0, &info, NULL) != SNIB_EFORK ||
                            snib_election_resign(o->election, NULL) != SNIB_EFORK))
                return 5;
        if (o->reg && (snib_register_read(o->reg, &value, NULL) != SNIB_EFORK ||
                       snib_register_write(o->reg, "x", 1, 0, NULL, NULL) != SNIB_EFORK))
                return 6;
        return 0;
}

struct busy {
        snib_client *client;
        atomic_int stop;
};

/* Reads and writes, so that a fork finds buffers that are growing. */
static void *be_busy(void *arg)
{
        static char bytes[65536];
        struct busy *b = arg;
        snib_register *r = NULL;
        size_t size = 1;

        if (snib_register_new(b->client, "busy", 0, &r, NULL) < 0)
                bail("snib_register_new");
        while (!atomic_load(&b->stop)) {
                struct snib_value v = SNIB_VALUE_INIT;

                (void)snib_register_write(r, bytes, size, SNIB_ANY_VERSION, NULL, NULL);
                (void)snib_register_read(r, &v, NULL);
                snib_value_free(&v);
                size = size < sizeof(bytes) / 2 ? 2 * size : 1;
        }
        snib_register_free(r);
        return NULL;
}

static void F107_a_forked_child_is_refused_beside_busy_threads(void **state)
{
        EACH(noun, m)
        {
                struct stage s = stage_of(noun, modes[m]);
                struct busy busy = {.client = s.c};
                pthread_t t;

                assert_int_equal(pthread_create(&t, NULL, be_busy, &busy), 0);
                for (int i = 0; i < 3; i++) {
                        int status;
                        pid_t pid = fork();

                        if (pid == 0) {
                                int r = in_child(s.mine);

                                obj_free(s.mine);
                                snib_close(s.c);
                                _exit(r);
                        }
                        assert_true(pid > 0);
                        assert_int_equal(waitpid(pid, &status, 0), pid);
                        assert_int_equal(status, 0);
                }
                atomic_store(&busy.stop, 1);
                (void)pthread_join(t, NULL);
                obj_open(s.theirs);
                assert_int_equal(obj_take(s.mine, 20000, NULL), 1);
                obj_give(s.mine);
                stage_done(&s);
        }
}

/* ---- memory */

static void on_value(void *arg, int result, int64_t value, const struct snib_error *err)
{
        atomic_fetch_add((atomic_int *)arg, 1);
}

/* Requests of every kind, as far as memory allows: the first error, or 0. */
static int requests(snib_client *c, int mode)
{
        snib_semaphore *sem = NULL;
        snib_permits *permits = NULL;
        snib_register *reg = NULL;
        snib_rwlock *rw = NULL;
        snib_grant *g = NULL;
        struct snib_value v = SNIB_VALUE_INIT;
        atomic_int answers = 0;
        int r;

        if ((r = snib_semaphore_new(c, "sem", 0, &sem, NULL)) == 0 && (r = snib_semaphore_set(sem, 2, 0, NULL)) >= 0 &&
            (r = snib_semaphore_acquire(sem, 1, 1000, NULL)) >= 0 &&
            (r = snib_semaphore_release_async(sem, 1, 0, on_value, &answers, NULL)) == 0)
                until_set(c, mode, &answers, 1);
        if (r >= 0 && (r = snib_permits_new(c, "permits", NULL, &permits, NULL)) == 0 &&
            (r = snib_permits_resize(permits, 3, NULL)) >= 0)
                r = snib_permits_acquire(permits, 2, 1000, &g, NULL);
        if (r == 1 && g)
                r = snib_grant_release(g, NULL);
        if (r >= 0 && (r = snib_register_new(c, "reg", 0, &reg, NULL)) == 0 &&
            (r = snib_register_write(reg, "value", 5, SNIB_ANY_VERSION, NULL, NULL)) >= 0 &&
            (r = snib_register_read(reg, &v, NULL)) == 1)
                assert_string_equal(v.bytes, "value");
        snib_value_free(&v);
        if (r >= 0 && (r = snib_rwlock_new(c, "rw", NULL, &rw, NULL)) == 0 &&
            (r = snib_lock_acquire(snib_rwlock_read(rw), 1000, &g, NULL)) == 1)
                r = snib_grant_release(g, NULL);
        snib_semaphore_free(sem);
        snib_permits_free(permits);
        snib_register_free(reg);
        snib_rwlock_free(rw);
        return r < 0 ? r : 0;
}

static void F111_every_allocation_of_a_request_fails_once(void **state)
{
        for (int m = 0; m < MODES; m++) {
                const char *url = space();
                int failures = 0, r = -1;

                for (uint64_t n = 1; n < 500; n++) {
                        snib_client *c = open_mode(url, modes[m]);
                        uint64_t start = atomic_load(&snib__alloc_count);

                        atomic_store(&snib__alloc_fail_at, start + n);
                        r = requests(c, modes[m]);
                        atomic_store(&snib__alloc_fail_at, 0);
                        snib_close(c);
                        if (r != 0 && r != SNIB_ENOMEM)
                                print_message("# allocation %d: %s\n", (int)n, snib_error_name(r));
                        assert_true(r == 0 || r == SNIB_ENOMEM);
                        failures += r != 0;
                        if (atomic_load(&snib__alloc_count) < start + n)
                                break; /* it asks for less than n */
                }
                assert_true(failures >= 5);
                assert_int_equal(r, 0);
        }
}

static void no_allocation_for_a_request_after_warm_up(void **state)
{
        snib_client *c = open_mode(space(), SNIB_THREADS_KEEPER);
        snib_semaphore *sem = NULL;
        uint64_t before;

        assert_int_equal(snib_semaphore_new(c, "sem", 0, &sem, NULL), 0);
        assert_int_equal(snib_semaphore_set(sem, 2, 0, NULL), 1);
        for (int round = 0; round < 2; round++) {
                before = atomic_load(&snib__alloc_count);
                for (int i = 0; i < 200; i++) {
                        assert_int_equal(snib_semaphore_try(sem, 1, NULL), 1);
                        assert_int_equal(snib_semaphore_release(sem, 1, NULL), 1);
                }
        }
        assert_int_equal(atomic_load(&snib__alloc_count) - before, 0);
        snib_semaphore_free(sem);
        snib_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_waiting_thread_is_let_in_or_cancelled),
            cmocka_unit_test(F113_close_ends_threads_and_callbacks_that_wait),
            cmocka_unit_test(callbacks_may_wait),
            cmocka_unit_test(a_pause_lasts_as_long_as_it_says),
            cmocka_unit_test(permits_outlive_the_thread_that_took_them),
            cmocka_unit_test(F81_the_end_of_a_reading_thread_is_a_loss),
            cmocka_unit_test(F107_a_forked_child_is_refused_beside_busy_threads),
            cmocka_unit_test(F111_every_allocation_of_a_request_fails_once),
            cmocka_unit_test(no_allocation_for_a_request_after_warm_up),
        };

        return cmocka_run_group_tests_name("nouns", tests, NULL, NULL);
}
