"""Operators that pick and place elements by index, and that rank and group them, for every element type."""
import itertools
import math

import numpy

from .case import FLOATS, INTEGERS, STORED_ONLY, Cases, Draw, Tensor, round_to
from .movement import TYPES, moved, reduced, sample
from .reductions import argmax, order, running, topk

NAN, INF = math.nan, math.inf


def gather_elements(c, x, indices, axis=0):
    y = numpy.empty(indices.shape, dtype=object)
    for at, index in numpy.ndenumerate(indices.array):
        place = list(at)
        place[axis] = index
        y[at] = x.objects[tuple(place)]
    c.add('gather_elements', [x, indices], [moved(x.dtype, y)], axis=axis)


def gather_nd(c, x, indices, batch_dims=0):
    a, i = x.objects, indices.array
    lead = i.shape[:-1]
    y = numpy.empty(lead + a.shape[batch_dims + i.shape[-1]:], dtype=object)
    for at in itertools.product(*map(range, lead)):
        y[at] = a[at[:batch_dims] + tuple(i[at])]
    c.add('gather_nd', [x, indices], [moved(x.dtype, y)], batch_dims=batch_dims)


def scatter_nd(c, x, indices, updates, reduction='none'):
    y, given = x.objects.copy(), updates.objects
    lead = len(indices.shape) - 1
    for at in numpy.ndindex(updates.shape):
        place = tuple(int(i) for i in indices.array[at[:lead]]) + at[lead:]
        y[place] = given[at] if reduction == 'none' else meet(x.dtype, reduction, y[place], given[at])
    rounded = reduction in ('sum', 'prod') and x.dtype in FLOATS
    c.add('scatter_nd', [x, indices, updates], [moved(x.dtype, y)], 0, 1e-5 if rounded else 0, reduction=reduction)


def meet(dtype, reduction, a, b):
    """Integers are clamped after every step."""
    value = reduced(reduction, a, b)
    return min(value, 1) if dtype == 'bool' else round_to(dtype, value) if dtype in INTEGERS else value


def nonzero(c, x):
    n = math.prod(x.shape)
    found = [at for at in itertools.product(*map(range, x.shape)) if x.objects[at] != 0]
    columns = [[at[axis] for at in found] + [0] * (n - len(found)) for axis in range(len(x.shape))]
    c.add('nonzero', [x], [Tensor('i64', columns, (len(x.shape), n)), Tensor('i64', [len(found)])])


def unique(c, x, axis=None, sorted=True):
    slices = [[v] for v in x.objects.reshape(-1)] if axis is None else [list(s.reshape(-1)) for s in numpy.moveaxis(x.objects, axis, 0)]
    keys = [tuple(order(v) for v in s) for s in slices]
    groups = list(dict.fromkeys(keys))
    if sorted:
        groups = __builtins__['sorted'](groups)
    n = len(slices)
    first = [keys.index(g) for g in groups] + [0] * (n - len(groups))
    counts = [keys.count(g) for g in groups] + [0] * (n - len(groups))
    if axis is None:
        y = numpy.array([slices[first[u]][0] if u < len(groups) else 0 for u in range(n)], dtype=object)
    else:
        y = numpy.zeros(x.shape, dtype=object)
        for u in range(len(groups)):
            numpy.moveaxis(y, axis, 0)[u] = numpy.moveaxis(x.objects, axis, 0)[first[u]]
    attributes = {} if axis is None else {'axis': [axis]}
    c.add('unique', [x], [moved(x.dtype, y), Tensor('i64', first, (n,)), Tensor('i64', [groups.index(k) for k in keys], (n,)), Tensor('i64', counts, (n,)),
                          Tensor('i64', [len(groups)])], sorted=sorted, **attributes)


def decoded(dtype):
    """The numbers of an element type of at most 16 bits, by their bits; NaN where the bits are not those of a finite number."""
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return [b if b <= high else b - (high - low + 1) for b in range(high - low + 1)]
    if dtype == 'f8_e8m0':
        return [2.0 ** (b - 127) for b in range(255)] + [NAN]
    exponent, mantissa, bias = {'f16': (5, 10, 15), 'bf16': (8, 7, 127), 'f8_e4m3': (4, 3, 7), 'f8_e5m2': (5, 2, 15), 'f8_e4m3fnuz': (4, 3, 8), 'f8_e5m2fnuz': (5, 2, 16)}[dtype]
    numbers = []
    for b in range(1 << 1 + exponent + mantissa):
        e, m, sign = b >> mantissa & (1 << exponent) - 1, b & (1 << mantissa) - 1, -1.0 if b >> exponent + mantissa else 1.0
        special = b == 0x80 if dtype.endswith('fnuz') else e == (1 << exponent) - 1 and (dtype != 'f8_e4m3' or m == 7)
        value = math.ldexp(m, 1 - bias - mantissa) if e == 0 else math.ldexp((1 << mantissa) + m, e - bias - mantissa)
        numbers.append(NAN if special else sign * value)
    return numbers


def bitcasts(c, draw):
    wide = {'f32': (numpy.uint32, numpy.float32), 'f64': (numpy.uint64, numpy.float64)}

    def values(dtype, bits):
        if dtype == 'bool':
            return [b & 1 for b in bits]
        if dtype in wide:
            return [float(v) for v in numpy.array(bits, dtype=wide[dtype][0]).view(wide[dtype][1])]
        if dtype in INTEGERS:
            low, high = INTEGERS[dtype]
            return [b if b <= high else b - (high - low + 1) for b in bits]
        table = decoded(dtype)
        return [table[b] for b in bits]

    for size, types in ((1, ['u8', 'i8', 'f8_e4m3', 'f8_e5m2', *STORED_ONLY]), (2, ['u16', 'i16', 'f16', 'bf16']), (4, ['u32', 'i32', 'f32']), (8, ['u64', 'i64', 'f64'])):
        # Bits that are finite numbers of every type.
        bits = [int(b) & 0x3b & ((1 << 8) - 1) if size == 1 else int(b) & int('3b' + 'ff' * (size - 1), 16) for b in draw.random.integers(0, 1 << 62, 6)]
        bits += [b | 1 << 8 * size - 1 for b in bits[:2]]
        for a in types:
            for b in types:
                out = {} if a == b else {'out_dtype': b}
                c.add('bitcast', [Tensor(a, values(a, bits), (2, 4), exact=True)], [Tensor(b, values(b, bits), (2, 4), exact=True)], **out)
    c.add('bitcast', [Tensor('bool', [0, 1, 1])], [Tensor('u8', [0, 1, 1])], out_dtype='u8')


def typed(c):
    for t in TYPES:
        x, other = sample(t, (3, 4)), sample(t, (2, 4))
        gather_elements(c, x, Tensor('i64', [[2, 0, -1, 1], [0, -3, 1, 2]]))
        gather_elements(c, x, Tensor('i32', [[3, 0, -1, 1, 2], [-4, 0, 0, 2, 1]]), axis=1)
        gather_nd(c, x, Tensor('i64', [[2, 3], [-1, 0], [0, -4]]))
        gather_nd(c, x, Tensor('i32', [[1], [-3], [2]]), batch_dims=1)
        scatter_nd(c, x, Tensor('i64', [[2], [-3]]), other)
        nonzero(c, x)
        unique(c, x)
        unique(c, Tensor(t, [x.values[i] for i in (3, 0, 3, 5, 0, 3, 5, 7)], (2, 4), exact=True), sorted=False)


def cases():
    c, draw = Cases(), Draw(17)
    typed(c)
    x = draw.normal('f32', (3, 4, 5))
    gather_elements(c, x, draw.integers('i64', (2, 6, 5), -4, 3), axis=1)
    gather_elements(c, x, draw.integers('i32', (3, 2, 1), -5, 4), axis=-1)
    gather_elements(c, x, Tensor('i32', [], (0, 4, 5)))
    for indices, batch in (((2, 2), 0), ((2, 3, 1), 0), ((3,), 0), ((2, 0), 0), ((3, 2, 2), 1), ((3, 4, 6, 1), 2), ((3, 4, 0), 2)):
        gather_nd(c, x, draw.integers('i64', indices, -3, 2), batch_dims=batch)
    for reduction in ('sum', 'prod', 'max', 'min'):
        for t in ('f32', 'bf16', 'f16', 'i32', 'i64', 'u8', 'u64', 'bool'):
            low, high = (0, 1) if t == 'bool' else INTEGERS.get(t, (0, 0))
            make = (lambda shape: draw.integers(t, shape, max(low, -(1 << 40)), min(high, 1 << 40))) if t not in FLOATS else (lambda shape: draw.normal(t, shape))
            scatter_nd(c, make((3, 4)), Tensor('i32', [[0], [2], [0], [-3]]), make((4, 4)), reduction)
            scatter_nd(c, make((3, 4)), Tensor('i64', [[0, 1], [2, 3], [0, -3], [0, 1]]), make((4,)), reduction)
    scatter_nd(c, draw.normal('f32', (2, 2, 3)), Tensor('i32', [[1, 1], [0, 1]]), draw.normal('f32', (2, 3)))
    scatter_nd(c, draw.normal('f32', (2, 3)), Tensor('i32', [], (0,)), draw.normal('f32', (2, 3)))
    for shape in ((), (7,), (2, 3, 4), (0, 3)):
        nonzero(c, draw.integers('f32', shape, -1, 1))
    nonzero(c, Tensor('f32', [-0.0, NAN, 1e-45, 0, INF]))
    for sorted_ in (True, False):
        for axis in (0, 1, -1):
            unique(c, draw.integers('f32', (4, 3, 2), 0, 1), axis, sorted_)
        unique(c, Tensor('f32', [NAN, -0.0, 0.0, INF, NAN, -INF, 1, -INF]), None, sorted_)
        unique(c, draw.integers('i64', (2, 9), 0, 2), 1, sorted_)
    unique(c, Tensor('f32', [], (0, 2)))
    bitcasts(c, draw)
    for t in ('f64', *INTEGERS):
        low, high = INTEGERS.get(t, (-3, 3))
        x = Tensor(t, [[high, low, 1, high - 1, low, 2], [5, 4, 5, 4, 5, 4]])
        topk(c, x, 4)
        topk(c, x, 4, largest=False, index_dtype='i64')
        choices(c, x)
    for t in ('f32', 'bf16', 'f16', 'f64'):
        choices(c, Tensor(t, [[1, 3, 3, 2, 3, 1], [-0.0, 0.0, -0.0, -1, 0.0, -1], [1, NAN, INF, NAN, 2, -INF], [-INF, -INF, 2, INF, INF, -3]]))
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        running(c, draw.normal('f64', (3, 5)), 0, exclusive, reverse)
        running(c, draw.normal('f64', (2, 5)), -1, exclusive, reverse)
    return c


def choices(c, x):
    """Both ends and both sides of ties; a NaN wins at either end."""
    for smallest, last in itertools.product((False, True), repeat=2):
        best = []
        for row in x.objects:
            nan = [i for i, v in enumerate(row) if v != v]
            limit = min(row) if smallest else max(row)
            places = nan or [i for i, v in enumerate(row) if v == limit]
            best.append(places[-1 if last else 0])
        c.add('argmax', [x], [Tensor('i32', best)], smallest=smallest, select_last_index=last)
