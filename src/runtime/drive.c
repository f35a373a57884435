/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waiting and driving: the one way in which anything in a client waits. Who drives is baton.c's
 * decision; what the engine says and core answers is effects.c's business. Here is the loop between
 * them, and the sending.
 *
 * Rules (style.md's, each the lesson of somebody's hang):
 * - Every waiter is in one list, whatever it waits for; every exit from waiting passes the baton
 *   on.
 * - Only the driver polls and reads. Others submit, send, and wake the driver if what it waits for
 *   no longer suffices.
 * - What was checked before the lock was dropped is checked again after.
 * - Deadlines are points in time; nothing waits with the lock held.
 * - What is submitted leaves at once, unless more is about to come and the server has something to
 *   do until then.
 */

#include "base/cleanup.h"
#include "runtime/client.h"

/* An engine that is always "due at once" must not keep the lock for ever. */
#define STEPS_MAX 1000
/* So many requests leave together at most: the next ones are made while the server works on
 * these. */
#define TOGETHER 16
/* For threads that were woken requests are kept only while the server has so many to work on: they
 * may be long in coming. With fewer it would be idle meanwhile; measured, that costs a third of the
 * throughput of 8 to 32 threads. */
#define BUSY 16

/* Threads that were woken run one after the other, and most of them ask for more. */
static bool threads_coming(const struct snib_client *c, int server)
{
        return server >= BUSY && atomic_load_explicit(&c->coming, memory_order_relaxed) > 0 && c->now < c->gather_until;
}

/* So do callbacks, and at once; unless one of them takes its time. */
static bool callbacks_coming(const struct snib_client *c, int server)
{
        const struct snib__dispatcher *d = &c->dispatcher;

        return server > 0 && d->queue.next != d->queue.prev && c->now < d->gather_until;
}

/* More requests are about to come, and the server has something to do until then. */
static bool gathering(const struct snib_client *c)
{
        int server = c->core.outstanding - c->unsent;

        return c->unsent < TOGETHER && (threads_coming(c, server) || callbacks_coming(c, server));
}

/* What is asked for from now on may be kept. */
static bool may_gather(const struct snib_client *c)
{
        int server = c->core.outstanding + atomic_load_explicit(&c->coming, memory_order_relaxed);

        return threads_coming(c, server) || callbacks_coming(c, 1);
}

static snib__ns gathered_by(const struct snib_client *c)
{
        return snib__max(c->gather_until, c->dispatcher.gather_until);
}

void snib__drive_send(struct snib_client *c)
{
        if (c->engine->ops->flush && !gathering(c)) {
                c->engine->ops->flush(c->engine);
                c->unsent = 0;
        }
}

/* When the engine is to be driven next, by what it said last. */
static snib__ns engine_deadline(const struct snib_client *c)
{
        return c->wanted.kept ? snib__min(c->wanted.deadline, gathered_by(c)) : c->wanted.deadline;
}

static void ask_interest(struct snib_client *c, snib__ns now)
{
        c->engine->ops->interest(c->engine, now, &c->wanted);
}

static void process(struct snib_client *c, const struct snib__interest *ready, snib__ns now)
{
        c->engine->ops->process(c->engine, ready, now);
        c->unsent = 0; /* that sends, too */
        c->processed_at = now;
        snib__notes_take(c);
}

static void step(struct snib_client *c, snib__ns now)
{
        struct snib__interest nothing;

        if (snib__core_deadline(&c->core) <= now)
                snib__core_tick(&c->core, now);
        snib__effects_run(c, now);
        for (int steps = 0; steps < STEPS_MAX; steps++) {
                snib__drive_send(c);
                ask_interest(c, now);
                if (engine_deadline(c) > now)
                        return;
                nothing = c->wanted;
                for (int k = 0; k < nothing.count; k++)
                        nothing.fds[k].events = 0; /* nothing is known to be ready: only the driver may read */
                process(c, &nothing, now);
        }
}

void snib__drive_step(struct snib_client *c)
{
        step(c, c->now);
}

bool snib__drive_urgent(const struct snib_client *c)
{
        /* Without a link every call is refused at once and nobody waits: connecting needs a driver
         * of its own. */
        return c->core.outstanding > 0 || c->background > 0 || !c->core.link_up;
}

snib__ns snib__drive_deadline(struct snib_client *c)
{
        ask_interest(c, c->now);
        return snib__min(snib__core_deadline(&c->core), engine_deadline(c));
}

static bool covers(const struct snib__interest *polled, const struct snib__interest *wanted)
{
        for (int k = 0; k < wanted->count; k++) {
                int found = 0;

                for (int j = 0; j < polled->count; j++)
                        found |=
                            polled->fds[j].fd == wanted->fds[k].fd && !(wanted->fds[k].events & ~polled->fds[j].events);
                if (!found)
                        return false;
        }
        return polled->changes == wanted->changes;
}

void snib__drive_kick(struct snib_client *c)
{
        if (c->kicked)
                return;
        c->kicked = true;
        snib__os_event_set(c->wake_fd);
}

void snib__drive_settle(struct snib_client *c)
{
        if (c->baton.driver) {
                /* In poll: ends that if it would last too long or miss something. Else it looks at
                 * everything before it polls. */
                if (c->polling && (snib__drive_deadline(c) < c->polled_until || !covers(&c->polled, &c->wanted)))
                        snib__drive_kick(c);
        } else if (c->threads == SNIB_THREADS_NONE) {
                snib__loop_settle(c);
        } else {
                snib__keeper_settle(c);
        }
}

/* ---- polling */

void snib__alarm_set(struct snib__alarm *a, snib__ns due)
{
        if (a->due <= due)
                return;
        a->due = due;
        snib__os_timer_set(a->fd, due);
}

void snib__alarm_clear(struct snib__alarm *a)
{
        a->due = SNIB__NEVER;
        snib__os_event_clear(a->fd);
}

static bool same(const struct snib__interest *a, const struct snib__interest *b)
{
        bool equal = a->changes == b->changes && a->count == b->count;

        for (int k = 0; equal && k < a->count; k++)
                equal = a->fds[k].fd == b->fds[k].fd && a->fds[k].events == b->fds[k].events;
        return equal;
}

/* Nothing is removed: what is no longer wanted was closed, and by now its number may be someone
 * else's. */
void snib__drive_register(struct snib_client *c)
{
        const struct snib__interest *i = &c->wanted;

        if (same(i, &c->registered))
                return;
        for (int k = 0; k < i->count; k++)
                (void)snib__os_epoll_set(c->epoll, i->fds[k].fd, i->fds[k].events);
        c->registered = *i;
}

/* Callers who are inside and awake run, or are about to. */
static bool in_company(const struct snib_client *c)
{
        int driver = c->keeper.always ? 0 : 1; /* the I/O thread is no caller */

        return atomic_load(&c->inside) - c->asleep > driver;
}

/* How long to look before sleeping. Only while answers are on their way and somebody waits for
 * one. */
static snib__ns look_for(const struct snib_client *c, bool company)
{
        if (c->core.outstanding == 0 || atomic_load(&c->inside) == 0)
                return 0;
        return snib__look_for(&c->look, company);
}

/* Without the lock. In company others run between two tries. */
static int look(const struct snib_client *c, struct snib__ready *ret, snib__ns begun, struct snib__look_turn *t)
{
        snib__ns last = begun, now;
        int count;

        for (;;) {
                count = snib__os_epoll_wait(c->epoll, ret, 0);
                now = snib__os_now();
                t->gap = snib__max(t->gap, now - last);
                last = now;
                if (count > 0 || now - begun >= t->window)
                        return count;
                if (t->company)
                        snib__os_yield();
        }
}

static int poll_ready(struct snib_client *c, struct snib__ready *ret, int limit_ms, struct snib__look_turn *t)
{
        snib__ns begun = c->now;
        int n = 0;

        c->polling = true;
        snib__client_unlock(c);
        if (t->window)
                n = look(c, ret, begun, t);
        t->found = n > 0;
        if (n == 0)
                n = snib__os_epoll_wait(c->epoll, ret, limit_ms);
        snib__client_lock(c);
        c->polling = false;
        t->took = c->now - begun;
        return n;
}

void snib__drive_turn(struct snib_client *c, snib__ns until, bool may_look)
{
        _unset_ struct snib__ready ready[SNIB__READY_MAX];
        struct snib__look_turn t = {.company = in_company(c)};
        struct snib__interest found;
        int count, limit_ms = -1;
        int64_t answers;

        c->polled = found = c->wanted;
        c->polled_until = snib__min(snib__core_deadline(&c->core), c->wanted.deadline);
        snib__alarm_set(&c->timer, snib__min(until, c->polled_until));
        if (may_gather(c)) { /* then this turn sends it, if nobody else does */
                c->polled_until = snib__min(c->polled_until, c->now);
                limit_ms = SNIB__GATHER / SNIB__MS;
        }
        snib__drive_register(c);
        t.window = may_look ? look_for(c, t.company) : 0;
        count = poll_ready(c, ready, limit_ms, &t);
        for (int k = 0; k < found.count; k++)
                found.fds[k].events = 0;
        for (int i = 0; i < count; i++) {
                if (ready[i].fd == c->timer.fd)
                        snib__alarm_clear(&c->timer);
                for (int k = 0; k < found.count; k++)
                        if (found.fds[k].fd == ready[i].fd)
                                found.fds[k].events = ready[i].events;
        }
        if (c->kicked) {
                c->kicked = false;
                snib__os_event_clear(c->wake_fd);
        }
        answers = c->look.spell.answers;
        process(c, &found, c->now);
        t.answered = c->look.spell.answers > answers;
        snib__look_learn(&c->look, &t);
        snib__drive_send(c);
}

/* ---- waiting */

/* Until it has something to do. False: that is over, and the lock was not taken again. The last one
 * of those who came together takes it all the same, for what the others may have left to be
 * sent. */
static bool sleep_as_waiter(struct snib_client *c, struct snib__wait *w)
{
        bool over;

        snib__sleep_begin(c, w);
        snib__client_unlock(c);
        snib__sleep(w);
        over = atomic_load_explicit(&w->word, memory_order_acquire) == SNIB__OVER;
        if (over && atomic_fetch_sub_explicit(&c->coming, 1, memory_order_relaxed) > 1)
                return false;
        snib__client_lock(c);
        if (over)
                snib__drive_send(c);
        else if (atomic_load_explicit(&w->word, memory_order_relaxed) == SNIB__OVER) /* in the instant it gave up */
                (void)atomic_fetch_sub_explicit(&c->coming, 1, memory_order_relaxed);
        c->asleep -= w->asleep;
        w->asleep = false;
        return true;
}

/* False as above. */
static bool wait_turn(struct snib_client *c, struct snib__wait *w)
{
        if (snib__baton_take(&c->baton, &w->member)) {
                snib__drive_turn(c, w->deadline, true);
                return true;
        }
        snib__drive_settle(c);
        return sleep_as_waiter(c, w);
}

static void leave(struct snib_client *c, struct snib__wait *w)
{
        struct snib__baton_member *next = snib__baton_leave(&c->baton, &w->member);

        if (next)
                snib__client_wake(c, snib__container(next, struct snib__wait, member));
}

/* False: without the lock. */
static bool wait_until_done(struct snib_client *c, struct snib__wait *w)
{
        snib__drive_step(c);
        if (w->done)
                return true;
        snib__baton_enter(&c->baton, &w->member);
        while (!w->done && c->now < w->deadline) {
                if (!wait_turn(c, w))
                        return false;
                if (!w->done)
                        snib__drive_step(c);
        }
        leave(c, w);
        return true;
}

void snib__drive_wait(struct snib_client *c, struct snib__wait *w)
{
        if (!wait_until_done(c, w))
                snib__client_lock(c);
}

void snib__drive_wait_and_leave(struct snib_client *c, struct snib__wait *w)
{
        if (wait_until_done(c, w))
                snib__client_leave(c);
        else
                snib__client_left(c); /* nothing that anybody else would have to know has happened */
}
