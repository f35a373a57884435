/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The default directory: default.h has the rule. Nothing here reads the environment. Not a cache:
 * chosen anew for each open. The effective user id counts, because it owns what is made. Blocks on
 * the file system and the user database; called by open() only.
 */

#include "engine/local/default.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PASSWD_MIN 1024
#define PASSWD_MAX (1 << 20)

void snib__candidates_of(struct snib__candidates *ret, uid_t uid, const char *home)
{
        const char *base = uid == 0 ? "/var/lib" : home, *below = uid == 0 ? "snib" : ".local/state/snib";
        int n = -1;

        memset(ret, 0, sizeof(*ret));
        ret->uid = uid;
        if (base && base[0] == '/')
                n = snprintf(ret->lasting, sizeof(ret->lasting), "%s/%s", base, below);
        if (n > 0 && n < (int)sizeof(ret->lasting))
                (void)snprintf(ret->base, sizeof(ret->base), "%s", base);
        if (uid == 0)
                (void)snprintf(ret->safe, sizeof(ret->safe), "/run/snib");
        else
                (void)snprintf(ret->safe, sizeof(ret->safe), "/var/tmp/snib-%lu", (unsigned long)uid);
}

static bool is_remote(const struct snib__candidates *c, const char *path)
{
        struct statfs fs;

        if (c->is_remote)
                return c->is_remote(path);
        return statfs(path, &fs) < 0 || snib__place_refused((long)fs.f_type);
}

static bool is_own_directory(const char *path, uid_t uid)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

/* Not by a link: it is where everybody may write. */
static bool safe_is_in_use(const struct snib__candidates *c)
{
        struct stat st;

        return lstat(c->safe, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == c->uid && !is_remote(c, c->safe);
}

/* Makes what is missing below the base, for the user alone: 0 or -errno. */
static int make_below(const struct snib__candidates *c)
{
        char path[sizeof(c->lasting)];
        struct stat st;
        char *slash;

        (void)snprintf(path, sizeof(path), "%s", c->lasting);
        for (slash = strchr(path + strlen(c->base) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                if (mkdir(path, 0700) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        if (mkdir(path, 0700) == 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        return lstat(path, &st) < 0 ? -errno : S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -ENOTDIR;
}

/* 1 it is the place, 0 it does not count, or a negative error. What may be otherwise in a moment (a
 * full disk) is no reason to go elsewhere. */
static int try_lasting(const struct snib__candidates *c, struct snib_error *err)
{
        int r;

        if (!c->base[0] || !is_own_directory(c->base, c->uid) || is_remote(c, c->base))
                return 0;
        r = make_below(c);
        if (r == -EACCES || r == -EPERM || r == -EROFS)
                return 0;
        if (r == -ENOTDIR)
                return snib__error_engine(err, SNIB_ECONFIG, ENOTDIR,
                                          "%s is meant to be the lock directory, but a file is in its place or on the "
                                          "way to it: remove it, or name another directory with local:/dir",
                                          c->lasting);
        if (r < 0)
                return snib__error_engine(err, SNIB_ESYSTEM, -r,
                                          "cannot make the lock directory %s: %s; name another with local:/dir",
                                          c->lasting, strerror(-r));
        return !is_remote(c, c->lasting);
}

static int take_safe(const struct snib__candidates *c, struct snib_error *err)
{
        struct stat st;

        if (mkdir(c->safe, 0700) < 0 && errno != EEXIST)
                return snib__error_engine(err, SNIB_ECONFIG, errno,
                                          "local: has no directory of its own for user %lu: %s%scannot make %s (%s); "
                                          "name one with local:/dir or in SNIB_URL",
                                          (unsigned long)c->uid, c->base[0] ? c->lasting : "",
                                          c->base[0] ? " cannot be used, and it " : "it ", c->safe, strerror(errno));
        if (lstat(c->safe, &st) < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, errno, c->safe);
        if (!S_ISDIR(st.st_mode))
                return snib__error(err, SNIB_ECONFIG,
                                   "%s is meant to be the lock directory, but it is none: remove it, or name another "
                                   "with local:/dir",
                                   c->safe);
        if (st.st_uid != c->uid)
                return snib__error(err, SNIB_EPERM,
                                   "%s is meant to be the lock directory of user %lu, but user %lu made it: have it "
                                   "removed, or name another with local:/dir",
                                   c->safe, (unsigned long)c->uid, (unsigned long)st.st_uid);
        return 0;
}

int snib__candidates_choose(const struct snib__candidates *c, char ret_path[SNIB__PLACE_PATH_MAX + 1],
                            struct snib_error *err)
{
        int r = safe_is_in_use(c) ? 0 : try_lasting(c, err);
        const char *path = r > 0 ? c->lasting : c->safe;

        if (r == 0)
                r = take_safe(c, err);
        if (r < 0)
                return r;
        (void)snprintf(ret_path, SNIB__PLACE_PATH_MAX + 1, "%s", path);
        return 0;
}

/* The home of a user: 1 and *ret_home, to be freed; 0 if the user database does not know the user;
 * or a negative error. A database that does not answer is no answer: the place would be another
 * one when it does. */
static int home_of(uid_t uid, char **ret_home, struct snib_error *err)
{
        int r = ERANGE;

        for (size_t size = PASSWD_MIN; r == ERANGE && size <= PASSWD_MAX; size *= 4) {
                _cleanup_free_ char *buffer = snib__alloc(size);
                struct passwd entry, *found = NULL;

                if (!buffer)
                        return snib__error(err, SNIB_ENOMEM, "no memory for an entry of the user database");
                r = getpwuid_r(uid, &entry, buffer, size, &found);
                if (r == 0 && found) {
                        *ret_home = snib__copy(entry.pw_dir, strlen(entry.pw_dir));
                        return *ret_home ? 1 : snib__error(err, SNIB_ENOMEM, "no memory for a path");
                }
        }
        if (r == 0 || r == ENOENT || r == ESRCH || r == EBADF || r == EPERM) /* as getpwuid(3) has it */
                return 0;
        return snib__error_engine(err, SNIB_ESYSTEM, r,
                                  "local: has to know the home of user %lu, and the user database does not answer: %s; "
                                  "name a directory with local:/dir or in SNIB_URL",
                                  (unsigned long)uid, strerror(r));
}

int snib__default_path(char ret_path[SNIB__PLACE_PATH_MAX + 1], struct snib_error *err)
{
        struct snib__candidates c;
        _cleanup_free_ char *home = NULL;
        uid_t uid = geteuid();
        int r = uid == 0 ? 0 : home_of(uid, &home, err); /* root's does not depend on it */

        if (r < 0)
                return r;
        snib__candidates_of(&c, uid, home);
        return snib__candidates_choose(&c, ret_path, err);
}
