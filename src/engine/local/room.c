/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory of a record: room is made for what is loaded and for what the model may add, before it
 * is asked, since the model allocates nothing. It is kept from one request to the next. Not what
 * the record says. Called with store.lock held.
 */

#include "base/alloc.h"
#include "engine/local/rows.h"
#include <stdlib.h>
#include <string.h>

/* Makes room for `want` elements in the array that the pointer at `array` points at. */
static int reserve(void *array, size_t *room, size_t want, size_t size)
{
        size_t more = *room ? *room : 8;
        void *old, *grown;

        if (want <= *room)
                return SQLITE_OK;
        while (more < want)
                more *= 2;
        memcpy(&old, array, sizeof(old));
        grown = snib__grow(old, more * size);
        if (!grown)
                return SQLITE_NOMEM;
        memcpy(array, &grown, sizeof(grown));
        *room = more;
        return SQLITE_OK;
}

int snib__rows_reserve(struct snib__record *r, size_t holders, size_t waiters, size_t dones)
{
        int rc = reserve(&r->holder, &r->held_room, holders, sizeof(r->holder[0]));

        if (rc == SQLITE_OK)
                rc = reserve(&r->queue, &r->queue_room, waiters, sizeof(r->queue[0]));
        return rc == SQLITE_OK ? reserve(&r->done, &r->dones_room, dones, sizeof(r->done[0])) : rc;
}

/* How many seats one wants, for the room they need. */
static size_t seats_wanted(int kind, int64_t n)
{
        int64_t most = n < SNIB__SEATS_MAX ? n : SNIB__SEATS_MAX;

        return snib__family_of(kind) == SNIB__FAMILY_PERMITS && n > 1 ? (size_t)most : 1;
}

int snib__rows_reserve_more(struct snib__store *s, const struct snib__op *op)
{
        struct snib__record *r = &s->record;
        size_t seats = r->held + seats_wanted(op->kind, op->n), most = SNIB__SEATS_MAX;
        int rc;

        for (size_t i = 0; i < r->queued && seats < most; i++)
                seats += seats_wanted(r->queue[i].kind, r->queue[i].n);
        rc = snib__rows_reserve(r, seats < most ? seats : most, r->queued + 1, r->dones + 1);
        /* Everybody may be told twice: that it was seated, and that this is over. */
        return rc == SQLITE_OK ? reserve(&s->change.tell, &s->change.tell_room, 2 * (r->held + r->queued + 2),
                                         sizeof(s->change.tell[0]))
                               : rc;
}

int snib__rows_reserve_row(struct snib__store *s, struct snib__rows *rows)
{
        const struct snib__record *r = &s->record;
        int rc = snib__rows_reserve(&s->record, r->held + 1, r->queued + 1, r->dones + 1);

        return rc == SQLITE_OK ? reserve(&rows->row, &rows->room, rows->count + 1, sizeof(rows->row[0])) : rc;
}

void snib__rows_done(struct snib__store *s)
{
        free(s->record.holder);
        free(s->record.queue);
        free(s->record.done);
        free(s->change.tell);
        free(s->seats.row);
        free(s->waiters.row);
}
