/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_VERBS_H
#define SNIB_CLI_VERBS_H

/*
 * What the commands about counters and values share: `snib NOUN VERB NAME [ARG...]`, a session
 * around it, one way to wait with signals heard, one way to answer.
 */

#include "session.h"

struct verb {
        const char *word; /* NULL ends a table */
        int least, most;  /* arguments after NAME */
        /* Answers the exit code. */
        int (*run)(struct session *s, const char *name, int argc, char **argv);
};

/* Those there are. */
extern const struct verb snib__sem_plain[], snib__sem_expiring[], snib__latch_verbs[], snib__register_verbs[];

/* The handle of a noun: made once the session is open (0 or an exit code after a message), freed
 * before it closes. */
struct verb_noun {
        int (*open)(struct session *s, const char *name);
        void (*close)(void);
};

/* Finds argv[0] in the table (ended by a NULL word), checks NAME and the number of arguments,
 * opens, runs, closes. */
int snib__verbs_run(const struct command *c, const struct verb *table, const struct verb_noun *noun,
                    const struct options *o, int argc, char **argv);

/* A result of the library that is not 0: prints nothing, or the error; the exit code. */
int snib__verb_exit(const struct session *s, int result, const struct snib_error *err);

/* Says why it was not done: "NAME" and the sentence, and in JSON the number `value` under `key`
 * (NULL: none). Answers the exit code for that. */
struct verb_fact {
        const char *key;
        int64_t value;
};
int snib__verb_no(const struct session *s, const char *name, struct verb_fact fact, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same of a wait, which was given up or was none (-n). */
int snib__verb_gave_up(const struct session *s, const char *name, struct verb_fact fact, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints a number (or an object with it under `key`). Answers EXIT_OK. */
int snib__verb_number(const struct session *s, const char *name, const char *key, int64_t value);

/* A wait under way; its address is the argument of snib__verb_done(). */
struct verb_wait {
        bool done;
        int result;
        struct snib_error err;
};
void snib__verb_done(void *arg, int result, const struct snib_error *err);

/* A question after a wait in vain, for the sentence that says why: as snib__session_answer(), but
 * hardly beyond now. */
int snib__verb_answer_soon(struct session *s, struct answer *a, int started);

/* A question after a wait that may last until `end_ns` (INT64_MAX: no limit): hardly beyond it. */
int snib__verb_answer_by(struct session *s, struct answer *a, int started, int64_t end_ns);

/* Drives the session until the wait is over; a signal calls `cancel(handle)` and becomes the exit
 * code, else it is as of snib__verb_exit(); 0 and w->result 0: not in time. `started` is what the
 * asynchronous call answered. */
int snib__verb_wait(struct session *s, struct verb_wait *w, int started, int (*cancel)(void *handle), void *handle);

#endif
