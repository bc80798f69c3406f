"""Functions of one element."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import Unsupported
from .division import trunc
from .elementwise import HALF
from .rows import add_row, aten, overloads, packet, row

#: ATen's name and the library's, of functions whose results are floating: integers are cast first.
_FLOATING = {
    name: name
    for name in (
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "sigmoid",
        "expm1",
        "log1p",
        "log2",
        "log10",
        "lgamma",
    )
} | {"special_erf": "erf", "special_expm1": "expm1", "special_log1p": "log1p", "special_gammaln": "lgamma"}


def exists(kind: str) -> bool:
    """Whether the library has an operator."""
    from ... import _native

    return kind in _native.op_names()


def _floating(kind: str):
    def lower(lowering, node, x):
        if not exists(kind):
            return _COMPOSED[kind](lowering, node, x)
        return lowering.op(kind, lowering.cast(lowering(x), lowering.dtype(node)))

    return lower


def _widened(compose: Any):
    """A composition that is computed in float32 for types of 16 bits."""

    def lower(lowering, node, x):
        dtype = lowering.dtype(node)
        inner = torch.float32 if dtype in HALF else dtype
        return lowering.cast(compose(lowering, lowering.cast(lowering(x), inner), inner), dtype)

    return lower


def _expm1(lowering, x, dtype):
    """(u - 1) x / log(u), u = e^x, where u is neither 1 nor extreme: the errors of u cancel (W. Kahan)."""
    op, number = lowering.op, lowering.number
    u = op("exp", x)
    less = op("sub", u, number(1, dtype))
    exact = op("div", op("mul", less, x), op("log", u))
    made = op("where", op("equal", u, number(1, dtype)), x, exact)
    return op("where", op("less", op("abs", x), number(1, dtype)), made, less)


def _log1p(lowering, x, dtype):
    """x log(u) / (u - 1), u = 1 + x: the rounding of u cancels (W. Kahan)."""
    op, number = lowering.op, lowering.number
    u = op("add", x, number(1, dtype))
    exact = op("div", op("mul", x, op("log", u)), op("sub", u, number(1, dtype)))
    made = op("where", op("equal", u, number(1, dtype)), x, exact)
    return op("where", op("less", op("abs", x), number(1, dtype)), made, op("log", u))


def _scaled_log(base: float):
    return lambda lowering, x, dtype: lowering.op(
        "mul", lowering.op("log", x), lowering.number(1 / math.log(base), dtype)
    )


#: What stands for operators that the library may not have.
_COMPOSED = {
    "expm1": _widened(_expm1),
    "log1p": _widened(_log1p),
    "log2": _widened(_scaled_log(2)),
    "log10": _widened(_scaled_log(10)),
}

for _name, _kind in _FLOATING.items():
    if packet(_name) is not None and (exists(_kind) or _kind in _COMPOSED):
        for _overload in overloads(packet(_name)):
            add_row(_overload, _floating(_kind))


def _unchanged_integers(kind: str):
    """Functions that leave integers as they are."""

    def lower(lowering, node, x):
        value = lowering(x)
        return lowering.op(kind, value) if lowering.dtype(x).is_floating_point else value

    return lower


for _name in ("floor", "ceil", "round"):
    add_row(packet(_name).default, _unchanged_integers(_name))


@row(aten.round.decimals)
def round_decimals(lowering, node, x, *, decimals):
    dtype = lowering.dtype(node)
    if not decimals or not dtype.is_floating_point:
        return _unchanged_integers("round")(lowering, node, x)
    inner = torch.float32 if dtype in HALF else dtype
    factor = lowering.number(10.0 ** abs(decimals), inner)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    scaled = lowering.op("round", lowering.op(there, lowering.cast(lowering(x), inner), factor))
    return lowering.cast(lowering.op(back, scaled, factor), dtype)


@row(aten.trunc.default, aten.fix.default)
def trunc_row(lowering, node, x):
    return trunc(lowering, lowering(x)) if lowering.dtype(x).is_floating_point else lowering(x)


@row(aten.frac.default)
def frac(lowering, node, x):
    return lowering.op("sub", lowering(x), trunc(lowering, lowering(x)))


@row(aten.exp2.default)
def exp2(lowering, node, x):
    dtype = lowering.dtype(node)
    return lowering.op("pow", lowering.number(2, dtype), lowering.cast(lowering(x), dtype))


@row(aten.erfc.default)
def erfc(lowering, node, x):
    raise Unsupported("erfc: 1 - erf loses its small values")


@row(aten.neg.default)
def neg(lowering, node, x):
    return lowering.op("neg", lowering(x))


@row(aten.abs.default)
def absolute(lowering, node, x):
    return lowering(x) if lowering.dtype(x) == torch.bool else lowering.op("abs", lowering(x))


@row(aten.square.default)
def square(lowering, node, x):
    return lowering.op("square", lowering.cast(lowering(x), lowering.dtype(node)))


@row(aten.sign.default)
def sign(lowering, node, x):
    """0 for NaN, which the library keeps."""
    value = lowering(x)
    if value.dtype == "bool":
        return value
    made = lowering.op("sign", value)
    if not lowering.dtype(x).is_floating_point:
        return made
    return lowering.op("where", lowering.op("is_nan", value), lowering.number(0, lowering.dtype(x)), made)


@row(aten.sgn.default)
def sgn(lowering, node, x):
    return sign(lowering, node, x)


@row(aten.signbit.default)
def signbit(lowering, node, x):
    """The highest bit."""
    bits = {
        torch.float32: torch.int32,
        torch.float64: torch.int64,
        torch.bfloat16: torch.int16,
        torch.float16: torch.int16,
    }
    dtype = lowering.dtype(x)
    value = lowering(x)
    if value.dtype == "bool" or not dtype.is_signed:
        value, dtype = lowering.cast(value, torch.uint8), torch.uint8
    if dtype in bits:
        value, dtype = lowering.op("bitcast", value, out_dtype=str(bits[dtype]).replace("torch.int", "i")), bits[dtype]
    return lowering.op("less", value, lowering.number(0, dtype))


@row(aten.isnan.default)
def isnan(lowering, node, x):
    if lowering.dtype(x).is_floating_point:
        return lowering.op("is_nan", lowering(x))
    return lowering.op("not_equal", lowering(x), lowering(x))


@row(aten.isinf.default)
def isinf(lowering, node, x):
    if lowering.dtype(x).is_floating_point:
        return lowering.op("is_inf", lowering(x))
    return lowering.op("not_equal", lowering(x), lowering(x))


@row(aten.isposinf.default, aten.isneginf.default)
def is_one_infinity(lowering, node, x):
    if not lowering.dtype(x).is_floating_point:
        return lowering.op("not_equal", lowering(x), lowering(x))
    positive = node.target is aten.isposinf.default
    return lowering.op("is_inf", lowering(x), detect_positive=float(positive), detect_negative=float(not positive))


@row(aten.isfinite.default)
def isfinite(lowering, node, x):
    if not lowering.dtype(x).is_floating_point:
        return lowering.op("equal", lowering(x), lowering(x))
    either = lowering.op("logical_or", lowering.op("is_nan", lowering(x)), lowering.op("is_inf", lowering(x)))
    return lowering.op("logical_not", either)


@row(aten.logical_not.default, aten.bitwise_not.default)
def invert(lowering, node, x):
    value = lowering(x)
    if node.target is aten.logical_not.default:
        return lowering.op("logical_not", lowering.cast(value, torch.bool))
    return lowering.op("logical_not" if value.dtype == "bool" else "bitwise_not", value)


@row(aten.nan_to_num.default)
def nan_to_num(lowering, node, x, nan=None, posinf=None, neginf=None):
    dtype = lowering.dtype(node)
    value = lowering(x)
    if not dtype.is_floating_point:
        return value
    limits = torch.finfo(dtype)

    def replaced(value, condition, number):
        return lowering.op("where", condition, lowering.number(number, dtype), value)

    made = replaced(value, lowering.op("is_nan", value), 0.0 if nan is None else nan)
    positive = lowering.op("is_inf", value, detect_negative=0.0)
    negative = lowering.op("is_inf", value, detect_positive=0.0)
    made = replaced(made, positive, limits.max if posinf is None else posinf)
    return replaced(made, negative, limits.min if neginf is None else neginf)


@row(aten.deg2rad.default, aten.rad2deg.default)
def angle_unit(lowering, node, x):
    dtype = lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    factor = math.pi / 180 if node.target is aten.deg2rad.default else 180 / math.pi
    return lowering.cast(lowering.op("mul", lowering.cast(lowering(x), inner), lowering.number(factor, inner)), dtype)


@row(aten.logit.default)
def logit(lowering, node, x, eps=None):
    dtype = lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    value = lowering.cast(lowering(x), inner)
    if eps is not None and eps >= 0:
        low, high = lowering.number(eps, inner), lowering.number(1 - eps, inner)  # may be out of order: the lower wins
        bounded = lowering.op("where", lowering.op("greater", value, high), high, value)
        value = lowering.op("where", lowering.op("less", value, low), low, bounded)
    return lowering.cast(
        lowering.op("log", lowering.op("div", value, lowering.op("sub", lowering.number(1, inner), value))), dtype
    )


@row(aten.heaviside.default)
def heaviside(lowering, node, x, values):
    dtype = lowering.dtype(node)
    value, zero = lowering.cast(lowering(x), dtype), lowering.number(0, dtype)
    if value.dtype == "bool":
        raise Unsupported("booleans")
    step = lowering.cast(lowering.op("greater", value, zero), dtype)
    return lowering.op("where", lowering.op("equal", value, zero), lowering.cast(lowering(values), dtype), step)


@row(aten.ldexp.Tensor)
def ldexp(lowering, node, x, exponent):
    dtype = lowering.dtype(node)
    power = lowering.op("pow", lowering.number(2, dtype), lowering.cast(lowering(exponent), dtype))
    return lowering.op("mul", lowering.cast(lowering(x), dtype), power)
