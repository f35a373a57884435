/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_REDIS_SERVER_H
#define SNIB_TEST_REDIS_SERVER_H

/*
 * A private, real Redis for one test: own directory, own port or socket, gone with the test however
 * the test ends.
 *
 *     const char *why = redis_server_unavailable();
 *     if (why)
 *             skip(why);
 *     struct redis_server *s = redis_server_start(&(struct redis_server_options){.tcp = true});
 *     ... redis_server_url(s) ...
 *     redis_server_free(s);
 *
 * The binary is $SNIB_REDIS_SERVER, else redis-server or valkey-server in PATH, else
 * redis-check-rdb, which is the same program and becomes the server under the name redis-server.
 * Thread class: one thread at a time. The server dies with the *thread* that started it
 * (PR_SET_PDEATHSIG): start it on the main thread.
 */

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

struct redis_server;

struct redis_server_options {
        bool tcp;                /* listen on a free port of 127.0.0.1 besides the unix socket */
        const char *const *args; /* further command line, NULL-terminated: "--requirepass", "x", NULL */
};

/* NULL if a server can be started, else the reason why not, as static text. */
const char *redis_server_unavailable(void);
/* For a program that is nothing without a server: true if none can be started, after printing a
 * plan that skips all. */
bool redis_server_skips_all(void);

/* Starts a server and waits until it answers. Aborts the test program with a message if it does
 * not; options may be NULL. */
struct redis_server *redis_server_start(const struct redis_server_options *options);

/* Kills it, removes its directory. NULL is allowed. */
void redis_server_free(struct redis_server *s);

pid_t redis_server_pid(const struct redis_server *s);
int redis_server_port(const struct redis_server *s); /* 0 without tcp */
const char *redis_server_socket(const struct redis_server *s);
const char *redis_server_dir(const struct redis_server *s);
const char *redis_server_url(const struct redis_server *s); /* redis://127.0.0.1:port, or redis+unix:// without tcp */
const char *redis_server_unix_url(const struct redis_server *s); /* redis+unix://... */

void redis_server_kill(struct redis_server *s);   /* SIGKILL, and waits for its end */
void redis_server_stop(struct redis_server *s);   /* SIGTERM (saves if it is told to persist), and waits for its end */
void redis_server_pause(struct redis_server *s);  /* SIGSTOP, and waits until it is stopped */
void redis_server_resume(struct redis_server *s); /* SIGCONT */
void redis_server_restart(
    struct redis_server *s); /* after kill or stop: same port, socket, directory, arguments; waits until it answers */

/* Sends one command on an own blocking connection (hiredis format), NULL if it cannot be reached.
 * Freed with freeReplyObject(). The connection is made on first use and after a failure; it
 * authenticates with the password set by redis_server_auth(). */
redisReply *redis_server_do(struct redis_server *s, const char *format, ...);
/* The same for an integer reply, or for the number in a string reply; INT64_MIN if it is
 * neither. */
long long redis_server_int(struct redis_server *s, const char *format, ...);
void redis_server_auth(struct redis_server *s, const char *password);

#endif
