/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_LOCAL_H
#define SNIB_ENGINE_LOCAL_H

/*
 * The local: engine: locks of the processes of one machine, kept in an SQLite file that they share.
 * Not for network file systems. What it promises and how: doc/design/local.md. Its threads:
 * engine.h's contract, and a worker of its own that waits for other processes.
 */

#include "engine/engine.h"

extern const struct snib__engine_ops snib__local_engine;

#endif
