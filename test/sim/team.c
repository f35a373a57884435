/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads that take multilocks: the production machine (core/multi.h), whose members are owners at
 * the clients of their process, as the runtime has it (member.c, multi_effects.c). What a client
 * tells a member is noted, and the machine is stepped a little later, when the thread runs. Not
 * what must hold (teamchecks.c).
 */

#include "core/stripe.h"
#include "fleet.h"
#include <snib/error.h>
#include <string.h>

struct sim_client *sim_member_client(const struct sim_member *p)
{
        return &p->server->clients[p->team->process];
}

snib__ns sim_team_now(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);

        return sim_local(w, &w->clients[t->process]);
}

/* The client that the member was made with takes calls. */
static bool is_there(const struct sim_member *p)
{
        const struct sim_client *c = sim_member_client(p);

        return c->alive && !c->closing && c->incarnation == p->incarnation;
}

bool sim_team_running(struct sim_team *t)
{
        for (int i = 0; i < t->fleet->options.servers; i++) {
                const struct sim_client *c = &t->fleet->servers[i].clients[t->process];

                if (c->alive && !c->running)
                        return false;
        }
        return true;
}

static void poke(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);
        snib__ns due = w->now + sim_between(w, 0, w->options.lateness);

        if (!snib__tree_linked(&t->wake.node) || t->wake.due > due)
                sim_at(w, &t->wake, due);
}

static void act_in(struct sim_team *t, snib__ns mean)
{
        struct sim *w = sim_ground(t->fleet);

        sim_at(w, &t->act, w->now + sim_between(w, 0, 2 * mean));
}

/* ---- what a member is told ---- */

void sim_member_answered(struct sim *w, struct sim_owner *o, const struct snib__call *call)
{
        struct sim_member *p = o->member;
        const struct snib__hold *hold = &o->stake[o->side].hold->hold;

        (void)w;
        p->ended = true;
        p->result = call->result;
        /* Its loss was told before there was anybody to tell. */
        if (call->kind == SNIB__CALL_ACQUIRE && call->result == 1 && hold->state == SNIB__LOST && !hold->lost_pending)
                sim_member_lost(o, hold);
        poke(p->team);
}

void sim_member_lost(struct sim_owner *o, const struct snib__hold *hold)
{
        struct sim_member *p = o->member;

        p->team->told += snib__multi_lost(&p->team->machine, (size_t)p->number, hold->loss, false);
        poke(p->team);
}

void sim_member_terms(const struct sim_owner *o, struct snib__hold *hold)
{
        hold->reentrant = true;
        hold->keep = o->member->team->keep;
        hold->lease = o->member->team->lease;
}

void sim_team_closed(struct sim_team *t, const struct sim *server, const struct sim_client *c)
{
        for (size_t i = 0; t->busy && i < t->machine.count; i++)
                if (t->member[i].server == server && t->member[i].incarnation == c->incarnation)
                        snib__multi_closed(&t->machine, i);
        if (t->busy)
                poke(t);
}

/* ---- what the machine wants ---- */

static void ask(struct sim_member *p, const struct snib__multi_effect *e)
{
        struct sim_owner *o = p->owner;

        *o = (struct sim_owner){
            .member = p, .client = p->team->process, .index = (int)(o - sim_member_client(p)->owners), .name = p->name};
        p->log = NULL;
        if (!sim_app_member_acquire(p->server, sim_member_client(p), o, p->side, e->once, e->wait)) {
                snib__multi_answer(&p->team->machine, e->member, SNIB_ENOMEM, NULL, 0);
                return;
        }
        if (o->stake[p->side].hold)
                p->log = o->stake[p->side].hold->log;
}

static void carry_out(struct sim_team *t, const struct snib__multi_effect *e)
{
        struct sim_member *p = &t->member[e->member];

        if (e->kind == SNIB__MULTI_BLAME || e->kind == SNIB__MULTI_LET_GO)
                return;
        sim_trace(p->server, t->process, e->kind == SNIB__MULTI_ASK ? "ask part" : "end part", p->number,
                  "part %d of team %d, kind %d", p->number, t->index, e->kind);
        if (!is_there(p)) {
                if (e->kind == SNIB__MULTI_ASK || e->kind == SNIB__MULTI_RELEASE)
                        snib__multi_answer(&t->machine, e->member, SNIB_ECLOSED, NULL, 0);
        } else if (e->kind == SNIB__MULTI_ASK) {
                ask(p, e);
        } else if (e->kind == SNIB__MULTI_RELEASE) {
                sim_app_member_release(p->server, sim_member_client(p), p->owner, e->wait);
        } else if (e->kind == SNIB__MULTI_HURRY) {
                sim_app_member_hurry(p->server, sim_member_client(p), p->owner);
        } else {
                sim_app_member_cancel(p->server, sim_member_client(p), p->owner);
        }
}

/* Takes note of what was answered. */
static bool collect(struct sim_team *t)
{
        bool any = false;

        for (size_t i = 0; i < t->machine.count; i++) {
                struct sim_member *p = &t->member[i];
                struct sim_hold *h = p->owner->stake[p->side].hold;
                bool granted = p->result == 1 && t->members[i].state == SNIB__MEMBER_ASKING;

                if (!p->ended)
                        continue;
                p->ended = false;
                any = true;
                snib__multi_answer(&t->machine, i, p->result, granted ? &h->hold : NULL, granted ? h->hold.token : 0);
        }
        return any;
}

static bool has_ended(const struct sim_team *t)
{
        for (size_t i = 0; i < t->machine.count; i++)
                if (t->member[i].ended)
                        return true;
        return false;
}

static void advance(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);
        struct snib__multi_effect e;
        bool again;

        do {
                again = collect(t);
                again |= snib__multi_step(&t->machine, sim_team_now(t));
                while (snib__multi_next(&t->machine, &e)) {
                        carry_out(t, &e);
                        again = true;
                }
                sim_check_team(t);
        } while (again || has_ended(t));
        sim_not(w, &t->wake);
        if (t->machine.due != SNIB__NEVER)
                sim_at(w, &t->wake,
                       snib__max(w->now, sim_world_time(&w->clients[t->process], t->machine.due)) +
                           sim_between(w, 0, w->options.lateness));
        if (t->machine.phase != SNIB__MULTI_OVER)
                return;
        t->busy = false;
        sim_not(w, &t->wake);
        act_in(t, w->options.think);
}

/* Steps, and sees what the thread does next. */
static void go_on(struct sim_team *t)
{
        struct sim *w = sim_ground(t->fleet);
        bool had = t->machine.phase == SNIB__MULTI_HELD, lost = atomic_load(&t->machine.loss);

        advance(t);
        if (t->machine.phase != SNIB__MULTI_HELD)
                return;
        if (!had) {
                w->acquired++;
                act_in(t, w->options.hold);
        } else if (lost) {
                act_in(t, w->options.lateness);
        }
}

static void run_wake(struct sim *w, struct sim_event *e)
{
        struct sim_team *t = snib__container(e, struct sim_team, wake);

        if (!t->busy)
                return;
        if (!sim_team_running(t))
                sim_at(w, e, w->now + SNIB__MS);
        else
                go_on(t);
}

/* ---- what the thread wants ---- */

static void add_member(struct sim_team *t, int server, int name)
{
        struct sim_fleet *f = t->fleet;
        struct sim *s = &f->servers[server];
        size_t n = t->machine.count++;
        struct sim_member *p = &t->member[n];
        struct sim_client *c = &s->clients[t->process];

        *p = (struct sim_member){.team = t, .server = s, .number = (int)n, .name = name, .incarnation = c->incarnation};
        p->side = s->options.subject[name] == SIM_RW && sim_chance(sim_ground(f), s->options.read_share);
        p->owner = &c->owners[SIM_OWNERS + t->index * SIM_NAMES + name];
        t->members[n] = (struct snib__multi_member){
            .lease = t->lease, .lasts = t->keep ? SNIB__NEVER : t->lease, .heard = &p->owner->call.heard};
}

/* Of a plain multilock some, of the others all; in any order. */
static void choose_members(struct sim_team *t)
{
        const struct sim_options *o = &t->fleet->options;
        struct sim *w = sim_ground(t->fleet);
        int names = o->fleet == SIM_STRIPED ? (int)snib__stripe_all((size_t)o->names) : o->names;
        int all = o->servers * names, first = (int)sim_draw(w, (uint64_t)all), by = sim_chance(w, 500) ? 1 : all - 1;

        t->machine.count = 0;
        for (int i = 0; i < all; i++) {
                int k = (first + i * by) % all;

                if (o->fleet != SIM_MULTI || t->machine.count < 2 || sim_chance(w, 500))
                        add_member(t, k / names, k % names);
        }
}

static void order(struct sim_team *t, size_t *ret_order)
{
        static const char *const places[SIM_SERVERS] = {"a", "b", "c", "d", "e"};
        struct snib__multi_key keys[SIM_MEMBERS];

        for (size_t i = 0; i < t->machine.count; i++) {
                const struct sim_member *p = &t->member[i];
                const char *name = p->server->names[p->name];

                keys[i] = (struct snib__multi_key){{name, strlen(name)}, places[p->server->server], 0};
                ret_order[i] = i;
        }
        if (!t->foreign)
                snib__multi_order(keys, t->machine.count, ret_order);
}

static void draw_patience(struct sim_team *t, struct snib__multi_config *config)
{
        const struct sim_options *o = &t->fleet->options;
        struct sim *w = sim_ground(t->fleet);
        snib__ns now = sim_team_now(t);

        config->once = sim_chance(w, o->try_share);
        config->deadline = SNIB__NEVER;
        if (config->once)
                config->deadline = now;
        else if (sim_chance(w, o->timed_share))
                config->deadline = now + sim_between(w, 0, 5 * SNIB__S);
        t->limit = snib__after(config->deadline, 4 * o->op_timeout + 2 * o->node_timeout + 2 * SNIB__S);
}

static void begin(struct sim_team *t)
{
        const struct sim_options *o = &t->fleet->options;
        struct sim *w = sim_ground(t->fleet);
        size_t order_of[SIM_MEMBERS];
        struct snib__multi_config config = {
            .red = o->fleet == SIM_RED, .node_timeout = o->node_timeout, .order = order_of};

        t->lease = sim_between(w, o->lease_min, o->lease_max) / SNIB__MS * SNIB__MS;
        t->keep = !sim_chance(w, o->fixed_share);
        t->foreign = sim_chance(w, o->foreign_share);
        choose_members(t);
        order(t, order_of);
        draw_patience(t, &config);
        config.count = t->machine.count;
        config.seed = snib__prng_next(&w->prng);
        snib__multi_init(&t->machine, &config, t->members);
        t->busy = true;
        t->phase = SNIB__MULTI_ASKING;
        t->told = 0;
        t->released = false;
        t->over = 0;
        sim_trace(w, t->process, "multilock", t->index, "team %d: %d members%s, %s", t->index, (int)config.count,
                  t->foreign ? " in another order" : "",
                  config.once                      ? "one try"
                  : config.deadline == SNIB__NEVER ? "for ever"
                                                   : "for a while");
        if (!config.once && sim_chance(w, o->cancel_share))
                act_in(t, SNIB__S / 2);
        go_on(t);
}

static bool is_ready(const struct sim_team *t)
{
        for (int i = 0; i < t->fleet->options.servers; i++) {
                const struct sim_client *c = &t->fleet->servers[i].clients[t->process];

                if (!c->alive || c->closing)
                        return false;
        }
        return true;
}

static void give_back(struct sim_team *t)
{
        const struct sim_options *o = &t->fleet->options;
        struct sim *w = sim_ground(t->fleet);

        sim_trace(w, t->process, "give back", t->index, "team %d", t->index);
        t->limit = sim_team_now(t) + 4 * o->op_timeout + 2 * o->node_timeout + 2 * SNIB__S;
        snib__multi_release(&t->machine, sim_team_now(t));
        go_on(t);
}

static void run_act(struct sim *w, struct sim_event *e)
{
        struct sim_team *t = snib__container(e, struct sim_team, act);

        if (!sim_team_running(t)) {
                sim_at(w, e, w->now + 10 * SNIB__MS);
        } else if (t->busy && t->machine.phase == SNIB__MULTI_HELD) {
                give_back(t);
        } else if (t->busy && snib__multi_cancel(&t->machine)) {
                sim_trace(w, t->process, "cancel", t->index, "team %d", t->index);
                go_on(t);
        } else if (!t->busy && !w->quiet) {
                if (is_ready(t))
                        begin(t);
                else
                        act_in(t, w->options.think);
        }
}

void sim_team_start(struct sim_fleet *f, int process, int index)
{
        struct sim_team *t = &f->team[process][index];

        memset(t, 0, sizeof(*t));
        t->act.run = run_act;
        t->wake.run = run_wake;
        t->fleet = f;
        t->process = process;
        t->index = index;
        act_in(t, f->options.think);
}

void sim_team_stop(struct sim_team *t)
{
        sim_not(sim_ground(t->fleet), &t->wake);
        t->busy = false;
        act_in(t, SNIB__S);
}
