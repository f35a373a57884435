/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_MULTI_H
#define SNIB_TEST_MULTI_H

/*
 * What the tests of multilocks share beside fault.h: making them, taking and giving them back,
 * noting losses. Everything asserts.
 */

#include "fault.h"

/* A multilock that must be made. */
snib_multilock *multi_new(snib_lock *const *members, size_t count);
snib_multilock *multi_red(snib_lock *const *members, size_t count, int64_t node_timeout_ms);

/* Acquires within wait_ms (times wait_slow()); asserts that it succeeds and is valid. */
snib_multigrant *multi_acquire(snib_multilock *m, int64_t wait_ms);
/* Releases; asserts that it answers `want`. */
void multi_release(snib_multigrant *grant, int want);
/* Asserts that it is refused within its time, and answers how long that took. */
int64_t multi_refused(snib_multilock *m, int64_t wait_ms, int want);

/* Whether somebody holds the lock, as the engine says. */
bool multi_held(snib_lock *lock);

/* Notes what a loss callback is told. */
struct multi_loss {
        _Atomic int calls;
        _Atomic int reason;
        _Atomic int valid;
};
void multi_watch(snib_multigrant *grant, struct multi_loss *loss);
/* Waits for it and asserts: exactly one call, not valid any more, the descriptor readable. Answers
 * the reason. */
int multi_lost(snib_multigrant *grant, struct multi_loss *loss, int64_t ms);

/* An acquire on a thread of its own. */
struct multi_waiter {
        pthread_t thread;
        snib_multilock *multilock;
        int64_t wait_ms;
        int result;
        snib_multigrant *grant;
        struct snib_error err;
        _Atomic bool done;
};
void multi_wait(struct multi_waiter *w, snib_multilock *m, int64_t wait_ms);
int multi_join(struct multi_waiter *w);

#endif
