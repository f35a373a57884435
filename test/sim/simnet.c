/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The engine of messages, and the way they take. It keeps the contract of engine/engine.h as long
 * as the seed is not hostile; a hostile one reorders, repeats and loses answers, which the core has
 * to bear as well. Not the server.
 */

#include "simnet.h"
#include <string.h>

#define FLYING_MAX 128
#define DIAL_TIMEOUT (2 * SNIB__S)

struct flying {
        struct snib__tag tag;
        int name;
        snib__ns sent_at; /* local */
};

struct simnet {
        struct snib__engine base;
        struct sim *world;
        struct sim_client *client;
        struct snib__facts facts;
        bool up, dialing;
        uint64_t connection;
        snib__ns redial_at, dial_limit; /* local */
        int failures;
        int flying_count;
        struct flying flying[FLYING_MAX];
        snib__ns part_back[SIM_NAMES]; /* local: when the link of this name is up again, 0: it is */
        int watches[SIM_NAMES];
        bool watching[SIM_NAMES];
        snib__ns watching_since[SIM_NAMES];
        struct snib__list notes;
};

struct noted {
        struct snib__list link;
        struct snib__note note;
};

static const struct snib__engine_ops queue_engine, watch_engine;

/* ---- messages ---- */

struct sim_message *sim_message_new(struct sim *w, enum sim_message_kind kind, int client, uint32_t incarnation,
                                    uint64_t connection)
{
        struct snib__list *l = snib__list_take(&w->spare[0]);
        struct sim_message *m = l ? snib__container(l, struct sim_message, link) : sim_alloc(w, sizeof(*m));

        memset(m, 0, sizeof(*m));
        m->world = w;
        m->kind = kind;
        m->client = client;
        m->incarnation = incarnation;
        m->connection = connection;
        return m;
}

void sim_message_free(struct sim *w, struct sim_message *m)
{
        snib__list_remove(&m->link);
        snib__list_append(&w->spare[0], &m->link);
}

static void arrive_up(struct sim *w, struct sim_event *e)
{
        struct sim_message *m = snib__container(e, struct sim_message, event);

        snib__list_remove(&m->link);
        sim_server_take(w, m);
        sim_message_free(w, m);
}

/* Where names have links of their own only what is about one name is in order. */
static int order_of(const struct sim *w, const struct sim_message *m)
{
        bool of_all = m->kind == SIM_HELLO || m->kind == SIM_WELCOME || m->kind == SIM_RESET;

        return w->options.parts && !of_all ? 1 + m->name : 0;
}

void sim_message_up(struct sim *w, struct sim_message *m)
{
        struct sim_way *way = &sim_messages_of(w)->way[m->client];
        snib__ns *last = &way->last_up[order_of(w, m)];

        if (way->mute_up == m->connection || (!w->calm && sim_chance(w, w->options.loss_share))) {
                sim_trace(w, m->client, "drowned", m->kind, "to the server");
                sim_message_free(w, m);
                return;
        }
        *last = snib__max(*last + 1, w->now + sim_delay(w));
        m->event.run = arrive_up;
        snib__list_append(&way->flight, &m->link);
        sim_at(w, &m->event, *last);
}

static void arrive_down(struct sim *w, struct sim_event *e)
{
        struct sim_message *m = snib__container(e, struct sim_message, event);
        struct sim_client *c = &w->clients[m->client];

        if (!c->alive || c->incarnation != m->incarnation) {
                sim_message_free(w, m);
                return;
        }
        snib__list_append(&sim_messages_of(w)->way[m->client].inbox, &m->link);
        sim_client_poke(w, c);
}

static void fly_down(struct sim *w, struct sim_message *m, bool ordered)
{
        snib__ns *last = &sim_messages_of(w)->way[m->client].last_down[order_of(w, m)];
        snib__ns due = w->now + sim_delay(w);

        if (ordered)
                due = *last = snib__max(*last + 1, due);
        m->event.run = arrive_down;
        sim_at(w, &m->event, due);
}

void sim_message_down(struct sim *w, struct sim_message *m, bool hint)
{
        const struct sim_options *o = &w->options;
        bool hostile = !w->calm && sim_chance(w, o->hostile_share);
        bool lost = !w->calm && (sim_chance(w, o->loss_share) || (hint && sim_chance(w, o->note_loss_share)));

        if (lost || sim_messages_of(w)->way[m->client].mute_down == m->connection) {
                sim_trace(w, m->client, "drowned", m->kind, "to the client");
                sim_message_free(w, m);
                return;
        }
        if (hostile || (hint && !w->calm && sim_chance(w, o->note_dup_share))) {
                struct sim_message *twin = sim_message_new(w, m->kind, m->client, m->incarnation, m->connection);
                struct sim_event own = twin->event;

                *twin = *m;
                twin->event = own;
                memset(&twin->link, 0, sizeof(twin->link));
                fly_down(w, twin, false);
        }
        fly_down(w, m, !hostile);
}

/* ---- the engine ---- */

static struct snib__note *note(struct simnet *e, enum snib__note_kind kind)
{
        struct snib__list *l = snib__list_take(&e->world->spare[1]);
        struct noted *n = l ? snib__container(l, struct noted, link) : sim_alloc(e->world, sizeof(*n));

        memset(n, 0, sizeof(*n));
        n->note.kind = kind;
        snib__list_append(&e->notes, &n->link);
        return &n->note;
}

static void note_failed(struct simnet *e, struct snib__tag tag, int code, const char *why)
{
        struct snib__note *n = note(e, SNIB__NOTE_REPLY);

        n->tag = tag;
        n->reply.status = SNIB__FAILED;
        n->reply.error = code;
        n->reply.error_text = why;
}

static void note_name(struct simnet *e, struct snib__note *n, int name)
{
        n->name = (struct snib__name){e->world->names[name], strlen(e->world->names[name])};
}

static struct sim_message *message(struct simnet *e, enum sim_message_kind kind)
{
        return sim_message_new(e->world, kind, e->client->index, e->client->incarnation, e->connection);
}

static void subscribe(struct simnet *e, int name, bool on)
{
        struct sim_message *m = message(e, on ? SIM_SUBSCRIBE : SIM_UNSUBSCRIBE);

        m->name = name;
        sim_message_up(e->world, m);
}

static void link_down(struct simnet *e, snib__ns now, const char *why)
{
        int doublings = e->failures > 6 ? 6 : e->failures;
        struct snib__note *n;

        for (int i = 0; i < e->flying_count; i++)
                note_failed(e, e->flying[i].tag, SNIB_EUNKNOWN, why);
        e->flying_count = 0;
        memset(e->part_back, 0, sizeof(e->part_back));
        n = note(e, SNIB__NOTE_LINK_DOWN);
        n->reply.error = SNIB_EUNREACHABLE;
        n->reply.error_text = why;
        e->up = e->dialing = false;
        e->failures++;
        memset(e->watching, 0, sizeof(e->watching));
        e->redial_at = now + sim_between(e->world, 0, (10 * SNIB__MS) << doublings);
}

/* Our end gives the connection up. The server will not hear of it; what is on its way to it arrives
 * or not. */
static void abandon(struct simnet *e, snib__ns now, const char *why)
{
        sim_trace(e->world, e->client->index, "abandon", (int64_t)e->connection, "%s", why);
        link_down(e, now, why);
}

static void dial(struct simnet *e, snib__ns now)
{
        e->connection = ++sim_messages_of(e->world)->connections;
        sim_messages_of(e->world)->way[e->client->index].connection = e->connection;
        e->dialing = true;
        e->dial_limit = now + DIAL_TIMEOUT;
        sim_message_up(e->world, message(e, SIM_HELLO));
}

static void take_welcome(struct simnet *e)
{
        if (!e->dialing)
                return;
        e->dialing = false;
        e->up = true;
        e->failures = 0;
        note(e, SNIB__NOTE_LINK_UP);
        for (int i = 0; i < SIM_NAMES; i++)
                if (e->watches[i])
                        subscribe(e, i, true);
}

static void take_reply(struct simnet *e, struct sim_message *m)
{
        struct snib__note *n;
        int i = 0;

        while (i < e->flying_count &&
               (e->flying[i].tag.cookie != m->tag.cookie || e->flying[i].tag.attempt != m->tag.attempt))
                i++;
        if (i == e->flying_count && !e->world->options.hostile_share)
                return;
        if (i < e->flying_count)
                memmove(&e->flying[i], &e->flying[i + 1], (size_t)(--e->flying_count - i) * sizeof(e->flying[0]));
        n = note(e, SNIB__NOTE_REPLY);
        n->tag = m->tag;
        n->reply = m->reply;
}

/* The link of one name broke, and what was on its way over it has no answer. */
static void part_down(struct simnet *e, int name, snib__ns now)
{
        int left = 0;

        for (int i = 0; i < e->flying_count; i++) {
                if (e->flying[i].name == name)
                        note_failed(e, e->flying[i].tag, SNIB_EUNKNOWN, "the connection of this name was reset");
                else
                        e->flying[left++] = e->flying[i];
        }
        e->flying_count = left;
        e->watching[name] = false;
        e->part_back[name] = now + sim_between(e->world, SNIB__MS, 500 * SNIB__MS);
}

static void part_up(struct simnet *e, int name)
{
        e->part_back[name] = 0;
        note(e, SNIB__NOTE_RELINKED)->part = (uint64_t)name;
        if (e->watches[name])
                subscribe(e, name, true);
}

static void tell_watching(struct simnet *e, int name)
{
        struct snib__note *n = note(e, SNIB__NOTE_WATCHING);

        note_name(e, n, name);
        n->since = e->watching_since[name];
}

static void take_hint(struct simnet *e, struct sim_message *m, snib__ns now)
{
        if (e->part_back[m->name])
                return;
        if (m->kind == SIM_WATCHING && e->watches[m->name]) {
                e->watching[m->name] = true;
                e->watching_since[m->name] = now;
                tell_watching(e, m->name);
        } else if ((m->kind == SIM_CHANGED || m->kind == SIM_CHANGED_ALL) && e->watches[m->name]) {
                struct snib__note *n = note(e, SNIB__NOTE_CHANGED);

                note_name(e, n, m->name);
                n->all = m->kind == SIM_CHANGED_ALL;
        } else if (m->kind == SIM_GRANTED || m->kind == SIM_ENDED) {
                struct snib__note *n = note(e, m->kind == SIM_GRANTED ? SNIB__NOTE_GRANTED : SNIB__NOTE_ENDED);

                note_name(e, n, m->name);
                n->id = m->id;
                n->tag.attempt = m->tag.attempt;
                n->reply.token = m->reply.token;
                n->reply.lease_ms = m->reply.lease_ms;
        }
}

static void take(struct simnet *e, struct sim_message *m, snib__ns now)
{
        if (m->connection != e->connection || (!e->up && !e->dialing))
                return; /* of a connection that is no more */
        if (m->kind == SIM_WELCOME)
                take_welcome(e);
        else if (m->kind == SIM_RESET)
                link_down(e, now, "the connection was reset");
        else if (m->kind == SIM_PART_RESET)
                part_down(e, m->name, now);
        else if (m->kind == SIM_REPLY)
                take_reply(e, m);
        else
                take_hint(e, m, now);
}

static void simnet_process(struct snib__engine *base, const struct snib__interest *ready, snib__ns now)
{
        struct simnet *e = snib__container(base, struct simnet, base);
        struct snib__list *inbox = &sim_messages_of(e->world)->way[e->client->index].inbox, *l;

        (void)ready;
        while ((l = snib__list_take(inbox))) {
                struct sim_message *m = snib__container(l, struct sim_message, link);

                take(e, m, now);
                sim_message_free(e->world, m);
        }
        if (e->up && e->flying_count && now >= e->flying[0].sent_at + e->world->options.engine_timeout)
                abandon(e, now, "an answer is overdue");
        if (e->dialing && now >= e->dial_limit)
                abandon(e, now, "nobody answers");
        if (!e->up && !e->dialing && now >= e->redial_at)
                dial(e, now);
        for (int i = 0; i < SIM_NAMES; i++)
                if (e->part_back[i] && now >= e->part_back[i])
                        part_up(e, i);
}

static void simnet_interest(struct snib__engine *base, snib__ns now, struct snib__interest *ret)
{
        struct simnet *e = snib__container(base, struct simnet, base);

        ret->count = 0;
        ret->deadline = SNIB__NEVER;
        if (!snib__list_empty(&e->notes))
                ret->deadline = now;
        else if (e->up && e->flying_count)
                ret->deadline = e->flying[0].sent_at + e->world->options.engine_timeout;
        else if (e->dialing)
                ret->deadline = e->dial_limit;
        else if (!e->up)
                ret->deadline = e->redial_at;
        for (int i = 0; i < SIM_NAMES; i++)
                if (e->part_back[i])
                        ret->deadline = snib__min(ret->deadline, e->part_back[i]);
}

static bool simnet_next(struct snib__engine *base, struct snib__note *ret)
{
        struct simnet *e = snib__container(base, struct simnet, base);
        struct snib__list *l = snib__list_take(&e->notes);

        if (!l)
                return false;
        *ret = snib__container(l, struct noted, link)->note;
        snib__list_append(&e->world->spare[1], l);
        return true;
}

static int name_of(const struct simnet *e, struct snib__name name)
{
        int i = 0;

        while (memcmp(e->world->names[i], name.bytes, name.length) != 0)
                i++;
        return i;
}

static bool simnet_submit(struct snib__engine *base, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        struct simnet *e = snib__container(base, struct simnet, base);
        int name = name_of(e, op->name);
        struct sim_message *m;

        if (!e->up || e->flying_count == FLYING_MAX || e->part_back[name]) {
                note_failed(e, tag, SNIB_EUNREACHABLE,
                            e->part_back[name] || !e->up ? "not connected" : "the server does not read");
                return true;
        }
        e->flying[e->flying_count++] = (struct flying){tag, name, now};
        m = message(e, SIM_OP);
        m->tag = tag;
        m->op = *op;
        m->name = name;
        m->op.name = (struct snib__name){e->world->names[m->name], op->name.length};
        sim_message_up(e->world, m);
        return true;
}

static void simnet_watch(struct snib__engine *base, const struct snib__topic *topic, snib__ns now)
{
        struct simnet *e = snib__container(base, struct simnet, base);
        int i = name_of(e, topic->name);

        (void)now;
        if (e->watches[i]++ == 0 && e->up && !e->part_back[i])
                subscribe(e, i, true);
        else if (e->watching[i])
                tell_watching(e, i);
}

static void simnet_unwatch(struct snib__engine *base, const struct snib__topic *topic, snib__ns now)
{
        struct simnet *e = snib__container(base, struct simnet, base);
        int i = name_of(e, topic->name);

        (void)now;
        if (--e->watches[i] > 0)
                return;
        e->watching[i] = false;
        if (e->up && !e->part_back[i])
                subscribe(e, i, false);
}

/* The process ends: what was sent arrives, the memory is the world's. */
static void simnet_close(struct snib__engine *base)
{
        struct simnet *e = snib__container(base, struct simnet, base);
        struct snib__list *inbox = &sim_messages_of(e->world)->way[e->client->index].inbox, *l;

        while ((l = snib__list_take(inbox)))
                sim_message_free(e->world, snib__container(l, struct sim_message, link));
}

static bool simnet_concerns(const struct snib__engine *base, const struct snib__note *n, struct snib__name name)
{
        return name_of(snib__container(base, const struct simnet, base), name) == (int)n->part;
}

static const struct snib__facts *simnet_facts(const struct snib__engine *base)
{
        return &snib__container(base, const struct simnet, base)->facts;
}

static const struct snib__engine_ops queue_engine = {.facts = simnet_facts,
                                                     .submit = simnet_submit,
                                                     .interest = simnet_interest,
                                                     .process = simnet_process,
                                                     .next = simnet_next,
                                                     .concerns = simnet_concerns,
                                                     .close = simnet_close};
static const struct snib__engine_ops watch_engine = {.facts = simnet_facts,
                                                     .submit = simnet_submit,
                                                     .watch = simnet_watch,
                                                     .unwatch = simnet_unwatch,
                                                     .interest = simnet_interest,
                                                     .process = simnet_process,
                                                     .next = simnet_next,
                                                     .concerns = simnet_concerns,
                                                     .close = simnet_close};

void sim_simnet_open(struct sim *w, struct sim_client *c)
{
        struct simnet *e = sim_alloc(w, sizeof(*e));

        c->ops = w->options.store == SIM_QUEUE ? &queue_engine : &watch_engine;
        e->base.ops = c->ops;
        e->facts.token_block = w->options.token_block;
        e->facts.queues = w->options.store == SIM_QUEUE ? SNIB__KINDS_ALL & ~SNIB__KIND_BIT(SNIB_KIND_SPIN)
                                                        : SNIB__KIND_BIT(SNIB_KIND_FAIR);
        e->facts.traits = w->options.store == SIM_QUEUE || sim_untold(w) ? 0 : SNIB__TRAIT_WATCH;
        e->facts.poll = sim_untold(w) ? w->options.poll : 0;
        e->world = w;
        e->client = c;
        snib__list_init(&e->notes);
        dial(e, sim_local(w, c));
        c->engine = &e->base;
}
