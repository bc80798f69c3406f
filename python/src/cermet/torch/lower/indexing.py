"""Elements and slices chosen by index."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .rows import aten, row

Node = torch.fx.Node


def indices_of(lowering: Any, node: Node) -> Any:
    """A node's value as indices: int32 or int64."""
    if lowering.dtype(node) == torch.bool:
        raise Unsupported("a mask as index, whose number of results depends on elements")
    return (
        lowering(node)
        if lowering.dtype(node) in (torch.int32, torch.int64)
        else lowering.cast(lowering(node), torch.int64)
    )


@row(aten.embedding.default)
def embedding(lowering, node, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return lowering.op("gather", lowering(weight), indices_of(lowering, indices), axis=0)


@row(aten.index_select.default)
def index_select(lowering, node, x, dim, index):
    if not lowering.rank(x):
        return lowering.reshape(lowering(x), lowering.shape(node))
    made = lowering.op("gather", lowering(x), indices_of(lowering, index), axis=dim % lowering.rank(x))
    return lowering.reshape(made, lowering.shape(node))


def trimmed(lowering: Any, value: Any, shape: tuple[int, ...], axis: int) -> Any:
    """The value with all axes but one cut to sizes: those of indices."""
    for i, size in enumerate(shape):
        if i != axis:
            value = lowering.slice(value, i, 0, size)
    return value


@row(aten.gather.default)
def gather(lowering, node, x, dim, index, *, sparse_grad=False):
    if not lowering.rank(x) or not lowering.rank(index):
        flat = lowering.reshape(lowering(x), [_count(lowering, x)])
        return lowering.reshape(lowering.op("gather", flat, indices_of(lowering, index), axis=0), lowering.shape(node))
    if not lowering.fake(index).numel():
        return lowering.expand(lowering.number(0, lowering.dtype(node)), lowering.shape(node))
    axis = dim % lowering.rank(x)
    value = trimmed(lowering, lowering(x), lowering.shape(index), axis)
    return lowering.op("gather_elements", value, indices_of(lowering, index), axis=axis)


def _count(lowering: Any, node: Node) -> int:
    total = 1
    for size in lowering.shape(node):
        total *= size
    return total


@row(aten.take.default)
def take(lowering, node, x, index):
    return lowering.op(
        "gather", lowering.reshape(lowering(x), [_count(lowering, x)]), indices_of(lowering, index), axis=0
    )


class Advanced:
    """Indices of several dimensions, some of which are left alone: x[:, i, :, j]."""

    def __init__(self, lowering: Any, x: Node, indices: list[Any]):
        self.lowering = lowering
        rank = lowering.rank(x)
        indices = [*self._without_masks(indices), *[None] * rank][:rank]
        self.axes = [axis for axis, index in enumerate(indices) if index is not None]
        self.nodes = [index for index in indices if index is not None]
        shapes = [
            tuple(index.shape) if isinstance(index, torch.Tensor) else lowering.shape(index) for index in self.nodes
        ]
        self.shape = tuple(torch.broadcast_shapes(*shapes)) if shapes else ()
        #: Indexed axes in front, the others behind.
        self.order = self.axes + [axis for axis in range(rank) if axis not in self.axes]
        self.is_adjacent = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes))) if self.axes else True

    def _without_masks(self, indices: list[Any]) -> list[Any]:
        """Masks that are known become the indices of their true elements."""
        found: list[Any] = []
        for index in indices:
            if isinstance(index, Node) and self.lowering.dtype(index) in (torch.bool, torch.uint8):
                if not self.lowering.is_known(index):
                    raise Unsupported("a mask as index, whose number of results depends on elements")
                found.extend(self.lowering.known[index].nonzero(as_tuple=True))
            else:
                found.append(index)
        return found

    def coordinates(self) -> Any:
        """[.., number of indexed axes]."""
        parts = []
        for index in self.nodes:
            value = (
                self.lowering.constant(index) if isinstance(index, torch.Tensor) else indices_of(self.lowering, index)
            )
            value = self.lowering.expand(self.lowering.cast(value, torch.int64), self.shape)
            parts.append(self.lowering.reshape(value, [*self.shape, 1]))
        return parts[0] if len(parts) == 1 else self.lowering.op("concat", *parts, axis=len(self.shape))

    def result_order(self, rank: int) -> list[int]:
        """The permutation from [indices.., other axes..] to PyTorch's order of a result of that rank."""
        if not self.is_adjacent or not self.axes:
            return list(range(rank))
        first, count = self.axes[0], len(self.shape)
        return [*range(count, count + first), *range(count), *range(count + first, rank)]


@row(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(lowering, node, x, indices):
    single = [(axis, of) for axis, of in enumerate(indices) if of is not None]
    if len(single) == 1 and lowering.dtype(single[0][1]) not in (torch.bool, torch.uint8):
        return lowering.op("gather", lowering(x), indices_of(lowering, single[0][1]), axis=single[0][0])
    chosen = Advanced(lowering, x, indices)
    if not chosen.axes:
        return lowering.reshape(lowering(x), lowering.shape(node))
    value = lowering.transpose(lowering(x), chosen.order)
    made = lowering.op("gather_nd", value, chosen.coordinates())
    return lowering.transpose(made, chosen.result_order(len(made.shape)))


def _masked_put(lowering: Any, node: Node, x: Node, mask: Node, values: Node) -> Any:
    """x where a mask over its first axes is false, else one value."""
    if _count(lowering, values) != 1:
        raise Unsupported("a mask as index, whose number of elements depends on elements")
    rank = lowering.rank(x)
    shape = lowering.shape(mask) + (1,) * (rank - lowering.rank(mask))
    value = lowering.reshape(lowering.cast(lowering(values), lowering.dtype(node)), [1] * rank)
    return lowering.op("where", lowering.reshape(lowering.cast(lowering(mask), torch.bool), shape), value, lowering(x))


@row(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(lowering, node, x, indices, values, accumulate=False):
    is_mask = len(indices) == 1 and indices[0] is not None and lowering.dtype(indices[0]) in (torch.bool, torch.uint8)
    if is_mask and not lowering.is_known(indices[0]) and not accumulate:
        return _masked_put(lowering, node, x, indices[0], values)
    chosen = Advanced(lowering, x, indices)
    shape = lowering.shape(x)
    front = [shape[axis] for axis in chosen.order]
    rank = len(chosen.shape) + len(shape) - len(chosen.axes)
    order = chosen.result_order(rank)
    back = [order.index(i) for i in range(rank)]
    wide = [*chosen.shape, *front[len(chosen.axes) :]]
    updates = lowering.expand(lowering.cast(lowering(values), lowering.dtype(node)), [wide[i] for i in order])
    updates = lowering.transpose(updates, back)
    value = lowering.transpose(lowering(x), chosen.order)
    made = lowering.op("scatter_nd", value, chosen.coordinates(), updates, reduction="sum" if accumulate else "none")
    return lowering.transpose(made, [chosen.order.index(i) for i in range(len(shape))])
