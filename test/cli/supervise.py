# SPDX-License-Identifier: Apache-2.0
"""Signal x phase x behaviour of the command x fate of the wrapper, on every engine: the exit code,
who holds the lock afterwards, and that nothing of the command is alive when the next holder starts
(invariant C1)."""

import signal
import time

from kit import Beats, Tap, boot_ns, equal, finish, run, start, stop, until

# Of a wrapper that is stopped or killed: what it ran is gone within it, if a machine that stalls
# stalls less than the margin for the kill, a twentieth.
LEASE_MS = 3000
STOPPING_MS = 200  # when the lock is lost, a command that ignores the polite signal is killed a little later
CALM = ["--lease", "20s"]  # of one whose lease is not what the case is about: a machine that stalls must not end it
BEHAVIOURS = ["exits_0", "exits_7", "killed", "ignores_term", "forks_grandchild", "daemonises", "closes_descriptors"]
FATES = ["normal", "TERM", "KILL", "STOP"]
SHORT = ["exits_0", "exits_7", "killed"]  # end by themselves, within the lease
tap = Tap()


def lease(fate):
    return ["--lease", f"{LEASE_MS}ms"] if fate in ("KILL", "STOP") else CALM


def next_holder(url, name, beats):
    """Wants the lock as somebody else."""
    return start("run", "-u", url, "-w", "20", name, "--", *beats.command(1, "exits_0", 5))


def own_code(behaviour):
    return {"exits_7": 7, "killed": 137}.get(behaviour, 0)


def expected_running(behaviour, fate):
    if fate == "normal":
        return own_code(behaviour)
    if fate == "KILL":
        return -9
    if fate == "STOP":  # ended before the lease: its own code; else stopped with the lease
        return own_code(behaviour) if behaviour in SHORT else 120
    if behaviour == "daemonises":
        return 0  # it had ended before the signal came; the daemon got it
    return 0 if behaviour == "ignores_term" else 143


def no_overlap(beats, other):
    equal(finish(other).code, 0, "the next holder")
    last, first = beats.last(0), beats.first(1)
    assert last < first, f"alive {(last - first) / 1e6:.3f} ms after the next holder began"


def stop_longer_than_lease(url, wrapper, beats):
    """Stopped: what it ran must be gone within the lease, without its help."""
    stop(url, wrapper)
    since = boot_ns()
    while boot_ns() < since + (LEASE_MS + 300) * 1000000:  # the passing of the lease is the event
        time.sleep(0.01)
    last = beats.last(0)
    assert last < since + LEASE_MS * 1000000, f"alive {(last - since) / 1e6:.0f} ms after the stop, lease {LEASE_MS} ms"


def running(url, behaviour, fate):
    name = f"run-{behaviour}-{fate}"
    beats = Beats(tap.directory)
    ms = 300 if behaviour in SHORT else 1500 if fate in ("normal", "TERM") else 20000
    wrapper = start("run", "-u", url, *lease(fate), name, "--", *beats.command(0, behaviour, ms))
    beats.wait_first(0)
    if behaviour == "daemonises":
        until(lambda: beats.read(0)[2] == 1, "the daemon")
        time.sleep(0.1)  # lets the first process end; nothing here depends on it for being correct
    if behaviour == "forks_grandchild":
        until(lambda: beats.read(0)[2] == 2, "the grandchild")
    other = next_holder(url, name, beats)
    if behaviour not in SHORT:
        other.stderr.readline()  # "waiting for ...": it is there, ready to take over at once
    if fate == "STOP":
        stop_longer_than_lease(url, wrapper, beats)
        no_overlap(beats, other)
        wrapper.send_signal(signal.SIGCONT)
    elif fate != "normal":
        wrapper.send_signal(getattr(signal, "SIG" + fate))
    done = finish(wrapper)
    equal(done.code, expected_running(behaviour, fate), repr(done))
    if fate != "STOP":
        no_overlap(beats, other)


def waiting(url, fate):
    name = f"wait-{fate}"
    beats = Beats(tap.directory)
    holder = start("run", "-u", url, *CALM, name, "--", *beats.command(2, "exits_0", 800 if fate == "normal" else 60000))
    beats.wait_first(2)
    wrapper = start("run", "-u", url, *lease(fate), name, "--", *beats.command(0, "exits_7", 50))
    wrapper.stderr.readline()  # "waiting for ...": it stands in the queue
    if fate == "STOP":
        stop(url, wrapper)
        holder.terminate()
        equal(finish(holder).code, 143, "the holder")
        no_overlap(beats, next_holder(url, name, beats))  # although it was its turn
        wrapper.send_signal(signal.SIGCONT)
        done = finish(wrapper)
        assert done.code in (7, 120), done  # asked anew, or was told that its hold had gone
        return
    if fate != "normal":
        wrapper.send_signal(getattr(signal, "SIG" + fate))
    done = finish(wrapper)
    number = 0 if fate == "normal" else getattr(signal, "SIG" + fate)
    equal(done.code, 7 if fate == "normal" else -9 if fate == "KILL" else 128 + number, repr(done))
    if fate != "normal":
        assert holder.poll() is None, "the wait ended with the signal, not with the hold"
        equal(beats.first(0), 0, "never started")
        holder.terminate()
    equal(finish(holder).code, 0 if fate == "normal" else 143, "the holder")
    no_overlap(beats, next_holder(url, name, beats))


def stopping(url, behaviour, fate):
    """The lock is taken away; while the command is being stopped, which takes its time, something
    happens to the wrapper."""
    name = f"stop-{behaviour}-{fate}"
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "--lease", "2s", "--grace", "500ms", name, "--",
                    *beats.command(0, behaviour + ",ignores_term", 20000))
    beats.wait_first(0)
    if behaviour == "forks_grandchild":
        until(lambda: beats.read(0)[2] == 2, "the grandchild")
    before = boot_ns()
    equal(run("force-release", "-u", url, "--yes", name).code, 0, "force-release")
    since = boot_ns()  # no renewal can have succeeded after this
    if fate != "normal":
        wrapper.send_signal(getattr(signal, "SIG" + fate))
    in_time = boot_ns() < before + STOPPING_MS * 1000000  # on a machine that stalls it may be over by now
    if fate == "STOP":
        until(lambda: boot_ns() - beats.last(0) > 200 * 1000000, "the command is gone")
        assert beats.last(0) < since + 2000 * 1000000, "outlived its lease"
        wrapper.send_signal(signal.SIGCONT)
    done = finish(wrapper)
    killed = fate == "KILL" and (in_time or done.code != 120)
    equal(done.code, -9 if killed else 120, repr(done))
    until(lambda: boot_ns() - beats.last(0) > 50 * 1000000, "the command is gone")
    assert beats.last(0) < since + 2000 * 1000000, "outlived its lease"
    equal(finish(next_holder(url, name, beats)).code, 0, "the next holder")


for engine, engine_url in tap.engines():
    why = None if engine_url else tap.skip_without_redis()
    for b in BEHAVIOURS:
        for f in FATES:
            tap.add(f"{engine} running {b} {f}", running, engine_url, b, f, skip=why)
    for f in FATES + ["INT", "HUP", "QUIT"]:
        tap.add(f"{engine} waiting {f}", waiting, engine_url, f, skip=why)
    for b in ("ignores_term", "forks_grandchild", "daemonises", "closes_descriptors"):
        for f in FATES:
            tap.add(f"{engine} stopping {b} {f}", stopping, engine_url, b, f, skip=why)

tap.main()
