/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree against a sorted array, with random operations and few distinct keys, so that equal ones
 * are frequent; and the list.
 */

#include "base/prng.h"
#include "base/tree.h"
#include "unit.h"

#define ITEMS 200

struct item {
        struct snib__tree_node node;
        int key;
        int serial; /* order of arrival */
        bool in;
};

static int compare(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return snib__container(a, struct item, node)->key - snib__container(b, struct item, node)->key;
}

static int compare_key(const struct snib__tree_node *n, const void *key)
{
        return snib__container(n, const struct item, node)->key - *(const int *)key;
}

/* The same order by other means: key, then arrival. */
static int by_key(const void *a, const void *b)
{
        const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

        return x->key != y->key ? x->key - y->key : x->serial - y->serial;
}

static int depth(const struct snib__tree_node *n)
{
        if (!n)
                return 0;

        int left = depth(n->child[0]), right = depth(n->child[1]);

        for (int side = 0; side < 2; side++)
                if (n->child[side]) {
                        assert_ptr_equal(n->child[side]->parent, n);
                        assert_true(n->child[side]->priority <= n->priority);
                }
        return 1 + (left > right ? left : right);
}

static void check(const struct snib__tree *t, struct item *items)
{
        struct item *sorted[ITEMS];
        size_t n = 0;

        for (int i = 0; i < ITEMS; i++) {
                assert_int_equal(snib__tree_linked(&items[i].node), items[i].in);
                if (items[i].in)
                        sorted[n++] = &items[i];
        }
        qsort(sorted, n, sizeof(sorted[0]), by_key);
        assert_int_equal(t->count, n);

        struct snib__tree_node *it = snib__tree_first(t);

        for (size_t i = 0; i < n; i++, it = snib__tree_next(it))
                assert_ptr_equal(it, &sorted[i]->node);
        assert_null(it);

        for (int key = -1; key <= 51; key++) {
                struct item probe = {.key = key};
                size_t i = 0;

                while (i < n && sorted[i]->key < key)
                        i++;
                assert_ptr_equal(snib__tree_seek(t, &probe.node), i < n ? &sorted[i]->node : NULL);
                assert_ptr_equal(snib__tree_seek_key(t, compare_key, &key), i < n ? &sorted[i]->node : NULL);
        }
}

static void tree_is_a_sorted_array(void **state)
{
        static struct item items[ITEMS];
        struct snib__tree t;
        int serial = 0;

        (void)state;
        for (uint64_t seed = 1; seed <= 5; seed++) {
                struct snib__prng prng = {seed};

                memset(items, 0, sizeof(items));
                snib__tree_init(&t, compare);
                for (int step = 0; step < 2000; step++) {
                        struct item *i = &items[snib__prng_below(&prng, ITEMS)];

                        if (i->in) {
                                snib__tree_remove(&t, &i->node);
                                snib__tree_remove(&t, &i->node); /* of no tree: nothing happens */
                        } else {
                                i->key = (int)snib__prng_below(&prng, 50);
                                i->serial = serial++;
                                snib__tree_add(&t, &i->node);
                        }
                        i->in = !i->in;
                        if (step % 10 == 0)
                                check(&t, items);
                }
                check(&t, items);
        }
}

static void tree_adds_only_new_keys(void **state)
{
        struct item items[50], others[50];
        struct snib__tree t;
        struct snib__prng prng = {1};

        (void)state;
        memset(items, 0, sizeof(items));
        memset(others, 0, sizeof(others));
        snib__tree_init(&t, compare);
        for (int step = 0; step < 5000; step++) {
                int key = (int)snib__prng_below(&prng, 50);
                struct item *i = &items[key], *other = &others[key];

                i->key = other->key = key;
                if (i->in) {
                        assert_ptr_equal(snib__tree_add_new(&t, &other->node), &i->node);
                        assert_false(snib__tree_linked(&other->node));
                        snib__tree_remove(&t, &i->node);
                } else {
                        assert_null(snib__tree_add_new(&t, &i->node));
                        assert_true(snib__tree_linked(&i->node));
                }
                i->in = !i->in;
                key = 0;
                for (struct snib__tree_node *n = snib__tree_first(&t); n; n = snib__tree_next(n), key++) {
                        while (key < 50 && !items[key].in)
                                key++;
                        assert_ptr_equal(n, &items[key].node);
                }
                while (key < 50 && !items[key].in)
                        key++;
                assert_int_equal(key, 50);
        }
}

static void tree_stays_shallow_for_sorted_keys(void **state)
{
        static struct item items[10000];
        struct snib__tree t;

        (void)state;
        snib__tree_init(&t, compare);
        for (int i = 0; i < 10000; i++) {
                items[i].key = i;
                snib__tree_add(&t, &items[i].node);
        }
        /* A perfect tree has 14 levels; a random one of this size hardly ever more than 40. The
         * start of the generator is fixed. */
        assert_in_range(depth(t.root), 14, 45);
        for (int i = 0; i < 10000; i++) {
                assert_ptr_equal(snib__tree_first(&t), &items[i].node);
                snib__tree_remove(&t, &items[i].node);
        }
        assert_null(snib__tree_first(&t));
        assert_int_equal(t.count, 0);
}

struct link {
        int id;
        struct snib__list node;
};

static void list_keeps_order(void **state)
{
        struct snib__list head;
        struct link l[4] = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 3}};
        int expected = 0;

        (void)state;
        snib__list_init(&head);
        assert_true(snib__list_empty(&head));
        assert_null(snib__list_take(&head));
        for (int i = 0; i < 4; i++) {
                assert_false(snib__list_linked(&l[i].node));
                snib__list_remove(&l[i].node); /* never linked: nothing happens */
                snib__list_append(&head, &l[i].node);
                assert_true(snib__list_linked(&l[i].node));
        }
        snib__list_remove(&l[1].node);
        snib__list_remove(&l[1].node);
        assert_false(snib__list_linked(&l[1].node));
        snib__list_append(&head, &l[1].node);

        const int order[] = {0, 2, 3, 1};

        snib__list_each (it, &head)
                assert_int_equal(snib__container(it, struct link, node)->id, order[expected++]);
        assert_int_equal(expected, 4);
        for (int i = 0; i < 4; i++)
                assert_ptr_equal(snib__list_take(&head), &l[order[i]].node);
        assert_true(snib__list_empty(&head));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(tree_is_a_sorted_array),
            cmocka_unit_test(tree_adds_only_new_keys),
            cmocka_unit_test(tree_stays_shallow_for_sorted_keys),
            cmocka_unit_test(list_keeps_order),
        };

        return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
