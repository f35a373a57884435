/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_MEM_H
#define SNIB_ENGINE_MEM_H

#include "engine/engine.h"

extern const struct snib__engine_ops snib__mem_engine;

#endif
