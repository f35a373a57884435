/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What bad input gets: a clear error that names what was wrong, and nothing is changed.
 */

#include "kit.h"
#include "nouns.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of each, of a name of its own. */
struct all {
        snib_client *c;
        snib_semaphore *sem;
        snib_permits *permits;
        snib_latch *latch;
        snib_election *election;
        snib_register *reg;
        struct snib_error err;
};

static struct all all_new(const char *name)
{
        struct all a = {.c = open_as("bad input"), .err = SNIB_ERROR_INIT};

        assert_true(!(caps & SNIB_CAP_SEMAPHORE) || snib_semaphore_new(a.c, name, 0, &a.sem, NULL) == 0);
        assert_true(!(caps & SNIB_CAP_PERMITS) || snib_permits_new(a.c, name, NULL, &a.permits, NULL) == 0);
        assert_true(!(caps & SNIB_CAP_LATCH) || snib_latch_new(a.c, name, 0, &a.latch, NULL) == 0);
        assert_true(!(caps & SNIB_CAP_ELECTION) || snib_election_new(a.c, name, NULL, &a.election, NULL) == 0);
        assert_true(!(caps & SNIB_CAP_REGISTER) || snib_register_new(a.c, name, 0, &a.reg, NULL) == 0);
        return a;
}

static void all_free(struct all *a)
{
        snib_semaphore_free(a->sem);
        snib_permits_free(a->permits);
        snib_latch_free(a->latch);
        snib_election_free(a->election);
        snib_register_free(a->reg);
        snib_close(a->c);
}

/* The call is refused, and the text has the word and, if it is one, the number. */
#define REFUSED(call, code_, word)                           \
        do {                                                 \
                memset(a.err.text, 0, sizeof(a.err.text));   \
                assert_int_equal((call), (code_));           \
                assert_non_null(strstr(a.err.text, (word))); \
                assert_int_equal(a.err.code, (code_));       \
        } while (0)

static void numbers_of_a_semaphore(void **state)
{
        struct all a = all_new("bad numbers");
        int64_t n;

        REFUSED(snib_semaphore_acquire(a.sem, 0, 0, &a.err), SNIB_EINVAL, "permits is 0; use 1 to 2147483647");
        REFUSED(snib_semaphore_acquire(a.sem, -1, 0, &a.err), SNIB_EINVAL, "-1");
        REFUSED(snib_semaphore_acquire(a.sem, INT64_MIN, 0, &a.err), SNIB_EINVAL, "permits");
        REFUSED(snib_semaphore_acquire(a.sem, SNIB_PERMITS_MAX + 1, 0, &a.err), SNIB_ELIMIT, "2147483648");
        REFUSED(snib_semaphore_acquire(a.sem, INT64_MAX, 0, &a.err), SNIB_ELIMIT, "permits");
        REFUSED(snib_semaphore_acquire(a.sem, 1, -2, &a.err), SNIB_EINVAL, "wait_ms");
        REFUSED(snib_semaphore_set(a.sem, -1, 0, &a.err), SNIB_EINVAL, "permits is -1; use 0 to 2147483647");
        REFUSED(snib_semaphore_set(a.sem, SNIB_PERMITS_MAX + 1, 0, &a.err), SNIB_ELIMIT, "permits");
        REFUSED(snib_semaphore_set(a.sem, 1, -1, &a.err), SNIB_EINVAL, "ttl_ms");
        REFUSED(snib_semaphore_set(a.sem, 1, INT64_MAX, &a.err), SNIB_ELIMIT, "ttl_ms");
        REFUSED(snib_semaphore_release(a.sem, 0, &a.err), SNIB_EINVAL, "permits");
        REFUSED(snib_semaphore_release(a.sem, -3, &a.err), SNIB_EINVAL, "-3");
        REFUSED(snib_semaphore_release_if_exists(a.sem, INT64_MAX, &a.err), SNIB_ELIMIT, "permits");
        REFUSED(snib_semaphore_add(a.sem, 0, NULL, &a.err), SNIB_EINVAL, "delta");
        REFUSED(snib_semaphore_add(a.sem, -SNIB_PERMITS_MAX - 1, NULL, &a.err), SNIB_ELIMIT, "delta");
        REFUSED(snib_semaphore_add(a.sem, INT64_MIN, NULL, &a.err), SNIB_ELIMIT, "delta");
        REFUSED(snib_semaphore_drain(a.sem, NULL, &a.err), SNIB_EINVAL, "ret_drained");
        REFUSED(snib_semaphore_query(a.sem, NULL, &a.err), SNIB_EINVAL, "ret_available");
        REFUSED(snib_semaphore_query(NULL, &n, &a.err), SNIB_EINVAL, "semaphore");
        REFUSED(snib_semaphore_add_async(a.sem, 1, NULL, NULL, &a.err), SNIB_EINVAL, "done");
        REFUSED(snib_semaphore_acquire_async(a.sem, 1, 0, NULL, NULL, &a.err), SNIB_EINVAL, "done");
        assert_int_equal(snib_semaphore_query(a.sem, &n, NULL), 0); /* nothing of this made it */
        /* A number that is fine by itself and not with what there is. */
        assert_int_equal(snib_semaphore_set(a.sem, SNIB_PERMITS_MAX, 0, NULL), 1);
        REFUSED(snib_semaphore_release(a.sem, 1, &a.err), SNIB_ELIMIT, "semaphore");
        REFUSED(snib_semaphore_add(a.sem, 1, NULL, &a.err), SNIB_ELIMIT, "semaphore");
        assert_int_equal(snib_semaphore_query(a.sem, &n, NULL), 1);
        assert_int_equal(n, SNIB_PERMITS_MAX);
        assert_int_equal(snib_semaphore_acquire(a.sem, SNIB_PERMITS_MAX, 0, NULL), 1);
        assert_int_equal(snib_semaphore_delete(a.sem, NULL), 1);
        all_free(&a);
}

static void numbers_and_ids_of_permits(void **state)
{
        static const char zeros[] = "00000000000000000000000000000000";
        const char *id[] = {zeros, zeros}, *none[] = {NULL}, *few[] = {"abc"},
                   *many[] = {"000000000000000000000000000000001"}, *odd[] = {"0000000000000000000000000000000g"};
        struct snib_lock_options owner = {.size = sizeof(struct snib_lock_options), .owner = "me"};
        struct snib_permits_info wrong_size = {.size = 4};
        struct all a = all_new("bad permits");
        snib_permits *made = NULL;
        snib_grant *g = NULL;

        REFUSED(snib_permits_new(a.c, "x", &owner, &made, &a.err), SNIB_EINVAL, "options.owner");
        owner = (struct snib_lock_options){.size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FAIR};
        REFUSED(snib_permits_new(a.c, "x", &owner, &made, &a.err), SNIB_EINVAL, "options.kind");
        REFUSED(snib_permits_acquire(a.permits, 0, 0, &g, &a.err), SNIB_EINVAL, "count is 0; use 1 to 1000");
        REFUSED(snib_permits_acquire(a.permits, -1, 0, &g, &a.err), SNIB_EINVAL, "count");
        REFUSED(snib_permits_acquire(a.permits, 1001, 0, &g, &a.err), SNIB_ELIMIT, "1001");
        REFUSED(snib_permits_acquire(a.permits, 1, 0, NULL, &a.err), SNIB_EINVAL, "ret_grant");
        REFUSED(snib_permits_set(a.permits, -1, &a.err), SNIB_EINVAL, "limit is -1; use 0 to 2147483647");
        REFUSED(snib_permits_resize(a.permits, SNIB_PERMITS_MAX + 1, &a.err), SNIB_ELIMIT, "limit");
        REFUSED(snib_permits_add(a.permits, 0, NULL, &a.err), SNIB_EINVAL, "delta");
        REFUSED(snib_permits_release_ids(a.permits, id, 0, &a.err), SNIB_EINVAL, "count");
        REFUSED(snib_permits_release_ids(a.permits, id, SIZE_MAX, &a.err), SNIB_ELIMIT, "count");
        REFUSED(snib_permits_release_ids(a.permits, NULL, 1, &a.err), SNIB_EINVAL, "ids");
        REFUSED(snib_permits_release_ids(a.permits, none, 1, &a.err), SNIB_EINVAL, "32 hex digits");
        REFUSED(snib_permits_release_ids(a.permits, few, 1, &a.err), SNIB_EINVAL, "32 hex digits");
        REFUSED(snib_permits_release_ids(a.permits, many, 1, &a.err), SNIB_EINVAL, "32 hex digits");
        REFUSED(snib_permits_release_ids(a.permits, odd, 1, &a.err), SNIB_EINVAL, "32 hex digits");
        REFUSED(snib_permits_release_ids(a.permits, id, 2, &a.err), SNIB_EINVAL, "twice");
        REFUSED(snib_permits_release_ids(a.permits, id, 1, &a.err), SNIB_ENOTOWNER, "not out");
        REFUSED(snib_permits_renew_id(a.permits, odd[0], 1000, &a.err), SNIB_EINVAL, "32 hex digits");
        REFUSED(snib_permits_renew_id(a.permits, zeros, 5, &a.err), SNIB_ELEASE, "lease_ms");
        REFUSED(snib_permits_query(a.permits, &wrong_size, &a.err), SNIB_EINVAL, "ret_info");
        REFUSED(snib_permits_query(NULL, &wrong_size, &a.err), SNIB_EINVAL, "permits");
        assert_int_equal(snib_permits_delete(a.permits, NULL), 0);
        assert_null(g);
        assert_null(made);
        all_free(&a);
}

static void counts_of_a_latch(void **state)
{
        struct all a = all_new("bad latch");
        int64_t n;

        REFUSED(snib_latch_set(a.latch, 0, &a.err), SNIB_EINVAL, "count is 0; use 1 to 2147483647");
        REFUSED(snib_latch_set(a.latch, -5, &a.err), SNIB_EINVAL, "-5");
        REFUSED(snib_latch_set(a.latch, INT64_MAX, &a.err), SNIB_ELIMIT, "count");
        REFUSED(snib_latch_count_down(a.latch, 0, NULL, &a.err), SNIB_EINVAL, "by is 0");
        REFUSED(snib_latch_count_down(a.latch, -1, NULL, &a.err), SNIB_EINVAL, "by");
        REFUSED(snib_latch_count_down(a.latch, INT64_MIN, NULL, &a.err), SNIB_EINVAL, "by");
        REFUSED(snib_latch_query(a.latch, NULL, &a.err), SNIB_EINVAL, "ret_count");
        REFUSED(snib_latch_await(a.latch, -2, &a.err), SNIB_EINVAL, "wait_ms");
        REFUSED(snib_latch_await(NULL, 0, &a.err), SNIB_EINVAL, "latch");
        REFUSED(snib_latch_await_async(a.latch, 0, NULL, NULL, &a.err), SNIB_EINVAL, "done");
        assert_int_equal(snib_latch_set(a.latch, 2, NULL), 1);
        assert_int_equal(snib_latch_set(a.latch, 5, NULL), 0); /* twice */
        assert_int_equal(snib_latch_query(a.latch, &n, NULL), 1);
        assert_int_equal(n, 2);
        assert_int_equal(snib_latch_delete(a.latch, NULL), 1);
        all_free(&a);
}

static int grow(void *arg, const struct snib_value *old, struct snib_value *ret_new)
{
        ret_new->bytes = arg;
        ret_new->length = SNIB_REGISTER_MAX + 1;
        return 0;
}

static void values_of_a_register(void **state)
{
        struct all a = all_new("bad value");
        char *big = calloc(1, SNIB_REGISTER_MAX + 1);
        struct snib_value v = SNIB_VALUE_INIT;

        assert_non_null(big);
        REFUSED(snib_register_write(a.reg, big, SNIB_REGISTER_MAX + 1, 0, NULL, &a.err), SNIB_ELIMIT, "1048577");
        REFUSED(snib_register_update(a.reg, grow, big, 0, NULL, &a.err), SNIB_ELIMIT, "at most 1048576");
        REFUSED(snib_register_write(a.reg, NULL, 1, 0, NULL, &a.err), SNIB_EINVAL, "bytes");
        REFUSED(snib_register_write(a.reg, "x", 1, -2, NULL, &a.err), SNIB_EINVAL, "expected");
        REFUSED(snib_register_delete(a.reg, INT64_MIN, &a.err), SNIB_EINVAL, "expected");
        REFUSED(snib_register_read(a.reg, NULL, &a.err), SNIB_EINVAL, "ret_value");
        REFUSED(snib_register_wait(a.reg, -1, 0, &v, &a.err), SNIB_EINVAL, "last_version");
        REFUSED(snib_register_wait(a.reg, 0, 0, NULL, &a.err), SNIB_EINVAL, "ret_value");
        REFUSED(snib_register_update(a.reg, NULL, NULL, 0, NULL, &a.err), SNIB_EINVAL, "change");
        REFUSED(snib_register_read(NULL, &v, &a.err), SNIB_EINVAL, "reg");
        REFUSED(snib_register_read_async(a.reg, NULL, NULL, &a.err), SNIB_EINVAL, "done");
        assert_int_equal(snib_register_read(a.reg, &v, NULL), 0);
        snib_value_free(NULL);
        free(big);
        all_free(&a);
}

static void what_nobody_holds_is_not_released(void **state)
{
        struct all a = all_new("not mine");
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT, wrong_size = {.size = 4};
        snib_rwlock *rw = NULL;
        snib_grant *g;

        REFUSED(snib_election_resign(a.election, &a.err), SNIB_ENOTOWNER, "election");
        REFUSED(snib_election_observe(a.election, -1, 0, &info, &a.err), SNIB_EINVAL, "last_term");
        REFUSED(snib_election_observe(a.election, 0, 0, &wrong_size, &a.err), SNIB_EINVAL, "ret_leader");
        REFUSED(snib_election_leader(NULL, &info, &a.err), SNIB_EINVAL, "election");
        REFUSED(snib_election_campaign(a.election, 0, NULL, &a.err), SNIB_EINVAL, "ret_grant");
        REFUSED(snib_rwlock_new(a.c, "", NULL, &rw, &a.err), SNIB_ENAME, "name");
        REFUSED(snib_rwlock_new(a.c, "x", NULL, NULL, &a.err), SNIB_EINVAL, "ret_rwlock");
        assert_null(snib_rwlock_read(NULL));
        assert_null(snib_rwlock_write(NULL));
        assert_int_equal(snib_rwlock_new(a.c, "not mine either", NULL, &rw, NULL), 0);
        g = acquire(snib_rwlock_read(rw), 0);
        REFUSED(snib_lock_release(snib_rwlock_write(rw), &a.err), SNIB_ENOTOWNER, "write lock");
        release(g);
        REFUSED(snib_lock_release(snib_rwlock_read(rw), &a.err), SNIB_ENOTOWNER, "read lock");
        snib_rwlock_free(rw);
        snib_rwlock_free(NULL);
        all_free(&a);
}

/* Objects that are stored alike: 0 locks of every kind, ... */
static int family(const struct noun *noun)
{
        if (noun->cap & (SNIB_CAP_LOCK | SNIB_CAP_FENCED | SNIB_CAP_FAIR | SNIB_CAP_ELECTION))
                return 0;
        return (int)noun->cap;
}

/* What there is of `there` under the name, and what an object of another kind is told about it. */
static void mixed(const struct noun *there, const struct noun *asked)
{
        char name[64];
        struct obj *a, *b;
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        snib_client *c = open_as("there"), *d = open_as("asked");
        int r;

        (void)snprintf(name, sizeof(name), "%s and %s", there->text, asked->text);
        a = obj_new(there, c, name);
        b = obj_new(asked, d, name);
        obj_shut(a);
        assert_int_equal(snib_describe(d, name, 0, &info, NULL), 1);
        r = obj_take(b, 0, &err);
        if (r != SNIB_EKIND)
                print_message("# %s: %d %s\n", name, r, err.text);
        assert_int_equal(r, SNIB_EKIND);
        assert_true(strlen(err.text) > 20);
        obj_open(a);
        obj_clean(a);
        obj_free(a);
        obj_free(b);
        snib_close(c);
        snib_close(d);
}

/* Redisson stores all three as a plain number. */
static bool are_numbers(const struct noun *a, const struct noun *b)
{
        return !((a->cap | b->cap) & ~(unsigned)(SNIB_CAP_SEMAPHORE | SNIB_CAP_PERMITS | SNIB_CAP_LATCH));
}

static void one_name_is_of_one_kind(void **state)
{
        for (int i = 0; i < nouns_count; i++)
                for (int j = 0; j < nouns_count; j++) {
                        if (nouns[i].cap & ~caps || nouns[j].cap & ~caps || family(&nouns[i]) == family(&nouns[j]))
                                continue;
                        if (!server || !are_numbers(&nouns[i], &nouns[j]))
                                mixed(&nouns[i], &nouns[j]);
                }
}

/* A side is shut by the other one. */
static int shut_by(int kind)
{
        return kind == SNIB_KIND_READ ? SNIB_KIND_WRITE : kind == SNIB_KIND_WRITE ? SNIB_KIND_READ : kind;
}

static void everything_is_described(void **state)
{
        snib_client *c = open_as("described");
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        assert_int_equal(snib_describe(c, "nothing at all", 0, &info, NULL), 0);
        assert_int_equal(snib_describe(c, "", 0, &info, &err), SNIB_ENAME);
        assert_int_equal(snib_describe(NULL, "x", 0, &info, &err), SNIB_EINVAL);
        assert_int_equal(snib_describe(c, "x", 0, NULL, &err), SNIB_EINVAL);
        for (int i = 0; i < nouns_count; i++) {
                struct obj *o;

                if (nouns[i].cap & ~caps)
                        continue;
                o = obj_new(&nouns[i], c, nouns[i].text);
                obj_shut(o);
                assert_int_equal(snib_describe(c, nouns[i].text, 0, &info, NULL), 1);
                /* A plain lock, a spin lock and an election may be stored without a difference. */
                if (family(&nouns[i]) != 0 && info.kind != SNIB_KIND_COUNTER)
                        assert_int_equal(info.kind, shut_by(nouns[i].kind));
                assert_true(strlen(snib_kind_text(info.kind)) > 3);
                obj_open(o);
                obj_clean(o);
                obj_free(o);
        }
        snib_close(c);
}

static const struct conformance_test tests[] = {
    TEST(numbers_of_a_semaphore, SNIB_CAP_SEMAPHORE),
    TEST(numbers_and_ids_of_permits, SNIB_CAP_PERMITS),
    TEST(counts_of_a_latch, SNIB_CAP_LATCH),
    TEST(values_of_a_register, SNIB_CAP_REGISTER),
    TEST(what_nobody_holds_is_not_released, SNIB_CAP_ELECTION | SNIB_CAP_RWLOCK),
    TEST(one_name_is_of_one_kind, 0),
    TEST(everything_is_described, 0),
};
const struct conformance_tests input_tests = TESTS(tests);
