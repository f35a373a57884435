/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib_engine_at(): the registry of engines, as the public struct, as much of it as the caller's
 * headers know. Any thread.
 */

#include "api/internal.h"

int snib_engine_at(int index, struct snib_engine_info *ret_info)
{
        const struct snib__engine_ops *ops = snib__engine_at(index);
        int r;

        if (!ops)
                return 0;
        r = snib__result_copy(ret_info, &ops->info, sizeof(ops->info), SNIB__FIRST_ENGINE_INFO, "ret_info", NULL);
        return r < 0 ? r : 1;
}
