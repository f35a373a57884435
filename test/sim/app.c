/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The application of a client: threads that take locks in every way the library offers, and give them back. Each has at
 * most one call under way and acts at random times. Two threads may share an owner key. It plays by the rules: every
 * acquire that was granted is paid back once, also after a loss.
 */

#include "sim.h"
#include <stdio.h>
#include <string.h>

static struct sim_client *client_of(struct sim *w, struct sim_owner *o)
{
        return &w->clients[o->client];
}

static struct snib__name name_of(struct sim *w, int name)
{
        return (struct snib__name){w->names[name], strlen(w->names[name])};
}

static void act_in(struct sim *w, struct sim_owner *o, snib__ns mean)
{
        if (!w->options.scripted || w->quiet)
                sim_at(w, &o->act, w->now + sim_between(w, 0, 2 * mean));
}

static void begin_call(struct sim *w, struct sim_owner *o, enum snib__call_kind kind)
{
        memset(&o->call, 0, sizeof(o->call));
        o->call.kind = kind;
        o->call.deadline = SNIB__NEVER;
        o->call_limit = SNIB__NEVER;
        o->calling = true;
        o->call.owner_data = o;
        if (kind != SNIB__CALL_ACQUIRE)
                o->call.deadline = sim_local(w, client_of(w, o)) + w->options.op_timeout;
}

/* How long this acquire waits. */
static void draw_patience(struct sim *w, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;
        snib__ns now = sim_local(w, client_of(w, o));

        if (sim_chance(w, s->try_share)) {
                o->call.once = true;
                o->call.deadline = now;
        } else if (sim_chance(w, s->timed_share)) {
                o->call.deadline = now + sim_between(w, 0, 2 * SNIB__S);
        }
        if (o->call.deadline != SNIB__NEVER)
                o->call_limit = o->call.deadline + 4 * s->op_timeout + 2 * SNIB__S;
}

static struct sim_hold *new_hold(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;
        struct sim_hold *h = c->holds, *end = c->holds + SIM_HOLDS;

        while (h < end && h->used)
                h++;
        if (h == end || w->log_count == SIM_LOGS)
                return NULL;
        memset(h, 0, sizeof(*h));
        h->object = SIM_HOLD;
        h->used = true;
        h->name = o->name;
        h->since = w->now;
        h->log = sim_log_new(w, c, o->name);
        h->owner = o->index;
        snprintf(h->owner_key, sizeof(h->owner_key), "o%d", s->share_owner && o->index == 1 ? 0 : o->index);
        h->hold.name = name_of(w, o->name);
        h->hold.owner = (struct snib__name){h->owner_key, strlen(h->owner_key)};
        snprintf(h->hold.id.text, sizeof(h->hold.id.text), "%s:%d", c->uuid, h->log->number);
        snprintf(h->hold.who.host, sizeof(h->hold.who.host), "host%d", c->index);
        h->hold.who.pid = c->index;
        h->hold.kind = sim_chance(w, s->plain_share) ? SNIB_KIND_LOCK : SNIB_KIND_FENCED;
        h->log->fenced = h->hold.kind == SNIB_KIND_FENCED;
        h->hold.reentrant = !sim_chance(w, s->once_only_share);
        h->hold.keep = !sim_chance(w, s->fixed_share);
        h->hold.lease = sim_between(w, s->lease_min, s->lease_max) / SNIB__MS * SNIB__MS;
        if (sim_chance(w, s->max_hold_share))
                h->hold.max_hold = sim_between(w, s->lease_min / 2, 3 * s->lease_max);
        return h;
}

static void acquire(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        char key[16];
        struct snib__hold *known;
        struct sim_hold *h;

        if (!o->depth)
                o->name = (int)sim_draw(w, (uint64_t)w->options.names);
        snprintf(key, sizeof(key), "o%d", w->options.share_owner && o->index == 1 ? 0 : o->index);
        snib__core_tick(&c->core, sim_local(w, c)); /* what is found must not end on the way in */
        sim_client_pump(w, c);
        known = snib__core_find(&c->core, name_of(w, o->name), (struct snib__name){key, strlen(key)}, SNIB_KIND_LOCK);
        h = known ? snib__container(known, struct sim_hold, hold) : new_hold(w, c, o);
        if (!h) {
                act_in(w, o, w->options.think);
                return;
        }
        o->hold = h;
        begin_call(w, o, SNIB__CALL_ACQUIRE);
        draw_patience(w, o);
        sim_trace(w, c->index, known ? "join" : "acquire", h->log->number, "%s by %s as #%d, %s", w->names[o->name],
                  key, h->log->number,
                  o->call.once                      ? "one try"
                  : o->call.deadline == SNIB__NEVER ? "for ever"
                                                    : "for a while");
        if (known)
                snib__core_join(&c->core, &h->hold, &o->call, sim_local(w, c));
        else
                snib__core_begin(&c->core, &h->hold, &o->call, sim_local(w, c));
        if (!o->call.once && sim_chance(w, w->options.cancel_share))
                act_in(w, o, SNIB__S / 2);
}

static void release(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        sim_trace(w, c->index, "give back", o->hold->log->number, "#%d", o->hold->log->number);
        begin_call(w, o, SNIB__CALL_RELEASE);
        o->call_limit = o->call.deadline + SNIB__S;
        o->depth--;
        snib__core_release(&c->core, &o->hold->hold, &o->call, sim_local(w, c));
}

static void renew(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        begin_call(w, o, SNIB__CALL_RENEW);
        o->call_limit = o->call.deadline + SNIB__S;
        snib__core_renew(&c->core, &o->hold->hold, &o->call, sim_local(w, c));
}

static void ask(struct sim *w, struct sim_client *c, struct sim_owner *o, enum snib__verb verb)
{
        struct sim_ask *a = &o->ask;

        if (a->used)
                return;
        memset(a, 0, sizeof(*a));
        a->object = SIM_ASK;
        a->used = true;
        a->name = (int)sim_draw(w, (uint64_t)w->options.names);
        a->ask.op.verb = verb;
        a->ask.op.name = name_of(w, a->name);
        a->ask.op.kind = SNIB_KIND_FENCED;
        a->ask.deadline = sim_local(w, c) + sim_between(w, 0, 2 * w->options.op_timeout);
        snib__core_ask(&c->core, &a->ask, sim_local(w, c));
}

/* A thread has something to do. */
static void choose(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;

        if (o->calling) {
                if (o->call.kind == SNIB__CALL_ACQUIRE && o->call.hold) {
                        sim_trace(w, c->index, "cancel", o->hold->log->number, "#%d", o->hold->log->number);
                        snib__core_cancel(&c->core, &o->call, SNIB_ECANCELLED, sim_local(w, c));
                }
                return;
        }
        if (!w->quiet && sim_chance(w, s->query_share))
                ask(w, c, o, SNIB__QUERY);
        if (!w->calm && sim_chance(w, s->force_share))
                ask(w, c, o, SNIB__FORCE);
        if (o->depth == 0 && !w->quiet)
                acquire(w, c, o);
        else if (o->depth == 0)
                return;
        else if (!w->quiet && o->depth < 3 && sim_chance(w, s->reenter_share))
                acquire(w, c, o);
        else if (!w->quiet && sim_chance(w, s->renew_share))
                renew(w, c, o);
        else
                release(w, c, o);
}

static void run_act(struct sim *w, struct sim_event *e)
{
        struct sim_owner *o = snib__container(e, struct sim_owner, act);
        struct sim_client *c = client_of(w, o);

        if (!c->alive || c->closing)
                return;
        if (!c->running) {
                sim_at(w, e, c->resume.due + sim_between(w, 0, w->options.lateness));
                return;
        }
        choose(w, c, o);
        sim_client_pump(w, c);
        sim_client_schedule(w, c);
}

void sim_app_start(struct sim *w, struct sim_client *c)
{
        for (int i = 0; i < w->options.owners; i++) {
                struct sim_owner *o = &c->owners[i];

                memset(o, 0, sizeof(*o));
                o->client = c->index;
                o->index = i;
                o->act.run = run_act;
                act_in(w, o, w->options.think);
        }
}

void sim_app_stop(struct sim *w, struct sim_client *c)
{
        for (int i = 0; i < w->options.owners; i++)
                sim_not(w, &c->owners[i].act);
}

void sim_app_answered(struct sim *w, struct sim_client *c, struct snib__call *call)
{
        struct sim_owner *o = call->owner_data;
        static const char *const kinds[] = {"", "acquire", "release", "renew"};

        sim_trace(w, c->index, "answer", call->result, "%s #%d: %d", kinds[call->kind],
                  o->hold ? o->hold->log->number : 0, call->result);
        if (!o->calling || call != &o->call) {
                sim_fail(w, SIM_UNSAFE, "once", "client %d: a call is answered that was answered before", c->index);
                return;
        }
        o->calling = false;
        sim_check_answer(w, c, call, o->hold);
        if (call->kind == SNIB__CALL_ACQUIRE && call->result == 1) {
                o->depth++;
                w->acquired++;
        }
        if (o->depth == 0)
                o->hold = NULL;
        act_in(w, o, o->depth ? w->options.hold : w->options.think);
}

void sim_app_answered_ask(struct sim *w, struct sim_client *c, struct snib__ask *ask)
{
        struct sim_ask *a = snib__container(ask, struct sim_ask, ask);

        sim_trace(w, c->index, "answer", ask->result, "ask: %d", ask->result);
        if (!a->used)
                sim_fail(w, SIM_UNSAFE, "once", "client %d: a question is answered that was answered before", c->index);
        a->used = false;
}

void sim_app_lost(struct sim *w, struct sim_client *c, struct snib__hold *hold)
{
        struct sim_hold *h = snib__container(hold, struct sim_hold, hold);

        sim_trace(w, c->index, "lost", h->log->number, "#%d reason %d", h->log->number, hold->loss);
        if (++h->log->told > 1)
                sim_fail(w, SIM_UNSAFE, "S7", "client %d: the loss of #%d is told twice", c->index, h->log->number);
        for (int i = 0; i < w->options.owners; i++) {
                struct sim_owner *o = &c->owners[i];

                if (o->hold == h && o->depth > 0 && !o->calling)
                        act_in(w, o, w->options.lateness);
        }
}

void sim_app_wake(struct sim *w, struct sim_client *c)
{
        for (int i = 0; i < w->options.owners; i++)
                act_in(w, &c->owners[i], w->options.think);
}

static bool possible(const struct sim_owner *o, const char *verb)
{
        if (strcmp(verb, "cancel") == 0)
                return o->calling;
        if (strcmp(verb, "release") == 0 || strcmp(verb, "renew") == 0)
                return !o->calling && o->depth > 0;
        return !o->calling;
}

bool sim_app_do(struct sim *w, struct sim_client *c, int owner, const char *verb)
{
        struct sim_owner *o = &c->owners[owner];

        if (!c->running || !possible(o, verb))
                return false;
        if (strcmp(verb, "acquire") == 0)
                acquire(w, c, o);
        else if (strcmp(verb, "release") == 0)
                release(w, c, o);
        else if (strcmp(verb, "renew") == 0)
                renew(w, c, o);
        else if (strcmp(verb, "cancel") == 0)
                choose(w, c, o);
        else if (strcmp(verb, "force") == 0 || strcmp(verb, "query") == 0)
                ask(w, c, o, verb[0] == 'f' ? SNIB__FORCE : SNIB__QUERY);
        else
                return false;
        sim_client_pump(w, c);
        sim_client_schedule(w, c);
        return true;
}
