/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The small things of base: errors in structs of every size and with hostile text, the allocation
 * seam, time arithmetic at its ends, cleanup of what a local owns. Not the tree, the list and the
 * URL, which have programs of their own. One thread.
 */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static void error_fills_what_fits(void **state)
{
        (void)state;
        /* Every size an older or newer caller may have, and some that make no sense: not a byte
         * beyond it is written. 0 stands for the struct of the first version. */
        for (size_t said = 0; said <= sizeof(struct snib_error) + 16; said++) {
                size_t size = said ? said : sizeof(struct snib_error);
                unsigned char memory[sizeof(struct snib_error) + 32] __attribute__((aligned(16)));
                struct snib_error *err = (struct snib_error *)memory;
                size_t text_at = offsetof(struct snib_error, text);

                memset(memory, 0xa5, sizeof(memory));
                err->size = said;
                assert_int_equal(snib__error_engine(err, SNIB_EURL, 77, "%s", "0123456789"), SNIB_EURL);
                assert_int_equal(err->size, said);
                for (size_t i = size > sizeof(size_t) ? size : sizeof(size_t); i < sizeof(memory); i++)
                        assert_int_equal(memory[i], 0xa5);
                if (size >= text_at)
                        assert_int_equal(err->code, SNIB_EURL);
                if (size >= text_at)
                        assert_int_equal(err->engine_code, 77);
                if (size > text_at) {
                        size_t length = size - text_at - 1 < 10 ? size - text_at - 1 : 10;

                        assert_memory_equal(err->text, "0123456789", length);
                        assert_int_equal(err->text[length], 0);
                }
        }
        assert_int_equal(snib__error(NULL, SNIB_EINVAL, "%d", 1), SNIB_EINVAL);
}

static void error_replaces_codes_of_before(void **state)
{
        struct snib_error err = SNIB_ERROR_INIT;

        (void)state;
        assert_int_equal(snib__error_errno(&err, SNIB_ESYSTEM, EACCES, "open: /x"), SNIB_ESYSTEM);
        assert_int_equal(err.engine_code, EACCES);
        assert_string_equal(err.text, "open: /x: Permission denied");
        assert_int_equal(snib__error(&err, SNIB_EURL, "new"), SNIB_EURL);
        assert_int_equal(err.engine_code, 0);
        assert_string_equal(err.text, "new");
}

static void text_is_made_showable(void **state)
{
        static const struct {
                const char *in, *out;
        } table[] = {
            {"plain ~!", "plain ~!"},
            {"a\tb\nc\x1b[31m\x7f", "a?b?c?[31m?"},
            {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92"},
            {"\xc3", "?"},                /* cut */
            {"\xc3(", "?("},              /* no continuation */
            {"\xbf\x80", "??"},           /* continuation alone */
            {"\xc0\xaf", "??"},           /* overlong '/' */
            {"\xe0\x80\xaf", "???"},      /* overlong */
            {"\xed\xa0\x80", "???"},      /* surrogate */
            {"\xf4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
            {"\xff\xfe", "??"},
            {"\xc2\x9b"
             "31m",
             "?31m"}, /* CSI of the second control set: one character, one mark */
            {"\xe2\x80\xae"
             "evil",
             "?evil"},             /* right-to-left override */
            {"\xe2\x80\xa8", "?"}, /* line separator */
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                char out[64];

                snib__text_clean(out, sizeof(out), table[i].in, strlen(table[i].in));
                assert_string_equal(out, table[i].out);
        }

        char zero[8];

        snib__text_clean(zero, sizeof(zero), "a\0b", 3);
        assert_string_equal(zero, "a?b");
}

static void text_is_cut_between_characters(void **state)
{
        const char *text = "ab\xe2\x82\xac"
                           "cd";
        static const size_t kept[] = {0, 0, 1, 2, 2, 2, 5, 6, 7, 7};

        (void)state;
        for (size_t size = 1; size < 10; size++) {
                char out[16];

                memset(out, 'x', sizeof(out));
                snib__text_clean(out, size, text, strlen(text));
                assert_int_equal(strlen(out), kept[size]);
                assert_memory_equal(out, text, kept[size]);
                assert_int_equal(out[size], 'x');
        }
}

static void error_text_is_cut_between_characters(void **state)
{
        struct snib_error err = SNIB_ERROR_INIT;
        char name[1200];

        (void)state;
        for (size_t shift = 0; shift < 3; shift++) {
                memset(name, 'n', shift);
                for (size_t i = shift; i + 3 < sizeof(name); i += 3)
                        memcpy(name + i, "\xe2\x82\xac", 4);
                (void)snib__error(&err, SNIB_ENAME, "%s", name);

                size_t length = strlen(err.text);

                assert_in_range(length, SNIB_ERROR_TEXT_MAX - 3, SNIB_ERROR_TEXT_MAX - 1);
                assert_int_equal((length - shift) % 3, 0);
                assert_memory_equal(err.text, name, length);
        }
}

static void allocation_fails_where_told(void **state)
{
        (void)state;
        uint64_t start = snib__alloc_count;

        snib__alloc_fail_at = start + 2;
        char *a = snib__alloc(10), *b = snib__alloc(10), *c = snib__copy("text", 3);

        snib__alloc_fail_at = 0;
        assert_non_null(a);
        assert_null(b);
        assert_string_equal(c, "tex");
        assert_int_equal(snib__alloc_count, start + 3);
        for (int i = 0; i < 10; i++)
                assert_int_equal(a[i], 0);

        snib__alloc_fail_at = start + 4;
        a[0] = 'x';
        assert_null(snib__grow(a, 100));
        assert_int_equal(a[0], 'x'); /* the old block is still there */
        snib__alloc_fail_at = 0;
        a = snib__grow(a, 100);
        assert_non_null(a);
        assert_int_equal(a[0], 'x');
        assert_null(snib__copy("", SIZE_MAX));
        free(a);
        free(c);
        free(snib__alloc(0));
}

static void time_does_not_overflow(void **state)
{
        (void)state;
        assert_true(snib__after(5, 7) == 12);
        assert_true(snib__after(5, SNIB__NEVER) == SNIB__NEVER);
        assert_true(snib__after(5, SNIB__NEVER - 5) == SNIB__NEVER);
        assert_true(snib__after(5, SNIB__NEVER - 6) == SNIB__NEVER - 1);
        assert_true(snib__min(3, SNIB__NEVER) == 3);
        assert_true(snib__max(3, SNIB__NEVER) == SNIB__NEVER);
}

static void cleanup_frees_what_was_not_taken(void **state)
{
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), kept = -1;
        char *text = NULL;

        (void)state;
        assert_true(fd >= 0);
        {
                _cleanup_close_ int closed = fd;
                _cleanup_close_ int taken = open("/dev/null", O_RDONLY | O_CLOEXEC);
                _cleanup_free_ char *freed = snib__copy("f", 1); /* the leak checker watches this one */
                _cleanup_free_ char *handed = snib__copy("t", 1);

                assert_non_null(freed);
                kept = TAKE_FD(taken);
                text = TAKE(handed);
                assert_int_equal(taken, -1);
                assert_null(handed);
                assert_int_equal(closed, fd);
        }
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        assert_true(fcntl(kept, F_GETFD) >= 0);
        assert_string_equal(text, "t");
        (void)close(kept);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(error_fills_what_fits),
            cmocka_unit_test(error_replaces_codes_of_before),
            cmocka_unit_test(text_is_made_showable),
            cmocka_unit_test(text_is_cut_between_characters),
            cmocka_unit_test(error_text_is_cut_between_characters),
            cmocka_unit_test(allocation_fails_where_told),
            cmocka_unit_test(time_does_not_overflow),
            cmocka_unit_test(cleanup_frees_what_was_not_taken),
        };

        return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
