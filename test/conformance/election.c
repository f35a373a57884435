/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Elections: one leader, terms that rise, and observers that see every change that lasts.
 */

#include "kit.h"
#include <string.h>

static snib_election *election_of(snib_client *c, const char *name, int64_t lease_ms)
{
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = lease_ms};
        snib_election *e;

        assert_int_equal(snib_election_new(c, name, &o, &e, NULL), 0);
        return e;
}

static snib_grant *campaign(snib_election *e, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g = NULL;
        int r = snib_election_campaign(e, wait_ms, &g, &err);

        if (r != 1)
                print_message("# campaign: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
        return g;
}

/* What the observer sees next: the term, 0: nobody. */
static int64_t observe(snib_election *e, int64_t last)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        int r = snib_election_observe(e, last, 20000, &info, NULL);

        assert_int_equal(r, 1);
        return info.held ? info.token : 0;
}

static void S12_one_leads_and_terms_rise(void **state)
{
        snib_client *c = open_as("first"), *d = open_as("second");
        snib_election *e = election_of(c, "leader", 0), *f = election_of(d, "leader", 0);
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g, *none = NULL;
        int64_t term;

        assert_int_equal(snib_election_leader(e, &info, NULL), 0);
        assert_int_equal(snib_election_resign(e, NULL), SNIB_ENOTOWNER);
        g = campaign(e, 0);
        term = snib_grant_token(g);
        assert_int_equal(snib_election_leader(f, &info, NULL), 1);
        assert_int_equal(info.kind, SNIB_KIND_ELECTION);
        assert_int_equal(info.mine, 0);
        assert_string_equal(info.label, "first");
        assert_true(info.token == -1 || info.token == term);
        assert_int_equal(snib_election_leader(e, &info, NULL), 1);
        assert_int_equal(info.mine, 1);
        assert_int_equal(snib_election_campaign(e, 1000, &none, &err), SNIB_EREENTRY);
        assert_non_null(strstr(err.text, "leads"));
        assert_int_equal(snib_election_campaign(f, 20, &none, NULL), 0);
        assert_null(none);
        assert_int_equal(snib_election_resign(e, NULL), 1);
        g = campaign(f, 5000);
        assert_true(snib_grant_token(g) > term);
        release(g);
        snib_election_free(e);
        snib_election_free(f);
        snib_close(c);
        snib_close(d);
}

static void observers_see_every_change_that_lasts(void **state)
{
        snib_client *c = open_as("leads"), *d = open_as("observes");
        snib_election *e = election_of(c, "observed", 0), *f = election_of(d, "observed", 0);
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        int64_t seen = 0;

        assert_int_equal(snib_election_observe(f, 0, 0, &info, NULL), 0);
        assert_int_equal(snib_election_observe(f, 0, 30, &info, NULL), 0);
        for (int i = 0; i < 4; i++) {
                snib_grant *g = campaign(e, 5000);
                int64_t term = observe(f, seen);

                assert_int_equal(term, snib_grant_token(g));
                assert_true(term > seen);
                assert_int_equal(snib_election_observe(f, term, 20, &info, NULL), 0);
                release(g);
                assert_int_equal(observe(f, term), 0);
                seen = 0;
        }
        snib_election_free(e);
        snib_election_free(f);
        snib_close(c);
        snib_close(d);
}

/* Follows an election by the term, as the manual says. */
struct follower {
        snib_election *election;
        atomic_int changes, failed;
        _Atomic int64_t term;
        pthread_t thread;
};

static void *follow(void *arg)
{
        struct follower *f = arg;
        int64_t last = 0;
        int r;

        do {
                struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

                r = snib_election_observe(f->election, last, SNIB_FOREVER, &info, NULL);
                if (r != 1)
                        break;
                if (info.held && info.token < last)
                        atomic_fetch_add(&f->failed, 1);
                last = info.held ? info.token : 0;
                atomic_store(&f->term, last);
                atomic_fetch_add(&f->changes, 1);
        } while (true);
        if (r != SNIB_ECANCELLED)
                atomic_fetch_add(&f->failed, 1);
        return NULL;
}

static void an_observer_is_told_while_it_waits(void **state)
{
        snib_client *c = open_as("leads"), *d = open_as("follows");
        snib_election *e = election_of(c, "followed", 1500 * wait_slow());
        struct follower f = {.election = election_of(d, "followed", 0)};
        snib_grant *g;

        assert_int_equal(pthread_create(&f.thread, NULL, follow, &f), 0);
        for (int i = 0; i < 3; i++) {
                g = campaign(e, 5000);
                assert_true(eventually(atomic_load(&f.term) == snib_grant_token(g), 20000));
                if (i == 2) {
                        /* Deposed: the leader learns it, and so do those who look on. */
                        assert_int_equal(snib_election_depose(f.election, NULL), 1);
                        assert_true(eventually(!snib_grant_valid(g), 20000));
                        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
                } else {
                        release(g);
                }
                assert_true(eventually(atomic_load(&f.term) == 0, 20000));
        }
        assert_true(eventually(snib_election_cancel(f.election) == 1, 20000));
        (void)pthread_join(f.thread, NULL);
        assert_int_equal(atomic_load(&f.failed), 0);
        assert_true(atomic_load(&f.changes) >= 6);
        assert_int_equal(snib_election_depose(f.election, NULL), 0);
        snib_election_free(e);
        snib_election_free(f.election);
        snib_close(c);
        snib_close(d);
}

static void an_observation_without_waiting(void **state)
{
        snib_client *c = open_mode("observes", SNIB_THREADS_NONE), *d = open_as("leads");
        snib_election *e = election_of(c, "asynchronously observed", 0),
                      *f = election_of(d, "asynchronously observed", 0);
        struct answer a = {0};
        snib_grant *g;

        ANSWERED(snib_election_leader_async(e, on_info, &a, NULL), 0);
        assert_int_equal(a.info.held, 0);
        atomic_store(&a.count, 0);
        assert_int_equal(snib_election_observe_async(e, 0, SNIB_FOREVER, on_info, &a, NULL), 0);
        assert_int_equal(snib_process(c), 0);
        g = campaign(f, 5000);
        loop_until(c, SNIB_THREADS_NONE, &a.count, 1);
        assert_int_equal(a.result, 1);
        assert_int_equal(a.info.held, 1);
        assert_int_equal(a.info.token, snib_grant_token(g));
        assert_int_equal(a.info.mine, 0);
        ANSWERED(snib_election_leader_async(e, on_info, &a, NULL), 1);
        assert_int_equal(a.info.kind, SNIB_KIND_ELECTION);
        assert_string_equal(a.info.label, "leads");
        assert_int_equal(a.info.token, snib_grant_token(g));
        ANSWERED(snib_election_observe_async(e, a.info.token, 20, on_info, &a, NULL), 0);
        assert_int_equal(snib_election_leader_async(e, NULL, NULL, NULL), SNIB_EINVAL);
        assert_int_equal(snib_election_leader_async(NULL, on_info, &a, NULL), SNIB_EINVAL);
        release(g);
        snib_election_free(e);
        snib_election_free(f);
        snib_close(c);
        snib_close(d);
}

static const struct conformance_test tests[] = {
    TEST(S12_one_leads_and_terms_rise, SNIB_CAP_ELECTION),
    TEST(observers_see_every_change_that_lasts, SNIB_CAP_ELECTION),
    TEST(an_observer_is_told_while_it_waits, SNIB_CAP_ELECTION),
    TEST(an_observation_without_waiting, SNIB_CAP_ELECTION),
};
const struct conformance_tests election_tests = TESTS(tests);
