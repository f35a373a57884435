/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a thread of an application asks for without holding anything: questions, forced releases,
 * changes of numbers and values. Not its holds (app.c). Each thread has at most one such request
 * under way.
 */

#include "app.h"
#include <snib/error.h>
#include <stdio.h>
#include <string.h>

/* Of what is there to be asked about; `side` of a read-write lock. */
static int kind_of(const struct sim *w, int name, int side)
{
        static const int kinds[SIM_SUBJECTS] = {
            [SIM_PLAIN] = SNIB_KIND_FENCED,      [SIM_FAIR] = SNIB_KIND_FAIR,   [SIM_SPIN] = SNIB_KIND_SPIN,
            [SIM_ELECTION] = SNIB_KIND_ELECTION, [SIM_RW] = SNIB_KIND_WRITE,    [SIM_SEMAPHORE] = SNIB_KIND_SEMAPHORE,
            [SIM_PERMIT] = SNIB_KIND_PERMITS,    [SIM_LATCH] = SNIB_KIND_LATCH, [SIM_REGISTER] = SNIB_KIND_REGISTER};

        return side ? SNIB_KIND_READ : kinds[w->options.subject[name]];
}

static struct sim_ask *new_ask(struct sim *w, struct sim_client *c, struct sim_owner *o, enum snib__verb verb, int name)
{
        struct sim_ask *a = &o->ask;
        int side = w->options.subject[name] == SIM_RW && sim_draw(w, 2);

        memset(a, 0, sizeof(*a));
        a->object = SIM_ASK;
        a->used = true;
        a->name = name;
        a->ask.op.verb = verb;
        a->ask.op.name = sim_name_of(w, name);
        a->ask.op.kind = kind_of(w, name, side);
        a->ask.deadline = sim_local(w, c) + sim_between(w, 0, 2 * w->options.op_timeout);
        return a;
}

static void send(struct sim *w, struct sim_client *c, struct sim_ask *a)
{
        static const char *const verbs[] = {"pause", "acquire", "release", "renew", "query", "force", "observe",
                                            "set",   "resize",  "add",     "drain", "write", "delete"};

        sim_trace(w, c->index, "ask", a->ask.op.verb, "%s %s %d%s", verbs[a->ask.op.verb], w->names[a->name],
                  (int)a->ask.op.n, a->log ? "" : " (question)");
        snib__core_ask(&c->core, &a->ask, sim_local(w, c));
}

/* A request that changes something, with an id of its own. NULL: there are no more ids. */
static struct sim_ask *new_change(struct sim *w, struct sim_client *c, struct sim_owner *o, enum snib__verb verb, int n)
{
        struct sim_ask *a;

        if (w->log_count == SIM_LOGS || o->ask.used)
                return NULL;
        a = new_ask(w, c, o, verb, o->name);
        a->step = true;
        a->ask.op.n = n;
        a->log = sim_log_new(w, c, o->name, a->ask.op.kind);
        a->log->asked = true;
        snprintf(a->ask.op.id.text, sizeof(a->ask.op.id.text), "%s:%d", c->uuid, a->log->number);
        return a;
}

static bool change(struct sim *w, struct sim_client *c, struct sim_owner *o, enum snib__verb verb, int n)
{
        struct sim_ask *a = new_change(w, c, o, verb, n);

        if (a)
                send(w, c, a);
        return a;
}

void sim_ask_something(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;

        if (o->ask.used)
                return;
        if (!w->quiet && sim_chance(w, s->query_share)) {
                send(w, c, new_ask(w, c, o, SNIB__QUERY, (int)sim_draw(w, (uint64_t)s->names)));
        } else if (!w->calm && sim_chance(w, s->force_share)) {
                int name = (int)sim_draw(w, (uint64_t)s->names);

                if (s->subject[name] <= SIM_RW || s->subject[name] == SIM_PERMIT)
                        send(w, c, new_ask(w, c, o, SNIB__FORCE, name));
        }
}

void sim_put_back(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        struct sim_ask *a = new_change(w, c, o, SNIB__ADD, o->taken);

        if (!a) {
                sim_act_in(w, o, w->options.think);
                return;
        }
        a->ask.op.if_exists = sim_draw(w, 2);
        o->taken = 0;
        send(w, c, a);
}

bool sim_release_by_id(struct sim *w, struct sim_client *c, struct sim_owner *o, int n)
{
        const struct sim_hold *h = o->stake[0].hold;
        struct sim_ask *a = new_change(w, c, o, SNIB__RELEASE, n);

        if (!a)
                return false;
        a->ask.op.permits = (const char(*)[33])h->log->permit;
        a->ask.op.permit_count = (size_t)n;
        send(w, c, a);
        return true;
}

/* ---- numbers ---- */

/* Some semaphores vanish by themselves. */
static bool set_number(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        struct sim_ask *a = new_change(w, c, o, SNIB__SET, w->options.limit);

        if (!a)
                return false;
        if (a->ask.op.kind == SNIB_KIND_SEMAPHORE && sim_chance(w, w->options.delete_share))
                a->ask.op.ttl_ms = 200 + (int64_t)sim_draw(w, 4000);
        send(w, c, a);
        return true;
}

static bool change_number(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;
        bool permits = s->subject[o->name] == SIM_PERMIT;

        if (o->seen && !sim_chance(w, 60 + s->admin_share))
                return false;
        if (!o->seen || !sim_chance(w, s->admin_share)) {
                o->seen = 1;
                return set_number(w, c, o);
        }
        if (sim_chance(w, s->delete_share))
                return change(w, c, o, SNIB__DELETE, 0);
        if (sim_chance(w, 600))
                return change(w, c, o, SNIB__ADD, sim_draw(w, 2) ? 1 : -1);
        return permits ? change(w, c, o, SNIB__RESIZE, 1 + (int)sim_draw(w, (uint64_t)s->limit + 1))
                       : change(w, c, o, SNIB__DRAIN, 0);
}

static bool change_latch(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;

        if (sim_chance(w, 350))
                return false;
        if (sim_chance(w, 350))
                return change(w, c, o, SNIB__SET, s->limit);
        if (sim_chance(w, s->delete_share))
                return change(w, c, o, SNIB__DELETE, 0);
        return change(w, c, o, SNIB__ADD, -1 - (int)sim_draw(w, 2));
}

static bool write_value(struct sim *w, struct sim_client *c, struct sim_owner *o, enum snib__verb verb)
{
        struct sim_ask *a = new_change(w, c, o, verb, 0);

        if (!a)
                return false;
        a->log->expected = a->ask.op.expected = o->seen;
        snprintf(a->log->data, sizeof(a->log->data), "#%d", a->log->number);
        if (verb == SNIB__WRITE) {
                a->ask.op.data = a->log->data;
                a->ask.op.data_length = strlen(a->log->data);
        }
        send(w, c, a);
        return true;
}

static bool read_value(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        struct sim_ask *a;

        if (o->ask.used)
                return false;
        a = new_ask(w, c, o, SNIB__QUERY, o->name);
        a->step = true;
        send(w, c, a);
        return true;
}

/* Reads, and writes what it has read; some write without looking. */
static bool change_register(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;

        if (sim_chance(w, s->observe_share))
                return false;
        if (sim_chance(w, s->delete_share))
                return write_value(w, c, o, SNIB__DELETE);
        if (sim_chance(w, s->admin_share))
                o->seen = sim_draw(w, 3) ? -1 : 0;
        else if (sim_draw(w, 2))
                return read_value(w, c, o);
        if (o->seen == -1 && !sim_chance(w, s->admin_share))
                return read_value(w, c, o);
        return write_value(w, c, o, SNIB__WRITE);
}

bool sim_change_something(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        if (w->log_count >= SIM_LOGS - SIM_LOGS_KEPT)
                return false;
        if (w->options.subject[o->name] == SIM_LATCH)
                return change_latch(w, c, o);
        if (w->options.subject[o->name] == SIM_REGISTER)
                return change_register(w, c, o);
        return change_number(w, c, o);
}

void sim_app_answered_ask(struct sim *w, struct sim_client *c, struct snib__ask *ask)
{
        struct sim_ask *a = snib__container(ask, struct sim_ask, ask);
        struct sim_owner *o = snib__container(a, struct sim_owner, ask);

        sim_trace(w, c->index, "answer", ask->result, "ask: %d", ask->result);
        if (!a->used)
                sim_fail(w, SIM_UNSAFE, "once", "client %d: a question is answered that was answered before", c->index);
        sim_check_answer_ask(w, c, a);
        a->used = false;
        if (!a->step)
                return;
        if (w->options.subject[a->name] == SIM_REGISTER && ask->result >= 0)
                o->seen = ask->op.verb == SNIB__DELETE ? 0 : ask->reply.value;
        sim_act_in(w, o, w->options.think);
}

bool sim_ask_for(struct sim *w, struct sim_client *c, struct sim_owner *o, const char *verb, int n)
{
        static const struct {
                const char *name;
                enum snib__verb verb;
        } verbs[] = {{"set", SNIB__SET},     {"resize", SNIB__RESIZE}, {"add", SNIB__ADD},
                     {"drain", SNIB__DRAIN}, {"delete", SNIB__DELETE}, {"count", SNIB__ADD}};

        if (o->ask.used)
                return false;
        if (strcmp(verb, "force") == 0 || strcmp(verb, "query") == 0) {
                send(w, c, new_ask(w, c, o, verb[0] == 'f' ? SNIB__FORCE : SNIB__QUERY, o->name));
                return true;
        }
        if (strcmp(verb, "put") == 0 && o->taken) {
                sim_put_back(w, c, o);
                return true;
        }
        if (strcmp(verb, "recall") == 0 && o->stake[0].depth)
                return sim_release_by_id(w, c, o, n);
        if (strcmp(verb, "swap") == 0)
                return write_value(w, c, o, SNIB__WRITE);
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (strcmp(verb, verbs[i].name) == 0)
                        return change(w, c, o, verbs[i].verb, strcmp(verb, "count") == 0 ? -n : n);
        return false;
}
