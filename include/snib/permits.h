/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_PERMITS_H
#define SNIB_PERMITS_H

/*
 * Permits that expire: a semaphore in which each permit has an id and a lease. So a crash never
 * costs a permit for ever. An acquire answers a grant, as that of a lock does. The watchdog keeps
 * it alive unless the lease is fixed, and a loss is told in time. The grant is released as a whole.
 * Single permits can be released or prolonged by id, by any client.
 *
 *     snib_permits_set(gpus, 4, NULL);
 *     if (snib_permits_acquire(gpus, 1, 2000, &grant, NULL) == 1) {
 *             ...
 *             snib_grant_release(grant, NULL);
 *     }
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it, not the grants they
 * gave.
 */

#include <snib/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_permits snib_permits;

/* Most permits that one acquire or one release can name. Beyond it: SNIB_ELIMIT. */
#define SNIB_PERMITS_AT_ONCE_MAX ((int64_t)1000)

/* Makes a handle of permits. The options are those of a lock (lease_ms, fixed_lease, max_hold_ms,
 * name_len). options.kind must be 0 and options.owner NULL, as every acquire is an owner of its
 * own. No I/O, never blocks. Errors: as snib_lock_new(). */
SNIB_API int snib_permits_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                              snib_permits **ret_permits, struct snib_error *err);

/* Frees the handle of permits. Grants live on. NULL is allowed. No call may be going on. */
SNIB_API void snib_permits_free(snib_permits *permits);

/* Creates permits, `limit` of them, 0 or more. Answers 1, or 0 if they exist; nothing was changed
 * then. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_set(snib_permits *permits, int64_t limit, struct snib_error *err);

/* Creates permits without waiting. `done` runs exactly once if this answers 0, with what
 * snib_permits_set() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_permits_set_async(snib_permits *permits, int64_t limit, snib_value_callback *done, void *arg,
                                    struct snib_error *err);

/* Creates permits, or changes their number to `limit`. Answers 1. If `limit` is lower than what is
 * taken, the number of free ones is negative until enough came back. Blocks at most one time-out.
 * Thread-safe. */
SNIB_API int snib_permits_resize(snib_permits *permits, int64_t limit, struct snib_error *err);

/* Changes the limit by `delta`, which is not 0. Answers 1 and *ret_free, what is free now (ret_free
 * may be NULL). Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_add(snib_permits *permits, int64_t delta, int64_t *ret_free, struct snib_error *err);

/* Acquires `count` permits with a lease, all or none. Answers and errors are those of
 * snib_lock_acquire(); it is never a re-entry. Blocks. Thread-safe. */
SNIB_API int snib_permits_acquire(snib_permits *permits, int64_t count, int64_t wait_ms, snib_grant **ret_grant,
                                  struct snib_error *err);

/* Tries once to acquire `count` permits with a lease. It answers as snib_permits_acquire() with a
 * wait_ms of 0. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_try(snib_permits *permits, int64_t count, snib_grant **ret_grant, struct snib_error *err);

/* Acquires permits with a lease without waiting. `acquired` runs exactly once if this answers 0,
 * with what snib_permits_acquire() would answer; it never runs if this answers an error. Never
 * blocks. Thread-safe. */
SNIB_API int snib_permits_acquire_async(snib_permits *permits, int64_t count, int64_t wait_ms,
                                        snib_acquired_callback *acquired, void *arg, struct snib_error *err);

/* Ends every wait through this handle of permits. Each ends with SNIB_ECANCELLED. Answers how many.
 * Never blocks. Thread-safe. */
SNIB_API int snib_permits_cancel(snib_permits *permits);

/* Releases permits by id, all or none, also those of other clients. `ids` are texts of 32 hex
 * digits. Answers 1, or SNIB_ENOTOWNER if one of them is not taken; nothing was changed then. A
 * grant whose permits are released so is lost (SNIB_LOSS_GONE). Blocks at most one time-out.
 * Thread-safe. */
SNIB_API int snib_permits_release_ids(snib_permits *permits, const char *const *ids, size_t count,
                                      struct snib_error *err);

/* Starts the lease of one permit again, with `lease_ms`. Answers 1, or SNIB_ENOTOWNER if the permit
 * is not taken. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_renew_id(snib_permits *permits, const char *id, int64_t lease_ms, struct snib_error *err);

/* What is known about permits. */
struct snib_permits_info {
        size_t size;  /* SNIB_PERMITS_INFO_INIT */
        int64_t free; /* can be negative after a resize */
        int64_t taken;
        int64_t limit;
        int64_t next_expiry_ms; /* until the first of the taken ones expires; -1: none does */
        int64_t waiters;        /* -1: unknown */
};
/* clang-format off */
#define SNIB_PERMITS_INFO_INIT { sizeof(struct snib_permits_info), 0, 0, 0, 0, 0 }
/* clang-format on */

/* Tells how many permits are free and how many are taken. Answers 1 and *ret_info, or 0 if the
 * permits do not exist. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_query(snib_permits *permits, struct snib_permits_info *ret_info, struct snib_error *err);

/* Takes back every permit that is taken. Answers 1, or 0 if none was. The holders learn it by a
 * loss. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_force_release(snib_permits *permits, struct snib_error *err);

/* Removes permits, those that are taken too. Answers 1, or 0 if they did not exist. The holders
 * learn it by a loss. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_permits_delete(snib_permits *permits, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
