/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names and choice of the segments of a striped lock: pure functions of their arguments. Any
 * thread.
 */

#include "core/stripe.h"
#include "base/decimal.h"
#include "base/seedbug.h"
#include <snib/multilock.h>
#include <stdbool.h>
#include <string.h>

size_t snib__stripe_name(char *ret, const char *name, size_t length, size_t index, size_t count)
{
        bool tagged = memchr(name, '{', length) || memchr(name, '}', length);
        size_t n = 0;

        if (SNIB__BUG(stripe_names_collide))
                index /= 2;
        if (!tagged)
                ret[n++] = '{';
        memcpy(ret + n, name, length);
        n += length;
        if (!tagged)
                ret[n++] = '}';
        ret[n++] = ':';
        n += snib__decimal(ret + n, index);
        ret[n++] = '/';
        n += snib__decimal(ret + n, count);
        ret[n] = 0;
        return n;
}

/* FNV-1a. Its low bits depend on the low bits of the input only, hence the fold. */
size_t snib__stripe_index(const void *key, size_t length, size_t count)
{
        const unsigned char *bytes = key;
        uint64_t h = 14695981039346656037ULL;

        for (size_t i = 0; i < length; i++)
                h = (h ^ bytes[i]) * 1099511628211ULL;
        return (size_t)((SNIB__BUG(stripe_by_low_bits) ? h : h ^ h >> 32) % count);
}

size_t snib__stripe_all(size_t count)
{
        size_t all = SNIB__BUG(stripe_all_but_the_last) && count > 1 ? count - 1 : count;

        return count <= SNIB_MULTILOCK_MAX ? all : 0;
}
