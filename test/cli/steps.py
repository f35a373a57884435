# SPDX-License-Identifier: Apache-2.0
"""Two-step holds and their guardian; many at once; the demo."""

import os
import pwd
import re
import signal
import subprocess
import threading
import time

from kit import SNIB, Tap, die_with_parent, environment, equal, finish, lines, run, start, until

tap = Tap()


def shell(script, url=None, **more):
    """A script run by sh, `snib` being ours."""
    env = environment(SNIB_URL=url, SNIB=SNIB, **more)
    done = subprocess.run(["sh", "-c", 'snib() { "$SNIB" "$@"; }\n' + script], env=env, capture_output=True, text=True,
                          timeout=60, preexec_fn=die_with_parent, check=False)
    return done


def held(url, name):
    return lines(run("show", "-u", url, "--json", name).out)[0]["held"]


class Process:
    """Something for a guardian to outlive."""

    def __enter__(self):
        self.process = subprocess.Popen(["sleep", "1000"], preexec_fn=die_with_parent)
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def acquire(url, name, process, *more):
    done = run("acquire", "-u", url, "--for-pid", str(process.pid), "--json", *more, name)
    equal(done.code, 0, repr(done))
    return lines(done.out)[0]


def eval_release(url):
    done = shell('eval "$(snib acquire --for-pid $$ two-step)" || exit 50\n'
                 'test "$SNIB_TOKEN" -gt 0 || exit 51\n'
                 "snib run -n two-step -- true; test $? = 75 || exit 52\n"
                 "snib renew || exit 53\n"
                 "snib release || exit 54\n"
                 "snib run -n two-step -- true || exit 55\n"
                 "snib release; test $? = 120 || exit 56\n", url)
    equal(done.returncode, 0, repr(done))


def the_caller_is_the_default(url):
    """sh runs $(snib ...) in place, so that its parent is the script's shell."""
    done = shell('eval "$($SNIB acquire by-default)"; "$SNIB" run -n by-default -- true; echo $?', url)
    equal(done.stdout, "75\n", repr(done))
    until(lambda: not held(url, "by-default"), "released with the end of the script")


def the_process_ends(url):
    with Process() as process:
        acquire(url, "ends", process, "--lease", "60s")
        assert held(url, "ends")
    begin = time.monotonic()
    until(lambda: not held(url, "ends"), "released with the end of the process")
    assert time.monotonic() - begin < 30, "not by the lease"


def guardian_pid(url, name):
    return lines(run("show", "-u", url, "--json", name).out)[0]["pid"]


def guardian_is_told_to_end(url):
    with Process() as process:
        grant = acquire(url, "term", process)["grant"]
        os.kill(guardian_pid(url, "term"), signal.SIGTERM)
        until(lambda: not held(url, "term"), "released")
        equal(run("renew", grant).code, 120)


def guardian_is_killed():
    url = tap.local()
    with Process() as process:
        grant = acquire(url, "kill", process, "--lease", "60s")["grant"]
        os.kill(guardian_pid(url, "kill"), signal.SIGKILL)
        until(lambda: not held(url, "kill"), "free at once")
        done = run("release", grant)
        equal(done.code, 120, repr(done))
        assert not [place for place in grant_places() if os.path.exists(os.path.join(place, grant))], "its socket is swept"


def taken_away(url):
    with Process() as process:
        grant = acquire(url, "forced", process)["grant"]
        equal(run("force-release", "-u", url, "-y", "forced").code, 0)
        until(lambda: run("renew", "-q", grant).code == 120, "renew says so")
        equal(run("release", grant).code, 120)


def busy_and_interrupted(url):
    with Process() as process:
        grant = acquire(url, "busy2", process)["grant"]
        for more, code in ((["-n"], 75), (["-w", "200ms", "-E", "9"], 9)):
            done = run("acquire", "-u", url, *more, "busy2")
            equal((done.code, done.out), (code, f"(exit {code})\n"), repr(done))
        waiter = start("acquire", "-u", url, "busy2")
        waiter.stderr.readline()
        waiter.send_signal(signal.SIGINT)
        equal(finish(waiter).code, 130)
        killed = start("acquire", "-u", url, "busy2")
        killed.stderr.readline()
        killed.kill()
        finish(killed)  # its guardian has its pipes: it is gone, too
        equal(run("release", grant).code, 0)
        equal(run("run", "-w", "5", "-u", url, "busy2", "--", "true").code, 0)


def max_hold(url):
    with Process() as process:
        grant = acquire(url, "max2", process, "--max-hold", "400ms")["grant"]
        until(lambda: not held(url, "max2"), "given up")
        equal(run("release", grant).code, 120)


def grant_places():
    """Where the guardians of this user may have their sockets."""
    home = pwd.getpwuid(os.geteuid()).pw_dir if os.geteuid() else ""
    places = [f"{home}/.local/state/snib", f"/var/tmp/snib-{os.geteuid()}"] if home else ["/var/lib/snib", "/run/snib"]
    return [place + "/grants" for place in places]


def nothing_in_argv():
    """The guardian's command line has no grant and, given by the environment, no URL."""
    with Process() as process:
        done = run("acquire", "--for-pid", str(process.pid), "--json", "argv", env={"SNIB_URL": tap.local()})
        grant = lines(done.out)[0]["grant"]
        with open(f"/proc/{guardian_pid(tap.local(), 'argv')}/cmdline", "rb") as f:
            text = f.read()
        assert grant.encode() not in text and tap.local().encode() not in text, text
        with open(f"/proc/{guardian_pid(tap.local(), 'argv')}/stat", encoding="ascii") as f:
            equal(f.read().split()[6], "0", "no terminal")
        equal(run("release", grant).code, 0)


def exact_count(url):
    """The purpose of it all: read, wait, write, by 24 processes."""
    path = os.path.join(tap.directory, "count-" + url.split(":")[0])
    with open(path, "w", encoding="ascii") as f:
        f.write("0")
    step = f'n=$(cat {path}); sleep 0.005; echo $((n + 1)) > {path}'
    codes = []
    workers = [threading.Thread(target=lambda: codes.append(run("run", "-q", "-u", url, "count", "-c", step, limit=60).code))
               for _ in range(24)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    equal(codes, [0] * 24)
    with open(path, encoding="ascii") as f:
        equal(int(f.read()), 24)


def demo():
    begin = time.monotonic()
    done = run("demo", env={"TMPDIR": tap.directory})
    took = time.monotonic() - begin
    equal(done.code, 0, repr(done))
    sold = {m[1].strip(): (int(m[2]), m[3]) for m in re.finditer(r"^  (with.*?)stock 100, sold +(\d+)  (\w+)", done.out, re.M)}
    assert sold["without a lock"][0] > 100 and sold["without a lock"][1] == "OVERSOLD", done
    equal(sold["with a lock, local"], (100, "exact"))
    if tap.redis_server:
        equal(sold["with a lock, redis"], (100, "exact"))
    else:
        assert "skipped" in done.out, done
    assert "waiting for shop" in done.err and "by restock" in done.err and "got shop after" in done.err, done
    assert "the shelves are full" in done.out, done
    assert took < 20, f"{took:.1f} s"
    equal([d for d in os.listdir(tap.directory) if d.startswith("snib-demo")], [], "nothing is left")


def demo_without_redis():
    done = run("demo", "--redis-server", "/nonexistent")
    equal(done.code, 64, repr(done))
    assert "--redis-server" in done.err, done


for engine, engine_url in tap.engines():
    for test in (eval_release, the_caller_is_the_default, the_process_ends, guardian_is_told_to_end, taken_away,
                 busy_and_interrupted, max_hold, exact_count):
        tap.add(f"{test.__name__} {engine}", test, engine_url, skip=None if engine_url else tap.skip_without_redis())
for test in (guardian_is_killed, nothing_in_argv, demo, demo_without_redis):
    tap.add(test.__name__, test)
tap.main(workers=3)
