"""Divisions and remainders."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .elementwise import HALF, computed_in, promoted
from .rows import add_row, aten, overloads, row

Node = torch.fx.Node


def is_unsafe_divisor(lowering: Any, divisor: Any) -> bool:
    """Whether an integer division may be by 0, for which PyTorch raises on the CPU."""
    if not isinstance(divisor, Node):
        return divisor == 0
    return not (lowering.is_known(divisor) and bool((lowering.known[divisor] != 0).all()))


def refuse_zero_divisor(lowering: Any, divisor: Any) -> None:
    if lowering.device == "cpu" and is_unsafe_divisor(lowering, divisor):
        raise Unsupported("integer division whose divisor may be 0, for which PyTorch raises")


@row(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(lowering, node, a, b):
    result = lowering.dtype(node)
    inner = computed_in(result, a, b)
    return lowering.cast(lowering.op("div", lowering.operand(a, inner), lowering.operand(b, inner)), result)


@row(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(lowering, node, a, b, *, rounding_mode=None):
    if rounding_mode is None:
        return div(lowering, node, a, b)
    if rounding_mode == "floor":
        return floor_divide(lowering, node, a, b)
    dtype = promoted(a, b)
    if dtype.is_floating_point:
        return trunc(lowering, div(lowering, node, a, b))  # the quotient is rounded first
    refuse_zero_divisor(lowering, b)
    return lowering.op("div", *(lowering.operand(of, dtype) for of in (a, b)))


def trunc(lowering: Any, value: Any) -> Any:
    """Rounded toward zero: floor of what is not negative, else ceil."""
    zero = lowering.number(0, torch.float64 if value.dtype == "f64" else torch.float32)
    if value.dtype not in ("f32", "f64"):
        wide = lowering.cast(value, torch.float32)
        return lowering.op("cast", trunc(lowering, wide), out_dtype=value.dtype)
    return lowering.op(
        "where", lowering.op("less", value, zero), lowering.op("ceil", value), lowering.op("floor", value)
    )


@row(aten.floor_divide)
def floor_divide(lowering, node, a, b):
    """PyTorch's, which is made of fmod: 6 // 0.1 is 59."""
    dtype = promoted(a, b)
    if not dtype.is_floating_point:
        return _floor_divide_integers(lowering, a, b, dtype)
    inner = torch.float32 if dtype in HALF else dtype
    x, y = lowering.operand(a, inner), lowering.operand(b, inner)
    zero, one = lowering.number(0, inner), lowering.number(1, inner)
    op = lowering.op
    rest = op("fmod", x, y)
    quotient = op("div", op("sub", x, rest), y)
    crossed = op(
        "logical_and", op("not_equal", rest, zero), op("logical_xor", op("less", y, zero), op("less", rest, zero))
    )
    quotient = op("where", crossed, op("sub", quotient, one), quotient)
    rounded = op("floor", quotient)
    rounded = op(
        "where",
        op("greater", op("sub", quotient, rounded), lowering.number(0.5, inner)),
        op("add", rounded, one),
        rounded,
    )
    ratio = op("div", x, y)
    # A quotient of 0 has the sign of the ratio, and a divisor of 0 gives the ratio: infinite or NaN.
    rounded = op("where", op("equal", quotient, zero), op("mul", ratio, zero), rounded)
    return lowering.cast(op("where", op("equal", y, zero), ratio, rounded), lowering.dtype(node))


def _floor_divide_integers(lowering: Any, a: Any, b: Any, dtype: torch.dtype) -> Any:
    refuse_zero_divisor(lowering, b)
    op = lowering.op
    x, y = lowering.operand(a, dtype), lowering.operand(b, dtype)
    quotient = op("div", x, y)
    if not dtype.is_signed:
        return quotient
    zero = lowering.number(0, dtype)
    rest = op("fmod", x, y)
    crossed = op(
        "logical_and", op("not_equal", rest, zero), op("logical_xor", op("less", rest, zero), op("less", y, zero))
    )
    return op("sub", quotient, lowering.cast(crossed, dtype))


def _remainder(kind: str):
    def lower(lowering, node, a, b):
        dtype = promoted(a, b)
        if not dtype.is_floating_point:
            refuse_zero_divisor(lowering, b)
        inner = computed_in(dtype, a, b)
        return lowering.cast(
            lowering.op(kind, lowering.operand(a, inner), lowering.operand(b, inner)), lowering.dtype(node)
        )

    return lower


for _overload in overloads(aten.remainder):
    add_row(_overload, _remainder("mod"))
for _overload in overloads(aten.fmod):
    add_row(_overload, _remainder("fmod"))
