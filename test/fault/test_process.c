/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client's own process on a real Redis: killed, stopped, forked, short of descriptors, showered
 * with signals, in odd surroundings. Children are forked before this process has a client, so that
 * a fork carries no threads over, except where the fork is the test.
 */

#include "fault.h"
#include "proc.h"
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a child needs, and says. */
struct child {
        const char *url;
        int64_t lease_ms;
        int timeout_ms;
};

/* Takes the lock, says 'h', holds until told to go on; then closes properly. */
static void hold(struct proc *me, void *arg)
{
        const struct child *c = arg;
        snib_client *client = fault_open(c->url, 0);
        snib_lock *lock = fault_lock(client, "stock", "child", c->lease_ms);
        snib_grant *grant = fault_acquire(lock, 5000);
        int64_t token = snib_grant_token(grant);

        proc_say(me, 'h');
        proc_give(me, &token, sizeof(token));
        (void)proc_hear(me, 60000);
        snib_lock_free(lock);
        snib_close(client);
}

static int64_t wait_for_hold(struct proc *p)
{
        int64_t token = 0;

        assert_int_equal(proc_hear(p, 10000), 'h');
        assert_true(proc_take(p, &token, sizeof(token), 10000));
        return token;
}

static void F108_kill9_of_the_holder_frees_after_the_lease(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct child child = {redis_server_url(s), fault_lease_ms(), 0};
        struct proc p;

        proc_start(&p, hold, &child);
        int64_t token = wait_for_hold(&p);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);
        int64_t start = wait_now_ms();
        (void)proc_kill(&p, SIGKILL);
        assert_true(fault_passes(lock, child.lease_ms * 2) > token);
        assert_true(wait_now_ms() - start <= child.lease_ms + fault_late_ms()); /* no poll after it */
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* Those that stand in the lock's queue. */
static bool queue_has(struct redis_server *s, long long count)
{
        return redis_server_int(s, "LLEN snib_queue:{stock}") == count;
}

/* The first in the queue is killed: the release passes it over, at once. The one that was granted
 * it is killed: the second waits for its lease, and no longer. */
static void F108_kill9_of_whoever_is_handed_the_lock(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct child child = {redis_server_url(s), fault_lease_ms(), 0};
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *mine = fault_lock(c, "stock", "a", 30000), *next = fault_lock(c, "stock", "b", 30000);
        struct fault_waiter waiter;
        struct proc first, second;
        snib_grant *grant = fault_acquire(mine, 0);

        (void)state;
        proc_start(&first, hold, &child);
        assert_true(eventually(queue_has(s, 1), 5000));
        (void)proc_kill(&first, SIGKILL);
        assert_true(eventually(fault_subscribers(s, "stock") == 0, 5000)); /* the server knows */
        proc_start(&second, hold, &child);
        assert_true(eventually(queue_has(s, 2), 5000));
        assert_result(snib_grant_release(grant, NULL), 1);
        int64_t token = wait_for_hold(&second);
        assert_true(queue_has(s, 0));
        fault_wait(&waiter, next, child.lease_ms * 2);
        assert_true(eventually(queue_has(s, 1), 5000));
        (void)proc_kill(&second, SIGKILL);
        assert_result(fault_join(&waiter), 1);
        assert_true(snib_grant_token(waiter.grant) > token);
        assert_result(snib_grant_release(waiter.grant, NULL), 1);
        assert_true(queue_has(s, 0));
        assert_false(fault_key(s, "stock"));
        snib_lock_free(next);
        snib_lock_free(mine);
        snib_close(c);
        redis_server_free(s);
}

static void F108_a_clean_end_frees_at_once(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct child child = {redis_server_url(s), 30000, 0};
        struct proc p;

        proc_start(&p, hold, &child);
        int64_t token = wait_for_hold(&p);
        proc_say(&p, 'e');
        assert_int_equal(proc_wait(&p, 10000), 0);
        assert_false(fault_key(s, "stock"));
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);
        assert_true(fault_passes(lock, 0) > token);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* What the paused one saw, in order. */
struct after_pause {
        int valid; /* at the very first look */
        int told;  /* the descriptor was readable, without anything else being done */
        int reason;
        int renewed;  /* what a renewal answers */
        int released; /* what the release answers */
        int64_t token;
};

/* Holds, and looks at nothing but validity until that ends: the pause is between two looks. */
static void hold_until_lost(struct proc *me, void *arg)
{
        const struct child *c = arg;
        snib_client *client = fault_open(c->url, 0);
        snib_lock *lock = fault_lock(client, "stock", "child", c->lease_ms);
        snib_grant *grant = fault_acquire(lock, 5000);
        struct after_pause saw = {.token = snib_grant_token(grant)};
        int64_t last = wait_now_ms();
        int64_t now = last;

        (void)snib_grant_loss_fd(grant);
        proc_say(me, 'h');
        proc_give(me, &saw.token, sizeof(saw.token));
        while (now - last < c->lease_ms) { /* until a look comes that much after the one before: that was the pause */
                last = now;
                now = wait_now_ms();
        }
        saw.valid = snib_grant_valid(grant);
        saw.told = wait_readable(snib_grant_loss_fd(grant), 2000);
        saw.reason = snib_grant_loss(grant);
        saw.renewed = snib_grant_renew(grant, NULL);
        saw.released = snib_grant_release(grant, NULL);
        proc_give(me, &saw, sizeof(saw));
        (void)proc_hear(me, 60000);
        snib_lock_free(lock);
        snib_close(client);
}

static void F6_stopped_longer_than_the_lease(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct child child = {redis_server_url(s), fault_lease_ms(), 0};
        struct after_pause saw;
        struct fault_loss loss;
        struct proc p;

        proc_start(&p, hold_until_lost, &child);
        int64_t token = wait_for_hold(&p);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 30000);
        proc_stop(&p);
        snib_grant *grant = fault_acquire(lock, child.lease_ms * 3);
        int64_t stopped_at = wait_now_ms();
        fault_watch(grant, &loss);
        assert_true(snib_grant_token(grant) > token);
        assert_true(
            eventually(wait_now_ms() - stopped_at > child.lease_ms, child.lease_ms * 3)); /* a pause it can see */
        proc_resume(&p);
        assert_true(proc_take(&p, &saw, sizeof(saw), 10000));
        assert_int_equal(saw.valid, 0);
        assert_true(saw.told);
        assert_true(saw.reason == SNIB_LOSS_EXPIRED || saw.reason == SNIB_LOSS_UNREACHABLE ||
                    saw.reason == SNIB_LOSS_TAKEN);
        assert_result(saw.renewed, SNIB_ELOST);
        assert_result(saw.released, SNIB_ELOST);
        assert_true(saw.token < snib_grant_token(grant));
        /* Whatever it sent was for its own id: ours is untouched. */
        assert_result(snib_grant_renew(grant, NULL), 1);
        assert_int_equal(atomic_load(&loss.calls), 0);
        assert_result(snib_grant_release(grant, NULL), 1);
        (void)proc_kill(&p, SIGKILL);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static void F33_a_waiter_too_slow_for_its_messages_still_gets_in(void **state)
{
        static const char *const args[] = {"--client-output-buffer-limit", "pubsub", "200000", "0", "0", NULL};
        struct redis_server *s = fault_server(args);
        struct child child = {redis_server_url(s), 30000, 0};
        struct proc p;

        fault_do(s, "HSET stock b2a3c0de-1111-4222-8333-444455556666:1 1");
        proc_start(&p, hold, &child); /* waits */
        assert_true(eventually(fault_subscribers(s, "stock") == 1, 5000));
        proc_stop(&p);
        /* Its socket's buffers fill, then the server's: it is dropped without a word. */
        for (int i = 0; i < 400 && fault_subscribers(s, "stock") == 1; i++)
                fault_do(s, "EVAL %s 0",
                         "local m = string.rep('x', 10000); for _ = 1, 20 do redis.call('PUBLISH', "
                         "'redisson_lock__channel:{stock}', m) end");
        assert_int_equal(fault_subscribers(s, "stock"), 0);
        proc_resume(&p);
        assert_true(eventually(fault_subscribers(s, "stock") == 1, 5000));
        fault_do(s, "DEL stock");
        fault_do(s, "PUBLISH redisson_lock__channel:{stock} 0");
        (void)wait_for_hold(&p);
        (void)proc_kill(&p, SIGKILL);
        redis_server_free(s);
}

/* In the forked child: nothing works, nothing is disturbed. Answers the number of the first thing
 * that was otherwise.
 */
static int child_of_fork(snib_client *c, snib_lock *lock, snib_grant *grant)
{
        snib_grant *another = NULL;
        snib_lock *made = NULL;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        if (snib_grant_valid(grant))
                return 1;
        if (snib_lock_try(lock, &another, NULL) != SNIB_EFORK)
                return 2;
        if (snib_grant_renew(grant, NULL) != SNIB_EFORK)
                return 3;
        if (snib_grant_release(grant, NULL) != SNIB_EFORK)
                return 4;
        if (snib_lock_query(lock, &info, NULL) != SNIB_EFORK)
                return 5;
        if (snib_lock_new(c, "other", NULL, &made, NULL) != SNIB_EFORK)
                return 6;
        if (snib_lock_force_release(lock, NULL) != SNIB_EFORK)
                return 7;
        snib_lock_free(lock);
        snib_close(c);
        return 0;
}

/* A client of its own works in the child, under another identity. */
static int own_client_in_child(const char *url, const char *parents_owner)
{
        snib_client *c = NULL;
        snib_lock *lock = NULL;
        snib_grant *grant = NULL;
        int r = 0;

        if (snib_open(&c, url, NULL, NULL) < 0 || snib_lock_new(c, "own", NULL, &lock, NULL) < 0)
                return 20;
        if (snib_lock_try(lock, &grant, NULL) != 1)
                r = 21;
        else if (!strncmp(snib_grant_owner(grant), parents_owner, 36)) /* the uuid */
                r = 22;
        else if (snib_grant_release(grant, NULL) != 1)
                r = 23;
        snib_lock_free(lock);
        snib_close(c);
        return r;
}

static void F107_F147_fork_while_holding(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t lease = fault_lease_ms();
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", lease);
        snib_grant *grant = fault_acquire(lock, 0);
        struct fault_loss loss;
        int status = -1;
        pid_t pid;

        fault_watch(grant, &loss);
        pid = proc_fork();
        if (pid == 0) {
                char owner[64];
                snprintf(owner, sizeof(owner), "%s", snib_grant_owner(grant));
                int r = child_of_fork(c, lock, grant);
                if (r == 0 && wait_threads_after_fork())
                        r = own_client_in_child(redis_server_url(s), owner);
                _exit(r);
        }
        assert_true(pid > 0);
        assert_true(eventually(waitpid(pid, &status, WNOHANG) == pid, 10000));
        assert_int_equal(status, 0);
        /* The child has closed and exited: the parent's connection, hold and watchdog do not know
         * it. */
        assert_false(eventually(atomic_load(&loss.calls) > 0, lease * 2));
        assert_true(snib_grant_valid(grant));
        assert_true(fault_key(s, "stock"));
        assert_result(snib_grant_release(grant, NULL), 1);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* A thread that takes the lock as its own and ends. */
static void *hold_and_end(void *arg)
{
        snib_grant *grant = NULL;

        return snib_lock_try(arg, &grant, NULL) == 1 ? grant : NULL;
}

static void F81_a_thread_that_ends_gives_its_hold_back(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c = fault_open(redis_server_url(s), 0);
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options),
                                      .lease_ms = 30000}; /* the thread is the owner */
        snib_lock *lock = fault_lock_with(c, "stock", &o);
        pthread_t thread;
        void *grant = NULL;

        assert_int_equal(pthread_create(&thread, NULL, hold_and_end, lock), 0);
        pthread_join(thread, &grant);
        assert_non_null(grant);
        assert_true(eventually(!snib_grant_valid(grant), 2000));
        assert_int_equal(snib_grant_loss(grant), SNIB_LOSS_THREAD_EXIT);
        assert_true(fault_passes(lock, 3000) > snib_grant_token(grant)); /* not 30 s */
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

static volatile sig_atomic_t signals;
static snib_grant *watched_grant;
static volatile sig_atomic_t seen_valid;

static void on_signal(int number)
{
        int kept = errno;

        signals++;
        if (watched_grant)
                seen_valid += snib_grant_valid(watched_grant); /* allowed in handlers */
        errno = kept;
}

static void F109_a_storm_of_signals_changes_nothing(void **state)
{
        struct redis_server *s = fault_server(NULL);
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);
        snib_lock *kept = fault_lock(c, "kept", "a", 0);
        struct sigaction storm = {.sa_handler = on_signal}; /* without SA_RESTART: every call may end with EINTR */
        struct sigaction old;
        struct itimerval fast = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}};

        watched_grant = fault_acquire(kept, 0);
        sigaction(SIGALRM, &storm, &old);
        setitimer(ITIMER_REAL, &fast, NULL);
        for (int i = 0; i < 300; i++)
                (void)fault_passes(lock, 2000);
        assert_true(eventually(signals > 300, 10000));
        snib_client *fresh = fault_open(redis_server_url(s), 0);
        snib_close(fresh);
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0}}, NULL);
        sigaction(SIGALRM, &old, NULL);
        assert_int_equal(seen_valid, signals);
        assert_result(snib_grant_release(watched_grant, NULL), 1);
        watched_grant = NULL;
        snib_lock_free(kept);
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* With the default action of SIGPIPE, a write to a broken connection would end the process. */
static void write_into_broken_pipes(struct proc *me, void *arg)
{
        const struct child *c = arg;
        snib_client *client;
        snib_lock *lock;
        snib_grant *grant = NULL;

        signal(SIGPIPE, SIG_DFL);
        client = fault_open(c->url, 500);
        lock = fault_lock(client, "stock", "child", 30000);
        for (;;) {
                proc_say(me, 'r');
                if (proc_hear(me, 30000) != 'g')
                        break;
                if (snib_lock_try(lock, &grant, NULL) == 1)
                        (void)snib_grant_release(grant, NULL);
        }
        snib_lock_free(lock);
        snib_close(client);
}

static void F109_no_SIGPIPE(void **state)
{
        struct redis_server *s = fault_server_tcp(NULL);
        struct child child = {redis_server_url(s), 0, 0};
        struct proc p;

        proc_start(&p, write_into_broken_pipes, &child);
        for (int i = 0; i < 20; i++) {
                assert_int_equal(proc_hear(&p, 10000), 'r');
                if (i == 15)
                        redis_server_kill(s);
                else
                        (void)fault_kill(s, "normal");
                proc_say(&p, 'g');
        }
        assert_int_equal(proc_hear(&p, 10000), 'r');
        proc_say(&p, 'e');
        assert_int_equal(proc_wait(&p, 10000), 0);
        redis_server_free(s);
}

/* Runs with no descriptor left. Answers through its exit status. */
static void without_descriptors(struct proc *me, void *arg)
{
        const struct child *c = arg;
        snib_client *client = fault_open(c->url, 0);
        snib_client *none = NULL;
        snib_lock *lock = fault_lock(client, "stock", "child", c->lease_ms);
        snib_lock *other = fault_lock(client, "other", "child", c->lease_ms);
        snib_grant *grant = fault_acquire(lock, 0);
        struct fault_loss loss;
        struct rlimit limit = {64, 64};
        int last = -1;
        int fd;

        fault_watch(grant, &loss);
        (void)fault_passes(other, 0);
        setrlimit(RLIMIT_NOFILE, &limit);
        while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
                last = fd;
        assert_int_equal(errno, EMFILE);
        assert_true(last >= 0);
        assert_false(eventually(atomic_load(&loss.calls) > 0, c->lease_ms * 2)); /* renewed */
        assert_true(snib_grant_valid(grant));
        snib_grant *more = fault_acquire(other, 1000); /* needs none either */
        int r = snib_grant_loss_fd(more);
        assert_true(r >= 0 || r == SNIB_ESYSTEM);
        assert_true(snib_open(&none, c->url, NULL, NULL) < 0);
        assert_null(none);
        assert_result(snib_grant_release(more, NULL), 1);
        assert_result(snib_grant_release(grant, NULL), 1);
        close(last);
        snib_lock_free(lock);
        snib_lock_free(other);
        snib_close(client);
        proc_say(me, 'k');
}

static void F110_without_descriptors_holds_live_on(void **state)
{
        struct redis_server *s = fault_server(NULL);
        struct child child = {redis_server_url(s), fault_lease_ms(), 0};
        struct proc p;

        proc_start(&p, without_descriptors, &child);
        assert_int_equal(proc_hear(&p, 20000), 'k');
        assert_int_equal(proc_wait(&p, 10000), 0);
        redis_server_free(s);
}

static void *small_stack_cycle(void *arg)
{
        snib_grant *grant = NULL;

        fesetround(FE_UPWARD);
        for (int i = 0; i < 20; i++)
                if (snib_lock_try(arg, &grant, NULL) != 1 || !snib_grant_valid(grant) ||
                    snib_grant_release(grant, NULL) != 1)
                        return NULL;
        return arg;
}

/* A thread with a small stack, an odd rounding mode and another locale is a caller like any
 * other. */
static void F116_small_stack_rounding_and_locale(void **state)
{
        static const char *const locales[] = {"de_DE.UTF-8", "tr_TR.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
        struct redis_server *s = fault_server(NULL);
        const char *found = NULL;
        pthread_attr_t attr;
        pthread_t thread;
        void *done = NULL;
        size_t stack = (size_t)(64 << 10) * (wait_slow() > 1 ? 8 : 1); /* sanitizers need more for themselves */

        for (size_t i = 0; !found && i < sizeof(locales) / sizeof(locales[0]); i++)
                found = setlocale(LC_ALL, locales[i]);
        print_message("# locale %s\n", found ? found : "C");
        snib_client *c = fault_open(redis_server_url(s), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);
        pthread_attr_init(&attr);
        assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
        assert_int_equal(pthread_create(&thread, &attr, small_stack_cycle, lock), 0);
        pthread_join(thread, &done);
        pthread_attr_destroy(&attr);
        assert_ptr_equal(done, lock);
        setlocale(LC_ALL, "C");
        snib_lock_free(lock);
        snib_close(c);
        redis_server_free(s);
}

/* What other users of the machine can see of the password: not the arguments, not an error, not a
 * trace. */
static void trace_line(void *arg, const char *line)
{
        *(_Atomic int *)arg += strstr(line, "S3cret") != NULL;
}

static void F143_the_password_is_in_no_text(void **state)
{
        static const char *const args[] = {"--requirepass", "S3cret-9", NULL};
        struct redis_server *s = fault_server(args);
        struct snib_error err = SNIB_ERROR_INIT;
        _Atomic int seen = 0;
        struct snib_options o = {
            .size = sizeof(struct snib_options), .timeout_ms = 300, .trace = trace_line, .trace_arg = &seen};
        static const char *const bad[] = {"redis+unix://:S3cret-8@%s",  "redis+unix://:S3cret-9@%s?nonsense=1",
                                          "redis+unix://u:S3cret-9@%s", "redis://:S3cret-9@127.0.0.1:1/%s",
                                          "rediss://:S3cret-9@x%s",     "redis+unix://:S3cret-9%%zz@%s"};
        char url[256];
        snib_client *c = NULL;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                char *at = strstr(bad[i], "%s");

                snprintf(url, sizeof(url), "%.*s%s%s", (int)(at - bad[i]), bad[i], redis_server_socket(s), at + 2);
                assert_true(snib_open(&c, url, &o, &err) < 0);
                if (strstr(err.text, "S3cret"))
                        fail_msg("in the error: %s", err.text);
        }
        snprintf(url, sizeof(url), "redis+unix://:S3cret-9@%s", redis_server_socket(s));
        assert_result(snib_open(&c, url, &o, NULL), 0);
        snib_lock *lock = fault_lock(c, "stock", "a", 0);
        (void)fault_passes(lock, 0);
        snib_lock_free(lock);
        snib_close(c);
        assert_int_equal(seen, 0);
        redis_server_free(s);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F108_kill9_of_the_holder_frees_after_the_lease),
            cmocka_unit_test(F108_kill9_of_whoever_is_handed_the_lock),
            cmocka_unit_test(F108_a_clean_end_frees_at_once),
            cmocka_unit_test(F6_stopped_longer_than_the_lease),
            cmocka_unit_test(F33_a_waiter_too_slow_for_its_messages_still_gets_in),
            cmocka_unit_test(F107_F147_fork_while_holding),
            cmocka_unit_test(F81_a_thread_that_ends_gives_its_hold_back),
            cmocka_unit_test(F109_a_storm_of_signals_changes_nothing),
            cmocka_unit_test(F109_no_SIGPIPE),
            cmocka_unit_test(F110_without_descriptors_holds_live_on),
            cmocka_unit_test(F116_small_stack_rounding_and_locale),
            cmocka_unit_test(F143_the_password_is_in_no_text),
        };

        return fault_run_all("process", tests);
}
