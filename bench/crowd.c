/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hand-over: many want one name. Each of the crowd takes it, gives it back at once and asks again,
 * for a while; counted is what ends between two instants, while all of them want it, and what the
 * server does between the same two. The crowd lives in processes of its own, also when it is one
 * process, each with one client; what they count is in memory that they share with this process,
 * each thread in a place of its own, read after their end.
 * The tables are handover.c's.
 *
 * Not measured: how long a hold lasts. It lasts no longer than a release takes to be asked for.
 */

#include "crowd.h"
#include "redis_server.h"
#include "runtime/client.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS_MAX 1000
#define PROCESSES_MAX 128

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
        const struct crowd_cast *cast;
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

        bench_seat_begin(&seat, c->client, c->cast->noun, "crowd");
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

        bench_sleep_until(instant);
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

        if (snib_open(&c->client, c->cast->url, NULL, &err) < 0)
                bench_die("%s", err.text);
        pthread_barrier_init(&c->seated, NULL, (unsigned)c->cast->threads + 1);
        pthread_barrier_init(&c->go, NULL, (unsigned)c->cast->threads + 1);
        for (int i = 0; i < c->cast->threads; i++) {
                all[i] = (struct seated){.crowd = c, .member = &t->members[c->process * c->cast->threads + i]};
                if (pthread_create(&all[i].thread, NULL, member_main, &all[i]))
                        bench_die("cannot start thread %d", i);
        }
        pthread_barrier_wait(&c->seated);
        if (write(ready, &byte, 1) != 1 || close(ready) < 0 || read(go, &byte, 1) != 0)
                bench_die("the parent is gone");
        pthread_barrier_wait(&c->go);
        uint64_t polls = polls_at(c, t->from);
        t->polls[c->process] = polls_at(c, t->until) - polls;
        for (int i = 0; i < c->cast->threads; i++)
                pthread_join(all[i].thread, NULL);
        snib_close(c->client);
}

/* --- the observer --- */

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

struct crowd_load crowd_load_at(struct redis_server *server, int64_t instant)
{
        struct crowd_load l = {0};
        redisReply *r;

        bench_sleep_until(instant);
        if (!server)
                return l;
        r = redis_server_do(server, "INFO all");
        if (!r || !r->str)
                bench_die("no answer to INFO");
        l.scripts = calls_of(r->str, "evalsha") + calls_of(r->str, "eval");
        l.subscriptions = calls_of(r->str, "subscribe") + calls_of(r->str, "unsubscribe");
        l.forgets = calls_of(r->str, "unlink");
        l.executed = (double)number_of(r->str, "total_commands_processed:");
        l.channels = (double)number_of(r->str, "pubsub_channels:");
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
static void observe(struct crowd *c, const struct bench_plan *plan, struct crowd_load ret[2])
{
        struct redis_server *server = c->cast->server;
        int ready[2], go[2], there = 0, status;
        struct tally *t = c->tally;
        char bytes[PROCESSES_MAX];

        if (pipe(ready) < 0 || pipe(go) < 0)
                bench_die("pipe: %s", strerror(errno));
        fflush(NULL);
        for (int i = 0; i < c->cast->processes; i++)
                start_process(c, i, ready, go);
        close(ready[1]);
        close(go[0]);
        for (ssize_t n; (n = read(ready[0], bytes, sizeof(bytes))) > 0;)
                there += (int)n;
        if (there != c->cast->processes)
                bench_die("%s: %d of %d processes began", bench_noun_text(c->cast->noun), there, c->cast->processes);
        t->from = bench_now() + plan->warm_ms * 1000000;
        t->until = t->from + plan->crowd_ms * 1000000;
        /* They go on until both have been looked at. */
        t->stop = t->until + plan->warm_ms * 1000000;
        close(go[1]);
        close(ready[0]);
        ret[0] = crowd_load_at(server, t->from);
        ret[1] = crowd_load_at(server, t->until);
        if (server)
                ret[1].subscribers = (double)subscribers_of(server);
        for (int i = 0; i < c->cast->processes; i++)
                if (wait(&status) < 0 || status)
                        bench_die("%s: a process of the crowd failed", bench_noun_text(c->cast->noun));
}

static struct rusage usage_of_children(void)
{
        struct rusage u;

        getrusage(RUSAGE_CHILDREN, &u);
        return u;
}

/* Of all processes of the crowd, from beginning to end, for each grant of that time. */
static void set_usage(const struct bench_plan *plan, const struct rusage *before, double grants, double *ret)
{
        struct rusage u = usage_of_children();
        double all = grants * (double)(plan->crowd_ms + 2 * plan->warm_ms) / (double)plan->crowd_ms;

        ret[CPU] = (bench_cpu_us(&u) - bench_cpu_us(before)) / all;
        ret[SWITCHES] = (double)(u.ru_nvcsw + u.ru_nivcsw - before->ru_nvcsw - before->ru_nivcsw) / all;
}

static double times_of_mean(double a, double mean)
{
        return a > mean ? a / mean : mean / a;
}

/* The sum of the grants. */
static double set_waits(const struct crowd *c, double *ret)
{
        int members = c->cast->processes * c->cast->threads;
        int64_t fewest = INT64_MAX, most = 0;
        struct member sum = {0};

        for (int i = 0; i < members; i++) {
                const struct member *m = &c->tally->members[i];

                sum.grants += m->grants;
                sum.waited += m->waited;
                sum.longest = larger(sum.longest, m->longest);
                sum.gap = larger(sum.gap, m->gap);
                most = larger(most, m->grants);
                fewest = m->grants < fewest ? m->grants : fewest;
        }
        double grants = (double)sum.grants, mean = grants / members;
        ret[MEAN] = (double)sum.waited / grants / 1e6;
        ret[LONGEST] = (double)sum.longest / 1e6;
        ret[LATEST] = ret[LONGEST] / ret[MEAN];
        ret[SERVED] = fmax(times_of_mean((double)most, mean), times_of_mean((double)fewest, mean));
        ret[GAP] = (double)sum.gap / 1e6;
        return grants;
}

void crowd_set_load(const struct crowd_load load[2], double grants, double *ret)
{
        ret[SCRIPTS] = (load[1].scripts - load[0].scripts) / grants;
        ret[SUBSCRIPTIONS] = (load[1].subscriptions - load[0].subscriptions) / grants;
        ret[FORGETS] = (load[1].forgets - load[0].forgets) / grants;
        ret[REQUESTS] = ret[SCRIPTS] + ret[SUBSCRIPTIONS] + ret[FORGETS];
        ret[EXECUTED] = (load[1].executed - load[0].executed) / grants;
        ret[CHANNELS] = load[1].channels;
        ret[SUBSCRIBERS] = load[1].subscribers;
}

void crowd_run(const struct bench_plan *plan, const struct crowd_cast *cast, double *ret)
{
        struct crowd c = {.cast = cast};
        struct rusage before = usage_of_children();
        struct crowd_load load[2];
        double grants;

        c.tally = mmap(NULL, sizeof(*c.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (c.tally == MAP_FAILED)
                bench_die("mmap: %s", strerror(errno));
        observe(&c, plan, load);
        grants = set_waits(&c, ret);
        ret[RATE] = grants * 1e3 / (double)plan->crowd_ms;
        ret[POLLS] = 0;
        for (int i = 0; i < cast->processes; i++)
                ret[POLLS] += (double)c.tally->polls[i];
        set_usage(plan, &before, grants, ret);
        crowd_set_load(load, grants, ret);
        munmap(c.tally, sizeof(*c.tally));
}
