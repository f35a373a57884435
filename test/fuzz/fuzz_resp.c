/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fuzz target: any bytes as what a Redis server says, to the whole engine over connections in
 * memory. The first byte of the input chooses what is in flight and how the bytes are cut, the
 * second the kind of object: 0 locks and fenced locks, else kind number + 1, asked with every verb
 * there is; one more: nothing but renewals of locks, which go together. The rest goes to the
 * commands connection up to a 0xff
 * byte, then to the subscriptions. Beyond not crashing: every request is answered exactly once,
 * with a status that belongs to its verb, and a note's name is one that was asked for.
 */

#include "../lib/memory_transport.h"
#include "base/assert.h"
#include "engine/redis/redis.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((weak)) void snib__assert_fail(const char *condition, const char *file, int line)
{
        (void)fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
        abort();
}

struct world {
        struct memory_transport net;
        struct snib__engine *engine;
        snib__ns now;
        int kind; /* of most requests; -1: locks of two kinds */
        bool renewals;
        unsigned asked, answers[REQUESTS + 1], sum;
};

static void check_reply(struct world *w, const struct snib__note *n)
{
        static const unsigned allowed[] = {[SNIB__ACQUIRE] = 1 << SNIB__GRANTED | 1 << SNIB__BUSY | 1 << SNIB__GONE,
                                           [SNIB__RELEASE] = 1 << SNIB__RELEASED | 1 << SNIB__GONE,
                                           [SNIB__RENEW] = 1 << SNIB__RENEWED | 1 << SNIB__GONE,
                                           [SNIB__QUERY] = 1 << SNIB__INFO,
                                           [SNIB__FORCE] = 1 << SNIB__INFO,
                                           [SNIB__OBSERVE] = 1 << SNIB__INFO | 1 << SNIB__BUSY,
                                           [SNIB__SET] = 1 << SNIB__DONE,
                                           [SNIB__RESIZE] = 1 << SNIB__DONE,
                                           [SNIB__ADD] = 1 << SNIB__DONE,
                                           [SNIB__DRAIN] = 1 << SNIB__DONE,
                                           [SNIB__WRITE] = 1 << SNIB__DONE,
                                           [SNIB__DELETE] = 1 << SNIB__DONE};
        unsigned verb = (unsigned)n->tag.cookie;
        unsigned sum = 0;

        snib__assert(n->tag.object == w && n->tag.attempt <= REQUESTS);
        snib__assert(++w->answers[n->tag.attempt] == 1);
        snib__assert(n->reply.status == SNIB__FAILED || (allowed[verb] & (1u << n->reply.status)));
        if (n->reply.status == SNIB__FAILED)
                snib__assert(n->reply.error < 0 && n->reply.error_text);
        if (n->reply.status == SNIB__GRANTED && !snib__kind(w->kind)->momentary)
                snib__assert(n->reply.token > 0);
        for (size_t i = 0; i < n->reply.data_length; i++)
                sum += ((const unsigned char *)n->reply.data)[i];
        w->sum += sum;
        snib__assert(memchr(n->reply.holder.id.text, 0, SNIB__ID_MAX));
}

static void take_notes(struct world *w)
{
        struct snib__note n;

        while (w->engine->ops->next(w->engine, &n)) {
                if (n.kind == SNIB__NOTE_REPLY)
                        check_reply(w, &n);
                if (n.kind == SNIB__NOTE_CHANGED || n.kind == SNIB__NOTE_WATCHING || n.kind == SNIB__NOTE_GRANTED)
                        snib__assert(n.name.length == 4 && !memcmp(n.name.bytes, "name", 4));
                if (n.kind == SNIB__NOTE_LISTED)
                        snib__assert(n.name.length > 0);
        }
}

static void turn(struct world *w)
{
        w->engine->ops->process(w->engine, NULL, w->now);
        take_notes(w);
}

static const struct snib__id id = {"00000001-0000-4000-8000-000000000000:1"};

static void ask(struct world *w, unsigned choice)
{
        static const char permits[1][33] = {"000000010000400080000000000a0000"};
        unsigned verb = w->renewals ? SNIB__RENEW : 1 + choice % (w->kind < 0 ? 5 : SNIB__DELETE);
        struct snib__op op = {.verb = (enum snib__verb)verb,
                              .kind = w->kind >= 0 ? w->kind
                                      : choice & 8 ? SNIB_KIND_FENCED
                                                   : SNIB_KIND_LOCK,
                              .enqueue = true,
                              .name = {"name", 4},
                              .id = id,
                              .lease_ms = 30000 + (choice & 8),
                              .token = choice & 16,
                              .n = 2,
                              .data = "data",
                              .data_length = verb == SNIB__WRITE ? 4 : 0};
        struct snib__tag tag = {.object = w, .cookie = verb, .attempt = w->asked++};

        if (choice & 16 && w->kind == SNIB_KIND_PERMITS && verb == SNIB__RELEASE) {
                op.permits = permits;
                op.permit_count = 1;
        }
        w->engine->ops->submit(w->engine, tag, &op, w->now);
}

static void start(struct world *w)
{
        struct snib__url url = {.scheme = "redis", .has_authority = true, .host = "memory"};
        struct snib__engine_config config = {
            .url = &url, .uuid = "00000001-0000-4000-8000-000000000000", .timeout_ms = 3000, .seed = 1};

        w->now = SNIB__S;
        snib__assert(snib__redis_open_with(&w->engine, &config, &memory_transport, &w->net, w->now, NULL) == 0);
        w->engine->ops->watch(w->engine, &(struct snib__topic){.name = {"name", 4}}, w->now);
        if (w->kind > 0)
                w->engine->ops->watch(w->engine, &(struct snib__topic){.name = {"name", 4}, .kind = w->kind, .id = id},
                                      w->now);
        turn(w);
        memory_push(&w->net.conn[0], "*0\r\n+PONG\r\n", 11);
        memory_push(&w->net.conn[1], "+PONG\r\n", 7);
        turn(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct world world = {0}, *w = &world;
        const uint8_t *other;
        uint8_t choice;

        if (size < 2)
                return 0;
        choice = *data++;
        w->kind = *data++ % (SNIB_KIND_REGISTER + 3) - 1;
        w->renewals = w->kind > SNIB_KIND_REGISTER;
        if (w->renewals)
                w->kind = -1;
        size -= 2;
        other = size ? memchr(data, 0xff, size) : NULL;
        start(w);
        for (unsigned i = 0; i < REQUESTS; i++)
                ask(w, i ? choice + i : choice);
        w->engine->ops->list(w->engine, (struct snib__tag){.object = w, .cookie = SNIB__QUERY, .attempt = REQUESTS},
                             w->now);
        w->net.conn[0].recv_max = w->net.conn[1].recv_max = choice >> 5;
        memory_push(&w->net.conn[0], data, other ? (size_t)(other - data) : size);
        if (other)
                memory_push(&w->net.conn[1], other + 1, size - (size_t)(other + 1 - data));
        for (int i = 0; i < 20; i++)
                turn(w);
        w->net.conn[0].end = w->net.conn[1].end = true;
        for (int i = 0; i < 300 && w->net.conn[0].open; i++)
                turn(w);
        turn(w);
        if (!w->net.conn[0].open || w->net.conn[0].in_at == w->net.conn[0].in_length)
                for (unsigned i = 0; i <= REQUESTS; i++)
                        snib__assert(w->answers[i] == 1 || w->net.conn[0].open);
        w->engine->ops->close(w->engine);
        memory_done(&w->net);
        return 0;
}
