/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_PRNG_H
#define SNIB_BASE_PRNG_H

/*
 * A small reproducible generator for jitter and simulation; never for ids. Vigna's splitmix64.
 */

#include <stdint.h>

struct snib__prng {
        uint64_t state;
};

static inline uint64_t snib__prng_next(struct snib__prng *p)
{
        uint64_t z = (p->state += 0x9e3779b97f4a7c15ULL);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
}

/* A number in [0, below), below > 0. */
static inline uint64_t snib__prng_below(struct snib__prng *p, uint64_t below)
{
        return snib__prng_next(p) % below;
}

#endif
