/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clocks and waiting for tests, as wait.h says. Not for the library. No state; any thread.
 */

#include "wait.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__)
#define BUILD_SLOW 4
#elif defined(__SANITIZE_ADDRESS__)
#define BUILD_SLOW 2
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BUILD_SLOW 4
#elif __has_feature(address_sanitizer)
#define BUILD_SLOW 2
#endif
#endif
#ifndef BUILD_SLOW
#define BUILD_SLOW 1
#endif

int64_t wait_now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_BOOTTIME, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int wait_slow(void)
{
        const char *told = getenv("SNIB_TEST_SLOW");
        long n = told ? strtol(told, NULL, 10) : 0; /* nonsense counts as 0 */

        return n > BUILD_SLOW && n < 1000 ? (int)n : BUILD_SLOW;
}

bool wait_threads_after_fork(void)
{
        return BUILD_SLOW < 4;
}

bool wait_readable(int fd, int64_t ms)
{
        int64_t until = wait_now_ms() + ms * wait_slow();
        struct pollfd p = {.fd = fd, .events = POLLIN};

        for (;;) {
                int64_t left = until - wait_now_ms();
                int n = poll(&p, 1, left > 0 ? (int)left : 0);

                if (n > 0)
                        return true;
                if (n == 0 || errno != EINTR)
                        return false;
        }
}

void wait_moment(void)
{
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void bail(const char *format, ...)
{
        va_list list;

        va_start(list, format);
        printf("Bail out! ");
        vprintf(format, list);
        printf("\n");
        fflush(stdout);
        va_end(list);
        abort();
}
