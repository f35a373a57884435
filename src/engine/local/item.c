/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one item does inside the store: load the record, bury the dead, let the model decide, store
 * what is different, and note whom to tell. Not a rule about objects: those are the model's. Runs
 * on the client's thread or on the worker's, with store.lock held and, when it writes, the gate. A
 * question (QUERY, a look) is first answered from a read transaction; only when the answer would
 * change the record is it asked again under the gate.
 *
 * Invariants: a transaction leaves nobody dead behind at the head of the queue, nor on a seat while
 * somebody asks or waits. Nobody is told to be seated who is known to be dead.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "engine/local/client.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IN_PLACE_EVERY_MS 20

static struct snib__clock read_clocks(void)
{
        struct timespec boot, wall;

        (void)clock_gettime(CLOCK_BOOTTIME, &boot);
        (void)clock_gettime(CLOCK_REALTIME, &wall);
        return (struct snib__clock){.lease_ms = (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000,
                                    .wall_us = (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000};
}

/* Whose process is known to be dead. An id of another form, or of a client that has no row any
 * more, is nobody we know: its lease decides. */
static bool dead(struct snib__item *item, const struct snib__id *id)
{
        struct snib__store *s = item->client->store;
        char uuid[SNIB__UUID_LENGTH + 1];
        const struct snib__peer_row *row;

        if (snib__id_of_client(id, item->client->uuid) || !snib__id_client(id, uuid))
                return false;
        if (snib__clients_by_uuid(s, uuid, false, &row) != SQLITE_ROW || snib__live_test(s, row->slot))
                return false;
        return snib__clients_by_uuid(s, uuid, true, &row) == SQLITE_ROW && !snib__live_test(s, row->slot);
}

/* The account of one call of the model: what it tells goes behind what was told before. */
static struct snib__change account(const struct snib__store *s)
{
        const struct snib__change *all = &s->change;

        return (struct snib__change){.tell = all->tell + all->tells, .tell_room = all->tell_room - all->tells};
}

static void add_up(struct snib__store *s, const struct snib__change *one)
{
        s->change.record |= one->record;
        s->change.holders |= one->holders;
        s->change.queue |= one->queue;
        s->change.dones |= one->dones;
        s->change.tells += one->tells;
}

static bool changed(const struct snib__store *s)
{
        return s->change.record || s->change.holders || s->change.queue || s->change.dones;
}

/* False: it is left where it stands. */
static bool bury(struct snib__item *item, const struct snib__id *id, struct snib__clock now)
{
        struct snib__store *s = item->client->store;
        struct snib__change one = account(s);
        struct snib__id copy = *id; /* it points into the record */
        size_t kept = 0;

        (void)snib__record_bury(&s->record, &copy, now, &one);
        for (size_t i = 0; i < one.tells; i++)
                if (!snib__id_equal(&one.tell[i].id, &copy)) /* the dead need not be told */
                        one.tell[kept++] = one.tell[i];
        one.tells = kept;
        add_up(s, &one);
        return one.holders || one.queue;
}

static size_t place_in_queue(const struct snib__record *r, const struct snib__id *id)
{
        size_t i = 0;

        while (i < r->queued && !snib__id_equal(&r->queue[i].seat.id, id))
                i++;
        return i;
}

/* The one that waits before this waiter and is not an observer; r->queued if there is none. */
static size_t waiter_before(const struct snib__record *r, const struct snib__id *id)
{
        size_t own = place_in_queue(r, id);

        for (size_t i = own; own < r->queued && i-- > 0;)
                if (!r->queue[i].observer)
                        return i;
        return r->queued;
}

static size_t first_waiter(const struct snib__record *r)
{
        size_t i = 0;

        while (i < r->queued && r->queue[i].observer)
                i++;
        return i;
}

/* It holds something while it sits. What a semaphore gave out and was confirmed belongs to
 * nobody. */
static bool holds(const struct snib__holder *h)
{
        return snib__family_of(h->kind) != SNIB__FAMILY_SEMAPHORE || !h->claimed;
}

/* Who of the seats is dead; those seated by that, too. */
static void bury_holders(struct snib__item *item, struct snib__clock now)
{
        const struct snib__record *r = &item->client->store->record;
        const struct snib__id *alive = NULL; /* of the seat before, so that a client with many is asked for once */
        bool swept = false;

        for (size_t i = 0; i < r->held;) {
                const struct snib__id *id = &r->holder[i].seat.id;

                if (!holds(&r->holder[i]) || (alive && snib__id_of_client(id, alive->text)) || !dead(item, id)) {
                        alive = holds(&r->holder[i]) ? id : alive;
                        i++;
                } else if (!bury(item, id, now)) {
                        i++;
                } else if (!swept) {
                        swept = true; /* the first one may take others along, whose time is over */
                        alive = NULL;
                        i = 0;
                }
        }
}

/* Whether somebody asks or waits for what the dead may have. */
static bool wanted(const struct snib__item *item)
{
        const struct snib__record *r = &item->client->store->record;

        return first_waiter(r) < r->queued || (item->op.verb != SNIB__RELEASE && item->op.verb != SNIB__RENEW);
}

/* Buries the waiter at `place` if there is one and it is dead. */
static bool bury_waiter(struct snib__item *item, size_t place, struct snib__clock now)
{
        const struct snib__record *r = &item->client->store->record;

        return place < r->queued && dead(item, &r->queue[place].seat.id) && bury(item, &r->queue[place].seat.id, now);
}

/* The dead that matter: those who sit, the first of the queue, and for a look those right before
 * the one who looks. */
static void bury_dead(struct snib__item *item, struct snib__clock now)
{
        const struct snib__record *r = &item->client->store->record;

        if (wanted(item))
                bury_holders(item, now);
        while (bury_waiter(item, first_waiter(r), now))
                ;
        if (item->task == SNIB__TASK_LOOK)
                while (bury_waiter(item, waiter_before(r, &item->op.id), now))
                        ;
}

/* Of those who were seated the first was known to be alive; the others that are dead leave again.
 * True: some were. */
static bool bury_granted(struct snib__item *item, struct snib__clock now)
{
        const struct snib__change *all = &item->client->store->change;
        bool first = true, some = false;

        for (size_t i = 0; i < all->tells; i++) {
                if (all->tell[i].kind != SNIB__TELL_GRANTED)
                        continue;
                if (!first && dead(item, &all->tell[i].id))
                        some |= bury(item, &all->tell[i].id, now);
                first = false;
        }
        return some;
}

static void watch_for(struct snib__item *item, const struct snib__id *id)
{
        struct snib__before *b = &item->before;
        char uuid[SNIB__UUID_LENGTH + 1];
        const struct snib__peer_row *row;

        if (b->count == SNIB__BEFORE_MAX || snib__id_of_client(id, item->client->uuid) || !snib__id_client(id, uuid))
                return;
        for (int i = 0; i < b->count; i++)
                if (!strcmp(uuid, b->peer[i].uuid))
                        return;
        if (snib__clients_by_uuid(item->client->store, uuid, false, &row) == SQLITE_ROW)
                b->peer[b->count++] = *row;
}

/* Who is before this item's id now. */
static void look_before(struct snib__item *item)
{
        const struct snib__record *r = &item->client->store->record;
        struct snib__before *b = &item->before;
        size_t own = place_in_queue(r, &item->op.id), before = waiter_before(r, &item->op.id);

        b->count = 0;
        b->standing = own < r->queued                     ? SNIB__STANDS_QUEUED
                      : snib__seats_find(r, &item->op.id) ? SNIB__STANDS_HOLDER
                                                          : SNIB__STANDS_NOT;
        if (b->standing != SNIB__STANDS_QUEUED)
                return;
        b->first = before == r->queued;
        b->holder_expires_ms = INT64_MAX;
        for (size_t i = 0; i < r->held; i++)
                if (r->holder[i].seat.expires_ms < b->holder_expires_ms && holds(&r->holder[i]))
                        b->holder_expires_ms = r->holder[i].seat.expires_ms;
        if (!b->first && !r->queue[own].observer)
                watch_for(item, &r->queue[before].seat.id);
        else
                for (size_t i = 0; i < r->held && b->count < SNIB__BEFORE_MAX; i++)
                        if (holds(&r->holder[i]))
                                watch_for(item, &r->holder[i].seat.id);
}

/* Without memory for it, whoever is left out looks by itself when its time comes. */
static void add_mail(struct snib__item *item, struct snib__mail mail)
{
        if (item->mails == item->mail_room) {
                size_t room = item->mail_room ? 2 * item->mail_room : 4;
                struct snib__mail *grown = snib__grow(item->mail, room * sizeof(*grown));

                if (!grown)
                        return;
                item->mail = grown;
                item->mail_room = room;
        }
        item->mail[item->mails++] = mail;
}

static void mail_look(struct snib__item *item, const struct snib__id *id)
{
        if (!snib__id_equal(id, &item->op.id))
                add_mail(item, (struct snib__mail){.kind = SNIB__MAIL_LOOK, .id = *id});
}

static void mail_tell(struct snib__item *item, const struct snib__tell *t)
{
        if (t->kind == SNIB__TELL_ENDED)
                add_mail(item, (struct snib__mail){.kind = SNIB__MAIL_ENDED, .id = t->id});
        else if (!snib__id_equal(&t->id, &item->op.id)) /* who asks is answered */
                add_mail(item, (struct snib__mail){
                                   .kind = SNIB__MAIL_GRANTED, .number = t->number, .token = t->token, .id = t->id});
}

/* Who lost the one before it without being seated, and so does not watch the right one any more. */
static void address_looks(struct snib__item *item)
{
        const struct snib__store *s = item->client->store;
        const struct snib__record *r = &s->record;
        bool gap = false;
        size_t kept = 0;

        for (size_t i = 0; i < s->waiters.count && kept < r->queued; i++) {
                const struct snib__row *row = &s->waiters.row[i];

                if (!snib__id_equal(&r->queue[kept].seat.id, &row->id)) {
                        gap |= !row->number[SNIB__NUMBER_FLAG] && !snib__seats_find(r, &row->id);
                        continue;
                }
                if (!r->queue[kept].observer) {
                        if (gap)
                                mail_look(item, &row->id);
                        gap = false;
                }
                kept++;
        }
}

/* Who finds by a look that somebody seated it was not told: that one died before it came to it.
 * Then those behind it, seated with it, may not have been told either, and they watched only whom
 * they stood behind. */
static bool address_others(struct snib__item *item)
{
        const struct snib__store *s = item->client->store;
        const struct snib__record *r = &s->record;
        const struct snib__holder *own = snib__seats_find(r, &item->op.id);

        if (item->task != SNIB__TASK_LOOK || !own)
                return false;
        for (size_t i = 0; i < s->change.tells; i++)
                if (snib__id_equal(&s->change.tell[i].id, &item->op.id)) /* seated by this look */
                        return false;
        for (const struct snib__holder *h = &r->holder[r->held]; --h > own;)
                if (!h->claimed)
                        add_mail(item, (struct snib__mail){.kind = SNIB__MAIL_GRANTED, .id = h->seat.id});
        return true;
}

/* Whoever may go on, whose hold was ended, and who has somebody else before it now. The first in
 * the queue watches the one before it go to its seat; when several sit it looks who they are. The
 * first of those who may go on is told last: it watches who tells, and if that one dies before,
 * looks and tells the others. */
static void address_mails(struct snib__item *item)
{
        const struct snib__store *s = item->client->store;
        const struct snib__record *r = &s->record;
        size_t first = first_waiter(r);
        bool seated = item->new_hold;

        item->mails = 0;
        for (size_t i = 0; i < s->change.tells; i++)
                seated |= s->change.tell[i].kind == SNIB__TELL_GRANTED;
        if (s->change.queue)
                address_looks(item);
        seated |= address_others(item);
        if (seated && r->held > 1 && first < r->queued)
                mail_look(item, &r->queue[first].seat.id);
        for (size_t i = s->change.tells; i-- > 0;)
                mail_tell(item, &s->change.tell[i]);
}

static void roll_back(struct snib__store *s)
{
        if (!sqlite3_get_autocommit(s->db))
                (void)snib__sql_run(s, SNIB__SQL_ROLLBACK);
}

void snib__item_fail(struct snib__item *item, int code)
{
        item->error.code = code;
        item->note.reply = snib__reply_failed(item->op.kind, &item->error);
        item->mails = 0;
        item->before.standing = SNIB__STANDS_NOT;
}

/* A failed statement: nothing was done. Another program inside SQLite (a shell) is waited for,
 * where one may wait. */
static void fail_sqlite(struct snib__item *item, int rc)
{
        struct snib__store *s = item->client->store;
        int base = rc & 0xff, code;

        if ((base == SQLITE_BUSY || base == SQLITE_LOCKED || base == SQLITE_PROTOCOL) && !item->work.patient) {
                roll_back(s);
                item->work.again = true;
                item->work.gate = true;
                return;
        }
        code = snib__db_failed(s, rc, "storing", &item->error);
        roll_back(s);
        /* A release or a renewal is worth repeating until somebody has made room. */
        if (base == SQLITE_FULL && (item->op.verb == SNIB__RELEASE || item->op.verb == SNIB__RENEW))
                code = SNIB_ENOTREADY;
        snib__item_fail(item, code);
}

static void apply(struct snib__item *item, struct snib__clock now)
{
        struct snib__store *s = item->client->store;
        struct snib__change one = account(s);

        snib__record_apply(&s->record, &item->op, now, &item->note.reply, &one);
        add_up(s, &one);
}

/* The model decides. Those it seats and who turn out to be dead may have been in the way of the one
 * who asks; it asks again then, which its id makes harmless. */
static void ask_model(struct snib__item *item, struct snib__clock now)
{
        struct snib__store *s = item->client->store;
        const struct snib__reply *reply = &item->note.reply;
        bool sat;

        bury_dead(item, now);
        sat = snib__seats_find(&s->record, &item->op.id) != NULL;
        apply(item, now);
        if (s->change.tells > 1 && bury_granted(item, now) && reply->status == SNIB__BUSY)
                apply(item, now);
        item->new_hold = reply->status == SNIB__GRANTED && !sat && !snib__kind(item->op.kind)->momentary;
}

/* What the reply points at is the store's; it lives as long as the note. */
static int keep_data(struct snib__item *item)
{
        struct snib__reply *reply = &item->note.reply;

        if (!reply->data || reply->data_length == 0)
                return SQLITE_OK;
        if (reply->data_length > item->data_room) {
                void *data = snib__grow(item->data, reply->data_length);

                if (!data)
                        return SQLITE_NOMEM;
                item->data = data;
                item->data_room = reply->data_length;
        }
        memcpy(item->data, reply->data, reply->data_length);
        reply->data = item->data;
        return SQLITE_OK;
}

/* From the load to the decision. `write`: store it too. */
static int decide(struct snib__item *item, struct snib__clock now, bool write)
{
        struct snib__store *s = item->client->store;
        bool data = item->op.verb == SNIB__OBSERVE || (item->op.verb == SNIB__QUERY && item->task == SNIB__TASK_OP);
        int rc = snib__rows_load(s, &item->op, data, false);

        if (rc != SQLITE_OK)
                return rc;
        ask_model(item, now);
        if (!snib__part_suffices(s)) {
                snib__rows_unload(s);
                rc = snib__rows_load(s, &item->op, data, true);
                if (rc != SQLITE_OK)
                        return rc;
                ask_model(item, now);
        }
        item->note.reply.waiters_at_least = s->part && !s->end;
        if (changed(s)) {
                if (!write) {
                        item->work.again = item->work.gate = true;
                        return SQLITE_OK;
                }
                rc = snib__rows_save(s, &item->op, now);
        }
        if (rc == SQLITE_OK)
                rc = keep_data(item);
        if (rc == SQLITE_OK) {
                address_mails(item);
                look_before(item);
        }
        return rc;
}

int snib__item_peek(struct snib__item *item, int64_t now_ms)
{
        struct snib__clock now = {.lease_ms = now_ms, .wall_us = read_clocks().wall_us};
        int rc = decide(item, now, false);

        snib__rows_unload(item->client->store);
        item->mails = 0;
        return rc;
}

/* Looked at now and then: it is one system call of some hundred nanoseconds. */
static bool in_place(struct snib__store *s, struct snib__clock now)
{
        if (now.lease_ms - s->in_place_ms < IN_PLACE_EVERY_MS)
                return true;
        if (!snib__db_in_place(s))
                return false;
        s->in_place_ms = now.lease_ms;
        return true;
}

/* A patient one waits for other programs at its beginning, once, so that nothing can come between
 * its read and its write. */
static int run_decision(struct snib__item *item, struct snib__clock now)
{
        struct snib__store *s = item->client->store;
        bool whole = item->work.patient && item->work.gate;
        int rc = whole ? snib__sql_run(s, SNIB__SQL_BEGIN_WRITE) : SQLITE_OK;

        if (rc == SQLITE_OK)
                rc = decide(item, now, item->work.gate);
        if (rc == SQLITE_OK && whole)
                rc = snib__sql_run(s, SNIB__SQL_COMMIT);
        snib__rows_unload(s);
        return rc;
}

static void run_op(struct snib__item *item)
{
        struct snib__store *s = item->client->store;
        struct snib__clock now = read_clocks();
        int rc;

        item->mails = 0;
        item->error.text[0] = 0;
        if (!in_place(s, now)) {
                snib__item_fail(
                    item,
                    snib__error(&item->error, SNIB_ECORRUPT,
                                "the lock files in %s were removed or replaced while in use: open the client again",
                                s->place.path));
                return;
        }
        if (item->work.patient)
                (void)sqlite3_busy_timeout(s->db, (int)item->client->timeout_ms);
        rc = run_decision(item, now);
        if (rc != SQLITE_OK)
                fail_sqlite(item, rc);
        else if (item->work.gate)
                snib__db_checkpoint(s);
        if (item->work.patient)
                (void)sqlite3_busy_timeout(s->db, 0);
}

static int bury_in(struct snib__item *item, const char *uuid, struct snib__name name)
{
        struct snib__store *s = item->client->store;
        const struct snib__record *r = &s->record;
        struct snib__clock now = read_clocks();
        int rc;

        memset(&item->op, 0, sizeof(item->op));
        item->op.kind = SNIB_KIND_ANY;
        item->op.name = name;
        rc = snib__rows_load(s, &item->op, false, true);
        if (rc != SQLITE_OK)
                return rc;
        /* First those who wait, the last first: nobody of them is to be seated. */
        for (size_t i = r->queued; i-- > 0;)
                if (i < r->queued && snib__id_of_client(&r->queue[i].seat.id, uuid))
                        (void)bury(item, &r->queue[i].seat.id, now);
        for (size_t i = r->held; i-- > 0;)
                if (i < r->held && snib__id_of_client(&r->holder[i].seat.id, uuid) && holds(&r->holder[i]))
                        (void)bury(item, &r->holder[i].seat.id, now);
        bury_dead(item, now);
        if (s->change.tells > 1)
                (void)bury_granted(item, now);
        if (changed(s))
                rc = snib__rows_save(s, &item->op, now);
        if (rc == SQLITE_OK)
                address_mails(item);
        return rc;
}

static void send_mails(struct snib__item *item)
{
        struct snib__store *s = item->client->store;

        for (size_t i = 0; i < item->mails; i++)
                snib__mail_send(s->send_fd, s->place.fd, &item->mail[i], item->op.name);
        item->mails = 0;
}

/* Takes every id of a client out of every object, a transaction for each name; the mails go out
 * under the gate, which nobody minds at the end of a client. A name whose rows are damaged is
 * passed over: whoever asks for it is told. */
static int bury_client(struct snib__item *item, const char *uuid)
{
        struct snib__store *s = item->client->store;
        struct snib__name name = {.bytes = item->name, .length = 0};
        int rc;

        while ((rc = snib__clients_name_of(s, uuid, name, item->name, &name.length)) == SQLITE_ROW) {
                rc = snib__sql_run(s, SNIB__SQL_BEGIN_WRITE);
                if (rc == SQLITE_OK)
                        rc = bury_in(item, uuid, name);
                if (rc == SQLITE_OK)
                        rc = snib__sql_run(s, SNIB__SQL_COMMIT);
                snib__rows_unload(s);
                if (rc != SQLITE_OK)
                        roll_back(s);
                if (rc != SQLITE_OK && !s->damage)
                        return rc;
                send_mails(item);
        }
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The first byte nobody holds. */
static bool take_slot(struct snib__local *c)
{
        for (c->slot = 0; c->slot < INT32_MAX; c->slot++)
                if (snib__live_take(c->live_fd, c->slot))
                        return true;
        return false;
}

/* The client enters the table. Who had its byte before is dead: its row goes, after whatever it
 * held and waited for. */
static int enter(struct snib__item *item)
{
        struct snib__local *c = item->client;
        struct snib__store *s = c->store;
        struct snib__peer_row row, old;
        int rc;

        s->trace = c->trace;
        s->trace_arg = c->trace_arg;
        rc = snib__db_prepare(s, &item->error);
        s->trace = NULL;

        if (rc < 0)
                return rc;
        if (!snib__db_in_place(s))
                return snib__error(&item->error, SNIB_ECORRUPT,
                                   "the lock files in %s were removed or replaced while this process uses them: "
                                   "close its other clients first",
                                   s->place.path);
        if (!take_slot(c))
                return snib__error(&item->error, SNIB_ESYSTEM, "no byte of %s/live can be locked", s->place.path);
        memset(&row, 0, sizeof(row));
        row.slot = c->slot;
        row.pid = c->pid;
        row.pid_namespace = s->pid_namespace;
        memcpy(row.uuid, c->uuid, sizeof(row.uuid));
        memcpy(row.host, c->who.host, sizeof(row.host));
        memcpy(row.label, c->who.label, sizeof(row.label));
        rc = snib__clients_by_slot(s, c->slot, &old);
        if (rc == SQLITE_ROW) {
                rc = bury_client(item, old.uuid);
                snib__mail_unlink(s->place.fd, old.uuid);
        } else if (rc == SQLITE_DONE) {
                rc = SQLITE_OK;
        }
        if (rc == SQLITE_OK)
                rc = snib__clients_add(s, &row, read_clocks().wall_us / 1000);
        return rc == SQLITE_OK ? 0 : snib__db_failed(s, rc, "entering the client", &item->error);
}

static void leave(struct snib__item *item)
{
        struct snib__local *c = item->client;
        int rc = c->holds > 0 || c->waits.count ? bury_client(item, c->uuid) : SQLITE_OK;

        /* If that failed, the row stays, its byte becomes free, and the next who comes across it
         * buries it. */
        if (rc == SQLITE_OK)
                (void)snib__clients_remove(c->store, c->uuid);
}

void snib__item_run(struct snib__work *work)
{
        struct snib__item *item = snib__container(work, struct snib__item, work);

        switch (item->task) {
        case SNIB__TASK_OP:
        case SNIB__TASK_LOOK:
                run_op(item);
                break;
        case SNIB__TASK_LIST:
                break; /* these are not run, but peeked at */
        case SNIB__TASK_ENTER:
                item->note.reply.error = enter(item);
                break;
        case SNIB__TASK_LEAVE:
                leave(item);
                break;
        }
}

void snib__item_after(struct snib__work *work)
{
        send_mails(snib__container(work, struct snib__item, work));
}
