/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_NET_TRANSPORT_H
#define SNIB_ENGINE_NET_TRANSPORT_H

/*
 * How an engine moves bytes over a connection. In production these are sockets (socket.c); the
 * simulator and the fuzzer put memory here, and what encrypts stands between: a transport over
 * another one, whose `dialed` shakes hands. Nothing blocks, nothing calls back; times are the
 * link's business (link.h).
 */

#include <snib/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where to connect to. Lives as long as the connection. */
struct snib__address {
        const char *unix_path; /* NULL: TCP */
        const char *host;
        int port;
        int timeout_ms; /* after which unacknowledged bytes mean a dead peer, for transports that can tell */
};

struct snib__conn; /* the transport's own */

struct snib__transport {
        /* Starts to connect: the connection, or NULL with *err filled if that failed at once.
         * `role` is the engine's number for what the connection is for. */
        struct snib__conn *(*dial)(void *arg, const struct snib__address *to, int role, struct snib_error *err);
        /* 1 connected, 0 not yet, negative: it failed, *err says why. Called until it answers
         * something else than 0. */
        int (*dialed)(struct snib__conn *c, struct snib_error *err);
        /* Bytes taken (at least 1), -EAGAIN: none at the moment, or another negative errno. */
        ssize_t (*send)(struct snib__conn *c, const void *bytes, size_t length);
        /* Bytes put (at least 1), 0: the peer closed, -EAGAIN: none at the moment, or another
         * negative errno. Fewer than there is room for, and the descriptor that was ready has no
         * more. */
        ssize_t (*recv)(struct snib__conn *c, void *bytes, size_t room);
        /* What to poll: a descriptor, or -1 if there is none, and its events. `want_send`: bytes
         * are waiting to be sent. */
        int (*interest)(struct snib__conn *c, bool want_send, short *ret_events);
        /* Closes and frees. */
        void (*close)(struct snib__conn *c);
        /* In a forked child: closes descriptors, frees nothing, sends nothing.
         * Async-signal-safe. */
        void (*forked)(struct snib__conn *c);
};

extern const struct snib__transport snib__socket_transport;

#endif
