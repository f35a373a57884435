/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_ENGINE_H
#define SNIB_ENGINE_ENGINE_H

/*
 * The narrow interface between the runtime and an engine. An engine executes atomic steps on locks;
 * it knows nothing of threads, waiting, re-entry, renewal schedules or loss: these live in core.
 *
 * Contract:
 * - One thread at a time calls an engine (the runtime holds its lock). It never calls back. Only
 *   open() and close() may block for long; submit() and process() must not wait for anything but a
 *   disk write of ordinary length.
 * - submit() takes a request and answers nothing: every submitted request is completed exactly once
 *   by a later process(), with FAILED and a code if need be, also when the connection breaks
 *   (SNIB_EUNKNOWN if any byte of it may have left, SNIB_EUNREACHABLE if certainly none did) and
 *   also after close of the connection. It is legal for submit() to have done all the work already
 *   and to leave only the completion for process(); then interest() says "at once".
 * - Without memory to complete a request submit() does nothing and answers false: no completion
 *   comes, and core says SNIB_ENOMEM. So does list().
 * - submit() and watch() may keep what is to be sent, so that requests of several threads leave in
 *   one write; interest() says so. It leaves with the next flush() or process(), and it is the
 *   runtime that sees to that in time.
 * - Requests about one name are executed in the order of submission, as long as the connection
 *   lasts. Of those about different names nothing is promised.
 * - An engine reconnects by itself, with capped exponential back-off and jitter, and says LINK_UP
 *   and LINK_DOWN. A request submitted while it is down fails fast with SNIB_EUNREACHABLE.
 * - An engine of several links says LINK_UP and LINK_DOWN of the whole: it serves, or it does not.
 *   Where some broke and the others serve, requests that need those fail as above, and RELINKED says
 *   that they are back.
 * - An engine watches its own connection: an answer overdue for timeout_ms closes it (all in
 *   flight: SNIB_EUNKNOWN).
 * - watch() is counted: two watches need two unwatches. While a name is watched, every change that
 *   may let a waiter in yields CHANGED for that name (or GRANTED for one waiter), and WATCHING
 *   comes once each time the watch has (again) taken effect: what happened before `since` may have
 *   been missed, so a waiter that asked earlier must ask again.
 * - A request of a kind that the engine does not have (its facts say so) fails with
 *   SNIB_EUNSUPPORTED.
 * - Time is a parameter. `now` is CLOCK_BOOTTIME.
 */

#include "base/time.h"
#include "base/url.h"
#include "model/op.h"
#include <snib/client.h>

struct snib__engine;

/* Whom a completion is for. The engine hands it back untouched. */
struct snib__tag {
        void *object;
        uint64_t cookie;  /* tells a recycled object from the one meant */
        uint32_t attempt; /* which of the object's requests is answered */
};

enum snib__note_kind {
        SNIB__NOTE_REPLY = 1,    /* a submitted request is complete: tag, reply */
        SNIB__NOTE_CHANGED = 2,  /* a watched name changed: try again. `all`: every waiter may get in, else one */
        SNIB__NOTE_WATCHING = 3, /* a watch took effect: name, since; with an id: that waiter's own watch */
        SNIB__NOTE_GRANTED = 4,  /* the waiter with this id was made holder. name, id. It must confirm with ACQUIRE, but
                                    for: reply.token, which it has if tag.attempt is of its latest request: it was
                                    made holder, with its whole lease, after the server had executed that one */
        SNIB__NOTE_ENDED = 5, /* the hold with this id was ended by somebody else: it must check with RENEW. name, id */
        SNIB__NOTE_LINK_UP = 6,   /* connected and ready to serve (again): check holds, retry what waits for it */
        SNIB__NOTE_LINK_DOWN = 7, /* disconnected or not yet connected: reply.error, reply.error_text say why */
        SNIB__NOTE_LISTED = 8, /* one lock of a listing: tag, name, reply (INFO); ended by a REPLY with the same tag */
        SNIB__NOTE_NEXT = 9,   /* the lock was left free so that others get it too, and the waiter with this id is the
                                  next: it asks in a moment. name, id */
        SNIB__NOTE_RELINKED = 10 /* of several links some are back: as LINK_UP, for the names that concerns() says */
};

struct snib__note {
        enum snib__note_kind kind;
        struct snib__tag tag;
        struct snib__name name; /* memory of the engine, lives until the next call of process() */
        struct snib__id id;
        bool all;
        snib__ns since;
        uint64_t part; /* RELINKED: the engine's own word for which links */
        struct snib__reply reply;
};

/* What a waiter watches. */
struct snib__topic {
        struct snib__name name;
        int kind;           /* enum snib_kind */
        struct snib__id id; /* of the waiter: a fair lock's turn may be announced to it alone */
};

/* What to wait for before process() is due. A descriptor stays here, with other events at
 * most, until it is closed or about to be by who shares it. */
#define SNIB__FDS_MAX 8
struct snib__interest {
        int count;
        struct {
                int fd;
                short events; /* POLLIN, POLLOUT */
        } fds[SNIB__FDS_MAX];
        snib__ns deadline; /* call process() at this time even if nothing happened; SNIB__NEVER */
        bool tidying;      /* though nobody waits, it would like to be driven until then */
        bool kept;         /* something waits for flush() */
        uint64_t changes;  /* the same as at the last call: so are the descriptors, and what they stand for */
};

struct snib__engine_config {
        struct snib__url *url; /* lives during open(), which fills in what was left out and another process needs */
        char uuid[37];         /* of this client: lower-case random v4, fresh after fork */
        struct snib__who who;
        int64_t timeout_ms;
        uint64_t seed; /* for jitter */
        void (*trace)(void *arg, const char *line);
        void *trace_arg;
};

/* Properties of the store that core adapts to (not the public bits). */
enum snib__trait {
        SNIB__TRAIT_WATCH = 2, /* waiters must watch() the name to hear of changes */
        SNIB__TRAIT_SOCKET = 4 /* answers come over a socket: process() may find one though nothing was polled */
};

/* What is true of an open engine: of one form of URL, which may name a format, or a server that can
 * do less than others. */
struct snib__facts {
        struct snib_engine_info info; /* the public description of this form; its caps are proven by the conformance
                                         suite */
        unsigned traits;              /* enum snib__trait */
        uint32_t queues;              /* SNIB__KIND_BITs: ACQUIRE with enqueue leaves a place in a queue, and the turn
                                         comes as GRANTED. FAIR is always one of them; what polls is never asked so */
        int token_block; /* so many tokens come with a grant of a plain or fenced lock: the one that it names, and those
                            after it. With 1 nothing is handed over within a client */
        snib__ns poll; /* a waiter that is told nothing asks again after so long, or before; 0: as core thinks right */
};

struct snib__engine_ops {
        const char *const *schemes;             /* NULL-terminated, as in the URL, without "://" or ":" */
        const struct snib__facts *const *forms; /* NULL-terminated: what there is to be opened. All of them say the
                                                   same of SNIB__TRAIT_SOCKET */

        /* Opens without waiting for the network: the first LINK_UP or LINK_DOWN tells. May block
         * for local disks. */
        int (*open)(struct snib__engine **ret, const struct snib__engine_config *config, snib__ns now,
                    struct snib_error *err);
        /* One of the forms, or one that says less. From open() on the same. */
        const struct snib__facts *(*facts)(const struct snib__engine *e);
        bool (*submit)(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now);
        /* Starts a listing of all held locks; LISTED notes, then one REPLY with status INFO or
         * FAILED. */
        bool (*list)(struct snib__engine *e, struct snib__tag tag, snib__ns now);
        /* Both NULL where there is nothing to watch: without SNIB__TRAIT_WATCH. */
        void (*watch)(struct snib__engine *e, const struct snib__topic *topic, snib__ns now);
        void (*unwatch)(struct snib__engine *e, const struct snib__topic *topic, snib__ns now);
        void (*interest)(struct snib__engine *e, snib__ns now, struct snib__interest *ret);
        /* NULL, or: sends what was kept, as far as that goes without blocking. */
        void (*flush)(struct snib__engine *e);
        /* Does what is due and moves bytes without blocking. `ready` is what interest() asked for
         * with revents in `events`, or NULL: find out yourself. Notes are then taken one by one
         * with next(). */
        void (*process)(struct snib__engine *e, const struct snib__interest *ready, snib__ns now);
        /* NULL, or: the REPLY with this tag, just taken with next(), came too late: whoever asked
         * has given that attempt up and may ask again. Comes before the next process(). */
        void (*unheard)(struct snib__engine *e, struct snib__tag tag);
        /* The next note, in the order of their happening. False: none left. */
        bool (*next)(struct snib__engine *e, struct snib__note *ret);
        /* NULL if it never says RELINKED, or: whether that note, just taken, is about this name. */
        bool (*concerns)(const struct snib__engine *e, const struct snib__note *n, struct snib__name name);
        /* Sends what is buffered if that is possible at once, closes everything, frees. Nothing is
         * completed any more. Blocks briefly. */
        void (*close)(struct snib__engine *e);
        /* NULL, or: the directory that it uses when the URL names none, made if it was missing. */
        int (*directory)(char *ret, size_t size, struct snib_error *err);
        /* In a forked child: closes descriptors so that the parent's connection and liveness are
         * untouched; frees nothing. Async-signal-safe. */
        void (*forked)(struct snib__engine *e);
};

/* The base of every engine's own struct. */
struct snib__engine {
        const struct snib__engine_ops *ops;
};

/* The engine for a scheme, NULL if there is none. */
const struct snib__engine_ops *snib__engine_find(const char *scheme);

/* Opens an engine, with what the URL asks to be put around it: trace=FILE. Like `open` of the
 * engine, and in its place. */
int snib__engine_open(struct snib__engine **ret, const struct snib__engine_ops *ops,
                      const struct snib__engine_config *config, snib__ns now, struct snib_error *err);
/* NULL, or what tests put around every engine that is opened. */
extern struct snib__engine *(*snib__engine_test)(struct snib__engine *e);

/* Number i of all forms of all engines, NULL past the end. */
const struct snib__facts *snib__engine_form(int i);

#endif
