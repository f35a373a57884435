/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_ROWS_H
#define SNIB_LOCAL_ROWS_H

/*
 * What the files that turn records into rows and back have among themselves: sql.c, seats.c,
 * part.c, memory.c, clients.c and, above them, rows.c. For everybody else there is store.h. All of
 * it with store.lock held; an int that is answered is an SQLite result code.
 */

#include "engine/local/store.h"
#include "engine/room.h"

/* Nobody sits, waits or exists. In the column where the kind of the first seat stands otherwise. */
#define SNIB__KIND_NONE SNIB_KIND_ANY

#define SNIB__SEQ_MAX ((int64_t)1 << 53)

/* In every row of somebody there are so many columns before the numbers. */
#define SNIB__COLUMN_NUMBERS 6

/* In the column `flags` of an object. */
enum snib__flag {
        SNIB__FLAG_CONFIRMED = 1, /* the first seat is */
        SNIB__FLAG_SEATS = 2,     /* there are more */
        SNIB__FLAG_WAITERS = 4,
        SNIB__FLAG_OBSERVERS = 8, /* among them */
        SNIB__FLAG_LEFT = 16      /* times how many have left the queue since it was empty: the last one's seq less that
                                     wait */
};

/* `must` is what should be true of the rows. */
static inline int snib__rows_damaged(struct snib__store *s, const char *must)
{
        s->damage = must;
        return SQLITE_CORRUPT;
}

/* A kind that nobody makes here, a newer version perhaps: no damage. */
static inline bool snib__rows_strange(int64_t kind)
{
        return kind >= 0 && kind <= INT32_MAX && snib__family_of((int)kind) == SNIB__FAMILY_NONE;
}

static inline int snib__rows_unknown(struct snib__store *s)
{
        s->damage = "the kind is a known one";
        return SQLITE_MISMATCH;
}

/* FNV-1a */
static inline uint32_t snib__rows_hash(const char *text)
{
        uint32_t h = 2166136261U;

        for (; *text; text++)
                h = (h ^ (unsigned char)*text) * 16777619U;
        return h;
}

/* How many seats are in the object's row: the first of a lock. */
static inline size_t snib__rows_in_object(const struct snib__record *r)
{
        return r->held && (r->family == SNIB__FAMILY_LOCK || r->family == SNIB__FAMILY_RW);
}

/* Of a semaphore, and confirmed: only a memory of who took. */
static inline bool snib__rows_is_memory(const struct snib__holder *h)
{
        return snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE && h->claimed;
}

/* sql.c. What is bound is not copied: it lives until the statement was run. */
void snib__sql_bind_text(sqlite3_stmt *q, int i, const char *text);
void snib__sql_bind_name(sqlite3_stmt *q, int i, struct snib__name name);
/* Cut to its field, of which the rest is zero. */
void snib__sql_read_text(sqlite3_stmt *q, int i, char *ret, size_t size);
/* For a statement of which one row is wanted and has been read, or that failed. */
int snib__sql_end(sqlite3_stmt *q, int rc);

/* seats.c. The columns before the numbers; false: the id is none. */
bool snib__seats_read(sqlite3_stmt *q, struct snib__seat *ret);
void snib__seats_bind(sqlite3_stmt *q, const struct snib__seat *seat);
/* Seats one who was in a row; false: nobody can sit so. */
bool snib__seats_put(struct snib__record *r, const struct snib__seat *seat, const int64_t number[SNIB__NUMBERS]);
/* Whether there are seats for table seat. */
bool snib__seats_more(const struct snib__record *r);
int snib__seats_load(struct snib__store *s, struct snib__name name);
int snib__seats_save(struct snib__store *s, struct snib__name name);
/* At most so many of them, as one of its questions has them. */
int snib__seats_load_waiters(struct snib__store *s, struct snib__name name, enum snib__statement which, size_t most);
int snib__seats_save_waiters(struct snib__store *s, struct snib__name name);

/* part.c */
int snib__part_load(struct snib__store *s, const struct snib__op *op, bool whole);
/* The flags that are about who waits. The last goes only where all were loaded. */
int64_t snib__part_flags(const struct snib__store *s);

/* memory.c: of the request at hand, if it is one that is remembered. */
int snib__memory_load(struct snib__store *s, const struct snib__op *op);
/* What is to be remembered of it. */
struct snib__memory snib__memory_of(const struct snib__record *r, const struct snib__id *id);
bool snib__memory_changed(const struct snib__store *s, const struct snib__memory *m);
int snib__memory_save(struct snib__store *s, const struct snib__op *op, const struct snib__memory *m);
/* What a semaphore that ended remembers of who took goes with it. */
int snib__memory_untake(struct snib__store *s, struct snib__name name);

#endif
