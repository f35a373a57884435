/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_MEMBERS_H
#define SNIB_CLI_MEMBERS_H

/*
 * The servers of --red while a lock of theirs is waited for: each is asked once a second who holds
 * it there, and who does not answer is named. The struct must live until the session is closed.
 */

#include "session.h"

struct member {
        struct members *all;
        bool asking;
        bool absent; /* it did not answer when it was asked last */
        bool said;   /* that was told */
        int64_t asked_ns;
        char why[SNIB_ERROR_TEXT_MAX];
};

struct members {
        struct session *session; /* NULL: there are none */
        snib_info_callback *told;
        void *arg;
        bool asking; /* some of them */
        struct member member[SNIB__TEXTS_MAX];
};

/* `told` hears what each answers, with `arg`; never an error. */
void snib__members_begin(struct members *m, struct session *s, snib_info_callback *told, void *arg);

/* Asks those that are not being asked. Who has kept an earlier question for so long is absent. */
void snib__members_ask(struct members *m, int64_t patience_ns);

/* Whether somebody's absence is to be told; tells it. */
bool snib__members_news(const struct members *m);
void snib__members_say(struct members *m);

/* Asks all once more, drives the session until all have answered, or until `until_ns`, and writes
 * who has not: "; no answer from A, B", or nothing. Answers `ret`. */
const char *snib__members_absent(struct members *m, int64_t until_ns, char *ret, size_t size);

#endif
