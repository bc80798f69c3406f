"""Tensors made of numbers."""

from __future__ import annotations

import torch

from ...errors import Unsupported
from .rows import aten, row

_ZEROS = (
    aten.zeros.default,
    aten.zeros_like.default,
    aten.new_zeros.default,
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.empty_strided.default,
    aten.new_empty_strided.default,
    aten.empty_permuted.default,
)


def _filled(lowering, node, value):
    return lowering.expand(lowering.number(value, lowering.dtype(node)), lowering.shape(node))


@row(*_ZEROS)
def zeros(lowering, node, *of, **keywords):
    """Memory that is not initialized is 0, too."""
    return _filled(lowering, node, 0)


@row(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(lowering, node, *of, **keywords):
    return _filled(lowering, node, 1)


@row(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(lowering, node, *of, **keywords):
    return lowering.expand(lowering.operand(of[-1], lowering.dtype(node)), lowering.shape(node))


@row(aten.scalar_tensor.default)
def scalar_tensor(lowering, node, value, **keywords):
    return lowering.number(value, lowering.dtype(node))


@row(
    aten.arange.default, aten.arange.start, aten.arange.start_step, aten.linspace.default, aten.eye.default, aten.eye.m
)
def sequence(lowering, node, *args, dtype=None, layout=None, device=None, pin_memory=None):
    if any(not isinstance(of, (int, float)) for of in args):
        return _counted(lowering, node, args)
    return lowering.constant(node.target(*args, dtype=lowering.dtype(node), device=node.meta["val"].device), node.name)


def _counted(lowering, node, args):
    """0, 1, .. up to a symbolic size: the first elements of those up to its largest value."""
    start, step = (args[0] if len(args) > 1 else 0), (args[2] if len(args) > 2 else 1)
    if node.target not in (aten.arange.default, aten.arange.start, aten.arange.start_step) or (start, step) != (0, 1):
        raise Unsupported("a sequence whose start is symbolic")
    end = args[0] if len(args) == 1 else args[1]
    whole = torch.arange(lowering.bindings.largest(end), dtype=lowering.dtype(node), device=node.meta["val"].device)
    return lowering.slice(lowering.constant(whole, node.name), 0, 0, end)


@row(aten.tril.default, aten.triu.default)
def triangle(lowering, node, x, diagonal=0):
    """x where a constant mask is true, else 0."""
    rows, columns = lowering.shape(x)[-2:]
    ones = torch.ones(lowering.bindings.largest(rows), lowering.bindings.largest(columns), dtype=torch.bool)
    mask = ones.tril(diagonal) if node.target is aten.tril.default else ones.triu(diagonal)
    seen = lowering.slice(lowering.slice(lowering.constant(mask, node.name), 0, 0, rows), 1, 0, columns)
    return lowering.op("where", seen, lowering(x), lowering.number(0, lowering.dtype(node)))


@row(aten.tril_indices.default, aten.triu_indices.default)
def triangle_indices(lowering, node, rows, columns, offset=0, *, dtype=None, layout=None, device=None, pin_memory=None):
    return lowering.constant(node.target(rows, columns, offset, dtype=lowering.dtype(node)), node.name)
