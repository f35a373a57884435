/* SPDX-License-Identifier: Apache-2.0 */

/*
 * URLs, options and durations: what is understood, what is refused and in which words, and that no
 * password is ever shown.
 */

#include "base/duration.h"
#include "base/url.h"
#include "unit.h"
#include <stdio.h>

static void parse(const char *text, struct snib__url *url)
{
        struct snib_error err = SNIB_ERROR_INIT;

        if (snib__url_parse(text, url, &err) != 0)
                fail_msg("%s: %s", text, err.text);
}

static void good_urls(void **state)
{
        static const struct {
                const char *text, *scheme;
                bool authority;
                const char *user, *password, *host;
                int port;
                const char *path;
                int options;
        } table[] = {
            {"local:", "local", false, "", NULL, "", 0, "", 0},
            {"local:/var/lib/x", "local", false, "", NULL, "", 0, "/var/lib/x", 0},
            {"local:rel/dir?a=1", "local", false, "", NULL, "", 0, "rel/dir", 1},
            {"local:/a@b:c", "local", false, "", NULL, "", 0, "/a@b:c", 0},
            {"mem:name", "mem", false, "", NULL, "", 0, "name", 0},
            {"MEM:Name", "mem", false, "", NULL, "", 0, "Name", 0},
            {"redis://", "redis", true, "", NULL, "", 0, "", 0},
            {"redis://localhost", "redis", true, "", NULL, "localhost", 0, "", 0},
            {"redis://h:1", "redis", true, "", NULL, "h", 1, "", 0},
            {"redis://h:65535/0", "redis", true, "", NULL, "h", 65535, "/0", 0},
            {"redis://[::1]:6379/0", "redis", true, "", NULL, "::1", 6379, "/0", 0},
            {"redis://[fe80::1%25eth0]", "redis", true, "", NULL, "fe80::1%eth0", 0, "", 0},
            {"redis://[::ffff:1.2.3.4]?x=", "redis", true, "", NULL, "::ffff:1.2.3.4", 0, "", 1},
            {"redis://u@h", "redis", true, "u", NULL, "h", 0, "", 0},
            {"redis://u:@h", "redis", true, "u", "", "h", 0, "", 0},
            {"redis://:p@h", "redis", true, "", "p", "h", 0, "", 0},
            {"redis://u:a:b@h", "redis", true, "u", "a:b", "h", 0, "", 0},
            {"redis://u%3A:%40%2f%3F%25%0a@h", "redis", true, "u:", "@/?%\n", "h", 0, "", 0},
            {"redis+unix:///run/redis.sock?db=1&timeout=2s", "redis+unix", true, "", NULL, "", 0, "/run/redis.sock", 2},
            {"redis+unix://:p@/run/a%20b", "redis+unix", true, "", "p", "", 0, "/run/a b", 0},
            {"redis://h?a=1=2&b=%26&c_d-3=??", "redis", true, "", NULL, "h", 0, "", 3},
            {"local:/d%C3%BC/\xc3\xbc", "local", false, "", NULL, "", 0, "/d\xc3\xbc/\xc3\xbc", 0},
            {"a.b-c+1:x", "a.b-c+1", false, "", NULL, "", 0, "x", 0},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                struct snib__url url;

                parse(table[i].text, &url);
                assert_string_equal(url.scheme, table[i].scheme);
                assert_int_equal(url.has_authority, table[i].authority);
                assert_string_equal(url.user, table[i].user);
                assert_int_equal(url.has_password, table[i].password != NULL);
                assert_string_equal(url.password, table[i].password ? table[i].password : "");
                assert_string_equal(url.host, table[i].host);
                assert_int_equal(url.port, table[i].port);
                assert_string_equal(url.path, table[i].path);
                assert_int_equal(url.options, table[i].options);
                snib__url_wipe(&url);
                for (size_t b = 0; b < sizeof(url); b++)
                        assert_int_equal(((unsigned char *)&url)[b], 0);
        }
}

/* Every one has the secret "hunter2" where somebody might write it. */
static void bad_urls_are_refused_in_words(void **state)
{
        static const struct {
                const char *text, *words;
        } table[] = {
            {NULL, "is empty"},
            {"", "is empty"},
            {"localhost", "scheme"},
            {"//u:hunter2@h", "scheme"},
            {"1redis://:hunter2@h", "scheme"},
            {":hunter2", "scheme"},
            {"re_dis:x", "scheme"},
            {"abcdefghijklmnopqrstuvwxyzabcdef:x", "scheme of the URL is too long"},
            {"local:/a b", "byte 9 of the URL is a space"},
            {"local:/a\nb", "byte 9 of the URL is a control character"},
            {"local:/a\x7f", "byte 9 of the URL is a control character"},
            {"local:/a#b", "'#'"},
            {"local:/a%", "'%' in the path"},
            {"local:/a%4", "'%' in the path"},
            {"local:/a%4g", "'%' in the path"},
            {"local:/a%00", "path of the URL contains a control character"},
            {"local:/a%1b", "path of the URL contains a control character"},
            {"redis://u%zz:hunter2@h", "'%' in the user"},
            {"redis://u:hunter2%zz@h", "'%' in the password"},
            {"redis://u:hunter2%00@h", "password of the URL contains a control character"},
            {"redis://h%", "'%' in the host"},
            {"redis://u:hunter2", "port in the URL is not a number"},
            {"redis://h:", "port"},
            {"redis://h:0", "port"},
            {"redis://h:65536", "port"},
            {"redis://h:000001", "port"},
            {"redis://h:+1", "port"},
            {"redis://[::1]:hunter2", "port"},
            {"redis://:6379", "port but no host"},
            {"redis://::1", "IPv6 address in brackets"},
            {"redis://1:2:3", "several ':'"},
            {"redis://[::1", "'[' without a ']'"},
            {"redis://[::1]x", "']' in the URL is followed"},
            {"redis://[1]", "not an IPv6 address"},
            {"redis://[::g]", "not an IPv6 address"},
            {"redis://[::1%25]", "not an IPv6 address"},
            {"redis://h]", "host in the URL contains"},
            {"redis://h%2fx", "host in the URL contains"},
            {"redis://u:hunter2@x@h", "bare '@'"},
            {"redis://u:hun/ter2@h", "bare '@' after the host"},
            {"redis://u:1?hunter2=x@h", "bare '@' after the host"},
            {"redis://u:1/hunter2@h", "bare '@' after the host"},
            {"redis://h?", "option 1 of the URL has no name"},
            {"redis://h?a=1&", "option 2 of the URL has no name"},
            {"redis://h?=1", "option 1 of the URL has no name"},
            {"redis://h?a=1&&b=2", "option 2 of the URL has no name"},
            {"redis://h?db", "option \"db\" of the URL has no value"},
            {"redis://h?db=1&db=2", "option \"db\" is in the URL twice"},
            {"redis://h?Db=1", "name of option 1"},
            {"redis://h?d%62=1", "name of option 1"},
            {"redis://h?db=%0a", "option \"db\" of the URL contains a control character"},
            {"redis://h?abcdefghijklmnopqrstuvwxyzabcdef=1", "name of option 1 of the URL is too long"},
            {"x:?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1&l=1&m=1&n=1&o=1&p=1&q=1", "too many options; at most 16"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                struct snib_error err = SNIB_ERROR_INIT;
                struct snib__url url;

                memset(&url, 0xa5, sizeof(url));
                assert_int_equal(snib__url_parse(table[i].text, &url, &err), SNIB_EURL);
                assert_int_equal(err.code, SNIB_EURL);
                if (!strstr(err.text, table[i].words))
                        fail_msg("%s: \"%s\" does not say \"%s\"", table[i].text, err.text, table[i].words);
                if (strstr(err.text, "hunter2") || strstr(err.text, "hun/ter2"))
                        fail_msg("%s: the error shows the password: %s", table[i].text, err.text);
                assert_non_null(strchr(err.text, ';')); /* it says what to do */
                for (size_t b = 0; b < sizeof(url); b++)
                        assert_int_equal(((unsigned char *)&url)[b], 0); /* nothing of a password stays behind */
        }
}

/* `part` bytes between the two texts are good, one more is refused. */
static void limit(const char *before, const char *after, size_t part, const char *words)
{
        char filler[1100], text[1200];
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__url url;

        memset(filler, 'a', sizeof(filler));
        (void)snprintf(text, sizeof(text), "%s%.*s%s", before, (int)part, filler, after);
        parse(text, &url);
        (void)snprintf(text, sizeof(text), "%s%.*s%s", before, (int)part + 1, filler, after);
        assert_int_equal(snib__url_parse(text, &url, &err), SNIB_EURL);
        if (!strstr(err.text, words))
                fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void parts_have_limits(void **state)
{
        (void)state;
        limit("", ":", 31, "scheme of the URL is too long");
        limit("x://", ":p@h", 255, "user of the URL is too long");
        limit("x://u:", "@h", 255, "password of the URL is too long");
        limit("x://", "", 255, "host of the URL is too long");
        limit("x:", "", 1023, "path of the URL is too long");
        limit("x:?", "=1", 31, "name of option 1");
        limit("x:?k=", "", 255, "option \"k\" of the URL is too long");

        char text[5000];
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__url url;

        memset(text, 'a', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        memcpy(text, "x:", 2);
        assert_int_equal(snib__url_parse(text, &url, &err), SNIB_EURL);
        assert_non_null(strstr(err.text, "URL is too long"));
}
static void options_nobody_asked_for(void **state)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__url url;

        (void)state;
        parse("redis://h?db=1&timeout=2s&bd=hunter2", &url);
        assert_string_equal(snib__url_option(&url, "db"), "1");
        assert_string_equal(snib__url_option(&url, "timeout"), "2s");
        assert_null(snib__url_option(&url, "nothing"));
        assert_int_equal(snib__url_unused(&url, "timeout, db", &err), SNIB_EURL);
        assert_non_null(strstr(err.text, "\"bd\""));
        assert_non_null(strstr(err.text, "timeout, db"));
        assert_null(strstr(err.text, "hunter2"));
        assert_non_null(snib__url_option(&url, "bd"));
        assert_int_equal(snib__url_unused(&url, "timeout, db", &err), 0);
}

static void durations(void **state)
{
        static const struct {
                const char *text;
                int64_t ms; /* below 0: the error */
        } table[] = {
            {"2s", 2000},
            {"500ms", 500},
            {"1.5s", 1500},
            {".5", 500},
            {"2m", 120000},
            {"2min", 120000},
            {"1h", 3600000},
            {"30", 30000},
            {"1d", 86400000},
            {"0", 0},
            {"0s", 0},
            {"0.001", 1},
            {"0.0001s", 1}, /* rounded up: a wait that was asked for is none of 0 */
            {"0.5ms", 1},
            {"0.25m", 15000},
            {"1.500000000s", 1500},
            {"007s", 7000},
            {"1h30m", 5400000},
            {"1d2h3m4s5ms", 93784005},
            {"1m0.5s", 60500},
            {"0h0m", 0},
            {"9223372036854775807ms", INT64_MAX},
            {"9223372036854775.807s", INT64_MAX},
            {"9223372036854775808ms", SNIB_ELIMIT},
            {"9223372036854775.808s", SNIB_ELIMIT},
            {"9223372036854775807", SNIB_ELIMIT},
            {"106751991168d", SNIB_ELIMIT},
            {"106751991167d99h", SNIB_ELIMIT},
            {"99999999999999999999", SNIB_ELIMIT},
            {"99999999999999999999h1s", SNIB_ELIMIT},
            {"99999999999999999999y", SNIB_EINVAL},
            {"", SNIB_EINVAL},
            {"s", SNIB_EINVAL},
            {".", SNIB_EINVAL},
            {"-1s", SNIB_EINVAL},
            {"+1s", SNIB_EINVAL},
            {" 1s", SNIB_EINVAL},
            {"1s ", SNIB_EINVAL},
            {"1 s", SNIB_EINVAL},
            {"1h 30m", SNIB_EINVAL},
            {"1.s", SNIB_EINVAL},
            {"1.2.3s", SNIB_EINVAL},
            {"30m1h", SNIB_EINVAL},
            {"1m1min", SNIB_EINVAL},
            {"1h30", SNIB_EINVAL}, /* minutes or seconds? */
            {"1.5h30m", SNIB_EINVAL},
            {"1h-30m", SNIB_EINVAL},
            {"1hm", SNIB_EINVAL},
            {"1e3", SNIB_EINVAL},
            {"0x10", SNIB_EINVAL},
            {"1S", SNIB_EINVAL},
            {"1us", SNIB_EINVAL},
            {"1.0000000000s", SNIB_EINVAL},
            {"inf", SNIB_EINVAL},
            {"nan", SNIB_EINVAL},
            {"1,5s", SNIB_EINVAL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                int64_t ms = -7;
                int r = snib__duration_parse(table[i].text, &ms);

                if (r != (table[i].ms < 0 ? table[i].ms : 0) || ms != (table[i].ms < 0 ? -7 : table[i].ms))
                        fail_msg("\"%s\": %d, %lld", table[i].text, r, (long long)ms);
        }
}

static void passwords_are_masked(void **state)
{
        static const struct {
                const char *text, *shown;
        } table[] = {
            {"redis://u:hunter2@h:1/0?a=b", "redis://u:***@h:1/0?a=b"},
            {"redis://:hunter2@h", "redis://:***@h"},
            {"redis://u@h", "redis://u@h"},
            {"redis://h:6379/0", "redis://h:6379/0"},
            {"redis://[::1]:6379/0", "redis://[::1]:6379/0"},
            {"redis://u:hunter2@[::1]:6379/0", "redis://u:***@[::1]:6379/0"},
            {"local:/dir@x", "local:/dir@x"},
            {"mem:name", "mem:name"},
            {"local:", "local:"},
            {"", ""},
            /* What is no URL may hold a password all the same. */
            {"redis://u:hunter2", "redis://u:***"},
            {"redis://u:hunter2/0", "redis://u:***"},
            {"redis://u:123456", "redis://u:***"},
            {"redis://u:hunter2@x@h", "redis://u:***@h"},
            {"redis://u:hun/hunter2@h", "redis://u:***@h"},
            {"redis://u:1?hunter2@h", "redis://u:***@h"},
            {"redis:/u:hunter2@h", "redis:/u:***@h"},
            {"redis:u:hunter2@h", "redis:u:***@h"},
            {"redis:hunter2@h", "redis:***@h"},
            {"u:hunter2@h", "u:***@h"},
            {"hunter2@h", "***@h"},
            {"hunter2@h:1", "***@h:1"},
            {"//u:hunter2@h", "//u:***@h"},
            {"redis://u:hunter2%zz@h\x1b[1m", "redis://u:***@h?[1m"},
            {"redis://[::1:hunter2@h", "redis://[:***@h"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                char shown[128], full[128];

                snib__url_mask(table[i].text, shown, sizeof(shown));
                assert_string_equal(shown, table[i].shown);
                /* Cut anywhere it is the beginning of the same. */
                memcpy(full, shown, sizeof(full));
                for (size_t size = 1; size <= strlen(full) + 1; size++) {
                        memset(shown, 'x', sizeof(shown));
                        snib__url_mask(table[i].text, shown, size);
                        assert_int_equal(strlen(shown), size - 1);
                        assert_memory_equal(shown, full, size - 1);
                }
        }

        char untouched = 'x';

        snib__url_mask("redis://h", &untouched, 0);
        assert_int_equal(untouched, 'x');
}

/* What is written is read as the same, but for the password. */
static void urls_are_written_again(void **state)
{
        static const struct {
                const char *text, *again;
        } table[] = {
            {"local:/dir", "local:/dir"},
            {"local:/a%20b%3Fc%25?mode=0660&group=ops", "local:/a%20b%3Fc%25?mode=0660&group=ops"},
            {"local:/d%C3%BC/\xc3\xbc", "local:/d\xc3\xbc/\xc3\xbc"},
            {"mem:", "mem:"},
            {"redis://u:hunter2@h:1/0?a=%26b", "redis://u@h:1/0?a=%26b"},
            {"redis://:hunter2@[fe80::1%25eth0]:6379", "redis://[fe80::1%25eth0]:6379"},
            {"redis+unix:///run/r.sock?password=hunter2&db=1", "redis+unix:///run/r.sock?db=1"},
            {"redis+unix:///run/r.sock?db=1&password=hunter2", "redis+unix:///run/r.sock?db=1"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                struct snib__url url, read;
                char text[256], again[256];
                size_t length;

                parse(table[i].text, &url);
                length = snib__url_format(&url, text, sizeof(text));
                assert_string_equal(text, table[i].again);
                assert_int_equal(length, strlen(text));
                assert_int_equal(snib__url_format(&url, NULL, 0), length);
                parse(text, &read);
                assert_string_equal(read.path, url.path);
                assert_string_equal(read.host, url.host);
                assert_int_equal(snib__url_format(&read, again, sizeof(again)), length);
                assert_string_equal(again, text);
                for (size_t size = 1; size <= length; size++) {
                        assert_int_equal(snib__url_format(&url, again, size), length);
                        assert_int_equal(strlen(again), size - 1);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(good_urls),
            cmocka_unit_test(bad_urls_are_refused_in_words),
            cmocka_unit_test(parts_have_limits),
            cmocka_unit_test(options_nobody_asked_for),
            cmocka_unit_test(durations),
            cmocka_unit_test(passwords_are_masked),
            cmocka_unit_test(urls_are_written_again),
        };

        return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
