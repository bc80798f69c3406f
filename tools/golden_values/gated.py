"""Gated activations: silu_and_mul, gelu_and_mul, swiglu_clamped."""
import math

import numpy
from mpmath import mpf

from . import functions
from .case import Cases, Draw, Tensor, exact
from .functions import ACTIVATIONS, GELUS


def halves(x, gate='first', interleaved=False):
    """Gate and linear half of each row."""
    f = x.shape[-1] // 2
    first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :f], x[..., f:])
    return (first, second) if gate == 'first' else (second, first)


def gated(c, op, x, function, units, **attributes):
    layout = {k: v for k, v in attributes.items() if k in ('gate', 'interleaved')}
    g, u = halves(x.array, **layout)
    values = [function(a, b) for a, b in zip(g.reshape(-1).tolist(), u.reshape(-1).tolist())]
    c.add(op, [x], [exact(attributes.get('out_dtype', x.dtype), values, g.shape)], units, 2.0 ** -112, **attributes)


def product(a, b):
    return math.nan if math.isnan(a) or math.isnan(b) or (a == 0 and math.isinf(b)) or (b == 0 and math.isinf(a)) else a * b


def clamped(alpha, limit, offset):
    def call(g, u):
        if math.isnan(g) or math.isnan(u):
            return math.nan
        g, u = min(g, limit), min(max(u, -limit), limit)
        if g == -math.inf:
            return math.nan
        g = mpf(g)
        return float(g * functions.logistic(mpf(alpha) * g) * (mpf(u) + mpf(offset)))
    return call


def cases():
    c, draw = Cases(), Draw(6)
    edges = [0.0, -0.0, 1, -1, 7, 7.5, -7, -7.5, 6.9999995, 0.5, -4, 20, -20, -60, 3e3, math.inf, -math.inf, math.nan]
    rows = Tensor('f32', [edges + [1.0, 2, -3] * 6, [1.0, -7.5, 8, 6.9999995, math.nan, -7, 7, 2, -0.5] * 2 + edges])
    layouts = [{}, {'gate': 'second'}, {'interleaved': True}, {'gate': 'second', 'interleaved': True}, {'gate': 'second'}]
    types = [('f32', {}), ('bf16', {}), ('f16', {'out_dtype': 'f32'}), ('f32', {'out_dtype': 'bf16'}), ('bf16', {'out_dtype': 'f16'})]
    operators = [('silu_and_mul', {}, lambda g, u: product(ACTIVATIONS['silu'](g), u), 10)]
    for form, function in GELUS.items():
        operators.append(('gelu_and_mul', {'approximate': form} if form != 'none' else {}, lambda g, u, f=function: product(f(g), u), 10))
    for alpha, limit, offset in ((1.702, 7.0, 1.0), (1.25, 2.5, 0.5)):
        attributes = {} if limit == 7 else {'alpha': alpha, 'limit': limit, 'up_offset': offset}
        operators.append(('swiglu_clamped', attributes, clamped(alpha, limit, offset), 12))
    for op, attributes, function, units in operators:
        for layout, (dtype, out) in zip(layouts, types):
            # Within 3 the tails are short: what a function's argument is rounded by stays below 8 units.
            x = Tensor(dtype, numpy.clip(draw.normal('f32', (2, 14), 1.5).array, -3, 3))
            gated(c, op, x, function, units * (5 if op == 'gelu_and_mul' else 2 if op == 'swiglu_clamped' else 1), **attributes, **layout, **out)
        gated(c, op, draw.normal('f32', (3, 1, 66)), function, 400 if op == 'gelu_and_mul' else 60, **attributes)
        # Tails below lose a unit for each unit of the exponential's argument: 700 units there are one part in 24,000.
        gated(c, op, rows, function, 700, **attributes)
        gated(c, op, draw.normal('f32', (0, 6)), function, 0, **attributes)
    return c
