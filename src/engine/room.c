/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arrays that grow, those of a record above all. How much room is wanted is for the model to say
 * (snib__record_room()), and what is in it for the caller to know. Nothing shrinks. Stateless; the
 * caller's lock.
 */

#include "engine/room.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

bool snib__room_grow(void *array, size_t *room, size_t want, size_t size)
{
        size_t more = want > *room * 2 ? want : *room * 2;
        void *old, *grown;

        if (want <= *room)
                return true;
        memcpy(&old, array, sizeof(old));
        grown = snib__grow(old, more * size);
        if (!grown)
                return false;
        memcpy(array, &grown, sizeof(grown));
        *room = more;
        return true;
}

bool snib__room_make(struct snib__record *r, struct snib__room want)
{
        return snib__room_grow(&r->holder, &r->held_room, want.held, sizeof(r->holder[0])) &&
               snib__room_grow(&r->queue, &r->queue_room, want.queued, sizeof(r->queue[0])) &&
               snib__room_grow(&r->done, &r->dones_room, want.dones, sizeof(r->done[0]));
}

void snib__room_free(struct snib__record *r)
{
        free(r->holder);
        free(r->queue);
        free(r->done);
        r->holder = NULL;
        r->queue = NULL;
        r->done = NULL;
        r->held_room = r->queue_room = r->dones_room = 0;
}
