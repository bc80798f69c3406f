"""Operators that move elements, as NumPy moves them."""
import math

import numpy

from .case import FLOATS, INTEGERS, STORED_ONLY, Cases, Draw, Tensor, exact, round_to

TYPES = ['bool', *INTEGERS, *(t for t in FLOATS if t not in STORED_ONLY)]
END = (1 << 63) - 1


def sample(dtype, shape):
    """Elements that tell positions and types apart; NaN and -0 among floating ones."""
    n = math.prod(shape)
    if dtype == 'bool':
        return Tensor(dtype, [(i * i + i // 3) % 2 for i in range(n)], shape)
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return Tensor(dtype, [(high - i if i % 3 == 0 else low + i if i % 3 == 1 else i) for i in range(n)], shape)
    return Tensor(dtype, [-0.0 if i == 1 else math.nan if i == 4 else (i + 1) * (0.5 if i % 2 else -1.0) for i in range(n)], shape)


def moved(dtype, array):
    return Tensor(dtype, list(array.reshape(-1)), array.shape, exact=True)


def typed(c):
    """Every operator once with every type."""
    for t in TYPES:
        x, other = sample(t, (2, 3)), sample(t, (2, 2))
        a = x.objects
        c.add('gather', [x, Tensor('i32', [2, -3, 1])], [moved(t, a[:, [2, 0, 1]])], axis=1)
        c.add('reshape', [x], [moved(t, a.reshape(3, 2))], shape=[3, -1])
        c.add('transpose', [x], [moved(t, a.T)])
        c.add('slice', [x], [moved(t, a[:, ::-2])], starts=[END], ends=[-END], axes=[1], steps=[-2])
        c.add('concat', [x, other], [moved(t, numpy.concatenate([a, other.objects], axis=1))], axis=-1)
        c.add('split', [x], [moved(t, a[:, :1]), moved(t, a[:, 1:])], axis=1, sizes=[1, -1])
        c.add('expand', [sample(t, (3, 1))], [moved(t, numpy.broadcast_to(sample(t, (3, 1)).objects, (2, 3, 2)))], shape=[2, -1, 2])
        c.add('assign', [sample(t, (2, 2)), other], [other])
        c.add('size_of', [x], [Tensor('i64', [2, 3])])
        mask = Tensor('u8' if t in FLOATS else 'bool', [[1], [0]])
        c.add('where', [mask, x, sample(t, ())], [moved(t, numpy.where(mask.array != 0, a, sample(t, ()).objects))])
        c.add('pad', [x], [moved(t, numpy.pad(a, ((1, 0), (0, 2)), constant_values=round_to(t, 300.7 if t in INTEGERS else 2.6)))], pads=[1, 0, 0, 2], value=300.7 if t in INTEGERS else 2.6)
        y = a.copy()
        for row, column, value in ((0, 2, 0), (0, 0, 1), (1, 1, 2), (1, 1, 3)):  # the last write wins
            y[row, column] = other.values[value]
        c.add('scatter', [x, Tensor('i64', [[2, -3], [1, -2]]), other], [moved(t, y)], axis=1)


def reduced(op, a, b):
    if op in ('max', 'min'):
        return math.nan if a != a or b != b else max(a, b) if op == 'max' else min(a, b)
    return a + b if op == 'sum' else a * b


def scatters(c, draw):
    for op in ('sum', 'prod', 'max', 'min'):
        for t in ('f32', 'bf16', 'f16', 'i32', 'i64'):
            x = draw.integers(t, (3, 4), -(1 << 31), (1 << 31) - 1) if t in INTEGERS else draw.normal(t, (3, 4))
            updates = draw.integers(t, (5, 2), -(1 << 31), (1 << 31) - 1) if t in INTEGERS else draw.normal(t, (5, 2))
            indices = Tensor('i32', [[0, 2], [0, -1], [1, 2], [-3, 0], [0, 2]])
            y = x.objects
            for (i, j), index in numpy.ndenumerate(indices.array):
                value = reduced(op, y[index, j], updates.objects[i, j])
                y[index, j] = round_to(t, value) if t in INTEGERS else value
            rounded = op in ('sum', 'prod') and t in FLOATS
            c.add('scatter', [x, indices, updates], [moved(t, y)], 0, 1e-5 if rounded else 0, reduction=op)
    x, updates = Tensor('f32', [1, math.nan, 3, -0.5]), Tensor('f32', [math.nan, 5, math.inf])
    c.add('scatter', [x, Tensor('i64', [0, 1, 3]), updates], [exact('f32', [math.nan, math.nan, 3, math.inf])], reduction='max')


def chosen(c, draw):
    x = draw.normal('f32', (3, 4, 5))
    a = x.objects
    c.add('gather', [x, Tensor('i64', [[1, -1], [0, 0]])], [moved('f32', a[[[1, 2], [0, 0]]])])
    c.add('gather', [x, Tensor('i32', [[3], [-4]])], [moved('f32', a[:, [[3], [0]]])], axis=1)
    c.add('gather', [x, Tensor('i32', 2, ())], [moved('f32', a[:, :, 2])], axis=-1)
    c.add('gather', [x, Tensor('i32', [], (0,))], [moved('f32', a[:, :0])], axis=1)
    c.add('reshape', [x], [moved('f32', a.reshape(3, 2, 10))], shape=[0, 2, -1])
    c.add('reshape', [Tensor('f32', [[2.5]])], [exact('f32', [2.5], (1,))], shape=[-1])
    for p in ([2, 0, 1], [1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0]):
        c.add('transpose', [x], [moved('f32', a.transpose(p))], permutation=p)
    one = Tensor('f32', 2.5, ())
    for op, operand in (('reshape', Tensor('f32', [2.5])), ('slice', one), ('expand', one), ('pad', one), ('transpose', one)):
        c.add(op, [operand], [one])
    big = draw.integers('i32', (33, 17), -999, 999)
    c.add('transpose', [big], [moved('i32', big.objects.T)])
    for s, index in ((dict(starts=[1, 0], ends=[99, -1], axes=[1, -1], steps=[2, 1]), (slice(None), slice(1, 99, 2), slice(0, -1))),
                     (dict(starts=[-1], ends=[-99], axes=[2], steps=[-3]), (slice(None), slice(None), slice(-1, -99, -3))),
                     (dict(starts=[0, 1, 2], ends=[2, 3, END]), (slice(0, 2), slice(1, 3), slice(2, None))),
                     (dict(starts=[3], ends=[1], axes=[0]), (slice(3, 1),))):
        c.add('slice', [x], [moved('f32', a[index])], **s)
    c.add('slice', [x], [moved('f32', a[1:3, :, -1:-4:-2])], starts=[1, -1], counts=['2', '2'], axes=[0, 2], steps=[1, -2])
    c.add('slice', [x], [moved('f32', a[1:, :, 0::2])], starts=[END, END], counts=['2', '3'], axes=[0, 2], steps=[1, 2])
    c.add('reshape', [x], [moved('f32', a.reshape(6, 10))], dims=['6', '10'])
    c.add('pad', [x], [moved('f32', numpy.pad(a, ((2, 0), (1, 3), (0, 1)), constant_values=0.0))], pads=[-1, 1, 0, 0, -1, 1], dims=['5', '8', '6'])
    c.add('size_of', [x], [Tensor('i64', [5, 3])], axes=[-1, 0])
    c.add('expand', [one], [moved('f32', numpy.broadcast_to(one.objects, (2, *one.shape)))], dims=['2', *(str(d) for d in one.shape)])
    pieces = [draw.normal('f32', (n, 2)) for n in (1, 0, 3)]
    c.add('concat', pieces, [moved('f32', numpy.concatenate([p.objects for p in pieces]))])
    c.add('concat', [x, x, x], [moved('f32', numpy.concatenate([a, a, a], axis=1))], axis=1)
    c.add('split', [x], [moved('f32', p) for p in numpy.split(a, 2, axis=1)], axis=1, parts=2)
    c.add('split', [x], [moved('f32', p) for p in numpy.split(a, [1, 1, 4], axis=2)], axis=-1, sizes=[1, 0, 3, -1])
    c.add('split', [x], [moved('f32', p) for p in numpy.split(a, 3)], parts=3)
    c.add('expand', [Tensor('f32', 2.5, ())], [exact('f32', [2.5] * 6, (3, 2))], shape=[3, 2])
    c.add('expand', [Tensor('f32', x.values, (3, 1, 4, 5))], [moved('f32', numpy.broadcast_to(a.reshape(3, 1, 4, 5), (3, 2, 4, 5)))], shape=[-1, 2, -1, -1])
    mask = draw.integers('bool', (2, 1, 5), 0, 1)
    left, right = draw.normal('f32', (3, 1)), draw.normal('f32', (1, 3, 5))
    c.add('where', [mask, left, right], [moved('f32', numpy.where(mask.array != 0, left.objects, right.objects))])
    c.add('where', [Tensor('u8', [0, 1, 2, 255]), Tensor('f32', [1, 2, 3, math.nan]), Tensor('f32', [-0.0, 6, 7, 8])], [exact('f32', [-0.0, 2, 3, math.nan])])
    for mode in ('reflect', 'edge'):
        c.add('pad', [x], [moved('f32', numpy.pad(a, ((0, 2), (3, 1), (1, 4)), mode=mode))], pads=[0, 3, 1, 2, 1, 4], mode=mode)
    for value in (-math.inf, 0.1):
        c.add('pad', [Tensor('bf16', [[1, 2]])], [moved('bf16', numpy.pad(Tensor('bf16', [[1, 2]]).objects, ((1, 1), (0, 1)), constant_values=round_to('bf16', value)))], pads=[1, 0, 1, 1], value=value)


def lookups(c, draw):
    for table, ids, out in (('f32', 'i32', {}), ('bf16', 'i64', {'out_dtype': 'f32'}), ('f16', 'i32', {}), ('f32', 'i64', {'out_dtype': 'bf16'}), ('f32', 'i32', {'out_dtype': 'f16'})):
        t = draw.normal(table, (5, 19))
        c.add('embedding', [Tensor(ids, [[4, 0, 0], [2, 1, 4]]), t], [moved(out.get('out_dtype', table), t.objects[[[4, 0, 0], [2, 1, 4]]])], **out)
    c.add('embedding', [Tensor('i32', [], (0,)), draw.normal('f32', (2, 3))], [exact('f32', [], (0, 3))])


def positions(c):
    for t in ('f32', 'bf16', 'f16', 'i32', 'i64'):
        c.add('iota', [Tensor(t, [5])], [exact(t, [5, 6, 7, 8])], dims=['4'])
        c.add('iota', [Tensor(t, -3, ())], [exact(t, [[-3 + 2 * i] * 2 for i in range(3)])], dims=['3', '2'], axis=-2, step=2.0)
    c.add('iota', [Tensor('f32', 0.5, ())], [exact('f32', [0.5 + 0.25 * i for i in range(6)])], dims=['6'], step=0.25)
    c.add('iota', [Tensor('i32', [(1 << 31) - 2])], [exact('i32', [(1 << 31) - 2, (1 << 31) - 1, -(1 << 31)])], dims=['3'])


def cases():
    c, draw = Cases(), Draw(8)
    typed(c)
    scatters(c, draw)
    chosen(c, draw)
    lookups(c, draw)
    positions(c)
    return c
