"""The part of docs/performance.md about tuning: records of bench/tune_bench.py, and of bench/tune_tables.py where all candidates were measured."""
import json
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / 'bench/results'
NOTE = '''60 random shapes, tuned within one budget; gains are measured anew afterwards, tuned and untuned in turn, where nothing else is said. Goals: a mean gain of 1.03 and none below 0.99; untuned choices
within 5 % of the best for 54 of 60; two tunings that agree. `room` is what untuned choices take beyond the least time that any record in `bench/results/` has for their shapes, in the geometric mean: more than that
no choice among the candidates that were measured can gain. What became of each miss: [notes/tuning.md](notes/tuning.md).
'''
# Folder, record, what is to be known about it.
RECORDS = (
    ('h200', 'random-shapes', 'before its findings went into the models'),
    ('h200', 'random-shapes-again', ''),
    ('h200', 'random-shapes-now', ''),
    ('h200', 'random-shapes-fresh', '60 other shapes, which no model was held against; gains while tuning'),
    ('cpu', 'xeon-amx-2-cores', 'over own kernels and oneDNN, threads, panels and shares of rows'),
)


def read(folder, name):
    return json.loads((RESULTS / folder / 'tune' / f'{name}.json').read_text())


def results_of(record):
    """Times of (operator, shape), in seconds: those that a record chose, compared or measured."""
    for result in record.get('results', []):
        measured = [result['seconds'], *([result['untuned']['seconds']] if 'untuned' in result else [])]
        if isinstance(result['tried'], list):
            measured += [seconds for _, _, seconds, state in result['tried'] if state == 'measured']
        for seconds in measured:
            yield (result['op'], result['shape']), seconds
    for tuning in record.get('tunings', []):
        yield from results_of(tuning)
    for table in record.get('tables', []):
        for row in table['tried']:
            if len(row) == 4:
                yield (table['op'], table['shape']), 1e-6 * row[2]


def least_of(folder):
    """The least time that any record of the folder has, by operator and shape."""
    least = {}
    for path in sorted((RESULTS / folder / 'tune').glob('*.json')):
        for call, seconds in results_of(json.loads(path.read_text())):
            least[call] = min(seconds, least.get(call, math.inf))
    return least


def room(record, least):
    ratios = [result['untuned']['seconds'] / least[result['op'], result['shape']] for result in record['results']]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def near(record):
    """Untuned choices within 5 %, as far as the record says how many."""
    found = record.get('untuned_near')
    return f"{found['near']} of {found['calls']}" if found else '-'


def agreement(record):
    again = record.get('again')
    return f"{again['same']} alike, {again['within_noise']} within noise, of {again['calls']}" if again else '-'


def exhaustive_line(folder, name):
    record = read(folder, name)
    tables = record['tables']
    close = sum(1 for table in tables if 1 / 1.05 < min(row[2] for row in table['tried'] if len(row) == 4) / table['tried'][0][2])
    return (f"All candidates of {len(tables)} calls, {record['device']}: the untuned choice is within 5 % of the best for {close}. "
            f"Record: `bench/results/{folder}/tune/{name}.json`. Repeat: `{record['command']}`.\n")


def section():
    lines = ['| device | record | tuned, in seconds | mean gain | least | room | untuned within 5 % | two tunings |', '|---|---|---|---:|---:|---:|---|---|']
    for folder, name, remark in RECORDS:
        record = read(folder, name)
        device = record['device'].split(',')[0] + (f', {remark}' if remark else '')
        # A CPU's records are of two machines, so that one has nothing to say about the other's least.
        space = f"{room(record, least_of(folder)):.3f}" if folder != 'cpu' else '-'
        lines.append(f"| {device} | `{folder}/tune/{name}.json` | {record['tuned']} of {record['calls']}, {record['seconds']:.0f} of {record['budget']:.0f} | {record['mean_gain']:.3f} | "
                     f"{record['least_gain']:.2f} | {space} | {near(record)} | {agreement(record)} |")
    return '\n## Tuning\n\n' + NOTE + '\n' + '\n'.join(lines) + '\n\n' + exhaustive_line('cpu', 'tables')
