"""Cermet: transformers from operator to running model, on CPUs and NVIDIA GPUs.

    import cermet
    matmul = cermet.get_op("matmul", (a, b))   # NumPy or PyTorch, on the CPU or a GPU, without a copy
    y = matmul(a, b)
    y = cermet.rms_norm(x, weight, eps=1e-5)   # every operator is a function: cermet.kernels
    print(cermet.Model("models/demo").generate("The PostgreSQL server", max_new_tokens=32))
"""

from __future__ import annotations

import typing

from . import _native, kernels
from .command import explain, quantize
from .devices import Handle
from .errors import Cancelled, Error, InternalError, InvalidArgument, InvalidFile, IoError, OutOfMemory, Unsupported
from .graph import Graph, Session
from .model import Generation, Model, Stream
from .onnx import OnnxModel
from .operators import Operator, get_op, weight

if typing.TYPE_CHECKING:  # where there is no __getattr__, so that a name that is none is an error
    from .kernels import *  # noqa: F403
else:

    def __getattr__(name: str):
        if name in kernels.__all__:
            globals()[name] = made = getattr(kernels, name)  # found without this function from now on
            return made
        raise AttributeError(f"module 'cermet' has no attribute {name!r}")


__version__ = _native.version()

_OWN = [
    "Cancelled", "Error", "Generation", "Graph", "Handle", "InternalError", "InvalidArgument", "InvalidFile", "IoError", "Model", "OnnxModel", "Operator", "OutOfMemory",
    "Session", "Stream", "Unsupported", "explain", "get_op", "kernels", "quantize", "weight",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*_OWN, *kernels.__all__, "__version__"])
