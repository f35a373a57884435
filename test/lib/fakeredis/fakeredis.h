/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_FAKEREDIS_H
#define SNIB_TEST_FAKEREDIS_H

/*
 * The part of Redis that the engine uses, in one process and without a clock of its own, for the
 * simulator: real request bytes in, real reply bytes out, production scripts run by an embedded Lua
 * 5.1. What it does is compared with a real server, command by command, by test/differential; what
 * it does not know it answers with a real server's error.
 *
 * Commands: AUTH CLIENT DBSIZE DECR DECRBY DEL ECHO EVAL EVALSHA EXISTS FLUSHALL GET HDEL HEXISTS
 * HGET HGETALL HINCRBY HKEYS HLEN HMGET HSET INCR INCRBY LINDEX LLEN LPOP LPUSH LRANGE LREM PERSIST
 * PEXPIRE PING PTTL PUBLISH PUBSUB (NUMSUB) RPOP RPUSH SCAN SCRIPT (LOAD EXISTS FLUSH) SELECT SET
 * (PX EX KEEPTTL NX XX) SUBSCRIBE TIME TYPE UNLINK UNSUBSCRIBE ZADD (NX XX) ZCARD ZCOUNT ZINCRBY
 * ZRANGE (by rank) ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYSCORE ZSCORE. Deterministic: the same calls
 * give the same bytes. Runs out of memory by ending the program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fakeredis;
struct fakeredis_conn;

struct fakeredis *fakeredis_new(void);
void fakeredis_free(struct fakeredis *f);

/* The server's wall clock, microseconds since 1970; may go backward. Starts at 1700000000000000.
 * It moves by itself while a script looks at it: 1 us with each TIME but the first. */
void fakeredis_set_time(struct fakeredis *f, int64_t us);
int64_t fakeredis_time(const struct fakeredis *f);

/* A client connects. The connection lives until fakeredis_disconnect(). */
struct fakeredis_conn *fakeredis_connect(struct fakeredis *f);
/* The client is gone; frees the connection. NULL is allowed. */
void fakeredis_disconnect(struct fakeredis_conn *c);

/* Bytes from the client, split anywhere. Every command that is complete is executed at once. */
void fakeredis_feed(struct fakeredis_conn *c, const char *bytes, size_t length);
/* Bytes for the client: *ret_bytes lives until the next call on this server. */
size_t fakeredis_output(const struct fakeredis_conn *c, const char **ret_bytes);
/* The first `n` of them were taken. */
void fakeredis_take(struct fakeredis_conn *c, size_t n);
/* The server has closed it (protocol error, restart): what is in the output is the last. */
bool fakeredis_closed(const struct fakeredis_conn *c);

/* Kills and restarts: all connections closed, scripts forgotten, data kept (appendfsync always) or
 * lost. */
void fakeredis_restart(struct fakeredis *f, bool keep_data);
void fakeredis_flushall(struct fakeredis *f);
void fakeredis_script_flush(struct fakeredis *f);
/* "" or NULL: none is needed. */
void fakeredis_set_password(struct fakeredis *f, const char *password);
/* Every command but AUTH and PING-like handshakes is refused with this error ("LOADING ..."); NULL:
 * none is. The text must live on. */
void fakeredis_set_refusal(struct fakeredis *f, const char *error);
/* As at maxmemory with noeviction: commands that need memory are refused with -OOM. */
void fakeredis_set_full(struct fakeredis *f, bool full);

/* All data as text, one key a line in order of keys: name, type, TTL in ms (-1 none), value.
 * Malloced. */
char *fakeredis_dump(struct fakeredis *f);

/* The name under which the server knows a script. */
void fakeredis_sha1(const char *text, size_t length, char ret[41]);

#endif
