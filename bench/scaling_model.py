"""Predicts the time of a decode step and of a prefill on several GPUs from what was measured on one and between two, holds it against what two took, and
writes docs/scaling.md with its plot.

usage: python3 bench/scaling_model.py [--print]
Reads bench/results/h200/h200.json (decode steps and read bandwidth of one GPU), and of two GPUs over NVLink in bench/results/h200/compare/:
routes-of-two-gpus.txt (collectives by every way) and two-gpus.json (sums with their norm, and an 8B on one and two). Nothing between hosts was measured: their
latency and bandwidth are parameters, and the page shows several. --print writes the page to standard output in place of files.

The model of a decode step that N ranks share by --tensor-parallel N:
  step(N) = compute(N) + calls(N)
  compute: between step(1) / N, where everything shrinks, and step(1) - read (1 - 1/N), where only reading the weights does
  calls: what a rank's graph has (src/model/decoder_parallel.cpp): all_reduce of [B, hidden] float32 after the embedding and twice a layer, there in one launch
         with residual and norm for few rows; broadcast of B ids, all_gather of logits [B, vocabulary] float32. One GPU normalizes in the product behind
         (compare/decode-step-stamps.txt), so that the whole launch is added and none is saved
  a call of n bytes: alpha(N) + n * factor(N) / beta, with alpha and beta fitted to the fastest own way of each size between two ranks, factor the bytes over
         the busiest link (bench comm's), and alpha(N) between alpha(2) log2 N (a tree's steps) and alpha(2) (N - 1) (a ring's)
  two hosts of G GPUs, all N = 2 G ranks: all_reduce inside each host, then of n / G bytes between partners, and all_gather inside
The model of a prefill in passes of more than 256 tokens, whose rows ranks share: prefill(1) / N, because norms, too, are of a rank's rows alone, and for each
  pass reduce_scatter and all_gather of [T, hidden] in 16 bits twice a layer, reduce_scatter of the embedding in float32, all_gather in front of the logits
No constant is fitted to a model's step on two GPUs.
"""
import argparse
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tools'))
import plots  # noqa: E402
import two_gpu_records  # noqa: E402

RECORD = ROOT / 'bench/results/h200/h200.json'
PAGE, PLOT = ROOT / 'docs/scaling.md', ROOT / 'docs/images/scaling-model.svg'
SUM_AND_NORM, MOST_ROWS = 'all_reduce, residual, norm', 32  # one launch for so many rows
OPERATORS = ('all_reduce', 'reduce_scatter', 'all_gather', 'broadcast_from')
FACTORS = {'all_reduce': lambda n: 2 * (n - 1) / n, SUM_AND_NORM: lambda n: 2 * (n - 1) / n, 'broadcast_from': lambda n: 1.0}
PAIR = 'Llama-3.1-8B bf16 B1'  # measured on one GPU and on two in one run
HOST_LINKS = ((5e-6, 50e9), (10e-6, 50e9), (20e-6, 25e9))  # seconds and bytes a second: assumed, not measured


def factor(op, ranks):
    return FACTORS.get(op, lambda n: (n - 1) / n)(ranks)


def read_points(routes, steps):
    """{operator: [(bytes, seconds)]} of two GPUs by own ways, and by NCCL alone."""
    own = {op: [(size, seconds) for size, seconds, _ in two_gpu_records.fastest(routes[op], two_gpu_records.OWN)] for op in OPERATORS}
    own[SUM_AND_NORM] = sorted(steps.times('norm in one launch').items())
    return own, {op: sorted(routes[op]['nccl'].items()) for op in OPERATORS}


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
        self.ring = ring

    def seconds(self, op, size, ranks):
        if ranks == 1:
            return 0.0
        alpha, beta = self.fits[op]
        return alpha * ((ranks - 1) if self.ring else math.log2(ranks)) + size * factor(op, ranks) / beta


def calls_of(config, batch, joined):
    """(operator, bytes of the larger side, how often) in a decode step's graph. `joined`: there is a launch of sum and norm."""
    hidden, layers, vocabulary = config['hidden_size'], config['num_hidden_layers'], config['vocab_size']
    layer_sum = SUM_AND_NORM if joined and batch <= MOST_ROWS else 'all_reduce'
    return [('all_reduce', 4 * batch * hidden, 1), (layer_sum, 4 * batch * hidden, 2 * layers), ('broadcast_from', 4 * batch, 1),
            ('all_gather', 4 * batch * vocabulary, 1)]


def prefill(seconds, tokens, pass_tokens, config, links, ranks):
    """Seconds of a prefill that takes `seconds` on one GPU."""
    rows, layers = 2 * pass_tokens * config['hidden_size'], config['num_hidden_layers']
    calls = [('reduce_scatter', rows, 2 * layers), ('all_gather', rows, 2 * layers + 1), ('reduce_scatter', 2 * rows, 1)]
    return seconds / ranks + tokens / pass_tokens * sum(count * links.seconds(op, size, ranks) for op, size, count in calls)


def step(row, config, links, ranks, everything_shrinks, read_rate, hosts=1, host_link=None):
    """Seconds of a decode step over `ranks` GPUs, evenly on `hosts` hosts."""
    one, read = row['seconds'], row['batch'] * row['decode']['decode_weight_bytes_per_token'] / read_rate
    compute = one / ranks if everything_shrinks else one - read * (1 - 1 / ranks)
    inside = ranks // hosts
    seconds = compute
    for op, size, count in calls_of(config, row['batch'], hosts == 1 and SUM_AND_NORM in links.fits):
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


def microseconds(*seconds):
    return ' to '.join(f'{value * 1e6:,.0f}' for value in seconds) + ' us'


def with_tokens(pair, batch):
    return f'{microseconds(*pair)} ({batch / pair[1]:,.0f} to {batch / pair[0]:,.0f})'


def fit_table(points):
    lines = ['| between two GPUs | alpha | beta | measured / fitted, by bytes |', '|---|---|---|---|']
    for op, rows in points.items():
        alpha, beta = fit(rows, op)
        ratios = ', '.join(f'{size >> 10} KiB {seconds / (alpha + size * factor(op, 2) / beta):.2f}' for size, seconds in rows)
        lines.append(f'| {op} | {alpha * 1e6:.1f} us | {beta / 1e9:.0f} GB/s | {ratios} |')
    return lines


def check_table(steps, config, own, nccl, read_rate):
    """Models on two GPUs, measured, over the prediction from one GPU in the same run."""
    lines = ['| Llama-3.1-8B, bf16 | 1 GPU, measured | 2, model | 2, measured | measured / predicted |', '|---|---|---|---|---|']

    def add(name, one, predicted, measured):
        ratios = ' to '.join(f'{measured / value:.2f}' for value in predicted)
        lines.append(f'| {name} | {microseconds(one)} | {microseconds(*predicted)} | {microseconds(measured)} | {ratios} |')

    one = steps.decode('8B decode, 1 ranks')
    add('decode step, B1', one['seconds'], bounds(one, config, own, 2, read_rate), steps.decode('8B decode, 2 ranks')['seconds'])
    add('the same, NCCL alone', one['seconds'], bounds(one, config, nccl, 2, read_rate), steps.decode('8B decode, 2 ranks, NCCL alone')['seconds'])
    for size in (4096, 2048):
        whats = [f'8B prefill, passes of {size}, {ranks} ranks' for ranks in (1, 2)]
        seconds, tokens = steps.prefill_seconds(whats[0]), steps.result(whats[0])['prompt_tokens']
        add(f'prefill of {tokens}, passes of {size}', seconds, [prefill(seconds, tokens, size, config, Links(own, True), 2)], steps.prefill_seconds(whats[1]))
    return lines


def prefill_table(steps, config, points):
    lines = ['| prefill, and tokens a second | 1 GPU, measured | 2, measured | 4, model | 8, model |', '|---|---|---|---|---|']
    for size in (4096, 2048):
        whats = [f'8B prefill, passes of {size}, {ranks} ranks' for ranks in (1, 2)]
        tokens, (one, two) = steps.result(whats[0])['prompt_tokens'], map(steps.prefill_seconds, whats)
        cells = [one, two, *(prefill(one, tokens, size, config, Links(points, True), ranks) for ranks in (4, 8))]
        lines.append(f'| Llama-3.1-8B bf16, {tokens} tokens in passes of {size} | '
                     + ' | '.join(f'{microseconds(cell)} ({tokens / cell:,.0f})' for cell in cells) + ' |')
    return lines


def page(record, routes, steps):
    read_rate = record['limits']['read_bytes_per_second']
    points, nccl = read_points(routes, steps)
    pair = steps.decode('8B decode, 1 ranks')
    rows = [{**row, **(pair if row['name'] == PAIR else {})} for row in record['models'] if row['model'] == 'Llama-3.1-8B' and not row.get('compact')]
    configs = {row['name']: json.loads((ROOT / row['config']).read_text()) for row in rows}
    two = steps.decode('8B decode, 2 ranks')['seconds']
    lines = ['# How decoding and prefill would scale: a model', '',
             'Generated by `bench/scaling_model.py`, whose head states the model. **Measured**: steps of one H200 and its read bandwidth '
             '(`bench/results/h200/h200.json`), collectives between two over NVLink (`bench/results/h200/compare/routes-of-two-gpus.txt`), and the 8B in bf16 '
             'on one and two, with sums and norms in one launch (`bench/results/h200/compare/two-gpus.json`). **Everything else here is the model**: other '
             'models and batches on 2 GPUs, and all times and tokens of 4 and 8 GPUs and of two hosts.', '',
             '## Check: calls of two GPUs, measured and fitted', '', *fit_table(points), '',
             '## Check: a model on two GPUs, measured and predicted', '',
             'No constant is fitted to these steps. The first prediction of a decode step has everything shrink with the ranks; the second has only the '
             'reading of weights shrink. With NCCL alone there is no launch of sum and norm, and the norm is taken to be in the product behind, as on one '
             'GPU.', '',
             *check_table(steps, configs[PAIR], points, nccl, read_rate), '', '## GPUs of one host', '',
             'The first number has everything shrink with the ranks and latencies grow as a tree does; the second has only the reading of weights shrink, and '
             'latencies of a ring. In brackets: tokens a second.', '',
             '| decode step, context 512 | 1 GPU, measured | 2, measured | 2, model | 4, model | 8, model |', '|---|---|---|---|---|---|']
    plot = []
    for row in rows:
        cells = [bounds(row, configs[row['name']], points, ranks, read_rate) for ranks in (2, 4, 8)]
        measured = two if row['name'] == PAIR else None
        lines.append(f"| {row['name']} | {microseconds(row['seconds'])} | {microseconds(measured) if measured else '-'} | "
                     + ' | '.join(with_tokens(cell, row['batch']) for cell in cells) + ' |')
        if row['batch'] == 1:
            all_cells = [(row['seconds'],) * 2, *cells]
            series = {'all shrinks, tree': [cell[0] * 1e6 for cell in all_cells], 'weights shrink, ring': [cell[1] * 1e6 for cell in all_cells]}
            if measured:
                series['measured'] = [row['seconds'] * 1e6, measured * 1e6, None, None]
            plot.append((row['name'], ['1 (measured)', '2', '4', '8'], series))
    lines += ['', '![time of a step over GPUs](images/scaling-model.svg)', '', *prefill_table(steps, configs[PAIR], points), '',
              '## Two hosts of 8 GPUs, one model over 16', '',
              'Latency and bandwidth of a link between hosts are assumptions, one row each; a call waits for it once. All of it is the model.', '',
              '| decode step, context 512 | ' + ' | '.join(f'{latency * 1e6:.0f} us, {bandwidth / 1e9:.0f} GB/s' for latency, bandwidth in HOST_LINKS)
              + ' | 8 GPUs of one host |', '|---|' + '---|' * (len(HOST_LINKS) + 1)]
    for row in rows:
        config = configs[row['name']]
        cells = [bounds(row, config, points, 16, read_rate, hosts=2, host_link=link) for link in HOST_LINKS]
        lines.append(f"| {row['name']} | " + ' | '.join(with_tokens(cell, row['batch']) for cell in [*cells, bounds(row, config, points, 8, read_rate)]) + ' |')
    one = next(row for row in rows if row['name'] == PAIR)
    calls = calls_of(configs[PAIR], 1, True)
    shares = [100 * sum(count * Links(points, ring).seconds(op, size, 8) for op, size, count in calls) / bounds(one, configs[PAIR], points, 8, read_rate)[ring]
              for ring in (False, True)]
    lines += ['', f'A step of this model has {sum(count for _, _, count in calls)} calls, most of a few KiB, so latency decides: over 8 GPUs they are '
              f'{shares[0]:.0f} and {shares[1]:.0f} % of the two predictions for {PAIR}. That is why sums and norms are one launch '
              '([notes/collectives.md](notes/collectives.md)), and why hosts share prompts (`--data-parallel`) rather than matrices.', '']
    return '\n'.join(lines), plots.line_chart('Decode step over GPUs of one host: the model, us',
                                              'GPUs; two bounds of the model, from one measured step and calls of two GPUs', plot)


def read_records():
    return json.loads(RECORD.read_text()), two_gpu_records.read_routes(two_gpu_records.ROUTES.read_text()), two_gpu_records.read_steps()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--print', action='store_true')
    args = parser.parse_args()
    text, plot = page(*read_records())
    if args.print:
        return print(text)
    PAGE.write_text(text)
    PLOT.write_text(plot)


if __name__ == '__main__':
    main()
