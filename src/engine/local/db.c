/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The database of a store: its file, its schema, the restart of the machine, damage, and what its
 * errors are called. Not a statement about locks: sql.c has those.
 *
 * Invariants: a handle never checkpoints and never removes the log when it is closed, so that
 * closing one, in a child above all, changes nothing for others. The database is opened under the
 * gate. Called with store.lock held.
 */

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/local/store.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DB_FILE "snib.db"
#define APPLICATION_ID 0x736e6962 /* "snib" */
/* A log of this many pages is written back inside the gate; a few tens of microseconds once in as
 * many commits. SQLite finds the newest copy of a page by going through all older ones in the log,
 * when it reads and when it appends: a lock that is taken again and again pays for each. Where the
 * log goes to the disk first it is worth waiting for. */
#define CHECKPOINT_PAGES 128
#define CHECKPOINT_PAGES_DURABLE 1000
/* Small pages: a change of one lock is one page, and a page is what is summed and written. */
#define PAGE_SIZE "1024"
/* Space of the log kept ready, so that a release finds room on a full disk. */
#define LOG_RESERVE (2000L * (1024 + 24))
#define FREE_ROWS_KEPT_MS (24 * 3600 * (int64_t)1000)
#define REAP_EVERY_MS (3600 * (int64_t)1000)

/* Readable with the stock sqlite3 shell. */
static const char tables[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE client(slot INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, pid INTEGER NOT NULL,"
    " pid_namespace INTEGER NOT NULL, host TEXT NOT NULL, label TEXT NOT NULL, since_ms INTEGER NOT NULL);"
    "CREATE TABLE object(name TEXT PRIMARY KEY, token INTEGER NOT NULL, kind INTEGER NOT NULL, flags INTEGER NOT NULL,"
    " id TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, label TEXT NOT NULL, since_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, held_token INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE seat(name TEXT NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL,"
    " host TEXT NOT NULL, pid INTEGER NOT NULL, label TEXT NOT NULL, since_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, number INTEGER NOT NULL, token INTEGER NOT NULL, claimed INTEGER NOT NULL,"
    " PRIMARY KEY(name, seq)) WITHOUT ROWID;"
    "CREATE TABLE waiter(name TEXT NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL,"
    " host TEXT NOT NULL, pid INTEGER NOT NULL, label TEXT NOT NULL, since_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, number INTEGER NOT NULL, latest INTEGER NOT NULL, observer INTEGER NOT NULL,"
    " lease_ms INTEGER NOT NULL, PRIMARY KEY(name, seq)) WITHOUT ROWID;"
    "CREATE TABLE memory(name TEXT NOT NULL, id TEXT NOT NULL, expires_ms INTEGER NOT NULL, value INTEGER NOT NULL,"
    " what INTEGER NOT NULL, PRIMARY KEY(name, id)) WITHOUT ROWID;"
    "CREATE TABLE content(name TEXT PRIMARY KEY, value INTEGER NOT NULL, version INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, data BLOB) WITHOUT ROWID;";

static void trace(const struct snib__store *s, const char *line)
{
        if (s->trace)
                s->trace(s->trace_arg, line);
}

static int64_t wall_ms(void)
{
        struct timespec t;

        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int snib__db_failed(struct snib__store *s, int rc, const char *doing, struct snib_error *err)
{
        const char *why = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);
        int base = rc & 0xff;

        if (base == SQLITE_MISMATCH && s->damage)
                return snib__error_engine(err, SNIB_EUNSUPPORTED, rc,
                                          "'%s' in %s/" DB_FILE " is of a kind that this version does not know: use it "
                                          "with the version that made it",
                                          s->damaged, s->place.path);
        if (base == SQLITE_CORRUPT && s->damage)
                return snib__error_engine(err, SNIB_ECORRUPT, rc,
                                          "the rows of '%s' in %s/" DB_FILE " are damaged (it is not so that %s): end "
                                          "those who use it, then delete the rows, or the file",
                                          s->damaged, s->place.path, s->damage);
        if (base == SQLITE_CORRUPT || base == SQLITE_NOTADB)
                return snib__error_engine(err, SNIB_ECORRUPT, rc, "%s/" DB_FILE " is damaged (%s: %s)", s->place.path,
                                          doing, why);
        if (base == SQLITE_NOMEM)
                return snib__error_engine(err, SNIB_ENOMEM, rc, "out of memory while %s", doing);
        if (base == SQLITE_FULL)
                return snib__error_engine(err, SNIB_ESYSTEM, rc, "the disk of %s is full: make room on it",
                                          s->place.path);
        if (base == SQLITE_PERM || base == SQLITE_READONLY || base == SQLITE_CANTOPEN || base == SQLITE_AUTH)
                return snib__error_engine(err, SNIB_EPERM, rc, "%s/" DB_FILE ": %s: %s; check who owns the files there",
                                          s->place.path, doing, why);
        if (base == SQLITE_BUSY || base == SQLITE_LOCKED)
                return snib__error_engine(err, SNIB_ENOTREADY, rc,
                                          "%s/" DB_FILE " is locked by another program (an sqlite3 shell?): %s",
                                          s->place.path, doing);
        return snib__error_engine(err, SNIB_ESYSTEM, rc, "%s/" DB_FILE ": %s: %s", s->place.path, doing, why);
}

static int64_t pragma(struct snib__store *s, const char *text)
{
        sqlite3_stmt *q = NULL;
        int64_t value = -1;

        if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
                value = sqlite3_column_int64(q, 0);
        (void)sqlite3_finalize(q);
        return value;
}

/* A value of table meta, empty if there is none. */
static int meta_get(struct snib__store *s, const char *key, char *ret, size_t size)
{
        sqlite3_stmt *q = NULL;
        int rc = sqlite3_prepare_v2(s->db, "SELECT value FROM meta WHERE key=?1", -1, &q, NULL);

        ret[0] = 0;
        if (rc == SQLITE_OK)
                rc = sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        if (rc == SQLITE_OK)
                rc = sqlite3_step(q);
        if (rc == SQLITE_ROW)
                snprintf(ret, size, "%s", (const char *)sqlite3_column_text(q, 0));
        (void)sqlite3_finalize(q);
        return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int meta_set(struct snib__store *s, const char *key, const char *value)
{
        sqlite3_stmt *q = NULL;
        int rc = sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO meta VALUES(?1,?2)", -1, &q, NULL);

        if (rc == SQLITE_OK)
                rc = sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
        if (rc == SQLITE_OK)
                rc = sqlite3_bind_text(q, 2, value, -1, SQLITE_STATIC);
        if (rc == SQLITE_OK)
                rc = sqlite3_step(q);
        (void)sqlite3_finalize(q);
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void snib__db_close(struct snib__store *s)
{
        snib__sql_finalize(s);
        (void)sqlite3_close(s->db);
        s->db = NULL;
}

static int count_pages(void *store, sqlite3 *db, const char *schema, int pages)
{
        ((struct snib__store *)store)->log_pages = pages;
        return SQLITE_OK;
}

/* Not SQLite's own: that runs inside the last statement, while the read of the same transaction is
 * still open and keeps the log from being used from its beginning again. A failure is harmless: the
 * next one tries again. */
void snib__db_checkpoint(struct snib__store *s)
{
        if (s->log_pages < (s->place.durable ? CHECKPOINT_PAGES_DURABLE : CHECKPOINT_PAGES))
                return;
        s->log_pages = 0;
        (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static int open_db(struct snib__store *s, struct snib_error *err)
{
        char path[SNIB__PLACE_PATH_MAX + 32];
        struct stat st;
        int fd = -1;
        int r = snib__place_file(&s->place, DB_FILE, &fd, err); /* made, checked; SQLite finds it there */
        int rc;

        if (r < 0)
                return r;
        r = fstat(fd, &st);
        (void)close(fd); /* no handle of this process is open, so no lock of ours falls */
        if (r < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, errno, s->place.path);
        s->db_dev = st.st_dev;
        s->db_ino = st.st_ino;
        snprintf(path, sizeof(path), "%s/" DB_FILE, s->place.path);
        rc = sqlite3_open_v2(path, &s->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
                             "unix");
        if (rc != SQLITE_OK)
                return snib__db_failed(s, rc, "opening", err);
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        (void)sqlite3_wal_hook(s->db, count_pages, s);
        (void)sqlite3_busy_timeout(s->db, 1000); /* only another program can be in the way, and only now */
        if (!snib__db_in_place(s))
                return snib__error(err, SNIB_EPERM, "somebody replaces files in %s at this moment", s->place.path);
        return 0;
}

static int configure(struct snib__store *s, struct snib_error *err)
{
        int rc = sqlite3_exec(s->db, "PRAGMA page_size=" PAGE_SIZE ";PRAGMA journal_mode=WAL", NULL, NULL, NULL);

        if (rc == SQLITE_OK)
                rc = sqlite3_exec(s->db, s->place.durable ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=OFF",
                                  NULL, NULL, NULL);
        return rc == SQLITE_OK ? 0 : snib__db_failed(s, rc, "setting up", err);
}

static int make_schema(struct snib__store *s, struct snib_error *err)
{
        char line[96];
        int rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

        snprintf(line, sizeof(line), "PRAGMA application_id=%d;PRAGMA user_version=%d;COMMIT", APPLICATION_ID,
                 SNIB__SCHEMA_VERSION);
        if (rc == SQLITE_OK)
                rc = sqlite3_exec(s->db, tables, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
                rc = sqlite3_exec(s->db, line, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
                return 0;
        rc = snib__db_failed(s, rc, "setting up the schema", err);
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        return rc;
}

static int check_schema(struct snib__store *s, struct snib_error *err)
{
        int64_t version = pragma(s, "PRAGMA user_version");

        if (version == SNIB__SCHEMA_VERSION)
                return 0;
        if (version < 0)
                return snib__db_failed(s, sqlite3_extended_errcode(s->db), "reading the schema version", err);
        if (version > 0)
                return snib__error(err, SNIB_EUNSUPPORTED,
                                   "%s/" DB_FILE
                                   " has schema version %lld, this snib has %d: use the snib that made it, or end all "
                                   "that use it and move it away, or name another directory",
                                   s->place.path, (long long)version, SNIB__SCHEMA_VERSION);
        if (pragma(s, "SELECT count(*) FROM sqlite_schema") > 0)
                return snib__error(err, SNIB_ECORRUPT,
                                   "%s/" DB_FILE
                                   " is another program's database: move it away, or name another directory",
                                   s->place.path);
        return make_schema(s, err);
}

/* What the leases' clock depends on: the boot, and the time namespace, which may shift the boot
 * clock. */
static int epoch(char *ret, size_t size, struct snib_error *err)
{
        char boot[64] = "", space[64] = "";
        _cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, boot, sizeof(boot) - 1) : -1;

        if (n <= 1)
                return snib__error_engine(
                    err, SNIB_ESYSTEM, errno,
                    "local: needs /proc/sys/kernel/random/boot_id to tell whether the machine was restarted");
        boot[strcspn(boot, "\n")] = 0;
        if (readlink("/proc/self/ns/time", space, sizeof(space) - 1) < 0)
                space[0] = 0; /* a kernel without time namespaces */
        snprintf(ret, size, "%s %s", boot, space);
        return 0;
}

/* What was taken from a semaphore and not confirmed goes back; one with an end, which was by the
 * old clock, ends. The kind stays what it is where something exists without being held. */
static const char end_all[] =
    "PRAGMA synchronous=FULL;BEGIN IMMEDIATE;"
    "UPDATE content SET value=value+coalesce((SELECT sum(number) FROM seat WHERE name=content.name AND kind=7 AND NOT "
    "claimed),0);"
    "DELETE FROM content WHERE name IN (SELECT name FROM object WHERE kind=7) AND expires_ms<9223372036854775807;"
    "UPDATE object SET kind=iif(EXISTS(SELECT 1 FROM content WHERE name=object.name),kind,-1),flags=0,id='',host='',"
    "pid=0,label='',expires_ms=0,held_token=0;"
    "DELETE FROM seat;DELETE FROM waiter;DELETE FROM memory;DELETE FROM client";
_Static_assert(SNIB_KIND_SEMAPHORE == 7, "end_all names it by its number");

/* After a restart of the machine nobody holds and nobody waits. Tokens, numbers and values stay.
 * Written through to the disk, once in a boot. */
static int begin_boot(struct snib__store *s, const char *now, struct snib_error *err)
{
        int rc;

        if (snib__live_any(s))
                return snib__error(err, SNIB_ECORRUPT,
                                   "%s is in use by processes with another boot id or time namespace, whose leases run "
                                   "on another clock: "
                                   "use a directory of your own, or redis://",
                                   s->place.path);
        if (pragma(s, "SELECT quick_check='ok' FROM pragma_quick_check(1)") != 1)
                return snib__db_failed(s, SQLITE_CORRUPT, "check after the restart of the machine", err);
        rc = sqlite3_exec(s->db, end_all, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
                rc = meta_set(s, "boot", now);
        if (rc == SQLITE_OK)
                rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK) {
                rc = snib__db_failed(s, rc, "recording the boot id", err);
                (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
                return rc;
        }
        trace(s, "local: first use since the machine was started: nobody holds or waits; tokens, numbers and values "
                 "are kept");
        return configure(s, err);
}

static int check_boot(struct snib__store *s, struct snib_error *err)
{
        char now[160], then[160];
        int r = epoch(now, sizeof(now), err);
        int rc;

        if (r < 0)
                return r;
        rc = meta_get(s, "boot", then, sizeof(then));
        if (rc != SQLITE_OK)
                return snib__db_failed(s, rc, "reading the boot id", err);
        return strcmp(now, then) ? begin_boot(s, now, err) : 0;
}

/* Rows under which nothing has been for a day go, so that the file does not grow for ever. Looks
 * once an hour. */
static void reap(struct snib__store *s)
{
        char text[64];
        int64_t now = wall_ms();
        sqlite3_stmt *q = NULL;

        if (meta_get(s, "reaped_ms", text, sizeof(text)) != SQLITE_OK)
                return;
        int64_t last = strtoll(text, NULL, 10);
        if (last <= now && now - last < REAP_EVERY_MS)
                return;
        if (sqlite3_prepare_v2(s->db, "DELETE FROM object WHERE kind=-1 AND since_ms<?1", -1, &q, NULL) == SQLITE_OK &&
            sqlite3_bind_int64(q, 1, now - FREE_ROWS_KEPT_MS) == SQLITE_OK && sqlite3_step(q) == SQLITE_DONE &&
            sqlite3_exec(s->db, "DELETE FROM memory WHERE name NOT IN (SELECT name FROM object)", NULL, NULL, NULL) ==
                SQLITE_OK) {
                snprintf(text, sizeof(text), "%lld", (long long)now);
                (void)meta_set(s, "reaped_ms", text);
        }
        (void)sqlite3_finalize(q);
}

/* Blocks for the log, without changing its size: SQLite fills them. An attempt: not every file
 * system can. SQLite locks no byte of this file, so opening and closing it is harmless. */
static void reserve_log(struct snib__store *s)
{
        _cleanup_close_ int fd = openat(s->place.fd, DB_FILE "-wal", O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

        if (fd >= 0)
                (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_RESERVE);
}

static int prepare_once(struct snib__store *s, struct snib_error *err)
{
        int r = open_db(s, err);
        int rc;

        if (r == 0)
                r = configure(s, err);
        if (r == 0)
                r = check_schema(s, err);
        if (r == 0)
                r = check_boot(s, err);
        if (r == 0 && (rc = snib__sql_prepare(s)) != SQLITE_OK)
                r = snib__db_failed(s, rc, "preparing statements", err);
        if (r < 0) {
                snib__db_close(s);
                return r;
        }
        reap(s);
        reserve_log(s);
        (void)sqlite3_busy_timeout(s->db, 0); /* from here on nobody sleeps in SQLite */
        return 0;
}

/* The damaged file and its log, under a name that says what it is. */
static int move_aside(struct snib__store *s, struct snib_error *err)
{
        static const char *const suffix[] = {"", "-wal", "-shm"};
        char from[32], to[96], line[SNIB__PLACE_PATH_MAX + 160];
        int64_t now = wall_ms();

        for (int i = 0; i < 3; i++) {
                snprintf(from, sizeof(from), DB_FILE "%s", suffix[i]);
                snprintf(to, sizeof(to), DB_FILE ".damaged-%lld%s", (long long)now, suffix[i]);
                if (renameat(s->place.fd, from, s->place.fd, to) < 0 && errno != ENOENT)
                        return snib__error_errno(err, SNIB_ESYSTEM, errno, from);
        }
        snprintf(line, sizeof(line),
                 "local: %s/" DB_FILE " was damaged; moved to " DB_FILE
                 ".damaged-%lld, begun anew; tokens go on from the clock",
                 s->place.path, (long long)now);
        trace(s, line);
        return 0;
}

/*
 * A damaged file is begun anew when no client is alive: then nobody believes that he holds
 * anything, and tokens go on from the clock. While somebody lives, it is refused: his hold cannot
 * be known.
 */
int snib__db_prepare(struct snib__store *s, struct snib_error *err)
{
        struct snib_error why = SNIB_ERROR_INIT;
        int r;

        if (s->db)
                return 0;
        r = prepare_once(s, &why);
        if (r == SNIB_ECORRUPT && (why.engine_code & 0xff) != 0) {
                if (snib__live_any(s))
                        return snib__error_engine(
                            err, SNIB_ECORRUPT, why.engine_code,
                            "%s, and other processes still use it: end them, then it is begun anew", why.text);
                r = move_aside(s, err);
                return r < 0 ? r : prepare_once(s, err);
        }
        return r < 0 ? snib__error_engine(err, r, why.engine_code, "%s", why.text) : 0;
}

bool snib__db_in_place(const struct snib__store *s)
{
        struct stat st;

        return fstatat(s->place.fd, DB_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == s->db_ino &&
               st.st_dev == s->db_dev;
}
