/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The commands on lists and sorted sets. Both are arrays of fields; a sorted set keeps its own in
 * order. Checks come in the order of a real server: arguments, then the key's type. One that
 * becomes empty is no more.
 */

#include "internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOT_A_FLOAT "-ERR value is not a valid float\r\n"

static void reply_name(const struct call *x, const struct field *f)
{
        reply_bulk(x->out, f->name.at, f->name.length);
}

static void remove_if_empty(struct key *k)
{
        if (k && !k->count)
                data_remove(k);
}

/* Turns what counts from the end below 0 into a range of indices [*first, *end) that exist. */
static void clip(const struct key *k, int64_t from, int64_t to, size_t *first, size_t *end)
{
        int64_t count = k ? (int64_t)k->count : 0;

        from = from < 0 ? from + count : from;
        to = to < 0 ? to + count : to;
        from = from < 0 ? 0 : from;
        to = to >= count ? count - 1 : to;
        *first = (size_t)from;
        *end = from > to ? *first : (size_t)to + 1;
}

static bool range_of_args(const struct call *x, int64_t *from, int64_t *to)
{
        if (bytes_number(&x->a.at[2], from) && bytes_number(&x->a.at[3], to))
                return true;
        bytes_format(x->out, NOT_A_NUMBER);
        return false;
}

/* ---- lists */

static void push(const struct call *x, bool left)
{
        struct key *k;

        if (call_other_type(x, TYPE_LIST, &k))
                return;
        if (!k)
                k = call_make(x, TYPE_LIST);
        for (size_t i = 2; i < x->a.count; i++)
                data_insert(k, left ? 0 : k->count, &x->a.at[i]);
        reply_integer(x->out, (int64_t)k->count);
}

void do_lpush(const struct call *x)
{
        push(x, true);
}

void do_rpush(const struct call *x)
{
        push(x, false);
}

static void pop(const struct call *x, bool left)
{
        struct key *k;

        if (x->a.count > 2) {
                bytes_format(x->out, "-ERR wrong number of arguments for 'lpop' command\r\n");
                return;
        }
        if (call_other_type(x, TYPE_LIST, &k))
                return;
        if (!k) {
                call_nil(x);
                return;
        }
        reply_name(x, &k->fields[left ? 0 : k->count - 1]);
        data_remove_at(k, left ? 0 : k->count - 1, 1);
        remove_if_empty(k);
}

void do_lpop(const struct call *x)
{
        pop(x, true);
}

void do_rpop(const struct call *x)
{
        pop(x, false);
}

void do_lindex(const struct call *x)
{
        struct key *k;
        int64_t i;

        if (call_other_type(x, TYPE_LIST, &k))
                return;
        if (k && !bytes_number(&x->a.at[2], &i)) {
                bytes_format(x->out, NOT_A_NUMBER);
                return;
        }
        i = k && i < 0 ? i + (int64_t)k->count : i;
        if (k && i >= 0 && i < (int64_t)k->count)
                reply_name(x, &k->fields[i]);
        else
                call_nil(x);
}

void do_llen(const struct call *x)
{
        call_count(x, TYPE_LIST);
}

void do_lset(const struct call *x)
{
        struct key *k;
        struct bytes *at;
        int64_t i;

        if (call_other_type(x, TYPE_LIST, &k))
                return;
        if (!k) {
                bytes_format(x->out, "-ERR no such key\r\n");
                return;
        }
        if (!bytes_number(&x->a.at[2], &i)) {
                bytes_format(x->out, NOT_A_NUMBER);
                return;
        }
        i = i < 0 ? i + (int64_t)k->count : i;
        if (i < 0 || i >= (int64_t)k->count) {
                bytes_format(x->out, "-ERR index out of range\r\n");
                return;
        }
        at = &k->fields[i].name;
        at->length = 0;
        bytes_put(at, x->a.at[3].at, x->a.at[3].length);
        bytes_format(x->out, "+OK\r\n");
}

void do_lrange(const struct call *x)
{
        struct key *k;
        int64_t from, to;
        size_t first, end;

        if (!range_of_args(x, &from, &to) || call_other_type(x, TYPE_LIST, &k))
                return;
        clip(k, from, to, &first, &end);
        bytes_format(x->out, "*%zu\r\n", end - first);
        for (size_t i = first; i < end; i++)
                reply_name(x, &k->fields[i]);
}

void do_lrem(const struct call *x)
{
        struct key *k;
        int64_t count, removed = 0;

        if (!bytes_number(&x->a.at[2], &count)) {
                bytes_format(x->out, NOT_A_NUMBER);
                return;
        }
        if (call_other_type(x, TYPE_LIST, &k))
                return;
        for (size_t n = k ? k->count : 0, at = 0; n > 0; n--) {
                size_t i = count < 0 ? n - 1 : at;
                bool match = bytes_equal(&k->fields[i].name, &x->a.at[3]);
                if (match && (count == 0 || removed < llabs(count))) {
                        data_remove_at(k, i, 1);
                        removed++;
                } else {
                        at++;
                }
        }
        remove_if_empty(k);
        reply_integer(x->out, removed);
}

/* ---- sorted sets */

static bool score_of(const struct bytes *b, double *ret)
{
        char *end = NULL;

        *ret = b->length ? strtod(b->at, &end) : 0;
        return b->length && b->at[0] != ' ' && end == b->at + b->length && !isnan(*ret);
}

static void reply_score(const struct call *x, double score)
{
        struct bytes text = {0};

        bytes_format(&text, "%.17g", score);
        reply_bulk(x->out, text.at, text.length);
        bytes_free(&text);
}

void do_zadd(const struct call *x)
{
        struct key *k;
        size_t first = 2;
        bool nx = false, xx = false;
        double score;
        int64_t added = 0;

        for (; first < x->a.count && (bytes_are(&x->a.at[first], "nx") || bytes_are(&x->a.at[first], "xx")); first++) {
                nx |= bytes_are(&x->a.at[first], "nx");
                xx |= bytes_are(&x->a.at[first], "xx");
        }
        if (first == x->a.count || (x->a.count - first) % 2) {
                bytes_format(x->out, SYNTAX);
                return;
        }
        if (nx && xx) {
                bytes_format(x->out, "-ERR XX and NX options at the same time are not compatible\r\n");
                return;
        }
        for (size_t i = first; i < x->a.count; i += 2)
                if (!score_of(&x->a.at[i], &score)) {
                        bytes_format(x->out, NOT_A_FLOAT);
                        return;
                }
        if (call_other_type(x, TYPE_ZSET, &k))
                return;
        for (size_t i = first; i < x->a.count; i += 2) {
                bool there = k && data_field(k, &x->a.at[i + 1]);
                if (there ? nx : xx)
                        continue;
                k = k ? k : call_make(x, TYPE_ZSET);
                (void)score_of(&x->a.at[i], &score);
                added += data_set_score(k, &x->a.at[i + 1], score);
        }
        reply_integer(x->out, added);
}

void do_zincrby(const struct call *x)
{
        struct key *k;
        struct field *f;
        double by, score;

        if (!score_of(&x->a.at[2], &by)) {
                bytes_format(x->out, NOT_A_FLOAT);
                return;
        }
        if (call_other_type(x, TYPE_ZSET, &k))
                return;
        f = k ? data_field(k, &x->a.at[3]) : NULL;
        score = (f ? f->score : 0) + by;
        if (isnan(score)) {
                bytes_format(x->out, "-ERR resulting score is not a number (NaN)\r\n");
                return;
        }
        data_set_score(k ? k : call_make(x, TYPE_ZSET), &x->a.at[3], score);
        reply_score(x, score);
}

void do_zrem(const struct call *x)
{
        struct key *k;
        int64_t n = 0;

        if (call_other_type(x, TYPE_ZSET, &k))
                return;
        for (size_t i = 2; k && i < x->a.count; i++)
                n += data_remove_field(k, &x->a.at[i]);
        remove_if_empty(k);
        reply_integer(x->out, n);
}

void do_zcard(const struct call *x)
{
        call_count(x, TYPE_ZSET);
}

void do_zscore(const struct call *x)
{
        struct key *k;
        struct field *f;

        if (call_other_type(x, TYPE_ZSET, &k))
                return;
        f = k ? data_field(k, &x->a.at[2]) : NULL;
        if (f)
                reply_score(x, f->score);
        else
                call_nil(x);
}

void do_zrank(const struct call *x)
{
        struct key *k;
        struct field *f;

        if (call_other_type(x, TYPE_ZSET, &k))
                return;
        f = k ? data_field(k, &x->a.at[2]) : NULL;
        if (f)
                reply_integer(x->out, f - k->fields);
        else
                call_nil(x);
}

static void reply_members(const struct call *x, const struct key *k, size_t first, size_t end, bool scores)
{
        bytes_format(x->out, "*%zu\r\n", (end - first) * (scores ? 2 : 1));
        for (size_t i = first; i < end; i++) {
                reply_name(x, &k->fields[i]);
                if (scores)
                        reply_score(x, k->fields[i].score);
        }
}

void do_zrange(const struct call *x)
{
        struct key *k;
        int64_t from, to;
        size_t first, end;
        bool scores = x->a.count == 5 && bytes_are(&x->a.at[4], "withscores");

        if (x->a.count > 4 && !scores) {
                bytes_format(x->out, SYNTAX);
                return;
        }
        if (!range_of_args(x, &from, &to) || call_other_type(x, TYPE_ZSET, &k))
                return;
        clip(k, from, to, &first, &end);
        reply_members(x, k, first, end, scores);
}

/* One end of a range of scores: a number, or "(number", which leaves it out. */
static bool limit_of(const struct bytes *b, double *ret, bool *ret_open)
{
        struct bytes number = *b;

        *ret_open = b->length && b->at[0] == '(';
        number.at += *ret_open;
        number.length -= *ret_open;
        return score_of(&number, ret);
}

/* The range of arguments 2 and 3 as indices. False: answered. */
static bool range_of_scores(const struct call *x, struct key **ret, size_t *first, size_t *end)
{
        double least, most;
        bool above, below;
        size_t i = 0;

        if (!limit_of(&x->a.at[2], &least, &above) || !limit_of(&x->a.at[3], &most, &below)) {
                bytes_format(x->out, "-ERR min or max is not a float\r\n");
                return false;
        }
        if (call_other_type(x, TYPE_ZSET, ret))
                return false;
        while (*ret && i < (*ret)->count &&
               ((*ret)->fields[i].score < least || (above && (*ret)->fields[i].score == least)))
                i++;
        *first = i;
        while (*ret && i < (*ret)->count &&
               ((*ret)->fields[i].score < most || (!below && (*ret)->fields[i].score == most)))
                i++;
        *end = i;
        return true;
}

void do_zcount(const struct call *x)
{
        struct key *k;
        size_t first, end;

        if (range_of_scores(x, &k, &first, &end))
                reply_integer(x->out, (int64_t)(end - first));
}

void do_zremrangebyscore(const struct call *x)
{
        struct key *k;
        size_t first, end;

        if (!range_of_scores(x, &k, &first, &end))
                return;
        if (k)
                data_remove_at(k, first, end - first);
        remove_if_empty(k);
        reply_integer(x->out, (int64_t)(end - first));
}

void do_zrangebyscore(const struct call *x)
{
        struct key *k;
        size_t first, end;
        bool scores = false;
        int64_t offset = 0, count = -1;

        for (size_t i = 4; i < x->a.count; i++) {
                if (bytes_are(&x->a.at[i], "withscores")) {
                        scores = true;
                } else if (bytes_are(&x->a.at[i], "limit") && i + 2 < x->a.count) {
                        if (!bytes_number(&x->a.at[i + 1], &offset) || !bytes_number(&x->a.at[i + 2], &count)) {
                                bytes_format(x->out, NOT_A_NUMBER);
                                return;
                        }
                        i += 2;
                } else {
                        bytes_format(x->out, SYNTAX);
                        return;
                }
        }
        if (!range_of_scores(x, &k, &first, &end))
                return;
        first = offset < 0 || (uint64_t)offset > end - first ? end : first + (size_t)offset;
        if (count >= 0 && (uint64_t)count < end - first)
                end = first + (size_t)count;
        reply_members(x, k, first, end, scores);
}
