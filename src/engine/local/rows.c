/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records to rows and back: every SQL statement that runs after open. Not a decision about objects (that is the
 * model's) and not a transaction (the caller's). Called with store.lock held.
 *
 * A record is the row of its object, which also has the first seat and says in which other tables there are rows of
 * this name: more seats, waiters. What exists without anybody holding it is in a table of its own. So a lock that
 * nobody waits for is one row, read once and written once; and each column of it costs.
 *
 * What is remembered of requests, that a semaphore was taken from among it, is not loaded but for the one at hand: no
 * other can matter to it. So the model never sees that there are many; that not too many are kept is done here.
 *
 * What comes out of the file is another process's word. Nothing is repaired: a row that snib__rows_save() would not
 * have written makes the record damaged, and the answer is SQLITE_CORRUPT. Hosts and labels are cut to their fields.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "engine/local/store.h"
#include <stdlib.h>
#include <string.h>

/* The columns of whoever sits or waits, first in every row; those of snib__number follow. */
#define SEAT "id,host,pid,label,since_ms,expires_ms"
#define SEAT_ROW SEAT ",kind,number,token,claimed"
#define WAITER_ROW SEAT ",kind,number,latest,observer,lease_ms"
#define OBJECT_ROW SEAT ",kind,held_token,flags,token"
#define COLUMN_NUMBERS 6
#define CLIENT "uuid,slot,pid,pid_namespace,host,label"

/* Of a name, at least: the newest of the requests that are remembered, as many changes as the model keeps, and as many
 * takings. */
#define MEMORIES_KEPT (2 * SNIB__DONES_MAX)

/* Nobody sits, waits or exists. In the column where the kind of the first seat stands otherwise. */
#define KIND_NONE SNIB_KIND_ANY

/* In the column `flags` of an object. */
enum {
        CONFIRMED = 1, /* the first seat is */
        MORE_SEATS = 2,
        WAITERS = 4,
        OBSERVERS = 8, /* among them */
        LEFT = 16      /* times how many have left the queue since it was empty: the last one's seq less that wait */
};

#define SEQ_MAX ((int64_t)1 << 53)

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

/* FNV-1a */
static uint32_t hash(const char *text)
{
        uint32_t h = 2166136261U;

        for (; *text; text++)
                h = (h ^ (unsigned char)*text) * 16777619U;
        return h;
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

/* `must` is what should be true. */
static int damaged(struct snib__store *s, const char *must)
{
        s->damage = must;
        return SQLITE_CORRUPT;
}

/* An id as some client could have made it: it fits, and is printable. */
static bool read_id(sqlite3_stmt *q, int i, struct snib__id *ret)
{
        unsigned odd = 0;
        const unsigned char *text = sqlite3_column_text(q, i);
        size_t n = text ? (size_t)sqlite3_column_bytes(q, i) : 0;

        if (n >= sizeof(ret->text))
                return false;
        for (size_t k = 0; k < n; k++) /* without a way out, so that the compiler takes many at a time */
                odd |= (unsigned char)(text[k] - '!') > '~' - '!';
        if (odd)
                return false;
        if (n)
                memcpy(ret->text, text, n);
        memset(ret->text + n, 0, sizeof(ret->text) - n);
        return true;
}

/* False: the id is none. */
static bool read_seat(sqlite3_stmt *q, struct snib__seat *ret)
{
        read_text(q, 1, ret->who.host, sizeof(ret->who.host));
        ret->who.pid = sqlite3_column_int64(q, 2);
        read_text(q, 3, ret->who.label, sizeof(ret->who.label));
        ret->since_ms = sqlite3_column_int64(q, 4);
        ret->expires_ms = sqlite3_column_int64(q, 5);
        return read_id(q, 0, &ret->id);
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

/* A table of rows that belong to a name. Those of seats and of waiters are alike. */
struct table {
        enum snib__statement add, set, remove;
        size_t most; /* rows of a name */
        int numbers; /* columns of snib__number */
        /* Row to record: false for one that cannot be. */
        bool (*put)(struct snib__store *s, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS]);
        /* Record to row: number i of those that belong into the table, NULL past the end. */
        const struct snib__seat *(*at)(const struct snib__store *s, size_t i, int64_t number[SNIB__NUMBERS]);
};

/* What snib__record_check() cannot see any more, or needs to be true of what it looks at. */
static bool fits(const struct snib__record *r, const int64_t number[SNIB__NUMBERS])
{
        int64_t kind = number[SNIB__NUMBER_KIND], flag = number[SNIB__NUMBER_FLAG];

        return kind >= 0 && kind <= SNIB_KIND_REGISTER && snib__family_of((int)kind) == r->family &&
               (flag == 0 || flag == 1);
}

static bool put_holder(struct snib__store *s, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        struct snib__record *r = &s->record;
        struct snib__holder *h = &r->holder[r->held];
        int64_t count = number[SNIB__NUMBER_COUNT];

        if (!fits(r, number))
                return false;
        memset(h, 0, sizeof(*h));
        h->seat = *seat;
        h->kind = (int)number[SNIB__NUMBER_KIND];
        h->token = number[SNIB__NUMBER_TOKEN];
        h->claimed = number[SNIB__NUMBER_FLAG];
        h->n = h->kind == SNIB_KIND_SEMAPHORE ? count : 1;
        h->index = h->kind == SNIB_KIND_PERMITS ? count : 0;
        r->held++;
        if (h->kind == SNIB_KIND_SEMAPHORE)
                return !h->claimed;
        return h->kind == SNIB_KIND_PERMITS || count == 0;
}

static void numbers_of(const struct snib__holder *h, int64_t number[SNIB__NUMBERS])
{
        number[SNIB__NUMBER_KIND] = h->kind;
        number[SNIB__NUMBER_LEASE] = 0; /* nobody asks for what was asked for */
        number[SNIB__NUMBER_COUNT] = h->kind == SNIB_KIND_SEMAPHORE ? h->n : h->index;
        number[SNIB__NUMBER_TOKEN] = h->token;
        number[SNIB__NUMBER_FLAG] = h->claimed;
}

/* How many seats are in the object's row: the first of a lock. */
static size_t in_object(const struct snib__record *r)
{
        return r->held && (r->family == SNIB__FAMILY_LOCK || r->family == SNIB__FAMILY_RW);
}

/* Of a semaphore, and confirmed: only a memory of who took. */
static bool is_memory(const struct snib__holder *h)
{
        return h->kind == SNIB_KIND_SEMAPHORE && h->claimed;
}

/* How many of the seats are memories: at most that of the request at hand. */
static size_t memories(const struct snib__record *r)
{
        size_t n = 0;

        for (size_t i = 0; r->family == SNIB__FAMILY_SEMAPHORE && i < r->held; i++)
                n += is_memory(&r->holder[i]);
        return n;
}

static const struct snib__seat *holder_at(const struct snib__store *s, size_t i, int64_t number[SNIB__NUMBERS])
{
        const struct snib__record *r = &s->record;
        size_t at = in_object(r) + i;

        for (size_t k = 0; r->family == SNIB__FAMILY_SEMAPHORE && k <= at && k < r->held; k++)
                at += is_memory(&r->holder[k]);
        if (at >= r->held)
                return NULL;
        numbers_of(&r->holder[at], number);
        return &r->holder[at].seat;
}

static bool put_waiter(struct snib__store *s, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        struct snib__record *r = &s->record;
        struct snib__waiter *w = &r->queue[r->queued];
        int64_t latest = number[SNIB__NUMBER_TOKEN];

        if (!fits(r, number))
                return false;
        memset(w, 0, sizeof(*w));
        w->seat = *seat;
        w->kind = (int)number[SNIB__NUMBER_KIND];
        w->lease_ms = number[SNIB__NUMBER_LEASE];
        w->n = number[SNIB__NUMBER_COUNT];
        w->observer = number[SNIB__NUMBER_FLAG];
        w->seen = w->observer ? latest : 0;
        w->number = w->observer ? 0 : (uint32_t)latest;
        r->queued++;
        return w->observer || w->number == latest;
}

static const struct snib__seat *waiter_at(const struct snib__store *s, size_t i, int64_t number[SNIB__NUMBERS])
{
        const struct snib__waiter *w = &s->record.queue[i];

        if (i >= s->record.queued)
                return NULL;
        number[SNIB__NUMBER_KIND] = w->kind;
        number[SNIB__NUMBER_LEASE] = w->lease_ms;
        number[SNIB__NUMBER_COUNT] = w->n;
        number[SNIB__NUMBER_TOKEN] = w->observer ? w->seen : w->number;
        number[SNIB__NUMBER_FLAG] = w->observer;
        return &w->seat;
}

/* Makes room for `want` elements in the array that the pointer at `array` points at. */
static int reserve(void *array, size_t *room, size_t want, size_t size)
{
        size_t more = *room ? *room : 8;
        void *old, *grown;

        if (want <= *room)
                return SQLITE_OK;
        while (more < want)
                more *= 2;
        memcpy(&old, array, sizeof(old));
        grown = snib__grow(old, more * size);
        if (!grown)
                return SQLITE_NOMEM;
        memcpy(array, &grown, sizeof(grown));
        *room = more;
        return SQLITE_OK;
}

/* Room for what the record has. */
static int reserve_record(struct snib__record *r, size_t holders, size_t waiters, size_t dones)
{
        int rc = reserve(&r->holder, &r->held_room, holders, sizeof(r->holder[0]));

        if (rc == SQLITE_OK)
                rc = reserve(&r->queue, &r->queue_room, waiters, sizeof(r->queue[0]));
        return rc == SQLITE_OK ? reserve(&r->done, &r->dones_room, dones, sizeof(r->done[0])) : rc;
}

/* How many seats one wants, for the room they need. */
static size_t seats_wanted(int kind, int64_t n)
{
        int64_t most = n < SNIB__SEATS_MAX ? n : SNIB__SEATS_MAX;

        return kind == SNIB_KIND_PERMITS && n > 1 ? (size_t)most : 1;
}

/* Room for what `op`, and the hand-overs after it, may add, and for whom that tells. */
static int reserve_more(struct snib__store *s, const struct snib__op *op)
{
        struct snib__record *r = &s->record;
        size_t seats = r->held + seats_wanted(op->kind, op->n), most = SNIB__SEATS_MAX;
        int rc;

        for (size_t i = 0; i < r->queued && seats < most; i++)
                seats += seats_wanted(r->queue[i].kind, r->queue[i].n);
        rc = reserve_record(r, seats < most ? seats : most, r->queued + 1, r->dones + 1);
        /* Everybody may be told twice: that it was seated, and that this is over. */
        return rc == SQLITE_OK ? reserve(&s->change.tell, &s->change.tell_room, 2 * (r->held + r->queued + 2),
                                         sizeof(s->change.tell[0]))
                               : rc;
}

/* Room for one more in the record, and in what is remembered of its rows. */
static int reserve_row(struct snib__store *s, struct snib__rows *rows)
{
        const struct snib__record *r = &s->record;
        int rc = reserve_record(&s->record, r->held + 1, r->queued + 1, r->dones + 1);

        return rc == SQLITE_OK ? reserve(&rows->row, &rows->room, rows->count + 1, sizeof(rows->row[0])) : rc;
}

/* One row of those that are alike. */
static int load_row(struct snib__store *s, sqlite3_stmt *q, const struct table *t, struct snib__rows *rows)
{
        int rc = reserve_row(s, rows);
        struct snib__row *row;
        struct snib__seat seat;

        if (rc != SQLITE_OK)
                return rc;
        row = &rows->row[rows->count];
        row->number[SNIB__NUMBER_LEASE] = 0;
        for (int i = 0; i < t->numbers; i++)
                row->number[i] = sqlite3_column_int64(q, COLUMN_NUMBERS + i);
        if (!read_seat(q, &seat) || !t->put(s, &seat, row->number))
                return damaged(s, "every row is of somebody and of the object's kind");
        row->seq = rows->last = sqlite3_column_int64(q, COLUMN_NUMBERS + t->numbers);
        if (row->seq < 1 || row->seq > SEQ_MAX)
                return damaged(s, "rows are numbered from 1");
        row->id = seat.id;
        row->expires_ms = seat.expires_ms;
        rows->count++;
        return SQLITE_OK;
}

static const struct table seat_table = {.add = SNIB__SQL_SEAT_ADD,
                                        .set = SNIB__SQL_SEAT_SET,
                                        .remove = SNIB__SQL_SEAT_REMOVE,
                                        .most = SNIB__SEATS_MAX,
                                        .numbers = SNIB__NUMBER_LEASE,
                                        .put = put_holder,
                                        .at = holder_at};
static const struct table waiter_table = {.add = SNIB__SQL_WAITER_ADD,
                                          .set = SNIB__SQL_WAITER_SET,
                                          .remove = SNIB__SQL_WAITER_REMOVE,
                                          .most = SNIB__WAITERS_MAX,
                                          .numbers = SNIB__NUMBERS,
                                          .put = put_waiter,
                                          .at = waiter_at};

/* At most so many of them, as one of its questions has them. */
static int load_rows(struct snib__store *s, struct snib__name name, const struct table *t, enum snib__statement which,
                     size_t most, struct snib__rows *rows)
{
        sqlite3_stmt *q = s->statement[which];
        int rc, loaded = SQLITE_OK;

        bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, (int64_t)most);
        while ((rc = sqlite3_step(q)) == SQLITE_ROW && loaded == SQLITE_OK)
                loaded = load_row(s, q, t, rows);
        rc = done(q, rc);
        if (rc != SQLITE_OK || loaded != SQLITE_OK)
                return rc != SQLITE_OK ? rc : loaded;
        return rows->count && rows->count <= t->most
                   ? SQLITE_OK
                   : damaged(s, "the rows that an object has are there, and not too many");
}

/* The flags that are about who waits. The last goes only where all were loaded. */
static int64_t queue_flags(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;
        const struct snib__rows *rows = &s->waiters;
        int64_t left = s->flags / LEFT + (int64_t)rows->count, last = rows->last, observers = 0;
        size_t stay = 0;

        for (size_t i = 0; i < rows->count && stay < r->queued; i++)
                if (snib__id_equal(&rows->row[i].id, &r->queue[stay].seat.id)) {
                        last = rows->row[i].seq;
                        stay++;
                }
        left -= (int64_t)stay;
        if (r->queued == stay) /* and nobody has come after the last */
                left -= rows->last - last;
        for (size_t i = 0; i < r->queued; i++)
                observers |= r->queue[i].observer ? OBSERVERS : 0;
        return r->queued ? WAITERS | observers | left * LEFT : 0;
}

const struct snib__holder *snib__rows_seat(const struct snib__record *r, const struct snib__id *id)
{
        for (size_t i = r->held; i-- > 0;) /* those who sat down just now are the last */
                if (snib__id_equal(&r->holder[i].seat.id, id))
                        return &r->holder[i];
        return NULL;
}

/* How much of the queue is likely to be enough; 0: nothing but all. One who asks for the first time, sits, or whose id
 * is that of a change does not stand in it. Usually nobody goes in, or the first when somebody leaves. A newcomer goes
 * to the end; where all wait for the same nobody there may sit if the first may not. */
static size_t enough(const struct snib__store *s, const struct snib__op *op, bool *ret_end)
{
        bool seated = snib__rows_seat(&s->record, &op->id);

        *ret_end = op->verb == SNIB__ACQUIRE && !seated;
        if (s->flags & OBSERVERS)
                return 0;
        if (op->verb == SNIB__ACQUIRE)
                return seated || (op->number == 1 && s->record.family == SNIB__FAMILY_LOCK);
        if (op->verb == SNIB__RENEW)
                return op->permits || seated;
        if (op->verb == SNIB__RELEASE)
                return op->permits || seated ? 2 : 0;
        return op->verb >= SNIB__SET ? 2 : 0;
}

static int load_queue(struct snib__store *s, const struct snib__op *op, bool whole)
{
        bool end = false;
        size_t part = whole ? 0 : enough(s, op, &end);
        int rc = load_rows(s, op->name, &waiter_table, part && end ? SNIB__SQL_WAITER_LAST : SNIB__SQL_WAITER_GET,
                           part ? part : SNIB__WAITERS_MAX + 1, &s->waiters);
        int64_t unseen = s->waiters.last - s->flags / LEFT - (int64_t)s->waiters.count;

        if (rc != SQLITE_OK)
                return rc;
        s->part = s->waiters.count == part ? part : 0;
        s->end = s->part && end;
        if (s->part && !s->end)
                return SQLITE_OK;
        if (unseen < 0 || unseen > (s->end ? SNIB__WAITERS_MAX : 0) ||
            (!s->end && queue_flags(s) != s->flags - s->flags % WAITERS))
                return damaged(s, "the flags of an object tell who waits");
        s->record.unseen = (size_t)unseen;
        return SQLITE_OK;
}

bool snib__rows_suffice(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;
        size_t last = s->part;

        while (last > 0 && last > r->queued)
                last--;
        while (last > 0 && !snib__id_equal(&r->queue[last - 1].seat.id, &s->waiters.row[s->part - 1].id))
                last--;
        return !s->part || (last > 0 && (!s->end || (!s->change.holders && !s->change.record)));
}

/* Requests of which is remembered that they were executed. */
static bool remembered(const struct snib__op *op)
{
        return op->verb >= SNIB__SET || op->permits ||
               (op->kind == SNIB_KIND_SEMAPHORE && (op->verb == SNIB__ACQUIRE || op->verb == SNIB__RELEASE));
}

/* Puts into the record what is remembered of a request. False: it cannot be. */
static bool put_memory(struct snib__record *r, const struct snib__id *id, const struct snib__memory *m)
{
        struct snib__holder *h = &r->holder[r->held];

        if (m->what != SNIB__MEMORY_TOOK) {
                r->done[r->dones++] = (struct snib__done){
                    .id = *id, .expires_ms = m->expires_ms, .value = m->value, .applied = m->what != 0};
                return m->what == SNIB__MEMORY_APPLIED || m->what == SNIB__MEMORY_REFUSED;
        }
        memset(h, 0, sizeof(*h));
        h->seat.id = *id;
        h->seat.expires_ms = m->expires_ms;
        h->kind = SNIB_KIND_SEMAPHORE;
        h->n = m->value;
        h->claimed = true;
        r->held++;
        return r->family == SNIB__FAMILY_SEMAPHORE;
}

static int load_memory(struct snib__store *s, const struct snib__op *op)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_GET];
        struct snib__record *r = &s->record;
        int rc = reserve_record(r, r->held + 1, r->queued, r->dones + 1);

        if (rc != SQLITE_OK)
                return rc;
        bind_name(q, 1, op->name);
        bind_text(q, 2, op->id.text);
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW) {
                s->memory.expires_ms = sqlite3_column_int64(q, 0);
                s->memory.value = sqlite3_column_int64(q, 1);
                s->memory.what = sqlite3_column_int64(q, 2);
                if (!put_memory(r, &op->id, &s->memory))
                        (void)damaged(s, "what is remembered of a request can have been its answer");
        }
        rc = done(q, rc);
        return s->damage ? SQLITE_CORRUPT : rc;
}

/* The statement stays open: the value is its memory. */
static int load_content(struct snib__store *s, struct snib__name name, bool data)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_CONTENT_GET];
        struct snib__record *r = &s->record;
        int rc;

        bind_name(q, 1, name);
        (void)sqlite3_bind_int(q, 2, data);
        rc = sqlite3_step(q);
        if (rc != SQLITE_ROW)
                return done(q, rc);
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
        const struct snib__record *r = &s->record;

        if (snib__id_set(&seat->id))
                return put_holder(s, seat, number) && in_object(r);
        return !(s->flags & MORE_SEATS) || r->family > SNIB__FAMILY_RW;
}

/* The rest of a record whose object has a row. */
static int load_object(struct snib__store *s, sqlite3_stmt *q, const struct snib__op *op, bool data, bool whole)
{
        struct snib__record *r = &s->record;
        int64_t kind = sqlite3_column_int64(q, COLUMN_NUMBERS), flags = sqlite3_column_int64(q, COLUMN_NUMBERS + 2);
        const int64_t number[SNIB__NUMBERS] = {[SNIB__NUMBER_KIND] = kind,
                                               [SNIB__NUMBER_TOKEN] = sqlite3_column_int64(q, COLUMN_NUMBERS + 1),
                                               [SNIB__NUMBER_FLAG] = flags & CONFIRMED};
        int rc = reserve_record(r, 1, 0, 0);
        struct snib__seat first;

        if (rc != SQLITE_OK)
                return rc;
        if (kind < KIND_NONE || kind > SNIB_KIND_REGISTER || flags < 0 || flags > SEQ_MAX ||
            (flags >= OBSERVERS && !(flags & WAITERS)))
                return damaged(s, "the kind and the flags of an object are such");
        s->kind = (int)kind;
        s->flags = flags;
        r->family = snib__family_of(s->kind);
        r->token = s->token = sqlite3_column_int64(q, COLUMN_NUMBERS + 3);
        if (!read_seat(q, &first) || !put_first(s, &first, number))
                return damaged(s, "who sits first is somebody, and holds a lock");
        s->first = r->held > 0;
        if (flags & MORE_SEATS)
                rc = load_rows(s, op->name, &seat_table, SNIB__SQL_SEAT_GET, SNIB__SEATS_MAX + 1, &s->seats);
        if (rc == SQLITE_OK && (flags & WAITERS))
                rc = load_queue(s, op, whole);
        if (rc == SQLITE_OK && r->family > SNIB__FAMILY_RW)
                rc = load_content(s, op->name, data);
        if (rc == SQLITE_OK && remembered(op))
                rc = load_memory(s, op);
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
        s->kind = KIND_NONE;
        s->flags = 0;
        s->token = 0;
        s->seats.count = s->waiters.count = 0;
        s->seats.last = s->waiters.last = 0;
        s->memory.what = SNIB__MEMORY_NONE;
        memset(&s->content, 0, sizeof(s->content));
}

int snib__rows_load(struct snib__store *s, const struct snib__op *op, bool data, bool whole)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_OBJECT_GET];
        const char *wrong;
        int rc;

        clear(s);
        bind_name(q, 1, op->name);
        rc = sqlite3_step(q);
        s->existed = rc == SQLITE_ROW;
        rc = s->existed ? load_object(s, q, op, data, whole) : done(q, rc);
        if (rc == SQLITE_OK)
                rc = reserve_more(s, op);
        wrong = rc == SQLITE_OK ? snib__record_check(&s->record) : NULL;
        if (wrong)
                rc = damaged(s, wrong);
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
        static const int kind[] = {
            [SNIB__FAMILY_NONE] = KIND_NONE,
            [SNIB__FAMILY_LOCK] = SNIB_KIND_LOCK,
            [SNIB__FAMILY_RW] = SNIB_KIND_WRITE,
            [SNIB__FAMILY_SEMAPHORE] = SNIB_KIND_SEMAPHORE,
            [SNIB__FAMILY_PERMITS] = SNIB_KIND_PERMITS,
            [SNIB__FAMILY_LATCH] = SNIB_KIND_LATCH,
            [SNIB__FAMILY_REGISTER] = SNIB_KIND_REGISTER,
        };

        return r->held ? r->holder[0].kind : kind[r->family];
}

static int64_t flags_of(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;

        return (in_object(r) && r->holder[0].claimed ? CONFIRMED : 0) |
               (r->held > in_object(r) + memories(r) ? MORE_SEATS : 0) | queue_flags(s);
}

/* Where nobody sits, `since_ms` says since when. The row stays, for the token, and for a release on a full disk. */
static int save_object(struct snib__store *s, struct snib__name name, int64_t now_ms)
{
        enum snib__statement which = s->existed ? SNIB__SQL_OBJECT_SET : SNIB__SQL_OBJECT_ADD;
        const struct snib__record *r = &s->record;
        sqlite3_stmt *q = s->statement[which];
        struct snib__seat nobody;

        memset(&nobody, 0, sizeof(nobody));
        nobody.since_ms = now_ms;
        bind_seat(q, in_object(r) ? &r->holder[0].seat : &nobody);
        (void)sqlite3_bind_int64(q, COLUMN_NUMBERS + 1, kind_of(r));
        (void)sqlite3_bind_int64(q, COLUMN_NUMBERS + 2, in_object(r) ? r->holder[0].token : 0);
        (void)sqlite3_bind_int64(q, COLUMN_NUMBERS + 3, flags_of(s));
        (void)sqlite3_bind_int64(q, COLUMN_NUMBERS + 4, r->token);
        bind_name(q, COLUMN_NUMBERS + 5, name);
        return snib__rows_run(s, which);
}

static int remove_row(struct snib__store *s, struct snib__name name, enum snib__statement which, int64_t seq)
{
        sqlite3_stmt *q = s->statement[which];

        bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, seq);
        return snib__rows_run(s, which);
}

static int put_row(struct snib__store *s, struct snib__name name, const struct table *t, enum snib__statement which,
                   int64_t seq, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        sqlite3_stmt *q = s->statement[which];

        bind_seat(q, seat);
        for (int i = 0; i < t->numbers; i++)
                (void)sqlite3_bind_int64(q, COLUMN_NUMBERS + 1 + i, number[i]);
        bind_name(q, COLUMN_NUMBERS + 1 + t->numbers, name);
        (void)sqlite3_bind_int64(q, COLUMN_NUMBERS + 2 + t->numbers, seq);
        return snib__rows_run(s, which);
}

/* The row of the same one, be it changed or not. */
static bool same(const struct snib__row *row, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        return snib__id_equal(&row->id, &seat->id) && row->number[SNIB__NUMBER_COUNT] == number[SNIB__NUMBER_COUNT];
}

/* The model only takes out and appends, so both sides are walked once. (If it did not, more would be written.) */
static int save_rows(struct snib__store *s, struct snib__name name, const struct table *t,
                     const struct snib__rows *rows)
{
        int64_t number[SNIB__NUMBERS];
        size_t kept = 0;
        const struct snib__seat *seat = t->at(s, kept, number);
        int rc = SQLITE_OK;

        for (size_t i = 0; i < rows->count && rc == SQLITE_OK; i++) {
                const struct snib__row *row = &rows->row[i];

                if (!seat || !same(row, seat, number)) {
                        rc = remove_row(s, name, t->remove, row->seq);
                        continue;
                }
                if (seat->expires_ms != row->expires_ms || memcmp(number, row->number, sizeof(number)) != 0)
                        rc = put_row(s, name, t, t->set, row->seq, seat, number);
                seat = t->at(s, ++kept, number);
        }
        for (int64_t seq = rows->last + 1; seat && rc == SQLITE_OK; seat = t->at(s, ++kept, number))
                rc = put_row(s, name, t, t->add, seq++, seat, number);
        return rc;
}

/* What is to be remembered of a request. */
static struct snib__memory memory_of(const struct snib__record *r, const struct snib__id *id)
{
        for (size_t i = r->dones; i-- > 0;)
                if (snib__id_equal(&r->done[i].id, id))
                        return (struct snib__memory){
                            .what = r->done[i].applied, .expires_ms = r->done[i].expires_ms, .value = r->done[i].value};
        for (size_t i = 0; i < r->held; i++)
                if (is_memory(&r->holder[i]) && snib__id_equal(&r->holder[i].seat.id, id))
                        return (struct snib__memory){.what = SNIB__MEMORY_TOOK,
                                                     .expires_ms = r->holder[i].seat.expires_ms,
                                                     .value = r->holder[i].n};
        return (struct snib__memory){.what = SNIB__MEMORY_NONE};
}

/* One request in 32 is followed by a cleaning of what its name remembers. Which one is a lot drawn from its id, so that
 * nobody has to count, and short-lived clients do their part. */
static bool cleans(const struct snib__id *id)
{
        return hash(id->text) % 32 == 0;
}

static int put_memory_row(struct snib__store *s, const struct snib__op *op, const struct snib__memory *m)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_PUT];

        bind_name(q, 1, op->name);
        bind_text(q, 2, op->id.text);
        (void)sqlite3_bind_int64(q, 3, m->expires_ms);
        (void)sqlite3_bind_int64(q, 4, m->value);
        (void)sqlite3_bind_int64(q, 5, m->what);
        return snib__rows_run(s, SNIB__SQL_MEMORY_PUT);
}

static int prune(struct snib__store *s, struct snib__name name)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_PRUNE];

        bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, MEMORIES_KEPT - 1);
        return snib__rows_run(s, SNIB__SQL_MEMORY_PRUNE);
}

static int save_memory(struct snib__store *s, const struct snib__op *op, const struct snib__memory *m)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_REMOVE];
        int rc;

        if (m->what == SNIB__MEMORY_NONE) {
                bind_name(q, 1, op->name);
                bind_text(q, 2, op->id.text);
                return snib__rows_run(s, SNIB__SQL_MEMORY_REMOVE);
        }
        rc = put_memory_row(s, op, m);
        return rc == SQLITE_OK && cleans(&op->id) ? prune(s, op->name) : rc;
}

/* What a semaphore remembers of who took goes with it. */
static int save_end(struct snib__store *s, struct snib__name name)
{
        bind_name(s->statement[SNIB__SQL_MEMORY_UNTAKE], 1, name);
        return snib__rows_run(s, SNIB__SQL_MEMORY_UNTAKE);
}

/* The semaphore that was there is not there any more; perhaps another is. */
static bool ended(const struct snib__store *s, struct snib__clock now)
{
        return snib__family_of(s->kind) == SNIB__FAMILY_SEMAPHORE && s->content.exists &&
               (!s->record.exists || s->content.expires_ms <= now.lease_ms);
}

/* A register's value changes with its version only; otherwise it was perhaps not loaded, and must not be stored. */
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
                bind_name(q, 1, name);
                return snib__rows_run(s, which);
        }
        (void)sqlite3_bind_int64(q, 1, r->value);
        (void)sqlite3_bind_int64(q, 2, r->version);
        (void)sqlite3_bind_int64(q, 3, r->expires_ms);
        if (r->family == SNIB__FAMILY_REGISTER)
                (void)sqlite3_bind_blob(q, 4, r->data_length ? r->data : "", (int)r->data_length, SQLITE_STATIC);
        else
                (void)sqlite3_bind_null(q, 4);
        bind_name(q, 5, name);
        return snib__rows_run(s, which);
}

/* A name of which anything is stored has a row. */
static bool object_changed(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;

        return !s->existed || (s->change.holders && (s->first || in_object(r))) || r->token != s->token ||
               kind_of(r) != s->kind || flags_of(s) != s->flags;
}

static bool memory_changed(const struct snib__store *s, const struct snib__memory *m)
{
        const struct snib__memory *old = &s->memory;

        return m->what != old->what ||
               (m->what != SNIB__MEMORY_NONE && (m->value != old->value || m->expires_ms != old->expires_ms));
}

/* The usual change is one row: then the statement is the transaction, and neither a BEGIN nor a COMMIT is paid for. */
int snib__rows_save(struct snib__store *s, const struct snib__op *op, struct snib__clock now)
{
        const struct snib__change *change = &s->change;
        const struct snib__record *r = &s->record;
        struct snib__memory m = memory_of(r, &op->id);
        bool seats = change->holders && (s->seats.count || r->held > in_object(r) + memories(r));
        bool content = change->record && content_changed(s);
        bool memory = memory_changed(s, &m), end = ended(s, now);
        bool joins = s->end && r->queued > s->part; /* and no more */
        bool many = (seats || (change->queue && !joins) || memory || end || content) && sqlite3_get_autocommit(s->db);
        int rc = many ? snib__rows_run(s, SNIB__SQL_BEGIN) : SQLITE_OK;

        if (rc == SQLITE_OK && seats)
                rc = save_rows(s, op->name, &seat_table, &s->seats);
        if (rc == SQLITE_OK && change->queue)
                rc = save_rows(s, op->name, &waiter_table, &s->waiters);
        if (rc == SQLITE_OK && end)
                rc = save_end(s, op->name);
        if (rc == SQLITE_OK && memory)
                rc = save_memory(s, op, &m);
        if (rc == SQLITE_OK && content)
                rc = save_content(s, op->name);
        if (rc == SQLITE_OK && object_changed(s))
                rc = save_object(s, op->name, now.wall_us / 1000);
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

int snib__rows_client_by_uuid(struct snib__store *s, const char *uuid, bool anew, const struct snib__peer_row **ret)
{
        struct snib__peer_row *known = &s->known[hash(uuid) % SNIB__KNOWN_MAX];
        int rc;

        *ret = known;
        if (!anew && !strcmp(known->uuid, uuid))
                return SQLITE_ROW;
        bind_text(s->statement[SNIB__SQL_CLIENT_BY_UUID], 1, uuid);
        rc = read_client(s->statement[SNIB__SQL_CLIENT_BY_UUID], known);
        if (rc != SQLITE_ROW)
                known->uuid[0] = 0;
        return rc;
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
        free(s->record.holder);
        free(s->record.queue);
        free(s->record.done);
        free(s->change.tell);
        free(s->seats.row);
        free(s->waiters.row);
}
