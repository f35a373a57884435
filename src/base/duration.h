/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_DURATION_H
#define SNIB_BASE_DURATION_H

/*
 * Durations as a human writes them, in a URL and on a command line.
 */

#include <stdint.h>

/* "2s", "500ms", "1.5s", ".5", "2m", "1h30m", "1d", or "30" in seconds, as milliseconds rounded up:
 * 0 and *ret_ms. SNIB_EINVAL: it is none; SNIB_ELIMIT: it is one, and too long for the type. */
int snib__duration_parse(const char *text, int64_t *ret_ms);

#endif
