"""What was measured on two GPUs: steps and goals of bench/two_gpus.py, and every collective by every way (`cermet bench comm --store`)."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = ROOT / 'bench/results/h200/compare/two-gpus.json'
ROUTES = ROOT / 'bench/results/h200/compare/routes-of-two-gpus.txt'
OWN = ('stamped', 'one-shot', 'two-shot')
UNITS = {'KiB': 1 << 10, 'MiB': 1 << 20, 'us': 1e-6, 'ms': 1e-3}


def read_routes(text):
    """{operator: {way: {bytes of the larger side: seconds}}}"""
    times = {}
    for op, way, size, unit, time, time_unit in re.findall(r'^  (\w+) +([\w-]+) +([\d.]+) (KiB|MiB) +([\d.]+) (us|ms) ', text, re.M):
        times.setdefault(op, {}).setdefault(way, {})[round(float(size) * UNITS[unit])] = float(time) * UNITS[time_unit]
    return times


def fastest(ways, among):
    """[(bytes, seconds, way)] of the fastest by size."""
    sizes = sorted({size for way in among for size in ways.get(way, {})})
    return [(size, *min((ways[way][size], way) for way in among if size in ways.get(way, {}))) for size in sizes]


class Steps:
    def __init__(self, record):
        self.record = record

    def result(self, what):
        return next(step['result'] for step in self.record['steps'] if step['what'] == what)

    def times(self, what):
        """{bytes: seconds} of a step of `bench comm`."""
        return {row['bytes']: row['seconds'] for row in self.result(what)['rows']}

    def goal(self, name):
        return next(goal for goal in self.record['goals'] if goal['goal'] == name)

    def decode(self, what):
        """A decode step as records of bench/gpu_suite.py have them."""
        figures = self.result(what)
        return {'seconds': figures['batch'] * figures['decode_seconds_per_token'], 'batch': figures['batch'], 'decode': figures}

    def prefill_seconds(self, what):
        figures = self.result(what)
        return figures['prompt_tokens'] / figures['prefill_tokens_per_second']


def read_steps():
    return Steps(json.loads(STEPS.read_text()))
