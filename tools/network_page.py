"""The part of docs/performance.md about whole ONNX networks: records of bench/rivals/onnxruntime_models.py and bench/rivals/torch_networks.py."""
import json
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTE = '''Ratios above 1 mean that Cermet is faster. Modes `none` (one kernel for each operator) and `pattern` (elementwise operators join the product before them) are there to
study what fusion buys; `full` is the default. The limit is the time that the network's operations take at the machine's measured peak for their type, which is a sixth of that of
bf16 tiles for float32 where there are AMX tiles.
'''


def milliseconds(seconds):
    return '-' if not seconds else f'{1e3 * seconds:.3f}' if seconds < 1e-3 else f'{1e3 * seconds:.2f}'


def mean(ratios):
    return f'{statistics.fmean(ratios):.2f}' if ratios else '-'


def table(rival, rows):
    """Rows of (name, full, pattern, none, limit, rival), in seconds; None where it was not measured."""
    lines = [f'| network | full, ms | pattern | none | limit | {rival} | {rival} / full | none / full |', '|---|---:|---:|---:|---:|---:|---:|---:|']
    for name, full, pattern, none, limit, peer in rows:
        ratios = ' | '.join(f'{other / full:.2f}' if other else '-' for other in (peer, none))
        lines.append(f'| {name} | {milliseconds(full)} | {milliseconds(pattern)} | {milliseconds(none)} | {milliseconds(limit)} | {milliseconds(peer)} | {ratios} |')
    lines.append(f"| mean | | | | | | {mean([row[5] / row[1] for row in rows if row[5]])} | {mean([row[3] / row[1] for row in rows if row[3]])} |")
    return '\n'.join(lines) + '\n'


def cpu_rows(record):
    for row in record['rows']:
        sizes = ', '.join(f'{name} {size}' for name, size in row['dims'].items())
        modes, limits = row.get('modes', {}), row.get('limits', {})
        rate = lambda name: limits.get(f'{name}_operations_per_second', 0)
        peak = max(rate('int8'), rate('amx_int8')) if row['model'].endswith('-u8') else max(rate('f32'), rate('amx_bf16') / 6)
        yield (f"{row['model']} ({sizes})" if sizes else row['model'], row['ours_seconds'], modes.get('pattern'), modes.get('none'), row['operations'] / peak if peak else None, row['rival_seconds'])


def gpu_rows(record):
    of = lambda kind, name, batch: record.get(kind, {}).get(name, {}).get(batch)
    for name in record['ours']:
        for batch in sorted(record['ours'][name], key=int):
            operations = of('operations', name, batch)
            limit = operations / record['limits']['f16_operations_per_second'] if operations else None
            yield f'{name} (batch {batch})', of('ours', name, batch), of('pattern', name, batch), of('none', name, batch), limit, of('torch_compiled', name, batch)


def section():
    text = '\n## Whole networks\n\n' + NOTE
    for name in ('onnxruntime.json', 'onnxruntime-amx.json'):
        cpu = ROOT / 'bench/results/cpu/onnx' / name
        record = json.loads(cpu.read_text())
        version = record['rows'][0]['rival_version']
        text += f"\n### {record['machine']}, {record['threads']} threads, float32 but for `-u8`: {record['date']}\n\nRecord: `{cpu.relative_to(ROOT)}`. Repeat: `{record['command']}`.\n\n"
        text += table(f'onnxruntime {version}', list(cpu_rows(record)))
    for name, title in (('modes', '`--rounding fast`, three modes'), ('fast', '`--rounding fast`'), ('fast-modes', '`--rounding fast`, three modes before runs were replays of a captured graph'), ('strict', '`--rounding strict`')):
        path = ROOT / f'bench/results/h200/onnx/networks-{name}.json'
        record = json.loads(path.read_text())
        text += f"\n### {record['machine']}, f16, {title}: {record['date']}\n\nRecord: `{path.relative_to(ROOT)}`; {record['what']}. The rival is PyTorch {record['torch']}, compiled, with CUDA graphs. "
        text += 'Repeat: ' + ' and '.join(f'`{command}`' for command in record['commands']) + '.\n\n'
        text += table('PyTorch', list(gpu_rows(record)))
    return text
