/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_ERROR_H
#define SNIB_BASE_ERROR_H

/*
 * Filling a caller's struct snib_error. The texts follow one form: what was wrong, with which
 * argument, then what to do.
 */

#include <snib/error.h>

/* Fills *err, if it is not NULL, as far as its `size` reaches, and answers `code`. Truncates at a
 * character boundary; bytes that are not printable ASCII or valid UTF-8 come out as '?', so that no
 * argument can break a terminal. */
__attribute__((format(printf, 3, 4))) int snib__error(struct snib_error *err, int code, const char *format, ...);

/* The same with the engine's own code. */
__attribute__((format(printf, 4, 5))) int snib__error_engine(struct snib_error *err, int code, int engine_code,
                                                             const char *format, ...);

/* "system call: what: reason" with errno's number as engine code. */
int snib__error_errno(struct snib_error *err, int code, int number, const char *what);

/*
 * Copies `length` bytes of `text`, as many as fit, with a NUL after them, so that they can be
 * shown: what is not printable ASCII or valid UTF-8, and what would steer a terminal or turn the
 * direction of writing, comes out as '?'. Cuts at a character boundary. size > 0.
 */
void snib__text_clean(char *ret, size_t size, const char *text, size_t length);

#endif
