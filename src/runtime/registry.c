/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All clients of the process, for the two events that come from outside: fork, and the end of a
 * thread that holds. Also the identity of threads.
 *
 * After fork the child has one thread and a snapshot of memory taken at any instant of the others.
 * So the child's handler takes no lock: the list is singly linked, and each change of it is one
 * atomic store; the chains of pooled records only grow. It marks every client inert, makes its
 * grants invalid, and closes its descriptors, so that neither the parent's connection nor its sign
 * of life is kept alive by the child. There are no prepare and parent handlers: nothing to deadlock
 * on.
 */

#include "runtime/client.h"
#include <stdio.h>
#include <string.h>

/* A thread as an owner. The number is never used again in this process. */
struct thread {
        size_t length;
        char key[24];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_result;
static pthread_key_t thread_end;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct snib_client *_Atomic clients;
static _Atomic uint64_t threads_count;
static _Thread_local struct thread this_thread;

static void close_descriptors(struct snib_client *c)
{
        for (struct snib__grants *b = atomic_load(&c->grants_all); b; b = b->next_all)
                for (struct snib_grant *g = b->of; g < b->of + SNIB__GRANTS_BLOCK; g++) {
                        atomic_store(&g->hold.valid_until, 0);
                        snib__os_close(&g->loss_fd);
                }
        c->engine->ops->forked(c->engine);
        snib__os_close(&c->wake_fd);
        snib__os_close(&c->timer.fd);
        snib__os_close(&c->epoll);
        snib__os_close(&c->keeper.wake_fd);
        snib__os_close(&c->keeper.timer.fd);
}

static void in_child(void)
{
        struct snib_client *c = atomic_load(&clients);

        for (; c; c = atomic_load(&c->next_client)) {
                atomic_store(&c->inert, true);
                close_descriptors(c);
        }
        atomic_store(&clients, NULL);
        /* Another thread of the parent may have held it; in the child nobody does. */
        registry_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static bool owned_by(const struct snib__hold *h, const struct thread *t)
{
        return h->owner.length == t->length && !memcmp(h->owner.bytes, t->key, t->length);
}

static void disown(struct snib_client *c, const struct thread *t)
{
        snib__ns now = snib__os_now();

        snib__client_lock(c);
        snib__core_tick(&c->core, now); /* so that disowning one hold at this instant ends no other */
        for (struct snib__list *it = c->core.holds.next, *next; it != &c->core.holds; it = next) {
                struct snib__hold *h = snib__container(it, struct snib__hold, all);

                next = it->next;
                if (owned_by(h, t))
                        snib__core_disown(&c->core, h, SNIB_LOSS_THREAD_EXIT, now);
        }
        snib__drive_step(c);
        snib__drive_settle(c);
        snib__client_unlock(c);
}

static void at_thread_end(void *arg)
{
        struct thread *ending = arg, t = *ending;

        ending->length = 0; /* a later destructor of the program that locks is a new owner */
        (void)pthread_mutex_lock(&registry_lock);
        for (struct snib_client *c = atomic_load(&clients); c; c = atomic_load(&c->next_client))
                disown(c, &t);
        (void)pthread_mutex_unlock(&registry_lock);
}

static void init(void)
{
        once_result = pthread_key_create(&thread_end, at_thread_end);
        if (!once_result)
                once_result = pthread_atfork(NULL, NULL, in_child);
}

int snib__registry_add(struct snib_client *c)
{
        (void)pthread_once(&once, init);
        if (once_result)
                return -once_result;
        (void)pthread_mutex_lock(&registry_lock);
        atomic_store(&c->next_client, atomic_load(&clients));
        atomic_store(&clients, c);
        (void)pthread_mutex_unlock(&registry_lock);
        return 0;
}

void snib__registry_remove(struct snib_client *c)
{
        struct snib_client *_Atomic *at = &clients;

        (void)pthread_mutex_lock(&registry_lock);
        while (atomic_load(at) && atomic_load(at) != c)
                at = &atomic_load(at)->next_client;
        if (atomic_load(at))
                atomic_store(at, atomic_load(&c->next_client));
        (void)pthread_mutex_unlock(&registry_lock);
}

const char *snib__registry_thread(size_t *ret_length)
{
        struct thread *t = &this_thread;

        if (!t->length) {
                uint64_t number = atomic_fetch_add(&threads_count, 1) + 1;

                /* The value makes the destructor run. */
                if (pthread_setspecific(thread_end, t))
                        return NULL;
                t->length = (size_t)snprintf(t->key, sizeof(t->key), "t:%llu", (unsigned long long)number);
        }
        *ret_length = t->length;
        return t->key;
}
