/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_NEST_H
#define SNIB_CLI_NEST_H

/*
 * A command that runs under a lock and asks for the same lock would wait for itself. SNIB_HELD in
 * the environment lists what is held by the processes above; the engine says whether it still is.
 */

#include "caller.h"
#include "session.h"

#define SNIB__NEST_VARIABLE "SNIB_HELD"

/* By what something is held for a process above. */
enum nest_by { NEST_RUN = 'r', NEST_RUN_CLOSE = 'o', NEST_ELECT = 'e', NEST_ACQUIRE = 'a' };

/* One hold of a process above. */
struct nest_hold {
        char by;         /* enum nest_by */
        char kind;       /* '-' a plain lock, 's', 'x', 'p' permits, 'e' an election */
        pid_t pid;       /* the snib that runs the command, or the process that snib acquire held it for */
        uint64_t start;  /* see struct process */
        uint64_t engine; /* a digest of the URL */
        int64_t count;   /* permits; else 1 */
        int64_t token;
        char owner[SNIB_OWNER_MAX];
        char name[SNIB_NAME_MAX + 1];
};

/* Adds what the session's target holds, for `pid`, to the list in the environment: the new value of
 * the variable, to be freed; NULL: no memory. It has no character that a shell minds between
 * single quotes. */
char *snib__nest_list(const struct session *s, const struct held *held, char by, pid_t pid);

/* True and *ret is a hold of a process above that the session's target would wait for, and that the
 * engine confirms. Blocks at most a time-out for each. */
bool snib__nest_find(struct session *s, struct nest_hold *ret);

/* True if all that the target wants is covered by holds of snib run above: *ret is the first of
 * them, *ret_left_ms its lease. Call it after snib__nest_find(). */
bool snib__nest_covers(struct session *s, struct nest_hold *ret, int64_t *ret_left_ms);

/* "by snib run (pid 12), of which this is a part" */
#define SNIB__NEST_TEXT_MAX 128
const char *snib__nest_text(const struct nest_hold *h, char *ret);

#endif
