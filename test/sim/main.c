/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command of the simulator:
 *
 *     sim --seeds A..B            run these seeds, stop at the first violation
 *     sim --replay SEED           one seed, with its options and a line per event
 *     sim --tap NAME --seeds A..B as one test, and that a seed says the same twice as another
 *     sim --scenarios FILE...     scripts with their traces as tests; --rewrite FILE... writes the traces
 *     sim --explore               every order of events of a small world
 *     ... --store 0|1|2           with this store in place of the drawn one
 *     ... --only 0..11            with this under every name, or these multilocks (enum sim_subject)
 *     sim --find-bugs N           (sim-seeded) every bug on purpose must be found by the seeds 1..N
 *     sim --bug NAME              (sim-seeded) with this bug switched on
 *
 * Exits 0 if all is well, 1 after a violation of safety, 2 if something got stuck, 3 after a failed
 * assertion.
 */

#include "base/seedbug.h"
#include "sim.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Checking builds are slow: they run one seed in so many. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARE 20
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SPARE 20
#endif
#endif
#ifndef SPARE
#define SPARE 1
#endif

struct bug {
        const char *name;
        int number;
        const char *text;
};

#ifdef SNIB__SEEDED
/* What must find each bug: the invariant it breaks, or one that breaks with it a moment earlier;
 * and where it is, if it is in one place only. */
#define ANYWHERE -1, -1
static const struct {
        const char *bug, *invariants;
        int subject, store;
} finders[] = {
    {"deadline_from_reply", "S2", ANYWHERE},
    {"no_drift_margin", "S2", ANYWHERE},
    {"release_without_owner_check", "S5 S2", ANYWHERE},
    {"repeated_acquire_counted_twice", "model S4 S11", ANYWHERE},
    {"repeated_release_counted_twice", "S11", ANYWHERE},
    {"renewal_without_owner_check", "S5 S2", ANYWHERE},
    {"notification_dropped", "L1", ANYWHERE},
    {"no_retry_after_subscribing", "L1", ANYWHERE},
    {"no_retry_after_reconnecting", "L1", ANYWHERE},
    {"reply_matched_by_id_only", "S2 S4 M6 core", ANYWHERE},
    {"token_not_compared_on_reentry", "S1", ANYWHERE},
    {"sleeping_past_dead_holders_ttl", "L2 L1", ANYWHERE},
    {"cancel_leaves_waiter", "S4", ANYWHERE},
    {"token_not_raised", "S3 S1 S12", ANYWHERE},
    {"hand_over_skips_queue", "L3", ANYWHERE},
    {"loss_not_told", "S7", ANYWHERE},
    {"renew_after_release", "S6", ANYWHERE},
    /* the model */
    {"writer_starved", "L4", SIM_RW, SIM_QUEUE},
    {"downgrade_with_gap", "S5 S10 S2", SIM_RW, -1},
    {"reader_release_frees_writer", "S5 S10 S2", SIM_RW, -1},
    {"permit_released_twice", "S8", SIM_PERMIT, -1},
    {"permits_partly_granted", "S8", SIM_PERMIT, -1},
    {"semaphore_repeat_counts", "S8 model", SIM_SEMAPHORE, -1},
    {"semaphore_undo_lost", "S8", SIM_SEMAPHORE, -1},
    {"latch_counts_twice", "S9 model", SIM_LATCH, -1},
    {"latch_wakes_one", "L1 model", SIM_LATCH, SIM_QUEUE},
    {"register_ignores_version", "V1", SIM_REGISTER, -1},
    {"register_version_reused", "V1", SIM_REGISTER, -1},
    {"observer_not_told", "L1 S12", SIM_ELECTION, SIM_QUEUE},
    /* the core */
    {"wake_up_not_passed_on", "L1", SIM_SEMAPHORE, SIM_WATCH},
    {"spin_never_asks_again", "L2 L5", SIM_SPIN, -1},
    {"spin_backoff_unbounded", "L2 L5", SIM_SPIN, -1},
    {"spin_doubt_not_released", "S4", SIM_SPIN, -1},
    {"own_writer_not_named", "L1 L2 L5", SIM_RW, -1},
    {"semaphore_not_undone", "S8", SIM_SEMAPHORE, -1},
    {"observer_waits_its_turn", "S12 L1", SIM_ELECTION, -1},
    {"left_is_released", "S11", ANYWHERE},
    {"doubt_told_as_failure", "S8 S9 S11", SIM_SEMAPHORE, -1},
    {"cohort_token_not_new", "S1", SIM_PLAIN, -1},
    {"cohort_unbounded", "L6", SIM_PLAIN, -1},
    {"cohort_after_loss", "S2 L6", SIM_PLAIN, -1},
    {"cohort_identity_forgotten", "S4", SIM_PLAIN, SIM_QUEUE},
    {"cohort_silence", "L1 L2 L5", SIM_PLAIN, -1},
    {"cohort_lease_begun_anew", "S2", SIM_PLAIN, -1},
    {"cohort_tokens_not_reserved", "S1", SIM_PLAIN, -1},
    {"cohort_tokens_not_given", "S1", SIM_PLAIN, SIM_QUEUE},
    {"direct_grant_of_another_question", "S2 S1", SIM_PLAIN, -1},
    {"direct_grant_too_late", "S2", SIM_PLAIN, -1},
    {"direct_grant_lease_short", "S2", SIM_PLAIN, SIM_QUEUE},
    {"refused_request_waited_for", "R4", ANYWHERE},
    {"given_lease_ignored", "S2", ANYWHERE},
    {"renewed_by_the_asked_lease", "L7", ANYWHERE},
    {"look_ignored", "L2", SIM_PLAIN, SIM_WATCH},
    {"relinked_ignored", "L1", SIM_PLAIN, SIM_QUEUE},
    /* the scripts */
    {"direct_grant_to_the_dead", "L3", SIM_PLAIN, SIM_BYTES},
    {"direct_grant_unheard", "L3", SIM_PLAIN, SIM_BYTES},
    {"direct_grant_token_old", "S3", SIM_PLAIN, SIM_BYTES},
    {"direct_grant_queue_not_left", "S4", SIM_PLAIN, SIM_BYTES},
    {"direct_grant_holder_stays_queued", "L3", SIM_PLAIN, SIM_BYTES},
    {"direct_grant_wakes_nobody", "L1", SIM_PLAIN, SIM_BYTES},
    {"direct_grant_last_first", "L3", SIM_PLAIN, SIM_BYTES},
    {"fair_dead_waiter_stays", "L2 L1 L5", SIM_FAIR, SIM_BYTES},
    {"fair_leaver_wakes_nobody", "L1", SIM_FAIR, SIM_BYTES},
    {"fair_queue_without_turn", "model", SIM_FAIR, SIM_BYTES},
    {"fair_order_of_asking", "L3", SIM_FAIR, SIM_BYTES},
    {"rw_renewal_shortens_others", "S2 S5 model", SIM_RW, SIM_BYTES},
    {"rw_downgrade_wakes_nobody", "L1", SIM_RW, SIM_BYTES},
    {"rw_writer_beside_readers", "S10 model", SIM_RW, SIM_BYTES},
    {"rw_reader_beside_writer", "S10 S5", SIM_RW, SIM_BYTES},
    {"renewals_without_owner_check", "S5 S2 S1", SIM_PLAIN, SIM_BYTES},
    {"semaphore_acquire_forgotten", "S8", SIM_SEMAPHORE, SIM_BYTES},
    {"semaphore_wakes_nobody", "L1", SIM_SEMAPHORE, SIM_BYTES},
    {"permits_expired_stay_out", "L2 L1 R3", SIM_PERMIT, SIM_BYTES},
    {"permits_by_clients_clock", "S2 S5", SIM_PERMIT, SIM_BYTES},
    {"permits_beyond_limit", "S8", SIM_PERMIT, SIM_BYTES},
    {"latch_count_forgotten", "S9", SIM_LATCH, SIM_BYTES},
    {"latch_delete_wakes_nobody", "L1", SIM_LATCH, SIM_BYTES},
    {"latch_below_zero", "S9", SIM_LATCH, SIM_BYTES},
    {"election_begin_untold", "S12", SIM_ELECTION, SIM_BYTES},
    {"register_write_forgotten", "V1 S11", SIM_REGISTER, SIM_BYTES},
    {"register_write_unconditional", "V1", SIM_REGISTER, SIM_BYTES},
    {"register_version_anew", "V1", SIM_REGISTER, SIM_BYTES},
    {"register_write_untold", "L1", SIM_REGISTER, SIM_BYTES},
    /* multilocks */
    {"multi_rollback_forgets_one", "M2", SIM_MULTI, -1},
    {"multi_release_forgets_one", "M6", SIM_MULTI, -1},
    {"multi_order_of_the_caller", "M8", SIM_MULTI, -1},
    {"multi_lost_member_counts", "M3", SIM_MULTI, -1},
    {"multi_without_slices", "M8", SIM_MULTI, -1},
    {"red_majority_of_answers", "M3 M1", SIM_RED, -1},
    {"red_without_drift", "M3", SIM_RED, -1},
    {"red_token_of_the_first", "M5", SIM_RED, -1},
    {"red_lost_with_the_last", "M4", SIM_RED, -1},
    {"red_keeps_a_minority", "M8", SIM_RED, -1},
    {"stripe_all_but_the_last", "T1", SIM_STRIPED, -1},
    {"stripe_names_collide", "T2", SIM_STRIPED, -1},
    {"stripe_by_low_bits", "T2", SIM_STRIPED, -1},
};
#endif

static const struct bug bugs[] = {
#define BUG(name, number, text) {#name, number, text},
    SNIB__SEEDBUGS(BUG)
#undef BUG
};

static struct sim world;

static const char *program;

static void report(const char *prefix, const char *bug)
{
        static const char *const verdicts[] = {"fine", "unsafe", "stuck", "crashed"};

        printf("%sseed %llu is %s at %.6f s: %s: %s\n", prefix, (unsigned long long)world.options.seed,
               verdicts[world.verdict], (double)world.now / SNIB__S, world.invariant, world.text);
        printf("%sreplay: %s --replay %llu%s%s", prefix, program, (unsigned long long)world.options.seed,
               bug ? " --bug " : "", bug ? bug : "");
        if (sim_only_store >= 0)
                printf(" --store %d", sim_only_store);
        if (sim_only_subject >= 0)
                printf(" --only %d", sim_only_subject);
        printf("\n");
}

static int run_seeds(uint64_t from, uint64_t to, const char *bug)
{
        struct timespec t0, t1;
        uint64_t events = 0, acquired = 0, polls = 0, simulated = 0;

        clock_gettime(CLOCK_MONOTONIC, &t0);
        for (uint64_t seed = from; seed <= to; seed++) {
                enum sim_verdict v = sim_run(&world, seed, false);

                events += world.event_count;
                acquired += world.acquired;
                polls += world.polls;
                simulated += (uint64_t)(world.now / SNIB__MS);
                if (v != SIM_FINE) {
                        report("", bug);
                        sim_options_print(&world.options);
                        return v;
                }
        }
        clock_gettime(CLOCK_MONOTONIC, &t1);
        printf("# %llu seeds fine in %.1f s: %.1f h simulated, %llu events, %llu acquires granted, %llu polls\n",
               (unsigned long long)(to - from + 1),
               (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec), (double)simulated / 3.6e6,
               (unsigned long long)events, (unsigned long long)acquired, (unsigned long long)polls);
        return 0;
}

static int replay(uint64_t seed, const char *bug)
{
        sim_run(&world, seed, false);
        sim_options_print(&world.options);
        enum sim_verdict v = sim_run(&world, seed, true);

        printf("%llu events, hash %016llx\n", (unsigned long long)world.event_count, (unsigned long long)world.hash);
        if (v != SIM_FINE)
                report("", bug);
        return v;
}

/* The same seed, between two others: the same trace. */
static bool repeats(uint64_t seed)
{
        uint64_t first;

        sim_run(&world, seed, false);
        first = world.hash;
        sim_run(&world, seed + 1, false);
        sim_run(&world, seed, false);
        return world.hash == first;
}

static int tap(const char *name, uint64_t from, uint64_t to)
{
        int v, bad = 0;

        to = from + (to - from) / SPARE;
        v = run_seeds(from, to, NULL);
        printf("%s 1 - %s (seeds %llu..%llu)\n", v ? "not ok" : "ok", name, (unsigned long long)from,
               (unsigned long long)to);
        for (uint64_t seed = from; seed < from + 20 && !bad; seed++)
                if (!repeats(seed))
                        bad = (int)seed;
        printf("%s 2 - the same seed gives the same trace\n", bad ? "not ok" : "ok");
        if (bad)
                printf("# seed %d\n", bad);
        printf("1..2\n");
        return v || bad;
}

#ifdef SNIB__SEEDED
/* Whether `invariant` is one of those that must find the bug. */
static bool expected(const struct bug *b, const char *invariant)
{
        size_t n = strlen(invariant);

        for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++) {
                if (strcmp(finders[i].bug, b->name) != 0)
                        continue;
                for (const char *p = finders[i].invariants; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL)
                        if (strncmp(p, invariant, n) == 0 && (p[n] == ' ' || p[n] == 0))
                                return true;
        }
        return false;
}

/* The first seed that fails with the bug; 0: none does. */
static uint64_t find_bug(const struct bug *b, uint64_t most)
{
        snib__seeded_bug = b->number;
        sim_only_subject = sim_only_store = -1;
        for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++) {
                if (strcmp(finders[i].bug, b->name) != 0)
                        continue;
                sim_only_subject = finders[i].subject;
                sim_only_store = finders[i].store;
        }
        for (uint64_t seed = 1; seed <= most; seed++)
                if (sim_run(&world, seed, false) != SIM_FINE)
                        return seed;
        return 0;
}

/* Those that show without time, chance or a second fault. */
static bool explored(const struct bug *b)
{
        switch (b->number) {
        case SNIB__BUG_no_retry_after_subscribing:
        case SNIB__BUG_no_retry_after_reconnecting:
        case SNIB__BUG_notification_dropped:
        case SNIB__BUG_cancel_leaves_waiter:
        case SNIB__BUG_reply_matched_by_id_only:
        case SNIB__BUG_repeated_acquire_counted_twice:
                return true;
        default:
                return false;
        }
}

static int find_bugs(uint64_t most)
{
        int number = 0, missed = 0;

        for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
                uint64_t seed = find_bug(&bugs[i], most);

                bool found = seed && expected(&bugs[i], world.invariant);

                printf("%s %d - %s\n# %s\n", found ? "ok" : "not ok", ++number, bugs[i].name, bugs[i].text);
                if (seed)
                        report("# ", bugs[i].name);
                else
                        printf("# not found in %llu seeds\n", (unsigned long long)most);
                fflush(stdout);
                missed += !found;
        }
        for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
                if (!explored(&bugs[i]))
                        continue;
                snib__seeded_bug = bugs[i].number;
                bool found = sim_explore_finds();

                printf("%s %d - exploration finds %s\n", found ? "ok" : "not ok", ++number, bugs[i].name);
                missed += !found;
        }
        printf("1..%d\n", number);
        return missed != 0;
}
#endif

/* Each file is a test. */
static int scenarios(int count, char **paths, bool write)
{
        int bad = 0;

        for (int i = 0; i < count; i++) {
                enum sim_verdict v = sim_scenario(&world, paths[i], write);
                const char *base = strrchr(paths[i], '/');
                int n = (int)strcspn(base ? base + 1 : paths[i], ".");

                printf("%s %d - %.*s\n", v == SIM_FINE ? "ok" : "not ok", i + 1, n, base ? base + 1 : paths[i]);
                bad += v != SIM_FINE;
        }
        printf("1..%d\n", count);
        return bad != 0;
}

static int usage(void)
{
        fprintf(
            stderr,
            "usage: %s --seeds A..B | --replay SEED | --tap NAME --seeds A..B | --find-bugs N, each with --bug NAME\n",
            program);
        return 64;
}

static bool switch_on(const char *name)
{
        for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
                if (strcmp(bugs[i].name, name) != 0)
                        continue;
#ifdef SNIB__SEEDED
                snib__seeded_bug = bugs[i].number;
                return true;
#endif
        }
        fprintf(stderr, "%s: no such bug here: %s (bugs are built into sim-seeded)\n", program, name);
        return false;
}

static bool read_range(const char *text, uint64_t *from, uint64_t *to)
{
        char *end;

        *from = *to = strtoull(text, &end, 10);
        if (strncmp(end, "..", 2) == 0)
                *to = strtoull(end + 2, &end, 10);
        return *end == 0 && *to >= *from;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {{"seeds", required_argument, NULL, 's'},
                                                {"replay", required_argument, NULL, 'r'},
                                                {"bug", required_argument, NULL, 'b'},
                                                {"find-bugs", required_argument, NULL, 'f'},
                                                {"tap", required_argument, NULL, 't'},
                                                {"store", required_argument, NULL, 'S'},
                                                {"explore", no_argument, NULL, 'e'},
                                                {"scenarios", no_argument, NULL, 'c'},
                                                {"rewrite", no_argument, NULL, 'w'},
                                                {"only", required_argument, NULL, 'o'},
                                                {NULL, 0, NULL, 0}};
        uint64_t from = 0, to = 0, most = 0;
        const char *bug = NULL, *name = NULL;
        int o, mode = 0;

        program = argv[0];
        while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (o == 'S')
                        sim_only_store = (int)strtol(optarg, NULL, 10) % SIM_STORES;
                else if (o == 'o')
                        sim_only_subject = (int)strtol(optarg, NULL, 10) % SIM_SUBJECTS;
                else if (o == 'b')
                        bug = optarg;
                else if (o == 't')
                        name = optarg;
                else if (o == '?' || ((o == 's' || o == 'r') && !read_range(optarg, &from, &to)))
                        return usage();
                if (o == 's' || o == 'r' || o == 'f' || o == 'c' || o == 'w' || o == 'e')
                        mode = o;
                if (o == 'f')
                        most = strtoull(optarg, NULL, 10);
        }
        if (bug && !switch_on(bug))
                return 64;
        if (mode == 's')
                return name ? tap(name, from, to) : run_seeds(from, to, bug);
        if (mode == 'r')
                return replay(from, bug);
        if (mode == 'e')
                return sim_explore(SPARE > 1 ? 2 : 3);
        if (mode == 'c' || mode == 'w')
                return scenarios(argc - optind, argv + optind, mode == 'w');
#ifdef SNIB__SEEDED
        if (mode == 'f' && most > 0)
                return find_bugs(most);
#endif
        (void)most;
        return usage();
}
