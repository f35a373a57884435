/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CORE_INTERNAL_H
#define SNIB_CORE_INTERNAL_H

/*
 * What the files of core/ share. Below are the rooms, which know nothing of what is above them:
 * index.c (where a hold is found), timer.c, request.c (the request of a hold, and its time limits),
 * out.c (what goes out). Above them one file per part of a hold's life: wait.c (asking and
 * waiting), held.c (renewal and loss), cohort.c (hand-over within the client), release.c; and
 * ask.c (questions without a hold). core.c dispatches events to them.
 */

#include "base/assert.h"
#include "base/seedbug.h"
#include "core/core.h"

/* The longest sleep of a waiter before it asks again without having been told of a change: the
 * safety net under lost notifications. */
#define SNIB__POLL_MAX SNIB__S
/* And longer than this only if the holder's lease is known to end later: an engine that says when
 * to look may be mistaken. */
#define SNIB__LOOK_MAX (60 * SNIB__S)
/* Back-off after failures: doubles from the first to the second, with full jitter. */
#define SNIB__BACKOFF_MIN (10 * SNIB__MS)
#define SNIB__BACKOFF_MAX SNIB__S
/* The fate of a request that changes a number is not asked for again when it may have been
 * forgotten. */
#define SNIB__DOUBT_MAX (SNIB__DONE_MS * SNIB__MS * 3 / 4)
/* A wait that ends before its first answer has come goes on for so long: an engine that answers is
 * heard. One that does not is not waited for. */
#define SNIB__HONEST (30 * SNIB__MS)
/* A spin lock's waiter asks again after 1 ms, 2 ms, ... */
#define SNIB__SPIN_MIN SNIB__MS
#define SNIB__SPIN_MAX (128 * SNIB__MS)

/* How long the next in line keeps back from a lock that was left free for others: a little longer
 * than the engine keeps it for them. */
#define SNIB__YIELD (30 * SNIB__MS)

/* index.c */
void snib__index_init(struct snib__core *c);
/* The waiters of a name by arrival, NULL: none. */
struct snib__hold *snib__wait_first(struct snib__core *c, struct snib__name name);
struct snib__hold *snib__wait_next(struct snib__hold *h);

/* request.c */
/* It is to be sent (again). Whoever's it is says so (dirty), and sets its time-out. */
void snib__request_send(struct snib__core *c, struct snib__request *r, snib__ns now);
/* No answer is waited for any more; false: none was. */
bool snib__request_end(struct snib__core *c, struct snib__request *r);
/* The latest may have been executed, or not. */
void snib__request_doubt(struct snib__request *r);
/* In doubt for so long that the engine may have forgotten what it did. */
bool snib__request_too_old(const struct snib__request *r, snib__ns now);
/* One more failure in a row: how long to wait before the next try. */
snib__ns snib__request_backoff(struct snib__core *c, struct snib__request *r, snib__ns most);
/* What a request is answered with that was not answered in time. */
extern const struct snib__reply snib__late;
extern const struct snib__fault snib__late_fault;
/* Another state, and the end of what it lasts at most. */
void snib__hold_set(struct snib__core *c, struct snib__hold *h, enum snib__hold_state state);
/* What is to come next of itself; with a request outstanding: its time-out. */
void snib__hold_wake_at(struct snib__core *c, struct snib__hold *h, snib__ns when);
void snib__hold_submit(struct snib__core *c, struct snib__hold *h, enum snib__verb verb, snib__ns now);
/* Its renewal does not wait for others any more: it is sent, or is not wanted. */
void snib__hold_unpostpone(struct snib__hold *h);
/* The request under way has its answer. */
void snib__hold_answered(struct snib__core *c, struct snib__hold *h);
/* The request under way, if any, will not be answered any more. */
void snib__hold_forget(struct snib__core *c, struct snib__hold *h);
/* The record is done with: back to IDLE, FREE follows. */
void snib__hold_finish(struct snib__core *c, struct snib__hold *h);
/* The request could not be executed, or its fate is unknown, for a reason that may pass. */
bool snib__reply_passing(const struct snib__reply *r);
/* It ends with its grant. */
bool snib__hold_momentary(const struct snib__hold *h);
/* What no state is, for an OBSERVE that is to be answered at once. */
#define SNIB__ANY_STATE (-1)

/* out.c */
/* It has effects to be pulled. */
void snib__hold_dirty(struct snib__core *c, struct snib__hold *h);
struct snib__call *snib__call_of(struct snib__list *link);
/* `fault` NULL: the code says it all; SNIB__HEARD: what the call has heard last. */
void snib__call_answer(struct snib__core *c, struct snib__call *call, int result, const struct snib__fault *fault);
extern const struct snib__fault snib__heard;
#define SNIB__HEARD (&snib__heard)
/* Answers every call of this kind. */
void snib__calls_answer(struct snib__core *c, struct snib__hold *h, enum snib__call_kind kind, int result,
                        const struct snib__fault *fault);
bool snib__calls_want(const struct snib__hold *h, enum snib__call_kind kind);
/* A request failed: who waits hears why. */
void snib__hold_failed(struct snib__hold *h, const struct snib__reply *r);

/* timer.c */
void snib__timers_init(struct snib__core *c);
/* SNIB__NEVER: not at all. */
void snib__timer_set(struct snib__core *c, struct snib__timer *t, snib__ns due);
bool snib__timer_armed(const struct snib__timer *t);
/* The next one, or NULL. */
struct snib__timer *snib__timer_first(const struct snib__core *c);

/* wait.c */
void snib__wait_begin(struct snib__core *c, struct snib__hold *h, snib__ns now);
void snib__wait_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now);
/* The engine says that it holds. False: that has to be asked about. */
bool snib__wait_granted(struct snib__core *c, struct snib__hold *h, uint32_t attempt, const struct snib__reply *r,
                        snib__ns now);
/* One more call waits for it. */
void snib__wait_joined(struct snib__core *c, struct snib__hold *h, const struct snib__call *call, snib__ns now);
void snib__wait_wake(struct snib__core *c, struct snib__hold *h, snib__ns now);
void snib__wait_call_over(struct snib__core *c, struct snib__call *call, snib__ns now);
/* A change was noticed: ask now, or again when the question under way is answered. */
void snib__wait_poke(struct snib__core *c, struct snib__hold *h, bool woken, snib__ns now);
/* The link is (still) down: who wanted one try need not wait for it any longer. */
void snib__wait_link_down(struct snib__core *c, struct snib__hold *h, snib__ns now);
/* Nobody waits for this acquire any more. */
void snib__wait_leave(struct snib__core *c, struct snib__hold *h, snib__ns now);
/* The client is closed: what the acquire under way may bring is given back without waiting for its
 * answer. */
void snib__cancelling_close(struct snib__core *c, struct snib__hold *h, snib__ns now);
void snib__cancelling_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now);
/* ASKING or WAITING ends: the hold leaves the waiters, GRANTED or (GONE) empty-handed. */
void snib__wait_done(struct snib__core *c, struct snib__hold *h, enum snib__status answer, snib__ns now);

/* held.c */
/* The lease that an answer gives it, and the one that it has. */
snib__ns snib__lease_given(const struct snib__hold *h, const struct snib__reply *r);
snib__ns snib__held_lease(const struct snib__hold *h);
void snib__held_begin(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now);
void snib__held_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now);
void snib__held_wake(struct snib__core *c, struct snib__hold *h, snib__ns now);
void snib__held_join(struct snib__core *c, struct snib__hold *h, snib__ns now);
void snib__held_check(struct snib__core *c, struct snib__hold *h, snib__ns now);
/* The last acquire and the last one about to join are gone without a release: give it back. */
void snib__held_idle(struct snib__core *c, struct snib__hold *h, snib__ns now);
/* Sends what was postponed, as far as there is room. */
void snib__held_resume(struct snib__core *c, snib__ns now);
void snib__held_lose(struct snib__core *c, struct snib__hold *h, int reason, snib__ns now);

/* What another of this client held until now; `from` has given its identity to `h`. */
void snib__held_take_over(struct snib__core *c, struct snib__hold *h, struct snib__hold *from);

/* cohort.c */
/* Whether it can wait silently: somebody of this client asks for the same already. */
bool snib__cohort_covers(struct snib__core *c, const struct snib__hold *h);
/* Who asks for those of this name who wait silently. */
const struct snib__hold *snib__cohort_speaker(const struct snib__core *c, const struct snib__hold *h);
/* The last acquire of `h` was paid back: the next waiter of this client has it now. False: the
 * engine is to have it. */
bool snib__cohort_hand_over(struct snib__core *c, struct snib__hold *h, snib__ns now);
/* `h` is no longer among the waiters: somebody else asks for those who wait silently. */
void snib__cohort_left(struct snib__core *c, struct snib__hold *h, bool woken, snib__ns now);

/* release.c */
/* Ends the hold at the engine; nobody need wait for it. Also from LOST, which stays LOST. */
void snib__release_begin(struct snib__core *c, struct snib__hold *h, snib__ns now);
/* The same from HELD, but it is to stay at the engine until `end`. */
void snib__leave_begin(struct snib__core *c, struct snib__hold *h, snib__ns end, snib__ns now);
void snib__release_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now);
void snib__release_wake(struct snib__core *c, struct snib__hold *h, snib__ns now);
void snib__release_call_over(struct snib__core *c, struct snib__call *call, snib__ns now);
/* A lost hold that was paid back and has nothing under way is done. */
void snib__lost_maybe_finish(struct snib__core *c, struct snib__hold *h);

/* ask.c */
void snib__ask_wake(struct snib__core *c, struct snib__ask *a, snib__ns now);
void snib__ask_answer(struct snib__core *c, struct snib__ask *a, int result);
void snib__ask_retry_now(struct snib__core *c, struct snib__ask *a, snib__ns now);

#endif
