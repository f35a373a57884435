/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that change a number or a value (SET to DELETE), and the memory of those that were
 * executed, so that a repetition with the same id is answered the same and changes nothing. Not
 * ACQUIRE and RELEASE, whose ids are remembered by the seats. Pure; any thread may call it on a
 * record of its own.
 */

#include "base/assert.h"
#include "base/seedbug.h"
#include "model/internal.h"
#include <string.h>

int64_t snib__number_value(const struct snib__record *r, enum snib__family family)
{
        switch (family) {
        case SNIB__FAMILY_SEMAPHORE:
                return r->exists ? r->value : -1;
        case SNIB__FAMILY_PERMITS:
                return r->exists ? r->value - (int64_t)r->held : -1;
        case SNIB__FAMILY_LATCH:
                return r->value;
        case SNIB__FAMILY_REGISTER:
                return r->version;
        default:
                return -1;
        }
}

/* Of these the ids are remembered. */
static bool counts(const struct snib__op *op)
{
        return snib__verb_changes(op->verb) || (op->verb == SNIB__RELEASE && op->permits);
}

/* The memory of a request, NULL. */
static const struct snib__done *find(const struct snib__record *r, const struct snib__id *id)
{
        for (size_t i = 0; i < r->dones; i++)
                if (snib__id_equal(&r->done[i].id, id))
                        return &r->done[i];
        return NULL;
}

bool snib__number_knows(const struct snib__record *r, const struct snib__id *id)
{
        return find(r, id) != NULL;
}

bool snib__number_recall(struct snib__step *s, struct snib__reply *reply)
{
        const struct snib__done *d = counts(s->op) ? find(s->r, &s->op->id) : NULL;

        if (!d || (SNIB__BUG(latch_counts_twice) && snib__family_of(s->op->kind) == SNIB__FAMILY_LATCH))
                return false;
        reply->applied = d->applied;
        reply->value = d->value;
        reply->status = s->op->verb != SNIB__RELEASE ? SNIB__DONE : d->applied ? SNIB__RELEASED : SNIB__GONE;
        return true;
}

void snib__number_remember(struct snib__step *s, const struct snib__reply *reply)
{
        struct snib__record *r = s->r;
        size_t most = r->dones_room < SNIB__DONES_MAX ? r->dones_room : SNIB__DONES_MAX;

        snib__assert(most > 0);
        if (r->dones >= most) {
                memmove(&r->done[0], &r->done[1], (r->dones - 1) * sizeof(r->done[0]));
                r->dones--;
        }

        struct snib__done *d = &r->done[r->dones++];

        memset(d, 0, sizeof(*d));
        d->id = s->op->id;
        d->expires_ms = snib__later(s->now.lease_ms, SNIB__DONE_MS);
        d->value = reply->value;
        d->applied = reply->applied;
        s->change->dones = true;
}

/* It does not exist from here on. */
static void vanish(struct snib__step *s)
{
        struct snib__record *r = s->r;

        (void)snib__seat_leave(s, snib__seat_any, r->family == SNIB__FAMILY_PERMITS ? SNIB__EVICTED : SNIB__FORGOTTEN);
        r->exists = false;
        r->value = r->version = r->expires_ms = 0;
        r->data = NULL;
        r->data_length = 0;
}

void snib__number_sweep(struct snib__step *s)
{
        struct snib__record *r = s->r;
        size_t kept = 0;

        for (size_t i = 0; i < r->dones; i++) {
                if (r->done[i].expires_ms <= s->now.lease_ms)
                        continue;
                if (kept != i)
                        r->done[kept] = r->done[i];
                kept++;
        }
        s->change->dones |= kept != r->dones;
        r->dones = kept;
        if (r->family == SNIB__FAMILY_SEMAPHORE && r->exists && r->expires_ms <= s->now.lease_ms)
                vanish(s);
}

/* The least value that a family can have. */
static int64_t least(enum snib__family family)
{
        return family == SNIB__FAMILY_SEMAPHORE ? -SNIB__NUMBER_MAX : 0;
}

/* What was not there before begins to be. */
static void begin(struct snib__record *r)
{
        if (!r->exists)
                r->expires_ms = INT64_MAX;
        r->exists = true;
}

static bool set_number(struct snib__step *s)
{
        struct snib__record *r = s->r;
        const struct snib__op *op = s->op;

        if (r->exists)
                return false;
        begin(r);
        r->value = op->n;
        if (snib__family_of(op->kind) == SNIB__FAMILY_SEMAPHORE && op->ttl_ms > 0)
                r->expires_ms = snib__later(s->now.lease_ms, op->ttl_ms);
        return true;
}

static bool resize(struct snib__step *s)
{
        begin(s->r);
        s->r->value = s->op->n;
        return true;
}

static bool add(struct snib__step *s)
{
        struct snib__record *r = s->r;
        const struct snib__op *op = s->op;

        if (snib__family_of(op->kind) == SNIB__FAMILY_LATCH) {
                if (!r->exists)
                        return false;
                r->value = r->value + op->n > 0 ? r->value + op->n : 0;
                if (r->value == 0)
                        vanish(s);
                return true;
        }
        if (!r->exists && op->if_exists)
                return false;
        begin(r);
        r->value += op->n;
        return true;
}

/* Whether the register has the version that is expected. */
static bool expected(const struct snib__step *s)
{
        return s->op->expected < 0 || s->op->expected == s->r->version || SNIB__BUG(register_ignores_version);
}

static bool write_value(struct snib__step *s)
{
        struct snib__record *r = s->r;

        if (!expected(s))
                return false;
        r->token = snib__token_next(r->token, s->now.wall_us);
        r->version = r->token;
        r->exists = true;
        r->data = s->op->data;
        r->data_length = s->op->data_length;
        return true;
}

static bool delete_all(struct snib__step *s)
{
        if (!s->r->exists || (snib__family_of(s->op->kind) == SNIB__FAMILY_REGISTER && !expected(s)))
                return false;
        vanish(s);
        if (SNIB__BUG(register_version_reused) && snib__family_of(s->op->kind) == SNIB__FAMILY_REGISTER)
                s->r->token = 0;
        return true;
}

/* Whether the number would stay in its range. */
static bool fits(const struct snib__record *r, const struct snib__op *op)
{
        enum snib__family family = snib__family_of(op->kind);
        int64_t n = op->n;

        if (n < -SNIB__NUMBER_MAX || n > SNIB__NUMBER_MAX)
                return false;
        if (op->verb == SNIB__SET)
                return n >= (family == SNIB__FAMILY_LATCH);
        if (op->verb == SNIB__RESIZE)
                return n >= 0;
        if (op->verb != SNIB__ADD || (op->if_exists && !r->exists))
                return true;
        if (family == SNIB__FAMILY_LATCH)
                return n < 0;
        return r->value + n >= least(family) && r->value + n <= SNIB__NUMBER_MAX;
}

enum snib__status snib__number_change(struct snib__step *s, struct snib__reply *reply)
{
        struct snib__record *r = s->r;
        enum snib__family family = snib__family_of(s->op->kind);
        int64_t drained = r->value > 0 ? r->value : 0;

        if (!fits(r, s->op))
                return snib__record_refuse(reply, SNIB_ELIMIT,
                                           "the number would be out of range; permits and counts are a 32 bit integer");
        switch (s->op->verb) {
        case SNIB__SET:
                reply->applied = set_number(s);
                break;
        case SNIB__RESIZE:
                reply->applied = resize(s);
                break;
        case SNIB__ADD:
                reply->applied = add(s);
                break;
        case SNIB__DRAIN:
                reply->applied = true;
                r->value -= drained;
                break;
        case SNIB__WRITE:
                reply->applied = write_value(s);
                break;
        default:
                reply->applied = delete_all(s);
        }
        reply->value = s->op->verb == SNIB__DRAIN ? drained : snib__number_value(r, family);
        snib__number_remember(s, reply);
        return SNIB__DONE;
}
