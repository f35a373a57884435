/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib-bench: what a lock costs, beside what the machine can do, in one run. Starts a Redis of its own on a loopback
 * port and a directory of its own; both are gone afterwards. Prints figures and judges nothing: doc/design/bench.md
 * says where they should stand.
 */

#include "base/alloc.h"
#include "bench.h"
#include "redis_server.h"
#include <errno.h>
#include <ftw.h>
#include <snib/snib.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define WARM_PAIRS 200
#define COUNTED_PAIRS 1000

static const struct bench_plan normal = {.rounds = 7, .warm_ms = 80, .run_ms = 350, .crowd_ms = 1200};
static const struct bench_plan quick = {.rounds = 3, .warm_ms = 40, .run_ms = 120, .crowd_ms = 300};

static void print_machine(void)
{
        struct utsname u;
        char line[256] = "", model[200] = "unknown processor";
        FILE *f = fopen("/proc/cpuinfo", "re");

        while (f && fgets(line, sizeof(line), f))
                if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
                        snprintf(model, sizeof(model), "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"),
                                 strchr(line, ':') + 2);
                        break;
                }
        if (f)
                fclose(f);
        uname(&u);
        printf("machine: %ld x %s, %s %s\n", sysconf(_SC_NPROCESSORS_ONLN), model, u.sysname, u.release);
        printf("build:   snib %s, %s, SQLite %s, hiredis %d.%d.%d\n", snib_version(), __VERSION__, sqlite3_libversion(),
               HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

static void print_server(struct redis_server *s)
{
        redisReply *r = redis_server_do(s, "INFO server");
        const char *version = r && r->type == REDIS_REPLY_STRING ? strstr(r->str, "redis_version:") : NULL;

        printf("server:  Redis %.*s, loopback TCP, nothing persisted, in a session of its own\n",
               version ? (int)strcspn(version + 14, "\r\n") : 1, version ? version + 14 : "?");
        if (r)
                freeReplyObject(r);
}

static void compare_redis(const struct bench_plan *plan, const char *url)
{
        static const struct bench_contender *const contenders[] = {&bench_redis_bare, &bench_redis_hiredis, &bench_snib,
                                                                   &bench_snib_io};
        static const int threads[] = {1, 8, 32, 128};

        bench_head("Redis: acquire and release, nobody else wants the lock; every thread its own name. Bare and "
                   "hiredis: a connection a thread.");
        for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
                bench_compare(plan, contenders, 4, url, threads[i]);
}

static void compare_local(const struct bench_plan *plan, const char *url)
{
        static const struct bench_contender *const contenders[] = {&bench_sqlite, &bench_snib, &bench_flock};

        bench_head("local: the same, on one machine");
        bench_compare(plan, contenders, 3, url, 1);
}

/* Allocations through the one way to the heap that snib's own code has. */
static void count_allocations(const char *engine, const char *url)
{
        void *client = bench_snib.open(url);
        void *lock = bench_snib.begin(client, url, 0);
        uint64_t before = 0;

        for (int i = 0; i < WARM_PAIRS + COUNTED_PAIRS; i++) {
                if (i == WARM_PAIRS)
                        before = snib__alloc_count;
                if (!bench_snib.pair(lock))
                        bench_die("a pair failed on %s", url);
        }
        printf("%-8s %g\n", engine, (double)(snib__alloc_count - before) / COUNTED_PAIRS);
        bench_snib.end(lock);
        bench_snib.close(client);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static void compare_objects(const char *local_url, const char *redis_url)
{
        const struct bench_engine engines[] = {{"mem:", "mem:bench"}, {"local:", local_url}, {"redis:", redis_url}};

        bench_costs(engines, redis_url ? 3 : 2);
}

static bool is_table(const char *name)
{
        static const char *const tables[] = {"redis", "local", "red", "allocations", "objects", "crowds"};

        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                if (!strcmp(tables[i], name))
                        return true;
        return false;
}

/* Those that were asked for by name; all if none was. */
static bool wanted(char *const *names, const char *table)
{
        bool found = !*names;

        for (; *names; names++)
                found |= !strcmp(*names, table);
        return found;
}

static void compare_crowds(const struct bench_plan *plan, const char *local_url, struct redis_server *server)
{
        if (server)
                bench_crowd(plan, redis_server_url(server), server);
        bench_crowd(plan, local_url, NULL);
}

static void count_all_allocations(const char *local_url, const char *redis_url)
{
        printf("\nheap allocations of snib's own code in one pair, after warm-up\n");
        count_allocations("mem", "mem:bench");
        count_allocations("local", local_url);
        if (redis_url)
                count_allocations("redis", redis_url);
}

static void run_all(const struct bench_plan *plan, const char *local_url, char *const *names)
{
        struct redis_server *server = NULL;
        const char *redis_url = NULL;

        if (redis_server_unavailable())
                printf("server:  %s; its part is left out\n", redis_server_unavailable());
        else {
                server = redis_server_start(&(struct redis_server_options){.tcp = true});
                redis_url = redis_server_url(server);
                print_server(server);
        }
        printf("method:  %d rounds of %lld ms, contenders in turn within a round, after %lld ms of warm-up; medians of "
               "the rounds;\n"
               "         ratios are medians of the rounds' ratios to the first line; CPU is this process's, per pair\n",
               plan->rounds, (long long)plan->run_ms, (long long)plan->warm_ms);
        if (server && wanted(names, "redis"))
                compare_redis(plan, redis_url);
        if (wanted(names, "local"))
                compare_local(plan, local_url);
        if (server && wanted(names, "red"))
                bench_red(plan);
        if (wanted(names, "allocations"))
                count_all_allocations(local_url, redis_url);
        if (wanted(names, "objects"))
                compare_objects(local_url, redis_url);
        if (wanted(names, "crowds"))
                compare_crowds(plan, local_url, server);
        redis_server_free(server);
}

int main(int argc, char **argv)
{
        const char *tmp = getenv("TMPDIR");
        bool short_run = argc > 1 && !strcmp(argv[1], "--quick");
        char directory[200], url[220];

        for (int i = 1 + short_run; i < argc; i++)
                if (!is_table(argv[i])) {
                        fprintf(stderr,
                                "usage: snib-bench [--quick] [redis|local|red|allocations|objects|crowds]...\n");
                        return 64;
                }
        snprintf(directory, sizeof(directory), "%.150s/snib-bench-XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(directory))
                bench_die("%s: %s", directory, strerror(errno));
        snprintf(url, sizeof(url), "local:%s", directory);
        printf("command: script/bench");
        for (int i = 1; i < argc; i++)
                printf(" %s", argv[i]);
        printf("\n");
        print_machine();
        run_all(short_run ? &quick : &normal, url, argv + 1 + short_run);
        nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return 0;
}
