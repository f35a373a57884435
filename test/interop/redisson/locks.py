# SPDX-License-Identifier: Apache-2.0
"""Locks that only one can hold, between a C and a Java process."""

import time

from workers import Actor, equal, until
from play import EARLY_MS, LEASE_MS, LOST, NAMES, SHORT_LEASE_MS, SPIN_LIMIT_MS, WAKE_LIMIT_MS, measure, ms, nothing_left, woken


def hand_over(note, store, holder, waiter, held, wanted):
    def play():
        base, name = NAMES.new(held)
        holder.takes(name, held)
        waiter.may_not(name, wanted)
        wake = woken(store, base, lambda: waiter.wait(name, wanted), lambda: holder.releases(name, held), polls=wanted == "spin")
        holder.may_not(name, held)
        waiter.releases(name, wanted)
        nothing_left(store, base)
        return wake
    measure(note, f"{waiter.side} waits for {wanted}", play, SPIN_LIMIT_MS if wanted == "spin" else WAKE_LIMIT_MS)


def a_member_is_enough(note, store, holder, waiter):
    """A multilock is refused because of one member, and keeps nothing of the rest; a member of one
    that is held is refused."""
    def play():
        base, name = NAMES.new("multi")
        first, second = name.split(",")
        holder.takes(second, "lock")
        waiter.may_not(name, "multi")
        holder.takes(first, "lock")
        holder.releases(first, "lock")
        wake = woken(store, base, lambda: waiter.wait(name, "multi"), lambda: holder.releases(second, "lock"))
        for member in (first, second):
            holder.may_not(member, "lock")
        waiter.releases(name, "multi")
        nothing_left(store, base)
        return wake
    measure(note, f"{waiter.side} waits for a member", play)


def seen_from_there(note, store, holder, waiter, kind):
    """Who holds, and for how long, is the same on both sides."""
    base, name = NAMES.new(kind)
    holder.takes(name, kind)
    for actor in (holder, waiter):
        info = actor.call("query", name, kind)
        equal((info["held"], info["mine"]), (1, int(actor is holder)), f"{actor.side}: {info}")
        assert 25000 < info["left"] <= 30000, info
        if actor.side == "C":
            equal((info["foreign"], info["holders"]), (int(actor is waiter), 1), f"{info}")
    holder.releases(name, kind)
    for actor in (holder, waiter):
        equal(actor.call("query", name, kind)["held"], 0, actor.side)
    nothing_left(store, base)


def reentry(note, store, holder, other, kind):
    base, name = NAMES.new(kind)
    for _ in range(3):
        holder.takes(name, kind)
    for _ in range(3):
        other.may_not(name, kind)
        holder.releases(name, kind)
    other.takes(name, kind)
    holder.may_not(name, kind)
    other.releases(name, kind)
    answer = holder.call("release", name, kind)
    # Redisson's fair lock is satisfied when nobody holds it, and so were the sides of a read-write
    # lock before 3.44.
    assert answer.refused or (holder.side == "Java" and kind in ("fair", "write")), f"{holder.side} releases what nobody holds: {answer}"
    nothing_left(store, base)


def no_reentry(note, store, holder, other, kind):
    base, name = NAMES.new(kind)
    holder.takes(name, kind)
    again = holder.acquire(name, kind)
    assert again.refused, f"{holder.side} acquires again: {again}"
    note(f"{holder.side}: {again}")
    other.may_not(name, kind)
    holder.releases(name, kind)
    nothing_left(store, base)


def not_mine(note, store, holder, other, kind):
    """Nobody can release what the other side holds."""
    base, name = NAMES.new(kind)
    holder.takes(name, kind)
    answer = other.call("release", name, kind)
    assert answer.refused, f"{other.side} releases what it does not hold: {answer}"
    assert holder.call("query", name, kind)["held"] == 1
    holder.releases(name, kind)
    nothing_left(store, base)


def expiry(note, store, holder, waiter, kind):
    """A lease that is not renewed ends; the waiter gets it then, without a message."""
    base, name = NAMES.new(kind)
    held = holder.takes(name, kind, LEASE_MS)
    got = waiter.wait(name, kind).answer()
    assert got.done, got
    late = ms(held.begin, got.end)
    note(f"{waiter.side} gets it {late:.0f} ms after a lease of {LEASE_MS} ms began")
    assert LEASE_MS - EARLY_MS <= late < LEASE_MS + 3000, late
    answer = holder.call("release", name, kind)
    assert answer.refused, f"{holder.side} releases what expired: {answer}"
    holder.may_not(name, kind)
    waiter.releases(name, kind)
    nothing_left(store, base)


def renewal(note, store, holder, other, kind, short_holder):
    """The watchdog of either side keeps a hold over several leases."""
    base, name = NAMES.new(kind)
    short_holder.takes(name, kind)
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        other.may_not(name, kind)
        time.sleep(0.1)
    short_holder.releases(name, kind)
    other.takes(name, kind)
    other.releases(name, kind)
    nothing_left(store, base)


def force(note, store, holder, other, kind):
    base, name = NAMES.new(kind)
    equal(other.call("force", name, kind).words[0], "0", "nobody holds it")
    holder.takes(name, kind)
    answer = other.call("force", name, kind)
    assert answer.done, f"{other.side} forces: {answer}"
    other.takes(name, kind)
    answer = holder.call("release", name, kind)
    assert answer.refused, f"{holder.side} releases what was taken away: {answer}"
    other.releases(name, kind)
    nothing_left(store, base)


def loss_is_told(note, store, _, java, kind, holder):
    """A C holder learns from its watchdog that Java took the lock away."""
    base, name = NAMES.new(kind)
    holder.takes(name, kind)
    begin = java.call("force", name, kind)
    assert begin.done, begin
    until(lambda: holder.call("loss", name, kind).words[0] in LOST, "the loss is told")
    note(f"told after {ms(begin.end, store.now()):.0f} ms, with a lease of {SHORT_LEASE_MS} ms")
    assert ms(begin.end, store.now()) < 2 * SHORT_LEASE_MS
    assert holder.call("release", name, kind).refused
    nothing_left(store, base)


def force_wakes(note, store, holder, other, kind):
    """Forced by its own side; the waiter is on the other."""
    def play():
        base, name = NAMES.new(kind)
        holder.takes(name, kind)
        wake = woken(store, base, lambda: other.wait(name, kind), lambda: Actor(holder.role).call("force", name, kind))
        assert holder.call("release", name, kind).refused
        other.releases(name, kind)
        nothing_left(store, base)
        return wake
    measure(note, f"{other.side} waits", play)


def tokens(note, store, c, java):
    """Fencing tokens rise over both sides."""
    base, name = NAMES.new("fenced")
    seen = []
    for actor in (c, java, c, c, java, java, c):
        seen.append(int(actor.takes(name, "fenced").words[1]))
        actor.releases(name, "fenced")
    equal(sorted(set(seen)), seen, "tokens rise")
