/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_LOOK_H
#define SNIB_RUNTIME_LOOK_H

/*
 * Whether the driver looks for answers before it sleeps for them, and for how long. Pure: no clock,
 * no system call; times come in, a time goes out. The caller holds the client's lock.
 *
 * Two questions, two mechanisms:
 *
 * - How long? A window, one for a driver that is alone and one for a driver in company. It follows
 *   what answers took, as the kernel's halt polling does: a sleep that ended soon after a vain look
 *   grows it, a long one shrinks it. Where answers take longer than the most, nothing is left of
 *   it.
 * - Whether at all? What an answer costs with looking and without, both measured. The time in which
 *   requests are under way is cut into spells; in a spell the driver either looks or it never does.
 *   What is better is kept for many spells; then one spell of the other is tried. So looking ends
 *   where it is in vain, and also where it finds and does not pay: where others compute, where the
 *   server needs the processor of who looks.
 */

#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

struct snib__look_window {
        snib__ns now;    /* 0: none */
        snib__ns answer; /* how long answers take that a look found, on average */
};

/* What an answer costs is the time in which requests were under way, divided by the answers. */
struct snib__look_spell {
        snib__ns busy;
        int64_t answers;
};

struct snib__look {
        snib__ns most; /* 0: never */
        struct snib__look_window alone, company;

        struct snib__look_spell spell; /* the present one */
        bool cold;                     /* it is the first: nothing is judged by it */
        bool looks;                    /* in it */
        bool lost;                     /* the processor, in it, while it looked */

        bool better;                    /* looking is, as far as is known */
        struct snib__look_spell recent; /* spells of the better way, the older the less */
        int64_t ratio_pm;               /* the cost with looking to that without, in thousandths, on average */
        int trials;                     /* so many made the average */
        int64_t hold;                   /* so many spells of the better way after a trial of the other */
        int64_t left;                   /* of them */
        int64_t calm;                   /* spells of looking since the processor was lost */
        int64_t hold_lost;              /* so many spells without looking after that; 0: it never was */
};

/* How one turn went. */
struct snib__look_turn {
        bool company;
        bool found;      /* the look did */
        bool answered;   /* an answer came, in the look or later */
        snib__ns window; /* what snib__look_for() said */
        snib__ns took;   /* from the beginning of the look, or of the sleep, to its end */
        snib__ns gap;    /* the longest time between two tries of the look */
};

/* `most` 0: it never looks. */
void snib__look_init(struct snib__look *l, snib__ns most);

/* How long to look in the next turn; 0: sleep at once. */
snib__ns snib__look_for(const struct snib__look *l, bool company);

/* Answers came, after a time in which requests were under way. */
void snib__look_answered(struct snib__look *l, int64_t answers, snib__ns busy);

/* A turn is over. */
void snib__look_learn(struct snib__look *l, const struct snib__look_turn *t);

#endif
