# SPDX-License-Identifier: Apache-2.0
"""The fault rows of "run under a lock": F148 to F155."""

import fcntl
import os
import pty
import signal
import termios
import threading
import time

from kit import SNIB, Beats, Redis, Tap, boot_ns, die_with_parent, environment, equal, finish, run, start, stop, until

tap = Tap()
MS = 1000000
# Of a command that must be killed before it ends: a twentieth of it, the margin for the kill, is
# long beside what a busy machine lets a process wait that should run.
LEASE_MS = 6000
LEASE = f"{LEASE_MS}ms"


def next_one(url, name, beats):
    equal(run("run", "-u", url, "-w", "20", name, "--", *beats.command(1, "exits_0", 5)).code, 0, "the next holder")
    assert beats.last(0) < beats.first(1), "two at once"


def F148_lock_taken_away(url):
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "--lease", "3s", "f148", "--", *beats.command(0, "exits_0", 20000))
    beats.wait_first(0)
    since = boot_ns()
    equal(run("force-release", "-u", url, "-y", "f148").code, 0)
    done = finish(wrapper)
    equal(done.code, 120, repr(done))
    assert "lost f148" in done.err, done
    assert beats.last(0) < since + 3000 * MS, "it outlived its lease"
    next_one(url, "f148", beats)


def F148_key_deleted():
    url = tap.redis_server.url
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "--lease", "1500ms", "f148-del", "--", *beats.command(0, "ignores_term", 20000))
    beats.wait_first(0)
    since = boot_ns()
    tap.redis_server.command("DEL", "f148-del")
    done = finish(wrapper)
    equal(done.code, 120, repr(done))
    assert beats.last(0) < since + 1500 * MS, "it outlived its lease"


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def F148_server_gone_for_good():
    server = Redis(tap.directory)
    beats = Beats(tap.directory)
    try:
        wrapper = start("run", "-u", server.url, "--lease", LEASE, "f148-gone", "--",
                        *beats.command(0, "ignores_term", 20000))
        beats.wait_first(0)
        server.process.send_signal(signal.SIGSTOP)
        until(lambda: is_stopped(server.process.pid), "the server is stopped")
        since = boot_ns()  # what was renewed was asked for before this
        done = finish(wrapper)
        equal(done.code, 120, repr(done))
        assert beats.last(0) < since + LEASE_MS * MS, "it outlived its lease"
        assert beats.last(0) > since + 200 * MS, "stopped although the lease was good"
    finally:
        server.end()


def F149_short_hiccup():
    server = Redis(tap.directory)
    beats = Beats(tap.directory)
    try:
        wrapper = start("run", "-u", server.url, "--lease", "3s", "f149", "--", *beats.command(0, "exits_7", 1800))
        beats.wait_first(0)
        server.process.send_signal(signal.SIGSTOP)
        until(lambda: boot_ns() - beats.first(0) > 1300 * MS, "a renewal was due and not answered")
        server.process.send_signal(signal.SIGCONT)
        done = finish(wrapper)
        equal(done.code, 7, repr(done))
    finally:
        server.end()


def F150_wrapper_killed():
    """The command is gone, and the next one starts within 100 ms."""
    url = tap.local()
    best = None
    for i in range(5):
        beats = Beats(tap.directory)
        script = " ".join(beats.command(0, "exits_0", 100000)) + "; true"
        wrapper = start("run", "-u", url, "f150", "--", "sh", "-c", script)
        beats.wait_first(0)
        wrapper.kill()
        since = boot_ns()
        equal(run("run", "-u", url, "f150", "--", *beats.command(1, "exits_0", 1)).code, 0)
        assert beats.last(0) < beats.first(1), "two at once"
        took = (beats.first(1) - since) / 1e6
        best = took if best is None else min(best, took)
        finish(wrapper)
    assert best < 100, f"the next one started {best:.1f} ms after the kill"


def F150_wrapper_killed_while_another_waits():
    url = tap.local()
    worst = []
    for i in range(5):
        beats = Beats(tap.directory)
        wrapper = start("run", "-u", url, "f150w", "--", *beats.command(0, "forks_grandchild", 100000))
        beats.wait_first(0)
        other = start("run", "-u", url, "f150w", "--", *beats.command(1, "exits_0", 1))
        other.stderr.readline()  # it waits
        wrapper.kill()
        since = boot_ns()
        equal(finish(other).code, 0)
        assert beats.last(0) < beats.first(1), "two at once"
        worst.append((beats.first(1) - since) / 1e6)
        finish(wrapper)
    assert sorted(worst)[2] < 100, f"the waiting one started after {worst} ms"


def supervisor_of(wrapper):
    with open(f"/proc/{wrapper.pid}/task/{wrapper.pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])


def F150_supervisor_killed():
    url = tap.local()
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "f150s", "--", *beats.command(0, "forks_grandchild", 100000))
    beats.wait_first(0)
    until(lambda: beats.read(0)[2] == 2, "the grandchild")
    os.kill(supervisor_of(wrapper), signal.SIGKILL)
    done = finish(wrapper)
    equal(done.code, 125, repr(done))
    next_one(url, "f150s", beats)


def F150_supervisor_stopped(url):
    """It cannot do its duty: snib does, within the lease."""
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "--lease", LEASE, "f150t", "--", *beats.command(0, "daemonises", 100000))
    beats.wait_first(0)
    os.kill(supervisor_of(wrapper), signal.SIGSTOP)
    equal(run("force-release", "-u", url, "-y", "f150t").code, 0)
    since = boot_ns()  # no renewal can have succeeded after this
    done = finish(wrapper)
    equal(done.code, 120, repr(done))
    assert beats.last(0) < since + LEASE_MS * MS, "it outlived its lease"


def F151_double_fork_is_waited_for(url):
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "f151", "--", *beats.command(0, "daemonises", 700))
    done = finish(wrapper)
    equal(done.code, 0, repr(done))
    assert beats.last(0) - beats.first(0) > 600 * MS, "the daemon was not waited for"
    next_one(url, "f151", beats)


def F151_close_leaves_the_rest_running(url):
    beats = Beats(tap.directory)
    begin = boot_ns()
    wrapper = start("run", "-u", url, "-o", "f151o", "--", *beats.command(0, "daemonises", 1500))
    equal(wrapper.wait(30), 0)  # its end, not that of its pipes, which the rest has too
    assert boot_ns() - begin < 1400 * MS, "it waited"
    equal(run("run", "-n", "-u", url, "f151o", "--", "true").code, 0, "the lock is free")
    until(lambda: beats.last(0) - begin > 1200 * MS, "the rest runs on")


def F152_signals_reach_the_command(url):
    for number in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"):
        script = f"trap 'echo got; exit 9' {number}; echo ready; while :; do sleep 0.02; done"
        wrapper = start("run", "-u", url, f"f152-{number}", "--", "sh", "-c", script)
        equal(wrapper.stdout.readline(), b"ready\n")
        wrapper.send_signal(getattr(signal, "SIG" + number))
        done = finish(wrapper)
        equal((done.code, done.out), (9, "got\n"), number)


def F152_input_output_and_codes(url):
    done = run("run", "-u", url, "f152-io", "--", "sh", "-c", "cat; echo err >&2; exit 33", input=b"in\0put")
    equal((done.code, done.out, done.err), (33, "in\0put", "err\n"))
    for number in (1, 2, 6, 9, 15):
        equal(run("run", "-u", url, "f152-io", "--", "sh", "-c", f"kill -{number} $$").code, 128 + number)
    equal(run("run", "-u", url, "f152-io", "--", "sh", "-c", "exit 255").code, 255)


def F152_stopped_command_is_told(url):
    """The polite signal reaches a command that is stopped."""
    script = "trap 'echo told; exit 3' TERM; kill -STOP $$; while :; do sleep 0.02; done"
    done = run("run", "-u", url, "--max-hold", "300ms", "--grace", "8s", "--lease", "30s", "f152-told", "--", "sh", "-c", script)
    equal((done.code, done.out), (124, "told\n"), repr(done))


def F152_ignored_signals_stay_ignored(url):
    """As under nohup."""
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    wrapper = start("run", "-u", url, "f152-nohup", "--", "sh", "-c", "echo ready; sleep 0.3; exit 3", preexec=ignore)
    equal(wrapper.stdout.readline(), b"ready\n")
    wrapper.send_signal(signal.SIGHUP)
    equal(finish(wrapper).code, 3)


class Terminal:
    """snib as a job of a session that has a terminal, with this test as its shell in between."""

    def __init__(self, *args):
        self.master, slave = pty.openpty()
        ready, self.shell_pipe = os.pipe()
        self.text = b""
        self.pid = os.fork()
        if self.pid == 0:
            die_with_parent()
            try:
                self.shell(slave, args)
            finally:
                os._exit(99)
        os.close(slave)
        os.close(ready)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @staticmethod
    def shell(slave, args):
        """Runs the job in the foreground; when it stops, says so, and brings it back on SIGUSR1;
        exits with its code."""
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(slave, fd)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        job = os.fork()
        if job == 0:
            die_with_parent()
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
            os.setpgid(0, 0)
            # From the background, as no job-control shell would; it is before exec and ours to
            # arrange.
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(SNIB, [SNIB, *args], environment(TERM="vt100"))
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                os._exit(os.waitstatus_to_exitcode(status) & 255)
            os.tcsetpgrp(0, os.getpid())
            os.write(1, b"[job stopped]\n")
            signal.sigwait([signal.SIGUSR1])
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)

    def read(self):
        while True:
            try:
                data = os.read(self.master, 4096)
            except OSError:
                return
            if not data:
                return
            self.text += data

    def wait_text(self, text):
        until(lambda: text in self.text, f"{text!r} on the terminal, which shows {self.text!r}")

    def type(self, data):
        os.write(self.master, data)

    def end(self):
        state = {}

        def gone():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            state["code"] = os.waitstatus_to_exitcode(status) if pid else None
            return pid
        until(gone, "the end of the job")
        return state["code"]


def F152_interrupt_key(url):
    t = Terminal("run", "-u", url, "f152-key", "--", "sh", "-c", "trap 'exit 5' INT; echo ready; while :; do sleep 0.02; done")
    t.wait_text(b"ready")
    t.type(b"\x03")
    equal(t.end(), 5, repr(t.text))


def F152_terminal_is_lent(url):
    t = Terminal("run", "-u", url, "f152-tty", "--", "sh", "-c", "echo ready; read x; echo got:$x; exit 4")
    t.wait_text(b"ready")
    t.type(b"hello\n")
    t.wait_text(b"got:hello")
    equal(t.end(), 4, repr(t.text))


def F152_interrupt_key_while_waiting(url):
    holder = start("run", "-u", url, "f152-wait", "--", "sh", "-c", "echo; exec sleep 30")
    holder.stdout.readline()
    t = Terminal("run", "-u", url, "f152-wait", "--", "true")
    t.wait_text(b"waiting for")
    t.type(b"\x03")
    equal(t.end(), 130, repr(t.text))
    until(lambda: t.text.endswith(b"\r\x1b[K"), "the line is taken away")
    holder.send_signal(signal.SIGTERM)
    equal(finish(holder).code, 143)


def F153_suspend_key_and_back(url):
    """Stopped for less than the lease: the job goes on where it was."""
    t = Terminal("run", "-u", url, "f153", "--", "sh", "-c", "echo ready; read x; exit 6")
    t.wait_text(b"ready")
    t.type(b"\x1a")
    t.wait_text(b"[job stopped]")
    os.kill(t.pid, signal.SIGUSR1)
    t.type(b"\n")
    equal(t.end(), 6, repr(t.text))


def F153_suspended_longer_than_the_lease(url):
    """The command is ended while the job is stopped; when it is continued, it says so."""
    beats = Beats(tap.directory)
    t = Terminal("run", "-u", url, "--lease", LEASE, "f153-long", "--", *beats.command(0, "ignores_term", 30000))
    beats.wait_first(0)
    t.type(b"\x1a")
    t.wait_text(b"[job stopped]")
    next_one(url, "f153-long", beats)
    os.kill(t.pid, signal.SIGUSR1)
    equal(t.end(), 120, repr(t.text))
    t.wait_text(b"lost f153-long")


def F153_stopped_wrapper_learns_first(url):
    """SIGSTOP longer than the lease, SIGCONT: the command is gone, and the token is below the next
    holder's."""
    beats = Beats(tap.directory)
    show = "echo $SNIB_TOKEN; exec "
    wrapper = start("run", "-u", url, "--lease", LEASE, "f153-stop", "--", "sh", "-c",
                    show + " ".join(beats.command(0, "ignores_term", 60000)))
    mine = int(wrapper.stdout.readline())
    beats.wait_first(0)
    stop(url, wrapper)
    next_holder = run("run", "-u", url, "-w", "20", "f153-stop", "--", "sh", "-c",
                      show + " ".join(beats.command(1, "exits_0", 1)))
    assert beats.last(0) < beats.first(1), "two at once"
    wrapper.send_signal(signal.SIGCONT)
    done = finish(wrapper)
    equal(done.code, 120, repr(done))
    assert mine < int(next_holder.out), (mine, next_holder)


def F154_what_the_command_is_told(url):
    seen = []
    for fenced in ((), ("--fenced",)):
        done = run("run", "-u", url, *fenced, "--lease", "7s", f"f154 ü{len(fenced)}", "--", "sh", "-c",
                   'printf "%s\\n" "$SNIB_NAME" "$SNIB_TOKEN" "$SNIB_OWNER" "$SNIB_DEADLINE_MS" "$SNIB_URL"')
        name, token, owner, deadline, where = done.out.splitlines()
        equal(name, f"f154 ü{len(fenced)}")
        equal(where, url)
        assert int(token) > 0 and owner, done
        left = int(deadline) - time.time() * 1000
        assert 0 < left <= 7000, f"deadline in {left} ms"
        seen.append(done)
    tokens = [int(run("run", "-u", url, "f154t", "--", "sh", "-c", "echo $SNIB_TOKEN").out) for _ in range(3)]
    assert tokens == sorted(set(tokens)), tokens


def F155_four_distinct_codes(url):
    holder = start("run", "-u", url, "f155", "--", "sh", "-c", "echo; exec sleep 30")
    holder.stdout.readline()
    equal(run("run", "-u", url, "-n", "f155", "--", "true").code, 75, "busy")
    begin = time.monotonic()
    done = run("run", "-u", url, "-w", "0.4", "f155", "--", "true")
    equal(done.code, 75, "waited too long")
    assert time.monotonic() - begin >= 0.4 and "gave up on f155" in done.err, done
    equal(run("run", "-u", url, "-w", "200ms", "-E", "9", "f155", "--", "true").code, 9, "-E")
    equal(run("run", "-u", "redis+unix:///nonexistent/socket", "f155", "--", "true").code, 69, "unreachable")
    equal(run("run", "-u", url, "f155").code, 64, "usage")
    holder.terminate()
    equal(finish(holder).code, 143)


ALL = [F148_lock_taken_away, F150_supervisor_stopped, F151_double_fork_is_waited_for, F151_close_leaves_the_rest_running,
       F152_signals_reach_the_command, F152_input_output_and_codes, F152_stopped_command_is_told,
       F152_ignored_signals_stay_ignored, F152_interrupt_key,
       F152_terminal_is_lent, F152_interrupt_key_while_waiting, F153_suspend_key_and_back,
       F153_suspended_longer_than_the_lease, F153_stopped_wrapper_learns_first, F154_what_the_command_is_told,
       F155_four_distinct_codes]
LOCAL = [F150_wrapper_killed, F150_wrapper_killed_while_another_waits, F150_supervisor_killed]
REDIS = [F148_key_deleted, F148_server_gone_for_good, F149_short_hiccup]

for test in LOCAL:
    tap.add(test.__name__, test)
for engine, engine_url in tap.engines():
    for test in ALL:
        tap.add(f"{test.__name__} {engine}", test, engine_url, skip=None if engine_url else tap.skip_without_redis())
for test in REDIS:
    tap.add(test.__name__, test, skip=tap.skip_without_redis())

tap.main(workers=3)
