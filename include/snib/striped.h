/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_STRIPED_H
#define SNIB_STRIPED_H

/*
 * Lock segments: N locks behind one name, chosen by the hash of a key, for a resource that is too hot for one lock.
 *
 *     snib_striped_new(client, "accounts", 16, NULL, &accounts, NULL);
 *     SNIB_WITH_LOCK(held, snib_striped_for(accounts, "alice", 5), 2000) {
 *             ...
 *     }
 *
 * Segment i of N is the lock named "{NAME}:i/N" (no further braces when NAME has some). The segment of a key is
 * (h ^ h >> 32) modulo N, where h is the key's 64-bit FNV-1a hash (offset 14695981039346656037, prime 1099511628211):
 * stable over versions, machines and languages. All who share a resource must agree on N.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on its locks.
 */

#include <snib/multilock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_striped snib_striped;

#define SNIB_STRIPES_MAX 4096

/* Makes a handle with `segments` locks, 1 to SNIB_STRIPES_MAX; no I/O. Options as of a lock, for each of them. */
SNIB_API int snib_striped_new(snib_client *client, const char *name, size_t segments,
                              const struct snib_lock_options *options, snib_striped **ret_striped,
                              struct snib_error *err);
SNIB_API void snib_striped_free(snib_striped *striped);

/* How many segments there are, as given. Never blocks. */
SNIB_API size_t snib_striped_count(const snib_striped *striped);
/* The segment of a key. Never blocks. */
SNIB_API size_t snib_striped_index(const snib_striped *striped, const void *key, size_t key_len);
/* The lock of a segment, or of a key's segment. The handle's; NULL past the end. */
SNIB_API snib_lock *snib_striped_at(snib_striped *striped, size_t index);
SNIB_API snib_lock *snib_striped_for(snib_striped *striped, const void *key, size_t key_len);
/* All segments as one multilock, when there are at most SNIB_MULTILOCK_MAX; else NULL. The handle's. */
SNIB_API snib_multilock *snib_striped_all(snib_striped *striped);

#ifdef __cplusplus
}
#endif
#endif
