/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the answers of scripts are made of: numbers as text, whoever holds, and what is said when a
 * name is something else on the server. Bytes are the server's, so nothing is taken for granted.
 */

#include "base/error.h"
#include "engine/redis/internal.h"
#include <string.h>

const char *snib__decode_text(const struct redis *r, const struct snib__resp_value *v)
{
        return snib__resp_text(r->commands.resp, v);
}

bool snib__decode_number(const struct redis *r, const struct snib__resp_value *v, int64_t *ret)
{
        const char *text = v->type == SNIB__RESP_STRING ? snib__decode_text(r, v) : "";
        bool minus = text[0] == '-';
        int64_t n = 0;

        if (v->type != SNIB__RESP_STRING || v->length <= minus || v->length > 20)
                return false;
        for (size_t i = minus; i < v->length; i++)
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
                    __builtin_add_overflow(n, text[i] - '0', &n))
                        return false;
        *ret = minus ? -n : n;
        return true;
}

bool snib__decode_token(const struct redis *r, const struct snib__resp_value *v, int64_t *ret)
{
        return snib__decode_number(r, v, ret) && *ret > 0;
}

/* Whoever wrote the field: shown, and compared with our own ids, which are short and printable. */
void snib__decode_id(const struct redis *r, const struct snib__resp_value *v, struct snib__id *ret)
{
        const char *text = snib__decode_text(r, v);
        size_t n = v->length < SNIB__ID_MAX - 1 ? v->length : SNIB__ID_MAX - 1;

        for (size_t i = 0; i < n; i++)
                ret->text[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
        ret->text[n] = 0;
}

bool snib__decode_holder(struct redis *r, const struct snib__resp_value *left, const struct snib__resp_value *id,
                         struct snib__reply *ret)
{
        if (left->type != SNIB__RESP_INTEGER || id->type != SNIB__RESP_STRING || left->integer < -2)
                return false;
        ret->held = left->integer != -2;
        ret->left_ms = left->integer < 0 ? -1 : left->integer;
        ret->holders = ret->held;
        ret->holder.since_ms = -1;
        ret->holder.who.pid = -1;
        snib__decode_id(r, id, &ret->holder.id);
        return true;
}

void snib__decode_wrong_kind(struct redis *r, struct request *q, const char *found)
{
        bool any = q->op.kind == SNIB_KIND_ANY;

        snib__redis_fail(r, q, SNIB_EKIND, "the key is %s, and %s%s%s; use another name, or remove the key", found,
                         any ? "nothing of ours" : "not ", any ? "" : snib__kind(q->op.kind)->article,
                         any ? "" : snib__kind(q->op.kind)->text);
}

void snib__decode_complete(struct redis *r, struct request *q, bool ask, snib__ns now)
{
        struct snib__reply *p = &q->reply;
        bool named = p->held && p->holder.id.text[0];

        if (!named || snib__who_find(r, p, now)) {
                snib__redis_complete(r, q);
        } else if (!ask) {
                snib__who_look_up(r, &p->holder.id, now);
                snib__redis_complete(r, q);
        } else if (snib__who_send_get(r, q, &p->holder.id, now)) {
                q->kind = REQUEST_OP_WHO;
        } else {
                snib__redis_complete(r, q);
        }
}
