# SPDX-License-Identifier: Apache-2.0
"""What one object looks like in Redis, as a file: taken from a store, put into another.

    {"redisson": "4.7.0", "object": "lock", "state": "held", "about": "...", "kind": "lock", "name":
    "stock",
     "keys": {KEY: {"hash": {...}, "ttl_ms": 30000}},  what stands in the store
     "messages": [[CHANNEL, PAYLOAD]],                 what Java publishes when it ends the state
     "after": {KEY: ...}}                              what stands there then

A key's type is hash, list, string or zset. Times are relative to the moment of recording and
rounded; a score that is a time is {"in_ms": 1000}. A text with bytes that cannot be printed is
"hex:" and digits. """

import json
import time

ROUND_MS = 100
NEVER = 922337203685477  # Redisson's deadline of a permit without a lease
# Redisson's memory of a request to unlock, for its own repetitions; it goes a moment later.
PASSING = "redisson_unlock_latch"


def text(raw):
    plain = all(32 <= b < 127 for b in raw) and not raw.startswith(b"hex:")
    return raw.decode() if plain else "hex:" + raw.hex()


def raw(string):
    return bytes.fromhex(string[4:]) if string.startswith("hex:") else string.encode()


def pairs(flat):
    return zip(flat[::2], flat[1::2])


def rounded(ms):
    return round(ms / ROUND_MS) * ROUND_MS


def score(number, now):
    return {"score": int(number)} if int(float(number)) == NEVER else {"in_ms": rounded(float(number) - now)}


def take_value(store, key, now):
    kind = store.do("TYPE", key)
    if kind == "hash":
        return {kind: {text(f): text(v) for f, v in pairs(store.do("HGETALL", key))}}
    if kind == "list":
        return {kind: [text(v) for v in store.do("LRANGE", key, 0, -1)]}
    if kind == "zset":
        return {kind: {text(m): score(s, now) for m, s in pairs(store.do("ZRANGE", key, 0, -1, "WITHSCORES"))}}
    assert kind == "string", kind
    return {kind: text(store.do("GET", key))}


def take(store):
    """Every key of the store."""
    now, keys = time.time() * 1000, {}
    for key in sorted(store.do("KEYS", "*")):
        if PASSING in key.decode():
            continue
        keys[key.decode()] = take_value(store, key, now)
        ttl = store.do("PTTL", key)
        if ttl >= 0:
            keys[key.decode()]["ttl_ms"] = rounded(ttl)
    return keys


def put_value(store, key, value, now):
    if "hash" in value:
        store.do("HSET", key, *(raw(x) for pair in value["hash"].items() for x in pair))
    elif "list" in value:
        store.do("RPUSH", key, *map(raw, value["list"]))
    elif "zset" in value:
        for member, s in value["zset"].items():
            store.do("ZADD", key, s["score"] if "score" in s else int(now + s["in_ms"]), raw(member))
    else:
        store.do("SET", key, raw(value["string"]))


def put(store, keys):
    now = time.time() * 1000
    for key, value in keys.items():
        store.do("DEL", key)
        put_value(store, key, value, now)
        if "ttl_ms" in value:
            store.do("PEXPIRE", key, value["ttl_ms"])


def end(store, dump):
    """Ends the state as Java did: the keys as they were after, and its messages. A fair lock's
    queue stays, without those of the recording; the message goes to whoever is its head now."""
    for key in dump["keys"]:
        if "redisson_lock_queue" in key:
            leave_queue(store, dump["name"], dump["keys"][key]["list"])
        elif "redisson_lock_timeout" not in key and key not in dump["after"]:
            store.do("DEL", key)
    put(store, {k: v for k, v in dump["after"].items() if "fair" not in dump["object"]})
    messages = dump["messages"]
    if "fair" in dump["object"]:
        store.do("DEL", dump["name"])
        head = store.do("LINDEX", f"redisson_lock_queue:{{{dump['name']}}}", 0)
        messages = [[f"redisson_lock__channel:{{{dump['name']}}}:{head.decode()}", "0"]] if head else []
    for channel, payload in messages:
        store.do("PUBLISH", channel, payload)


def leave_queue(store, name, members):
    for member in members:
        store.do("LREM", f"redisson_lock_queue:{{{name}}}", 0, raw(member))
        store.do("ZREM", f"redisson_lock_timeout:{{{name}}}", raw(member))


def save(path, dump):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dump, indent=1) + "\n")


def load(path):
    return json.loads(path.read_text())
