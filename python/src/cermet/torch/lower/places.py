"""Views whose elements are picked by places that are computed while importing."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .rows import aten, row

Node = torch.fx.Node

#: Places of a result that are constant indices at most.
_MOST_INDICES = 1 << 24


def picked(lowering: Any, node: Node, x: Node, places: Any) -> Any:
    """Elements of x at places that PyTorch computes now: what a view of numbers 0, 1, .. in the shape of x shows."""
    shape, count = lowering.shape(x), 1
    for size in lowering.shape(node):
        count *= size
    if count > _MOST_INDICES:
        raise Unsupported(f"{count} indices, of at most {_MOST_INDICES}")
    numbers = torch.arange(lowering.fake(x).numel()).reshape(shape)
    indices = places(numbers).contiguous()
    flat = lowering.reshape(lowering(x), [numbers.numel()])
    return lowering.op("gather", flat, lowering.constant(indices, "places"), axis=0)


@row(
    aten.unfold.default, aten.diagonal.default, aten.diagonal_copy.default, aten.unfold_copy.default,
    aten.pixel_unshuffle.default, aten.channel_shuffle.default, aten.native_channel_shuffle.default, aten.rot90.default,
    aten.linalg_diagonal.default,
)  # fmt: skip
def by_places(lowering, node, x, *args, **keywords):
    return picked(lowering, node, x, lambda numbers: node.target(numbers, *args, **keywords))


@row(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(lowering, node, x, size, stride, storage_offset=None):
    fake = lowering.fake(x)
    if not fake.is_contiguous() or lowering.bindings.size(fake.storage_offset()):
        raise Unsupported("as_strided of a view")
    return picked(lowering, node, x, lambda numbers: numbers.as_strided(size, stride, storage_offset or 0))
