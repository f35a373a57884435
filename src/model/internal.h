/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MODEL_INTERNAL_H
#define SNIB_MODEL_INTERNAL_H

/*
 * Shared by the files of the model: one call while it is executed, and what can be done to seats,
 * queue and numbers. Everything keeps the account of what changed by itself.
 */

#include "model/record.h"

struct snib__step {
        struct snib__record *r;
        const struct snib__op *op;
        struct snib__clock now;
        struct snib__change *change;
};

/* Why a seat is left. */
enum snib__leaving {
        SNIB__LEFT = 1, /* its owner asked for it */
        SNIB__EVICTED,  /* its owner did not, and is told */
        SNIB__FORGOTTEN /* SEMAPHORE: only the memory of who took ends; what was taken stays taken */
};

/* a + b without overflow; `b` is a duration and not negative. */
int64_t snib__later(int64_t a, int64_t b);

/* seats.c: who sits. */

/* The first seat of an id, NULL. */
const struct snib__holder *snib__seat_find(const struct snib__record *r, const struct snib__id *id);
const struct snib__holder *snib__seat_writer(const struct snib__record *r);
/* May such a one sit down now, if nobody is before it? `under` may be NULL. */
bool snib__seat_may(const struct snib__record *r, int kind, int64_t n, const struct snib__id *under);
/* A new hold, with a new token, which is answered. */
int64_t snib__seat_take(struct snib__step *s, const struct snib__waiter *w, bool claimed);
/* Confirms the seats that are `chosen`: their lease, as op wants it, starts again. How many these
 * are. */
size_t snib__seat_extend(struct snib__step *s, bool (*chosen)(const struct snib__step *, const struct snib__holder *));
/* The seats of op->id are nobody's from now on. */
void snib__seat_give_up(struct snib__step *s);
/* Frees the seats that are `chosen`; how many these were. */
size_t snib__seat_leave(struct snib__step *s, bool (*chosen)(const struct snib__step *, const struct snib__holder *),
                        enum snib__leaving how);
/* Frees those whose time is over. */
void snib__seat_sweep(struct snib__step *s);
/* Frees those of op->id, whose process is dead. */
void snib__seat_bury(struct snib__step *s);

/* Choosers. */
bool snib__seat_any(const struct snib__step *s, const struct snib__holder *h);
bool snib__seat_own(const struct snib__step *s, const struct snib__holder *h);   /* of op->id */
bool snib__seat_named(const struct snib__step *s, const struct snib__holder *h); /* one of op->permits */
bool snib__seat_left(const struct snib__step *s, const struct snib__holder *h);  /* of op->id, or given up by it */

/* queue.c: who waits. */

/* The index in the queue, r->queued if it is not there. */
size_t snib__queue_find(const struct snib__record *r, const struct snib__id *id);
/* How many stand before this index and can be overtaken by nobody. */
size_t snib__queue_ahead(const struct snib__record *r, size_t place);
/* What op asks for, as a waiter. */
struct snib__waiter snib__queue_wish(const struct snib__step *s);
/* Puts the one who asks at the end if there is room, or keeps its place for another while. */
void snib__queue_join(struct snib__step *s);
void snib__queue_refresh(struct snib__step *s, size_t place);
void snib__queue_leave(struct snib__step *s, size_t place);
void snib__queue_sweep(struct snib__step *s);
/* Seats those who may sit now, in order. */
void snib__queue_hand_over(struct snib__step *s);
/* Tells the observers whose state is no longer what they know. */
void snib__queue_notify(struct snib__step *s);
void snib__queue_tell(struct snib__step *s, struct snib__tell tell);

/* number.c: SET to DELETE, and the memory of what was executed. */

/* Executes one of them. */
enum snib__status snib__number_change(struct snib__step *s, struct snib__reply *reply);
/* A request with this id was executed before. */
bool snib__number_knows(const struct snib__record *r, const struct snib__id *id);
/* The answer if this request was executed before; false: it was not. */
bool snib__number_recall(struct snib__step *s, struct snib__reply *reply);
/* From now on it was executed and answered so. */
void snib__number_remember(struct snib__step *s, const struct snib__reply *reply);
void snib__number_sweep(struct snib__step *s);
/* What a reply calls the value. */
int64_t snib__number_value(const struct snib__record *r, enum snib__family family);

/* record.c */

/* What an observer of this kind compares. */
int64_t snib__record_state(const struct snib__record *r, int kind);
/* Nobody sits or waits, and nothing exists. */
bool snib__record_vacant(const struct snib__record *r);
enum snib__status snib__record_refuse(struct snib__reply *reply, int error, const char *text);

#endif
