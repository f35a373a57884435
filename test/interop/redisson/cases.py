# SPDX-License-Identifier: Apache-2.0
"""The cases of the interop suite: what each object does between a C and a Java process, in both directions.

A direction is named by who holds first: "C to Java" is C that holds and Java that waits. A case takes `note`, which prints a line,
the store, and actors: threads of the processes of both sides, new for each case.
"""

import random
import re
import statistics
import time

from workers import Actor, equal, until

ROUNDS = 3            # of what is measured; the median counts
WAKE_LIMIT_MS = 300   # far below the 1 s after which a C waiter looks by itself, and the 30 s after which a Java waiter does
SPIN_LIMIT_MS = 600   # back-off up to 128 ms, and its random part
LOOK_LIMIT_MS = 3000  # where there is no message: a C waiter's own looks
LEASE_MS = 700
WAITER_LEASE_MS = 5000  # of a C waiter in a fair queue
SHORT_LEASE_MS = 1500
EARLY_MS = 20         # a C holder counts from before it asked, and may give back what it lost before the store would take it
WAITERS = 20
LOST = ("3", "4")     # SNIB_LOSS_TAKEN, SNIB_LOSS_GONE

# Locks that only one can hold, and the first Redisson that has them.
EXCLUSIVE = {"lock": "3.16.4", "fair": "3.16.4", "spin": "3.16.4", "write": "3.16.4", "multi": "3.16.4", "fenced": "4.7.0",
             "non-reentrant": "4.7.0", "non-reentrant-fair": "4.7.0"}
ROWS = {"lock": "lock", "fair": "fair lock", "spin": "spin lock", "write": "read-write lock", "read": "read-write lock",
        "multi": "multilock", "fenced": "fenced lock", "non-reentrant": "non-re-entrant lock", "non-reentrant-fair": "non-re-entrant fair lock"}


class Names:
    """Every case has names of its own, so that none meets what another left."""

    def __init__(self):
        self.number = 0

    def new(self, kind):
        self.number += 1
        base = f"{kind}-{self.number}."
        return base, f"{base}a,{base}b" if kind == "multi" else base


NAMES = Names()


def ms(begin, end):
    return (end - begin) / 1e6


def describe_wakes(note, what, wakes, limit):
    note(f"{what}: woken after {', '.join(f'{w:.1f}' for w in wakes)} ms")
    assert statistics.median(wakes) < limit, f"woken by a time-out, not by the message: {wakes}"


def nothing_left(store, base):
    """A counter of fencing tokens stays; what one request remembers goes by itself."""
    until(lambda: not [k for k in store.keys(base) if not re.search("redisson_lock_token|redisson_unlock_latch|snib_done", k)],
          f"nothing is left of {base}: {store.keys(base)}")


def woken(note, store, base, what, wait, release, limit=WAKE_LIMIT_MS, polls=False):
    """Starts a waiter, lets it fall asleep, releases; milliseconds from the request to release to the waiter's answer."""
    before = store.still(base)
    pending = wait()
    if polls:
        seen = store.scripts()
        until(lambda: store.scripts() > seen + 3, f"{what} asks again")
    else:
        store.sleeps(base, pending, before)
    begin = release().begin
    answer = pending.answer()
    assert answer.done, f"{what}: {answer}"
    return ms(begin, answer.end)


# Locks


def hand_over(note, store, holder, waiter, held, wanted):
    wakes = []
    for _ in range(ROUNDS):
        base, name = NAMES.new(held)
        holder.takes(name, held)
        waiter.may_not(name, wanted)
        wakes.append(woken(note, store, base, f"{waiter.side} {wanted}", lambda: waiter.wait(name, wanted),
                           lambda: holder.releases(name, held), polls=wanted == "spin"))
        holder.may_not(name, held)
        waiter.releases(name, wanted)
        nothing_left(store, base)
    describe_wakes(note, f"{waiter.side} waits for {wanted}", wakes, SPIN_LIMIT_MS if wanted == "spin" else WAKE_LIMIT_MS)


def a_member_is_enough(note, store, holder, waiter):
    """A multilock is refused because of one member, and keeps nothing of the rest; a member of one that is held is refused."""
    base, name = NAMES.new("multi")
    first, second = name.split(",")
    holder.takes(second, "lock")
    waiter.may_not(name, "multi")
    holder.takes(first, "lock")
    holder.releases(first, "lock")
    wakes = woken(note, store, base, "multilock", lambda: waiter.wait(name, "multi"), lambda: holder.releases(second, "lock"))
    note(f"{waiter.side} waits for a member: woken after {wakes:.1f} ms")
    for member in (first, second):
        holder.may_not(member, "lock")
    waiter.releases(name, "multi")
    nothing_left(store, base)


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
    # Redisson's fair lock is satisfied when nobody holds it, and so were the sides of a read-write lock before 3.44.
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
    base, name = NAMES.new(kind)
    holder.takes(name, kind)
    wake = woken(note, store, base, "waiter", lambda: other.wait(name, kind),
                 lambda: Actor(holder.role).call("force", name, kind))
    note(f"{other.side} waits: woken after {wake:.1f} ms")
    other.releases(name, kind)
    nothing_left(store, base)


def tokens(note, store, c, java):
    """Fencing tokens rise over both sides."""
    base, name = NAMES.new("fenced")
    seen = []
    for actor in (c, java, c, c, java, java, c):
        seen.append(int(actor.takes(name, "fenced").words[1]))
        actor.releases(name, "fenced")
    equal(sorted(set(seen)), seen, "tokens rise")


# The fair queue


def queue_length(store, name):
    return store.do("LLEN", f"redisson_lock_queue:{{{name}}}")


def fair_order(note, store, c, java, kind, quitters=0):
    """Mixed waiters are served strictly in the order of their arrival; those that give up are skipped."""
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
    describe_wakes(note, f"{len(left)} waiters, {'-'.join('CJ'[a.side == 'Java'] for _, a, _ in left)}", wakes, WAKE_LIMIT_MS)
    nothing_left(store, base)


def fair_dead_waiter(note, store, c, java, spare):
    """A C process that was killed while it waited: the next C waiter, wherever it stands, sees to it that those behind get their
    turn after one waiter lease. Behind a dead Java waiter, or with Java alone, it lasts until the dead one's turn is over."""
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


# Readers and writers


def readers_share(note, store, first, second):
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
    note(f"{writer.side} writer woken by the last reader, {second.side}, after {ms(begin, answer.end):.1f} ms")
    assert ms(begin, answer.end) < WAKE_LIMIT_MS
    second.may_not(name, "read")
    writer.releases(name, "write")
    nothing_left(store, base)


def writer_wakes_all_readers(note, store, holder, waiter):
    base, name = NAMES.new("write")
    holder.takes(name, "write")
    readers = [Actor(waiter.role) for _ in range(3)]
    before = store.still(base)
    waits = [r.wait(name, "read") for r in readers]
    store.sleeps(base, waits[-1], before)
    begin = holder.releases(name, "write").begin
    wakes = [ms(begin, w.answer().end) for w in waits]
    for w, r in zip(waits, readers):
        assert w.value.done, w.value
        holder.may_not(name, "write")
        r.releases(name, "read")
    describe_wakes(note, f"three readers, {waiter.side}", wakes, WAKE_LIMIT_MS)
    nothing_left(store, base)


def downgrade(note, store, holder, waiter, limit):
    """The writer that reads, then stops writing, lets the readers of the other side in."""
    base, name = NAMES.new("write")
    holder.takes(name, "write")
    readers = [Actor(waiter.role) for _ in range(2)]
    before = store.still(base)
    waits = [r.wait(name, "read") for r in readers]
    store.sleeps(base, waits[-1], before)
    holder.takes(name, "read")
    store.settled()
    assert not any(w.over for w in waits), "it still writes"
    begin = holder.releases(name, "write").begin
    wakes = [ms(begin, w.answer().end) for w in waits]
    note(f"two {waiter.side} readers come in {', '.join(f'{w:.1f}' for w in wakes)} ms after {holder.side} stopped writing")
    assert max(wakes) < limit, wakes
    for r in readers:
        waiter.may_not(name, "write")
        r.releases(name, "read")
    waiter.may_not(name, "write")
    holder.releases(name, "read")
    waiter.takes(name, "write")
    waiter.releases(name, "write")
    nothing_left(store, base)


def readers_of_both_keep_it(note, store, first, second):
    """A reader that comes and goes takes nothing from the other side's: each hold has its key, which both count."""
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


# Counters


def semaphore(note, store, holder, waiter):
    wakes = []
    for _ in range(ROUNDS):
        base, name = NAMES.new("semaphore")
        equal(holder.call("sem-set", name, 3).words[0], "1")
        equal(waiter.call("sem-set", name, 9).words[0], "0", "it is set")
        assert holder.call("sem-acquire", name, 2, 0).done
        assert waiter.call("sem-acquire", name, 2, 0).no
        assert waiter.call("sem-acquire", name, 1, 0).done
        wakes.append(woken(note, store, base, "waiter", lambda: waiter.start("sem-acquire", name, 2, 20000),
                           lambda: holder.call("sem-release", name, 2)))
        for actor in (holder, waiter):
            equal(actor.call("sem-query", name)["free"], 0, actor.side)
        waiter.call("sem-release", name, 3)
        equal(holder.call("sem-query", name)["free"], 3)
        equal(holder.call("sem-drain", name).words[1:], ["3"])
        holder.call("sem-add", name, -1)
        equal(waiter.call("sem-query", name)["free"], -1)
        assert waiter.call("sem-acquire", name, 1, 0).no
        wakes.append(woken(note, store, base, "waiter", lambda: waiter.start("sem-acquire", name, 1, 20000),
                           lambda: holder.call("sem-add", name, 3)))
        equal(holder.call("sem-query", name)["free"], 1)
        assert holder.call("sem-delete", name).done
    describe_wakes(note, f"{waiter.side} waits", wakes, WAKE_LIMIT_MS)


def semaphore_mixed(note, store, c, java):
    """Ten waiters of both sides and permits given back one by one: as many come in as there are permits."""
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
    """Acquired on one side, released by its id on the other, which frees it for a waiter. `by_id`: the other side can."""
    wakes = []
    for _ in range(ROUNDS):
        base, name = NAMES.new("permits")
        assert holder.call("permits-set", name, 2).done
        assert waiter.call("permits-set", name, 5).no
        ids = [holder.call("permits-acquire", name, 1, 0, 0).words[1] for _ in range(2)]
        equal([len(i) for i in ids], [32, 32], "ids")
        assert waiter.call("permits-acquire", name, 1, 0, 0).no
        equal([a.call("permits-query", name)["free"] for a in (holder, waiter)], [0, 0])
        wakes.append(woken(note, store, base, "waiter", lambda: waiter.start("permits-acquire", name, 1, 20000, 0),
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
    describe_wakes(note, f"{waiter.side} waits", wakes, WAKE_LIMIT_MS)


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
    """The watchdog of C keeps a permit over several leases; one that Java releases is told as lost. Redisson has no watchdog here."""
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
    wakes = []
    for _ in range(ROUNDS):
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
        assert pending.answer().done
        wakes.append(ms(begin, pending.value.end))
        equal([a.call("latch-query", name)["left"] for a in (counter, waiter)], [0, 0])
        nothing_left(store, base)
    describe_wakes(note, f"{waiter.side} waits", wakes, WAKE_LIMIT_MS)


def latch_deleted(note, store, remover, waiter, limit):
    base, name = NAMES.new("latch")
    assert waiter.call("latch-set", name, 3).done
    wake = woken(note, store, base, "waiter", lambda: waiter.start("latch-await", name, 20000),
                 lambda: remover.call("latch-delete", name))
    note(f"{waiter.side} awaits, {remover.side} deletes: goes on after {wake:.1f} ms")
    assert wake < limit
    assert remover.call("latch-delete", name).no
    nothing_left(store, base)


# The list


class Cast:
    """Who plays: two processes of each side, one of which has short leases, so that its watchdog is seen at work."""

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
    add("hand over", hand_over, kind, kind)
    if kind == "multi":
        add("a member is enough", a_member_is_enough)
        return
    add("seen from there", seen_from_there, kind)
    add("release by a stranger", not_mine, kind)
    add("re-entry", no_reentry if "non-" in kind else reentry, kind)
    add("a lease ends", expiry, kind, together=True)
    add("the watchdog", renewal, kind, adder.short(), together=True)
    add("force", force, kind)
    if adder.first == "C":
        add("the loss is told", loss_is_told, kind, adder.short(), together=True)
    if kind != "spin":
        add("force wakes", force_wakes, kind)


def add_rwlock(adder):
    def add(what, function, *args, together=False):
        adder.add(ROWS["read"], f"read-write: {what}", function, *args, together=together)
    add("a reader waits for a writer", hand_over, "write", "read")
    add("a writer waits for a reader", hand_over, "read", "write")
    add("readers share", readers_share)
    add("a writer wakes all readers", writer_wakes_all_readers)
    add("readers of both sides keep it", readers_of_both_keep_it)
    add("re-entry of a reader", read_reentry)
    add("force a reader", force_reader)
    # Redisson says nothing when it stops writing but reads on; a C waiter looks every second.
    add("downgrade", downgrade, WAKE_LIMIT_MS if adder.first == "C" else LOOK_LIMIT_MS)
    add("a reader's lease ends", read_expiry, together=True)
    if adder.first == "C":  # Redisson's renewal does shorten the lease of others
        add("renewal shortens nobody's lease", renewal_does_not_shorten, adder.short(), together=True)


def add_counters(adder, version):
    add = adder.add
    add("semaphore", "semaphore: hand over, add, drain", semaphore)
    # Before 3.17 Redisson stored ids as text, and does not find those that are stored as bytes; C finds both.
    by_id = adder.first == "Java" or has(version, "3.17.0")
    add("expiring permits", "permits: hand over, by id", permits, by_id)
    add("expiring permits", "permits: a lease ends", permits_expire, together=True)
    if adder.first == "C":
        add("expiring permits", "permits: the watchdog", permits_renewed, adder.short(), by_id, together=True)
    if by_id:
        add("expiring permits", "permits: a lease is started again from there", permits_renewed_there, together=True)
    if has(version, "3.23.4"):
        add("expiring permits", "permits: several at once", permits_many)
    add("latch", "latch: opened from there", latch)
    # Redisson tells its own waiters to go on sleeping when a latch is deleted; a C waiter looks every second.
    add("latch", "latch: deleted from there", latch_deleted, WAKE_LIMIT_MS if adder.first == "C" else LOOK_LIMIT_MS)


def add_mixed(results, version, cast):
    def add(row, what, function, *args):
        actors = [Actor(cast.roles["C"]), Actor(cast.roles["Java"])]
        results.add(row, "mixed", f"{row}: {what}", function, cast.store, *actors, *args)
    for kind in ("fair", "non-reentrant-fair"):
        if has(version, EXCLUSIVE[kind]):
            add(ROWS[kind], f"{WAITERS} waiters in order", fair_order, kind)
            add(ROWS[kind], "some give up", fair_order, kind, 6)
    add(ROWS["fair"], "a dead waiter", fair_dead_waiter, cast.spare)
    add(ROWS["read"], "no upgrade", upgrade)
    add("semaphore", "ten waiters", semaphore_mixed)
    if has(version, EXCLUSIVE["fenced"]):
        add(ROWS["fenced"], "tokens rise", tokens)


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
