/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The core's one timer queue: timers by the instant at which they are due, and those of one instant
 * in the order in which they were set. Of these only the first stands in the tree; the others are a
 * ring behind it, so that the tree of a client with 100,000 holds has a few hundred nodes, of which
 * all are warm. Not what happens when one is due (core.c).
 *
 * A timer in a ring uses its node otherwise: child[0] and child[1] are its neighbours, parent is
 * itself.
 */

#include "core/internal.h"

static struct snib__timer *timer_of(struct snib__tree_node *n)
{
        return snib__container(n, struct snib__timer, node);
}

static int compare_due(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        snib__ns x = snib__container(a, const struct snib__timer, node)->due;
        snib__ns y = snib__container(b, const struct snib__timer, node)->due;

        return (x > y) - (x < y);
}

void snib__timers_init(struct snib__core *c)
{
        snib__tree_init(&c->timers, compare_due);
}

static bool in_ring(const struct snib__timer *t)
{
        return t->node.parent == &t->node;
}

bool snib__timer_armed(const struct snib__timer *t)
{
        return snib__tree_linked(&t->node) || in_ring(t);
}

/* The one in the tree that is due when `t` is, or NULL. */
static struct snib__timer *leader_of(struct snib__core *c, const struct snib__timer *t)
{
        struct snib__tree_node *n = snib__tree_seek(&c->timers, &t->node);

        return n && timer_of(n)->due == t->due ? timer_of(n) : NULL;
}

static void join(struct snib__timer *leader, struct snib__tree_node *n)
{
        struct snib__tree_node *last = leader->last ? leader->last : n;

        n->parent = n;
        n->child[0] = last;
        n->child[1] = leader->last ? last->child[1] : n;
        n->child[1]->child[0] = n;
        last->child[1] = n;
        leader->last = n;
}

static void leave(struct snib__timer *leader, struct snib__tree_node *n)
{
        n->child[0]->child[1] = n->child[1];
        n->child[1]->child[0] = n->child[0];
        if (leader->last == n)
                leader->last = n->child[0] == n ? NULL : n->child[0];
        n->parent = n->child[0] = n->child[1] = NULL;
}

static void arm(struct snib__core *c, struct snib__timer *t)
{
        struct snib__tree_node *leader = snib__tree_add_new(&c->timers, &t->node);

        t->last = NULL;
        if (leader)
                join(timer_of(leader), &t->node);
}

/* The first of the ring takes the place in the tree. */
static void hand_over(struct snib__core *c, struct snib__timer *t)
{
        struct snib__tree_node *next = t->last->child[1];

        leave(t, next);
        timer_of(next)->last = t->last;
        t->last = NULL;
        snib__tree_replace(&c->timers, &t->node, next);
}

static void disarm(struct snib__core *c, struct snib__timer *t)
{
        if (in_ring(t))
                leave(leader_of(c, t), &t->node);
        else if (snib__tree_linked(&t->node) && t->last)
                hand_over(c, t);
        else
                snib__tree_remove(&c->timers, &t->node);
}

void snib__timer_set(struct snib__core *c, struct snib__timer *t, snib__ns due)
{
        if (snib__timer_armed(t) && t->due == due)
                return;
        disarm(c, t);
        t->due = due;
        if (due != SNIB__NEVER)
                arm(c, t);
}

struct snib__timer *snib__timer_first(const struct snib__core *c)
{
        struct snib__tree_node *n = snib__tree_first(&c->timers);

        return n ? timer_of(n) : NULL;
}
