# SPDX-License-Identifier: Apache-2.0
"""The commands of README, of every -h and of the man pages, run as they are written there.

The lines come from the texts themselves: every line of a shell block of README, of a block of
doc/man/*.[17].md where a line runs snib, and of an indented block of a help text where one does. Each is run in a directory of its own, with
stubs for the commands it protects (./report.sh, make, ...): with everything free, while another
does the same, with no engine to be reached, with snib killed, and with snib missing from PATH. What
is asserted above all: a stub runs only while its line holds what it says it holds.

The only thing that is changed about a line is where its servers are: `snib` is found by PATH, as a
script that puts the private server of the test (a database for each host) in place of each URL, and
then becomes snib. A line that is new and of no known sort fails this test: teach it the sort.
"""

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from kit import LIMIT, SNIB, Redis, Tap, die_with_parent, environment, equal, find_redis, until, write_script

ROOT = Path(__file__).resolve().parent.parent.parent
tap = Tap()
PLACES, DATABASES = 2000, 8  # places to run a line in, databases for each
redis = Redis(tap.directory, "--databases", str(PLACES * DATABASES)) if find_redis() else None

# Commands of the texts that are not snib's, and what is checked of them: they install, build, or
# run for long.
OTHERS = {
    "git clone": lambda words: None,
    "cd": lambda words: None,
    "script/": lambda words: os.access(ROOT / words[0], os.X_OK),
    "meson install": lambda words: (ROOT / "meson.build").exists(),
    "cc": lambda words: None,
    "./shop": lambda words: None,  # compiled and run by test/abi/install.py, from the same text
    "pkg-config": lambda words: None,
    "./shop": lambda words: None,  # what cc made of the C of README, which has a test of its own
    "man": lambda words: None,
}


# ---- reading the texts ----

class Unit:
    """A line, or several that belong together because the first takes a lock for the others."""

    def __init__(self, source, text):
        self.source, self.text = source, text

    def __str__(self):
        return f"{self.source}: {re.sub(r' +#.*', '', self.text.splitlines()[0])}"


def simple_commands(text):
    """The words of each simple command, comments and assignments left out."""
    command, found = [], []
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for token in [*lexer, ";"]:
            if token and not set(token) - set("();|&"):
                found += [command] if command else []
                command = []
            elif command or not re.match(r"[A-Za-z_]\w*=", token):
                command.append(token)
    return found


def invocations(text):
    """The words after `snib` of every call of it, also inside $(...), in the order of the text."""
    found = []
    inner = re.sub(r"\"?\$\(([^()]*)\)\"?", lambda m: found.extend(calls(m[1])) or "x", text)
    return found + calls(inner)


def calls(text):
    found = []
    for words in simple_commands(text):
        while words and words[0] in ("exec", "!", "if", "then", "while", "do", "eval", "time"):
            words = words[1:]
        if words and words[0] == "snib":
            found.append(words[1:])
    return found


def runs_snib(line):
    try:
        return bool(invocations(line))
    except ValueError:  # a quotation mark that is none: prose
        return False


def units_of_block(source, block):
    lines = [line.rstrip() for line in block if line.strip()]
    prompts = [line.strip()[2:].rstrip("& ") for line in lines if line.strip().startswith("$ ")]
    if prompts:
        lines = prompts  # a session: the other lines are what was printed
    lines = [line.strip() for line in "\n".join(lines).replace("\\\n", " ").splitlines()]
    if any(re.search(r"\bsnib acquire\b", line) for line in lines):
        return [Unit(source, "\n".join(lines))]
    return [Unit(source, line) for line in lines]


def fenced(path):
    """The units of the shell blocks of a page: those that say sh, and those that say nothing."""
    text = path.read_text()
    text = re.sub(r"<!-- generated: .*?<!-- end -->", "", text, flags=re.S)
    text = re.sub(r"^## Synopsis\n.*?^## ", "## ", text, flags=re.S | re.M)
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.S | re.M):
        # A manual has tables of URLs, too; README says the language of what is no shell.
        if language in ("sh", "console") or (language == "" and (path.name == "README.md" or any(
                map(runs_snib, block.splitlines())))):
            yield from units_of_block(path.name, block.splitlines())


def help_text(*words):
    return subprocess.run([SNIB, *words], env=environment(), capture_output=True, text=True, check=True, timeout=LIMIT).stdout


def helps():
    """The units of the help texts: indented lines that run snib, with what follows in their block;
    a description is apart by two blanks."""
    verbs = re.findall(r"^  ([a-z][a-z-]*)  +\S", help_text("-h"), flags=re.M)
    assert {"run", "acquire", "elect", "help"} <= set(verbs), verbs
    for words in [["-h"], *[[v, "-h"] for v in verbs]]:
        for block in re.split(r"\n\s*\n", help_text(*words)):
            lines = [re.sub(r"\s{2,}.*", "", line.strip()) for line in block.splitlines()
                     if re.match(r"  (?![-\s])", line)]
            if any(runs_snib(line) for line in lines):
                yield from units_of_block("snib " + " ".join(words), lines)


def all_units():
    pages = [ROOT / "README.md", *sorted((ROOT / "doc/man").glob("*.[17].md"))]
    return [*helps(), *(unit for page in pages for unit in fenced(page))]


# ---- what sort of line it is ----

QUESTIONS = ("show", "ls", "force-release")
OFFLINE = ("help", "version", "engines", "demo", "completion", "-h", "--help", "-V", "--version")


def option(words, *names):
    """The value of an option, True if it has none, None if it is not there."""
    for i, w in enumerate(words):
        if w == "--":
            return None
        for name in names:
            if w == name:
                return words[i + 1] if i + 1 < len(words) else True
            if w.startswith(name + "=") and name.startswith("--"):
                return w[len(name) + 1:]
            if not name.startswith("--") and w.startswith(name) and not w.startswith("--"):
                return w[2:]
    return None


def sort_of(text):
    found = invocations(text)
    if not found:
        return "other"
    verbs = [words[0] if words else "help" for words in found]
    if "acquire" in verbs:
        return "acquire"
    if verbs[0] in ("run", "try"):
        return "run"
    if verbs[0] == "elect":
        asks = [o for o in ("--leader", "--observe", "--depose") if o in found[0]]
        return asks[0][2:] if asks else "run"
    if "latch" in verbs and any(words[:2] == ["latch", "wait"] for words in found):
        return "latch"
    if verbs[0] in ("sem", "latch", "register", *QUESTIONS):
        return "ask"
    if verbs[0] in ("release", "renew"):
        return "grant"
    if verbs[0] in OFFLINE:
        return "offline"
    return "unknown"


def room(text):
    """How many may be in it at once."""
    words = invocations(text)[0]
    if option(words, "-s", "--shared") is not None:
        return 99
    permits = option(words, "-N", "--permits")
    return int(option(words, "--of") or 1) // int(permits) if permits else 1


# ---- running it ----

class Place:
    """A directory to run a line in: stubs, a `snib` that finds the test's servers, and a log of
    what the stubs did."""

    numbers = itertools.count()

    def __init__(self, unit, engine="there"):
        self.unit, self.number = unit, next(self.numbers)
        self.directory = Path(tap.directory) / f"place-{self.number}"
        self.bin, self.log, self.hold = self.directory / "bin", self.directory / "log", self.directory / "hold"
        self.bin.mkdir(parents=True)
        self.log.write_text("")
        for name in self.protected():
            self.stub(self.directory / name if "/" in name else self.bin / name)
        if engine == "missing":
            self.path = f"{self.directory}/only"
            (self.directory / "only").mkdir()
            for name in self.protected():
                if "/" not in name:
                    self.stub(self.directory / "only" / name)
        else:
            self.path = f"{self.bin}:{os.environ['PATH']}"
            self.write(self.bin / "snib", self.door(engine))

    def protected(self):
        """What the line runs besides snib: what follows a NAME and --, and ./things."""
        names = set(re.findall(r"(?<!\S)\./[\w./-]+", self.unit.text))
        for words in invocations(self.unit.text):
            if words[:1] and words[0] in ("run", "try", "elect") and "--" in words:
                names.update(words[words.index("--") + 1:][:1])
            elif option(words, "-c", "--command"):
                names.update(shlex.split(option(words, "-c", "--command"))[:1])
        return names

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_script(path, text)

    def stub(self, path):
        """Says that it began, waits while it is told to, says that it ended."""
        self.write(path, f"""#!/bin/sh
echo "begin $$" >> {self.log}
while test -e {self.hold}; do {shutil.which('sleep')} 0.02; done
echo "end $$" >> {self.log}
""")

    def door(self, engine):
        urls = sorted(set(re.findall(r"(?:redis|rediss|redis\+unix|local):[^\s\"'`;)]*", self.unit.text)))
        cases = "".join(f"    {shlex.quote(u)}) u={shlex.quote(self.server(u, n, engine))} ;;\n" for n, u in enumerate(urls))
        default = self.server("local:", 0, engine)
        return f"""#!/bin/sh
map() {{
  case $1 in
{cases}    *) u=$1 ;;
  esac
}}
for a; do
  shift
  case $a in
    --url=* | --red=* | --engine=*) map "${{a#*=}}"; a=${{a%%=*}}=$u ;;
    *) map "$a"; a=$u ;;
  esac
  set -- "$@" "$a"
done
map "${{SNIB_URL:-{default}}}"
SNIB_URL=$u exec {SNIB} "$@"
"""

    def server(self, url, n, engine):
        if engine == "unreachable":
            return "redis://127.0.0.1:1?timeout=300ms"
        if url.startswith("redis") and redis:
            return f"{redis.url}?db={self.number * DATABASES + n}"
        return f"local:{self.directory}/engine-{n}"

    def start(self):
        env = environment(PATH=self.path, HOME=str(self.directory))
        env.pop("SNIB_URL", None)  # a user has none: the default is in the door
        # In a session of its own, so that all of it can be ended.
        return subprocess.Popen(["/bin/sh", "-c", self.unit.text], env=env, cwd=self.directory, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                preexec_fn=die_with_parent)

    def events(self, what):
        return len(re.findall(rf"^{what} ", self.log.read_text(), flags=re.M))

    def ran(self):
        return self.events("begin")


def end(process, number=signal.SIGTERM):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
    return process.communicate(timeout=LIMIT)


def finish(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        out, err = end(process, signal.SIGKILL)
        raise AssertionError(f"hangs: {process.args}: {out!r} {err!r}") from None
    return process.returncode, out.decode(), err.decode()


def waits_or_ended(process):
    """Until it said on stderr that it waits, or is gone: what it said."""
    os.set_blocking(process.stderr.fileno(), False)
    said = b""
    limit = time.monotonic() + LIMIT
    while process.poll() is None and b"\n" not in said and time.monotonic() < limit:
        said += process.stderr.read() or b""
        time.sleep(0.01)
    os.set_blocking(process.stderr.fileno(), True)
    return said.decode()


# ---- the cases ----

def free(unit):
    """Everything is free: it does what it says, and nothing fails."""
    place, sort = Place(unit), sort_of(unit.text)
    process = place.start()
    if sort == "latch":
        counts_down(place, process)
    if sort == "observe":
        until(lambda: process.stdout.readline(), "what is so now")
        end(process)
        return
    code, out, err = finish(process)
    allowed = {"leader": (0, 1), "depose": (0, 75), "ask": (0, 1, 75), "grant": (64,)}.get(sort, (0,))
    assert code in allowed, (code, out, err)
    if sort in ("run", "acquire"):
        assert place.ran() >= 1, (out, err)
        equal(place.events("end"), place.ran())


def counts_down(place, process):
    """Others count the latch down, as the text says."""
    name = next(words[2] for words in invocations(place.unit.text) if words[:2] == ["latch", "wait"])
    while process.poll() is None:
        env = environment()
        env.pop("SNIB_URL", None)
        subprocess.run([place.bin / "snib", "latch", "down", name], env=env, capture_output=True, check=False, timeout=LIMIT)


def busy(unit):
    """As many as may are in it; one more does not get in, until one of them is out."""
    place, many = Place(unit), room(unit.text)
    place.hold.touch()
    inside = []
    try:
        for n in range(min(many, 4)):
            inside.append(place.start())
            until(lambda n=n: place.ran() == n + 1, f"number {n + 1} is in")
        if many <= 4:
            one_more(place, inside)
    finally:
        place.hold.unlink(missing_ok=True)
        for process in inside:
            code, out, err = finish(process)
            equal(code, 0, (out, err))


def one_more(place, inside):
    before = place.ran()
    late = place.start()
    said = waits_or_ended(late)
    equal(place.ran(), before, f"a command ran beside those that hold: {said}")
    if "waiting" not in said:
        code, out, err = finish(late)
        conflict = option(invocations(place.unit.text)[0], "-E", "--conflict-exit-code")
        equal(code, int(conflict or 75), (said, out, err))
        equal(place.ran(), before)
        return
    place.hold.unlink()
    code, out, err = finish(late)
    equal(code, 0, (said, out, err))
    until(lambda: place.events("end") == place.ran() > before, "it ran when the others were out")


def killed_while_waiting(unit):
    """snib itself is killed where it waits: the line does not go on."""
    place = Place(unit)
    place.hold.touch()
    first = place.start()
    until(place.ran, "the first is in")
    late = place.start()
    said = waits_or_ended(late)
    if "waiting" in said:
        # All of snib's processes of this line: in its session, but the shell.
        for pid in session_of(late.pid):
            if pid != late.pid:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        if not session_has_shell(late):
            end(late, signal.SIGKILL)  # the shell had become snib
    code, _, err = finish(late)
    assert code != 0, (said, err)
    equal(place.ran(), 1, "nothing went on")
    place.hold.unlink()
    equal(finish(first)[0], 0)


def session_of(leader):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                if int(f.read().rsplit(")", 1)[1].split()[3]) == leader:
                    found.append(int(pid))
        except OSError:
            continue
    return found


def session_has_shell(process):
    try:
        with open(f"/proc/{process.pid}/comm", encoding="utf-8") as f:
            return f.read().strip() == "sh"
    except OSError:
        return True


def unreachable(unit):
    """No engine: nothing runs, and the exit code says so."""
    place, sort = Place(unit, "unreachable"), sort_of(unit.text)
    process = place.start()
    if "--red" in unit.text:  # a server that does not answer does not grant; another try may do better
        until(lambda: waits_or_ended(process) or process.poll() is not None, "it says so")
        end(process)
        equal(place.ran(), 0)
        return
    code, out, err = finish(process)
    equal(place.ran(), 0, (out, err))
    if sort not in ("offline", "grant"):
        equal(code, 69, (out, err))


def missing(unit):
    """snib is not installed: nothing runs, and the line fails."""
    place = Place(unit, "missing")
    code, out, err = finish(place.start())
    equal(place.ran(), 0, (out, err))
    equal(code, 127, (out, err))


def other(unit):
    """A line that is not about snib: something is known of it."""
    for words in simple_commands(unit.text):
        line = " ".join(words)
        known = [check for start, check in OTHERS.items() if line.startswith(start)]
        assert known, f"this test does not know what to do with: {line}"
        assert known[0](words) in (None, True), line


def unknown(unit):
    """A line of snib that is new: this test must be taught what it promises."""
    raise AssertionError(f"of no sort that this test knows: {unit.text}")


def units_are_found(units):
    """Reading the texts finds what a reader finds."""
    for source, least in (("README.md", 5), ("snib.1.md", 5), ("snib -h", 3), ("snib acquire -h", 1), ("snib elect -h", 3)):
        found = [u for u in units if u.source == source and runs_snib(u.text)]
        assert len(found) >= least, (source, [str(u) for u in found])


units = all_units()
tap.add("the texts are read", units_are_found, units)
for u in units:
    kind = sort_of(u.text)
    if kind in ("other", "unknown"):
        tap.add(f"known: {u}", other if kind == "other" else unknown, u)
        continue
    tap.add(f"free: {u}", free, u)
    tap.add(f"missing: {u}", missing, u)
    if kind not in ("offline", "grant"):
        tap.add(f"unreachable: {u}", unreachable, u)
    if kind in ("run", "acquire"):
        tap.add(f"busy: {u}", busy, u)
    if kind in ("run", "acquire") and room(u.text) == 1:
        tap.add(f"killed while waiting: {u}", killed_while_waiting, u)
tap.main()
