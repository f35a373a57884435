/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The meaning of every request about one object: model/record.h says what it promises. Not a store
 * and not a clock: the caller loads the record, says what time it is, and stores what is different
 * afterwards. Pure: no I/O, no allocation, no state of its own, so any thread may call it on a
 * record of its own.
 *
 * Order of every call: end what is over (sweep), do what is asked, hand over to those who may sit
 * now, tell observers. Requests that end nothing come after the hand-over: an ACQUIRE that is
 * refused, so that the newcomer finds the place that became free, and RENEW and OBSERVE, so that
 * their answer is about the holder there is now.
 *
 * Seats are in seats.c, the queue in queue.c, numbers and values in number.c, what a record must be
 * in check.c.
 */

#include "base/assert.h"
#include "base/seedbug.h"
#include "model/internal.h"
#include <string.h>

bool snib__record_vacant(const struct snib__record *r)
{
        return r->held == 0 && r->queued == 0 && !r->exists;
}

bool snib__record_idle(const struct snib__record *record)
{
        return snib__record_vacant(record) && record->dones == 0;
}

int64_t snib__record_state(const struct snib__record *r, int kind)
{
        const struct snib__holder *writer = snib__seat_writer(r);

        switch (snib__family_of(kind)) {
        case SNIB__FAMILY_LOCK:
                return r->held ? r->holder[0].token : 0;
        case SNIB__FAMILY_RW:
                return writer ? writer->token : 0;
        case SNIB__FAMILY_LATCH:
                return r->value > 0;
        case SNIB__FAMILY_REGISTER:
                return r->version;
        default:
                return 0;
        }
}

enum snib__status snib__record_refuse(struct snib__reply *reply, int error, const char *text)
{
        reply->error = error;
        reply->error_text = text;
        return SNIB__FAILED;
}

/* Whoever sits already says that it is there. */
static bool confirm(struct snib__step *s)
{
        if (SNIB__BUG(semaphore_repeat_counts) && snib__family_of(s->op->kind) == SNIB__FAMILY_SEMAPHORE)
                return false;
        return snib__seat_extend(s, snib__seat_own) > 0;
}

/* Sits down if it may and nobody is before it. A READ under its own writer waits for nobody. */
static bool sit(struct snib__step *s)
{
        const struct snib__op *op = s->op;
        struct snib__waiter wish = snib__queue_wish(s);
        size_t place = snib__queue_find(s->r, &op->id);
        bool under = op->kind == SNIB_KIND_READ && snib__seat_writer(s->r);

        if (!snib__seat_may(s->r, op->kind, wish.n, &op->under))
                return false;
        if (!under && snib__queue_ahead(s->r, place) && !(SNIB__BUG(writer_starved) && op->kind == SNIB_KIND_READ))
                return false;
        if (place < s->r->queued)
                snib__queue_leave(s, place);
        snib__seat_take(s, &wish, true);
        return true;
}

/* Which token op brings along is not looked at, only whether: a client that finds another one in
 * the reply knows that its hold was not continuous. */
static enum snib__status acquire(struct snib__step *s)
{
        size_t place = snib__queue_find(s->r, &s->op->id);
        bool stands = place < s->r->queued && !SNIB__BUG(repeated_acquire_counted_twice);

        if (snib__family_of(s->op->kind) == SNIB__FAMILY_SEMAPHORE && snib__number_knows(s->r, &s->op->id))
                return SNIB__BUSY; /* undone before it arrived */
        if (confirm(s))
                return SNIB__GRANTED;
        if (s->op->token > 0)
                return SNIB__GONE;
        if (sit(s))
                return SNIB__GRANTED;
        if (place < s->r->queued)
                snib__queue_refresh(s, place);
        snib__queue_hand_over(s);
        /* Those before it are in; it may be among them, or come right after them. */
        if (confirm(s) || sit(s))
                return SNIB__GRANTED;
        if (!stands && s->op->enqueue)
                snib__queue_join(s);
        return SNIB__BUSY;
}

static enum snib__status observe(struct snib__step *s)
{
        size_t place;

        snib__queue_hand_over(s);
        place = snib__queue_find(s->r, &s->op->id);
        if (snib__record_state(s->r, s->op->kind) != s->op->token) {
                if (place < s->r->queued)
                        snib__queue_leave(s, place);
                return SNIB__INFO;
        }
        if (place < s->r->queued)
                snib__queue_refresh(s, place);
        else if (s->op->enqueue)
                snib__queue_join(s);
        return SNIB__BUSY;
}

/* Whether all of op->permits are out, each named once. */
static bool all_out(const struct snib__step *s)
{
        size_t found = 0;

        for (size_t i = 0; i < s->r->held; i++)
                found += snib__seat_named(s, &s->r->holder[i]);
        return found == s->op->permit_count;
}

/* That they were not all out is remembered too: a repetition does not end what began in between. */
static enum snib__status release_permits(struct snib__step *s, struct snib__reply *reply)
{
        reply->applied = all_out(s);
        if (SNIB__BUG(permit_released_twice) && !reply->applied) {
                s->r->value++;
                reply->applied = true;
        }
        /* Their owners learn it unless they are the ones who ask. */
        if (reply->applied)
                (void)snib__seat_leave(s, snib__seat_named, SNIB__EVICTED);
        reply->value = snib__number_value(s->r, SNIB__FAMILY_PERMITS);
        snib__number_remember(s, reply);
        return reply->applied ? SNIB__RELEASED : SNIB__GONE;
}

static bool is_writer(const struct snib__step *s, const struct snib__holder *h)
{
        (void)s;
        return h->kind == SNIB_KIND_WRITE;
}

static enum snib__status leave(struct snib__step *s)
{
        size_t place = snib__queue_find(s->r, &s->op->id);
        const struct snib__holder *own = snib__seat_find(s->r, &s->op->id);

        if (SNIB__BUG(release_without_owner_check) || (SNIB__BUG(downgrade_with_gap) && own && is_writer(s, own)))
                return snib__seat_leave(s, snib__seat_any, SNIB__LEFT) ? SNIB__RELEASED : SNIB__GONE;
        if (SNIB__BUG(reader_release_frees_writer) && own && own->kind == SNIB_KIND_READ)
                (void)snib__seat_leave(s, is_writer, SNIB__LEFT);
        if (snib__seat_leave(s, snib__seat_own, SNIB__LEFT))
                return SNIB__RELEASED;
        if (place == s->r->queued)
                return SNIB__GONE;
        snib__queue_leave(s, place);
        return SNIB__RELEASED;
}

/* An undone acquire of a semaphore is remembered: a copy of it that arrives later would take what
 * nobody gives back. A late one of another kind ends with its lease. */
static enum snib__status release(struct snib__step *s, struct snib__reply *reply)
{
        if (s->op->permits)
                return release_permits(s, reply);
        if (snib__family_of(s->op->kind) == SNIB__FAMILY_SEMAPHORE && !snib__number_knows(s->r, &s->op->id))
                snib__number_remember(s, reply);
        return leave(s);
}

static enum snib__status renew(struct snib__step *s)
{
        bool (*own)(const struct snib__step *, const struct snib__holder *) =
            s->op->leave ? snib__seat_left : snib__seat_own;
        bool permits = snib__family_of(s->op->kind) == SNIB__FAMILY_PERMITS;
        int64_t want = permits && s->op->n > 0 ? s->op->n : 1, have = 0;

        snib__queue_hand_over(s);
        if (s->op->permits) {
                if (!all_out(s))
                        return SNIB__GONE;
                (void)snib__seat_extend(s, snib__seat_named);
                return SNIB__RENEWED;
        }
        if (SNIB__BUG(renewal_without_owner_check))
                return snib__seat_extend(s, snib__seat_any) ? SNIB__RENEWED : SNIB__GONE;
        for (size_t i = 0; i < s->r->held; i++)
                have += own(s, &s->r->holder[i]);
        if (have < want)
                return SNIB__GONE;
        (void)snib__seat_extend(s, own);
        if (s->op->leave)
                snib__seat_give_up(s);
        return SNIB__RENEWED;
}

static int kind_there(const struct snib__record *r, int asked)
{
        switch (r->family) {
        case SNIB__FAMILY_LOCK:
                return r->held ? r->holder[0].kind : r->queued ? r->queue[0].kind : asked;
        case SNIB__FAMILY_RW:
                if (r->held)
                        return snib__seat_writer(r) ? SNIB_KIND_WRITE : SNIB_KIND_READ;
                return r->queued ? r->queue[0].kind : asked;
        case SNIB__FAMILY_NONE:
                return asked;
        default:
                return snib__family_kind(r->family);
        }
}

/* Time until a lease that is not over ends. */
static int64_t left(int64_t expires_ms, struct snib__clock now)
{
        if (now.lease_ms < 0 && expires_ms > INT64_MAX + now.lease_ms)
                return INT64_MAX;
        return expires_ms - now.lease_ms;
}

/* Until the first permit that is out expires, -1 if none does. */
static int64_t first_left(const struct snib__record *r, struct snib__clock now)
{
        int64_t first = INT64_MAX;

        for (size_t i = 0; i < r->held; i++)
                if (r->holder[i].seat.expires_ms < first)
                        first = r->holder[i].seat.expires_ms;
        return first == INT64_MAX ? -1 : left(first, now);
}

/* Whose hold the reply is about: the own one if it was confirmed; else the writer, else the
 * longest. */
static const struct snib__holder *shown(const struct snib__step *s, const struct snib__reply *reply)
{
        const struct snib__record *r = s->r;
        bool own = reply->status == SNIB__GRANTED || reply->status == SNIB__RENEWED;
        const struct snib__holder *h = own ? snib__seat_find(r, &s->op->id) : NULL;

        if (r->held == 0 || r->family == SNIB__FAMILY_SEMAPHORE)
                return NULL;
        if (!h)
                h = snib__seat_writer(r);
        return h ? h : &r->holder[0];
}

/* Whether there is something; after GONE whether it is somebody who excludes the one that is
 * gone. */
static bool there(const struct snib__step *s, enum snib__family family, enum snib__status status)
{
        const struct snib__record *r = s->r;

        if (status == SNIB__GONE && (snib__family_of(s->op->kind) == SNIB__FAMILY_PERMITS ||
                                     snib__family_of(s->op->kind) == SNIB__FAMILY_SEMAPHORE))
                return false;
        if (status == SNIB__GONE && s->op->kind == SNIB_KIND_READ)
                return snib__seat_writer(r) != NULL;
        return family == SNIB__FAMILY_LOCK || family == SNIB__FAMILY_RW ? r->held > 0 : r->exists;
}

/* What there is now. */
static void describe(const struct snib__step *s, struct snib__reply *reply)
{
        const struct snib__record *r = s->r;
        enum snib__family family = r->family != SNIB__FAMILY_NONE ? r->family : snib__family_of(s->op->kind);
        const struct snib__holder *h = shown(s, reply);
        bool seats = family == SNIB__FAMILY_LOCK || family == SNIB__FAMILY_RW || family == SNIB__FAMILY_PERMITS;

        reply->held = there(s, family, reply->status);
        reply->holders = seats ? (int64_t)r->held : -1;
        reply->limit = family == SNIB__FAMILY_PERMITS && r->exists ? r->value : -1;
        reply->value = snib__number_value(r, family);
        if (reply->status == SNIB__INFO) {
                reply->data = r->data;
                reply->data_length = r->data_length;
        }
        reply->token = h ? h->token : r->version;
        if (s->op->verb == SNIB__QUERY && r->queued && r->queue[0].kind == SNIB_KIND_FAIR) {
                reply->next = r->queue[0].seat.id;
                reply->next_left_ms = left(r->queue[0].seat.expires_ms, s->now);
        }
        if (s->op->verb == SNIB__OBSERVE)
                reply->token = snib__record_state(r, s->op->kind);
        if (!h)
                return;
        reply->holder = h->seat;
        reply->left_ms = family == SNIB__FAMILY_PERMITS ? first_left(r, s->now) : left(h->seat.expires_ms, s->now);
}

/* Ends what is held in the way that is meant: the write side takes the reads of its owner along. */
static enum snib__status force(struct snib__step *s, struct snib__reply *reply)
{
        const struct snib__record *r = s->r;
        bool writer = snib__seat_writer(r) != NULL;
        int kind = s->op->kind;

        reply->status = SNIB__INFO;
        if (snib__id_set(&s->op->under)) {
                size_t place = snib__queue_find(r, &s->op->under);

                reply->held = place < r->queued;
                if (reply->held)
                        snib__queue_leave(s, place);
                return SNIB__INFO;
        }
        if (r->held == 0 || r->family == SNIB__FAMILY_SEMAPHORE || (kind == SNIB_KIND_READ && writer) ||
            (kind == SNIB_KIND_WRITE && !writer))
                return SNIB__INFO;
        reply->kind = kind_there(r, kind);
        describe(s, reply);
        (void)snib__seat_leave(s, snib__seat_any, SNIB__EVICTED);
        return SNIB__INFO;
}

static enum snib__status execute(struct snib__step *s, struct snib__reply *reply)
{
        switch (s->op->verb) {
        case SNIB__ACQUIRE:
                return acquire(s);
        case SNIB__RELEASE:
                return release(s, reply);
        case SNIB__RENEW:
                return renew(s);
        case SNIB__QUERY:
                return SNIB__INFO;
        case SNIB__FORCE:
                return force(s, reply);
        case SNIB__OBSERVE:
                return observe(s);
        default:
                return snib__number_change(s, reply);
        }
}

/* Whether what there is, if anything, is of the kind that op is about. */
static bool agrees(const struct snib__record *r, const struct snib__op *op)
{
        return r->family == SNIB__FAMILY_NONE || op->kind == SNIB_KIND_ANY || r->family == snib__family_of(op->kind);
}

static void set_family(struct snib__record *r, int kind)
{
        if (snib__record_vacant(r))
                r->family = SNIB__FAMILY_NONE;
        else if (r->family == SNIB__FAMILY_NONE)
                r->family = snib__family_of(kind);
}

static void sweep(struct snib__step *s)
{
        snib__queue_sweep(s);
        snib__seat_sweep(s);
        snib__number_sweep(s);
        set_family(s->r, SNIB_KIND_ANY);
}

/* The last part of every call. */
static void settle(struct snib__step *s, const struct snib__record *before)
{
        const struct snib__record *r = s->r;

        snib__queue_hand_over(s);
        snib__queue_notify(s);
        set_family(s->r, s->op->kind);
        s->change->record = r->family != before->family || r->token != before->token || r->value != before->value ||
                            r->exists != before->exists || r->version != before->version ||
                            r->expires_ms != before->expires_ms;
}

static void clear(struct snib__change *change)
{
        change->record = change->holders = change->queue = change->dones = false;
        change->tells = 0;
}

/* Who asks stands behind all the unseen, if at all: it has come in this call. */
static void place_of(const struct snib__record *r, const struct snib__id *id, struct snib__reply *reply)
{
        size_t place = snib__queue_find(r, id);

        reply->waiters = (int64_t)(snib__queue_ahead(r, r->queued) + r->unseen);
        reply->position = 0;
        if (place < r->queued && !r->queue[place].observer)
                reply->position = (int64_t)(snib__queue_ahead(r, place) + r->unseen) + 1;
}

static void answer(const struct snib__step *s, struct snib__reply *reply)
{
        enum snib__verb verb = s->op->verb;

        /* FORCE told what there was; a release that succeeded is not about what others do now, and
         * a change has its own answer. */
        if (verb != SNIB__FORCE && reply->status != SNIB__RELEASED && reply->status != SNIB__DONE &&
            reply->status != SNIB__FAILED)
                describe(s, reply);
        if (verb == SNIB__QUERY && reply->status == SNIB__INFO)
                reply->kind = kind_there(s->r, s->op->kind);
        place_of(s->r, &s->op->id, reply);
}

void snib__record_apply(struct snib__record *record, const struct snib__op *op, struct snib__clock now,
                        struct snib__reply *ret_reply, struct snib__change *ret_change)
{
        const char *refusal = snib__kind_refusal(op->kind, op->verb, true);
        struct snib__record before = *record;
        struct snib__step s = {record, op, now, ret_change};

        snib__assert(snib__id_set(&op->id) || op->verb == SNIB__QUERY || op->verb == SNIB__FORCE);
        snib__assert(record->held <= record->held_room && record->queued <= record->queue_room);
        memset(ret_reply, 0, sizeof(*ret_reply));
        clear(ret_change);
        ret_reply->left_ms = ret_reply->holders = ret_reply->value = ret_reply->limit = -1;
        ret_reply->kind = op->kind;

        sweep(&s);
        if (snib__number_recall(&s, ret_reply))
                snib__assert(ret_reply->status != 0);
        else if (refusal)
                ret_reply->status = snib__record_refuse(ret_reply, SNIB_EUNSUPPORTED, refusal);
        else if (!agrees(record, op))
                ret_reply->status = snib__record_refuse(ret_reply, SNIB_EKIND, snib__family_in_use(record->family));
        else
                ret_reply->status = execute(&s, ret_reply);
        settle(&s, &before);
        answer(&s, ret_reply);
}

bool snib__record_bury(struct snib__record *record, const struct snib__id *id, struct snib__clock now,
                       struct snib__change *ret_change)
{
        const struct snib__op op = {.kind = SNIB_KIND_ANY, .id = *id};
        struct snib__record before = *record;
        struct snib__step s = {record, &op, now, ret_change};
        size_t place = snib__queue_find(record, id);
        bool stood = place < record->queued || snib__seat_find(record, id);

        clear(ret_change);
        if (place < record->queued)
                snib__queue_leave(&s, place);
        sweep(&s);
        snib__seat_bury(&s);
        settle(&s, &before);
        return stood;
}

static int64_t sooner(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

int64_t snib__record_due(const struct snib__record *record)
{
        const struct snib__record *r = record;
        int64_t due = r->family == SNIB__FAMILY_SEMAPHORE && r->exists ? r->expires_ms : INT64_MAX;

        for (size_t i = 0; i < r->held; i++)
                due = sooner(due, r->holder[i].seat.expires_ms);
        for (size_t i = 0; i < r->queued; i++)
                due = sooner(due, r->queue[i].seat.expires_ms);
        for (size_t i = 0; i < r->dones; i++)
                due = sooner(due, r->done[i].expires_ms);
        return due;
}
