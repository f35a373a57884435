/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one item does inside the store: load the record, bury the dead, let the model decide, store what is different,
 * and note whom to tell. Not a rule about locks: those are the model's. Runs on the client's thread or on the worker's,
 * with store.lock held and, when it writes, the gate. A question (QUERY, a look) is first answered from a read
 * transaction; only when the answer would change the record is it asked again under the gate.
 *
 * Invariant: a transaction leaves neither a dead holder nor a dead first waiter behind that it could see.
 */

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

/* Whose process is known to be dead. An id of another form, or of a client that has no row any more, is nobody we know:
 * its lease decides. */
static bool dead(struct snib__item *item, const struct snib__id *id)
{
        struct snib__store *s = item->client->store;
        char uuid[SNIB__UUID_LENGTH + 1];
        struct snib__peer_row row;

        if (!snib__uuid_of(id, uuid) || !strcmp(uuid, item->client->uuid))
                return false;
        return snib__rows_client_by_uuid(s, uuid, &row) == SQLITE_ROW && !snib__live_test(s, row.slot);
}

static void merge(struct snib__lock_change *all, const struct snib__lock_change *one)
{
        all->holder |= one->holder;
        all->queue |= one->queue;
        if (snib__id_set(&one->granted))
                all->granted = one->granted;
        if (snib__id_set(&one->ended))
                all->ended = one->ended;
}

static void bury(struct snib__item *item, const struct snib__id *id, struct snib__clock now,
                 struct snib__lock_change *change)
{
        struct snib__id copy = *id; /* it points into the record */
        struct snib__lock_change one;

        (void)snib__lock_bury(&item->client->store->record, &copy, now, &one);
        memset(&one.ended, 0, sizeof(one.ended)); /* the dead need not be told */
        merge(change, &one);
}

static size_t place_in_queue(const struct snib__lock_record *r, const struct snib__id *id)
{
        size_t i = 0;

        while (i < r->queued && !snib__id_equal(&r->queue[i].seat.id, id))
                i++;
        return i;
}

/* The dead that matter: the holder, the first of the queue, and for a look those right before the one who looks. */
static void bury_dead(struct snib__item *item, struct snib__clock now, struct snib__lock_change *change)
{
        struct snib__lock_record *r = &item->client->store->record;

        for (;;) {
                size_t own = item->task == SNIB__TASK_LOOK ? place_in_queue(r, &item->op.id) : 0;

                if (snib__id_set(&r->holder.id) && dead(item, &r->holder.id))
                        bury(item, &r->holder.id, now, change);
                else if (r->queued && dead(item, &r->queue[0].seat.id))
                        bury(item, &r->queue[0].seat.id, now, change);
                else if (own > 0 && own < r->queued && dead(item, &r->queue[own - 1].seat.id))
                        bury(item, &r->queue[own - 1].seat.id, now, change);
                else
                        return;
        }
}

/* Who is before this item's id now. */
static void look_before(struct snib__item *item)
{
        struct snib__store *s = item->client->store;
        const struct snib__lock_record *r = &s->record;
        struct snib__before *b = &item->before;
        size_t own = place_in_queue(r, &item->op.id);
        char uuid[SNIB__UUID_LENGTH + 1];

        b->known = false;
        b->standing = SNIB__STANDS_NOT;
        if (snib__id_set(&r->holder.id) && snib__id_equal(&r->holder.id, &item->op.id))
                b->standing = SNIB__STANDS_HOLDER;
        if (own >= r->queued)
                return;
        b->standing = SNIB__STANDS_QUEUED;
        b->position = (int64_t)own + 1;
        b->holder_expires_ms = r->holder.expires_ms;
        if (snib__uuid_of(own ? &r->queue[own - 1].seat.id : &r->holder.id, uuid) &&
            strcmp(uuid, item->client->uuid) != 0)
                b->known = snib__rows_client_by_uuid(s, uuid, &b->peer) == SQLITE_ROW;
}

static void add_mail(struct snib__item *item, enum snib__mail_kind kind, const struct snib__id *id)
{
        if (item->mails == SNIB__MAILS_MAX)
                return; /* whoever is left out looks by itself when its time comes */
        item->mail[item->mails].kind = kind;
        item->mail[item->mails++].id = *id;
}

/* Whoever was granted, whose hold was ended, and who lost the one before it without being granted. */
static void address_mails(struct snib__item *item, const struct snib__lock_change *change)
{
        struct snib__store *s = item->client->store;
        const struct snib__lock_record *r = &s->record;
        bool gap = false;
        size_t kept = 0;

        item->mails = 0;
        if (snib__id_set(&change->granted) && snib__id_equal(&change->granted, &r->holder.id) &&
            !snib__id_equal(&change->granted, &item->op.id))
                add_mail(item, SNIB__MAIL_GRANTED, &change->granted);
        if (snib__id_set(&change->ended))
                add_mail(item, SNIB__MAIL_ENDED, &change->ended);
        for (size_t i = 0; change->queue && i < s->rows; i++) {
                if (kept >= r->queued || !snib__id_equal(&r->queue[kept].seat.id, &s->row[i].id)) {
                        gap |= !snib__id_equal(&s->row[i].id, &r->holder.id);
                        continue;
                }
                if (gap && !snib__id_equal(&s->row[i].id, &item->op.id))
                        add_mail(item, SNIB__MAIL_LOOK, &s->row[i].id);
                gap = false;
                kept++;
        }
}

static void roll_back(struct snib__store *s)
{
        if (!sqlite3_get_autocommit(s->db))
                (void)snib__rows_run(s, SNIB__SQL_ROLLBACK);
}

static void fail(struct snib__item *item, int code)
{
        struct snib__reply *reply = &item->note.reply;

        memset(reply, 0, sizeof(*reply));
        reply->status = SNIB__FAILED;
        reply->error = code;
        reply->engine_code = item->error.engine_code;
        reply->error_text = item->error.text;
        reply->left_ms = -1;
        reply->waiters = -1;
        item->mails = 0;
        item->before.standing = SNIB__STANDS_NOT;
}

/* A failed statement: nothing was done. Another program inside SQLite (a shell) is waited for, where one may wait. */
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
        code = snib__store_failed(s, rc, "storing", &item->error);
        roll_back(s);
        /* A release or a renewal is worth repeating until somebody has made room. */
        if (base == SQLITE_FULL && item->op.verb != SNIB__ACQUIRE)
                code = SNIB_ENOTREADY;
        fail(item, code);
}

/* From the load to the decision. `write`: store it too. */
static int decide(struct snib__item *item, struct snib__clock now, bool write)
{
        struct snib__store *s = item->client->store;
        struct snib__lock_change change = {0}, one;
        int rc = snib__rows_load(s, item->op.name);

        if (rc != SQLITE_OK)
                return rc;
        bury_dead(item, now, &change);
        int64_t token = s->record.token;
        snib__lock_apply(&s->record, &item->op, now, &item->note.reply, &one);
        item->new_hold = item->note.reply.status == SNIB__GRANTED && s->record.token != token;
        merge(&change, &one);
        if (change.holder || change.queue) {
                if (!write) {
                        item->work.again = item->work.gate = true;
                        return SQLITE_OK;
                }
                rc = snib__rows_save(s, item->op.name, &change, now.wall_us / 1000);
        }
        if (rc == SQLITE_OK) {
                address_mails(item, &change);
                look_before(item);
        }
        return rc;
}

/* Looked at now and then: it is one system call of some hundred nanoseconds. */
static bool in_place(struct snib__store *s, struct snib__clock now)
{
        if (now.lease_ms - s->in_place_ms < IN_PLACE_EVERY_MS)
                return true;
        if (!snib__store_in_place(s))
                return false;
        s->in_place_ms = now.lease_ms;
        return true;
}

/* A patient one waits for other programs at its beginning, once, so that nothing can come between its read and its
 * write. */
static int run_decision(struct snib__item *item, struct snib__clock now)
{
        struct snib__store *s = item->client->store;
        bool whole = item->work.patient && item->work.gate;
        int rc = whole ? snib__rows_run(s, SNIB__SQL_BEGIN_WRITE) : SQLITE_OK;

        if (rc == SQLITE_OK)
                rc = decide(item, now, item->work.gate);
        if (rc == SQLITE_OK && whole)
                rc = snib__rows_run(s, SNIB__SQL_COMMIT);
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
                fail(item,
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
                snib__store_checkpoint(s);
        if (item->work.patient)
                (void)sqlite3_busy_timeout(s->db, 0);
}

static int bury_in(struct snib__item *item, const char *uuid, struct snib__name name)
{
        struct snib__store *s = item->client->store;
        struct snib__lock_record *r = &s->record;
        struct snib__clock now = read_clocks();
        struct snib__lock_change change = {0};
        size_t length = strlen(uuid);
        int rc = snib__rows_load(s, name);

        if (rc != SQLITE_OK)
                return rc;
        item->op.name = name;
        for (size_t i = r->queued; i-- > 0;)
                if (i < r->queued && !strncmp(r->queue[i].seat.id.text, uuid, length))
                        bury(item, &r->queue[i].seat.id, now, &change);
        if (!strncmp(r->holder.id.text, uuid, length))
                bury(item, &r->holder.id, now, &change);
        bury_dead(item, now, &change);
        if (change.holder || change.queue)
                rc = snib__rows_save(s, name, &change, now.wall_us / 1000);
        if (rc == SQLITE_OK)
                address_mails(item, &change);
        return rc;
}

static void send_mails(struct snib__item *item)
{
        struct snib__store *s = item->client->store;

        for (int i = 0; i < item->mails; i++)
                snib__mail_send(s->send_fd, s->place.fd, &item->mail[i], item->op.name);
        item->mails = 0;
}

/* Takes every id of a client out of every lock, a transaction for each name; the mails go out under the gate, which
 * nobody minds at the end of a client. */
static int bury_client(struct snib__item *item, const char *uuid)
{
        struct snib__store *s = item->client->store;
        struct snib__name name = {.bytes = item->name, .length = 0};
        int rc;

        while ((rc = snib__rows_name_of(s, uuid, name, item->name, &name.length)) == SQLITE_ROW) {
                rc = snib__rows_run(s, SNIB__SQL_BEGIN_WRITE);
                if (rc == SQLITE_OK)
                        rc = bury_in(item, uuid, name);
                if (rc == SQLITE_OK)
                        rc = snib__rows_run(s, SNIB__SQL_COMMIT);
                snib__rows_unload(s);
                if (rc != SQLITE_OK) {
                        roll_back(s);
                        return rc;
                }
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

/* The client enters the table. Who had its byte before is dead: its row goes, after whatever it held and waited for. */
static int enter(struct snib__item *item)
{
        struct snib__local *c = item->client;
        struct snib__store *s = c->store;
        struct snib__peer_row row, old;
        int rc;

        s->trace = c->trace;
        s->trace_arg = c->trace_arg;
        rc = snib__store_prepare(s, &item->error);
        s->trace = NULL;

        if (rc < 0)
                return rc;
        if (!snib__store_in_place(s))
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
        rc = snib__rows_client_by_slot(s, c->slot, &old);
        if (rc == SQLITE_ROW) {
                rc = bury_client(item, old.uuid);
                snib__mail_unlink(s->place.fd, old.uuid);
        } else if (rc == SQLITE_DONE) {
                rc = SQLITE_OK;
        }
        if (rc == SQLITE_OK)
                rc = snib__rows_client_add(s, &row, read_clocks().wall_us / 1000);
        return rc == SQLITE_OK ? 0 : snib__store_failed(s, rc, "entering the client", &item->error);
}

static void leave(struct snib__item *item)
{
        struct snib__local *c = item->client;
        int rc = c->holds > 0 || c->waits.count ? bury_client(item, c->uuid) : SQLITE_OK;

        /* If that failed, the row stays, its byte becomes free, and the next who comes across it buries it. */
        if (rc == SQLITE_OK)
                (void)snib__rows_client_remove(c->store, c->uuid);
}

void snib__item_run(struct snib__work *work)
{
        struct snib__item *item = snib__container(work, struct snib__item, work);

        switch (item->task) {
        case SNIB__TASK_OP:
        case SNIB__TASK_LOOK:
                run_op(item);
                break;
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
