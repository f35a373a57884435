/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_CMD_H
#define SNIB_CLI_CMD_H

/*
 * One function a command, as struct command wants them: given what follows the options, it answers
 * the exit code.
 */

#include "opt.h"

int snib__cmd_run(const struct options *o, int argc, char **argv);
int snib__cmd_try(const struct options *o, int argc, char **argv);
int snib__cmd_acquire(const struct options *o, int argc, char **argv);
int snib__cmd_renew(const struct options *o, int argc, char **argv);
int snib__cmd_release(const struct options *o, int argc, char **argv);
int snib__cmd_sem(const struct options *o, int argc, char **argv);
int snib__cmd_latch(const struct options *o, int argc, char **argv);
int snib__cmd_elect(const struct options *o, int argc, char **argv);
int snib__cmd_register(const struct options *o, int argc, char **argv);
int snib__cmd_ls(const struct options *o, int argc, char **argv);
int snib__cmd_show(const struct options *o, int argc, char **argv);
int snib__cmd_force_release(const struct options *o, int argc, char **argv);
int snib__cmd_engines(const struct options *o, int argc, char **argv);
int snib__cmd_demo(const struct options *o, int argc, char **argv);
int snib__cmd_version(const struct options *o, int argc, char **argv);
int snib__cmd_completion(const struct options *o, int argc, char **argv);
int snib__cmd_help(const struct options *o, int argc, char **argv);

#endif
