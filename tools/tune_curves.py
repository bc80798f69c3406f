"""Draws how near searches come to the best of all candidates, from what bench_tune_replay prints.

usage: build/bin/bench_tune_replay bench/results/h200/tune/tables.json --json | python3 tools/tune_curves.py OUT.svg
"""
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from plots import line_chart  # noqa: E402

SHARES = (2.5, 5, 10, 20, 30, 50, 75, 100)  # of the candidates, in per cent
NAMES = {'bayes': 'models, then beside the fastest', 'random': 'random order', 'exhaustive': 'by modelled time'}


def at_share(curve, share):
    """Per cent above the least time after this share of the candidates; nothing where none of those was recorded."""
    ratio = curve[min(len(curve), max(1, math.ceil(len(curve) * share / 100))) - 1]
    return None if ratio is None else 100 * (ratio - 1)


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def panel(title, tables):
    series = {name: [mean([at_share(table['curves'][kind], share) for table in tables]) for share in SHARES] for kind, name in NAMES.items()}
    return f'{title}, {len(tables)} spaces', [f'{share:g} %' for share in SHARES], series


def main():
    tables = json.load(sys.stdin)
    large = [table for table in tables if table['candidates'] > 100]
    panels = [panel(title, of) for title, of in (('up to 100 candidates', [t for t in tables if t not in large]), ('more than 100 candidates', large)) if of]
    text = line_chart('Time above the least of all candidates, per cent', 'share of the candidates that were measured', panels)
    pathlib.Path(sys.argv[1]).write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
