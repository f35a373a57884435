/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches: counted interest in names, mapped to subscriptions of Redisson's channels on the second
 * connection. A message is a hint that anybody may send: it becomes at most one pending note per
 * name, whatever the flood. A channel lives while somebody watches it, while a SUBSCRIBE or
 * UNSUBSCRIBE about it has no answer, and until next() can no longer have handed out its name.
 *
 * A lock with a queue is often waited for again at once. Its subscription lingers for a moment
 * after the last watch, and its messages are told: whoever asks meanwhile and then waits has missed
 * nothing, which WATCHING says by `since`. Each comes with a second one, on which nothing is said,
 * so that the server can tell our clients from others; and before the first the client's own
 * channel is subscribed, for good, on which it alone is told of grants.
 *
 * Every SUBSCRIBE and UNSUBSCRIBE is a request with one answer, so confirmations are matched by
 * order and a confirmation of an earlier subscription is never taken for that of the present one.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/seedbug.h"
#include "engine/redis/internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINGER (250 * SNIB__MS)
/* Beyond, the longest idle goes at once. */
#define IDLE_MAX 64

int snib__watch_compare(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        const struct channel *x = snib__container(a, struct channel, node);
        const struct channel *y = snib__container(b, struct channel, node);
        int order = memcmp(x->text, y->text, x->length < y->length ? x->length : y->length);

        return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* What a topic listens to: a channel of one of the forms, and which face the name has on it. */
struct place {
        enum redis_name form;
        int face;
        size_t tag_length, length;
        char text[SNIB__DERIVED_MAX];
};

/* A fair lock tells every waiter on a channel of its own. */
static bool has_turns(const struct snib__topic *topic)
{
        return topic->kind == SNIB_KIND_FAIR && snib__id_set(&topic->id);
}

/* False: the name is too long. */
static bool place_of(const struct snib__topic *topic, struct place *ret)
{
        if (topic->name.length > SNIB_NAME_MAX)
                return false;
        ret->form = snib__name_channel(topic->kind);
        ret->face = snib__name_braced(ret->form, topic->name);
        ret->length = snib__name_write(ret->form, topic->name, ret->text);
        ret->tag_length = ret->length - snib__name_prefix(ret->form);
        if (has_turns(topic)) {
                size_t id = strlen(topic->id.text);
                ret->text[ret->length++] = ':';
                memcpy(ret->text + ret->length, topic->id.text, id);
                ret->length += id;
        }
        return true;
}

static struct snib__name face_name(const struct channel *c, int face)
{
        return (struct snib__name){c->text + snib__name_prefix(c->form) + face, c->tag_length - 2 * (size_t)face};
}

static struct channel *find(struct redis *r, const char *text, size_t length)
{
        const struct channel key = {.text = text, .length = length};
        struct snib__tree_node *n = snib__tree_seek(&r->channels, &key.node);

        return n && !snib__watch_compare(n, &key.node) ? snib__container(n, struct channel, node) : NULL;
}

static struct channel *channel_new(struct redis *r, enum redis_name form, const char *text, size_t length)
{
        struct channel *c = snib__alloc(sizeof(*c) + length + 1);

        if (!c)
                return NULL;
        memcpy(c->bytes, text, length);
        c->text = c->bytes;
        c->length = length;
        c->form = form;
        c->tag_length = length - snib__name_prefix(form);
        c->face[0].channel = c->face[1].channel = c;
        snib__tree_add(&r->channels, &c->node);
        return c;
}

static void channel_free(struct redis *r, struct channel *c)
{
        snib__tree_remove(&r->channels, &c->node);
        free(c);
}

static bool queues(const struct snib__topic *topic)
{
        return topic->kind == SNIB_KIND_LOCK || topic->kind == SNIB_KIND_FENCED;
}

static struct channel *add(struct redis *r, const struct snib__topic *topic, const struct place *place)
{
        struct channel *c = channel_new(r, place->form, place->text, place->length);
        char text[SNIB__DERIVED_MAX];

        if (!c)
                return NULL;
        c->tag_length = place->tag_length;
        if (has_turns(topic))
                c->id = topic->id;
        if (queues(topic)) /* without memory for it we are taken for somebody else */
                c->listening =
                    channel_new(r, NAME_LISTENING, text, snib__name_write(NAME_LISTENING, topic->name, text));
        return c;
}

/* ---- what is told of a face */

static bool write_watching(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        const struct face *f = snib__container(l, struct face, watching);

        (void)owner;
        *ret = (struct snib__note){.kind = SNIB__NOTE_WATCHING,
                                   .id = f->channel->id,
                                   .name = face_name(f->channel, f == &f->channel->face[1]),
                                   .since = f->since};
        return false;
}

/* A waiter's own channel says that its turn has come, which it has yet to take. */
static bool write_changed(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        struct face *f = snib__container(l, struct face, changed);

        (void)owner;
        *ret = (struct snib__note){.kind = snib__id_set(&f->channel->id) ? SNIB__NOTE_GRANTED : SNIB__NOTE_CHANGED,
                                   .id = f->channel->id,
                                   .name = face_name(f->channel, f == &f->channel->face[1]),
                                   .all = f->all,
                                   .since = f->since};
        f->all = false;
        return false;
}

/* A channel lives until the sweep after its last note was taken. */
static const struct snib__letter_kind watching_letter = {.write = write_watching},
                                      changed_letter = {.write = write_changed};

/* ---- channels */

static bool watched(const struct channel *c)
{
        return c->face[0].watches || c->face[1].watches;
}

static void tell_watching(struct redis *r, struct channel *c, snib__ns now)
{
        for (int i = 0; i < 2; i++) {
                c->face[i].since = now;
                if (c->face[i].watches)
                        snib__outbox_post(&r->outbox, &c->face[i].watching, &watching_letter);
        }
}

static void send_one(struct redis *r, struct channel *c, enum request_kind kind, snib__ns now)
{
        const char *command = kind == REQUEST_SUBSCRIBE ? "SUBSCRIBE" : "UNSUBSCRIBE";
        struct request *q;

        if (r->subscriptions.net.state != SNIB__LINK_READY)
                return;
        q = snib__redis_request(r, kind, now);
        if (q)
                q->channel = c;
        if (!q || !snib__command_send(&r->subscriptions, q, 2, (const char *[]){command, c->text},
                                      (const size_t[]){strlen(command), c->length}, now)) {
                /* Without memory for a few bytes: a fresh connection subscribes everything
                 * again. */
                if (q)
                        snib__redis_request_free(r, q);
                r->subscriptions.net.broken = true;
                return;
        }
        c->in_flight++;
        c->effective = false;
}

static void send(struct redis *r, struct channel *c, enum request_kind kind, snib__ns now)
{
        send_one(r, c, kind, now);
        if (c->listening)
                send_one(r, c->listening, kind, now);
}

/* Before the first lock's channel, so that it is in effect before that one is. Without memory
 * waiters poll. */
static void listen_for_grants(struct redis *r, snib__ns now)
{
        char text[64];

        if (r->granted)
                return;
        r->granted =
            channel_new(r, NAME_GRANTED, text, (size_t)snprintf(text, sizeof(text), "snib_granted:%s", r->uuid));
        if (r->granted)
                send_one(r, r->granted, REQUEST_SUBSCRIBE, now);
}

bool snib__watch_hears_grants(const struct redis *r)
{
        return r->granted && r->granted->effective;
}

/* ---- idle ones */

static void not_idle(struct redis *r, struct channel *c)
{
        r->idle_count -= snib__list_linked(&c->idle);
        snib__list_remove(&c->idle);
}

static void drop(struct redis *r, struct channel *c, snib__ns now)
{
        not_idle(r, c);
        for (int i = 0; i < 2; i++) {
                c->face[i].lingers = c->face[i].all = false;
                snib__outbox_withdraw(&c->face[i].changed);
        }
        r->sweep = true;
        send(r, c, REQUEST_UNSUBSCRIBE, now);
}

static struct channel *longest_idle(const struct redis *r)
{
        return snib__list_empty(&r->idle) ? NULL : snib__container(r->idle.next, struct channel, idle);
}

static void linger(struct redis *r, struct channel *c, snib__ns now)
{
        if (r->idle_count == IDLE_MAX)
                drop(r, longest_idle(r), now);
        c->idle_until = snib__after(now, LINGER);
        snib__list_append(&r->idle, &c->idle);
        r->idle_count++;
}

snib__ns snib__watch_due(const struct redis *r)
{
        const struct channel *c = longest_idle(r);

        return c ? c->idle_until : SNIB__NEVER;
}

void snib__watch_expire(struct redis *r, snib__ns now)
{
        while (snib__watch_due(r) <= now)
                drop(r, longest_idle(r), now);
}

/* ---- watches */

void snib__watch_add(struct redis *r, const struct snib__topic *topic, snib__ns now)
{
        struct place place;
        struct channel *c;
        struct face *f;
        bool first;

        if (!place_of(topic, &place))
                return;
        if (queues(topic))
                listen_for_grants(r, now);
        c = find(r, place.text, place.length);
        if (!c && !(c = add(r, topic, &place)))
                return; /* the waiter polls */
        first = !watched(c) && !snib__list_linked(&c->idle);
        f = &c->face[place.face];
        if (!f->watches && !f->lingers)
                f->since = now;
        r->watched += f->watches++ == 0;
        f->elections += topic->kind == SNIB_KIND_ELECTION;
        not_idle(r, c);
        if (first)
                send(r, c, REQUEST_SUBSCRIBE, now);
        else if (c->effective)
                snib__outbox_post(&r->outbox, &f->watching, &watching_letter);
}

void snib__watch_remove(struct redis *r, const struct snib__topic *topic, snib__ns now)
{
        struct place place;
        struct channel *c = place_of(topic, &place) ? find(r, place.text, place.length) : NULL;
        struct face *f = c ? &c->face[place.face] : NULL;

        if (!f || !f->watches)
                return;
        f->elections -= topic->kind == SNIB_KIND_ELECTION && f->elections > 0;
        if (--f->watches)
                return;
        r->watched--;
        snib__outbox_withdraw(&f->watching);
        f->lingers = c->listening && c->effective;
        if (!f->lingers) {
                f->all = false;
                snib__outbox_withdraw(&f->changed);
        }
        if (watched(c))
                return;
        if (f->lingers)
                linger(r, c, now);
        else
                drop(r, c, now);
}

void snib__watch_subscribe_all(struct redis *r, snib__ns now)
{
        if (r->granted)
                send_one(r, r->granted, REQUEST_SUBSCRIBE, now);
        for (struct snib__tree_node *n = snib__tree_first(&r->channels); n; n = snib__tree_next(n)) {
                struct channel *c = snib__container(n, struct channel, node);
                if (watched(c))
                        send(r, c, REQUEST_SUBSCRIBE, now);
        }
}

void snib__watch_disconnected(struct redis *r)
{
        for (struct snib__tree_node *n = snib__tree_first(&r->channels); n; n = snib__tree_next(n)) {
                struct channel *c = snib__container(n, struct channel, node);
                c->in_flight = 0;
                c->effective = false;
        }
        while (!snib__list_empty(&r->idle))
                drop(r, longest_idle(r), 0);
        r->sweep = true;
}

static bool needed(const struct redis *r, const struct channel *c)
{
        return watched(c) || c->in_flight || snib__list_linked(&c->idle) || (c->listening && c->listening->in_flight) ||
               c->form == NAME_LISTENING || c == r->granted;
}

/* Frees what nobody needs. Only from process(): until then next() may have handed out a channel's
 * name. */
void snib__watch_sweep(struct redis *r)
{
        struct snib__tree_node *next;

        if (!r->sweep)
                return;
        r->sweep = false;
        for (struct snib__tree_node *n = snib__tree_first(&r->channels); n; n = next) {
                struct channel *c = snib__container(n, struct channel, node);
                next = snib__tree_next(n);
                if (needed(r, c))
                        continue;
                if (c->listening && next == &c->listening->node)
                        next = snib__tree_next(next);
                if (c->listening)
                        channel_free(r, c->listening);
                channel_free(r, c);
        }
}

void snib__watch_done(struct redis *r)
{
        for (struct snib__tree_node *n = snib__tree_first(&r->channels); n; n = snib__tree_first(&r->channels))
                channel_free(r, snib__container(n, struct channel, node));
}

static bool is_text(const struct redis *r, const struct snib__resp_value *v, const char *text, size_t length)
{
        return v->type == SNIB__RESP_STRING && v->length == length &&
               !memcmp(snib__resp_text(r->subscriptions.resp, v), text, length);
}

/* The answer to SUBSCRIBE or UNSUBSCRIBE: {command in lower case, channel, number}. A refusal
 * (rights) leaves the waiters polling. */
bool snib__watch_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct channel *c = q->channel;
        bool subscribe = q->kind == REQUEST_SUBSCRIBE;
        bool refused = v->type == SNIB__RESP_ERROR;

        if (!refused && (count != 4 || v->type != SNIB__RESP_ARRAY ||
                         !is_text(r, &v[1], subscribe ? "subscribe" : "unsubscribe", subscribe ? 9 : 11) ||
                         !is_text(r, &v[2], c->text, c->length) || v[3].type != SNIB__RESP_INTEGER))
                return false;
        if (refused) {
                const char *text = snib__resp_text(r->subscriptions.resp, v);
                r->subscriptions.net.broken |= snib__refusal_find(text)->close;
                snib__redis_trace(r, "redis: subscriptions: the server answered \"%.120s\"; waiters poll", text);
        }
        snib__assert(c->in_flight > 0);
        c->in_flight--;
        r->sweep |= !watched(c);
        c->effective = subscribe && !refused && !c->in_flight;
        if (c->effective)
                tell_watching(r, c, now);
        snib__redis_request_free(r, q);
        return true;
}

/* What a message lets in. */
enum effect { NOBODY = 0, OBSERVERS, ONE, ALL };

/* Locks: 0 one waiter, 1 all; 2 is the beginning of a term of an election. Semaphores: the number
 * of permits that are there now, of which whoever takes some leaves the rest to the next. Latches:
 * the gate opens or closes. Registers: a new version. */
static enum effect effect_of(const struct redis *r, const struct channel *c, const struct snib__resp_value *v)
{
        const char *text = snib__resp_text(r->subscriptions.resp, v);
        bool number = v->length > 0 && v->length < 20 && strspn(text, "0123456789") == v->length;

        switch (c->form) {
        case NAME_SEMAPHORE_CHANNEL:
                return number && strspn(text, "0") < v->length ? ONE : NOBODY;
        case NAME_LATCH_CHANNEL:
                return number ? ALL : NOBODY;
        case NAME_REGISTER_CHANNEL:
                return ALL;
        case NAME_LISTENING:
                return NOBODY;
        default:
                if (is_text(r, v, "0", 1))
                        return ONE;
                if (is_text(r, v, "1", 1))
                        return ALL;
                return number ? OBSERVERS : NOBODY;
        }
}

/* {"message", channel, payload}. */
bool snib__watch_message(struct redis *r, const struct snib__resp_value *v, size_t count)
{
        struct channel *c;
        enum effect effect;

        if (count != 4 || v[2].type != SNIB__RESP_STRING || v[3].type != SNIB__RESP_STRING)
                return false;
        c = find(r, snib__resp_text(r->subscriptions.resp, &v[2]), v[2].length);
        if (!c)
                return false;
        if (c == r->granted) {
                snib__granted_message(r, snib__resp_text(r->subscriptions.resp, &v[3]), v[3].length);
                return true;
        }
        effect = effect_of(r, c, &v[3]);
        if (effect == NOBODY || SNIB__BUG(notification_dropped))
                return true;
        for (int i = 0; i < 2; i++) {
                if ((!c->face[i].watches && !c->face[i].lingers) || (effect == OBSERVERS && !c->face[i].elections))
                        continue;
                c->face[i].all |= effect == ALL;
                snib__outbox_post(&r->outbox, &c->face[i].changed, &changed_letter);
        }
        return true;
}
