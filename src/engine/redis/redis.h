/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_REDIS_H
#define SNIB_ENGINE_REDIS_H

/*
 * redis:// and redis+unix://: one Redis or Valkey server, Redisson's wire format.
 * doc/design/redis.md.
 */

#include "engine/engine.h"

struct snib__transport;

/* What a connection is for. */
enum snib__redis_role { SNIB__REDIS_COMMANDS = 0, SNIB__REDIS_SUBSCRIPTIONS = 1 };

extern const struct snib__engine_ops snib__redis_engine;
extern const struct snib__facts snib__redis_facts; /* of each form of its URL */

/* Opens the same engine over another transport: the seam of the simulator and the tests. The
 * transport outlives the engine. */
int snib__redis_open_with(struct snib__engine **ret, const struct snib__engine_config *config,
                          const struct snib__transport *transport, void *transport_arg, snib__ns now,
                          struct snib_error *err);

#endif
