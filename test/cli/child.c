/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command that the tests run under a lock. As long as any process of it lives, it writes the
 * time into a mapped file every millisecond, so that a test can tell when the last of them was
 * alive.
 *
 *   cli-child FILE SLOT KIND MS
 *
 * FILE holds three numbers for each SLOT: nanoseconds of CLOCK_BOOTTIME of the first and of the
 * last beat, and how many processes started. KIND is what it does after MS milliseconds, or
 * otherwise; several joined by a comma. Not a test itself.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct slot {
        _Atomic int64_t first;
        _Atomic int64_t last;
        _Atomic int64_t processes;
};

enum { SLOTS = 4 };

static int64_t now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_BOOTTIME, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void beat_until(struct slot *s, int64_t end)
{
        struct timespec pause = {.tv_nsec = 1000000};
        int64_t none = 0;

        atomic_fetch_add(&s->processes, 1);
        atomic_compare_exchange_strong(&s->first, &none, now());
        while (now() < end) {
                int64_t t = now();
                int64_t last = atomic_load(&s->last);
                while (last < t && !atomic_compare_exchange_weak(&s->last, &last, t))
                        ;
                nanosleep(&pause, NULL);
        }
}

static void daemonise(struct slot *s, int64_t end)
{
        if (fork() != 0)
                return;
        setsid();
        if (fork() == 0)
                beat_until(s, end);
        _exit(0);
}

int main(int argc, char **argv)
{
        if (argc != 5)
                return 2;
        int64_t end = now() + strtoll(argv[4], NULL, 10) * 1000000;
        const char *kind = argv[3];
        int fd = open(argv[1], O_RDWR | O_CLOEXEC);
        struct slot *s = mmap(NULL, sizeof(*s) * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (s == MAP_FAILED)
                return 2;
        s += argv[2][0] == '0' ? 0 : argv[2][0] == '1' ? 1 : 2;
        if (strstr(kind, "ignores_term"))
                signal(SIGTERM, SIG_IGN);
        if (!strncmp(kind, "closes_descriptors", 18))
                (void)syscall(SYS_close_range, 0, ~0U, 0);
        if (!strncmp(kind, "daemonises", 10)) {
                daemonise(s, end);
                return 0;
        }
        if (!strncmp(kind, "forks_grandchild", 16) && fork() == 0)
                signal(SIGTERM, SIG_IGN); /* the stubborn one */
        beat_until(s, end);
        if (!strcmp(kind, "killed"))
                raise(SIGKILL);
        return !strcmp(kind, "exits_7") ? 7 : 0;
}
