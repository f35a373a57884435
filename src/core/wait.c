/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hold before it is held: asking, waiting, giving up. Not the sleeping of a thread, which is the
 * runtime's.
 *
 * At most one question is under way at a time. A waiter asks again when it is told of a change,
 * when its watch has taken effect (what happened before may have been missed), when the link is
 * back, and at the latest after the holder's lease or SNIB__POLL_MAX. The first waiter of a name,
 * by arrival, takes a change; what it cannot use, because it leaves empty-handed or is refused, or
 * leaves for others, because readers and permits are many, is passed on to the next, so that no
 * wake-up dies with one waiter.
 */

#include "core/internal.h"

/* Whether a refused one has a place in the engine's queue. */
static bool queues(const struct snib__core *c, const struct snib__hold *h)
{
        return !snib__kind(h->kind)->polls && c->config.queues & SNIB__KIND_BIT(h->kind);
}

/* An ACQUIRE of it may have taken something, or still take it. A request that was repeated and
 * refused can arrive after all: a lease ends that, but permits of a semaphore would be gone for
 * good. */
static bool may_have_taken(const struct snib__hold *h)
{
        if (h->observe || snib__family_of(h->kind) == SNIB__FAMILY_LATCH)
                return false;
        if ((snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE && SNIB__BUG(semaphore_not_undone)) ||
            (snib__kind(h->kind)->polls && SNIB__BUG(spin_doubt_not_released)))
                return false;
        return h->request.in_doubt || (h->request.stray && snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE);
}

static void ask(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        h->again = h->known.watch.asked = false;
        if (queues(c, h))
                snib__list_each (it, &h->calls)
                        if (!snib__container(it, struct snib__call, link)->once)
                                h->known.queued = true;
        snib__hold_set(c, h, SNIB__ASKING);
        snib__hold_submit(c, h, SNIB__ACQUIRE, now);
}

void snib__wait_poke(struct snib__core *c, struct snib__hold *h, bool woken, snib__ns now)
{
        h->known.woken |= woken;
        h->known.silent = false;
        if (h->state == SNIB__ASKING)
                h->again = true;
        else
                ask(c, h, now);
}

static struct snib__call *first_call(const struct snib__hold *h)
{
        return snib__container(h->calls.next, struct snib__call, link);
}

/* Who waits silently hears what the one has heard who asks for it. False: nothing yet. */
static bool overhear(struct snib__core *c, const struct snib__hold *h, struct snib__call *call)
{
        const struct snib__hold *speaker = snib__cohort_speaker(c, h);

        if (speaker && !snib__list_empty(&speaker->calls) && first_call(speaker)->holder.status == SNIB__BUSY) {
                call->holder = first_call(speaker)->holder;
                call->holder.position = 0; /* not its own */
        }
        return speaker && speaker->request.fault == 0 && call->holder.status == SNIB__BUSY;
}

/* It has to wait, and knows it. */
static void hear_to_wait(struct snib__hold *h, snib__ns now)
{
        snib__list_each (it, &h->calls) {
                struct snib__call *call = snib__container(it, struct snib__call, link);

                if (!atomic_load_explicit(&call->heard, memory_order_relaxed))
                        atomic_store_explicit(&call->heard, now, memory_order_release);
        }
}

void snib__wait_begin(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        h->known.silent = snib__cohort_covers(c, h);
        snib__tree_add(&c->by_wait, &h->by_wait);
        if (h->known.silent) {
                overhear(c, h, first_call(h));
                hear_to_wait(h, now);
                snib__hold_set(c, h, SNIB__WAITING);
        } else {
                snib__wait_poke(c, h, false, now);
        }
}

void snib__wait_joined(struct snib__core *c, struct snib__hold *h, const struct snib__call *call, snib__ns now)
{
        if (h->known.silent && !call->once)
                return;
        if (h->state == SNIB__WAITING)
                snib__wait_poke(c, h, false, now); /* the newcomer deserves an honest try */
        /* The question under way may ask for no place in the queue, and this one has to wait. */
        else if (queues(c, h) && !call->once && !h->known.queued)
                h->again = true;
}

/* The server may have forgotten by now whether it executed the request: asking again could take
 * twice. */
static void forgotten(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        static const struct snib__fault unknown = {
            SNIB_EUNKNOWN, 0, "the engine was away for too long to say whether it gave out the permits"};

        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, SNIB_EUNKNOWN, &unknown);
        snib__wait_leave(c, h, now);
}

void snib__wait_wake(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        c->polls++;
        if (snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE && snib__request_too_old(&h->request, now))
                forgotten(c, h, now);
        else
                ask(c, h, now);
}

static void watch(struct snib__core *c, struct snib__hold *h)
{
        if (!c->config.watches || h->known.watch.on || snib__kind(h->kind)->polls)
                return;
        h->known.watch.on = h->known.watch.begin = true;
        snib__hold_dirty(c, h);
}

static void unwatch(struct snib__core *c, struct snib__hold *h)
{
        if (!h->known.watch.on)
                return;
        h->known.watch.on = false;
        if (h->known.watch.begin)
                h->known.watch.begin = false;
        else
                h->known.watch.end = true;
        snib__hold_dirty(c, h);
}

/* Whether an answer to this one leaves anything for others. */
static bool leaves_room(const struct snib__hold *h, enum snib__status answer)
{
        if (answer == SNIB__GONE || snib__family_of(h->kind) == SNIB__FAMILY_SEMAPHORE ||
            snib__family_of(h->kind) == SNIB__FAMILY_PERMITS)
                return true;
        return h->kind == (answer == SNIB__GRANTED ? SNIB_KIND_READ : SNIB_KIND_WRITE);
}

/* Whether there may be room for `next`: after a grant for its like, after a refusal for who wants
 * less. */
static bool may_follow(const struct snib__hold *h, const struct snib__hold *next, enum snib__status answer)
{
        if (next->observe)
                return false;
        if (answer == SNIB__GRANTED)
                return next->kind == h->kind;
        if (answer == SNIB__BUSY)
                return h->kind == SNIB_KIND_WRITE ? next->kind == SNIB_KIND_READ : next->n < h->n;
        return true; /* it left without having used it */
}

/* Who is to have a change that this one took: the next in line that could use what is left of it.
 * NULL: nobody, or it took none. */
static struct snib__hold *heir(struct snib__hold *h, enum snib__status answer)
{
        struct snib__hold *next = h->known.woken && leaves_room(h, answer) ? snib__wait_next(h) : NULL;

        h->known.woken = false;
        while (next && (next->known.silent || !may_follow(h, next, answer)))
                next = snib__wait_next(next);
        return SNIB__BUG(wake_up_not_passed_on) ? NULL : next;
}

static void pass_on(struct snib__core *c, struct snib__hold *next, snib__ns now)
{
        if (next)
                snib__wait_poke(c, next, true, now);
}

void snib__wait_done(struct snib__core *c, struct snib__hold *h, enum snib__status answer, snib__ns now)
{
        bool woken = h->known.woken && answer == SNIB__GONE;
        struct snib__hold *next = heir(h, answer);

        snib__tree_remove(&c->by_wait, &h->by_wait);
        snib__cohort_left(c, h, woken, now);
        unwatch(c, h);
        pass_on(c, next, now);
}

/* Its question has not left yet. */
static void unsay(struct snib__core *c, struct snib__hold *h)
{
        snib__hold_forget(c, h);
        if (h->request.attempt == 1)
                h->known.queued = false;
}

void snib__wait_leave(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        bool asking = h->state == SNIB__ASKING && h->request.outstanding;

        if (h->request.submit) {
                unsay(c, h);
                asking = false;
        }
        snib__wait_done(c, h, SNIB__GONE, now);
        snib__tree_remove(&c->by_owner, &h->by_owner);
        if (asking)
                snib__hold_set(c, h, SNIB__CANCELLING);
        else if ((h->known.queued || may_have_taken(h)) && !SNIB__BUG(cancel_leaves_waiter) &&
                 !(SNIB__BUG(cohort_identity_forgotten) && h->given_at))
                snib__release_begin(c, h, now);
        else
                snib__hold_finish(c, h);
}

void snib__cancelling_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        bool certainly_nothing = r->status == SNIB__BUSY || (r->status == SNIB__FAILED && r->error != SNIB_EUNKNOWN);

        h->request.in_doubt |= !certainly_nothing;
        if (!h->known.queued && !may_have_taken(h))
                snib__hold_finish(c, h);
        else if (SNIB__BUG(cancel_leaves_waiter))
                snib__hold_finish(c, h);
        else
                snib__release_begin(c, h, now);
}

/* The release goes on the way that the acquire went. Where that broke, the end of the lease ends
 * what it may have taken. */
void snib__cancelling_close(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        h->request.in_doubt = true;
        if (!h->known.queued && !may_have_taken(h)) {
                snib__hold_finish(c, h);
        } else {
                snib__release_begin(c, h, now);
                snib__hold_submit(c, h, SNIB__RELEASE, now);
        }
}

/* A grant that came after its lease: it was executed, and is given back. */
static const struct snib__reply too_late = {.status = SNIB__FAILED,
                                            .error = SNIB_ENOTREADY,
                                            .error_text = "the engine answers more slowly than the lease lasts"};

/* What an acquire that ends now for want of an engine is told: "certainly not executed" only if
 * that is so. */
static int blame_code(struct snib__hold *h)
{
        if (h->request.in_doubt && (h->request.fault == SNIB_EUNREACHABLE || h->request.fault == SNIB_ENOTREADY))
                h->request.fault = SNIB_EUNKNOWN;
        return h->request.fault;
}

/* A connection that was cut while it was idle is noticed by the next request only. That must not be
 * the answer to a single try: the id makes it safe to ask again, once, as soon as the link is
 * back. */
static bool try_again(struct snib__core *c, const struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__ns until =
            snib__after(h->request.sent_at, c->config.op_timeout); /* both together take no longer than one may */

        if (c->downs > 1 || (h->request.fault != SNIB_EUNKNOWN && h->request.fault != SNIB_EUNREACHABLE))
                return false;
        if (call->second)
                return !c->link_up; /* not back yet: its timer runs */
        if (until <= now)
                return false;
        call->second = true;
        call->deadline = until;
        snib__timer_set(c, &call->timer, until);
        return true;
}

/* Answers those who wanted one try, as it came out. */
static void answer_once(struct snib__core *c, struct snib__hold *h, int result, snib__ns now)
{
        for (struct snib__list *it = h->calls.next, *next; it != &h->calls; it = next) {
                struct snib__call *call = snib__container(it, struct snib__call, link);

                next = it->next;
                if (!call->once || call->kind != SNIB__CALL_ACQUIRE || (result < 0 && try_again(c, h, call, now)))
                        continue;
                snib__call_answer(c, call, result, result < 0 ? SNIB__HEARD : NULL);
        }
}

void snib__wait_link_down(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        for (struct snib__list *it = h->calls.next, *next; it != &h->calls; it = next) {
                struct snib__call *call = snib__container(it, struct snib__call, link);

                next = it->next;
                if (call->second && c->downs > 1)
                        snib__call_answer(c, call, blame_code(h), SNIB__HEARD);
        }
        if (!snib__calls_want(h, SNIB__CALL_ACQUIRE))
                snib__wait_leave(c, h, now);
}

static void hear_holder(struct snib__hold *h, const struct snib__reply *r)
{
        snib__list_each (it, &h->calls)
                snib__container(it, struct snib__call, link)->holder = *r;
}

static void go_on_waiting(struct snib__core *c, struct snib__hold *h, snib__ns delay, snib__ns now)
{
        hear_to_wait(h, now);
        snib__hold_set(c, h, SNIB__WAITING);
        snib__hold_wake_at(c, h, snib__after(now, delay));
        if (h->again)
                ask(c, h, now);
}

/* Until the engine says, or as the safety net has it, never longer than the holder's lease, spread
 * a little. */
static snib__ns poll_delay(struct snib__core *c, const struct snib__hold *h, const struct snib__reply *busy)
{
        snib__ns delay = c->config.poll ? c->config.poll : SNIB__POLL_MAX;

        if (busy->look_ms > 0 && !SNIB__BUG(look_ignored))
                delay = snib__min(busy->look_ms, SNIB__LOOK_MAX / SNIB__MS) * SNIB__MS;
        if (snib__kind(h->kind)->polls)
                delay = snib__min(SNIB__SPIN_MIN << snib__min(h->request.attempt - 1, 16),
                                  SNIB__BUG(spin_backoff_unbounded) ? SNIB__NEVER : SNIB__SPIN_MAX);

        if (SNIB__BUG(sleeping_past_dead_holders_ttl) ||
            (snib__kind(h->kind)->polls && SNIB__BUG(spin_never_asks_again)))
                return 3600 * SNIB__S;
        if (busy->left_ms >= 0 && busy->left_ms < delay / SNIB__MS)
                delay = (busy->left_ms + 1) * SNIB__MS;
        return delay + (snib__ns)snib__prng_below(&c->prng, (uint64_t)(delay / 16 + 1));
}

static void busy(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        hear_holder(h, r);
        h->request.failures = 0;
        h->request.fault = 0;
        h->request.in_doubt = false;
        answer_once(c, h, 0, now);
        if (!snib__calls_want(h, SNIB__CALL_ACQUIRE)) {
                snib__wait_leave(c, h, now);
                return;
        }
        watch(c, h);
        if (!h->again)
                pass_on(c, heir(h, SNIB__BUSY), now);
        go_on_waiting(c, h, poll_delay(c, h, r), now);
}

/* No answer, or one that may be another later. */
static void not_now(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        snib__hold_failed(h, r);
        h->again = false;
        if (r->error == SNIB_EUNKNOWN)
                snib__request_doubt(&h->request);
        else if (h->request.attempt == 1)
                h->known.queued &= h->request.in_doubt; /* not executed: not in the queue either */
        answer_once(c, h, r == &too_late ? r->error : blame_code(h), now);
        if (!snib__calls_want(h, SNIB__CALL_ACQUIRE))
                snib__wait_leave(c, h, now);
        else
                go_on_waiting(c, h, snib__request_backoff(c, &h->request, SNIB__BACKOFF_MAX), now);
}

static void refused(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        snib__hold_failed(h, r);
        if (h->request.attempt == 1)
                h->known.queued &= h->request.in_doubt;
        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, r->error, SNIB__HEARD);
        snib__wait_leave(c, h, now);
}

/* What was waited for has come, and nothing is held by it. */
static void momentary(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        hear_holder(h, r);
        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, 1, NULL);
        snib__wait_done(c, h, SNIB__GRANTED, now);
        snib__hold_finish(c, h);
}

/* How long after the request this grant is worth having. */
static snib__ns trusted(const struct snib__hold *h, const struct snib__reply *r)
{
        snib__ns lease = snib__lease_trusted(snib__lease_given(h, r));

        return h->max_hold > 0 ? snib__min(lease, h->max_hold) : lease;
}

void snib__wait_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        static const struct snib__reply nonsense = {.status = SNIB__FAILED,
                                                    .error = SNIB_EPROTOCOL,
                                                    .error_text = "the engine's answer is not one to an acquire"};

        if (r->status == SNIB__BUSY) {
                busy(c, h, r, now);
        } else if (r->status == SNIB__FAILED && snib__reply_passing(r)) {
                not_now(c, h, r, now);
        } else if (r->status == SNIB__FAILED) {
                refused(c, h, r, now);
        } else if (r->status == (h->observe ? SNIB__INFO : SNIB__GRANTED) && snib__hold_momentary(h)) {
                momentary(c, h, r, now);
        } else if (r->status != SNIB__GRANTED || r->token <= 0 || h->observe) {
                snib__request_doubt(&h->request);
                refused(c, h, &nonsense, now);
        } else if (!SNIB__BUG(deadline_from_reply) && h->request.sent_at + trusted(h, r) <= now) {
                snib__request_doubt(&h->request); /* born dead: by now it may be somebody else's */
                not_now(c, h, &too_late, now);
        } else {
                snib__held_begin(c, h, r, now);
        }
}

/* It holds since after its latest question was executed: a deadline that counts from when that was
 * sent is safe, and what is still to be answered is the refusal before. Whoever asked long ago
 * would be given what is about to end. */
bool snib__wait_granted(struct snib__core *c, struct snib__hold *h, uint32_t attempt, const struct snib__reply *r,
                        snib__ns now)
{
        if (r->token <= 0 || (attempt != h->request.attempt && !SNIB__BUG(direct_grant_of_another_question)) ||
            snib__hold_momentary(h) || h->request.submit)
                return false;
        if (now - h->request.sent_at > trusted(h, r) / 8 && !SNIB__BUG(direct_grant_too_late))
                return false;
        snib__hold_forget(c, h);
        snib__held_begin(c, h, r, now);
        return true;
}

void snib__wait_call_over(struct snib__core *c, struct snib__call *call, snib__ns now)
{
        struct snib__hold *h = call->hold;
        bool unheard = h->known.silent && !overhear(c, h, call),
             first = h->state == SNIB__ASKING && h->request.attempt == 1;

        if ((unheard || first) && !call->once) {
                call->once = true; /* the wait is over, but everyone gets one honest answer */
                snib__timer_set(c, &call->timer, snib__after(now, SNIB__HONEST));
                if (unheard)
                        snib__wait_poke(c, h, false, now);
                return;
        }
        if (unheard || first)
                snib__call_answer(c, call, SNIB_EUNKNOWN, &snib__late_fault);
        else if (h->request.fault < 0)
                snib__call_answer(c, call, blame_code(h), SNIB__HEARD);
        else
                snib__call_answer(c, call, 0, NULL);
        if (snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return;
        if (h->state == SNIB__HELD)
                snib__held_idle(c, h, now);
        else if (h->state == SNIB__ASKING || h->state == SNIB__WAITING)
                snib__wait_leave(c, h, now);
}
