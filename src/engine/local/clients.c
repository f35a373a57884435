/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rows of clients, and the names in which a client stands. Not whether it lives (its byte
 * tells) and not where it stands under a name (the name's own rows do). Rows that were read lately
 * are kept in memory. Called with store.lock held.
 */

#include "engine/local/rows.h"
#include <string.h>

static int read_client(sqlite3_stmt *q, struct snib__peer_row *ret)
{
        int rc = sqlite3_step(q);

        if (rc == SQLITE_ROW) {
                snib__sql_read_text(q, 0, ret->uuid, sizeof(ret->uuid));
                ret->slot = sqlite3_column_int64(q, 1);
                ret->pid = sqlite3_column_int64(q, 2);
                ret->pid_namespace = sqlite3_column_int64(q, 3);
                snib__sql_read_text(q, 4, ret->host, sizeof(ret->host));
                snib__sql_read_text(q, 5, ret->label, sizeof(ret->label));
        }
        (void)sqlite3_reset(q);
        return rc;
}

int snib__clients_by_uuid(struct snib__store *s, const char *uuid, bool anew, const struct snib__peer_row **ret)
{
        struct snib__peer_row *known = &s->known[snib__rows_hash(uuid) % SNIB__KNOWN_MAX];
        int rc;

        *ret = known;
        if (!anew && !strcmp(known->uuid, uuid))
                return SQLITE_ROW;
        snib__sql_bind_text(s->statement[SNIB__SQL_CLIENT_BY_UUID], 1, uuid);
        rc = read_client(s->statement[SNIB__SQL_CLIENT_BY_UUID], known);
        if (rc != SQLITE_ROW)
                known->uuid[0] = 0;
        return rc;
}

int snib__clients_by_slot(struct snib__store *s, int64_t slot, struct snib__peer_row *ret)
{
        (void)sqlite3_bind_int64(s->statement[SNIB__SQL_CLIENT_BY_SLOT], 1, slot);
        return read_client(s->statement[SNIB__SQL_CLIENT_BY_SLOT], ret);
}

int snib__clients_add(struct snib__store *s, const struct snib__peer_row *row, int64_t now_ms)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_CLIENT_ADD];

        snib__sql_bind_text(q, 1, row->uuid);
        (void)sqlite3_bind_int64(q, 2, row->slot);
        (void)sqlite3_bind_int64(q, 3, row->pid);
        (void)sqlite3_bind_int64(q, 4, row->pid_namespace);
        snib__sql_bind_text(q, 5, row->host);
        snib__sql_bind_text(q, 6, row->label);
        (void)sqlite3_bind_int64(q, 7, now_ms);
        return snib__sql_run(s, SNIB__SQL_CLIENT_ADD);
}

int snib__clients_remove(struct snib__store *s, const char *uuid)
{
        snib__sql_bind_text(s->statement[SNIB__SQL_CLIENT_REMOVE], 1, uuid);
        return snib__sql_run(s, SNIB__SQL_CLIENT_REMOVE);
}

int snib__clients_name_of(struct snib__store *s, const char *uuid, struct snib__name after, char *ret_name,
                          size_t *ret_length)
{
        sqlite3_stmt *q = s->statement[SNIB__SQL_NAMES_OF];
        int rc;

        snib__sql_bind_text(q, 1, uuid);
        snib__sql_bind_name(q, 2, after);
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) == SQLITE_NULL)
                rc = SQLITE_DONE;
        if (rc == SQLITE_ROW) {
                snib__sql_read_text(q, 0, ret_name, SNIB_NAME_MAX + 1);
                *ret_length = (size_t)sqlite3_column_bytes(q, 0);
                if (*ret_length > SNIB_NAME_MAX)
                        *ret_length = SNIB_NAME_MAX;
        }
        (void)sqlite3_reset(q);
        return rc;
}
