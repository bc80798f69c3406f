"""Cermet: transformers from operator to running model, on CPUs and NVIDIA GPUs.

    import cermet
    matmul = cermet.get_op("matmul", (a, b))   # NumPy or PyTorch, on the CPU or a GPU, without a copy
    y = matmul(a, b)
    y = cermet.rms_norm(x, weight, eps=1e-5)   # every operator is a function: cermet.kernels
    print(cermet.Model("models/demo").generate("The PostgreSQL server", max_new_tokens=32))
"""

from __future__ import annotations

import typing

from . import _native
from . import kernels as kernels
from .command import explain as explain
from .command import quantize_model as quantize_model
from .devices import Handle as Handle
from .errors import Cancelled as Cancelled
from .errors import Error as Error
from .errors import InternalError as InternalError
from .errors import InvalidArgument as InvalidArgument
from .errors import InvalidFile as InvalidFile
from .errors import IoError as IoError
from .errors import OutOfMemory as OutOfMemory
from .errors import Unsupported as Unsupported
from .graph import Graph as Graph
from .graph import Session as Session
from .graph import Weights as Weights
from .model import Generation as Generation
from .model import Model as Model
from .model import Stream as Stream
from .onnx import OnnxModel as OnnxModel
from .operators import Operator as Operator
from .operators import get_op as get_op
from .operators import weight as weight
from .types import Tensor as Tensor

if typing.TYPE_CHECKING:  # where there is no __getattr__, so that a name that is none is an error
    from .kernels import *  # noqa: F403
    from .torch.program import compile as compile
    from .torch.scope import scope as scope
    from .torch.scope import super_kernel as super_kernel
else:

    #: What needs PyTorch, which is imported with it.
    _of_torch = {"compile": ".torch.program", "super_kernel": ".torch.scope", "scope": ".torch.scope"}

    def __getattr__(name: str):
        if name in _of_torch:
            import importlib

            globals()[name] = made = getattr(importlib.import_module(_of_torch[name], __name__), name)
            return made
        if name in kernels.__all__:
            globals()[name] = made = getattr(kernels, name)  # found without this function from now on
            return made
        raise AttributeError(f"module 'cermet' has no attribute {name!r}")


__version__: str = _native.version()


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if not name.startswith("_") and name != "typing"), *kernels.__all__, *_of_torch, "__version__"})
