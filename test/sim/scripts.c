/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bugs on purpose in the server's scripts. Each variant is the production text with one place replaced, so that it does
 * not fall behind; a replacement whose place is gone ends the program.
 */

#include "scripts.h"
#include "base/seedbug.h"
#include "engine/redis/script.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SNIB__SEEDED

#include "fakeredis/fakeredis.h"

static const struct {
        int bug;
        enum snib__redis_script_id script;
        const char *from, *to;
} variants[] = {
    /* As a client that only deletes the key. */
    {SNIB__BUG_release_without_owner_check, SNIB__SCRIPT_RELEASE, "redis.pcall('HDEL', KEYS[1], ARGV[1])",
     "redis.pcall('DEL', KEYS[1])"},
    {SNIB__BUG_renewal_without_owner_check, SNIB__SCRIPT_RENEW, "redis.pcall('HEXISTS', KEYS[1], ARGV[1])",
     "redis.pcall('EXISTS', KEYS[1])"},
    /* A counter instead of a set of ids. */
    {SNIB__BUG_repeated_acquire_counted_twice, SNIB__SCRIPT_ACQUIRE, "local renewed =",
     "redis.call('HSET', KEYS[1], ARGV[1], redis.call('HGET', KEYS[1], ARGV[1]) + (status - 1))\nlocal renewed ="},
    {SNIB__BUG_repeated_acquire_counted_twice, SNIB__SCRIPT_ACQUIRE_FENCED, "local renewed =",
     "redis.call('HSET', KEYS[1], ARGV[1], redis.call('HGET', KEYS[1], ARGV[1]) + (status - 1))\nlocal renewed ="},
    {SNIB__BUG_repeated_acquire_counted_twice, SNIB__SCRIPT_RELEASE, "redis.pcall('HDEL', KEYS[1], ARGV[1])",
     "redis.call('HEXISTS', KEYS[1], ARGV[1])\n"
     "local count = removed == 1 and redis.call('HGET', KEYS[1], ARGV[1]) - 1 or 0\n"
     "if count > 0 then\nredis.call('HSET', KEYS[1], ARGV[1], count)\nreturn {1}\nend\n"
     "removed = redis.pcall('HDEL', KEYS[1], ARGV[1])"},
    {SNIB__BUG_notification_dropped, SNIB__SCRIPT_RELEASE, "redis.pcall('PUBLISH', ARGV[2], '0')", ""},
    {SNIB__BUG_token_not_raised, SNIB__SCRIPT_ACQUIRE_FENCED, "redis.pcall('INCR', KEYS[2])",
     "tonumber(redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2]))\nif last > 1 then\n"
     "redis.call('HSET', KEYS[1], ARGV[1], '1')\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
     "return {1, redis.call('GET', KEYS[2])}\nend"},
};

#define TEXT_MAX 4096

static struct snib__redis_script changed[SNIB__SCRIPTS];
static char texts[SNIB__SCRIPTS][TEXT_MAX];

static void change(enum snib__redis_script_id script, const char *from, const char *to)
{
        struct snib__redis_script *s = &changed[script];
        const char *at = strstr(s->text, from);
        char *text = texts[script];

        if (!at) {
                fprintf(stderr, "script %s has changed: \"%s\" is not in it\n", s->name, from);
                abort();
        }
        s->length = (size_t)snprintf(text, TEXT_MAX, "%.*s%s%s", (int)(at - s->text), s->text, to, at + strlen(from));
        s->text = text;
        fakeredis_sha1(text, s->length, s->sha1);
}

void sim_scripts_choose(void)
{
        memcpy(changed, snib__redis_scripts_built_in, sizeof(changed));
        for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
                if (variants[i].bug == snib__seeded_bug)
                        change(variants[i].script, variants[i].from, variants[i].to);
        snib__redis_scripts = changed;
}

#else

void sim_scripts_choose(void)
{
        snib__redis_scripts = snib__redis_scripts_built_in;
}

#endif
