/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of numbers and values: permits of a semaphore, the limit of permits that expire,
 * the count of a latch (S8, S9), and the versions of a register (V1).
 *
 * Each number has an account: what it was when it was made, and what every request since has added
 * to it, once. A request whose fate is not known yet may have added it or not, so the account is a
 * range, and the number must be in it after every event. What sets a number whatever it was begins
 * a new account; what was under way then stays in doubt.
 */

#include "sim.h"
#include <snib/error.h>
#include <stdlib.h>
#include <string.h>

static void widen(struct sim_seen *seen, int64_t delta, int times)
{
        *(delta < 0 ? &seen->low : &seen->high) += times * delta;
}

void sim_account_open(struct sim *w, struct sim_log *log, int64_t delta)
{
        struct sim_seen *seen = &w->seen[log->name];

        log->account = SIM_OPEN;
        log->delta = delta;
        log->epoch = seen->epoch;
        widen(seen, delta, 1);
}

void sim_account_close(struct sim *w, struct sim_log *log, bool executed)
{
        struct sim_seen *seen = &w->seen[log->name];

        log->account = SIM_CLOSED;
        if (log->epoch != seen->epoch)
                return; /* into this account or the one before: both stay possible */
        widen(seen, log->delta, -1);
        if (executed) {
                seen->low += log->delta;
                seen->high += log->delta;
        }
}

static void begin_account(struct sim *w, int name, int64_t value)
{
        struct sim_seen *seen = &w->seen[name];

        seen->base = value;
        seen->low = seen->high = 0;
        seen->epoch++;
        for (int i = 0; i < w->log_count; i++)
                if (w->logs[i]->name == name && w->logs[i]->account == SIM_OPEN) {
                        widen(seen, w->logs[i]->delta, 1);
                        if (!w->logs[i]->asked)
                                widen(seen, -w->logs[i]->delta, 1); /* it may be in the new value, and be undone */
                }
}

static void check_account(struct sim *w, int name, const char *invariant, int64_t value, int64_t least)
{
        const struct sim_seen *seen = &w->seen[name];
        int64_t low = seen->base + seen->low, high = seen->base + seen->high;

        if (value < (low > least ? low : least) || value > (high > least ? high : least))
                sim_fail(w, SIM_UNSAFE, invariant, "%s is %lld, and by all accounts %lld to %lld", w->names[name],
                         (long long)value, (long long)low, (long long)high);
}

static void check_counted(struct sim *w, int name, int actor, const struct sim_truth *t)
{
        struct sim_seen *seen = &w->seen[name];
        bool permits = w->options.subject[name] == SIM_PERMIT;
        int64_t value = permits ? t->limit : t->value;
        bool set = actor >= 0 && w->clients[actor].resets > 0 && value != seen->value && (permits || value == 0);

        if (t->exists != seen->exists || (seen->exists && seen->exists_until <= w->now) || set)
                begin_account(w, name, t->exists ? value + t->reserved : 0);
        if (t->exists)
                check_account(w, name, "S8", value, INT64_MIN);
        seen->value = value;
}

static void check_latch(struct sim *w, int name, int actor, const struct sim_truth *t)
{
        struct sim_seen *seen = &w->seen[name];
        int64_t value = t->exists ? t->value : 0;

        if (value > seen->value && seen->value > 0)
                sim_fail(w, SIM_UNSAFE, "S9", "latch %s rises from %lld to %lld", w->names[name],
                         (long long)seen->value, (long long)value);
        if (t->exists && value <= 0)
                sim_fail(w, SIM_UNSAFE, "S9", "latch %s stands at %lld", w->names[name], (long long)value);
        if ((value > 0 && seen->value == 0) || (value == 0 && (actor < 0 || w->clients[actor].deletes > 0)))
                begin_account(w, name, value);
        check_account(w, name, "S9", value, 0);
        seen->value = value;
}

static void check_register(struct sim *w, int name, int actor, const struct sim_truth *t)
{
        struct sim_seen *seen = &w->seen[name];
        struct sim_log *log = t->writer;

        if (t->version == seen->version)
                return;
        if (t->version == 0) {
                if (actor >= 0 && w->clients[actor].deletes == 0)
                        sim_fail(w, SIM_UNSAFE, "V1", "%s was deleted by client %d", w->names[name], actor);
        } else if (!log) {
                sim_fail(w, SIM_UNSAFE, "V1", "%s has a value that nobody wrote", w->names[name]);
        } else {
                /* After a deletion all that Redis has left is its clock. */
                if (t->version <= seen->last_token &&
                    !(w->options.store == SIM_BYTES && w->stepped_back && seen->version == 0))
                        sim_fail(w, SIM_UNSAFE, "V1", "%s has version %lld after %lld", w->names[name],
                                 (long long)t->version, (long long)seen->last_token);
                if (log->installed && !log->stale)
                        sim_fail(w, SIM_UNSAFE, "V1", "the write #%d is executed twice", log->number);
                if (log->expected >= 0 && log->expected != seen->version)
                        sim_fail(w, SIM_UNSAFE, "V1", "the write #%d of version %lld replaced version %lld",
                                 log->number, (long long)log->expected, (long long)seen->version);
                log->installed = true;
                log->version = t->version;
                seen->last_token = t->version;
        }
        seen->version = t->version;
}

void sim_check_number(struct sim *w, int name, int actor, const struct sim_truth *t)
{
        switch (w->options.subject[name]) {
        case SIM_SEMAPHORE:
        case SIM_PERMIT:
                check_counted(w, name, actor, t);
                break;
        case SIM_LATCH:
                check_latch(w, name, actor, t);
                break;
        case SIM_REGISTER:
                check_register(w, name, actor, t);
                break;
        default:
                break;
        }
        w->seen[name].exists = t->exists;
        w->seen[name].exists_until = t->exists_until;
}

static bool not_executed(int result)
{
        return result == 0 || (result < 0 && result != SNIB_EUNKNOWN && result != SNIB_ECLOSED);
}

static void check_write(struct sim *w, const struct sim_ask *a)
{
        const struct sim_log *log = a->log;

        if (log->stale)
                return;
        if (a->ask.result == 1 && (!log->installed || log->version != a->ask.reply.value))
                sim_fail(w, SIM_UNSAFE, "V1", "the write #%d is confirmed as version %lld but did not happen",
                         log->number, (long long)a->ask.reply.value);
        if (not_executed(a->ask.result) && log->installed)
                sim_fail(w, SIM_UNSAFE, "S11", "the write #%d happened, and is answered with %d", log->number,
                         a->ask.result);
}

void sim_check_answer_ask(struct sim *w, struct sim_client *c, const struct sim_ask *a)
{
        int result = a->ask.result;

        if (result == SNIB_EPROTOCOL || result == SNIB_ECORRUPT)
                sim_fail(w, SIM_UNSAFE, "R3", "client %d: %s", c->index, a->ask.fault.text);
        if (!a->log)
                return;
        if (a->ask.op.verb == SNIB__WRITE)
                check_write(w, a);
        if (a->log->account == SIM_OPEN && (result == 1 || not_executed(result)))
                sim_account_close(w, a->log, result == 1);
}
