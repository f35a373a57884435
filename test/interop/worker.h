/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_INTEROP_WORKER_H
#define SNIB_TEST_INTEROP_WORKER_H

/*
 * The C side of the interop suite: lines in, lines out (worker.c), and what they do with the public
 * interface (verbs.c). workers.py describes the lines.
 */

#include <snib/snib.h>

#define WORDS_MAX 64
#define ANSWER_MAX 4096
#define SERVERS_MAX 5

struct actor;

/* Executes one request of an actor: words[0] is the verb. Writes the answer. On the actor's thread
 * only. */
void execute(struct actor *actor, char **words, int count, char answer[ANSWER_MAX]);

/* What an actor has in its hands. Its own thread's alone. */
struct kept;
struct actor {
        struct actor *next;
        snib_client *client;
        snib_client *const *clients; /* of all servers, NULL at the end; the first is `client` */
        char *name;                  /* also its key as an owner */
        struct kept *kept;           /* handles and grants */
        struct inbox *inbox;
};

#endif
