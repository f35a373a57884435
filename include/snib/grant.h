/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_GRANT_H
#define SNIB_GRANT_H

/*
 * A grant is what a successful acquire gives you. It tells you whether you still hold.
 *
 *     if (!snib_grant_valid(grant))
 *             return stop_at_once();
 *     store_write(snib_grant_token(grant), ...);
 *
 * A re-entry answers the same grant once more. Each acquire that answered a grant is paid back by
 * exactly one snib_grant_release() (or snib_lock_release()), after a loss too. The last one ends
 * the grant: the pointer must not be used again.
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
        SNIB_LOSS_GONE = 4,     /* the engine says it is not held: force-released, deleted, flushed, restarted empty */
        SNIB_LOSS_MAX_HOLD = 5, /* the cap on the total hold was reached */
        SNIB_LOSS_THREAD_EXIT = 6, /* the thread that owned the hold ended */
        SNIB_LOSS_CLOSED = 7,      /* the client was closed */
        SNIB_LOSS_REFUSED = 8      /* the engine refused to renew (password changed, key of another type) */
};

/* Says in a few words why a hold was lost, as static text. Never NULL. Thread-safe, never
 * blocks. */
SNIB_API const char *snib_loss_text(int reason);

/* Tells whether you certainly still hold. Answers 1 while the lease lasts by this machine's clock,
 * which counts suspend, else 0. It is 0 in a forked child. It costs one atomic load and one reading
 * of the clock: no I/O, no lock. Thread-safe, async-signal-safe. */
SNIB_API int snib_grant_valid(const snib_grant *grant);

/* Gives the fencing token of the hold. It rises with every new hold of the name, and is the same
 * for all re-entries of one hold. Never 0. Never blocks. Thread-safe. */
SNIB_API int64_t snib_grant_token(const snib_grant *grant);

/* Tells how long the hold lasts without another renewal, in milliseconds. It is 0 if the hold is
 * lost. No I/O. Thread-safe. */
SNIB_API int64_t snib_grant_left_ms(const snib_grant *grant);

/* Tells how many acquires are still to be paid back. Never blocks. Thread-safe. */
SNIB_API int snib_grant_depth(const snib_grant *grant);

/* Tells how many permits the grant has. It is 1 for a lock, and for snib_permits the number that
 * was acquired. Never blocks. Thread-safe. */
SNIB_API int64_t snib_grant_permits(const snib_grant *grant);

#define SNIB_PERMIT_ID_MAX 33

/* Gives the id of one permit of a grant of snib_permits. `index` counts from 0. The id is 32 hex
 * digits and a NUL, as Redisson shows it. Answers 0, or SNIB_EINVAL if there is no such permit.
 * Never blocks. Thread-safe. */
SNIB_API int snib_grant_permit_id(const snib_grant *grant, int64_t index, char ret_id[SNIB_PERMIT_ID_MAX]);

/* Gives the owner as other clients see it on the engine, for logs. The text lives as long as the
 * grant. Never blocks. Thread-safe. */
SNIB_API const char *snib_grant_owner(const snib_grant *grant);

/* Tells why the hold was lost, one of enum snib_loss. It is SNIB_LOSS_NONE while it is not lost.
 * Never blocks. Thread-safe. */
SNIB_API int snib_grant_loss(const snib_grant *grant);

/* Says what keeps the lease from being renewed, or led to its loss, as far as it is known: 0
 * nothing, or a negative code with the engine's own reason and since when in *err (a refusal, a
 * connection that is refused, a server that does not answer). A hold that has trouble is still held
 * until its lease ends. Never blocks. Thread-safe. */
SNIB_API int snib_grant_trouble(snib_grant *grant, struct snib_error *err);

/*
 * Gives a descriptor that becomes readable if the hold is lost, and stays so. Poll it, do not
 * read it. It stays the grant's and is closed with it. Answers the descriptor or SNIB_ESYSTEM.
 * Never blocks. Thread-safe.
 */
SNIB_API int snib_grant_loss_fd(snib_grant *grant);

/* Called once when a hold is lost. `reason` is one of enum snib_loss. */
typedef void snib_loss_callback(void *arg, snib_grant *grant, int reason);

/*
 * Has `lost(arg, grant, reason)` called once if the hold is lost. The call comes before the
 * engine may grant the hold to another owner. If the hold is lost already, the call comes at once,
 * from the place where callbacks run. A grant has one callback: a second one replaces the first,
 * NULL removes it. Answers 0 or an error. Never blocks. Thread-safe.
 */
SNIB_API int snib_grant_on_loss(snib_grant *grant, snib_loss_callback *lost, void *arg, struct snib_error *err);

/*
 * Pays back one acquire. The last one releases the hold at the engine and ends the grant,
 * whatever it answers. Answers 1 if the hold is released, 0 if an outer acquire still holds.
 * SNIB_ELOST: the hold had been lost before. SNIB_EUNKNOWN or SNIB_EUNREACHABLE: the engine did not
 * confirm in time. Renewal has then stopped, the release is repeated in the background, and the end
 * of the lease ends the hold at the latest. NULL answers SNIB_EINVAL. Blocks at most one time-out.
 * One thread at a time for each grant.
 */
SNIB_API int snib_grant_release(snib_grant *grant, struct snib_error *err);

/* Called once when a call that was not waited for is done. `result` is what the blocking call would
 * answer; `err` has the detail if it is negative, and lives during the callback. */
typedef void snib_done_callback(void *arg, int result, const struct snib_error *err);

/* Pays back one acquire without waiting. `done` runs exactly once if this answers 0, with what
 * snib_grant_release() would answer; it never runs if this answers an error. Never blocks. One
 * thread at a time for each grant. */
SNIB_API int snib_grant_release_async(snib_grant *grant, snib_done_callback *done, void *arg, struct snib_error *err);

/*
 * Pays back one acquire, and leaves the hold at the engine for `lease_ms` more if it is the last.
 * Nobody holds it then, and nobody gets it before that time is over. It does not end with this
 * client or process; a forced release ends it. For a job that is to run once in a while, however
 * short it was:
 *
 *     snib_grant_leave(grant, began_ms + 55000 - now_ms, NULL);
 *
 * Ends the grant, whatever it answers. Answers 1 if it is left, 0 if an outer acquire still holds:
 * that one decides. SNIB_ELOST: the hold had been lost before. SNIB_EUNKNOWN or SNIB_EUNREACHABLE:
 * the engine did not confirm in time. The request is then repeated in the background; without it
 * the lease that the hold had ends it. SNIB_ELEASE: `lease_ms` is not 1 to SNIB_LEASE_MAX_MS, and
 * nothing was done. NULL answers SNIB_EINVAL. Blocks at most one time-out. One thread at a time for
 * each grant.
 */
SNIB_API int snib_grant_leave(snib_grant *grant, int64_t lease_ms, struct snib_error *err);

/* Renews the lease now, without waiting for the watchdog. A fixed lease starts again. Answers 1,
 * SNIB_ELOST, or another error with the hold as it was. Blocks at most one time-out.
 * Thread-safe. */
SNIB_API int snib_grant_renew(snib_grant *grant, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
