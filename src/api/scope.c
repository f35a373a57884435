/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two halves of SNIB_WITH_LOCK: built from the public calls only. A scope belongs to one
 * thread.
 * Invariant: `grant` is set exactly while a block runs under it, so that whatever way the block is
 * left, it is released once.
 */

#include <snib/lock.h>
#include <string.h>

struct snib_scope *snib_scope_enter(struct snib_scope *scope, snib_lock *lock, int64_t wait_ms)
{
        if (!scope)
                return NULL;
        if (scope->grant) {
                scope->result = SNIB_EINVAL; /* the block around this one uses it */
                return NULL;
        }
        scope->released = 0;
        scope->result = snib_lock_acquire(lock, wait_ms, &scope->grant, scope->err);
        return scope->result == 1 ? scope : NULL;
}

void snib_scope_leave(struct snib_scope **entered)
{
        struct snib_scope *scope = entered ? *entered : NULL;

        if (!scope || !scope->grant)
                return;
        scope->released = snib_grant_release(scope->grant, scope->err);
        scope->grant = NULL;
        *entered = NULL;
}
