/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Renewals that are asked for together go to the server together: one script for up to a hundred
 * holds. Here is how they are gathered, sent and answered; what each of them means is lock.c's. The
 * batch has one answer for all, and next() tells it to each; only a hold to which something else
 * happened becomes a request of its own, with its own answer. Invariants: every renewal of a batch
 * is told once; what was gathered leaves before any other request about an object, and at the
 * latest with the next flush() or process(), so that the order of requests is kept.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "engine/redis/internal.h"
#include <string.h>

struct batch {
        struct request request; /* `bytes` are names and ids; `reply` is of all that are not apart */
        bool leases_differ;
        size_t length; /* of the bytes */
        size_t count;
        size_t next; /* the first that is not told yet */
        struct renewal {
                struct snib__tag tag;
                int64_t lease_ms;
                size_t text; /* where its name begins; behind it a NUL, the id, a NUL */
                uint16_t name_length;
                uint8_t id_length;
                uint8_t kind;
                bool apart;  /* it has become a request of its own */
                bool unsaid; /* it should have, and there was no memory for that */
        } of[SNIB__REDIS_RENEWALS_MAX];
};

static struct batch *batch_of(struct request *q)
{
        return snib__container(q, struct batch, request);
}

static struct batch *batch_new(struct redis *r)
{
        struct snib__list *first = snib__list_take(&r->free_batches);
        struct batch *b =
            first ? batch_of(snib__container(first, struct request, letter.link)) : snib__alloc(sizeof(*b));

        _Static_assert(offsetof(struct batch, request) == 0, "it is freed as a request");
        if (!b)
                return NULL;
        snib__redis_request_trim(&b->request);
        b->request.kind = REQUEST_RENEWALS;
        b->request.reply =
            (struct snib__reply){.status = SNIB__RENEWED, .left_ms = -1, .waiters = -1, .value = -1, .limit = -1};
        b->leases_differ = false;
        b->length = b->count = b->next = 0;
        return b;
}

static struct snib__name name_of(const struct batch *b, const struct renewal *n)
{
        return (struct snib__name){b->request.bytes + n->text, n->name_length};
}

static const char *id_of(const struct batch *b, const struct renewal *n)
{
        return b->request.bytes + n->text + n->name_length + 1;
}

/* Room for so many more bytes. */
static bool reserve(struct batch *b, size_t length)
{
        struct request *q = &b->request;
        size_t room = q->bytes_room ? q->bytes_room : 4096;
        char *grown;

        while (room < b->length + length)
                room *= 2;
        if (room == q->bytes_room)
                return true;
        grown = snib__grow(q->bytes, room);
        if (!grown)
                return false;
        q->bytes = grown;
        q->bytes_room = room;
        return true;
}

static bool put(struct batch *b, struct snib__tag tag, const struct snib__op *op)
{
        size_t id_length = strlen(op->id.text);
        char *at;

        _Static_assert(SNIB_NAME_MAX <= UINT16_MAX && SNIB__ID_MAX <= UINT8_MAX, "they fit the record");
        if (!reserve(b, op->name.length + 1 + id_length + 1))
                return false;
        b->leases_differ |= b->count > 0 && op->lease_ms != b->of[0].lease_ms;
        b->of[b->count++] = (struct renewal){.tag = tag,
                                             .lease_ms = op->lease_ms,
                                             .text = b->length,
                                             .name_length = (uint16_t)op->name.length,
                                             .id_length = (uint8_t)id_length,
                                             .kind = (uint8_t)op->kind};
        at = b->request.bytes + b->length;
        memcpy(at, op->name.bytes, op->name.length);
        at[op->name.length] = 0;
        memcpy(at + op->name.length + 1, op->id.text, id_length + 1);
        b->length += op->name.length + 1 + id_length + 1;
        return true;
}

bool snib__renewals_add(struct redis *r, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        if (!r->renewals)
                r->renewals = batch_new(r);
        if (!r->renewals || !put(r->renewals, tag, op))
                return false;
        r->renewals_at = now;
        if (r->renewals->count == SNIB__REDIS_RENEWALS_MAX)
                snib__renewals_send(r, now);
        return true;
}

/* One command for all. */
static bool send_many(struct redis *r, struct batch *b, snib__ns now)
{
        const struct snib__redis_script *s = &snib__redis_scripts[SNIB__SCRIPT_RENEW_MANY];
        size_t leases = b->leases_differ ? b->count : 1;
        bool by_text = r->commands.by_text[SNIB__SCRIPT_RENEW_MANY];
        size_t script = by_text ? s->length : 40;
        struct writing w;

        if (!snib__command_begin(&r->commands, &w, (int)(3 + 2 * b->count + leases),
                                 7 + script + b->length + (1 + leases) * SNIB__DECIMAL_MAX))
                return false;
        snib__command_put(&w, by_text ? "EVAL" : "EVALSHA", by_text ? 4 : 7);
        snib__command_put(&w, by_text ? s->text : s->sha1, script);
        snib__command_put_number(&w, (int64_t)b->count);
        for (const struct renewal *n = b->of; n < b->of + b->count; n++)
                snib__command_put(&w, name_of(b, n).bytes, n->name_length);
        for (const struct renewal *n = b->of; n < b->of + b->count; n++)
                snib__command_put(&w, id_of(b, n), n->id_length);
        for (const struct renewal *n = b->of; n < b->of + leases; n++)
                snib__command_put_number(&w, n->lease_ms);
        b->request.by_text = by_text;
        snib__command_end(&r->commands, &w, &b->request, now);
        return true;
}

/* A request of its own for one of a batch; NULL: memory is short, and the batch tells it so. */
static struct request *set_apart(struct redis *r, struct batch *b, struct renewal *n, snib__ns now)
{
        struct snib__op op = {
            .verb = SNIB__RENEW, .kind = n->kind, .name = name_of(b, n), .lease_ms = n->lease_ms, .n = 1};

        struct request *q;

        memcpy(op.id.text, id_of(b, n), n->id_length);
        q = snib__redis_op(r, n->tag, &op, now);
        n->apart = q;
        n->unsaid = !q;
        return q;
}

static void send_one(struct redis *r, struct batch *b, snib__ns now)
{
        struct request *q = set_apart(r, b, b->of, now);

        if (q && !snib__op_send(r, q, now))
                snib__redis_fail(r, q, SNIB_EUNREACHABLE, "%s", snib__redis_no_room);
}

void snib__renewals_free(struct redis *r, struct request *q)
{
        snib__list_append(r->free_batches.next, &q->letter.link);
}

/* Some are not apart; `next` is the first of them. */
static bool any_left(struct batch *b)
{
        while (b->next < b->count && b->of[b->next].apart)
                b->next++;
        return b->next < b->count;
}

bool snib__renewals_next(struct request *q, struct snib__note *ret)
{
        struct batch *b = batch_of(q);

        const struct renewal *n = &b->of[b->next++];

        ret->tag = n->tag;
        if (n->unsaid)
                ret->reply = snib__reply_failed(n->kind, &snib__reply_no_memory);
        ret->reply.kind = n->kind;
        return any_left(b);
}

/* Those that are not apart are answered with the batch's reply, if they are not yet. */
static void settle(struct redis *r, struct batch *b)
{
        if (any_left(b))
                snib__redis_complete(r, &b->request);
        else
                snib__renewals_free(r, &b->request);
}

void snib__renewals_orphan(struct redis *r, struct request *q, bool sent, const char *why)
{
        if (any_left(batch_of(q)))
                snib__redis_fail(r, q, sent ? SNIB_EUNKNOWN : SNIB_EUNREACHABLE, "%s", why);
        else
                snib__renewals_free(r, q);
}

void snib__renewals_send(struct redis *r, snib__ns now)
{
        struct batch *b = r->renewals;

        r->renewals = NULL;
        if (b && b->count == 1)
                send_one(r, b, now);
        if (b && (b->count <= 1 || !send_many(r, b, now)))
                snib__renewals_orphan(r, &b->request, false, snib__redis_no_room);
}

/* The server does not know the script: once more, with its text, but for those that are
 * overtaken. */
static void send_text(struct redis *r, struct batch *b, snib__ns now)
{
        r->commands.by_text[SNIB__SCRIPT_RENEW_MANY] = true;
        snib__assert(!r->renewals);
        for (struct renewal *n = b->of; n < b->of + b->count; n++) {
                struct request *q = set_apart(r, b, n, now);

                if (q && snib__op_overtaken(r, q->op.name)) {
                        snib__redis_fail(r, q, SNIB_ENOTREADY, "%s", snib__redis_forgotten);
                } else if (q && !snib__renewals_add(r, q->tag, &q->op, now)) {
                        snib__redis_fail(r, q, SNIB_ENOMEM, "out of memory");
                } else if (q) {
                        snib__redis_request_free(r, q);
                }
        }
        snib__renewals_send(r, now);
}

/* One refusal for all: each is told it with its own name. */
static void refused(struct redis *r, struct batch *b, const char *text, snib__ns now)
{
        for (struct renewal *n = b->of; n < b->of + b->count; n++) {
                struct request *q = set_apart(r, b, n, now);

                if (q)
                        snib__op_refused(r, q, text, now);
        }
}

static void answer_error(struct redis *r, struct batch *b, const char *text, snib__ns now)
{
        if (strncmp(text, "NOSCRIPT ", 9))
                refused(r, b, text, now);
        else if (b->request.by_text)
                snib__redis_fail(r, &b->request, SNIB_EREFUSED, "%s", snib__redis_unknown_script);
        else
                send_text(r, b, now);
}

/* How many values the answer for one hold has that was not renewed; 0: it is none. */
static size_t length_of(const struct snib__resp_value *v, size_t left)
{
        if (left > 0 && v->type == SNIB__RESP_ERROR)
                return 1;
        if (left < 2 || v->type != SNIB__RESP_ARRAY || v->elements == 0 || v->elements >= left)
                return 0;
        return v[1].type == SNIB__RESP_INTEGER && (v[1].integer == 0 || v[1].integer == -1) ? 1 + v->elements : 0;
}

/* What happened to one of them. False: nonsense, and it has no answer. */
static bool take_one(struct redis *r, struct batch *b, struct renewal *n, const struct snib__resp_value *v,
                     size_t length, snib__ns now)
{
        struct request *q = length ? set_apart(r, b, n, now) : NULL;

        if (!q)
                return length > 0; /* told that memory is short */
        if (v->type == SNIB__RESP_ERROR) {
                snib__op_refused(r, q, snib__decode_text(r, v), now);
                return true;
        }
        if (q->row->decode(r, q, v, length, now))
                return true;
        n->apart = false;
        snib__redis_request_free(r, q);
        return false;
}

/* {n, i, answer, ...}: all n are renewed but for number i, and so on, in order. False: nonsense. */
static bool take_all(struct redis *r, struct batch *b, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        size_t at = 2, elements = 1;
        int64_t last = 0;

        if (v->type != SNIB__RESP_ARRAY || count < 2 || v[1].type != SNIB__RESP_INTEGER ||
            v[1].integer != (int64_t)b->count)
                return false;
        while (at < count) {
                int64_t number = v[at].type == SNIB__RESP_INTEGER ? v[at].integer : 0;
                size_t length = length_of(&v[at + 1], count - at - 1);

                if (number <= last || number > v[1].integer ||
                    !take_one(r, b, &b->of[number - 1], &v[at + 1], length, now))
                        return false;
                last = number;
                at += 1 + length;
                elements += 2;
        }
        return v->elements == elements;
}

bool snib__renewals_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count,
                          snib__ns now)
{
        struct batch *b = batch_of(q);

        if (v->type == SNIB__RESP_ERROR)
                answer_error(r, b, snib__decode_text(r, v), now);
        else if (take_all(r, b, v, count, now))
                r->commands.by_text[SNIB__SCRIPT_RENEW_MANY] = false;
        else
                return false;
        settle(r, b);
        return true;
}

bool snib__renewals_include(const struct request *q, struct snib__name name)
{
        const struct batch *b = snib__container(q, const struct batch, request);

        for (const struct renewal *n = b->of; n < b->of + b->count; n++)
                if (n->name_length == name.length && !memcmp(name_of(b, n).bytes, name.bytes, name.length))
                        return true;
        return false;
}
