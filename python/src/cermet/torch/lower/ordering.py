"""Order: sorting, the largest elements, and where they are."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .rows import aten, row

Node = torch.fx.Node

#: Of a search that compares every value with every boundary.
_MOST_COMPARISONS = 1 << 24


@row(aten.argmax.default, aten.argmin.default)
def argmax(lowering, node, x, dim=None, keepdim=False):
    value = lowering(x)
    if dim is None or not lowering.rank(x):
        value = lowering.reshape(value, [lowering.fake(x).numel()])
    else:
        value, _ = lowering.axis_last(value, dim)
    value = lowering.cast(value, torch.uint8) if value.dtype == "bool" else value
    made = lowering.op("argmax", value, out_dtype="i64", smallest=node.target is aten.argmin.default)
    return lowering.reshape(made, lowering.shape(node))


@row(aten.max.dim, aten.min.dim)
def max_along(lowering, node, x, dim, keepdim=False):
    """Elements, and the first of their places."""
    largest = node.target is aten.max.dim
    shape = lowering.shape(node.meta["val"][0])
    if not lowering.rank(x):
        return [lowering(x), lowering.number(0, torch.int64)]
    value, _ = lowering.axis_last(lowering(x), dim)
    made = lowering.op("reduce_max" if largest else "reduce_min", value, axes=[len(value.shape) - 1])
    number = lowering.cast(value, torch.uint8) if value.dtype == "bool" else value
    places = lowering.op("argmax", number, out_dtype="i64", smallest=not largest)
    return [lowering.reshape(made, shape), lowering.reshape(places, shape)]


def ordered(lowering: Any, x: Node, k: int, dim: int, largest: bool) -> list[Any]:
    """The first k elements in order along an axis, and their places; equal ones in the order in which they stand."""
    if not lowering.rank(x):
        return [lowering(x), lowering.number(0, torch.int64)]
    if k == 0 or not lowering.fake(x).numel():
        raise Unsupported("the order of no elements")
    return ordered_value(lowering, lowering(x), k, dim, largest)


def ordered_value(lowering: Any, value: Any, k: int, dim: int, largest: bool) -> list[Any]:
    value, back = lowering.axis_last(value, dim)
    is_bool = value.dtype == "bool"
    made = lowering.ops(
        "topk", lowering.cast(value, torch.uint8) if is_bool else value, k=k, largest=largest, index_dtype="i64"
    )
    values = lowering.cast(made[0], torch.bool) if is_bool else made[0]
    return [lowering.transpose(values, back), lowering.transpose(made[1], back)]


@row(aten.topk.default)
def topk(lowering, node, x, k, dim=-1, largest=True, sorted=True):
    return ordered(lowering, x, k, dim, bool(largest))


@row(aten.sort.default)
def sort(lowering, node, x, dim=-1, descending=False):
    return ordered(lowering, x, lowering.shape(x)[dim] if lowering.rank(x) else 1, dim, bool(descending))


@row(aten.sort.stable)
def sort_stable(lowering, node, x, *, stable=None, dim=-1, descending=False):
    return sort(lowering, node, x, dim, descending)


@row(aten.argsort.default)
def argsort(lowering, node, x, dim=-1, descending=False):
    return sort(lowering, node, x, dim, descending)[1]


@row(aten.argsort.stable)
def argsort_stable(lowering, node, x, *, stable, dim=-1, descending=False):
    return sort(lowering, node, x, dim, descending)[1]


@row(aten.kthvalue.default)
def kthvalue(lowering, node, x, k, dim=-1, keepdim=False):
    made = ordered(lowering, x, k, dim, False)
    if not lowering.rank(x):
        return made
    axis, shape = dim % lowering.rank(x), lowering.shape(node.meta["val"][0])
    return [lowering.reshape(lowering.slice(value, axis, k - 1, k), shape) for value in made]


def _middle(lowering: Any, value: Any, dtype: torch.dtype, dim: int, shapes: list[Any], skips_nan: bool) -> list[Any]:
    """The lower of the middle elements along an axis, and its place. NaN, which sorts last, is skipped or wins."""
    axis, op, is_real = dim % len(value.shape), lowering.op, dtype.is_floating_point
    size = lowering.dims(value)[axis]
    values, places = ordered_value(lowering, value, size, axis, False)
    middle = [lowering.slice(of, axis, (size - 1) // 2, (size - 1) // 2 + 1) for of in (values, places)]
    if is_real:
        missing = op("is_nan", value)
        if skips_nan:
            there = lowering.cast(op("logical_not", missing), torch.int64)
            count = op("reduce_sum", there, axes=[axis], keepdims=True)
            one, two, zero = (lowering.number(of, torch.int64) for of in (1, 2, 0))
            place = op("max", op("div", op("sub", count, one), two), zero)
            middle = [op("gather_elements", of, place, axis=axis) for of in (values, places)]
        else:
            hidden = op("reduce_max", missing, axes=[axis], keepdims=True)
            first, _ = lowering.axis_last(lowering.cast(missing, torch.uint8), axis)
            first = lowering.reshape(op("argmax", first, out_dtype="i64"), lowering.dims(middle[1]))
            middle = [
                op("where", hidden, lowering.number(float("nan"), dtype), middle[0]),
                op("where", hidden, first, middle[1]),
            ]
    return [lowering.reshape(of, shape) for of, shape in zip(middle, shapes)]


@row(aten.median.dim, aten.nanmedian.dim)
def median(lowering, node, x, dim, keepdim=False):
    shapes = [lowering.shape(like) for like in node.meta["val"]]
    if not lowering.rank(x):
        return [lowering(x), lowering.number(0, torch.int64)]
    return _middle(lowering, lowering(x), lowering.dtype(x), dim, shapes, node.target is aten.nanmedian.dim)


@row(aten.median.default, aten.nanmedian.default)
def median_of_all(lowering, node, x):
    count = lowering.fake(x).numel()
    if not count:
        raise Unsupported("the median of no elements")
    flat = lowering.reshape(lowering(x), [count])
    return _middle(lowering, flat, lowering.dtype(x), 0, [()] * 2, node.target is aten.nanmedian.default)[0]


@row(aten.searchsorted.Tensor, aten.bucketize.Tensor)
def searchsorted(lowering, node, first, second, *, out_int32=False, right=False, side=None, sorter=None):
    """How many elements of the sorted row are less than a value, or not greater."""
    rows, x = (first, second) if node.target is aten.searchsorted.Tensor else (second, first)
    if sorter is not None:
        raise Unsupported("an order given as sorter")
    dtype = torch.promote_types(lowering.dtype(rows), lowering.dtype(x))
    if lowering.fake(x).numel() * (lowering.shape(rows)[-1] if lowering.rank(rows) else 1) > _MOST_COMPARISONS:
        raise Unsupported(f"more than {_MOST_COMPARISONS} comparisons")
    boundaries, value = lowering.cast(lowering(rows), dtype), lowering.cast(lowering(x), dtype)
    shape = lowering.shape(rows)
    lead = [*shape[:-1], 1, shape[-1]] if len(shape) > 1 else [1] * lowering.rank(x) + list(shape)
    boundaries = lowering.reshape(boundaries, lead)
    value = lowering.reshape(value, [*lowering.shape(x), 1])
    if dtype.is_floating_point:  # NaN stands behind everything
        infinite = lowering.number(float("inf"), dtype)
        raised = lowering.op("is_nan", value)
    before = lowering.op("less_equal" if right or side == "right" else "less", boundaries, value)
    if dtype.is_floating_point:
        before = lowering.op(
            "logical_or", before, lowering.op("logical_and", raised, lowering.op("less_equal", boundaries, infinite))
        )
    axes = [len(lowering.shape(x))]
    made = lowering.op("reduce_sum", lowering.cast(before, torch.int64), axes=axes)
    return lowering.cast(lowering.reshape(made, lowering.shape(node)), lowering.dtype(node))


@row(aten.histc.default)
def histc(lowering, node, x, bins=100, min=0, max=0):
    """Counts of equal parts between bounds, by default those of the elements."""
    dtype, op = lowering.dtype(node), lowering.op
    if dtype not in (torch.float32, torch.float64) or not lowering.fake(x).numel():
        raise Unsupported(f"histc of {dtype}")
    value = lowering.reshape(lowering(x), [lowering.fake(x).numel()])
    if min == max:
        if min != 0:
            low, high = lowering.number(min - 1, dtype), lowering.number(max + 1, dtype)
        else:
            low, high = op("reduce_min", value, axes=[0]), op("reduce_max", value, axes=[0])
            same, one = op("equal", low, high), lowering.number(1, dtype)
            low, high = op("where", same, op("sub", low, one), low), op("where", same, op("add", high, one), high)
    else:
        low, high = lowering.number(min, dtype), lowering.number(max, dtype)
    inside = op("logical_and", op("greater_equal", value, low), op("less_equal", value, high))
    place = op("div", op("mul", op("sub", value, low), lowering.number(bins, dtype)), op("sub", high, low))
    place = op("min", lowering.cast(place, torch.int64), lowering.number(bins - 1, torch.int64))
    place = op("where", inside, place, lowering.number(bins, torch.int64))
    counts = lowering.expand(lowering.number(0, dtype), [bins + 1])
    ones = lowering.expand(lowering.number(1, dtype), [lowering.fake(x).numel()])
    return lowering.slice(op("scatter", counts, place, ones, axis=0, reduction="sum"), 0, 0, bins)
