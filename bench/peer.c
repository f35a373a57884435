/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes that do what they are told by lines on their stdin and answer each by a line on their
 * stdout: other lock libraries, in folders of bench/peers/, and forks of this program. They are
 * given the URL of the server.
 *
 *     (at its beginning)                   ready WHAT IT IS
 *     run MODE THREADS WARM_MS RUN_MS      done PAIRS P50 P99 LONGEST ALL CPU VOLUNTARY INVOLUNTARY
 *     wait NAME                            granted INSTANT, once it has the lock
 *     release                              released INSTANT, when it began to give back what it waited for
 *     end                                  ends
 *
 * All times are ns, an instant is one of CLOCK_MONOTONIC. MODE: `distinct`, every thread a name of
 * its own; `same`, all threads one name, through one client; `clients`, the same, but each thread
 * with a client of its own. P50, P99 and LONGEST are those of a pair, and where there is one name
 * of the acquire alone. Counted is what ends after the warm-up and before the end of the run. ALL
 * pairs were made from the first to the last, and CPU time and context switches are those of all of
 * them; -1 where the language cannot tell.
 *
 * Not a way to trust a peer: one that ends, says something else or does not answer in a minute is
 * left out from then on, and it is printed. Main thread only.
 */

#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define PATH_MAX_BYTES 300
#define ANSWER_MS 60000

struct bench_peer {
        const char *name;
        const char *url;
        char program[PATH_MAX_BYTES]; /* empty: a fork of this one */
        pid_t pid;
        FILE *to, *from;
        bool failed;
        char line[LINE_MAX_BYTES]; /* the last it said */
};

/* --- one --- */

static void fail(struct bench_peer *p, const char *why)
{
        if (!p->failed)
                printf("%s is left out from here on: %s\n", p->name, why);
        p->failed = true;
        kill(p->pid, SIGKILL);
}

void bench_peer_tell(struct bench_peer *p, const char *format, ...)
{
        va_list list;

        if (p->failed)
                return;
        va_start(list, format);
        vfprintf(p->to, format, list);
        va_end(list);
        fputc('\n', p->to);
        if (fflush(p->to))
                fail(p, "it ended");
}

const char *bench_peer_hear(struct bench_peer *p, const char *word)
{
        /* Nothing of it is in the buffer: it says one line when it was told one. */
        struct pollfd line = {.fd = fileno(p->from), .events = POLLIN};
        size_t length = strlen(word);

        if (p->failed)
                return NULL;
        if (poll(&line, 1, ANSWER_MS) == 0) {
                fail(p, "it does not answer");
                return NULL;
        }
        if (!fgets(p->line, sizeof(p->line), p->from))
                snprintf(p->line, sizeof(p->line), "it ended");
        p->line[strcspn(p->line, "\n")] = 0;
        if (strncmp(p->line, word, length) == 0 && p->line[length] == ' ')
                return p->line + length + 1;
        fail(p, p->line);
        return NULL;
}

/* In the child. */
static void become(const struct bench_peer *p, bench_peer_main *serve, int in, int out)
{
        /* Whoever is interrupted leaves no worker behind. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (serve) {
                serve(fdopen(in, "r"), fdopen(out, "w"), p->url);
                _exit(0);
        }
        dup2(in, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        execl(p->program, p->program, p->url, (char *)NULL);
        _exit(127);
}

static void launch(struct bench_peer *p, bench_peer_main *serve)
{
        int to[2], from[2];

        if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
                bench_die("pipe: %s", strerror(errno));
        fflush(NULL);
        p->pid = fork();
        if (p->pid < 0)
                bench_die("fork: %s", strerror(errno));
        if (p->pid == 0)
                become(p, serve, to[0], from[1]);
        close(to[0]);
        close(from[1]);
        p->to = fdopen(to[1], "w");
        p->from = fdopen(from[0], "r");
        if (!p->to || !p->from)
                bench_die("%s: %s", p->name, strerror(errno));
}

static struct bench_peer *begin(struct bench_peer about, bench_peer_main *serve)
{
        struct bench_peer *p = malloc(sizeof(*p));

        if (!p)
                bench_die("out of memory");
        *p = about;
        launch(p, serve);
        bench_peer_hear(p, "ready");
        return p;
}

struct bench_peer *bench_peer_fork(const char *name, bench_peer_main *serve, const char *url)
{
        return begin((struct bench_peer){.name = name, .url = url}, serve);
}

struct bench_peer *bench_peer_again(const struct bench_peer *other)
{
        struct bench_peer about = {.name = other->name, .url = other->url};

        memcpy(about.program, other->program, sizeof(about.program));
        return begin(about, NULL);
}

/* The lines that it may still send are not read: it is told once it has answered. */
void bench_peer_end(struct bench_peer *p)
{
        bench_peer_tell(p, "end");
        fclose(p->to);
        fclose(p->from);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        free(p);
}

void bench_peer_run(struct bench_peer *p, const char *mode, int threads, int64_t warm_ms, int64_t run_ms, double *ret)
{
        double pairs = NAN, all = NAN, cpu = NAN, voluntary = NAN, involuntary = NAN;
        const char *answer;

        for (int i = 0; i < BENCH_FIGURES; i++)
                ret[i] = NAN;
        bench_peer_tell(p, "run %s %d %lld %lld", mode, threads, (long long)warm_ms, (long long)run_ms);
        answer = bench_peer_hear(p, "done");
        if (answer && sscanf(answer, "%lf %lf %lf %lf %lf %lf %lf %lf", &pairs, &ret[BENCH_P50], &ret[BENCH_P99],
                             &ret[BENCH_LONGEST], &all, &cpu, &voluntary, &involuntary) != 8)
                fail(p, p->line);
        ret[BENCH_RATE] = pairs * 1000 / (double)run_ms;
        for (int i = BENCH_P50; i <= BENCH_LONGEST; i++)
                ret[i] /= 1e3;
        /* Not a number if there was not one pair. */
        ret[BENCH_CPU] = cpu < 0 ? NAN : cpu / 1e3 / all;
        ret[BENCH_VOLUNTARY] = voluntary < 0 ? NAN : voluntary / all;
        ret[BENCH_INVOLUNTARY] = involuntary < 0 ? NAN : involuntary / all;
}

/* --- those of bench/peers/ --- */

static const char *const folders[BENCH_PEERS] = {"redisson", "redsync", "redis-py", "python-redis-lock",
                                                 "node-redlock"};
static struct bench_contender contenders[BENCH_PEERS];
static int count;

/* What made it impossible to prepare it: the only line of a file. */
static void say_why_not(const char *directory, const char *folder)
{
        char path[PATH_MAX_BYTES], line[LINE_MAX_BYTES] = "left out: ";
        size_t used = strlen(line);

        snprintf(path, sizeof(path), "%s/%s/why", directory, folder);
        FILE *f = fopen(path, "re");
        if (!f || !fgets(line + used, (int)(sizeof(line) - used), f))
                snprintf(line + used, sizeof(line) - used, "it was not prepared");
        if (f)
                fclose(f);
        line[strcspn(line, "\n")] = 0;
        printf("peer:    %s, %s\n", folder, line);
        bench_report_fact(folder, line);
}

static void start_one(const char *directory, const char *folder, const char *url)
{
        struct bench_peer about = {.name = folder, .url = url}, *p;

        snprintf(about.program, sizeof(about.program), "%s/%s/worker", directory, folder);
        if (access(about.program, X_OK) < 0) {
                say_why_not(directory, folder);
                return;
        }
        p = begin(about, NULL);
        bench_report_fact(folder, p->line + (p->failed ? 0 : strlen("ready ")));
        if (p->failed) {
                bench_peer_end(p);
                return;
        }
        printf("peer:    %s\n", p->line + strlen("ready "));
        contenders[count++] = (struct bench_contender){.name = folder, .peer = p};
}

void bench_peers_start(const char *directory, const char *url)
{
        for (int i = 0; i < BENCH_PEERS; i++)
                start_one(directory, folders[i], url);
}

const struct bench_contender *bench_peer_at(int i)
{
        return i < count ? &contenders[i] : NULL;
}

void bench_peers_end(void)
{
        while (count)
                bench_peer_end(contenders[--count].peer);
}
