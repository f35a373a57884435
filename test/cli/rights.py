# SPDX-License-Identifier: Apache-2.0
"""The rights on Redis that snib(7) says are all that is needed: pasted from the page as it is
installed, into a shell, for a real server; then every object is used by that user. The server's own
log of refusals must stay empty, also of those that cost speed only.

    rights.py SNIB.7
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from kit import SNIB, Tap, equal, finish, run, start, until, write_script

PAGE = Path(sys.argv.pop(1))
tap = Tap()


def shown(text):
    """What a reader sees of roff that was escaped by tools/gen-man."""
    for escaped, plain in [(r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\-", "-"), (r"\&", ""), (r"\e", "\\")]:
        text = text.replace(escaped, plain)
    return text


def pasted(directory):
    """The words that redis-cli gets when the lines of the page are pasted into a shell."""
    blocks = [shown(block) for block in re.findall(r"^\.nf\n(.*?)^\.fi", PAGE.read_text(), re.DOTALL | re.MULTILINE)]
    lines = [block for block in blocks if block.startswith("redis-cli ACL SETUSER app ")]
    equal(len(lines), 1, "blocks with the rights")
    stub = Path(directory, "redis-cli")
    write_script(stub, '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    said = subprocess.run(["sh", "-euc", lines[0]], env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}, stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    return said.splitlines()


def begin():
    server = tap.redis_server
    equal(server.command(*pasted(tap.directory)), b"+OK\r\n", "ACL SETUSER")
    equal(server.command("ACL", "LOG", "RESET"), b"+OK\r\n", "ACL LOG RESET")
    return server.url + "?user=app&password=PASSWORD"


def did(*args, code=0, says=""):
    done = run(*args)
    equal(done.code, code, f"{args}: {done}")
    assert says in done.out + done.err, f"{args}: {done}"
    return done


def refusals():
    """What the server refused: command or key, as its log has it."""
    log = tap.redis_server.command("ACL", "LOG", "20").decode(errors="replace")
    return re.findall(r"\$6\r\nobject\r\n\$\d+\r\n([^\r]*)", log)


def handed_over(url, *options):
    """Who waits gets it at once, by a message or by the hand of the one who releases."""
    name = f"app:{'-'.join(options)}" if options else "app:plain"
    first = start("run", "-u", url, *options, name, "--", "sleep", "1")
    until(lambda: run("show", "-j", "-u", url, name).out.count('"held":true') or first.poll() is not None, "the first holds")
    second = start("run", "-u", url, *options, name, "--", "true")
    done = finish(first)
    equal(done.code, 0, done)
    ended = time.monotonic()
    equal(finish(second).code, 0, "the second")
    assert time.monotonic() - ended < 5, "the second was not told"


def locks(url):
    for options in [], ["--fenced"], ["--fair"], ["-x"]:
        handed_over(url, *options)
    did("run", "-u", url, "-s", "app:shared", "--", SNIB, "run", "-n", "-u", url, "-s", "app:shared", "--", "true")
    did("run", "-u", url, "-k", "app:a", "-k", "app:b:x", "--", "true")
    held = start("run", "-u", url, "app:forced", "--", "sleep", "20")
    until(lambda: run("show", "-j", "-u", url, "app:forced").out.count('"held":true'), "it is held")
    did("run", "-n", "-u", url, "app:forced", "--", "true", code=75)
    did("ls", "-u", url, says="app:forced")
    did("force-release", "-y", "-u", url, "app:forced")
    equal(finish(held).code, 120, "the one that lost it")


def counted(url):
    did("run", "-u", url, "--permits", "1", "--of", "2", "app:gpu", "--", "true")
    did("sem", "-u", url, "set", "app:sem", "3")
    did("sem", "-u", url, "acquire", "app:sem", "2")
    waits = start("sem", "-u", url, "acquire", "-w", "20", "app:sem", "2")
    did("sem", "-u", url, "add", "app:sem", "1")
    equal(finish(waits).code, 0, "the waiting acquire")
    did("sem", "-u", url, "release", "app:sem", "4")
    did("sem", "-u", url, "drain", "app:sem", says="4")
    did("sem", "-u", url, "show", "app:sem", says="0")
    did("latch", "-u", url, "set", "app:latch", "2")
    waits = start("latch", "-u", url, "wait", "-w", "20", "app:latch")
    did("latch", "-u", url, "down", "app:latch", says="1")
    did("latch", "-u", url, "down", "app:latch", says="0")
    equal(finish(waits).code, 0, "the waiting one")


def values(url):
    did("register", "-u", url, "set", "app:register", "one")
    waits = start("register", "-u", url, "wait", "-v", "0", "-w", "20", "app:register")
    equal(finish(waits).code, 0, "the waiting one")
    did("register", "-u", url, "get", "app:register", says="one")
    did("register", "-u", url, "delete", "app:register")
    did("elect", "-u", url, "--once", "app:leader", "--", SNIB, "elect", "-u", url, "--leader", "app:leader")


def every_object_works():
    url = begin()
    locks(url)
    counted(url)
    values(url)
    equal(refusals(), [], "what the server refused")


def names_of_others_are_refused():
    url = begin()
    did("run", "-n", "-u", url, "other", "--", "true", code=77, says="other")
    assert refusals(), "the server has no log of what it refused: the other test says nothing"


skip = tap.skip_without_redis()
tap.add("the rights of snib(7), pasted into a shell, are enough for every object", every_object_works, skip=skip)
tap.add("and for no name of another", names_of_others_are_refused, skip=skip)
tap.main(workers=1)
