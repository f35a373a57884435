#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the exported symbols of the library exactly the functions that the public headers declare,
each with a version? Prints TAP.

    symbols.py LIBRARY.so INCLUDE_DIRECTORY
"""

import re
import subprocess
import sys
from pathlib import Path

NODE = re.compile(r'^SNIB_\d+\.\d+$')


def exported(library):
    """{symbol: version node}"""
    text = subprocess.run(['nm', '-D', '--defined-only', '--with-symbol-versions', '--format=posix', library], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        name, kind = line.split()[:2]
        if kind != 'A':  # the version nodes themselves
            symbol, _, version = name.partition('@')
            found[symbol] = version.lstrip('@')
    return found


def declared(include):
    found = set()
    for path in Path(include, 'snib').glob('*.h'):
        text = re.sub(r'/\*.*?\*/', ' ', path.read_text(), flags=re.DOTALL)
        text = re.sub(r'^\s*#.*$', '', text, flags=re.MULTILINE)
        found |= set(re.findall(r'\bSNIB_API\b[^;(]*?\b(\w+)\s*\(', text))
    return found


def main():
    symbols, functions = exported(sys.argv[1]), declared(sys.argv[2])
    checks = [
        (f'the headers declare functions, and the parser of this test finds them ({len(functions)})',
         [] if 'snib_open' in functions and 'snib_scope_enter' in functions else ['snib_open or snib_scope_enter was not found']),
        ('everything declared is exported', [f'{name} is declared with SNIB_API and not in the library' for name in sorted(functions - set(symbols))]),
        ('everything exported is declared', [f'{name} is exported and in no public header' for name in sorted(set(symbols) - functions)]),
        ('every symbol has a version node', [f'{name} has {version or "none"}' for name, version in sorted(symbols.items()) if not NODE.match(version)]),
    ]
    for number, (name, complaints) in enumerate(checks, 1):
        print(f'{"not ok" if complaints else "ok"} {number} - {name}')
        for line in complaints:
            print(f'# {line}')
    print(f'1..{len(checks)}')
    return 1 if any(complaints for _, complaints in checks) else 0


if __name__ == '__main__':
    sys.exit(main())
