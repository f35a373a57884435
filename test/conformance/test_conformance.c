/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What every engine must do, through the public headers alone: one suite, one URL.
 * `test_conformance mem|local|redis|redis+unix` runs it; redis means a real private server. What an
 * engine says it can do (the bits of snib_engine_info.caps) is proven here, and where it says it
 * cannot, that is checked too as far as it shows.
 *
 * Here is the program; the tests are in the files around it. Waiting is for events.
 */

#include "kit.h"
#include "lib/tmp.h"
#include <stdio.h>
#include <string.h>

static unsigned caps_find(const char *scheme)
{
        struct snib_engine_info info = SNIB_ENGINE_INFO_INIT;

        for (int i = 0; snib_engine_at(i, &info) == 1; i++)
                if (!strncmp(scheme, info.name, strlen(info.name)))
                        return info.caps;
        bail("no engine for %s", scheme);
}

/* Fills `url`; the reason to skip everything, or NULL. */
static const char *prepare(const char *what)
{
        caps = caps_find(what);
        if (!strcmp(what, "mem")) {
                (void)snprintf(url, sizeof(url), "mem:conformance");
        } else if (!strcmp(what, "local")) {
                (void)snprintf(url, sizeof(url), "local:%s", tmp_dir());
        } else {
                const char *why = redis_server_unavailable();

                if (why)
                        return why;
                server = redis_server_start(&(struct redis_server_options){.tcp = true});
                (void)snprintf(url, sizeof(url), "%s",
                               strcmp(what, "redis") ? redis_server_unix_url(server) : redis_server_url(server));
        }
        return NULL;
}

static const struct conformance_tests *const files[] = {&lock_tests,    &noun_tests,     &rwlock_tests,   &count_tests,
                                                        &permits_tests, &election_tests, &register_tests, &input_tests};
#define FILES (sizeof(files) / sizeof(files[0]))
#define TESTS_MAX 200

int main(int argc, char **argv)
{
        const char *why = argc > 1 ? prepare(argv[1]) : "usage: test_conformance mem|local|redis|redis+unix";
        unsigned have = caps | (server ? SERVER : 0);
        struct CMUnitTest tests[TESTS_MAX];
        size_t count = 0;
        int r;

        if (why) {
                (void)printf("1..0 # SKIP %s\n", why);
                return argc > 1 ? 0 : 2;
        }
        for (size_t f = 0; f < FILES; f++)
                for (size_t i = 0; i < files[f]->count && count < TESTS_MAX; i++)
                        if ((files[f]->test[i].needs & have) == files[f]->test[i].needs)
                                tests[count++] = files[f]->test[i].test;
        r = _cmocka_run_group_tests(argv[1], tests, count, NULL, NULL);
        redis_server_free(server);
        return r;
}
