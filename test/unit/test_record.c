/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model of every kind: one story after the other, as a client would live it, and the large
 * numbers that the exhaustive test (test/model) does not reach. The plain lock has a file of its
 * own, test_lock.c.
 */

#include "model/record.h"
#include "unit.h"
#include <snib/error.h>
#include <stdio.h>

#define ROOM 200
#define WALL 1700000000000000

struct fixture {
        struct snib__record record;
        struct snib__holder holder[ROOM];
        struct snib__waiter queue[ROOM];
        struct snib__done done[SNIB__DONES_MAX];
        struct snib__tell tell[ROOM];
        struct snib__clock now;
        struct snib__reply reply;
        struct snib__change change;
        int kind;    /* of the requests that follow */
        bool narrow; /* it has the room that the test gave it, not what the model asks for */
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        *state = f;
        if (!f)
                return -1;
        f->record = (struct snib__record){.holder = f->holder,
                                          .held_room = ROOM,
                                          .queue = f->queue,
                                          .queue_room = ROOM,
                                          .done = f->done,
                                          .dones_room = SNIB__DONES_MAX};
        f->now = (struct snib__clock){1000, WALL};
        f->change = (struct snib__change){.tell = f->tell, .tell_room = ROOM};
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

        (void)snprintf(id.text, sizeof(id.text), "00112233-4455-4667-8899-aabbccddeeff:%d", n);
        return id;
}

static struct snib__op op_of(const struct fixture *f, enum snib__verb verb, int id, int64_t n)
{
        return (struct snib__op){
            .verb = verb, .kind = f->kind, .id = id_of(id), .n = n, .lease_ms = 30000, .enqueue = true, .expected = -1};
}

/* As much as the model asks for, and no more. */
static void make_room(struct fixture *f, const struct snib__op *op)
{
        struct snib__record *r = &f->record;
        struct snib__room room = snib__record_room(r, op);

        assert_true(room.held <= ROOM && room.queued <= ROOM && room.dones <= SNIB__DONES_MAX && room.tells <= ROOM);
        r->held_room = room.held > r->held ? room.held : r->held;
        r->queue_room = room.queued > r->queued ? room.queued : r->queued;
        r->dones_room = room.dones > r->dones ? room.dones : r->dones;
        f->change.tell_room = room.tells;
}

static enum snib__status run(struct fixture *f, const struct snib__op *op)
{
        if (!f->narrow)
                make_room(f, op);
        snib__record_apply(&f->record, op, f->now, &f->reply, &f->change);
        assert_null(snib__record_check(&f->record));
        assert_true((f->reply.status == SNIB__FAILED) == (f->reply.error < 0));
        return f->reply.status;
}

static enum snib__status apply(struct fixture *f, enum snib__verb verb, int id, int64_t n)
{
        struct snib__op op = op_of(f, verb, id, n);

        return run(f, &op);
}

static bool told(const struct fixture *f, enum snib__tell_kind kind, int id)
{
        struct snib__id who = id_of(id);

        for (size_t i = 0; i < f->change.tells; i++)
                if (f->tell[i].kind == kind && snib__id_equal(&f->tell[i].id, &who))
                        return true;
        return false;
}

#define GRANTED(f, id) told(f, SNIB__TELL_GRANTED, id)
#define ENDED(f, id) told(f, SNIB__TELL_ENDED, id)

static void F96_readers_share_and_do_not_overtake_a_writer(void **state)
{
        struct fixture *f = *state;
        int64_t first;

        f->kind = SNIB_KIND_READ;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__GRANTED);
        first = f->reply.token;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__GRANTED);
        assert_true(f->reply.token > first); /* each its own */
        assert_int_equal(f->reply.holders, 2);
        f->kind = SNIB_KIND_WRITE;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 1), SNIB__BUSY);
        assert_int_equal(f->reply.position, 1);
        f->kind = SNIB_KIND_READ;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 1), SNIB__BUSY); /* does not overtake the writer */
        assert_int_equal(apply(f, SNIB__RELEASE, 1, 1), SNIB__RELEASED);
        assert_int_equal(f->change.tells, 0);
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 1), SNIB__RELEASED);
        assert_true(GRANTED(f, 3) && !GRANTED(f, 4));
        f->kind = SNIB_KIND_ANY;
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(f->reply.held && f->reply.kind == SNIB_KIND_WRITE && f->reply.waiters == 1);
        f->kind = SNIB_KIND_READ;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 5, 1), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__RELEASE, 3, 1), SNIB__RELEASED);
        assert_true(GRANTED(f, 4) && GRANTED(f, 5)); /* in one step */
        assert_int_equal(f->record.queued, 0);
}

static void F93_a_downgrade_has_no_gap_and_lets_readers_in(void **state)
{
        struct fixture *f = *state;
        struct snib__op under;
        int64_t token;

        f->kind = SNIB_KIND_WRITE;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__GRANTED);
        f->kind = SNIB_KIND_READ;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__BUSY);
        under = op_of(f, SNIB__ACQUIRE, 3, 1);
        under.under = id_of(1);
        assert_int_equal(run(f, &under), SNIB__GRANTED); /* past the queue */
        token = f->reply.token;
        under.id = id_of(4);
        under.under = id_of(3);
        assert_int_equal(run(f, &under), SNIB__BUSY); /* that is no writer */
        f->kind = SNIB_KIND_WRITE;
        assert_int_equal(apply(f, SNIB__RELEASE, 1, 1), SNIB__RELEASED);
        assert_true(GRANTED(f, 2) && GRANTED(f, 4));
        f->kind = SNIB_KIND_READ;
        assert_int_equal(apply(f, SNIB__RENEW, 3, 1), SNIB__RENEWED);
        assert_true(f->reply.token == token);
        f->kind = SNIB_KIND_WRITE;
        assert_int_equal(apply(f, SNIB__RENEW, 1, 1), SNIB__GONE);
        assert_true(f->reply.held); /* taken: readers are in */
}

/* Neither its owner's later requests nor its owner's death end it. */
static void a_hold_that_was_left_ends_with_its_lease(void **state)
{
        static const int kinds[] = {SNIB_KIND_LOCK,     SNIB_KIND_FAIR,  SNIB_KIND_FENCED, SNIB_KIND_SPIN,
                                    SNIB_KIND_ELECTION, SNIB_KIND_WRITE, SNIB_KIND_READ};
        struct fixture *f = *state;
        struct snib__op leave;
        struct snib__id id;

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                f->kind = kinds[i];
                assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__GRANTED);
                leave = op_of(f, SNIB__RENEW, 1, 1);
                leave.leave = true;
                leave.lease_ms = 5000;
                for (int repeated = 0; repeated < 2; repeated++)
                        assert_int_equal(run(f, &leave), SNIB__RENEWED);
                assert_int_equal(f->record.held, 1);
                assert_true(snib__id_is_left(&f->holder[0].seat.id, &leave.id));
                id = leave.id;
                assert_false(snib__record_bury(&f->record, &id, f->now, &f->change));
                assert_int_equal(apply(f, SNIB__RENEW, 1, 1), SNIB__GONE);
                assert_int_equal(apply(f, SNIB__RELEASE, 1, 1), SNIB__GONE);
                f->kind = kinds[i] == SNIB_KIND_READ ? SNIB_KIND_WRITE : kinds[i];
                assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__BUSY);
                assert_int_equal(f->reply.left_ms, 5000);
                f->now.lease_ms += 4999;
                assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__BUSY);
                f->now.lease_ms += 1;
                assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__GRANTED);
                assert_int_equal(run(f, &leave), SNIB__GONE);
                assert_int_equal(apply(f, SNIB__RELEASE, 2, 1), SNIB__RELEASED);
        }
}

static void permits_that_were_left_end_with_their_lease(void **state)
{
        struct fixture *f = *state;
        struct snib__op leave;

        f->kind = SNIB_KIND_PERMITS;
        assert_int_equal(apply(f, SNIB__SET, 9, 3), SNIB__DONE);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 2), SNIB__GRANTED);
        leave = op_of(f, SNIB__RENEW, 1, 2);
        leave.leave = true;
        leave.lease_ms = 5000;
        for (int repeated = 0; repeated < 2; repeated++)
                assert_int_equal(run(f, &leave), SNIB__RENEWED);
        assert_int_equal(apply(f, SNIB__RELEASE, 1, 2), SNIB__GONE);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__BUSY);
        f->now.lease_ms += 5000;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__GRANTED);
}

static void F94_a_dead_reader_ends_with_its_own_lease(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_READ;
        (void)apply(f, SNIB__ACQUIRE, 1, 1);
        (void)apply(f, SNIB__ACQUIRE, 2, 1);
        f->kind = SNIB_KIND_WRITE;
        for (int i = 0; i < 9; i++) {
                assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 1), SNIB__BUSY);
                f->now.lease_ms += SNIB__WAITER_LEASE_MS - 1;
                assert_int_equal(apply(f, SNIB__RENEW, 2, 1), SNIB__RENEWED);
        }
        assert_true(f->record.held == 1 && f->record.queued == 1); /* 1 is gone after 30 s, though 2 lives */
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 1), SNIB__RELEASED);
        assert_true(GRANTED(f, 3));
}

/* A read within a write, in either order of release: every hold ends once, and no writer comes
 * between. */
static void F95_nested_holds_end_in_any_order(void **state)
{
        struct fixture *f = *state;

        for (int first = 1; first <= 2; first++) {
                struct snib__op under;

                f->kind = SNIB_KIND_WRITE;
                assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__GRANTED);
                assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 1), SNIB__BUSY);
                f->kind = SNIB_KIND_READ;
                under = op_of(f, SNIB__ACQUIRE, 2, 1);
                under.under = id_of(1);
                assert_int_equal(run(f, &under), SNIB__GRANTED);
                assert_int_equal(apply(f, SNIB__RELEASE, first, 1), SNIB__RELEASED);
                assert_int_equal(apply(f, SNIB__RELEASE, first, 1), SNIB__GONE);
                assert_false(GRANTED(f, 3));
                assert_int_equal(apply(f, SNIB__RENEW, 3 - first, 1), SNIB__RENEWED);
                assert_int_equal(apply(f, SNIB__RELEASE, 3 - first, 1), SNIB__RELEASED);
                assert_true(GRANTED(f, 3));
                assert_int_equal(apply(f, SNIB__RELEASE, 3, 1), SNIB__RELEASED);
        }
}

static void each_side_is_forced_by_itself(void **state)
{
        struct fixture *f = *state;
        struct snib__op under;

        f->kind = SNIB_KIND_WRITE;
        (void)apply(f, SNIB__ACQUIRE, 1, 1);
        f->kind = SNIB_KIND_READ;
        under = op_of(f, SNIB__ACQUIRE, 2, 1);
        under.under = id_of(1);
        assert_int_equal(run(f, &under), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__FORCE, 9, 1), SNIB__INFO);
        assert_true(!f->reply.held && f->record.held == 2);
        f->kind = SNIB_KIND_WRITE;
        assert_int_equal(apply(f, SNIB__FORCE, 9, 1), SNIB__INFO);
        assert_true(f->reply.held && ENDED(f, 1) && ENDED(f, 2) && f->record.held == 0);
        f->kind = SNIB_KIND_READ;
        (void)apply(f, SNIB__ACQUIRE, 3, 1);
        (void)apply(f, SNIB__ACQUIRE, 4, 1);
        f->kind = SNIB_KIND_WRITE;
        assert_int_equal(apply(f, SNIB__FORCE, 9, 1), SNIB__INFO);
        assert_true(!f->reply.held && f->record.held == 2);
        f->kind = SNIB_KIND_READ;
        assert_int_equal(apply(f, SNIB__FORCE, 9, 1), SNIB__INFO);
        assert_true(f->reply.held && f->reply.holders == 2 && ENDED(f, 3) && ENDED(f, 4));
        assert_int_equal(apply(f, SNIB__RENEW, 3, 1), SNIB__GONE);
        assert_false(f->reply.held);
}

static void a_semaphore_is_taken_once_and_given_back_once(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_SEMAPHORE;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__BUSY); /* it does not exist */
        assert_int_equal(apply(f, SNIB__RELEASE, 1, 1), SNIB__RELEASED);
        assert_int_equal(apply(f, SNIB__SET, 2, 3), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == 3);
        assert_int_equal(apply(f, SNIB__SET, 3, 8), SNIB__DONE);
        assert_true(!f->reply.applied && f->reply.value == 3);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 2), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 2), SNIB__GRANTED);
        assert_int_equal(f->reply.value, 1);
        f->now.lease_ms += SNIB__DONE_MS - 1;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 2), SNIB__GRANTED);
        assert_int_equal(f->reply.value, 1);
        assert_int_equal(apply(f, SNIB__RELEASE, 4, 2), SNIB__RELEASED);
        assert_int_equal(apply(f, SNIB__RELEASE, 4, 2), SNIB__GONE);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 2), SNIB__BUSY); /* a copy that was late */
        assert_int_equal(f->record.queued, 0);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__BUSY); /* also of one that only waited */
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(f->reply.held && f->reply.value == 3);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 5, 2), SNIB__GRANTED);
        f->now.lease_ms += SNIB__DONE_MS;
        assert_int_equal(apply(f, SNIB__RELEASE, 5, 2), SNIB__GONE); /* forgotten: they stay taken */
        assert_int_equal(f->record.value, 1);
        assert_int_equal(f->record.held, 0);
}

static void a_semaphores_waiters_are_served_in_order(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_SEMAPHORE;
        (void)apply(f, SNIB__SET, 1, 1);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 1), SNIB__BUSY); /* who waits for many is not starved */
        assert_int_equal(f->reply.position, 2);
        assert_int_equal(apply(f, SNIB__ADD, 4, 2), SNIB__DONE);
        assert_true(f->reply.value == 3 && GRANTED(f, 2) && GRANTED(f, 3));
        assert_int_equal(f->record.value, 0);
        f->now.lease_ms += 10;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__GRANTED); /* claims; 3 never comes */
        f->now.lease_ms += SNIB__CLAIM_MS - 10;
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_int_equal(f->reply.value, 1);
        assert_true(ENDED(f, 3) && !ENDED(f, 2));
}

static void a_busy_semaphore_forgets_the_oldest(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_SEMAPHORE;
        (void)apply(f, SNIB__SET, 1, 1000);
        for (int i = 0; i < SNIB__DONES_MAX + 1; i++)
                assert_int_equal(apply(f, SNIB__ACQUIRE, 10 + i, 1), SNIB__GRANTED);
        assert_int_equal(f->record.held, SNIB__DONES_MAX);
        assert_int_equal(apply(f, SNIB__RELEASE, 10, 1), SNIB__GONE);
        assert_int_equal(apply(f, SNIB__RELEASE, 11, 1), SNIB__RELEASED);
        assert_int_equal(f->record.value, 1000 - SNIB__DONES_MAX);
        f->narrow = true;
        f->record.held_room = f->record.held; /* no room beside memories */
        assert_int_equal(apply(f, SNIB__ACQUIRE, 500, 1), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__RELEASE, 500, 1), SNIB__RELEASED);
}

static void numbers_are_changed_once(void **state)
{
        struct fixture *f = *state;
        struct snib__op op;

        f->kind = SNIB_KIND_SEMAPHORE;
        op = op_of(f, SNIB__ADD, 1, 2);
        op.if_exists = true;
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(!f->reply.applied && f->record.family == SNIB__FAMILY_NONE);
        op = op_of(f, SNIB__ADD, 2, 2);
        assert_int_equal(run(f, &op), SNIB__DONE); /* makes it */
        assert_true(f->reply.applied && f->reply.value == 2);
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == 2 && !f->change.record);
        assert_int_equal(apply(f, SNIB__ADD, 3, -5), SNIB__DONE);
        assert_int_equal(f->reply.value, -3);
        assert_int_equal(apply(f, SNIB__DRAIN, 4, 0), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == 0 && f->record.value == -3);
        assert_int_equal(apply(f, SNIB__ADD, 5, 10), SNIB__DONE);
        assert_int_equal(apply(f, SNIB__DRAIN, 6, 0), SNIB__DONE);
        assert_true(f->reply.value == 7 && f->record.value == 0);
        assert_int_equal(apply(f, SNIB__DRAIN, 6, 0), SNIB__DONE);
        assert_int_equal(f->reply.value, 7);
        assert_int_equal(apply(f, SNIB__DELETE, 7, 0), SNIB__DONE);
        assert_true(f->reply.applied && f->record.family == SNIB__FAMILY_NONE && !snib__record_idle(&f->record));
        f->kind = SNIB_KIND_LOCK; /* the name is free, and the memory is in nobody's way */
        assert_int_equal(apply(f, SNIB__ACQUIRE, 8, 1), SNIB__GRANTED);
        f->kind = SNIB_KIND_SEMAPHORE;
        assert_int_equal(apply(f, SNIB__DELETE, 7, 0), SNIB__DONE);
        assert_true(f->reply.applied && f->record.held == 1);
        assert_int_equal(apply(f, SNIB__DELETE, 9, 0), SNIB__FAILED);
        assert_int_equal(f->reply.error, SNIB_EKIND);
}

static void numbers_stay_in_their_range(void **state)
{
        struct fixture *f = *state;
        static const struct {
                int kind;
                enum snib__verb verb;
                int64_t n;
        } bad[] = {
            {SNIB_KIND_SEMAPHORE, SNIB__SET, -1},
            {SNIB_KIND_SEMAPHORE, SNIB__SET, SNIB__NUMBER_MAX + 1},
            {SNIB_KIND_SEMAPHORE, SNIB__ADD, INT64_MAX},
            {SNIB_KIND_SEMAPHORE, SNIB__ADD, INT64_MIN},
            {SNIB_KIND_PERMITS, SNIB__RESIZE, -1},
            {SNIB_KIND_PERMITS, SNIB__ADD, -1},
            {SNIB_KIND_LATCH, SNIB__SET, 0},
            {SNIB_KIND_LATCH, SNIB__ADD, 1},
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                f->kind = bad[i].kind;
                assert_int_equal(apply(f, bad[i].verb, 1, bad[i].n), SNIB__FAILED);
                assert_int_equal(f->reply.error, SNIB_ELIMIT);
                assert_true(snib__record_idle(&f->record));
        }
        f->kind = SNIB_KIND_SEMAPHORE;
        (void)apply(f, SNIB__SET, 2, SNIB__NUMBER_MAX);
        assert_int_equal(apply(f, SNIB__ADD, 3, 1), SNIB__FAILED);
        assert_int_equal(f->reply.error, SNIB_ELIMIT);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 2), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__ADD, 5, 2), SNIB__DONE);
        assert_int_equal(apply(f, SNIB__RELEASE, 4, 2), SNIB__RELEASED);
        assert_true(f->record.value == SNIB__NUMBER_MAX);
}

static void only_so_many_requests_are_remembered(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_SEMAPHORE;
        for (int i = 0; i < SNIB__DONES_MAX + 1; i++)
                assert_int_equal(apply(f, SNIB__ADD, i, 1), SNIB__DONE);
        assert_int_equal(f->record.dones, SNIB__DONES_MAX);
        assert_int_equal(apply(f, SNIB__ADD, 1, 1), SNIB__DONE);
        assert_int_equal(f->record.value, SNIB__DONES_MAX + 1);
        f->now.lease_ms += SNIB__DONE_MS;
        assert_int_equal(apply(f, SNIB__QUERY, 999, 1), SNIB__INFO);
        assert_true(f->record.dones == 0 && f->change.dones);
}

static void a_semaphore_vanishes_after_its_time(void **state)
{
        struct fixture *f = *state;
        struct snib__op op;

        f->kind = SNIB_KIND_SEMAPHORE;
        op = op_of(f, SNIB__SET, 1, 2);
        op.ttl_ms = 500;
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 1), SNIB__BUSY);
        assert_true(snib__record_due(&f->record) == 1500);
        f->now.lease_ms += 500;
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(!f->reply.held && f->reply.value == -1 && f->reply.waiters == 1);
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 2), SNIB__GONE); /* gives nothing back to the next one */
        assert_int_equal(apply(f, SNIB__SET, 4, 1), SNIB__DONE);
        assert_true(f->reply.applied && GRANTED(f, 3));
}

static void F99_permits_are_all_or_none(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_PERMITS;
        (void)apply(f, SNIB__SET, 1, 3);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__GRANTED);
        assert_true(f->reply.token > 0 && f->reply.value == 1 && f->reply.limit == 3 && f->reply.holders == 2);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 2), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 1), SNIB__BUSY);
        assert_int_equal(f->record.held, 2);
        f->now.lease_ms += 4000;
        assert_int_equal(apply(f, SNIB__RENEW, 2, 2), SNIB__RENEWED);
        assert_int_equal(f->reply.left_ms, 30000);
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 2), SNIB__RELEASED);
        assert_true(GRANTED(f, 3) && GRANTED(f, 4) && f->record.held == 3);
        f->now.lease_ms += SNIB__CLAIM_MS;
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(ENDED(f, 3) && ENDED(f, 4) && f->change.tells == 2);
        assert_true(f->reply.held && f->reply.holders == 0 && f->reply.value == 3 && f->reply.left_ms == -1);
}

static void F97_permits_go_by_id_and_once(void **state)
{
        struct fixture *f = *state;
        struct snib__id hold = id_of(2);
        struct snib__op op;
        char ids[3][33];

        f->kind = SNIB_KIND_PERMITS;
        (void)apply(f, SNIB__RESIZE, 1, 4);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 2), SNIB__GRANTED);
        assert_true(snib__permit_id(&hold, 0, ids[0]) && snib__permit_id(&hold, 1, ids[1]));
        memcpy(ids[2], ids[0], sizeof(ids[0]));
        op = op_of(f, SNIB__RELEASE, 3, 0);
        op.permits = (const char(*)[33])ids;
        op.permit_count = 3;
        assert_int_equal(run(f, &op), SNIB__GONE); /* one of them twice */
        ids[2][0] = 'f';
        op.id = id_of(30);
        assert_int_equal(run(f, &op), SNIB__GONE); /* a foreign one */
        assert_int_equal(f->record.held, 2);
        op.permit_count = 1;
        assert_int_equal(run(f, &op), SNIB__GONE); /* that request was answered */
        op.id = id_of(31);
        assert_int_equal(run(f, &op), SNIB__RELEASED);
        assert_true(f->record.held == 1 && ENDED(f, 2));
        assert_int_equal(run(f, &op), SNIB__RELEASED); /* repeated */
        assert_int_equal(f->record.held, 1);
        op.id = id_of(4);
        assert_int_equal(run(f, &op), SNIB__GONE); /* anew */
        assert_int_equal(apply(f, SNIB__RENEW, 2, 2), SNIB__GONE);
        assert_false(f->reply.held);
        op = op_of(f, SNIB__RENEW, 5, 0);
        op.permits = (const char(*)[33]) & ids[1];
        op.permit_count = 1;
        op.lease_ms = 700;
        assert_int_equal(run(f, &op), SNIB__RENEWED);
        assert_int_equal(f->record.holder[0].seat.expires_ms, f->now.lease_ms + 700);
        op.lease_ms = 0; /* for ever */
        assert_int_equal(run(f, &op), SNIB__RENEWED);
        assert_true(f->record.holder[0].seat.expires_ms == INT64_MAX);
}

static void F100_a_lowered_limit_takes_nothing_away(void **state)
{
        struct fixture *f = *state;

        f->kind = SNIB_KIND_PERMITS;
        (void)apply(f, SNIB__SET, 1, 3);
        (void)apply(f, SNIB__ACQUIRE, 2, 3);
        assert_int_equal(apply(f, SNIB__RESIZE, 3, 1), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == -2 && f->record.held == 3);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 1), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__ADD, 5, 3), SNIB__DONE);
        assert_true(f->reply.value == 1 && GRANTED(f, 4));
        assert_int_equal(apply(f, SNIB__FORCE, 9, 0), SNIB__INFO);
        assert_true(f->reply.held && f->reply.holders == 4 && ENDED(f, 2) && ENDED(f, 4));
        assert_int_equal(apply(f, SNIB__ACQUIRE, 6, 1), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__DELETE, 7, 0), SNIB__DONE);
        assert_true(f->reply.applied && ENDED(f, 6) && f->record.family == SNIB__FAMILY_NONE);
}

static void F102_F103_a_latch_counts_once_and_lets_all_in(void **state)
{
        struct fixture *f = *state;
        struct snib__op down;

        f->kind = SNIB_KIND_LATCH;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__GRANTED); /* open: there is none */
        assert_int_equal(apply(f, SNIB__SET, 2, 3), SNIB__DONE);
        assert_int_equal(apply(f, SNIB__SET, 3, 5), SNIB__DONE);
        assert_true(!f->reply.applied && f->reply.value == 3);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 1), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 5, 1), SNIB__BUSY);
        down = op_of(f, SNIB__ADD, 6, -2);
        assert_int_equal(run(f, &down), SNIB__DONE);
        assert_int_equal(run(f, &down), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == 1);
        assert_int_equal(apply(f, SNIB__ADD, 7, -2), SNIB__DONE);
        assert_true(f->reply.value == 0 && GRANTED(f, 4) && GRANTED(f, 5));
        assert_true(f->record.family == SNIB__FAMILY_NONE && f->record.queued == 0);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 1), SNIB__GRANTED);
        assert_int_equal(apply(f, SNIB__ADD, 8, -1), SNIB__DONE);
        assert_true(!f->reply.applied && f->reply.value == 0);
        assert_int_equal(apply(f, SNIB__SET, 10, 1), SNIB__DONE);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 11, 1), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__DELETE, 12, 1), SNIB__DONE);
        assert_true(f->reply.applied && GRANTED(f, 11));
}

static void a_register_is_written_by_version(void **state)
{
        struct fixture *f = *state;
        struct snib__op op;
        int64_t version;

        f->kind = SNIB_KIND_REGISTER;
        op = op_of(f, SNIB__WRITE, 1, 0);
        op.data = "one";
        op.data_length = 3;
        op.expected = 7;
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(!f->reply.applied && f->reply.value == 0 && f->record.family == SNIB__FAMILY_NONE);
        op.id = id_of(2);
        op.expected = 0;
        assert_int_equal(run(f, &op), SNIB__DONE);
        version = f->reply.value;
        assert_true(f->reply.applied && version > 0 && f->record.data == op.data);
        assert_int_equal(run(f, &op), SNIB__DONE); /* repeated */
        assert_true(f->reply.applied && f->reply.value == version && !f->change.record);
        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
        assert_true(f->reply.held && f->reply.token == version && f->reply.value == version);
        assert_memory_equal(f->reply.data, "one", 3);
        op.id = id_of(3);
        op.expected = version;
        f->now.wall_us -= 1000000; /* the wall clock stepped back */
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == version + 1);
        op = op_of(f, SNIB__DELETE, 4, 0);
        op.expected = version;
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(!f->reply.applied && f->reply.value == version + 1);
        op.id = id_of(5);
        op.expected = version + 1;
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == 0 && f->record.data == NULL);
        op = op_of(f, SNIB__WRITE, 6, 0); /* any version, and no bytes at all */
        assert_int_equal(run(f, &op), SNIB__DONE);
        assert_true(f->reply.applied && f->reply.value == version + 2);
}

static void observers_hear_of_the_first_change(void **state)
{
        struct fixture *f = *state;
        struct snib__op watch;
        int64_t term;

        f->kind = SNIB_KIND_ELECTION;
        watch = op_of(f, SNIB__OBSERVE, 1, 0);
        assert_int_equal(run(f, &watch), SNIB__BUSY); /* nobody leads, as it knew */
        assert_true(f->reply.waiters == 0 && f->reply.position == 0);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__GRANTED); /* it is in nobody's way */
        term = f->reply.token;
        assert_true(GRANTED(f, 1) && f->record.queued == 0);
        assert_int_equal(run(f, &watch), SNIB__INFO);
        assert_true(f->reply.held && f->reply.token == term);
        watch.token = term;
        assert_int_equal(run(f, &watch), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 1), SNIB__BUSY);
        assert_int_equal(f->reply.position, 1);
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 1), SNIB__RELEASED);
        assert_true(GRANTED(f, 1) && GRANTED(f, 3));
        assert_int_equal(run(f, &watch), SNIB__INFO);
        watch.token = f->reply.token;
        assert_int_equal(run(f, &watch), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__RELEASE, 1, 1), SNIB__RELEASED); /* looks no longer */
        assert_int_equal(f->record.queued, 0);
        watch.enqueue = false;
        assert_int_equal(run(f, &watch), SNIB__BUSY);
        assert_int_equal(f->record.queued, 0);
}

static void kinds_do_not_mix(void **state)
{
        struct fixture *f = *state;
        static const int kinds[] = {SNIB_KIND_LOCK,  SNIB_KIND_READ,  SNIB_KIND_SEMAPHORE, SNIB_KIND_PERMITS,
                                    SNIB_KIND_LATCH, SNIB_KIND_WRITE, SNIB_KIND_REGISTER};

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                bool number = snib__kind(kinds[i])->anonymous;
                enum snib__verb verb = kinds[i] == SNIB_KIND_REGISTER ? SNIB__WRITE
                                       : number                       ? SNIB__SET
                                                                      : SNIB__ACQUIRE;

                f->kind = kinds[i];
                assert_true(apply(f, verb, 10 * (int)i, 1) != SNIB__FAILED);
                for (size_t j = 0; j < sizeof(kinds) / sizeof(kinds[0]); j++) {
                        bool same = snib__family_of(kinds[j]) == snib__family_of(kinds[i]);

                        f->kind = kinds[j];
                        assert_int_equal(apply(f, SNIB__QUERY, 9, 0), same ? SNIB__INFO : SNIB__FAILED);
                        if (same)
                                continue;
                        assert_int_equal(f->reply.error, SNIB_EKIND);
                        assert_non_null(strstr(f->reply.error_text, "in use by"));
                        assert_false(f->change.record || f->change.queue || f->change.holders || f->change.dones);
                        assert_int_equal(apply(f, SNIB__ACQUIRE, 5, 1), SNIB__FAILED);
                        assert_int_equal(apply(f, SNIB__FORCE, 5, 1), SNIB__FAILED);
                }
                f->kind = SNIB_KIND_ANY;
                assert_int_equal(apply(f, SNIB__QUERY, 9, 0), SNIB__INFO);
                assert_int_equal(f->reply.kind, kinds[i]);
                f->kind = kinds[i];
                (void)apply(f, number ? SNIB__DELETE : SNIB__RELEASE, 10 * (int)i + number, 1);
                assert_int_equal(f->record.family, SNIB__FAMILY_NONE);
        }
        f->kind = SNIB_KIND_FENCED; /* locks of all kinds are one family */
        assert_int_equal(apply(f, SNIB__ACQUIRE, 100, 1), SNIB__GRANTED);
        f->kind = SNIB_KIND_SPIN;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 101, 1), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__QUERY, 101, 1), SNIB__INFO);
        assert_int_equal(f->reply.kind, SNIB_KIND_FENCED);
}

/* Not the caller's bug: a newer client may ask an older server. */
static void what_nobody_knows_is_refused_and_changes_nothing(void **state)
{
        static const struct {
                int kind;
                enum snib__verb verb;
        } odd[] = {
            {SNIB_KIND_COUNTER, SNIB__ACQUIRE},
            {SNIB_KIND_COUNTER, SNIB__QUERY},
            {1000, SNIB__ACQUIRE},
            {-2, SNIB__FORCE},
            {INT32_MAX, SNIB__QUERY},
            {SNIB_KIND_ANY, SNIB__ACQUIRE},
            {SNIB_KIND_ANY, SNIB__DELETE},
            {SNIB_KIND_LOCK, SNIB__SET},
            {SNIB_KIND_LOCK, 0},
            {SNIB_KIND_LOCK, 33},
            {SNIB_KIND_SEMAPHORE, SNIB__RESIZE},
            {SNIB_KIND_REGISTER, SNIB__ADD},
        };
        struct fixture *f = *state;
        int64_t token;

        f->kind = SNIB_KIND_LOCK;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 1, 1), SNIB__GRANTED);
        token = f->reply.token;
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
                f->kind = odd[i].kind;
                assert_int_equal(apply(f, odd[i].verb, 2, 1), SNIB__FAILED);
                assert_int_equal(f->reply.error, SNIB_EUNSUPPORTED);
                assert_string_equal(f->reply.error_text, snib__kind_refusal(odd[i].kind, odd[i].verb, true));
                assert_false(f->change.record || f->change.holders || f->change.queue || f->change.dones);
        }
        f->kind = SNIB_KIND_LOCK;
        assert_int_equal(apply(f, SNIB__RENEW, 1, 1), SNIB__RENEWED);
        assert_true(f->reply.token == token);
}

/* Every kind of the public header has a row, and its family's kind is of the family. */
static void every_kind_has_a_row(void **state)
{
        unsigned caps = 0;

        (void)state;
        for (int kind = 0; kind < 32; kind++) { /* SNIB__KIND_BIT has no more */
                const struct snib__kind *k = snib__kind(kind);

                if (kind > SNIB_KIND_COUNTER && !k->verbs)
                        continue;
                assert_true(strlen(k->text) > 3 && strcmp(k->text, "object") != 0);
                assert_non_null(k->article);
                assert_true(kind == SNIB_KIND_COUNTER ? !k->family : k->family && k->cap && k->tokens > 0);
                assert_int_equal(snib__family_of(snib__family_kind(k->family)), k->family);
                assert_true(!k->family || strstr(snib__family_in_use(k->family), "the name is in use by "));
                assert_true(!k->momentary || k->anonymous);
                caps |= k->cap;
        }
        for (unsigned cap = SNIB_CAP_LOCK; cap <= SNIB_CAP_REGISTER; cap <<= 1)
                assert_true(caps & cap);
        assert_string_equal(snib__kind(1000)->text, "object");
        assert_string_equal(snib__kind(SNIB_KIND_ANY)->article, "an ");
}

static void the_dead_are_buried_whatever_they_hold(void **state)
{
        struct fixture *f = *state;
        struct snib__id one = id_of(1), two = id_of(2);

        f->kind = SNIB_KIND_SEMAPHORE;
        (void)apply(f, SNIB__SET, 10, 1);
        (void)apply(f, SNIB__ACQUIRE, 1, 1);
        (void)apply(f, SNIB__ACQUIRE, 2, 2);
        assert_true(snib__record_bury(&f->record, &one, f->now, &f->change));
        assert_true(f->record.value == 0 && f->record.held == 0); /* taken for good */
        assert_false(snib__record_bury(&f->record, &one, f->now, &f->change));
        (void)apply(f, SNIB__ADD, 11, 2);
        assert_true(GRANTED(f, 2) && f->record.value == 0);
        assert_true(snib__record_bury(&f->record, &two, f->now, &f->change));
        assert_int_equal(f->record.value, 2); /* was handed over and never claimed */
        (void)apply(f, SNIB__DELETE, 12, 0);

        f->kind = SNIB_KIND_READ;
        (void)apply(f, SNIB__ACQUIRE, 1, 1);
        f->kind = SNIB_KIND_WRITE;
        (void)apply(f, SNIB__ACQUIRE, 2, 1);
        f->kind = SNIB_KIND_READ;
        (void)apply(f, SNIB__ACQUIRE, 3, 1);
        assert_true(snib__record_bury(&f->record, &two, f->now, &f->change));
        assert_true(GRANTED(f, 3) && f->record.held == 2 && f->record.queued == 0);
        assert_true(snib__record_bury(&f->record, &one, f->now, &f->change));
        assert_null(snib__record_check(&f->record));
}

static void what_finds_no_room_is_refused(void **state)
{
        struct fixture *f = *state;

        f->narrow = true;
        f->record.held_room = 2;
        f->kind = SNIB_KIND_PERMITS;
        (void)apply(f, SNIB__SET, 1, 100);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 3), SNIB__BUSY);
        assert_int_equal(apply(f, SNIB__RELEASE, 2, 3), SNIB__RELEASED);
        assert_int_equal(apply(f, SNIB__ACQUIRE, 3, 2), SNIB__GRANTED);
        f->record.queue_room = 0;
        assert_int_equal(apply(f, SNIB__ACQUIRE, 4, 1), SNIB__BUSY);
        assert_int_equal(f->record.queued, 0);
        f->change.tell_room = 0; /* whoever cannot be told looks by itself */
        assert_int_equal(apply(f, SNIB__FORCE, 9, 0), SNIB__INFO);
        assert_true(f->record.held == 0 && f->change.tells == 0);
}

/* In the same call: room is made before anybody knows that it is over. */
static void a_lock_finds_room_where_something_else_is_over(void **state)
{
        struct fixture *f = *state;

        for (int kind = SNIB_KIND_LATCH; kind <= SNIB_KIND_REGISTER; kind++) {
                f->kind = kind;
                assert_int_equal(apply(f, SNIB__OBSERVE, 1, 0), SNIB__BUSY);
                f->now.lease_ms += SNIB__WAITER_LEASE_MS;
                f->kind = SNIB_KIND_LOCK;
                assert_int_equal(apply(f, SNIB__ACQUIRE, 2, 1), SNIB__GRANTED);
                assert_int_equal(apply(f, SNIB__RELEASE, 2, 1), SNIB__RELEASED);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
            STORY(F96_readers_share_and_do_not_overtake_a_writer),
            STORY(F93_a_downgrade_has_no_gap_and_lets_readers_in),
            STORY(a_hold_that_was_left_ends_with_its_lease),
            STORY(permits_that_were_left_end_with_their_lease),
            STORY(F94_a_dead_reader_ends_with_its_own_lease),
            STORY(F95_nested_holds_end_in_any_order),
            STORY(each_side_is_forced_by_itself),
            STORY(a_semaphore_is_taken_once_and_given_back_once),
            STORY(a_semaphores_waiters_are_served_in_order),
            STORY(a_busy_semaphore_forgets_the_oldest),
            STORY(numbers_are_changed_once),
            STORY(numbers_stay_in_their_range),
            STORY(only_so_many_requests_are_remembered),
            STORY(a_semaphore_vanishes_after_its_time),
            STORY(F99_permits_are_all_or_none),
            STORY(F97_permits_go_by_id_and_once),
            STORY(F100_a_lowered_limit_takes_nothing_away),
            STORY(F102_F103_a_latch_counts_once_and_lets_all_in),
            STORY(a_register_is_written_by_version),
            STORY(observers_hear_of_the_first_change),
            STORY(kinds_do_not_mix),
            STORY(what_nobody_knows_is_refused_and_changes_nothing),
            cmocka_unit_test(every_kind_has_a_row),
            STORY(the_dead_are_buried_whatever_they_hold),
            STORY(what_finds_no_room_is_refused),
            STORY(a_lock_finds_room_where_something_else_is_over),
#undef STORY
        };

        return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
