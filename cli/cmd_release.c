/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib release: the second of two steps. It asks the guardian (guard.c), which does it; this
 * process never opens a client. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "guard.h"
#include "out.h"

int snib__cmd_release(const struct options *o, int argc, char **argv)
{
        struct guard_answer a = {0};
        struct json j;
        const char *id = snib__guard_argument(snib__opt_command("release"), argc, argv);

        if (!id)
                return EXIT_USAGE;
        int exit = snib__guard_ask(id, "release", &a);
        if (exit == EXIT_OK && o->json) {
                snib__json_begin(&j);
                snib__json_text(&j, "grant", id);
                snib__json_bool(&j, "released", true);
                snib__json_end(&j, stdout);
        } else if (exit == EXIT_OK && o->verbose) {
                snib__out_note("released", "released");
        }
        return exit;
}
