/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Multilocks without waiting, under event loops, within callbacks; what closing, forking, the end
 * of a thread and the lack of memory do to them.
 */

#include "base/alloc.h"
#include "base/prng.h"
#include "multi.h"
#include "proc.h"
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What a callback was told. */
struct told {
        _Atomic int calls;
        _Atomic int result;
        snib_multigrant *_Atomic grant;
        struct snib_error err;
};

static void acquired(void *arg, int result, snib_multigrant *grant, const struct snib_error *err)
{
        struct told *t = arg;

        if (err)
                t->err = *err;
        atomic_store(&t->grant, grant);
        atomic_store(&t->result, result);
        atomic_fetch_add(&t->calls, 1);
}

static void done(void *arg, int result, const struct snib_error *err)
{
        acquired(arg, result, NULL, err);
}

#define await(told) assert_true(eventually(atomic_load(&(told)->calls) > 0, 10000))

/* Two members on two clients, of the calling thread, and the same of another owner. */
struct two {
        snib_client *client[2];
        snib_lock *ours[2];
        snib_lock *theirs[2];
        snib_multilock *multilock;
};

static void two_open(struct two *t, int threads)
{
        static const char *const urls[] = {"mem:async1", "mem:async2"};

        for (int i = 0; i < 2; i++) {
                struct snib_options o = {.size = sizeof(struct snib_options), .threads = threads};
                struct snib_lock_options lease = {.size = sizeof(struct snib_lock_options),
                                                  .lease_ms = fault_lease_ms()};

                assert_result(snib_open(&t->client[i], urls[i], &o, NULL), 0);
                t->ours[i] = fault_lock_with(t->client[i], "one", &lease);
                t->theirs[i] = fault_lock(t->client[i], "one", "they", 0);
        }
        t->multilock = multi_new(t->ours, 2);
}

static void two_close(struct two *t)
{
        snib_multilock_free(t->multilock);
        for (int i = 0; i < 2; i++) {
                snib_lock_free(t->ours[i]);
                snib_lock_free(t->theirs[i]);
                snib_close(t->client[i]);
        }
}

static void the_owner_is_the_thread_that_asked(void **state)
{
        struct two t;
        struct told got = {.err = SNIB_ERROR_INIT}, gone = {.err = SNIB_ERROR_INIT};

        two_open(&t, SNIB_THREADS_KEEPER);
        assert_result(snib_multilock_acquire_async(t.multilock, 0, acquired, &got, NULL), 0);
        await(&got);
        assert_result(atomic_load(&got.result), 1);
        for (size_t i = 0; i < 2; i++) {
                assert_non_null(snib_lock_grant(t.ours[i]));
                assert_ptr_equal(snib_lock_grant(t.ours[i]), snib_multigrant_member(got.grant, i));
        }
        assert_result(snib_multigrant_release_async(got.grant, done, &gone, NULL), 0);
        await(&gone);
        assert_result(atomic_load(&gone.result), 1);
        assert_false(multi_held(t.ours[0]) || multi_held(t.ours[1]));
        assert_int_equal(atomic_load(&got.calls), 1);
        two_close(&t);
}

static void busy_cancelled_and_in_time(void **state)
{
        struct two t;
        struct told busy = {.err = SNIB_ERROR_INIT}, late = {.err = SNIB_ERROR_INIT},
                    cancelled = {.err = SNIB_ERROR_INIT}, got = {.err = SNIB_ERROR_INIT};
        snib_grant *theirs;

        two_open(&t, SNIB_THREADS_KEEPER);
        theirs = fault_acquire(t.theirs[1], 0);
        assert_result(snib_multilock_acquire_async(t.multilock, 0, acquired, &busy, NULL), 0);
        await(&busy);
        assert_result(atomic_load(&busy.result), 0);
        assert_null(busy.grant);
        assert_result(snib_multilock_acquire_async(t.multilock, 100, acquired, &late, NULL), 0);
        await(&late);
        assert_result(atomic_load(&late.result), 0);
        assert_false(multi_held(t.ours[0]));
        assert_result(snib_multilock_acquire_async(t.multilock, SNIB_FOREVER, acquired, &cancelled, NULL), 0);
        assert_true(eventually(multi_held(t.ours[0]), 5000));
        assert_int_equal(snib_multilock_cancel(t.multilock), 1);
        await(&cancelled);
        assert_result(atomic_load(&cancelled.result), SNIB_ECANCELLED);
        assert_true(eventually(!multi_held(t.ours[0]), 5000));
        assert_result(snib_multilock_acquire_async(t.multilock, SNIB_FOREVER, acquired, &got, NULL), 0);
        assert_true(eventually(multi_held(t.ours[0]), 5000));
        assert_result(snib_grant_release(theirs, NULL), 1);
        await(&got);
        assert_result(atomic_load(&got.result), 1);
        multi_release(got.grant, 1);
        two_close(&t);
}

struct canceller {
        snib_multilock *multilock;
        atomic_bool stop;
};

static void *cancel_on_and_on(void *arg)
{
        struct canceller *c = arg;

        while (!atomic_load(&c->stop))
                assert_true(snib_multilock_cancel(c->multilock) >= 0);
        return NULL;
}

/* Another thread finds the call before the one that makes it has begun to step it. */
static void cancelled_as_it_begins(void **state)
{
        struct two t;
        struct canceller c = {.stop = false};
        pthread_t thread;

        two_open(&t, SNIB_THREADS_KEEPER);
        c.multilock = t.multilock;
        assert_int_equal(pthread_create(&thread, NULL, cancel_on_and_on, &c), 0);
        for (int i = 0; i < 3000; i++) {
                struct told got = {.err = SNIB_ERROR_INIT};

                assert_result(snib_multilock_acquire_async(t.multilock, SNIB_FOREVER, acquired, &got, NULL), 0);
                await(&got);
                if (atomic_load(&got.result) == 1)
                        assert_result(snib_multigrant_release(got.grant, NULL), 1);
                else
                        assert_result(atomic_load(&got.result), SNIB_ECANCELLED);
                assert_int_equal(atomic_load(&got.calls), 1);
        }
        atomic_store(&c.stop, true);
        pthread_join(thread, NULL);
        two_close(&t);
}

/* A foreign order, as in test_plain.c: without a thread that waits, somebody has to look again
 * after the pause. */
static void F74_rounds_go_on_without_a_thread(void **state)
{
        struct two t;
        struct told got = {.err = SNIB_ERROR_INIT};
        snib_grant *second, *first = NULL;

        two_open(&t, SNIB_THREADS_KEEPER);
        second = fault_acquire(t.theirs[1], 0);
        assert_result(snib_multilock_acquire_async(t.multilock, SNIB_FOREVER, acquired, &got, NULL), 0);
        assert_true(eventually(multi_held(t.ours[0]), 5000));
        assert_result(snib_lock_acquire(t.theirs[0], SNIB_FOREVER, &first, NULL), 1); /* one slice later at most */
        assert_int_equal(atomic_load(&got.calls), 0);
        assert_result(snib_grant_release(first, NULL), 1);
        assert_result(snib_grant_release(second, NULL), 1);
        await(&got);
        assert_result(atomic_load(&got.result), 1);
        multi_release(got.grant, 1);
        two_close(&t);
}

/* What an application's event loop does, until *flag. */
static void loop(struct two *t, _Atomic int *flag)
{
        int64_t until = wait_now_ms() + 10000;

        while (!atomic_load(flag)) {
                struct pollfd fds[2];
                int64_t ms = until - wait_now_ms();

                assert_true(ms > 0);
                for (int i = 0; i < 2; i++) {
                        int64_t limit = snib_timeout_ms(t->client[i]);

                        fds[i] = (struct pollfd){.fd = snib_fd(t->client[i]), .events = POLLIN};
                        ms = limit >= 0 && limit < ms ? limit : ms;
                }
                (void)poll(fds, 2, (int)ms);
                for (int i = 0; i < 2; i++)
                        assert_result(snib_process(t->client[i]), 0);
        }
}

static void under_an_event_loop(void **state)
{
        struct two t;
        struct told got = {.err = SNIB_ERROR_INIT}, gone = {.err = SNIB_ERROR_INIT}, late = {.err = SNIB_ERROR_INIT};
        struct multi_loss loss;
        snib_multigrant *grant;
        snib_grant *theirs;

        two_open(&t, SNIB_THREADS_NONE);
        assert_result(snib_multilock_acquire_async(t.multilock, 1000, acquired, &got, NULL), 0);
        assert_int_equal(atomic_load(&got.calls), 0); /* not from within the call */
        loop(&t, &got.calls);
        assert_result(atomic_load(&got.result), 1);
        multi_watch(got.grant, &loss);
        assert_int_equal(snib_lock_force_release(t.theirs[1], NULL), 1);
        loop(&t, &loss.calls);
        assert_result(snib_multigrant_release_async(got.grant, done, &gone, NULL), 0);
        loop(&t, &gone.calls);
        assert_result(atomic_load(&gone.result), SNIB_ELOST);
        /* A blocking call drives both clients. */
        grant = multi_acquire(t.multilock, 0);
        multi_release(grant, 1);
        theirs = fault_acquire(t.theirs[1], 0);
        assert_true(multi_refused(t.multilock, 100, 0) >= 99);
        assert_result(snib_multilock_acquire_async(t.multilock, 100, acquired, &late, NULL), 0);
        loop(&t, &late.calls);
        assert_result(atomic_load(&late.result), 0);
        assert_result(snib_grant_release(theirs, NULL), 1);
        two_close(&t);
}

static void red_under_an_event_loop(void **state)
{
        static const char *const urls[] = {"mem:r1", "mem:r2", "mem:r3"};
        struct snib_options o = {.size = sizeof(struct snib_options), .threads = SNIB_THREADS_NONE};
        snib_client *c[3];
        snib_lock *lock[3], *theirs[3];
        snib_multilock *m, *other;
        snib_multigrant *grant;

        for (int i = 0; i < 3; i++) {
                assert_result(snib_open(&c[i], urls[i], &o, NULL), 0);
                lock[i] = fault_lock(c[i], "one", "we", 0);
                theirs[i] = fault_lock(c[i], "one", "they", 0);
        }
        m = multi_red(lock, 3, 0);
        other = multi_red(theirs, 3, 0);
        grant = multi_acquire(m, 0);
        assert_true(multi_refused(other, 60, 0) >= 59);
        multi_release(grant, 1);
        multi_release(multi_acquire(other, 0), 1);
        snib_multilock_free(m);
        snib_multilock_free(other);
        for (int i = 0; i < 3; i++) {
                snib_lock_free(lock[i]);
                snib_lock_free(theirs[i]);
                snib_close(c[i]);
        }
}

/* A whole life, blocking, where callbacks run. */
static void nested(void *arg, int result, snib_multigrant *grant, const struct snib_error *err)
{
        struct two *t = ((void **)arg)[0];
        struct told *told = ((void **)arg)[1];
        snib_multigrant *inner = NULL;
        int r;

        r = snib_multigrant_release(grant, NULL);
        if (r == 1)
                r = snib_multilock_acquire(t->multilock, 5000, &inner, NULL);
        if (r == 1)
                r = snib_multigrant_release(inner, NULL);
        acquired(told, r, NULL, NULL);
        (void)result, (void)err;
}

static void blocking_calls_within_a_callback(void **state)
{
        for (int threads = SNIB_THREADS_KEEPER; threads <= SNIB_THREADS_NONE; threads++) {
                struct told told = {.err = SNIB_ERROR_INIT};
                struct two t;
                void *arg[] = {&t, &told};

                two_open(&t, threads);
                assert_result(snib_multilock_acquire_async(t.multilock, 0, nested, arg, NULL), 0);
                if (threads == SNIB_THREADS_NONE)
                        loop(&t, &told.calls);
                await(&told);
                assert_result(atomic_load(&told.result), 1);
                two_close(&t);
        }
}

static void release_in_callback(void *arg, snib_multigrant *grant, int reason)
{
        (void)reason;
        acquired(arg, snib_multigrant_release(grant, NULL), NULL, NULL);
}

static void a_loss_callback_may_release(void **state)
{
        struct told told = {.err = SNIB_ERROR_INIT};
        snib_multigrant *grant;
        struct two t;

        two_open(&t, SNIB_THREADS_KEEPER);
        grant = multi_acquire(t.multilock, 0);
        assert_result(snib_multigrant_on_loss(grant, release_in_callback, &told, NULL), 0);
        assert_int_equal(snib_lock_force_release(t.theirs[0], NULL), 1);
        await(&told);
        assert_result(atomic_load(&told.result), SNIB_ELOST);
        assert_false(multi_held(t.ours[1]));
        two_close(&t);
}

static void a_closed_client_is_a_loss_and_the_rest_is_released(void **state)
{
        snib_multigrant *grant;
        struct multi_loss loss;
        struct two t;

        two_open(&t, SNIB_THREADS_KEEPER);
        grant = multi_acquire(t.multilock, 0);
        multi_watch(grant, &loss);
        snib_close(t.client[0]);
        assert_int_equal(multi_lost(grant, &loss, 5000), SNIB_LOSS_CLOSED);
        assert_null(snib_multigrant_member(grant, 0));
        assert_true(multi_held(t.ours[1]));
        multi_release(grant, SNIB_ECLOSED);
        assert_false(multi_held(t.ours[1]));
        assert_result(snib_open(&t.client[0], "mem:async1", NULL, NULL), 0); /* for two_close() */
        two_close(&t);
}

static void closing_ends_what_waits(void **state)
{
        for (int which = 0; which < 2; which++) {
                struct told told = {.err = SNIB_ERROR_INIT};
                snib_grant *theirs;
                struct two t;
                struct multi_waiter w;

                two_open(&t, SNIB_THREADS_KEEPER);
                theirs = fault_acquire(t.theirs[1], 0);
                if (which)
                        multi_wait(&w, t.multilock, SNIB_FOREVER);
                else
                        assert_result(snib_multilock_acquire_async(t.multilock, SNIB_FOREVER, acquired, &told, NULL),
                                      0);
                assert_true(eventually(multi_held(t.ours[0]), 5000));
                snib_close(t.client[1]);
                if (which) {
                        assert_result(multi_join(&w), SNIB_ECLOSED);
                } else {
                        await(&told);
                        assert_result(atomic_load(&told.result), SNIB_ECLOSED);
                        assert_non_null(strstr(told.err.text, "member 2 of 2, \"one\": "));
                }
                (void)theirs;
                assert_true(eventually(!multi_held(t.ours[0]), 5000));
                assert_result(snib_open(&t.client[1], "mem:async2", NULL, NULL), 0);
                two_close(&t);
        }
}

static void *hold_and_end(void *arg)
{
        return multi_acquire(arg, 0);
}

static void the_end_of_the_thread_is_a_loss(void **state)
{
        pthread_t thread;
        void *grant;
        struct two t;

        two_open(&t, SNIB_THREADS_KEEPER);
        assert_int_equal(pthread_create(&thread, NULL, hold_and_end, t.multilock), 0);
        pthread_join(thread, &grant);
        assert_int_equal(snib_multigrant_valid(grant), 0);
        assert_int_equal(snib_multigrant_loss(grant), SNIB_LOSS_THREAD_EXIT);
        assert_true(eventually(!multi_held(t.ours[0]) && !multi_held(t.ours[1]), 5000));
        multi_release(grant, SNIB_ELOST);
        two_close(&t);
}

static int in_child(struct two *t, snib_multigrant *grant)
{
        snib_multigrant *none = NULL;
        snib_multilock *m = NULL;
        struct told told = {.err = SNIB_ERROR_INIT};

        if (snib_multigrant_valid(grant) || snib_multigrant_left_ms(grant))
                return 1;
        if (snib_multilock_try(t->multilock, &none, NULL) != SNIB_EFORK ||
            snib_multilock_acquire_async(t->multilock, 0, acquired, &told, NULL) != SNIB_EFORK ||
            snib_multilock_cancel(t->multilock) != SNIB_EFORK ||
            snib_multilock_force_release(t->multilock, NULL) != SNIB_EFORK)
                return 2;
        if (snib_multilock_new(t->ours, 2, NULL, &m, NULL) != SNIB_EFORK)
                return 3;
        if (snib_multigrant_loss_fd(grant) != SNIB_EFORK ||
            snib_multigrant_on_loss(grant, NULL, NULL, NULL) != SNIB_EFORK)
                return 4;
        if (snib_multigrant_release(grant, NULL) != SNIB_EFORK)
                return 5;
        two_close(t);
        return 0;
}

static void a_forked_copy_is_inert(void **state)
{
        snib_multigrant *grant;
        struct two t;
        int status;
        pid_t pid;

        two_open(&t, SNIB_THREADS_KEEPER);
        grant = multi_acquire(t.multilock, 0);
        pid = proc_fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(in_child(&t, grant));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(snib_multigrant_valid(grant));
        multi_release(grant, 1);
        two_close(&t);
}

/* One life of a multilock, plain or red, with whatever fails. True: nothing did. */
static bool life(bool red)
{
        static const char *const urls[] = {"mem:f1", "mem:f2", "mem:f3"};
        struct snib_multilock_options o = {.size = sizeof(struct snib_multilock_options), .red = red};
        struct told got = {.err = SNIB_ERROR_INIT}, gone = {.err = SNIB_ERROR_INIT};
        snib_client *c[3] = {NULL};
        snib_lock *lock[3] = {NULL};
        snib_multilock *m = NULL;
        snib_multigrant *grant = NULL;
        snib_striped *s = NULL;
        bool good = true;

        for (int i = 0; i < 3; i++)
                good = good && snib_open(&c[i], urls[i], NULL, NULL) == 0 &&
                       snib_lock_new(c[i], "one", NULL, &lock[i], NULL) == 0;
        good = good && snib_multilock_new(lock, 3, &o, &m, NULL) == 0;
        good = good && snib_striped_new(c[0], "two", 3, NULL, &s, NULL) == 0;
        if (good) {
                int r = snib_multilock_acquire(m, 2000, &grant, NULL);

                good = r == 1;
                if (r == 1)
                        good &= snib_multigrant_release(grant, NULL) == 1;
        }
        if (m) {
                int r = snib_multilock_acquire_async(m, 2000, acquired, &got, NULL);

                good &= r == 0;
                if (r == 0)
                        await(&got);
                if (r == 0 && atomic_load(&got.result) == 1) {
                        if (snib_multigrant_release_async(got.grant, done, &gone, NULL) == 0)
                                await(&gone);
                        good &= atomic_load(&gone.result) == 1;
                } else {
                        good = false;
                }
        }
        snib_striped_free(s);
        snib_multilock_free(m);
        for (int i = 0; i < 3; i++) {
                snib_lock_free(lock[i]);
                snib_close(c[i]);
        }
        return good;
}

static void every_allocation_may_fail(void **state)
{
        for (int red = 0; red < 2; red++) {
                int n = 1;

                for (; n < 500; n++) {
                        snib__alloc_count = 0;
                        snib__alloc_fail_at = (uint64_t)n;
                        bool good = life(red);
                        bool failed = snib__alloc_count >= snib__alloc_fail_at;
                        snib__alloc_fail_at = 0;
                        assert_true(good || failed);
                        assert_true(life(red)); /* nothing is left in the way of the next */
                        if (!failed)
                                break;
                }
                assert_in_range(n, 10, 499);
        }
}

#define CROWD 6
#define LIVES 120

/* Plain and red multilocks of the same members, by many threads: blocking, asynchronous, cancelled,
 * cut short. */
struct crowd {
        snib_lock *locks[3];
        snib_multilock *all;
        snib_multilock *red;
        _Atomic int inside[2]; /* of all, of red: who holds all holds a majority as well */
        _Atomic int held;
};

static void be_inside(struct crowd *c, bool red, snib_multigrant *grant)
{
        if (!red)
                assert_int_equal(atomic_fetch_add(&c->inside[0], 1), 0);
        assert_int_equal(atomic_fetch_add(&c->inside[1], 1), 0);
        sched_yield();
        assert_true(snib_multigrant_valid(grant));
        atomic_fetch_sub(&c->inside[1], 1);
        if (!red)
                atomic_fetch_sub(&c->inside[0], 1);
        atomic_fetch_add(&c->held, 1);
}

static void one_life(struct crowd *c, struct snib__prng *prng)
{
        bool red = snib__prng_below(prng, 2);
        snib_multilock *m = red ? c->red : c->all;
        int64_t wait = snib__prng_below(prng, 3) ? (int64_t)snib__prng_below(prng, 30) : 0;
        struct told got = {.err = SNIB_ERROR_INIT}, gone = {.err = SNIB_ERROR_INIT};
        snib_multigrant *grant = NULL;
        int r;

        if (snib__prng_below(prng, 2)) {
                r = snib_multilock_acquire(m, wait, &grant, NULL);
        } else {
                assert_result(snib_multilock_acquire_async(m, wait, acquired, &got, NULL), 0);
                if (snib__prng_below(prng, 4) == 0)
                        assert_true(snib_multilock_cancel(m) >= 0);
                await(&got);
                r = atomic_load(&got.result);
                grant = atomic_load(&got.grant);
        }
        assert_true(r == 1 || r == 0 || r == SNIB_ECANCELLED);
        assert_int_equal(grant != NULL, r == 1);
        if (r != 1)
                return;
        be_inside(c, red, grant);
        if (snib__prng_below(prng, 2)) {
                assert_result(snib_multigrant_release(grant, NULL), 1);
        } else {
                assert_result(snib_multigrant_release_async(grant, done, &gone, NULL), 0);
                await(&gone);
                assert_result(atomic_load(&gone.result), 1);
        }
}

static void *many_lives(void *arg)
{
        static _Atomic uint64_t seeds;
        struct snib__prng prng = {atomic_fetch_add(&seeds, 1)};

        for (int i = 0; i < LIVES; i++)
                one_life(arg, &prng);
        return NULL;
}

static void a_crowd_of_random_lives(void **state)
{
        static const char *const urls[] = {"mem:crowd1", "mem:crowd2", "mem:crowd3"};
        static const int threads[] = {SNIB_THREADS_KEEPER, SNIB_THREADS_IO, SNIB_THREADS_KEEPER};
        struct crowd c = {.held = 0};
        snib_client *clients[3];
        pthread_t crowd[CROWD];

        for (int i = 0; i < 3; i++) {
                struct snib_options o = {.size = sizeof(struct snib_options), .threads = threads[i]};

                assert_result(snib_open(&clients[i], urls[i], &o, NULL), 0);
                c.locks[i] = fault_lock_with(clients[i], "one", NULL);
        }
        c.all = multi_new(c.locks, 3);
        c.red = multi_red(c.locks, 3, 0);
        for (int i = 0; i < CROWD; i++)
                assert_int_equal(pthread_create(&crowd[i], NULL, many_lives, &c), 0);
        for (int i = 0; i < CROWD; i++)
                pthread_join(crowd[i], NULL);
        assert_true(atomic_load(&c.held) > 0);
        for (int i = 0; i < 3; i++)
                assert_true(eventually(!multi_held(c.locks[i]), 5000));
        snib_multilock_free(c.all);
        snib_multilock_free(c.red);
        for (int i = 0; i < 3; i++) {
                snib_lock_free(c.locks[i]);
                snib_close(clients[i]);
        }
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(the_owner_is_the_thread_that_asked),
            cmocka_unit_test(busy_cancelled_and_in_time),
            cmocka_unit_test(cancelled_as_it_begins),
            cmocka_unit_test(F74_rounds_go_on_without_a_thread),
            cmocka_unit_test(under_an_event_loop),
            cmocka_unit_test(red_under_an_event_loop),
            cmocka_unit_test(blocking_calls_within_a_callback),
            cmocka_unit_test(a_loss_callback_may_release),
            cmocka_unit_test(a_closed_client_is_a_loss_and_the_rest_is_released),
            cmocka_unit_test(closing_ends_what_waits),
            cmocka_unit_test(the_end_of_the_thread_is_a_loss),
            cmocka_unit_test(a_forked_copy_is_inert),
            cmocka_unit_test(every_allocation_may_fail),
            cmocka_unit_test(a_crowd_of_random_lives),
        };

        return fault_run("async", tests, sizeof(tests) / sizeof(tests[0]), 0);
}
