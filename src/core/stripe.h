/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CORE_STRIPE_H
#define SNIB_CORE_STRIPE_H

/*
 * The segments of a striped lock: their names, and which one a key belongs to. Both are the same in
 * every process, for ever: who disagrees about them excludes nobody.
 */

#include <stddef.h>

/* A name and what is added to it. */
#define SNIB__STRIPE_MAX(length) ((length) + 48)

/* Writes "{NAME}:index/count", without braces of our own when NAME has some, and a NUL; answers its
 * length. Room for SNIB__STRIPE_MAX(length). */
size_t snib__stripe_name(char *ret, const char *name, size_t length, size_t index, size_t count);
/* The segment of a key: below `count`, which is at least 1. */
size_t snib__stripe_index(const void *key, size_t length, size_t count);
/* How many members the lock of all segments has; 0: it would have too many. */
size_t snib__stripe_all(size_t count);

#endif
