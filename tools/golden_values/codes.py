"""Cases of the operators that write or read quantized values; quantization.py defines them."""
import math

from .case import FP8, REAL, Cases, Draw, Tensor
from .quantization import behind_norm, behind_silu, dequant_swiglu_quant, dequantize, dynamic_quant, quantize

INF, NAN = math.inf, math.nan
EDGES = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, 128.5, -127.5, -128.5, -129, 300, -300, 1e20, -1e20, 1e-30, -1e-30, NAN, INF, -INF, 448, 464, 465, 480,
         -1000, 57344, 61439, 61440, 65536, 0.001953125, 0.0009765625, 0.00098, 0.0029296875, 17, 19, 1e-5, 2.2888184e-05, 7.6293945e-06, 7.7e-06]
TARGETS = ({}, {'out_dtype': 'f8_e4m3'}, {'out_dtype': 'f8_e5m2'})


def plain(c, draw):
    for target in TARGETS:
        quantize(c, Tensor('f32', EDGES), Tensor('f32', 1.0, ()), **target)
        quantize(c, Tensor('f32', EDGES), Tensor('f32', 2.0, ()), Tensor('f32', 0.5, ()), mode='mul', **target)
        for x in REAL:
            for mode in ('div', 'mul'):
                width = 19 if x == 'f32' else 5
                scale, offset = draw.uniform('f32', (width,), 0.02, 3), draw.normal('f32', (width,), 9)
                quantize(c, draw.normal(x, (2, width), 20), scale, mode=mode, **target)
                quantize(c, draw.normal(x, (2, 1, width), 20), scale, offset, mode=mode, **target)
                quantize(c, draw.normal(x, (2, width), 20), Tensor('f32', 0.3, ()), offset, mode=mode, **target)
        quantize(c, Tensor('f32', [1.0, 0, -3]), Tensor('f32', [0.0, 0, NAN]), **target)
        quantize(c, Tensor('f32', [], (0, 3)), Tensor('f32', 1.0, ()), **target)


WHOLE = ('i8', 'u8', 'i16', 'u16')


def zero_points(c, draw):
    """quantize and dequantize as ONNX has them."""
    for dtype in WHOLE:
        target = {} if dtype == 'i8' else {'out_dtype': dtype}
        quantize(c, Tensor('f32', EDGES), Tensor('f32', 1.0, ()), **target)
        quantize(c, Tensor('f32', EDGES), Tensor('f32', [2.0]), None, Tensor(dtype, [3]), **target)
        for x, (shape, scale) in zip(REAL, (((2, 3, 5), (3, 1)), ((2, 7), (2, 1)), ((2, 2, 2, 3), (2, 1, 2, 3)))):
            s, z = draw.uniform('f32', scale, 0.02, 3), draw.integers('i32', scale, 0, 100)
            quantize(c, draw.normal(x, shape, 90), s, None, Tensor(dtype, z.values, scale), **target)
            quantize(c, draw.normal(x, shape, 90), s, draw.normal('f32', scale, 9), Tensor(dtype, z.values, scale), mode='mul', **target)
            q = Tensor(dtype, draw.integers('i32', shape, -100 if dtype[0] == 'i' else 0, 120).values, shape)
            dequantize(c, q, s, Tensor(dtype, z.values, scale), granularity='broadcast')
            dequantize(c, q, s, granularity='broadcast', out_dtype=x)
        dequantize(c, Tensor(dtype, [[1, 2, 100]]), Tensor('f32', [0.25]), Tensor(dtype, [7]))
    for dtype in FP8:
        quantize(c, Tensor('f32', EDGES), Tensor('f32', 1.0, ()), out_dtype=dtype, saturate=False)
        dequantize(c, draw.normal(dtype, (3, 4), 30), draw.uniform('f32', (3, 1), 0.1, 2), granularity='broadcast')


def dynamic(c, draw):
    rows = Tensor('f32', [[0.0] * 5, [1, NAN, 2, 3, 4], [1, INF, -2, 3, 0], [127, 0.5, 1.5, -2.5, -63.5], [1e-40, -2e-40, 1e-42, 0, 0], [3e38, -3e38, 1, 0, 1e37],
                          [-1, -2, -3, -4, -5], [1, 2, 3, 4, 5], [-0.0, 0, 0, 0, 0]])
    for target in TARGETS + ({'range': '127.5'}, {'asymmetric': True}):
        asymmetric = 'asymmetric' in target
        dynamic_quant(c, rows if not asymmetric else Tensor('f32', rows.values[5:10] + rows.values[15:25] + rows.values[30:40], (5, 5)), **target)
        dynamic_quant(c, draw.normal('f32', (1, 130), 3), granularity='group', **target)
        for x in REAL:
            dynamic_quant(c, draw.normal(x, (2, 2, 19), 3), **target)
            dynamic_quant(c, draw.normal(x, (3, 7), 3), granularity='tensor', **target)
            dynamic_quant(c, draw.normal(x, (2, 21), 3), granularity='group', group_size=8, **target)
            dynamic_quant(c, draw.normal(x, (3, 17), 3), draw.uniform(x, (17,), 0.1, 2), **target)
        smooth = draw.uniform('f32', (4, 6), 0.1, 2)
        dynamic_quant(c, draw.normal('f32', (5, 6), 3), smooth, Tensor('i32', [3, 0, 0, 2, 1]), **target)
        dynamic_quant(c, draw.normal('f32', (5, 6), 3), smooth, Tensor('i64', [0, 2, 2, 4, 5]), index='offsets', **target)
    dynamic_quant(c, Tensor('f32', [], (0, 3)))


def back(c, draw):
    def of(dtype, *shape):
        return draw.normal(dtype, shape, 30) if dtype in FP8 else draw.integers(dtype, shape, -128 if dtype == 'i8' else -99999, 127 if dtype == 'i8' else 99999)
    for dtype in ('i8', *FP8, 'i32'):
        for offset in (None, 'i32', 'f32'):
            for i, (granularity, shape) in enumerate((('tensor', ()), ('channel', (11,)), ('token', (2,)), ('group', (2, 3)))):
                zero = None if offset is None else draw.integers('i32', shape, -9, 9) if offset == 'i32' else draw.normal('f32', shape, 9)
                size = {'group_size': 4} if granularity == 'group' else {}
                mode, out = (('div', {}), ('mul', {'out_dtype': 'bf16'}), ('div', {'out_dtype': 'f16'}), ('mul', {}))[(i + len(offset or '')) % 4]
                dequantize(c, of(dtype, 2, 11), draw.uniform('f32', shape, 0.01, 2), zero, granularity=granularity, mode=mode, **size, **out)
    dequantize(c, of('i8', 1, 130), draw.uniform('f32', (1, 2), 0.01, 2), granularity='group')
    dequantize(c, Tensor('f8_e5m2', [[INF, NAN, 1, -0.0]]), Tensor('f32', [2.0]))


def fused(c, draw):
    extra = ({'granularity': 'group', 'group_size': 8}, {'granularity': 'group'}, {'asymmetric': True}, {'range': '127.5'}, {'granularity': 'group', 'group_size': 8, 'asymmetric': True})
    for settings in (*TARGETS, *extra, {'granularity': 'group', 'out_dtype': 'f8_e4m3'}):
        width = 133 if settings.get('granularity') and 'group_size' not in settings else 15
        for norm, sum_of, gate in (('f32', 'bf16', 'f16'), ('bf16', 'f16', 'f32'), ('f16', 'f32', 'bf16'))[:3 if settings in TARGETS else 1]:
            weight, smooth = draw.coarse(gate, (width,), 1.0, 16), draw.uniform(norm, (width,), 0.2, 2)
            for given in (None, smooth):
                behind_norm(c, draw, 'rms_norm_quant', norm, width, weight, given, **settings)
            behind_norm(c, draw, 'add_rms_norm_quant', sum_of, width, weight, smooth, residual=norm, **settings)
            behind_silu(c, draw, gate, width, smooth, **settings)
        behind_silu(c, draw, 'f32', 9, gate='second', **settings)
        behind_silu(c, draw, 'f32', 9, interleaved=True, **settings)
        behind_norm(c, draw, 'rms_norm_quant', 'f32', 20, None, weight_offset=1.0, **settings)
    norm = {'weight_offset': 1.0, 'eps': 0.3}
    weight = draw.normal('bf16', (9,))
    for target in TARGETS:
        for mode in ('div', 'mul'):
            scale, offset = draw.uniform('f32', (9,), 0.1, 2), draw.normal('f32', (9,), 3)
            for s, o in ((scale, None), (scale, offset), (Tensor('f32', 0.37, ()), Tensor('f32', -2.2, ()))):
                behind_norm(c, draw, 'rms_norm_quant', 'f32', 9, weight, draw.uniform('f16', (9,), 0.2, 2), s, o, mode=mode, **norm, **target)
                behind_norm(c, draw, 'add_rms_norm_quant', 'f32', 9, draw.normal('f16', (9,)), None, s, o, residual='bf16', mode=mode, **norm, **target)
                behind_silu(c, draw, 'bf16', 9, draw.uniform('f32', (9,), 0.2, 2), s, o, mode=mode, **target)
        for x in ('bf16', 'f16'):
            behind_norm(c, draw, 'add_rms_norm_quant', x, 9, None, draw.uniform(x, (9,), 0.2, 2), residual=x, **target)
    for target in (*TARGETS, {'range': '127.5'}):
        for activate in ('left', 'right') if 'out_dtype' not in target else ('right',):
            for bias in (None, draw.integers('i32', (14,), -500, 500), draw.normal('f32', (14,)), draw.normal('bf16', (14,)), draw.normal('f16', (14,))):
                scales = draw.uniform('f32', (14,), 0.005, 0.04) if bias else Tensor('f32', 0.02, ())
                dequant_swiglu_quant(c, draw, 7, scales, bias, draw.uniform('f32', (7,), 0.3, 2) if bias else None, activate=activate, **target)
                if 'range' not in target:
                    dequant_swiglu_quant(c, draw, 7, scales, bias, draw.uniform('f32', (7,), 3, 20), draw.normal('f32', (7,), 5) if bias else None, activate=activate,
                                         quantization='static', **target)
    for real in ('bf16', 'f16', 'f32'):
        dequant_swiglu_quant(c, draw, 7, draw.uniform('f32', (3, 14), 0.5, 2), real=real, scales_rows=False)
        dequant_swiglu_quant(c, draw, 7, draw.uniform('f32', (14,), 0.5, 2), draw.normal(real, (14,)), real=real)
    dequant_swiglu_quant(c, draw, 7, draw.uniform('f32', (3, 14), 0.0005, 0.002), scales_rows=False)


def cases():
    c, draw = Cases(), Draw(7)
    for part in (plain, dynamic, back, fused):
        part(c, draw)
    zero_points(c, Draw(17))
    draw = Draw(18)
    for residual, target in (('bf16', {}), ('f16', {'out_dtype': 'f8_e4m3'})):
        behind_norm(c, draw, 'add_rms_norm_quant', 'f32', 40, draw.normal('f32', (40,)), residual=residual, round_sum=True, **target)
    for target in TARGETS:
        for granularity in ('token', 'tensor', 'group'):
            dynamic_quant(c, draw.normal('f32', (3, 21), 3), power_of_two=True, granularity=granularity, group_size=8, **target)
            dynamic_quant(c, draw.normal('bf16', (3, 21), 3), None, None, Tensor('f32', 2.5, ()), granularity=granularity, group_size=8, **target)
        dynamic_quant(c, Tensor('f32', [[1e-40, 0, 1e-41], [1.0, NAN, 3.0], [INF, 1.0, -INF], [448.0, -127.0, 57344.0]]), None, None, Tensor('f32', [3e4]), power_of_two=True, **target)
    return c
