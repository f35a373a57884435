/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client's records that outlive the call that made them. Each kind has a list of free ones and
 * a chain of all; see client.h for why nothing goes back to the heap before the client closes: a
 * late answer of the engine, or a stale pointer of the program, finds a record and not a hole. Last
 * freed, first used again. Under the client's lock.
 */

#include "base/alloc.h"
#include "base/assert.h"
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

/* A block of free grants, of which the first is used first: those that are taken together lie
 * together. */
static void grants_make(struct snib_client *c)
{
        struct snib__grants *b = snib__alloc(sizeof(*b));

        if (!b)
                return;
        for (int i = SNIB__GRANTS_BLOCK - 1; i >= 0; i--) {
                b->of[i].client = c;
                b->of[i].loss_fd = -1;
                give_back(&c->grants, &b->of[i].pooled);
        }
        CHAIN(c->grants_all, b);
}

static struct snib_grant *grant_take(struct snib_client *c)
{
        struct snib__list *free;

        if (snib__list_empty(&c->grants))
                grants_make(c);
        free = snib__list_take(&c->grants);
        return free ? snib__container(free, struct snib_grant, pooled) : NULL;
}

/* Room for `need` bytes, whatever was there before. A forked child frees what the pointer says, so
 * it never points at what is freed. */
static bool room_make(void *_Atomic *at, size_t *room, size_t need)
{
        void *old = atomic_load_explicit(at, memory_order_relaxed), *made;

        if (need <= *room)
                return true;
        made = snib__alloc(need);
        if (!made)
                return false;
        atomic_store(at, made);
        *room = need;
        free(old);
        return true;
}

static bool text_set(struct snib_grant *g, const struct snib__object *object, struct snib__name owner)
{
        size_t need = object->name_length + owner.length + 2, room = g->room;
        char *text;

        _Static_assert(SNIB__GRANT_TEXT_MAX <= UINT16_MAX && SNIB__OWNER_KEY_MAX <= UINT8_MAX, "they fit the record");
        snib__assert(need <= SNIB__GRANT_TEXT_MAX);
        if (!room_make(&g->text, &room, need))
                return false;
        g->room = (uint16_t)room;
        text = g->text;
        memcpy(text, object->name, object->name_length + 1);
        memcpy(text + object->name_length + 1, owner.bytes, owner.length);
        text[need - 1] = 0;
        g->asker_length = (uint8_t)owner.length;
        return true;
}

struct snib__name snib__grant_asker(const struct snib_grant *g)
{
        return (struct snib__name){g->hold.name.bytes + g->hold.name.length + 1, g->asker_length};
}

void snib__id_fresh(struct snib_client *c, struct snib__id *ret)
{
        memset(ret, 0, sizeof(*ret));
        memcpy(ret->text, c->uuid, sizeof(c->uuid) - 1);
        ret->text[sizeof(c->uuid) - 1] = ':';
        (void)snib__decimal(ret->text + sizeof(c->uuid), ++c->hold_number); /* zeros follow */
}

static void hold_fill(struct snib_grant *g, const struct snib__object *object, bool anonymous)
{
        struct snib_client *c = g->client;
        struct snib__hold *h = &g->hold;

        memset(h, 0, sizeof(*h));
        h->name = (struct snib__name){g->text, object->name_length};
        if (!anonymous)
                h->owner = snib__grant_asker(g);
        snib__id_fresh(c, &h->known.id);
        h->kind = object->kind;
        h->reentrant = object->reentrant;
        h->keep = !object->fixed;
        h->lease = object->lease;
        h->max_hold = object->max_hold;
}

struct snib_grant *snib__grant_new(struct snib_client *c, const struct snib__object *object, struct snib__name owner,
                                   bool anonymous)
{
        struct snib_grant *g = grant_take(c);

        if (!g)
                return NULL;
        if (!text_set(g, object, owner)) {
                give_back(&c->grants, &g->pooled);
                return NULL;
        }
        hold_fill(g, object, anonymous);
        snib__list_init(&g->followers);
        if (g->loss)
                g->loss->told = NULL;
        g->freed = false;
        return g;
}

void snib__grant_free(struct snib_grant *g)
{
        g->freed = true;
        /* A paid-back grant wants no callback any more; but one that close ends is told of it
         * first. */
        if (g->loss && !g->client->closing) {
                g->loss->told = NULL;
                g->due &= !snib__list_linked(&g->loss->event.link);
                snib__list_remove(&g->loss->event.link);
        }
        if (g->due || g->in_callback)
                return; /* the end of the callback comes back here */
        snib__os_close(&g->loss_fd);
        give_back(&g->client->grants, &g->pooled);
}

struct snib__loss *snib__grant_loss_told(struct snib_grant *g)
{
        struct snib__loss *l = atomic_load_explicit(&g->loss, memory_order_relaxed);

        if (l)
                return l;
        l = snib__alloc(sizeof(*l));
        if (l) {
                l->grant = g;
                atomic_store(&g->loss, l); /* one store: see registry.c */
        }
        return l;
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

void *snib__question_keep(struct snib__question *q, const void *data, size_t length)
{
        if (!room_make(&q->data, &q->room, length > 0 ? length : 1))
                return NULL;
        if (length > 0)
                memcpy(q->data, data, length);
        return q->data;
}

void snib__value_free(struct snib_value *value)
{
        free(value->bytes);
        *value = (struct snib_value)SNIB_VALUE_INIT;
}

void snib__question_free(struct snib_client *c, struct snib__question *q)
{
        q->wait = NULL;
        snib__value_free(&q->found);
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
        for (struct snib__grants *b = atomic_load(&c->grants_all), *next; b; b = next) {
                next = b->next_all;
                for (struct snib_grant *g = b->of; g < b->of + SNIB__GRANTS_BLOCK; g++) {
                        snib__os_close(&g->loss_fd);
                        free(g->text);
                        free(g->loss);
                }
                free(b);
        }
        for (struct snib__question *q = atomic_load(&c->questions_all), *next; q; q = next) {
                next = q->next_all;
                free(q->data);
                snib__value_free(&q->found);
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
