/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCK_H
#define SNIB_LOCK_H

/*
 * A lock: mutual exclusion by name, with an owner and a lease.
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
 *     SNIB_WITH_LOCK(held, lock, 2000) {
 *             sell_one(snib_grant_token(held.grant));
 *     }
 *
 * Thread class: a lock handle is thread-safe; it must outlive the calls made on it, not the grants they gave.
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
        SNIB_LOCK_SPIN = 5 /* re-entrant; a release tells nobody, waiters ask again after 1, 2, 4 ... 128 ms. For locks
                              that are held for a moment and seldom wanted by two */
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
#define SNIB_LOCK_OPTIONS_INIT sizeof(struct snib_lock_options)

/*
 * Makes a lock handle; no I/O, never blocks. `name` is bytes, 1 to SNIB_NAME_MAX, without NUL; it is copied.
 * Errors: SNIB_ENAME, SNIB_ELEASE, SNIB_EINVAL, SNIB_EFORK, SNIB_ENOMEM.
 */
SNIB_API int snib_lock_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                           snib_lock **ret_lock, struct snib_error *err);

/* Frees the handle. Grants live on. NULL is allowed. No wait may be going on. */
SNIB_API void snib_lock_free(snib_lock *lock);

/* The name given at snib_lock_new(), ended by a NUL. Lives as long as the handle. */
SNIB_API const char *snib_lock_name(const snib_lock *lock);

#define SNIB_OWNER_MAX 96
#define SNIB_HOST_MAX 64
#define SNIB_LABEL_MAX 64

/* What is known about a lock. Unknown texts are empty, unknown numbers -1.
 *
 * Of the threads of a client that wait for a plain or a fenced lock one asks the engine, and a hold may pass from one
 * to the next without its knowing, each time with a new token (doc/design/core.md). So of the threads of another client
 * that wait one is counted; `since_ms` is when the engine gave the client the lock; and the token that another
 * client's thread really has may be up to 15 higher than what is said here, or on Redis up to 15 lower, for it counts
 * there. */
struct snib_lock_info {
        size_t size;                /* SNIB_LOCK_INFO_INIT */
        int held;                   /* 1 if anybody holds it */
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
        int64_t holders; /* how many hold: readers, taken permits; 0 or 1 for a lock. The texts are about one of them */
        int64_t value;   /* semaphore, permits: free ones; latch: count; register: version; else -1 */
        int64_t limit;   /* permits: all of them; else -1 */
};
/* clang-format off */
#define SNIB_LOCK_INFO_INIT { sizeof(struct snib_lock_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, { 0 }, 0, 0, 0, 0, 0 }
/* clang-format on */

/*
 * Acquires: 1 and *ret_grant is a grant to be released; 0 not in time; negative an error, and nothing is held.
 * wait_ms: 0 tries once, SNIB_FOREVER waits without limit. It may last one engine time-out longer than wait_ms only for
 * the single try of wait_ms 0. The same owner acquiring again while it holds gets the same grant, one deeper.
 * SNIB_ELOST: this owner held it, and the hold was found lost on re-entry; release the grant, then acquire anew.
 * SNIB_EUNKNOWN: the engine did not answer; what it may have granted is released in the background, at the latest by
 * its lease. Blocks. Thread-safe. Errors: SNIB_EREENTRY, SNIB_ELOST, SNIB_EUNREACHABLE, SNIB_ENOTREADY, SNIB_EUNKNOWN,
 * SNIB_EAUTH, SNIB_EPERM, SNIB_EKIND, SNIB_EREFUSED, SNIB_ECANCELLED, SNIB_ECLOSED, SNIB_EFORK, SNIB_ENOMEM,
 * SNIB_EPROTOCOL.
 */
SNIB_API int snib_lock_acquire(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant, struct snib_error *err);

/* As snib_lock_acquire(); when it answers 0, *ret_holder says who holds it and the place in the queue, without another
 * round trip. */
SNIB_API int snib_lock_acquire_info(snib_lock *lock, int64_t wait_ms, snib_grant **ret_grant,
                                    struct snib_lock_info *ret_holder, struct snib_error *err);

/* As snib_lock_acquire() with wait_ms 0: one try, and no waiting for the holder. Blocks at most one time-out.
 * Thread-safe. */
SNIB_API int snib_lock_try(snib_lock *lock, snib_grant **ret_grant, struct snib_error *err);

/*
 * Acquires without waiting for it: `acquired(arg, result, grant, err)` runs exactly once if this answers 0, never if it
 * answers an error. `result` is as of snib_lock_acquire(); `grant` is NULL unless result is 1. Never blocks.
 * Thread-safe. The owner is the thread that calls this, unless the lock has an owner key.
 */
typedef void snib_acquired_callback(void *arg, int result, snib_grant *grant, const struct snib_error *err);
SNIB_API int snib_lock_acquire_async(snib_lock *lock, int64_t wait_ms, snib_acquired_callback *acquired, void *arg,
                                     struct snib_error *err);

/* Ends every wait that goes on through this handle, blocking or not, with SNIB_ECANCELLED; answers how many. A hold
 * that the engine had just granted to such a wait is released in the background. Never blocks. Thread-safe, from any
 * thread. */
SNIB_API int snib_lock_cancel(snib_lock *lock);

/* Pays back one acquire of the calling owner, as snib_grant_release(). SNIB_ENOTOWNER: this owner holds nothing;
 * nothing was changed. */
SNIB_API int snib_lock_release(snib_lock *lock, struct snib_error *err);

/* The grant of the calling owner, or NULL. It stays as it is; no acquire is added. Never blocks. */
SNIB_API snib_grant *snib_lock_grant(snib_lock *lock);

/* Takes the lock away from whoever holds it: 1 taken away, 0 nobody held it. The holder learns it by a loss. Its
 * fencing token stays below the next one. Blocks at most one time-out. */
SNIB_API int snib_lock_force_release(snib_lock *lock, struct snib_error *err);

/* Fills *ret_info from the engine: 1 held, 0 free, or an error. Blocks at most one time-out. */
SNIB_API int snib_lock_query(snib_lock *lock, struct snib_lock_info *ret_info, struct snib_error *err);

/* The same without waiting. `info` lives during the callback. As of snib_lock_acquire_async() otherwise. */
typedef void snib_info_callback(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err);
SNIB_API int snib_lock_query_async(snib_lock *lock, snib_info_callback *done, void *arg, struct snib_error *err);

/*
 * Calls `each(arg, name, name_len, info)` for everything that the engine knows to be held, in no particular order, in
 * the calling thread, after all of them were read; it ends early when `each` answers non-zero. `name` and `info` live
 * during the callback. Answers how many were seen, or an error. Blocks; on a large server it reads in steps that do not
 * hold the server up.
 */
typedef int snib_list_callback(void *arg, const char *name, size_t name_len, const struct snib_lock_info *info);
SNIB_API int64_t snib_list(snib_client *client, snib_list_callback *each, void *arg, struct snib_error *err);

/*
 * Fills *ret_info with whatever is stored under a name, of any kind: 1 held (or there, for what is not held), 0
 * nothing, or an error. On Redis a plain number can be a semaphore or a latch: its kind is then SNIB_KIND_COUNTER.
 * Blocks at most one time-out. Thread-safe.
 */
SNIB_API int snib_describe(snib_client *client, const char *name, size_t name_len, struct snib_lock_info *ret_info,
                           struct snib_error *err);

/* A scoped hold, for SNIB_WITH_LOCK. `result` is as of snib_lock_acquire(). */
struct snib_scope {
        snib_grant *grant;
        int result;
        int entered;
};

/* Acquires as snib_lock_acquire() does, for SNIB_WITH_LOCK; `grant` is NULL unless `result` is 1. Blocks. Thread-safe.
 */
SNIB_API struct snib_scope snib_scope_begin(snib_lock *lock, int64_t wait_ms);
/* Releases what the scope holds, if it holds anything, and empties it. Blocks at most one time-out. */
SNIB_API void snib_scope_end(struct snib_scope *scope);

#if defined(__GNUC__)
/*
 * Runs the block that follows under the lock, if it was acquired within wait_ms, and releases it on every way out of
 * the block: its end, break, continue, return, goto. `held` is a struct snib_scope visible in the block. The block is
 * skipped when the lock was not acquired.
 */
#define SNIB_WITH_LOCK(held, lock, wait_ms)                                                                         \
        for (struct snib_scope held __attribute__((cleanup(snib_scope_end))) = snib_scope_begin((lock), (wait_ms)); \
             held.result == 1 && !held.entered; held.entered = 1)
#endif

#ifdef __cplusplus
}
#endif
#endif
