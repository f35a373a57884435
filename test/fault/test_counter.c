/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Worker processes count under a lock while they are killed at random. What they share is memory of
 * the test, guarded by nothing but the lock and its tokens: no two are inside at once, tokens only
 * rise, no increment is lost.
 */

#include "base/prng.h"
#include "fault.h"
#include "proc.h"
#include "tmp.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORKERS 4
#define LIVES_MAX 4096 /* of all workers together */
#define RUN_MS 6000

/* Shared by all processes. Plain fields are touched under the lock only, as a program's own data
 * would be. */
struct shared {
        int64_t value;           /* the counter */
        int64_t token;           /* of the last hold that counted */
        int inside;              /* the life that is in the section, 0 none */
        int64_t done[LIVES_MAX]; /* increments of each life, each counted after the counter */
        _Atomic int killed[LIVES_MAX];
        _Atomic int overlaps, token_steps_back, refused, crashed_inside;
};

struct work {
        const char *url;
        int64_t lease_ms;
        int life;
        struct shared *shared;
};

/* One increment, in steps that a kill can come between. A hold that ended meanwhile (this machine
 * was too slow) writes nothing. */
static void count_one(struct shared *s, int life, snib_grant *grant)
{
        int64_t token = snib_grant_token(grant);
        int64_t value;

        if (s->inside && !atomic_load(&s->killed[s->inside]))
                atomic_fetch_add(&s->overlaps, 1);
        else if (s->inside)
                atomic_fetch_add(&s->crashed_inside, 1);
        s->inside = life;
        value = s->value;
        if (token <= s->token)
                atomic_fetch_add(&s->token_steps_back, 1);
        s->token = token;
        sched_yield();
        if (snib_grant_valid(grant)) {
                s->value = value + 1;
                s->done[life]++;
        } else {
                atomic_fetch_add(&s->refused, 1);
        }
        s->inside = 0;
}

static void work(struct proc *me, void *arg)
{
        const struct work *w = arg;
        snib_client *c = fault_open(w->url, 0);
        snib_lock *lock = fault_lock(c, "counter", "worker", w->lease_ms);
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *grant = NULL;

        for (;;) {
                int r = snib_lock_acquire(lock, 10000, &grant, &err);

                if (r != 1) {
                        fprintf(stderr, "# a worker: %d %s: %s\n", r, snib_error_name(r), err.text);
                        proc_say(me, 'x');
                        _exit(3);
                }
                count_one(w->shared, w->life, grant);
                (void)snib_grant_release(grant, NULL);
        }
}

static void begin_life(struct proc *p, struct work *w, int life)
{
        if (life >= LIVES_MAX)
                fail_msg("too many lives");
        w->life = life;
        proc_start(p, work, w);
}

static void end_life(struct proc *p, struct work *w)
{
        /* Before the kill: what it leaves inside is no overlap. A kill is final, it does nothing
         * after this but what it was doing. */
        kill(p->pid, SIGSTOP);
        atomic_store(&w->shared->killed[w->life], 1);
        (void)proc_kill(p, SIGKILL);
}

static void count_under_kills(const char *url, int64_t lease_ms)
{
        struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct work works[WORKERS];
        struct proc procs[WORKERS];
        struct snib__prng prng = {.state = 20261};
        int64_t start = wait_now_ms();
        int64_t sum = 0;
        int lives = 1;

        assert_true(s != MAP_FAILED);
        for (int i = 0; i < WORKERS; i++) {
                works[i] = (struct work){url, lease_ms, 0, s};
                begin_life(&procs[i], &works[i], lives++);
        }
        while (wait_now_ms() - start < RUN_MS) {
                int i = (int)snib__prng_below(&prng, WORKERS);
                int64_t next = wait_now_ms() + (int64_t)snib__prng_below(&prng, 60);

                while (wait_now_ms() < next)
                        assert_false(wait_readable(procs[i].in, 1)); /* a worker that says something has failed */
                end_life(&procs[i], &works[i]);
                begin_life(&procs[i], &works[i], lives++);
        }
        for (int i = 0; i < WORKERS; i++)
                end_life(&procs[i], &works[i]);
        for (int i = 0; i < lives; i++)
                sum += s->done[i];
        print_message("# %lld increments, %d lives, %d killed in the section, %d refused\n", (long long)s->value,
                      lives - 1, s->crashed_inside, s->refused);
        assert_int_equal(s->overlaps, 0);
        assert_int_equal(s->token_steps_back, 0);
        /* A kill between the counter and its own note leaves the one ahead of the other; nothing
         * leaves it behind. */
        assert_true(s->value >= sum && s->value <= sum + lives);
        assert_true(s->value > lives); /* they did get on */
        munmap(s, sizeof(*s));
}

static void F108_counting_under_kills_local(void **state)
{
        char url[256];

        snprintf(url, sizeof(url), "local:%s", tmp_dir());
        count_under_kills(url, 5000); /* deaths are noticed: nobody waits for a lease */
        snib_client *c = fault_open(url, 0);
        snib_lock *lock = fault_lock(c, "counter", "after", 0);
        (void)fault_passes(lock, 1000);
        snib_lock_free(lock);
        snib_close(c);
}

static void F108_counting_under_kills_redis(void **state)
{
        struct redis_server *s = fault_server(NULL);
        int64_t lease = 200 * wait_slow();

        count_under_kills(redis_server_url(s), lease);
        assert_true(eventually(!fault_key(s, "counter"), lease * 2));
        assert_true(eventually(fault_subscribers(s, "counter") == 0, 2000));
        redis_server_free(s);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F108_counting_under_kills_local),
            cmocka_unit_test(F108_counting_under_kills_redis),
        };

        return fault_run("counter", tests, sizeof(tests) / sizeof(tests[0]), 1);
}
