/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_PERMITS_H
#define SNIB_PERMITS_H

/*
 * Permits that expire: a semaphore whose every permit has an id and a lease, so that a crash never costs a permit for
 * ever. An acquire answers a grant, as that of a lock: kept alive by the watchdog unless the lease is fixed, with loss
 * told in time. The grant is released as a whole; single permits can be released or prolonged by id, from anywhere.
 *
 *     snib_permits_set(gpus, 4, NULL);
 *     if (snib_permits_acquire(gpus, 1, 2000, &grant, NULL) == 1) {
 *             ...
 *             snib_grant_release(grant, NULL);
 *     }
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it, not the grants they gave.
 */

#include <snib/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_permits snib_permits;

/* Most permits that one acquire or one release can name. Beyond it: SNIB_ELIMIT. */
#define SNIB_PERMITS_AT_ONCE_MAX ((int64_t)1000)

/* Makes a handle; no I/O. Options as of a lock (lease, fixed_lease, max_hold, name_len); options.kind must be 0 and
 * options.owner NULL: every acquire is an owner of its own. */
SNIB_API int snib_permits_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                              snib_permits **ret_permits, struct snib_error *err);
SNIB_API void snib_permits_free(snib_permits *permits);

/* Makes it with `limit` permits (0 or more) if it does not exist: 1 done, 0 it exists. */
SNIB_API int snib_permits_set(snib_permits *permits, int64_t limit, struct snib_error *err);
/* Makes it, or changes it to `limit`: 1. Lowered below what is out, the free ones are negative until enough returned.
 */
SNIB_API int snib_permits_resize(snib_permits *permits, int64_t limit, struct snib_error *err);
/* Changes the limit by `delta`, not 0: 1 and *ret_free (may be NULL). */
SNIB_API int snib_permits_add(snib_permits *permits, int64_t delta, int64_t *ret_free, struct snib_error *err);

/* Acquires `count` permits, all or none: as snib_lock_acquire(), but never a re-entry. */
SNIB_API int snib_permits_acquire(snib_permits *permits, int64_t count, int64_t wait_ms, snib_grant **ret_grant,
                                  struct snib_error *err);
SNIB_API int snib_permits_try(snib_permits *permits, int64_t count, snib_grant **ret_grant, struct snib_error *err);
SNIB_API int snib_permits_acquire_async(snib_permits *permits, int64_t count, int64_t wait_ms,
                                        snib_acquired_callback *acquired, void *arg, struct snib_error *err);
SNIB_API int snib_permits_cancel(snib_permits *permits);

/* Releases permits by id, whoever acquired them, all or none: 1, or SNIB_ENOTOWNER when one of them is not out, and
 * nothing was changed. `ids` are texts of 32 hex digits. A grant whose permits are released so is lost
 * (SNIB_LOSS_GONE). */
SNIB_API int snib_permits_release_ids(snib_permits *permits, const char *const *ids, size_t count,
                                      struct snib_error *err);
/* Starts the lease of one permit again, with `lease_ms`: 1, or SNIB_ENOTOWNER. */
SNIB_API int snib_permits_renew_id(snib_permits *permits, const char *id, int64_t lease_ms, struct snib_error *err);

struct snib_permits_info {
        size_t size;  /* SNIB_PERMITS_INFO_INIT */
        int64_t free; /* can be negative after a resize */
        int64_t taken;
        int64_t limit;
        int64_t next_expiry_ms; /* until the first of the taken ones expires; -1: none does */
        int64_t waiters;        /* -1 unknown */
};
/* clang-format off */
#define SNIB_PERMITS_INFO_INIT { sizeof(struct snib_permits_info), 0, 0, 0, 0, 0 }
/* clang-format on */

/* 1 and *ret_info, or 0: it does not exist. */
SNIB_API int snib_permits_query(snib_permits *permits, struct snib_permits_info *ret_info, struct snib_error *err);
/* Takes back every permit that is out: 1, or 0 if none was. Its holders learn it by a loss. */
SNIB_API int snib_permits_force_release(snib_permits *permits, struct snib_error *err);
/* Removes it with everything that is out: 1, or 0 if it did not exist. */
SNIB_API int snib_permits_delete(snib_permits *permits, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
