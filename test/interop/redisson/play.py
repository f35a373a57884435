# SPDX-License-Identifier: Apache-2.0
"""What the cases of the interop suite share: names, limits, and how a wake-up is measured."""

import itertools
import re
import statistics
import time

from workers import until

ROUNDS = 3            # of what is measured; the median counts
WAKE_LIMIT_MS = 300   # far below the 1 s after which a C waiter looks by itself, and the 30 s after which a Java waiter does
SPIN_LIMIT_MS = 600   # back-off up to 128 ms, and its random part
LOOK_LIMIT_MS = 3000  # where there is no message: a C waiter's own looks
LEASE_MS = 700
SHORT_LEASE_MS = 1500
LOST = ("3", "4")     # SNIB_LOSS_TAKEN, SNIB_LOSS_GONE
EARLY_MS = 20         # a C holder counts from before it asked, and may give back what it lost before the store would take it
# What a counter of tokens is in, and what a side remembers of its requests for a minute.
STAYS = "redisson_lock_token|redisson_unlock_latch|snib_request"


class Names:
    """Every case has names of its own, so that none meets what another left."""

    numbers = itertools.count(1)

    def new(self, kind):
        base = f"{kind}-{next(self.numbers)}."
        return base, f"{base}a,{base}b" if kind == "multi" else base


NAMES = Names()


def ms(begin, end):
    return (end - begin) / 1e6


def describe_wakes(note, what, wakes, limit=WAKE_LIMIT_MS):
    note(f"{what}: woken after {', '.join(f'{w:.1f}' for w in wakes)} ms")
    assert statistics.median(wakes) < limit, f"woken by a time-out, not by the message: {wakes}"


def measure(note, what, play, limit=WAKE_LIMIT_MS):
    """Plays it a few times; each answers how long the wake-up took."""
    describe_wakes(note, what, [play() for _ in range(ROUNDS)], limit)


def nothing_left(store, base):
    """But what may stay."""
    def left():
        return [k for k in store.keys(base) if not re.search(STAYS, k)]
    until(lambda: not left(), f"nothing is left of {base}, there was {left()}")


def woken(store, base, wait, release, polls=False):
    """Starts a waiter, lets it fall asleep, releases; milliseconds from the request to release to
    the waiter's answer."""
    before = store.still(base)
    pending = wait()
    if polls:
        seen = store.scripts()
        until(lambda: store.scripts() > seen + 3, f"{pending.about} asks again")
    else:
        store.sleeps(base, pending, before)
    begin = release().begin
    answer = pending.answer()
    assert answer.done, f"{pending.about}: {answer}"
    return ms(begin, answer.end)
