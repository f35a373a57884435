/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decorators, on every engine there is. With faults: requests that are refused, not sent, or
 * answered by nobody; whatever the calls say, two never hold at once, tokens rise, and when the
 * faults are over the lock is had. With a trace: each request has a line, and so has its answer.
 */

#include "lib/faulty.h"
#include "lib/redis_server.h"
#include "lib/tmp.h"
#include "lib/wait.h"
#include <pthread.h>
#include <setjmp.h>
#include <snib/snib.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 4
#define ROUNDS 300
#define LEASE_MS 1000

static char urls[3][300];

static struct {
        snib_lock *lock;
        atomic_int inside, overlaps, granted, odd;
        _Atomic int64_t last; /* token */
        atomic_int backwards;
} shop;

static void one_round(void)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *g = NULL;
        int r = snib_lock_acquire(shop.lock, 2000, &g, &err);

        if (r == 1) {
                atomic_fetch_add(&shop.overlaps, atomic_fetch_add(&shop.inside, 1) > 0);
                if (atomic_exchange(&shop.last, snib_grant_token(g)) >= snib_grant_token(g))
                        atomic_fetch_add(&shop.backwards, 1);
                atomic_fetch_add(&shop.granted, 1);
                atomic_fetch_sub(&shop.inside, 1);
                r = snib_grant_release(g, &err);
        }
        if (r < 0 && r != SNIB_EUNREACHABLE && r != SNIB_EUNKNOWN && r != SNIB_ENOMEM && r != SNIB_ELOST) {
                print_message("# %d: %s\n", r, err.text);
                atomic_fetch_add(&shop.odd, 1);
        }
}

static void *come_and_go(void *arg)
{
        (void)arg;
        for (int i = 0; i < ROUNDS; i++)
                one_round();
        return NULL;
}

static void with_faults(const char *url)
{
        struct snib_lock_options o = {.size = sizeof(o), .kind = SNIB_LOCK_FENCED, .lease_ms = LEASE_MS * wait_slow()};
        pthread_t thread[THREADS];
        snib_client *c = NULL;
        snib_grant *g = NULL;

        memset(&shop, 0, sizeof(shop));
        assert_int_equal(snib_open(&c, url, NULL, NULL), 0);
        assert_int_equal(snib_lock_new(c, "faulty", &o, &shop.lock, NULL), 0);
        atomic_store(&faulty_count, 0);
        faulty_odds.refused = 15;
        faulty_odds.unsent = faulty_odds.lost = 7;
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, NULL), 0);
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        faulty_odds.refused = faulty_odds.unsent = faulty_odds.lost = 0;
        print_message("# %.6s: %u faults, %d grants\n", url, atomic_load(&faulty_count), atomic_load(&shop.granted));
        assert_true(atomic_load(&faulty_count) > 10);
        assert_true(shop.granted > 0);
        assert_int_equal(shop.overlaps, 0);
        assert_int_equal(shop.backwards, 0);
        assert_int_equal(shop.odd, 0);
        assert_int_equal(snib_lock_acquire(shop.lock, 20000 * wait_slow(), &g, NULL), 1);
        assert_true(snib_grant_token(g) > shop.last);
        assert_int_equal(snib_grant_release(g, NULL), 1);
        snib_lock_free(shop.lock);
        snib_close(c);
}

static void two_never_hold_at_once_whatever_is_lost(void **state)
{
        (void)state;
        faulty_install();
        for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
                if (urls[i][0])
                        with_faults(urls[i]);
        faulty_remove();
}

static const char *contents(const char *path)
{
        static char text[16384];
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        text[fread(text, 1, sizeof(text) - 1, f)] = 0;
        (void)fclose(f);
        (void)remove(path);
        return text;
}

static void traced(const char *url, const char *path)
{
        static const char *const parts[] = {
            "< link up\n", "acquire lock \"traced\" id=", " granted token=", "release lock \"traced\"", " released ",
            "> close\n"};
        const char *text, *at;
        char with[1500];
        snib_client *c = NULL;
        snib_lock *l = NULL;
        snib_grant *g = NULL;

        (void)snprintf(with, sizeof(with), "%s%ctrace=%s", url, strchr(url, '?') ? '&' : '?', path);
        assert_int_equal(snib_open(&c, with, NULL, NULL), 0);
        assert_int_equal(snib_lock_new(c, "traced", NULL, &l, NULL), 0);
        assert_int_equal(snib_lock_acquire(l, 5000, &g, NULL), 1);
        assert_int_equal(snib_grant_release(g, NULL), 1);
        snib_lock_free(l);
        snib_close(c);
        at = text = contents(path);
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                at = strstr(at, parts[i]);
                if (!at)
                        fail_msg("no \"%s\" in its place in:\n%s", parts[i], text);
        }
}

static void each_request_and_answer_has_a_line(void **state)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *c = NULL;
        char path[400];

        (void)state;
        (void)snprintf(path, sizeof(path), "%s/trace", tmp_dir());
        for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
                if (urls[i][0])
                        traced(urls[i], path);
        assert_int_equal(snib_open(&c, "mem:traced?trace=/nowhere/trace", NULL, &err), SNIB_EURL);
        assert_non_null(strstr(err.text, "/nowhere/trace"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(two_never_hold_at_once_whatever_is_lost),
            cmocka_unit_test(each_request_and_answer_has_a_line),
        };
        struct redis_server *server = redis_server_unavailable() ? NULL : redis_server_start(NULL);
        int r;

        (void)snprintf(urls[0], sizeof(urls[0]), "mem:faulty");
        (void)snprintf(urls[1], sizeof(urls[1]), "local:%s", tmp_dir());
        if (server)
                (void)snprintf(urls[2], sizeof(urls[2]), "%s", redis_server_url(server));
        else
                print_message("# without Redis: %s\n", redis_server_unavailable());
        r = cmocka_run_group_tests(tests, NULL, NULL);
        redis_server_free(server);
        return r;
}
