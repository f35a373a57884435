/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_EXIT_H
#define SNIB_CLI_EXIT_H

/*
 * The exit codes of the command. They are interface: scripts depend on them (doc/design/cli.md).
 */

#include <stdbool.h>

enum exit_code {
        EXIT_OK = 0,
        EXIT_NOTHING = 1,       /* the answer of show and elect --leader: nobody holds it, nothing is there */
        EXIT_USAGE = 64,        /* wrong option or argument; nothing was done */
        EXIT_KIND = 65,         /* what stands under the name is another kind of thing; nothing was done */
        EXIT_UNREACHABLE = 69,  /* the engine cannot be reached, or is not ready */
        EXIT_BUSY = 75,         /* not acquired; -E changes it */
        EXIT_PERMISSION = 77,   /* the engine or the system said no */
        EXIT_CONFIG = 78,       /* SNIB_URL is not valid, or the engine cannot work in this place */
        EXIT_LOST = 120,        /* the lock was lost and the command stopped */
        EXIT_LOST_AFTER = 121,  /* the lock was lost, the command ended by itself: its result may be unsafe */
        EXIT_UNKNOWN = 122,     /* the engine did not say whether we hold the lock */
        EXIT_MAX_HOLD = 124,    /* --max-hold reached, the command was stopped */
        EXIT_FAILURE_OWN = 125, /* anything else that went wrong in snib itself */
        EXIT_NOT_EXECUTABLE = 126,
        EXIT_NOT_FOUND = 127,
        EXIT_SIGNAL = 128 /* + N */
};

/* The exit code for a negative result of the library. `from_environment`: the URL came from
 * SNIB_URL, not from an option. */
int snib__exit_of(int code, bool from_environment);

#endif
