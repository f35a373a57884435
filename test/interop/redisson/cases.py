# SPDX-License-Identifier: Apache-2.0
"""The cases of the interop suite: what each object does between a C and a Java process, in both
directions.

A direction is named by who holds first: "C to Java" is C that holds and Java that waits. A case
takes `note`, which prints a line, the store, and actors: threads of the processes of both sides,
new for each case. """

import counters
import fair
import locks
import rwlock
from workers import Actor
from play import LOOK_LIMIT_MS, SHORT_LEASE_MS, WAKE_LIMIT_MS

# Locks that only one can hold, and the first Redisson that has them.
EXCLUSIVE = {"lock": "3.16.4", "fair": "3.16.4", "spin": "3.16.4", "write": "3.16.4", "multi": "3.16.4", "fenced": "4.7.0",
             "non-reentrant": "4.7.0", "non-reentrant-fair": "4.7.0"}
ROWS = {"lock": "lock", "fair": "fair lock", "spin": "spin lock", "write": "read-write lock", "read": "read-write lock",
        "multi": "multilock", "fenced": "fenced lock", "non-reentrant": "non-re-entrant lock",
        "non-reentrant-fair": "non-re-entrant fair lock"}


class Cast:
    """Who plays: two processes of each side, one of which has short leases, so that its watchdog is
    seen at work."""

    def __init__(self, stage):
        self.store = stage.store
        self.roles = {side: stage.role(side) for side in ("C", "Java")}
        self.short = {side: stage.role(side, SHORT_LEASE_MS) for side in ("C", "Java")}
        self.spare = stage.role("C")

    def all(self):
        return [*self.roles.values(), *self.short.values()]


class Adder:
    """Adds the cases of one direction; each gets the store and two actors of its own."""

    def __init__(self, results, cast, first, second):
        self.results, self.cast, self.first, self.second = results, cast, first, second
        self.direction = f"{first} to {second}"

    def add(self, row, what, function, *args, together=False):
        a, b = Actor(self.cast.roles[self.first]), Actor(self.cast.roles[self.second])
        self.results.add(row, self.direction, f"{what}, {self.direction}", function, self.cast.store, a, b, *args, together=together)

    def short(self):
        return Actor(self.cast.short[self.first])


def add_exclusive(adder, kind):
    def add(what, function, *args, together=False):
        adder.add(ROWS[kind], f"{kind}: {what}", function, *args, together=together)
    add("hand over", locks.hand_over, kind, kind)
    if kind == "multi":
        add("a member is enough", locks.a_member_is_enough)
        return
    add("seen from there", locks.seen_from_there, kind)
    add("release by a stranger", locks.not_mine, kind)
    add("re-entry", locks.no_reentry if "non-" in kind else locks.reentry, kind)
    add("a lease ends", locks.expiry, kind, together=True)
    add("the watchdog", locks.renewal, kind, adder.short(), together=True)
    add("force", locks.force, kind)
    if adder.first == "C":
        add("the loss is told", locks.loss_is_told, kind, adder.short(), together=True)
    if kind != "spin":
        add("force wakes", locks.force_wakes, kind)


def add_rwlock(adder):
    def add(what, function, *args, together=False):
        adder.add(ROWS["read"], f"read-write: {what}", function, *args, together=together)
    add("a reader waits for a writer", locks.hand_over, "write", "read")
    add("a writer waits for a reader", locks.hand_over, "read", "write")
    add("readers share", rwlock.readers_share)
    add("a writer wakes all readers", rwlock.writer_wakes_all_readers)
    add("readers of both sides keep it", rwlock.readers_of_both_keep_it)
    add("re-entry of a reader", rwlock.read_reentry)
    add("force a reader", rwlock.force_reader)
    # Redisson says nothing when it stops writing but reads on; a C waiter looks every second.
    add("downgrade", rwlock.downgrade, WAKE_LIMIT_MS if adder.first == "C" else LOOK_LIMIT_MS)
    add("a reader's lease ends", rwlock.read_expiry, together=True)
    if adder.first == "C":  # Redisson's renewal does shorten the lease of others
        add("renewal shortens nobody's lease", rwlock.renewal_does_not_shorten, adder.short(), together=True)


def add_counters(adder, version):
    add = adder.add
    add("semaphore", "semaphore: hand over, add, drain", counters.semaphore)
    # Before 3.17 Redisson stored ids as text, and does not find those that are stored as bytes; C
    # finds both.
    by_id = adder.first == "Java" or has(version, "3.17.0")
    add("expiring permits", "permits: hand over, by id", counters.permits, by_id)
    add("expiring permits", "permits: a lease ends", counters.permits_expire, together=True)
    if adder.first == "C":
        add("expiring permits", "permits: the watchdog", counters.permits_renewed, adder.short(), by_id, together=True)
    if by_id:
        add("expiring permits", "permits: a lease is started again from there", counters.permits_renewed_there, together=True)
    if has(version, "3.23.4"):
        add("expiring permits", "permits: several at once", counters.permits_many)
    add("latch", "latch: opened from there", counters.latch)
    # Redisson tells its own waiters to go on sleeping when a latch is deleted; a C waiter looks
    # every second.
    add("latch", "latch: deleted from there", counters.latch_deleted, WAKE_LIMIT_MS if adder.first == "C" else LOOK_LIMIT_MS)


def add_mixed(results, version, cast):
    def add(row, what, function, *args):
        actors = [Actor(cast.roles["C"]), Actor(cast.roles["Java"])]
        results.add(row, "mixed", f"{row}: {what}", function, cast.store, *actors, *args)
    for kind in ("fair", "non-reentrant-fair"):
        if has(version, EXCLUSIVE[kind]):
            add(ROWS[kind], f"{fair.WAITERS} waiters in order", fair.fair_order, kind)
            add(ROWS[kind], "some give up", fair.fair_order, kind, 6)
    add(ROWS["fair"], "a dead waiter", fair.fair_dead_waiter, cast.spare)
    add(ROWS["read"], "no upgrade", rwlock.upgrade)
    add("semaphore", "ten waiters", counters.semaphore_mixed)
    if has(version, EXCLUSIVE["fenced"]):
        add(ROWS["fenced"], "tokens rise", locks.tokens)


def has(version, since):
    return [int(n) for n in version.split(".")] >= [int(n) for n in since.split(".")]


def add_cases(results, version, cast):
    for first, second in (("C", "Java"), ("Java", "C")):
        adder = Adder(results, cast, first, second)
        for kind, since in EXCLUSIVE.items():
            if has(version, since):
                add_exclusive(adder, kind)
            else:
                results.absent(ROWS[kind], adder.direction)
        add_rwlock(adder)
        add_counters(adder, version)
    add_mixed(results, version, cast)
