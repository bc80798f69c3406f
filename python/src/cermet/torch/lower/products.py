"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .elementwise import HALF
from .rows import aten, row

Node = torch.fx.Node

#: Element types of the library's linear, whose right side is packed once.
LINEAR = (torch.float32, torch.bfloat16, torch.float16)
_MATMUL = (*LINEAR, torch.float64, torch.int32, torch.int64)


def product(lowering: Any, a: Any, b: Any, dtype: torch.dtype, out: torch.dtype | None = None) -> Any:
    """a b of vectors or matrices, broadcast over leading axes; in the type `out` or that of the operands."""
    if dtype not in _MATMUL:
        if dtype.is_floating_point or dtype == torch.bool:
            raise Unsupported(f"products of {dtype}")
        made = product(lowering, lowering.cast(a, torch.int32), lowering.cast(b, torch.int32), torch.int32)
        return lowering.cast(made, dtype)  # the low bits, as wrapping products have them
    rows, columns = len(a.shape) > 1, len(b.shape) > 1
    a = a if rows else lowering.reshape(a, [1, *a.shape])
    b = b if columns else lowering.reshape(b, [*b.shape, 1])
    made = lowering.op("matmul", a, b, **({"out_dtype": out} if out not in (None, dtype) else {}))
    shape = list(lowering.dims(made))
    return lowering.reshape(made, shape[:-2] + shape[-2:-1] * rows + shape[-1:] * columns)


def weighted(lowering: Any, x: Node, weight: Node, bias: Node | None = None) -> Any | None:
    """x times a constant [K, N] as linear, or None where that is none."""
    if not lowering.is_known(weight) or lowering.rank(weight) != 2 or lowering.rank(x) < 2:
        return None
    if lowering.dtype(weight) not in LINEAR or lowering.dtype(x) != lowering.dtype(weight):
        return None
    if not lowering.known[weight].numel():
        return None
    packed = lowering.constant(lowering.known[weight].t().contiguous(), f"{lowering.names.get(weight, weight.name)}.t")
    return lowering.op("linear", lowering(x), packed, *([] if bias is None else [lowering(bias)]))


@row(aten.mm.default, aten.bmm.default, aten.matmul.default, aten.mv.default, aten.dot.default, aten.vdot.default)
def matmul(lowering, node, a, b):
    made = weighted(lowering, a, b)
    if made is not None:
        return made
    return lowering.reshape(product(lowering, lowering(a), lowering(b), lowering.dtype(node)), lowering.shape(node))


@row(aten.linear.default)
def linear(lowering, node, x, weight, bias=None):
    dtype, rank = lowering.dtype(node), lowering.rank(weight)
    if dtype in LINEAR and rank == 2 and lowering.rank(x) and (bias is None or lowering.rank(bias) == 1):
        return lowering.op("linear", lowering(x), lowering(weight), *([] if bias is None else [lowering(bias)]))
    right = lowering.transpose(lowering(weight), [1, 0]) if rank == 2 else lowering(weight)
    made = product(lowering, lowering(x), right, dtype)
    return made if bias is None else lowering.op("add", made, lowering(bias))


def added(lowering: Any, node: Node, c: Node, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """beta c + alpha a b, rounded once; c is not read where beta is 0."""
    dtype = lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    made = product(lowering, a, b, dtype, inner)
    if alpha != 1:
        made = lowering.op("mul", made, lowering.number(alpha, inner))
    if beta != 0:
        start = lowering.cast(lowering(c), inner)
        made = lowering.op("add", made, start if beta == 1 else lowering.op("mul", start, lowering.number(beta, inner)))
    return lowering.expand(lowering.cast(made, dtype), lowering.shape(node))


@row(aten.addmm.default, aten.baddbmm.default, aten.addmv.default)
def addmm(lowering, node, c, a, b, *, beta=1, alpha=1):
    if beta == alpha == 1 and lowering.rank(c) == 1 and node.target is aten.addmm.default:
        made = weighted(lowering, a, b, c) if lowering.shape(c)[0] == lowering.shape(node)[1] else None
        if made is not None:
            return made
    if lowering.dtype(node) == torch.bool:
        raise Unsupported("products of booleans")
    return added(lowering, node, c, lowering(a), lowering(b), beta, alpha)


@row(aten.addbmm.default)
def addbmm(lowering, node, c, a, b, *, beta=1, alpha=1):
    """The sum of a batch's products: one product of joined columns."""
    batch, rows, inner = lowering.shape(a)
    joined = lowering.reshape(lowering.transpose(lowering(a), [1, 0, 2]), [rows, batch * inner])
    right = lowering.reshape(lowering(b), [batch * inner, lowering.shape(b)[2]])
    return added(lowering, node, c, joined, right, beta, alpha)


@row(aten.addr.default, aten.outer.default, aten.ger.default)
def addr(lowering, node, *operands, beta=1, alpha=1):
    a, b = operands[-2:]
    dtype = lowering.dtype(node)
    left = lowering.reshape(lowering.cast(lowering(a), dtype), [lowering.shape(a)[0], 1])
    if dtype == torch.bool:
        raise Unsupported("products of booleans")
    made = lowering.op("mul", left, lowering.cast(lowering(b), dtype))
    if len(operands) == 2:
        return made
    if dtype in HALF:
        raise Unsupported("addr of 16 bits, whose product PyTorch does not round")
    if alpha != 1:
        made = lowering.op("mul", made, lowering.number(alpha, dtype))
    if beta == 0:
        return made
    start = lowering.cast(lowering(operands[0]), dtype)
    made = lowering.op("add", made, start if beta == 1 else lowering.op("mul", start, lowering.number(beta, dtype)))
    return lowering.expand(made, lowering.shape(node))


@row(aten.linalg_det.default, aten.det.default)
def det(lowering, node, x):
    return lowering.op("det", lowering(x))


@row(aten._cdist_forward.default)
def cdist(lowering, node, a, b, p, compute_mode=None):
    """Distances of all pairs of rows."""
    op, dtype = lowering.op, lowering.dtype(node)
    if not lowering.fake(node).numel() or not lowering.shape(a)[-1]:
        raise Unsupported("distances of no elements")
    *lead, rows, width = lowering.shape(a)
    left = lowering.reshape(lowering(a), [*lead, rows, 1, width])
    *lead, rows, width = lowering.shape(b)
    apart = op("abs", op("sub", left, lowering.reshape(lowering(b), [*lead, 1, rows, width])))
    axes = [lowering.rank(node)]
    if p == float("inf"):
        return op("reduce_max", apart, axes=axes)
    if p == 0:
        return op("reduce_sum", lowering.cast(op("not_equal", apart, lowering.number(0, dtype)), dtype), axes=axes)
    if p == 2:
        return op("sqrt", op("reduce_sum", op("square", apart), axes=axes))
    total = op("reduce_sum", apart if p == 1 else op("pow", apart, lowering.number(p, dtype)), axes=axes)
    return total if p == 1 else op("pow", total, lowering.number(1 / p, dtype))


def grouped(
    lowering: Any,
    node: Node,
    x: Node,
    weight: Node,
    ends: Node | None = None,
    bias: Node | None = None,
    out_dtype: Any = None,
) -> Any:
    """Rows sorted by group, each group times its own [K, N]; `ends` is where each group ends."""
    if ends is None or bias is not None or lowering.rank(x) != 2 or lowering.rank(weight) != 3:
        raise Unsupported("grouped products of other forms than rows by weights")
    zero = lowering.reshape(lowering.number(0, lowering.dtype(ends)), [1])
    offsets = lowering.op("concat", zero, lowering(ends), axis=0)
    return lowering.op("grouped_linear", lowering(x), lowering.transpose(lowering(weight), [0, 2, 1]), offsets)


row(aten._grouped_mm.default)(grouped)
#: Operators of other packages that have rows, by name: those packages may be missing.
NAMED = {"transformers.grouped_mm_fallback.default": grouped}
