/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client machine, one hold's life at a time: each test says what happens and compares the
 * effects with a readable trace. Time is a number; nothing sleeps. The interplay of many clients is
 * the simulator's.
 */

#include "rig.h"

/* A lock that was asked for just now: a single try, or for ever. */
static void ask_for_it(struct rig *r, struct snib__hold *h, struct snib__call *call, bool once)
{
        rig_init(r, false);
        hold_init(h, "u:1");
        *call = call_init(SNIB__CALL_ACQUIRE, once, once ? 0 : SNIB__NEVER);
        snib__core_begin(&r->core, h, call, r->now);
        expect(r, "acquire#1; ");
}

/* A held lock with token 7, its acquire sent now. */
static void hold_it(struct rig *r, struct snib__hold *h, struct snib__call *call)
{
        ask_for_it(r, h, call, true);
        reply(r, SNIB__GRANTED, 7);
        expect(r, "answer 1; ");
        assert_int_equal(h->state, SNIB__HELD);
}

static void acquire_and_release(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        assert_int_equal(h.token, 7);
        assert_int_equal(h.depth, 1);
        assert_int_equal(h.valid_until, r.now + snib__lease_trusted(h.lease));
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "release#2; ");
        assert_int_equal(h.valid_until, 0);
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "answer 1; free; ");
        assert_true(snib__list_empty(&r.core.holds));
        assert_int_equal(snib__core_deadline(&r.core), SNIB__NEVER);
}

/* Renewed for the last time: the lease that is asked for ends when it should, also when it has to
 * be asked again. */
static void a_hold_is_left_to_its_lease(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        back.leave = r.now + 50 * SNIB__S;
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "renew#2; ");
        assert_true(r.op.leave);
        assert_int_equal(r.op.lease_ms, 50000);
        assert_int_equal(h.valid_until, 0);
        assert_null(snib__core_find(&r.core, stock, me, SNIB_KIND_LOCK)); /* the owner's next acquire waits for it */
        refuse(&r, SNIB_EUNKNOWN);
        expect(&r, "");
        pass(&r, 10 * SNIB__S);
        expect(&r, "renew#3; ");
        assert_true(r.op.leave);
        assert_int_equal(r.op.lease_ms, 40000);
        reply(&r, SNIB__RENEWED, 7);
        expect(&r, "answer 1; free; ");
        assert_int_equal(snib__core_deadline(&r.core), SNIB__NEVER);
}

static void leaving_what_was_taken_is_lost(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        back.leave = r.now + 50 * SNIB__S;
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "renew#2; ");
        refuse(&r, SNIB_EUNKNOWN);
        pass(&r, SNIB__S);
        expect(&r, "renew#3; ");
        reply(&r, SNIB__GONE, 0);
        expect(&r, "answer -13; free; ");
}

/* An outer acquire decides: what an inner one asked for is not done. */
static void only_the_last_acquire_leaves(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, again = call_init(SNIB__CALL_ACQUIRE, true, 0),
                                back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER), last = back;

        hold_it(&r, &h, &call);
        snib__core_join(&r.core, &h, &again, r.now);
        expect(&r, "acquire#2; ");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; ");
        back.leave = r.now + 50 * SNIB__S;
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "answer 0; ");
        snib__core_release(&r.core, &h, &last, r.now);
        expect(&r, "release#3; ");
        assert_false(r.op.leave);
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "answer 1; free; ");
}

static void deadline_counts_from_before_the_request(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        snib__ns sent = r.now;
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
        pass(&r, 2 * SNIB__S);
        reply(&r, SNIB__GRANTED, 7);
        assert_int_equal(h.deadline, sent + h.lease - h.lease / 500 - 2 * SNIB__MS);
}

static void F8_born_dead_is_not_returned(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.lease = SNIB__S;
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        pass(&r, SNIB__S);
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer -11; release#2; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

static void busy_try_answers_the_holder(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, true);
        struct snib__reply busy = {.status = SNIB__BUSY, .left_ms = 1234, .held = true};
        snprintf(busy.holder.id.text, sizeof(busy.holder.id.text), "other:9");
        snib__core_reply_hold(&r.core, r.hold, r.cookie, r.attempt, &busy, r.now);
        expect(&r, "answer 0; free; ");
        assert_string_equal(call.holder.holder.id.text, "other:9");
        assert_int_equal(call.holder.left_ms, 1234);
}

/* Rows F29 and F30: what happens between the refusal and the watch, or while it was down, is not
 * missed. */
static void F30_asks_again_after_watching(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, false);
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "watch; ");
        snib__core_watching(&r.core, stock, &(struct snib__id){{0}}, r.now, r.now);
        expect(&r, "acquire#2; ");
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "");
        pass(&r, SNIB__MS);
        snib__core_watching(&r.core, stock, &(struct snib__id){{0}}, r.now, r.now);
        expect(&r, "acquire#3; ");
        snib__core_changed(&r.core, stock, false, r.now); /* while the question is under way */
        expect(&r, "");
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "acquire#4; ");
        reply(&r, SNIB__GRANTED, 8);
        expect(&r, "answer 1; unwatch; ");
}

static void F31_polls_within_the_holders_lease(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, false);
        reply(&r, SNIB__BUSY, 0); /* 500 ms left */
        r.trace[0] = 0;
        expect(&r, "watch; ");
        assert_true(snib__core_deadline(&r.core) > r.now + 500 * SNIB__MS);
        assert_true(snib__core_deadline(&r.core) < r.now + 550 * SNIB__MS);
        pass(&r, 550 * SNIB__MS);
        expect(&r, "acquire#2; ");
        assert_int_equal(r.core.polls, 1);
}

static void F15_repeats_with_the_same_id(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, false);
        refuse(&r, SNIB_EUNKNOWN);
        expect(&r, "");
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        expect(&r, "acquire#2; ");
        assert_string_equal(r.op.id.text, "u:1");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; ");
}

/* A single try does not fail for a connection that was cut while nobody used it. */
static void F24_a_try_over_a_cut_connection_is_made_again(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, true);
        refuse(&r, SNIB_EUNKNOWN);
        snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "reset", r.now);
        expect(&r, "");
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        expect(&r, "acquire#2; ");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; ");
}

static void a_try_does_not_wait_for_a_server_that_is_gone(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, true);
        refuse(&r, SNIB_EUNREACHABLE);
        snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "reset", r.now);
        expect(&r, "");
        snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "refused", r.now);
        expect(&r, "answer -10; free; ");
}

/* What may have been executed is never told as certainly not executed, whatever the link says
 * later. */
static void F15_a_doubt_stays_a_doubt_while_the_link_is_down(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        for (int timed = 0; timed < 2; timed++) {
                rig_init(&r, false);
                hold_init(&h, "u:1");
                call = call_init(SNIB__CALL_ACQUIRE, !timed, r.now + SNIB__S);
                snib__core_begin(&r.core, &h, &call, r.now);
                expect(&r, "acquire#1; ");
                refuse(&r, SNIB_EUNKNOWN);
                snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "reset", r.now);
                snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "refused", r.now);
                for (int i = 0; i < 100 && !strstr(r.trace, "answer"); i++) {
                        pass(&r, 20 * SNIB__MS);
                        pull(&r);
                        if (h.state == SNIB__ASKING)
                                refuse(&r, SNIB_EUNREACHABLE);
                }
                assert_non_null(strstr(r.trace, "answer -12; "));
                r.trace[0] = 0;
        }
}

static void F17_an_answer_to_an_earlier_attempt_is_dropped(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, false);
        uint64_t cookie = r.cookie;
        pass(&r, 3 * SNIB__S); /* no answer: unknown */
        pass(&r, 10 * SNIB__MS);
        expect(&r, "acquire#2; ");
        struct snib__reply late = {.status = SNIB__BUSY, .left_ms = 100};
        assert_false(snib__core_reply_hold(&r.core, &h, cookie, 1, &late, r.now)); /* and the engine is told so */
        expect(&r, "");
        assert_int_equal(h.state, SNIB__ASKING);
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; ");
}

static void F16_a_repeated_release_says_released(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "release#2; ");
        refuse(&r, SNIB_EUNKNOWN);
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        expect(&r, "release#3; ");
        reply(&r, SNIB__GONE, 0);
        expect(&r, "answer 1; free; ");
}

static void F82_release_of_what_was_taken_is_lost(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "release#2; ");
        reply(&r, SNIB__GONE, 0);
        expect(&r, "answer -13; free; ");
}

static void F83_release_that_fails_goes_on_behind(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, 0);

        hold_it(&r, &h, &call);
        back.deadline = r.now + SNIB__S;
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "release#2; ");
        refuse(&r, SNIB_EUNREACHABLE);
        expect(&r, "");
        snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "gone", r.now);
        for (int i = 0; i < 1000 && !r.trace[0]; i++) {
                pass(&r, 10 * SNIB__MS);
                pull(&r);
                if (r.core.outstanding) {
                        refuse(&r, SNIB_EUNREACHABLE);
                        pull(&r);
                        if (!strstr(r.trace, "answer"))
                                r.trace[0] = 0;
                }
        }
        expect(&r, "answer -10; ");
        pass(&r, h.lease); /* whatever it held has run out */
        expect(&r, "free; ");
}

static void renews_every_third_and_is_lost_at_the_deadline(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        hold_it(&r, &h, &call);
        pass(&r, h.lease / 3);
        expect(&r, "renew#2; ");
        reply(&r, SNIB__RENEWED, 0);
        expect(&r, "");
        assert_int_equal(h.deadline, r.now + snib__lease_trusted(h.lease));
        snib__ns deadline = h.deadline;
        while (r.now < deadline - SNIB__MS) {
                pass(&r, SNIB__MS);
                pull(&r);
                if (r.core.outstanding)
                        refuse(&r, SNIB_EUNREACHABLE);
                assert_null(strstr(r.trace, "lost"));
                r.trace[0] = 0;
        }
        pass(&r, SNIB__MS);
        pull(&r);
        assert_non_null(strstr(r.trace, "lost unreachable; release#"));
        assert_int_equal(h.state, SNIB__LOST);
        assert_int_equal(h.loss, SNIB_LOSS_UNREACHABLE);
        assert_int_equal(h.valid_until, 0);
}

/* What keeps it from being renewed is known while it is held, and when it is lost. */
static void a_loss_knows_its_cause(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;
        struct snib__fault fault;
        snib__ns since;

        hold_it(&r, &h, &call);
        assert_int_equal(snib__core_trouble(&r.core, &h, &fault, &since), 0);
        pass(&r, h.lease / 3);
        pull(&r);
        snib__core_link(&r.core, false, SNIB_EUNREACHABLE, 0, "connection refused", r.now);
        snib__ns down = r.now;
        struct snib__reply refused = {
            .status = SNIB__FAILED, .error = SNIB_EUNREACHABLE, .error_text = "connection refused"};
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &refused, r.now);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(snib__core_trouble(&r.core, &h, &fault, &since), SNIB_EUNREACHABLE);
                assert_string_equal(fault.text, "connection refused");
                assert_true(since == down);
                r.now = h.deadline;
                snib__core_tick(&r.core, r.now);
        }
        assert_int_equal(h.state, SNIB__LOST);
}

static void F6_after_a_pause_the_loss_comes_first(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        r.now += 2 * h.lease;
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "lost expired; answer -13; release#2; ");
        reply(&r, SNIB__GONE, 0);
        expect(&r, "free; ");
}

static void F87_renewal_tells_who_took_it(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        hold_it(&r, &h, &call);
        snib__core_ended(&r.core, stock, &h.known.id, r.now);
        expect(&r, "renew#2; ");
        struct snib__reply gone = {.status = SNIB__GONE, .held = true};
        snib__core_reply_hold(&r.core, &h, r.cookie, r.attempt, &gone, r.now);
        expect(&r, "lost taken; ");
}

static void reentry_counts_and_compares_the_token(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, again = call_init(SNIB__CALL_ACQUIRE, true, 0);
        struct snib__call back[2] = {call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER),
                                     call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER)};

        hold_it(&r, &h, &call);
        assert_ptr_equal(snib__core_find(&r.core, stock, me, SNIB_KIND_LOCK), &h);
        snib__core_join(&r.core, &h, &again, r.now);
        expect(&r, "acquire#2; ");
        assert_int_equal(r.op.token, 7);
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; ");
        assert_int_equal(h.depth, 2);
        snib__core_release(&r.core, &h, &back[0], r.now);
        expect(&r, "answer 0; ");
        snib__core_release(&r.core, &h, &back[1], r.now);
        expect(&r, "release#3; ");
}

static void F79_reentry_into_a_new_epoch_is_a_loss(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, again = call_init(SNIB__CALL_ACQUIRE, true, 0);
        struct snib__call back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        snib__core_join(&r.core, &h, &again, r.now);
        expect(&r, "acquire#2; ");
        reply(&r, SNIB__GRANTED, 9);
        expect(&r, "lost gone; answer -13; release#3; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "");
        snib__core_release(&r.core, &h, &back, r.now);
        expect(&r, "answer -13; free; ");
}

static void F79_reentry_into_nothing_is_a_loss(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, again = call_init(SNIB__CALL_ACQUIRE, true, 0);

        hold_it(&r, &h, &call);
        snib__core_join(&r.core, &h, &again, r.now);
        expect(&r, "acquire#2; ");
        assert_int_equal(r.op.token, 7);
        reply(&r, SNIB__GONE, 0);
        expect(&r, "lost gone; answer -13; ");
}

static void non_reentrant_refuses_its_owner(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call, again = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        h.reentrant = false;
        snib__core_join(&r.core, &h, &again, r.now);
        expect(&r, "answer -9; ");
}

/* Row F37: whatever the engine may have granted to a cancelled wait is given back. */
static void F37_cancel_while_asking(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        ask_for_it(&r, &h, &call, false);
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "answer -18; ");
        assert_null(snib__core_find(&r.core, stock, me, SNIB_KIND_LOCK));
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "release#2; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

static void F37_cancel_leaves_the_queue(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, true);
        hold_init(&h, "u:1");
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        assert_true(r.op.enqueue);
        reply(&r, SNIB__BUSY, 0);
        expect(&r, "");
        snib__core_cancel(&r.core, &call, SNIB_ECANCELLED, r.now);
        expect(&r, "answer -18; release#2; ");
}

/* Row F92: a wake-up does not die with a waiter that gives up. */
static void F92_a_wake_up_is_passed_on(void **state)
{
        static const struct snib__name other = {"t:2", 3};
        struct rig r;
        struct snib__hold a, b;
        struct snib__call first = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER), second = first;

        rig_init(&r, false);
        hold_init(&a, "u:1");
        hold_init(&b, "u:2");
        b.owner = other;
        snib__core_begin(&r.core, &a, &first, r.now);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        snib__core_begin(&r.core, &b, &second, r.now);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        pull(&r);
        r.trace[0] = 0;
        snib__core_changed(&r.core, stock, false, r.now);
        expect(&r, "acquire#2; ");
        assert_string_equal(r.op.id.text, "u:1");
        snib__core_cancel(&r.core, &first, SNIB_ECANCELLED, r.now);
        expect(&r, "answer -18; acquire#1; "); /* and the watch is the other's */
        assert_string_equal(r.op.id.text, "u:2");
}

static void F13_wait_that_just_elapsed_gets_one_answer(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, 0);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        call.deadline = r.now + SNIB__MS;
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        pass(&r, 5 * SNIB__MS);
        expect(&r, "");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "answer 1; ");
}

static void max_hold_ends_it(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.max_hold = 15 * SNIB__S;
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
        reply(&r, SNIB__GRANTED, 7);
        pass(&r, 10 * SNIB__S);
        pull(&r);
        reply(&r, SNIB__RENEWED, 0);
        pull(&r);
        r.trace[0] = 0;
        pass(&r, 5 * SNIB__S);
        expect(&r, "lost max-hold; release#3; ");
}

/* A fixed lease is checked after a reconnect, not lengthened. */
static void fixed_lease_is_checked_not_extended(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        h.keep = false;
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
        reply(&r, SNIB__GRANTED, 7);
        pull(&r);
        r.trace[0] = 0;
        snib__ns deadline = h.deadline;
        pass(&r, 20 * SNIB__S);
        expect(&r, "");
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        expect(&r, "renew#2; ");
        assert_int_equal(r.op.lease_ms, 30000); /* a shorter one, executed late, would cut a later re-entry's */
        reply(&r, SNIB__RENEWED, 0);
        assert_true(h.deadline == deadline);
        pass(&r, 10 * SNIB__S);
        assert_int_equal(h.loss, SNIB_LOSS_EXPIRED);
}

static void query_is_asked_again_until_its_deadline(void **state)
{
        struct rig r;
        struct snib__ask ask = {.op = {.verb = SNIB__QUERY, .name = stock}};
        struct snib__reply unknown = {.status = SNIB__FAILED, .error = SNIB_EUNREACHABLE};
        struct snib__reply info = {.status = SNIB__INFO, .held = true};

        rig_init(&r, false);
        ask.deadline = r.now + SNIB__S;
        snib__core_ask(&r.core, &ask, r.now);
        expect(&r, "query#1; ");
        snib__core_reply_ask(&r.core, &ask, r.cookie, r.attempt, &unknown, r.now);
        expect(&r, "");
        snib__core_link(&r.core, true, 0, 0, NULL, r.now);
        expect(&r, "query#2; ");
        snib__core_reply_ask(&r.core, &ask, r.cookie, r.attempt, &info, r.now);
        expect(&r, "answer-ask 1; ");
}

static void close_releases_and_answers(void **state)
{
        static const struct snib__name other = {"t:2", 3};
        struct rig r;
        struct snib__hold h, w;
        struct snib__call call, wait = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        hold_it(&r, &h, &call);
        hold_init(&w, "u:2");
        w.owner = other;
        snib__core_begin(&r.core, &w, &wait, r.now);
        pull(&r);
        reply(&r, SNIB__BUSY, 0);
        pull(&r);
        r.trace[0] = 0;
        snib__core_close(&r.core, r.now);
        expect(&r, "lost otherwise; answer -7; unwatch; free; release#2; ");
        r.hold = &h;
        r.cookie = h.cookie;
        r.attempt = h.request.attempt;
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
        assert_true(snib__list_empty(&r.core.holds));
}

/* An engine that says nothing: the wait is over a moment after its limit, and what the question may
 * bring is given back without waiting for it. */
static void a_wait_ends_although_nobody_answers(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        call.deadline = r.now + 500 * SNIB__MS;
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        pass(&r, 500 * SNIB__MS);
        expect(&r, "");
        pass(&r, 50 * SNIB__MS);
        expect(&r, "answer -12; ");
        reply(&r, SNIB__GRANTED, 7);
        expect(&r, "release#2; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
}

/* What was only asked for is taken back on the way that the question went; nobody waits for it. */
static void a_close_does_not_wait_for_what_was_given_up(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        call.deadline = r.now + 500 * SNIB__MS;
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
        pass(&r, 500 * SNIB__MS);
        pass(&r, 50 * SNIB__MS);
        expect(&r, "acquire#1; answer -12; ");
        snib__core_close(&r.core, r.now);
        expect(&r, "release#2; ");
        assert_int_equal(r.core.farewells, 0);
}

static void a_close_waits_for_what_was_held(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call;

        hold_it(&r, &h, &call);
        snib__core_close(&r.core, r.now);
        expect(&r, "lost otherwise; release#2; ");
        assert_int_equal(r.core.farewells, 1);
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
        assert_int_equal(r.core.farewells, 0);
}

/* It did not leave: nothing is in doubt, nobody waits for an answer, and what must happen all the
 * same is tried again. */
static void what_the_engine_does_not_take_is_answered(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER), back;
        struct snib__ask ask = {.op = {.verb = SNIB__QUERY, .name = stock}, .deadline = SNIB__NEVER};

        rig_init(&r, true);
        hold_init(&h, "u:1");
        snib__core_begin(&r.core, &h, &call, r.now);
        no_memory(&r, "acquire#1; answer -19; free; ");
        assert_string_equal(call.fault.text, "no memory for a request");
        snib__core_ask(&r.core, &ask, r.now);
        no_memory(&r, "query#1; answer-ask -19; ");

        hold_it(&r, &h, &call);
        pass(&r, 10 * SNIB__S);
        no_memory(&r, "renew#2; ");
        assert_int_equal(h.state, SNIB__HELD);
        pass(&r, SNIB__S);
        expect(&r, "renew#3; ");
        reply(&r, SNIB__RENEWED, 7);
        back = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);
        snib__core_release(&r.core, &h, &back, r.now);
        no_memory(&r, "release#4; answer -19; ");
        pass(&r, SNIB__S);
        expect(&r, "release#5; ");
        reply(&r, SNIB__RELEASED, 0);
        expect(&r, "free; ");
        assert_int_equal(snib__core_deadline(&r.core), SNIB__NEVER);
}

static void answered_with_lease(struct rig *r, enum snib__status status, int64_t lease_ms)
{
        struct snib__reply a = {.status = status, .token = 7, .lease_ms = lease_ms};

        snib__core_reply_hold(&r->core, r->hold, r->cookie, r->attempt, &a, r->now);
}

/* The smaller of the lease that was asked for and the one that was given: for the deadline, and for
 * when to renew. */
static void the_lease_that_was_given_counts(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, true);
        hold_init(&h, "u:1");
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        answered_with_lease(&r, SNIB__GRANTED, 6000);
        expect(&r, "answer 1; ");
        assert_int_equal(h.valid_until, r.now + snib__lease_trusted(6 * SNIB__S));
        pass(&r, 2 * SNIB__S);
        expect(&r, "renew#2; ");
        assert_int_equal(r.op.lease_ms, 30000); /* it is asked for again */
        answered_with_lease(&r, SNIB__RENEWED, 60000);
        assert_int_equal(h.valid_until, r.now + snib__lease_trusted(30 * SNIB__S));
        pass(&r, 10 * SNIB__S);
        expect(&r, "renew#3; ");
        answered_with_lease(&r, SNIB__RENEWED, 0);
        assert_int_equal(h.valid_until, r.now + snib__lease_trusted(30 * SNIB__S));
}

/* It is over when the answer comes: given back, not returned. */
static void a_lease_that_is_over_when_it_is_given_is_none(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, true, 0);

        rig_init(&r, true);
        hold_init(&h, "u:1");
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        pass(&r, 500 * SNIB__MS);
        answered_with_lease(&r, SNIB__GRANTED, 400);
        expect(&r, "answer -11; release#2; ");
}

static void busy_with_look(struct rig *r, int64_t look_ms)
{
        struct snib__reply a = {.status = SNIB__BUSY, .left_ms = -1, .look_ms = look_ms};

        snib__core_reply_hold(&r->core, r->hold, r->cookie, r->attempt, &a, r->now);
        expect(r, "");
}

/* What an answer says comes before what the engine says, and that before what core thinks right. */
static void the_engine_says_when_to_ask_again(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, true);
        hold_init(&h, "u:1");
        snib__core_begin(&r.core, &h, &call, r.now);
        expect(&r, "acquire#1; ");
        busy_with_look(&r, 50);
        pass(&r, 49 * SNIB__MS);
        expect(&r, "");
        pass(&r, 6 * SNIB__MS);
        expect(&r, "acquire#2; ");
        busy_with_look(&r, 5000);
        pass(&r, 4999 * SNIB__MS);
        expect(&r, "");
        pass(&r, 400 * SNIB__MS);
        expect(&r, "acquire#3; ");
        r.core.config.poll = 200 * SNIB__MS;
        busy_with_look(&r, 0);
        pass(&r, 213 * SNIB__MS);
        expect(&r, "acquire#4; ");
        r.core.config.poll = 0;
        busy_with_look(&r, 0);
        pass(&r, 999 * SNIB__MS);
        expect(&r, "");
        pass(&r, 65 * SNIB__MS);
        expect(&r, "acquire#5; ");
        busy_with_look(&r, INT64_MAX);
        assert_true(snib__core_deadline(&r.core) - r.now <= 64 * SNIB__S);
}

static bool is_stock(const void *arg, struct snib__name name)
{
        ++*(int *)arg;
        return name.length == stock.length && !memcmp(name.bytes, stock.bytes, name.length);
}

/* What stands behind other links goes on as it was. */
static void links_that_came_back_in_part(void **state)
{
        struct rig r;
        struct snib__hold held, waits, other;
        struct snib__call call, wait = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER), more = wait;
        struct snib__ask question = {.op = {.verb = SNIB__QUERY, .name = stock}, .deadline = SNIB__NEVER};
        struct snib__ask pause = {.deadline = SNIB__NEVER};
        int asked = 0;

        hold_it(&r, &held, &call);
        hold_init(&other, "u:2");
        other.name = (struct snib__name){"other", 5};
        snib__core_begin(&r.core, &other, &more, r.now);
        expect(&r, "acquire#1; ");
        reply(&r, SNIB__BUSY, 0);
        hold_init(&waits, "u:3");
        waits.owner = (struct snib__name){"t:3", 3};
        snib__core_begin(&r.core, &waits, &wait, r.now);
        expect(&r, "watch; acquire#1; ");
        refuse(&r, SNIB_EUNREACHABLE);
        snib__core_ask(&r.core, &question, r.now);
        expect(&r, "query#1; ");
        snib__core_reply_ask(&r.core, &question, r.cookie, r.attempt,
                             &(struct snib__reply){.status = SNIB__FAILED, .error = SNIB_EUNREACHABLE}, r.now);
        snib__core_ask(&r.core, &pause, r.now);
        expect(&r, "");
        snib__core_relinked(&r.core, is_stock, &asked, r.now);
        expect(&r, "query#2; renew#2; acquire#2; ");
        assert_int_equal(asked, 4); /* not about what asks nothing */
        assert_true(r.core.link_up);
}

/* A bit that is set where it has no meaning, or missing where it has to be, is noticed. */
static void the_check_notices_a_wrong_bit(void **state)
{
        struct rig r;
        struct snib__hold h;
        struct snib__call call = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        rig_init(&r, false);
        hold_init(&h, "u:1");
        snib__core_begin(&r.core, &h, &call, r.now);
        pull(&r);
#define WRONG(bit, value)                                          \
        do {                                                       \
                h.bit = value;                                     \
                assert_non_null(snib__core_check(&r.core, r.now)); \
                h.bit = !(value);                                  \
                assert_null(snib__core_check(&r.core, r.now));     \
        } while (0)
        WRONG(request.outstanding, false);
        WRONG(known.silent, true);
        WRONG(known.watch.begin, true);
        WRONG(lost_pending, true);
        WRONG(leaving, true);
        reply(&r, SNIB__GRANTED, 7);
        pull(&r);
        WRONG(request.submit, true);
        WRONG(known.queued, true);
        WRONG(known.woken, true);
        WRONG(known.watch.on, true);
        WRONG(again, true);
        WRONG(release_in_doubt, true);
        WRONG(leaving, true);
        WRONG(farewell, true);
#undef WRONG
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(acquire_and_release),
            cmocka_unit_test(the_check_notices_a_wrong_bit),
            cmocka_unit_test(what_the_engine_does_not_take_is_answered),
            cmocka_unit_test(links_that_came_back_in_part),
            cmocka_unit_test(the_lease_that_was_given_counts),
            cmocka_unit_test(a_lease_that_is_over_when_it_is_given_is_none),
            cmocka_unit_test(the_engine_says_when_to_ask_again),
            cmocka_unit_test(a_hold_is_left_to_its_lease),
            cmocka_unit_test(leaving_what_was_taken_is_lost),
            cmocka_unit_test(only_the_last_acquire_leaves),
            cmocka_unit_test(deadline_counts_from_before_the_request),
            cmocka_unit_test(F8_born_dead_is_not_returned),
            cmocka_unit_test(busy_try_answers_the_holder),
            cmocka_unit_test(F30_asks_again_after_watching),
            cmocka_unit_test(F31_polls_within_the_holders_lease),
            cmocka_unit_test(F15_repeats_with_the_same_id),
            cmocka_unit_test(F24_a_try_over_a_cut_connection_is_made_again),
            cmocka_unit_test(a_try_does_not_wait_for_a_server_that_is_gone),
            cmocka_unit_test(F15_a_doubt_stays_a_doubt_while_the_link_is_down),
            cmocka_unit_test(F17_an_answer_to_an_earlier_attempt_is_dropped),
            cmocka_unit_test(F16_a_repeated_release_says_released),
            cmocka_unit_test(F82_release_of_what_was_taken_is_lost),
            cmocka_unit_test(F83_release_that_fails_goes_on_behind),
            cmocka_unit_test(renews_every_third_and_is_lost_at_the_deadline),
            cmocka_unit_test(a_loss_knows_its_cause),
            cmocka_unit_test(F6_after_a_pause_the_loss_comes_first),
            cmocka_unit_test(F87_renewal_tells_who_took_it),
            cmocka_unit_test(reentry_counts_and_compares_the_token),
            cmocka_unit_test(F79_reentry_into_a_new_epoch_is_a_loss),
            cmocka_unit_test(F79_reentry_into_nothing_is_a_loss),
            cmocka_unit_test(non_reentrant_refuses_its_owner),
            cmocka_unit_test(F37_cancel_while_asking),
            cmocka_unit_test(F37_cancel_leaves_the_queue),
            cmocka_unit_test(F92_a_wake_up_is_passed_on),
            cmocka_unit_test(F13_wait_that_just_elapsed_gets_one_answer),
            cmocka_unit_test(max_hold_ends_it),
            cmocka_unit_test(fixed_lease_is_checked_not_extended),
            cmocka_unit_test(query_is_asked_again_until_its_deadline),
            cmocka_unit_test(close_releases_and_answers),
            cmocka_unit_test(a_wait_ends_although_nobody_answers),
            cmocka_unit_test(a_close_does_not_wait_for_what_was_given_up),
            cmocka_unit_test(a_close_waits_for_what_was_held),
        };

        return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
