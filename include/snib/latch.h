/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LATCH_H
#define SNIB_LATCH_H

/*
 * A count-down latch has a count. The count is set once, and every client can count it down. A
 * caller that awaits the latch goes on when the count is 0: the latch is open. A latch that was
 * never set is open too. When the count reaches 0 the latch is gone and can be set again.
 *
 *     snib_latch_set(ready, 3, NULL);            (the one that waits, before the others start)
 *     snib_latch_await(ready, 60000, NULL);
 *
 *     snib_latch_count_down(ready, 1, NULL, NULL);   (each of the three others)
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it.
 */

#include <snib/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_latch snib_latch;

/* Makes a handle of a latch. `name` and name_len are as of snib_semaphore_new(). No I/O, never
 * blocks. Errors: as snib_semaphore_new(). */
SNIB_API int snib_latch_new(snib_client *client, const char *name, size_t name_len, snib_latch **ret_latch,
                            struct snib_error *err);

/* Frees the handle of a latch. NULL is allowed. No call may be going on. */
SNIB_API void snib_latch_free(snib_latch *latch);

/* Sets the count of a latch that is open. `count` is 1 to SNIB_PERMITS_MAX. Answers 1, or 0 if it
 * has a count already; nothing was changed then. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_latch_set(snib_latch *latch, int64_t count, struct snib_error *err);

/* Counts down by `by`, 1 or more, at most to 0. It is counted exactly once, whatever happens to the
 * answer. Answers 1 and *ret_left, the count that is left (ret_left may be NULL), or 0 if the latch
 * was open. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_latch_count_down(snib_latch *latch, int64_t by, int64_t *ret_left, struct snib_error *err);

/* Waits until the latch is open. Answers 1, or 0 if it was not open in time. A latch that was never
 * set is open: the answer is 1, at once. If it may be awaited before it is set, call
 * snib_latch_await_set() first. A latch that is deleted is open too. wait_ms is as of
 * snib_lock_acquire(). Blocks. Thread-safe. */
SNIB_API int snib_latch_await(snib_latch *latch, int64_t wait_ms, struct snib_error *err);

/* Awaits the latch without waiting. `done` runs exactly once if this answers 0, with what
 * snib_latch_await() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_latch_await_async(snib_latch *latch, int64_t wait_ms, snib_done_callback *done, void *arg,
                                    struct snib_error *err);

/* Waits until the latch has a count. Answers 1 if it has one, or had one meanwhile and is open
 * again, or 0 if it was not set in time. What was set and opened before the call does not count,
 * nor (on Redis) what was set and opened while the connection was down. wait_ms is as of
 * snib_lock_acquire(). Blocks. Thread-safe. */
SNIB_API int snib_latch_await_set(snib_latch *latch, int64_t wait_ms, struct snib_error *err);

/* Waits for a count without blocking. `done` runs exactly once if this answers 0, with what
 * snib_latch_await_set() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_latch_await_set_async(snib_latch *latch, int64_t wait_ms, snib_done_callback *done, void *arg,
                                        struct snib_error *err);

/* Ends every wait through this handle of a latch. Each ends with SNIB_ECANCELLED. Answers how many.
 * Never blocks. Thread-safe. */
SNIB_API int snib_latch_cancel(snib_latch *latch);

/* Tells the count of a latch. Answers 1 and *ret_count, or 0 if the latch is open. Blocks at most
 * one time-out. Thread-safe. */
SNIB_API int snib_latch_query(snib_latch *latch, int64_t *ret_count, struct snib_error *err);

/* Opens a latch, whatever its count. Answers 1, or 0 if it was open. Waiters are woken, Java's too.
 * Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_latch_delete(snib_latch *latch, struct snib_error *err);

/* Sets the count without waiting. `done` runs exactly once if this answers 0, with what
 * snib_latch_set() would answer. Never blocks. Thread-safe. */
SNIB_API int snib_latch_set_async(snib_latch *latch, int64_t count, snib_value_callback *done, void *arg,
                                  struct snib_error *err);

/* Counts down without waiting. `done` runs exactly once if this answers 0, with what
 * snib_latch_count_down() would answer; `value` is the count that is left. Never blocks.
 * Thread-safe. */
SNIB_API int snib_latch_count_down_async(snib_latch *latch, int64_t by, snib_value_callback *done, void *arg,
                                         struct snib_error *err);

/* Asks for the count without waiting. `done` runs exactly once if this answers 0, with what
 * snib_latch_query() would answer; `value` is the count. Never blocks. Thread-safe. */
SNIB_API int snib_latch_query_async(snib_latch *latch, snib_value_callback *done, void *arg, struct snib_error *err);

/* Opens a latch without waiting. `done` runs exactly once if this answers 0, with what
 * snib_latch_delete() would answer. Never blocks. Thread-safe. */
SNIB_API int snib_latch_delete_async(snib_latch *latch, snib_value_callback *done, void *arg, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
