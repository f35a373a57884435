/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scoped hold of SNIB_WITH_LOCK: built from the public calls only. A scope belongs to the block it stands in, and
 * so to one thread.
 */

#include <snib/lock.h>

struct snib_scope snib_scope_begin(snib_lock *lock, int64_t wait_ms)
{
        struct snib_scope s = {0};

        s.result = snib_lock_acquire(lock, wait_ms, &s.grant, NULL);
        return s;
}

void snib_scope_end(struct snib_scope *scope)
{
        if (!scope || !scope->grant)
                return;
        (void)snib_grant_release(scope->grant, NULL);
        scope->grant = NULL;
}
