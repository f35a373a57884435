/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of engines of this build, and the look-up by URL scheme. Adding an engine is one line
 * here and one folder beside it.
 */

#include "engine/engine.h"
#include "engine/local/local.h"
#include "engine/mem/mem.h"
#include "engine/redis/redis.h"
#include <string.h>

static const struct snib__engine_ops *const engines[] = {&snib__local_engine, &snib__redis_engine, &snib__mem_engine};

#define ENGINES (sizeof(engines) / sizeof(engines[0]))

const struct snib__facts *snib__engine_form(int i)
{
        for (size_t k = 0; i >= 0 && k < ENGINES; k++)
                for (const struct snib__facts *const *f = engines[k]->forms; *f; f++)
                        if (i-- == 0)
                                return *f;
        return NULL;
}

const struct snib__engine_ops *snib__engine_find(const char *scheme)
{
        for (size_t k = 0; k < ENGINES; k++)
                for (const char *const *s = engines[k]->schemes; *s; s++)
                        if (!strcmp(*s, scheme))
                                return engines[k];
        return NULL;
}
