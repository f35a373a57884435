/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Semaphores and latches, numbers that nobody owns: what they count, that no more are let in than
 * there are, that everybody who waits for a latch is woken, and the same calls without waiting.
 * Permits with an id are in permits.c.
 */

#include "kit.h"
#include <string.h>

static snib_semaphore *sem_of(snib_client *c, const char *name)
{
        snib_semaphore *s;

        assert_int_equal(snib_semaphore_new(c, name, 0, &s, NULL), 0);
        return s;
}

static int64_t available(snib_semaphore *s)
{
        int64_t n = -1000;

        assert_int_equal(snib_semaphore_query(s, &n, NULL), 1);
        return n;
}

static void a_semaphore_counts(void **state)
{
        snib_client *c = open_as("counts"), *d = open_as("too");
        snib_semaphore *s = sem_of(c, "counted"), *t = sem_of(d, "counted");
        int64_t n = -7;

        assert_int_equal(snib_semaphore_query(s, &n, NULL), 0);
        assert_int_equal(n, -7);
        assert_int_equal(snib_semaphore_try(s, 1, NULL), 0); /* what does not exist has none */
        assert_int_equal(snib_semaphore_release_if_exists(s, 1, NULL), 0);
        assert_int_equal(snib_semaphore_set(s, 3, 0, NULL), 1);
        assert_int_equal(snib_semaphore_set(t, 9, 0, NULL), 0);
        assert_int_equal(available(t), 3);
        assert_int_equal(snib_semaphore_acquire(s, 2, 1000, NULL), 1);
        assert_int_equal(snib_semaphore_try(t, 2, NULL), 0);
        assert_int_equal(snib_semaphore_try(t, 1, NULL), 1);
        assert_int_equal(available(s), 0);
        assert_int_equal(snib_semaphore_release(t, 2, NULL), 1);
        assert_int_equal(snib_semaphore_release_if_exists(s, 1, NULL), 1);
        assert_int_equal(snib_semaphore_add(s, 4, &n, NULL), 1);
        assert_int_equal(n, 7);
        assert_int_equal(snib_semaphore_add(s, -9, &n, NULL), 1);
        assert_int_equal(n, -2);
        assert_int_equal(available(t), -2);
        assert_int_equal(snib_semaphore_drain(s, &n, NULL), 1);
        assert_int_equal(n, 0);
        assert_int_equal(snib_semaphore_add(s, 7, NULL, NULL), 1);
        assert_int_equal(snib_semaphore_drain(s, &n, NULL), 1);
        assert_int_equal(n, 5);
        assert_int_equal(available(s), 0);
        assert_int_equal(snib_semaphore_delete(t, NULL), 1);
        assert_int_equal(snib_semaphore_delete(s, NULL), 0);
        assert_int_equal(snib_semaphore_query(s, &n, NULL), 0);
        /* One that does not exist begins to with a release. */
        assert_int_equal(snib_semaphore_release(s, 2, NULL), 1);
        assert_int_equal(available(s), 2);
        assert_int_equal(snib_semaphore_delete(s, NULL), 1);
        snib_semaphore_free(s);
        snib_semaphore_free(t);
        snib_close(c);
        snib_close(d);
}

static void F97_a_release_that_comes_late_makes_nothing_anew(void **state)
{
        snib_client *c = open_as("late");
        snib_semaphore *s = sem_of(c, "late release");

        assert_int_equal(snib_semaphore_set(s, 1, 0, NULL), 1);
        assert_int_equal(snib_semaphore_try(s, 1, NULL), 1);
        assert_int_equal(snib_semaphore_delete(s, NULL), 1);
        assert_int_equal(snib_semaphore_release_if_exists(s, 1, NULL), 0);
        assert_int_equal(snib_semaphore_query(s, &(int64_t){0}, NULL), 0);
        snib_semaphore_free(s);
        snib_close(c);
}

static void a_semaphore_vanishes_with_its_ttl(void **state)
{
        snib_client *c = open_as("ttl");
        snib_semaphore *s = sem_of(c, "ttl");
        int64_t n;

        assert_int_equal(snib_semaphore_set(s, 1, 200 * wait_slow(), NULL), 1);
        assert_int_equal(available(s), 1);
        assert_true(eventually(snib_semaphore_query(s, &n, NULL) == 0, 10000));
        snib_semaphore_free(s);
        snib_close(c);
}

/* Threads that hold a permit at once, counted. */
struct limit {
        snib_client *clients[2];
        const char *name;
        int permits;
        atomic_int numbers, in, most, took;
};

static void *stay_within(void *arg)
{
        struct limit *l = arg;
        snib_semaphore *s = sem_of(l->clients[atomic_fetch_add(&l->numbers, 1) % 2], l->name);

        for (int i = 0; i < 40; i++) {
                int now, most;

                if (snib_semaphore_acquire(s, 1, 60000, NULL) != 1)
                        break;
                now = atomic_fetch_add(&l->in, 1) + 1;
                most = atomic_load(&l->most);
                while (now > most && !atomic_compare_exchange_weak(&l->most, &most, now))
                        ;
                atomic_fetch_add(&l->took, 1);
                atomic_fetch_sub(&l->in, 1);
                (void)snib_semaphore_release(s, 1, NULL);
        }
        snib_semaphore_free(s);
        return NULL;
}

static void S8_a_semaphore_lets_no_more_in_than_it_has(void **state)
{
        struct limit l = {.clients = {open_as("left"), open_as("right")}, .name = "limit"};
        snib_semaphore *s = sem_of(l.clients[0], l.name);

        assert_int_equal(snib_semaphore_set(s, 3, 0, NULL), 1);
        threads_run(8, stay_within, &l);
        assert_int_equal(atomic_load(&l.took), 8 * 40);
        assert_in_range(atomic_load(&l.most), 1, 3);
        assert_int_equal(available(s), 3);
        assert_int_equal(snib_semaphore_delete(s, NULL), 1);
        snib_semaphore_free(s);
        snib_close(l.clients[0]);
        snib_close(l.clients[1]);
}

static void a_waiter_for_many_is_let_in_when_there_are_enough(void **state)
{
        snib_client *c = open_as("many"), *d = open_as("gives");
        snib_semaphore *s = sem_of(c, "many at once"), *t = sem_of(d, "many at once");

        assert_int_equal(snib_semaphore_set(t, 0, 0, NULL), 1);
        assert_int_equal(snib_semaphore_acquire(s, 3, 200 * wait_slow(), NULL), 0);
        assert_int_equal(snib_semaphore_release(t, 2, NULL), 1);
        assert_int_equal(snib_semaphore_acquire(s, 3, 200 * wait_slow(), NULL), 0);
        assert_int_equal(available(t), 2); /* all or nothing */
        assert_int_equal(snib_semaphore_release(t, 1, NULL), 1);
        assert_int_equal(snib_semaphore_acquire(s, 3, 20000, NULL), 1);
        assert_int_equal(available(t), 0);
        assert_int_equal(snib_semaphore_delete(t, NULL), 1);
        snib_semaphore_free(s);
        snib_semaphore_free(t);
        snib_close(c);
        snib_close(d);
}

static void numbers_without_waiting(void **state)
{
        snib_client *c = open_mode("loop", SNIB_THREADS_NONE);
        snib_semaphore *s = sem_of(c, "asynchronous semaphore");
        snib_latch *l;
        struct answer a = {0};

        assert_int_equal(snib_latch_new(c, "asynchronous latch", 0, &l, NULL), 0);
        ANSWERED(snib_semaphore_set_async(s, 5, 0, on_value, &a, NULL), 1);
        ANSWERED(snib_semaphore_set_async(s, 6, 0, on_value, &a, NULL), 0);
        ANSWERED(snib_semaphore_release_async(s, 1, 1, on_value, &a, NULL), 1);
        ANSWERED(snib_semaphore_add_async(s, 3, on_value, &a, NULL), 1);
        assert_int_equal(a.value, 9);
        ANSWERED(snib_semaphore_query_async(s, on_value, &a, NULL), 1);
        assert_int_equal(a.value, 9);
        ANSWERED(snib_semaphore_drain_async(s, on_value, &a, NULL), 1);
        assert_int_equal(a.value, 9);
        ANSWERED(snib_semaphore_drain_async(s, on_value, &a, NULL), 1);
        assert_int_equal(a.value, 0);
        ANSWERED(snib_semaphore_delete_async(s, on_value, &a, NULL), 1);
        ANSWERED(snib_semaphore_delete_async(s, on_value, &a, NULL), 0);

        ANSWERED(snib_latch_set_async(l, 2, on_value, &a, NULL), 1);
        ANSWERED(snib_latch_set_async(l, 2, on_value, &a, NULL), 0);
        ANSWERED(snib_latch_count_down_async(l, 1, on_value, &a, NULL), 1);
        assert_int_equal(a.value, 1);
        ANSWERED(snib_latch_query_async(l, on_value, &a, NULL), 1);
        assert_int_equal(a.value, 1);
        ANSWERED(snib_latch_delete_async(l, on_value, &a, NULL), 1);
        ANSWERED(snib_latch_query_async(l, on_value, &a, NULL), 0);
        ANSWERED(snib_latch_count_down_async(l, 1, on_value, &a, NULL), 0);
        snib_semaphore_free(s);
        snib_latch_free(l);
        snib_close(c);
}

static void a_latch_opens_at_zero_and_can_be_set_again(void **state)
{
        snib_client *c = open_as("latch"), *d = open_as("latch too");
        snib_latch *l, *m;
        int64_t n = -7;

        assert_int_equal(snib_latch_new(c, "latch", 0, &l, NULL), 0);
        assert_int_equal(snib_latch_new(d, "latch", 0, &m, NULL), 0);
        for (int round = 0; round < 2; round++) {
                assert_int_equal(snib_latch_await(m, 0, NULL), 1);
                assert_int_equal(snib_latch_count_down(m, 1, &n, NULL), 0);
                assert_int_equal(snib_latch_query(l, &n, NULL), 0);
                assert_int_equal(snib_latch_set(l, 3, NULL), 1);
                assert_int_equal(snib_latch_set(m, 9, NULL), 0);
                assert_int_equal(snib_latch_await(m, 20, NULL), 0);
                assert_int_equal(snib_latch_count_down(m, 2, &n, NULL), 1);
                assert_int_equal(n, 1);
                assert_int_equal(snib_latch_query(l, &n, NULL), 1);
                assert_int_equal(n, 1);
                assert_int_equal(snib_latch_count_down(l, 100, &n, NULL), 1);
                assert_int_equal(n, 0);
                assert_int_equal(snib_latch_await(m, 0, NULL), 1);
        }
        assert_int_equal(snib_latch_delete(l, NULL), 0);
        snib_latch_free(l);
        snib_latch_free(m);
        snib_close(c);
        snib_close(d);
}

struct setting {
        snib_latch *latch;
        atomic_int answer;
};

static void *await_set(void *arg)
{
        struct setting *s = arg;

        atomic_store(&s->answer, 1 + snib_latch_await_set(s->latch, 60000, NULL));
        return NULL;
}

/* One that nobody has set is open, which is not what a waiter means that came before the one who
 * sets it. */
static void a_latch_can_be_awaited_before_it_is_set(void **state)
{
        snib_client *c = open_as("early"), *d = open_as("late");
        struct setting s;
        snib_latch *l;

        assert_int_equal(snib_latch_new(c, "not set yet", 0, &s.latch, NULL), 0);
        assert_int_equal(snib_latch_new(d, "not set yet", 0, &l, NULL), 0);
        for (int pulses = 0; pulses < 2; pulses++) {
                pthread_t t;

                atomic_init(&s.answer, 0);
                assert_int_equal(snib_latch_await(s.latch, 0, NULL), 1);
                assert_int_equal(snib_latch_await_set(s.latch, 0, NULL), 0);
                assert_int_equal(snib_latch_await_set(s.latch, 20, NULL), 0);
                assert_int_equal(pthread_create(&t, NULL, await_set, &s), 0);
                /* It may be open again when the waiter hears that it was set. */
                do {
                        assert_int_equal(snib_latch_set(l, 1, NULL), 1);
                        if (pulses)
                                assert_int_equal(snib_latch_count_down(l, 1, NULL, NULL), 1);
                } while (pulses && !atomic_load(&s.answer));
                (void)pthread_join(t, NULL);
                assert_int_equal(atomic_load(&s.answer), 1 + 1);
                if (pulses)
                        continue;
                assert_int_equal(snib_latch_await_set(s.latch, 0, NULL), 1);
                assert_int_equal(snib_latch_await(s.latch, 0, NULL), 0);
                assert_int_equal(snib_latch_delete(l, NULL), 1);
        }
        snib_latch_free(s.latch);
        snib_latch_free(l);
        snib_close(c);
        snib_close(d);
}

struct opened {
        snib_client *clients[2];
        atomic_int numbers, ready, open, failed;
};

static void *await_open(void *arg)
{
        struct opened *o = arg;
        snib_latch *l;

        if (snib_latch_new(o->clients[atomic_fetch_add(&o->numbers, 1) % 2], "waited for", 0, &l, NULL) < 0)
                bail("snib_latch_new");
        atomic_fetch_add(&o->ready, 1);
        if (snib_latch_await(l, 60000, NULL) == 1)
                atomic_fetch_add(&o->open, 1);
        else
                atomic_fetch_add(&o->failed, 1);
        snib_latch_free(l);
        return NULL;
}

static void *await_crowd(void *arg)
{
        threads_run(12, await_open, arg);
        return NULL;
}

static void F103_everybody_who_waits_for_a_latch_is_woken(void **state)
{
        snib_client *c = open_as("opens");
        snib_latch *l;

        assert_int_equal(snib_latch_new(c, "waited for", 0, &l, NULL), 0);
        for (int round = 0; round < 2; round++) {
                struct opened o = {.clients = {open_as("one"), open_as("two")}};
                pthread_t t;

                assert_int_equal(snib_latch_set(l, 2, NULL), 1);
                assert_int_equal(pthread_create(&t, NULL, await_crowd, &o), 0);
                assert_true(eventually(atomic_load(&o.ready) == 12, 20000));
                assert_int_equal(snib_latch_count_down(l, 1, NULL, NULL), 1);
                assert_int_equal(atomic_load(&o.open), 0);
                /* Counted down to 0, and deleted: both open it. */
                assert_int_equal(round ? snib_latch_delete(l, NULL) : snib_latch_count_down(l, 1, NULL, NULL), 1);
                (void)pthread_join(t, NULL);
                assert_int_equal(atomic_load(&o.open), 12);
                assert_int_equal(atomic_load(&o.failed), 0);
                snib_close(o.clients[0]);
                snib_close(o.clients[1]);
        }
        snib_latch_free(l);
        snib_close(c);
}

static const struct conformance_test tests[] = {
    TEST(a_semaphore_counts, SNIB_CAP_SEMAPHORE),
    TEST(F97_a_release_that_comes_late_makes_nothing_anew, SNIB_CAP_SEMAPHORE),
    TEST(a_semaphore_vanishes_with_its_ttl, SNIB_CAP_SEMAPHORE),
    TEST(S8_a_semaphore_lets_no_more_in_than_it_has, SNIB_CAP_SEMAPHORE),
    TEST(a_waiter_for_many_is_let_in_when_there_are_enough, SNIB_CAP_SEMAPHORE),
    TEST(numbers_without_waiting, SNIB_CAP_SEMAPHORE | SNIB_CAP_LATCH),
    TEST(a_latch_opens_at_zero_and_can_be_set_again, SNIB_CAP_LATCH),
    TEST(a_latch_can_be_awaited_before_it_is_set, SNIB_CAP_LATCH),
    TEST(F103_everybody_who_waits_for_a_latch_is_woken, SNIB_CAP_LATCH),
};
const struct conformance_tests count_tests = TESTS(tests);
