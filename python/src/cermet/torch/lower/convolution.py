"""Convolutions."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .products import LINEAR
from .rows import aten, row

Node = torch.fx.Node


def per_axis(of: Any, axes: int) -> list[int]:
    """A number or a list of one as a list of numbers."""
    values = list(of) if isinstance(of, (list, tuple)) else [of]
    return values * axes if len(values) == 1 else values


def _padding(padding: Any, kernel: list[int], dilation: list[int], axes: int) -> list[int]:
    """Places in front of each axis, then behind."""
    if padding == "valid":
        return [0] * (2 * axes)
    if padding == "same":
        total = [(size - 1) * step for size, step in zip(kernel, dilation)]
        return [size // 2 for size in total] + [size - size // 2 for size in total]
    return per_axis(padding, axes) * 2


def convolve(
    lowering: Any,
    node: Node,
    x: Node,
    weight: Node,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    output_padding: Any = None,
) -> Any:
    dtype = lowering.dtype(node)
    if dtype not in LINEAR:
        raise Unsupported(f"convolution of {dtype}")
    axes = lowering.rank(weight) - 2
    if axes > 3:
        raise Unsupported(f"convolution over {axes} axes")
    kernel, dilations = list(lowering.shape(weight)[2:]), per_axis(dilation, axes)
    value = lowering(x)
    batched = lowering.rank(x) == axes + 2
    if not batched:
        value = lowering.reshape(value, [1, *lowering.shape(x)])
    operands = [value, lowering(weight), *([] if bias is None else [lowering(bias)])]
    if any(int(size) == 0 for operand in operands for size in operand.shape):
        raise Unsupported("convolution of no elements")
    of = {
        "strides": per_axis(stride, axes),
        "pads": _padding(padding, kernel, dilations, axes),
        "dilations": dilations,
        "group": groups,
    }
    if output_padding is None:
        made = lowering.op("conv", *operands, **of)
    else:
        made = lowering.op("conv_transpose", *operands, output_padding=per_axis(output_padding, axes), **of)
    return lowering.reshape(made, lowering.shape(node))


@row(
    aten.conv1d.default,
    aten.conv2d.default,
    aten.conv3d.default,
    aten.conv1d.padding,
    aten.conv2d.padding,
    aten.conv3d.padding,
)
def conv(lowering, node, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return convolve(lowering, node, x, weight, bias, stride, padding, dilation, groups)


@row(aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)
def conv_transpose(lowering, node, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return convolve(lowering, node, x, weight, bias, stride, padding, dilation, groups, output_padding)


@row(aten.convolution.default)
def convolution(lowering, node, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    output = output_padding if transposed else None
    return convolve(lowering, node, x, weight, bias, stride, padding, dilation, groups, output)
