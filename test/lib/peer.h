/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_PEER_H
#define SNIB_TEST_PEER_H

/*
 * A server that says what the test wants: it reads commands and asks a function of the test for the
 * bytes of each answer. For servers that are hostile, broken or not Redis at all. It runs in a
 * thread of the test.
 */

#include <stdbool.h>
#include <stddef.h>

struct peer;
struct peer_connection;

/* One command. Arguments end with a NUL after their length. Runs in the peer's thread. */
typedef void peer_answer(struct peer_connection *c, int argc, char **argv, void *arg);

/* Listens on a free port of 127.0.0.1. */
struct peer *peer_start(peer_answer *answer, void *arg);
/* Its thread never sleeps: an answer is not late because the thread had to be woken. */
struct peer *peer_start_looking(peer_answer *answer, void *arg);
void peer_free(struct peer *p);
const char *peer_url(const struct peer *p);

/* For the function. Bytes may be anything; they go out as far as the client takes them within a
 * second. */
void peer_send(struct peer_connection *c, const void *bytes, size_t size);
void peer_text(struct peer_connection *c, const char *text);
void peer_close(struct peer_connection *c);

/* What a healthy server would answer to anything but a script: handshake, PING, SUBSCRIBE, ...
 * False: it was a script (EVAL, EVALSHA), nothing was sent. */
bool peer_polite(struct peer_connection *c, int argc, char **argv);

int peer_accepted(struct peer *p); /* connections, ever */
int peer_commands(struct peer *p); /* commands, ever */

#endif
