"""Order: sorting, the largest elements, and where they are."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .rows import aten, row

Node = torch.fx.Node


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
    value, back = lowering.axis_last(lowering(x), dim)
    is_bool = value.dtype == "bool"
    if k == 0 or not lowering.fake(x).numel():
        raise Unsupported("the order of no elements")
    made = lowering.ops("topk", lowering.cast(value, torch.uint8) if is_bool else value, k=k, largest=largest, index_dtype="i64")
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


@row(aten.median.dim)
def median(lowering, node, x, dim, keepdim=False):
    """The lower of the middle elements; NaN, which sorts last, must win, so floating elements are refused."""
    if lowering.dtype(x).is_floating_point:
        raise Unsupported("the median of floating elements, where NaN wins")
    size = lowering.shape(x)[dim] if lowering.rank(x) else 1
    return kthvalue(lowering, node, x, (size + 1) // 2, dim, keepdim)
