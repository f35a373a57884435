/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A red multilock over five Redis servers, through its public interface: all of them alive, and one dead. One caller.
 * `where` is the URLs, with a blank after each; the last is of a server that was killed, and not among the five that
 * live.
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

struct red {
        snib_client *client[NODES];
        snib_lock *lock[NODES];
        snib_multilock *multilock;
};

static void open_one(struct red *r, int node, const char *url)
{
        struct snib_options options = {.size = SNIB_OPTIONS_INIT, .unreachable_ok = 1};
        struct snib_error err = SNIB_ERROR_INIT;

        if (snib_open(&r->client[node], url, &options, &err) < 0 ||
            snib_lock_new(r->client[node], "bench", NULL, &r->lock[node], &err) < 0)
                bench_die("%s", err.text);
}

/* The five from this one on. */
static void *open_from(const char *where, int first)
{
        struct snib_multilock_options options = {.size = SNIB_MULTILOCK_OPTIONS_INIT, .red = 1};
        struct snib_error err = SNIB_ERROR_INIT;
        struct red *r = calloc(1, sizeof(*r));
        char urls[URLS_MAX], *rest = urls;

        if (!r)
                return NULL;
        snprintf(urls, sizeof(urls), "%s", where);
        for (int i = 0; i < first + NODES; i++) {
                const char *url = strsep(&rest, " ");

                if (i >= first)
                        open_one(r, i - first, url);
        }
        if (snib_multilock_new(r->lock, NODES, &options, &r->multilock, &err) < 0)
                bench_die("%s", err.text);
        return r;
}

static void *open_alive(const char *where)
{
        return open_from(where, 0);
}

static void *open_one_dead(const char *where)
{
        return open_from(where, 1);
}

static void close_all(void *shared)
{
        struct red *r = shared;

        snib_multilock_free(r->multilock);
        for (int i = 0; i < NODES; i++) {
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
        for (int i = 0; i < SERVERS; i++)
                redis_server_free(servers[i]);
}
