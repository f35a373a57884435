/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CORE_MULTI_H
#define SNIB_CORE_MULTI_H

/*
 * What a multilock does: the pure machine of one acquire and, if it is granted, of the grant until
 * the end of its last release. It knows its members by number; what they are told and asked comes
 * out as effects, what becomes of that goes in. No system call, clock, allocation or lock inside;
 * all memory is the caller's. The library and the simulator drive the same code.
 *
 *     ASKING ── all, or a majority, granted ──▶ HELD ── release ──▶ RELEASING ── all members answered ──▶ OVER
 *       │  ▲                                                                                                ▲
 *       │  └──── PAUSING ◀── time is left ──┐                                                               │
 *       └── a member refused, failed or was lost, cancel ──▶ UNDOING ── nothing is held ── 0 or an error ───┘
 *
 * Plain: members are asked one after another in one order; red: all at once, each as long as there
 * is time, so that every release is heard of where it happens. A round that fails gives back what
 * it took before anything else happens, and what was asked and not answered is cancelled: what the
 * engine grants to it later is released by its id. So at no time does a failed round leave a member
 * behind.
 *
 * Thread class: one thread at a time (the caller's lock), but for what says otherwise.
 */

#include "base/prng.h"
#include "core/core.h"
#include <snib/multilock.h>

enum snib__multi_phase {
        SNIB__MULTI_ASKING = 0, /* a round goes on */
        SNIB__MULTI_UNDOING,    /* it failed, and what it took is being given back */
        SNIB__MULTI_PAUSING,    /* until the next */
        SNIB__MULTI_HELD,       /* answered with 1 */
        SNIB__MULTI_RELEASING,
        SNIB__MULTI_OVER /* answered with something else, or released; nothing is under way at any member */
};

enum snib__multi_state { SNIB__MEMBER_IDLE = 0, SNIB__MEMBER_ASKING, SNIB__MEMBER_HELD, SNIB__MEMBER_RELEASING };

enum snib__multi_effect_kind {
        SNIB__MULTI_NOTHING = 0,
        SNIB__MULTI_BLAME,   /* say why `code` will be the result, as long as it can be told. Comes before the others */
        SNIB__MULTI_ASK,     /* acquire the member: once, or within `wait`. Answer it, at once if it cannot begin */
        SNIB__MULTI_RELEASE, /* give it back, confirmed within `wait`. Answer it, at once if it cannot begin */
        SNIB__MULTI_HURRY,   /* the acquire under way has waited for long enough: answer it with what it has heard */
        SNIB__MULTI_CANCEL,  /* the acquire under way is not wanted any more; it is answered all the same */
        SNIB__MULTI_LET_GO   /* it goes on, but its handle may be freed from here on */
};

/* Of a BLAME. */
enum snib__multi_why {
        SNIB__MULTI_SAID = 0,     /* the member said so itself */
        SNIB__MULTI_SILENT,       /* it did not answer in time */
        SNIB__MULTI_LATE,         /* it granted too late */
        SNIB__MULTI_THREAD_ENDED, /* it was lost, because its owner is no more */
        SNIB__MULTI_SHUT,         /* its client is being closed */
        SNIB__MULTI_CANCELLED,    /* no member: somebody cancelled the whole */
        SNIB__MULTI_LOST          /* no member: the whole was lost before its release */
};

struct snib__multi_effect {
        enum snib__multi_effect_kind kind;
        size_t member; /* BLAME may be of none: then it is the number of members */
        bool once;
        snib__ns wait;
        enum snib__multi_why why;
        int code;
};

struct snib__multi_member {
        /* Constant. */
        snib__ns lease;
        snib__ns lasts;                /* a hold of it, however often it is renewed; SNIB__NEVER: as long as it is */
        const _Atomic snib__ns *heard; /* of the acquire under way: when it was known first that it has to wait; 0:
                                          not yet. May be written by any thread */

        /* Read and written by any thread. */
        struct snib__hold *_Atomic held; /* counts for the whole */
        atomic_bool closed;              /* its client is going away: nothing can be asked of it any more */
        atomic_int loss;                 /* enum snib_loss, of what it held last */

        /* The machine's. */
        enum snib__multi_state state;
        struct snib__hold *hold; /* what it was granted last */
        int64_t token;
        bool cancelled;
        bool hurried;
        bool to_release; /* when the release began it was held or asked, or nobody knows */
        int said;        /* the last answer */
        struct snib__multi_effect effect;
};

struct snib__multi_config {
        size_t count; /* of members: 1 to SNIB_MULTILOCK_MAX */
        bool red;
        snib__ns node_timeout;
        bool once;
        snib__ns deadline;
        const size_t *order; /* in which they are acquired, from snib__multi_order() */
        uint64_t seed;
};

enum snib__multi_fate { SNIB__MULTI_OPEN = 0, SNIB__MULTI_ENDED, SNIB__MULTI_ANSWERED };

struct snib__multi {
        /* Constant, but that a failure may bring the deadline forward. */
        size_t count;
        size_t needed; /* members: all, or a majority of them */
        bool red;
        snib__ns node_timeout;
        bool once;
        snib__ns deadline;
        size_t order[SNIB_MULTILOCK_MAX];
        struct snib__multi_member *members;

        struct snib__prng prng;
        enum snib__multi_phase phase;
        unsigned round;
        snib__ns begun; /* of the round */
        bool patient;   /* red: members wait, in this round */
        snib__ns end;   /* red: of the round, whatever was answered by then */
        size_t votes;   /* red: members that were granted, when it was looked last */
        snib__ns split; /* red: so few are given back, then; SNIB__NEVER: there are none */
        bool ending;    /* red: so it is */
        snib__ns due;   /* when to step again though nothing happened */
        size_t at;      /* plain: members held, and the place in `order` of the one that is asked */
        bool again;     /* another round may do better */
        int result;     /* of the round; then of the acquire; then of the release */
        bool answered;
        bool released; /* `result` is that of the release */
        int64_t token; /* red: the largest of the majority's */
        struct snib__multi_effect blame;

        /* Read and written by any thread. */
        atomic_int fate;     /* enum snib__multi_fate: an acquire is answered or cancelled, whichever comes first */
        atomic_bool granted; /* losses count */
        atomic_int loss;     /* enum snib_loss, of the whole */
};

/* `members` is the caller's, zeroed but for its constants. The deadline is SNIB__NEVER, or a point
 * in time. */
void snib__multi_init(struct snib__multi *m, const struct snib__multi_config *config,
                      struct snib__multi_member *members);

/* Does one thing that is to be done. True: there may be more; carry out the effects, and call it
 * again. */
bool snib__multi_step(struct snib__multi *m, snib__ns now);
/* The next effect; false: none. Pull until false after every step. */
bool snib__multi_next(struct snib__multi *m, struct snib__multi_effect *ret);

/* What became of an ASK (1, 0 or an error) or a RELEASE. Of an acquire that was granted: the hold
 * and its token. */
void snib__multi_answer(struct snib__multi *m, size_t member, int result, struct snib__hold *hold, int64_t token);
/* Begins to give all back; the phase is HELD. */
void snib__multi_release(struct snib__multi *m, snib__ns now);
/* PAUSING, and nobody can wake it: ends with this result. */
void snib__multi_give_up(struct snib__multi *m, int result, snib__ns now);

/* From any thread, without a lock. */
/* Ends the wait, unless it has been answered: true. Step it afterwards. */
bool snib__multi_cancel(struct snib__multi *m);
/* What a member holds was lost; `gone`: its record may be reused. True: the whole is lost with it.
 * Tell it, once. */
bool snib__multi_lost(struct snib__multi *m, size_t member, int reason, bool gone);
/* The member's client is gone, and what it held with it. */
void snib__multi_closed(struct snib__multi *m, size_t member);
/* How long a member's hold may still be trusted; 0 or less: it may not. */
snib__ns snib__multi_member_left(const struct snib__multi *m, size_t member, snib__ns now);
/* The same for the whole. */
snib__ns snib__multi_left(const struct snib__multi *m, snib__ns now);

/* What decides where a member comes in the one order in which all processes acquire. */
struct snib__multi_key {
        struct snib__name name;
        const char *place; /* where its engine is, as written */
        int kind;
};
int snib__multi_compare(const struct snib__multi_key *a, const struct snib__multi_key *b);
/* Members that compare equal keep the caller's order. */
void snib__multi_order(const struct snib__multi_key *keys, size_t count, size_t *ret_order);

/* NULL, or the invariant that does not hold. Run after every step by tests and the simulator. */
const char *snib__multi_check(const struct snib__multi *m);

#endif
