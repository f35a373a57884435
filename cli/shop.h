/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_SHOP_H
#define SNIB_CLI_SHOP_H

/*
 * The demo's shop: processes that sell a limited stock kept in a plain file. Each sale reads the
 * file, thinks, and writes one less back.
 */

#include <stdint.h>

#define SNIB__SHOP_WORKERS 8
#define SNIB__SHOP_STOCK 100

struct shop_result {
        int sold;
        int failed; /* workers that could not work; they said why */
        int64_t took_ms;
};

/* Sells until nothing is left. `url` NULL: without a lock. The file is made in `directory`. 0, or
 * -1 with errno. */
int snib__shop_sell(const char *directory, const char *url, int think_us, struct shop_result *ret);

#endif
