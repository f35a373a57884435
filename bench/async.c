/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many acquires under way at once in one program: each goes on to its release, and then begins
 * again, until the run ends; every one has a name of its own. Without threads of the library the
 * main thread is the event loop; with an I/O thread the callbacks run on the client's dispatcher.
 * Beside it stands redis-benchmark, which sends the same two scripts down its pipelines and looks
 * at no answer: first acquires, then as many releases, all of one name, since it repeats one
 * command. Not a contender of measure.c: nobody waits for a pair here.
 */

#include "bench.h"
#include "engine/redis/script.h"
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHTS_MAX 128
#define SYSTEMS 3
#define ID "6d4b7c1e-5a02-4c33-9f9a-4b1d0a8e77c5:1"
/* What snib sends for a lock. */
#define TAKE_WORDS ID " 30000 0 0"
#define GIVE_WORDS ID " redisson_lock__channel:{bench:0} 1"
/* So many requests for each ms of a run: it wants to know how many, not how long. */
#define REQUESTS_PER_MS 200

struct flights {
        snib_client *client;
        int threads; /* enum snib_threads */
        _Atomic bool stop;
        _Atomic int under_way;
        _Atomic long pairs;
};

struct flight {
        struct flights *all;
        snib_lock *lock;
};

struct outcome {
        double rate;
        double cpu; /* us a pair */
};

/* --- snib --- */

static void start(struct flight *f);

static void released(void *arg, int result, const struct snib_error *err)
{
        struct flight *f = arg;

        if (result != 1)
                bench_die("a release failed: %s", err->text);
        atomic_fetch_add(&f->all->pairs, 1);
        if (atomic_load(&f->all->stop))
                atomic_fetch_sub(&f->all->under_way, 1);
        else
                start(f);
}

static void acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct snib_error late = SNIB_ERROR_INIT;

        if (result != 1)
                bench_die("an acquire failed: %s", err ? err->text : "not in time");
        if (snib_grant_release_async(grant, released, arg, &late) < 0)
                bench_die("%s", late.text);
}

static void start(struct flight *f)
{
        struct snib_error err = SNIB_ERROR_INIT;

        if (snib_lock_acquire_async(f->lock, 0, acquired, f, &err) < 0)
                bench_die("%s", err.text);
}

static void turn(struct flights *all, int64_t until)
{
        int64_t left = (until - bench_now()) / 1000000 + 1, own = snib_timeout_ms(all->client);
        struct pollfd p = {.fd = snib_fd(all->client), .events = (short)snib_events(all->client)};

        if (poll(&p, 1, (int)(own >= 0 && own < left ? own : left)) < 0 && errno != EINTR)
                bench_die("poll: %s", strerror(errno));
        if (snib_process(all->client) < 0)
                bench_die("the client cannot go on");
}

static void go_on_until(struct flights *all, int64_t until)
{
        if (all->threads != SNIB_THREADS_NONE)
                bench_sleep_until(until);
        while (bench_now() < until)
                turn(all, until);
}

static struct outcome fly(struct flights *all, struct flight *flights, int count, const struct bench_plan *plan)
{
        int64_t from = bench_now() + plan->warm_ms * 1000000, until = from + plan->run_ms * 1000000;

        atomic_store(&all->under_way, count);
        for (int i = 0; i < count; i++)
                start(&flights[i]);
        go_on_until(all, from);
        long before = atomic_load(&all->pairs);
        double cpu = bench_own_cpu_us();
        go_on_until(all, until);
        double pairs = (double)(atomic_load(&all->pairs) - before);
        cpu = bench_own_cpu_us() - cpu;
        atomic_store(&all->stop, true);
        while (atomic_load(&all->under_way))
                go_on_until(all, bench_now() + 1000000);
        return (struct outcome){pairs * 1e3 / (double)plan->run_ms, cpu / pairs};
}

static struct outcome run_snib(const struct bench_plan *plan, const char *url, int threads, int count)
{
        struct snib_options options = {.size = sizeof(struct snib_options), .threads = threads};
        struct flights all = {.threads = threads};
        struct snib_error err = SNIB_ERROR_INIT;
        struct flight flights[FLIGHTS_MAX];
        char name[32];

        if (snib_open(&all.client, url, &options, &err) < 0)
                bench_die("%s", err.text);
        for (int i = 0; i < count; i++) {
                snprintf(name, sizeof(name), "bench:%d", i);
                flights[i] = (struct flight){.all = &all};
                if (snib_lock_new(all.client, name, NULL, &flights[i].lock, &err) < 0)
                        bench_die("%s", err.text);
        }
        struct outcome o = fly(&all, flights, count, plan);
        for (int i = 0; i < count; i++)
                snib_lock_free(flights[i].lock);
        snib_close(all.client);
        return o;
}

/* --- redis-benchmark --- */

/* Requests a second; negative: there is no redis-benchmark. */
static double flood(const struct bench_plan *plan, const char *url, int connections, int pipeline, int script,
                    const char *words)
{
        char command[600], line[600];
        double rate = -1;

        snprintf(command, sizeof(command),
                 "redis-benchmark --csv -h 127.0.0.1 -p %s -c %d -P %d -n %lld evalsha %s 1 bench:0 %s 2>/dev/null",
                 strrchr(url, ':') + 1, connections, pipeline, (long long)plan->run_ms * REQUESTS_PER_MS,
                 snib__redis_scripts_built_in[script].sha1, words);
        FILE *f = popen(command, "re");
        if (!f)
                bench_die("popen: %s", strerror(errno));
        /* A head, perhaps; then the command and its figures, each in quotes. */
        while (fgets(line, sizeof(line), f)) {
                const char *second = strstr(line, "\",\"");

                if (second && strncmp(line, "\"test\"", 6) != 0)
                        rate = strtod(second + 3, NULL);
        }
        pclose(f);
        return rate;
}

/* Pairs a second of the better of one connection and of eight. */
static struct outcome run_flood(const struct bench_plan *plan, const char *url, int count)
{
        struct outcome best = {.rate = -1};

        for (int connections = 1; connections <= 8 && connections <= count; connections *= 8) {
                int pipeline = count / connections;
                double takes = flood(plan, url, connections, pipeline, SNIB__SCRIPT_ACQUIRE, TAKE_WORDS);
                double gives = flood(plan, url, connections, pipeline, SNIB__SCRIPT_RELEASE, GIVE_WORDS);
                double rate = takes > 0 && gives > 0 ? 1 / (1 / takes + 1 / gives) : -1;

                best.rate = rate > best.rate ? rate : best.rate;
        }
        return best;
}

/* --- the table --- */

static const struct {
        const char *name;
        int threads; /* -1: redis-benchmark */
} systems[SYSTEMS] = {{"redis-benchmark", -1},
                      {"snib, asynchronous", SNIB_THREADS_NONE},
                      {"snib, asynchronous, I/O thread", SNIB_THREADS_IO}};

static void tell(int i, int size, const double *rates, const double *base, const double *cpu, int rounds)
{
        double ratios[BENCH_ROUNDS_MAX];

        if (rates[0] < 0) {
                printf("%8d  %-31s left out: it is not installed\n", size, systems[i].name);
                return;
        }
        for (int r = 0; r < rounds; r++)
                ratios[r] = rates[r] / base[r];
        printf("%8d  %-31s %10.0f", size, systems[i].name, bench_median(rates, rounds));
        if (base[0] > 0)
                printf(" %7.2f", bench_median(ratios, rounds));
        else
                printf(" %7s", "");
        bench_report_row("async", size, systems[i].name);
        bench_report_figure("pairs_per_s", rates, rounds);
        if (systems[i].threads >= 0) {
                printf(" %8.1f", bench_median(cpu, rounds));
                bench_report_figure("cpu_us", cpu, rounds);
        }
        printf("\n");
        fflush(stdout);
}

static void run_size(const struct bench_plan *plan, const char *url, int size)
{
        double rates[SYSTEMS][BENCH_ROUNDS_MAX], cpu[SYSTEMS][BENCH_ROUNDS_MAX];

        for (int round = 0; round < plan->rounds; round++)
                for (int i = 0; i < SYSTEMS; i++) {
                        struct outcome o = systems[i].threads < 0 ? run_flood(plan, url, size)
                                                                  : run_snib(plan, url, systems[i].threads, size);

                        rates[i][round] = o.rate;
                        cpu[i][round] = o.cpu;
                }
        for (int i = 0; i < SYSTEMS; i++)
                tell(i, size, rates[i], rates[0], cpu[i], plan->rounds);
}

void bench_async(const struct bench_plan *plan, const char *url)
{
        static const int sizes[] = {1, 32, 128};

        printf("\nAsynchronous on Redis: so many under way at once, each its own name; redis-benchmark: as many in its "
               "pipelines\n%8s  %-31s %10s %7s %8s\n",
               "at once", "", "pairs/s", "ratio", "CPU us");
        /* Loads the scripts, too. */
        struct redisContext *c = bench_redis_connect(url);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                run_size(plan, url, sizes[i]);
        bench_redis_disconnect(c);
}
