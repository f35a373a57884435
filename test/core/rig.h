/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_CORE_RIG_H
#define SNIB_TEST_CORE_RIG_H

/*
 * A core on a bench: the test is its application, its engine and its clock. What the core wants is
 * written down as one line of text, which the test compares.
 */

#include "core/core.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct rig {
        struct snib__core core;
        snib__ns now;
        char trace[4096];
        struct snib__hold *hold; /* of the last submit; NULL: an ask's */
        uint64_t cookie;
        uint32_t attempt;
        struct snib__op op;
        bool full; /* the engine takes no request */
};

extern const struct snib__name stock;
extern const struct snib__name me;

/* Adds the effects to the trace: "acquire#1; " with the attempt, "answer 1; " with the result. */
void pull(struct rig *r);

#define expect(r, text)                                \
        do {                                           \
                pull(r);                               \
                assert_string_equal((r)->trace, text); \
                (r)->trace[0] = 0;                     \
        } while (0)

/* With an engine that keeps a queue, or with one whose waiters watch. The link is up. */
void rig_init(struct rig *r, bool queues);
/* A re-entrant plain lock that is kept, lease 30 s. */
void hold_init(struct snib__hold *h, const char *id);
struct snib__call call_init(enum snib__call_kind kind, bool once, snib__ns deadline);
/* The engine answers the last request of a hold. */
void reply(struct rig *r, enum snib__status status, int64_t token);
void refuse(struct rig *r, int code);
/* The engine takes no request of what comes now, which must be `text`. */
void no_memory(struct rig *r, const char *text);
void pass(struct rig *r, snib__ns time);

#endif
