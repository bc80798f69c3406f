#!/usr/bin/env python3
"""Compiles rms_norm in Triton for a GPU that need not be there, and puts machine code, metadata and manifest into a folder for `cermet kernel add`.

  pip install triton
  python3 examples/kernels/triton/make.py FOLDER [--arch 90]
  cermet kernel add FOLDER/rms_norm.json
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


# In the order of the manifest's parameters. Without hints such as ("x", "tt.divisibility") the code takes any address.
SIGNATURE = {"x": "*bf16", "weight": "*bf16", "y": "*bf16", "x_stride": "i64", "y_stride": "i64", "n": "i32", "eps": "fp32", "weight_offset": "fp32",
             "BLOCK": "constexpr"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", type=int, default=90, help="compute capability: 80, 90")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    manifest = pathlib.Path(__file__).with_name("rms_norm.json")
    for instance in json.loads(manifest.read_text())["code"]["instances"]:
        block = instance["tile"]["block"]
        source = ASTSource(fn=rms_norm, signature=SIGNATURE, constexprs={"BLOCK": block})
        compiled = triton.compile(source, target=GPUTarget("cuda", options.arch, 32), options={"num_warps": max(1, min(16, block // 256))})
        (options.folder / instance["file"]).write_bytes(compiled.asm["cubin"])
        metadata = {**compiled.metadata._asdict(), "target": vars(compiled.metadata.target)}
        (options.folder / instance["metadata"]).write_text(json.dumps(metadata, default=str, indent=1))
    shutil.copy(manifest, options.folder)


if __name__ == "__main__":
    main()
