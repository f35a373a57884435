# SPDX-License-Identifier: Apache-2.0
"""Every exit code, and what is printed: text, JSON, the waiting line."""

import os
import signal
import socket
import subprocess
import threading

from kit import (SNIB, Beats, Redis, Tap, boot_ns, die_with_parent, environment, equal, finish, lines, rest_of_terminal,
                 run, start, start_on_terminal, stop, until)

tap = Tap()
MS = 1000000


def hold(url, name, *more):
    holder = start("run", "-u", url, "--label", "the-holder", *more, name, "--", "sh", "-c", "echo; exec sleep 60")
    equal(holder.stdout.readline(), b"\n")
    return holder


def let_go(holder):
    holder.send_signal(signal.SIGTERM)
    equal(finish(holder).code, 143)


def codes_of_the_command(url):
    for arguments, code in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["--", "sh", "-c", "exit 120"], 120),
                            (["sh", "-c", "kill -9 $$"], 137), (["/nonexistent"], 127), (["no-such-command"], 127),
                            (["/etc/passwd"], 126), (["/"], 126)):
        done = run("run", "-u", url, "codes", *arguments)
        equal(done.code, code, f"{arguments}: {done!r}")
    for arguments in (["-c", "exit 5", "codes"], ["codes", "-c", "exit 5"]):
        equal(run("run", "-u", url, *arguments).code, 5, arguments)
    assert "cannot run /nonexistent" in run("run", "-u", url, "codes", "/nonexistent").err


def busy(url):
    holder = hold(url, "busy")
    for arguments, code in ((["run", "-n"], 75), (["run", "-n", "-E", "9"], 9), (["run", "-n", "-E", "0"], 0), (["try"], 75),
                            (["try", "-E", "1"], 1), (["run", "-w", "0"], 75), (["run", "-w", "200ms"], 75)):
        done = run(*arguments, "-u", url, "busy", "--", "echo", "ran")
        equal((done.code, done.out), (code, ""), f"{arguments}: {done!r}")
        assert "the-holder" in done.err and f"(exit {code})" in done.err and done.err.count("\n") == 1, done
        equal(run(*arguments, "-q", "-u", url, "busy", "--", "echo", "ran").err, "", "quiet")
    let_go(holder)
    equal(run("try", "-u", url, "busy", "--", "sh", "-c", "exit 3").code, 3)


def interrupted_while_waiting(url):
    holder = hold(url, "interrupted")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        waiter = start("run", "-u", url, "interrupted", "--", "echo", "ran")
        waiter.stderr.readline()
        waiter.send_signal(number)
        done = finish(waiter)
        equal((done.code, done.out), (128 + number, ""), repr(done))
    equal(lines(run("show", "-u", url, "--json", "interrupted").out)[0].get("waiters", 0), 0, "no stray waiter")
    let_go(holder)


def lost_after(url):
    """121: taken away while snib is stopped; the command ends by itself before anybody can stop
    it."""
    beats = Beats(tap.directory)
    wrapper = start("run", "-u", url, "--lease", "8s", "--json", "after", "--", *beats.command(0, "exits_7", 400))
    beats.wait_first(0)
    stop(url, wrapper)
    equal(run("force-release", "-u", url, "-y", "after").code, 0)
    until(lambda: boot_ns() - beats.last(0) > 150 * MS, "the end of the command")
    wrapper.send_signal(signal.SIGCONT)
    done = finish(wrapper)
    equal(done.code, 121, repr(done))
    equal(lines(done.err)[-1]["exit"], 121)


def max_hold(url):
    beats = Beats(tap.directory)
    for kind, signals in (("exits_0", ()), ("ignores_term", ("--grace", "200ms")), ("exits_0", ("--kill-signal", "INT"))):
        done = run("run", "-u", url, "--max-hold", "300ms", *signals, "max", "--", *beats.command(0, kind, 20000))
        equal(done.code, 124, repr(done))
        assert "--max-hold" in done.err, done
    done = run("run", "-u", url, "--max-hold", "5s", "max", "--", "sh", "-c", "exit 3")
    equal(done.code, 3, "not reached")


def fixed_lease(url):
    beats = Beats(tap.directory)
    done = run("run", "-u", url, "--fixed-lease", "--lease", "3s", "fixed", "--", *beats.command(0, "exits_0", 20000))
    equal(done.code, 120, repr(done))
    assert beats.last(0) - beats.first(0) < 3000 * MS, "it outlived the lease"


class Swallow(threading.Thread):
    """Between snib and the server: lets everything pass until the script that acquires is sent,
    whose answer it keeps."""

    def __init__(self, server, directory):
        super().__init__(daemon=True)
        self.path = os.path.join(directory, "swallow")
        self.server = server
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            mute = threading.Event()
            threading.Thread(target=self.pump, args=(client, server, mute, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, mute, True), daemon=True).start()

    @staticmethod
    def pump(source, sink, mute, answers):
        try:
            while data := source.recv(65536):
                if not answers and b"EVAL" in data.upper():
                    mute.set()
                if not (answers and mute.is_set()):
                    sink.sendall(data)
        except OSError:
            pass


def outcome_unknown():
    proxy = Swallow(tap.redis_server.socket, tap.directory)
    done = run("run", "-n", "-u", f"redis+unix://{proxy.path}?timeout=300ms", "unknown", "--", "echo", "ran")
    equal((done.code, done.out), (122, ""), repr(done))


def refused_user():
    server = Redis(tap.directory, "--requirepass", "s3cret-pw")
    try:
        equal(run("run", "-u", server.url, "auth", "--", "true").code, 77, "no password")
        with_password = server.url.replace("//", "//:wrong-pw@", 1)
        done = run("run", "-u", with_password, "auth", "--", "true")
        equal(done.code, 77, "wrong password")
        assert "wrong-pw" not in done.err, done
        right = server.url.replace("//", "//:s3cret-pw@", 1)
        done = run("run", "-v", "-u", right, "auth", "--", "sh", "-c", "env | grep SNIB")
        equal(done.code, 0, repr(done))
        assert "s3cret" not in done.out + done.err and f"SNIB_URL={server.url}" in done.out, done
        inherited = run("run", "auth", "--", "sh", "-c", "echo $SNIB_URL", env={"SNIB_URL": right})
        equal(inherited.out, right + "\n", "left as it was inherited")
        for arguments in (["ls"], ["show", "auth"], ["ls", "--json"], ["run", "--json", "-n", "auth", "--", "true"]):
            done = run(*arguments, env={"SNIB_URL": server.url.replace("//", "//:wrong-pw@", 1)})
            equal(done.code, 77, repr(done))
            assert "wrong-pw" not in done.out + done.err, done
    finally:
        server.end()


def unreachable():
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]  # bound and not listening: refused
    for where in (f"redis://127.0.0.1:{port}", "redis+unix:///nonexistent/s"):
        for command in (["run", "x", "--", "true"], ["ls"], ["show", "x"], ["force-release", "-y", "x"], ["acquire", "x"]):
            done = run(command[0], "-u", where, *command[1:])
            equal(done.code, 69, f"{command}: {done!r}")
            equal(done.err.count("\n"), 1, "one line")
    probe.close()


def no_answer():
    """Accepts and says nothing."""
    path = os.path.join(tap.directory, "mute")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(4)
    done = run("run", "-u", f"redis+unix://{path}?timeout=300ms", "x", "--", "true")
    equal(done.code, 69, repr(done))


def json_everywhere(url):
    holder = hold(url, 'a "quoted"\n\x01 ü name')
    rows = [r for r in lines(run("ls", "-u", url, "--json").out) if r["name"] == 'a "quoted"\n\x01 ü name']
    equal(len(rows), 1)
    row = rows[0]
    assert row["held"] and row["label"] == "the-holder" and row["pid"] == holder.pid, row
    assert 0 < row["lease_left_ms"] <= 30000, row
    if url.startswith("local:"):  # Redisson's plain lock keeps neither
        assert row["since_ms"] > 1700000000000 and row["token"] > 0, row
    shown = lines(run("show", "-u", url, "--json", 'a "quoted"\n\x01 ü name').out)[0]
    equal((shown.get("token"), shown["pid"]), (row.get("token"), row["pid"]))
    plain = run("ls", "-u", url).out + run("show", "-u", url, 'a "quoted"\n\x01 ü name').out
    assert "\\x0a\\x01 ü name" in plain and "\x01" not in plain, plain
    done = run("run", "-n", "-u", url, "--json", 'a "quoted"\n\x01 ü name', "--", "true")
    event = lines(done.err)[-1]
    equal((done.code, event["event"], event["pid"]), (75, "busy", holder.pid))
    waiter = start("run", "-u", url, "-w", "600ms", "--json", 'a "quoted"\n\x01 ü name', "--", "true")
    events = [e["event"] for e in lines(finish(waiter).err)]
    equal(events, ["waiting", "gave_up"])
    let_go(holder)
    done = run("run", "--json", "-u", "redis+unix:///nonexistent/s", "x", "--", "true")
    error = lines(done.err)[0]
    equal((error["event"], error["error"], error["exit"]), ("error", "SNIB_EUNREACHABLE", 69))
    error = lines(run("run", "--bogus", "--json").err)[0]
    equal((error["event"], error["exit"]), ("error", 64))


def json_of_bytes(url):
    name = b"bin-\xff\xfe\xc3("
    holder = subprocess.Popen([os.fsencode(SNIB), b"run", b"-u", url.encode(), name, b"--", b"sh", b"-c", b"echo; sleep 60"],
                              env=environment(), stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    holder.stdout.readline()
    raw = run("ls", "-u", url, "--json")
    raw.out.encode("utf-8", "strict")
    row = [r for r in lines(raw.out) if r.get("name_hex") == name.hex()]
    equal(len(row), 1, raw)
    assert "bin-\\xff\\xfe\\xc3(" in run("ls", "-u", url).out
    holder.terminate()
    holder.communicate()


def engines_and_version():
    rows = {r["engine"]: r for r in lines(run("engines", "--json").out)}
    assert {"local", "redis", "mem"} <= set(rows), rows
    assert rows["local"]["death_notice"] and rows["redis"]["cross_machine"] and not rows["mem"]["cross_process"], rows
    text = run("engines").out
    for word in ("exclusion", "on crash", "on pause", "on partition", "on failover"):
        equal(text.count(word), len(rows), word)
    version = lines(run("version", "--json").out)[0]
    assert run("version").out.startswith(f"snib {version['version']} "), version
    equal(run("--version").out, run("version").out)


def force_release(url):
    equal(run("force-release", "-u", url, "-y", "forced").code, 0, "nobody held it")
    holder = hold(url, "forced")
    done = run("force-release", "-u", url, "forced")
    equal(done.code, 64, "nobody to ask")
    assert "--yes" in done.err, done
    equal(lines(run("force-release", "-u", url, "-y", "--json", "forced").out)[0]["released"], True)
    equal(finish(holder).code, 120, "the holder learns of it")
    equal(run("run", "-n", "-u", url, "forced", "--", "true").code, 0)


def on_terminal(*args, until_text, env=None):
    """snib with a terminal for stderr alone; answers all that was shown."""
    process, master = start_on_terminal(*args, env=environment(**{"TERM": "vt100", **(env or {})}))
    shown = b""
    while until_text not in shown:
        shown += os.read(master, 4096)
    yield shown
    process.wait()
    yield shown + rest_of_terminal(master)


def waiting_line(url):
    holder = hold(url, "line")
    for env in ({}, {"NO_COLOR": "1"}, {"LC_ALL": "de_DE.ISO-8859-1"}):
        steps = on_terminal("run", "-u", url, "-w", "1s", "line", "--", "true", until_text=b"the-holder", env=env)
        text = next(steps)
        whole = next(steps)
        assert b"\r\x1b[K" in text and b"(pid %d)" % holder.pid in text and b"waiting for" in text, text
        assert (b"\x1b[1m" in text) == (not env.get("NO_COLOR")), text
        if "LC_ALL" in env:
            whole.decode("ascii")
        else:
            assert "·" in text.decode(), text
        assert b"gave up on line after 1.0s; holder the-holder" in whole and b"unchanged (exit 75)" in whole, whole
    steps = on_terminal("run", "-u", url, "line", "--", "true", until_text=b"the-holder")
    next(steps)
    let_go(holder)
    whole = next(steps)
    assert "✓ got line after ".encode() in whole and b"(token " in whole, whole
    assert whole.rindex(b"\r\x1b[K") < whole.rindex("✓".encode()), "the line is removed first"


def waiting_without_a_terminal(url):
    holder = hold(url, "plain")
    first = start("run", "-u", url, "-w", "1500ms", "plain", "--", "true")
    text = first.stderr.readline().decode()
    assert text.startswith("snib: waiting for plain, held ") and "by the-holder (pid" in text, text
    equal(" since " in text, url.startswith("local:"), text)
    assert "\x1b" not in text, text
    assert text.endswith(", 0 ahead\n" if url.startswith("local:") else ", at least 1 waiting\n"), text
    equal(finish(first).err.count("\n"), 1, "and one line on giving up")
    silent = run("run", "-u", url, "-w", "600ms", "--progress=never", "plain", "--", "true")
    equal(silent.err.count("\n"), 1, "only the giving up")
    shown = run("run", "-u", url, "-w", "600ms", "--progress=always", "plain", "--", "true")
    assert "waiting for plain" in shown.err and "\x1b" not in shown.err, shown
    let_go(holder)


def help_matches(command):
    done = run(command, "-h")
    equal((done.code, done.err), (0, ""))
    assert done.out.startswith(f"usage: snib {command} "), done
    equal(run("help", command).out, done.out)
    for word in done.out.split():  # every option that is listed is known
        if word.startswith("--") and len(word) > 2 and word[2].isalpha():
            name = word.split("=")[0].strip(".,;)")
            err = run(command, name).err
            assert "is not known" not in err, (name, err)


def F109_nobody_reads(url):
    """A closed stderr and a closed stdout must not end the hold."""
    reader, writer = os.pipe()
    os.close(reader)
    wrapper = subprocess.Popen([SNIB, "run", "-v", "-u", url, "deaf", "--", "sh", "-c", "exit 4"], env=environment(),
                               stderr=writer, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
    os.close(writer)
    equal(wrapper.wait(30), 4)
    closed = subprocess.run(["sh", "-c", f'exec "{SNIB}" run -u "{url}" deaf -- sh -c "exit 6" <&- >&- 2>&-'],
                            env=environment(), check=False)
    equal(closed.returncode, 6)


EACH = [codes_of_the_command, busy, interrupted_while_waiting, lost_after, max_hold, fixed_lease, json_everywhere, json_of_bytes,
        force_release, waiting_line, waiting_without_a_terminal, F109_nobody_reads]
for engine, engine_url in tap.engines():
    for test in EACH:
        tap.add(f"{test.__name__} {engine}", test, engine_url, skip=None if engine_url else tap.skip_without_redis())
for test in (outcome_unknown, refused_user):
    tap.add(test.__name__, test, skip=tap.skip_without_redis())
for test in (unreachable, no_answer, engines_and_version):
    tap.add(test.__name__, test)
for c in ("run", "try", "acquire", "renew", "release", "ls", "show", "force-release", "engines", "demo", "version", "help"):
    tap.add(f"help of {c}", help_matches, c)

tap.main(workers=4)
