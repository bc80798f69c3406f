"""Holds the modelled times that kernels are chosen by against recorded ones.

usage: python3 bench/cost_models.py [RECORD] [--device null:sm_90] [--rows]
RECORD is a file that bench/gpu_suite.py wrote (default: bench/results/h200/h200.json). CERMET_BUILD names the folder of the build (default: build). Prints, for
each family of kernels, how many recorded calls were modelled and modelled / recorded time: the median, the least and the most; cuBLASLt's are those of the
rival of that name. Then the calls for which another kernel would be chosen now than was recorded, with the recorded time of both where there is one.
--rows prints every call. Needs no GPU.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = 'cublaslt.linear'


def explain(row, device):
    program = pathlib.Path(os.environ.get('CERMET_BUILD', ROOT / 'build')) / 'bin/cermet'
    if not program.exists():
        program = program.parent.parent / 'cermet'
    done = subprocess.run([program, 'explain', 'op', row['op'], '--shape', row['shape'], '--device', device, '--json'], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def modelled_seconds(explained, kernel, config='default'):
    for candidate in explained['candidates']:
        for way in candidate['configs'] if candidate['kernel'] == kernel else []:
            if way['config'] == config:
                return way['modelled_seconds']
    return None


def recorded_seconds(row, kernel):
    """Of a kernel in this row: its own, or where it is the library the rival's, which measures the algorithm that is taken here."""
    if kernel == row['kernel']:
        return row['seconds']
    return row.get('rivals', {}).get('cuBLASLt', {}).get('seconds') if kernel == LIBRARY and row['op'] == 'linear' else None


def family_of(row, kernel):
    """Kernels of one family in one element type, where few rows are modelled apart from many."""
    return f"{kernel} {row['shape'].split('=')[1].split('[')[0]}"


def ratios_of(rows, device, print_rows):
    families, changes = collections.defaultdict(list), []
    for row in rows:
        explained = explain(row, device)
        for kernel in (row['kernel'], LIBRARY):
            modelled, recorded = modelled_seconds(explained, kernel, row.get('config', 'default') if kernel == row['kernel'] else 'default'), recorded_seconds(row, kernel)
            if modelled and recorded:
                families[family_of(row, kernel)].append((modelled / recorded, row['name']))
                if print_rows:
                    print(f"{row['name']:<44} {kernel:<32} modelled {1e6 * modelled:>9.2f} us, recorded {1e6 * recorded:>9.2f} us, {modelled / recorded:.2f}")
        now = explained['kernel'], explained['config']
        if now != (row['kernel'], row.get('config', 'default')):
            changes.append((row, *now, recorded_seconds(row, now[0]) if now[1] == 'default' else None))
    return families, changes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('record', nargs='?', type=pathlib.Path, default=ROOT / 'bench/results/h200/h200.json')
    parser.add_argument('--device', default='null:sm_90')
    parser.add_argument('--rows', action='store_true')
    args = parser.parse_args()
    rows = [row for row in json.loads(args.record.read_text())['operators'] if 'shape' in row and 'seconds' in row and 'uneven' not in row['name']]
    families, changes = ratios_of(rows, args.device, args.rows)
    print(f"{'modelled / recorded':<44} {'calls':>5} {'median':>7} {'least':>6} {'most':>6}")
    for family, ratios in sorted(families.items()):
        print(f'{family:<44} {len(ratios):>5} {statistics.median(r for r, _ in ratios):>7.2f} {min(ratios)[0]:>6.2f} {max(ratios)[0]:>6.2f}')
    for row, kernel, config, seconds in changes:
        beside = f'{1e6 * seconds:.2f} us' if seconds else 'not recorded'
        print(f"{row['name']}: {row['kernel']} was recorded at {1e6 * row['seconds']:.2f} us; chosen now: {kernel}, {config}: {beside}")
    return 0


if __name__ == '__main__':
    sys.exit(main())
