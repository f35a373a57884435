/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mem: engine through engine.h: completions, hand-over between clients, expiry, death, listing,
 * fork, and every allocation failing in turn. Time is a parameter; nothing sleeps. The thread test
 * counts under the lock what a race would lose.
 */

#include "base/alloc.h"
#include "engine/around.h"
#include "engine/mem/mem.h"
#include "engine/mem/space.h"
#include "model/record.h"
#include "unit.h"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS SNIB__MS

static const struct snib__engine_ops *const ops = &snib__mem_engine;

/* Opens a client whose uuid is made of one digit. */
static int try_open(struct snib__engine **ret, const char *text, char digit, struct snib_error *err)
{
        struct snib__engine_config config = {.timeout_ms = 1000};
        struct snib__url url;
        int r = snib__url_parse(text, &url, err);

        if (r < 0)
                return r;
        memset(config.uuid, digit, sizeof(config.uuid) - 1);
        config.url = &url;
        r = ops->open(ret, &config, 0, err);
        snib__url_wipe(&url);
        return r;
}

static struct snib__engine *open_client(const char *text, char digit)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__engine *e = NULL;
        struct snib__note note;

        if (try_open(&e, text, digit, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        ops->process(e, NULL, 0);
        assert_true(ops->next(e, &note));
        assert_int_equal(note.kind, SNIB__NOTE_LINK_UP);
        assert_false(ops->next(e, &note));
        return e;
}

static struct snib__id id_of(char digit, int n)
{
        struct snib__id id = {{0}};

        memset(id.text, digit, 36);
        (void)snprintf(id.text + 36, sizeof(id.text) - 36, ":%d", n);
        return id;
}

static struct snib__name name_of(const char *text)
{
        return (struct snib__name){text, strlen(text)};
}

static bool submit(struct snib__engine *e, enum snib__verb verb, const char *name, struct snib__id id, int64_t lease_ms,
                   snib__ns now)
{
        struct snib__op op = {.verb = verb, .enqueue = true, .name = name_of(name), .id = id, .lease_ms = lease_ms};

        return ops->submit(e, (struct snib__tag){e, 42, 7}, &op, now);
}

/* The next note, which must be of this kind. */
static struct snib__note expect(struct snib__engine *e, enum snib__note_kind kind)
{
        struct snib__note note = {0};

        assert_true(ops->next(e, &note));
        assert_int_equal(note.kind, kind);
        return note;
}

static void expect_nothing(struct snib__engine *e)
{
        struct snib__note note;

        assert_false(ops->next(e, &note));
}

/* One request and its reply, which must be the only note. */
static struct snib__reply ask(struct snib__engine *e, enum snib__verb verb, const char *name, struct snib__id id,
                              int64_t lease_ms, snib__ns now)
{
        struct snib__note note;

        submit(e, verb, name, id, lease_ms, now);
        ops->process(e, NULL, now);
        note = expect(e, SNIB__NOTE_REPLY);
        assert_ptr_equal(note.tag.object, e);
        assert_int_equal(note.tag.cookie, 42);
        assert_int_equal(note.tag.attempt, 7);
        expect_nothing(e);
        return note.reply;
}

/* The same with a request that is written out; the id and the name are given. */
static struct snib__reply ask_op(struct snib__engine *e, struct snib__op op, const char *name, struct snib__id id)
{
        struct snib__note note;

        op.name = name_of(name);
        op.id = id;
        op.lease_ms = 60000;
        op.enqueue = true;
        ops->submit(e, (struct snib__tag){e, 42, 7}, &op, 0);
        ops->process(e, NULL, 0);
        note = expect(e, SNIB__NOTE_REPLY);
        expect_nothing(e);
        return note.reply;
}

static bool readable(struct snib__engine *e, snib__ns now)
{
        struct snib__interest interest;

        ops->interest(e, now, &interest);
        assert_int_equal(interest.count, 1);

        struct pollfd p = {.fd = interest.fds[0].fd, .events = interest.fds[0].events};

        return poll(&p, 1, 0) == 1;
}

static snib__ns due(struct snib__engine *e, snib__ns now)
{
        struct snib__interest interest;

        ops->interest(e, now, &interest);
        return interest.deadline;
}

static void completion_comes_with_process(void **state)
{
        struct snib__engine *a = open_client("mem:", 'a');

        (void)state;
        assert_true(due(a, 5) == SNIB__NEVER);
        submit(a, SNIB__ACQUIRE, "n", id_of('a', 1), 1000, 5);
        submit(a, SNIB__RELEASE, "n", id_of('a', 1), 0, 5);
        expect_nothing(a);
        assert_true(due(a, 5) == 5); /* at once */
        ops->process(a, NULL, 5);
        assert_true(due(a, 6) == 6); /* still something to take */
        assert_int_equal(expect(a, SNIB__NOTE_REPLY).reply.status, SNIB__GRANTED);
        assert_int_equal(expect(a, SNIB__NOTE_REPLY).reply.status, SNIB__RELEASED);
        expect_nothing(a);
        assert_true(due(a, 6) == SNIB__NEVER);
        ops->close(a);
}

static void hand_over_wakes_the_other_client(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b'),
                            *c = open_client("mem:x", 'c');

        (void)state;
        int64_t token = ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0).token;

        assert_int_equal(ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 0).position, 1);
        assert_int_equal(ask(c, SNIB__ACQUIRE, "n", id_of('c', 1), 60000, 0).position, 2);
        assert_false(readable(b, 0));
        assert_int_equal(ask(a, SNIB__RELEASE, "n", id_of('a', 1), 0, MS).status, SNIB__RELEASED);
        assert_true(readable(b, MS));
        ops->process(b, NULL, MS);

        struct snib__note note = expect(b, SNIB__NOTE_GRANTED);
        struct snib__id id = id_of('b', 1);

        assert_true(snib__id_equal(&note.id, &id));
        assert_int_equal(note.name.length, 1);
        assert_memory_equal(note.name.bytes, "n", 1);
        expect_nothing(b);
        assert_false(readable(b, MS));

        struct snib__reply reply = ask(b, SNIB__ACQUIRE, "n", id, 60000, MS);

        assert_int_equal(reply.status, SNIB__GRANTED);
        assert_true(reply.token > token);
        ops->process(c, NULL, MS);
        expect_nothing(c); /* one release wakes one waiter */
        ops->close(a);
        ops->close(b);
        ops->close(c);
}

/* It is told the number of its latest request, and holds for its whole lease. */
static void a_waiter_that_numbers_its_requests_need_not_ask(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');
        int64_t token = ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0).token;
        struct snib__note note;

        (void)state;
        for (uint32_t number = 1; number <= 2; number++) {
                struct snib__op op = {.verb = SNIB__ACQUIRE, .number = number};

                assert_int_equal(ask_op(b, op, "n", id_of('b', 1)).status, SNIB__BUSY);
        }
        (void)ask(a, SNIB__RELEASE, "n", id_of('a', 1), 0, MS);
        ops->process(b, NULL, MS);
        note = expect(b, SNIB__NOTE_GRANTED);
        assert_int_equal(note.tag.attempt, 2);
        assert_true(note.reply.token > token);
        assert_true(due(b, MS) == 60001 * MS);
        assert_int_equal(ask(b, SNIB__RELEASE, "n", id_of('b', 1), 0, MS).status, SNIB__RELEASED);
        ops->close(a);
        ops->close(b);
}

static void expiry_is_seen_by_a_waiting_client(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');

        (void)state;
        (void)ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 1000, 0);
        (void)ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 0);
        assert_true(due(b, 0) == 1000 * MS);
        ops->process(b, NULL, 999 * MS);
        expect_nothing(b);
        ops->process(b, NULL, due(b, 999 * MS));
        (void)expect(b, SNIB__NOTE_GRANTED);
        assert_true(readable(a, 1000 * MS));
        ops->process(a, NULL, 1000 * MS);
        (void)expect(a, SNIB__NOTE_ENDED);
        assert_true(due(b, 1000 * MS) == (1000 + SNIB__CLAIM_MS) * MS); /* unless b confirms */
        ops->close(a);
        ops->close(b);
}

/* b sleeps until its place must be renewed; the hold that follows ends sooner, and its client may
 * be stuck. */
static void earlier_end_wakes_who_sleeps_too_long(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b'),
                            *c = open_client("mem:x", 'c');

        (void)state;
        (void)ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0);
        (void)ask(c, SNIB__ACQUIRE, "n", id_of('c', 1), 3000, 0);
        (void)ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 0);
        assert_true(due(b, 0) == SNIB__WAITER_LEASE_MS * MS);

        struct snib__interest before;

        ops->interest(b, 0, &before);
        (void)ask(a, SNIB__RELEASE, "n", id_of('a', 1), 0, MS);

        struct pollfd p = {.fd = before.fds[0].fd, .events = POLLIN};

        assert_int_equal(poll(&p, 1, 0), 1);
        ops->process(b, NULL, MS);
        expect_nothing(b);
        assert_true(due(b, MS) == 3001 * MS);
        ops->process(b, NULL, 2500 * MS);
        assert_int_equal(ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 2500 * MS).status,
                         SNIB__BUSY); /* it is still there */
        ops->process(b, NULL, due(b, 2500 * MS));
        (void)expect(b, SNIB__NOTE_GRANTED);
        ops->close(a);
        ops->close(b);
        ops->close(c);
}

static void force_tells_the_holder(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');

        (void)state;
        (void)ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0);
        assert_true(ask(b, SNIB__FORCE, "n", id_of('b', 1), 0, 0).held);
        assert_false(ask(b, SNIB__FORCE, "n", id_of('b', 1), 0, 0).held);
        ops->process(a, NULL, 0);
        (void)expect(a, SNIB__NOTE_ENDED);
        expect_nothing(a);
        assert_int_equal(ask(a, SNIB__RENEW, "n", id_of('a', 1), 60000, 0).status, SNIB__GONE);
        ops->close(a);
        ops->close(b);
}

static void what_was_left_outlives_its_client(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');
        struct snib__op leave = {
            .verb = SNIB__RENEW, .name = {"n", 1}, .id = id_of('a', 1), .n = 1, .lease_ms = 5000, .leave = true};

        (void)state;
        (void)ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0);
        ops->submit(a, (struct snib__tag){0}, &leave, 0);
        ops->process(a, NULL, 0);
        assert_int_equal(expect(a, SNIB__NOTE_REPLY).reply.status, SNIB__RENEWED);
        ops->close(a);
        assert_int_equal(ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 4999 * MS).status, SNIB__BUSY);
        assert_int_equal(ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 5000 * MS).status, SNIB__GRANTED);
        ops->close(b);
}

static void close_is_death(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');

        (void)state;
        /* a holds one, waits twice for another, and is first and last in its queue. */
        (void)ask(a, SNIB__ACQUIRE, "held", id_of('a', 1), 60000, 0);
        (void)ask(b, SNIB__ACQUIRE, "held", id_of('b', 1), 60000, 0);
        (void)ask(b, SNIB__ACQUIRE, "waits", id_of('b', 2), 60000, 0);
        (void)ask(a, SNIB__ACQUIRE, "waits", id_of('a', 2), 60000, 0);
        (void)ask(b, SNIB__ACQUIRE, "waits", id_of('b', 3), 60000, 0);
        (void)ask(a, SNIB__ACQUIRE, "waits", id_of('a', 3), 60000, 0);
        ops->close(a);
        ops->process(b, NULL, 0);

        struct snib__note note = expect(b, SNIB__NOTE_GRANTED);

        assert_memory_equal(note.name.bytes, "held", 4);
        expect_nothing(b);
        assert_int_equal(ask(b, SNIB__QUERY, "waits", id_of('b', 9), 0, 0).waiters, 1);
        ops->close(b);
}

/* The client has exactly this note, and was woken for it. */
static void expect_woken(struct snib__engine *e, enum snib__note_kind kind, struct snib__id id)
{
        struct snib__note note;

        assert_true(readable(e, 0));
        ops->process(e, NULL, 0);
        note = expect(e, kind);
        assert_true(snib__id_equal(&note.id, &id));
        expect_nothing(e);
}

static void a_latch_wakes_every_client(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b'),
                            *c = open_client("mem:x", 'c');
        struct snib__op set = {.verb = SNIB__SET, .kind = SNIB_KIND_LATCH, .n = 1};
        struct snib__op await = {.verb = SNIB__ACQUIRE, .kind = SNIB_KIND_LATCH, .n = 1};
        struct snib__op down = {.verb = SNIB__ADD, .kind = SNIB_KIND_LATCH, .n = -1};

        (void)state;
        assert_true(ask_op(a, set, "n", id_of('a', 1)).applied);
        assert_int_equal(ask_op(b, await, "n", id_of('b', 1)).status, SNIB__BUSY);
        assert_int_equal(ask_op(c, await, "n", id_of('c', 1)).status, SNIB__BUSY);
        assert_true(ask_op(a, down, "n", id_of('a', 2)).applied);
        assert_true(ask_op(a, down, "n", id_of('a', 2)).applied); /* remembered */
        assert_false(ask_op(a, down, "n", id_of('a', 3)).applied);
        expect_woken(b, SNIB__NOTE_GRANTED, id_of('b', 1));
        expect_woken(c, SNIB__NOTE_GRANTED, id_of('c', 1));
        ops->close(a);
        ops->close(b);
        ops->close(c);
}

static void readers_of_several_clients_go_in_together(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b'),
                            *c = open_client("mem:x", 'c');
        struct snib__op read = {.verb = SNIB__ACQUIRE, .kind = SNIB_KIND_READ, .n = 1};
        struct snib__op write = {.verb = SNIB__ACQUIRE, .kind = SNIB_KIND_WRITE, .n = 1};

        (void)state;
        assert_int_equal(ask_op(a, write, "n", id_of('a', 1)).status, SNIB__GRANTED);
        for (int i = 1; i <= 20; i++) {
                assert_int_equal(ask_op(b, read, "n", id_of('b', i)).status, SNIB__BUSY);
                assert_int_equal(ask_op(c, read, "n", id_of('c', i)).position, 2 * i);
        }
        ops->close(a); /* is death */
        for (int i = 0; i < 2; i++) {
                struct snib__engine *e = i ? c : b;

                ops->process(e, NULL, 0);
                for (int k = 1; k <= 20; k++)
                        (void)expect(e, SNIB__NOTE_GRANTED);
                expect_nothing(e);
        }
        assert_int_equal(ask(b, SNIB__QUERY, "other", id_of('b', 99), 0, 0).status, SNIB__INFO);
        ops->close(b);
        write.verb = SNIB__QUERY;
        assert_int_equal(ask_op(c, write, "n", id_of('c', 99)).holders, 20);
        ops->close(c);
}

static void a_register_owns_its_value(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');
        char text[] = "first";
        struct snib__op write = {.verb = SNIB__WRITE, .kind = SNIB_KIND_REGISTER, .data = text, .data_length = 5};
        struct snib__op query = {.verb = SNIB__QUERY, .kind = SNIB_KIND_REGISTER};
        struct snib__op watch = {.verb = SNIB__OBSERVE, .kind = SNIB_KIND_REGISTER};
        struct snib__reply reply;
        int64_t version;

        (void)state;
        version = ask_op(a, write, "n", id_of('a', 1)).value;
        assert_true(version > 0);
        memset(text, 'x', 5);
        reply = ask_op(b, query, "n", id_of('b', 1));
        assert_int_equal(reply.data_length, 5);
        assert_memory_equal(reply.data, "first", 5);
        assert_true(reply.held && reply.token == version);
        assert_false(ask_op(a, write, "n", id_of('a', 2)).applied); /* expects none */
        watch.token = version;
        assert_int_equal(ask_op(b, watch, "n", id_of('b', 2)).status, SNIB__BUSY);
        reply = ask_op(b, query, "n", id_of('b', 3));
        write.expected = version;
        write.data_length = 0;
        assert_true(ask_op(a, write, "n", id_of('a', 3)).applied);
        assert_memory_equal(reply.data, "first", 5); /* until b's next process() */
        expect_woken(b, SNIB__NOTE_GRANTED, id_of('b', 2));
        reply = ask_op(b, watch, "n", id_of('b', 2));
        assert_true(reply.status == SNIB__INFO && reply.token > version && reply.data_length == 0);
        write.verb = SNIB__DELETE;
        write.expected = -1;
        assert_true(ask_op(a, write, "n", id_of('a', 4)).applied);
        assert_false(ask_op(b, query, "n", id_of('b', 4)).held);
        ops->close(a);
        ops->close(b);
}

static void death_ends_permits_and_costs_a_semaphore_its_own(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');
        static const int kinds[] = {SNIB_KIND_PERMITS, SNIB_KIND_SEMAPHORE};

        (void)state;
        for (int i = 0; i < 2; i++) {
                const char *name = i ? "semaphore" : "permits";
                struct snib__op set = {.verb = SNIB__SET, .kind = kinds[i], .n = 200};
                struct snib__op take = {.verb = SNIB__ACQUIRE, .kind = kinds[i], .n = 150};

                assert_true(ask_op(a, set, name, id_of('a', 10 + i)).applied);
                assert_int_equal(ask_op(a, take, name, id_of('a', 20 + i)).status, SNIB__GRANTED);
                assert_int_equal(ask_op(b, take, name, id_of('b', 20 + i)).status, SNIB__BUSY);
        }
        ops->close(a);
        expect_woken(b, SNIB__NOTE_GRANTED, id_of('b', 20));
        ops->list(b, (struct snib__tag){NULL, 9, 0}, 0);
        ops->process(b, NULL, 0);

        struct snib__note permits = expect(b, SNIB__NOTE_LISTED), semaphore = expect(b, SNIB__NOTE_LISTED);

        assert_true(permits.reply.kind == SNIB_KIND_PERMITS && permits.reply.value == 50);
        assert_true(semaphore.reply.kind == SNIB_KIND_SEMAPHORE && semaphore.reply.value == 50);
        (void)expect(b, SNIB__NOTE_REPLY);
        ops->close(b);
}

/* What is remembered only is kept no longer than it must be, and what exists as long as the
 * namespace. */
static void what_ends_by_time_is_due(void **state)
{
        struct snib__engine *a = open_client("mem:", 'a');
        struct snib__op set = {.verb = SNIB__SET, .kind = SNIB_KIND_SEMAPHORE, .n = 2, .ttl_ms = 3000};
        struct snib__op forget = {.verb = SNIB__DELETE, .kind = SNIB_KIND_SEMAPHORE};

        (void)state;
        assert_true(ask_op(a, set, "brief", id_of('a', 1)).applied);
        assert_true(due(a, 0) == 3000 * MS);
        ops->process(a, NULL, 3000 * MS);
        assert_true(due(a, 3000 * MS) == SNIB__DONE_MS * MS);
        forget.name = name_of("brief");
        ops->process(a, NULL, SNIB__DONE_MS * MS);
        assert_true(due(a, SNIB__DONE_MS * MS) == SNIB__NEVER);
        assert_false(ask_op(a, forget, "brief", id_of('a', 2)).applied);
        ops->close(a);
}

static void what_ends_by_time_takes_no_memory(void **state)
{
        struct snib__engine *a = open_client("mem:over", 'a');
        struct snib__interest wants;
        uint64_t before;

        (void)state;
        assert_int_equal(ask(a, SNIB__OBSERVE, "x", id_of('a', 1), 0, 0).status, SNIB__BUSY);
        before = snib__alloc_count;
        ops->process(a, NULL, SNIB__WAITER_LEASE_MS * MS);
        assert_int_equal(snib__alloc_count, before);
        ops->interest(a, SNIB__WAITER_LEASE_MS * MS, &wants);
        assert_true(wants.deadline == SNIB__NEVER);
        ops->close(a);
}

static void namespaces_are_apart(void **state)
{
        struct snib__engine *a = open_client("mem:one", 'a'), *b = open_client("mem:two", 'b');

        (void)state;
        assert_int_equal(ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0).status, SNIB__GRANTED);
        assert_int_equal(ask(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 0).status, SNIB__GRANTED);
        ops->close(a);
        ops->close(b);
}

/* The wall clock, as far as the engine is concerned (linked with --wrap). */
static int64_t wall_shift_s;
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
        int r = __real_clock_gettime(clock, ret);

        if (clock == CLOCK_REALTIME)
                ret->tv_sec += wall_shift_s;
        return r;
}

/* The namespace is gone, and the wall clock is back where it was before its tokens. */
static void tokens_outlive_the_namespace(void **state)
{
        int64_t token = 0;

        (void)state;
        for (int i = 0; i < 3; i++) {
                struct snib__engine *a = open_client("mem:brief", 'a');
                struct snib__reply reply = ask(a, SNIB__ACQUIRE, "n", id_of('a', i), 60000, 0);

                assert_true(reply.token > token);
                token = reply.token;
                ops->close(a);
                wall_shift_s -= 3600;
        }
        wall_shift_s = 0;
}

static void free_locks_do_not_pile_up(void **state)
{
        struct snib__engine *a = open_client("mem:", 'a');
        int64_t highest = 0;
        char name[32];

        (void)state;
        for (int round = 0; round < 2; round++)
                for (int i = 0; i < 2000; i++) {
                        (void)snprintf(name, sizeof(name), "n%d", i);

                        int64_t token = ask(a, SNIB__ACQUIRE, name, id_of('a', 1), 60000, 0).token;

                        assert_true(token > 0);
                        if (round == 1 && i == 0)
                                assert_true(token > highest); /* also for a name that was forgotten in between */
                        if (i == 0)
                                highest = token;
                        assert_int_equal(ask(a, SNIB__RELEASE, name, id_of('a', 1), 0, 0).status, SNIB__RELEASED);
                }

        /* Warm: a pair allocates nothing. */
        uint64_t before = snib__alloc_count;

        (void)ask(a, SNIB__ACQUIRE, name, id_of('a', 1), 60000, 0);
        (void)ask(a, SNIB__RELEASE, name, id_of('a', 1), 0, 0);
        assert_int_equal(snib__alloc_count, before);
        (void)ask(a, SNIB__QUERY, "n0", id_of('a', 1), 0, 0);
        assert_true(snib__alloc_count > before); /* "n0" was not kept: there is a bound */
        ops->close(a);
}

static void list_shows_what_is_held(void **state)
{
        struct snib__engine *a = open_client("mem:", 'a');
        const char *held[] = {"n1", "n3"};

        (void)state;
        for (int i = 0; i < 5; i++) {
                char name[16];

                (void)snprintf(name, sizeof(name), "n%d", i);
                (void)ask(a, SNIB__ACQUIRE, name, id_of('a', i), i == 4 ? 10 : 60000, 0);
                if (i % 2 == 0 && i < 4)
                        (void)ask(a, SNIB__RELEASE, name, id_of('a', i), 0, 0);
        }
        ops->list(a, (struct snib__tag){NULL, 9, 0}, 10 * MS); /* n4's lease is over */
        ops->process(a, NULL, 10 * MS);
        (void)expect(a, SNIB__NOTE_ENDED);
        for (int i = 0; i < 2; i++) {
                struct snib__note note = expect(a, SNIB__NOTE_LISTED);

                assert_int_equal(note.tag.cookie, 9);
                assert_int_equal(note.name.length, 2);
                assert_memory_equal(note.name.bytes, held[i], 2);
                assert_int_equal(note.reply.status, SNIB__INFO);
                assert_true(note.reply.held && note.reply.left_ms == 59990);
        }

        struct snib__note end = expect(a, SNIB__NOTE_REPLY);

        assert_int_equal(end.tag.cookie, 9);
        assert_int_equal(end.reply.status, SNIB__INFO);
        expect_nothing(a);
        ops->close(a);
}

static void bad_urls_are_refused(void **state)
{
        static const char *const urls[] = {"mem://host", "mem:?db=1", "mem:x?timeou=1s"};
        struct snib__engine *e = NULL;

        (void)state;
        for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
                struct snib_error err = SNIB_ERROR_INIT;

                assert_int_equal(try_open(&e, urls[i], 'a', &err), SNIB_EURL);
                assert_non_null(strchr(err.text, ';'));
                assert_null(e);
        }
}

/* Writes a register and reads it: how many of the two requests were taken. */
static int submit_value(struct snib__engine *e, const char *name, struct snib__id id)
{
        struct snib__op op = {.verb = SNIB__WRITE,
                              .kind = SNIB_KIND_REGISTER,
                              .name = name_of(name),
                              .id = id,
                              .expected = -1,
                              .data = "value",
                              .data_length = 5};

        int taken = ops->submit(e, (struct snib__tag){0}, &op, 0);

        op.verb = SNIB__QUERY;
        return taken + ops->submit(e, (struct snib__tag){0}, &op, 0);
}

/* Fails the n-th allocation of a scene, for every n until none fails. Whatever happens, every
 * request is refused or completed once, and what was answered is true. */
static void allocation_failures_lose_nothing(void **state)
{
        uint64_t n = 0, failed = 0;
        bool refused = true;

        (void)state;
        while (refused) {
                struct snib_error err = SNIB_ERROR_INIT;
                struct snib__engine *a = open_client("mem:alloc", 'a'), *b = NULL;
                struct snib__note note;
                int taken = 0, replies = 0, listed = 0, r;
                bool granted = false;

                snib__alloc_fail_at = snib__alloc_count + ++n;
                r = try_open(&b, "mem:alloc", 'b', &err);
                if (r < 0) {
                        assert_int_equal(r, SNIB_ENOMEM);
                } else {
                        taken += submit(b, SNIB__ACQUIRE, "n", id_of('b', 1), 60000, 0);
                        taken += submit(b, SNIB__ACQUIRE, "n", id_of('b', 2), 60000, 0);
                        taken += ops->list(b, (struct snib__tag){0}, 0);
                        taken += submit(b, SNIB__RELEASE, "n", id_of('b', 1), 0, 0);
                        taken += submit_value(b, "r", id_of('b', 3));
                        ops->process(b, NULL, 0);
                        while (ops->next(b, &note)) {
                                replies += note.kind == SNIB__NOTE_REPLY;
                                listed += note.kind == SNIB__NOTE_LISTED;
                                if (note.kind == SNIB__NOTE_REPLY && note.reply.status == SNIB__FAILED)
                                        assert_int_equal(note.reply.error, SNIB_ENOMEM);
                                granted |= note.kind == SNIB__NOTE_REPLY && note.reply.status == SNIB__GRANTED;
                        }
                        assert_int_equal(replies, taken);
                        assert_in_range(taken, 5, 6);
                        assert_in_range(listed, 0, 1);
                }
                refused = snib__alloc_count >= snib__alloc_fail_at;
                snib__alloc_fail_at = 0;
                failed += refused;
                if (!refused)
                        assert_true(granted && taken == 6);
                if (r == 0)
                        ops->close(b);
                /* Nothing is left behind. */
                assert_int_equal(ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0).status, SNIB__GRANTED);
                ops->close(a);
        }
        assert_in_range(failed, 8, 40);
}

/* What the child of forked_copy_is_inert finds: 0, or which expectation was wrong. `a` and `b` are
 * inherited. */
static int child(struct snib__engine *a, struct snib__engine *b)
{
        struct snib__interest interest;
        struct snib__note note;
        struct snib__engine *fresh[2] = {NULL, NULL};

        (void)alarm(10); /* the mutex was held at the fork: a wait for it would have no end */
        ops->forked(a);
        ops->forked(a);
        submit(a, SNIB__RELEASE, "n", id_of('a', 1), 0, 0);
        ops->process(a, NULL, 0);
        ops->interest(a, 0, &interest);
        if (ops->next(a, &note) || interest.count != 0 || interest.deadline != SNIB__NEVER)
                return 1;
        for (int i = 0; i < 2; i++) {
                char digit = (char)('c' + i);

                if (try_open(&fresh[i], "mem:x", digit, NULL) < 0)
                        return 2;
                submit(fresh[i], SNIB__ACQUIRE, "n", id_of(digit, 1), 60000, 0);
                ops->process(fresh[i], NULL, 0);
                if (!ops->next(fresh[i], &note) || !ops->next(fresh[i], &note))
                        return 3;
                /* The first sees none of the parent's locks, the second sees the first. */
                if (note.reply.status != (i == 0 ? SNIB__GRANTED : SNIB__BUSY))
                        return 4 + i;
                ops->forked(b); /* late: it must not take the new clients' namespace away */
        }
        ops->close(a);
        ops->close(b);
        ops->close(fresh[0]);
        ops->close(fresh[1]);
        return 0;
}

static void forked_copy_is_inert(void **state)
{
        struct snib__engine *a = open_client("mem:x", 'a'), *b = open_client("mem:x", 'b');
        int status;
        pid_t pid;

        (void)state;
        (void)ask(a, SNIB__ACQUIRE, "n", id_of('a', 1), 60000, 0);
        snib__mem_lock(); /* as another thread might have at that moment */
        pid = fork();
        if (pid == 0)
                _exit(child(a, b));
        snib__mem_unlock();
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(ask(a, SNIB__RENEW, "n", id_of('a', 1), 60000, 0).status, SNIB__RENEWED); /* untouched */
        ops->close(a);
        ops->close(b);
}

#define THREADS 4
#define ROUNDS 2000

static long counter; /* guarded by nothing but the lock under test */
static int64_t last_token;

/* Acquires, counts, releases; waits for its turn on the descriptor alone. Time stands still, so no
 * lease ends. */
static void *worker(void *arg)
{
        char digit = *(char *)arg;
        struct snib__engine *e = open_client("mem:threads", digit);

        for (int i = 0; i < ROUNDS; i++) {
                struct snib__id id = id_of(digit, i);
                int64_t token = 0;

                submit(e, SNIB__ACQUIRE, "n", id, 60000, 0);
                while (!token) {
                        struct snib__interest interest;
                        struct snib__note note;

                        ops->interest(e, 0, &interest);

                        struct pollfd p = {.fd = interest.fds[0].fd, .events = POLLIN};

                        if (poll(&p, 1, interest.deadline == 0 ? 0 : 30000) == 0 && interest.deadline != 0)
                                return (void *)"no wake-up";
                        ops->process(e, NULL, 0);
                        while (ops->next(e, &note)) {
                                if (note.kind == SNIB__NOTE_GRANTED)
                                        submit(e, SNIB__ACQUIRE, "n", note.id, 60000, 0);
                                if (note.kind == SNIB__NOTE_REPLY && note.reply.status == SNIB__GRANTED)
                                        token = note.reply.token;
                        }
                }
                if (token <= last_token)
                        return (void *)"the token did not rise";
                last_token = token;
                counter++;
                submit(e, SNIB__RELEASE, "n", id, 0, 0);
        }
        ops->close(e);
        return NULL;
}

static void threads_exclude_each_other(void **state)
{
        pthread_t threads[THREADS];
        char digits[THREADS];

        (void)state;
        for (int i = 0; i < THREADS; i++) {
                digits[i] = (char)('1' + i);
                assert_int_equal(pthread_create(&threads[i], NULL, worker, &digits[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
                void *wrong = NULL;

                assert_int_equal(pthread_join(threads[i], &wrong), 0);
                if (wrong)
                        fail_msg("%s", (char *)wrong);
        }
        assert_int_equal(counter, THREADS * ROUNDS);
}

/* An engine that is asked one thing only. */
struct asked {
        struct snib__engine base;
        const struct snib__note *of;
};

static bool concerns_x(const struct snib__engine *e, const struct snib__note *n, struct snib__name name)
{
        return snib__container(e, const struct asked, base)->of == n && name.bytes[0] == 'x';
}

static void a_decorator_hands_on_whom_a_note_concerns(void **state)
{
        const struct snib__engine_ops of = {.concerns = concerns_x}, without = {0};
        const struct snib__note note = {.kind = SNIB__NOTE_RELINKED};
        struct asked inner = {.base.ops = &of, .of = &note};
        struct snib__around a = {0};

        (void)state;
        snib__around_init(&a, &inner.base);
        assert_true(a.base.ops->concerns(&a.base, &note, name_of("x")));
        assert_false(a.base.ops->concerns(&a.base, &note, name_of("y")));
        inner.base.ops = &without;
        snib__around_init(&a, &inner.base);
        assert_null(a.base.ops->concerns);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(completion_comes_with_process),
            cmocka_unit_test(hand_over_wakes_the_other_client),
            cmocka_unit_test(a_waiter_that_numbers_its_requests_need_not_ask),
            cmocka_unit_test(expiry_is_seen_by_a_waiting_client),
            cmocka_unit_test(earlier_end_wakes_who_sleeps_too_long),
            cmocka_unit_test(force_tells_the_holder),
            cmocka_unit_test(what_was_left_outlives_its_client),
            cmocka_unit_test(close_is_death),
            cmocka_unit_test(a_latch_wakes_every_client),
            cmocka_unit_test(readers_of_several_clients_go_in_together),
            cmocka_unit_test(a_register_owns_its_value),
            cmocka_unit_test(death_ends_permits_and_costs_a_semaphore_its_own),
            cmocka_unit_test(what_ends_by_time_is_due),
            cmocka_unit_test(what_ends_by_time_takes_no_memory),
            cmocka_unit_test(namespaces_are_apart),
            cmocka_unit_test(tokens_outlive_the_namespace),
            cmocka_unit_test(free_locks_do_not_pile_up),
            cmocka_unit_test(list_shows_what_is_held),
            cmocka_unit_test(bad_urls_are_refused),
            cmocka_unit_test(allocation_failures_lose_nothing),
            cmocka_unit_test(forked_copy_is_inert),
            cmocka_unit_test(threads_exclude_each_other),
            cmocka_unit_test(a_decorator_hands_on_whom_a_note_concerns),
        };

        return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
