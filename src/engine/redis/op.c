/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests about one lock: which script with which arguments, and what its answer means. A script goes by its SHA-1,
 * and by its text the first time on a connection and after NOSCRIPT. Every answer has one of a few fixed shapes; any
 * other is nonsense and ends the connection.
 */

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/error.h"
#include "engine/redis/internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct snib__redis_script *snib__redis_scripts = snib__redis_scripts_built_in;

#define TOKEN_PREFIX "redisson_lock_token:"

/* The arguments of one command. Texts are borrowed until it is sent. */
struct command {
        int count;
        const char *text[SNIB__REDIS_ARGS_MAX];
        size_t length[SNIB__REDIS_ARGS_MAX];
};

static void put(struct command *c, const char *text, size_t length)
{
        c->text[c->count] = text;
        c->length[c->count++] = length;
}

static void put_text(struct command *c, const char *text)
{
        put(c, text, strlen(text));
}

bool snib__op_keep_name(struct request *q, struct snib__name name)
{
        if (q->name_room < name.length + 1) {
                char *grown = snib__grow(q->name, name.length + 1);
                if (!grown)
                        return false;
                q->name = grown;
                q->name_room = name.length + 1;
        }
        memcpy(q->name, name.bytes, name.length);
        q->name[name.length] = 0;
        q->name_length = name.length;
        return true;
}

static enum snib__redis_script_id script_for(enum snib__verb verb, bool fenced)
{
        switch (verb) {
        case SNIB__ACQUIRE:
                return fenced ? SNIB__SCRIPT_ACQUIRE_FENCED : SNIB__SCRIPT_ACQUIRE;
        case SNIB__RELEASE:
                return SNIB__SCRIPT_RELEASE;
        case SNIB__RENEW:
                return SNIB__SCRIPT_RENEW;
        case SNIB__FORCE:
                return SNIB__SCRIPT_FORCE;
        default:
                return SNIB__SCRIPT_QUERY;
        }
}

/* "redisson_lock_token:{name}" */
static size_t token_key(const struct request *q, char *ret)
{
        struct snib__name name = {q->name, q->name_length};
        size_t n = sizeof(TOKEN_PREFIX) - 1;
        bool tagged = memchr(name.bytes, '{', name.length) != NULL;

        memcpy(ret, TOKEN_PREFIX, n);
        if (!tagged)
                ret[n++] = '{';
        memcpy(ret + n, name.bytes, name.length);
        n += name.length;
        if (!tagged)
                ret[n++] = '}';
        return n;
}

/* A command that adds to the answer of `q`, sent before it so that its reply is there first. Without it the answer is
 * only poorer. */
static void send_part(struct redis *r, struct request *q, enum request_kind kind, struct command *c, snib__ns now)
{
        struct request *part = snib__redis_request(r, kind, now);

        if (!part)
                return;
        part->parent = q;
        if (!snib__link_send(&r->commands, part, c->count, c->text, c->length, now))
                snib__redis_request_free(r, part);
}

static void send_parts(struct redis *r, struct request *q, size_t channel_length, snib__ns now)
{
        struct command waiters = {0}, counter = {0};

        put_text(&waiters, "PUBSUB");
        put_text(&waiters, "NUMSUB");
        put(&waiters, r->channel, channel_length);
        send_part(r, q, REQUEST_WAITERS, &waiters, now);
        if (q->object != SNIB_KIND_FENCED)
                return;
        put_text(&counter, "GET");
        put(&counter, r->token_key, token_key(q, r->token_key));
        send_part(r, q, REQUEST_TOKEN, &counter, now);
}

bool snib__op_send(struct redis *r, struct request *q, snib__ns now)
{
        char lease[SNIB__DECIMAL_MAX], known[SNIB__DECIMAL_MAX];
        size_t channel_length = 0;
        const struct snib__redis_script *s;
        struct command c = {0};

        q->script = script_for(q->verb, q->object == SNIB_KIND_FENCED);
        s = &snib__redis_scripts[q->script];
        q->by_text = r->commands.by_text[q->script];
        if (q->verb != SNIB__ACQUIRE && q->verb != SNIB__RENEW &&
            !snib__watch_channel((struct snib__name){q->name, q->name_length}, r->channel, &channel_length))
                return false;
        put_text(&c, q->by_text ? "EVAL" : "EVALSHA");
        put(&c, q->by_text ? s->text : s->sha1, q->by_text ? s->length : 40);
        put(&c, q->script == SNIB__SCRIPT_ACQUIRE_FENCED ? "2" : "1", 1);
        put(&c, q->name, q->name_length);
        if (q->script == SNIB__SCRIPT_ACQUIRE_FENCED)
                put(&c, r->token_key, token_key(q, r->token_key));
        if (q->verb == SNIB__ACQUIRE || q->verb == SNIB__RELEASE || q->verb == SNIB__RENEW)
                put_text(&c, q->id.text);
        if (q->verb == SNIB__ACQUIRE || q->verb == SNIB__RENEW)
                put(&c, lease, snib__decimal(lease, (uint64_t)q->lease_ms));
        if (q->verb == SNIB__ACQUIRE)
                put(&c, known, snib__decimal(known, (uint64_t)q->token));
        if (q->verb == SNIB__RELEASE || q->verb == SNIB__FORCE)
                put(&c, r->channel, channel_length);
        if (q->verb == SNIB__QUERY && q->kind == REQUEST_OP)
                send_parts(r, q, channel_length, now);
        return snib__link_send(&r->commands, q, c.count, c.text, c.length, now);
}

/* ---- answers */

static const char *text_of(const struct redis *r, const struct snib__resp_value *v)
{
        return snib__resp_text(r->commands.resp, v);
}

/* A number as Redis writes it: decimal, no sign, above 0. */
static bool token_of(const struct redis *r, const struct snib__resp_value *v, int64_t *ret)
{
        const char *text = v->type == SNIB__RESP_STRING ? text_of(r, v) : "";
        int64_t n = 0;

        if (v->length == 0 || v->length > 19)
                return false;
        for (size_t i = 0; i < v->length; i++)
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
                    __builtin_add_overflow(n, text[i] - '0', &n))
                        return false;
        *ret = n;
        return n > 0;
}

/* Whoever wrote the field: shown, and compared with our own ids, which are short and printable. */
static void holder_of(const struct redis *r, const struct snib__resp_value *v, struct snib__id *ret)
{
        const char *text = text_of(r, v);
        size_t n = v->length < SNIB__ID_MAX - 1 ? v->length : SNIB__ID_MAX - 1;

        for (size_t i = 0; i < n; i++)
                ret->text[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
        ret->text[n] = 0;
}

bool snib__op_decode_holder(struct redis *r, const struct snib__resp_value *v, size_t count, struct snib__reply *ret)
{
        if (count != 4 || v[2].type != SNIB__RESP_INTEGER || v[3].type != SNIB__RESP_STRING || v[2].integer < -2)
                return false;
        ret->held = v[2].integer != -2;
        ret->left_ms = v[2].integer < 0 ? -1 : v[2].integer;
        ret->holder.since_ms = -1;
        ret->holder.who.pid = -1;
        holder_of(r, &v[3], &ret->holder.id);
        return true;
}

static void wrong_kind(struct redis *r, struct request *q, bool rwlock, int64_t fields)
{
        if (rwlock)
                snib__redis_fail(r, q, SNIB_EKIND,
                                 "\"%.120s\" is a read-write lock on the server, not a plain lock: use another name",
                                 q->name);
        else
                snib__redis_fail(r, q, SNIB_EKIND,
                                 "\"%.120s\" is a hash of %" PRId64
                                 " fields on the server, not a lock: use another name, or remove the key",
                                 q->name, fields);
}

static bool no_lock(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        if (count != 4 || v[2].type != SNIB__RESP_INTEGER || v[3].type != SNIB__RESP_INTEGER)
                return false;
        wrong_kind(r, q, v[3].integer == 1, v[2].integer);
        return true;
}

static bool acquired(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        if (v[1].integer == 0) {
                if (!snib__op_decode_holder(r, v, count, &q->reply) || (!q->reply.held && q->token == 0))
                        return false;
                if (!strcmp(q->reply.holder.id.text, "mode")) {
                        wrong_kind(r, q, true, 1);
                        return true;
                }
                q->reply.status = q->token > 0 ? SNIB__GONE : SNIB__BUSY;
                if (q->reply.held && !snib__who_find(r, &q->reply.holder.id, now, &q->reply.holder.who))
                        snib__who_look_up(r, &q->reply.holder.id, now);
        } else {
                if (count != 3 || (v[1].integer != 1 && v[1].integer != 2) || !token_of(r, &v[2], &q->reply.token))
                        return false;
                /* A plain lock's token is the instant of its acquire: a confirmation knows it only from the client. */
                if (v[1].integer == 2 && q->object != SNIB_KIND_FENCED && q->token > 0)
                        q->reply.token = q->token;
                q->reply.status = SNIB__GRANTED;
        }
        snib__who_used(r, now);
        snib__redis_complete(r, q);
        return true;
}

static bool ended_or_renewed(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        if (v[1].integer == 1 && count == 2)
                q->reply.status = q->verb == SNIB__RENEW ? SNIB__RENEWED : SNIB__RELEASED;
        else if (v[1].integer == 0 && snib__op_decode_holder(r, v, count, &q->reply))
                q->reply.status = SNIB__GONE;
        else
                return false;
        snib__redis_complete(r, q);
        return true;
}

/* QUERY and FORCE: also who the holder is, by one more round trip unless it is known. */
static bool described(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;

        if ((v[1].integer != 0 && v[1].integer != 1) || !snib__op_decode_holder(r, v, count, p) ||
            p->held != (v[1].integer == 1))
                return false;
        p->status = SNIB__INFO;
        if (p->held && q->object == SNIB_KIND_FENCED && p->token >= INT64_C(1000000000000000))
                p->holder.since_ms = p->token / 1000;
        if (!p->held || snib__who_find(r, &p->holder.id, now, &p->holder.who) ||
            !snib__who_send_get(r, q, &p->holder.id, now))
                snib__redis_complete(r, q);
        else
                q->kind = REQUEST_OP_WHO;
        return true;
}

/* True if a later request about the same lock has left already: executing this one after it would turn their order
 * round. */
static bool overtaken(const struct redis *r, const struct request *q)
{
        snib__list_each (it, &r->commands.in_flight) {
                const struct request *later = snib__container(it, struct request, note.link);
                if (later->kind == REQUEST_OP && later->name_length == q->name_length &&
                    !memcmp(later->name, q->name, q->name_length))
                        return true;
        }
        return false;
}

/* The server does not know the script (restart, SCRIPT FLUSH, fail-over): once more, with its text. */
static void send_text(struct redis *r, struct request *q, snib__ns now)
{
        r->commands.by_text[q->script] = true;
        if (q->by_text)
                snib__redis_fail(r, q, SNIB_EREFUSED,
                                 "the server does not know a script that was just sent: is it a proxy?");
        else if (overtaken(r, q))
                snib__redis_fail(r, q, SNIB_ENOTREADY, "the server has forgotten the scripts: try again");
        else if (!snib__op_send(r, q, now))
                snib__redis_fail(r, q, SNIB_EUNREACHABLE, "the connection to the server broke");
}

static void refused(struct redis *r, struct request *q, const char *text, snib__ns now)
{
        const struct refusal *row = snib__refusal_find(text);

        if (!strncmp(text, "NOSCRIPT ", 9)) {
                send_text(r, q, now);
                return;
        }
        r->commands.broken |= row->close;
        snib__redis_fail(r, q, row->code, "lock \"%.80s\": the server answered \"%.90s\"; %s", q->name, text,
                         row->advice);
}

bool snib__op_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now,
                    const char **ret_why)
{
        *ret_why = "a script's answer has the wrong shape";
        if (v->type == SNIB__RESP_ERROR) {
                refused(r, q, text_of(r, v), now);
                return true;
        }
        if (v->type != SNIB__RESP_ARRAY || count < 2 || v->elements != count - 1 || v[1].type != SNIB__RESP_INTEGER)
                return false;
        r->commands.by_text[q->script] = false;
        if (v[1].integer == -1 && q->verb != SNIB__RELEASE && q->verb != SNIB__RENEW)
                return no_lock(r, q, v, count);
        switch (q->verb) {
        case SNIB__ACQUIRE:
                return acquired(r, q, v, count, now);
        case SNIB__RELEASE:
        case SNIB__RENEW:
                return ended_or_renewed(r, q, v, count);
        case SNIB__QUERY:
        case SNIB__FORCE:
                return described(r, q, v, count, now);
        default:
                return false;
        }
}

/* What a QUERY wants to know beside the script's answer. A refusal (rights) leaves it unknown. */
bool snib__op_part_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        struct snib__reply *p = &q->parent->reply;
        bool good = true;

        if (v->type == SNIB__RESP_ERROR)
                r->commands.broken |= snib__refusal_find(text_of(r, v))->close;
        else if (q->kind == REQUEST_TOKEN)
                good = count == 1 && (v->type == SNIB__RESP_NIL || token_of(r, v, &p->token));
        else if (count != 3 || v->type != SNIB__RESP_ARRAY || v[1].type != SNIB__RESP_STRING ||
                 v[2].type != SNIB__RESP_INTEGER || v[2].integer < 0)
                good = false;
        else {
                p->waiters = v[2].integer;
                p->waiters_at_least = true;
        }
        if (good)
                snib__redis_request_free(r, q);
        return good;
}
