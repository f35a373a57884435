/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table `delays`: does looking for an answer pay, however long the answer takes? One caller,
 * and a server whose answers leave a fixed time after their request came: 20, 60, 120, 400 us.
 * Beside snib stand bare loops that look for 0, 50 and 200 us before they sleep; and one that looks
 * for 500, which shows what more than the default would bring.
 *
 * Sleeping is too coarse for such times, so the server is no Redis: it is a process that never
 * sleeps, on a processor of its own, which answers scripts as Redis would and looks at the clock
 * until the answer is due. So the table says nothing about the work of a server, and nothing about
 * callers that share a processor with one; `redis` and `busy` do.
 */

#include "bench.h"
#include "peer.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The release has one key and four other words, the acquire five. */
#define ACQUIRE_ARGC 8
#define URL_MAX 64

static void wait_until_due(int64_t due)
{
        while (bench_now() < due)
                ;
}

static void answer(struct peer_connection *c, int argc, char **argv, void *arg)
{
        int64_t due = bench_now() + *(const int64_t *)arg * 1000;

        if (peer_polite(c, argc, argv))
                return;
        wait_until_due(due);
        peer_text(c, argc == ACQUIRE_ARGC ? "*2\r\n:1\r\n$16\r\n1700000000123456\r\n" : "*1\r\n:1\r\n");
}

/* On the last processor: the scheduler then leaves the others to the callers. */
static void take_a_processor(void)
{
        cpu_set_t all, one;

        if (sched_getaffinity(0, sizeof(all), &all) < 0)
                bench_die("sched_getaffinity: %s", strerror(errno));
        CPU_ZERO(&one);
        for (int i = CPU_SETSIZE - 1; i >= 0 && CPU_COUNT(&one) == 0; i--)
                if (CPU_ISSET(i, &all))
                        CPU_SET(i, &one);
        if (sched_setaffinity(0, sizeof(one), &one) < 0)
                bench_die("sched_setaffinity: %s", strerror(errno));
}

static void serve(int told, int64_t delay_us)
{
        struct peer *p;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setsid();
        take_a_processor();
        p = peer_start_looking(answer, &delay_us);
        if (write(told, peer_url(p), strlen(peer_url(p)) + 1) < 0)
                bench_die("write: %s", strerror(errno));
        for (;;)
                (void)pause();
}

static pid_t server_start(int64_t delay_us, char ret_url[URL_MAX])
{
        int tell[2];
        pid_t pid;

        if (pipe(tell) < 0)
                bench_die("pipe: %s", strerror(errno));
        fflush(NULL);
        pid = fork();
        if (pid < 0)
                bench_die("fork: %s", strerror(errno));
        if (pid == 0)
                serve(tell[1], delay_us);
        close(tell[1]);
        if (read(tell[0], ret_url, URL_MAX - 1) <= 0)
                bench_die("the server that delays its answers did not start");
        close(tell[0]);
        return pid;
}

void bench_delays(const struct bench_plan *plan)
{
        static const struct bench_contender *const contenders[] = {&bench_delayed_sleeping, &bench_delayed_looking_50,
                                                                   &bench_delayed_looking_200,
                                                                   &bench_delayed_looking_500, &bench_snib};
        static const int delays[] = {20, 60, 120, 400};
        struct bench_plan longer = *plan;
        cpu_set_t all;

        longer.warm_ms *= 2; /* a client learns how long answers take */
        if (sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) < 2)
                return; /* nothing could answer while the caller looks */
        for (size_t i = 0; i < sizeof(delays) / sizeof(*delays); i++) {
                char url[URL_MAX] = "", scenario[32], title[160];
                pid_t server = server_start(delays[i], url);

                snprintf(scenario, sizeof(scenario), "delays, %d us", delays[i]);
                snprintf(title, sizeof(title),
                         "Delays: acquire and release, each answer leaves %d us after its request", delays[i]);
                bench_head(scenario, title);
                bench_compare(&longer, contenders, 5, url, 1);
                (void)kill(server, SIGKILL);
                (void)waitpid(server, NULL, 0);
        }
}
