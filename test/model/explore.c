/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every short sequence of requests about one object, and the states that longer ones lead to,
 * against an independent statement of what such an object is (statement.c), for every scenario
 * (scenarios.c).
 *
 * Two explorations of each scenario:
 *   sequences  all sequences of its depth: nothing is taken for granted about states;
 *   states     breadth first over the states that sequences of any length reach, all of them or the
 *              first STATES_MAX.
 * Names are taken for granted in both: of histories that differ in nothing but which of two alike
 * actors is which (world_alike()), or in when time begins, one is looked at, and what it stands for
 * is counted.
 * Two histories lead to the same state when the statement says the same about the future: who sits
 * and waits, in which order, numbers, and what is left of each lease. Tokens are left out of that;
 * they are checked at each step, and the wall clock they come from jumps both ways on the way.
 *
 * Compiled with -DSNIB__SEEDED the program switches on one bug of the model after the other and
 * must find each. Prints TAP.
 */

#include "base/alloc.h"
#include "base/seedbug.h"
#include "base/tree.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4
#define STATES_MAX 20000

/* At once; a while; half a lease; the end of the longest. A waiter's place (5 s) ends between the
 * last two. */
static const int64_t waits_ms[] = {0, 1000, 3000, 6000};
#define WAITS ((int)(sizeof(waits_ms) / sizeof(waits_ms[0])))

/* What was done, and what it stands for, had the names been others. */
static long steps, covered;

/* Number n of the actions, false past the last. */
static bool action_at(const struct scenario *s, int n, struct action *ret)
{
        ret->wait_ms = waits_ms[n % WAITS];
        n /= WAITS;
        if (n < s->actors * OTHER) {
                ret->kind = (enum kind)(n / s->actors);
                ret->who = n % s->actors;
                return true;
        }
        ret->kind = OTHER;
        ret->who = n - s->actors * OTHER;
        return ret->who < s->others;
}

static void print_action(const struct scenario *s, struct action a)
{
        static const char *const texts[] = {"acquire", "acquire+enqueue", "release", "renew", "bury", "late acquire"};

        printf("#   +%lld ms  ", (long long)a.wait_ms);
        if (a.kind == OTHER)
                printf("%s\n", s->other[a.who].text);
        else
                printf("%s actor %d%s\n", texts[a.kind], a.who, s->actor[a.who].observer ? " (observes)" : "");
}

/* A sequence that is being tried. */
struct path {
        struct action action[DEPTH_MAX];
        int length;
        int came;  /* actors that did something, as bits */
        long many; /* sequences like it under other names */
};

/* How many alike actors could have done what x does, when they come in the order of their numbers;
 * 0: x is not the one who comes next. One that came before is itself. */
static int choices(const struct scenario *s, int came, int x)
{
        int n = 1;

        if (came >> x & 1)
                return 1;
        for (int y = 0; y < s->actors; y++) {
                if (y == x || !world_alike(s, x, y))
                        continue;
                if (!(came >> y & 1))
                        n = y < x ? 0 : n + (n > 0);
        }
        return n;
}

/* Adds an action; false if the sequence says the same as another under other names. */
static bool extend(const struct scenario *s, struct path *p, struct action a)
{
        int n = 1;

        if (p->length == 0) { /* time begins with it */
                if (a.wait_ms != 0)
                        return false;
                n = WAITS;
        }
        if (a.kind != OTHER) {
                n *= choices(s, p->came, a.who);
                p->came |= 1 << a.who;
        }
        p->many *= n;
        p->action[p->length++] = a;
        return n > 0;
}

/* All sequences of `depth` more actions; `path` is what led here. True if none went wrong. */
static bool sequences(const struct world *from, int depth, const struct path *path)
{
        struct action a;

        if (depth == 0 || path->length == DEPTH_MAX)
                return true;
        for (int n = 0; action_at(from->scenario, n, &a); n++) {
                struct path p = *path;
                struct world w;
                const char *wrong;

                if (!world_can(from, a) || !extend(from->scenario, &p, a))
                        continue;
                w = *from;
                wrong = world_take(&w, a);
                steps++;
                covered += p.many;
                if (wrong) {
                        printf("# %s, after:\n", wrong);
                        for (int i = 0; i < p.length; i++)
                                print_action(from->scenario, p.action[i]);
                        return false;
                }
                if (!sequences(&w, depth - 1, &p))
                        return false;
        }
        return true;
}

static bool all_sequences(const struct scenario *s, int depth)
{
        struct world w = world_new(s);

        steps = covered = 0;
        return sequences(&w, depth, &(struct path){.many = 1});
}

/* A state of the second exploration. */
#define ACTOR_KEY 8
#define KEY_MAX (ACTORS * ACTOR_KEY + 8)
struct node {
        struct snib__tree_node by_key;
        signed char key[KEY_MAX];
        struct world world;
        int parent;
        struct action action;
};

static int compare_keys(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return memcmp(snib__container(a, struct node, by_key)->key, snib__container(b, struct node, by_key)->key,
                      KEY_MAX);
}

/* Seconds until then; all times are multiples of a second. */
static signed char seconds(const struct world *w, int64_t until)
{
        return (signed char)(until == INT64_MAX ? 127 : (until - w->now.lease_ms) / 1000);
}

static void actor_key(const struct world *w, int x, signed char k[ACTOR_KEY])
{
        const struct belief *b = &w->b[x];

        k[0] = (signed char)(b->out | b->claimed << 2);
        k[1] = (signed char)world_place(w, x);
        k[2] = b->out & 1 ? seconds(w, b->until[0]) : 0;
        k[3] = b->out & 2 ? seconds(w, b->until[1]) : 0;
        k[4] = b->turn ? seconds(w, b->stays) : 0;
        k[5] = b->seen == world_state(w, w->scenario->actor[x].kind);
        k[6] = b->seen == 0;
        k[7] = world_can(w, (struct action){LATE, x, 0});
}

/* Puts the parts of alike actors into order. Returns how many states there are that differ from
 * this in their names alone, itself included. */
static int order_alike(const struct scenario *s, signed char key[KEY_MAX])
{
        int many = 1;

        for (int x = 0; x < s->actors; x++) {
                signed char *mine = key + x * ACTOR_KEY, swap[ACTOR_KEY];
                int alike = 1, same = 1;

                for (int y = 0; y < x; y++) {
                        signed char *other = key + y * ACTOR_KEY;

                        if (!world_alike(s, x, y))
                                continue;
                        alike++;
                        if (memcmp(other, mine, ACTOR_KEY) > 0) { /* the greatest goes on to the end */
                                memcpy(swap, mine, ACTOR_KEY);
                                memcpy(mine, other, ACTOR_KEY);
                                memcpy(other, swap, ACTOR_KEY);
                        }
                }
                for (int y = 0; y < x; y++)
                        same += world_alike(s, x, y) && memcmp(key + y * ACTOR_KEY, mine, ACTOR_KEY) == 0;
                many = many * alike / same;
        }
        return many;
}

/* What matters for the future, whatever the names; returns as order_alike(). */
static int key_of(const struct world *w, signed char key[KEY_MAX])
{
        signed char *k = key + w->scenario->actors * ACTOR_KEY;

        memset(key, 0, KEY_MAX);
        for (int x = 0; x < w->scenario->actors; x++)
                actor_key(w, x, key + x * ACTOR_KEY);
        k[0] = (signed char)w->made;
        k[1] = (signed char)w->value;
        k[2] = w->vanishes ? seconds(w, w->vanishes) : 0;
        k[3] = (signed char)w->latest.other;
        k[4] = w->latest.applied;
        k[5] = w->latest.mark == w->remembered - 1;
        return order_alike(w->scenario, key);
}

static struct node *nodes[STATES_MAX];
static int node_count;

static void print_path(int i)
{
        if (nodes[i]->parent < 0)
                return;
        print_path(nodes[i]->parent);
        print_action(nodes[i]->world.scenario, nodes[i]->action);
}

/* Adds a state unless it is known, or there are enough. */
static void discover(struct snib__tree *known, const struct world *w, int parent, struct action action)
{
        static struct node sought;
        struct node *n;
        struct snib__tree_node *found;
        int many = key_of(w, sought.key);

        found = snib__tree_seek(known, &sought.by_key);
        if (node_count == STATES_MAX || (found && compare_keys(found, &sought.by_key) == 0))
                return;
        n = snib__alloc(sizeof(*n));
        if (!n) {
                printf("Bail out! out of memory\n");
                exit(1);
        }
        memcpy(n->key, sought.key, KEY_MAX);
        n->world = *w;
        n->parent = parent;
        n->action = action;
        covered += many;
        snib__tree_add(known, &n->by_key);
        nodes[node_count++] = n;
}

/* One step from a state that is known. */
static bool step(struct snib__tree *known, int i, struct action a)
{
        struct world w = nodes[i]->world;
        const char *wrong;

        if (!world_can(&w, a))
                return true;
        wrong = world_take(&w, a);
        steps++;
        if (!wrong) {
                discover(known, &w, i, a);
                return true;
        }
        printf("# %s, after:\n", wrong);
        print_path(i);
        print_action(w.scenario, a);
        return false;
}

/* The states that any sequence reaches. True if nothing went wrong. */
static bool states(const struct scenario *scenario)
{
        struct snib__tree known;
        struct world w = world_new(scenario);
        struct action a;
        bool good = true;

        node_count = 0;
        steps = covered = 0;
        snib__tree_init(&known, compare_keys);
        discover(&known, &w, -1, (struct action){0});
        for (int i = 0; good && i < node_count; i++)
                for (int n = 0; good && action_at(scenario, n, &a); n++)
                        good = step(&known, i, a);
        for (int i = 0; i < node_count; i++)
                free(nodes[i]);
        return good;
}

#ifndef SNIB__SEEDED

static int run(void)
{
        bool all = true;
        int number = 0;

        printf("1..%d\n", 2 * scenario_count);
        for (int i = 0; i < scenario_count; i++) {
                const struct scenario *s = &scenarios[i];
                bool good = all_sequences(s, s->depth);

                printf("%s %d - %s: every sequence of %d actions\n# %ld steps, which stand for %ld\n",
                       good ? "ok" : "not ok", ++number, s->name, s->depth, steps, covered);
                all &= good;
                good = states(s);
                printf("%s %d - %s: states\n# %d states%s, which stand for %ld, %ld steps\n", good ? "ok" : "not ok",
                       ++number, s->name, node_count, node_count == STATES_MAX ? " (there are more)" : "", covered,
                       steps);
                all &= good;
        }
        return !all;
}

#else

/* The bugs that live in the model, and where to look for them. */
static const struct {
        int number;
        const char *name;
        const char *scenario;
} bugs[] = {
#define BUG(name, scenario)                       \
        {                                         \
                SNIB__BUG_##name, #name, scenario \
        }
    BUG(release_without_owner_check, "lock"),
    BUG(repeated_acquire_counted_twice, "lock"),
    BUG(renewal_without_owner_check, "lock"),
    BUG(token_not_raised, "lock"),
    BUG(hand_over_skips_queue, "lock"),
    BUG(direct_grant_lease_short, "lock"),
    BUG(writer_starved, "read-write lock"),
    BUG(downgrade_with_gap, "read-write lock"),
    BUG(reader_release_frees_writer, "read-write lock"),
    BUG(permit_released_twice, "permits"),
    BUG(permits_partly_granted, "permits"),
    BUG(semaphore_repeat_counts, "semaphore"),
    BUG(semaphore_undo_lost, "semaphore"),
    BUG(latch_counts_twice, "latch"),
    BUG(latch_wakes_one, "latch"),
    BUG(register_ignores_version, "register"),
    BUG(register_version_reused, "register"),
    BUG(observer_not_told, "election"),
#undef BUG
};

static const struct scenario *scenario_of(const char *name)
{
        int i = 0;

        while (i < scenario_count - 1 && strcmp(scenarios[i].name, name) != 0)
                i++;
        return &scenarios[i];
}

static int run(void)
{
        int count = (int)(sizeof(bugs) / sizeof(bugs[0])), missed = 0;

        printf("1..%d\n", count);
        for (int i = 0; i < count; i++) {
                const struct scenario *s = scenario_of(bugs[i].scenario);
                bool found = false;

                snib__seeded_bug = bugs[i].number;
                for (int depth = 1; depth < s->depth && !found; depth++)
                        found = !all_sequences(s, depth); /* the shortest are the most telling */
                found = found || !states(s) || !all_sequences(s, s->depth);
                missed += !found;
                printf("%s %d - finds %s\n", found ? "ok" : "not ok", i + 1, bugs[i].name);
        }
        return missed;
}

#endif

int main(void)
{
        return run() != 0;
}
