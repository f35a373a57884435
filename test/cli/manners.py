# SPDX-License-Identifier: Apache-2.0
"""How the command answers: why it says no, what its exit code says, what it takes for what was
meant, and that a shell completes it."""

import os
import re
import shutil
import subprocess

from kit import SNIB, Tap, environment, equal, finish, lines, rest_of_terminal, run, start, start_on_terminal, until

tap = Tap()
LOCAL = tap.local()
TRUE = ["--", "true"]


def code(done, want):
    equal(done.code, want, repr(done))
    return done


def hold(url, name, *more):
    holder = start("run", "-u", url, "--label", "the-holder", *more, name, "--", "sh", "-c", "echo; exec sleep 60")
    equal(holder.stdout.readline(), b"\n")
    return holder


def let_go(*holders):
    for holder in holders:
        holder.terminate()
        finish(holder)


# ---- no, and why ----

def no(url, arguments, want, *texts):
    """One sentence on stderr with the name and the code, the same as an object, nothing with -q."""
    noun, *rest = arguments
    done = code(run(noun, "-u", url, *rest), 75)
    equal(done.err.count("\n"), 1, repr(done))
    assert "(exit 75)" in done.err, done
    for text in texts:
        assert text in done.err, (text, done)
    objects = lines(code(run(noun, "-j", "-u", url, *rest), 75).err)
    equal(len(objects), 1, objects)
    for key, value in {"exit": 75, **want}.items():
        equal(objects[0].get(key), value, objects)
    untimed = lambda text: re.sub(r"\d[\d.]*(ms|s)\b", "", text)
    assert untimed(objects[0]["message"]) in untimed(done.err), (objects, done)
    done = code(run(noun, "-q", "-u", url, *rest), 75)
    equal(done.err, "", "-q")


def every_75_says_why(url):
    holder = hold(url, "w-held")
    no(url, ["run", "-n", "w-held", *TRUE], {"event": "busy", "pid": holder.pid, "name": "w-held"}, "w-held", "the-holder")
    no(url, ["run", "-w", "200ms", "w-held", *TRUE], {"event": "gave_up", "pid": holder.pid}, "gave up on w-held", "the-holder")
    let_go(holder)
    code(run("sem", "-u", url, "set", "w-sem", "1"), 0)
    no(url, ["sem", "set", "w-sem", "3"], {"event": "not_done", "name": "w-sem", "free": 1}, "w-sem exists already, with 1 free")
    no(url, ["sem", "acquire", "-n", "w-sem", "2"], {"event": "busy", "free": 1}, "w-sem has 1 free, and 2 are wanted")
    no(url, ["sem", "acquire", "-w", "200ms", "w-sem", "2"], {"event": "gave_up", "free": 1}, "2 are wanted", "gave up after 200ms")
    no(url, ["sem", "acquire", "-n", "w-none"], {"event": "busy"}, "w-none does not exist", "snib sem set")
    no(url, ["sem", "release", "--if-exists", "w-none"], {"event": "not_done"}, "w-none does not exist")
    no(url, ["sem", "delete", "w-none"], {"event": "not_done"}, "w-none does not exist")
    code(run("sem", "-u", url, "-x", "set", "w-permits", "2"), 0)
    no(url, ["sem", "-x", "set", "w-permits", "3"], {"limit": 2}, "w-permits exists already, with 2 permits", "resize")
    no(url, ["sem", "-x", "release", "w-permits", "0" * 32], {"event": "not_done"}, "w-permits has no such permit out")
    no(url, ["sem", "-x", "renew", "w-permits", "0" * 32], {"event": "not_done"}, "w-permits has no such permit out")
    no(url, ["sem", "-x", "force", "w-permits"], {"event": "not_done"}, "w-permits has no permit out")
    no(url, ["latch", "down", "w-latch"], {"count": 0}, "w-latch is open")
    no(url, ["latch", "delete", "w-latch"], {"count": 0}, "w-latch is open")
    no(url, ["latch", "wait", "-n", "--set-first", "w-latch"], {"event": "busy"}, "w-latch was not set by anybody")
    code(run("latch", "-u", url, "set", "w-latch", "2"), 0)
    no(url, ["latch", "set", "w-latch", "5"], {"event": "not_done", "count": 2}, "w-latch has a count already, 2")
    no(url, ["latch", "wait", "-n", "w-latch"], {"event": "busy", "count": 2}, "w-latch is not open", "count is 2")
    no(url, ["latch", "wait", "-w", "200ms", "w-latch"], {"event": "gave_up", "count": 2}, "count is 2", "gave up after 200ms")
    no(url, ["register", "get", "w-reg"], {"version": 0}, "w-reg has no value")
    no(url, ["register", "set", "-v", "7", "w-reg", "x"], {"version": 0}, "w-reg has no value, so not version 7")
    no(url, ["register", "delete", "w-reg"], {"version": 0}, "w-reg has no value")
    no(url, ["register", "wait", "-n", "w-reg"], {"event": "busy", "version": 0}, "w-reg has no value yet")
    version = int(code(run("register", "-u", url, "set", "w-reg", "x"), 0).out)
    no(url, ["register", "set", "-v", "0", "w-reg", "y"], {"version": version}, f"w-reg has a value already, version {version}")
    no(url, ["register", "set", "-v", "7", "w-reg", "y"], {"version": version}, f"has version {version} by now, not 7")
    no(url, ["register", "delete", "-v", "7", "w-reg"], {"version": version}, f"has version {version} by now, not 7")
    no(url, ["register", "wait", "-w", "200ms", "w-reg"], {"event": "gave_up"}, f"version {version} still", "gave up after 200ms")
    no(url, ["elect", "--depose", "w-elect"], {"event": "not_done"}, "nobody leads w-elect")
    leader = start("elect", "-u", url, "--label", "the-leader", "w-elect", "--", "sleep", "60")
    until(lambda: run("elect", "-u", url, "--leader", "w-elect").code == 0, "it leads")
    no(url, ["elect", "-n", "w-elect", *TRUE], {"event": "busy"}, "w-elect", "the-leader")
    let_go(leader)
    equal(code(run("sem", "-u", url, "-E", "9", "delete", "w-none"), 9).err, "snib: w-none does not exist (exit 9)\n")


# ---- a question is answered by the exit code ----

def show_answers_by_its_exit_code(url):
    code(run("show", "-u", url, "asked"), 1)
    equal(lines(code(run("show", "-j", "-u", url, "asked"), 1).out)[0]["held"], False)
    holder = hold(url, "asked")
    code(run("show", "-u", url, "asked"), 0)
    equal(code(run("show", "-q", "-u", url, "asked"), 0).out, "")
    let_go(holder)
    code(run("show", "-u", url, "asked"), 1)
    equal(code(run("sem", "-u", url, "show", "asked-sem"), 1).err, "snib: asked-sem does not exist (exit 1)\n")
    code(run("sem", "-u", url, "-x", "show", "asked-permits"), 1)
    code(run("sem", "-u", url, "set", "asked-sem", "0"), 0)
    code(run("sem", "-u", url, "show", "asked-sem"), 0)
    code(run("show", "-u", url, "asked-sem"), 0)
    equal(code(run("latch", "-u", url, "show", "asked-latch"), 1).out, "0\n")
    code(run("latch", "-u", url, "set", "asked-latch", "1"), 0)
    equal(code(run("latch", "-u", url, "show", "asked-latch"), 0).out, "1\n")
    code(run("ls", "-u", url, "no-such-*"), 0)


def a_plain_lock_beside_s_names_x(url):
    """What stands there is another kind of thing: a code of its own, and what to type."""
    reader = hold(url, "kinds", "-s")
    for arguments in (["run", "-n"], ["run", "-w", "5"], ["try"]):
        done = code(run(*arguments, "-u", url, "kinds", *TRUE), 65)
        equal(done.err.count("\n"), 1, repr(done))
        assert "kinds is in use" in done.err and "read lock" in done.err and "-x" in done.err, done
    error = lines(run("run", "-nj", "-u", url, "kinds", *TRUE).err)[-1]
    equal((error["event"], error["error"], error["exit"]), ("error", "SNIB_EKIND", 65))
    let_go(reader)
    plain = hold(url, "kinds")
    done = code(run("run", "-n", "-s", "-u", url, "kinds", *TRUE), 65)
    assert "a lock" in done.err and "-s" in done.err, done
    code(run("sem", "-u", url, "set", "kinds", "1"), 65)
    let_go(plain)


# ---- ls ----

def ls_by_pattern(url):
    holders = [hold(url, name) for name in ("ls/a1", "ls/a2", "ls/b1", "ls/[x]")]
    names = lambda *args: code(run("ls", "-u", url, "--names", *args), 0).out.splitlines()
    equal(names("ls/a*"), ["ls/a1", "ls/a2"])
    equal(names("ls/?1"), ["ls/a1", "ls/b1"])
    equal(names("ls/[ab]1"), ["ls/a1", "ls/b1"])
    equal(names("ls/\\[*"), ["ls/[x]"])
    equal(names("*2"), ["ls/a2"])
    equal(names("ls/b1"), ["ls/b1"])
    equal(names("ls/nothing*"), [])
    assert set(names()) >= {"ls/a1", "ls/b1"}, names()
    equal([o["name"] for o in lines(run("ls", "-ju", url, "ls/b*").out)], ["ls/b1"])
    table = run("ls", "-u", url, "ls/b*").out
    assert "ls/b1" in table and "ls/a1" not in table and "?" not in table, table
    code(run("ls", "-u", url, "a", "b"), 64)
    let_go(*holders)


# ---- what was meant ----

def did_you_mean():
    for arguments, want in ((["relase"], "release"), (["list"], None), (["accquire", "x"], "acquire"), (["show-x"], "show"),
                            (["run", "--wiat", "1", "a", *TRUE], "--wait"), (["run", "--qiuet", "a"], "--quiet"),
                            (["sem", "aquire", "a"], "acquire"), (["latch", "dwon", "a"], "down"), (["help", "registr"], "register"),
                            (["register", "git", "a"], "get"), (["frobnicate"], None), (["run", "--frobnicate", "a"], None)):
        done = code(run(*arguments), 64)
        equal(done.err.count("\n"), 1, repr(done))
        assert (f"did you mean {want}?" in done.err) if want else ("did you mean" not in done.err), (want, done)
    done = code(run("run", "--f", "a"), 64)
    assert "--fair" in done.err and "--fenced" in done.err and "short for more" in done.err, done
    done = code(run("run", "--json=1", "a"), 64)
    assert "takes no argument" in done.err, done


def durations_on_the_command_line():
    holder = hold(LOCAL, "durations")
    for text in ("0.5", "500ms", "0m500ms", ".5"):
        code(run("run", "-u", LOCAL, "-w", text, "durations", *TRUE), 75)
    done = run("run", "-u", LOCAL, "-w", "0.0001", "durations", *TRUE)
    assert done.code in (75, 122), done  # on a machine that stalls the answer comes after the limit
    let_go(holder)
    for text in ("1h30m", "1d2h3m4s5ms", "36500d", "90min"):
        code(run("run", "-u", LOCAL, "-w", text, "durations", *TRUE), 0)
    for text in ("36501d", "9" * 30, "9" * 30 + "h1m", "1h" + "9" * 30 + "m"):
        done = code(run("run", "-u", LOCAL, "-w", text, "durations", *TRUE), 64)
        assert "too long" in done.err and "36500d" in done.err, done
    for text in ("1h30", "30m1h", "soon", "1.5h30m", "-1", "1e3"):
        done = code(run("run", "-u", LOCAL, "-w", text, "durations", *TRUE), 64)
        assert "not a duration" in done.err, done


def options_in_front_of_the_command():
    holder = hold(LOCAL, "front")
    for front in (["-j", "-u", LOCAL], ["--json", "--url", LOCAL], ["-ju", LOCAL], ["--url=" + LOCAL, "-j"], ["-j", "--engine", LOCAL]):
        equal(lines(code(run(*front, "show", "front"), 0).out)[0]["name"], "front")
        equal(lines(code(run(*front, "run", "-n", "front", *TRUE), 75).err)[0]["event"], "busy")
    equal(code(run("-q", "-u", LOCAL, "run", "-n", "front", *TRUE), 75).err, "")
    equal(lines(run("-j", "-V").out)[0]["schema"], 1)
    code(run("-v", "register", "-u", LOCAL, "get", "front"), 64)  # register's -v is another option
    code(run("-j"), 64)
    code(run("-j", "-u"), 64)
    code(run("-j", "frobnicate"), 64)
    code(run("--bogus", "ls"), 64)
    let_go(holder)


def spinner(env):
    """What is painted on a terminal while a lock is waited for."""
    holder = hold(LOCAL, "spin" + "".join(env.values()))
    plain = {"LANG": None, "LC_ALL": None, "LC_CTYPE": None, "TERM": "vt100", **env}
    process, master = start_on_terminal("run", "-u", LOCAL, "-w", "1s", "spin" + "".join(env.values()), "--", "true",
                                        env={k: v for k, v in {**environment(), **plain}.items() if v is not None})
    shown = rest_of_terminal(master)
    process.wait()
    let_go(holder)
    return shown


def an_ascii_spinner_without_utf8():
    for env in ({}, {"LC_ALL": "C"}, {"LANG": "POSIX"}, {"LANG": "de_DE.ISO-8859-1"}):
        spinner(env).decode("ascii")
    assert "·" in spinner({"LC_ALL": "C.UTF-8"}).decode()
    assert "·" in spinner({"LANG": "xx_XX.UTF-8"}).decode(), "a locale that is not installed names its encoding all the same"


def engines_say_all_that_the_library_says():
    rows = lines(run("engines", "-j").out)
    equal(len({frozenset(r) for r in rows}), 1, "every engine has every field")
    texts = run("engines").out
    for word in ("queue of waiters", "not overtaken by readers", "register", "count-down latch"):
        assert word in texts, (word, texts)
    by_name = {r["engine"]: r for r in rows}
    assert by_name["local"]["writer_in_turn"] and not by_name["redis"]["writer_in_turn"], rows
    assert by_name["redis"]["lock_queue"] and not by_name["redis"]["queue"], rows


HELP = subprocess.run([SNIB, "help"], stdout=subprocess.PIPE, check=True, text=True).stdout
COMMANDS = [line.split()[0] for line in HELP.splitlines() if line.startswith("  ") and not line.startswith("  snib")]


def help_tells_the_exit_codes():
    for command in COMMANDS:
        if command not in ("engines", "demo", "version", "help"):
            assert "exit" in code(run(command, "-h"), 0).out, command


# ---- completion ----

BASH = shutil.which("bash")


def bash(line, url, words=None, env=None):
    """What Tab offers at the end of `line`, as bash would ask: with the words parted at : and =."""
    script = run("completion", "bash").out + r"""
COMP_LINE=$1 COMP_POINT=${#1}
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_snib
printf '%s\n' "${COMPREPLY[@]}"
"""
    if words is None:
        words = line.split()
        if line.endswith(" "):
            words.append("")
    place = os.path.dirname(SNIB)
    done = subprocess.run([BASH, "--norc", "-c", script, "bash", line, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=environment(SNIB_URL=url, PATH=place + ":" + os.environ["PATH"], **(env or {})), text=True)
    equal(done.stderr, "", line)
    return done.stdout.split()


def bash_completes_from_the_tables():
    equal(set(COMMANDS), set(bash("snib ", LOCAL)), "every command")
    equal(bash("snib rel", LOCAL), ["release"])
    equal(bash("snib latch ", LOCAL), ["set", "down", "wait", "show", "delete"])
    equal(set(bash("snib sem re", LOCAL)), {"release", "remove", "resize", "renew"})
    equal(bash("snib completion ", LOCAL), ["bash", "zsh", "fish"])
    equal(bash("snib run --progress ", LOCAL), ["auto", "always", "never"])
    equal(bash("snib run --kill-signal T", LOCAL), ["TERM"])
    equal(bash("snib run -w 10 x tru", LOCAL), bash("snib run -w 10 x -- tru", LOCAL))
    assert "true" in bash("snib run x tru", LOCAL)
    equal(bash("snib run --label ", LOCAL), [])
    for command in COMMANDS:
        listed = [w.split("=")[0] for w in run(command, "-h").out.split() if w.startswith("--") and w[2:3].isalpha()]
        offered = bash(f"snib {command} --", LOCAL)
        wanted = {w.strip(".,;)") for w in listed}
        table = {w for w in wanted if f"  {w}" in run(command, "-h").out or f", {w}" in run(command, "-h").out}
        assert table <= set(offered), (command, table - set(offered))


def bash_completes_names(url):
    place = url if not url.startswith("local:") else LOCAL + "-names"
    holders = [hold(place, name) for name in ("tab-one", "tab:two", "tab three")]
    names = {"tab-one", "tab:two"}
    assert names <= set(bash("snib show ", place)), bash("snib show ", place)
    equal(bash("snib show tab-", place), ["tab-one"])
    equal(bash("snib force-release -y tab-", place), ["tab-one"])
    equal(bash("snib latch show tab-", place), ["tab-one"])
    equal(bash("snib run -k tab-", place), ["tab-one"])
    equal(bash("snib show tab:t", place, ["snib", "show", "tab", ":", "t"]), ["two"])
    parted = ["snib", "show", "-u", *[w for part in place.split(":") for w in (part, ":")][:-1], "tab-"]
    equal(bash(f"snib show -u {place} tab-", "local:/nonexistent-of-tests", parted), ["tab-one"])
    equal(bash("snib show tab\\", place), [])
    let_go(*holders)


def completion_is_silent_and_quick_on_failure():
    equal(bash("snib show ", "redis+unix:///nonexistent/s"), [])
    equal(bash("snib show ", "carrier-pigeon://home"), [])
    code(run("completion"), 64)
    code(run("completion", "tcsh"), 64)


def shell_reads(shell, *check):
    script = code(run("completion", shell), 0).out
    path = os.path.join(tap.directory, "completion." + shell)
    with open(path, "w", encoding="ascii") as f:
        f.write(script)
    done = subprocess.run([shell, *check, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    equal((done.returncode, done.stderr), (0, b""))
    for command in COMMANDS:
        assert command in script, command


EACH = (every_75_says_why, show_answers_by_its_exit_code, a_plain_lock_beside_s_names_x, ls_by_pattern)
for engine, engine_url in tap.engines():
    for test in EACH:
        tap.add(f"{test.__name__} {engine}", test, engine_url, skip=None if engine_url else tap.skip_without_redis())
    tap.add(f"bash_completes_names {engine}", bash_completes_names, engine_url,
            skip=tap.skip_without_redis() if not engine_url else None if BASH else "no bash is installed")
for test in (did_you_mean, durations_on_the_command_line, options_in_front_of_the_command, an_ascii_spinner_without_utf8,
             engines_say_all_that_the_library_says, help_tells_the_exit_codes):
    tap.add(test.__name__, test)
for test in (bash_completes_from_the_tables, completion_is_silent_and_quick_on_failure):
    tap.add(test.__name__, test, skip=None if BASH else "no bash is installed")
for name, check in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
    tap.add(f"the completion of {name} is read by it", shell_reads, name, check, skip=None if shutil.which(name) else f"no {name} is installed")
tap.main(workers=4)
