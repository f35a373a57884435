/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When a client with many holds renews which: spread over the round, in small crowds, never late,
 * and never so many at once that others stand behind them. Time is a number, and the engine answers
 * when the test says so.
 */

#include "rig.h"
#include <stdlib.h>

#define MANY 1000
/* So many in a row leave together. */
#define NEIGHBOURS 16

struct crowd {
        struct snib__core core;
        snib__ns now;
        int count;
        struct snib__hold *hold; /* MANY */
        struct snib__call call[MANY];
        char id[MANY][16];
        snib__ns asked_at[MANY]; /* of the latest request */
        int lost;
};

static int index_of(const struct crowd *w, const struct snib__hold *h)
{
        return (int)(h - w->hold);
}

static void answer(struct crowd *w, struct snib__hold *h, enum snib__status status)
{
        struct snib__reply r = {.status = status, .token = status == SNIB__GRANTED ? 1 + index_of(w, h) : 0};

        if (status == SNIB__FAILED)
                r.error = SNIB_EUNREACHABLE;
        assert_true(snib__core_reply_hold(&w->core, h, h->cookie, h->request.attempt, &r, w->now));
}

/* Pulls all effects; the requests with this verb go to `ret`, which may be NULL. */
static int asked(struct crowd *w, enum snib__verb verb, struct snib__hold **ret)
{
        struct snib__effect e;
        int n = 0;

        while (snib__core_next(&w->core, &e)) {
                w->lost += e.kind == SNIB__EFFECT_LOST;
                if (e.kind != SNIB__EFFECT_SUBMIT || e.op->verb != verb)
                        continue;
                if (ret)
                        ret[n] = e.hold;
                n++;
        }
        assert_null(snib__core_check(&w->core, w->now));
        return n;
}

/* All are acquired at one instant. */
static struct crowd *crowd_new(int count, int phases, int renewals)
{
        struct snib__core_config config = {.watches = true,
                                           .token_block = SNIB__TOKEN_BLOCK,
                                           .op_timeout = 3 * SNIB__S,
                                           .renewals = renewals,
                                           .phases = phases,
                                           .neighbours = NEIGHBOURS,
                                           .seed = 1};
        struct crowd *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        w->hold = calloc(MANY, sizeof(*w->hold));
        assert_non_null(w->hold);
        w->now = 12345 * SNIB__S + 678;
        w->count = count;
        snib__core_init(&w->core, &config);
        snib__core_link(&w->core, true, 0, 0, NULL, w->now);
        for (int i = 0; i < count; i++) {
                snprintf(w->id[i], sizeof(w->id[i]), "u:%d", i);
                hold_init(&w->hold[i], w->id[i]);
                w->hold[i].name = (struct snib__name){w->id[i], strlen(w->id[i])};
                w->call[i] = call_init(SNIB__CALL_ACQUIRE, true, 0);
                snib__core_begin(&w->core, &w->hold[i], &w->call[i], w->now);
        }
        assert_int_equal(asked(w, SNIB__ACQUIRE, NULL), count);
        for (int i = 0; i < count; i++) {
                answer(w, &w->hold[i], SNIB__GRANTED);
                w->asked_at[i] = w->now;
        }
        (void)asked(w, SNIB__RENEW, NULL);
        return w;
}

static void crowd_free(struct crowd *w)
{
        free(w->hold);
        free(w);
}

static void go_to(struct crowd *w, snib__ns when)
{
        w->now = when;
        snib__core_tick(&w->core, w->now);
}

static void those_who_began_together_are_spread(void **state)
{
        struct crowd *w = crowd_new(MANY, 256, MANY);
        struct snib__hold *due[MANY];
        snib__ns begun = w->now, third = 10 * SNIB__S;
        int renewals = 0, instants = 0;

        (void)state;
        while (snib__core_deadline(&w->core) < begun + 6 * third) {
                go_to(w, snib__core_deadline(&w->core));
                int n = asked(w, SNIB__RENEW, due);

                assert_true(n <= NEIGHBOURS); /* of 1000, in 63 groups at 256 points */
                instants += n > 0;
                renewals += n;
                for (int k = 0; k < n; k++) {
                        int i = index_of(w, due[k]);
                        snib__ns after = w->now - w->asked_at[i];

                        assert_true(after <= third);
                        assert_true(w->asked_at[i] == begun ? after > third / 2 : after == third);
                        w->asked_at[i] = w->now;
                        answer(w, due[k], SNIB__RENEWED);
                }
        }
        assert_int_equal(w->lost, 0);
        assert_in_range(renewals, 5 * MANY, 6 * MANY);
        assert_true(instants <= 6 * (MANY / NEIGHBOURS + 1));
        crowd_free(w);
}

/* Answers that take some time move nobody to another point, nor beyond a third of the lease. */
static void slow_answers_do_not_bunch_them(void **state)
{
        struct crowd *w = crowd_new(MANY, 256, MANY);
        struct snib__hold *due[MANY];
        snib__ns begun = w->now;

        (void)state;
        while (snib__core_deadline(&w->core) < begun + 60 * SNIB__S) {
                go_to(w, snib__core_deadline(&w->core));
                int n = asked(w, SNIB__RENEW, due);

                assert_true(n <= 2 * NEIGHBOURS);
                w->now += n * SNIB__MS;
                for (int k = 0; k < n; k++) {
                        assert_true(due[k]->request.sent_at - w->asked_at[index_of(w, due[k])] <=
                                    10 * SNIB__S + SNIB__S / 4);
                        w->asked_at[index_of(w, due[k])] = due[k]->request.sent_at;
                        answer(w, due[k], SNIB__RENEWED);
                }
        }
        assert_int_equal(w->lost, 0);
        crowd_free(w);
}

/* The link comes back: all are checked, and afterwards they are spread as before. */
static void a_check_of_all_does_not_bunch_them(void **state)
{
        struct crowd *w = crowd_new(MANY, 256, MANY);
        struct snib__hold *due[MANY];
        snib__ns until;

        (void)state;
        go_to(w, w->now + SNIB__S);
        snib__core_link(&w->core, false, SNIB_EUNREACHABLE, 0, "cut", w->now);
        snib__core_link(&w->core, true, 0, 0, NULL, w->now);
        assert_int_equal(asked(w, SNIB__RENEW, due), MANY);
        for (int k = 0; k < MANY; k++)
                answer(w, due[k], SNIB__RENEWED);
        for (until = w->now + 10 * SNIB__S; snib__core_deadline(&w->core) < until;) {
                go_to(w, snib__core_deadline(&w->core));
                int n = asked(w, SNIB__RENEW, due);

                assert_true(n <= NEIGHBOURS);
                for (int k = 0; k < n; k++)
                        answer(w, due[k], SNIB__RENEWED);
        }
        crowd_free(w);
}

static void few_are_under_way_at_once(void **state)
{
        struct crowd *w = crowd_new(MANY, 1, 10);
        struct snib__hold *due[MANY], *next[MANY];
        int renewed[MANY] = {0};

        (void)state;
        go_to(w, snib__core_deadline(&w->core));
        int n = asked(w, SNIB__RENEW, due);
        for (int left = MANY; left > 0; left--) {
                assert_int_equal(n, left < 10 ? left : 10);
                answer(w, due[0], SNIB__RENEWED);
                renewed[index_of(w, due[0])]++;
                memmove(due, due + 1, (size_t)(n - 1) * sizeof(due[0]));
                int more = asked(w, SNIB__RENEW, next); /* each answer lets one go */
                assert_int_equal(more, left > 10);
                memcpy(due + n - 1, next, (size_t)more * sizeof(due[0]));
                n += more - 1;
        }
        for (int i = 0; i < MANY; i++)
                assert_int_equal(renewed[i], 1);
        crowd_free(w);
}

/* The engine says nothing to the first ones: nobody else waits longer for that than until half of
 * his lease. */
static void nobody_waits_beyond_half_of_the_lease(void **state)
{
        struct crowd *w = crowd_new(20, 1, 10);
        struct snib__hold *due[MANY];
        snib__ns begun = w->now;
        int sent = 0;

        (void)state;
        w->core.config.op_timeout = 3600 * SNIB__S;
        go_to(w, snib__core_deadline(&w->core));
        assert_int_equal(asked(w, SNIB__RENEW, due), 10);
        while (snib__core_deadline(&w->core) <= begun + 15 * SNIB__S) {
                go_to(w, snib__core_deadline(&w->core));
                sent += asked(w, SNIB__RENEW, due);
        }
        assert_int_equal(sent, 10);
        assert_int_equal(w->lost, 0);
        crowd_free(w);
}

/* Whoever is asked for by name does not stand in line, and whoever leaves it is not renewed. */
static void a_postponed_renewal_can_be_overtaken(void **state)
{
        struct crowd *w = crowd_new(6, 1, 1);
        struct snib__hold *due[MANY], *first;
        struct snib__call call[3];

        (void)state;
        go_to(w, snib__core_deadline(&w->core));
        assert_int_equal(asked(w, SNIB__RENEW, due), 1);
        first = due[0];
        assert_ptr_equal(first, &w->hold[0]);
        call[0] = call_init(SNIB__CALL_RELEASE, false, w->now + SNIB__S);
        snib__core_release(&w->core, &w->hold[1], &call[0], w->now);
        assert_int_equal(asked(w, SNIB__RELEASE, due), 1);
        call[1] = call_init(SNIB__CALL_RENEW, false, w->now + SNIB__S);
        snib__core_renew(&w->core, &w->hold[2], &call[1], w->now);
        assert_int_equal(asked(w, SNIB__RENEW, due), 1);
        call[2] = call_init(SNIB__CALL_ACQUIRE, true, 0);
        snib__core_join(&w->core, &w->hold[3], &call[2], w->now);
        assert_int_equal(asked(w, SNIB__ACQUIRE, due), 1);
        snib__core_disown(&w->core, &w->hold[4], SNIB_LOSS_THREAD_EXIT, w->now);
        assert_int_equal(asked(w, SNIB__RELEASE, due), 1);
        answer(w, first, SNIB__RENEWED);
        assert_int_equal(asked(w, SNIB__RENEW, due), 0); /* the one asked for by name is under way */
        answer(w, &w->hold[2], SNIB__RENEWED);
        assert_int_equal(call[1].result, 1);
        assert_int_equal(asked(w, SNIB__RENEW, due), 1);
        assert_ptr_equal(due[0], &w->hold[5]);
        crowd_free(w);
}

/* One whose answer was still expected is released: the next one need not wait for that. */
static void a_release_makes_room(void **state)
{
        struct crowd *w = crowd_new(2, 1, 1);
        struct snib__hold *due[MANY];
        struct snib__call call = call_init(SNIB__CALL_RELEASE, false, SNIB__NEVER);

        (void)state;
        go_to(w, snib__core_deadline(&w->core));
        assert_int_equal(asked(w, SNIB__RENEW, due), 1);
        snib__core_release(&w->core, due[0], &call, w->now);
        (void)asked(w, SNIB__RELEASE, NULL);
        answer(w, due[0], SNIB__RELEASED);
        assert_int_equal(asked(w, SNIB__RENEW, due), 1);
        assert_ptr_equal(due[0], &w->hold[1]);
        crowd_free(w);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test(those_who_began_together_are_spread),
            cmocka_unit_test(slow_answers_do_not_bunch_them),
            cmocka_unit_test(a_check_of_all_does_not_bunch_them),
            cmocka_unit_test(few_are_under_way_at_once),
            cmocka_unit_test(nobody_waits_beyond_half_of_the_lease),
            cmocka_unit_test(a_postponed_renewal_can_be_overtaken),
            cmocka_unit_test(a_release_makes_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
