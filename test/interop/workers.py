# SPDX-License-Identifier: Apache-2.0
"""What the programs of the interop suite share: the two kinds of workers, a private Redis, results.
Standard library only.

A worker is a process with the client library of one side: worker.c with libsnib, Worker.java with
Redisson. It is told what to do by lines on its stdin and answers each by one line:

    SEQ ACTOR VERB NAME [ARGUMENT...]
    SEQ BEGIN END RESULT

ACTOR is a thread of the worker, made when it is first named: an owner of its own, which executes
its requests in order. BEGIN and END are nanoseconds of CLOCK_MONOTONIC, which all processes of a
machine share. RESULT is `error NAME TEXT`, or what the verb answers: mostly 1 done, 0 not.

    acquire NAME KIND WAIT LEASE   ms; wait -1: for ever, 0: one try; lease 0: the worker's, renewed. 1 and the token, if there is one
    release NAME KIND              force NAME KIND             query NAME KIND
    sem-set NAME N                 sem-acquire NAME N WAIT     sem-release NAME N    sem-add NAME N   sem-drain NAME   sem-query NAME
    permits-set NAME N             permits-acquire NAME N WAIT LEASE: 1 and the ids  permits-release NAME ID...
    permits-renew NAME ID LEASE    permits-query NAME          permits-add NAME N
    latch-set NAME N               latch-down NAME             latch-await NAME WAIT latch-query NAME latch-delete NAME
    count NAME KIND FILE LOG MS    counts under the lock; `look` only looks. See contention.py

KIND: lock non-reentrant fair non-reentrant-fair fenced spin read write multi (its names joined by
commas) red (the name at all servers of the worker). """

import concurrent.futures
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from kit import Redis, die_with_parent, equal, find_redis, until  # noqa: E402 (its place is above)

LIMIT = 30        # seconds: longest any request may take beyond the wait it names
FETCH_LIMIT = 180  # seconds for Maven
READY_LIMIT = 60
STILL_LIMIT = 5   # seconds
SETTLED = 0.05    # seconds without a script: everybody who waits is asleep
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-Xshare:auto"]


class Missing(Exception):
    """Why something cannot run on this machine."""


def need_redis():
    if not find_redis():
        raise Missing("no redis-server, valkey-server or redis-check-rdb is installed")


def skipped(why):
    """A whole program that cannot run here, in TAP."""
    print(f"1..0 # SKIP {why}")
    return 0


class Java:
    """The classes of the Java worker and of one Redisson, brought into the build directory once."""

    def __init__(self, version, directory):
        self.version, self.directory = version, Path(directory) / f"redisson-{version}"
        for tool in ("java", "javac", "mvn"):
            if not shutil.which(tool):
                raise Missing(f"{tool} is not installed")
        self.fetch()
        self.compile()

    def fetch(self):
        lib = self.directory / "lib"
        if lib.exists():
            return
        new = self.directory / "lib-new"  # becomes lib when it is complete
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        command = ["mvn", "-B", "-q", "-Dstyle.color=never", "-f", str(HERE / "redisson" / "pom.xml"), f"-Dredisson.version={self.version}",
                   "dependency:copy-dependencies", f"-DoutputDirectory={new}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=new,
                                  timeout=FETCH_LIMIT, preexec_fn=die_with_parent, check=False)
        except subprocess.TimeoutExpired:
            raise Missing(f"Maven did not bring Redisson {self.version} in {FETCH_LIMIT} s") from None
        if done.returncode or not list(new.glob("redisson-*.jar")):
            errors = [line for line in done.stdout.decode(errors="replace").splitlines() if "[ERROR] " in line]
            why = errors[0].partition("[ERROR] ")[2][:120] if errors else "no reason given"
            raise Missing(f"Maven cannot bring Redisson {self.version}: {why}")
        new.rename(lib)

    def compile(self):
        sources = sorted((HERE / "redisson" / "src").rglob("*.java"))
        classes, stamp = self.directory / "classes", self.directory / "compiled"
        if stamp.exists() and all(s.stat().st_mtime < stamp.stat().st_mtime for s in sources):
            return
        classes.mkdir(exist_ok=True)
        subprocess.run(["javac", "--release", "11", "-cp", f"{self.directory}/lib/*", "-d", str(classes), *map(str, sources)],
                       check=True, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        stamp.touch()

    def command(self, url, lease_ms, *more):
        return ["java", *JVM, "-cp", f"{self.directory}/classes:{self.directory}/lib/*", "snib.interop.Worker", url, str(lease_ms), *more]


class Answer:
    def __init__(self, begin, end, text):
        self.begin, self.end, self.text = begin, end, text
        self.words = text.split()

    def __repr__(self):
        return self.text

    @property
    def done(self):
        return self.words[0] == "1"

    @property
    def no(self):
        return self.words[0] == "0"

    @property
    def refused(self):
        return self.words[0] == "error"

    def __getitem__(self, field):
        """A field of `a=1 b=2`."""
        for word in self.words:
            if word.startswith(field + "="):
                value = word[len(field) + 1:]
                return int(value) if value.lstrip("-").isdigit() else value
        raise AssertionError(f"no {field} in {self.text!r}")


class Pending:
    """A request without its answer yet."""

    def __init__(self, about):
        self.about, self.event, self.value = about, threading.Event(), None

    def fill(self, value):
        self.value = value
        self.event.set()

    @property
    def over(self):
        return self.event.is_set()

    def answer(self, limit=LIMIT):
        assert self.event.wait(limit), f"no answer: {self.about}"
        assert self.value, f"the worker ended: {self.about}"
        return self.value


class Worker:
    """One process; started on the main thread, with which it dies."""

    numbers = itertools.count()

    def __init__(self, side, command, directory):
        self.side, self.pending, self.lock, self.sequence = side, {}, threading.Lock(), itertools.count()
        self.errors = Path(directory) / f"worker-{next(self.numbers)}.err"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1,
                                            preexec_fn=die_with_parent)
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def wait_ready(self):
        assert self.ready.wait(READY_LIMIT) and self.process.poll() is None, self.errors.read_text(errors="replace")[-2000:]
        return self

    def read(self):
        for line in self.process.stdout:
            words = line.rstrip("\n").split(" ", 3)
            if words[0] == "ready":
                self.ready.set()
                continue
            with self.lock:
                pending = self.pending.pop(words[0])
            pending.fill(Answer(int(words[1]), int(words[2]), words[3]))
        self.ready.set()  # it will never be
        with self.lock:
            left, self.pending = self.pending, {}
        for pending in left.values():
            pending.about += "\n" + self.errors.read_text(errors="replace")[-2000:]
            pending.fill(None)

    def start(self, actor, *words):
        number, line = str(next(self.sequence)), " ".join(map(str, words))
        pending = Pending(f"{self.side} {actor}: {line}")
        with self.lock:
            self.pending[number] = pending
            self.process.stdin.write(f"{number} {actor} {line}\n")
        return pending

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()


class Role:
    """A place for a worker: one process at a time, which can be killed and started again."""

    def __init__(self, stage, side, lease_ms):
        self.stage, self.side, self.lease_ms, self.worker = stage, side, lease_ms, None
        self.more = []  # URLs of other servers

    def begin(self):
        """Starts it, on the main thread; does not wait until it is ready."""
        self.worker = Worker(self.side, self.stage.command(self.side, self.lease_ms, *self.more), self.stage.directory)
        return self

    def wait_ready(self):
        self.worker.wait_ready()
        return self

    def kill(self):
        if self.worker:
            self.worker.kill()
        self.worker = None


class Actor:
    """One owner in one worker. `side` is "C" or "Java"."""

    numbers = itertools.count()

    def __init__(self, role):
        self.role, self.name, self.side = role, f"actor-{next(self.numbers)}", role.side

    def start(self, *words):
        return self.role.worker.start(self.name, *words)

    def call(self, *words, limit=LIMIT):
        return self.start(*words).answer(limit)

    def wait(self, name, kind, wait=20000, lease=0):
        return self.start("acquire", name, kind, wait, lease)

    def acquire(self, name, kind, wait=0, lease=0):
        return self.call("acquire", name, kind, wait, lease)

    def takes(self, name, kind, lease=0):
        answer = self.acquire(name, kind, 0, lease)
        assert answer.done, f"{self.side} acquires {kind} {name}: {answer}"
        return answer

    def may_not(self, name, kind):
        answer = self.acquire(name, kind)
        assert answer.no, f"{self.side} tries {kind} {name}: {answer}"

    def releases(self, name, kind):
        answer = self.call("release", name, kind)
        assert answer.done, f"{self.side} releases {kind} {name}: {answer}"
        return answer


class Store:
    """A private Redis and a connection to it."""

    def open(self, directory):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.server = Redis(directory, "--port", str(port), "--bind", "127.0.0.1")
        self.url = f"redis://127.0.0.1:{port}"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.server.socket)
        self.socket.settimeout(LIMIT)
        self.input = self.socket.makefile("rb")
        self.lock = threading.Lock()

    def do(self, *words):
        """One command. Bulk strings are bytes."""
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        with self.lock:
            self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return self.read(self.input)

    def read(self, stream):
        line = stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self.read(stream) for _ in range(int(rest))]
        if kind == b"$":
            return stream.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b":":
            return int(rest)
        assert kind == b"+", line
        return rest.decode()

    @staticmethod
    def now():
        """On the clock of the answers."""
        return time.monotonic_ns()

    def keys(self, name):
        """Of one object, without the records of clients and what a worker's memory of a request
        leaves for a minute."""
        return sorted(k.decode() for k in self.do("KEYS", f"*{name}*"))

    def subscribers(self, name):
        channels = self.do("PUBSUB", "CHANNELS", f"*{name}*")
        return sum(self.do("PUBSUB", "NUMSUB", *channels)[1::2]) if channels else 0

    def still(self, name):
        """How many have subscribed, once who has gone on before took its subscription back."""
        until(lambda: self.subscribers(name) == 0, f"nobody waits for {name}", STILL_LIMIT)
        return 0

    def scripts(self):
        """How many scripts and simple reads were executed so far."""
        stats = self.do("INFO", "commandstats").decode()
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in stats.splitlines()
                   if line.split(":")[0] in ("cmdstat_eval", "cmdstat_evalsha", "cmdstat_get"))

    def settled(self):
        """Waits until nobody executes anything: whoever waits has looked for the last time before
        it sleeps."""
        seen, since = self.scripts(), time.monotonic()
        end = since + LIMIT
        while time.monotonic() - since < SETTLED:
            time.sleep(SETTLED / 5)
            now = self.scripts()
            if now != seen:
                seen, since = now, time.monotonic()
            assert since < end, "they never sleep"

    def sleeps(self, name, pending, before):
        """Waits until the waiter behind `pending` has subscribed, beyond the `before` that had, and
        sleeps."""
        until(lambda: pending.over or self.subscribers(name) > before, f"{pending.about} waits")
        assert not pending.over, f"{pending.about} does not wait: {pending.value}"
        self.settled()

    def end(self):
        self.socket.close()
        self.server.end()


class Results:
    """Cases, run one after another or side by side, their TAP and their table."""

    def __init__(self):
        self.cases, self.table = [], {}
        self.before = lambda: None  # each case that runs alone

    def add(self, row, column, name, function, *args, together=False):
        self.cells(row).setdefault(column, [])
        self.cases.append((row, column, name, function, args, together))

    def absent(self, row, column):
        self.cells(row)[column] = None

    def cells(self, row):
        return self.table.setdefault(row, {})

    @staticmethod
    def one(case):
        notes = []
        try:
            case[3](notes.append, *case[4])
            return True, notes, ""
        except Exception:  # whatever it is, it is a failure of this case and not of the others
            return False, notes, traceback.format_exc()

    def run(self):
        """Prints what each did; False if any failed. What may run side by side does so first."""
        failed = 0
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            ahead = {n: pool.submit(self.one, c) for n, c in enumerate(self.cases) if c[5]}
            concurrent.futures.wait(ahead.values())
            for n, case in enumerate(self.cases):
                if n not in ahead:
                    self.before()
                ok, notes, trace = ahead[n].result() if n in ahead else self.one(case)
                failed += not ok
                self.cells(case[0])[case[1]].append(ok)
                for line in [*notes, *trace.splitlines()]:
                    print("#" + line if line.startswith("| ") else "# " + line)
                print(f"{'ok' if ok else 'not ok'} {n + 1} - {case[2]}", flush=True)
        print(f"1..{len(self.cases)}")
        return failed == 0

    def print_table(self, about):
        columns = sorted({c for cells in self.table.values() for c in cells})
        print(f"#| {about:<28}" + "".join(f"{c:<22}" for c in columns))
        for row, cells in self.table.items():
            print(f"#| {row:<28}" + "".join(f"{self.cell(cells.get(c, [])):<22}" for c in columns))

    @staticmethod
    def cell(results):
        if results is None:
            return "not in this version"
        if not results:
            return "-"
        return f"ok ({len(results)})" if all(results) else f"failed ({results.count(False)} of {len(results)})"


class Stage:
    """A directory, a Redis and the workers of the roles, all gone at the end."""

    def __init__(self):
        self.java, self.roles, self.store, self.directory = None, [], Store(), None

    def role(self, side, lease_ms=30000):
        self.roles.append(Role(self, side, lease_ms))
        return self.roles[-1]

    def command(self, side, lease_ms, *more):
        if side == "Java":
            return self.java.command(self.store.url, lease_ms, *more)
        return [os.environ["SNIB_INTEROP_WORKER"], self.store.url, str(lease_ms), *more]

    def begin(self, *roles):
        for role in roles:
            role.begin()
        for role in roles:
            role.wait_ready()

    def mend(self):
        """Starts again what ended by itself, which failed the case that had it do so, and shall
        fail no other."""
        self.begin(*(r for r in self.roles if r.worker and r.worker.process.poll() is not None))

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="snib-interop-")
        self.store.open(self.directory)
        return self

    def __exit__(self, *_):
        for role in self.roles:
            role.kill()
        self.store.end()
        shutil.rmtree(self.directory, ignore_errors=True)


__all__ = ["HERE", "Actor", "Java", "Missing", "Results", "Stage", "equal", "need_redis", "skipped", "until"]
