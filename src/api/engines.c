/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib_engine_at(): the registry of engines, as the public struct, as much of it as the caller's
 * headers know; and what a capability is called, from the one table in the header. Any thread.
 */

#include "api/internal.h"

const char *snib_cap_name(unsigned cap)
{
        switch (cap) {
#define NAME(name, bit, word, text) \
        case name:                  \
                return word;
                SNIB_CAPS(NAME)
#undef NAME
        default:
                return NULL;
        }
}

const char *snib_cap_text(unsigned cap)
{
        switch (cap) {
#define TEXT(name, bit, word, text) \
        case name:                  \
                return text;
                SNIB_CAPS(TEXT)
#undef TEXT
        default:
                return NULL;
        }
}

int snib_engine_at(int index, struct snib_engine_info *ret_info)
{
        const struct snib__engine_ops *ops = snib__engine_at(index);
        int r;

        if (!ops)
                return 0;
        r = snib__result_copy(ret_info, &ops->info, sizeof(ops->info), SNIB__FIRST_ENGINE_INFO, "ret_info", NULL);
        return r < 0 ? r : 1;
}
