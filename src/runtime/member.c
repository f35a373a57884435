/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One member of a multilock at its client: it asks, holds and releases as any caller does. Not what
 * a multilock makes of it (multi_*.c), and not another way of waiting: the calls are core's, begun
 * by hold.c as everybody's.
 *
 * A call's end is told by the one who noticed it, under the client's lock, instead of through the
 * dispatcher: a multilock may be acquired by a blocking call within a callback, when the dispatcher
 * cannot run.
 */

#include "base/error.h"
#include "runtime/multi.h"

/* So many requests without an answer are usual. */
#define FEW 16

static struct snib__member *of_wait(struct snib__wait *w)
{
        return snib__container(w, struct snib__member, wait);
}

/* As snib__client_leave(), but runs no callbacks: the caller holds a lock of its own. Who drives
 * the client runs them.
 */
static void leave(struct snib_client *c)
{
        snib__drive_settle(c);
        snib__client_unlock(c);
        (void)atomic_fetch_sub(&c->inside, 1);
}

static void run(struct snib_client *c, struct snib__event *event)
{
        (void)c;
        snib__multigrant_posted(snib__container(event, struct snib__member, event));
}

int snib__member_attach(struct snib__member *p, struct snib_error *err)
{
        struct snib_client *c = p->object->client;
        int r;

        snib__client_lock(c);
        r = c->closing ? snib__closed(err) : snib__dispatch_start(c, err);
        if (r == 0) {
                p->client = c;
                p->event.run = run;
                snib__list_append(&c->members, &p->of_client);
        }
        snib__client_unlock(c);
        return r;
}

void snib__member_detach(struct snib__member *p)
{
        struct snib_client *c = p->client;

        if (!c)
                return;
        snib__client_lock(c);
        snib__list_remove(&p->of_grant);
        snib__list_remove(&p->of_client);
        p->client = NULL;
        snib__client_unlock(c);
}

bool snib__member_is_there(const struct snib__member *p)
{
        return p->client && !atomic_load(&p->of->machine.members[p - p->of->members].closed);
}

static void ended(struct snib_client *c, struct snib__wait *w)
{
        struct snib__member *p = of_wait(w);
        struct snib_grant *g = w->grant;
        bool acquired = w->call.kind == SNIB__CALL_ACQUIRE && w->call.result == 1;

        (void)c;
        p->result = w->call.result;
        if (p->result < 0)
                (void)snib__fault_error(&p->err, p->result, &w->call.fault, &w->about);
        if (acquired) {
                p->grant = g;
                p->gone = false;
                snib__list_append(&g->followers, &p->of_grant);
        }
        /* Its loss was told before there was anybody to tell. */
        if (acquired && g->hold.state == SNIB__LOST && !g->hold.lost_pending)
                snib__multigrant_lost(p, g->hold.loss);
        snib__multigrant_ended(p);
}

/* The frame of both calls. */
static int begun(struct snib__member *p, int r)
{
        if (r < 0)
                p->client->background--;
        else
                snib__drive_step(p->client);
        return r;
}

static void begin(struct snib__member *p)
{
        p->err = (struct snib_error)SNIB_ERROR_INIT;
        p->wait = (struct snib__wait){.ended = ended};
        p->client->background++;
}

int snib__member_acquire(struct snib__member *p, const struct snib__want *want, struct snib_error *err)
{
        struct snib_client *c = p->client;
        int r;

        snib__client_enter(c);
        begin(p);
        r = begun(p, snib__acquire_start(p->object, want, &p->wait, err));
        leave(c);
        return r;
}

int snib__member_release(struct snib__member *p, snib__ns patience, struct snib_error *err)
{
        struct snib_client *c = p->client;
        int r;

        snib__client_enter(c);
        snib__list_remove(&p->of_grant);
        if (p->gone) {
                r = snib__error(err, SNIB_ENOTOWNER, "it was released by another call; release the whole, once");
        } else {
                begin(p);
                r = begun(p, snib__release_start(p->grant, snib__min(patience, c->timeout), &p->wait, err));
        }
        p->grant = NULL;
        leave(c);
        return r;
}

/* `hurry`: as its time-out would. */
static void end_acquire(struct snib__member *p, bool hurry)
{
        struct snib_client *c = p->client;

        snib__client_enter(c);
        if (!p->wait.done && hurry)
                snib__core_hurry(&c->core, &p->wait.call, snib__os_now());
        else if (!p->wait.done)
                snib__core_cancel(&c->core, &p->wait.call, SNIB_ECANCELLED, snib__os_now());
        snib__drive_step(c);
        leave(c);
}

void snib__member_cancel(struct snib__member *p)
{
        end_acquire(p, false);
}

void snib__member_hurry(struct snib__member *p)
{
        end_acquire(p, true);
}

void snib__member_let_go(struct snib__member *p)
{
        struct snib_client *c = p->client;

        snib__client_lock(c);
        snib__list_remove(&p->wait.of_object);
        snib__client_unlock(c);
}

bool snib__member_post(struct snib__member *p)
{
        if (snib__list_linked(&p->event.link))
                return false;
        snib__dispatch_queue(p->client, &p->event);
        return true;
}

bool snib__member_post_locked(struct snib__member *p)
{
        struct snib_client *c = p->client;
        bool posted;

        snib__client_lock(c);
        posted = snib__member_post(p);
        snib__drive_settle(c);
        snib__client_unlock(c);
        return posted;
}

bool snib__member_pin(struct snib__member *p)
{
        struct snib_client *c = p->client;
        bool alive;

        snib__client_lock(c);
        alive = !c->closing;
        if (alive)
                (void)atomic_fetch_add(&c->inside, 1);
        snib__client_unlock(c);
        return alive;
}

void snib__member_unpin(struct snib_client *c)
{
        (void)atomic_fetch_sub(&c->inside, 1);
}

bool snib__member_is_stuck(struct snib__member *p, snib__ns patience)
{
        struct snib_client *c = p->client;
        bool stuck;

        snib__client_lock(c);
        stuck = c->core.outstanding > FEW && snib__os_now() - c->silent_since > patience;
        snib__client_unlock(c);
        return stuck;
}

void snib__members_lost(struct snib_grant *g)
{
        snib__list_each (it, &g->followers) {
                struct snib__member *p = snib__container(it, struct snib__member, of_grant);

                snib__multigrant_lost(p, g->hold.loss);
        }
}

void snib__members_freed(struct snib_grant *g)
{
        struct snib__list *it;

        while ((it = snib__list_take(&g->followers))) {
                struct snib__member *p = snib__container(it, struct snib__member, of_grant);

                p->gone = true;
                snib__multigrant_lost(p, SNIB_LOSS_GONE);
        }
}

void snib__members_closed(struct snib_client *c)
{
        struct snib__list *it;

        while ((it = snib__list_take(&c->members))) {
                struct snib__member *p = snib__container(it, struct snib__member, of_client);

                if (p->wait.ended && !p->wait.done) {
                        snib__core_cancel(&c->core, &p->wait.call, SNIB_ECLOSED, snib__os_now());
                        snib__effects_run(c, snib__os_now());
                }
                snib__list_remove(&p->of_grant);
                p->gone = true;
                snib__multigrant_closed(p);
        }
}
