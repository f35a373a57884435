/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who sits: the one question in which the kinds differ (snib__seat_may), taking a seat, keeping it,
 * leaving it. Not the queue. Pure; any thread may call it on a record of its own.
 *
 * A seat of a SEMAPHORE holds nothing once it is confirmed: it only remembers who took how many, so
 * that a repetition does not take again and an undo gives back. Such memories give way to new
 * seats, the oldest first.
 */

#include "base/assert.h"
#include "base/seedbug.h"
#include "model/internal.h"
#include <string.h>

int64_t snib__later(int64_t a, int64_t b)
{
        return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int64_t snib__token_next(int64_t previous, int64_t wall_us)
{
        int64_t next = previous < INT64_MAX ? previous + 1 : previous;

        return next > wall_us ? next : wall_us;
}

const struct snib__holder *snib__seat_find(const struct snib__record *r, const struct snib__id *id)
{
        for (size_t i = 0; i < r->held; i++)
                if (snib__id_equal(&r->holder[i].seat.id, id))
                        return &r->holder[i];
        return NULL;
}

const struct snib__holder *snib__seat_writer(const struct snib__record *r)
{
        for (size_t i = 0; i < r->held; i++)
                if (r->holder[i].kind == SNIB_KIND_WRITE)
                        return &r->holder[i];
        return NULL;
}

bool snib__seat_any(const struct snib__step *s, const struct snib__holder *h)
{
        (void)s, (void)h;
        return true;
}

bool snib__seat_own(const struct snib__step *s, const struct snib__holder *h)
{
        return snib__id_equal(&h->seat.id, &s->op->id);
}

bool snib__seat_named(const struct snib__step *s, const struct snib__holder *h)
{
        char id[33];

        if (snib__family_of(h->kind) != SNIB__FAMILY_PERMITS || !snib__permit_id(&h->seat.id, h->index, id))
                return false;
        for (size_t i = 0; i < s->op->permit_count; i++)
                if (memcmp(s->op->permits[i], id, sizeof(id)) == 0)
                        return true;
        return false;
}

/* Remembers only: see above. */
static bool memory(const struct snib__holder *h)
{
        return snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE && h->claimed;
}

static size_t memories(const struct snib__record *r)
{
        size_t n = 0;

        for (size_t i = 0; i < r->held; i++)
                n += memory(&r->holder[i]);
        return n;
}

static bool room(const struct snib__record *r, int64_t n)
{
        size_t most = r->held_room < SNIB__SEATS_MAX ? r->held_room : SNIB__SEATS_MAX;
        size_t taken = r->family == SNIB__FAMILY_SEMAPHORE ? r->held - memories(r) : r->held;

        return taken <= most && (uint64_t)n <= most - taken;
}

bool snib__seat_may(const struct snib__record *r, int kind, int64_t n, const struct snib__id *under)
{
        const struct snib__holder *writer = snib__seat_writer(r);

        switch (snib__family_of(kind)) {
        case SNIB__FAMILY_LOCK:
                return r->held == 0 && room(r, 1);
        case SNIB__FAMILY_RW:
                if (kind == SNIB_KIND_READ && writer)
                        return under && snib__id_equal(under, &writer->seat.id) && room(r, 1);
                return (kind == SNIB_KIND_READ || r->held == 0) && room(r, 1);
        case SNIB__FAMILY_SEMAPHORE:
                return r->value >= n && r->exists && room(r, 1);
        case SNIB__FAMILY_PERMITS:
                if (SNIB__BUG(permits_partly_granted))
                        n = 1;
                return r->value - (int64_t)r->held >= n && room(r, n);
        case SNIB__FAMILY_LATCH:
                return r->value == 0;
        default:
                return false; /* nobody sits at a register */
        }
}

/* When a seat taken or confirmed now is over. A lease that is not positive is none the API lets
 * through, but for the 0 of permits; it counts as the shortest there is. */
static int64_t seat_end(struct snib__clock now, int kind, int64_t lease_ms, bool claimed)
{
        if (snib__family_of(kind) == SNIB__FAMILY_SEMAPHORE)
                lease_ms = SNIB__DONE_MS;
        else if (snib__family_of(kind) == SNIB__FAMILY_PERMITS && lease_ms == 0)
                lease_ms = INT64_MAX;
        if (!claimed && lease_ms > SNIB__CLAIM_MS)
                lease_ms = SNIB__CLAIM_MS;
        if (lease_ms == INT64_MAX)
                return INT64_MAX;
        return snib__later(now.lease_ms, lease_ms > 0 ? lease_ms : 1);
}

/* Forgets the oldest memory if there are as many as may be, or no room beside them. */
static void make_room(struct snib__step *s)
{
        struct snib__record *r = s->r;
        size_t i = 0;

        if (memories(r) < SNIB__DONES_MAX && r->held < r->held_room)
                return;
        while (i < r->held && !memory(&r->holder[i]))
                i++;
        if (i == r->held)
                return;
        memmove(&r->holder[i], &r->holder[i + 1], (r->held - i - 1) * sizeof(r->holder[0]));
        r->held--;
}

int64_t snib__seat_take(struct snib__step *s, const struct snib__waiter *w, bool claimed)
{
        struct snib__record *r = s->r;
        int64_t n = w->n > 0 ? w->n : 1;
        int64_t seats = snib__family_of(w->kind) == SNIB__FAMILY_PERMITS ? n : 1;
        int64_t token = snib__family_of(w->kind) == SNIB__FAMILY_SEMAPHORE ? 0 : r->token;

        if (snib__family_of(w->kind) == SNIB__FAMILY_LATCH)
                return 0;
        if (snib__family_of(w->kind) == SNIB__FAMILY_SEMAPHORE) {
                make_room(s);
                r->value -= n;
        } else if (!SNIB__BUG(token_not_raised) || r->token == 0) {
                token = snib__token_next(r->token, s->now.wall_us);
                r->token =
                    SNIB__BUG(cohort_tokens_not_reserved) ? token : snib__later(token, snib__kind(w->kind)->tokens - 1);
        }
        if (SNIB__BUG(permits_partly_granted) && seats > r->value - (int64_t)r->held &&
            snib__family_of(w->kind) == SNIB__FAMILY_PERMITS)
                seats = r->value - (int64_t)r->held;
        for (int64_t i = 0; i < seats; i++) {
                snib__assert(r->held < r->held_room);

                struct snib__holder *h = &r->holder[r->held++];

                memset(h, 0, sizeof(*h));
                h->seat.id = w->seat.id;
                h->seat.who = w->seat.who;
                h->seat.since_ms = s->now.wall_us / 1000;
                h->seat.expires_ms = seat_end(s->now, w->kind, w->lease_ms, claimed);
                h->kind = w->kind;
                h->token = token;
                h->lease_ms = w->lease_ms;
                h->n = snib__family_of(w->kind) == SNIB__FAMILY_SEMAPHORE ? n : 1;
                h->index = i;
                h->claimed = claimed;
        }
        s->change->holders = true;
        return token;
}

/* A memory is not kept longer by a repetition: who asks for a minute does not ask on. */
static void extend(struct snib__step *s, struct snib__holder *h)
{
        int64_t expires_ms = seat_end(s->now, h->kind, s->op->lease_ms, true);

        if (memory(h) || (h->claimed && h->seat.expires_ms == expires_ms && h->lease_ms == s->op->lease_ms))
                return;
        h->seat.expires_ms = expires_ms;
        h->lease_ms = s->op->lease_ms;
        h->claimed = true;
        s->change->holders = true;
}

size_t snib__seat_extend(struct snib__step *s, bool (*chosen)(const struct snib__step *, const struct snib__holder *))
{
        size_t n = 0;

        for (size_t i = 0; i < s->r->held; i++)
                if (chosen(s, &s->r->holder[i])) {
                        extend(s, &s->r->holder[i]);
                        n++;
                }
        return n;
}

bool snib__seat_left(const struct snib__step *s, const struct snib__holder *h)
{
        return snib__seat_own(s, h) || snib__id_is_left(&h->seat.id, &s->op->id);
}

void snib__seat_give_up(struct snib__step *s)
{
        for (size_t i = 0; i < s->r->held; i++)
                if (snib__seat_own(s, &s->r->holder[i])) {
                        snib__id_leave(&s->r->holder[i].seat.id);
                        s->change->holders = true;
                }
}

static void give_back(struct snib__record *r, int64_t n)
{
        r->value = r->value + n < SNIB__NUMBER_MAX ? r->value + n : SNIB__NUMBER_MAX;
}

size_t snib__seat_leave(struct snib__step *s, bool (*chosen)(const struct snib__step *, const struct snib__holder *),
                        enum snib__leaving how)
{
        struct snib__record *r = s->r;
        size_t kept = 0, was = r->held;

        for (size_t i = 0; i < was; i++) {
                struct snib__holder *h = &r->holder[i];

                if (!chosen(s, h)) {
                        if (kept != i)
                                r->holder[kept] = *h;
                        kept++;
                        continue;
                }
                if (how == SNIB__EVICTED)
                        snib__queue_tell(s, (struct snib__tell){.kind = SNIB__TELL_ENDED, .id = h->seat.id});
                if (snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE && how != SNIB__FORGOTTEN &&
                    !SNIB__BUG(semaphore_undo_lost))
                        give_back(r, h->n);
        }
        r->held = kept;
        s->change->holders |= kept != was;
        return was - kept;
}

static bool memory_over(const struct snib__step *s, const struct snib__holder *h)
{
        return memory(h) && h->seat.expires_ms <= s->now.lease_ms;
}

static bool over(const struct snib__step *s, const struct snib__holder *h)
{
        return h->seat.expires_ms <= s->now.lease_ms;
}

void snib__seat_sweep(struct snib__step *s)
{
        (void)snib__seat_leave(s, memory_over, SNIB__FORGOTTEN);
        (void)snib__seat_leave(s, over, SNIB__EVICTED);
}

static bool own_memory(const struct snib__step *s, const struct snib__holder *h)
{
        return memory(h) && snib__seat_own(s, h);
}

void snib__seat_bury(struct snib__step *s)
{
        (void)snib__seat_leave(s, own_memory, SNIB__FORGOTTEN);
        (void)snib__seat_leave(s, snib__seat_own, SNIB__EVICTED);
}
