"""Measures Cermet on a GPU beside the machine's limits and PyTorch, all in one run, and records it in bench/results/.

usage: python3 bench/gpu_suite.py [NAME] [--folder h200] [--out FILE] [--operators-only] [--no-peers] [--seconds 0.1] [--only TEXT]
CERMET_BUILD names the folder of the build (default: build); the plain python3 there should have torch, otherwise the record has no peers.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('CERMET_BUILD', ROOT / 'build')).resolve()
CERMET = BUILD / 'bin/cermet'
MODELS = [('Llama-3.2-1B', ROOT / 'bench/models/llama-3.2-1b.json', {'bf16': 800e-6, 'i8': 500e-6}),
          ('Llama-3.1-8B', ROOT / 'bench/models/llama-3.1-8b.json', {'bf16': 4000e-6, 'i8': 2300e-6})]
CONTEXT = 512


def memory_bound_rows():
    """Operators that move bytes: 4.1 TB/s with many tokens, 2.2 us with few."""
    shapes = {
        'add_rms_norm': ('add_rms_norm', 'x=bf16[{t},4096] residual=bf16[{t},4096] weight=bf16[4096]'),
        'rms_norm_quant': ('rms_norm_quant', 'x=bf16[{t},4096] weight=bf16[4096]'),
        'add_rms_norm_quant': ('add_rms_norm_quant', 'x=bf16[{t},4096] residual=bf16[{t},4096] weight=bf16[4096]'),
        'silu_and_mul': ('silu_and_mul', 'x=bf16[{t},28672]'),
        'silu_and_mul_quant': ('silu_and_mul_quant', 'x=bf16[{t},28672]'),
        'dynamic_quant 4096': ('dynamic_quant', 'x=bf16[{t},4096]'),
        'dynamic_quant 14336': ('dynamic_quant', 'x=bf16[{t},14336]'),
    }
    for name, (op, shape) in shapes.items():
        for tokens in (16384, 16, 1):
            target = {'bytes_per_second': 4.1e12} if tokens == 16384 else {'seconds': 2.2e-6}
            yield {'name': f'{name} T{tokens}', 'group': 'memory-bound', 'op': op, 'shape': shape.format(t=tokens), 'target': target}


def product_rows():
    targets = {(6144, 4096): (15.0, 8.6), (4096, 4096): (11.2, 6.6), (28672, 4096): (53.5, 28.5), (4096, 14336): (28.5, 15.8)}
    for (n, k), (bf16, codes) in targets.items():
        yield {'name': f'linear bf16 M1 N{n} K{k}', 'group': 'products of one row', 'op': 'linear', 'shape': f'x=bf16[1,{k}] w=bf16[{n},{k}]',
               'target': {'seconds': bf16 * 1e-6}}
        for code, dtype in (('i8', 'i8'), ('f8', 'f8_e4m3')):
            # PyTorch's fp8 product of rows wants more than one of them.
            yield {'name': f'scaled_mm {code} M1 N{n} K{k}', 'group': 'products of one row', 'op': 'scaled_mm', 'target': {'seconds': codes * 1e-6},
                   'peer': f'scaled_mm {code} M16 N{n} K{k}',
                   'shape': f'a={dtype}[1,{k}] b={dtype}[{n},{k}] a_scale=f32[1] b_scale=f32[{n}] out_dtype=bf16'}
    yield {'name': 'scaled_mm i8 M8192 N4096 K4096', 'group': 'products of many rows', 'op': 'scaled_mm',
           'target': {'operations_per_second': 1300e12}, 'shape': 'a=i8[8192,4096] b=i8[4096,4096] a_scale=f32[8192] b_scale=f32[4096] out_dtype=bf16'}


def attention_rows():
    """Pages of 16 tokens. Even lengths in the order of memory, scattered, and, with twice the pages, uneven lengths of the same mean."""
    for b, s, target in ((1, 4096, {'seconds': 9.0e-6}), (64, 4096, {'bytes_per_second': 4.4e12}), (1, 131072, {'bytes_per_second': 4.4e12})):
        for paging in ('contiguous', 'scattered') + (('uneven',) if b > 1 else ()):
            pages = s // 16 * (2 if paging == 'uneven' else 1)
            shape = (f'q=bf16[{b},32,128] k_cache=bf16[{b * pages},8,16,128] v_cache=bf16[{b * pages},8,16,128] '
                     f'block_tables=i32[{b},{pages}] context_lens=i32[{b}]')
            yield {'name': f'decode attention B{b} S{s} {paging}', 'group': 'decode attention', 'op': 'incre_flash_attention', 'shape': shape, 'paging': paging,
                   'peer': f'decode attention B{b} S{s}', 'target': target}


class Refused(Exception):
    """A command that failed, with what it said."""


def run_json(command, **options):
    print('+', ' '.join(str(part) for part in command), flush=True)
    run = subprocess.run([str(part) for part in command], check=False, stdout=subprocess.PIPE, text=True, **options)
    try:
        value = json.loads(run.stdout)
    except json.JSONDecodeError as error:
        raise Refused(f'ended with {run.returncode} and no result') from error
    if run.returncode != 0:
        raise Refused(value.get('error', f'ended with {run.returncode}'))
    return value


def machine():
    query = 'name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit'
    smi = subprocess.run(['nvidia-smi', f'--query-gpu={query}', '--format=csv,noheader'], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return {'gpu': dict(zip(query.split(','), (part.strip() for part in smi.splitlines()[0].split(',')))) if smi else {}, 'env': run_json([CERMET, 'env', '--json'])}


def measure_operators(rows, seconds):
    """Limits, and every row with its figures or its error."""
    with tempfile.TemporaryDirectory() as folder:
        calls = pathlib.Path(folder) / 'calls.json'
        calls.write_text(json.dumps([{key: row[key] for key in ('name', 'op', 'shape', 'paging') if key in row} for row in rows]))
        command = [CERMET, 'bench', 'suite', calls, '--device', 'cuda', '--cold', '--limits', '--seconds', str(seconds), '--json']
        print('+', ' '.join(str(part) for part in command), flush=True)
        run = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    found = {line['name']: line for line in lines if 'name' in line}
    limits = next((line['limits'] for line in lines if 'limits' in line), None)
    for row in rows:
        row.update(found.get(row['name'], {'error': f'the process ended with {run.returncode} before this row'}))
    return limits


def measure_peers(operators, models, seconds):
    command = ['python3', ROOT / 'bench/rivals/pytorch_gpu.py', '--seconds', str(seconds), '--context', str(CONTEXT)]
    command += [] if operators else ['--only', 'none']
    command += ['--models', *(str(config) for _, config, _ in models)] if models else []
    try:
        return run_json(command)
    except Refused as error:
        print('no peers:', error, flush=True)
        return {'versions': '', 'rows': {}, 'models': {}}


def bench_model(folder, weights, cache, tokens):
    """Both phases; the first token of a process that never saw the model (an empty cache of kernels), or saw it before."""
    command = [CERMET, 'bench', 'model', folder, '--device', 'cuda', '--prompt-tokens', str(CONTEXT), '--new-tokens', str(tokens), '--repeat', '3', '--json']
    command += ['--weights', weights] if weights != 'bf16' else []
    return run_json(command, env={**os.environ, 'CERMET_CACHE_DIR': str(cache)})


def measure_model(name, config, targets, scratch):
    rows = []
    folder = scratch / name.lower()
    begin = time.time()
    subprocess.run([str(CERMET), 'synth', '--config', str(config), '--out', str(folder), '--seed', '1'], check=True)
    print(f'synth {name}: {time.time() - begin:.1f} s', flush=True)
    for weights, target in targets.items():
        row = {'name': f'{name} {weights}', 'config': str(config.relative_to(ROOT)), 'weights': weights, 'context': CONTEXT, 'target_seconds': target}
        try:
            cache = scratch / f'cache-{name}-{weights}'
            row['first_start'] = bench_model(folder, weights, cache, 0)
            row['decode'] = bench_model(folder, weights, cache, 64)
            row['seconds'] = row['decode']['decode_seconds_per_token']
        except Refused as error:
            row['error'] = f'cermet bench model: {error}'
        rows.append(row)
    shutil.rmtree(folder)
    return rows


def report(record):
    for row in record['operators']:
        if 'error' in row:
            print(f"{row['name']:<40} {row['error'][:110]}")
            continue
        peer = row.get('peer_seconds')
        key, target = next(iter(row['target'].items()))
        reached = row['median_seconds'] <= target if key == 'seconds' else row[key] >= target
        print(f"{row['name']:<40} {1e6 * row['median_seconds']:>9.2f} us {row['bytes_per_second'] / 1e12:>6.2f} TB/s {row['operations_per_second'] / 1e12:>7.0f} T  "
              f"peer {1e6 * peer if peer else 0:>9.2f}  {'ok  ' if reached else 'MISS'} {target:g} {row['kernel']}")
    for row in record['models']:
        print(row['name'], row.get('error') or f"{1e6 * row['seconds']:.0f} us a token (target {1e6 * row['target_seconds']:.0f}), peer {1e6 * (row.get('peer_seconds') or 0):.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', nargs='?', default=datetime.date.today().isoformat())
    parser.add_argument('--folder', default='h200', help='of the record, below bench/results')
    parser.add_argument('--out', type=pathlib.Path, help='file of the record, in place of bench/results/FOLDER/NAME.json')
    parser.add_argument('--operators-only', action='store_true')
    parser.add_argument('--no-peers', action='store_true')
    parser.add_argument('--only', help='rows whose name contains this')
    parser.add_argument('--seconds', type=float, default=0.1, help='for each row')
    args = parser.parse_args()
    begin = time.time()
    rows = [row for row in [*memory_bound_rows(), *product_rows(), *attention_rows()] if not args.only or args.only in row['name']]
    record = {'date': datetime.date.today().isoformat(), 'command': 'script/bench-gpu', 'machine': machine(), 'operators': rows, 'models': []}
    record['limits'] = measure_operators(rows, args.seconds)
    models = [] if args.operators_only else MODELS
    with tempfile.TemporaryDirectory(prefix='cermet-bench-') as scratch:
        for name, config, targets in models:
            record['models'] += measure_model(name, config, targets, pathlib.Path(scratch))
    places = (str(ROOT), scratch)
    if not args.no_peers:
        peers = measure_peers(True, models, args.seconds)
        record['peers'] = peers['versions']
        for row in rows:
            peer = peers['rows'].get(row.pop('peer', row['name']), {})
            row.update({'peer_' + key: value for key, value in peer.items()})
        for row in record['models']:
            if row['weights'] == 'bf16':
                row.update({'peer_' + key: value for key, value in peers['models'].get(str(ROOT / row['config']), {}).items()})
    record['seconds'] = time.time() - begin
    report(record)
    out = args.out or ROOT / 'bench/results' / args.folder / f'{args.name}.json'
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_suffix('.tmp')
    text = json.dumps(record, indent=1) + '\n'
    for place in places:  # a record names no folder of the machine that it was made on
        text = text.replace(place + '/', '')
    temporary.write_text(text)
    temporary.rename(out)
    print(f"wrote {out} after {record['seconds']:.0f} s")


if __name__ == '__main__':
    sys.exit(main())
