/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_FAKEREDIS_INTERNAL_H
#define SNIB_TEST_FAKEREDIS_INTERNAL_H

/*
 * What the files of fakeredis share: fakeredis.c connections and the life of the server, data.c the
 * data types, command.c the commands, of which those on lists and sorted sets are in collection.c,
 * script.c Lua.
 */

#include "base/list.h"
#include "fakeredis.h"

struct lua_State;

struct bytes {
        char *at;
        size_t length, room;
};

/* Of a hash: name and value; of a list: name; of a sorted set: name and score. */
struct field {
        struct bytes name, value;
        double score;
};

enum type { TYPE_NONE = 0, TYPE_STRING, TYPE_HASH, TYPE_LIST, TYPE_ZSET };

struct key {
        struct snib__list link; /* in fakeredis.keys, in order of (db, name) */
        int db;
        struct bytes name;
        enum type type;
        int64_t expires_ms; /* -1 never */
        struct bytes string;
        struct field *fields; /* hash, list: in order of insertion; sorted set: by score, then name */
        size_t count;
};

struct subscription {
        struct snib__list link; /* in fakeredis_conn.subscriptions */
        struct bytes channel;
};

struct script {
        struct snib__list link;
        char sha1[41];
        int function; /* Lua registry */
};

struct fakeredis_conn {
        struct snib__list link; /* in fakeredis.conns */
        struct fakeredis *server;
        struct bytes in, out;
        size_t taken; /* of out */
        struct snib__list subscriptions;
        size_t subscribed;
        int db;
        bool authenticated, closed;
};

struct fakeredis {
        int64_t now_us;
        struct snib__list keys, conns, scripts;
        char password[64];
        const char *refusal;
        bool full;
        struct lua_State *lua;
        struct fakeredis_conn *running; /* on whose behalf a script runs */
        bool asked_time;                /* so has that script */
        bool dirty; /* that script has called a command that writes: it is no longer refused for memory */
};

struct args {
        size_t count;
        const struct bytes *at;
};

void bytes_put(struct bytes *b, const char *at, size_t length);
__attribute__((format(printf, 2, 3))) void bytes_format(struct bytes *b, const char *format, ...);
void bytes_free(struct bytes *b);
bool bytes_are(const struct bytes *b, const char *text); /* case-insensitive */
bool bytes_equal(const struct bytes *a, const struct bytes *b);
/* A whole decimal that fits. */
bool bytes_number(const struct bytes *b, int64_t *ret);

void reply_bulk(struct bytes *out, const char *at, size_t length);
void reply_integer(struct bytes *out, int64_t n);

struct key *data_find(struct fakeredis *f, int db, const struct bytes *name); /* not if it is expired */
struct key *data_make(struct fakeredis *f, int db, const struct bytes *name, enum type type);
void data_remove(struct key *k);
void data_clear(struct fakeredis *f);
struct field *data_field(struct key *k, const struct bytes *name);
void data_set_field(struct key *k, const struct bytes *name, const struct bytes *value);
bool data_remove_field(struct key *k, const struct bytes *name);
void data_insert(struct key *k, size_t at, const struct bytes *name);
void data_remove_at(struct key *k, size_t first, size_t count);
/* Adds a member of a sorted set, or gives it another score. True: it was added. */
bool data_set_score(struct key *k, const struct bytes *name, double score);
const char *data_type_name(enum type type);

/* One command while it is executed. */
struct call {
        struct fakeredis *f;
        struct fakeredis_conn *c;
        struct args a;
        struct bytes *out;
};

#define NOT_A_NUMBER "-ERR value is not an integer or out of range\r\n"
#define SYNTAX "-ERR syntax error\r\n"

/* The key in argument 1 if it is of this type or absent; true if it is of another, which has been
 * answered. */
bool call_other_type(const struct call *x, enum type type, struct key **ret);
/* Answers how many elements the key in argument 1 has, if it is of this type. */
void call_count(const struct call *x, enum type type);
struct key *call_make(const struct call *x, enum type type);
void call_nil(const struct call *x);

/* collection.c */
void do_lpush(const struct call *x);
void do_rpush(const struct call *x);
void do_lpop(const struct call *x);
void do_rpop(const struct call *x);
void do_lindex(const struct call *x);
void do_llen(const struct call *x);
void do_lset(const struct call *x);
void do_lrange(const struct call *x);
void do_lrem(const struct call *x);
void do_zadd(const struct call *x);
void do_zcard(const struct call *x);
void do_zcount(const struct call *x);
void do_zincrby(const struct call *x);
void do_zrange(const struct call *x);
void do_zrangebyscore(const struct call *x);
void do_zrank(const struct call *x);
void do_zrem(const struct call *x);
void do_zremrangebyscore(const struct call *x);
void do_zscore(const struct call *x);

/* Executes one command of a client, or of a script (`scripted`), and appends its reply to `out`. */
void command_run(struct fakeredis_conn *c, struct args a, bool scripted, struct bytes *out);

void script_open(struct fakeredis *f);
void script_close(struct fakeredis *f);
/* NULL with an error in `out` if it does not compile. */
struct script *script_load(struct fakeredis *f, const struct bytes *text, struct bytes *out);
struct script *script_find(struct fakeredis *f, const struct bytes *sha1);
void script_forget(struct fakeredis *f);
void script_run(struct fakeredis_conn *c, struct script *s, size_t keys, struct args rest, struct bytes *out);

#endif
