/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One client process: the production core, an engine, and the small loop that carries effects one
 * way and notes the other, as the runtime does. Not what the application wants (app.c). A process
 * runs, is paused (executes nothing, its clock goes on), is closing, or is dead.
 */

#include "sim.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

snib__ns sim_local(const struct sim *w, const struct sim_client *c)
{
        return c->offset + w->now + w->now / 1000000 * c->ppm;
}

snib__ns sim_world_time(const struct sim_client *c, snib__ns local)
{
        if (local == SNIB__NEVER)
                return SNIB__NEVER;
        snib__ns t = (snib__ns)((double)(local - c->offset) / (1.0 + (double)c->ppm / 1e6)) - 1000;

        while (c->offset + t + t / 1000000 * c->ppm < local) {
                snib__ns miss = local - (c->offset + t + t / 1000000 * c->ppm);

                t += miss / 2 + 1;
        }
        return t;
}

static void submit(struct sim *w, struct sim_client *c, const struct snib__effect *e)
{
        static const char *const verbs[] = {"",    "acquire", "release", "renew", "query", "force", "observe",
                                            "set", "resize",  "add",     "drain", "write", "delete"};
        struct snib__tag tag = {.cookie = e->cookie, .attempt = e->attempt};
        struct sim_hold *h = e->hold ? snib__container(e->hold, struct sim_hold, hold) : NULL;

        tag.object = h ? (void *)h : snib__container(e->ask, struct sim_ask, ask);
        sim_trace(w, c->index, "submit", e->attempt, "%s %.*s #%d attempt %u lease %d%s", verbs[e->op->verb],
                  (int)e->op->name.length, e->op->name.bytes, h ? h->log->number : 0, e->attempt, (int)e->op->lease_ms,
                  e->op->enqueue ? " enqueue" : "");
        sim_check_submit(w, c, e);
        if ((!w->calm && w->options.memory_share && sim_chance(w, w->options.memory_share)) ||
            !c->ops->submit(c->engine, tag, e->op, sim_local(w, c))) {
                sim_trace(w, c->index, "no memory", e->attempt, "for attempt %u", e->attempt);
                snib__core_refused(&c->core, e, sim_local(w, c));
                sim_check_refused(w, c, e);
                return;
        }
        /* One that is alone leaves at once; others are kept for company. */
        if (c->core.outstanding == 1 && c->ops->flush)
                c->ops->flush(c->engine);
}

static void watch(struct sim *w, struct sim_client *c, const struct snib__effect *e, int by)
{
        int name = snib__container(e->hold, struct sim_hold, hold)->name;

        c->watches[name] += by;
        if (by > 0)
                snib__container(e->hold, struct sim_hold, hold)->watch_sent = true;
        else if (c->watches[name] == 0)
                c->watching_at[name] = SNIB__NEVER;
        sim_trace(w, c->index, by > 0 ? "watch" : "unwatch", name, "%s: %d", w->names[name], c->watches[name]);
        if (c->watches[name] < 0)
                sim_fail(w, SIM_UNSAFE, "R1", "client %d unwatches %s more often than it watches", c->index,
                         w->names[name]);
        else if (by > 0)
                c->ops->watch(c->engine, &(struct snib__topic){e->hold->name, e->hold->kind, e->hold->known.id},
                              sim_local(w, c));
        else
                c->ops->unwatch(c->engine, &(struct snib__topic){e->hold->name, e->hold->kind, e->hold->known.id},
                                sim_local(w, c));
}

static void forget(struct sim *w, struct sim_hold *h)
{
        sim_trace(w, h->log->client, "free", h->log->number, "#%d", h->log->number);
        sim_check_forgotten(w, h);
        h->used = false;
}

static void effect(struct sim *w, struct sim_client *c, const struct snib__effect *e)
{
        switch (e->kind) {
        case SNIB__EFFECT_LOST:
                sim_check_lost(w, c, snib__container(e->hold, struct sim_hold, hold));
                sim_app_lost(w, c, e->hold);
                break;
        case SNIB__EFFECT_ANSWER:
                sim_app_answered(w, c, e->call);
                break;
        case SNIB__EFFECT_ANSWER_ASK:
                sim_app_answered_ask(w, c, e->ask);
                break;
        case SNIB__EFFECT_SUBMIT:
                submit(w, c, e);
                break;
        case SNIB__EFFECT_WATCH:
                watch(w, c, e, 1);
                break;
        case SNIB__EFFECT_UNWATCH:
                watch(w, c, e, -1);
                break;
        case SNIB__EFFECT_FREE:
                forget(w, snib__container(e->hold, struct sim_hold, hold));
                break;
        }
}

/* A loss that nobody was told of, though somebody has the hold. */
static void check_told(struct sim *w, struct sim_client *c)
{
        snib__list_each (it, &c->core.holds) {
                const struct snib__hold *hold = snib__container(it, struct snib__hold, all);
                const struct sim_hold *h = snib__container(hold, struct sim_hold, hold);

                if (hold->state == SNIB__LOST && hold->depth > 0 && h->log->told == 0)
                        sim_fail(w, SIM_UNSAFE, "S7", "client %d lost #%d and told nobody", c->index, h->log->number);
        }
}

void sim_client_pump(struct sim *w, struct sim_client *c)
{
        struct snib__effect e;
        const char *broken;

        sim_cohort_follow(w, c);
        while (snib__core_next(&c->core, &e))
                effect(w, c, &e);
        broken = snib__core_check(&c->core, sim_local(w, c));
        if (broken)
                sim_fail(w, SIM_CRASHED, "core", "client %d: not so: %s", c->index, broken);
        check_told(w, c);
}

static int name_of(const struct sim *w, struct snib__name name)
{
        for (int i = 0; i < w->options.names; i++)
                if (strlen(w->names[i]) == name.length && memcmp(w->names[i], name.bytes, name.length) == 0)
                        return i;
        return -1;
}

static void deliver_reply(struct sim *w, struct sim_client *c, const struct snib__note *n, snib__ns now)
{
        static const char *const statuses[] = {"",         "granted", "busy",   "renewed", "gone",
                                               "released", "info",    "failed", "done"};
        enum sim_object what = *(enum sim_object *)n->tag.object;
        bool heard;

        sim_trace(w, c->index, "reply", n->tag.attempt, "%s attempt %u token %lld error %d", statuses[n->reply.status],
                  n->tag.attempt, (long long)n->reply.token, n->reply.error);
        if (what == SIM_HOLD) {
                struct sim_hold *h = n->tag.object;

                sim_check_heard(h, n->tag.attempt, &n->reply, now);
                heard = snib__core_reply_hold(&c->core, &h->hold, n->tag.cookie, n->tag.attempt, &n->reply, now);
        } else {
                struct sim_ask *a = n->tag.object;

                heard = snib__core_reply_ask(&c->core, &a->ask, n->tag.cookie, n->tag.attempt, &n->reply, now);
        }
        if (!heard && c->ops->unheard)
                c->ops->unheard(c->engine, n->tag);
}

static void deliver_link(struct sim *w, struct sim_client *c, const struct snib__note *n, snib__ns now)
{
        bool up = n->kind == SNIB__NOTE_LINK_UP;

        sim_trace(w, c->index, "link", up, "%s", up ? "up" : "down");
        c->linked_at = up ? w->now : SNIB__NEVER;
        for (int i = 0; i < SIM_NAMES; i++)
                c->part_at[i] = c->linked_at;
        if (!up)
                sim_client_deaf(c, -1);
        snib__core_link(&c->core, up, n->reply.error, n->reply.engine_code, n->reply.error_text, now);
}

void sim_client_deaf(struct sim_client *c, int name)
{
        for (int i = 0; i < SIM_HOLDS; i++)
                if (name < 0 || c->holds[i].name == name)
                        c->holds[i].watching_at = SNIB__NEVER;
        for (int i = 0; i < SIM_NAMES; i++)
                if (name < 0 || i == name)
                        c->watching_at[i] = SNIB__NEVER;
}

struct relinked {
        const struct sim_client *client;
        const struct snib__note *note;
};

static bool concerns(const void *arg, struct snib__name name)
{
        const struct relinked *r = arg;

        return r->client->ops->concerns(r->client->engine, r->note, name);
}

static void deliver_relinked(struct sim *w, struct sim_client *c, const struct snib__note *n, snib__ns now)
{
        struct relinked r = {c, n};

        sim_trace(w, c->index, "relinked", (int64_t)n->part, "%s", w->names[n->part]);
        c->part_at[n->part] = w->now;
        sim_client_deaf(c, (int)n->part);
        snib__core_relinked(&c->core, concerns, &r, now);
}

/* The watch of this waiter, or of all of the name, is in effect. */
static void watching(struct sim *w, struct sim_client *c, int name, const struct snib__id *id)
{
        if (c->watching_at[name] == SNIB__NEVER)
                c->watching_at[name] = w->now;
        for (int i = 0; i < SIM_HOLDS; i++) {
                struct sim_hold *h = &c->holds[i];

                if (h->used && h->name == name && h->hold.known.watch.on && h->watching_at == SNIB__NEVER &&
                    (!snib__id_set(id) || snib__id_equal(id, &h->hold.known.id)))
                        h->watching_at = w->now;
        }
}

/* What it believes now was granted after what it asked last. */
static void granted(struct sim_client *c, const struct snib__note *n, snib__ns now)
{
        struct sim_hold *h = NULL;

        for (int i = 0; i < SIM_HOLDS && !h; i++)
                if (c->holds[i].used && c->holds[i].hold.state != SNIB__HELD &&
                    snib__id_equal(&c->holds[i].hold.known.id, &n->id))
                        h = &c->holds[i];
        snib__core_granted(&c->core, n->name, &n->id, n->tag.attempt, &n->reply, now);
        if (!h || h->hold.state != SNIB__HELD)
                return;
        h->log->heard_at = now;
        if (h->log->sent_at > h->log->stale_at)
                h->log->stale = false;
}

static void deliver(struct sim *w, struct sim_client *c, const struct snib__note *n, snib__ns now)
{
        int name = n->name.length ? name_of(w, n->name) : -1;

        switch (n->kind) {
        case SNIB__NOTE_REPLY:
                deliver_reply(w, c, n, now);
                break;
        case SNIB__NOTE_CHANGED:
                sim_trace(w, c->index, "changed", name, "%d", name);
                snib__core_changed(&c->core, n->name, n->all, now);
                break;
        case SNIB__NOTE_WATCHING:
                sim_trace(w, c->index, "watching", name, "%d", name);
                watching(w, c, name, &n->id);
                snib__core_watching(&c->core, n->name, &n->id, n->since, now);
                break;
        case SNIB__NOTE_GRANTED:
                sim_trace(w, c->index, "granted", name, "%s", n->id.text);
                granted(c, n, now);
                break;
        case SNIB__NOTE_NEXT:
                sim_trace(w, c->index, "next", name, "%s", n->id.text);
                snib__core_next_in_line(&c->core, n->name, &n->id, now);
                break;
        case SNIB__NOTE_ENDED:
                sim_trace(w, c->index, "ended", name, "%s", n->id.text);
                snib__core_ended(&c->core, n->name, &n->id, now);
                break;
        case SNIB__NOTE_LINK_UP:
        case SNIB__NOTE_LINK_DOWN:
                deliver_link(w, c, n, now);
                break;
        case SNIB__NOTE_RELINKED:
                deliver_relinked(w, c, n, now);
                break;
        case SNIB__NOTE_LISTED:
                sim_fail(w, SIM_CRASHED, "engine", "a listing that nobody asked for");
                break;
        }
}

/* The process is not there any more. */
static void end(struct sim *w, struct sim_client *c)
{
        c->ops->close(c->engine);
        c->engine = NULL;
        c->alive = c->closing = false;
        w->polls += c->core.polls;
        sim_app_stop(w, c);
        sim_not(w, &c->wake);
}

static void exit_client(struct sim *w, struct sim_client *c)
{
        sim_trace(w, c->index, "exit", 0, "%s", c->core.farewells == 0 ? "all released" : "out of patience");
        end(w, c);
        if (!w->quiet)
                sim_at(w, &c->restart, w->now + sim_between(w, 0, 2 * SNIB__S));
}

/* As the runtime: first what is due, then what came in. */
static void drive(struct sim *w, struct sim_client *c)
{
        snib__ns now = sim_local(w, c);
        struct snib__interest interest;
        struct snib__note note;
        int rounds = 0;

        c->poked = SNIB__NEVER;
        snib__core_tick(&c->core, now);
        sim_client_pump(w, c);
        do {
                c->ops->process(c->engine, NULL, now);
                while (c->ops->next(c->engine, &note)) {
                        deliver(w, c, &note, now);
                        sim_client_pump(w, c);
                }
                memset(&interest, 0, sizeof(interest));
                c->ops->interest(c->engine, now, &interest);
                if (++rounds > 1000) {
                        sim_fail(w, SIM_STUCK, "R2", "client %d: the engine always has something to do", c->index);
                        return;
                }
        } while (interest.deadline <= now || interest.kept);
        if (c->closing && (c->core.farewells == 0 || now >= c->close_limit))
                exit_client(w, c);
}

void sim_client_schedule(struct sim *w, struct sim_client *c)
{
        struct snib__interest interest = {.deadline = SNIB__NEVER};
        snib__ns due;

        if (!c->alive || !c->running)
                return;
        c->ops->interest(c->engine, sim_local(w, c), &interest);
        due = interest.kept ? 0 : snib__min(snib__core_deadline(&c->core), interest.deadline);
        if (c->closing)
                due = snib__min(due, c->close_limit);
        if (due != SNIB__NEVER)
                due = snib__max(w->now, sim_world_time(c, due)) + sim_between(w, 0, w->options.lateness);
        sim_at(w, &c->wake, snib__min(due, c->poked));
}

void sim_client_poke(struct sim *w, struct sim_client *c)
{
        snib__ns due = w->now + sim_between(w, 0, w->options.lateness);

        if (!c->alive || !c->running)
                return;
        c->poked = snib__min(c->poked, due);
        if (!snib__tree_linked(&c->wake.node) || c->wake.due > due)
                sim_at(w, &c->wake, due);
}

static void run_wake(struct sim *w, struct sim_event *e)
{
        struct sim_client *c = snib__container(e, struct sim_client, wake);

        if (!c->alive || !c->running)
                return;
        drive(w, c);
        sim_client_schedule(w, c);
}

static void run_resume(struct sim *w, struct sim_event *e)
{
        struct sim_client *c = snib__container(e, struct sim_client, resume);

        if (!c->alive || c->running)
                return;
        sim_trace(w, c->index, "resume", 0, " ");
        c->running = true;
        c->running_at = w->now;
        drive(w, c);
        sim_client_schedule(w, c);
}

static void run_restart(struct sim *w, struct sim_event *e)
{
        struct sim_client *c = snib__container(e, struct sim_client, restart);

        if (!c->alive && !w->quiet)
                sim_client_start(w, c);
}

static void draw_uuid(struct sim *w, char ret[37])
{
        unsigned long long a = snib__prng_next(&w->prng), b = snib__prng_next(&w->prng);

        snprintf(ret, 37, "%08llx-%04llx-4%03llx-a%03llx-%012llx", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                 (b >> 48) & 0xfff, b & 0xffffffffffffULL);
}

void sim_client_start(struct sim *w, struct sim_client *c)
{
        struct snib__core_config config = {.op_timeout = w->options.op_timeout, .who = &c->who};
        int index = c->index;
        uint32_t incarnation = c->incarnation + 1;
        int forces = c->forces, resets = c->resets, deletes = c->deletes; /* of a crashed one they may still arrive */

        sim_not(w, &c->wake);
        sim_not(w, &c->resume);
        sim_not(w, &c->restart);
        memset(c, 0, sizeof(*c));
        c->index = index;
        c->incarnation = incarnation;
        c->forces = forces;
        c->resets = resets;
        c->deletes = deletes;
        c->alive = c->running = true;
        c->wake.run = run_wake;
        c->resume.run = run_resume;
        c->restart.run = run_restart;
        c->offset = sim_between(w, SNIB__S, 1000000 * SNIB__S);
        c->ppm = sim_between(w, -w->options.ppm, w->options.ppm);
        sim_fleet_clock(w, c);
        c->linked_at = SNIB__NEVER;
        sim_client_deaf(c, -1);
        c->running_at = w->now;
        c->poked = SNIB__NEVER;
        draw_uuid(w, c->uuid);
        snprintf(c->who.host, sizeof(c->who.host), "host%d", index);
        c->who.pid = index;
        sim_trace(w, index, "start", incarnation, "%s, clock %+lld ppm", c->uuid, (long long)c->ppm);
        w->store->open(w, c);
        c->facts = c->ops->facts(c->engine);
        config.queues = c->facts->queues;
        config.watches = c->facts->traits & SNIB__TRAIT_WATCH;
        config.token_block = c->facts->token_block;
        config.poll = c->facts->poll;
        config.seed = snib__prng_next(&w->prng);
        config.renewals = 1 + (int)(config.seed % 4);
        config.phases = 2; /* so that some come together */
        config.neighbours = config.seed & 4 ? SNIB__NEIGHBOURS : 1;
        snib__core_init(&c->core, &config);
        sim_app_start(w, c);
        sim_client_schedule(w, c);
        sim_client_poke(w, c);
}

void sim_client_crash(struct sim *w, struct sim_client *c)
{
        sim_trace(w, c->index, "crash", 0, " ");
        w->store->vanish(w, c);
        end(w, c);
        sim_not(w, &c->resume);
        sim_at(w, &c->restart, w->now + sim_between(w, 0, 4 * SNIB__S));
}

void sim_client_pause(struct sim *w, struct sim_client *c, snib__ns length)
{
        sim_trace(w, c->index, "pause", length, "for %lld ms", (long long)(length / SNIB__MS));
        c->running = false;
        sim_not(w, &c->wake);
        sim_at(w, &c->resume, w->now + length);
}

void sim_client_close(struct sim *w, struct sim_client *c)
{
        sim_trace(w, c->index, "close", 0, " ");
        c->closing = true;
        c->close_limit = sim_local(w, c) + 2 * SNIB__S;
        snib__core_close(&c->core, sim_local(w, c));
        sim_client_pump(w, c);
        sim_fleet_closed(w, c);
        sim_client_poke(w, c);
}

bool sim_client_idle(const struct sim_client *c)
{
        if (!c->alive)
                return true;
        if (c->closing || !snib__list_empty(&c->core.holds) || !snib__list_empty(&c->core.asks))
                return false;
        for (int i = 0; i < SIM_OWNERS_ALL; i++)
                if (c->owners[i].calling || c->owners[i].stake[0].depth || c->owners[i].stake[1].depth ||
                    c->owners[i].taken || c->owners[i].ask.used)
                        return false;
        return true;
}
