/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How large a record may become by one request: the model allocates nothing, so an engine makes
 * room before it asks. Not a limit (those are the maxima of record.h) and not a promise that so
 * much is used. Pure; any thread.
 */

#include "model/record.h"

static size_t at_most(size_t n, size_t most)
{
        return n < most ? n : most;
}

/* How many seats one takes. */
static size_t seats_of(int kind, int64_t n)
{
        return snib__family_of(kind) == SNIB__FAMILY_PERMITS && n > 1
                   ? (size_t)(n < SNIB__SEATS_MAX ? n : SNIB__SEATS_MAX)
                   : 1;
}

/* Those who sit, everybody who waits for a seat, and who asks. Where nobody sits that is who asks,
 * if what there is is over by then and gives way to a lock. */
static size_t seats(const struct snib__record *r, const struct snib__op *op)
{
        enum snib__family family = r->family ? r->family : snib__family_of(op->kind);
        size_t n = r->held, most = family == SNIB__FAMILY_LOCK ? 1 : SNIB__SEATS_MAX;

        if (family == SNIB__FAMILY_LATCH || family == SNIB__FAMILY_REGISTER)
                return op->verb == SNIB__ACQUIRE && snib__family_of(op->kind) != family;
        if (op->verb == SNIB__ACQUIRE)
                n += seats_of(op->kind, op->n);
        for (size_t i = 0; i < r->queued && n < most; i++)
                n += r->queue[i].observer ? 0 : seats_of(r->queue[i].kind, r->queue[i].n);
        return at_most(n, most);
}

/* Whoever finds a lock free does not wait for it. */
static bool joins(const struct snib__record *r, const struct snib__op *op)
{
        return op->enqueue && (op->verb != SNIB__ACQUIRE || r->held || snib__family_of(op->kind) != SNIB__FAMILY_LOCK);
}

struct snib__room snib__record_room(const struct snib__record *r, const struct snib__op *op)
{
        bool remembered = snib__op_remembered(op) && op->verb != SNIB__ACQUIRE;

        return (struct snib__room){.held = seats(r, op),
                                   .queued = at_most(r->queued + joins(r, op), SNIB__WAITERS_MAX),
                                   .dones = at_most(r->dones + remembered, SNIB__DONES_MAX),
                                   .tells = r->held + r->queued + 1};
}
