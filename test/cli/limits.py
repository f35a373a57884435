# SPDX-License-Identifier: Apache-2.0
"""Limits of waits: `-w W` ends within W + 100 ms, whatever the server does or does not do.

Each case is tried some times, and one that ends in time is enough: a machine that is busy delays
now and then, a wait for somebody who does not answer does so always.
"""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

from kit import LIMIT, Redis, Tap, equal, finish, run, start, until

tap = Tap()
W = 0.6
SLACK = 0.1 + (1.0 if os.environ.get("SNIB_SANITIZED") else 0.0)
TRIES = 6


class Silent:
    """Takes connections and says nothing: of a unix socket, or of 127.0.0.1 without room for
    more."""

    def __init__(self, tcp=False):
        self.more = []
        if tcp:
            self.socket = socket.create_server(("127.0.0.1", 0), backlog=0)
            where = self.socket.getsockname()
            self.url = f"redis://{where[0]}:{where[1]}"
            for _ in range(4):  # the backlog is full: nobody else is even let in
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(where)
                self.more.append(s)
        else:
            path = tempfile.mkdtemp(dir=tap.directory) + "/s"
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(path)
            self.socket.listen(64)
            self.url = "redis+unix://" + path

    def end(self):
        self.socket.close()
        for s in self.more:
            s.close()


class Answers:
    """A server that answers scripts with these texts in turn, from the last on alike (nothing: it
    says no more), and whatever else as a healthy one would."""

    def __init__(self, *texts):
        self.texts = list(texts)
        path = tempfile.mkdtemp(dir=tap.directory) + "/s"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(64)
        self.url = "redis+unix://" + path
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            self.answer(c, c.makefile("rb"))
        except OSError:
            pass  # it has left

    def answer(self, c, f):
        silent = False
        while head := f.readline():
            words = []
            for _ in range(int(head[1:])):
                words.append(f.read(int(f.readline()[1:]) + 2)[:-2])
            verb = words[0].upper()
            answer = b"+PONG\r\n" if verb == b"PING" else b"-ERR unknown command\r\n"
            if verb in (b"EVAL", b"EVALSHA"):
                answer = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
                silent |= not answer
            if verb in (b"SUBSCRIBE", b"UNSUBSCRIBE"):
                answer = b"".join(b"*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n" % (len(verb), verb.lower(), len(w), w) for w in words[1:])
            if not silent:
                c.sendall(answer)

    def end(self):
        self.socket.close()


def replica(*more):
    s = Redis(tap.directory, "--replicaof", "127.0.0.1", "1", *more)
    return s


def master_down():
    return replica("--replica-serve-stale-data", "no")


def silent():
    return Silent()


def no_room():
    return Silent(tcp=True)


def stopped():
    s = Redis(tap.directory)
    s.process.send_signal(signal.SIGSTOP)
    return s


def paused():
    s = Redis(tap.directory)
    s.command("CLIENT", "PAUSE", "600000")
    return s


class Full(Redis):
    """One client is all that it takes."""

    def __init__(self):
        super().__init__(tap.directory)
        self.only = socket.socket(socket.AF_UNIX)
        self.only.connect(self.socket)
        self.only.sendall(b"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$10\r\nmaxclients\r\n$1\r\n1\r\n")
        self.only.recv(100)

    def end(self):
        self.only.close()
        super().end()


def cluster_down():
    """Without slots. It is refused at once: it is a cluster."""
    return Redis(tap.directory, "--cluster-enabled", "yes", "--port", "0")


def scripts_clusterdown():
    return Answers(b"-CLUSTERDOWN Hash slot not served\r\n")


def scripts_unanswered():
    return Answers(b"")


def number(n):
    return b":%d\r\n" % n


def array(*values):
    return b"*%d\r\n" % len(values) + b"".join(values)


def startup():
    """How long it takes to start a process at all, at best."""
    took = []
    for _ in range(5):
        begin = time.monotonic()
        run("version")
        took.append(time.monotonic() - begin)
    return min(took)


STARTUP = startup()


def limited(about, args, want, held=False):
    """Runs snib until it ends in time once."""
    took = []
    for _ in range(TRIES):
        begin = time.monotonic()
        done = run(*args, limit=LIMIT)
        took.append(time.monotonic() - begin - STARTUP)
        assert done.code in want, f"{about}: {done}"
        if not held:
            assert "ran" not in done.out, f"{about}: {done}"
        assert done.err or done.code in (0, 75), f"{about}: it says why: {done}"
        if took[-1] <= W + SLACK:
            return
    raise AssertionError(f"{about}: a wait of {W} s took {[round(t, 3) for t in took]} s\n{done}")


def waits(url):
    """The commands that wait, each with its limit."""
    return [["run", "-u", url, "-w", str(W), "limits", "--", "echo", "ran"],
            ["acquire", "-u", url, "-w", str(W), "limits"],
            ["run", "-u", url, "-w", str(W), "--key", "limits-a", "--key", "limits-b", "--", "echo", "ran"],
            ["run", "-u", url, "-w", str(W), "-x", "limits-rw", "--", "echo", "ran"],
            ["elect", "-u", url, "-w", str(W), "limits-e", "--", "echo", "ran"],
            ["sem", "-u", url, "-w", str(W), "acquire", "limits-s"],
            ["latch", "-u", url, "-w", str(W), "wait", "limits-l"],
            ["run", "-u", url, "-w", str(W), "--permits", "1", "--of", "3", "limits-p", "--", "echo", "ran"],
            ["elect", "-u", url, "-w", str(W), "--observe", "limits-o"],
            ["register", "-u", url, "-w", str(W), "wait", "limits-r"]]


def wait_ends(make, want, few):
    server = make()
    try:
        for args in waits(server.url)[:1 if few else None]:
            limited(" ".join(args[:2] + args[4:]), args, want)
    finally:
        server.end()


def question_ends(answers, args, want):
    """A question before or after the wait, and the server says no more."""
    for _ in range(TRIES):
        server = Answers(*answers, b"")
        begin = time.monotonic()
        done = run(*args[:1], "-u", server.url, "-w", str(W), *args[1:])
        took = time.monotonic() - begin - STARTUP
        server.end()
        assert done.code in want and done.err and "ran" not in done.out, done
        if took <= W + SLACK:
            return
    raise AssertionError(f"{args}: a wait of {W} s took {took} s\n{done}")


def wait_ends_red(make):
    """Of three servers one answers: a majority cannot be had."""
    servers = [make(), make(), Redis(tap.directory)]
    try:
        red = [w for s in servers for w in ("--red", s.url)]
        limited("red", ["run", *red, "-w", str(W), "limits-red", "--", "echo", "ran"], (69, 75, 122))
    finally:
        for s in servers:
            s.end()


def while_it_waits(freeze, heard):
    """The server is frozen when somebody waits already, and stands in its queue. `heard`: what was
    sent meanwhile is read later."""
    server = Redis(tap.directory)
    took = []
    try:
        holder = start("run", "-u", server.url, "limits", "--", "sh", "-c", "echo; exec sleep 60")
        holder.stdout.readline()
        for _ in range(TRIES):
            begin = time.monotonic()
            waiter = start("run", "-u", server.url, "-w", str(W), "limits", "--", "true")
            until(lambda: b":1" in server.command("LLEN", "snib_queue:{limits}"), "it stands in the queue")
            freeze(server)
            done = finish(waiter)
            took.append(time.monotonic() - begin - STARTUP)
            server.process.send_signal(signal.SIGCONT)
            assert done.code in (69, 75, 122), done
            if heard:  # by a request that nobody waited for
                until(lambda: b":0" in server.command("LLEN", "snib_queue:{limits}"), "its place is given back")
            server.command("DEL", "snib_queue:{limits}")
            if took[-1] <= W + SLACK:
                break
        else:
            raise AssertionError(f"a wait of {W} s took {took}\n{done}")
        holder.terminate()
        finish(holder)
    finally:
        server.end()


def wait_ends_server_stopped_meanwhile():
    while_it_waits(lambda s: s.process.send_signal(signal.SIGSTOP), True)


def wait_ends_server_paused_meanwhile():
    while_it_waits(lambda s: s.command("CLIENT", "PAUSE", "2000"), False)


PERMITS = ["run", "--permits", "1", "--of", "3", "limits", "--", "echo", "ran"]
QUESTIONS = [("the number of permits", [], PERMITS, (122,)),
             ("how many there are instead", [array(number(0), number(5))], PERMITS, (122,)),
             ("what else it is", [b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"],
              ["run", "limits", "--", "echo", "ran"], (65,)),
             ("who leads", [], ["elect", "--observe", "limits"], (122,)),
             ("the version", [], ["register", "wait", "limits"], (122,)),
             ("the new value", [array(number(0)), array(number(1), number(5), b"$1\r\nx\r\n")],
              ["register", "wait", "limits"], (122,))]

# Of a semaphore or a latch that is not there a replica says just that.
MATRIX = [(replica, (69, 75, 0)), (master_down, (69,)), (silent, (69,)), (stopped, (69,)), (paused, (69, 122)), (Full, (69,)),
          (cluster_down, (78,)), (scripts_clusterdown, (69,)), (scripts_unanswered, (122, 69))]
SKIP = tap.skip_without_redis()

for maker, codes in MATRIX:
    tap.add(f"wait_ends {maker.__name__}", wait_ends, maker, codes, False, skip=SKIP)
tap.add("wait_ends no_room", wait_ends, no_room, (69,), True)
for about, answers, args, codes in QUESTIONS:
    tap.add(f"question_ends {about}", question_ends, answers, args, codes)
for maker in (silent, stopped, replica):
    tap.add(f"wait_ends_red {maker.__name__}", wait_ends_red, maker, skip=SKIP)
for test in (wait_ends_server_stopped_meanwhile, wait_ends_server_paused_meanwhile):
    tap.add(test.__name__, test, skip=SKIP)

tap.main(workers=3)
