/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One server for all tests of a program, emptied before each; two clients over the two ways to
 * reach it; a third connection of its own that is subscribed to everything, so that no message goes
 * unheard. See kit.h. One thread.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"

struct redis_server *kit_server;
struct pump *kit_a, *kit_b;
static redisContext *ear; /* subscribed to everything */

int kit_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction start,
                  CMFixtureFunction stop)
{
        if (redis_server_skips_all())
                return 0;
        return _cmocka_run_group_tests(name, tests, count, start, stop);
}

int kit_start(void **state)
{
        (void)state;
        kit_server = redis_server_start(&(struct redis_server_options){.tcp = true});
        return 0;
}

int kit_stop(void **state)
{
        (void)state;
        redis_server_free(kit_server);
        return 0;
}

int kit_open(void **state)
{
        redisReply *r;

        (void)state;
        kit_do("CONFIG SET maxmemory 0");
        kit_do("FLUSHALL");
        kit_a = pump_connect(redis_server_url(kit_server), 1);
        kit_b = pump_connect(redis_server_unix_url(kit_server), 2);
        ear = redisConnectWithTimeout("127.0.0.1", redis_server_port(kit_server), (struct timeval){.tv_sec = 20});
        assert_non_null(ear);
        redisSetTimeout(ear, (struct timeval){.tv_sec = 20});
        r = redisCommand(ear, "PSUBSCRIBE *");
        assert_non_null(r);
        freeReplyObject(r);
        return 0;
}

int kit_close(void **state)
{
        (void)state;
        redisFree(ear);
        pump_close(kit_a);
        pump_close(kit_b);
        return 0;
}

void kit_do(const char *format, ...)
{
        char line[512];
        va_list list;
        redisReply *r;

        va_start(list, format);
        vsnprintf(line, sizeof(line), format, list);
        va_end(list);
        r = redis_server_do(kit_server, line);
        assert_non_null(r);
        if (r->type == REDIS_REPLY_ERROR)
                fail_msg("%s: %s", line, r->str);
        freeReplyObject(r);
}

long long kit_number(const char *format, ...)
{
        char line[512];
        va_list list;

        va_start(list, format);
        vsnprintf(line, sizeof(line), format, list);
        va_end(list);
        return redis_server_int(kit_server, line);
}

void kit_text_is(const char *expected, const char *command)
{
        redisReply *r = redis_server_do(kit_server, command);

        assert_non_null(r);
        if (!expected)
                assert_int_equal(r->type, REDIS_REPLY_NIL);
        else if (r->type != REDIS_REPLY_STRING && r->type != REDIS_REPLY_STATUS)
                fail_msg("%s answers type %d", command, r->type);
        else
                assert_string_equal(r->str, expected);
        freeReplyObject(r);
}

void kit_heard(const char *channel, const char *payload)
{
        redisReply *r = NULL;

        assert_int_equal(redisGetReply(ear, (void **)&r), REDIS_OK);
        assert_int_equal(r->elements, 4);
        assert_string_equal(r->element[2]->str, channel);
        assert_string_equal(r->element[3]->str, payload);
        freeReplyObject(r);
}

void kit_heard_nothing(void)
{
        kit_do("PUBLISH mark mark");
        kit_heard("mark", "mark");
}

long long kit_now_ms(void)
{
        redisReply *r = redis_server_do(kit_server, "TIME");
        long long ms = strtoll(r->element[0]->str, NULL, 10) * 1000 + strtoll(r->element[1]->str, NULL, 10) / 1000;

        freeReplyObject(r);
        return ms;
}

void kit_near(long long value, long long expected, long long below)
{
        if (value > expected || value < expected - below)
                fail_msg("%lld is not in [%lld, %lld]", value, expected - below, expected);
}
