/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A red multilock over five Redis servers, through its public interface: all of them alive, and one
 * dead. One caller. `where` is the URLs, with a blank after each; the last is of a server that was
 * killed, and not among the five that live. And its hand-over from one process to another, beside
 * that of a lock of one server.
 */

#include "bench.h"
#include "redis_server.h"
#include <snib/snib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 5
#define SERVERS (NODES + 1)
#define URLS_MAX 1024
#define WAIT_MS 30000

struct red {
        int nodes; /* 1: a plain lock, and no multilock */
        snib_client *client[NODES];
        snib_lock *lock[NODES];
        snib_multilock *multilock;
};

static void open_one(struct red *r, int node, const char *url)
{
        struct snib_options options = {.size = sizeof(struct snib_options), .unreachable_ok = 1};
        struct snib_error err = SNIB_ERROR_INIT;

        if (snib_open(&r->client[node], url, &options, &err) < 0 ||
            snib_lock_new(r->client[node], "bench", NULL, &r->lock[node], &err) < 0)
                bench_die("%s", err.text);
}

/* So many from this one on. */
static struct red *open_some(const char *where, int first, int nodes)
{
        struct snib_multilock_options options = {.size = sizeof(struct snib_multilock_options), .red = 1};
        struct snib_error err = SNIB_ERROR_INIT;
        struct red *r = calloc(1, sizeof(*r));
        char urls[URLS_MAX], *rest = urls;

        if (!r)
                return NULL;
        r->nodes = nodes;
        snprintf(urls, sizeof(urls), "%s", where);
        for (int i = 0; i < first + nodes; i++) {
                const char *url = strsep(&rest, " ");

                if (i >= first)
                        open_one(r, i - first, url);
        }
        if (nodes > 1 && snib_multilock_new(r->lock, (size_t)nodes, &options, &r->multilock, &err) < 0)
                bench_die("%s", err.text);
        return r;
}

static void *open_alive(const char *where)
{
        return open_some(where, 0, NODES);
}

static void *open_one_dead(const char *where)
{
        return open_some(where, 1, NODES);
}

static void close_all(void *shared)
{
        struct red *r = shared;

        snib_multilock_free(r->multilock);
        for (int i = 0; i < r->nodes; i++) {
                snib_lock_free(r->lock[i]);
                snib_close(r->client[i]);
        }
        free(r);
}

static void *begin(void *shared, const char *where, int thread)
{
        (void)where, (void)thread;
        return shared;
}

static void end(void *mine)
{
        (void)mine;
}

static bool pair(void *mine)
{
        struct red *r = mine;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant;
        int result = snib_multilock_acquire(r->multilock, 1000, &grant, &err);

        if (result == 1)
                result = snib_multigrant_release(grant, &err);
        if (result < 0)
                fprintf(stderr, "%s\n", err.text);
        return result == 1;
}

static const struct bench_contender alive = {"five alive", open_alive, close_all, begin, end, pair};
static const struct bench_contender one_dead = {"one of five dead", open_one_dead, close_all, begin, end, pair};

/* --- from one process to another --- */

struct turn {
        struct red *red;
        snib_multigrant *all;
        snib_grant *one;
};

static void turn_wait(void *mine)
{
        struct turn *t = mine;
        struct snib_error err = SNIB_ERROR_INIT;

        if ((t->red->multilock ? snib_multilock_acquire(t->red->multilock, WAIT_MS, &t->all, &err)
                               : snib_lock_acquire(t->red->lock[0], WAIT_MS, &t->one, &err)) != 1)
                bench_die("nobody handed it over in %d ms: %s", WAIT_MS, err.text);
}

static void turn_release(void *mine)
{
        struct turn *t = mine;
        struct snib_error err = SNIB_ERROR_INIT;

        if ((t->red->multilock ? snib_multigrant_release(t->all, &err) : snib_grant_release(t->one, &err)) != 1)
                bench_die("%s", err.text);
}

static void serve(FILE *in, FILE *out, const char *where, int nodes)
{
        struct turn t = {.red = open_some(where, 0, nodes)};

        bench_wake_serve(&(struct bench_wake_holder){&t, turn_wait, turn_release}, in, out);
        close_all(t.red);
}

static void one_main(FILE *in, FILE *out, const char *where)
{
        serve(in, out, where, 1);
}

static void three_main(FILE *in, FILE *out, const char *where)
{
        serve(in, out, where, 3);
}

static void five_main(FILE *in, FILE *out, const char *where)
{
        serve(in, out, where, NODES);
}

static void hand_over(const struct bench_plan *plan, const char *where)
{
        static const struct {
                const char *name;
                bench_peer_main *serve;
        } systems[] = {{"one server, a plain lock", one_main}, {"red, three", three_main}, {"red, five", five_main}};
        enum { SYSTEMS = sizeof(systems) / sizeof(systems[0]) };
        double took[SYSTEMS][BENCH_ROUNDS_MAX], ratios[BENCH_ROUNDS_MAX];
        struct bench_peer *pair[SYSTEMS][2];

        for (int k = 0; k < SYSTEMS; k++) {
                for (int i = 0; i < 2; i++)
                        pair[k][i] = bench_peer_fork(systems[k].name, systems[k].serve, where);
                (void)bench_wake_round(pair[k], plan->warm_ms);
        }
        for (int round = 0; round < plan->rounds; round++)
                for (int k = 0; k < SYSTEMS; k++)
                        took[k][round] = bench_wake_round(pair[k], plan->run_ms);
        for (int k = 0; k < SYSTEMS; k++)
                for (int i = 0; i < 2; i++)
                        bench_peer_end(pair[k][i]);
        printf("\nRed hand-over: from the release in one process to the grant of its only waiter in another\n"
               "%-24s %10s %8s\n",
               "", "p50 us", "ratio");
        for (int k = 0; k < SYSTEMS; k++) {
                for (int round = 0; round < plan->rounds; round++)
                        ratios[round] = took[k][round] / took[0][round];
                printf("%-24s %10.1f %8.2f\n", systems[k].name, bench_median(took[k], plan->rounds),
                       bench_median(ratios, plan->rounds));
                bench_report_row("red hand-over", 1, systems[k].name);
                bench_report_figure("p50_us", took[k], plan->rounds);
        }
}

void bench_red(const struct bench_plan *plan)
{
        static const struct bench_contender *const contenders[] = {&alive, &one_dead};
        struct redis_server *servers[SERVERS];
        char where[URLS_MAX] = "";
        size_t used = 0;

        for (int i = 0; i < SERVERS; i++) {
                servers[i] = redis_server_start(&(struct redis_server_options){.tcp = true});
                used += (size_t)snprintf(where + used, sizeof(where) - used, "%s ", redis_server_url(servers[i]));
        }
        redis_server_kill(servers[NODES]);
        bench_head("red",
                   "Red multilock on five Redis servers: acquire and release at a majority, nobody else wants it");
        bench_compare(plan, contenders, 2, where, 1);
        hand_over(plan, where);
        for (int i = 0; i < SERVERS; i++)
                redis_server_free(servers[i]);
}
