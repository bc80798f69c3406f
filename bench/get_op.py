"""What a call costs beside its kernel, Cermet's and PyTorch's, on the same small operands in one run on one thread: nanoseconds.

usage: get_op.py [--program build/bin/bench_get_op] [--seconds 0.2]

PyTorch's operators are called from C++ (torch.utils.benchmark compiles the statements), into memory that is there, as Cermet's are. Rounds of both
alternate; the table has medians. On the CPU alone: what a call costs on a GPU's stream beside the launch, bench_get_op tells on null:sm_90.
"""
import argparse
import json
import pathlib
import statistics
import subprocess

import torch
from torch.utils import benchmark

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 3
# The operands of bench/get_op.cpp with 6 rows.
STATEMENTS = {
    'add': ('auto a = torch::ones({6, 16}), b = torch::ones({6, 16}), y = torch::empty({6, 16});', 'at::add_out(y, a, b);'),
    'rms_norm': ('auto a = torch::ones({6, 64}), w = torch::ones({64});', 'at::rms_norm(a, {64}, w, 1e-6);'),
    'linear': ('auto a = torch::ones({6, 16}), w = torch::ones({16, 16}), y = torch::empty({6, 16});', 'at::linear_out(y, a, w);'),
    'matmul': ('auto a = torch::ones({6, 16}), w = torch::ones({16, 16}), y = torch::empty({6, 16});', 'at::matmul_out(y, a, w);'),
}


def torch_nanoseconds(seconds):
    """By operator: a call from C++."""
    times = {}
    for name, (setup, statement) in STATEMENTS.items():
        timer = benchmark.Timer(stmt=statement, setup='c10::InferenceMode guard;\n' + setup, language=benchmark.Language.CPP, num_threads=1)
        times[name] = 1e9 * timer.blocked_autorange(min_run_time=seconds).median
    return times


def cermet_nanoseconds(program, seconds):
    """By operator: the figures of bench_get_op."""
    out = subprocess.run([program, '--json', str(seconds), 'cpu'], check=True, capture_output=True, text=True).stdout
    return {row['operator']: row for row in json.loads(out)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=str(ROOT / 'build/bin/bench_get_op'))
    parser.add_argument('--seconds', type=float, default=0.2, help='for each figure')
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rounds = [(torch_nanoseconds(arguments.seconds), cermet_nanoseconds(arguments.program, arguments.seconds)) for _ in range(ROUNDS)]
    print(f'torch {torch.__version__}; nanoseconds of a call, medians of {ROUNDS} rounds')
    print(f'{"operator":12}{"torch":>9}{"op_run":>9}{"call":>9}{"kernel":>9}')
    for name in STATEMENTS:
        def median(key):
            return statistics.median(row[name][key] for _, row in rounds)
        print(f'{name:12}{statistics.median(t[name] for t, _ in rounds):9.0f}{median("op_run_ns"):9.0f}{median("call_ns"):9.0f}{median("kernel_ns"):9.0f}')


if __name__ == '__main__':
    main()
