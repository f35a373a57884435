/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Faults around semaphores, permits, latches, registers and fair locks on a real server:
 * connections cut at every byte of a request that counts, clocks of clients that differ, and a
 * queue of which half is dead.
 *
 * Child processes: a fork for the queue; this program again, run with "--permit URL" under a
 * shifted clock.
 */

#include "fault.h"
#include "proc.h"
#include "proxy.h"
#include "skew.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* ---- cut at every byte ---- */

struct scene {
        struct redis_server *server;
        struct proxy *proxy;
        snib_client *client; /* behind the proxy */
        snib_client *direct;
        snib_latch *latch; /* the direct client's */
        snib_semaphore *semaphore;
        snib_register *reg;
};

static void scene_begin(struct scene *s)
{
        s->server = fault_server(NULL);
        s->proxy = proxy_start(redis_server_socket(s->server));
        s->direct = fault_open(redis_server_url(s->server), 0);
        assert_result(snib_latch_new(s->direct, "gate", 0, &s->latch, NULL), 0);
        assert_result(snib_semaphore_new(s->direct, "pool", 0, &s->semaphore, NULL), 0);
        assert_result(snib_register_new(s->direct, "config", 0, &s->reg, NULL), 0);
}

static void scene_end(struct scene *s)
{
        snib_latch_free(s->latch);
        snib_semaphore_free(s->semaphore);
        snib_register_free(s->reg);
        snib_close(s->direct);
        proxy_free(s->proxy);
        redis_server_free(s->server);
}

/* Calls `once` with the connection cut after 0, 1, 2 ... bytes of what goes in one direction, until
 * a cut comes too late to be met. How many cuts that were. Each time with a new client, that has
 * been through it once without a cut: the scripts are known, and its dialling has not learned to be
 * slow. */
static int at_every_byte(struct scene *s, enum proxy_way way, void (*once)(struct scene *s))
{
        for (uint64_t at = 0;; at++) {
                s->client = fault_open(proxy_url(s->proxy), 0);
                once(s);
                int accepted = proxy_accepted(s->proxy);
                proxy_after(s->proxy, accepted - 1, way, at, PROXY_CUT);
                once(s);
                bool met = proxy_accepted(s->proxy) > accepted || !proxy_is_open(s->proxy, accepted - 1);
                proxy_heal(s->proxy);
                snib_close(s->client);
                if (!met)
                        return (int)at;
        }
}

/* The result of a request that counts: done, or for certain not, or unknown. `moved` is what it
 * changed at the server.
 */
static void must_have_counted_once(int r, int64_t moved, int64_t want, const char *what)
{
        if (r == 1)
                assert_int_equal(moved, want);
        else if (snib_error_class(r) == SNIB_CLASS_UNAVAILABLE)
                assert_int_equal(moved, 0);
        else if (r == SNIB_EUNKNOWN)
                assert_true(moved == 0 || moved == want);
        else
                fail_msg("%s answered %d %s", what, r, snib_error_name(r));
}

static void count_down(struct scene *s)
{
        snib_latch *latch;
        int64_t before = 0, after = 0;

        assert_result(snib_latch_new(s->client, "gate", 0, &latch, NULL), 0);
        assert_result(snib_latch_query(s->latch, &before, NULL), 1);
        int r = snib_latch_count_down(latch, 1, NULL, NULL);
        assert_result(snib_latch_query(s->latch, &after, NULL), 1);
        must_have_counted_once(r, before - after, 1, "count down");
        snib_latch_free(latch);
}

static void F102_a_count_down_cut_anywhere_counts_once(void **state)
{
        struct scene s;

        scene_begin(&s);
        assert_result(snib_latch_set(s.latch, 1000000, NULL), 1);
        int requests = at_every_byte(&s, PROXY_UP, count_down);
        int replies = at_every_byte(&s, PROXY_DOWN, count_down);
        print_message("# %d cuts in requests, %d in replies\n", requests, replies);
        assert_true(requests > 50 && replies > 4);
        scene_end(&s);
}

static void acquire_and_release(struct scene *s)
{
        snib_semaphore *semaphore;
        int64_t before = 0, after = 0;

        assert_result(snib_semaphore_new(s->client, "pool", 0, &semaphore, NULL), 0);
        assert_result(snib_semaphore_query(s->semaphore, &before, NULL), 1);
        int r = snib_semaphore_try(semaphore, 2, NULL);
        if (r == 1) {
                assert_result(snib_semaphore_query(s->semaphore, &after, NULL), 1);
                assert_int_equal(before - after, 2);
                r = snib_semaphore_release(semaphore, 2, NULL);
                assert_result(snib_semaphore_query(s->semaphore, &after, NULL), 1);
                must_have_counted_once(r, after - (before - 2), 2, "release");
                if (after < before)
                        assert_result(snib_semaphore_release(s->semaphore, before - after, NULL), 1);
        } else {
                /* What was taken without our knowing is given back in the background. */
                if (snib_error_class(r) != SNIB_CLASS_UNAVAILABLE)
                        assert_result(r, SNIB_EUNKNOWN);
                assert_true(eventually(snib_semaphore_query(s->semaphore, &after, NULL) == 1 && after == before, 8000));
        }
        snib_semaphore_free(semaphore);
}

static void F97_a_semaphore_cut_anywhere_loses_and_makes_no_permit(void **state)
{
        struct scene s;

        scene_begin(&s);
        assert_result(snib_semaphore_set(s.semaphore, 10, 0, NULL), 1);
        int requests = at_every_byte(&s, PROXY_UP, acquire_and_release);
        int replies = at_every_byte(&s, PROXY_DOWN, acquire_and_release);
        print_message("# %d cuts in requests, %d in replies\n", requests, replies);
        assert_true(requests > 100 && replies > 4);
        scene_end(&s);
}

static void write_if_unchanged(struct scene *s)
{
        struct snib_value before = SNIB_VALUE_INIT, after = SNIB_VALUE_INIT;
        snib_register *reg;
        int64_t version = 0;

        assert_result(snib_register_new(s->client, "config", 0, &reg, NULL), 0);
        assert_result(snib_register_read(s->reg, &before, NULL), 1);
        int r = snib_register_write(reg, "x", 1, before.version, &version, NULL);
        assert_result(snib_register_read(s->reg, &after, NULL), 1);
        must_have_counted_once(r, after.version != before.version, 1, "write");
        if (r == 1)
                assert_int_equal(version, after.version);
        snib_value_free(&before);
        snib_value_free(&after);
        snib_register_free(reg);
}

static void F102_a_write_cut_anywhere_happens_once_and_is_told(void **state)
{
        struct scene s;

        scene_begin(&s);
        assert_result(snib_register_write(s.reg, "0", 1, 0, NULL, NULL), 1);
        int requests = at_every_byte(&s, PROXY_UP, write_if_unchanged);
        int replies = at_every_byte(&s, PROXY_DOWN, write_if_unchanged);
        print_message("# %d cuts in requests, %d in replies\n", requests, replies);
        assert_true(requests > 50 && replies > 4);
        scene_end(&s);
}

/* ---- permits ---- */

static snib_permits *permits_of(snib_client *client, int64_t lease_ms)
{
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = lease_ms, .fixed_lease = 1};
        snib_permits *permits = NULL;

        assert_result(snib_permits_new(client, "gpu", &o, &permits, NULL), 0);
        return permits;
}

static void F99_expired_permits_are_counted_before_all_or_none(void **state)
{
        struct redis_server *server = fault_server(NULL);
        snib_client *client = fault_open(redis_server_url(server), 0);
        snib_permits *brief = permits_of(client, 300), *lasting = permits_of(client, 60000);
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        snib_grant *two, *one, *all = NULL;

        assert_result(snib_permits_set(lasting, 4, NULL), 1);
        assert_result(snib_permits_try(brief, 2, &two, NULL), 1);
        assert_result(snib_permits_try(lasting, 1, &one, NULL), 1);
        assert_result(snib_permits_try(lasting, 3, &all, NULL), 0);
        assert_result(snib_permits_query(lasting, &info, NULL), 1);
        assert_int_equal(info.free, 1); /* not one of the three was taken */
        assert_result(snib_permits_acquire(lasting, 3, 5000 * wait_slow(), &all, NULL), 1); /* the two have expired */
        assert_result(snib_permits_query(lasting, &info, NULL), 1);
        assert_int_equal(info.free, 0);
        assert_int_equal(info.taken, 4);
        assert_result(snib_grant_release(two, NULL), SNIB_ELOST);
        assert_result(snib_permits_query(lasting, &info, NULL), 1);
        assert_int_equal(info.free, 0); /* what came too late gave nothing back */
        assert_result(snib_grant_release(all, NULL), 1);
        assert_result(snib_grant_release(one, NULL), 1);
        assert_result(snib_permits_query(lasting, &info, NULL), 1);
        assert_int_equal(info.free, 4);
        snib_permits_free(brief);
        snib_permits_free(lasting);
        snib_close(client);
        redis_server_free(server);
}

/* Under a shifted clock: takes the permit when told to and says how that went. */
static int permit_main(const char *url)
{
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .lease_ms = 60000};
        snib_client *client;
        snib_permits *permits;
        snib_grant *grant = NULL;
        char what;

        if (snib_open(&client, url, NULL, NULL) < 0 || snib_permits_new(client, "gpu", &o, &permits, NULL) < 0)
                return 1;
        while (read(STDIN_FILENO, &what, 1) == 1) {
                int r = what == 't' ? snib_permits_try(permits, 1, &grant, NULL) : snib_grant_release(grant, NULL);

                what = r == 1 ? 'y' : r == 0 ? 'n' : '!';
                if (write(STDOUT_FILENO, &what, 1) != 1)
                        return 1;
        }
        snib_permits_free(permits);
        snib_close(client);
        return 0;
}

static void F98_a_clients_clock_takes_and_ends_no_permit(void **state)
{
        struct redis_server *server = fault_server(NULL);
        snib_client *client = fault_open(redis_server_url(server), 0);
        snib_permits *permits = permits_of(client, 60000);
        const char *argv[] = {"/proc/self/exe", "--permit", redis_server_url(server), NULL};
        snib_grant *grant;

        assert_result(snib_permits_set(permits, 1, NULL), 1);
        for (int way = -1; way <= 1; way += 2) {
                struct skew *skew = skew_new(getenv("SNIB_SKEW_SHIM"));
                struct proc p;

                skew_wall_ms(skew, way * 2 * DAY_MS);
                proc_exec(&p, argv, skew_env(skew));
                assert_result(snib_permits_try(permits, 1, &grant, NULL), 1);
                proc_say(&p, 't');
                assert_int_equal(proc_hear(&p, 10000), 'n'); /* ours has not expired by its clock */
                assert_result(snib_grant_release(grant, NULL), 1);
                proc_say(&p, 't');
                assert_int_equal(proc_hear(&p, 10000), 'y');
                assert_result(snib_permits_try(permits, 1, &grant, NULL), 0); /* nor its by ours */
                proc_say(&p, 'r');
                assert_int_equal(proc_hear(&p, 10000), 'y');
                (void)proc_kill(&p, SIGKILL);
                skew_free(skew);
        }
        snib_permits_free(permits);
        snib_close(client);
        redis_server_free(server);
}

/* ---- a queue of which half is dead ---- */

#define PROCESSES 8
#define THREADS 8

/* Shared by all processes: who was served, in order. */
static struct {
        _Atomic int served;
        int who[PROCESSES * THREADS];
} * line;

struct queuer {
        snib_client *client;
        int number;
        struct proc *me;
        pthread_t thread;
        bool lined_up;
};

static void *wait_in_line(void *arg)
{
        struct queuer *q = arg;
        snib_grant *grant = NULL;
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FAIR};
        snib_lock *lock = NULL;

        if (snib_lock_new(q->client, "line", &o, &lock, NULL) < 0)
                _exit(1);
        if (snib_lock_acquire(lock, SNIB_FOREVER, &grant, NULL) != 1)
                _exit(2);
        line->who[atomic_fetch_add(&line->served, 1)] = q->number;
        if (snib_grant_release(grant, NULL) != 1)
                _exit(3);
        snib_lock_free(lock);
        return NULL;
}

/* One process: a thread more in the line for every byte it hears. */
static void queue_process(struct proc *me, void *arg)
{
        int number = *(int *)arg;
        struct queuer q[THREADS];
        snib_client *client;
        char url[256] = "";

        if (!proc_take(me, url, sizeof(url), 10000) || snib_open(&client, url, NULL, NULL) < 0)
                _exit(4);
        proc_say(me, 'o');
        for (int i = 0; i < THREADS; i++) {
                q[i] = (struct queuer){.client = client, .number = i * PROCESSES + number, .me = me};
                if (proc_hear(me, 60000) != 'q' || pthread_create(&q[i].thread, NULL, wait_in_line, &q[i]))
                        _exit(5);
        }
        for (int i = 0; i < THREADS; i++)
                pthread_join(q[i].thread, NULL);
        snib_close(client);
}

static long long queued(struct redis_server *s)
{
        redisReply *r = redis_server_do(s, "LLEN redisson_lock_queue:{line}");
        long long n = r ? r->integer : -1;

        freeReplyObject(r);
        return n;
}

static void start_queuers(struct proc *p, struct redis_server *server)
{
        char url[256] = "";

        snprintf(url, sizeof(url), "%s", redis_server_url(server));
        for (int i = 0; i < PROCESSES; i++) {
                proc_start(&p[i], queue_process, &i);
                proc_give(&p[i], url, sizeof(url));
                assert_int_equal(proc_hear(&p[i], 10000), 'o');
        }
}

static void F88_F89_sixty_four_in_line_of_whom_half_are_killed(void **state)
{
        struct redis_server *server = fault_server(NULL);
        struct proc p[PROCESSES];

        line = mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(line != MAP_FAILED);
        start_queuers(p, server);
        snib_client *client = fault_open(redis_server_url(server), 0);
        snib_lock *lock = fault_lock_with(
            client, "line",
            &(struct snib_lock_options){.size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FAIR});
        snib_grant *grant = fault_acquire(lock, 0);
        for (int i = 0; i < PROCESSES * THREADS; i++) {
                proc_say(&p[i % PROCESSES], 'q');
                assert_true(eventually(queued(server) == i + 1, 10000));
        }
        for (int i = 1; i < PROCESSES; i += 2)
                (void)proc_kill(&p[i], SIGKILL);
        int64_t begun = wait_now_ms();
        assert_result(snib_grant_release(grant, NULL), 1);
        for (int i = 0; i < PROCESSES; i += 2)
                assert_int_equal(proc_wait(&p[i], 30000), 0);
        int64_t took = wait_now_ms() - begun;
        print_message("# %d served past %d dead in %lld ms\n", line->served, PROCESSES * THREADS / 2, (long long)took);
        assert_int_equal(line->served, PROCESSES * THREADS / 2);
        for (int i = 0; i < line->served; i++)
                assert_int_equal(line->who[i], 2 * i); /* of an even process, each after the one before it */
        assert_true(took < 5000 * wait_slow() + 1500); /* one waiter's lease, and the poll that finds it over */
        munmap(line, sizeof(*line));
        snib_lock_free(lock);
        snib_close(client);
        redis_server_free(server);
}

int main(int argc, char **argv)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F88_F89_sixty_four_in_line_of_whom_half_are_killed), /* first: it forks */
            cmocka_unit_test(F97_a_semaphore_cut_anywhere_loses_and_makes_no_permit),
            cmocka_unit_test(F98_a_clients_clock_takes_and_ends_no_permit),
            cmocka_unit_test(F99_expired_permits_are_counted_before_all_or_none),
            cmocka_unit_test(F102_a_count_down_cut_anywhere_counts_once),
            cmocka_unit_test(F102_a_write_cut_anywhere_happens_once_and_is_told),
        };

        if (argc == 3 && !strcmp(argv[1], "--permit"))
                return permit_main(argv[2]);
        return fault_run_all("family", tests);
}
