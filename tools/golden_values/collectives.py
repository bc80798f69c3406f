"""Collectives, as functions of every rank's operands stacked along the first axis."""
import math

import numpy

from .case import FLOATS, UNIT, Cases, Draw, Tensor, exact
from .reductions import fold

TYPES = ('f32', 'bf16', 'f16', 'i32', 'i8')
REDUCTIONS = ('sum', 'prod', 'max', 'min', 'avg')


def combined(op, dtype, x):
    """The reduction over the ranks of [R, ..]."""
    name = 'mean' if op == 'avg' else op
    flat = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    result = numpy.empty(flat.shape[1], dtype=object)
    result[:] = [fold(name, dtype, list(column)) for column in flat.T]
    return result.reshape(x.shape[1:])


def add(c, op, operands, array, tolerance=0.0, **attributes):
    dtype = operands[0].dtype
    values = list(array.reshape(-1))
    c.add(op, operands, [exact(dtype, values, array.shape) if dtype in FLOATS else Tensor(dtype, values, array.shape)], 0, tolerance, **attributes)


def reducing(c, x):
    ranks = x.shape[0]
    finite = [abs(v) for v in x.values if math.isfinite(v)]
    for op in REDUCTIONS:
        one = combined(op, x.dtype, x.objects)
        size = max(finite, default=0) * ranks if op in ('sum', 'avg') else max(finite, default=0) ** ranks
        tolerance = (ranks + 1) * UNIT * size + 2.0 ** -149 if x.dtype in FLOATS else 0
        attributes = {} if op == 'sum' else {'reduction': op}
        add(c, 'all_reduce', [x], numpy.stack([one] * ranks), tolerance, **attributes)
        zeros = numpy.full(one.shape, 0, dtype=object)
        for root in {0, ranks - 1} if op == 'sum' else {ranks - 1}:
            add(c, 'reduce_to', [x], numpy.stack([one if r == root else zeros for r in range(ranks)]), tolerance, root=root, **attributes)
        if x.shape[1] % ranks == 0:
            add(c, 'reduce_scatter', [x], one.reshape((ranks, x.shape[1] // ranks) + x.shape[2:]), tolerance, **attributes)


def moving(c, x):
    a, ranks = x.objects, x.shape[0]
    joined = a.reshape((ranks * x.shape[1],) + x.shape[2:])
    zeros = numpy.full(joined.shape, 0, dtype=object)
    add(c, 'all_gather', [x], numpy.stack([joined] * ranks))
    for root in (0, ranks - 1):
        attributes = {'root': root} if root else {}
        add(c, 'gather_to', [x], numpy.stack([joined if r == root else zeros for r in range(ranks)]), **attributes)
        add(c, 'broadcast_from', [x], numpy.stack([a[root]] * ranks), **attributes)
        if x.shape[1] % ranks == 0:
            add(c, 'scatter_from', [x], a[root].reshape((ranks, x.shape[1] // ranks) + x.shape[2:]), **attributes)
    if x.shape[1] % ranks == 0:
        pieces = a.reshape((ranks, ranks, x.shape[1] // ranks) + x.shape[2:])
        add(c, 'all_to_all', [x], numpy.swapaxes(pieces, 0, 1).reshape(a.shape))


def uneven(c, x, counts):
    a, n, y = x.objects, counts.array, numpy.full(x.shape, 0, dtype=object)
    for receiver in range(x.shape[0]):
        at = 0
        for sender in range(x.shape[0]):
            begin, count = int(n[sender, :receiver].sum()), int(n[sender, receiver])
            y[receiver, at:at + count] = a[sender, begin:begin + count]
            at += count
    add(c, 'all_to_all', [x, counts], y)


def alone(c, x):
    """One rank's own operand, where it is the only rank."""
    for op in ('all_reduce', 'reduce_to', 'reduce_scatter', 'all_gather', 'gather_to', 'scatter_from', 'broadcast_from', 'all_to_all'):
        add(c, op, [x], x.objects, ranks=1)
        add(c, op, [x], x.objects, ranks=1, group='tensor')


def cases():
    c, draw = Cases(), Draw(10)
    for dtype in TYPES:
        for shape in ((2, 4), (3, 3, 5), (1, 2))[:3 if dtype == 'f32' else 1]:
            x = draw.normal(dtype, shape) if dtype in FLOATS else draw.integers(dtype, shape, -128 if dtype == 'i8' else -99999, 127 if dtype == 'i8' else 99999)
            reducing(c, x)
            moving(c, x)
        x = Tensor(dtype, [[7, -100, 3, 5], [8, -100, -4, 2], [8, 90, 9, 1]] if dtype == 'i8' else [[math.nan, 1, math.inf, -0.0], [1, 2, 3, -0.0], [5, 6, -7, 0.0]]
                   if dtype in FLOATS else [[2147483647, -5, 46341, 1], [1, -6, 46341, 2], [-3, 2, 2, 2]])
        reducing(c, x)
        moving(c, x)
        for index in ('i32', 'i64'):
            uneven(c, draw.integers(dtype, (3, 5, 2), -99, 99), Tensor(index, [[1, 2, 0], [0, 0, 5], [3, 1, 0]]))
    uneven(c, draw.normal('f32', (2, 3)), Tensor('i32', [[0, 3], [1, 0]]))
    moving(c, draw.normal('f32', (2, 0, 3)))
    alone(c, draw.normal('f32', (4, 3)))
    return c
