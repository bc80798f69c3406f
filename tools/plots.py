"""Small SVG charts without a library: lines over categories in panels, and horizontal bars. Colours follow the reader's light or dark scheme."""
import math
from html import escape

# By order of appearance: Cermet first, then its rivals; colours that colour-blind readers can tell apart.
LIGHT = {'ink': '#1f2328', 'soft': '#59636e', 'grid': '#d8dee4', 'back': '#ffffff', 'series': ('#0969da', '#bc4c00', '#1a7f37', '#8250df', '#7d6608')}
DARK = {'ink': '#e6edf3', 'soft': '#9198a1', 'grid': '#30363d', 'back': '#0d1117', 'series': ('#58a6ff', '#f0883e', '#3fb950', '#bc8cff', '#d4b106')}


def colours(scheme):
    rules = [f"text{{fill:{scheme['ink']}}}.soft{{fill:{scheme['soft']}}}.grid{{stroke:{scheme['grid']}}}.limit{{stroke:{scheme['soft']}}}.back{{fill:{scheme['back']}}}.mark{{stroke:{scheme['ink']}}}.halo{{stroke:{scheme['back']}}}.value{{stroke:{scheme['back']}}}"]
    return ''.join(rules + [f'.l{i}{{stroke:{colour}}}.f{i}{{fill:{colour}}}' for i, colour in enumerate(scheme['series'])])


# Plain colours rather than variables, which some viewers do not know.
STYLE = ('<style>text{font:12px system-ui,"Segoe UI","DejaVu Sans",Arial,sans-serif}.title{font-size:15px;font-weight:600}.panel{font-weight:600}'
         '.value{paint-order:stroke;stroke-width:4;stroke-linejoin:round}.limit{stroke-dasharray:5 4;fill:none;stroke-width:1.5}.mark{stroke-width:1.5}.halo{stroke-width:4.5}' + ''.join(f'.l{i}{{fill:none;stroke-width:2}}' for i in range(5)) + '\n'
         + colours(LIGHT) + '\n@media (prefers-color-scheme:dark){' + colours(DARK) + '}</style>')
LIMIT = 'limit'


def number(value):
    return f'{value:.1f}'.rstrip('0').rstrip('.')


def text(x, y, content, kind='', anchor='start'):
    return f'<text x="{number(x)}" y="{number(y)}" class="{kind}" text-anchor="{anchor}">{escape(str(content))}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<path class="{kind}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def document(width, height, title, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {number(height)}" width="{width}" height="{number(height)}" role="img">'
            f'<title>{escape(title)}</title>{STYLE}\n<rect class="back" width="{width}" height="{number(height)}" rx="6"/>\n' + '\n'.join(parts) + '\n</svg>\n')


def legend(x, y, names, lines):
    """Entries side by side. Colours go by place in `names`."""
    parts = []
    for i, name in enumerate(names):
        if name == LIMIT:
            parts.append(line(x, y - 4, x + 18, y - 4, 'limit') if lines else line(x + 9, y - 12, x + 9, y + 2, 'mark'))
        elif lines:
            parts += [line(x, y - 4, x + 18, y - 4, f'l{i}'), f'<circle class="f{i}" cx="{x + 9}" cy="{y - 4}" r="3"/>']
        else:
            parts.append(f'<rect class="f{i}" x="{x}" y="{y - 10}" width="14" height="10"/>')
        parts.append(text(x + 24, y, name))
        x += 38 + 7 * len(name)
    return parts


def round_top(value):
    """The next number of 1, 2, 2.5 or 5 times a power of ten, and its fourth."""
    unit = 1.0
    while unit * 10 <= value:
        unit *= 10
    while unit > value:
        unit /= 10
    return next(unit * factor for factor in (1, 2, 2.5, 4, 5, 8, 10) if unit * factor >= value * (1 - 1e-9))


def linear_scale(top):
    """Values of the grid, and the share of a panel's height that a value has."""
    return [top * step / 4 for step in range(5)], lambda value: value / top


def logarithmic_scale(values):
    """The same, from the next of 1, 2 or 5 times a power of ten below all values to the next above."""
    steps = [factor * 10.0 ** power for power in range(-3, 7) for factor in (1, 2, 5)]
    low, high = max(step for step in steps if step <= min(values)), min(step for step in steps if step >= max(values))
    return [step for step in steps if low <= step <= high], lambda value: math.log(value / low) / math.log(high / low)


def panel(x, y, width, height, title, categories, series, names, scale):
    """series: {name: values by category, None where there is none}."""
    parts = [text(x, y - 10, title, 'panel')]
    grid, share = scale
    for value in grid:
        level = y + height * (1 - share(value))
        parts += [line(x, level, x + width, level, 'grid'), text(x - 6, level + 4, number(value), 'soft', 'end')]
    place = lambda i: x + width * (i + 0.5) / len(categories)
    parts += [text(place(i), y + height + 16, category, 'soft', 'middle') for i, category in enumerate(categories)]
    for name, values in series.items():
        points = [(place(i), y + height * (1 - share(value))) for i, value in enumerate(values) if value is not None]
        if not points:
            continue
        kind = 'limit' if name == LIMIT else f'l{names.index(name)}'
        parts.append(f'<path class="{kind}" d="M' + 'L'.join(f'{number(px)} {number(py)}' for px, py in points) + '"/>')
        if name != LIMIT:
            parts += [f'<circle class="f{names.index(name)}" cx="{number(px)}" cy="{number(py)}" r="3"/>' for px, py in points]
    return parts


def line_chart(title, x_label, panels, logarithmic=False):
    """panels: [(title, categories, series)], two side by side, one linear scale for all or a logarithmic one for each."""
    names = list(dict.fromkeys(name for _, _, series in panels for name in series))
    names = [name for name in names if name != LIMIT] + ([LIMIT] if LIMIT in names else [])
    present = [[value for values in series.values() for value in values if value is not None] for _, _, series in panels]
    linear = linear_scale(round_top(max(value for values in present for value in values)))
    width, height = 380, 170
    parts = [text(20, 26, title, 'title'), *legend(20, 50, names, True)]
    rows = (len(panels) + 1) // 2
    for i, (name, categories, series) in enumerate(panels):
        parts += panel(60 + i % 2 * (width + 70), 90 + i // 2 * (height + 65), width, height, name, categories, series, names,
                       logarithmic_scale(present[i]) if logarithmic else linear)
    bottom = 90 + rows * (height + 65)
    parts.append(text(20, bottom - 8, x_label, 'soft'))
    return document(900, bottom + 6, title, parts)


def bar_chart(title, unit, rows, more_is_better=True):
    """rows: [(label, {name: value}, limit or None)]. One group of bars a row, the limit a mark across it."""
    names = list(dict.fromkeys(name for _, values, _ in rows for name in values))
    names += [LIMIT] if any(limit is not None for _, _, limit in rows) else []
    top = round_top(max(value for _, values, limit in rows for value in (*values.values(), limit or 0)))
    left, width, thick = 250, 560, 12
    parts = [text(20, 26, title, 'title'), *legend(20, 50, names, False)]
    y = 70.0
    for label, values, limit in rows:
        begin, notes = y, []
        for name, value in values.items():
            length = max(1.0, width * value / top)
            parts.append(f'<rect class="f{names.index(name)}" x="{left}" y="{number(y)}" width="{number(length)}" height="{thick}"/>')
            notes.append(text(left + length + 6, y + thick - 2, f'{value:.3g}' if value < 100 else f'{value:,.0f}', 'soft value'))
            y += thick + 2
        parts.append(text(left - 10, (begin + y) / 2 + 3, label, '', 'end'))
        if limit is not None:
            x = left + width * limit / top
            parts += [line(x, begin - 3, x, y + 1, 'halo'), line(x, begin - 3, x, y + 1, 'mark')]
        parts += notes  # above the mark of the limit
        y += 10
    parts.append(text(20, y + 12, f"{unit}; {'more' if more_is_better else 'less'} is better", 'soft'))
    return document(900, y + 22, title, parts)
