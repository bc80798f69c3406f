"""Runs the CPU benchmarks and writes one record: machine, date, commands, limits and figures of one run.

usage: python3 bench/record.py [NAME] [--rival-python PYTHON]
PYTHON is an interpreter with torch and transformers; without one, the record has no rival.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CERMET = ROOT / 'build/bin/cermet'
SHAPE = ROOT / 'bench/models/llama-3.2-1b.json'


def run_json(command):
    print('+', ' '.join(str(part) for part in command), flush=True)
    return json.loads(subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout)


def machine():
    fields = dict(line.split(':', 1) for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines() if ':' in line)
    names = {key.strip(): value.strip() for key, value in fields.items()}
    return {'cpu': names.get('model name', 'unknown'), 'env': run_json([CERMET, 'env', '--json'])}


def linear(m, n, k, dtype='bf16'):
    return run_json([CERMET, 'bench', 'op', 'linear', '--shape', f'x={dtype}[{m},{k}] w={dtype}[{n},{k}]', '--cold', '--json'])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('name', nargs='?', default=datetime.date.today().isoformat())
    parser.add_argument('--rival-python')
    args = parser.parse_args()
    record = {'date': datetime.date.today().isoformat(), 'command': 'script/bench', 'machine': machine(), 'models': [], 'rivals': [], 'operators': []}
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / 'llama-3.2-1b'
        subprocess.run([CERMET, 'synth', '--config', SHAPE, '--out', model, '--seed', '1'], check=True)
        for dtype in ('bf16', 'f32'):
            figures = run_json([CERMET, 'bench', 'model', model, '--dtype', dtype, '--prompt-tokens', '512', '--new-tokens', '32', '--repeat', '3', '--limits', '--json'])
            figures['model'] = 'Llama-3.2-1B shape'
            record['models'].append(figures)
            if dtype == 'bf16' and args.rival_python:
                record['rivals'].append(run_json([args.rival_python, ROOT / 'bench/rivals/pytorch.py', SHAPE, '--threads', str(figures['threads'])]))
    demo = run_json([CERMET, 'bench', 'model', 'models/demo', '--prompt-tokens', '512', '--new-tokens', '64', '--repeat', '5', '--limits', '--json'])
    record['models'].append(demo)
    record['limits'] = run_json([CERMET, 'limits', '--json'])
    for m in (1, 8, 128, 512):
        for n, k in ((8192, 2048), (2048, 8192)):
            record['operators'].append(linear(m, n, k))
    out = ROOT / 'bench/results/cpu' / f'{args.name}.json'
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_suffix('.tmp')
    temporary.write_text(json.dumps(record, indent=1) + '\n')
    temporary.rename(out)
    print('wrote', out.relative_to(ROOT))


if __name__ == '__main__':
    main()
