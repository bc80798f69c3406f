"""The part of docs/performance.md about two GPUs: the records of script/bench-two-gpus and of `bench comm --store` beside it."""
import json
import pathlib
import re

from plots import line_chart

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / 'bench/results/h200/compare/two-gpus.json'
ROUTES = ROOT / 'bench/results/h200/compare/routes-of-two-gpus.txt'
LINK = 450e9  # bytes a second a direction, 18 NVLinks of 25 GB/s: the data sheet's
UNITS = {'KiB': 1 << 10, 'MiB': 1 << 20, 'us': 1e-6, 'ms': 1e-3}
WAYS = ('stamped', 'one-shot', 'two-shot', 'nccl')
HEAD = '''
## Two NVIDIA H200 over NVLink

Records: `bench/results/h200/compare/two-gpus.json` (2026-11-27; repeat: `script/bench-two-gpus`) and `routes-of-two-gpus.txt` beside it (repeat: `cermet launch -n 2 -- bench comm --device cuda --dtype bf16 --sizes 1K..256M --store`). One host, two
processes. Times of collectives are those of replays of a captured graph of 16 calls. The rival is NCCL, in the same run and graph. The limit is what a rank sends at the data sheet's 450 GB/s a direction. No other runtime was run over two GPUs.
'''


def routes():
    """{op: {bytes: {way: seconds}}}"""
    found = {}
    for op, way, size, unit, time, time_unit in re.findall(r'^  (\w+) +([\w-]+) +([\d.]+) (KiB|MiB) +([\d.]+) (us|ms)', ROUTES.read_text(), re.M):
        found.setdefault(op, {}).setdefault(round(float(size) * UNITS[unit]), {})[way] = float(time) * UNITS[time_unit]
    return found


def sent(op, size):
    """Bytes that one of two ranks sends where the larger of operand and result has `size`."""
    return size if op == 'all_reduce' else size / 2


def size_text(size):
    return f'{size >> 20} MiB' if size >= 1 << 20 else f'{size >> 10} KiB'


def collective_rows(times):
    lines = ['| collective, bf16 | Cermet, us | by | NCCL, us | NCCL / Cermet | limit, us |', '|---|---:|---|---:|---:|---:|']
    for op in ('all_reduce', 'reduce_scatter', 'all_gather', 'all_to_all'):
        for size in (16 << 10, 256 << 10, 4 << 20, 64 << 20, 256 << 20):
            ways = times[op][size]
            own = min((way for way in WAYS[:3] if way in ways), key=ways.get)
            lines.append(f"| {op} {size_text(size)} | {ways[own] * 1e6:.1f} | {own} | {ways['nccl'] * 1e6:.1f} | {ways['nccl'] / ways[own]:.2f} | {sent(op, size) / LINK * 1e6:.1f} |")
    return lines


def result_of(record, what):
    return next(step['result'] for step in record['steps'] if step['what'] == what)


def model_rows(record):
    decode = lambda what: f"{result_of(record, what)['decode_seconds_per_token'] * 1e6:,.0f} us a token"
    prefill = lambda what: f"{result_of(record, what)['prefill_tokens_per_second']:,.0f} tokens/s"
    rows = [('8B bf16, decoding after 512 tokens', decode('8B decode, 1 ranks'), decode('8B decode, 2 ranks')),
            ('the same, collectives by NCCL alone', '', decode('8B decode, 2 ranks, NCCL alone')),
            ('the same, weights in 12 bits', '', decode('8B decode, 2 ranks, weights in 12 bits'))]
    rows += [(f'8B bf16, prompt of 4,096 tokens in passes of {tokens}', prefill(f'8B prefill, passes of {tokens}, 1 ranks'), prefill(f'8B prefill, passes of {tokens}, 2 ranks'))
             for tokens in (4096, 2048)]
    rows += [('mixture (Qwen3-30B-A3B shape, 12 layers), int8, 64 sequences, experts spread', decode('mixture, 1 rank'), decode('mixture, 2 ranks')),
             ('the same, matrices shared, too', '', decode('mixture, 2 ranks, matrices shared, too'))]
    return ['| model | one GPU | two |', '|---|---:|---:|'] + [f'| {name} | {one} | {two} |' for name, one, two in rows]


def goal_rows(record):
    lines = ['| goal | found | wanted | |', '|---|---:|---:|---|']
    for goal in record['goals']:
        if 'checked' in goal['goal']:
            continue
        scale, unit = (1e6, ' us') if goal['limit'] < 1e-2 else (1, '')
        wanted = f"{'at most' if goal['at_most'] else 'at least'} {goal['limit'] * scale:,.4g}{unit}"
        lines.append(f"| {goal['goal']} | {goal['found'] * scale:,.4g}{unit} | {wanted} | {'reached' if goal['passed'] else 'missed'} |")
    return lines


def plots():
    times = routes()['all_reduce']
    small, large = [s for s in times if s <= 1 << 20], [s for s in times if s >= 1 << 20]
    panels = [(title, [size_text(size) for size in sizes], {way: [times[size].get(way, 0) * 1e6 or None for size in sizes] for way in WAYS})
              for title, sizes in (('up to 1 MiB', small), ('from 1 MiB', large))]
    return {'two-gpus-all-reduce': line_chart('all_reduce between two GPUs: us', 'bytes; less is better', panels)}


def section(images):
    """images: {plot name: path from the page}."""
    record = json.loads(RECORD.read_text())
    parts = [HEAD, f"![all_reduce between two GPUs]({images['two-gpus-all-reduce']})\n", '\n'.join(collective_rows(routes())) + '\n', '\n'.join(model_rows(record)) + '\n', '\n'.join(goal_rows(record)) + '\n']
    return '\n'.join(parts)
