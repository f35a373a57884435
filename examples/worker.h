/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_EXAMPLES_WORKER_H
#define SNIB_EXAMPLES_WORKER_H

/*
 * What the examples of event loops do, whatever the loop is: a worker that works only while it
 * holds a lock. The lock is acquired without waiting, held over several turns of the loop, lost
 * once, acquired again and released. The loop's own file has the rest: it polls the client's
 * descriptor, calls snib_process(), and ticks.
 */

#include <snib/snib.h>

enum { WORKER_TICK_MS = 20 };

struct worker {
        snib_client *client; /* without threads: the loop drives it */
        snib_client *admin;  /* another client, with threads of its own, which takes the lock away once */
        snib_lock *lock, *taken_away;
        snib_grant *grant; /* NULL: not held */
        int ticks;         /* under the present grant */
        int losses, releases;
        void (*over)(void *arg); /* stops the loop */
        void *arg;
};

/* Opens the client and begins to acquire; `over` is called when all is done or nothing goes on. */
int worker_start(struct worker *w, const char *url, const char *name, void (*over)(void *arg), void *arg);

/* Does a piece of work if the lock is held. The loop calls it every WORKER_TICK_MS. */
void worker_tick(struct worker *w);

/* Does what is due at the client: its descriptor is readable, or its time has come. */
void worker_process(struct worker *w);

/* Frees it, and answers the exit status of the program. */
int worker_end(struct worker *w);

#endif
