"""Predicts the time of a decode step on several GPUs from what was measured on one and between two, holds it to what two took, and writes docs/scaling.md with its plot.

usage: python3 bench/scaling_model.py [--print]
Reads bench/results/h200/h200.json (decode steps and read bandwidth of one GPU) and, in compare/ beside it, routes-of-two-gpus.txt (collectives of two GPUs over
NVLink, of which the fastest way counts) and two-gpus.json (an 8B on one and on two GPUs, in one run). Nothing between hosts was measured: their latency and bandwidth are parameters, and the page shows several. --print writes the page to standard output
in place of files.

The model of a step that N ranks share by --tensor-parallel N:
  step(N) = compute(N) + calls(N)
  compute: between step(1) / N, where everything shrinks, and step(1) - read (1 - 1/N), where only reading the weights does
  calls: what a rank's graph has (src/model/decoder_parallel.cpp): all_reduce of [B, hidden] float32 after the embedding and twice a layer, broadcast of B ids,
         all_gather of logits [B, vocabulary] float32
  a call of n bytes: alpha(N) + n * factor(N) / beta, with alpha and beta fitted to the measured calls of two ranks, factor the bytes over the busiest link
         (bench comm's), and alpha(N) between alpha(2) log2 N (a tree's steps) and alpha(2) (N - 1) (a ring's)
  a prompt in passes of T tokens: half of one GPU's time, and for each layer and pass two reduce_scatter and two all_gather of [T, hidden] in 16 bits
  two hosts of G GPUs, all N = 2 G ranks: all_reduce inside each host, then of n / G bytes between partners, and all_gather inside
"""
import argparse
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tools'))
import plots  # noqa: E402

RECORD = ROOT / 'bench/results/h200/h200.json'
COLLECTIVES = ROOT / 'bench/results/h200/compare/routes-of-two-gpus.txt'
TWO_GPUS = ROOT / 'bench/results/h200/compare/two-gpus.json'
OPS = ('all_reduce', 'reduce_scatter', 'all_gather', 'all_to_all')
PAGE, PLOT = ROOT / 'docs/scaling.md', ROOT / 'docs/images/scaling-model.svg'
UNITS = {'B': 1, 'KiB': 1 << 10, 'MiB': 1 << 20, 'GiB': 1 << 30, 'us': 1e-6, 'ms': 1e-3, 's': 1}
FACTORS = {'all_reduce': lambda n: 2 * (n - 1) / n, 'broadcast_from': lambda n: 1.0}
HOST_LINKS = ((5e-6, 50e9), (10e-6, 50e9), (20e-6, 25e9))  # seconds and bytes a second: assumed, not measured


def factor(op, ranks):
    return FACTORS.get(op, lambda n: (n - 1) / n)(ranks)


def read_collectives(text):
    """{op: [(bytes, seconds)]} of the fastest way at each size: `bench comm --store` between two GPUs."""
    points = {}
    for op, size, unit, time, time_unit in re.findall(r'^  (\w+) +[\w-]+ +([\d.]+) (KiB|MiB|GiB) +([\d.]+) (us|ms)', text, re.M):
        size, seconds = round(float(size) * UNITS[unit]), float(time) * UNITS[time_unit]
        rows = points.setdefault(op, {})
        rows[size] = min(seconds, rows.get(size, seconds))
    return {op: sorted(points[op].items()) for op in OPS}


def fit(points, op):
    """alpha and beta of two ranks by least squares of relative errors."""
    weights = [1 / seconds ** 2 for _, seconds in points]
    xs, ys = [size * factor(op, 2) for size, _ in points], [seconds for _, seconds in points]
    total = sum(weights)
    mean_x, mean_y = sum(w * x for w, x in zip(weights, xs)) / total, sum(w * y for w, y in zip(weights, ys)) / total
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, x, y in zip(weights, xs, ys)) / sum(w * (x - mean_x) ** 2 for w, x in zip(weights, xs))
    return mean_y - slope * mean_x, 1 / slope


class Links:
    """Calls inside a host. `ring`: latencies of a ring, else of a tree."""

    def __init__(self, points, ring):
        self.fits = {op: fit(rows, op) for op, rows in points.items()}
        self.fits['broadcast_from'] = (self.fits['all_gather'][0], self.fits['all_gather'][1])
        self.ring = ring

    def seconds(self, op, size, ranks):
        if ranks == 1:
            return 0.0
        alpha, beta = self.fits[op]
        return alpha * ((ranks - 1) if self.ring else math.log2(ranks)) + size * factor(op, ranks) / beta


def calls_of(config, batch):
    """(operator, bytes of the larger side, how often) in a step's graph."""
    hidden, layers, vocabulary = config['hidden_size'], config['num_hidden_layers'], config['vocab_size']
    return [('all_reduce', 4 * batch * hidden, 1 + 2 * layers), ('broadcast_from', 4 * batch, 1), ('all_gather', 4 * batch * vocabulary, 1)]


def step(row, config, links, ranks, everything_shrinks, read_rate, hosts=1, host_link=None):
    """Seconds of a decode step over `ranks` GPUs, evenly on `hosts` hosts."""
    one, read = row['seconds'], row['decode']['decode_weight_bytes_per_token'] / read_rate
    compute = one / ranks if everything_shrinks else one - read * (1 - 1 / ranks)
    inside = ranks // hosts
    seconds = compute
    for op, size, count in calls_of(config, row['batch']):
        call = links.seconds(op, size, inside)
        if hosts > 1:
            latency, bandwidth = host_link
            share = size / inside if op == 'all_reduce' else size
            call += latency * math.log2(hosts) + share * factor(op, hosts) / bandwidth
            if op == 'all_reduce':
                call += links.seconds('all_gather', size, inside)
        seconds += count * call
    return seconds


def bounds(row, config, points, ranks, read_rate, **hosts):
    low = step(row, config, Links(points, False), ranks, True, read_rate, **hosts)
    high = step(row, config, Links(points, True), ranks, False, read_rate, **hosts)
    return min(low, high), max(low, high)


def check_rows(points, read_rate):
    """An 8B on two GPUs: predicted from its time on one in the same run, and measured."""
    record = json.loads(TWO_GPUS.read_text())
    result = lambda what: next(step['result'] for step in record['steps'] if step['what'] == what)
    config = json.loads((ROOT / 'bench/models/llama-3.1-8b.json').read_text())
    one, two = (result(f'8B decode, {ranks} ranks') for ranks in (1, 2))
    row = {'seconds': one['decode_seconds_per_token'], 'batch': 1, 'decode': one}
    low, high = bounds(row, config, points, 2, read_rate)
    found = two['decode_seconds_per_token']
    yield f"| decode step | {row['seconds'] * 1e6:,.0f} us | {microseconds((low, high))} | {found * 1e6:,.0f} us | {found / high:.2f} to {found / low:.2f} |"
    links, tokens = Links(points, False), 4096
    for most in (4096, 2048):
        one, two = (tokens / result(f'8B prefill, passes of {most}, {ranks} ranks')['prefill_tokens_per_second'] for ranks in (1, 2))
        calls = 2 * sum(links.seconds(op, 2 * most * config['hidden_size'], 2) for op in ('reduce_scatter', 'all_gather'))
        predicted = one / 2 + tokens / most * config['num_hidden_layers'] * calls
        yield f'| prompt of 4,096 tokens in passes of {most} | {one * 1e3:.1f} ms | {predicted * 1e3:.1f} ms | {two * 1e3:.1f} ms | {two / predicted:.2f} |'


def microseconds(pair):
    return f'{pair[0] * 1e6:,.0f} to {pair[1] * 1e6:,.0f} us'


def page(record, points):
    read_rate = record['limits']['read_bytes_per_second']
    rows = [row for row in record['models'] if row['model'] == 'Llama-3.1-8B' and not row.get('compact')]
    lines = ['# How decoding would scale: a model', '',
             'Generated by `bench/scaling_model.py`, whose head states the model. **Measured**: steps of one H200 and its read bandwidth (`bench/results/h200/h200.json`), and '
             'collectives between two over NVLink, and an 8B on both (`routes-of-two-gpus.txt` and `two-gpus.json` in `bench/results/h200/compare/`). **Everything else here is the model**: '
             'more than two GPUs, and hosts, were not measured.', '',
             '## Check: an 8B in bf16 on two GPUs', '',
             'Predicted from its time on one GPU in the same run.', '',
             '| | one GPU, measured | two, predicted | two, measured | measured / predicted |', '|---|---|---|---|---|', *check_rows(points, read_rate), '',
             'The decode step takes longer than the upper bound: a launch with a sum and a norm takes 4.4 us where the sum alone takes 3.2, 64 times a step, and the model has no launches '
             'for tokens and logits of the whole.', '',
             '## Check: collectives of two GPUs, measured and fitted', '',
             '| operator | alpha | beta | measured / fitted, by bytes |', '|---|---|---|---|']
    for op, rows_of in points.items():
        alpha, beta = fit(rows_of, op)
        ratios = ', '.join(f'{size >> 10} KiB {seconds / (alpha + size * factor(op, 2) / beta):.2f}' for size, seconds in rows_of)
        lines.append(f'| {op} | {alpha * 1e6:.1f} us | {beta / 1e9:.0f} GB/s | {ratios} |')
    lines += ['', '## GPUs of one host', '',
              'The first number has everything shrink with the ranks and latencies grow as a tree does; the second has only the reading of weights shrink, and latencies of a ring.', '',
              '| decode step, context 512 | 1 GPU, measured | 2 | 4 | 8 |', '|---|---|---|---|---|']
    plot = []
    for row in rows:
        config = json.loads((ROOT / row['config']).read_text())
        cells = [bounds(row, config, points, ranks, read_rate) for ranks in (2, 4, 8)]
        lines.append(f"| {row['name']} | {row['seconds'] * 1e6:,.0f} us | " + ' | '.join(microseconds(cell) for cell in cells) + ' |')
        if row['batch'] == 1:
            all_cells = [(row['seconds'],) * 2, *cells]
            plot.append((row['name'], ['1 (measured)', '2', '4', '8'],
                         {'all shrinks, tree': [cell[0] * 1e6 for cell in all_cells], 'weights shrink, ring': [cell[1] * 1e6 for cell in all_cells]}))
    lines += ['', '![time of a step over GPUs](images/scaling-model.svg)', '', '## Two hosts of 8 GPUs, one model over 16', '',
              'Latency and bandwidth of a link between hosts are assumptions, one row each; a call waits for it once.', '',
              '| decode step, context 512 | ' + ' | '.join(f'{latency * 1e6:.0f} us, {bandwidth / 1e9:.0f} GB/s' for latency, bandwidth in HOST_LINKS) + ' | 8 GPUs of one host |',
              '|---|' + '---|' * (len(HOST_LINKS) + 1)]
    for row in rows:
        config = json.loads((ROOT / row['config']).read_text())
        cells = [bounds(row, config, points, 16, read_rate, hosts=2, host_link=link) for link in HOST_LINKS]
        lines.append(f"| {row['name']} | " + ' | '.join(microseconds(cell) for cell in [*cells, bounds(row, config, points, 8, read_rate)]) + ' |')
    one = next(row for row in rows if row['batch'] == 1 and row['weights'] == 'bf16')
    config = json.loads((ROOT / one['config']).read_text())
    count = sum(c for _, _, c in calls_of(config, 1))
    share = sum(c * Links(points, False).seconds(op, size, 8) for op, size, c in calls_of(config, 1)) / bounds(one, config, points, 8, read_rate)[0]
    lines += ['', f'A step of this model has {count} calls of a few KiB, so latency decides: over 8 GPUs they are {100 * share:.0f} % of the shorter prediction for {one["name"]}. '
              'That is why the design in [notes/collectives.md](notes/collectives.md) fuses them with what follows, and why hosts share prompts (`--data-parallel`) rather than matrices.', '']
    return '\n'.join(lines), plots.line_chart('Decode step over GPUs of one host: the model, us', 'GPUs; two bounds of the model, from one measured step and collectives of two GPUs', plot)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--print', action='store_true')
    args = parser.parse_args()
    text, plot = page(json.loads(RECORD.read_text()), read_collectives(COLLECTIVES.read_text()))
    if args.print:
        return print(text)
    PAGE.write_text(text)
    PLOT.write_text(plot)


if __name__ == '__main__':
    main()
