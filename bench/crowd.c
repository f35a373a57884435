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
#define PEER_CROWD 32
#define LINES_MAX (12 + 2 * BENCH_PEERS)

/* What a line says. */
enum figure {
        RATE,
        RATIO,
        MEAN,
        LONGEST,
        LATEST,
        SERVED,
        GAP,
        POLLS,
        CPU,
        SWITCHES,
        SCRIPTS,
        SUBSCRIPTIONS,
        FORGETS,
        REQUESTS,
        EXECUTED,
        CHANNELS,
        SUBSCRIBERS,
        FIGURES
};

static const struct {
        const char *name, *head;
        int width, digits;
        bool server; /* asked of one */
} figures[FIGURES] = {
    [RATE] = {"grants_per_s", "grants/s", 9, 0, false},
    [RATIO] = {"ratio", "ratio", 6, 2, true}, /* to bare and alone */
    [MEAN] = {"mean_ms", "mean", 8, 2, false},
    [LONGEST] = {"longest_ms", "longest", 8, 1, false},
    [LATEST] = {"longest_to_mean", "ratio", 6, 1, false},
    [SERVED] = {"served", "served", 6, 2, false}, /* who was served most or least often, beside the mean */
    [GAP] = {"gap_ms", "gap", 6, 1, false},
    [POLLS] = {"polls", "polls", 6, 0, false},
    [CPU] = {"cpu_us", "CPU us", 7, 1, false},
    [SWITCHES] = {"switches", "switch", 6, 1, false},
    [SCRIPTS] = {"scripts", "scripts", 7, 2, true},
    [SUBSCRIPTIONS] = {"subscriptions", "(un)sub", 7, 2, true},
    [FORGETS] = {"unlinks", "unlink", 6, 2, true},
    [REQUESTS] = {"requests", "all", 5, 2, true},
    [EXECUTED] = {"executed", "executed", 8, 1, true},
    [CHANNELS] = {"channels", "channel", 7, 0, true},
    [SUBSCRIBERS] = {"subscribers", "sub'er", 6, 0, true},
};

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
        double channels, subscribers;           /* now */
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
                ret[1].subscribers = (double)subscribers_of(server);
        for (int i = 0; i < c->processes; i++)
                if (wait(&status) < 0 || status)
                        bench_die("%s: a process of the crowd failed", bench_noun_text(c->noun));
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
        int members = c->processes * c->threads;
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

static void set_load(const struct load load[2], double grants, double *ret)
{
        ret[SCRIPTS] = (load[1].scripts - load[0].scripts) / grants;
        ret[SUBSCRIPTIONS] = (load[1].subscriptions - load[0].subscriptions) / grants;
        ret[FORGETS] = (load[1].forgets - load[0].forgets) / grants;
        ret[REQUESTS] = ret[SCRIPTS] + ret[SUBSCRIPTIONS] + ret[FORGETS];
        ret[EXECUTED] = (load[1].executed - load[0].executed) / grants;
        ret[CHANNELS] = load[1].channels;
        ret[SUBSCRIBERS] = load[1].subscribers;
}

/* --- lines
 * -------------------------------------------------------------------------------------------------------------- */

/* One system at one size, a value for each round. */
struct line {
        char system[48];
        int size; /* members */
        double rounds[FIGURES][BENCH_ROUNDS_MAX];
};

static void put(struct line *l, int round, const double *values)
{
        for (int i = 0; i < FIGURES; i++)
                l->rounds[i][round] = values[i];
}

static void clear(double *values)
{
        for (int i = 0; i < FIGURES; i++)
                values[i] = NAN;
}

static void print_head(bool server)
{
        printf("%-33s", "");
        for (int i = 0; i < FIGURES; i++)
                if (server || !figures[i].server)
                        printf(" %*s", figures[i].width, figures[i].head);
        printf("\n");
}

static void tell(const struct line *l, const char *scenario, int rounds, bool server)
{
        bench_report_row(scenario, l->size, l->system);
        printf("%-28s %4d", l->system, l->size);
        for (int i = 0; i < FIGURES; i++) {
                double middle = bench_median(l->rounds[i], rounds);

                if (!server && figures[i].server)
                        continue;
                bench_report_figure(figures[i].name, l->rounds[i], rounds);
                if (isfinite(middle))
                        printf(" %*.*f", figures[i].width, figures[i].digits, middle);
                else
                        printf(" %*s", figures[i].width, "");
        }
        printf("\n");
        fflush(stdout);
}

/* --- what is run in a round
 * --------------------------------------------------------------------------------------------- */

/* Of one noun on one engine. */
struct scene {
        const struct bench_plan *plan;
        enum bench_noun noun;
        const char *url;
        struct redis_server *server;
        double bare; /* grants a second of the round */
        int round, lines;
        struct line line[LINES_MAX];
};

static struct line *next_line(struct scene *s, int size, const char *who, const char *what)
{
        struct line *l = &s->line[s->lines++];

        l->size = size;
        snprintf(l->system, sizeof(l->system), "%s, %s", who, what);
        return l;
}

/* One socket, and nobody else: what the scripts cost. */
static void run_bare(struct scene *s, const char *what)
{
        struct load load[2] = {load_at(s->server, 0)};
        int64_t run_ms = s->plan->run_ms;
        double values[FIGURES];

        clear(values);
        s->bare = values[RATE] = bench_redis_bare_rate(s->noun, s->url, run_ms);
        load[1] = load_at(s->server, 0);
        set_load(load, s->bare * (double)run_ms / 1e3, values);
        values[RATIO] = 1;
        values[CHANNELS] = values[SUBSCRIBERS] = NAN;
        put(next_line(s, 1, bench_noun_text(s->noun), what), s->round, values);
}

static void run_crowd(struct scene *s, int processes, int threads)
{
        struct crowd c = {.noun = s->noun, .url = s->url, .processes = processes, .threads = threads};
        struct rusage before = usage_of_children();
        struct load load[2];
        double values[FIGURES], grants;

        c.tally = mmap(NULL, sizeof(*c.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (c.tally == MAP_FAILED)
                bench_die("mmap: %s", strerror(errno));
        clear(values);
        observe(&c, s->plan, s->server, load);
        grants = set_waits(&c, values);
        values[RATE] = grants * 1e3 / (double)s->plan->crowd_ms;
        values[RATIO] = values[RATE] / s->bare;
        values[POLLS] = 0;
        for (int i = 0; i < processes; i++)
                values[POLLS] += (double)c.tally->polls[i];
        set_usage(s->plan, &before, grants, values);
        set_load(load, grants, values);
        put(next_line(s, processes * threads, bench_noun_text(s->noun), processes > 1 ? "processes" : "threads"),
            s->round, values);
        munmap(c.tally, sizeof(*c.tally));
}

/* Other libraries have what is most like a plain lock. */
static void run_peers(struct scene *s)
{
        static const char *const modes[] = {"same", "clients"};
        const struct bench_contender *c;
        double of_run[BENCH_FIGURES], values[FIGURES];

        for (int mode = 0; mode < 2; mode++)
                for (int i = 0; (c = bench_peer_at(i)); i++) {
                        clear(values);
                        bench_peer_run(c->peer, modes[mode], PEER_CROWD, s->plan->warm_ms, s->plan->crowd_ms, of_run);
                        values[RATE] = of_run[BENCH_RATE];
                        values[RATIO] = values[RATE] / s->bare;
                        values[LONGEST] = of_run[BENCH_LONGEST] / 1e3;
                        values[CPU] = of_run[BENCH_CPU];
                        values[SWITCHES] = of_run[BENCH_VOLUNTARY] + of_run[BENCH_INVOLUNTARY];
                        put(next_line(s, PEER_CROWD, c->name, mode ? "clients" : "threads"), s->round, values);
                }
}

/* The plain lock shows the growth; of the others fewer sizes tell as much, and where nothing is subscribed, and fenced
 * and spin locks are locks, fewer still. */
static void run_round(struct scene *s)
{
        static const int many[] = {1, 8, 32, 128, 300, 1000, 0}, some[] = {8, 32, 300, 0}, few[] = {8, 0};
        static const int many_processes[] = {8, 32, 128, 0};
        bool plain = s->noun == BENCH_LOCK;
        const int *threads = !s->server ? few : plain ? many : some;
        const int *processes = s->server && plain ? many_processes : few;

        s->lines = 0;
        if (s->server && plain) {
                bench_share_a_core();
                run_bare(s, "bare, same core");
                bench_spread_again();
        }
        if (s->server)
                run_bare(s, "bare and alone");
        for (; *threads; threads++)
                run_crowd(s, 1, *threads);
        for (; *processes; processes++)
                run_crowd(s, *processes, 1);
        if (s->server && s->noun == BENCH_LOCK)
                run_peers(s);
}

static void run_noun(struct scene *s)
{
        int rounds = s->server && s->noun == BENCH_LOCK ? s->plan->crowd_rounds : 1;

        for (s->round = 0; s->round < rounds; s->round++)
                run_round(s);
        for (int i = 0; i < s->lines; i++)
                tell(&s->line[i], s->server ? "crowds" : "crowds-local", rounds, s->server != NULL);
}

void bench_crowd(const struct bench_plan *plan, const char *url, struct redis_server *server)
{
        static const enum bench_noun wanted[] = {BENCH_LOCK,  BENCH_FENCED,    BENCH_FAIR,   BENCH_SPIN,
                                                 BENCH_WRITE, BENCH_SEMAPHORE, BENCH_PERMITS};
        static struct scene s;

        printf("\nHand-over on %s: all want one name; one run of %lld ms each, of a plain lock on Redis %d. Waits in "
               "ms.%s\n",
               server ? "Redis" : "local", (long long)plan->crowd_ms, plan->crowd_rounds,
               server ? " Then requests of clients for each grant,\nall commands that the server executed, "
                        "those inside scripts among them; and who is subscribed at the end"
                      : "");
        print_head(server != NULL);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
                if (!server && (wanted[i] == BENCH_FENCED || wanted[i] == BENCH_SPIN))
                        continue;
                s = (struct scene){.plan = plan, .noun = wanted[i], .url = url, .server = server};
                run_noun(&s);
        }
}
