/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client machine for what is not the plain lock: what ends with its grant, observers, spins,
 * fair queues, the two sides of a read-write lock, who is woken after whom, and requests that no
 * hold stands behind.
 */

#include "rig.h"

static const struct snib__id nobody;

/* Begins a wait for ever of this kind; the request is in r->op. */
static void begin(struct rig *r, struct snib__hold *h, struct snib__call *call, const char *id, int kind, int64_t n)
{
        hold_init(h, id);
        h->owner.length = 0;
        h->kind = kind;
        h->n = n;
        *call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);
        snib__core_begin(&r->core, h, call, r->now);
        pull(r);
}

/* The same, and somebody else has it. */
static void wait_for(struct rig *r, struct snib__hold *h, struct snib__call *call, const char *id, int kind, int64_t n)
{
        begin(r, h, call, id, kind, n);
        reply(r, SNIB__BUSY, 0);
        pull(r);
        r->trace[0] = 0;
}

static void asks(struct rig *r, const char *trace, const char *id)
{
        expect(r, trace);
        assert_string_equal(r->op.id.text, id);
}

/* ---- what ends with its grant ---- */

static void a_semaphore_ends_with_its_grant(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 3);
        expect(&r, "acquire#1; ");
        assert_int_equal(r.op.n, 3);
        reply(&r, SNIB__GRANTED, 0);
        expect(&r, "answer 1; free; ");
        assert_int_equal(h.valid_until, 0);
        assert_true(snib__list_empty(&r.core.holds));
        assert_int_equal(snib__core_deadline(&r.core), SNIB__NEVER);
}

static void a_latch_opens(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_LATCH, 0);
        expect(&r, "acquire#1; ");
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "watch; ");
        snib__core_changed(&r.core, stock, true, r.now);
        expect(&r, "acquire#2; ");
        reply(&r, SNIB__GRANTED, 0);
        expect(&r, "answer 1; unwatch; free; ");
}

/* Row F103: everybody is told of the opening, and nobody has to wait for another. */
static void F103_all_who_await_a_latch_are_woken(void **state)
{
        struct rig r;
        struct snib__hold h[3];
        struct snib__call call[3];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_LATCH, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_LATCH, 0);
        wait_for(&r, &h[2], &call[2], "u:3", SNIB_KIND_LATCH, 0);
        snib__core_changed(&r.core, stock, true, r.now);
        expect(&r, "acquire#2; acquire#2; acquire#2; ");
}

/* ---- what is undone, and what need not be ---- */

static void F37_a_cancelled_semaphore_gives_back_what_it_took(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 2);
        expect(&r, "acquire#1; ");
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "answer -18; ");
        reply(&r, SNIB__GRANTED, 0);
        expect(&r, "release#2; ");
        assert_string_equal(r.op.id.text, "u:1");
        assert_int_equal(r.op.n, 2);
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

static void F37_a_cancelled_semaphore_that_took_nothing_is_done(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 2);
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "acquire#1; answer -18; ");
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "free; ");
}

/* An undone semaphore takes as long as its server may remember: permits do not run out like a
 * lease. */
static void a_semaphore_is_undone_for_as_long_as_it_is_remembered(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 1);
        h.lease = SNIB__S;
        refuse(&r, SNIB_EUNKNOWN);
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "acquire#1; answer -18; release#2; ");
        for (int i = 0; i < 59; i++) {
                refuse(&r, SNIB_EUNREACHABLE);
                pull(&r);
                pass(&r, SNIB__S);
                pull(&r);
                assert_int_equal(h.state, SNIB__RELEASING);
                assert_true(h.request.outstanding);
        }
        r.trace[0] = 0;
        refuse(&r, SNIB_EUNREACHABLE);
        pass(&r, 2 * SNIB__S);
        expect(&r, "free; ");
}

static void a_cancelled_latch_has_nothing_to_undo(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        for (int granted = 0; granted < 2; granted++) {
                begin(&r, &h, &call, "u:1", SNIB_KIND_LATCH, 0);
                expect(&r, "acquire#1; ");
                snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
                expect(&r, "answer -18; ");
                if (granted)
                        reply(&r, SNIB__GRANTED, 0);
                else
                        refuse(&r, SNIB_EUNKNOWN);
                expect(&r, "free; ");
        }
}

static void a_cancelled_latch_leaves_the_queue(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, true);
        begin(&r, &h, &call, "u:1", SNIB_KIND_LATCH, 0);
        assert_true(r.op.enqueue);
        reply(&r, SNIB__BUSY, 0);
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "acquire#1; answer -18; release#2; ");
}

/* ---- observers ---- */

static void an_observer_is_told_what_changed(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);
        struct snib__reply info = {.status = SNIB__INFO, .held = true, .token = 9};

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.kind = SNIB_KIND_ELECTION;
        h.observe = true;
        h.token = 7;
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "observe#1; ");
        assert_int_equal(r.op.token, 7);
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "watch; ");
        snib__core_changed(&r.core, stock, false, r.now);
        expect(&r, "observe#2; ");
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &info, r.now);
        expect(&r, "answer 1; unwatch; free; ");
        assert_int_equal(call.holder.token, 9);
        assert_true(call.holder.held);
}

/* By the time it asks again the latch may be open as before: the question names no state then. */
static void an_observer_of_a_latch_hears_of_one_that_is_open_again(void **state)
{
        struct snib__reply open = {.status = SNIB__BUSY}, was_set = {.status = SNIB__INFO, .value = 0};
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);
        struct rig r;
        struct snib__hold h;

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.kind = SNIB_KIND_LATCH;
        h.observe = true;
        snib__core_begin(&r.core, &h, &call, r.now);
        /* What was announced before it was found open tells nothing. */
        snib__core_changed(&r.core, stock, true, r.now);
        expect(&r, "observe#1; ");
        assert_int_equal(r.op.token, 0);
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &open, r.now);
        expect(&r, "watch; observe#2; ");
        assert_int_equal(r.op.token, 0);
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &open, r.now);
        snib__core_changed(&r.core, stock, true, r.now);
        expect(&r, "observe#3; ");
        assert_true(r.op.token < 0);
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &was_set, r.now);
        expect(&r, "answer 1; unwatch; free; ");
}

static void an_observer_takes_no_change_from_a_waiter(void **state)
{
        struct rig r;
        struct snib__hold watcher, first, second;
        struct snib__call call[3];

        rig_init(&r, false);
        hold_init(&watcher, "u:1");
        watcher.owner.length = 0;
        watcher.observe = true;
        call[0] = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);
        snib__core_begin(&r.core, &watcher, &call[0], r.now);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        wait_for(&r, &first, &call[1], "u:2", SNIB_KIND_ELECTION, 0);
        wait_for(&r, &second, &call[2], "u:3", SNIB_KIND_ELECTION, 0);
        snib__core_changed(&r.core, stock, false, r.now);
        expect(&r, "observe#2; acquire#2; ");
        assert_string_equal(r.op.id.text, "u:2");
}

static void a_grant_is_no_answer_to_an_observer(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.observe = true;
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "observe#1; answer -21; free; ");
}

/* ---- spin ---- */

static void a_spin_lock_backs_off_and_watches_nothing(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;
        struct snib__reply busy = {.status = SNIB__BUSY, .left_ms = 30000};

        for (int queues = 0; queues < 2; queues++) {
                rig_init(&r, queues);
                begin(&r, &h, &call, "u:1", SNIB_KIND_SPIN, 0);
                for (int ms = 1, i = 0; i < 10; i++, ms = ms < 128 ? 2 * ms : 128) {
                        char again[32];

                        assert_false(r.op.enqueue);
                        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &busy, r.now);
                        r.trace[0] = 0;
                        pass(&r, ms * SNIB__MS - 1);
                        expect(&r, "");
                        pass(&r, ms * SNIB__MS / 16 + 2);
                        snprintf(again, sizeof(again), "acquire#%d; ", i + 2);
                        expect(&r, again);
                }
                reply(&r, SNIB__GRANTED, 7);
                expect(&r, "answer 1; ");
        }
}

static void a_spin_lock_asks_when_the_lease_ends(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;
        struct snib__reply busy = {.status = SNIB__BUSY, .left_ms = 30000};

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SPIN, 0);
        for (int i = 0; i < 8; i++) {
                snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &busy, r.now);
                pass(&r, 150 * SNIB__MS);
                pull(&r);
        }
        r.trace[0] = 0;
        busy.left_ms = 3;
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &busy, r.now);
        pass(&r, 5 * SNIB__MS);
        expect(&r, "acquire#10; ");
}

/* ---- fair ---- */

static void only_a_fair_lock_queues_where_others_watch(void **state)
{
        struct rig r;
        struct snib__hold fair, plain;
        struct snib__call call[2];

        rig_init(&r, false);
        begin(&r, &plain, &call[0], "u:1", SNIB_KIND_LOCK, 0);
        assert_false(r.op.enqueue);
        begin(&r, &fair, &call[1], "u:2", SNIB_KIND_FAIR, 0);
        assert_true(r.op.enqueue);
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "acquire#1; acquire#1; watch; ");
        snib__core_cancel(&r.core, &call[1], SNIB_ECANCELLED, r.now);
        expect(&r, "answer -18; unwatch; release#2; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

static void a_single_try_takes_no_place_in_the_queue(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.kind = SNIB_KIND_FAIR;
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        assert_false(r.op.enqueue);
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "answer 0; free; ");
}

static void a_turn_goes_to_whom_it_names(void **state)
{
        struct rig r;
        struct snib__hold h[2];
        struct snib__call call[2];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_FAIR, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_FAIR, 0);
        snib__core_granted(&r.core, stock, &h[1].known.id, 0, &(struct snib__reply){.token = 0}, r.now);
        asks(&r, "acquire#2; ", "u:2");
        snib__core_watching(&r.core, stock, &h[0].known.id, r.now, r.now);
        asks(&r, "acquire#2; ", "u:1");
        snib__core_granted(&r.core, stock, &nobody, 0, &(struct snib__reply){.token = 0}, r.now);
        expect(&r, "");
}

/* ---- direct grants ---- */

/* The engine says that the hold is the third in a row that it was handed on to. */
static void told(struct rig *r, const struct snib__hold *h, uint32_t attempt, int64_t token)
{
        snib__core_granted(&r->core, stock, &h->known.id, attempt, &(struct snib__reply){.token = token, .streak = 3},
                           r->now);
}

static void a_grant_after_the_latest_question_needs_no_other(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);
        snib__ns asked;

        rig_init(&r, false);
        asked = r.now;
        wait_for(&r, &h, &call, "u:1", SNIB_KIND_LOCK, 0);
        pass(&r, 20 * SNIB__MS);
        told(&r, &h, 1, 7);
        expect(&r, "answer 1; unwatch; ");
        assert_int_equal(h.token, 7);
        assert_int_equal(atomic_load(&h.valid_until), asked + snib__lease_trusted(30 * SNIB__S));
        told(&r, &h, 1, 8); /* told twice */
        assert_int_equal(h.token, 7);
        pass(&r, 10 * SNIB__S); /* renewed as from the question */
        expect(&r, "renew#2; ");
        reply(&r, SNIB__RENEWED, 7);
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "release#3; ");
        assert_int_equal(r.op.streak, 3);
}

static void F15_a_grant_before_the_latest_question_is_asked_about(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        wait_for(&r, &h, &call, "u:1", SNIB_KIND_LOCK, 0);
        told(&r, &h, 2, 7); /* what is yet to be asked */
        asks(&r, "acquire#2; ", "u:1");
        reply(&r, SNIB__BUSY, 0);
        told(&r, &h, 1, 7);
        asks(&r, "acquire#3; ", "u:1");
        told(&r, &h, 2, 7); /* while one is under way: another follows it */
        expect(&r, "");
        reply(&r, SNIB__BUSY, 0);
        asks(&r, "acquire#4; ", "u:1");
        reply(&r, SNIB__GRANTED, 9);
        expect(&r, "answer 1; unwatch; ");
        assert_int_equal(h.token, 9);
}

static void a_grant_overtakes_the_refusal_before_it(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_LOCK, 0);
        told(&r, &h, 1, 7);
        expect(&r, "acquire#1; answer 1; ");
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "");
        assert_int_equal(h.state, SNIB__HELD);
        assert_int_equal(r.core.outstanding, 0);
}

static void F8_a_grant_long_after_the_question_is_asked_about(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.lease = SNIB__S;
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "acquire#1; watch; ");
        pass(&r, 130 * SNIB__MS); /* more than an eighth of the lease */
        told(&r, &h, 1, 7);
        expect(&r, "acquire#2; ");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; unwatch; ");
        assert_int_equal(atomic_load(&h.valid_until), r.now + snib__lease_trusted(SNIB__S));
        assert_int_equal(h.known.streak, 3);
}

static void F17_a_grant_for_one_that_gave_up_is_given_back(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        r.core.config.queues = SNIB__KIND_BIT(SNIB_KIND_LOCK);
        wait_for(&r, &h, &call, "u:1", SNIB_KIND_LOCK, 0);
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        told(&r, &h, 1, 7);
        expect(&r, "answer -18; unwatch; release#2; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

static void the_next_in_line_lets_others_try_first(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        wait_for(&r, &h, &call, "u:1", SNIB_KIND_LOCK, 0);
        snib__core_next_in_line(&r.core, stock, &h.known.id, r.now);
        expect(&r, "");
        pass(&r, 29 * SNIB__MS);
        expect(&r, "");
        pass(&r, SNIB__MS);
        asks(&r, "acquire#2; ", "u:1");
        snib__core_next_in_line(&r.core, stock, &h.known.id, r.now);
        reply(&r, SNIB__BUSY, 0);
        asks(&r, "acquire#3; ", "u:1");
}

static void a_watch_that_was_there_before_needs_no_question(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;
        snib__ns since;

        rig_init(&r, false);
        since = r.now;
        pass(&r, SNIB__MS);
        wait_for(&r, &h, &call, "u:1", SNIB_KIND_LOCK, 0);
        snib__core_watching(&r.core, stock, &(struct snib__id){{0}}, since, r.now);
        expect(&r, "");
        pass(&r, SNIB__MS);
        snib__core_watching(&r.core, stock, &(struct snib__id){{0}}, r.now, r.now);
        asks(&r, "acquire#2; ", "u:1");
}

static void whoever_joins_a_watch_wakes_nobody_else(void **state)
{
        struct rig r;
        struct snib__hold h[2];
        struct snib__call call[2];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_LOCK, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_LOCK, 0);
        snib__core_watching(&r.core, stock, &h[0].known.id, r.now, r.now);
        asks(&r, "acquire#2; ", "u:1");
        reply(&r, SNIB__BUSY, 0);
        snib__core_watching(&r.core, stock, &(struct snib__id){{0}}, r.now, r.now);
        asks(&r, "acquire#2; ", "u:2");
        reply(&r, SNIB__BUSY, 0);
        pass(&r, SNIB__MS);
        snib__core_watching(&r.core, stock, &(struct snib__id){{0}}, r.now, r.now);
        expect(&r, "acquire#3; acquire#3; ");
}

/* ---- whom a wake-up goes on to ---- */

static void of_several_writers_one_is_woken_beside_the_readers(void **state)
{
        struct rig r;
        struct snib__hold h[3];
        struct snib__call call[3];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_WRITE, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_WRITE, 0);
        wait_for(&r, &h[2], &call[2], "u:3", SNIB_KIND_READ, 0);
        snib__core_changed(&r.core, stock, true, r.now);
        expect(&r, "acquire#2; acquire#2; ");
        assert_int_equal(h[0].state, SNIB__ASKING);
        assert_int_equal(h[1].state, SNIB__WAITING);
        assert_int_equal(h[2].state, SNIB__ASKING);
}

static void readers_pass_a_wake_up_on_to_readers(void **state)
{
        struct rig r;
        struct snib__hold h[4];
        struct snib__call call[4];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_READ, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_WRITE, 0);
        wait_for(&r, &h[2], &call[2], "u:3", SNIB_KIND_READ, 0);
        snib__core_changed(&r.core, stock, false, r.now);
        asks(&r, "acquire#2; ", "u:1");
        reply(&r, SNIB__GRANTED, 7);
        asks(&r, "answer 1; unwatch; acquire#2; ", "u:3");
        reply(&r, SNIB__GRANTED, 8);
        expect(&r, "answer 1; unwatch; ");
}

static void a_lock_that_is_taken_wakes_nobody(void **state)
{
        struct rig r;
        struct snib__hold h[2];
        struct snib__call call[2];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_LOCK, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_LOCK, 0);
        snib__core_changed(&r.core, stock, false, r.now);
        asks(&r, "acquire#2; ", "u:1");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; unwatch; ");
}

/* Row F101: one message for three permits serves three waiters. */
static void F101_a_semaphore_passes_a_wake_up_on(void **state)
{
        struct rig r;
        struct snib__hold h[2];
        struct snib__call call[2];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_SEMAPHORE, 1);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_SEMAPHORE, 1);
        snib__core_changed(&r.core, stock, false, r.now);
        asks(&r, "acquire#2; ", "u:1");
        reply(&r, SNIB__GRANTED, 0);
        asks(&r, "answer 1; unwatch; free; acquire#2; ", "u:2");
}

/* Row F101: what is too little for the first may be enough for the next. */
static void F101_who_wants_less_is_asked_after_a_refusal(void **state)
{
        struct rig r;
        struct snib__hold h[4];
        struct snib__call call[4];

        for (int kind = SNIB_KIND_SEMAPHORE; kind <= SNIB_KIND_PERMITS; kind++) {
                rig_init(&r, false);
                wait_for(&r, &h[0], &call[0], "u:1", kind, 3);
                wait_for(&r, &h[1], &call[1], "u:2", kind, 3);
                wait_for(&r, &h[2], &call[2], "u:3", kind, 2);
                wait_for(&r, &h[3], &call[3], "u:4", kind, 1);
                snib__core_changed(&r.core, stock, false, r.now);
                asks(&r, "acquire#2; ", "u:1");
                reply(&r, SNIB__BUSY, 0);
                asks(&r, "acquire#2; ", "u:3");
                reply(&r, SNIB__BUSY, 0);
                asks(&r, "acquire#2; ", "u:4");
                reply(&r, SNIB__BUSY, 0);
                expect(&r, "");
        }
}

static void F101_readers_are_asked_after_a_refused_writer(void **state)
{
        struct rig r;
        struct snib__hold h[3];
        struct snib__call call[3];

        rig_init(&r, false);
        wait_for(&r, &h[0], &call[0], "u:1", SNIB_KIND_WRITE, 0);
        wait_for(&r, &h[1], &call[1], "u:2", SNIB_KIND_WRITE, 0);
        wait_for(&r, &h[2], &call[2], "u:3", SNIB_KIND_READ, 0);
        snib__core_changed(&r.core, stock, false, r.now);
        asks(&r, "acquire#2; ", "u:1");
        reply(&r, SNIB__BUSY, 0);
        asks(&r, "acquire#2; ", "u:3");
}

/* ---- owners ---- */

static void the_two_sides_of_an_owner_are_two_holds(void **state)
{
        struct rig r;
        struct snib__hold w, rd;
        struct snib__call call[2] = {call_init(SNIB__CALL_ACQUIRE, true, 0), call_init(SNIB__CALL_ACQUIRE, true, 0)};
        struct snib__call back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        rig_init(&r, false);
        hold_init(&w, "u:1");
        w.kind = SNIB_KIND_WRITE;
        snib__core_begin(&r.core, &w, &call[0], r.now);
        pull(&r);
        reply(&r, SNIB__GRANTED, 7);
        assert_null(snib__core_find(&r.core, stock, me, SNIB_KIND_READ));
        hold_init(&rd, "u:2");
        rd.kind = SNIB_KIND_READ;
        snib__core_begin(&r.core, &rd, &call[1], r.now);
        expect(&r, "acquire#1; answer 1; acquire#1; ");
        assert_string_equal(r.op.under.text, "u:1");
        reply(&r, SNIB__GRANTED, 8);
        expect(&r, "answer 1; ");
        assert_ptr_equal(snib__core_find(&r.core, stock, me, SNIB_KIND_READ), &rd);
        assert_ptr_equal(snib__core_find(&r.core, stock, me, SNIB_KIND_WRITE), &w);
        /* Row F93: the downgrade ends one and leaves the other. */
        snib__core_release(&r.core, &w, &back, r.now);
        asks(&r, "release#2; ", "u:1");
        assert_int_equal(r.op.kind, SNIB_KIND_WRITE);
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "answer 1; free; ");
        assert_int_equal(rd.state, SNIB__HELD);
}

/* Row F95: a reader that waits is let in when its owner gets the write side; else both would wait
 * for each other. */
static void F95_a_reader_finds_its_own_writer(void **state)
{
        struct rig r;
        struct snib__hold w, rd;
        struct snib__call call[3];

        for (int i = 0; i < 3; i++)
                call[i] = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);
        rig_init(&r, false);
        hold_init(&w, "u:1");
        w.kind = SNIB_KIND_WRITE;
        snib__core_begin(&r.core, &w, &call[0], r.now);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        hold_init(&rd, "u:2");
        rd.kind = SNIB_KIND_READ;
        snib__core_begin(&r.core, &rd, &call[1], r.now);
        pull(&r);
        assert_false(snib__id_set(&r.op.under));
        reply(&r, SNIB__BUSY, 0);
        snib__core_changed(&r.core, stock, false, r.now);
        pull(&r);
        r.trace[0] = 0;
        assert_string_equal(r.op.id.text, "u:1");
        reply(&r, SNIB__GRANTED, 7);
        asks(&r, "answer 1; unwatch; acquire#2; ", "u:2");
        assert_string_equal(r.op.under.text, "u:1");
        snib__core_join(&r.core, &rd, &call[2], r.now);
        reply(&r, SNIB__GRANTED, 8);
        expect(&r, "answer 1; answer 1; unwatch; ");
        assert_int_equal(rd.depth, 2);
}

/* Row F99: of several permits some may still be out when the rest is gone. */
static void F99_what_is_left_of_several_permits_is_released(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        for (int n = 1; n <= 2; n++) {
                rig_init(&r, false);
                begin(&r, &h, &call, "u:1", SNIB_KIND_PERMITS, n);
                reply(&r, SNIB__GRANTED, 7);
                pass(&r, 10 * SNIB__S);
                pull(&r);
                r.trace[0] = 0;
                reply(&r, SNIB__GONE, 0);
                expect(&r, n == 1 ? "lost gone; " : "lost gone; release#3; ");
        }
}

/* A copy of the first request may come after the answer to the second: its permits must not be
 * lost. */
static void F15_a_semaphore_that_was_refused_after_a_doubt_is_undone(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        for (int kind = SNIB_KIND_SEMAPHORE; kind <= SNIB_KIND_PERMITS; kind++) {
                rig_init(&r, false);
                begin(&r, &h, &call, "u:1", kind, 1);
                refuse(&r, SNIB_EUNKNOWN);
                pass(&r, SNIB__S);
                pull(&r);
                reply(&r, SNIB__BUSY, 0);
                pull(&r);
                r.trace[0] = 0;
                snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
                expect(&r, kind == SNIB_KIND_SEMAPHORE ? "answer -18; unwatch; release#3; "
                                                       : "answer -18; unwatch; free; ");
        }
}

/* A hold that the server ended is found on either side. */
static void an_ended_reader_is_checked(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, true);
        begin(&r, &h, &call, "u:1", SNIB_KIND_READ, 0);
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "acquire#1; answer 1; ");
        snib__core_ended(&r.core, stock, &h.known.id, r.now);
        expect(&r, "renew#2; ");
        reply(&r, SNIB__GONE, 0);
        expect(&r, "lost gone; ");
}

static void nobody_joins_an_anonymous_owner(void **state)
{
        static const struct snib__name none = {"", 0};
        struct rig r;
        struct snib__hold h[2];
        struct snib__call call[2];

        rig_init(&r, false);
        begin(&r, &h[0], &call[0], "u:1", SNIB_KIND_PERMITS, 2);
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "acquire#1; answer 1; ");
        assert_null(snib__core_find(&r.core, stock, none, SNIB_KIND_PERMITS));
        begin(&r, &h[1], &call[1], "u:2", SNIB_KIND_PERMITS, 2);
        reply(&r, SNIB__GRANTED, 8);
        expect(&r, "acquire#1; answer 1; ");
        pass(&r, 10 * SNIB__S);
        expect(&r, "renew#2; renew#2; ");
        assert_int_equal(r.op.n, 2);
        assert_string_equal(h[1].owner.bytes, "u:2");
        assert_ptr_not_equal(&h[0], snib__core_find(&r.core, stock, h[1].owner, SNIB_KIND_PERMITS));
}

/* ---- requests without a hold ---- */

static struct snib__ask ask_init(struct rig *r, enum snib__verb verb, int kind, int64_t n, snib__ns patience)
{
        struct snib__ask a = {.op = {.verb = verb, .kind = kind, .name = stock, .n = n, .id = {"u:9"}}};

        a.deadline = snib__after(r->now, patience);
        return a;
}

static void answer_ask(struct rig *r, struct snib__ask *a, struct snib__reply reply)
{
        snib__core_reply_ask(&r->core, a, r->cookie, r->attempt, &reply, r->now);
}

static void a_change_says_whether_it_was_made(void **state)
{
        struct rig r;

        rig_init(&r, false);
        for (enum snib__verb verb = SNIB__SET; verb <= SNIB__DELETE; verb++) {
                for (int applied = 0; applied < 2; applied++) {
                        struct snib__ask a = ask_init(&r, verb, SNIB_KIND_SEMAPHORE, 5, SNIB__S);

                        snib__core_ask(&r.core, &a, r.now);
                        pull(&r);
                        assert_int_equal(r.op.n, 5);
                        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__DONE, .applied = applied, .value = 12});
                        pull(&r);
                        assert_int_equal(a.result, applied);
                        assert_int_equal(a.reply.value, 12);
                        assert_true(a.answered);
                }
        }
        assert_int_equal(r.core.outstanding, 0);
        assert_true(snib__list_empty(&r.core.asks));
}

static void permits_are_released_and_renewed_by_their_ids(void **state)
{
        static const char ids[2][33] = {"00112233445566778899aabbccddeeff", "00112233445566778899aabbccddef00"};
        static const struct {
                enum snib__verb verb;
                enum snib__status status;
                int result;
        } rows[] = {{SNIB__RELEASE, SNIB__RELEASED, 1},
                    {SNIB__RELEASE, SNIB__GONE, SNIB_ENOTOWNER},
                    {SNIB__RELEASE, SNIB__RENEWED, SNIB_EPROTOCOL},
                    {SNIB__RENEW, SNIB__RENEWED, 1},
                    {SNIB__RENEW, SNIB__GONE, SNIB_ENOTOWNER},
                    {SNIB__RENEW, SNIB__RELEASED, SNIB_EPROTOCOL},
                    {SNIB__QUERY, SNIB__DONE, SNIB_EPROTOCOL},
                    {SNIB__ADD, SNIB__INFO, SNIB_EPROTOCOL},
                    {SNIB__ADD, SNIB__GONE, SNIB_EPROTOCOL}};
        struct rig r;

        rig_init(&r, false);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct snib__ask a = ask_init(&r, rows[i].verb, SNIB_KIND_PERMITS, 2, SNIB__S);

                a.op.permits = ids;
                a.op.permit_count = 2;
                snib__core_ask(&r.core, &a, r.now);
                pull(&r);
                assert_ptr_equal(r.op.permits, ids);
                answer_ask(&r, &a, (struct snib__reply){.status = rows[i].status});
                pull(&r);
                assert_int_equal(a.result, rows[i].result);
        }
}

/* Row F102: repeated with the same id, so that the engine counts it once. */
static void F102_a_count_down_is_repeated_with_its_id(void **state)
{
        struct rig r;
        struct snib__ask a;

        rig_init(&r, false);
        a = ask_init(&r, SNIB__ADD, SNIB_KIND_LATCH, -1, 10 * SNIB__S);
        snib__core_ask(&r.core, &a, r.now);
        expect(&r, "add#1; ");
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
        expect(&r, "");
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        asks(&r, "add#2; ", "u:9");
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__DONE, .applied = true});
        expect(&r, "answer-ask 1; ");
}

static void F15_what_may_have_been_counted_is_told_as_unknown(void **state)
{
        struct rig r;

        for (int counts = 0; counts < 2; counts++) {
                struct snib__ask a;

                rig_init(&r, false);
                a = ask_init(&r, counts ? SNIB__DRAIN : SNIB__QUERY, SNIB_KIND_SEMAPHORE, 0, SNIB__S);
                snib__core_ask(&r.core, &a, r.now);
                pull(&r);
                answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
                for (int i = 0; i < 200 && !a.answered; i++) {
                        pass(&r, 10 * SNIB__MS);
                        pull(&r);
                        if (a.request.outstanding)
                                answer_ask(&r, &a,
                                           (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNREACHABLE});
                }
                pull(&r);
                assert_int_equal(a.result, counts ? SNIB_EUNKNOWN : SNIB_EUNREACHABLE);
        }
}

/* The refusal is of the repetition: the first copy may still come, and find things otherwise. */
static void F15_a_refused_repetition_does_not_say_that_nothing_was_done(void **state)
{
        struct rig r;
        struct snib__ask a;

        rig_init(&r, false);
        a = ask_init(&r, SNIB__SET, SNIB_KIND_LATCH, 3, 10 * SNIB__S);
        snib__core_ask(&r.core, &a, r.now);
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EKIND});
        expect(&r, "set#1; set#2; answer-ask -12; ");
}

static void a_force_that_may_have_worked_has(void **state)
{
        struct rig r;
        struct snib__ask a;

        rig_init(&r, false);
        a = ask_init(&r, SNIB__FORCE, SNIB_KIND_LOCK, 0, SNIB__S);
        snib__core_ask(&r.core, &a, r.now);
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__INFO, .held = false});
        expect(&r, "force#1; force#2; answer-ask 1; ");
}

static void a_pause_asks_nothing(void **state)
{
        struct rig r;
        struct snib__ask a;

        rig_init(&r, false);
        a = ask_init(&r, 0, SNIB_KIND_LOCK, 0, SNIB__S);
        snib__core_ask(&r.core, &a, r.now);
        snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "gone", r.now);
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        pass(&r, SNIB__S - 1);
        expect(&r, "");
        pass(&r, 1);
        expect(&r, "answer-ask 0; ");
        a = ask_init(&r, 0, SNIB_KIND_LOCK, 0, SNIB__S);
        snib__core_ask(&r.core, &a, r.now);
        snib__core_close(&r.core, r.now);
        expect(&r, "answer-ask -7; ");
}

/* ---- how long the fate of a request can be asked for ---- */

/* The engine may have forgotten by then what it did with the id: repeating the request could make
 * it count twice. */
static void a_count_is_not_repeated_when_it_may_be_forgotten(void **state)
{
        struct rig r;
        struct snib__ask a;

        rig_init(&r, false);
        a = ask_init(&r, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1, SNIB__NEVER);
        snib__core_ask(&r.core, &a, r.now);
        pull(&r);
        pass(&r, 40 * SNIB__S); /* not executed, for all this time */
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
        pass(&r, 2 * SNIB__S);
        pull(&r);
        assert_true(a.request.outstanding);
        pass(&r, 5 * SNIB__S);
        pull(&r);
        assert_true(a.answered);
        assert_int_equal(a.result, SNIB_EUNKNOWN);
}

/* The doubt begins with the first request that may have been executed, not with the call. */
static void what_was_never_sent_is_not_in_doubt(void **state)
{
        struct rig r;
        struct snib__ask a;

        rig_init(&r, false);
        a = ask_init(&r, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1, SNIB__NEVER);
        snib__core_ask(&r.core, &a, r.now);
        for (int i = 0; i < 50; i++) {
                pull(&r);
                answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNREACHABLE});
                pass(&r, SNIB__S);
        }
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
        pass(&r, 2 * SNIB__S);
        pull(&r);
        assert_false(a.answered);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__DONE, .applied = true});
        pull(&r);
        assert_int_equal(a.result, 1);
}

static void the_link_brings_no_forgotten_request_back(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;
        struct snib__ask a;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 1);
        refuse(&r, SNIB_EUNKNOWN);
        a = ask_init(&r, SNIB__ADD, SNIB_KIND_SEMAPHORE, 1, SNIB__NEVER);
        snib__core_ask(&r.core, &a, r.now);
        pull(&r);
        answer_ask(&r, &a, (struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNKNOWN});
        r.trace[0] = 0;
        r.now += 46 * SNIB__S;
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        expect(&r, "answer -12; answer-ask -12; release#2; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

/* Counted from when the request left: its answer may have been long in coming. */
static void a_doubt_begins_when_the_request_was_sent(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        r.core.config.op_timeout = 20 * SNIB__S;
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 1);
        pass(&r, 20 * SNIB__S);
        assert_int_equal(h.state, SNIB__WAITING);
        assert_int_equal(h.request.doubt_since, r.now - 20 * SNIB__S);
}

/* A refusal says that nothing was taken so far: the doubt is over, and a new one begins anew. */
static void a_refusal_ends_the_doubt(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        rig_init(&r, false);
        begin(&r, &h, &call, "u:1", SNIB_KIND_SEMAPHORE, 1);
        refuse(&r, SNIB_EUNKNOWN);
        pass(&r, SNIB__S);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        pull(&r);
        assert_false(h.request.in_doubt);
        pass(&r, 40 * SNIB__S);
        pull(&r);
        refuse(&r, SNIB_EUNKNOWN);
        assert_int_equal(h.request.doubt_since, r.now);
        r.trace[0] = 0;
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "answer -18; unwatch; release#4; ");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_semaphore_ends_with_its_grant),
            cmocka_unit_test(a_latch_opens),
            cmocka_unit_test(F103_all_who_await_a_latch_are_woken),
            cmocka_unit_test(F37_a_cancelled_semaphore_gives_back_what_it_took),
            cmocka_unit_test(F37_a_cancelled_semaphore_that_took_nothing_is_done),
            cmocka_unit_test(a_semaphore_is_undone_for_as_long_as_it_is_remembered),
            cmocka_unit_test(a_cancelled_latch_has_nothing_to_undo),
            cmocka_unit_test(a_cancelled_latch_leaves_the_queue),
            cmocka_unit_test(an_observer_is_told_what_changed),
            cmocka_unit_test(an_observer_of_a_latch_hears_of_one_that_is_open_again),
            cmocka_unit_test(an_observer_takes_no_change_from_a_waiter),
            cmocka_unit_test(a_grant_is_no_answer_to_an_observer),
            cmocka_unit_test(a_spin_lock_backs_off_and_watches_nothing),
            cmocka_unit_test(a_spin_lock_asks_when_the_lease_ends),
            cmocka_unit_test(only_a_fair_lock_queues_where_others_watch),
            cmocka_unit_test(a_single_try_takes_no_place_in_the_queue),
            cmocka_unit_test(a_turn_goes_to_whom_it_names),
            cmocka_unit_test(a_grant_after_the_latest_question_needs_no_other),
            cmocka_unit_test(F15_a_grant_before_the_latest_question_is_asked_about),
            cmocka_unit_test(a_grant_overtakes_the_refusal_before_it),
            cmocka_unit_test(F8_a_grant_long_after_the_question_is_asked_about),
            cmocka_unit_test(F17_a_grant_for_one_that_gave_up_is_given_back),
            cmocka_unit_test(the_next_in_line_lets_others_try_first),
            cmocka_unit_test(a_watch_that_was_there_before_needs_no_question),
            cmocka_unit_test(whoever_joins_a_watch_wakes_nobody_else),
            cmocka_unit_test(of_several_writers_one_is_woken_beside_the_readers),
            cmocka_unit_test(readers_pass_a_wake_up_on_to_readers),
            cmocka_unit_test(a_lock_that_is_taken_wakes_nobody),
            cmocka_unit_test(F101_a_semaphore_passes_a_wake_up_on),
            cmocka_unit_test(F101_who_wants_less_is_asked_after_a_refusal),
            cmocka_unit_test(F101_readers_are_asked_after_a_refused_writer),
            cmocka_unit_test(the_two_sides_of_an_owner_are_two_holds),
            cmocka_unit_test(F95_a_reader_finds_its_own_writer),
            cmocka_unit_test(F99_what_is_left_of_several_permits_is_released),
            cmocka_unit_test(F15_a_semaphore_that_was_refused_after_a_doubt_is_undone),
            cmocka_unit_test(an_ended_reader_is_checked),
            cmocka_unit_test(nobody_joins_an_anonymous_owner),
            cmocka_unit_test(a_change_says_whether_it_was_made),
            cmocka_unit_test(permits_are_released_and_renewed_by_their_ids),
            cmocka_unit_test(F102_a_count_down_is_repeated_with_its_id),
            cmocka_unit_test(F15_what_may_have_been_counted_is_told_as_unknown),
            cmocka_unit_test(F15_a_refused_repetition_does_not_say_that_nothing_was_done),
            cmocka_unit_test(a_force_that_may_have_worked_has),
            cmocka_unit_test(a_pause_asks_nothing),
            cmocka_unit_test(a_count_is_not_repeated_when_it_may_be_forgotten),
            cmocka_unit_test(what_was_never_sent_is_not_in_doubt),
            cmocka_unit_test(the_link_brings_no_forgotten_request_back),
            cmocka_unit_test(a_doubt_begins_when_the_request_was_sent),
            cmocka_unit_test(a_refusal_ends_the_doubt),
        };

        return cmocka_run_group_tests_name("family", tests, NULL, NULL);
}
