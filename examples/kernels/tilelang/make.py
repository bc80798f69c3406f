#!/usr/bin/env python3
"""Generates rms_norm with TileLang for a GPU that need not be there, compiles it with nvcc, and puts machine code and manifest into a folder for
`cermet kernel add`.

  pip install tilelang
  python3 examples/kernels/tilelang/make.py FOLDER [--arch 90]
  cermet kernel add FOLDER/rms_norm.json

The manifest has the generated function's parameters in the order in which TileLang 0.1.15 writes them (rms_norm.cu in the folder), and the shared memory of its
reduction over 256 threads.
"""
import argparse
import os
import pathlib
import shutil
import subprocess

import tilelang
import tilelang.language as T

HIDDEN = 4096  # known at compile time: the manifest's N


def rms_norm(hidden, threads=256):
    rows = T.dynamic("rows")

    @T.prim_func
    def main(x: T.Tensor((rows, hidden), "bfloat16"), weight: T.Tensor((hidden,), "bfloat16"), y: T.Tensor((rows, hidden), "bfloat16"), eps: T.float32,
             weight_offset: T.float32):
        with T.Kernel(rows, threads=threads) as row:
            value = T.alloc_fragment((1, hidden), "float32")
            square = T.alloc_fragment((1, hidden), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(hidden):
                value[0, i] = T.cast(x[row, i], "float32")
                square[0, i] = value[0, i] * value[0, i]
            T.reduce_sum(square, total, dim=1)
            for i in T.Parallel(hidden):
                scale = T.cast(weight[i], "float32") + weight_offset
                y[row, i] = T.cast(value[0, i] * T.rsqrt(total[0] / hidden + eps) * scale, "bfloat16")

    return main


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", type=int, default=90, help="compute capability: 80, 90")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": f"sm_{options.arch}"})
    with target:
        artifact = tilelang.lower(rms_norm(HIDDEN), target=target)
    source = options.folder / "rms_norm.cu"
    source.write_text(artifact.kernel_source)
    home = pathlib.Path(tilelang.__file__).parent
    nvcc = os.environ.get("NVCC", shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    subprocess.run([nvcc, "-std=c++17", "-O3", "-cubin", f"-arch=sm_{options.arch}", "--expt-relaxed-constexpr", "-I", str(home / "src"), "-I",
                    str(home / "3rdparty/cutlass/include"), "-o", str(options.folder / "rms_norm.cubin"), str(source)], check=True)
    shutil.copy(pathlib.Path(__file__).with_name("rms_norm.json"), options.folder)


if __name__ == "__main__":
    main()
