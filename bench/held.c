/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Held locks: what it costs to keep so many. Each size lives in a process of its own, so that its
 * memory and processor time are its own: it takes so many locks of one client, and then does
 * nothing for one round, a third of the lease, in which the watchdog renews each of them once. What
 * the server did meanwhile it counts itself.
 *
 * Not measured: the lock objects, which are the program's; see names.c.
 */

#include "bench.h"
#include "redis_server.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEASE_MS 30000
/* Requests under way while the locks are taken. */
#define WINDOW 128

/* Shared with the process that measures. */
struct outcome {
        double bytes; /* resident, for each hold */
        double client_mib;
        double core_percent;
        double round_server_ms;
        double scripts;
        double long_scripts;
};

/* Taking all. */
struct taking {
        pthread_mutex_t lock;
        pthread_cond_t answered;
        int under_way;
        int held;
};

static void taken(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct taking *t = arg;

        (void)grant;
        if (result != 1)
                bench_die("a lock was not taken: %s", err ? err->text : "somebody holds it");
        pthread_mutex_lock(&t->lock);
        t->under_way--;
        t->held++;
        pthread_cond_signal(&t->answered);
        pthread_mutex_unlock(&t->lock);
}

/* Waits until no more than `most` answers are to come. */
static void await(struct taking *t, int most)
{
        pthread_mutex_lock(&t->lock);
        while (t->under_way > most)
                pthread_cond_wait(&t->answered, &t->lock);
        pthread_mutex_unlock(&t->lock);
}

static void take_all(snib_lock **locks, int count)
{
        struct taking t = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};
        struct snib_error err = SNIB_ERROR_INIT;

        for (int i = 0; i < count; i++) {
                await(&t, WINDOW - 1);
                pthread_mutex_lock(&t.lock);
                t.under_way++;
                pthread_mutex_unlock(&t.lock);
                if (snib_lock_acquire_async(locks[i], 0, taken, &t, &err) < 0)
                        bench_die("%s", err.text);
        }
        await(&t, 0);
}

static snib_lock **make_locks(snib_client *client, int count)
{
        struct snib_lock_options options = {.size = sizeof(struct snib_lock_options), .lease_ms = LEASE_MS};
        snib_lock **locks = calloc((size_t)count, sizeof(*locks));
        struct snib_error err = SNIB_ERROR_INIT;
        char name[32];

        for (int i = 0; locks && i < count; i++) {
                snprintf(name, sizeof(name), "bench:held:%d", i);
                if (snib_lock_new(client, name, &options, &locks[i], &err) < 0)
                        bench_die("%s", err.text);
        }
        if (!locks)
                bench_die("out of memory");
        return locks;
}

static void tell_server(struct redis_server *server, const char *command)
{
        redisReply *r = redis_server_do(server, command);

        if (!r || r->type == REDIS_REPLY_ERROR)
                bench_die("%s: %s", command, r ? r->str : "no answer");
        freeReplyObject(r);
}

/* Calls of scripts, and the time they took, since the figures were reset. */
static void count_scripts(struct redis_server *server, struct outcome *ret)
{
        redisReply *r = redis_server_do(server, "INFO commandstats");
        long long calls, us, sum = 0;

        if (!r || r->type != REDIS_REPLY_STRING)
                bench_die("the server does not say what it did");
        for (const char *at = r->str; (at = strstr(at, "cmdstat_eval")); at++)
                if (sscanf(at, "cmdstat_eval:calls=%lld,usec=%lld", &calls, &us) == 2 ||
                    sscanf(at, "cmdstat_evalsha:calls=%lld,usec=%lld", &calls, &us) == 2) {
                        ret->scripts += (double)calls;
                        sum += us;
                }
        freeReplyObject(r);
        ret->round_server_ms = (double)sum / 1e3;
        ret->long_scripts = (double)redis_server_int(server, "SLOWLOG LEN");
}

/* In a process of its own. */
static void measure(struct redis_server *server, int count, struct outcome *ret)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *client;

        if (snib_open(&client, redis_server_url(server), NULL, &err) < 0)
                bench_die("%s", err.text);
        snib_lock **locks = make_locks(client, count);
        double before = bench_resident();
        take_all(locks, count);
        tell_server(server, "CONFIG RESETSTAT");
        tell_server(server, "SLOWLOG RESET");
        double cpu = bench_own_cpu_us();
        int64_t start = bench_now();
        nanosleep(&(struct timespec){.tv_sec = LEASE_MS / 3 / 1000}, NULL);
        ret->core_percent = (bench_own_cpu_us() - cpu) / ((double)(bench_now() - start) / 1e3) * 100;
        count_scripts(server, ret);
        ret->bytes = (bench_resident() - before) / count;
        ret->client_mib = (bench_resident() - before) / 1048576;
}

struct task {
        struct redis_server *server;
        int count;
};

static void measure_task(const void *task, void *ret)
{
        const struct task *t = task;

        measure(t->server, t->count, ret);
}

static struct outcome run(struct redis_server *server, int count)
{
        struct outcome o;

        bench_apart(measure_task, &(struct task){server, count}, &o, sizeof(o));
        tell_server(server, "FLUSHALL"); /* its locks stayed behind */
        return o;
}

static void tell(int count, const struct outcome *o)
{
        printf("%9d %12.0f %12.1f %12.2f %14.1f %10.0f %12.0f\n", count, o->bytes, o->client_mib, o->core_percent,
               o->round_server_ms, o->scripts, o->long_scripts);
        fflush(stdout);
        bench_report_row("held", count, "snib");
        bench_report_figure("bytes", &o->bytes, 1);
        bench_report_figure("client_mib", &o->client_mib, 1);
        bench_report_figure("core_percent", &o->core_percent, 1);
        bench_report_figure("round_server_ms", &o->round_server_ms, 1);
        bench_report_figure("scripts", &o->scripts, 1);
        bench_report_figure("long_scripts", &o->long_scripts, 1);
}

void bench_held(const struct bench_plan *plan, struct redis_server *server)
{
        static const int counts[] = {1000, 10000, 100000};

        printf("\nHeld locks of one client, lease 30 s: a round of renewals\n"
               "%9s %12s %12s %12s %14s %10s %12s\n",
               "locks", "bytes each", "client MiB", "% of a core", "ms of server", "scripts", "over 1 ms");
        tell_server(server, "CONFIG SET slowlog-log-slower-than 1000");
        /* A round lasts ten seconds: where there is no time, the largest alone. */
        for (size_t i = plan->quick ? 2 : 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                struct outcome o = run(server, counts[i]);

                tell(counts[i], &o);
        }
}
