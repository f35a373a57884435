/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The world of bytes: the production redis engine over simulated connections to an in-process Redis
 * that runs the production scripts. A connection is a stream in each direction: bytes arrive in
 * order, in pieces cut anywhere, and a cut loses all that comes after a byte. A client has two
 * connections, which are delayed, cut and silenced apart. Bytes of a dead connection may still
 * reach the server after those of the next. Not the server's behaviour: that is test/lib/fakeredis
 * and the scripts.
 *
 * Leases run on the server's wall clock, as they do on Redis: a step forward ends them early, which
 * excuses their holders; a step back makes them longer, by a few seconds here, and the checks of
 * progress wait for that.
 */

#include "base/error.h"
#include "engine/net/transport.h"
#include "engine/redis/redis.h"
#include "keys.h"
#include "scripts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT 8192 /* more than any script: what a scenario says does not depend on their lengths */
#define WALL_START ((int64_t)1790000000 * 1000000)

struct segment {
        struct sim_event event;
        struct snib__list link; /* in a flight, an inbox, or the spare ones */
        struct snib__conn *conn;
        size_t length, taken;
        char bytes[SEGMENT];
};

/* One connection, both its ends and the way between. Lives until the end of the seed. */
struct snib__conn {
        struct snib__list link;
        struct sim *world;
        int client;
        uint32_t incarnation;
        int role;
        int dialed;              /* 1 connected, 0 not yet, negative: refused */
        bool closed;             /* the client's end */
        bool ended;              /* the client sees the end after what is in the inbox */
        bool mute_up, mute_down; /* silence in this direction */
        snib__ns last_up, last_down;
        struct snib__list up, down; /* segments on their way */
        struct snib__list inbox;
        struct fakeredis_conn *server; /* the server's end */
        struct sim_event accept, welcome, hang_up, end, drained;
};

struct dialer {
        struct sim *world;
        struct sim_client *client;
};

struct wires {
        struct fakeredis *redis;
        struct snib__list conns; /* that are not wholly over */
        snib__ns down_until;
        int64_t wall_offset_us, wall_us;
        struct sim_truth truth[SIM_NAMES];
        struct dialer dialer[SIM_CLIENTS];
};

static struct wires *wires_of(struct sim *w)
{
        return w->store_data;
}

/* ---- the server ---- */

static int64_t wall_us(struct sim *w)
{
        return WALL_START + (w->now + w->now / 1000000 * w->server_ppm) / 1000 + wires_of(w)->wall_offset_us;
}

/* The checks see every state between two commands. */
static void look(struct sim *w, int actor)
{
        struct wires *s = wires_of(w);

        for (int i = 0; i < w->options.names; i++) {
                const struct sim_truth *t = &s->truth[i];
                uint64_t before = t->edition;

                sim_keys_look(w, s->redis, i, &s->truth[i]);
                if (t->edition != before)
                        sim_trace(w, -1, "server", t->value + t->version,
                                  "%s: %d hold, the first is #%d, %d wait, %lld", w->names[i], t->seats,
                                  t->seats ? t->seat[0].log->number : -1, t->places,
                                  (long long)(t->version ? t->version : t->value));
        }
        sim_check_server(w, actor);
}

static struct segment *segment_new(struct sim *w, struct snib__conn *c, const char *bytes, size_t length)
{
        struct snib__list *l = snib__list_take(&w->spare[0]);
        struct segment *g = l ? snib__container(l, struct segment, link) : sim_alloc(w, sizeof(*g));

        memset(g, 0, offsetof(struct segment, bytes));
        g->conn = c;
        g->length = length;
        memcpy(g->bytes, bytes, length);
        return g;
}

static void segment_free(struct sim *w, struct segment *g)
{
        sim_not(w, &g->event);
        snib__list_remove(&g->link);
        snib__list_append(&w->spare[0], &g->link);
}

/* The next piece of `length` bytes: cut anywhere. */
static size_t piece(struct sim *w, size_t length)
{
        size_t most = sim_chance(w, w->options.split_share) ? 40 : SEGMENT;

        if (most < length)
                length = most;
        return most == 40 ? 1 + sim_draw(w, length) : length;
}

static void arrive_down(struct sim *w, struct sim_event *e)
{
        struct segment *g = snib__container(e, struct segment, event);
        struct snib__conn *c = g->conn;

        snib__list_remove(&g->link);
        snib__list_append(&c->inbox, &g->link);
        if (!c->closed)
                sim_client_poke(w, &w->clients[c->client]);
}

static void send_down(struct sim *w, struct snib__conn *c)
{
        const char *bytes;
        size_t length;

        while ((length = fakeredis_output(c->server, &bytes)) > 0) {
                size_t n = piece(w, length);

                if (!c->mute_down && !c->closed) {
                        struct segment *g = segment_new(w, c, bytes, n);

                        c->last_down = snib__max(c->last_down + 1, w->now + sim_delay(w));
                        g->event.run = arrive_down;
                        snib__list_append(&c->down, &g->link);
                        sim_at(w, &g->event, c->last_down);
                }
                fakeredis_take(c->server, n);
        }
        if (fakeredis_closed(c->server))
                sim_at(w, &c->end, snib__max(c->last_down + 1, w->now));
}

static void send_all_down(struct sim *w)
{
        snib__list_each (it, &wires_of(w)->conns) {
                struct snib__conn *c = snib__container(it, struct snib__conn, link);

                if (c->server)
                        send_down(w, c);
        }
}

/* Commands that arrive together are executed one after another, a microsecond apart. */
static void feed(struct sim *w, struct snib__conn *c, const char *bytes, size_t length)
{
        struct wires *s = wires_of(w);

        if (wall_us(w) > s->wall_us || s->wall_us - wall_us(w) > 1000)
                s->wall_us = wall_us(w); /* else the commands before have used up this microsecond */
        if (!w->options.scripted)        /* a scenario tells what they do, not how many there are */
                sim_trace(w, -1, "bytes", (int64_t)length, "%d from client %d", (int)length, c->client);
        while (length > 0) {
                size_t n = 1;

                while (n < length && !(bytes[n] == '*' && bytes[n - 1] == '\n'))
                        n++;
                fakeredis_set_time(s->redis, s->wall_us);
                fakeredis_feed(c->server, bytes, n);
                s->wall_us = fakeredis_time(s->redis) + 1;
                bytes += n;
                length -= n;
                look(w, c->client);
        }
        send_all_down(w);
}

static void arrive_up(struct sim *w, struct sim_event *e)
{
        struct segment *g = snib__container(e, struct segment, event);
        struct snib__conn *c = g->conn;

        if (c->server)
                feed(w, c, g->bytes, g->length);
        segment_free(w, g);
}

/* ---- connections ---- */

static void over(struct sim *w, struct snib__conn *c)
{
        while (!snib__list_empty(&c->inbox))
                segment_free(w, snib__container(c->inbox.next, struct segment, link));
        if (c->closed && !c->server)
                snib__list_remove(&c->link);
}

/* The server sees the end of the connection. */
static void run_hang_up(struct sim *w, struct sim_event *e)
{
        struct snib__conn *c = snib__container(e, struct snib__conn, hang_up);

        fakeredis_disconnect(c->server);
        c->server = NULL;
        look(w, c->client); /* nobody can be told there any more */
        if (c->closed)
                over(w, c);
}

/* The client may see the end of the connection. */
static void run_end(struct sim *w, struct sim_event *e)
{
        struct snib__conn *c = snib__container(e, struct snib__conn, end);

        if (c->closed)
                return;
        if (c->dialed == 0)
                c->dialed = -ECONNREFUSED;
        c->ended = true;
        sim_client_poke(w, &w->clients[c->client]);
}

static void run_welcome(struct sim *w, struct sim_event *e)
{
        struct snib__conn *c = snib__container(e, struct snib__conn, welcome);

        if (c->closed || c->ended || c->dialed)
                return;
        c->dialed = 1;
        sim_client_poke(w, &w->clients[c->client]);
}

static void run_accept(struct sim *w, struct sim_event *e)
{
        struct snib__conn *c = snib__container(e, struct snib__conn, accept);
        struct wires *s = wires_of(w);

        if (c->closed || c->mute_up)
                return;
        if (w->now < s->down_until) {
                sim_at(w, &c->end, w->now + sim_delay(w));
                return;
        }
        c->server = fakeredis_connect(s->redis);
        if (!c->mute_down)
                sim_at(w, &c->welcome, w->now + sim_delay(w));
}

static void run_drained(struct sim *w, struct sim_event *e)
{
        sim_client_poke(w, &w->clients[snib__container(e, struct snib__conn, drained)->client]);
}

static struct snib__conn *wire_dial(void *arg, const struct snib__address *to, int role, struct snib_error *err)
{
        struct dialer *d = arg;
        struct sim *w = d->world;
        struct snib__conn *c = sim_alloc(w, sizeof(*c));

        (void)to;
        (void)err;
        sim_trace(w, d->client->index, "dial", role, "%s", role == SNIB__REDIS_COMMANDS ? "commands" : "subscriptions");
        c->world = w;
        c->client = d->client->index;
        c->incarnation = d->client->incarnation;
        c->role = role;
        c->accept.run = run_accept;
        c->welcome.run = run_welcome;
        c->hang_up.run = run_hang_up;
        c->end.run = run_end;
        c->drained.run = run_drained;
        snib__list_init(&c->up);
        snib__list_init(&c->down);
        snib__list_init(&c->inbox);
        snib__list_append(&wires_of(w)->conns, &c->link);
        sim_at(w, &c->accept, w->now + sim_delay(w));
        return c;
}

static int wire_dialed(struct snib__conn *c, struct snib_error *err)
{
        if (c->dialed < 0)
                return snib__error(err, SNIB_EUNREACHABLE, "connection refused");
        return c->dialed;
}

static ssize_t wire_send(struct snib__conn *c, const void *bytes, size_t length)
{
        struct sim *w = c->world;
        struct segment *g;
        size_t n = piece(w, length);

        if (c->ended || !w->clients[c->client].alive || w->clients[c->client].incarnation != c->incarnation)
                return -EPIPE;
        if (!w->calm && sim_chance(w, w->options.split_share / 4)) {
                sim_at(w, &c->drained, w->now + sim_delay(w));
                return -EAGAIN;
        }
        if (c->mute_up)
                return (ssize_t)n; /* the kernel takes it and nobody ever gets it */
        g = segment_new(w, c, bytes, n);
        c->last_up = snib__max(c->last_up + 1, w->now + sim_delay(w));
        g->event.run = arrive_up;
        snib__list_append(&c->up, &g->link);
        sim_at(w, &g->event, c->last_up);
        return (ssize_t)n;
}

static ssize_t wire_recv(struct snib__conn *c, void *bytes, size_t room)
{
        struct segment *g = snib__container(c->inbox.next, struct segment, link);
        size_t n;

        if (snib__list_empty(&c->inbox))
                return c->ended ? (c->incarnation % 2 ? 0 : -ECONNRESET) : -EAGAIN;
        n = g->length - g->taken < room ? g->length - g->taken : room;
        memcpy(bytes, g->bytes + g->taken, n);
        g->taken += n;
        if (g->taken == g->length)
                segment_free(c->world, g);
        return (ssize_t)n;
}

static int wire_interest(struct snib__conn *c, bool want_send, short *ret_events)
{
        (void)c;
        (void)want_send;
        *ret_events = 0;
        return -1;
}

/* What was sent arrives, and then the server sees the end, unless it is never to hear of it. */
static void wire_close(struct snib__conn *c)
{
        struct sim *w = c->world;

        c->closed = true;
        if (c->role == SNIB__REDIS_SUBSCRIPTIONS)
                sim_client_deaf(&w->clients[c->client], -1);
        sim_not(w, &c->drained);
        sim_not(w, &c->end);
        if (!c->mute_up)
                sim_at(w, &c->hang_up, snib__max(c->last_up, w->now) + 1);
        over(w, c);
}

static void wire_forked(struct snib__conn *c)
{
        (void)c;
}

static const struct snib__transport wire_transport = {.dial = wire_dial,
                                                      .dialed = wire_dialed,
                                                      .send = wire_send,
                                                      .recv = wire_recv,
                                                      .interest = wire_interest,
                                                      .close = wire_close,
                                                      .forked = wire_forked};

/* ---- what the world does to it ---- */

static void bytes_start(struct sim *w)
{
        struct wires *s = sim_alloc(w, sizeof(*s));

        w->store_data = s;
        s->redis = fakeredis_new();
        for (int i = 0; i < SIM_NAMES; i++)
                s->truth[i].exists_until = SNIB__NEVER;
        snib__list_init(&s->conns);
        sim_scripts_choose();
}

static void bytes_stop(struct sim *w)
{
        for (int i = 0; i < w->options.clients; i++)
                if (w->clients[i].engine)
                        w->clients[i].ops->close(w->clients[i].engine);
        fakeredis_free(wires_of(w)->redis);
}

static void bytes_open(struct sim *w, struct sim_client *c)
{
        struct wires *s = wires_of(w);
        struct snib__engine_config config = {.timeout_ms = w->options.engine_timeout / SNIB__MS};
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__url url;

        s->dialer[c->index] = (struct dialer){w, c};
        memcpy(config.uuid, c->uuid, sizeof(config.uuid));
        config.who = c->who;
        config.seed = snib__prng_next(&w->prng);
        config.url = &url;
        if (snib__url_parse("redis://server", &url, &err) < 0 ||
            snib__redis_open_with(&c->engine, &config, &wire_transport, &s->dialer[c->index], sim_local(w, c), &err) <
                0) {
                fprintf(stderr, "cannot open the redis engine: %s\n", err.text);
                abort();
        }
        c->ops = c->engine->ops;
}

/* A first part of what is on its way arrives, up to any byte, perhaps late; the rest is lost. */
static void tear(struct sim *w, struct snib__list *flight, snib__ns late, bool all)
{
        bool lost = all;

        for (struct snib__list *it = flight->next, *next; it != flight; it = next) {
                struct segment *g = snib__container(it, struct segment, link);

                next = it->next;
                if (lost) {
                        segment_free(w, g);
                        continue;
                }
                if (sim_chance(w, 300)) {
                        lost = true;
                        g->length = 1 + sim_draw(w, g->length);
                }
                sim_at(w, &g->event, g->event.due + late);
        }
}

/* Breaks one connection. The server executes what still arrives, then sees the end. */
static void cut_conn(struct sim *w, struct snib__conn *c, bool told, bool all)
{
        snib__ns late = !w->calm && sim_chance(w, 300) ? sim_between(w, 0, w->options.tail_max) : 0;

        tear(w, &c->up, late, all);
        tear(w, &c->down, 0, all);
        c->mute_up = c->mute_down = true;
        sim_at(w, &c->hang_up, all ? w->now : snib__max(c->last_up + late, w->now) + 1);
        if (c->role == SNIB__REDIS_SUBSCRIPTIONS)
                sim_client_deaf(&w->clients[c->client], -1);
        if (told && !c->closed)
                sim_at(w, &c->end, snib__max(c->last_down, w->now) + 1 + sim_delay(w));
}

static void each_conn(struct sim *w, struct sim_client *c, void (*what)(struct sim *w, struct snib__conn *c, int arg),
                      int arg)
{
        struct snib__list *next;

        for (struct snib__list *it = wires_of(w)->conns.next; it != &wires_of(w)->conns; it = next) {
                struct snib__conn *conn = snib__container(it, struct snib__conn, link);

                next = it->next;
                if (!c || (conn->client == c->index && conn->incarnation == c->incarnation))
                        what(w, conn, arg);
        }
}

enum { COMMANDS = 1, SUBSCRIPTIONS = 2, TOLD = 4, UP = 8, DOWN = 16, ALL = 32 };

static void cut_one(struct sim *w, struct snib__conn *c, int arg)
{
        if (arg & (c->role == SNIB__REDIS_COMMANDS ? COMMANDS : SUBSCRIPTIONS))
                cut_conn(w, c, arg & TOLD, arg & ALL);
}

static void mute_one(struct sim *w, struct snib__conn *c, int arg)
{
        (void)w;
        if (!(arg & (c->role == SNIB__REDIS_COMMANDS ? COMMANDS : SUBSCRIPTIONS)))
                return;
        c->mute_up |= !!(arg & UP);
        c->mute_down |= !!(arg & DOWN);
}

/* Which of the two connections is hit. */
static int victims(struct sim *w)
{
        return w->options.scripted ? COMMANDS | SUBSCRIPTIONS : 1 + (int)sim_draw(w, 3);
}

static void bytes_cut(struct sim *w, struct sim_client *c, bool told)
{
        int which = victims(w);

        sim_trace(w, c->index, "cut", which, "%s%s%s", which & COMMANDS ? "commands " : "",
                  which & SUBSCRIPTIONS ? "subscriptions" : "", told ? "" : ", the client is not told");
        each_conn(w, c, cut_one, which | (told ? TOLD : 0));
}

static void bytes_heal(struct sim *w, struct sim_client *c)
{
        sim_trace(w, c->index, "cut", 3, "everything, for the calm");
        each_conn(w, c, cut_one, COMMANDS | SUBSCRIPTIONS | TOLD);
}

static void bytes_half_open(struct sim *w, struct sim_client *c, bool up, bool down)
{
        int which = victims(w) | (up ? UP : 0) | (down ? DOWN : 0);

        sim_trace(w, c->index, "silence", which, "%s%s%s%s", which & COMMANDS ? "commands " : "",
                  which & SUBSCRIPTIONS ? "subscriptions " : "", up ? "up " : "", down ? "down" : "");
        each_conn(w, c, mute_one, which);
}

static void bytes_vanish(struct sim *w, struct sim_client *c)
{
        each_conn(w, c, cut_one, COMMANDS | SUBSCRIPTIONS);
}

static void bytes_restart(struct sim *w, bool keep_data, snib__ns down)
{
        struct wires *s = wires_of(w);

        sim_trace(w, -1, "restart", keep_data, "%s, down for %d ms", keep_data ? "with its data" : "empty",
                  (int)(down / SNIB__MS));
        s->down_until = w->now + down;
        each_conn(w, NULL, cut_one, COMMANDS | SUBSCRIPTIONS | TOLD | ALL);
        fakeredis_restart(s->redis, keep_data);
        if (keep_data)
                return;
        for (int i = 0; i < w->options.names; i++)
                sim_keys_look(w, s->redis, i, &s->truth[i]);
        sim_check_data_lost(w);
}

/* Forward: leases end early, and no promise covers that. Back: they last longer. */
static void bytes_step(struct sim *w, snib__ns by)
{
        struct wires *s = wires_of(w);

        if (by < 0)
                by = -(-by % (3 * SNIB__S));
        sim_trace(w, -1, "step", by, "wall clock by %lld ms", (long long)(by / SNIB__MS));
        if (by > 0)
                sim_check_leases_cut(w);
        s->wall_offset_us += by / 1000;
        for (int i = 0; i < w->options.names; i++)
                sim_keys_look(w, s->redis, i, &s->truth[i]);
        sim_check_clock(w);
        if (by < 0) {
                w->stepped_back = true;
                w->back += -by;
                sim_check_tokens(w);
        }
}

static const struct sim_truth *bytes_truth(struct sim *w, int name)
{
        return &wires_of(w)->truth[name];
}

/* A key is there during the whole of its last millisecond. */
snib__ns sim_bytes_ends(struct sim *w, int64_t expires_ms)
{
        const struct sim_client server = {.ppm = w->server_ppm};
        int64_t us = (expires_ms + 1) * 1000 - WALL_START - wires_of(w)->wall_offset_us;

        return sim_world_time(&server, us * 1000);
}

const struct sim_store_ops sim_bytes = {.start = bytes_start,
                                        .stop = bytes_stop,
                                        .open = bytes_open,
                                        .cut = bytes_cut,
                                        .heal = bytes_heal,
                                        .half_open = bytes_half_open,
                                        .vanish = bytes_vanish,
                                        .restart = bytes_restart,
                                        .step = bytes_step,
                                        .truth = bytes_truth};
