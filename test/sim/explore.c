/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A small world, exhaustively: two clients with the production core, a server with the model, each
 * thread acquires and releases once (a lock, a fair lock, or one of them the write side and the
 * others the read side), and messages, wake-ups, callers and one fault come in every possible
 * order. Depth-first; a state seen before is not gone into again. Each path is run from the start,
 * so nothing has to be copied or undone.
 *
 * Not chance and not time: the clock stands still. Only when nothing else can happen does it go to
 * the next timer, and that is allowed after a lost wake-up or a time-out only; otherwise it means
 * that a wake-up was lost (L1).
 */

#include "sim.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 2
#define HOLDS 3
#define QUEUE_MAX 16
#define PATH_MAX_ 200
#define TICKS_MAX 8
#define STATES_LOG 22
#define LEASE (60 * SNIB__S)

enum stage { BEFORE = 0, ASKED, HAS, GIVING_BACK, AFTER };
enum message { OP = 1, REPLY, SUBSCRIBE, UNSUBSCRIBE, WATCHING, CHANGED, CHANGED_ALL, GRANTED };
enum what { LOCK = 0, FAIR, RW };
enum fault { NO_FAULT = 0, CUT, LOST_HINT, CANCEL, TIME_OUT };

struct letter {
        enum message kind;
        int hold;
        uint64_t cookie;
        uint32_t attempt;
        struct snib__op op;
        struct snib__reply reply;
        struct snib__id id;
};

struct post {
        int count;
        struct letter at[QUEUE_MAX];
};

struct party {
        struct snib__core core;
        struct post requests, replies, subscriptions, hints;
        bool linked, subscribed;
        int watches;
};

struct thread {
        int client;
        enum stage stage;
        struct snib__hold hold;
        struct snib__call call;
};

static struct {
        enum what what;
        bool queues;
        int holds;
        snib__ns now;
        struct party party[CLIENTS];
        struct thread thread[HOLDS];
        struct snib__record record;
        struct snib__waiter waiters[QUEUE_MAX];
        struct snib__holder holders[QUEUE_MAX];
        struct snib__done dones[QUEUE_MAX];
        enum fault fault;
        int ticks;
        const char *broken;
} z;

static const struct snib__name name = {"name", 4};

/* ---- the world ---- */

static void put(struct post *p, struct letter l)
{
        if (p->count == QUEUE_MAX)
                z.broken = "too many messages";
        else
                p->at[p->count++] = l;
}

static struct letter take(struct post *p)
{
        struct letter first = p->at[0];

        memmove(&p->at[0], &p->at[1], (size_t)--p->count * sizeof(p->at[0]));
        return first;
}

static struct thread *thread_of(const struct snib__hold *h)
{
        return snib__container((struct snib__hold *)h, struct thread, hold);
}

static void submit(struct party *p, const struct snib__effect *e)
{
        struct letter l = {.kind = OP,
                           .hold = (int)(thread_of(e->hold) - z.thread),
                           .cookie = e->cookie,
                           .attempt = e->attempt,
                           .op = *e->op};

        if (p->linked) {
                put(&p->requests, l);
                return;
        }
        l.kind = REPLY;
        l.reply = (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNREACHABLE};
        put(&p->replies, l);
}

static void watch(struct party *p, int by)
{
        p->watches += by;
        if (p->watches < 0)
                z.broken = "a watch is taken back twice";
        else if (p->linked && by > 0)
                put(&p->subscriptions, (struct letter){.kind = SUBSCRIBE});
        else if (p->linked && p->watches == 0)
                put(&p->subscriptions, (struct letter){.kind = UNSUBSCRIBE});
}

static void answered(const struct snib__call *call)
{
        struct thread *t = snib__container((struct snib__call *)call, struct thread, call);

        if (t->stage == ASKED)
                t->stage = call->result == 1 ? HAS : AFTER;
        else if (t->stage == GIVING_BACK && call->result == 1)
                t->stage = AFTER;
        else
                z.broken = "an answer that makes no sense";
        if (t->stage == AFTER && call->kind == SNIB__CALL_ACQUIRE && z.fault != CANCEL)
                z.broken = "an acquire for ever came back without the lock";
}

static void pump(struct party *p)
{
        struct snib__effect e;
        const char *broken;

        while (snib__core_next(&p->core, &e)) {
                if (e.kind == SNIB__EFFECT_SUBMIT)
                        submit(p, &e);
                else if (e.kind == SNIB__EFFECT_WATCH || e.kind == SNIB__EFFECT_UNWATCH)
                        watch(p, e.kind == SNIB__EFFECT_WATCH ? 1 : -1);
                else if (e.kind == SNIB__EFFECT_ANSWER)
                        answered(e.call);
                else if (e.kind == SNIB__EFFECT_LOST)
                        z.broken = "a loss, and nothing was lost";
        }
        broken = snib__core_check(&p->core, z.now);
        if (broken)
                z.broken = broken;
}

static struct snib__reply serve(const struct letter *l)
{
        struct snib__clock clock = {.lease_ms = z.now / SNIB__MS, .wall_us = z.now / 1000};
        struct snib__tell tells[QUEUE_MAX];
        struct snib__change change = {.tell = tells, .tell_room = QUEUE_MAX};
        struct snib__reply reply;

        snib__record_apply(&z.record, &l->op, clock, &reply, &change);
        if (snib__record_check(&z.record))
                z.broken = snib__record_check(&z.record);
        for (size_t k = 0; k < change.tells; k++)
                for (int i = 0; i < z.holds; i++)
                        if (tells[k].kind == SNIB__TELL_GRANTED &&
                            snib__id_equal(&z.thread[i].hold.known.id, &tells[k].id))
                                put(&z.party[z.thread[i].client].hints,
                                    (struct letter){.kind = GRANTED, .id = tells[k].id});
        for (int i = 0; i < CLIENTS && !z.queues && z.what != FAIR && reply.status == SNIB__RELEASED; i++)
                if (z.party[i].subscribed)
                        put(&z.party[i].hints,
                            (struct letter){.kind = l->op.kind == SNIB_KIND_WRITE ? CHANGED_ALL : CHANGED});
        return reply;
}

/* ---- what can happen ---- */

static void app(struct thread *t)
{
        struct party *p = &z.party[t->client];

        memset(&t->call, 0, sizeof(t->call));
        t->call.deadline = SNIB__NEVER;
        if (t->stage == BEFORE) {
                t->stage = ASKED;
                t->call.kind = SNIB__CALL_ACQUIRE;
                snib__core_begin(&p->core, &t->hold, &t->call, z.now);
        } else {
                t->stage = GIVING_BACK;
                t->call.kind = SNIB__CALL_RELEASE;
                snib__core_release(&p->core, &t->hold, &t->call, z.now);
        }
        pump(p);
}

static void execute(struct party *p)
{
        struct letter l = take(&p->requests);

        l.reply = serve(&l);
        l.kind = REPLY;
        put(&p->replies, l);
}

static void reply(struct party *p, const struct letter *l)
{
        snib__core_reply_hold(&p->core, &z.thread[l->hold].hold, l->cookie, l->attempt, &l->reply, z.now);
        pump(p);
}

static void subscription(struct party *p)
{
        struct letter l = take(&p->subscriptions);

        p->subscribed = l.kind == SUBSCRIBE;
        if (p->subscribed)
                put(&p->hints, (struct letter){.kind = WATCHING});
}

static void hint(struct party *p)
{
        struct letter l = take(&p->hints);

        if (l.kind == GRANTED)
                snib__core_granted(&p->core, name, &l.id, 0, &(struct snib__reply){0}, z.now);
        else if (p->watches > 0 && (l.kind == CHANGED || l.kind == CHANGED_ALL))
                snib__core_changed(&p->core, name, l.kind == CHANGED_ALL, z.now);
        else if (p->watches > 0)
                snib__core_watching(&p->core, name, &(struct snib__id){{0}}, z.now + 1,
                                    z.now); /* after all that was asked */
        pump(p);
}

/* The first `executed` of the requests under way still reach the server; everything else is
 * lost. */
static void cut(struct party *p, int executed)
{
        struct post unknown = p->replies;

        for (int i = 0; p->requests.count > 0; i++) {
                struct letter l = take(&p->requests);

                if (i < executed)
                        serve(&l);
                put(&unknown, l);
        }
        p->replies.count = p->subscriptions.count = p->hints.count = 0;
        p->linked = p->subscribed = false;
        while (unknown.count > 0) {
                struct letter l = take(&unknown);

                l.reply = (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN};
                reply(p, &l);
        }
        snib__core_link(&p->core, false, SNIB_EUNREACHABLE, 0, "cut", z.now);
        pump(p);
}

static void relink(struct party *p)
{
        p->linked = true;
        if (p->watches > 0)
                put(&p->subscriptions, (struct letter){.kind = SUBSCRIBE});
        snib__core_link(&p->core, true, 0, 0, NULL, z.now);
        pump(p);
}

static snib__ns next_timer(void)
{
        snib__ns next = SNIB__NEVER;

        for (int i = 0; i < CLIENTS; i++)
                next = snib__min(next, snib__core_deadline(&z.party[i].core));
        return next;
}

static void tick(void)
{
        snib__ns next = next_timer();

        z.now = snib__max(z.now, next);
        z.ticks++;
        for (int i = 0; i < CLIENTS; i++) {
                snib__core_tick(&z.party[i].core, z.now);
                pump(&z.party[i]);
        }
}

/* Walks the choices in a fixed order. Carries out number `chosen`, unless it is -1; answers how
 * many there are. */
static int counted, wanted;
static char step_text[64];

static bool here(const char *what, int who)
{
        if (counted++ != wanted)
                return false;
        snprintf(step_text, sizeof(step_text), "%s %d", what, who);
        return true;
}

static void ordinary(void)
{
        for (int i = 0; i < z.holds; i++)
                if ((z.thread[i].stage == BEFORE || z.thread[i].stage == HAS) && here("caller", i))
                        app(&z.thread[i]);
        for (int i = 0; i < CLIENTS; i++) {
                struct party *p = &z.party[i];
                /* Looked at before anything is done: one choice is one step. */
                bool requests = p->requests.count, replies = p->replies.count, subscriptions = p->subscriptions.count;
                bool hints = p->hints.count, down = !p->linked && !p->replies.count;

                if (requests && here("server executes, client", i))
                        execute(p);
                if (replies && here("answer to client", i)) {
                        struct letter l = take(&p->replies);

                        reply(p, &l);
                }
                if (subscriptions && here("server subscribes client", i))
                        subscription(p);
                if (hints && here("hint to client", i))
                        hint(p);
                if (down && here("link up, client", i))
                        relink(p);
        }
}

static void faults(void)
{
        for (int i = 0; i < CLIENTS; i++) {
                struct party *p = &z.party[i];
                int requests = p->requests.count;
                bool hints = p->hints.count, linked = p->linked;

                for (int n = 0; linked && n <= requests; n++)
                        if (here(n ? "cut after execution, client" : "cut, client", i)) {
                                z.fault = CUT;
                                cut(p, n);
                        }
                if (hints && here("hint lost, client", i)) {
                        z.fault = LOST_HINT;
                        take(&p->hints);
                }
        }
        for (int i = 0; i < z.holds; i++)
                if (z.thread[i].stage == ASKED && here("cancel, caller", i)) {
                        z.fault = CANCEL;
                        snib__core_cancel(&z.party[z.thread[i].client].core, &z.thread[i].call, SNIB_ECANCELLED, z.now);
                        pump(&z.party[z.thread[i].client]);
                }
        if (next_timer() - z.now < LEASE / 2 && here("time passes", 0)) { /* a time-out or a poll, not a lease */
                z.fault = TIME_OUT;
                tick();
        }
}

static int choices(int chosen)
{
        bool faulty = z.fault != NO_FAULT;
        int ordinaries;

        counted = 0;
        wanted = chosen;
        ordinary();
        ordinaries = counted;
        if (!faulty && ordinaries > 0)
                faults();
        if (ordinaries == 0 && (z.fault == LOST_HINT || z.fault == TIME_OUT) && z.ticks < TICKS_MAX) {
                bool busy = false;

                for (int i = 0; i < CLIENTS; i++)
                        busy |= !snib__list_empty(&z.party[i].core.holds);
                if (busy && here("time passes", 0))
                        tick();
        }
        return counted;
}

/* ---- states ---- */

static uint64_t hash;

static void mix(uint64_t v)
{
        hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29;
}

static void mix_post(const struct post *p)
{
        mix((uint64_t)p->count);
        for (int i = 0; i < p->count; i++) {
                const struct letter *l = &p->at[i];

                mix((uint64_t)l->kind << 32 | (uint64_t)l->hold << 16 | l->attempt);
                mix((uint64_t)l->op.verb << 8 | l->op.enqueue | (uint64_t)l->reply.status << 16);
                mix((uint64_t)l->reply.token ^ (uint64_t)l->reply.error << 40);
                mix(strlen(l->id.text) ? (uint64_t)l->id.text[strlen(l->id.text) - 1] : 0);
        }
}

static void mix_thread(const struct thread *t)
{
        const struct snib__hold *h = &t->hold;

        mix((uint64_t)t->stage << 32 | (uint64_t)h->state << 24 | (uint64_t)h->verb << 16 | h->request.attempt);
        mix((uint64_t)(h->request.outstanding | h->known.watch.on << 1 | h->known.queued << 2 | h->again << 3 |
                       h->known.woken << 4 | h->request.in_doubt << 5 | h->release_in_doubt << 6 |
                       h->known.watch.asked << 7 | h->known.silent << 8) |
            (uint64_t)h->request.failures << 16 | (uint64_t)h->depth << 24 | h->cookie << 32);
        mix((uint64_t)h->token << 8 | h->passed);
        mix((uint64_t)h->request.wake_at);
        mix((uint64_t)h->request.sent_at);
        mix((uint64_t)h->deadline);
}

static uint64_t state(void)
{
        hash = 1;
        mix((uint64_t)z.fault << 32 | (uint64_t)z.ticks);
        mix((uint64_t)z.now);
        for (int i = 0; i < z.holds; i++)
                mix_thread(&z.thread[i]);
        for (int i = 0; i < CLIENTS; i++) {
                const struct party *p = &z.party[i];

                mix((uint64_t)(p->linked | p->subscribed << 1) | (uint64_t)p->watches << 8);
                mix_post(&p->requests);
                mix_post(&p->replies);
                mix_post(&p->subscriptions);
                mix_post(&p->hints);
        }
        mix((uint64_t)z.record.token);
        for (size_t i = 0; i < z.record.held; i++)
                mix((uint64_t)z.record.holder[i].seat.id.text[1] ^ (uint64_t)z.record.holder[i].seat.expires_ms << 8);
        for (size_t i = 0; i < z.record.queued; i++)
                mix((uint64_t)z.record.queue[i].seat.id.text[1] ^ (uint64_t)z.record.queue[i].seat.expires_ms << 8);
        return hash ? hash : 1;
}

static bool sits(const struct snib__id *id)
{
        for (size_t i = 0; i < z.record.held; i++)
                if (snib__id_equal(id, &z.record.holder[i].seat.id))
                        return true;
        return false;
}

static void check(void)
{
        for (int i = 0; i < z.holds; i++) {
                const struct snib__hold *h = &z.thread[i].hold;

                if (atomic_load(&h->valid_until) > z.now && !sits(&h->known.id))
                        z.broken = "S2: a client believes, and the server has another";
        }
        for (size_t i = 1; i < z.record.held; i++)
                if (z.record.holder[0].kind != SNIB_KIND_READ || z.record.holder[i].kind != SNIB_KIND_READ)
                        z.broken = "S10: two hold that may not hold together";
}

static void check_end(void)
{
        for (int i = 0; i < z.holds; i++)
                if (z.thread[i].stage != AFTER)
                        z.broken = "L1: somebody waits, and only a timer would help";
        for (int i = 0; i < CLIENTS; i++)
                if (!snib__list_empty(&z.party[i].core.holds) && !z.broken)
                        z.broken = "L5: a hold is not done with, and only a timer would help";
                else if (z.party[i].watches && !z.broken)
                        z.broken = "R1: a watch is left";
        if (!z.broken && (z.record.held || z.record.queued))
                z.broken = "S4: something is left on the server";
}

/* What the world looks like that is explored. */
struct world {
        enum what what;
        bool queues;
        int holds;
};

static int kind_of(enum what what, int thread)
{
        if (what == RW)
                return thread == 0 ? SNIB_KIND_WRITE : SNIB_KIND_READ;
        return what == FAIR ? SNIB_KIND_FAIR : SNIB_KIND_LOCK;
}

static void start(const struct world *w)
{
        struct snib__core_config config = {.token_block = SNIB__TOKEN_BLOCK,
                                           .queues = w->queues ? SNIB__KINDS_ALL : SNIB__KIND_BIT(SNIB_KIND_FAIR),
                                           .watches = !w->queues,
                                           .op_timeout = SNIB__S / 2,
                                           .renewals = 1,
                                           .phases = 1,
                                           .neighbours = 1,
                                           .seed = 1};

        memset(&z, 0, sizeof(z));
        z.what = w->what;
        z.queues = w->queues;
        z.holds = w->holds;
        z.now = 1000 * SNIB__S;
        z.record.queue = z.waiters;
        z.record.queue_room = QUEUE_MAX;
        z.record.holder = z.holders;
        z.record.held_room = QUEUE_MAX;
        z.record.done = z.dones;
        z.record.dones_room = QUEUE_MAX;
        for (int i = 0; i < CLIENTS; i++) {
                snib__core_init(&z.party[i].core, &config);
                z.party[i].linked = true;
                snib__core_link(&z.party[i].core, true, 0, 0, NULL, z.now);
        }
        for (int i = 0; i < w->holds; i++) {
                static const char owners[HOLDS][2] = {"a", "b", "c"};
                struct thread *t = &z.thread[i];

                t->client = i ? 1 : 0;
                t->hold.name = name;
                t->hold.owner = (struct snib__name){owners[i], 1};
                snprintf(t->hold.known.id.text, sizeof(t->hold.known.id.text), ":%d", i);
                t->hold.kind = kind_of(w->what, i);
                t->hold.reentrant = true;
                t->hold.lease = LEASE;
        }
}

/* ---- the search ---- */

static bool quiet;
static uint64_t *seen;
static uint64_t states;
static int path[PATH_MAX_];

static bool new_state(uint64_t h)
{
        size_t mask = ((size_t)1 << STATES_LOG) - 1;

        for (size_t i = h & mask;; i = (i + 1) & mask) {
                if (seen[i] == h)
                        return false;
                if (!seen[i]) {
                        seen[i] = h;
                        states++;
                        return states < mask / 2;
                }
        }
}

static void replay(const struct world *w, int length, bool show)
{
        start(w);
        for (int i = 0; i < length && !z.broken; i++) {
                choices(path[i]);
                check();
                if (show)
                        printf("#   %s\n", step_text);
        }
}

static void search(const struct world *w, int length)
{
        int n;

        replay(w, length, false);
        n = z.broken ? 0 : choices(-1);
        if (!z.broken && n == 0)
                check_end();
        if (!z.broken && length == PATH_MAX_)
                z.broken = "R2: no end";
        if (z.broken) {
                const char *broken = z.broken;

                if (!quiet)
                        printf("# %s, after:\n", broken);
                replay(w, length, !quiet);
                z.broken = broken;
                return;
        }
        if (!new_state(state()))
                return;
        for (int i = 0; i < n && !z.broken; i++) {
                path[length] = i;
                search(w, length + 1);
        }
}

/* True if nothing is wrong. */
static bool explore(const struct world *w)
{
        bool good;

        memset(seen, 0, sizeof(*seen) << STATES_LOG);
        states = 0;
        search(w, 0);
        good = !z.broken;
        z.broken = NULL;
        return good;
}

static bool prepare(void)
{
        if (!seen)
                seen = malloc(sizeof(*seen) << STATES_LOG);
        return seen;
}

int sim_explore(int callers)
{
        static const char *const whats[] = {"lock", "fair", "one writes, the others read"};
        static const struct world worlds[] = {{LOCK, false, 2}, {LOCK, true, 2}, {FAIR, false, 2}, {RW, false, 2},
                                              {LOCK, false, 3}, {LOCK, true, 3}, {RW, true, 3}};
        int number = 0, bad = 0;

        if (!prepare())
                return SIM_CRASHED;
        for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
                if (worlds[i].holds > callers)
                        continue;
                bool good = explore(&worlds[i]);

                printf("%s %d - 2 clients, %d callers, %s, %s, one fault: %llu states\n", good ? "ok" : "not ok",
                       ++number, worlds[i].holds, whats[worlds[i].what], worlds[i].queues ? "queue" : "watches",
                       (unsigned long long)states);
                fflush(stdout);
                bad += !good;
        }
        printf("1..%d\n", number);
        free(seen);
        seen = NULL;
        return bad ? SIM_UNSAFE : SIM_FINE;
}

bool sim_explore_finds(void)
{
        bool found;

        quiet = true;
        found = prepare() && (!explore(&(struct world){LOCK, false, 2}) || !explore(&(struct world){LOCK, true, 2}));
        quiet = false;
        free(seen);
        seen = NULL;
        return found;
}
