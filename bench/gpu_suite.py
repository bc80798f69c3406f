"""Measures Cermet on a GPU beside the machine's limits and its rivals, all in one run, and records it in bench/results/.

usage: python3 bench/gpu_suite.py [NAME] [--rivals FOLDER] [--folder h200] [--out FILE] [--operators-only] [--no-rivals] [--seconds 0.05] [--only TEXT]
       python3 bench/gpu_suite.py --compare BUILD_A BUILD_B [--operators-only] [--only TEXT]
CERMET_BUILD names the folder of the build (default: build); the plain python3 there should have torch, otherwise the record has no PyTorch. FOLDER has what
script/build-rivals built. --compare measures two builds in turn, prints B / A for each row and fails where B is slower by more than 1 %.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from gpu_compare import compare_models, compare_operators, report as report_comparison
from gpu_measure import ROOT, Build, measure_models, measure_operators, run_json, start_rivals
from gpu_rows import fastest_rival, goal_of, model_rows, operator_rows


def machine(build):
    query = 'name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit'
    smi = subprocess.run(['nvidia-smi', f'--query-gpu={query}', '--format=csv,noheader'], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return {'gpu': dict(zip(query.split(','), (part.strip() for part in smi.splitlines()[0].split(',')))) if smi else {},
            'env': run_json([build.cermet, 'env', '--json'])}


def report(rows):
    for row in rows:
        name, rival = fastest_rival(row)
        beside = f"{1e6 * rival['seconds']:>9.2f} {name}" if rival else ''
        if 'error' in row:
            print(f"{row['name']:<44} {row['error'][:100]} {beside}")
            continue
        goal, reached = goal_of(row) if 'goal' in row else ('', None)
        word = {True: 'reached', False: 'MISSED', None: ''}[reached]
        print(f"{row['name']:<44} {1e6 * row['seconds']:>9.2f} us  {beside:<22} {word} {goal} {row.get('kernel', '')}")


def write(record, path, private):
    """A record names no folder of the machine that it was made on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    asked = lambda row: {key: value for key, value in row.items() if key != 'rival'}  # how rivals were asked is in bench/gpu_rows.py
    record = {**record, **{part: [asked(row) for row in record[part]] for part in ('operators', 'models') if part in record}}
    text = json.dumps(record, indent=1) + '\n'
    for place in private:
        text = text.replace(place + '/', '')
    temporary = path.with_suffix('.tmp')
    temporary.write_text(text)
    temporary.rename(path)


def suite(args, rows, models):
    begin = time.time()
    build = Build(os.environ.get('CERMET_BUILD', ROOT / 'build'))
    record = {'date': datetime.date.today().isoformat(), 'command': 'script/bench-gpu', 'nvrtc_cache': False, 'machine': machine(build)}
    rivals = [] if args.no_rivals else start_rivals(args.rivals, args.autotune)
    record['rivals'] = {rival.name: rival.version for rival in rivals}
    record.update({'limits': measure_operators(build, rivals, rows, args.seconds), 'operators': rows, 'models': [], 'operators_seconds': time.time() - begin})
    out = args.out or ROOT / 'bench/results' / args.folder / f'{args.name}.json'
    with tempfile.TemporaryDirectory(prefix='cermet-bench-') as scratch:
        private = (str(ROOT), scratch, str(build.folder), str(pathlib.Path.home()))
        write(record, out.with_suffix('.operators'), private)  # what there is, should the models fail
        measure_models(build, rivals, models, pathlib.Path(scratch))
    for rival in rivals:
        rival.close()
    record.update({'models': models, 'seconds': time.time() - begin})
    report(rows + models)
    write(record, out, private)
    out.with_suffix('.operators').unlink()
    print(f"wrote {out} after {record['seconds']:.0f} s ({record['operators_seconds']:.0f} s of operators)")


def compare(args, rows, models):
    builds = [Build(folder) for folder in args.compare]
    times = compare_operators(rows, builds, args.seconds)
    times.update(compare_models(models, builds))
    slower = report_comparison(times)
    if args.out:
        write({'date': datetime.date.today().isoformat(), 'machine': machine(builds[1]), 'seconds': times, 'slower': slower}, args.out,
              (str(ROOT), *(str(build.folder) for build in builds)))
    return 1 if slower else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', nargs='?', default=datetime.date.today().isoformat())
    parser.add_argument('--folder', default='h200', help='of the record, below bench/results')
    parser.add_argument('--out', type=pathlib.Path, help='file of the record, in place of bench/results/FOLDER/NAME.json')
    parser.add_argument('--compare', nargs=2, metavar=('BUILD_A', 'BUILD_B'), help='measure two builds in turn, and nothing else')
    parser.add_argument('--rivals', type=pathlib.Path, help='folder of programs that script/build-rivals built')
    parser.add_argument('--operators-only', action='store_true')
    parser.add_argument('--no-rivals', action='store_true')
    parser.add_argument('--autotune', action='store_true', help="PyTorch's max-autotune on some rows, too, which takes minutes")
    parser.add_argument('--only', action='append', help='rows whose name or group contains this')
    parser.add_argument('--seconds', type=float, default=0.05, help='for each row that does not draw full power')
    args = parser.parse_args()
    wanted = lambda row: not args.only or any(text in row['name'] or text in row['group'] for text in args.only)
    rows = [row for row in operator_rows() if wanted(row)]
    models = [] if args.operators_only else [row for row in model_rows() if wanted(row)]
    return compare(args, rows, models) if args.compare else suite(args, rows, models)


if __name__ == '__main__':
    sys.exit(main())
