/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every short sequence of requests about one lock, and every state that any sequence leads to, against an independent
 * statement of what a lock is. The statement (struct belief, expect_*) is kept from the history of answers and notes
 * alone: who was told that it holds, until when, with which token; who was told that it waits, since which turn. After
 * every step the model's answer, its notes, its record and its account of what changed must be the only ones that this
 * history allows.
 *
 * Two explorations:
 *   sequences  all sequences of DEPTH actions by three clients: nothing is taken for granted about states;
 *   states     breadth first over the states that sequences of any length reach. Two histories count as the same when
 * the statement says the same about the future: roles, order, and what is left of each lease. Tokens are left out of
 * that; they are checked at each step, and the wall clock they come from jumps both ways on the way.
 *
 * Compiled with -DSNIB__SEEDED the program switches on one bug of the model after the other and must find each. Prints
 * TAP.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/seedbug.h"
#include "base/tree.h"
#include "model/lock.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS 4
#define DEPTH 4
#define STATES_MAX 100000

enum kind { ACQUIRE, ENQUEUE, RELEASE, RENEW, BURY, FORCE, QUERY, KINDS };

struct action {
        enum kind kind;
        int id;
        int64_t wait_ms; /* before it */
};

/* What the history says about one client. */
struct belief {
        bool holds;
        int64_t until;
        int64_t token;
        int turn; /* of the queue, 0 not in it */
        int64_t stays;
};

struct world {
        struct snib__clock now;
        struct belief b[IDS];
        int64_t highest; /* token given out so far */
        int turns;
        struct snib__lock_record record;
        struct snib__waiter queue[IDS + 1];
};

/* One step while it is checked. */
struct step {
        struct action action;
        struct snib__op op;
        int owner; /* whose lease runs at this moment, before the action; -1 nobody */
        int ended; /* whose hold must be reported as ended */
        struct snib__reply reply;
        struct snib__lock_change change;
        bool buried; /* what the model said */
        bool noted;  /* the notes were checked */
};

static const char *const kind_names[] = {"acquire", "acquire+enqueue", "release", "renew", "bury", "force", "query"};
/* One shorter than SNIB__CLAIM_MS. */
static const int64_t leases_ms[IDS] = {6000, 6000, 3000, 6000};
/* At once; a while; half a lease; the end of the longest. A waiter's place (5 s) ends between the last two. */
static const int64_t waits_ms[] = {0, 1000, 3000, 6000};
/* The wall clock steps back as often as it goes on. */
static const int64_t wall_us[] = {0, 1000000, 3000000, -7000000};

static struct snib__id ids[IDS + 1]; /* the last one is nobody */
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

static const struct snib__id *id_at(int x)
{
        return &ids[x < 0 ? IDS : x];
}

static bool is(const struct snib__id *id, int x)
{
        return strcmp(id->text, id_at(x)->text) == 0;
}

/* The first in the queue by turn, -1 nobody. */
static int first_waiter(const struct world *w)
{
        int first = -1;

        for (int x = 0; x < IDS; x++)
                if (w->b[x].turn && (first < 0 || w->b[x].turn < w->b[first].turn))
                        first = x;
        return first;
}

static int holder(const struct world *w)
{
        for (int x = 0; x < IDS; x++)
                if (w->b[x].holds)
                        return x;
        return -1;
}

/* x's place, 0 if it has none. */
static int place(const struct world *w, int x)
{
        int before = 1;

        for (int y = 0; y < IDS; y++)
                before += w->b[y].turn && w->b[y].turn < w->b[x].turn;
        return w->b[x].turn ? before : 0;
}

static int waiters(const struct world *w)
{
        int n = 0;

        for (int x = 0; x < IDS; x++)
                n += w->b[x].turn != 0;
        return n;
}

/* Forgets holds and places whose time is over; answers whose hold that was. */
static int forget(struct world *w)
{
        int ended = -1;

        for (int x = 0; x < IDS; x++) {
                if (w->b[x].holds && w->b[x].until <= w->now.lease_ms) {
                        w->b[x].holds = false;
                        ended = x;
                }
                if (w->b[x].turn && w->b[x].stays <= w->now.lease_ms)
                        w->b[x].turn = 0;
        }
        return ended;
}

/* x has a hold that it did not have before. */
static const char *begin(struct world *w, int x, int64_t lease_ms, int64_t token)
{
        MUST(holder(w) < 0, "a hold begins while another's lease runs");
        MUST(token > w->highest, "a new hold has no higher token");
        w->highest = token;
        w->b[x] = (struct belief){.holds = true, .until = w->now.lease_ms + lease_ms, .token = token};
        return NULL;
}

/* Who was told to have lost or got the lock. */
static const char *expect_notes(struct world *w, struct step *s)
{
        int next = holder(w) < 0 ? first_waiter(w) : -1;
        int64_t claim_ms = next >= 0 && leases_ms[next] < SNIB__CLAIM_MS ? leases_ms[next] : SNIB__CLAIM_MS;

        if (s->noted)
                return NULL;
        s->noted = true;
        MUST(is(&s->change.ended, s->ended), "the wrong hold is reported as ended");
        MUST(is(&s->change.granted, next), "handed over to the wrong waiter, or to none");
        return next < 0 ? NULL : begin(w, next, claim_ms, w->record.token);
}

static const char *expect_acquire(struct world *w, struct step *s)
{
        int x = s->action.id, first = first_waiter(w);
        struct belief *b = &w->b[x];

        if (s->owner == x) {
                MUST(s->reply.status == SNIB__GRANTED, "a holder's acquire is not granted");
                MUST(s->reply.token == b->token, "a hold's token changed");
                b->until = w->now.lease_ms + leases_ms[x];
                return NULL;
        }
        if (s->owner < 0 && (first < 0 || first == x)) {
                MUST(s->reply.status == SNIB__GRANTED, "a free lock is not granted to who is next");
                return begin(w, x, leases_ms[x], s->reply.token);
        }
        MUST(s->reply.status == SNIB__BUSY, "granted out of turn, or while another's lease runs");
        if (!b->turn && s->action.kind == ENQUEUE)
                b->turn = ++w->turns;
        b->stays = w->now.lease_ms + SNIB__WAITER_LEASE_MS;
        return NULL;
}

static const char *expect_release(struct world *w, struct step *s)
{
        struct belief *b = &w->b[s->action.id];
        bool stood = b->holds || b->turn;

        MUST(s->reply.status == (stood ? SNIB__RELEASED : SNIB__GONE), "the answer to release is not true");
        b->holds = false;
        b->turn = 0;
        return NULL;
}

static const char *expect_renew(struct world *w, struct step *s)
{
        int x = s->action.id;
        struct belief *b = &w->b[x];

        if (s->owner < 0 && first_waiter(w) == x) {
                /* Its turn comes at this very moment, and this is as good as a confirmation. */
                const char *wrong = expect_notes(w, s);

                if (wrong)
                        return wrong;
        }
        MUST(s->reply.status == (b->holds ? SNIB__RENEWED : SNIB__GONE), "the answer to renew is not true");
        if (!b->holds)
                return NULL;
        MUST(s->reply.token == b->token, "a renewal changed the token");
        b->until = w->now.lease_ms + leases_ms[x];
        return NULL;
}

static const char *expect_force(struct world *w, struct step *s)
{
        MUST(s->reply.status == SNIB__INFO, "force is not answered with information");
        MUST(s->reply.held == (s->owner >= 0), "force does not say whether there was a holder");
        MUST(is(&s->reply.holder.id, s->owner), "force does not say who held");
        if (s->owner < 0)
                return NULL;
        w->b[s->owner].holds = false;
        s->ended = s->owner;
        return NULL;
}

static const char *expect_bury(struct world *w, struct step *s, bool stood)
{
        struct belief *b = &w->b[s->action.id];

        MUST(s->buried == stood, "bury does not say whether the id stood anywhere");
        if (b->holds)
                s->ended = s->action.id;
        b->holds = false;
        b->turn = 0;
        return NULL;
}

/* The record is what the history says. */
static const char *expect_record(const struct world *w)
{
        const struct snib__lock_record *r = &w->record;
        int h = holder(w);

        MUST(snib__lock_check(r) == NULL, "snib__lock_check finds something");
        MUST(is(&r->holder.id, h), "the record has another holder than the history");
        MUST(h < 0 || r->holder.expires_ms == w->b[h].until, "the hold ends at another time");
        MUST(h < 0 || r->token == w->b[h].token, "a hold's token changed in the record");
        MUST(r->token == w->highest, "the record forgot the last token");
        MUST(r->queued == (size_t)waiters(w), "the queue is not as long as it should be");
        for (int x = 0; x < IDS; x++) {
                int p = place(w, x);

                if (p == 0)
                        continue;
                MUST(is(&r->queue[p - 1].seat.id, x), "the queue is not in order of arrival");
                MUST(r->queue[p - 1].seat.expires_ms == w->b[x].stays, "a waiter's place ends at another time");
        }
        return NULL;
}

/* What the reply says about others. */
static const char *expect_description(const struct world *w, const struct step *s)
{
        const struct snib__reply *reply = &s->reply;
        int h = holder(w);

        if (s->action.kind == BURY)
                return NULL;
        MUST(reply->waiters == waiters(w), "the number of waiters is not true");
        MUST(reply->position == (s->action.id < IDS ? place(w, s->action.id) : 0), "the position is not true");
        if (s->action.kind == FORCE || reply->status == SNIB__RELEASED)
                return NULL;
        MUST(reply->held == (h >= 0), "held is not true");
        MUST(is(&reply->holder.id, h), "the holder is not true");
        MUST(reply->left_ms == (h < 0 ? -1 : w->b[h].until - w->now.lease_ms), "what is left of the lease is not true");
        return NULL;
}

/* What is not reported as changed did not change. */
static const char *expect_changes(const struct world *before, const struct world *w, const struct step *s)
{
        const struct snib__lock_record *a = &before->record, *b = &w->record;

        MUST(s->change.holder || (a->token == b->token && memcmp(&a->holder, &b->holder, sizeof(a->holder)) == 0),
             "the holder changed in silence");
        MUST(s->change.queue ||
                 (a->queued == b->queued && memcmp(before->queue, w->queue, a->queued * sizeof(before->queue[0])) == 0),
             "the queue changed in silence");
        return NULL;
}

/* The same request once more, at the same moment: a retry whose first reply was lost. */
static const char *expect_idempotence(const struct world *w, const struct step *s)
{
        struct world again = *w;
        struct step t = *s;

        again.record.queue = again.queue;
        /* Force means whoever it finds; only without a holder and a hand-over it finds the same again. */
        if (s->action.kind == BURY || (s->action.kind == FORCE && (s->reply.held || snib__id_set(&s->change.granted))))
                return NULL;
        snib__lock_apply(&again.record, &t.op, again.now, &t.reply, &t.change);
        MUST(!t.change.holder && !t.change.queue, "a repeated request changed something");
        MUST(!snib__id_set(&t.change.granted) && !snib__id_set(&t.change.ended), "a repeated request gave notice");
        MUST(expect_changes(w, &again, &t) == NULL, "a repeated request changed something in silence");
        if (s->reply.status == SNIB__RELEASED)
                return t.reply.status == SNIB__GONE ? NULL : "released twice";
        MUST(t.reply.status == s->reply.status && t.reply.token == s->reply.token &&
                 t.reply.position == s->reply.position && t.reply.left_ms == s->reply.left_ms,
             "a repeated request got another answer");
        return NULL;
}

static void ask(struct world *w, struct step *s)
{
        static const enum snib__verb verbs[] = {SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__RELEASE, SNIB__RENEW, 0,
                                                SNIB__FORCE,   SNIB__QUERY};
        int x = s->action.id;

        w->record.queue = w->queue;
        w->record.room = IDS + 1;
        s->op.id = *id_at(x);
        if (s->action.kind == BURY) {
                s->buried = snib__lock_bury(&w->record, &s->op.id, w->now, &s->change);
                return;
        }
        s->op.verb = verbs[s->action.kind];
        s->op.enqueue = s->action.kind == ENQUEUE;
        s->op.lease_ms = x < IDS ? leases_ms[x] : 0;
        snib__lock_apply(&w->record, &s->op, w->now, &s->reply, &s->change);
}

/* Everything that has to be true after the action. */
static const char *expect(const struct world *before, struct world *w, struct step *s, bool stood)
{
        const char *wrong = NULL;

        switch (s->action.kind) {
        case ACQUIRE:
        case ENQUEUE:
                wrong = expect_acquire(w, s);
                break;
        case RELEASE:
                wrong = expect_release(w, s);
                break;
        case RENEW:
                wrong = expect_renew(w, s);
                break;
        case BURY:
                wrong = expect_bury(w, s, stood);
                break;
        case FORCE:
                wrong = expect_force(w, s);
                break;
        case QUERY:
        case KINDS:
                break;
        }
        wrong = wrong ? wrong : expect_notes(w, s);
        wrong = wrong ? wrong : expect_record(w);
        wrong = wrong ? wrong : expect_description(w, s);
        wrong = wrong ? wrong : expect_changes(before, w, s);
        return wrong ? wrong : expect_idempotence(w, s);
}

/* Does one action. NULL, or what is wrong. */
static const char *take(struct world *w, struct action action)
{
        struct world before = *w;
        struct step s = {.action = action};
        bool stood = action.id < IDS && (w->b[action.id].holds || w->b[action.id].turn);

        if (setjmp(escape))
                return escaped;
        for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++)
                if (action.wait_ms == waits_ms[i])
                        w->now.wall_us += wall_us[i];
        w->now.lease_ms += action.wait_ms;
        s.ended = forget(w);
        s.owner = holder(w);
        ask(w, &s);
        return expect(&before, w, &s, stood);
}

/* Number n of the actions that `clients` can do, false past the last. */
static bool action_at(int n, int clients, struct action *ret)
{
        int waits = (int)(sizeof(waits_ms) / sizeof(waits_ms[0]));

        ret->wait_ms = waits_ms[n % waits];
        n /= waits;
        if (n < clients * FORCE) {
                ret->kind = (enum kind)(n / clients);
                ret->id = n % clients;
                return true;
        }
        ret->kind = (enum kind)(FORCE + n - clients * FORCE);
        ret->id = IDS; /* a stranger */
        return ret->kind < KINDS;
}

static struct world start(void)
{
        return (struct world){.now = {1000, 1700000000000000}};
}

static void print_action(struct action a)
{
        printf("#   +%lld ms  %s %s\n", (long long)a.wait_ms, kind_names[a.kind], a.id < IDS ? ids[a.id].text : "");
}

static long steps;

/* All sequences of `depth` more actions; `path` is what led here. True if none went wrong. */
static bool sequences(const struct world *from, int depth, int clients, struct action *path, int length, bool tell)
{
        for (int n = 0; depth > 0 && action_at(n, clients, &path[length]); n++) {
                struct world w = *from;
                const char *wrong = take(&w, path[length]);

                steps++;
                if (wrong) {
                        if (tell)
                                printf("# %s, after:\n", wrong);
                        for (int i = 0; tell && i <= length; i++)
                                print_action(path[i]);
                        return false;
                }
                if (!sequences(&w, depth - 1, clients, path, length + 1, tell))
                        return false;
        }
        return true;
}

#ifndef SNIB__SEEDED

/* A state of the second exploration. */
struct node {
        struct snib__tree_node by_key;
        char key[IDS * 4];
        struct world world;
        int parent;
        struct action action;
};

static int compare_keys(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return memcmp(snib__container(a, struct node, by_key)->key, snib__container(b, struct node, by_key)->key,
                      IDS * 4);
}

/* What matters for the future. All times are multiples of a second. */
static void key_of(struct node *n)
{
        for (int x = 0; x < IDS; x++) {
                const struct belief *b = &n->world.b[x];

                n->key[4 * x] = b->holds;
                n->key[4 * x + 1] = (char)place(&n->world, x);
                n->key[4 * x + 2] = b->holds ? (char)((b->until - n->world.now.lease_ms) / 1000) : 0;
                n->key[4 * x + 3] = b->turn ? (char)((b->stays - n->world.now.lease_ms) / 1000) : 0;
        }
}

static struct node *nodes[STATES_MAX];
static int node_count;

static void print_path(int i)
{
        if (nodes[i]->parent < 0)
                return;
        print_path(nodes[i]->parent);
        print_action(nodes[i]->action);
}

/* Adds a state unless it is known. */
static void discover(struct snib__tree *known, const struct world *w, int parent, struct action action)
{
        struct node *n = snib__alloc(sizeof(*n));
        struct snib__tree_node *found;

        if (!n || node_count == STATES_MAX) {
                printf("Bail out! too many states\n");
                exit(1);
        }
        n->world = *w;
        n->parent = parent;
        n->action = action;
        key_of(n);
        found = snib__tree_seek(known, &n->by_key);
        if (found && compare_keys(found, &n->by_key) == 0) {
                free(n);
                return;
        }
        snib__tree_add(known, &n->by_key);
        nodes[node_count++] = n;
}

/* All states that any sequence reaches. True if nothing went wrong. */
static bool states(int clients)
{
        struct snib__tree known;
        struct world w = start();
        bool good = true;

        snib__tree_init(&known, compare_keys);
        discover(&known, &w, -1, (struct action){0});
        for (int i = 0; good && i < node_count; i++) {
                struct action a;

                for (int n = 0; good && action_at(n, clients, &a); n++) {
                        w = nodes[i]->world;

                        const char *wrong = take(&w, a);

                        steps++;
                        good = wrong == NULL;
                        if (good) {
                                discover(&known, &w, i, a);
                                continue;
                        }
                        printf("# %s, after:\n", wrong);
                        print_path(i);
                        print_action(a);
                }
        }
        for (int i = 0; i < node_count; i++)
                free(nodes[i]);
        return good;
}

static int run(void)
{
        struct world w = start();
        struct action path[DEPTH];
        bool good, all = true;

        printf("1..2\n");
        good = sequences(&w, DEPTH, 3, path, 0, true);
        printf("%s 1 - every sequence of %d actions by 3 clients\n# %ld steps\n", good ? "ok" : "not ok", DEPTH, steps);
        all &= good;
        steps = 0;
        good = states(IDS);
        printf("%s 2 - every state that %d clients can reach\n# %d states, %ld steps\n", good ? "ok" : "not ok", IDS,
               node_count, steps);
        return !(all & good);
}

#else

static int run(void)
{
        static const struct {
                int number;
                const char *name;
        } bugs[] = {
#define BUG(name, number, text) {number, #name},
            SNIB__SEEDBUGS(BUG)
#undef BUG
        };
        /* Those that live in the model. */
        static const int here[] = {SNIB__BUG_release_without_owner_check, SNIB__BUG_repeated_acquire_counted_twice,
                                   SNIB__BUG_renewal_without_owner_check, SNIB__BUG_token_not_raised,
                                   SNIB__BUG_hand_over_skips_queue};
        int count = (int)(sizeof(here) / sizeof(here[0])), missed = 0;

        printf("1..%d\n", count);
        for (int i = 0; i < count; i++) {
                struct world w = start();
                struct action path[DEPTH];

                snib__seeded_bug = here[i];

                bool found = !sequences(&w, DEPTH, 3, path, 0, true);

                missed += !found;
                for (size_t k = 0; k < sizeof(bugs) / sizeof(bugs[0]); k++)
                        if (bugs[k].number == here[i])
                                printf("%s %d - finds %s\n", found ? "ok" : "not ok", i + 1, bugs[k].name);
        }
        return missed;
}

#endif

int main(void)
{
        for (int x = 0; x < IDS; x++)
                (void)snprintf(ids[x].text, sizeof(ids[x].text), "client:%d", x);
        return run() != 0;
}
