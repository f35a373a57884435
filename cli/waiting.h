/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_WAITING_H
#define SNIB_CLI_WAITING_H

/*
 * Acquiring, with signals heard and with a line that says who is in the way. The struct must live
 * until the session is closed: answers to questions asked meanwhile may still come.
 */

#include "members.h"
#include "nest.h"
#include "session.h"

struct waiting {
        struct session *session;
        const char *name; /* as it is shown */
        int signals;      /* descriptor of snib__signals_open() */

        /* outcome */
        struct held held; /* empty unless acquired */
        int64_t waited_ms;

        /* inner */
        bool done;
        int result;
        struct snib_error err;
        bool nested; /* `within` is a hold of a process above: a wait would never end */
        struct nest_hold within;
        int interrupted; /* the signal that ended the wait, 0 if none */
        int64_t start_ns;
        int64_t next_look_ns;
        int64_t next_line_ns;
        bool looking; /* a query is under way */
        bool looked;  /* `info` is filled */
        bool shown;   /* something was said about the wait */
        bool painted; /* a line is on the terminal, to be removed */
        unsigned frame;
        int64_t info_ns; /* when it was filled */
        struct snib_lock_info info;
        struct snib_lock_info first;
        struct members members; /* of --red */
};

/* w->held is the caller's; or it is empty, and the answer is the exit code after a message (0 is
 * possible: -E 0). wait_ms as of snib_lock_acquire_async(). What is acquired is the session's
 * target. */
int snib__waiting_acquire(struct waiting *w, int64_t wait_ms);

/* Who holds, as text safe to print: "sleep (pid 8019)", "db2:backup[3121]". Answers `ret`. */
#define SNIB__HOLDER_MAX 1200
const char *snib__holder_text(const struct snib_lock_info *info, char *ret);

/* The fields of an info in JSON: held, holder, times. */
struct json;
void snib__holder_json(struct json *j, const struct snib_lock_info *info);

#endif
