/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib_engine_at(): the registry of engines, as the public struct, as much of it as the caller's
 * headers know. Any thread.
 */

#include "api/internal.h"

int snib_engine_at(int index, struct snib_engine_info *ret_info)
{
        const struct snib__facts *f = snib__engine_form(index);
        int r;

        if (!f)
                return 0;
        r = snib__result_copy(ret_info, &f->info, sizeof(f->info), SNIB__FIRST_ENGINE_INFO, "ret_info", NULL);
        return r < 0 ? r : 1;
}
