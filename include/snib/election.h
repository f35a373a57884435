/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ELECTION_H
#define SNIB_ELECTION_H

/*
 * Leader election: a name has at most one leader. The term is the fencing token of the leader's
 * grant. A leader that loses the leadership is told so before another can start (the grant's loss).
 * Other clients can ask for the leader, and wait for a change.
 *
 *     if (snib_election_campaign(election, SNIB_FOREVER, &grant, NULL) == 1) {
 *             snib_grant_on_loss(grant, stop_leading, NULL, NULL);
 *             lead();
 *             snib_grant_release(grant, NULL);   (resigns)
 *     }
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it, not the grants they
 * gave.
 */

#include <snib/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_election snib_election;

/* Makes a handle of an election. The options are those of a lock; options.kind must be 0. Other
 * clients see a candidate's label, host and pid. No I/O, never blocks. Errors: as
 * snib_lock_new(). */
SNIB_API int snib_election_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                               snib_election **ret_election, struct snib_error *err);

/* Frees the handle of an election. Grants live on. NULL is allowed. No call may be going on. */
SNIB_API void snib_election_free(snib_election *election);

/* Waits until this candidate leads. Answers and errors are those of snib_lock_acquire(): 1 and
 * *ret_grant, 0 not in time, or an error. An owner that leads already gets SNIB_EREENTRY. Blocks.
 * Thread-safe. */
SNIB_API int snib_election_campaign(snib_election *election, int64_t wait_ms, snib_grant **ret_grant,
                                    struct snib_error *err);

/* Campaigns without waiting. `elected` runs exactly once if this answers 0, with what
 * snib_election_campaign() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_election_campaign_async(snib_election *election, int64_t wait_ms, snib_acquired_callback *elected,
                                          void *arg, struct snib_error *err);

/* Ends the leadership of the calling owner. It answers as snib_grant_release() does.
 * SNIB_ENOTOWNER: this owner does not lead. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_election_resign(snib_election *election, struct snib_error *err);

/* Ends every campaign and observation through this handle. Each ends with SNIB_ECANCELLED. Answers
 * how many. Never blocks. Thread-safe. */
SNIB_API int snib_election_cancel(snib_election *election);

/* Tells who leads. Answers 1 and *ret_leader (its token is the term), 0 if there is no leader, or
 * an error. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_election_leader(snib_election *election, struct snib_lock_info *ret_leader, struct snib_error *err);

/* Asks who leads without waiting. `done` runs exactly once if this answers 0, with what
 * snib_election_leader() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_election_leader_async(snib_election *election, snib_info_callback *done, void *arg,
                                        struct snib_error *err);

/*
 * Waits until the term differs from `last_term`. A last_term of 0 means that there was no leader.
 * Answers 1 and *ret_leader, which says how it is now; if held is 0 there is no leader, and the
 * next last_term is 0. Answers 0 if nothing changed in time. Call it in a loop with the term it
 * gave to see every change that lasts. A term that begins and ends between two calls can be missed;
 * the number tells. Blocks. Thread-safe.
 */
SNIB_API int snib_election_observe(snib_election *election, int64_t last_term, int64_t wait_ms,
                                   struct snib_lock_info *ret_leader, struct snib_error *err);

/* Observes without waiting. `changed` runs exactly once if this answers 0, with what
 * snib_election_observe() would answer; it never runs if this answers an error. Never blocks.
 * Thread-safe. */
SNIB_API int snib_election_observe_async(snib_election *election, int64_t last_term, int64_t wait_ms,
                                         snib_info_callback *changed, void *arg, struct snib_error *err);

/* Takes the leadership away from the present leader. Answers 1, or 0 if there was no leader. The
 * leader learns it by a loss. Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_election_depose(snib_election *election, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
