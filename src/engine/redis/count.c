/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Semaphores, permits, latches and registers: their rows, and what their answers mean.
 */

#include "engine/redis/internal.h"

const struct row snib__count_rows[SNIB_KIND_REGISTER - SNIB_KIND_SEMAPHORE + 1][SNIB__DELETE + 1] = {{{0}}};
