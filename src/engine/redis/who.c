/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who stands behind a hold. The lock itself carries only the owner field, so every client that
 * holds or waits keeps a record "snib_client:{<uuid>}" with a time to live beside it,
 * "pid\nhost\nlabel", written behind what matters and never waited for. What cannot be looked up is
 * a Redisson client, or a snib client without the right to write: it is shown as "redisson" after a
 * look-up that found nothing. A small cache keeps the answers, and in a crowd, where the holder is
 * another one each time, few are asked for. None of this decides anything.
 */

#include "engine/redis/internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_PREFIX "snib_client:{"
#define RECORD_TTL_MS 60000
#define REFRESH_EVERY (20 * SNIB__S)
#define KNOWN_FOR (60 * SNIB__S)
#define UNKNOWN_FOR (5 * SNIB__S)
#define LOOK_UP_EVERY (100 * SNIB__MS)
#define RECORD_KEY_MAX 64

static size_t record_key(const char *uuid, char *ret)
{
        return (size_t)snprintf(ret, RECORD_KEY_MAX, RECORD_PREFIX "%s}", uuid);
}

/* `pid` is -1 when the process is about to end. */
static void write_record(struct redis *r, int64_t pid, int64_t ttl_ms, snib__ns now)
{
        char key[RECORD_KEY_MAX], value[192], ttl[24];
        size_t key_length = record_key(r->uuid, key);
        int n = snprintf(value, sizeof(value), "%" PRId64 "\n%s\n%s", pid, r->who.host, r->who.label);
        int digits = snprintf(ttl, sizeof(ttl), "%" PRId64, ttl_ms);
        struct request *q = snib__redis_request(r, REQUEST_WHO_SET, now);

        if (q && !snib__command_send(&r->commands, q, 5, (const char *[]){"SET", key, value, "PX", ttl},
                                     (const size_t[]){3, key_length, (size_t)n, 2, (size_t)digits}, now))
                snib__redis_request_free(r, q);
}

void snib__who_refresh(struct redis *r, snib__ns now)
{
        if (!r->who_used || now < r->who_due || r->commands.net.state != SNIB__LINK_READY)
                return;
        r->who_due = snib__after(now, REFRESH_EVERY);
        write_record(r, r->who.pid, RECORD_TTL_MS, now);
}

void snib__who_used(struct redis *r, snib__ns now)
{
        if (r->who_used)
                return;
        r->who_used = true;
        r->who_due = now;
        snib__who_refresh(r, now);
}

void snib__who_left(struct redis *r, int64_t lease_ms)
{
        if (lease_ms > r->who_left_ms)
                r->who_left_ms = lease_ms;
}

void snib__who_remove(struct redis *r, snib__ns now)
{
        char key[RECORD_KEY_MAX];
        struct request *q = r->who_used && !r->who_left_ms ? snib__redis_request(r, REQUEST_WHO_SET, now) : NULL;

        if (r->who_left_ms)
                write_record(r, -1, r->who_left_ms, now);
        else if (q && !snib__command_send(&r->commands, q, 2, (const char *[]){"DEL", key},
                                          (const size_t[]){3, record_key(r->uuid, key)}, now))
                snib__redis_request_free(r, q);
}

static struct who_entry *place_of(struct redis *r, const char *uuid)
{
        return &r->who_cache[strtoul(uuid, NULL, 16) % SNIB__WHO_CACHE];
}

static struct who_entry *find(struct redis *r, const char *uuid)
{
        struct who_entry *e = place_of(r, uuid);

        return strcmp(e->uuid, uuid) == 0 ? e : NULL;
}

static struct who_entry *find_or_take(struct redis *r, const char *uuid)
{
        struct who_entry *e = place_of(r, uuid);

        if (strcmp(e->uuid, uuid) != 0) {
                *e = (struct who_entry){0};
                memcpy(e->uuid, uuid, sizeof(e->uuid));
        }
        return e;
}

bool snib__who_find(struct redis *r, struct snib__reply *ret, snib__ns now)
{
        struct snib__seat *holder = &ret->holder;
        const struct who_entry *e;
        char uuid[37];

        ret->foreign = !snib__id_client(&holder->id, uuid);
        if (ret->foreign) { /* nobody we could look up */
                holder->who = (struct snib__who){.pid = -1};
                return true;
        }
        if (!strcmp(uuid, r->uuid)) {
                holder->who = r->who;
                return true;
        }
        e = find(r, uuid);
        ret->foreign = e && e->foreign;
        if (!e || !e->known)
                return false;
        holder->who = e->who;
        return now < e->until;
}

bool snib__who_foreign(struct redis *r, const struct snib__id *id)
{
        char uuid[37];
        const struct who_entry *e = snib__id_client(id, uuid) ? find(r, uuid) : NULL;

        return e ? e->foreign : !snib__id_client(id, uuid);
}

bool snib__who_send_get(struct redis *r, struct request *q, const struct snib__id *id, snib__ns now)
{
        char uuid[37], key[RECORD_KEY_MAX];

        return snib__id_client(id, uuid) && snib__command_send(&r->commands, q, 2, (const char *[]){"GET", key},
                                                               (const size_t[]){3, record_key(uuid, key)}, now);
}

void snib__who_look_up(struct redis *r, const struct snib__id *id, snib__ns now)
{
        char uuid[37];
        struct who_entry *e;
        struct request *q;

        if (now < r->who_look_up || !snib__id_client(id, uuid))
                return;
        e = find_or_take(r, uuid);
        if (now < e->until)
                return;
        r->who_look_up = snib__after(now, LOOK_UP_EVERY);
        e->until = snib__after(now, UNKNOWN_FOR);
        q = snib__redis_request(r, REQUEST_WHO_GET, now);
        if (!q)
                return;
        q->op.id = *id;
        if (!snib__who_send_get(r, q, id, now))
                snib__redis_request_free(r, q);
}

static void copy_line(char *ret, size_t size, const char *text)
{
        size_t n = 0;

        for (; text[n] && text[n] != '\n' && n < size - 1; n++)
                ret[n] = (unsigned char)text[n] >= ' ' && text[n] != 127 ? text[n] : '?';
        ret[n] = 0;
}

/* "pid\nhost\nlabel"; what is missing stays unknown. */
static void parse_record(const char *text, struct snib__who *ret)
{
        const char *host = strchr(text, '\n');
        const char *label = host ? strchr(host + 1, '\n') : NULL;

        ret->pid = strtoll(text, NULL, 10);
        if (host)
                copy_line(ret->host, sizeof(ret->host), host + 1);
        if (label)
                copy_line(ret->label, sizeof(ret->label), label + 1);
}

bool snib__who_reply(struct redis *r, const struct snib__id *id, const struct snib__resp_value *v, size_t count,
                     snib__ns now, struct snib__who *ret)
{
        struct snib__who who = {.pid = -1};
        struct who_entry *e;
        char uuid[37];

        if (count != 1 || (v->type != SNIB__RESP_STRING && v->type != SNIB__RESP_NIL && v->type != SNIB__RESP_ERROR))
                return false;
        if (v->type == SNIB__RESP_STRING)
                parse_record(snib__resp_text(r->commands.resp, v), &who);
        else if (v->type == SNIB__RESP_NIL)
                snprintf(who.label, sizeof(who.label), "redisson");
        *ret = who;
        if (!snib__id_client(id, uuid))
                return true;
        e = find_or_take(r, uuid);
        e->who = who;
        e->known = v->type != SNIB__RESP_ERROR;
        e->foreign = v->type == SNIB__RESP_NIL;
        e->until = snib__after(now, v->type == SNIB__RESP_STRING ? KNOWN_FOR : UNKNOWN_FOR);
        return true;
}
