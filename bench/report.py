#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be said of the results of a run of script/bench, which snib-bench writes as JSON
(bench/report.c).

    bench/report.py FILE   prints the figures that are wanted, beside those that were measured

The tables of the documents are made here too, for tools/gen-docs; the picture is made by chart.py.
It judges nothing: whatever the figures are, the exit status is 0. Standard library only. """

import json
import math
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

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
        """The median of the rounds' ratios, to the lowest of the others; of figures of different
        scenarios the medians' ratio."""
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
    cases: tuple = ()  # of (own, others), in place of both: the worst of them counts


def redis(size, system, figure='pairs_per_s'):
    return ('redis', size, system, figure)


def crowd(size, system, figure='grants_per_s'):
    return ('crowds', size, system, figure)


def wake(system):
    return ('wake', 1, system, 'p50_us')


LOOPS, BUSY_THREADS, DELAYS = (0, 1, 2), (1, 2, 4, 8, 32, 128), (20, 60, 120, 400)


def busy(loops, size, system, figure):
    return (f'busy, {loops}', size, system, figure)


def delayed(us, system, figure='p50_us'):
    return (f'delays, {us} us', 1, system, figure)


def busy_cases(figure, *others):
    return tuple((busy(n, t, SNIB, figure), tuple(busy(n, t, o, figure) for o in others)) for n in LOOPS for t in BUSY_THREADS)


DELAYED_BARE = ('bare, blocking', LOOKING, 'bare, looking 200 us')
DELAY_CASES = tuple((delayed(us, SNIB), tuple(delayed(us, b) for b in DELAYED_BARE)) for us in DELAYS)

THREADS, PROCESSES, ALONE = 'lock, threads', 'lock, processes', 'lock, bare and alone'
TOGETHER, SAME_CORE = 'lock, processes, same core', 'lock, bare, same core'
HELD = ('held', 100000, 'snib')
ALIVE, DEAD = ('red', 1, 'five alive', 'p50_us'), ('red', 1, 'one of five dead', 'p50_us')
HANDED = [('red hand-over', 1, system, 'p50_us') for system in ('red, three', 'red, five', 'one server, a plain lock')]

GOALS = [
    Goal('1 caller: p50, to the better bare loop, blocking or looking', '<=', 1.05, redis(1, SNIB, 'p50_us'),
         (redis(1, BARE, 'p50_us'), redis(1, LOOKING, 'p50_us'))),
    Goal('1 caller, without looking: p50, to the bare blocking loop', '<=', 1.05, redis(1, UNLOOKING, 'p50_us'), (redis(1, BARE, 'p50_us'),)),
    Goal('1 caller, without looking: CPU per pair, to the same', '<=', 1.10, redis(1, UNLOOKING, 'cpu_us'), (redis(1, BARE, 'cpu_us'),)),
    Goal('1 caller: pairs/s, to Redisson', '>=', 4, redis(1, SNIB), (redis(1, 'redisson'),)),
    Goal('1 caller: pairs/s, to redsync', '>=', 1.5, redis(1, SNIB), (redis(1, 'redsync'),)),
    Goal('32 threads, distinct locks: pairs/s, to as many bare connections', '>=', 1.5, redis(32, SNIB), (redis(32, BARE),)),
    Goal('128 threads, distinct locks: pairs/s, to as many bare connections', '>=', 2.2, redis(128, SNIB), (redis(128, BARE),)),
    Goal('0 to 2 loops beside it, 1 to 128 threads, the worst: pairs/s, to without looking', '>=', 0.9, (),
         cases=busy_cases('pairs_per_s', UNLOOKING)),
    Goal('0 to 2 loops beside it, 1 to 128 threads, the worst: pairs/s, to bare connections', '>=', 0.8, (), cases=busy_cases('pairs_per_s', BARE)),
    Goal('0 to 2 loops beside it, 1 to 128 threads, the worst: p99, to the better of both', '<=', 1.5, (), cases=busy_cases('p99_us', UNLOOKING, BARE)),
    Goal('answers of 20, 60, 120, 400 us, the worst: p50, to the best bare loop', '<=', 1.1, (), cases=DELAY_CASES),
    Goal('128 asynchronous in flight: pairs/s, to redis-benchmark pipelined', '>=', 0.85, ('async', 128, 'snib, asynchronous', 'pairs_per_s'),
         (('async', 128, 'redis-benchmark', 'pairs_per_s'),)),
    Goal('32 threads, one lock: grants/s, to the bare loop alone', '>=', 5, crowd(32, THREADS), (crowd(1, ALONE),)),
    Goal('32 threads, one lock: most or least served thread, to the mean', '<=', 2, crowd(32, THREADS, 'served')),
    Goal('128 threads, one lock: grants/s, to the bare loop alone', '>=', 5, crowd(128, THREADS), (crowd(1, ALONE),)),
    Goal('128 threads, one lock: most or least served thread, to the mean', '<=', 2, crowd(128, THREADS, 'served')),
    Goal('32 processes, one lock, all on one core: grants/s, to the bare loop there', '>=', 0.6, crowd(32, TOGETHER), (crowd(1, SAME_CORE),)),
    Goal('32 processes, one lock: commands per grant', '<=', 3.1, crowd(32, PROCESSES, 'requests')),
    Goal('32 processes, one lock: grants/s, to 32 clients of Redisson', '>=', 30, crowd(32, PROCESSES), (crowd(32, 'redisson, clients'),)),
    Goal('32 processes, one lock: longest wait, to the mean', '<=', 5, crowd(32, PROCESSES, 'longest_to_mean')),
    Goal('128 processes, one lock, all on one core: grants/s, to the bare loop there', '>=', 0.5, crowd(128, TOGETHER), (crowd(1, SAME_CORE),)),
    Goal('wake-up: p50, to a message and another try', '<=', 0.75, wake('snib'), (wake('message, then retry'),)),
    Goal('wake-up: p50, to Redisson', '<=', 1 / 6, wake('snib'), (wake('redisson'),)),
    Goal('100,000 held locks: ms of the server to renew them all', '<=', 300, (*HELD, 'round_server_ms')),
    Goal('100,000 held locks: % of a core, lease 30 s', '<=', 1, (*HELD, 'core_percent')),
    Goal('100,000 held locks: MiB in the client', '<=', 48, (*HELD, 'client_mib')),
    Goal('`local:`, 1 caller: p50, to two bare SQLite transactions', '<=', 1.3, ('local', 1, SNIB, 'p50_us'),
         (('local', 1, 'bare SQLite transactions', 'p50_us'),)),
    Goal('red multilock, one dead of five: p50, to five alive', '<=', 1.2, DEAD, (ALIVE,)),
    Goal('red multilock of three and of five, the worse: p50 of the hand-over, to that of one server', '<=', 3, (),
         cases=[(own, HANDED[2:]) for own in HANDED[:2]]),
    Goal('heap allocations in a pair on Redis', '<=', 0, ('allocations', 1, 'redis', 'allocations')),
]


def number(value):
    """Three digits that count."""
    if value is None:
        return '-'
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f'{value:,.{digits}f}' if value < 1000 else f'{value:,.0f}'


def measured(results, goal):
    if goal.cases:
        ratios = [results.ratio(own, *others) for own, others in goal.cases]
        return None if None in ratios else max(ratios) if goal.sign == '<=' else min(ratios)
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
                                (128, THREADS, 'snib, 128 threads'), (1000, THREADS, 'snib, 1,000 threads'), (32, TOGETHER, 'snib, 32 processes, same core'),
                                (8, PROCESSES, 'snib, 8 processes'),
                                (32, PROCESSES, 'snib, 32 processes'), (128, PROCESSES, 'snib, 128 processes'),
                                *[(32, f'{p}, clients', f'{p}, 32 clients in one process') for p in PEERS]]:
        if system in systems(results, 'crowds', size):
            rows.append((label, *[cell(results, 'crowds', size, system, figure) for figure in figures]))
    return markdown(('all want one lock on Redis', 'grants/s', 'mean wait ms', 'longest ms', 'requests per grant'), rows)


def wake_table(results):
    rows = [(system, cell(results, 'wake', 1, system, 'p50_us')) for system in systems(results, 'wake', 1)]
    return markdown(('from a release to the grant in another process', 'p50 us'), rows)


def busy_table(results):
    rows = []
    for threads in BUSY_THREADS:
        row = [str(threads)]
        for loops in LOOPS:
            own = busy(loops, threads, SNIB, 'pairs_per_s')
            row += [number(results.median(*own))] + [number(results.ratio(own, busy(loops, threads, other, 'pairs_per_s'))) for other in (UNLOOKING, BARE)]
        rows.append(row)
    return markdown(('threads; endless loops beside them', *[words for n in LOOPS for words in (f'{n}: pairs/s', 'to without looking', 'to bare')]), rows)


def delays_table(results):
    columns = [(us, figure) for us in DELAYS for figure in ('p50_us', 'cpu_us')]
    rows = [(system, *[number(results.median(*delayed(us, system, figure))) for us, figure in columns]) for system in (*DELAYED_BARE, 'bare, looking 500 us', SNIB)]
    return markdown(('1 caller, each answer leaves so long after its request', *[f'{us} us: p50 us' if f == 'p50_us' else 'CPU us' for us, f in columns]), rows)


FIGURES = (
    ('one caller, acquire and release: p50 us', redis(1, SNIB, 'p50_us'), 'a blocking socket that runs the same scripts', redis(1, BARE, 'p50_us')),
    ('128 threads, each its own lock: pairs/s', redis(128, SNIB), 'as many such sockets', redis(128, BARE)),
    ('32 threads, one lock: grants/s', crowd(32, THREADS), 'one such socket alone', crowd(1, ALONE)),
    ('from a release to the grant in another process: p50 us', wake('snib'), 'Redisson', wake('redisson')))


def figures_document(results):
    """The few that matter, for the README."""
    return markdown(('on Redis', 'snib', 'beside it'),
                    [(what, number(results.median(*own)), f'{number(results.median(*other))}: {beside}') for what, own, beside, other in FIGURES])


def facts(results):
    return '```\n' + ''.join(f'{name + ":":9}{text}\n' for name, text in results.about.items() if name not in PEERS) + ''.join(
        f'{"peer:":9}{results.about[name]}\n' for name in PEERS if name in results.about) + '```\n'


def document(results):
    tables = [redis_table(results)]
    if systems(results, 'busy, 0', 1):
        tables.append(busy_table(results))
    if systems(results, f'delays, {DELAYS[0]} us', 1):
        tables.append(delays_table(results))
    return '\n'.join([facts(results), *tables, other_table(results), crowd_table(results), wake_table(results)])


def goals_document(results):
    return markdown(('figure', 'wanted', 'measured', 'met'), goal_rows(results))


def main():
    if len(sys.argv) != 2:
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 64
    print_goals(Results(sys.argv[1]))
    return 0


if __name__ == '__main__':
    sys.exit(main())
