/* SPDX-License-Identifier: Apache-2.0 */

/*
 * See transport.h. The simulator has a transport of its own, with a network that delays, cuts and
 * reorders; this is the one without faults, for tests that compare answers. One thread.
 */

#include "transport.h"
#include "fakeredis.h"
#include <errno.h>
#include <string.h>

static struct fakeredis_conn *conn_of(struct snib__conn *c)
{
        return (struct fakeredis_conn *)(void *)c;
}

static struct snib__conn *dial(void *arg, const struct snib__address *to, int role, struct snib_error *err)
{
        return (struct snib__conn *)(void *)fakeredis_connect(arg);
}

static int dialed(struct snib__conn *c, struct snib_error *err)
{
        return 1;
}

static ssize_t send_bytes(struct snib__conn *c, const void *bytes, size_t length)
{
        if (fakeredis_closed(conn_of(c)))
                return -ECONNRESET;
        fakeredis_feed(conn_of(c), bytes, length);
        return (ssize_t)length;
}

static ssize_t recv_bytes(struct snib__conn *c, void *bytes, size_t room)
{
        const char *from;
        size_t n = fakeredis_output(conn_of(c), &from);

        n = n < room ? n : room;
        if (!n)
                return fakeredis_closed(conn_of(c)) ? 0 : -EAGAIN;
        memcpy(bytes, from, n);
        fakeredis_take(conn_of(c), n);
        return (ssize_t)n;
}

static int interest(struct snib__conn *c, bool want_send, short *ret_events)
{
        *ret_events = 0;
        return -1;
}

static void close_conn(struct snib__conn *c)
{
        fakeredis_disconnect(conn_of(c));
}

static void forked(struct snib__conn *c)
{
        /* no descriptor */
}

const struct snib__transport fakeredis_transport = {.dial = dial,
                                                    .dialed = dialed,
                                                    .send = send_bytes,
                                                    .recv = recv_bytes,
                                                    .interest = interest,
                                                    .close = close_conn,
                                                    .forked = forked};
