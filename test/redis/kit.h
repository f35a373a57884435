/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_REDIS_KIT_H
#define SNIB_TEST_REDIS_KIT_H

/*
 * What tests of the Redis engine against a real server share: a server, two clients, somebody who
 * hears every message, and a hand in the server's data. cmocka must be included before.
 */

#include "pump.h"
#include "redis_server.h"

extern struct redis_server *kit_server;
extern struct pump *kit_a, *kit_b;

/* For the group, and for each test, which finds an empty server. */
int kit_start(void **state);
int kit_stop(void **state);
int kit_open(void **state);
int kit_close(void **state);

/* Runs a table of tests. Without a server to start it runs none, and the output says why. */
#define kit_run(tests, start, stop) kit_run_group(#tests, (tests), sizeof(tests) / sizeof((tests)[0]), (start), (stop))
int kit_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction start,
                  CMFixtureFunction stop);

/* One command, words divided by spaces; its answer is no error. */
__attribute__((format(printf, 1, 2))) void kit_do(const char *format, ...);
/* A number that it answers, also as text; INT64_MIN: it answers something else. */
__attribute__((format(printf, 1, 2))) long long kit_number(const char *format, ...);
/* The text that it answers is this one; NULL: none. */
void kit_text_is(const char *expected, const char *command);

/* The next message anybody published. */
void kit_heard(const char *channel, const char *payload);
void kit_heard_nothing(void);

/* The server's clock. */
long long kit_now_ms(void);
/* `value` is `expected` or at most `below` less. */
void kit_near(long long value, long long expected, long long below);

#endif
