/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model of the plain lock: what the exhaustive test (test/model) does not reach, because it
 * takes large numbers: limits, overflow, the length of a claim, what the replies say besides yes
 * and no.
 */

#include "model/record.h"
#include "unit.h"
#include <stdio.h>

struct fixture {
        struct snib__record record;
        struct snib__holder holder[1];
        struct snib__waiter queue[SNIB__WAITERS_MAX];
        struct snib__clock now;
        struct snib__reply reply;
        struct snib__tell tell[4];
        struct snib__change change;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        *state = f;
        if (!f)
                return -1;
        f->record.holder = f->holder;
        f->record.held_room = 1;
        f->record.queue = f->queue;
        f->record.queue_room = SNIB__WAITERS_MAX;
        f->change = (struct snib__change){.tell = f->tell, .tell_room = 4};
        f->now = (struct snib__clock){1000, 1700000000000000};
        return 0;
}

static int teardown(void **state)
{
        free(*state);
        return 0;
}

static struct snib__id id_of(int n)
{
        struct snib__id id = {{0}};

        (void)snprintf(id.text, sizeof(id.text), "c:%d", n);
        return id;
}

static enum snib__status apply(struct fixture *f, enum snib__verb verb, int n, int64_t lease_ms)
{
        const struct snib__who who = {.host = "h", .pid = n};
        struct snib__op op = {.verb = verb, .id = id_of(n), .lease_ms = lease_ms, .enqueue = true, .who = &who};

        snib__record_apply(&f->record, &op, f->now, &f->reply, &f->change);
        if (f->record.queued < 100) /* it is quadratic */
                assert_null(snib__record_check(&f->record));
        return f->reply.status;
}

static bool same(const struct snib__id *id, int n)
{
        struct snib__id other = id_of(n);

        return snib__id_equal(id, &other);
}

static bool told(const struct fixture *f, enum snib__tell_kind kind, int n)
{
        for (size_t i = 0; i < f->change.tells; i++)
                if (f->tell[i].kind == kind && same(&f->tell[i].id, n))
                        return true;
        return false;
}

static void tokens_rise(void **state)
{
        (void)state;
        assert_true(snib__token_next(0, 1700000000000000) == 1700000000000000);
        assert_true(snib__token_next(1700000000000000, 1700000000000000) == 1700000000000001);
        assert_true(snib__token_next(1700000000000005, 3) == 1700000000000006); /* the wall clock stepped back */
        assert_true(snib__token_next(0, -5) == 1);
        assert_true(snib__token_next(0, 0) == 1);
        assert_true(snib__token_next(INT64_MAX, 0) == INT64_MAX); /* no overflow, if a record says so */
}

static void ids_differ_where_they_differ(void **state)
{
        struct snib__id a = {{0}}, b;

        (void)state;
        memset(a.text, 'x', sizeof(a.text) - 1);
        b = a;
        assert_true(snib__id_equal(&a, &b));
        b.text[sizeof(b.text) - 2] = 'y';
        assert_false(snib__id_equal(&a, &b));
        b = a;
        b.text[5] = 0;
        assert_false(snib__id_equal(&a, &b));
}

static void busy_tells_everything(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 30000), SNIB__GRANTED);
        assert_true(f->reply.token == 1700000000000000 && f->reply.left_ms == 30000 && f->reply.held);
        assert_true(f->change.holders && !f->change.queue);
        f->now.lease_ms += 10;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 30000), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 30000), SNIB__BUSY);
        assert_true(same(&f->reply.holder.id, 1));
        assert_string_equal(f->reply.holder.who.host, "h");
        assert_int_equal(f->reply.holder.who.pid, 1);
        assert_int_equal(f->reply.holder.since_ms, 1700000000000);
        assert_int_equal(f->reply.left_ms, 29990);
        assert_int_equal(f->reply.position, 2);
        assert_int_equal(f->reply.waiters, 2);
        assert_true(f->reply.held && !f->reply.waiters_at_least);
        assert_true(!f->change.holders && f->change.queue);
        assert_int_equal(apply(f, SNIB__FORCE, 9, 0), SNIB__INFO);
        assert_true(f->reply.held && same(&f->reply.holder.id, 1)); /* what there was */
        assert_true(told(f, SNIB__TELL_ENDED, 1) && told(f, SNIB__TELL_GRANTED, 2));
        assert_int_equal(apply(f, SNIB__RENEW, 1, 30000), SNIB__GONE);
        assert_true(f->reply.held && same(&f->reply.holder.id, 2));
        assert_false(f->change.holders || f->change.queue);
}

static void claim_is_short_until_confirmed(void **state)
{
        struct fixture *f = *state;

        (void)apply(f, SNIB__ACQUIRE, 1, 30000);
        (void)apply(f, SNIB__ACQUIRE, 2, 30000);
        (void)apply(f, SNIB__ACQUIRE, 3, 700);
        (void)apply(f, SNIB__ACQUIRE, 4, 30000);
        assert_int_equal(apply(f, SNIB__RELEASE, 1, 0), SNIB__RELEASED);
        assert_false(told(f, SNIB__TELL_ENDED, 1)); /* its owner knows */
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(same(&f->reply.holder.id, 2));
        assert_int_equal(f->reply.left_ms, SNIB__CLAIM_MS);

        int64_t token = f->reply.token;

        f->now.lease_ms += 100;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 30000), SNIB__GRANTED); /* confirms */
        assert_true(f->reply.token == token);
        assert_int_equal(f->reply.left_ms, 30000);
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 0), SNIB__RELEASED);
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(same(&f->reply.holder.id, 3));
        assert_int_equal(f->reply.left_ms, 700); /* its own lease is shorter */
        f->now.lease_ms += 700;
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO); /* 3 never came */
        assert_true(told(f, SNIB__TELL_ENDED, 3) && told(f, SNIB__TELL_GRANTED, 4));
}

static void dead_waiters_cost_nothing_each(void **state)
{
        struct fixture *f = *state;

        (void)apply(f, SNIB__ACQUIRE, 0, 60000);
        for (int i = 1; i <= 64; i++)
                (void)apply(f, SNIB__ACQUIRE, i, 30000);
        f->now.lease_ms += SNIB__WAITER_LEASE_MS - 1;
        for (int i = 2; i <= 64; i += 2)
                assert_int_equal(apply(f, SNIB__ACQUIRE, i, 30000), SNIB__BUSY);
        f->now.lease_ms += 1; /* the odd ones have not been heard of for too long */
        assert_int_equal(apply(f, SNIB__RELEASE, 0, 0), SNIB__RELEASED);
        for (int i = 2; i <= 64; i += 2) {
                assert_true(told(f, SNIB__TELL_GRANTED, i));
                assert_int_equal(apply(f, SNIB__RELEASE, i, 0), SNIB__RELEASED);
        }
        assert_int_equal(f->record.held, 0);
}

static void queue_is_bounded(void **state)
{
        struct fixture *f = *state;

        f->record.queue_room = 2;
        for (int i = 0; i < 3; i++)
                (void)apply(f, SNIB__ACQUIRE, i, 30000);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 30000), SNIB__BUSY);
        assert_int_equal(f->reply.position, 0);
        assert_int_equal(f->reply.waiters, 2);
        assert_false(f->change.queue);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 30000), SNIB__BUSY); /* who is in stays in */
        assert_int_equal(f->reply.position, 2);
        f->record.queue_room = SNIB__WAITERS_MAX;
        for (int i = 3; i < SNIB__WAITERS_MAX + 1; i++)
                (void)apply(f, SNIB__ACQUIRE, i, 30000);
        assert_int_equal(f->reply.position, SNIB__WAITERS_MAX);
        (void)apply(f, SNIB__ACQUIRE, 5000, 30000);
        assert_int_equal(f->reply.position, 0);
        assert_int_equal(f->reply.waiters, SNIB__WAITERS_MAX);
        assert_null(snib__record_check(&f->record));
}

static void hand_over_makes_room_for_the_newcomer(void **state)
{
        struct fixture *f = *state;

        f->record.queue_room = 1;
        (void)apply(f, SNIB__ACQUIRE, 1, 100);
        (void)apply(f, SNIB__ACQUIRE, 2, 30000);
        f->now.lease_ms += 100;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 30000), SNIB__BUSY); /* it was free, but 2 was there before */
        assert_true(told(f, SNIB__TELL_ENDED, 1) && told(f, SNIB__TELL_GRANTED, 2));
        assert_true(same(&f->reply.holder.id, 2));
        assert_int_equal(f->reply.position, 1);
}

static void leases_do_not_overflow(void **state)
{
        struct fixture *f = *state;
        static const int64_t times[] = {0, 1000, INT64_MAX - 10, INT64_MIN, -1};
        static const int64_t leases[] = {INT64_MAX, INT64_MAX - 1, 1, 0, -1, INT64_MIN};

        for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++)
                for (size_t l = 0; l < sizeof(leases) / sizeof(leases[0]); l++) {
                        f->record.held = f->record.queued = 0;
                        f->record.family = SNIB__FAMILY_NONE;
                        f->now.lease_ms = times[t];
                        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, leases[l]), SNIB__GRANTED);
                        assert_true(f->reply.left_ms > 0);
                        assert_int_equal(apply(f, SNIB__RENEW, 1, leases[l]), SNIB__RENEWED);
                        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, leases[l]), SNIB__BUSY);
                        assert_int_equal(apply(f, SNIB__RELEASE, 1, leases[l]), SNIB__RELEASED);
                        assert_true(told(f, SNIB__TELL_GRANTED, 2));
                        assert_true(f->holder[0].seat.expires_ms > f->now.lease_ms);
                }
}

static void the_dead_are_buried(void **state)
{
        struct fixture *f = *state;
        struct snib__id one = id_of(1), two = id_of(2), nine = id_of(9);

        for (int i = 1; i <= 3; i++)
                (void)apply(f, SNIB__ACQUIRE, i, 30000);
        assert_false(snib__record_bury(&f->record, &nine, f->now, &f->change));
        assert_false(f->change.holders || f->change.queue);
        assert_true(snib__record_bury(&f->record, &two, f->now, &f->change));
        assert_true(!f->change.holders && f->change.queue);
        assert_true(snib__record_bury(&f->record, &one, f->now, &f->change));
        assert_true(told(f, SNIB__TELL_ENDED, 1) && told(f, SNIB__TELL_GRANTED, 3));
        assert_null(snib__record_check(&f->record));
        assert_int_equal(f->record.queued, 0);
}

/* Does this to a good record, whose check must then find something. */
#define BREAK(what)                                              \
        do {                                                     \
                what;                                            \
                assert_non_null(snib__record_check(&f->record)); \
                *f = good;                                       \
                assert_null(snib__record_check(&f->record));     \
        } while (0)

static void check_sees_broken_records(void **state)
{
        struct fixture *f = *state;
        static struct fixture good;

        for (int i = 1; i <= 3; i++)
                (void)apply(f, SNIB__ACQUIRE, i, 30000);
        good = *f;
        BREAK(f->record.token = -1);
        BREAK(f->record.token = 0);
        BREAK(f->record.held_room = 0);
        BREAK(f->record.queue_room = 1);
        BREAK(f->record.held = 0);
        BREAK(f->record.family = SNIB__FAMILY_NONE);
        BREAK(f->record.family = SNIB__FAMILY_RW);
        BREAK(f->record.family = (enum snib__family)99);
        BREAK(f->record.value = 1);
        BREAK(f->record.version = 1);
        BREAK(f->record.exists = true);
        BREAK(f->holder[0].seat.id = id_of(3));
        BREAK(f->holder[0].kind = SNIB_KIND_WRITE);
        BREAK(f->holder[0].kind = 1000);
        BREAK(f->holder[0].token = 0);
        BREAK(f->holder[0].n = 0);
        BREAK(f->holder[0].index = 1);
        BREAK(f->queue[0].seat.id = id_of(3));
        BREAK(f->queue[0].seat.id = (struct snib__id){{0}});
        BREAK(f->queue[1].kind = SNIB_KIND_LATCH);
        BREAK(f->queue[1].n = -1);
}

/* A re-entry that is executed late, after its hold has ended, must not take the lock for an id that
 * believes in its old token. */
static void F79_a_late_reentry_begins_no_hold(void **state)
{
        struct fixture *f = *state;
        struct snib__op again = {.verb = SNIB__ACQUIRE, .id = id_of(1), .lease_ms = 1000, .enqueue = true};

        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1000), SNIB__GRANTED);
        again.token = f->reply.token;
        snib__record_apply(&f->record, &again, f->now, &f->reply, &f->change);
        assert_int_equal(f->reply.status, SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__FORCE, 2, 1000), SNIB__INFO);
        snib__record_apply(&f->record, &again, f->now, &f->reply, &f->change);
        assert_int_equal(f->reply.status, SNIB__GONE);
        assert_false(f->reply.held);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1000), SNIB__GRANTED);
        snib__record_apply(&f->record, &again, f->now, &f->reply, &f->change);
        assert_int_equal(f->reply.status, SNIB__GONE);
        assert_true(f->reply.held);
        assert_int_equal(f->record.queued, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(tokens_rise),
            cmocka_unit_test(ids_differ_where_they_differ),
            cmocka_unit_test_setup_teardown(busy_tells_everything, setup, teardown),
            cmocka_unit_test_setup_teardown(F79_a_late_reentry_begins_no_hold, setup, teardown),
            cmocka_unit_test_setup_teardown(claim_is_short_until_confirmed, setup, teardown),
            cmocka_unit_test_setup_teardown(dead_waiters_cost_nothing_each, setup, teardown),
            cmocka_unit_test_setup_teardown(queue_is_bounded, setup, teardown),
            cmocka_unit_test_setup_teardown(hand_over_makes_room_for_the_newcomer, setup, teardown),
            cmocka_unit_test_setup_teardown(leases_do_not_overflow, setup, teardown),
            cmocka_unit_test_setup_teardown(the_dead_are_buried, setup, teardown),
            cmocka_unit_test_setup_teardown(check_sees_broken_records, setup, teardown),
        };

        return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
