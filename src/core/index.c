/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The room of the index: where a hold is found. By name and owner, for an acquire that joins one;
 * by name in the order of arrival, for the waiters; by name and id, for what an engine tells of.
 * Not what is done with what is found. Pure; one thread at a time.
 */

#include "core/internal.h"
#include <string.h>

static int compare_names(struct snib__name a, struct snib__name b)
{
        if (a.length != b.length)
                return a.length < b.length ? -1 : 1;
        return memcmp(a.bytes, b.bytes, a.length);
}

static const struct snib__hold *owner_hold(const struct snib__tree_node *n)
{
        return snib__container(n, const struct snib__hold, by_owner);
}

/* The two sides of a read-write lock are two holds of one owner. */
static int compare_side(int a, int b)
{
        int x = a == SNIB_KIND_READ ? 1 : a == SNIB_KIND_WRITE ? 2 : 0;
        int y = b == SNIB_KIND_READ ? 1 : b == SNIB_KIND_WRITE ? 2 : 0;

        return x - y;
}

struct owner_key {
        struct snib__name name, owner;
        int kind;
};

static int compare_owner_key(const struct snib__tree_node *n, const void *key)
{
        const struct owner_key *k = key;
        int r = compare_names(owner_hold(n)->name, k->name);

        if (!r)
                r = compare_names(owner_hold(n)->owner, k->owner);
        return r ? r : compare_side(owner_hold(n)->kind, k->kind);
}

static int compare_owner(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return compare_owner_key(a,
                                 &(struct owner_key){owner_hold(b)->name, owner_hold(b)->owner, owner_hold(b)->kind});
}

static const struct snib__hold *wait_hold(const struct snib__tree_node *n)
{
        return snib__container(n, const struct snib__hold, by_wait);
}

static int compare_wait_name(const struct snib__tree_node *n, const void *name)
{
        return compare_names(wait_hold(n)->name, *(const struct snib__name *)name);
}

static int compare_wait(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        const struct snib__hold *x = wait_hold(a), *y = wait_hold(b);
        int r = compare_names(x->name, y->name);

        return r ? r : (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

void snib__index_init(struct snib__core *c)
{
        snib__tree_init(&c->by_owner, compare_owner);
        snib__tree_init(&c->by_wait, compare_wait);
}

struct snib__hold *snib__core_find(struct snib__core *c, struct snib__name name, struct snib__name owner, int kind)
{
        struct owner_key key = {name, owner, kind};
        struct snib__tree_node *n = snib__tree_seek_key(&c->by_owner, compare_owner_key, &key);

        return n && compare_owner_key(n, &key) == 0 ? (struct snib__hold *)owner_hold(n) : NULL;
}

struct snib__hold *snib__core_held(struct snib__core *c, struct snib__name name, const struct snib__id *id)
{
        struct owner_key key = {.name = name, .owner = {"", 0}};
        struct snib__tree_node *n = snib__tree_seek_key(&c->by_owner, compare_owner_key, &key);

        for (; n; n = snib__tree_next(n)) {
                struct snib__hold *h = (struct snib__hold *)owner_hold(n);

                if (compare_names(h->name, name) != 0)
                        return NULL;
                if (snib__id_equal(&h->known.id, id))
                        return h->state == SNIB__HELD ? h : NULL;
        }
        return NULL;
}

struct snib__hold *snib__wait_first(struct snib__core *c, struct snib__name name)
{
        struct snib__tree_node *n = snib__tree_seek_key(&c->by_wait, compare_wait_name, &name);

        return n && compare_wait_name(n, &name) == 0 ? (struct snib__hold *)wait_hold(n) : NULL;
}

struct snib__hold *snib__wait_next(struct snib__hold *h)
{
        struct snib__tree_node *n = snib__tree_next(&h->by_wait);

        return n && compare_names(wait_hold(n)->name, h->name) == 0 ? (struct snib__hold *)wait_hold(n) : NULL;
}

int64_t snib__core_silent(struct snib__core *c, struct snib__name name)
{
        int64_t n = 0;

        for (struct snib__hold *h = snib__wait_first(c, name); h; h = snib__wait_next(h))
                n += h->known.silent;
        return n;
}
