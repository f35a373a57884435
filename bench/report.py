#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be said of the results of a run of script/bench, which snib-bench writes as JSON (bench/report.c).

    bench/report.py goals FILE   the figures that are wanted, beside those that were measured
    bench/report.py chart FILE   a picture, as SVG

The tables of the documents are made of the same by tools/gen-docs. It judges nothing: whatever the figures are, the exit status is 0.
Standard library only.
"""

import json
import math
import statistics
import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

SAVED = Path(__file__).resolve().parent / 'results/bench.json'

SNIB, BARE, LOOKING, UNLOOKING = 'snib, one client', 'bare blocking sockets', 'bare, looking 50 us', 'snib, without looking'
PEERS = ('redisson', 'redsync', 'redis-py', 'python-redis-lock', 'node-redlock')


class Results:
    def __init__(self, path):
        data = json.loads(Path(path).read_text())
        self.about, self.rows = data['about'], data['rows']
        self.index = {(r['scenario'], r['size'], r['system']): r for r in self.rows}

    def rounds(self, scenario, size, system, figure):
        """The figure of every round; [] if it was not measured."""
        values = self.index.get((scenario, size, system), {}).get(figure, [])
        return [] if None in values else values

    def median(self, *where):
        values = self.rounds(*where)
        return statistics.median(values) if values else None

    def spread(self, *where):
        """Half of what lies between the worst and the best round, in percent of the median."""
        values = self.rounds(*where)
        return 50 * (max(values) - min(values)) / statistics.median(values) if values and statistics.median(values) else None

    def ratio(self, own, *others):
        """The median of the rounds' ratios, to the lowest of the others; of figures of different scenarios the medians' ratio."""
        own, others = self.rounds(*own), [self.rounds(*o) for o in others]
        if not own or not all(others):
            return None
        if any(len(o) != len(own) for o in others):
            own, others = [statistics.median(own)], [[statistics.median(o)] for o in others]
        lowest = [min(values) for values in zip(*others)]
        return statistics.median(a / b for a, b in zip(own, lowest)) if all(lowest) else None


# --- what is wanted


class Goal(NamedTuple):
    what: str
    sign: str  # how the measured stands to the wanted
    wanted: float
    own: tuple
    others: tuple = ()  # nothing: the figure itself is wanted


def redis(size, system, figure='pairs_per_s'):
    return ('redis', size, system, figure)


def crowd(size, system, figure='grants_per_s'):
    return ('crowds', size, system, figure)


def wake(system):
    return ('wake', 1, system, 'p50_us')


THREADS, PROCESSES, ALONE, SAME_CORE = 'lock, threads', 'lock, processes', 'lock, bare and alone', 'lock, bare, same core'
HELD = ('held', 100000, 'snib')
ALIVE, DEAD = ('red', 1, 'five alive', 'p50_us'), ('red', 1, 'one of five dead', 'p50_us')

GOALS = [
    Goal('1 caller: p50, to the better bare loop, blocking or looking', '<=', 1.05, redis(1, SNIB, 'p50_us'),
         (redis(1, BARE, 'p50_us'), redis(1, LOOKING, 'p50_us'))),
    Goal('1 caller, without looking: p50, to the bare blocking loop', '<=', 1.05, redis(1, UNLOOKING, 'p50_us'), (redis(1, BARE, 'p50_us'),)),
    Goal('1 caller, without looking: CPU per pair, to the same', '<=', 1.10, redis(1, UNLOOKING, 'cpu_us'), (redis(1, BARE, 'cpu_us'),)),
    Goal('1 caller: pairs/s, to Redisson', '>=', 4, redis(1, SNIB), (redis(1, 'redisson'),)),
    Goal('1 caller: pairs/s, to redsync', '>=', 1.5, redis(1, SNIB), (redis(1, 'redsync'),)),
    Goal('32 threads, distinct locks: pairs/s, to as many bare connections', '>=', 1.5, redis(32, SNIB), (redis(32, BARE),)),
    Goal('128 threads, distinct locks: pairs/s, to as many bare connections', '>=', 2.2, redis(128, SNIB), (redis(128, BARE),)),
    Goal('128 asynchronous in flight: pairs/s, to redis-benchmark pipelined', '>=', 0.85, ('async', 128, 'snib, asynchronous', 'pairs_per_s'),
         (('async', 128, 'redis-benchmark', 'pairs_per_s'),)),
    Goal('32 threads, one lock: grants/s, to the bare loop alone', '>=', 5, crowd(32, THREADS), (crowd(1, ALONE),)),
    Goal('32 threads, one lock: most or least served thread, to the mean', '<=', 2, crowd(32, THREADS, 'served')),
    Goal('128 threads, one lock: grants/s, to the bare loop alone', '>=', 5, crowd(128, THREADS), (crowd(1, ALONE),)),
    Goal('128 threads, one lock: most or least served thread, to the mean', '<=', 2, crowd(128, THREADS, 'served')),
    Goal('32 processes, one lock: grants/s, to the bare loop on one core', '>=', 0.6, crowd(32, PROCESSES), (crowd(1, SAME_CORE),)),
    Goal('32 processes, one lock: commands per grant', '<=', 3.1, crowd(32, PROCESSES, 'requests')),
    Goal('32 processes, one lock: grants/s, to 32 clients of Redisson', '>=', 30, crowd(32, PROCESSES), (crowd(32, 'redisson, clients'),)),
    Goal('32 processes, one lock: longest wait, to the mean', '<=', 5, crowd(32, PROCESSES, 'longest_to_mean')),
    Goal('128 processes, one lock: grants/s, to the bare loop on one core', '>=', 0.5, crowd(128, PROCESSES), (crowd(1, SAME_CORE),)),
    Goal('wake-up: p50, to a message and another try', '<=', 0.75, wake('snib'), (wake('message, then retry'),)),
    Goal('wake-up: p50, to Redisson', '<=', 1 / 6, wake('snib'), (wake('redisson'),)),
    Goal('100,000 held locks: ms of the server to renew them all', '<=', 300, (*HELD, 'round_server_ms')),
    Goal('100,000 held locks: % of a core, lease 30 s', '<=', 1, (*HELD, 'core_percent')),
    Goal('100,000 held locks: MiB in the client', '<=', 48, (*HELD, 'client_mib')),
    Goal('`local:`, 1 caller: p50, to two bare SQLite transactions', '<=', 1.3, ('local', 1, SNIB, 'p50_us'),
         (('local', 1, 'bare SQLite transactions', 'p50_us'),)),
    Goal('red multilock, one dead of five: p50, to five alive', '<=', 1.2, DEAD, (ALIVE,)),
    Goal('heap allocations in a pair on Redis', '<=', 0, ('allocations', 1, 'redis', 'allocations')),
]


def number(value):
    """Three digits that count."""
    if value is None:
        return '-'
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f'{value:,.{digits}f}' if value < 1000 else f'{value:,.0f}'


def measured(results, goal):
    return results.ratio(goal.own, *goal.others) if goal.others else results.median(*goal.own)


def goal_rows(results):
    rows = []
    for goal in GOALS:
        value = measured(results, goal)
        met = value is not None and (value <= goal.wanted if goal.sign == '<=' else value >= goal.wanted)
        bound = {'<=': 'at most', '>=': 'at least'}[goal.sign]
        rows.append((goal.what, f'{bound} {number(goal.wanted)}', number(value), 'not measured' if value is None else 'yes' if met else 'no'))
    return rows


def print_goals(results):
    rows = [('', 'wanted', 'measured', 'met'), *goal_rows(results)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    print('What is wanted')
    for what, wanted, value, met in rows:
        print(f'  {what:{widths[0]}}  {wanted:{widths[1]}}  {value:>{widths[2]}}  {met}')


# --- tables for documents


def markdown(head, rows):
    return '\n'.join(['| ' + ' | '.join(head) + ' |', '|---|' + '---:|' * (len(head) - 1)] + ['| ' + ' | '.join(row) + ' |' for row in rows]) + '\n'


def cell(results, *where):
    value, spread = number(results.median(*where)), results.spread(*where)
    return f'{value} ±{spread:.0f} %' if spread is not None and where[-1].endswith('_per_s') and len(results.rounds(*where)) > 1 else value


def systems(results, scenario, size):
    return [r['system'] for r in results.rows if (r['scenario'], r['size']) == (scenario, size)]


def redis_table(results):
    columns = ((1, 'pairs_per_s'), (1, 'p50_us'), (1, 'cpu_us'), (32, 'pairs_per_s'), (128, 'pairs_per_s'))
    rows = [(system, *[cell(results, 'redis', size, system, figure) for size, figure in columns]) for system in systems(results, 'redis', 1)]
    return markdown(('Redis, every caller its own lock', '1 caller: pairs/s', 'p50 us', 'CPU us', '32 threads: pairs/s', '128 threads: pairs/s'), rows)


def other_table(results):
    rows = [(f'{where}: {system}', *[cell(results, scenario, 1, system, figure) for figure in ('pairs_per_s', 'p50_us', 'p99_us', 'cpu_us')])
            for scenario, where in (('local', '`local:`'), ('red', 'red multilock on five Redis servers')) for system in systems(results, scenario, 1)]
    return markdown(('elsewhere, 1 caller', 'pairs/s', 'p50 us', 'p99 us', 'CPU us'), rows)


def crowd_table(results):
    figures = ('grants_per_s', 'mean_ms', 'longest_ms', 'requests')
    rows = []
    for size, system, label in [(1, SAME_CORE, 'a bare socket alone, same core'), (1, ALONE, 'a bare socket alone'), (32, THREADS, 'snib, 32 threads'),
                                (128, THREADS, 'snib, 128 threads'), (1000, THREADS, 'snib, 1,000 threads'), (8, PROCESSES, 'snib, 8 processes'),
                                (32, PROCESSES, 'snib, 32 processes'), (128, PROCESSES, 'snib, 128 processes'),
                                *[(32, f'{p}, clients', f'{p}, 32 clients in one process') for p in PEERS]]:
        if system in systems(results, 'crowds', size):
            rows.append((label, *[cell(results, 'crowds', size, system, figure) for figure in figures]))
    return markdown(('all want one lock on Redis', 'grants/s', 'mean wait ms', 'longest ms', 'requests per grant'), rows)


def wake_table(results):
    rows = [(system, cell(results, 'wake', 1, system, 'p50_us')) for system in systems(results, 'wake', 1)]
    return markdown(('from a release to the grant in another process', 'p50 us'), rows)


def facts(results):
    return '```\n' + ''.join(f'{name + ":":9}{text}\n' for name, text in results.about.items() if name not in PEERS) + ''.join(
        f'{"peer:":9}{results.about[name]}\n' for name in PEERS if name in results.about) + '```\n'


def document(results):
    return '\n'.join([facts(results), redis_table(results), other_table(results), crowd_table(results), wake_table(results)])


def goals_document(results):
    return markdown(('figure', 'wanted', 'measured', 'met'), goal_rows(results))


# --- the picture

WIDTH, HEIGHT = 980, 760
TEXT, GRID = '#768390', '#76839055'  # readable on light and on dark
COLOURS = {'snib': '#2f81f7', 'snib, processes': '#a371f7', 'bare': '#8b949e', 'hiredis': '#57ab5a', 'redisson': '#e5534b', 'redsync': '#c69026',
           'redis-py': '#39a0a8', 'python-redis-lock': '#d6699e', 'node-redlock': '#9a7b4f'}


def text(x, y, words, anchor='start', size=12, colour=TEXT, more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"{more}>{escape(words)}</text>'


def short(value):
    return f'{value / 1000:g}k' if 1000 <= value < 1e6 else f'{value / 1e6:g}M' if value >= 1e6 else f'{value:g}'


def decades(low, high):
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def ticks(low, high):
    """1, 2 and 5 of every decade, or 1 alone where there are many."""
    steps = (1, 2, 5) if high / low < 200 else (1,)
    return [d * s for d in decades(low, high) for s in steps if low <= d * s <= high]


class Scale:
    """Logarithmic."""

    def __init__(self, values, start, end):
        self.low, self.high = min(values) / 1.25, max(values) * 1.25
        self.start, self.end = start, end

    def at(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)


def apart(places, distance):
    """The same places, moved so far that labels there do not cover each other: [(place, moved)] of a sorted list."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + distance) if moved else place)
    return moved


def line_panel(x, y, width, height, title, unit, below, series):
    """series: [(name, colour, dashed, [(size, value)])], both axes logarithmic, names at the right end."""
    series = [s for s in series if s[3]]
    out = [text(x, y - 14, title, size=14, more=' font-weight="bold"'), text(x, y + height + 34, below), text(x - 6, y + 2, unit, 'end', 11)]
    if not series:
        return out
    names = 128  # for the labels
    across = Scale([s for _, _, _, points in series for s, _ in points] + [2], x, x + width - names)
    up = Scale([v for _, _, _, points in series for _, v in points], y + height, y + 10)
    for value in ticks(up.low, up.high):
        out.append(f'<line x1="{x}" x2="{x + width - names}" y1="{up.at(value):.1f}" y2="{up.at(value):.1f}" stroke="{GRID}"/>')
        out.append(text(x - 6, up.at(value) + 4, short(value), 'end', 11))
    for size in sorted({s for _, _, _, points in series for s, _ in points}):
        out.append(text(across.at(size), y + height + 16, short(size), 'middle', 11))
    for _, colour, dashed, points in series:
        path = ' '.join(f'{across.at(s):.1f},{up.at(v):.1f}' for s, v in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"' + (' stroke-dasharray="5 4"' if dashed else '') + '/>')
        out += [f'<circle cx="{across.at(s):.1f}" cy="{up.at(v):.1f}" r="3" fill="{colour}"/>' for s, v in points]
    ordered = sorted(series, key=lambda s: up.at(s[3][-1][1]))
    for (name, colour, _, _), place in zip(ordered, apart([up.at(s[3][-1][1]) for s in ordered], 14)):
        out.append(text(x + width - names + 8, place + 4, name, colour=colour))
    return out


def bar_panel(x, y, width, title, below, bars):
    """bars: [(name, colour, value)]; the axis is logarithmic, shorter is better."""
    out = [text(x, y - 14, title, size=14, more=' font-weight="bold"')]
    if not bars:
        return out
    names, step = 150, 26
    across = Scale([v for _, _, v in bars], x + names, x + width - 60)
    across.low /= 2
    bottom = y + step * len(bars)
    for value in ticks(across.low, across.high):
        out.append(f'<line x1="{across.at(value):.1f}" x2="{across.at(value):.1f}" y1="{y}" y2="{bottom}" stroke="{GRID}"/>')
        out.append(text(across.at(value), bottom + 14, short(value), 'middle', 11))
    for i, (name, colour, value) in enumerate(bars):
        top = y + step * i + 4
        out.append(text(x + names - 8, top + 13, name, 'end'))
        out.append(f'<rect x="{x + names}" y="{top}" width="{across.at(value) - x - names:.1f}" height="{step - 8}" rx="2" fill="{colour}"/>')
        out.append(text(across.at(value) + 6, top + 13, number(value), colour=colour))
    return [*out, text(x + names, bottom + 32, below)]


def points(results, scenario, system, figure):
    found = [(r['size'], results.median(scenario, r['size'], system, figure)) for r in results.rows if (r['scenario'], r['system']) == (scenario, system)]
    return sorted((size, value) for size, value in found if value)


def distinct_panel(results):
    series = [('snib', SNIB, False), ('bare', BARE, True)] + [(p, p, False) for p in PEERS]
    return line_panel(60, 60, 440, 250, 'Every thread its own lock', 'pairs/s', 'threads; snib through one connection, bare: a socket each',
                      [(name if name != 'bare' else 'bare sockets', COLOURS[name], dashed, points(results, 'redis', system, 'pairs_per_s'))
                       for name, system, dashed in series])


def crowd_panel(results):
    alone = results.median(*crowd(1, SAME_CORE))
    series = [('snib, threads', COLOURS['snib'], False, points(results, 'crowds', THREADS, 'grants_per_s')),
              ('snib, processes', COLOURS['snib, processes'], False, points(results, 'crowds', PROCESSES, 'grants_per_s'))]
    series += [(p, COLOURS[p], False, points(results, 'crowds', f'{p}, clients', 'grants_per_s')) for p in PEERS]
    if alone:
        series.append(('bare, same core', COLOURS['bare'], True, [(1, alone), (1000, alone)]))
    return line_panel(560, 60, 410, 250, 'All want one lock', 'grants/s', 'callers; of peers, clients in one process', series)


def bars(results, scenario, who, figure='p50_us'):
    found = [(name, COLOURS[colour], results.median(scenario, 1, system, figure)) for name, system, colour in who]
    return [bar for bar in found if bar[2]]


def lone_panel(results):
    who = [('snib', SNIB, 'snib'), ('snib, without looking', UNLOOKING, 'snib'), ('bare, looking 50 us', LOOKING, 'bare'), ('bare, blocking', BARE, 'bare'),
               ('hiredis', 'hiredis connections', 'hiredis')] + [(p, p, p) for p in PEERS]
    return bar_panel(20, 420, 480, 'One caller: acquire and release', 'p50, us; shorter is better', bars(results, 'redis', who))


def wake_panel(results):
    who = [('snib', 'snib', 'snib'), ('message, then retry', 'message, then retry', 'bare')] + [(p, p, p) for p in PEERS]
    return bar_panel(520, 420, 450, 'From a release to the grant in another process', 'p50, us; shorter is better', bars(results, 'wake', who))


def chart(results):
    body = [*distinct_panel(results), *crowd_panel(results), *lone_panel(results), *wake_panel(results)]
    body.append(text(20, HEIGHT - 14, f'{results.about.get("machine", "")}; {results.about.get("server", "").split(",")[0]}; '
                                      f'medians of interleaved rounds, {results.about.get("date", "")}', size=11))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            'font-family="DejaVu Sans, Verdana, sans-serif">\n<title>What a lock costs</title>\n' + '\n'.join(body) + '\n</svg>\n')


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ('goals', 'chart'):
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 64
    results = Results(sys.argv[2])
    if sys.argv[1] == 'goals':
        print_goals(results)
    else:
        sys.stdout.write(chart(results))
    return 0


if __name__ == '__main__':
    sys.exit(main())
