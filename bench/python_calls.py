#!/usr/bin/env python3
"""What a call costs from Python: rms_norm of one row of 64 floats on one thread, where arithmetic is nothing, beside the framework's own functions of as many tensors.

usage: bench/python_calls.py   (with the package `cermet` installed; PyTorch where it is)
"""

import time

import numpy

import cermet


def microseconds(call, repeats: int = 100, rounds: int = 400) -> float:
    """The least mean of a round: what else the machine does only makes it more. Rounds are shorter than a time slice."""
    least = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        least = min(least, (time.perf_counter() - start) / repeats)
    return least * 1e6


def rows_of(name: str, x, w, out) -> list[tuple[str, object]]:
    operator = cermet.get_op("rms_norm", (x, w), device=cermet.Handle("cpu", 1))
    return [
        (f"{name}: operator of get_op, with out=", lambda: operator(x, w, out=out)),
        (f"{name}: operator of get_op", lambda: operator(x, w)),
        (f"{name}: cermet.rms_norm", lambda: cermet.rms_norm(x, w)),
    ]


def numpy_rows() -> list[tuple[str, object]]:
    x, w = numpy.ones((1, 64), numpy.float32), numpy.ones(64, numpy.float32)
    return [*rows_of("NumPy", x, w, numpy.empty_like(x)), ("NumPy: numpy.add", lambda: numpy.add(x, w))]


def torch_rows() -> list[tuple[str, object]]:
    try:
        import torch
    except ImportError:
        return []
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    import cermet.torch

    x, w = torch.ones(1, 64), torch.ones(64)
    return [
        *rows_of("PyTorch", x, w, torch.empty_like(x)),
        ("PyTorch: torch.ops.cermet.rms_norm", lambda: torch.ops.cermet.rms_norm(x, w)),
        ("PyTorch: torch.add", lambda: torch.add(x, w)),
        ("PyTorch: torch.nn.functional.rms_norm", lambda: torch.nn.functional.rms_norm(x, (64,), w, 1e-6)),
    ]


def main() -> None:
    rows = [*numpy_rows(), *torch_rows()]
    for name, call in rows:
        print(f"{microseconds(call):8.2f} us  {name}")


if __name__ == "__main__":
    main()
