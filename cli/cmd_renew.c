/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib renew: starts the lease of a two-step hold again, and says whether it is still held. It asks
 * the guardian (guard.c); this process never opens a client. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "guard.h"
#include "out.h"

int snib__cmd_renew(const struct options *o, int argc, char **argv)
{
        struct guard_answer a = {0};
        char left[SNIB__DURATION_MAX];
        struct json j;
        const char *id = snib__guard_argument(snib__opt_command("renew"), argc, argv);

        if (!id)
                return EXIT_USAGE;
        int exit = snib__guard_ask(id, "renew", &a);
        if (exit == EXIT_OK && o->json) {
                snib__json_begin(&j);
                snib__json_text(&j, "grant", id);
                snib__json_int(&j, "token", a.token);
                snib__json_int(&j, "lease_left_ms", a.left_ms);
                snib__json_end(&j, stdout);
        } else if (exit == EXIT_OK && o->verbose) {
                snib__out_note("renewed", "renewed, %s left", snib__out_duration(a.left_ms, left));
        }
        return exit;
}
