"""Activation functions."""

from __future__ import annotations

import torch

from .elementwise import HALF, clamped
from .rows import add_row, aten, row

_PLAIN = {"relu": "relu", "silu": "silu", "hardswish": "hard_swish", "mish": "mish", "softsign": "softsign"}


def _plain(kind: str):
    return lambda lowering, node, x: lowering.op(kind, lowering.cast(lowering(x), lowering.dtype(node)))


for _name, _kind in _PLAIN.items():
    if hasattr(getattr(aten, _name, None), "default"):
        add_row(getattr(aten, _name).default, _plain(_kind))


@row(aten.gelu.default)
def gelu(lowering, node, x, *, approximate="none"):
    return lowering.op("gelu_tanh" if approximate == "tanh" else "gelu", lowering(x))


@row(aten.leaky_relu.default)
def leaky_relu(lowering, node, x, negative_slope=0.01):
    return lowering.op("leaky_relu", lowering(x), alpha=float(negative_slope))


@row(aten.elu.default)
def elu(lowering, node, x, alpha=1, scale=1, input_scale=1):
    """scale * (x where positive, else alpha * (exp(x * input_scale) - 1))."""
    dtype = lowering.dtype(node)
    value = lowering.cast(lowering(x), dtype)
    if scale == 1 and input_scale == 1:
        return lowering.op("elu", value, alpha=float(alpha))
    inner = torch.float32 if dtype in HALF else dtype
    value = lowering.cast(value, inner)
    bent = lowering.op("mul", value, lowering.number(input_scale, inner))
    bent = lowering.op("elu", bent, alpha=float(alpha))
    zero = lowering.number(0, inner)
    made = lowering.op("where", lowering.op("greater", value, zero), value, bent)
    return lowering.cast(lowering.op("mul", made, lowering.number(scale, inner)), dtype)


@row(aten.celu.default)
def celu(lowering, node, x, alpha=1.0):
    return lowering.op("celu", lowering(x), alpha=float(alpha))


@row(aten.selu.default)
def selu(lowering, node, x):
    return lowering.op("selu", lowering(x))


@row(aten.softplus.default)
def softplus(lowering, node, x, beta=1, threshold=20):
    """log(1 + exp(beta x)) / beta, and x where beta x is above the threshold."""
    if beta == 1 and threshold >= 20:
        return lowering.op("softplus", lowering(x))  # float32 has no difference to x beyond 20
    dtype = lowering.dtype(node)
    inner = torch.float32 if dtype in HALF else dtype
    value = lowering.cast(lowering(x), inner)
    scaled = lowering.op("mul", value, lowering.number(beta, inner))
    made = lowering.op("div", lowering.op("softplus", scaled), lowering.number(beta, inner))
    return lowering.cast(
        lowering.op("where", lowering.op("greater", scaled, lowering.number(threshold, inner)), value, made), dtype
    )


@row(aten.hardsigmoid.default)
def hardsigmoid(lowering, node, x):
    return lowering.op("hard_sigmoid", lowering(x), alpha=1 / 6, beta=0.5)


@row(aten.hardtanh.default)
def hardtanh(lowering, node, x, min_val=-1, max_val=1):
    if lowering.dtype(node).is_floating_point and lowering.dtype(node) not in HALF:
        return lowering.op("clip", lowering(x), low=float(min_val), high=float(max_val))
    return clamped(lowering, node, x, min_val, max_val)


@row(aten.relu6.default)
def relu6(lowering, node, x):
    return clamped(lowering, node, x, 0, 6)


@row(aten.log_sigmoid.default, aten.log_sigmoid_forward.default)
def log_sigmoid(lowering, node, x):
    """-softplus(-x)."""
    made = lowering.op("neg", lowering.op("softplus", lowering.op("neg", lowering(x))))
    if node.target is aten.log_sigmoid.default:
        return made
    return [
        made,
        lowering.op("exp", lowering.op("neg", lowering.op("abs", lowering(x)))) if 1 in lowering.used(node) else None,
    ]


@row(aten.threshold.default)
def threshold(lowering, node, x, threshold, value):
    dtype = lowering.dtype(node)
    kept = lowering.op("less_equal", lowering(x), lowering.number(threshold, dtype))
    return lowering.op("where", kept, lowering.number(value, dtype), lowering(x))


@row(aten.hardshrink.default, aten.softshrink.default)
def shrink(lowering, node, x, lambd=0.5):
    bias = 0.0 if node.target is aten.hardshrink.default else float(lambd)
    return lowering.op("shrink", lowering(x), lambd=float(lambd), bias=bias)


@row(aten.prelu.default, aten._prelu_kernel.default)
def prelu(lowering, node, x, weight):
    shape = lowering.shape(weight)
    slope = lowering(weight)
    if node.target is aten.prelu.default and len(shape) == 1 and lowering.rank(x) > 1:
        slope = lowering.reshape(slope, [shape[0]] + [1] * (lowering.rank(x) - 2))
    return lowering.op("prelu", lowering(x), slope)


@row(aten.glu.default)
def glu(lowering, node, x, dim=-1):
    value = lowering(x)
    axis = dim % len(value.shape)
    first, second = lowering.ops("split", value, axis=axis, parts=2)
    return lowering.op("mul", first, lowering.op("sigmoid", second))
