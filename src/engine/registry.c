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

const struct snib__engine_ops *snib__engine_at(int i)
{
        return i >= 0 && i < (int)(sizeof(engines) / sizeof(engines[0])) ? engines[i] : NULL;
}

const struct snib__engine_ops *snib__engine_find(const char *scheme)
{
        for (int i = 0; snib__engine_at(i); i++)
                for (const char *const *s = engines[i]->schemes; *s; s++)
                        if (!strcmp(*s, scheme))
                                return engines[i];
        return NULL;
}
