/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_DEFAULT_H
#define SNIB_LOCAL_DEFAULT_H

/*
 * Which directory local: means when the URL names none. It depends on the user id alone, and never
 * on the environment: a login session, cron, `sudo -E` and `env -i` must meet in one place, or a
 * lock excludes nobody.
 *
 * There are two candidates:
 *
 *             lasting                    safe
 *   root      /var/lib/snib              /run/snib
 *   others    HOME/.local/state/snib     /var/tmp/snib-UID
 *
 * HOME is that of the user database. The lasting one counts if its base (/var/lib, HOME) is the
 * user's own and no network file system, and if it is there or can be made. The safe one is taken
 * where the lasting one does not count, and from then on always, as long as it exists: a home that
 * is mounted later does not part those who hold from those who come.
 */

#include "engine/local/place.h"

struct snib__candidates {
        uid_t uid;
        char base[SNIB__PLACE_PATH_MAX + 1];    /* empty: there is no lasting one */
        char lasting[SNIB__PLACE_PATH_MAX + 1]; /* below the base */
        char safe[SNIB__PLACE_PATH_MAX + 1];
        bool (*is_remote)(const char *path); /* NULL: what statfs(2) says; tests have no network to mount from */
};

/* The candidates of a user whose home is `home` (NULL: not in the user database). Pure. */
void snib__candidates_of(struct snib__candidates *ret, uid_t uid, const char *home);

/* Chooses among them and makes the directory if it is missing (0700): 0, or a negative error that
 * says what to do. */
int snib__candidates_choose(const struct snib__candidates *c, char ret_path[SNIB__PLACE_PATH_MAX + 1],
                            struct snib_error *err);

/* Both for the user whose rights this process has (the effective id). */
int snib__default_path(char ret_path[SNIB__PLACE_PATH_MAX + 1], struct snib_error *err);

#endif
