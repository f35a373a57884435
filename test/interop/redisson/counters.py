# SPDX-License-Identifier: Apache-2.0
"""Semaphores, permits that expire and latches between a C and a Java process."""

import time

from workers import Actor, equal, until
from play import EARLY_MS, LEASE_MS, LOST, NAMES, ROUNDS, describe_wakes, measure, ms, nothing_left, woken


def semaphore(note, store, holder, waiter):
    wakes = []
    for _ in range(ROUNDS):
        base, name = NAMES.new("semaphore")
        equal(holder.call("sem-set", name, 3).words[0], "1")
        equal(waiter.call("sem-set", name, 9).words[0], "0", "it is set")
        assert holder.call("sem-acquire", name, 2, 0).done
        assert waiter.call("sem-acquire", name, 2, 0).no
        assert waiter.call("sem-acquire", name, 1, 0).done
        wakes.append(woken(store, base, lambda: waiter.start("sem-acquire", name, 2, 20000),
                           lambda: holder.call("sem-release", name, 2)))
        for actor in (holder, waiter):
            equal(actor.call("sem-query", name)["free"], 0, actor.side)
        waiter.call("sem-release", name, 3)
        equal(holder.call("sem-query", name)["free"], 3)
        equal(holder.call("sem-drain", name).words[1:], ["3"])
        holder.call("sem-add", name, -1)
        equal(waiter.call("sem-query", name)["free"], -1)
        assert waiter.call("sem-acquire", name, 1, 0).no
        wakes.append(woken(store, base, lambda: waiter.start("sem-acquire", name, 1, 20000),
                           lambda: holder.call("sem-add", name, 3)))
        equal(holder.call("sem-query", name)["free"], 1)
        assert holder.call("sem-delete", name).done
    describe_wakes(note, f"{waiter.side} waits", wakes)


def semaphore_mixed(note, store, c, java):
    """Ten waiters of both sides and permits given back one by one: as many come in as there are
    permits."""
    base, name = NAMES.new("semaphore")
    assert c.call("sem-set", name, 0).done
    actors = [Actor((c if i % 2 else java).role) for i in range(10)]
    waits = [a.start("sem-acquire", name, 1, 20000) for a in actors]
    until(lambda: store.subscribers(base) == 2, "both processes wait")
    store.settled()
    for given in range(1, 11):
        (java if given % 2 else c).call("sem-release", name, 1)
        until(lambda: sum(w.over for w in waits) == given, f"{given} came in")
    assert all(w.value.done for w in waits)
    equal(c.call("sem-query", name)["free"], 0)
    assert c.call("sem-delete", name).done


def permits(note, store, holder, waiter, by_id):
    """Acquired on one side, released by its id on the other, which frees it for a waiter. `by_id`:
    the other side can."""
    wakes = []
    for _ in range(ROUNDS):
        base, name = NAMES.new("permits")
        assert holder.call("permits-set", name, 2).done
        assert waiter.call("permits-set", name, 5).no
        ids = [holder.call("permits-acquire", name, 1, 0, 0).words[1] for _ in range(2)]
        equal([len(i) for i in ids], [32, 32], "ids")
        assert waiter.call("permits-acquire", name, 1, 0, 0).no
        equal([a.call("permits-query", name)["free"] for a in (holder, waiter)], [0, 0])
        wakes.append(woken(store, base, lambda: waiter.start("permits-acquire", name, 1, 20000, 0),
                           lambda: holder.call("permits-release", name, ids[0])))
        stranger = Actor(waiter.role)
        if not by_id:
            assert not stranger.call("permits-release", name, ids[1]).done, "it looks for another form of the id"
            stranger = Actor(holder.role)
        assert stranger.call("permits-release", name, ids[1]).done, "by its id, whoever acquired it"
        assert not stranger.call("permits-release", name, ids[1]).done, "it is released already"
        assert not holder.call("permits-release", name, ids[0]).done, "it is released already"
        equal([a.call("permits-query", name)["free"] for a in (holder, waiter)], [1, 1])
        assert holder.call("permits-delete", name).done
    describe_wakes(note, f"{waiter.side} waits", wakes)


def permits_renewed_there(note, store, holder, other):
    """A lease that the other side starts again, by id, ends when that says."""
    base, name = NAMES.new("permits")
    assert holder.call("permits-set", name, 1).done
    permit = holder.call("permits-acquire", name, 1, 0, 20000).words[1]
    renewed = other.call("permits-renew", name, permit, LEASE_MS)
    assert renewed.done, renewed
    got = Actor(other.role).call("permits-acquire", name, 1, 20000, 0)
    late = ms(renewed.begin, got.end)
    note(f"{other.side} gets it {late:.0f} ms after it was told to end in {LEASE_MS} ms")
    assert got.done and LEASE_MS - EARLY_MS <= late < LEASE_MS + 3000, late
    assert not other.call("permits-renew", name, permit, 1000).done, "it is out no more"


def permits_expire(note, store, holder, waiter):
    """A permit whose lease ends comes back, and the waiter of the other side sees to it in time."""
    base, name = NAMES.new("permits")
    assert holder.call("permits-set", name, 1).done
    taken = holder.call("permits-acquire", name, 1, 0, LEASE_MS)
    got = waiter.call("permits-acquire", name, 1, 20000, 0)
    late = ms(taken.begin, got.end)
    note(f"{waiter.side} gets it {late:.0f} ms after a lease of {LEASE_MS} ms began")
    assert got.done and LEASE_MS - EARLY_MS <= late < LEASE_MS + 3000, late
    assert not holder.call("permits-release", name, taken.words[1]).done, "it expired"
    assert waiter.call("permits-release", name, got.words[1]).done
    equal([a.call("permits-query", name)["free"] for a in (holder, waiter)], [1, 1])


def permits_renewed(note, store, _, java, holder, by_id):
    """The watchdog of C keeps a permit over several leases; one that Java releases is told as lost.
    Redisson has no watchdog here."""
    base, name = NAMES.new("permits")
    assert java.call("permits-set", name, 1).done
    permit = holder.call("permits-acquire", name, 1, 0, 0).words[1]
    end = time.monotonic() + 3
    while time.monotonic() < end:
        assert java.call("permits-acquire", name, 1, 0, 0).no
        time.sleep(0.1)
    if by_id:
        assert java.call("permits-release", name, permit).done
        until(lambda: holder.call("loss", name, "permits").words[0] in LOST, "the loss is told")


def permits_many(note, store, holder, waiter):
    """Several at once, all or none."""
    base, name = NAMES.new("permits")
    assert holder.call("permits-set", name, 3).done
    ids = holder.call("permits-acquire", name, 2, 0, 0).words[1:]
    equal(len(set(ids)), 2)
    assert waiter.call("permits-acquire", name, 2, 0, 0).no
    assert not waiter.call("permits-release", name, ids[0], "0" * 32).done, "one of them is not out"
    assert waiter.call("permits-release", name, *ids).done
    ids = waiter.call("permits-acquire", name, 3, 0, 0).words[1:]
    equal(len(set(ids)), 3)
    equal([a.call("permits-query", name)["free"] for a in (holder, waiter)], [0, 0])
    assert holder.call("permits-release", name, *ids).done


def latch(note, store, counter, waiter):
    def play():
        base, name = NAMES.new("latch")
        assert waiter.call("latch-await", name, 0).done, "a latch that does not exist is open"
        assert counter.call("latch-set", name, 2).done
        assert waiter.call("latch-set", name, 5).no
        assert waiter.call("latch-await", name, 0).no
        equal([a.call("latch-query", name)["left"] for a in (counter, waiter)], [2, 2])
        before = store.still(base)
        pending = waiter.start("latch-await", name, 20000)
        store.sleeps(base, pending, before)
        assert counter.call("latch-down", name).done
        store.settled()
        assert not pending.over, "one is left"
        begin = counter.call("latch-down", name).begin
        answer = pending.answer()
        assert answer.done, answer
        equal([a.call("latch-query", name)["left"] for a in (counter, waiter)], [0, 0])
        nothing_left(store, base)
        return ms(begin, answer.end)
    measure(note, f"{waiter.side} waits", play)


def latch_deleted(note, store, remover, waiter, limit):
    def play():
        base, name = NAMES.new("latch")
        assert waiter.call("latch-set", name, 3).done
        wake = woken(store, base, lambda: waiter.start("latch-await", name, 20000), lambda: remover.call("latch-delete", name))
        assert remover.call("latch-delete", name).no
        nothing_left(store, base)
        return wake
    measure(note, f"{waiter.side} awaits, {remover.side} deletes", play, limit)
