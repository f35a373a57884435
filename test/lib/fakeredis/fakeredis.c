/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections and the life of the server: bytes in, split into commands (RESP arrays of bulk
 * strings, nothing else), bytes out.
 */

#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 64
#define BULK_MAX (1 << 20)

struct fakeredis *fakeredis_new(void)
{
        struct fakeredis *f = calloc(1, sizeof(*f));

        if (!f)
                abort();
        f->now_us = INT64_C(1700000000000000);
        snib__list_init(&f->keys);
        snib__list_init(&f->conns);
        snib__list_init(&f->scripts);
        script_open(f);
        return f;
}

void fakeredis_free(struct fakeredis *f)
{
        if (!f)
                return;
        while (!snib__list_empty(&f->conns))
                fakeredis_disconnect(snib__container(f->conns.next, struct fakeredis_conn, link));
        data_clear(f);
        script_close(f);
        free(f);
}

void fakeredis_set_time(struct fakeredis *f, int64_t us)
{
        f->now_us = us;
}

int64_t fakeredis_time(const struct fakeredis *f)
{
        return f->now_us;
}

struct fakeredis_conn *fakeredis_connect(struct fakeredis *f)
{
        struct fakeredis_conn *c = calloc(1, sizeof(*c));

        if (!c)
                abort();
        c->server = f;
        snib__list_init(&c->subscriptions);
        snib__list_append(&f->conns, &c->link);
        return c;
}

static void unsubscribe(struct fakeredis_conn *c)
{
        for (struct snib__list *it = snib__list_take(&c->subscriptions); it; it = snib__list_take(&c->subscriptions)) {
                struct subscription *s = snib__container(it, struct subscription, link);
                bytes_free(&s->channel);
                free(s);
        }
        c->subscribed = 0;
}

void fakeredis_disconnect(struct fakeredis_conn *c)
{
        if (!c)
                return;
        unsubscribe(c);
        snib__list_remove(&c->link);
        bytes_free(&c->in);
        bytes_free(&c->out);
        free(c);
}

/* Reads "<sign><number>\r\n" at *at. 1 done, 0 needs more bytes, -1 nonsense. */
static int read_count(const struct bytes *in, size_t *at, char sign, int64_t max, int64_t *ret)
{
        const char *end = memchr(in->at + *at, '\n', in->length - *at);
        struct bytes number = {.at = in->at + *at + 1};

        if (!end)
                return in->length - *at > 32 ? -1 : 0;
        number.length = (size_t)(end - number.at) - 1;
        if (in->at[*at] != sign || end - in->at - (ptrdiff_t)*at < 3 || end[-1] != '\r' ||
            !bytes_number(&number, ret) || *ret < 0 || *ret > max)
                return -1;
        *at = (size_t)(end - in->at) + 1;
        return 1;
}

/* Reads one command. 1: args point into c->in, *ret_used bytes of it; 0; -1. */
static int read_command(const struct fakeredis_conn *c, struct bytes *args, size_t *ret_count, size_t *ret_used)
{
        const struct bytes *in = &c->in;
        size_t at = 0;
        int64_t count, length;
        int r = in->length ? read_count(in, &at, '*', ARGS_MAX, &count) : 0;

        if (r <= 0)
                return r;
        for (int64_t i = 0; i < count; i++) {
                r = at < in->length ? read_count(in, &at, '$', BULK_MAX, &length) : 0;
                if (r <= 0)
                        return r;
                if (in->length - at < (size_t)length + 2)
                        return 0;
                if (memcmp(in->at + at + length, "\r\n", 2))
                        return -1;
                args[i] = (struct bytes){.at = in->at + at, .length = (size_t)length};
                at += (size_t)length + 2;
        }
        *ret_count = (size_t)count;
        *ret_used = at;
        return 1;
}

static void run(struct fakeredis_conn *c, struct bytes *args, size_t count)
{
        struct bytes copies[ARGS_MAX] = {{0}};

        for (size_t i = 0; i < count; i++)
                bytes_put(&copies[i], args[i].at, args[i].length); /* ended by a NUL, for error texts */
        if (count)
                command_run(c, (struct args){count, copies}, false, &c->out);
        for (size_t i = 0; i < count; i++)
                bytes_free(&copies[i]);
}

void fakeredis_feed(struct fakeredis_conn *c, const char *bytes, size_t length)
{
        struct bytes args[ARGS_MAX];
        size_t count, used;
        int r = 1;

        if (c->closed)
                return;
        bytes_put(&c->in, bytes, length);
        while (!c->closed && (r = read_command(c, args, &count, &used)) > 0) {
                run(c, args, count);
                memmove(c->in.at, c->in.at + used, c->in.length - used);
                c->in.length -= used;
        }
        if (r < 0) {
                bytes_format(&c->out, "-ERR Protocol error\r\n");
                c->closed = true;
                unsubscribe(c);
        }
}

size_t fakeredis_output(const struct fakeredis_conn *c, const char **ret_bytes)
{
        *ret_bytes = c->out.at ? c->out.at + c->taken : NULL;
        return c->out.length - c->taken;
}

void fakeredis_take(struct fakeredis_conn *c, size_t n)
{
        c->taken += n;
        if (c->taken < c->out.length)
                return;
        c->taken = c->out.length = 0;
}

bool fakeredis_closed(const struct fakeredis_conn *c)
{
        return c->closed;
}

void fakeredis_restart(struct fakeredis *f, bool keep_data)
{
        snib__list_each (it, &f->conns) {
                struct fakeredis_conn *c = snib__container(it, struct fakeredis_conn, link);
                c->closed = true;
                unsubscribe(c);
        }
        script_forget(f);
        if (!keep_data)
                data_clear(f);
}

void fakeredis_flushall(struct fakeredis *f)
{
        data_clear(f);
}

void fakeredis_script_flush(struct fakeredis *f)
{
        script_forget(f);
}

void fakeredis_set_password(struct fakeredis *f, const char *password)
{
        snprintf(f->password, sizeof(f->password), "%s", password ? password : "");
}

void fakeredis_set_refusal(struct fakeredis *f, const char *error)
{
        f->refusal = error;
}

void fakeredis_set_full(struct fakeredis *f, bool full)
{
        f->full = full;
}

char *fakeredis_dump(struct fakeredis *f)
{
        struct bytes out = {0};

        bytes_put(&out, "", 0);
        for (struct snib__list *it = f->keys.next, *next; it != &f->keys; it = next) {
                struct key *k = snib__container(it, struct key, link);
                next = it->next;
                if (!data_find(f, k->db, &k->name))
                        continue;
                bytes_put(&out, k->name.at, k->name.length);
                bytes_format(&out, " %s %lld", data_type_name(k->type),
                             k->expires_ms < 0 ? -1LL : (long long)(k->expires_ms - f->now_us / 1000));
                if (k->type == TYPE_STRING) {
                        bytes_put(&out, " ", 1);
                        bytes_put(&out, k->string.at, k->string.length);
                }
                for (size_t i = 0; i < k->count; i++) {
                        bytes_put(&out, " ", 1);
                        bytes_put(&out, k->fields[i].name.at, k->fields[i].name.length);
                        if (k->type == TYPE_ZSET)
                                bytes_format(&out, "=%.17g", k->fields[i].score);
                        else if (k->type == TYPE_HASH)
                                bytes_format(&out, "=");
                        bytes_put(&out, k->fields[i].value.at, k->fields[i].value.length);
                }
                bytes_put(&out, "\n", 1);
        }
        return out.at;
}
