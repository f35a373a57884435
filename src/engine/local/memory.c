/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is remembered of requests that were executed: that of the request at hand is loaded and
 * stored, no other, as no other can matter to it. So the model never sees that there are many; that
 * not too many are kept is done here. Not which requests are remembered how long: the model decides
 * that. Called with store.lock held.
 */

#include "engine/local/rows.h"
#include <string.h>

/* Of a name, at least: the newest of the requests that are remembered, as many changes as the model
 * keeps, and as many takings. */
#define MEMORIES_KEPT (2 * SNIB__DONES_MAX)

/* Puts into the record what is remembered of a request. False: it cannot be. */
static bool put_memory(struct snib__record *r, const struct snib__id *id, const struct snib__memory *m)
{
        struct snib__holder *h = &r->holder[r->held];

        if (m->what != SNIB__MEMORY_TOOK) {
                r->done[r->dones++] = (struct snib__done){
                    .id = *id, .expires_ms = m->expires_ms, .value = m->value, .applied = m->what != 0};
                return m->what == SNIB__MEMORY_APPLIED || m->what == SNIB__MEMORY_REFUSED;
        }
        memset(h, 0, sizeof(*h));
        h->seat.id = *id;
        h->seat.expires_ms = m->expires_ms;
        h->kind = SNIB_KIND_SEMAPHORE;
        h->n = m->value;
        h->claimed = true;
        r->held++;
        return r->family == SNIB__FAMILY_SEMAPHORE;
}

int snib__memory_load(struct snib__store *s, const struct snib__op *op)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_GET];
        struct snib__record *r = &s->record;
        int rc;

        if (!snib__op_remembered(op))
                return SQLITE_OK;
        if (!snib__room_make(r, (struct snib__room){.held = r->held + 1, .dones = r->dones + 1}))
                return SQLITE_NOMEM;
        snib__sql_bind_name(q, 1, op->name);
        snib__sql_bind_text(q, 2, op->id.text);
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW) {
                s->memory.expires_ms = sqlite3_column_int64(q, 0);
                s->memory.value = sqlite3_column_int64(q, 1);
                s->memory.what = sqlite3_column_int64(q, 2);
                if (!put_memory(r, &op->id, &s->memory))
                        (void)snib__rows_damaged(s, "what is remembered of a request can have been its answer");
        }
        rc = snib__sql_end(q, rc);
        return s->damage ? SQLITE_CORRUPT : rc;
}

struct snib__memory snib__memory_of(const struct snib__record *r, const struct snib__id *id)
{
        for (size_t i = r->dones; i-- > 0;)
                if (snib__id_equal(&r->done[i].id, id))
                        return (struct snib__memory){
                            .what = r->done[i].applied, .expires_ms = r->done[i].expires_ms, .value = r->done[i].value};
        for (size_t i = 0; i < r->held; i++)
                if (snib__rows_is_memory(&r->holder[i]) && snib__id_equal(&r->holder[i].seat.id, id))
                        return (struct snib__memory){.what = SNIB__MEMORY_TOOK,
                                                     .expires_ms = r->holder[i].seat.expires_ms,
                                                     .value = r->holder[i].n};
        return (struct snib__memory){.what = SNIB__MEMORY_NONE};
}

bool snib__memory_changed(const struct snib__store *s, const struct snib__memory *m)
{
        const struct snib__memory *old = &s->memory;

        return m->what != old->what ||
               (m->what != SNIB__MEMORY_NONE && (m->value != old->value || m->expires_ms != old->expires_ms));
}

/* One request in 32 is followed by a cleaning of what its name remembers. Which one is a lot drawn
 * from its id, so that nobody has to count, and short-lived clients do their part. */
static bool cleans(const struct snib__id *id)
{
        return snib__rows_hash(id->text) % 32 == 0;
}

static int put_memory_row(struct snib__store *s, const struct snib__op *op, const struct snib__memory *m)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_PUT];

        snib__sql_bind_name(q, 1, op->name);
        snib__sql_bind_text(q, 2, op->id.text);
        (void)sqlite3_bind_int64(q, 3, m->expires_ms);
        (void)sqlite3_bind_int64(q, 4, m->value);
        (void)sqlite3_bind_int64(q, 5, m->what);
        return snib__sql_run(s, SNIB__SQL_MEMORY_PUT);
}

static int prune(struct snib__store *s, struct snib__name name)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_PRUNE];

        snib__sql_bind_name(q, 1, name);
        (void)sqlite3_bind_int64(q, 2, MEMORIES_KEPT - 1);
        return snib__sql_run(s, SNIB__SQL_MEMORY_PRUNE);
}

int snib__memory_save(struct snib__store *s, const struct snib__op *op, const struct snib__memory *m)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_MEMORY_REMOVE];
        int rc;

        if (m->what == SNIB__MEMORY_NONE) {
                snib__sql_bind_name(q, 1, op->name);
                snib__sql_bind_text(q, 2, op->id.text);
                return snib__sql_run(s, SNIB__SQL_MEMORY_REMOVE);
        }
        rc = put_memory_row(s, op, m);
        return rc == SQLITE_OK && cleans(&op->id) ? prune(s, op->name) : rc;
}

int snib__memory_untake(struct snib__store *s, struct snib__name name)
{
        snib__sql_bind_name(s->statement[SNIB__SQL_MEMORY_UNTAKE], 1, name);
        return snib__sql_run(s, SNIB__SQL_MEMORY_UNTAKE);
}
