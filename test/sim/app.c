/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The application of a client: threads that take what there is in every way the library offers, and
 * give it back. Each has at most one call under way and acts at random times. Two threads may share
 * an owner key. It plays by the rules: every acquire that was granted is paid back once, also after
 * a loss; nobody who only reads asks to write. Not the requests that no hold stands behind
 * (change.c).
 */

#include "app.h"
#include <stdio.h>
#include <string.h>

struct sim_client *sim_client_of(struct sim *w, const struct sim_owner *o)
{
        return &w->clients[o->client];
}

struct snib__name sim_name_of(struct sim *w, int name)
{
        return (struct snib__name){w->names[name], strlen(w->names[name])};
}

void sim_act_in(struct sim *w, struct sim_owner *o, snib__ns mean)
{
        if (w->options.subject[o->name] == SIM_PLAIN && sim_chance(w, w->options.burst_share))
                mean = snib__min(mean, SNIB__MS / 4);
        if (!w->options.scripted || w->quiet)
                sim_at(w, &o->act, w->now + sim_between(w, 0, 2 * mean));
}

static int key_of(const struct sim *w, const struct sim_owner *o)
{
        return w->options.share_owner && o->index == 1 ? 0 : o->index;
}

static bool holds_any(const struct sim_owner *o)
{
        return o->stake[0].depth || o->stake[1].depth || o->taken;
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
                o->call.deadline = sim_local(w, sim_client_of(w, o)) + w->options.op_timeout;
}

/* How long this acquire waits. */
static void draw_patience(struct sim *w, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;
        snib__ns now = sim_local(w, sim_client_of(w, o));

        if (sim_chance(w, s->try_share)) {
                o->call.once = true;
                o->call.deadline = now;
        } else if (sim_chance(w, s->timed_share)) {
                o->call.deadline = now + sim_between(w, 0, 2 * SNIB__S);
        }
        if (o->call.deadline != SNIB__NEVER)
                o->call_limit = o->call.deadline + 4 * s->op_timeout + 2 * SNIB__S;
}

/* What a thread asks for when it acquires `side` of its name. */
static int kind_of(struct sim *w, const struct sim_owner *o, int side)
{
        switch (w->options.subject[o->name]) {
        case SIM_PLAIN:
                return sim_chance(w, w->options.plain_share) ? SNIB_KIND_LOCK : SNIB_KIND_FENCED;
        case SIM_FAIR:
                return SNIB_KIND_FAIR;
        case SIM_SPIN:
                return SNIB_KIND_SPIN;
        case SIM_ELECTION:
                return SNIB_KIND_ELECTION;
        case SIM_RW:
                return side ? SNIB_KIND_READ : SNIB_KIND_WRITE;
        case SIM_SEMAPHORE:
                return SNIB_KIND_SEMAPHORE;
        case SIM_PERMIT:
                return SNIB_KIND_PERMITS;
        case SIM_LATCH:
                return SNIB_KIND_LATCH;
        default:
                return SNIB_KIND_REGISTER;
        }
}

static struct sim_hold *free_hold(struct sim *w, struct sim_client *c)
{
        struct sim_hold *h = c->holds, *end = c->holds + SIM_HOLDS;

        while (h < end && h->used)
                h++;
        if (h == end || w->log_count >= SIM_LOGS - SIM_LOGS_KEPT)
                return NULL;
        memset(h, 0, sizeof(*h));
        h->object = SIM_HOLD;
        h->used = true;
        h->since = w->now;
        h->open_since = h->watching_at = SNIB__NEVER;
        return h;
}

static void draw_terms(struct sim *w, const struct sim_owner *o, struct snib__hold *hold)
{
        const struct sim_options *s = &w->options;

        if (o->member) {
                sim_member_terms(o, hold);
                return;
        }
        hold->reentrant = !sim_chance(w, s->once_only_share);
        hold->keep = !sim_chance(w, s->fixed_share);
        /* One of a few, so that renewals of a client come together. */
        hold->lease = (s->lease_min + sim_between(w, 0, 3) * ((s->lease_max - s->lease_min) / 3)) / SNIB__MS * SNIB__MS;
        if (sim_chance(w, s->max_hold_share))
                hold->max_hold = sim_between(w, s->lease_min / 2, 3 * s->lease_max);
}

/* Whom nobody joins has no name. */
static void identify(struct sim *w, struct sim_client *c, struct sim_owner *o, struct sim_hold *h)
{
        bool anonymous = h->hold.observe || snib__kind(h->hold.kind)->anonymous;

        h->name = o->name;
        h->log = sim_log_new(w, c, o->name, h->hold.kind);
        h->log->observer = h->hold.observe;
        h->log->owner = key_of(w, o);
        h->log->n = (int)h->hold.n;
        h->owner = o->index;
        snprintf(h->owner_key, sizeof(h->owner_key), "o%d", key_of(w, o));
        h->hold.name = sim_name_of(w, o->name);
        h->hold.owner = (struct snib__name){h->owner_key, anonymous ? 0 : strlen(h->owner_key)};
        snprintf(h->hold.known.id.text, sizeof(h->hold.known.id.text), "%s:%d", c->uuid, h->log->number);
        for (int i = 0; h->hold.kind == SNIB_KIND_PERMITS && i < h->log->n; i++)
                snib__permit_id(&h->hold.known.id, i, h->log->permit[i]);
}

static struct sim_hold *new_hold(struct sim *w, struct sim_client *c, struct sim_owner *o, int kind, bool observe)
{
        struct sim_hold *h = free_hold(w, c);
        int most = w->options.limit < SIM_PERMITS ? w->options.limit : SIM_PERMITS;

        if (!h)
                return NULL;
        h->hold.kind = kind;
        h->hold.observe = observe;
        h->hold.token = observe && kind != SNIB_KIND_LATCH ? o->seen : 0;
        h->hold.n = 1;
        if (kind == SNIB_KIND_SEMAPHORE || kind == SNIB_KIND_PERMITS)
                h->hold.n = w->options.scripted ? most : 1 + (int)sim_draw(w, (uint64_t)most);
        identify(w, c, o, h);
        draw_terms(w, o, &h->hold);
        return h;
}

static struct snib__hold *find(struct sim *w, struct sim_client *c, const struct sim_owner *o, int kind)
{
        char key[16];

        snprintf(key, sizeof(key), "o%d", key_of(w, o));
        return snib__core_find(&c->core, sim_name_of(w, o->name), (struct snib__name){key, strlen(key)}, kind);
}

/* What a reader holds keeps its owner from writing. */
static bool may_begin(struct sim *w, struct sim_client *c, const struct sim_owner *o, int kind)
{
        return kind != SNIB_KIND_WRITE || find(w, c, o, SNIB_KIND_WRITE) || !find(w, c, o, SNIB_KIND_READ);
}

/* The call is filled but for its hold. */
static void start(struct sim *w, struct sim_client *c, struct sim_owner *o, struct sim_hold *h, bool known)
{
        sim_trace(w, c->index, known ? "join" : "acquire", h->log->number, "%s by %s as #%d, %s%s", w->names[o->name],
                  h->owner_key, h->log->number,
                  o->call.once                      ? "one try"
                  : o->call.deadline == SNIB__NEVER ? "for ever"
                                                    : "for a while",
                  h->hold.observe ? ", observes" : "");
        if (known)
                snib__core_join(&c->core, &h->hold, &o->call, sim_local(w, c));
        else
                snib__core_begin(&c->core, &h->hold, &o->call, sim_local(w, c));
        if (h->used && !known)
                sim_check_open(w, h, true);
}

/* The hold that an acquire of this thread joins or begins; NULL: it would be against the rules
 * now. */
static struct sim_hold *choose_hold(struct sim *w, struct sim_client *c, struct sim_owner *o, int side, bool observe,
                                    bool *ret_known)
{
        struct snib__hold *known;
        struct sim_hold *h = NULL;
        int kind = kind_of(w, o, side);

        snib__core_tick(&c->core, sim_local(w, c)); /* what is found must not end on the way in */
        sim_client_pump(w, c);
        known = observe || snib__kind(kind)->anonymous ? NULL : find(w, c, o, kind);
        *ret_known = known;
        if (known)
                h = snib__container(known, struct sim_hold, hold);
        else if (may_begin(w, c, o, kind))
                h = new_hold(w, c, o, kind, observe);
        o->side = side;
        o->stake[side].hold = h ? h : o->stake[side].hold;
        return h;
}

void sim_acquire(struct sim *w, struct sim_client *c, struct sim_owner *o, int side, bool observe)
{
        bool known;
        struct sim_hold *h = choose_hold(w, c, o, side, observe, &known);

        if (!h) {
                sim_act_in(w, o, w->options.think);
                return;
        }
        begin_call(w, o, SNIB__CALL_ACQUIRE);
        draw_patience(w, o);
        start(w, c, o, h, known);
        if (!o->call.once && sim_chance(w, w->options.cancel_share))
                sim_act_in(w, o, SNIB__S / 2);
}

/* Until when a hold is to stay at the engine after its owner's end, by the client's clock; 0: it is
 * released. Not of a multilock's member, nor of permits. */
static snib__ns draw_leave(struct sim *w, struct sim_client *c, const struct sim_owner *o, const struct sim_stake *s)
{
        if (!w->options.leave_share || w->quiet || o->member || w->options.subject[o->name] >= SIM_SEMAPHORE ||
            !sim_chance(w, w->options.leave_share))
                return 0;
        return sim_local(w, c) + sim_between(w, 0, s->hold->hold.lease);
}

static void release(struct sim *w, struct sim_client *c, struct sim_owner *o, int side, snib__ns wait)
{
        struct sim_stake *s = &o->stake[side];
        snib__ns leave = draw_leave(w, c, o, s);

        sim_trace(w, c->index, leave ? "leave" : "give back", s->hold->log->number, "#%d", s->hold->log->number);
        begin_call(w, o, SNIB__CALL_RELEASE);
        o->call.leave = leave;
        o->call.deadline = sim_local(w, c) + wait;
        o->side = side;
        o->call_limit = o->call.deadline + SNIB__S;
        s->depth--;
        snib__core_release(&c->core, &s->hold->hold, &o->call, sim_local(w, c));
}

static void renew(struct sim *w, struct sim_client *c, struct sim_owner *o, int side)
{
        begin_call(w, o, SNIB__CALL_RENEW);
        o->side = side;
        o->call_limit = o->call.deadline + SNIB__S;
        snib__core_renew(&c->core, &o->stake[side].hold->hold, &o->call, sim_local(w, c));
}

/* One of the sides that it has. */
static int some_side(struct sim *w, const struct sim_owner *o)
{
        if (o->stake[0].depth && o->stake[1].depth)
                return (int)sim_draw(w, 2);
        return o->stake[1].depth > 0;
}

static void choose_with(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;
        enum sim_subject subject = s->subject[o->name];
        int side = some_side(w, o);

        if (!w->quiet && subject == SIM_RW && !o->stake[1].depth && sim_chance(w, s->reenter_share))
                sim_acquire(w, c, o, 1, false);
        else if (!w->quiet && subject != SIM_PERMIT && o->stake[side].depth < 3 && sim_chance(w, s->reenter_share))
                sim_acquire(w, c, o, side, false);
        else if (!w->quiet && sim_chance(w, s->renew_share))
                renew(w, c, o, side);
        else if (subject != SIM_PERMIT || w->quiet || !sim_chance(w, s->admin_share) ||
                 !sim_release_by_id(w, c, o, 1 + (int)sim_draw(w, (uint64_t)o->stake[side].hold->log->n)))
                release(w, c, o, side, s->op_timeout);
}

static void choose_without(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        const struct sim_options *s = &w->options;

        o->name = sim_fleet_name(w);
        if (s->subject[o->name] >= SIM_SEMAPHORE && sim_change_something(w, c, o))
                return;
        if ((s->subject[o->name] == SIM_ELECTION || s->subject[o->name] == SIM_REGISTER ||
             s->subject[o->name] == SIM_LATCH) &&
            sim_chance(w, s->observe_share))
                sim_acquire(w, c, o, 0, true);
        else if (s->subject[o->name] == SIM_REGISTER)
                sim_act_in(w, o, s->think);
        else
                sim_acquire(w, c, o, s->subject[o->name] == SIM_RW && sim_chance(w, s->read_share), false);
}

/* A thread has something to do. */
static void choose(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        if (o->calling) {
                if (o->call.kind == SNIB__CALL_ACQUIRE && o->call.hold) {
                        int number = o->stake[o->side].hold->log->number;

                        sim_trace(w, c->index, "cancel", number, "#%d", number);
                        snib__core_cancel(&c->core, &o->call, SNIB_ECANCELLED, sim_local(w, c));
                }
                return;
        }
        if (o->ask.used && o->ask.step)
                return; /* goes on when that is answered */
        sim_ask_something(w, c, o);
        if (o->taken)
                sim_put_back(w, c, o);
        else if (holds_any(o))
                choose_with(w, c, o);
        else if (!w->quiet)
                choose_without(w, c, o);
}

static void run_act(struct sim *w, struct sim_event *e)
{
        struct sim_owner *o = snib__container(e, struct sim_owner, act);
        struct sim_client *c = sim_client_of(w, o);

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
                sim_act_in(w, o, w->options.think);
        }
}

void sim_app_stop(struct sim *w, struct sim_client *c)
{
        for (int i = 0; i < w->options.owners; i++)
                sim_not(w, &c->owners[i].act);
}

/* It has what it waited for. */
static void granted(struct sim *w, struct sim_owner *o, const struct snib__call *call)
{
        struct sim_stake *s = &o->stake[o->side];

        w->acquired++;
        if (s->hold->log->kind == SNIB_KIND_LATCH)
                return;
        if (s->hold->log->observer)
                o->seen = call->holder.token;
        else if (s->hold->log->kind == SNIB_KIND_SEMAPHORE)
                o->taken += s->hold->log->n;
        else
                s->depth++;
}

void sim_app_answered(struct sim *w, struct sim_client *c, struct snib__call *call)
{
        struct sim_owner *o = call->owner_data;
        struct sim_stake *s = &o->stake[o->side];
        static const char *const kinds[] = {"", "acquire", "release", "renew"};

        sim_trace(w, c->index, "answer", call->result, "%s #%d: %d", kinds[call->kind],
                  s->hold ? s->hold->log->number : 0, call->result);
        if (!o->calling || call != &o->call) {
                sim_fail(w, SIM_UNSAFE, "once", "client %d: a call is answered that was answered before", c->index);
                return;
        }
        o->calling = false;
        sim_check_answer(w, c, call, s->hold);
        if (call->kind == SNIB__CALL_ACQUIRE && call->result == 1)
                granted(w, o, call);
        if (o->member)
                sim_member_answered(w, o, call);
        if (s->depth == 0)
                s->hold = NULL;
        if (!o->member)
                sim_act_in(w, o, holds_any(o) ? w->options.hold : w->options.think);
}

void sim_app_lost(struct sim *w, struct sim_client *c, struct snib__hold *hold)
{
        struct sim_hold *h = snib__container(hold, struct sim_hold, hold);

        sim_trace(w, c->index, "lost", h->log->number, "#%d reason %d", h->log->number, hold->loss);
        if (++h->log->told > 1)
                sim_fail(w, SIM_UNSAFE, "S7", "client %d: the loss of #%d is told twice", c->index, h->log->number);
        for (int i = 0; i < SIM_OWNERS_ALL; i++) {
                struct sim_owner *o = &c->owners[i];
                bool mine =
                    (o->stake[0].hold == h && o->stake[0].depth) || (o->stake[1].hold == h && o->stake[1].depth);

                if (mine && o->member)
                        sim_member_lost(o, hold);
                else if (mine && !o->calling)
                        sim_act_in(w, o, w->options.lateness);
        }
}

void sim_app_quiet(struct sim *w, struct sim_client *c)
{
        for (int i = 0; i < w->options.owners; i++) {
                struct sim_owner *o = &c->owners[i];
                const struct sim_hold *h = o->stake[o->side].hold;
                bool for_ever = o->calling && o->call.kind == SNIB__CALL_ACQUIRE && h &&
                                (h->log->observer || snib__kind(h->log->kind)->anonymous);

                if (for_ever || w->options.scripted)
                        sim_act_in(w, o, w->options.think);
        }
}

/* ---- members of multilocks ---- */

static void after_call(struct sim *w, struct sim_client *c)
{
        sim_client_pump(w, c);
        sim_client_schedule(w, c);
}

static snib__ns limit_of(const struct sim *w, snib__ns deadline)
{
        return snib__after(deadline, 4 * w->options.op_timeout + 2 * SNIB__S);
}

bool sim_app_member_acquire(struct sim *w, struct sim_client *c, struct sim_owner *o, int side, bool once,
                            snib__ns wait)
{
        bool known;
        struct sim_hold *h = choose_hold(w, c, o, side, false, &known);

        if (!h)
                return false;
        begin_call(w, o, SNIB__CALL_ACQUIRE);
        o->call.once = once;
        o->call.deadline = snib__after(sim_local(w, c), wait);
        o->call_limit = limit_of(w, o->call.deadline);
        start(w, c, o, h, known);
        after_call(w, c);
        return true;
}

void sim_app_member_release(struct sim *w, struct sim_client *c, struct sim_owner *o, snib__ns wait)
{
        release(w, c, o, o->side, snib__min(wait, w->options.op_timeout));
        after_call(w, c);
}

void sim_app_member_cancel(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        if (o->calling && o->call.kind == SNIB__CALL_ACQUIRE)
                snib__core_cancel(&c->core, &o->call, SNIB_ECANCELLED, sim_local(w, c));
        after_call(w, c);
}

void sim_app_member_hurry(struct sim *w, struct sim_client *c, struct sim_owner *o)
{
        if (o->calling && o->call.kind == SNIB__CALL_ACQUIRE)
                snib__core_hurry(&c->core, &o->call, sim_local(w, c));
        after_call(w, c);
}

/* ---- scripts ---- */

static int side_of(const struct sim_owner *o, const char *verb)
{
        return strcmp(verb, "read") == 0 || (strcmp(verb, "release") == 0 && !o->stake[0].depth);
}

static bool do_call(struct sim *w, struct sim_client *c, struct sim_owner *o, const char *verb)
{
        int side = side_of(o, verb);

        if (strcmp(verb, "acquire") == 0 || strcmp(verb, "read") == 0 || strcmp(verb, "write") == 0)
                sim_acquire(w, c, o, side, false);
        else if (strcmp(verb, "observe") == 0)
                sim_acquire(w, c, o, 0, true);
        else if (strcmp(verb, "release") == 0 && o->stake[side].depth)
                release(w, c, o, side, w->options.op_timeout);
        else if (strcmp(verb, "renew") == 0 && o->stake[some_side(w, o)].depth)
                renew(w, c, o, some_side(w, o));
        else
                return false;
        return true;
}

bool sim_app_do(struct sim *w, struct sim_client *c, int owner, const char *verb, int n)
{
        struct sim_owner *o = &c->owners[owner];

        if (!c->running)
                return false;
        if (strcmp(verb, "cancel") == 0 && o->calling)
                choose(w, c, o);
        else if (o->calling || (!do_call(w, c, o, verb) && !sim_ask_for(w, c, o, verb, n)))
                return false;
        sim_client_pump(w, c);
        sim_client_schedule(w, c);
        return true;
}
