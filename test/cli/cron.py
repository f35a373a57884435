#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--hold-at-least: a job that was over in a moment keeps the lock, though snib has ended with it.
Deadlines are the engine's: how long it says that the lease lasts is compared, and nothing sleeps."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import Tap, equal, finish, lines, run, start, until

tap = Tap()


def shown(url, name):
    return lines(run("show", "-j", "-u", url, name).out)[0]


def job(url, name, *words, hold="1h", **options):
    return run("run", "-n", "-u", url, "--hold-at-least", hold, *words, name, **options)


def the_lock_stays(url):
    """With the job's exit code, at once, for what is left of the time; nobody gets in."""
    for i, (verb, code) in enumerate((("run", 0), ("try", 3))):
        begin = time.monotonic()
        done = run(verb, "-u", url, "--hold-at-least", "1h", "--label", "nightly", f"stays{i}", "-c", f"exit {code}")
        equal((done.code, done.err), (code, ""), repr(done))
        took = time.monotonic() - begin
        o = shown(url, f"stays{i}")
        assert o["held"] and 3600000 - 1000 * (took + 30) < o["lease_left_ms"] <= 3600000, (took, o)
        equal(o["label"], "nightly")
        done = run("run", "-n", "-u", url, f"stays{i}", "echo", "ran")
        equal((done.code, done.out), (75, ""), repr(done))
        text = run("show", "-u", url, f"stays{i}").out
        assert "nightly" in text and "pid" not in text, text
        equal(run("force-release", "-y", "-u", url, f"stays{i}").code, 0)
        equal(job(url, f"stays{i}", "-c", "exit 0").code, 0)


def it_is_said(url):
    run("run", "-u", url, "--hold-at-least", "1h", "said", "true")
    if url.startswith("local:"):  # a server does not know that a process ended
        assert shown(url, "said")["left"] is True
        text = run("show", "-u", url, "said").out
        assert "(ended)" in text and "--hold-at-least" in text, text
    done = run("run", "-v", "-u", url, "--hold-at-least", "1h", "said too", "true")
    assert "keeps said too for" in done.err, done


def it_ends(url):
    """After that time the next one is in; it waits no longer than it must, and has a higher token."""
    first = int(run("run", "-u", url, "--hold-at-least", "2s", "ends", "-c", "echo $SNIB_TOKEN").out)
    done = run("run", "-w", "25", "-u", url, "ends", "-c", "echo $SNIB_TOKEN")
    equal(done.code, 0, repr(done))
    assert int(done.out) > first


def a_long_job_frees_it(url):
    begin = time.monotonic()
    equal(job(url, "long", "-c", "sleep 0.3", hold="200ms").code, 0)
    equal(run("run", "-n", "-u", url, "long", "true").code, 0)
    assert time.monotonic() - begin < 20


def what_did_not_run_frees_it(url):
    equal(run("run", "-u", url, "--hold-at-least", "1h", "missing", "/nonexistent/job").code, 127)
    equal(run("run", "-n", "-u", url, "missing", "true").code, 0)


def a_job_that_is_stopped_keeps_it(url):
    process = start("run", "-u", url, "--hold-at-least", "1h", "stopped", "-c", "echo began; exec sleep 60")
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    equal(finish(process).code, 128 + signal.SIGTERM)
    equal(run("run", "-n", "-u", url, "stopped", "true").code, 75)


def a_lost_lock_is_lost(url):
    process = start("run", "-u", url, "--hold-at-least", "1h", "lost", "-c", "echo began; exec sleep 60")
    process.stdout.readline()
    equal(run("force-release", "-y", "-u", url, "lost").code, 0)
    equal(finish(process).code, 120)
    until(lambda: not shown(url, "lost")["held"], "nothing stays of it")


def every_kind(url):
    for words in (["-s"], ["-x"], ["--fair"], ["--fenced"], ["-N", "1", "--of", "1"]):
        name = "kind" + words[0]
        done = run("run", "-u", url, "--hold-at-least", "1h", *words, name, "true")
        equal(done.code, 0, repr(done))
        done = run("run", "-n", "-u", url, *(["-x"] if words == ["-s"] else words), name, "true")
        equal(done.code, 75, repr(done))


def usage():
    for words in (["-k", "a", "-k", "b"], ["--red", "local:/a", "--red", "local:/b", "--red", "local:/c", "a"]):
        done = run("run", "--hold-at-least", "1s", *words, "true")
        equal(done.code, 64, repr(done))
        assert "--hold-at-least" in done.err, done
    for duration in "0", "soon", "40000d":
        equal(run("run", "--hold-at-least", duration, "a", "true").code, 64, duration)
    equal(run("elect", "--hold-at-least", "1s", "a", "true").code, 64)


for engine, url in tap.engines():
    for test in (the_lock_stays, it_is_said, it_ends, a_long_job_frees_it, what_did_not_run_frees_it,
                 a_job_that_is_stopped_keeps_it, a_lost_lock_is_lost, every_kind):
        tap.add(f"{test.__name__} {engine}", test, url, skip=None if url else tap.skip_without_redis())
tap.add(usage.__name__, usage)
tap.main()
