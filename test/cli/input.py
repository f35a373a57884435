# SPDX-License-Identifier: Apache-2.0
"""What bad input gets: the right exit code, one line that names what is wrong, and nothing changed.
What is secret stays so."""

import os

from kit import Tap, equal, lines, run

tap = Tap()
LOCAL = tap.local()
TRUE = ["--", "true"]

# name, arguments, exit code, what the message must name
TABLE = [
    ("empty name", ["run", "-u", LOCAL, "", *TRUE], 64, "NAME"),
    ("name of 1001 bytes", ["run", "-u", LOCAL, "x" * 1001, *TRUE], 64, "NAME"),
    ("empty name of acquire", ["acquire", "-u", LOCAL, ""], 64, "NAME"),
    ("empty name of show", ["show", "-u", LOCAL, ""], 64, "NAME"),
    ("long name of force-release", ["force-release", "-y", "-u", LOCAL, "x" * 1001], 64, "NAME"),
    ("no name", ["run", "-u", LOCAL], 64, "NAME"),
    ("no command", ["run", "-u", LOCAL, "a"], 64, "CMD"),
    ("no command after --", ["run", "-u", LOCAL, "a", "--"], 64, "CMD"),
    ("command and -c", ["run", "-u", LOCAL, "-c", "true", "a", "true"], 64, "-c"),
    ("-c with two", ["run", "-u", LOCAL, "a", "-c", "true", "more"], 64, "-c"),
    ("lease 0", ["run", "-u", LOCAL, "--lease", "0", "a", *TRUE], 64, "--lease"),
    ("lease negative", ["run", "-u", LOCAL, "--lease", "-5", "a", *TRUE], 64, "--lease"),
    ("lease too short", ["run", "-u", LOCAL, "--lease", "99ms", "a", *TRUE], 64, "--lease"),
    ("lease too long", ["run", "-u", LOCAL, "--lease", "366d", "a", *TRUE], 64, "--lease"),
    ("lease overflows", ["run", "-u", LOCAL, "--lease", "9" * 400, "a", *TRUE], 64, "--lease"),
    ("lease is a word", ["run", "-u", LOCAL, "--lease", "soon", "a", *TRUE], 64, "--lease"),
    ("lease is nan", ["run", "-u", LOCAL, "--lease", "nan", "a", *TRUE], 64, "--lease"),
    ("lease is hexadecimal", ["run", "-u", LOCAL, "--lease", "0x10", "a", *TRUE], 64, "--lease"),
    ("lease of an unknown unit", ["run", "-u", LOCAL, "--lease", "5y", "a", *TRUE], 64, "--lease"),
    ("lease shorter than the grace", ["run", "-u", LOCAL, "--lease", "2s", "--grace", "3s", "a", *TRUE], 64, "--grace"),
    ("wait negative", ["run", "-u", LOCAL, "-w", "-1", "a", *TRUE], 64, "--wait"),
    ("wait empty", ["run", "-u", LOCAL, "-w", "", "a", *TRUE], 64, "--wait"),
    ("max-hold 0", ["run", "-u", LOCAL, "--max-hold", "0", "a", *TRUE], 64, "--max-hold"),
    ("exit code 256", ["run", "-u", LOCAL, "-E", "256", "a", *TRUE], 64, "--conflict-exit-code"),
    ("exit code is a word", ["run", "-u", LOCAL, "-E", "one", "a", *TRUE], 64, "--conflict-exit-code"),
    ("signal unknown", ["run", "-u", LOCAL, "--kill-signal", "SIGNOT", "a", *TRUE], 64, "--kill-signal"),
    ("signal 0", ["run", "-u", LOCAL, "--kill-signal", "0", "a", *TRUE], 64, "--kill-signal"),
    ("label empty", ["run", "-u", LOCAL, "--label", "", "a", *TRUE], 64, "--label"),
    ("label too long", ["run", "-u", LOCAL, "--label", "x" * 64, "a", *TRUE], 64, "--label"),
    ("progress unknown", ["run", "-u", LOCAL, "--progress", "maybe", "a", *TRUE], 64, "--progress"),
    ("pid is a word", ["acquire", "-u", LOCAL, "--for-pid", "me", "a"], 64, "--for-pid"),
    ("pid does not exist", ["acquire", "-u", LOCAL, "--for-pid", "2147483647", "a"], 64, "--for-pid"),
    ("option unknown", ["run", "--bogus", "a", *TRUE], 64, "--bogus"),
    ("letter unknown", ["run", "-Z", "a", *TRUE], 64, "-Z"),
    ("option without its argument", ["run", "--url"], 64, "--url"),
    ("shared and exclusive", ["run", "-s", "-x", "a", *TRUE], 64, "--exclusive"),
    ("shared and fair", ["run", "-s", "--fair", "a", *TRUE], 64, "--fair"),
    ("permits 0", ["run", "--permits", "0", "a", *TRUE], 64, "--permits"),
    ("permits negative", ["run", "--permits", "-1", "a", *TRUE], 64, "--permits"),
    ("permits above the limit", ["run", "--permits", "1001", "a", *TRUE], 64, "--permits"),
    ("permits overflow", ["run", "--permits", "9" * 30, "a", *TRUE], 64, "--permits"),
    ("permits more than there are", ["run", "--permits", "3", "--of", "2", "a", *TRUE], 64, "--permits"),
    ("of without permits", ["run", "--of", "2", "a", *TRUE], 64, "--of"),
    ("permits of two", ["run", "--permits", "1", "-k", "a", "-k", "b", *TRUE], 64, "--permits"),
    ("key empty", ["run", "-u", LOCAL, "-k", "", *TRUE], 64, "NAME"),
    ("key twice", ["run", "-u", LOCAL, "-k", "a", "-k", "a", *TRUE], 64, "a"),
    ("red of two", ["run", "--red", "redis://h1", "--red", "redis://h2", "a", *TRUE], 64, "--red"),
    ("red and url", ["run", "-u", LOCAL, "--red", "redis://h1", "a", *TRUE], 64, "--red"),
    ("sem without a verb", ["sem"], 64, "VERB"),
    ("sem of an unknown verb", ["sem", "frobnicate", "a"], 64, "frobnicate"),
    ("sem without a name", ["sem", "show"], 64, "NAME"),
    ("sem set without a number", ["sem", "set", "a"], 64, "argument"),
    ("sem set negative", ["sem", "set", "--", "a", "-1"], 64, "N"),
    ("sem set a word", ["sem", "set", "a", "many"], 64, "many"),
    ("sem set too many", ["sem", "set", "a", "2147483648"], 64, "2147483648"),
    ("sem acquire 0", ["sem", "acquire", "a", "0"], 64, "N"),
    ("sem permit id malformed", ["sem", "-u", LOCAL, "-x", "release", "a", "xyz"], 64, "id"),
    ("latch set 0", ["latch", "set", "a", "0"], 64, "N"),
    ("latch down negative", ["latch", "down", "--", "a", "-1"], 64, "N"),
    ("elect without a command", ["elect", "a"], 64, "CMD"),
    ("elect with two questions", ["elect", "--leader", "--observe", "a"], 64, "--leader"),
    ("register version negative", ["register", "set", "-v", "-1", "a", "b"], 64, "--if-version"),
    ("register without a value", ["register", "set", "a"], 64, "argument"),
    ("command unknown", ["frobnicate"], 64, "frobnicate"),
    ("command with control characters", ["a\x1b[31m\n"], 64, "\\x1b"),
    ("help of an unknown command", ["help", "frobnicate"], 64, "frobnicate"),
    ("ls with two patterns", ["ls", "x", "y"], 64, "PATTERN"),
    ("grant malformed", ["release", "../../etc/passwd"], 64, "GRANT"),
    ("grant missing", ["release"], 64, "GRANT"),
    ("grant unknown", ["renew", "0" * 32], 120, "0" * 32),
    ("URL empty scheme", ["run", "-u", "://", "a", *TRUE], 64, "--url"),
    ("URL without scheme", ["run", "-u", "localhost", "a", *TRUE], 64, "--url"),
    ("URL of an unknown scheme", ["run", "-u", "carrier-pigeon://home", "a", *TRUE], 64, "--url"),
    ("URL option unknown", ["run", "-u", LOCAL + "?colour=red", "a", *TRUE], 64, "colour"),
    ("URL port", ["run", "-u", "redis://localhost:99999", "a", *TRUE], 64, "--url"),
    ("URL time-out", ["run", "-u", "redis://localhost?timeout=never", "a", *TRUE], 64, "timeout"),
    ("URL with control characters", ["run", "-u", "redis://local\x07host", "a", *TRUE], 64, "--url"),
    ("force-release without a terminal", ["force-release", "-u", LOCAL, "a"], 64, "--yes"),
]


def bad(arguments, code, names):
    done = run(*arguments)
    out = f"(exit {code})\n" if arguments[0] == "acquire" else ""  # text for eval, which fails
    equal((done.code, done.out), (code, out), repr(done))
    equal(done.err.count("\n"), 1, f"one line: {done!r}")
    assert done.err.startswith("snib: ") and names in done.err, done
    assert all(c >= " " or c == "\n" for c in done.err), done
    if code == 64 and arguments[0] not in ("frobnicate", "help") and "\x1b" not in arguments[0]:
        error = lines(run(arguments[0], "--json", *arguments[1:]).err)[-1]
        equal((error["event"], error["exit"]), ("error", 64))


def configuration():
    for value in ("carrier-pigeon://home", "redis://localhost?bogus=1", "redis://u:p4ssw0rd@host:99999"):
        done = run("run", "a", "--", "true", env={"SNIB_URL": value})
        equal(done.code, 78, repr(done))
        assert "SNIB_URL" in done.err and "p4ssw0rd" not in done.err, done


def F143_the_password_is_in_no_output():
    """A password in the URL is in no output, whatever is wrong."""
    for where in ("redis://user:p4ssw0rd@127.0.0.1:1", "redis://:p4ssw0rd@host:99999", "redis://user:p4ssw0rd@127.0.0.1:1/x?y",
                  "nonsense://user:p4ssw0rd@h", "redis+unix://:p4ssw0rd@/nonexistent", "redis://user:p4ssw0rd@"):
        for arguments in (["run", "-v", "-u", where, "a", "--", "true"], ["ls", "--json", "-u", where], ["acquire", "-u", where, "a"]):
            done = run(*arguments)
            assert done.code in (64, 69, 77, 78), done
            assert "p4ssw0rd" not in done.out + done.err, done


def F62_F141_names_that_look_like_something_else(url):
    for name in ("-n", "--", "a b", "'; drop table lock; --", "../../x", "{a}{b}", "%s%n", "x" * 1000, "ü" * 500, "*", "\n"):
        done = run("run", "-u", url, "--", name, "sh", "-c", 'printf %s "$SNIB_NAME"')
        equal((done.code, done.out), (0, name), repr(done))


def options_end_at_the_name():
    done = run("run", "-u", LOCAL, "a", "echo", "-n", "--json", "--", "-c")
    equal((done.code, done.out), (0, "--json -- -c"))


def place_not_writable():
    place = os.path.join(tap.directory, "file")
    with open(place, "w", encoding="ascii"):
        pass
    for where in (place + "/sub", "/proc/nonexistent/x", "/dev/null"):
        done = run("run", "-u", "local:" + where, "a", "--", "true")
        assert done.code in (64, 77, 78, 125), done
        assert done.err.count("\n") == 1 and where.split("/")[1] in done.err, done


def place_of_another_user():
    place = os.path.join(tap.directory, "foreign")
    os.mkdir(place, 0o700)
    os.chown(place, 12345, 12345)
    done = run("run", "-u", "local:" + place, "a", "--", "true")
    equal(done.code, 77, repr(done))
    assert place in done.err, done



def a_value_too_long():
    done = run("register", "-u", LOCAL, "set", "long", "-", input=b"x" * (1024 * 1024 + 1))
    equal(done.code, 64, repr(done))
    assert "1048576" in done.err, done
    equal(run("register", "-u", LOCAL, "get", "long").code, 75)


def key_of_another_type():
    tap.redis_server.command("SET", "a-string", "x")
    done = run("run", "-n", "-u", tap.redis_server.url, "a-string", "--", "true")
    equal(done.code, 65, repr(done))
    assert "a-string" in done.err, done
    assert tap.redis_server.command("GET", "a-string") == b"$1\r\nx\r\n"


for case_name, case_arguments, case_code, case_names in TABLE:
    tap.add(case_name, bad, case_arguments, case_code, case_names)
for test in (configuration, F143_the_password_is_in_no_output, options_end_at_the_name, place_not_writable, a_value_too_long):
    tap.add(test.__name__, test)
for engine, engine_url in tap.engines():
    tap.add(f"F62_F141_names_that_look_like_something_else {engine}", F62_F141_names_that_look_like_something_else, engine_url,
            skip=None if engine_url else tap.skip_without_redis())
tap.add("place_of_another_user", place_of_another_user, skip=None if os.geteuid() == 0 else "only root can give a directory away")
tap.add("key_of_another_type", key_of_another_type, skip=tap.skip_without_redis())
tap.main(workers=4)
