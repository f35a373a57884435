/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_FAULT_H
#define SNIB_TEST_FAULT_H

/*
 * What the fault tests share: opening clients and locks that must open, taking grants that must be
 * given, and looking at the server behind the library's back. Everything asserts; a test reads as
 * what happens and what must be true after it.
 */

#include "redis_server.h"
#include "wait.h"
#include <pthread.h>
#include <setjmp.h>
#include <snib/snib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* wants the others before it */

/* A lease for tests in which things happen within one: short, but long beside the scheduling of
 * this build. */
int64_t fault_lease_ms(void);

/* How late something may be that has its time, on a machine that does other things too. Less than
 * what another reason would cost: a poll (1 s), half a lease, a renewal. */
int64_t fault_late_ms(void);

/* A client whose answers may take `timeout_ms` (0: the default). */
snib_client *fault_open(const char *url, int64_t timeout_ms);

/* A lock of its own owner, so that two locks of one thread are two owners. `lease_ms` 0:
 * fault_lease_ms(). */
snib_lock *fault_lock(snib_client *client, const char *name, const char *owner, int64_t lease_ms);
snib_lock *fault_lock_with(snib_client *client, const char *name, const struct snib_lock_options *options);

/* A server, and two clients on it that want the same lock, each as an owner of its own. */
struct fault_pair {
        struct redis_server *server;
        snib_client *a, *b;
        snib_lock *lock, *other;
};
struct fault_pair fault_pair(const char *name, int64_t lease_ms);
void fault_pair_done(struct fault_pair *p);

/* Acquires within wait_ms (times wait_slow()); what is asserted is that it succeeds, and that the
 * grant is valid. */
snib_grant *fault_acquire(snib_lock *lock, int64_t wait_ms);

/* acquire, and release at once: the lock is free for others within wait_ms. Answers the token. */
int64_t fault_passes(snib_lock *lock, int64_t wait_ms);

/* A result as text, for messages. */
#define assert_result(got, want)                                                                        \
        do {                                                                                            \
                int got_ = (got), want_ = (want);                                                       \
                if (got_ != want_)                                                                      \
                        fail_msg("%s: %d %s, expected %d %s", #got, got_, snib_error_name(got_), want_, \
                                 snib_error_name(want_));                                               \
        } while (0)

/* Notes what a loss callback is told. */
struct fault_loss {
        _Atomic int calls;
        _Atomic int reason;
        _Atomic int64_t at_ms;
        _Atomic int valid; /* what snib_grant_valid() said in the callback */
};
void fault_watch(snib_grant *grant, struct fault_loss *loss);
/* Waits for it and asserts: exactly one call, not valid any more, the descriptor readable. Answers
 * the reason. */
int fault_lost(snib_grant *grant, struct fault_loss *loss, int64_t ms);

/* An acquire on a thread of its own. */
struct fault_waiter {
        pthread_t thread;
        snib_lock *lock;
        int64_t wait_ms;
        int result;
        snib_grant *grant;
        int64_t got_ms; /* when it was answered */
        _Atomic bool done;
};
void fault_wait(struct fault_waiter *w, snib_lock *lock, int64_t wait_ms);
int fault_join(struct fault_waiter *w); /* its result */

/* A server of the test, `args` must live. */
struct redis_server *fault_server(const char *const *args);
struct redis_server *fault_server_tcp(const char *const *args);

/* Runs the tests. Without a server to start, the last `of_server` of them are left out, and the
 * output says why. */
int fault_run(const char *name, struct CMUnitTest *tests, int count, int of_server);
#define fault_run_all(name, tests) \
        fault_run((name), (tests), sizeof(tests) / sizeof((tests)[0]), sizeof(tests) / sizeof((tests)[0]))

bool fault_key(struct redis_server *s, const char *name);           /* the lock's key exists */
long long fault_pttl(struct redis_server *s, const char *name);     /* milliseconds, -1 none, -2 no key */
long long fault_calls(struct redis_server *s, const char *command); /* INFO commandstats */
/* A number of INFO, -1 if it is not there. */
long long fault_info(struct redis_server *s, const char *field);
/* A command that must not fail. */
#define fault_do(s, ...) fault_done(redis_server_do((s), __VA_ARGS__), #__VA_ARGS__)
void fault_done(redisReply *reply, const char *what);
/* Connections of a kind ("normal", "pubsub") are killed, that of the test itself not: how many
 * there were. */
long long fault_kill(struct redis_server *s, const char *type);

/* Subscribers of the lock's channel. */
long long fault_subscribers(struct redis_server *s, const char *name);

/* A line of this process's /proc/self/status in kB, by its name with the colon. */
long fault_memory_kb(const char *what);

#endif
