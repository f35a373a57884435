/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The names of keys and channels beside an object, as Redisson makes them: a prefix, the name in
 * braces, a suffix. A name with a brace anywhere is its own tag and gets no further ones, except on
 * a latch's channel, which always has them. Pure.
 */

#include "engine/redis/internal.h"
#include <string.h>

#define FORM(prefix, suffix, braces)                                           \
        {                                                                      \
                prefix, suffix, sizeof(prefix) - 1, sizeof(suffix) - 1, braces \
        }

static const struct {
        const char *prefix, *suffix;
        size_t prefix_length, suffix_length;
        bool braces; /* whatever the name has */
} forms[NAMES] = {[NAME_TAG] = FORM("", "", false),
                  [NAME_TOKEN] = FORM("redisson_lock_token:", "", false),
                  [NAME_QUEUE] = FORM("redisson_lock_queue:", "", false),
                  [NAME_TURNS] = FORM("redisson_lock_timeout:", "", false),
                  [NAME_WAITING] = FORM("snib_waiting:", "", false),
                  [NAME_WAIT_QUEUE] = FORM("snib_queue:", "", false),
                  [NAME_PERMITS] = FORM("", ":timeout", false),
                  [NAME_REQUEST] = FORM("snib_request:", ":", false),
                  [NAME_HOLD] = FORM("", ":", false),
                  [NAME_LOCK_CHANNEL] = FORM("redisson_lock__channel:", "", false),
                  [NAME_LISTENING] = FORM("snib_listening:", "", false),
                  [NAME_RW_CHANNEL] = FORM("redisson_rwlock:", "", false),
                  [NAME_SEMAPHORE_CHANNEL] = FORM("redisson_sc:", "", false),
                  [NAME_LATCH_CHANNEL] = FORM("redisson_countdownlatch__channel__", "", true),
                  [NAME_REGISTER_CHANNEL] = FORM("snib_register:", "", false)};

bool snib__name_braced(enum redis_name which, struct snib__name name)
{
        return forms[which].braces || !memchr(name.bytes, '{', name.length);
}

size_t snib__name_prefix(enum redis_name which)
{
        return forms[which].prefix_length;
}

size_t snib__name_length(enum redis_name which, struct snib__name name, bool braced)
{
        return forms[which].prefix_length + name.length + forms[which].suffix_length +
               2 * (braced || forms[which].braces);
}

void snib__name_put(enum redis_name which, struct snib__name name, bool braced, char *ret)
{
        memcpy(ret, forms[which].prefix, forms[which].prefix_length);
        ret += forms[which].prefix_length;
        if (braced || forms[which].braces)
                *ret++ = '{';
        memcpy(ret, name.bytes, name.length);
        ret += name.length;
        if (braced || forms[which].braces)
                *ret++ = '}';
        if (forms[which].suffix_length > 0)
                memcpy(ret, forms[which].suffix, forms[which].suffix_length);
}

size_t snib__name_write(enum redis_name which, struct snib__name name, char *ret)
{
        bool braced = snib__name_braced(which, name);

        snib__name_put(which, name, braced, ret);
        return snib__name_length(which, name, braced);
}

size_t snib__name_write_id(enum redis_name which, struct snib__name name, const struct snib__id *id, char *ret)
{
        size_t n = snib__name_write(which, name, ret), length = strlen(id->text);

        memcpy(ret + n, id->text, length);
        return n + length;
}

enum redis_name snib__name_channel(int kind)
{
        switch (snib__family_of(kind)) {
        case SNIB__FAMILY_RW:
                return NAME_RW_CHANNEL;
        case SNIB__FAMILY_SEMAPHORE:
        case SNIB__FAMILY_PERMITS:
                return NAME_SEMAPHORE_CHANNEL;
        case SNIB__FAMILY_LATCH:
                return NAME_LATCH_CHANNEL;
        case SNIB__FAMILY_REGISTER:
                return NAME_REGISTER_CHANNEL;
        default:
                return NAME_LOCK_CHANNEL;
        }
}
