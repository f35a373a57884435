/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two kinds of byte locks. Both are open-file-description locks: they belong to a descriptor (and its copies in
 * forked children, which close them), not to a process, and the kernel drops them on any death.
 *
 * - File "gate": byte 0 is held around each write transaction. SQLite's own locks then never conflict, and its busy
 * handler, which sleeps, never runs. The holder locks a range that begins at byte 0 and is as long as the number of its
 * liveness byte + 1: everybody conflicts on byte 0, and the kernel's answer to "who?" carries the number, for no extra
 * work at all.
 * - File "live": byte N is held by a client for its whole life.
 */

#include "engine/local/store.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct flock range(short type, int64_t start, int64_t length)
{
        return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

bool snib__gate_try(int fd, int64_t slot)
{
        struct flock l = range(F_WRLCK, 0, slot + 1);

        return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

bool snib__gate_wait(int fd, int64_t slot)
{
        struct flock l = range(F_WRLCK, 0, slot + 1);
        int r;

        do
                r = fcntl(fd, F_OFD_SETLKW, &l);
        while (r < 0 && errno == EINTR);
        return r == 0;
}

void snib__gate_leave(int fd)
{
        struct flock l = range(F_UNLCK, 0, 0);

        (void)fcntl(fd, F_OFD_SETLK, &l);
}

bool snib__live_take(int fd, int64_t slot)
{
        struct flock l = range(F_WRLCK, slot, 1);

        return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

static bool held(int fd, int64_t start, int64_t length)
{
        struct flock l = range(F_WRLCK, start, length);

        /* When the kernel does not say, nobody is declared dead. */
        return fcntl(fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
}

bool snib__live_test(const struct snib__store *s, int64_t slot)
{
        return slot < 0 || held(s->live_fd, slot, 1);
}

bool snib__live_any(const struct snib__store *s)
{
        return held(s->live_fd, 0, 0);
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

static bool gate_client(struct snib__store *s, struct snib__peer_row *ret)
{
        struct flock l = range(F_WRLCK, 0, 1);
        bool found = false;

        if (fcntl(s->gate_fd, F_OFD_GETLK, &l) < 0 || l.l_type == F_UNLCK || l.l_len < 1)
                return false;
        if (pthread_mutex_trylock(&s->lock) != 0)
                return false;
        if (s->db)
                found = snib__rows_client_by_slot(s, l.l_len - 1, ret) == SQLITE_ROW;
        (void)pthread_mutex_unlock(&s->lock);
        return found;
}

void snib__gate_blame(struct snib__store *s, int64_t timeout_ms, char *text, size_t size)
{
        struct snib__peer_row who;
        char state;

        if (!gate_client(s, &who)) {
                snprintf(
                    text, size,
                    "the gate of %s was not free within %lld ms: a process that uses it is stopped or the disk hangs",
                    s->place.path, (long long)timeout_ms);
                return;
        }
        state = who.pid_namespace == s->pid_namespace ? process_state(who.pid) : 0;
        if (state == 'T' || state == 't')
                snprintf(text, size,
                         "process %lld (%s) on %s is stopped and holds the gate of %s since more than %lld ms: kill "
                         "-CONT %lld, or end it",
                         (long long)who.pid, who.label, who.host, s->place.path, (long long)timeout_ms,
                         (long long)who.pid);
        else
                snprintf(text, size,
                         "process %lld (%s) on %s holds the gate of %s since more than %lld ms: see what it does "
                         "(stopped? slow disk?), or end it",
                         (long long)who.pid, who.label, who.host, s->place.path, (long long)timeout_ms);
}
