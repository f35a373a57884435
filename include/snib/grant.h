/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_GRANT_H
#define SNIB_GRANT_H

/*
 * A grant: what a successful acquire gives you, and what tells you whether you still hold.
 *
 *     if (!snib_grant_valid(grant))
 *             return stop_at_once();
 *     store_write(snib_grant_token(grant), ...);
 *
 * A re-entry answers the same grant once more. Each acquire that answered a grant is paid back by exactly one
 * snib_grant_release() (or snib_lock_release()), also after a loss. The last one ends the grant: the pointer must not
 * be used again.
 *
 * Thread class: every call but the release is thread-safe while the grant lives.
 */

#include <snib/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_grant snib_grant;

/* Why a hold was lost. */
enum snib_loss {
        SNIB_LOSS_NONE = 0,
        SNIB_LOSS_EXPIRED = 1,     /* the lease ran out on this client's clock (a fixed lease, or a pause) */
        SNIB_LOSS_UNREACHABLE = 2, /* the lease ran out while the engine could not be reached for a renewal */
        SNIB_LOSS_TAKEN = 3,       /* the engine says another owner holds it */
        SNIB_LOSS_GONE = 4,     /* the engine says nobody holds it: force-released, deleted, flushed, restarted empty */
        SNIB_LOSS_MAX_HOLD = 5, /* the cap on the total hold was reached */
        SNIB_LOSS_THREAD_EXIT = 6, /* the thread that owned the hold ended */
        SNIB_LOSS_CLOSED = 7,      /* the client was closed */
        SNIB_LOSS_REFUSED = 8      /* the engine refused to renew (password changed, key of another type) */
};

/* A short static text for a reason. */
SNIB_API const char *snib_loss_text(int reason);

/* 1 while the hold is certainly ours by this machine's clock (which counts suspend), else 0. One atomic load and one
 * clock read, no I/O, no lock. Also 0 in a forked child. Thread-safe, async-signal-safe. */
SNIB_API int snib_grant_valid(const snib_grant *grant);

/* The fencing token: rises with every new hold of the name, the same for all re-entries of one hold. Never 0. */
SNIB_API int64_t snib_grant_token(const snib_grant *grant);

/* Milliseconds until the hold would be lost without another renewal; 0 when it is lost. No I/O. */
SNIB_API int64_t snib_grant_left_ms(const snib_grant *grant);

/* How many acquires are to be paid back. */
SNIB_API int snib_grant_depth(const snib_grant *grant);

/* How many permits it is: 1 for a lock, what was acquired of a snib_permits. */
SNIB_API int64_t snib_grant_permits(const snib_grant *grant);

#define SNIB_PERMIT_ID_MAX 33

/* Writes the id of permit number `index` (from 0) of a grant of snib_permits as 32 hex digits and a NUL, as Redisson
 * shows it: 0, or SNIB_EINVAL when there is no such permit. Never blocks. */
SNIB_API int snib_grant_permit_id(const snib_grant *grant, int64_t index, char ret_id[SNIB_PERMIT_ID_MAX]);

/* The owner as others see it on the engine, for logs. The text lives as long as the grant. */
SNIB_API const char *snib_grant_owner(const snib_grant *grant);

/* enum snib_loss: SNIB_LOSS_NONE while not lost. */
SNIB_API int snib_grant_loss(const snib_grant *grant);

/*
 * A descriptor that becomes readable, and stays so, when the hold is lost. Poll it, do not read it. It stays the
 * grant's and is closed with it. Answers the descriptor or SNIB_ESYSTEM. Never blocks. Thread-safe.
 */
SNIB_API int snib_grant_loss_fd(snib_grant *grant);

/*
 * Calls `lost(arg, grant, reason)` once if the hold is lost, before the engine may grant it to another. If it is lost
 * already, the call comes at once, from the place where callbacks run. One callback per grant; a second call replaces
 * the first, NULL removes it. Answers 0 or an error; never blocks. Thread-safe.
 */
typedef void snib_loss_callback(void *arg, snib_grant *grant, int reason);
SNIB_API int snib_grant_on_loss(snib_grant *grant, snib_loss_callback *lost, void *arg, struct snib_error *err);

/*
 * Pays back one acquire; the last one releases the hold at the engine and ends the grant, whatever it answers.
 * 1 released, 0 still held by an outer acquire; SNIB_ELOST: it had been lost before; SNIB_EUNKNOWN or
 * SNIB_EUNREACHABLE: the engine did not confirm in time: renewal has stopped, the release is repeated in the
 * background, at the latest the lease ends it. Blocks at most one time-out. One thread at a time per grant. NULL
 * answers SNIB_EINVAL.
 */
SNIB_API int snib_grant_release(snib_grant *grant, struct snib_error *err);

/* The same without waiting: `done(arg, result, err)` runs exactly once if this answers 0, never if it answers an error.
 */
typedef void snib_done_callback(void *arg, int result, const struct snib_error *err);
SNIB_API int snib_grant_release_async(snib_grant *grant, snib_done_callback *done, void *arg, struct snib_error *err);

/* Renews now, without waiting for the watchdog; with a fixed lease, starts the lease again. 1 renewed, SNIB_ELOST, or
 * another error with the hold as it was. Blocks at most one time-out. */
SNIB_API int snib_grant_renew(snib_grant *grant, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
