"""Arithmetic, comparisons and logic of elements. Operands are cast to the type that PyTorch's promotion gives, then to
that of the result.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .rows import add_row, aten, overloads, packet, row

Node = torch.fx.Node
HALF = (torch.bfloat16, torch.float16)


def promoted(*operands: Any) -> torch.dtype:
    """The type that PyTorch computes in: torch.result_type of nodes and numbers."""
    values = [operand.meta["val"] if isinstance(operand, Node) else operand for operand in operands]
    kind = torch.result_type(values[0], values[1])
    for value in values[2:]:
        kind = torch.promote_types(kind, torch.result_type(value, value))
    return kind


def computed_in(dtype: torch.dtype, *operands: Any) -> torch.dtype:
    """float32 for 16 bits and numbers that those do not hold: PyTorch does not round such numbers."""
    for operand in operands:
        if dtype in HALF and not isinstance(operand, Node) and torch.tensor(operand, dtype=dtype).item() != operand:
            return torch.float32
    return dtype


#: ATen's name, the library's, and its name for booleans.
_BINARY = {
    "mul": ("mul", "logical_and"), "maximum": ("max", "logical_or"), "minimum": ("min", "logical_and"),
    "bitwise_and": ("bitwise_and", "logical_and"), "bitwise_or": ("bitwise_or", "logical_or"),
    "bitwise_xor": ("bitwise_xor", "logical_xor"), "atan2": ("atan2", ""), "copysign": ("copysign", ""),
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


def _binary(kind: str, bool_kind: str):
    def lower(lowering, node, a, b):
        dtype = promoted(a, b)
        if dtype == torch.bool:
            if not bool_kind:
                raise Unsupported("booleans")
            return lowering.op(bool_kind, lowering.operand(a, dtype), lowering.operand(b, dtype))
        result = lowering.dtype(node)
        inner = computed_in(promoted_float(dtype, result), a, b)
        return lowering.cast(lowering.op(kind, lowering.operand(a, inner), lowering.operand(b, inner)), result)

    return lower


def promoted_float(dtype: torch.dtype, result: torch.dtype) -> torch.dtype:
    """The result's type where operands are integers and it is not."""
    return result if result.is_floating_point and not dtype.is_floating_point else dtype


def _compare(kind: str):
    def lower(lowering, node, a, b):
        dtype = promoted(a, b)
        if dtype == torch.bool and kind not in ("equal", "not_equal"):
            dtype = torch.uint8
        dtype = computed_in(dtype, a, b)
        return lowering.op(kind, lowering.operand(a, dtype), lowering.operand(b, dtype))

    return lower


def _logic(kind: str):
    return lambda lowering, node, a, b: lowering.op(kind, *(lowering.operand(of, torch.bool) for of in (a, b)))


def _register(table: dict, make: Any) -> None:
    for name, kinds in table.items():
        if packet(name) is not None:
            for overload in overloads(packet(name)):
                add_row(overload, make(*kinds) if isinstance(kinds, tuple) else make(kinds))


_register(_BINARY, _binary)
_register(_COMPARISONS, _compare)
_register({name: name for name in ("logical_and", "logical_or", "logical_xor")}, _logic)


def _scaled(lowering: Any, b: Any, alpha: Any, dtype: torch.dtype) -> Any:
    """b * alpha."""
    if alpha == 1:
        return lowering.operand(b, dtype)
    if dtype == torch.bool:
        return lowering.op("logical_and", lowering.operand(b, dtype), lowering.number(bool(alpha), dtype))
    return lowering.op("mul", lowering.operand(b, dtype), lowering.number(alpha, dtype))


def add_or_sub(lowering: Any, node: Node, kind: str, a: Any, b: Any, alpha: Any = 1) -> Any:
    dtype = promoted(a, b)
    if dtype == torch.bool:
        return lowering.op("logical_or", lowering.operand(a, dtype), _scaled(lowering, b, alpha, dtype))
    inner = computed_in(dtype, a, b, alpha)
    if inner in HALF and alpha != 1:
        inner = torch.float32  # the product is not rounded
    return lowering.cast(
        lowering.op(kind, lowering.operand(a, inner), _scaled(lowering, b, alpha, inner)), lowering.dtype(node)
    )


@row(aten.add)
def add(lowering, node, a, b, alpha=1):
    return add_or_sub(lowering, node, "add", a, b, alpha)


@row(aten.sub)
def sub(lowering, node, a, b, alpha=1):
    return add_or_sub(lowering, node, "sub", a, b, alpha)


@row(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(lowering, node, a, b, alpha=1):
    dtype = computed_in(promoted(a, b), a, b, alpha)
    inner = torch.float32 if dtype in HALF else dtype
    return lowering.cast(
        lowering.op("sub", lowering.operand(b, inner), _scaled(lowering, a, alpha, inner)), lowering.dtype(node)
    )


@row(aten.pow)
def pow(lowering, node, a, b):
    result = lowering.dtype(node)
    if result == torch.bool:
        raise Unsupported("booleans")
    if not isinstance(b, Node) and result.is_floating_point:
        x = lowering.operand(a, result)
        if b == 2:
            return lowering.op("square", x)
        if b == 0.5 and result not in HALF:
            return lowering.op("sqrt", x)
        if b == 3 and result not in HALF:
            return lowering.op("mul", lowering.op("square", x), x)
        if b == 1:
            return x
    if not result.is_floating_point and not isinstance(b, Node) and b < 0:
        raise Unsupported("integers to a negative power, for which PyTorch raises")
    inner = computed_in(result, a, b)
    return lowering.cast(lowering.op("pow", lowering.operand(a, inner), lowering.operand(b, inner)), result)


def _bit_shift(kind: str):
    def lower(lowering, node, a, b):
        dtype = lowering.dtype(node)
        known = not isinstance(b, Node) or (lowering.is_known(b) and bool((lowering.known[b] >= 0).all()))
        if dtype.is_signed or not known:
            raise Unsupported("shifts of signed integers")
        return lowering.op(kind, lowering.operand(a, dtype), lowering.operand(b, dtype))

    return lower


for _name, _kind in (
    ("__lshift__", "shift_left"),
    ("__rshift__", "shift_right"),
    ("bitwise_left_shift", "shift_left"),
    ("bitwise_right_shift", "shift_right"),
):
    for _overload in overloads(packet(_name)):
        add_row(_overload, _bit_shift(_kind))


@row(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def where(lowering, node, condition, a, b):
    dtype = lowering.dtype(node)
    return lowering.op("where", lowering(condition), lowering.operand(a, dtype), lowering.operand(b, dtype))


@row(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(lowering, node, x, mask, value):
    dtype = lowering.dtype(node)
    return lowering.op("where", lowering(mask), lowering.operand(value, dtype), lowering(x))


def clamped(lowering: Any, node: Node, x: Any, low: Any, high: Any) -> Any:
    """x between bounds; NaN stays, and a NaN bound gives NaN. The upper bound wins."""
    dtype = lowering.dtype(node)
    value = lowering.operand(x, dtype)
    if low is not None:
        value = lowering.op("max", value, lowering.operand(low, dtype))
    if high is not None:
        value = lowering.op("min", value, lowering.operand(high, dtype))
    return value


@row(aten.clamp.default)
def clamp(lowering, node, x, min=None, max=None):
    dtype = lowering.dtype(node)
    bounds = (float("-inf") if min is None else float(min), float("inf") if max is None else float(max))
    if dtype.is_floating_point and bounds[0] <= bounds[1] and dtype not in HALF:
        return lowering.op("clip", lowering.operand(x, dtype), low=bounds[0], high=bounds[1])
    return clamped(lowering, node, x, min, max)


@row(aten.clamp.Tensor)
def clamp_tensor(lowering, node, x, min=None, max=None):
    return clamped(lowering, node, x, min, max)


@row(aten.clamp_min)
def clamp_min(lowering, node, x, min):
    return clamped(lowering, node, x, min, None)


@row(aten.clamp_max)
def clamp_max(lowering, node, x, max):
    return clamped(lowering, node, x, None, max)


@row(aten.addcmul.default, aten.addcdiv.default)
def addcmul(lowering, node, x, a, b, *, value=1):
    dtype = lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    factor, first, second = lowering.number(value, inner), lowering.operand(a, inner), lowering.operand(b, inner)
    if node.target is aten.addcmul.default:
        made = lowering.op("mul", lowering.op("mul", factor, first), second)
    else:
        if not dtype.is_floating_point:
            raise Unsupported("addcdiv of integers")
        made = lowering.op("div", lowering.op("mul", factor, first), second)
    return lowering.cast(lowering.op("add", lowering.operand(x, inner), made), dtype)


@row(aten.lerp)
def lerp(lowering, node, a, b, weight):
    dtype = lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    op = lowering.op
    x, y, w = (lowering.operand(of, inner) for of in (a, b, weight))
    span = op("sub", y, x)
    near = op("add", x, op("mul", w, span))
    far = op("sub", y, op("mul", span, op("sub", lowering.number(1, inner), w)))
    is_near = op("less", op("abs", w), lowering.number(0.5, inner))
    return lowering.cast(op("where", is_near, near, far), dtype)
