/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_SEMAPHORE_H
#define SNIB_SEMAPHORE_H

/*
 * A semaphore: a number of permits that nobody owns. What was acquired must be released by somebody; a crash between
 * the two costs the permits. Where that matters, use snib_permits.
 *
 *     snib_semaphore_set(sem, 4, 0, NULL);
 *     if (snib_semaphore_acquire(sem, 1, 2000, NULL) == 1) {
 *             ...
 *             snib_semaphore_release(sem, 1, NULL);
 *     }
 *
 * Every change is counted exactly once, also when an answer was lost and the request was sent again (for a minute;
 * after that the outcome is SNIB_EUNKNOWN). An acquire that was cancelled or whose answer never came gives back what it
 * took.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it.
 */

#include <snib/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_semaphore snib_semaphore;

/* Most permits there can be, and most that one call can name: a Java int. Beyond it: SNIB_ELIMIT. */
#define SNIB_PERMITS_MAX ((int64_t)2147483647)

/* Makes a handle; no I/O. `name` as of a lock; name_len 0: it ends at its NUL. Errors: SNIB_ENAME, SNIB_EINVAL,
 * SNIB_EUNSUPPORTED, SNIB_EFORK, SNIB_ENOMEM. */
SNIB_API int snib_semaphore_new(snib_client *client, const char *name, size_t name_len, snib_semaphore **ret_semaphore,
                                struct snib_error *err);
/* Frees the handle. NULL is allowed. No call may be going on. */
SNIB_API void snib_semaphore_free(snib_semaphore *semaphore);

/* Gives it `permits` permits (0 or more) if it does not exist: 1 done, 0 it exists. ttl_ms: it vanishes so long after;
 * 0: never. Blocks at most one time-out, as all below but acquire. */
SNIB_API int snib_semaphore_set(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms, struct snib_error *err);

/* Acquires `permits` (1 or more) at once: 1 acquired, 0 not in time, negative an error and none taken (SNIB_EUNKNOWN:
 * what may have been taken is given back in the background). wait_ms and cancel as of snib_lock_acquire(). One that
 * does not exist has no permits. Blocks. Thread-safe. Waiters are served in order of arrival where the engine keeps a
 * queue (SNIB_CAP_QUEUE). */
SNIB_API int snib_semaphore_acquire(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms,
                                    struct snib_error *err);
SNIB_API int snib_semaphore_try(snib_semaphore *semaphore, int64_t permits, struct snib_error *err);
/* `done(arg, result, err)` runs exactly once if this answers 0. Never blocks. */
SNIB_API int snib_semaphore_acquire_async(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms,
                                          snib_done_callback *done, void *arg, struct snib_error *err);
/* Ends every wait through this handle with SNIB_ECANCELLED; answers how many. Never blocks. */
SNIB_API int snib_semaphore_cancel(snib_semaphore *semaphore);

/* Gives back `permits` (1 or more) and wakes waiters: 1. One that does not exist begins to, as with Redisson. */
SNIB_API int snib_semaphore_release(snib_semaphore *semaphore, int64_t permits, struct snib_error *err);
/* The same, only if it exists: 1, or 0 and nothing done. A release that comes late does not make a deleted one anew. */
SNIB_API int snib_semaphore_release_if_exists(snib_semaphore *semaphore, int64_t permits, struct snib_error *err);
/* Changes the number of permits by `delta`, not 0; it may fall below 0, and waiters are woken when it rises. 1 and
 * *ret_value (may be NULL) is what is free now. */
SNIB_API int snib_semaphore_add(snib_semaphore *semaphore, int64_t delta, int64_t *ret_value, struct snib_error *err);
/* Takes all that is free: 1 and *ret_drained, which may be 0. */
SNIB_API int snib_semaphore_drain(snib_semaphore *semaphore, int64_t *ret_drained, struct snib_error *err);
/* 1 and *ret_available (may be negative), or 0: it does not exist. */
SNIB_API int snib_semaphore_query(snib_semaphore *semaphore, int64_t *ret_available, struct snib_error *err);
/* Removes it: 1, or 0 if it did not exist. Waiters go on waiting. */
SNIB_API int snib_semaphore_delete(snib_semaphore *semaphore, struct snib_error *err);

/* The counting calls without waiting: `done(arg, result, value, err)` runs exactly once if the call answers 0; `result`
 * and `value` are those of the blocking call. */
typedef void snib_value_callback(void *arg, int result, int64_t value, const struct snib_error *err);
SNIB_API int snib_semaphore_set_async(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                      snib_value_callback *done, void *arg, struct snib_error *err);
SNIB_API int snib_semaphore_release_async(snib_semaphore *semaphore, int64_t permits, int only_if_exists,
                                          snib_value_callback *done, void *arg, struct snib_error *err);
SNIB_API int snib_semaphore_add_async(snib_semaphore *semaphore, int64_t delta, snib_value_callback *done, void *arg,
                                      struct snib_error *err);
SNIB_API int snib_semaphore_drain_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg,
                                        struct snib_error *err);
SNIB_API int snib_semaphore_query_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg,
                                        struct snib_error *err);
SNIB_API int snib_semaphore_delete_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg,
                                         struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
