"""scaled_mm and grouped_linear. int8: every step is defined, so results are exact; fp8: sums are exact here."""
import math

import numpy

from .case import FP8, UNIT, Cases, Draw, Tensor, exact, f32
from .products import bound, dot

BLOCK = 128


def scale_of(scale, rows, columns, row, block, per_block_rows=1):
    """Scale of a row, or of the block of a row; nothing given: 1."""
    if scale is None:
        return numpy.float32(1)
    s = f32(scale.array)
    if s.size == 1:
        return s.reshape(-1)[0]
    if s.size == rows:
        return s.reshape(-1)[row]
    return s.reshape(-(-rows // per_block_rows), -(-columns // BLOCK))[row // per_block_rows, block]


def wrap32(x):
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def int8_element(a, b, k, ranges, row_scale, column_scale, zero_point, bias, residual, out, out_scale):
    """One result, rounded to float32 after every step. a and b are lists of integers."""
    total = None
    with numpy.errstate(all='ignore'):
        for block, (begin, end) in enumerate(ranges):
            acc = sum((a[i] - zero_point) * b[i] for i in range(begin, end))
            if bias is not None and bias[0] == 'i32' and block == 0:
                acc += bias[1]
            acc = wrap32(acc)
            if out == 'i32':
                return acc
            v = row_scale(block) * (column_scale(block) * numpy.float32(acc))
            total = v if total is None else numpy.float32(total + v)
        if bias is not None and bias[0] != 'i32':
            total = total + numpy.float32(bias[1])
        if residual is not None:
            total = total + numpy.float32(residual)
        return float(total / out_scale) if out == 'i8' else float(total)


def scaled_mm(cases, a, b, a_scale=None, b_scale=None, bias=None, a_zp=None, residual=None, out_scale=None, constant=(), **attributes):
    out = attributes.get('out_dtype') or 'f32'
    k, n, rows = a.shape[-1], b.shape[0], math.prod(a.shape[:-1])
    left, right = a.array.reshape(rows, k), b.array
    one_by_one = [s is not None and len(s.values) > r for s, r in ((a_scale, rows), (b_scale, n))]
    grid = b_scale is not None and len(b_scale.shape) == 2 and b_scale.shape[1] == -(-k // BLOCK) and b_scale.shape != (n, 1)
    ranges = [(i, min(i + BLOCK, k)) for i in range(0, k, BLOCK)] if one_by_one[0] or grid else [(0, k)]
    values, magnitude = [], 0.0
    for r in range(rows):
        for j in range(n):
            def row_scale(block):
                return scale_of(a_scale, rows, k, r, block)

            def column_scale(block):
                if grid:
                    return f32(b_scale.array)[j // BLOCK, block]
                return scale_of(b_scale, n, k, j, block)
            zero = 0 if a_zp is None else a_zp.values[r if len(a_zp.values) > 1 else 0]
            own_bias = None if bias is None else (bias.dtype, bias.values[j])
            own_residual = None if residual is None else residual.values[r * n + j]
            if a.dtype == 'i8':
                values.append(int8_element(left[r].tolist(), right[j].tolist(), k, ranges, row_scale, column_scale, zero, own_bias, own_residual, out,
                                           None if out_scale is None else numpy.float32(out_scale.values[0])))
                continue
            parts = []
            for block, (begin, end) in enumerate(ranges):
                value, size = dot(left[r][begin:end], right[j][begin:end])
                s = float(row_scale(block)) * float(column_scale(block))
                parts += [s * value]
                magnitude = max(magnitude, abs(s) * size * len(ranges))
            terms = parts + ([own_bias[1]] if bias else []) + ([own_residual] if residual else [])
            magnitude = max(magnitude, *(abs(t) for t in terms if math.isfinite(t)), 0)
            values.append(math.fsum(terms) if all(map(math.isfinite, terms)) else float(numpy.sum(terms)))
    result = Tensor(out, values, a.shape[:-1] + (n,), exact=out not in ('i8', 'i32'))
    operands = [a, b, a_scale, b_scale, bias, a_zp, residual, out_scale]
    while operands[-1] is None:
        operands.pop()
    cases.add('scaled_mm', operands, [result], 0, 0 if a.dtype == 'i8' else bound(k + 8, magnitude), constant=constant, **attributes)


def grouped_linear(cases, x, w, offsets, bias=None, x_scale=None, w_scale=None, constant=(), **attributes):
    quantized = x.dtype in FP8 or x.dtype == 'i8'
    out = attributes.get('out_dtype') or ('f32' if quantized else x.dtype)
    (r, k), (e, n) = x.shape, w.shape[:2]
    values, magnitude = numpy.zeros((r, n)), 0.0
    for expert in range(e):
        for row in range(offsets.values[expert], offsets.values[expert + 1]):
            for j in range(n):
                own = None if w_scale is None else f32(w_scale.array)[expert]
                grid = own is not None and own.ndim == 2
                ranges = [(i, min(i + BLOCK, k)) for i in range(0, k, BLOCK)] if grid or (x_scale is not None and len(x_scale.values) > r) else [(0, k)]
                total = None
                for block, (begin, end) in enumerate(ranges):
                    value, size = dot(x.array[row][begin:end], w.array[expert][j][begin:end])
                    column = numpy.float32(1) if own is None else own[j // BLOCK, block] if grid else own[j] if own.ndim else own
                    scale = scale_of(x_scale, r, k, row, block)
                    part = float(scale) * float(column) * value
                    magnitude = max(magnitude, abs(part) if x.dtype == 'i8' else float(abs(scale * column)) * size * len(ranges))
                    total = part if total is None else total + part
                if bias is not None:
                    total += bias.array[expert][j]
                    magnitude = max(magnitude, abs(bias.array[expert][j]))
                values[row][j] = total
    operands = [x, w, offsets, bias, x_scale, w_scale]
    while operands[-1] is None:
        operands.pop()
    cases.add('grouped_linear', operands, [exact(out, values)], 0, bound(3 if x.dtype == 'i8' else k + 4, magnitude), constant=constant, **attributes)


def int8_cases(c, draw):
    def codes(*shape):
        return draw.integers('i8', shape, -128, 127)

    def scales(*shape):
        return draw.uniform('f32', shape, 0.001, 0.02)
    for m, k, n in ((1, 19, 7), (3, 66, 17), (5, 64, 33), (2, 1, 1)):
        scaled_mm(c, codes(m, k), codes(n, k), scales(m), scales(n), draw.normal('f32', (n,)), constant=(1,))
    scaled_mm(c, codes(3, 40), codes(6, 40), scales(), scales(), constant=(1,), out_dtype='bf16')
    scaled_mm(c, codes(2, 3, 21), codes(6, 21), scales(2, 3), scales(6), draw.normal('bf16', (6,)), residual=draw.normal('bf16', (2, 3, 6)), out_dtype='f16')
    scaled_mm(c, codes(3, 21), codes(6, 21), None, scales(6), draw.normal('f16', (6,)), residual=draw.normal('f16', (3, 6)), constant=(1,))
    scaled_mm(c, codes(3, 21), codes(6, 21), scales(3), None, residual=draw.normal('f32', (3, 6)))
    for zero in (Tensor('i32', -7, ()), draw.integers('i32', (4,), -128, 127)):
        scaled_mm(c, codes(4, 37), codes(5, 37), scales(4), scales(5), draw.integers('i32', (5,), -1000, 1000), zero, constant=(1,))
    scaled_mm(c, codes(4, 37), codes(5, 37), bias=draw.integers('i32', (5,), -1000, 1000), a_zp=draw.integers('i32', (4,), -128, 127), constant=(1,), out_dtype='i32')
    scaled_mm(c, codes(4, 37), codes(5, 37), constant=(1,), out_dtype='i32')
    scaled_mm(c, Tensor('i8', [[-128] * 150, [127] * 150]), Tensor('i8', [[-128] * 150, [127] * 150]), a_zp=Tensor('i32', [2147483647, -5]), constant=(1,), out_dtype='i32')
    # Ties of the last rounding: the sums are 1 to 6, the step is 2. A NaN scale gives 0, the range saturates.
    scaled_mm(c, Tensor('i8', [[1, 0], [0, 1]]), Tensor('i8', [[n, -n] for n in range(1, 8)]), out_scale=Tensor('f32', 2.0, ()), constant=(1,), out_dtype='i8')
    scaled_mm(c, codes(3, 18), codes(4, 18), scales(3), Tensor('f32', [math.nan, math.inf, 1, 0.01]), out_scale=Tensor('f32', [3.7]), constant=(1,), out_dtype='i8')
    scaled_mm(c, codes(3, 130), codes(5, 130), scales(3, 2), scales(1, 2), draw.normal('f32', (5,)), constant=(1,))
    scaled_mm(c, codes(2, 5), codes(130, 5), scales(2), scales(2, 1), constant=(1,), out_dtype='bf16')
    scaled_mm(c, codes(0, 5), codes(3, 5), scales(0), scales(3))
    offsets = [0, 2, 2, 5]
    grouped_linear(c, codes(5, 37), codes(3, 6, 37), Tensor('i32', offsets), draw.normal('f32', (3, 6)), scales(5), scales(3, 6), constant=(1,))
    grouped_linear(c, codes(5, 130), draw.integers('i8', (3, 2, 130), -9, 9), Tensor('i64', offsets), None, scales(5, 2), scales(3, 1, 2), constant=(1,), out_dtype='bf16')
    grouped_linear(c, codes(5, 20), codes(3, 4, 20), Tensor('i32', offsets), draw.normal('bf16', (3, 4)), scales(), scales(3), constant=(1,), out_dtype='f16')


def float8_cases(c, draw):
    def scales(*shape):
        return draw.uniform('f32', shape, 0.1, 2)
    for left, right, out in (('f8_e4m3', 'f8_e4m3', 'f32'), ('f8_e5m2', 'f8_e4m3', 'bf16'), ('f8_e4m3', 'f8_e5m2', 'f16'), ('f8_e5m2', 'f8_e5m2', '')):
        for m in (1, 3):
            attributes = {'out_dtype': out} if out else {}
            scaled_mm(c, draw.normal(left, (m, 37)), draw.normal(right, (6, 37)), scales(m), scales(6), draw.normal('f32', (6,)), constant=(1,), **attributes)
        scaled_mm(c, draw.coarse(left, (2, 130)), draw.coarse(right, (2, 130)), scales(2, 2), scales(1, 2), residual=draw.normal('f32', (2, 2)), constant=(1,))
        offsets = Tensor('i32', [0, 0, 3, 4])
        grouped_linear(c, draw.coarse(left, (4, 21)), draw.coarse(right, (3, 5, 21)), offsets, draw.normal('f16', (3, 5)), scales(4), scales(3, 5), constant=(1,))
        grouped_linear(c, draw.coarse(left, (4, 129)), draw.coarse(right, (3, 1, 129)), offsets, None, scales(4, 2), scales(3, 1, 2), constant=(1,))
    scaled_mm(c, Tensor('f8_e5m2', [[math.inf, 1, 2], [math.nan, 1, 1]]), Tensor('f8_e5m2', [[1, 2, 3], [-2, 0, 1]]), constant=(1,))


def cases():
    c, draw = Cases(), Draw(4)
    int8_cases(c, draw)
    float8_cases(c, draw)
    for x, w, out in (('f32', 'f32', ''), ('bf16', 'bf16', ''), ('f16', 'f16', 'f32'), ('f32', 'bf16', 'bf16'), ('bf16', 'f16', 'f16')):
        for offsets in ([0, 2, 2, 7], [0, 7, 7, 7], [0, 0, 1, 7])[:1 if out else 3]:
            attributes = {'out_dtype': out} if out else {}
            grouped_linear(c, draw.normal(x, (7, 18)), draw.normal(w, (3, 3, 18)), Tensor('i64', offsets), draw.normal('f32', (3, 3)), constant=(1,), **attributes)
    for offsets in ([0, 2, 3, 7], [0, 0, 0, 7], [0, 3, 7, 7]):  # the last group has no weight
        grouped_linear(c, draw.normal('bf16', (7, 18)), draw.normal('bf16', (2, 3, 18)), Tensor('i32', offsets), constant=(1,), out_dtype='f32')
        grouped_linear(c, draw.integers('i8', (7, 20), -128, 127), draw.integers('i8', (2, 4, 20), -128, 127), Tensor('i32', offsets), None,
                       draw.uniform('f32', (7,), 0.001, 0.02), draw.uniform('f32', (2, 4), 0.001, 0.02), constant=(1,))
    return c
