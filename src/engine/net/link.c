/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state chart of link.h: one connection after the other over a transport. It keeps no protocol,
 * and makes no system call. Anything that its owner does not understand ends the connection
 * (snib__link_fail()), so that no answer is ever given to a wrong request.
 */

#include "engine/net/link.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The wait before dial number n is drawn from [0, min(MAX, FIRST * 2^n)): full jitter, so that
 * clients of a restarted server do not come in step. */
#define BACKOFF_FIRST (50 * SNIB__MS)
#define BACKOFF_MAX (2 * SNIB__S)
/* A connection that lasted this long was good; the next failure starts from the beginning. */
#define STABLE_AFTER SNIB__S
/* Of a link that listens, silence is broken after this long. */
#define HEARTBEAT SNIB__S
/* Reads per call and connection: a flood must not keep the other connections waiting. */
#define READS_MAX 32

void snib__link_init(struct snib__link *l, const struct snib__link_config *config, snib__ns now)
{
        *l = (struct snib__link){.config = *config, .retry_at = now};
        snib__list_init(&l->in_flight);
}

static void hang_up(struct snib__link *l)
{
        if (l->conn)
                l->config.transport->close(l->conn);
        l->conn = NULL;
}

void snib__link_done(struct snib__link *l)
{
        hang_up(l);
        free(l->out);
        l->out = NULL;
}

void snib__link_forked(struct snib__link *l)
{
        if (l->conn)
                l->config.transport->forked(l->conn);
}

/* ---- out */

char *snib__link_room(struct snib__link *l, size_t length)
{
        if ((l->state != SNIB__LINK_READY && l->state != SNIB__LINK_HANDSHAKE) || l->broken)
                return NULL;
        if (l->out_sent == l->out_length) {
                l->out_base += l->out_length;
                l->out_sent = l->out_length = 0;
        }
        if (length > l->out_room - l->out_length && l->out_sent) {
                memmove(l->out, l->out + l->out_sent, l->out_length - l->out_sent);
                l->out_base += l->out_sent;
                l->out_length -= l->out_sent;
                l->out_sent = 0;
        }
        if (length > l->out_room - l->out_length) {
                size_t room = l->out_room ? l->out_room : 4096;
                char *grown;

                while (room - l->out_length < length)
                        room *= 2;
                if (room > SNIB__LINK_OUT_MAX || !(grown = snib__grow(l->out, room)))
                        return NULL;
                l->out = grown;
                l->out_room = room;
        }
        return l->out + l->out_length;
}

void snib__link_send(struct snib__link *l, const char *end, struct snib__flight *f, snib__ns now)
{
        f->begins = l->out_base + l->out_length;
        f->deadline = snib__after(now, l->config.timeout);
        l->out_length = (size_t)(end - l->out);
        snib__assert(l->out_length <= l->out_room);
        snib__list_append(&l->in_flight, &f->link);
}

void snib__link_flush(struct snib__link *l)
{
        while (l->conn && !l->broken && l->out_sent < l->out_length) {
                ssize_t n = l->config.transport->send(l->conn, l->out + l->out_sent, l->out_length - l->out_sent);

                l->blocked = n == -EAGAIN;
                if (l->blocked)
                        return;
                l->broken = n <= 0;
                if (n > 0)
                        l->out_sent += (size_t)n;
        }
}

bool snib__link_kept(const struct snib__link *l)
{
        return l->out_sent < l->out_length && !l->blocked && !l->broken;
}

/* ---- up and down */

static snib__ns backoff(struct snib__link *l)
{
        snib__ns most = BACKOFF_MAX;

        if (l->failures < 6)
                most = snib__min(most, BACKOFF_FIRST << l->failures);
        l->failures++;
        return (snib__ns)snib__prng_below(l->config.prng, (uint64_t)most);
}

struct snib__flight *snib__link_landed(struct snib__link *l)
{
        struct snib__list *first = snib__list_take(&l->in_flight);

        return first ? snib__container(first, struct snib__flight, link) : NULL;
}

/* Closes the connection, gives every request back, plans the next dial. */
void snib__link_fail_error(struct snib__link *l, const struct snib_error *why, snib__ns now)
{
        uint64_t sent = l->out_base + l->out_sent;
        bool was_ready = l->state == SNIB__LINK_READY;

        l->changes++;
        hang_up(l);
        if (was_ready && now - l->ready_at >= STABLE_AFTER)
                l->failures = 0;
        l->state = SNIB__LINK_IDLE;
        l->retry_at = snib__after(now, backoff(l));
        l->blocked = l->broken = l->more = false;
        l->out_base += l->out_length;
        l->out_length = l->out_sent = 0;
        for (struct snib__flight *f = snib__link_landed(l); f; f = snib__link_landed(l))
                l->config.ops->lost(l, f, f->begins < sent, why->text);
        l->config.ops->down(l, why, now);
}

void snib__link_fail(struct snib__link *l, snib__ns now, int code, const char *format, ...)
{
        struct snib_error why = SNIB_ERROR_INIT;
        char text[SNIB_ERROR_TEXT_MAX];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        snib__error(&why, code, "%s", text);
        snib__link_fail_error(l, &why, now);
}

static void fail_errno(struct snib__link *l, snib__ns now, int number, const char *what)
{
        struct snib_error why = SNIB_ERROR_INIT;

        snib__error_errno(&why, SNIB_EUNREACHABLE, number, what);
        snib__link_fail_error(l, &why, now);
}

static void dial(struct snib__link *l, snib__ns now)
{
        struct snib_error why = SNIB_ERROR_INIT;

        l->deadline = snib__after(now, l->config.connect_timeout);
        l->conn = l->config.transport->dial(l->config.transport_arg, l->config.address, l->config.role, &why);
        if (l->conn)
                l->state = SNIB__LINK_DIALING;
        else
                snib__link_fail_error(l, &why, now);
}

static void dialed(struct snib__link *l, snib__ns now)
{
        struct snib_error why = SNIB_ERROR_INIT;
        int n = l->config.transport->dialed(l->conn, &why);

        if (n < 0) {
                snib__link_fail_error(l, &why, now);
        } else if (n > 0) {
                l->state = SNIB__LINK_HANDSHAKE;
                l->deadline = snib__after(now, l->config.timeout);
                l->config.ops->greet(l, now);
                snib__link_flush(l);
        } else if (now >= l->deadline) {
                snib__link_fail(l, now, SNIB_EUNREACHABLE, "the server did not take the connection in time");
        }
}

static void connect_further(struct snib__link *l, unsigned wish, snib__ns now)
{
        if (l->state == SNIB__LINK_IDLE && (wish & SNIB__LINK_WANTED) && now >= l->retry_at)
                dial(l, now);
        if (l->state == SNIB__LINK_DIALING) {
                l->changes++; /* one address after the other */
                dialed(l, now);
        }
}

void snib__link_ready(struct snib__link *l, snib__ns now)
{
        l->state = SNIB__LINK_READY;
        l->ready_at = l->heard_at = now;
}

/* ---- in */

/* Until there is no more; when poll() said that there is something, a short read is the end. */
static void receive(struct snib__link *l, bool polled, snib__ns now)
{
        for (int i = 0; i < READS_MAX; i++) {
                ssize_t n = l->config.transport->recv(l->conn, l->in, sizeof(l->in));

                l->more = false;
                if (n == -EAGAIN)
                        return;
                if (n == 0) {
                        snib__link_fail(l, now, SNIB_EUNREACHABLE, "the server closed the connection");
                        return;
                }
                if (n < 0) {
                        fail_errno(l, now, (int)-n, "read from the server");
                        return;
                }
                l->heard_at = now;
                if (!l->config.ops->received(l, l->in, (size_t)n, now) || (polled && (size_t)n < sizeof(l->in)))
                        return;
        }
        l->more = true;
}

/* ---- time */

static const struct snib__flight *oldest(const struct snib__link *l)
{
        return snib__list_empty(&l->in_flight) ? NULL : snib__container(l->in_flight.next, struct snib__flight, link);
}

/* When silence is to be broken. */
static snib__ns heartbeat_at(const struct snib__link *l, unsigned wish)
{
        bool due = l->state == SNIB__LINK_READY && (wish & SNIB__LINK_LISTENING) && snib__list_empty(&l->in_flight);

        return due ? snib__after(l->heard_at, HEARTBEAT) : SNIB__NEVER;
}

static void check_time(struct snib__link *l, unsigned wish, snib__ns now)
{
        const struct snib__flight *f = oldest(l);

        if (l->state == SNIB__LINK_HANDSHAKE && now >= l->deadline)
                snib__link_fail(l, now, SNIB_EUNREACHABLE, "the server took the connection and said nothing in time");
        else if (l->state == SNIB__LINK_READY && f && now >= f->deadline)
                snib__link_fail(l, now, SNIB_EUNREACHABLE, "the server did not answer in time");
        else if (now >= heartbeat_at(l, wish))
                l->config.ops->silent(l, now);
}

static snib__ns deadline_of(const struct snib__link *l, unsigned wish)
{
        const struct snib__flight *f = oldest(l);

        if (l->broken || l->more)
                return 0;
        if (l->state == SNIB__LINK_IDLE)
                return wish & SNIB__LINK_WANTED ? l->retry_at : SNIB__NEVER;
        if (l->state != SNIB__LINK_READY)
                return l->deadline;
        return f ? f->deadline : heartbeat_at(l, wish);
}

/* ---- the engine's loop */

static int descriptor(const struct snib__link *l, short *ret_events)
{
        return l->conn ? l->config.transport->interest(l->conn, l->out_sent < l->out_length && l->blocked, ret_events)
                       : -1;
}

void snib__link_interest(const struct snib__link *l, unsigned wish, struct snib__interest *ret)
{
        short events = 0;
        int fd = descriptor(l, &events);

        if (fd >= 0) {
                ret->fds[ret->count].fd = fd;
                ret->fds[ret->count++].events = events;
        }
        ret->deadline = snib__min(ret->deadline, deadline_of(l, wish));
        ret->kept |= snib__link_kept(l);
        ret->changes += l->changes;
}

/* What poll() said about this connection's descriptor; -1 if nobody asked it. */
static short events_of(const struct snib__link *l, const struct snib__interest *ready)
{
        short unused;
        int fd = ready ? descriptor(l, &unused) : -1;

        for (int i = 0; fd >= 0 && i < ready->count; i++)
                if (ready->fds[i].fd == fd)
                        return ready->fds[i].events;
        return fd < 0 ? -1 : 0;
}

void snib__link_process(struct snib__link *l, unsigned wish, const struct snib__interest *ready, snib__ns now)
{
        short revents = events_of(l, ready);

        if (l->state == SNIB__LINK_IDLE || l->state == SNIB__LINK_DIALING)
                connect_further(l, wish, now);
        if (l->state != SNIB__LINK_HANDSHAKE && l->state != SNIB__LINK_READY)
                return;
        snib__link_flush(l);
        /* A broken connection too: what the server said last may be the reason. And before a
         * deadline ends it: after a pause of this process the answer may have been here for
         * long. */
        if (revents || l->more || l->broken || now >= deadline_of(l, wish))
                receive(l, revents > 0, now);
        if (l->conn && l->broken)
                snib__link_fail(l, now, SNIB_EUNREACHABLE, "the connection to the server broke");
        if (l->conn)
                check_time(l, wish, now);
        if (l->conn)
                snib__link_flush(l);
}
