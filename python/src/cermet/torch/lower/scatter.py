"""Tensors with some elements replaced or reduced."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .indexing import indices_of
from .rows import aten, row

Node = torch.fx.Node

_REDUCTIONS = {
    "add": "sum", "sum": "sum", "multiply": "prod", "prod": "prod", "amax": "max", "amin": "min",
}  # fmt: skip


def scattered(lowering: Any, node: Node, x: Any, dim: int, index: Node, source: Any, reduction: str = "none") -> Any:
    """x with the elements of `source`, a node or a number, at indices along an axis."""
    dtype, shape = lowering.dtype(node), lowering.shape(node)
    if reduction != "none" and not dtype.is_floating_point and not lowering.has("scatter", "overflow"):
        if reduction == "prod" or dtype == torch.bool:
            raise Unsupported(f"{reduction} of {dtype}, which PyTorch lets wrap")
    rank = max(len(shape), 1)
    places = lowering.reshape(indices_of(lowering, index), lowering.shape(index) or (1,))
    value = lowering.reshape(x if not isinstance(x, Node) else lowering(x), shape or (1,))
    sizes, axis = lowering.dims(places), dim % rank
    if isinstance(source, Node):
        updates = lowering.reshape(lowering.cast(lowering(source), dtype), lowering.shape(source) or (1,))
        for i, size in enumerate(sizes):
            updates = lowering.slice(updates, i, 0, size)
    else:
        updates = lowering.expand(lowering.number(source, dtype), sizes)
    made = lowering.op("scatter", value, places, updates, axis=axis, reduction=reduction)
    return lowering.reshape(made, shape)


@row(aten.scatter.src, aten.scatter.value)
def scatter(lowering, node, x, dim, index, source):
    return scattered(lowering, node, x, dim, index, source)


@row(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with(lowering, node, x, dim, index, source, *, reduce):
    return scattered(lowering, node, x, dim, index, source, _REDUCTIONS[reduce])


@row(aten.scatter_add.default)
def scatter_add(lowering, node, x, dim, index, source):
    return scattered(lowering, node, x, dim, index, source, "sum")


@row(aten.scatter_reduce.two)
def scatter_reduce(lowering, node, x, dim, index, source, reduce, *, include_self=True):
    return _combined(
        lowering,
        node,
        lowering(x),
        reduce,
        include_self,
        lambda start, of, kind: scattered(lowering, node, start, dim, index, source if of is None else of, kind),
    )


def _combined(lowering: Any, node: Node, x: Any, reduce: str, include_self: bool, put: Any) -> Any:
    """A reduction whose step is put(start, None for the source or a number, kind). Without x itself its elements are
    first replaced by a neutral number; a mean is a
    sum divided by how many there were."""
    dtype = lowering.dtype(node)
    start = x if include_self else put(x, _neutral("sum" if reduce == "mean" else reduce, dtype), "none")
    if reduce != "mean":
        return put(start, None, _REDUCTIONS[reduce])
    if dtype != torch.float32:
        raise Unsupported(f"means of {dtype}")
    ones = lowering.expand(lowering.number(1, dtype), lowering.dims(start))
    count = put(ones if include_self else put(ones, 0, "none"), 1, "sum")
    return lowering.op("div", put(start, None, "sum"), count)


@row(aten.index_reduce.default)
def index_reduce(lowering, node, x, dim, index, source, reduce, *, include_self=True):
    axis, sizes = dim % max(lowering.rank(x), 1), lowering.shape(source) or (1,)
    places = along(lowering, index, sizes, axis)

    def put(start: Any, of: Any, kind: str) -> Any:
        updates = (
            lowering.reshape(lowering(source), sizes)
            if of is None
            else lowering.expand(lowering.number(of, lowering.dtype(node)), sizes)
        )
        return lowering.op("scatter", start, places, updates, axis=axis, reduction=kind)

    if not lowering.dtype(node).is_floating_point:
        raise Unsupported(f"index_reduce of {lowering.dtype(node)}")
    start = lowering.reshape(lowering(x), lowering.shape(x) or (1,))
    return lowering.reshape(_combined(lowering, node, start, reduce, include_self, put), lowering.shape(node))


def _neutral(reduce: str, dtype: torch.dtype) -> Any:
    """What a reduction leaves unchanged."""
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    if dtype == torch.bool:
        return reduce == "amin"
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    return torch.iinfo(dtype).min if reduce == "amax" else torch.iinfo(dtype).max


def along(lowering: Any, index: Node, shape: tuple[int, ...], axis: int) -> Any:
    """Indices of one axis, repeated over the others."""
    places = lowering.reshape(indices_of(lowering, index), [shape[i] if i == axis else 1 for i in range(len(shape))])
    return lowering.expand(places, shape)


@row(aten.index_copy.default, aten.index_add.default)
def index_copy(lowering, node, x, dim, index, source, *, alpha=1):
    dtype, shape = lowering.dtype(node), lowering.shape(node) or (1,)
    axis = dim % len(shape)
    if not lowering.rank(x):
        value, updates = lowering.reshape(lowering(x), [1]), lowering.reshape(lowering(source), [1])
    else:
        value, updates = lowering(x), lowering(source)
    updates = lowering.cast(updates, dtype)
    if alpha != 1:
        updates = lowering.op("mul", updates, lowering.number(alpha, dtype))
    sizes = lowering.dims(updates)
    reduction = "none" if node.target is aten.index_copy.default else "sum"
    if reduction == "sum" and dtype == torch.bool:
        raise Unsupported("sums of booleans")
    made = lowering.op("scatter", value, along(lowering, index, sizes, axis), updates, axis=axis, reduction=reduction)
    return lowering.reshape(made, lowering.shape(node))


@row(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(lowering, node, x, dim, index, value):
    dtype, shape = lowering.dtype(node), list(lowering.shape(node))
    if not shape:
        return lowering.operand(value, dtype)
    axis = dim % len(shape)
    shape[axis] = lowering.shape(index)[0] if lowering.rank(index) else 1
    updates = lowering.expand(lowering.operand(value, dtype), shape)
    return lowering.op("scatter", lowering(x), along(lowering, index, tuple(shape), axis), updates, axis=axis)


@row(aten.put.default)
def put(lowering, node, x, index, source, accumulate=False):
    shape = lowering.shape(x)
    count = lowering.fake(x).numel()
    if not lowering.fake(index).numel():
        return lowering(x)
    places = lowering.reshape(indices_of(lowering, index), [lowering.fake(index).numel()])
    updates = lowering.reshape(lowering.cast(lowering(source), lowering.dtype(node)), [lowering.fake(source).numel()])
    flat = lowering.reshape(lowering(x), [count])
    made = lowering.op("scatter", flat, places, updates, axis=0, reduction="sum" if accumulate else "none")
    return lowering.reshape(made, shape)


def _replaced(lowering: Any, node: Node, x: Node, source: Node, places: torch.Tensor) -> Any:
    """x with all elements of `source` at flat places that are known now."""
    flat = lowering.reshape(lowering(x), [lowering.fake(x).numel()])
    updates = lowering.reshape(lowering.cast(lowering(source), lowering.dtype(node)), [places.numel()])
    if not places.numel():
        return lowering(x)
    made = lowering.op("scatter", flat, lowering.constant(places.reshape(-1).contiguous(), "places"), updates, axis=0)
    return lowering.reshape(made, lowering.shape(x))


def _numbers(lowering: Any, x: Node) -> torch.Tensor:
    return torch.arange(lowering.fake(x).numel()).reshape(lowering.shape(x))


@row(aten.slice_scatter.default)
def slice_scatter(lowering, node, x, source, dim=0, start=None, end=None, step=1):
    """Parts before and behind the source, joined; with a step, elements by index."""
    axis = dim % lowering.rank(x)
    size = lowering.shape(x)[axis]
    start, end = 0 if start is None else start, size if end is None else end
    start, end = (min(max(place + size if place < 0 else place, 0), size) for place in (start, end))
    updates = lowering.cast(lowering(source), lowering.dtype(node))
    if step != 1:
        numbers = _numbers(lowering, x)
        return _replaced(lowering, node, x, source, numbers[(slice(None),) * axis + (slice(start, end, step),)])
    if start >= end:
        return lowering(x)
    parts = [updates]
    if start > 0:
        parts.insert(0, lowering.slice(lowering(x), axis, 0, start))
    if end < size:
        parts.append(lowering.slice(lowering(x), axis, end, size))
    return parts[0] if len(parts) == 1 else lowering.op("concat", *parts, axis=axis)


@row(aten.select_scatter.default)
def select_scatter(lowering, node, x, source, dim, index):
    return _replaced(lowering, node, x, source, _numbers(lowering, x).select(dim, index))


@row(aten.diagonal_scatter.default)
def diagonal_scatter(lowering, node, x, source, offset=0, dim1=0, dim2=1):
    return _replaced(lowering, node, x, source, _numbers(lowering, x).diagonal(offset, dim1, dim2))


@row(aten.as_strided_scatter.default)
def as_strided_scatter(lowering, node, x, source, size, stride, storage_offset=None):
    fake = lowering.fake(x)
    if not fake.is_contiguous() or lowering.bindings.size(fake.storage_offset()):
        raise Unsupported("as_strided of a view")
    return _replaced(lowering, node, x, source, _numbers(lowering, x).as_strided(size, stride, storage_offset or 0))


@row(aten.masked_scatter.default)
def masked_scatter(lowering, node, x, mask, source):
    """The next element of the source where the mask is true: its place is the number of trues before."""
    shape, count = lowering.shape(node), lowering.fake(node).numel()
    if not count or not lowering.fake(source).numel():
        return lowering.expand(lowering(x), shape)
    flat = lowering.reshape(lowering.expand(lowering(mask), shape), [count])
    places = lowering.op("cumsum", lowering.cast(flat, torch.int64), axis=0, exclusive=True)
    last = lowering.number(lowering.fake(source).numel() - 1, torch.int64)
    updates = lowering.reshape(lowering(source), [lowering.fake(source).numel()])
    chosen = lowering.op("gather", updates, lowering.op("min", places, last), axis=0)
    value = lowering.reshape(lowering.expand(lowering(x), shape), [count])
    return lowering.reshape(lowering.op("where", flat, chosen, value), shape)


@row(aten.fill.Scalar, aten.fill.Tensor)
def fill(lowering, node, x, value):
    return lowering.expand(lowering.operand(value, lowering.dtype(node)), lowering.shape(node))
