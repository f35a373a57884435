/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MODEL_OP_H
#define SNIB_MODEL_OP_H

/*
 * What a client may ask of an engine about one object, and what it may be told: the vocabulary
 * shared by the model, the core and every engine. Plain data, no ownership, except where a comment
 * says otherwise.
 *
 * The server knows only "held or not held by this hold id". A hold id is made for one hold and
 * never used again, so acquire, release and renew are idempotent by construction, and a request
 * that is executed late can never touch another hold. Re-entry is counted in the client. What
 * changes a number has an id of the same form, made for one change, and the server remembers for
 * SNIB__DONE_MS which of them it has executed, and with what answer.
 */

#include "model/kind.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identifies one hold, or one waiter, for ever: client uuid, ':', a number that the client never
 * repeats. NUL-terminated. On Redis this is Redisson's owner field, whose second half Redisson
 * fills with a thread id and which nobody parses. */
#define SNIB__ID_MAX 64
struct snib__id {
        char text[SNIB__ID_MAX];
};

/* Who stands behind an id, for humans. */
struct snib__who {
        char host[64];
        char label[64];
        int64_t pid; /* -1 unknown */
};

/* A name is bytes, 1 to 1000, no NUL. The memory is the sender's; an engine copies what it keeps
 * after submit returned.
 */
struct snib__name {
        const char *bytes;
        size_t length;
};

/* How long a request is remembered so that its repetition is not executed again. A client that does
 * not know the fate of one for longer reports that it is unknown. */
#define SNIB__DONE_MS 60000

/* So often in a row a lock with a queue is handed on by releases. The one after those asks whether
 * others listen, who do not stand in the queue, and leaves it free for them. */
#define SNIB__STREAK_MAX 16

/* Numbers of permits are a Java int. */
#define SNIB__NUMBER_MAX ((int64_t)2147483647)

struct snib__op {
        enum snib__verb verb;
        int kind;     /* enum snib_kind */
        bool enqueue; /* ACQUIRE that is refused: stand in the engine's queue, if it has one */
        struct snib__name name;
        struct snib__id id;
        const struct snib__who *who; /* who asks: one record for all requests of an engine; NULL: it is not said */
        int64_t lease_ms;            /* PERMITS: 0: for ever */
        int64_t token; /* ACQUIRE: the token this hold has by the client's knowledge, 0 until it was granted. OBSERVE:
                          the state seen last */
        int64_t n;     /* how many: 1 for a lock; SET, RESIZE, ADD: the number */
        struct snib__id under; /* ACQUIRE of READ: the write hold of the same owner, which lets it in; empty: none.
                                  FORCE of FAIR: the waiter that is to leave the queue, and nothing else happens */
        bool settled;          /* ACQUIRE: every earlier request with this id has been answered */
        uint32_t number;       /* ACQUIRE: which of the requests with this id it is, from 1; 0: not said */
        uint8_t streak;        /* RELEASE: the `streak` of its grant; see SNIB__STREAK_MAX */
        bool leave;            /* RENEW: nobody has the hold from now on; it ends with this lease or by FORCE, and not
                                  with its client. Repeated it is answered the same */
        bool if_exists;        /* ADD: else do nothing */
        int64_t ttl_ms;        /* SET of a SEMAPHORE: it vanishes after; 0 never */
        int64_t expected;      /* WRITE, DELETE: version, 0: no value, -1: any */
        const void *data;      /* WRITE; lives until the answer */
        size_t data_length;
        const char (*permits)[33]; /* RELEASE, RENEW of PERMITS: these permits (32 hex digits), all or none, instead of
                                      those of `id`; live until the answer */
        size_t permit_count;
};

enum snib__status {
        SNIB__GRANTED = 1, /* ACQUIRE: this id holds it now; `token` */
        SNIB__BUSY = 2,    /* ACQUIRE: someone else holds it, or is before us; `holder`, `left_ms`, `position` */
        SNIB__RENEWED = 3, /* RENEW: `token` where the engine knows it, else 0 */
        SNIB__GONE = 4, /* RENEW, RELEASE, ACQUIRE with a token: not held by this id; `held`, `holder` say what is there
                           instead */
        SNIB__RELEASED = 5, /* RELEASE: was held by this id, or stood in the queue, and no longer does */
        SNIB__INFO = 6,     /* QUERY, FORCE: `held` is what there is, for FORCE what there was and is no more; of a
                               waiter that was to leave: that it stood there */
        SNIB__DONE = 8,     /* SET to DELETE: executed, now or before: `applied`, `value` */
        SNIB__FAILED = 7    /* none of these: `error` is a negative snib error code. SNIB_EUNKNOWN: sent, fate unknown.
                               SNIB_EUNREACHABLE,    SNIB_ENOTREADY: certainly not executed, try again later. Any other:
                               certainly not executed, trying again    will not help */
};

/* A holder or waiter as stored. */
struct snib__seat {
        struct snib__id id; /* empty text: nobody */
        struct snib__who who;
        int64_t since_ms;   /* engine wall clock, ms since 1970; -1 unknown */
        int64_t expires_ms; /* engine clock that counts leases */
};

struct snib__reply {
        enum snib__status status;
        int error; /* with FAILED */
        int engine_code;
        const char *error_text; /* with FAILED: one line or NULL; lives until the next call of the engine's process() */
        int64_t token;          /* of the hold: the first of its tokens */
        int64_t lease_ms; /* GRANTED, RENEWED: the lease that was given, if it is shorter than was asked for; 0: as
                             asked. What was given before is not cut short by it */
        int64_t look_ms;  /* BUSY: when to ask again, if nothing is heard before; 0: as core thinks right */
        uint8_t streak;   /* GRANTED: how many in a row it was handed on to at a release, this one included */
        int64_t left_ms;  /* of the present hold's lease; -1 unknown or none */
        bool held;
        struct snib__seat holder;
        int64_t position;     /* ours in the queue, 1 = next; 0 not queued */
        struct snib__id next; /* QUERY of a fair lock: the first in the queue; empty: nobody, or unknown */
        int64_t next_left_ms; /* with `next`: until its turn, or what it is believed to live, is over; -1 unknown */
        int64_t waiters;      /* -1 unknown */
        bool waiters_at_least;
        int kind;        /* QUERY: what is there; else the request's */
        bool foreign;    /* the holder is a client of another make */
        int64_t holders; /* how many hold; permits that are taken */
        int64_t value;   /* free permits, count; WRITE, DELETE: the version now. DONE: after the change, DRAIN: what was
                            drained. -1 none */
        int64_t limit;   /* PERMITS; else -1 */
        bool applied;    /* DONE: it was changed; false: a condition was not met */
        const void *data; /* QUERY of a REGISTER: memory of the engine, lives until the next call of process() */
        size_t data_length;
};

static inline bool snib__id_set(const struct snib__id *id)
{
        return id->text[0] != 0;
}

/* Requests of which is remembered that they were executed, so that they count once. */
bool snib__op_remembered(const struct snib__op *op);

bool snib__id_equal(const struct snib__id *a, const struct snib__id *b);

/* The first part of an id: of its client, lower-case hex digits and dashes. */
#define SNIB__UUID_LENGTH 36
bool snib__uuid_valid(const char *text);
/* Whose id it is. False: it has another form than uuid:... */
bool snib__id_client(const struct snib__id *id, char ret[SNIB__UUID_LENGTH + 1]);
/* Whether it begins with the uuid and the colon that `uuid`, or another id, begins with. */
bool snib__id_of_client(const struct snib__id *id, const char *uuid);

/* The id of a hold that was left, where the store has to know: of another form than those of
 * clients, so that the death of its client does not concern it. */
void snib__id_leave(struct snib__id *id);
/* `id` was made so of `of`; of NULL: of any. */
bool snib__id_is_left(const struct snib__id *id, const struct snib__id *of);

/* The id of permit number `index` (0 to 65535) of a hold, as 32 hex digits and NUL: the 128 bits of
 * the uuid plus (65536 * number + index). False: the hold id has another form than uuid:number. */
bool snib__permit_id(const struct snib__id *hold, int64_t index, char ret[33]);

#endif
