/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The local engine under processes that are killed, stopped and forked. Exclusion is checked by
 * tokens and by who is inside, in shared memory, never by times; times are bounds only where a
 * promise says so.
 */

#include "base/prng.h"
#include "engine/local/store.h"
#include "local_test.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE 30000
#define WORKERS 6
#define CROWD 32

static char url[1200];
static const char *dir;

/* In shared memory: what the lock protects. */
struct shared {
        _Atomic int inside; /* number of the worker, 0: nobody */
        _Atomic int violations;
        _Atomic int unwoken;
        _Atomic int64_t token; /* the highest that was here */
        _Atomic int64_t grants;
        int64_t count; /* on purpose not atomic */
        _Atomic bool killed[CROWD + 1];
        _Atomic pid_t on_terminal;
        _Atomic uint64_t seated; /* four times 16 bits, one for each worker: see the macros below */
        _Atomic int most;        /* sharers at a time, seen */
};

static struct shared *shared;

/* How many datagrams this process may send before it dies; less than 0: any number. */
static int datagrams = -1;

ssize_t __real_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length);
ssize_t __wrap_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length);

ssize_t __wrap_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
        if (datagrams == 0)
                (void)raise(SIGKILL);
        datagrams -= datagrams > 0;
        return __real_sendto(fd, bytes, size, flags, to, length);
}

static int prepare(void **state)
{
        dir = tmp_dir();
        snprintf(url, sizeof(url), "%s", url_of(dir, ""));
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return shared == MAP_FAILED;
}

static int finish(void **state)
{
        return munmap(shared, sizeof(*shared));
}

/* Holds until it is told to end; says 'h' when it holds. */
static void holder(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(url, *(unsigned *)arg);
        struct snib__id x = pump_id(p);

        (void)acquire_wait(p, "job", x, LEASE);
        proc_say(me, 'h');
        (void)proc_hear(me, 60000);
        release(p, "job", x);
        pump_close(p);
}

/* Leaves what it got; says 'l' then. */
static void leaver(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(url, *(unsigned *)arg);
        struct snib__op leave = pump_op(p, SNIB__RENEW, "job", pump_id(p), 2000);

        leave.leave = true;
        if (acquire(p, "job", leave.id, LEASE).status != SNIB__GRANTED)
                bail("not granted");
        if (pump_do(p, &leave).status != SNIB__RENEWED)
                bail("not renewed");
        proc_say(me, 'l');
        (void)proc_hear(me, 60000);
}

/* Queues; says 'w' when it stands in the queue, 'h' when it holds. */
static void waiter(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(url, *(unsigned *)arg);
        struct snib__id x = pump_id(p);

        if (acquire(p, "job", x, LEASE).status != SNIB__BUSY)
                bail("not busy");
        proc_say(me, 'w');
        (void)pump_wait(p, SNIB__NOTE_GRANTED);
        if (acquire(p, "job", x, LEASE).status != SNIB__GRANTED)
                bail("not granted");
        proc_say(me, 'h');
        (void)proc_hear(me, 60000);
        release(p, "job", x);
        pump_close(p);
}

static void start(struct proc *p, void (*run)(struct proc *, void *), unsigned number, char says)
{
        proc_start(p, run, &number);
        assert_int_equal(proc_hear(p, 10000), says);
}

/* The promise: 100 ms. */
static void F133_kill_9_of_the_holder_lets_the_waiter_in_at_once(void **state)
{
        struct proc h;
        struct pump *p;
        struct pump_note note;
        int64_t worst = 0;

        for (unsigned i = 0; i < 20; i++) {
                start(&h, holder, 100 + i, 'h');
                p = pump_connect(url, 1);
                struct snib__id x = pump_id(p);
                assert_int_equal(acquire(p, "job", x, LEASE).status, SNIB__BUSY);
                int64_t before = wait_now_ms();
                kill(h.pid, SIGKILL);
                assert_true(pump_try(p, SNIB__NOTE_GRANTED, 100 * wait_slow(), &note));
                worst = wait_now_ms() - before > worst ? wait_now_ms() - before : worst;
                assert_string_equal(note.note.id.text, x.text);
                assert_int_equal(acquire(p, "job", x, LEASE).status, SNIB__GRANTED);
                release(p, "job", x);
                pump_close(p);
                proc_kill(&h, SIGKILL);
        }
        print_message("# longest after kill -9: %lld ms\n", (long long)worst);
}

/* Nobody waited while it died: whoever comes next finds it dead. */
static void F133_a_dead_holder_is_no_obstacle(void **state)
{
        struct proc h;
        struct pump *p;

        start(&h, holder, 100, 'h');
        proc_kill(&h, SIGKILL);
        p = pump_connect(url, 1);
        assert_int_equal(acquire(p, "job", pump_id(p), LEASE).status, SNIB__GRANTED);
        pump_close(p);
}

static void F133_dead_waiters_are_skipped(void **state)
{
        struct proc h, w[3];
        struct pump *p;
        struct pump_note note;

        start(&h, holder, 100, 'h');
        for (unsigned i = 0; i < 3; i++)
                start(&w[i], waiter, 200 + i, 'w');
        p = pump_connect(url, 1);
        assert_int_equal(acquire(p, "job", pump_id(p), LEASE).position, 4);
        proc_kill(&w[0], SIGKILL);
        proc_kill(&w[2], SIGKILL);
        proc_say(&h, 'x');
        assert_int_equal(proc_hear(&w[1], 100), 'h');
        /* The one before us died unseen by the holder, and the one we now stand behind is killed
         * while it holds. */
        proc_kill(&w[1], SIGKILL);
        assert_true(pump_try(p, SNIB__NOTE_GRANTED, 100 * wait_slow(), &note));
        proc_wait(&h, 10000);
        pump_close(p);
}

/* A waiter that gives up leaves no gap in the chain of who watches whom. */
static void F133_who_stands_behind_one_that_gave_up_hears_of_a_death(void **state)
{
        struct proc h, w;
        struct pump *p = pump_connect(url, 1), *q;
        struct snib__id middle = pump_id(p);
        struct pump_note note;

        start(&h, holder, 100, 'h');
        start(&w, waiter, 200, 'w');
        assert_int_equal(acquire(p, "job", middle, LEASE).position, 2);
        q = pump_connect(url, 2);
        assert_int_equal(acquire(q, "job", pump_id(q), LEASE).position, 3);
        release(p, "job", middle);
        pump_turn(q, pump_now() + 100 * SNIB__MS); /* the hint */
        proc_say(&h, 'x');
        assert_int_equal(proc_hear(&w, 10000), 'h');
        proc_kill(&w, SIGKILL);
        assert_true(pump_try(q, SNIB__NOTE_GRANTED, 100 * wait_slow(), &note));
        proc_wait(&h, 10000);
        pump_close(p);
        pump_close(q);
}

static void check_inside(int number, int64_t token)
{
        int other = atomic_exchange(&shared->inside, number);

        if (other && !shared->killed[other])
                shared->violations++;
        if (token <= atomic_exchange(&shared->token, token))
                shared->violations++;
        shared->count++;
        shared->grants++;
        atomic_compare_exchange_strong(&shared->inside, &number, 0);
}

static void worker(struct proc *me, void *arg)
{
        int number = *(int *)arg;
        static unsigned generation;
        struct pump *p;

        generation = (unsigned)getpid();
        p = pump_connect(url, generation);
        for (;;) {
                struct snib__id x = pump_id(p);
                int64_t token = acquire_wait(p, "job", x, LEASE);
                check_inside(number, token);
                if (release(p, "job", x).status != SNIB__RELEASED)
                        shared->violations++;
                if (me->pid < 0)
                        return;
        }
}

#define READS(n) (1ULL << (n))
#define WRITES(n) (1ULL << ((n) + 16))
#define HAS_PERMIT(n) (1ULL << ((n) + 32))
#define DYING(n) (1ULL << ((n) + 48)) /* about to be killed: it may be in still, or not any more */
#define PERMITS 2                     /* so few that all are out most of the time */

/* How many of the others are in. */
static int others(uint64_t seated, int number, int shift)
{
        uint64_t in = seated >> shift & 0xffff;

        return __builtin_popcountll(in & ~(seated >> 48) & ~READS(number));
}

static void check_seat(int number, int kind)
{
        uint64_t bit = kind == SNIB_KIND_WRITE  ? WRITES(number)
                       : kind == SNIB_KIND_READ ? READS(number)
                                                : HAS_PERMIT(number);
        uint64_t was = atomic_fetch_or(&shared->seated, bit);
        int readers = others(was, number, 0), writers = others(was, number, 16), permits = others(was, number, 32);
        int sharers = kind == SNIB_KIND_PERMITS ? permits : readers;

        if (kind == SNIB_KIND_PERMITS)
                shared->violations += permits >= PERMITS;
        else
                shared->violations += writers > 0 || (kind == SNIB_KIND_WRITE && readers > 0);
        if (sharers + 1 > shared->most)
                shared->most = sharers + 1;
        shared->grants++;
        for (int i = 0; i < 10; i++) /* to be met by the others, who are more than there are processors */
                sched_yield();
        atomic_fetch_and(&shared->seated, ~bit);
}

static struct snib__reply ask_seat(struct pump *p, enum snib__verb verb, int kind, struct snib__id x)
{
        struct snib__op op = pump_op(p, verb, kind == SNIB_KIND_PERMITS ? "permits" : "rw", x, LEASE);

        op.kind = kind;
        op.n = 1;
        op.enqueue = verb == SNIB__ACQUIRE;
        return pump_do(p, &op);
}

/* Takes one of the three at random, mostly a permit, again and again. */
static void sharer(struct proc *me, void *arg)
{
        static const int kinds[] = {SNIB_KIND_READ,    SNIB_KIND_READ,    SNIB_KIND_WRITE,
                                    SNIB_KIND_PERMITS, SNIB_KIND_PERMITS, SNIB_KIND_PERMITS};
        struct pump *p = pump_connect(url, (unsigned)getpid());
        struct snib__prng random = {(uint64_t)getpid()};
        int number = *(int *)arg;
        struct pump_note note;

        (void)me;
        for (;;) {
                int kind = kinds[snib__prng_below(&random, sizeof(kinds) / sizeof(kinds[0]))];
                struct snib__id x = pump_id(p);
                struct snib__reply r = ask_seat(p, SNIB__ACQUIRE, kind, x);

                while (r.status == SNIB__BUSY) {
                        (void)pump_try(p, SNIB__NOTE_GRANTED, 1000, &note);
                        r = ask_seat(p, SNIB__ACQUIRE, kind, x);
                }
                if (r.status != SNIB__GRANTED)
                        bail("status %d, error %d %s", (int)r.status, r.error, r.error_text ? r.error_text : "");
                check_seat(number, kind);
                if (ask_seat(p, SNIB__RELEASE, kind, x).status != SNIB__RELEASED)
                        shared->violations++;
        }
}

/* Writes; then lets in whoever waits, and dies after it has sent that many datagrams. */
static void writer_that_dies(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(url, 100);
        struct snib__id x = pump_id(p);

        if (ask_seat(p, SNIB__ACQUIRE, SNIB_KIND_WRITE, x).status != SNIB__GRANTED)
                bail("not granted");
        proc_say(me, 'h');
        (void)proc_hear(me, 60000);
        datagrams = *(int *)arg;
        (void)ask_seat(p, SNIB__RELEASE, SNIB_KIND_WRITE, x);
        bail("it lives");
}

/* Says 'w' when it waits, 'h' when it reads. It believes a datagram, and then waits no more. */
static void reader(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(url, *(unsigned *)arg);
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, "rw", pump_id(p), LEASE);

        op.kind = SNIB_KIND_READ;
        op.enqueue = true;
        op.number = 1;
        if (pump_do(p, &op).status != SNIB__BUSY)
                bail("not busy");
        proc_say(me, 'w');
        (void)pump_wait(p, SNIB__NOTE_GRANTED);
        proc_say(me, 'h');
        (void)proc_hear(me, 60000);
}

static void assert_goes_on(struct pump *p, int kind, struct snib__id x)
{
        struct pump_note note;

        assert_true(pump_try(p, SNIB__NOTE_GRANTED, 100 * wait_slow(), &note));
        assert_int_equal(ask_seat(p, SNIB__ACQUIRE, kind, x).status, SNIB__GRANTED);
}

/* It has let three in and dies before it has told all of them, and the next one whom to watch. Only
 * the first of them watched it. */
static void F133_death_between_a_hand_over_to_several_and_its_datagrams(void **state)
{
        struct proc w, r;
        struct pump *p[3];
        struct snib__id x[3];

        for (int sent = 0; sent < 4; sent++) {
                proc_start(&w, writer_that_dies, &sent);
                assert_int_equal(proc_hear(&w, 10000), 'h');
                start(&r, reader, 200 + (unsigned)sent, 'w');
                for (int i = 0; i < 3; i++) {
                        p[i] = pump_connect(url, 1 + (unsigned)i);
                        x[i] = pump_id(p[i]);
                        assert_int_equal(
                            ask_seat(p[i], SNIB__ACQUIRE, i < 2 ? SNIB_KIND_READ : SNIB_KIND_WRITE, x[i]).status,
                            SNIB__BUSY);
                }
                proc_say(&w, 'x');
                assert_int_equal(proc_hear(&r, 1000), 'h');
                assert_goes_on(p[0], SNIB_KIND_READ, x[0]);
                assert_goes_on(p[1], SNIB_KIND_READ, x[1]);
                assert_int_equal(WTERMSIG(proc_wait(&w, 10000)), SIGKILL);
                pump_turn(p[2], pump_now() + 100 * SNIB__MS); /* its look */
                for (int i = 0; i < 2; i++)
                        assert_int_equal(ask_seat(p[i], SNIB__RELEASE, SNIB_KIND_READ, x[i]).status, SNIB__RELEASED);
                proc_kill(&r, SIGKILL);
                assert_goes_on(p[2], SNIB_KIND_WRITE, x[2]);
                for (int i = 0; i < 3; i++)
                        pump_close(p[i]);
        }
}

static void crowd_member(struct proc *me, void *arg)
{
        int number = *(int *)arg;
        struct pump *p = pump_connect(url, 1000 + (unsigned)number);

        proc_say(me, 'o');
        (void)proc_hear(me, 60000);
        for (int i = 0; i < 50; i++) {
                struct snib__id x = pump_id(p);
                check_inside(number, acquire_wait(p, "job", x, LEASE));
                if (release(p, "job", x).status != SNIB__RELEASED)
                        shared->violations++;
        }
        shared->unwoken += unwoken;
        pump_close(p);
}

/* Everybody gets in 50 times; nobody overlaps. */
static void a_crowd_excludes_itself(void **state)
{
        struct proc p[CROWD];
        int64_t begun;

        for (int i = 0; i < CROWD; i++) {
                int number = i + 1;
                proc_start(&p[i], crowd_member, &number);
        }
        for (int i = 0; i < CROWD; i++)
                assert_int_equal(proc_hear(&p[i], 20000), 'o');
        begun = wait_now_ms();
        for (int i = 0; i < CROWD; i++)
                proc_say(&p[i], 'g');
        for (int i = 0; i < CROWD; i++)
                assert_int_equal(proc_wait(&p[i], 60000), 0);
        print_message("# %d grants to %d processes in %lld ms\n", CROWD * 50, CROWD,
                      (long long)(wait_now_ms() - begun));
        assert_int_equal(shared->violations, 0);
        assert_int_equal(shared->unwoken, 0);
        assert_int_equal(shared->count, CROWD * 50);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM client"), 0);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM waiter"), 0);
}

static void kill_worker(struct proc *p, int number)
{
        int inside = number;

        shared->killed[number] = true;
        atomic_fetch_or(&shared->seated, DYING(number));
        proc_kill(p, SIGKILL);
        shared->killed[number] = false;
        atomic_compare_exchange_strong(&shared->inside, &inside, 0);
        atomic_fetch_and(&shared->seated, ~(DYING(number) | READS(number) | WRITES(number) | HAS_PERMIT(number)));
}

/* Kills workers at random moments and puts others in their places, until then: how many. */
static int64_t kill_until(struct proc p[WORKERS], int number[WORKERS], void (*run)(struct proc *, void *),
                          struct snib__prng *random, int64_t until)
{
        int64_t kills = 0;

        for (; wait_now_ms() < until; kills++) {
                int i = (int)snib__prng_below(random, WORKERS);
                int64_t pause = wait_now_ms() + (int64_t)snib__prng_below(random, 6);
                assert_true(eventually(wait_now_ms() >= pause, 100));
                kill_worker(&p[i], number[i]);
                proc_start(&p[i], run, &number[i]);
        }
        return kills;
}

/* Workers are killed, again and again for a while. Each time the rest goes on: whoever was not told
 * that it may would ask by itself only a second later. */
static void kill_at_random(void (*run)(struct proc *, void *), int rounds)
{
        struct proc p[WORKERS];
        struct snib__prng random = {(uint64_t)getpid()};
        int64_t kills = 0, grants;
        int number[WORKERS];

        for (int i = 0; i < WORKERS; i++) {
                number[i] = i + 1;
                proc_start(&p[i], run, &number[i]);
        }
        for (int i = 0; i < rounds; i++) {
                kills += kill_until(p, number, run, &random, wait_now_ms() + 200);
                grants = shared->grants;
                assert_true(eventually(shared->grants > grants + 10, 800));
        }
        for (int i = 0; i < WORKERS; i++)
                kill_worker(&p[i], number[i]);
        print_message("# %lld kills, %lld grants\n", (long long)kills, (long long)shared->grants);
        assert_int_equal(shared->violations, 0);
        assert_int_equal(ask_sql(dir, "SELECT integrity_check='ok' FROM pragma_integrity_check"), 1);
}

static void F133_random_kills_break_nothing(void **state)
{
        struct pump *last;

        kill_at_random(worker, 25);
        last = pump_connect(url, 1);
        assert_int_equal(acquire(last, "job", pump_id(last), LEASE).status, SNIB__GRANTED);
        pump_close(last);
}

/* Objects with several seats: nobody reads beside a writer, no permit is given out twice, none is
 * lost. */
static void F133_random_kills_among_many_holders_break_nothing(void **state)
{
        struct pump *p = pump_connect(url, 1);
        struct snib__op set = pump_op(p, SNIB__SET, "permits", pump_id(p), 0);
        struct snib__id x;

        set.kind = SNIB_KIND_PERMITS;
        set.n = PERMITS;
        assert_true(pump_do(p, &set).applied);
        pump_close(p); /* no second handle in the children */
        kill_at_random(sharer, 25);
        assert_true(shared->most > 1);
        p = pump_connect(url, 1);
        x = pump_id(p);
        assert_int_equal(ask_seat(p, SNIB__ACQUIRE, SNIB_KIND_WRITE, x).status, SNIB__GRANTED);
        for (int i = 0; i < PERMITS; i++)
                assert_int_equal(ask_seat(p, SNIB__ACQUIRE, SNIB_KIND_PERMITS, pump_id(p)).status, SNIB__GRANTED);
        assert_int_equal(ask_seat(p, SNIB__ACQUIRE, SNIB_KIND_PERMITS, pump_id(p)).status, SNIB__BUSY);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM seat"), PERMITS);
        pump_close(p);
}

/* Stands in the gate, as a client would in its transaction. */
static void gate_sitter(struct proc *me, void *arg)
{
        char path[1300];
        struct pump *p = pump_connect(url, 50);
        int fd;

        snprintf(path, sizeof(path), "%s/gate", dir);
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 || !snib__gate_try(fd))
                bail("gate: %s", strerror(errno));
        proc_say(me, 'g');
        (void)proc_hear(me, 60000);
        snib__gate_leave(fd);
        proc_say(me, 'f');
        (void)proc_hear(me, 60000);
        pump_close(p);
}

/* Somebody stopped in the middle of a transaction: a bounded wait, and an error that names it. */
static void a_process_stopped_in_the_gate_is_named(void **state)
{
        struct snib_error err;
        struct proc sitter;
        struct snib__reply r;
        struct pump *p;
        char words[64];
        int64_t begun;

        p = pump_connect(url_of(dir, "?timeout=300ms"), 1);
        pump_close(p);
        start(&sitter, gate_sitter, 0, 'g');
        snprintf(words, sizeof(words), "process %d", (int)sitter.pid);
        proc_stop(&sitter);
        begun = wait_now_ms();
        assert_int_equal(try_open(url, 9, &err), SNIB_ENOTREADY); /* patience 500 ms */
        assert_true(wait_now_ms() - begun < 2000 * wait_slow());
        assert_non_null(strstr(err.text, words));
        assert_non_null(strstr(err.text, "stopped"));
        proc_resume(&sitter);
        proc_say(&sitter, 'x');
        assert_int_equal(proc_hear(&sitter, 10000), 'f');

        p = pump_connect(url_of(dir, "?timeout=1s"), 1);
        proc_kill(&sitter, SIGKILL);
        start(&sitter, gate_sitter, 0, 'g');
        proc_stop(&sitter);
        struct snib__id x = pump_id(p), y = pump_id(p);
        struct snib__op one = pump_op(p, SNIB__ACQUIRE, "a", x, LEASE), two = pump_op(p, SNIB__ACQUIRE, "b", y, LEASE);
        begun = wait_now_ms();
        uint32_t first = pump_submit(p, &one), second = pump_submit(p, &two);
        assert_true(wait_now_ms() - begun < 900); /* submit() does not wait */
        r = pump_answer(p, first);
        assert_int_equal(r.status, SNIB__FAILED);
        assert_int_equal(r.error, SNIB_ENOTREADY);
        assert_non_null(strstr(r.error_text, "holds the gate"));
        assert_int_equal(pump_answer(p, second).error, SNIB_ENOTREADY);
        assert_true(wait_now_ms() - begun < 5000 * wait_slow());
        /* a question needs no gate */
        struct snib__op query = pump_op(p, SNIB__QUERY, "a", x, 0);
        assert_int_equal(pump_do(p, &query).status, SNIB__INFO);
        proc_resume(&sitter);
        proc_say(&sitter, 'x');
        assert_int_equal(proc_hear(&sitter, 10000), 'f');
        /* what was given up on was not done, and the way is free */
        assert_false(pump_do(p, &query).held);
        assert_int_equal(acquire(p, "a", x, LEASE).status, SNIB__GRANTED);
        proc_kill(&sitter, SIGKILL);
        pump_close(p);
}

/* In the end of a client the gate may be closed, too. */
static void close_is_bounded_while_the_gate_is_closed(void **state)
{
        struct pump *p = pump_connect(url_of(dir, ""), 1), *q;
        struct proc sitter;
        int64_t begun;

        pump_close(p);
        start(&sitter, gate_sitter, 0, 'g');
        proc_say(&sitter, 'x');
        assert_int_equal(proc_hear(&sitter, 10000), 'f');
        p = pump_connect(url_of(dir, "?timeout=300ms"), 1);
        q = pump_connect(url_of(dir, "?timeout=300ms"), 2);
        acquire(p, "job", pump_id(p), LEASE);
        proc_kill(&sitter, SIGKILL);
        start(&sitter, gate_sitter, 0, 'g');
        proc_stop(&sitter);
        begun = wait_now_ms();
        pump_close(p);
        pump_close(q);
        assert_true(wait_now_ms() - begun < 3000 * wait_slow());
        proc_kill(&sitter, SIGKILL);
        q = pump_connect(url, 3); /* and what it held is free, by its byte */
        assert_int_equal(acquire(q, "job", pump_id(q), LEASE).status, SNIB__GRANTED);
        pump_close(q);
}

/* A holder that forks; its child lives on. */
static void forking_holder(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(url, 60);
        pid_t child;

        (void)acquire_wait(p, "job", pump_id(p), LEASE);
        child = proc_fork();
        if (child == 0) {
                p->engine->ops->forked(p->engine);
                struct pump *mine =
                    pump_connect(url, 61); /* a client of its own, while the parent's handle is inherited */
                struct snib__id x = pump_id(mine);
                if (acquire(mine, "job", x, LEASE).status != SNIB__BUSY)
                        bail("the child got in");
                pump_close(p); /* the inert copy */
                proc_say(me, 'c');
                (void)pump_wait(mine, SNIB__NOTE_GRANTED);
                if (acquire(mine, "job", x, LEASE).status != SNIB__GRANTED)
                        bail("the child is not let in");
                release(mine, "job", x);
                pump_close(mine);
                proc_say(me, 'r');
                (void)proc_hear(me, 60000);
                _exit(0);
        }
        struct snib__id y = pump_id(p);
        if (acquire(p, "other", y, LEASE).status != SNIB__GRANTED)
                bail("the parent lost something by its fork");
        proc_say(me, 'p');
        (void)waitpid(child, NULL, 0);
        pump_close(p);
}

static void F133_a_forked_child_keeps_nothing_alive(void **state)
{
        struct proc h;
        char said[2];

        proc_start(&h, forking_holder, NULL);
        said[0] = proc_hear(&h, 10000);
        said[1] = proc_hear(&h, 10000);
        assert_true((said[0] == 'c' && said[1] == 'p') || (said[0] == 'p' && said[1] == 'c'));
        kill(h.pid, SIGKILL); /* the child lives */
        assert_int_equal(proc_hear(&h, 1000), 'r');
        proc_kill(&h, SIGKILL);
        assert_int_equal(ask_sql(dir, "SELECT integrity_check='ok' FROM pragma_integrity_check"), 1);
}

/* A worker on a terminal of its own, as a shell would start it: in a process group of the session
 * that has the terminal. The leader of the session only waits: without a parent in the session the
 * kernel would discard SIGTSTP. */
static void worker_on_terminal(struct proc *me, void *arg)
{
        int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        pid_t pid;

        if (setsid() < 0 || terminal < 0 || grantpt(terminal) || unlockpt(terminal) ||
            open(ptsname(terminal), O_RDWR | O_CLOEXEC) < 0)
                bail("terminal: %s", strerror(errno));
        pid = fork();
        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)setpgid(0, 0);
                shared->on_terminal = getpid();
                worker(me, arg);
        }
        (void)waitpid(pid, NULL, 0);
}

static bool stopped(pid_t pid)
{
        char path[64], line[512] = "";
        const char *end;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        f = fopen(path, "re");
        if (!f || !fgets(line, sizeof(line), f))
                bail("%s: %s", path, strerror(errno));
        fclose(f);
        end = strrchr(line, ')');
        return end && end[1] == ' ' && end[2] == 'T';
}

/* ^Z does not stop a program inside the gate: it is stopped before or after. */
static void stop_signals_do_not_stop_inside_the_gate(void **state)
{
        struct proc w;
        int number = 1, waited = 0;
        struct pump *p = pump_connect(url, 1);

        proc_start(&w, worker_on_terminal, &number);
        assert_true(eventually(shared->grants > 10, 5000));
        for (int i = 0; i < 200; i++) {
                struct snib__reply r;
                kill(shared->on_terminal, SIGTSTP);
                if (!eventually(stopped(shared->on_terminal), 5000))
                        bail("not stopped");
                int64_t begun = wait_now_ms();
                struct snib__id x = pump_id(p);
                r = acquire(p, "elsewhere", x, LEASE);
                waited += r.status != SNIB__GRANTED || wait_now_ms() - begun > 1000;
                release(p, "elsewhere", x);
                kill(shared->on_terminal, SIGCONT);
                int64_t grants = shared->grants;
                assert_true(eventually(shared->grants > grants, 5000));
        }
        assert_int_equal(waited, 0);
        shared->killed[1] = true;
        proc_kill(&w, SIGKILL);
        pump_close(p);
}

/* Another program's transaction is waited for by the worker, not by the caller. */
static void shell(struct proc *me, void *arg)
{
        char path[1300];
        sqlite3 *db;

        snprintf(path, sizeof(path), "%s/snib.db", dir);
        if (sqlite3_open(path, &db) || sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL))
                bail("shell: %s", sqlite3_errmsg(db));
        proc_say(me, 'b');
        (void)proc_hear(me, 60000);
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        sqlite3_close(db);
}

static void another_program_in_sqlite_is_waited_for(void **state)
{
        struct pump *p = pump_connect(url_of(dir, "?timeout=400ms"), 1);
        struct snib__id x = pump_id(p);
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, "job", x, LEASE);
        struct snib__reply r;
        struct proc s;

        start(&s, shell, 0, 'b');
        r = pump_do(p, &op);
        assert_int_equal(r.error, SNIB_ENOTREADY);
        assert_non_null(strstr(r.error_text, "another program"));
        uint32_t second = pump_submit(p, &op);
        proc_say(&s, 'c');
        assert_int_equal(pump_answer(p, second).status, SNIB__GRANTED);
        proc_wait(&s, 10000);
        /* the shell was the last to close the file but for us: its clean-up took nothing away */
        assert_int_equal(release(p, "job", x).status, SNIB__RELEASED);
        assert_int_equal(ask_sql(dir, "SELECT id='' FROM object WHERE name='job'"), 1);
        pump_close(p);
}

/* The death of who left it is no reason to free it, and its lease is: the first in the queue comes
 * in then, by itself. */
static void what_was_left_outlives_a_kill(void **state)
{
        unsigned one = 1;
        struct proc p;
        struct pump *b = pump_connect(url, 2);
        struct snib__id x = pump_id(b);
        struct snib__reply r;
        int64_t before = wait_now_ms();

        proc_start(&p, leaver, &one);
        assert_int_equal(proc_hear(&p, 10000), 'l');
        proc_kill(&p, SIGKILL);
        r = acquire(b, "job", x, LEASE);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_true(snib__id_is_left(&r.holder.id, NULL));
        (void)pump_wait(b, SNIB__NOTE_GRANTED);
        assert_true(wait_now_ms() - before >= 2000);
        assert_int_equal(acquire(b, "job", x, LEASE).status, SNIB__GRANTED);
        pump_close(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, prepare, finish)
            T(what_was_left_outlives_a_kill),
            T(F133_kill_9_of_the_holder_lets_the_waiter_in_at_once),
            T(F133_a_dead_holder_is_no_obstacle),
            T(F133_dead_waiters_are_skipped),
            T(F133_who_stands_behind_one_that_gave_up_hears_of_a_death),
            T(F133_death_between_a_hand_over_to_several_and_its_datagrams),
            T(a_crowd_excludes_itself),
            T(F133_random_kills_break_nothing),
            T(F133_random_kills_among_many_holders_break_nothing),
            T(a_process_stopped_in_the_gate_is_named),
            T(close_is_bounded_while_the_gate_is_closed),
            T(F133_a_forked_child_keeps_nothing_alive),
            T(stop_signals_do_not_stop_inside_the_gate),
            T(another_program_in_sqlite_is_waited_for),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
