/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The gate: file "gate", locked as a whole by flock(2) around each write transaction. SQLite's own
 * locks then never conflict, and its busy handler, which sleeps, never runs. The lock belongs to an
 * open file description (and its copies in forked children, which close them), not to a process,
 * and the kernel drops it on any death. Who holds it, for an error text, is read in /proc/locks.
 * Stateless; any thread.
 */

#include "engine/local/store.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool snib__gate_try(int fd)
{
        return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool snib__gate_wait(int fd)
{
        int r;

        do
                r = flock(fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        return r == 0;
}

void snib__gate_leave(int fd)
{
        (void)flock(fd, LOCK_UN);
}

/* The state letter of a process of this PID namespace, 0 if it cannot be read. */
static char process_state(int64_t pid)
{
        char path[64], line[512];
        const char *end;
        size_t n;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
        f = fopen(path, "re");
        if (!f)
                return 0;
        n = fread(line, 1, sizeof(line) - 1, f);
        (void)fclose(f);
        line[n] = 0;
        end = strrchr(line, ')'); /* the command in brackets may hold anything */
        return end && end[1] == ' ' ? end[2] : 0;
}

/* The process that holds the gate; 0: none, one of another PID namespace, or the system does not
 * say. */
static long long gate_holder(const struct snib__store *s)
{
        char line[256];
        long long found = 0, pid;
        unsigned major_number, minor_number;
        unsigned long long inode;
        struct stat st;
        FILE *f;

        if (fstat(s->gate_fd, &st) < 0 || !(f = fopen("/proc/locks", "re")))
                return 0;
        while (!found && fgets(line, sizeof(line), f))
                if (sscanf(line, "%*[0-9]: FLOCK ADVISORY WRITE %lld %x:%x:%llu", &pid, &major_number, &minor_number,
                           &inode) == 4 &&
                    major_number == major(st.st_dev) && minor_number == minor(st.st_dev) && inode == st.st_ino)
                        found = pid;
        (void)fclose(f);
        return found > 0 ? found : 0;
}

void snib__gate_blame(const struct snib__store *s, int64_t timeout_ms, char *text, size_t size)
{
        long long pid = gate_holder(s);
        char state = pid ? process_state(pid) : 0;

        if (!pid)
                snprintf(text, size,
                         "the gate of %s was not free within %lld ms: a process that uses it is stopped (in another "
                         "container?), or its disk hangs",
                         s->place.path, (long long)timeout_ms);
        else if (state == 'T' || state == 't')
                snprintf(text, size,
                         "process %lld is stopped and holds the gate of %s for more than %lld ms: kill -CONT %lld, or "
                         "end it",
                         pid, s->place.path, (long long)timeout_ms, pid);
        else
                snprintf(text, size,
                         "process %lld holds the gate of %s for more than %lld ms: see what it does (frozen? slow "
                         "disk?), or end it",
                         pid, s->place.path, (long long)timeout_ms);
}
