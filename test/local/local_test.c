/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening, acquiring and asking, for the tests of the local engine. Not a test: a failure of the
 * surroundings ends the program. Invariant: SQL runs in a process of its own, because a second
 * handle of the same file would take the locks of the first with it. One thread.
 */

#include "local_test.h"
#include <sqlite3.h>

int unwoken;

const char *url_of(const char *dir, const char *options)
{
        static char text[1400];

        snprintf(text, sizeof(text), "local:%s%s", dir, options);
        return text;
}

struct snib__reply acquire(struct pump *p, const char *name, struct snib__id id, int64_t lease_ms)
{
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, name, id, lease_ms);

        op.enqueue = true;
        return pump_do(p, &op);
}

struct snib__reply release(struct pump *p, const char *name, struct snib__id id)
{
        struct snib__op op = pump_op(p, SNIB__RELEASE, name, id, 0);

        return pump_do(p, &op);
}

int64_t acquire_wait(struct pump *p, const char *name, struct snib__id id, int64_t lease_ms)
{
        struct snib__reply r = acquire(p, name, id, lease_ms);
        struct pump_note note;

        while (r.status == SNIB__BUSY) {
                unwoken += !pump_try(p, SNIB__NOTE_GRANTED, 2000, &note);
                r = acquire(p, name, id, lease_ms);
        }
        if (r.status != SNIB__GRANTED)
                bail("acquire: status %d, error %d %s", (int)r.status, r.error, r.error_text ? r.error_text : "");
        return r.token;
}

int try_open(const char *url, unsigned number, struct snib_error *err)
{
        struct snib__engine_config config;
        struct snib__engine *engine = NULL;
        int r;

        pump_config(&config, url, number);
        config.timeout_ms = 500;
        *err = (struct snib_error)SNIB_ERROR_INIT;
        r = snib__engine_find("local")->open(&engine, &config, pump_now(), err);
        if (r == 0)
                engine->ops->close(engine);
        pump_config_done(&config);
        return r;
}

struct question {
        const char *dir;
        const char *sql;
};

static void answer(struct proc *me, void *arg)
{
        const struct question *q = arg;
        char path[1100];
        sqlite3 *db = NULL;
        sqlite3_stmt *s = NULL;
        const char *rest = q->sql;
        int64_t value = 0;
        int rc = SQLITE_OK;

        snprintf(path, sizeof(path), "%s/snib.db", q->dir);
        if (sqlite3_open(path, &db) != SQLITE_OK)
                bail("%s: %s", path, sqlite3_errmsg(db));
        sqlite3_busy_timeout(db, 5000);
        while (*rest && rc != SQLITE_ERROR) {
                if (sqlite3_prepare_v2(db, rest, -1, &s, &rest) != SQLITE_OK)
                        bail("%s: %s", q->sql, sqlite3_errmsg(db));
                rc = sqlite3_step(s);
                if (rc == SQLITE_ROW)
                        value = sqlite3_column_int64(s, 0);
                else if (rc != SQLITE_DONE)
                        bail("%s: %s", q->sql, sqlite3_errmsg(db));
                sqlite3_finalize(s);
        }
        sqlite3_close(db);
        proc_give(me, &value, sizeof(value));
}

int64_t ask_sql(const char *dir, const char *sql)
{
        struct question q = {dir, sql};
        struct proc p;
        int64_t value;

        proc_start(&p, answer, &q);
        if (!proc_take(&p, &value, sizeof(value), 20000) || proc_wait(&p, 20000) != 0)
                bail("no answer to %s", sql);
        return value;
}

void run_sql(const char *dir, const char *sql)
{
        (void)ask_sql(dir, sql);
}
