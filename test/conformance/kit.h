/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_CONFORMANCE_KIT_H
#define SNIB_TEST_CONFORMANCE_KIT_H

/*
 * What the files of the conformance suite share: the engine that is tested, clients and locks of it
 * that assert what they expect, waiters on threads, and the table of tests.
 */

#include "lib/redis_server.h"
#include "lib/wait.h"
#include <pthread.h>
#include <setjmp.h>
#include <snib/snib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

extern char url[512];
extern struct redis_server *server; /* NULL: the engine has none */
extern unsigned caps;               /* what the engine says it can do: bits of enum snib_cap */

/* A test, and what an engine must claim for it to be run. */
struct conformance_test {
        struct CMUnitTest test;
        unsigned needs;
};
#define TEST(function, needs)                     \
        {                                         \
                cmocka_unit_test(function), needs \
        }
#define SERVER (1u << 31) /* the store is a server that can be told to forget */

struct conformance_tests {
        const struct conformance_test *test;
        size_t count;
};
#define TESTS(array)                                    \
        {                                               \
                array, sizeof(array) / sizeof(array[0]) \
        }
extern const struct conformance_tests lock_tests, noun_tests, rwlock_tests, count_tests, permits_tests, election_tests,
    register_tests, input_tests;

snib_client *open_mode(const char *label, int threads);
/* In turn with a keeper and with an I/O thread. */
snib_client *open_as(const char *label);
snib_lock *lock_with(snib_client *c, const char *name, struct snib_lock_options o);
snib_lock *lock_of(snib_client *c, const char *name);

/* Must succeed; say why they did not. */
snib_grant *acquire(snib_lock *l, int64_t wait_ms);
void release(snib_grant *g);
struct snib_lock_info query(snib_lock *l);
/* Must not be acquired. */
void refused(snib_lock *l, int64_t wait_ms);

/* Two clients that want the same name. */
struct pair {
        snib_client *a, *b;
        snib_lock *la, *lb;
};
struct pair pair_with(const char *name, struct snib_lock_options o);
struct pair pair_of(const char *name);
void pair_done(struct pair *p);

/* A thread that acquires, says when, and releases. */
struct waiter {
        snib_lock *lock;
        int64_t wait_ms;
        int result;
        snib_grant *grant;
        int64_t at;
        pthread_t thread;
        atomic_int *order; /* which it was */
        int place;
};
void wait_begin(struct waiter *w);
void wait_end(struct waiter *w);

/* What the loss callbacks of some grants were told. */
struct loss {
        atomic_int count;
        atomic_int reason; /* the last one's */
};
void on_loss(void *arg, snib_grant *grant, int reason);

/* Until *flag is at least `want`; drives a client without threads, as an event loop does. */
void loop_until(snib_client *c, int mode, atomic_int *flag, int want);

/* What a call that is not waited for was answered; count: how often. */
struct answer {
        atomic_int count;
        int result;
        int64_t value;
        struct snib_lock_info info;
        char text[16];
};
void on_value(void *arg, int result, int64_t value, const struct snib_error *err);
void on_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err);
/* Such a call through `c`, a client without threads, that tells `a`. */
#define ANSWERED(call, wanted)                                 \
        do {                                                   \
                atomic_store(&a.count, 0);                     \
                assert_int_equal((call), 0);                   \
                loop_until(c, SNIB_THREADS_NONE, &a.count, 1); \
                assert_int_equal(a.result, (wanted));          \
        } while (0)

#define THREADS_MAX 32
/* `count` threads that run the same, until all have ended. */
void threads_run(int count, void *(*run)(void *arg), void *arg);

#endif
