/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many slips of the finger (a letter too many, too few, another one, or two exchanged) are
 * between two words. Near is what a third of the letters explain. Pure.
 */

#include "near.h"
#include <stdio.h>
#include <string.h>

#define WORD_MAX 40 /* no word of ours is longer */

static size_t least(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* The three latest rows of the table of distances between beginnings of the two words. */
static size_t slips(const char *a, const char *b)
{
        size_t row[3][WORD_MAX + 1], m = strlen(a), n = strlen(b);

        if (m > WORD_MAX || n > WORD_MAX)
                return WORD_MAX;
        for (size_t j = 0; j <= n; j++)
                row[0][j] = j;
        for (size_t i = 1; i <= m; i++) {
                size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

                now[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                now[j] = least(now[j], before[j - 2] + 1);
                }
        }
        return row[m % 3][n];
}

/* A beginning counts as one slip: "rel" for "release". */
static size_t distance(const char *word, const char *candidate)
{
        size_t n = strlen(word);

        return n > 1 && !strncmp(word, candidate, n) ? 1 : slips(word, candidate);
}

void snib__near_offer(struct near *n, const char *candidate)
{
        size_t d = distance(n->word, candidate);

        if (d > (strlen(candidate) + 2) / 3 || (n->best && n->distance <= d))
                return;
        n->best = candidate;
        n->distance = d;
}

const char *snib__near_text(const struct near *n, const char *prefix, char *ret)
{
        ret[0] = 0;
        if (n->best)
                snprintf(ret, SNIB__NEAR_MAX, "; did you mean %s%s?", prefix, n->best);
        return ret;
}
