/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CORE_CORE_H
#define SNIB_CORE_CORE_H

/*
 * What a client does: the pure machine behind every lock of one client. Events and the time go in;
 * effects come out, pulled one by one with snib__core_next(). No system call, clock, allocation,
 * lock or callback inside; all memory is the caller's. The runtime and the simulator drive the same
 * code.
 *
 * A hold is one record from the first request to the last: id, owner, token, depth, the instant the
 * answered request was sent, deadline, attempt, renewal. Its states:
 *
 *            begin                    BUSY                        changed, watching, granted, link up, timer
 *     IDLE ───────▶ ASKING ───────────────────▶ WAITING ─────────────────────────────────────────▶ ASKING
 *                     │ GRANTED                    │ last caller leaves
 *                     ▼                            ▼
 *     loss  LOST ◀── HELD ── last release ──▶ RELEASING ── RELEASED, GONE, lease over ──▶ IDLE (free)
 *                     ▲                            ▲
 *                     └ renewals, re-entry         │ its answer, or its time-out
 *               ASKING, last caller leaves ──▶ CANCELLING
 *
 * A hold of a momentary kind (semaphore, latch) or that observes ends with its grant: from ASKING
 * to IDLE. A cancelled one is undone by a release with its id.
 *
 * A hold that is left (`leaving`) goes the same way, but is renewed for the last time instead of
 * released: the engine keeps it until that lease ends, and nobody has it.
 *
 * Of the waiters of one client for one lock only one asks the engine, and a hold passes from one to
 * the next without the engine (cohort.c): the record that holds it becomes another, the id, which
 * is all that the engine knows, does not.
 *
 * Rules that hold everywhere:
 * - The deadline of a hold is the instant before the answered request was sent + lease - margin,
 *   with the smaller one of the lease that was asked for and the one that was given; it only ever
 *   grows, by renewals.
 * - An answer counts only if it answers the hold's latest attempt; an older one is dropped,
 *   whatever it says.
 * - A hold id is used for one hold. Acquire is repeated with the same id after an unknown outcome;
 *   what nobody waits for any more is released by id.
 * - At the deadline the hold is lost, whatever the engine may say later. LOST is told once, before
 *   any answer that follows from it.
 * - Every call is answered exactly once. After the answer it is the caller's memory again.
 */

#include "base/list.h"
#include "base/prng.h"
#include "base/time.h"
#include "base/tree.h"
#include "model/op.h"
#include <snib/grant.h>
#include <stdatomic.h>

#define SNIB__TEXT_MAX 192
/* Renewals under way at once, of a client's 100,000: the requests of others stand behind no more
 * than these. */
#define SNIB__RENEWALS_MAX 400
/* Points in the round at which renewals come: enough that 100,000 holds keep the server for some
 * milliseconds at a time, not so many that a client wakes up for each of them. */
#define SNIB__PHASES 64
/* Holds that began one after the other share a point: they lie side by side in memory, here and at
 * the server, and to fetch each of 100,000 from somewhere else costs more than all that is to be
 * done with it. */
#define SNIB__NEIGHBOURS 64

enum snib__hold_state {
        SNIB__IDLE = 0,
        SNIB__ASKING,
        SNIB__WAITING,
        SNIB__HELD,
        SNIB__LOST,
        SNIB__RELEASING,
        SNIB__CANCELLING
};

/* A point in the core's one timer queue. Embedded in holds, calls and asks: the node's tag says in
 * which. */
enum snib__timer_of { SNIB__TIMER_HOLD = 1, SNIB__TIMER_CALL, SNIB__TIMER_ASK };
struct snib__timer {
        struct snib__tree_node node;
        struct snib__tree_node *last; /* of those that are due at the same instant; see timer.c */
        snib__ns due;
};

/* A request that is repeated, with the same id, until its fate is known: a hold's latest, or an
 * ask's. */
struct snib__request {
        snib__ns sent_at;     /* when it was sent last */
        snib__ns doubt_since; /* in_doubt: when the first one whose fate is unknown was sent */
        snib__ns wake_at;     /* outstanding: its time-out; else the next poll, renewal or try */
        uint32_t attempt;     /* how often it was sent; an answer counts only for the latest */
        int16_t fault;        /* code of the latest failure, 0: none since */
        uint8_t failures;     /* in a row, for back-off */
        bool outstanding : 1; /* the latest has no answer yet */
        bool submit : 1;      /* it is still to be pulled as an effect */
        bool in_doubt : 1;    /* one was sent whose fate is unknown; a hold's: an acquire */
        bool stray : 1;       /* or was unknown, until a later one was answered: a copy may still arrive */
};

/* What an engine knows of an id, and what was heard of it: whoever gives his id to another
 * (cohort.c) gives all of this with it, and his request. */
struct snib__standing {
        struct snib__id id;
        uint32_t given_ms; /* HELD: the lease that the engine gave; 0: what was asked for */
        uint8_t streak;    /* of the grant that was told last */
        bool queued : 1;   /* may stand in the engine's queue */
        bool woken : 1;    /* was asked because of a change: pass it on when leaving empty-handed */
        bool silent : 1;   /* WAITING: another of this client asks for it, too: the engine knows nothing of it */
        struct snib__watching {
                bool on : 1;    /* the name is watched for it */
                bool begin : 1; /* WATCH is still to be pulled */
                bool end : 1;   /* UNWATCH is */
                bool asked : 1; /* the latest request was made because the watch took effect */
        } watch;
};

/* What a refusal or a broken link said last. */
struct snib__fault {
        int code; /* 0: none */
        int engine_code;
        char text[SNIB__TEXT_MAX];
};

/* From a reply that FAILED; the text is copied, cut to fit. */
void snib__fault_set(struct snib__fault *f, const struct snib__reply *r);

enum snib__call_kind { SNIB__CALL_ACQUIRE = 1, SNIB__CALL_RELEASE, SNIB__CALL_RENEW };

/* Somebody who waits for one answer about a hold. Caller's memory, zeroed before use, untouched by
 * the caller until EFFECT_ANSWER. */
struct snib__call {
        struct snib__list link;
        struct snib__timer timer;
        struct snib__hold *hold;
        enum snib__call_kind kind;
        bool once;         /* ACQUIRE: one honest try instead of a wait; the deadline is then ignored */
        snib__ns deadline; /* when to stop waiting; SNIB__NEVER */
        snib__ns leave;    /* RELEASE: until then it is to stay at the engine, nobody's; 0: it ends */
        void *owner_data;  /* the runtime's own */
        bool second;       /* once: the link broke under the first try; there is a second when it is back */
        /* The answer. What was heard last while the call waits stands here already: no hold needs
         * memory for it. */
        int result;                /* ACQUIRE: 1 held, 0 not in time; RELEASE: 1, 0; RENEW: 1; or a negative code */
        struct snib__fault fault;  /* with a negative result */
        struct snib__reply holder; /* ACQUIRE answered 0: the last BUSY; answered 1 and momentary: what was found */
        /* When it was first known that the acquire has to wait; 0: not yet. Read by any thread
         * without a lock. */
        _Atomic snib__ns heard;
};

/* There may be a hundred thousand of them in a client: whatever is only wanted while somebody waits
 * is in his call. */
struct snib__hold {
        /* Set by the runtime before snib__core_begin(); constant while the hold lives. */
        struct snib__name name;
        struct snib__name owner;     /* re-entry key: bytes that mean the same owner within this client. Empty: an owner
                                        of its own, whom no other call joins */
        struct snib__standing known; /* `known.id`, fresh; the rest is the core's */
        snib__ns lease;
        union {
                snib__ns max_hold; /* 0: none */
                snib__ns hold_end; /* the core's, from HELD on: when that is over, 0: never */
        };
        int32_t n;        /* how many permits; 0 counts as 1 */
        uint8_t kind;     /* enum snib_kind */
        bool observe : 1; /* OBSERVE instead of ACQUIRE: answered when the state is another than `token` */
        bool reentrant : 1;
        bool keep : 1;     /* the watchdog renews */
        bool generous : 1; /* whenever it ends others have a turn, if any listen: SNIB__STREAK_MAX */
        uint8_t loss;      /* enum snib_loss: the core's, here for the room */

        /* Read by any thread without a lock; written by the core. 0: not held. */
        _Atomic snib__ns valid_until;

        /* The core's, but that `token` is set before to what an observer knows. Others may read
         * them under the client's lock. */
        int64_t token;
        uint64_t cookie; /* of the present use of this memory: one that began later has a higher one */
        struct snib__request request;
        snib__ns deadline; /* HELD: end of the trusted lease; RELEASING, LOST: end of the efforts to release */
        union {
                snib__ns given_at;  /* HELD: when the engine gave it, perhaps to another of this client; see cohort.c */
                snib__ns leave_end; /* RELEASING and `leaving`: until when it is to stay at the engine */
                int64_t lost_by;    /* LOST: code of the failure that it came from, 0: none */
        };
        int depth;
        enum snib__hold_state state : 8;
        enum snib__verb verb : 8; /* of the latest request */
        uint8_t passed;        /* how often it went from one to another since: `token` is as much above the engine's */
        bool lost_pending : 1; /* LOST is still to be pulled */
        bool again : 1;        /* a change was noticed while the request was under way */
        bool release_in_doubt : 1; /* a release was sent whose fate is unknown */
        bool refused : 1;          /* the engine refused to renew */
        bool leaving : 1;          /* RELEASING: it is not to end, but to stay, nobody's */
        bool farewell : 1;         /* it was held when the client was closed, or its release waited for */
        struct snib__list calls;
        struct snib__list all;   /* link in core.holds */
        struct snib__list dirty; /* link in core.dirty */
        struct snib__tree_node by_owner;
        union {
                struct snib__tree_node by_wait; /* ASKING, WAITING */
                struct snib__list postponed;    /* HELD: link in core.postponed */
        };
        struct snib__timer timer;
};

/* A request about an object that no hold stands behind: QUERY, FORCE, SET to DELETE, and RELEASE or
 * RENEW of single permits. Caller's memory, zeroed, `op` and `deadline` set; a request that changes
 * a number has a fresh op.id. With op.verb 0 nothing is asked: it is answered with 0 at its
 * deadline, a pause. */
struct snib__ask {
        struct snib__list link; /* in core.asks */
        struct snib__list dirty;
        struct snib__timer timer;
        struct snib__op op; /* op.name lives until the answer */
        snib__ns deadline;
        void *owner_data;
        uint64_t cookie;
        struct snib__request request;
        bool answered;
        int result; /* QUERY: 1 held or there, 0 not; FORCE: 1 ended a hold, 0 there was none; SET to DELETE: `applied`;
                       RELEASE, RENEW: 1; or a negative code */
        struct snib__fault fault;
        struct snib__reply reply;
};

struct snib__core_config {
        uint32_t queues;             /* kinds for which the engine keeps a queue of waiters, SNIB__KIND_BIT */
        bool watches;                /* waiters must watch the name */
        int token_block;             /* tokens of a grant; 1: nothing is handed over within the client */
        snib__ns poll;               /* a waiter that is told nothing asks again after so long; 0: SNIB__POLL_MAX */
        int renewals;                /* so many are under way at once; see SNIB__RENEWALS_MAX */
        int phases, neighbours;      /* when renewals come; see SNIB__PHASES, SNIB__NEIGHBOURS */
        snib__ns op_timeout;         /* an answer that takes longer counts as unknown */
        const struct snib__who *who; /* who asks; lives as long as the engine */
        uint64_t seed;
};

struct snib__core {
        struct snib__core_config config;
        struct snib__prng prng;
        uint64_t cookies;
        bool link_up;
        snib__ns down_since;        /* while the link is down */
        struct snib__fault trouble; /* what the last request about something held failed with */
        int downs;       /* reports that the link is down since it was up: the second is of a dial that failed */
        int outstanding; /* requests without an answer: somebody must drive the engine */
        struct snib__list holds; /* all that are not IDLE */
        struct snib__list asks;
        struct snib__tree by_owner; /* holds that a second acquire of the same owner joins: by name, owner */
        struct snib__tree by_wait;  /* ASKING and WAITING holds: by name, in the order of arrival */
        struct snib__tree timers;
        struct snib__list dirty_holds;
        struct snib__list dirty_asks;
        struct snib__list answered;  /* calls */
        struct snib__list postponed; /* holds whose renewal is due, and has to wait for the answers to others */
        int renewing;                /* renewals without an answer */
        int losses;                  /* holds with lost_pending */
        int farewells;               /* holds that a close waits for */
        uint64_t polls;              /* questions asked by timer only: the safety net's use */
        struct snib__op op;          /* of the effect that was pulled last */
};

enum snib__effect_kind {
        SNIB__EFFECT_LOST = 1,   /* hold, with hold->loss: tell its callback and descriptor */
        SNIB__EFFECT_ANSWER,     /* call */
        SNIB__EFFECT_ANSWER_ASK, /* ask */
        SNIB__EFFECT_SUBMIT,     /* op, for hold or ask, with cookie and attempt */
        SNIB__EFFECT_WATCH,      /* hold->name, kind, id */
        SNIB__EFFECT_UNWATCH,    /* the same */
        SNIB__EFFECT_FREE        /* hold: the core is done with it; may be reused at once */
};

struct snib__effect {
        enum snib__effect_kind kind;
        struct snib__hold *hold;
        struct snib__call *call;
        struct snib__ask *ask;
        const struct snib__op *op; /* lives until the next is pulled */
        uint64_t cookie;
        uint32_t attempt;
};

void snib__core_init(struct snib__core *c, const struct snib__core_config *config);

/* The hold that a new acquire of this owner joins (ASKING, WAITING, HELD, LOST and not paid back),
 * or NULL. The two sides of a read-write lock are two holds; otherwise the kind does not matter. */
struct snib__hold *snib__core_find(struct snib__core *c, struct snib__name name, struct snib__name owner, int kind);

/* What this client holds of the name under that id, or NULL: whose the hold is that the engine
 * tells of. */
struct snib__hold *snib__core_held(struct snib__core *c, struct snib__name name, const struct snib__id *id);

/* How many wait for the name whom the engine does not know, because another of this client asks for
 * them. */
int64_t snib__core_silent(struct snib__core *c, struct snib__name name);

/* Starts an acquire with a fresh hold (IDLE, first part filled, the rest zero). The call's kind is
 * ACQUIRE. */
void snib__core_begin(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now);

/* One more acquire by the owner of `h`, found by snib__core_find(). */
void snib__core_join(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now);

/* Pays back one acquire. The call's kind is RELEASE; it may be answered at once. h->depth must be
 * at least 1. With call->leave the last one leaves the hold to its lease instead of ending it. */
void snib__core_release(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now);

/* Renews now. The call's kind is RENEW. */
void snib__core_renew(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now);

/* Answers a call that still waits with `code` (SNIB_ECANCELLED) and undoes what only it wanted. */
void snib__core_cancel(struct snib__core *c, struct snib__call *call, int code, snib__ns now);

/* Ends the wait of an acquire as its deadline would: what it has heard is the answer. */
void snib__core_hurry(struct snib__core *c, struct snib__call *call, snib__ns now);

/* The owner of `h` is no more (its thread ended): the hold is lost with `reason` and released at
 * the engine. */
void snib__core_disown(struct snib__core *c, struct snib__hold *h, int reason, snib__ns now);

void snib__core_ask(struct snib__core *c, struct snib__ask *ask, snib__ns now);

/* Ends everything: calls and asks are answered with SNIB_ECLOSED, holds are lost (CLOSED) and
 * released; what nobody had is taken back by requests that nobody waits for. Send what is to be
 * sent, then go on driving until c->farewells is 0 or patience ends. */
void snib__core_close(struct snib__core *c, snib__ns now);

/* What the engine said, and has said by `now`. `cookie` and `attempt` are those of the effect; an
 * answer to an earlier use or attempt is dropped: false. */
bool snib__core_reply_hold(struct snib__core *c, struct snib__hold *h, uint64_t cookie, uint32_t attempt,
                           const struct snib__reply *r, snib__ns now);
bool snib__core_reply_ask(struct snib__core *c, struct snib__ask *a, uint64_t cookie, uint32_t attempt,
                          const struct snib__reply *r, snib__ns now);
/* The engine did not take the request of this effect, SUBMIT, for want of memory. */
void snib__core_refused(struct snib__core *c, const struct snib__effect *e, snib__ns now);
void snib__core_changed(struct snib__core *c, struct snib__name name, bool all, snib__ns now);
/* `id` empty: every waiter of the name; else the one whose own watch took effect. Changes are
 * noticed since `since`. */
void snib__core_watching(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns since,
                         snib__ns now);
/* With a token: the engine made this id holder after it had executed its request number `attempt`;
 * `r`: `token` and `streak`. */
void snib__core_granted(struct snib__core *c, struct snib__name name, const struct snib__id *id, uint32_t attempt,
                        const struct snib__reply *r, snib__ns now);
/* Nobody holds it, and this one is to let others try first. */
void snib__core_next_in_line(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns now);
void snib__core_ended(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns now);
void snib__core_link(struct snib__core *c, bool up, int error, int engine_code, const char *text, snib__ns now);
/* Some of the links are back: those of the names of which `concerns`, a pure function, says so. */
typedef bool snib__concerns(const void *arg, struct snib__name name);
void snib__core_relinked(struct snib__core *c, snib__concerns *concerns, const void *arg, snib__ns now);

/* Does what is due. Call it whenever snib__core_deadline() has passed, and first thing after any
 * sleep. */
void snib__core_tick(struct snib__core *c, snib__ns now);
snib__ns snib__core_deadline(const struct snib__core *c);

/* The next effect; false: none. Pull until false after every call above. Losses come first, answers
 * before requests. */
bool snib__core_next(struct snib__core *c, struct snib__effect *ret);

/* What keeps a hold from being renewed, or led to its loss: 0, or a code, which *ret_fault has with
 * what was said, and *ret_since: since when the engine has not been heard of, SNIB__NEVER:
 * unknown. */
int snib__core_trouble(const struct snib__core *c, const struct snib__hold *h, struct snib__fault *ret_fault,
                       snib__ns *ret_since);

/* lease - margin: how long after sending a request its lease may be trusted. The margin covers 1000
 * ppm of clock drift between client and server both ways, and the engine's millisecond
 * granularity. */
snib__ns snib__lease_trusted(snib__ns lease);

/* NULL, or the invariant that does not hold. Run after every step by tests and the simulator. */
const char *snib__core_check(const struct snib__core *c, snib__ns now);

#endif
