/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib-bench: what a lock costs, beside what the machine can do, in one run. Starts a Redis of its
 * own on a loopback port and a directory of its own; both are gone afterwards. Prints figures and
 * judges nothing: doc/design/bench.md says where they should stand.
 */

#include "base/alloc.h"
#include "bench.h"
#include "redis_server.h"
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <snib/snib.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define WARM_PAIRS 200
#define COUNTED_PAIRS 1000

static const struct bench_plan normal = {
    .rounds = 5, .warm_ms = 50, .run_ms = 250, .crowd_ms = 1200, .crowd_rounds = 3};
static const struct bench_plan quick = {
    .quick = true, .rounds = 3, .warm_ms = 20, .run_ms = 60, .crowd_ms = 200, .crowd_rounds = 1};

/* What a table is made with. */
struct bed {
        struct bench_plan plan;
        struct redis_server *server; /* NULL: there is none */
        const char *redis_url;
        const char *local_url;
};

/* --- what it was measured on
 * -------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void tell_fact(const char *name, const char *format, ...)
{
        char text[400];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        printf("%s:%*s%s\n", name, 8 - (int)strlen(name), "", text);
        bench_report_fact(name, text);
}

static void tell_machine(void)
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
        tell_fact("machine", "%ld x %s, %s, %s %s", sysconf(_SC_NPROCESSORS_ONLN), model, u.machine, u.sysname,
                  u.release);
        tell_fact("build", "snib %s, %s, SQLite %s, hiredis %d.%d.%d", snib_version(), __VERSION__,
                  sqlite3_libversion(), HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

static void tell_server(struct redis_server *s)
{
        redisReply *r = redis_server_do(s, "INFO server");
        const char *version = r && r->type == REDIS_REPLY_STRING ? strstr(r->str, "redis_version:") : NULL;

        tell_fact("server", "Redis %.*s, loopback TCP, nothing persisted, in a session of its own",
                  version ? (int)strcspn(version + 14, "\r\n") : 1, version ? version + 14 : "?");
        if (r)
                freeReplyObject(r);
}

/* As script/bench was called: where it puts its files is nobody's business. */
static void tell_command(bool short_run, bool peers, char *const *names)
{
        char command[300], date[32];
        time_t now = time(NULL);
        struct tm tm;
        int used = snprintf(command, sizeof(command), "script/bench%s%s", short_run ? " --quick" : "",
                            peers ? " --peers" : "");

        for (; *names && used < (int)sizeof(command); names++)
                used += snprintf(command + used, sizeof(command) - (size_t)used, " %s", *names);
        strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &tm));
        tell_fact("date", "%s", date);
        tell_fact("command", "%s", command);
}

static void tell_method(const struct bench_plan *plan)
{
        tell_fact("method", "%d rounds of %lld ms, contenders in turn within a round, after %lld ms of warm-up",
                  plan->rounds, (long long)plan->run_ms, (long long)plan->warm_ms);
        printf(
            "         figures are medians of the rounds; +-%% is half of what lies between the worst and the best of "
            "them; ratios are\n         medians of the rounds' ratios to the first line; CPU and context switches are "
            "the process's, per pair\n");
}

/* --- tables --- */

/* At these sizes everybody; between them, only what shows the growth. */
static bool is_landmark(int threads)
{
        return threads == 1 || threads == 8 || threads == 32 || threads == 128;
}

static void compare_redis_at(const struct bed *bed, int threads)
{
        static const struct bench_contender *const growth[] = {&bench_redis_bare, &bench_snib};
        const struct bench_contender *all[BENCH_CONTENDERS_MAX] = {&bench_redis_bare, &bench_redis_hiredis, &bench_snib,
                                                                   &bench_snib_io};
        int count = 4;

        if (!is_landmark(threads)) {
                bench_compare(&bed->plan, growth, 2, bed->redis_url, threads);
                return;
        }
        if (threads == 1) {
                all[count++] = &bench_redis_looking;
                all[count++] = &bench_snib_unlooking;
                all[count++] = &bench_redis_bare_same_core;
                all[count++] = &bench_snib_same_core;
        }
        for (int i = 0; bench_peer_at(i) && threads != 8; i++)
                all[count++] = bench_peer_at(i);
        bench_compare(&bed->plan, all, count, bed->redis_url, threads);
}

static void compare_redis(const struct bed *bed)
{
        bench_head("redis", "Redis: acquire and release, nobody else wants the lock; every thread its own name. Bare "
                            "and hiredis: a connection a thread.");
        for (int threads = 1; threads <= 256; threads *= 2)
                compare_redis_at(bed, threads);
}

static void compare_busy(const struct bed *bed)
{
        bench_busy(&bed->plan, bed->redis_url);
}

static void compare_delays(const struct bed *bed)
{
        bench_delays(&bed->plan);
}

static void compare_async(const struct bed *bed)
{
        bench_async(&bed->plan, bed->redis_url);
}

static void compare_local(const struct bed *bed)
{
        static const struct bench_contender *const contenders[] = {&bench_sqlite, &bench_snib, &bench_flock};

        bench_head("local", "local: the same, on one machine");
        bench_compare(&bed->plan, contenders, 3, bed->local_url, 1);
}

static void compare_red(const struct bed *bed)
{
        bench_red(&bed->plan);
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
        double each = (double)(snib__alloc_count - before) / COUNTED_PAIRS;
        printf("%-8s %g\n", engine, each);
        bench_report_row("allocations", 1, engine);
        bench_report_figure("allocations", &each, 1);
        bench_snib.end(lock);
        bench_snib.close(client);
}

static void count_all_allocations(const struct bed *bed)
{
        printf("\nheap allocations of snib's own code in one pair, after warm-up\n");
        count_allocations("mem", "mem:bench");
        count_allocations("local", bed->local_url);
        if (bed->redis_url)
                count_allocations("redis", bed->redis_url);
}

static void compare_objects(const struct bed *bed)
{
        const struct bench_engine engines[] = {
            {"mem:", "mem:bench"}, {"local:", bed->local_url}, {"redis:", bed->redis_url}};

        bench_costs(engines, bed->redis_url ? 3 : 2);
}

static void compare_crowds(const struct bed *bed)
{
        if (bed->server)
                bench_crowd(&bed->plan, bed->redis_url, bed->server);
        bench_crowd(&bed->plan, bed->local_url, NULL);
}

static void compare_wakes(const struct bed *bed)
{
        bench_wake(&bed->plan, bed->redis_url);
}

static void compare_names(const struct bed *bed)
{
        const struct bench_engine engines[] = {
            {"mem:", "mem:bench"}, {"local:", bed->local_url}, {"redis:", bed->redis_url}};

        bench_names(&bed->plan, engines, bed->redis_url ? 3 : 2);
}

static void measure_held(const struct bed *bed)
{
        bench_held(&bed->plan, bed->server);
}

static const struct {
        const char *name;
        void (*make)(const struct bed *bed);
        bool on_redis; /* and on nothing else */
} tables[] = {{"redis", compare_redis, true},
              {"busy", compare_busy, true},
              {"delays", compare_delays, false},
              {"async", compare_async, true},
              {"local", compare_local, false},
              {"red", compare_red, true},
              {"allocations", count_all_allocations, false},
              {"objects", compare_objects, false},
              {"crowds", compare_crowds, false},
              {"wake", compare_wakes, true},
              {"names", compare_names, false},
              {"held", measure_held, true}};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static bool is_table(const char *name)
{
        for (size_t i = 0; i < TABLES; i++)
                if (!strcmp(tables[i].name, name))
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

static void make_tables(struct bed *bed, const char *peers, char *const *names)
{
        if (redis_server_unavailable())
                tell_fact("server", "%s; its part is left out", redis_server_unavailable());
        else {
                bed->server = redis_server_start(&(struct redis_server_options){.tcp = true});
                bed->redis_url = redis_server_url(bed->server);
                bench_server_is(redis_server_pid(bed->server));
                tell_server(bed->server);
        }
        tell_method(&bed->plan);
        if (bed->server && peers)
                bench_peers_start(peers, bed->redis_url);
        for (size_t i = 0; i < TABLES; i++)
                if (wanted(names, tables[i].name) && (bed->server || !tables[i].on_redis))
                        tables[i].make(bed);
        bench_peers_end();
        redis_server_free(bed->server);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static int usage(void)
{
        fprintf(stderr, "usage: snib-bench [--quick] [--json FILE] [--peers DIRECTORY] [");
        for (size_t i = 0; i < TABLES; i++)
                fprintf(stderr, "%s%s", i ? "|" : "", tables[i].name);
        fprintf(stderr, "]...\n");
        return 64;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
                                                {"json", required_argument, NULL, 'j'},
                                                {"peers", required_argument, NULL, 'p'},
                                                {0}};
        const char *tmp = getenv("TMPDIR"), *peers = NULL, *json = NULL;
        char directory[200], url[220];
        struct bed bed = {.plan = normal, .local_url = url};

        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (option == 'q')
                        bed.plan = quick;
                else if (option == 'j')
                        json = optarg;
                else if (option == 'p')
                        peers = optarg;
                else
                        return usage();
        }
        for (int i = optind; i < argc; i++)
                if (!is_table(argv[i]))
                        return usage();
        snprintf(directory, sizeof(directory), "%.150s/snib-bench-XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(directory))
                bench_die("%s: %s", directory, strerror(errno));
        snprintf(url, sizeof(url), "local:%s", directory);
        signal(SIGPIPE, SIG_IGN);
        if (json)
                bench_report_open(json);
        tell_command(bed.plan.quick, peers, argv + optind);
        tell_machine();
        make_tables(&bed, peers, argv + optind);
        bench_report_close();
        nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return 0;
}
