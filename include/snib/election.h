/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ELECTION_H
#define SNIB_ELECTION_H

/*
 * Leader election: at most one leader per name; its term is the fencing token of its grant. A leader is told that it
 * leads no longer before anybody else can start (the grant's loss). Others can ask who leads, and wait for a change.
 *
 *     if (snib_election_campaign(election, SNIB_FOREVER, &grant, NULL) == 1) {
 *             snib_grant_on_loss(grant, stop_leading, NULL, NULL);
 *             lead();
 *             snib_grant_release(grant, NULL);   (resigns)
 *     }
 *
 * Thread class: a handle is thread-safe; it must outlive the calls made on it, not the grants they gave.
 */

#include <snib/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_election snib_election;

/* Makes a handle; no I/O. Options as of a lock; options.kind must be 0. What others see of a candidate is the client's
 * label, host and pid. */
SNIB_API int snib_election_new(snib_client *client, const char *name, const struct snib_lock_options *options,
                               snib_election **ret_election, struct snib_error *err);
SNIB_API void snib_election_free(snib_election *election);

/* Waits until this candidate leads: as snib_lock_acquire(). An owner that leads already gets SNIB_EREENTRY. */
SNIB_API int snib_election_campaign(snib_election *election, int64_t wait_ms, snib_grant **ret_grant,
                                    struct snib_error *err);
SNIB_API int snib_election_campaign_async(snib_election *election, int64_t wait_ms, snib_acquired_callback *elected,
                                          void *arg, struct snib_error *err);
/* Ends the leadership of the calling owner, as snib_grant_release() does; SNIB_ENOTOWNER: it does not lead. */
SNIB_API int snib_election_resign(snib_election *election, struct snib_error *err);
/* Ends every campaign and observation through this handle with SNIB_ECANCELLED; answers how many. */
SNIB_API int snib_election_cancel(snib_election *election);

/* Who leads: 1 and *ret_leader (its token is the term), 0 nobody, or an error. Blocks at most one time-out. */
SNIB_API int snib_election_leader(snib_election *election, struct snib_lock_info *ret_leader, struct snib_error *err);
/*
 * Waits until the term is another than `last_term` (0: nobody leads): 1 and *ret_leader is how it is now (held 0:
 * nobody leads, ask again with 0); 0 no change in time. Call it in a loop with the term it gave to see every change
 * that lasts; a term that begins and ends between two calls can be missed, the number tells. Blocks.
 */
SNIB_API int snib_election_observe(snib_election *election, int64_t last_term, int64_t wait_ms,
                                   struct snib_lock_info *ret_leader, struct snib_error *err);
SNIB_API int snib_election_observe_async(snib_election *election, int64_t last_term, int64_t wait_ms,
                                         snib_info_callback *changed, void *arg, struct snib_error *err);
/* Takes the leadership away from whoever has it: as snib_lock_force_release(). */
SNIB_API int snib_election_depose(snib_election *election, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
