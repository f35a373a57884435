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

/* What a client leaves at its place in the file for those who cannot ask the database: it may be the very thing that is
 * blocked. */
#define CARD_SIZE 48

void snib__live_sign(int fd, int64_t slot, int64_t pid, int64_t pid_namespace)
{
        char card[CARD_SIZE + 1];

        snprintf(card, sizeof(card), "%20lld %20lld      \n", (long long)pid, (long long)pid_namespace);
        (void)!pwrite(fd, card, CARD_SIZE, slot * CARD_SIZE); /* without it an error is less precise, that is all */
}

static bool read_card(const struct snib__store *s, int64_t slot, long long *ret_pid, long long *ret_namespace)
{
        char card[CARD_SIZE + 1] = "";

        return slot < INT32_MAX && pread(s->live_fd, card, CARD_SIZE, slot * CARD_SIZE) == CARD_SIZE &&
               sscanf(card, "%lld %lld", ret_pid, ret_namespace) == 2 && *ret_pid > 0;
}

void snib__gate_blame(const struct snib__store *s, int64_t timeout_ms, char *text, size_t size)
{
        struct flock l = range(F_WRLCK, 0, 1);
        long long pid = 0, space = 0;
        char state;

        if (fcntl(s->gate_fd, F_OFD_GETLK, &l) < 0 || l.l_type == F_UNLCK || !read_card(s, l.l_len - 1, &pid, &space)) {
                snprintf(
                    text, size,
                    "the gate of %s was not free within %lld ms: a process that uses it is stopped, or its disk hangs",
                    s->place.path, (long long)timeout_ms);
                return;
        }
        if (space != s->pid_namespace) {
                snprintf(text, size,
                         "process %lld of another PID namespace holds the gate of %s for more than %lld ms: see "
                         "whether it is stopped, or end it",
                         pid, s->place.path, (long long)timeout_ms);
                return;
        }
        state = process_state(pid);
        if (state == 'T' || state == 't')
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
