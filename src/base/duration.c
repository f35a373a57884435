/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one parser of durations. Not strtod(), which obeys the locale and takes signs, blanks,
 * exponents and "inf". Pure; any thread.
 */

#include "base/duration.h"
#include <snib/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define FRACTION_DIGITS 9

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* The milliseconds in the unit that begins here, and its length; 0 if it is none. */
static int64_t unit_ms(const char *text, size_t *ret_length)
{
        static const struct {
                const char *name;
                int64_t ms;
        } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
        size_t n = strcspn(text, "0123456789.");

        *ret_length = n;
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strlen(units[i].name) == n && !strncmp(units[i].name, text, n))
                        return units[i].ms;
        return 0;
}

/* Digits: how many there were, and their value, -1 if it is above all that there is. */
static size_t digits(const char *text, int64_t *ret)
{
        size_t n = 0;

        for (*ret = 0; is_digit(text[n]); n++)
                if (*ret >= 0 &&
                    (__builtin_mul_overflow(*ret, 10, ret) || __builtin_add_overflow(*ret, text[n] - '0', ret)))
                        *ret = -1;
        return n;
}

/* One number with its unit. */
struct part {
        int64_t whole, fraction, scale, unit;
        bool fractional, bare; /* bare: without a unit */
};

/* How long it is, 0 if there is none. */
static size_t part_read(const char *text, struct part *ret)
{
        size_t n = digits(text, &ret->whole), length, more = 0;

        ret->fraction = 0;
        ret->scale = 1;
        ret->fractional = text[n] == '.';
        if (ret->fractional) {
                more = digits(text + n + 1, &ret->fraction);
                if (more == 0 || more > FRACTION_DIGITS)
                        return 0;
                n += 1 + more;
                while (more--)
                        ret->scale *= 10;
        }
        if (n == 0)
                return 0;
        ret->unit = unit_ms(text + n, &length);
        ret->bare = length == 0;
        return ret->unit ? n + length : 0;
}

/* Adds it to *ms: false if that is too much. */
static bool add(const struct part *p, int64_t *ms)
{
        int64_t whole, fraction = (p->fraction * p->unit + p->scale - 1) / p->scale;

        return p->whole >= 0 && !__builtin_mul_overflow(p->whole, p->unit, &whole) &&
               !__builtin_add_overflow(*ms, whole, ms) && !__builtin_add_overflow(*ms, fraction, ms);
}

/* Parts go from large to small, each unit once; a fraction, or no unit at all, can have only the
 * last and the only one. */
int snib__duration_parse(const char *text, int64_t *ret_ms)
{
        struct part p = {.unit = INT64_MAX};
        int64_t ms = 0, unit = INT64_MAX;
        bool fits = true, first = true;

        do {
                size_t n = part_read(text, &p);

                if (n == 0 || p.unit >= unit || (text[n] && p.fractional) || (p.bare && !first))
                        return SNIB_EINVAL;
                fits = fits && add(&p, &ms);
                unit = p.unit;
                text += n;
                first = false;
        } while (*text);
        if (!fits)
                return SNIB_ELIMIT;
        *ret_ms = ms;
        return 0;
}
