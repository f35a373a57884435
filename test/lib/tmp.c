/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Directories of a test program, removed at its end: by the process that made them, not by its
 * children. Main thread only.
 */

#include "tmp.h"
#include "wait.h"
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRS_MAX 256

static char *dirs[DIRS_MAX];
static int count;
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
        (void)remove(path); /* and go on: as much as can be removed */
        return 0;
}

static void remove_all(void)
{
        if (getpid() != owner)
                return;
        for (int i = 0; i < count; i++) {
                (void)nftw(dirs[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
                free(dirs[i]);
        }
        count = 0;
}

const char *tmp_dir(void)
{
        const char *tmp = getenv("TMPDIR");
        char path[128];

        if (count == DIRS_MAX)
                bail("tmp_dir: more than %d directories", DIRS_MAX);
        if (!owner) {
                owner = getpid();
                atexit(remove_all);
        }
        snprintf(path, sizeof(path), "%s/snib-test-XXXXXX", tmp && strlen(tmp) < 100 ? tmp : "/tmp");
        if (!mkdtemp(path) || !(dirs[count] = strdup(path)))
                bail("tmp_dir: %s: %s", path, strerror(errno));
        return dirs[count++];
}

const char *tmp_path(const char *name)
{
        const char *dir = tmp_dir();
        char path[256];

        if (count == DIRS_MAX)
                bail("tmp_path: more than %d directories", DIRS_MAX);
        snprintf(path, sizeof(path), "%s/%s", dir, name);
        if (!(dirs[count] = strdup(path)))
                bail("tmp_path: out of memory");
        return dirs[count++];
}
