/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MODEL_OP_H
#define SNIB_MODEL_OP_H

/*
 * What a client may ask of an engine about one lock, and what it may be told: the vocabulary shared by the model, the
 * core and every engine. Plain data, no ownership, except where a comment says otherwise.
 *
 * The server knows only "held or not held by this hold id". A hold id is made for one hold and never used again, so
 * acquire, release and renew are idempotent by construction, and a request that is executed late can never touch
 * another hold. Re-entry is counted in the client.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identifies one hold, or one waiter, for ever: client uuid, ':', a number that the client never repeats.
 * NUL-terminated. On Redis this is Redisson's owner field, whose second half Redisson fills with a thread id and which
 * nobody parses. */
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

/* A name is bytes, 1 to 1000, no NUL. The memory is the sender's; an engine copies what it keeps after submit returned.
 */
struct snib__name {
        const char *bytes;
        size_t length;
};

enum snib__verb {
        SNIB__ACQUIRE =
            1, /* take it if free, or confirm it if held by this id (lease starts again); else BUSY. With a token (a
                  re-entry) confirm only, else GONE: executed late, it must not begin a hold anew */
        SNIB__RELEASE = 2, /* end the hold of this id, or its place in the queue */
        SNIB__RENEW = 3,   /* start the lease of this id's hold again */
        SNIB__QUERY = 4,   /* say what there is; changes nothing */
        SNIB__FORCE = 5    /* end whoever's hold */
};

struct snib__op {
        enum snib__verb verb;
        bool fenced;  /* the engine keeps the token counter (where it has a choice) */
        bool enqueue; /* ACQUIRE that is refused: stand in the engine's queue, if it has one */
        struct snib__name name;
        struct snib__id id;
        struct snib__who who;
        int64_t lease_ms;
        int64_t token; /* ACQUIRE: the token this hold has by the client's knowledge, 0 until it was granted */
};

enum snib__status {
        SNIB__GRANTED = 1, /* ACQUIRE: this id holds it now; `token` */
        SNIB__BUSY = 2,    /* ACQUIRE: someone else holds it, or is before us; `holder`, `left_ms`, `position` */
        SNIB__RENEWED = 3, /* RENEW: `token` where the engine knows it, else 0 */
        SNIB__GONE = 4, /* RENEW, RELEASE, ACQUIRE with a token: not held by this id; `held`, `holder` say what is there
                           instead */
        SNIB__RELEASED = 5, /* RELEASE: was held by this id, or stood in the queue, and no longer does */
        SNIB__INFO = 6,     /* QUERY, FORCE: `held` is what there is, for FORCE what there was and is no more */
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
        int64_t token;
        int64_t left_ms; /* of the present hold's lease; -1 unknown or none */
        bool held;
        struct snib__seat holder;
        int64_t position; /* ours in the queue, 1 = next; 0 not queued */
        int64_t waiters;  /* -1 unknown */
        bool waiters_at_least;
};

static inline bool snib__id_set(const struct snib__id *id)
{
        return id->text[0] != 0;
}

bool snib__id_equal(const struct snib__id *a, const struct snib__id *b);

#endif
