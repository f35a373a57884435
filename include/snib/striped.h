/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_STRIPED_H
#define SNIB_STRIPED_H

/*
 * Lock segments: N locks behind one name, for a resource that is too hot for one lock. The hash
 * of a key chooses the lock.
 *
 *     snib_striped_new(client, "accounts", 16, NULL, &accounts, NULL);
 *     struct snib_scope held = SNIB_SCOPE_INIT;
 *     SNIB_WITH_LOCK(held, snib_striped_for(accounts, "alice", 5), 2000) {
 *             ...
 *     }
 *
 * Segment i of N is the lock named "{NAME}:i/N" (no further braces if NAME has some). The segment
 * of a key is (h ^ h >> 32) modulo N, where h is the key's 64-bit FNV-1a hash (offset
 * 14695981039346656037, prime 1099511628211). It is the same in every version, on every machine and
 * in every language. All programs that share a resource must agree on N.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on its locks.
 */

#include <snib/multilock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_striped snib_striped;

/* Most segments of a striped lock. */
#define SNIB_STRIPES_MAX 4096

/* Makes a handle with `segments` locks, 1 to SNIB_STRIPES_MAX. The options are those of a lock, for
 * each of them. No I/O, never blocks. Errors: as snib_lock_new(). */
SNIB_API int snib_striped_new(snib_client *client, const char *name, size_t segments,
                              const struct snib_lock_options *options, snib_striped **ret_striped,
                              struct snib_error *err);

/* Frees the handle of a striped lock, with its locks. Grants live on. NULL is allowed. No wait may
 * be going on. */
SNIB_API void snib_striped_free(snib_striped *striped);

/* Tells how many segments there are. Never blocks. */
SNIB_API size_t snib_striped_count(const snib_striped *striped);

/* Tells the segment of a key, from 0. Never blocks. */
SNIB_API size_t snib_striped_index(const snib_striped *striped, const void *key, size_t key_len);

/* Gives the lock of a segment. It is the handle's; never free it. NULL past the end. Never
 * blocks. */
SNIB_API snib_lock *snib_striped_at(snib_striped *striped, size_t index);

/* Gives the lock of a key's segment. It is the handle's; never free it. Never blocks. */
SNIB_API snib_lock *snib_striped_for(snib_striped *striped, const void *key, size_t key_len);

/* Gives all segments as one multilock. It is the handle's; never free it. NULL if there are more
 * segments than SNIB_MULTILOCK_MAX. Never blocks. */
SNIB_API snib_multilock *snib_striped_all(snib_striped *striped);

#ifdef __cplusplus
}
#endif
#endif
