/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_SESSION_H
#define SNIB_CLI_SESSION_H

/*
 * What every command needs: a client made from the options, the signals as a descriptor, a poll that includes the
 * client, a clock. The client owns no thread of its own (SNIB_THREADS_NONE): the command's one loop drives it.
 */

#include "opt.h"
#include "target.h"
#include <poll.h>
#include <signal.h>
#include <snib/snib.h>

struct session {
        snib_client *client; /* the first of them */
        snib_client *clients[SNIB__TEXTS_MAX];
        int client_count; /* one, or those of --red */
        struct target target;
        const struct options *options;
        bool url_from_environment;
        int64_t max_hold_ms; /* for the target's locks; 0: none */
};

/* Opens the client, or those of --red: 0, or an exit code after a message. `label` may be NULL. */
int snib__session_open(struct session *s, const struct options *o, const char *label);

/* Frees clients and target; copes with any half-made session. */
void snib__session_close(struct session *s);

/* Prints the error and answers the exit code. `what` names the argument it is about, or is NULL. */
int snib__session_fail(const struct session *s, int code, const struct snib_error *err, const char *what);

/* Checks what of the options can be wrong without asking an engine: names, kinds, lease, lengths. 0 or an exit code.
 * `name` NULL: the names are --key options. */
int snib__session_check(const struct options *o, const char *name);

/* Waits until one of `fds` or a client has something, at most timeout_ms (-1: no limit). Does not process. */
void snib__session_poll(const struct session *s, struct pollfd *fds, int count, int64_t timeout_ms);

/* Lets every client do what is due: 0, or the error of the only one that cannot go on. One of several may fail. */
int snib__session_process(const struct session *s);

/* From now on the signals the command cares about come out of the answered descriptor (read struct signalfd_siginfo);
 * *ret_old is the mask as it was. Those that were ignored at start (nohup) stay ignored. */
int snib__signals_open(sigset_t *ret_old);

/* The next signal number from the descriptor, 0 if there is none. */
int snib__signals_next(int fd);

/* Nanoseconds of the clock that counts suspend; milliseconds of the wall clock. */
int64_t snib__clock_boot(void);
int64_t snib__clock_wall_ms(void);

/* The URL with a password taken out, for the child and for display; "" if it does not fit. */
#define SNIB__URL_SHOWN_MAX 4096
void snib__url_without_password(const char *url, char *ret, size_t size);

#endif
