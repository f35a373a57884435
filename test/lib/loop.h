/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_LOOP_H
#define SNIB_TEST_LOOP_H

/*
 * The event loop of a test: for clients without threads, which somebody has to drive. A test that
 * runs in every mode of threads says which it is.
 */

#include <snib/client.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Until *flag is at least `want`, at most ms long (times wait_slow()): whether it is. With
 * SNIB_THREADS_NONE the client is driven meanwhile, and must not fail. */
bool loop_reaches(snib_client *c, int mode, atomic_int *flag, int want, int64_t ms);

#endif
