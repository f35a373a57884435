/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lock segments: their names, the hash that chooses one, all of them at once.
 *
 * The vectors were computed apart from the library:
 *
 *     M = (1 << 64) - 1
 *     def index(key, n):
 *         h = 14695981039346656037
 *         for b in key:
 *             h = ((h ^ b) * 1099511628211) & M
 *         return (h ^ (h >> 32)) % n
 */

#include "multi.h"
#include <string.h>

static const size_t counts[] = {1, 2, 7, 16, 64, 4096};
#define COUNTS (sizeof(counts) / sizeof(counts[0]))

static const struct {
        const char *key;
        size_t length;
        size_t index[COUNTS];
} vectors[] = {
    {"", 0, {0, 1, 6, 1, 1, 4033}},         {"a", 1, {0, 0, 1, 0, 0, 192}},
    {"alice", 5, {0, 0, 0, 12, 60, 956}},   {"bob", 3, {0, 1, 0, 13, 13, 3661}},
    {"\0\377\n", 3, {0, 0, 3, 6, 6, 1798}}, {"stock:42", 8, {0, 0, 5, 4, 20, 3988}},
};

static snib_striped *striped(snib_client *c, const char *name, size_t count)
{
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .owner = "we"};
        snib_striped *s = NULL;

        assert_result(snib_striped_new(c, name, count, &o, &s, NULL), 0);
        return s;
}

static void keys_choose_the_segments_they_always_chose(void **state)
{
        snib_client *c = fault_open("mem:striped", 0);

        for (size_t i = 0; i < COUNTS; i++) {
                snib_striped *s = striped(c, "accounts", counts[i]);

                assert_int_equal(snib_striped_count(s), counts[i]);
                for (size_t k = 0; k < sizeof(vectors) / sizeof(vectors[0]); k++) {
                        size_t index = snib_striped_index(s, vectors[k].key, vectors[k].length);

                        assert_int_equal(index, vectors[k].index[i]);
                        assert_ptr_equal(snib_striped_for(s, vectors[k].key, vectors[k].length),
                                         snib_striped_at(s, index));
                }
                assert_null(snib_striped_at(s, counts[i]));
                assert_int_equal(snib_striped_all(s) != NULL, counts[i] <= SNIB_MULTILOCK_MAX);
                snib_striped_free(s);
        }
        snib_close(c);
}

static void segments_have_names_of_their_own(void **state)
{
        snib_client *c = fault_open("mem:striped", 0);
        snib_striped *s = striped(c, "accounts", 16), *t = striped(c, "shop:{7}", 2);
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .name_len = 3};
        snib_striped *cut = NULL;

        assert_string_equal(snib_lock_name(snib_striped_at(s, 3)), "{accounts}:3/16");
        assert_string_equal(snib_lock_name(snib_striped_at(t, 1)), "shop:{7}:1/2");
        assert_result(snib_striped_new(c, "abcdef", 1, &o, &cut, NULL), 0);
        assert_string_equal(snib_lock_name(snib_striped_at(cut, 0)), "{abc}:0/1");
        snib_striped_free(cut);
        snib_striped_free(t);
        snib_striped_free(s);
        snib_close(c);
}

static void segments_are_locks_and_all_is_a_multilock(void **state)
{
        snib_client *c = fault_open("mem:striped", 0);
        snib_striped *s = striped(c, "accounts", 16);
        snib_lock *theirs = fault_lock(c, "{accounts}:12/16", "they", 0);
        snib_grant *grant, *none = NULL;
        struct snib_scope held = SNIB_SCOPE_INIT;
        snib_multigrant *all;
        int blocks = 0;

        SNIB_WITH_LOCK (held, snib_striped_for(s, "alice", 5), 0) {
                blocks++;
                assert_result(snib_lock_try(theirs, &none, NULL), 0);
        }
        assert_int_equal(blocks, 1);
        assert_int_equal(held.released, 1);
        grant = fault_acquire(theirs, 0);
        (void)multi_refused(snib_striped_all(s), 0, 0);
        assert_result(snib_grant_release(grant, NULL), 1);
        all = multi_acquire(snib_striped_all(s), 0);
        for (size_t i = 0; i < 16; i++)
                assert_true(multi_held(snib_striped_at(s, i)));
        multi_release(all, 1);
        for (size_t i = 0; i < 16; i++)
                assert_false(multi_held(snib_striped_at(s, i)));
        snib_lock_free(theirs);
        snib_striped_free(s);
        snib_close(c);
}

static void striped_arguments_are_checked(void **state)
{
        snib_client *c = fault_open("mem:striped", 0);
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = 1};
        char name[SNIB_NAME_MAX + 1];
        snib_striped *s = NULL;

        memset(name, 'x', sizeof(name) - 1);
        name[SNIB_NAME_MAX] = 0;
        assert_result(snib_striped_new(NULL, "a", 1, NULL, &s, NULL), SNIB_EINVAL);
        assert_result(snib_striped_new(c, "a", 1, NULL, NULL, NULL), SNIB_EINVAL);
        assert_result(snib_striped_new(c, "a", 0, NULL, &s, NULL), SNIB_EINVAL);
        assert_result(snib_striped_new(c, "a", SNIB_STRIPES_MAX + 1, NULL, &s, NULL), SNIB_EINVAL);
        assert_result(snib_striped_new(c, "", 1, NULL, &s, NULL), SNIB_ENAME);
        assert_result(snib_striped_new(c, NULL, 1, NULL, &s, NULL), SNIB_ENAME);
        assert_result(snib_striped_new(c, name, 1, NULL, &s, NULL), SNIB_ENAME); /* with what is added it is too long */
        assert_result(snib_striped_new(c, "a", 1, &o, &s, NULL), SNIB_ELEASE);
        assert_null(s);
        assert_int_equal(snib_striped_count(NULL), 0);
        assert_int_equal(snib_striped_index(NULL, "a", 1), 0);
        assert_null(snib_striped_at(NULL, 0));
        assert_null(snib_striped_for(NULL, "a", 1));
        assert_null(snib_striped_all(NULL));
        snib_striped_free(NULL);
        snib_close(c);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(keys_choose_the_segments_they_always_chose),
            cmocka_unit_test(segments_have_names_of_their_own),
            cmocka_unit_test(segments_are_locks_and_all_is_a_multilock),
            cmocka_unit_test(striped_arguments_are_checked),
        };

        return fault_run("striped", tests, sizeof(tests) / sizeof(tests[0]), 0);
}
