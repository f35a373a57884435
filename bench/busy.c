/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table `busy`: the same pairs while other programs compute. Endless loops stand for those
 * programs: none, one, two. They are in the session of the callers, so that Linux' autogroup
 * scheduling has them compete with each thread and not with all of them together: where they come
 * from another session, they harm less. Not for machines with many processors: there two loops
 * leave enough idle ones.
 */

#include "bench.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOPS_MAX 2
/* Three tables of six sizes: fewer rounds than others have. */
#define ROUNDS_MAX 3

static pid_t loop_start(void)
{
        pid_t parent = getpid(), pid;

        fflush(NULL);
        pid = fork();
        if (pid < 0)
                bench_die("fork: %s", strerror(errno));
        if (pid > 0)
                return pid;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned turns = 0; getppid() == parent || turns % 1024; turns++)
                for (volatile int i = 0; i < 100000; i++)
                        ;
        _exit(0);
}

static void loop_end(pid_t pid)
{
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
}

static void compare_beside(const struct bench_plan *plan, const char *url, int loops)
{
        static const struct bench_contender *const contenders[] = {&bench_redis_bare, &bench_snib_unlooking,
                                                                   &bench_snib};
        static const int threads[] = {1, 2, 4, 8, 32, 128};
        char scenario[32], title[160];
        pid_t pids[LOOPS_MAX];

        snprintf(scenario, sizeof(scenario), "busy, %d", loops);
        snprintf(title, sizeof(title), "Busy machine: acquire and release on Redis beside %d endless loop%s", loops,
                 loops == 1 ? "" : "s");
        bench_head(scenario, title);
        for (int i = 0; i < loops; i++)
                pids[i] = loop_start();
        for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
                bench_compare(plan, contenders, 3, url, threads[i]);
        for (int i = 0; i < loops; i++)
                loop_end(pids[i]);
}

void bench_busy(const struct bench_plan *plan, const char *url)
{
        struct bench_plan fewer = *plan;

        if (fewer.rounds > ROUNDS_MAX)
                fewer.rounds = ROUNDS_MAX;
        fewer.warm_ms *= 2; /* a client learns what looking costs */
        for (int loops = 0; loops <= LOOPS_MAX; loops++)
                compare_beside(&fewer, url, loops);
}
