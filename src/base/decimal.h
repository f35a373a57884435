/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_DECIMAL_H
#define SNIB_BASE_DECIMAL_H

/*
 * Numbers as text on the hot path, where printf would be a tenth of an acquire. Decimal, no sign, no NUL.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SNIB__DECIMAL_MAX 20

/* Writes at most SNIB__DECIMAL_MAX characters and answers how many. */
static inline size_t snib__decimal(char *ret, uint64_t number)
{
        char digits[SNIB__DECIMAL_MAX];
        size_t at = sizeof(digits);

        do
                digits[--at] = (char)('0' + number % 10);
        while ((number /= 10) > 0);
        memcpy(ret, digits + at, sizeof(digits) - at);
        return sizeof(digits) - at;
}

#endif
