/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keeper: the thread that does what is due while nobody waits. With SNIB_THREADS_IO the same
 * thread drives always.
 *
 * It is started with the first hold or asynchronous call. It sleeps on its own descriptors until
 * core's next deadline: a timer on CLOCK_BOOTTIME, which has expired when the machine comes back
 * from a suspend, so that a lease that ran out meanwhile is noticed first thing. At a deadline it
 * does what is due whoever drives: that takes the lock, not the baton. It drives in two cases, and
 * only while nobody else does:
 *
 * - something is under way that nobody waits for (a renewal, an asynchronous call, a release in the
 *   background);
 * - there are holds, or the engine has something to tidy up, and no call was made for a while: it
 *   listens.
 *
 * The second case is why a busy lone caller is not disturbed. Each of its calls bumps `activity`;
 * the keeper looks twenty times a second, more and more seldom the longer it lasts, sees that it
 * moved, and sleeps again, without ever holding the socket or having to be woken by the caller.
 * Only when its sleep would end too late is it woken.
 */

#include "base/assert.h"
#include "base/error.h"
#include "runtime/client.h"

void snib__keeper_kick(struct snib_client *c)
{
        snib__os_event_set(c->keeper.wake_fd);
}

static bool listens(const struct snib_client *c)
{
        return !snib__list_empty(&c->core.holds) || c->wanted.tidying;
}

static bool should_drive(struct snib_client *c)
{
        struct snib__keeper *k = &c->keeper;

        if (c->baton.driver && c->baton.driver != &k->member)
                return false;
        if (k->always || snib__drive_urgent(c))
                return true;
        return k->activity_seen == c->activity && listens(c);
}

/* When it has to look again, nobody else driving. */
static snib__ns look_at(struct snib_client *c)
{
        if (snib__drive_urgent(c))
                return c->now;
        if (!listens(c))
                return snib__core_deadline(&c->core);
        return snib__min(snib__core_deadline(&c->core), c->now + c->keeper.patience);
}

static void drive(struct snib_client *c)
{
        struct snib__keeper *k = &c->keeper;
        struct snib__baton_member *next;

        snib__drive_turn(c, SNIB__NEVER, k->always);
        if (k->always && !k->quit)
                return;
        next = snib__baton_pass(&c->baton, &k->member);
        if (next)
                snib__client_wake(c, snib__container(next, struct snib__wait, member));
}

static void sleep_until_due(struct snib_client *c)
{
        struct snib__keeper *k = &c->keeper;
        struct pollfd fds[2] = {{.fd = k->wake_fd, .events = POLLIN}, {.fd = k->timer.fd, .events = POLLIN}};

        k->sleeps_until = snib__core_deadline(&c->core);
        if (k->activity_seen == c->activity) {
                k->patience = SNIB__IDLE_AFTER;
        } else {
                k->sleeps_until = snib__min(k->sleeps_until, c->now + k->patience);
                k->patience = snib__min(2 * k->patience, SNIB__IDLE_AFTER_MAX);
        }
        k->activity_seen = c->activity;
        snib__alarm_set(&k->timer, k->sleeps_until);
        k->sleeping = true;
        snib__client_unlock(c);
        snib__os_poll(fds, 2, SNIB__NEVER);
        snib__client_lock(c);
        k->sleeping = false;
        if (fds[0].revents)
                snib__os_event_clear(k->wake_fd);
        if (fds[1].revents)
                snib__alarm_clear(&k->timer);
}

static void *run(void *arg)
{
        struct snib_client *c = arg;
        struct snib__keeper *k = &c->keeper;

        snib__client_lock(c);
        while (!k->quit) {
                snib__drive_step(c);
                if (should_drive(c) && snib__baton_take(&c->baton, &k->member)) {
                        drive(c);
                } else {
                        snib__drive_settle(c);
                        sleep_until_due(c);
                }
        }
        snib__client_unlock(c);
        return NULL;
}

void snib__keeper_settle(struct snib_client *c)
{
        struct snib__keeper *k = &c->keeper;

        if (!k->started || !k->sleeping || look_at(c) >= k->sleeps_until)
                return;
        k->sleeping = false; /* it is about to look; one kick is enough */
        snib__keeper_kick(c);
}

int snib__keeper_start(struct snib_client *c, struct snib_error *err)
{
        struct snib__keeper *k = &c->keeper;
        int r;

        if (k->started || c->threads == SNIB_THREADS_NONE)
                return 0;
        k->timer.due = SNIB__NEVER;
        k->patience = SNIB__IDLE_AFTER;
        r = snib__os_thread_start(&k->thread, run, c, "snib-keeper");
        if (r < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -r, "pthread_create");
        k->started = true;
        return 0;
}

void snib__keeper_stop(struct snib_client *c)
{
        struct snib__keeper *k = &c->keeper;

        if (!k->started)
                return;
        snib__client_lock(c);
        k->quit = true;
        snib__drive_kick(c); /* from its poll, or */
        snib__client_unlock(c);
        snib__keeper_kick(c); /* from its sleep */
        (void)pthread_join(k->thread, NULL);
        k->started = false;
}
