/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Renewals that are asked for together go to the server together: one script for up to a hundred holds. Here is how
 * they are gathered, sent and answered; what each of them means is lock.c's. Every renewal stays a request of its own,
 * with its own answer. Invariant: what was gathered leaves before any other request about an object, and at the latest
 * with the next flush() or process(), so that the order of requests is kept.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "engine/redis/internal.h"
#include <string.h>

static struct request *request_of(struct snib__list *link)
{
        return snib__container(link, struct request, note.link);
}

void snib__renewals_add(struct redis *r, struct request *q, snib__ns now)
{
        r->renewals_at = now;
        snib__list_append(&r->renewals, &q->note.link);
        if (++r->renewals_count == SNIB__REDIS_RENEWALS_MAX)
                snib__renewals_send(r, now);
}

/* One command for all members of `b`. */
static bool send_many(struct redis *r, struct request *b, size_t members, snib__ns now)
{
        const struct snib__redis_script *s = &snib__redis_scripts[SNIB__SCRIPT_RENEW_MANY];
        const char *text[SNIB__REDIS_BATCH_ARGS_MAX];
        size_t length[SNIB__REDIS_BATCH_ARGS_MAX], key = 3, arg = key + members;
        char *made = r->scratch;

        _Static_assert(sizeof(r->scratch) >= (SNIB__REDIS_RENEWALS_MAX + 1) * SNIB__DECIMAL_MAX, "numbers fit");
        b->by_text = r->commands.by_text[SNIB__SCRIPT_RENEW_MANY];
        text[0] = b->by_text ? "EVAL" : "EVALSHA";
        length[0] = strlen(text[0]);
        text[1] = b->by_text ? s->text : s->sha1;
        length[1] = b->by_text ? s->length : 40;
        text[2] = made;
        length[2] = snib__decimal(made, members);
        made += length[2];
        snib__list_each (it, &b->members) {
                const struct snib__op *op = &request_of(it)->op;

                text[key] = op->name.bytes;
                length[key++] = op->name.length;
                text[arg] = op->id.text;
                length[arg++] = strlen(op->id.text);
                text[arg] = made;
                length[arg] = snib__decimal(made, (uint64_t)op->lease_ms);
                made += length[arg++];
        }
        return snib__link_send(&r->commands, b, (int)arg, text, length, now);
}

static void fail_all(struct redis *r, struct request *b, int code, const char *why)
{
        for (struct snib__list *it = snib__list_take(&b->members); it; it = snib__list_take(&b->members))
                snib__redis_fail(r, request_of(it), code, "%s", why);
}

void snib__renewals_orphan(struct redis *r, struct request *b, bool sent, const char *why)
{
        fail_all(r, b, sent ? SNIB_EUNKNOWN : SNIB_EUNREACHABLE, why);
        snib__redis_request_free(r, b);
}

static void send_one(struct redis *r, struct request *q, snib__ns now)
{
        if (!snib__op_send(r, q, now))
                snib__redis_fail(r, q, SNIB_EUNREACHABLE, "%s", snib__redis_no_room);
}

void snib__renewals_send(struct redis *r, snib__ns now)
{
        size_t members = r->renewals_count;
        struct request *b = members > 1 ? snib__redis_request(r, REQUEST_RENEWALS, now) : NULL;

        r->renewals_count = 0;
        for (struct snib__list *it = snib__list_take(&r->renewals); it; it = snib__list_take(&r->renewals)) {
                if (b)
                        snib__list_append(&b->members, it);
                else
                        send_one(r, request_of(it), now); /* it is alone, or memory is short */
        }
        if (b && !send_many(r, b, members, now))
                snib__renewals_orphan(r, b, false, snib__redis_no_room);
}

/* The server does not know the script: once more, with its text, but for those that are overtaken. */
static void send_text(struct redis *r, struct request *b, snib__ns now)
{
        r->commands.by_text[SNIB__SCRIPT_RENEW_MANY] = true;
        snib__assert(r->renewals_count == 0);
        for (struct snib__list *it = snib__list_take(&b->members); it; it = snib__list_take(&b->members)) {
                if (snib__op_overtaken(r, request_of(it)))
                        snib__redis_fail(r, request_of(it), SNIB_ENOTREADY, "%s", snib__redis_forgotten);
                else
                        snib__renewals_add(r, request_of(it), now);
        }
        snib__renewals_send(r, now);
}

static void refused(struct redis *r, struct request *b, const char *text, snib__ns now)
{
        if (strncmp(text, "NOSCRIPT ", 9)) {
                for (struct snib__list *it = snib__list_take(&b->members); it; it = snib__list_take(&b->members))
                        snib__op_refused(r, request_of(it), text, now);
        } else if (b->by_text) {
                fail_all(r, b, SNIB_EREFUSED, snib__redis_unknown_script);
        } else {
                send_text(r, b, now);
        }
}

/* How many values the answer for one hold has; 0: it is none. */
static size_t length_of(const struct snib__resp_value *v, size_t left)
{
        if (left > 0 && v->type == SNIB__RESP_ERROR)
                return 1;
        if (left < 2 || v->type != SNIB__RESP_ARRAY || v->elements == 0 || v->elements >= left)
                return 0;
        return v[1].type == SNIB__RESP_INTEGER ? 1 + v->elements : 0;
}

/* The answers to the members, in their order. False: nonsense; those that are left have no answer. */
static bool take_all(struct redis *r, struct request *b, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        size_t at = 1;

        while (!snib__list_empty(&b->members)) {
                struct request *q = request_of(b->members.next);
                size_t length = length_of(&v[at], count - at);

                if (!length)
                        return false;
                snib__list_remove(&q->note.link);
                if (v[at].type == SNIB__RESP_ERROR) {
                        snib__op_refused(r, q, snib__decode_text(r, &v[at]), now);
                } else if (!q->row->decode(r, q, &v[at], length, now)) {
                        snib__list_append(&b->members, &q->note.link);
                        return false;
                }
                at += length;
        }
        return at == count;
}

bool snib__renewals_reply(struct redis *r, struct request *b, const struct snib__resp_value *v, size_t count,
                          snib__ns now)
{
        size_t members = 0;

        if (v->type == SNIB__RESP_ERROR) {
                refused(r, b, snib__decode_text(r, v), now);
                snib__redis_request_free(r, b);
                return true;
        }
        snib__list_each (it, &b->members)
                members++;
        if (v->type != SNIB__RESP_ARRAY || v->elements != members || !take_all(r, b, v, count, now))
                return false;
        r->commands.by_text[SNIB__SCRIPT_RENEW_MANY] = false;
        snib__redis_request_free(r, b);
        return true;
}
