/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The switch of base/seedbug.h. Empty in normal builds; only test programs that compile the
 * library's sources with -DSNIB__SEEDED have it. Set before any other thread runs.
 */

#include "base/seedbug.h"

#ifdef SNIB__SEEDED
int snib__seeded_bug;
#endif
