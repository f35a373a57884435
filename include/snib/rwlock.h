/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RWLOCK_H
#define SNIB_RWLOCK_H

/*
 * A read-write lock: many readers or one writer. Its two sides are locks: everything that snib/lock.h does to a lock
 * can be done to a side.
 *
 *     snib_rwlock *rw;
 *     snib_rwlock_new(client, "catalogue", NULL, &rw, NULL);
 *     SNIB_WITH_LOCK(held, snib_rwlock_read(rw), 2000) {
 *             look();
 *     }
 *     snib_rwlock_free(rw);
 *
 * Both sides are re-entrant. Whoever holds the write side may acquire the read side too, and may then release the write
 * side first: a downgrade, without a gap, which lets waiting readers in. Whoever holds only the read side and asks for
 * the write side would wait for itself: that is refused with SNIB_EUPGRADE, at once. On engines with
 * SNIB_CAP_WRITER_IN_TURN a waiting writer is not overtaken by readers that come later; on Redis, which has Redisson's
 * format, it can be.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on its sides, not the grants they gave.
 */

#include <snib/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_rwlock snib_rwlock;

/* Makes a handle; no I/O, never blocks. Options as of a lock; options.kind must be 0. Errors: as snib_lock_new(). */
SNIB_API int snib_rwlock_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                             snib_rwlock **ret_rwlock, struct snib_error *err);

/* Frees the handle and its two sides. Grants live on. NULL is allowed. No wait may be going on. */
SNIB_API void snib_rwlock_free(snib_rwlock *rwlock);

/* The sides. They are the handle's and live as long as it; never free them. A query of either says what there is, of
 * any side: info.kind is the side that is held. A forced release of the read side ends every reader, one of the write
 * side the writer with its own reads. */
SNIB_API snib_lock *snib_rwlock_read(snib_rwlock *rwlock);
SNIB_API snib_lock *snib_rwlock_write(snib_rwlock *rwlock);

#ifdef __cplusplus
}
#endif
#endif
