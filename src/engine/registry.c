/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of engines of this build, the look-up by URL scheme, and what is put around an engine
 * that is opened. Adding one is one line here and one folder beside it.
 */

#include "engine/engine.h"
#include "engine/local/local.h"
#include "engine/mem/mem.h"
#include "engine/redis/redis.h"
#include "engine/trace.h"
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

struct snib__engine *(*snib__engine_test)(struct snib__engine *e);

int snib__engine_open(struct snib__engine **ret, const struct snib__engine_ops *ops,
                      const struct snib__engine_config *config, snib__ns now, struct snib_error *err)
{
        const char *trace = snib__url_option(config->url, "trace"); /* before open(), which refuses what is not read */
        struct snib__engine *e = NULL;
        int r = ops->open(&e, config, now, err);

        if (r < 0)
                return r;
        if (snib__engine_test)
                e = snib__engine_test(e);
        if (trace)
                r = snib__trace_around(&e, trace, err);
        if (r < 0)
                e->ops->close(e);
        else
                *ret = e;
        return r;
}
