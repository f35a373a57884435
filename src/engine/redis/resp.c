/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The object functions behind hiredis' reader, and the limits that the reader does not have. Not a
 * parser: the reader is. What the reader holds unparsed is bounded here by looking at its first
 * byte after every reply: a bulk string may grow to SNIB__RESP_BULK_MAX, any other line to
 * SNIB__RESP_LINE_MAX. The number of elements and of bytes of a whole reply is counted as its
 * values come. Called by the engine's thread only.
 */

#include "engine/redis/resp.h"
#include "base/alloc.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct snib__resp {
        redisReader *reader;
        struct snib__resp_value *values;
        size_t count, room;
        char *text;
        size_t text_length, text_room;
        const char *refused; /* why an object function said no */
        bool no_memory;
};

/* Room for `more` items beyond `used`, doubling. */
static bool reserve(void **array, size_t *room, size_t used, size_t more, size_t size)
{
        size_t wanted = *room ? *room : 64;
        void *grown;

        while (wanted < used + more)
                wanted *= 2;
        if (wanted == *room)
                return true;
        grown = snib__grow(*array, wanted * size);
        if (!grown)
                return false;
        *array = grown;
        *room = wanted;
        return true;
}

static int depth_of(const redisReadTask *task)
{
        int depth = 0;

        for (const redisReadTask *t = task->parent; t; t = t->parent)
                depth++;
        return depth;
}

/* Adds a value. The reader wants a pointer that is not NULL, and gives it back in task->obj, where
 * nobody looks. */
static struct snib__resp_value *add(const redisReadTask *task, enum snib__resp_type type)
{
        struct snib__resp *r = task->privdata;

        if (!task->parent) { /* a new reply */
                r->count = 0;
                r->text_length = 0;
        }
        if (r->count >= SNIB__RESP_VALUES_MAX || depth_of(task) >= SNIB__RESP_DEPTH_MAX) {
                r->refused =
                    r->count >= SNIB__RESP_VALUES_MAX ? "too many values in a reply" : "a reply is nested too deep";
                return NULL;
        }
        if (!reserve((void **)&r->values, &r->room, r->count, 1, sizeof(*r->values))) {
                r->no_memory = true;
                return NULL;
        }
        r->values[r->count] = (struct snib__resp_value){.type = type};
        return &r->values[r->count++];
}

static void *on_string(const redisReadTask *task, char *bytes, size_t length)
{
        struct snib__resp *r = task->privdata;
        struct snib__resp_value *v = add(task, task->type == REDIS_REPLY_STRING   ? SNIB__RESP_STRING
                                               : task->type == REDIS_REPLY_STATUS ? SNIB__RESP_STATUS
                                               : task->type == REDIS_REPLY_ERROR  ? SNIB__RESP_ERROR
                                                                                  : SNIB__RESP_OTHER);

        if (!v)
                return NULL;
        if (length > SNIB__RESP_BULK_MAX || r->text_length + length > SNIB__RESP_REPLY_MAX) {
                r->refused = "a reply is too long";
                return NULL;
        }
        if (!reserve((void **)&r->text, &r->text_room, r->text_length, length + 1, 1)) {
                r->no_memory = true;
                return NULL;
        }
        v->text = r->text_length;
        v->length = length;
        memcpy(r->text + r->text_length, bytes, length);
        r->text_length += length;
        r->text[r->text_length++] = 0;
        return r;
}

#if HIREDIS_MAJOR >= 1
static void *on_array(const redisReadTask *task, size_t elements)
#else
static void *on_array(const redisReadTask *task, int elements)
#endif
{
        struct snib__resp *r = task->privdata;
        struct snib__resp_value *v;

        if ((size_t)elements > SNIB__RESP_VALUES_MAX) {
                r->refused = "too many values in a reply";
                return NULL;
        }
        v = add(task, task->type == REDIS_REPLY_ARRAY ? SNIB__RESP_ARRAY : SNIB__RESP_OTHER);
        if (!v)
                return NULL;
        v->elements = (size_t)elements;
        return r;
}

static void *on_integer(const redisReadTask *task, long long number)
{
        struct snib__resp_value *v = add(task, SNIB__RESP_INTEGER);

        if (!v)
                return NULL;
        v->integer = number;
        return task->privdata;
}

static void *on_nil(const redisReadTask *task)
{
        return add(task, SNIB__RESP_NIL) ? task->privdata : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *on_double(const redisReadTask *task, double number, char *bytes, size_t length)
{
        (void)number, (void)bytes, (void)length;
        return add(task, SNIB__RESP_OTHER) ? task->privdata : NULL;
}

static void *on_bool(const redisReadTask *task, int truth)
{
        (void)truth;
        return add(task, SNIB__RESP_OTHER) ? task->privdata : NULL;
}
#endif

static void on_free(void *object)
{
        (void)object; /* values live in arrays that are kept */
}

static redisReplyObjectFunctions functions = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = on_free,
};

struct snib__resp *snib__resp_new(void)
{
        struct snib__resp *r = snib__alloc(sizeof(*r));

        if (r)
                r->reader = redisReaderCreateWithFunctions(&functions);
        if (!r || !r->reader) {
                free(r);
                return NULL;
        }
        r->reader->privdata = r;
        return r;
}

void snib__resp_free(struct snib__resp *r)
{
        if (!r)
                return;
        redisReaderFree(r->reader);
        free(r->values);
        free(r->text);
        free(r);
}

bool snib__resp_feed(struct snib__resp *r, const char *bytes, size_t length)
{
        if (redisReaderFeed(r->reader, bytes, length) == REDIS_OK)
                return true;
        r->no_memory = true;
        return false;
}

/* The reader has seen the type byte of what it waits for, and stands behind it. */
static bool in_bulk(const redisReader *reader)
{
#if HIREDIS_MAJOR >= 1
        const redisReadTask *task = reader->ridx >= 0 ? reader->task[reader->ridx] : NULL;
#else
        const redisReadTask *task = reader->ridx >= 0 ? &reader->rstack[reader->ridx] : NULL;
#endif

        return task && task->type == REDIS_REPLY_STRING;
}

/* What waits for more bytes is either a bulk string or a line. */
static bool unparsed_too_long(struct snib__resp *r)
{
        size_t waiting = r->reader->len - r->reader->pos;

        return waiting > SNIB__RESP_LINE_MAX + (in_bulk(r->reader) ? SNIB__RESP_BULK_MAX : 0);
}

int snib__resp_next(struct snib__resp *r, const struct snib__resp_value **ret_values, size_t *ret_count)
{
        void *reply = NULL;

        if (r->refused || r->no_memory || redisReaderGetReply(r->reader, &reply) != REDIS_OK)
                return -1;
        if (!reply) {
                if (unparsed_too_long(r))
                        r->refused = "a reply has no end";
                return r->refused ? -1 : 0;
        }
        *ret_values = r->values;
        *ret_count = r->count;
        return 1;
}

const char *snib__resp_error(const struct snib__resp *r)
{
        return r->no_memory ? "out of memory" : r->refused ? r->refused : r->reader->errstr;
}

bool snib__resp_no_memory(const struct snib__resp *r)
{
        return r->no_memory;
}

const char *snib__resp_text(const struct snib__resp *r, const struct snib__resp_value *v)
{
        return r->text + v->text;
}
