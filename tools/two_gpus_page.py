"""The part of docs/performance.md about two GPUs: records of bench/two_gpus.py and of every collective by every way."""
import json
import math
import pathlib
import sys

from gpu_page import decode_floor, microseconds

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'bench'))
import two_gpu_records  # noqa: E402
from plots import LIMIT, line_chart  # noqa: E402

DATE = '2026-11-27'  # for records that do not say
GPU = ROOT / 'bench/results/h200/h200.json'
LINKS, LINK_RATE = 18, 25e9  # bytes a second in a direction, by the data sheet
COLUMNS = 4096  # of bench comm --norm, float32
SENT = {'all_reduce': 1, 'reduce_scatter': 1 / 2, 'all_gather': 1 / 2}  # by each of two ranks, of the bytes of the larger side
SERIES = {'stamped': 'stamped words', 'one-shot': 'one-shot', 'two-shot': 'two-shot', 'nccl': 'NCCL'}
NOTE = '''Limits of collectives are {links} links x {link:.0f} GB/s = {rate:.0f} GB/s in a direction, the data sheet's figure of NVLink, without any latency.
Between two ranks each sends as many bytes as `all_reduce` sums, and half of the larger side of `reduce_scatter` and `all_gather`, whose sizes are those of the
larger side. Their rival is NCCL; no other library's launch that sums and normalizes was measured, and no other library ran these models over two GPUs, so
models have no rival here.
'''
LIMITS_NOTE = '''Times of a prefill are of the whole prompt. Limits of decode steps are reading a rank's weights once, those of prefill its share of the
operations at the peak of bf16; bandwidth and peak are those of `{record}`, another run on one GPU.
'''


def of_bytes(size):
    return f'{size >> 20} MiB' if size >= 1 << 20 else f'{size >> 10} KiB'


def three_digits(seconds):
    """As many digits as `bench comm` prints."""
    return microseconds(seconds, max(0, 2 - math.floor(math.log10(1e6 * seconds))))


def link_limit(op, size):
    return SENT[op] * size / (LINKS * LINK_RATE)


def verdict(goal):
    return 'reached' if goal['passed'] else 'missed'


def all_reduce_table(steps):
    """What a program gets, whose calls take the way that is expected to be fastest."""
    ours, theirs = steps.times('all_reduce'), steps.times('all_reduce by NCCL')
    rows = ['| all_reduce, bf16, as a program calls it | time | GB/s | NCCL | NCCL / ours | limit | goal | |', '|---|---|---|---|---|---|---|---|']
    for size, seconds in sorted(ours.items()):
        goal = next(steps.goal(name) for name in (f'all_reduce of {of_bytes(size)}', f"all_reduce of {of_bytes(size)}, NCCL's time to ours")
                    if any(goal['goal'] == name for goal in steps.record['goals']))
        words = microseconds(goal['limit'], 0) if goal['at_most'] else f"NCCL / ours {goal['limit']:g}"
        rows.append(f"| {of_bytes(size)} | {three_digits(seconds)} | {size / seconds / 1e9:.1f} | {three_digits(theirs[size])} "
                    f"| {theirs[size] / seconds:.2f} | {three_digits(link_limit('all_reduce', size))} | {words} | {verdict(goal)} |")
    return rows


def collective_table(routes):
    rows = ['| by size: fastest own way | ' + ' | '.join(f'{op} | NCCL | limit' for op in SENT) + ' |', '|---|' + '---|---|---|' * len(SENT)]
    for row in zip(*(two_gpu_records.fastest(routes[op], two_gpu_records.OWN) for op in SENT)):
        cells = [f"{three_digits(seconds)} ({SERIES[way]}) | {three_digits(routes[op]['nccl'][size])} | {three_digits(link_limit(op, size))}"
                 for op, (size, seconds, way) in zip(SENT, row)]
        rows.append(f"| {of_bytes(row[0][0])} | {' | '.join(cells)} |")
    return rows


def all_reduce_plot(routes):
    ways = routes['all_reduce']
    panels = []
    for title, large in (('up to 256 KiB', False), ('from 1 MiB', True)):
        sizes = [size for size in ways['nccl'] if (size >= 1 << 20) == large]
        series = {name: [1e6 * ways[way][size] for size in sizes] for way, name in SERIES.items()}
        if large:  # smaller messages take latencies, which the limit leaves out
            series[LIMIT] = [1e6 * link_limit('all_reduce', size) for size in sizes]
        panels.append((title, [of_bytes(size) for size in sizes], series))
    return line_chart('all_reduce between two H200s over NVLink, us',
                      'bytes that are summed; logarithmic, each panel with its own scale; less is better', panels, logarithmic=True)


def norm_table(steps):
    joined, apart, by_nccl = (steps.times(what) for what in ('norm in one launch', 'norm apart', 'norm apart, NCCL'))
    rows = [f'| all_reduce, residual and norm, float32 rows of {COLUMNS} | one launch | two launches | two, the sum by NCCL | limit | two / one | goal | '
            '| NCCL / one | goal | |', '|---|---|---|---|---|---|---|---|---|---|---|']
    for size, seconds in sorted(joined.items()):
        count = size // (4 * COLUMNS)
        goals = [steps.goal(name) for name in (f'all_reduce, residual and norm of {count} rows, time apart to time in one launch',
                                               f'the same to apart by NCCL, {count} rows')]
        times = [seconds, apart[size], by_nccl[size], link_limit('all_reduce', size)]
        rows.append(f"| {count} | {' | '.join(map(three_digits, times))} | "
                    + ' | '.join(f"{goal['found']:.2f} | {goal['limit']:g} | {verdict(goal)}" for goal in goals) + ' |')
    return rows


def model_row(name, seconds, floors, goal):
    """Seconds and limits on one GPU and on two; None where a step was not measured."""
    one, two = (microseconds(value, 0) if value else '-' for value in seconds)
    ratio = f'{seconds[0] / seconds[1]:.2f}' if seconds[0] else '-'
    words = '-' if goal is None else microseconds(goal['limit'], 0) if goal['at_most'] else f"{goal['limit']:g} times as fast"
    limits = ' / '.join(microseconds(value, 0) if value else '-' for value in floors)
    return f"| {name} | {one} | {two} | {ratio} | {limits} | {words} | {verdict(goal) if goal else ''} |"


def model_table(steps, limits):
    rows = ['| model | 1 GPU | 2 GPUs | times as fast | limit of 1 / 2 GPUs | goal | |', '|---|---|---|---|---|---|---|']

    def decode(name, one, two, goal):
        pair = [steps.decode(what) if what else None for what in (one, two)]
        rows.append(model_row(name, [step and step['seconds'] for step in pair], [step and decode_floor(limits, step) for step in pair], goal))

    decode('8B bf16 decode step, B1', '8B decode, 1 ranks', '8B decode, 2 ranks',
           steps.goal('8B bf16 decode over two ranks'))
    decode('the same, NCCL alone', '8B decode, 1 ranks', '8B decode, 2 ranks, NCCL alone', None)
    decode('the same, weights in 12 bits', None, '8B decode, 2 ranks, weights in 12 bits', None)
    for tokens in (4096, 2048):
        whats = [f'8B prefill, passes of {tokens}, {ranks} ranks' for ranks in (1, 2)]
        floors = [steps.result(what)['prefill_operations'] / limits['bf16_operations_per_second'] / ranks for ranks, what in enumerate(whats, 1)]
        name = f"8B bf16 prefill of {steps.result(whats[0])['prompt_tokens']} tokens, passes of {tokens}"
        rows.append(model_row(name, [steps.prefill_seconds(what) for what in whats], floors,
                              steps.goal(f'8B bf16 prefill of 4096 tokens in passes of {tokens}, two ranks to one')))
    spread = next(goal for goal in steps.record['goals'] if goal['goal'].endswith('expert parallel, two ranks to one'))
    decode(f"decode step of the {spread['goal'].removesuffix(', two ranks to one')}", 'mixture, 1 rank', 'mixture, 2 ranks', spread)
    decode('the same, matrices shared, too', 'mixture, 1 rank', 'mixture, 2 ranks, matrices shared, too',
           steps.goal('mixture with matrices shared, too, two ranks to one'))
    return rows


def memory_table(steps):
    rows = ["| memory for the 8B over two ranks, by the driver, to half of one rank's | found | goal, at most | |", '|---|---|---|---|']
    for rank in (0, 1):
        goal = steps.goal(f"memory of rank {rank}, to half of one rank's, by the driver")
        rows.append(f"| rank {rank} | {goal['found']:.3f} | {goal['limit']:g} | {verdict(goal)} |")
    return rows


def plots(routes):
    return {'all-reduce': all_reduce_plot(routes)}


def read():
    """Both records."""
    return two_gpu_records.read_steps(), two_gpu_records.read_routes(two_gpu_records.ROUTES.read_text())


def section(steps, routes, images):
    """images: {plot name: path from the page}."""
    command, machine = (line.removeprefix('# ') for line in two_gpu_records.ROUTES.read_text().splitlines()[:2])
    goals = steps.record['goals']
    checked = [goal for goal in goals if goal['goal'].startswith('calls checked')]
    engines = ', '.join(f"{goal['found']} by engine {goal['goal'].rsplit(' ', 1)[1]}" for goal in checked)
    text = f"\n## Two GPUs: {steps.record.get('date', DATE)}\n\n"
    text += (f"Machine, by the second record: {machine}. Records: `{two_gpu_records.STEPS.relative_to(ROOT)}` (repeat: `{steps.record['command']}`) and, "
             f"for the table by size and the plot, `{two_gpu_records.ROUTES.relative_to(ROOT)}` (repeat: `{command}`). Ranks are two processes, one a GPU. "
             f"Of {len(goals)} goals {sum(goal['passed'] for goal in goals)} were reached; "
             f"{len(checked)} are that calls are what their definitions say: {engines}.\n\n")
    text += NOTE.format(links=LINKS, link=LINK_RATE / 1e9, rate=LINKS * LINK_RATE / 1e9)
    text += '\n' + '\n'.join(all_reduce_table(steps)) + f"\n\n![all_reduce between two GPUs]({images['all-reduce']})\n\n"
    text += '\n'.join(collective_table(routes)) + '\n'
    text += '\n' + '\n'.join(norm_table(steps)) + '\n\n'
    text += LIMITS_NOTE.format(record=GPU.relative_to(ROOT)) + '\n'
    return text + '\n'.join(model_table(steps, json.loads(GPU.read_text())['limits'])) + '\n\n' + '\n'.join(memory_table(steps)) + '\n'
