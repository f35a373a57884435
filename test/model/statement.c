/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An independent statement of what every kind of object is. It is kept from the history of answers
 * and notes alone: who was told that it sits, until when, with which token; who was told that it
 * waits, since which turn; which changes of a number were acknowledged. After every step the
 * model's answer, whom it tells, its record and its account of what changed must be the only ones
 * that this history allows. It asks neither the model's own check nor its rules.
 */

#include "base/assert.h"
#include "world.h"
#include <setjmp.h>
#include <snib/error.h>
#include <stdio.h>
#include <string.h>

/* One step while it is checked. */
struct step {
        struct action action;
        const struct other *other; /* of an action of that kind */
        struct snib__op op;
        char permits[PERMITS][33];
        int serial;            /* of the change */
        bool again;            /* it is the latest one once more */
        int ended, granted;    /* actors that must be told, as bits */
        int64_t whole[ACTORS]; /* token of who was granted its whole lease by the hand-over */
        bool noted;            /* the hand-over is over */
        struct snib__reply reply;
        struct snib__change change;
        struct snib__tell tell[2 * ACTORS];
        bool buried; /* what the model said */
};

static jmp_buf escape;
static const char *escaped;

/* A failed assertion of the model is a finding like any other. */
void snib__assert_fail(const char *condition, const char *file, int line)
{
        (void)file, (void)line;
        escaped = condition;
        longjmp(escape, 1);
}

#define MUST(condition, text)          \
        do {                           \
                if (!(condition))      \
                        return (text); \
        } while (0)

/* Of an actor, see own_id(), or beyond of a change. */
#define CHANGES 1000
static struct snib__id id_of(int n)
{
        static const char digits[] = "0123456789";
        struct snib__id id = {"00000000-0000-4000-8000-ffffffffffff:"};

        for (int i = 40; i >= 37; i--, n /= 10)
                id.text[i] = digits[n % 10];
        return id;
}

/* An actor's id in this life. */
static struct snib__id own_id(int x, int life)
{
        return id_of(life % 90 * 10 + x);
}

/* The actor with this id, -1 nobody. */
static int actor_of(const struct world *w, const struct snib__id *id)
{
        int x = id->text[40] - '0'; /* the last digit of its number, if it is one */
        struct snib__id own;

        if (x < 0 || x >= w->scenario->actors)
                return -1;
        own = own_id(x, w->b[x].life);
        return strcmp(id->text, own.text) == 0 ? x : -1;
}

/* The actor who does not say the number of its request. */
#define SAYS_NO_NUMBER 1

static const struct actor *actor(const struct world *w, int x)
{
        return &w->scenario->actor[x];
}

#define EACH(x, w) for (int x = 0; x < (w)->scenario->actors; x++)

static int bits(int mask)
{
        return (mask & 1) + (mask >> 1 & 1);
}

/* All that an actor may have out. */
static int whole(const struct actor *a)
{
        return a->kind == SNIB_KIND_PERMITS && a->n == 2 ? 3 : 1;
}

static int taken(const struct world *w)
{
        int n = 0;

        EACH(x, w)
        n += bits(w->b[x].out);
        return n;
}

static bool writer_sits(const struct world *w)
{
        EACH(x, w)
        if (w->b[x].out && actor(w, x)->kind == SNIB_KIND_WRITE)
                return true;
        return false;
}

static bool under_writer(const struct world *w, int x)
{
        int under = actor(w, x)->under - 1;

        return under >= 0 && w->b[under].out;
}

/* Of which family what there is is. */
static enum snib__family family(const struct world *w)
{
        EACH(x, w)
        if (w->b[x].out || w->b[x].turn)
                return snib__family_of(actor(w, x)->kind);
        return w->made;
}

/* What would be left for others if x sat down beside those who sit; negative: it may not. */
static bool fits(const struct world *w, int x)
{
        const struct actor *a = actor(w, x);

        switch (a->kind) {
        case SNIB_KIND_READ:
                return !writer_sits(w);
        case SNIB_KIND_SEMAPHORE:
                return w->made && w->value >= a->n;
        case SNIB_KIND_PERMITS:
                return w->made && w->value - taken(w) >= a->n;
        case SNIB_KIND_LATCH:
                return !w->made;
        default:
                return taken(w) == 0;
        }
}

static bool remembers(const struct world *w, int x)
{
        return actor(w, x)->kind == SNIB_KIND_SEMAPHORE && w->b[x].claimed;
}

int64_t world_state(const struct world *w, int kind)
{
        if (snib__family_of(kind) == SNIB__FAMILY_REGISTER)
                return w->version;
        if (snib__family_of(kind) == SNIB__FAMILY_LATCH)
                return w->value > 0;
        EACH(x, w)
        if (w->b[x].out)
                return w->b[x].token;
        return 0;
}

int world_place(const struct world *w, int x)
{
        int before = 1;

        EACH(y, w)
        before += w->b[y].turn && w->b[y].turn < w->b[x].turn;
        return w->b[x].turn ? before : 0;
}

/* The same among those who are in the way of others. */
static int place(const struct world *w, int x)
{
        int before = 1;

        EACH(y, w)
        before += !actor(w, y)->observer && w->b[y].turn && w->b[y].turn < w->b[x].turn;
        return w->b[x].turn && !actor(w, x)->observer ? before : 0;
}

static int first_waiter(const struct world *w)
{
        EACH(x, w)
        if (place(w, x) == 1)
                return x;
        return -1;
}

static int waiters(const struct world *w)
{
        int n = 0;

        EACH(x, w)
        n += w->b[x].turn && !actor(w, x)->observer;
        return n;
}

/* What a question calls the value. */
static int64_t shown(const struct world *w, int kind)
{
        switch (kind) {
        case SNIB_KIND_SEMAPHORE:
                return w->made ? w->value : -1;
        case SNIB_KIND_PERMITS:
                return w->made ? w->value - taken(w) : -1;
        case SNIB_KIND_LATCH:
                return w->value;
        case SNIB_KIND_REGISTER:
                return w->version;
        default:
                return -1;
        }
}

static void stand_up(struct world *w, int x)
{
        w->b[x].out = w->b[x].claimed = 0;
}

/* What exists does no longer. */
static void vanish(struct world *w, struct step *s)
{
        EACH(x, w)
        {
                if (w->b[x].out && w->made == SNIB__FAMILY_PERMITS)
                        s->ended |= 1 << x;
                stand_up(w, x);
        }
        w->made = SNIB__FAMILY_NONE;
        w->value = w->version = w->vanishes = 0;
}

/* Forgets holds, places and what vanishes when their time is over. */
static void forget(struct world *w, struct step *s)
{
        EACH(x, w)
        {
                struct belief *b = &w->b[x];

                for (int i = 0; i < PERMITS; i++) {
                        if (!(b->out >> i & 1) || b->until[i] > w->now.lease_ms)
                                continue;
                        if (!remembers(w, x))
                                s->ended |= 1 << x;
                        if (actor(w, x)->kind == SNIB_KIND_SEMAPHORE && !b->claimed)
                                w->value += actor(w, x)->n;
                        b->out &= ~(1 << i);
                        b->claimed &= ~(1 << i);
                }
                if (b->turn && b->stays <= w->now.lease_ms)
                        b->turn = 0;
        }
        if (w->vanishes && w->vanishes <= w->now.lease_ms)
                vanish(w, s);
}

/* x confirms what it has out of `mask`: its lease starts again. */
static void confirm(struct world *w, int x, int mask)
{
        const struct actor *a = actor(w, x);
        struct belief *b = &w->b[x];

        if (remembers(w, x))
                return;
        for (int i = 0; i < PERMITS; i++)
                if (b->out & mask & 1 << i) {
                        b->until[i] = w->now.lease_ms + (a->kind == SNIB_KIND_SEMAPHORE ? SNIB__DONE_MS : a->lease_ms);
                        if (a->lease_ms == 0)
                                b->until[i] = INT64_MAX;
                }
        b->claimed |= b->out & mask;
}

/* x sits, and did not before. */
static const char *begin(struct world *w, int x, bool claimed, int64_t token)
{
        const struct actor *a = actor(w, x);
        struct belief *b = &w->b[x];
        bool hold = a->kind != SNIB_KIND_SEMAPHORE;
        int64_t claim_ms = hold && a->lease_ms && a->lease_ms < SNIB__CLAIM_MS ? a->lease_ms : SNIB__CLAIM_MS;

        b->turn = 0;
        if (a->kind == SNIB_KIND_LATCH)
                return NULL;
        MUST(fits(w, x) || under_writer(w, x), "a hold begins beside one that excludes it");
        if (!hold)
                w->value -= a->n;
        MUST(!hold || token > w->highest, "a new hold has no higher token");
        if (hold)
                w->highest = token; /* and further ones are the client's */
        if (a->kind == SNIB_KIND_LOCK || a->kind == SNIB_KIND_FENCED)
                w->highest += SNIB__TOKEN_BLOCK - 1;
        b->token = hold ? token : 0;
        b->out = whole(a);
        b->until[0] = b->until[1] = w->now.lease_ms + claim_ms;
        if (claimed)
                confirm(w, x, b->out);
        return NULL;
}

/* The token that an actor has in the record, 0 none. */
static int64_t token_in_record(const struct world *w, int x)
{
        for (size_t i = 0; i < w->record.held; i++)
                if (actor_of(w, &w->record.holder[i].seat.id) == x)
                        return w->record.holder[i].token;
        return 0;
}

/* Whether x, who waits, can be told that it holds. */
static bool needs_not_ask(const struct world *w, int x)
{
        return w->b[x].number && actor(w, x)->lease_ms && !snib__kind(actor(w, x)->kind)->momentary;
}

/* Those who are next and may sit now do. */
static const char *hand_over(struct world *w, struct step *s)
{
        for (int x; (x = first_waiter(w)) >= 0 && fits(w, x);) {
                int64_t token = token_in_record(w, x);
                bool whole = needs_not_ask(w, x);
                const char *wrong = begin(w, x, whole, token);

                s->granted |= 1 << x;
                s->whole[x] = whole ? token : 0;
                if (wrong)
                        return wrong;
        }
        return NULL;
}

/* Who was told what, after everything else. */
static const char *expect_tells(struct world *w, struct step *s)
{
        int told[3] = {0, 0, 0};

        EACH(x, w)
        if (actor(w, x)->observer && w->b[x].turn && w->b[x].seen != world_state(w, actor(w, x)->kind)) {
                w->b[x].turn = 0;
                s->granted |= 1 << x;
        }
        for (size_t i = 0; i < s->change.tells; i++) {
                int x = actor_of(w, &s->tell[i].id);

                MUST(x >= 0, "a stranger is told");
                /* Permits of one hold may end for two reasons in one step. */
                MUST(!(told[s->tell[i].kind] & 1 << x) || actor(w, x)->kind == SNIB_KIND_PERMITS,
                     "somebody is told twice");
                told[s->tell[i].kind] |= 1 << x;
                if (s->tell[i].kind == SNIB__TELL_ENDED)
                        continue;
                MUST(s->tell[i].number == (s->whole[x] ? w->b[x].number : 0),
                     "a grant names another request, or one that it should not");
                MUST(!s->tell[i].number || s->tell[i].token == s->whole[x], "a grant names another token");
        }
        MUST(told[SNIB__TELL_ENDED] == s->ended, "not those are told whose hold ended");
        MUST(told[SNIB__TELL_GRANTED] == s->granted, "not those are told who may go on");
        return NULL;
}

static const char *expect_granted(struct world *w, struct step *s)
{
        int x = s->action.who;

        MUST(s->reply.status == SNIB__GRANTED, "an acquire that must be granted is not");
        if (actor(w, x)->kind == SNIB_KIND_LATCH) {
                w->b[x].turn = 0;
                return NULL;
        }
        if (!w->b[x].out)
                return begin(w, x, true, s->reply.token);
        MUST(s->reply.token == w->b[x].token, "a hold's token changed");
        confirm(w, x, w->b[x].out);
        return NULL;
}

/* Whether x's acquire must be granted now. */
static bool is_next(const struct world *w, int x)
{
        int before = waiters(w);

        if (w->b[x].turn)
                before = place(w, x) - 1;
        return w->b[x].out || under_writer(w, x) || (fits(w, x) && before == 0);
}

static const char *expect_acquire(struct world *w, struct step *s)
{
        int x = s->action.who;
        struct belief *b = &w->b[x];
        const char *wrong;

        if (is_next(w, x))
                return expect_granted(w, s);
        if (b->turn) {
                b->stays = w->now.lease_ms + SNIB__WAITER_LEASE_MS;
                b->number = s->op.number;
        }
        wrong = hand_over(w, s);
        if (wrong)
                return wrong;
        if (is_next(w, x))
                return expect_granted(w, s);
        MUST(s->reply.status == SNIB__BUSY, "granted out of turn, or beside one that excludes it");
        if (!b->turn && s->action.kind == ENQUEUE) {
                b->turn = ++w->turns;
                b->stays = w->now.lease_ms + SNIB__WAITER_LEASE_MS;
                b->number = s->op.number;
        }
        return NULL;
}

static const char *expect_observe(struct world *w, struct step *s)
{
        struct belief *b = &w->b[s->action.who];
        const char *wrong = hand_over(w, s);
        int64_t state = world_state(w, actor(w, s->action.who)->kind);

        if (wrong)
                return wrong;
        if (state != b->seen) {
                MUST(s->reply.status == SNIB__INFO, "an observer is not told of a change");
                MUST(s->reply.token == state, "an observer is told another state");
                b->seen = state;
                b->turn = 0;
                return NULL;
        }
        MUST(s->reply.status == SNIB__BUSY, "an observer is told of a change that was none");
        if (!b->turn && s->action.kind == ENQUEUE)
                b->turn = ++w->turns;
        b->stays = w->now.lease_ms + SNIB__WAITER_LEASE_MS;
        return NULL;
}

static const char *expect_release(struct world *w, struct step *s)
{
        int x = s->action.who;
        struct belief *b = &w->b[x];
        bool stood = b->out || b->turn;

        MUST(s->reply.status == (stood ? SNIB__RELEASED : SNIB__GONE), "the answer to release is not true");
        if (b->out && actor(w, x)->kind == SNIB_KIND_SEMAPHORE)
                w->value += actor(w, x)->n;
        stand_up(w, x);
        b->turn = 0;
        if (actor(w, x)->kind == SNIB_KIND_SEMAPHORE) {
                b->undone_at = w->now.lease_ms;
                b->mark = w->remembered++;
        }
        return NULL;
}

static const char *expect_renew(struct world *w, struct step *s)
{
        int x = s->action.who;
        const char *wrong = hand_over(w, s); /* its turn may come at this moment, and this is as good as an acquire */
        bool has = w->b[x].out == whole(actor(w, x));

        if (wrong)
                return wrong;
        MUST(s->reply.status == (has ? SNIB__RENEWED : SNIB__GONE), "the answer to renew is not true");
        if (!has)
                return NULL;
        MUST(s->reply.token == w->b[x].token, "a renewal changed the token");
        confirm(w, x, w->b[x].out);
        return NULL;
}

static const char *expect_bury(struct world *w, struct step *s, bool stood)
{
        int x = s->action.who;
        struct belief *b = &w->b[x];

        MUST(s->buried == stood, "bury does not say whether the id stood anywhere");
        if (b->out && !remembers(w, x)) {
                s->ended |= 1 << x;
                if (actor(w, x)->kind == SNIB_KIND_SEMAPHORE)
                        w->value += actor(w, x)->n;
        }
        stand_up(w, x);
        b->turn = 0;
        return NULL;
}

static const char *expect_force(struct world *w, struct step *s)
{
        int kind = s->other->kind, ended = 0;

        EACH(x, w)
        if (w->b[x].out && actor(w, x)->kind != SNIB_KIND_SEMAPHORE && (kind != SNIB_KIND_READ || !writer_sits(w)) &&
            (kind != SNIB_KIND_WRITE || writer_sits(w)))
                ended |= 1 << x;
        MUST(s->reply.status == SNIB__INFO, "force is not answered with information");
        MUST(s->reply.held == (ended != 0), "force does not say whether there was a holder");
        MUST(!ended || ended & 1 << actor_of(w, &s->reply.holder.id), "force does not say who held");
        EACH(x, w)
        if (ended & 1 << x)
                stand_up(w, x);
        s->ended |= ended;
        return NULL;
}

/* What a repetition must be answered. */
static void remember(struct world *w, const struct step *s, bool applied, int64_t value)
{
        int other = 1 + (int)(s->other - w->scenario->other);

        w->latest = (struct latest){other, s->serial, w->now.lease_ms, w->remembered++, applied, value};
}

/* RELEASE and RENEW of actor 0's permits by their ids. */
static const char *expect_permits(struct world *w, struct step *s)
{
        struct belief *b = &w->b[0];
        int mask = s->other->permits;
        bool release = s->other->verb == SNIB__RELEASE;
        const char *wrong = release ? NULL : hand_over(w, s);
        bool has = (b->out & mask) == mask;

        if (wrong)
                return wrong;
        if (release)
                remember(w, s, has, 0);
        if (!has) {
                MUST(s->reply.status == SNIB__GONE, "permits that are not out are not gone");
                return NULL;
        }
        MUST(s->reply.status == (release ? SNIB__RELEASED : SNIB__RENEWED), "permits that are out are refused");
        if (!release) {
                confirm(w, 0, mask);
                return NULL;
        }
        b->out &= ~mask;
        b->claimed &= ~mask;
        s->ended |= 1;
        return NULL;
}

/* Executes a change of a number in the history; whether it was one. */
static bool change(struct world *w, struct step *s)
{
        const struct other *o = s->other;
        enum snib__family made = snib__family_of(o->kind);
        bool matches = s->op.expected < 0 || s->op.expected == w->version;

        switch (o->verb) {
        case SNIB__SET:
                if (w->made)
                        return false;
                w->made = made;
                w->value = o->n;
                w->vanishes = o->ttl_ms ? w->now.lease_ms + o->ttl_ms : 0;
                return true;
        case SNIB__RESIZE:
                w->made = made;
                w->value = o->n;
                return true;
        case SNIB__ADD:
                if (!w->made && (o->if_exists || made == SNIB__FAMILY_LATCH))
                        return false;
                w->made = made;
                w->value += o->n;
                if (made == SNIB__FAMILY_LATCH && w->value <= 0)
                        vanish(w, s);
                return true;
        case SNIB__DRAIN:
                if (w->value > 0)
                        w->value = 0;
                return true;
        case SNIB__WRITE:
                if (!matches)
                        return false;
                w->made = made;
                w->version = s->reply.value;
                return true;
        default:
                if (!w->made || (made == SNIB__FAMILY_REGISTER && !matches))
                        return false;
                vanish(w, s);
                return true;
        }
}

static const char *expect_change(struct world *w, struct step *s)
{
        int64_t drained = w->value > 0 ? w->value : 0;
        bool applied;

        MUST(s->reply.status == SNIB__DONE, "a change is not done");
        applied = change(w, s);
        MUST(s->reply.applied == applied, "a change is not told as it went");
        MUST(s->reply.value == (s->other->verb == SNIB__DRAIN ? drained : shown(w, s->other->kind)),
             "the value after a change is not true");
        if (s->other->verb == SNIB__WRITE && applied) {
                MUST(w->version > w->highest, "a version is used again");
                w->highest = w->version;
        }
        remember(w, s, applied, s->reply.value);
        return NULL;
}

/* The latest change once more: the same answer, and nothing happens. */
static const char *expect_again(const struct world *w, const struct step *s)
{
        if (s->op.verb == SNIB__RELEASE) {
                MUST(s->reply.status == (w->latest.applied ? SNIB__RELEASED : SNIB__GONE),
                     "a repeated release of permits has another answer");
                return NULL;
        }
        MUST(s->reply.status == SNIB__DONE && s->reply.applied == w->latest.applied &&
                 s->reply.value == w->latest.value,
             "a repeated change has another answer");
        return NULL;
}

static const char *expect_question(const struct world *w, const struct step *s)
{
        const struct snib__reply *r = &s->reply;
        enum snib__family there = family(w);
        bool locks = there == SNIB__FAMILY_LOCK || there == SNIB__FAMILY_RW;

        MUST(r->status == SNIB__INFO, "a question is not answered");
        MUST(r->held == (locks ? taken(w) > 0 : w->made != 0), "held is not true");
        MUST(snib__family_of(r->kind) == there, "the kind is not true");
        MUST(there != SNIB__FAMILY_RW || !taken(w) || (r->kind == SNIB_KIND_WRITE) == writer_sits(w),
             "the side is not true");
        MUST(!locks || r->holders == taken(w), "the number of holders is not true");
        MUST(r->value == shown(w, r->kind), "the value is not true");
        MUST(r->limit == (w->made == SNIB__FAMILY_PERMITS ? w->value : -1), "the limit is not true");
        MUST(there != SNIB__FAMILY_REGISTER || r->token == w->version, "the version is not true");
        return NULL;
}

static const char *expect_other(struct world *w, struct step *s)
{
        if (s->again)
                return expect_again(w, s);
        if (s->other->permits)
                return expect_permits(w, s);
        if (s->other->verb == SNIB__FORCE)
                return expect_force(w, s);
        return s->other->verb == SNIB__QUERY ? NULL : expect_change(w, s);
}

/* What a reply says about the hold that excludes or is confirmed. */
static const char *expect_holder(const struct world *w, const struct step *s)
{
        const struct snib__reply *r = &s->reply;
        int h = actor_of(w, &r->holder.id);
        int kind = s->op.kind;

        if (kind == SNIB_KIND_SEMAPHORE || kind == SNIB_KIND_LATCH || !snib__id_set(&r->holder.id))
                return NULL;
        MUST(h >= 0 && w->b[h].out, "the holder is not one");
        MUST(r->status == SNIB__BUSY || r->status == SNIB__GONE || actor(w, h)->observer || s->action.kind == OTHER ||
                 h == s->action.who || actor(w, s->action.who)->observer,
             "the answer is about another's hold");
        MUST(kind == SNIB_KIND_PERMITS || r->left_ms == w->b[h].until[0] - w->now.lease_ms,
             "what is left of the lease is not true");
        MUST(r->token == w->b[h].token, "the holder's token is not true");
        return NULL;
}

/* What the reply says about others. */
static const char *expect_description(const struct world *w, const struct step *s)
{
        const struct snib__reply *r = &s->reply;
        int h = -1;

        if (s->action.kind == BURY)
                return NULL;
        MUST(r->waiters == waiters(w), "the number of waiters is not true");
        MUST(r->position == (s->action.kind < LATE && !(s->op.verb == SNIB__RELEASE) ? place(w, s->action.who) : 0),
             "the position is not true");
        if (s->other && s->other->verb == SNIB__QUERY && r->status != SNIB__FAILED)
                return expect_question(w, s);
        if (r->status == SNIB__FAILED || r->status == SNIB__RELEASED || r->status == SNIB__DONE ||
            (s->other && s->other->verb == SNIB__FORCE))
                return NULL;
        if (snib__family_of(s->op.kind) == SNIB__FAMILY_LOCK) {
                EACH(x, w)
                if (w->b[x].out)
                        h = x;
                MUST(r->held == (h >= 0) && actor_of(w, &r->holder.id) == h, "the holder is not true");
        }
        return expect_holder(w, s);
}

static const char *expect_seats(const struct world *w)
{
        const struct snib__record *r = &w->record;
        int count[ACTORS] = {0};

        MUST(r->held == (size_t)taken(w), "not as many sit as should");
        for (size_t i = 0; i < r->held; i++) {
                const struct snib__holder *h = &r->holder[i];
                int x = actor_of(w, &h->seat.id);
                int bit = (int)h->index;

                MUST(x >= 0 && bit < PERMITS && w->b[x].out >> bit & 1, "somebody else sits");
                MUST(h->seat.expires_ms == w->b[x].until[bit], "a hold ends at another time");
                MUST(h->token == w->b[x].token, "a hold's token changed in the record");
                MUST(h->claimed == (w->b[x].claimed >> bit & 1), "a hold is claimed that is not, or the other way");
                count[x] |= 1 << bit;
        }
        EACH(x, w)
        MUST(count[x] == w->b[x].out, "somebody does not sit who should");
        return NULL;
}

/* The record is what the history says. */
static const char *expect_record(const struct world *w)
{
        const struct snib__record *r = &w->record;
        const char *wrong = expect_seats(w);
        size_t queued = 0;

        MUST(!wrong, wrong);
        EACH(x, w)
        {
                int p = world_place(w, x);

                if (p == 0)
                        continue;
                queued++;
                MUST((size_t)p <= r->queued && actor_of(w, &r->queue[p - 1].seat.id) == x,
                     "the queue is not in order of arrival");
                MUST(r->queue[p - 1].seat.expires_ms == w->b[x].stays, "a waiter's place ends at another time");
        }
        MUST(r->queued == queued, "the queue is not as long as it should be");
        MUST(r->family == family(w), "it is of another kind");
        MUST(r->exists == (w->made != 0) && r->value == w->value && r->version == w->version,
             "the number in the record is not true");
        MUST(r->token == w->highest, "the record forgot the last token");
        MUST(snib__record_check(r) == NULL, "snib__record_check finds something");
        return NULL;
}

/* What is not reported as changed did not change. */
static const char *expect_account(const struct world *before, const struct world *w, const struct step *s)
{
        const struct snib__record *a = &before->record, *b = &w->record;

        MUST(s->change.record || (a->token == b->token && a->family == b->family && a->value == b->value &&
                                  a->exists == b->exists && a->version == b->version && a->expires_ms == b->expires_ms),
             "the record changed in silence");
        MUST(s->change.holders ||
                 (a->held == b->held && memcmp(before->holder, w->holder, a->held * sizeof(w->holder[0])) == 0),
             "a seat changed in silence");
        MUST(s->change.queue ||
                 (a->queued == b->queued && memcmp(before->queue, w->queue, a->queued * sizeof(w->queue[0])) == 0),
             "the queue changed in silence");
        MUST(s->change.dones ||
                 (a->dones == b->dones && memcmp(before->done, w->done, a->dones * sizeof(w->done[0])) == 0),
             "the memory changed in silence");
        MUST(snib__record_due(b) > w->now.lease_ms, "something is over and still there");
        return NULL;
}

static void point(struct world *w, struct step *s)
{
        w->record.holder = w->holder;
        w->record.queue = w->queue;
        w->record.done = w->done;
        if (s->op.permits)
                s->op.permits = (const char(*)[33])s->permits;
        s->change = (struct snib__change){.tell = s->tell, .tell_room = sizeof(s->tell) / sizeof(s->tell[0])};
}

/* The same request once more, at the same moment: a retry whose first reply was lost. */
static const char *expect_idempotence(const struct world *w, const struct step *s)
{
        struct world again = *w;
        struct step t = *s;

        /* Force means whoever it finds; only without a holder and a hand-over it finds the same
         * again. */
        if (s->action.kind == BURY || (s->op.verb == SNIB__FORCE && (s->ended || s->granted)))
                return NULL;
        point(&again, &t);
        snib__record_apply(&again.record, &t.op, again.now, &t.reply, &t.change);
        MUST(!t.change.record && !t.change.holders && !t.change.queue && !t.change.dones,
             "a repeated request changed something");
        MUST(t.change.tells == 0, "a repeated request gave notice");
        MUST(expect_account(w, &again, &t) == NULL, "a repeated request changed something in silence");
        if (s->reply.status == SNIB__RELEASED && !s->op.permits)
                return t.reply.status == SNIB__GONE ? NULL : "released twice";
        MUST(t.reply.status == s->reply.status && t.reply.token == s->reply.token &&
                 t.reply.position == s->reply.position && t.reply.left_ms == s->reply.left_ms &&
                 t.reply.value == s->reply.value && t.reply.applied == s->reply.applied,
             "a repeated request got another answer");
        return NULL;
}

/* Whether who asks is one of those in the queue. */
static bool asks_from_the_queue(const struct world *w, const struct step *s)
{
        for (size_t i = 0; i < w->record.queued; i++)
                if (snib__id_equal(&w->queue[i].seat.id, &s->op.id))
                        return true;
        return false;
}

/* Decides from `count` of those who waited before, from number `from` on. */
static void decide_from_part(const struct world *before, struct world *p, struct step *t, size_t from, size_t count)
{
        struct snib__clock now = p->now;

        *p = *before;
        p->now = now;
        point(p, t);
        memmove(p->queue, &before->queue[from], count * sizeof(p->queue[0]));
        p->record.queued = count;
        p->record.unseen = before->record.queued - count;
        snib__record_apply(&p->record, &t->op, p->now, &t->reply, &t->change);
}

/* Whether the one who stood at `place` of the whole queue still stands in what is left of the part;
 * *ret_at: where. */
static bool stands(const struct world *before, const struct world *p, size_t place, size_t *ret_at)
{
        *ret_at = 0;
        while (*ret_at < p->record.queued && !snib__id_equal(&p->queue[*ret_at].seat.id, &before->queue[place].seat.id))
                ++*ret_at;
        return *ret_at < p->record.queued;
}

/* All but the queue. */
static const char *expect_same(const struct world *p, const struct step *t, const struct world *w, const struct step *s)
{
        const struct snib__record *r = &p->record, *all = &w->record;

        MUST(memcmp(&t->reply, &s->reply, sizeof(t->reply)) == 0, "a part of the queue leads to another answer");
        MUST(t->change.tells == s->change.tells && memcmp(t->tell, s->tell, t->change.tells * sizeof(t->tell[0])) == 0,
             "a part of the queue leads to others who are told");
        MUST(r->held == all->held && memcmp(p->holder, w->holder, r->held * sizeof(p->holder[0])) == 0 &&
                 r->token == all->token && r->value == all->value && r->exists == all->exists,
             "a part of the queue leads to another record");
        MUST(r->queued + r->unseen == all->queued, "a part of the queue leads to another length");
        return NULL;
}

/* What is decided from a part of the queue, its head or its end, is what is decided from all of
 * it. */
static const char *expect_part(const struct world *before, const struct world *w, const struct step *s, size_t from,
                               size_t count)
{
        struct world p = {.now = w->now};
        struct step t = *s;
        const char *wrong;
        size_t last, cut;

        decide_from_part(before, &p, &t, from, count);
        if (!stands(before, &p, from + count - 1, &last))
                return NULL; /* more had to be looked at */
        if (from > 0 && (t.change.holders || t.change.record || last != count - 1))
                return NULL; /* its end is enough only where nobody but a newcomer is concerned */
        wrong = expect_same(&p, &t, w, s);
        MUST(!wrong, wrong);
        cut = from > 0 ? 0 : last + 1; /* where those belong who were left out */
        MUST(memcmp(p.queue, w->queue, cut * sizeof(p.queue[0])) == 0 &&
                 memcmp(&p.queue[cut], &w->queue[cut + p.record.unseen],
                        (p.record.queued - cut) * sizeof(p.queue[0])) == 0,
             "a part of the queue leads to another queue");
        return NULL;
}

/* None of those from `from` on, so many, observes, or has to go. */
static bool may_be_unseen(const struct world *before, const struct world *w, size_t from, size_t count)
{
        for (const struct snib__waiter *x = &before->queue[from]; x < &before->queue[from + count]; x++)
                if (x->observer || x->seat.expires_ms <= w->now.lease_ms)
                        return false;
        return true;
}

static const char *expect_parts(const struct world *before, const struct world *w, const struct step *s)
{
        size_t all = before->record.queued;
        const char *wrong = NULL;

        if (s->action.kind == BURY || asks_from_the_queue(before, s))
                return NULL;
        for (size_t count = 1; count < all && !wrong; count++) {
                if (may_be_unseen(before, w, count, all - count))
                        wrong = expect_part(before, w, s, 0, count);
                if (!wrong && before->record.family == SNIB__FAMILY_LOCK && may_be_unseen(before, w, 0, all - count))
                        wrong = expect_part(before, w, s, all - count, count);
        }
        return wrong;
}

/* Everything that has to be true after the action. */
static const char *expect(const struct world *before, struct world *w, struct step *s, bool stood)
{
        enum snib__family there = family(w), asked = snib__family_of(s->op.kind);
        const char *wrong = NULL;

        if (s->action.kind == BURY) {
                wrong = expect_bury(w, s, stood);
        } else if (there && asked && there != asked && !s->again) {
                MUST(s->reply.status == SNIB__FAILED && s->reply.error == SNIB_EKIND, "two kinds share a name");
        } else if (s->action.kind == OTHER) {
                wrong = expect_other(w, s);
        } else if (s->action.kind == RELEASE) {
                wrong = expect_release(w, s);
        } else if (s->action.kind == LATE) {
                MUST(s->reply.status == SNIB__BUSY, "an acquire takes something after its undoing");
        } else if (s->action.kind == RENEW) {
                wrong = expect_renew(w, s);
        } else {
                wrong = actor(w, s->action.who)->observer ? expect_observe(w, s) : expect_acquire(w, s);
        }
        wrong = wrong ? wrong : hand_over(w, s);
        wrong = wrong ? wrong : expect_tells(w, s);
        wrong = wrong ? wrong : expect_record(w);
        wrong = wrong ? wrong : expect_description(w, s);
        wrong = wrong ? wrong : expect_account(before, w, s);
        wrong = wrong ? wrong : expect_parts(before, w, s);
        return wrong ? wrong : expect_idempotence(w, s);
}

/* What an actor asks. */
static void ask_actor(const struct world *w, struct step *s)
{
        static const enum snib__verb verbs[] = {SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__RELEASE, SNIB__RENEW, 0,
                                                SNIB__ACQUIRE};
        const struct actor *a = actor(w, s->action.who);

        s->op.id = own_id(s->action.who, w->b[s->action.who].life - (s->action.kind == LATE));
        if (s->action.kind == BURY)
                return;
        s->op.verb = verbs[s->action.kind];
        if (a->observer && s->op.verb == SNIB__ACQUIRE) {
                s->op.verb = SNIB__OBSERVE;
                s->op.token = w->b[s->action.who].seen;
        }
        s->op.kind = a->kind;
        s->op.n = a->n;
        s->op.lease_ms = a->lease_ms;
        s->op.enqueue = s->action.kind == ENQUEUE || s->action.kind == LATE;
        if (s->op.verb == SNIB__ACQUIRE && s->action.who != SAYS_NO_NUMBER)
                s->op.number = w->b[s->action.who].asked + 1;
        if (a->under)
                s->op.under = own_id(a->under - 1, 0);
}

/* Whether something is said of this actor alone. */
static bool singled_out(const struct scenario *s, int x)
{
        bool it = x == SAYS_NO_NUMBER && !s->actor[x].observer;

        for (int y = 0; y < s->actors; y++)
                it |= s->actor[y].under == x + 1;
        for (int o = 0; o < s->others; o++)
                it |= s->other[o].permits && x == 0;
        return it;
}

bool world_alike(const struct scenario *s, int x, int y)
{
        const struct actor *a = &s->actor[x], *b = &s->actor[y];

        return x == y || (a->kind == b->kind && a->n == b->n && a->lease_ms == b->lease_ms && a->under == b->under &&
                          a->observer == b->observer && !singled_out(s, x) && !singled_out(s, y));
}

/* What somebody else asks. */
static void ask_other(struct world *w, struct step *s)
{
        const struct other *o = &w->scenario->other[s->action.who];

        s->again = o->verb == 0;
        if (s->again)
                o = &w->scenario->other[w->latest.other - 1];
        s->serial = s->again ? w->latest.serial : ++w->serial % CHANGES;
        s->other = o;
        s->op = (struct snib__op){.verb = o->verb,
                                  .kind = o->kind,
                                  .id = id_of(CHANGES + s->serial),
                                  .n = o->n,
                                  .ttl_ms = o->ttl_ms,
                                  .if_exists = o->if_exists,
                                  .lease_ms = w->scenario->actor[0].lease_ms};
        s->op.expected = o->expecting == ANY_VERSION       ? -1
                         : o->expecting == PRESENT_VERSION ? w->version
                         : o->expecting == STALE_VERSION   ? w->version + 7
                                                           : 0;
        for (int i = 0; i < PERMITS; i++)
                if (o->permits >> i & 1) {
                        struct snib__id hold = own_id(0, 0);

                        (void)snib__permit_id(&hold, i, s->permits[s->op.permit_count++]);
                }
        if (o->permits)
                s->op.permits = (const char(*)[33])s->permits;
}

/* What was executed then must still be remembered. */
static bool known(const struct world *w, struct action a, int64_t at, int mark)
{
        return w->now.lease_ms + a.wait_ms - at < SNIB__DONE_MS && w->remembered - mark <= REMEMBERED;
}

bool world_can(const struct world *w, struct action a)
{
        const struct scenario *scenario = w->scenario;
        const struct other *o = a.kind == OTHER ? &scenario->other[a.who] : NULL;

        if (a.kind == LATE)
                return w->b[a.who].life && known(w, a, w->b[a.who].undone_at, w->b[a.who].mark);
        if (!o)
                return a.kind != RENEW ||
                       (!scenario->actor[a.who].observer && !snib__kind(scenario->actor[a.who].kind)->momentary);
        if (o->verb == 0)
                return w->latest.other && known(w, a, w->latest.at, w->latest.mark);
        /* Numbers stay small, and in their range. */
        return o->verb != SNIB__ADD || snib__family_of(o->kind) == SNIB__FAMILY_LATCH ||
               (w->value + o->n <= 3 && w->value + o->n >= -1);
}

const char *world_take(struct world *w, struct action action)
{
        struct world before = *w;
        struct step s = {.action = action};
        struct belief *b = action.kind == OTHER ? NULL : &w->b[action.who];
        bool stood = b && (b->out || b->turn);
        const char *wrong;

        if (setjmp(escape))
                return escaped;
        /* The wall clock steps back further than it goes on. */
        w->now.wall_us += action.wait_ms == 6000 ? -7000000 : action.wait_ms * 1000;
        w->now.lease_ms += action.wait_ms;
        if (action.kind == OTHER)
                ask_other(w, &s);
        else
                ask_actor(w, &s);
        point(w, &s);
        if (action.kind == BURY)
                s.buried = snib__record_bury(&w->record, &s.op.id, w->now, &s.change);
        else
                snib__record_apply(&w->record, &s.op, w->now, &s.reply, &s.change);
        if (b)
                b->asked++;
        forget(w, &s);
        wrong = expect(&before, w, &s, stood);
        /* The id was used up by its undoing. */
        if (action.kind == RELEASE && s.op.kind == SNIB_KIND_SEMAPHORE && s.reply.status != SNIB__FAILED)
                b->life++;
        return wrong;
}

struct world world_new(const struct scenario *scenario)
{
        struct world w;

        memset(&w, 0, sizeof(w));
        w.scenario = scenario;
        w.now = (struct snib__clock){1000, 1700000000000000};
        w.record.held_room = ACTORS * PERMITS;
        w.record.queue_room = ACTORS + 1;
        w.record.dones_room = sizeof(w.done) / sizeof(w.done[0]);
        return w;
}
