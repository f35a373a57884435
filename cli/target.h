/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_TARGET_H
#define SNIB_CLI_TARGET_H

/*
 * What a command line means by its name and options: a lock of some kind, a side of a read-write
 * lock, permits, an election, several locks at once, or one lock on several servers. And what one
 * holds of it. Everything that waits or runs under it goes through here and need not know which it
 * is.
 */

#include "opt.h"
#include <snib/snib.h>

struct session;

/* A hold: nothing, a grant, or a multigrant. */
struct held {
        snib_grant *grant;
        snib_multigrant *multi;
};

typedef void target_acquired(void *arg, int result, struct held held, const struct snib_error *err);

/* One name with its side. */
struct target_key {
        char name[SNIB_NAME_MAX + 1];
        char side; /* 's', 'x', or 0: no read-write lock */
};

struct target {
        struct session *session;
        const char *name;                     /* NULL: --key options */
        snib_lock *lock[SNIB__TEXTS_MAX];     /* what is acquired, or what `multi` is made of */
        snib_rwlock *rwlock[SNIB__TEXTS_MAX]; /* whose side it is, or NULL: the lock is ours */
        int count;
        snib_permits *permits;
        snib_election *election;
        snib_multilock *multi;
        int looked; /* the member that was asked for its holder last */
        target_acquired *acquired;
        void *arg;
};

/* Checks what of names and options can be wrong without an engine: 0, or an exit code after a
 * message. `name` may be NULL when there are --key options. */
int snib__target_check(const struct options *o, const char *name);

/* Makes the handles on the session's clients: 0, or an exit code after a message. */
int snib__target_open(struct target *t, struct session *s, const char *name);

/* The name and side of lock number `i` of the target, or of the only thing it is. */
void snib__target_key(const struct target *t, int i, struct target_key *ret);

/* The same for a candidate of an election. */
int snib__target_open_election(struct target *t, struct session *s, const char *name);

void snib__target_close(struct target *t);

/* As snib_lock_acquire_async(); one at a time. */
int snib__target_acquire_async(struct target *t, int64_t wait_ms, target_acquired *acquired, void *arg,
                               struct snib_error *err);
void snib__target_cancel(struct target *t);

/* Who is in the way: false when this kind of thing cannot be asked without waiting. */
bool snib__target_look_async(struct target *t, snib_info_callback *done, void *arg);

/* The names as one text: "NAME", or "A, B, C". */
void snib__target_text(const struct options *o, const char *name, char *ret, size_t size);

bool snib__held_any(const struct held *h);
bool snib__held_valid(const struct held *h);
int64_t snib__held_left_ms(const struct held *h);
int64_t snib__held_token(const struct held *h);
const char *snib__held_owner(const struct held *h);
int snib__held_loss(const struct held *h);
/* Of a grant that is no multigrant: two-step holds are of one name on one engine. */
int snib__held_renew(struct held *h, struct snib_error *err);
/* Forgets it, and leaves it to the engine for so long, as snib_grant_leave(). Of no multigrant. */
int snib__held_leave(struct held *h, int64_t lease_ms, struct snib_error *err);
/* What keeps it from being renewed, or led to its loss, as snib_grant_trouble(); of several that
 * are held the first that says something. */
int snib__held_trouble(const struct held *h, struct snib_error *err);
/* Releases what is lost, and forgets it, without waiting for anybody: SNIB_ELOST. */
int snib__held_drop(struct held *h);
/* Releases and forgets; 0 if there is nothing. */
int snib__held_release(struct held *h, struct snib_error *err);

#endif
