"""Every private name of PyTorch that this package uses: where a release moves one, this file follows. Written for 2.10
to 2.15.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._decomp import core_aten_decompositions as core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd as aot_autograd
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import unset_fake_temporarily as unset_fake_temporarily
from torch.export.exported_program import _override_composite_implicit_decomp, _special_op_to_preserve_cia


@contextlib.contextmanager
def composites_kept(operators: list[torch._ops.OpOverload]) -> Iterator[None]:
    """While AOTAutograd traces inside, these composite operators stay one node each, as in an exported program."""
    with _override_composite_implicit_decomp({operator: _special_op_to_preserve_cia for operator in operators}):
        yield


def is_composite(operator: torch._ops.OpOverload) -> bool:
    """Whether the dispatcher takes the operator apart before AOTAutograd sees it."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")


def static_inputs() -> tuple[int, ...]:
    """Which inputs of the graph that AOTAutograd is compiling are weights: those whose memory stays and that the graph
    does not write.
    """
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return ()
    written = {i for i, info in enumerate(metadata.input_info) if info.mutates_data}
    return tuple(i for i in metadata.static_input_indices or () if i not in written)


def is_fake(tensor: Any) -> bool:
    return isinstance(tensor, torch._subclasses.FakeTensor)


def version_of(tensor: torch.Tensor) -> int:
    """The number of writes that PyTorch has counted; -1 for tensors without one."""
    return -1 if tensor.is_inference() else tensor._version
