#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the tables of the documents say what was measured, and is it seen when they do not? Prints
TAP.

    figures.py SOURCE_DIRECTORY LIBRARY.so
"""

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

SIZES = (1, 32, 128)


def said_pairs(root):
    """{(size, system): pairs/s} as the design page says; no entry where it says nothing."""
    section = re.search(r'<!-- generated: bench -->\n(.*?)<!-- end -->', (root / 'doc/design/bench.md').read_text(), re.DOTALL).group(1)
    table = re.search(r'^\| Redis, .*\n\|[-:|]*\n((?:\|.*\n)+)', section, re.MULTILINE).group(1)
    said = {}
    for row in table.splitlines():
        system, one, _, _, many, more = (c.strip() for c in row.strip('|').split('|'))
        said |= {(size, system): float(text.split()[0].replace(',', '')) for size, text in zip(SIZES, (one, many, more)) if text != '-'}
    return said


def complaints_of_page(root):
    rows = json.loads((root / 'bench/results/bench.json').read_text())['rows']
    rows = [r for r in rows if r['scenario'] == 'redis' and r['size'] in SIZES and None not in r['pairs_per_s']]
    alone = {r['system'] for r in rows if r['size'] == 1}
    wanted = {(r['size'], r['system']): statistics.median(r['pairs_per_s']) for r in rows if r['system'] in alone}
    said = said_pairs(root)
    if not wanted or said.keys() != wanted.keys():
        return f'what only one of both has: {sorted(map(str, said.keys() ^ wanted.keys()))}'
    wrong = [str(where) for where, rate in said.items() if abs(rate - wanted[where]) > 0.01 * wanted[where]]
    return f'other than measured: {wrong}' if wrong else None


def copy(source, directory):
    root = Path(directory)
    for name in ('README.md', 'doc/manual.md', 'doc/design/bench.md', 'tools/gen-docs', 'tools/contracts.py', 'bench/report.py', 'bench/results/bench.json'):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, root / name)
    shutil.copytree(source / 'include', root / 'include')
    return root


def change_figures(root):
    path = root / 'bench/results/bench.json'
    data = json.loads(path.read_text())
    for row in data['rows']:
        if row['scenario'] == 'redis':
            row['pairs_per_s'] = [rate and 2 * rate for rate in row['pairs_per_s']]
    path.write_text(json.dumps(data))


def complaints_of_check(source, library):
    def stale():
        return subprocess.run([sys.executable, str(root / 'tools/gen-docs'), '--check', library], stdout=subprocess.PIPE, text=True, check=False).stdout

    with tempfile.TemporaryDirectory() as directory:
        root = copy(source, directory)
        before = stale()
        change_figures(root)
        after = stale()
    if before:
        return f'the copy is refused: {before}'
    return None if 'README.md:' in after and 'doc/design/bench.md:' in after else f'not seen: {after}'


def judged(source, rows):
    """What bench/report.py says of such results: {what is wanted: (measured, met)}."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / 'x.json'
        path.write_text(json.dumps({'about': {}, 'rows': rows}))
        text = subprocess.run([sys.executable, str(source / 'bench/report.py'), str(path)], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.findall(r'^  (\S.*?)  +at (?:most|least) \S+ +(\S+)  (yes|no|not measured)$', text, re.MULTILINE)
    return {what: (value, met) for what, value, met in found}


def complaints_of_goals(source):
    """In every round 1.1 times, but for one: what counts is the median of the ratios, not the ratio
    of medians."""
    red = [{'scenario': 'red', 'size': 1, 'system': 'five alive', 'p50_us': [100, 200, 900]},
           {'scenario': 'red', 'size': 1, 'system': 'one of five dead', 'p50_us': [110, 400, 990]}]
    held = [{'scenario': 'held', 'size': 100000, 'system': 'snib', 'client_mib': [49, 50, 47.9], 'core_percent': [None, 1, 1]}]
    delays = [{'scenario': f'delays, {us} us', 'size': 1, 'system': system, 'p50_us': [p50]}
              for us in (20, 60, 120, 400)
              for system, p50 in (('bare, blocking', 200), ('bare, looking 50 us', 100), ('bare, looking 200 us', 150), ('snib, one client', 100 + us / 10))]
    said, wanted = judged(source, red + held + delays), {
        'answers of 20, 60, 120, 400 us, the worst: p50, to the best bare loop': ('1.40', 'no'),
        'red multilock, one dead of five: p50, to five alive': ('1.10', 'yes'),
        '100,000 held locks: MiB in the client': ('49.0', 'no'),
        '100,000 held locks: % of a core, lease 30 s': ('-', 'not measured')}
    wrong = [f'{what}: {said.get(what)}, not {answer}' for what, answer in wanted.items() if said.get(what) != answer]
    return '\n'.join(wrong) or None


def main():
    source, library = Path(sys.argv[1]), sys.argv[2]
    cases = [('the design page says what was measured', complaints_of_page(source)),
             ('what is wanted is held against medians of the rounds', complaints_of_goals(source)),
             ('gen-docs --check sees a figure that was measured otherwise', complaints_of_check(source, library))]
    return tap.report(cases)


if __name__ == '__main__':
    sys.exit(main())
