"""Reshapes, permutations, slices, joins and casts."""

from __future__ import annotations

from operator import getitem
from typing import Any

import torch

from ...errors import Unsupported
from .rows import aten, row

Node = torch.fx.Node


def expected(lowering: Any, node: Node) -> tuple[int, ...]:
    return lowering.shape(node)


@row(
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.flatten.using_ints,
    aten.unflatten.int,
    aten.view_copy.default,
    aten.unsqueeze_copy.default,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
    aten.view_as.default,
    aten.atleast_1d.default,
    aten.atleast_2d.default,
    aten.atleast_3d.default,
    aten._reshape_alias.default,
)
def reshape(lowering, node, x, *sizes):
    return lowering.reshape(lowering(x), expected(lowering, node))


@row(aten.view.dtype)
def view_type(lowering, node, x, dtype):
    if lowering.dtype(x).itemsize != dtype.itemsize:
        raise Unsupported("a view as elements of another size")
    return lowering.op("bitcast", lowering(x), out_dtype=dtype)


@row(aten.permute.default, aten.permute_copy.default)
def permute(lowering, node, x, dims):
    return lowering.transpose(lowering(x), dims) if dims else lowering(x)


@row(aten.transpose.int, aten.transpose_copy.int, aten.swapaxes.default, aten.swapdims.default)
def transpose(lowering, node, x, first, second):
    order = list(range(lowering.rank(x)))
    if not order:
        return lowering(x)
    order[first], order[second] = order[second], order[first]
    return lowering.transpose(lowering(x), order)


@row(aten.t.default, aten.t_copy.default, aten.numpy_T.default, aten.mT.default)
def t(lowering, node, x):
    order = list(range(lowering.rank(x)))
    if node.target is aten.mT.default:
        order[-2:] = order[:-3:-1]
        return lowering.transpose(lowering(x), order)
    return lowering.transpose(lowering(x), order[::-1]) if len(order) > 1 else lowering(x)


@row(aten.movedim.intlist, aten.movedim.int)
def movedim(lowering, node, x, source, destination):
    rank = lowering.rank(x)
    source = [source] if isinstance(source, int) else source
    destination = [destination] if isinstance(destination, int) else destination
    places = {to % rank: of % rank for of, to in zip(source, destination)}
    left = [axis for axis in range(rank) if axis not in places.values()]
    return lowering.transpose(lowering(x), [places[axis] if axis in places else left.pop(0) for axis in range(rank)])


@row(aten.expand.default, aten.expand_copy.default, aten.expand_as.default, aten.broadcast_to.default)
def expand(lowering, node, x, size, *, implicit=False):
    return lowering.expand(lowering(x), expected(lowering, node))


@row(aten.repeat.default, aten.tile.default)
def repeat(lowering, node, x, repeats):
    shape = lowering.shape(x)
    repeats = [1] * (len(shape) - len(repeats)) + list(repeats)
    shape = (1,) * (len(repeats) - len(shape)) + shape
    value = lowering.reshape(lowering(x), shape)
    for axis, count in enumerate(repeats):
        if count == 1:
            continue
        apart = [*shape[:axis], 1, *shape[axis:]]
        wide = [*shape[:axis], count, *shape[axis:]]
        shape = (*shape[:axis], count * shape[axis], *shape[axis + 1 :])
        value = lowering.reshape(lowering.expand(lowering.reshape(value, apart), wide), shape)
    return value


@row(aten.repeat_interleave.self_int)
def repeat_interleave(lowering, node, x, repeats, dim=None, *, output_size=None):
    value, shape = lowering(x), list(lowering.shape(x))
    if dim is None:
        value, shape, dim = lowering.reshape(value, [node.meta["val"].numel() // repeats if repeats else 0]), [-1], 0
        shape = list(value.shape)
    axis = dim % len(shape)
    value = lowering.reshape(value, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    value = lowering.expand(value, [*shape[: axis + 1], repeats, *shape[axis + 1 :]])
    return lowering.reshape(value, expected(lowering, node))


@row(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice(lowering, node, x, dim=0, start=None, end=None, step=1):
    axis, size = dim % lowering.rank(x), lowering.shape(x)[dim]
    start = 0 if start is None else start
    count = lowering.shape(node)[axis]
    if not isinstance(count, int) or not isinstance(size, int):  # PyTorch has clamped the end already
        start = start + size if isinstance(start, int) and start < 0 else start
        return lowering.slice(lowering(x), axis, start, start + count, step)
    end = size if end is None else end
    start, end = (min(max(place + size if place < 0 else place, 0), size) for place in (start, end))
    return lowering.slice(lowering(x), axis, start, max(start, end), step)


@row(aten.narrow.default, aten.narrow_copy.default)
def narrow(lowering, node, x, dim, start, length):
    axis = dim % lowering.rank(x)
    start = start + lowering.shape(x)[axis] if start < 0 else start
    return lowering.slice(lowering(x), axis, start, start + length)


@row(aten.select.int, aten.select_copy.int)
def select(lowering, node, x, dim, index):
    axis = dim % lowering.rank(x)
    size = lowering.shape(x)[axis]
    if isinstance(size, int):
        value = lowering.slice(lowering(x), axis, index % size, index % size + 1)
    else:
        value = lowering.op("slice", lowering(x), starts=[index], counts=["1"], axes=[axis])
    return lowering.reshape(value, expected(lowering, node))


@row(aten.cat.default, aten.concat.default)
def cat(lowering, node, tensors, dim=0):
    """A list of tensors; PyTorch leaves out those of shape [0]."""
    dtype, rank = lowering.dtype(node), lowering.rank(node)
    values = [lowering.cast(lowering(x), dtype) for x in tensors if lowering.rank(x) == rank]
    return values[0] if len(values) == 1 else lowering.op("concat", *values, axis=dim % rank)


@row(aten.stack.default)
def stack(lowering, node, tensors, dim=0):
    shape, dtype = list(expected(lowering, node)), lowering.dtype(node)
    axis = dim % len(shape)
    shape[axis] = 1
    values = [lowering.reshape(lowering.cast(lowering(x), dtype), shape) for x in tensors]
    return values[0] if len(values) == 1 else lowering.op("concat", *values, axis=axis)


def pieces(lowering: Any, node: Node, x: Node, axis: int) -> list[Any]:
    """The value cut along an axis into the sizes of the results."""
    sizes = [lowering.shape(part)[axis] for part in node.meta["val"]]
    if len(sizes) == 1:
        return [lowering(x)]
    return list(lowering.ops("split", lowering(x), axis=axis, sizes=sizes))


@row(
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.split.sizes,
    aten.chunk.default,
    aten.tensor_split.sections,
    aten.tensor_split.indices,
    aten.split_copy.Tensor,
    aten.split_with_sizes_copy.default,
    aten.unsafe_split.Tensor,
    aten.unsafe_split_with_sizes.default,
    aten.unsafe_chunk.default,
)
def split(lowering, node, x, sizes, dim=0):
    return pieces(lowering, node, x, dim % lowering.rank(x))


@row(aten.unbind.int, aten.unbind_copy.int)
def unbind(lowering, node, x, dim=0):
    axis, count = dim % lowering.rank(x), lowering.shape(x)[dim]
    parts = lowering.ops("split", lowering(x), axis=axis, sizes=[1] * count) if count > 1 else [lowering(x)] * count
    return [lowering.reshape(part, lowering.shape(want)) for part, want in zip(parts, node.meta["val"])]


@row(getitem)
def item(lowering, node, x, index):
    made = lowering.values[x][index]
    if made is None:
        raise Unsupported(f"result {index} of {x.target}")
    return made


@row(aten._to_copy.default, aten.to.dtype, aten.to.dtype_layout, aten.to.device, aten.to.other)
def convert(lowering, node, x, *of, **keywords):
    if node.meta["val"].device != lowering.fake(x).device:
        raise Unsupported("a copy between devices")
    return lowering.cast(lowering(x), lowering.dtype(node))


@row(
    aten.clone.default,
    aten.alias.default,
    aten.contiguous.default,
    aten.lift_fresh_copy.default,
    aten.lift_fresh.default,
    aten.detach.default,
    aten.alias_copy.default,
    aten.detach_copy.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
    aten._conj.default,
    aten._conj_physical.default,
    aten.conj_physical.default,
    aten.real.default,
    aten.positive.default,
    aten._neg_view.default,
)
def same(lowering, node, x, *, memory_format=None):
    if node.target is aten._neg_view.default:
        return lowering.op("neg", lowering(x))
    return lowering(x)


@row(aten.dropout.default, aten.native_dropout.default)
def dropout(lowering, node, x, p, train):
    if train:
        raise Unsupported("random numbers")
    return lowering(x)


@row(aten.copy.default)
def copy(lowering, node, into, source, non_blocking=False):
    return lowering.expand(lowering.cast(lowering(source), lowering.dtype(node)), expected(lowering, node))


@row(aten.flip.default)
def flip(lowering, node, x, dims):
    axes = [dim % lowering.rank(x) for dim in dims] if lowering.rank(x) else []
    if not axes:
        return lowering(x)
    lowest = -(1 << 62)
    return lowering.op(
        "slice", lowering(x), starts=[-1] * len(axes), ends=[lowest] * len(axes), axes=axes, steps=[-1] * len(axes)
    )


@row(aten.roll.default)
def roll(lowering, node, x, shifts, dims=()):
    value, shape = lowering(x), lowering.shape(x)
    if not dims:
        value, dims = lowering.reshape(value, [node.meta["val"].numel()]), [0]
    for shift, dim in zip(shifts, dims):
        axis = dim % len(value.shape)
        size = lowering.dims(value)[axis]
        shift = shift % size if size else 0
        if shift:
            parts = lowering.slice(value, axis, size - shift, size), lowering.slice(value, axis, 0, size - shift)
            value = lowering.op("concat", *parts, axis=axis)
    return lowering.reshape(value, shape)
