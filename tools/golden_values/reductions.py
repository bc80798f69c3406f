"""softmax, the reductions, cumsum, topk, argmax."""
import functools
import math

import mpmath
import numpy
from mpmath import mpf

from .case import FLOATS, INTEGERS, OF_DOUBLE, UNIT, Cases, Draw, Tensor, clamp, exact

INF, NAN = math.inf, math.nan


def softmax_row(row, log):
    top = max(row, default=0)
    if any(map(math.isnan, row)) or math.isinf(top):
        return [NAN] * len(row)
    weights = [mpmath.exp(mpf(v) - mpf(top)) if v > -INF else mpf(0) for v in row]
    total = mpmath.fsum(weights)
    if log:
        return [float(mpf(v) - mpf(top) - mpmath.log(total)) if v > -INF else -INF for v in row]
    return [float(w / total) for w in weights]


def softmax(c, x, **attributes):
    rows = x.array.reshape(-1, x.shape[-1]) if x.shape[-1] else x.array.reshape(math.prod(x.shape[:-1]), 0)
    log = attributes.get('log', False)
    y = [v for row in rows for v in softmax_row(row.tolist(), log)]
    finite = [v for v in x.values if math.isfinite(v)]
    # x - max is rounded once in float32; the exponential grows that error by the difference, of which 104 at most is seen.
    spread = min(max(finite, default=0) - min(finite, default=0), 104)
    units = (x.shape[-1] + 12 + (0 if log else spread)) * (OF_DOUBLE if x.dtype == 'f64' else 1)
    c.add('softmax', [x], [exact(attributes.get('out_dtype', x.dtype), y, x.shape)], units, 2.0 ** -143 + (units * UNIT if log else 0), **attributes)


def low_bits(dtype, value):
    low, high = INTEGERS[dtype]
    return (value - low) % (high - low + 1) + low


def fold(op, dtype, values, overflow='clamp'):
    """A reduction of a list of exact numbers."""
    n = len(values)
    if dtype in INTEGERS or dtype == 'bool':
        low, high = INTEGERS.get(dtype, (0, 1))
        if op == 'prod':
            return functools.reduce(lambda a, b: clamp(dtype, a * b), values, 1)
        if op in ('max', 'min'):
            return max(values, default=low) if op == 'max' else min(values, default=high)
        if op == 'sum':
            return low_bits(dtype, sum(values)) if overflow == 'wrap' else clamp(dtype, sum(values))
        quotient, rest = divmod(sum(values), n) if n else (0, 0)
        return quotient + (2 * rest > n or (2 * rest == n and quotient % 2)) if n else 0
    if any(map(math.isnan, values)):
        return NAN
    if op in ('max', 'min'):
        return max(values, default=-INF) if op == 'max' else min(values, default=INF)
    if op == 'prod':
        return float(mpmath.fprod(map(mpf, values))) if all(map(math.isfinite, values)) else float(numpy.prod(values))
    total = math.fsum(values) if all(map(math.isfinite, values)) else float(numpy.sum(values))
    return total if op == 'sum' else total / n if n else NAN


def reduce(c, op, x, axes=(), **attributes):
    used = sorted(a % len(x.shape) for a in axes) if axes else list(range(len(x.shape)))
    a, kept = x.objects, [i for i in range(len(x.shape)) if i not in used]
    flat = numpy.transpose(a, kept + used).reshape(math.prod(x.shape[i] for i in kept), math.prod(x.shape[i] for i in used))
    values = [fold(op, x.dtype, list(row), attributes.get('overflow', 'clamp')) for row in flat]
    shape = tuple(1 if i in used else n for i, n in enumerate(x.shape)) if attributes.get('keepdims') else tuple(x.shape[i] for i in kept)
    length = flat.shape[1]
    terms = max((math.fsum(abs(v) for v in row if math.isfinite(v)) for row in flat), default=0) if x.dtype in FLOATS else 0
    rounded = x.dtype in FLOATS and length > 1
    scale = OF_DOUBLE if x.dtype == 'f64' else 1
    within = {'prod': length + 1, 'mean': 1}.get(op, 0) * scale if rounded else 0
    absolute = (length + 1) * UNIT * scale * terms / (length if op == 'mean' else 1) if rounded and op in ('sum', 'mean') else 2.0 ** -149 if x.dtype in FLOATS else 0
    if axes:
        attributes['axes'] = list(axes)
    out = attributes.get('out_dtype', x.dtype)
    c.add(f'reduce_{op}', [x], [exact(out, values, shape) if out in FLOATS else Tensor(out, values, shape)], within, absolute, **attributes)


def reductions(c, draw):
    for op in ('sum', 'mean', 'prod', 'max', 'min'):
        deviation = 1.0
        for shape, axes, settings in (((3, 7), (1,), {}), ((3, 7), (0,), {'keepdims': True}), ((2, 3, 5), (), {}), ((2, 3, 5), (-1, 0), {}), ((2, 3, 5), (1,), {}),
                                      ((2, 0), (1,), {}), ((0, 3), (1,), {}), ((2, 37), (1,), {}), ((4, 1), (1,), {}), ((2, 3, 5), (0, 1), {'keepdims': True})):
            reduce(c, op, draw.normal('f32', shape, deviation), axes, **settings)
        for dtype, out in (('bf16', {}), ('f16', {'out_dtype': 'f32'}), ('f32', {'out_dtype': 'bf16'}), ('bf16', {'out_dtype': 'f16'})):
            reduce(c, op, draw.normal(dtype, (3, 11)), (1,), **out)
            reduce(c, op, draw.normal(dtype, (11, 3)), (0,), **out)
        for row in ([NAN, 1, 2], [INF, 1, -INF], [INF, 1, 2], [-INF, 1, 2], [-0.0, -0.0, 0.0], [3e38, 3e38, -3e38], [1e-40, 1e-40, 1], [1, 2, NAN]):
            if op == 'prod' and row[0] in (3e38, 1e-40) or op == 'sum' and row[0] == 3e38 or op == 'mean' and row[0] == 3e38:
                continue  # an intermediate leaves the range, or not, by order
            reduce(c, op, Tensor('f32', [row]), (1,))
            reduce(c, op, Tensor('f32', [[v] for v in row]), (0,))
        for dtype, big in (('i32', 2147483647), ('i64', (1 << 63) - 1)):
            rows = [[1, 2, 3, 4], [big, big, -1, 5], [-big - 1, -1, 2, 0], [-3, 0, 0, 1], [1, 2, 2, 1], [-1, -2, -2, -1], [big, -big, 3, 4], [7, 7, 7, 8]]
            reduce(c, op, Tensor(dtype, rows), (1,))
            reduce(c, op, Tensor(dtype, rows), (0,))
            reduce(c, op, Tensor(dtype, [], (2, 0)), (1,))


def rare_reductions(c, draw):
    for op in ('sum', 'mean', 'prod', 'max', 'min'):
        for dtype in ('i8', 'u8', 'i16', 'u16', 'u32', 'u64'):
            low, big = INTEGERS[dtype]
            rows = [[1, 2, 3, 4], [big, big, 1, 5], [low, 2, 2, 0], [0, 0, 0, 1], [1, 2, 2, 1], [3, 0, 0, 3], [big, big, big, big], [7, 7, 7, 8]]
            for axes in ((1,), (0,), ()):
                reduce(c, op, Tensor(dtype, rows), axes)
            reduce(c, op, Tensor(dtype, [], (2, 0)), (1,))
        for shape, axes, settings in (((3, 7), (1,), {}), ((2, 3, 5), (0, 2), {'keepdims': True}), ((3, 7), (0,), {}), ((2, 0), (1,), {})):
            reduce(c, op, draw.normal('f64', shape), axes, **settings)
        for row in ([NAN, 1, 2], [INF, 1, -INF], [-INF, 1, 2]):
            reduce(c, op, Tensor('f64', [row]), (1,))
        if op in ('max', 'min'):
            for axes in ((1,), (0,)):
                reduce(c, op, Tensor('bool', [[0, 1, 0], [0, 0, 0], [1, 1, 1]]), axes)
            reduce(c, op, Tensor('bool', [], (2, 0)), (1,))


def running(c, x, axis=-1, exclusive=False, reverse=False, overflow='clamp'):
    moved = numpy.moveaxis(x.objects, axis, -1)
    flat = moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
    y = numpy.empty_like(flat)
    for i, row in enumerate(flat):
        source = list(row[::-1] if reverse else row)
        sums = [fold('sum', x.dtype, source[:j if exclusive else j + 1], overflow) for j in range(len(source))]
        y[i] = sums[::-1] if reverse else sums
    result = numpy.moveaxis(y.reshape(moved.shape), -1, axis)
    terms = max((math.fsum(abs(v) for v in row if math.isfinite(v)) for row in flat), default=0) if x.dtype in FLOATS else 0
    values = list(result.reshape(-1))
    attributes = {k: v for k, v, d in (('axis', axis, -1), ('exclusive', exclusive, False), ('reverse', reverse, False), ('overflow', overflow, 'clamp')) if v != d}
    c.add('cumsum', [x], [exact(x.dtype, values, x.shape) if x.dtype in FLOATS else Tensor(x.dtype, values, x.shape)], 0,
          (x.shape[axis] + 1) * UNIT * terms + 2.0 ** -149 if x.dtype in FLOATS else 0, **attributes)


def order(v):
    """NaN above everything, the zeros equal."""
    return (1, 0) if v != v else (0, v + 0)


def topk(c, x, k, **attributes):
    largest, index = attributes.get('largest', True), attributes.get('index_dtype', 'i32')
    values, ids = [], []
    a = x.objects.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    for row in a:
        ranked = sorted(range(len(row)), key=lambda i: order(row[i]), reverse=largest)  # stable, but reversed it keeps the order of equal ones too
        values += [row[i] for i in ranked[:k]]
        ids += ranked[:k]
    shape = x.shape[:-1] + (k,)
    c.add('topk', [x], [Tensor(x.dtype, values, shape, exact=True), Tensor(index, ids, shape)], k=k, **attributes)


def argmax(c, x, **attributes):
    rows = x.objects.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    best = [max(range(len(row)), key=lambda i: (order(row[i]), -i)) for row in rows]
    c.add('argmax', [x], [Tensor(attributes.get('out_dtype', 'i32'), best, x.shape[:-1])], **attributes)


def wrapping(c):
    for dtype in ('i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64'):
        low, big = INTEGERS[dtype]
        rows = [[1, 2, 3, 4], [big, big, 1, 5], [low, 2, 2, 0], [big, big, big, big], [low, low, low, 7]]
        for axes in ((1,), (0,), ()):
            reduce(c, 'sum', Tensor(dtype, rows), axes, overflow='wrap')
        if dtype in ('i32', 'i64'):
            running(c, Tensor(dtype, rows), -1, False, True, overflow='wrap')
            running(c, Tensor(dtype, rows), 0, True, False, overflow='wrap')


def choices(c, draw):
    special = [[1, 3, 3, 2, 3], [-0.0, 0.0, -0.0, -1, 0.0], [1, NAN, INF, NAN, 2], [-INF, -INF, -1e-45, -3, -INF], [0.0, -0.0, 1e-45, -1, 0.0]]
    for dtype in ('f32', 'bf16', 'f16'):
        for k, largest in ((1, True), (3, True), (5, True), (2, False), (5, False)):
            topk(c, Tensor(dtype, special), k, largest=largest)
        topk(c, draw.normal(dtype, (2, 1, 33)), 7, index_dtype='i64')
        argmax(c, Tensor(dtype, special))
        argmax(c, draw.normal(dtype, (2, 2, 37)), out_dtype='i64')
        argmax(c, draw.integers(dtype, (4, 70), 0, 3), out_dtype='i32')
    for dtype, big in (('i32', 2147483647), ('i64', (1 << 63) - 1)):
        x = Tensor(dtype, [[big, -big - 1, 0, big - 1, big], [(1 << 53) + 1 if dtype == 'i64' else 5, 1 << 53 if dtype == 'i64' else 4, -1, -1, 7]])
        for k, largest in ((2, True), (4, False)):
            topk(c, x, k, largest=largest)
    argmax(c, draw.normal('f32', (0, 3)))
    argmax(c, draw.normal('f32', (5,)))


def cases():
    c, draw = Cases(), Draw(9)
    rows = [[0, 0, -INF], [1000, 1000, 999], [-1000, -1001, -1000.5], [NAN, 1, 2], [-INF, -INF, -INF], [INF, 1, 2], [3, 3, 3], [0, -87, -104], [100, 0, -3e38], [-0.0, 0, 1e-40]]
    for log in (False, True):
        for row in rows:
            softmax(c, Tensor('f32', [row]), log=log)
        for dtype, out in (('f32', {}), ('bf16', {}), ('f16', {'out_dtype': 'f32'}), ('f32', {'out_dtype': 'bf16'}), ('bf16', {'out_dtype': 'f16'})):
            softmax(c, draw.normal(dtype, (2, 19), 3), log=log, **out)
        softmax(c, draw.normal('f32', (2, 2, 33), 8), log=log)
        softmax(c, draw.normal('f32', (2, 1)), log=log)
        softmax(c, draw.normal('f32', (0, 3)), log=log)
    reductions(c, draw)
    for exclusive in (False, True):
        for reverse in (False, True):
            for dtype in ('f32', 'bf16', 'f16'):
                running(c, draw.normal(dtype, (2, 9)), -1, exclusive, reverse)
            running(c, draw.normal('f32', (3, 4, 2)), 1, exclusive, reverse)
            for dtype, big in (('i32', 2147483647), ('i64', (1 << 63) - 1)):
                running(c, Tensor(dtype, [[1, 2, 3, 4], [big, 1, -5, 7], [-big, -9, 20, 1]]), -1, exclusive, reverse)
                running(c, Tensor(dtype, [[1, 2, 3], [4, big, 6]]), 0, exclusive, reverse)
    running(c, Tensor('f32', [1, NAN, 2, INF, 1]))
    running(c, Tensor('f32', [1, INF, 2, -INF, 1]))
    choices(c, draw)
    more = Draw(19)
    for log in (False, True):
        softmax(c, Tensor('f64', [[0, 0, -INF], [1000, 1000, 999], [NAN, 1, 2], [-INF, -INF, -INF], [INF, 1, 2]]), log=log)
        softmax(c, more.normal('f64', (2, 19), 3), log=log)
    rare_reductions(c, more)
    wrapping(c)
    return c
