/* SPDX-License-Identifier: Apache-2.0 */

/*
 * See pump.h. It is the smallest correct driver of an engine, and therefore also an example of the
 * contract in engine/engine.h.
 */

#include "pump.h"
#include "base/assert.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((noreturn)) static void die(const char *what)
{
        printf("Bail out! pump: %s\n", what);
        fflush(stdout);
        abort();
}

/* Weak: a program that links the runtime has the runtime's. */
__attribute__((weak)) void snib__assert_fail(const char *condition, const char *file, int line)
{
        printf("Bail out! %s:%d: %s\n", file, line, condition);
        fflush(stdout);
        abort();
}

snib__ns pump_now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_BOOTTIME, &t);
        return t.tv_sec * SNIB__S + t.tv_nsec;
}

void pump_config(struct snib__engine_config *ret, const char *url, unsigned number)
{
        struct snib_error err = SNIB_ERROR_INIT;

        *ret = (struct snib__engine_config){.timeout_ms = 3000, .seed = number, .url = calloc(1, sizeof(*ret->url))};
        snprintf(ret->uuid, sizeof(ret->uuid), "%08x-0000-4000-8000-000000000000", number);
        snprintf(ret->who.host, sizeof(ret->who.host), "host%u", number);
        snprintf(ret->who.label, sizeof(ret->who.label), "label%u", number);
        ret->who.pid = 1000 + number;
        if (!ret->url || snib__url_parse(url, ret->url, &err) < 0)
                die(err.text);
}

void pump_config_done(struct snib__engine_config *config)
{
        free(config->url);
}

struct pump *pump_over(struct snib__engine *engine, unsigned number)
{
        struct snib__engine_config config;
        struct pump *p = calloc(1, sizeof(*p));

        if (!p)
                die("out of memory");
        pump_config(&config, "mem:", number);
        p->engine = engine;
        p->who = config.who;
        memcpy(p->uuid, config.uuid, sizeof(p->uuid));
        pump_config_done(&config);
        return p;
}

struct pump *pump_open(const char *url, unsigned number)
{
        struct snib__engine_config config;
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__engine *engine;
        const struct snib__engine_ops *ops;

        pump_config(&config, url, number);
        ops = snib__engine_find(config.url->scheme);
        if (!ops)
                die("no engine for the scheme");
        if (snib__engine_open(&engine, ops, &config, pump_now(), &err) < 0)
                die(err.text);
        pump_config_done(&config);
        return pump_over(engine, number);
}

struct pump *pump_connect(const char *url, unsigned number)
{
        struct pump *p = pump_open(url, number);

        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        return p;
}

void pump_close(struct pump *p)
{
        if (!p)
                return;
        if (p->engine)
                p->engine->ops->close(p->engine);
        free(p);
}

struct snib__id pump_id(struct pump *p)
{
        struct snib__id id;

        snprintf(id.text, sizeof(id.text), "%s:%" PRIu64, p->uuid, ++p->holds);
        return id;
}

static void keep(struct pump *p, const struct snib__note *n)
{
        struct pump_note *k;

        if (p->count == PUMP_NOTES)
                die("too many notes that nobody asks for");
        k = &p->notes[(p->first + p->count++) % PUMP_NOTES];
        k->note = *n;
        if (n->name.length >= sizeof(k->name))
                die("a name is too long");
        if (n->name.length)
                memcpy(k->name, n->name.bytes, n->name.length);
        k->name[n->name.length] = 0;
        snprintf(k->text, sizeof(k->text), "%s", n->reply.error_text ? n->reply.error_text : "");
}

static void take_notes(struct pump *p)
{
        struct snib__note n;

        while (p->engine->ops->next(p->engine, &n))
                keep(p, &n);
}

void pump_turn(struct pump *p, snib__ns until)
{
        struct snib__interest interest = {0};
        struct pollfd fds[SNIB__FDS_MAX];
        snib__ns now = pump_now(), wait;

        p->engine->ops->interest(p->engine, now, &interest);
        wait = interest.kept ? 0 : snib__max(snib__min(interest.deadline, until) - now, 0);
        for (int i = 0; i < interest.count; i++)
                fds[i] = (struct pollfd){.fd = interest.fds[i].fd, .events = interest.fds[i].events};
        if (ppoll(fds, (nfds_t)interest.count, &(struct timespec){wait / SNIB__S, wait % SNIB__S}, NULL) < 0)
                die("poll");
        for (int i = 0; i < interest.count; i++)
                interest.fds[i].events = fds[i].revents;
        p->engine->ops->process(p->engine, &interest, pump_now());
        take_notes(p);
}

static struct pump_note *at(struct pump *p, size_t i)
{
        return &p->notes[(p->first + i) % PUMP_NOTES];
}

/* Takes number i out of the ring. */
static void take(struct pump *p, size_t i, struct pump_note *ret)
{
        *ret = *at(p, i);
        for (; i > 0; i--)
                *at(p, i) = *at(p, i - 1);
        p->first = (p->first + 1) % PUMP_NOTES;
        p->count--;
        ret->note.name.bytes = NULL; /* the caller's copy moves: use ret->name */
        ret->note.reply.error_text = NULL;
}

bool pump_try(struct pump *p, enum snib__note_kind kind, int64_t ms, struct pump_note *ret)
{
        snib__ns until = pump_now() + ms * SNIB__MS;

        for (;;) {
                for (size_t i = 0; i < p->count; i++)
                        if (at(p, i)->note.kind == kind) {
                                take(p, i, ret);
                                return true;
                        }
                if (pump_now() >= until)
                        return false;
                pump_turn(p, until);
        }
}

struct pump_note pump_wait(struct pump *p, enum snib__note_kind kind)
{
        struct pump_note note;
        char text[64];

        if (pump_try(p, kind, PUMP_PATIENCE_MS, &note))
                return note;
        snprintf(text, sizeof(text), "a note of kind %d does not come", (int)kind);
        die(text);
}

void pump_forget(struct pump *p)
{
        p->first = p->count = 0;
}

/* As core does it, where the engine did not take a request. */
static void answer_for(struct pump *p, struct snib__tag tag, bool taken)
{
        struct snib__note n = {.kind = SNIB__NOTE_REPLY, .tag = tag};

        n.reply.status = SNIB__FAILED;
        n.reply.error = SNIB_ENOMEM;
        if (!taken)
                keep(p, &n);
}

uint32_t pump_submit(struct pump *p, const struct snib__op *op)
{
        struct snib__tag tag = {.object = p, .cookie = 7, .attempt = ++p->attempts};

        answer_for(p, tag, p->engine->ops->submit(p->engine, tag, op, pump_now()));
        return tag.attempt;
}

uint32_t pump_list(struct pump *p)
{
        struct snib__tag tag = {.object = p, .cookie = 7, .attempt = ++p->attempts};

        answer_for(p, tag, p->engine->ops->list(p->engine, tag, pump_now()));
        return tag.attempt;
}

struct snib__reply pump_answer(struct pump *p, uint32_t attempt)
{
        static char text[SNIB_ERROR_TEXT_MAX];
        snib__ns until = pump_now() + PUMP_PATIENCE_MS * SNIB__MS;
        struct pump_note found;

        for (;;) {
                for (size_t i = 0; i < p->count; i++) {
                        const struct snib__note *n = &at(p, i)->note;
                        if (n->kind != SNIB__NOTE_REPLY || n->tag.attempt != attempt)
                                continue;
                        if (n->tag.object != p || n->tag.cookie != 7)
                                die("an answer with a strange tag");
                        take(p, i, &found);
                        memcpy(text, found.text, sizeof(text));
                        found.note.reply.error_text = text;
                        return found.note.reply;
                }
                if (pump_now() >= until)
                        die("an answer does not come");
                pump_turn(p, until);
        }
}

struct snib__reply pump_do(struct pump *p, const struct snib__op *op)
{
        return pump_answer(p, pump_submit(p, op));
}

struct snib__op pump_op(struct pump *p, enum snib__verb verb, const char *name, struct snib__id id, int64_t lease_ms)
{
        return (struct snib__op){
            .verb = verb, .name = {name, strlen(name)}, .id = id, .who = &p->who, .lease_ms = lease_ms};
}
