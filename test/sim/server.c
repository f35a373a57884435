/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server of the world of messages: the production model behind a connection per client. With a
 * queue it tells the waiter whose turn it is and the holder that was ended; without one it tells
 * every subscriber that a name changed. It may be restarted with or without its data and its wall
 * clock may step; its lease clock does not.
 */

#include "simnet.h"
#include <snib/error.h>
#include <string.h>

#define WALL_START ((int64_t)1790000000 * 1000000)

/* Where a grant has one token they are counted, and those of an empty server begin above all that
 * there were. */
static struct snib__clock server_clock(struct sim *w)
{
        const struct sim_messages *s = sim_messages_of(w);
        snib__ns t = w->now + w->now / 1000000 * w->server_ppm;
        int64_t wall_us = WALL_START + (t + s->wall_offset) / 1000;

        return (struct snib__clock){.lease_ms = t / SNIB__MS,
                                    .wall_us = w->options.token_block > 1 ? wall_us : (s->lives + 1) << 40};
}

/* What the model keeps back for hand-overs within a client is the next one's. */
static void give_one_token(struct sim *w, struct snib__record *r, int64_t before)
{
        if (w->options.token_block == 1 && r->family == SNIB__FAMILY_LOCK && r->token > before && r->held)
                r->token = r->holder[0].token;
}

/* `news` NULL: of nobody in particular. */
static void hint(struct sim *w, int client, enum sim_message_kind kind, int name, const struct snib__tell *news)
{
        struct sim_peer *p = &sim_messages_of(w)->peer[client];
        struct sim_message *m;

        if (!p->open)
                return;
        m = sim_message_new(w, kind, client, p->incarnation, p->connection);
        m->name = name;
        if (news) {
                m->id = news->id;
                m->tag.attempt = news->number;
                m->reply.token = news->token;
                m->reply.lease_ms = w->options.lease_given / SNIB__MS;
        }
        sim_message_down(w, m, true);
}

static void hint_owner(struct sim *w, int name, const struct snib__tell *news)
{
        struct sim_log *log = sim_log_of(w, &news->id);

        if (log && sim_messages_of(w)->peer[log->client].incarnation == log->incarnation)
                hint(w, log->client, news->kind == SNIB__TELL_GRANTED ? SIM_GRANTED : SIM_ENDED, name, news);
}

static snib__ns world_time(const struct sim *w, int64_t lease_ms)
{
        const struct sim_client server = {.ppm = w->server_ppm};

        return lease_ms == INT64_MAX ? SNIB__NEVER : sim_world_time(&server, lease_ms * SNIB__MS);
}

/* Whose id it is. */
static struct sim_log *log_of(struct sim *w, const struct snib__id *id)
{
        static struct sim_log stranger;
        struct sim_log *log = sim_log_of(w, id);

        if (!log)
                sim_fail(w, SIM_UNSAFE, "S4", "the server has an id that nobody asked for: %s", id->text);
        return log ? log : &stranger;
}

/* A SEMAPHORE's seats remember only. */
static void look(struct sim *w, int name)
{
        struct sim_messages *s = sim_messages_of(w);
        const struct snib__record *r = &s->record[name];
        struct sim_truth *t = &s->truth[name];

        t->edition++;
        t->seats = t->places = 0;
        for (size_t i = 0; i < r->held && r->family != SNIB__FAMILY_SEMAPHORE; i++) {
                const struct snib__holder *h = &r->holder[i];

                t->seat[t->seats++] = (struct sim_seat){.log = log_of(w, &h->seat.id),
                                                        .index = (int)h->index,
                                                        .token = h->token,
                                                        .expires_ms = h->seat.expires_ms,
                                                        .ends = world_time(w, h->seat.expires_ms)};
        }
        for (size_t i = 0; i < r->queued; i++)
                t->place[t->places++] = (struct sim_place){.log = log_of(w, &r->queue[i].seat.id),
                                                           .ends = world_time(w, r->queue[i].seat.expires_ms)};
        t->reserved = 0;
        for (size_t i = 0; i < r->held && r->family == SNIB__FAMILY_SEMAPHORE; i++)
                t->reserved += r->holder[i].claimed ? 0 : r->holder[i].n;
        t->exists = r->exists;
        t->exists_until = r->exists && r->family == SNIB__FAMILY_SEMAPHORE ? world_time(w, r->expires_ms) : SNIB__NEVER;
        t->value = r->value;
        t->limit = r->value;
        t->version = r->version;
        t->writer = r->version && s->writer[name] ? s->writer[name] : NULL;
}

/* What lets somebody in is announced to those who watch; a turn to the one whose it is. */
static void tell(struct sim *w, int name, const struct snib__op *op, const struct snib__reply *reply,
                 const struct snib__change *change, bool moved)
{
        struct sim_messages *s = sim_messages_of(w);
        bool ended = reply->status == SNIB__RELEASED || (op->verb == SNIB__FORCE && reply->held);
        bool all = op->kind == SNIB_KIND_WRITE || op->kind == SNIB_KIND_LATCH;

        for (size_t i = 0; i < change->tells; i++)
                if (change->tell[i].kind == SNIB__TELL_GRANTED || w->options.store == SIM_QUEUE)
                        hint_owner(w, name, &change->tell[i]);
        if (w->options.store == SIM_QUEUE || sim_untold(w) || op->kind == SNIB_KIND_SPIN ||
            !(ended || reply->status == SNIB__DONE || (op->kind == SNIB_KIND_ELECTION && moved)))
                return;
        for (int i = 0; i < w->options.clients; i++)
                if (s->peer[i].subscribed[name])
                        hint(w, i, all ? SIM_CHANGED_ALL : SIM_CHANGED, name, NULL);
}

static void expire_at(struct sim *w, int name)
{
        struct sim_messages *s = sim_messages_of(w);

        sim_at(w, &s->expiry[name], world_time(w, snib__record_due(&s->record[name])));
}

/* The record keeps no memory of the caller: a value is copied. */
static void keep_value(struct sim *w, int name, const struct snib__op *op, const struct snib__reply *reply)
{
        struct sim_messages *s = sim_messages_of(w);
        struct snib__record *r = &s->record[name];

        if (op->verb != SNIB__WRITE || r->data != op->data || reply->status != SNIB__DONE)
                return;
        r->data_length = r->data_length < sizeof(s->value[name]) ? r->data_length : sizeof(s->value[name]);
        memcpy(s->value[name], op->data, r->data_length);
        r->data = s->value[name];
        s->writer[name] = sim_log_of(w, &op->id);
}

/* Its id is remembered when it was executed. */
static bool counts(const struct snib__op *op)
{
        return snib__verb_changes(op->verb) || op->permits || op->kind == SNIB_KIND_SEMAPHORE;
}

/* The record remembers so many requests of a name and no more, which is enough for stores that lose
 * no answers. This server does lose them: it says that it does not know rather than execute
 * twice. */
static bool forgotten(struct sim *w, int name, const struct snib__op *op, struct snib__reply *ret_reply)
{
        struct sim_log *log = counts(op) ? sim_log_of(w, &op->id) : NULL;

        if (!log || !log->order || sim_messages_of(w)->executed[name] - log->order < SNIB__DONES_MAX - 1)
                return false;
        log->forgotten = true;
        if (op->verb == SNIB__RELEASE && !op->permits)
                return false; /* nothing is executed by it */
        memset(ret_reply, 0, sizeof(*ret_reply));
        ret_reply->status = SNIB__FAILED;
        ret_reply->error = op->verb == SNIB__ACQUIRE ? SNIB_EREFUSED : SNIB_EUNKNOWN; /* nobody is to wait on */
        return true;
}

static void remember(struct sim *w, int name, const struct snib__op *op, const struct snib__reply *reply)
{
        struct sim_log *log = counts(op) ? sim_log_of(w, &op->id) : NULL;
        bool executed = reply->status == SNIB__GRANTED || reply->status == SNIB__DONE ||
                        (reply->status == SNIB__RELEASED && op->permits);

        if (log && executed && !log->order)
                log->order = ++sim_messages_of(w)->executed[name];
}

static void apply(struct sim *w, int actor, int name, const struct snib__op *op, struct snib__reply *ret_reply)
{
        struct sim_messages *s = sim_messages_of(w);
        struct snib__record *r = &s->record[name];
        struct snib__tell tells[SIM_WAITERS];
        struct snib__change change = {.tell = tells, .tell_room = SIM_WAITERS};
        const struct sim_truth *t = &s->truth[name];
        const char *broken;
        int64_t token = t->seats ? t->seat[0].token : 0, before = r->token;

        if (forgotten(w, name, op, ret_reply))
                return;
        snib__record_apply(r, op, server_clock(w), ret_reply, &change);
        give_one_token(w, r, before);
        /* It compares every pair: where requests are remembered by the dozen, not every time. */
        broken = r->dones < 16 || w->event_count % 8 == 0 ? snib__record_check(r) : NULL;
        if (broken)
                sim_fail(w, SIM_UNSAFE, "model", "%s: not so: %s", w->names[name], broken);
        keep_value(w, name, op, ret_reply);
        remember(w, name, op, ret_reply);
        if (change.record || change.holders || change.queue)
                look(w, name);
        sim_trace(w, -1, "server", r->token, "verb %d from %d: %s holder %s token %lld, %d wait", op->verb, actor,
                  w->names[name], r->held ? r->holder[0].seat.id.text + 36 : "none", (long long)r->token,
                  (int)r->queued);
        sim_check_server(w, actor);
        tell(w, name, op, ret_reply, &change, token != (t->seats ? t->seat[0].token : 0));
        expire_at(w, name);
}

/* Time runs by itself where there is a queue; elsewhere whoever comes next finds out. */
static void run_expiry(struct sim *w, struct sim_event *e)
{
        int name = (int)(e - sim_messages_of(w)->expiry);
        struct snib__op op = {
            .verb = SNIB__QUERY, .kind = SNIB_KIND_ANY, .name = {w->names[name], strlen(w->names[name])}};
        struct snib__reply reply;

        if (w->options.store == SIM_QUEUE)
                apply(w, -1, name, &op, &reply);
        else
                sim_check_server(w, -1);
}

static void answer(struct sim *w, struct sim_message *m, enum sim_message_kind kind)
{
        struct sim_message *r = sim_message_new(w, kind, m->client, m->incarnation, m->connection);

        r->name = m->name;
        r->tag = m->tag;
        r->reply = m->reply;
        sim_message_down(w, r, false);
}

static void take_hello(struct sim *w, struct sim_message *m)
{
        struct sim_messages *s = sim_messages_of(w);

        if (w->now < s->down_until) {
                answer(w, m, SIM_RESET);
                return;
        }
        if (m->connection < s->peer[m->client].connection)
                return; /* left behind by a connection that its client has given up since */
        s->peer[m->client] =
            (struct sim_peer){.open = true, .incarnation = m->incarnation, .connection = m->connection};
        answer(w, m, SIM_WELCOME);
}

/* An engine may give less of a lease than is asked for, and say when to ask again. */
static void serve(struct sim *w, struct sim_message *m)
{
        int64_t most_ms = w->options.lease_given / SNIB__MS;

        if (most_ms && m->op.lease_ms > most_ms)
                m->op.lease_ms = most_ms;
        apply(w, m->client, m->name, &m->op, &m->reply);
        if (most_ms && (m->reply.status == SNIB__GRANTED || m->reply.status == SNIB__RENEWED))
                m->reply.lease_ms = most_ms;
        if (sim_untold(w) && m->reply.status == SNIB__BUSY)
                m->reply.look_ms = w->options.look / SNIB__MS;
}

void sim_server_take(struct sim *w, struct sim_message *m)
{
        struct sim_messages *s = sim_messages_of(w);
        struct sim_peer *p = &s->peer[m->client];
        bool current = p->open && p->connection == m->connection;

        if (m->kind == SIM_HELLO) {
                take_hello(w, m);
        } else if (w->now < s->down_until) {
                answer(w, m, SIM_RESET);
        } else if (m->kind == SIM_OP) {
                serve(w, m);
                answer(w, m, SIM_REPLY);
        } else if (current) {
                p->subscribed[m->name] = m->kind == SIM_SUBSCRIBE;
                if (m->kind == SIM_SUBSCRIBE)
                        answer(w, m, SIM_WATCHING);
        }
}

/* ---- what the world does to it ---- */

static void messages_start(struct sim *w)
{
        struct sim_messages *s = sim_alloc(w, sizeof(*s));

        w->store_data = s;
        for (int i = 0; i < SIM_CLIENTS; i++) {
                snib__list_init(&s->way[i].flight);
                snib__list_init(&s->way[i].inbox);
        }
        for (int i = 0; i < SIM_NAMES; i++) {
                struct snib__record *r = &s->record[i];

                r->queue_room = SIM_WAITERS;
                r->queue = sim_alloc(w, SIM_WAITERS * sizeof(r->queue[0]));
                r->held_room = SIM_SEATS;
                r->holder = sim_alloc(w, SIM_SEATS * sizeof(r->holder[0]));
                r->dones_room = SNIB__DONES_MAX;
                r->done = sim_alloc(w, SNIB__DONES_MAX * sizeof(r->done[0]));
                s->expiry[i].run = run_expiry;
                s->truth[i].exists_until = SNIB__NEVER;
        }
}

static void messages_stop(struct sim *w)
{
        (void)w;
}

/* Of what is on its way to the server a first part arrives, perhaps late; the rest is lost. */
static void tear(struct sim *w, int client, bool all)
{
        struct sim_way *way = &sim_messages_of(w)->way[client];
        snib__ns late = !w->calm && sim_chance(w, 300) ? sim_between(w, 0, w->options.tail_max) : 0;
        bool lost = all;

        for (struct snib__list *it = way->flight.next, *next; it != &way->flight; it = next) {
                struct sim_message *m = snib__container(it, struct sim_message, link);

                next = it->next;
                lost = lost || sim_chance(w, 300);
                if (lost) {
                        sim_not(w, &m->event);
                        sim_message_free(w, m);
                } else {
                        sim_at(w, &m->event, m->event.due + late);
                }
        }
}

static void messages_cut(struct sim *w, struct sim_client *c, bool told)
{
        struct sim_messages *s = sim_messages_of(w);
        struct sim_way *way = &s->way[c->index];
        struct sim_peer *p = &s->peer[c->index];

        sim_trace(w, c->index, "cut", (int64_t)way->connection, "connection %d%s", (int)way->connection,
                  told ? "" : ", the client is not told");
        p->open = false;
        memset(p->subscribed, 0, sizeof(p->subscribed));
        tear(w, c->index, false);
        way->mute_down = 0;
        if (told)
                sim_message_down(w, sim_message_new(w, SIM_RESET, c->index, c->incarnation, way->connection), false);
        way->mute_up = way->mute_down = way->connection;
}

static void messages_cut_part(struct sim *w, struct sim_client *c, int name)
{
        struct sim_messages *s = sim_messages_of(w);
        struct sim_way *way = &s->way[c->index];
        struct sim_message *m;

        sim_trace(w, c->index, "cut part", name, "the link of %s", w->names[name]);
        s->peer[c->index].subscribed[name] = false;
        c->part_at[name] = SNIB__NEVER;
        sim_client_deaf(c, name);
        for (struct snib__list *it = way->flight.next, *next; it != &way->flight; it = next) {
                m = snib__container(it, struct sim_message, link);
                next = it->next;
                if (m->kind == SIM_HELLO || m->name != name || !sim_chance(w, 300))
                        continue;
                sim_not(w, &m->event);
                sim_message_free(w, m);
        }
        m = sim_message_new(w, SIM_PART_RESET, c->index, c->incarnation, way->connection);
        m->name = name;
        sim_message_down(w, m, false);
}

static void messages_heal(struct sim *w, struct sim_client *c)
{
        messages_cut(w, c, true);
}

static void messages_half_open(struct sim *w, struct sim_client *c, bool up, bool down)
{
        struct sim_way *way = &sim_messages_of(w)->way[c->index];

        sim_trace(w, c->index, "silence", up + 2 * down, "%s%s", up ? "up " : "", down ? "down" : "");
        if (up)
                way->mute_up = way->connection;
        if (down)
                way->mute_down = way->connection;
}

static void messages_vanish(struct sim *w, struct sim_client *c)
{
        tear(w, c->index, false);
}

static void messages_restart(struct sim *w, bool keep_data, snib__ns down)
{
        struct sim_messages *s = sim_messages_of(w);

        sim_trace(w, -1, "restart", keep_data, "%s, down for %d ms", keep_data ? "with its data" : "empty",
                  (int)(down / SNIB__MS));
        s->down_until = w->now + down;
        for (int i = 0; i < w->options.clients; i++) {
                tear(w, i, true);
                if (w->clients[i].alive)
                        messages_cut(w, &w->clients[i], true);
        }
        if (keep_data)
                return;
        s->lives++;
        for (int i = 0; i < SIM_NAMES; i++) {
                struct snib__record *r = &s->record[i];

                *r = (struct snib__record){.held_room = r->held_room,
                                           .queue_room = r->queue_room,
                                           .dones_room = r->dones_room,
                                           .holder = r->holder,
                                           .queue = r->queue,
                                           .done = r->done};
                sim_not(w, &s->expiry[i]);
                look(w, i);
        }
        sim_check_data_lost(w);
}

/* Leases do not run on this clock, tokens are floored by it: they may fall only if the data is lost
 * as well. */
static void messages_step(struct sim *w, snib__ns by)
{
        sim_trace(w, -1, "step", by, "wall clock by %lld ms", (long long)(by / SNIB__MS));
        sim_messages_of(w)->wall_offset += by;
        if (by < 0) {
                w->stepped_back = true;
                sim_check_tokens(w);
        }
}

static const struct sim_truth *messages_truth(struct sim *w, int name)
{
        return &sim_messages_of(w)->truth[name];
}

const struct sim_store_ops sim_messages = {.start = messages_start,
                                           .stop = messages_stop,
                                           .open = sim_simnet_open,
                                           .cut = messages_cut,
                                           .cut_part = messages_cut_part,
                                           .heal = messages_heal,
                                           .half_open = messages_half_open,
                                           .vanish = messages_vanish,
                                           .restart = messages_restart,
                                           .step = messages_step,
                                           .truth = messages_truth};
