#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snib and the real Redisson on one Redis: every object, both directions. TAP, and a table at the
end.

    interop.py VERSION DIRECTORY [--only TEXT | --record]

VERSION is Redisson's; DIRECTORY is where its classes are kept. Without Java, Maven, their network
or a Redis all is skipped and says why. --only: the cases that have TEXT in their name. --record:
writes ../dumps/VERSION/*.json instead. """

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from workers import Java, Missing, Results, Stage, need_redis, skipped  # noqa: E402 (its place is above)
from cases import Cast, add_cases  # noqa: E402
from contention import add_contention  # noqa: E402
from record import record  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("directory")
    parser.add_argument("--only", default="")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    stage, results = Stage(), Results()
    cast = Cast(stage)
    add_cases(results, options.version, cast)
    add_contention(results, stage)
    results.cases = [c for c in results.cases if options.only in c[2]]
    try:
        need_redis()
        stage.java = Java(options.version, options.directory)
    except Missing as why:
        return skipped(why)
    if options.record:
        with stage:
            print(record(stage, stage.role("Java"), options.version, HERE.parent / "dumps"), "states")
        return 0
    with stage:
        stage.begin(*cast.all())
        results.before = stage.mend
        good = results.run()
    results.print_table(f"Redisson {options.version}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
