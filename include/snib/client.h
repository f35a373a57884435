/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLIENT_H
#define SNIB_CLIENT_H

/*
 * A client: one connection to one engine, shared by all threads of a process.
 *
 *     snib_client *client;
 *     if (snib_open(&client, "redis://localhost", NULL, NULL) < 0)
 *             ...;
 *     ...
 *     snib_close(client);
 *
 * Thread class: a client is thread-safe, except that snib_close() must be the last call on it. After fork() the child's
 * copy is inert: its descriptors are closed, calls on it answer SNIB_EFORK, snib_close() frees its memory.
 *
 * Who does the work is chosen at open by snib_options.threads:
 *   SNIB_THREADS_KEEPER  the thread that waits drives the connection; one keeper thread renews leases and delivers what
 *                        arrives while nobody waits. The default.
 *   SNIB_THREADS_IO      an I/O thread drives the connection always; better for very many callers.
 *   SNIB_THREADS_NONE    the library owns no thread; the application's event loop calls snib_process(). Calls that
 * would block drive the connection themselves while they wait.
 *
 * Callbacks (completions, losses) run on a dispatcher thread of the client with the first two, and inside
 * snib_process() or a blocking call with the third. They may call anything but snib_close() on their own client. A
 * callback that blocks delays other callbacks, never a renewal.
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

/* What can stand under a name. One name is of one kind: mixing them is refused with SNIB_EKIND. The kinds of locks that
 * only one can hold (LOCK to ELECTION) exclude each other under one name, but do not wake each other. */
enum snib_kind {
        SNIB_KIND_ANY = -1, /* questions only: whatever is there */
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
        SNIB_KIND_COUNTER = 11 /* answers only: a semaphore or a latch, which the store does not tell apart */
};

/* A short static text for a kind: "lock", "fair lock". */
SNIB_API const char *snib_kind_text(int kind);

/* For snib_options.spin_us. */
#define SNIB_SPIN_OFF ((int64_t)-1)
#define SNIB_SPIN_DEFAULT_US ((int64_t)50)
#define SNIB_SPIN_MAX_US ((int64_t)1000)

/* Options of a client. Zero means default everywhere. */
struct snib_options {
        size_t size;        /* SNIB_OPTIONS_INIT */
        int threads;        /* enum snib_threads */
        int64_t lease_ms;   /* lease of locks that do not say; default SNIB_LEASE_DEFAULT_MS */
        int64_t timeout_ms; /* longest wait for one answer of the engine; default 3000. Also in the URL: ?timeout=2s */
        const char *label;  /* what others see as the holder: "billing". Default: the program's name. Copied */
        void (*trace)(void *arg, const char *line); /* one line per event, for debugging. May run on any thread with
                                                       internal locks held: it must not call the library */
        void *trace_arg;
        int unreachable_ok; /* 1: open also when the engine cannot be reached now; it is dialled again and again, and
                               calls answer SNIB_EUNREACHABLE until then. For one of several servers */
        int64_t spin_us;    /* how long a call that waits for the answer of a server may look for it before it
                               sleeps, at most: it saves being woken up and costs that much processor time. 0:
                               SNIB_SPIN_DEFAULT_US. It looks for about twice as long as answers take, and leaves it
                               where they come later. While other threads wait for answers of the same client, one
                               looks for all, for up to twice this time, and lets others run in between.
                               SNIB_SPIN_OFF: never. Also in the URL: ?spin=30us, ?spin=off */
};
#define SNIB_OPTIONS_INIT sizeof(struct snib_options)

/*
 * Opens a client. `url` chooses the engine; NULL means the environment's SNIB_URL, and "local:" when that is not set.
 * Copies everything it is given. On success *ret_client is the caller's, to be closed with snib_close().
 * Blocks until the engine answered or its connect time-out passed. Thread-safe.
 * Errors: SNIB_EURL, SNIB_EINVAL, SNIB_EUNREACHABLE, SNIB_EAUTH, SNIB_EPERM, SNIB_ENOTREADY, SNIB_EPROTOCOL,
 * SNIB_EUNSUPPORTED (a network file system under local:), SNIB_ENOMEM, SNIB_ESYSTEM.
 */
SNIB_API int snib_open(snib_client **ret_client, const char *url, const struct snib_options *options,
                       struct snib_error *err);

/*
 * Releases what the client still holds, completes what waits with SNIB_ECLOSED, stops its threads, frees it. Grants
 * that are still out become invalid and must not be used again. NULL is allowed. Blocks at most one time-out. Never
 * call it from a callback of the same client.
 */
SNIB_API void snib_close(snib_client *client);

/*
 * Driving by an event loop (any loop; meant for SNIB_THREADS_NONE). Poll snib_fd() for snib_events(), at most
 * snib_timeout_ms() long (-1: no limit), then call snib_process(), also after a time-out. snib_process() never blocks;
 * it answers 0, or an error when the client cannot go on. The descriptor stays the client's.
 */
SNIB_API int snib_fd(snib_client *client);
SNIB_API int snib_events(snib_client *client);
SNIB_API int64_t snib_timeout_ms(snib_client *client);
SNIB_API int snib_process(snib_client *client);

/* What a snib_engine_info says an engine can do (bits of `caps`). */
enum snib_cap {
        SNIB_CAP_FENCING = 1, /* tokens rise per name as long as the store keeps its data; after a loss of data they
                                 rise with the server's clock */
        SNIB_CAP_CLOCK_TOKENS = 2,      /* plain locks take their token from the server's clock alone */
        SNIB_CAP_QUEUE = 4,             /* waiters stand in a queue at the engine; a release hands over to the first */
        SNIB_CAP_DEATH_NOTICE = 8,      /* a holder's death frees its locks at once, not at the end of the lease */
        SNIB_CAP_CROSS_PROCESS = 16,    /* shared by processes of one machine */
        SNIB_CAP_CROSS_MACHINE = 32,    /* shared by machines */
        SNIB_CAP_SURVIVES_RESTART = 64, /* holds survive a restart of the store, as far as it keeps its data */
        SNIB_CAP_WRITER_IN_TURN = 128,  /* a waiting writer is not overtaken by later readers */
        SNIB_CAP_LOCK = 1 << 8, /* from here on: the objects. Re-entrant, non-re-entrant, spin, striped, multi */
        SNIB_CAP_FENCED = 1 << 9,
        SNIB_CAP_FAIR = 1 << 10,
        SNIB_CAP_RWLOCK = 1 << 11,
        SNIB_CAP_SEMAPHORE = 1 << 12,
        SNIB_CAP_PERMITS = 1 << 13,
        SNIB_CAP_LATCH = 1 << 14,
        SNIB_CAP_ELECTION = 1 << 15,
        SNIB_CAP_REGISTER = 1 << 16
};

/* One engine of this build. All texts are static. */
struct snib_engine_info {
        size_t size;           /* sizeof(struct snib_engine_info), set by the caller */
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

/* The engines of this build, index 0, 1, ...: 1 and fills *ret_info, or 0 past the last. Thread-safe, never blocks. */
SNIB_API int snib_engine_at(int index, struct snib_engine_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif
