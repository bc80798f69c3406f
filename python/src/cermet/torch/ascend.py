"""Names of TorchAir and torch_npu for models that were written for them:

    import cermet.torch.ascend as torchair
    import cermet.torch.ascend as torch_npu
    torch.compile(model, backend=torchair.get_npu_backend())

Operators compute what their namesakes do on a CPU or an NVIDIA GPU; tensors are moved with .to(device) in place of
.npu().
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from ..errors import Unsupported
from . import operators  # noqa: F401  (torch.ops.cermet)
from .backend import compile_graph
from .scope import super_kernel

#: torchair.scope.super_kernel
scope = SimpleNamespace(super_kernel=super_kernel)


class CompilerConfig:
    """Settings of TorchAir, which are kept and change nothing."""

    def __init__(self) -> None:
        self.experimental_config = SimpleNamespace()
        self.debug = SimpleNamespace()
        self.mode = "max-autotune"


def get_npu_backend(*, compiler_config: CompilerConfig | None = None) -> Any:
    """What torch.compile takes as backend."""
    return compile_graph


def npu_format_cast(tensor: torch.Tensor, acl_format: int) -> torch.Tensor:
    """The tensor as it is: weights are packed for the device when a graph is compiled."""
    return tensor.clone()


def npu_quant_matmul(
    x1: torch.Tensor,
    x2: torch.Tensor,
    scale: torch.Tensor,
    *,
    offset: torch.Tensor | None = None,
    pertoken_scale: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    output_dtype: torch.dtype | None = None,
    group_sizes: Any = None,
) -> torch.Tensor:
    """x1 [M, K] times x2 [K, N] of int8, with a scale for each column and, if given, each row."""
    if offset is not None or group_sizes:
        raise Unsupported("npu_quant_matmul: expected no offset and no group_sizes, found one")
    names = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.int32: "i32"}
    if output_dtype not in names:
        raise Unsupported(
            f"npu_quant_matmul: output_dtype: expected bfloat16, float16, float32 or int32, found {output_dtype}"
        )
    scales = None if output_dtype == torch.int32 else scale.float()
    return torch.ops.cermet.scaled_mm(
        x1, x2.transpose(-1, -2).contiguous(), pertoken_scale, scales, bias, out_dtype=names[output_dtype]
    )


def npu_dequant_swiglu_quant(
    x: torch.Tensor,
    *,
    weight_scale: torch.Tensor | None = None,
    activation_scale: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    quant_scale: torch.Tensor | None = None,
    quant_offset: torch.Tensor | None = None,
    group_index: torch.Tensor | None = None,
    activate_left: bool = False,
    quant_mode: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales, SwiGLU and quantization of each row to int8: (values, scales). quant_mode 1 is dynamic quantization, the
    one that is offered.
    """
    if group_index is not None or quant_mode != 1 or quant_offset is not None:
        raise Unsupported(
            "npu_dequant_swiglu_quant: expected quant_mode 1 without group_index and quant_offset, found others"
        )
    activations = None if activation_scale is None else activation_scale.reshape(x.shape[:-1])
    ones = torch.ones((), dtype=torch.float32, device=x.device)
    made = torch.ops.cermet.dequant_swiglu_quant(
        x,
        ones if weight_scale is None else weight_scale,
        activations,
        bias,
        quant_scale,
        activate="left" if activate_left else "right",
    )
    return made[0], made[1]
