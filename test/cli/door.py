# SPDX-License-Identifier: Apache-2.0
"""The command's door: what a script gets when it does not get the lock, or its output is lost. No
line may go on as if the lock were held."""

import itertools
import os
import shutil
import signal
import subprocess

from kit import SNIB, Tap, die_with_parent, environment, equal, finish, lines, run, start, until, write_script

tap = Tap()
SHELLS = [s for s in ("sh", "dash", "bash", "zsh", "ksh", "mksh", "busybox") if shutil.which(s)]
NOWHERE = "redis://127.0.0.1:1?timeout=200ms"


def shell(script, url=None, which="sh", **more):
    """A script of a user: `snib` is found by PATH."""
    place = os.path.join(tap.directory, "bin")
    env = environment(SNIB_URL=url, PATH=place + ":" + os.environ["PATH"], **more)
    words = ["busybox", "sh"] if which == "busybox" else [which]
    return subprocess.run([*words, "-c", script], env=env, capture_output=True, text=True, timeout=60,
                          preexec_fn=die_with_parent, check=False)


def held(url, name):
    return lines(run("show", "-u", url, "--json", name).out)[0]["held"]


class Held:
    """A lock that another process holds."""

    def __init__(self, url, name):
        self.url, self.name = url, name

    def __enter__(self):
        self.process = start("run", "-u", self.url, self.name, "--", "sleep", "1000")
        until(lambda: held(self.url, self.name), f"{self.name} is held")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        finish(self.process)


# ---- acquire prints text that fails ----

FORMS = (  # what users write; each must end with acquire's exit code and never say WENT ON
    'eval "$(snib acquire {})" || exit; echo WENT ON',
    'g=$(snib acquire {}) || exit; eval "$g"; echo WENT ON',
    'set -e; eval "$(snib acquire {})"; echo WENT ON',
    'set -e; g=$(snib acquire {}); eval "$g"; echo WENT ON',
    'if eval "$(snib acquire {})"; then echo WENT ON; else exit $?; fi',
    'eval "$(snib acquire {})" && {{ echo WENT ON; exit 0; }}',
)


def evaluated_failures(which, url, arguments, code):
    for form in FORMS:
        done = shell(form.format(arguments), url, which)
        assert "WENT ON" not in done.stdout, (form, done)
        equal(done.returncode, code, (form, done))


def acquire_fails_in_eval(which):
    url = tap.local()
    with Held(url, "deploy-" + which):
        for more, code in (("-n", 75), ("-w 200ms", 75), ("-n -E 9", 9), ("-n -q", 75)):
            evaluated_failures(which, url, f"{more} --for-pid $$ deploy-{which}", code)
    evaluated_failures(which, url, "--nonsense x", 64)
    evaluated_failures(which, url, "", 64)
    evaluated_failures(which, url, "-w soon x", 64)
    evaluated_failures(which, url, "-E 0 x", 64)
    evaluated_failures(which, url, "--for-pid 999999999 x", 64)
    evaluated_failures(which, "mem:", "--for-pid $$ x", 64)
    evaluated_failures(which, "nonsense:", "--for-pid $$ x", 78)
    evaluated_failures(which, NOWHERE, "--for-pid $$ x", 69)


def acquire_succeeds_in_eval(which):
    url, name = tap.local(), "fine-" + which
    for form in FORMS:
        script = form.format("--for-pid $$ " + name) + f"; set +e; snib run -n {name} -- true; echo $?; snib release"
        done = shell(script, url, which)
        assert done.stdout.startswith("WENT ON\n"), (form, done)
        if "exit 0" not in form:
            equal(done.stdout, "WENT ON\n75\n", (form, done))
            equal(done.returncode, 0, (form, done))
        until(lambda: not held(url, name), "released")


def acquire_killed_or_missing():
    """No text at all: the form of the manual survives it."""
    url = tap.local()
    for stub in ("kill -9 $$", "exit 127"):
        place = os.path.join(tap.directory, "stub")
        os.makedirs(place, exist_ok=True)
        write_script(place + "/snib", f"#!/bin/sh\n{stub}\n")
        done = shell(f'PATH={place}:$PATH; g=$(snib acquire x) || exit; eval "$g"; echo WENT ON', url)
        assert "WENT ON" not in done.stdout and done.returncode in (137, 127), done
    done = shell('PATH=/nonexistent; g=$(snib acquire x) || exit; eval "$g"; echo WENT ON', url)
    equal((done.stdout, done.returncode), ("", 127))


def acquire_interrupted_prints_failure():
    url = tap.local()
    with Held(url, "interrupt"):
        waiter = start("acquire", "-u", url, "--for-pid", str(os.getpid()), "interrupt")
        waiter.stderr.readline()
        waiter.send_signal(signal.SIGTERM)
        done = finish(waiter)
        equal((done.code, done.out), (143, "(exit 143)\n"), repr(done))


def acquire_json_failure_is_json():
    url = tap.local()
    with Held(url, "json"):
        done = run("acquire", "-j", "-n", "-u", url, "--for-pid", str(os.getpid()), "json")
        equal((done.code, done.out), (75, ""), repr(done))
        lines(done.err)
    for words in (["-j", "--nonsense"], ["--nonsense", "-j"], ["-j"], ["-j", "-E", "0", "x"]):
        done = run("acquire", *words)
        equal((done.code, done.out), (64, ""), repr(done))
        lines(done.err)


# ---- mem: ----

def mem_is_refused(*words):
    for url, more, env in (("--url", ["-u", "mem:"], {}), ("--url", ["-u", "MEM:x"], {}), ("SNIB_URL", [], {"SNIB_URL": "mem:"})):
        done = run(words[0], *more, *words[1:], env=env)
        equal(done.code, 64, repr(done))
        assert url in done.err and "private to one process" in done.err and "local:" in done.err, done
        assert "ran" not in done.out, done


def mem_is_refused_among_red():
    done = run("run", "--red", tap.local(), "--red", "mem:", "--red", "mem:b", "x", "--", "echo", "ran")
    equal((done.code, done.out), (64, ""), repr(done))
    assert "--red" in done.err and "private to one process" in done.err, done


# ---- output that is lost ----

def lost_output(words, env, out):
    """Its exit and stderr, stdout being /dev/full, closed, or open for reading only."""
    def close():
        die_with_parent()
        os.close(1)
    with open("/dev/null" if out == "read-only" else "/dev/full", "rb" if out == "read-only" else "wb") as full:
        done = subprocess.run([SNIB, *words], env=environment(**env), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              stdout=full, preexec_fn=close if out == "closed" else die_with_parent, timeout=30,
                              check=False)
    return done.returncode, done.stderr.decode()


ANSWERS = [words.split() for words in (
    "version", "version -j", "help", "help run", "-h", "run -h", "acquire -h", "engines", "engines -j", "ls", "ls -j",
    "show held", "show -j held", "show free", "sem show s", "sem -j show s", "sem add s 1", "sem -x show p",
    "sem -x -j show p", "latch show l", "latch -j down l", "register get r", "register -j get r", "register set r x",
    "register -j set r x", "elect --leader e", "elect -j --leader e", "elect --observe e", "elect -j --observe e",
    "force-release -y nobody", "force-release -y -j nobody")]


def lost_answers(url):
    with Held(url, "held"):
        for words in ("sem set s 3", "sem -x set p 3", "latch set l 99999", "register set r value"):
            run(words.split()[0], "-u", url, *words.split()[1:])
        for words in ANSWERS:
            for out in ("full", "closed", "read-only"):
                code, err = lost_output(words, {"SNIB_URL": url}, out)
                equal(code, 125, (words, out, err))
                equal(err.count("could not be written"), 1, (words, out, err))
                if "-j" in words:
                    equal(lines(err)[0]["exit"], 125)


def lost_grant_is_given_back(url):
    for out in ("full", "closed", "read-only"):
        for more in ([], ["-j"]):
            code, err = lost_output(["acquire", *more, "--lease", "60s", "--for-pid", str(os.getpid()), "lost"],
                                    {"SNIB_URL": url}, out)
            equal(code, 125, (more, out, err))
            assert "could not be written" in err, err
            assert not held(url, "lost"), "released before it ended"


def unprinted_grant_is_given_back(url):
    """snib acquire is killed while nobody reads its grant."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    process = subprocess.Popen([SNIB, "acquire", "-u", url, "--lease", "60s", "--for-pid", str(os.getpid()), "unread"],
                               env=environment(), stdout=writer, preexec_fn=die_with_parent)
    os.close(writer)
    until(lambda: held(url, "unread"), "acquired")
    process.kill()
    process.wait()
    until(lambda: not held(url, "unread"), "given back")
    os.close(reader)


def closed_stdout_is_not_the_first_file():
    """What runs under the lock has no stdout either, and not the engine's file."""
    done = subprocess.run(["sh", "-c", f'exec "{SNIB}" run x -- sh -c "echo lost; echo \\$?" >&-'],
                          env=environment(SNIB_URL=tap.local()), capture_output=True, text=True, timeout=30, check=False)
    equal(done.stdout, "", done)


def lost_input(url):
    """What could not be read is not written as if it were empty."""
    equal(run("register", "set", "-u", url, "input", "kept").code, 0)
    for stdin in ("</", "<&-"):
        done = shell(f"snib register set input - {stdin}", url)
        equal(done.returncode, 125, done)
        assert "stdin cannot be read" in done.stderr, done
    equal(run("register", "get", "-u", url, "input").out, "kept")


# ---- for whom acquire holds ----

def watched(url, name):
    """The process that the guardian of a hold waits for, as the kernel knows it."""
    guardian = lines(run("show", "-u", url, "--json", name).out)[0]["pid"]
    found = set()
    for fd in os.listdir(f"/proc/{guardian}/fdinfo"):
        try:
            with open(f"/proc/{guardian}/fdinfo/{fd}", encoding="ascii") as f:
                found.update(int(line.split()[1]) for line in f if line.startswith("Pid:"))
        except FileNotFoundError:
            pass  # closed meanwhile: it is not the one that is waited for
    equal(len(found), 1, "one pidfd")
    return found.pop()


def held_for(script, which="sh", files=(), name=None):
    """Runs a script that takes the lock `who`, prints the pid it should be held for, and waits for
    its stdin to end; checks that pid, and that the lock is free after."""
    url = f"local:{tap.directory}/who-{next(NUMBERS)}"
    place = os.path.join(tap.directory, f"place-{next(NUMBERS)}")
    os.makedirs(place)
    for path, text in files:
        write_script(os.path.join(place, path), text)
    env = environment(SNIB_URL=url, PATH=f"{place}:{tap.directory}/bin:{os.environ['PATH']}", MAKEFLAGS="", WHICH=which)
    process = subprocess.Popen([which, "-c", script], env=env, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=die_with_parent)
    line = process.stdout.readline()
    if not line.strip():
        raise AssertionError(f"{script}: {process.communicate(timeout=30)}")
    try:
        equal(watched(url, name or "who"), int(line), script)
    finally:
        process.stdin.close()
        process.stdin = None
        done = finish(process)
    equal(done.code, 0, (script, done))
    until(lambda: not held(url, name or "who"), "released with the end of it")


WAIT = "; read -r _ || :"
SELF = "sh -c 'echo $PPID'"  # the shell that runs this, also in a subshell


def through_a_wrapper(which):
    for wrapper in ("timeout 5", "timeout --foreground 5", "env A=b", "nice", "nohup", "setsid -w", "sudo",
                    "wrapper", "wrapper timeout 5 wrapper", "sh -c 'snib acquire who; exit $?' x", "sh -c 'snib acquire who' x",
                    "ionice", "time -p", "xargs -n1 echo | xargs", "flock file"):
        if not shutil.which(wrapper.split()[0]) and wrapper.split()[0] not in ("sudo", "wrapper", "time"):
            continue
        command = "echo who | xargs snib acquire" if "xargs" in wrapper else wrapper + " snib acquire who"
        held_for(f'g=$({command}) || exit; eval "$g"; echo $$' + WAIT, which,
                 [("sudo", '#!/bin/sh\n"$@"\nexit $?\n'), ("wrapper", '#!/bin/sh\ncd /\n"$@"\nr=$?\nexit $r\n')])


def through_a_subshell(which):
    for command in ("cd /; snib acquire who", "cd / && snib acquire who || exit", " (snib acquire who)", "{ snib acquire who; }",
                    " ( cd / && (snib acquire who; exit $?) )", "trap : 0; snib acquire who", "exec snib acquire who"):
        held_for(f'g=$({command}) || exit; eval "$g"; echo $$' + WAIT, which)
        held_for(f'trap "exit 0" 0; eval "$({command})" || exit; echo $$' + WAIT, which)


def in_a_subshell_that_lasts(which):
    held_for(f'(g=$(snib acquire who) || exit; eval "$g"; {SELF}{WAIT}) && :', which)


def from_make():
    recipe = 'all:\n\t@g=$$(snib acquire who) || exit; eval "$$g"; echo $$$$; read -r _ || :\n'
    held_for("make -s", files=[("Makefile", recipe)])
    held_for('g=$(make -s) || exit; eval "$g"; echo $$' + WAIT, files=[("Makefile", "all:\n\t@snib acquire who\n")])
    held_for("make -s", files=[("Makefile", 'g := $(shell snib acquire who)\nall:\n\t@echo $$PPID; read -r _ || :\n')])


def from_a_program():
    url = tap.local()
    equal(run("acquire", "-u", url, "program").code, 0)
    equal(watched(url, "program"), os.getpid())


def redirected():
    for wrapper in ("", "timeout 5", "sudo", "wrapper", "timeout 9 wrapper"):
        for end in (">g || exit; . ./g", ">/dev/null || exit", "|| exit", "| cat"):
            held_for("exec sh ./script 3>&1", files=[
                ("wrapper", '#!/bin/sh\n"$@"\nexit $?\n'), ("sudo", '#!/bin/sh\n"$@"\nexit $?\n'),
                ("script", f"exec >/dev/null; {wrapper} snib acquire who {end}; echo $$ >&3{WAIT}")])


def under_a_run():
    held_for("snib run outer -- sh -c 'g=$(snib acquire who) || exit; eval \"$g\"; echo $$; read -r _ || :'")


def typed_at_a_terminal():
    url = f"local:{tap.directory}/terminal"
    pid, fd = os.forkpty()
    if pid == 0:
        os.execvpe("sh", ["sh", "-i"], environment(SNIB_URL=url, PS1="", PATH=f"{tap.directory}/bin:{os.environ['PATH']}"))
    try:
        for n, words in enumerate(("snib acquire", "timeout 5 snib acquire", "snib acquire -j")):
            os.write(fd, f"{words} t{n}\n".encode())
            until(lambda n=n: held(url, f"t{n}"), "acquired")
            equal(watched(url, f"t{n}"), pid, words)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(fd)
        os.waitpid(pid, 0)
    until(lambda: not held(url, "t0"), "released with the shell")


REFUSED = (  # who would be watched ends at once, or cannot be known
    "g=$(snib acquire who | cat); echo $g",
    "(cd /; snib acquire who >/dev/null); echo $?",
    "sh -c 'snib acquire who >g; echo $?'",
    "sh -ec 'snib acquire who >g && echo 0'",
    "g=$(sshd snib acquire who); echo $?",
    "g=$(cron snib acquire who); echo $?",
    "make -s; echo $?",
    "g=$(snib run outer -- snib acquire who); echo $?",
)


def refused(script):
    place = os.path.join(tap.directory, f"place-{next(NUMBERS)}")
    os.makedirs(place)
    for name, text in (("sshd", '#!/bin/sh\n"$@"\nexit $?\n'), ("cron", '#!/bin/sh\n"$@"\nexit $?\n'),
                       ("Makefile", "all:\n\t@snib acquire who >g\n")):
        write_script(os.path.join(place, name), text)
    url = "local:" + place
    done = subprocess.run(["sh", "-c", script], env=environment(SNIB_URL=url, PATH=f"{place}:{tap.directory}/bin:{os.environ['PATH']}"),
                          cwd=place, capture_output=True, text=True, timeout=60, preexec_fn=die_with_parent, check=False)
    assert "not clear" in done.stderr and "snib acquire --for-pid $$ who" in done.stderr, (script, done)
    assert done.stdout.strip() != "0" and not held(url, "who"), (script, done)


NUMBERS = itertools.count()
os.makedirs(os.path.join(tap.directory, "bin"))
os.symlink(SNIB, os.path.join(tap.directory, "bin", "snib"))
for one in SHELLS:
    tap.add(f"a failing acquire fails in eval, {one}", acquire_fails_in_eval, one)
    tap.add(f"a successful acquire goes on, {one}", acquire_succeeds_in_eval, one)
    if one != "busybox":
        for test in (through_a_wrapper, through_a_subshell, in_a_subshell_that_lasts):
            tap.add(f"held {test.__name__}, {one}", test, one)
for test in (from_make, from_a_program, redirected, under_a_run, typed_at_a_terminal):
    tap.add("held " + test.__name__, test)
for line in REFUSED:
    tap.add("not clear for whom: " + line, refused, line)
for test in (acquire_killed_or_missing, acquire_interrupted_prints_failure, acquire_json_failure_is_json,
             mem_is_refused_among_red, closed_stdout_is_not_the_first_file):
    tap.add(test.__name__, test)
for line in ("run x -- echo ran", "try x -- echo ran", "acquire x", "elect x -- echo ran", "elect --leader x", "sem set x 1",
             "latch set x 1", "register get x", "ls", "show x", "force-release -y x"):
    tap.add("mem: is refused: " + line, mem_is_refused, *line.split())
for engine, engine_url in tap.engines():
    for test in (lost_answers, lost_input, lost_grant_is_given_back, unprinted_grant_is_given_back):
        tap.add(f"{test.__name__} {engine}", test, engine_url, skip=None if engine_url else tap.skip_without_redis())
tap.main()
