/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The test's side of the clock shim: makes the shared file and says to children that they use it.
 * See skew_shim.c.
 */

#include "skew.h"
#include "tmp.h"
#include "wait.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct skew {
        struct skew_file *file;
        char preload[512];
        char path[512];
        const char *env[4];
};

struct skew *skew_new(const char *shim)
{
        struct skew *k = calloc(1, sizeof(*k));
        const char *path = tmp_path("skew");
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (!k || !shim || fd < 0 || ftruncate(fd, sizeof(*k->file)) < 0)
                bail("skew: %s: %s", path, strerror(errno));
        k->file = mmap(NULL, sizeof(*k->file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (k->file == MAP_FAILED)
                bail("skew: mmap: %s", strerror(errno));
        close(fd);
        snprintf(k->preload, sizeof(k->preload), "LD_PRELOAD=%s", shim);
        snprintf(k->path, sizeof(k->path), "SNIB_SKEW_FILE=%s", path);
        k->env[0] = k->preload;
        k->env[1] = k->path;
        k->env[2] = "ASAN_OPTIONS=verify_asan_link_order=0";
        return k;
}

void skew_free(struct skew *k)
{
        if (!k)
                return;
        munmap(k->file, sizeof(*k->file));
        free(k);
}

void skew_begin(struct skew *k)
{
        if (setenv("LD_PRELOAD", strchr(k->preload, '=') + 1, 1) ||
            setenv("SNIB_SKEW_FILE", strchr(k->path, '=') + 1, 1))
                bail("skew: setenv: %s", strerror(errno));
}

void skew_end(struct skew *k)
{
        unsetenv("LD_PRELOAD");
        unsetenv("SNIB_SKEW_FILE");
}

const char *const *skew_env(struct skew *k)
{
        return k->env;
}

void skew_wall_ms(struct skew *k, int64_t ms)
{
        atomic_store(&k->file->wall_ns, ms * 1000000);
}

void skew_boot_ms(struct skew *k, int64_t ms)
{
        atomic_store(&k->file->boot_ns, ms * 1000000);
}
