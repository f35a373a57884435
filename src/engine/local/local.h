/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_LOCAL_H
#define SNIB_ENGINE_LOCAL_H

#include "engine/engine.h"

extern const struct snib__engine_ops snib__local_engine;

#endif
