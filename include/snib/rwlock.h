/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RWLOCK_H
#define SNIB_RWLOCK_H

/*
 * A read-write lock: many readers or one writer. Its two sides are locks: everything that
 * snib/lock.h does to a lock can be done to a side.
 *
 *     snib_rwlock *rw;
 *     snib_rwlock_new(client, "catalogue", NULL, &rw, NULL);
 *     struct snib_scope held = SNIB_SCOPE_INIT;
 *     SNIB_WITH_LOCK(held, snib_rwlock_read(rw), 2000) {
 *             look();
 *     }
 *     snib_rwlock_free(rw);
 *
 * Both sides are re-entrant. An owner that holds the write side may acquire the read side too, and
 * may then release the write side first. That is a downgrade without a gap; on engines with
 * SNIB_CAP_DOWNGRADE it lets waiting readers in. An owner that holds only the read side and asks
 * for the write side would wait for itself. That is refused at once, with SNIB_EUPGRADE. On engines
 * with SNIB_CAP_WRITER_IN_TURN readers that come later do not overtake a waiting writer. On Redis,
 * which has Redisson's format, they can.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on its sides, not the
 * grants they gave.
 */

#include <snib/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_rwlock snib_rwlock;

/* Makes a handle of a read-write lock. The options are those of a lock; options.kind must be 0. No
 * I/O, never blocks. Errors: as snib_lock_new(). */
SNIB_API int snib_rwlock_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                             snib_rwlock **ret_rwlock, struct snib_error *err);

/* Frees the handle of a read-write lock, with its two sides. Grants live on. NULL is allowed. No
 * wait may be going on. */
SNIB_API void snib_rwlock_free(snib_rwlock *rwlock);

/* Gives the read side, as a lock. It is the handle's and lives as long; never free it. A query of
 * either side says what there is on both: info.kind is the side that is held. A forced release of
 * the read side ends every reader. Never blocks. */
SNIB_API snib_lock *snib_rwlock_read(snib_rwlock *rwlock);

/* Gives the write side, as a lock. It is the handle's and lives as long; never free it. A forced
 * release of the write side ends the writer, with its own reads. Never blocks. */
SNIB_API snib_lock *snib_rwlock_write(snib_rwlock *rwlock);

#ifdef __cplusplus
}
#endif
#endif
