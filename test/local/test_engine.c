/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The local engine with several clients in one process: what it answers, whom it wakes, what stands
 * in the file.
 */

#include "base/alloc.h"
#include "engine/local/client.h"
#include "local_test.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LEASE 30000

static const char *dir;
static struct pump *a, *b;

static int open_both(void **state)
{
        dir = tmp_dir();
        a = pump_connect(url_of(dir, ""), 1);
        b = pump_connect(url_of(dir, ""), 2);
        return 0;
}

static int close_both(void **state)
{
        pump_close(a);
        pump_close(b);
        return 0;
}

static void release_hands_over_to_the_first_waiter(void **state)
{
        struct snib__id x = pump_id(a), y = pump_id(b), z = pump_id(a);
        struct snib__reply first = acquire(a, "job", x, LEASE), r;
        struct pump_note note;

        assert_int_equal(first.status, SNIB__GRANTED);
        r = acquire(b, "job", y, LEASE);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(r.position, 1);
        assert_string_equal(r.holder.id.text, x.text);
        assert_string_equal(r.holder.who.label, "label1");
        r = acquire(a, "job", z, LEASE);
        assert_int_equal(r.position, 2);
        assert_int_equal(release(a, "job", x).status, SNIB__RELEASED);
        note = pump_wait(b, SNIB__NOTE_GRANTED);
        assert_string_equal(note.name, "job");
        assert_string_equal(note.note.id.text, y.text);
        r = acquire(b, "job", y, LEASE);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_true(r.token > first.token);
        assert_int_equal(release(b, "job", y).status, SNIB__RELEASED);
        note = pump_wait(a, SNIB__NOTE_GRANTED);
        assert_string_equal(note.note.id.text, z.text);
        assert_int_equal(acquire(a, "job", z, LEASE).status, SNIB__GRANTED);
        assert_int_equal(release(a, "job", z).status, SNIB__RELEASED);
        assert_int_equal(release(a, "job", z).status, SNIB__GONE);
}

/* It is told which of its requests was the latest, and has its lease from then on. */
static void a_waiter_that_numbers_its_requests_need_not_ask(void **state)
{
        struct snib__id x = pump_id(a), y = pump_id(b);
        struct snib__op op = pump_op(b, SNIB__ACQUIRE, "job", y, LEASE);
        struct snib__op query = pump_op(a, SNIB__QUERY, "job", (struct snib__id){{0}}, 0);
        struct pump_note note;
        struct snib__reply r;

        acquire(a, "job", x, LEASE);
        op.enqueue = true;
        for (op.number = 1; op.number <= 2; op.number++)
                assert_int_equal(pump_do(b, &op).position, 1);
        release(a, "job", x);
        note = pump_wait(b, SNIB__NOTE_GRANTED);
        assert_int_equal(note.note.tag.attempt, 2);
        r = pump_do(a, &query);
        assert_string_equal(r.holder.id.text, y.text);
        assert_int_equal(r.token, note.note.reply.token);
        assert_in_range(r.left_ms, LEASE / 2, LEASE);
        assert_int_equal(release(b, "job", y).status, SNIB__RELEASED);
        assert_int_equal(release(b, "job", y).status, SNIB__GONE);
}

static void a_wait_can_be_given_up(void **state)
{
        struct snib__id x = pump_id(a), y = pump_id(b), z = pump_id(a);

        acquire(a, "job", x, LEASE);
        acquire(b, "job", y, LEASE);
        acquire(a, "job", z, LEASE);
        assert_int_equal(release(b, "job", y).status, SNIB__RELEASED);
        assert_int_equal(acquire(a, "job", z, LEASE).position, 1);
        release(a, "job", x);
        assert_string_equal(pump_wait(a, SNIB__NOTE_GRANTED).note.id.text, z.text);
}

/* F32: one hand-over wakes one waiter. */
static void F32_a_release_wakes_exactly_one(void **state)
{
        struct pump *p[6];
        struct snib__id id[6], x = pump_id(a);
        struct pump_note note;

        acquire(a, "job", x, LEASE);
        for (unsigned i = 0; i < 6; i++) {
                p[i] = pump_connect(url_of(dir, ""), 10 + i);
                id[i] = pump_id(p[i]);
                assert_int_equal(acquire(p[i], "job", id[i], LEASE).position, i + 1);
        }
        release(a, "job", x);
        for (unsigned i = 0; i < 6; i++) {
                note = pump_wait(p[i], SNIB__NOTE_GRANTED);
                assert_string_equal(note.note.id.text, id[i].text);
                for (unsigned j = i + 1; j < 6; j++)
                        assert_false(pump_try(p[j], SNIB__NOTE_GRANTED, 0, &note));
                assert_int_equal(acquire(p[i], "job", id[i], LEASE).status, SNIB__GRANTED);
                release(p[i], "job", id[i]);
        }
        for (unsigned i = 0; i < 6; i++)
                pump_close(p[i]);
}

static void a_waiter_gets_in_when_the_lease_ends(void **state)
{
        struct snib__id x = pump_id(a), y = pump_id(b);
        int64_t begun = wait_now_ms();
        struct pump_note note;

        acquire(a, "job", x, 200);
        assert_int_equal(acquire(b, "job", y, LEASE).status, SNIB__BUSY);
        assert_true(pump_try(b, SNIB__NOTE_GRANTED, 2000, &note));
        assert_true(wait_now_ms() - begun >= 199);
        assert_true(wait_now_ms() - begun < 200 + 600); /* not by the poll */
        /* and the former holder is told */
        assert_string_equal(pump_wait(a, SNIB__NOTE_ENDED).note.id.text, x.text);
        struct snib__op renew = pump_op(a, SNIB__RENEW, "job", x, 200);
        assert_int_equal(pump_do(a, &renew).status, SNIB__GONE);
}

static void force_ends_a_hold_and_tells_its_owner(void **state)
{
        struct snib__id x = pump_id(a);
        struct snib__op force = pump_op(b, SNIB__FORCE, "job", (struct snib__id){{0}}, 0);
        struct snib__reply r;

        acquire(a, "job", x, LEASE);
        r = pump_do(b, &force);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(r.held);
        assert_string_equal(r.holder.id.text, x.text);
        assert_string_equal(pump_wait(a, SNIB__NOTE_ENDED).note.id.text, x.text);
        assert_int_equal(release(a, "job", x).status, SNIB__GONE);
}

static void query_and_list_say_who_holds(void **state)
{
        struct snib__op query = pump_op(b, SNIB__QUERY, "two", (struct snib__id){{0}}, 0);
        struct snib__reply r;
        struct pump_note note;

        assert_false(pump_do(b, &query).held);
        acquire(a, "one", pump_id(a), LEASE);
        acquire(a, "two", pump_id(a), LEASE);
        acquire(b, "two", pump_id(b), LEASE);
        acquire(a, "over", pump_id(a), 1);
        assert_true(eventually(wait_now_ms() > 0, 5));
        r = pump_do(b, &query);
        assert_true(r.held);
        assert_int_equal(r.waiters, 1);
        assert_in_range(r.left_ms, LEASE - 5000, LEASE);
        assert_string_equal(r.holder.who.host, "host1");
        b->engine->ops->list(b->engine, (struct snib__tag){.object = b, .cookie = 7, .attempt = ++b->attempts},
                             pump_now() + 10 * SNIB__MS);
        r = pump_answer(b, b->attempts);
        assert_int_equal(r.status, SNIB__INFO);
        assert_true(pump_try(b, SNIB__NOTE_LISTED, 0, &note));
        assert_string_equal(note.name, "one");
        assert_true(pump_try(b, SNIB__NOTE_LISTED, 0, &note));
        assert_string_equal(note.name, "two");
        assert_int_equal(note.note.reply.waiters, 1);
        assert_false(pump_try(b, SNIB__NOTE_LISTED, 0, &note));
}

static void names_are_bytes(void **state)
{
        char longest[1002];
        struct snib__op op;
        const char *names[] = {"a'b\"; DROP TABLE lock; --", "\xff\xfe\x01", " ", "../../x", longest};

        memset(longest, 'n', sizeof(longest));
        longest[1000] = 0;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                struct snib__id x = pump_id(a), y = pump_id(b);
                assert_int_equal(acquire(a, names[i], x, LEASE).status, SNIB__GRANTED);
                assert_int_equal(acquire(b, names[i], y, LEASE).status, SNIB__BUSY);
                release(a, names[i], x);
                struct pump_note note = pump_wait(b, SNIB__NOTE_GRANTED);
                assert_string_equal(note.name, names[i]);
                assert_int_equal(acquire(b, names[i], y, LEASE).status, SNIB__GRANTED);
        }
        longest[1000] = 'n';
        longest[1001] = 0;
        op = pump_op(a, SNIB__ACQUIRE, longest, pump_id(a), LEASE);
        assert_int_equal(pump_do(a, &op).error, SNIB_ENAME);
        op.name = (struct snib__name){"", 0};
        assert_int_equal(pump_do(a, &op).error, SNIB_ENAME);
        op.name = (struct snib__name){"a\0b", 3};
        assert_int_equal(pump_do(a, &op).error, SNIB_ENAME);
        op = pump_op(a, SNIB__ACQUIRE, "x", (struct snib__id){{0}}, LEASE);
        assert_int_equal(pump_do(a, &op).error, SNIB_EINVAL);
}

/* A client with fewer places for datagrams than grants misses none. */
static void F31_lost_datagrams_lose_no_grant(void **state)
{
        struct snib__id held[60], wanted[60];
        char name[16];

        for (int i = 0; i < 60; i++) {
                snprintf(name, sizeof(name), "n%d", i);
                held[i] = pump_id(a);
                wanted[i] = pump_id(b);
                acquire(a, name, held[i], LEASE);
                assert_int_equal(acquire(b, name, wanted[i], LEASE).status, SNIB__BUSY);
        }
        for (int i = 0; i < 60; i++) {
                snprintf(name, sizeof(name), "n%d", i);
                release(a, name, held[i]);
        }
        for (int i = 0; i < 60; i++)
                (void)pump_wait(b, SNIB__NOTE_GRANTED);
}

static void shout(const void *bytes, size_t size)
{
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

        snprintf(to.sun_path, sizeof(to.sun_path), "%s/w-%s", dir, b->uuid);
        assert_int_equal(sendto(fd, bytes, size, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)size);
        close(fd);
        pump_turn(b, pump_now()); /* there is room for few */
}

/* What anybody with access to the directory can send is a hint at most. */
static void hostile_datagrams_are_hints(void **state)
{
        static char junk[4096];
        struct snib__id x = pump_id(a), y = pump_id(b);
        struct snib__mail forged = {.kind = SNIB__MAIL_GRANTED};
        struct snib__name name = {"job", 3};
        char buffer[SNIB__MAIL_SIZE_MAX];
        struct pump_note note;
        size_t size;

        acquire(a, "job", x, LEASE);
        acquire(b, "job", y, LEASE);
        memset(junk, 'G', sizeof(junk));
        shout(junk, 0);
        shout("1", 1);
        shout("1G", 2);
        shout(junk, sizeof(junk));
        assert_false(pump_try(b, SNIB__NOTE_GRANTED, 20, &note));
        forged.id = pump_id(b); /* of ours, and not waiting */
        shout(buffer, snib__mail_encode(buffer, &forged, name));
        forged.id = x; /* not of ours */
        shout(buffer, snib__mail_encode(buffer, &forged, name));
        assert_false(pump_try(b, SNIB__NOTE_GRANTED, 20, &note));
        forged.id = y;
        size = snib__mail_encode(buffer, &forged, name);
        for (size_t i = 0; i < size; i++)
                shout(buffer, i);
        assert_false(pump_try(b, SNIB__NOTE_GRANTED, 20, &note));
        shout(buffer, size);
        (void)pump_wait(b, SNIB__NOTE_GRANTED); /* believed enough to ask */
        assert_int_equal(acquire(b, "job", y, LEASE).status, SNIB__BUSY);
        release(a, "job", x);
        (void)pump_wait(b, SNIB__NOTE_GRANTED);
        assert_int_equal(acquire(b, "job", y, LEASE).status, SNIB__GRANTED);
}

static void mail_is_parsed_strictly(void **state)
{
        struct snib__mail m = {.kind = SNIB__MAIL_LOOK, .id = pump_id(a)}, out;
        struct snib__name name = {"job", 3}, found;
        char buffer[SNIB__MAIL_SIZE_MAX + 1];
        size_t size = snib__mail_encode(buffer, &m, name);

        assert_true(snib__mail_parse(buffer, size, a->uuid, &out, &found));
        assert_int_equal(out.kind, SNIB__MAIL_LOOK);
        assert_string_equal(out.id.text, m.id.text);
        assert_int_equal(found.length, 3);
        assert_memory_equal(found.bytes, "job", 3);
        assert_false(snib__mail_parse(buffer, size, b->uuid, &out, &found));
        for (size_t n = 0; n < size - 2; n++)
                assert_false(snib__mail_parse(buffer, n, a->uuid, &out, &found));
        buffer[size] = 0;
        assert_false(snib__mail_parse(buffer, size + 1, a->uuid, &out, &found));
        buffer[0] = '1';
        assert_false(snib__mail_parse(buffer, size, a->uuid, &out, &found));
        m = (struct snib__mail){.kind = SNIB__MAIL_GRANTED, .number = UINT32_MAX, .token = INT64_MAX, .id = m.id};
        size = snib__mail_encode(buffer, &m, name);
        assert_true(snib__mail_parse(buffer, size, a->uuid, &out, &found));
        assert_int_equal(out.number, UINT32_MAX);
        assert_int_equal(out.token, INT64_MAX);
        m.token = 0; /* a hold has one */
        assert_false(snib__mail_parse(buffer, snib__mail_encode(buffer, &m, name), a->uuid, &out, &found));
        m = (struct snib__mail){.kind = SNIB__MAIL_ENDED, .number = 1, .token = 1, .id = m.id};
        assert_false(snib__mail_parse(buffer, snib__mail_encode(buffer, &m, name), a->uuid, &out, &found));
}

/* One handle per file and process: closing one client takes nothing from another. */
static void F133_closing_one_client_keeps_the_other(void **state)
{
        struct pump *c = pump_connect(url_of(dir, "/"), 3);
        struct snib__id x = pump_id(a), y = pump_id(b);

        assert_int_equal(acquire(a, "job", x, LEASE).status, SNIB__GRANTED);
        acquire(c, "job", pump_id(c), LEASE);
        acquire(c, "other", pump_id(c), LEASE);
        pump_close(c); /* with a place in the queue, and a hold */
        assert_int_equal(acquire(b, "other", pump_id(b), LEASE).status, SNIB__GRANTED);
        assert_int_equal(acquire(b, "job", y, LEASE).position, 1);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM client"), 2);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM object WHERE id<>''"), 2);
        release(a, "job", x);
        (void)pump_wait(b, SNIB__NOTE_GRANTED);
}

static void closing_a_holder_wakes_the_waiter(void **state)
{
        struct pump *c = pump_connect(url_of(dir, ""), 3);
        struct snib__id y = pump_id(b);
        struct pump_note note;

        acquire(c, "job", pump_id(c), LEASE);
        acquire(b, "job", y, LEASE);
        pump_close(c);
        assert_true(pump_try(b, SNIB__NOTE_GRANTED, 100, &note));
}

static void tokens_rise_across_clients_and_free_rows_stay(void **state)
{
        int64_t token = 0;

        for (unsigned i = 0; i < 20; i++) {
                struct pump *c = pump_connect(url_of(dir, ""), 20 + i);
                struct snib__id x = pump_id(c);
                struct snib__reply r = acquire(c, "job", x, LEASE);
                assert_true(r.token > token);
                token = r.token;
                if (i % 2)
                        release(c, "job", x);
                pump_close(c);
        }
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM object"), 1);
        assert_int_equal(ask_sql(dir, "SELECT token FROM object"), token + SNIB__TOKEN_BLOCK - 1);
}

static void uncontended_pairs_allocate_nothing(void **state)
{
        uint64_t before = 0;

        for (int i = 0; i < 100; i++) {
                struct snib__id x = pump_id(a);
                if (i == 50)
                        before = snib__alloc_count;
                assert_int_equal(acquire(a, "job", x, LEASE).status, SNIB__GRANTED);
                release(a, "job", x);
        }
        assert_int_equal(snib__alloc_count - before, 0);
}

/* What is only for people to read is cut to its field; the lock goes on. */
static void overlong_texts_are_cut(void **state)
{
        struct snib__id x = pump_id(a), y = pump_id(b);
        struct snib__reply r;

        acquire(a, "job", x, LEASE);
        acquire(b, "job", y, LEASE);
        run_sql(dir, "UPDATE object SET host=printf('%.*c',500,'h'), label=x'00ff', pid='x'");
        r = acquire(b, "job", y, LEASE);
        assert_int_equal(r.status, SNIB__BUSY);
        assert_int_equal(strlen(r.holder.who.host), sizeof(r.holder.who.host) - 1);
        assert_int_equal(r.holder.who.pid, 0);
        release(a, "job", x);
        assert_int_equal(acquire(b, "job", y, LEASE).status, SNIB__GRANTED);
        run_sql(dir, "DELETE FROM object");
        assert_int_equal(release(b, "job", y).status, SNIB__GONE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)
            T(release_hands_over_to_the_first_waiter),
            T(a_waiter_that_numbers_its_requests_need_not_ask),
            T(a_wait_can_be_given_up),
            T(F32_a_release_wakes_exactly_one),
            T(a_waiter_gets_in_when_the_lease_ends),
            T(force_ends_a_hold_and_tells_its_owner),
            T(query_and_list_say_who_holds),
            T(names_are_bytes),
            T(F31_lost_datagrams_lose_no_grant),
            T(hostile_datagrams_are_hints),
            T(mail_is_parsed_strictly),
            T(F133_closing_one_client_keeps_the_other),
            T(closing_a_holder_wakes_the_waiter),
            T(tokens_rise_across_clients_and_free_rows_stay),
            T(uncontended_pairs_allocate_nothing),
            T(overlong_texts_are_cut),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
