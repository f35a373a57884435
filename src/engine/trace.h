/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_TRACE_H
#define SNIB_ENGINE_TRACE_H

/*
 * A decorator of any engine: writes into a file, in a line each, what is asked of it and what it
 * tells. For debugging; the option trace=FILE of every URL.
 */

#include "engine/engine.h"

/* Puts it around *e. Lines are written at the end of the file, which is made if there is none. On
 * an error *e is as it was. */
int snib__trace_around(struct snib__engine **e, const char *path, struct snib_error *err);

#endif
