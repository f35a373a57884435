/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/latch.h: checks numbers and says which request a call is. A blocking call and its
 * asynchronous twin share the making of the request. Any thread.
 */

#include "api/internal.h"

struct snib_latch {
        struct snib__object object;
};

static int check(snib_latch *latch, struct snib_error *err)
{
        return snib__object_check(SNIB__OBJECT(latch), "latch", err);
}

int snib_latch_new(snib_client *client, const char *name, size_t name_len, snib_latch **ret_latch,
                   struct snib_error *err)
{
        struct snib_lock_options o = {.name_len = name_len};
        struct snib__object *object;
        int r = ret_latch ? snib__object_new(&object, client, name, SNIB_KIND_LATCH, &o, err)
                          : snib__null("ret_latch", err);

        if (r == 0)
                *ret_latch = snib__container(object, struct snib_latch, object);
        return r;
}

void snib_latch_free(snib_latch *latch)
{
        snib__object_free(SNIB__OBJECT(latch));
}

/* `set`: until it has a count, else until it is open. */
static int prepare_await(snib_latch *latch, bool set, int64_t wait_ms, struct snib__want *ret, struct snib_error *err)
{
        int r = check(latch, err);

        ret->observe = set;
        return r < 0 ? r : snib__patience_check(wait_ms, &ret->patience, err);
}

static int await(snib_latch *latch, bool set, int64_t wait_ms, struct snib_error *err)
{
        struct snib__want want = {0};
        int r = prepare_await(latch, set, wait_ms, &want, err);

        return r < 0 ? r : snib__acquire(&latch->object, &want, NULL, NULL, err);
}

static int await_async(snib_latch *latch, bool set, int64_t wait_ms, snib_done_callback *done, void *arg,
                       struct snib_error *err)
{
        struct snib__then then = {.done = done, .arg = arg};
        struct snib__want want = {0};
        int r = prepare_await(latch, set, wait_ms, &want, err);

        if (r == 0 && !done)
                r = snib__null("done", err);
        return r < 0 ? r : snib__acquire_async(&latch->object, &want, &then, err);
}

int snib_latch_await(snib_latch *latch, int64_t wait_ms, struct snib_error *err)
{
        return await(latch, false, wait_ms, err);
}

int snib_latch_await_async(snib_latch *latch, int64_t wait_ms, snib_done_callback *done, void *arg,
                           struct snib_error *err)
{
        return await_async(latch, false, wait_ms, done, arg, err);
}

int snib_latch_await_set(snib_latch *latch, int64_t wait_ms, struct snib_error *err)
{
        return await(latch, true, wait_ms, err);
}

int snib_latch_await_set_async(snib_latch *latch, int64_t wait_ms, snib_done_callback *done, void *arg,
                               struct snib_error *err)
{
        return await_async(latch, true, wait_ms, done, arg, err);
}

int snib_latch_cancel(snib_latch *latch)
{
        return snib__object_cancel(SNIB__OBJECT(latch));
}

/* A request, its number if it has one (`what` names the argument). */
static int ask(snib_latch *latch, enum snib__verb verb, int64_t n, const char *what, struct snib__receiver to,
               struct snib_error *err)
{
        int r = check(latch, err);

        if (r == 0 && what)
                r = snib__number_check(n, 1, SNIB_PERMITS_MAX, what, err);
        if (r < 0)
                return r;
        return snib__count(&latch->object, &(struct snib__op){.verb = verb, .n = verb == SNIB__ADD ? -n : n}, to, err);
}

int snib_latch_set(snib_latch *latch, int64_t count, struct snib_error *err)
{
        return ask(latch, SNIB__SET, count, "count", snib__here(NULL), err);
}

int snib_latch_count_down(snib_latch *latch, int64_t by, int64_t *ret_left, struct snib_error *err)
{
        return ask(latch, SNIB__ADD, by, "by", snib__here(ret_left), err);
}

int snib_latch_query(snib_latch *latch, int64_t *ret_count, struct snib_error *err)
{
        return ret_count ? ask(latch, SNIB__QUERY, 0, NULL, snib__here(ret_count), err) : snib__null("ret_count", err);
}

int snib_latch_delete(snib_latch *latch, struct snib_error *err)
{
        return ask(latch, SNIB__DELETE, 0, NULL, snib__here(NULL), err);
}

int snib_latch_set_async(snib_latch *latch, int64_t count, snib_value_callback *done, void *arg, struct snib_error *err)
{
        return ask(latch, SNIB__SET, count, "count", snib__later(done, arg), err);
}

int snib_latch_count_down_async(snib_latch *latch, int64_t by, snib_value_callback *done, void *arg,
                                struct snib_error *err)
{
        return ask(latch, SNIB__ADD, by, "by", snib__later(done, arg), err);
}

int snib_latch_query_async(snib_latch *latch, snib_value_callback *done, void *arg, struct snib_error *err)
{
        return ask(latch, SNIB__QUERY, 0, NULL, snib__later(done, arg), err);
}

int snib_latch_delete_async(snib_latch *latch, snib_value_callback *done, void *arg, struct snib_error *err)
{
        return ask(latch, SNIB__DELETE, 0, NULL, snib__later(done, arg), err);
}
