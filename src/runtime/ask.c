/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that no hold stands behind: questions, forced releases, changes of a number or a value,
 * permits by id, pauses; and the listing. Core repeats them; here is what they carry, whom they are
 * for, and what of an answer is kept.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

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
        const struct snib__hold *ours = is_ours(c, &holder->id) ? snib__core_held(&c->core, name, &holder->id) : NULL;
        size_t size = ret->size;

        memset(ret, 0, sizeof(*ret));
        ret->size = size;
        /* A BUSY names the holder without saying `held`. */
        ret->held = r->held || snib__id_set(&holder->id);
        ret->kind = r->kind;
        ret->foreign = r->foreign;
        ret->holders = r->holders;
        ret->value = r->value;
        ret->limit = r->limit;
        ret->pid = ret->token = ret->since_ms = -1;
        ret->lease_left_ms = ret->held ? r->left_ms : -1;
        ret->waiters = r->waiters < 0 ? -1 : r->waiters + snib__core_silent(&c->core, name);
        ret->waiters_at_least = r->waiters_at_least;
        ret->position = r->position;
        memcpy(ret->next, r->next.text, sizeof(r->next.text));
        ret->next_left_ms = r->next.text[0] ? r->next_left_ms : -1;
        if (!ret->held)
                return;
        /* Of several readers the answer names one. */
        if (h && h->state == SNIB__HELD && (snib__id_equal(&h->known.id, &holder->id) || r->kind == SNIB_KIND_READ)) {
                ret->mine = 1;
                ret->depth = h->depth;
        }
        ret->token = r->token > 0 ? r->token : -1;
        if (ours && r->token > 0)
                ret->token = ours->token; /* it may have passed from one thread to another unknown to the engine */
        ret->since_ms = holder->since_ms > 0 ? holder->since_ms : -1;
        ret->pid = who->pid > 0 ? who->pid : -1;
        memcpy(ret->owner, holder->id.text, sizeof(holder->id.text));
        ret->left = snib__id_is_left(&holder->id, NULL);
        memcpy(ret->host, who->host, sizeof(who->host));
        memcpy(ret->label, who->label, sizeof(who->label));
}

/* The request's own copy of what it carries; false: no memory. */
static bool keep_data(struct snib__question *q, const struct snib__op *op)
{
        if (op->permit_count) {
                q->ask.op.permits = snib__question_keep(q, op->permits, op->permit_count * sizeof(op->permits[0]));
                return q->ask.op.permits != NULL;
        }
        if (op->verb != SNIB__WRITE)
                return true;
        q->ask.op.data = snib__question_keep(q, op->data, op->data_length);
        return q->ask.op.data != NULL;
}

/* Whose view an answer is, and which waiter's place in the queue the engine can say. */
static void asker_set(struct snib__question *q, const struct snib__object *object)
{
        struct snib__name owner = snib__owner_of(object);
        const struct snib__hold *own;

        q->asker_length = owner.bytes ? owner.length : 0;
        memcpy(q->asker, owner.bytes ? owner.bytes : "", q->asker_length);
        own = snib__core_find(&object->client->core, q->ask.op.name, owner, object->kind);
        if (own)
                q->ask.op.id = own->known.id;
}

/* A number or a value, or permits, may be different afterwards; so it is to be executed once. */
static bool is_change(enum snib__verb verb)
{
        return verb && verb != SNIB__QUERY && verb != SNIB__FORCE;
}

/* Hands the request to core; NULL: no memory. It ends by itself after `length`. */
static struct snib__question *ask_begin(struct snib__object *object, const struct snib__op *op, snib__ns length,
                                        struct snib__wait *w)
{
        struct snib_client *c = object->client;
        struct snib__question *q = snib__question_new(c);
        snib__ns now = snib__os_now();

        if (!q)
                return NULL;
        q->ask.op = *op;
        if (!keep_data(q, op)) {
                snib__question_free(c, q);
                return NULL;
        }
        memcpy(q->name, object->name, object->name_length);
        q->wait = w;
        q->ask.owner_data = q;
        q->ask.deadline = snib__after(now, length);
        q->ask.op.kind = object->kind;
        q->ask.op.name = (struct snib__name){q->name, object->name_length};
        q->ask.op.who = &c->who;
        w->deadline = SNIB__NEVER; /* core's business */
        snib__about_set(&w->about, object->kind, q->ask.op.name);
        w->about.change = is_change(op->verb);
        if (w->about.change)
                snib__id_fresh(c, &q->ask.op.id);
        else
                asker_set(q, object);
        snib__core_ask(&c->core, &q->ask, now);
        return q;
}

/* The program's copy of a value; what the engine gave lives only until it is driven again. */
static bool found_copy(struct snib__question *q)
{
        const struct snib__reply *r = &q->ask.reply;

        q->found.bytes = snib__alloc(r->data_length + 1);
        if (!q->found.bytes)
                return false;
        if (r->data_length > 0)
                memcpy(q->found.bytes, r->data, r->data_length);
        q->found.length = r->data_length;
        q->found.version = r->value;
        return true;
}

void snib__question_answered(struct snib_client *c, struct snib__question *q)
{
        struct snib__ask *a = &q->ask;
        struct snib__name asker = {q->asker, q->asker_length};

        if (a->result == 1 && a->op.verb == SNIB__QUERY && snib__family_of(a->op.kind) == SNIB__FAMILY_REGISTER &&
            !found_copy(q)) {
                a->result = SNIB_ENOMEM;
                a->fault = (struct snib__fault){.code = SNIB_ENOMEM};
        }
        a->reply.data = NULL;
        /* Draining what is empty is done all the same. */
        if (a->op.verb == SNIB__DRAIN && a->result == 0) {
                a->result = 1;
                a->reply.value = 0;
        }
        if (q->wait->info && a->result >= 0)
                snib__info_fill(c, a->op.name, asker, &a->reply, q->wait->info);
        snib__wait_finish(c, q->wait);
}

/* What the program gets of an answered request. */
static int ask_end(struct snib_client *c, struct snib__question *q, const struct snib__wait *w, struct snib__asked *ret,
                   struct snib_error *err)
{
        int r = q->ask.result;

        ret->reply = q->ask.reply;
        if (r < 0)
                (void)snib__fault_error(err, r, &q->ask.fault, &w->about);
        else if (ret->value) {
                *ret->value = q->found;
                q->found = (struct snib_value)SNIB_VALUE_INIT;
        }
        snib__question_free(c, q);
        return r;
}

static int ask(struct snib__object *object, const struct snib__op *op, snib__ns length, struct snib__asked *ret,
               struct snib_error *err)
{
        struct snib_client *c = object->client;
        struct snib__wait w = {.info = ret->info};
        struct snib__question *q;
        int r;

        snib__client_enter(c);
        if (c->closing) {
                r = snib__closed(err);
        } else if (!(q = ask_begin(object, op, length, &w))) {
                r = snib__no_memory(err);
        } else {
                snib__drive_wait(c, &w);
                r = ask_end(c, q, &w, ret, err);
        }
        snib__client_leave(c);
        return r;
}

static int ask_async(struct snib__object *object, const struct snib__op *op, snib__ns length,
                     const struct snib__then *then, struct snib_error *err)
{
        struct snib_client *c = object->client;
        struct snib__async *a;
        int r = snib__async_enter(c, then, &a, err);

        if (r == 0) {
                a->question = ask_begin(object, op, length, &a->wait);
                r = a->question ? 0 : snib__no_memory(err);
        }
        return snib__async_leave(c, a, r);
}

int snib__ask(struct snib__object *object, const struct snib__op *op, struct snib__asked *ret, struct snib_error *err)
{
        return ask(object, op, object->client->timeout, ret, err);
}

int snib__ask_async(struct snib__object *object, const struct snib__op *op, const struct snib__then *then,
                    struct snib_error *err)
{
        return ask_async(object, op, object->client->timeout, then, err);
}

/* A request without a verb asks nothing, of nobody: core answers it at its deadline. */
static struct snib__object nobody(struct snib_client *c)
{
        return (struct snib__object){.client = c, .name = (char *)"", .kind = SNIB_KIND_ANY};
}

int snib__pause(struct snib_client *c, snib__ns length, struct snib_error *err)
{
        struct snib__object object = nobody(c);
        struct snib__asked ret = {0};

        return ask(&object, &(struct snib__op){0}, length, &ret, err);
}

int snib__pause_async(struct snib_client *c, snib__ns length, snib_done_callback *done, void *arg,
                      struct snib_error *err)
{
        struct snib__object object = nobody(c);

        return ask_async(&object, &(struct snib__op){0}, length, &(struct snib__then){.done = done, .arg = arg}, err);
}

int64_t snib__random_below(struct snib_client *c, int64_t below)
{
        int64_t r;

        snib__client_lock(c);
        r = (int64_t)snib__prng_below(&c->core.prng, (uint64_t)below);
        snib__client_unlock(c);
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
                                  f->text[0] ? f->text : snib__strerror(l->result));
}

int64_t snib__list(struct snib_client *c, snib_list_callback *each, void *arg, struct snib_error *err)
{
        struct snib__wait w = {.deadline = SNIB__NEVER};
        struct snib__inventory *l;
        int64_t r;

        snib__client_enter(c);
        if (c->closing) {
                r = snib__closed(err);
        } else if (!(l = snib__inventory_new(c))) {
                r = snib__no_memory(err);
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
