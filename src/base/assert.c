/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a failed assertion of the library ends: the process, at once, without a word. In a file of
 * its own, so that a test program can put its own in place.
 */

#include "base/assert.h"
#include <stdlib.h>

void snib__assert_fail(const char *condition, const char *file, int line)
{
        abort();
}
