# SPDX-License-Identifier: Apache-2.0
"""What the tests of the tools share: how their results are said. Standard library only."""


def report(cases):
    """Prints TAP of (name, complaint) pairs, None where there is nothing to complain of. The exit
    status."""
    for number, (name, complaint) in enumerate(cases, 1):
        print(f'{"not ok" if complaint else "ok"} {number} - {name}')
        for line in (complaint or '').splitlines():
            print(f'# {line}')
    print(f'1..{len(cases)}')
    return 1 if any(complaint for _, complaint in cases) else 0
