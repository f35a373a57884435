/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Those who sit and those who wait, as rows: the columns that they have in common, and their two
 * tables, loaded, checked and stored where they differ. Not the object's own row, though it begins
 * with the same columns, and not how much of a queue is loaded (part.c). What a semaphore
 * remembers of who took sits in the record but has no row here (memory.c).
 *
 * A row that this file would not have written makes the record damaged. Called with store.lock
 * held.
 */

#include "engine/local/rows.h"
#include <string.h>

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

bool snib__seats_read(sqlite3_stmt *q, struct snib__seat *ret)
{
        snib__sql_read_text(q, 1, ret->who.host, sizeof(ret->who.host));
        ret->who.pid = sqlite3_column_int64(q, 2);
        snib__sql_read_text(q, 3, ret->who.label, sizeof(ret->who.label));
        ret->since_ms = sqlite3_column_int64(q, 4);
        ret->expires_ms = sqlite3_column_int64(q, 5);
        return read_id(q, 0, &ret->id);
}

void snib__seats_bind(sqlite3_stmt *q, const struct snib__seat *seat)
{
        snib__sql_bind_text(q, 1, seat->id.text);
        snib__sql_bind_text(q, 2, seat->who.host);
        (void)sqlite3_bind_int64(q, 3, seat->who.pid);
        snib__sql_bind_text(q, 4, seat->who.label);
        (void)sqlite3_bind_int64(q, 5, seat->since_ms);
        (void)sqlite3_bind_int64(q, 6, seat->expires_ms);
}

/* A table of rows that belong to a name. Those of seats and of waiters are alike. */
struct table {
        enum snib__statement add, set, remove;
        size_t most; /* rows of a name */
        int numbers; /* columns of snib__number */
        /* Row that fits to record: false for one that cannot be. */
        bool (*put)(struct snib__record *r, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS]);
        /* Record to row: number i of those that belong into the table, NULL past the end. */
        const struct snib__seat *(*at)(const struct snib__store *s, size_t i, int64_t number[SNIB__NUMBERS]);
};

/* What snib__record_check() cannot see any more, or needs to be true of what it looks at. */
static bool fits(const struct snib__record *r, const int64_t number[SNIB__NUMBERS])
{
        int64_t kind = number[SNIB__NUMBER_KIND], flag = number[SNIB__NUMBER_FLAG];

        return kind >= 0 && kind <= INT32_MAX && snib__family_of((int)kind) == r->family && (flag == 0 || flag == 1);
}

static bool put_holder(struct snib__record *r, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        bool semaphore = r->family == SNIB__FAMILY_SEMAPHORE, permits = r->family == SNIB__FAMILY_PERMITS;
        int64_t count = number[SNIB__NUMBER_COUNT];

        r->holder[r->held++] = (struct snib__holder){.seat = *seat,
                                                     .kind = (int)number[SNIB__NUMBER_KIND],
                                                     .token = number[SNIB__NUMBER_TOKEN],
                                                     .claimed = number[SNIB__NUMBER_FLAG],
                                                     .n = semaphore ? count : 1,
                                                     .index = permits ? count : 0};
        return semaphore ? !number[SNIB__NUMBER_FLAG] : permits || count == 0;
}

bool snib__seats_put(struct snib__record *r, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        return fits(r, number) && put_holder(r, seat, number);
}

static void numbers_of(const struct snib__holder *h, int64_t number[SNIB__NUMBERS])
{
        number[SNIB__NUMBER_KIND] = h->kind;
        number[SNIB__NUMBER_LEASE] = 0; /* nobody asks for what was asked for */
        number[SNIB__NUMBER_COUNT] = snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE ? h->n : h->index;
        number[SNIB__NUMBER_TOKEN] = h->token;
        number[SNIB__NUMBER_FLAG] = h->claimed;
}

/* How many of the seats are memories: at most that of the request at hand. */
static size_t memories(const struct snib__record *r)
{
        size_t n = 0;

        for (size_t i = 0; r->family == SNIB__FAMILY_SEMAPHORE && i < r->held; i++)
                n += snib__rows_is_memory(&r->holder[i]);
        return n;
}

bool snib__seats_more(const struct snib__record *r)
{
        return r->held > snib__rows_in_object(r) + memories(r);
}

static const struct snib__seat *holder_at(const struct snib__store *s, size_t i, int64_t number[SNIB__NUMBERS])
{
        const struct snib__record *r = &s->record;
        size_t at = snib__rows_in_object(r) + i;

        for (size_t k = 0; r->family == SNIB__FAMILY_SEMAPHORE && k <= at && k < r->held; k++)
                at += snib__rows_is_memory(&r->holder[k]);
        if (at >= r->held)
                return NULL;
        numbers_of(&r->holder[at], number);
        return &r->holder[at].seat;
}

static bool put_waiter(struct snib__record *r, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        bool observer = number[SNIB__NUMBER_FLAG];
        int64_t latest = number[SNIB__NUMBER_TOKEN];

        r->queue[r->queued++] = (struct snib__waiter){.seat = *seat,
                                                      .kind = (int)number[SNIB__NUMBER_KIND],
                                                      .lease_ms = number[SNIB__NUMBER_LEASE],
                                                      .n = number[SNIB__NUMBER_COUNT],
                                                      .observer = observer,
                                                      .seen = observer ? latest : 0,
                                                      .number = observer ? 0 : (uint32_t)latest};
        return observer || (latest >= 0 && latest <= UINT32_MAX);
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

/* One row of those that are alike. */
static int load_row(struct snib__store *s, sqlite3_stmt *q, const struct table *t, struct snib__rows *rows)
{
        struct snib__room one_more = {.held = s->record.held + 1, .queued = s->record.queued + 1};
        struct snib__row *row;
        struct snib__seat seat;

        if (!snib__room_make(&s->record, one_more) ||
            !snib__room_grow(&rows->row, &rows->room, rows->count + 1, sizeof(rows->row[0])))
                return SQLITE_NOMEM;
        row = &rows->row[rows->count];
        row->number[SNIB__NUMBER_LEASE] = 0;
        for (int i = 0; i < t->numbers; i++)
                row->number[i] = sqlite3_column_int64(q, SNIB__COLUMN_NUMBERS + i);
        if (snib__rows_strange(row->number[SNIB__NUMBER_KIND]))
                return snib__rows_unknown(s);
        if (!snib__seats_read(q, &seat) || !fits(&s->record, row->number) || !t->put(&s->record, &seat, row->number))
                return snib__rows_damaged(s, "every row is of somebody and of the object's kind");
        row->seq = rows->last = sqlite3_column_int64(q, SNIB__COLUMN_NUMBERS + t->numbers);
        if (row->seq < 1 || row->seq > SNIB__SEQ_MAX)
                return snib__rows_damaged(s, "rows are numbered from 1");
        row->id = seat.id;
        row->expires_ms = seat.expires_ms;
        rows->count++;
        return SQLITE_OK;
}

static int load_rows(struct snib__store *s, struct snib__name name, const struct table *t, enum snib__statement which,
                     size_t most, struct snib__rows *rows)
{
        sqlite3_stmt *q = s->statement[which];
        int rc, loaded = SQLITE_OK;

        snib__sql_bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, (int64_t)most);
        while ((rc = sqlite3_step(q)) == SQLITE_ROW && loaded == SQLITE_OK)
                loaded = load_row(s, q, t, rows);
        rc = snib__sql_end(q, rc);
        if (rc != SQLITE_OK || loaded != SQLITE_OK)
                return rc != SQLITE_OK ? rc : loaded;
        return rows->count && rows->count <= t->most
                   ? SQLITE_OK
                   : snib__rows_damaged(s, "the rows that an object has are there, and not too many");
}

int snib__seats_load(struct snib__store *s, struct snib__name name)
{
        return load_rows(s, name, &seat_table, SNIB__SQL_SEAT_GET, SNIB__SEATS_MAX + 1, &s->seats);
}

int snib__seats_load_waiters(struct snib__store *s, struct snib__name name, enum snib__statement which, size_t most)
{
        return load_rows(s, name, &waiter_table, which, most, &s->waiters);
}

static int remove_row(struct snib__store *s, struct snib__name name, enum snib__statement which, int64_t seq)
{
        sqlite3_stmt *q = s->statement[which];

        snib__sql_bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, seq);
        return snib__sql_run(s, which);
}

static int put_row(struct snib__store *s, struct snib__name name, const struct table *t, enum snib__statement which,
                   int64_t seq, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        sqlite3_stmt *q = s->statement[which];

        snib__seats_bind(q, seat);
        for (int i = 0; i < t->numbers; i++)
                (void)sqlite3_bind_int64(q, SNIB__COLUMN_NUMBERS + 1 + i, number[i]);
        snib__sql_bind_name(q, SNIB__COLUMN_NUMBERS + 1 + t->numbers, name);
        (void)sqlite3_bind_int64(q, SNIB__COLUMN_NUMBERS + 2 + t->numbers, seq);
        return snib__sql_run(s, which);
}

/* The row of the same one, be it changed or not. */
static bool same(const struct snib__row *row, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS])
{
        return snib__id_equal(&row->id, &seat->id) && row->number[SNIB__NUMBER_COUNT] == number[SNIB__NUMBER_COUNT];
}

/* The model only takes out and appends, so both sides are walked once. (If it did not, more would
 * be written.) */
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

int snib__seats_save(struct snib__store *s, struct snib__name name)
{
        return save_rows(s, name, &seat_table, &s->seats);
}

int snib__seats_save_waiters(struct snib__store *s, struct snib__name name)
{
        return save_rows(s, name, &waiter_table, &s->waiters);
}

const struct snib__holder *snib__seats_find(const struct snib__record *r, const struct snib__id *id)
{
        for (size_t i = r->held; i-- > 0;) /* those who sat down just now are the last */
                if (snib__id_equal(&r->holder[i].seat.id, id))
                        return &r->holder[i];
        return NULL;
}
