"""linear, matmul, dual_linear: sums of products are exact here (math.fsum of products that double precision holds exactly)."""
import math

import numpy

from . import functions
from .case import INTEGERS, OF_DOUBLE, Cases, Draw, Tensor, UNIT, exact


def dot(a, b):
    """Exact sum of products of float32 numbers, rounded once to double; the sum of its terms' magnitudes."""
    terms = [float(x) * float(y) for x, y in zip(a, b)]
    if not all(map(math.isfinite, terms)):
        return float(numpy.sum(terms)), 0.0
    return math.fsum(terms), math.fsum(map(abs, terms))


def rows_times(x, w):
    """x [M, K] times the rows of w [N, K]: products and the largest sum of magnitudes."""
    pairs = [[dot(a, b) for b in w] for a in x]
    sums = numpy.array([[s for s, _ in row] for row in pairs]).reshape(len(x), len(w))
    return sums, max((m for row in pairs for _, m in row), default=0.0)


def bound(depth, magnitude):
    """Allowed error of a float32 sum of this many terms, in any order (Higham, 2002, section 4.2, with what a product's rounding adds)."""
    return (depth + 2) * UNIT * magnitude


def linear(cases, x, w, bias=None, constant=(), **attributes):
    matrix = x.array.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    y, magnitude = rows_times(matrix, w.array)
    if bias:
        y, magnitude = y + bias.array, magnitude + max(map(abs, bias.values))
    out = exact(attributes.get('out_dtype', x.dtype), y.reshape(x.shape[:-1] + w.shape[:1]))
    cases.add('linear', [x, w] + ([bias] if bias else []), [out], 0, bound(x.shape[-1], magnitude) or 2.0 ** -149, constant=constant, **attributes)


def matmul(cases, a, b, transpose_a=False, transpose_b=False, **attributes):
    left = numpy.swapaxes(a.array, -1, -2) if transpose_a else a.array
    right = b.array if transpose_b else numpy.swapaxes(b.array, -1, -2)  # rows of the transposed matrix
    lead = numpy.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left, right = numpy.broadcast_to(left, lead + left.shape[-2:]), numpy.broadcast_to(right, lead + right.shape[-2:])
    y, magnitude = numpy.zeros(lead + (left.shape[-2], right.shape[-2])), 0.0
    for index in numpy.ndindex(lead):
        y[index], largest = rows_times(left[index], right[index])
        magnitude = max(magnitude, largest)
    if transpose_a:
        attributes['transpose_a'] = True
    if transpose_b:
        attributes['transpose_b'] = True
    cases.add('matmul', [a, b], [exact(attributes.get('out_dtype', a.dtype), y)], 0, bound(left.shape[-1], magnitude) or 2.0 ** -149, **attributes)


def unmixed_matmul(cases, a, b):
    """Of f64, or of integers, which wrap."""
    y = a.objects @ b.objects
    if a.dtype == 'f64':
        terms = float((abs(a.array) @ abs(b.array)).max())
        return cases.add('matmul', [a, b], [exact('f64', y)], 0, bound(a.shape[-1], terms) * OF_DOUBLE)
    low, high = INTEGERS[a.dtype]
    cases.add('matmul', [a, b], [Tensor(a.dtype, [(v - low) % (high - low + 1) + low for v in y.reshape(-1)], y.shape)])


def dual_linear(cases, x, gate, up, biases=(None, None), constant=(), **attributes):
    activation = functions.ACTIVATIONS[attributes.get('activation', 'silu')]
    g, g_size = rows_times(x.array, gate.array)
    u, u_size = rows_times(x.array, up.array)
    if biases[0]:
        g, g_size = g + biases[0].array, g_size + max(map(abs, biases[0].values))
    if biases[1]:
        u, u_size = u + biases[1].array, u_size + max(map(abs, biases[1].values))
    activated = numpy.vectorize(activation, otypes=[float])(g)
    depth = x.shape[-1] + 2 + 8
    # The slope of every activation is below 1.2; their own error is a few units of the gate.
    allowed = depth * UNIT * (1.2 * g_size * max(abs(u.reshape(-1)), default=0) + (max(abs(activated.reshape(-1)), default=0) + 1) * u_size)
    out = exact(attributes.get('out_dtype', x.dtype), activated * u)
    cases.add('dual_linear', [x, gate, up, *biases][:5 if biases[1] else 4 if biases[0] else 3], [out], 0, allowed, constant=constant, **attributes)


def cases():
    c, draw = Cases(), Draw(3)
    for m, k, n in ((1, 19, 7), (3, 5, 1), (5, 33, 17), (2, 1, 3), (7, 16, 33)):
        linear(c, draw.normal('f32', (m, k)), draw.normal('f32', (n, k)), draw.normal('f32', (n,)), constant=(1,))
    for x, w, bias, out in (('bf16', 'bf16', 'f32', ''), ('f16', 'f16', 'f16', 'f32'), ('bf16', 'f16', 'bf16', 'f16'), ('f32', 'bf16', 'bf16', 'bf16'), ('f16', 'f32', 'f32', '')):
        attributes = {'out_dtype': out} if out else {}
        linear(c, draw.normal(x, (2, 2, 18)), draw.normal(w, (5, 18)), draw.normal(bias, (5,)), constant=(1,), **attributes)
        linear(c, draw.normal(x, (1, 35)), draw.normal(w, (9, 35)), constant=(1,), **attributes)
    linear(c, draw.normal('f32', (2, 0)), draw.normal('f32', (3, 0)), draw.normal('f32', (3,)))
    linear(c, draw.normal('f32', (0, 4)), draw.normal('f32', (3, 4)), constant=(1,))
    linear(c, Tensor('f32', [[1, math.inf, 2], [1, math.nan, 0], [3, -math.inf, 1], [1e20, 3e38, -1e20]]), Tensor('f32', [[1, 2, 3], [-1, -2, 1]]), constant=(1,))
    linear(c, Tensor('f32', [[1.0, 2.0 ** 24, 1, -(2.0 ** 24)]]), Tensor('f32', [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1]]), Tensor('f32', [0, 2.0 ** -24, 5]), constant=(1,))
    for a, b, settings in (((3, 7), (7, 5), {}), ((7, 3), (7, 5), {'transpose_a': True}), ((3, 7), (5, 7), {'transpose_b': True}),
                           ((9, 4), (3, 9), {'transpose_a': True, 'transpose_b': True}), ((2, 3, 6), (6, 4), {}), ((1, 4, 5), (3, 5, 2), {}),
                           ((2, 1, 2, 3), (3, 3, 4), {}), ((4, 0), (0, 3), {}), ((0, 4), (4, 3), {}), ((1, 1), (1, 1), {}), ((1, 20), (20, 19), {}),
                           ((5, 17), (5, 17), {'transpose_b': True}), ((2, 9, 1), (2, 9, 6), {'transpose_a': True})):
        matmul(c, draw.normal('f32', a), draw.normal('f32', b), **settings)
    for a, b, out in (('bf16', 'f16', {}), ('f16', 'bf16', {'out_dtype': 'f32'}), ('f32', 'f16', {'out_dtype': 'bf16'}), ('bf16', 'bf16', {'out_dtype': 'f16'})):
        matmul(c, draw.normal(a, (3, 8)), draw.normal(b, (8, 6)), **out)
        matmul(c, draw.normal(a, (2, 3, 8)), draw.normal(b, (2, 6, 8)), transpose_b=True, **out)
    for name in functions.ACTIVATIONS:
        dual_linear(c, draw.normal('f32', (3, 9)), draw.normal('f32', (5, 9)), draw.normal('f32', (5, 9)), constant=(1, 2), activation=name)
    weights = [draw.normal('f32', (n, 6), 0.5) for n in (19, 19)]
    for biases in ((draw.normal('f32', (19,)), None), (draw.normal('bf16', (19,)), draw.normal('f16', (19,))), (draw.normal('f16', (19,)), draw.normal('bf16', (19,))),
                   (None, draw.normal('f32', (19,)))):
        dual_linear(c, draw.normal('f32', (4, 6)), *weights, biases, constant=(1, 2))
    for x, w, out in (('bf16', 'bf16', {}), ('f16', 'f16', {'out_dtype': 'f32'}), ('f32', 'bf16', {'out_dtype': 'f16'}), ('bf16', 'f32', {'out_dtype': 'bf16'})):
        for m in (1, 5):
            dual_linear(c, draw.normal(x, (m, 17)), draw.normal(w, (6, 17)), draw.normal(w, (6, 17)), constant=(1, 2), **out)
    more = Draw(23)
    unmixed_matmul(c, more.normal('f64', (2, 3, 8)), more.normal('f64', (8, 5)))
    for dtype in ('i32', 'u32', 'i64', 'u64'):
        low, high = INTEGERS[dtype]
        unmixed_matmul(c, Tensor(dtype, [[high, 1, 2], [low, high, 7]]), Tensor(dtype, [[1, 2, high, 3], [5, 0, high, low], [1, 1, 9, 65537]]))
        unmixed_matmul(c, more.integers(dtype, (2, 3, 8), 0, 2000000000), more.integers(dtype, (2, 8, 5), 0, 2000000000))
    return c
