/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SHA-1 (FIPS 180-4), for naming scripts as a Redis server does. Not for security, and not fast.
 */

#include "fakeredis.h"
#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int n)
{
        return (x << n) | (x >> (32 - n));
}

static void block(uint32_t h[5], const unsigned char *p)
{
        uint32_t w[80], v[5];

        for (int t = 0; t < 16; t++)
                w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 | (uint32_t)p[4 * t + 2] << 8 |
                       p[4 * t + 3];
        for (int t = 16; t < 80; t++)
                w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
        memcpy(v, h, sizeof(v));
        for (int t = 0; t < 80; t++) {
                uint32_t b = v[1], c = v[2], d = v[3], f, k, sum;
                if (t < 20)
                        f = (b & c) | (~b & d), k = 0x5a827999;
                else if (t < 40)
                        f = b ^ c ^ d, k = 0x6ed9eba1;
                else if (t < 60)
                        f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
                else
                        f = b ^ c ^ d, k = 0xca62c1d6;
                sum = rotate(v[0], 5) + f + v[4] + k + w[t];
                v[4] = d;
                v[3] = c;
                v[2] = rotate(b, 30);
                v[1] = v[0];
                v[0] = sum;
        }
        for (int i = 0; i < 5; i++)
                h[i] += v[i];
}

void fakeredis_sha1(const char *text, size_t length, char ret[41])
{
        uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
        unsigned char last[128] = {0};
        size_t whole = length / 64 * 64, rest = length - whole, end = rest < 56 ? 64 : 128;

        for (size_t i = 0; i < whole; i += 64)
                block(h, (const unsigned char *)text + i);
        memcpy(last, text + whole, rest);
        last[rest] = 0x80;
        for (int i = 0; i < 8; i++)
                last[end - 1 - (size_t)i] = (unsigned char)((uint64_t)length * 8 >> (8 * i));
        for (size_t i = 0; i < end; i += 64)
                block(h, last + i);
        for (int i = 0; i < 5; i++)
                snprintf(ret + 8 * i, 9, "%08x", (unsigned)h[i]);
}
