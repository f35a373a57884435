/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_RUN_H
#define SNIB_CLI_RUN_H

/*
 * Running a command under a lock: what `run`, `try` and `elect` share.
 */

#include "opt.h"

/* What `run` and `try` do: acquire within wait_ms, run the command, release. Answers the exit
 * code. */
int snib__run(const struct command *c, const struct options *o, int64_t wait_ms, int argc, char **argv);

/* What `elect` does: campaign, run the command while leading, and again after a lost leadership. */
int snib__run_elected(const struct command *c, const struct options *o, int argc, char **argv);

#endif
