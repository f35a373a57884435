/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection: dial, handshake, bytes out, replies in, deadlines, heartbeat, reconnect. It
 * matches replies with requests by their order and knows nothing of what they mean. Invariants:
 * requests are answered in the order in which they were sent; in_flight is empty unless there is a
 * connection; anything that is not understood closes the connection, so that no reply is ever given
 * to a wrong request.
 *
 *     IDLE --wanted, retry_at--> DIALING --dialed--> HANDSHAKE --all answered--> READY
 *       ^------------------------- any failure, with back-off ---------------------|
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "base/error.h"
#include "engine/redis/internal.h"
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
/* With somebody waiting for a lock, silence is broken by a PING after this long. */
#define HEARTBEAT SNIB__S
/* Reads per call and connection: a flood must not keep the other connection waiting. */
#define READS_MAX 32

void snib__link_init(struct link *l, struct redis *r, enum snib__redis_role role)
{
        *l = (struct link){.redis = r, .role = role};
        snib__list_init(&l->in_flight);
}

void snib__link_done(struct link *l)
{
        if (l->conn)
                l->redis->transport->close(l->conn);
        l->conn = NULL;
        snib__resp_free(l->resp);
        l->resp = NULL;
        free(l->out);
        l->out = NULL;
}

static const char *role_name(const struct link *l)
{
        return l->role == SNIB__REDIS_COMMANDS ? "commands" : "subscriptions";
}

/* ---- out */

/* Room for so many bytes at the end of what is to be sent; NULL if it would be too much, or memory
 * is short. */
static char *reserve(struct link *l, size_t length)
{
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
                if (room > SNIB__REDIS_OUT_MAX || !(grown = snib__grow(l->out, room)))
                        return NULL;
                l->out = grown;
                l->out_room = room;
        }
        return l->out + l->out_length;
}

/* A type, a number, and the end of the line: at most HEAD_MAX bytes. */
#define HEAD_MAX (1 + SNIB__DECIMAL_MAX + 2)

static inline char *put_head(char *at, char type, size_t number)
{
        *at++ = type;
        at += snib__decimal(at, number);
        *at++ = '\r';
        *at++ = '\n';
        return at;
}

/* A request is an array of bulk strings. Written in place: hiredis' formatter cost a twentieth of
 * an acquire. */
bool snib__link_begin(struct link *l, struct writing *ret, int argc, size_t texts)
{
        char *at = NULL;

        if ((l->state == LINK_READY || l->state == LINK_HANDSHAKE) && !l->broken)
                at = reserve(l, HEAD_MAX + (size_t)argc * (HEAD_MAX + 2) + texts);
        if (!at)
                return false;
        ret->at = put_head(at, '*', (size_t)argc);
        ret->left = argc;
        return true;
}

char *snib__link_place(struct writing *w, size_t length)
{
        char *at = put_head(w->at, '$', length), *end = at + length;

        *end++ = '\r';
        *end++ = '\n';
        w->at = end;
        w->left--;
        return at;
}

void snib__link_put(struct writing *w, const char *text, size_t length)
{
        memcpy(snib__link_place(w, length), text, length);
}

void snib__link_put_number(struct writing *w, int64_t number)
{
        char text[1 + SNIB__DECIMAL_MAX] = "-";
        size_t minus = number < 0;

        snib__link_put(w, text, minus + snib__decimal(text + minus, minus ? -(uint64_t)number : (uint64_t)number));
}

void snib__link_end(struct link *l, const struct writing *w, struct request *q, snib__ns now)
{
        snib__assert(w->left == 0);
        q->begins = l->out_base + l->out_length;
        q->deadline = snib__after(now, l->redis->config.timeout);
        l->out_length = (size_t)(w->at - l->out);
        snib__assert(l->out_length <= l->out_room);
        snib__list_append(&l->in_flight, &q->note.link);
}

bool snib__link_send(struct link *l, struct request *q, int argc, const char **argv, const size_t *length, snib__ns now)
{
        struct writing w;
        size_t texts = 0;

        for (int i = 0; i < argc; i++)
                texts += length[i];
        if (!snib__link_begin(l, &w, argc, texts))
                return false;
        for (int i = 0; i < argc; i++)
                snib__link_put(&w, argv[i], length[i]);
        snib__link_end(l, &w, q, now);
        return true;
}

void snib__link_flush(struct link *l)
{
        while (l->conn && !l->broken && l->out_sent < l->out_length) {
                ssize_t n = l->redis->transport->send(l->conn, l->out + l->out_sent, l->out_length - l->out_sent);

                l->blocked = n == -EAGAIN;
                if (l->blocked)
                        return;
                l->broken = n <= 0;
                if (n > 0)
                        l->out_sent += (size_t)n;
        }
}

/* ---- up and down */

static snib__ns backoff(struct link *l)
{
        snib__ns most = BACKOFF_MAX;

        if (l->failures < 6)
                most = snib__min(most, BACKOFF_FIRST << l->failures);
        l->failures++;
        return (snib__ns)snib__prng_below(&l->redis->prng, (uint64_t)most);
}

/* Closes the connection, gives every request back, plans the next dial. */
static void fail(struct link *l, const struct snib_error *why, snib__ns now)
{
        struct redis *r = l->redis;
        uint64_t sent = l->out_base + l->out_sent;
        bool was_ready = l->state == LINK_READY;

        snib__redis_trace(r, "redis: %s: %s", role_name(l), why->text);
        l->changes++;
        if (l->conn)
                r->transport->close(l->conn);
        l->conn = NULL;
        snib__resp_free(l->resp);
        l->resp = NULL;
        if (was_ready && now - l->ready_at >= STABLE_AFTER)
                l->failures = 0;
        l->state = LINK_IDLE;
        l->retry_at = snib__after(now, backoff(l));
        l->blocked = l->broken = l->more = false;
        l->out_base += l->out_length;
        l->out_length = l->out_sent = 0;
        for (struct snib__list *it = snib__list_take(&l->in_flight); it; it = snib__list_take(&l->in_flight)) {
                struct request *q = snib__container(it, struct request, note.link);
                snib__redis_orphan(r, q, q->begins < sent, why->text);
        }
        snib__redis_link_down(l, why);
}

__attribute__((format(printf, 4, 5))) static void fail_text(struct link *l, snib__ns now, int code, const char *format,
                                                            ...)
{
        struct snib_error why = SNIB_ERROR_INIT;
        char text[SNIB_ERROR_TEXT_MAX];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        snib__error(&why, code, "%s", text);
        fail(l, &why, now);
}

static void fail_errno(struct link *l, snib__ns now, int number, const char *what)
{
        struct snib_error why = SNIB_ERROR_INIT;

        snib__error_errno(&why, SNIB_EUNREACHABLE, number, what);
        fail(l, &why, now);
}

static void dial(struct link *l, snib__ns now)
{
        struct redis *r = l->redis;
        struct snib_error why = SNIB_ERROR_INIT;

        l->deadline = snib__after(now, r->config.connect_timeout);
        l->resp = snib__resp_new();
        if (!l->resp) {
                fail_text(l, now, SNIB_ENOMEM, "out of memory for a connection");
                return;
        }
        l->conn = r->transport->dial(r->transport_arg, &r->config.address, l->role, &why);
        if (l->conn)
                l->state = LINK_DIALING;
        else
                fail(l, &why, now);
}

static bool handshake_command(struct link *l, int argc, const char **argv, snib__ns now)
{
        size_t length[3];
        struct request *q = snib__redis_request(l->redis, REQUEST_HANDSHAKE, now);

        for (int i = 0; i < argc; i++)
                length[i] = strlen(argv[i]);
        if (!q)
                return false;
        q->handshake = argv[0];
        if (snib__link_send(l, q, argc, argv, length, now))
                return true;
        snib__redis_request_free(l->redis, q);
        return false;
}

/* AUTH and SELECT as needed, and always PING: what a server that is loading, full or protected
 * answers to it is worth knowing at once. HELLO says what the server is; it comes before SELECT,
 * which a cluster has not. All in one round trip. */
static void shake_hands(struct link *l, snib__ns now)
{
        struct redis_config *c = &l->redis->config;
        struct snib_error why = SNIB_ERROR_INIT;
        char db[16];
        bool done = true;

        l->state = LINK_HANDSHAKE;
        l->deadline = snib__after(now, c->timeout);
        if (snib__redis_password(c, &why) < 0) {
                fail(l, &why, now);
                return;
        }
        if (c->has_password && c->user[0])
                done = handshake_command(l, 3, (const char *[]){"AUTH", c->user, c->password}, now);
        else if (c->has_password)
                done = handshake_command(l, 2, (const char *[]){"AUTH", c->password}, now);
        if (done && l->role == SNIB__REDIS_COMMANDS)
                done = handshake_command(l, 2, (const char *[]){"HELLO", "2"}, now);
        snprintf(db, sizeof(db), "%d", c->db);
        if (done && c->db)
                done = handshake_command(l, 2, (const char *[]){"SELECT", db}, now);
        if (done)
                done = handshake_command(l, 1, (const char *[]){"PING"}, now);
        if (!done)
                fail_text(l, now, SNIB_ENOMEM, "out of memory for a connection");
        else
                snib__link_flush(l);
}

static void dialed(struct link *l, snib__ns now)
{
        struct snib_error why = SNIB_ERROR_INIT;
        int n = l->redis->transport->dialed(l->conn, &why);

        if (n < 0)
                fail(l, &why, now);
        else if (n > 0)
                shake_hands(l, now);
        else if (now >= l->deadline)
                fail_text(l, now, SNIB_EUNREACHABLE, "the server did not take the connection in time");
}

/* ---- in */

static void handshake_refused(struct link *l, const struct request *q, const char *text, snib__ns now)
{
        const struct refusal *row = snib__refusal_find(text);
        int code = row->prefix[0] ? row->code : strcmp(q->handshake, "AUTH") ? SNIB_EREFUSED : SNIB_EAUTH;

        fail_text(l, now, code, "the server answered \"%.120s\" to %s; %s", text, q->handshake,
                  code == SNIB_EAUTH ? "check user and password" : row->advice);
}

/* What is no single server. False: the connection has been closed. */
static bool check_mode(struct link *l, const char *mode, snib__ns now)
{
        if (!strncmp(mode, "cluster", 7))
                fail_text(l, now, SNIB_EUNSUPPORTED,
                          "the server is a node of a cluster, where locks of other nodes cannot be had and Java "
                          "clients would not be woken; use a server that is not in cluster mode: this build has no "
                          "redis+cluster:// yet");
        else if (!strncmp(mode, "sentinel", 8))
                fail_text(l, now, SNIB_EUNSUPPORTED,
                          "the server is a Sentinel, which keeps no locks; give the address of the server that it "
                          "watches: this build has no redis+sentinel:// yet");
        return l->conn != NULL;
}

static bool is_string(const struct link *l, const struct snib__resp_value *v, const char *text)
{
        return (v->type == SNIB__RESP_STRING || v->type == SNIB__RESP_STATUS) &&
               !strcmp(snib__resp_text(l->resp, v), text);
}

static void set_version(struct redis *r, const char *text)
{
        size_t n = strspn(text, "0123456789.");

        snprintf(r->version, sizeof(r->version), "%.*s", (int)n, text);
}

/* {"server", ..., "version", ..., "mode", ..., "modules", {...}}. A server before 6.0, or one that
 * only resembles a Redis, does not know it; INFO may tell then, and if it does not, nobody does.
 * False: the connection has been closed. */
static bool hello_reply(struct link *l, const struct request *q, const struct snib__resp_value *v, size_t count,
                        snib__ns now)
{
        if (v->type == SNIB__RESP_ERROR) {
                const char *text = snib__resp_text(l->resp, v);
                const struct refusal *row = snib__refusal_find(text);

                if (row->close && row->code != SNIB_EAUTH) /* said to whoever connects. NOAUTH is PING's to hear */
                        handshake_refused(l, q, text, now);
                else if (!row->prefix[0] && !handshake_command(l, 2, (const char *[]){"INFO", "server"}, now))
                        fail_text(l, now, SNIB_ENOMEM, "out of memory for a connection");
                return l->conn != NULL;
        }
        if (v->type != SNIB__RESP_ARRAY)
                fail_text(l, now, SNIB_EPROTOCOL, "the server's answer to HELLO makes no sense; is it a Redis?");
        for (size_t i = 1; l->conn && i + 1 < count && v[i + 1].type != SNIB__RESP_ARRAY; i += 2) {
                if (is_string(l, &v[i], "version"))
                        set_version(l->redis, snib__resp_text(l->resp, &v[i + 1]));
                else if (is_string(l, &v[i], "mode") && !check_mode(l, snib__resp_text(l->resp, &v[i + 1]), now))
                        return false;
        }
        return l->conn != NULL;
}

/* Lines "key:value". False: the connection has been closed. */
static bool info_reply(struct link *l, const struct snib__resp_value *v, snib__ns now)
{
        const char *text = v->type == SNIB__RESP_STRING ? snib__resp_text(l->resp, v) : "";
        const char *version = strstr(text, "\nredis_version:"), *mode = strstr(text, "\nredis_mode:");

        if (version)
                set_version(l->redis, version + strlen("\nredis_version:"));
        return !mode || check_mode(l, mode + strlen("\nredis_mode:"), now);
}

static void handshake_reply(struct link *l, const struct request *q, const struct snib__resp_value *v, size_t count,
                            snib__ns now)
{
        if (!strcmp(q->handshake, "HELLO") || !strcmp(q->handshake, "INFO")) {
                if (!(q->handshake[0] == 'H' ? hello_reply(l, q, v, count, now) : info_reply(l, v, now)))
                        return;
        } else if (v->type == SNIB__RESP_ERROR) {
                handshake_refused(l, q, snib__resp_text(l->resp, v), now);
                return;
        } else if (count != 1 || v->type != SNIB__RESP_STATUS) {
                fail_text(l, now, SNIB_EPROTOCOL, "the server's answer to %s makes no sense; is it a Redis?",
                          q->handshake);
                return;
        }
        if (snib__list_empty(&l->in_flight)) {
                l->state = LINK_READY;
                l->ready_at = l->heard_at = now;
                memset(l->by_text, 1, sizeof(l->by_text));
                snib__redis_trace(l->redis, "redis: %s: connected", role_name(l));
                snib__redis_link_up(l, now);
        }
}

static bool is_message(const struct link *l, const struct snib__resp_value *v, size_t count)
{
        return l->role == SNIB__REDIS_SUBSCRIPTIONS && count == 4 && v[0].type == SNIB__RESP_ARRAY &&
               v[1].type == SNIB__RESP_STRING && !strcmp(snib__resp_text(l->resp, &v[1]), "message");
}

/* One reply. False: the connection has been closed. */
static bool take(struct link *l, const struct snib__resp_value *values, size_t count, snib__ns now)
{
        struct snib__list *first;
        struct request *q;
        const char *why = "it answered what nobody asked for";

        if (is_message(l, values, count)) {
                if (!snib__watch_message(l->redis, values, count))
                        fail_text(l, now, SNIB_EPROTOCOL,
                                  "the server makes no sense: a message that nobody subscribed to");
                return l->conn != NULL;
        }
        first = snib__list_take(&l->in_flight);
        if (first) {
                q = snib__container(first, struct request, note.link);
                if (q->kind == REQUEST_HANDSHAKE) {
                        handshake_reply(l, q, values, count, now);
                        snib__redis_request_free(l->redis, q);
                        return l->conn != NULL;
                }
                why = "its answer does not fit the question";
                if (snib__redis_reply(l->redis, q, values, count, now, &why))
                        return true;
                snib__redis_orphan(l->redis, q, true, why);
        } else if (values->type == SNIB__RESP_ERROR) {
                /* Sent before a server hangs up: too many clients, protected mode. */
                const struct refusal *row = snib__refusal_find(snib__resp_text(l->resp, values));
                fail_text(l, now, row->code, "the server says \"%.120s\"; %s", snib__resp_text(l->resp, values),
                          row->advice);
                return false;
        }
        fail_text(l, now, SNIB_EPROTOCOL, "the server makes no sense: %s", why);
        return false;
}

/* All complete replies. False: the connection has been closed. */
static bool parse(struct link *l, snib__ns now)
{
        const struct snib__resp_value *values;
        size_t count;
        int n;

        while ((n = snib__resp_next(l->resp, &values, &count)) > 0)
                if (!take(l, values, count, now))
                        return false;
        if (n < 0)
                fail_text(l, now, snib__resp_no_memory(l->resp) ? SNIB_ENOMEM : SNIB_EPROTOCOL,
                          "the server makes no sense: %s", snib__resp_error(l->resp));
        return n == 0;
}

/* Until there is no more; when poll() said that there is something, a short read is the end. */
static void receive(struct link *l, bool polled, snib__ns now)
{
        for (int i = 0; i < READS_MAX; i++) {
                ssize_t n = l->redis->transport->recv(l->conn, l->in, sizeof(l->in));

                l->more = false;
                if (n == -EAGAIN)
                        return;
                if (n == 0) {
                        fail_text(l, now, SNIB_EUNREACHABLE, "the server closed the connection");
                        return;
                }
                if (n < 0) {
                        fail_errno(l, now, (int)-n, "read from the server");
                        return;
                }
                l->heard_at = now;
                if (!snib__resp_feed(l->resp, l->in, (size_t)n)) {
                        fail_text(l, now, SNIB_ENOMEM, "out of memory for a reply");
                        return;
                }
                if (!parse(l, now) || (polled && (size_t)n < sizeof(l->in)))
                        return;
        }
        l->more = true;
}

/* ---- time */

static const struct request *oldest(const struct link *l)
{
        return snib__list_empty(&l->in_flight) ? NULL : snib__container(l->in_flight.next, struct request, note.link);
}

static void heartbeat(struct link *l, snib__ns now)
{
        struct request *q = snib__redis_request(l->redis, REQUEST_PING, now);

        if (q && !snib__link_send(l, q, 1, (const char *[]){"PING"}, (const size_t[]){4}, now))
                snib__redis_request_free(l->redis, q);
}

/* When silence is to be broken. */
static snib__ns heartbeat_at(const struct link *l)
{
        bool due = l->state == LINK_READY && l->redis->watched && snib__list_empty(&l->in_flight);

        return due ? snib__after(l->heard_at, HEARTBEAT) : SNIB__NEVER;
}

static void check_time(struct link *l, snib__ns now)
{
        const struct request *q = oldest(l);

        if (l->state == LINK_HANDSHAKE && now >= l->deadline)
                fail_text(l, now, SNIB_EUNREACHABLE, "the server took the connection and said nothing in time");
        else if (l->state == LINK_READY && q && now >= q->deadline)
                fail_text(l, now, SNIB_EUNREACHABLE, "the server did not answer in time");
        else if (now >= heartbeat_at(l))
                heartbeat(l, now);
}

snib__ns snib__link_deadline(const struct link *l, bool wanted)
{
        const struct request *q = oldest(l);

        if (l->broken || l->more)
                return 0;
        if (l->state == LINK_IDLE)
                return wanted ? l->retry_at : SNIB__NEVER;
        if (l->state != LINK_READY)
                return l->deadline;
        return q ? q->deadline : heartbeat_at(l);
}

bool snib__link_kept(const struct link *l)
{
        return l->out_sent < l->out_length && !l->blocked && !l->broken;
}

int snib__link_interest(const struct link *l, short *ret_events)
{
        return l->conn ? l->redis->transport->interest(l->conn, l->out_sent < l->out_length && l->blocked, ret_events)
                       : -1;
}

static void connect_further(struct link *l, bool wanted, snib__ns now)
{
        if (l->state == LINK_IDLE && wanted && now >= l->retry_at)
                dial(l, now);
        if (l->state == LINK_DIALING) {
                l->changes++; /* one address after the other */
                dialed(l, now);
        }
}

void snib__link_process(struct link *l, bool wanted, short revents, snib__ns now)
{
        if (l->state == LINK_IDLE || l->state == LINK_DIALING)
                connect_further(l, wanted, now);
        if (l->state != LINK_HANDSHAKE && l->state != LINK_READY)
                return;
        snib__link_flush(l);
        /* A broken connection too: what the server said last may be the reason. And before a
         * deadline ends it: after a pause of this process the answer may have been here for
         * long. */
        if (revents || l->more || l->broken || now >= snib__link_deadline(l, true))
                receive(l, revents > 0, now);
        if (l->conn && l->broken)
                fail_text(l, now, SNIB_EUNREACHABLE, "the connection to the server broke");
        if (l->conn)
                check_time(l, now);
        if (l->conn)
                snib__link_flush(l);
}
