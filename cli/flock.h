/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_FLOCK_H
#define SNIB_CLI_FLOCK_H

/*
 * Lines written for flock(1) that mean nothing here: each is answered by the line to type.
 */

#include "opt.h"

/* 0, or EXIT_USAGE after a message. `argc`, `argv` are the arguments after the options. */
int snib__flock_check(const struct command *c, const struct options *o, int argc, char **argv);

/* STRING of "-c STRING", "--command STRING", "-cSTRING" or "--command=STRING" behind NAME: 1 and
 * *ret_string, 0 if the words are something else, or EXIT_USAGE after a message. */
int snib__flock_string(const struct command *c, int argc, char **argv, const char **ret_string);

#endif
