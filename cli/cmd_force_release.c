/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib force-release: takes a lock away from whoever holds it. Asks on a terminal, wants --yes elsewhere.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include "waiting.h"
#include <string.h>
#include <unistd.h>

/* 1 yes, 0 no. */
static int confirmed(const char *safe, const struct snib_lock_info *info)
{
        char holder[SNIB__HOLDER_MAX];
        char answer[16] = "";

        fprintf(stderr,
                "%s is held by %s. Whoever works under it may go on for a moment after it is taken away.\n"
                "Take it away? [y/N] ",
                safe, snib__holder_text(info, holder));
        fflush(stderr);
        return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void tell(const char *name, bool taken, const struct snib_lock_info *before)
{
        char safe[SNIB__SAFE_MAX];
        char holder[SNIB__HOLDER_MAX];
        struct json j;

        if (snib__out_mode_now().json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__json_bool(&j, "released", taken);
                snib__json_end(&j, stdout);
                return;
        }
        if (snib__out_mode_now().quiet)
                return;
        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        if (taken)
                printf("%s taken away from %s\n", safe, snib__holder_text(before, holder));
        else
                printf("%s is free\n", safe);
}

static int force(struct session *s, const struct options *o, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        char safe[SNIB__SAFE_MAX];
        int r = snib_lock_query(s->lock, &info, &err);

        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        if (r == 1 && !o->yes && !confirmed(safe, &info))
                return snib__out_fail(EXIT_BUSY, NULL, "%s was left as it is", safe);
        r = snib_lock_force_release(s->lock, &err);
        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        tell(name, r == 1, &info);
        return EXIT_OK;
}

int snib__cmd_force_release(const struct options *o, int argc, char **argv)
{
        struct session s;
        int exit;

        if (argc != 1)
                return snib__opt_wrong(snib__opt_command("force-release"), argc ? "one NAME only" : "NAME is missing");
        exit = snib__session_check(o, argv[0]);
        if (exit)
                return exit;
        if (!o->yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
                return snib__out_fail(EXIT_USAGE, NULL, "force-release: nobody to ask here; give --yes");
        exit = snib__session_open(&s, o, NULL);
        if (!exit)
                exit = snib__session_lock(&s, argv[0]);
        if (!exit)
                exit = force(&s, o, argv[0]);
        snib__session_close(&s);
        return exit;
}
