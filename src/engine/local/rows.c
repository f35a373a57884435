/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records to rows and back: every SQL statement that runs after open. Not a decision about locks (that is the model's)
 * and not a transaction (the caller's). What comes out of the file is another process's word: texts are cut to their
 * fields, and a waiter without an id, or one that is the holder, is left out and its row goes with the next change.
 * Called with store.lock held.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "engine/local/store.h"
#include <string.h>

#define SEAT "id,host,pid,label,since_ms,expires_ms"
#define CLIENT "uuid,slot,pid,pid_namespace,host,label"

static const char *const sql[SNIB__SQL_COUNT] = {
    [SNIB__SQL_BEGIN] = "BEGIN",
    [SNIB__SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SNIB__SQL_COMMIT] = "COMMIT",
    [SNIB__SQL_ROLLBACK] = "ROLLBACK",
    [SNIB__SQL_LOCK_GET] = "SELECT " SEAT ",token,queued FROM lock WHERE name=?1",
    [SNIB__SQL_LOCK_ADD] = "INSERT INTO lock(" SEAT ",token,queued,name) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SNIB__SQL_LOCK_SET] =
        ("UPDATE lock SET id=?1,host=?2,pid=?3,label=?4,since_ms=?5,expires_ms=?6,token=?7,queued=?8 WHERE name=?9"),
    [SNIB__SQL_LOCK_LIST] = "SELECT " SEAT ",token,queued,name FROM lock WHERE id<>'' ORDER BY name",
    [SNIB__SQL_WAITER_GET] = "SELECT " SEAT ",lease_ms,seq FROM waiter WHERE name=?1 ORDER BY seq LIMIT ?2",
    [SNIB__SQL_WAITER_ADD] = ("INSERT INTO waiter(" SEAT ",lease_ms,name,seq) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,"
                              "(SELECT coalesce(max(seq),0)+1 FROM waiter WHERE name=?8))"),
    [SNIB__SQL_WAITER_SET] = "UPDATE waiter SET expires_ms=?1,lease_ms=?2 WHERE name=?3 AND seq=?4",
    [SNIB__SQL_WAITER_REMOVE] = "DELETE FROM waiter WHERE name=?1 AND seq=?2",
    [SNIB__SQL_CLIENT_BY_UUID] = "SELECT " CLIENT " FROM client WHERE uuid=?1",
    [SNIB__SQL_CLIENT_BY_SLOT] = "SELECT " CLIENT " FROM client WHERE slot=?1",
    [SNIB__SQL_CLIENT_ADD] = "INSERT OR REPLACE INTO client(" CLIENT ",since_ms) VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [SNIB__SQL_CLIENT_REMOVE] = "DELETE FROM client WHERE uuid=?1",
    [SNIB__SQL_NAMES_OF] =
        ("SELECT min(name) FROM (SELECT name FROM lock WHERE id>?1||':' AND id<?1||';' AND name>?2 UNION ALL "
         "SELECT name FROM waiter WHERE id>?1||':' AND id<?1||';' AND name>?2)"),
};

int snib__rows_prepare(struct snib__store *s)
{
        for (int i = 0; i < SNIB__SQL_COUNT; i++) {
                int rc = sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL);
                if (rc != SQLITE_OK)
                        return rc;
        }
        return SQLITE_OK;
}

void snib__rows_finalize(struct snib__store *s)
{
        for (int i = 0; i < SNIB__SQL_COUNT; i++) {
                (void)sqlite3_finalize(s->statement[i]);
                s->statement[i] = NULL;
        }
}

/* Runs a statement to its end; its bindings point at memory that may go away after it. */
int snib__rows_run(struct snib__store *s, enum snib__statement which)
{
        int rc = sqlite3_step(s->statement[which]);

        (void)sqlite3_reset(s->statement[which]);
        return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* For a statement of which one row is wanted and has been read, or that failed. */
static int done(sqlite3_stmt *q, int rc)
{
        (void)sqlite3_reset(q);
        return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static void bind_text(sqlite3_stmt *q, int i, const char *text)
{
        (void)sqlite3_bind_text(q, i, text, (int)strlen(text), SQLITE_STATIC);
}

static void bind_name(sqlite3_stmt *q, int i, struct snib__name name)
{
        (void)sqlite3_bind_text(q, i, name.bytes, (int)name.length, SQLITE_STATIC);
}

static void read_text(sqlite3_stmt *q, int i, char *ret, size_t size)
{
        const unsigned char *text = sqlite3_column_text(q, i);
        size_t n = text ? (size_t)sqlite3_column_bytes(q, i) : 0;

        if (n >= size)
                n = size - 1;
        if (n)
                memcpy(ret, text, n);
        memset(ret + n, 0, size - n);
}

/* The six columns of a holder or a waiter. */
static void read_seat(sqlite3_stmt *q, struct snib__seat *ret)
{
        read_text(q, 0, ret->id.text, sizeof(ret->id.text));
        read_text(q, 1, ret->who.host, sizeof(ret->who.host));
        ret->who.pid = sqlite3_column_int64(q, 2);
        read_text(q, 3, ret->who.label, sizeof(ret->who.label));
        ret->since_ms = sqlite3_column_int64(q, 4);
        ret->expires_ms = sqlite3_column_int64(q, 5);
}

static void bind_seat(sqlite3_stmt *q, const struct snib__seat *seat)
{
        bind_text(q, 1, seat->id.text);
        bind_text(q, 2, seat->who.host);
        (void)sqlite3_bind_int64(q, 3, seat->who.pid);
        bind_text(q, 4, seat->who.label);
        (void)sqlite3_bind_int64(q, 5, seat->since_ms);
        (void)sqlite3_bind_int64(q, 6, seat->expires_ms);
}

/* Room for `want` waiters and one more. */
static int make_room(struct snib__store *s, size_t want)
{
        size_t room = s->record.room ? s->record.room : 8;

        while (room < want + 1)
                room *= 2;
        if (room > s->record.room) {
                void *queue = snib__grow(s->record.queue, room * sizeof(s->record.queue[0]));
                if (!queue)
                        return SQLITE_NOMEM;
                s->record.queue = queue;
                s->record.room = room;
        }
        if (room > s->rows_room) {
                void *row = snib__grow(s->row, room * sizeof(s->row[0]));
                if (!row)
                        return SQLITE_NOMEM;
                s->row = row;
                s->rows_room = room;
        }
        return SQLITE_OK;
}

static void load_waiter(struct snib__store *s, sqlite3_stmt *q)
{
        struct snib__lock_record *r = &s->record;
        struct snib__waiter *w = &r->queue[r->queued];
        struct snib__row *row = &s->row[s->rows++];

        read_seat(q, &w->seat);
        w->lease_ms = sqlite3_column_int64(q, 6);
        row->seq = sqlite3_column_int64(q, 7);
        row->id = w->seat.id;
        row->expires_ms = w->seat.expires_ms;
        row->lease_ms = w->lease_ms;
        if (snib__id_set(&w->seat.id) && !snib__id_equal(&w->seat.id, &r->holder.id))
                r->queued++;
}

static int load_queue(struct snib__store *s, struct snib__name name)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_WAITER_GET];
        int rc;

        bind_name(q, 1, name);
        (void)sqlite3_bind_int(q, 2, SNIB__WAITERS_MAX);
        while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
                int grown = make_room(s, s->rows + 1);
                if (grown != SQLITE_OK)
                        return (void)sqlite3_reset(q), grown;
                load_waiter(s, q);
        }
        return done(q, rc);
}

int snib__rows_load(struct snib__store *s, struct snib__name name)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_LOCK_GET];
        struct snib__lock_record *r = &s->record;
        int rc = make_room(s, 1);

        if (rc != SQLITE_OK)
                return rc;
        r->token = 0;
        r->queued = 0;
        s->rows = 0;
        s->queued = 0;
        memset(&r->holder, 0, sizeof(r->holder));
        bind_name(q, 1, name);
        rc = sqlite3_step(q);
        s->existed = rc == SQLITE_ROW;
        if (rc != SQLITE_ROW)
                return done(q, rc);
        read_seat(q, &r->holder);
        r->token = sqlite3_column_int64(q, 6);
        s->queued = sqlite3_column_int64(q, 7);
        if (!snib__id_set(&r->holder.id))
                memset(&r->holder, 0, sizeof(r->holder));
        if (r->token < 0)
                r->token = 0;
        return s->queued ? load_queue(s, name) : SQLITE_OK;
}

void snib__rows_unload(struct snib__store *s)
{
        (void)sqlite3_reset(s->statement[SNIB__SQL_LOCK_GET]);
}

/* Of a free lock, `since_ms` says since when. Its row stays, for the token, and for a release on a full disk. */
static int save_holder(struct snib__store *s, struct snib__name name, int64_t now_ms)
{
        enum snib__statement which = s->existed ? SNIB__SQL_LOCK_SET : SNIB__SQL_LOCK_ADD;
        sqlite3_stmt *q = s->statement[which];

        if (!snib__id_set(&s->record.holder.id))
                s->record.holder.since_ms = now_ms;
        bind_seat(q, &s->record.holder);
        (void)sqlite3_bind_int64(q, 7, s->record.token);
        (void)sqlite3_bind_int64(q, 8, (int64_t)s->record.queued);
        bind_name(q, 9, name);
        return snib__rows_run(s, which);
}

static int remove_waiter(struct snib__store *s, struct snib__name name, int64_t seq)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_WAITER_REMOVE];

        bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, seq);
        return snib__rows_run(s, SNIB__SQL_WAITER_REMOVE);
}

static int set_waiter(struct snib__store *s, struct snib__name name, int64_t seq, const struct snib__waiter *w)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_WAITER_SET];

        (void)sqlite3_bind_int64(q, 1, w->seat.expires_ms);
        (void)sqlite3_bind_int64(q, 2, w->lease_ms);
        bind_name(q, 3, name);
        (void)sqlite3_bind_int64(q, 4, seq);
        return snib__rows_run(s, SNIB__SQL_WAITER_SET);
}

static int add_waiter(struct snib__store *s, struct snib__name name, const struct snib__waiter *w)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_WAITER_ADD];

        bind_seat(q, &w->seat);
        (void)sqlite3_bind_int64(q, 7, w->lease_ms);
        bind_name(q, 8, name);
        return snib__rows_run(s, SNIB__SQL_WAITER_ADD);
}

/* The queue only loses waiters and gains them at its end, so both sides are walked once. */
static int save_queue(struct snib__store *s, struct snib__name name)
{
        const struct snib__lock_record *r = &s->record;
        size_t kept = 0;
        int rc = SQLITE_OK;

        for (size_t i = 0; i < s->rows && rc == SQLITE_OK; i++) {
                const struct snib__row *row = &s->row[i];
                const struct snib__waiter *w = kept < r->queued ? &r->queue[kept] : NULL;

                if (!w || !snib__id_equal(&w->seat.id, &row->id)) {
                        rc = remove_waiter(s, name, row->seq);
                        continue;
                }
                kept++;
                if (w->seat.expires_ms != row->expires_ms || w->lease_ms != row->lease_ms)
                        rc = set_waiter(s, name, row->seq, w);
        }
        for (; kept < r->queued && rc == SQLITE_OK; kept++)
                rc = add_waiter(s, name, &r->queue[kept]);
        return rc;
}

/* The usual change is one row: then the statement is the transaction, and neither a BEGIN nor a COMMIT is paid for. */
int snib__rows_save(struct snib__store *s, struct snib__name name, const struct snib__lock_change *change,
                    int64_t now_ms)
{
        bool many = change->queue && sqlite3_get_autocommit(s->db);
        bool count = s->queued != (int64_t)s->record.queued;
        int rc = many ? snib__rows_run(s, SNIB__SQL_BEGIN) : SQLITE_OK;

        if (rc == SQLITE_OK && change->queue)
                rc = save_queue(s, name);
        if (rc == SQLITE_OK && (change->holder || count))
                rc = save_holder(s, name, now_ms);
        if (rc == SQLITE_OK && many)
                rc = snib__rows_run(s, SNIB__SQL_COMMIT);
        return rc;
}

static int read_client(sqlite3_stmt *q, struct snib__peer_row *ret)
{
        int rc = sqlite3_step(q);

        if (rc == SQLITE_ROW) {
                read_text(q, 0, ret->uuid, sizeof(ret->uuid));
                ret->slot = sqlite3_column_int64(q, 1);
                ret->pid = sqlite3_column_int64(q, 2);
                ret->pid_namespace = sqlite3_column_int64(q, 3);
                read_text(q, 4, ret->host, sizeof(ret->host));
                read_text(q, 5, ret->label, sizeof(ret->label));
        }
        (void)sqlite3_reset(q);
        return rc;
}

int snib__rows_client_by_uuid(struct snib__store *s, const char *uuid, struct snib__peer_row *ret)
{
        bind_text(s->statement[SNIB__SQL_CLIENT_BY_UUID], 1, uuid);
        return read_client(s->statement[SNIB__SQL_CLIENT_BY_UUID], ret);
}

int snib__rows_client_by_slot(struct snib__store *s, int64_t slot, struct snib__peer_row *ret)
{
        (void)sqlite3_bind_int64(s->statement[SNIB__SQL_CLIENT_BY_SLOT], 1, slot);
        return read_client(s->statement[SNIB__SQL_CLIENT_BY_SLOT], ret);
}

int snib__rows_client_add(struct snib__store *s, const struct snib__peer_row *row, int64_t now_ms)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_CLIENT_ADD];

        bind_text(q, 1, row->uuid);
        (void)sqlite3_bind_int64(q, 2, row->slot);
        (void)sqlite3_bind_int64(q, 3, row->pid);
        (void)sqlite3_bind_int64(q, 4, row->pid_namespace);
        bind_text(q, 5, row->host);
        bind_text(q, 6, row->label);
        (void)sqlite3_bind_int64(q, 7, now_ms);
        return snib__rows_run(s, SNIB__SQL_CLIENT_ADD);
}

int snib__rows_client_remove(struct snib__store *s, const char *uuid)
{
        bind_text(s->statement[SNIB__SQL_CLIENT_REMOVE], 1, uuid);
        return snib__rows_run(s, SNIB__SQL_CLIENT_REMOVE);
}

int snib__rows_name_of(struct snib__store *s, const char *uuid, struct snib__name after, char *ret_name,
                       size_t *ret_length)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_NAMES_OF];
        int rc;

        bind_text(q, 1, uuid);
        bind_name(q, 2, after);
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) == SQLITE_NULL)
                rc = SQLITE_DONE;
        if (rc == SQLITE_ROW) {
                read_text(q, 0, ret_name, SNIB_NAME_MAX + 1);
                *ret_length = (size_t)sqlite3_column_bytes(q, 0);
                if (*ret_length > SNIB_NAME_MAX)
                        *ret_length = SNIB_NAME_MAX;
        }
        (void)sqlite3_reset(q);
        return rc;
}

int snib__rows_list(struct snib__store *s, struct snib__name *ret_name, int64_t *ret_token,
                    struct snib__seat *ret_holder, int64_t *ret_waiters)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_LOCK_LIST];
        int rc = sqlite3_step(q);

        if (rc != SQLITE_ROW)
                return rc;
        read_seat(q, ret_holder);
        *ret_token = sqlite3_column_int64(q, 6);
        *ret_waiters = sqlite3_column_int64(q, 7);
        ret_name->bytes = (const char *)sqlite3_column_text(q, 8);
        ret_name->length = (size_t)sqlite3_column_bytes(q, 8);
        return rc;
}

void snib__rows_list_end(struct snib__store *s)
{
        (void)sqlite3_reset(s->statement[SNIB__SQL_LOCK_LIST]);
}
