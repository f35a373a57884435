/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The commands, as a table with what Redis' own table says of them: how many arguments, whether
 * they need memory, whether a script may use them, whether a subscriber may. Replies are written as
 * bytes; a script's calls read the same bytes back.
 */

#include "internal.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
#define NO_SCRIPT_TEXT "-NOSCRIPT No matching script. Please use EVAL.\r\n"

static struct key *key_of(const struct call *x, size_t i)
{
        return data_find(x->f, x->c->db, &x->a.at[i]);
}

bool call_other_type(const struct call *x, enum type type, struct key **ret)
{
        *ret = key_of(x, 1);
        if (!*ret || (*ret)->type == type)
                return false;
        bytes_format(x->out, WRONG_TYPE);
        return true;
}

void call_count(const struct call *x, enum type type)
{
        struct key *k;

        if (!call_other_type(x, type, &k))
                reply_integer(x->out, k ? (int64_t)k->count : 0);
}

static void ok(const struct call *x)
{
        bytes_format(x->out, "+OK\r\n");
}

struct key *call_make(const struct call *x, enum type type)
{
        return data_make(x->f, x->c->db, &x->a.at[1], type);
}

void call_nil(const struct call *x)
{
        bytes_format(x->out, "$-1\r\n");
}

static void do_ping(const struct call *x)
{
        if (x->c->subscribed) {
                bytes_format(x->out, "*2\r\n$4\r\npong\r\n");
                reply_bulk(x->out, x->a.count > 1 ? x->a.at[1].at : "", x->a.count > 1 ? x->a.at[1].length : 0);
        } else if (x->a.count > 1) {
                reply_bulk(x->out, x->a.at[1].at, x->a.at[1].length);
        } else {
                bytes_format(x->out, "+PONG\r\n");
        }
}

static void do_echo(const struct call *x)
{
        reply_bulk(x->out, x->a.at[1].at, x->a.at[1].length);
}

static void do_auth(const struct call *x)
{
        const struct bytes *password = &x->a.at[x->a.count - 1];
        bool right = bytes_equal(password, &(struct bytes){.at = x->f->password, .length = strlen(x->f->password)}) &&
                     (x->a.count == 2 || bytes_are(&x->a.at[1], "default"));

        if (!x->f->password[0] && x->a.count == 2)
                bytes_format(x->out, "-ERR AUTH <password> called without any password configured for the default "
                                     "user. Are you sure your "
                                     "configuration is correct?\r\n");
        else if (!right && x->f->password[0])
                bytes_format(x->out, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
        else {
                x->c->authenticated = true;
                ok(x);
        }
}

/* What a server says of itself; the id of a connection is not kept. */
static void do_hello(const struct call *x)
{
        if (x->a.count > 1 && !bytes_are(&x->a.at[1], "2")) {
                bytes_format(x->out, "-NOPROTO unsupported protocol version\r\n");
                return;
        }
        bytes_format(x->out, "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"
                             "$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
                             "$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n");
}

static void do_select(const struct call *x)
{
        int64_t n;

        if (!bytes_number(&x->a.at[1], &n))
                bytes_format(x->out, NOT_A_NUMBER);
        else if (n < 0 || n > 15)
                bytes_format(x->out, "-ERR DB index is out of range\r\n");
        else {
                x->c->db = (int)n;
                ok(x);
        }
}

/* The clock stands still, but for a script that asks again: it sees the time go by. */
static void do_time(const struct call *x)
{
        char s[24], us[24];

        if (x->f->running && x->f->asked_time)
                x->f->now_us++;
        x->f->asked_time = true;
        int n = snprintf(s, sizeof(s), "%lld", (long long)(x->f->now_us / 1000000));
        int m = snprintf(us, sizeof(us), "%lld", (long long)(x->f->now_us % 1000000));

        bytes_format(x->out, "*2\r\n");
        reply_bulk(x->out, s, (size_t)n);
        reply_bulk(x->out, us, (size_t)m);
}

static void do_get(const struct call *x)
{
        struct key *k;

        if (call_other_type(x, TYPE_STRING, &k))
                return;
        if (k)
                reply_bulk(x->out, k->string.at, k->string.length);
        else
                call_nil(x);
}

static void do_set(const struct call *x)
{
        struct key *k = key_of(x, 1);
        int64_t ttl = -1, expires_ms;
        bool nx = false, xx = false, keep = false;

        for (size_t i = 3; i < x->a.count; i++) {
                bool px = bytes_are(&x->a.at[i], "px"), ex = bytes_are(&x->a.at[i], "ex");
                if ((px || ex) && i + 1 < x->a.count && ttl < 0 && !keep) {
                        if (!bytes_number(&x->a.at[++i], &ttl)) {
                                bytes_format(x->out, NOT_A_NUMBER);
                                return;
                        }
                        ttl *= ex ? 1000 : 1;
                        if (ttl <= 0) {
                                bytes_format(x->out, "-ERR invalid expire time in 'set' command\r\n");
                                return;
                        }
                } else if (bytes_are(&x->a.at[i], "keepttl") && ttl < 0) {
                        keep = true;
                } else if (bytes_are(&x->a.at[i], "nx")) {
                        nx = true;
                } else if (bytes_are(&x->a.at[i], "xx")) {
                        xx = true;
                } else {
                        bytes_format(x->out, SYNTAX);
                        return;
                }
        }
        if ((nx && k) || (xx && !k)) {
                call_nil(x);
                return;
        }
        expires_ms = ttl >= 0 ? x->f->now_us / 1000 + ttl : keep && k ? k->expires_ms : -1;
        if (k)
                data_remove(k);
        k = call_make(x, TYPE_STRING);
        bytes_put(&k->string, x->a.at[2].at, x->a.at[2].length);
        k->expires_ms = expires_ms;
        ok(x);
}

#define OVERFLOW "-ERR increment or decrement would overflow\r\n"

static void add(const struct call *x, int64_t by)
{
        struct key *k;
        int64_t n = 0;

        if (call_other_type(x, TYPE_STRING, &k))
                return;
        if (k && !bytes_number(&k->string, &n)) {
                bytes_format(x->out, NOT_A_NUMBER);
                return;
        }
        if (__builtin_add_overflow(n, by, &n)) {
                bytes_format(x->out, OVERFLOW);
                return;
        }
        if (!k)
                k = call_make(x, TYPE_STRING);
        k->string.length = 0;
        bytes_format(&k->string, "%lld", (long long)n);
        reply_integer(x->out, n);
}

static void do_incr(const struct call *x)
{
        add(x, 1);
}

static void do_decr(const struct call *x)
{
        add(x, -1);
}

static void do_incrby(const struct call *x)
{
        int64_t by;

        if (bytes_number(&x->a.at[2], &by))
                add(x, by);
        else
                bytes_format(x->out, NOT_A_NUMBER);
}

static void do_decrby(const struct call *x)
{
        int64_t by;

        if (!bytes_number(&x->a.at[2], &by))
                bytes_format(x->out, NOT_A_NUMBER);
        else if (by == INT64_MIN)
                bytes_format(x->out, "-ERR decrement would overflow\r\n");
        else
                add(x, -by);
}

static void do_del(const struct call *x)
{
        int n = 0;

        for (size_t i = 1; i < x->a.count; i++) {
                struct key *k = key_of(x, i);
                if (!k)
                        continue;
                data_remove(k);
                n++;
        }
        reply_integer(x->out, n);
}

static void do_exists(const struct call *x)
{
        int n = 0;

        for (size_t i = 1; i < x->a.count; i++)
                n += key_of(x, i) != NULL;
        reply_integer(x->out, n);
}

static void do_type(const struct call *x)
{
        const struct key *k = key_of(x, 1);

        bytes_format(x->out, "+%s\r\n", data_type_name(k ? k->type : TYPE_NONE));
}

static void do_pexpire(const struct call *x)
{
        struct key *k = key_of(x, 1);
        int64_t ttl, when;

        if (x->a.count != 3 || !bytes_number(&x->a.at[2], &ttl))
                bytes_format(x->out, NOT_A_NUMBER);
        else if (__builtin_add_overflow(ttl, x->f->now_us / 1000, &when))
                bytes_format(x->out, "-ERR invalid expire time in 'pexpire' command\r\n");
        else if (!k)
                reply_integer(x->out, 0);
        else {
                if (ttl <= 0)
                        data_remove(k);
                else
                        k->expires_ms = when;
                reply_integer(x->out, 1);
        }
}

static void do_pttl(const struct call *x)
{
        const struct key *k = key_of(x, 1);

        reply_integer(x->out, !k ? -2 : k->expires_ms < 0 ? -1 : k->expires_ms - x->f->now_us / 1000);
}

static void do_persist(const struct call *x)
{
        struct key *k = key_of(x, 1);
        bool had = k && k->expires_ms >= 0;

        if (had)
                k->expires_ms = -1;
        reply_integer(x->out, had);
}

static void do_hset(const struct call *x)
{
        struct key *k;
        size_t before;

        if (x->a.count % 2) {
                bytes_format(x->out, "-ERR wrong number of arguments for 'hset' command\r\n");
                return;
        }
        if (call_other_type(x, TYPE_HASH, &k))
                return;
        if (!k)
                k = call_make(x, TYPE_HASH);
        before = k->count;
        for (size_t i = 2; i < x->a.count; i += 2)
                data_set_field(k, &x->a.at[i], &x->a.at[i + 1]);
        reply_integer(x->out, (int64_t)(k->count - before));
}

static void do_hdel(const struct call *x)
{
        struct key *k;
        int n = 0;

        if (call_other_type(x, TYPE_HASH, &k))
                return;
        for (size_t i = 2; k && i < x->a.count; i++)
                n += data_remove_field(k, &x->a.at[i]);
        if (k && !k->count)
                data_remove(k);
        reply_integer(x->out, n);
}

static void do_hget(const struct call *x)
{
        struct key *k;
        struct field *f;

        if (call_other_type(x, TYPE_HASH, &k))
                return;
        f = k ? data_field(k, &x->a.at[2]) : NULL;
        if (f)
                reply_bulk(x->out, f->value.at, f->value.length);
        else
                call_nil(x);
}

static void do_hmget(const struct call *x)
{
        struct key *k;

        if (call_other_type(x, TYPE_HASH, &k))
                return;
        bytes_format(x->out, "*%zu\r\n", x->a.count - 2);
        for (size_t i = 2; i < x->a.count; i++) {
                struct field *f = k ? data_field(k, &x->a.at[i]) : NULL;
                if (f)
                        reply_bulk(x->out, f->value.at, f->value.length);
                else
                        call_nil(x);
        }
}

static void do_hincrby(const struct call *x)
{
        struct key *k;
        struct field *f;
        struct bytes value = {0};
        int64_t by, n = 0;

        if (!bytes_number(&x->a.at[3], &by)) {
                bytes_format(x->out, NOT_A_NUMBER);
                return;
        }
        if (call_other_type(x, TYPE_HASH, &k))
                return;
        f = k ? data_field(k, &x->a.at[2]) : NULL;
        if (f && !bytes_number(&f->value, &n)) {
                bytes_format(x->out, "-ERR hash value is not an integer\r\n");
                return;
        }
        if (__builtin_add_overflow(n, by, &n)) {
                bytes_format(x->out, OVERFLOW);
                return;
        }
        bytes_format(&value, "%lld", (long long)n);
        data_set_field(k ? k : call_make(x, TYPE_HASH), &x->a.at[2], &value);
        bytes_free(&value);
        reply_integer(x->out, n);
}

static void do_hlen(const struct call *x)
{
        call_count(x, TYPE_HASH);
}

static void do_hexists(const struct call *x)
{
        struct key *k;

        if (!call_other_type(x, TYPE_HASH, &k))
                reply_integer(x->out, k && data_field(k, &x->a.at[2]));
}

static void fields(const struct call *x, bool values)
{
        struct key *k;

        if (call_other_type(x, TYPE_HASH, &k))
                return;
        bytes_format(x->out, "*%zu\r\n", k ? k->count * (values ? 2 : 1) : 0);
        for (size_t i = 0; k && i < k->count; i++) {
                reply_bulk(x->out, k->fields[i].name.at, k->fields[i].name.length);
                if (values)
                        reply_bulk(x->out, k->fields[i].value.at, k->fields[i].value.length);
        }
}

static void do_hkeys(const struct call *x)
{
        fields(x, false);
}

static void do_hgetall(const struct call *x)
{
        fields(x, true);
}

static void do_dbsize(const struct call *x)
{
        int n = 0;

        snib__list_each (it, &x->f->keys) {
                n += snib__container(it, struct key, link)->db == x->c->db;
        }
        reply_integer(x->out, n);
}

static void do_flushall(const struct call *x)
{
        data_clear(x->f);
        ok(x);
}

/* Everything in one step: the cursor is 0 at once. */
static void do_scan(const struct call *x)
{
        struct bytes keys = {0};
        const struct bytes *type = NULL;
        size_t n = 0;

        for (size_t i = 2; i + 1 < x->a.count; i += 2)
                if (bytes_are(&x->a.at[i], "type"))
                        type = &x->a.at[i + 1];
        for (struct snib__list *it = x->f->keys.next, *next; it != &x->f->keys; it = next) {
                struct key *k = snib__container(it, struct key, link);
                next = it->next;
                if (k->db != x->c->db || (type && !bytes_are(type, data_type_name(k->type))) ||
                    !data_find(x->f, k->db, &k->name))
                        continue;
                reply_bulk(&keys, k->name.at, k->name.length);
                n++;
        }
        bytes_format(x->out, "*2\r\n$1\r\n0\r\n*%zu\r\n", n);
        bytes_put(x->out, keys.at, keys.length);
        bytes_free(&keys);
}

/* ---- publish and subscribe */

static struct subscription *subscription_of(struct fakeredis_conn *c, const struct bytes *channel)
{
        snib__list_each (it, &c->subscriptions) {
                struct subscription *s = snib__container(it, struct subscription, link);
                if (bytes_equal(&s->channel, channel))
                        return s;
        }
        return NULL;
}

static void confirm(const struct call *x, const char *what, const struct bytes *channel)
{
        bytes_format(x->out, "*3\r\n");
        reply_bulk(x->out, what, strlen(what));
        reply_bulk(x->out, channel->at, channel->length);
        reply_integer(x->out, (int64_t)x->c->subscribed);
}

static void do_subscribe(const struct call *x)
{
        for (size_t i = 1; i < x->a.count; i++) {
                if (!subscription_of(x->c, &x->a.at[i])) {
                        struct subscription *s = calloc(1, sizeof(*s));
                        if (!s)
                                abort();
                        bytes_put(&s->channel, x->a.at[i].at, x->a.at[i].length);
                        snib__list_append(&x->c->subscriptions, &s->link);
                        x->c->subscribed++;
                }
                confirm(x, "subscribe", &x->a.at[i]);
        }
}

static void do_unsubscribe(const struct call *x)
{
        for (size_t i = 1; i < x->a.count; i++) {
                struct subscription *s = subscription_of(x->c, &x->a.at[i]);
                if (s) {
                        snib__list_remove(&s->link);
                        bytes_free(&s->channel);
                        free(s);
                        x->c->subscribed--;
                }
                confirm(x, "unsubscribe", &x->a.at[i]);
        }
}

static int subscribers(struct fakeredis *f, const struct bytes *channel, const struct bytes *payload)
{
        int n = 0;

        snib__list_each (it, &f->conns) {
                struct fakeredis_conn *c = snib__container(it, struct fakeredis_conn, link);
                if (c->closed || !subscription_of(c, channel))
                        continue;
                n++;
                if (!payload)
                        continue;
                bytes_format(&c->out, "*3\r\n$7\r\nmessage\r\n");
                reply_bulk(&c->out, channel->at, channel->length);
                reply_bulk(&c->out, payload->at, payload->length);
        }
        return n;
}

static void do_publish(const struct call *x)
{
        reply_integer(x->out, subscribers(x->f, &x->a.at[1], &x->a.at[2]));
}

static void do_pubsub(const struct call *x)
{
        if (!bytes_are(&x->a.at[1], "numsub")) {
                bytes_format(x->out, "-ERR unknown subcommand '%.100s'. Try PUBSUB HELP.\r\n", x->a.at[1].at);
                return;
        }
        bytes_format(x->out, "*%zu\r\n", 2 * (x->a.count - 2));
        for (size_t i = 2; i < x->a.count; i++) {
                reply_bulk(x->out, x->a.at[i].at, x->a.at[i].length);
                reply_integer(x->out, subscribers(x->f, &x->a.at[i], NULL));
        }
}

/* ---- scripts */

static void run(const struct call *x, struct script *s)
{
        int64_t keys;

        if (!bytes_number(&x->a.at[2], &keys))
                bytes_format(x->out, NOT_A_NUMBER);
        else if (keys < 0)
                bytes_format(x->out, "-ERR Number of keys can't be negative\r\n");
        else if ((size_t)keys > x->a.count - 3)
                bytes_format(x->out, "-ERR Number of keys can't be greater than number of args\r\n");
        else if (s)
                script_run(x->c, s, (size_t)keys, (struct args){x->a.count - 3, x->a.at + 3}, x->out);
        else
                bytes_format(x->out, NO_SCRIPT_TEXT);
}

static void do_eval(const struct call *x)
{
        struct script *s = script_load(x->f, &x->a.at[1], x->out);

        if (s)
                run(x, s);
}

static void do_evalsha(const struct call *x)
{
        if (x->a.at[1].length != 40) /* before it looks at the rest */
                bytes_format(x->out, NO_SCRIPT_TEXT);
        else
                run(x, script_find(x->f, &x->a.at[1]));
}

static void do_script(const struct call *x)
{
        struct script *s;

        if (bytes_are(&x->a.at[1], "flush")) {
                script_forget(x->f);
                ok(x);
        } else if (bytes_are(&x->a.at[1], "load") && x->a.count == 3) {
                s = script_load(x->f, &x->a.at[2], x->out);
                if (s)
                        reply_bulk(x->out, s->sha1, 40);
        } else if (bytes_are(&x->a.at[1], "exists")) {
                bytes_format(x->out, "*%zu\r\n", x->a.count - 2);
                for (size_t i = 2; i < x->a.count; i++)
                        reply_integer(x->out, script_find(x->f, &x->a.at[i]) != NULL);
        } else {
                bytes_format(x->out, "-ERR unknown subcommand '%.100s'. Try SCRIPT HELP.\r\n", x->a.at[1].at);
        }
}

static void do_client(const struct call *x)
{
        if (bytes_are(&x->a.at[1], "setname"))
                ok(x);
        else
                bytes_format(x->out, "-ERR unknown subcommand '%.100s'. Try CLIENT HELP.\r\n", x->a.at[1].at);
}

/* ---- the table */

enum { MEMORY = 1, NO_SCRIPT = 2, SUBSCRIBER = 4, ANYBODY = 8, WRITE = 16 };
static const struct command {
        const char *name;
        int arity; /* with the name; negative: at least */
        int flags;
        void (*run)(const struct call *x);
} commands[] = {
    {"auth", -2, NO_SCRIPT | ANYBODY, do_auth},
    {"client", -2, NO_SCRIPT, do_client},
    {"dbsize", 1, 0, do_dbsize},
    {"decr", 2, WRITE | MEMORY, do_decr},
    {"decrby", 3, WRITE | MEMORY, do_decrby},
    {"del", -2, WRITE, do_del},
    {"echo", 2, 0, do_echo},
    {"eval", -3, NO_SCRIPT, do_eval},
    {"evalsha", -3, NO_SCRIPT, do_evalsha},
    {"exists", -2, 0, do_exists},
    {"flushall", -1, WRITE, do_flushall},
    {"get", 2, 0, do_get},
    {"hdel", -3, WRITE, do_hdel},
    {"hello", -1, NO_SCRIPT, do_hello},
    {"hexists", 3, 0, do_hexists},
    {"hget", 3, 0, do_hget},
    {"hgetall", 2, 0, do_hgetall},
    {"hincrby", 4, WRITE | MEMORY, do_hincrby},
    {"hkeys", 2, 0, do_hkeys},
    {"hlen", 2, 0, do_hlen},
    {"hmget", -3, 0, do_hmget},
    {"hset", -4, WRITE | MEMORY, do_hset},
    {"incr", 2, WRITE | MEMORY, do_incr},
    {"incrby", 3, WRITE | MEMORY, do_incrby},
    {"lindex", 3, 0, do_lindex},
    {"llen", 2, 0, do_llen},
    {"lpop", -2, WRITE, do_lpop},
    {"lpush", -3, WRITE | MEMORY, do_lpush},
    {"lrange", 4, 0, do_lrange},
    {"lrem", 4, WRITE, do_lrem},
    {"lset", 4, WRITE | MEMORY, do_lset},
    {"persist", 2, WRITE, do_persist},
    {"pexpire", -3, WRITE, do_pexpire},
    {"ping", -1, SUBSCRIBER, do_ping},
    {"pttl", 2, 0, do_pttl},
    {"publish", 3, 0, do_publish},
    {"pubsub", -2, 0, do_pubsub},
    {"rpop", -2, WRITE, do_rpop},
    {"rpush", -3, WRITE | MEMORY, do_rpush},
    {"scan", -2, 0, do_scan},
    {"script", -2, NO_SCRIPT, do_script},
    {"select", 2, 0, do_select},
    {"set", -3, WRITE | MEMORY, do_set},
    {"subscribe", -2, NO_SCRIPT | SUBSCRIBER, do_subscribe},
    {"time", 1, 0, do_time},
    {"type", 2, 0, do_type},
    {"unlink", -2, WRITE, do_del},
    {"unsubscribe", -2, NO_SCRIPT | SUBSCRIBER, do_unsubscribe},
    {"zadd", -4, WRITE | MEMORY, do_zadd},
    {"zcard", 2, 0, do_zcard},
    {"zcount", 4, 0, do_zcount},
    {"zincrby", 4, WRITE | MEMORY, do_zincrby},
    {"zrange", -4, 0, do_zrange},
    {"zrangebyscore", -4, 0, do_zrangebyscore},
    {"zrank", 3, 0, do_zrank},
    {"zrem", -3, WRITE, do_zrem},
    {"zremrangebyscore", 4, WRITE, do_zremrangebyscore},
    {"zscore", 3, 0, do_zscore},
};

static const struct command *find(const struct bytes *name)
{
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
                if (bytes_are(name, commands[i].name))
                        return &commands[i];
        return NULL;
}

static void unknown(const struct call *x, bool scripted)
{
        if (scripted) {
                bytes_format(x->out, "-ERR Unknown Redis command called from script\r\n");
                return;
        }
        bytes_format(x->out, "-ERR unknown command '%.128s', with args beginning with: ", x->a.at[0].at);
        for (size_t i = 1; i < x->a.count && i < 20; i++)
                bytes_format(x->out, "'%.128s' ", x->a.at[i].at);
        bytes_format(x->out, "\r\n");
}

/* The checks of a real server, in its order. True if the command may run. */
static bool allowed(const struct call *x, const struct command *k, bool scripted)
{
        bool arity = k->arity < 0 ? x->a.count >= (size_t)-k->arity : x->a.count == (size_t)k->arity;

        if (!arity && scripted)
                bytes_format(x->out, "-ERR Wrong number of args calling Redis command from script\r\n");
        else if (!arity)
                bytes_format(x->out, "-ERR wrong number of arguments for '%s' command\r\n", k->name);
        else if (scripted && k->flags & NO_SCRIPT)
                bytes_format(x->out, "-ERR This Redis command is not allowed from script\r\n");
        else if (!scripted && x->f->password[0] && !x->c->authenticated && !(k->flags & ANYBODY))
                bytes_format(x->out, "-NOAUTH Authentication required.\r\n");
        else if (!scripted && x->f->refusal && !(k->flags & ANYBODY))
                bytes_format(x->out, "-%.200s\r\n", x->f->refusal);
        else if (x->f->full && k->flags & MEMORY && !(scripted && x->f->dirty))
                bytes_format(x->out, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        else if (!scripted && x->c->subscribed && !(k->flags & SUBSCRIBER))
                bytes_format(x->out,
                             "-ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
                             "are allowed in this "
                             "context\r\n",
                             k->name);
        else
                return true;
        return false;
}

void command_run(struct fakeredis_conn *c, struct args a, bool scripted, struct bytes *out)
{
        struct call x = {c->server, c, a, out};
        const struct command *k = find(&a.at[0]);

        if (!k)
                unknown(&x, scripted);
        else if (allowed(&x, k, scripted)) {
                x.f->dirty |= k->flags & WRITE;
                k->run(&x);
        }
}
