/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_CONFORMANCE_NOUNS_H
#define SNIB_TEST_CONFORMANCE_NOUNS_H

/*
 * Everything that can be waited for, in one shape, so that what holds for all of them is tested
 * once:
 *
 *     struct obj *mine = obj_new(noun, client, name), *other = obj_new(noun, another_client, name);
 *     obj_shut(other);                       whoever takes it now has to wait
 *     obj_see(mine);
 *     obj_take(mine, 0, &err) == 0
 *     obj_open(other);
 *     obj_take(mine, 1000, &err) == 1
 *     obj_give(mine);                        what was taken, if it is something
 *     obj_clean(other);                      nothing is left of the name
 *
 * Thread class: one thread at a time per object, but for obj_cancel().
 */

#include <snib/snib.h>
#include <stdatomic.h>

struct obj;

struct noun {
        const char *text;
        unsigned cap;  /* the bit of enum snib_cap that an engine has it by */
        int kind;      /* enum snib_kind: what is stored */
        int lock_kind; /* enum snib_lock_kind, of a lock */
        void (*make)(struct obj *o, snib_client *c, const char *name);
        int (*take)(struct obj *o, int64_t wait_ms, struct snib_error *err);
        int (*take_async)(struct obj *o, int64_t wait_ms, struct snib_error *err);
        int (*cancel)(struct obj *o);
        void (*shut)(struct obj *o);
        void (*open)(struct obj *o);
        void (*clean)(struct obj *o); /* NULL: nothing is left */
};

struct obj {
        const struct noun *noun;
        snib_lock *lock; /* locks and sides; a side belongs to `rw` */
        snib_rwlock *rw;
        snib_semaphore *sem;
        snib_permits *permits;
        snib_latch *latch;
        snib_election *election;
        snib_register *reg;
        snib_grant *grant;   /* what was taken */
        snib_grant *blocker; /* what shuts it */
        int64_t seen;        /* register: the version that is known */
        /* of the last take_async */
        atomic_int answers;
        int result;
};

extern const struct noun nouns[];
extern const int nouns_count;

struct obj *obj_new(const struct noun *noun, snib_client *c, const char *name);
void obj_free(struct obj *o);
void obj_see(struct obj *o);
void obj_shut(struct obj *o);
void obj_open(struct obj *o);
int obj_take(struct obj *o, int64_t wait_ms, struct snib_error *err);
/* o->answers counts the answers, o->result is the last. */
int obj_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err);
int obj_cancel(struct obj *o);
void obj_give(struct obj *o);
void obj_clean(struct obj *o);

#endif
