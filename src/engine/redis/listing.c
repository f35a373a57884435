/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of all that is held in the database, and of registers: SCAN in steps that do not hold
 * the server up, first for hashes, then for sets of permits; the query script for every key of a
 * step in batches, then who the holders are. What is none of ours, or went away meanwhile, is left
 * out; something may be told twice, as SCAN may. Told items live until the next process(), which
 * begins the next batch. Phases:
 *
 *     NEXT -> SCAN -> NEXT -> LOCKS -> WHO -> TOLD -> NEXT ... -> END
 */

#include "base/alloc.h"
#include "base/error.h"
#include "engine/redis/internal.h"
#include <stdlib.h>
#include <string.h>

#define SCAN_COUNT "500"
#define PERMITS_SUFFIX ":timeout"
#define KEY_MAX 1000 /* longer names are no locks of ours */

static struct snib__name item_name(const struct listing *l, const struct item *item)
{
        return (struct snib__name){l->page + item->name, item->name_length};
}

void snib__listing_free(struct redis *r, struct listing *l)
{
        if (l->end)
                snib__redis_request_free(r, l->end);
        free(l->page);
        free(l->items);
        free(l);
}

bool snib__listing_start(struct redis *r, struct snib__tag tag, snib__ns now)
{
        struct request *end = snib__redis_request(r, REQUEST_OP, now);
        struct listing *l;

        if (!end)
                return false;
        end->tag = tag;
        l = snib__alloc(sizeof(*l));
        if (l)
                l->items = snib__alloc(SNIB__LISTING_BATCH * sizeof(*l->items));
        if (!l || !l->items) {
                free(l);
                snib__redis_request_free(r, end);
                return false;
        }
        l->tag = tag;
        l->end = end;
        l->cursor[0] = '0';
        snib__list_append(&r->listings, &l->link);
        snib__listing_advance(r, l, now);
        return true;
}

static void end(struct redis *r, struct listing *l)
{
        l->phase = LISTING_END;
        snib__list_remove(&l->link);
        snib__list_append(&r->spent_listings, &l->link);
        if (!l->end)
                return;
        struct request *q = l->end;
        l->end = NULL;
        q->reply.status = SNIB__INFO;
        snib__redis_complete(r, q);
}

static void fail(struct redis *r, struct listing *l, int code, const char *why)
{
        struct request *q = l->end;

        if (!q)
                return;
        l->end = NULL;
        snib__redis_fail(r, q, code, "%s", why);
}

/* Sends a request of this listing; without it the listing fails. */
static void sent(struct redis *r, struct listing *l, struct request *q, bool done)
{
        if (done) {
                l->outstanding++;
                return;
        }
        if (q)
                snib__redis_request_free(r, q);
        fail(r, l, SNIB_EUNREACHABLE, "the connection to the server broke");
}

static struct request *request(struct redis *r, struct listing *l, enum request_kind kind, snib__ns now)
{
        struct request *q = snib__redis_request(r, kind, now);

        if (q)
                q->listing = l;
        return q;
}

static void scan(struct redis *r, struct listing *l, snib__ns now)
{
        struct request *q = request(r, l, REQUEST_SCAN, now);
        const char *match = l->permits ? "*" PERMITS_SUFFIX : "*", *type = l->permits ? "zset" : "hash";

        l->phase = LISTING_SCAN;
        sent(r, l, q,
             q && snib__command_send(
                      &r->commands, q, 8,
                      (const char *[]){"SCAN", l->cursor, "COUNT", SCAN_COUNT, "TYPE", type, "MATCH", match},
                      (const size_t[]){4, strlen(l->cursor), 5, sizeof(SCAN_COUNT) - 1, 4, 4, 5, strlen(match)}, now));
}

/* Asks about the next keys of the page. */
static void ask_locks(struct redis *r, struct listing *l, snib__ns now)
{
        l->phase = LISTING_LOCKS;
        l->count = 0;
        while (l->page_at < l->page_length && l->count < SNIB__LISTING_BATCH && l->end) {
                struct item *item = &l->items[l->count];
                uint32_t length;
                struct request *q;

                memcpy(&length, l->page + l->page_at, sizeof(length));
                *item = (struct item){.listing = l, .name = l->page_at + sizeof(length), .name_length = length};
                l->page_at += sizeof(length) + length;
                q = request(r, l, REQUEST_LIST_LOCK, now);
                if (q) {
                        q->item = l->count;
                        q->row = &snib__any_row;
                }
                l->count++;
                const struct snib__op op = {.verb = SNIB__QUERY, .kind = SNIB_KIND_ANY, .name = item_name(l, item)};
                sent(r, l, q, q && snib__op_keep(q, &op) && snib__op_send(r, q, now));
        }
}

/* Two holds of one client need one look-up. */
static bool asked_before(const struct listing *l, size_t at, const char *uuid)
{
        for (size_t i = 0; i < at; i++)
                if (l->items[i].told && snib__id_of_client(&l->items[i].reply.holder.id, uuid))
                        return true;
        return false;
}

static void ask_who(struct redis *r, struct listing *l, snib__ns now)
{
        l->phase = LISTING_WHO;
        for (size_t i = 0; i < l->count && l->end; i++) {
                struct snib__reply *reply = &l->items[i].reply;
                struct snib__seat *holder = &reply->holder;
                char uuid[37];
                struct request *q;

                if (!l->items[i].told || !snib__id_client(&holder->id, uuid))
                        continue;
                if (snib__who_find(r, reply, now) || asked_before(l, i, uuid))
                        continue;
                q = request(r, l, REQUEST_LIST_WHO, now);
                if (q)
                        q->op.id = holder->id;
                sent(r, l, q, q && snib__who_send_get(r, q, &holder->id, now));
        }
}

static bool write(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        const struct item *item = snib__container(l, struct item, letter);

        (void)owner;
        *ret = (struct snib__note){.kind = SNIB__NOTE_LISTED,
                                   .tag = item->listing->tag,
                                   .name = {item->listing->page + item->name, item->name_length},
                                   .reply = item->reply};
        return false;
}

/* An item lives as long as its listing. */
static const struct snib__letter_kind listed = {.write = write};

static void tell(struct redis *r, struct listing *l)
{
        l->phase = LISTING_TOLD;
        for (size_t i = 0; i < l->count; i++)
                if (l->items[i].told)
                        snib__outbox_post(&r->outbox, &l->items[i].letter, &listed);
}

void snib__listing_advance(struct redis *r, struct listing *l, snib__ns now)
{
        while (l->outstanding == 0) {
                if (!l->end) {
                        end(r, l);
                        return;
                }
                switch (l->phase) {
                case LISTING_NEXT:
                case LISTING_SCAN:
                case LISTING_TOLD:
                        if (l->page_at < l->page_length)
                                ask_locks(r, l, now);
                        else if (!l->scanned || !l->permits) {
                                l->permits |= l->scanned;
                                scan(r, l, now);
                        } else {
                                end(r, l);
                                return;
                        }
                        break;
                case LISTING_LOCKS:
                        ask_who(r, l, now);
                        break;
                case LISTING_WHO:
                        tell(r, l);
                        return; /* next() first */
                case LISTING_END:
                        return;
                }
        }
}

static bool keep_key(struct listing *l, const char *bytes, size_t length)
{
        uint32_t n = (uint32_t)length;

        if (length == 0 || length > KEY_MAX || memchr(bytes, 0, length))
                return true;
        if (l->page_length + sizeof(n) + length > l->page_room) {
                size_t room = (l->page_room ? l->page_room : 8192) * 2;
                char *grown = snib__grow(l->page, room);
                if (!grown)
                        return false;
                l->page = grown;
                l->page_room = room;
        }
        memcpy(l->page + l->page_length, &n, sizeof(n));
        memcpy(l->page + l->page_length + sizeof(n), bytes, length);
        l->page_length += sizeof(n) + length;
        return true;
}

/* "{name}:timeout" are the permits of "name" or of "{name}": both are asked about. */
static bool keep_permits(struct listing *l, const char *bytes, size_t length)
{
        size_t suffix = sizeof(PERMITS_SUFFIX) - 1;

        if (length <= suffix || memcmp(bytes + length - suffix, PERMITS_SUFFIX, suffix) != 0)
                return true;
        length -= suffix;
        if (!keep_key(l, bytes, length))
                return false;
        return bytes[0] != '{' || bytes[length - 1] != '}' || length < 3 || keep_key(l, bytes + 1, length - 2);
}

/* {cursor, {key, ...}} */
static bool scanned(struct redis *r, struct listing *l, const struct snib__resp_value *v, size_t count)
{
        const struct snib__resp *resp = r->commands.resp;
        const char *cursor;

        if (count < 3 || v->type != SNIB__RESP_ARRAY || v->elements != 2 || v[1].type != SNIB__RESP_STRING ||
            v[1].length == 0 || v[1].length >= sizeof(l->cursor) || v[2].type != SNIB__RESP_ARRAY ||
            v[2].elements != count - 3)
                return false;
        cursor = snib__resp_text(resp, &v[1]);
        if (strspn(cursor, "0123456789") != v[1].length)
                return false;
        memcpy(l->cursor, cursor, v[1].length + 1);
        l->scanned = !strcmp(cursor, "0");
        l->page_length = l->page_at = 0;
        for (size_t i = 3; i < count; i++) {
                if (v[i].type != SNIB__RESP_STRING)
                        return false;
                if (!(l->permits ? keep_permits : keep_key)(l, snib__resp_text(resp, &v[i]), v[i].length)) {
                        fail(r, l, SNIB_ENOMEM, "out of memory");
                        break;
                }
        }
        return true;
}

/* What is told: a lock whose field is an owner (a uuid, a colon, more), permits that are out, a
 * register. */
static bool worth_telling(const struct snib__reply *reply)
{
        char uuid[37];

        switch (reply->kind) {
        case SNIB_KIND_COUNTER:
                return false;
        case SNIB_KIND_PERMITS:
                return reply->holders > 0;
        case SNIB_KIND_REGISTER:
                return true;
        default:
                return reply->held && snib__id_client(&reply->holder.id, uuid);
        }
}

static bool queried(struct redis *r, struct item *item, const struct snib__resp_value *v, size_t count)
{
        if (v->type == SNIB__RESP_ERROR)
                return true; /* deleted and made anew as something else */
        if (v->type != SNIB__RESP_ARRAY || count < 2 || v->elements != count - 1 || v[1].type != SNIB__RESP_INTEGER)
                return false;
        if (v[1].integer == -1)
                return snib__lock_foreign_key(v, count);
        item->reply = (struct snib__reply){.waiters = -1, .value = -1, .limit = -1};
        if (!snib__lock_decode_any(r, v, count, &item->reply))
                return false;
        item->told = worth_telling(&item->reply);
        return true;
}

static void identified(struct redis *r, struct listing *l, const struct snib__id *id, const struct snib__who *who)
{
        for (size_t i = 0; i < l->count; i++) {
                struct snib__reply *reply = &l->items[i].reply;

                if (!l->items[i].told || !snib__id_of_client(&reply->holder.id, id->text))
                        continue;
                reply->holder.who = *who;
                reply->foreign = snib__who_foreign(r, id);
        }
}

static bool take(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct listing *l = q->listing;
        struct snib__who who;

        switch (q->kind) {
        case REQUEST_SCAN:
                if (v->type != SNIB__RESP_ERROR)
                        return scanned(r, l, v, count);
                fail(r, l, snib__refusal_find(snib__resp_text(r->commands.resp, v))->code,
                     snib__resp_text(r->commands.resp, v));
                return true;
        case REQUEST_LIST_LOCK:
                return queried(r, &l->items[q->item], v, count);
        default:
                if (!snib__who_reply(r, &q->op.id, v, count, now, &who))
                        return false;
                identified(r, l, &q->op.id, &who);
                return true;
        }
}

bool snib__listing_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count,
                         snib__ns now)
{
        struct listing *l = q->listing;
        const char *error = v->type == SNIB__RESP_ERROR ? snib__resp_text(r->commands.resp, v) : "";

        if (q->kind == REQUEST_LIST_LOCK && !strncmp(error, "NOSCRIPT ", 9) && !q->by_text) {
                r->commands.by_text[q->row->script] = true;
                if (snib__op_send(r, q, now))
                        return true;
        }
        if (!take(r, q, v, count, now))
                return false;
        if (q->kind == REQUEST_LIST_LOCK && v->type != SNIB__RESP_ERROR)
                r->commands.by_text[q->row->script] = false;
        snib__redis_request_free(r, q);
        l->outstanding--;
        snib__listing_advance(r, l, now);
        return true;
}

void snib__listing_orphan(struct redis *r, struct request *q, const char *why)
{
        struct listing *l = q->listing;

        snib__redis_request_free(r, q);
        l->outstanding--;
        fail(r, l, SNIB_EUNREACHABLE, why);
        if (!l->outstanding)
                end(r, l);
}
