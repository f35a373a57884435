/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys, byte strings, hashes, lists and sorted sets. Keys are few: everything is a list or an
 * array, in an order that does not depend on memory addresses.
 */

#include "internal.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void *must(void *p)
{
        if (!p)
                abort();
        return p;
}

void bytes_put(struct bytes *b, const char *at, size_t length)
{
        if (b->length + length + 1 > b->room) {
                b->room = (b->length + length + 1) * 2;
                b->at = must(realloc(b->at, b->room));
        }
        if (length)
                memcpy(b->at + b->length, at, length);
        b->length += length;
        b->at[b->length] = 0;
}

void bytes_format(struct bytes *b, const char *format, ...)
{
        char text[512];
        va_list list;

        va_start(list, format);
        int n = vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        bytes_put(b, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void bytes_free(struct bytes *b)
{
        free(b->at);
        *b = (struct bytes){0};
}

bool bytes_are(const struct bytes *b, const char *text)
{
        return b->length == strlen(text) && !strncasecmp(b->at, text, b->length);
}

bool bytes_equal(const struct bytes *a, const struct bytes *b)
{
        return a->length == b->length && (!a->length || !memcmp(a->at, b->at, a->length));
}

bool bytes_number(const struct bytes *b, int64_t *ret)
{
        bool negative = b->length && b->at[0] == '-';
        int64_t n = 0;
        size_t digits = b->length - negative;

        if (!digits || digits > 19 || (b->at[negative] == '0' && (digits > 1 || negative)))
                return false;
        for (size_t i = negative; i < b->length; i++) {
                int digit = b->at[i] - '0';
                if (digit < 0 || digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
                    (negative ? __builtin_sub_overflow(n, digit, &n) : __builtin_add_overflow(n, digit, &n)))
                        return false;
        }
        *ret = n;
        return true;
}

void reply_bulk(struct bytes *out, const char *at, size_t length)
{
        bytes_format(out, "$%zu\r\n", length);
        bytes_put(out, at, length);
        bytes_put(out, "\r\n", 2);
}

void reply_integer(struct bytes *out, int64_t n)
{
        bytes_format(out, ":%lld\r\n", (long long)n);
}

void data_remove(struct key *k)
{
        snib__list_remove(&k->link);
        data_remove_at(k, 0, k->count);
        free(k->fields);
        bytes_free(&k->name);
        bytes_free(&k->string);
        free(k);
}

void data_clear(struct fakeredis *f)
{
        while (!snib__list_empty(&f->keys))
                data_remove(snib__container(f->keys.next, struct key, link));
}

static int compare_bytes(const struct bytes *a, const struct bytes *b)
{
        size_t n = a->length < b->length ? a->length : b->length;
        int order = n ? memcmp(a->at, b->at, n) : 0;

        return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare(const struct key *k, int db, const struct bytes *name)
{
        return k->db != db ? k->db - db : compare_bytes(&k->name, name);
}

static bool expired(const struct fakeredis *f, const struct key *k)
{
        return k->expires_ms >= 0 && f->now_us / 1000 > k->expires_ms;
}

struct key *data_find(struct fakeredis *f, int db, const struct bytes *name)
{
        snib__list_each (it, &f->keys) {
                struct key *k = snib__container(it, struct key, link);
                if (compare(k, db, name))
                        continue;
                if (!expired(f, k))
                        return k;
                data_remove(k);
                return NULL;
        }
        return NULL;
}

struct key *data_make(struct fakeredis *f, int db, const struct bytes *name, enum type type)
{
        struct key *k = must(calloc(1, sizeof(*k)));
        struct snib__list *before = f->keys.next;

        while (before != &f->keys) { /* what nobody asks for any more goes on the way */
                struct key *other = snib__container(before, struct key, link);
                if (compare(other, db, name) >= 0)
                        break;
                before = before->next;
                if (expired(f, other))
                        data_remove(other);
        }
        k->db = db;
        k->type = type;
        k->expires_ms = -1;
        bytes_put(&k->name, name->at, name->length);
        snib__list_append(before, &k->link);
        return k;
}

struct field *data_field(struct key *k, const struct bytes *name)
{
        for (size_t i = 0; i < k->count; i++)
                if (bytes_equal(&k->fields[i].name, name))
                        return &k->fields[i];
        return NULL;
}

void data_insert(struct key *k, size_t at, const struct bytes *name)
{
        k->fields = must(realloc(k->fields, (k->count + 1) * sizeof(*k->fields)));
        memmove(&k->fields[at + 1], &k->fields[at], (k->count - at) * sizeof(*k->fields));
        k->fields[at] = (struct field){0};
        bytes_put(&k->fields[at].name, name->at, name->length);
        k->count++;
}

void data_remove_at(struct key *k, size_t first, size_t count)
{
        for (size_t i = first; i < first + count; i++) {
                bytes_free(&k->fields[i].name);
                bytes_free(&k->fields[i].value);
        }
        k->count -= count;
        if (k->count > first)
                memmove(&k->fields[first], &k->fields[first + count], (k->count - first) * sizeof(*k->fields));
}

void data_set_field(struct key *k, const struct bytes *name, const struct bytes *value)
{
        struct field *f = data_field(k, name);

        if (!f) {
                data_insert(k, k->count, name);
                f = &k->fields[k->count - 1];
        }
        f->value.length = 0;
        bytes_put(&f->value, value->at, value->length);
}

bool data_remove_field(struct key *k, const struct bytes *name)
{
        struct field *f = data_field(k, name);

        if (f)
                data_remove_at(k, (size_t)(f - k->fields), 1);
        return f != NULL;
}

bool data_set_score(struct key *k, const struct bytes *name, double score)
{
        bool added = !data_remove_field(k, name);
        size_t at = 0;

        while (at < k->count && (k->fields[at].score < score ||
                                 (k->fields[at].score == score && compare_bytes(&k->fields[at].name, name) < 0)))
                at++;
        data_insert(k, at, name);
        k->fields[at].score = score;
        return added;
}

const char *data_type_name(enum type type)
{
        static const char *const names[] = {"none", "string", "hash", "list", "zset"};

        return names[type];
}
