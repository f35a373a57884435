/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What multi.h promises: asserting wrappers of the public calls. Loss callbacks come from the
 * library's threads.
 */

#include "multi.h"

static snib_multilock *make(snib_lock *const *members, size_t count, const struct snib_multilock_options *o)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multilock *m = NULL;
        int r = snib_multilock_new(members, count, o, &m, &err);

        if (r < 0)
                fail_msg("multilock: %s: %s", snib_error_name(r), err.text);
        return m;
}

snib_multilock *multi_new(snib_lock *const *members, size_t count)
{
        return make(members, count, NULL);
}

snib_multilock *multi_red(snib_lock *const *members, size_t count, int64_t node_timeout_ms)
{
        struct snib_multilock_options o = {
            .size = sizeof(struct snib_multilock_options), .red = 1, .node_timeout_ms = node_timeout_ms * wait_slow()};

        return make(members, count, &o);
}

snib_multigrant *multi_acquire(snib_multilock *m, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant = NULL;
        int r = snib_multilock_acquire(m, wait_ms * wait_slow(), &grant, &err);

        if (r != 1)
                fail_msg("acquire: %d %s: %s", r, snib_error_name(r), err.text);
        assert_non_null(grant);
        assert_true(snib_multigrant_valid(grant));
        assert_true(snib_multigrant_left_ms(grant) > 0);
        assert_int_equal(snib_multigrant_loss(grant), SNIB_LOSS_NONE);
        return grant;
}

void multi_release(snib_multigrant *grant, int want)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_multigrant_release(grant, &err);

        if (r != want)
                fail_msg("release: %d %s, expected %d %s: %s", r, snib_error_name(r), want, snib_error_name(want),
                         err.text);
}

int64_t multi_refused(snib_multilock *m, int64_t wait_ms, int want)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_multigrant *grant = NULL;
        int64_t begun = wait_now_ms();
        int r = snib_multilock_acquire(m, wait_ms, &grant, &err);

        if (r != want)
                fail_msg("acquire: %d %s, expected %d %s: %s", r, snib_error_name(r), want, snib_error_name(want),
                         err.text);
        assert_null(grant);
        return wait_now_ms() - begun;
}

bool multi_held(snib_lock *lock)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_lock_query(lock, &info, &err);

        if (r < 0)
                fail_msg("query: %s: %s", snib_error_name(r), err.text);
        return r == 1;
}

static void note_loss(void *arg, snib_multigrant *grant, int reason)
{
        struct multi_loss *loss = arg;

        atomic_store(&loss->valid, snib_multigrant_valid(grant));
        atomic_store(&loss->reason, reason);
        atomic_fetch_add(&loss->calls, 1);
}

void multi_watch(snib_multigrant *grant, struct multi_loss *loss)
{
        *loss = (struct multi_loss){.calls = 0};
        assert_result(snib_multigrant_on_loss(grant, note_loss, loss, NULL), 0);
        assert_true(snib_multigrant_loss_fd(grant) >= 0);
        assert_int_equal(snib_multigrant_loss_fd(grant), snib_multigrant_loss_fd(grant));
}

int multi_lost(snib_multigrant *grant, struct multi_loss *loss, int64_t ms)
{
        if (!eventually(atomic_load(&loss->calls) > 0, ms))
                fail_msg("no loss was told within %lld ms; valid %d, left %lld", (long long)ms,
                         snib_multigrant_valid(grant), (long long)snib_multigrant_left_ms(grant));
        assert_true(wait_readable(snib_multigrant_loss_fd(grant), 1000));
        assert_int_equal(atomic_load(&loss->calls), 1);
        assert_false(atomic_load(&loss->valid));
        assert_false(snib_multigrant_valid(grant));
        assert_int_equal(snib_multigrant_left_ms(grant), 0);
        assert_int_equal(snib_multigrant_loss(grant), atomic_load(&loss->reason));
        return atomic_load(&loss->reason);
}

static void *wait_for_multilock(void *arg)
{
        struct multi_waiter *w = arg;

        w->result = snib_multilock_acquire(w->multilock, w->wait_ms, &w->grant, &w->err);
        atomic_store(&w->done, true);
        return NULL;
}

void multi_wait(struct multi_waiter *w, snib_multilock *m, int64_t wait_ms)
{
        *w = (struct multi_waiter){.multilock = m, .wait_ms = wait_ms, .err = SNIB_ERROR_INIT};
        assert_int_equal(pthread_create(&w->thread, NULL, wait_for_multilock, w), 0);
}

int multi_join(struct multi_waiter *w)
{
        pthread_join(w->thread, NULL);
        return w->result;
}
