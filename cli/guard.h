/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_GUARD_H
#define SNIB_CLI_GUARD_H

/*
 * The guardian of a two-step hold: a process that keeps a grant while another process lives, and
 * listens on a socket for `snib renew` and `snib release`.
 *
 * A grant's name here ("SNIB_GRANT") is a random file name in a directory that only its user may
 * enter. It is no secret: whoever may enter the directory may list it.
 */

#include "session.h"

#define SNIB__GUARD_ID 33 /* 32 hex digits and the NUL */

/* The directory of the sockets: a descriptor, made if it was missing, refused unless it is ours
 * alone; or -1 and ret_exit is the exit code after a message. */
int snib__guard_directory(int *ret_exit);

/* A socket listening under a new random name: the descriptor, or -1 with errno. */
int snib__guard_listen(int directory, char ret_id[SNIB__GUARD_ID]);

struct guard {
        struct session *session;
        struct held *held;
        int signals;
        int listener;
        int directory;
        const char *id;
        int process; /* pidfd of the process to outlive */
        int caller;  /* socket of the snib acquire that prints the grant; -1 once it did */
};

/* Keeps the grant until it is asked for, the process ends, a signal comes, or the caller ends
 * without a word; releases; removes the socket. */
void snib__guard_keep(struct guard *g);

/* What a guardian answered. */
struct guard_answer {
        int exit; /* EXIT_OK or another exit code */
        int64_t token;
        int64_t left_ms;
        char text[SNIB_ERROR_TEXT_MAX]; /* unless EXIT_OK */
};

/* Asks the guardian of a grant: "renew", "release". 0, or an exit code after a message. */
int snib__guard_ask(const char *id, const char *verb, struct guard_answer *ret);

/* The grant a command is about: its argument or $SNIB_GRANT. NULL after a message. */
const char *snib__guard_argument(const struct command *c, int argc, char **argv);

#endif
