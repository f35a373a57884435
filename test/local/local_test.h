/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_LOCAL_TEST_H
#define SNIB_TEST_LOCAL_TEST_H

/* What the tests of the local engine share. */

#include "proc.h"
#include "pump.h"
#include "tmp.h"
#include "wait.h"
#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* local:DIR, in memory that lives until the next call. */
const char *url_of(const char *dir, const char *options);

struct snib__reply acquire(struct pump *p, const char *name, struct snib__id id, int64_t lease_ms);
struct snib__reply release(struct pump *p, const char *name, struct snib__id id);
/* Acquires, waiting in the queue for as long as it takes: the token. Asks again every two seconds,
 * and counts that: a wake-up was lost. */
extern int unwoken;
int64_t acquire_wait(struct pump *p, const char *name, struct snib__id id, int64_t lease_ms);

/* Opens and says how that ended; the text is in *err. Closes what did open. */
int try_open(const char *url, unsigned number, struct snib_error *err);

/* Runs SQL on the database of a directory in a process of its own, as the stock shell would: no
 * second SQLite handle in this one. */
void run_sql(const char *dir, const char *sql);
/* The first column of the first row as a number. */
int64_t ask_sql(const char *dir, const char *sql);

#endif
