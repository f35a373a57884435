/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_STORE_H
#define SNIB_LOCAL_STORE_H

/*
 * The shared state of all clients of one directory in this process: one SQLite handle (POSIX locks
 * fall when any descriptor of the file is closed, so there must never be two), the descriptors of
 * the gate and of the liveness bytes, and the worker that waits where a caller may not.
 * doc/design/local.md has the whole picture.
 *
 * Locks, in the order in which they may be taken: registry, store.lock, worker.lock. Whoever calls
 * a function of db.c, sql.c or rows.c, or of a file below that, holds store.lock.
 */

#include "base/list.h"
#include "engine/engine.h"
#include "engine/local/place.h"
#include "model/record.h"
#include <pthread.h>
#include <sqlite3.h>

/* The lower ones were never released. */
#define SNIB__SCHEMA_VERSION 4

enum snib__statement {
        SNIB__SQL_BEGIN,
        SNIB__SQL_BEGIN_WRITE,
        SNIB__SQL_COMMIT,
        SNIB__SQL_ROLLBACK,
        SNIB__SQL_OBJECT_GET,
        SNIB__SQL_OBJECT_ADD,
        SNIB__SQL_OBJECT_SET,
        SNIB__SQL_OBJECT_LIST,
        SNIB__SQL_SEAT_GET,
        SNIB__SQL_SEAT_ADD,
        SNIB__SQL_SEAT_SET,
        SNIB__SQL_SEAT_REMOVE,
        SNIB__SQL_WAITER_GET,
        SNIB__SQL_WAITER_LAST,
        SNIB__SQL_WAITER_ADD,
        SNIB__SQL_WAITER_SET,
        SNIB__SQL_WAITER_REMOVE,
        SNIB__SQL_MEMORY_GET,
        SNIB__SQL_MEMORY_PUT,
        SNIB__SQL_MEMORY_REMOVE,
        SNIB__SQL_MEMORY_PRUNE,
        SNIB__SQL_MEMORY_UNTAKE,
        SNIB__SQL_CONTENT_GET,
        SNIB__SQL_CONTENT_PUT,
        SNIB__SQL_CONTENT_REMOVE,
        SNIB__SQL_CLIENT_BY_UUID,
        SNIB__SQL_CLIENT_BY_SLOT,
        SNIB__SQL_CLIENT_ADD,
        SNIB__SQL_CLIENT_REMOVE,
        SNIB__SQL_NAMES_OF,
        SNIB__SQL_COUNT
};

/* The numbers in a row of a seat or of a waiter, in the order of their columns. */
enum snib__number {
        SNIB__NUMBER_KIND,
        SNIB__NUMBER_COUNT, /* seat: how many it took of a semaphore, or its index among the permits of its hold;
                               waiter: how many it wants */
        SNIB__NUMBER_TOKEN, /* seat: its token; waiter: the number of its latest request; observer: the state it has
                               seen */
        SNIB__NUMBER_FLAG,  /* seat: it is confirmed; waiter: it only observes */
        SNIB__NUMBER_LEASE, /* waiter: of the hold it asks for */
        SNIB__NUMBERS
};

/* A row as it was loaded, for storing only what is different. */
struct snib__row {
        int64_t seq;
        struct snib__id id;
        int64_t expires_ms;
        int64_t number[SNIB__NUMBERS];
};

struct snib__rows {
        struct snib__row *row;
        size_t count, room;
        int64_t last; /* seq of the last, also of those that were not loaded; 0 */
};

/* What a row of table memory says of a request. */
enum snib__memory_what {
        SNIB__MEMORY_NONE = -1,   /* there is no row */
        SNIB__MEMORY_REFUSED = 0, /* a change whose condition was not met */
        SNIB__MEMORY_APPLIED = 1, /* a change */
        SNIB__MEMORY_TOOK = 2     /* it took `value` from a semaphore */
};
struct snib__memory {
        int64_t what; /* enum snib__memory_what, if it is not damaged */
        int64_t expires_ms, value;
};

/* A row of table client. */
struct snib__peer_row {
        char uuid[SNIB__UUID_LENGTH + 1];
        int64_t slot;
        int64_t pid;
        int64_t pid_namespace;
        char host[64];
        char label[64];
};

/* Clients whose rows were read lately, by their uuids. A row does not change while its client
 * lives, which its byte tells; before a client is declared dead its row is read anew. */
#define SNIB__KNOWN_MAX 256

struct snib__worker;

struct snib__store {
        struct snib__list link; /* in the registry */
        unsigned users;
        struct snib__place place;
        int gate_fd; /* own open file description: the inline path's hand on the gate */
        int live_fd; /* never holds a byte; looks at everybody's */
        int send_fd;
        bool terminal; /* the process had a controlling terminal when the store was opened */
        dev_t db_dev;  /* of the file that `db` has open: a file put in its place is noticed */
        ino_t db_ino;
        int64_t pid_namespace;
        pthread_mutex_t lock; /* the fields below, and gate_fd's hold */
        sqlite3 *db;
        sqlite3_stmt *statement[SNIB__SQL_COUNT];
        struct snib__record record; /* what the transaction at hand works on */
        struct snib__change change; /* what the calls of the model in it have changed; its `tell` is theirs together */
        const char *damage;         /* what should be true of its rows and is not; NULL */
        char damaged[48];           /* then: its name, as far as it can be printed */
        /* As it was loaded: */
        bool existed; /* it has a row */
        int kind;     /* in its row */
        int64_t flags, token;
        bool first;              /* the first seat of a lock was in its row */
        struct snib__rows seats; /* the others, without what a semaphore remembers of who took */
        struct snib__rows waiters;
        size_t part; /* only so many of those who wait were loaded; 0: all */
        bool end;    /* then: from the end of the queue, not from its head */
        struct snib__peer_row known[SNIB__KNOWN_MAX];
        struct snib__memory memory; /* of the request at hand; no other is loaded */
        struct {
                bool exists;
                int64_t value, version, expires_ms;
        } content;
        int log_pages;       /* of the write-ahead log after the last commit */
        int64_t in_place_ms; /* when the file was last seen where it should be */
        struct snib__worker *worker;
        void (*trace)(void *arg, const char *line); /* the first client's, during open only */
        void *trace_arg;
};

/* The open store of a place, or a new one without a database yet. Takes the place over on
 * success. */
int snib__store_get(struct snib__store **ret_store, struct snib__place *place, struct snib_error *err);
void snib__store_put(struct snib__store *s);

/* db.c. Opens the database if that is not done: schema, boot id, damage. The gate is held. 0 or a
 * negative error. */
int snib__db_prepare(struct snib__store *s, struct snib_error *err);

/* Fills *err from SQLite's result code, with what was being done and what to do; answers the
 * error. */
int snib__db_failed(struct snib__store *s, int rc, const char *doing, struct snib_error *err);

/* Writes the log back if it has grown long. The gate is held, no statement is open. */
void snib__db_checkpoint(struct snib__store *s);

/* Whether the database file is still the one that is open. */
bool snib__db_in_place(const struct snib__store *s);
void snib__db_close(struct snib__store *s);

/* All answer an SQLite result code, SQLITE_OK for success. */
/* Runs a statement to its end; what is bound to it may go away then. */
int snib__sql_run(struct snib__store *s, enum snib__statement which);
int snib__sql_prepare(struct snib__store *s);
void snib__sql_finalize(struct snib__store *s);
/* Loads the record of op's name, of what is remembered what op needs, with room for what op may add
 * to it, and stays in the read transaction; end it with snib__rows_unload(). `data`: with the value
 * of a register, which lives until then. Not `whole`: a long queue in part, where that is likely to
 * be enough; what was decided counts only if snib__part_suffices() says afterwards that it was.
 * SQLITE_CORRUPT with s->damage: the rows are not such as snib__rows_save() writes. SQLITE_MISMATCH
 * with it: they are of a kind that is not known. */
int snib__rows_load(struct snib__store *s, const struct snib__op *op, bool data, bool whole);
bool snib__part_suffices(const struct snib__store *s);
/* Where an id sits, NULL. */
const struct snib__holder *snib__seats_find(const struct snib__record *r, const struct snib__id *id);
void snib__rows_unload(struct snib__store *s);
/* Stores what s->change says is different after `op`, as a transaction of its own unless one is
 * open. */
int snib__rows_save(struct snib__store *s, const struct snib__op *op, struct snib__clock now);
int snib__clients_add(struct snib__store *s, const struct snib__peer_row *row, int64_t now_ms);
int snib__clients_remove(struct snib__store *s, const char *uuid);
/* SQLITE_ROW and *ret, SQLITE_DONE if there is none. By its uuid: of the store, until the next such
 * call, and unless it is to be read `anew` it may be known from before. */
int snib__clients_by_uuid(struct snib__store *s, const char *uuid, bool anew, const struct snib__peer_row **ret);
int snib__clients_by_slot(struct snib__store *s, int64_t slot, struct snib__peer_row *ret);
/* The next of the names in which an id of the client stands, after `after`: SQLITE_ROW and
 * *ret_name (room for SNIB_NAME_MAX + 1), or DONE. */
int snib__clients_name_of(struct snib__store *s, const char *uuid, struct snib__name after, char *ret_name,
                          size_t *ret_length);
/* The next name under which there is something: SQLITE_ROW, or DONE. Call snib__rows_list_end()
 * after the last. */
int snib__rows_list(struct snib__store *s, struct snib__name *ret_name);
void snib__rows_list_end(struct snib__store *s);
/* Frees the memory of the record. */
void snib__rows_done(struct snib__store *s);

/* gate.c. The gate: whoever writes holds it. True: got it. */
bool snib__gate_try(int fd);
bool snib__gate_wait(int fd);
void snib__gate_leave(int fd);
/* Says in `text` who holds the gate of `s`, as far as can be found out. */
void snib__gate_blame(const struct snib__store *s, int64_t timeout_ms, char *text, size_t size);

/* live.c. The liveness byte number `slot`. */
bool snib__live_take(int fd, int64_t slot);
bool snib__live_test(const struct snib__store *s, int64_t slot);
/* Whether any client of another process or of this one is alive. */
bool snib__live_any(const struct snib__store *s);

#endif
