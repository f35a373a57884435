/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several processes, each with two multilocks of the same members in opposite orders, and a counter
 * in a file that only survives if nobody is in at the same time. Also with holders that are killed,
 * and with a majority of servers.
 */

#include "multi.h"
#include "proc.h"
#include "tmp.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES 4
#define ROUNDS 30
#define MEMBERS 5

struct job {
        char urls[MEMBERS][300];
        int members;
        bool red;
        char counter[300];
};

static long read_counter(const char *path)
{
        char text[32] = "";
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        if (fd >= 0)
                close(fd);
        return n > 0 ? strtol(text, NULL, 10) : 0;
}

/* Reads, lets others run, writes: two at once would lose one. */
static void increment(const char *path)
{
        char text[32];
        long n = read_counter(path) + 1;
        int fd, length = snprintf(text, sizeof(text), "%ld\n", n);

        wait_moment();
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, text, (size_t)length) != length)
                abort();
        close(fd);
}

static snib_multilock *make(const struct job *j, snib_lock *const *locks, bool reverse)
{
        struct snib_multilock_options o = {
            .size = sizeof(struct snib_multilock_options), .red = j->red, .node_timeout_ms = 2000};
        snib_lock *members[MEMBERS];
        snib_multilock *m = NULL;

        for (int i = 0; i < j->members; i++)
                members[i] = locks[reverse ? j->members - 1 - i : i];
        if (snib_multilock_new(members, (size_t)j->members, &o, &m, NULL) < 0)
                abort();
        return m;
}

/* Says 'h' while it holds when told to be slow: 's' instead of 'g'. */
static void worker(struct proc *me, void *arg)
{
        const struct job *j = arg;
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = fault_lease_ms()};
        snib_client *clients[MEMBERS];
        snib_lock *locks[MEMBERS];
        snib_multilock *m[2];
        snib_multigrant *grant;
        char how;

        for (int i = 0; i < j->members; i++) {
                char name[] = {j->red ? 'r' : (char)('a' + i), 0};

                if (snib_open(&clients[i], j->urls[i], NULL, NULL) < 0 ||
                    snib_lock_new(clients[i], name, &o, &locks[i], NULL) < 0)
                        abort();
        }
        for (int k = 0; k < 2; k++)
                m[k] = make(j, locks, k);
        proc_say(me, 'r');
        how = proc_hear(me, 60000);
        for (int i = 0; i < ROUNDS; i++) {
                if (snib_multilock_acquire(m[i % 2], SNIB_FOREVER, &grant, NULL) != 1)
                        abort();
                if (how == 's') {
                        proc_say(me, 'h');
                        (void)proc_hear(me, 60000); /* never: it is killed */
                }
                increment(j->counter);
                if (snib_multigrant_release(grant, NULL) != 1)
                        abort();
        }
        for (int k = 0; k < 2; k++)
                snib_multilock_free(m[k]);
        for (int i = 0; i < j->members; i++) {
                snib_lock_free(locks[i]);
                snib_close(clients[i]);
        }
        proc_say(me, 'd');
}

static void start(struct proc *p, struct job *j)
{
        for (int i = 0; i < PROCESSES; i++)
                proc_start(&p[i], worker, j);
        for (int i = 0; i < PROCESSES; i++)
                assert_int_equal(proc_hear(&p[i], 30000), 'r');
}

static void finish(struct proc *p, int from)
{
        for (int i = from; i < PROCESSES; i++) {
                assert_int_equal(proc_hear(&p[i], 60000 * wait_slow()), 'd');
                assert_int_equal(proc_wait(&p[i], 10000 * wait_slow()), 0);
        }
}

static void no_increment_is_lost(struct job *j)
{
        struct proc p[PROCESSES];

        start(p, j);
        for (int i = 0; i < PROCESSES; i++)
                proc_say(&p[i], 'g');
        finish(p, 0);
        assert_int_equal(read_counter(j->counter), PROCESSES * ROUNDS);
}

/* The first holds, and is killed while the others wait. */
static void a_killed_holder_only_costs_its_lease(struct job *j)
{
        struct proc p[PROCESSES];

        (void)unlink(j->counter);
        start(p, j);
        proc_say(&p[0], 's');
        assert_int_equal(proc_hear(&p[0], 30000), 'h');
        for (int i = 1; i < PROCESSES; i++)
                proc_say(&p[i], 'g');
        (void)proc_kill(&p[0], SIGKILL);
        finish(p, 1);
        assert_int_equal(read_counter(j->counter), (PROCESSES - 1) * ROUNDS);
}

static void no_threads_after_fork(void)
{
        print_message("# this sanitizer allows no threads in a forked child\n");
        skip();
}

static void F74_opposite_orders_in_four_processes(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct job j = {.members = 3};

        if (!wait_threads_after_fork()) {
                redis_server_free(s);
                no_threads_after_fork();
        }
        snprintf(j.urls[0], sizeof(j.urls[0]), "%s", redis_server_url(s));
        snprintf(j.urls[1], sizeof(j.urls[1]), "local:%s", tmp_dir());
        snprintf(j.urls[2], sizeof(j.urls[2]), "%s", redis_server_url(s));
        snprintf(j.counter, sizeof(j.counter), "%s", tmp_path("counter"));
        no_increment_is_lost(&j);
        a_killed_holder_only_costs_its_lease(&j);
        redis_server_free(s);
}

static void a_majority_in_four_processes(void **state)
{
        struct redis_server *s[MEMBERS];
        struct job j = {.members = MEMBERS, .red = true};

        if (!wait_threads_after_fork())
                no_threads_after_fork();
        for (int i = 0; i < MEMBERS; i++) {
                s[i] = fault_server(NULL);
                snprintf(j.urls[i], sizeof(j.urls[i]), "%s", redis_server_url(s[i]));
        }
        snprintf(j.counter, sizeof(j.counter), "%s", tmp_path("counter"));
        no_increment_is_lost(&j);
        redis_server_kill(s[1]);
        redis_server_restart(s[1]); /* only a server that everybody finds again may be asked for */
        a_killed_holder_only_costs_its_lease(&j);
        for (int i = 0; i < MEMBERS; i++)
                redis_server_free(s[i]);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F74_opposite_orders_in_four_processes),
            cmocka_unit_test(a_majority_in_four_processes),
        };

        return fault_run_all("contention", tests);
}
