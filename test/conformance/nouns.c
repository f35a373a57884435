/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything that can be waited for, in one shape, as nouns.h says. Not a test: what is asserted
 * here is that the surroundings of a test are made. Used by the conformance suite and by the
 * runtime's.
 */

#include "nouns.h"
#include "lib/wait.h"
#include <stdlib.h>

static void must(int got, int wanted, const char *what)
{
        if (got != wanted)
                bail("%s answered %d (%s)", what, got, snib_error_name(got));
}

static void on_acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct obj *o = arg;

        o->result = result;
        o->grant = grant;
        atomic_fetch_add(&o->answers, 1);
}

static void on_done(void *arg, int result, const struct snib_error *err)
{
        struct obj *o = arg;

        o->result = result;
        atomic_fetch_add(&o->answers, 1);
}

static void on_value(void *arg, int result, int64_t value, const struct snib_error *err)
{
        on_done(arg, result, err);
}

/* ---- locks and the sides of read-write locks */

static void lock_make(struct obj *o, snib_client *c, const char *name)
{
        struct snib_lock_options options = {.size = sizeof(struct snib_lock_options), .kind = o->noun->lock_kind};

        must(snib_lock_new(c, name, &options, &o->lock, NULL), 0, "snib_lock_new");
}

static int lock_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_lock_acquire(o->lock, wait_ms, &o->grant, err);
}

static int lock_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_lock_acquire_async(o->lock, wait_ms, on_acquired, o, err);
}

static int lock_cancel(struct obj *o)
{
        return snib_lock_cancel(o->lock);
}

static void lock_shut(struct obj *o)
{
        must(snib_lock_acquire(o->lock, 20000, &o->blocker, NULL), 1, "snib_lock_acquire");
}

static void blocker_release(struct obj *o)
{
        must(snib_grant_release(o->blocker, NULL), 1, "snib_grant_release");
}

static void read_make(struct obj *o, snib_client *c, const char *name)
{
        must(snib_rwlock_new(c, name, NULL, &o->rw, NULL), 0, "snib_rwlock_new");
        o->lock = snib_rwlock_read(o->rw);
}

static void write_make(struct obj *o, snib_client *c, const char *name)
{
        read_make(o, c, name);
        o->lock = snib_rwlock_write(o->rw);
}

static void read_shut(struct obj *o)
{
        must(snib_lock_acquire(snib_rwlock_write(o->rw), 20000, &o->blocker, NULL), 1, "the write side");
}

static void write_shut(struct obj *o)
{
        must(snib_lock_acquire(snib_rwlock_read(o->rw), 20000, &o->blocker, NULL), 1, "the read side");
}

/* ---- numbers */

static void sem_make(struct obj *o, snib_client *c, const char *name)
{
        must(snib_semaphore_new(c, name, 0, &o->sem, NULL), 0, "snib_semaphore_new");
}

static int sem_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_semaphore_acquire(o->sem, 1, wait_ms, err);
}

static int sem_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_semaphore_acquire_async(o->sem, 1, wait_ms, on_done, o, err);
}

static int sem_cancel(struct obj *o)
{
        return snib_semaphore_cancel(o->sem);
}

static void sem_shut(struct obj *o)
{
        int64_t drained;

        (void)snib_semaphore_set(o->sem, 0, 0, NULL);
        must(snib_semaphore_drain(o->sem, &drained, NULL), 1, "snib_semaphore_drain");
}

static void sem_open(struct obj *o)
{
        must(snib_semaphore_release(o->sem, 1, NULL), 1, "snib_semaphore_release");
}

static void sem_clean(struct obj *o)
{
        (void)snib_semaphore_delete(o->sem, NULL);
}

static void permits_make(struct obj *o, snib_client *c, const char *name)
{
        must(snib_permits_new(c, name, NULL, &o->permits, NULL), 0, "snib_permits_new");
}

static int permits_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_permits_acquire(o->permits, 1, wait_ms, &o->grant, err);
}

static int permits_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_permits_acquire_async(o->permits, 1, wait_ms, on_acquired, o, err);
}

static int permits_cancel(struct obj *o)
{
        return snib_permits_cancel(o->permits);
}

static void permits_shut(struct obj *o)
{
        must(snib_permits_resize(o->permits, 1, NULL), 1, "snib_permits_resize");
        must(snib_permits_acquire(o->permits, 1, 20000, &o->blocker, NULL), 1, "snib_permits_acquire");
}

static void permits_clean(struct obj *o)
{
        (void)snib_permits_delete(o->permits, NULL);
}

static void latch_make(struct obj *o, snib_client *c, const char *name)
{
        must(snib_latch_new(c, name, 0, &o->latch, NULL), 0, "snib_latch_new");
}

static int latch_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_latch_await(o->latch, wait_ms, err);
}

static int latch_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_latch_await_async(o->latch, wait_ms, on_done, o, err);
}

static int latch_cancel(struct obj *o)
{
        return snib_latch_cancel(o->latch);
}

static void latch_shut(struct obj *o)
{
        must(snib_latch_set(o->latch, 1, NULL), 1, "snib_latch_set");
}

static void latch_open(struct obj *o)
{
        must(snib_latch_count_down(o->latch, 1, NULL, NULL), 1, "snib_latch_count_down");
}

static void latch_clean(struct obj *o)
{
        (void)snib_latch_delete(o->latch, NULL);
}

/* ---- election, register */

static void election_make(struct obj *o, snib_client *c, const char *name)
{
        must(snib_election_new(c, name, NULL, &o->election, NULL), 0, "snib_election_new");
}

static int election_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_election_campaign(o->election, wait_ms, &o->grant, err);
}

static int election_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_election_campaign_async(o->election, wait_ms, on_acquired, o, err);
}

static int election_cancel(struct obj *o)
{
        return snib_election_cancel(o->election);
}

static void election_shut(struct obj *o)
{
        must(snib_election_campaign(o->election, 20000, &o->blocker, NULL), 1, "snib_election_campaign");
}

static void reg_make(struct obj *o, snib_client *c, const char *name)
{
        must(snib_register_new(c, name, 0, &o->reg, NULL), 0, "snib_register_new");
}

static int reg_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        struct snib_value value = SNIB_VALUE_INIT;
        int r = snib_register_wait(o->reg, o->seen, wait_ms, &value, err);

        if (r == 1)
                snib_value_free(&value);
        return r;
}

static int reg_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return snib_register_wait_async(o->reg, o->seen, wait_ms, on_value, o, err);
}

static int reg_cancel(struct obj *o)
{
        return snib_register_cancel(o->reg);
}

static void reg_write(struct obj *o)
{
        must(snib_register_write(o->reg, "x", 1, SNIB_ANY_VERSION, NULL, NULL), 1, "snib_register_write");
}

static void reg_clean(struct obj *o)
{
        (void)snib_register_delete(o->reg, SNIB_ANY_VERSION, NULL);
}

#define LOCK(text, kind, lock_kind, cap)                                                                   \
        {                                                                                                  \
                text, cap, kind, lock_kind, lock_make, lock_take, lock_take_async, lock_cancel, lock_shut, \
                    blocker_release, NULL                                                                  \
        }

const struct noun nouns[] = {
    LOCK("lock", SNIB_KIND_LOCK, SNIB_LOCK_REENTRANT, SNIB_CAP_LOCK),
    LOCK("fenced lock", SNIB_KIND_FENCED, SNIB_LOCK_FENCED, SNIB_CAP_FENCED),
    LOCK("fair lock", SNIB_KIND_FAIR, SNIB_LOCK_FAIR, SNIB_CAP_FAIR),
    LOCK("spin lock", SNIB_KIND_SPIN, SNIB_LOCK_SPIN, SNIB_CAP_LOCK),
    {"read side", SNIB_CAP_RWLOCK, SNIB_KIND_READ, 0, read_make, lock_take, lock_take_async, lock_cancel, read_shut,
     blocker_release, NULL},
    {"write side", SNIB_CAP_RWLOCK, SNIB_KIND_WRITE, 0, write_make, lock_take, lock_take_async, lock_cancel, write_shut,
     blocker_release, NULL},
    {"semaphore", SNIB_CAP_SEMAPHORE, SNIB_KIND_SEMAPHORE, 0, sem_make, sem_take, sem_take_async, sem_cancel, sem_shut,
     sem_open, sem_clean},
    {"permits", SNIB_CAP_PERMITS, SNIB_KIND_PERMITS, 0, permits_make, permits_take, permits_take_async, permits_cancel,
     permits_shut, blocker_release, permits_clean},
    {"latch", SNIB_CAP_LATCH, SNIB_KIND_LATCH, 0, latch_make, latch_take, latch_take_async, latch_cancel, latch_shut,
     latch_open, latch_clean},
    {"election", SNIB_CAP_ELECTION, SNIB_KIND_ELECTION, 0, election_make, election_take, election_take_async,
     election_cancel, election_shut, blocker_release, NULL},
    {"register", SNIB_CAP_REGISTER, SNIB_KIND_REGISTER, 0, reg_make, reg_take, reg_take_async, reg_cancel, reg_write,
     reg_write, reg_clean},
};

const int nouns_count = sizeof(nouns) / sizeof(nouns[0]);

struct obj *obj_new(const struct noun *noun, snib_client *c, const char *name)
{
        struct obj *o = calloc(1, sizeof(*o));

        if (!o)
                bail("no memory");
        o->noun = noun;
        noun->make(o, c, name);
        return o;
}

void obj_free(struct obj *o)
{
        if (!o)
                return;
        if (o->rw)
                snib_rwlock_free(o->rw);
        else
                snib_lock_free(o->lock);
        snib_semaphore_free(o->sem);
        snib_permits_free(o->permits);
        snib_latch_free(o->latch);
        snib_election_free(o->election);
        snib_register_free(o->reg);
        free(o);
}

void obj_see(struct obj *o)
{
        struct snib_value value = SNIB_VALUE_INIT;

        if (!o->reg)
                return;
        must(snib_register_read(o->reg, &value, NULL), 1, "snib_register_read");
        o->seen = value.version;
        snib_value_free(&value);
}

void obj_shut(struct obj *o)
{
        o->noun->shut(o);
}

void obj_open(struct obj *o)
{
        o->noun->open(o);
}

int obj_take(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        return o->noun->take(o, wait_ms, err);
}

int obj_take_async(struct obj *o, int64_t wait_ms, struct snib_error *err)
{
        atomic_store(&o->answers, 0);
        return o->noun->take_async(o, wait_ms, err);
}

int obj_cancel(struct obj *o)
{
        return o->noun->cancel(o);
}

void obj_give(struct obj *o)
{
        if (o->grant)
                must(snib_grant_release(o->grant, NULL), 1, "snib_grant_release");
        else if (o->sem)
                sem_open(o);
        o->grant = NULL;
}

void obj_clean(struct obj *o)
{
        if (o->noun->clean)
                o->noun->clean(o);
}
