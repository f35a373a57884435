#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where local: is. One user has one default directory, whatever the environment says, and what is
wrong with a place is said with exit code 78. The default places are covered for that: a mount
namespace has /var/lib, /run, /var/tmp and a user database of its own."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import SNIB, Tap, die_with_parent, equal, finish, lines, run, start, until

tap = Tap()
ANNA, STRANGER = 4711, 4712  # in the world's user database, and not

# Ways to come to the same user: a login session, cron, sudo -E, su, env -i, another's HOME.
ENVIRONMENTS = ("env -i", "env -i HOME=/var/tmp/anna", "env -i HOME=/root USER=root", "env -i HOME=/nonexistent",
                "env -i XDG_RUNTIME_DIR=/var/tmp/session HOME=/var/tmp/anna", "env -i XDG_STATE_HOME=/var/tmp/state",
                "env -i XDG_RUNTIME_DIR=/nonexistent", "env -i XDG_RUNTIME_DIR= HOME=")

WORLD = """set -e
mount -t tmpfs -o mode=755 none /var/lib
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=1777 none /var/tmp
mkdir /var/tmp/anna
mkdir -m 1777 /var/tmp/session /var/tmp/state
chown 4711:4711 /var/tmp/anna
echo 'root:x:0:0::/root:/bin/sh' > /var/tmp/passwd
echo 'anna:x:4711:4711::/var/tmp/anna:/bin/sh' >> /var/tmp/passwd
mount --bind /var/tmp/passwd /etc/passwd
as() { uid=$1; shift; setpriv --reuid $uid --regid $uid --clear-groups "$@"; }
set +e
cd /
"""


def world(script):
    """Runs a shell script as root in a world of its own: what it printed."""
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", WORLD + script],
                          env={"PATH": os.environ["PATH"], "SNIB": SNIB}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, text=True, preexec_fn=die_with_parent)
    equal(done.returncode, 0, done.stdout)
    return done.stdout


def no_world():
    try:
        said = world(f"as {STRANGER} $SNIB version")
    except (OSError, AssertionError) as e:
        return "needs root, unshare and setpriv: " + str(e).strip().split("\n", maxsplit=1)[0]
    return None if said.startswith("snib") else "another user cannot execute " + SNIB


def one_place(uid, path):
    """All processes of this user meet there: one holds, the others are told so."""
    others = "".join(f"as {uid} {e} $SNIB run -n nightly true 2>/dev/null; echo $?\n" for e in ENVIRONMENTS)
    holder = "echo $SNIB_URL; touch $1; while [ -e $1 ]; do sleep 0.02; done"
    for first in ENVIRONMENTS[0], ENVIRONMENTS[4]:
        said = world(f"as {uid} {first} $SNIB run nightly sh -c '{holder}' - /var/tmp/session/held & \n"
                     "until [ -e /var/tmp/session/held ]; do sleep 0.02; done\n" + others +
                     "rm /var/tmp/session/held; wait\n" f"stat -c '%u %a' {path}")
        equal(said, f"local:{path}\n" + "75\n" * len(ENVIRONMENTS) + f"{uid} 700\n", first)


def a_place_that_was_used_is_kept():
    """Anna's home is not mounted when her first job starts."""
    said = world(f"""mv /var/tmp/anna /var/tmp/later
    as {ANNA} $SNIB run a sh -c 'echo $SNIB_URL'
    mv /var/tmp/later /var/tmp/anna
    as {ANNA} $SNIB run a sh -c 'echo $SNIB_URL'""")
    equal(said, f"local:/var/tmp/snib-{ANNA}\n" * 2)


def grants_are_found_from_anywhere():
    """What a session acquired, cron can renew and release."""
    for uid in 0, ANNA, STRANGER:
        said = world(f"""sleep 60 & keeper=$!
        as {uid} env XDG_RUNTIME_DIR=/var/tmp/session $SNIB acquire --for-pid $keeper deploy > /var/tmp/grant
        . /var/tmp/grant
        as {uid} env -i $SNIB renew $SNIB_GRANT; echo $?
        as {uid} env -i $SNIB run -n deploy true 2>/dev/null; echo $?
        as {uid} env -i $SNIB release $SNIB_GRANT; echo $?
        as {uid} env -i $SNIB run -n deploy true; echo $?
        kill $keeper""")
        equal(said, "0\n75\n0\n0\n")


def grants_are_private():
    said = world("""mkdir -p /var/lib/snib; chmod 700 /var/lib/snib; mkdir -m 755 /var/lib/snib/grants
    $SNIB acquire x; echo $?; $SNIB run -n x true; echo $?""")
    assert "not yours alone" in said and "77\n" in said, said
    assert said.endswith("0\n"), "acquire gave it back: " + said


def a_wrong_home_is_78():
    said = world(f"touch /var/tmp/anna/.local; as {ANNA} $SNIB run a true; echo $?")
    assert said.endswith("78\n") and "/var/tmp/anna/.local/state/snib" in said, said
    said = world("mount -o remount,ro /var/lib; mount -o remount,ro /run; $SNIB run a true; echo $?")
    assert said.endswith("78\n") and "SNIB_URL" in said and "/run/snib" in said, said


def the_path_is_said():
    """The command, -v, show, ls and errors say which place it is."""
    place = tap.directory + "/said"
    url = "local:" + place
    equal(run("run", "-u", url + "/", "a", "-c", 'echo "$SNIB_URL"').out, url + "\n")
    equal(run("run", "a", "-c", 'echo "$SNIB_URL"', env={"SNIB_URL": url + "/?timeout=2s"}).out, url + "?timeout=2s\n")
    assert url in run("run", "-v", "-u", url, "a", "true").err
    for arguments in ["show", "-u", url, "a"], ["ls", "-u", url]:
        done = run(*arguments)
        assert url in done.out + done.err, done
    holder = start("run", "-u", url, "a", "cat", stdin=subprocess.PIPE)
    until(lambda: lines(run("show", "-j", "-u", url, "a").out)[0]["held"], "held")
    for arguments in ["show", "-j", "-u", url, "a"], ["ls", "-j", "-u", url]:
        equal(lines(run(*arguments).out)[0]["url"], url)
    equal(finish(holder).code, 0)  # closes its stdin
    os.chmod(place, 0o777)
    done = run("ls", "-u", url)
    assert done.code == 77 and place in done.err, done


def relative_places_are_refused():
    for url in "local:locks", "local:./locks":
        done = run("run", "-u", url, "a", "true", cwd=tap.directory)
        equal(done.code, 64, repr(done))
        assert f"local:{os.path.realpath(tap.directory)}/locks" in done.err, done
        equal(run("run", "a", "true", cwd=tap.directory, env={"SNIB_URL": url}).code, 78)
    assert not os.path.exists(tap.directory + "/locks")


def a_wrong_place_is_78():
    path = tap.directory + "/plain"
    with open(path, "w", encoding="ascii"):
        pass
    for where in path, path + "/sub", "/nonexistent/place", "/dev/null":
        for done in run("run", "-u", "local:" + where, "a", "true"), run("ls", env={"SNIB_URL": "local:" + where}):
            equal(done.code, 78, repr(done))
            assert where in done.err and done.err.count("\n") == 1, done


def sharing_names_mode_and_group():
    said = world(f"""mkdir -m 755 /run/both
    $SNIB run -u local:/run/both a true
    as {ANNA} $SNIB run -u local:/run/both a true; echo $?
    mkdir -m 700 /run/hers; chown {ANNA} /run/hers
    as {STRANGER} $SNIB run -u local:/run/hers a true; echo $?
    $SNIB run -u local:/run/hers a true; echo $?""")
    equal(said.count("77\n"), 3, said)
    equal(said.count("?mode=0660&group=GROUP"), 3, said)


reason = no_world()
for uid, path in (0, "/var/lib/snib"), (ANNA, "/var/tmp/anna/.local/state/snib"), (STRANGER, f"/var/tmp/snib-{STRANGER}"):
    tap.add(f"one place whatever the environment, user {uid}", one_place, uid, path, skip=reason)
for test in (a_place_that_was_used_is_kept, grants_are_found_from_anywhere, grants_are_private, a_wrong_home_is_78,
             sharing_names_mode_and_group):
    tap.add(test.__name__, test, skip=reason)
for test in the_path_is_said, relative_places_are_refused, a_wrong_place_is_78:
    tap.add(test.__name__, test)
tap.main()
