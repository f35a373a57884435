/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client's records that outlive the call that made them. Each kind has a list of free ones and a chain of all; see
 * client.h for why nothing goes back to the heap before the client closes: a late answer of the engine, or a stale
 * pointer of the program, finds a record and not a hole. Last freed, first used again. Under the client's lock.
 */

#include "base/alloc.h"
#include "base/decimal.h"
#include "runtime/client.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts a new record at the head of the chain of all: one store, see registry.c. */
#define CHAIN(all, record)                                \
        do {                                              \
                (record)->next_all = atomic_load(&(all)); \
                atomic_store(&(all), (record));           \
        } while (0)

/* Last in, first out. */
static void give_back(struct snib__list *pool, struct snib__list *link)
{
        snib__list_append(pool->next, link);
}

static struct snib_grant *grant_take(struct snib_client *c)
{
        struct snib__list *free = snib__list_take(&c->grants);
        struct snib_grant *g;

        if (free)
                return snib__container(free, struct snib_grant, pooled);
        g = snib__alloc(sizeof(*g));
        if (!g)
                return NULL;
        g->client = c;
        g->loss_fd = -1;
        CHAIN(c->grants_all, g);
        return g;
}

static bool text_set(struct snib_grant *g, const struct snib_lock *lock, const char *owner, size_t owner_length)
{
        size_t need = lock->name_length + owner_length + 2;

        if (need > g->room) {
                char *text = snib__grow(g->text, need);

                if (!text)
                        return false;
                g->text = text;
                g->room = need;
        }
        memcpy(g->text, lock->name, lock->name_length + 1);
        memcpy(g->text + lock->name_length + 1, owner, owner_length);
        g->text[need - 1] = 0;
        return true;
}

static void hold_fill(struct snib_grant *g, const struct snib_lock *lock, size_t owner_length)
{
        struct snib_client *c = g->client;
        struct snib__hold *h = &g->hold;

        memset(h, 0, sizeof(*h));
        h->name = (struct snib__name){g->text, lock->name_length};
        h->owner = (struct snib__name){g->text + lock->name_length + 1, owner_length};
        memcpy(h->id.text, c->uuid, sizeof(c->uuid) - 1);
        h->id.text[sizeof(c->uuid) - 1] = ':';
        (void)snib__decimal(h->id.text + sizeof(c->uuid), ++c->hold_number); /* zeros follow */
        h->who = c->who;
        h->kind = lock->kind == SNIB_LOCK_FENCED ? SNIB_KIND_FENCED : SNIB_KIND_LOCK;
        h->reentrant = lock->kind != SNIB_LOCK_NON_REENTRANT;
        h->keep = !lock->fixed;
        h->lease = lock->lease;
        h->max_hold = lock->max_hold;
        h->owner_data = g;
}

struct snib_grant *snib__grant_new(struct snib_client *c, const struct snib_lock *lock, const char *owner,
                                   size_t owner_length)
{
        struct snib_grant *g = grant_take(c);

        if (!g)
                return NULL;
        if (!text_set(g, lock, owner, owner_length)) {
                give_back(&c->grants, &g->pooled);
                return NULL;
        }
        hold_fill(g, lock, owner_length);
        g->token = 0;
        g->lost = NULL;
        g->freed = false;
        return g;
}

void snib__grant_free(struct snib_grant *g)
{
        g->freed = true;
        /* A paid-back grant wants no callback any more; but one that close ends is told of it first. */
        if (!g->client->closing) {
                g->lost = NULL;
                g->due &= !snib__list_linked(&g->event.link);
                snib__list_remove(&g->event.link);
        }
        if (g->due || g->in_callback)
                return; /* the end of the callback comes back here */
        snib__os_close(&g->loss_fd);
        give_back(&g->client->grants, &g->pooled);
}

struct snib__question *snib__question_new(struct snib_client *c)
{
        struct snib__list *free = snib__list_take(&c->questions);
        struct snib__question *q;

        if (free) {
                q = snib__container(free, struct snib__question, pooled);
                memset(&q->ask, 0, sizeof(q->ask));
                return q;
        }
        q = snib__alloc(sizeof(*q));
        if (q)
                CHAIN(c->questions_all, q);
        return q;
}

void snib__question_free(struct snib_client *c, struct snib__question *q)
{
        q->wait = NULL;
        give_back(&c->questions, &q->pooled);
}

struct snib__inventory *snib__inventory_new(struct snib_client *c)
{
        struct snib__list *free = snib__list_take(&c->listings);
        struct snib__inventory *l =
            free ? snib__container(free, struct snib__inventory, pooled) : snib__alloc(sizeof(*l));

        if (!l)
                return NULL;
        if (!free)
                CHAIN(c->listings_all, l);
        l->cookie = ++c->listing_number;
        l->first = NULL;
        l->last = &l->first;
        l->count = 0;
        l->result = 0;
        memset(&l->fault, 0, sizeof(l->fault));
        return l;
}

static void listed_free(struct snib__inventory *l)
{
        while (l->first) {
                struct snib__listed *entry = l->first;

                l->first = entry->next;
                free(entry);
        }
}

void snib__inventory_free(struct snib_client *c, struct snib__inventory *l)
{
        listed_free(l);
        l->cookie = 0;
        l->wait = NULL;
        give_back(&c->listings, &l->pooled);
}

struct snib__async *snib__async_new(struct snib_client *c)
{
        struct snib__list *free = snib__list_take(&c->asyncs);
        struct snib__async *a = free ? snib__container(free, struct snib__async, pooled) : snib__alloc(sizeof(*a));

        if (!a)
                return NULL;
        if (!free)
                CHAIN(c->asyncs_all, a);
        memset(&a->wait, 0, sizeof(a->wait));
        a->question = NULL;
        a->acquired = NULL;
        a->done = NULL;
        a->info = NULL;
        a->wait.deadline = SNIB__NEVER;
        a->wait.event = &a->event;
        return a;
}

void snib__async_free(struct snib_client *c, struct snib__async *a)
{
        give_back(&c->asyncs, &a->pooled);
}

void snib__pool_done(struct snib_client *c)
{
        for (struct snib_grant *g = atomic_load(&c->grants_all), *next; g; g = next) {
                next = g->next_all;
                snib__os_close(&g->loss_fd);
                free(g->text);
                free(g);
        }
        for (struct snib__question *q = atomic_load(&c->questions_all), *next; q; q = next) {
                next = q->next_all;
                free(q);
        }
        for (struct snib__inventory *l = atomic_load(&c->listings_all), *next; l; l = next) {
                next = l->next_all;
                listed_free(l);
                free(l);
        }
        for (struct snib__async *a = atomic_load(&c->asyncs_all), *next; a; a = next) {
                next = a->next_all;
                free(a);
        }
}
