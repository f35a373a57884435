/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bugs on purpose in the server's scripts. Each variant is the production text with one place
 * replaced, so that it does not fall behind; a replacement whose place is gone ends the program.
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
    {SNIB__BUG_release_without_owner_check, SNIB__SCRIPT_RELEASE, "redis.call('HDEL', KEYS[1], ARGV[1])",
     "redis.pcall('DEL', KEYS[1])"},
    {SNIB__BUG_renewal_without_owner_check, SNIB__SCRIPT_RENEW, "redis.call('HEXISTS', KEYS[1], ARGV[1])",
     "redis.call('EXISTS', KEYS[1])"},
    {SNIB__BUG_renewals_without_owner_check, SNIB__SCRIPT_RENEW_MANY, "call('HEXISTS', key, args[i])",
     "call('EXISTS', key)"},
    /* A counter instead of a set of ids. */
    {SNIB__BUG_repeated_acquire_counted_twice, SNIB__SCRIPT_ACQUIRE, "local renewed =",
     "redis.call('HSET', KEYS[1], ARGV[1], redis.call('HGET', KEYS[1], ARGV[1]) + (status - 1))\nlocal renewed ="},
    {SNIB__BUG_repeated_acquire_counted_twice, SNIB__SCRIPT_ACQUIRE_FENCED, "local renewed =",
     "redis.call('HSET', KEYS[1], ARGV[1], redis.call('HGET', KEYS[1], ARGV[1]) + (status - 1))\nlocal renewed ="},
    {SNIB__BUG_repeated_acquire_counted_twice, SNIB__SCRIPT_RELEASE, "redis.call('HDEL', KEYS[1], ARGV[1])",
     "redis.call('HEXISTS', KEYS[1], ARGV[1])\n"
     "local count = removed == 1 and redis.call('HGET', KEYS[1], ARGV[1]) - 1 or 0\n"
     "if count > 0 then\nredis.call('HSET', KEYS[1], ARGV[1], count)\nreturn {1}\nend\n"
     "removed = redis.pcall('HDEL', KEYS[1], ARGV[1])"},
    {SNIB__BUG_notification_dropped, SNIB__SCRIPT_RELEASE, "redis.pcall('PUBLISH', channel, free)", ""},
    {SNIB__BUG_token_not_raised, SNIB__SCRIPT_ACQUIRE_FENCED, "redis.call('INCRBY', KEYS[2], ARGV[4])",
     "tonumber(redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2]))\nif last > 1 then\n"
     "redis.call('HSET', KEYS[1], ARGV[1], '1')\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
     "return {1, redis.call('GET', KEYS[2])}\nend"},
    {SNIB__BUG_direct_grant_to_the_dead, SNIB__SCRIPT_RELEASE, "time[1] - asked < 5", "true"},
    {SNIB__BUG_direct_grant_unheard, SNIB__SCRIPT_RELEASE, "listeners[2] > 0", "true"},
    {SNIB__BUG_direct_grant_token_old, SNIB__SCRIPT_RELEASE,
     "redis.pcall('INCRBY', counter, tokens), time[1] * 1000000 + time[2] + tokens - 1", "0, 0"},
    {SNIB__BUG_direct_grant_queue_not_left, SNIB__SCRIPT_RELEASE, "redis.pcall('LREM', queue, 1, entry) == 1", "true"},
    {SNIB__BUG_direct_grant_holder_stays_queued, SNIB__SCRIPT_ACQUIRE, "redis.pcall('LREM', queue, 1, entry) == 1",
     "true"},
    {SNIB__BUG_direct_grant_holder_stays_queued, SNIB__SCRIPT_ACQUIRE_FENCED,
     "redis.pcall('LREM', queue, 1, entry) == 1", "true"},
    {SNIB__BUG_direct_grant_wakes_nobody, SNIB__SCRIPT_RELEASE, "if type(entry) == 'string' then",
     "channel = type(entry) ~= 'string' and channel or nil\nif type(entry) == 'string' then"},
    {SNIB__BUG_direct_grant_last_first, SNIB__SCRIPT_ACQUIRE, "redis.pcall('RPUSH', queue, entry)",
     "redis.pcall('LPUSH', queue, entry)"},
    {SNIB__BUG_direct_grant_last_first, SNIB__SCRIPT_ACQUIRE_FENCED, "redis.pcall('RPUSH', queue, entry)",
     "redis.pcall('LPUSH', queue, entry)"},
    {SNIB__BUG_fair_dead_waiter_stays, SNIB__SCRIPT_FAIR, "redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now)", "{}"},
    {SNIB__BUG_fair_leaver_wakes_nobody, SNIB__SCRIPT_FAIR, "wake(head)\nif holder == id or stood then",
     "if holder == id or stood then"},
    {SNIB__BUG_fair_queue_without_turn, SNIB__SCRIPT_FAIR, "redis.call('LREM', KEYS[2], 0, other)", ""},
    {SNIB__BUG_fair_order_of_asking, SNIB__SCRIPT_FAIR, "if place > 0 then",
     "if place > 0 then\nredis.call('LREM', KEYS[2], 0, id)\nredis.call('RPUSH', KEYS[2], id)"},
    {SNIB__BUG_rw_renewal_shortens_others, SNIB__SCRIPT_RW, "math.max(best, ARGV[6])", "ARGV[6]"},
    {SNIB__BUG_rw_downgrade_wakes_nobody, SNIB__SCRIPT_RW, "redis.pcall('HSET', KEYS[1], 'mode', 'read')",
     "redis.pcall('HSET', KEYS[1], 'mode', 'read')\ndo return end"},
    {SNIB__BUG_rw_writer_beside_readers, SNIB__SCRIPT_RW, "(reader and side == '6')", "false"},
    {SNIB__BUG_rw_reader_beside_writer, SNIB__SCRIPT_RW, "(writer and writer ~= ARGV[8] .. ':write')",
     "(writer and side == '6')"},
    {SNIB__BUG_semaphore_acquire_forgotten, SNIB__SCRIPT_SEMAPHORE_ACQUIRE,
     "redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])", ""},
    {SNIB__BUG_semaphore_wakes_nobody, SNIB__SCRIPT_SEMAPHORE_ADD, "redis.pcall('PUBLISH', ARGV[3], now)", ""},
    {SNIB__BUG_permits_expired_stay_out, SNIB__SCRIPT_PERMITS_ACQUIRE, "redis.call('ZCOUNT', KEYS[2], '-inf', now)",
     "0"},
    /* Half of the clients are two seconds ahead. */
    {SNIB__BUG_permits_by_clients_clock, SNIB__SCRIPT_PERMITS_ACQUIRE, "math.floor(time[2] / 1000)",
     "math.floor(time[2] / 1000) + ARGV[3]:byte(1) % 2 * 2000"},
    {SNIB__BUG_permits_beyond_limit, SNIB__SCRIPT_PERMITS_ACQUIRE, "#ids <= left", "left > 0"},
    {SNIB__BUG_latch_count_forgotten, SNIB__SCRIPT_LATCH_ADD, "redis.call('SET', KEYS[2], left, 'PX', ARGV[3])", ""},
    {SNIB__BUG_latch_delete_wakes_nobody, SNIB__SCRIPT_LATCH_DELETE, "redis.pcall('PUBLISH', ARGV[1], '0')", ""},
    {SNIB__BUG_latch_below_zero, SNIB__SCRIPT_LATCH_ADD, "left > 0 and", "true and"},
    {SNIB__BUG_election_begin_untold, SNIB__SCRIPT_ACQUIRE_FENCED, "redis.pcall('PUBLISH', ARGV[5], '2')", ""},
    {SNIB__BUG_cohort_tokens_not_reserved, SNIB__SCRIPT_ACQUIRE_FENCED, "redis.call('INCRBY', KEYS[2], ARGV[4])",
     "redis.call('INCR', KEYS[2])"},
    {SNIB__BUG_register_write_forgotten, SNIB__SCRIPT_REGISTER_WRITE, "redis.call('SET', KEYS[2], text, 'PX', ARGV[4])",
     ""},
    {SNIB__BUG_register_write_unconditional, SNIB__SCRIPT_REGISTER_WRITE, "ARGV[1] ~= '-1'", "false"},
    {SNIB__BUG_register_version_anew, SNIB__SCRIPT_REGISTER_WRITE, "math.max(version + 1, now[1] * 1000000 + now[2])",
     "version + 1"},
    {SNIB__BUG_register_write_untold, SNIB__SCRIPT_REGISTER_WRITE, "redis.pcall('PUBLISH', ARGV[3], text)", ""},
};

#define TEXT_MAX 8192 /* each has one change */

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
