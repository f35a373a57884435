/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_LIST_H
#define SNIB_BASE_LIST_H

/*
 * An intrusive doubly linked ring. A head and its nodes are the same struct; an unlinked node
 * points at itself, or is all zero (never linked). Owns nothing.
 */

#include <stdbool.h>
#include <stddef.h>

struct snib__list {
        struct snib__list *next;
        struct snib__list *prev;
};

#define snib__container(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#define snib__list_each(it, head) for (struct snib__list *it = (head)->next; it != (head); it = it->next)

static inline void snib__list_init(struct snib__list *l)
{
        l->next = l;
        l->prev = l;
}

static inline bool snib__list_linked(const struct snib__list *l)
{
        return l->next && l->next != l;
}

static inline bool snib__list_empty(const struct snib__list *head)
{
        return head->next == head;
}

static inline void snib__list_remove(struct snib__list *l)
{
        if (!l->next)
                return;
        l->prev->next = l->next;
        l->next->prev = l->prev;
        snib__list_init(l);
}

/* Links an unlinked node at the end. */
static inline void snib__list_append(struct snib__list *head, struct snib__list *l)
{
        l->prev = head->prev;
        l->next = head;
        head->prev->next = l;
        head->prev = l;
}

/* Takes the first node out, NULL if there is none. */
static inline struct snib__list *snib__list_take(struct snib__list *head)
{
        struct snib__list *l = head->next;
        if (l == head)
                return NULL;
        snib__list_remove(l);
        return l;
}

#endif
