/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waiting and driving: the one way in which anything in a client waits. Who drives is baton.c's decision; what the
 * engine says and core answers is effects.c's business. Here is the loop between them, and the sending.
 *
 * Rules (style.md's, each the lesson of somebody's hang):
 * - Every waiter is in one list, whatever it waits for; every exit from waiting passes the baton on.
 * - Only the driver polls and reads. Others submit, send, and wake the driver if what it waits for no longer suffices.
 * - What was checked before the lock was dropped is checked again after.
 * - Deadlines are points in time; nothing waits with the lock held.
 *
 * Sending is the engine's: it sends the request of a lone caller at once and gathers those of several threads.
 */

#include "runtime/client.h"

/* An engine that is always "due at once" must not keep the lock for ever. */
#define STEPS_MAX 1000
/* How long a lone caller looks for its answer before it sleeps: the time of a few round trips on one machine. */
#define SPIN_NS ((snib__ns)40000)
/* After a vain look so many turns go without one, doubling up to the second figure while looks stay vain. */
#define SPIN_SKIP_MIN 2
#define SPIN_SKIP_MAX 1024

static struct snib__interest interest_of(struct snib_client *c, snib__ns now)
{
        struct snib__interest i = {.deadline = SNIB__NEVER};

        c->engine->ops->interest(c->engine, now, &i);
        return i;
}

static void process(struct snib_client *c, const struct snib__interest *ready, snib__ns now)
{
        c->engine->ops->process(c->engine, ready, now);
        c->processed_at = now;
        snib__notes_take(c, now);
}

void snib__drive_step(struct snib_client *c)
{
        struct snib__interest i;
        snib__ns now = snib__os_now();

        if (snib__core_deadline(&c->core) <= now)
                snib__core_tick(&c->core, now);
        snib__effects_run(c, now);
        for (int steps = 0; steps < STEPS_MAX; steps++) {
                i = interest_of(c, now);
                if (i.deadline > now)
                        return;
                for (int k = 0; k < i.count; k++)
                        i.fds[k].events = 0; /* nothing is known to be ready: only the driver may read */
                process(c, &i, now);
        }
}

bool snib__drive_urgent(const struct snib_client *c)
{
        /* Without a link every call is refused at once and nobody waits: connecting needs a driver of its own. */
        return c->core.outstanding > 0 || c->background > 0 || !c->core.link_up;
}

bool snib__drive_tidying(struct snib_client *c)
{
        return interest_of(c, snib__os_now()).tidying;
}

snib__ns snib__drive_deadline(struct snib_client *c)
{
        snib__ns now = snib__os_now();

        return snib__min(snib__core_deadline(&c->core), interest_of(c, now).deadline);
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
        return true;
}

void snib__drive_kick(struct snib_client *c)
{
        if (c->baton.driver == &c->keeper.member) {
                snib__keeper_kick(c);
        } else if (!c->kicked) {
                c->kicked = true;
                snib__os_event_set(c->wake_fd);
        }
}

/* The driver is in poll: ends that if it would last too long or miss something. */
static void settle_with_driver(struct snib_client *c)
{
        snib__ns now = snib__os_now();
        struct snib__interest wanted;

        wanted = interest_of(c, now);
        if (snib__min(snib__core_deadline(&c->core), wanted.deadline) < c->polled_until || !covers(&c->polled, &wanted))
                snib__drive_kick(c);
}

void snib__drive_settle(struct snib_client *c)
{
        if (c->baton.driver) {
                if (c->polling)
                        settle_with_driver(c);
                return; /* else it looks at everything before it polls */
        }
        if (c->threads == SNIB_THREADS_NONE)
                snib__loop_settle(c);
        else
                snib__keeper_settle(c);
}

static int pollfds_fill(struct snib_client *c, struct pollfd *fds, struct pollfd *extra, int extras)
{
        int n = 0;

        for (; n < c->polled.count; n++)
                fds[n] = (struct pollfd){.fd = c->polled.fds[n].fd, .events = c->polled.fds[n].events};
        for (int k = 0; k < extras; k++)
                fds[n++] = extra[k];
        return n;
}

void snib__drive_turn(struct snib_client *c, snib__ns until, struct pollfd *extra, int extras)
{
        struct pollfd fds[SNIB__FDS_MAX + 2];
        struct snib__interest ready;
        snib__ns now = snib__os_now();
        int count;

        c->polled = interest_of(c, now);
        c->polled_until = snib__min(snib__core_deadline(&c->core), c->polled.deadline);
        until = snib__min(until, c->polled_until);
        count = pollfds_fill(c, fds, extra, extras);
        c->polling = true;
        snib__client_unlock(c);
        snib__os_poll(fds, count, until == SNIB__NEVER ? SNIB__NEVER : until - now);
        snib__client_lock(c);
        c->polling = false;
        ready = c->polled;
        for (int k = 0; k < ready.count; k++)
                ready.fds[k].events = fds[k].revents;
        for (int k = 0; k < extras; k++)
                extra[k].revents = fds[ready.count + k].revents;
        process(c, &ready, snib__os_now());
        snib__drive_step(c);
}

static bool may_spin(struct snib_client *c)
{
        bool alone = c->baton.waiting.next == c->baton.waiting.prev;

        if (!c->spin || !alone || c->core.outstanding == 0)
                return false;
        if (c->spin_skip == 0)
                return true;
        c->spin_skip--;
        return false;
}

/* A lone caller whose answer is on its way reads without sleeping for a moment: falling asleep and being woken costs
 * more than the answer takes. It stops by itself where that does not pay: a slow network, a busy machine. */
static bool spin(struct snib_client *c, struct snib__wait *w)
{
        struct snib__interest ready;
        snib__ns begun, now;

        if (!may_spin(c))
                return false;
        begun = now = snib__os_now();
        do {
                ready = interest_of(c, now);
                process(c, &ready, now);
                if (w->done) {
                        c->spin_missed = 0;
                        return true;
                }
                snib__client_unlock(c);
                snib__client_lock(c);
                now = snib__os_now();
        } while (now - begun < SPIN_NS);
        c->spin_missed = c->spin_missed ? snib__min(2 * c->spin_missed, SPIN_SKIP_MAX) : SPIN_SKIP_MIN;
        c->spin_skip = c->spin_missed;
        return w->done;
}

static void turn_as_waiter(struct snib_client *c, struct snib__wait *w)
{
        struct pollfd wake = {.fd = c->wake_fd, .events = POLLIN};

        if (spin(c, w))
                return;
        snib__drive_turn(c, w->deadline, &wake, 1);
        if (c->kicked) {
                c->kicked = false;
                snib__os_event_clear(c->wake_fd);
        }
}

/* Until somebody has an answer or the baton for it. */
static void sleep_as_waiter(struct snib_client *c, struct snib__wait *w)
{
        snib__ns now = snib__os_now();

        atomic_store_explicit(&w->word, 0, memory_order_relaxed);
        w->asleep = true;
        snib__client_unlock(c);
        while (atomic_load_explicit(&w->word, memory_order_acquire) == 0 && now < w->deadline) {
                snib__os_sleep(&w->word, 0, w->deadline == SNIB__NEVER ? SNIB__NEVER : w->deadline - now);
                now = snib__os_now();
        }
        snib__client_lock(c);
        w->asleep = false;
}

static void wait_turn(struct snib_client *c, struct snib__wait *w)
{
        if (snib__baton_take(&c->baton, &w->member)) {
                turn_as_waiter(c, w);
                return;
        }
        snib__drive_settle(c);
        if (!w->done && !snib__baton_take(&c->baton, &w->member))
                sleep_as_waiter(c, w);
}

static void leave(struct snib_client *c, struct snib__wait *w)
{
        struct snib__baton_member *next = snib__baton_leave(&c->baton, &w->member);

        if (next)
                snib__client_wake(c, snib__container(next, struct snib__wait, member));
}

void snib__drive_wait(struct snib_client *c, struct snib__wait *w)
{
        snib__drive_step(c);
        if (!w->done) {
                snib__baton_enter(&c->baton, &w->member);
                while (!w->done && (w->deadline == SNIB__NEVER || snib__os_now() < w->deadline))
                        wait_turn(c, w);
                leave(c, w);
        }
}
