/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Registers: a value with a version, written only by whoever knows the version, and never one
 * update over another.
 */

#include "kit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static snib_register *register_of(snib_client *c, const char *name)
{
        snib_register *r;

        assert_int_equal(snib_register_new(c, name, 0, &r, NULL), 0);
        return r;
}

/* The version; what is stored must be `text`, NULL: nothing. */
static int64_t stored(snib_register *r, const char *text)
{
        struct snib_value v = SNIB_VALUE_INIT;
        int64_t version;

        assert_int_equal(snib_register_read(r, &v, NULL), text != NULL);
        if (text) {
                assert_int_equal(v.length, strlen(text));
                assert_string_equal(v.bytes, text);
        } else {
                assert_null(v.bytes);
        }
        version = v.version;
        assert_int_equal(version > 0, text != NULL);
        snib_value_free(&v);
        assert_null(v.bytes);
        return version;
}

static void a_value_is_written_by_who_knows_its_version(void **state)
{
        snib_client *c = open_as("writes"), *d = open_as("writes too");
        snib_register *r = register_of(c, "value"), *s = register_of(d, "value");
        int64_t v1 = 0, v2 = 0, v3 = 0, now = -7;

        assert_int_equal(stored(r, NULL), 0);
        assert_int_equal(snib_register_write(r, "one", 3, 5, &now, NULL), 0);
        assert_int_equal(now, 0);
        assert_int_equal(snib_register_write(r, "one", 3, 0, &v1, NULL), 1);
        assert_true(v1 > 0);
        assert_int_equal(stored(s, "one"), v1);
        assert_int_equal(snib_register_write(s, "other", 5, 0, &now, NULL), 0);
        assert_int_equal(now, v1);
        assert_int_equal(snib_register_write(s, "two", 3, v1, &v2, NULL), 1);
        assert_true(v2 > v1);
        assert_int_equal(snib_register_write(r, "late", 4, v1, &now, NULL), 0);
        assert_int_equal(now, v2);
        assert_int_equal(stored(r, "two"), v2);
        assert_int_equal(snib_register_write(r, "", 0, SNIB_ANY_VERSION, &v3, NULL), 1);
        assert_int_equal(stored(s, ""), v3);
        assert_int_equal(snib_register_delete(s, v2, NULL), 0);
        assert_int_equal(snib_register_delete(s, v3, NULL), 1);
        assert_int_equal(stored(r, NULL), 0);
        /* A version is never used twice, not even after a deletion. */
        assert_int_equal(snib_register_write(r, "again", 5, SNIB_ANY_VERSION, &now, NULL), 1);
        assert_true(now > v3);
        assert_int_equal(snib_register_delete(r, SNIB_ANY_VERSION, NULL), 1);
        assert_int_equal(snib_register_delete(r, SNIB_ANY_VERSION, NULL), 0);
        snib_register_free(r);
        snib_register_free(s);
        snib_close(c);
        snib_close(d);
}

static void values_are_bytes_of_any_kind_and_size(void **state)
{
        static const size_t sizes[] = {1, 255, 4096, 70000, SNIB_REGISTER_MAX};
        snib_client *c = open_as("bytes");
        snib_register *r = register_of(c, "bytes");
        char *big = malloc(SNIB_REGISTER_MAX);

        assert_non_null(big);
        for (size_t i = 0; i < SNIB_REGISTER_MAX; i++)
                big[i] = (char)(i * 31 + i / 251);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                struct snib_value v = SNIB_VALUE_INIT;

                assert_int_equal(snib_register_write(r, big, sizes[i], SNIB_ANY_VERSION, NULL, NULL), 1);
                assert_int_equal(snib_register_read(r, &v, NULL), 1);
                assert_int_equal(v.length, sizes[i]);
                assert_memory_equal(v.bytes, big, sizes[i]);
                assert_int_equal(((char *)v.bytes)[v.length], 0);
                snib_value_free(&v);
        }
        assert_int_equal(snib_register_delete(r, SNIB_ANY_VERSION, NULL), 1);
        free(big);
        snib_register_free(r);
        snib_close(c);
}

struct counting {
        snib_client *clients[2];
        atomic_int numbers, lost;
};

#define NUMBER_MAX 24

/* A decimal number, one more. */
static int add_one(void *arg, const struct snib_value *old, struct snib_value *ret_new)
{
        char *text = arg;
        long n = old->version ? strtol(old->bytes, NULL, 10) : 0;

        (void)snprintf(text, NUMBER_MAX, "%ld", n + 1);
        ret_new->bytes = text;
        ret_new->length = strlen(text);
        return 0;
}

static void *count_up(void *arg)
{
        struct counting *c = arg;
        snib_register *r = register_of(c->clients[atomic_fetch_add(&c->numbers, 1) % 2], "counter");
        char text[NUMBER_MAX];

        for (int i = 0; i < 100; i++)
                if (snib_register_update(r, add_one, text, 120000, NULL, NULL) != 1)
                        atomic_fetch_add(&c->lost, 1);
        snib_register_free(r);
        return NULL;
}

static void no_update_is_lost(void **state)
{
        struct counting c = {.clients = {open_as("one"), open_as("two")}};
        snib_register *r = register_of(c.clients[0], "counter");

        threads_run(8, count_up, &c);
        assert_int_equal(atomic_load(&c.lost), 0);
        (void)stored(r, "800");
        assert_int_equal(snib_register_delete(r, SNIB_ANY_VERSION, NULL), 1);
        snib_register_free(r);
        snib_close(c.clients[0]);
        snib_close(c.clients[1]);
}

static int stop(void *arg, const struct snib_value *old, struct snib_value *ret_new)
{
        return *(int *)arg;
}

/* Writes behind the updater's back, every time. */
static int overtake(void *arg, const struct snib_value *old, struct snib_value *ret_new)
{
        static char slower[] = "slower";

        assert_int_equal(snib_register_write(arg, "faster", 6, SNIB_ANY_VERSION, NULL, NULL), 1);
        ret_new->bytes = slower;
        ret_new->length = 6;
        return 0;
}

static void updates_end_when_they_are_told_to_or_overtaken(void **state)
{
        snib_client *c = open_as("updates"), *d = open_as("overtakes");
        snib_register *r = register_of(c, "stopped"), *faster = register_of(d, "stopped");
        int why = SNIB_EPERM;

        assert_int_equal(snib_register_update(r, stop, &why, 1000, NULL, NULL), SNIB_EPERM);
        why = 1;
        assert_int_equal(snib_register_update(r, stop, &why, SNIB_FOREVER, NULL, NULL), 0);
        assert_int_equal(stored(r, NULL), 0);
        assert_int_equal(snib_register_update(r, overtake, faster, 0, NULL, NULL), 0);
        assert_int_equal(snib_register_update(r, overtake, faster, 50, NULL, NULL), 0);
        (void)stored(r, "faster");
        assert_int_equal(snib_register_delete(r, SNIB_ANY_VERSION, NULL), 1);
        snib_register_free(r);
        snib_register_free(faster);
        snib_close(c);
        snib_close(d);
}

static void a_wait_sees_what_was_written_and_deleted(void **state)
{
        snib_client *c = open_as("waits"), *d = open_as("writes");
        snib_register *r = register_of(c, "awaited"), *s = register_of(d, "awaited");
        struct snib_value v = SNIB_VALUE_INIT;
        int64_t version;

        assert_int_equal(snib_register_wait(r, 0, 20, &v, NULL), 0);
        assert_int_equal(snib_register_write(s, "here", 4, 0, &version, NULL), 1);
        assert_int_equal(snib_register_wait(r, 0, 20000, &v, NULL), 1);
        assert_string_equal(v.bytes, "here");
        assert_int_equal(v.version, version);
        snib_value_free(&v);
        assert_int_equal(snib_register_wait(r, version, 20, &v, NULL), 0);
        assert_int_equal(snib_register_delete(s, version, NULL), 1);
        assert_int_equal(snib_register_wait(r, version, 20000, &v, NULL), 1);
        assert_int_equal(v.version, 0);
        assert_null(v.bytes);
        snib_register_free(r);
        snib_register_free(s);
        snib_close(c);
        snib_close(d);
}

static void on_read(void *arg, int result, const struct snib_value *value, const struct snib_error *err)
{
        struct answer *n = arg;

        n->result = result;
        n->value = value ? value->version : -1;
        (void)snprintf(n->text, sizeof(n->text), "%s", value && value->bytes ? (char *)value->bytes : "");
        atomic_fetch_add(&n->count, 1);
}

static void registers_without_waiting(void **state)
{
        snib_client *c = open_mode("loop", SNIB_THREADS_NONE), *d = open_as("writes");
        snib_register *r = register_of(c, "asynchronous"), *s = register_of(d, "asynchronous");
        struct answer n = {0};
        char bytes[] = "first";
        int64_t version = 0;

        assert_int_equal(snib_register_read_async(r, on_read, &n, NULL), 0);
        loop_until(c, SNIB_THREADS_NONE, &n.count, 1);
        assert_int_equal(n.result, 0);
        assert_int_equal(n.value, 0);
        assert_int_equal(snib_register_write_async(r, bytes, 5, 0, on_value, &n, NULL), 0);
        memset(bytes, 'x', 5); /* they were copied */
        loop_until(c, SNIB_THREADS_NONE, &n.count, 2);
        assert_int_equal(n.result, 1);
        assert_int_equal(snib_register_read_async(r, on_read, &n, NULL), 0);
        version = n.value;
        loop_until(c, SNIB_THREADS_NONE, &n.count, 3);
        assert_int_equal(n.result, 1);
        assert_int_equal(n.value, version);
        assert_string_equal(n.text, "first");
        assert_int_equal(snib_register_write_async(r, "no", 2, version + 1, on_value, &n, NULL), 0);
        loop_until(c, SNIB_THREADS_NONE, &n.count, 4);
        assert_int_equal(n.result, 0);
        assert_int_equal(n.value, version);
        assert_int_equal(snib_register_wait_async(r, version, SNIB_FOREVER, on_value, &n, NULL), 0);
        assert_int_equal(snib_process(c), 0);
        assert_int_equal(snib_register_write(s, "second", 6, version, &version, NULL), 1);
        loop_until(c, SNIB_THREADS_NONE, &n.count, 5);
        assert_int_equal(n.result, 1);
        assert_int_equal(n.value, version);
        assert_int_equal(snib_register_delete(s, SNIB_ANY_VERSION, NULL), 1);
        snib_register_free(r);
        snib_register_free(s);
        snib_close(c);
        snib_close(d);
}

static const struct conformance_test tests[] = {
    TEST(a_value_is_written_by_who_knows_its_version, SNIB_CAP_REGISTER),
    TEST(values_are_bytes_of_any_kind_and_size, SNIB_CAP_REGISTER),
    TEST(no_update_is_lost, SNIB_CAP_REGISTER),
    TEST(updates_end_when_they_are_told_to_or_overtaken, SNIB_CAP_REGISTER),
    TEST(a_wait_sees_what_was_written_and_deleted, SNIB_CAP_REGISTER),
    TEST(registers_without_waiting, SNIB_CAP_REGISTER),
};
const struct conformance_tests register_tests = TESTS(tests);
