"""Two builds of Cermet on the same rows in one run, for bench/gpu_suite.py --compare: rounds of A B B A, ratios of each round, and what is slower."""
import pathlib
import shutil
import statistics
import tempfile

from gpu_measure import ROOT, Refused
from gpu_rows import seconds_of

ROUNDS = 1          # of A B B A
CONFIRM_ROUNDS = 2  # for rows that seem slower
TOGETHER = 40       # rows of one process
SLOWER = 1.01


def verdict(a, b):
    """Of paired seconds: median of b/a, and 'slower' only where the builds differ by more than A differs from itself."""
    ratio = statistics.median(y / x for x, y in zip(a, b))
    spread = max(a) / min(a)
    if ratio <= SLOWER:
        return ratio, spread, 'faster' if ratio < 1 / max(SLOWER, spread) else 'same'
    return ratio, spread, 'slower' if ratio > spread or min(b) > max(a) else 'unclear'


def paired(measure, builds, rounds):
    """measure(build) gives seconds by row; returns {row: (seconds of A, seconds of B)} in the order A B B A."""
    times = {}
    for _ in range(rounds):
        for index in (0, 1, 1, 0):
            for name, seconds in measure(builds[index]).items():
                times.setdefault(name, ([], []))[index].append(seconds)
    return {name: pair for name, pair in times.items() if len(pair[0]) == len(pair[1])}


def more_options(build, other):
    """A build that can draw every element by itself beside one that cannot repeats them, too: otherwise their operands cost different power."""
    both = [each.takes('bench suite', '--period') for each in (build, other)]
    return ['--period', '65536'] if both == [True, False] else []


def compare_operators(rows, builds, seconds):
    calls = [row for row in rows if 'op' in row]
    times = {}

    def measure(members, build):
        other = builds[1] if build is builds[0] else builds[0]
        found, _ = build.operators(members, seconds, more=more_options(build, other))
        return {name: figures['seconds'] for name, figures in found.items() if 'seconds' in figures}

    calls.sort(key=lambda row: seconds_of(row, seconds))
    for members in (calls[i:i + TOGETHER] for i in range(0, len(calls), TOGETHER)):
        times.update(paired(lambda build, members=members: measure(members, build), builds, ROUNDS))
    doubtful = [row for row in calls if row['name'] in times and verdict(*times[row['name']])[2] in ('slower', 'unclear')]
    if doubtful:
        times.update(paired(lambda build: measure(doubtful, build), builds, CONFIRM_ROUNDS))
    return times


def compare_models(rows, builds):
    times = {}
    with tempfile.TemporaryDirectory(prefix='cermet-compare-') as scratch:
        for row in rows:
            if row['batch'] > 1 and not all(build.takes('bench model', '--batch') for build in builds):
                continue
            folder = pathlib.Path(scratch) / row['model'].lower()
            if not folder.exists():
                for old in pathlib.Path(scratch).glob('llama*'):
                    shutil.rmtree(old)
                builds[0].synthesize(ROOT / row['config'], folder)

            def measure(build, row=row, folder=folder):
                try:
                    cache = pathlib.Path(scratch) / f'cache-{builds.index(build)}'
                    return {row['name']: build.model(folder, row, cache, 64, repeat=2)['seconds']}
                except Refused as error:
                    print(row['name'], error, flush=True)
                    return {}
            times.update(paired(measure, builds, 1))
    return times


def report(times):
    """Prints a line a row; returns the names of rows that are slower."""
    slower = []
    for name, (a, b) in times.items():
        ratio, spread, word = verdict(a, b)
        if word == 'slower':
            slower.append(name)
        print(f"{name:<44} {1e6 * statistics.median(a):>10.2f} {1e6 * statistics.median(b):>10.2f} us  {ratio:.3f}  {word if word != 'same' else ''}"
              f"{f' (A itself varies by {100 * (spread - 1):.1f} %)' if word in ('slower', 'unclear') else ''}")
    ratios = [verdict(*pair)[0] for pair in times.values()]
    if ratios:
        print(f'{len(times)} rows, ratio of B to A: median {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}; '
              f"slower by more than 1 %: {', '.join(slower) or 'none'}")
    return slower
