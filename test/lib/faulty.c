/* SPDX-License-Identifier: Apache-2.0 */

/*
 * See faulty.h. What is not sent is answered from an outbox of its own; of an answer that is lost
 * the engine inside is told that nobody heard it. Which thread: that of the engine inside; the odds
 * are anybody's.
 */

#include "faulty.h"
#include "base/list.h"
#include "base/prng.h"
#include "engine/around.h"
#include "engine/outbox.h"
#include <stdlib.h>

struct faulty {
        struct snib__around around;
        struct snib__outbox outbox;
        struct snib__prng prng;
};

/* A request that never left. */
struct unsent {
        struct snib__letter letter;
        struct snib__tag tag;
        int kind;
};

struct faulty_odds faulty_odds;
atomic_uint faulty_count;

static const struct snib_error unreachable = {
    .size = sizeof(unreachable), .code = SNIB_EUNREACHABLE, .text = "a fault of the test: not sent"};
static const struct snib_error unknown = {
    .size = sizeof(unknown), .code = SNIB_EUNKNOWN, .text = "a fault of the test: the answer was lost"};

static struct faulty *faulty_of(struct snib__engine *e)
{
        return snib__container(e, struct faulty, around.base);
}

static bool happens(struct faulty *f, atomic_uint *odds)
{
        unsigned one_in = atomic_load(odds);

        if (!one_in || snib__prng_below(&f->prng, one_in) != 0)
                return false;
        atomic_fetch_add(&faulty_count, 1);
        return true;
}

static bool write_unsent(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        const struct unsent *u = snib__container(l, struct unsent, letter);

        (void)owner;
        *ret = (struct snib__note){
            .kind = SNIB__NOTE_REPLY, .tag = u->tag, .reply = snib__reply_failed(u->kind, &unreachable)};
        return false;
}

static void free_unsent(void *owner, struct snib__letter *l, snib__ns now)
{
        (void)owner, (void)now;
        free(snib__container(l, struct unsent, letter));
}

static const struct snib__letter_kind unsent_letter = {.write = write_unsent, .back = free_unsent};

static bool submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        struct faulty *f = faulty_of(e);
        struct unsent *u;

        if (happens(f, &faulty_odds.refused))
                return false;
        if (!happens(f, &faulty_odds.unsent))
                return snib__around_submit(e, tag, op, now);
        u = calloc(1, sizeof(*u));
        if (!u)
                return false;
        u->tag = tag;
        u->kind = op->kind;
        snib__outbox_post(&f->outbox, &u->letter, &unsent_letter);
        return true;
}

static void interest(struct snib__engine *e, snib__ns now, struct snib__interest *ret)
{
        snib__around_interest(e, now, ret);
        if (!snib__outbox_empty(&faulty_of(e)->outbox))
                ret->deadline = now;
}

static void process(struct snib__engine *e, const struct snib__interest *ready, snib__ns now)
{
        snib__outbox_recycle(&faulty_of(e)->outbox, now);
        snib__around_process(e, ready, now);
}

static bool next(struct snib__engine *e, struct snib__note *ret)
{
        struct faulty *f = faulty_of(e);

        if (snib__outbox_next(&f->outbox, ret))
                return true;
        if (!snib__around_next(e, ret))
                return false;
        if (ret->kind == SNIB__NOTE_REPLY && ret->reply.status != SNIB__FAILED && happens(f, &faulty_odds.lost)) {
                ret->reply = snib__reply_failed(ret->reply.kind, &unknown);
                if (f->around.ops.unheard)
                        snib__around_unheard(e, ret->tag);
        }
        return true;
}

static void close_both(struct snib__engine *e)
{
        struct faulty *f = faulty_of(e);

        snib__around_close(e);
        for (struct snib__letter *l; (l = snib__outbox_drain(&f->outbox));)
                free_unsent(f, l, 0);
        free(f);
}

static struct snib__engine *put_around(struct snib__engine *e)
{
        static atomic_uint number;
        struct faulty *f = calloc(1, sizeof(*f));

        if (!f)
                abort();
        snib__around_init(&f->around, e);
        snib__outbox_init(&f->outbox, f);
        f->prng.state = atomic_fetch_add(&number, 1);
        f->around.ops.submit = submit;
        f->around.ops.interest = interest;
        f->around.ops.process = process;
        f->around.ops.next = next;
        f->around.ops.close = close_both;
        return &f->around.base;
}

void faulty_install(void)
{
        snib__engine_test = put_around;
}

void faulty_remove(void)
{
        snib__engine_test = NULL;
}
