/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_MULTILOCK_H
#define SNIB_MULTILOCK_H

/*
 * Several locks as one: all of them or none.
 *
 *     snib_lock *both[] = {from, to};
 *     snib_multilock_new(both, 2, NULL, &transfer, NULL);
 *     if (snib_multilock_acquire(transfer, 2000, &grant, NULL) == 1) {
 *             move_money();
 *             snib_multigrant_release(grant, NULL);
 *     }
 *
 * Members are locks or sides of read-write locks, of any kind, on any clients and engines. They are acquired in one
 * order that every process computes alike (by name, then by the client's URL, then by kind), so that two multilocks can
 * never wait for each other; one deadline holds for the whole; what was taken is given back when the rest cannot be had
 * in time. The promises are those of the weakest member.
 *
 * Red: the same lock on several independent servers, held by a majority of them (the Redlock algorithm,
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). Each server is asked at once. It is held
 * for lease - time that the asking took - drift. It guards against the loss of a minority of servers. It does NOT
 * guard against a server that restarts empty within a lease (start such a server only after the longest lease, or with
 * appendfsync always), nor against a holder that is paused past its validity and does not look at
 * snib_multigrant_valid(): use the token with whatever checks tokens. Its token is the largest of the majority's.
 * Tokens are made from the servers' clocks: that of a later hold is larger if these clocks differ by less than the time
 * between the two grants, and a server that both majorities share (there is one) gave the later hold the larger token
 * in any case, as long as it did not lose its data.
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it, not the grants they gave; the members
 * must outlive it. A multilock is not re-entrant by itself; its members are, according to their kinds.
 */

#include <snib/rwlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_multilock snib_multilock;
typedef struct snib_multigrant snib_multigrant;

#define SNIB_MULTILOCK_MAX 64

struct snib_multilock_options {
        size_t size;             /* SNIB_MULTILOCK_OPTIONS_INIT */
        int red;                 /* 1: a majority is enough; all members must have one name, on different servers */
        int64_t node_timeout_ms; /* red: longest time for one server to answer; default 200 */
};
#define SNIB_MULTILOCK_OPTIONS_INIT sizeof(struct snib_multilock_options)

/* Makes a handle of 1 to SNIB_MULTILOCK_MAX members (red: 3 or more). The array is copied, the members are not. Errors:
 * SNIB_EINVAL (no member, too many, the same lock on the same client twice), SNIB_EFORK, SNIB_ENOMEM. */
SNIB_API int snib_multilock_new(snib_lock *const *members, size_t count, const struct snib_multilock_options *options,
                                snib_multilock **ret_multilock, struct snib_error *err);
/* Frees the handle. Grants live on. NULL is allowed. No wait may be going on. */
SNIB_API void snib_multilock_free(snib_multilock *multilock);

/* As snib_lock_acquire(): 1 all (red: a majority) are held, 0 not in time and none is, negative an error and none is.
 * An error of a member names it. Red: a majority that cannot be reached is asked until the time is up, and then answers
 * SNIB_EUNREACHABLE or SNIB_EUNKNOWN. What a failed acquire had taken is given back before the answer, if the engines
 * confirm it within 200 ms (red: node_timeout_ms), else in the background. Blocks. Thread-safe. Errors: as
 * snib_lock_acquire(). */
SNIB_API int snib_multilock_acquire(snib_multilock *multilock, int64_t wait_ms, snib_multigrant **ret_grant,
                                    struct snib_error *err);
/* As snib_multilock_acquire() with wait_ms 0: each member is tried once. */
SNIB_API int snib_multilock_try(snib_multilock *multilock, snib_multigrant **ret_grant, struct snib_error *err);
/* As snib_lock_acquire_async(): `acquired(arg, result, grant, err)` runs exactly once if this answers 0, where a
 * member's client runs its callbacks. The owner is the thread that calls this, of members without an owner key. */
typedef void snib_multilocked_callback(void *arg, int result, snib_multigrant *grant, const struct snib_error *err);
SNIB_API int snib_multilock_acquire_async(snib_multilock *multilock, int64_t wait_ms,
                                          snib_multilocked_callback *acquired, void *arg, struct snib_error *err);
/* Ends every wait through this handle with SNIB_ECANCELLED; answers how many. Never blocks. */
SNIB_API int snib_multilock_cancel(snib_multilock *multilock);
/* Takes every member away from whoever holds it: 1 if any was held, 0 none, or the first error after all were tried
 * (red: only if so many failed that a majority may still be held). */
SNIB_API int snib_multilock_force_release(snib_multilock *multilock, struct snib_error *err);

/* 1 while all members (red: a majority) are certainly held. No I/O. Thread-safe. */
SNIB_API int snib_multigrant_valid(const snib_multigrant *grant);
/* Red: the largest token of the majority. Otherwise 0: use the members'. */
SNIB_API int64_t snib_multigrant_token(const snib_multigrant *grant);
/* Milliseconds until the whole would be lost without another renewal; 0 when it is lost. No I/O. Thread-safe. */
SNIB_API int64_t snib_multigrant_left_ms(const snib_multigrant *grant);
/* The grant of member number `index` of the array given, NULL if that one is not held (red). The multigrant's. */
SNIB_API snib_grant *snib_multigrant_member(const snib_multigrant *grant, size_t index);
/* enum snib_loss: the reason of the member's loss that made the whole lost. The others stay held until the release. */
SNIB_API int snib_multigrant_loss(const snib_multigrant *grant);
/* As snib_grant_on_loss(): calls `lost(arg, grant, reason)` once if the whole is lost, at once if it is already; a
 * second call replaces the first, NULL removes it. Answers 0 or an error; never blocks. Thread-safe. */
typedef void snib_multiloss_callback(void *arg, snib_multigrant *grant, int reason);
SNIB_API int snib_multigrant_on_loss(snib_multigrant *grant, snib_multiloss_callback *lost, void *arg,
                                     struct snib_error *err);
/* As snib_grant_loss_fd(): a descriptor that becomes readable, and stays so, when the whole is lost. Poll it, do not
 * read it; it is closed with the grant. Never blocks. Thread-safe. */
SNIB_API int snib_multigrant_loss_fd(snib_multigrant *grant);
/* Releases every member, also after one failed: 1, or the first error (red: only if so many failed that a majority may
 * still be held; SNIB_ELOST if the whole had been lost). The pointer must not be used again. Blocks at most one
 * time-out (red: node_timeout_ms, and not for a minority; the rest in the background). NULL answers SNIB_EINVAL. */
SNIB_API int snib_multigrant_release(snib_multigrant *grant, struct snib_error *err);
/* The same without waiting, as snib_grant_release_async(). */
SNIB_API int snib_multigrant_release_async(snib_multigrant *grant, snib_done_callback *done, void *arg,
                                           struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
