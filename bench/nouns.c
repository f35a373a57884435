/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every object of snib as something that is taken and given back, through its public interface: so
 * that one loop can drive them all. A seat is one thread's use of one object and holds at most one
 * grant. Nothing here waits for another thread but the call of the object itself.
 */

#include "bench.h"
#include <stdio.h>
#include <string.h>

static const struct {
        const char *text;
        const char *pair;
        int lock; /* enum snib_lock_kind; -1: no lock */
} nouns[BENCH_NOUNS] = {[BENCH_LOCK] = {"lock", "acquire, release", SNIB_LOCK_REENTRANT},
                        [BENCH_FENCED] = {"fenced lock", "acquire, release", SNIB_LOCK_FENCED},
                        [BENCH_FAIR] = {"fair lock", "acquire, release", SNIB_LOCK_FAIR},
                        [BENCH_SPIN] = {"spin lock", "acquire, release", SNIB_LOCK_SPIN},
                        [BENCH_READ] = {"read side", "acquire, release", -1},
                        [BENCH_WRITE] = {"write side", "acquire, release", -1},
                        [BENCH_SEMAPHORE] = {"semaphore", "acquire, release", -1},
                        [BENCH_PERMITS] = {"permits", "acquire, release", -1},
                        [BENCH_LATCH] = {"latch", "set, count down", -1},
                        [BENCH_REGISTER] = {"register", "write, read", -1}};

const char *bench_noun_text(enum bench_noun noun)
{
        return nouns[noun].text;
}

const char *bench_noun_pair(enum bench_noun noun)
{
        return nouns[noun].pair;
}

static void must(int result, const struct snib_error *err)
{
        if (result < 0)
                bench_die("%s", err->text);
}

void bench_seat_begin(struct bench_seat *s, snib_client *client, enum bench_noun noun, const char *where)
{
        struct snib_lock_options options = {.size = sizeof(struct snib_lock_options), .kind = nouns[noun].lock};
        struct snib_error err = SNIB_ERROR_INIT;
        char name[64];

        *s = (struct bench_seat){.noun = noun};
        /* One name is of one kind. */
        snprintf(name, sizeof(name), "bench:%s:%s", nouns[noun].text, where);
        if (nouns[noun].lock >= 0) {
                must(snib_lock_new(client, name, &options, &s->lock, &err), &err);
        } else if (noun == BENCH_READ || noun == BENCH_WRITE) {
                must(snib_rwlock_new(client, name, NULL, &s->rwlock, &err), &err);
        } else if (noun == BENCH_SEMAPHORE) {
                must(snib_semaphore_new(client, name, 0, &s->semaphore, &err), &err);
                must(snib_semaphore_set(s->semaphore, 1, 0, &err), &err);
        } else if (noun == BENCH_PERMITS) {
                must(snib_permits_new(client, name, NULL, &s->permits, &err), &err);
                must(snib_permits_set(s->permits, 1, &err), &err);
        } else if (noun == BENCH_LATCH) {
                must(snib_latch_new(client, name, 0, &s->latch, &err), &err);
        } else {
                must(snib_register_new(client, name, 0, &s->reg, &err), &err);
        }
}

void bench_seat_end(struct bench_seat *s)
{
        snib_lock_free(s->lock);
        snib_rwlock_free(s->rwlock);
        snib_semaphore_free(s->semaphore);
        snib_permits_free(s->permits);
        snib_latch_free(s->latch);
        snib_register_free(s->reg);
}

static snib_lock *side(const struct bench_seat *s)
{
        return s->noun == BENCH_READ ? snib_rwlock_read(s->rwlock) : snib_rwlock_write(s->rwlock);
}

bool bench_seat_take(struct bench_seat *s, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int result;

        switch (s->noun) {
        case BENCH_READ:
        case BENCH_WRITE:
                result = snib_lock_acquire(side(s), wait_ms, &s->grant, &err);
                break;
        case BENCH_SEMAPHORE:
                result = snib_semaphore_acquire(s->semaphore, 1, wait_ms, &err);
                break;
        case BENCH_PERMITS:
                result = snib_permits_acquire(s->permits, 1, wait_ms, &s->grant, &err);
                break;
        case BENCH_LATCH:
                result = snib_latch_set(s->latch, 1, &err);
                break;
        case BENCH_REGISTER:
                result = snib_register_write(s->reg, "value", strlen("value"), SNIB_ANY_VERSION, NULL, &err);
                break;
        default:
                result = snib_lock_acquire(s->lock, wait_ms, &s->grant, &err);
        }
        if (result < 0)
                bench_die("%s: %s", nouns[s->noun].text, err.text);
        return result == 1;
}

void bench_seat_give(struct bench_seat *s)
{
        struct snib_value value = SNIB_VALUE_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        int result;

        switch (s->noun) {
        case BENCH_SEMAPHORE:
                result = snib_semaphore_release(s->semaphore, 1, &err);
                break;
        case BENCH_LATCH:
                result = snib_latch_count_down(s->latch, 1, NULL, &err);
                break;
        case BENCH_REGISTER:
                result = snib_register_read(s->reg, &value, &err);
                snib_value_free(&value);
                break;
        default:
                result = snib_grant_release(s->grant, &err);
        }
        if (result != 1)
                bench_die("%s: not given back: %s", nouns[s->noun].text, err.text);
}
