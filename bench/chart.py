#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture of the results of a run of script/bench, as SVG. Standard library only.

    bench/chart.py FILE

Four panels: pairs and grants a second by the number of callers, and the times of one caller and of
a wake-up. Colours are such that they can be read on a light and on a dark page; all axes of figures
are logarithmic. What was not measured is left out. """

import math
import sys
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True
from report import BARE, LOOKING, PEERS, PROCESSES, SAME_CORE, SNIB, THREADS, UNLOOKING, Results, crowd, number  # noqa: E402 (its place is above)

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
    """Sorted places, moved down as far as labels there need to not cover each other."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + distance) if moved else place)
    return moved


def line_panel(x, y, width, height, title, unit, below, series):
    """series: [(name, colour, dashed, [(size, value)])], both axes logarithmic, names at the right
    end."""
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
    if len(sys.argv) != 2:
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 64
    sys.stdout.write(chart(Results(sys.argv[1])))
    return 0


if __name__ == '__main__':
    sys.exit(main())
