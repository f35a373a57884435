/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Between core and engine: carries core's effects out, and the engine's notes in. No decision is
 * made here. Under the client's lock.
 *
 * A tag names the record an answer is for: a hold, a question or a listing, told apart by the two
 * low bits of the address. The record is pooled and so still there when a late answer comes; its
 * cookie tells whether it is still the one meant.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "runtime/multi.h"
#include <string.h>

enum { TAG_HOLD = 0, TAG_ASK = 1, TAG_LISTING = 2, TAG_MASK = 3 };

static void *tag_object(void *record, unsigned kind)
{
        return (char *)record + kind;
}

static void *tag_record(struct snib__tag tag, unsigned *ret_kind)
{
        *ret_kind = (unsigned)((uintptr_t)tag.object & TAG_MASK);
        return (char *)tag.object - *ret_kind;
}

void snib__wait_finish(struct snib_client *c, struct snib__wait *w)
{
        if (w->done)
                return;
        w->done = true;
        snib__baton_done(&c->baton, &w->member);
        snib__list_remove(&w->of_object);
        if (w->ended) {
                c->background--;
                w->ended(c, w);
        } else if (w->event) {
                c->background--;
                snib__dispatch_queue(c, w->event);
        } else if (w->asleep) {
                snib__client_wake_over(c, w);
        } else {
                snib__client_wake(c, w);
        }
}

static void lost(struct snib_client *c, struct snib_grant *g)
{
        snib__client_trace(c, "lost id=%s reason=%s", g->hold.known.id.text, snib__loss_text(g->hold.loss));
        if (g->loss_fd >= 0)
                snib__os_event_set(g->loss_fd);
        if (g->loss && g->loss->told) {
                g->due = true;
                snib__dispatch_queue(c, &g->loss->event);
        }
        snib__members_lost(g);
}

static void answered(struct snib_client *c, struct snib__call *call)
{
        struct snib__wait *w = call->owner_data;
        const struct snib_grant *g = w->grant;

        if (w->info && call->result >= 0)
                snib__info_fill(c, g->hold.name, snib__grant_asker(g), &call->holder, w->info);
        snib__wait_finish(c, w);
}

static void submit(struct snib_client *c, const struct snib__effect *e, snib__ns now)
{
        struct snib__tag tag = {.cookie = e->cookie, .attempt = e->attempt};

        tag.object = e->ask ? tag_object(e->ask, TAG_ASK) : tag_object(e->hold, TAG_HOLD);
        if (!c->silent_since)
                c->silent_since = now;
        if (c->engine->ops->submit(c->engine, tag, e->op, now))
                c->unsent++;
        else
                snib__core_refused(&c->core, e, now);
}

static void freed(struct snib_client *c, struct snib_grant *g)
{
        snib__members_freed(g);
        snib__grant_free(g);
        if (c->closer && c->core.farewells == 0)
                snib__wait_finish(c, c->closer);
}

void snib__effects_run(struct snib_client *c, snib__ns now)
{
        struct snib__effect e;

        while (snib__core_next(&c->core, &e)) {
                switch (e.kind) {
                case SNIB__EFFECT_LOST:
                        lost(c, snib__grant_of(e.hold));
                        break;
                case SNIB__EFFECT_ANSWER:
                        answered(c, e.call);
                        break;
                case SNIB__EFFECT_ANSWER_ASK:
                        snib__question_answered(c, e.ask->owner_data);
                        break;
                case SNIB__EFFECT_SUBMIT:
                        submit(c, &e, now);
                        break;
                case SNIB__EFFECT_WATCH:
                        c->engine->ops->watch(c->engine,
                                              &(struct snib__topic){e.hold->name, e.hold->kind, e.hold->known.id}, now);
                        break;
                case SNIB__EFFECT_UNWATCH:
                        c->engine->ops->unwatch(
                            c->engine, &(struct snib__topic){e.hold->name, e.hold->kind, e.hold->known.id}, now);
                        break;
                case SNIB__EFFECT_FREE:
                        freed(c, snib__grant_of(e.hold));
                        break;
                }
        }
        if (c->core.outstanding == 0)
                c->silent_since = 0;
}

static void listed(struct snib__inventory *l, const struct snib__note *n)
{
        struct snib__listed *entry = snib__alloc(sizeof(*entry) + n->name.length + 1);

        if (!entry) {
                l->result = SNIB_ENOMEM;
                return;
        }
        entry->reply = n->reply;
        entry->reply.error_text = NULL;
        entry->length = n->name.length;
        memcpy(entry->name, n->name.bytes, n->name.length);
        *l->last = entry;
        l->last = &entry->next;
        l->count++;
}

static void listing_done(struct snib_client *c, struct snib__inventory *l, const struct snib__reply *r)
{
        if (r->status == SNIB__FAILED) {
                l->result = r->error;
                snib__fault_set(&l->fault, r);
        }
        snib__wait_finish(c, l->wait);
}

static void reply(struct snib_client *c, const struct snib__note *n, snib__ns now)
{
        unsigned kind;
        void *record = tag_record(n->tag, &kind);
        struct snib__inventory *l = record;
        bool heard = true;

        if (c->silent_since) /* else it is late, or part of a listing */
                snib__look_answered(&c->look, 1, now - c->silent_since);
        c->silent_since = now;
        if (kind == TAG_HOLD)
                heard = snib__core_reply_hold(&c->core, record, n->tag.cookie, n->tag.attempt, &n->reply, now);
        else if (kind == TAG_ASK)
                heard = snib__core_reply_ask(&c->core, record, n->tag.cookie, n->tag.attempt, &n->reply, now);
        else if (l->cookie == n->tag.cookie && l->wait)
                listing_done(c, l, &n->reply);
        if (!heard && c->engine->ops->unheard)
                c->engine->ops->unheard(c->engine, n->tag);
}

static void link_changed(struct snib_client *c, const struct snib__note *n, snib__ns now)
{
        bool up = n->kind == SNIB__NOTE_LINK_UP;

        snib__client_trace(c, "link %s %s", up ? "up" : "down", !up && n->reply.error_text ? n->reply.error_text : "");
        snib__core_link(&c->core, up, n->reply.error, n->reply.engine_code, n->reply.error_text, now);
        if (!c->opener || (!up && n->reply.error == 0))
                return;
        if (!up)
                snib__fault_set(&c->link_fault, &n->reply);
        snib__wait_finish(c, c->opener);
}

struct relinked {
        const struct snib__engine *engine;
        const struct snib__note *note;
};

static bool concerns(const void *arg, struct snib__name name)
{
        const struct relinked *r = arg;

        return r->engine->ops->concerns(r->engine, r->note, name);
}

static void note(struct snib_client *c, const struct snib__note *n, snib__ns now)
{
        unsigned kind;
        struct snib__inventory *l;

        switch (n->kind) {
        case SNIB__NOTE_REPLY:
                reply(c, n, now);
                break;
        case SNIB__NOTE_CHANGED:
                snib__core_changed(&c->core, n->name, n->all, now);
                break;
        case SNIB__NOTE_WATCHING:
                snib__core_watching(&c->core, n->name, &n->id, n->since, now);
                break;
        case SNIB__NOTE_GRANTED:
                snib__core_granted(&c->core, n->name, &n->id, n->tag.attempt, &n->reply, now);
                break;
        case SNIB__NOTE_NEXT:
                snib__core_next_in_line(&c->core, n->name, &n->id, now);
                break;
        case SNIB__NOTE_ENDED:
                snib__core_ended(&c->core, n->name, &n->id, now);
                break;
        case SNIB__NOTE_LINK_UP:
        case SNIB__NOTE_LINK_DOWN:
                link_changed(c, n, now);
                break;
        case SNIB__NOTE_RELINKED:
                snib__core_relinked(&c->core, concerns, &(struct relinked){c->engine, n}, now);
                break;
        case SNIB__NOTE_LISTED:
                l = tag_record(n->tag, &kind);
                snib__assert(kind == TAG_LISTING);
                if (l->cookie == n->tag.cookie && l->wait)
                        listed(l, n);
                break;
        }
}

void snib__notes_take(struct snib_client *c)
{
        _unset_ struct snib__note n;
        snib__ns now;

        if (!c->engine->ops->next(c->engine, &n))
                return;
        /* What was read may have come after the lock was taken; core is not to believe that it came
         * earlier. */
        now = c->now = snib__os_now();
        do {
                note(c, &n, now);
                snib__effects_run(c, now);
        } while (c->engine->ops->next(c->engine, &n));
}

void snib__inventory_begin(struct snib_client *c, struct snib__inventory *l, snib__ns now)
{
        struct snib__tag tag = {.object = tag_object(l, TAG_LISTING), .cookie = l->cookie};

        if (c->engine->ops->list(c->engine, tag, now))
                return;
        l->result = SNIB_ENOMEM;
        snib__wait_finish(c, l->wait);
}
