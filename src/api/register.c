/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/register.h: checks, and the two loops that are made of other calls: waiting for a value, and
 * read, change and write until nobody was faster. Any thread.
 */

#include "api/internal.h"
#include "base/error.h"
#include <stdlib.h>

/* The pause before the next try of an update: random, below a limit that doubles from the first to
 * the second. */
#define PAUSE_MIN SNIB__MS
#define PAUSE_MAX (128 * SNIB__MS)

struct snib_register {
        struct snib__object object;
};

static int check(snib_register *reg, struct snib_error *err)
{
        return snib__object_check(SNIB__OBJECT(reg), "reg", err);
}

void snib_value_free(struct snib_value *value)
{
        if (value)
                snib__value_free(value);
}

int snib_register_new(snib_client *client, const char *name, size_t name_len, snib_register **ret_register,
                      struct snib_error *err)
{
        struct snib_lock_options o = {.name_len = name_len};
        struct snib__object *object;
        int r = ret_register ? snib__object_new(&object, client, name, SNIB_KIND_REGISTER, &o, err)
                             : snib__null("ret_register", err);

        if (r == 0)
                *ret_register = snib__container(object, struct snib_register, object);
        return r;
}

void snib_register_free(snib_register *reg)
{
        snib__object_free(SNIB__OBJECT(reg));
}

int snib_register_read(snib_register *reg, struct snib_value *ret_value, struct snib_error *err)
{
        struct snib__asked asked = {.value = ret_value};
        int r = check(reg, err);

        if (r == 0 && !ret_value)
                r = snib__null("ret_value", err);
        return r < 0 ? r : snib__ask(&reg->object, &(struct snib__op){.verb = SNIB__QUERY}, &asked, err);
}

int snib_register_read_async(snib_register *reg, snib_read_callback *done, void *arg, struct snib_error *err)
{
        struct snib__then then = {.read = done, .arg = arg};
        int r = check(reg, err);

        if (r == 0 && !done)
                r = snib__null("done", err);
        return r < 0 ? r : snib__ask_async(&reg->object, &(struct snib__op){.verb = SNIB__QUERY}, &then, err);
}

static int value_check(const void *bytes, size_t length, struct snib_error *err)
{
        if (length > SNIB_REGISTER_MAX)
                return snib__error(err, SNIB_ELIMIT, "the value has %zu bytes; a register holds at most %zu", length,
                                   SNIB_REGISTER_MAX);
        return bytes || length == 0 ? 0 : snib__null("bytes", err);
}

static int prepare_write(snib_register *reg, const void *bytes, size_t length, int64_t expected, struct snib__op *ret,
                         struct snib_error *err)
{
        int r = check(reg, err);

        if (r == 0)
                r = value_check(bytes, length, err);
        *ret = (struct snib__op){.verb = SNIB__WRITE, .data = bytes, .data_length = length, .expected = expected};
        return r < 0 ? r : snib__number_check(expected, SNIB_ANY_VERSION, INT64_MAX, "expected", err);
}

int snib_register_write(snib_register *reg, const void *bytes, size_t length, int64_t expected, int64_t *ret_version,
                        struct snib_error *err)
{
        struct snib__asked asked = {0};
        struct snib__op op;
        int r = prepare_write(reg, bytes, length, expected, &op, err);

        if (r == 0)
                r = snib__ask(&reg->object, &op, &asked, err);
        if (r >= 0 && ret_version)
                *ret_version = asked.reply.value;
        return r;
}

int snib_register_write_async(snib_register *reg, const void *bytes, size_t length, int64_t expected,
                              snib_value_callback *done, void *arg, struct snib_error *err)
{
        struct snib__op op;
        int r = prepare_write(reg, bytes, length, expected, &op, err);

        return r < 0 ? r : snib__count(&reg->object, &op, snib__later(done, arg), err);
}

int snib_register_delete(snib_register *reg, int64_t expected, struct snib_error *err)
{
        int r = check(reg, err);

        if (r == 0)
                r = snib__number_check(expected, SNIB_ANY_VERSION, INT64_MAX, "expected", err);
        return r < 0 ? r
                     : snib__count(&reg->object, &(struct snib__op){.verb = SNIB__DELETE, .expected = expected},
                                   snib__here(NULL), err);
}

static int prepare_wait(snib_register *reg, int64_t last_version, int64_t wait_ms, struct snib__want *ret,
                        struct snib_error *err)
{
        int r = check(reg, err);

        if (r == 0)
                r = snib__number_check(last_version, 0, INT64_MAX, "last_version", err);
        *ret = (struct snib__want){.observe = true, .seen = last_version};
        return r < 0 ? r : snib__patience_check(wait_ms, &ret->patience, err);
}

/* What is left of a wait that ends at `until`; false: nothing. */
static bool time_left(snib__ns until, struct snib__patience *ret)
{
        snib__ns now = snib__os_now();

        ret->wait = until == SNIB__NEVER ? SNIB__NEVER : until - now;
        return until > now;
}

int snib_register_wait(snib_register *reg, int64_t last_version, int64_t wait_ms, struct snib_value *ret_value,
                       struct snib_error *err)
{
        struct snib__want want;
        struct snib_value value = SNIB_VALUE_INIT;
        snib__ns until;
        int r = prepare_wait(reg, last_version, wait_ms, &want, err);

        if (r == 0 && !ret_value)
                r = snib__null("ret_value", err);
        if (r < 0)
                return r;
        until = snib__after(snib__os_now(), want.patience.wait);
        do {
                snib__value_free(&value);
                r = snib__acquire(&reg->object, &want, NULL, NULL, err);
                if (r != 1)
                        return r;
                r = snib_register_read(reg, &value, err);
                if (r < 0)
                        return r;
                /* Written and deleted again before it was read: nothing that lasts has changed. */
        } while (value.version == last_version && time_left(until, &want.patience));
        if (value.version == last_version)
                return 0;
        *ret_value = value;
        return 1;
}

int snib_register_wait_async(snib_register *reg, int64_t last_version, int64_t wait_ms, snib_value_callback *changed,
                             void *arg, struct snib_error *err)
{
        struct snib__then then = {.value = changed, .arg = arg};
        struct snib__want want;
        int r = prepare_wait(reg, last_version, wait_ms, &want, err);

        if (r == 0 && !changed)
                r = snib__null("changed", err);
        return r < 0 ? r : snib__acquire_async(&reg->object, &want, &then, err);
}

int snib_register_cancel(snib_register *reg)
{
        return snib__object_cancel(SNIB__OBJECT(reg));
}

/* One read, change and write: 1 written, 0 somebody was faster, and *ret_stopped when `change`
 * wanted no more. */
static int update_once(snib_register *reg, snib_change_callback *change, void *arg, int64_t *ret_version,
                       bool *ret_stopped, struct snib_error *err)
{
        struct snib_value old = SNIB_VALUE_INIT, fresh = SNIB_VALUE_INIT;
        int r = snib_register_read(reg, &old, err);

        if (r < 0)
                return r;
        r = change(arg, &old, &fresh);
        *ret_stopped = r != 0;
        if (r == 0)
                r = snib_register_write(reg, fresh.bytes, fresh.length, old.version, ret_version, err);
        else if (r > 0)
                r = 0;
        snib__value_free(&old);
        return r;
}

int snib_register_update(snib_register *reg, snib_change_callback *change, void *arg, int64_t wait_ms,
                         int64_t *ret_version, struct snib_error *err)
{
        struct snib__patience patience;
        snib__ns until, most = PAUSE_MIN;
        int64_t version;
        bool stopped = false;
        int r = check(reg, err);

        if (r == 0 && !change)
                r = snib__null("change", err);
        if (r == 0)
                r = snib__patience_check(wait_ms, &patience, err);
        if (r < 0)
                return r;
        until = snib__after(snib__os_now(), patience.wait);
        while ((r = update_once(reg, change, arg, &version, &stopped, err)) == 0 && !stopped &&
               time_left(until, &patience)) {
                r = snib__pause(reg->object.client,
                                snib__min(snib__random_below(reg->object.client, most), patience.wait), err);
                if (r < 0)
                        return r;
                most = snib__min(2 * most, PAUSE_MAX);
        }
        if (r == 1 && ret_version)
                *ret_version = version;
        return r;
}
