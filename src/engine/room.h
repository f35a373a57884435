/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_ROOM_H
#define SNIB_ENGINE_ROOM_H

/* The memory of a record, for engines that keep records themselves. */

#include "model/record.h"

/* Makes room for so many in the arrays of the record; less than there is is no less. False: out of
 * memory, and the record is what it was but for some room. */
bool snib__room_make(struct snib__record *record, struct snib__room want);
/* Frees the arrays. */
void snib__room_free(struct snib__record *record);

/* Makes room for `want` elements of `size` bytes in the array that the pointer at `array` points
 * at. False: out of memory, and nothing was changed. */
bool snib__room_grow(void *array, size_t *room, size_t want, size_t size);

#endif
