/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one question about ids: the same or not. Not an order; nobody may read one out of an id. Pure.
 */

#include "model/op.h"
#include <string.h>

bool snib__id_equal(const struct snib__id *a, const struct snib__id *b)
{
        return strncmp(a->text, b->text, sizeof(a->text)) == 0;
}
