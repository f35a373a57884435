/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLIENT_H
#define SNIB_CLIENT_H

/*
 * A client is one connection to one engine. All threads of a process share it.
 *
 *     snib_client *client;
 *     if (snib_open(&client, "redis://localhost", NULL, NULL) < 0)
 *             ...;
 *     ...
 *     snib_close(client);
 *
 * Thread class: a client is thread-safe, except that snib_close() must be the last call on it.
 * After fork() the child's copy is inert: its descriptors are closed, calls on it answer
 * SNIB_EFORK, snib_close() frees its memory.
 *
 * snib_options.threads chooses at open which thread does the work:
 *   SNIB_THREADS_KEEPER  The thread that waits drives the connection. One keeper thread renews
 *                        leases and delivers what arrives while no thread waits. The default.
 *   SNIB_THREADS_IO      An I/O thread always drives the connection. Better for very many callers.
 *   SNIB_THREADS_NONE    The library owns no thread. The application's event loop calls
 *                        snib_process(). A call that must block drives the connection itself.
 *
 * Callbacks (completions, losses) run on a dispatcher thread of the client with the first two, and
 * inside snib_process() or a blocking call with the third. A callback may call anything but
 * snib_close() on its own client. A callback that blocks delays other callbacks, never a renewal.
 */

#include <snib/error.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_client snib_client;

enum snib_threads { SNIB_THREADS_KEEPER = 0, SNIB_THREADS_IO = 1, SNIB_THREADS_NONE = 2 };

/* Wait without limit. */
#define SNIB_FOREVER ((int64_t)-1)

/* Limits. A lease outside them is refused with SNIB_ELEASE, a name with SNIB_ENAME. */
#define SNIB_LEASE_MIN_MS ((int64_t)100)
#define SNIB_LEASE_MAX_MS ((int64_t)31536000000) /* 365 days */
#define SNIB_LEASE_DEFAULT_MS ((int64_t)30000)
#define SNIB_NAME_MAX 1000

/* What can stand under a name. One name is of one kind; another kind is refused with SNIB_EKIND.
 * The kinds of locks with one holder (LOCK to ELECTION) exclude each other under one name, but do
 * not wake each other. */
enum snib_kind {
        SNIB_KIND_ANY = -1, /* only in questions: any kind */
        SNIB_KIND_LOCK = 0, /* re-entrant and non-re-entrant */
        SNIB_KIND_FENCED = 1,
        SNIB_KIND_FAIR = 2,
        SNIB_KIND_SPIN = 3,
        SNIB_KIND_ELECTION = 4,
        SNIB_KIND_READ = 5, /* the two sides of a read-write lock */
        SNIB_KIND_WRITE = 6,
        SNIB_KIND_SEMAPHORE = 7,
        SNIB_KIND_PERMITS = 8, /* permits that expire */
        SNIB_KIND_LATCH = 9,
        SNIB_KIND_REGISTER = 10,
        SNIB_KIND_COUNTER = 11 /* only in answers: a semaphore or a latch; the store cannot tell them apart */
};

/* Names a kind in a few words, as static text: "lock", "fair lock". It is "object" for any other
 * number. Thread-safe, never blocks. */
SNIB_API const char *snib_kind_text(int kind);

/* For snib_options.spin_us. */
#define SNIB_SPIN_OFF ((int64_t)-1)
#define SNIB_SPIN_DEFAULT_US ((int64_t)200)
#define SNIB_SPIN_MAX_US ((int64_t)1000)

/* Options of a client. Zero means default everywhere. */
struct snib_options {
        size_t size;        /* SNIB_OPTIONS_INIT */
        int threads;        /* enum snib_threads */
        int64_t lease_ms;   /* lease of locks that do not say; default SNIB_LEASE_DEFAULT_MS */
        int64_t timeout_ms; /* longest wait for one answer of the engine; default 3000. Also in the URL: ?timeout=2s */
        const char *label;  /* the holder's label that other clients see: "billing". Default: the program's name.
                               Copied */
        void (*trace)(void *arg, const char *line); /* gets one line for each event, for debugging. It may run on any
                                                       thread with internal locks held: it must not call the library */
        void *trace_arg;
        int unreachable_ok; /* 1: open even if the engine cannot be reached now. The client goes on dialling, and calls
                               answer SNIB_EUNREACHABLE until it gets through. For one of several servers */
        int64_t spin_us;    /* how long a call that waits for the answer of a server may look for it before it
                               sleeps, at most: it saves being woken up and costs that much processor time. 0:
                               SNIB_SPIN_DEFAULT_US. The client looks for about twice as long as answers take,
                               not at all where they take longer than this, and only while answers come sooner
                               with looking than without: it tries both. If several threads wait for answers of
                               the same client, one looks for all and lets the others run in between.
                               SNIB_SPIN_OFF: never. Also in the URL: ?spin=30us, ?spin=off */
        int64_t open_ms;    /* longest that snib_open() waits for the engine; 0: no limit but those of the URL. For
                               callers whose own time is limited: what is not open by then is SNIB_EUNREACHABLE */
};
/* clang-format off */
#define SNIB_OPTIONS_INIT { sizeof(struct snib_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Reads a duration as it is written in a URL and for the command: "2s", "500ms", "1.5h", "1h30m",
 * "7d", or "30" in seconds. Answers 0 and *ret_ms, in milliseconds, rounded up. Errors: SNIB_EINVAL
 * if it is no duration, SNIB_ELIMIT if it is too long for the type. Thread-safe, never blocks. */
SNIB_API int snib_duration_parse(const char *text, int64_t *ret_ms);

/*
 * Opens a client. `url` chooses the engine. NULL means the environment's SNIB_URL, or "local:" if
 * that is not set (see snib_local_directory()). Everything given is copied. On success *ret_client
 * is the caller's; close it with snib_close(). With options.unreachable_ok an engine that is not
 * there is no failure; *err then says why it is not, and err->code is 0 otherwise. Blocks until the
 * engine answered, or the connect time-out or options.open_ms passed. Thread-safe. Errors:
 * SNIB_EURL, SNIB_EINVAL, SNIB_EUNREACHABLE, SNIB_EAUTH, SNIB_EPERM, SNIB_ENOTREADY,
 * SNIB_EPROTOCOL, SNIB_EUNSUPPORTED (a network file system under local:), SNIB_ECONFIG (no
 * directory where local: wants one), SNIB_ENOMEM, SNIB_ESYSTEM.
 */
SNIB_API int snib_open(snib_client **ret_client, const char *url, const struct snib_options *options,
                       struct snib_error *err);

/*
 * Closes a client. It releases what the client still holds, ends every wait with SNIB_ECLOSED,
 * stops the client's threads and frees it. Grants that are still out become invalid and must not be
 * used again. NULL is allowed. Blocks at most one time-out, until what was held, or was being
 * released, is confirmed to be free. It does not block for a wait that was given up or a hold that
 * was lost: requests that are sent and left alone take those back. Never call it from a callback of
 * the same client.
 */
SNIB_API void snib_close(snib_client *client);

/*
 * Gives the URL of an open client. It can be shown, and another process can open it: what was
 * left out is filled in (local: names its directory), and a password is left out. The text lives as
 * long as the client. Never NULL. Never blocks. Thread-safe.
 */
SNIB_API const char *snib_client_url(const snib_client *client);

/*
 * Writes the directory that a bare local: means for this process. The directory is made if it is
 * missing. It depends on the effective user id alone, never on the environment. For root it is
 * /var/lib/snib, else .local/state/snib below the home of the user database. If that cannot be, or
 * is on a network file system, it is /run/snib for root, else /var/tmp/snib-UID, and then always,
 * as long as that exists. Answers 0, or SNIB_ECONFIG, SNIB_EPERM, SNIB_ESYSTEM, SNIB_ENOMEM, or
 * SNIB_EINVAL if `size` bytes are not enough (4096 always are). Blocks on the file system and the
 * user database. Thread-safe.
 */
SNIB_API int snib_local_directory(char *ret_path, size_t size, struct snib_error *err);

/*
 * Gives the descriptor that an event loop polls for this client. It is for a client opened with
 * SNIB_THREADS_NONE, and for any loop. Poll the descriptor for snib_events(), for at most
 * snib_timeout_ms(). Then call snib_process(), after a time-out too. The descriptor stays the
 * client's and never changes. Never blocks. Thread-safe. Errors: SNIB_EUNSUPPORTED (the client has
 * threads of its own), SNIB_EINVAL, SNIB_EFORK.
 */
SNIB_API int snib_fd(snib_client *client);

/* Gives the events to poll snib_fd() for, as poll() takes them. Ask before each poll. Never blocks.
 * Thread-safe. */
SNIB_API int snib_events(snib_client *client);

/* Gives the longest time to poll snib_fd() for, in milliseconds. 0: do not wait; -1: there is no
 * limit. Ask before each poll. If a call shortens the time during a poll, the descriptor becomes
 * readable. Never blocks. Thread-safe. */
SNIB_API int64_t snib_timeout_ms(snib_client *client);

/* Does the work that is due. It reads, writes, renews leases and runs callbacks. Answers 0, or an
 * error if the client cannot go on. Never blocks. Thread-safe. */
SNIB_API int snib_process(snib_client *client);

/*
 * The one table of what a snib_engine_info says an engine can do: X(name, number of the bit in
 * `caps`, its word, what it is). It makes the enum, the texts of snib_cap_name() and
 * snib_cap_text(), and the rows of the manual. Numbers are ABI.
 *
 * FENCING holds as long as the store keeps its data; after a loss of data tokens rise with the
 * server's clock. SURVIVES_RESTART reaches as far as the store keeps its data. LOCK to REGISTER are
 * the objects.
 */
#define SNIB_CAPS(X)                                                                                     \
        X(SNIB_CAP_FENCING, 0, "fencing", "fencing tokens that rise per name")                           \
        X(SNIB_CAP_CLOCK_TOKENS, 1, "clock_tokens", "plain locks' tokens from the server's clock")       \
        X(SNIB_CAP_QUEUE, 2, "queue", "queue of waiters for every object, hand-over to the first")       \
        X(SNIB_CAP_DEATH_NOTICE, 3, "death_notice", "free at once when the holder dies")                 \
        X(SNIB_CAP_CROSS_PROCESS, 4, "cross_process", "between processes")                               \
        X(SNIB_CAP_CROSS_MACHINE, 5, "cross_machine", "between machines")                                \
        X(SNIB_CAP_SURVIVES_RESTART, 6, "survives_restart", "holds survive a restart of the store")      \
        X(SNIB_CAP_WRITER_IN_TURN, 7, "writer_in_turn", "a waiting writer is not overtaken by readers")  \
        X(SNIB_CAP_LOCK, 8, "lock", "lock (re-entrant or not, spin, striped, multilock, red multilock)") \
        X(SNIB_CAP_FENCED, 9, "fenced_lock", "fenced lock")                                              \
        X(SNIB_CAP_FAIR, 10, "fair_lock", "fair lock")                                                   \
        X(SNIB_CAP_RWLOCK, 11, "rwlock", "read-write lock")                                              \
        X(SNIB_CAP_SEMAPHORE, 12, "semaphore", "semaphore")                                              \
        X(SNIB_CAP_PERMITS, 13, "permits", "permits that expire")                                        \
        X(SNIB_CAP_LATCH, 14, "latch", "count-down latch")                                               \
        X(SNIB_CAP_ELECTION, 15, "election", "leader election")                                          \
        X(SNIB_CAP_REGISTER, 16, "register", "register")                                                 \
        X(SNIB_CAP_LOCK_QUEUE, 17, "lock_queue",                                                         \
          "queue of waiters for plain, fenced and fair locks, hand-over to the first")                   \
        X(SNIB_CAP_DOWNGRADE, 18, "downgrade", "waiting readers come in at a downgrade")

enum snib_cap {
#define SNIB_CAP_ENUM(name, bit, word, text) name = 1 << (bit),
        SNIB_CAPS(SNIB_CAP_ENUM)
#undef SNIB_CAP_ENUM
            SNIB_CAP_NONE = 0
};

/* Names a capability in a word, as static text: "fencing". It is NULL for what is not one bit of
 * enum snib_cap. Thread-safe, never blocks. */
SNIB_API const char *snib_cap_name(unsigned cap);

/* Describes a capability in a few words, as static text: "fencing tokens that rise per name". It is
 * NULL for what is not one bit of enum snib_cap. Thread-safe, never blocks. */
SNIB_API const char *snib_cap_text(unsigned cap);

/* One engine of this build. All texts are static. */
struct snib_engine_info {
        size_t size;           /* SNIB_ENGINE_INFO_INIT */
        const char *name;      /* "redis" */
        const char *schemes;   /* "redis:// redis+unix://" */
        const char *summary;   /* one line */
        const char *exclusion; /* what its mutual exclusion rests on */
        const char *on_crash;  /* what a crash of the store does to holds */
        const char *on_pause;  /* what a pause of the holder does */
        const char *on_partition;
        const char *on_failover;
        unsigned caps; /* bits of enum snib_cap */
};
/* clang-format off */
#define SNIB_ENGINE_INFO_INIT { sizeof(struct snib_engine_info), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Describes one engine of this build. `index` counts from 0. Answers 1 and fills *ret_info, or 0
 * past the last engine. Thread-safe, never blocks. */
SNIB_API int snib_engine_at(int index, struct snib_engine_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif
