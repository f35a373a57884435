/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions about locks that no hold stands behind: query, forced release, listing.
 */

#include "base/error.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

static struct snib__name name_of(const struct snib_lock *lock)
{
        return (struct snib__name){lock->name, lock->name_length};
}

static struct snib__name asker_of(const struct snib_lock *lock)
{
        struct snib__name owner = {lock->owner, lock->owner_length};

        if (!lock->owner)
                owner.bytes = snib__registry_thread(&owner.length);
        return owner;
}

_Static_assert(SNIB_OWNER_MAX >= SNIB__ID_MAX && SNIB_HOST_MAX >= sizeof(((struct snib__who *)0)->host) &&
                   SNIB_LABEL_MAX >= sizeof(((struct snib__who *)0)->label),
               "the public texts have room for the inner ones");

static bool is_ours(const struct snib_client *c, const struct snib__id *id)
{
        size_t n = sizeof(c->uuid) - 1;

        return !strncmp(id->text, c->uuid, n) && id->text[n] == ':';
}

void snib__info_fill(struct snib_client *c, struct snib__name name, struct snib__name owner,
                     const struct snib__reply *r, struct snib_lock_info *ret)
{
        const struct snib__seat *holder = &r->holder;
        const struct snib__who *who = is_ours(c, &holder->id) ? &c->who : &holder->who;
        struct snib__hold *h = owner.bytes ? snib__core_find(&c->core, name, owner, r->kind) : NULL;
        size_t size = ret->size;

        memset(ret, 0, sizeof(*ret));
        ret->size = size;
        /* A BUSY names the holder without saying `held`. */
        ret->held = r->held || snib__id_set(&holder->id);
        ret->pid = ret->token = ret->since_ms = -1;
        ret->lease_left_ms = ret->held ? r->left_ms : -1;
        ret->waiters = r->waiters;
        ret->waiters_at_least = r->waiters_at_least;
        ret->position = r->position;
        if (!ret->held)
                return;
        if (h && h->state == SNIB__HELD && snib__id_equal(&h->id, &holder->id)) {
                ret->mine = 1;
                ret->depth = h->depth;
        }
        ret->token = r->token > 0 ? r->token : -1;
        ret->since_ms = holder->since_ms > 0 ? holder->since_ms : -1;
        ret->pid = who->pid > 0 ? who->pid : -1;
        memcpy(ret->owner, holder->id.text, sizeof(holder->id.text));
        memcpy(ret->host, who->host, sizeof(who->host));
        memcpy(ret->label, who->label, sizeof(who->label));
}

static int no_memory(struct snib_error *err)
{
        return snib__error(err, SNIB_ENOMEM, "no memory for the call; free some and try again");
}

static int closed(struct snib_error *err)
{
        return snib__error(err, SNIB_ECLOSED, "the client is being closed; open another");
}

/* Hands the question to core. NULL: no memory. */
static struct snib__question *ask_begin(struct snib_lock *lock, enum snib__verb verb, struct snib__wait *w)
{
        struct snib_client *c = lock->client;
        struct snib__question *q = snib__question_new(c);
        const struct snib__hold *own;
        snib__ns now = snib__os_now();

        if (!q)
                return NULL;
        memcpy(q->name, lock->name, lock->name_length + 1);
        q->wait = w;
        q->ask.owner_data = q;
        q->ask.deadline = snib__after(now, c->timeout);
        q->ask.op = (struct snib__op){.verb = verb,
                                      .kind = lock->kind == SNIB_LOCK_FENCED ? SNIB_KIND_FENCED : SNIB_KIND_LOCK,
                                      .name = {q->name, lock->name_length},
                                      .who = c->who};
        if (verb == SNIB__QUERY && (own = snib__core_find(&c->core, name_of(lock), asker_of(lock), lock->kind)) != NULL)
                q->ask.op.id = own->id; /* so that the engine can say the place of the one who asks */
        w->deadline = SNIB__NEVER;
        snib__about_set(w->about, name_of(lock));
        snib__core_ask(&c->core, &q->ask, now);
        return q;
}

static int ask_wait(struct snib_lock *lock, enum snib__verb verb, struct snib_lock_info *ret_info,
                    struct snib_error *err)
{
        struct snib_client *c = lock->client;
        struct snib__wait w = {0};
        struct snib__question *q;
        int r;

        snib__client_enter(c);
        if (c->closing) {
                r = closed(err);
        } else if (!(q = ask_begin(lock, verb, &w))) {
                r = no_memory(err);
        } else {
                snib__drive_wait(c, &w);
                r = q->ask.result;
                if (r < 0)
                        (void)snib__fault_error(err, r, &q->ask.fault, w.about);
                else if (ret_info)
                        snib__info_fill(c, name_of(lock), asker_of(lock), &q->ask.reply, ret_info);
                snib__question_free(c, q);
        }
        snib__client_leave(c);
        return r;
}

int snib__force(struct snib_lock *lock, struct snib_error *err)
{
        return ask_wait(lock, SNIB__FORCE, NULL, err);
}

int snib__query(struct snib_lock *lock, struct snib_lock_info *ret_info, struct snib_error *err)
{
        return ask_wait(lock, SNIB__QUERY, ret_info, err);
}

static void run_info(struct snib_client *c, struct snib__event *event)
{
        struct snib__async *a = snib__container(event, struct snib__async, event);
        struct snib__question *q = a->question;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_info_callback *done = a->info;
        void *arg = a->arg;
        int r = q->ask.result;

        snib__client_lock(c);
        if (r < 0)
                (void)snib__fault_error(&err, r, &q->ask.fault, a->wait.about);
        else
                snib__info_fill(c, q->ask.op.name, (struct snib__name){a->owner, a->owner_length}, &q->ask.reply,
                                &info);
        snib__question_free(c, q);
        snib__async_free(c, a);
        snib__client_unlock(c);
        done(arg, r, r < 0 ? NULL : &info, r < 0 ? &err : NULL);
}

int snib__query_async(struct snib_lock *lock, snib_info_callback *done, void *arg, struct snib_error *err)
{
        struct snib_client *c = lock->client;
        struct snib__async *a = NULL;
        int r;

        snib__client_enter(c);
        r = c->closing ? closed(err) : snib__keeper_start(c, err);
        if (r == 0)
                r = snib__dispatch_start(c, err);
        if (r == 0 && !(a = snib__async_new(c)))
                r = no_memory(err);
        if (r == 0) {
                a->event.run = run_info;
                a->info = done;
                a->arg = arg;
                a->owner_length = asker_of(lock).length;
                memcpy(a->owner, asker_of(lock).bytes, a->owner_length);
                c->background++;
                a->question = ask_begin(lock, SNIB__QUERY, &a->wait);
                if (!a->question) {
                        c->background--;
                        snib__async_free(c, a);
                        r = no_memory(err);
                }
        }
        snib__drive_step(c);
        snib__client_leave(c);
        return r;
}

/* Gives what was read to the program, without the lock. */
static int64_t list_tell(struct snib_client *c, const struct snib__inventory *l, snib_list_callback *each, void *arg)
{
        struct snib__name owner = {0};
        int64_t seen = 0;

        owner.bytes = snib__registry_thread(&owner.length);
        for (const struct snib__listed *e = l->first; e; e = e->next) {
                struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

                snib__client_lock(c);
                snib__info_fill(c, (struct snib__name){e->name, e->length}, owner, &e->reply, &info);
                snib__client_unlock(c);
                seen++;
                if (each(arg, e->name, e->length, &info))
                        break;
        }
        return seen;
}

static int list_error(const struct snib__inventory *l, struct snib_error *err)
{
        const struct snib__fault *f = &l->fault;

        return snib__error_engine(err, l->result, f->engine_code, "listing the locks: %s",
                                  f->text[0] ? f->text : snib_strerror(l->result));
}

int64_t snib__list(struct snib_client *c, snib_list_callback *each, void *arg, struct snib_error *err)
{
        struct snib__wait w = {.deadline = SNIB__NEVER};
        struct snib__inventory *l;
        int64_t r;

        snib__client_enter(c);
        if (c->closing) {
                r = closed(err);
        } else if (!(l = snib__inventory_new(c))) {
                r = no_memory(err);
        } else {
                l->wait = &w;
                snib__inventory_begin(c, l, snib__os_now());
                snib__drive_wait(c, &w);
                l->wait = NULL;
                snib__drive_settle(c);
                snib__client_unlock(c);
                r = l->result < 0 ? list_error(l, err) : list_tell(c, l, each, arg);
                snib__client_lock(c);
                snib__inventory_free(c, l);
        }
        snib__client_leave(c);
        return r;
}
