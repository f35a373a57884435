/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/striped.h: a handle for each segment. They are plain lock handles, made with the handle:
 * choosing one needs no lock and no memory. Names and hash are core's (core/stripe.h). Any thread.
 */

#include "api/internal.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "core/stripe.h"

struct snib_striped {
        struct snib_multilock *all; /* NULL: too many */
        size_t count;
        struct snib_lock *segments[];
};

static int segments_new(struct snib_striped *s, struct snib_client *client, const char *name, size_t length,
                        struct snib_lock_options *o, struct snib_error *err)
{
        char segment[SNIB__STRIPE_MAX(SNIB_NAME_MAX)];
        size_t all = snib__stripe_all(s->count);
        int r = 0;

        o->size = sizeof(struct snib_lock_options);
        o->name_len = 0; /* of the whole name; a segment's ends at its NUL */
        for (size_t i = 0; i < s->count && r == 0; i++) {
                (void)snib__stripe_name(segment, name, length, i, s->count);
                r = snib_lock_new(client, segment, o, &s->segments[i], err);
        }
        if (r == 0 && all)
                r = snib_multilock_new(s->segments, all, NULL, &s->all, err);
        return r;
}

static void striped_freep(snib_striped **striped)
{
        snib_striped_free(*striped);
}

int snib_striped_new(snib_client *client, const char *name, size_t segments, const struct snib_lock_options *options,
                     snib_striped **ret_striped, struct snib_error *err)
{
        struct snib_lock_options o;
        size_t length;
        int r;

        if (!client)
                return snib__null("client", err);
        if (!ret_striped)
                return snib__null("ret_striped", err);
        if ((r = snib__alive(client, err)) < 0 || (r = snib__object_options(&o, options, true, err)) < 0 ||
            (r = snib__name_check(name, o.name_len, &length, err)) < 0)
                return r;
        if (segments < 1 || segments > SNIB_STRIPES_MAX)
                return snib__error(err, SNIB_EINVAL, "the argument segments is %zu; use 1 to %d", segments,
                                   SNIB_STRIPES_MAX);
        _cleanup_(striped_freep) snib_striped *s = snib__alloc(sizeof(*s) + segments * sizeof(s->segments[0]));
        if (!s)
                return snib__error(err, SNIB_ENOMEM, "no memory for a striped lock; free some and try again");
        s->count = segments;
        if ((r = segments_new(s, client, name, length, &o, err)) < 0)
                return r;
        *ret_striped = TAKE(s);
        return 0;
}

void snib_striped_free(snib_striped *striped)
{
        if (!striped)
                return;
        snib_multilock_free(striped->all);
        for (size_t i = 0; i < striped->count; i++)
                snib_lock_free(striped->segments[i]);
        free(striped);
}

size_t snib_striped_count(const snib_striped *striped)
{
        return striped ? striped->count : 0;
}

size_t snib_striped_index(const snib_striped *striped, const void *key, size_t key_len)
{
        return striped ? snib__stripe_index(key, key ? key_len : 0, striped->count) : 0;
}

snib_lock *snib_striped_at(snib_striped *striped, size_t index)
{
        return striped && index < striped->count ? striped->segments[index] : NULL;
}

snib_lock *snib_striped_for(snib_striped *striped, const void *key, size_t key_len)
{
        return snib_striped_at(striped, snib_striped_index(striped, key, key_len));
}

snib_multilock *snib_striped_all(snib_striped *striped)
{
        return striped ? striped->all : NULL;
}
