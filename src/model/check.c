/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is true of every record between two calls: the invariants of model/record.h, each named by
 * the sentence that is answered when it does not hold. For records that come from outside the
 * process, and for tests. Pure.
 */

#include "model/internal.h"

#define MUST(condition, text)          \
        do {                           \
                if (!(condition))      \
                        return (text); \
        } while (0)

static const char *check_holder(const struct snib__record *r, const struct snib__holder *h)
{
        bool remembers = snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE;

        MUST(snib__id_set(&h->seat.id), "every seat has an id");
        MUST(snib__family_of(h->kind) == r->family, "every seat is of the record's family");
        MUST(remembers ? h->token == 0 : h->token > 0 && h->token <= r->token, "a hold has a token");
        MUST(h->n >= 1 && h->n <= SNIB__NUMBER_MAX, "a seat is for at least one");
        MUST(h->index >= 0 && h->index <= 65535 && (h->index == 0 || snib__family_of(h->kind) == SNIB__FAMILY_PERMITS),
             "only permits are numbered");
        MUST(snib__queue_find(r, &h->seat.id) == r->queued, "the holder does not wait");
        for (const struct snib__holder *o = r->holder; o < h; o++)
                MUST(o->index != h->index || !snib__id_equal(&o->seat.id, &h->seat.id), "nobody sits twice");
        return NULL;
}

static const char *check_seats(const struct snib__record *r)
{
        size_t writers = 0;

        for (size_t i = 0; i < r->held; i++) {
                const char *wrong = check_holder(r, &r->holder[i]);

                if (wrong)
                        return wrong;
                writers += r->holder[i].kind == SNIB_KIND_WRITE;
        }
        MUST(writers <= 1, "there is one writer at most");
        MUST(r->family != SNIB__FAMILY_LOCK || r->held <= 1, "a lock has one holder at most");
        MUST(r->held == 0 || (r->family != SNIB__FAMILY_LATCH && r->family != SNIB__FAMILY_REGISTER),
             "nobody sits at a latch or a register");
        MUST(r->held == 0 || r->exists || r->family == SNIB__FAMILY_LOCK || r->family == SNIB__FAMILY_RW,
             "permits are of something that exists");
        return NULL;
}

static const char *check_queue(const struct snib__record *r)
{
        bool first = true;

        for (size_t i = 0; i < r->queued; i++) {
                const struct snib__waiter *w = &r->queue[i];

                MUST(snib__id_set(&w->seat.id), "every waiter has an id");
                MUST(snib__family_of(w->kind) == r->family, "every waiter is of the record's family");
                MUST(w->n >= 1 && w->n <= SNIB__NUMBER_MAX, "a waiter asks for at least one");
                MUST(snib__queue_find(r, &w->seat.id) == i, "nobody stands in the queue twice");
                MUST(w->observer || !first || !snib__seat_may(r, w->kind, w->n, NULL),
                     "nobody at the head of the queue may sit");
                first &= w->observer;
        }
        return NULL;
}

static const char *check_number(const struct snib__record *r)
{
        bool number =
            r->family == SNIB__FAMILY_SEMAPHORE || r->family == SNIB__FAMILY_PERMITS || r->family == SNIB__FAMILY_LATCH;
        int64_t least = r->family == SNIB__FAMILY_SEMAPHORE ? -SNIB__NUMBER_MAX : 0;

        MUST(r->exists ? number || r->family == SNIB__FAMILY_REGISTER : r->value == 0 && r->version == 0,
             "what does not exist has no value");
        MUST(number ? r->value >= least && r->value <= SNIB__NUMBER_MAX : r->value == 0, "the number is in its range");
        MUST(r->family != SNIB__FAMILY_LATCH || r->exists == (r->value > 0), "a latch exists until it is open");
        MUST(r->family == SNIB__FAMILY_REGISTER ? r->exists == (r->version > 0) : r->version == 0,
             "a value has a version");
        MUST(r->version <= r->token, "a version is a token that was given out");
        MUST(r->data || r->data_length == 0, "data that has a length is there");
        return NULL;
}

static const char *check_dones(const struct snib__record *r)
{
        for (size_t i = 0; i < r->dones; i++) {
                MUST(snib__id_set(&r->done[i].id), "every request that is remembered has an id");
                for (size_t j = 0; j < i; j++)
                        MUST(!snib__id_equal(&r->done[i].id, &r->done[j].id), "nothing is remembered twice");
        }
        return NULL;
}

const char *snib__record_check(const struct snib__record *record)
{
        const struct snib__record *r = record;
        const char *wrong;

        MUST(r->token >= 0, "the token is not negative");
        MUST(r->held <= r->held_room, "the seats fit their room");
        MUST(r->queued <= r->queue_room, "the queue fits its room");
        MUST(r->dones <= r->dones_room, "the memory fits its room");
        MUST((r->family == SNIB__FAMILY_NONE) == snib__record_vacant(r), "there is a family while there is anything");
        MUST(r->family >= SNIB__FAMILY_NONE && r->family <= SNIB__FAMILY_REGISTER, "the family is one");
        wrong = check_number(r);
        if (!wrong)
                wrong = check_seats(r);
        if (!wrong)
                wrong = check_queue(r);
        return wrong ? wrong : check_dones(r);
}
