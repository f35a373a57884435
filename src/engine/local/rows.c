/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A record and its rows as a whole: the row of its object, what exists without anybody holding it,
 * and in which order all are loaded and stored. Not a decision about objects (that is the model's)
 * and not a transaction (the caller's). Called with store.lock held.
 *
 * A record is the row of its object, which also has the first seat and says in which other tables
 * there are rows of this name: more seats, waiters. What exists without anybody holding it is in a
 * table of its own. So a lock that nobody waits for is one row, read once and written once; and
 * each column of it costs.
 *
 * What comes out of the file is another process's word. Nothing is repaired: a row that
 * snib__rows_save() would not have written makes the record damaged, and the answer is
 * SQLITE_CORRUPT. A kind that is not known is another version's: SQLITE_MISMATCH, and the record is
 * left alone. Hosts and labels are cut to their fields.
 */

#include "engine/local/rows.h"
#include <stdlib.h>
#include <string.h>

/* The statement stays open: the value is its memory. */
static int load_content(struct snib__store *s, struct snib__name name, bool data)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_CONTENT_GET];
        struct snib__record *r = &s->record;
        int rc;

        snib__sql_bind_name(q, 1, name);
        (void)sqlite3_bind_int(q, 2, data);
        rc = sqlite3_step(q);
        if (rc != SQLITE_ROW)
                return snib__sql_end(q, rc);
        r->exists = s->content.exists = true;
        r->value = s->content.value = sqlite3_column_int64(q, 0);
        r->version = s->content.version = sqlite3_column_int64(q, 1);
        r->expires_ms = s->content.expires_ms = sqlite3_column_int64(q, 2);
        r->data = sqlite3_column_blob(q, 3);
        r->data_length = (size_t)sqlite3_column_bytes(q, 3);
        return SQLITE_OK;
}

/* Who is in the object's row, if anybody. */
static bool put_first(struct snib__store *s, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        struct snib__record *r = &s->record;

        if (snib__id_set(&seat->id))
                return snib__seats_put(r, seat, number) && snib__rows_in_object(r);
        return !(s->flags & SNIB__FLAG_SEATS) || r->family > SNIB__FAMILY_RW;
}

/* The rest of a record whose object has a row. */
static int load_object(struct snib__store *s, sqlite3_stmt *q, const struct snib__op *op, bool data, bool whole)
{
        struct snib__record *r = &s->record;
        int64_t kind = sqlite3_column_int64(q, SNIB__COLUMN_NUMBERS),
                flags = sqlite3_column_int64(q, SNIB__COLUMN_NUMBERS + 2);
        const int64_t number[SNIB__NUMBERS] = {[SNIB__NUMBER_KIND] = kind,
                                               [SNIB__NUMBER_TOKEN] = sqlite3_column_int64(q, SNIB__COLUMN_NUMBERS + 1),
                                               [SNIB__NUMBER_FLAG] = flags & SNIB__FLAG_CONFIRMED};
        struct snib__seat first;
        int rc = SQLITE_OK;

        if (!snib__room_make(r, (struct snib__room){.held = 1}))
                return SQLITE_NOMEM;
        if (snib__rows_strange(kind))
                return snib__rows_unknown(s);
        if (kind < SNIB__KIND_NONE || kind > INT32_MAX || flags < 0 || flags > SNIB__SEQ_MAX ||
            (flags >= SNIB__FLAG_OBSERVERS && !(flags & SNIB__FLAG_WAITERS)))
                return snib__rows_damaged(s, "the kind and the flags of an object are such");
        s->kind = (int)kind;
        s->flags = flags;
        r->family = snib__family_of(s->kind);
        r->token = s->token = sqlite3_column_int64(q, SNIB__COLUMN_NUMBERS + 3);
        if (!snib__seats_read(q, &first) || !put_first(s, &first, number))
                return snib__rows_damaged(s, "who sits first is somebody, and holds a lock");
        s->first = r->held > 0;
        if (flags & SNIB__FLAG_SEATS)
                rc = snib__seats_load(s, op->name);
        if (rc == SQLITE_OK && (flags & SNIB__FLAG_WAITERS))
                rc = snib__part_load(s, op, whole);
        if (rc == SQLITE_OK && r->family > SNIB__FAMILY_RW)
                rc = load_content(s, op->name, data);
        if (rc == SQLITE_OK)
                rc = snib__memory_load(s, op);
        return rc;
}

static void print_name(struct snib__name name, char *ret, size_t size)
{
        size_t n = 0;

        for (; n < name.length && n + 1 < size; n++)
                ret[n] = name.bytes[n] >= ' ' && name.bytes[n] <= '~' ? name.bytes[n] : '?';
        ret[n] = 0;
}

/* An empty record, with the memory it has. */
static void clear(struct snib__store *s)
{
        struct snib__record *r = &s->record;

        r->family = SNIB__FAMILY_NONE;
        r->token = r->value = r->version = r->expires_ms = 0;
        r->exists = false;
        r->held = r->queued = r->unseen = r->dones = 0;
        r->data = NULL;
        r->data_length = 0;
        s->change.record = s->change.holders = s->change.queue = s->change.dones = false;
        s->change.tells = 0;
        s->damage = NULL;
        s->existed = s->first = false;
        s->part = 0;
        s->end = false;
        s->kind = SNIB__KIND_NONE;
        s->flags = 0;
        s->token = 0;
        s->seats.count = s->waiters.count = 0;
        s->seats.last = s->waiters.last = 0;
        s->memory.what = SNIB__MEMORY_NONE;
        memset(&s->content, 0, sizeof(s->content));
}

/* For the model: for what `op` may add, and for whom its calls tell: everybody may be told twice,
 * that it was seated, and that this is over. */
static int make_room(struct snib__store *s, const struct snib__op *op)
{
        struct snib__room room = snib__record_room(&s->record, op);
        struct snib__change *c = &s->change;

        return snib__room_make(&s->record, room) &&
                       snib__room_grow(&c->tell, &c->tell_room, 2 * room.tells + 2, sizeof(c->tell[0]))
                   ? SQLITE_OK
                   : SQLITE_NOMEM;
}

int snib__rows_load(struct snib__store *s, const struct snib__op *op, bool data, bool whole)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_OBJECT_GET];
        const char *wrong;
        int rc;

        clear(s);
        snib__sql_bind_name(q, 1, op->name);
        rc = sqlite3_step(q);
        s->existed = rc == SQLITE_ROW;
        rc = s->existed ? load_object(s, q, op, data, whole) : snib__sql_end(q, rc);
        if (rc == SQLITE_OK)
                rc = make_room(s, op);
        wrong = rc == SQLITE_OK ? snib__record_check(&s->record) : NULL;
        if (wrong)
                rc = snib__rows_damaged(s, wrong);
        if (s->damage)
                print_name(op->name, s->damaged, sizeof(s->damaged));
        return rc;
}

void snib__rows_unload(struct snib__store *s)
{
        (void)sqlite3_reset(s->statement[SNIB__SQL_OBJECT_GET]);
        (void)sqlite3_reset(s->statement[SNIB__SQL_CONTENT_GET]);
}

/* What stands in the column of the kind: that of the first seat, else one that tells the family. */
static int kind_of(const struct snib__record *r)
{
        return r->held ? r->holder[0].kind : snib__family_kind(r->family);
}

static int64_t flags_of(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;

        return (snib__rows_in_object(r) && r->holder[0].claimed ? SNIB__FLAG_CONFIRMED : 0) |
               (snib__seats_more(r) ? SNIB__FLAG_SEATS : 0) | snib__part_flags(s);
}

/* Where nobody sits, `since_ms` says since when. The row stays, for the token, and for a release on
 * a full disk. */
static int save_object(struct snib__store *s, struct snib__name name, int64_t now_ms)
{
        enum snib__statement which = s->existed ? SNIB__SQL_OBJECT_SET : SNIB__SQL_OBJECT_ADD;
        const struct snib__record *r = &s->record;
        sqlite3_stmt *q = s->statement[which];
        struct snib__seat nobody;

        memset(&nobody, 0, sizeof(nobody));
        nobody.since_ms = now_ms;
        snib__seats_bind(q, snib__rows_in_object(r) ? &r->holder[0].seat : &nobody);
        (void)sqlite3_bind_int64(q, SNIB__COLUMN_NUMBERS + 1, kind_of(r));
        (void)sqlite3_bind_int64(q, SNIB__COLUMN_NUMBERS + 2, snib__rows_in_object(r) ? r->holder[0].token : 0);
        (void)sqlite3_bind_int64(q, SNIB__COLUMN_NUMBERS + 3, flags_of(s));
        (void)sqlite3_bind_int64(q, SNIB__COLUMN_NUMBERS + 4, r->token);
        snib__sql_bind_name(q, SNIB__COLUMN_NUMBERS + 5, name);
        return snib__sql_run(s, which);
}

/* A register's value changes with its version only; otherwise it was perhaps not loaded, and must
 * not be stored. */
static bool content_changed(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;

        if (!r->exists || !s->content.exists || r->family == SNIB__FAMILY_REGISTER)
                return r->exists != s->content.exists || r->version != s->content.version;
        return r->value != s->content.value || r->expires_ms != s->content.expires_ms;
}

static int save_content(struct snib__store *s, struct snib__name name)
{
        const struct snib__record *r = &s->record;
        enum snib__statement which = r->exists ? SNIB__SQL_CONTENT_PUT : SNIB__SQL_CONTENT_REMOVE;
        sqlite3_stmt *q = s->statement[which];

        if (!r->exists) {
                snib__sql_bind_name(q, 1, name);
                return snib__sql_run(s, which);
        }
        (void)sqlite3_bind_int64(q, 1, r->value);
        (void)sqlite3_bind_int64(q, 2, r->version);
        (void)sqlite3_bind_int64(q, 3, r->expires_ms);
        if (r->family == SNIB__FAMILY_REGISTER)
                (void)sqlite3_bind_blob(q, 4, r->data_length ? r->data : "", (int)r->data_length, SQLITE_STATIC);
        else
                (void)sqlite3_bind_null(q, 4);
        snib__sql_bind_name(q, 5, name);
        return snib__sql_run(s, which);
}

/* The semaphore that was there is not there any more; perhaps another is. */
static bool ended(const struct snib__store *s, struct snib__clock now)
{
        return snib__family_of(s->kind) == SNIB__FAMILY_SEMAPHORE && s->content.exists &&
               (!s->record.exists || s->content.expires_ms <= now.lease_ms);
}

/* A name of which anything is stored has a row. */
static bool object_changed(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;

        return !s->existed || (s->change.holders && (s->first || snib__rows_in_object(r))) || r->token != s->token ||
               kind_of(r) != s->kind || flags_of(s) != s->flags;
}

/* The usual change is one row: then the statement is the transaction, and neither a BEGIN nor a
 * COMMIT is paid for. */
int snib__rows_save(struct snib__store *s, const struct snib__op *op, struct snib__clock now)
{
        const struct snib__change *change = &s->change;
        const struct snib__record *r = &s->record;
        struct snib__memory m = snib__memory_of(r, &op->id);
        bool seats = change->holders && (s->seats.count || snib__seats_more(r));
        bool content = change->record && content_changed(s);
        bool memory = snib__memory_changed(s, &m), end = ended(s, now);
        bool joins = s->end && r->queued > s->part; /* and no more */
        bool many = (seats || (change->queue && !joins) || memory || end || content) && sqlite3_get_autocommit(s->db);
        int rc = many ? snib__sql_run(s, SNIB__SQL_BEGIN) : SQLITE_OK;

        if (rc == SQLITE_OK && seats)
                rc = snib__seats_save(s, op->name);
        if (rc == SQLITE_OK && change->queue)
                rc = snib__seats_save_waiters(s, op->name);
        if (rc == SQLITE_OK && end)
                rc = snib__memory_untake(s, op->name);
        if (rc == SQLITE_OK && memory)
                rc = snib__memory_save(s, op, &m);
        if (rc == SQLITE_OK && content)
                rc = save_content(s, op->name);
        if (rc == SQLITE_OK && object_changed(s))
                rc = save_object(s, op->name, now.wall_us / 1000);
        if (rc == SQLITE_OK && many)
                rc = snib__sql_run(s, SNIB__SQL_COMMIT);
        return rc;
}

int snib__rows_list(struct snib__store *s, struct snib__name *ret_name)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_OBJECT_LIST];
        int rc = sqlite3_step(q);

        if (rc == SQLITE_ROW) {
                ret_name->bytes = (const char *)sqlite3_column_text(q, 0);
                ret_name->length = (size_t)sqlite3_column_bytes(q, 0);
        }
        return rc;
}

void snib__rows_list_end(struct snib__store *s)
{
        (void)sqlite3_reset(s->statement[SNIB__SQL_OBJECT_LIST]);
}

void snib__rows_done(struct snib__store *s)
{
        snib__room_free(&s->record);
        free(s->change.tell);
        free(s->seats.row);
        free(s->waiters.row);
}
