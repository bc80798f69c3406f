#!/usr/bin/env python3
"""Draws what the threads or blocks of a super-kernel did in a layer, from a timeline of `cermet bench model --trace` with profile=1.

  tools/plot_trace.py trace.json docs/images/super-kernel-layer.svg --scope layers.2
  tools/plot_trace.py trace.json --scope layers.2            # on a terminal

Of several passes the one is drawn in which the layer took least time. A row for each thread or block; a bar for each task, coloured by kernel; thin lines are waits.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import plots  # noqa: E402

LEFT, TOP, WIDTH, ROW = 80, 64, 720, 26


def passes_of(events, scope, super_kernel):
    """Tasks and waits of the scope, pass by pass: [row, start, duration, kernel], times in microseconds."""
    processes = {e['pid']: e['args']['name'] for e in events if e['ph'] == 'M' and e['name'] == 'process_name'}
    rows = {(e['pid'], e['tid']): e['args']['name'] for e in events if e['ph'] == 'M' and e['name'] == 'thread_name'}
    wanted = {pid for pid, name in processes.items() if name.startswith('super-kernel ') and super_kernel in (None, name.removeprefix('super-kernel '))}
    found = []
    for run in (e for e in events if e['ph'] == 'X' and e['cat'] == 'pass'):
        inside = [e for e in events if e['ph'] == 'X' and e['pid'] in wanted and e['args']['scope'].split('.')[:2] == scope.split('.')
                  and run['ts'] <= e['ts'] < run['ts'] + run['dur']]
        if inside:
            found.append([(rows[e['pid'], e['tid']], e['ts'], e['dur'], e['name'] if e['cat'] == 'task' else None) for e in inside])
    return found


def row_order(name):
    return name.split()[0], int(name.split()[1])


def chart(title, tasks):
    begin, end = min(t[1] for t in tasks), max(t[1] + t[2] for t in tasks)
    names = sorted({t[0] for t in tasks}, key=row_order)
    kernels = list(dict.fromkeys(t[3] for t in sorted(tasks, key=lambda t: t[1]) if t[3]))
    row_height = ROW if len(names) <= 24 else max(2, 24 * ROW // len(names))
    bottom = TOP + row_height * len(names)
    scale = WIDTH / plots.round_top(end - begin)
    parts = [plots.text(20, 26, title, 'title')]
    for quarter in range(5):
        x = LEFT + WIDTH * quarter / 4
        parts += [plots.line(x, TOP - 6, x, bottom, 'grid'), plots.text(x, bottom + 16, f'{plots.number((x - LEFT) / scale)} us', 'soft', 'middle')]
    for i, name in enumerate(names):
        if len(names) <= 24 or i % 16 == 0:
            parts.append(plots.text(LEFT - 8, TOP + row_height * (i + 0.5) + 4, name, 'soft', 'end'))
    for name, start, duration, kernel in tasks:
        y, x, width = TOP + row_height * names.index(name), LEFT + (start - begin) * scale, max(duration * scale, 0.5)
        if kernel is None:
            parts.append(plots.line(x, y + row_height / 2, x + width, y + row_height / 2, 'grid'))
        else:
            parts.append(f'<rect class="f{kernels.index(kernel) % 5}" x="{plots.number(x)}" y="{plots.number(y + 0.1 * row_height)}" width="{width:.2f}" '
                         f'height="{plots.number(0.8 * row_height)}"><title>{plots.escape(kernel)}: {duration:.1f} us</title></rect>')
    entries = plots.legend(LEFT, bottom + 40, kernels[:5], False)
    if kernels[5:]:
        entries.append(plots.text(LEFT, bottom + 60, 'colours again for: ' + ', '.join(kernels[5:]), 'soft'))
    return plots.document(LEFT + WIDTH + 40, bottom + 76, title, parts + entries)


LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'


def text_chart(title, tasks, columns=96, most_rows=17):
    """The same on a terminal: a line for some of the rows, a letter for each task, a dot where it waits; then when each task began and ended on all rows."""
    begin, end = min(t[1] for t in tasks), max(t[1] + t[2] for t in tasks)
    names = sorted({t[0] for t in tasks}, key=row_order)
    kinds, of_task, seen = [], {}, {}
    for task in sorted((t for t in tasks if t[3]), key=lambda t: t[1]):  # the n-th task of a kernel on a row is one with the n-th of the others
        number = seen[task[0], task[3]] = seen.get((task[0], task[3]), 0) + 1
        of_task[task] = (task[3], number)
        if of_task[task] not in kinds:
            kinds.append(of_task[task])
    lines = [f'{title}, {end - begin:.1f} us']
    shown = names[:: max(1, (len(names) + most_rows - 1) // most_rows)]
    for name in shown:
        cells = [' '] * columns
        for task in sorted((t for t in tasks if t[0] == name), key=lambda t: t[3] is not None):
            at = [min(columns - 1, int((t - begin) / (end - begin) * columns)) for t in (task[1], task[1] + task[2])]
            letter = '.' if task[3] is None else LETTERS[kinds.index(of_task[task]) % len(LETTERS)]
            cells[at[0] : at[1] + 1] = letter * (at[1] + 1 - at[0])
        lines.append(f'{name:>12} |{"".join(cells)}|')
    lines.append('us: began first, last; ended first, median, last')
    for i, kind in enumerate(kinds):
        own = [t for t in of_task if of_task[t] == kind]
        starts, ends = sorted(t[1] - begin for t in own), sorted(t[1] + t[2] - begin for t in own)
        times = [starts[0], starts[-1], ends[0], ends[len(ends) // 2], ends[-1]]
        lines.append(f'  {LETTERS[i % len(LETTERS)]} {kind[0]:28}' + ''.join(f'{t:8.2f}' for t in times))
    return '\n'.join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('trace', type=pathlib.Path)
    parser.add_argument('image', type=pathlib.Path, nargs='?', help='an SVG; without it, text')
    parser.add_argument('--scope', default='layers.1', help='first two parts of the scopes that are drawn')
    parser.add_argument('--super-kernel', help='its name, where the timeline has several')
    parser.add_argument('--rows', type=int, default=1, help='draw only passes in which as many threads or blocks had a task')
    options = parser.parse_args()
    found = passes_of(json.loads(options.trace.read_text())['traceEvents'], options.scope, options.super_kernel)
    found = [tasks for tasks in found if len({t[0] for t in tasks}) >= options.rows]
    if not found:
        sys.exit(f'{options.trace}: expected a pass with tasks of {options.scope} on {options.rows} threads or blocks, found none; was it made with profile=1?')
    shortest = min(found, key=lambda tasks: max(t[1] + t[2] for t in tasks) - min(t[1] for t in tasks))
    title = f'{options.scope} in a super-kernel'
    if options.image is None:
        print(text_chart(title, shortest))
    else:
        options.image.write_text(chart(title, shortest))


if __name__ == '__main__':
    main()
