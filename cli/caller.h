/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_CALLER_H
#define SNIB_CLI_CALLER_H

/*
 * For which process `snib acquire` holds a lock if no option says so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc tells of a process. */
struct process {
        pid_t pid;
        pid_t parent;
        bool forked;    /* a copy of its parent that never became another program */
        uint64_t start; /* when it began: pid and start name it for ever */
        char name[64];
};

/* False if there is no such process, or it is not to be seen. */
bool snib__process_read(pid_t pid, struct process *ret);

/* The process to hold for, `parent` being the parent of `snib acquire`: a pidfd, and *ret is the
 * process; or -1, and *ret is the one that made it impossible to tell (pid 0: it is not to be
 * seen). */
int snib__caller_find(pid_t parent, struct process *ret);

#endif
