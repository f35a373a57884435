/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The machine of a multilock, exhaustively: two plain members and three red ones, and everything that may happen to
 * them in every order: each answers granted, refused, or with an error that passes or does not; what is held is lost;
 * a client closes; somebody cancels; time passes; the holder releases. Depth-first with copies of the state; a state
 * seen before is not gone into again. Beside the machine's own check, the test keeps its own account of what each
 * member has, and compares: held means enough members have it, every other answer leaves nothing.
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
#define NODE_TIMEOUT (200 * SNIB__MS)
#define STATES_LOG 21

/* What a member has, by what it was asked and has answered. */
enum has { NOTHING = 0, ASKED, HAS, GIVING };

struct world {
        struct snib__multi m;
        struct snib__multi_part parts[MEMBERS];
        struct snib__hold hold[MEMBERS];
        enum has has[MEMBERS];
        bool unwanted[MEMBERS]; /* a cancelled call */
        bool released, cancelled;
        int losses, closes, told, steps;
        snib__ns now;
};

static struct world w;
static uint64_t *seen; /* hashes of the states that were gone into */
static size_t states, grants, refusals, errors;

/* ---- one step of everything ---- */

static void carry_out(const struct snib__multi_effect *e)
{
        size_t i = e->part;

        switch (e->kind) {
        case SNIB__MULTI_ASK:
                assert_int_equal(w.has[i], NOTHING);
                w.has[i] = ASKED;
                w.unwanted[i] = false;
                if (atomic_load(&w.parts[i].closed)) {
                        w.has[i] = NOTHING;
                        snib__multi_answer(&w.m, i, SNIB_ECLOSED, NULL, 0);
                }
                break;
        case SNIB__MULTI_RELEASE:
                assert_int_equal(w.has[i], HAS);
                w.has[i] = GIVING;
                if (atomic_load(&w.parts[i].closed)) {
                        w.has[i] = NOTHING;
                        snib__multi_answer(&w.m, i, SNIB_ECLOSED, NULL, 0);
                }
                break;
        case SNIB__MULTI_CANCEL:
                assert_int_equal(w.has[i], ASKED);
                w.unwanted[i] = true;
                break;
        case SNIB__MULTI_LET_GO:
                assert_true(w.m.red && w.has[i] == ASKED);
                break;
        case SNIB__MULTI_BLAME:
                assert_true(e->code < 0 && e->part <= w.m.count);
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
                good += w.has[i] == HAS && !atomic_load(&w.parts[i].loss) && !atomic_load(&w.parts[i].closed);
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
        int rounds = 0;

        do {
                again = snib__multi_step(&w.m, w.now);
                while (snib__multi_next(&w.m, &e)) {
                        carry_out(&e);
                        again = true;
                }
                check();
                assert_true(++rounds < 100);
        } while (again);
}

/* ---- what may happen ---- */

static bool answer(size_t i, int result)
{
        bool ask = w.has[i] == ASKED;

        if (atomic_load(&w.parts[i].closed) || (w.has[i] != ASKED && w.has[i] != GIVING))
                return false;
        if (w.unwanted[i] && result == 0)
                result = SNIB_ECANCELLED;
        w.has[i] = ask && result == 1 ? HAS : NOTHING;
        if (w.has[i] == HAS)
                atomic_store(&w.hold[i].valid_until, w.now + LEASE - LEASE / 500);
        snib__multi_answer(&w.m, i, result, &w.hold[i], (int64_t)(10 + i));
        return true;
}

static bool lose(size_t i)
{
        if (w.has[i] != HAS || atomic_load(&w.parts[i].loss) || w.losses == 0)
                return false;
        w.losses--;
        atomic_store(&w.hold[i].valid_until, 0);
        w.told += snib__multi_lost(&w.m, i, SNIB_LOSS_TAKEN, false);
        return true;
}

/* As the runtime: what is under way is answered, what is held is lost, then it is told. */
static bool close_client(size_t i)
{
        if (atomic_load(&w.parts[i].closed) || w.closes == 0)
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

#define EVENTS (MEMBERS * 6 + 3)

/* False: it cannot happen now. */
static bool happen(int event)
{
        static const int results[] = {1, 0, SNIB_EUNKNOWN, SNIB_EREFUSED};
        size_t i = (size_t)event / 6;

        if (event == MEMBERS * 6)
                return pass_time();
        if (event == MEMBERS * 6 + 1)
                return release();
        if (event == MEMBERS * 6 + 2)
                return cancel();
        if (i >= w.m.count)
                return false;
        if (event % 6 == 4)
                return lose(i);
        if (event % 6 == 5)
                return close_client(i);
        return answer(i, results[event % 6]);
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

        h = mix(mix(mix(h, (uint64_t)w.now), (uint64_t)w.m.due), (uint64_t)w.m.again + 2 * (uint64_t)w.m.released);
        h = mix(mix(h, (uint64_t)atomic_load(&w.m.loss)), (uint64_t)(w.losses * 8 + w.closes * 2 + w.cancelled));
        for (size_t i = 0; i < w.m.count; i++) {
                const struct snib__multi_part *p = &w.parts[i];

                h = mix(h, (uint64_t)p->state * 8 + (uint64_t)w.has[i]);
                h = mix(h, (uint64_t)(int64_t)p->said);
                h = mix(h, (uint64_t)atomic_load(&p->loss) * 8 + (atomic_load(&p->held) ? 4 : 0) +
                               (uint64_t)atomic_load(&p->closed) * 2 + p->cancelled);
                h = mix(h, (uint64_t)p->to_release);
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
        if (w.m.phase == SNIB__MULTI_OVER && !w.released) {
                refusals += w.m.result == 0;
                errors += w.m.result < 0;
        }
        /* Whatever has happened, somebody can still do something, or all is over. */
        assert_true(moves > 0 || w.m.phase == SNIB__MULTI_OVER);
}

static void explore(size_t members, bool red, bool once)
{
        static const size_t order[MEMBERS] = {1, 0, 2};
        struct snib__multi_config config = {.count = members,
                                            .red = red,
                                            .node_timeout = NODE_TIMEOUT,
                                            .once = once,
                                            .deadline = once ? SNIB__S : SNIB__S + NODE_TIMEOUT / 4,
                                            .order = order,
                                            .seed = 1};

        memset(&w, 0, sizeof(w));
        states = grants = refusals = errors = 0;
        seen = calloc((size_t)1 << STATES_LOG, sizeof(*seen));
        assert_non_null(seen);
        w.now = SNIB__S;
        w.losses = 1;
        w.closes = 1;
        for (size_t i = 0; i < members; i++) {
                w.parts[i].lease = LEASE;
                w.parts[i].lasts = SNIB__NEVER;
        }
        snib__multi_init(&w.m, &config, w.parts);
        settle();
        walk();
        free(seen);
        print_message("# %zu states: %zu held, %zu refused, %zu failed\n", states, grants, refusals, errors);
        assert_true(grants > 0 && refusals > 0 && errors > 0);
}

static void every_order_of_two_plain_members_tried_once(void **state)
{
        explore(2, false, true);
}

static void every_order_of_two_plain_members_within_a_time(void **state)
{
        explore(2, false, false);
}

static void every_order_of_three_red_members_tried_once(void **state)
{
        explore(3, true, true);
}

static void every_order_of_three_red_members_within_a_time(void **state)
{
        explore(3, true, false);
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
            cmocka_unit_test(every_order_of_three_red_members_within_a_time),
            cmocka_unit_test(members_have_one_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
