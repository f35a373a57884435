# SPDX-License-Identifier: Apache-2.0
"""The lock of redis-py, and python-redis-lock, as peers of the bench; the lines they are told by
are described in bench/peer.c.

    worker.py redis-py|python-redis-lock REDIS-URL
"""

import importlib.metadata
import platform
import resource
import sys
import threading
import time

import redis

# By default neither lock has a lease, and whoever dies holds it for ever.
LEASE_S = 30
# By default a client refuses the 101st connection, and each of 128 threads needs one.
CONNECTIONS_MAX = 1000


def redis_py(client, name):
    return client.lock(f"redis-py:{name}", timeout=LEASE_S)


def python_redis_lock(client, name):
    import redis_lock
    return redis_lock.Lock(client, name, expire=LEASE_S)


KINDS = {"redis-py": ("redis", redis_py), "python-redis-lock": ("python-redis-lock", python_redis_lock)}


class Caller(threading.Thread):
    def __init__(self, lock, alone):
        super().__init__()
        self.lock, self.alone, self.samples, self.longest, self.all = lock, alone, [], 0, 0

    def begin(self, start, end):
        self.start_ns, self.end_ns = start, end
        self.start()

    def run(self):
        start = time.monotonic_ns()
        while start < self.end_ns:
            self.lock.acquire()
            acquired = time.monotonic_ns()
            self.lock.release()
            end = time.monotonic_ns()
            took = (end if self.alone else acquired) - start
            if end >= self.start_ns:
                self.longest = max(self.longest, took)
            if self.start_ns <= end < self.end_ns:
                self.samples.append(took)
            start = end
            self.all += 1


def usage():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return int((u.ru_utime + u.ru_stime) * 1e9), u.ru_nvcsw, u.ru_nivcsw


def connect(url):
    return redis.Redis.from_url(url, max_connections=CONNECTIONS_MAX)


class Worker:
    def __init__(self, make, url):
        self.make, self.url, self.client, self.held = make, url, connect(url), None

    def run(self, mode, threads, warm_ms, run_ms):
        clients = [connect(self.url) if mode == "clients" else self.client for _ in range(int(threads))]
        callers = [Caller(self.make(c, f"bench:{i}" if mode == "distinct" else "crowd"), mode == "distinct") for i, c in enumerate(clients)]
        before = usage()
        start = time.monotonic_ns() + int(warm_ms) * 1000000
        end = start + int(run_ms) * 1000000
        for c in callers:
            c.begin(start, end)
        for c in callers:
            c.join()
        after = usage()
        samples = sorted(s for c in callers for s in c.samples)
        longest = max(c.longest for c in callers)
        count = len(samples)
        p50, p99 = (samples[count // 2], samples[count - 1 - count // 100]) if count else (longest, longest)
        return " ".join(map(str, ["done", count, p50, p99, longest, sum(c.all for c in callers), *(a - b for a, b in zip(after, before))]))

    def wait(self, name):
        self.held = self.make(self.client, name)
        self.held.acquire()
        return f"granted {time.monotonic_ns()}"

    def release(self):
        instant = time.monotonic_ns()
        self.held.release()
        return f"released {instant}"


def main():
    kind, url = sys.argv[1:]
    package, make = KINDS[kind]
    worker = Worker(make, url)
    also = "" if package == "redis" else f", redis-py {redis.__version__}"
    print(f"ready {kind} {importlib.metadata.version(package)}{also}, Python {platform.python_version()}", flush=True)
    for line in sys.stdin:
        words = line.split()
        if words == ["end"]:
            break
        print({"run": worker.run, "wait": worker.wait, "release": worker.release}[words[0]](*words[1:]), flush=True)


if __name__ == "__main__":
    main()
