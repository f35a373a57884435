/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_TIME_H
#define SNIB_BASE_TIME_H

/*
 * Time types. Inside the library a point in time is nanoseconds of the clock that counts suspend
 * (CLOCK_BOOTTIME) and is always a parameter: nothing in base, model or core reads a clock. Public
 * durations are milliseconds; they are converted once, in api/.
 */

#include <stdint.h>

typedef int64_t snib__ns;

#define SNIB__NEVER INT64_MAX
#define SNIB__US ((snib__ns)1000)
#define SNIB__MS ((snib__ns)1000000)
#define SNIB__S ((snib__ns)1000000000)

/* now + delay, SNIB__NEVER instead of an overflow. */
static inline snib__ns snib__after(snib__ns now, snib__ns delay)
{
        return delay >= SNIB__NEVER - now ? SNIB__NEVER : now + delay;
}

static inline snib__ns snib__min(snib__ns a, snib__ns b)
{
        return a < b ? a : b;
}

static inline snib__ns snib__max(snib__ns a, snib__ns b)
{
        return a > b ? a : b;
}

#endif
