/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib help: the commands, or one command's options. Knows neither: both come from the tables in
 * main.c and opt.c.
 */

#include "cmd.h"
#include "exit.h"
#include <stdio.h>

int snib__cmd_help(const struct options *o, int argc, char **argv)
{
        (void)o;
        if (argc > 1)
                return snib__opt_wrong(snib__opt_command("help"), "one command only");
        if (argc == 1) {
                const struct command *c = snib__opt_command(argv[0]);
                if (!c)
                        return snib__opt_no_command(argv[0]);
                snib__opt_help(c);
                return EXIT_OK;
        }
        printf("usage: snib COMMAND [options] ...\n\nLocks by name, for the shell: on one machine, or on Redis for "
               "many.\n\n");
        for (const struct command *c = snib__commands; c->name; c++)
                printf("  %-14s %s\n", c->name, c->summary);
        printf("\n  snib run nightly -- ./report.sh         one at a time, wait for it\n"
               "  snib run -n nightly -- ./report.sh      or give up at once (exit 75)\n"
               "  snib run -u redis://cache1 job -- cmd   across machines\n\n"
               "snib COMMAND -h tells more. -j, -q, -v and -u URL may stand in front of COMMAND, too.\n");
        return EXIT_OK;
}
