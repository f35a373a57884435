/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib version: of the command as it was compiled, and of the library it runs with, which may be
 * another.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include <snib/snib.h>

int snib__cmd_version(const struct options *o, int argc, char **argv)
{
        struct json j;

        (void)argv;
        if (argc > 0)
                return snib__opt_wrong(snib__opt_command("version"), "takes no argument");
        if (!o->json) {
                printf("snib %s (libsnib %s)\n", SNIB_VERSION, snib_version());
                return EXIT_OK;
        }
        snib__json_begin(&j);
        snib__json_text(&j, "version", SNIB_VERSION);
        snib__json_text(&j, "library", snib_version());
        snib__json_end(&j, stdout);
        return EXIT_OK;
}
