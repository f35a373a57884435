/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib_engine_at(): the registry of engines, as the public struct, as much of it as the caller's
 * headers know; and the one table of what a capability is called. Any thread.
 */

#include "api/internal.h"

static const struct {
        unsigned bit;
        const char *name, *text;
} caps[] = {
    {SNIB_CAP_FENCING, "fencing", "fencing tokens that rise per name"},
    {SNIB_CAP_CLOCK_TOKENS, "clock_tokens", "plain locks' tokens from the server's clock"},
    {SNIB_CAP_QUEUE, "queue", "queue of waiters for every object, hand-over to the first"},
    {SNIB_CAP_LOCK_QUEUE, "lock_queue", "queue of waiters for plain, fenced and fair locks, hand-over to the first"},
    {SNIB_CAP_WRITER_IN_TURN, "writer_in_turn", "a waiting writer is not overtaken by readers"},
    {SNIB_CAP_DEATH_NOTICE, "death_notice", "free at once when the holder dies"},
    {SNIB_CAP_CROSS_PROCESS, "cross_process", "between processes"},
    {SNIB_CAP_CROSS_MACHINE, "cross_machine", "between machines"},
    {SNIB_CAP_SURVIVES_RESTART, "survives_restart", "holds survive a restart of the store"},
    {SNIB_CAP_LOCK, "lock", "lock (re-entrant or not, spin, striped, multilock, red multilock)"},
    {SNIB_CAP_FENCED, "fenced_lock", "fenced lock"},
    {SNIB_CAP_FAIR, "fair_lock", "fair lock"},
    {SNIB_CAP_RWLOCK, "rwlock", "read-write lock"},
    {SNIB_CAP_SEMAPHORE, "semaphore", "semaphore"},
    {SNIB_CAP_PERMITS, "permits", "permits that expire"},
    {SNIB_CAP_LATCH, "latch", "count-down latch"},
    {SNIB_CAP_ELECTION, "election", "leader election"},
    {SNIB_CAP_REGISTER, "register", "register"},
};

enum { CAPS = sizeof(caps) / sizeof(caps[0]) };

const char *snib_cap_name(unsigned cap)
{
        for (int i = 0; i < CAPS; i++)
                if (caps[i].bit == cap)
                        return caps[i].name;
        return NULL;
}

const char *snib_cap_text(unsigned cap)
{
        for (int i = 0; i < CAPS; i++)
                if (caps[i].bit == cap)
                        return caps[i].text;
        return NULL;
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
