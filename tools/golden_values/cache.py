"""rope, kv_cache_write, rope_and_cache."""
import math

import numpy

from .case import FP8, Cases, Draw, Tensor, UNIT, exact, f32, round_to, shortened
from .norms import rms_rows
from .quantization import LIMITS, settled

HND, NHD = 'hnd', 'nhd'


def rotated(x, cos, sin, positions, style='neox', rotary_dim=0, inverse=False):
    """Heads [.., H, D] turned by the angles of their tokens."""
    d = rotary_dim or x.shape[-1]
    y = x.copy()
    for index in numpy.ndindex(x.shape[:-1]):
        position = positions[index[:-1]]
        for i in range(d // 2):
            first, second = (i, i + d // 2) if style == 'neox' else (2 * i, 2 * i + 1)
            z = complex(x[index][first], x[index][second]) * complex(cos[position][i], -sin[position][i] if inverse else sin[position][i])
            y[index][first], y[index][second] = z.real, z.imag
    return y


def tables(draw, dtype, positions, half):
    angles = draw.uniform('f64', (positions, half), -math.pi, math.pi).array
    return Tensor(dtype, shortened(numpy.cos(angles))), Tensor(dtype, shortened(numpy.sin(angles)))


def rope(c, draw, q, k, positions, table='f32', **attributes):
    half = (attributes.get('rotary_dim') or q.shape[-1]) // 2
    cos, sin = tables(draw, table, 4, half)
    settings = {n: v for n, v in attributes.items() if n in ('style', 'rotary_dim', 'inverse')}
    factors = [attributes.get(n, 1.0) for n in ('q_factor', 'k_factor')]
    results = [rotated(x.array, cos.array, sin.array, positions.array, **settings) * f for x, f in zip((q, k), factors) if x]
    out = attributes.get('out_dtype', q.dtype)
    if out in FP8 and not all(settled(y.reshape(-1), out) for y in results):
        return False
    size = max([abs(v) for x in (q, k) if x for v in x.values], default=0) * max(map(abs, factors))
    c.add('rope', [q, k, cos, sin, positions], [exact(out, y) for y in results], 0, 4 * UNIT * size or 2.0 ** -149, **attributes)
    return True


def ropes(c, draw):
    positions = Tensor('i32', [3, 0, 2])
    for style in ('neox', 'gptj'):
        for rotary in (0, 4, 6):
            for inverse in (False, True):
                rope(c, draw, draw.normal('f32', (3, 2, 8)), draw.normal('f32', (3, 1, 8)), positions, style=style, rotary_dim=rotary, inverse=inverse)
        for dtype, table, out in (('bf16', 'bf16', {}), ('f16', 'f16', {'out_dtype': 'f32'}), ('bf16', 'f32', {'out_dtype': 'f16'}), ('f32', 'f32', {'out_dtype': 'bf16'})):
            rope(c, draw, draw.normal(dtype, (3, 2, 6)), draw.normal(dtype, (3, 3, 6)), Tensor('i64', [1, 1, 3]), table, style=style, **out)
        rope(c, draw, draw.normal('f32', (1, 2, 2, 34)), None, Tensor('i32', [[3, 2]]), style=style)
        rope(c, draw, draw.normal('f32', (3, 1, 40)), None, positions, style=style, rotary_dim=36)
    rope(c, draw, draw.normal('f32', (0, 2, 4)), None, Tensor('i32', []))


def place(slot, block_size, layout, head):
    block, row = divmod(slot, block_size)
    return (block, head, row) if layout == HND else (block, row, head)


def in_columns(cache):
    """A cache [blocks, heads, block, D] in columns of 16 tokens."""
    blocks, heads, block, size = cache.shape
    columns = numpy.empty((blocks, heads, block // 16, size, 16), dtype=object)
    order = (0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)  # tokens of a column
    for group in range(block // 16):
        for at, token in enumerate(order):
            columns[:, :, group, :, at] = cache.objects[:, :, 16 * group + token]
    return Tensor(cache.dtype, columns.reshape(-1).tolist(), columns.shape, exact=True)


def stored(vector, dtype, scale):
    """Elements of a cache, floating (one rounding to come) or quantized (rounded); the head's scale where the cache keeps it."""
    if dtype not in LIMITS:
        return vector, None
    with numpy.errstate(all='ignore'):
        if scale is None:
            return [round_to(dtype, v) for v in vector], None
        own = scale if scale != 'token' else f32(max(abs(vector))) / f32(LIMITS[dtype]) if not numpy.isnan(vector).any() else f32(math.nan)
        codes = [0.0 if own == 0 else round_to(dtype, float(f32(v) / own)) for v in vector]
    return [int(v) if dtype == 'i8' else v for v in codes], own


def write(values, cache, slots, scale, layout, block_size):
    """The updated cache and scales."""
    elements = cache.objects.copy()
    scales = scale.objects.copy() if scale and len(scale.shape) == 3 else None
    for t, slot in enumerate(slots.values):
        for head in range(values.shape[1]) if slot >= 0 else ():
            at = place(slot, block_size, layout, head)
            own = None if scale is None else 'token' if scales is not None else f32(scale.values[head])
            elements[at], step = stored(values[t, head], cache.dtype, own)
            if scales is not None:
                scales[at] = float(step)
    return elements, scales


def caches(draw, dtype, layout, heads, d, dv, scales, block=8):
    shape = (2, heads, block) if layout == HND else (2, block, heads)
    k, v = draw.integers(dtype, shape + (d,), -4, 4), draw.integers(dtype, shape + (dv,), -4, 4)
    if scales is None:
        return k, v, [None] * 2
    steps = [draw.uniform('f32', (heads,), 0.01, 0.1) if scales == 'head' else draw.integers('f32', shape, 1, 9) for _ in range(2)]
    return k, v, steps


def results_of(parts, dtype, tolerance=0.0, scale_units=0.0):
    """Caches, then scales where they are kept per token."""
    outputs = [exact(dtype, a) for a, _ in parts] + [exact('f32', s) for _, s in parts if s is not None]
    within = [0, 0] + [scale_units] * (len(outputs) - 2)
    absolute = [0.0 if dtype in LIMITS else tolerance] * 2 + [0.0] * (len(outputs) - 2)
    return outputs, within, absolute


def kv_cache_write(c, draw, source, dtype, scales=None, layout=HND, slots=(13, -1, 7, 0), index='i32', k=None, block=8):
    k, v = k or draw.normal(source, (len(slots), 2, 3), 3), draw.normal(source, (len(slots), 2, 2), 3)
    k_cache, v_cache, steps = caches(draw, dtype, layout, 2, 3, 2, scales, block)
    places = Tensor(index, list(slots))
    parts = [write(x.array, cache, places, step, layout, block) for x, cache, step in ((k, k_cache, steps[0]), (v, v_cache, steps[1]))]
    outputs, within, absolute = results_of(parts, dtype)
    if block > 8:
        v_cache, outputs[1] = in_columns(v_cache), in_columns(outputs[1])
    attributes = {'layout': layout} if layout != HND else {}
    c.add('kv_cache_write', [k, v, k_cache, v_cache, places] + (steps if scales else []), outputs, within, absolute, **attributes)


def writes(c, draw):
    for layout in (HND, NHD):
        for source in ('f32', 'bf16', 'f16')[:3 if layout == HND else 1]:
            for dtype in ('f32', 'bf16', 'f16'):
                kv_cache_write(c, draw, source, dtype, None, layout, index='i64' if source == dtype else 'i32')
            for dtype in ('i8', *FP8):
                for scales in ('head', 'token'):
                    kv_cache_write(c, draw, source, dtype, scales, layout)
    kv_cache_write(c, draw, 'f32', 'f8_e4m3')
    kv_cache_write(c, draw, 'bf16', 'f8_e5m2', slots=(3, 3, 3, -7))  # the last one stays
    edges = Tensor('f32', [[[0.0] * 3, [math.nan, 1, 2]], [[1, -2, 1e-3], [math.inf, 1, -1]]])
    for dtype in ('i8', *FP8):
        kv_cache_write(c, draw, 'f32', dtype, 'token', slots=(1, 2), k=edges)


def style_of(attributes):
    return attributes.get('style', 'neox')


def rope_and_cache(c, draw, source, dtype, scales=None, layout=HND, weights=(None, None), table='f32', **attributes):
    d = 6
    positions, slots = Tensor(attributes.pop('index', 'i32'), [3, 2, 0]), Tensor('i32' if style_of(attributes) == 'gptj' else 'i64', [15, -2, 6])
    settings = {n: attributes[n] for n in ('style', 'rotary_dim') if n in attributes}
    while True:
        q, k, v = (draw.normal(source, shape, 2) for shape in ((3, 3, d), (3, 1, d), (3, 1, 2)))
        cos, sin = tables(draw, table, 4, (settings.get('rotary_dim') or d) // 2)

        def turned(x, weight):
            a = x.array
            if weight:
                a = rms_rows(a, attributes.get('eps', 1e-6), weight.array, attributes.get('weight_offset', 0.0))
            return rotated(a, cos.array, sin.array, positions.array, **settings)
        keys = turned(k, weights[1])
        k_cache, v_cache, steps = caches(draw, dtype, layout, 1, d, 2, scales)
        limit = numpy.array([[1.0]] * 3)
        if dtype in LIMITS and scales:
            limit = numpy.array([[float(s) for s in steps[0].values]] * 3) if scales == 'head' else abs(keys).max(axis=-1) / LIMITS[dtype]
        queries = turned(q, weights[0])
        if attributes.get('out_dtype') == 'f8_e4m3' and not settled(queries.reshape(-1), 'f8_e4m3'):
            continue
        if dtype not in LIMITS or settled((keys / limit[..., None]).reshape(-1), dtype):
            break
    parts = [write(x, cache, slots, step, layout, 8) for x, cache, step in ((keys, k_cache, steps[0]), (v.array, v_cache, steps[1]))]
    tolerance = (d + 12) * UNIT * 16
    outputs, within, absolute = results_of(parts, dtype, tolerance, d + 16)
    if layout != HND:
        attributes['layout'] = layout
    operands = [q, k, v, cos, sin, positions, k_cache, v_cache, slots, *weights, *steps]
    while operands[-1] is None:
        operands.pop()
    c.add('rope_and_cache', operands, [exact(attributes.get('out_dtype', source), queries)] + outputs, [0] + within, [tolerance] + absolute, **attributes)


def both(c, draw):
    def weights(dtype):
        return draw.normal(dtype, (6,)), draw.normal(dtype, (6,))
    for layout in (HND, NHD):
        for style in ('neox', 'gptj'):
            rope_and_cache(c, draw, 'f32', 'f32', None, layout, style=style)
            rope_and_cache(c, draw, 'bf16', 'f16', None, layout, weights('f32'), style=style, rotary_dim=4, eps=0.1)
            rope_and_cache(c, draw, 'f16', 'bf16', None, layout, weights('bf16'), 'f16', style=style, weight_offset=1.0, out_dtype='f32')
        for dtype in ('i8', *FP8):
            for scales in ('head', 'token'):
                rope_and_cache(c, draw, 'bf16' if scales == 'head' else 'f32', dtype, scales, layout, weights('f16') if layout == HND else (None, None))
    rope_and_cache(c, draw, 'bf16', 'f8_e4m3', table='bf16', index='i64', rotary_dim=2, out_dtype='f16')


def eight_bits(c, draw):
    """Values in columns; queries of e4m3."""
    for dtype in ('i8', *FP8):
        kv_cache_write(c, draw, 'bf16', dtype, 'token' if dtype == 'f8_e4m3' else 'head', slots=(45, -1, 6, 31), block=32)
    rope_and_cache(c, draw, 'bf16', 'f8_e4m3', 'token', out_dtype='f8_e4m3')


def cases():
    c, draw = Cases(), Draw(11)
    ropes(c, draw)
    writes(c, draw)
    both(c, draw)
    eight_bits(c, draw)
    draw = Draw(21)
    for out, settings in (('f8_e4m3', {'q_factor': 20.0, 'k_factor': 0.5}), ('f8_e5m2', {'style': 'gptj', 'rotary_dim': 4}), ('f32', {'k_factor': -3.0, 'rotary_dim': 4})):
        while not rope(c, draw, draw.normal('f32', (3, 2, 6)), draw.normal('f32', (3, 1, 6)), Tensor('i32', [3, 0, 2]), out_dtype=out, **settings):
            pass
    return c
