/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_NET_LINK_H
#define SNIB_ENGINE_NET_LINK_H

/*
 * One connection of an engine, and the next one when it fails: dial, back-off, deadlines, bytes
 * out, bytes in, silence, what is in flight. It knows no protocol: how hands are shaken, and what
 * bytes mean, is for the functions of struct snib__link_ops, whose owner embeds the link in its
 * own struct. All of it runs on the one thread that calls the engine.
 *
 *     IDLE --wanted, retry_at--> DIALING --dialed--> HANDSHAKE --snib__link_ready()--> READY
 *       ^------------------------- any failure, with back-off --------------------------|
 *
 * Invariants: nothing is in flight unless there is a connection; what is in flight stands in the
 * order in which it was sent, and each comes to its end once: landed, or lost.
 */

#include "base/list.h"
#include "base/prng.h"
#include "base/time.h"
#include "engine/engine.h"
#include "engine/net/transport.h"

/* Bytes that wait to be sent, per connection. Beyond it requests are refused at once: the peer has
 * stopped reading. */
#define SNIB__LINK_OUT_MAX ((size_t)16 << 20)

/* A request on its way. Embedded in the engine's own. */
struct snib__flight {
        struct snib__list link;
        uint64_t begins; /* where its first byte stands in all the link ever sent */
        snib__ns deadline;
};

enum snib__link_state {
        SNIB__LINK_IDLE = 0,
        SNIB__LINK_DIALING,
        SNIB__LINK_HANDSHAKE, /* connected; only what greet() sends may leave */
        SNIB__LINK_READY
};

struct snib__link;

/* The owner's part. Any of them may end the connection by snib__link_fail(), after which the link
 * is IDLE and has no `conn`. */
struct snib__link_ops {
        /* Connected: shake hands, which ends with snib__link_ready(). */
        void (*greet)(struct snib__link *l, snib__ns now);
        /* These came. False: the connection was ended. */
        bool (*received)(struct snib__link *l, const char *bytes, size_t length, snib__ns now);
        /* Nothing was heard for a while and nothing is in flight: ask whether the peer lives. */
        void (*silent)(struct snib__link *l, snib__ns now);
        /* This one has no connection any more. `sent`: bytes of it may have left. */
        void (*lost)(struct snib__link *l, struct snib__flight *f, bool sent, const char *why);
        /* The connection, or the dial, failed; all that was in flight is lost. */
        void (*down)(struct snib__link *l, const struct snib_error *why, snib__ns now);
};

struct snib__link_config {
        const struct snib__link_ops *ops;
        const struct snib__transport *transport;
        void *transport_arg;
        const struct snib__address *address; /* the next dial's: its owner may change it */
        int role;                            /* for the transport */
        snib__ns connect_timeout;            /* of one dial */
        snib__ns timeout;                    /* of one handshake, one answer */
        struct snib__prng *prng;             /* for jitter */
};

struct snib__link {
        struct snib__link_config config;
        enum snib__link_state state;
        struct snib__conn *conn; /* NULL in IDLE */
        char *out;
        size_t out_length, out_sent, out_room;
        uint64_t out_base; /* what was sent before out[0] */
        uint64_t changes;  /* counts what may have changed the descriptor */
        bool blocked;      /* the last send found no room */
        bool broken;       /* a send failed, or its owner gave it up; process() will say so */
        bool more;         /* stopped reading before the end, for fairness */
        struct snib__list in_flight;
        snib__ns deadline; /* of dialing and handshake */
        snib__ns retry_at; /* IDLE */
        snib__ns heard_at;
        snib__ns ready_at;
        int failures;
        char in[16 << 10]; /* here and not on the stack, where hardening would clear it for every read */
};

/* What its owner wants of a link at the moment. */
enum snib__link_wish {
        SNIB__LINK_WANTED = 1,   /* dial if there is no connection */
        SNIB__LINK_LISTENING = 2 /* something may come at any time: break a silence */
};

void snib__link_init(struct snib__link *l, const struct snib__link_config *config, snib__ns now);
/* Closes and frees; what is in flight has been taken. */
void snib__link_done(struct snib__link *l);
/* In a forked child. Async-signal-safe. */
void snib__link_forked(struct snib__link *l);

/* ---- out */

/* Room for so many bytes more; NULL: the connection is not up, the buffer is full, or there is no
 * memory. What is not sent was not written. */
char *snib__link_room(struct snib__link *l, size_t length);
/* The room was filled up to `end`: it leaves with the next flush, and the request is in flight. */
void snib__link_send(struct snib__link *l, const char *end, struct snib__flight *f, snib__ns now);
void snib__link_flush(struct snib__link *l);
/* Something waits for the flush. */
bool snib__link_kept(const struct snib__link *l);

/* ---- in */

/* The oldest in flight, which is now its owner's; NULL: there is none. For a protocol that answers
 * in order: one that does not takes flights out of the list by itself. */
struct snib__flight *snib__link_landed(struct snib__link *l);
/* Hands were shaken: whatever is sent from now on is a request. */
void snib__link_ready(struct snib__link *l, snib__ns now);
/* Ends the connection. */
__attribute__((format(printf, 4, 5))) void snib__link_fail(struct snib__link *l, snib__ns now, int code,
                                                           const char *format, ...);
void snib__link_fail_error(struct snib__link *l, const struct snib_error *why, snib__ns now);

/* ---- the engine's loop; `wish` is of enum snib__link_wish */

/* Adds its descriptor and deadline, and what it keeps. */
void snib__link_interest(const struct snib__link *l, unsigned wish, struct snib__interest *ret);
/* `ready` as process() of an engine has it. */
void snib__link_process(struct snib__link *l, unsigned wish, const struct snib__interest *ready, snib__ns now);

#endif
