/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_FAKEREDIS_INTERNAL_H
#define SNIB_TEST_FAKEREDIS_INTERNAL_H

/*
 * What the files of fakeredis share: fakeredis.c connections and the life of the server, data.c the data types,
 * command.c the commands, script.c Lua.
 */

#include "base/list.h"
#include "fakeredis.h"

struct lua_State;

struct bytes {
        char *at;
        size_t length, room;
};

struct field {
        struct bytes name, value;
};

enum type { TYPE_NONE = 0, TYPE_STRING, TYPE_HASH };

struct key {
        struct snib__list link; /* in fakeredis.keys, in order of (db, name) */
        int db;
        struct bytes name;
        enum type type;
        int64_t expires_ms; /* -1 never */
        struct bytes string;
        struct field *fields; /* in order of insertion */
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
        const char *running_sha1;
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
