/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The hand-over of the baton, explored: every interleaving of three waiters and a keeper, each
 * running the loop of runtime/drive.c or keeper.c with everything but the baton taken away. A step
 * is what a thread does while it has the client's lock. States are visited once; each is reached
 * again from the start by the list of its steps.
 *
 * What must hold in every state: at most one polls; and if a waiter is not done, somebody can act:
 * a thread polls, or one is awake. A state in which all who wait sleep and nobody was woken is the
 * hang this module exists to prevent.
 */

#include "runtime/baton.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WAITERS = 3, KEEPER = 3, THREADS = 4, DEPTH_MAX = 60, STATES_MAX = 1 << 20 };

/* Seeded, to show that the exploration would find it. */
enum bug { NO_BUG, LEAVE_WITHOUT_PASSING, ANSWER_WITHOUT_KICK };

enum pc { BEFORE, LOOP, POLLING, ASLEEP, GONE };

struct thread {
        struct snib__baton_member member;
        enum pc pc;
        bool done; /* its answer came */
        bool woken;
        bool kicked; /* its poll will end */
};

struct world {
        struct snib__baton baton;
        struct thread t[THREADS];
        bool work; /* something that only the keeper cares for */
        enum bug bug;
};

/* What can happen. A step of a thread, or an event that reaches it in poll. */
enum move_kind { STEP, ANSWER, CANCEL, WORK_COMES };
struct move {
        unsigned char kind;
        unsigned char thread; /* STEP, CANCEL: who; ANSWER: the poller */
        unsigned char mask;   /* ANSWER: which waiters are answered */
};

static void init(struct world *w, enum bug bug)
{
        memset(w, 0, sizeof(*w));
        snib__baton_init(&w->baton);
        w->t[KEEPER].pc = ASLEEP;
        w->bug = bug;
}

static struct thread *thread_of(struct snib__baton_member *m)
{
        return snib__container(m, struct thread, member);
}

static void wake(struct snib__baton_member *m)
{
        if (m)
                thread_of(m)->woken = true;
}

/* drive_settle() without a driver. */
static void settle(struct world *w)
{
        if (!w->baton.driver && w->work)
                w->t[KEEPER].woken = true;
}

static void leave(struct world *w, struct thread *t)
{
        if (w->bug == LEAVE_WITHOUT_PASSING) {
                snib__list_remove(&t->member.link);
                if (w->baton.driver == &t->member)
                        w->baton.driver = NULL;
        } else {
                wake(snib__baton_leave(&w->baton, &t->member));
        }
        settle(w);
        t->pc = GONE;
}

static void loop(struct world *w, struct thread *t)
{
        if (t->done)
                leave(w, t);
        else
                t->pc = snib__baton_take(&w->baton, &t->member) ? POLLING : ASLEEP;
}

static void keeper_loop(struct world *w)
{
        struct thread *k = &w->t[KEEPER];

        if (w->work && (!w->baton.driver || w->baton.driver == &k->member) && snib__baton_take(&w->baton, &k->member))
                k->pc = POLLING;
        else
                k->pc = ASLEEP;
}

static void step(struct world *w, int i)
{
        struct thread *t = &w->t[i];

        switch (t->pc) {
        case BEFORE:
                snib__baton_enter(&w->baton, &t->member);
                loop(w, t);
                break;
        case ASLEEP:
                t->woken = false;
                if (i == KEEPER)
                        keeper_loop(w);
                else
                        loop(w, t);
                break;
        case POLLING: /* the poll ended for nothing, or by a kick */
                t->kicked = false;
                if (i == KEEPER) {
                        wake(snib__baton_pass(&w->baton, &t->member));
                        keeper_loop(w);
                } else {
                        loop(w, t);
                }
                break;
        default:
                break;
        }
}

static void answer(struct world *w, int poller, unsigned mask)
{
        for (int i = 0; i < WAITERS; i++)
                if (mask & 1u << i) {
                        w->t[i].done = true;
                        snib__baton_done(&w->baton, &w->t[i].member);
                        if (i != poller)
                                w->t[i].woken = true;
                }
        if (mask & 1u << KEEPER)
                w->work = false;
        step(w, poller);
}

/* Another thread ends the wait: a cancel, a deadline, an engine that completes at once. As
 * snib__client_wake(). */
static void cancel(struct world *w, struct thread *t)
{
        t->done = true;
        snib__baton_done(&w->baton, &t->member);
        if (t->pc == POLLING)
                t->kicked = w->bug != ANSWER_WITHOUT_KICK;
        else
                t->woken = true;
}

static bool legal(const struct world *w, struct move m)
{
        const struct thread *t = &w->t[m.thread];

        switch (m.kind) {
        case STEP:
                return t->pc == BEFORE ? m.thread != KEEPER : t->pc == ASLEEP ? t->woken : t->pc == POLLING;
        case ANSWER:
                if (t->pc != POLLING || m.mask == 0)
                        return false;
                for (int i = 0; i < WAITERS; i++)
                        if (m.mask & 1u << i && (w->t[i].done || w->t[i].pc == BEFORE || w->t[i].pc == GONE))
                                return false;
                return !(m.mask & 1u << KEEPER) || w->work;
        case CANCEL:
                return m.thread != KEEPER && !t->done && (t->pc == ASLEEP || t->pc == POLLING);
        default:
                return !w->work;
        }
}

static void apply(struct world *w, struct move m)
{
        if (m.kind == STEP) {
                step(w, m.thread);
        } else if (m.kind == ANSWER) {
                answer(w, m.thread, m.mask);
        } else if (m.kind == CANCEL) {
                cancel(w, &w->t[m.thread]);
        } else { /* a caller left work behind: it settles */
                w->work = true;
                settle(w);
        }
}

static uint64_t signature(const struct world *w)
{
        uint64_t s = 2 + (uint64_t)w->work; /* a leading digit, so that numbers of different length differ */

        for (int i = 0; i < THREADS; i++) {
                s = s * 8 + (uint64_t)w->t[i].pc;
                s = s * 8 + (uint64_t)w->t[i].done * 4 + (uint64_t)w->t[i].woken * 2 + (uint64_t)w->t[i].kicked;
                s = s * 2 + (w->baton.driver == &w->t[i].member);
        }
        snib__list_each (it, (struct snib__list *)&w->baton.waiting)
                s = s * 4 + 1 + (uint64_t)(thread_of(snib__container(it, struct snib__baton_member, link)) - w->t);
        return s + 1;
}

static const char *broken(const struct world *w)
{
        int polling = 0, waiting = 0, awake = 0;

        for (int i = 0; i < THREADS; i++) {
                const struct thread *t = &w->t[i];

                polling += t->pc == POLLING;
                waiting += i != KEEPER && t->pc == ASLEEP;
                awake += t->pc == POLLING || (t->pc == ASLEEP && t->woken);
                if (t->pc == POLLING && w->baton.driver != &t->member)
                        return "who polls is the driver";
                if (t->pc == POLLING && t->done && !t->kicked)
                        return "nobody polls for what it has";
        }
        if (polling > 1)
                return "at most one polls";
        if (waiting && !awake)
                return "nobody sleeps for ever";
        if (w->work && !awake)
                return "work is seen to";
        return NULL;
}

struct path {
        unsigned char length;
        struct move moves[DEPTH_MAX];
};

static uint64_t *seen;
static long states, finished;
static const char *found;
static enum bug bug;

static bool visit(uint64_t s)
{
        uint64_t at = s * 0x9e3779b97f4a7c15ULL >> 43;

        while (seen[at % (2 * STATES_MAX)] && seen[at % (2 * STATES_MAX)] != s)
                at++;
        if (seen[at % (2 * STATES_MAX)])
                return false;
        seen[at % (2 * STATES_MAX)] = s;
        assert_true(++states < STATES_MAX);
        return true;
}

static void replay(struct world *w, const struct path *p)
{
        init(w, bug);
        for (int i = 0; i < p->length; i++)
                apply(w, p->moves[i]);
}

static void explore(struct path *p);

static void try_move(struct path *p, struct move m)
{
        struct world w;

        replay(&w, p);
        if (found || !legal(&w, m))
                return;
        apply(&w, m);
        found = broken(&w);
        if (found || !visit(signature(&w)))
                return;
        assert_true(p->length < DEPTH_MAX);
        p->moves[p->length++] = m;
        explore(p);
        p->length--;
}

static void explore(struct path *p)
{
        struct world w;
        bool all_gone;

        replay(&w, p);
        all_gone = w.t[0].pc == GONE && w.t[1].pc == GONE && w.t[2].pc == GONE;
        finished += all_gone;
        if (all_gone && w.baton.driver && w.baton.driver != &w.t[KEEPER].member)
                found = "who is gone does not drive";
        for (unsigned char i = 0; i < THREADS; i++) {
                try_move(p, (struct move){STEP, i, 0});
                try_move(p, (struct move){CANCEL, i, 0});
        }
        for (unsigned char i = 0; i < THREADS; i++)
                for (unsigned char mask = 1; mask < 1 << THREADS; mask++)
                        try_move(p, (struct move){ANSWER, i, mask});
        try_move(p, (struct move){WORK_COMES, 0, 0});
}

static void run(enum bug with_bug)
{
        struct path p = {0};

        seen = calloc(2 * STATES_MAX, sizeof(*seen));
        assert_non_null(seen);
        states = finished = 0;
        found = NULL;
        bug = with_bug;
        explore(&p);
        free(seen);
}

static void every_interleaving_is_safe_and_nobody_is_left_asleep(void **state)
{
        run(NO_BUG);
        print_message("# %ld states, %ld of them final\n", states, finished);
        assert_null(found);
        assert_true(states > 500);
        assert_true(finished > 0);
}

static void a_driver_that_leaves_without_passing_on_is_found(void **state)
{
        run(LEAVE_WITHOUT_PASSING);
        assert_non_null(found);
        assert_string_equal(found, "nobody sleeps for ever");
}

static void a_driver_that_is_answered_and_not_kicked_is_found(void **state)
{
        run(ANSWER_WITHOUT_KICK);
        assert_non_null(found);
        assert_string_equal(found, "nobody polls for what it has");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_interleaving_is_safe_and_nobody_is_left_asleep),
            cmocka_unit_test(a_driver_that_leaves_without_passing_on_is_found),
            cmocka_unit_test(a_driver_that_is_answered_and_not_kicked_is_found),
        };

        return cmocka_run_group_tests_name("baton", tests, NULL, NULL);
}
