/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The treap of base/tree.h: a binary search tree that is a heap by random priority, so its expected
 * depth is logarithmic whatever order the keys come in. Not thread-safe; invariant: parent links
 * mirror child links, a parent's priority is not less than its children's. R. Seidel, C. Aragon,
 * "Randomized Search Trees", Algorithmica 16 (1996).
 */

#include "base/tree.h"
#include "base/assert.h"

void snib__tree_init(struct snib__tree *t, snib__tree_compare *compare)
{
        t->root = t->first = NULL;
        t->compare = compare;
        t->seed = 2463534242U;
        t->count = 0;
}

/* Marsaglia's xorshift32; never 0. */
static uint32_t draw(struct snib__tree *t)
{
        t->seed ^= t->seed << 13;
        t->seed ^= t->seed >> 17;
        t->seed ^= t->seed << 5;
        return t->seed;
}

static struct snib__tree_node **slot_of(struct snib__tree *t, struct snib__tree_node *n)
{
        if (!n->parent)
                return &t->root;
        return &n->parent->child[n->parent->child[1] == n];
}

/* Lifts n above its parent. */
static void rotate_up(struct snib__tree *t, struct snib__tree_node *n)
{
        struct snib__tree_node *p = n->parent;
        int side = p->child[1] == n;
        struct snib__tree_node *inner = n->child[!side];

        *slot_of(t, p) = n;
        n->parent = p->parent;
        n->child[!side] = p;
        p->parent = n;
        p->child[side] = inner;
        if (inner)
                inner->parent = p;
}

/* Hangs n, which belongs there, below `parent` (NULL: it is the only one). */
static void hang(struct snib__tree *t, struct snib__tree_node *parent, int side, struct snib__tree_node *n)
{
        n->parent = parent;
        n->child[0] = n->child[1] = NULL;
        n->priority = draw(t);
        if (!parent || (parent == t->first && side == 0))
                t->first = n;
        if (parent)
                parent->child[side] = n;
        else
                t->root = n;
        while (n->parent && n->parent->priority < n->priority)
                rotate_up(t, n);
        t->count++;
}

void snib__tree_add(struct snib__tree *t, struct snib__tree_node *n)
{
        struct snib__tree_node *parent = NULL;
        int side = 0;

        snib__assert(!snib__tree_linked(n));
        for (struct snib__tree_node *at = t->root; at; at = at->child[side]) {
                parent = at;
                side = t->compare(n, parent) >= 0;
        }
        hang(t, parent, side, n);
}

struct snib__tree_node *snib__tree_add_new(struct snib__tree *t, struct snib__tree_node *n)
{
        struct snib__tree_node *parent = NULL;
        int order = 0;

        snib__assert(!snib__tree_linked(n));
        for (struct snib__tree_node *at = t->root; at; at = at->child[order > 0]) {
                parent = at;
                order = t->compare(n, parent);
                if (order == 0)
                        return parent;
        }
        hang(t, parent, order > 0, n);
        return NULL;
}

void snib__tree_remove(struct snib__tree *t, struct snib__tree_node *n)
{
        if (!snib__tree_linked(n))
                return;
        if (t->first == n)
                t->first = snib__tree_next(n);
        while (n->child[0] && n->child[1])
                rotate_up(t, n->child[n->child[0]->priority < n->child[1]->priority]);

        struct snib__tree_node *only = n->child[0] ? n->child[0] : n->child[1];
        *slot_of(t, n) = only;
        if (only)
                only->parent = n->parent;
        n->parent = n->child[0] = n->child[1] = NULL;
        n->priority = 0;
        snib__assert(t->count > 0);
        t->count--;
}

void snib__tree_replace(struct snib__tree *t, struct snib__tree_node *old, struct snib__tree_node *n)
{
        *slot_of(t, old) = n;
        if (t->first == old)
                t->first = n;
        n->parent = old->parent;
        n->priority = old->priority;
        for (int i = 0; i < 2; i++) {
                n->child[i] = old->child[i];
                if (n->child[i])
                        n->child[i]->parent = n;
        }
        old->parent = old->child[0] = old->child[1] = NULL;
        old->priority = 0;
}

struct snib__tree_node *snib__tree_next(const struct snib__tree_node *n)
{
        if (n->child[1]) {
                n = n->child[1];
                while (n->child[0])
                        n = n->child[0];
                return (struct snib__tree_node *)n;
        }
        while (n->parent && n->parent->child[1] == n)
                n = n->parent;
        return n->parent;
}

struct snib__tree_node *snib__tree_seek_key(const struct snib__tree *t, snib__tree_compare_key *compare,
                                            const void *key)
{
        struct snib__tree_node *n = t->root, *best = NULL;

        while (n) {
                if (compare(n, key) < 0) {
                        n = n->child[1];
                } else {
                        best = n;
                        n = n->child[0];
                }
        }
        return best;
}

struct node_key {
        snib__tree_compare *compare;
        const struct snib__tree_node *node;
};

static int compare_node(const struct snib__tree_node *n, const void *key)
{
        const struct node_key *k = key;

        return k->compare(n, k->node);
}

struct snib__tree_node *snib__tree_seek(const struct snib__tree *t, const struct snib__tree_node *key)
{
        return snib__tree_seek_key(t, compare_node, &(struct node_key){t->compare, key});
}
