# SPDX-License-Identifier: Apache-2.0
"""The fair queue, in which C and Java processes stand together."""

import random

from workers import Actor, equal, until
from play import LOOK_LIMIT_MS, NAMES, describe_wakes, ms, nothing_left

WAITERS = 20
WAITER_LEASE_MS = 5000  # of a C waiter in the queue


def queue_length(store, name):
    return store.do("LLEN", f"redisson_lock_queue:{{{name}}}")


def fair_order(note, store, c, java, kind, quitters=0):
    """Mixed waiters are served strictly in the order of their arrival; those that give up are
    skipped."""
    base, name = NAMES.new(kind)
    rng = random.Random(f"{name} {quitters}")
    holder = Actor(rng.choice((c, java)).role)
    holder.takes(name, kind)
    sides = [c.role, java.role] * (WAITERS // 2)
    rng.shuffle(sides)
    quits = set(rng.sample(range(WAITERS - 1), quitters))
    waiters = []
    for i, role in enumerate(sides):
        actor = Actor(role)
        waiters.append((i, actor, actor.wait(name, kind, 1500 if i in quits else 60000)))
        until(lambda: queue_length(store, name) == i + 1, f"waiter {i}, {actor.side}, is in the queue")
    equal(store.do("ZCARD", f"redisson_lock_timeout:{{{name}}}"), WAITERS, "members of the set of deadlines")
    for i in quits:
        assert waiters[i][2].answer().no, "it gives up"
    until(lambda: queue_length(store, name) == WAITERS - quitters, "who gave up is out of the queue")
    wakes, released = [], holder.releases(name, kind)
    left = [w for w in waiters if w[0] not in quits]
    for at, (i, actor, pending) in enumerate(left):
        got = pending.answer()
        assert got.done, f"waiter {i}, {actor.side}: {got}"
        assert got.end > released.begin, f"waiter {i}, {actor.side}, got it before it was released"
        wakes.append(ms(released.begin, got.end))
        early = [n for n, _, later in left[at + 1:] if later.over]
        assert not early, f"{early} got it before its turn"
        released = actor.releases(name, kind)
    describe_wakes(note, f"{len(left)} waiters, {'-'.join('CJ'[a.side == 'Java'] for _, a, _ in left)}", wakes)
    nothing_left(store, base)


def fair_dead_waiter(note, store, c, java, spare):
    """A C process that was killed while it waited: the next C waiter, wherever it stands, sees to
    it that those behind get their turn after one waiter lease. Behind a dead Java waiter, or with
    Java alone, it lasts until the dead one's turn is over."""
    base, name = NAMES.new("fair")
    java.takes(name, "fair")
    spare.begin().wait_ready()
    waiters = [Actor(spare), Actor(java.role), Actor(c.role)]
    waits = []
    for w in waiters:
        waits.append(w.wait(name, "fair", 60000))
        until(lambda: queue_length(store, name) == len(waits), f"{w.side} is in the queue")
    spare.kill()
    released = java.releases(name, "fair")
    for w, pending in zip(waiters[1:], waits[1:]):
        got = pending.answer()
        assert got.done, got
        note(f"{w.side} behind a dead C waiter gets it after {ms(released.begin, got.end):.0f} ms")
        w.releases(name, "fair")
    assert ms(released.begin, got.end) < WAITER_LEASE_MS + LOOK_LIMIT_MS
    nothing_left(store, base)
