/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What can be said of ids by themselves, without a record: comparison, the ids of permits, whose
 * they are. Pure; any thread.
 */

#include "model/op.h"
#include <string.h>

bool snib__id_equal(const struct snib__id *a, const struct snib__id *b)
{
        return strcmp(a->text, b->text) == 0;
}

bool snib__op_remembered(const struct snib__op *op)
{
        return snib__verb_changes(op->verb) || (op->verb == SNIB__RELEASE && op->permits) ||
               (snib__family_of(op->kind) == SNIB__FAMILY_SEMAPHORE &&
                (op->verb == SNIB__ACQUIRE || op->verb == SNIB__RELEASE));
}

static int digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool snib__uuid_valid(const char *text)
{
        for (int i = 0; i < SNIB__UUID_LENGTH; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;

                if (dash ? text[i] != '-' : digit(text[i]) < 0)
                        return false;
        }
        return true;
}

bool snib__id_client(const struct snib__id *id, char ret[SNIB__UUID_LENGTH + 1])
{
        if (!snib__uuid_valid(id->text) || id->text[SNIB__UUID_LENGTH] != ':')
                return false;
        memcpy(ret, id->text, SNIB__UUID_LENGTH);
        ret[SNIB__UUID_LENGTH] = 0;
        return true;
}

bool snib__id_of_client(const struct snib__id *id, const char *uuid)
{
        return strncmp(id->text, uuid, SNIB__UUID_LENGTH) == 0 && id->text[SNIB__UUID_LENGTH] == ':';
}

static const char left_prefix[] = "left:";

void snib__id_leave(struct snib__id *id)
{
        size_t n = sizeof(left_prefix) - 1, length = strnlen(id->text, SNIB__ID_MAX - 1 - n);

        _Static_assert(SNIB__ID_MAX > sizeof(left_prefix) + SNIB__UUID_LENGTH + 1 + 20,
                       "the id of every client's hold fits");
        memmove(id->text + n, id->text, length);
        memcpy(id->text, left_prefix, n);
        id->text[n + length] = 0;
}

bool snib__id_is_left(const struct snib__id *id, const struct snib__id *of)
{
        size_t n = sizeof(left_prefix) - 1;

        return strncmp(id->text, left_prefix, n) == 0 && (!of || strcmp(id->text + n, of->text) == 0);
}

/* The 128 bits of a uuid as two words. */
static void uuid_bits(const char *text, uint64_t ret[2])
{
        int digits = 0;

        ret[0] = ret[1] = 0;
        for (int i = 0; i < SNIB__UUID_LENGTH; i++) {
                if (text[i] == '-')
                        continue;
                ret[digits / 16] = ret[digits / 16] << 4 | (uint64_t)digit(text[i]);
                digits++;
        }
}

static void hex(uint64_t word, char *ret)
{
        for (int i = 0; i < 16; i++)
                ret[i] = "0123456789abcdef"[word >> (60 - 4 * i) & 15];
}

bool snib__permit_id(const struct snib__id *hold, int64_t index, char ret[33])
{
        const char *p = hold->text + SNIB__UUID_LENGTH + 1;
        char client[SNIB__UUID_LENGTH + 1];
        uint64_t uuid[2], number = 0;

        if (!snib__id_client(hold, client) || !*p)
                return false;
        uuid_bits(client, uuid);
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
