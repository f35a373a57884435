/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a contender on a number of threads for a while, and makes medians of many such runs. A closed loop: every thread
 * begins its next pair when the last one has ended, so at more than one thread the latencies say how the callers share
 * the machine, not how long a pair takes when it is alone. Not a load generator with a schedule.
 */

#include "bench.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Latencies kept of one run, by all threads together. Enough for half a second of anything but flock, whose first half
 * is kept. */
#define SAMPLES_MAX (1 << 20)

struct run {
        const struct bench_contender *contender;
        const char *where;
        void *shared;
        int threads;
        int64_t warm_until; /* written by the main thread between the two barriers */
        int64_t run_until;
        pthread_barrier_t ready;
        pthread_barrier_t set;
};

struct worker {
        pthread_t thread;
        struct run *run;
        int number;
        size_t pairs;
        size_t kept;
        size_t room;
        uint32_t *samples; /* ns */
};

struct figures {
        double rate; /* pairs a second */
        double p50;  /* us */
        double p99;
        double cpu; /* us of this process a pair */
};

void bench_die(const char *format, ...)
{
        va_list list;

        va_start(list, format);
        fprintf(stderr, "snib-bench: ");
        vfprintf(stderr, format, list);
        fprintf(stderr, "\n");
        va_end(list);
        exit(1);
}

int64_t bench_now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double cpu_us(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void work(struct worker *w, void *mine)
{
        const struct run *r = w->run;
        int64_t start = bench_now();

        while (start < r->run_until) {
                if (!r->contender->pair(mine))
                        bench_die("%s: a pair failed on %s", r->contender->name, r->where);
                int64_t end = bench_now();
                if (start >= r->warm_until) {
                        w->pairs++;
                        if (w->kept < w->room)
                                w->samples[w->kept++] = (uint32_t)(end - start);
                }
                start = end;
        }
}

static void *worker_main(void *arg)
{
        struct worker *w = arg;
        struct run *r = w->run;
        void *mine = r->contender->begin(r->shared, r->where, w->number);

        if (!mine)
                bench_die("%s: cannot begin on %s", r->contender->name, r->where);
        pthread_barrier_wait(&r->ready);
        pthread_barrier_wait(&r->set);
        work(w, mine);
        r->contender->end(mine);
        return NULL;
}

static int by_value(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

static void collect(struct worker *workers, int threads, uint32_t *samples, int64_t run_ms, struct figures *ret)
{
        size_t pairs = 0, kept = 0;

        for (int i = 0; i < threads; i++) {
                memmove(samples + kept, workers[i].samples, workers[i].kept * sizeof(*samples));
                kept += workers[i].kept;
                pairs += workers[i].pairs;
        }
        if (kept == 0)
                bench_die("no pair ended in %lld ms", (long long)run_ms);
        qsort(samples, kept, sizeof(*samples), by_value);
        ret->rate = (double)pairs * 1000 / (double)run_ms;
        ret->p50 = samples[kept / 2] / 1e3;
        ret->p99 = samples[kept - 1 - kept / 100] / 1e3;
}

static void start_workers(struct run *r, struct worker *workers, uint32_t *samples)
{
        size_t room = SAMPLES_MAX / (size_t)r->threads;

        for (int i = 0; i < r->threads; i++) {
                workers[i] =
                    (struct worker){.run = r, .number = i, .room = room, .samples = samples + room * (size_t)i};
                if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
                        bench_die("cannot start thread %d", i);
        }
}

static void run_once(const struct bench_plan *plan, const struct bench_contender *c, const char *where, int threads,
                     uint32_t *samples, struct figures *ret)
{
        struct run r = {.contender = c, .where = where, .threads = threads, .shared = c->open(where)};
        struct worker *workers = calloc((size_t)threads, sizeof(*workers));

        if (!r.shared || !workers)
                bench_die("%s: cannot open %s", c->name, where);
        pthread_barrier_init(&r.ready, NULL, (unsigned)threads + 1);
        pthread_barrier_init(&r.set, NULL, (unsigned)threads + 1);
        start_workers(&r, workers, samples);
        pthread_barrier_wait(&r.ready);
        r.warm_until = bench_now() + plan->warm_ms * 1000000;
        r.run_until = r.warm_until + plan->run_ms * 1000000;
        double cpu = cpu_us();
        pthread_barrier_wait(&r.set);
        for (int i = 0; i < threads; i++)
                pthread_join(workers[i].thread, NULL);
        cpu = cpu_us() - cpu;
        collect(workers, threads, samples, plan->run_ms, ret);
        /* The warm-up costs as much a pair as the rest. */
        ret->cpu = cpu / (ret->rate / 1000 * (double)(plan->warm_ms + plan->run_ms));
        c->close(r.shared);
        pthread_barrier_destroy(&r.ready);
        pthread_barrier_destroy(&r.set);
        free(workers);
}

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

/* The median over the rounds of one figure, or of its ratio to the same figure of another contender in the same round.
 */
static double median(const struct figures *rounds, const struct figures *base, int count, size_t offset)
{
        double values[BENCH_ROUNDS_MAX];

        for (int i = 0; i < count; i++) {
                values[i] = *(const double *)((const char *)&rounds[i] + offset);
                if (base)
                        values[i] /= *(const double *)((const char *)&base[i] + offset);
        }
        qsort(values, (size_t)count, sizeof(*values), by_size);
        return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_head(const char *title)
{
        printf("\n%s\n", title);
        printf("%8s  %-26s %10s %7s %9s %7s %9s %8s\n", "threads", "", "pairs/s", "ratio", "p50 us", "ratio", "p99 us",
               "CPU us");
}

static void print_line(const char *name, const struct figures *own, const struct figures *base, int rounds, int threads)
{
        printf("%8d  %-26s %10.0f %7.2f %9.1f %7.2f %9.1f %8.1f\n", threads, name,
               median(own, NULL, rounds, offsetof(struct figures, rate)),
               median(own, base, rounds, offsetof(struct figures, rate)),
               median(own, NULL, rounds, offsetof(struct figures, p50)),
               median(own, base, rounds, offsetof(struct figures, p50)),
               median(own, NULL, rounds, offsetof(struct figures, p99)),
               median(own, NULL, rounds, offsetof(struct figures, cpu)));
        fflush(stdout);
}

void bench_compare(const struct bench_plan *plan, const struct bench_contender *const *contenders, int count,
                   const char *where, int threads)
{
        struct figures all[BENCH_CONTENDERS_MAX][BENCH_ROUNDS_MAX];
        uint32_t *samples = malloc(SAMPLES_MAX * sizeof(*samples));

        if (!samples)
                bench_die("out of memory");
        for (int round = 0; round < plan->rounds; round++)
                for (int i = 0; i < count; i++)
                        run_once(plan, contenders[i], where, threads, samples, &all[i][round]);
        for (int i = 0; i < count; i++)
                print_line(contenders[i]->name, all[i], all[0], plan->rounds, threads);
        free(samples);
}
