/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_MEMORY_TRANSPORT_H
#define SNIB_TEST_MEMORY_TRANSPORT_H

/*
 * The Redis engine's two connections as buffers in memory: the test is the server. Time is the
 * test's; no descriptor, no thread.
 */

#include "engine/net/transport.h"
#include <stdint.h>

struct memory_conn {
        struct memory_transport *transport;
        bool open;
        bool pending;    /* the dial does not come to an end */
        bool end;        /* after what is in `in`: the server has closed */
        int error;       /* after what is in `in`: recv fails with this errno */
        size_t send_max; /* bytes taken per send; 0: no limit */
        size_t recv_max; /* bytes given per recv */
        unsigned dials;
        char *in, *out;
        size_t in_length, in_at, in_room, out_length, out_room;
};

struct memory_transport {
        struct memory_conn conn[2]; /* by enum snib__redis_role */
        bool refuse;                /* dials fail at once */
};

extern const struct snib__transport memory_transport;

/* Bytes from the server. */
void memory_push(struct memory_conn *c, const void *bytes, size_t length);
/* Forgets what the client sent so far. */
void memory_clear_out(struct memory_conn *c);
void memory_done(struct memory_transport *t);

#endif
