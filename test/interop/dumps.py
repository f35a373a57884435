#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded states of the real Redisson, put into a private Redis by plain commands: C sees and respects them, and goes on when they
end. Needs no Java. redisson/record.py made the files in dumps/; dump.py describes them.
"""

import sys

import dump
from workers import HERE, Actor, Missing, Results, Stage, equal, need_redis, skipped, until

WAKE_LIMIT_MS = 500   # the message; without one a C waiter looks after 1 s
LOOK_LIMIT_MS = 3000  # where Java says nothing
SLACK_MS = 3000
OWNERS = {"lock", "fair", "fenced", "spin", "write", "non-reentrant", "non-reentrant-fair"}


def owners(d):
    """As C tells them: without the mark of the write side."""
    return [f.removesuffix(":write") for f in d["keys"][d["name"]]["hash"] if f != "mode"]


def ttl(d):
    return d["keys"][d["name"]]["ttl_ms"]


def goes_on(note, store, d, start, limit=WAKE_LIMIT_MS, polls=False):
    """Starts a waiter, lets it fall asleep, ends the state; the waiter must be woken by what Java publishes."""
    before = store.still(d["name"])
    pending = start()
    if polls:
        seen = store.scripts()
        until(lambda: store.scripts() > seen + 3, "it asks again")
    else:
        store.sleeps(d["name"], pending, before)
    begin = store.now()
    dump.end(store, d)
    answer = pending.answer()
    assert answer.done, answer
    wake = (answer.end - begin) / 1e6
    note(f"{d['object']} {d['state']}: goes on {wake:.1f} ms after the end")
    assert wake < limit, f"not woken by the message: {wake:.1f} ms"


def exclusive(note, store, d, c):
    name, kind = d["name"], d["kind"]
    refused = c.acquire(name, kind)
    assert refused.no and refused["owner"] in owners(d), refused
    info = c.call("query", name, kind)
    equal((info["held"], info["mine"], info["foreign"]), (1, 0, 1), str(info))
    assert info["owner"] in owners(d), info
    assert ttl(d) - SLACK_MS < info["left"] <= ttl(d), info
    equal(c.call("describe", name)["held"], 1)
    assert c.call("release", name, kind).refused, "it is not ours"
    in_queue = len(d["keys"].get(f"redisson_lock_queue:{{{name}}}", {"list": []})["list"])
    if "fair" in kind:
        equal(info["waiters"], in_queue, str(info))
    limit = 2 * WAKE_LIMIT_MS if kind == "spin" else WAKE_LIMIT_MS
    goes_on(note, store, d, lambda: c.wait(name, kind), limit, polls=kind == "spin")
    c.releases(name, kind)


def fair_queue(note, store, d, c):
    """C comes last, behind two Java waiters, and its place is told."""
    exclusive(note, store, d, c)
    store.do("FLUSHALL")
    dump.put(store, d["keys"])
    refused = c.acquire(d["name"], "fair", 300)
    assert refused.no, refused
    equal((refused["owner"] in owners(d), refused["position"]), (True, 3), str(refused))
    waiter = Actor(c.role)
    pending = waiter.wait(d["name"], "fair", 60000)
    until(lambda: store.do("LLEN", f"redisson_lock_queue:{{{d['name']}}}") == 3, "it is in the queue")
    equal(store.do("LRANGE", f"redisson_lock_queue:{{{d['name']}}}", 0, 1),
          [w.encode() for w in d["keys"][f"redisson_lock_queue:{{{d['name']}}}"]["list"]], "those before it")
    equal(c.call("query", d["name"], "fair")["waiters"], 3)
    store.do("DEL", d["name"])
    store.settled()
    assert not pending.over, "it is the turn of another"
    dump.end(store, d)
    assert pending.answer().done
    waiter.releases(d["name"], "fair")


def forced(note, store, d, c):
    kind = "write" if d["kind"] == "read" else d["kind"]
    goes_on(note, store, d, lambda: c.wait(d["name"], kind), 2 * WAKE_LIMIT_MS if kind == "spin" else WAKE_LIMIT_MS, polls=kind == "spin")
    c.releases(d["name"], kind)


def reading(note, store, d, c):
    """Readers, also one that wrote before: C may read, and may write when they end, not before."""
    name = d["name"]
    reader = Actor(c.role)
    reader.takes(name, "read")
    info = c.call("query", name, "write")
    equal((info["held"], info["kind"]), (1, "read"), str(info))
    equal(info["holders"], len(owners(d)) + 1, str(info))
    reader.releases(name, "read")
    c.may_not(name, "write")
    assert store.do("PTTL", name) > ttl(d) - SLACK_MS, "their lease is theirs"
    goes_on(note, store, d, lambda: c.wait(name, "write"))
    c.releases(name, "write")


def writing(note, store, d, c):
    c.may_not(d["name"], "read")
    exclusive(note, store, d, c)
    store.do("FLUSHALL")
    dump.put(store, d["keys"])
    goes_on(note, store, d, lambda: c.wait(d["name"], "read"))
    c.releases(d["name"], "read")


def semaphore(note, store, d, c):
    name, free = d["name"], int(d["keys"][d["name"]]["string"])
    equal(c.call("sem-query", name)["free"], free)
    for n in range(free):
        assert c.call("sem-acquire", name, 1, 0).done
    assert c.call("sem-acquire", name, 1, 0).no
    goes_on(note, store, d, lambda: c.start("sem-acquire", name, 1, 20000))
    equal(c.call("sem-query", name)["free"], int(d["after"][name]["string"]) - 1)


def latch(note, store, d, c):
    name = d["name"]
    equal(c.call("latch-query", name)["left"], int(d["keys"][name]["string"]))
    assert c.call("latch-set", name, 3).no
    assert c.call("latch-await", name, 0).no
    goes_on(note, store, d, lambda: c.start("latch-await", name, 20000), WAKE_LIMIT_MS if d["state"] == "counting" else LOOK_LIMIT_MS)


def permits_free(note, store, d, c):
    name = d["name"]
    info = c.call("permits-query", name)
    equal((info["free"], info["taken"], info["limit"]), (3, 0, 3))
    ids = c.call("permits-acquire", name, 3, 0, 0).words[1:]
    assert c.call("permits-acquire", name, 1, 0, 0).no
    assert c.call("permits-release", name, *ids).done


def permit_id(d):
    """As Java shows it: of 32 digits, whichever way it is stored."""
    return list(d["keys"][f"{{{d['name']}}}:timeout"]["zset"])[0].replace("hex:", "")


def permits_taken(note, store, d, c):
    name = d["name"]
    info = c.call("permits-query", name)
    equal((info["free"], info["taken"], info["limit"]), (0, 1, 1))
    if d["state"] == "leased":
        assert 20000 - SLACK_MS < info["next"] <= 20000, info
    else:
        equal(info["next"], -1, "it never expires")
    assert c.call("permits-acquire", name, 1, 0, 0).no
    goes_on(note, store, d, lambda: c.start("permits-acquire", name, 1, 20000, 0))
    store.do("FLUSHALL")
    dump.put(store, d["keys"])
    assert c.call("permits-renew", name, permit_id(d), 700).done, "by its id"
    assert c.call("permits-release", name, permit_id(d)).done, "by its id"
    assert not c.call("permits-release", name, permit_id(d)).done, "it is not out any more"
    equal(c.call("permits-query", name)["free"], 1)


def permits_expired(note, store, d, c):
    assert not c.call("permits-release", d["name"], permit_id(d)).done, "it expired"
    store.do("FLUSHALL")
    dump.put(store, d["keys"])
    assert c.call("permits-acquire", d["name"], 1, 0, 0).done
    equal(c.call("permits-query", d["name"])["free"], 0)


def function_of(d):
    thing, state = d["object"], d["state"]
    if state == "forced":
        return forced
    if thing == "permits":
        return {"free": permits_free, "expired": permits_expired}.get(state, permits_taken)
    if thing == "read" or state == "downgraded":
        return reading
    if state == "queue":
        return fair_queue
    if thing in OWNERS:
        return writing if thing == "write" else exclusive
    return {"semaphore": semaphore, "latch": latch}[thing]


# What Java, or somebody by hand, may leave behind


def queue_without_scores(note, store, d, c):
    """Elements of the queue without a deadline are nobody: Redisson before 3.32 fails on them, later ones wait for ever."""
    store.do("DEL", d["name"], f"redisson_lock_timeout:{{{d['name']}}}")
    answer = c.acquire(d["name"], "fair", 5000)
    assert answer.done, answer
    c.releases(d["name"], "fair")
    equal(store.do("LLEN", f"redisson_lock_queue:{{{d['name']}}}"), 0, "what is left in the queue")


def head_without_score(note, store, d, c):
    """Behind it is one with a deadline, which is respected."""
    queue = f"redisson_lock_queue:{{{d['name']}}}"
    store.do("ZREM", f"redisson_lock_timeout:{{{d['name']}}}", store.do("LINDEX", queue, 0))
    store.do("DEL", d["name"])
    c.may_not(d["name"], "fair")
    equal(store.do("LINDEX", queue, 0), d["keys"][queue]["list"][1].encode(), "the head")


def hash_without_ttl(note, store, d, c):
    """It is held, for ever; only force helps."""
    store.do("PERSIST", d["name"])
    c.may_not(d["name"], d["kind"])
    info = c.call("query", d["name"], d["kind"])
    equal((info["held"], info["left"]), (1, -1), str(info))
    assert c.call("force", d["name"], d["kind"]).done
    c.takes(d["name"], d["kind"])
    c.releases(d["name"], d["kind"])


def another_kind(note, store, d, c, verb):
    answer = c.call(*(w.replace("NAME", d["name"]) for w in verb.split()))
    equal(answer.words[:2], ["error", "SNIB_EKIND"], verb)
    note(str(answer))


def no_number(note, store, d, c, verb):
    store.do("SET", d["name"], "many")
    answer = c.call(*(w.replace("NAME", d["name"]) for w in verb.split()))
    assert answer.refused and answer.words[1] in ("SNIB_EKIND", "SNIB_ECORRUPT"), answer
    note(str(answer))


def leftovers(results, stage, c):
    def add(name, file, function, *args):
        add_case(results, stage, c, "leftover: " + name, dump.load(HERE / "dumps" / "4.7.0" / f"{file}.json"), function, *args)
    add("a queue without deadlines", "fair-queue", queue_without_scores)
    add("a head of the queue without a deadline", "fair-queue", head_without_score)
    for kind in ("lock", "fair", "fenced", "write"):
        add(f"no TTL on a {kind}", f"{kind}-held", hash_without_ttl)
    for file, verb in (("read-held", "acquire NAME lock 0 0"), ("write-held", "acquire NAME fair 0 0"),
                       ("lock-held", "acquire NAME read 0 0"), ("lock-held", "sem-acquire NAME 1 0"), ("lock-held", "latch-set NAME 1"),
                       ("semaphore-some", "acquire NAME lock 0 0"), ("lock-held", "permits-acquire NAME 1 0 0")):
        add(f"{file.split('-')[0]} under the name of `{verb}`", file, another_kind, verb)
    for verb in ("sem-acquire NAME 1 0", "sem-add NAME 1", "latch-down NAME", "permits-acquire NAME 1 0 0"):
        add(f"no number for `{verb}`", "semaphore-some", no_number, verb)


def add_case(results, stage, c, name, d, function, *args):
    def run(note):
        stage.store.do("FLUSHALL")
        dump.put(stage.store, d["keys"])
        function(note, stage.store, d, Actor(c), *args)
    results.add(d["object"], d["redisson"], name, run)


def main():
    stage, results = Stage(), Results()
    c = stage.role("C")
    for path in sorted((HERE / "dumps").rglob("*.json")):
        d = dump.load(path)
        add_case(results, stage, c, f"{d['redisson']} {d['object']} {d['state']}: {d['about']}", d, function_of(d))
    leftovers(results, stage, c)
    try:
        need_redis()
    except Missing as why:
        return skipped(why)
    with stage:
        stage.begin(c)
        results.before = stage.mend
        return 0 if results.run() else 1


if __name__ == "__main__":
    sys.exit(main())
