/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_CHILD_H
#define SNIB_CLI_CHILD_H

/*
 * Running the command under a grant: snib's side. See supervisor.h for the other.
 */

#include "session.h"
#include "supervisor.h"

struct child {
        struct session *session;
        struct held *held;
        const char *name; /* as SNIB_NAME */
        char **argv;      /* of the command */
        int signals;      /* descriptor */
        const sigset_t *mask;
        int64_t grace_ms;
        int64_t margin_ms;

        /* outcome */
        int error;         /* errno of exec, 0 */
        bool asked_to_end; /* a signal that ends was passed on to the command */
        bool too_late;     /* not started: no time was left */
        bool supervisor_died;
        bool ended;
        bool by_itself; /* though it was told to stop */
        int status;     /* wait status */
        int reason;     /* enum stop_reason */
        int64_t ended_ns;
        int64_t deadline_ns; /* the last that was known */

        /* inner */
        pid_t supervisor;
        pid_t pid;
        int socket;
        int terminal; /* lent to the command, or -1 */
        bool told_lost;
        bool asked_to_stop; /* a SIGTSTP was passed on */
        bool gone;
        _Atomic int64_t *shared;
};

/* Runs the command to its end, keeping the grant alive: 0, or an exit code after a message if it
 * could not begin. */
int snib__child_run(struct child *c);

#endif
