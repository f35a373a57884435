# SPDX-License-Identifier: Apache-2.0
"""Records what Redisson leaves in Redis: every object in its states, and how each ends. dumps.py
checks that C respects them."""

import socket
import time

import dump
from cases import EXCLUSIVE, has
from workers import Actor, until

NAME = "stock"
LIMIT = 10  # seconds


class Messages:
    """Everything that is published."""

    def __init__(self, store):
        self.store = store
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(store.server.socket)
        self.socket.settimeout(LIMIT)
        self.input = self.socket.makefile("rb")
        self.socket.sendall(b"*2\r\n$10\r\nPSUBSCRIBE\r\n$1\r\n*\r\n")
        store.read(self.input)

    def until_now(self):
        self.store.do("PUBLISH", "recorded", "")
        messages = []
        while True:
            _, _, channel, payload = self.store.read(self.input)
            if channel == b"recorded":
                return messages
            messages.append([channel.decode(), payload.decode()])


def locks(version):
    """(object, kind, state, about, make, end); make and end take an actor and a function that gives
    more of them."""
    for kind, since in EXCLUSIVE.items():
        if kind == "multi" or not has(version, since):
            continue
        yield (kind, kind, "held", "one thread holds it, renewed", lambda a, _, k=kind: a.takes(NAME, k),
               lambda a, _, k=kind: a.releases(NAME, k))
        yield (kind, kind, "leased", "one thread holds it, with a lease of 20 s", lambda a, _, k=kind: a.takes(NAME, k, 20000),
               lambda a, _, k=kind: a.releases(NAME, k))
        if "non-" not in kind:
            yield (kind, kind, "held-twice", "one thread holds it, and acquired it twice", lambda a, _, k=kind: twice(a.takes, k),
                   lambda a, _, k=kind: twice(a.releases, k))
        yield (kind, kind, "forced", "one thread holds it; another forces it", lambda a, _, k=kind: a.takes(NAME, k),
               lambda _, more, k=kind: more().call("force", NAME, k))


def twice(do, kind):
    do(NAME, kind)
    do(NAME, kind)


def queue(a, more):
    a.takes(NAME, "fair")
    for count in (1, 2):
        more().wait(NAME, "fair", -1)
        until(lambda: a.role.stage.store.do("LLEN", f"redisson_lock_queue:{{{NAME}}}") == count, "it is in the queue")


def two_readers(a, more):
    a.takes(NAME, "read")
    b = more()
    twice(b.takes, "read")
    return b


def two_readers_end(a, b):
    a.releases(NAME, "read")
    twice(b.releases, "read")


def reading_writer(a, _):
    a.takes(NAME, "write")
    a.takes(NAME, "read")


def writer_reads_on(a, _):
    a.takes(NAME, "write")
    a.takes(NAME, "read")
    a.releases(NAME, "write")


def stop_both(a, _):
    a.releases(NAME, "write")
    a.releases(NAME, "read")


def readers():
    yield ("read", "read", "held", "one reader", lambda a, _: a.takes(NAME, "read"), lambda a, _: a.releases(NAME, "read"))
    yield ("read", "read", "two", "two readers, one of which acquired it twice", two_readers, two_readers_end)
    yield ("read", "read", "forced", "one reader; another thread forces it", lambda a, _: a.takes(NAME, "read"),
           lambda _, more: more().call("force", NAME, "read"))
    yield ("write", "write", "reading", "the writer reads too", reading_writer, stop_both)
    yield ("write", "write", "downgraded", "the writer stopped writing and reads", writer_reads_on, lambda a, _: a.releases(NAME, "read"))
    yield ("fair", "fair", "queue", "one thread holds it, two wait", queue, lambda a, _: a.releases(NAME, "fair"))


def sem(*calls):
    return lambda a, _: [a.call(verb, NAME, *args) for verb, *args in calls]


def counters():
    for state, about, make, end in (
            ("some", "two of three are free", (("sem-set", 3), ("sem-acquire", 1, 0)), ("sem-release", 1)),
            ("none", "none of two is free", (("sem-set", 2), ("sem-acquire", 2, 0)), ("sem-release", 1)),
            ("negative", "two less than none, after addPermits(-3)", (("sem-set", 1), ("sem-add", -3)), ("sem-add", 4))):
        yield ("semaphore", "semaphore", state, about, sem(*make), sem(end))
    yield ("latch", "latch", "counting", "two are to come", sem(("latch-set", 2)), sem(("latch-down",), ("latch-down",)))
    yield ("latch", "latch", "deleted", "two are to come; it is deleted", sem(("latch-set", 2)), sem(("latch-delete",)))
    yield ("permits", "permits", "free", "three, all free", sem(("permits-set", 3)), sem(("permits-delete",)))
    for state, about, lease in (("taken", "the only one is taken, for ever", 0), ("leased", "the only one is taken, for 20 s", 20000),
                                ("expired", "the only one was taken, and its lease is over", 1)):
        yield ("permits", "permits", state, about, lambda a, _, lease=lease: take_permit(a, lease),
               lambda a, ids: a.call("permits-release", NAME, ids[0]))


def take_permit(a, lease):
    a.call("permits-set", NAME, 1)
    answer = a.call("permits-acquire", NAME, 1, 0, lease)
    if lease == 1:
        time.sleep(0.05)  # its lease is over then, by the clock of the store
    return answer.words[1:]


def record(stage, role, version, directory):
    """Writes a file for each state; the end of a state gets what making it answered, or else more
    actors."""
    messages, written = Messages(stage.store), 0
    for thing, kind, state, about, make, end in (*locks(version), *readers(), *counters()):
        stage.begin(role)  # each with threads and timers of its own
        stage.store.do("FLUSHALL")
        actor, more = Actor(role), lambda: Actor(role)
        made = make(actor, more)
        keys = dump.take(stage.store)
        messages.until_now()
        end(actor, made if state in ("two", "taken", "leased", "expired") and thing in ("read", "permits") else more)
        dump.save(directory / version / f"{thing}-{state}.json", {
            "redisson": version, "object": thing, "state": state, "about": about, "kind": kind, "name": NAME, "keys": keys,
            "messages": messages.until_now(), "after": dump.take(stage.store)})
        role.kill()
        written += 1
    return written
