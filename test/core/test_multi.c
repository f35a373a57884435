/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The machine of a multilock, exhaustively: two plain members and three red ones, and everything
 * that may happen to them in every order: each answers granted, refused, or with an error that
 * passes or does not; it is heard that a member has to be waited for; what is held is lost; a
 * client closes; somebody cancels; time passes; the holder releases. Depth-first with copies of the
 * state; a state seen before is not gone into again. Beside the machine's own check, the test keeps
 * its own account of what each member has, and compares: held means enough members have it, every
 * other answer leaves nothing.
 */

#include "core/multi.h"
#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEMBERS 3
#define LEASE (10 * SNIB__S)
#define NODE_TIMEOUT (10 * SNIB__MS)
#define STATES_LOG 22

/* What a member has, by what it was asked and has answered. */
enum has { NOTHING = 0, ASKED, HAS, GIVING };

struct world {
        struct snib__multi m;
        struct snib__multi_member members[MEMBERS];
        struct snib__hold hold[MEMBERS];
        _Atomic snib__ns heard[MEMBERS];
        enum has has[MEMBERS];
        bool unwanted[MEMBERS]; /* a cancelled call */
        bool hurried[MEMBERS];
        bool released, cancelled;
        int losses, closes, told, steps;
        snib__ns now;
};

static struct world w;
static uint64_t *seen; /* hashes of the states that were gone into */
static size_t states, grants, refusals, errors, rounds;

/* ---- one step of everything ---- */

static void carry_out(const struct snib__multi_effect *e)
{
        size_t i = e->member;

        switch (e->kind) {
        case SNIB__MULTI_ASK:
                assert_int_equal(w.has[i], NOTHING);
                w.has[i] = ASKED;
                w.unwanted[i] = w.hurried[i] = false;
                atomic_store(&w.heard[i], 0);
                if (atomic_load(&w.members[i].closed)) {
                        w.has[i] = NOTHING;
                        snib__multi_answer(&w.m, i, SNIB_ECLOSED, NULL, 0);
                }
                break;
        case SNIB__MULTI_RELEASE:
                assert_int_equal(w.has[i], HAS);
                w.has[i] = GIVING;
                if (atomic_load(&w.members[i].closed)) {
                        w.has[i] = NOTHING;
                        snib__multi_answer(&w.m, i, SNIB_ECLOSED, NULL, 0);
                }
                break;
        case SNIB__MULTI_HURRY:
                assert_int_equal(w.has[i], ASKED);
                assert_true(atomic_load(&w.heard[i]));
                w.hurried[i] = true;
                break;
        case SNIB__MULTI_CANCEL:
                assert_int_equal(w.has[i], ASKED);
                w.unwanted[i] = true;
                break;
        case SNIB__MULTI_LET_GO:
                assert_true(w.m.red && w.has[i] == ASKED);
                break;
        case SNIB__MULTI_BLAME:
                assert_true(e->code < 0 && e->member <= w.m.count);
                break;
        case SNIB__MULTI_NOTHING:
                fail();
        }
}

static size_t count(enum has what)
{
        size_t n = 0;

        for (size_t i = 0; i < w.m.count; i++)
                n += w.has[i] == what;
        return n;
}

/* What a holder can rely on. */
static void check_held(void)
{
        size_t good = 0;

        for (size_t i = 0; i < w.m.count; i++)
                good += w.has[i] == HAS && !atomic_load(&w.members[i].loss) && !atomic_load(&w.members[i].closed);
        assert_int_equal(w.m.result, 1);
        assert_int_equal(good < w.m.needed, atomic_load(&w.m.loss) != 0);
        assert_true(w.told <= 1);
        if (atomic_load(&w.m.loss))
                assert_int_equal(snib__multi_left(&w.m, w.now), 0);
        if (snib__multi_left(&w.m, w.now) > 0)
                assert_true(good >= w.m.needed);
}

static void check(void)
{
        const char *broken = snib__multi_check(&w.m);

        if (broken)
                fail_msg("not so: %s", broken);
        if (w.m.phase == SNIB__MULTI_HELD)
                check_held();
        if (w.m.phase == SNIB__MULTI_PAUSING || w.m.phase == SNIB__MULTI_OVER)
                assert_int_equal(count(NOTHING), w.m.count);
        if (!w.m.red && w.m.phase == SNIB__MULTI_ASKING)
                assert_true(count(ASKED) <= 1);
        if (w.m.phase == SNIB__MULTI_OVER && !w.released)
                assert_true(w.m.result <= 0);
        if (w.m.phase == SNIB__MULTI_OVER && w.m.result == 0)
                assert_true(!w.cancelled && (w.m.once || w.now >= w.m.deadline));
}

static void settle(void)
{
        struct snib__multi_effect e;
        bool again;
        int steps = 0;

        w.m.prng.state = 6; /* draws that leave time for a second round; what was drawn before is all one */
        do {
                again = snib__multi_step(&w.m, w.now);
                while (snib__multi_next(&w.m, &e)) {
                        carry_out(&e);
                        again = true;
                }
                check();
                assert_true(++steps < 100);
        } while (again);
}

/* ---- what may happen ---- */

static bool answer(size_t i, int result)
{
        bool ask = w.has[i] == ASKED;

        if (atomic_load(&w.members[i].closed) || (w.has[i] != ASKED && w.has[i] != GIVING))
                return false;
        if (ask && result == 0 && w.m.patient && !w.unwanted[i] && !w.hurried[i] && w.now < w.m.deadline)
                return false; /* it goes on waiting */
        if (w.unwanted[i] && result == 0)
                result = SNIB_ECANCELLED;
        w.has[i] = ask && result == 1 ? HAS : NOTHING;
        if (w.has[i] == HAS)
                atomic_store(&w.hold[i].valid_until, w.now + LEASE - LEASE / 500);
        snib__multi_answer(&w.m, i, result, &w.hold[i], (int64_t)(10 + i));
        return true;
}

/* It has to wait, in a round in which members do. */
static bool hear(size_t i)
{
        if (w.has[i] != ASKED || w.unwanted[i] || !w.m.patient || atomic_load(&w.heard[i]) ||
            atomic_load(&w.members[i].closed))
                return false;
        atomic_store(&w.heard[i], w.m.begun);
        return true;
}

static bool lose(size_t i)
{
        if (w.has[i] != HAS || atomic_load(&w.members[i].loss) || w.losses == 0)
                return false;
        w.losses--;
        atomic_store(&w.hold[i].valid_until, 0);
        w.told += snib__multi_lost(&w.m, i, SNIB_LOSS_TAKEN, false);
        return true;
}

/* As the runtime: what is under way is answered, what is held is lost, then it is told. */
static bool close_client(size_t i)
{
        if (atomic_load(&w.members[i].closed) || w.closes == 0)
                return false;
        w.closes--;
        if (w.has[i] == ASKED || w.has[i] == GIVING) {
                w.has[i] = NOTHING;
                snib__multi_answer(&w.m, i, SNIB_ECLOSED, NULL, 0);
        } else if (w.has[i] == HAS) {
                w.told += snib__multi_lost(&w.m, i, SNIB_LOSS_CLOSED, true);
        }
        snib__multi_closed(&w.m, i);
        return true;
}

static bool pass_time(void)
{
        if (w.m.due == SNIB__NEVER || w.m.due <= w.now)
                return false;
        w.now = w.m.due;
        return true;
}

static bool release(void)
{
        if (w.m.phase != SNIB__MULTI_HELD)
                return false;
        w.released = true;
        snib__multi_release(&w.m, w.now);
        return true;
}

static bool cancel(void)
{
        if (w.cancelled || !snib__multi_cancel(&w.m))
                return false;
        return w.cancelled = true;
}

#define OF_ONE 7
#define EVENTS (MEMBERS * OF_ONE + 3)

/* False: it cannot happen now. */
static bool happen(int event)
{
        static const int results[] = {1, 0, SNIB_EUNKNOWN, SNIB_EREFUSED};
        size_t i = (size_t)event / OF_ONE;

        if (event == MEMBERS * OF_ONE)
                return pass_time();
        if (event == MEMBERS * OF_ONE + 1)
                return release();
        if (event == MEMBERS * OF_ONE + 2)
                return cancel();
        if (i >= w.m.count)
                return false;
        if (event % OF_ONE == 4)
                return lose(i);
        if (event % OF_ONE == 5)
                return close_client(i);
        if (event % OF_ONE == 6)
                return hear(i);
        return answer(i, results[event % OF_ONE]);
}

/* ---- all of it ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
        hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
        return hash * 0xff51afd7ed558ccdULL;
}

static uint64_t fingerprint(void)
{
        uint64_t h = mix(mix(mix((uint64_t)w.m.phase, w.m.round), (uint64_t)w.m.at), (uint64_t)(int64_t)w.m.result);

        h = mix(mix(mix(h, (uint64_t)w.m.begun), (uint64_t)w.m.split), (uint64_t)w.m.votes * 2 + w.m.ending);
        h = mix(mix(mix(h, (uint64_t)w.now), (uint64_t)w.m.due), (uint64_t)w.m.again + 2 * (uint64_t)w.m.released);
        h = mix(mix(h, (uint64_t)atomic_load(&w.m.loss)), (uint64_t)(w.losses * 8 + w.closes * 2 + w.cancelled));
        for (size_t i = 0; i < w.m.count; i++) {
                const struct snib__multi_member *p = &w.members[i];

                h = mix(h, (uint64_t)p->state * 8 + (uint64_t)w.has[i]);
                h = mix(h, (uint64_t)(int64_t)p->said);
                h = mix(h, (uint64_t)atomic_load(&p->loss) * 8 + (atomic_load(&p->held) ? 4 : 0) +
                               (uint64_t)atomic_load(&p->closed) * 2 + p->cancelled);
                h = mix(h, (uint64_t)p->to_release * 4 + (atomic_load(&w.heard[i]) != 0) * 2 + p->hurried);
        }
        return h ? h : 1;
}

/* Whether it is new. */
static bool enter(void)
{
        uint64_t h = fingerprint();
        size_t at = h >> (64 - STATES_LOG);

        while (seen[at] && seen[at] != h)
                at = (at + 1) & (((size_t)1 << STATES_LOG) - 1);
        if (seen[at])
                return false;
        seen[at] = h;
        assert_true(++states < ((size_t)1 << STATES_LOG) * 3 / 4);
        return true;
}

static void walk(void)
{
        struct world *before = malloc(sizeof(*before));
        int moves = 0;

        assert_non_null(before);
        memcpy(before, &w, sizeof(w));
        for (int event = 0; event < EVENTS; event++) {
                if (!happen(event))
                        continue;
                moves++;
                settle();
                if (enter())
                        walk();
                memcpy(&w, before, sizeof(w));
        }
        free(before);
        grants += w.m.phase == SNIB__MULTI_HELD;
        rounds = w.m.round > rounds ? w.m.round : rounds;
        if (w.m.phase == SNIB__MULTI_OVER && !w.released) {
                refusals += w.m.result == 0;
                errors += w.m.result < 0;
        }
        /* Whatever has happened, somebody can still do something, or all is over. */
        assert_true(moves > 0 || w.m.phase == SNIB__MULTI_OVER);
}

static void explore(size_t members, bool red, bool once, int losses, int closes)
{
        static const size_t order[MEMBERS] = {1, 0, 2};
        struct snib__multi_config config = {.count = members,
                                            .red = red,
                                            .node_timeout = NODE_TIMEOUT,
                                            .once = once,
                                            .deadline = SNIB__S + (once  ? 0
                                                                   : red ? 7 * SNIB__MS
                                                                         : 5 * NODE_TIMEOUT),
                                            .order = order,
                                            .seed = 1};

        memset(&w, 0, sizeof(w));
        states = grants = refusals = errors = rounds = 0;
        seen = calloc((size_t)1 << STATES_LOG, sizeof(*seen));
        assert_non_null(seen);
        w.now = SNIB__S;
        w.losses = losses;
        w.closes = closes;
        for (size_t i = 0; i < members; i++) {
                w.members[i].lease = LEASE;
                w.members[i].lasts = SNIB__NEVER;
                w.members[i].heard = &w.heard[i];
        }
        snib__multi_init(&w.m, &config, w.members);
        settle();
        walk();
        free(seen);
        print_message("# %zu states: %zu held, %zu refused, %zu failed; %zu rounds\n", states, grants, refusals, errors,
                      rounds);
        assert_true(grants > 0 && refusals > 0 && errors > 0);
        assert_int_equal(rounds > 1, !once);
}

static void every_order_of_two_plain_members_tried_once(void **state)
{
        explore(2, false, true, 1, 1);
}

static void every_order_of_two_plain_members_within_a_time(void **state)
{
        explore(2, false, false, 1, 1);
}

static void every_order_of_three_red_members_tried_once(void **state)
{
        explore(3, true, true, 1, 1);
}

/* There are too many for both at once. */
static void every_order_of_three_red_members_within_a_time_and_one_is_lost(void **state)
{
        explore(3, true, false, 1, 0);
}

static void every_order_of_three_red_members_within_a_time_and_one_closes(void **state)
{
        explore(3, true, false, 0, 1);
}

/* ---- how red waits ---- */

static void begin_red(size_t members, snib__ns deadline)
{
        static const size_t order[MEMBERS] = {0, 1, 2};
        struct snib__multi_config config = {.count = members,
                                            .red = true,
                                            .node_timeout = NODE_TIMEOUT,
                                            .deadline = deadline,
                                            .order = order,
                                            .seed = 1};

        memset(&w, 0, sizeof(w));
        w.now = SNIB__S;
        for (size_t i = 0; i < members; i++) {
                w.members[i].lease = LEASE;
                w.members[i].lasts = SNIB__NEVER;
                w.members[i].heard = &w.heard[i];
        }
        snib__multi_init(&w.m, &config, w.members);
        settle();
}

/* Until the next time at which the machine wants to look again. */
static void let_time_pass(void)
{
        assert_true(pass_time());
        settle();
}

static void a_red_waiter_waits_at_every_member_and_asks_no_more(void **state)
{
        begin_red(3, SNIB__NEVER);
        assert_int_equal(count(ASKED), 3);
        for (size_t i = 0; i < 3; i++)
                assert_true(hear(i));
        settle();
        assert_true(w.m.due == SNIB__NEVER); /* whoever releases tells it: there is nothing to look for */
        assert_true(answer(2, 1));
        settle();
        assert_true(answer(0, 1));
        settle();
        assert_int_equal(w.m.phase, SNIB__MULTI_HELD);
        assert_int_equal(w.m.round, 1);
        assert_int_equal(count(ASKED), 1); /* the rest is welcome */
        assert_true(release());
        settle();
        assert_true(w.unwanted[1]); /* and stands in nobody's way after the end */
}

static void a_red_minority_is_given_back_soon_and_asked_for_again_later(void **state)
{
        snib__ns granted_at, back_at;

        begin_red(3, SNIB__NEVER);
        for (size_t i = 1; i < 3; i++)
                assert_true(hear(i));
        w.now += SNIB__MS;
        granted_at = w.now;
        assert_true(answer(0, 1));
        settle();
        assert_true(w.m.due > granted_at && w.m.due <= granted_at + 10 * SNIB__MS);
        let_time_pass();
        back_at = w.now;
        assert_true(w.hurried[1] && w.hurried[2]);
        for (size_t i = 1; i < 3; i++)
                assert_true(answer(i, 0));
        settle();
        assert_int_equal(w.has[0], GIVING);
        assert_true(answer(0, 1));
        settle();
        assert_int_equal(w.m.phase, SNIB__MULTI_PAUSING);
        assert_true(w.m.due > back_at);
        let_time_pass();
        assert_int_equal(count(ASKED), 3);
}

/* If not enough can be reached, that is what the acquire ends with. */
static void a_red_minority_beside_dead_servers_says_so_in_the_end(void **state)
{
        snib__ns deadline = SNIB__S + 100 * SNIB__MS;

        begin_red(3, deadline);
        for (int k = 0; w.m.phase != SNIB__MULTI_OVER; k++) {
                assert_true(k < 20);
                for (size_t i = 1; i < 3 && w.m.phase == SNIB__MULTI_ASKING; i++)
                        assert_true(hear(i));
                if (w.m.phase == SNIB__MULTI_ASKING) {
                        assert_true(answer(0, 1));
                        settle();
                        let_time_pass();
                        for (size_t i = 1; i < 3; i++)
                                assert_true(answer(i, SNIB_EUNREACHABLE));
                        settle();
                        assert_true(answer(0, 1));
                        settle();
                }
                if (w.m.phase == SNIB__MULTI_PAUSING)
                        let_time_pass();
        }
        assert_int_equal(w.m.result, SNIB_EUNREACHABLE);
        assert_true(w.now >= deadline);
}

/* A member that is far away has not said anything yet: it may grant. */
static void a_red_minority_waits_for_the_first_word_of_the_others(void **state)
{
        begin_red(3, SNIB__NEVER);
        assert_true(answer(0, 1));
        settle();
        for (snib__ns begun = w.now; w.now < begun + NODE_TIMEOUT;) {
                assert_int_equal(w.m.phase, SNIB__MULTI_ASKING);
                let_time_pass();
        }
        assert_int_equal(w.m.phase, SNIB__MULTI_UNDOING); /* no longer than a time-out of a node */
}

/* ---- the order ---- */

static void members_have_one_order(void **state)
{
        const struct snib__multi_key keys[] = {
            {{"b", 1}, "x", SNIB_KIND_LOCK},  {{"a", 1}, "y", SNIB_KIND_LOCK},  {{"a", 1}, "x", SNIB_KIND_READ},
            {{"a", 1}, "x", SNIB_KIND_WRITE}, {{"ab", 2}, "a", SNIB_KIND_LOCK},
        };
        size_t order[5];

        snib__multi_order(keys, 5, order);
        assert_int_equal(order[0], 3); /* the write side before the read side */
        assert_int_equal(order[1], 2);
        assert_int_equal(order[2], 1); /* then by place */
        assert_int_equal(order[3], 4);
        assert_int_equal(order[4], 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_order_of_two_plain_members_tried_once),
            cmocka_unit_test(every_order_of_two_plain_members_within_a_time),
            cmocka_unit_test(every_order_of_three_red_members_tried_once),
            cmocka_unit_test(every_order_of_three_red_members_within_a_time_and_one_is_lost),
            cmocka_unit_test(every_order_of_three_red_members_within_a_time_and_one_closes),
            cmocka_unit_test(a_red_waiter_waits_at_every_member_and_asks_no_more),
            cmocka_unit_test(a_red_minority_is_given_back_soon_and_asked_for_again_later),
            cmocka_unit_test(a_red_minority_beside_dead_servers_says_so_in_the_end),
            cmocka_unit_test(a_red_minority_waits_for_the_first_word_of_the_others),
            cmocka_unit_test(members_have_one_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
