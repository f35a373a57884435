/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_SUPERVISOR_H
#define SNIB_CLI_SUPERVISOR_H

/*
 * The process between snib and the command. It starts the command, holds the newest deadline in
 * shared memory, and ends everything it started in time, whatever became of snib itself: stopped,
 * killed, or busy.
 */

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Why the command was stopped. */
enum stop_reason {
        STOP_NONE = 0,
        STOP_DEADLINE = 1, /* the lease would have ended */
        STOP_LOST = 2,     /* snib said: lost */
        STOP_MAX_HOLD = 3,
        STOP_ORPHANED = 4 /* snib is dead */
};

/* Messages on the socket, whole by its kind (SOCK_SEQPACKET). */
enum supervisor_what {
        SUPERVISOR_SIGNAL = 1,    /* to the supervisor: pass `value` on to the command */
        SUPERVISOR_STOP = 2,      /* to the supervisor: the hold is lost, stop now */
        SUPERVISOR_STARTED = 10,  /* from it: `value` is the command's pid */
        SUPERVISOR_NO_EXEC = 11,  /* `value` is the errno */
        SUPERVISOR_TOO_LATE = 12, /* not started: no time left */
        SUPERVISOR_STOPPED = 13,  /* the command stopped (job control) by signal `value` */
        SUPERVISOR_ENDED = 14,    /* the command ended; `value` is its wait status, `at_ns` when, `reason` why */
        SUPERVISOR_LEFT = 15,     /* it left `value` processes or more behind, which are waited for */
        SUPERVISOR_GONE = 16      /* nothing is left; the supervisor's last word */
};

struct supervisor_message {
        int what;
        int value;
        int reason;
        bool by_itself; /* ENDED: it was told to stop and did not listen */
        int64_t at_ns;
};

/* Everything the supervisor needs, made before it starts: it may neither allocate nor lock. */
struct supervisor_plan {
        char *const *argv;
        char *const *envp;
        const sigset_t *mask; /* of the command */
        int socket;           /* its end */
        int parent_fd;        /* pidfd of snib */
        int terminal;         /* to be given to the command, or -1 */
        int kill_signal;
        bool leave_rest; /* --close: what the command left behind runs on */
        int64_t grace_ns;
        int64_t margin_ns;
        int64_t max_at_ns;            /* INT64_MAX: none */
        _Atomic int64_t *deadline_ns; /* shared memory; CLOCK_BOOTTIME */
};

/* Starts the supervisor: its pid, or -1 with errno. It shares the descriptor table with its parent:
 * what keeps the lock alive on one machine is a descriptor, and so stays until the supervisor is
 * done even if snib is killed. */
pid_t snib__supervisor_start(struct supervisor_plan *plan);

/* SIGKILL (or another signal) to the group and to all direct children of this process. Only
 * async-signal-safe calls. */
void snib__supervisor_kill(pid_t group, int signal);

#endif
