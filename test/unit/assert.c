/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The assert hook of test programs that are linked without the runtime.
 */

#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>

void snib__assert_fail(const char *condition, const char *file, int line)
{
        (void)fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
        abort();
}
