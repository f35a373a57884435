/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The buffers behind memory_transport.h: what the engine sends is appended to `out`, what it reads
 * is taken from `in`, as far as the limits on the piece allow. Not a server and not a network: the
 * test plays both, on its one thread.
 */

#include "memory_transport.h"
#include "base/error.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put(char **buffer, size_t *length, size_t *room, const void *bytes, size_t n)
{
        if (*length + n > *room) {
                *room = (*length + n) * 2;
                *buffer = realloc(*buffer, *room);
                if (!*buffer)
                        abort();
        }
        if (n)
                memcpy(*buffer + *length, bytes, n);
        *length += n;
}

void memory_push(struct memory_conn *c, const void *bytes, size_t length)
{
        put(&c->in, &c->in_length, &c->in_room, bytes, length);
}

void memory_clear_out(struct memory_conn *c)
{
        c->out_length = 0;
}

void memory_done(struct memory_transport *t)
{
        for (int i = 0; i < 2; i++) {
                free(t->conn[i].in);
                free(t->conn[i].out);
        }
}

static struct memory_conn *conn_of(struct snib__conn *c)
{
        return (struct memory_conn *)(void *)c;
}

static struct snib__conn *dial(void *arg, const struct snib__address *to, int role, struct snib_error *err)
{
        struct memory_transport *t = arg;
        struct memory_conn *c = &t->conn[role];

        c->dials++;
        if (t->refuse) {
                snib__error(err, SNIB_EUNREACHABLE, "refused");
                return NULL;
        }
        c->transport = t;
        c->open = true;
        c->end = false;
        c->error = 0;
        c->in_at = c->in_length = c->out_length = 0;
        return (struct snib__conn *)(void *)c;
}

static int dialed(struct snib__conn *conn, struct snib_error *err)
{
        return conn_of(conn)->pending ? 0 : 1;
}

static ssize_t send_bytes(struct snib__conn *conn, const void *bytes, size_t length)
{
        struct memory_conn *c = conn_of(conn);
        size_t n = c->send_max && length > c->send_max ? c->send_max : length;

        put(&c->out, &c->out_length, &c->out_room, bytes, n);
        return (ssize_t)n;
}

static ssize_t recv_bytes(struct snib__conn *conn, void *bytes, size_t room)
{
        struct memory_conn *c = conn_of(conn);
        size_t n = c->in_length - c->in_at;

        n = n > room ? room : n;
        n = c->recv_max && n > c->recv_max ? c->recv_max : n;
        if (!n)
                return c->error ? -c->error : c->end ? 0 : -EAGAIN;
        memcpy(bytes, c->in + c->in_at, n);
        c->in_at += n;
        return (ssize_t)n;
}

static int interest(struct snib__conn *conn, bool want_send, short *ret_events)
{
        *ret_events = 0;
        return -1;
}

static void close_conn(struct snib__conn *conn)
{
        conn_of(conn)->open = false;
}

const struct snib__transport memory_transport = {.dial = dial,
                                                 .dialed = dialed,
                                                 .send = send_bytes,
                                                 .recv = recv_bytes,
                                                 .interest = interest,
                                                 .close = close_conn,
                                                 .forked = close_conn};
