/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_TREE_H
#define SNIB_BASE_TREE_H

/*
 * An intrusive ordered tree (treap): the library's only map and its only timer queue. Nodes live in
 * the caller's structs, so adding never fails and never allocates. Keys are compared by the tree's
 * function; equal keys are allowed, the later one comes after. The priorities come from a per-tree
 * generator with a fixed start, so a run is reproducible.
 */

#include "base/list.h"
#include <stdbool.h>
#include <stdint.h>

struct snib__tree_node {
        struct snib__tree_node *parent;
        struct snib__tree_node *child[2];
        uint32_t priority; /* 0: not in a tree */
        uint32_t tag;      /* whatever the embedding struct likes: it would be padding */
};

/* < 0, 0, > 0 like memcmp. */
typedef int snib__tree_compare(const struct snib__tree_node *a, const struct snib__tree_node *b);

struct snib__tree {
        struct snib__tree_node *root, *first;
        snib__tree_compare *compare;
        uint32_t seed;
        uint32_t count;
};

void snib__tree_init(struct snib__tree *t, snib__tree_compare *compare);

/* The node must not be in a tree. */
void snib__tree_add(struct snib__tree *t, struct snib__tree_node *n);
/* Adds it and answers NULL; or answers one that has the same key and is there already. */
struct snib__tree_node *snib__tree_add_new(struct snib__tree *t, struct snib__tree_node *n);

/* No-op for a node that is in no tree. */
void snib__tree_remove(struct snib__tree *t, struct snib__tree_node *n);

/* `n`, which is in no tree, takes the place of `old`: both have the same key. */
void snib__tree_replace(struct snib__tree *t, struct snib__tree_node *old, struct snib__tree_node *n);

static inline struct snib__tree_node *snib__tree_first(const struct snib__tree *t)
{
        return t->first;
}

struct snib__tree_node *snib__tree_next(const struct snib__tree_node *n);

/* The first node that is not less than `key`, a node outside the tree with its key fields set; NULL
 * if there is none.
 */
struct snib__tree_node *snib__tree_seek(const struct snib__tree *t, const struct snib__tree_node *key);

/* The same for a key that is no node; `compare` orders nodes as the tree's own function does. */
typedef int snib__tree_compare_key(const struct snib__tree_node *n, const void *key);
struct snib__tree_node *snib__tree_seek_key(const struct snib__tree *t, snib__tree_compare_key *compare,
                                            const void *key);

static inline bool snib__tree_linked(const struct snib__tree_node *n)
{
        return n->priority != 0;
}

#endif
