/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIM_KEYS_H
#define SNIB_TEST_SIM_KEYS_H

/*
 * What the keys of a Redis say about a name.
 */

#include "fakeredis/internal.h"
#include "sim.h"

/* Puts it into *ret, with another edition if it is not what was there. */
void sim_keys_look(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *ret);

/* bytes.c: when a key is gone whose time to live ends in this millisecond of the server's clock. */
snib__ns sim_bytes_ends(struct sim *w, int64_t expires_ms);

#endif
