"""The GPU part of docs/performance.md: tables and plots of one record of bench/gpu_suite.py."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench'))
from gpu_rows import SUSTAINED, TOKENS, WEIGHTS, fastest_rival, goal_of  # noqa: E402
from plots import LIMIT, bar_chart, line_chart  # noqa: E402

SHOWN = ('memory-bound', 'products bf16', 'products i8', 'products f8', 'mixtures', 'prefill attention', 'decode attention')
TYPE_TITLES = {'bf16': 'bf16 products', 'i8': 'int8 products, a scale for each token and channel', 'f8': 'fp8 products, a scale for each token and channel'}


def microseconds(seconds, digits=1):
    return f'{1e6 * seconds:,.{digits}f} us'


def one_line(error):
    return error.replace('|', '/').replace('\n', ' ')[:100]


def limit_rows(limits):
    tera = lambda key, digits=0: f'{limits[key] / 1e12:.{digits}f}' if limits[key] else '-'
    reads = ', '.join(f"{read['bytes'] >> 20} MiB {microseconds(read['seconds'])}" for read in limits['reads'])
    return ['| limit | measured in the same run |', '|---|---|',
            f"| read | {tera('read_bytes_per_second', 2)} TB/s over {limits['stream_bytes'] >> 30} GiB (bulk copies {tera('bulk_load_bytes_per_second', 2)}, "
            f"16-byte loads {tera('load_bytes_per_second', 2)}); by size {reads} |",
            f"| copy, read and written | {tera('copy_bytes_per_second', 2)} TB/s |",
            f"| launch on a stream / in a graph / overlapped in a graph | {microseconds(limits['stream_launch_seconds'], 2)} / "
            f"{microseconds(limits['graph_node_seconds'], 2)} / {microseconds(limits['overlapped_graph_node_seconds'], 2)} |",
            f"| products, T op/s | bf16 {tera('bf16_operations_per_second')}, f16 {tera('f16_operations_per_second')}, fp8 {tera('f8_operations_per_second')}, "
            f"int8 {tera('int8_operations_per_second')}; f32 {tera('f32_operations_per_second')} |"]


def read_limit(limits, bytes_moved):
    """Seconds that reading so many bytes takes: between the sizes that were measured, or at the rate of the largest stream."""
    points = [(0, limits['overlapped_graph_node_seconds'])] + [(read['bytes'], read['seconds']) for read in limits['reads']]
    for (low, fast), (high, slow) in zip(points, points[1:]):
        if bytes_moved <= high:
            return fast + (slow - fast) * (bytes_moved - low) / (high - low)
    return bytes_moved / limits['read_bytes_per_second']


def operator_limit(limits, row):
    """The longer of reading the bytes and computing at the peak of the operands' type."""
    if 'sum_of' in row:  # as one launch
        return max(read_limit(limits, row['bytes']), row['operations'] / limits['bf16_operations_per_second'])
    types = {'i8': 'int8', 'f8_e4m3': 'f8', 'bf16': 'bf16', 'f16': 'f16'}
    operand = row['problem'].split('(')[1].split('[')[0]
    products = ('linear', 'scaled_mm', 'dual_linear', 'grouped_linear', 'flash_attention')
    peak = limits[f"{types.get(operand, 'f32')}_operations_per_second"] if row['op'] in products else 0
    return max(read_limit(limits, row['bytes']), row['operations'] / peak if peak else 0)


def rival_text(row):
    name, rival = fastest_rival(row)
    if rival:
        method = rival['method'] if rival['method'].startswith(name) else f"{name}: {rival['method']}"
        return f"{microseconds(rival['seconds'], 2)} ({method})"
    return 'refused' if row.get('rivals') else '-'


def goal_text(row):
    words, reached = goal_of(row)
    return f"{words} | {'' if reached is None else 'reached' if reached else 'missed'}"


def operator_table(record, group):
    rows = [f'| {group} | kernel | time | TB/s | T op/s | limit | fastest rival | goal | |', '|---|---|---|---|---|---|---|---|---|']
    for row in record['operators']:
        if row['group'] != group:
            continue
        if 'error' in row:
            rows.append(f"| {row['name']} | not run: {one_line(row['error'])} | | | | | {rival_text(row)} | {goal_text(row)} |")
            continue
        limit = microseconds(operator_limit(record['limits'], row), 2) if record['limits'] else '-'
        rows.append(f"| {row['name']} | {row['kernel']} | {microseconds(row['seconds'], 2)} | {row['bytes_per_second'] / 1e12:.2f} "
                    f"| {row['operations_per_second'] / 1e12:.0f} | {limit} | {rival_text(row)} | {goal_text(row)} |")
    return rows


def decode_floor(limits, row):
    """Seconds of reading the weights of a step once."""
    weight_bytes = row['decode'].get('decode_weight_bytes_per_token')
    return row['batch'] * weight_bytes / limits['read_bytes_per_second'] if weight_bytes and limits else None


def model_table(record):
    rows = [f"| decode step, context {record['models'][0]['context']} | time | tokens/s | reading the weights takes | fastest rival | goal | | first token, kernels compiled / cached |",
            '|---|---|---|---|---|---|---|---|']
    for row in record['models']:
        if 'error' in row:
            rows.append(f"| {row['name']} | not run: {one_line(row['error'])} | | | {rival_text(row)} | {goal_text(row)} | |")
            continue
        floor = decode_floor(record['limits'], row)
        starts = ' / '.join(f"{run['first_token_seconds']:.2f} s" for run in (row.get('first_start', {}), row['decode']) if 'first_token_seconds' in run)
        rows.append(f"| {row['name']} | {microseconds(row['seconds'], 0)} | {row['batch'] / row['seconds']:,.0f} | {microseconds(floor, 0) if floor else '-'} "
                    f"| {rival_text(row)} | {goal_text(row)} | {starts} |")
    if record.get('nvrtc_cache', True):
        rows += ['', 'First tokens with kernels compiled may be too short: when this was recorded, NVRTC could answer from a cache of its own.']
    return rows


def times(rows):
    """Seconds of each row by Cermet and by every rival; None where there is none."""
    names = dict.fromkeys(name for row in rows for name in row.get('rivals', {}))
    return {'Cermet': [row.get('seconds') for row in rows], **{name: [row.get('rivals', {}).get(name, {}).get('seconds') for row in rows] for name in names}}


def product_plot(record, kind, share):
    """Rates against the number of rows, or shares of the limit, which show the small ones, too."""
    panels = []
    for n, k in WEIGHTS:
        rows = {row['m']: row for row in record['operators'] if row['group'] == f'products {kind}' and (row['n'], row['k']) == (n, k) and 'operations' in row}
        ordered = [rows[m] for m in TOKENS if m in rows]
        if not ordered or not record['limits']:
            continue
        limits = [operator_limit(record['limits'], row) for row in ordered]
        scale = [100 * limit if share else row['operations'] / 1e12 for limit, row in zip(limits, ordered)]
        series = {**times(ordered), LIMIT: limits}
        panels.append((f'N {n}, K {k}', [row['m'] for row in ordered],
                       {name: [part / seconds if seconds else None for part, seconds in zip(scale, values)] for name, values in series.items()}))
    title = f"{TYPE_TITLES[kind]}: {'share of the limit, %' if share else 'T op/s'}"
    return line_chart(title, 'M, rows of activations (tokens); more is better', panels) if panels else None


def bars_of(record, rows, label, value, limit_value):
    bars = []
    for row in rows:
        name, rival = fastest_rival(row)
        values = {'Cermet': value(row, row['seconds']), **({'fastest rival': value(row, rival['seconds'])} if rival else {})}
        bars.append((label(row), values, limit_value(row) if record['limits'] else None))
    return bars


def memory_plot(record):
    rows = [row for row in record['operators'] if 'seconds' in row and (row['group'] == 'memory-bound' and row['name'].endswith('T16384'))]
    bars = bars_of(record, rows, lambda row: row['name'], lambda row, seconds: row['bytes'] / seconds / 1e12,
                   lambda row: record['limits']['read_bytes_per_second'] / 1e12)
    return bar_chart('Operators that move bytes, 16,384 tokens', 'TB/s', bars) if bars else None


def attention_plot(record):
    rows = [row for row in record['operators'] if 'seconds' in row and row['group'] == 'decode attention' and row['name'].endswith(('scattered', 'uneven'))]
    bars = bars_of(record, rows, lambda row: row['name'].removeprefix('decode attention '), lambda row, seconds: row['bytes'] / seconds / 1e12,
                   lambda row: row['bytes'] / operator_limit(record['limits'], row) / 1e12)
    return bar_chart('Decode attention, 32 query and 8 KV heads, bf16', 'TB/s', bars) if bars else None


def prefill_plot(record):
    rows = [row for row in record['operators'] if 'seconds' in row and row['group'] == 'prefill attention']
    bars = bars_of(record, rows, lambda row: row['name'].removeprefix('prefill attention '), lambda row, seconds: row['operations'] / seconds / 1e12,
                   lambda row: row['operations'] / operator_limit(record['limits'], row) / 1e12)
    return bar_chart('Prefill attention, causal, 32 query and 8 KV heads, bf16', 'TFLOP/s', bars) if bars else None


def mixture_plot(record):
    rows = [row for row in record['operators'] if 'seconds' in row and row['group'] == 'mixtures']
    bars = bars_of(record, rows, lambda row: row['name'], lambda row, seconds: 1e6 * seconds, lambda row: 1e6 * operator_limit(record['limits'], row))
    return bar_chart('Mixtures: 128 experts of 768, 8 a token, hidden 2048, bf16', 'us', bars, more_is_better=False) if bars else None


def decode_plot(record):
    rows = [row for row in record['models'] if 'seconds' in row]
    bars = bars_of(record, rows, lambda row: row['name'], lambda row, seconds: 1e6 * seconds, lambda row: 1e6 * (decode_floor(record['limits'], row) or 0) or None)
    return bar_chart('Decode step (the limit: reading the weights once)', 'us a step', bars, more_is_better=False) if bars else None


def plots(record):
    """{name: SVG} of one record."""
    drawn = {f"products-{kind}{'-share' if share else ''}": product_plot(record, kind, share) for kind in TYPE_TITLES for share in (False, True)}
    drawn.update({'memory-bound': memory_plot(record), 'mixtures': mixture_plot(record), 'prefill-attention': prefill_plot(record),
                  'decode-attention': attention_plot(record), 'decode-steps': decode_plot(record)})
    return {name: drawing for name, drawing in drawn.items() if drawing}


def section(path, record, images):
    """images: {plot name: path from the page}."""
    gpu = record['machine']['gpu']
    picture = lambda name, words: f'\n![{words}]({images[name]})\n' if name in images else ''
    text = f"\n## {gpu.get('name', 'GPU')}, driver {gpu.get('driver_version', 'unknown')}: {record['date']}\n\n"
    text += (f"Record: `{path.relative_to(ROOT)}`, made in {record['seconds']:.0f} s. Repeat: `{record['command']}`. Medians over replays of captured graphs; "
             f"random operands on every side, in so many sets that the L2 holds none. Rivals: {', '.join(record['rivals'].values()) or 'none'}. "
             "The limit is the longer of reading the bytes (by size, as measured) and computing at the measured peak. Rows that draw the GPU's full power are measured "
             f"for {SUSTAINED:g} s each by everybody, so that bursts don't count.{' ' + record['note'] if 'note' in record else ''}\n\n")
    if record['limits']:
        text += '\n'.join(limit_rows(record['limits'])) + '\n'
    if record['models']:
        text += picture('decode-steps', 'decode steps') + '\n' + '\n'.join(model_table(record)) + '\n'
    for group in SHOWN:
        if any(row['group'] == group for row in record['operators']):
            name = group.replace(' ', '-')
            text += picture(name, group) + picture(name + '-share', f'{group}, share of the limit') + '\n' + '\n'.join(operator_table(record, group)) + '\n'
    return text
