"""What a call costs beside its kernel, Cermet's and PyTorch's, on the same small operands in one run on one thread: nanoseconds.

usage: get_op.py [--device cpu|cuda] [--program build/bin/bench_get_op] [--seconds 0.2] [--compile-only] [--folder FOLDER]

PyTorch's operators are called from C++, from a program that this one compiles against its ATen (half a minute, once for a --folder), into memory that is there,
as Cermet's are. Rounds of both alternate; the table has medians. On a GPU a call ends when its launch is in the stream, and the device has caught up before each
batch of 64; `kernel` is then what Cermet's launch takes without a call around it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import torch
from torch.utils import cpp_extension

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 3
# The operands of bench/get_op.cpp with 6 rows.
STATEMENTS = {
    'add': 'at::add_out(y, a, b)',
    'rms_norm': 'at::rms_norm(long_rows, {64}, scale, 1e-6)',
    'linear': 'at::linear_out(y, a, w)',
    'matmul': 'at::matmul_out(y, a, w)',
}
PROGRAM = r"""
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

template <class Call>
double nanoseconds(Call&& call, bool on_gpu, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int count = 64;
  std::vector<double> times;
  for (double sum = 0; sum < seconds || times.size() < 10;) {
    if (on_gpu) at::detail::getCUDAHooks().deviceSynchronize(0);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) call();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    sum += times.back();
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return 1e9 * times[times.size() / 2] / count;
}

int main(int, char** argv) {
  const c10::InferenceMode guard;
  at::set_num_threads(1);
  const bool on_gpu = std::string(argv[1]) == "cuda";
  const double seconds = std::atof(argv[2]);
  const auto options = at::TensorOptions().device(on_gpu ? at::kCUDA : at::kCPU);
  auto a = at::ones({6, 16}, options), b = at::ones({6, 16}, options), w = at::ones({16, 16}, options), y = at::empty({6, 16}, options);
  auto long_rows = at::ones({6, 64}, options), scale = at::ones({64}, options);
  std::printf("{\"\": 0");
@CALLS@
  std::printf("}\n");
}
"""


def compile_torch_program(folder):
    program = folder / 'torch_calls'
    if program.exists():
        return program
    calls = '\n'.join(f'  std::printf(", \\"{name}\\": %.1f", nanoseconds([&] {{ {call}; }}, on_gpu, seconds));' for name, call in STATEMENTS.items())
    (folder / 'torch_calls.cpp').write_text(PROGRAM.replace('@CALLS@', calls))
    libraries = cpp_extension.library_paths()
    # The libraries for GPUs register themselves, so that nothing names them; a PyTorch without has none.
    gpu = ['-ltorch_cuda', '-lc10_cuda'] if any((pathlib.Path(path) / 'libtorch_cuda.so').exists() for path in libraries) else []
    subprocess.run(['c++', '-O2', '-std=c++20', *(f'-I{path}' for path in cpp_extension.include_paths()), f'-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}',
                    str(folder / 'torch_calls.cpp'), '-o', str(program), *(f'-L{path}' for path in libraries), *(f'-Wl,-rpath,{path}' for path in libraries),
                    '-Wl,--no-as-needed', '-Wl,--allow-shlib-undefined', '-ltorch', '-ltorch_cpu', '-lc10', *gpu], check=True)
    return program


def torch_nanoseconds(program, device, seconds):
    """By operator: a call from C++."""
    return json.loads(subprocess.run([program, device, str(seconds)], check=True, capture_output=True, text=True).stdout)


def cermet_nanoseconds(program, device, seconds):
    """By operator: the figures of bench_get_op."""
    out = subprocess.run([program, '--json', str(seconds), device], check=True, capture_output=True, text=True).stdout
    return {row['operator']: row for row in json.loads(out)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--device', default='cpu', choices=['cpu', 'cuda'])
    parser.add_argument('--program', default=str(ROOT / 'build/bin/bench_get_op'))
    parser.add_argument('--seconds', type=float, default=0.2, help='for each figure')
    parser.add_argument('--folder', type=pathlib.Path, help="where PyTorch's program is kept")
    parser.add_argument('--compile-only', action='store_true')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        torch_program = compile_torch_program(folder)
        if arguments.compile_only:
            return
        rounds = [(torch_nanoseconds(torch_program, arguments.device, arguments.seconds), cermet_nanoseconds(arguments.program, arguments.device, arguments.seconds))
                  for _ in range(ROUNDS)]
    print(f'torch {torch.__version__}, {arguments.device}; nanoseconds of a call, medians of {ROUNDS} rounds; get_op: of a known and of a new range of rows')
    columns = {'op_run': 'op_run_ns', 'call': 'call_ns', 'kernel': 'kernel_ns', 'known': 'get_op_known_ns', 'new': 'get_op_new_ns'}
    print(f'{"operator":12}{"torch":>9}' + ''.join(f'{name:>9}' for name in columns))
    for name in STATEMENTS:
        print(f'{name:12}{statistics.median(t[name] for t, _ in rounds):9.0f}'
              + ''.join(f'{statistics.median(row[name][key] for _, row in rounds):9.0f}' for key in columns.values()))


if __name__ == '__main__':
    main()
