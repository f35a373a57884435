/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_VERBS_H
#define SNIB_CLI_VERBS_H

/*
 * What the commands about counters and values share: `snib NOUN VERB NAME [ARG...]`, a session around it, one way to
 * wait with signals heard, one way to answer.
 */

#include "session.h"

struct verb {
        const char *word;
        int least, most; /* arguments after NAME */
        /* Answers the exit code. */
        int (*run)(struct session *s, const char *name, int argc, char **argv);
};

/* The handle of a noun: made once the session is open (0 or an exit code after a message), freed before it closes. */
struct verb_noun {
        int (*open)(struct session *s, const char *name);
        void (*close)(void);
};

/* Finds argv[0] in the table (ended by a NULL word), checks NAME and the number of arguments, opens, runs, closes. */
int snib__verbs_run(const struct command *c, const struct verb *table, const struct verb_noun *noun,
                    const struct options *o, int argc, char **argv);

/* A result of the library that is 1 done, 0 not, negative an error: prints nothing, or the error; the exit code. */
int snib__verb_exit(const struct session *s, int result, const struct snib_error *err);

/* Prints a number (or an object with it under `key`), unless the result is not 1. Answers snib__verb_exit(). */
int snib__verb_number(const struct session *s, const char *name, const char *key, int result, int64_t value,
                      const struct snib_error *err);

/* A wait under way; its address is the argument of snib__verb_done(). */
struct verb_wait {
        bool done;
        int result;
        struct snib_error err;
};
void snib__verb_done(void *arg, int result, const struct snib_error *err);

/* Drives the session until the wait is over; a signal calls `cancel(handle)` and becomes the exit code, else it is as
 * of snib__verb_exit(). `started` is what the asynchronous call answered. */
int snib__verb_wait(struct session *s, struct verb_wait *w, int started, int (*cancel)(void *handle), void *handle);

#endif
