# SPDX-License-Identifier: Apache-2.0
"""What is said of servers that cannot serve, and of holds that are lost: which one, why, and what
to do. And that nobody waits for what is lost."""

import signal
import socket
import threading
import time

from kit import Beats, Redis, Tap, equal, finish, run, start

tap = Tap()


def cluster_node_is_refused():
    """One that serves all slots, so that every command would work."""
    server = Redis(tap.directory, "--cluster-enabled", "yes")
    try:
        server.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        for args in (["run", "-n", "-u", server.url, "x", "--", "echo", "ran"], ["ls", "-u", server.url],
                     ["run", "-u", server.url + "?db=3", "x", "--", "echo", "ran"]):
            done = run(*args)
            equal((done.code, done.out), (78, ""), repr(done))
            assert "node of a cluster" in done.err and "use a server" in done.err, done
    finally:
        server.end()


def user_without_info_opens():
    server = Redis(tap.directory)
    try:
        server.command("ACL", "SETUSER", "few", "on", ">pw", "~*", "&*", "+@all", "-info", "-hello")
        done = run("run", "-n", "-u", f"redis+unix://few:pw@{server.socket}", "x", "--", "echo", "ran")
        equal((done.code, done.out), (0, "ran\n"), repr(done))
        assert b"few" not in server.command("ACL", "LOG"), "nothing was tried in vain"
    finally:
        server.end()


def tls_is_not_in_this_build():
    for scheme in ("rediss", "redis+cluster", "redis+sentinel"):
        done = run("run", "-u", f"{scheme}://host", "x", "--", "true")
        equal(done.code, 64, repr(done))
        assert f"{scheme}://: " in done.err and "not in this build yet; use redis://" in done.err, done


def absent_red_members_are_named():
    """While it waits, not only when it has given up."""
    servers = [Redis(tap.directory) for _ in range(2)]
    try:
        red = [w for s in servers for w in ("--red", s.url)]
        done = run("run", *red, "--red", "redis://user:p4ssw0rd@no.such.host.invalid", "x", "--", "echo", "ran")
        equal((done.code, done.out), (0, "ran\n"), repr(done))
        assert "--red redis://user@no.such.host.invalid: " in done.err and "going on without it" in done.err, done
        assert "p4ssw0rd" not in done.err, done
        done = run("run", "-q", *red, "--red", "redis+unix:///nonexistent/s", "x", "--", "echo", "ran")
        equal((done.code, done.err), (0, ""), repr(done))
    finally:
        for s in servers:
            s.end()


def vanished_red_members_are_named():
    """One goes while it waits, another at the end of the wait: lines of the wait, and its last."""
    servers = [Redis(tap.directory) for _ in range(3)]
    red = [w for s in servers for w in ("--red", s.url)]
    try:
        holder = start("run", *red, "gone", "--", "sh", "-c", "echo; exec sleep 60")
        holder.stdout.readline()
        waiter = start("run", *red, "-w", "4", "gone", "--", "echo", "ran")
        assert b"waiting for gone" in waiter.stderr.readline()
        servers[1].process.send_signal(signal.SIGSTOP)
        line = waiter.stderr.readline()
        assert line.startswith(f"snib: --red {servers[1].url}: ".encode()) and b"going on without it" in line, line
        servers[2].process.send_signal(signal.SIGSTOP)
        done = finish(waiter)
        assert done.code in (69, 75, 122) and "ran" not in done.out, done
        last = done.err.splitlines()[-1]
        assert last.count("no answer from") == 1 and servers[0].url not in last, done
        for s in servers[1:]:
            assert s.url in last, done
        holder.kill()
        finish(holder)
    finally:
        for s in servers:
            s.end()


class Old:
    """A Redis 5, as far as it is asked: no HELLO, no SCAN by type."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            c, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        f = c.makefile("rb")
        while head := f.readline():
            words = []
            for _ in range(int(head[1:])):
                words.append(f.read(int(f.readline()[1:]) + 2)[:-2])
            info = b"# Server\r\nredis_version:5.0.14\r\nredis_mode:standalone\r\n"
            c.sendall({b"PING": b"+PONG\r\n", b"INFO": b"$%d\r\n%s\r\n" % (len(info), info), b"SCAN": b"-ERR syntax error\r\n"}
                      .get(words[0], b"-ERR unknown command `%s`, with args beginning with:\r\n" % words[0]))


def list_of_an_old_server():
    done = run("ls", "-u", Old().url)
    equal(done.code, 78, repr(done))
    assert "needs Redis 6.0 or later, and the server is 5.0.14" in done.err, done


def lost_by(break_it, words, url=lambda s: s.url):
    """The command is stopped, snib says why, and does not wait for the server."""
    server = Redis(tap.directory)
    beats = Beats(tap.directory)
    try:
        server.command("ACL", "SETUSER", "u", "on", ">pw", "~*", "&*", "+@all")
        wrapper = start("run", "-u", url(server), "--lease", "1500ms", "lost", "--", *beats.command(0, "exits_0", 20000))
        beats.wait_first(0)
        break_it(server)
        done = finish(wrapper)
        waited = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - beats.last(0)
        equal(done.code, 120, repr(done))
        assert "snib: lost lost: " in done.err and "; the command was stopped" in done.err, done
        for word in words:
            equal(done.err.count(word), 1, repr(done))
        assert waited < 2.5e9, f"snib ended {waited / 1e6:.0f} ms after the command"
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.end()


def user_url(server):
    return f"redis+unix://u:pw@{server.socket}"


def loss_says_what_was_refused():
    lost_by(lambda s: s.command("ACL", "SETUSER", "u", "-eval", "-evalsha"), ["let this user run eval; grant +eval"], user_url)


def loss_says_that_the_password_is_wrong():
    def change(s):
        s.command("ACL", "SETUSER", "u", "resetpass", ">other")
        s.command("CLIENT", "KILL", "USER", "u")
    lost_by(change, ["WRONGPASS"], user_url)


def loss_says_that_the_connection_is_refused():
    lost_by(lambda s: s.end(), ["Connection refused"])


def loss_says_that_the_server_is_silent():
    lost_by(lambda s: s.process.send_signal(signal.SIGSTOP), ["does not answer"])


def forced_away(script):
    """Runs a script that is told to end because somebody has forced the lock away."""
    url = tap.redis_server.url
    wrapper = start("run", "-u", url, "--lease", "10s", "--grace", "4s", "forced", "--", "sh", "-c", script)
    equal(wrapper.stdout.readline(), b"ready\n")
    equal(run("force-release", "-u", url, "-y", "forced").code, 0)
    return wrapper


def no_grace_beside_the_next_holder():
    """It listens to TERM, and goes on: it is killed a quarter of a second later."""
    wrapper = forced_away("trap 'echo told' TERM; echo ready; while :; do sleep 0.01; done")
    equal(wrapper.stdout.readline(), b"told\n")
    begin = time.monotonic()
    done = finish(wrapper)
    took = time.monotonic() - begin
    equal(done.code, 120, repr(done))
    assert "; the command was stopped" in done.err, done
    assert took < 3, f"it ran on for {took:.3f} s"


def stopped_or_ended_by_itself():
    """A polite end is ours; an end of one that ignores the signal is its own."""
    done = finish(forced_away("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"))
    equal(done.code, 120, repr(done))
    assert "; the command was stopped" in done.err, done
    done = finish(forced_away("trap '' TERM; trap 'exit 7' CONT; echo ready; while :; do sleep 0.01; done"))
    equal(done.code, 121, repr(done))
    assert "; the command ended by itself" in done.err, done


def an_end_that_was_asked_for_is_one():
    """A candidate that is deposed and told to end, both at once, does not campaign again."""
    url = tap.redis_server.url
    script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.01; done"
    wrapper = start("elect", "-u", url, "--lease", "2s", "deposed", "--", "sh", "-c", script)
    equal(wrapper.stdout.readline(), b"ready\n")
    wrapper.send_signal(signal.SIGTERM)
    equal(wrapper.stdout.readline(), b"told\n")
    equal(run("force-release", "-u", url, "-y", "deposed").code, 0)
    done = finish(wrapper)
    equal(done.code, 120, repr(done))


def unconfirmed_release_is_told_with_q():
    server = Redis(tap.directory)
    try:
        done = run("run", "-q", "-u", server.url + "?timeout=300ms", "x", "--", "kill", "-STOP", str(server.process.pid))
        equal(done.code, 0, repr(done))
        assert "the release is not confirmed" in done.err, done
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.end()


def errors_say_everything_once():
    """Of every kind of refusal, by every verb that meets it. kit.finish() looks at each line."""
    server = Redis(tap.directory)
    try:
        server.command("SET", "text", "x")
        server.command("RPUSH", "list", "x")
        server.command("HSET", "hash", "a", "1", "b", "2")
        seen = ""
        for name in ("text", "list", "hash"):
            for args in (["run", "-n", name, "--", "true"], ["run", "-n", "-x", name, "--", "true"],
                         ["run", "-n", "--permits", "1", "--of", "3", name, "--", "true"],
                         ["run", "-n", "-k", name, "-k", "other", "--", "true"], ["elect", "-n", name, "--", "true"],
                         ["run", "-n", "--fair", name, "--", "true"], ["sem", "-n", "acquire", name],
                         ["latch", "wait", "-n", name], ["register", "get", name], ["show", name],
                         ["force-release", "-y", name]):
                done = run(args[0], "-u", server.url, *args[1:])
                for line in done.err.splitlines():
                    assert line.count(f'"{name}"') <= 1, line
                seen += done.err
        assert "WRONGTYPE" in seen or "the key is" in seen, seen
        server.command("CONFIG", "SET", "maxmemory", "1")
        done = run("run", "-n", "-u", server.url, "full", "--", "true")
        assert 'lock "full": the server answered "OOM ' in done.err, done
        equal(done.err.count("maxmemory"), 1 + done.err.count("'maxmemory'"), repr(done))
    finally:
        server.end()


SKIP = tap.skip_without_redis()
for test in (cluster_node_is_refused, user_without_info_opens, absent_red_members_are_named, vanished_red_members_are_named, loss_says_what_was_refused,
             loss_says_that_the_password_is_wrong, loss_says_that_the_connection_is_refused,
             loss_says_that_the_server_is_silent, no_grace_beside_the_next_holder, stopped_or_ended_by_itself,
             an_end_that_was_asked_for_is_one, unconfirmed_release_is_told_with_q, errors_say_everything_once):
    tap.add(test.__name__, test, skip=SKIP)
for test in (tls_is_not_in_this_build, list_of_an_old_server):
    tap.add(test.__name__, test)

tap.main()
