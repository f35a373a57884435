/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib demo: a flash sale that goes wrong without a lock and right with one, on this machine's file
 * and on a private Redis, and then one snib run that waits behind another. Nothing is acted: every
 * figure is counted, and the exit code is 0 only if they are as they should be. Everything lives in
 * a private temporary directory and goes with the demo.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include "shop.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THINK_US 200
#define TRIES 3 /* of the run without a lock, with ten times the thinking each */
#define REDIS_START_MS 5000

struct demo {
        char directory[64];
        char local_url[128];
        pid_t redis; /* 0: none */
        char redis_url[128];
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
        interrupted = number;
}

/* ---- small tools ---- */

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static void become_child(pid_t parent)
{
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
                _exit(EXIT_FAILURE_OWN);
}

static void end_process(pid_t *pid)
{
        if (*pid <= 0)
                return;
        kill(*pid, SIGTERM);
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
                ;
        *pid = 0;
}

/* ---- the sale ---- */

static void print_result(const char *what, const struct shop_result *r, bool exact)
{
        char took[SNIB__DURATION_MAX];

        printf("  %-26s stock %d, sold %3d  %s%-9s%s in %s\n", what, SNIB__SHOP_STOCK, r->sold, snib__out_bold(stdout),
               exact                        ? "exact"
               : r->sold > SNIB__SHOP_STOCK ? "OVERSOLD"
                                            : "WRONG",
               snib__out_plain(stdout), snib__out_duration(r->took_ms, took));
        fflush(stdout);
}

/* 0, or an exit code after a message. */
static int sale_unlocked(const struct demo *d)
{
        struct shop_result r;
        int think = THINK_US;

        for (int i = 0; i < TRIES && !interrupted; i++, think *= 10) {
                if (snib__shop_sell(d->directory, NULL, think, &r) < 0)
                        return snib__out_fail(EXIT_FAILURE_OWN, NULL, "demo: %s: %s", d->directory, strerror(errno));
                print_result("without a lock", &r, r.sold == SNIB__SHOP_STOCK);
                if (r.sold > SNIB__SHOP_STOCK)
                        return 0;
                printf("  luck; once more, with more time between reading and writing\n");
        }
        return snib__out_fail(1, NULL, "demo: without a lock nothing went wrong here, so this proves nothing");
}

static int sale_locked(const struct demo *d, const char *what, const char *url)
{
        struct shop_result r;

        if (snib__shop_sell(d->directory, url, THINK_US, &r) < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, NULL, "demo: %s: %s", d->directory, strerror(errno));
        bool exact = r.sold == SNIB__SHOP_STOCK && r.failed == 0;
        print_result(what, &r, exact);
        return exact ? 0 : snib__out_fail(1, NULL, "demo: under a lock the count must be exact");
}

/* ---- a private Redis ---- */

static bool in_path(const char *name, char *ret, size_t size)
{
        char path[4096];
        char *rest = NULL;
        const char *given = getenv("PATH");

        snprintf(path, sizeof(path), "%s:/usr/bin:/usr/sbin", given ? given : "");
        for (char *dir = strtok_r(path, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest))
                if (snprintf(ret, size, "%s/%s", dir, name) < (int)size && access(ret, X_OK) == 0)
                        return true;
        return false;
}

/* A redis-server: the one given, or one in PATH. redis-check-rdb is the same program and becomes
 * the server when it is called redis-server. */
static bool find_redis(const struct options *o, char *ret, size_t size)
{
        static const char *const names[] = {"redis-server", "valkey-server", "redis-check-rdb"};
        const char *given = o->redis_server ? o->redis_server : getenv("SNIB_REDIS_SERVER");

        if (given && *given)
                return snprintf(ret, size, "%s", given) < (int)size && access(ret, X_OK) == 0;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (in_path(names[i], ret, size))
                        return true;
        return false;
}

static void become_redis(const struct demo *d, const char *binary, pid_t parent)
{
        char socket[128];
        char log[128];

        become_child(parent);
        snprintf(socket, sizeof(socket), "%s/redis.sock", d->directory);
        snprintf(log, sizeof(log), "%s/redis.log", d->directory);
        execl(binary, "redis-server", "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--save", "",
              "--appendonly", "no", "--dir", d->directory, "--logfile", log, "--daemonize", "no", (char *)NULL);
        _exit(EXIT_NOT_FOUND);
}

/* True once it serves. */
static bool redis_answers(struct demo *d)
{
        struct timespec pause = {.tv_nsec = 5000000};
        int64_t until = snib__clock_boot() + REDIS_START_MS * (int64_t)1000000;

        while (!interrupted && snib__clock_boot() < until) {
                snib_client *client = NULL;
                int r = snib_open(&client, d->redis_url, NULL, NULL);
                snib_close(client);
                if (r >= 0)
                        return true;
                if (waitpid(d->redis, NULL, WNOHANG) == d->redis) {
                        d->redis = 0;
                        return false;
                }
                nanosleep(&pause, NULL); /* nothing tells when another process listens */
        }
        return false;
}

static int sale_redis(struct demo *d, const struct options *o)
{
        char binary[4200];
        pid_t parent = getpid();

        if (!find_redis(o, binary, sizeof(binary))) {
                if (o->redis_server)
                        return snib__out_fail(EXIT_USAGE, NULL, "--redis-server: cannot execute it");
                printf("  %-26s skipped: no redis-server in PATH (--redis-server=PATH)\n", "with a lock, redis");
                return 0;
        }
        snprintf(d->redis_url, sizeof(d->redis_url), "redis+unix://%s/redis.sock", d->directory);
        fflush(NULL);
        d->redis = fork();
        if (d->redis == 0)
                become_redis(d, binary, parent);
        if (d->redis < 0 || !redis_answers(d)) {
                char safe[SNIB__SAFE_MAX];
                return snib__out_fail(EXIT_FAILURE_OWN, NULL, "demo: %s does not start",
                                      snib__out_safe(binary, strlen(binary), safe, sizeof(safe)));
        }
        return sale_locked(d, "with a lock, redis", d->redis_url);
}

/* ---- one waits behind the other ---- */

/* Starts `snib run` on the demo's engine; its stdout goes to `out` unless that is -1. */
static pid_t start_run(const struct demo *d, int out, const char *progress, const char *label, const char *script)
{
        pid_t parent = getpid();

        fflush(NULL);
        pid_t pid = fork();
        if (pid != 0)
                return pid;
        become_child(parent);
        if (out >= 0)
                (void)dup2(out, STDOUT_FILENO);
        execl("/proc/self/exe", "snib", "run", "--url", d->local_url, "--progress", progress, "--label", label, "-c",
              script, "shop", (char *)NULL);
        _exit(EXIT_NOT_FOUND);
}

static int wait_ok(pid_t pid)
{
        int status = -1;

        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status == 0 ? 0 : -1;
}

static int story(const struct demo *d)
{
        int ends[2];
        char byte;

        printf("\nOne waits for the other:\n\n  $ snib run --label restock shop -- sleep 1.4 &\n"
               "  $ snib run shop -- echo \"the shelves are full\"\n");
        if (pipe2(ends, O_CLOEXEC) < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, NULL, "demo: pipe: %s", strerror(errno));
        pid_t first = start_run(d, ends[1], "never", "restock", "echo; exec sleep 1.4");
        close(ends[1]);
        ssize_t n = read(ends[0], &byte, 1); /* it holds the lock now, or never will */
        pid_t second = n == 1 ? start_run(d, -1, "always", "shop", "echo \"the shelves are full\"") : -1;
        int wrong = second < 0 || wait_ok(second);
        wrong |= first < 0 || wait_ok(first);
        close(ends[0]);
        return wrong ? snib__out_fail(1, NULL, "demo: a snib run failed") : 0;
}

static void next_steps(void)
{
        const char *me = program_invocation_name;

        printf("\nNext, type:\n\n"
               "  %s run job -- sleep 20 &\n"
               "  %s run -n job -- echo hello; echo \"exit $?\"\n"
               "  %s ls\n",
               me, me, me);
}

static int play(struct demo *d, const struct options *o)
{
        int wrong;

        printf("%d items in stock, %d processes sell them. Each sale reads the stock from a file, takes %.1f ms,\n"
               "and writes back one less.\n\n",
               SNIB__SHOP_STOCK, SNIB__SHOP_WORKERS, THINK_US / 1000.0);
        wrong = sale_unlocked(d);
        if (!wrong)
                wrong = sale_locked(d, "with a lock, local", d->local_url);
        if (!wrong)
                wrong = sale_redis(d, o);
        if (!wrong)
                wrong = story(d);
        if (!wrong)
                next_steps();
        return interrupted ? EXIT_SIGNAL + interrupted : wrong;
}

int snib__cmd_demo(const struct options *o, int argc, char **argv)
{
        struct demo d = {.redis = 0};
        struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: waits end */
        const char *tmp = getenv("TMPDIR");

        (void)argv;
        if (argc > 0)
                return snib__opt_wrong(snib__opt_command("demo"), "takes no argument");
        snprintf(d.directory, sizeof(d.directory), "%s/snib-demo-XXXXXX",
                 tmp && *tmp == '/' && strlen(tmp) < 40 ? tmp : "/tmp");
        if (!mkdtemp(d.directory))
                return snib__out_fail(EXIT_PERMISSION, NULL, "demo: %s: %s", d.directory, strerror(errno));
        snprintf(d.local_url, sizeof(d.local_url), "local:%s/locks", d.directory);
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        int exit = play(&d, o);
        end_process(&d.redis);
        (void)nftw(d.directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        return exit;
}
