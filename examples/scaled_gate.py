"""A scaled int8 product and a gated activation with quantization, as two launches and as a super-kernel region: the same bits, and the time of both.

usage: examples/scaled_gate.py [cpu|cuda [ROWS K N]]   (with the package `cermet` installed; on a GPU, PyTorch)
"""

import contextlib
import sys
import time

import numpy as np

import cermet

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
rows, k, n = map(int, sys.argv[2:5]) if len(sys.argv) == 5 else (864, 7168, 4096)


def operands():
    """x, a scale for each token, a scale for each element, w and a scale for each channel."""
    random = np.random.default_rng(1)
    arrays = [
        random.integers(-128, 128, (rows, k), np.int8), random.uniform(0.001, 0.01, rows).astype(np.float32),
        random.uniform(0.1, 2, (rows, n)).astype(np.float32), random.integers(-128, 128, (n, k), np.int8),
        random.uniform(0.001, 0.01, n).astype(np.float32),
    ]  # fmt: skip
    if device == "cpu":
        return arrays
    import torch

    return [torch.from_numpy(array).to(device) for array in arrays]


def compiled(w, w_scale, scope) -> cermet.Session:
    with cermet.Graph("scaled_gate", device=device) as graph:
        x = graph.input("x", (rows, k), "i8")
        x_scale = graph.input("x_scale", (rows,))
        scales = graph.input("weight_scale", (rows, n))
        with scope(graph):
            y = graph.scaled_mm(x, w, x_scale, w_scale, out_dtype="bf16")
            q, scale = graph.dequant_swiglu_quant(y, scales)
        graph.output("q", q)
        graph.output("scale", scale)
        return graph.compile()


def seconds_of(session, inputs) -> float:
    """The least time of a run, of those of half a second."""
    out = session(*inputs)
    wait = (lambda: None) if device == "cpu" else __import__("torch").cuda.synchronize
    least, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < 0.5:
        begin = time.perf_counter()
        session(*inputs, out=out)
        wait()
        least = min(least, time.perf_counter() - begin)
    return least


*inputs, w, w_scale = operands()
apart = compiled(w, w_scale, lambda graph: contextlib.nullcontext())
region = compiled(w, w_scale, lambda graph: graph.super_kernel("sp1", "stream-fusion=1:strict-scope-check=bypass"))
pairs = zip(apart(*inputs), region(*inputs))
same = all(np.array_equal(np.asarray(a.cpu() if device != "cpu" else a), np.asarray(b.cpu() if device != "cpu" else b)) for a, b in pairs)
print(f"results of {apart.steps} launches and of the region: {'the same bits' if same else 'different'}")
print(f"{device}: {1e6 * seconds_of(apart, inputs):.1f} us apart, {1e6 * seconds_of(region, inputs):.1f} us as a region", file=sys.stderr)
