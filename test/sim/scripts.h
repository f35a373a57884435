/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIM_SCRIPTS_H
#define SNIB_TEST_SIM_SCRIPTS_H

/*
 * The scripts of the redis engine: as in production, or, in sim-seeded, with the bug that is
 * switched on, if it is one that lives in a script.
 */
void sim_scripts_choose(void);

#endif
