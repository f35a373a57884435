/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_FAULTY_H
#define SNIB_TEST_FAULTY_H

/*
 * A decorator of any engine, in which requests and answers come to grief as often as the test says.
 * Each fault is one that engine.h allows.
 */

#include <stdatomic.h>

/* One in so many; 0: none. For all engines that are opened; may be changed at any time. */
extern struct faulty_odds {
        atomic_uint refused; /* submit() takes none: no memory */
        atomic_uint unsent;  /* SNIB_EUNREACHABLE, and it was not executed */
        atomic_uint lost;    /* SNIB_EUNKNOWN, and it was executed */
} faulty_odds;
extern atomic_uint faulty_count; /* faults that were made */

/* Engines are opened with faults from now on, or no more. */
void faulty_install(void);
void faulty_remove(void);

#endif
