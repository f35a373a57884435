/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_OUTBOX_H
#define SNIB_ENGINE_OUTBOX_H

/*
 * What an engine has to tell: notes on their way to next(), each in a letter with one life:
 *
 *     its owner's --post--> posted --next--> taken --recycle--> its owner's
 *
 * A letter is embedded in what it tells about, so that telling takes no memory; the note is written
 * when it is taken. What a taken note points at lives until recycle(), which process() calls first.
 * Not a queue between threads: it belongs to the one that calls the engine.
 */

#include "base/list.h"
#include "engine/engine.h"

struct snib__letter;

/* What is done with letters of one kind. `owner` is the outbox's. */
struct snib__letter_kind {
        /* Writes all of the note. True: the letter has another one, and stays the first. */
        bool (*write)(void *owner, struct snib__letter *l, struct snib__note *ret);
        /* NULL: it is its owner's again as soon as its note is taken; or: recycle() gives it back,
         * when nobody looks any more at what the note pointed at. */
        void (*back)(void *owner, struct snib__letter *l, snib__ns now);
};

struct snib__letter {
        struct snib__list link; /* posted or taken; else its owner's to use */
        const struct snib__letter_kind *kind;
};

struct snib__outbox {
        struct snib__list posted, taken;
        void *owner;
};

void snib__outbox_init(struct snib__outbox *o, void *owner);
/* One that is posted already stays where it is: once is enough. */
void snib__outbox_post(struct snib__outbox *o, struct snib__letter *l, const struct snib__letter_kind *kind);
/* One that is posted is so no more. */
void snib__outbox_withdraw(struct snib__letter *l);
/* next() of an engine. */
bool snib__outbox_next(struct snib__outbox *o, struct snib__note *ret);
void snib__outbox_recycle(struct snib__outbox *o, snib__ns now);
/* At close: any that is left, posted or taken; NULL: none is. */
struct snib__letter *snib__outbox_drain(struct snib__outbox *o);

static inline bool snib__outbox_empty(const struct snib__outbox *o)
{
        return snib__list_empty(&o->posted);
}

/* The one way to fail. The error lives as long as the reply. */
struct snib__reply snib__reply_failed(int kind, const struct snib_error *why);
extern const struct snib_error snib__reply_no_memory;

#endif
