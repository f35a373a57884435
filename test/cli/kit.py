# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, a private Redis, the beating child, TAP.
Standard library only."""

import concurrent.futures
import ctypes
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

SNIB = os.environ["SNIB_EXE"]
CHILD = os.environ.get("SNIB_TEST_CHILD", "")
LIMIT = 30  # seconds: longest any one process may take
LIBC = ctypes.CDLL(None, use_errno=True)

# What ignores a signal, as nohup and a shell's background do, has children that ignore it.
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL)


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def die_with_parent():
    LIBC.prctl(1, signal.SIGKILL)


# Where commands lock that are not told; see Tap. The default directory is the user's own.
default_url = {}


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SNIB_") and k not in ("NO_COLOR", "TERM")}
    env.update(TERM="dumb", LANG="C.UTF-8", **default_url)
    env.update({k: v for k, v in more.items() if v is not None})
    return env


def start(*args, **options):
    """A running snib. Its stderr and stdout are pipes of text."""
    env = environment(**options.pop("env", {}))
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([SNIB, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=options.pop("preexec", die_with_parent), **options)


def start_on_terminal(*args, env):
    """A running snib with a terminal for stderr alone, and the terminal's other side."""
    master, slave = pty.openpty()
    process = subprocess.Popen([SNIB, *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave,
                               preexec_fn=die_with_parent)
    os.close(slave)
    return process, master


def rest_of_terminal(master):
    """What a terminal shows until nobody writes to it any more; closes it."""
    shown = b""
    try:
        while data := os.read(master, 4096):
            shown += data
    except OSError:
        pass  # so it ends
    os.close(master)
    return shown


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape")

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def gate_is_free(url, name):
    if not url.startswith("local:"):
        return True
    probe = start("run", "-n", "-u", url, name, "--", "true")
    try:
        probe.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        probe.kill()
        probe.communicate()
    return probe.returncode == 0


def stop(url, process):
    """Stops it, but not within the few microseconds in which it has the gate of local: and would
    stop all others: another test does."""
    process.send_signal(signal.SIGSTOP)
    while not gate_is_free(url, f"gate-{process.pid}"):
        process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)


def said_once(text):
    """What a line of snib's says twice or wrongly, or None."""
    for line in text.splitlines():
        if not line.startswith("snib: "):
            continue
        parts = [p.strip() for p in re.split(r"[;:] ", line.removeprefix("snib: "))]
        for part in parts:
            if len(part) >= 8 and parts.count(part) > 1:
                return f"{part!r} twice in {line!r}"
        for wrong in (r"\ban? object\b", r"\ba (election|error|answer|engine|id|old|empty|other|integer|address)\b",
                      r"user_script", r"\b[0-9a-f]{40}\b"):
            if re.search(wrong, line):
                return f"{wrong} in {line!r}"
    return None


def finish(process, limit=LIMIT):
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"hangs: {process.args}\n{err!r}") from None
    done = Done(process.returncode, out, err)
    wrong = said_once(done.err)
    assert not wrong, wrong
    return done


def run(*args, limit=LIMIT, input=None, **options):
    if input is not None:
        options["stdin"] = subprocess.PIPE
        process = start(*args, **options)
        process.stdin.write(input)
        process.stdin.close()
        process.stdin = None
        return finish(process, limit)
    return finish(start(*args, **options), limit)


def equal(got, want, about=""):
    assert got == want, f"{about}: got {got!r}, want {want!r}"


def until(condition, what, limit=LIMIT):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.002)  # the event is in another process that tells nobody
    raise AssertionError(f"never happened: {what}")


class Beats:
    """The file the beating child writes to. Slots: 0 the command under test, 1 who comes after, 2
    who was before."""

    def __init__(self, directory):
        fd, self.path = tempfile.mkstemp(dir=directory)
        os.write(fd, bytes(24 * 4))
        os.close(fd)

    def read(self, slot):
        with open(self.path, "rb") as f:
            f.seek(24 * slot)
            return struct.unpack("qqq", f.read(24))

    def first(self, slot):
        return self.read(slot)[0]

    def last(self, slot):
        return self.read(slot)[1]

    def command(self, slot, kind, ms):
        return [CHILD, self.path, str(slot), kind, str(ms)]

    def wait_first(self, slot):
        return until(lambda: self.first(slot), f"first beat of {slot}")


def find_redis():
    given = os.environ.get("SNIB_REDIS_SERVER")
    if given:
        return given
    path = os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin"
    for name in ("redis-server", "valkey-server", "redis-check-rdb"):
        found = shutil.which(name, path=path)
        if found:
            return found
    return None


class Redis:
    """A private server on a unix socket."""

    def __init__(self, directory, *more):
        self.directory = tempfile.mkdtemp(dir=directory)
        self.socket = self.directory + "/s"
        self.url = "redis+unix://" + self.socket
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", self.directory, "--logfile",
             self.directory + "/log", *more], executable=find_redis(), preexec_fn=die_with_parent,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.answers(), "redis answers")

    def answers(self):
        try:
            return self.command("PING")[:1] in (b"+", b"-")
        except OSError:
            return False

    def command(self, *words):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LIMIT)
            s.connect(self.socket)
            words = [w.encode() if isinstance(w, str) else w for w in words]
            s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return s.recv(65536)

    def end(self):
        self.process.kill()
        self.process.wait()


class Tap:
    """Cases run side by side (most of them wait), results come out in order."""

    def __init__(self):
        self.cases = []
        self.directory = tempfile.mkdtemp(prefix="snib-cli-")
        default_url["SNIB_URL"] = f"local:{self.directory}/default"
        self.redis_server = Redis(self.directory) if find_redis() else None

    def local(self):
        return f"local:{self.directory}/locks"

    def engines(self):
        """(name, URL or None) of every engine; None: to be skipped."""
        return [("local", self.local()), ("redis", self.redis_server.url if self.redis_server else None)]

    def add(self, name, function, *args, skip=None):
        self.cases.append((name, function, args, skip))

    def skip_without_redis(self):
        return None if self.redis_server else "no redis-server, valkey-server or redis-check-rdb is installed"

    @staticmethod
    def one(case):
        name, function, args, skip = case
        if skip:
            return True, f"{name} # SKIP {skip}", ""
        try:
            function(*args)
            return True, name, ""
        except Exception:  # whatever it is, it is a failure of this case and not of the others
            return False, name, traceback.format_exc()

    def main(self, workers=8):
        failed = 0
        try:
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                for n, (ok, text, trace) in enumerate(pool.map(self.one, self.cases), 1):
                    failed += not ok
                    print(f"{'ok' if ok else 'not ok'} {n} - {text}", flush=True)
                    for line in trace.splitlines():
                        print("# " + line)
            print(f"1..{len(self.cases)}")
        finally:
            if self.redis_server:
                self.redis_server.end()
            shutil.rmtree(self.directory, ignore_errors=True)
        sys.exit(1 if failed else 0)


def write_script(path, text):
    """By a process of its own: a child that another thread forks meanwhile would inherit a descriptor
    that is open for writing, and the script could not be run ("Text file busy")."""
    subprocess.run(["/bin/sh", "-c", 'cat > "$1" && chmod 755 "$1"', "sh", str(path)], input=text, text=True, check=True)


def lines(text):
    """Every line as JSON of our schema."""
    objects = [json.loads(line) for line in text.splitlines()]
    for o in objects:
        assert o["schema"] == 1, o
    return objects
