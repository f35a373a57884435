/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib as a contender, through its public interface: one client that all threads share, one lock of
 * its own name for each. `where` is any URL.
 */

#include "bench.h"
#include <snib/snib.h>
#include <stdio.h>

static void *open_with(const char *where, int threads, int64_t spin_us)
{
        struct snib_options options = {.size = sizeof(struct snib_options), .threads = threads, .spin_us = spin_us};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *client;

        if (snib_open(&client, where, &options, &err) < 0)
                bench_die("%s", err.text);
        return client;
}

static void *keeper_open(const char *where)
{
        return open_with(where, SNIB_THREADS_KEEPER, 0);
}

static void *unlooking_open(const char *where)
{
        return open_with(where, SNIB_THREADS_KEEPER, SNIB_SPIN_OFF);
}

static void *io_open(const char *where)
{
        return open_with(where, SNIB_THREADS_IO, 0);
}

static void client_close(void *shared)
{
        snib_close(shared);
}

static void *lock_begin(void *shared, const char *where, int thread)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_lock *lock;
        char name[64];

        (void)where;
        snprintf(name, sizeof(name), "bench:%d", thread);
        if (snib_lock_new(shared, name, NULL, &lock, &err) < 0)
                bench_die("%s", err.text);
        return lock;
}

static void lock_end(void *mine)
{
        snib_lock_free(mine);
}

static bool lock_pair(void *mine)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *grant;
        int result = snib_lock_try(mine, &grant, &err);

        if (result == 1)
                result = snib_grant_release(grant, &err);
        if (result < 0)
                fprintf(stderr, "%s\n", err.text);
        return result == 1;
}

const struct bench_contender bench_snib = {"snib, one client", keeper_open, client_close,
                                           lock_begin,         lock_end,    lock_pair};
const struct bench_contender bench_snib_unlooking = {
    "snib, without looking", unlooking_open, client_close, lock_begin, lock_end, lock_pair};
const struct bench_contender bench_snib_same_core = {"snib, same core", keeper_open, client_close,     lock_begin,
                                                     lock_end,          lock_pair,   .same_core = true};
const struct bench_contender bench_snib_io = {
    "snib, one client, I/O thread", io_open, client_close, lock_begin, lock_end, lock_pair};
