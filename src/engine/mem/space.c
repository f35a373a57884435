/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Namespaces and records of the mem: engine. Not the engine: nothing here knows of requests, notes
 * or descriptors.
 *
 * A record is in `timers` while something in it ends by time, and in `idle` while there is nothing
 * in it. Idle records are kept, because the next acquire of the same name is likely, but not more
 * than IDLE_MAX of them. What a freed record knew, its last token, goes into one floor for the
 * whole process, under which no new record starts; so tokens rise for every name as long as the
 * process lives, whatever the wall clock does.
 *
 * One mutex guards everything here and the clients' queues of notes. It is never held during a
 * system call but the write that wakes another client.
 */

#include "engine/mem/space.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "engine/room.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_MAX 256
/* An idle record keeps its seats up to that many: a lock needs one, and big ones are seldom needed
 * again. */
#define IDLE_SEATS 8

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct snib__list spaces = {&spaces, &spaces};
static int64_t token_floor;
static unsigned epoch;

void snib__mem_lock(void)
{
        int r = pthread_mutex_lock(&guard);

        snib__assert(r == 0);
}

void snib__mem_unlock(void)
{
        int r = pthread_mutex_unlock(&guard);

        snib__assert(r == 0);
}

static int compare_names(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        const struct snib__name *x = &snib__container(a, struct snib__mem_record, by_name)->name;
        const struct snib__name *y = &snib__container(b, struct snib__mem_record, by_name)->name;
        int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);

        return order ? order : (x->length > y->length) - (x->length < y->length);
}

static int compare_dues(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        snib__ns x = snib__container(a, struct snib__mem_record, by_due)->due;
        snib__ns y = snib__container(b, struct snib__mem_record, by_due)->due;

        return (x > y) - (x < y);
}

struct snib__mem_space *snib__mem_space_ref(const char *name)
{
        snib__list_each (it, &spaces) {
                struct snib__mem_space *s = snib__container(it, struct snib__mem_space, link);

                if (strcmp(s->name, name) == 0) {
                        s->users++;
                        return s;
                }
        }

        size_t length = strlen(name);
        struct snib__mem_space *s = snib__alloc(sizeof(*s) + length + 1);

        if (!s)
                return NULL;
        memcpy(s->name, name, length + 1);
        snib__tree_init(&s->records, compare_names);
        snib__tree_init(&s->timers, compare_dues);
        snib__list_init(&s->idle);
        snib__list_init(&s->clients);
        snib__list_append(&spaces, &s->link);
        s->epoch = epoch;
        s->users = 1;
        return s;
}

static void record_free(struct snib__mem_space *s, struct snib__mem_record *r)
{
        if (r->record.token > token_floor)
                token_floor = r->record.token;
        if (snib__list_linked(&r->idle))
                s->idle_count--;
        snib__list_remove(&r->idle);
        snib__tree_remove(&s->timers, &r->by_due);
        snib__tree_remove(&s->records, &r->by_name);
        snib__room_free(&r->record);
        free(r->value);
        free(r);
}

struct snib__mem_space *snib__mem_space_unref(struct snib__mem_space *s)
{
        snib__assert(s->users > 0);
        if (--s->users > 0)
                return NULL;
        snib__assert(snib__list_empty(&s->clients));
        for (struct snib__mem_record *r; (r = snib__mem_space_next(s, NULL));)
                record_free(s, r);
        snib__list_remove(&s->link);
        free(s);
        return NULL;
}

struct snib__mem_record *snib__mem_record_get(struct snib__mem_space *s, struct snib__name name)
{
        struct snib__mem_record key = {.name = name};
        struct snib__tree_node *n = snib__tree_seek(&s->records, &key.by_name);

        if (n && compare_names(n, &key.by_name) == 0)
                return snib__container(n, struct snib__mem_record, by_name);

        struct snib__mem_record *r = snib__alloc(sizeof(*r) + name.length);

        if (!r)
                return NULL;
        memcpy(r->bytes, name.bytes, name.length);
        r->name = (struct snib__name){r->bytes, name.length};
        r->record.token = token_floor;
        snib__tree_add(&s->records, &r->by_name);
        return r;
}

bool snib__mem_record_apply(struct snib__mem_record *m, const struct snib__op *op, struct snib__clock clock,
                            struct snib__reply *ret_reply, struct snib__change *ret_change)
{
        struct snib__op own = *op;
        void *copy = NULL;

        if (!snib__room_make(&m->record, snib__record_room(&m->record, op)))
                return false;
        if (op->verb == SNIB__WRITE && op->data_length) {
                copy = snib__copy(op->data, op->data_length);
                if (!copy)
                        return false;
        }
        own.data = copy;
        snib__record_apply(&m->record, &own, clock, ret_reply, ret_change);
        if (m->record.data != m->value) {
                free(m->value);
                m->value = m->record.data == copy ? copy : NULL;
        }
        if (m->value != copy)
                free(copy);
        return true;
}

static void idle_add(struct snib__mem_space *s, struct snib__mem_record *r)
{
        if (r->record.held_room > IDLE_SEATS) {
                free(r->record.holder);
                r->record.holder = NULL;
                r->record.held_room = 0;
        }
        if (!snib__list_linked(&r->idle)) {
                snib__list_append(&s->idle, &r->idle);
                s->idle_count++;
        }
        if (s->idle_count > IDLE_MAX)
                record_free(s, snib__container(s->idle.next, struct snib__mem_record, idle));
}

void snib__mem_record_settle(struct snib__mem_space *s, struct snib__mem_record *r)
{
        int64_t due_ms = snib__record_due(&r->record);

        snib__tree_remove(&s->timers, &r->by_due);
        if (snib__record_idle(&r->record)) {
                idle_add(s, r);
                return;
        }
        if (snib__list_linked(&r->idle)) {
                snib__list_remove(&r->idle);
                s->idle_count--;
        }
        r->due = due_ms < SNIB__NEVER / SNIB__MS ? due_ms * SNIB__MS : SNIB__NEVER;
        if (r->due < SNIB__NEVER)
                snib__tree_add(&s->timers, &r->by_due);
}

struct snib__mem_record *snib__mem_space_first_due(const struct snib__mem_space *s)
{
        struct snib__tree_node *n = snib__tree_first(&s->timers);

        return n ? snib__container(n, struct snib__mem_record, by_due) : NULL;
}

struct snib__mem_record *snib__mem_space_next(const struct snib__mem_space *s, const struct snib__mem_record *r)
{
        struct snib__tree_node *n = r ? snib__tree_next(&r->by_name) : snib__tree_first(&s->records);

        return n ? snib__container(n, struct snib__mem_record, by_name) : NULL;
}

/* Clients read the clock before they come here, so they may come in another order; for the model
 * time only goes on. It counts whole milliseconds, so a lease may end up to one early: less than
 * the margin every client keeps. */
struct snib__clock snib__mem_space_clock(struct snib__mem_space *s, snib__ns now)
{
        struct timespec wall;
        int r = clock_gettime(CLOCK_REALTIME, &wall);

        snib__assert(r == 0);
        if (now / SNIB__MS > s->latest_ms)
                s->latest_ms = now / SNIB__MS;
        return (struct snib__clock){s->latest_ms, (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000};
}

void snib__mem_space_forked(const struct snib__mem_space *s)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        /* Another inherited client was here before, and new ones may have been opened since. */
        if (s->epoch != epoch)
                return;
        epoch++;
        guard = fresh;
        snib__list_init(&spaces);
}
