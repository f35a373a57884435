/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several servers, each with a world of its own (world.c), and the processes that are a client of
 * each: what the worlds have in common is time, which comes to all of them together; the clock, the
 * pauses and the end of a process; and the end of the seed. Faults of a server and of the ways to
 * it are its world's own. Not what threads do with multilocks (team.c).
 */

#include "fleet.h"
#include "core/stripe.h"
#include <string.h>

static struct sim_fleet fleet;

int sim_fleet_servers(const struct sim *w)
{
        return w->fleet ? w->fleet->options.servers : 1;
}

struct sim *sim_fleet_server(struct sim *w, int i)
{
        return w->fleet ? &w->fleet->servers[i] : w;
}

bool sim_fleet_idle(const struct sim *w)
{
        const struct sim_fleet *f = w->fleet;

        for (int i = 0; i < f->options.servers; i++)
                for (int k = 0; k < f->options.clients; k++)
                        if (!sim_client_idle(&f->servers[i].clients[k]))
                                return false;
        for (int i = 0; i < f->options.clients; i++)
                for (int k = 0; k < f->options.teams; k++)
                        if (f->team[i][k].busy)
                                return false;
        return true;
}

void sim_fleet_clock(const struct sim *w, struct sim_client *c)
{
        if (!w->fleet)
                return;
        c->offset = w->fleet->offset[c->index];
        c->ppm = w->fleet->ppm[c->index];
}

void sim_fleet_crashed(struct sim *w, const struct sim_client *c)
{
        for (int i = 0; w->fleet && i < w->options.teams; i++)
                sim_team_stop(&w->fleet->team[c->index][i]);
}

void sim_fleet_closed(struct sim *w, const struct sim_client *c)
{
        for (int i = 0; w->fleet && i < w->options.teams; i++)
                sim_team_closed(&w->fleet->team[c->index][i], w, c);
}

/* Of a striped lock the segment of some key. */
int sim_fleet_name(struct sim *w)
{
        char key;

        if (w->options.fleet != SIM_STRIPED)
                return (int)sim_draw(w, (uint64_t)w->options.names);
        key = (char)('a' + sim_draw(w, 26));
        return (int)snib__stripe_index(&key, 1, (size_t)w->options.names);
}

/* ---- one seed ---- */

static void start_server(struct sim_fleet *f, struct sim *top, int i)
{
        struct sim_options o = f->options;
        struct snib__prng prng = {o.seed * 31 + (uint64_t)i};
        struct sim *s = &f->servers[i];

        if (i > 0) {
                o.seed += (uint64_t)i << 32;
                sim_options_draw_faults(&o, &prng);
                o.pauses = o.crashes = o.closes = 0; /* a process is struck by the first world */
                o.store = sim_only_store >= 0 ? o.store : (enum sim_store)snib__prng_below(&prng, SIM_STORES);
        }
        s->fleet = f;
        s->server = i;
        s->out = top->out;
        sim_world_start(s, &o, top->tracing);
}

static void start(struct sim_fleet *f, struct sim *top)
{
        struct snib__prng prng = {f->options.seed ^ 0xc10c4ULL};

        for (int i = 0; i < f->options.clients; i++) {
                f->offset[i] = (snib__ns)snib__prng_below(&prng, 1000000) * SNIB__S;
                f->ppm[i] = f->options.ppm ? (int64_t)snib__prng_below(&prng, 1801) - 900 : 0;
        }
        for (int i = 0; i < f->options.servers; i++)
                start_server(f, top, i);
        for (int i = 0; i < f->options.clients; i++)
                for (int k = 0; k < f->options.teams; k++)
                        sim_team_start(f, i, k);
        if (f->options.fleet == SIM_STRIPED)
                sim_check_stripes(f);
}

/* The world with the next event. */
static struct sim *next(struct sim_fleet *f, struct sim_event **ret_event)
{
        struct sim *first = NULL;

        *ret_event = NULL;
        for (int i = 0; i < f->options.servers; i++) {
                struct sim *s = &f->servers[i];
                struct snib__tree_node *n = s->phase.run ? snib__tree_first(&s->events) : NULL;
                struct sim_event *e = n ? snib__container(n, struct sim_event, node) : NULL;

                if (s->phase.run && !n)
                        sim_fail(s, SIM_STUCK, "L5", "nothing will ever happen again");
                if (!e || (*ret_event && (*ret_event)->due <= e->due))
                        continue;
                *ret_event = e;
                first = s;
        }
        return first;
}

static bool is_fine(const struct sim_fleet *f)
{
        for (int i = 0; i < f->options.servers; i++)
                if (f->servers[i].verdict != SIM_FINE)
                        return false;
        return true;
}

static void loop(struct sim_fleet *f, struct sim *top)
{
        struct sim_event *e;
        struct sim *s;

        while (is_fine(f) && (s = next(f, &e))) {
                for (int i = 0; i < f->options.servers; i++)
                        if (&f->servers[i] != s)
                                f->servers[i].now = snib__max(f->servers[i].now, e->due);
                sim_world_step(s, e);
                sim_check_teams(f);
                if (++top->event_count > SIM_EVENTS_MAX)
                        sim_fail(s, SIM_STUCK, "R2", "more than %d events", SIM_EVENTS_MAX);
        }
}

/* What is reported of all. */
static void sum_up(struct sim *w, const struct sim *s)
{
        w->hash = w->hash * 31 + s->hash;
        w->acquired += s->acquired;
        w->polls += s->polls;
        w->now = snib__max(w->now, s->now);
        if (s->verdict == SIM_FINE || w->verdict != SIM_FINE)
                return;
        w->verdict = s->verdict;
        memcpy(w->invariant, s->invariant, sizeof(w->invariant));
        memcpy(w->text, s->text, sizeof(w->text));
}

void sim_fleet_run(struct sim *w, const struct sim_options *options, bool tracing)
{
        struct sim_chunk *chunks = w->chunks;
        FILE *out = w->out;

        memset(w, 0, sizeof(*w));
        w->chunks = chunks;
        w->out = out;
        w->options = *options;
        w->tracing = tracing;
        fleet.options = *options;
        fleet.last_token = fleet.last_at = 0;
        start(&fleet, w);
        loop(&fleet, w);
        for (int i = 0; i < options->servers; i++) {
                sum_up(w, &fleet.servers[i]);
                fleet.servers[i].store->stop(&fleet.servers[i]);
        }
}
