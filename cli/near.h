/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_NEAR_H
#define SNIB_CLI_NEAR_H

/*
 * "did you mean": of some words the one that is nearest to a mistyped one.
 */

#include <stddef.h>

struct near {
        const char *word; /* as it was typed */
        const char *best; /* NULL: none is near enough */
        size_t distance;  /* of the best */
};

/* One word that could have been meant. */
void snib__near_offer(struct near *n, const char *candidate);

/* "; did you mean PREFIXword?", or "". Answers `ret`. */
#define SNIB__NEAR_MAX 80
const char *snib__near_text(const struct near *n, const char *prefix, char *ret);

#endif
