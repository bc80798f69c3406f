"""conv, conv_transpose: exact sums over the taps that lie in x."""
import itertools
import math

import numpy

from . import functions
from .case import Cases, Draw, exact
from .products import bound, dot


def whole(attributes, name, count, fallback):
    return list(attributes.get(name) or [fallback] * count)


def windows(attributes, axes):
    pads = whole(attributes, 'pads', 2 * axes, 0)
    return whole(attributes, 'strides', axes, 1), whole(attributes, 'dilations', axes, 1), pads[:axes], pads[axes:]


def sums_of(terms_at, shape):
    """Exact sums and their magnitudes of the pairs that terms_at(index) lists."""
    sums, sizes = numpy.zeros(shape), numpy.zeros(shape)
    for index in numpy.ndindex(shape):
        pairs = terms_at(index)
        sums[index], sizes[index] = dot([a for a, _ in pairs], [b for _, b in pairs])
    return sums, sizes


def conv(cases, x, w, bias=None, residual=None, constant=(1,), **attributes):
    """x [N, C, spatial..], or [N, spatial.., C] with layout = nhwc."""
    last = attributes.get('layout') == 'nhwc'
    image = numpy.moveaxis(x.array, -1, 1) if last else x.array
    axes, kernel = image.ndim - 2, w.shape[2:]
    stride, dilation, before, after = windows(attributes, axes)
    group = attributes.get('group', 1)
    places = [(size + b + a - d * (k - 1) - 1) // s + 1 for size, b, a, d, k, s in zip(image.shape[2:], before, after, dilation, kernel, stride)]

    def terms(index):
        n, m, place = index[0], index[1], index[2:]
        first = m // (w.shape[0] // group) * w.shape[1]
        pairs = []
        for tap in itertools.product(*map(range, kernel)):
            at = [p * s + t * d - b for p, s, t, d, b in zip(place, stride, tap, dilation, before)]
            if all(0 <= i < size for i, size in zip(at, image.shape[2:])):
                pairs += [(image[(n, first + c, *at)], w.array[(m, c, *tap)]) for c in range(w.shape[1])]
        return pairs

    y, size = sums_of(terms, (image.shape[0], w.shape[0], *places))
    lift = (slice(None),) + (None,) * axes
    if bias:
        y, size = y + bias.array[lift], size + abs(bias.array[lift])
    if residual:
        added = numpy.moveaxis(residual.array, -1, 1) if last else residual.array
        y, size = y + added, size + abs(added)
    activation = attributes.get('activation', 'identity')
    activated = numpy.vectorize(functions.ACTIVATIONS[activation], otypes=[float])(y) if activation != 'identity' else y
    if last:
        activated = numpy.moveaxis(activated, 1, -1)
    # The slope of every activation is below 1.2; their own error is a few units.
    depth = w.shape[1] * math.prod(kernel) + 2 + (8 if activation != 'identity' else 0)
    operands = [x, w, bias, residual][:4 if residual else 3 if bias else 2]
    cases.add('conv', operands, [exact(x.dtype, activated)], 0, (1.2 * bound(depth, size.max(initial=0))) or 2.0 ** -149, constant=constant, **attributes)


def conv_transpose(cases, x, w, bias=None, constant=(1,), **attributes):
    axes, kernel = x.array.ndim - 2, w.shape[2:]
    stride, dilation, before, after = windows(attributes, axes)
    extra = whole(attributes, 'output_padding', axes, 0)
    group = attributes.get('group', 1)
    inputs = w.shape[0] // group
    places = [(size - 1) * s + d * (k - 1) + 1 + e - b - a
              for size, s, d, k, e, b, a in zip(x.shape[2:], stride, dilation, kernel, extra, before, after)]
    y = numpy.empty((x.shape[0], w.shape[1] * group, *places), dtype=object)
    for index in numpy.ndindex(y.shape):
        y[index] = []
    for n, c, *at in numpy.ndindex(x.shape):
        for m in range(w.shape[1]):
            for tap in itertools.product(*map(range, kernel)):
                place = [i * s + t * d - b for i, s, t, d, b in zip(at, stride, tap, dilation, before)]
                if all(0 <= i < size for i, size in zip(place, places)):
                    y[(n, c // inputs * w.shape[1] + m, *place)].append((x.array[(n, c, *at)], w.array[(c, m, *tap)]))
    sums, size = sums_of(lambda index: y[index], y.shape)
    if bias:
        lift = (slice(None),) + (None,) * axes
        sums, size = sums + bias.array[lift], size + abs(bias.array[lift])
    cases.add('conv_transpose', [x, w] + ([bias] if bias else []), [exact(x.dtype, sums)], 0,
              bound(inputs * math.prod(kernel) + 2, size.max(initial=0)) or 2.0 ** -149, constant=constant, **attributes)


def cases():
    c, draw = Cases(), Draw(29)
    for t in ('f32', 'bf16', 'f16'):
        conv(c, draw.normal(t, (1, 3, 4, 5)), draw.normal(t, (4, 3, 3, 3)), draw.normal(t, (4,)), pads=[1, 1, 1, 1])
        conv(c, draw.normal(t, (1, 4, 5, 3)), draw.normal(t, (2, 3, 2, 3)), draw.normal(t, (2,)), draw.normal(t, (1, 2, 2, 2)), layout='nhwc',
             strides=[2, 2], pads=[0, 1, 1, 0])
        conv_transpose(c, draw.normal(t, (1, 3, 2, 3)), draw.normal(t, (3, 2, 3, 2)), draw.normal(t, (2,)), strides=[2, 1], pads=[1, 0, 0, 1],
                       output_padding=[1, 0])
    for activation in functions.ACTIVATIONS:
        conv(c, draw.normal('f32', (1, 2, 3, 3)), draw.normal('f32', (2, 2, 2, 2)), draw.normal('f32', (2,)), activation=activation)
    conv(c, draw.normal('f32', (1, 18, 3, 4)), draw.normal('f32', (18, 1, 3, 3)), pads=[1, 1, 1, 1], group=18)
    conv(c, draw.normal('f32', (1, 3, 4, 18)), draw.normal('f32', (18, 1, 3, 3)), pads=[1, 1, 1, 1], group=18, layout='nhwc', activation='relu')
    conv(c, draw.normal('f32', (2, 4, 3, 3)), draw.normal('f32', (6, 2, 2, 2)), group=2, dilations=[2, 1])
    conv(c, draw.normal('f32', (2, 3, 9)), draw.normal('f32', (4, 3, 4)), draw.normal('f32', (4,)), strides=[3], pads=[2, 1], constant=())
    conv(c, draw.normal('f32', (1, 2, 3, 3, 4)), draw.normal('f32', (3, 2, 2, 2, 3)), strides=[1, 2, 1], pads=[0, 1, 1, 1, 0, 1])
    conv(c, draw.normal('f32', (1, 2, 7, 7)), draw.normal('f32', (3, 2, 2, 2)), strides=[3, 4])
    conv(c, draw.normal('f32', (0, 2, 3, 3)), draw.normal('f32', (3, 2, 2, 2)))
    conv_transpose(c, draw.normal('f32', (1, 4, 2, 2)), draw.normal('f32', (4, 2, 2, 2)), group=2, strides=[2, 2])
    conv_transpose(c, draw.normal('f32', (1, 2, 3, 2)), draw.normal('f32', (2, 3, 2, 2)), dilations=[2, 3], strides=[3, 2], output_padding=[2, 1])
    conv_transpose(c, draw.normal('f32', (2, 3, 5)), draw.normal('f32', (3, 2, 4)), draw.normal('f32', (2,)), strides=[2], pads=[1, 1], constant=())
    conv_transpose(c, draw.normal('f32', (1, 2, 2, 2, 2)), draw.normal('f32', (2, 2, 2, 1, 2)), strides=[1, 2, 2])
    conv_transpose(c, draw.normal('f32', (1, 2, 3, 2)), draw.normal('f32', (2, 3, 2, 2)), pads=[0, 1, 1, 0])
    return c
