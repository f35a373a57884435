/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_MEM_H
#define SNIB_ENGINE_MEM_H

/*
 * The mem: engine, the model inside this process: `mem:` and `mem:NAME` are namespaces that all
 * clients of the process share. Not a store: a namespace ends with its last client, and a client's
 * holds with the client. Thread class of engine/engine.h.
 */

#include "engine/engine.h"

extern const struct snib__engine_ops snib__mem_engine;

#endif
