/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_SEMAPHORE_H
#define SNIB_SEMAPHORE_H

/*
 * A semaphore is a number of permits without owners. What was acquired must be released, by any
 * client; a crash between the two costs the permits. If that matters, use snib_permits.
 *
 *     snib_semaphore_set(sem, 4, 0, NULL);
 *     if (snib_semaphore_acquire(sem, 1, 2000, NULL) == 1) {
 *             ...
 *             snib_semaphore_release(sem, 1, NULL);
 *     }
 *
 * Every change is counted exactly once, even if an answer was lost and the request was sent again
 * (for a minute; after that the outcome is SNIB_EUNKNOWN). An acquire that was cancelled, or whose
 * answer never came, gives back what it took.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it.
 */

#include <snib/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_semaphore snib_semaphore;

/* Most permits there can be, and most that one call can name: a Java int. Beyond it:
 * SNIB_ELIMIT. */
#define SNIB_PERMITS_MAX ((int64_t)2147483647)

/* Makes a handle of a semaphore. `name` is as of a lock; with a name_len of 0 it ends at its NUL.
 * No I/O, never blocks. Errors: SNIB_ENAME, SNIB_EINVAL, SNIB_EUNSUPPORTED, SNIB_EFORK,
 * SNIB_ENOMEM. */
SNIB_API int snib_semaphore_new(snib_client *client, const char *name, size_t name_len, snib_semaphore **ret_semaphore,
                                struct snib_error *err);

/* Frees the handle of a semaphore. NULL is allowed. No call may be going on. */
SNIB_API void snib_semaphore_free(snib_semaphore *semaphore);

/* Creates a semaphore with `permits` permits, 0 or more. Answers 1, or 0 if it exists; nothing was
 * changed then. It vanishes after ttl_ms; with a ttl_ms of 0 it never does. Blocks at most one
 * time-out. Thread-safe. */
SNIB_API int snib_semaphore_set(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms, struct snib_error *err);

/* Acquires `permits` permits, 1 or more, all or none. Answers 1, or 0 if they were not free in
 * time, or an error, and then none is taken. SNIB_EUNKNOWN: what may have been taken is given back
 * in the background. wait_ms is as of snib_lock_acquire(). A semaphore that does not exist has no
 * permits. Waiters are served in the order of arrival if the engine keeps a queue (SNIB_CAP_QUEUE).
 * Blocks. Thread-safe. */
SNIB_API int snib_semaphore_acquire(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms,
                                    struct snib_error *err);

/* Tries once to acquire `permits` permits. It answers as snib_semaphore_acquire() with a wait_ms of
 * 0. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_semaphore_try(snib_semaphore *semaphore, int64_t permits, struct snib_error *err);

/* Acquires permits without waiting. `done` runs exactly once if this answers 0, with what
 * snib_semaphore_acquire() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_semaphore_acquire_async(snib_semaphore *semaphore, int64_t permits, int64_t wait_ms,
                                          snib_done_callback *done, void *arg, struct snib_error *err);

/* Ends every wait through this handle of a semaphore. Each ends with SNIB_ECANCELLED. Answers how
 * many. Never blocks. Thread-safe. */
SNIB_API int snib_semaphore_cancel(snib_semaphore *semaphore);

/* Gives back `permits` permits, 1 or more, and wakes waiters. Answers 1. A semaphore that does not
 * exist is created, as with Redisson. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_semaphore_release(snib_semaphore *semaphore, int64_t permits, struct snib_error *err);

/* Gives back `permits` permits if the semaphore exists. Answers 1, or 0 if it does not exist;
 * nothing was done then. So a release that comes late does not create a deleted semaphore again.
 * Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_semaphore_release_if_exists(snib_semaphore *semaphore, int64_t permits, struct snib_error *err);

/* Changes the number of permits by `delta`, which is not 0. The number may fall below 0. If it
 * rises, waiters are woken. Answers 1 and *ret_value, what is free now (ret_value may be NULL).
 * Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_semaphore_add(snib_semaphore *semaphore, int64_t delta, int64_t *ret_value, struct snib_error *err);

/* Takes all permits that are free. Answers 1 and *ret_drained, which may be 0. Blocks at most one
 * time-out. Thread-safe. */
SNIB_API int snib_semaphore_drain(snib_semaphore *semaphore, int64_t *ret_drained, struct snib_error *err);

/* Tells how many permits of a semaphore are free. Answers 1 and *ret_available, which may be
 * negative, or 0 if the semaphore does not exist. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_semaphore_query(snib_semaphore *semaphore, int64_t *ret_available, struct snib_error *err);

/* Removes a semaphore. Answers 1, or 0 if it did not exist. Waiters go on waiting. Blocks at most
 * one time-out. Thread-safe. */
SNIB_API int snib_semaphore_delete(snib_semaphore *semaphore, struct snib_error *err);

/* Called once when a counting call that was not waited for is done. `result` and `value` are those
 * of the blocking call; `err` has the detail if the result is negative, and lives during the
 * callback. */
typedef void snib_value_callback(void *arg, int result, int64_t value, const struct snib_error *err);

/* Creates a semaphore without waiting. `done` runs exactly once if this answers 0, with what
 * snib_semaphore_set() would answer. Never blocks. Thread-safe. */
SNIB_API int snib_semaphore_set_async(snib_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                      snib_value_callback *done, void *arg, struct snib_error *err);

/* Gives back permits without waiting. `done` runs exactly once if this answers 0, with what
 * snib_semaphore_release() would answer, or snib_semaphore_release_if_exists() if only_if_exists is
 * 1. Never blocks. Thread-safe. */
SNIB_API int snib_semaphore_release_async(snib_semaphore *semaphore, int64_t permits, int only_if_exists,
                                          snib_value_callback *done, void *arg, struct snib_error *err);

/* Changes the number of permits without waiting. `done` runs exactly once if this answers 0, with
 * what snib_semaphore_add() would answer; `value` is what is free now. Never blocks.
 * Thread-safe. */
SNIB_API int snib_semaphore_add_async(snib_semaphore *semaphore, int64_t delta, snib_value_callback *done, void *arg,
                                      struct snib_error *err);

/* Takes all free permits without waiting. `done` runs exactly once if this answers 0, with what
 * snib_semaphore_drain() would answer; `value` is how many were taken. Never blocks.
 * Thread-safe. */
SNIB_API int snib_semaphore_drain_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg,
                                        struct snib_error *err);

/* Asks for the free permits without waiting. `done` runs exactly once if this answers 0, with what
 * snib_semaphore_query() would answer; `value` is how many are free. Never blocks. Thread-safe. */
SNIB_API int snib_semaphore_query_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg,
                                        struct snib_error *err);

/* Removes a semaphore without waiting. `done` runs exactly once if this answers 0, with what
 * snib_semaphore_delete() would answer. Never blocks. Thread-safe. */
SNIB_API int snib_semaphore_delete_async(snib_semaphore *semaphore, snib_value_callback *done, void *arg,
                                         struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
