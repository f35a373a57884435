/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The SQL statements that run after open: their text, prepared once and kept, and what binds to
 * them and reads from them. Not what rows mean: that is known to those who run them. Called with
 * store.lock held.
 */

#include "engine/local/rows.h"
#include <string.h>

/* The columns of whoever sits or waits, first in every row; those of snib__number follow. */
#define SEAT "id,host,pid,label,since_ms,expires_ms"
#define SEAT_ROW SEAT ",kind,number,token,claimed"
#define WAITER_ROW SEAT ",kind,number,latest,observer,lease_ms"
#define OBJECT_ROW SEAT ",kind,held_token,flags,token"
#define CLIENT "uuid,slot,pid,pid_namespace,host,label"

static const char *const sql[SNIB__SQL_COUNT] = {
    [SNIB__SQL_BEGIN] = "BEGIN",
    [SNIB__SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SNIB__SQL_COMMIT] = "COMMIT",
    [SNIB__SQL_ROLLBACK] = "ROLLBACK",
    [SNIB__SQL_OBJECT_GET] = "SELECT " OBJECT_ROW " FROM object WHERE name=?1",
    [SNIB__SQL_OBJECT_ADD] = "INSERT INTO object(" OBJECT_ROW ",name) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    [SNIB__SQL_OBJECT_SET] =
        ("UPDATE object SET id=?1,host=?2,pid=?3,label=?4,since_ms=?5,expires_ms=?6,kind=?7,held_token=?8,flags=?9,"
         "token=?10 WHERE name=?11"),
    [SNIB__SQL_OBJECT_LIST] = "SELECT name FROM object WHERE kind<>-1 ORDER BY name",
    [SNIB__SQL_SEAT_GET] = "SELECT " SEAT_ROW ",seq FROM seat WHERE name=?1 ORDER BY seq LIMIT ?2",
    [SNIB__SQL_SEAT_ADD] = "INSERT INTO seat(" SEAT_ROW ",name,seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
    [SNIB__SQL_SEAT_SET] =
        "UPDATE seat SET expires_ms=?6,kind=?7,number=?8,token=?9,claimed=?10 WHERE name=?11 AND seq=?12",
    [SNIB__SQL_SEAT_REMOVE] = "DELETE FROM seat WHERE name=?1 AND seq=?2",
    [SNIB__SQL_WAITER_GET] = "SELECT " WAITER_ROW ",seq FROM waiter WHERE name=?1 ORDER BY seq LIMIT ?2",
    [SNIB__SQL_WAITER_LAST] = "SELECT " WAITER_ROW ",seq FROM waiter WHERE name=?1 ORDER BY seq DESC LIMIT ?2",
    [SNIB__SQL_WAITER_ADD] =
        "INSERT INTO waiter(" WAITER_ROW ",name,seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
    [SNIB__SQL_WAITER_SET] =
        ("UPDATE waiter SET expires_ms=?6,kind=?7,number=?8,latest=?9,observer=?10,lease_ms=?11 WHERE name=?12 AND "
         "seq=?13"),
    [SNIB__SQL_WAITER_REMOVE] = "DELETE FROM waiter WHERE name=?1 AND seq=?2",
    [SNIB__SQL_MEMORY_GET] = "SELECT expires_ms,value,what FROM memory WHERE name=?1 AND id=?2",
    [SNIB__SQL_MEMORY_PUT] = "INSERT OR REPLACE INTO memory(name,id,expires_ms,value,what) VALUES(?1,?2,?3,?4,?5)",
    [SNIB__SQL_MEMORY_REMOVE] = "DELETE FROM memory WHERE name=?1 AND id=?2",
    [SNIB__SQL_MEMORY_PRUNE] =
        ("DELETE FROM memory WHERE name=?1 AND expires_ms<(SELECT expires_ms FROM memory WHERE name=?1 "
         "ORDER BY expires_ms DESC LIMIT 1 OFFSET ?2)"),
    [SNIB__SQL_MEMORY_UNTAKE] = "DELETE FROM memory WHERE name=?1 AND what=2",
    [SNIB__SQL_CONTENT_GET] = "SELECT value,version,expires_ms,CASE WHEN ?2 THEN data END FROM content WHERE name=?1",
    [SNIB__SQL_CONTENT_PUT] =
        "INSERT OR REPLACE INTO content(value,version,expires_ms,data,name) VALUES(?1,?2,?3,?4,?5)",
    [SNIB__SQL_CONTENT_REMOVE] = "DELETE FROM content WHERE name=?1",
    [SNIB__SQL_CLIENT_BY_UUID] = "SELECT " CLIENT " FROM client WHERE uuid=?1",
    [SNIB__SQL_CLIENT_BY_SLOT] = "SELECT " CLIENT " FROM client WHERE slot=?1",
    [SNIB__SQL_CLIENT_ADD] = "INSERT OR REPLACE INTO client(" CLIENT ",since_ms) VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [SNIB__SQL_CLIENT_REMOVE] = "DELETE FROM client WHERE uuid=?1",
    [SNIB__SQL_NAMES_OF] =
        ("SELECT min(name) FROM (SELECT name FROM object WHERE id>?1||':' AND id<?1||';' AND name>?2 UNION ALL "
         "SELECT name FROM seat WHERE id>?1||':' AND id<?1||';' AND name>?2 UNION ALL "
         "SELECT name FROM waiter WHERE id>?1||':' AND id<?1||';' AND name>?2)"),
};

int snib__sql_prepare(struct snib__store *s)
{
        for (int i = 0; i < SNIB__SQL_COUNT; i++) {
                int rc = sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL);
                if (rc != SQLITE_OK)
                        return rc;
        }
        return SQLITE_OK;
}

void snib__sql_finalize(struct snib__store *s)
{
        for (int i = 0; i < SNIB__SQL_COUNT; i++) {
                (void)sqlite3_finalize(s->statement[i]);
                s->statement[i] = NULL;
        }
}

int snib__sql_end(sqlite3_stmt *q, int rc)
{
        (void)sqlite3_reset(q);
        return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int snib__sql_run(struct snib__store *s, enum snib__statement which)
{
        return snib__sql_end(s->statement[which], sqlite3_step(s->statement[which]));
}

void snib__sql_bind_text(sqlite3_stmt *q, int i, const char *text)
{
        (void)sqlite3_bind_text(q, i, text, (int)strlen(text), SQLITE_STATIC);
}

void snib__sql_bind_name(sqlite3_stmt *q, int i, struct snib__name name)
{
        (void)sqlite3_bind_text(q, i, name.bytes, (int)name.length, SQLITE_STATIC);
}

void snib__sql_read_text(sqlite3_stmt *q, int i, char *ret, size_t size)
{
        const unsigned char *text = sqlite3_column_text(q, i);
        size_t n = text ? (size_t)sqlite3_column_bytes(q, i) : 0;

        if (n >= size)
                n = size - 1;
        if (n)
                memcpy(ret, text, n);
        memset(ret + n, 0, size - n);
}
