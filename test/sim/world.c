/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The world of one seed: memory, time, chance, the event queue, the fault plan and the phases. Not
 * what clients and servers do.
 *
 * Phases: faults; calm (everything heals, the consequences run out); settled (small delays, a
 * bounded number of crashes and cuts, and now every promise about progress is checked); quiet
 * (nobody begins anything, all must come to rest); closed (nothing may be left on the server, at
 * once and after a lease).
 */

#include "base/assert.h"
#include "core/stripe.h"
#include "sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)1 << 20)
/* Waiting places and claims on the server last this long. */
#define CLAIM (SNIB__CLAIM_MS * SNIB__MS)
/* How long all may need to come to rest. Multilocks in several orders stand in each other's way for
 * some time. */
#define QUIET_MAX (60 * SNIB__S)
#define QUIET_MAX_FLEET (600 * SNIB__S)

int sim_only_store = -1;
int sim_only_subject = -1;

struct sim_chunk {
        struct sim_chunk *next;
        char bytes[CHUNK];
};

/* Zeroed memory that lives until the end of the seed. */
void *sim_alloc(struct sim *w, size_t size)
{
        size = (size + 15) & ~(size_t)15;
        if (size > CHUNK)
                abort();
        if (!w->chunk || w->chunk_used + size > CHUNK) {
                struct sim_chunk **next = w->chunk ? &w->chunk->next : &w->chunks;

                if (!*next) {
                        *next = malloc(sizeof(**next));
                        if (!*next)
                                abort();
                        (*next)->next = NULL;
                }
                w->chunk = *next;
                w->chunk_used = 0;
        }
        void *p = w->chunk->bytes + w->chunk_used;

        w->chunk_used += size;
        return memset(p, 0, size);
}

static int compare_due(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        snib__ns x = snib__container(a, const struct sim_event, node)->due;
        snib__ns y = snib__container(b, const struct sim_event, node)->due;

        return (x > y) - (x < y);
}

void sim_not(struct sim *w, struct sim_event *e)
{
        snib__tree_remove(&w->events, &e->node);
}

void sim_at(struct sim *w, struct sim_event *e, snib__ns due)
{
        sim_not(w, e);
        e->due = snib__max(due, w->now);
        if (due != SNIB__NEVER)
                snib__tree_add(&w->events, &e->node);
}

uint64_t sim_draw(struct sim *w, uint64_t below)
{
        return snib__prng_below(&w->prng, below);
}

bool sim_chance(struct sim *w, int per_mille)
{
        return per_mille > 0 && sim_draw(w, 1000) < (uint64_t)per_mille;
}

snib__ns sim_between(struct sim *w, snib__ns least, snib__ns most)
{
        return most <= least ? least : least + (snib__ns)sim_draw(w, (uint64_t)(most - least + 1));
}

snib__ns sim_delay_calm(const struct sim *w)
{
        return snib__min(w->options.delay_max, 20 * SNIB__MS);
}

snib__ns sim_delay(struct sim *w)
{
        if (w->calm)
                return sim_between(w, snib__min(w->options.delay_min, sim_delay_calm(w)), sim_delay_calm(w));
        if (sim_chance(w, w->options.tail_share))
                return sim_between(w, w->options.delay_max, w->options.tail_max);
        return sim_between(w, w->options.delay_min, w->options.delay_max);
}

void sim_fail(struct sim *w, enum sim_verdict verdict, const char *invariant, const char *format, ...)
{
        va_list args;

        if (w->verdict != SIM_FINE)
                return;
        w->verdict = verdict;
        snprintf(w->invariant, sizeof(w->invariant), "%s", invariant);
        va_start(args, format);
        vsnprintf(w->text, sizeof(w->text), format, args);
        va_end(args);
        sim_trace(w, -1, "VIOLATION", verdict, "%s: %s", w->invariant, w->text);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
        hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
        return hash * 0xff51afd7ed558ccdULL;
}

void sim_trace(struct sim *w, int client, const char *what, int64_t number, const char *format, ...)
{
        va_list args;
        uint64_t word = 0;

        for (const char *p = what; *p; p++)
                word = word * 131 + (unsigned char)*p;
        w->hash = mix(mix(mix(mix(w->hash, (uint64_t)w->now), (uint64_t)client), word), (uint64_t)number);
        if (!w->tracing || !format) /* the second for compilers that fear it */
                return;
        FILE *out = w->out ? w->out : stdout;

        if (w->fleet)
                fprintf(out, "s%d ", w->server);

        if (w->options.scripted) /* what must follow again after a change of no consequence */
                fprintf(out, "%4d.%06d ", (int)(w->now / SNIB__S), (int)(w->now % SNIB__S / 1000));
        else
                fprintf(out, "%4d.%09d ", (int)(w->now / SNIB__S), (int)(w->now % SNIB__S));
        if (client >= 0)
                fprintf(out, "c%d.%u ", client, w->clients[client].incarnation);
        else
                fprintf(out, "-    ");
        fprintf(out, "%-9s ", what);
        va_start(args, format);
        vfprintf(out, format, args);
        va_end(args);
        fputc('\n', out);
}

/* A failed assertion of the code under test ends the seed. */
static struct sim *running;
static jmp_buf crash;

void snib__assert_fail(const char *condition, const char *file, int line)
{
        if (!running) {
                fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
                abort();
        }
        const char *base = strrchr(file, '/');

        sim_fail(running, SIM_CRASHED, "assert", "%s:%d: %s", base ? base + 1 : file, line, condition);
        longjmp(crash, 1);
}

/* ---- faults ---- */

enum { CUT, HALF_OPEN, PAUSE, CRASH, CLOSE, RESTART, LOSE, STEP };

static snib__ns interval(const struct sim_options *o, int kind)
{
        const snib__ns means[] = {o->cuts,   o->half_opens, o->pauses, o->crashes,
                                  o->closes, o->restarts,   o->losses, o->steps};

        return means[kind];
}

static void half_open(struct sim *w, struct sim_client *c)
{
        int which = 1 + (int)sim_draw(w, 3);

        w->store->half_open(w, c, which & 1, which & 2);
}

/* A process may be a client of several servers. */
static void strike_process(struct sim *w, int kind, int process)
{
        snib__ns length = kind == PAUSE ? sim_between(w, SNIB__MS, w->options.pause_max) : 0;

        for (int i = 0; i < sim_fleet_servers(w); i++) {
                struct sim *server = sim_fleet_server(w, i);
                struct sim_client *c = &server->clients[process];

                if (kind == CRASH && c->alive)
                        sim_client_crash(server, c);
                else if (kind == PAUSE && c->alive && c->running)
                        sim_client_pause(server, c, length);
        }
        if (kind == CRASH)
                sim_fleet_crashed(w, &w->clients[process]);
}

static void strike(struct sim *w, int kind, struct sim_client *c)
{
        if (kind == CUT && c->alive && w->options.parts && w->store->cut_part && sim_chance(w, 600))
                w->store->cut_part(w, c, (int)sim_draw(w, (uint64_t)w->options.names));
        else if (kind == CUT && c->alive)
                w->store->cut(w, c, w->calm || sim_chance(w, 800));
        else if (kind == HALF_OPEN && c->alive)
                half_open(w, c);
        else if (kind == PAUSE || kind == CRASH)
                strike_process(w, kind, c->index);
        else if (kind == CLOSE && c->alive && c->running && !c->closing)
                sim_client_close(w, c);
        else if (kind == RESTART || kind == LOSE)
                w->store->restart(w, kind == RESTART, sim_between(w, 0, 2 * SNIB__S));
        else if (kind == STEP)
                w->store->step(w, sim_chance(w, 500) ? sim_between(w, 0, 40 * SNIB__S)
                                                     : -sim_between(w, 0, 3600 * SNIB__S));
}

static void run_fault(struct sim *w, struct sim_event *e)
{
        int kind = (int)(e - w->fault);
        struct sim_client *c = &w->clients[sim_draw(w, (uint64_t)w->options.clients)];
        snib__ns mean = interval(&w->options, kind);

        if (w->calm) { /* what is left of faults then: a few crashes and cuts */
                int *left = kind == CRASH ? &w->calm_crashes : &w->calm_cuts;

                if (!w->settled || w->quiet || *left == 0 || !c->alive || (kind != CRASH && kind != CUT))
                        return;
                --*left;
                mean = 2 * SNIB__S;
        }
        strike(w, kind, c);
        sim_at(w, e, w->now + sim_between(w, mean / 8, 2 * mean));
}

static void plan_faults(struct sim *w)
{
        for (int kind = CUT; kind <= STEP; kind++) {
                snib__ns mean = interval(&w->options, kind);

                w->fault[kind].run = run_fault;
                if (mean)
                        sim_at(w, &w->fault[kind], sim_between(w, mean / 8, 2 * mean));
        }
}

/* ---- phases ---- */

static void close_all(struct sim *w, struct sim_event *e);

static void nothing_at_all(struct sim *w, struct sim_event *e)
{
        (void)e;
        sim_check_left(w, true);
        w->phase.run = NULL;
}

static void end_quiet(struct sim *w, struct sim_event *e)
{
        (void)e;
        for (int i = 0; i < w->options.clients; i++)
                if (!sim_client_idle(&w->clients[i]))
                        sim_fail(w, SIM_STUCK, "L5", "client %d has not come to rest %d s after the faults", i,
                                 (int)((w->now - w->settled_at) / SNIB__S));
        close_all(w, e);
}

static void close_all(struct sim *w, struct sim_event *e)
{
        (void)e;
        sim_check_left(w, false);
        sim_trace(w, -1, "phase", 4, "closing");
        for (int i = 0; i < w->options.clients; i++)
                if (w->clients[i].alive)
                        sim_client_close(w, &w->clients[i]);
        w->phase.run = nothing_at_all;
        sim_at(w, &w->phase, w->now + w->options.lease_max + w->options.lease_max / 50 + 2 * CLAIM);
}

static void begin_quiet(struct sim *w, struct sim_event *e)
{
        (void)e;
        w->quiet = true;
        sim_trace(w, -1, "phase", 3, "quiet: nobody begins anything");
        for (int i = 0; i < w->options.clients; i++)
                if (w->clients[i].alive)
                        sim_app_quiet(w, &w->clients[i]);
        w->phase.run = end_quiet;
        sim_at(w, &w->phase, w->now + (w->fleet ? QUIET_MAX_FLEET : QUIET_MAX));
}

static void settle(struct sim *w, struct sim_event *e)
{
        (void)e;
        w->settled = true;
        w->settled_at = w->now;
        sim_trace(w, -1, "phase", 2, "settled: progress is checked");
        w->calm_crashes = w->options.crashes ? 2 : 0;
        w->calm_cuts = w->options.cuts ? 4 : 0;
        sim_at(w, &w->fault[CRASH], w->now + sim_between(w, 0, 2 * SNIB__S));
        sim_at(w, &w->fault[CUT], w->now + sim_between(w, 0, 2 * SNIB__S));
        w->phase.run = begin_quiet;
        sim_at(w, &w->phase, w->now + 6 * SNIB__S);
}

static void heal(struct sim *w, struct sim_event *e)
{
        const struct sim_options *o = &w->options;
        snib__ns back = 0;

        (void)e;
        w->calm = true;
        sim_trace(w, -1, "phase", 1, "calm: the faults are over");
        w->tracing &= !o->scripted;
        for (int i = 0; i < o->clients; i++) {
                struct sim_client *c = &w->clients[i];

                if (c->alive && !c->running)
                        sim_at(w, &c->resume, w->now);
                if (!c->alive)
                        sim_at(w, &c->restart, w->now + sim_between(w, 0, SNIB__S));
                else if (o->cuts || o->restarts || o->losses || o->half_opens || o->loss_share)
                        w->store->heal(w, c); /* what was lost silently on a connection stays lost on it */
        }
        w->phase.run = settle;
        for (int i = 0; i < sim_fleet_servers(w); i++) /* all settle at the same time */
                back = snib__max(back, sim_fleet_server(w, i)->back);
        sim_at(w, &w->phase, w->now + 2 * o->lease_max + o->tail_max + 2 * CLAIM + back);
}

static bool all_idle(const struct sim *w)
{
        if (w->fleet)
                return sim_fleet_idle(w);
        for (int i = 0; i < w->options.clients; i++)
                if (!sim_client_idle(&w->clients[i]))
                        return false;
        return true;
}

/* ---- one seed ---- */

void sim_world_start(struct sim *w, const struct sim_options *options, bool tracing)
{
        struct sim_chunk *chunks = w->chunks;
        struct sim_fleet *fleet = w->fleet;
        FILE *out = w->out;
        int server = w->server;

        memset(w, 0, sizeof(*w));
        w->chunks = chunks;
        w->fleet = fleet;
        w->server = server;
        w->out = out;
        w->tracing = tracing;
        w->options = *options;
        w->prng.state = options->seed * 0x2545f4914f6cdd1dULL + 1;
        snib__tree_init(&w->events, compare_due);
        snib__list_init(&w->spare[0]);
        snib__list_init(&w->spare[1]);
        for (int i = 0; i < w->options.names; i++) {
                if (options->fleet == SIM_STRIPED)
                        snib__stripe_name(w->names[i], "name", 4, (size_t)i, (size_t)w->options.names);
                else
                        snprintf(w->names[i], sizeof(w->names[i]), "name%d", i);
        }
        w->server_ppm = sim_between(w, -w->options.ppm, w->options.ppm);
        w->store = w->options.store == SIM_BYTES ? &sim_bytes : &sim_messages;
        w->store->start(w);
        for (int i = 0; i < w->options.clients; i++) {
                w->clients[i].index = i;
                sim_client_start(w, &w->clients[i]);
        }
        plan_faults(w);
        w->phase.run = heal;
        sim_at(w, &w->phase, w->options.safety);
}

void sim_world_step(struct sim *w, struct sim_event *e)
{
        sim_not(w, e);
        if (w->settled && e->due > w->now) {
                w->now = e->due;
                sim_check_progress(w);
        }
        w->now = e->due;
        e->run(w, e);
        sim_check_beliefs(w);
        if (w->quiet && w->phase.run == end_quiet && all_idle(w)) {
                /* What was sent arrives, then all close. */
                w->phase.run = close_all;
                sim_at(w, &w->phase, w->now + 8 * sim_delay_calm(w) + 8 * w->options.lateness);
        }
}

static void loop(struct sim *w)
{
        struct snib__tree_node *n;

        while (w->verdict == SIM_FINE && w->phase.run && (n = snib__tree_first(&w->events))) {
                sim_world_step(w, snib__container(n, struct sim_event, node));
                if (++w->event_count > SIM_EVENTS_MAX)
                        sim_fail(w, SIM_STUCK, "R2", "more than %d events", SIM_EVENTS_MAX);
        }
        if (w->verdict == SIM_FINE && w->phase.run)
                sim_fail(w, SIM_STUCK, "L5", "nothing will ever happen again");
}

static void play(struct sim *w, const struct sim_options *options, bool tracing, void (*plan)(struct sim *w))
{
        if (options->fleet) {
                sim_fleet_run(w, options, tracing);
                return;
        }
        sim_world_start(w, options, tracing);
        if (plan)
                plan(w);
        loop(w);
        w->store->stop(w);
}

static enum sim_verdict run(struct sim *w, const struct sim_options *options, bool tracing, void (*plan)(struct sim *w))
{
        running = w;
        if (setjmp(crash) == 0)
                play(w, options, tracing, plan);
        running = NULL;
        return w->verdict;
}

enum sim_verdict sim_run(struct sim *w, uint64_t seed, bool tracing)
{
        struct sim_options options;

        sim_options_draw(&options, seed);
        if (sim_only_store >= 0)
                options.store = (enum sim_store)sim_only_store;
        if (sim_only_subject >= 0)
                options.fleet = sim_only_subject >= SIM_MULTI ? (enum sim_subject)sim_only_subject : SIM_PLAIN;
        for (int i = 0; sim_only_subject >= 0 && i < options.names; i++)
                options.subject[i] = (enum sim_subject)sim_only_subject;
        if (options.fleet)
                sim_options_fleet(&options, options.fleet);
        return run(w, &options, tracing, NULL);
}

enum sim_verdict sim_run_scripted(struct sim *w, const struct sim_options *options, void (*plan)(struct sim *w))
{
        return run(w, options, true, plan);
}

void sim_done(struct sim *w)
{
        for (struct sim_chunk *c = w->chunks, *next; c; c = next) {
                next = c->next;
                free(c);
        }
        w->chunks = NULL;
}
