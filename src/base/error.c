/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fills a caller's struct snib_error and makes hostile bytes showable. Not a log, and it keeps
 * nothing. Invariant: nothing beyond the `size` that the caller put into its struct is ever
 * written, so that a program built with an older header stays whole. Any thread.
 */

#include "base/error.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ends(field) (offsetof(struct snib_error, field) + sizeof(((struct snib_error *)0)->field))

/* What a size of 0 stands for: the struct as it was in the first version, 0.1, whatever is appended
 * later. */
#define FIRST_SIZE ends(text)

/* The length of the UTF-8 sequence at `s`, 0 if there is no valid one (RFC 3629: no overlong form,
 * no surrogate, at most U+10FFFF). *ret_point is its code point. */
static size_t sequence(const unsigned char *s, size_t length, uint32_t *ret_point)
{
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        size_t n = s[0] < 0x80             ? 1
                   : (s[0] & 0xe0) == 0xc0 ? 2
                   : (s[0] & 0xf0) == 0xe0 ? 3
                   : (s[0] & 0xf8) == 0xf0 ? 4
                                           : 0;
        uint32_t point = n == 1 ? s[0] : n ? s[0] & (0x7fU >> n) : 0;

        if (n == 0 || n > length)
                return 0;
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                point = point << 6 | (s[i] & 0x3f);
        }
        if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
                return 0;
        *ret_point = point;
        return n;
}

/* Control characters of both sets, line and paragraph separators, and what turns the direction of
 * writing. */
static bool steers(uint32_t point)
{
        return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x200e || point == 0x200f ||
               (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

void snib__text_clean(char *ret, size_t size, const char *text, size_t length)
{
        const unsigned char *s = (const unsigned char *)text;
        size_t out = 0;

        for (size_t i = 0; i < length;) {
                uint32_t point = 0;
                size_t n = sequence(s + i, length - i, &point);
                bool shown = n && !steers(point);
                size_t take = shown ? n : 1;

                if (out + take >= size)
                        break;
                if (shown)
                        memcpy(ret + out, s + i, n);
                else
                        ret[out] = '?';
                out += take;
                i += n ? n : 1;
        }
        ret[out] = 0;
}

__attribute__((format(printf, 4, 0))) static int fill(struct snib_error *err, int code, int engine_code,
                                                      const char *format, va_list args)
{
        char line[2048]; /* a name of 1000 bytes and the words around it */

        if (!err)
                return code;

        size_t size = err->size ? err->size : FIRST_SIZE;

        if (size >= ends(code))
                err->code = code;
        if (size >= ends(engine_code))
                err->engine_code = engine_code;
        if (size <= offsetof(struct snib_error, text))
                return code;

        size_t room = (size < ends(text) ? size : ends(text)) - offsetof(struct snib_error, text);
        int n = vsnprintf(line, sizeof(line), format, args);

        if (n < 0)
                n = 0;
        snib__text_clean(err->text, room, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
        return code;
}

int snib__error(struct snib_error *err, int code, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)fill(err, code, 0, format, args);
        va_end(args);
        return code;
}

int snib__error_engine(struct snib_error *err, int code, int engine_code, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)fill(err, code, engine_code, format, args);
        va_end(args);
        return code;
}

int snib__error_errno(struct snib_error *err, int code, int number, const char *what)
{
        char buffer[128];

        return snib__error_engine(err, code, number, "%s: %s", what, strerror_r(number, buffer, sizeof(buffer)));
}
