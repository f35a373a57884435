# SPDX-License-Identifier: Apache-2.0
"""Readers and writers in C and Java processes."""

import time

from workers import Actor, equal, until
from play import EARLY_MS, LEASE_MS, NAMES, measure, ms, nothing_left


def readers_share(note, store, first, second):
    def play():
        base, name = NAMES.new("read")
        first.takes(name, "read")
        second.takes(name, "read")
        second.takes(name, "read")
        writer = Actor(first.role)
        for actor in (writer, Actor(second.role)):
            actor.may_not(name, "write")
        before = store.still(base)
        pending = writer.wait(name, "write")
        store.sleeps(base, pending, before)
        first.releases(name, "read")
        second.releases(name, "read")
        store.settled()
        assert not pending.over, f"{second.side} reads still, and the writer came in"
        begin = second.releases(name, "read").begin
        answer = pending.answer()
        assert answer.done, answer
        second.may_not(name, "read")
        writer.releases(name, "write")
        nothing_left(store, base)
        return ms(begin, answer.end)
    measure(note, f"{first.side} writer, by the last reader, {second.side}", play)


def writer_wakes_all_readers(note, store, holder, waiter):
    readers = [Actor(waiter.role) for _ in range(3)]

    def play():
        base, name = NAMES.new("write")
        holder.takes(name, "write")
        before = store.still(base)
        waits = [r.wait(name, "read") for r in readers]
        store.sleeps(base, waits[-1], before)
        begin = holder.releases(name, "write").begin
        last = max(w.answer().end for w in waits)
        for w, r in zip(waits, readers):
            assert w.value.done, w.value
            holder.may_not(name, "write")
            r.releases(name, "read")
        nothing_left(store, base)
        return ms(begin, last)
    measure(note, f"the last of three {waiter.side} readers", play)


def downgrade(note, store, holder, waiter, limit):
    """The writer that reads, then stops writing, lets the readers of the other side in."""
    readers = [Actor(waiter.role) for _ in range(2)]

    def play():
        base, name = NAMES.new("write")
        holder.takes(name, "write")
        before = store.still(base)
        waits = [r.wait(name, "read") for r in readers]
        store.sleeps(base, waits[-1], before)
        holder.takes(name, "read")
        store.settled()
        assert not any(w.over for w in waits), "it still writes"
        begin = holder.releases(name, "write").begin
        last = max(w.answer().end for w in waits)
        for w, r in zip(waits, readers):
            assert w.value.done, w.value
            waiter.may_not(name, "write")
            r.releases(name, "read")
        waiter.may_not(name, "write")
        holder.releases(name, "read")
        waiter.takes(name, "write")
        waiter.releases(name, "write")
        nothing_left(store, base)
        return ms(begin, last)
    measure(note, f"the last of two {waiter.side} readers, after {holder.side} stopped writing", play, limit)


def readers_of_both_keep_it(note, store, first, second):
    """A reader that comes and goes takes nothing from the other side's: each hold has its key,
    which both count."""
    base, name = NAMES.new("read")
    first.takes(name, "read")
    for _ in range(2):
        second.takes(name, "read")
        second.releases(name, "read")
        second.may_not(name, "write")
    assert 25000 < store.do("PTTL", name) <= 30000
    first.releases(name, "read")
    second.takes(name, "write")
    second.releases(name, "write")
    nothing_left(store, base)


def renewal_does_not_shorten(note, store, _, reader, short_reader):
    """A reader with a short lease that is renewed leaves the other side's long one alone."""
    base, name = NAMES.new("read")
    reader.takes(name, "read", 25000)
    short_reader.takes(name, "read")
    time.sleep(2.5)  # the short reader renews a few times
    left = store.do("PTTL", name)
    note(f"{left} ms are left of 25 s")
    assert left > 20000, left
    short_reader.releases(name, "read")
    short_reader.may_not(name, "write")
    reader.releases(name, "read")
    nothing_left(store, base)


def upgrade(note, store, c, java):
    base, name = NAMES.new("read")
    java.takes(name, "read")
    c.takes(name, "read")
    answer = c.acquire(name, "write", 5000)
    equal(answer.words[:2], ["error", "SNIB_EUPGRADE"], "a reader asks for the write side")
    c.releases(name, "read")
    java.releases(name, "read")
    nothing_left(store, base)


def force_reader(note, store, holder, other):
    base, name = NAMES.new("read")
    holder.takes(name, "read")
    answer = other.call("force", name, "read")
    assert answer.done, f"{other.side} forces: {answer}"
    other.takes(name, "write")
    answer = holder.call("release", name, "read")
    assert answer.refused, f"{holder.side} releases what was taken away: {answer}"
    other.releases(name, "write")
    until(lambda: [k for k in store.keys(base) if "rwlock_timeout" not in k and "unlock_latch" not in k] == [], "nothing is left")


def read_reentry(note, store, reader, writer):
    base, name = NAMES.new("read")
    for _ in range(3):
        reader.takes(name, "read")
    for _ in range(3):
        writer.may_not(name, "write")
        reader.releases(name, "read")
    writer.takes(name, "write")
    writer.releases(name, "write")
    nothing_left(store, base)


def read_expiry(note, store, reader, writer):
    base, name = NAMES.new("read")
    taken = reader.takes(name, "read", LEASE_MS)
    got = writer.wait(name, "write").answer()
    late = ms(taken.begin, got.end)
    note(f"{writer.side} writes {late:.0f} ms after a read lease of {LEASE_MS} ms began")
    assert got.done and LEASE_MS - EARLY_MS <= late < LEASE_MS + 3000, late
    writer.releases(name, "write")
    nothing_left(store, base)
