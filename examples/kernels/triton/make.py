#!/usr/bin/env python3
"""Compiles kernels in Triton for a GPU that need not be there, and puts machine code, metadata and manifests into a folder for `cermet kernel add`.

  pip install triton
  python3 examples/kernels/triton/make.py FOLDER [--arch 90]
  cermet kernel add FOLDER/rms_norm.json

rms_norm takes any address. linear multiplies float32 matrices on the tensor cores, in three products of tf32 parts, which keep what float32 has: faster than
Cermet's own products of float32, on the CUDA cores, for more rows than a GEMV takes.
"""
import argparse
import json
import os
import pathlib
import shutil

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def rms_norm(x, weight, y, x_stride, y_stride, n, eps, weight_offset, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * x_stride + i, mask=i < n, other=0.0).to(tl.float32)
    scale = tl.load(weight + i, mask=i < n, other=0.0).to(tl.float32) + weight_offset
    factor = 1.0 / tl.sqrt_rn(tl.div_rn(tl.sum(value * value, axis=0), n.to(tl.float32)) + eps)
    tl.store(y + row * y_stride + i, (value * factor * scale).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def linear(x, w, y, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    r = tl.arange(0, BLOCK_K)
    from_x = x + i.to(tl.int64)[:, None] * k + r[None, :]
    from_w = w + j.to(tl.int64)[None, :] * k + r[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        inside = start + r < k
        a = tl.load(from_x + start, mask=(i < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(from_w + start, mask=(j < n)[None, :] & inside[:, None], other=0.0)
        total = tl.dot(a, b, total, input_precision="tf32x3")
    tl.store(y + i.to(tl.int64)[:, None] * n + j[None, :], total, mask=(i < m)[:, None] & (j < n)[None, :])


class Source:
    """A kernel's parameters in the order of its manifest, those that are multiples of 16 (bytes of pointers), and how a configuration is compiled."""

    def __init__(self, kernel, signature, multiples, constants, options):
        self.kernel, self.signature, self.multiples, self.constants, self.options = kernel, signature, multiples, constants, options

    def compiled(self, tile, arch):
        constants = self.constants(tile)
        names = [*self.signature, *constants]
        source = ASTSource(fn=self.kernel, signature={**self.signature, **{name: "constexpr" for name in constants}}, constexprs=constants,
                           attrs={(names.index(name),): [["tt.divisibility", 16]] for name in self.multiples})
        return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=self.options(tile))


SOURCES = {
    "rms_norm": Source(rms_norm,
                       {"x": "*bf16", "weight": "*bf16", "y": "*bf16", "x_stride": "i64", "y_stride": "i64", "n": "i32", "eps": "fp32", "weight_offset": "fp32"}, [],
                       lambda tile: {"BLOCK": tile["block"]}, lambda tile: {"num_warps": max(1, min(16, tile["block"] // 256))}),
    "linear": Source(linear, {"x": "*fp32", "w": "*fp32", "y": "*fp32", "m": "i32", "n": "i32", "k": "i32"}, ["x", "w", "y", "n", "k"],
                     lambda tile: {"BLOCK_M": tile["block_m"], "BLOCK_N": tile["block_n"], "BLOCK_K": 32}, lambda tile: {"num_warps": 4, "num_stages": 4}),
}


def make(name, folder, arch):
    manifest = pathlib.Path(__file__).with_name(f"{name}.json")
    for instance in json.loads(manifest.read_text())["code"]["instances"]:
        compiled = SOURCES[name].compiled(instance["tile"], arch)
        (folder / instance["file"]).write_bytes(compiled.asm["cubin"])
        metadata = {**compiled.metadata._asdict(), "target": vars(compiled.metadata.target)}
        (folder / instance["metadata"]).write_text(json.dumps(metadata, default=str, indent=1))
    shutil.copy(manifest, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", type=int, default=90, help="compute capability: 80, 90")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        make(name, options.folder, options.arch)


if __name__ == "__main__":
    main()
