/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Locks of every kind, read-write locks, elections: their rows, and what their answers mean; and
 * what query.lua says of whatever stands under a name. Not what is counted (count.c). Keeps nothing
 * between two calls.
 */

#include "engine/redis/internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A hash of somebody else's. */
static void hash_of(int64_t fields, char *ret, size_t size)
{
        snprintf(ret, size, "a hash of %" PRId64 " field%s of another make", fields, fields == 1 ? "" : "s");
}

/* {-1, fields, what}: a hash, but no lock of the kind that was asked for; see what_hash.lua. */
static bool wrong_kind(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        char found[64];

        if (count != 4 || v[2].type != SNIB__RESP_INTEGER || v[3].type != SNIB__RESP_INTEGER)
                return false;
        hash_of(v[2].integer, found, sizeof(found));
        snib__decode_wrong_kind(r, q, v[3].integer == 1 ? "a read-write lock" : v[3].integer == 2 ? "a lock" : found);
        return true;
}

/* The server counts its tokens. */
static bool counted(int kind)
{
        const struct row *row = snib__lock_row(kind, SNIB__ACQUIRE);

        return row && row->script == SNIB__SCRIPT_ACQUIRE_FENCED;
}

/* Whoever waits for it stands in a queue at the server. */
static bool queues(int kind)
{
        return snib__redis_facts.queues & SNIB__KIND_BIT(kind);
}

/* {0, left, holder}: busy, or gone; of a lock with a queue {0, left, holder, place, waiters}:
 * busy. */
static bool refused(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        struct snib__reply *p = &q->reply;
        bool queue = queues(q->op.kind) && q->op.token == 0;

        if (count != (queue ? 6 : 4) || !snib__decode_holder(r, &v[2], &v[3], p) ||
            (!p->held && q->op.token == 0 && !queue))
                return false;
        if (queue) {
                if (v[4].type != SNIB__RESP_INTEGER || v[5].type != SNIB__RESP_INTEGER || v[4].integer < 0 ||
                    v[5].integer < v[4].integer)
                        return false;
                p->position = v[4].integer;
                p->waiters = v[5].integer;
                p->waiters_at_least = q->op.kind != SNIB_KIND_FAIR; /* others wait elsewhere */
        }
        p->status = q->op.token > 0 ? SNIB__GONE : SNIB__BUSY;
        return true;
}

/* {1, token}, {2, token}: held now; {0, ...}: not. */
static bool acquired(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;

        if (v[1].integer == -1)
                return wrong_kind(r, q, v, count);
        if (v[1].integer == 0) {
                if (!refused(r, q, v, count))
                        return false;
        } else {
                if (count != 3 || (v[1].integer != 1 && v[1].integer != 2) || !snib__decode_token(r, &v[2], &p->token))
                        return false;
                /* A plain lock's token is the instant of its acquire: a confirmation knows it only
                 * from the client. */
                if (counted(q->op.kind))
                        p->token -= snib__kind(q->op.kind)->tokens - 1;
                else if (v[1].integer == 2 && q->op.token > 0)
                        p->token = q->op.token;
                p->status = SNIB__GRANTED;
        }
        snib__decode_complete(r, q, false, now);
        return true;
}

/* {1}: ended, renewed; {0, left, holder}: not held by this id. */
static bool kept(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        (void)now;
        if (v[1].integer == -1)
                return wrong_kind(r, q, v, count);
        if (v[1].integer == 1 && count == 2)
                q->reply.status = q->op.verb == SNIB__RENEW ? SNIB__RENEWED : SNIB__RELEASED;
        else if (v[1].integer == 0 && count == 4 && snib__decode_holder(r, &v[2], &v[3], &q->reply))
                q->reply.status = SNIB__GONE;
        else
                return false;
        snib__redis_complete(r, q);
        return true;
}

/* {1, left, holder}: this was there; {0, -2, ''}: nobody held it. */
static bool forced(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;

        if (v[1].integer == -1)
                return wrong_kind(r, q, v, count);
        if ((v[1].integer != 0 && v[1].integer != 1) || count != 4 || !snib__decode_holder(r, &v[2], &v[3], p) ||
            p->held != (v[1].integer == 1))
                return false;
        p->status = SNIB__INFO;
        snib__decode_complete(r, q, true, now);
        return true;
}

/* What query.lua calls things, and the kinds that go by that name. */
static const struct {
        const char *text, *found;
        int kind;
} things[] = {{"lock", "a lock", SNIB_KIND_LOCK},
              {"fenced", "a lock", SNIB_KIND_FENCED},
              {"fair", "a lock", SNIB_KIND_FAIR},
              {"read", "a read-write lock", SNIB_KIND_READ},
              {"write", "a read-write lock", SNIB_KIND_WRITE},
              {"permits", "a set of permits", SNIB_KIND_PERMITS},
              {"counter", "a number", SNIB_KIND_COUNTER},
              {"register", "a register", SNIB_KIND_REGISTER}};

#define THINGS (sizeof(things) / sizeof(things[0]))

static size_t thing_of(const struct redis *r, const struct snib__resp_value *v)
{
        size_t i = 0;

        while (i < THINGS && (v->type != SNIB__RESP_STRING || strcmp(things[i].text, snib__decode_text(r, v)) != 0))
                i++;
        return i;
}

bool snib__lock_decode_any(struct redis *r, const struct snib__resp_value *v, size_t count, struct snib__reply *ret)
{
        int64_t token = -1;
        size_t thing;

        if (count != 11 || v[9].type != SNIB__RESP_STRING || v[10].type != SNIB__RESP_INTEGER || v[10].integer < -1 ||
            (v[1].integer != 0 && v[1].integer != 1) || v[5].type != SNIB__RESP_INTEGER ||
            v[6].type != SNIB__RESP_INTEGER || v[7].type != SNIB__RESP_STRING || v[8].type != SNIB__RESP_STRING ||
            v[5].integer < 0 || (v[7].length && !snib__decode_token(r, &v[7], &token)) ||
            (v[8].length && !snib__decode_number(r, &v[8], &ret->value)) || !snib__decode_holder(r, &v[3], &v[4], ret))
                return false;
        thing = thing_of(r, &v[2]);
        if (thing == THINGS)
                return false;
        ret->status = SNIB__INFO;
        ret->kind = things[thing].kind;
        ret->held = v[1].integer == 1;
        ret->holders = v[5].integer;
        ret->token = token;
        snib__decode_id(r, &v[9], &ret->next);
        ret->next_left_ms = v[10].integer;
        if (ret->kind == SNIB_KIND_FAIR) {
                ret->waiters = v[6].integer;
                ret->waiters_at_least = false;
        } else if (v[6].integer > 0) { /* and those of others, who listen */
                ret->waiters = v[6].integer + snib__max(ret->waiters, 0);
                ret->waiters_at_least = true;
        }
        if (snib__family_of(ret->kind) == SNIB__FAMILY_PERMITS)
                ret->limit = ret->value + ret->holders;
        if (ret->held && token >= INT64_C(1000000000000000) && ret->kind == SNIB_KIND_FENCED)
                ret->holder.since_ms = token / 1000;
        return true;
}

bool snib__lock_foreign_key(const struct snib__resp_value *v, size_t count)
{
        return count == 4 && v[2].type == SNIB__RESP_STRING && v[3].type == SNIB__RESP_INTEGER;
}

/* {-1, type, n}: what stands there is none of ours. */
static void foreign_key(struct redis *r, struct request *q, const struct snib__resp_value *v)
{
        char found[64];

        if (!strcmp(snib__decode_text(r, &v[2]), "hash"))
                hash_of(v[3].integer, found, sizeof(found));
        else
                snprintf(found, sizeof(found), "of type %.20s", snib__decode_text(r, &v[2]));
        snib__decode_wrong_kind(r, q, found);
}

/* Reads what query.lua answered into the reply. */
enum look { NONSENSE = 0, REFUSED, FITS };

static enum look look(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count)
{
        bool there;

        if (v[1].integer == -1) {
                if (!snib__lock_foreign_key(v, count))
                        return NONSENSE;
                foreign_key(r, q, v);
                return REFUSED;
        }
        if (!snib__lock_decode_any(r, v, count, &q->reply))
                return NONSENSE;
        there = v[3].integer != -2;
        if (q->op.kind == SNIB_KIND_ANY || !there || snib__family_of(q->reply.kind) == snib__family_of(q->op.kind)) {
                if (!there || snib__family_of(q->op.kind) == SNIB__FAMILY_LOCK)
                        q->reply.kind = q->op.kind;
                return FITS;
        }
        snib__decode_wrong_kind(r, q, things[thing_of(r, &v[2])].found);
        return REFUSED;
}

/* QUERY: also who the holder is, by one more round trip unless it is known. */
static bool described(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        enum look found = look(r, q, v, count);

        if (found != FITS)
                return found == REFUSED;
        if (q->op.kind != SNIB_KIND_ANY && !counted(q->op.kind))
                q->reply.token = -1;
        snib__decode_complete(r, q, true, now);
        return true;
}

/* OBSERVE: the state is the token of the hold. Of one without a token no more is known than that it
 * is there. */
static bool observed(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;
        enum look found = look(r, q, v, count);

        if (found != FITS)
                return found == REFUSED;
        p->token = !p->held ? 0 : p->token > 0 ? p->token : 1;
        p->status = p->token == q->op.token ? SNIB__BUSY : SNIB__INFO;
        snib__decode_complete(r, q, p->status == SNIB__INFO, now);
        return true;
}

#define FAIR_PUTS PUT_NAME, NAME_QUEUE, NAME_TURNS, NAME_WAITING, PUT_VERB, PUT_ID, NAME_LOCK_CHANNEL
#define SIDE_PUTS PUT_VERB, PUT_KIND, PUT_ID, NAME_TAG, NAME_RW_CHANNEL
/* A reader's key of its hold is named, so that who has no right to it is refused at once. */
#define READ_PUTS \
        2,        \
        {         \
                PUT_NAME, PUT_HOLD_KEY, SIDE_PUTS
#define WRITE_PUTS \
        1,         \
        {          \
                PUT_NAME, SIDE_PUTS

/* clang-format off */
#define LOOKED 1, {PUT_NAME, NAME_TAG, NAME_TOKEN, NAME_QUEUE, NAME_PERMITS, NAME_WAIT_QUEUE, NAME_TURNS}
#define QUERIED [SNIB__QUERY] = {SNIB__SCRIPT_QUERY, LOOKED, described}
#define OBSERVED [SNIB__OBSERVE] = {SNIB__SCRIPT_QUERY, LOOKED, observed}
#define RENEWED [SNIB__RENEW] = {SNIB__SCRIPT_RENEW, 1, {PUT_NAME, PUT_ID, PUT_LEASE}, kept}
#define ENDED \
        [SNIB__RELEASE] = {SNIB__SCRIPT_RELEASE, 1, {PUT_NAME, PUT_ID, NAME_LOCK_CHANNEL}, kept}, \
        [SNIB__FORCE] = {SNIB__SCRIPT_FORCE, 1, {PUT_NAME, NAME_LOCK_CHANNEL}, forced}

#define HANDED_ON \
        [SNIB__RELEASE] = {SNIB__SCRIPT_RELEASE, 1, {PUT_NAME, PUT_ID, NAME_LOCK_CHANNEL, PUT_STREAK}, kept}, \
        [SNIB__FORCE] = {SNIB__SCRIPT_FORCE, 1, {PUT_NAME, NAME_LOCK_CHANNEL, PUT_STREAK}, forced}

static const struct row rows[][SNIB__DELETE + 1] = {
    [SNIB_KIND_LOCK] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_ACQUIRE, 1, {PUT_NAME, PUT_ID, PUT_LEASE, PUT_TOKEN, PUT_QUESTION}, acquired},
        HANDED_ON, RENEWED, QUERIED, OBSERVED},
    [SNIB_KIND_FENCED] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_ACQUIRE_FENCED, 2,
                           {PUT_NAME, NAME_TOKEN, PUT_ID, PUT_LEASE, PUT_LAST_TOKEN, PUT_TOKENS, PUT_QUESTION}, acquired},
        HANDED_ON, RENEWED, QUERIED, OBSERVED},
    [SNIB_KIND_FAIR] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_FAIR, 4, {FAIR_PUTS, PUT_LEASE, PUT_TOKEN, PUT_ENQUEUE, PUT_WAITER_LEASE}, acquired},
        [SNIB__RELEASE] = {SNIB__SCRIPT_FAIR, 4, {FAIR_PUTS}, kept},
        [SNIB__FORCE] = {SNIB__SCRIPT_FAIR, 4, {FAIR_PUTS, PUT_UNDER}, forced},
        RENEWED, QUERIED, OBSERVED},
    /* Nobody is told of its end: its waiters poll. */
    [SNIB_KIND_SPIN] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_ACQUIRE, 1, {PUT_NAME, PUT_ID, PUT_LEASE, PUT_TOKEN}, acquired},
        [SNIB__RELEASE] = {SNIB__SCRIPT_RELEASE, 1, {PUT_NAME, PUT_ID}, kept},
        [SNIB__FORCE] = {SNIB__SCRIPT_FORCE, 1, {PUT_NAME}, forced},
        RENEWED, QUERIED, OBSERVED},
    /* A fenced lock whose beginning is told, too, to those who observe. */
    [SNIB_KIND_ELECTION] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_ACQUIRE_FENCED, 2,
                           {PUT_NAME, NAME_TOKEN, PUT_ID, PUT_LEASE, PUT_LAST_TOKEN, PUT_TOKENS, NAME_LOCK_CHANNEL},
                           acquired},
        RENEWED, ENDED, QUERIED, OBSERVED},
#define SIDE(puts) \
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_RW, puts, PUT_LEASE, PUT_TOKEN, PUT_UNDER}, acquired}, \
        [SNIB__RELEASE] = {SNIB__SCRIPT_RW, puts}, kept}, \
        [SNIB__RENEW] = {SNIB__SCRIPT_RW, puts, PUT_LEASE}, kept}, \
        [SNIB__FORCE] = {SNIB__SCRIPT_RW, WRITE_PUTS}, forced}, \
        QUERIED
    [SNIB_KIND_READ] = {SIDE(READ_PUTS)},
    [SNIB_KIND_WRITE] = {SIDE(WRITE_PUTS)},
};
/* clang-format on */

const struct row snib__any_row = {SNIB__SCRIPT_QUERY, LOOKED, described};

const struct row *snib__lock_row(int kind, enum snib__verb verb)
{
        const struct row *row = kind >= 0 && kind < (int)(sizeof(rows) / sizeof(rows[0])) ? &rows[kind][verb] : NULL;

        return row && row->decode ? row : NULL;
}
