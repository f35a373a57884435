/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib try: `snib run` that never waits. Not a second way to run: the same function with another
 * limit.
 */

#include "cmd.h"
#include "run.h"

int snib__cmd_try(const struct options *o, int argc, char **argv)
{
        return snib__run(snib__opt_command("try"), o, 0, argc, argv);
}
