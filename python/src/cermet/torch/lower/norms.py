"""Normalizations."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import Unsupported
from .elementwise import HALF
from .rows import aten, row

Node = torch.fx.Node


def _optional(lowering: Any, node: Node | None, dtype: torch.dtype) -> Any:
    return None if node is None else lowering.cast(lowering(node), dtype)


def _norm(lowering: Any, kind: str, x: Node, dims: list[int], weight: Any, bias: Any, eps: float) -> Any:
    """A norm over the last dimensions; several become one, because the library knows their number from the weight's
    rank.
    """
    dtype = lowering.dtype(x)
    if dtype == torch.float64 or not dtype.is_floating_point:
        raise Unsupported(f"norms of {dtype}")
    shape, count = lowering.shape(x), math.prod(dims)
    rows = shape[: len(shape) - len(dims)]
    value = lowering.reshape(lowering(x), [*rows, count])
    operands = [
        value,
        *(None if of is None else lowering.reshape(_optional(lowering, of, dtype), [count]) for of in (weight, bias)),
    ]
    while operands[-1] is None:
        operands.pop()
    return lowering.reshape(lowering.op(kind, *operands, eps=eps), shape)


@row(aten.layer_norm.default, aten.native_layer_norm.default)
def layer_norm(lowering, node, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    made = _norm(lowering, "layer_norm", x, list(normalized_shape), weight, bias, float(eps))
    if node.target is aten.layer_norm.default:
        return made
    axes = list(range(lowering.rank(x) - len(normalized_shape), lowering.rank(x)))
    return [made, *_statistics(lowering, node, lowering(x), axes, float(eps))]


def _statistics(lowering: Any, node: Node, value: Any, axes: list[int], eps: float) -> list[Any]:
    """Mean and 1 / deviation over axes, in the types and shapes of the second and third results; None where nothing
    reads them.
    """
    if not lowering.used(node) - {0}:
        return [None, None]
    value = lowering.cast(value, torch.float32)
    mean = lowering.op("reduce_mean", value, axes=axes, keepdims=True)
    spread = lowering.op(
        "reduce_mean", lowering.op("square", lowering.op("sub", value, mean)), axes=axes, keepdims=True
    )
    inverse = lowering.op("rsqrt", lowering.op("add", spread, lowering.number(eps, torch.float32)))
    wanted = node.meta["val"][1:]
    return [
        lowering.cast(lowering.reshape(made, lowering.shape(like)), like.dtype)
        for made, like in zip((mean, inverse), wanted)
    ]


def _only_first(lowering: Any, node: Node) -> None:
    if lowering.used(node) - {0}:
        raise Unsupported("mean and deviation of a norm")


@row(aten.rms_norm.default, aten._fused_rms_norm.default)
def rms_norm(lowering, node, x, normalized_shape, weight=None, eps=None):
    """Without eps, that of the type that PyTorch computes in."""
    dtype = lowering.dtype(x)
    computed = torch.float32 if dtype in HALF and node.target is aten._fused_rms_norm.default else dtype
    eps = torch.finfo(computed).eps if eps is None else eps
    made = _norm(lowering, "rms_norm", x, list(normalized_shape), weight, None, float(eps))
    if node.target is aten.rms_norm.default:
        return made
    _only_first(lowering, node)
    return [made, None]


@row(aten.group_norm.default)
def group_norm(lowering, node, x, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return _group(lowering, x, num_groups, weight, bias, float(eps))


@row(aten.native_group_norm.default)
def native_group_norm(lowering, node, x, weight, bias, n, c, hxw, group, eps):
    value = lowering.reshape(lowering(x), [n, group, c // group * hxw])
    return [_group(lowering, x, group, weight, bias, float(eps)), *_statistics(lowering, node, value, [2], float(eps))]


def _group(lowering: Any, x: Node, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    dtype = lowering.dtype(x)
    if dtype == torch.float64:
        raise Unsupported(f"norms of {dtype}")
    operands = [lowering(x), _optional(lowering, weight, dtype), _optional(lowering, bias, dtype)]
    while operands[-1] is None:
        operands.pop()
    return lowering.op("group_norm", *operands, groups=groups, eps=eps)


def _along_channels(lowering: Any, value: Any, rank: int) -> Any:
    return lowering.reshape(value, [lowering.dims(value)[0]] + [1] * (rank - 2))


def _batch(lowering: Any, node: Node, x: Node, weight: Any, bias: Any, mean: Node, variance: Node, eps: float) -> Any:
    """x * scale + shift. Where the statistics are known both are constants, which a convolution in front takes in."""
    dtype, rank = lowering.dtype(x), max(lowering.rank(x), 2)
    inner = torch.float32 if dtype in HALF else dtype
    op = lowering.op
    value = lowering.cast(lowering(x), inner)
    if all(of is None or lowering.is_known(of) for of in (weight, bias, mean, variance)):
        known = [None if of is None else lowering.known[of].double() for of in (weight, bias, mean, variance)]
        scale = torch.rsqrt(known[3] + eps) * (1 if known[0] is None else known[0])
        shift = (0 if known[1] is None else known[1]) - known[2] * scale
        name = lowering.names.get(mean, node.name)
        shape = [-1] + [1] * (rank - 2)
        made = [
            lowering.constant(part.to(inner).reshape(shape), f"{name}.{word}")
            for part, word in ((scale, "scale"), (shift, "shift"))
        ]
        return lowering.cast(op("add", op("mul", value, made[0]), made[1]), dtype)
    scale = op("rsqrt", op("add", lowering.cast(lowering(variance), inner), lowering.number(eps, inner)))
    if weight is not None:
        scale = op("mul", scale, lowering.cast(lowering(weight), inner))
    centred = op("sub", value, _along_channels(lowering, lowering.cast(lowering(mean), inner), rank))
    scaled = op("mul", centred, _along_channels(lowering, scale, rank))
    if bias is not None:
        scaled = op("add", scaled, _along_channels(lowering, lowering.cast(lowering(bias), inner), rank))
    return lowering.cast(scaled, dtype)


@row(aten.batch_norm.default)
def batch_norm(lowering, node, x, weight, bias, mean, variance, training, momentum, eps, cudnn_enabled):
    if training or mean is None or variance is None:
        raise Unsupported("batch_norm with the statistics of its batch")
    return _batch(lowering, node, x, weight, bias, mean, variance, eps)


@row(aten._native_batch_norm_legit_no_training.default)
def inference_batch_norm(lowering, node, x, weight, bias, mean, variance, momentum, eps):
    _only_first(lowering, node)
    return [_batch(lowering, node, x, weight, bias, mean, variance, eps), None, None]


@row(aten._native_batch_norm_legit.no_stats)
def instance_statistics(lowering, node, x, weight, bias, training, momentum, eps):
    """Normalized with the statistics of all but the channels: how instance_norm arrives, as one sample."""
    _only_first(lowering, node)
    from .reduce import reduced

    dtype, rank = lowering.dtype(x), lowering.rank(x)
    inner = torch.float32 if dtype in HALF else dtype
    axes = [axis for axis in range(rank) if axis != 1]
    value = lowering.cast(lowering(x), inner)
    centred = lowering.op("sub", value, reduced(lowering, "reduce_mean", value, axes, True))
    spread = reduced(lowering, "reduce_mean", lowering.op("square", centred), axes, True)
    made = lowering.op("mul", centred, lowering.op("rsqrt", lowering.op("add", spread, lowering.number(eps, inner))))
    for kind, of in (("mul", weight), ("add", bias)):
        if of is not None:
            made = lowering.op(kind, made, _along_channels(lowering, lowering.cast(lowering(of), inner), rank))
    return [lowering.cast(made, dtype), None, None]


@row(aten.instance_norm.default)
def instance_norm(lowering, node, x, weight, bias, mean, variance, use_input_stats, momentum, eps, cudnn_enabled):
    if not use_input_stats:
        return _batch(lowering, node, x, weight, bias, mean, variance, eps)
    if mean is not None or lowering.dtype(x) == torch.float64:
        raise Unsupported("instance_norm that updates statistics")
    operands = [
        lowering(x),
        _optional(lowering, weight, lowering.dtype(x)),
        _optional(lowering, bias, lowering.dtype(x)),
    ]
    while operands[-1] is None:
        operands.pop()
    return lowering.op("instance_norm", *operands, eps=float(eps))


@row(aten.linalg_vector_norm.default)
def vector_norm(lowering, node, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    from .reduce import axes_of, reduced

    result = lowering.dtype(node)
    inner = torch.float32 if result in HALF else result
    value = lowering.cast(lowering(x), inner)
    axes = axes_of(lowering, x, dim)
    magnitude = lowering.op("abs", value)
    if ord in (float("inf"), float("-inf")):
        made = reduced(lowering, "reduce_max" if ord > 0 else "reduce_min", magnitude, axes, keepdim)
    elif ord == 0:
        there = lowering.cast(lowering.op("not_equal", value, lowering.number(0, inner)), inner)
        made = reduced(lowering, "reduce_sum", there, axes, keepdim)
    elif ord == 1:
        made = reduced(lowering, "reduce_sum", magnitude, axes, keepdim)
    elif ord == 2:
        made = lowering.op("sqrt", reduced(lowering, "reduce_sum", lowering.op("square", value), axes, keepdim))
    else:
        powers = lowering.op("pow", magnitude, lowering.number(ord, inner))
        made = lowering.op(
            "pow", reduced(lowering, "reduce_sum", powers, axes, keepdim), lowering.number(1 / ord, inner)
        )
    return lowering.cast(lowering.reshape(made, lowering.shape(node)), result)
