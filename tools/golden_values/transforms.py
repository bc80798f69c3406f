"""Determinants, in exact arithmetic, and discrete Fourier transforms, in double precision."""
import cmath
import fractions
import math

import numpy

from .case import REAL, UNIT, Cases, Draw, Tensor, exact


def determinant(rows):
    """By expansion along the first row."""
    if not rows:
        return fractions.Fraction(1)
    return sum((-1) ** j * v * determinant([r[:j] + r[j + 1:] for r in rows[1:]]) for j, v in enumerate(rows[0]) if v)


def det(c, x):
    n = x.shape[-1]
    matrices = x.objects.reshape(math.prod(x.shape[:-2]), n, n)
    values = [float(determinant([[fractions.Fraction(v) for v in row] for row in m])) for m in matrices]
    c.add('det', [x], [exact(x.dtype, values, x.shape[:-2])], 1, 1e-12)


def dft(c, x, axis=-2, length=0, inverse=False, onesided=False):
    a = numpy.moveaxis(x.array, axis, -2)  # [.., n, parts]
    a = a[..., 0] + 1j * (a[..., 1] if a.shape[-1] == 2 else 0)
    n = length or a.shape[-1]
    a = numpy.concatenate([a[..., :n], numpy.zeros(a.shape[:-1] + (max(0, n - a.shape[-1]),))], axis=-1)
    results = n // 2 + 1 if onesided else n
    matrix = numpy.array([[cmath.exp((2 if inverse else -2) * 1j * math.pi * (j * k % n) / n) for k in range(results)] for j in range(n)]).reshape(n, results)
    y = a @ matrix / (n if inverse else 1)
    y = numpy.moveaxis(numpy.stack([y.real, y.imag], axis=-1), -2, axis)
    largest = max((float(abs(v.real) + abs(v.imag)) for v in a.reshape(-1)), default=0)
    bound = (n + 8) * UNIT * largest * (1 if inverse else n)
    c.add('dft', [x], [exact(x.dtype, y, y.shape)], 0, bound + 2.0 ** -149, axis=axis, length=length, inverse=inverse, onesided=onesided)


def cases():
    c, draw = Cases(), Draw(29)
    for t in (*REAL, 'f64'):
        for n in (1, 2, 3, 5):
            det(c, draw.coarse(t, (2, n, n), 1))
    det(c, draw.coarse('f32', (6, 6)))
    det(c, draw.coarse('f32', (2, 1, 3, 3)))
    det(c, Tensor('f32', [[1, 2, 3], [2, 4, 6], [1, 0, 1]]))
    det(c, Tensor('f32', [[0, 2, 0], [0, 0, 3], [4, 0, 0]]))
    det(c, Tensor('f32', [], (2, 0, 0)))
    for t in REAL:
        for n in (1, 2, 6, 8, 15):
            for parts in (1, 2):
                for inverse in (False, True):
                    dft(c, draw.coarse(t, (2, n, parts)), inverse=inverse)
    for n in (1, 8, 9):
        dft(c, draw.coarse('f32', (2, n, 1)), onesided=True)
    dft(c, draw.coarse('f32', (4, 3, 2)), axis=0)
    dft(c, draw.coarse('f32', (2, 5, 3, 1)), axis=1, length=8)
    dft(c, draw.coarse('f32', (2, 10, 2)), length=7, inverse=True)
    dft(c, draw.coarse('f32', (1, 6, 1)), length=9, onesided=True)
    return c
