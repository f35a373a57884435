/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Acquire, release, renew, cancel, and what a grant can be asked: each a call handed to core, then
 * waited for or left to a callback. What they mean is core's; here is who asks and who is told.
 */

#include "base/error.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

struct snib__name snib__owner_of(const struct snib__object *object)
{
        struct snib__name owner = {object->owner, object->owner_length};

        if (!object->owner)
                owner.bytes = snib__registry_thread(&owner.length);
        return owner;
}

static struct snib__name name_of(const struct snib__object *object)
{
        return (struct snib__name){object->name, object->name_length};
}

/* Every acquire is an owner of its own, whom no other joins: permits, and what takes nothing that
 * could be had twice.
 */
static bool anonymous(const struct snib__object *object, const struct snib__want *want)
{
        return want->observe || snib__kind(object->kind)->anonymous;
}

/* Neither of the two can be changed for a hold that exists. */
static int check_kind(const struct snib__object *object, const struct snib__wait *w, const struct snib__hold *h,
                      struct snib_error *err)
{
        static const struct snib__fault other = {
            SNIB_EKIND, 0, "this owner holds it as a lock of another kind; use one kind of lock for a name"};

        if (!object->reentrant && h->state != SNIB__LOST)
                return snib__fault_error(err, SNIB_EREENTRY, NULL, &w->about);
        if (object->kind != h->kind)
                return snib__fault_error(err, SNIB_EKIND, &other, &w->about);
        return 0;
}

/* The hold that this owner has of one side of a read-write lock, or NULL. */
static const struct snib__hold *side(const struct snib__object *object, struct snib__name owner, int kind)
{
        const struct snib__hold *h = snib__core_find(&object->client->core, name_of(object), owner, kind);

        return h && h->state == SNIB__HELD && h->depth > 0 ? h : NULL;
}

/* What the owner holds of the other side decides: a reader that waited to become the writer would
 * wait for itself. */
static int check_upgrade(const struct snib__object *object, struct snib__name owner, const struct snib__wait *w,
                         struct snib_error *err)
{
        if (object->kind == SNIB_KIND_WRITE && side(object, owner, SNIB_KIND_READ) &&
            !side(object, owner, SNIB_KIND_WRITE))
                return snib__fault_error(err, SNIB_EUPGRADE, NULL, &w->about);
        return 0;
}

/* A hold that begins. NULL: no memory. */
static struct snib_grant *grant_make(struct snib__object *object, const struct snib__want *want,
                                     struct snib__name owner)
{
        struct snib_grant *g = snib__grant_new(object->client, object, owner, anonymous(object, want));

        if (!g)
                return NULL;
        g->hold.n = (int32_t)want->n;
        g->hold.observe = want->observe;
        g->hold.generous = want->generous;
        g->hold.token = want->seen;
        return g;
}

/* Of a call that core ends. */
static void call_set(struct snib__wait *w, enum snib__call_kind kind, snib__ns deadline)
{
        w->deadline = SNIB__NEVER;
        w->call.kind = kind;
        w->call.deadline = deadline;
        w->call.owner_data = w;
}

int snib__acquire_start(struct snib__object *object, const struct snib__want *want, struct snib__wait *w,
                        struct snib_error *err)
{
        struct snib_client *c = object->client;
        struct snib__name owner = want->owner.length ? want->owner : snib__owner_of(object);
        struct snib__hold *h = NULL;
        snib__ns now = c->now;
        int r;

        if (c->closing)
                return snib__closed(err);
        if (!owner.bytes)
                return snib__no_memory(err);
        if ((r = snib__keeper_start(c, err)) < 0)
                return r;
        snib__about_set(&w->about, object->kind, name_of(object));
        snib__core_tick(&c->core, now); /* the hold that is found must not end on the way in */
        if (!anonymous(object, want))
                h = snib__core_find(&c->core, name_of(object), owner, object->kind);
        r = h ? check_kind(object, w, h, err) : check_upgrade(object, owner, w, err);
        if (r < 0)
                return r;
        w->grant = h ? snib__grant_of(h) : grant_make(object, want, owner);
        if (!w->grant)
                return snib__no_memory(err);
        call_set(w, SNIB__CALL_ACQUIRE, snib__after(now, want->patience.wait));
        w->call.once = want->patience.once;
        snib__list_append(&object->waits, &w->of_object);
        if (h)
                snib__core_join(&c->core, h, &w->call, now);
        else
                snib__core_begin(&c->core, &w->grant->hold, &w->call, now);
        return 0;
}

static int call_error(const struct snib__wait *w, struct snib_error *err)
{
        int r = w->call.result;

        return r < 0 ? snib__fault_error(err, r, &w->call.fault, &w->about) : r;
}

int snib__acquire(struct snib__object *object, const struct snib__want *want, struct snib_grant **ret_grant,
                  struct snib_lock_info *ret_info, struct snib_error *err)
{
        struct snib_client *c = object->client;
        struct snib__wait w = {.info = ret_info};
        int r;

        snib__client_enter(c);
        r = snib__acquire_start(object, want, &w, err);
        if (r < 0) {
                snib__client_leave(c);
                return r;
        }
        snib__drive_wait_and_leave(c, &w);
        r = call_error(&w, err);
        if (r == 1 && ret_grant)
                *ret_grant = w.grant;
        return r;
}

int snib__acquire_async(struct snib__object *object, const struct snib__want *want, const struct snib__then *then,
                        struct snib_error *err)
{
        struct snib_client *c = object->client;
        struct snib__async *a;
        int r = snib__async_enter(c, then, &a, err);

        return snib__async_leave(c, a, r < 0 ? r : snib__acquire_start(object, want, &a->wait, err));
}

int snib__release_start(struct snib_grant *g, snib__ns patience, struct snib__wait *w, struct snib_error *err)
{
        struct snib_client *c = g->client;
        snib__ns now = c->now;

        if (c->closing)
                return snib__closed(err);
        snib__core_tick(&c->core, now);
        if (g->hold.depth < 1)
                return snib__error(err, SNIB_ENOTOWNER,
                                   "the grant was paid back already; release it once for each acquire that gave it");
        w->grant = g;
        call_set(w, SNIB__CALL_RELEASE, snib__after(now, patience));
        snib__about_set(&w->about, g->hold.kind, g->hold.name);
        snib__core_release(&c->core, &g->hold, &w->call, now);
        return 0;
}

/* Leaves the client. `leave` in core's sense: 0, or the hold is to stay at the engine so long. */
static int release_and_wait(struct snib_client *c, struct snib_grant *g, snib__ns leave, struct snib_error *err)
{
        struct snib__wait w = {0};
        int r;

        if (leave > 0)
                w.call.leave = snib__after(c->now, leave);
        r = snib__release_start(g, c->timeout, &w, err);
        if (r < 0) {
                snib__client_leave(c);
                return r;
        }
        snib__drive_wait_and_leave(c, &w);
        return call_error(&w, err);
}

int snib__release(struct snib_grant *g, struct snib_error *err)
{
        struct snib_client *c = g->client;

        snib__client_enter(c);
        return release_and_wait(c, g, 0, err);
}

int snib__leave(struct snib_grant *g, snib__ns lease, struct snib_error *err)
{
        struct snib_client *c = g->client;

        snib__client_enter(c);
        return release_and_wait(c, g, lease, err);
}

static struct snib_grant *find_mine(struct snib__object *object)
{
        struct snib_client *c = object->client;
        struct snib__name owner = snib__owner_of(object);
        struct snib__hold *h;

        snib__core_tick(&c->core, c->now);
        h = owner.bytes ? snib__core_find(&c->core, name_of(object), owner, object->kind) : NULL;
        return h && h->depth > 0 ? snib__grant_of(h) : NULL;
}

int snib__release_mine(struct snib__object *object, struct snib_error *err)
{
        struct snib_client *c = object->client;
        struct snib__about about = {0};
        struct snib_grant *g;
        int r;

        snib__about_set(&about, object->kind, name_of(object));
        snib__client_enter(c);
        g = find_mine(object);
        if (g)
                return release_and_wait(c, g, 0, err);
        r = snib__fault_error(err, SNIB_ENOTOWNER, NULL, &about);
        snib__client_leave(c);
        return r;
}

struct snib_grant *snib__grant_mine(struct snib__object *object)
{
        struct snib_client *c = object->client;
        struct snib_grant *g;

        snib__client_enter(c);
        g = find_mine(object);
        snib__drive_step(c);
        snib__client_leave(c);
        return g;
}

int snib__release_async(struct snib_grant *g, const struct snib__then *then, struct snib_error *err)
{
        struct snib_client *c = g->client;
        struct snib__async *a;
        int r = snib__async_enter(c, then, &a, err);

        return snib__async_leave(c, a, r < 0 ? r : snib__release_start(g, c->timeout, &a->wait, err));
}

int snib__renew(struct snib_grant *g, struct snib_error *err)
{
        struct snib_client *c = g->client;
        struct snib__wait w = {0};
        int r;

        snib__client_enter(c);
        call_set(&w, SNIB__CALL_RENEW, snib__after(c->now, c->timeout));
        snib__core_tick(&c->core, c->now);
        if (c->closing) {
                r = snib__closed(err);
        } else if (g->hold.depth < 1) {
                r = snib__error(err, SNIB_ENOTOWNER, "the grant was paid back already; acquire anew");
        } else {
                w.grant = g;
                snib__about_set(&w.about, g->hold.kind, g->hold.name);
                snib__core_renew(&c->core, &g->hold, &w.call, c->now);
                snib__drive_wait(c, &w);
                r = call_error(&w, err);
        }
        snib__client_leave(c);
        return r;
}

int snib__cancel(struct snib__object *object)
{
        struct snib_client *c = object->client;
        int count = 0;

        snib__client_enter(c);
        /* What time has answered already is not cancelled. */
        snib__core_tick(&c->core, c->now);
        snib__effects_run(c, c->now);
        for (struct snib__list *it = object->waits.next, *next; it != &object->waits; it = next) {
                struct snib__wait *w = snib__container(it, struct snib__wait, of_object);

                next = it->next;
                snib__core_cancel(&c->core, &w->call, SNIB_ECANCELLED, c->now);
                count++;
        }
        snib__drive_step(c);
        snib__client_leave(c);
        return count;
}

void snib__object_detach(struct snib__object *object)
{
        snib__client_lock(object->client);
        while (snib__list_take(&object->waits))
                ;
        snib__client_unlock(object->client);
}

static void run_lost(struct snib_client *c, struct snib__event *event)
{
        struct snib__loss *l = snib__container(event, struct snib__loss, event);
        struct snib_grant *g = l->grant;
        snib_loss_callback *lost;
        void *arg;
        int reason;

        snib__client_lock(c);
        lost = l->told;
        arg = l->arg;
        reason = g->hold.loss;
        l->told = NULL; /* once */
        g->due = false;
        g->in_callback = true;
        snib__client_unlock(c);
        if (lost)
                lost(arg, g, reason);
        snib__client_lock(c);
        g->in_callback = false;
        if (g->freed)
                snib__grant_free(g);
        snib__client_unlock(c);
}

int snib__grant_on_loss(struct snib_grant *g, snib_loss_callback *lost, void *arg, struct snib_error *err)
{
        struct snib_client *c = g->client;
        struct snib__loss *l = NULL;
        int r;

        snib__client_enter(c);
        r = snib__dispatch_start(c, err);
        if (r == 0 && !(l = snib__grant_loss_told(g)))
                r = snib__error(err, SNIB_ENOMEM, "out of memory");
        if (r == 0) {
                l->told = lost;
                l->arg = arg;
                l->event.run = run_lost;
                if (lost && g->hold.state == SNIB__LOST && !g->hold.lost_pending) {
                        g->due = true;
                        snib__dispatch_queue(c, &l->event);
                }
        }
        snib__client_leave(c);
        return r;
}

int snib__grant_loss_fd(struct snib_grant *g)
{
        struct snib_client *c = g->client;
        int fd;

        snib__client_lock(c);
        if (g->loss_fd < 0) {
                fd = snib__os_event_new();
                if (fd >= 0 && g->hold.state == SNIB__LOST)
                        snib__os_event_set(fd);
                g->loss_fd = fd < 0 ? -1 : fd;
        }
        fd = g->loss_fd;
        snib__client_unlock(c);
        return fd < 0 ? SNIB_ESYSTEM : fd;
}

int snib__grant_depth(struct snib_grant *g)
{
        int depth;

        snib__client_lock(g->client);
        depth = g->hold.depth;
        snib__client_unlock(g->client);
        return depth;
}

int snib__grant_loss(struct snib_grant *g)
{
        int loss;

        snib__client_lock(g->client);
        loss = g->hold.loss;
        snib__client_unlock(g->client);
        return loss;
}

int snib__grant_trouble(struct snib_grant *g, struct snib_error *err)
{
        struct snib__fault fault;
        snib__ns since;
        char text[sizeof(fault.text) + 32];
        int r;

        snib__client_lock(g->client);
        r = snib__core_trouble(&g->client->core, &g->hold, &fault, &since);
        if (r < 0) {
                (void)snprintf(text, sizeof(text), "%s", fault.text[0] ? fault.text : "the engine does not answer");
                if (since != SNIB__NEVER && g->client->now - since >= SNIB__S)
                        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ", for %lld s",
                                       (long long)((g->client->now - since) / SNIB__S));
                (void)snib__error_engine(err, r, fault.engine_code, "%s", text);
        }
        snib__client_unlock(g->client);
        return r;
}
