"""Decoding attention beside the read bandwidth of the GPU: quantized caches, several queries of a sequence, wide heads.

usage: python3 bench/decode_attention.py [--seconds 0.1] [--only TEXT] [--kernel decode_shared]
CERMET_BUILD names the folder of the build (default: build). About 40 s on an H100. build/bin/bench_latent_attention measures values that lie in the keys. Bytes are those of the keys and values that are read; the last column is the
time divided by that of the row it is measured against. --kernel adds rows of that kernel.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = 16
GOLDEN = 0.6180339887498949


def lengths(sequences, tokens, paging):
    """Contexts of the sequences: as `paging` of `cermet bench suite` gives them."""
    if paging != 'uneven':
        return [tokens] * sequences
    return [min(tokens, 1 + int((i + 1) * GOLDEN % 1 * tokens)) for i in range(sequences)]


def call(name, sequences, tokens, cache='bf16', scales='', queries=1, heads=(32, 8), sizes=(128, 128), against='', paging='scattered'):
    """A row: a call of `cermet bench suite`, and the bytes that it reads."""
    q_heads, kv_heads = heads
    pages = tokens // PAGE
    blocks = sequences * pages
    shape = (f'q=bf16[{sequences * queries},{q_heads},{sizes[0]}] k_cache={cache}[{blocks},{kv_heads},{PAGE},{sizes[0]}] '
             f'v_cache={cache}[{blocks},{kv_heads},{PAGE},{sizes[1]}] block_tables=i32[{sequences},{pages}] context_lens=i32[{sequences}]')
    if queries > 1:
        shape += f' query_starts=i32[{sequences + 1}]'
    scale_bytes = 0
    if scales:
        one = f'[{kv_heads}]' if scales == 'head' else f'[{blocks},{kv_heads},{PAGE}]'
        shape += f' k_scale=f32{one} v_scale=f32{one}'
        scale_bytes = 8 if scales == 'token' else 0
    element = 2 if cache in ('bf16', 'f16') else 1
    return {'name': name, 'op': 'incre_flash_attention', 'shape': shape, 'against': against, 'paging': paging,
            'bytes': sum(lengths(sequences, tokens, paging)) * kv_heads * (sum(sizes) * element + scale_bytes)}


def rows():
    for sequences, tokens in ((64, 4096), (1, 131072)):
        base = f'B{sequences} S{tokens}'
        yield call(f'{base} bf16', sequences, tokens)
        for queries in (2, 4, 8, 16):
            yield call(f'{base} {queries} queries', sequences, tokens, queries=queries, against=f'{base} bf16')
        for cache, scales in (('i8', 'head'), ('i8', 'token'), ('f8_e4m3', 'head'), ('f8_e4m3', 'token')):
            yield call(f'{base} {cache}, scales per {scales}', sequences, tokens, cache, scales, against=f'{base} bf16')
    for sequences, tokens in ((64, 1024), (8, 4096)):
        base = f'B{sequences} S{tokens}'
        yield call(f'{base} uneven', sequences, 2 * tokens, paging='uneven')  # of that mean, about
        yield call(f'{base} scattered', sequences, tokens)
        yield call(f'{base} contiguous', sequences, tokens, paging='contiguous')
    yield call('B64 S4096 i8, 16 queries', 64, 4096, 'i8', 'token', queries=16, against='B64 S4096 i8, scales per token')
    yield call('B64 S4096 D256, 16 + 2 heads', 64, 4096, heads=(16, 2), sizes=(256, 256))
    yield call('B64 S4096 D256, 16 + 2 heads, i8', 64, 4096, 'i8', 'head', heads=(16, 2), sizes=(256, 256), against='B64 S4096 D256, 16 + 2 heads')
    yield call('B64 S4096 MLA 576 / 512, 16 heads, copied values', 64, 4096, heads=(16, 1), sizes=(576, 512))


def by_kernel(kernel):
    """Those of several queries, quantized caches and wide heads, by a kernel that need not be the chosen one."""
    for row in rows():
        if row['against'] or 'uneven' in row['name']:
            yield {**row, 'name': f"{row['name']}, {kernel}", 'kernel': f'attention.{kernel}'}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seconds', type=float, default=0.1)
    parser.add_argument('--only', default='')
    parser.add_argument('--kernel', default='')
    args = parser.parse_args()
    chosen = [row for row in [*rows(), *(by_kernel(args.kernel) if args.kernel else ())] if args.only in row['name']]
    cermet = pathlib.Path(os.environ.get('CERMET_BUILD', ROOT / 'build')) / 'bin/cermet'
    with tempfile.TemporaryDirectory() as folder:
        calls = pathlib.Path(folder) / 'calls.json'
        calls.write_text(json.dumps([{key: row[key] for key in ('name', 'op', 'shape', 'kernel', 'config', 'paging') if key in row} for row in chosen]))
        run = subprocess.run([str(cermet), 'bench', 'suite', str(calls), '--device', 'cuda', '--cold', '--limits', '--period', '4194303', '--json',
                              '--seconds', str(args.seconds)], stdout=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    limits = next((line['limits'] for line in lines if 'limits' in line), {})
    found = {line['name']: line for line in lines if 'name' in line}
    bandwidth = limits.get('read_bytes_per_second')
    if bandwidth:
        print(f'read bandwidth {bandwidth * 1e-12:.2f} TB/s')
    for row in chosen:
        figures = found.get(row['name'], {'error': 'not measured'})
        if 'error' in figures:
            print(f"{row['name']:<52} {figures['error'][:100]}")
            continue
        seconds, base = figures['median_seconds'], found.get(row['against'], {}).get('median_seconds')
        rate = row['bytes'] / seconds
        print(f"{row['name']:<52} {seconds * 1e6:>9.1f} us  {rate * 1e-12:>5.2f} TB/s" + (f'  {rate / bandwidth:>5.2f} of reading' if bandwidth else '') +
              f"  {figures['kernel']}" + (f'  x {seconds / base:.2f}' if base else ''))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
