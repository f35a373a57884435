/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests about one object: which script with which arguments, by the row of its kind and verb;
 * the way of the answer to the row's decoder. A script goes by its SHA-1, and by its text the first
 * time on a connection and after NOSCRIPT. Every answer has one of a few fixed shapes; any other is
 * nonsense and ends the connection.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "base/error.h"
#include "engine/redis/internal.h"
#include "model/record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct snib__redis_script *snib__redis_scripts = snib__redis_scripts_built_in;

const struct row *snib__op_row(const struct snib__op *op)
{
        const struct row *row = NULL;

        if (op->kind == SNIB_KIND_ANY && op->verb == SNIB__QUERY)
                row = &snib__any_row;
        else if (!snib__kind_refusal(op->kind, op->verb, true) && !(row = snib__lock_row(op->kind, op->verb)))
                row = snib__count_row(op->kind, op->verb);
        if (snib__family_of(op->kind) == SNIB__FAMILY_PERMITS && op->verb == SNIB__RELEASE && op->permits)
                row = &snib__release_ids_row;
        return row;
}

static bool reserve(struct request *q, size_t length)
{
        char *grown;

        if (q->bytes_room >= length)
                return true;
        grown = snib__grow(q->bytes, length);
        if (!grown)
                return false;
        q->bytes = grown;
        q->bytes_room = length;
        return true;
}

bool snib__op_keep(struct request *q, const struct snib__op *op)
{
        size_t ids = snib__count_ids_length(op), length = ids ? ids : op->data_length;
        char *data;

        if (!reserve(q, op->name.length + 1 + length))
                return false;
        memcpy(q->bytes, op->name.bytes, op->name.length);
        q->bytes[op->name.length] = 0;
        data = q->bytes + op->name.length + 1;
        if (ids && !snib__count_ids(op, data))
                length = 0; /* no such permit can be */
        else if (!ids && length)
                memcpy(data, op->data, length);
        q->op = *op;
        q->op.name.bytes = q->bytes;
        q->op.data = data;
        q->op.data_length = length;
        q->op.permits = NULL;
        return true;
}

bool snib__op_keep_answer(struct request *q, const void *data, size_t length)
{
        if (!reserve(q, q->op.name.length + 1 + length))
                return false;
        q->op.name.bytes = q->bytes;
        q->reply.data = memcpy(q->bytes + q->op.name.length + 1, data, length);
        q->reply.data_length = length;
        return true;
}

/* ---- requests */

/* One command that is being written; `made` is room for the argument that is made up for it. */
struct command {
        struct writing to;
        char *made;
        bool braced; /* the object's tag is its name in braces */
};

static struct command command_of(struct redis *r, const struct request *q)
{
        return (struct command){.made = r->scratch, .braced = snib__name_braced(NAME_TAG, q->op.name)};
}

static void put(struct command *c, const char *text, size_t length)
{
        snib__command_put(&c->to, text, length);
}

static void put_text(struct command *c, const char *text)
{
        put(c, text, strlen(text));
}

static void put_number(struct command *c, int64_t number)
{
        snib__command_put_number(&c->to, number);
}

static void put_name(struct command *c, enum redis_name which, struct snib__name name)
{
        snib__name_put(which, name, c->braced, snib__command_place(&c->to, snib__name_length(which, name, c->braced)));
}

/* Only who would hear of a grant is to stand in the queue. The first question leaves nothing there
 * to take back. */
static int64_t question_number(const struct redis *r, const struct request *q)
{
        int64_t number = q->tag.attempt;

        if (q->op.enqueue && snib__watch_hears_grants(r))
                return number;
        return number > 1 ? -number : 0;
}

static void put_question(struct command *c, int64_t number, bool settled)
{
        size_t length = number > 0 ? snib__decimal(c->made, (uint64_t)number) : 0;

        if (number <= 0) {
                put_number(c, number);
        } else {
                c->made[length] = '+';
                put(c, c->made, length + !settled);
        }
}

/* Redisson counts the holds of a reader; ours have an id each, and number 1. */
static void put_hold_key(struct command *c, const struct snib__op *op)
{
        static const char suffix[] = ":rwlock_timeout:1";
        size_t length = snib__name_write_id(NAME_HOLD, op->name, &op->id, c->made);

        memcpy(c->made + length, suffix, sizeof(suffix) - 1);
        put(c, c->made, length + sizeof(suffix) - 1);
}

static void put_one(struct command *c, const struct redis *r, const struct request *q, enum put what)
{
        const struct snib__op *op = &q->op;

        switch (what) {
        case PUT_NAME:
                put(c, op->name.bytes, op->name.length);
                break;
        case PUT_VERB:
                put_number(c, op->verb);
                break;
        case PUT_ID:
                put_text(c, op->id.text);
                break;
        case PUT_UNDER:
                put_text(c, op->under.text);
                break;
        case PUT_LEASE:
                put_number(c, op->lease_ms);
                break;
        case PUT_TOKEN:
                put_number(c, op->token);
                break;
        case PUT_LAST_TOKEN:
                put_number(c, op->token > 0 ? op->token + snib__kind(op->kind)->tokens - 1 : 0);
                break;
        case PUT_TOKENS:
                put_number(c, snib__kind(op->kind)->tokens);
                break;
        case PUT_N:
                put_number(c, op->n);
                break;
        case PUT_TTL:
                put_number(c, op->ttl_ms);
                break;
        case PUT_EXPECTED:
                put_number(c, op->expected);
                break;
        case PUT_KIND:
                put_number(c, op->kind);
                break;
        case PUT_WAITER_LEASE:
                put_number(c, SNIB__WAITER_LEASE_MS);
                break;
        case PUT_ENQUEUE:
                put_text(c, op->enqueue ? "1" : "0");
                break;
        case PUT_QUESTION:
                put_question(c, question_number(r, q), op->settled);
                break;
        case PUT_STREAK:
                put_number(c, op->settled ? op->streak + 1 : 0);
                break;
        case PUT_IF_EXISTS:
                put_text(c, op->if_exists ? "1" : "0");
                break;
        case PUT_DATA:
                put(c, op->data, op->data_length);
                break;
        case PUT_REQUEST_KEY:
                put(c, c->made, snib__name_write_id(NAME_REQUEST, op->name, &op->id, c->made));
                break;
        case PUT_HOLD_KEY:
                put_hold_key(c, op);
                break;
        case PUT_DONE_MS:
                put_number(c, SNIB__DONE_MS);
                break;
        case PUT_REPEATED:
                put_text(c, q->tag.attempt > 1 ? "1" : "0");
                break;
        default:
                put_name(c, (enum redis_name)what, op->name);
                break;
        }
}

/* Room for `count` arguments that put_one() puts, each made of the name and less than what may
 * stand around it, or what the request carries. */
static size_t room_of(const struct request *q, int count)
{
        return (size_t)count * (q->op.name.length + SNIB__DERIVED_MAX - SNIB_NAME_MAX) + q->op.data_length;
}

/* How many listen to the channels on which waiters of this kind wait, in a request of its own
 * before that of the QUERY, so that its reply is there first. Without it the answer is only
 * poorer. */
static void send_waiters(struct redis *r, struct request *q, snib__ns now)
{
        int first = q->op.kind == SNIB_KIND_ANY ? NAME_LOCK_CHANNEL : (int)snib__name_channel(q->op.kind);
        int last = q->op.kind == SNIB_KIND_ANY ? NAME_LISTENING - 1 : first, count = last - first + 2;
        struct request *part = snib__redis_request(r, REQUEST_WAITERS, now);
        struct command c = command_of(r, q);

        if (!part)
                return;
        part->parent = q;
        if (!snib__command_begin(&r->commands, &c.to, 2 + count, 12 + room_of(q, count))) {
                snib__redis_request_free(r, part);
                return;
        }
        put(&c, "PUBSUB", 6);
        put(&c, "NUMSUB", 6);
        for (int form = first; form <= last; form++)
                put_one(&c, r, q, (enum put)form);
        put_one(&c, r, q,
                (enum put)NAME_LISTENING); /* the last: whoever listens there too stands in a queue if it waits */
        snib__command_end(&r->commands, &c.to, part, now);
}

static int puts_of(const struct row *row)
{
        int count = 0;

        while (count < SNIB__REDIS_PUTS_MAX && row->puts[count])
                count++;
        return count;
}

/* EVALSHA or EVAL, the script, how many keys, and what the row says. */
static bool write_op(struct redis *r, struct request *q, snib__ns now)
{
        const struct snib__redis_script *s = &snib__redis_scripts[q->row->script];
        struct command c = command_of(r, q);
        char keys[1] = {(char)('0' + q->row->keys)};
        int count = puts_of(q->row);
        size_t script = q->by_text ? s->length : 40;

        snib__assert(q->row->keys < 10);
        if (!snib__command_begin(&r->commands, &c.to, 3 + count, 7 + script + 1 + room_of(q, count)))
                return false;
        put(&c, q->by_text ? "EVAL" : "EVALSHA", q->by_text ? 4 : 7);
        put(&c, q->by_text ? s->text : s->sha1, script);
        put(&c, keys, 1);
        for (int i = 0; i < count; i++)
                put_one(&c, r, q, (enum put)q->row->puts[i]);
        snib__command_end(&r->commands, &c.to, q, now);
        return true;
}

bool snib__op_send(struct redis *r, struct request *q, snib__ns now)
{
        if (q->op.name.length > SNIB_NAME_MAX)
                return false;
        if (q->op.verb == SNIB__QUERY && q->kind == REQUEST_OP)
                send_waiters(r, q, now);
        if (q->op.verb == SNIB__ACQUIRE && !snib__kind(q->op.kind)->momentary)
                snib__who_used(r, now); /* before it: whoever is told of the new holder finds who it is */
        q->by_text = r->commands.by_text[q->row->script];
        return write_op(r, q, now);
}

/* ---- answers */

const char snib__redis_no_room[] = "no room to send a request: the server does not read";
const char snib__redis_forgotten[] = "the server has forgotten the scripts; try again";
const char snib__redis_unknown_script[] = "the server does not know a script that was just sent; is it a proxy?";

bool snib__op_overtaken(const struct redis *r, struct snib__name name)
{
        snib__list_each (it, &r->commands.net.in_flight) {
                const struct request *later = snib__container(it, struct request, flight.link);
                struct snib__name other = later->op.name;

                if (later->kind == REQUEST_OP && other.length == name.length &&
                    !memcmp(other.bytes, name.bytes, name.length))
                        return true;
                if (later->kind == REQUEST_RENEWALS && snib__renewals_include(later, name))
                        return true;
        }
        return false;
}

/* The server does not know the script (restart, SCRIPT FLUSH, fail-over): once more, with its
 * text. */
static void send_text(struct redis *r, struct request *q, snib__ns now)
{
        r->commands.by_text[q->row->script] = true;
        if (q->by_text)
                snib__redis_fail(r, q, SNIB_EREFUSED, "%s", snib__redis_unknown_script);
        else if (snib__op_overtaken(r, q->op.name))
                snib__redis_fail(r, q, SNIB_ENOTREADY, "%s", snib__redis_forgotten);
        else if (!snib__op_send(r, q, now))
                snib__redis_fail(r, q, SNIB_EUNREACHABLE, "the connection to the server broke");
}

/* Patterns for the keys of a request: those whose names are made of ids end in '*'. */
static void key_patterns(const struct request *q, char *ret, size_t size)
{
        struct snib__name name = q->op.name;
        size_t at = 0;

        ret[0] = 0;
        for (int i = 0; i < q->row->keys && at < size; i++) {
                int which = q->row->puts[i];
                char key[SNIB__DERIVED_MAX] = "";

                if (which < NAMES)
                        key[snib__name_write((enum redis_name)which, name, key)] = 0;
                else if (which == PUT_REQUEST_KEY || which == PUT_HOLD_KEY)
                        key[snib__name_write(which == PUT_HOLD_KEY ? NAME_HOLD : NAME_REQUEST, name, key)] = '*';
                at += (size_t)snprintf(ret + at, size - at, "%s~%s", i ? " " : "", key[0] ? key : name.bytes);
        }
        if (q->row->script == SNIB__SCRIPT_RW && q->row->keys == 1 && at < size) { /* a writer looks at the readers' */
                char key[SNIB__DERIVED_MAX] = "";

                key[snib__name_write(NAME_HOLD, name, key)] = '*';
                (void)snprintf(ret + at, size - at, " ~%s", key);
        }
}

/* The user lacks a right: which one. False: the server says it, or nobody does. */
static bool no_right(struct redis *r, struct request *q, const char *text)
{
        const struct snib__redis_script *s = &snib__redis_scripts[q->row->script];
        char right[SNIB_ERROR_TEXT_MAX];

        if (snib__refusal_command(text, s->text, right, sizeof(right))) {
                snib__redis_fail(r, q, SNIB_EPERM, "the server does not let this user run %.60s; grant +%.60s", right,
                                 right);
                return true;
        }
        if (!strstr(text, " key"))
                return false;
        key_patterns(q, right, sizeof(right));
        snib__redis_fail(r, q, SNIB_EPERM, "the server does not let this user use its keys; grant %.200s", right);
        return true;
}

/* What an error says, without where in a script of ours it was met, which is no use to anybody:
 * "WORDS script: SHA1, on @user_script:12." */
static void said(const char *text, char *ret, size_t size)
{
        const char *begin = snib__refusal_text(text), *end = strstr(begin, " script: ");
        size_t n = end ? (size_t)(end - begin) : strlen(begin);

        while (n && (begin[n - 1] == '.' || begin[n - 1] == ',' || begin[n - 1] == ' '))
                n--;
        snprintf(ret, size, "%.*s", (int)n, begin);
}

void snib__op_refused(struct redis *r, struct request *q, const char *text, snib__ns now)
{
        const struct refusal *row = snib__refusal_find(text);
        char words[91];

        if (!strncmp(text, "NOSCRIPT ", 9)) {
                send_text(r, q, now);
                return;
        }
        r->commands.net.broken |= row->close;
        if (row->code == SNIB_EPERM && no_right(r, q, text))
                return;
        said(text, words, sizeof(words));
        snib__redis_fail(r, q, row->code, "the server answered \"%s\"; %s", words, row->advice);
}

bool snib__op_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now,
                    const char **ret_why)
{
        *ret_why = "a script's answer has the wrong shape";
        if (v->type == SNIB__RESP_ERROR) {
                snib__op_refused(r, q, snib__decode_text(r, v), now);
                return true;
        }
        if (v->type != SNIB__RESP_ARRAY || count < 2 || v->elements != count - 1 || v[1].type != SNIB__RESP_INTEGER)
                return false;
        r->commands.by_text[q->row->script] = false;
        return q->row->decode(r, q, v, count, now);
}

/* {channel, number, channel, number, ...}. A refusal (rights) leaves it unknown. */
bool snib__op_waiters_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        struct snib__reply *p = &q->parent->reply;
        int64_t sum = 0;

        if (v->type == SNIB__RESP_ERROR) {
                r->commands.net.broken |= snib__refusal_find(snib__decode_text(r, v))->close;
                snib__redis_request_free(r, q);
                return true;
        }
        if (v->type != SNIB__RESP_ARRAY || count < 3 || count % 2 == 0 || v->elements != count - 1)
                return false;
        for (size_t i = 1; i < count; i += 2) {
                if (v[i].type != SNIB__RESP_STRING || v[i + 1].type != SNIB__RESP_INTEGER || v[i + 1].integer < 0 ||
                    __builtin_add_overflow(sum, i + 2 < count ? v[i + 1].integer : -v[i + 1].integer, &sum))
                        return false;
        }
        p->waiters = sum < 0 ? 0 : sum;
        p->waiters_at_least = true;
        snib__redis_request_free(r, q);
        return true;
}
