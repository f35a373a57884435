/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_SESSION_H
#define SNIB_CLI_SESSION_H

/*
 * What every command needs: a client made from the options, the signals as a descriptor, a poll
 * that includes the client, a clock. The client owns no thread of its own (SNIB_THREADS_NONE): the
 * command's one loop drives it.
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
        int64_t max_hold_ms;          /* for the target's locks; 0: none */
        int64_t opening_ms;           /* what opening took of the wait's limit */
        bool absent[SNIB__TEXTS_MAX]; /* of --red: this one could not be opened, which was told */
        bool leaving;                 /* the process ends, and waits for nobody: see snib__session_leave() */
};

/* Opens the client, or those of --red: 0, or an exit code after a message. `label` may be NULL. */
int snib__session_open(struct session *s, const struct options *o, const char *label);

/* Tells that one of --red cannot be reached, and why; the others are asked on. */
void snib__session_say_absent(const snib_client *client, const char *why);

/* Frees clients and target; copes with any half-made session. Waits for what is still held to be
 * released. */
void snib__session_close(struct session *s);

/* Drives the clients until a callback made *flag what is wanted, or until `until_ns` of
 * snib__clock_boot(). False: a client cannot go on. */
bool snib__session_until(struct session *s, const bool *flag, bool wanted, int64_t until_ns);

/* From now on nothing is worth waiting for: what has been asked for is sent, and the close that
 * follows leaves the clients as they are to the end of the process. */
void snib__session_leave(struct session *s);

/* What is left of a limit of wait_ms that began with the opening: at least 1, so that everyone has
 * one try; 0 and SNIB_FOREVER as they are. The first time; later waits have all of it. */
int64_t snib__session_left_ms(struct session *s, int64_t wait_ms);

/* What a call that is not waited for was answered: the argument of its callback. It may come as
 * late as the session's end, so it is static. */
struct answer {
        bool done;
        int result;
        int64_t value;
        struct snib_lock_info info;
        struct snib_error err;
};
void snib__answer_value(void *arg, int result, int64_t value, const struct snib_error *err);
void snib__answer_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err);

/* Drives the clients until the answer is there, or until `until_ns`: its result, and a->err if that
 * is negative. `started` is what the call answered that is to give it. */
int snib__session_answer(struct session *s, struct answer *a, int started, int64_t until_ns);

/* The same of a question before the wait: it may take what is left of the wait's limit, and what it
 * takes counts as opening. A try and a wait for ever leave it to the engine's time-out. If nothing
 * is answered by then (a->done is not set), the wait is begun all the same: what is left of it is a
 * moment, and it knows why. */
int snib__session_ask(struct session *s, struct answer *a, int started);

/* SNIB_URL for a command that runs under the session's hold; NULL: it stays as it was inherited. */
const char *snib__session_child_url(const struct session *s);

/* Prints the error and answers the exit code. `what` names the argument it is about, or is NULL. */
int snib__session_fail(const struct session *s, int code, const struct snib_error *err, const char *what);

/* Checks what of the options can be wrong without asking an engine: names, kinds, lease, lengths. 0
 * or an exit code. `name` NULL: the names are --key options. */
int snib__session_check(const struct options *o, const char *name);

/* Waits until one of `fds` or a client has something, at most timeout_ms (-1: no limit). Does not
 * process. */
void snib__session_poll(const struct session *s, struct pollfd *fds, int count, int64_t timeout_ms);

/* Lets every client do what is due: 0, or the error of the only one that cannot go on. One of
 * several may fail. */
int snib__session_process(const struct session *s);

/* From now on the signals the command cares about come out of the answered descriptor (read struct
 * signalfd_siginfo); ret_old is the mask as it was. Those that were ignored at start (nohup) stay
 * ignored. */
int snib__signals_open(sigset_t *ret_old);

/* The next signal number from the descriptor, 0 if there is none. */
int snib__signals_next(int fd);

/* Nanoseconds of the clock that counts suspend; milliseconds of the wall clock. */
int64_t snib__clock_boot(void);
int64_t snib__clock_wall_ms(void);

#endif
