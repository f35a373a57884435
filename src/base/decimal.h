/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_DECIMAL_H
#define SNIB_BASE_DECIMAL_H

/*
 * Numbers as text on the hot path, where printf would be a tenth of an acquire. Decimal, no sign,
 * no NUL.
 */

#include <stddef.h>
#include <stdint.h>

#define SNIB__DECIMAL_MAX 20

/* Writes at most SNIB__DECIMAL_MAX characters and answers how many. */
static inline size_t snib__decimal(char *ret, uint64_t number)
{
        size_t count = 1;

        if (number >= 10 && number < 100) { /* most lengths */
                ret[0] = (char)('0' + number / 10);
                ret[1] = (char)('0' + number % 10);
                return 2;
        }
        for (uint64_t n = number; n >= 10; n /= 10)
                count++;
        for (size_t at = count; at-- > 0; number /= 10)
                ret[at] = (char)('0' + number % 10);
        return count;
}

#endif
