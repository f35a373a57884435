/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hand-over: many want one name. Each of the crowd takes it, gives it back at once and asks again, for a while; counted
 * is what ends between two instants, while all of them want it, and what the server does between the same two. The
 * crowd lives in processes of its own, also when it is one process, each with one client; what they count is in memory
 * that they share with this process, each thread in a place of its own, read after their end.
 *
 * Not measured: how long a hold lasts. It lasts no longer than a release takes to be asked for.
 */

#include "bench.h"
#include "redis_server.h"
#include "runtime/client.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS_MAX 300
#define PROCESSES_MAX 128

/* Where fenced and spin locks are locks, and nothing is subscribed, fewer crowds tell as much. */
static bool sensible(enum bench_noun noun, int threads, bool server)
{
        return server || (noun != BENCH_FENCED && noun != BENCH_SPIN && threads == 8);
}

/* Whoever releases such a lock on a server hands it to another process: that is worth a crowd of processes. */
static bool hands_on(enum bench_noun noun, const struct redis_server *server)
{
        return server && (noun == BENCH_LOCK || noun == BENCH_FENCED);
}

/* One thread of the crowd, ns. */
struct member {
        int64_t grants;
        int64_t waited;
        int64_t longest; /* also of a wait that the end of the run cut short */
        int64_t gap;     /* longest time before one of its grants in which nobody got one */
};

/* Shared by all processes of a run. */
struct tally {
        int64_t from, until, stop;    /* written before the crowd is let go */
        _Atomic int64_t last_granted; /* when anybody was, between from and until; 0: nobody yet */
        uint64_t polls[PROCESSES_MAX];
        struct member members[MEMBERS_MAX];
};

/* A crowd, as it is seen by one of its processes. */
struct crowd {
        enum bench_noun noun;
        const char *url;
        int processes;
        int threads; /* of each process */
        struct tally *tally;
        int process;
        snib_client *client;
        pthread_barrier_t seated, go;
};

struct seated {
        pthread_t thread;
        struct crowd *crowd;
        struct member *member;
};

/* What a Redis server says of itself. */
struct load {
        double scripts, subscriptions, forgets; /* requests of clients so far */
        double executed;                        /* commands so far, those inside scripts among them */
        long long channels, subscribers;        /* now */
};

static void sleep_until(int64_t instant)
{
        struct timespec t = {.tv_sec = instant / 1000000000, .tv_nsec = instant % 1000000000};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
                ;
}

/* --- a process of the crowd
 * ---------------------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b)
{
        return a > b ? a : b;
}

static void count_grant(struct tally *t, int64_t start, int64_t end, struct member *ret)
{
        int64_t before = atomic_exchange(&t->last_granted, end);

        ret->grants++;
        ret->waited += end - start;
        ret->gap = larger(ret->gap, before ? end - before : 0);
}

static void come_and_go(struct tally *t, struct bench_seat *seat, struct member *ret)
{
        for (int64_t start = bench_now(); start < t->stop;) {
                bool taken = bench_seat_take(seat, (t->stop - start) / 1000000 + 1);
                int64_t end = bench_now();

                if (taken && end >= t->from && end < t->until)
                        count_grant(t, start, end, ret);
                if (end >= t->from && start < t->until)
                        ret->longest = larger(ret->longest, end - start);
                if (!taken)
                        return;
                bench_seat_give(seat);
                start = bench_now();
        }
}

static void *member_main(void *arg)
{
        struct seated *s = arg;
        struct crowd *c = s->crowd;
        struct bench_seat seat;

        bench_seat_begin(&seat, c->client, c->noun, "crowd");
        pthread_barrier_wait(&c->seated);
        pthread_barrier_wait(&c->go);
        come_and_go(c->tally, &seat, s->member);
        bench_seat_end(&seat);
        return NULL;
}

/* How often the timer, not a message, made a waiter of this process ask. */
static uint64_t polls_at(struct crowd *c, int64_t instant)
{
        uint64_t polls;

        sleep_until(instant);
        snib__client_lock(c->client);
        polls = c->client->core.polls;
        snib__client_unlock(c->client);
        return polls;
}

/* Tells `ready` when everybody is there, and lets them go at the end of `go`. */
static void process_main(struct crowd *c, int ready, int go)
{
        static struct seated all[MEMBERS_MAX];
        struct snib_error err = SNIB_ERROR_INIT;
        struct tally *t = c->tally;
        char byte = 0;

        if (snib_open(&c->client, c->url, NULL, &err) < 0)
                bench_die("%s", err.text);
        pthread_barrier_init(&c->seated, NULL, (unsigned)c->threads + 1);
        pthread_barrier_init(&c->go, NULL, (unsigned)c->threads + 1);
        for (int i = 0; i < c->threads; i++) {
                all[i] = (struct seated){.crowd = c, .member = &t->members[c->process * c->threads + i]};
                if (pthread_create(&all[i].thread, NULL, member_main, &all[i]))
                        bench_die("cannot start thread %d", i);
        }
        pthread_barrier_wait(&c->seated);
        if (write(ready, &byte, 1) != 1 || close(ready) < 0 || read(go, &byte, 1) != 0)
                bench_die("the parent is gone");
        pthread_barrier_wait(&c->go);
        uint64_t polls = polls_at(c, t->from);
        t->polls[c->process] = polls_at(c, t->until) - polls;
        for (int i = 0; i < c->threads; i++)
                pthread_join(all[i].thread, NULL);
        snib_close(c->client);
}

/* --- the observer
 * -------------------------------------------------------------------------------------------------------- */

static double calls_of(const char *info, const char *command)
{
        char word[64];
        const char *at;

        snprintf(word, sizeof(word), "cmdstat_%s:calls=", command);
        at = strstr(info, word);
        return at ? strtod(at + strlen(word), NULL) : 0;
}

static long long number_of(const char *info, const char *word)
{
        const char *at = strstr(info, word);

        return at ? strtoll(at + strlen(word), NULL, 10) : 0;
}

/* The sum of every " sub=N" of CLIENT LIST. */
static long long subscribers_of(struct redis_server *server)
{
        redisReply *r = redis_server_do(server, "CLIENT LIST");
        long long sum = 0;

        if (!r || r->type != REDIS_REPLY_STRING)
                bench_die("no answer to CLIENT LIST");
        for (const char *at = strstr(r->str, " sub="); at; at = strstr(at, " sub="))
                sum += strtoll(at += strlen(" sub="), NULL, 10);
        freeReplyObject(r);
        return sum;
}

/* Everything 0 without a server. */
static struct load load_at(struct redis_server *server, int64_t instant)
{
        struct load l = {0};
        redisReply *r;

        sleep_until(instant);
        if (!server)
                return l;
        r = redis_server_do(server, "INFO all");
        if (!r || !r->str)
                bench_die("no answer to INFO");
        l.scripts = calls_of(r->str, "evalsha") + calls_of(r->str, "eval");
        l.subscriptions = calls_of(r->str, "subscribe") + calls_of(r->str, "unsubscribe");
        l.forgets = calls_of(r->str, "unlink");
        l.executed = (double)number_of(r->str, "total_commands_processed:");
        l.channels = number_of(r->str, "pubsub_channels:");
        freeReplyObject(r);
        return l;
}

static void start_process(struct crowd *c, int process, const int ready[2], const int go[2])
{
        pid_t pid = fork();

        if (pid < 0)
                bench_die("fork: %s", strerror(errno));
        if (pid > 0)
                return;
        close(ready[0]);
        close(go[1]);
        c->process = process;
        process_main(c, ready[1], go[0]);
        fflush(NULL);
        _exit(0);
}

/* Lets them go when all are there, and looks at the server twice; ret[0] is what was before. */
static void observe(struct crowd *c, const struct bench_plan *plan, struct redis_server *server, struct load ret[2])
{
        int ready[2], go[2], there = 0, status;
        struct tally *t = c->tally;
        char bytes[PROCESSES_MAX];

        if (pipe(ready) < 0 || pipe(go) < 0)
                bench_die("pipe: %s", strerror(errno));
        fflush(NULL);
        for (int i = 0; i < c->processes; i++)
                start_process(c, i, ready, go);
        close(ready[1]);
        close(go[0]);
        for (ssize_t n; (n = read(ready[0], bytes, sizeof(bytes))) > 0;)
                there += (int)n;
        if (there != c->processes)
                bench_die("%s: %d of %d processes began", bench_noun_text(c->noun), there, c->processes);
        t->from = bench_now() + plan->warm_ms * 1000000;
        t->until = t->from + plan->crowd_ms * 1000000;
        /* They go on until both have been looked at. */
        t->stop = t->until + plan->warm_ms * 1000000;
        close(go[1]);
        close(ready[0]);
        ret[0] = load_at(server, t->from);
        ret[1] = load_at(server, t->until);
        if (server)
                ret[1].subscribers = subscribers_of(server);
        for (int i = 0; i < c->processes; i++)
                if (wait(&status) < 0 || status)
                        bench_die("%s: a process of the crowd failed", bench_noun_text(c->noun));
}

static void print_line(const struct crowd *c, double bare, const struct load load[2], bool server)
{
        double seconds = (double)(c->tally->until - c->tally->from) / 1e9, mean;
        int members = c->processes * c->threads;
        struct member sum = {0};
        uint64_t polls = 0;
        double grants;
        char who[32];

        for (int i = 0; i < members; i++) {
                const struct member *m = &c->tally->members[i];

                sum.grants += m->grants;
                sum.waited += m->waited;
                sum.longest = larger(sum.longest, m->longest);
                sum.gap = larger(sum.gap, m->gap);
        }
        for (int i = 0; i < c->processes; i++)
                polls += c->tally->polls[i];
        if (!sum.grants)
                bench_die("%s: nobody was granted it", bench_noun_text(c->noun));
        grants = (double)sum.grants;
        mean = (double)sum.waited / grants / 1e6;
        snprintf(who, sizeof(who), "%d %s", members, c->processes > 1 ? "processes" : "threads");
        printf("%-12s %-12s %9.0f", bench_noun_text(c->noun), who, grants / seconds);
        if (server)
                printf(" %6.2f", grants / seconds / bare);
        printf(" %9.2f %9.1f %7.1f %7.1f %7llu", mean, (double)sum.longest / 1e6, (double)sum.longest / 1e6 / mean,
               (double)sum.gap / 1e6, (unsigned long long)polls);
        if (server)
                printf(" %7.2f %7.2f %7.2f %8.1f %7lld %6lld", (load[1].scripts - load[0].scripts) / grants,
                       (load[1].subscriptions - load[0].subscriptions) / grants,
                       (load[1].forgets - load[0].forgets) / grants, (load[1].executed - load[0].executed) / grants,
                       load[1].channels, load[1].subscribers);
        printf("\n");
        fflush(stdout);
}

/* One socket, and nobody else: what the scripts cost. */
static double print_bare(enum bench_noun noun, const char *url, struct redis_server *server, int64_t run_ms)
{
        struct load before = load_at(server, 0), after;
        double seconds = (double)run_ms / 1e3, rate = bench_redis_bare_rate(noun, url, run_ms), pairs = rate * seconds;

        after = load_at(server, 0);
        printf("%-12s %-12s %9.0f %6.2f %9s %9s %7s %7s %7s %7.2f %7.2f %7.2f %8.1f\n", bench_noun_text(noun),
               "bare, alone", rate, 1.0, "", "", "", "", "", (after.scripts - before.scripts) / pairs, 0.0,
               (after.forgets - before.forgets) / pairs, (after.executed - before.executed) / pairs);
        return rate;
}

static void run_crowd(const struct bench_plan *plan, enum bench_noun noun, const char *url, struct redis_server *server,
                      double bare, int processes, int threads)
{
        struct crowd c = {.noun = noun, .url = url, .processes = processes, .threads = threads};
        struct load load[2];

        c.tally = mmap(NULL, sizeof(*c.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (c.tally == MAP_FAILED)
                bench_die("mmap: %s", strerror(errno));
        observe(&c, plan, server, load);
        print_line(&c, bare, load, server != NULL);
        munmap(c.tally, sizeof(*c.tally));
}

void bench_crowd(const struct bench_plan *plan, const char *url, struct redis_server *server)
{
        static const enum bench_noun wanted[] = {BENCH_LOCK,  BENCH_FENCED,    BENCH_FAIR,   BENCH_SPIN,
                                                 BENCH_WRITE, BENCH_SEMAPHORE, BENCH_PERMITS};
        static const int threads[] = {8, 32, 300}, processes[] = {8, 32, PROCESSES_MAX};

        printf("\nHand-over on %s: all want one name; one run of %lld ms each. Waits in ms.%s\n",
               server ? "Redis" : "local", (long long)plan->crowd_ms,
               server ? " Then requests of clients for each grant,\nall commands that the server executed, "
                        "those inside scripts among them; and who is subscribed at the end"
                      : "");
        printf("%-12s %-12s %9s", "", "", "grants/s");
        if (server)
                printf(" %6s", "ratio");
        printf(" %9s %9s %7s %7s %7s", "mean", "longest", "ratio", "gap", "polls");
        if (server)
                printf(" %7s %7s %7s %8s %7s %6s", "scripts", "(un)sub", "unlink", "executed", "channel", "sub'er");
        printf("\n");
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
                double bare = server ? print_bare(wanted[i], url, server, plan->run_ms) : 0;

                for (size_t k = 0; k < sizeof(threads) / sizeof(threads[0]); k++)
                        if (sensible(wanted[i], threads[k], server != NULL))
                                run_crowd(plan, wanted[i], url, server, bare, 1, threads[k]);
                for (size_t k = 0; k < sizeof(processes) / sizeof(processes[0]); k++)
                        if (sensible(wanted[i], 8, server != NULL) && (processes[k] == 8 || hands_on(wanted[i], server)))
                                run_crowd(plan, wanted[i], url, server, bare, processes[k], 1);
        }
}
