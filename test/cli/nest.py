# SPDX-License-Identifier: Apache-2.0
"""A command under a lock that asks for the same lock: told at once, or joined."""

import itertools
import os
import signal
import subprocess
import time

from kit import SNIB, Beats, Tap, die_with_parent, environment, equal, finish, lines, run, start, until

tap = Tap()
NUMBERS = itertools.count()
S = SNIB


def nested(url, outer, inner, env=None):
    """`snib OUTER -- snib INNER -- echo ran`, the name being new: how it ended."""
    name = f"nest-{next(NUMBERS)}"
    words = [w.replace("NAME", name) for w in [*outer.split(), "--", S, *inner.split(), "--", "echo", "ran"]]
    return run(*words, env={"SNIB_URL": url, **(env or {})})


REFUSED = (
    ("run NAME", "run NAME"), ("run NAME", "run -w 20s NAME"), ("elect NAME", "elect NAME"),
    ("run --fair NAME", "run --fair NAME"), ("run --fenced NAME", "run --fenced NAME"), ("try NAME", "run NAME"),
    ("run -x NAME", "run -x NAME"), ("run -x NAME", "run -s NAME"), ("run -s NAME", "run -x NAME"),
    ("run -k NAME -k NAME-o", "run NAME"), ("run NAME", "run -k NAME-o -k NAME"), ("run -k NAME:x", "run -s NAME"),
    ("run --permits 1 --of 1 NAME", "run --permits 1 NAME"), ("run --permits 2 --of 3 NAME", "run --permits 2 NAME"),
    ("run NAME -- SNIB run NAME-o", "run NAME"), ("run -o NAME", "run NAME"),
)


def refused_at_once(url, outer, inner):
    outer = outer.replace("SNIB", S)
    done = nested(url, outer, inner)
    equal((done.code, done.out), (64, ""), (outer, inner, done))
    assert "which this is a part of" in done.err and "waiting for" not in done.err, done
    if not inner.startswith("elect"):
        assert "--reentrant" in done.err, done
    once = inner.replace("run", "run -n").replace("elect", "elect -n")
    done = nested(url, outer, once)
    equal((done.code, done.out), (75, ""), (outer, once, done))
    assert "which this is a part of" in done.err and "(exit 75)" in done.err, done
    equal(nested(url, outer, once.replace(" -n", " -n -E 9")).code, 9)
    equal(nested(url, outer, once.replace(" -n", " -n -q")).err, "")
    done = nested(url, outer, inner.replace("run", "run -j").replace("elect", "elect -j"))
    equal((lines(done.err)[-1]["error"], lines(done.err)[-1]["exit"]), ("SNIB_EREENTRY", 64))


ALLOWED = (
    ("run NAME", "run NAME-b"), ("run -s NAME", "run -s NAME"), ("run --permits 1 --of 2 NAME", "run --permits 1 NAME"),
    ("run NAME", "run --reentrant NAME"), ("run NAME -- SNIB run NAME-o", "run --reentrant NAME"),
    ("run -x NAME", "run --reentrant -s NAME"), ("run -x NAME", "run --reentrant -x NAME"),
    ("run -s NAME", "run --reentrant -s NAME"), ("run -k NAME -k NAME-o", "run --reentrant NAME"),
    ("run -k NAME -k NAME-o", "run --reentrant -k NAME-o -k NAME"), ("run NAME-b", "run --reentrant NAME"),
    ("run --permits 2 --of 2 NAME", "run --reentrant --permits 1 NAME"), ("run NAME", "try --reentrant NAME"),
    ("run --fenced NAME", "run --reentrant --fenced NAME"),
)


def allowed(url, outer, inner):
    done = nested(url, outer.replace("SNIB", S), inner)
    equal((done.code, done.out), (0, "ran\n"), (outer, inner, done))


def not_joined(url, outer, inner):
    done = nested(url, outer, inner)
    equal((done.code, done.out), (64, ""), (outer, inner, done))
    assert "which this is a part of" in done.err, done


def another_engine(url):
    other = f"local:{tap.directory}/another-{next(NUMBERS)}"
    for outer, inner in (("run NAME", f"run -u {other} NAME"), ("run -s NAME", f"run -u {other} -x NAME"),
                         ("run --permits 1 --of 1 NAME", f"run -u {other} --permits 1 --of 1 NAME")):
        allowed(url, outer, inner)


def within_a_majority(url):
    reds = " ".join(f"--red local:{tap.directory}/red-{n}" for n in range(3))
    done = nested(url, f"run {reds} NAME", f"run {reds} NAME")
    equal((done.code, done.out), (64, ""), repr(done))
    allowed(url, f"run {reds} NAME", f"run {reds} --reentrant NAME")


def joined_command(url):
    """It finds what the hold is, and its exit code passes."""
    done = run("run", "joined", "--", "sh", "-c", f'echo $SNIB_TOKEN $SNIB_OWNER; exec "{S}" run joined-o -- "{S}" run '
               "--reentrant joined -- sh -c 'echo $SNIB_TOKEN $SNIB_OWNER; echo $SNIB_NAME; exit 5'", env={"SNIB_URL": url})
    equal(done.code, 5, repr(done))
    outer, inner, name = done.out.splitlines()
    equal((inner, name), (outer, "joined"))
    done = run("run", "joined", "--", S, "run", "--reentrant", "joined", "/nonexistent", env={"SNIB_URL": url})
    equal(done.code, 127, repr(done))
    for more in ("--max-hold", "--hold-at-least"):
        equal(run("run", "--reentrant", more, "1s", "joined", "true", env={"SNIB_URL": url}).code, 64)


def joined_command_ends_with_the_hold(url, how):
    beats, name = Beats(tap.directory), f"ends-{how}"
    outer = start("run", "-u", url, "--lease", "2s", "--grace", "100ms", name, "--", S, "run", "-u", url, "--reentrant", name,
                  "--", *beats.command(0, "ignores_term", 60000))
    beats.wait_first(0)
    if how == "killed":
        outer.kill()
    else:
        equal(run("force-release", "-u", url, "-y", name).code, 0)
    if how == "killed":
        equal(run("run", "-u", url, name, "--", *beats.command(1, "exits_0", 50)).code, 0)
        assert beats.last(0) < beats.first(1), "beside the next holder"
    done = finish(outer)
    equal(done.code, -9 if how == "killed" else 120, repr(done))
    last = beats.last(0)
    time.sleep(0.05)  # it beats every few milliseconds while it lives
    equal(beats.last(0), last, "it is gone")


def held_by_the_script(url):
    """Taken by snib acquire, and wanted by the same script."""
    name = f"script-{next(NUMBERS)}"
    script = (f'g=$("$S" acquire {name}) || exit 50; eval "$g"\n'
              f'"$S" run {name} -- echo ran; test $? = 64 || exit 51\n'
              f'"$S" run -n {name} -- echo ran; test $? = 75 || exit 52\n'
              f'"$S" run --reentrant {name} -- echo ran; test $? = 64 || exit 53\n'
              f'g=$("$S" acquire {name}); test $? = 64 || exit 54\n'
              f'sh -c \'"$S" run {name} -- echo ran\'; test $? = 64 || exit 55\n'
              f'"$S" release || exit 56\n'
              f'"$S" run {name} -- true || exit 57\n')
    done = subprocess.run(["sh", "-c", script], env=environment(SNIB_URL=url, S=S), capture_output=True, text=True, timeout=60,
                          preexec_fn=die_with_parent, check=False)
    equal((done.returncode, done.stdout), (0, ""), done)
    assert "snib release" in done.stderr, done


def an_environment_elsewhere(url):
    """What is not below the hold waits for it, whatever its environment says."""
    name = f"elsewhere-{next(NUMBERS)}"
    outer = start("run", "-u", url, name, "--", "sh", "-c", "echo $SNIB_HELD; read x || :", stdin=subprocess.PIPE)
    list_of_holds = outer.stdout.readline().decode().strip()
    assert list_of_holds.endswith(name), list_of_holds
    done = run("run", "-w", "200ms", "-u", url, name, "--", "true", env={"SNIB_HELD": list_of_holds})
    equal(done.code, 75, repr(done))
    assert "which this is a part of" not in done.err, done
    waiter = start("run", "--reentrant", "-u", url, name, "--", "echo", "ran", env={"SNIB_HELD": list_of_holds})
    waiter.stderr.readline()
    outer.stdin.close()
    outer.stdin = None
    equal(finish(outer).code, 0)
    equal(finish(waiter).out, "ran\n")


def a_hold_that_is_over(url):
    """The hold above was taken away and another has the name: it is waited for as always."""
    name = f"over-{next(NUMBERS)}"
    script = (f'g=$("$S" acquire {name}) || exit 50; eval "$g"; echo; read x\n'
              f'"$S" run -w 200ms {name} -- echo ran; test $? = 75 || exit 51\n')
    process = subprocess.Popen(["sh", "-c", script], env=environment(SNIB_URL=url, S=S), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
    process.stdout.readline()
    equal(run("force-release", "-u", url, "-y", name).code, 0)
    other = start("run", "-u", url, name, "--", "sleep", "1000")
    until(lambda: lines(run("show", "-u", url, "-j", name).out)[0].get("label") == "sleep", "another has it")
    process.stdin.close()
    process.stdin = None
    done = finish(process)
    equal((done.code, done.out), (0, ""), repr(done))
    other.send_signal(signal.SIGTERM)
    finish(other)


def start_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[19]


def a_list_that_is_not_ours():
    """It comes from outside: nonsense is passed over, and nothing of it reaches a shell."""
    here = f"r,-,{os.getpid()},{start_of(os.getpid())},0,1,1"
    evil = "';touch${IFS}pwned;'"
    for text in ("x", ",,,,,,,,", " ", "r,-,1", here, here + ",", here + ",%,%", here + ",a,%zz", here + ",a," + "b" * 5000,
                 (here + ",a,b ") * 500, f"{here},{evil},{evil}", f"',-,{os.getpid()},{start_of(os.getpid())},0,1,1,a,b",
                 "r,',1,1,1,1,1,a,b", "\x01\xff" * 100, here + ",a,b" + "%41" * 1001):
        env = {"SNIB_HELD": text, "SNIB_URL": tap.local()}
        done = run("run", "b", "--", "echo", "ran", env=env)
        equal((done.code, done.out), (0, "ran\n"), (text, done))
        name = f"outside-{next(NUMBERS)}"
        done = subprocess.run(["sh", "-c", f'eval "$("$S" acquire {name})" && "$S" release'], cwd=tap.directory,
                              env=environment(S=S, **env), capture_output=True, timeout=60, check=False)
        equal(done.returncode, 0, (text, done))
        assert not os.path.exists(tap.directory + "/pwned"), text


for engine, engine_url in tap.engines():
    skip = None if engine_url else tap.skip_without_redis()
    for pair in REFUSED:
        tap.add(f"refused: {' / '.join(pair)} {engine}", refused_at_once, engine_url, *pair, skip=skip)
    for pair in ALLOWED:
        tap.add(f"allowed: {' / '.join(pair)} {engine}", allowed, engine_url, *pair, skip=skip)
    for pair in (("run -o NAME", "run --reentrant NAME"), ("run -s NAME", "run --reentrant -x NAME"),
                 ("run -k NAME", "run --reentrant -k NAME-o -k NAME")):
        tap.add(f"not joined: {' / '.join(pair)} {engine}", not_joined, engine_url, *pair, skip=skip)
    for case in (another_engine, within_a_majority, joined_command, held_by_the_script, an_environment_elsewhere, a_hold_that_is_over):
        tap.add(f"{case.__name__} {engine}", case, engine_url, skip=skip)
    for way in ("killed", "taken away"):
        tap.add(f"joined_command_ends_with_the_hold, {way} {engine}", joined_command_ends_with_the_hold, engine_url, way, skip=skip)
tap.add("a_list_that_is_not_ours", a_list_that_is_not_ours)
tap.main()
