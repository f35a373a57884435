/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What can be said of ids and kinds by themselves, without a record: comparison, the ids of
 * permits, which kinds are stored alike. Pure; any thread.
 */

#include "model/op.h"
#include <string.h>

bool snib__id_equal(const struct snib__id *a, const struct snib__id *b)
{
        return strcmp(a->text, b->text) == 0;
}

static const char left_prefix[] = "left:";

void snib__id_leave(struct snib__id *id)
{
        size_t n = sizeof(left_prefix) - 1, length = strnlen(id->text, SNIB__ID_MAX - 1 - n);

        _Static_assert(SNIB__ID_MAX > sizeof(left_prefix) + 36 + 1 + 20, "the id of every client's hold fits");
        memmove(id->text + n, id->text, length);
        memcpy(id->text, left_prefix, n);
        id->text[n + length] = 0;
}

bool snib__id_is_left(const struct snib__id *id, const struct snib__id *of)
{
        size_t n = sizeof(left_prefix) - 1;

        return strncmp(id->text, left_prefix, n) == 0 && (!of || strcmp(id->text + n, of->text) == 0);
}

static int digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The 128 bits of a uuid as two words; false: it is none. */
static bool uuid_parse(const char *text, uint64_t ret[2])
{
        int digits = 0;

        ret[0] = ret[1] = 0;
        for (int i = 0; i < 36; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;
                int d = digit(text[i]);

                if (dash ? text[i] != '-' : d < 0)
                        return false;
                if (!dash) {
                        ret[digits / 16] = ret[digits / 16] << 4 | (uint64_t)d;
                        digits++;
                }
        }
        return text[36] == ':';
}

static void hex(uint64_t word, char *ret)
{
        for (int i = 0; i < 16; i++)
                ret[i] = "0123456789abcdef"[word >> (60 - 4 * i) & 15];
}

bool snib__permit_id(const struct snib__id *hold, int64_t index, char ret[33])
{
        uint64_t uuid[2], number = 0;
        const char *p = hold->text + 37;

        if (strnlen(hold->text, SNIB__ID_MAX) < 38 || !uuid_parse(hold->text, uuid))
                return false;
        for (; *p >= '0' && *p <= '9'; p++)
                number = number * 10 + (uint64_t)(*p - '0');
        if (*p || index < 0 || index > 65535)
                return false;
        uint64_t low = uuid[1] + (number << 16) + (uint64_t)index;
        uint64_t high = uuid[0] + (number >> 48) + (low < uuid[1]);
        hex(high, ret);
        hex(low, ret + 16);
        ret[32] = 0;
        return true;
}

enum snib__family snib__family_of(int kind)
{
        switch (kind) {
        case SNIB_KIND_LOCK:
        case SNIB_KIND_FENCED:
        case SNIB_KIND_FAIR:
        case SNIB_KIND_SPIN:
        case SNIB_KIND_ELECTION:
                return SNIB__FAMILY_LOCK;
        case SNIB_KIND_READ:
        case SNIB_KIND_WRITE:
                return SNIB__FAMILY_RW;
        case SNIB_KIND_SEMAPHORE:
                return SNIB__FAMILY_SEMAPHORE;
        case SNIB_KIND_PERMITS:
                return SNIB__FAMILY_PERMITS;
        case SNIB_KIND_LATCH:
                return SNIB__FAMILY_LATCH;
        case SNIB_KIND_REGISTER:
                return SNIB__FAMILY_REGISTER;
        default:
                return SNIB__FAMILY_NONE;
        }
}

bool snib__kind_momentary(int kind)
{
        return kind == SNIB_KIND_SEMAPHORE || kind == SNIB_KIND_LATCH || kind == SNIB_KIND_REGISTER;
}

int64_t snib__kind_tokens(int kind)
{
        return kind == SNIB_KIND_LOCK || kind == SNIB_KIND_FENCED ? SNIB__TOKEN_BLOCK : 1;
}

const char *snib__kind_text(int kind)
{
        static const char *const texts[] = {
            [SNIB_KIND_LOCK] = "lock",        [SNIB_KIND_FENCED] = "fenced lock",  [SNIB_KIND_FAIR] = "fair lock",
            [SNIB_KIND_SPIN] = "spin lock",   [SNIB_KIND_ELECTION] = "election",   [SNIB_KIND_READ] = "read lock",
            [SNIB_KIND_WRITE] = "write lock", [SNIB_KIND_SEMAPHORE] = "semaphore", [SNIB_KIND_PERMITS] = "permits",
            [SNIB_KIND_LATCH] = "latch",      [SNIB_KIND_REGISTER] = "register",   [SNIB_KIND_COUNTER] = "counter",
        };

        if (kind < 0 || kind >= (int)(sizeof(texts) / sizeof(texts[0])))
                return "object";
        return texts[kind];
}

const char *snib__kind_article(int kind)
{
        if (kind == SNIB_KIND_PERMITS)
                return "";
        return kind == SNIB_KIND_ELECTION || kind == SNIB_KIND_ANY ? "an " : "a ";
}
