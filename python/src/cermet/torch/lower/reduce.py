"""Reductions along axes, softmax and running sums."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .elementwise import HALF
from .rows import aten, row

Node = torch.fx.Node


def axes_of(lowering: Any, x: Node, dim: Any) -> list[int]:
    """Axes from PyTorch's argument, for which None and [] are all of them."""
    rank = lowering.rank(x)
    if dim is None or dim == []:
        return list(range(rank))
    dims = [dim] if isinstance(dim, int) else dim
    return sorted({axis % rank for axis in dims}) if rank else []


def reduced(lowering: Any, kind: str, value: Any, axes: list[int], keepdim: bool) -> Any:
    if not axes:  # no axes are all of them for the library: of a value without dimensions, none
        return value
    if kind in ("reduce_sum", "reduce_prod") and lowering.has(kind, "overflow"):
        return lowering.op(kind, value, axes=axes, keepdims=bool(keepdim), overflow="wrap")
    if kind == "reduce_prod" and value.dtype not in ("f64", "f32", "bf16", "f16"):
        raise Unsupported("products of integers, which PyTorch lets wrap")
    return lowering.op(kind, value, axes=axes, keepdims=bool(keepdim))


@row(aten.sum.dim_IntList, aten.sum.default, aten.mean.dim, aten.mean.default, aten.nansum.default)
def sum_or_mean(lowering, node, x, dim=None, keepdim=False, *, dtype=None):
    value = lowering.cast(lowering(x), lowering.dtype(node))
    if node.target is aten.nansum.default and lowering.dtype(node).is_floating_point:
        value = lowering.op("where", lowering.op("is_nan", value), lowering.number(0, lowering.dtype(node)), value)
    is_mean = node.target in (aten.mean.dim, aten.mean.default)
    return reduced(lowering, "reduce_mean" if is_mean else "reduce_sum", value, axes_of(lowering, x, dim), keepdim)


@row(aten.prod.dim_int, aten.prod.default)
def prod(lowering, node, x, dim=None, keepdim=False, *, dtype=None):
    value = lowering.cast(lowering(x), lowering.dtype(node))
    return reduced(lowering, "reduce_prod", value, axes_of(lowering, x, dim), keepdim)


def _extreme(lowering: Any, x: Node, largest: bool, axes: list[int], keepdim: bool) -> Any:
    return reduced(lowering, "reduce_max" if largest else "reduce_min", lowering(x), axes, keepdim)


@row(aten.amax.default, aten.amin.default)
def amax(lowering, node, x, dim=(), keepdim=False):
    axes = axes_of(lowering, x, list(dim) if not isinstance(dim, int) else dim)
    return _extreme(lowering, x, node.target is aten.amax.default, axes, keepdim)


@row(aten.aminmax.default)
def aminmax(lowering, node, x, *, dim=None, keepdim=False):
    axes = axes_of(lowering, x, dim)
    return [_extreme(lowering, x, largest, axes, keepdim) for largest in (False, True)]


@row(aten.max.default, aten.min.default)
def whole_extreme(lowering, node, x):
    return _extreme(lowering, x, node.target is aten.max.default, axes_of(lowering, x, None), False)


@row(aten.any.dim, aten.any.dims, aten.any.default, aten.all.dim, aten.all.dims, aten.all.default)
def any_or_all(lowering, node, x, dim=None, keepdim=False):
    """Largest or smallest of booleans; bytes stay bytes."""
    is_any = node.target in (aten.any.dim, aten.any.dims, aten.any.default)
    value = reduced(
        lowering,
        "reduce_max" if is_any else "reduce_min",
        lowering.cast(lowering(x), torch.bool),
        axes_of(lowering, x, dim),
        keepdim,
    )
    return lowering.cast(value, lowering.dtype(node))


@row(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(lowering, node, x, dim=None):
    value = lowering.cast(lowering.cast(lowering(x), torch.bool), torch.int64)
    return reduced(lowering, "reduce_sum", value, axes_of(lowering, x, dim), False)


def variance(lowering: Any, x: Node, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean in at least float32, by deviations from the mean. One element less correction is 0 / 0."""
    axes = axes_of(lowering, x, dim)
    inner = torch.float32 if lowering.dtype(x) in HALF else lowering.dtype(x)
    value = lowering.cast(lowering(x), inner)
    count = 1
    for axis in axes:
        count *= lowering.shape(x)[axis]
    mean = reduced(lowering, "reduce_mean", value, axes, True)
    squares = lowering.op("square", lowering.op("sub", value, mean))
    total = reduced(lowering, "reduce_sum", squares, axes, keepdim)
    divisor = max(0.0, count - float(1 if correction is None else correction))
    made = lowering.op("div", total, lowering.number(divisor, inner))
    return made, mean if keepdim else lowering.reshape(mean, lowering.dims(made))


@row(aten.var.correction, aten.std.correction, aten.var_mean.correction, aten.std_mean.correction)
def var(lowering, node, x, dim=None, *, correction=1, keepdim=False):
    made, mean = variance(lowering, x, dim, correction, keepdim)
    if node.target in (aten.std.correction, aten.std_mean.correction):
        made = lowering.op("sqrt", made)
    dtype = lowering.dtype(x)
    made, mean = lowering.cast(made, dtype), lowering.cast(mean, dtype)
    return [made, mean] if node.target in (aten.var_mean.correction, aten.std_mean.correction) else made


def _spread(lowering: Any, node: Node, x: Node, dim: Any, unbiased: bool, keepdim: bool) -> Any:
    made, _ = variance(lowering, x, dim, int(unbiased), keepdim)
    made = lowering.op("sqrt", made) if node.target in (aten.std.default, aten.std.dim) else made
    return lowering.cast(made, lowering.dtype(x))


@row(aten.var.default, aten.std.default)
def var_of_all(lowering, node, x, unbiased=True):
    return _spread(lowering, node, x, None, unbiased, False)


@row(aten.var.dim, aten.std.dim)
def var_along(lowering, node, x, dim, unbiased=True, keepdim=False):
    return _spread(lowering, node, x, dim, unbiased, keepdim)


@row(
    aten.softmax.int, aten.log_softmax.int, aten._softmax.default, aten._log_softmax.default, aten._safe_softmax.default
)
def softmax(lowering, node, x, dim, dtype=None):
    """Along any axis. The safe form is 0 in rows of -inf alone."""
    result = lowering.dtype(node)
    value = lowering.cast(lowering(x), result)
    if not lowering.rank(x):
        value = lowering.reshape(value, [1])
    value, back = lowering.axis_last(value, dim)
    is_log = node.target in (aten.log_softmax.int, aten._log_softmax.default)
    made = lowering.op("softmax", value, log=is_log)
    if node.target is aten._safe_softmax.default:
        largest = lowering.op("reduce_max", value, axes=[len(back) - 1], keepdims=True)
        empty = lowering.op("is_inf", largest, detect_positive=0.0)
        made = lowering.op("where", empty, lowering.number(0, result), made)
    return lowering.reshape(lowering.transpose(made, back), lowering.shape(node))


@row(aten.logsumexp.default)
def logsumexp(lowering, node, x, dim, keepdim=False):
    """log(sum(exp(x - m))) + m with the largest m, which is 0 where it is infinite."""
    axes, dtype = axes_of(lowering, x, dim), lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    value = lowering.cast(lowering(x), inner)
    largest = reduced(lowering, "reduce_max", value, axes, True)
    largest = lowering.op("where", lowering.op("is_inf", largest), lowering.number(0, inner), largest)
    total = reduced(lowering, "reduce_sum", lowering.op("exp", lowering.op("sub", value, largest)), axes, True)
    made = lowering.op("add", lowering.op("log", total), largest)
    return lowering.cast(lowering.reshape(made, lowering.shape(node)), dtype)


@row(aten.cumsum.default)
def cumsum(lowering, node, x, dim, *, dtype=None):
    value = lowering.cast(lowering(x), lowering.dtype(node))
    if not lowering.rank(x):
        return value
    wraps = {"overflow": "wrap"} if lowering.has("cumsum", "overflow") else {}
    return lowering.op("cumsum", value, axis=dim % lowering.rank(x), **wraps)
