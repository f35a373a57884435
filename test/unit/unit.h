/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_UNIT_H
#define SNIB_TEST_UNIT_H

/* What cmocka wants included before itself, once. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
