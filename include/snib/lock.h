/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCK_H
#define SNIB_LOCK_H

/*
 * A lock is mutual exclusion by name, with an owner and a lease.
 *
 *     snib_lock *lock;
 *     snib_grant *grant;
 *     snib_lock_new(client, "stock:42", NULL, &lock, NULL);
 *     if (snib_lock_acquire(lock, 2000, &grant, NULL) == 1) {
 *             sell_one(snib_grant_token(grant));
 *             snib_grant_release(grant, NULL);
 *     }
 *     snib_lock_free(lock);
 *
 * or, with gcc or clang, released on every way out of the block:
 *
 *     struct snib_scope held = SNIB_SCOPE_INIT;
 *     SNIB_WITH_LOCK(held, lock, 2000) {
 *             sell_one(snib_grant_token(held.grant));
 *     }
 *
 * Thread class: a lock handle is thread-safe; it must outlive the calls made on it, not the grants
 * they gave.
 */

#include <snib/grant.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_lock snib_lock;

enum snib_lock_kind {
        SNIB_LOCK_REENTRANT = 0,     /* the same owner may acquire again */
        SNIB_LOCK_NON_REENTRANT = 1, /* the same owner is refused with SNIB_EREENTRY */
        SNIB_LOCK_FENCED = 2, /* re-entrant, and its token counter is kept by the engine (Redisson's fenced lock) */
        SNIB_LOCK_FAIR = 3,   /* re-entrant, granted strictly in the order of arrival; dead waiters are skipped */
        SNIB_LOCK_FAIR_NON_REENTRANT = 4,
        SNIB_LOCK_SPIN = 5 /* re-entrant; a release sends no message, and waiters ask again after 1, 2, 4 ... 128 ms.
                              For locks that are held for a moment and seldom wanted by two */
};

/* Options of a lock. Zero means default everywhere. */
struct snib_lock_options {
        size_t size;         /* SNIB_LOCK_OPTIONS_INIT */
        int kind;            /* enum snib_lock_kind */
        size_t name_len;     /* length of the name; 0: it ends at its NUL */
        const char *owner;   /* key for re-entry, at most 200 bytes; NULL: the calling thread is the owner. Copied */
        int64_t lease_ms;    /* default: the client's */
        int fixed_lease;     /* 0: the watchdog renews every third of the lease; 1: the hold ends with the lease */
        int64_t max_hold_ms; /* cap on the total hold; 0: none */
};
/* clang-format off */
#define SNIB_LOCK_OPTIONS_INIT { sizeof(struct snib_lock_options), 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * Makes a handle of a lock. `name` is 1 to SNIB_NAME_MAX bytes without NUL; it is copied.
 * `options` may be NULL. No I/O, never blocks. Errors: SNIB_ENAME, SNIB_ELEASE, SNIB_EINVAL,
 * SNIB_EUNSUPPORTED, SNIB_EFORK, SNIB_ENOMEM.
 */
SNIB_API int snib_lock_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                           snib_lock **ret_lock, struct snib_error *err);

/* Frees the handle of a lock. Grants live on. NULL is allowed. No wait may be going on. */
SNIB_API void snib_lock_free(snib_lock *lock);

/* Gives the name that the handle was made with, with a NUL at its end. It lives as long as the
 * handle. Never blocks. */
SNIB_API const char *snib_lock_name(const snib_lock *lock);

#define SNIB_OWNER_MAX 96
#define SNIB_HOST_MAX 64
#define SNIB_LABEL_MAX 64

/* What is known about a lock. Unknown texts are empty, unknown numbers -1.
 *
 * Several threads of one client can wait for a plain or a fenced lock. One of them asks the engine.
 * The hold can pass from one thread to the next without the engine's knowing, each time with a new
 * token (doc/design/core.md). So for another client: its waiting threads count as one; `since_ms`
 * is when the engine gave the lock to the client; and the token of the thread that holds it may be
 * up to 15 higher than `token`, or on Redis up to 15 lower. */
struct snib_lock_info {
        size_t size;                /* SNIB_LOCK_INFO_INIT */
        int held;                   /* 1 if it is held */
        int mine;                   /* 1 if the asking owner holds it through this client */
        int depth;                  /* its re-entries, 0 if not mine */
        int64_t token;              /* of the present hold; see above */
        int64_t lease_left_ms;      /* by the engine's clock */
        int64_t since_ms;           /* wall clock, milliseconds since 1970, of the acquire */
        int64_t pid;                /* of the holder */
        int64_t waiters;            /* how many wait, as far as the engine knows */
        int waiters_at_least;       /* 1: `waiters` is a lower bound */
        int64_t position;           /* of the asking waiter in the queue, 1 = next; 0: not in a queue */
        char owner[SNIB_OWNER_MAX]; /* as the engine stores it */
        char host[SNIB_HOST_MAX];
        char label[SNIB_LABEL_MAX];
        int kind;        /* enum snib_kind: what is stored under the name */
        int foreign;     /* 1: the holder is a client of another make (Redisson) */
        int64_t holders; /* how many holders: readers, taken permits; 0 or 1 for a lock. The texts are about one */
        int64_t value;   /* semaphore, permits: free ones; latch: count; register: version; else -1 */
        int64_t limit;   /* permits: all of them; else -1 */
        int64_t left;    /* 1: nobody holds it, it stays until its lease ends; see snib_grant_leave(). Only engines that
                            know when a holder dies tell; else 0 */
        char next[SNIB_OWNER_MAX]; /* the first in the queue of a fair lock, as the engine stores it */
        int64_t next_left_ms;      /* until its turn is over, if it does not take it; -1 unknown */
};
/* clang-format off */
#define SNIB_LOCK_INFO_INIT { sizeof(struct snib_lock_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, { 0 }, 0, 0, 0, 0, 0, 0, { 0 }, 0 }
/* clang-format on */

/*
 * Acquires a lock, and waits for it if it is held. Answers 1 and *ret_grant, a grant to be
 * released; 0 if the lock was not free in time; or an error, and then nothing is held. A wait_ms of
 * 0 tries once, SNIB_FOREVER waits without limit. A limit is kept whatever the engine does: a
 * question that it has not answered by then is waited for a moment longer (30 ms). A single try
 * lasts at most one time-out. If the owner holds the lock already, it gets the same grant, one
 * deeper. SNIB_ELOST: this owner held it, and has lost it; release the grant, then acquire again.
 * SNIB_EUNKNOWN: the engine did not answer; what it may have granted is released in the background,
 * and ends with its lease at the latest. Blocks. Thread-safe. Errors: SNIB_EREENTRY, SNIB_ELOST,
 * SNIB_EUNREACHABLE, SNIB_ENOTREADY, SNIB_EUNKNOWN, SNIB_EAUTH, SNIB_EPERM, SNIB_EKIND,
 * SNIB_EREFUSED, SNIB_ECANCELLED, SNIB_ECLOSED, SNIB_EFORK, SNIB_ENOMEM, SNIB_EPROTOCOL.
 */
SNIB_API int snib_lock_acquire(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant, struct snib_error *err);

/* Acquires a lock, or tells who holds it. It does what snib_lock_acquire() does. If it answers 0,
 * ret_holder has the holder and the caller's place in the queue, without another round trip.
 * Blocks. Thread-safe. */
SNIB_API int snib_lock_acquire_info(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant,
                                    struct snib_lock_info *ret_holder, struct snib_error *err);

/* Tries once to acquire a lock. It does not wait for the holder. It answers as snib_lock_acquire()
 * with a wait_ms of 0. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_lock_try(snib_lock *lock, snib_grant **ret_grant, struct snib_error *err);

/* Called once when an acquire that was not waited for is over. `result` is as of
 * snib_lock_acquire(); `grant` is NULL unless it is 1. `err` has the detail if it is negative, and
 * lives during the callback. */
typedef void snib_acquired_callback(void *arg, int result, snib_grant *grant, const struct snib_error *err);

/*
 * Acquires a lock without waiting. `acquired` runs exactly once if this answers 0; it never runs
 * if this answers an error. The owner is the thread that calls this, unless the lock has an owner
 * key. Never blocks. Thread-safe.
 */
SNIB_API int snib_lock_acquire_async(snib_lock *lock, int64_t wait_ms, snib_acquired_callback *acquired, void *arg,
                                     struct snib_error *err);

/* Ends every wait through this handle of a lock, blocking or not. Each ends with SNIB_ECANCELLED.
 * Answers how many. A hold that the engine had just granted to such a wait is released in the
 * background. Never blocks. Thread-safe. */
SNIB_API int snib_lock_cancel(snib_lock *lock);

/* Pays back one acquire of the calling owner. It answers as snib_grant_release() does.
 * SNIB_ENOTOWNER: this owner holds nothing; nothing was changed. Blocks at most one time-out.
 * Thread-safe. */
SNIB_API int snib_lock_release(snib_lock *lock, struct snib_error *err);

/* Gives the grant of the calling owner, or NULL. The grant stays as it is; no acquire is added.
 * Never blocks. Thread-safe. */
SNIB_API snib_grant *snib_lock_grant(snib_lock *lock);

/* Takes the lock away from its holder. Answers 1, or 0 if it was not held. The holder learns it by
 * a loss. Its fencing token stays below the next one. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_lock_force_release(snib_lock *lock, struct snib_error *err);

/* Takes a waiter out of the queue of a fair lock, be it dead or not: `waiter` is
 * snib_lock_info.next. 1: it stood there, 0: it did not. Who holds the lock keeps it, and the next
 * in the queue is told. A waiter that lives asks again, and stands at the end. For a dead waiter of
 * another make that keeps everybody waiting: Redisson's stands for 5 minutes. Blocks at most one
 * time-out. Thread-safe. Errors: SNIB_EINVAL: no fair lock. */
SNIB_API int snib_lock_drop_waiter(snib_lock *lock, const char *waiter, struct snib_error *err);

/* Asks the engine who holds a lock. Answers 1 if it is held, 0 if it is free, or an error, and
 * fills ret_info unless it is an error. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_lock_query(snib_lock *lock, struct snib_lock_info *ret_info, struct snib_error *err);

/* Called once when a question that was not waited for is answered. `result` is that of the blocking
 * call. `info` and `err` live during the callback. */
typedef void snib_info_callback(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err);

/* Asks who holds a lock without waiting. `done` runs exactly once if this answers 0, with what
 * snib_lock_query() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_lock_query_async(snib_lock *lock, snib_info_callback *done, void *arg, struct snib_error *err);

/* Called by snib_list() for each name. `name` and `info` live during the callback. It answers 0 to
 * go on, or another number to stop. */
typedef int snib_list_callback(void *arg, const char *name, size_t name_len, const struct snib_lock_info *info);

/*
 * Lists everything that the engine knows to be held. `each` is called for each name, in no
 * particular order, in the calling thread, after all names were read. Answers how many times it was
 * called, or an error. Blocks; on a large server it reads in steps that do not hold the server up.
 * Thread-safe.
 */
SNIB_API int64_t snib_list(snib_client *client, snib_list_callback *each, void *arg, struct snib_error *err);

/*
 * Tells what is stored under a name, of any kind. Answers 1 if it is held (or is there, if it is
 * of a kind that is not held), 0 if there is nothing, or an error; fills *ret_info unless it is an
 * error. On Redis a plain number can be a semaphore or a latch: its kind is then SNIB_KIND_COUNTER.
 * Blocks at most one time-out. Thread-safe.
 */
SNIB_API int snib_describe(snib_client *client, const char *name, size_t name_len, struct snib_lock_info *ret_info,
                           struct snib_error *err);

/* Asks what is stored under a name without waiting. `done` runs exactly once if this answers 0,
 * with what snib_describe() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_describe_async(snib_client *client, const char *name, size_t name_len, snib_info_callback *done,
                                 void *arg, struct snib_error *err);

/* What SNIB_WITH_LOCK works with: begin with SNIB_SCOPE_INIT, or zeroed. */
struct snib_scope {
        size_t size;            /* SNIB_SCOPE_INIT */
        struct snib_error *err; /* where the detail of a failure goes, or NULL; set by the caller */
        snib_grant *grant;      /* the grant, inside the block; NULL outside */
        int result;             /* after the block: 1 it ran under the lock, 0 the lock was not free in time,
                                   negative an error; without 1 the block did not run */
        int released;           /* after the block: 1 released, 0 still held by an outer acquire of this owner,
                                   negative as of snib_grant_release(): SNIB_ELOST, the lock was lost meanwhile */
};
/* clang-format off */
#define SNIB_SCOPE_INIT { sizeof(struct snib_scope), 0, 0, 0, 0 }
/* clang-format on */

/* Begins a block of SNIB_WITH_LOCK. It acquires as snib_lock_acquire() does. Answers `scope` if the
 * lock was acquired, else NULL; scope->result says why. A scope that is in use is refused with
 * SNIB_EINVAL. Blocks. One thread at a time for each scope. */
SNIB_API struct snib_scope *snib_scope_enter(struct snib_scope *scope, snib_lock *lock, int64_t wait_ms);

/* Ends a block of SNIB_WITH_LOCK. It releases what the block holds, if it has not done so, says in
 * `released` how that went, and sets *entered to NULL. NULL is allowed. Blocks at most one
 * time-out. */
SNIB_API void snib_scope_leave(struct snib_scope **entered);

#if defined(__GNUC__)
/*
 * Runs the block that follows under the lock, if the lock was acquired within wait_ms. The lock
 * is released on every way out of the block: its end, break, continue, return, goto. `held` is the
 * name of a struct snib_scope of the caller. Inside the block held.grant is the grant. After the
 * block held.result and held.released say what happened.
 *
 *     struct snib_scope held = SNIB_SCOPE_INIT;
 *
 *     SNIB_WITH_LOCK(held, lock, 2000) {
 *             sell_one(snib_grant_token(held.grant));
 *     }
 *     if (held.result == 0)
 *             ... busy; the block did not run ...
 *     else if (held.result < 0)
 *             ... an error; the block did not run ...
 *     else if (held.released == SNIB_ELOST)
 *             ... it ran, and the lock was lost meanwhile ...
 */
/* clang-format off */
#define SNIB_WITH_LOCK(held, lock, wait_ms)                                                                \
        for (struct snib_scope *snib_entered_##held __attribute__((cleanup(snib_scope_leave))) =           \
                 snib_scope_enter(&(held), (lock), (wait_ms));                                             \
             snib_entered_##held; snib_scope_leave(&snib_entered_##held))
/* clang-format on */
#endif

#ifdef __cplusplus
}
#endif
#endif
