/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server of the world of messages: the production model behind a connection per client. With a queue it tells the
 * waiter whose turn it is and the holder that was ended; without one it tells every subscriber that a name changed. It
 * may be restarted with or without its data and its wall clock may step; its lease clock does not.
 */

#include "simnet.h"
#include <string.h>

#define WALL_START ((int64_t)1790000000 * 1000000)

static struct snib__clock server_clock(struct sim *w)
{
        snib__ns t = w->now + w->now / 1000000 * w->server_ppm;

        return (struct snib__clock){.lease_ms = t / SNIB__MS,
                                    .wall_us = WALL_START + (t + sim_messages_of(w)->wall_offset) / 1000};
}

static void hint(struct sim *w, int client, enum sim_message_kind kind, int name, const struct snib__id *id)
{
        struct sim_peer *p = &sim_messages_of(w)->peer[client];
        struct sim_message *m;

        if (!p->open)
                return;
        m = sim_message_new(w, kind, client, p->incarnation, p->connection);
        m->name = name;
        if (id)
                m->id = *id;
        sim_message_down(w, m, true);
}

static void hint_owner(struct sim *w, enum sim_message_kind kind, int name, const struct snib__id *id)
{
        struct sim_log *log = sim_log_of(w, id);

        if (log && sim_messages_of(w)->peer[log->client].incarnation == log->incarnation)
                hint(w, log->client, kind, name, id);
}

static void tell(struct sim *w, int name, const struct snib__op *op, const struct snib__reply *reply,
                 const struct snib__lock_change *change)
{
        struct sim_messages *s = sim_messages_of(w);

        if (w->options.store == SIM_QUEUE) {
                if (snib__id_set(&change->granted))
                        hint_owner(w, SIM_GRANTED, name, &change->granted);
                if (snib__id_set(&change->ended))
                        hint_owner(w, SIM_ENDED, name, &change->ended);
        } else if (reply->status == SNIB__RELEASED || (op->verb == SNIB__FORCE && reply->held)) {
                for (int i = 0; i < w->options.clients; i++)
                        if (s->peer[i].subscribed[name])
                                hint(w, i, SIM_CHANGED, name, NULL);
        }
}

/* FIFO: whoever became holder was the first of those in the queue who live and did not leave. */
static void check_order(struct sim *w, int name, const struct snib__op *op, const struct snib__lock_record *before,
                        const struct snib__waiter *waiters, struct snib__clock now)
{
        const struct snib__id *holder = &sim_messages_of(w)->record[name].holder.id;

        if (!snib__id_set(holder) || snib__id_equal(holder, &before->holder.id))
                return;
        for (size_t i = 0; i < before->queued; i++) {
                const struct snib__seat *seat = &waiters[i].seat;

                if (seat->expires_ms <= now.lease_ms ||
                    (op->verb == SNIB__RELEASE && snib__id_equal(&seat->id, &op->id)))
                        continue;
                if (!snib__id_equal(&seat->id, holder))
                        sim_fail(w, SIM_UNSAFE, "L3", "%s went to %s before %s", w->names[name], holder->text,
                                 seat->id.text);
                return;
        }
}

static void apply(struct sim *w, int actor, int name, const struct snib__op *op, struct snib__reply *ret_reply)
{
        struct sim_messages *s = sim_messages_of(w);
        struct snib__lock_record *r = &s->record[name], before = *r;
        struct snib__waiter waiters[SIM_WAITERS];
        struct snib__clock now = server_clock(w);
        struct snib__lock_change change;
        const char *broken;

        memcpy(waiters, r->queue, r->queued * sizeof(waiters[0]));
        snib__lock_apply(r, op, now, ret_reply, &change);
        broken = snib__lock_check(r);
        if (broken)
                sim_fail(w, SIM_UNSAFE, "model", "%s: not so: %s", w->names[name], broken);
        check_order(w, name, op, &before, waiters, now);
        sim_trace(w, -1, "server", r->token, "verb %d from %d: %s holder %s token %lld, %d wait", op->verb, actor,
                  w->names[name], snib__id_set(&r->holder.id) ? r->holder.id.text + 36 : "none", (long long)r->token,
                  (int)r->queued);
        sim_check_server(w, actor);
        tell(w, name, op, ret_reply, &change);
        if (snib__id_set(&r->holder.id))
                sim_at(w, &s->expiry[name], w->store->expiry(w, r->holder.expires_ms));
        else
                sim_not(w, &s->expiry[name]);
}

/* Leases run out by themselves where there is a queue; elsewhere whoever comes next finds out. */
static void run_expiry(struct sim *w, struct sim_event *e)
{
        int name = (int)(e - sim_messages_of(w)->expiry);
        struct snib__op op = {.verb = SNIB__QUERY, .name = {w->names[name], strlen(w->names[name])}};
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
                apply(w, m->client, m->name, &m->op, &m->reply);
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
                s->record[i].room = SIM_WAITERS;
                s->record[i].queue = sim_alloc(w, SIM_WAITERS * sizeof(struct snib__waiter));
                s->expiry[i].run = run_expiry;
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
        for (int i = 0; i < SIM_NAMES; i++) {
                memset(&s->record[i].holder, 0, sizeof(s->record[i].holder));
                s->record[i].queued = 0;
                s->record[i].token = 0;
                sim_not(w, &s->expiry[i]);
        }
        sim_check_data_lost(w);
}

/* Leases do not run on this clock, tokens are floored by it: they may fall only if the data is lost as well. */
static void messages_step(struct sim *w, snib__ns by)
{
        sim_trace(w, -1, "step", by, "wall clock by %lld ms", (long long)(by / SNIB__MS));
        sim_messages_of(w)->wall_offset += by;
        if (by < 0) {
                w->stepped_back = true;
                sim_check_tokens(w);
        }
}

static void messages_truth(struct sim *w, int name, struct sim_truth *ret)
{
        const struct snib__lock_record *r = &sim_messages_of(w)->record[name];

        memset(ret, 0, sizeof(*ret));
        if (!snib__id_set(&r->holder.id) || r->holder.expires_ms <= server_clock(w).lease_ms)
                return;
        *ret = (struct sim_truth){true, r->holder.id, r->token, r->holder.expires_ms};
}

static void messages_queue(struct sim *w, int name, void (*each)(struct sim *w, const struct snib__id *id))
{
        const struct snib__lock_record *r = &sim_messages_of(w)->record[name];

        for (size_t i = 0; i < r->queued; i++)
                if (r->queue[i].seat.expires_ms > server_clock(w).lease_ms)
                        each(w, &r->queue[i].seat.id);
}

static snib__ns messages_expiry(struct sim *w, int64_t expires_ms)
{
        const struct sim_client server = {.ppm = w->server_ppm};

        return sim_world_time(&server, expires_ms * SNIB__MS);
}

const struct sim_store_ops sim_messages = {.start = messages_start,
                                           .stop = messages_stop,
                                           .open = sim_simnet_open,
                                           .cut = messages_cut,
                                           .heal = messages_heal,
                                           .half_open = messages_half_open,
                                           .vanish = messages_vanish,
                                           .restart = messages_restart,
                                           .step = messages_step,
                                           .truth = messages_truth,
                                           .queue = messages_queue,
                                           .expiry = messages_expiry};
