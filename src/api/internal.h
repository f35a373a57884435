/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_API_INTERNAL_H
#define SNIB_API_INTERNAL_H

/*
 * What the files of api/ share: the checks of arguments. api/ checks, converts milliseconds to nanoseconds, refuses
 * inert handles, and calls the runtime; nothing else.
 */

#include "runtime/runtime.h"

/* Copies a caller's struct of options, which begins with its size, into ours of `known` bytes, which is zeroed first:
 * what both know. SNIB_EINVAL for a missing size, or for a longer struct that sets something this library does not
 * know. `what` names the argument. */
int snib__options_copy(void *ret, size_t known, const void *given, const char *what, struct snib_error *err);

/* Copies our struct of `known` bytes into the caller's, as much as both know. SNIB_EINVAL when its size is missing. */
int snib__result_copy(void *ret, const void *ours, size_t known, const char *what, struct snib_error *err);

/* Whether a caller's result struct says its size. */
int snib__result_check(const void *ret, const char *what, struct snib_error *err);

/* 0, or SNIB_ELEASE naming the argument, the value and the range. 0 ms means default. */
int snib__lease_check(int64_t lease_ms, const char *what, struct snib_error *err);

/* 0, or SNIB_EINVAL. */
int snib__patience_check(int64_t wait_ms, struct snib__patience *ret, struct snib_error *err);

/* SNIB_EINVAL: the argument is NULL. */
int snib__null(const char *what, struct snib_error *err);

/* 0, or SNIB_EFORK in a forked child. */
int snib__alive(const struct snib_client *c, struct snib_error *err);

#endif
