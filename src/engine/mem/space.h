/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_MEM_SPACE_H
#define SNIB_ENGINE_MEM_SPACE_H

/*
 * Where the mem: engine keeps its objects: namespaces of this process, each shared by all clients
 * that opened it. Every function but lock and forked is called between snib__mem_lock() and
 * snib__mem_unlock().
 */

#include "base/list.h"
#include "base/time.h"
#include "base/tree.h"
#include "model/record.h"

struct snib__mem_record {
        struct snib__tree_node by_name;
        struct snib__tree_node by_due; /* in `timers` while something in it ends by time */
        struct snib__list idle;        /* in `idle` while there is nothing in it */
        struct snib__record record;    /* its arrays are kept for the next holder */
        void *value;                   /* what record.data points at: of a register, ours */
        snib__ns due;                  /* when the first thing in it ends */
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

/* One user less; the last one takes the namespace and all that is in it along. NULL is answered. */
struct snib__mem_space *snib__mem_space_unref(struct snib__mem_space *s);

/* The record of an object, made if there is none; NULL: out of memory. */
struct snib__mem_record *snib__mem_record_get(struct snib__mem_space *s, struct snib__name name);

/* The model applied to a request; of a value that is written a copy is kept. False: out of memory,
 * and nothing was changed. */
bool snib__mem_record_apply(struct snib__mem_record *m, const struct snib__op *op, struct snib__clock clock,
                            struct snib__reply *ret_reply, struct snib__change *ret_change);

/* To be called after every call of the model on the record. May free others, that are
 * idle. */
void snib__mem_record_settle(struct snib__mem_space *s, struct snib__mem_record *r);

/* The record in which something ends first, NULL if there is none. */
struct snib__mem_record *snib__mem_space_first_due(const struct snib__mem_space *s);

/* The records by name, from the first; NULL past the last. */
struct snib__mem_record *snib__mem_space_next(const struct snib__mem_space *s, const struct snib__mem_record *r);

/* The clocks of the model. */
struct snib__clock snib__mem_space_clock(struct snib__mem_space *s, snib__ns now);

/* In a forked child, with no lock held: forgets all namespaces, so that clients opened from now on
 * start with none of the parent's locks, and with a mutex that no thread of the parent has.
 * Async-signal-safe. `s` is the namespace of a client that the child inherited. */
void snib__mem_space_forked(const struct snib__mem_space *s);

#endif
