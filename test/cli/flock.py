#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines written for flock(1): each works, or is refused with 64 and answered by the line to
type."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import SNIB, Tap, environment, equal, run, until

tap = Tap()
os.symlink(os.path.abspath(SNIB), tap.directory + "/snib")


def shell(script):
    """A script in which `snib` is the one that is tested."""
    return subprocess.run(["sh", "-c", script], cwd=tap.directory, env=environment(PATH=tap.directory + ":" + os.environ["PATH"]),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30, text=True, check=False)


def commands_for_the_shell():
    for words in (["-c", "exit $((1 + 2))"], ["--command", "exit 3"], ["--command=exit 3"], ["-cexit 3"]):
        for verb in "run", "try":
            equal(run(verb, "shell", *words).code, 3, repr(words))
            equal(run(verb, *words, "shell").code, 3, repr(words))
    for words in (["-c"], ["-c", "true", "more"], ["--command=true", "more"], ["-ctrue", "more"]):
        equal(run("run", "shell", *words).code, 64, repr(words))


def a_descriptor():
    """The line that is answered does what was meant."""
    done = shell("( snib run -n 9 || exit $?; echo WENT ON ) 9>file")
    equal((done.returncode, done.stdout), (64, ""), done.stderr)
    assert "9 is an open descriptor" in done.stderr, done.stderr
    line = done.stderr.strip().split("type: ")[1]
    assert " -n " in line, line
    line = line.replace("NAME", "of-the-script")
    done = shell(f"( {line}; snib run -n of-the-script true; echo $? ) 9>file")
    equal((done.returncode, done.stdout), (0, "75\n"), done.stderr)
    until(lambda: run("run", "-n", "-q", "of-the-script", "true").code == 0, "released with the end of the script")
    assert "acquire -x NAME" in shell("( snib run -x 9 ) 9>file").stderr
    done = run("run", "9")  # not open: no descriptor is meant
    assert done.code == 64 and "CMD is missing" in done.err and "descriptor" not in done.err, done
    equal(shell("snib run 9 true 9>file").returncode, 0)


def to_unlock():
    for script in ("snib run -u 9 9>file", "snib run --unlock 9 9>file", "snib try -u 9"):
        done = shell(script)
        equal((done.returncode, done.stdout), (64, ""), done.stderr)
        assert done.stderr.strip().endswith("type: snib release"), done.stderr
    done = shell('g=$(snib acquire of-a-part) || exit; eval "$g"; snib release; snib run -n of-a-part true; echo $?')
    equal((done.returncode, done.stdout), (0, "0\n"), done.stderr)


def what_cannot_be():
    for option in "-F", "--no-fork", "--fcntl":
        for words in ([option, "name", "true"], ["-n", option, "name", "-c", "true"]):
            done = run("run", *words)
            equal((done.code, done.out), (64, ""), repr(done))
            assert option.strip("-") in done.err and "leave it out: snib run NAME CMD" in done.err, done


for test in commands_for_the_shell, a_descriptor, to_unlock, what_cannot_be:
    tap.add(test.__name__, test)
tap.main()
