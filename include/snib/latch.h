/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LATCH_H
#define SNIB_LATCH_H

/*
 * A count-down latch: a count, set once, counted down by anybody; whoever awaits it goes on when it is 0. A latch that
 * does not exist is open. When the count reaches 0 the latch is gone and can be set again.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it.
 */

#include <snib/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_latch snib_latch;

/* Makes a handle; no I/O. As snib_semaphore_new(). */
SNIB_API int snib_latch_new(snib_client *client, const char *name, size_t name_len, snib_latch **ret_latch,
                            struct snib_error *err);
SNIB_API void snib_latch_free(snib_latch *latch);

/* Sets the count (1 to SNIB_PERMITS_MAX) if the latch is open: 1 set, 0 it has a count already. Blocks at most one
 * time-out, as all but await. */
SNIB_API int snib_latch_set(snib_latch *latch, int64_t count, struct snib_error *err);
/* Counts `by` (1 or more) down, at most to 0, exactly once whatever happens to the answer: 1 and *ret_left (may be
 * NULL) is the count now; 0: it was open. */
SNIB_API int snib_latch_count_down(snib_latch *latch, int64_t by, int64_t *ret_left, struct snib_error *err);
/* Waits until it is open: 1 open, 0 not in time. Deleting it opens it. Blocks. Thread-safe. */
SNIB_API int snib_latch_await(snib_latch *latch, int64_t wait_ms, struct snib_error *err);
SNIB_API int snib_latch_await_async(snib_latch *latch, int64_t wait_ms, snib_done_callback *done, void *arg,
                                    struct snib_error *err);
SNIB_API int snib_latch_cancel(snib_latch *latch);
/* 1 and *ret_count, or 0: open. */
SNIB_API int snib_latch_query(snib_latch *latch, int64_t *ret_count, struct snib_error *err);
/* Opens it whatever its count: 1, or 0 if it was open. Waiters are woken, Java's too. */
SNIB_API int snib_latch_delete(snib_latch *latch, struct snib_error *err);

/* Without waiting, as of the semaphore. */
SNIB_API int snib_latch_set_async(snib_latch *latch, int64_t count, snib_value_callback *done, void *arg,
                                  struct snib_error *err);
SNIB_API int snib_latch_count_down_async(snib_latch *latch, int64_t by, snib_value_callback *done, void *arg,
                                         struct snib_error *err);
SNIB_API int snib_latch_query_async(snib_latch *latch, snib_value_callback *done, void *arg, struct snib_error *err);
SNIB_API int snib_latch_delete_async(snib_latch *latch, snib_value_callback *done, void *arg, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
