/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Redis engine against a server that is not one: nonsense, too much, too little, in pieces, at
 * the wrong time. The server is a buffer, the time is a number; nothing is waited for. Whatever
 * comes: the request is completed once, as unknown; the connection is closed; memory stays small.
 */

#include "base/alloc.h"
#include "memory_transport.h"
#include "pump.h"
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/redis/redis.h"

static struct memory_transport net;
static struct memory_conn *commands, *subscriptions;
static struct pump *p;
static snib__ns now;
static bool known; /* the client has written who it is */

static void say(struct memory_conn *c, const char *text)
{
        memory_push(c, text, strlen(text));
}

static void turn(void)
{
        p->engine->ops->process(p->engine, NULL, now);
}

/* What a server says to HELLO 2. */
#define HELLO_OF(mode) "*4\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$4\r\nmode\r\n" mode "\r\n"
#define HELLO HELLO_OF("$10\r\nstandalone")

static bool next(struct snib__note *ret)
{
        return p->engine->ops->next(p->engine, ret);
}

static int open_up(void **state)
{
        struct snib__engine_config config;
        struct snib__engine *e;
        struct snib__note n;

        (void)state;
        memset(&net, 0, sizeof(net));
        commands = &net.conn[SNIB__REDIS_COMMANDS];
        subscriptions = &net.conn[SNIB__REDIS_SUBSCRIPTIONS];
        now = 1000 * SNIB__S;
        known = false;
        pump_config(&config, "redis://memory", 1);
        assert_int_equal(snib__redis_open_with(&e, &config, &memory_transport, &net, now, NULL), 0);
        pump_config_done(&config);
        p = pump_over(e, 1);
        turn();
        say(commands, HELLO "+PONG\r\n");
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_LINK_UP);
        return 0;
}

static int close_down(void **state)
{
        (void)state;
        pump_close(p);
        memory_done(&net);
        return 0;
}

/* Whether it was taken. */
static bool ask_of(int kind, enum snib__verb verb)
{
        struct snib__op op = pump_op(p, verb, "name", pump_id(p), 30000);

        bool taken;

        op.kind = kind;
        op.enqueue = true;
        taken = p->engine->ops->submit(p->engine, (struct snib__tag){.object = p}, &op, now);
        p->engine->ops->flush(p->engine);
        /* Before its first acquire the client writes who it is. */
        if (verb == SNIB__ACQUIRE && !known && !snib__kind(kind)->momentary) {
                known = true;
                say(commands, "+OK\r\n");
        }
        return taken;
}

static bool ask(enum snib__verb verb)
{
        return ask_of(SNIB_KIND_LOCK, verb);
}

/* They are kept for each other; how many were taken. */
static unsigned renew(int count)
{
        unsigned taken = 0;
        struct snib__op op = pump_op(p, SNIB__RENEW, "name", pump_id(p), 30000);

        op.kind = SNIB_KIND_LOCK;
        for (int i = 0; i < count; i++)
                taken += p->engine->ops->submit(p->engine, (struct snib__tag){.object = p}, &op, now);
        return taken;
}

/* The next note answers a request with this status. */
static struct snib__reply answered(enum snib__status status)
{
        struct snib__note n;

        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_REPLY);
        assert_int_equal(n.reply.status, status);
        return n.reply;
}

static void link_down(int code)
{
        struct snib__note n;

        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.reply.error, code);
        assert_true(strlen(n.reply.error_text) > 10);
        assert_false(commands->open);
        assert_false(next(&n));
}

static void nonsense(enum snib__verb verb, const char *bytes, size_t length)
{
        size_t before = mallinfo2().uordblks;

        ask(verb);
        memory_push(commands, bytes, length);
        for (int i = 0; i < 100 && commands->open; i++)
                turn();
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
        link_down(SNIB_EPROTOCOL);
        assert_true(mallinfo2().uordblks < before + (8 << 20) + length);
}

static char *repeat(const char *head, const char *text, size_t times, size_t *ret_length)
{
        size_t h = strlen(head), t = strlen(text);
        char *all = malloc(h + t * times + 1);

        assert_non_null(all);
        memcpy(all, head, h + 1);
        for (size_t i = 0; i < times; i++)
                memcpy(all + h + i * t, text, t);
        *ret_length = h + t * times;
        return all;
}

static void repeated(const char *head, const char *text, size_t times)
{
        size_t length;
        char *all = repeat(head, text, times, &length);

        nonsense(SNIB__ACQUIRE, all, length);
        free(all);
}

static void F135_a_huge_array_is_refused(void **state)
{
        (void)state;
        nonsense(SNIB__ACQUIRE, "*2147483647\r\n", 13);
}

static void F135_a_huge_string_is_refused(void **state)
{
        (void)state;
        repeated("$536870912\r\n", "0123456789abcdef", 2 << 16);
}

static void F135_many_values_are_refused(void **state)
{
        (void)state;
        repeated("*65536\r\n", ":1\r\n", 65536);
}

static void F135_a_long_reply_is_refused(void **state)
{
        char *piece = malloc((1 << 20) + 32);
        size_t length, n;

        (void)state;
        assert_non_null(piece);
        n = (size_t)snprintf(piece, 32, "$%d\r\n", 1 << 20);
        memset(piece + n, 'x', 1 << 20);
        memcpy(piece + n + (1 << 20), "\r\n", 3);
        char *all = repeat("*20\r\n", piece, 20, &length);
        nonsense(SNIB__ACQUIRE, all, length);
        free(all);
        free(piece);
}

static void F136_deep_nesting_is_refused(void **state)
{
        (void)state;
        repeated("", "*1\r\n", 100000);
}

static void F137_a_line_without_end_is_refused(void **state)
{
        (void)state;
        repeated("+", "x", 200000);
}

static void F137_wrong_shapes_are_refused(void **state)
{
        static const char *const acquire[] = {":1\r\n",
                                              "+OK\r\n",
                                              "$-1\r\n",
                                              "*-1\r\n",
                                              "*0\r\n",
                                              "$1\r\n1\r\n",
                                              "*1\r\n:1\r\n",
                                              "*2\r\n:1\r\n:5\r\n",
                                              "*2\r\n:1\r\n$1\r\n0\r\n",
                                              "*2\r\n:1\r\n$2\r\n-5\r\n",
                                              "*2\r\n:1\r\n$1\r\nx\r\n",
                                              "*2\r\n:1\r\n$0\r\n\r\n",
                                              "*2\r\n:1\r\n$19\r\n9999999999999999999\r\n",
                                              "*2\r\n:3\r\n$1\r\n5\r\n",
                                              "*2\r\n$1\r\n1\r\n$1\r\n5\r\n",
                                              "*2\r\n:1\r\n*1\r\n$1\r\n5\r\n",
                                              "*3\r\n:1\r\n$1\r\n5\r\n:1\r\n",
                                              "*3\r\n:0\r\n:-2\r\n$1\r\nx\r\n",
                                              "*3\r\n:0\r\n:-3\r\n$1\r\nx\r\n",
                                              "*3\r\n:0\r\n:5\r\n:5\r\n",
                                              "*3\r\n:0\r\n:5\r\n$-1\r\n",
                                              "*2\r\n:0\r\n:5\r\n",
                                              "*2\r\n:-1\r\n:5\r\n",
                                              "*2\r\n:-9223372036854775808\r\n$1\r\n5\r\n",
                                              "*2\r\n:99999999999999999999\r\n$1\r\n5\r\n",
                                              ">2\r\n:1\r\n$1\r\n5\r\n",
                                              "%1\r\n:1\r\n$1\r\n5\r\n",
                                              "_\r\n",
                                              "#t\r\n",
                                              "HTTP/1.1 400 Bad Request\r\n",
                                              "\r\n",
                                              "*\r\n",
                                              "$x\r\n",
                                              "$-2\r\n",
                                              "*-2\r\n",
                                              "\x16\x03\x01\r\n"};
        static const char *const release[] = {":1\r\n",
                                              "*1\r\n:0\r\n",
                                              "*1\r\n:2\r\n",
                                              "*1\r\n:-1\r\n",
                                              "*1\r\n$1\r\n1\r\n",
                                              "*2\r\n:1\r\n:1\r\n",
                                              "*3\r\n:0\r\n$1\r\n1\r\n$0\r\n\r\n"};

        for (size_t i = 0; i < sizeof(acquire) / sizeof(acquire[0]); i++) {
                nonsense(SNIB__ACQUIRE, acquire[i], strlen(acquire[i]));
                close_down(state);
                open_up(state);
        }
        for (size_t i = 0; i < sizeof(release) / sizeof(release[0]); i++) {
                nonsense(i % 2 ? SNIB__RELEASE : SNIB__RENEW, release[i], strlen(release[i]));
                close_down(state);
                open_up(state);
        }
}

/* Answers of scripts of other kinds that are not what they should be. */
static void F137_wrong_shapes_of_every_kind_are_refused(void **state)
{
        static const struct {
                int kind;
                enum snib__verb verb;
                const char *bytes;
        } rows[] = {
            {SNIB_KIND_FAIR, SNIB__ACQUIRE, "*3\r\n:0\r\n:5\r\n$1\r\nx\r\n"},
            {SNIB_KIND_FAIR, SNIB__ACQUIRE, "*5\r\n:0\r\n:5\r\n$1\r\nx\r\n:1\r\n$1\r\n1\r\n"},
            {SNIB_KIND_FAIR, SNIB__ACQUIRE, "*5\r\n:0\r\n:5\r\n$1\r\nx\r\n:-1\r\n:1\r\n"},
            {SNIB_KIND_FAIR, SNIB__ACQUIRE, "*5\r\n:0\r\n:5\r\n$1\r\nx\r\n:3\r\n:2\r\n"},
            {SNIB_KIND_FAIR, SNIB__ACQUIRE, "*5\r\n:0\r\n:-3\r\n$1\r\nx\r\n:1\r\n:1\r\n"},
            {SNIB_KIND_FAIR, SNIB__RELEASE, "*2\r\n:0\r\n:1\r\n"},
            {SNIB_KIND_FAIR, SNIB__FORCE, "*3\r\n:1\r\n:-2\r\n$0\r\n\r\n"},
            {SNIB_KIND_LOCK, SNIB__ACQUIRE, "*3\r\n:0\r\n:5\r\n$1\r\nx\r\n"},
            {SNIB_KIND_ELECTION, SNIB__ACQUIRE, "*3\r\n:0\r\n:-2\r\n$0\r\n\r\n"},
            {SNIB_KIND_FENCED, SNIB__ACQUIRE, "*5\r\n:0\r\n:5\r\n$1\r\nx\r\n:2\r\n:1\r\n"},
            {SNIB_KIND_SPIN, SNIB__ACQUIRE, "*5\r\n:0\r\n:5\r\n$1\r\nx\r\n:1\r\n:1\r\n"},
            {SNIB_KIND_READ, SNIB__ACQUIRE, "*3\r\n:0\r\n:-2\r\n$0\r\n\r\n"},
            {SNIB_KIND_READ, SNIB__RENEW, "*3\r\n:-1\r\n$1\r\n1\r\n:0\r\n"},
            {SNIB_KIND_WRITE, SNIB__RELEASE, "*1\r\n:2\r\n"},
            {SNIB_KIND_WRITE, SNIB__ACQUIRE, "*2\r\n:1\r\n$2\r\n-5\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE, "*1\r\n:1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE, "*3\r\n:-1\r\n:1\r\n:1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE,
             "*10\r\n:1\r\n$5\r\nother\r\n:5\r\n$1\r\nx\r\n:1\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE,
             "*10\r\n:1\r\n$4\r\nlock\r\n:5\r\n$1\r\nx\r\n:-1\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE,
             "*10\r\n:1\r\n$4\r\nlock\r\n:5\r\n$1\r\nx\r\n:1\r\n:0\r\n$1\r\n0\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE,
             "*10\r\n:1\r\n:1\r\n:5\r\n$1\r\nx\r\n:1\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE,
             "*10\r\n:2\r\n$4\r\nlock\r\n:5\r\n$1\r\nx\r\n:1\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n"},
            {SNIB_KIND_ELECTION, SNIB__OBSERVE,
             "*10\r\n:1\r\n$4\r\nlock\r\n:5\r\n$1\r\nx\r\n:1\r\n:0\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                ask_of(rows[i].kind, rows[i].verb);
                say(commands, rows[i].bytes);
                turn();
                struct snib__note n;
                assert_true(next(&n));
                if (n.kind != SNIB__NOTE_REPLY || n.reply.status != SNIB__FAILED || n.reply.error != SNIB_EUNKNOWN)
                        fail_msg("%s is taken", rows[i].bytes);
                link_down(SNIB_EPROTOCOL);
                close_down(state);
                open_up(state);
        }
}

static void F138_more_replies_than_questions_close(void **state)
{
        (void)state;
        ask(SNIB__RELEASE);
        ask(SNIB__RELEASE);
        say(commands, "*1\r\n:1\r\n*1\r\n:1\r\n*1\r\n:1\r\n");
        turn();
        (void)answered(SNIB__RELEASED);
        (void)answered(SNIB__RELEASED);
        link_down(SNIB_EPROTOCOL);
}

static void what_is_submitted_is_kept_until_it_is_flushed(void **state)
{
        struct snib__op op = pump_op(p, SNIB__RELEASE, "name", pump_id(p), 30000);
        struct snib__interest i;

        (void)state;
        memory_clear_out(commands);
        p->engine->ops->submit(p->engine, (struct snib__tag){.object = p}, &op, now);
        p->engine->ops->submit(p->engine, (struct snib__tag){.object = p}, &op, now);
        p->engine->ops->interest(p->engine, now, &i);
        assert_true(i.kept && i.deadline > now);
        assert_int_equal(commands->out_length, 0);
        p->engine->ops->flush(p->engine);
        p->engine->ops->interest(p->engine, now, &i);
        assert_false(i.kept);
        assert_true(commands->out_length > 0);
        say(commands, "*1\r\n:1\r\n*1\r\n:1\r\n");
        turn();
        (void)answered(SNIB__RELEASED);
        (void)answered(SNIB__RELEASED);
}

static void F138_fewer_replies_end_at_the_deadline(void **state)
{
        struct snib__interest i = {0};
        struct snib__note n;

        (void)state;
        ask(SNIB__RELEASE);
        say(commands, "*1\r\n:1\r\n");
        ask(SNIB__ACQUIRE);
        say(commands, "*2\r\n:1\r\n$16\r\n17000000");
        turn();
        (void)answered(SNIB__RELEASED);
        turn();
        p->engine->ops->interest(p->engine, now, &i);
        assert_int_equal(i.count, 0);
        assert_true(i.deadline > now && i.deadline <= now + 3 * SNIB__S);
        now = i.deadline - 1;
        turn();
        assert_false(next(&n));
        now++;
        turn();
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
        link_down(SNIB_EUNREACHABLE);
}

static void F138_an_unasked_error_closes_with_its_code(void **state)
{
        (void)state;
        say(commands, "-ERR max number of clients reached\r\n");
        turn();
        link_down(SNIB_ENOTREADY);
}

static void F21_replies_in_single_bytes(void **state)
{
        const char *text = "*2\r\n:1\r\n$16\r\n1700000000000000\r\n"
                           "*5\r\n:0\r\n:500\r\n$5\r\nother\r\n:1\r\n:2\r\n";

        (void)state;
        commands->send_max = 1;
        commands->recv_max = 1;
        ask(SNIB__ACQUIRE);
        ask(SNIB__ACQUIRE);
        for (; *text; text++) {
                memory_push(commands, text, 1);
                turn();
        }
        assert_int_equal(answered(SNIB__GRANTED).token, INT64_C(1700000000000000));
        assert_int_equal(answered(SNIB__BUSY).left_ms, 500);
}

static void F21_a_cut_reply_is_unknown(void **state)
{
        const char *text = "*2\r\n:1\r\n$16\r\n1700000000000000\r\n";

        for (size_t cut = 0; cut < strlen(text); cut++) {
                ask(SNIB__ACQUIRE);
                memory_push(commands, text, cut);
                if (cut % 2)
                        commands->end = true;
                else
                        commands->error = ECONNRESET;
                turn();
                assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
                link_down(SNIB_EUNREACHABLE);
                close_down(state);
                open_up(state);
        }
}

static void what_never_left_is_unreachable(void **state)
{
        struct snib__note n;

        (void)state;
        ask(SNIB__ACQUIRE); /* sent at once */
        ask(SNIB__ACQUIRE); /* gathered until process() */
        commands->end = true;
        assert_true(commands->out_length > 0);
        commands->send_max = 1; /* process() sends it, byte by byte, before it reads the end */
        turn();
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
        link_down(SNIB_EUNREACHABLE);
        ask(SNIB__ACQUIRE); /* while it is down */
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNREACHABLE);
        assert_false(next(&n));
}

static void handshake(const char *answer, int code)
{
        struct snib__note n;

        commands->end = true;
        turn();
        while (next(&n))
                ;
        now += 10 * SNIB__S;
        turn();
        assert_true(commands->open);
        say(commands, answer);
        turn();
        link_down(code);
}

static void handshakes_that_fail_say_why(void **state)
{
        (void)state;
        handshake("-NOAUTH HELLO must be called with the client already authenticated\r\n"
                  "-NOAUTH Authentication required.\r\n",
                  SNIB_EAUTH);
        handshake(HELLO "-LOADING Redis is loading the dataset in memory\r\n", SNIB_ENOTREADY);
        handshake(HELLO "-NOPERM this user has no permissions to run the 'ping' command\r\n", SNIB_EPERM);
        handshake("-DENIED Redis is running in protected mode\r\n", SNIB_EPERM);
        handshake(HELLO "-MASTERDOWN Link with MASTER is down\r\n", SNIB_ENOTREADY);
        handshake("-ERR max number of clients reached\r\n", SNIB_ENOTREADY);
        handshake(":5\r\n", SNIB_EPROTOCOL);
        handshake(HELLO ":5\r\n", SNIB_EPROTOCOL);
        handshake("HTTP/1.1 400 Bad Request\r\n\r\n", SNIB_EPROTOCOL);
        handshake(HELLO "*1\r\n+PONG\r\n", SNIB_EPROTOCOL);
}

/* A node of a cluster serves the names of its own slots, and its Java clients listen elsewhere. */
static void what_is_no_single_server_is_refused(void **state)
{
        (void)state;
        handshake(HELLO_OF("$7\r\ncluster") "+PONG\r\n", SNIB_EUNSUPPORTED);
        handshake(HELLO_OF("$8\r\nsentinel") "+PONG\r\n", SNIB_EUNSUPPORTED);
        handshake("-ERR unknown command `HELLO`\r\n+PONG\r\n"
                  "$40\r\n\nredis_version:5.0.14\nredis_mode:cluster\r\n",
                  SNIB_EUNSUPPORTED);
}

/* Connects anew, and hears this. */
static void connect_to_one_that_says(const char *answers)
{
        struct snib__note n;

        handshake("-DENIED it is protected\r\n", SNIB_EPERM);
        now += 10 * SNIB__S;
        turn();
        say(commands, answers);
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_LINK_UP);
}

/* The modules of a server may be told with what they were loaded with. */
static void a_server_with_modules_is_one(void **state)
{
        (void)state;
        connect_to_one_that_says("*4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$7\r\nmodules\r\n"
                                 "*1\r\n*4\r\n$4\r\nname\r\n$4\r\njson\r\n$4\r\nargs\r\n*1\r\n$1\r\nx\r\n+PONG\r\n");
}

/* Users need no right to be asked HELLO, but proxies may not know it; INFO is not everyone's. */
static void a_server_that_does_not_say_what_it_is_is_taken_as_it_is(void **state)
{
        (void)state;
        connect_to_one_that_says("-ERR unknown command `HELLO`\r\n+PONG\r\n-NOPERM this user has no permissions\r\n");
}

/* SCAN has had TYPE since 6.0. */
static void an_old_server_is_not_listed(void **state)
{
        struct snib__note n;

        (void)state;
        connect_to_one_that_says("-ERR unknown command `HELLO`\r\n+PONG\r\n"
                                 "$43\r\n\nredis_version:5.0.14\nredis_mode:standalone\r\n");
        p->engine->ops->list(p->engine, (struct snib__tag){.object = p}, now);
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_REPLY);
        assert_int_equal(n.reply.status, SNIB__FAILED);
        assert_int_equal(n.reply.error, SNIB_EUNSUPPORTED);
        assert_non_null(strstr(n.reply.error_text, "Redis 6.0"));
        assert_non_null(strstr(n.reply.error_text, "5.0.14"));
}

static void F26_dials_back_off(void **state)
{
        struct snib__interest i = {0};
        struct snib__note n;
        unsigned before;
        snib__ns longest = 0, start = now;

        (void)state;
        net.refuse = true;
        commands->end = true;
        before = commands->dials;
        while (now < start + 60 * SNIB__S) {
                turn();
                while (next(&n))
                        ;
                p->engine->ops->interest(p->engine, now, &i);
                assert_true(i.deadline > now && i.deadline <= now + 2 * SNIB__S);
                longest = snib__max(longest, i.deadline - now);
                now = i.deadline;
        }
        assert_true(commands->dials - before > 30 && commands->dials - before < 200);
        assert_true(longest > SNIB__S);
        net.refuse = false;
        turn();
        say(commands, HELLO "+PONG\r\n");
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_LINK_UP);
}

static void watch_it(void)
{
        p->engine->ops->watch(p->engine, &(struct snib__topic){.name = {"name", 4}, .kind = SNIB_KIND_ELECTION}, now);
        turn();
        say(subscriptions, "+PONG\r\n");
        turn();
}

#define CHANNEL "$29\r\nredisson_lock__channel:{name}\r\n"

static void subscriptions_make_sense_or_close(void **state)
{
        static const char *const bad[] = {"*3\r\n$11\r\nunsubscribe\r\n" CHANNEL ":1\r\n",
                                          "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n",
                                          "*3\r\n$9\r\nsubscribe\r\n" CHANNEL "$1\r\n1\r\n",
                                          "*2\r\n$9\r\nsubscribe\r\n" CHANNEL,
                                          "+OK\r\n",
                                          "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\n0\r\n",
                                          "*3\r\n$7\r\nmessage\r\n" CHANNEL ":0\r\n"};
        struct snib__note n;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                watch_it();
                assert_true(subscriptions->open);
                say(subscriptions, bad[i]);
                turn();
                assert_false(subscriptions->open);
                assert_true(commands->open);
                assert_false(next(&n));
                close_down(state);
                open_up(state);
        }
}

static void say_subscribed(const char *channel)
{
        char text[256];

        snprintf(text, sizeof(text), "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(channel), channel);
        say(subscriptions, text);
}

static void say_granted(const char *text)
{
        char message[512];

        snprintf(message, sizeof(message), "*3\r\n$7\r\nmessage\r\n$49\r\nsnib_granted:%s\r\n$%zu\r\n%s\r\n", p->uuid,
                 strlen(text), text);
        say(subscriptions, message);
        turn();
}

/* What is told to this client alone is believed, so it has to be what it should be. */
static void grants_make_sense_or_are_dropped(void **state)
{
        static const char *const bad[] = {"",
                                          ":7",
                                          ":7 5 1",
                                          ":7 5 1 1",
                                          ":7 5 1 1 ",
                                          ":7 -5 1 1 0 name",
                                          ":7 5 1 x 0 name",
                                          ":7 5 1 4294967296 0 name",
                                          ":7 5  1 0 name",
                                          " 5 1 1 0 name",
                                          "7777777777 5",
                                          ":7 9223372036854775808 1 1 0 name",
                                          ":7 99 17 1 0 name",
                                          ":7 5 16 1 0 name",
                                          ":7 20 16 1 17 name",
                                          ":7 20 16 1 name",
                                          ":7 20 16 1 -1 name"};
        char own[64], text[256];
        struct snib__note n;

        (void)state;
        p->engine->ops->watch(p->engine, &(struct snib__topic){.name = {"name", 4}}, now);
        turn();
        say(subscriptions, "+PONG\r\n");
        turn();
        snprintf(own, sizeof(own), "snib_granted:%s", p->uuid);
        say_subscribed(own); /* first: whoever stands in the queue can be told */
        say_subscribed("redisson_lock__channel:{name}");
        say_subscribed("snib_listening:{name}");
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_WATCHING);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                snprintf(text, sizeof(text), "%s%s", p->uuid, bad[i]);
                say_granted(text);
                assert_false(next(&n));
        }
        say_granted("");
        say_granted("b2a3c0de-1111-4222-8333-444455556666:7 5 3 name"); /* another client's */
        assert_false(next(&n));
        assert_true(subscriptions->open);
        snprintf(text, sizeof(text), "%s:7 20 16 3 16 a name", p->uuid);
        say_granted(text);
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_GRANTED);
        assert_int_equal(n.reply.token, 5);
        assert_int_equal(n.reply.streak, 16);
        assert_int_equal(n.tag.attempt, 3);
        assert_int_equal(n.name.length, 6);
        assert_memory_equal(n.name.bytes, "a name", 6);
        snprintf(text, sizeof(text), "%s:7 0 0 3 0 name", p->uuid);
        for (int i = 0; i < 5000; i++) /* a flood ends somewhere */
                say_granted(text);
        for (int i = 0; i < 1023; i++) { /* one place is that of the note before */
                assert_true(next(&n));
                assert_int_equal(n.kind, SNIB__NOTE_NEXT);
        }
        turn();
        say_granted(text);
        assert_true(next(&n));
}

static void F29_a_lost_subscription_comes_back(void **state)
{
        struct snib__note n;

        (void)state;
        watch_it();
        say(subscriptions, "*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":1\r\n");
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_WATCHING);
        subscriptions->end = true;
        turn();
        assert_false(subscriptions->open);
        assert_false(next(&n));
        now += 100 * SNIB__MS;
        turn();
        say(subscriptions, "+PONG\r\n");
        turn();
        assert_false(next(&n));
        say(subscriptions, "*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":1\r\n");
        turn();
        assert_true(next(&n));
        assert_int_equal(n.kind, SNIB__NOTE_WATCHING);
        assert_int_equal(n.name.length, 4);
        assert_memory_equal(n.name.bytes, "name", 4);
}

static void F19_silence_is_broken_by_a_heartbeat(void **state)
{
        struct snib__interest i = {0};
        struct snib__note n;

        (void)state;
        watch_it();
        say(subscriptions, "*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":1\r\n");
        turn();
        assert_true(next(&n));
        memory_clear_out(commands);
        memory_clear_out(subscriptions);
        now += SNIB__S;
        p->engine->ops->interest(p->engine, now, &i);
        assert_true(i.deadline <= now);
        turn();
        assert_memory_equal(commands->out, "*1\r\n$4\r\nPING\r\n", 14);
        assert_memory_equal(subscriptions->out, "*1\r\n$4\r\nPING\r\n", 14);
        say(commands, "+PONG\r\n");
        say(subscriptions, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
        turn();
        assert_true(commands->open && subscriptions->open);
        now += SNIB__S;
        turn();
        now += 3 * SNIB__S;
        turn();
        assert_false(commands->open);
        assert_false(subscriptions->open);
        link_down(SNIB_EUNREACHABLE);
}

static void F51_a_forgotten_script_goes_by_text_once(void **state)
{
        (void)state;
        ask(SNIB__RELEASE);
        say(commands, "*1\r\n:1\r\n");
        turn();
        (void)answered(SNIB__RELEASED);
        memory_clear_out(commands);
        ask(SNIB__RELEASE);
        assert_non_null(memmem(commands->out, commands->out_length, "EVALSHA", 7));
        memory_clear_out(commands);
        say(commands, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        turn();
        assert_non_null(memmem(commands->out, commands->out_length, "$4\r\nEVAL\r\n", 10));
        say(commands, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        turn();
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EREFUSED);
}

/* Three renewals, one script. */
static void renew_three(void)
{
        static const char keys[] = "\r\n$1\r\n3\r\n$4\r\nname\r\n$4\r\nname\r\n";

        memory_clear_out(commands);
        renew(3);
        assert_int_equal(commands->out_length, 0);
        p->engine->ops->flush(p->engine);
        assert_non_null(memmem(commands->out, commands->out_length, keys, sizeof(keys) - 1));
}

static void F137_wrong_answers_to_renewals_are_refused(void **state)
{
        static const struct {
                const char *text;
                int gone; /* of whom was told before what makes no sense */
        } rows[] = {{"*0\r\n", 0},
                    {":3\r\n", 0},
                    {"*1\r\n:2\r\n", 0},
                    {"*1\r\n:4\r\n", 0},
                    {"*1\r\n:-3\r\n", 0},
                    {"*1\r\n$1\r\n3\r\n", 0},
                    {"*1\r\n*1\r\n:3\r\n", 0},
                    {"*2\r\n:3\r\n:1\r\n", 0},
                    {"*2\r\n:3\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n:0\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n:4\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n:9223372036854775807\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n$1\r\n1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n:1\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n$-1\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*0\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*1\r\n:1\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*1\r\n:0\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*3\r\n:1\r\n:-2\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*3\r\n:0\r\n:-3\r\n$0\r\n\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*3\r\n:0\r\n:-2\r\n:0\r\n", 0},
                    {"*3\r\n:3\r\n:1\r\n*2\r\n:0\r\n*1\r\n:5\r\n", 0},
                    {"*4\r\n:3\r\n:1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n:2\r\n", 1},
                    {"*5\r\n:3\r\n:1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n:1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 1},
                    {"*5\r\n:3\r\n:2\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n:1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n", 1},
                    {"*5\r\n:3\r\n:1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n:3\r\n*1\r\n:1\r\n", 1},
                    {"*8\r\n:3\r\n:1\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n:2\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n"
                     ":3\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n:4\r\n",
                     3}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                renew_three();
                say(commands, rows[i].text);
                turn();
                for (int k = 0; k < rows[i].gone; k++)
                        (void)answered(SNIB__GONE);
                for (int k = rows[i].gone; k < 3; k++)
                        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
                link_down(SNIB_EPROTOCOL);
                close_down(state);
                open_up(state);
        }
}

static void F57_renewals_are_refused_one_by_one(void **state)
{
        (void)state;
        renew_three();
        say(commands, "*5\r\n:3\r\n:1\r\n-WRONGTYPE Operation\r\n:3\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n");
        turn();
        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EKIND);
        (void)answered(SNIB__GONE);
        (void)answered(SNIB__RENEWED);
        memory_clear_out(commands);
        renew_three();
        say(commands, "-LOADING Redis is loading the dataset in memory\r\n");
        turn();
        for (int i = 0; i < 3; i++)
                assert_int_equal(answered(SNIB__FAILED).error, SNIB_ENOTREADY);
}

static void F21_a_cut_answer_to_renewals_is_unknown(void **state)
{
        const char *text = "*3\r\n:3\r\n:2\r\n*3\r\n:0\r\n:-2\r\n$0\r\n\r\n";

        for (size_t cut = 0; cut < strlen(text); cut++) {
                renew_three();
                memory_push(commands, text, cut);
                commands->end = true;
                turn();
                for (int i = 0; i < 3; i++)
                        assert_int_equal(answered(SNIB__FAILED).error, SNIB_EUNKNOWN);
                link_down(SNIB_EUNREACHABLE);
                close_down(state);
                open_up(state);
        }
}

static void F51_forgotten_renewals_go_by_text_once(void **state)
{
        static const char noscript[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

        (void)state;
        renew_three();
        say(commands, "*1\r\n:3\r\n");
        turn();
        for (int i = 0; i < 3; i++)
                (void)answered(SNIB__RENEWED);
        memory_clear_out(commands);
        renew_three();
        assert_non_null(memmem(commands->out, commands->out_length, "EVALSHA", 7));
        memory_clear_out(commands);
        say(commands, noscript);
        turn();
        assert_non_null(memmem(commands->out, commands->out_length, "$4\r\nEVAL\r\n", 10));
        say(commands, noscript);
        turn();
        for (int i = 0; i < 3; i++)
                assert_int_equal(answered(SNIB__FAILED).error, SNIB_EREFUSED);
}

static void F57_only_the_first_word_of_an_error_counts(void **state)
{
        static const struct {
                const char *text;
                int code;
        } rows[] = {{"-OOM x script: 0f, on @user_script:3.\r\n", SNIB_EREFUSED},
                    {"-WRONGTYPE anything\r\n", SNIB_EKIND},
                    {"-NOPERM anything\r\n", SNIB_EPERM},
                    {"-READONLY anything\r\n", SNIB_ENOTREADY},
                    {"-BUSY anything\r\n", SNIB_ENOTREADY},
                    {"-MISCONF anything\r\n", SNIB_ENOTREADY},
                    {"-CLUSTERDOWN anything\r\n", SNIB_ENOTREADY},
                    {"-TRYAGAIN anything\r\n", SNIB_ENOTREADY},
                    {"-NOREPLICAS anything\r\n", SNIB_ENOTREADY},
                    {"-OOMPH anything\r\n", SNIB_EREFUSED},
                    {"-\r\n", SNIB_EREFUSED},
                    {"-ERR \x1b[31m\r\n", SNIB_EREFUSED}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                ask(SNIB__ACQUIRE);
                say(commands, rows[i].text);
                turn();
                struct snib__reply r = answered(SNIB__FAILED);
                assert_int_equal(r.error, rows[i].code);
                assert_null(strstr(r.error_text, "\"name\"")); /* the runtime's to say */
                assert_null(strchr(r.error_text, 27));
                assert_true(commands->open);
        }
}

/* One life of an engine with a bit of everything. True if it could be opened. */
/* `ret_taken`: requests that were taken, of 12; `ret_answers`: to how many an answer came. */
static bool a_life(unsigned *ret_taken, unsigned *ret_answers)
{
        static const char *const answers[] = {"*2\r\n:1\r\n$16\r\n1700000000000000\r\n",
                                              "*3\r\n:0\r\n:500\r\n$38\r\n00000002-0000-4000-8000-000000000000:7\r\n",
                                              "*1\r\n:1\r\n"};
        static const enum snib__verb verbs[] = {SNIB__ACQUIRE, SNIB__ACQUIRE, SNIB__RELEASE};
        struct snib__engine_config config;
        struct snib__note n;
        struct snib__engine *e;
        int r;

        pump_config(&config, "redis://memory", 1);
        r = snib__redis_open_with(&e, &config, &memory_transport, &net, now, NULL);
        pump_config_done(&config);
        if (r < 0)
                return false;
        p->engine = e;
        known = false;
        for (int i = 0; i < 3; i++) {
                watch_it();
                say(commands, HELLO "+PONG\r\n");
                turn();
                say(subscriptions, "*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":1\r\n");
                *ret_taken += ask(verbs[i]);
                say(commands, answers[i]);
                *ret_taken += renew(2);
                *ret_taken += e->ops->list(e, (struct snib__tag){.object = p}, now);
                turn();
                commands->end = subscriptions->end = true;
                turn();
                turn();
                while (next(&n))
                        *ret_answers += n.kind == SNIB__NOTE_REPLY;
                now += 10 * SNIB__S;
        }
        e->ops->close(e);
        p->engine = NULL;
        return true;
}

static void F111_every_allocation_fails_once(void **state)
{
        uint64_t before = 0, used = 1;

        (void)state;
        p->engine->ops->close(p->engine);
        p->engine = NULL;
        for (uint64_t n = 0; n <= used; n++) {
                unsigned taken = 0, answers = 0;
                bool opened;

                before = snib__alloc_count;
                snib__alloc_fail_at = n ? before + n : 0; /* the first life counts */
                opened = a_life(&taken, &answers);
                if (!n)
                        used = snib__alloc_count - before;
                assert_true(opened || n == 1);
                assert_in_range(taken, opened ? 11 : 0, opened ? 12 : 0);
                assert_int_equal(answers, taken);
        }
        snib__alloc_fail_at = 0;
        assert_true(used > 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_up, close_down)

int main(void)
{
        static const struct CMUnitTest tests[] = {
            TEST(F135_a_huge_array_is_refused),
            TEST(F135_a_huge_string_is_refused),
            TEST(F135_many_values_are_refused),
            TEST(F135_a_long_reply_is_refused),
            TEST(F136_deep_nesting_is_refused),
            TEST(F137_a_line_without_end_is_refused),
            TEST(F137_wrong_shapes_are_refused),
            TEST(F137_wrong_shapes_of_every_kind_are_refused),
            TEST(F138_more_replies_than_questions_close),
            TEST(what_is_submitted_is_kept_until_it_is_flushed),
            TEST(F138_fewer_replies_end_at_the_deadline),
            TEST(F138_an_unasked_error_closes_with_its_code),
            TEST(F21_replies_in_single_bytes),
            TEST(F21_a_cut_reply_is_unknown),
            TEST(what_never_left_is_unreachable),
            TEST(handshakes_that_fail_say_why),
            TEST(what_is_no_single_server_is_refused),
            TEST(a_server_with_modules_is_one),
            TEST(a_server_that_does_not_say_what_it_is_is_taken_as_it_is),
            TEST(an_old_server_is_not_listed),
            TEST(F26_dials_back_off),
            TEST(subscriptions_make_sense_or_close),
            TEST(grants_make_sense_or_are_dropped),
            TEST(F29_a_lost_subscription_comes_back),
            TEST(F19_silence_is_broken_by_a_heartbeat),
            TEST(F51_a_forgotten_script_goes_by_text_once),
            TEST(F137_wrong_answers_to_renewals_are_refused),
            TEST(F57_renewals_are_refused_one_by_one),
            TEST(F21_a_cut_answer_to_renewals_is_unknown),
            TEST(F51_forgotten_renewals_go_by_text_once),
            TEST(F111_every_allocation_fails_once),
            TEST(F57_only_the_first_word_of_an_error_counts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
