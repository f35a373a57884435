/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection to the server: how hands are shaken over a link, commands written, replies read.
 * It matches replies with requests by their order and knows nothing of what they mean. When to
 * dial, to give up and to try again is the link's (engine/net/link.h). Invariants: requests are
 * answered in the order in which they were sent; anything that is not understood closes the
 * connection, so that no reply is ever given to a wrong request.
 */

#include "base/assert.h"
#include "base/decimal.h"
#include "base/error.h"
#include "engine/redis/internal.h"
#include <stdio.h>
#include <string.h>

static struct link *link_of(struct snib__link *l)
{
        return snib__container(l, struct link, net);
}

static const char *role_name(const struct link *l)
{
        return l->net.config.role == SNIB__REDIS_COMMANDS ? "commands" : "subscriptions";
}

/* ---- out */

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
bool snib__command_begin(struct link *l, struct writing *ret, int argc, size_t texts)
{
        char *at = snib__link_room(&l->net, HEAD_MAX + (size_t)argc * (HEAD_MAX + 2) + texts);

        if (!at)
                return false;
        ret->at = put_head(at, '*', (size_t)argc);
        ret->left = argc;
        return true;
}

char *snib__command_place(struct writing *w, size_t length)
{
        char *at = put_head(w->at, '$', length), *end = at + length;

        *end++ = '\r';
        *end++ = '\n';
        w->at = end;
        w->left--;
        return at;
}

void snib__command_put(struct writing *w, const char *text, size_t length)
{
        memcpy(snib__command_place(w, length), text, length);
}

void snib__command_put_number(struct writing *w, int64_t number)
{
        char text[1 + SNIB__DECIMAL_MAX] = "-";
        size_t minus = number < 0;

        snib__command_put(w, text, minus + snib__decimal(text + minus, minus ? -(uint64_t)number : (uint64_t)number));
}

void snib__command_end(struct link *l, const struct writing *w, struct request *q, snib__ns now)
{
        snib__assert(w->left == 0);
        snib__link_send(&l->net, w->at, &q->flight, now);
}

bool snib__command_send(struct link *l, struct request *q, int argc, const char **argv, const size_t *length,
                        snib__ns now)
{
        struct writing w;
        size_t texts = 0;

        for (int i = 0; i < argc; i++)
                texts += length[i];
        if (!snib__command_begin(l, &w, argc, texts))
                return false;
        for (int i = 0; i < argc; i++)
                snib__command_put(&w, argv[i], length[i]);
        snib__command_end(l, &w, q, now);
        return true;
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
        if (snib__command_send(l, q, argc, argv, length, now))
                return true;
        snib__redis_request_free(l->redis, q);
        return false;
}

/* AUTH and SELECT as needed, and always PING: what a server that is loading, full or protected
 * answers to it is worth knowing at once. HELLO says what the server is; it comes before SELECT,
 * which a cluster has not. All in one round trip. */
static void shake_hands(struct snib__link *net, snib__ns now)
{
        struct link *l = link_of(net);
        struct redis_config *c = &l->redis->config;
        struct snib_error why = SNIB_ERROR_INIT;
        char db[16];
        bool done = (l->resp = snib__resp_new()) != NULL;

        if (done && snib__redis_password(c, &why) < 0) {
                snib__link_fail_error(net, &why, now);
                return;
        }
        if (done && c->has_password && c->user[0])
                done = handshake_command(l, 3, (const char *[]){"AUTH", c->user, c->password}, now);
        else if (done && c->has_password)
                done = handshake_command(l, 2, (const char *[]){"AUTH", c->password}, now);
        if (done && net->config.role == SNIB__REDIS_COMMANDS)
                done = handshake_command(l, 2, (const char *[]){"HELLO", "2"}, now);
        snprintf(db, sizeof(db), "%d", c->db);
        if (done && c->db)
                done = handshake_command(l, 2, (const char *[]){"SELECT", db}, now);
        if (done)
                done = handshake_command(l, 1, (const char *[]){"PING"}, now);
        if (!done)
                snib__link_fail(net, now, SNIB_ENOMEM, "out of memory for a connection");
}

/* ---- in */

static void handshake_refused(struct link *l, const struct request *q, const char *text, snib__ns now)
{
        const struct refusal *row = snib__refusal_find(text);
        int code = row->prefix[0] ? row->code : strcmp(q->handshake, "AUTH") ? SNIB_EREFUSED : SNIB_EAUTH;

        snib__link_fail(&l->net, now, code, "the server answered \"%.120s\" to %s; %s", text, q->handshake,
                        code == SNIB_EAUTH ? "check user and password" : row->advice);
}

/* What is no single server. False: the connection has been closed. */
static bool check_mode(struct link *l, const char *mode, snib__ns now)
{
        if (!strncmp(mode, "cluster", 7))
                snib__link_fail(
                    &l->net, now, SNIB_EUNSUPPORTED,
                    "the server is a node of a cluster, where locks of other nodes cannot be had and Java "
                    "clients would not be woken; use a server that is not in cluster mode: this build has no "
                    "redis+cluster:// yet");
        else if (!strncmp(mode, "sentinel", 8))
                snib__link_fail(
                    &l->net, now, SNIB_EUNSUPPORTED,
                    "the server is a Sentinel, which keeps no locks; give the address of the server that it "
                    "watches: this build has no redis+sentinel:// yet");
        return l->net.conn != NULL;
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
                        snib__link_fail(&l->net, now, SNIB_ENOMEM, "out of memory for a connection");
                return l->net.conn != NULL;
        }
        if (v->type != SNIB__RESP_ARRAY)
                snib__link_fail(&l->net, now, SNIB_EPROTOCOL,
                                "the server's answer to HELLO makes no sense; is it a Redis?");
        for (size_t i = 1; l->net.conn && i + 1 < count && v[i + 1].type != SNIB__RESP_ARRAY; i += 2) {
                if (is_string(l, &v[i], "version"))
                        set_version(l->redis, snib__resp_text(l->resp, &v[i + 1]));
                else if (is_string(l, &v[i], "mode") && !check_mode(l, snib__resp_text(l->resp, &v[i + 1]), now))
                        return false;
        }
        return l->net.conn != NULL;
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
                snib__link_fail(&l->net, now, SNIB_EPROTOCOL,
                                "the server's answer to %s makes no sense; is it a Redis?", q->handshake);
                return;
        }
        if (snib__list_empty(&l->net.in_flight)) {
                snib__link_ready(&l->net, now);
                memset(l->by_text, 1, sizeof(l->by_text));
                snib__redis_trace(l->redis, "redis: %s: connected", role_name(l));
                snib__redis_link_up(l, now);
        }
}

static bool is_message(const struct link *l, const struct snib__resp_value *v, size_t count)
{
        return l->net.config.role == SNIB__REDIS_SUBSCRIPTIONS && count == 4 && v[0].type == SNIB__RESP_ARRAY &&
               v[1].type == SNIB__RESP_STRING && !strcmp(snib__resp_text(l->resp, &v[1]), "message");
}

/* One reply. False: the connection has been closed. */
static bool take(struct link *l, const struct snib__resp_value *values, size_t count, snib__ns now)
{
        struct snib__flight *first;
        struct request *q;
        const char *why = "it answered what nobody asked for";

        if (is_message(l, values, count)) {
                if (!snib__watch_message(l->redis, values, count))
                        snib__link_fail(&l->net, now, SNIB_EPROTOCOL,
                                        "the server makes no sense: a message that nobody subscribed to");
                return l->net.conn != NULL;
        }
        first = snib__link_landed(&l->net);
        if (first) {
                q = snib__container(first, struct request, flight);
                if (q->kind == REQUEST_HANDSHAKE) {
                        handshake_reply(l, q, values, count, now);
                        snib__redis_request_free(l->redis, q);
                        return l->net.conn != NULL;
                }
                why = "its answer does not fit the question";
                if (snib__redis_reply(l->redis, q, values, count, now, &why))
                        return true;
                snib__redis_orphan(l->redis, q, true, why);
        } else if (values->type == SNIB__RESP_ERROR) {
                /* Sent before a server hangs up: too many clients, protected mode. */
                const struct refusal *row = snib__refusal_find(snib__resp_text(l->resp, values));
                snib__link_fail(&l->net, now, row->code, "the server says \"%.120s\"; %s",
                                snib__resp_text(l->resp, values), row->advice);
                return false;
        }
        snib__link_fail(&l->net, now, SNIB_EPROTOCOL, "the server makes no sense: %s", why);
        return false;
}

/* All complete replies. */
static bool received(struct snib__link *net, const char *bytes, size_t length, snib__ns now)
{
        struct link *l = link_of(net);
        const struct snib__resp_value *values;
        size_t count;
        int n;

        if (!snib__resp_feed(l->resp, bytes, length)) {
                snib__link_fail(net, now, SNIB_ENOMEM, "out of memory for a reply");
                return false;
        }
        while ((n = snib__resp_next(l->resp, &values, &count)) > 0)
                if (!take(l, values, count, now))
                        return false;
        if (n < 0)
                snib__link_fail(net, now, snib__resp_no_memory(l->resp) ? SNIB_ENOMEM : SNIB_EPROTOCOL,
                                "the server makes no sense: %s", snib__resp_error(l->resp));
        return n == 0;
}

static void ping(struct snib__link *net, snib__ns now)
{
        struct link *l = link_of(net);
        struct request *q = snib__redis_request(l->redis, REQUEST_PING, now);

        if (q && !snib__command_send(l, q, 1, (const char *[]){"PING"}, (const size_t[]){4}, now))
                snib__redis_request_free(l->redis, q);
}

/* ---- up and down */

static void lost(struct snib__link *net, struct snib__flight *f, bool sent, const char *why)
{
        snib__redis_orphan(link_of(net)->redis, snib__container(f, struct request, flight), sent, why);
}

static void down(struct snib__link *net, const struct snib_error *why, snib__ns now)
{
        struct link *l = link_of(net);

        snib__redis_trace(l->redis, "redis: %s: %s", role_name(l), why->text);
        snib__resp_free(l->resp);
        l->resp = NULL;
        snib__redis_link_down(l, why);
}

void snib__redis_link_init(struct link *l, struct redis *r, enum snib__redis_role role, snib__ns now)
{
        static const struct snib__link_ops ops = {
            .greet = shake_hands, .received = received, .silent = ping, .lost = lost, .down = down};
        const struct snib__link_config config = {.ops = &ops,
                                                 .transport = r->transport,
                                                 .transport_arg = r->transport_arg,
                                                 .address = &r->config.address,
                                                 .role = role,
                                                 .connect_timeout = r->config.connect_timeout,
                                                 .timeout = r->config.timeout,
                                                 .prng = &r->prng};

        l->redis = r;
        snib__link_init(&l->net, &config, now);
}

void snib__redis_link_done(struct link *l)
{
        snib__link_done(&l->net);
        snib__resp_free(l->resp);
        l->resp = NULL;
}
