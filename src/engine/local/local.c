/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The local: engine: the seam between the engine interface and the file shared by the processes of
 * one machine. Requests become items; an item is run at once on the caller's thread when nobody is
 * in the way, else by the store's worker; its answer becomes a note. Not a store (item.c,
 * rows.c), not an object (the model).
 *
 * Invariants: every submitted request leaves exactly one REPLY. Items of one client are run in the
 * order of submission: while one is with the worker, all later ones go there too. One thread at a
 * time, except for what worker.h says of `done`.
 */

#include "engine/local/local.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "engine/local/client.h"
#include "engine/local/default.h"
#include <errno.h>
#include <fcntl.h>
#include <snib/register.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_DEFAULT_MS 3000
/* The kernel may keep as few as ten datagrams for a socket. Whoever finds about that many may have
 * lost some. */
#define MAILS_MANY 8
#define MAILS_A_TIME 64
#define EVENTS_A_TIME 16

static struct snib__local *local(struct snib__engine *e)
{
        return snib__container(e, struct snib__local, base);
}

static snib__ns clock_now(void)
{
        struct timespec t;

        (void)clock_gettime(CLOCK_BOOTTIME, &t);
        return (snib__ns)t.tv_sec * SNIB__S + t.tv_nsec;
}

static struct snib__item *item_of(struct snib__list *l)
{
        return snib__container(l, struct snib__item, letter.link);
}

/* In the worker's thread, with its lock. */
static void deliver(struct snib__work *work)
{
        struct snib__item *item = snib__container(work, struct snib__item, work);
        struct snib__local *c = item->client;
        uint64_t one = 1;

        snib__list_append(&c->done, &work->link);
        (void)!write(c->event_fd, &one, sizeof(one));
}

/* What it kept for one request alone. */
static void item_forget(struct snib__item *item)
{
        free(item->payload);
        free(item->data);
        item->payload = item->data = NULL;
        item->data_room = 0;
}

/* An item from the pool; NULL without memory. */
static struct snib__item *item_get(struct snib__local *c, enum snib__task task)
{
        struct snib__list *l = snib__list_take(&c->spare);
        struct snib__item *item = l ? item_of(l) : snib__alloc(sizeof(*item));

        if (!item)
                return NULL;
        memset(&item->op, 0, sizeof(item->op));
        memset(&item->note, 0, sizeof(item->note));
        snib__list_init(&item->letter.link);
        snib__list_init(&item->work.link);
        item->error.size = sizeof(item->error);
        item->error.text[0] = 0;
        item->error.engine_code = 0;
        item->client = c;
        item->task = task;
        item->mails = 0;
        item->new_hold = item->mailed = item->granted = false;
        item->work.finished = false;
        item->work.run = snib__item_run;
        item->work.after = snib__item_after;
        item->work.deliver = deliver;
        return item;
}

/* Its note says nothing. */
static void item_drop(struct snib__local *c, struct snib__item *item)
{
        snib__list_append(&c->spare, &item->letter.link);
}

static void set_name(struct snib__item *item, struct snib__name name)
{
        memcpy(item->name, name.bytes, name.length);
        item->name[name.length] = 0;
        item->op.name = (struct snib__name){.bytes = item->name, .length = name.length};
}

static bool write_note(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        (void)owner;
        *ret = item_of(&l->link)->note;
        return false;
}

static void take_back(void *owner, struct snib__letter *l, snib__ns now)
{
        (void)now;
        item_forget(item_of(&l->link));
        item_drop(owner, item_of(&l->link));
}

static const struct snib__letter_kind letter = {.write = write_note, .back = take_back};

static void push_note(struct snib__local *c, struct snib__item *item, enum snib__note_kind kind)
{
        item->note.kind = kind;
        item->note.name = item->op.name;
        item->note.id = item->op.id;
        snib__outbox_post(&c->outbox, &item->letter, &letter);
}

/* A note that answers nothing. Without memory it is lost (NULL); core repeats what it waits for. */
static struct snib__item *tell(struct snib__local *c, enum snib__note_kind kind, struct snib__name name,
                               const struct snib__id *id)
{
        struct snib__item *item = item_get(c, SNIB__TASK_OP);

        if (!item)
                return NULL;
        set_name(item, name);
        if (id)
                item->op.id = *id;
        push_note(c, item, kind);
        return item;
}

/* A RELEASE that is answered with yes: it ended one of the holds that were counted. */
static bool ends_hold(const struct snib__op *op)
{
        return !op->permits && !snib__kind(op->kind)->momentary;
}

/* It waits from now on. Whom mail reached already should see where it stands. */
static void put_wait(struct snib__local *c, const struct snib__item *item, snib__ns now)
{
        struct snib__local_wait *wait;

        snib__wait_put(c, item, now);
        wait = item->mailed ? snib__wait_find(c, &item->op.id, item->op.name) : NULL;
        if (wait)
                snib__wait_at(c, wait, now);
}

static void op_done(struct snib__local *c, struct snib__item *item, snib__ns now)
{
        const struct snib__reply *reply = &item->note.reply;
        struct snib__local_wait *wait = c->waits.count ? snib__wait_find(c, &item->op.id, item->op.name) : NULL;
        bool asks = item->op.verb == SNIB__ACQUIRE || item->op.verb == SNIB__OBSERVE;

        if (asks && reply->status == SNIB__BUSY && item->before.standing == SNIB__STANDS_QUEUED) {
                if (!item->granted) /* since then */
                        put_wait(c, item, now);
        } else if (asks && reply->status != SNIB__FAILED) {
                if (reply->status == SNIB__GRANTED && (item->new_hold || wait))
                        c->holds++;
                if (wait)
                        snib__wait_remove(c, wait);
        } else if (item->op.verb == SNIB__RELEASE && reply->status != SNIB__FAILED) {
                if (!wait && reply->status == SNIB__RELEASED && ends_hold(&item->op) && c->holds > 0)
                        c->holds--;
                if (wait)
                        snib__wait_remove(c, wait);
        }
        push_note(c, item, SNIB__NOTE_REPLY);
}

static void granted(struct snib__local *c, struct snib__local_wait *wait)
{
        if (wait->granted)
                return;
        wait->granted = true;
        snib__wait_at(c, wait, SNIB__NEVER);
        (void)tell(c, SNIB__NOTE_GRANTED, (struct snib__name){wait->name, wait->length}, &wait->id);
}

/* It holds since its request `number` was executed. If that was its latest one it knows now, and
 * waits no more; `item` is that one's, if it is still with the worker. */
static void granted_for_sure(struct snib__local *c, const struct snib__mail *mail, struct snib__name name,
                             struct snib__item *item)
{
        struct snib__local_wait *wait = snib__wait_find(c, &mail->id, name);
        struct snib__item *news = tell(c, SNIB__NOTE_GRANTED, name, &mail->id);

        if (!news)
                return;
        news->note.tag.attempt = mail->number;
        news->note.reply.token = mail->token;
        c->holds++;
        if (wait)
                snib__wait_remove(c, wait);
        if (item && item->op.number == mail->number)
                item->granted = true;
}

static void look_done(struct snib__local *c, struct snib__item *item, snib__ns now)
{
        struct snib__local_wait *wait = snib__wait_find(c, &item->op.id, item->op.name);

        if (wait)
                wait->looking = false;
        if (wait && item->note.reply.status == SNIB__FAILED)
                snib__wait_at(c, wait, snib__after(now, SNIB__S));
        else if (wait && item->before.standing == SNIB__STANDS_QUEUED)
                snib__wait_put(c, item, now);
        else if (wait) /* It sits; or what it waited for needs no seat; or its place is gone: it must ask again. */
                granted(c, wait);
        item_drop(c, item);
}

static void complete(struct snib__local *c, struct snib__item *item, snib__ns now)
{
        if (item->task == SNIB__TASK_LOOK)
                look_done(c, item, now);
        else
                op_done(c, item, now);
}

/* The worker may come to a request after its sender has given up and freed what it points at. */
static int take_payload(struct snib__item *item)
{
        struct snib__op *op = &item->op;
        size_t size = op->permits ? op->permit_count * sizeof(op->permits[0]) : op->data_length;
        const void *from = op->permits ? (const void *)op->permits : op->data;

        if (size == 0 || item->payload)
                return 0;
        item->payload = snib__alloc(size);
        if (!item->payload)
                return snib__error(&item->error, SNIB_ENOMEM, "out of memory");
        memcpy(item->payload, from, size);
        if (op->permits)
                op->permits = item->payload;
        else
                op->data = item->payload;
        return 0;
}

static void dispatch(struct snib__local *c, struct snib__item *item, snib__ns now)
{
        int r;

        item->due = snib__after(now, c->timeout_ms * SNIB__MS);
        if (snib__list_empty(&c->outstanding) && snib__worker_now(c->store, &item->work)) {
                complete(c, item, now);
                return;
        }
        r = take_payload(item);
        if (r == 0)
                r = snib__worker_add(c->store->worker, &item->work, &item->error);
        if (r < 0) {
                snib__item_fail(item, r);
                complete(c, item, now);
                return;
        }
        snib__list_append(&c->outstanding, &item->letter.link);
}

void snib__local_look(struct snib__local *c, struct snib__local_wait *wait, snib__ns now)
{
        struct snib__item *item = wait->looking ? NULL : item_get(c, SNIB__TASK_LOOK);

        if (!item) {
                snib__wait_at(c, wait, wait->looking ? SNIB__NEVER : snib__after(now, SNIB__S));
                return;
        }
        wait->looking = true;
        snib__wait_at(c, wait, SNIB__NEVER);
        item->op.verb = SNIB__QUERY;
        item->op.kind = SNIB_KIND_ANY;
        item->op.id = wait->id;
        set_name(item, (struct snib__name){wait->name, wait->length});
        item->work.gate = false;
        dispatch(c, item, now);
}

static int check_op(struct snib__item *item, const struct snib__op *op)
{
        if (op->name.length < 1 || op->name.length > SNIB_NAME_MAX)
                return snib__error(&item->error, SNIB_ENAME, "the name has %zu bytes: 1 to %d are possible",
                                   op->name.length, SNIB_NAME_MAX);
        if (memchr(op->name.bytes, 0, op->name.length))
                return snib__error(&item->error, SNIB_ENAME, "the name has a NUL byte in it");
        if (!snib__id_set(&op->id) && op->verb != SNIB__QUERY && op->verb != SNIB__FORCE)
                return snib__error(&item->error, SNIB_EINVAL, "the request has no id");
        if (op->data_length > SNIB_REGISTER_MAX)
                return snib__error(&item->error, SNIB_ELIMIT, "the value has %zu bytes: up to %zu are possible",
                                   op->data_length, SNIB_REGISTER_MAX);
        return 0;
}

static bool local_submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        struct snib__local *c = local(e);
        struct snib__item *item = item_get(c, SNIB__TASK_OP);
        int r;

        if (!item)
                return false;
        item->note.tag = tag;
        r = check_op(item, op);
        if (r < 0) {
                snib__item_fail(item, r);
                push_note(c, item, SNIB__NOTE_REPLY);
                return true;
        }
        item->op = *op;
        set_name(item, op->name);
        item->work.gate = op->verb != SNIB__QUERY;
        dispatch(c, item, now);
        return true;
}

/* SQLITE_DONE when everything has its note. */
static int list_all(struct snib__local *c, struct snib__tag tag, snib__ns now)
{
        struct snib__name name;
        int rc;

        while ((rc = snib__rows_list(c->store, &name)) == SQLITE_ROW) {
                struct snib__item *item = item_get(c, SNIB__TASK_LIST);
                if (!item)
                        return SQLITE_NOMEM;
                if (name.length >= 1 && name.length <= SNIB_NAME_MAX) {
                        set_name(item, name);
                        item->op.verb = SNIB__QUERY;
                        item->op.kind = SNIB_KIND_ANY;
                        rc = snib__item_peek(item, now / SNIB__MS);
                }
                if (!item->note.reply.held) {
                        item_drop(c, item);
                } else {
                        item->note.tag = tag;
                        push_note(c, item, SNIB__NOTE_LISTED);
                }
                if (rc != SQLITE_ROW && rc != SQLITE_OK)
                        return rc;
        }
        return rc;
}

static bool local_list(struct snib__engine *e, struct snib__tag tag, snib__ns now)
{
        struct snib__local *c = local(e);
        struct snib__item *item = item_get(c, SNIB__TASK_OP);
        int rc = SQLITE_BUSY;

        if (!item)
                return false;
        item->note.tag = tag;
        item->note.reply.status = SNIB__INFO;
        item->note.reply.left_ms = -1;
        item->note.reply.waiters = -1;
        /* The lock is held for a transaction at most: nobody waits for the gate with it. */
        (void)pthread_mutex_lock(&c->store->lock);
        rc = list_all(c, tag, now);
        if (rc != SQLITE_DONE)
                snib__item_fail(item, snib__db_failed(c->store, rc, "listing", &item->error));
        snib__rows_list_end(c->store);
        (void)pthread_mutex_unlock(&c->store->lock);
        push_note(c, item, SNIB__NOTE_REPLY);
        return true;
}

static void local_interest(struct snib__engine *e, snib__ns now, struct snib__interest *ret)
{
        struct snib__local *c = local(e);

        ret->kept = ret->tidying = false;
        ret->changes = 0;
        ret->count = 1;
        ret->fds[0].fd = c->epoll_fd;
        ret->fds[0].events = EPOLLIN;
        ret->deadline = snib__waits_deadline(c);
        if (!snib__list_empty(&c->outstanding))
                ret->deadline = snib__min(ret->deadline, item_of(c->outstanding.next)->due);
        if (!snib__outbox_empty(&c->outbox))
                ret->deadline = now;
}

static void collect_done(struct snib__local *c, snib__ns now)
{
        struct snib__list done;
        uint64_t count;

        snib__list_init(&done);
        (void)!read(c->event_fd, &count, sizeof(count));
        snib__worker_lock(c->store->worker);
        for (struct snib__list *l; (l = snib__list_take(&c->done));)
                snib__list_append(&done, l);
        snib__worker_unlock(c->store->worker);
        for (struct snib__list *l; (l = snib__list_take(&done));) {
                struct snib__item *item = snib__container(l, struct snib__item, work.link);
                snib__list_remove(&item->letter.link);
                complete(c, item, now);
        }
}

/* The request of this id that is with the worker, which may have stored a waiter that others have
 * granted since. */
static struct snib__item *underway(struct snib__local *c, const struct snib__id *id)
{
        snib__list_each (l, &c->outstanding)
                if (item_of(l)->task == SNIB__TASK_OP && snib__id_equal(&item_of(l)->op.id, id))
                        return item_of(l);
        return NULL;
}

static void take_mail(struct snib__local *c, const struct snib__mail *mail, struct snib__name name, snib__ns now)
{
        struct snib__local_wait *wait = snib__wait_find(c, &mail->id, name);
        struct snib__item *item = underway(c, &mail->id);

        if (item)
                item->mailed = true;
        if (mail->kind == SNIB__MAIL_ENDED)
                (void)tell(c, SNIB__NOTE_ENDED, name, &mail->id);
        else if (mail->number)
                granted_for_sure(c, mail, name, item);
        else if (wait && mail->kind == SNIB__MAIL_GRANTED)
                granted(c, wait);
        else if (wait && !wait->granted)
                snib__wait_at(c, wait, now);
}

static void read_mails(struct snib__local *c, snib__ns now)
{
        char buffer[SNIB__MAIL_SIZE_MAX + 1];
        struct snib__mail mail;
        struct snib__name name;
        int count = 0;

        for (; count < MAILS_A_TIME; count++) {
                ssize_t n = recv(c->mail_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
                if (n < 0)
                        break;
                if (snib__mail_parse(buffer, (size_t)n, c->uuid, &mail, &name))
                        take_mail(c, &mail, name, now);
        }
        if (count >= MAILS_MANY)
                snib__waits_all_at(c, now);
}

static void poll_events(struct snib__local *c, snib__ns now)
{
        struct epoll_event event[EVENTS_A_TIME];
        bool mails = false, done = false;
        int n;

        c->polled = now;
        n = epoll_wait(c->epoll_fd, event, EVENTS_A_TIME, 0);
        /* Peers first: the other two may end waits, and with them peers. */
        for (int i = 0; i < n; i++) {
                if (event[i].data.ptr == &c->mail_fd)
                        mails = true;
                else if (event[i].data.ptr == &c->event_fd)
                        done = true;
                else
                        snib__waits_peer_ended(c, event[i].data.ptr, now);
        }
        if (mails)
                read_mails(c, now);
        if (done)
                collect_done(c, now);
}

/* Whose patience with the gate is at its end. */
static void give_up(struct snib__local *c, snib__ns now)
{
        char text[SNIB_ERROR_TEXT_MAX];

        while (!snib__list_empty(&c->outstanding)) {
                struct snib__item *item = item_of(c->outstanding.next);
                if (item->due > now)
                        return;
                if (!snib__worker_cancel(c->store->worker, &item->work)) {
                        item->due = snib__after(now, 100 * SNIB__MS); /* running, or done: its answer comes */
                        snib__list_remove(&item->letter.link);
                        snib__list_append(&c->outstanding, &item->letter.link);
                        continue;
                }
                snib__list_remove(&item->letter.link);
                snib__gate_blame(c->store, c->timeout_ms, text, sizeof(text));
                snib__item_fail(item, snib__error(&item->error, SNIB_ENOTREADY, "%s", text));
                complete(c, item, now);
        }
}

static void local_process(struct snib__engine *e, const struct snib__interest *ready, snib__ns now)
{
        struct snib__local *c = local(e);
        struct snib__local_wait *wait;

        snib__outbox_recycle(&c->outbox, now);
        /* Who has just submitted and asks for the answer need not pay for a look at the sockets,
         * every time. */
        if (ready && ready->count > 0
                ? ready->fds[0].events != 0
                : snib__outbox_empty(&c->outbox) || now - c->polled >= SNIB__MS || now < c->polled)
                poll_events(c, now);
        if (!snib__list_empty(&c->outstanding))
                give_up(c, now);
        while ((wait = snib__waits_due(c, now)))
                snib__local_look(c, wait, now);
}

static bool local_next(struct snib__engine *e, struct snib__note *ret)
{
        return snib__outbox_next(&local(e)->outbox, ret);
}

static void item_free(struct snib__list *l)
{
        item_forget(item_of(l));
        free(item_of(l)->mail);
        free(item_of(l));
}

static void items_free(struct snib__list *list)
{
        for (struct snib__list *l; (l = snib__list_take(list));)
                item_free(l);
}

static void close_fd(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

static void client_free(struct snib__local *c)
{
        snib__waits_done(c);
        for (struct snib__letter *l; (l = snib__outbox_drain(&c->outbox));)
                item_free(&l->link);
        items_free(&c->spare);
        items_free(&c->outstanding);
        close_fd(&c->live_fd);
        close_fd(&c->mail_fd);
        close_fd(&c->event_fd);
        close_fd(&c->epoll_fd);
        free(c);
}

/* Runs an item to its end, waiting for the gate as long as the client's patience goes. */
static bool run_to_end(struct snib__local *c, struct snib__item *item)
{
        struct snib__worker *w = c->store->worker;

        item->work.gate = true;
        item->work.deliver = NULL;
        if (snib__worker_now(c->store, &item->work))
                return true;
        return snib__worker_add(w, &item->work, &item->error) == 0 &&
               snib__worker_wait(w, &item->work, snib__after(clock_now(), c->timeout_ms * SNIB__MS));
}

static int client_enter(struct snib__local *c, struct snib_error *err)
{
        struct snib__item *item = item_get(c, SNIB__TASK_ENTER);
        char text[SNIB_ERROR_TEXT_MAX];
        int r;

        if (!item)
                return snib__error(err, SNIB_ENOMEM, "out of memory");
        if (run_to_end(c, item)) {
                r = item->note.reply.error;
                if (r < 0)
                        (void)snib__error_engine(err, r, item->error.engine_code, "%s", item->error.text);
        } else {
                snib__gate_blame(c->store, c->timeout_ms, text, sizeof(text));
                r = snib__error(err, SNIB_ENOTREADY, "%s", text);
        }
        item_drop(c, item);
        return r;
}

static int watch_fd(struct snib__local *c, int *fd)
{
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};

        return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, *fd, &event);
}

static int open_descriptors(struct snib__local *c, struct snib_error *err)
{
        const struct snib__place *p = &c->store->place;
        int r = snib__place_file(p, "live", &c->live_fd, err);

        if (r < 0)
                return r;
        r = snib__mail_open(p->fd, c->uuid, p->mode, &c->mail_fd);
        if (r < 0)
                return snib__error_engine(err, r == -EACCES || r == -EPERM ? SNIB_EPERM : SNIB_ESYSTEM, -r,
                                          "cannot make a socket in %s: %s", p->path, strerror(-r));
        c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (c->event_fd < 0 || c->epoll_fd < 0 || watch_fd(c, &c->mail_fd) < 0 || watch_fd(c, &c->event_fd) < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, errno, "epoll");
        return 0;
}

static struct snib__local *client_new(const struct snib__engine_config *config, const struct snib__place *place)
{
        struct snib__local *c = snib__alloc(sizeof(*c));

        if (!c)
                return NULL;
        snib__outbox_init(&c->outbox, c);
        snib__list_init(&c->spare);
        snib__list_init(&c->outstanding);
        snib__list_init(&c->done);
        c->base.ops = &snib__local_engine;
        c->pid = getpid();
        memcpy(c->uuid, config->uuid, sizeof(c->uuid));
        c->who = config->who;
        c->timeout_ms = place->timeout_ms        ? place->timeout_ms
                        : config->timeout_ms > 0 ? config->timeout_ms
                                                 : TIMEOUT_DEFAULT_MS;
        if (c->timeout_ms > INT32_MAX)
                c->timeout_ms = INT32_MAX;
        c->prng.state = config->seed;
        c->trace = config->trace;
        c->trace_arg = config->trace_arg;
        c->live_fd = c->mail_fd = c->event_fd = c->epoll_fd = -1;
        snib__waits_init(c);
        return c;
}

/* The rest of open(), on a client with its store. */
static int client_open(struct snib__local *c, struct snib_error *err)
{
        int r = open_descriptors(c, err);
        struct snib__item *item;

        if (r == 0)
                r = client_enter(c, err);
        if (r < 0)
                return r;
        item = item_get(c, SNIB__TASK_OP);
        if (!item)
                return snib__error(err, SNIB_ENOMEM, "out of memory");
        push_note(c, item, SNIB__NOTE_LINK_UP);
        return 0;
}

static int local_open(struct snib__engine **ret, const struct snib__engine_config *config, snib__ns now,
                      struct snib_error *err)
{
        struct snib__place place;
        struct snib__local *c;
        int r;

        if (!snib__uuid_valid(config->uuid))
                return snib__error(err, SNIB_EINVAL, "the client's uuid is not one");
        r = snib__place_open(&place, config->url, err);
        if (r < 0)
                return r;
        c = client_new(config, &place);
        r = c ? snib__store_get(&c->store, &place, err) : snib__error(err, SNIB_ENOMEM, "out of memory");
        if (r < 0) {
                snib__place_done(&place);
                if (c)
                        client_free(c);
                return r;
        }
        r = client_open(c, err);
        if (r < 0) {
                snib__mail_unlink(c->store->place.fd, c->uuid);
                snib__store_put(c->store);
                client_free(c);
                return r;
        }
        *ret = &c->base;
        return 0;
}

/* Nothing of this client is with the worker any more: what can be taken back is; what runs is
 * waited for. */
static void withdraw(struct snib__local *c)
{
        struct snib__worker *w = c->store->worker;

        snib__list_each (l, &c->outstanding)
                (void)snib__worker_wait(w, &item_of(l)->work, 0);
        snib__worker_lock(w);
        while (snib__list_take(&c->done))
                ;
        snib__worker_unlock(w);
}

static void local_close(struct snib__engine *e)
{
        struct snib__local *c = local(e);
        struct snib__item *item;

        if (c->pid != getpid()) {
                client_free(c);
                return;
        }
        withdraw(c);
        item = item_get(c, SNIB__TASK_LEAVE);
        if (item) {
                (void)run_to_end(c, item);
                item_drop(c, item);
        }
        snib__mail_unlink(c->store->place.fd, c->uuid);
        close_fd(&c->live_fd); /* from here on it is dead to everybody */
        snib__store_put(c->store);
        client_free(c);
}

static void local_forked(struct snib__engine *e)
{
        struct snib__local *c = local(e);

        snib__waits_forked(c);
        close_fd(&c->live_fd);
        close_fd(&c->mail_fd);
        close_fd(&c->event_fd);
        close_fd(&c->epoll_fd);
}

static int local_directory(char *ret, size_t size, struct snib_error *err)
{
        char path[SNIB__PLACE_PATH_MAX + 1];
        int r = snib__default_path(path, err);

        if (r == 0 && snprintf(ret, size, "%s", path) >= (int)size)
                r = snib__error(err, SNIB_EINVAL, "the directory's path has %zu bytes; give room for more than %zu",
                                strlen(path), size);
        return r;
}

static const char *const schemes[] = {"local", NULL};

static const struct snib__facts facts = {
    .info =
        {
            .size = sizeof(struct snib_engine_info),
            .name = "local",
            .schemes = "local:",
            .summary = "processes of one machine, through a file; no server",
            .exclusion = "a transaction on one file, made under flock(2) of another",
            .on_crash =
                "holds of a process that died are free at once; a restart of the machine ends all holds, tokens go on",
            .on_pause =
                "a paused holder keeps the lock until its lease ends, then learns of the loss before it goes on",
            .on_partition = "cannot happen: one machine; network file systems are refused",
            .on_failover = "none",
            .caps = SNIB_CAP_FENCING | SNIB_CAP_QUEUE | SNIB_CAP_DEATH_NOTICE | SNIB_CAP_CROSS_PROCESS |
                    SNIB_CAP_WRITER_IN_TURN | SNIB_CAP_LOCK | SNIB_CAP_FENCED | SNIB_CAP_FAIR | SNIB_CAP_RWLOCK |
                    SNIB_CAP_DOWNGRADE | SNIB_CAP_SEMAPHORE | SNIB_CAP_PERMITS | SNIB_CAP_LATCH | SNIB_CAP_ELECTION |
                    SNIB_CAP_REGISTER | SNIB_CAP_LOCK_QUEUE,
        },
    .queues = SNIB__KINDS_ALL,
    .token_block = SNIB__TOKEN_BLOCK,
};
static const struct snib__facts *const forms[] = {&facts, NULL};

static const struct snib__facts *local_facts(const struct snib__engine *e)
{
        (void)e;
        return &facts;
}

const struct snib__engine_ops snib__local_engine = {
    .schemes = schemes,
    .forms = forms,
    .facts = local_facts,
    .open = local_open,
    .submit = local_submit,
    .list = local_list,
    .interest = local_interest,
    .process = local_process,
    .next = local_next,
    .close = local_close,
    .directory = local_directory,
    .forked = local_forked,
};
