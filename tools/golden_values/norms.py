"""Normalizations, in double precision and two passes."""
import math

import numpy

from .case import Cases, Draw, Tensor, UNIT, exact


def rms_rows(x, eps, weight=None, offset=0.0, trailing=1):
    """Rows over the trailing dimensions, divided by their root mean square, times weight + offset."""
    rows = x.reshape(math.prod(x.shape[:x.ndim - trailing]), math.prod(x.shape[x.ndim - trailing:]))
    y = numpy.empty_like(rows)
    for i, row in enumerate(rows):
        mean = math.fsum(v * v for v in row) / len(row) if all(map(math.isfinite, row)) else math.nan
        factors = 1.0 if weight is None else weight.reshape(-1) + offset
        y[i] = row / math.sqrt(mean + eps) * factors if not math.isnan(mean) else math.nan
    return y.reshape(x.shape)


def listed(operands):
    while operands[-1] is None:
        operands = operands[:-1]
    return operands


def rms_norm(c, x, weight=None, **attributes):
    trailing = len(weight.shape) if weight else 1
    y = rms_rows(x.array, attributes.get('eps', 1e-6), weight and weight.array, attributes.get('weight_offset', 0.0), trailing)
    depth = math.prod(x.shape[len(x.shape) - trailing:]) + 8
    c.add('rms_norm', listed([x, weight]), [exact(attributes.get('out_dtype', x.dtype), y)], depth, 2.0 ** -140, **attributes)


def add_rms_norm(c, x, residual, weight=None, **attributes):
    total = x.array + residual.array  # exact in double precision
    used = Tensor(residual.dtype, total).array if attributes.get('round_sum') else total
    trailing = len(weight.shape) if weight else 1
    y = rms_rows(used, attributes.get('eps', 1e-6), weight and weight.array, attributes.get('weight_offset', 0.0), trailing)
    # The float32 sum has an error of its own, which remains when the sum cancels.
    fixed = UNIT * float(numpy.nanmax(abs(y), initial=0)) * 2
    sums = exact(residual.dtype, used)
    c.add('add_rms_norm', listed([x, residual, weight]), [exact(attributes.get('out_dtype', x.dtype), y), sums], [x.shape[-1] + 8, 0],
          [fixed, UNIT * float(numpy.nanmax(abs(total), initial=0))], **attributes)


def normalized(values, eps):
    """Values minus their mean, over their deviation; what a float32 mean of n terms may be wrong by, over the deviation."""
    n = len(values)
    if not all(map(math.isfinite, values)):
        return numpy.full(n, math.nan), 0.0
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / n + eps)
    return (values - mean) / deviation, (n + 4) * UNIT * max(map(abs, values)) / deviation


def layer_norm(c, x, weight=None, bias=None, **attributes):
    trailing = len((weight or bias or x).shape) if weight or bias else 1
    length = math.prod(x.shape[len(x.shape) - trailing:])
    y, shift = numpy.empty((math.prod(x.shape[:len(x.shape) - trailing]), length)), 0.0
    for i, row in enumerate(x.array.reshape(y.shape)):
        y[i], error = normalized(row, attributes.get('eps', 1e-5))
        shift = max(shift, error)
    largest = float(numpy.nanmax(abs(y), initial=0))
    factor = max(map(abs, weight.values)) if weight else 1.0
    if weight:
        y = y * weight.array.reshape(-1)
    if bias:
        y = y + bias.array.reshape(-1)
    allowed = factor * (shift * 2 + (length + 8) * UNIT * largest) + (max(map(abs, bias.values)) * UNIT if bias else 0)
    c.add('layer_norm', listed([x, weight, bias]), [exact(attributes.get('out_dtype', x.dtype), y.reshape(x.shape))], 2, allowed, **attributes)


def channel_norm(c, op, x, groups, weight=None, bias=None, **attributes):
    """group_norm, and instance_norm with a group for each channel."""
    batch, channels = x.shape[:2]
    source = x.array.reshape(batch, channels, math.prod(x.shape[2:]))
    y, shift = numpy.empty_like(source), 0.0
    width = channels // groups if groups else 0
    for b in range(batch):
        for g in range(groups):
            part = slice(g * width, (g + 1) * width)
            values, error = normalized(source[b, part].reshape(-1), attributes.get('eps', 1e-5))
            y[b, part], shift = values.reshape(width, source.shape[2]), max(shift, error)
    largest = float(numpy.nanmax(abs(y), initial=0))
    factor = max(map(abs, weight.values)) if weight else 1.0
    if weight:
        y = y * weight.array[:, None]
    if bias:
        y = y + bias.array[:, None]
    allowed = factor * (shift * 2 + (width * source.shape[2] + 8) * UNIT * largest) + (max(map(abs, bias.values)) * UNIT if bias else 0)
    if op == 'group_norm':
        attributes['groups'] = groups
    c.add(op, listed([x, weight, bias]), [exact(attributes.get('out_dtype', x.dtype), y.reshape(x.shape))], 2, allowed, **attributes)


def channel_cases(c, draw):
    for shape, groups in (((2, 6, 5), 3), ((1, 4, 3, 3), 2), ((3, 6), 2), ((2, 4, 17), 1), ((1, 2, 33), 2)):
        weight, bias = draw.normal('f32', shape[1:2]), draw.normal('f32', shape[1:2])
        for op, g in (('group_norm', groups), ('instance_norm', shape[1])):
            if op == 'instance_norm' and len(shape) == 2:
                continue
            channel_norm(c, op, draw.normal('f32', shape), g, weight, bias)
            channel_norm(c, op, draw.normal('f32', shape), g, None, bias, eps=0.5)
            channel_norm(c, op, draw.normal('f32', shape), g, weight)
    for op, g in (('group_norm', 2), ('instance_norm', 4)):
        for dtype, other, out in (('bf16', 'f16', {'out_dtype': 'f32'}), ('f16', 'bf16', {'out_dtype': 'bf16'}), ('f32', 'f16', {'out_dtype': 'f16'})):
            channel_norm(c, op, draw.normal(dtype, (2, 4, 9)), g, draw.normal(other, (4,)), draw.normal(other, (4,)), **out)
        channel_norm(c, op, Tensor('f32', 1000 + draw.normal('f32', (1, 4, 8)).array), g)
        channel_norm(c, op, Tensor('f32', [3.0] * 8 + [math.nan] + [1.0, 2] * 3 + [5], (1, 4, 4)), g)
        channel_norm(c, op, draw.normal('f32', (0, 4, 3)), g)
        channel_norm(c, op, draw.normal('f32', (2, 0, 3)), 0)


def cases():
    c, draw = Cases(), Draw(5)
    special = Tensor('f32', [[0, 0, 0, 0], [1, math.nan, 2, 3], [1e-20, -1e-20, 2e-20, 0], [1e18, -1e18, 3e17, 1], [-0.0, 1e-3, 4, 2]])
    for shape in ((3, 7), (2, 2, 17), (1, 1), (1, 129), (0, 4)):
        rms_norm(c, draw.normal('f32', shape), draw.normal('f32', shape[-1:]))
        rms_norm(c, draw.normal('f32', shape), eps=0.25)
        layer_norm(c, draw.normal('f32', shape), draw.normal('f32', shape[-1:]), draw.normal('f32', shape[-1:]))
        layer_norm(c, draw.normal('f32', shape), eps=0.25)
        add_rms_norm(c, draw.normal('f32', shape), draw.normal('f32', shape), draw.normal('f32', shape[-1:]))
    rms_norm(c, special)
    layer_norm(c, special)
    add_rms_norm(c, special, Tensor('f32', [[0.0, 0, 0, 0]] * 5))
    rms_norm(c, draw.normal('f32', (3, 2, 5)), draw.normal('f32', (2, 5)), weight_offset=1.0)
    add_rms_norm(c, draw.normal('f32', (3, 2, 5)), draw.normal('f32', (3, 2, 5)), draw.normal('f32', (2, 5)), weight_offset=1.0, eps=0.1)
    add_rms_norm(c, draw.normal('f32', (3, 9)), draw.normal('f32', (3, 9)))
    layer_norm(c, draw.normal('f32', (3, 2, 5)), draw.normal('f32', (2, 5)))
    layer_norm(c, draw.normal('f32', (3, 6)), None, draw.normal('f32', (6,)))
    layer_norm(c, Tensor('f32', 1000 + draw.normal('f32', (2, 24)).array))  # E[x^2] - E[x]^2 would lose the variance
    for x, other, out in (('bf16', 'f32', {}), ('f16', 'bf16', {'out_dtype': 'f32'}), ('f32', 'f16', {'out_dtype': 'bf16'}), ('bf16', 'bf16', {'out_dtype': 'f16'})):
        rms_norm(c, draw.normal(x, (2, 18)), draw.normal(other, (18,)), **out)
        layer_norm(c, draw.normal(x, (2, 18)), draw.normal(other, (18,)), draw.normal('f32' if x == 'bf16' else other, (18,)), **out)
        for round_sum in (False, True):
            add_rms_norm(c, draw.normal(x, (2, 18)), draw.normal(other, (2, 18)), draw.normal(other, (18,)), round_sum=round_sum, **out)
            add_rms_norm(c, draw.normal('f32', (3, 5)), draw.normal('bf16', (3, 5)), round_sum=round_sum)
    channel_cases(c, draw)
    return c
