/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/rwlock.h: a pair of handles of one name. What the two sides mean to each other is decided
 * where an acquire begins (runtime/hold.c) and by the engine; here they are made and freed. Any
 * thread.
 */

#include "api/internal.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include <stdlib.h>

struct snib_rwlock {
        struct snib_lock read, write;
};

static void rwlock_freep(snib_rwlock **rwlock)
{
        snib_rwlock_free(*rwlock);
}

int snib_rwlock_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                    snib_rwlock **ret_rwlock, struct snib_error *err)
{
        struct snib_lock_options o;
        int r = ret_rwlock ? snib__object_options(&o, options, false, err) : snib__null("ret_rwlock", err);

        if (r < 0)
                return r;
        _cleanup_(rwlock_freep) snib_rwlock *rwlock = snib__alloc(sizeof(*rwlock));

        if (!rwlock)
                return snib__error(err, SNIB_ENOMEM, "no memory for a handle; free some and try again");
        snib__list_init(&rwlock->write.object.waits);
        if ((r = snib__object_init(&rwlock->read.object, client, name, SNIB_KIND_READ, &o, err)) < 0 ||
            (r = snib__object_init(&rwlock->write.object, client, name, SNIB_KIND_WRITE, &o, err)) < 0)
                return r;
        *ret_rwlock = TAKE(rwlock);
        return 0;
}

void snib_rwlock_free(snib_rwlock *rwlock)
{
        if (!rwlock)
                return;
        snib__object_done(&rwlock->read.object);
        snib__object_done(&rwlock->write.object);
        free(rwlock);
}

snib_lock *snib_rwlock_read(snib_rwlock *rwlock)
{
        return rwlock ? &rwlock->read : NULL;
}

snib_lock *snib_rwlock_write(snib_rwlock *rwlock)
{
        return rwlock ? &rwlock->write : NULL;
}
