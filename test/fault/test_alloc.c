/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every allocation of the library fails once, through the public calls, on the three engines.
 * Whichever it is: each call answers truthfully, nothing crashes, nothing leaks (under the address
 * sanitizer), and at the latest after one lease nothing is left at the store.
 */

#include "base/alloc.h"
#include "fault.h"
#include "tmp.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 2000

struct done {
        _Atomic int calls, result;
        snib_grant *_Atomic grant;
};

static void acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct done *d = arg;

        atomic_store(&d->grant, grant);
        atomic_store(&d->result, result);
        atomic_fetch_add(&d->calls, 1);
}

static void lost(void *arg, snib_grant *grant, int reason)
{
        atomic_fetch_add((_Atomic int *)arg, 1);
}

static int listed(void *arg, const char *name, size_t name_len, const struct snib_lock_info *info)
{
        return 0;
}

static void hold_and_use(snib_client *c, snib_lock *lock, snib_lock *other)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        _Atomic int losses = 0;
        struct done d = {0};
        snib_grant *grant = NULL, *same = NULL, *none = NULL;

        if (snib_lock_try(lock, &grant, NULL) != 1)
                return;
        assert_non_null(grant);
        (void)snib_grant_loss_fd(grant);
        (void)snib_grant_on_loss(grant, lost, &losses, NULL);
        if (snib_lock_acquire(lock, 1000, &same, NULL) == 1) {
                assert_ptr_equal(same, grant);
                assert_result(snib_grant_release(same, NULL), 0);
        }
        (void)snib_lock_query(lock, &info, NULL);
        assert_true(snib_lock_acquire_info(other, 5, &none, &info, NULL) != 1);
        (void)snib_list(c, listed, NULL, NULL);
        if (snib_lock_acquire_async(other, 2000, acquired, &d, NULL) == 0) {
                (void)snib_grant_release(grant, NULL);
                assert_true(eventually(atomic_load(&d.calls) == 1, 6000));
                if (atomic_load(&d.result) == 1)
                        (void)snib_grant_release(atomic_load(&d.grant), NULL);
        } else {
                (void)snib_grant_release(grant, NULL);
        }
        assert_int_equal(atomic_load(&losses), 0);
}

/* The library's main calls once. */
static void scenario(const char *url)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .timeout_ms = 1000};
        struct snib_lock_options a = {
            .size = sizeof(struct snib_lock_options), .owner = "a", .lease_ms = fault_lease_ms()};
        struct snib_lock_options b = {
            .size = sizeof(struct snib_lock_options), .owner = "b", .lease_ms = fault_lease_ms()};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *c = NULL;
        snib_lock *lock = NULL, *other = NULL;
        int r = snib_open(&c, url, &o, &err);

        if (r < 0) {
                assert_null(c);
                return;
        }
        if (snib_lock_new(c, "stock", &a, &lock, NULL) == 0 && snib_lock_new(c, "stock", &b, &other, NULL) == 0)
                hold_and_use(c, lock, other);
        snib_lock_free(lock);
        snib_lock_free(other);
        snib_close(c);
}

static void every_allocation(const char *url)
{
        snib_client *c = fault_open(url, 0); /* keeps mem: and local: as they are, and looks afterwards */
        snib_lock *lock = fault_lock(c, "stock", "looker", 0);
        uint64_t before;
        int n = 1;
        bool reached = true;

        for (; reached && n < ROUNDS_MAX; n++) {
                before = atomic_load(&snib__alloc_count);
                atomic_store(&snib__alloc_fail_at, before + (uint64_t)n);
                scenario(url);
                reached = atomic_load(&snib__alloc_count) >= before + (uint64_t)n;
                atomic_store(&snib__alloc_fail_at, 0);
                (void)fault_passes(lock, fault_lease_ms() * 2);
        }
        print_message("# %d allocations failed, one after the other\n", n - 2);
        assert_true(n > 5 && n < ROUNDS_MAX);
        snib_lock_free(lock);
        snib_close(c);
}

static void F111_every_allocation_fails_once_mem(void **state)
{
        every_allocation("mem:alloc");
}

static void F111_every_allocation_fails_once_local(void **state)
{
        char url[256];

        snprintf(url, sizeof(url), "local:%s", tmp_dir());
        every_allocation(url);
}

static void F111_every_allocation_fails_once_redis(void **state)
{
        struct redis_server *s = fault_server(NULL);

        every_allocation(redis_server_url(s));
        redis_server_free(s);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F111_every_allocation_fails_once_mem),
            cmocka_unit_test(F111_every_allocation_fails_once_local),
            cmocka_unit_test(F111_every_allocation_fails_once_redis),
        };

        return fault_run("alloc", tests, sizeof(tests) / sizeof(tests[0]), 1);
}
