/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rows of kinds and families. A new kind that is a variation of another is a row here, with the
 * family of the other; see doc/design/adding.md. Pure; any thread.
 */

#include "model/kind.h"
#include <stddef.h>

#define BIT(verb) SNIB__VERB_BIT(SNIB__##verb)
#define NUMBERS (SNIB__VERBS_COMMON | BIT(SET) | BIT(ADD) | BIT(DELETE))

/* Of one holder at a time, and the two sides of a read-write lock. */
#define LOCK(what, cap_bit, ...)                                                                                    \
        {                                                                                                           \
                .text = what, .family = SNIB__FAMILY_LOCK, .cap = cap_bit, .verbs = SNIB__VERBS_COMMON, __VA_ARGS__ \
        }
#define SIDE(what)                                                                                \
        {                                                                                         \
                .text = what, .article = "a ", .family = SNIB__FAMILY_RW, .cap = SNIB_CAP_RWLOCK, \
                .verbs = SNIB__VERBS_COMMON, .tokens = 1                                          \
        }

/* clang-format off */
static const struct snib__kind kinds[] = {
    [SNIB_KIND_LOCK] = LOCK("lock", SNIB_CAP_LOCK, .article = "a ", .tokens = SNIB__TOKEN_BLOCK),
    [SNIB_KIND_FENCED] = LOCK("fenced lock", SNIB_CAP_FENCED, .article = "a ", .tokens = SNIB__TOKEN_BLOCK),
    [SNIB_KIND_FAIR] = LOCK("fair lock", SNIB_CAP_FAIR, .article = "a ", .tokens = 1),
    [SNIB_KIND_SPIN] = LOCK("spin lock", SNIB_CAP_LOCK, .article = "a ", .tokens = 1, .polls = true),
    [SNIB_KIND_ELECTION] = LOCK("election", SNIB_CAP_ELECTION, .article = "an ", .tokens = 1),
    [SNIB_KIND_READ] = SIDE("read lock"),
    [SNIB_KIND_WRITE] = SIDE("write lock"),
    [SNIB_KIND_SEMAPHORE] = {.text = "semaphore", .article = "a ", .family = SNIB__FAMILY_SEMAPHORE,
                             .cap = SNIB_CAP_SEMAPHORE, .verbs = NUMBERS | BIT(DRAIN), .tokens = 1,
                             .momentary = true, .anonymous = true},
    [SNIB_KIND_PERMITS] = {.text = "permits", .article = "", .family = SNIB__FAMILY_PERMITS, .cap = SNIB_CAP_PERMITS,
                           .verbs = NUMBERS | BIT(RESIZE), .tokens = 1, .anonymous = true},
    [SNIB_KIND_LATCH] = {.text = "latch", .article = "a ", .family = SNIB__FAMILY_LATCH, .cap = SNIB_CAP_LATCH,
                         .verbs = NUMBERS, .tokens = 1, .momentary = true, .anonymous = true},
    [SNIB_KIND_REGISTER] = {.text = "register", .article = "a ", .family = SNIB__FAMILY_REGISTER,
                            .cap = SNIB_CAP_REGISTER, .verbs = SNIB__VERBS_COMMON | BIT(WRITE) | BIT(DELETE),
                            .tokens = 1, .momentary = true, .anonymous = true},
    /* Only in answers. */
    [SNIB_KIND_COUNTER] = {.text = "counter", .article = "a "},
};
/* clang-format on */

static const struct snib__kind any = {.text = "object", .article = "an ", .verbs = BIT(QUERY) | BIT(FORCE)};
static const struct snib__kind none = {.text = "object", .article = "an "};

const struct snib__kind *snib__kind(int kind)
{
        if (kind >= 0 && kind < (int)(sizeof(kinds) / sizeof(kinds[0])) && kinds[kind].text)
                return &kinds[kind];
        return kind == SNIB_KIND_ANY ? &any : &none;
}

static const struct {
        int kind;
        const char *in_use;
} families[] = {
    [SNIB__FAMILY_NONE] = {SNIB_KIND_ANY, ""},
    [SNIB__FAMILY_LOCK] = {SNIB_KIND_LOCK, "the name is in use by a lock"},
    [SNIB__FAMILY_RW] = {SNIB_KIND_WRITE, "the name is in use by a read-write lock"},
    [SNIB__FAMILY_SEMAPHORE] = {SNIB_KIND_SEMAPHORE, "the name is in use by a semaphore"},
    [SNIB__FAMILY_PERMITS] = {SNIB_KIND_PERMITS, "the name is in use by expiring permits"},
    [SNIB__FAMILY_LATCH] = {SNIB_KIND_LATCH, "the name is in use by a latch"},
    [SNIB__FAMILY_REGISTER] = {SNIB_KIND_REGISTER, "the name is in use by a register"},
};

int snib__family_kind(enum snib__family family)
{
        return families[family].kind;
}

const char *snib__family_in_use(enum snib__family family)
{
        return families[family].in_use;
}

const char *snib__kind_refusal(int kind, enum snib__verb verb, bool has)
{
        const struct snib__kind *k = snib__kind(kind);

        if (!k->verbs)
                return "there is no object of this kind";
        if (verb < SNIB__ACQUIRE || verb > SNIB__DELETE || !(k->verbs & SNIB__VERB_BIT(verb)))
                return "there is no such request to an object of this kind";
        return has ? NULL : "the engine has no such request to an object of this kind";
}
