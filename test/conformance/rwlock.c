/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Read-write locks: many readers or one writer, re-entry of both sides, the write side's own reads,
 * the downgrade, the refused upgrade, and whose turn it is.
 */

#include "kit.h"
#include <string.h>

/* Two clients with both sides of one name. */
struct sides {
        snib_client *a, *b;
        snib_rwlock *ra, *rb;
};

static struct sides sides_of(const char *name, int64_t lease_ms)
{
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = lease_ms};
        struct sides s = {.a = open_as("first"), .b = open_as("second")};

        assert_int_equal(snib_rwlock_new(s.a, name, &o, &s.ra, NULL), 0);
        assert_int_equal(snib_rwlock_new(s.b, name, &o, &s.rb, NULL), 0);
        return s;
}

static void sides_done(struct sides *s)
{
        snib_rwlock_free(s->ra);
        snib_rwlock_free(s->rb);
        snib_close(s->a);
        snib_close(s->b);
}

static void readers_share_and_a_writer_is_alone(void **state)
{
        struct sides s = sides_of("shared", 0);
        snib_lock *r = snib_rwlock_read(s.ra), *r2 = snib_rwlock_read(s.rb), *w = snib_rwlock_write(s.ra),
                  *w2 = snib_rwlock_write(s.rb);
        snib_grant *a = acquire(r, 0), *b = acquire(r2, 0), *c;
        struct snib_lock_info info = query(w);

        assert_string_equal(snib_lock_name(r), "shared");
        assert_true(snib_grant_valid(a) && snib_grant_valid(b));
        assert_true(snib_grant_token(a) > 0 && snib_grant_token(b) > 0);
        assert_int_equal(info.kind, SNIB_KIND_READ);
        assert_true(info.holders == 2 || info.holders == -1);
        assert_int_equal(query(r).mine, 1);
        release(a);
        refused(w, 0);
        assert_int_equal(query(w).held, 1);
        release(b);
        c = acquire(w, 5000);
        info = query(r2);
        assert_int_equal(info.kind, SNIB_KIND_WRITE);
        assert_string_equal(info.owner, snib_grant_owner(c));
        refused(r2, 0);
        refused(w2, 0);
        release(c);
        assert_int_equal(query(w2).held, 0);
        release(acquire(w2, 0));
        sides_done(&s);
}

static void both_sides_are_re_entrant(void **state)
{
        struct sides s = sides_of("again", 0);
        struct snib_scope held = SNIB_SCOPE_INIT, inner = SNIB_SCOPE_INIT;
        snib_lock *side[] = {snib_rwlock_read(s.ra), snib_rwlock_write(s.ra)};

        for (int i = 0; i < 2; i++) {
                snib_grant *g = acquire(side[i], 0);

                assert_ptr_equal(acquire(side[i], 1000), g);
                assert_int_equal(snib_grant_depth(g), 2);
                assert_int_equal(snib_lock_release(side[i], NULL), 0);
                refused(snib_rwlock_write(s.rb), 0);
                release(g);
        }
        assert_int_equal(snib_lock_release(side[1], NULL), SNIB_ENOTOWNER);
        SNIB_WITH_LOCK (held, side[0], 1000)
                SNIB_WITH_LOCK (inner, side[0], 1000)
                        assert_int_equal(snib_grant_depth(inner.grant), 2);
        release(acquire(snib_rwlock_write(s.rb), 5000));
        sides_done(&s);
}

static void F95_reads_under_the_own_write_in_every_order(void **state)
{
        struct sides s = sides_of("nested: with a colon", 0);
        snib_lock *r = snib_rwlock_read(s.ra), *w = snib_rwlock_write(s.ra), *r2 = snib_rwlock_read(s.rb),
                  *w2 = snib_rwlock_write(s.rb);

        for (int write_first = 0; write_first < 2; write_first++) {
                snib_grant *gw = acquire(w, 5000), *gr = acquire(r, 0);

                assert_ptr_not_equal(gw, gr);
                assert_true(snib_grant_valid(gw) && snib_grant_valid(gr));
                /* The writer holds the read side as well: no upgrade. */
                assert_ptr_equal(acquire(w, 0), gw);
                assert_int_equal(snib_grant_release(gw, NULL), 0);
                refused(r2, 0);
                release(write_first ? gw : gr);
                if (write_first) {
                        release(acquire(r2, 1000)); /* a reader among others now */
                        refused(w2, 0);
                        release(gr);
                } else {
                        refused(r2, 0);
                        release(gw);
                }
                release(acquire(w2, 5000));
        }
        sides_done(&s);
}

static void F96_an_upgrade_is_refused_at_once(void **state)
{
        struct sides s = sides_of("upgrade", 0);
        snib_lock *r = snib_rwlock_read(s.ra), *w = snib_rwlock_write(s.ra);
        snib_grant *g = acquire(r, 0), *none = NULL;
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t before = wait_now_ms();

        assert_int_equal(snib_lock_acquire(w, SNIB_FOREVER, &none, &err), SNIB_EUPGRADE);
        assert_true(wait_now_ms() - before < 2000 * wait_slow());
        assert_non_null(strstr(err.text, "upgrade"));
        assert_non_null(strstr(err.text, "would wait for itself"));
        assert_null(none);
        assert_int_equal(snib_error_class(SNIB_EUPGRADE), SNIB_CLASS_USAGE);
        assert_true(snib_grant_valid(g));
        /* After a downgrade it is one just the same. */
        release(g);
        g = acquire(w, 1000);
        snib_grant *read = acquire(r, 0);
        release(g);
        assert_int_equal(snib_lock_try(w, &none, NULL), SNIB_EUPGRADE);
        release(read);
        release(acquire(w, 1000));
        sides_done(&s);
}

static void F93_a_downgrade_lets_readers_in_and_no_writer(void **state)
{
        struct sides s = sides_of("downgrade", 0);
        int64_t best = INT64_MAX;

        for (int i = 0; i < 3; i++) {
                snib_grant *write = acquire(snib_rwlock_write(s.ra), 20000);
                snib_grant *read = acquire(snib_rwlock_read(s.ra), 0);
                struct waiter reader = {.lock = snib_rwlock_read(s.rb), .wait_ms = 20000};
                int64_t before;

                wait_begin(&reader);
                assert_true(eventually(query(snib_rwlock_read(s.ra)).waiters >= 1, 10000) || !(caps & SNIB_CAP_QUEUE));
                before = wait_now_ms();
                release(write);
                wait_end(&reader);
                assert_int_equal(reader.result, 1);
                assert_true(snib_grant_valid(read));
                refused(snib_rwlock_write(s.rb), 0);
                if (reader.at - before < best)
                        best = reader.at - before;
                release(read);
        }
        assert_in_range(best, 0, 300 * wait_slow()); /* a poll would take a second */
        sides_done(&s);
}

static void F96_a_waiting_writer_is_not_overtaken(void **state)
{
        struct sides s = sides_of("in turn", 0);
        snib_client *c = open_as("third");
        snib_rwlock *third;
        struct waiter writer = {.lock = snib_rwlock_write(s.rb), .wait_ms = 20000};
        snib_grant *g = acquire(snib_rwlock_read(s.ra), 0);

        assert_int_equal(snib_rwlock_new(c, "in turn", NULL, &third, NULL), 0);
        wait_begin(&writer);
        assert_true(eventually(query(snib_rwlock_read(s.ra)).waiters == 1, 10000));
        refused(snib_rwlock_read(third), 0);
        /* Whoever reads already is not kept out by it. */
        assert_ptr_equal(acquire(snib_rwlock_read(s.ra), 1000), g);
        assert_int_equal(snib_grant_release(g, NULL), 0);
        release(g);
        wait_end(&writer);
        assert_int_equal(writer.result, 1);
        release(acquire(snib_rwlock_read(third), 5000));
        snib_rwlock_free(third);
        snib_close(c);
        sides_done(&s);
}

static void a_side_is_forced_and_every_holder_of_it_told(void **state)
{
        struct sides s = sides_of("forced sides", 1500 * wait_slow());
        struct loss loss = {0};
        snib_grant *a = acquire(snib_rwlock_read(s.ra), 0), *b = acquire(snib_rwlock_read(s.rb), 0);

        assert_int_equal(snib_grant_on_loss(a, on_loss, &loss, NULL), 0);
        assert_int_equal(snib_grant_on_loss(b, on_loss, &loss, NULL), 0);
        assert_int_equal(snib_lock_force_release(snib_rwlock_write(s.ra), NULL), 0);
        assert_int_equal(snib_lock_force_release(snib_rwlock_read(s.ra), NULL), 1);
        assert_true(eventually(atomic_load(&loss.count) == 2, 20000));
        assert_int_equal(snib_grant_release(a, NULL), SNIB_ELOST);
        assert_int_equal(snib_grant_release(b, NULL), SNIB_ELOST);
        a = acquire(snib_rwlock_write(s.ra), 5000);
        b = acquire(snib_rwlock_read(s.ra), 0);
        assert_int_equal(snib_lock_force_release(snib_rwlock_write(s.rb), NULL), 1);
        assert_int_equal(query(snib_rwlock_read(s.rb)).held, 0);
        assert_true(eventually(!snib_grant_valid(a) && !snib_grant_valid(b), 20000));
        assert_int_equal(snib_grant_release(b, NULL), SNIB_ELOST);
        assert_int_equal(snib_grant_release(a, NULL), SNIB_ELOST);
        release(acquire(snib_rwlock_write(s.rb), 5000));
        sides_done(&s);
}

static void F94_a_reader_that_is_gone_is_not_kept_by_another(void **state)
{
        struct snib_lock_options fixed = {
            .size = sizeof(struct snib_lock_options), .lease_ms = 300 * wait_slow(), .fixed_lease = 1};
        struct sides s = sides_of("one reader gone", 600 * wait_slow());
        snib_rwlock *dying;
        snib_grant *kept = acquire(snib_rwlock_read(s.ra), 0), *gone;

        assert_int_equal(snib_rwlock_new(s.b, "one reader gone", &fixed, &dying, NULL), 0);
        gone = acquire(snib_rwlock_read(dying), 0);
        assert_true(eventually(!snib_grant_valid(gone), 20000));
        assert_int_equal(snib_grant_release(gone, NULL), SNIB_ELOST);
        /* The other one renews, and by that only its own. */
        assert_true(eventually(query(snib_rwlock_read(s.ra)).holders <= 1, 20000));
        assert_true(snib_grant_valid(kept));
        release(kept);
        release(acquire(snib_rwlock_write(s.rb), 5000));
        snib_rwlock_free(dying);
        sides_done(&s);
}

/* Writers change both halves; a reader that sees them differ was let in beside one. */
struct halves {
        struct sides sides;
        int left, right; /* plain: the lock is what protects them */
        atomic_int numbers, torn, written;
};

static void *halve(void *arg)
{
        struct halves *h = arg;
        int number = atomic_fetch_add(&h->numbers, 1);
        snib_rwlock *rw = number % 2 ? h->sides.ra : h->sides.rb;

        for (int i = 0; i < 40; i++) {
                struct snib_scope held = SNIB_SCOPE_INIT;
                bool writes = (i + number) % 4 == 0;

                SNIB_WITH_LOCK (held, writes ? snib_rwlock_write(rw) : snib_rwlock_read(rw), 60000) {
                        if (h->left != h->right)
                                atomic_fetch_add(&h->torn, 1);
                        if (writes) {
                                h->left++;
                                h->right++;
                                atomic_fetch_add(&h->written, 1);
                        }
                }
        }
        return NULL;
}

static void S10_readers_and_writers_in_a_crowd(void **state)
{
        struct halves h = {.sides = sides_of("halves", 0)};

        threads_run(8, halve, &h);
        assert_int_equal(atomic_load(&h.torn), 0);
        assert_int_equal(atomic_load(&h.written), 80);
        assert_int_equal(h.left, 80);
        sides_done(&h.sides);
}

static const struct conformance_test tests[] = {
    TEST(readers_share_and_a_writer_is_alone, SNIB_CAP_RWLOCK),
    TEST(both_sides_are_re_entrant, SNIB_CAP_RWLOCK),
    TEST(F95_reads_under_the_own_write_in_every_order, SNIB_CAP_RWLOCK),
    TEST(F96_an_upgrade_is_refused_at_once, SNIB_CAP_RWLOCK),
    TEST(F93_a_downgrade_lets_readers_in_and_no_writer, SNIB_CAP_RWLOCK | SNIB_CAP_DOWNGRADE),
    TEST(F96_a_waiting_writer_is_not_overtaken, SNIB_CAP_RWLOCK | SNIB_CAP_WRITER_IN_TURN),
    TEST(a_side_is_forced_and_every_holder_of_it_told, SNIB_CAP_RWLOCK),
    TEST(F94_a_reader_that_is_gone_is_not_kept_by_another, SNIB_CAP_RWLOCK),
    TEST(S10_readers_and_writers_in_a_crowd, SNIB_CAP_RWLOCK),
};
const struct conformance_tests rwlock_tests = TESTS(tests);
