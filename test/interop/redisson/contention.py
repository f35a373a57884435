# SPDX-License-Identifier: Apache-2.0
"""The contention run: C and Java processes count in a file under one lock while random ones of them
are killed.

The file is 16 bytes: the number, and the process that is inside, 0 for nobody. Who has the lock
reads it, writes itself into it, reads again, and writes the next number and 0, all at once; then it
notes `NUMBER PID` in a log that is only appended to. So - two at a time see each other: a living
process is inside, or the record changed under one's hands. Both end the run as a failure; - a lost
increment is a number that stands in the log twice; - a reader that sees a living writer, or the
record change, ends it as well; - one that was killed half-way leaves itself inside, which counts
for nothing, or a number without its note: at most one each. Where processes have several threads
each, those of one C process pass the lock on among themselves, and still let Java in. """

import os
import random
import struct
import time

from workers import Actor, Store, until

LEASE_MS = 3000  # a killed holder costs everybody this
KILL_EVERY = 2.5
HOLDER_OF = 2    # one kill of so many is of whoever is inside, if anybody of that side is


class Run:
    def __init__(self, roles, kind, seconds, directory, readers, threads):
        self.roles, self.kind, self.seconds, self.readers, self.threads, self.kills = roles, kind, seconds, readers, threads, []
        self.record, self.log = (os.path.join(directory, f"{kind}-{threads}.{what}") for what in ("record", "log"))
        self.random = random.Random(kind)
        self.sides = {}  # of the processes
        self.looks = 0
        with open(self.record, "wb") as f:
            f.write(bytes(16))
        with open(self.log, "wb"):
            pass

    def read(self):
        with open(self.record, "rb") as f:
            return struct.unpack("<qq", f.read(16))

    def begin(self, role):
        self.sides[role.worker.pid] = role.side
        left = max(1, int((self.end - time.monotonic()) * 1000))
        verb, kind = ("look", "read") if role in self.readers else ("count", self.kind)
        return [Actor(role).start(verb, f"contention-{self.kind}", kind, self.record, self.log, left) for _ in range(self.threads)]

    def victim(self):
        """Of both sides in turn."""
        roles = [r for r in self.roles if r.side == ("C", "Java")[len(self.kills) % 2]]
        holder = self.read()[1]
        inside = [r for r in roles if r.worker.pid == holder]
        return inside[0] if inside and self.random.randrange(HOLDER_OF) == 0 else self.random.choice(roles)

    def kill_some(self, pending):
        while self.end - time.monotonic() > KILL_EVERY:
            time.sleep(KILL_EVERY * self.random.uniform(0.5, 1.0))
            early = [p.value for every in pending.values() for p in every if p.over]
            assert not early, f"ended early: {early}"
            role = self.victim()
            self.kills.append(role.side)
            role.kill()
            pending[role] = self.begin(role.begin().wait_ready())

    def run(self):
        self.end = time.monotonic() + self.seconds
        pending = {role: self.begin(role) for role in self.roles}
        self.kill_some(pending)
        for role, every in pending.items():
            for p in every:
                answer = p.answer(self.seconds + 30)
                assert answer.words[0].isdigit(), f"{p.about}: {answer}"
                self.looks += int(answer.words[0]) if role in self.readers else 0

    def turns(self):
        """By side, as they were noted."""
        with open(self.log) as f:
            lines = [line.split() for line in f.read().splitlines()]
        assert len(lines) == len({value for value, _ in lines}), "a number was counted twice: an increment was lost"
        return {side: sum(self.sides[int(pid)] == side for _, pid in lines) for side in ("C", "Java")}

    def check(self, note):
        number, inside = self.read()
        with open(self.log) as f:
            lines = [line.split() for line in f.read().splitlines()]
        noted = [int(value) for value, _ in lines]
        by_side = {side: sum(self.sides[int(pid)] == side for _, pid in lines) for side in ("C", "Java")}
        missing = set(range(1, number + 1)) - set(noted)
        note(f"{self.kind}: {number} increments in {self.seconds} s, {by_side['C']} by C and {by_side['Java']} by Java; "
             f"{len(self.kills)} killed ({' '.join(self.kills)}), {len(missing)} without their note"
             + (f"; {self.looks} looks" if self.readers else ""))
        assert len(noted) == len(set(noted)), "a number was counted twice: an increment was lost"
        assert max(noted, default=0) <= number, "the record went back"
        assert inside not in [r.worker.pid for r in self.roles], f"process {inside} is inside still"
        assert len(missing) <= len(self.kills), f"missing: {sorted(missing)}"
        assert min(by_side.values()) > 2 * self.seconds, "one side hardly came in"
        assert not self.readers or self.looks > 2 * self.seconds, "readers hardly came in"


def contention(note, stage, roles, kind, seconds, readers, threads=1):
    if not roles[0].worker:
        stage.begin(*roles)
    run = Run(roles, kind, seconds, stage.directory, readers, threads)
    run.run()
    run.check(note)
    until(lambda: stage.store.do("EXISTS", f"contention-{kind}") == 0, "nobody holds it")


RED_SERVERS = 3
RED_SECONDS = 10
RED_SHARES = {"C": 0.1, "Java": 0.1}  # of the turns, at least. Wanted is a fifth, on a quiet machine


def red(note, stage, roles):
    """Two threads of each side, on several servers, and nobody is killed."""
    others = [Store() for _ in range(RED_SERVERS - 1)]
    try:
        for store in others:
            store.open(stage.directory)
        for role in roles:
            role.more = [store.url for store in others]
        stage.begin(*roles)
        run = Run(roles, "red", RED_SECONDS, stage.directory, (), 2)
        run.end = time.monotonic() + RED_SECONDS
        for pending in [p for role in roles for p in run.begin(role)]:
            answer = pending.answer(RED_SECONDS + 30)
            assert answer.words[0].isdigit(), f"{pending.about}: {answer}"
        turns = run.turns()
        total = sum(turns.values())
        note(f"| red locks on {RED_SERVERS} servers, 2 threads of each side: {turns['C']} of {total} turns in {RED_SECONDS} s by C"
             f" ({100 * turns['C'] // max(total, 1)} %)")
        assert run.read()[0] == total, "an increment was lost"
        assert all(turns[side] >= share * total for side, share in RED_SHARES.items()), turns
    finally:
        for role in roles:
            role.kill()
        for store in others:
            store.end()


def add_contention(results, stage):
    results.add("red lock", "mixed", "red lock: two threads of C and two of Java have their turns", red, stage,
                [stage.role(side) for side in ("C", "Java")])
    roles = [stage.role(side, LEASE_MS) for side in ("C", "Java") * 4]
    for row, kind, seconds, readers in (("lock", "lock", 30, ()), ("fair lock", "fair", 10, ()),
                                        ("read-write lock", "write", 10, roles[4:])):
        does = "count and look" if readers else "count"
        results.add(row, "mixed", f"{row}: 4 C and 4 Java processes {does}, some are killed", contention, stage, roles, kind, seconds,
                    readers)
    results.add("lock", "mixed", "lock: 2 C and 2 Java processes of 4 threads each count, some are killed", contention, stage, roles[:4], "lock", 10,
                (), 4)
