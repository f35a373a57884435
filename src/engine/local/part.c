/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How much of a queue is loaded, and what the object's flags say of it. A long queue is read in
 * part: its end for a newcomer, its head for whoever sits. Whether the part was enough is known
 * after the model has decided on it. Not who waits (seats.c) and not who is next (the model).
 * Called with store.lock held.
 */

#include "engine/local/rows.h"

int64_t snib__part_flags(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;
        const struct snib__rows *rows = &s->waiters;
        int64_t left = s->flags / SNIB__FLAG_LEFT + (int64_t)rows->count, last = rows->last, observers = 0;
        size_t stay = 0;

        for (size_t i = 0; i < rows->count && stay < r->queued; i++)
                if (snib__id_equal(&rows->row[i].id, &r->queue[stay].seat.id)) {
                        last = rows->row[i].seq;
                        stay++;
                }
        left -= (int64_t)stay;
        if (r->queued == stay) /* and nobody has come after the last */
                left -= rows->last - last;
        for (size_t i = 0; i < r->queued; i++)
                observers |= r->queue[i].observer ? SNIB__FLAG_OBSERVERS : 0;
        return r->queued ? SNIB__FLAG_WAITERS | observers | left * SNIB__FLAG_LEFT : 0;
}

/* How much of the queue is likely to be enough; 0: nothing but all. One who asks for the first
 * time, sits, or whose id is that of a change does not stand in it. Usually nobody goes in, or the
 * first when somebody leaves. A newcomer goes to the end; where all wait for the same nobody there
 * may sit if the first may not. */
static size_t enough(const struct snib__store *s, const struct snib__op *op, bool *ret_end)
{
        bool seated = snib__seats_find(&s->record, &op->id);

        *ret_end = op->verb == SNIB__ACQUIRE && !seated;
        if (s->flags & SNIB__FLAG_OBSERVERS)
                return 0;
        if (op->verb == SNIB__ACQUIRE)
                return seated || (op->number == 1 && s->record.family == SNIB__FAMILY_LOCK);
        if (op->verb == SNIB__RENEW)
                return op->permits || seated;
        if (op->verb == SNIB__RELEASE)
                return op->permits || seated ? 2 : 0;
        return snib__verb_changes(op->verb) ? 2 : 0;
}

int snib__part_load(struct snib__store *s, const struct snib__op *op, bool whole)
{
        bool end = false;
        size_t part = whole ? 0 : enough(s, op, &end);
        int rc = snib__seats_load_waiters(s, op->name, part && end ? SNIB__SQL_WAITER_LAST : SNIB__SQL_WAITER_GET,
                                          part ? part : SNIB__WAITERS_MAX + 1);
        int64_t unseen = s->waiters.last - s->flags / SNIB__FLAG_LEFT - (int64_t)s->waiters.count;

        if (rc != SQLITE_OK)
                return rc;
        s->part = s->waiters.count == part ? part : 0;
        s->end = s->part && end;
        if (s->part && !s->end)
                return SQLITE_OK;
        if (unseen < 0 || unseen > (s->end ? SNIB__WAITERS_MAX : 0) ||
            (!s->end && snib__part_flags(s) != s->flags - s->flags % SNIB__FLAG_WAITERS))
                return snib__rows_damaged(s, "the flags of an object tell who waits");
        s->record.unseen = (size_t)unseen;
        return SQLITE_OK;
}

bool snib__part_suffices(const struct snib__store *s)
{
        const struct snib__record *r = &s->record;
        size_t last = s->part;

        while (last > 0 && last > r->queued)
                last--;
        while (last > 0 && !snib__id_equal(&r->queue[last - 1].seat.id, &s->waiters.row[s->part - 1].id))
                last--;
        return !s->part || (last > 0 && (!s->end || (!s->change.holders && !s->change.record)));
}
