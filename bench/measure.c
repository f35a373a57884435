/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a contender on a number of threads for a while, and makes medians of many such runs. A
 * closed loop: every thread begins its next pair when the last one has ended, so at more than one
 * thread the latencies say how the callers share the machine, not how long a pair takes when it is
 * alone. Not a load generator with a schedule.
 */

#include "bench.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Latencies kept of one run, by all threads together. Enough for half a second of anything but
 * flock, whose first half is kept. */
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

static const char *const names[BENCH_FIGURES] = {[BENCH_RATE] = "pairs_per_s",
                                                 [BENCH_P50] = "p50_us",
                                                 [BENCH_P99] = "p99_us",
                                                 [BENCH_LONGEST] = "longest_us",
                                                 [BENCH_CPU] = "cpu_us",
                                                 [BENCH_VOLUNTARY] = "voluntary_switches",
                                                 [BENCH_INVOLUNTARY] = "involuntary_switches"};

static const char *scenario;
static pid_t server_pid;  /* 0: nobody but this thread */
static cpu_set_t allowed; /* while a core is shared: what was allowed before */

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

void bench_sleep_until(int64_t instant)
{
        struct timespec t = {.tv_sec = instant / 1000000000, .tv_nsec = instant % 1000000000};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
                ;
}

double bench_cpu_us(const struct rusage *u)
{
        return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 +
               (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

double bench_own_cpu_us(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return bench_cpu_us(&u);
}

double bench_resident(void)
{
        long long pages = 0;
        FILE *f = fopen("/proc/self/statm", "re");

        if (!f || fscanf(f, "%*s %lld", &pages) != 1)
                bench_die("/proc/self/statm cannot be read");
        fclose(f);
        return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void bench_apart(void (*measure)(const void *task, void *ret), const void *task, void *ret, size_t size)
{
        void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int status;
        pid_t pid;

        if (shared == MAP_FAILED)
                bench_die("mmap: %s", strerror(errno));
        fflush(NULL);
        pid = fork();
        if (pid < 0)
                bench_die("fork: %s", strerror(errno));
        if (pid == 0) {
                measure(task, shared);
                _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || status)
                bench_die("the process that measured failed");
        memcpy(ret, shared, size);
        munmap(shared, size);
}

static int by_time(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return x < y ? -1 : x > y;
}

double bench_p50_us(int64_t *took, int count)
{
        qsort(took, (size_t)count, sizeof(*took), by_time);
        return count ? (double)took[count / 2] / 1e3 : NAN;
}

/* What the process has used between the two, for each of so many pairs. */
static void set_usage(const struct rusage *before, const struct rusage *after, double pairs, double *ret)
{
        ret[BENCH_CPU] = (bench_cpu_us(after) - bench_cpu_us(before)) / pairs;
        ret[BENCH_VOLUNTARY] = (double)(after->ru_nvcsw - before->ru_nvcsw) / pairs;
        ret[BENCH_INVOLUNTARY] = (double)(after->ru_nivcsw - before->ru_nivcsw) / pairs;
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

static void collect(struct worker *workers, int threads, uint32_t *samples, int64_t run_ms, double *ret)
{
        size_t pairs = 0, kept = 0;

        for (int i = 0; i < threads; i++) {
                memmove(samples + kept, workers[i].samples, workers[i].kept * sizeof(*samples));
                kept += workers[i].kept;
                pairs += workers[i].pairs;
        }
        qsort(samples, kept, sizeof(*samples), by_value);
        ret[BENCH_RATE] = (double)pairs * 1000 / (double)run_ms;
        ret[BENCH_P50] = ret[BENCH_P99] = ret[BENCH_LONGEST] = NAN;
        if (kept == 0)
                return; /* others have the machine */
        ret[BENCH_P50] = samples[kept / 2] / 1e3;
        ret[BENCH_P99] = samples[kept - 1 - kept / 100] / 1e3;
        ret[BENCH_LONGEST] = samples[kept - 1] / 1e3;
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

/* --- one processor --- */

void bench_server_is(pid_t server)
{
        server_pid = server;
}

static void put(pid_t who, const cpu_set_t *where)
{
        if (sched_setaffinity(who, sizeof(*where), where) < 0)
                bench_die("sched_setaffinity: %s", strerror(errno));
}

/* The n-th that is allowed, or the last. */
static cpu_set_t processor(int n)
{
        cpu_set_t one;
        int found = 0;

        CPU_ZERO(&one);
        for (int i = 0; i < CPU_SETSIZE && n >= 0; i++)
                if (CPU_ISSET(i, &allowed)) {
                        found = i;
                        n--;
                }
        CPU_SET(found, &one);
        return one;
}

void bench_share_a_core(void)
{
        if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                bench_die("sched_getaffinity: %s", strerror(errno));
        cpu_set_t first = processor(0);
        put(0, &first);
        put(server_pid, &first);
}

/* The scheduler might leave them where they are together: what comes next begins apart, as what
 * came before. */
void bench_spread_again(void)
{
        cpu_set_t second = processor(1);

        put(server_pid, &second);
        put(0, &allowed);
        put(server_pid, &allowed);
}

static void run_workers(struct run *r, const struct bench_plan *plan, struct worker *workers, uint32_t *samples,
                        double *ret)
{
        struct rusage before, after;

        pthread_barrier_init(&r->ready, NULL, (unsigned)r->threads + 1);
        pthread_barrier_init(&r->set, NULL, (unsigned)r->threads + 1);
        start_workers(r, workers, samples);
        pthread_barrier_wait(&r->ready);
        r->warm_until = bench_now() + plan->warm_ms * 1000000;
        r->run_until = r->warm_until + plan->run_ms * 1000000;
        getrusage(RUSAGE_SELF, &before);
        pthread_barrier_wait(&r->set);
        for (int i = 0; i < r->threads; i++)
                pthread_join(workers[i].thread, NULL);
        getrusage(RUSAGE_SELF, &after);
        collect(workers, r->threads, samples, plan->run_ms, ret);
        /* The warm-up costs as much a pair as the rest. */
        set_usage(&before, &after, ret[BENCH_RATE] / 1000 * (double)(plan->warm_ms + plan->run_ms), ret);
        pthread_barrier_destroy(&r->ready);
        pthread_barrier_destroy(&r->set);
}

static void run_once(const struct bench_plan *plan, const struct bench_contender *c, const char *where, int threads,
                     uint32_t *samples, double *ret)
{
        struct run r = {.contender = c, .where = where, .threads = threads};
        struct worker *workers = calloc((size_t)threads, sizeof(*workers));

        if (c->peer) {
                bench_peer_run(c->peer, "distinct", threads, plan->warm_ms, plan->run_ms, ret);
                free(workers);
                return;
        }
        if (c->same_core)
                bench_share_a_core();
        r.shared = c->open(where);
        if (!r.shared || !workers)
                bench_die("%s: cannot open %s", c->name, where);
        run_workers(&r, plan, workers, samples, ret);
        c->close(r.shared);
        if (c->same_core)
                bench_spread_again();
        free(workers);
}

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

double bench_median(const double *values, int count)
{
        double sorted[BENCH_VALUES_MAX];

        for (int i = 0; i < count; i++)
                if (isnan(values[i]))
                        return NAN;
        memcpy(sorted, values, (size_t)count * sizeof(*values));
        qsort(sorted, (size_t)count, sizeof(*sorted), by_size);
        return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* Half the distance of the worst round from the best, in percent of the median. */
static double spread(const double *values, int count)
{
        double low = values[0], high = values[0];

        for (int i = 1; i < count; i++) {
                low = values[i] < low ? values[i] : low;
                high = values[i] > high ? values[i] : high;
        }
        return 50 * (high - low) / bench_median(values, count);
}

/* The median of the rounds' ratios. */
static double ratio(const double *own, const double *base, int count)
{
        double ratios[BENCH_ROUNDS_MAX];

        for (int i = 0; i < count; i++)
                ratios[i] = own[i] / base[i];
        return bench_median(ratios, count);
}

void bench_head(const char *name, const char *title)
{
        scenario = name;
        printf("\n%s\n", title);
        printf("%8s  %-29s %10s %4s %7s %9s %7s %9s %8s %7s\n", "threads", "", "pairs/s", "+-%", "ratio", "p50 us",
               "ratio", "p99 us", "CPU us", "switch");
}

static void tell(const char *name, double (*own)[BENCH_ROUNDS_MAX], double (*base)[BENCH_ROUNDS_MAX], int rounds,
                 int threads)
{
        double middle[BENCH_FIGURES];

        bench_report_row(scenario, threads, name);
        for (int i = 0; i < BENCH_FIGURES; i++) {
                middle[i] = bench_median(own[i], rounds);
                bench_report_figure(names[i], own[i], rounds);
        }
        printf("%8d  %-29s %10.0f %4.0f %7.2f %9.1f %7.2f %9.1f %8.1f", threads, name, middle[BENCH_RATE],
               spread(own[BENCH_RATE], rounds), ratio(own[BENCH_RATE], base[BENCH_RATE], rounds), middle[BENCH_P50],
               ratio(own[BENCH_P50], base[BENCH_P50], rounds), middle[BENCH_P99], middle[BENCH_CPU]);
        if (isfinite(middle[BENCH_VOLUNTARY] + middle[BENCH_INVOLUNTARY]))
                printf(" %7.2f", middle[BENCH_VOLUNTARY] + middle[BENCH_INVOLUNTARY]);
        printf("\n");
        fflush(stdout);
}

void bench_compare(const struct bench_plan *plan, const struct bench_contender *const *contenders, int count,
                   const char *where, int threads)
{
        double all[BENCH_CONTENDERS_MAX][BENCH_FIGURES][BENCH_ROUNDS_MAX], one[BENCH_FIGURES];
        uint32_t *samples = malloc(SAMPLES_MAX * sizeof(*samples));

        if (!samples)
                bench_die("out of memory");
        for (int round = 0; round < plan->rounds; round++)
                for (int i = 0; i < count; i++) {
                        run_once(plan, contenders[i], where, threads, samples, one);
                        for (int k = 0; k < BENCH_FIGURES; k++)
                                all[i][k][round] = one[k];
                }
        for (int i = 0; i < count; i++)
                tell(contenders[i]->name, all[i], all[0], plan->rounds, threads);
        free(samples);
}
