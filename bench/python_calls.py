#!/usr/bin/env python3
"""What a call costs from Python: rms_norm of one row of 64 floats on one thread, where arithmetic is nothing, beside the framework's own functions of as many tensors.

usage: bench/python_calls.py [--cuda]   (with the package `cermet` installed; PyTorch where it is)

--cuda: what enqueueing costs the host on a GPU, of operators and of a graph of 16 operators, with PyTorch's tensors.
"""

import sys
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


def cuda_rows() -> list[tuple[str, object]]:
    import torch

    torch.set_grad_enabled(False)
    x, w, out = torch.ones(1, 64, device="cuda"), torch.ones(64, device="cuda"), torch.empty(1, 64, device="cuda")
    operator = cermet.get_op("rms_norm", (x, w))
    rows = [
        ("operator of get_op, with out=", lambda: operator(x, w, out=out)),
        ("operator of get_op", lambda: operator(x, w)),
        ("cermet.rms_norm", lambda: cermet.rms_norm(x, w)),
        ("torch.add", lambda: torch.add(x, w)),
        ("torch.nn.functional.rms_norm", lambda: torch.nn.functional.rms_norm(x, (64,), w, 1e-6)),
    ]
    for capture in (True, False):
        graph = cermet.Graph("norms", device="cuda")
        y = graph.input("x", (1, 64))
        for _ in range(8):
            y = graph.add(graph.rms_norm(y, w), y)
        graph.output("y", y)
        session = graph.compile(capture=capture)
        rows.append((f"session of {session.steps} launches, with out=, capture={capture}", lambda session=session: session(x, out=out)))

    def eager():
        y = x
        for _ in range(8):
            y = torch.nn.functional.rms_norm(y, (64,), w, 1e-6) + y
        return y

    return [*rows, ("the same by PyTorch, 16 operators", eager)]


def enqueued(call, repeats: int = 200, rounds: int = 20) -> float:
    """The same for calls that a GPU computes: the host's time alone, with nothing in its queue before."""
    import torch

    least = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        least = min(least, (time.perf_counter() - start) / repeats)
    return least * 1e6


def main() -> None:
    on_gpu = "--cuda" in sys.argv[1:]
    for name, call in cuda_rows() if on_gpu else [*numpy_rows(), *torch_rows()]:
        print(f"{(enqueued if on_gpu else microseconds)(call):8.2f} us  {name}")


if __name__ == "__main__":
    main()
