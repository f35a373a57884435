/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waiters of one client for one lock: who asks, who gets the hold when it is given back, with which
 * token, and what becomes of the places and doubts of the others. As test_core.c: a readable trace,
 * time a number. The interplay with other clients is the simulator's.
 */

#include "rig.h"

#define THREADS 20

struct stand {
        struct rig r;
        struct snib__hold h[THREADS];
        struct snib__call call[THREADS], back[THREADS];
        char key[THREADS][16];
};

static void stand_init(struct stand *s, bool queues)
{
        memset(s, 0, sizeof(*s));
        rig_init(&s->r, queues);
}

/* Thread i has a hold to ask with, whose id is "u:<i>". */
static struct snib__hold *thread(struct stand *s, int i)
{
        char id[16];

        snprintf(id, sizeof(id), "u:%d", i);
        snprintf(s->key[i], sizeof(s->key[i]), "t:%d", i);
        hold_init(&s->h[i], id);
        s->h[i].kind = SNIB_KIND_LOCK;
        s->h[i].owner = (struct snib__name){s->key[i], strlen(s->key[i])};
        return &s->h[i];
}

static void wait_for(struct stand *s, int i, snib__ns deadline)
{
        s->call[i] = call_init(SNIB__CALL_ACQUIRE, false, deadline);
        snib__core_begin(&s->r.core, &s->h[i], &s->call[i], s->r.now);
}

static void arrive(struct stand *s, int i)
{
        thread(s, i);
        wait_for(s, i, SNIB__NEVER);
}

static void give_back(struct stand *s, int i)
{
        s->back[i] = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);
        snib__core_release(&s->r.core, &s->h[i], &s->back[i], s->r.now);
}

static void id_is(const struct snib__hold *h, const char *id)
{
        assert_string_equal(h->known.id.text, id);
}

static void asked_with(const struct rig *r, const char *id)
{
        assert_string_equal(r->op.id.text, id);
}

/* Thread 0 holds with token 100; threads 1 to n wait, the first of them stands in the engine's
 * queue or watches. */
static void crowd(struct stand *s, bool queues, int n)
{
        stand_init(s, queues);
        arrive(s, 0);
        expect(&s->r, "acquire#1; ");
        reply(&s->r, SNIB__GRANTED, 100);
        expect(&s->r, "answer 1; ");
        for (int i = 1; i <= n; i++) {
                arrive(s, i);
                expect(&s->r, i == 1 ? "acquire#1; " : "");
                if (i == 1) {
                        reply(&s->r, SNIB__BUSY, 0);
                        expect(&s->r, queues ? "" : "watch; ");
                }
        }
        s->r.now += 100000; /* 100 us */
}

static void one_asks_for_all(void **state)
{
        struct stand s;

        crowd(&s, true, 3);
        snib__core_changed(&s.r.core, stock, true, s.r.now);
        expect(&s.r, "acquire#2; ");
        asked_with(&s.r, "u:1");
        reply(&s.r, SNIB__BUSY, 0);
        pass(&s.r, 2 * SNIB__S); /* longer than a poll, shorter than a third of the lease */
        expect(&s.r, "acquire#3; ");
        asked_with(&s.r, "u:1");
        snib__core_link(&s.r.core, false, SNIB_EUNREACHABLE, 0, "cut", s.r.now);
        snib__core_link(&s.r.core, true, 0, 0, NULL, s.r.now);
        refuse(&s.r, SNIB_EUNREACHABLE);
        snib__core_link(&s.r.core, true, 0, 0, NULL, s.r.now);
        expect(&s.r, "renew#2; acquire#4; ");
}

static void a_hold_passes_to_the_next(void **state)
{
        struct stand s;

        crowd(&s, true, 3);
        s.h[0].known.streak = 5;
        give_back(&s, 0);
        /* Thread 2 stands in the place of thread 1; thread 0 is done with. */
        expect(&s.r, "answer 1; answer 1; free; ");
        assert_int_equal(s.h[1].state, SNIB__HELD);
        assert_int_equal(s.h[1].token, 101);
        assert_int_equal(s.h[1].depth, 1);
        assert_int_equal(s.h[0].valid_until, 0);
        id_is(&s.h[1], "u:0");
        id_is(&s.h[2], "u:1");
        assert_true(s.h[2].known.queued && !s.h[2].known.silent && s.h[3].known.silent);
        s.r.now += 1000;
        give_back(&s, 1);
        expect(&s.r, "answer 1; answer 1; free; ");
        assert_int_equal(s.h[2].token, 102);
        assert_int_equal(s.h[2].known.streak, 5);
        id_is(&s.h[3], "u:1");
}

static void the_lease_is_the_first_ones(void **state)
{
        struct stand s;
        snib__ns until;

        crowd(&s, true, 1);
        until = s.h[0].deadline;
        give_back(&s, 0);
        assert_int_equal(s.h[1].deadline, until);
        assert_int_equal(s.h[1].valid_until, until);
        pull(&s.r);
        s.r.trace[0] = 0;
        reply(&s.r, SNIB__RELEASED, 0); /* of its own place */
        expect(&s.r, "free; ");
        pass(&s.r, 10 * SNIB__S); /* a third of the lease: the watchdog goes on, under the id that the engine knows */
        expect(&s.r, "renew#2; ");
        assert_string_equal(s.r.op.id.text, "u:0");
}

static void a_place_that_nobody_takes_over_is_given_back(void **state)
{
        struct stand s;

        crowd(&s, true, 1);
        give_back(&s, 0);
        expect(&s.r, "answer 1; answer 1; release#2; ");
        asked_with(&s.r, "u:1");
        assert_ptr_equal(s.r.hold, &s.h[0]);
        reply(&s.r, SNIB__RELEASED, 0);
        expect(&s.r, "free; ");
        assert_int_equal(s.h[1].state, SNIB__HELD);
}

static void a_watch_goes_along(void **state)
{
        struct stand s;

        crowd(&s, false, 2);
        give_back(&s, 0);
        expect(&s.r, "answer 1; answer 1; free; ");
        assert_true(s.h[2].known.watch.on);
        s.r.now += 1000;
        give_back(&s, 1);
        expect(&s.r, "answer 1; answer 1; unwatch; free; ");
}

/* The token after its own is somebody else's, who may have waited for long. */
static void with_one_token_a_grant_nothing_is_handed_over(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        s.r.core.config.token_block = 1;
        s.r.now += 1000;
        give_back(&s, 0);
        expect(&s.r, "release#2; ");
        reply(&s.r, SNIB__RELEASED, 0);
        expect(&s.r, "answer 1; free; ");
        assert_int_equal(s.h[1].state, SNIB__WAITING);
        snib__core_granted(&s.r.core, stock, &s.h[1].known.id, s.h[1].request.attempt,
                           &(struct snib__reply){.token = 101}, s.r.now);
        expect(&s.r, "answer 1; acquire#1; "); /* of the one who waited silently */
        assert_int_equal(s.h[1].token, 101);
}

static void no_more_than_a_block_of_tokens(void **state)
{
        struct stand s;

        crowd(&s, true, SNIB__TOKEN_BLOCK);
        for (int i = 0; i < SNIB__TOKEN_BLOCK - 1; i++) {
                s.r.now += 1000;
                give_back(&s, i);
                expect(&s.r, "answer 1; answer 1; free; ");
                assert_int_equal(s.h[i + 1].token, 101 + i);
        }
        s.r.now += 1000;
        give_back(&s, SNIB__TOKEN_BLOCK - 1);
        expect(&s.r, "release#2; "); /* and no question goes with it */
        asked_with(&s.r, "u:0");
        reply(&s.r, SNIB__RELEASED, 0);
        expect(&s.r, "answer 1; free; ");
        snib__core_granted(&s.r.core, stock, &s.h[SNIB__TOKEN_BLOCK].known.id, 0, &(struct snib__reply){.token = 0},
                           s.r.now);
        expect(&s.r, "acquire#2; ");
        asked_with(&s.r, "u:1");
        reply(&s.r, SNIB__GRANTED, 116);
        expect(&s.r, "answer 1; ");
        assert_int_equal(s.h[SNIB__TOKEN_BLOCK].token, 116);
}

static void not_for_long(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        s.r.now += 5 * SNIB__MS;
        give_back(&s, 0);
        expect(&s.r, "release#2; ");
        asked_with(&s.r, "u:0");
}

static void not_within_the_same_microseconds(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        s.r.now -= 100000 - 2000;
        give_back(&s, 0);
        expect(&s.r, "release#2; ");
}

static void a_reentry_shows_the_engines_token(void **state)
{
        struct stand s;
        struct snib__call again = call_init(SNIB__CALL_ACQUIRE, false, SNIB__NEVER);

        crowd(&s, true, 2);
        give_back(&s, 0);
        pull(&s.r);
        s.r.trace[0] = 0;
        snib__core_join(&s.r.core, &s.h[1], &again, s.r.now);
        expect(&s.r, "acquire#2; ");
        assert_int_equal(s.r.op.token, 100);
        reply(&s.r, SNIB__GRANTED, 100);
        expect(&s.r, "answer 1; ");
        assert_int_equal(s.h[1].token, 101);
        snib__core_join(&s.r.core, &s.h[1], &again, s.r.now);
        pull(&s.r);
        s.r.trace[0] = 0;
        reply(&s.r, SNIB__GRANTED, 130); /* it ended unnoticed */
        expect(&s.r, "lost gone; answer -13; release#4; ");
}

/* What only looks alike, asks for other terms, or is not sure to be held, is released. */
static void only_what_is_sure_and_alike(void **state)
{
        struct stand s;
        struct snib__call renewal = call_init(SNIB__CALL_RENEW, false, SNIB__NEVER);

        for (int i = 0; i < 6; i++) {
                stand_init(&s, true);
                thread(&s, 0);
                if (i == 5)
                        s.h[0].max_hold = 60 * SNIB__S;
                wait_for(&s, 0, SNIB__NEVER);
                pull(&s.r);
                reply(&s.r, SNIB__GRANTED, 100);
                thread(&s, 1);
                s.h[1].kind = i == 0 ? SNIB_KIND_FENCED : i == 1 ? SNIB_KIND_FAIR : SNIB_KIND_LOCK;
                s.h[1].lease = i == 2 ? 20 * SNIB__S : s.h[1].lease;
                s.h[1].keep = i != 3;
                s.h[1].max_hold = s.h[0].max_hold;
                wait_for(&s, 1, SNIB__NEVER);
                pull(&s.r);
                reply(&s.r, SNIB__BUSY, 0);
                if (i == 4)
                        snib__core_renew(&s.r.core, &s.h[0], &renewal, s.r.now);
                pull(&s.r);
                s.r.trace[0] = 0;
                s.r.now += 100000;
                give_back(&s, 0);
                expect(&s.r, i == 4 ? "release#3; " : "release#2; ");
        }
}

static void a_lost_hold_is_not_passed_on(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        s.h[0].keep = false;
        snib__core_ended(&s.r.core, stock, &s.h[0].known.id, s.r.now);
        expect(&s.r, "renew#2; ");
        reply(&s.r, SNIB__GONE, 0);
        expect(&s.r, "lost gone; ");
        give_back(&s, 0);
        expect(&s.r, "answer -13; free; ");
        assert_int_equal(s.h[1].state, SNIB__WAITING);
}

/* Row F22: its end is told by id, and the id has gone to another thread. */
static void the_end_of_a_hold_is_told_to_whoever_has_it_now(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        give_back(&s, 0);
        pull(&s.r);
        s.r.trace[0] = 0;
        snib__core_ended(&s.r.core, stock, &(struct snib__id){"u:0"}, s.r.now);
        expect(&s.r, "renew#2; ");
        assert_ptr_equal(s.r.hold, &s.h[1]);
        reply(&s.r, SNIB__GONE, 0);
        expect(&s.r, "lost gone; ");
}

static void whoever_asks_is_passed_over(void **state)
{
        struct stand s;

        crowd(&s, true, 3);
        snib__core_changed(&s.r.core, stock, true, s.r.now);
        expect(&s.r, "acquire#2; ");
        give_back(&s, 0);
        expect(&s.r, "answer 1; answer 1; free; ");
        assert_int_equal(s.h[2].state, SNIB__HELD);
        id_is(&s.h[1], "u:1");
        reply(&s.r, SNIB__BUSY, 0); /* its answer finds it */
        expect(&s.r, "");
        s.r.now += 1000;
        give_back(&s, 2);
        assert_int_equal(s.h[1].state, SNIB__HELD);
        assert_int_equal(s.h[1].token, 102);
}

static void a_late_answer_is_nobodys(void **state)
{
        struct stand s;
        uint64_t cookie;

        crowd(&s, true, 2);
        cookie = s.h[1].cookie;
        snib__core_changed(&s.r.core, stock, true, s.r.now);
        expect(&s.r, "acquire#2; ");
        refuse(&s.r, SNIB_EUNKNOWN); /* its fate is unknown, and another attempt follows */
        give_back(&s, 0);
        expect(&s.r, "answer 1; answer 1; free; ");
        assert_false(
            snib__core_reply_hold(&s.r.core, &s.h[1], cookie, 2, &(struct snib__reply){.status = SNIB__BUSY}, s.r.now));
        assert_true(s.h[2].request.in_doubt && s.h[2].request.stray); /* the doubt is about the id */
        assert_false(s.h[1].request.in_doubt || s.h[0].request.in_doubt);
}

/* Its place, and the doubt about it, are the next one's. */
static void one_who_leaves_gives_his_place_to_the_next(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        snib__core_cancel(&s.r.core, &s.call[1], SNIB_ECANCELLED, s.r.now);
        expect(&s.r, "answer -18; free; ");
        id_is(&s.h[2], "u:1");
        assert_true(s.h[2].known.queued && !s.h[2].known.silent);
        snib__core_cancel(&s.r.core, &s.call[2], SNIB_ECANCELLED, s.r.now);
        expect(&s.r, "answer -18; release#2; ");
        asked_with(&s.r, "u:1");
}

static void one_who_leaves_while_he_asks_leaves_the_asking(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        snib__core_changed(&s.r.core, stock, true, s.r.now);
        expect(&s.r, "acquire#2; ");
        snib__core_cancel(&s.r.core, &s.call[1], SNIB_ECANCELLED, s.r.now);
        expect(&s.r, "answer -18; acquire#1; ");
        asked_with(&s.r, "u:2");
}

static void one_who_is_silent_leaves_no_trace(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        snib__core_cancel(&s.r.core, &s.call[2], SNIB_ECANCELLED, s.r.now);
        expect(&s.r, "answer -18; free; ");
}

static void the_close_of_a_crowd_asks_nothing(void **state)
{
        struct stand s;

        crowd(&s, true, 3);
        snib__core_close(&s.r.core, s.r.now);
        expect(&s.r, "lost otherwise; answer -7; answer -7; answer -7; free; free; release#2; release#2; ");
}

static void a_grant_of_the_engine_makes_the_next_ask(void **state)
{
        struct stand s;

        crowd(&s, false, 3);
        s.r.now += 10 * SNIB__MS;
        give_back(&s, 0);
        expect(&s.r, "release#2; ");
        reply(&s.r, SNIB__RELEASED, 0);
        expect(&s.r, "answer 1; free; ");
        snib__core_changed(&s.r.core, stock, false, s.r.now);
        expect(&s.r, "acquire#2; ");
        reply(&s.r, SNIB__GRANTED, 200);
        expect(&s.r, "answer 1; acquire#1; "); /* under the same watch */
        asked_with(&s.r, "u:2");
        reply(&s.r, SNIB__BUSY, 0);
        expect(&s.r, "");
}

/* Row F13: everyone gets an answer that is true: the holder, as whoever asks was told. */
static void one_whose_time_is_over_knows_who_holds(void **state)
{
        struct stand s;

        crowd(&s, true, 1);
        thread(&s, 2);
        wait_for(&s, 2, s.r.now + SNIB__MS);
        expect(&s.r, "");
        pass(&s.r, 2 * SNIB__MS);
        expect(&s.r, "answer 0; free; ");
        assert_int_equal(s.call[2].holder.status, SNIB__BUSY);
        assert_int_equal(s.call[2].holder.left_ms, 500);
}

static void one_whose_time_is_over_asks_if_nothing_is_known(void **state)
{
        struct stand s;

        stand_init(&s, true);
        arrive(&s, 0);
        thread(&s, 1);
        wait_for(&s, 1, s.r.now + SNIB__MS);
        expect(&s.r, "acquire#1; ");
        pass(&s.r, 2 * SNIB__MS);
        expect(&s.r, "acquire#1; ");
        asked_with(&s.r, "u:1");
        reply(&s.r, SNIB__BUSY, 0);
        expect(&s.r, "answer 0; free; ");
}

static void a_single_try_asks_the_engine(void **state)
{
        struct stand s;

        crowd(&s, true, 1);
        thread(&s, 2);
        s.call[2] = call_init(SNIB__CALL_ACQUIRE, true, 0);
        snib__core_begin(&s.r.core, &s.h[2], &s.call[2], s.r.now);
        expect(&s.r, "acquire#1; ");
        reply(&s.r, SNIB__BUSY, 0);
        expect(&s.r, "answer 0; free; ");
        assert_false(s.h[1].known.silent);
}

static void a_try_that_joins_a_silent_wait_asks(void **state)
{
        struct stand s;
        struct snib__call try = call_init(SNIB__CALL_ACQUIRE, true, 0);

        crowd(&s, true, 2);
        snib__core_join(&s.r.core, &s.h[2], &try, s.r.now);
        expect(&s.r, "acquire#1; ");
        asked_with(&s.r, "u:2");
        reply(&s.r, SNIB__BUSY, 0);
        expect(&s.r, "answer 0; ");
        assert_int_equal(s.h[2].state, SNIB__WAITING);
}

static void the_end_of_a_thread_passes_nothing_on(void **state)
{
        struct stand s;

        crowd(&s, true, 2);
        snib__core_disown(&s.r.core, &s.h[0], SNIB_LOSS_THREAD_EXIT, s.r.now);
        expect(&s.r, "lost otherwise; release#2; ");
        asked_with(&s.r, "u:0");
        assert_int_equal(s.h[1].state, SNIB__WAITING);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(one_asks_for_all),
            cmocka_unit_test(a_hold_passes_to_the_next),
            cmocka_unit_test(the_lease_is_the_first_ones),
            cmocka_unit_test(a_place_that_nobody_takes_over_is_given_back),
            cmocka_unit_test(a_watch_goes_along),
            cmocka_unit_test(with_one_token_a_grant_nothing_is_handed_over),
            cmocka_unit_test(no_more_than_a_block_of_tokens),
            cmocka_unit_test(not_for_long),
            cmocka_unit_test(not_within_the_same_microseconds),
            cmocka_unit_test(a_reentry_shows_the_engines_token),
            cmocka_unit_test(only_what_is_sure_and_alike),
            cmocka_unit_test(a_lost_hold_is_not_passed_on),
            cmocka_unit_test(the_end_of_a_hold_is_told_to_whoever_has_it_now),
            cmocka_unit_test(whoever_asks_is_passed_over),
            cmocka_unit_test(a_late_answer_is_nobodys),
            cmocka_unit_test(one_who_leaves_gives_his_place_to_the_next),
            cmocka_unit_test(one_who_leaves_while_he_asks_leaves_the_asking),
            cmocka_unit_test(one_who_is_silent_leaves_no_trace),
            cmocka_unit_test(the_close_of_a_crowd_asks_nothing),
            cmocka_unit_test(a_grant_of_the_engine_makes_the_next_ask),
            cmocka_unit_test(one_whose_time_is_over_knows_who_holds),
            cmocka_unit_test(one_whose_time_is_over_asks_if_nothing_is_known),
            cmocka_unit_test(a_single_try_asks_the_engine),
            cmocka_unit_test(a_try_that_joins_a_silent_wait_asks),
            cmocka_unit_test(the_end_of_a_thread_passes_nothing_on),
        };

        return cmocka_run_group_tests_name("cohort", tests, NULL, NULL);
}
