/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MODEL_KIND_H
#define SNIB_MODEL_KIND_H

/*
 * What is true of a kind of object by itself, one row a kind, and of a family, one row a family.
 * Not the rules of the objects, which are the model's: they ask for the family. The numbers of enum
 * snib_kind are names; nothing follows from their order.
 */

#include <snib/client.h>
#include <stdbool.h>
#include <stdint.h>

enum snib__verb {
        SNIB__ACQUIRE = 1, /* take it if there is room, or confirm it if held by this id (lease starts again); else
                              BUSY. With a token (a re-entry) confirm only, else GONE: executed late, it must not begin
                              a hold anew. SEMAPHORE: take n permits, once for this id. LATCH: is it open? */
        SNIB__RELEASE = 2, /* end the hold of this id, or its place in the queue. SEMAPHORE: undo what ACQUIRE with this
                              id took, if it did */
        SNIB__RENEW = 3,   /* start the lease of this id's hold again; with `leave` for the last time, see below */
        SNIB__QUERY = 4,   /* say what there is; changes nothing. Of kind ANY: whatever kind it is */
        SNIB__FORCE = 5,   /* end whoever's hold: READ all readers, WRITE the writer, PERMITS all that are out */
        SNIB__OBSERVE = 6, /* say what there is if the state (see below) is another than `token`; else BUSY, and stand
                              in the queue to be told of a change */
        /* Changes of a number or a value, each executed once for its id: */
        SNIB__SET = 7,    /* SEMAPHORE, PERMITS, LATCH: to n, if it does not exist */
        SNIB__RESIZE = 8, /* PERMITS: limit to n */
        SNIB__ADD = 9,    /* SEMAPHORE, PERMITS: n more (or fewer); LATCH: n is negative, down to 0 at most */
        SNIB__DRAIN = 10, /* SEMAPHORE: to 0 if it is positive */
        SNIB__WRITE = 11, /* REGISTER: data, if the version is `expected` */
        SNIB__DELETE = 12 /* SEMAPHORE, PERMITS, LATCH; REGISTER if the version is `expected` */
};

/* The state that OBSERVE compares: the token of the present hold (of the write hold, of one that is
 * not shared), or of the present value of a register; 1 for a latch that has a count; 0 when there
 * is none. Below 0 it is another than any. */

/* Sets of verbs: those that every kind has, and the changes of a number or a value. */
#define SNIB__VERB_BIT(verb) (UINT32_C(1) << (verb))
#define SNIB__VERBS_COMMON                                                                             \
        (SNIB__VERB_BIT(SNIB__ACQUIRE) | SNIB__VERB_BIT(SNIB__RELEASE) | SNIB__VERB_BIT(SNIB__RENEW) | \
         SNIB__VERB_BIT(SNIB__QUERY) | SNIB__VERB_BIT(SNIB__FORCE) | SNIB__VERB_BIT(SNIB__OBSERVE))
#define SNIB__VERBS_CHANGES                                                                     \
        (SNIB__VERB_BIT(SNIB__SET) | SNIB__VERB_BIT(SNIB__RESIZE) | SNIB__VERB_BIT(SNIB__ADD) | \
         SNIB__VERB_BIT(SNIB__DRAIN) | SNIB__VERB_BIT(SNIB__WRITE) | SNIB__VERB_BIT(SNIB__DELETE))

/* It changes a number or a value, once for its id. */
static inline bool snib__verb_changes(enum snib__verb verb)
{
        return verb >= SNIB__ACQUIRE && verb <= SNIB__DELETE && SNIB__VERBS_CHANGES & SNIB__VERB_BIT(verb);
}

/* Which kinds are stored alike, and so exclude each other under one name. */
enum snib__family {
        SNIB__FAMILY_NONE = 0,
        SNIB__FAMILY_LOCK,
        SNIB__FAMILY_RW,
        SNIB__FAMILY_SEMAPHORE,
        SNIB__FAMILY_PERMITS,
        SNIB__FAMILY_LATCH,
        SNIB__FAMILY_REGISTER
};

/* A hold of a plain or a fenced lock has so many tokens, of which the engine names the first: the
 * client gives the others to those of its own threads that it hands the hold to. Redis has no
 * counter for a plain lock; core/cohort.c says why that is enough. */
#define SNIB__TOKEN_BLOCK 16

struct snib__kind {
        const char *text;         /* "lock", "fair lock" */
        const char *article;      /* what stands before it in a sentence: "a ", "an " or "" */
        enum snib__family family; /* NONE: no object is of this kind */
        unsigned cap;             /* the bit of enum snib_cap that an engine needs for it */
        uint32_t verbs;           /* SNIB__VERB_BITs: what can be asked of it */
        uint8_t tokens;           /* that come with a hold: with more than one it may be handed on within a client */
        bool momentary;           /* nothing is held after the answer to an ACQUIRE */
        bool anonymous;           /* every ACQUIRE is an owner of its own, whom no other joins */
        bool polls;               /* who waits is not told: it asks again by itself */
};

/* The row of a kind. That of another number says that there is none such: it is of no family and
 * has no verbs. ANY has those that need not know the kind. */
const struct snib__kind *snib__kind(int kind);

/* A kind that stands for its family, where only that is known. */
int snib__family_kind(enum snib__family family);
/* "the name is in use by a latch" */
const char *snib__family_in_use(enum snib__family family);

/* NULL, or the one text why a request is SNIB_EUNSUPPORTED: there is no such kind, no such request
 * to it, or the engine, which knows of itself whether it `has` it, does not. */
const char *snib__kind_refusal(int kind, enum snib__verb verb, bool has);

static inline enum snib__family snib__family_of(int kind)
{
        return snib__kind(kind)->family;
}

/* Sets of kinds. */
#define SNIB__KIND_BIT(kind) (UINT32_C(1) << (kind))
#define SNIB__KINDS_ALL UINT32_MAX

#endif
