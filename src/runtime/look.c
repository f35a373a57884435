/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The policy of looking: see look.h. What the figures here were chosen by is in
 * doc/design/runtime.md.
 */

#include "runtime/look.h"

/* The least window that is worth a look, and the first one. */
#define WINDOW_MIN (10 * SNIB__US)
/* Who sleeps learns of an answer so much later. An answer that was slept for may have taken so much
 * longer than the most, and a look would have found it. */
#define WAKE (50 * SNIB__US)
/* A driver that was away for so long while it looked did not wait for its own callers: another
 * program has the processor. A slice is longer. */
#define LOST (2 * SNIB__MS)
/* A spell: so much time with requests under way, and so many answers. As long as a slice of the
 * scheduler, so that what a slice costs shows. */
#define SPELL (5 * SNIB__MS)
#define SPELL_ANSWERS 8
/* Looking has to gain a twentieth, for it costs processor time. */
#define PAYS_PM 950
/* From here on there is no doubt, and the other way is tried less and less often. */
#define CLEAR_PM 1400
#define CLEAR_LOW_PM 700
/* One spell counts at most so much. */
#define RATIO_MIN_PM 500
#define RATIO_MAX_PM 1500
#define HOLD_MIN 4
#define HOLD_UNCLEAR 8
#define HOLD_MAX 256
/* The average is over so many trials, at least about. */
#define TRIALS 4
/* After so many spells of looking without a loss, a lost processor counts as the first. */
#define CALM 16
#define HOLD_LOST 2

void snib__look_init(struct snib__look *l, snib__ns most)
{
        snib__ns first = snib__min(most, 5 * WINDOW_MIN);

        *l = (struct snib__look){
            .most = most, .cold = true, .looks = most > 0, .better = most > 0, .hold = HOLD_MIN, .left = 1};
        l->alone = l->company = (struct snib__look_window){.now = first, .answer = first};
}

snib__ns snib__look_for(const struct snib__look *l, bool company)
{
        if (!l->looks)
                return 0;
        return company ? l->company.now : l->alone.now;
}

static void found(struct snib__look_window *w, snib__ns took, snib__ns most)
{
        w->answer += (snib__min(took, most) - w->answer) / 8;
        w->now += (snib__max(snib__min(most, 2 * w->answer), snib__min(most, WINDOW_MIN)) - w->now) / 8;
}

static void missed(struct snib__look_window *w, snib__ns took, snib__ns most)
{
        if (took <= most + WAKE) {
                w->now = snib__min(most, snib__max(2 * w->now, WINDOW_MIN));
                w->answer = snib__max(w->answer, w->now / 2);
                return;
        }
        /* More slowly than it grows: of answers of two sorts the quick ones are still found. */
        w->now -= w->now / 16;
        if (w->now < WINDOW_MIN / 2)
                w->now = 0;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
        return value < low ? low : value > high ? high : value;
}

/* -1: looking is clearly better; 1: it is clearly worse. */
static int clear(int64_t ratio_pm)
{
        return ratio_pm > CLEAR_PM ? 1 : ratio_pm < CLEAR_LOW_PM ? -1 : 0;
}

static snib__ns cost(const struct snib__look_spell *s)
{
        return s->busy / snib__max(s->answers, 1);
}

/* After a spell of each way. */
static void judge(struct snib__look *l)
{
        const struct snib__look_spell *a = l->looks ? &l->spell : &l->recent, *b = l->looks ? &l->recent : &l->spell;
        snib__ns with = cost(a), without = cost(b);
        int64_t ratio = clamp(with * 1000 / snib__max(without, 1), RATIO_MIN_PM, RATIO_MAX_PM);
        bool better;

        l->trials = l->trials < TRIALS ? l->trials + 1 : TRIALS;
        l->ratio_pm += (ratio - l->ratio_pm) / l->trials;
        better = l->ratio_pm < PAYS_PM;
        if (better != l->better || clear(ratio) * clear(l->ratio_pm) < 0 || (clear(ratio) && !clear(l->ratio_pm)))
                l->hold = HOLD_MIN; /* something has changed, or one of both was a disturbance */
        else if (clear(ratio) && clear(l->ratio_pm))
                l->hold = l->hold < HOLD_MAX ? 4 * l->hold : HOLD_MAX;
        else
                l->hold = HOLD_UNCLEAR;
        if (better != l->better)
                l->recent = l->spell;
        l->better = l->looks = better;
        l->left = l->hold;
}

static void remember(struct snib__look *l)
{
        l->recent.busy += l->spell.busy - l->recent.busy / 4;
        l->recent.answers += l->spell.answers - l->recent.answers / 4;
        if (--l->left <= 0)
                l->looks = !l->better;
}

/* Others compute. There a spell says little, for one slice is more than all answers in it; but who
 * looks loses more slices than who sleeps. */
static void give_way(struct snib__look *l)
{
        l->hold_lost = l->calm >= CALM || !l->hold_lost ? HOLD_LOST : snib__min(4 * l->hold_lost, HOLD_MAX);
        l->calm = 0;
        l->better = l->looks = false;
        l->left = l->hold = l->hold_lost;
        l->recent = (struct snib__look_spell){0};
}

static void spell_end(struct snib__look *l)
{
        l->calm += l->looks;
        if (l->lost)
                give_way(l);
        else if (l->cold)
                l->cold = false;
        else if (l->looks != l->better)
                judge(l);
        else
                remember(l);
        l->spell = (struct snib__look_spell){0};
        l->lost = false;
}

void snib__look_answered(struct snib__look *l, int64_t answers, snib__ns busy)
{
        l->spell.answers += answers;
        l->spell.busy += snib__min(busy, 2 * SPELL); /* more is a disturbance */
}

void snib__look_learn(struct snib__look *l, const struct snib__look_turn *t)
{
        struct snib__look_window *w = t->company ? &l->company : &l->alone;

        if (!l->most)
                return;
        if (l->looks && t->answered) {
                if (t->found)
                        found(w, t->took, l->most);
                else
                        missed(w, t->took, l->most);
        }
        l->lost |= t->window && t->gap > LOST;
        if (l->lost || (l->spell.busy >= SPELL && l->spell.answers >= SPELL_ANSWERS))
                spell_end(l);
}
