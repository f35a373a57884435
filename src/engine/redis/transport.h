/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_REDIS_TRANSPORT_H
#define SNIB_ENGINE_REDIS_TRANSPORT_H

/*
 * How the engine moves bytes. In production these are sockets (socket.c); the simulator and the
 * fuzzer put memory here. Nothing blocks, nothing calls back; times are the engine's business.
 */

#include <snib/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where to connect to. Lives as long as the engine. */
struct snib__redis_address {
        const char *unix_path; /* NULL: TCP */
        const char *host;
        int port;
        int timeout_ms; /* after which unacknowledged bytes mean a dead peer, for transports that can tell */
};

struct snib__redis_conn; /* the transport's own */

enum snib__redis_role { SNIB__REDIS_COMMANDS = 0, SNIB__REDIS_SUBSCRIPTIONS = 1 };

struct snib__redis_transport {
        /* Starts to connect: the connection, or NULL with *err filled if that failed at once. */
        struct snib__redis_conn *(*dial)(void *arg, const struct snib__redis_address *to, enum snib__redis_role role,
                                         struct snib_error *err);
        /* 1 connected, 0 not yet, negative: it failed, *err says why. Called until it answers
         * something else than 0. */
        int (*dialed)(struct snib__redis_conn *c, struct snib_error *err);
        /* Bytes taken (at least 1), -EAGAIN: none at the moment, or another negative errno. */
        ssize_t (*send)(struct snib__redis_conn *c, const void *bytes, size_t length);
        /* Bytes put (at least 1), 0: the peer closed, -EAGAIN: none at the moment, or another
         * negative errno. */
        ssize_t (*recv)(struct snib__redis_conn *c, void *bytes, size_t room);
        /* What to poll: a descriptor, or -1 if there is none, and its events. `want_send`: bytes
         * are waiting to be sent. */
        int (*interest)(struct snib__redis_conn *c, bool want_send, short *ret_events);
        /* Closes and frees. */
        void (*close)(struct snib__redis_conn *c);
        /* In a forked child: closes descriptors, frees nothing, sends nothing.
         * Async-signal-safe. */
        void (*forked)(struct snib__redis_conn *c);
};

extern const struct snib__redis_transport snib__redis_socket_transport;

#endif
