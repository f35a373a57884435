/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_ALLOC_H
#define SNIB_BASE_ALLOC_H

/*
 * The one way to the heap for engines, runtime and api; the pure folders allocate nothing. Every
 * result is checked by the caller. Tests make the n-th allocation fail through snib__alloc_fail_at,
 * and count allocations.
 */

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory or NULL. Freed with free(). */
void *snib__alloc(size_t size);
/* Like realloc; the old block stays valid on NULL. */
void *snib__grow(void *old, size_t size);
/* A copy of `length` bytes with a NUL after them, or NULL. */
char *snib__copy(const char *text, size_t length);

/* Test seam: fail the allocation when the count reaches it; 0 = never. Both are atomic. */
extern _Atomic uint64_t snib__alloc_count;
extern _Atomic uint64_t snib__alloc_fail_at;

#endif
