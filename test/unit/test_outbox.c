/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The outbox of an engine: letters are taken in the order of posting, once, stay while they have
 * more to say, and are given back once, when recycle() says so.
 */

#include "engine/outbox.h"
#include "unit.h"

struct news {
        struct snib__letter letter;
        int number, notes, back;
};

static bool write_news(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        struct news *n = snib__container(l, struct news, letter);

        assert_non_null(owner);
        *ret = (struct snib__note){.kind = SNIB__NOTE_REPLY, .tag.attempt = (uint32_t)n->number};
        return --n->notes > 0;
}

static void back(void *owner, struct snib__letter *l, snib__ns now)
{
        assert_int_equal(now, 7);
        snib__container(l, struct news, letter)->back++;
        ++*(int *)owner;
}

static const struct snib__letter_kind lent = {.write = write_news, .back = back}, own = {.write = write_news};

static uint32_t next(struct snib__outbox *o)
{
        struct snib__note note;

        return snib__outbox_next(o, &note) ? note.tag.attempt : 0;
}

static void letters_are_taken_once_in_order_and_given_back_once(void **state)
{
        struct news a = {.number = 1, .notes = 1}, b = {.number = 2, .notes = 3}, c = {.number = 3, .notes = 1};
        struct snib__outbox o;
        int given_back = 0;

        (void)state;
        snib__outbox_init(&o, &given_back);
        assert_true(snib__outbox_empty(&o));
        snib__outbox_post(&o, &a.letter, &lent);
        snib__outbox_post(&o, &b.letter, &lent);
        snib__outbox_post(&o, &c.letter, &own);
        snib__outbox_post(&o, &a.letter, &lent); /* it has its place */
        assert_int_equal(next(&o), 1);
        assert_int_equal(next(&o), 2); /* which has two more notes, and is not given back meanwhile */
        snib__outbox_recycle(&o, 7);
        assert_int_equal(given_back, 1);
        assert_int_equal(a.back, 1);
        assert_int_equal(next(&o), 2);
        assert_int_equal(next(&o), 2);
        assert_int_equal(next(&o), 3);
        assert_int_equal(next(&o), 0);
        snib__outbox_recycle(&o, 7);
        snib__outbox_recycle(&o, 7);
        assert_int_equal(given_back, 2);
        assert_int_equal(b.back, 1);
        assert_int_equal(c.back, 0); /* its owner's as soon as it was taken */
}

static void what_is_withdrawn_is_not_told_and_what_is_left_is_drained(void **state)
{
        struct news a = {.number = 1, .notes = 1}, b = {.number = 2, .notes = 1}, c = {.number = 3, .notes = 1};
        struct snib__outbox o;
        int given_back = 0;

        (void)state;
        snib__outbox_init(&o, &given_back);
        snib__outbox_withdraw(&a.letter); /* never posted */
        snib__outbox_post(&o, &a.letter, &lent);
        snib__outbox_post(&o, &b.letter, &lent);
        snib__outbox_withdraw(&a.letter);
        assert_int_equal(next(&o), 2);
        snib__outbox_post(&o, &c.letter, &lent);
        snib__outbox_post(&o, &a.letter, &lent);
        assert_ptr_equal(snib__outbox_drain(&o), &c.letter);
        assert_ptr_equal(snib__outbox_drain(&o), &a.letter);
        assert_ptr_equal(snib__outbox_drain(&o), &b.letter); /* taken */
        assert_null(snib__outbox_drain(&o));
        snib__outbox_recycle(&o, 7);
        assert_int_equal(given_back, 0);
}

static void a_failed_reply_knows_nothing_but_why(void **state)
{
        struct snib__reply r = snib__reply_failed(SNIB_KIND_FAIR, &snib__reply_no_memory);

        (void)state;
        assert_int_equal(r.status, SNIB__FAILED);
        assert_int_equal(r.kind, SNIB_KIND_FAIR);
        assert_int_equal(r.error, SNIB_ENOMEM);
        assert_string_equal(r.error_text, "out of memory");
        assert_int_equal(r.left_ms, -1);
        assert_int_equal(r.waiters, -1);
        assert_false(r.held);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(letters_are_taken_once_in_order_and_given_back_once),
            cmocka_unit_test(what_is_withdrawn_is_not_told_and_what_is_left_is_drained),
            cmocka_unit_test(a_failed_reply_knows_nothing_but_why),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
