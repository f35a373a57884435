/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where threads sleep that wait for others to drive, and how they are woken. Not who is woken, and
 * what for: that is baton.c's, effects.c's and multi_run.c's.
 *
 * Up to 32 threads sleep on one word, each under a bit of its own, so that a crowd whose answers
 * came together is woken by one system call, after the client's lock was given up. With a call for
 * each, whoever was woken would run in between, and all change the processor twice as often. A few
 * are woken one by one just for that: what the first asks for leaves while the others sleep.
 *
 * A sleeper looks at its own record's word; the bed's word only counts calls. No call is missed:
 * the record's word is set before the call is counted, and the sleeper reads the count before it
 * looks. A bit is free again when its sleeper is named, so for a moment two may have it, and one be
 * woken in vain: it looks, and sleeps on.
 */

#include "base/cleanup.h"
#include "runtime/client.h"

/* More than these are a crowd. */
#define FEW 16

static void take_bed(struct snib_client *c, struct snib__wait *w)
{
        int i = __builtin_ctz(~c->beds_full);
        struct snib__bed *b = &c->beds[i];

        w->bed = b;
        w->bit = ~b->taken & (b->taken + 1); /* the lowest that is free */
        b->taken |= w->bit;
        if (b->taken == UINT32_MAX)
                c->beds_full |= UINT32_C(1) << i;
}

void snib__sleep_begin(struct snib_client *c, struct snib__wait *w)
{
        w->bed = NULL;
        if (w->deadline == SNIB__NEVER && c->beds_full != UINT32_MAX)
                take_bed(c, w);
        atomic_store_explicit(&w->word, SNIB__ASLEEP, memory_order_relaxed);
        w->asleep = true;
        c->asleep++;
}

static bool still_asleep(const struct snib__wait *w)
{
        return atomic_load_explicit(&w->word, memory_order_acquire) == SNIB__ASLEEP;
}

void snib__sleep(struct snib__wait *w)
{
        struct snib__bed *b = w->bed;
        uint32_t bit = w->bit, calls;

        if (!b) {
                snib__os_sleep(&w->word, SNIB__ASLEEP, w->deadline);
                return;
        }
        calls = atomic_load(&b->calls);
        while (still_asleep(w)) {
                snib__os_sleep_bit(&b->calls, calls, bit);
                calls = atomic_load(&b->calls);
        }
}

void snib__sleep_end(struct snib_client *c, struct snib__wait *w, uint32_t word)
{
        _Atomic uint32_t *at = &w->word;
        struct snib__bed *b = w->bed;
        uint32_t bit = w->bit;

        w->asleep = false;
        c->asleep--;
        /* Release: who sees the word without the lock sees what was done for it. The record may be
         * gone with that. */
        atomic_store_explicit(at, word, memory_order_release);
        if (!b) {
                snib__os_wake(at);
                return;
        }
        b->taken &= ~bit;
        b->woken |= bit;
        c->beds_full &= ~(UINT32_C(1) << (b - c->beds));
        c->beds_woken |= UINT32_C(1) << (b - c->beds);
}

static void call(struct snib__bed *b, uint32_t bits, bool together)
{
        (void)atomic_fetch_add(&b->calls, 1);
        if (together)
                snib__os_wake_bits(&b->calls, bits);
        for (; bits && !together; bits &= bits - 1)
                snib__os_wake_bits(&b->calls, bits & -bits);
}

void snib__sleep_unlock(struct snib_client *c)
{
        _unset_ uint32_t bits[SNIB__BEDS];
        uint32_t beds = c->beds_woken;
        int count = 0;

        for (uint32_t left = beds; left; left &= left - 1) {
                struct snib__bed *b = &c->beds[__builtin_ctz(left)];

                bits[b - c->beds] = b->woken;
                count += __builtin_popcount(b->woken);
                b->woken = 0;
        }
        c->beds_woken = 0;
        (void)pthread_mutex_unlock(&c->lock);
        for (uint32_t left = beds; left; left &= left - 1) {
                struct snib__bed *b = &c->beds[__builtin_ctz(left)];

                call(b, bits[b - c->beds], count > FEW);
        }
}

/* ---- one who waits for several clients */

enum { DESERTED = 0, ATTENDED, RUNG };

void snib__bell_attend(struct snib__bell *b)
{
        /* In this order: rung in between, it is readable, and once too often at worst. */
        if (b->fd >= 0)
                snib__os_event_clear(b->fd);
        atomic_store(&b->state, ATTENDED);
}

void snib__bell_desert(struct snib__bell *b)
{
        atomic_store(&b->state, DESERTED);
}

bool snib__bell_attended(const struct snib__bell *b)
{
        return atomic_load(&b->state) != DESERTED;
}

bool snib__bell_ring(struct snib__bell *b)
{
        uint32_t state = ATTENDED;

        if (!atomic_compare_exchange_strong(&b->state, &state, RUNG))
                return state == RUNG;
        if (b->fd >= 0)
                snib__os_event_set(b->fd);
        else
                snib__os_wake(&b->state);
        return true;
}

void snib__bell_sleep(struct snib__bell *b, snib__ns until)
{
        snib__os_sleep(&b->state, ATTENDED, until);
}
