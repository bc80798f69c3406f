"""Pooling."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import Unsupported
from .convolution import per_axis
from .elementwise import HALF
from .rows import aten, row

Node = torch.fx.Node


def _batched(lowering: Any, x: Node, axes: int) -> Any:
    """The operand as [samples, channels, ..]."""
    value, shape = lowering(x), lowering.shape(x)
    if len(shape) == axes + 1:
        value = lowering.reshape(value, [1, *shape])
    if any(size == 0 for size in lowering.dims(value)):
        raise Unsupported("pooling of no elements")
    return value


def _windows(kernel: Any, stride: Any, padding: Any, axes: int) -> dict[str, Any]:
    sizes = per_axis(kernel, axes)
    steps = per_axis(stride, axes) if stride not in (None, []) else sizes
    return {"kernel": sizes, "strides": steps, "pads": per_axis(padding, axes) * 2}


def _axes(node: Node) -> int:
    """Spatial axes, from the digit of the operator's name."""
    return int(next(letter for letter in str(node.target).split(".")[1] if letter.isdigit()))


@row(aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(lowering, node, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    axes = _axes(node)
    of = _windows(kernel, list(stride) if isinstance(stride, (list, tuple)) else stride, padding, axes)
    made = lowering.op(
        "max_pool", _batched(lowering, x, axes), **of, dilations=per_axis(dilation, axes), ceil_mode=bool(ceil_mode)
    )
    return lowering.reshape(made, lowering.shape(node))


@row(aten.max_pool1d_with_indices.default, aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool_with_indices(lowering, node, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    """Places are counted in an image here, in the whole operand there."""
    axes, shape = _axes(node), lowering.shape(node.meta["val"][0])
    of = _windows(kernel, list(stride) if isinstance(stride, (list, tuple)) else stride, padding, axes)
    of |= {"dilations": per_axis(dilation, axes), "ceil_mode": bool(ceil_mode)}
    value = _batched(lowering, x, axes)
    if 1 not in lowering.used(node):
        return [lowering.reshape(lowering.op("max_pool", value, **of), shape), None]
    made, places = lowering.ops("max_pool", value, **of, with_indices=True)
    image = lowering.number(math.prod(lowering.shape(x)[-axes:]), torch.int64)
    return [lowering.reshape(made, shape), lowering.reshape(lowering.op("mod", places, image), shape)]


@row(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(
    lowering, node, x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    axes = _axes(node)
    of = _windows(kernel, list(stride) if isinstance(stride, (list, tuple)) else stride, padding, axes)
    value = _batched(lowering, x, axes)
    if not lowering.dtype(node).is_floating_point or lowering.dtype(node) == torch.float64:
        raise Unsupported(f"means of {lowering.dtype(node)}")
    includes = bool(count_include_pad) or divisor_override is not None
    if divisor_override is not None and ceil_mode:
        raise Unsupported("a divisor with ceil_mode")
    made = lowering.op("average_pool", value, **of, ceil_mode=bool(ceil_mode), count_include_pad=includes)
    if divisor_override is not None:
        dtype = lowering.dtype(node)
        if dtype in HALF:
            raise Unsupported("a divisor for 16 bits")
        made = lowering.op("mul", made, lowering.number(math.prod(of["kernel"]) / divisor_override, dtype))
    return lowering.reshape(made, lowering.shape(node))


@row(
    aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default, aten._adaptive_avg_pool3d.default,
)  # fmt: skip
def adaptive_avg_pool(lowering, node, x, size):
    """Windows of equal sizes, or slices of the places that each result has."""
    axes, rank = _axes(node), lowering.rank(x)
    inner = torch.float32 if lowering.dtype(x) in HALF else lowering.dtype(x)
    value, shape = lowering(x), lowering.shape(x)
    if not lowering.fake(x).numel() or not lowering.fake(node).numel():
        raise Unsupported("pooling of no elements")
    wanted = lowering.shape(node)[-axes:]
    if all(size == 1 for size in wanted):
        return lowering.op("reduce_mean", value, axes=list(range(rank - axes, rank)), keepdims=True)
    if all(have % want == 0 for have, want in zip(shape[-axes:], wanted)) and lowering.dtype(x) != torch.float64:
        steps = [have // want for have, want in zip(shape[-axes:], wanted)]
        made = lowering.op("average_pool", _batched(lowering, x, axes), kernel=steps, strides=steps)
        return lowering.reshape(made, lowering.shape(node))
    value = lowering.cast(value, inner)
    for axis, (have, want) in enumerate(zip(shape[-axes:], wanted), rank - axes):
        value = _along(lowering, "reduce_mean", value, axis, have, want)
    return lowering.cast(value, lowering.dtype(node))


def _along(lowering: Any, kind: str, value: Any, axis: int, have: int, want: int) -> Any:
    """One axis of adaptive pooling: result i has the places from i * have / want to (i + 1) * have / want, rounded
    outwards.
    """
    if have == want:
        return value
    if want > 256:
        raise Unsupported(f"adaptive pooling into {want} uneven windows")
    parts = []
    for i in range(want):
        window = lowering.slice(value, axis, i * have // want, -(-(i + 1) * have // want))
        parts.append(lowering.op(kind, window, axes=[axis], keepdims=True))
    return parts[0] if len(parts) == 1 else lowering.op("concat", *parts, axis=axis)


@row(aten.adaptive_max_pool1d.default, aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(lowering, node, x, size):
    axes, rank = _axes(node), lowering.rank(x)
    if 1 in lowering.used(node):
        raise Unsupported("places of adaptive_max_pool")
    if not lowering.fake(x).numel() or not node.meta["val"][0].numel():
        raise Unsupported("pooling of no elements")
    value, shape = lowering(x), lowering.shape(x)
    for axis, (have, want) in enumerate(zip(shape[-axes:], lowering.shape(node.meta["val"][0])[-axes:]), rank - axes):
        value = _along(lowering, "reduce_max", value, axis, have, want)
    return [value, None]
