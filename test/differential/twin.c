/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The requests, the model's answers, and what must be equal: see twin.h. It is not a second
 * statement of what is right; that is the model. Invariant: between two steps the model's record
 * and the engine's keys mean the same. One thread.
 */

#include "twin.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LATE_MS 20000 /* by so much real times may differ; leases are far longer there */
/* Actors of a read-write lock. */
#define WRITER 2
#define UNDER_WRITER 3

static uint64_t below(struct twin *t, uint64_t n)
{
        return snib__prng_below(&t->prng, n);
}

static struct snib__id fresh(struct twin *t, int actor)
{
        return pump_id(t->pump[actor % 2]);
}

static void renew_actor(struct twin *t, struct twin_object *o, int i)
{
        o->actor[i] = (struct twin_actor){.id = fresh(t, i), .n = 1 + (int64_t)below(t, 3)};
}

void twin_init(struct twin *t)
{
        static const struct {
                int kind;
                const char *name;
        } all[TWIN_OBJECTS] = {
            {SNIB_KIND_LOCK, "plain"},        {SNIB_KIND_FENCED, "fenced"},       {SNIB_KIND_SPIN, "{braced}"},
            {SNIB_KIND_ELECTION, "election"}, {SNIB_KIND_SEMAPHORE, "semaphore"}, {SNIB_KIND_PERMITS, "permits"},
            {SNIB_KIND_LATCH, "latch"},       {SNIB_KIND_FAIR, "fair"},           {SNIB_KIND_READ, "rw"},
            {SNIB_KIND_REGISTER, "register"}};

        for (int i = 0; i < TWIN_OBJECTS; i++) {
                struct twin_object *o = &t->object[i];
                memset(o, 0, sizeof(*o));
                o->kind = all[i].kind;
                o->name = all[i].name;
                o->record.holder = o->holders;
                o->record.held_room = TWIN_SEATS;
                o->record.queue = o->queue;
                o->record.queue_room = TWIN_SEATS;
                o->record.done = o->dones;
                o->record.dones_room = SNIB__DONES_MAX + 1;
                o->record.expires_ms = INT64_MAX;
                for (int j = 0; j < TWIN_ACTORS; j++)
                        renew_actor(t, o, j);
        }
}

/* ---- what is asked */

static enum snib__verb pick(struct twin *t, const unsigned char *verbs, size_t count)
{
        return (enum snib__verb)verbs[below(t, count)];
}

/* One verb of those of the kind; what is frequent stands there more often. */
static enum snib__verb a_verb(struct twin *t, int kind)
{
        static const unsigned char lock[] = {SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__RELEASE, SNIB__RENEW, SNIB__QUERY};
        static const unsigned char semaphore[] = {SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__RELEASE,
                                                  SNIB__QUERY,   SNIB__SET,     SNIB__ADD,     SNIB__ADD,
                                                  SNIB__ADD,     SNIB__DRAIN};
        static const unsigned char permits[] = {SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__RELEASE,
                                                SNIB__RELEASE, SNIB__RENEW,   SNIB__RENEW,   SNIB__QUERY,
                                                SNIB__SET,     SNIB__RESIZE,  SNIB__ADD};
        static const unsigned char latch[] = {SNIB__ACQUIRE, SNIB__QUERY, SNIB__SET, SNIB__ADD, SNIB__ADD};
        static const unsigned char a_register[] = {SNIB__WRITE, SNIB__WRITE, SNIB__WRITE, SNIB__QUERY, SNIB__OBSERVE};
        bool rare = below(t, 25) == 0;

        switch (kind) {
        case SNIB_KIND_SEMAPHORE:
                return rare ? SNIB__DELETE : pick(t, semaphore, sizeof(semaphore));
        case SNIB_KIND_PERMITS:
                return rare ? (below(t, 2) ? SNIB__DELETE : SNIB__FORCE) : pick(t, permits, sizeof(permits));
        case SNIB_KIND_LATCH:
                return rare ? SNIB__DELETE : pick(t, latch, sizeof(latch));
        case SNIB_KIND_REGISTER:
                return rare ? SNIB__DELETE : pick(t, a_register, sizeof(a_register));
        case SNIB_KIND_ELECTION:
                return rare ? SNIB__FORCE : below(t, 4) ? pick(t, lock, sizeof(lock)) : SNIB__OBSERVE;
        default:
                return rare ? SNIB__FORCE : pick(t, lock, sizeof(lock));
        }
}

static int64_t a_lease(struct twin *t, int kind)
{
        if (kind == SNIB_KIND_READ)
                return INT64_C(1000000000000) + (int64_t)below(t, 1000);
        if (kind == SNIB_KIND_PERMITS && below(t, 30) == 0)
                return 0;
        return t->exact ? 105 + 10 * (int64_t)below(t, 200) : 600000 + 300000 * (int64_t)below(t, 3);
}

static int64_t a_number(struct twin *t, const struct snib__op *op)
{
        if (op->verb == SNIB__ADD && op->kind == SNIB_KIND_LATCH)
                return -1 - (int64_t)below(t, 2);
        if (op->verb == SNIB__ADD)
                return below(t, 40) == 0 ? SNIB__NUMBER_MAX : (int64_t)below(t, 6) - 2;
        return op->kind == SNIB_KIND_LATCH ? 1 + (int64_t)below(t, 4) : (int64_t)below(t, 7);
}

/* Names some permits of some actor in place of the own ones. */
static void name_permits(struct twin *t, const struct twin_object *o, struct snib__op *op, char ids[3][33])
{
        const struct twin_actor *a = &o->actor[below(t, TWIN_ACTORS)];
        size_t first = below(t, (uint64_t)a->n), count = 1 + below(t, (uint64_t)a->n - first);

        for (size_t i = 0; i < count; i++)
                if (!snib__permit_id(&a->id, (int64_t)(first + i), ids[i]))
                        return;
        op->permits = (const char(*)[33])ids;
        op->permit_count = count;
        op->id = fresh(t, 0);
}

/* One of the actors writes, one reads under it, the others only read. */
static void take_a_side(struct twin *t, const struct twin_object *o, int i, struct snib__op *op)
{
        bool either = op->verb == SNIB__FORCE && below(t, 2);

        op->kind = i == WRITER || either ? SNIB_KIND_WRITE : SNIB_KIND_READ;
        if (i == UNDER_WRITER && op->verb == SNIB__ACQUIRE)
                op->under = o->actor[WRITER].id;
}

static struct snib__op a_request(struct twin *t, struct twin_object *o, int i, char ids[3][33], char *data)
{
        struct twin_actor *a = &o->actor[i];
        struct snib__op op = pump_op(t->pump[i % 2], a_verb(t, o->kind), o->name, a->id, a_lease(t, o->kind));

        op.kind = o->kind;
        op.n = a->n;
        op.enqueue = o->kind == SNIB_KIND_FAIR && below(t, 4);
        if (o->kind == SNIB_KIND_READ)
                take_a_side(t, o, i, &op);
        if (snib__verb_changes(op.verb)) {
                op.id = fresh(t, i);
                op.n = a_number(t, &op);
                op.if_exists = op.verb == SNIB__ADD && below(t, 3) == 0;
                op.ttl_ms = op.verb == SNIB__SET && t->exact && below(t, 2) ? 105 + 10 * (int64_t)below(t, 50) : 0;
        }
        if (op.verb == SNIB__ACQUIRE && below(t, 2))
                op.token = a->token;
        if (op.verb == SNIB__WRITE) {
                op.data = data;
                op.data_length = below(t, TWIN_DATA_MAX);
                for (size_t k = 0; k < op.data_length; k++)
                        data[k] = (char)below(t, 256);
        }
        if (o->kind == SNIB_KIND_PERMITS && (op.verb == SNIB__RELEASE || op.verb == SNIB__RENEW) && below(t, 2))
                name_permits(t, o, &op, ids);
        return op;
}

/* A version to expect, a state to have seen: the present one, the one before, none. For each of the
 * two by its name. */
static void compare_with(struct twin *t, const struct twin_object *o, struct snib__op *model, struct snib__op *engine)
{
        uint64_t which = below(t, 4);
        struct twin_pair p = which < 2 ? o->now : which == 2 ? o->before : (struct twin_pair){0, 0};

        if (model->verb == SNIB__OBSERVE) {
                model->token = p.model;
                engine->token = p.engine;
        } else if (model->verb == SNIB__WRITE || model->verb == SNIB__DELETE) {
                bool any = below(t, 4) == 0;
                model->expected = any ? -1 : p.model;
                engine->expected = any ? -1 : p.engine;
        }
}

/* ---- what is answered */

static void check(struct twin *t, const struct twin_object *o, const struct snib__op *op, const char *what,
                  int64_t model, int64_t engine)
{
        if (model != engine && !t->different[0])
                snprintf(t->different, sizeof(t->different),
                         "%s, verb %d, n %" PRId64 ", id %.60s: %s: the model says %" PRId64 ", the engine %" PRId64,
                         o->name, op->verb, op->n, op->id.text, what, model, engine);
}

static void check_time(struct twin *t, const struct twin_object *o, const struct snib__op *op, int64_t model,
                       int64_t engine)
{
        int64_t apart = model < engine ? engine - model : model - engine;

        if (t->exact || model < 0 || apart >= LATE_MS)
                check(t, o, op, "time left", model, engine);
}

static void check_holder(struct twin *t, const struct twin_object *o, const struct snib__op *op,
                         const struct snib__reply *m, const struct snib__reply *e)
{
        if (m->status == SNIB__GRANTED || m->status == SNIB__RENEWED || m->status == SNIB__RELEASED)
                return;
        check(t, o, op, "held", m->held, e->held);
        if (!m->held || !e->held || (o->kind == SNIB_KIND_READ && m->holders > 1))
                return;
        check(t, o, op, "the same holder", 1, snib__id_equal(&m->holder.id, &e->holder.id));
        if (o->kind != SNIB_KIND_READ)
                check_time(t, o, op, m->left_ms, e->left_ms);
        if (o->kind != SNIB_KIND_FAIR || m->status != SNIB__BUSY)
                return;
        check(t, o, op, "place in the queue", m->position, e->position);
        check(t, o, op, "waiters", m->waiters, e->waiters);
}

static void check_count(struct twin *t, const struct twin_object *o, const struct snib__op *op,
                        const struct snib__reply *m, const struct snib__reply *e)
{
        bool about_permits = o->kind == SNIB_KIND_PERMITS;

        if (m->status == SNIB__DONE)
                check(t, o, op, "applied", m->applied, e->applied);
        if (m->status == SNIB__INFO)
                check(t, o, op, "there", m->held, e->held);
        if (op->verb == SNIB__FORCE && !m->held)
                return;
        if (o->kind != SNIB_KIND_REGISTER && m->status != SNIB__RELEASED && m->status != SNIB__RENEWED &&
            m->status != SNIB__GONE && !(about_permits && m->status == SNIB__GRANTED))
                check(t, o, op, "value", m->value, e->value);
        if (about_permits && m->status == SNIB__INFO && m->held) {
                check(t, o, op, "limit", m->limit, e->limit);
                check(t, o, op, "out", m->holders, e->holders);
        }
        if (about_permits && op->verb != SNIB__FORCE && m->value >= 0 &&
            (m->status == SNIB__INFO || m->status == SNIB__BUSY))
                check_time(t, o, op, m->left_ms, e->left_ms);
        if (o->kind == SNIB_KIND_REGISTER && m->status == SNIB__INFO && m->held)
                check(t, o, op, "the same data", 1,
                      m->data_length == e->data_length && !memcmp(m->data, e->data, m->data_length));
}

/* A new hold has a new token that is higher than all before; a confirmation has the one that is
 * known. */
static void check_token(struct twin *t, struct twin_object *o, struct twin_actor *a, const struct snib__op *op,
                        const struct snib__reply *m, const struct snib__reply *e, bool was_holder)
{
        bool fenced = o->kind == SNIB_KIND_FENCED || o->kind == SNIB_KIND_ELECTION;

        if (was_holder && op->token)
                check(t, o, op, "token of a confirmation", op->token, e->token);
        else if (t->exact && (fenced || !was_holder) && o->kind != SNIB_KIND_FAIR)
                check(t, o, op, "token", m->token, e->token);
        else if (was_holder)
                check(t, o, op, "a confirmation did not lower the token", 1, e->token >= a->token);
        else
                check(t, o, op, "a new hold's token rose", 1, e->token > o->highest);
        a->token = e->token;
        o->highest = e->token > o->highest ? e->token : o->highest;
}

/* Versions and states, which go by two names. */
static void note_state(struct twin *t, struct twin_object *o, const struct snib__op *op, const struct snib__reply *m,
                       const struct snib__reply *e)
{
        struct twin_pair p = {m->token, e->token};

        if (m->status == SNIB__DONE)
                p = (struct twin_pair){m->value, e->value};
        else if (op->verb != SNIB__OBSERVE && !(op->verb == SNIB__QUERY && o->kind == SNIB_KIND_REGISTER))
                return;
        check(t, o, op, "there is a state", p.model != 0, p.engine != 0);
        if (t->exact)
                check(t, o, op, "state", p.model, p.engine);
        if (p.model == o->now.model) {
                check(t, o, op, "state of before", o->now.engine, p.engine);
                return;
        }
        check(t, o, op, "a state's number rose", 1, p.engine == 0 || p.engine > o->before.engine);
        if (o->now.model)
                o->before = o->now;
        o->now = p;
}

static bool has_state(int kind)
{
        return kind == SNIB_KIND_REGISTER || kind == SNIB_KIND_ELECTION;
}

static void compare(struct twin *t, struct twin_object *o, struct twin_actor *a, const struct snib__op *op,
                    const struct snib__reply *m, const struct snib__reply *e, bool was_holder)
{
        enum snib__family family = snib__family_of(o->kind);
        bool locks = family == SNIB__FAMILY_LOCK || family == SNIB__FAMILY_RW;

        if (m->status != SNIB__FAILED && e->status == SNIB__FAILED)
                snprintf(t->different, sizeof(t->different), "%s, verb %d: %s", o->name, op->verb, e->error_text);
        check(t, o, op, "status", m->status, e->status);
        if (m->status == SNIB__FAILED)
                check(t, o, op, "error", m->error, e->error);
        if (t->different[0] || m->status == SNIB__FAILED)
                return;
        if (locks)
                check_holder(t, o, op, m, e);
        else
                check_count(t, o, op, m, e);
        if (m->status == SNIB__GRANTED && (locks || o->kind == SNIB_KIND_PERMITS))
                check_token(t, o, a, op, m, e, was_holder);
        if (has_state(o->kind))
                note_state(t, o, op, m, e);
}

/* ---- a step */

static bool holds(const struct twin_object *o, const struct snib__id *id, int64_t now_ms)
{
        for (size_t i = 0; i < o->record.held; i++)
                if (snib__id_equal(&o->holders[i].seat.id, id) && o->holders[i].seat.expires_ms > now_ms)
                        return true;
        return false;
}

static bool waits(const struct twin_object *o, const struct snib__id *id)
{
        for (size_t i = 0; i < o->record.queued; i++)
                if (snib__id_equal(&o->queue[i].seat.id, id))
                        return true;
        return false;
}

/* What the model points at belongs to the request; the record needs it for longer. */
static void own_data(struct twin_object *o, const void *from)
{
        if (o->record.data != from || !o->record.data_length)
                return;
        memcpy(o->data, from, o->record.data_length);
        o->record.data = o->data;
}

static void apply(struct twin_object *o, const struct snib__op *op, struct snib__clock now, struct snib__reply *ret)
{
        struct snib__tell tells[TWIN_SEATS];
        struct snib__change change = {.tell = tells, .tell_room = TWIN_SEATS};

        snib__record_apply(&o->record, op, now, ret, &change);
        own_data(o, op->data);
        for (size_t i = 0; i < change.tells; i++)
                if (tells[i].kind == SNIB__TELL_GRANTED)
                        o->turn = tells[i].id;
}

/* Somebody who does not even wait must not overtake the one whose turn it is. */
static void intrude(struct twin *t, struct twin_object *o, struct snib__clock now)
{
        struct snib__op op = pump_op(t->pump[0], SNIB__ACQUIRE, o->name, fresh(t, 0), a_lease(t, o->kind));
        struct snib__reply m, e;

        op.kind = o->kind;
        apply(o, &op, now, &m);
        e = t->ask(t->arg, t->pump[0], &op);
        check(t, o, &op, "an intruder", m.status, e.status);
}

static void take_turn(struct twin *t, struct twin_object *o, int i, struct snib__clock now)
{
        struct twin_actor *a = &o->actor[i];
        struct snib__op op = pump_op(t->pump[i % 2], SNIB__ACQUIRE, o->name, a->id, a_lease(t, o->kind));
        struct snib__reply m, e;

        op.kind = o->kind;
        apply(o, &op, now, &m);
        e = t->ask(t->arg, t->pump[i % 2], &op);
        check(t, o, &op, "the turn is taken", m.status, e.status);
        a->token = e.token;
        a->queued = false;
        o->highest = e.token > o->highest ? e.token : o->highest;
}

/* Whoever the model has made holder comes and takes it. */
static void take_turns(struct twin *t, struct twin_object *o, struct snib__clock now)
{
        struct snib__op op = pump_op(t->pump[0], SNIB__QUERY, o->name, fresh(t, 0), 0);
        struct snib__reply m;

        op.kind = o->kind;
        apply(o, &op, now, &m); /* ends what is over */
        if (!snib__id_set(&o->turn))
                return;
        if (below(t, 2))
                intrude(t, o, now);
        for (int i = 0; i < TWIN_ACTORS; i++)
                if (snib__id_equal(&o->actor[i].id, &o->turn))
                        take_turn(t, o, i, now);
        o->turn.text[0] = 0;
}

/* Keeps a request that was done or refused, to be repeated later; not every one, so that others
 * come in between. */
static void keep(struct twin *t, struct twin_object *o, const struct snib__op *op, const struct snib__reply *m,
                 int64_t now_ms)
{
        if (m->status != SNIB__DONE || below(t, 2))
                return;
        o->again = *op;
        o->again_until = now_ms + SNIB__DONE_MS - LATE_MS;
        if (op->data_length)
                memcpy(o->again_data, op->data, op->data_length);
        o->again.data = o->again_data;
}

static void repeat(struct twin *t, struct twin_object *o, struct snib__clock now)
{
        struct snib__reply m, e;

        if (!o->again.verb || now.lease_ms >= o->again_until)
                return;
        apply(o, &o->again, now, &m);
        e = t->ask(t->arg, t->pump[0], &o->again);
        check(t, o, &o->again, "status of a repetition", m.status, e.status);
        check(t, o, &o->again, "a repetition is done or not", m.applied, e.applied);
        if (t->exact || o->kind != SNIB_KIND_REGISTER)
                check(t, o, &o->again, "value of a repetition", m.value, e.value);
}

/* What actors know of a semaphore that is gone is worth nothing. */
static void begin_anew(struct twin *t, struct twin_object *o)
{
        for (int i = 0; i < TWIN_ACTORS; i++)
                renew_actor(t, o, i);
}

static void go_on(struct twin *t, struct twin_object *o, int i, const struct snib__op *op, const struct snib__reply *m)
{
        bool ended = m->status == SNIB__RELEASED || m->status == SNIB__GONE;

        if (op->verb == SNIB__ACQUIRE && m->status != SNIB__GONE)
                o->actor[i].queued = m->status == SNIB__BUSY && m->position > 0;
        if (ended && !op->permits && !waits(o, &op->id))
                renew_actor(t, o, i);
        else if (m->status == SNIB__GRANTED && o->kind == SNIB_KIND_SEMAPHORE && below(t, 2))
                renew_actor(t, o, i);
}

void twin_step(struct twin *t)
{
        struct twin_object *o = &t->object[below(t, TWIN_OBJECTS)];
        struct snib__clock now = t->clock(t->arg);
        int i = (int)below(t, TWIN_ACTORS);
        char ids[3][33], data[TWIN_DATA_MAX];
        struct snib__op op, other;
        struct snib__reply m, e;
        bool was_holder, existed, stood;

        stood = o->actor[i].queued;
        if (o->record.exists && o->record.expires_ms <= now.lease_ms)
                begin_anew(t, o);
        if (below(t, 10) == 0)
                repeat(t, o, now);
        if (o->kind == SNIB_KIND_FAIR)
                take_turns(t, o, now);
        op = other = a_request(t, o, i, ids, data);
        compare_with(t, o, &op, &other);
        was_holder = holds(o, &op.id, now.lease_ms);
        existed = o->record.exists;
        if (was_holder && o->kind == SNIB_KIND_PERMITS && op.verb == SNIB__ACQUIRE && below(t, 2))
                op.token = other.token = o->actor[i].token;
        apply(o, &op, now, &m);
        e = t->ask(t->arg, t->pump[i % 2], &other);
        if (stood && m.status == SNIB__GONE && e.status == SNIB__RELEASED)
                m = e;
        compare(t, o, &o->actor[i], &other, &m, &e, was_holder);
        keep(t, o, &other, &m, now.lease_ms);
        if (o->kind == SNIB_KIND_SEMAPHORE && existed && !o->record.exists)
                begin_anew(t, o);
        else
                go_on(t, o, i, &op, &m);
        if (o->kind == SNIB_KIND_FAIR)
                take_turns(t, o, now);
}
