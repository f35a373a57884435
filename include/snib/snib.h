/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_SNIB_H
#define SNIB_SNIB_H

/*
 * snib: distributed locks. This header includes all others. Their conventions:
 *
 * - A call answers an int: positive or zero is an answer, negative an error (snib/error.h).
 * - Durations are milliseconds in int64_t and end in _ms. Times inside a struct say which clock
 *   they count on.
 * - Structs that the caller makes begin with `size`. `= SNIB_..._INIT` sets it, with zero in every
 *   other field; zero means default. A size of 0 works too, so `= {0}` and `= {.lease_ms = 10000}`
 *   are fine: it stands for the fields of version 0.1. Fields are only ever added at the end. A
 *   field that was added later says so; it counts only if the size is set. A struct longer than the
 *   library knows is refused unless its tail is zero.
 * - Output parameters come last, begin with ret_ and are written on success only. `err` may always
 *   be NULL.
 * - The library never prints, exits, logs, installs signal handlers or changes the locale. All its
 *   descriptors are close-on-exec.
 * - After fork() every handle is inert in the child; see snib/client.h.
 */

#include <snib/client.h>
#include <snib/election.h>
#include <snib/error.h>
#include <snib/grant.h>
#include <snib/latch.h>
#include <snib/lock.h>
#include <snib/multilock.h>
#include <snib/permits.h>
#include <snib/register.h>
#include <snib/rwlock.h>
#include <snib/semaphore.h>
#include <snib/striped.h>
#include <snib/version.h>

#endif
