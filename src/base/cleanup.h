/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_CLEANUP_H
#define SNIB_BASE_CLEANUP_H

/*
 * What a local says about itself: that it owns something, which it hands over with TAKE() (after
 * systemd's convention), or that it need not be cleared.
 */

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void snib__freep(void *p)
{
        free(*(void **)p);
}

static inline void snib__closep(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
}

#define _cleanup_free_ _cleanup_(snib__freep)
#define _cleanup_close_ _cleanup_(snib__closep)

/* A large local of a call that is made all the time, filled before it is read: hardening would
 * clear it each time. */
#if defined(__has_attribute) && __has_attribute(uninitialized)
#define _unset_ __attribute__((uninitialized))
#else
#define _unset_
#endif

/* The value of the local, which is left empty. */
#define TAKE(pointer)                                   \
        __extension__({                                 \
                __typeof__(pointer) taken_ = (pointer); \
                (pointer) = NULL;                       \
                taken_;                                 \
        })
#define TAKE_FD(fd)                \
        __extension__({            \
                int taken_ = (fd); \
                (fd) = -1;         \
                taken_;            \
        })

#endif
