/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_MEM_SPACE_H
#define SNIB_ENGINE_MEM_SPACE_H

/*
 * Where the mem: engine keeps its locks: namespaces of this process, each shared by all clients that opened it. Every
 * function but lock and forked is called between snib__mem_lock() and snib__mem_unlock().
 */

#include "base/list.h"
#include "base/time.h"
#include "base/tree.h"
#include "model/lock.h"

struct snib__mem_record {
        struct snib__tree_node by_name;
        struct snib__tree_node by_due; /* in `timers` while somebody holds it */
        struct snib__list idle;        /* in `idle` while nobody does */
        struct snib__lock_record lock;
        snib__ns due; /* end of the holder's lease */
        struct snib__name name;
        char bytes[]; /* of the name */
};

struct snib__mem_space {
        struct snib__list link;
        struct snib__list clients; /* of the engine; not looked at here */
        struct snib__tree records;
        struct snib__tree timers;
        struct snib__list idle; /* longest first */
        int idle_count;
        int users;
        int64_t latest_ms; /* the latest time any client came with */
        unsigned epoch;
        char name[];
};

void snib__mem_lock(void);
void snib__mem_unlock(void);

/* The namespace of this name, made if there is none, with one user more; NULL: out of memory. */
struct snib__mem_space *snib__mem_space_ref(const char *name);

/* One user less; the last one takes the namespace and all its locks along. NULL is answered. */
struct snib__mem_space *snib__mem_space_unref(struct snib__mem_space *s);

/* The record of a lock, made if there is none; NULL: out of memory. */
struct snib__mem_record *snib__mem_record_get(struct snib__mem_space *s, struct snib__name name);

/* Makes room for one waiter more, as far as the model allows that many. False: out of memory. */
bool snib__mem_record_room(struct snib__mem_record *r);

/* To be called after every call of the model on the record. May free others, that are free. */
void snib__mem_record_settle(struct snib__mem_space *s, struct snib__mem_record *r);

/* The record whose holder's lease ends first, NULL if there is none. */
struct snib__mem_record *snib__mem_space_first_due(const struct snib__mem_space *s);

/* The records by name, from the first; NULL past the last. */
struct snib__mem_record *snib__mem_space_next(const struct snib__mem_space *s, const struct snib__mem_record *r);

/* The clocks of the model. */
struct snib__clock snib__mem_space_clock(struct snib__mem_space *s, snib__ns now);

/* In a forked child, with no lock held: forgets all namespaces, so that clients opened from now on start with none of
 * the parent's locks, and with a mutex that no thread of the parent has. Async-signal-safe. `s` is the namespace of a
 * client that the child inherited. */
void snib__mem_space_forked(const struct snib__mem_space *s);

#endif
