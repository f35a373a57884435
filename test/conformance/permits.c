/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Permits that expire: limits, ids, leases, and what is told to whom.
 */

#include "kit.h"
#include <string.h>

static snib_permits *permits_of(snib_client *c, const char *name, int64_t lease_ms, int fixed)
{
        struct snib_lock_options o = {
            .size = sizeof(struct snib_lock_options), .lease_ms = lease_ms, .fixed_lease = fixed};
        snib_permits *p;

        assert_int_equal(snib_permits_new(c, name, &o, &p, NULL), 0);
        return p;
}

static snib_grant *take(snib_permits *p, int64_t count, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g = NULL;
        int r = snib_permits_acquire(p, count, wait_ms, &g, &err);

        if (r != 1)
                print_message("# permits: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
        return g;
}

static struct snib_permits_info look(snib_permits *p)
{
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;

        assert_int_equal(snib_permits_query(p, &info, NULL), 1);
        assert_int_equal(info.free + info.taken, info.limit);
        return info;
}

static void added(snib_permits *p, int64_t delta, int64_t left)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = -7;
        int r = snib_permits_add(p, delta, &n, &err);

        if (r != 1)
                print_message("# add: %d %s\n", r, err.text);
        assert_int_equal(r, 1);
        assert_int_equal(n, left);
}

static void refused_permits(snib_permits *p, int64_t count)
{
        snib_grant *none = NULL;

        assert_int_equal(snib_permits_try(p, count, &none, NULL), 0);
        assert_null(none);
}

static void permits_are_taken_all_or_none(void **state)
{
        snib_client *c = open_as("permits"), *d = open_as("permits too");
        snib_permits *p = permits_of(c, "permits", 0, 0), *q = permits_of(d, "permits", 0, 0);
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        snib_grant *a, *b;

        assert_int_equal(snib_permits_query(p, &info, NULL), 0);
        refused_permits(p, 1);
        assert_int_equal(snib_permits_set(p, 4, NULL), 1);
        assert_int_equal(snib_permits_set(q, 9, NULL), 0);
        a = take(p, 3, 0);
        assert_int_equal(snib_grant_permits(a), 3);
        assert_true(snib_grant_valid(a));
        assert_true(snib_grant_token(a) > 0);
        info = look(q);
        assert_int_equal(info.limit, 4);
        assert_int_equal(info.taken, 3);
        assert_in_range(info.next_expiry_ms, 1, SNIB_LEASE_DEFAULT_MS);
        refused_permits(q, 2);
        assert_int_equal(look(q).free, 1);
        /* The same thread again: an owner of its own, never a re-entry. */
        b = take(p, 1, 0);
        assert_ptr_not_equal(a, b);
        release(b);
        added(q, 2, 3);
        assert_int_equal(snib_permits_resize(q, 2, NULL), 1);
        info = look(q);
        assert_int_equal(info.free, -1);
        assert_int_equal(info.limit, 2);
        refused_permits(q, 1);
        release(a);
        assert_int_equal(look(q).free, 2);
        assert_int_equal(look(q).next_expiry_ms, -1);
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        assert_int_equal(snib_permits_delete(q, NULL), 0);
        snib_permits_free(p);
        snib_permits_free(q);
        snib_close(c);
        snib_close(d);
}

static void F100_a_raised_limit_wakes_who_waits(void **state)
{
        snib_client *c = open_as("waits"), *d = open_as("raises");
        snib_permits *p = permits_of(c, "raised", 0, 0), *q = permits_of(d, "raised", 0, 0);

        assert_int_equal(snib_permits_set(q, 0, NULL), 1);
        refused_permits(p, 1);
        added(q, 1, 1);
        release(take(p, 1, 20000));
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        snib_permits_free(p);
        snib_permits_free(q);
        snib_close(c);
        snib_close(d);
}

static void permits_have_ids_that_anybody_can_use(void **state)
{
        snib_client *c = open_as("takes"), *d = open_as("gives back");
        snib_permits *p = permits_of(c, "ids", 1500 * wait_slow(), 0), *q = permits_of(d, "ids", 0, 0);
        char id[3][SNIB_PERMIT_ID_MAX], foreign[SNIB_PERMIT_ID_MAX];
        const char *list[] = {id[0], id[1], foreign};
        struct snib_error err = SNIB_ERROR_INIT;
        struct loss loss = {0};
        snib_grant *g, *other;

        assert_int_equal(snib_permits_set(p, 4, NULL), 1);
        g = take(p, 3, 0);
        assert_int_equal(snib_grant_on_loss(g, on_loss, &loss, NULL), 0);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(snib_grant_permit_id(g, i, id[i]), 0);
                assert_int_equal(strlen(id[i]), 32);
                assert_true(i == 0 || strcmp(id[i - 1], id[i]) != 0);
        }
        assert_int_equal(snib_grant_permit_id(g, 3, foreign), SNIB_EINVAL);
        assert_int_equal(snib_grant_permit_id(g, -1, foreign), SNIB_EINVAL);
        memcpy(foreign, "00000000000000000000000000000001", 33);

        assert_int_equal(snib_permits_renew_id(q, id[2], 60000, NULL), 1);
        assert_int_equal(snib_permits_renew_id(q, foreign, 60000, &err), SNIB_ENOTOWNER);
        assert_non_null(strstr(err.text, "not out"));
        /* All or none. */
        assert_int_equal(snib_permits_release_ids(q, list, 3, &err), SNIB_ENOTOWNER);
        assert_int_equal(look(q).taken, 3);
        assert_int_equal(snib_permits_release_ids(q, list, 2, &err), 1);
        assert_int_equal(look(q).taken <= 1, 1);
        assert_int_equal(snib_permits_release_ids(q, list, 2, &err), SNIB_ENOTOWNER);
        /* Who took them learns it, and what is left of the grant is not kept for ever. */
        assert_true(eventually(atomic_load(&loss.count) == 1, 20000));
        assert_int_equal(loss.reason, SNIB_LOSS_GONE);
        assert_false(snib_grant_valid(g));
        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
        assert_true(eventually(look(q).taken == 0, 20000));
        other = take(q, 4, 1000);
        release(other);
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        snib_permits_free(p);
        snib_permits_free(q);
        snib_close(c);
        snib_close(d);
}

static void permits_expire_and_come_back(void **state)
{
        int64_t lease = 250 * wait_slow();
        snib_client *c = open_as("forgets"), *d = open_as("waits");
        snib_permits *p = permits_of(c, "expiring", lease, 1), *q = permits_of(d, "expiring", 0, 0);
        struct loss loss = {0};
        snib_grant *g, *next;

        assert_int_equal(snib_permits_set(p, 2, NULL), 1);
        g = take(p, 2, 0);
        assert_int_equal(snib_grant_on_loss(g, on_loss, &loss, NULL), 0);
        next = take(q, 2, 20 * lease + 20000);
        assert_false(snib_grant_valid(g));
        assert_true(snib_grant_token(next) > snib_grant_token(g));
        assert_true(eventually(atomic_load(&loss.count) == 1, 20000));
        assert_int_equal(loss.reason, SNIB_LOSS_EXPIRED);
        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
        assert_int_equal(look(q).taken, 2);
        release(next);
        assert_int_equal(look(q).free, 2);
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        snib_permits_free(p);
        snib_permits_free(q);
        snib_close(c);
        snib_close(d);
}

static void permits_are_kept_while_they_are_held(void **state)
{
        int64_t lease = 400 * wait_slow(), until;
        snib_client *c = open_as("keeps"), *d = open_as("looks");
        snib_permits *p = permits_of(c, "kept permits", lease, 0), *q = permits_of(d, "kept permits", lease, 0);
        snib_grant *g, *none = NULL;

        assert_int_equal(snib_permits_set(p, 3, NULL), 1);
        g = take(p, 2, 0);
        until = wait_now_ms() + 3 * lease; /* the passing of three leases is what is tested */
        while (wait_now_ms() < until) {
                assert_true(snib_grant_valid(g));
                assert_int_equal(snib_permits_acquire(q, 2, lease / 4, &none, NULL), 0);
        }
        assert_int_equal(snib_grant_renew(g, NULL), 1);
        release(g);
        assert_int_equal(look(q).free, 3);
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        snib_permits_free(p);
        snib_permits_free(q);
        snib_close(c);
        snib_close(d);
}

static void permits_that_are_forced_or_deleted_are_lost(void **state)
{
        snib_client *c = open_as("loses"), *d = open_as("forces");
        snib_permits *p = permits_of(c, "forced permits", 1500 * wait_slow(), 0),
                     *q = permits_of(d, "forced permits", 0, 0);

        for (int delete = 0; delete < 2; delete ++) {
                struct loss loss = {0};
                snib_grant *g;

                (void)snib_permits_set(p, 2, NULL);
                g = take(p, 1, 1000);
                assert_int_equal(snib_grant_on_loss(g, on_loss, &loss, NULL), 0);
                assert_int_equal(delete ? snib_permits_delete(q, NULL) : snib_permits_force_release(q, NULL), 1);
                assert_true(eventually(atomic_load(&loss.count) == 1, 20000));
                assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
                assert_int_equal(delete ? snib_permits_delete(q, NULL) : snib_permits_force_release(q, NULL), 0);
        }
        snib_permits_free(p);
        snib_permits_free(q);
        snib_close(c);
        snib_close(d);
}

struct limit {
        snib_client *clients[2];
        atomic_int numbers, in, most, took;
};

static void *stay_within(void *arg)
{
        struct limit *l = arg;
        int number = atomic_fetch_add(&l->numbers, 1);
        snib_permits *p = permits_of(l->clients[number % 2], "permits of a crowd", 0, 0);

        for (int i = 0; i < 30; i++) {
                int count = 1 + (i + number) % 2, now, most;
                snib_grant *g = NULL;

                if (snib_permits_acquire(p, count, 60000, &g, NULL) != 1)
                        break;
                now = atomic_fetch_add(&l->in, count) + count;
                most = atomic_load(&l->most);
                while (now > most && !atomic_compare_exchange_weak(&l->most, &most, now))
                        ;
                atomic_fetch_add(&l->took, 1);
                atomic_fetch_sub(&l->in, count);
                (void)snib_grant_release(g, NULL);
        }
        snib_permits_free(p);
        return NULL;
}

static void S8_no_more_permits_are_out_than_there_are(void **state)
{
        struct limit l = {.clients = {open_as("left"), open_as("right")}};
        snib_permits *p = permits_of(l.clients[0], "permits of a crowd", 0, 0);

        assert_int_equal(snib_permits_set(p, 3, NULL), 1);
        threads_run(8, stay_within, &l);
        assert_int_equal(atomic_load(&l.took), 8 * 30);
        assert_in_range(atomic_load(&l.most), 1, 3);
        assert_int_equal(look(p).free, 3);
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        snib_permits_free(p);
        snib_close(l.clients[0]);
        snib_close(l.clients[1]);
}

static void permits_are_made_and_described_without_waiting(void **state)
{
        snib_client *c = open_mode("loop", SNIB_THREADS_NONE);
        snib_permits *p = permits_of(c, "made in a loop", 0, 0);
        struct snib_error err = SNIB_ERROR_INIT;
        struct answer a = {0};
        snib_grant *g;

        ANSWERED(snib_describe_async(c, "made in a loop", 0, on_info, &a, NULL), 0);
        assert_int_equal(a.info.held, 0);
        ANSWERED(snib_permits_set_async(p, 5, on_value, &a, NULL), 1);
        ANSWERED(snib_permits_set_async(p, 6, on_value, &a, NULL), 0);
        g = take(p, 2, 0);
        ANSWERED(snib_describe_async(c, "made in a loop", 0, on_info, &a, NULL), 1);
        assert_int_equal(a.info.kind, SNIB_KIND_PERMITS);
        assert_int_equal(a.info.limit, 5);
        assert_int_equal(a.info.value, 3);
        assert_int_equal(snib_grant_release(g, NULL), 1);
        assert_int_equal(snib_permits_set_async(p, -1, on_value, &a, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "limit is -1"));
        assert_int_equal(snib_permits_set_async(p, 1, NULL, NULL, &err), SNIB_EINVAL);
        assert_non_null(strstr(err.text, "done"));
        assert_int_equal(snib_describe_async(c, "", 0, on_info, &a, NULL), SNIB_ENAME);
        assert_int_equal(snib_describe_async(NULL, "x", 0, on_info, &a, NULL), SNIB_EINVAL);
        assert_int_equal(snib_describe_async(c, "x", 0, NULL, NULL, NULL), SNIB_EINVAL);
        assert_int_equal(snib_permits_delete(p, NULL), 1);
        snib_permits_free(p);
        snib_close(c);
}

static const struct conformance_test tests[] = {
    TEST(permits_are_taken_all_or_none, SNIB_CAP_PERMITS),
    TEST(F100_a_raised_limit_wakes_who_waits, SNIB_CAP_PERMITS),
    TEST(permits_have_ids_that_anybody_can_use, SNIB_CAP_PERMITS),
    TEST(permits_expire_and_come_back, SNIB_CAP_PERMITS),
    TEST(permits_are_kept_while_they_are_held, SNIB_CAP_PERMITS),
    TEST(permits_that_are_forced_or_deleted_are_lost, SNIB_CAP_PERMITS),
    TEST(S8_no_more_permits_are_out_than_there_are, SNIB_CAP_PERMITS),
    TEST(permits_are_made_and_described_without_waiting, SNIB_CAP_PERMITS),
};
const struct conformance_tests permits_tests = TESTS(tests);
