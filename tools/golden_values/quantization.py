"""quantize, dynamic_quant, dequantize, and the operators with quantized results.

quantize, dynamic_quant and dequantize are defined in float32 step by step: NumPy's float32 rounds every step. Where a
function or a sum comes before quantization, operands are drawn until no value lies so near the middle of two quantized
values that its float32 error could choose between them: then results are exact too.
"""
import math

import numpy

from . import functions
from .case import FP8, Cases, Draw, Tensor, exact, f32, round_to
from .gated import halves
from .norms import rms_rows

LIMITS = {'i8': 127.0, 'f8_e4m3': 448.0, 'f8_e5m2': 57344.0}
NEAR = 1e-5  # relative; a row of 150 float32 terms is wrong by less


def codes_of(v, out):
    return [round_to(out, float(x)) for x in f32(v).reshape(-1)]


def quantized(v, scale, offset, mode='div', out='i8'):
    with numpy.errstate(all='ignore'):
        scaled = f32(v) / f32(scale) if mode == 'div' else f32(v) * f32(scale)
        return scaled if offset is None else scaled + f32(offset)


def grouped(v, granularity, size):
    """Lists of indices into the flat values that share a scale, and the shape of the scales."""
    flat = numpy.arange(v.size)
    if granularity == 'tensor':
        return [flat], ()
    rows = flat.reshape(math.prod(v.shape[:-1]), v.shape[-1])
    if granularity == 'token':
        return list(rows), v.shape[:-1]
    cuts = range(0, v.shape[-1], size)
    return [row[i:i + size] for row in rows for i in cuts], v.shape[:-1] + (len(cuts),)


def power_above(scale):
    """The least power of two that is a normal float32 and not below a positive scale."""
    if not scale > 0 or math.isinf(scale):
        return scale
    mantissa, exponent = math.frexp(scale)
    return numpy.float32(max(2.0 ** (exponent - (mantissa == 0.5)), 2.0 ** -126))


def dynamic(v, granularity='token', group_size=128, asymmetric=False, out_dtype='i8', bound=None, power_of_two=False, **rest):
    """What is rounded, quantized values, scales and zero points of float32 values."""
    limit = 127.5 if rest.get('range') == '127.5' else LIMITS[out_dtype]
    v = f32(v)
    indices, shape = grouped(v, granularity, group_size)
    flat, scaled, scales, zeros, points = v.reshape(-1), numpy.zeros(v.size, numpy.float32), [], [], []
    with numpy.errstate(all='ignore'):
        for group in indices:
            values, zero = flat[group], numpy.float32(0)
            if asymmetric:
                low, high = min(numpy.min(values, initial=0), 0), max(numpy.max(values, initial=0), 0)
                low, high = (numpy.float32(math.nan),) * 2 if numpy.isnan(values).any() else (numpy.float32(low), numpy.float32(high))
                scale = (high - low) / numpy.float32(255)
                point = numpy.float32(-128) - low / scale
                zero = numpy.float32(round_to('i8', float(point))) if scale != 0 else zero
                points.append(point)
            else:
                largest = numpy.max(abs(values), initial=0)
                scale = (numpy.float32(bound) if bound is not None and largest > bound else largest) / numpy.float32(limit)
                scale = power_above(scale) if power_of_two else scale
            scaled[group] = values / scale + zero if scale != 0 else 0
            scales.append(float(scale))
            zeros.append(int(zero))
    return numpy.append(scaled, points), Tensor(out_dtype, codes_of(scaled, out_dtype), v.shape), exact('f32', scales, shape), Tensor('i32', zeros, shape)


def settled(scaled, dtype, offset=0.0):
    """No value is so near the middle between two quantized values that NEAR, of it and of what was added to it, could choose another one."""
    added = 128.0 if dtype == 'i8' else offset
    return all(round_to(dtype, x - NEAR * (abs(x) + added)) == round_to(dtype, x + NEAR * (abs(x) + added)) for x in map(float, scaled) if math.isfinite(x))


def dynamic_quant(c, x, smooth=None, groups=None, bound=None, **attributes):
    v = x.array
    if smooth and len(smooth.shape) == 1:
        v = f32(v) * f32(smooth.array)
    elif smooth:
        rows = numpy.prod(x.shape[:-1])
        ids = groups.values if attributes.get('index', 'ids') == 'ids' else [sum(o <= r for o in groups.values[1:]) for r in range(rows)]
        v = f32(v) * f32(smooth.array)[ids].reshape(x.shape)
    _, q, scale, zero = dynamic(v, bound=bound and bound.values[0], **attributes)
    operands = trimmed([x, smooth, groups, bound])
    c.add('dynamic_quant', operands, [q, scale] + ([zero] if attributes.get('asymmetric') else []), **attributes)


def unsaturated(v, out):
    """Values beyond the largest of fp8: what the format has there."""
    half_a_step_more = {'f8_e4m3': 464.0, 'f8_e5m2': 61440.0}[out]
    if out == 'f8_e4m3':
        return [math.nan if abs(x) > half_a_step_more else x for x in v]
    return [math.copysign(math.inf, x) if abs(x) >= half_a_step_more else x for x in v]


def quantize(c, x, scale, offset=None, zero_point=None, **attributes):
    out = attributes.get('out_dtype', 'i8')
    v = quantized(x.array, scale.array, None if offset is None else offset.array, attributes.get('mode', 'div'))
    if zero_point is not None:
        v = numpy.rint(v) + f32(zero_point.array)
    if not attributes.get('saturate', True):
        v = f32(unsaturated(v.reshape(-1), out))
    c.add('quantize', trimmed([x, scale, offset, zero_point]), [Tensor(out, codes_of(v, out), x.shape)], **attributes)


def dequantize(c, q, scale, offset=None, **attributes):
    granularity = attributes.get('granularity', 'token')
    size = attributes.get('group_size', 128)

    def spread(t):
        if granularity == 'token':
            return t.array[..., None]
        return numpy.repeat(t.array, size, axis=-1)[..., :q.shape[-1]] if granularity == 'group' else t.array
    terms = abs(q.array) + (0 if offset is None else abs(spread(offset)))
    v = q.array - (0 if offset is None else spread(offset))
    factor = spread(scale) if attributes.get('mode', 'div') == 'div' else 1 / spread(scale)
    size = numpy.nanmax(numpy.where(numpy.isfinite(terms), terms, 0) * factor)
    out = exact(attributes.get('out_dtype', 'f32'), v * factor)
    c.add('dequantize', [q, scale] + ([offset] if offset else []), [out], 1, 0 if offset is None else 2.0 ** -24 * size, **attributes)


def finish(v, smooth, scale, offset, settings):
    """Quantized values and scales after a norm or an activation: results, or nothing where a rounding is not settled."""
    out = settings.get('out_dtype', 'i8')
    v = v if smooth is None else v * smooth.array
    if scale is not None:
        scaled = quantized(v, scale.array, None if offset is None else offset.array, settings.get('mode', 'div'))
        return [Tensor(out, codes_of(scaled, out), v.shape)] if settled(scaled.reshape(-1), out, 10.0 if offset else 0.0) else None
    names = ('granularity', 'group_size', 'asymmetric', 'range', 'out_dtype')
    scaled, q, steps, zero = dynamic(v, **{k: settings[k] for k in names if k in settings})
    return [q, steps] + ([zero] if settings.get('asymmetric') else []) if settled(scaled, out) else None


def trimmed(operands):
    while operands[-1] is None:
        operands = operands[:-1]
    return operands


def behind_norm(c, draw, op, x_type, width, weight=None, smooth=None, scale=None, offset=None, residual=None, **attributes):
    rows = 2 if width < 100 else 1
    while True:
        x = draw.coarse(x_type, (rows, width), 2.0, 16)
        other = draw.coarse(residual, (rows, width), 2.0, 16) if residual else None
        total = x.array + other.array if other else x.array
        used = Tensor(residual, total).array if attributes.get('round_sum') else total
        y = rms_rows(used, attributes.get('eps', 1e-6), weight and weight.array, attributes.get('weight_offset', 0.0))
        results = finish(y, smooth, scale, offset, attributes)
        if results:
            break
    within = [0] + [width + 16] * (len(results) - 1)
    if other:
        results[1:1], within[1:1] = [exact(residual, used)], [0]
    absolute = [2.0 ** -149 if other and i == 1 else 0.0 for i in range(len(results))]
    c.add(op, trimmed([x] + ([other] if other else []) + [weight, smooth, scale, offset]), results, within, absolute, **attributes)


def behind_silu(c, draw, x_type, width, smooth=None, scale=None, offset=None, **attributes):
    while True:
        x = draw.coarse(x_type, (2 if width < 100 else 1, 2 * width), 2.0, 16)
        g, u = halves(x.array, **{k: attributes[k] for k in ('gate', 'interleaved') if k in attributes})
        y = numpy.vectorize(functions.silu, otypes=[float])(g) * u
        results = finish(y, smooth, scale, offset, attributes)
        if results:
            break
    c.add('silu_and_mul_quant', trimmed([x, smooth, scale, offset]), results, [0] + [24] * (len(results) - 1), **attributes)


def dequant_swiglu_quant(c, draw, width, weight_scale, bias=None, smooth=None, offset=None, real=None, scales_rows=True, **attributes):
    """`real`: the element type of rows that are no int32 accumulators."""
    while True:
        x = draw.normal(real, (3, 2 * width)) if real else draw.integers('i32', (3, 2 * width), -3000, 3000)
        act_scale = None if not scales_rows else draw.uniform('f32', (3,), 0.5, 2) if real else draw.uniform('f32', (3,), 0.01, 0.05)
        acc = x.array + (bias.array if bias and bias.dtype == 'i32' else 0)
        d = acc * weight_scale.array * (act_scale.array[:, None] if act_scale else 1) + (bias.array if bias and bias.dtype != 'i32' else 0)
        left, right = d[:, :width], d[:, width:]
        g, u = (left, right) if attributes.get('activate', 'left') == 'left' else (right, left)
        y = numpy.vectorize(functions.silu, otypes=[float])(g) * u
        if attributes.get('quantization') == 'static':
            out = attributes.get('out_dtype', 'i8')
            scaled = (y * smooth.array if smooth else y) + (offset.array if offset else 0)
            results = [Tensor(out, codes_of(scaled, out), y.shape)] if settled(scaled.reshape(-1), out, 10.0 if offset else 0.0) else None
        else:
            results = finish(y, smooth, None, None, attributes)
        if results:
            break
    c.add('dequant_swiglu_quant', trimmed([x, weight_scale, act_scale, bias, smooth, offset]), results, [0] + [200] * (len(results) - 1), **attributes)
