/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Locks: taken and given back, names, waiting, loss, processes, what the store remembers. Leases
 * and limits grow with wait_slow(). Children are forked; a parent's clients are inert in them, and
 * they open their own.
 */

#include "kit.h"
#include "lib/proc.h"
#include "lib/tmp.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- one hold */

static void a_lock_is_taken_and_given_back(void **state)
{
        struct pair p = pair_of("plain");
        struct snib_lock_info info;
        snib_grant *g = acquire(p.la, 0);

        assert_true(snib_grant_valid(g));
        assert_true(snib_grant_token(g) > 0);
        assert_in_range(snib_grant_left_ms(g), 20000, SNIB_LEASE_DEFAULT_MS);
        assert_int_equal(snib_grant_depth(g), 1);
        refused(p.lb, 0);
        info = query(p.lb);
        assert_int_equal(info.held, 1);
        assert_int_equal(info.mine, 0);
        assert_string_equal(info.owner, snib_grant_owner(g));
        assert_in_range(info.lease_left_ms, 20000, SNIB_LEASE_DEFAULT_MS);
        info = query(p.la);
        assert_int_equal(info.mine, 1);
        assert_int_equal(info.depth, 1);
        release(g);
        assert_int_equal(query(p.lb).held, 0);
        release(acquire(p.lb, 0));
        pair_done(&p);
}

static void a_holder_is_described(void **state)
{
        struct pair p = pair_of("described");
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        snib_grant *g = acquire(p.la, 0), *none = NULL;
        char host[SNIB_HOST_MAX] = "";

        (void)gethostname(host, sizeof(host) - 1);
        assert_int_equal(snib_lock_acquire_info(p.lb, 0, &none, &info, NULL), 0);
        assert_int_equal(info.held, 1);
        assert_string_equal(info.owner, snib_grant_owner(g));
        assert_true(info.lease_left_ms > 0);
        info = query(p.lb);
        assert_string_equal(info.label, "first");
        assert_string_equal(info.host, host);
        assert_int_equal(info.pid, getpid());
        assert_true(info.since_ms == -1 || llabs((long long)(info.since_ms - (int64_t)time(NULL) * 1000)) < 60000);
        assert_true(info.token == -1 || info.token == snib_grant_token(g));
        release(g);
        info = query(p.lb);
        assert_string_equal(info.owner, "");
        assert_int_equal(info.pid, -1);
        pair_done(&p);
}

static void re_entry_counts_and_keeps_the_token(void **state)
{
        struct pair p = pair_of("again");
        snib_grant *g = acquire(p.la, 0);
        int64_t token = snib_grant_token(g);

        for (int i = 2; i <= 4; i++) {
                assert_ptr_equal(acquire(p.la, 100), g);
                assert_int_equal(snib_grant_depth(g), i);
                assert_int_equal(snib_grant_token(g), token);
        }
        for (int i = 3; i >= 1; i--) {
                assert_int_equal(snib_grant_release(g, NULL), 0);
                refused(p.lb, 0);
        }
        release(g);
        release(acquire(p.lb, 0));
        pair_done(&p);
}

static void S5_who_does_not_hold_changes_nothing(void **state)
{
        struct pair p = pair_of("foreign");
        snib_grant *g = acquire(p.la, 0);
        struct snib_error err = SNIB_ERROR_INIT;

        assert_int_equal(snib_lock_release(p.lb, &err), SNIB_ENOTOWNER);
        assert_true(strlen(err.text) > 0);
        assert_int_equal(snib_lock_cancel(p.lb), 0);
        assert_int_equal(query(p.lb).held, 1);
        assert_int_equal(snib_grant_renew(g, NULL), 1);
        release(g);
        pair_done(&p);
}

static void waits_end_in_time(void **state)
{
        struct pair p = pair_of("timed");
        snib_grant *g = acquire(p.la, 0);
        int64_t before = wait_now_ms();

        refused(p.lb, 150);
        assert_in_range(wait_now_ms() - before, 149, 149 + 2000 * wait_slow());
        refused(p.lb, 20 * wait_slow());
        /* A wait that ended leaves nothing behind that could take the lock. */
        release(g);
        assert_true(eventually(query(p.la).held == 0, 2000));
        release(acquire(p.la, 0));
        pair_done(&p);
}

static void kinds_of_lock(void **state)
{
        struct pair p = pair_with("once", (struct snib_lock_options){.kind = SNIB_LOCK_NON_REENTRANT});
        snib_grant *g = acquire(p.la, 0), *none = NULL;
        int64_t token;

        assert_int_equal(snib_lock_acquire(p.la, 100, &none, NULL), SNIB_EREENTRY);
        assert_null(none);
        refused(p.lb, 0);
        release(g);
        pair_done(&p);

        p = pair_with("fenced", (struct snib_lock_options){.kind = SNIB_LOCK_FENCED});
        g = acquire(p.la, 0);
        token = snib_grant_token(g);
        assert_ptr_equal(acquire(p.la, 0), g);
        assert_int_equal(snib_grant_token(g), token);
        assert_int_equal(snib_grant_release(g, NULL), 0);
        release(g);
        g = acquire(p.lb, 0);
        assert_true(snib_grant_token(g) > token);
        release(g);
        pair_done(&p);
}

static void S1_tokens_rise_with_every_hold(void **state)
{
        for (int kind = SNIB_LOCK_REENTRANT; kind <= SNIB_LOCK_FENCED; kind += 2) {
                struct pair p = pair_with(kind ? "rising fenced" : "rising", (struct snib_lock_options){.kind = kind});
                int64_t last = 0;

                for (int i = 0; i < 60; i++) {
                        snib_grant *g = acquire(i % 3 ? p.la : p.lb, 1000);

                        assert_true(snib_grant_token(g) > last);
                        last = snib_grant_token(g);
                        release(g);
                }
                pair_done(&p);
        }
}

/* ---- names */

static void F115_names_are_bytes(void **state)
{
        snib_client *c = open_as("names"), *d = open_as("other");
        char name[256 + 1], longest[SNIB_NAME_MAX + 1];
        const char *names[] = {name,   longest, "a",  "A",     "a/b", "a:b", "{a}", "{",        "}{",
                               "a\nb", "../a",  "a*", "a?[b]", "%61", " a",  "a ",  "\xff\xfe", "channel:{a}"};
        enum { COUNT = sizeof(names) / sizeof(names[0]) };
        snib_lock *mine[COUNT];
        snib_grant *g[COUNT];

        for (int i = 1; i < 256; i++)
                name[i - 1] = (char)i;
        name[255] = 0;
        memset(longest, 'n', SNIB_NAME_MAX);
        longest[SNIB_NAME_MAX] = 0;
        /* All at once: each is a lock of its own. */
        for (int i = 0; i < COUNT; i++) {
                mine[i] = lock_of(c, names[i]);
                g[i] = acquire(mine[i], 0);
        }
        for (int i = 0; i < COUNT; i++) {
                snib_lock *l = lock_of(d, names[i]);

                refused(l, 0);
                release(g[i]);
                release(acquire(l, 0));
                snib_lock_free(l);
                snib_lock_free(mine[i]);
        }
        snib_close(c);
        snib_close(d);
}

struct names_seen {
        int plain, bytes;
};

static int list_one(void *arg, const char *name, size_t length, const struct snib_lock_info *info)
{
        struct names_seen *seen = arg;

        assert_int_equal(info->held, 1);
        if (length == 6 && !memcmp(name, "listed", 6)) {
                seen->plain++;
                assert_int_equal(info->mine, 1);
        }
        seen->bytes += length == 4 && !memcmp(name, "\x01{*\xff", 4);
        return 0;
}

static int list_stop(void *arg, const char *name, size_t length, const struct snib_lock_info *info)
{
        ++*(int *)arg;
        return 1;
}

static void held_locks_are_listed(void **state)
{
        snib_client *c = open_as("lister"), *d = open_as("other");
        snib_lock *a = lock_of(c, "listed"), *b = lock_of(d, "\x01{*\xff"), *f = lock_of(d, "listed not");
        snib_grant *ga = acquire(a, 0), *gb = acquire(b, 0);
        struct names_seen seen = {0};
        int stopped = 0;

        release(acquire(f, 0));
        assert_int_equal(snib_list(c, list_one, &seen, NULL), 2);
        assert_int_equal(seen.plain, 1);
        assert_int_equal(seen.bytes, 1);
        assert_int_equal(snib_list(c, list_stop, &stopped, NULL), 1);
        assert_int_equal(stopped, 1);
        release(ga);
        release(gb);
        seen = (struct names_seen){0};
        assert_int_equal(snib_list(d, list_one, &seen, NULL), 0);
        snib_lock_free(a);
        snib_lock_free(b);
        snib_lock_free(f);
        snib_close(c);
        snib_close(d);
}

/* ---- waiting */

static void L1_a_release_wakes_a_waiter_at_once(void **state)
{
        struct pair p = pair_of("woken");
        int64_t best = INT64_MAX;

        /* The safety net polls once a second: a wake-up that works is far below, a busy machine now
         * and then is not. */
        for (int i = 0; i < 5; i++) {
                struct waiter w = {.lock = p.lb, .wait_ms = 20000};
                snib_grant *g = acquire(p.la, 20000);
                int64_t before;

                wait_begin(&w);
                assert_true(eventually(query(p.la).waiters >= 1, 10000) || !(caps & SNIB_CAP_QUEUE));
                before = wait_now_ms();
                release(g);
                wait_end(&w);
                assert_int_equal(w.result, 1);
                if (w.at - before < best)
                        best = w.at - before;
        }
        assert_in_range(best, 0, 200);
        pair_done(&p);
}

static void L3_the_queue_is_first_come_first_served(void **state)
{
        enum { N = 4 };
        snib_client *c = open_as("holder"), *clients[N];
        snib_lock *l = lock_of(c, "queue");
        struct waiter w[N];
        atomic_int order = 0;
        snib_grant *g;

        g = acquire(l, 0);
        for (int i = 0; i < N; i++) {
                clients[i] = open_as("waiter");
                w[i] = (struct waiter){.lock = lock_of(clients[i], "queue"), .wait_ms = 60000, .order = &order};
                wait_begin(&w[i]);
                assert_true(eventually(query(l).waiters == i + 1, 10000));
        }
        release(g);
        for (int i = 0; i < N; i++) {
                wait_end(&w[i]);
                assert_int_equal(w[i].result, 1);
        }
        for (int i = 0; i < N; i++) {
                assert_int_equal(w[i].place, i);
                snib_lock_free(w[i].lock);
                snib_close(clients[i]);
        }
        snib_lock_free(l);
        snib_close(c);
}

/* N waiters of two clients, in a known order; number GONE gives up before its turn. */
static void fair_queue(const char *name, int kind)
{
        enum { N = 16, GONE = 5 };
        struct snib_lock_options o = {.kind = kind};
        struct pair p = pair_with(name, o);
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        snib_client *late = open_as("too late");
        snib_lock *last = lock_with(late, name, o), *gone = lock_with(p.b, name, o);
        struct waiter w[N];
        atomic_int order = 0;
        snib_grant *g = acquire(p.la, 0), *none = NULL;

        for (int i = 0; i < N; i++) {
                w[i] = (struct waiter){.lock = i == GONE ? gone : i % 2 ? p.la : p.lb, .wait_ms = 60000};
                w[i].order = i == GONE ? NULL : &order;
                wait_begin(&w[i]);
                assert_true(eventually(query(p.la).waiters == i + 1, 10000));
        }
        /* Whoever comes now is told its place, and does not get past them. */
        assert_int_equal(snib_lock_acquire_info(last, 50 * wait_slow(), &none, &info, NULL), 0);
        assert_int_equal(info.position, N + 1);
        assert_int_equal(snib_lock_cancel(gone), 1);
        wait_end(&w[GONE]);
        assert_int_equal(w[GONE].result, SNIB_ECANCELLED);
        release(g);
        for (int i = 0; i < N; i++) {
                if (i == GONE)
                        continue;
                wait_end(&w[i]);
                assert_int_equal(w[i].result, 1);
                assert_int_equal(w[i].place, i < GONE ? i : i - 1);
        }
        release(acquire(last, 20000));
        snib_lock_free(last);
        snib_lock_free(gone);
        snib_close(late);
        pair_done(&p);
}

static void F88_a_fair_lock_serves_in_the_order_of_arrival(void **state)
{
        fair_queue("fair", SNIB_LOCK_FAIR);
        fair_queue("fair once", SNIB_LOCK_FAIR_NON_REENTRANT);
}

static void fair_and_spinning_locks_are_locks(void **state)
{
        static const int kinds[] = {SNIB_LOCK_FAIR, SNIB_LOCK_SPIN, SNIB_LOCK_FAIR_NON_REENTRANT};
        static const char *const names[] = {"fair too", "spin", "fair, once"};

        for (int i = 0; i < 3; i++) {
                struct pair p = pair_with(names[i], (struct snib_lock_options){.kind = kinds[i]});
                snib_grant *g = acquire(p.la, 0), *again = NULL;
                snib_lock *plain = lock_of(p.a, names[i]); /* of the same owner */
                int64_t token = snib_grant_token(g);
                int r = snib_lock_acquire(p.la, 100, &again, NULL);

                if (kinds[i] == SNIB_LOCK_FAIR_NON_REENTRANT) {
                        assert_int_equal(r, SNIB_EREENTRY);
                } else {
                        assert_int_equal(r, 1);
                        assert_ptr_equal(again, g);
                        assert_int_equal(snib_grant_release(g, NULL), 0);
                }
                refused(p.lb, 0);
                refused(p.lb, 30 * wait_slow());
                assert_int_equal(query(p.lb).held, 1);
                assert_int_equal(snib_lock_try(plain, &again, NULL), SNIB_EKIND);
                snib_lock_free(plain);
                release(g);
                g = acquire(p.lb, 5000);
                assert_true(snib_grant_token(g) > token);
                assert_int_equal(snib_lock_force_release(p.la, NULL), 1);
                release(acquire(p.la, 5000));
                (void)snib_grant_release(g, NULL);
                pair_done(&p);
        }
}

static void F37_a_cancelled_wait_leaves_nothing(void **state)
{
        struct pair p = pair_of("cancelled");
        struct waiter w = {.lock = p.lb, .wait_ms = SNIB_FOREVER};
        snib_grant *g = acquire(p.la, 0);

        wait_begin(&w);
        assert_true(eventually(snib_lock_cancel(p.lb) == 1, 10000));
        wait_end(&w);
        assert_int_equal(w.result, SNIB_ECANCELLED);
        release(g);
        assert_true(eventually(query(p.la).held == 0, 3000));
        release(acquire(p.la, 0));
        pair_done(&p);
}

/* ---- loss */

static void a_forced_release_is_told_and_the_token_rises(void **state)
{
        /* Where the engine tells nobody, the next renewal shows it: a third of the lease. */
        struct pair p = pair_with("forced", (struct snib_lock_options){.lease_ms = 1500 * wait_slow()});
        snib_grant *g = acquire(p.la, 0), *next;
        int64_t token = snib_grant_token(g);
        struct loss loss = {0};

        assert_int_equal(snib_grant_on_loss(g, on_loss, &loss, NULL), 0);
        assert_int_equal(snib_lock_force_release(p.lb, NULL), 1);
        next = acquire(p.lb, 1000);
        assert_true(snib_grant_token(next) > token);
        assert_true(eventually(atomic_load(&loss.count) == 1, 20000));
        assert_true(loss.reason == SNIB_LOSS_GONE || loss.reason == SNIB_LOSS_TAKEN);
        assert_false(snib_grant_valid(g));
        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
        assert_int_equal(query(p.la).held, 1);
        assert_true(snib_grant_valid(next));
        release(next);
        assert_int_equal(snib_lock_force_release(p.lb, NULL), 0);
        assert_int_equal(atomic_load(&loss.count), 1);
        pair_done(&p);
}

/* Its client is gone, and still nobody gets it before its lease ends, or it is taken by force. */
static void a_lock_that_was_left_stays_for_its_lease(void **state)
{
        static const int kinds[] = {SNIB_LOCK_REENTRANT, SNIB_LOCK_FENCED, SNIB_LOCK_FAIR, SNIB_LOCK_SPIN};
        int64_t lease = 1500 * wait_slow(), left;
        char name[32];

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                snprintf(name, sizeof(name), "left %d", kinds[i]);
                struct pair p = pair_with(name, (struct snib_lock_options){.kind = kinds[i]});
                snib_grant *g = acquire(p.la, 0);
                int64_t token = snib_grant_token(g);

                assert_int_equal(snib_grant_leave(g, 0, NULL), SNIB_ELEASE);
                assert_true(snib_grant_valid(g));
                left = wait_now_ms();
                assert_int_equal(snib_grant_leave(g, lease, NULL), 1);
                refused(p.la, 0); /* not even who had it */
                snib_lock_free(p.la);
                snib_close(p.a);
                p.a = NULL;
                p.la = NULL;
                refused(p.lb, 0);
                assert_in_range(query(p.lb).lease_left_ms, 0, lease);
                g = acquire(p.lb, 20 * lease);
                assert_true(wait_now_ms() - left >= lease);
                assert_true(snib_grant_token(g) > token);
                assert_int_equal(snib_grant_leave(g, 3600000, NULL), 1);
                assert_int_equal(snib_lock_force_release(p.lb, NULL), 1);
                g = acquire(p.lb, 0);
                assert_int_equal(snib_lock_force_release(p.lb, NULL), 1);
                assert_int_equal(snib_grant_leave(g, lease, NULL), SNIB_ELOST);
                snib_lock_free(p.lb);
                snib_close(p.b);
        }
}

static void a_fixed_lease_ends_before_another_may_hold(void **state)
{
        int64_t lease = 250 * wait_slow();
        struct pair p = pair_with("fixed", (struct snib_lock_options){.lease_ms = lease, .fixed_lease = 1});
        snib_grant *g = acquire(p.la, 0), *next;
        struct loss loss = {0};

        assert_int_equal(snib_grant_on_loss(g, on_loss, &loss, NULL), 0);
        next = acquire(p.lb, 20 * lease);
        assert_false(snib_grant_valid(g));
        assert_true(snib_grant_token(next) > snib_grant_token(g));
        assert_true(eventually(atomic_load(&loss.count) == 1, 5000));
        assert_int_equal(loss.reason, SNIB_LOSS_EXPIRED);
        assert_int_equal(snib_grant_release(g, NULL), SNIB_ELOST);
        assert_int_equal(query(p.lb).mine, 1);
        (void)snib_grant_release(next, NULL);
        pair_done(&p);
}

static void S6_the_watchdog_keeps_a_hold_and_lets_a_released_one_go(void **state)
{
        int64_t lease = 300 * wait_slow(), until;
        struct pair p = pair_with("kept", (struct snib_lock_options){.lease_ms = lease});
        snib_grant *g = acquire(p.la, 0);

        until = wait_now_ms() + 3 * lease; /* the passing of three leases is what is tested */
        while (wait_now_ms() < until) {
                assert_true(snib_grant_valid(g));
                refused(p.lb, lease / 4);
        }
        release(g);
        release(acquire(p.lb, 0));
        pair_done(&p);
}

static void a_renewal_starts_the_lease_again(void **state)
{
        struct pair p = pair_with("renewed", (struct snib_lock_options){.lease_ms = 60000, .fixed_lease = 1});
        snib_grant *g = acquire(p.la, 0);
        int64_t token = snib_grant_token(g), left = snib_grant_left_ms(g);

        assert_true(eventually(snib_grant_left_ms(g) < left, 2000));
        assert_int_equal(snib_grant_renew(g, NULL), 1);
        assert_true(snib_grant_left_ms(g) >= left - 1000);
        assert_int_equal(snib_grant_token(g), token);
        release(g);
        pair_done(&p);
}

/* ---- processes */

struct count_job {
        const char *file;
        int rounds;
};

/* Reads, adds one, writes: only the lock makes that safe. */
static bool count_once(const char *file)
{
        int fd = open(file, O_RDWR | O_CLOEXEC), value = -1;
        bool done = fd >= 0 && pread(fd, &value, sizeof(value), 0) == sizeof(value);

        value++;
        done = done && pwrite(fd, &value, sizeof(value), 0) == sizeof(value);
        if (fd >= 0)
                (void)close(fd);
        return done;
}

static void count_child(struct proc *me, void *arg)
{
        struct count_job *job = arg;
        snib_client *c = open_as("counter");
        snib_lock *l = lock_of(c, "counter");
        char result = 'y';

        for (int i = 0; i < job->rounds; i++) {
                snib_grant *g = NULL;

                if (snib_lock_acquire(l, 60000, &g, NULL) != 1 || !count_once(job->file) ||
                    snib_grant_release(g, NULL) != 1)
                        result = 'n';
        }
        snib_lock_free(l);
        snib_close(c);
        proc_say(me, result);
}

static void processes_exclude_each_other(void **state)
{
        enum { N = 3, ROUNDS = 100 };
        struct count_job job = {tmp_path("counter"), ROUNDS};
        struct proc p[N];
        int fd, value = 0;

        fd = open(job.file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && write(fd, &value, sizeof(value)) == sizeof(value));
        for (int i = 0; i < N; i++)
                proc_start(&p[i], count_child, &job);
        for (int i = 0; i < N; i++) {
                assert_int_equal(proc_hear(&p[i], 60000 * wait_slow()), 'y');
                assert_int_equal(proc_wait(&p[i], 10000), 0);
        }
        assert_true(pread(fd, &value, sizeof(value), 0) == sizeof(value));
        assert_int_equal(value, N * ROUNDS);
        (void)close(fd);
}

static void hold_child(struct proc *me, void *arg)
{
        snib_client *c = open_as("victim");
        snib_lock *l = lock_with(c, "killed", *(struct snib_lock_options *)arg);
        snib_grant *g = NULL;

        proc_say(me, snib_lock_acquire(l, 10000, &g, NULL) == 1 ? 'h' : 'n');
        (void)proc_hear(me, 600000);
}

static void F108_a_killed_holder_frees_the_lock(void **state)
{
        bool notice = caps & SNIB_CAP_DEATH_NOTICE;
        struct snib_lock_options o = {.lease_ms = notice ? 600000 : 1000 * wait_slow()};
        struct proc p;
        int64_t before;

        proc_start(&p, hold_child, &o);
        assert_int_equal(proc_hear(&p, 20000), 'h');
        snib_client *c = open_as("heir");
        snib_lock *l = lock_of(c, "killed");
        assert_int_equal(query(l).held, 1);
        refused(l, 0);
        before = wait_now_ms();
        (void)proc_kill(&p, SIGKILL);
        if (!notice)
                assert_int_equal(query(l).held, 1); /* nobody tells this engine of a death: the lease ends it */
        release(acquire(l, 60000));
        /* With a notice: far below the lease. Without: the lease, and one look of the safety
         * net. */
        assert_true(wait_now_ms() - before < (notice ? 5000 : o.lease_ms + 5000) * wait_slow());
        snib_lock_free(l);
        snib_close(c);
}

static void F6_a_stopped_holder_learns_of_the_loss_first(void **state)
{
        struct snib_lock_options o = {.lease_ms = 400 * wait_slow()};
        struct proc p;

        proc_start(&p, hold_child, &o);
        assert_int_equal(proc_hear(&p, 20000), 'h');
        snib_client *c = open_as("heir");
        snib_lock *l = lock_of(c, "killed");
        proc_stop(&p);
        snib_grant *g = acquire(l, 60000);
        proc_resume(&p);
        /* The one that came back renews and releases nothing that is ours. */
        assert_int_equal(snib_grant_renew(g, NULL), 1);
        (void)proc_kill(&p, SIGKILL);
        assert_true(snib_grant_valid(g));
        release(g);
        snib_lock_free(l);
        snib_close(c);
}

/* ---- what the store remembers */

static void S3_tokens_rise_after_the_data_is_gone(void **state)
{
        for (int kind = SNIB_LOCK_REENTRANT; kind <= SNIB_LOCK_FENCED; kind += 2) {
                struct pair p;
                int64_t token;
                snib_grant *g;

                p = pair_with("flushed", (struct snib_lock_options){.kind = kind});
                g = acquire(p.la, 0);
                token = snib_grant_token(g);
                release(g);
                freeReplyObject(redis_server_do(server, "FLUSHALL"));
                g = acquire(p.lb, 5000);
                assert_true(snib_grant_token(g) > token);
                release(g);
                pair_done(&p);
        }
}

static void F38_holds_survive_a_restart_of_a_store_that_keeps_its_data(void **state)
{
        static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
        struct redis_server *kept;
        char before[sizeof(url)];
        struct loss loss = {0};
        struct pair p;
        snib_grant *g;

        kept = redis_server_start(&(struct redis_server_options){.tcp = true, .args = args});
        memcpy(before, url, sizeof(url));
        (void)snprintf(url, sizeof(url), "%s", redis_server_url(kept));
        p = pair_of("kept over a restart");
        g = acquire(p.la, 0);
        assert_int_equal(snib_grant_on_loss(g, on_loss, &loss, NULL), 0);
        redis_server_kill(kept);
        redis_server_restart(kept);
        refused(p.lb, 500 * wait_slow());
        assert_int_equal(snib_grant_renew(g, NULL), 1);
        assert_int_equal(atomic_load(&loss.count), 0);
        release(g);
        release(acquire(p.lb, 5000));
        pair_done(&p);
        memcpy(url, before, sizeof(url));
        redis_server_free(kept);
}

static void caps_are_those_the_table_says(void **state)
{
        /* Queue and watch, death and restart are proven above; what is left is that the bits are
         * consistent. */
        assert_true(caps & SNIB_CAP_FENCING);
        assert_true(!(caps & SNIB_CAP_CROSS_MACHINE) || caps & SNIB_CAP_CROSS_PROCESS);
        struct pair p = pair_of("place");
        snib_grant *g = acquire(p.la, 0);
        struct waiter w = {.lock = p.lb, .wait_ms = 20000};

        if (caps & SNIB_CAP_QUEUE) {
                wait_begin(&w);
                assert_true(eventually(query(p.la).waiters == 1, 10000));
                assert_int_equal(query(p.la).waiters_at_least, 0);
                /* The queue hands over: a newcomer that tries in the same moment does not
                 * overtake. */
                release(g);
                wait_end(&w);
                assert_int_equal(w.result, 1);
        } else {
                release(g);
        }
        pair_done(&p);
}

static const struct conformance_test tests[] = {
    TEST(a_lock_is_taken_and_given_back, 0),
    TEST(a_holder_is_described, 0),
    TEST(re_entry_counts_and_keeps_the_token, 0),
    TEST(S5_who_does_not_hold_changes_nothing, 0),
    TEST(waits_end_in_time, 0),
    TEST(kinds_of_lock, 0),
    TEST(S1_tokens_rise_with_every_hold, SNIB_CAP_FENCING),
    TEST(F115_names_are_bytes, 0),
    TEST(held_locks_are_listed, 0),
    TEST(L1_a_release_wakes_a_waiter_at_once, 0),
    TEST(L3_the_queue_is_first_come_first_served, SNIB_CAP_QUEUE),
    TEST(F88_a_fair_lock_serves_in_the_order_of_arrival, SNIB_CAP_FAIR),
    TEST(fair_and_spinning_locks_are_locks, SNIB_CAP_FAIR),
    TEST(F37_a_cancelled_wait_leaves_nothing, 0),
    TEST(a_forced_release_is_told_and_the_token_rises, 0),
    TEST(a_lock_that_was_left_stays_for_its_lease, SNIB_CAP_FENCED | SNIB_CAP_FAIR),
    TEST(a_fixed_lease_ends_before_another_may_hold, 0),
    TEST(S6_the_watchdog_keeps_a_hold_and_lets_a_released_one_go, 0),
    TEST(a_renewal_starts_the_lease_again, 0),
    TEST(processes_exclude_each_other, SNIB_CAP_CROSS_PROCESS),
    TEST(F108_a_killed_holder_frees_the_lock, SNIB_CAP_CROSS_PROCESS),
    TEST(F6_a_stopped_holder_learns_of_the_loss_first, SNIB_CAP_CROSS_PROCESS),
    TEST(S3_tokens_rise_after_the_data_is_gone, SNIB_CAP_FENCING | SERVER),
    TEST(F38_holds_survive_a_restart_of_a_store_that_keeps_its_data, SNIB_CAP_SURVIVES_RESTART | SERVER),
    TEST(caps_are_those_the_table_says, 0),
};
const struct conformance_tests lock_tests = TESTS(tests);
