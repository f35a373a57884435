/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the keys of a Redis say about a name: Redisson's format read by somebody who did not write
 * the scripts. What does not fit together is a violation by itself ("model"). Not what the scripts
 * do.
 */

#include "keys.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number so large means for ever, as a score. */
#define SCORE_NEVER 922337203685477.0

__attribute__((format(printf, 3, 4))) static struct key *key(struct fakeredis *redis, struct bytes *name,
                                                             const char *format, ...)
{
        static char text[160];
        va_list args;

        va_start(args, format);
        name->length = (size_t)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        name->at = text;
        return data_find(redis, 0, name);
}

static struct sim_log *log_of(struct sim *w, const char *at, size_t length)
{
        static struct sim_log stranger;
        struct sim_log *log;
        struct snib__id id;

        snprintf(id.text, sizeof(id.text), "%.*s", (int)length, at);
        log = sim_log_of(w, &id);
        if (!log)
                sim_fail(w, SIM_UNSAFE, "S4", "the server has an id that nobody asked for: %s", id.text);
        return log ? log : &stranger;
}

static bool is(const struct bytes *b, const char *text)
{
        return b->length == strlen(text) && memcmp(b->at, text, b->length) == 0;
}

static void sit(struct sim *w, struct sim_truth *t, struct sim_log *log, int64_t expires_ms)
{
        if (t->seats == SIM_SEATS)
                sim_fail(w, SIM_CRASHED, "model", "more seats than the checks have room for");
        else
                t->seat[t->seats++] =
                    (struct sim_seat){.log = log, .expires_ms = expires_ms, .ends = sim_bytes_ends(w, expires_ms)};
}

static void look_at_lock(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        struct key *k = key(redis, &text, "%s", w->names[name]), *token;
        struct sim_log *log;

        if (!k)
                return;
        if (k->type != TYPE_HASH || k->count != 1 || k->expires_ms < 0) {
                sim_fail(w, SIM_UNSAFE, "model", "%s is not a hash of one field with a time to live", w->names[name]);
                return;
        }
        log = log_of(w, k->fields[0].name.at, k->fields[0].name.length);
        sit(w, t, log, k->expires_ms);
        token = log->kind == SNIB_KIND_FENCED || log->kind == SNIB_KIND_ELECTION
                    ? key(redis, &text, "redisson_lock_token:{%s}", w->names[name])
                    : NULL;
        if (token && token->type == TYPE_STRING)
                t->seat[0].token = strtoll(token->string.at, NULL, 10);
}

/* Whose time a score is: over when the clock shows it. */
static snib__ns score_ends(struct sim *w, double score)
{
        return score >= SCORE_NEVER ? SNIB__NEVER : sim_bytes_ends(w, (int64_t)score - 1);
}

static void look_at_queue(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        struct key *queue = key(redis, &text, "redisson_lock_queue:{%s}", w->names[name]);
        struct key *turns = key(redis, &text, "redisson_lock_timeout:{%s}", w->names[name]);
        struct key *alive = key(redis, &text, "snib_waiting:{%s}", w->names[name]);
        size_t waiters = queue ? queue->count : 0;

        if (waiters != (turns ? turns->count : 0) || waiters != (alive ? alive->count : 0) || waiters > SIM_WAITERS) {
                sim_fail(w, SIM_UNSAFE, "model", "%s: %d wait, %d have a turn, %d live", w->names[name], (int)waiters,
                         turns ? (int)turns->count : 0, alive ? (int)alive->count : 0);
                return;
        }
        for (size_t i = 0; i < waiters; i++) {
                const struct bytes *id = &queue->fields[i].name;
                const struct field *until = data_field(alive, id);

                if (!until || !data_field(turns, id)) {
                        sim_fail(w, SIM_UNSAFE, "model", "%s: a waiter without a score", w->names[name]);
                        return;
                }
                t->place[t->places++] =
                    (struct sim_place){.log = log_of(w, id->at, id->length), .ends = score_ends(w, until->score)};
        }
}

static bool anybody_hears(struct fakeredis *redis, const struct bytes *id)
{
        char channel[64];
        int length = snprintf(channel, sizeof(channel), "snib_granted:%.36s", id->at);

        snib__list_each (it, &redis->conns) {
                const struct fakeredis_conn *c = snib__container(it, struct fakeredis_conn, link);

                snib__list_each (l, (struct snib__list *)&c->subscriptions) {
                        const struct subscription *s = snib__container(l, struct subscription, link);

                        if (!c->closed && s->channel.length == (size_t)length &&
                            memcmp(s->channel.at, channel, s->channel.length) == 0)
                                return true;
                }
        }
        return false;
}

static int64_t last_number(const struct bytes *text)
{
        size_t at = text->length;

        while (at > 0 && text->at[at - 1] != ' ')
                at--;
        return strtoll(text->at + at, NULL, 10);
}

/* Who waits for a lock that is not fair. Those whose time is over are in the way of nobody, and
 * neither is the second place of one that was put there twice. */
static void look_at_waiters(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        bool braces = !strchr(w->names[name], '{');
        struct key *queue = key(redis, &text, braces ? "snib_queue:{%s}" : "snib_queue:%s", w->names[name]);

        if (queue && queue->expires_ms < 0)
                sim_fail(w, SIM_UNSAFE, "model", "%s: the queue has no time to live", w->names[name]);
        for (size_t i = 0; queue && i < queue->count && t->places < SIM_WAITERS; i++) {
                const char *blank = memchr(queue->fields[i].name.at, ' ', queue->fields[i].name.length);
                struct bytes id = {.at = queue->fields[i].name.at};
                int64_t ends_ms = last_number(&queue->fields[i].name) * 1000 + SNIB__WAITER_LEASE_MS;
                struct sim_log *log;
                bool again = false;

                id.length = blank ? (size_t)(blank - id.at) : 0;
                log = log_of(w, id.at, id.length);
                for (int k = 0; k < t->places; k++)
                        again |= t->place[k].log == log;
                if (!again)
                        t->place[t->places++] = (struct sim_place){
                            .log = log, .ends = sim_bytes_ends(w, ends_ms - 1), .deaf = !anybody_hears(redis, &id)};
        }
}

static void look_at_side(struct sim *w, struct fakeredis *redis, int name, const struct key *k, const struct field *f,
                         struct sim_truth *t)
{
        bool writer = f->name.length > 6 && memcmp(f->name.at + f->name.length - 6, ":write", 6) == 0;
        struct bytes text;
        struct key *hold;

        if (writer) {
                sit(w, t, log_of(w, f->name.at, f->name.length - 6), k->expires_ms);
                return;
        }
        hold = key(redis, &text, "{%s}:%.*s:rwlock_timeout:1", w->names[name], (int)f->name.length, f->name.at);
        if (!hold)
                return; /* dead, and nobody has noticed yet */
        sit(w, t, log_of(w, f->name.at, f->name.length), hold->expires_ms);
        if (hold->expires_ms > k->expires_ms)
                sim_fail(w, SIM_UNSAFE, "model", "%s ends before one of its readers does", w->names[name]);
}

static void look_at_rw(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        struct key *k = key(redis, &text, "%s", w->names[name]);
        const struct field *mode = NULL;
        bool writer = false;

        if (!k)
                return;
        if (k->type != TYPE_HASH || k->expires_ms < 0) {
                sim_fail(w, SIM_UNSAFE, "model", "%s is not a hash with a time to live", w->names[name]);
                return;
        }
        for (size_t i = 0; i < k->count; i++) {
                if (is(&k->fields[i].name, "mode"))
                        mode = &k->fields[i];
                else
                        look_at_side(w, redis, name, k, &k->fields[i], t);
        }
        for (int i = 0; i < t->seats; i++)
                writer |= t->seat[i].log->kind == SNIB_KIND_WRITE;
        if (!mode || is(&mode->value, "write") != writer)
                sim_fail(w, SIM_UNSAFE, "model", "%s is in the wrong mode", w->names[name]);
}

static void look_at_number(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        struct key *k = key(redis, &text, "%s", w->names[name]);

        if (k && (k->type != TYPE_STRING || !bytes_number(&k->string, &t->value)))
                sim_fail(w, SIM_UNSAFE, "model", "%s is not a number", w->names[name]);
        t->exists = k;
        if (k && k->expires_ms >= 0)
                t->exists_until = sim_bytes_ends(w, k->expires_ms);
}

/* Whose permit it is, and which of its. */
static struct sim_log *permit(struct sim *w, int name, const struct bytes *id, int *ret_index)
{
        char hex[33];

        for (size_t i = 0; i < 16 && id->length == 16; i++)
                snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id->at[i]);
        for (int i = w->log_count - 1; i >= 0 && id->length == 16; i--)
                for (*ret_index = 0; w->logs[i]->name == name && *ret_index < SIM_PERMITS; ++*ret_index)
                        if (strcmp(w->logs[i]->permit[*ret_index], hex) == 0)
                                return w->logs[i];
        return NULL;
}

static void look_at_permits(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        struct key *out = key(redis, &text, "{%s}:timeout", w->names[name]);

        look_at_number(w, redis, name, t);
        t->limit = t->value + (out ? (int64_t)out->count : 0);
        for (size_t i = 0; out && i < out->count; i++) {
                double score = out->fields[i].score;
                int index;
                struct sim_log *log = permit(w, name, &out->fields[i].name, &index);

                if (!log) {
                        sim_fail(w, SIM_UNSAFE, "S4", "a permit that nobody asked for is out");
                        return;
                }
                sit(w, t, log, (int64_t)score);
                if (t->seats == SIM_SEATS)
                        return;
                t->seat[t->seats - 1].index = index;
                t->seat[t->seats - 1].ends = score_ends(w, score);
        }
}

static void look_at_register(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *t)
{
        struct bytes text;
        struct key *k = key(redis, &text, "%s", w->names[name]);
        long number = -1;

        if (!k)
                return;
        for (size_t i = 0; i < k->count; i++) {
                const struct field *f = &k->fields[i];

                if (is(&f->name, "version"))
                        bytes_number(&f->value, &t->version);
                else if (is(&f->name, "value") && f->value.length > 1)
                        number = strtol(f->value.at + 1, NULL, 10);
        }
        t->exists = true;
        if (number >= 0 && number < w->log_count)
                t->writer = w->logs[number];
}

static bool same(const struct sim_truth *a, const struct sim_truth *b)
{
        return a->seats == b->seats && a->places == b->places && a->exists == b->exists &&
               a->exists_until == b->exists_until && a->value == b->value && a->limit == b->limit &&
               a->version == b->version && a->writer == b->writer &&
               memcmp(a->seat, b->seat, (size_t)a->seats * sizeof(a->seat[0])) == 0 &&
               memcmp(a->place, b->place, (size_t)a->places * sizeof(a->place[0])) == 0;
}

void sim_keys_look(struct sim *w, struct fakeredis *redis, int name, struct sim_truth *ret)
{
        static struct sim_truth t;

        t.edition = ret->edition + 1;
        t.seats = t.places = 0;
        t.exists = false;
        t.exists_until = SNIB__NEVER;
        t.value = t.limit = t.version = 0;
        t.writer = NULL;
        switch (w->options.subject[name]) {
        case SIM_FAIR:
                look_at_queue(w, redis, name, &t);
                look_at_lock(w, redis, name, &t);
                break;
        case SIM_RW:
                look_at_rw(w, redis, name, &t);
                break;
        case SIM_SEMAPHORE:
        case SIM_LATCH:
                look_at_number(w, redis, name, &t);
                break;
        case SIM_PERMIT:
                look_at_permits(w, redis, name, &t);
                break;
        case SIM_REGISTER:
                look_at_register(w, redis, name, &t);
                break;
        case SIM_PLAIN:
                look_at_waiters(w, redis, name, &t);
                look_at_lock(w, redis, name, &t);
                break;
        default:
                look_at_lock(w, redis, name, &t);
        }
        if (!same(&t, ret))
                *ret = t;
}
