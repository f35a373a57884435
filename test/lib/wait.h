/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_WAIT_H
#define SNIB_TEST_WAIT_H

/*
 * Waiting in tests: for an event with a limit, never for a time. And the end of a test program
 * whose surroundings broke.
 */

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds of the clock that counts suspend. */
int64_t wait_now_ms(void);

/* How much slower than usual this build runs: 1, more under sanitizers or with SNIB_TEST_SLOW=N.
 * Leases are multiplied by it. */
int wait_slow(void);

/* False in a build whose sanitizer cannot follow threads that a forked child starts. */
bool wait_threads_after_fork(void);

/* True once `fd` is readable (or at its end), false after ms. */
bool wait_readable(int fd, int64_t ms);

/* Sleeps for a moment between two looks at something that tells nobody when it changes. */
void wait_moment(void);

/* Looks at `condition` until it is true, at most ms long (times wait_slow()): the last look. */
#define eventually(condition, ms)                                           \
        __extension__({                                                     \
                int64_t until_ = wait_now_ms() + (int64_t)(ms)*wait_slow(); \
                bool last_;                                                 \
                while (!(last_ = (condition)) && wait_now_ms() < until_)    \
                        wait_moment();                                      \
                last_;                                                      \
        })

/* "Bail out! ..." and abort: what surrounds the test failed, not what is tested. */
__attribute__((noreturn, format(printf, 1, 2))) void bail(const char *format, ...);

#endif
