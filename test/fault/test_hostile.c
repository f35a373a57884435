/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A server that is hostile, or none: through the public calls, with a scripted peer. Whatever it
 * says, a call ends in time with a negative answer, nothing is believed to be held, the memory
 * stays small, and the client can be closed.
 */

#include "fault.h"
#include "peer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the peer says to scripts, and to everything if `from_the_start`. */
struct script {
        const char *bytes;
        size_t size; /* 0: strlen(bytes) */
        int repeat;  /* bytes are said so often, 0: once */
        bool then_close;
        bool from_the_start;
};

static void say(struct peer_connection *c, int argc, char **argv, void *arg)
{
        const struct script *s = arg;

        if (!s->from_the_start && peer_polite(c, argc, argv))
                return;
        for (int i = 0; i < (s->repeat ? s->repeat : 1); i++)
                peer_send(c, s->bytes, s->size ? s->size : strlen(s->bytes));
        if (s->then_close)
                peer_close(c);
}

static void must_end_badly(const char *what, int r, int64_t start)
{
        if (r >= 0)
                fail_msg("%s: answered %d", what, r);
        if (wait_now_ms() - start > 2500 * wait_slow())
                fail_msg("%s: took %lld ms", what, (long long)(wait_now_ms() - start));
}

/* A healthy handshake, then this to every script. */
static void to_scripts(const char *name, struct script *script)
{
        struct peer *p = peer_start(say, script);
        snib_client *c = fault_open(peer_url(p), 100 * wait_slow());
        snib_lock *lock = fault_lock(c, "stock", "a", 1000);
        snib_grant *grant = NULL;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t start = wait_now_ms();

        must_end_badly(name, snib_lock_try(lock, &grant, &err), start);
        assert_null(grant);
        assert_true(err.text[0] && !strchr(err.text, '\n') && !strchr(err.text, '\x1b'));
        start = wait_now_ms();
        must_end_badly(name, snib_lock_acquire(lock, 30, &grant, NULL), start);
        start = wait_now_ms();
        must_end_badly(name, snib_lock_query(lock, &info, NULL), start);
        start = wait_now_ms();
        must_end_badly(name, snib_lock_force_release(lock, NULL), start);
        snib_lock_free(lock);
        start = wait_now_ms();
        snib_close(c);
        assert_true(wait_now_ms() - start < 2500 * wait_slow());
        peer_free(p);
}

/* This to the first command. */
static void to_handshake(const char *name, struct script *script)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .timeout_ms = 100 * wait_slow()};
        struct script first = *script;
        struct peer *p;
        snib_client *c = NULL;
        int64_t start = wait_now_ms();

        first.from_the_start = true;
        p = peer_start(say, &first);
        must_end_badly(name, snib_open(&c, peer_url(p), &o, NULL), start);
        assert_null(c);
        peer_free(p);
}

static void both(const char *name, struct script script)
{
        to_scripts(name, &script);
        to_handshake(name, &script);
}

static void F135_replies_that_declare_too_much(void **state)
{
        long before = fault_memory_kb("VmHWM:");

        both("2^31 elements", (struct script){.bytes = "*2147483648\r\n"});
        both("2^31-1 elements", (struct script){.bytes = "*2147483647\r\n"});
        both("512 MB", (struct script){.bytes = "$536870912\r\nx"});
        both("2^63 bytes", (struct script){.bytes = "$9223372036854775807\r\nx"});
        both("negative", (struct script){.bytes = "*-7\r\n"});
        both("many elements", (struct script){.bytes = "*60000\r\n", .repeat = 2});
        if (wait_slow() == 1 && fault_memory_kb("VmHWM:") - before > 32768)
                fail_msg("%ld kB became %ld kB", before, fault_memory_kb("VmHWM:"));
}

static void F136_replies_nested_deeply(void **state)
{
        both("100,000 arrays", (struct script){.bytes = "*1\r\n", .repeat = 100000});
        both("40 arrays", (struct script){.bytes = "*1\r\n", .repeat = 40});
}

static void F137_replies_that_are_none(void **state)
{
        static const struct script scripts[] = {
            {.bytes = "+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", .repeat = 20000},
            {.bytes = ":-0\r\n"},
            {.bytes = ":+\r\n"},
            {.bytes = ":\r\n"},
            {.bytes = ":99999999999999999999999999\r\n"},
            {.bytes = ":12a\r\n"},
            {.bytes = ">2\r\n+invalidate\r\n*1\r\n+x\r\n"},
            {.bytes = "HTTP/1.1 400 Bad Request\r\n\r\n"},
            {.bytes = "SSH-2.0-OpenSSH_9.2\r\n"},
            {.bytes = "\0\0\0\0\0\0\0\0", .size = 8},
            {.bytes = "\r\n\r\n\r\n"},
            {.bytes = "$5\r\nabcdefg\r\n"},
            {.bytes = "*3\r\n:1\r\n"},
            {.bytes = "_\r\n"},
            {.bytes = "%1\r\n+a\r\n+b\r\n"},
            {.bytes = "\x16\x03\x01\x02\x00\x01", .size = 6}, /* TLS */
        };
        char name[32];

        for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
                snprintf(name, sizeof(name), "number %zu", i);
                both(name, scripts[i]);
        }
}

static void F137_well_formed_and_the_wrong_shape(void **state)
{
        static const char *const replies[] = {"+OK\r\n",
                                              ":1\r\n",
                                              "$-1\r\n",
                                              "*-1\r\n",
                                              "*0\r\n",
                                              "$0\r\n\r\n",
                                              "*1\r\n:9\r\n",
                                              "*1\r\n:1\r\n",
                                              "*2\r\n:1\r\n:5\r\n",
                                              "*2\r\n:1\r\n$2\r\n-5\r\n",
                                              "*2\r\n:1\r\n$1\r\n0\r\n",
                                              "*2\r\n:1\r\n$3\r\n1e9\r\n",
                                              "*2\r\n:1\r\n$30\r\n999999999999999999999999999999\r\n",
                                              "*2\r\n+1\r\n+2\r\n",
                                              "*3\r\n:1\r\n:2\r\n*1\r\n:3\r\n",
                                              "*2\r\n:77\r\n$1\r\n1\r\n",
                                              "*4\r\n:0\r\n:1\r\n$1\r\na\r\n:2\r\n",
                                              "-\r\n",
                                              "- \r\n",
                                              "-ERR\r\n",
                                              "-ERR \x1b[31mred\x1b[0m \x07 \xff\r\n",
                                              "-NOSCRIPT \r\n",
                                              "-MOVED 1 127.0.0.1:1\r\n",
                                              "-WRONGTYPE x\r\n"};

        for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
                to_scripts(replies[i], &(struct script){.bytes = replies[i]});
}

static void F138_more_and_fewer_replies_than_questions(void **state)
{
        to_scripts("two replies", &(struct script){.bytes = "*2\r\n:1\r\n$1\r\nx\r\n", .repeat = 2});
        to_scripts("a thousand replies", &(struct script){.bytes = "+OK\r\n", .repeat = 1000});
        both("end", (struct script){.bytes = "", .then_close = true});
}

static void F27_endless_silence_and_half_a_reply(void **state)
{
        both("silence", (struct script){.bytes = ""});
        both("half", (struct script){.bytes = "*2\r\n:1\r\n$16\r\n17000"});
        both("half, and the end", (struct script){.bytes = "*2\r\n:1\r\n$16\r\n17000", .then_close = true});
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F135_replies_that_declare_too_much),
            cmocka_unit_test(F136_replies_nested_deeply),
            cmocka_unit_test(F137_replies_that_are_none),
            cmocka_unit_test(F137_well_formed_and_the_wrong_shape),
            cmocka_unit_test(F138_more_and_fewer_replies_than_questions),
            cmocka_unit_test(F27_endless_silence_and_half_a_reply),
        };

        return fault_run("hostile", tests, sizeof(tests) / sizeof(tests[0]), 0);
}
