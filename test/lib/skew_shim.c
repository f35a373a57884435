/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preloaded into a program under test: its clocks are the kernel's plus what stands in the file
 * named by SNIB_SKEW_FILE. Asks the kernel by system call, because looking up the shadowed
 * functions would allocate, and programs with an allocator of their own read the clock in it. Any
 * thread, any time, async-signal-safe after the first call.
 */

#include "skew.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static struct skew_file *shared;

__attribute__((constructor)) static void attach(void)
{
        const char *path = getenv("SNIB_SKEW_FILE");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *at = fd >= 0 ? mmap(NULL, sizeof(*shared), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

        if (at != MAP_FAILED)
                shared = at;
        if (fd >= 0)
                close(fd);
}

static int64_t shift_of(clockid_t clock)
{
        if (!shared)
                return 0;
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
                return atomic_load(&shared->wall_ns);
        return clock == CLOCK_BOOTTIME ? atomic_load(&shared->boot_ns) : 0;
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *ret)
{
        int r = (int)syscall(SYS_clock_gettime, clock, ret);
        int64_t ns;

        if (r == 0) {
                ns = (int64_t)ret->tv_sec * 1000000000 + ret->tv_nsec + shift_of(clock);
                ret->tv_sec = (time_t)(ns / 1000000000);
                ret->tv_nsec = (long)(ns % 1000000000);
        }
        return r;
}

SHOWN int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
        struct timespec t;

        if (clock_gettime(CLOCK_REALTIME, &t) < 0)
                return -1;
        ret->tv_sec = t.tv_sec;
        ret->tv_usec = (suseconds_t)(t.tv_nsec / 1000);
        return 0;
}

SHOWN time_t time(time_t *ret)
{
        struct timespec t;

        if (clock_gettime(CLOCK_REALTIME, &t) < 0)
                return (time_t)-1;
        if (ret)
                *ret = t.tv_sec;
        return t.tv_sec;
}
