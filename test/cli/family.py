# SPDX-License-Identifier: Apache-2.0
"""Every object from the shell, on every engine: read-write locks, fair locks, permits, several
locks at once, a majority of servers, semaphores, latches, elections, registers; and what ls and
show say of them."""

import os
import signal
import tempfile
import time

from kit import Beats, Redis, Tap, equal, finish, lines, run, start, until

tap = Tap()


def code(done, want):
    equal(done.code, want, repr(done))
    return done


class Many:
    """A file to which commands append a letter when they begin and one when they end: how many run
    at once, and when."""

    def __init__(self):
        fd, self.path = tempfile.mkstemp(dir=tap.directory)
        os.close(fd)

    def command(self, seconds, begin="b", end="e"):
        return ["sh", "-c", f"printf %s '{begin}' >> {self.path}; sleep {seconds}; printf %s '{end}' >> {self.path}"]

    def until_told(self, begin="b", end="e"):
        """The same, until go(): what the test looks at meanwhile does not end by itself."""
        return ["sh", "-c", f"printf %s '{begin}' >> {self.path}; until test -e {self.path}.go; do sleep 0.02; done; printf %s '{end}' >> {self.path}"]

    def go(self):
        with open(self.path + ".go", "w", encoding="ascii"):
            pass

    def text(self):
        with open(self.path, encoding="ascii") as f:
            return f.read()

    def most(self):
        most = now = 0
        for letter in self.text():
            now += 1 if letter == "b" else -1
            most = max(most, now)
        return most


def show(url, name, exit_code=0):
    return lines(code(run("show", "-u", url, "--json", name), exit_code).out)[0]


# ---- locks ----

def readers_share_a_writer_does_not(url):
    many = Many()
    readers = [start("run", "-u", url, "-s", "rw", "--", *many.until_told()) for _ in range(3)]
    until(lambda: many.text() == "bbb", "three readers at once")
    info = show(url, "rw")
    equal((info["kind"], info["holders"]), ("read lock", 3))
    code(run("run", "-u", url, "-n", "-x", "rw", "--", "true"), 75)
    writer = start("run", "-u", url, "-x", "rw", "--", *many.command(0.1))
    writer.stderr.readline()  # "waiting for ..."
    many.go()
    for r in readers:
        code(finish(r), 0)
    code(finish(writer), 0)
    equal(many.text(), "bbbeeebe", "the writer came after the readers")


def a_reader_waits_for_the_writer(url):
    many = Many()
    writer = start("run", "-u", url, "-x", "rw2", "--", *many.until_told())
    until(lambda: many.text() == "b", "the writer")
    equal(show(url, "rw2")["kind"], "write lock")
    code(run("run", "-u", url, "-n", "-s", "rw2", "--", "true"), 75)
    reader = start("run", "-u", url, "-s", "rw2", "--", *many.command(0))
    reader.stderr.readline()
    many.go()
    code(finish(reader), 0)
    code(finish(writer), 0)
    equal(many.text(), "bebe")


def fair_in_order_of_arrival(url):
    many = Many()
    first = start("run", "-u", url, "--fair", "line", "--", *many.until_told("_", ""))
    until(lambda: many.text() == "_", "the first")
    rest = []
    for i in range(5):
        rest.append(start("run", "-u", url, "--fair", "line", "--", *many.command(0, str(i), "")))
        until(lambda: show(url, "line").get("waiters", 0) >= i + 1, f"number {i} stands in line")
    many.go()
    for process in [first, *rest]:
        code(finish(process), 0)
    equal(many.text(), "_01234")


def another_kind_is_refused(url):
    many = Many()
    reader = start("run", "-u", url, "-s", "mixed", "--", *many.until_told())
    until(lambda: many.text() == "b", "the reader")
    done = run("run", "-u", url, "-n", "mixed", "--", "true")
    many.go()
    assert done.code not in (0, 75) and "mixed" in done.err, done
    code(finish(reader), 0)


# ---- permits ----

def ten_copies_four_at_once(url):
    """As the manual shows it: never more than four at once."""
    many = Many()
    copies = [start("run", "-u", url, "--permits", "1", "--of", "4", "-k", "gpu", "--", *many.command(0.2)) for _ in range(10)]
    for c in copies:
        code(finish(c), 0)
    equal((many.text().count("b"), many.text().count("e")), (10, 10))
    assert 2 <= many.most() <= 4, many.text()


def a_killed_holder_returns_its_permit(url):
    many = Many()
    holder = start("run", "-u", url, "--lease", "1s", "--permits", "1", "--of", "1", "one", "--", *many.command(30))
    until(lambda: many.text() == "b", "the holder")
    code(run("run", "-u", url, "-n", "--permits", "1", "one", "--", "true"), 75)
    holder.kill()
    code(run("run", "-u", url, "-w", "10", "--permits", "1", "one", "--", "true"), 0)
    finish(holder)


def permits_by_id(url):
    code(run("sem", "-u", url, "-x", "set", "lots", "3"), 0)
    code(run("sem", "-u", url, "-x", "set", "lots", "9"), 75)
    with_two = start("run", "-u", url, "--permits", "2", "lots", "--", "sleep", "30")
    until(lambda: lines(run("sem", "-u", url, "-xj", "show", "lots").out)[0]["taken"] == 2, "two are taken")
    info = show(url, "lots")
    equal((info["kind"], info["value"], info["limit"]), ("permits", 1, 3))
    code(run("sem", "-u", url, "-x", "release", "lots", "0" * 32), 75)
    code(run("sem", "-u", url, "-x", "force", "lots"), 0)
    equal(code(run("sem", "-u", url, "-x", "show", "lots"), 0).out, "3 free, 0 of 3 taken\n")
    with_two.terminate()
    finish(with_two)
    code(run("sem", "-u", url, "-x", "resize", "lots", "5"), 0)
    equal(code(run("sem", "-u", url, "-x", "add", "lots", "2"), 0).out, "7\n")
    code(run("sem", "-u", url, "-x", "delete", "lots"), 0)
    code(run("sem", "-u", url, "-x", "show", "lots"), 1)


# ---- several at once ----

def several_keys_all_or_none(url):
    many = Many()
    holder = start("run", "-u", url, "b", "--", *many.until_told())
    until(lambda: many.text() == "b", "b is held")
    code(run("run", "-u", url, "-n", "-k", "a", "-k", "b", "--", "true"), 75)
    code(run("run", "-u", url, "-n", "a", "--", "true"), 0)  # nothing is left behind
    many.go()
    done = code(run("run", "-u", url, "-k", "a", "-k", "b", "-k", "c:s", "--", "sh", "-c", 'printf %s "$SNIB_NAME"'), 0)
    equal(done.out, "a, b, c:s")
    code(finish(holder), 0)


def opposite_orders_do_not_deadlock(url):
    many = Many()
    copies = [start("run", "-u", url, "-k", a, "-k", b, "--", *many.command(0)) for a, b in [("p", "q"), ("q", "p")] * 4]
    for c in copies:
        code(finish(c), 0)
    equal(many.text(), "be" * 8)


def red_needs_a_majority():
    servers = [Redis(tap.directory) for _ in range(3)]
    urls = [x for s in servers for x in ("--red", s.url)]
    try:
        many = Many()
        holder = start("run", *urls, "r", "--", *many.until_told())
        until(lambda: many.text() == "b", "the holder")
        code(run("run", *urls, "-n", "r", "--", "true"), 75)
        many.go()
        code(finish(holder), 0)
        servers[0].end()
        code(run("run", *urls, "-w", "10", "r", "--", "true"), 0)
        servers[1].end()
        done = run("run", *urls, "-n", "r", "--", "true")
        assert done.code not in (0, 64), done
        equal(servers[2].command("EXISTS", "r"), b":0\r\n", "nothing is left on the living")
    finally:
        for s in servers:
            s.end()


# ---- semaphore ----

def semaphore_verbs(url):
    sem = lambda *args: run("sem", "-u", url, *args)
    code(sem("show", "s"), 1)
    code(sem("acquire", "-n", "s"), 75)
    code(sem("set", "s", "3"), 0)
    code(sem("set", "s", "5"), 75)
    code(sem("acquire", "-n", "s", "2"), 0)
    equal(code(sem("show", "s"), 0).out, "1\n")
    code(sem("acquire", "-n", "s", "2"), 75)
    equal(code(sem("add", "s", "4"), 0).out, "5\n")
    equal(code(sem("remove", "s", "1"), 0).out, "4\n")
    equal(lines(code(sem("drain", "-j", "s"), 0).out)[0]["drained"], 4)
    code(sem("release", "s"), 0)
    equal(code(sem("show", "s"), 0).out, "1\n")
    code(sem("delete", "s"), 0)
    code(sem("delete", "s"), 75)
    code(sem("release", "--if-exists", "s"), 75)
    code(sem("show", "s"), 1)


def a_waiting_acquire_is_woken(url):
    code(run("sem", "-u", url, "set", "w", "0"), 0)
    waiter = start("sem", "-u", url, "acquire", "-w", "20", "w")
    code(run("sem", "-u", url, "release", "w"), 0)
    code(finish(waiter), 0)
    equal(run("sem", "-u", url, "show", "w").out, "0\n")


def an_interrupted_acquire_takes_nothing(url):
    code(run("sem", "-u", url, "set", "i", "0"), 0)
    waiter = start("sem", "-u", url, "acquire", "i")
    until(lambda: os.path.exists(f"/proc/{waiter.pid}") and sleeping(waiter.pid), "the waiter sleeps")
    waiter.send_signal(signal.SIGTERM)
    code(finish(waiter), 128 + signal.SIGTERM)
    code(run("sem", "-u", url, "release", "i"), 0)
    until(lambda: run("sem", "-u", url, "show", "i").out == "1\n", "the permit is there")


def sleeping(pid):
    """It waits, with its signals taken over (SIGTERM blocked, to be read from a descriptor)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    return status["State"][0] == "S" and int(status["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1


# ---- latch ----

def latch_verbs(url):
    latch = lambda *args: run("latch", "-u", url, *args)
    code(latch("wait", "-n", "l"), 0)  # open
    code(latch("set", "l", "3"), 0)
    code(latch("set", "l", "3"), 75)
    code(latch("wait", "-n", "l"), 75)
    waiters = [start("latch", "-u", url, "wait", "l") for _ in range(3)]
    equal(code(latch("down", "l"), 0).out, "2\n")
    equal(code(latch("show", "l"), 0).out, "2\n")
    equal(lines(code(latch("down", "-j", "l", "2"), 0).out)[0]["count"], 0)
    for w in waiters:
        code(finish(w), 0)
    code(latch("down", "l"), 75)
    equal(code(latch("show", "l"), 1).out, "0\n")
    code(latch("set", "l", "1"), 0)
    waiter = start("latch", "-u", url, "wait", "l")
    code(latch("delete", "l"), 0)
    code(finish(waiter), 0)


def latch_wait_before_it_is_set(url):
    """Without --set-first a latch that nobody has set is open."""
    latch = lambda *args: run("latch", "-u", url, *args)
    code(latch("wait", "-n", "early"), 0)
    code(latch("wait", "-n", "--set-first", "early"), 75)
    code(latch("wait", "-w", "200ms", "--set-first", "early"), 75)
    waiters = [start("latch", "-u", url, "wait", "--set-first", "-w", "20", "early") for _ in range(3)]
    for w in waiters:
        until(lambda: sleeping(w.pid), "it waits")
    code(latch("set", "early", "1"), 0)
    code(latch("wait", "-n", "early"), 75)
    equal([w.poll() for w in waiters], [None] * 3, "set is not open")
    code(latch("down", "early"), 0)
    while not all(w.poll() is not None for w in waiters):  # one that came too late for that one
        code(latch("set", "early", "1"), 0)
        code(latch("down", "early"), 0)
    for w in waiters:
        code(finish(w), 0)


def latch_wait_of_one_set_and_opened_at_once(url):
    """Whoever waits may hear of it when it is open again."""
    waiter = start("latch", "-u", url, "wait", "--set-first", "pulse")
    until(lambda: sleeping(waiter.pid), "it waits")
    for _ in range(50):
        if waiter.poll() is None:
            code(run("latch", "-u", url, "set", "pulse", "1"), 0)
            code(run("latch", "-u", url, "down", "pulse"), 0)
    code(finish(waiter), 0)


# ---- election ----

def election(url):
    code(run("elect", "-u", url, "--leader", "e"), 1)
    many = Many()
    observer = start("elect", "-u", url, "--observe", "--json", "e")
    equal(lines(text(observer))[0]["held"], False)
    leader = start("elect", "-u", url, "--label", "alice", "e", "--", *many.until_told())
    first = lines(text(observer))[0]
    equal((first["held"], first["label"]), (True, "alice"))
    follower = start("elect", "-u", url, "--label", "bob", "e", "--", *many.command(0))
    assert "alice" in code(run("elect", "-u", url, "--leader", "e"), 0).out
    follower.stderr.readline()
    many.go()
    code(finish(leader), 0)
    code(finish(follower), 0)
    equal(many.text(), "bebe", "one after the other")
    observer.terminate()
    seen = [first, *lines(finish(observer).out)]
    terms = [s["token"] for s in seen if s["held"]]
    assert terms == sorted(terms), seen


def text(process):
    line = process.stdout.readline()
    return line if isinstance(line, str) else line.decode()


def deposed_and_elected_again(url):
    beats = Beats(tap.directory)
    leader = start("elect", "-u", url, "--lease", "2s", "--grace", "200ms", "d", "--", *beats.command(0, "exits_0", 60000))
    beats.wait_first(0)
    until(lambda: run("elect", "-u", url, "--leader", "d").code == 0, "it leads")
    before = lines(run("elect", "-u", url, "--leader", "-j", "d").out)[0]["token"]
    code(run("elect", "-u", url, "--depose", "d"), 0)

    def next_term():
        done = run("elect", "-u", url, "--leader", "-j", "d")
        return done.code == 0 and lines(done.out)[0]["token"] > before

    until(next_term, "another term of the same candidate")
    leader.terminate()
    code(finish(leader), 143)


# ---- register ----

def register_verbs(url):
    reg = lambda *args, **more: run("register", "-u", url, *args, **more)
    code(reg("get", "v"), 75)
    first = int(code(reg("set", "-v", "0", "v", "one"), 0).out)
    code(reg("set", "-v", "0", "v", "two"), 75)
    equal(code(reg("get", "v"), 0).out, "one")
    second = int(code(reg("set", "-v", str(first), "v", "-", input=b"two\nlines"), 0).out)
    assert second > first
    code(reg("set", "-v", str(first), "v", "late"), 75)
    got = lines(code(reg("get", "-j", "v"), 0).out)[0]
    equal((got["value"], got["version"]), ("two\nlines", second))
    equal(show(url, "v")["kind"], "register")
    waiter = start("register", "-u", url, "wait", "-v", str(second), "v")
    code(reg("set", "v", "three"), 0)
    equal(code(finish(waiter), 0).out, "three")
    code(reg("delete", "-v", str(second), "v"), 75)
    code(reg("delete", "v"), 0)
    third = int(code(reg("set", "v", "anew"), 0).out)
    assert third > second, "a version is never used again"


def a_counter_in_a_register(url):
    """Optimistic: whoever was overtaken tries again; nothing is lost."""
    script = ('for i in 1 2 3 4 5; do while :; do j=$("$SNIB" register -u "$U" get -j "$N") || exit 9\n'
              "v=${j#*'\"version\":'}; v=${v%%,*}; n=${j#*'\"value\":\"'}; n=${n%%'\"'*}\n"
              '"$SNIB" register -q -u "$U" set -v "$v" "$N" $((n + 1)); c=$?; [ $c = 0 ] && break; [ $c = 75 ] || exit $c; done; done')
    code(run("register", "-u", url, "set", "counter", "0"), 0)
    workers = [start("run", "-u", url, f"worker{i}", "--", "sh", "-c", script, env={"SNIB": os.environ["SNIB_EXE"], "U": url, "N": "counter"})
               for i in range(3)]
    for w in workers:
        code(finish(w), 0)
    equal(run("register", "-u", url, "get", "counter").out, "15")


# ---- ls, show, force ----

def ls_knows_every_kind(url):
    place = f"local:{tempfile.mkdtemp(dir=tap.directory)}" if url.startswith("local:") else url
    many = Many()
    held = [start("run", "-u", place, *options, "--", *many.command(30))
            for options in (["k-plain"], ["--fair", "k-fair"], ["-s", "k-read"], ["-x", "k-write"], ["--permits", "1", "--of", "2", "k-permits"])]
    held.append(start("elect", "-u", place, "k-elect", "--", *many.command(30)))
    code(run("register", "-u", place, "set", "k-register", "x"), 0)
    until(lambda: len(many.text()) == 6, "all are held")
    kinds = {o["name"]: o["kind"] for o in lines(code(run("ls", "-u", place, "--json"), 0).out) if o["name"].startswith("k-")}
    equal({n: kinds.get(n) for n in ("k-read", "k-write", "k-permits", "k-register")},
          {"k-read": "read lock", "k-write": "write lock", "k-permits": "permits", "k-register": "register"})
    assert "k-plain" in kinds and "k-fair" in kinds and "k-elect" in kinds, kinds
    for name in ("k-plain", "k-fair", "k-read", "k-write", "k-permits", "k-elect"):
        code(run("force-release", "-y", "-u", place, name), 0)
    done = run("force-release", "-y", "-u", place, "k-register")
    equal(done.code, 64, repr(done))
    for h in held:
        h.terminate()
        finish(h)


def java_holders_are_shown_as_such():
    server = tap.redis_server
    uuid = "8743c9c0-0000-4000-8000-000000000047"
    server.command("HSET", "from-java", f"{uuid}:47", "1")
    server.command("PEXPIRE", "from-java", "30000")
    done = run("run", "-u", server.url, "-w", "1500ms", "from-java", "--", "true")
    code(done, 75)
    assert "redisson 8743c9c0" in done.err and ":47" in done.err, done
    info = show(server.url, "from-java")
    equal((info["held"], info["foreign"]), (True, True))


def a_dead_head_of_a_fair_queue_is_shown_and_dropped():
    server = tap.redis_server
    dead = "8743c9c0-0000-4000-8000-000000000047:48"
    ends = int(time.time() * 1000) + 300000
    server.command("RPUSH", "redisson_lock_queue:{stood}", dead)
    server.command("ZADD", "redisson_lock_timeout:{stood}", str(ends), dead)
    waiter = start("run", "-u", server.url, "--fair", "stood", "--", "true")
    until(lambda: server.command("LLEN", "redisson_lock_queue:{stood}") == b":2\r\n", "it stands behind the dead one")
    info = show(server.url, "stood", 1)  # it stands, but it does not hold
    equal(info["next"], dead)
    assert 200000 < info["next_left_ms"] <= 300000, info
    told = run("show", "-u", server.url, "stood").out
    assert f"next     {dead}, its turn ends in 4m" in told, told
    done = run("force-release", "--head", "-u", server.url, "stood")
    equal(done.code, 64, repr(done))
    assert "--yes" in done.err, done
    done = code(run("force-release", "--head", "-y", "-j", "-u", server.url, "stood"), 0)
    told = lines(done.out)[0]
    equal((told["name"], told["dropped"], told["head"]), ("stood", True, dead))
    code(finish(waiter), 0)
    done = run("force-release", "--head", "-y", "-u", server.url, "stood")
    equal(done.code, 75, repr(done))
    assert "no queue with a head" in done.err, done


ALL = (readers_share_a_writer_does_not, a_reader_waits_for_the_writer, fair_in_order_of_arrival, another_kind_is_refused, ten_copies_four_at_once,
       a_killed_holder_returns_its_permit, permits_by_id, several_keys_all_or_none, opposite_orders_do_not_deadlock, semaphore_verbs,
       a_waiting_acquire_is_woken, an_interrupted_acquire_takes_nothing, latch_verbs,
       latch_wait_before_it_is_set, latch_wait_of_one_set_and_opened_at_once, election, deposed_and_elected_again, register_verbs,
       a_counter_in_a_register, ls_knows_every_kind)
for engine, engine_url in tap.engines():
    for test in ALL:
        tap.add(f"{test.__name__} {engine}", test, engine_url, skip=None if engine_url else tap.skip_without_redis())
for test in (red_needs_a_majority, java_holders_are_shown_as_such, a_dead_head_of_a_fair_queue_is_shown_and_dropped):
    tap.add(test.__name__, test, skip=tap.skip_without_redis())
tap.main(workers=4)
