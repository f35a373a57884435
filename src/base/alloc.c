/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counted allocation with a seam for the tests that fail the n-th one. Not a memory manager: libc's
 * is underneath.
 */

#include "base/alloc.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Atomic uint64_t snib__alloc_count;
_Atomic uint64_t snib__alloc_fail_at;

static int refused(void)
{
        uint64_t n = atomic_fetch_add_explicit(&snib__alloc_count, 1, memory_order_relaxed) + 1;

        return n == atomic_load_explicit(&snib__alloc_fail_at, memory_order_relaxed);
}

void *snib__alloc(size_t size)
{
        return refused() ? NULL : calloc(1, size ? size : 1);
}

void *snib__grow(void *old, size_t size)
{
        return refused() ? NULL : realloc(old, size ? size : 1);
}

char *snib__copy(const char *text, size_t length)
{
        char *copy = length == SIZE_MAX ? NULL : snib__alloc(length + 1);

        if (copy && length)
                memcpy(copy, text, length);
        return copy;
}
