/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_REDIS_H
#define SNIB_ENGINE_REDIS_H

#include "engine/engine.h"

extern const struct snib__engine_ops snib__redis_engine;

#endif
