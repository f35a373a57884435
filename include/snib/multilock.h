/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MULTILOCK_H
#define SNIB_MULTILOCK_H

/*
 * A multilock is several locks as one: all of them or none.
 *
 *     snib_lock *both[] = {from, to};
 *     snib_multilock_new(both, 2, NULL, &transfer, NULL);
 *     if (snib_multilock_acquire(transfer, 2000, &grant, NULL) == 1) {
 *             move_money();
 *             snib_multigrant_release(grant, NULL);
 *     }
 *
 * Members are locks or sides of read-write locks, of any kind, on any clients and engines. They are
 * acquired in one order that every process computes alike (by name, then by the client's URL, then
 * by kind). So two multilocks can never wait for each other. One deadline holds for the whole. If
 * the rest cannot be had in time, what was taken is given back. The promises are those of the
 * weakest member.
 *
 * Red: the same lock on several independent servers, held by a majority of them (the Redlock
 * algorithm, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). All servers
 * are asked at once. The hold lasts for lease - time that the asking took - drift. It guards
 * against the loss of a minority of servers. It does NOT guard against a server that restarts empty
 * within a lease: start such a server only after the longest lease, or with appendfsync always. Nor
 * does it guard against a holder that is paused past its validity and does not look at
 * snib_multigrant_valid(): use the token if the protected thing can check tokens. The token is the
 * largest of the majority's. Tokens are made from the servers' clocks. The token of a later hold is
 * larger if these clocks differ by less than the time between the two grants. Two majorities share
 * at least one server; that server gave the later hold the larger token in any case, as long as it
 * did not lose its data.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it, not the grants they
 * gave; the members must outlive it. A multilock is not re-entrant by itself; its members are,
 * according to their kinds.
 */

#include <snib/rwlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_multilock snib_multilock;
typedef struct snib_multigrant snib_multigrant;

/* Most members of a multilock. */
#define SNIB_MULTILOCK_MAX 64

/* Options of a multilock. Zero means default everywhere. */
struct snib_multilock_options {
        size_t size;             /* SNIB_MULTILOCK_OPTIONS_INIT */
        int red;                 /* 1: a majority is enough; all members must have one name, on different servers */
        int64_t node_timeout_ms; /* red: longest time for one server to answer; default 200 */
};
/* clang-format off */
#define SNIB_MULTILOCK_OPTIONS_INIT { sizeof(struct snib_multilock_options), 0, 0 }
/* clang-format on */

/* Makes a handle of 1 to SNIB_MULTILOCK_MAX members. A red one has 3 or more. The array is copied,
 * the members are not. No I/O, never blocks. Errors: SNIB_EINVAL (no member, too many, the same
 * lock on the same client twice), SNIB_EFORK, SNIB_ENOMEM. */
SNIB_API int snib_multilock_new(snib_lock *const *members, size_t count, const struct snib_multilock_options *options,
                                snib_multilock **ret_multilock, struct snib_error *err);

/* Frees the handle of a multilock. Grants live on. NULL is allowed. No wait may be going on. */
SNIB_API void snib_multilock_free(snib_multilock *multilock);

/* Acquires all members, or for red a majority. Answers 1 and *ret_grant, 0 if they were not free in
 * time, or an error; without 1 no member is held. An error of a member names it. Red: if a majority
 * cannot be reached, the servers are asked until the time is up, and then it answers
 * SNIB_EUNREACHABLE or SNIB_EUNKNOWN. What a failed acquire had taken is given back before the
 * answer, if the engines confirm it within 200 ms (red: node_timeout_ms), else in the background.
 * Blocks. Thread-safe. Errors: as snib_lock_acquire(). */
SNIB_API int snib_multilock_acquire(snib_multilock *multilock, int64_t wait_ms, snib_multigrant **ret_grant,
                                    struct snib_error *err);

/* Tries once to acquire each member. It answers as snib_multilock_acquire() with a wait_ms of 0.
 * Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_multilock_try(snib_multilock *multilock, snib_multigrant **ret_grant, struct snib_error *err);

/* Called once when an acquire of a multilock that was not waited for is over. `result` is as of
 * snib_multilock_acquire(); `grant` is NULL unless it is 1. `err` lives during the callback. */
typedef void snib_multilocked_callback(void *arg, int result, snib_multigrant *grant, const struct snib_error *err);

/* Acquires a multilock without waiting. `acquired` runs exactly once if this answers 0, in the
 * place where a member's client runs its callbacks; it never runs if this answers an error. The
 * owner is the thread that calls this, for members without an owner key. Never blocks.
 * Thread-safe. */
SNIB_API int snib_multilock_acquire_async(snib_multilock *multilock, int64_t wait_ms,
                                          snib_multilocked_callback *acquired, void *arg, struct snib_error *err);

/* Ends every wait through this handle of a multilock. Each ends with SNIB_ECANCELLED. Answers how
 * many. Never blocks. Thread-safe. */
SNIB_API int snib_multilock_cancel(snib_multilock *multilock);

/* Takes every member away from its holder. Answers 1 if a member was held, 0 if none was, or the
 * first error after all were tried (red: only if so many failed that a majority may still be held).
 * Blocks. Thread-safe. */
SNIB_API int snib_multilock_force_release(snib_multilock *multilock, struct snib_error *err);

/* Tells whether all members, or for red a majority, are certainly still held. Answers 1 or 0. No
 * I/O. Thread-safe. */
SNIB_API int snib_multigrant_valid(const snib_multigrant *grant);

/* Gives the fencing token of a red multilock, the largest of the majority's. It is 0 if the
 * multilock is not red: use the members' tokens. Never blocks. Thread-safe. */
SNIB_API int64_t snib_multigrant_token(const snib_multigrant *grant);

/* Tells how long the whole lasts without another renewal, in milliseconds. It is 0 if the whole is
 * lost. No I/O. Thread-safe. */
SNIB_API int64_t snib_multigrant_left_ms(const snib_multigrant *grant);

/* Gives the grant of one member. `index` counts from 0 in the array given at snib_multilock_new().
 * It is the multigrant's; never release it. NULL if the member is not held (red). Never blocks.
 * Thread-safe. */
SNIB_API snib_grant *snib_multigrant_member(const snib_multigrant *grant, size_t index);

/* Tells why the whole was lost, one of enum snib_loss. It is the reason of the member whose loss
 * made the whole lost. The other members stay held until the release. Never blocks. Thread-safe. */
SNIB_API int snib_multigrant_loss(const snib_multigrant *grant);

/* Called once when a multilock is lost as a whole. `reason` is one of enum snib_loss. */
typedef void snib_multiloss_callback(void *arg, snib_multigrant *grant, int reason);

/* Has `lost(arg, grant, reason)` called once if the whole is lost. If it is lost already, the call
 * comes at once. A second callback replaces the first, NULL removes it. Answers 0 or an error.
 * Never blocks. Thread-safe. */
SNIB_API int snib_multigrant_on_loss(snib_multigrant *grant, snib_multiloss_callback *lost, void *arg,
                                     struct snib_error *err);

/* Gives a descriptor that becomes readable if the whole is lost, and stays so. Poll it, do not read
 * it. It is closed with the grant. Never blocks. Thread-safe. */
SNIB_API int snib_multigrant_loss_fd(snib_multigrant *grant);

/* Releases every member, even if one of them fails. Answers 1, or the first error (red: only if so
 * many failed that a majority may still be held; SNIB_ELOST if the whole had been lost). NULL
 * answers SNIB_EINVAL. The pointer must not be used again. Blocks at most one time-out (red: at
 * most node_timeout_ms, and not for a minority; the rest is done in the background). */
SNIB_API int snib_multigrant_release(snib_multigrant *grant, struct snib_error *err);

/* Releases every member without waiting. `done` runs exactly once if this answers 0, with what
 * snib_multigrant_release() would answer; it never runs if this answers an error. The pointer must
 * not be used again. Never blocks. */
SNIB_API int snib_multigrant_release_async(snib_multigrant *grant, snib_done_callback *done, void *arg,
                                           struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
