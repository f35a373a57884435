/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every kind of object in the local engine, between real processes: who is woken, who is freed by a
 * death, what stands in the file and what is made of rows that are damaged. What the kinds
 * mean is the model's and tested there. Times are bounds where a promise says so.
 */

#include "base/alloc.h"
#include "base/prng.h"
#include "engine/local/store.h"
#include "local_test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <snib/register.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEASE 30000
/* What a death or a word of another process may take to arrive, on a machine that does other
 * things, too. It is less than what it takes a waiter to ask by itself. */
#define PROMPT_MS (500 * wait_slow())

static char url[1200];
static const char *dir;
static struct pump *a;

static int open_one(void **state)
{
        dir = tmp_dir();
        snprintf(url, sizeof(url), "%s", url_of(dir, ""));
        a = pump_connect(url, 1);
        return 0;
}

static int close_one(void **state)
{
        pump_close(a);
        return 0;
}

static struct snib__op op_of(struct pump *p, enum snib__verb verb, int kind, const char *name, struct snib__id id,
                             int64_t n)
{
        struct snib__op op = pump_op(p, verb, name, id, LEASE);

        op.kind = kind;
        op.n = n;
        op.enqueue = verb == SNIB__ACQUIRE || verb == SNIB__OBSERVE;
        return op;
}

static struct snib__reply ask(struct pump *p, enum snib__verb verb, int kind, const char *name, struct snib__id id,
                              int64_t n)
{
        struct snib__op op = op_of(p, verb, kind, name, id, n);

        return pump_do(p, &op);
}

/* Sets, adds and so on: a request of its own. */
static struct snib__reply change(struct pump *p, enum snib__verb verb, int kind, const char *name, int64_t n)
{
        struct snib__reply r = ask(p, verb, kind, name, pump_id(p), n);

        assert_int_equal(r.status, SNIB__DONE);
        return r;
}

static struct snib__reply query(struct pump *p, const char *name)
{
        struct snib__reply r = ask(p, SNIB__QUERY, SNIB_KIND_ANY, name, (struct snib__id){{0}}, 0);

        assert_int_equal(r.status, SNIB__INFO);
        return r;
}

static struct snib__reply observe(struct pump *p, int kind, const char *name, struct snib__id id, int64_t seen)
{
        struct snib__op op = op_of(p, SNIB__OBSERVE, kind, name, id, 1);

        op.token = seen;
        return pump_do(p, &op);
}

static void woken(struct pump *p, struct snib__id id)
{
        struct pump_note note;

        assert_true(pump_try(p, SNIB__NOTE_GRANTED, PROMPT_MS, &note));
        assert_string_equal(note.note.id.text, id.text);
}

static void not_woken(struct pump *p)
{
        struct pump_note note;

        assert_false(pump_try(p, SNIB__NOTE_GRANTED, 20, &note));
}

/* What a process takes. */
struct role {
        unsigned number; /* of its client */
        int kind;
        int64_t n;
};

/* Says 'w' if it has to wait, 'h' when it has it; gives it back when it is told to end. */
static void actor(struct proc *me, void *arg)
{
        const struct role *role = arg;
        struct pump *p = pump_connect(url, role->number);
        struct snib__id x = pump_id(p);
        struct snib__reply r = ask(p, SNIB__ACQUIRE, role->kind, "thing", x, role->n);

        if (r.status == SNIB__BUSY) {
                proc_say(me, 'w');
                (void)pump_wait(p, SNIB__NOTE_GRANTED);
                r = ask(p, SNIB__ACQUIRE, role->kind, "thing", x, role->n);
        }
        if (r.status != SNIB__GRANTED)
                bail("status %d, error %d", (int)r.status, r.error);
        proc_say(me, 'h');
        (void)proc_hear(me, 60000);
        (void)ask(p, SNIB__RELEASE, role->kind, "thing", x, role->n);
        pump_close(p);
}

static void start(struct proc *p, unsigned number, int kind, int64_t n, char says)
{
        struct role role = {number, kind, n};

        proc_start(p, actor, &role);
        assert_int_equal(proc_hear(p, 10000), says);
}

/* --- Deaths --- */

static void F133_kill_9_of_the_last_reader_lets_the_writer_in_at_once(void **state)
{
        struct snib__id x = pump_id(a);
        struct proc reader[3];

        for (unsigned i = 0; i < 3; i++)
                start(&reader[i], 10 + i, SNIB_KIND_READ, 1, 'h');
        assert_int_equal(query(a, "thing").holders, 3);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "thing", x, 1).status, SNIB__BUSY);
        proc_kill(&reader[1], SIGKILL);
        proc_kill(&reader[0], SIGKILL);
        not_woken(a);
        assert_int_equal(query(a, "thing").holders, 1);
        proc_kill(&reader[2], SIGKILL);
        woken(a, x);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "thing", x, 1).status, SNIB__GRANTED);
}

/* More sit than are watched at a time. */
static void F133_kill_9_of_a_crowd_of_readers_lets_the_writer_in_at_once(void **state)
{
        struct snib__id x = pump_id(a);
        struct proc reader[20];

        for (unsigned i = 0; i < 20; i++)
                start(&reader[i], 10 + i, SNIB_KIND_READ, 1, 'h');
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "thing", x, 1).status, SNIB__BUSY);
        for (int i = 19; i >= 0; i--)
                kill(reader[i].pid, SIGKILL);
        for (int i = 0; i < 20; i++)
                proc_kill(&reader[i], SIGKILL);
        woken(a, x);
}

static void F133_a_dead_reader_is_no_obstacle(void **state)
{
        struct proc reader[2];

        start(&reader[0], 10, SNIB_KIND_READ, 1, 'h');
        start(&reader[1], 11, SNIB_KIND_READ, 1, 'h');
        proc_kill(&reader[0], SIGKILL);
        proc_kill(&reader[1], SIGKILL);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "thing", pump_id(a), 1).status, SNIB__GRANTED);
}

static void F133_kill_9_of_a_permit_holder_frees_its_permits(void **state)
{
        struct snib__id x = pump_id(a);
        struct proc two, one;

        change(a, SNIB__SET, SNIB_KIND_PERMITS, "thing", 3);
        start(&two, 10, SNIB_KIND_PERMITS, 2, 'h');
        start(&one, 11, SNIB_KIND_PERMITS, 1, 'h');
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "thing", x, 2).status, SNIB__BUSY);
        proc_kill(&two, SIGKILL);
        woken(a, x);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "thing", x, 2).status, SNIB__GRANTED);
        assert_int_equal(query(a, "thing").value, 0);
        proc_kill(&one, SIGKILL);
        assert_int_equal(query(a, "thing").value, 1);
        assert_int_equal(query(a, "thing").limit, 3);
}

/* Nobody owns what a semaphore gave out; but what it was about to give to somebody who died
 * meanwhile goes on. */
static void F133_a_dead_taker_of_a_semaphore(void **state)
{
        struct snib__id x = pump_id(a);
        struct proc taker, waiter;

        change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "thing", 2);
        start(&taker, 10, SNIB_KIND_SEMAPHORE, 2, 'h');
        proc_kill(&taker, SIGKILL);
        assert_int_equal(query(a, "thing").value, 0);
        start(&waiter, 11, SNIB_KIND_SEMAPHORE, 1, 'w');
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", x, 1).position, 2);
        proc_stop(&waiter);
        change(a, SNIB__ADD, SNIB_KIND_SEMAPHORE, "thing", 1); /* it is the waiter's, but for its word */
        assert_int_equal(query(a, "thing").value, 0);
        proc_kill(&waiter, SIGKILL);
        woken(a, x);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", x, 1).status, SNIB__GRANTED);
}

static void F133_kill_9_of_the_leader_is_observed_at_once(void **state)
{
        struct snib__id x = pump_id(a);
        struct proc leader;
        int64_t term;

        start(&leader, 10, SNIB_KIND_ELECTION, 1, 'h');
        term = observe(a, SNIB_KIND_ELECTION, "thing", x, 0).token;
        assert_true(term > 0);
        assert_int_equal(observe(a, SNIB_KIND_ELECTION, "thing", x, term).status, SNIB__BUSY);
        not_woken(a);
        proc_kill(&leader, SIGKILL);
        woken(a, x);
        struct snib__reply r = observe(a, SNIB_KIND_ELECTION, "thing", x, term);
        assert_int_equal(r.status, SNIB__INFO);
        assert_int_equal(r.token, 0);
        assert_false(r.held);
}

/* A hand-over to several: the one behind them watches them all. */
static void F133_those_who_were_seated_together_are_watched(void **state)
{
        struct proc writer, reader[2];
        struct snib__id x = pump_id(a);

        start(&writer, 10, SNIB_KIND_WRITE, 1, 'h');
        start(&reader[0], 11, SNIB_KIND_READ, 1, 'w');
        start(&reader[1], 12, SNIB_KIND_READ, 1, 'w');
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "thing", x, 1).position, 3);
        proc_say(&writer, 'x');
        assert_int_equal(proc_hear(&reader[0], PROMPT_MS), 'h');
        assert_int_equal(proc_hear(&reader[1], PROMPT_MS), 'h');
        pump_turn(a, pump_now() + 100 * SNIB__MS); /* the hint */
        proc_kill(&reader[1], SIGKILL);
        proc_kill(&reader[0], SIGKILL);
        woken(a, x);
        proc_wait(&writer, 10000);
}

/* A client may hold very many at its end. */
static void closing_a_client_frees_all_it_has(void **state)
{
        struct pump *b = pump_connect(url, 2);
        struct snib__id x = pump_id(a), y = pump_id(a);

        change(a, SNIB__SET, SNIB_KIND_PERMITS, "permits", 2000);
        assert_int_equal(ask(b, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "permits", pump_id(b), 1500).status, SNIB__GRANTED);
        for (int i = 0; i < 50; i++)
                assert_int_equal(ask(b, SNIB__ACQUIRE, SNIB_KIND_READ, "rw", pump_id(b), 1).status, SNIB__GRANTED);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "permits", x, 1999).status, SNIB__BUSY);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "rw", y, 1).status, SNIB__BUSY);
        pump_close(b);
        woken(a, x);
        woken(a, y);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM seat WHERE name='rw'"), 0);
}

/* --- Words of other processes
 * ------------------------------------------------------------------------------------ */

static void does(struct proc *me, void *arg)
{
        const struct snib__op *todo = arg;
        struct pump *p = pump_connect(url, (unsigned)getpid()); /* ids are used once */
        struct snib__op op = *todo;

        op.id = pump_id(p);
        proc_say(me, pump_do(p, &op).status == SNIB__DONE ? 'd' : 'f');
        pump_close(p);
}

/* Another process does it and ends. */
static void elsewhere(struct snib__op op)
{
        struct proc p;

        proc_start(&p, does, &op);
        assert_int_equal(proc_hear(&p, 10000), 'd');
        assert_int_equal(proc_wait(&p, 10000), 0);
}

static void a_semaphore_wait_is_woken_by_another_process(void **state)
{
        struct snib__id x = pump_id(a), y = pump_id(a);

        change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "thing", 1);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", x, 3).status, SNIB__BUSY);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", y, 1).status, SNIB__BUSY);
        elsewhere(op_of(a, SNIB__ADD, SNIB_KIND_SEMAPHORE, "thing", y, 1));
        not_woken(a); /* two are not three, and the second does not overtake */
        elsewhere(op_of(a, SNIB__ADD, SNIB_KIND_SEMAPHORE, "thing", y, 1));
        woken(a, x);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", x, 3).status, SNIB__GRANTED);
        not_woken(a);
        elsewhere(op_of(a, SNIB__ADD, SNIB_KIND_SEMAPHORE, "thing", y, 5));
        woken(a, y);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", y, 1).status, SNIB__GRANTED);
        assert_int_equal(query(a, "thing").value, 4);
}

static void a_latch_opened_elsewhere_wakes_all(void **state)
{
        struct snib__id id[30];
        struct proc waiter[4];
        struct pump_note note;

        change(a, SNIB__SET, SNIB_KIND_LATCH, "thing", 2);
        for (int i = 0; i < 30; i++) {
                id[i] = pump_id(a);
                assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_LATCH, "thing", id[i], 1).status, SNIB__BUSY);
        }
        for (unsigned i = 0; i < 4; i++)
                start(&waiter[i], 10 + i, SNIB_KIND_LATCH, 1, 'w');
        elsewhere(op_of(a, SNIB__ADD, SNIB_KIND_LATCH, "thing", id[0], -1));
        not_woken(a);
        elsewhere(op_of(a, SNIB__ADD, SNIB_KIND_LATCH, "thing", id[0], -1));
        for (int i = 0; i < 4; i++)
                assert_int_equal(proc_hear(&waiter[i], PROMPT_MS), 'h');
        /* A socket holds ten datagrams: whoever finds that many looks at all it waits for. */
        for (int i = 0; i < 30; i++) {
                int which = 0;
                assert_true(pump_try(a, SNIB__NOTE_GRANTED, PROMPT_MS, &note));
                while (which < 30 && strcmp(note.note.id.text, id[which].text) != 0)
                        which++;
                assert_true(which < 30);
                id[which].text[0] = 0; /* each once */
        }
        for (int i = 0; i < 4; i++) {
                proc_say(&waiter[i], 'x');
                assert_int_equal(proc_wait(&waiter[i], 10000), 0);
        }
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_LATCH, "thing", pump_id(a), 1).status, SNIB__GRANTED);
}

static void the_observer_of_a_register_is_told(void **state)
{
        struct snib__id x = pump_id(a);
        struct snib__op write = op_of(a, SNIB__WRITE, SNIB_KIND_REGISTER, "thing", x, 1);
        struct snib__reply r;

        assert_int_equal(observe(a, SNIB_KIND_REGISTER, "thing", x, 0).status, SNIB__BUSY);
        write.data = "first";
        write.data_length = 5;
        elsewhere(write);
        woken(a, x);
        r = observe(a, SNIB_KIND_REGISTER, "thing", x, 0);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.token > 0);
        assert_int_equal(r.data_length, 5);
        assert_memory_equal(r.data, "first", 5);
        assert_int_equal(observe(a, SNIB_KIND_REGISTER, "thing", x, r.token).status, SNIB__BUSY);
        write.verb = SNIB__DELETE;
        write.expected = r.token;
        elsewhere(write);
        woken(a, x);
        assert_int_equal(observe(a, SNIB_KIND_REGISTER, "thing", x, r.token).token, 0);
}

/* --- Order --- */

#define QUEUES 8
#define PLACES 8

/* In shared memory: in which order they were served. */
struct served {
        _Atomic int count;
        int who[QUEUES * PLACES];
};

static struct served *served;

struct line {
        unsigned number;
};

static int place_of(const struct snib__id *id, const struct snib__id *ids)
{
        int i = 0;

        while (i < PLACES && strcmp(id->text, ids[i].text) != 0)
                i++;
        return i;
}

/* A process with a place in the queue for each time it hears a 'q'; serves itself when its turns
 * come. */
static void line(struct proc *me, void *arg)
{
        const struct line *l = arg;
        struct pump *p = pump_connect(url, 100 + l->number);
        struct snib__id id[PLACES];
        struct pump_note note;

        proc_say(me, 'o');
        for (int i = 0; i < PLACES; i++) {
                id[i] = pump_id(p);
                if (proc_hear(me, 60000) != 'q' ||
                    ask(p, SNIB__ACQUIRE, SNIB_KIND_FAIR, "thing", id[i], 1).status != SNIB__BUSY)
                        bail("no place");
                proc_say(me, 'w');
        }
        for (int i = 0; i < PLACES; i++) {
                note = pump_wait(p, SNIB__NOTE_GRANTED);
                if (ask(p, SNIB__ACQUIRE, SNIB_KIND_FAIR, "thing", note.note.id, 1).status != SNIB__GRANTED)
                        bail("not granted");
                int place = place_of(&note.note.id, id);
                served->who[served->count++] = place * QUEUES + (int)l->number;
                (void)ask(p, SNIB__RELEASE, SNIB_KIND_FAIR, "thing", note.note.id, 1);
        }
        pump_close(p);
}

/* 64 waiters in 8 processes, in turn; 4 of the processes are killed with all their waiters. The
 * others are served in the order of their arrival, and the dead cost less than one lease of a
 * waiter together. */
static void F88_F89_dead_waiters_are_skipped_in_exact_order(void **state)
{
        struct snib__id x = pump_id(a);
        struct proc p[QUEUES];
        int64_t begun;

        served = mmap(NULL, sizeof(*served), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(served != MAP_FAILED);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_FAIR, "thing", x, 1).status, SNIB__GRANTED);
        for (unsigned i = 0; i < QUEUES; i++) {
                struct line l = {i};
                proc_start(&p[i], line, &l);
                assert_int_equal(proc_hear(&p[i], 10000), 'o');
        }
        for (int i = 0; i < QUEUES * PLACES; i++) {
                proc_say(&p[i % QUEUES], 'q');
                assert_int_equal(proc_hear(&p[i % QUEUES], 10000), 'w');
        }
        assert_int_equal(query(a, "thing").waiters, QUEUES * PLACES);
        for (int i = 1; i < QUEUES; i += 2)
                kill(p[i].pid, SIGKILL);
        begun = wait_now_ms();
        assert_int_equal(ask(a, SNIB__RELEASE, SNIB_KIND_FAIR, "thing", x, 1).status, SNIB__RELEASED);
        for (int i = 0; i < QUEUES; i += 2)
                assert_int_equal(proc_wait(&p[i], 20000), 0);
        int64_t took = wait_now_ms() - begun;
        print_message("# %d served past %d dead in %lld ms\n", served->count, QUEUES * PLACES / 2, (long long)took);
        assert_true(took < SNIB__WAITER_LEASE_MS);
        assert_int_equal(served->count, QUEUES * PLACES / 2);
        for (int i = 0; i < served->count; i++)
                assert_int_equal(served->who[i], 2 * i);
        for (int i = 1; i < QUEUES; i += 2)
                proc_kill(&p[i], SIGKILL);
        munmap(served, sizeof(*served));
}

static void a_waiting_writer_is_not_overtaken(void **state)
{
        struct proc reader[2], writer, late;

        start(&reader[0], 10, SNIB_KIND_READ, 1, 'h');
        start(&reader[1], 11, SNIB_KIND_READ, 1, 'h');
        start(&writer, 12, SNIB_KIND_WRITE, 1, 'w');
        start(&late, 13, SNIB_KIND_READ, 1, 'w');
        proc_say(&reader[0], 'x');
        assert_int_equal(proc_hear(&writer, 50), 0);
        proc_say(&reader[1], 'x');
        assert_int_equal(proc_hear(&writer, PROMPT_MS), 'h');
        assert_int_equal(proc_hear(&late, 50), 0);
        proc_say(&writer, 'x');
        assert_int_equal(proc_hear(&late, PROMPT_MS), 'h');
        proc_say(&late, 'x');
        assert_int_equal(proc_wait(&late, 10000), 0);
}

/* --- What is stored
 * ---------------------------------------------------------------------------------------------- */

static void a_register_holds_a_mebibyte(void **state)
{
        struct snib__op write = op_of(a, SNIB__WRITE, SNIB_KIND_REGISTER, "thing", pump_id(a), 1);
        struct pump *b = pump_connect(url, 2);
        char *value = malloc(SNIB_REGISTER_MAX + 1);
        struct snib__reply r;

        for (size_t i = 0; i < SNIB_REGISTER_MAX; i++)
                value[i] = (char)(i * 7 + i / 256);
        write.data = value;
        write.data_length = SNIB_REGISTER_MAX + 1;
        assert_int_equal(pump_do(a, &write).error, SNIB_ELIMIT);
        write.data_length = SNIB_REGISTER_MAX;
        assert_true(pump_do(a, &write).applied);
        r = query(b, "thing");
        assert_int_equal(r.data_length, SNIB_REGISTER_MAX);
        assert_memory_equal(r.data, value, SNIB_REGISTER_MAX);
        /* an observer's coming and going leaves it alone */
        struct snib__id x = pump_id(b);
        assert_int_equal(observe(b, SNIB_KIND_REGISTER, "thing", x, r.token).status, SNIB__BUSY);
        assert_int_equal(ask(b, SNIB__RELEASE, SNIB_KIND_REGISTER, "thing", x, 1).status, SNIB__RELEASED);
        r = query(a, "thing");
        assert_memory_equal(r.data, value, SNIB_REGISTER_MAX);
        /* another version expected; and the empty value is one */
        write.id = pump_id(a);
        assert_false(pump_do(a, &write).applied);
        write.id = pump_id(a);
        write.expected = r.value;
        write.data_length = 0;
        assert_true(pump_do(a, &write).applied);
        assert_true(query(b, "thing").held);
        assert_int_equal(query(b, "thing").data_length, 0);
        pump_close(b);
        free(value);
}

/* The sender may have given up and freed the value when the gate opens for its request. */
static void a_value_is_copied_while_it_waits_for_the_gate(void **state)
{
        struct snib__op write = op_of(a, SNIB__WRITE, SNIB_KIND_REGISTER, "thing", pump_id(a), 1);
        char path[1300], value[] = "kept";
        struct snib__reply r;
        uint32_t attempt;
        int fd;

        snprintf(path, sizeof(path), "%s/gate", dir);
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0 && snib__gate_try(fd));
        write.data = value;
        write.data_length = 4;
        attempt = pump_submit(a, &write);
        memset(value, 'x', sizeof(value));
        close(fd);
        assert_true(pump_answer(a, attempt).applied);
        r = query(a, "thing");
        assert_memory_equal(r.data, "kept", 4);
}

static void do_and_die(struct proc *me, void *arg)
{
        const struct snib__op *op = arg;
        struct pump *p = pump_connect(url, 50);

        if (pump_do(p, op).status != SNIB__DONE)
                bail("not done");
        proc_say(me, 'd');
        (void)proc_hear(me, 60000);
}

static void a_repeated_change_counts_once(void **state)
{
        struct snib__op add = op_of(a, SNIB__ADD, SNIB_KIND_SEMAPHORE, "thing", pump_id(a), 5);
        struct snib__reply r;
        struct proc p;

        change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "thing", 10);
        proc_start(&p, do_and_die, &add);
        assert_int_equal(proc_hear(&p, 10000), 'd');
        proc_kill(&p, SIGKILL);
        r = pump_do(a, &add);
        assert_true(r.applied);
        assert_int_equal(r.value, 15);
        assert_int_equal(query(a, "thing").value, 15);
        for (int i = 0; i < 1000; i++) /* and the memory has an end */
                change(a, SNIB__ADD, SNIB_KIND_SEMAPHORE, "thing", 1);
        assert_in_range(ask_sql(dir, "SELECT count(*) FROM memory"), SNIB__DONES_MAX, 8 * SNIB__DONES_MAX);
}

static int64_t free_now(void)
{
        return query(a, "thing").value;
}

/* The memory of who took goes with the semaphore, however it ends. */
static void a_semaphore_remembers_who_took(void **state)
{
        static const char *const ends[] = {NULL, "UPDATE content SET expires_ms=1"};

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                struct snib__id x = pump_id(a), y = pump_id(a);

                change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "thing", 10);
                for (int k = 0; k < 2; k++)
                        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", x, 3).status,
                                         SNIB__GRANTED);
                assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", y, 2).status, SNIB__GRANTED);
                assert_int_equal(free_now(), 5);
                assert_int_equal(ask_sql(dir, "SELECT count(*) FROM seat"), 0);
                assert_int_equal(ask(a, SNIB__RELEASE, SNIB_KIND_SEMAPHORE, "thing", x, 3).status, SNIB__RELEASED);
                assert_int_equal(free_now(), 8);
                assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "thing", x, 3).status, SNIB__BUSY);
                assert_int_equal(ask_sql(dir, "SELECT count(*) FROM memory WHERE what=2"), 1);
                if (ends[i])
                        run_sql(dir, ends[i]);
                else
                        change(a, SNIB__DELETE, SNIB_KIND_SEMAPHORE, "thing", 0);
                change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "thing", 20);
                assert_int_equal(ask(a, SNIB__RELEASE, SNIB_KIND_SEMAPHORE, "thing", y, 2).status, SNIB__GONE);
                assert_int_equal(free_now(), 20);
                change(a, SNIB__DELETE, SNIB_KIND_SEMAPHORE, "thing", 0);
        }
}

/* Of what is remembered only what concerns a request can be in its way. */
static void F133_a_damaged_memory_is_refused(void **state)
{
        static const struct {
                enum snib__verb verb;
                int kind;
                const char *sql;
        } damaged[] = {
            {SNIB__SET, SNIB_KIND_LATCH, "UPDATE memory SET what=2"},
            {SNIB__SET, SNIB_KIND_LATCH, "UPDATE memory SET what=3"},
            {SNIB__SET, SNIB_KIND_LATCH, "UPDATE memory SET what=-1"},
            {SNIB__SET, SNIB_KIND_LATCH, "UPDATE memory SET what=4294967297"},
            {SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "UPDATE memory SET value=0 WHERE what=2"},
            {SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "UPDATE memory SET value=-5 WHERE what=2"},
            {SNIB__ACQUIRE, SNIB_KIND_SEMAPHORE, "UPDATE memory SET value=4294967297 WHERE what=2"},
        };

        for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
                struct snib__id x = pump_id(a);
                struct snib__reply r;

                if (damaged[i].verb == SNIB__ACQUIRE)
                        change(a, SNIB__SET, damaged[i].kind, "thing", 5);
                r = ask(a, damaged[i].verb, damaged[i].kind, "thing", x, 1);
                assert_int_not_equal(r.status, SNIB__FAILED);
                run_sql(dir, damaged[i].sql);
                r = ask(a, damaged[i].verb, damaged[i].kind, "thing", x, 1);
                if (r.status != SNIB__FAILED || r.error != SNIB_ECORRUPT)
                        fail_msg("%s: status %d, error %d", damaged[i].sql, (int)r.status, r.error);
                assert_non_null(strstr(r.error_text, "are damaged"));
                change(a, SNIB__DELETE, damaged[i].kind, "thing", 0);
        }
}

static void permits_are_released_by_their_ids(void **state)
{
        struct snib__id x = pump_id(a);
        struct snib__op release = op_of(a, SNIB__RELEASE, SNIB_KIND_PERMITS, "thing", pump_id(a), 1);
        char permits[2][33];

        change(a, SNIB__SET, SNIB_KIND_PERMITS, "thing", 4);
        assert_int_equal(ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "thing", x, 3).status, SNIB__GRANTED);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM seat"), 3);
        assert_true(snib__permit_id(&x, 0, permits[0]) && snib__permit_id(&x, 2, permits[1]));
        release.permits = (const char(*)[33])permits;
        release.permit_count = 2;
        assert_int_equal(pump_do(a, &release).status, SNIB__RELEASED);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM seat"), 1);
        assert_int_equal(ask_sql(dir, "SELECT number FROM seat"), 1);
        assert_int_equal(query(a, "thing").value, 3);
        release.id = pump_id(a);
        assert_int_equal(pump_do(a, &release).status, SNIB__GONE);
        assert_int_equal(ask(a, SNIB__RELEASE, SNIB_KIND_PERMITS, "thing", x, 1).status, SNIB__RELEASED);
        assert_int_equal(query(a, "thing").value, 4);
}

static void the_listing_knows_every_kind(void **state)
{
        static const struct {
                const char *name;
                int kind;
                int64_t holders, value, limit;
        } want[] = {{"a-fair", SNIB_KIND_FAIR, 1, -1, -1},        {"b-read", SNIB_KIND_READ, 2, -1, -1},
                    {"c-sem", SNIB_KIND_SEMAPHORE, -1, 4, -1},    {"d-permits", SNIB_KIND_PERMITS, 2, 1, 3},
                    {"e-latch", SNIB_KIND_LATCH, -1, 6, -1},      {"f-elect", SNIB_KIND_ELECTION, 1, -1, -1},
                    {"g-register", SNIB_KIND_REGISTER, -1, 0, -1}};
        struct snib__op write = op_of(a, SNIB__WRITE, SNIB_KIND_REGISTER, "g-register", pump_id(a), 1);
        struct pump_note note;

        ask(a, SNIB__ACQUIRE, SNIB_KIND_FAIR, "a-fair", pump_id(a), 1);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_READ, "b-read", pump_id(a), 1);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_READ, "b-read", pump_id(a), 1);
        change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "c-sem", 4);
        change(a, SNIB__SET, SNIB_KIND_PERMITS, "d-permits", 3);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "d-permits", pump_id(a), 2);
        change(a, SNIB__SET, SNIB_KIND_LATCH, "e-latch", 6);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_ELECTION, "f-elect", pump_id(a), 1);
        assert_true(pump_do(a, &write).applied);
        change(a, SNIB__SET, SNIB_KIND_LATCH, "opened", 1);
        change(a, SNIB__ADD, SNIB_KIND_LATCH, "opened", -1);
        (void)pump_list(a);
        assert_int_equal(pump_answer(a, a->attempts).status, SNIB__INFO);
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
                assert_true(pump_try(a, SNIB__NOTE_LISTED, 0, &note));
                const struct snib__reply *r = &note.note.reply;
                assert_string_equal(note.name, want[i].name);
                assert_int_equal(r->kind, want[i].kind);
                assert_true(r->held);
                assert_int_equal(r->holders, want[i].holders);
                if (want[i].kind != SNIB_KIND_REGISTER)
                        assert_int_equal(r->value, want[i].value);
                assert_int_equal(r->limit, want[i].limit);
        }
        assert_false(pump_try(a, SNIB__NOTE_LISTED, 0, &note));
}

static void kinds_do_not_mix(void **state)
{
        struct snib__op op = op_of(a, SNIB__ACQUIRE, SNIB_KIND_COUNTER, "thing", pump_id(a), 1);

        assert_int_equal(pump_do(a, &op).error, SNIB_EUNSUPPORTED);
        op.kind = SNIB_KIND_ANY;
        assert_int_equal(pump_do(a, &op).error, SNIB_EUNSUPPORTED);
        op.kind = SNIB_KIND_LATCH + 1000;
        assert_int_equal(pump_do(a, &op).error, SNIB_EUNSUPPORTED);
        change(a, SNIB__SET, SNIB_KIND_LATCH, "thing", 1);
        op.kind = SNIB_KIND_READ;
        assert_int_equal(pump_do(a, &op).error, SNIB_EKIND);
        assert_int_equal(query(a, "thing").kind, SNIB_KIND_LATCH);
}

/* Answers with what is wanted, or that there is no memory. */
static void expect(const struct snib__reply *r, enum snib__status status)
{
        if (r->status == SNIB__FAILED)
                assert_int_equal(r->error, SNIB_ENOMEM);
        else
                assert_int_equal(r->status, status);
}

/* Everything that allocates: many seats and waiters, tells, a value in and out, a listing. */
static void use_all(struct pump *p, struct pump *q)
{
        struct snib__op write = op_of(p, SNIB__WRITE, SNIB_KIND_REGISTER, "register", pump_id(p), 1);
        struct snib__id id[12];
        struct snib__reply r;

        for (int i = 0; i < 12; i++) {
                id[i] = pump_id(i < 10 ? p : q);
                r = ask(i < 10 ? p : q, SNIB__ACQUIRE, i < 10 ? SNIB_KIND_READ : SNIB_KIND_WRITE, "rw", id[i], 1);
                if (i < 10)
                        expect(&r, SNIB__GRANTED);
        }
        r = ask(p, SNIB__SET, SNIB_KIND_PERMITS, "permits", pump_id(p), 40);
        expect(&r, SNIB__DONE);
        r = ask(q, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "permits", pump_id(q), 40);
        write.data = "a value";
        write.data_length = 7;
        write.expected = -1;
        r = pump_do(p, &write);
        expect(&r, SNIB__DONE);
        r = ask(q, SNIB__QUERY, SNIB_KIND_ANY, "register", (struct snib__id){{0}}, 0);
        expect(&r, SNIB__INFO);
        if (r.status == SNIB__INFO && r.held)
                assert_memory_equal(r.data, "a value", 7);
        (void)pump_list(q);
        r = pump_answer(q, q->attempts);
        expect(&r, SNIB__INFO);
        for (int i = 0; i < 10; i++) {
                r = ask(p, SNIB__RELEASE, SNIB_KIND_READ, "rw", id[i], 1);
                if (r.status == SNIB__FAILED)
                        assert_int_equal(r.error, SNIB_ENOMEM);
        }
}

/* Every allocation fails once: it is told, nothing is half done, and the end of the clients leaves
 * nothing behind. */
static void memory_that_is_missing_is_told(void **state)
{
        const char *where = tmp_path("lean");
        uint64_t begun, failed = 0;

        do {
                struct pump *p = pump_connect(url_of(where, ""), 5), *q = pump_connect(url_of(where, ""), 6);

                begun = snib__alloc_count;
                snib__alloc_fail_at = begun + ++failed;
                use_all(p, q);
                snib__alloc_fail_at = 0;
                begun = snib__alloc_count - begun;
                pump_close(q);
                assert_true(query(p, "rw").holders <= 1); /* whose release failed */
                pump_close(p);
                assert_int_equal(ask_sql(where, "SELECT count(*) FROM seat"), 0);
                assert_int_equal(ask_sql(where, "SELECT count(*) FROM object WHERE id<>''"), 0);
                assert_int_equal(ask_sql(where, "SELECT count(*) FROM waiter"), 0);
        } while (failed <= begun);
        print_message("# %llu allocations failed in turn\n", (unsigned long long)failed - 1);
        assert_true(failed > 10);
}

/* --- A long queue, damaged rows --- */

/* A crowd at one lock, as it should be. */
#define CROWD_MAX 16
struct crowd {
        struct snib__prng prng;
        struct snib__id holder, waiter[CROWD_MAX], observer;
        int waiters;
        bool watched; /* by the observer */
};

static struct snib__op crowd_op(enum snib__verb verb, struct snib__id id, uint32_t number)
{
        struct snib__op op = op_of(a, verb, SNIB_KIND_LOCK, "crowd", id, 1);

        op.number = number;
        return op;
}

static void crowd_joins(struct crowd *c)
{
        struct snib__id id = pump_id(a);
        struct snib__op op = crowd_op(SNIB__ACQUIRE, id, 1);
        struct snib__reply r;

        if (c->waiters == CROWD_MAX)
                return;
        r = pump_do(a, &op);
        if (!snib__id_set(&c->holder)) {
                assert_int_equal(r.status, SNIB__GRANTED);
                c->holder = id;
                c->watched = false;
                return;
        }
        c->waiter[c->waiters++] = id;
        assert_int_equal(r.status, SNIB__BUSY);
        assert_string_equal(r.holder.id.text, c->holder.text);
        assert_int_equal(r.position, c->waiters);
        assert_int_equal(r.waiters, c->waiters);
}

static void crowd_loses(struct crowd *c, int i)
{
        c->waiters--;
        memmove(&c->waiter[i], &c->waiter[i + 1], (size_t)(c->waiters - i) * sizeof(c->waiter[0]));
}

static void crowd_releases(struct crowd *c)
{
        struct snib__op op = crowd_op(SNIB__RELEASE, c->holder, 0);

        if (!snib__id_set(&c->holder))
                return;
        assert_int_equal(pump_do(a, &op).status, SNIB__RELEASED);
        c->watched = false;
        memset(&c->holder, 0, sizeof(c->holder));
        if (c->waiters == 0)
                return;
        c->holder = c->waiter[0];
        crowd_loses(c, 0);
}

/* One of those who wait asks again, or leaves. */
static void crowd_moves(struct crowd *c, bool leaves)
{
        int i = (int)snib__prng_below(&c->prng, (uint64_t)c->waiters);
        struct snib__op op = crowd_op(leaves ? SNIB__RELEASE : SNIB__ACQUIRE, c->waiter[i], 2);
        struct snib__reply r = pump_do(a, &op);

        assert_int_equal(r.status, leaves ? SNIB__RELEASED : SNIB__BUSY);
        if (leaves)
                crowd_loses(c, i);
        else
                assert_int_equal(r.position, i + 1);
}

static void crowd_is_watched(struct crowd *c)
{
        struct snib__op op = op_of(a, SNIB__OBSERVE, SNIB_KIND_ELECTION, "crowd", c->observer, 1);

        op.token = query(a, "crowd").token;
        assert_int_equal(pump_do(a, &op).status, SNIB__BUSY);
        c->watched = true;
}

/* A queue of which a part is read is as if it had been read whole: so a question, which reads it
 * whole, finds. */
static void a_long_queue_is_read_in_part(void **state)
{
        struct crowd c = {.prng = {7}, .observer = pump_id(a)};
        struct snib__reply r;

        for (int i = 0; i < 3000; i++) {
                uint64_t lot = snib__prng_below(&c.prng, 100);

                if (lot < 45)
                        crowd_joins(&c);
                else if (lot < 70)
                        crowd_releases(&c);
                else if (lot < 99 && c.waiters)
                        crowd_moves(&c, lot < 90);
                else if (lot == 99 && !c.watched)
                        crowd_is_watched(&c);
                pump_forget(a);
                r = query(a, "crowd");
                assert_int_equal(r.status, SNIB__INFO);
                assert_int_equal(r.waiters, c.waiters);
                assert_string_equal(r.holder.id.text, c.holder.text);
        }
}

static struct snib__reply join(int kind, struct snib__id id)
{
        struct snib__op op = op_of(a, SNIB__ACQUIRE, kind, "thing", id, 1);

        op.number = 1;
        return pump_do(a, &op);
}

/* Where not all wait for the same, the last may be such as could sit if it were the first. */
static void who_comes_last_waits_its_turn(void **state)
{
        struct snib__id reader = pump_id(a), writer = pump_id(a);

        assert_int_equal(join(SNIB_KIND_READ, reader).status, SNIB__GRANTED);
        assert_int_equal(join(SNIB_KIND_WRITE, writer).position, 1);
        for (int i = 2; i < 6; i++)
                assert_int_equal(join(SNIB_KIND_READ, pump_id(a)).position, i);
        assert_int_equal(ask(a, SNIB__RELEASE, SNIB_KIND_READ, "thing", reader, 1).status, SNIB__RELEASED);
        assert_string_equal(query(a, "thing").holder.id.text, writer.text);
        assert_int_equal(query(a, "thing").waiters, 4);
}

/* Who leaves lets in more than were read. */
static void those_behind_the_part_that_was_read_get_in(void **state)
{
        struct snib__id writer = pump_id(a);

        assert_int_equal(join(SNIB_KIND_WRITE, writer).status, SNIB__GRANTED);
        for (int i = 0; i < 6; i++)
                assert_int_equal(join(SNIB_KIND_READ, pump_id(a)).position, i + 1);
        assert_int_equal(join(SNIB_KIND_WRITE, pump_id(a)).position, 7);
        assert_int_equal(join(SNIB_KIND_READ, pump_id(a)).position, 8);
        assert_int_equal(ask(a, SNIB__RELEASE, SNIB_KIND_WRITE, "thing", writer, 1).status, SNIB__RELEASED);
        assert_int_equal(query(a, "thing").holders, 6);
        assert_int_equal(query(a, "thing").waiters, 2);
}

/* Two readers and a waiting writer; two permits and a waiter; a register; a latch. */
static void furnish(struct snib__id ids[5])
{
        struct snib__op write = op_of(a, SNIB__WRITE, SNIB_KIND_REGISTER, "register", pump_id(a), 1);

        for (int i = 0; i < 5; i++)
                ids[i] = pump_id(a);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_READ, "rw", ids[0], 1);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_READ, "rw", ids[1], 1);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_WRITE, "rw", ids[2], 1);
        change(a, SNIB__SET, SNIB_KIND_PERMITS, "permits", 2);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "permits", ids[3], 2);
        ask(a, SNIB__ACQUIRE, SNIB_KIND_PERMITS, "permits", ids[4], 1);
        change(a, SNIB__SET, SNIB_KIND_LATCH, "latch", 2);
        change(a, SNIB__SET, SNIB_KIND_SEMAPHORE, "semaphore", 2);
        assert_true(pump_do(a, &write).applied);
}

static const struct {
        const char *name;
        const char *sql;
} damages[] = {
    {"rw", "UPDATE object SET flags=-1"},
    {"rw", "UPDATE object SET flags=16"},
    {"rw", "UPDATE object SET flags=4294967302"},
    {"rw", "UPDATE object SET flags=9223372036854775807"},
    {"rw", "UPDATE object SET flags=15"},
    {"rw", "DELETE FROM seat"},
    {"rw", "UPDATE seat SET kind=-1"},
    {"rw", "UPDATE seat SET kind=0"},
    {"rw", "UPDATE seat SET kind=9223372036854775807"},
    {"rw", "UPDATE seat SET kind=6; UPDATE object SET kind=6"},
    {"rw", "UPDATE object SET kind=-1"},
    {"rw", "UPDATE object SET kind=-2"},
    {"rw", "UPDATE object SET kind=8"},
    {"rw", "UPDATE object SET kind=4294967301"},
    {"rw", "UPDATE seat SET id=''"},
    {"rw", "UPDATE seat SET id='two words'"},
    {"rw", "UPDATE seat SET id='a'||char(7)"},
    {"rw", "UPDATE seat SET id=x'ff00fe'"},
    {"rw", "UPDATE seat SET id='a'||char(0)||'b'"},
    {"rw", "UPDATE seat SET id=printf('%.*c',64,'i')"},
    {"rw", "UPDATE seat SET id=printf('%.*c',100000,'i')"},
    {"rw", "UPDATE seat SET id=(SELECT id FROM object WHERE name='rw')"},
    {"rw", "UPDATE seat SET id=(SELECT id FROM waiter WHERE name='rw')"},
    {"rw", "UPDATE object SET id=''"},
    {"rw", "UPDATE object SET id='\xc3\xa4'"},
    {"rw", "UPDATE object SET token=-1"},
    {"rw", "UPDATE object SET token=1"},
    {"rw", "UPDATE seat SET token=0"},
    {"rw", "UPDATE seat SET token=9223372036854775807"},
    {"rw", "UPDATE seat SET claimed=7"},
    {"rw", "UPDATE seat SET number=5"},
    {"rw", "UPDATE waiter SET number=0"},
    {"rw", "UPDATE waiter SET number=-1"},
    {"rw", "UPDATE waiter SET number=4294967296"},
    {"rw", "UPDATE waiter SET kind=7"},
    {"rw", "UPDATE waiter SET kind=5, id='x:1' WHERE name='rw'; UPDATE object SET id='', flags=4"},
    {"rw", "UPDATE waiter SET observer=2"},
    {"rw", "DELETE FROM waiter"},
    {"permits", "UPDATE content SET value=-1"},
    {"permits", "UPDATE content SET value=4294967296"},
    {"permits", "UPDATE content SET version=1"},
    {"permits", "UPDATE content SET value=9 WHERE name='permits'"}, /* the waiter could sit */
    {"permits", "DELETE FROM content"},
    {"permits", "UPDATE seat SET number=0"},
    {"permits", "UPDATE seat SET number=-1"},
    {"permits", "UPDATE seat SET number=70000"},
    {"latch", "UPDATE content SET value=0"},
    {"latch", "DELETE FROM content"},
    {"semaphore", "UPDATE content SET value=-4294967296"},
    {"register", "UPDATE content SET version=0"},
    {"register", "UPDATE content SET version=9223372036854775807"},
    {"register", "UPDATE content SET value=1"},
};

/* A listing leaves out what says that it is nothing. */
static bool is_listed(const char *sql)
{
        return !strstr(sql, "object SET kind=-1");
}

static void F133_damaged_rows_are_told_and_crash_nothing(void **state)
{
        for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
                const char *name = damages[i].name;
                struct snib__reply r;
                struct snib__id ids[5];
                int kind;

                furnish(ids);
                kind = query(a, name).kind;
                run_sql(dir, damages[i].sql);
                for (enum snib__verb verb = SNIB__ACQUIRE; verb <= SNIB__DELETE; verb++) {
                        r = ask(a, verb, kind, name, pump_id(a), 1);
                        if (r.status != SNIB__FAILED || r.error != SNIB_ECORRUPT)
                                fail_msg("%s: verb %d answers status %d, error %d", damages[i].sql, (int)verb,
                                         (int)r.status, r.error);
                }
                assert_non_null(strstr(r.error_text, "are damaged"));
                (void)pump_list(a);
                if (is_listed(damages[i].sql)) {
                        r = pump_answer(a, a->attempts);
                        assert_int_equal(r.error, SNIB_ECORRUPT);
                        assert_non_null(strstr(r.error_text, "the rows of '"));
                }
                assert_int_equal(acquire(a, "another", ids[0], LEASE).status, SNIB__GRANTED);
                pump_forget(a);
                run_sql(dir, "DELETE FROM object;DELETE FROM seat;DELETE FROM waiter;DELETE FROM memory;DELETE FROM "
                             "content");
        }
}

/* Another version's: nothing is touched, and with that version it goes on. */
static void a_record_of_an_unknown_kind_is_refused_and_left_alone(void **state)
{
        static const struct {
                const char *sql, *back;
        } strange[] = {
            {"UPDATE object SET kind=kind+1000 WHERE name='rw'", "UPDATE object SET kind=kind-1000 WHERE name='rw'"},
            {"UPDATE object SET kind=kind+2147483640 WHERE name='rw'",
             "UPDATE object SET kind=kind-2147483640 WHERE name='rw'"},
            {"UPDATE seat SET kind=kind+1000 WHERE name='rw'", "UPDATE seat SET kind=kind-1000 WHERE name='rw'"},
            {"UPDATE waiter SET kind=kind+1000 WHERE name='rw'", "UPDATE waiter SET kind=kind-1000 WHERE name='rw'"},
        };
        struct snib__id ids[5];
        struct snib__reply r;

        furnish(ids);
        for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
                run_sql(dir, strange[i].sql);
                for (enum snib__verb verb = SNIB__ACQUIRE; verb <= SNIB__DELETE; verb++) {
                        r = ask(a, verb, SNIB_KIND_WRITE, "rw", pump_id(a), 1);
                        if (r.status != SNIB__FAILED || r.error != SNIB_EUNSUPPORTED)
                                fail_msg("%s: verb %d answers status %d, error %d", strange[i].sql, (int)verb,
                                         (int)r.status, r.error);
                        assert_null(strstr(r.error_text, "damaged"));
                        assert_non_null(strstr(r.error_text, "'rw' in "));
                }
                a->engine->ops->list(a->engine, (struct snib__tag){.object = a, .cookie = 7, .attempt = ++a->attempts},
                                     pump_now());
                r = pump_answer(a, a->attempts);
                assert_int_equal(r.error, SNIB_EUNSUPPORTED);
                pump_forget(a);
                run_sql(dir, strange[i].back);
                assert_int_equal(query(a, "rw").holders, 2);
        }
        assert_int_equal(ask(a, SNIB__RENEW, SNIB_KIND_READ, "rw", ids[0], 1).status, SNIB__RENEWED);
}

/* A dead client's name that is in a damaged record is no reason not to open. */
static void F133_a_damaged_record_of_the_dead_does_not_keep_others_out(void **state)
{
        struct pump *b;
        struct proc reader[2];

        start(&reader[0], 10, SNIB_KIND_READ, 1, 'h');
        start(&reader[1], 11, SNIB_KIND_READ, 1, 'h');
        run_sql(dir, "UPDATE seat SET kind=-7");
        proc_kill(&reader[0], SIGKILL);
        proc_kill(&reader[1], SIGKILL);
        b = pump_connect(url, 12);
        assert_int_equal(ask(b, SNIB__ACQUIRE, SNIB_KIND_WRITE, "thing", pump_id(b), 1).error, SNIB_ECORRUPT);
        pump_close(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, open_one, close_one)
            T(F133_kill_9_of_the_last_reader_lets_the_writer_in_at_once),
            T(F133_kill_9_of_a_crowd_of_readers_lets_the_writer_in_at_once),
            T(F133_a_dead_reader_is_no_obstacle),
            T(F133_kill_9_of_a_permit_holder_frees_its_permits),
            T(F133_a_dead_taker_of_a_semaphore),
            T(F133_kill_9_of_the_leader_is_observed_at_once),
            T(F133_those_who_were_seated_together_are_watched),
            T(closing_a_client_frees_all_it_has),
            T(a_semaphore_wait_is_woken_by_another_process),
            T(a_latch_opened_elsewhere_wakes_all),
            T(the_observer_of_a_register_is_told),
            T(F88_F89_dead_waiters_are_skipped_in_exact_order),
            T(a_waiting_writer_is_not_overtaken),
            T(a_register_holds_a_mebibyte),
            T(a_value_is_copied_while_it_waits_for_the_gate),
            T(a_repeated_change_counts_once),
            T(permits_are_released_by_their_ids),
            T(the_listing_knows_every_kind),
            T(kinds_do_not_mix),
            T(memory_that_is_missing_is_told),
            T(a_semaphore_remembers_who_took),
            T(F133_a_damaged_memory_is_refused),
            T(a_long_queue_is_read_in_part),
            T(who_comes_last_waits_its_turn),
            T(those_behind_the_part_that_was_read_get_in),
            T(F133_damaged_rows_are_told_and_crash_nothing),
            T(a_record_of_an_unknown_kind_is_refused_and_left_alone),
            T(F133_a_damaged_record_of_the_dead_does_not_keep_others_out),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
