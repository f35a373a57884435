/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_SEEDBUG_H
#define SNIB_BASE_SEEDBUG_H

/*
 * Bugs on purpose, to prove that the tests see them. Production code asks SNIB__BUG(name) at the
 * place of the bug:
 *
 *     if (!holds(record, id) && !SNIB__BUG(release_without_owner_check))
 *             return gone(...);
 *
 * In a normal build that is the constant 0 and leaves no code. A test that compiles the sources
 * with -DSNIB__SEEDED has all of them in one binary and switches on at most one through
 * snib__seeded_bug.
 */

/* X(name, number, what goes wrong). Numbers are never used again. */
#define SNIB__SEEDBUGS(X)                                                                                             \
        X(deadline_from_reply, 1, "the deadline counts from the reply, not from before the request")                  \
        X(no_drift_margin, 2, "the deadline keeps no margin for clocks that run at different rates")                  \
        X(release_without_owner_check, 3, "a release ends whoever's hold")                                            \
        X(repeated_acquire_counted_twice, 4, "an acquire that is repeated with its id counts again")                  \
        X(repeated_release_counted_twice, 5, "a release that is repeated with its id counts again")                   \
        X(renewal_without_owner_check, 6, "a renewal extends whoever's hold")                                         \
        X(notification_dropped, 7, "a wake-up is thrown away")                                                        \
        X(no_retry_after_subscribing, 8, "no second try after the watch took effect")                                 \
        X(no_retry_after_reconnecting, 9, "no second try after the connection came back")                             \
        X(reply_matched_by_id_only, 10, "the reply to an earlier attempt is believed")                                \
        X(token_not_compared_on_reentry, 11, "a re-entry after an unnoticed loss goes on as if nothing had happened") \
        X(sleeping_past_dead_holders_ttl, 12, "a waiter sleeps beyond the end of the holder's lease")                 \
        X(cancel_leaves_waiter, 13, "a cancelled wait stays in the queue")                                            \
        X(token_not_raised, 14, "a new hold gets the token of the one before")                                        \
        X(hand_over_skips_queue, 15, "the hand-over picks the wrong waiter")                                          \
        X(loss_not_told, 16, "a loss is found and nobody is told")                                                    \
        X(renew_after_release, 17, "the watchdog goes on renewing what was released")                                 \
        X(writer_starved, 18, "a reader that comes later overtakes a waiting writer")                                 \
        X(downgrade_with_gap, 19, "the end of a write hold ends its owner's read hold too")                           \
        X(reader_release_frees_writer, 20, "the release of a read hold ends the write hold")                          \
        X(permit_released_twice, 21, "a permit that is not out is released, and counts")                              \
        X(permits_partly_granted, 22, "fewer permits are granted than were asked for")                                \
        X(semaphore_repeat_counts, 23, "a semaphore's acquire that is repeated with its id takes again")              \
        X(semaphore_undo_lost, 24, "an undone acquire gives nothing back")                                            \
        X(latch_counts_twice, 25, "a countdown that is repeated with its id counts again")                            \
        X(latch_wakes_one, 26, "of all who wait for a latch only the first is woken")                                 \
        X(register_ignores_version, 27, "a write does not look at the version")                                       \
        X(register_version_reused, 28, "a deleted register starts its versions anew")                                 \
        X(observer_not_told, 29, "an observer hears nothing of a change")                                             \
        X(multi_rollback_forgets_one, 30, "multilock: a failed round does not give back the first member")            \
        X(multi_release_forgets_one, 31, "multilock: the release leaves the first member out")                        \
        X(multi_order_of_the_caller, 32, "multilock: members are taken in the caller's order")                        \
        X(multi_lost_member_counts, 33, "multilock: a member that was lost meanwhile counts as held")                 \
        X(multi_without_slices, 34, "multilock: a member is waited for without end while others are held")            \
        X(red_majority_of_answers, 35, "red: a majority of those that answered is enough")                            \
        X(red_without_drift, 36, "red: the validity keeps no margin for drift")                                       \
        X(wake_up_not_passed_on, 38, "a wake-up that is not used up goes to nobody else")                             \
        X(spin_never_asks_again, 39, "a spin lock's waiter sleeps on")                                                \
        X(own_writer_not_named, 40, "a reader does not say that its owner has the write side")                        \
        X(semaphore_not_undone, 41, "a semaphore's acquire that was given up is not undone")                          \
        X(observer_waits_its_turn, 42, "an observer is told of a change only if nobody is before it")                 \
        X(doubt_told_as_failure, 43, "a change that may have been made is told as one that was not")                  \
        X(fair_dead_waiter_stays, 44, "fair: a dead waiter is never taken out of the queue")                          \
        X(fair_leaver_wakes_nobody, 45, "fair: whoever goes tells nobody")                                            \
        X(fair_queue_without_turn, 46, "fair: a waiter that leaves stays in the queue without a turn")                \
        X(fair_order_of_asking, 47, "fair: whoever asks again goes to the end")                                       \
        X(rw_renewal_shortens_others, 48, "read-write: a reader's renewal cuts the lease of another short")           \
        X(rw_downgrade_wakes_nobody, 49, "read-write: the end of a write hold above reads tells nobody")              \
        X(rw_writer_beside_readers, 50, "read-write: a writer does not look for readers")                             \
        X(rw_reader_beside_writer, 51, "read-write: a reader does not look for the writer")                           \
        X(semaphore_acquire_forgotten, 52, "semaphore: what was taken is not remembered")                             \
        X(semaphore_wakes_nobody, 53, "semaphore: more permits are told to nobody")                                   \
        X(permits_expired_stay_out, 54, "permits: those whose lease is over never come back")                         \
        X(permits_by_clients_clock, 55, "permits: leases are compared with the clock of whoever asks")                \
        X(permits_beyond_limit, 56, "permits: several are given out where one is free")                               \
        X(latch_count_forgotten, 57, "latch: that it was counted down is not remembered")                             \
        X(latch_delete_wakes_nobody, 58, "latch: its deletion is told to nobody")                                     \
        X(latch_below_zero, 59, "latch: it is counted on below 0")                                                    \
        X(election_begin_untold, 60, "election: the beginning of a term is told to nobody")                           \
        X(register_write_forgotten, 61, "register: a write is not remembered")                                        \
        X(register_write_unconditional, 62, "register: the script does not look at the version")                      \
        X(register_version_anew, 63, "register: the versions of a deleted one begin at 1")                            \
        X(register_write_untold, 64, "register: a new version is told to nobody")                                     \
        X(spin_backoff_unbounded, 65, "a spin lock's waiter doubles its pauses for ever")                             \
        X(spin_doubt_not_released, 66, "a spin lock's acquire that was given up in doubt is not released")            \
        X(red_token_of_the_first, 67, "red: the token is the first member's, not the largest")                        \
        X(red_lost_with_the_last, 68, "red: the loss of the majority is told when the last member is lost")           \
        X(stripe_all_but_the_last, 69, "striped: the lock of all segments leaves the last one out")                   \
        X(stripe_names_collide, 70, "striped: two segments have one name")                                            \
        X(stripe_by_low_bits, 71, "striped: a segment is chosen by the low bits of the hash alone")                   \
        X(renewals_without_owner_check, 72, "renewals that go together extend whoever's holds")                       \
        X(cohort_token_not_new, 80, "a hand-over within a client keeps the token")                                    \
        X(cohort_unbounded, 81, "hand-overs within a client never end")                                               \
        X(cohort_after_loss, 82, "a hold that is lost is handed over")                                                \
        X(cohort_identity_forgotten, 83, "the place of the one who is handed a hold stays in the queue")              \
        X(cohort_silence, 84, "nobody asks any more when the one who asked for all has left")                         \
        X(cohort_lease_begun_anew, 85, "a hand-over within a client counts as a renewal")                             \
        X(cohort_tokens_not_reserved, 86, "the tokens of hand-overs within a client are given out again")             \
        X(direct_grant_of_another_question, 90, "direct grant: one that came before the last question is believed")   \
        X(direct_grant_too_late, 91, "direct grant: it is believed however long ago the question was sent")           \
        X(direct_grant_to_the_dead, 92, "direct grant: to a waiter whose time is over")                               \
        X(direct_grant_unheard, 93, "direct grant: to one whose client cannot hear of it")                            \
        X(direct_grant_token_old, 94, "direct grant: with the token of the hold before")                              \
        X(direct_grant_queue_not_left, 95, "direct grant: whoever gives up stays in the queue")                       \
        X(direct_grant_holder_stays_queued, 96, "direct grant: whoever takes a free lock stays in the queue")         \
        X(direct_grant_wakes_nobody, 97, "direct grant: when all who stood in the queue were dead, nobody is told")   \
        X(direct_grant_last_first, 98, "direct grant: to whoever came last")                                          \
        X(direct_grant_lease_short, 99, "direct grant: the hold ends as if it had to be confirmed first")             \
        X(red_keeps_a_minority, 110, "red: too few members are kept, and the others waited for, for ever")            \
        X(refused_request_waited_for, 120, "a request that the engine did not take counts as under way")              \
        X(cohort_tokens_not_given, 121, "a hold is handed over within a client with a token that nobody gave")        \
        X(given_lease_ignored, 122, "the deadline counts with the lease that was asked for, not with that given")     \
        X(renewed_by_the_asked_lease, 123, "a renewal comes when the lease that was asked for would want it")         \
        X(look_ignored, 124, "a waiter is told when to ask again, and sleeps on")                                     \
        X(left_is_released, 125, "a hold that is to stay for a lease is released")                                    \
        X(relinked_ignored, 126, "no second try after some of several connections came back")

enum snib__seedbug {
#define SNIB__SEEDBUG_ENUM(name, number, text) SNIB__BUG_##name = (number),
        SNIB__SEEDBUGS(SNIB__SEEDBUG_ENUM)
#undef SNIB__SEEDBUG_ENUM
            SNIB__BUG_NONE = 0
};

#ifdef SNIB__SEEDED
/* The bug that is switched on, SNIB__BUG_NONE at start. Defined in base/seedbug.c. */
extern int snib__seeded_bug;
#define SNIB__BUG(name) (snib__seeded_bug == SNIB__BUG_##name)
#else
/* Constant false, and the name is still checked by the compiler. */
#define SNIB__BUG(name) (SNIB__BUG_##name == SNIB__BUG_NONE)
#endif

#endif
