/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the server tells this client alone, on its own channel: that one of its waiters was made
 * holder, or is next; see hand_over.lua. Each message becomes a note of its own. Bytes are the
 * server's: what is not of the form "ID LAST-TOKEN TOKENS NUMBER STREAK NAME", or about the id of
 * another client, is dropped, and so is what comes faster than it is taken: the waiter finds out
 * with its next question. A note's memory lives until the next process().
 */

#include "base/alloc.h"
#include "base/seedbug.h"
#include "engine/redis/internal.h"
#include <stdlib.h>
#include <string.h>

/* Notes that nobody has taken yet. */
#define GRANTS_MAX 1024

struct grant {
        struct snib__letter letter;
        struct snib__id id;
        int64_t token; /* 0: next, not holder */
        uint32_t number;
        uint8_t streak;
        size_t length;
        char name[];
};

/* Takes a decimal and the blank behind it. */
static bool number(const char **text, const char *end, int64_t most, int64_t *ret)
{
        const char *at = *text;
        int64_t n = 0;

        for (; at < end && *at >= '0' && *at <= '9'; at++)
                if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *at - '0', &n) || n > most)
                        return false;
        if (at == *text || at == end || *at != ' ')
                return false;
        *text = at + 1;
        *ret = n;
        return true;
}

static bool parse(const struct redis *r, const char *text, size_t length, struct grant *ret)
{
        const char *end = text + length, *blank = memchr(text, ' ', length);
        size_t id = blank ? (size_t)(blank - text) : 0;
        int64_t tokens, asked, streak;

        if (!id || id >= SNIB__ID_MAX)
                return false;
        memcpy(ret->id.text, text, id);
        if (!snib__id_of_client(&ret->id, r->uuid))
                return false;
        text = blank + 1;
        if (!number(&text, end, INT64_MAX, &ret->token) || !number(&text, end, SNIB__TOKEN_BLOCK, &tokens) ||
            !number(&text, end, UINT32_MAX, &asked) || !number(&text, end, SNIB__STREAK_MAX, &streak) ||
            ret->token < tokens)
                return false;
        ret->token -= tokens ? tokens - 1 : 0; /* the first of them, as in all answers */
        ret->number = (uint32_t)asked;
        ret->streak = (uint8_t)streak;
        ret->length = (size_t)(end - text);
        memcpy(ret->name, text, ret->length);
        return ret->length > 0 && ret->length <= SNIB_NAME_MAX;
}

void snib__granted_message(struct redis *r, const char *text, size_t length)
{
        struct grant *g;

        if (SNIB__BUG(notification_dropped) || r->grants == GRANTS_MAX || !(g = snib__alloc(sizeof(*g) + length)))
                return;
        if (!parse(r, text, length, g)) {
                free(g);
                return;
        }
        r->grants++;
        snib__outbox_post(&r->outbox, &g->letter, &snib__granted_letter);
}

static bool write(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        const struct grant *g = snib__container(l, struct grant, letter);

        (void)owner;
        *ret = (struct snib__note){.kind = g->token ? SNIB__NOTE_GRANTED : SNIB__NOTE_NEXT,
                                   .name = {g->name, g->length},
                                   .id = g->id,
                                   .tag.attempt = g->number,
                                   .reply = {.token = g->token, .streak = g->streak}};
        return false;
}

void snib__granted_free(struct snib__letter *l)
{
        free(snib__container(l, struct grant, letter));
}

static void back(void *owner, struct snib__letter *l, snib__ns now)
{
        struct redis *r = owner;

        (void)now;
        snib__granted_free(l);
        r->grants--;
}

const struct snib__letter_kind snib__granted_letter = {.write = write, .back = back};
