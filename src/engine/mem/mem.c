/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mem: engine: the model inside this process, for tests, and for programs that want the same
 * API between their threads. Not a store: nothing outlives the last client of a namespace.
 *
 * submit() does all the work and leaves a note; process() hands notes out. What concerns a client
 * other than the caller (its waiter may go on, its hold was ended) is left in that client's queue,
 * and its descriptor wakes it. A lease may end while others wait: every client is due at the first
 * such end in its namespace, and whoever comes first does it for all.
 *
 * Thread class of engine.h: one thread at a time per client; clients of one namespace on different
 * threads meet under the mutex of space.c, which guards `pending`, `armed`, `tells` and the
 * namespace. Everything else belongs to the thread that calls.
 *
 * A forked child's copy is inert: `inert` is looked at before the mutex, which some thread of the
 * parent may have had at the fork.
 */

#include "engine/mem/mem.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "engine/mem/space.h"
#include "engine/outbox.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Completions that are kept for reuse, so that a lock taken and released in a loop allocates
 * nothing. */
#define SPARES_MAX 64

/* Whom one call of the model tells: at most all who wait and all who held. */
static struct snib__tell tells[SNIB__WAITERS_MAX + SNIB__SEATS_MAX];

struct entry {
        struct snib__letter letter; /* its link: pending, in the outbox, or spare */
        struct snib__note note;
        void *data; /* copy of note.reply.data, whose register another client may change */
        char name[];
};

struct client {
        struct snib__engine base;
        struct snib__mem_space *space;
        struct snib__list link;    /* in space->clients */
        struct snib__list pending; /* notes that process() has not seen yet */
        struct snib__outbox outbox;
        struct snib__list spares; /* entries without a name */
        int spare_count;
        snib__ns armed; /* what interest() last said */
        int fd;         /* eventfd: pending has something from another client */
        bool inert;
        char uuid[37];
};

static struct client *client_of(struct snib__engine *e)
{
        return snib__container(e, struct client, base);
}

/* A note with a copy of the name, or NULL. Touches no client, because it may be for another than
 * the one that calls. */
static struct entry *entry_new(enum snib__note_kind kind, struct snib__name name)
{
        struct entry *n = snib__alloc(sizeof(*n) + name.length);

        if (!n)
                return NULL;
        n->note.kind = kind;
        n->note.name = (struct snib__name){n->name, name.length};
        if (name.length)
                memcpy(n->name, name.bytes, name.length);
        return n;
}

/* A note without a name for the client that calls, or NULL. */
static struct entry *entry_plain(struct client *c, enum snib__note_kind kind)
{
        struct snib__list *spare = snib__list_take(&c->spares);
        struct entry *n;

        if (!spare)
                return entry_new(kind, (struct snib__name){NULL, 0});
        c->spare_count--;
        n = snib__container(spare, struct entry, letter.link);
        n->note = (struct snib__note){.kind = kind};
        return n;
}

static void entry_free(struct entry *n)
{
        free(n->data);
        free(n);
}

static void entry_done(struct client *c, struct entry *n)
{
        free(n->data);
        n->data = NULL;
        if (n->note.name.length || c->spare_count == SPARES_MAX) {
                free(n);
                return;
        }
        snib__list_append(&c->spares, &n->letter.link);
        c->spare_count++;
}

static bool write_note(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        (void)owner;
        *ret = snib__container(l, struct entry, letter)->note;
        return false;
}

static void take_back(void *owner, struct snib__letter *l, snib__ns now)
{
        (void)now;
        entry_done(owner, snib__container(l, struct entry, letter));
}

static const struct snib__letter_kind letter = {.write = write_note, .back = take_back};

static void entries_free(struct snib__list *list)
{
        for (struct snib__list *it; (it = snib__list_take(list));)
                entry_free(snib__container(it, struct entry, letter.link));
}

static void wake(struct client *c)
{
        uint64_t one = 1;
        ssize_t n;

        /* A full counter is readable all the same. */
        do
                n = write(c->fd, &one, sizeof(one));
        while (n < 0 && errno == EINTR);
}

static struct client *owner_of(const struct snib__mem_space *s, const struct snib__id *id)
{
        snib__list_each (it, &s->clients) {
                struct client *c = snib__container(it, struct client, link);

                if (snib__id_of_client(id, c->uuid))
                        return c;
        }
        return NULL;
}

/* Leaves a note about an id with the client it belongs to, if it still is there. Without memory the
 * note is lost, which costs a waiter the time to its next ACQUIRE and a holder the time to its next
 * RENEW. */
static void tell(struct client *from, const struct snib__mem_record *r, const struct snib__tell *news)
{
        enum snib__note_kind kind = news->kind == SNIB__TELL_GRANTED ? SNIB__NOTE_GRANTED : SNIB__NOTE_ENDED;
        struct client *to = owner_of(from->space, &news->id);
        struct entry *n = to ? entry_new(kind, r->name) : NULL;

        if (!n)
                return;
        n->note.id = news->id;
        n->note.tag.attempt = news->number;
        n->note.reply.token = news->token;
        snib__list_append(&to->pending, &n->letter.link);
        if (to != from)
                wake(to);
}

/* Whoever sleeps beyond an end that others wait for. */
static void rearm(struct client *from, const struct snib__mem_record *r)
{
        if (r->record.queued == 0)
                return;
        snib__list_each (it, &from->space->clients) {
                struct client *c = snib__container(it, struct client, link);

                if (c != from && r->due < c->armed) {
                        c->armed = r->due;
                        wake(c);
                }
        }
}

static struct snib__change fresh_change(void)
{
        return (struct snib__change){.tell = tells, .tell_room = sizeof(tells) / sizeof(tells[0])};
}

/* After a call of the model: passes on what changed. */
static void publish(struct client *c, struct snib__mem_record *r, const struct snib__change *change)
{
        bool changed = change->record || change->holders || change->queue || change->dones;

        for (size_t i = 0; i < change->tells; i++)
                tell(c, r, &change->tell[i]);
        if (!changed && (snib__tree_linked(&r->by_due) || snib__list_linked(&r->idle)))
                return;

        bool idle = snib__record_idle(&r->record);

        snib__mem_record_settle(c->space, r);
        if (!idle)
                rearm(c, r);
}

/* A question about anything changes only what is over, which the model ends before all else. */
static const struct snib__op question = {.verb = SNIB__QUERY, .kind = SNIB_KIND_ANY};

/* Ends what is over. */
static void expire(struct client *c, snib__ns now)
{
        struct snib__clock clock = snib__mem_space_clock(c->space, now);
        struct snib__mem_record *r;

        while ((r = snib__mem_space_first_due(c->space)) && r->due <= clock.lease_ms * SNIB__MS) {
                struct snib__change change = fresh_change();
                struct snib__reply reply;

                if (!snib__mem_record_apply(r, &question, clock, &reply, &change))
                        break;
                publish(c, r, &change);
        }
}

/* A reply outlives the mutex, and the register it shows may not. */
static bool keep_data(struct entry *n)
{
        struct snib__reply *reply = &n->note.reply;

        if (reply->data_length == 0)
                return true;
        n->data = snib__copy(reply->data, reply->data_length);
        reply->data = n->data;
        return n->data != NULL;
}

static void execute(struct client *c, const struct snib__op *op, snib__ns now, struct entry *n)
{
        struct snib__mem_record *r = snib__mem_record_get(c->space, op->name);
        struct snib__clock clock = snib__mem_space_clock(c->space, now);
        struct snib__change change = fresh_change();
        bool done = r && snib__mem_record_apply(r, op, clock, &n->note.reply, &change);

        if (!done || !keep_data(n))
                n->note.reply = snib__reply_failed(op->kind, &snib__reply_no_memory);
        if (r)
                publish(c, r, &change);
}

static bool mem_submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        struct client *c = client_of(e);
        struct entry *n = c->inert ? NULL : entry_plain(c, SNIB__NOTE_REPLY);

        if (!n)
                return false;
        n->note.tag = tag;
        snib__mem_lock();
        execute(c, op, now, n);
        snib__list_append(&c->pending, &n->letter.link);
        snib__mem_unlock();
        return true;
}

/* Notes for all that is held or exists: true, or false when memory ran out. */
static bool list_held(struct client *c, struct snib__tag tag, struct snib__clock clock, struct snib__list *found)
{
        for (struct snib__mem_record *r = NULL; (r = snib__mem_space_next(c->space, r));) {
                struct snib__change change = fresh_change();
                struct entry *n;

                if (r->record.held == 0 && !r->record.exists)
                        continue;
                n = entry_new(SNIB__NOTE_LISTED, r->name);
                if (!n)
                        return false;
                n->note.tag = tag;
                (void)snib__mem_record_apply(r, &question, clock, &n->note.reply, &change);
                /* What is over was ended before, so there is nothing to pass on. */
                snib__assert(!change.record && !change.holders && !change.queue);
                n->note.reply.data = NULL; /* a list shows that there is a value, not which */
                n->note.reply.data_length = 0;
                snib__list_append(found, &n->letter.link);
        }
        return true;
}

static bool mem_list(struct snib__engine *e, struct snib__tag tag, snib__ns now)
{
        struct client *c = client_of(e);
        struct entry *end = c->inert ? NULL : entry_plain(c, SNIB__NOTE_REPLY);
        struct snib__list found;

        if (!end)
                return false;
        end->note.tag = tag;
        end->note.reply = (struct snib__reply){.status = SNIB__INFO, .left_ms = -1, .waiters = -1};
        snib__list_init(&found);
        snib__mem_lock();
        expire(c, now);
        if (list_held(c, tag, snib__mem_space_clock(c->space, now), &found)) {
                for (struct snib__list *it; (it = snib__list_take(&found));)
                        snib__list_append(&c->pending, it);
        } else {
                end->note.reply = snib__reply_failed(0, &snib__reply_no_memory);
        }
        snib__list_append(&c->pending, &end->letter.link);
        snib__mem_unlock();
        entries_free(&found);
        return true;
}

static void mem_interest(struct snib__engine *e, snib__ns now, struct snib__interest *ret)
{
        struct client *c = client_of(e);

        *ret = (struct snib__interest){.deadline = SNIB__NEVER};
        if (c->inert)
                return;
        ret->count = 1;
        ret->fds[0].fd = c->fd;
        ret->fds[0].events = POLLIN;

        snib__mem_lock();
        struct snib__mem_record *r = snib__mem_space_first_due(c->space);

        if (!snib__list_empty(&c->pending) || !snib__outbox_empty(&c->outbox))
                ret->deadline = now;
        else if (r)
                ret->deadline = r->due;
        c->armed = ret->deadline;
        snib__mem_unlock();
}

static void mem_process(struct snib__engine *e, const struct snib__interest *ready, snib__ns now)
{
        struct client *c = client_of(e);
        uint64_t count;

        (void)ready;
        if (c->inert)
                return;
        snib__outbox_recycle(&c->outbox, now);
        /* Emptied before the queue is looked at: what comes later makes it readable again. */
        (void)!read(c->fd, &count, sizeof(count));

        snib__mem_lock();
        expire(c, now);
        for (struct snib__list *it; (it = snib__list_take(&c->pending));)
                snib__outbox_post(&c->outbox, &snib__container(it, struct entry, letter.link)->letter, &letter);
        snib__mem_unlock();
}

static bool mem_next(struct snib__engine *e, struct snib__note *ret)
{
        struct client *c = client_of(e);
        return !c->inert && snib__outbox_next(&c->outbox, ret);
}

/* An id of this client that stands in the record, waiters first: a hold handed over to one that is
 * to be buried next would cost a token. */
static bool find_own(const struct client *c, const struct snib__record *r, struct snib__id *ret)
{
        const struct snib__seat *found = NULL;

        for (size_t i = 0; i < r->queued && !found; i++)
                if (snib__id_of_client(&r->queue[i].seat.id, c->uuid))
                        found = &r->queue[i].seat;
        for (size_t i = 0; i < r->held && !found; i++)
                if (snib__id_of_client(&r->holder[i].seat.id, c->uuid))
                        found = &r->holder[i].seat;
        if (found)
                *ret = found->id;
        return found != NULL;
}

/* The client is no more: what it holds goes to others, where it waits it does not. */
static void bury_all(struct client *c)
{
        /* A client that closes does not say what time it is; the time that others came with last
         * will do. */
        struct snib__clock clock = snib__mem_space_clock(c->space, 0);

        for (struct snib__mem_record *r = NULL; (r = snib__mem_space_next(c->space, r));) {
                struct snib__change change = fresh_change();
                struct snib__id id;

                while (find_own(c, &r->record, &id)) {
                        (void)snib__record_bury(&r->record, &id, clock, &change);
                        publish(c, r, &change);
                }
        }
}

static void mem_close(struct snib__engine *e)
{
        struct client *c = client_of(e);

        if (!c->inert && c->space) {
                snib__mem_lock();
                snib__list_remove(&c->link);
                bury_all(c);
                c->space = snib__mem_space_unref(c->space);
                snib__mem_unlock();
        }
        /* Inert: another thread of the parent may have been about to leave a note here. */
        if (!c->inert)
                entries_free(&c->pending);
        for (struct snib__letter *l; (l = snib__outbox_drain(&c->outbox));)
                entry_free(snib__container(l, struct entry, letter));
        entries_free(&c->spares);
        if (c->fd >= 0)
                (void)close(c->fd);
        free(c);
}

static void mem_forked(struct snib__engine *e)
{
        struct client *c = client_of(e);

        if (c->inert)
                return;
        c->inert = true;
        (void)close(c->fd);
        c->fd = -1;
        snib__mem_space_forked(c->space);
}

static int check_url(struct snib__url *url, struct snib_error *err)
{
        if (url->has_authority)
                return snib__error(err, SNIB_EURL, "a mem: URL has no host; write mem: or mem:NAME");
        return snib__url_unused(url, "timeout, trace", err);
}

/* Gives the client its descriptor, its place in the namespace, and the news that it is
 * connected. */
static int join(struct client *c, const char *name, struct snib_error *err)
{
        struct entry *up = entry_plain(c, SNIB__NOTE_LINK_UP);

        if (!up)
                return snib__error(err, SNIB_ENOMEM, "out of memory while opening mem:%s; free some", name);
        snib__list_append(&c->pending, &up->letter.link);
        c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (c->fd < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, errno, "eventfd for mem:");

        snib__mem_lock();
        c->space = snib__mem_space_ref(name);
        if (c->space)
                snib__list_append(&c->space->clients, &c->link);
        snib__mem_unlock();
        return c->space ? 0 : snib__error(err, SNIB_ENOMEM, "out of memory while opening mem:%s; free some", name);
}

static int mem_open(struct snib__engine **ret, const struct snib__engine_config *config, snib__ns now,
                    struct snib_error *err)
{
        int r = check_url(config->url, err);
        struct client *c;

        (void)now;
        if (r < 0)
                return r;
        c = snib__alloc(sizeof(*c));
        if (!c)
                return snib__error(err, SNIB_ENOMEM, "out of memory while opening mem:%s; free some",
                                   config->url->path);
        c->base.ops = &snib__mem_engine;
        c->fd = -1;
        memcpy(c->uuid, config->uuid, sizeof(c->uuid));
        snib__list_init(&c->pending);
        snib__outbox_init(&c->outbox, c);
        snib__list_init(&c->spares);
        r = join(c, config->url->path, err);
        if (r < 0)
                mem_close(&c->base);
        else
                *ret = &c->base;
        return r;
}

static const char *const mem_schemes[] = {"mem", NULL};

static const struct snib__facts facts = {
    .info =
        {
            .size = sizeof(struct snib_engine_info),
            .name = "mem",
            .schemes = "mem:",
            .summary = "between the threads of one process; for tests and for trying things out",
            .exclusion = "a mutex of this process",
            .on_crash = "the process is the store: its end is the end of all holds",
            .on_pause = "the whole process pauses, waiters too; holds whose lease ended meanwhile are lost",
            .on_partition = "there is no network",
            .on_failover = "there is no second store",
            .caps = SNIB_CAP_FENCING | SNIB_CAP_QUEUE | SNIB_CAP_DEATH_NOTICE | SNIB_CAP_WRITER_IN_TURN |
                    SNIB_CAP_LOCK | SNIB_CAP_FENCED | SNIB_CAP_FAIR | SNIB_CAP_RWLOCK | SNIB_CAP_DOWNGRADE |
                    SNIB_CAP_SEMAPHORE | SNIB_CAP_PERMITS | SNIB_CAP_LATCH | SNIB_CAP_ELECTION | SNIB_CAP_REGISTER |
                    SNIB_CAP_LOCK_QUEUE,
        },
    .queues = SNIB__KINDS_ALL,
    .token_block = SNIB__TOKEN_BLOCK,
};
static const struct snib__facts *const forms[] = {&facts, NULL};

static const struct snib__facts *mem_facts(const struct snib__engine *e)
{
        (void)e;
        return &facts;
}

const struct snib__engine_ops snib__mem_engine = {
    .schemes = mem_schemes,
    .forms = forms,
    .facts = mem_facts,
    .open = mem_open,
    .submit = mem_submit,
    .list = mem_list,
    .interest = mem_interest,
    .process = mem_process,
    .next = mem_next,
    .close = mem_close,
    .forked = mem_forked,
};
