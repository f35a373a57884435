/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What local: is held against: a pair of bare SQLite transactions in WAL mode with the engine's
 * pragmas (one row in, one row out), and a pair of flock(2), which has no lease, no owner, no token
 * and no waiting line. `where` is local:DIRECTORY, as for snib.
 */

#include "bench.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static char shared_nothing;

static void *open_nothing(const char *where)
{
        (void)where;
        return &shared_nothing;
}

static void close_nothing(void *shared)
{
        (void)shared;
}

static void path_in(const char *where, const char *file, int thread, char *ret, size_t size)
{
        snprintf(ret, size, "%s/%s%d", where + strlen("local:"), file, thread);
}

/* --- SQLite --- */

enum { BEGIN, INSERT, DELETE, COMMIT, STATEMENTS };

struct lite {
        sqlite3 *db;
        sqlite3_stmt *statement[STATEMENTS];
};

static void *lite_begin(void *shared, const char *where, int thread)
{
        static const char *const texts[STATEMENTS] = {"BEGIN IMMEDIATE",
                                                      "INSERT INTO hold VALUES('bench:0', x'00', 1, 2, 3)",
                                                      "DELETE FROM hold WHERE name = 'bench:0'", "COMMIT"};
        struct lite *l = calloc(1, sizeof(*l));
        char path[512];

        (void)shared;
        path_in(where, "bare.db", thread, path, sizeof(path));
        if (!l || sqlite3_open(path, &l->db) != SQLITE_OK)
                bench_die("SQLite cannot open %s", path);
        if (sqlite3_exec(l->db,
                         "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
                         "CREATE TABLE IF NOT EXISTS hold(name TEXT PRIMARY KEY, id BLOB, token INT, since INT, until "
                         "INT) WITHOUT ROWID",
                         NULL, NULL, NULL) != SQLITE_OK)
                bench_die("SQLite: %s", sqlite3_errmsg(l->db));
        for (int i = 0; i < STATEMENTS; i++)
                if (sqlite3_prepare_v2(l->db, texts[i], -1, &l->statement[i], NULL) != SQLITE_OK)
                        bench_die("SQLite: %s", sqlite3_errmsg(l->db));
        return l;
}

static void lite_end(void *mine)
{
        struct lite *l = mine;

        for (int i = 0; i < STATEMENTS; i++)
                sqlite3_finalize(l->statement[i]);
        sqlite3_close(l->db);
        free(l);
}

static bool step(struct lite *l, int i)
{
        bool done = sqlite3_step(l->statement[i]) == SQLITE_DONE;

        sqlite3_reset(l->statement[i]);
        return done;
}

static bool lite_pair(void *mine)
{
        return step(mine, BEGIN) && step(mine, INSERT) && step(mine, COMMIT) && step(mine, BEGIN) &&
               step(mine, DELETE) && step(mine, COMMIT);
}

const struct bench_contender bench_sqlite = {
    "bare SQLite transactions", open_nothing, close_nothing, lite_begin, lite_end, lite_pair};

/* --- flock --- */

static void *flock_begin(void *shared, const char *where, int thread)
{
        int *fd = malloc(sizeof(*fd));
        char path[512];

        (void)shared;
        path_in(where, "flock", thread, path, sizeof(path));
        if (!fd)
                return NULL;
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (*fd < 0)
                bench_die("cannot open %s", path);
        return fd;
}

static void flock_end(void *mine)
{
        close(*(int *)mine);
        free(mine);
}

static bool flock_pair(void *mine)
{
        return !flock(*(int *)mine, LOCK_EX) && !flock(*(int *)mine, LOCK_UN);
}

const struct bench_contender bench_flock = {"flock(2)",  open_nothing, close_nothing,
                                            flock_begin, flock_end,    flock_pair};
