/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The policy of looking against traces: a caller in a closed loop, in a world that says how long an
 * answer takes with a given window. What the policy costs there stands beside what fixed windows
 * cost, as in the bench; but nothing is measured, so nothing depends on the machine.
 */

#include "base/prng.h"
#include "runtime/look.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define MOST (200 * SNIB__US)
/* Who sleeps learns of an answer so much later. */
#define WAKE (40 * SNIB__US)
#define SLICE (4 * SNIB__MS)

struct world {
        snib__ns answer, other; /* how long answers take: in turn, if there are two */
        int other_in;           /* one of so many is of the other sort; 0: none */
        bool shared;            /* the server needs the processor of who looks */
        bool loops;             /* others compute: of the time that was looked, a half is theirs */
        snib__ns steal_every;   /* the machine stands still for a slice, so often; 0: never */
        int noise_percent;

        struct snib__prng prng;
        int64_t turns;
        snib__ns now, looked, stolen, owed;
};

static snib__ns next_answer(struct world *w)
{
        snib__ns t = w->other_in && w->turns % w->other_in == 0 ? w->other : w->answer;

        w->turns++;
        if (w->noise_percent)
                t += t * ((int64_t)snib__prng_below(&w->prng, 2 * (uint64_t)w->noise_percent + 1) - w->noise_percent) /
                     100;
        return t;
}

/* What others take of the processor while one looks. */
static snib__ns lose(struct world *w, snib__ns looked)
{
        snib__ns lost = 0;

        w->looked += looked;
        if (w->loops)
                w->owed += looked;
        if (w->owed >= SLICE / 8) { /* who always sleeps is ahead of those who compute */
                w->owed = 0;
                lost += SLICE;
        }
        if (w->steal_every && w->now - w->stolen > w->steal_every) {
                w->stolen = w->now;
                lost += SLICE;
        }
        return lost;
}

/* One answer. */
static struct snib__look_turn turn(struct world *w, snib__ns window, bool company)
{
        struct snib__look_turn t = {.company = company, .answered = true, .window = window};
        snib__ns answer = next_answer(w), lost = 0;

        if (window && !w->shared && answer <= window) {
                lost = lose(w, answer);
                t.found = true;
                t.took = answer + lost;
        } else {
                if (window)
                        lost = lose(w, window);
                t.took = (w->shared ? window + answer : answer > window ? answer : window) + lost + WAKE;
        }
        t.gap = lost ? lost : SNIB__US;
        w->now += t.took;
        return t;
}

/* What an answer costs on average in a while of it. */
static snib__ns fixed(const struct world *of, snib__ns window, snib__ns time)
{
        struct world w = *of;

        w.prng.state = 1;
        while (w.now < time)
                (void)turn(&w, window, false);
        return w.now / w.turns;
}

static snib__ns run(struct world *w, struct snib__look *l, bool company, snib__ns time)
{
        snib__ns until = w->now + time, begun = w->now;
        int64_t turns = w->turns;

        w->looked = 0;
        while (w->now < until) {
                struct snib__look_turn t = turn(w, snib__look_for(l, company), company);

                assert_true(t.window <= l->most);
                snib__look_answered(l, 1, t.took);
                snib__look_learn(l, &t);
        }
        return (w->now - begun) / (w->turns - turns);
}

/* The policy beside windows of 0, 50 and 200 us: at most so much of the best, in percent. */
static void beside_fixed(const char *name, const struct world *of, int64_t percent)
{
        struct world w = *of;
        struct snib__look l;
        snib__ns cost, best = SNIB__NEVER;

        for (int i = 0; i < 3; i++)
                best = snib__min(best, fixed(of, (const snib__ns[]){0, 50 * SNIB__US, MOST}[i], 2 * SNIB__S));
        for (int company = 0; company < 2; company++) {
                w = *of;
                w.prng.state = 1;
                snib__look_init(&l, MOST);
                (void)run(&w, &l, company, 200 * SNIB__MS);
                cost = run(&w, &l, company, 2 * SNIB__S);
                print_message("# %s: %lld ns, the best fixed window %lld ns\n", name, (long long)cost, (long long)best);
                assert_true(cost * 100 <= best * percent);
        }
}

static void answers_of_20_60_120_and_400_us_cost_what_the_best_window_costs(void **state)
{
        const int us[] = {20, 60, 120, 400};
        char name[32];

        for (size_t i = 0; i < sizeof(us) / sizeof(*us); i++) {
                snprintf(name, sizeof(name), "%d us", us[i]);
                beside_fixed(name, &(struct world){.answer = us[i] * SNIB__US}, 105);
                beside_fixed(name, &(struct world){.answer = us[i] * SNIB__US, .noise_percent = 30}, 105);
        }
}

static void of_answers_of_two_sorts_the_quick_ones_are_found(void **state)
{
        const struct world w = {.answer = 20 * SNIB__US, .other = 400 * SNIB__US};

        for (int in = 2; in <= 10; in += 4) {
                struct world mixed = w;

                mixed.other_in = in;
                beside_fixed("mixed", &mixed, 110);
        }
}

static void slow_answers_take_no_processor_time(void **state)
{
        struct world w = {.answer = 400 * SNIB__US, .noise_percent = 20};
        struct snib__look l;

        w.prng.state = 1;
        snib__look_init(&l, MOST);
        (void)run(&w, &l, false, 100 * SNIB__MS);
        (void)run(&w, &l, false, SNIB__S);
        assert_true(w.looked < SNIB__S / 50);
        w.answer = 20 * SNIB__US; /* and when they are quick, it looks again */
        (void)run(&w, &l, false, 2 * SNIB__S);
        (void)run(&w, &l, false, SNIB__S);
        assert_true(w.looked > SNIB__S / 2);
}

/* Each look is in vain there, though each answer comes soon after it. */
static void where_the_server_needs_the_processor_nobody_looks(void **state)
{
        beside_fixed("shared, 20 us", &(struct world){.answer = 20 * SNIB__US, .shared = true}, 105);
        beside_fixed("shared, 60 us", &(struct world){.answer = 60 * SNIB__US, .shared = true}, 105);
}

static void beside_loops_nobody_looks(void **state)
{
        beside_fixed("loops, 20 us", &(struct world){.answer = 20 * SNIB__US, .loops = true}, 105);
        beside_fixed("loops, 60 us", &(struct world){.answer = 60 * SNIB__US, .loops = true, .noise_percent = 50}, 105);
}

static void loops_that_come_are_noticed_and_so_is_their_end(void **state)
{
        struct world w = {.answer = 20 * SNIB__US};
        struct snib__look l;

        snib__look_init(&l, MOST);
        for (int i = 0; i < 3; i++) {
                w.loops = false;
                (void)run(&w, &l, true, 2 * SNIB__S);
                assert_in_range(run(&w, &l, true, 500 * SNIB__MS), 1, 24 * SNIB__US);
                w.loops = true;
                (void)run(&w, &l, true, 200 * SNIB__MS); /* soon */
                assert_in_range(run(&w, &l, true, 500 * SNIB__MS), 1, (20 * SNIB__US + WAKE) * 108 / 100);
        }
}

static void a_machine_that_stands_still_at_times_is_no_reason_to_stop(void **state)
{
        beside_fixed("steal", &(struct world){.answer = 40 * SNIB__US, .steal_every = 150 * SNIB__MS}, 110);
}

static void a_bad_start_is_forgotten(void **state)
{
        struct world w = {.answer = 20 * SNIB__US, .steal_every = 7 * SNIB__MS};
        struct snib__look l;

        snib__look_init(&l, MOST);
        (void)run(&w, &l, false, 10 * SNIB__MS); /* the first spell that counts */
        w.steal_every = 0;
        (void)run(&w, &l, false, 150 * SNIB__MS);
        assert_in_range(run(&w, &l, false, 200 * SNIB__MS), 1, 24 * SNIB__US);
}

static void what_is_off_never_looks_and_a_small_limit_is_kept(void **state)
{
        struct world w = {.answer = 25 * SNIB__US};
        struct snib__look l;

        snib__look_init(&l, 0);
        (void)run(&w, &l, false, 100 * SNIB__MS);
        assert_int_equal(w.looked, 0);
        snib__look_init(&l, 1 * SNIB__US); /* run() asserts it */
        (void)run(&w, &l, false, 100 * SNIB__MS);
        snib__look_init(&l, 30 * SNIB__US);
        (void)run(&w, &l, false, SNIB__S);
        assert_true(w.looked > SNIB__S / 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(answers_of_20_60_120_and_400_us_cost_what_the_best_window_costs),
            cmocka_unit_test(of_answers_of_two_sorts_the_quick_ones_are_found),
            cmocka_unit_test(slow_answers_take_no_processor_time),
            cmocka_unit_test(where_the_server_needs_the_processor_nobody_looks),
            cmocka_unit_test(beside_loops_nobody_looks),
            cmocka_unit_test(loops_that_come_are_noticed_and_so_is_their_end),
            cmocka_unit_test(a_machine_that_stands_still_at_times_is_no_reason_to_stop),
            cmocka_unit_test(a_bad_start_is_forgotten),
            cmocka_unit_test(what_is_off_never_looks_and_a_small_limit_is_kept),
        };

        return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
