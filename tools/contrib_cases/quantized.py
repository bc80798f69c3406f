"""Operators on values of 8 and 16 bits."""

import itertools

import numpy as np

from .case import Case, Values

U8, I8 = np.uint8, np.int8


def parameters(v, dtype, low=0.02, high=0.04):
    return [v.positive(low=low, high=high), v.whole(*((90, 160) if dtype == U8 else (-20, 20)), dtype=dtype)]


def elementwise():
    for op, dtype in itertools.product(("QLinearAdd", "QLinearMul"), (U8, I8)):
        for a, b in (((3, 8), (3, 8)), ((2, 3, 8), (8,)), ((2, 3, 1), (3, 8)), ((), (5,)), ((4,), ())):
            name = f"{op}_{np.dtype(dtype).name}_{len(a)}{len(b)}"
            v = Values(name)
            inputs = [v.bytes(*a, dtype=dtype), *parameters(v, dtype), v.bytes(*b, dtype=dtype), *parameters(v, dtype), *parameters(v, dtype)]
            yield Case(name, op, inputs, constant=(1, 2, 4, 5, 6, 7), units=1)
    for dtype in (U8, I8):
        tag = np.dtype(dtype).name
        v = Values(tag)
        out = [v.positive(low=0.0039, high=0.004), v.whole(0, 0, dtype=dtype)]
        yield Case(f"QLinearSigmoid_{tag}", "QLinearSigmoid", [v.bytes(4, 9, dtype=dtype), *parameters(v, dtype), *out], constant=(1, 2, 3, 4), units=1)
        for alpha in ({}, {"alpha": 0.3}):
            yield Case(f"QLinearLeakyRelu_{tag}_{len(alpha)}", "QLinearLeakyRelu", [v.bytes(4, 9, dtype=dtype), *parameters(v, dtype), *parameters(v, dtype)], alpha, constant=(1, 2, 3, 4), units=1)
        for opset, axis in ((13, -1), (13, 1), (11, 1), (11, 2)):
            yield Case(f"QLinearSoftmax_{tag}_{opset}_{axis}", "QLinearSoftmax", [v.bytes(2, 3, 5, dtype=dtype), *parameters(v, dtype), np.float32(1 / 256), v.whole(0, 0, dtype=dtype)], {"opset": opset, "axis": axis}, constant=(1, 2, 3, 4), units=1)
        inputs = [v.whole(0, 1, 3, 4, dtype=bool)]
        for _ in range(2):
            inputs += [v.bytes(3, 4, dtype=dtype), *parameters(v, dtype)]
        yield Case(f"QLinearWhere_{tag}", "QLinearWhere", inputs + parameters(v, dtype), constant=(2, 3, 5, 6, 7, 8), units=1)


def pools():
    for dtype, last in itertools.product((U8, I8), (0, 1)):
        tag = f"{np.dtype(dtype).name}_last{last}"
        v = Values("pool" + tag)
        dims = (2, 5, 6, 3) if last else (2, 3, 5, 6)
        x = [v.bytes(*dims, dtype=dtype), *parameters(v, dtype), *parameters(v, dtype)]
        yield Case(f"QLinearGlobalAveragePool_{tag}", "QLinearGlobalAveragePool", x, {"channels_last": last}, constant=(1, 2, 3, 4), units=1)
        for more in ({}, {"strides": [2, 1], "pads": [1, 0, 1, 1]}, {"pads": [1, 1, 0, 0], "count_include_pad": 1}, {"strides": [2, 2], "ceil_mode": 1}, {"auto_pad": "SAME_UPPER"}):
            yield Case(f"QLinearAveragePool_{tag}_{'_'.join(more) or 'plain'}", "QLinearAveragePool", x, {"kernel_shape": [3, 2], "channels_last": last, **more}, constant=(1, 2, 3, 4), units=1)
    for dtype in (U8, I8):
        v = Values("more" + np.dtype(dtype).name)
        x = [v.bytes(2, 4, 5, 6, dtype=dtype), *parameters(v, dtype), *parameters(v, dtype)]
        inputs = parameters(v, dtype)
        for _ in range(3):
            inputs += [v.bytes(2, 4, dtype=dtype), *parameters(v, dtype)]
        for axis in (0, 1, -1):
            yield Case(f"QLinearConcat_{np.dtype(dtype).name}_{axis}", "QLinearConcat", inputs, {"axis": axis}, constant=(0, 1, 3, 4, 6, 7, 9, 10), units=1)


def products():
    for atype, wtype in itertools.product((U8, I8), (U8, I8)):
        for columns, zero, bias in itertools.product((False, True), (False, True), (False, True)):
            if atype == I8 and wtype == U8:
                continue
            tag = f"{np.dtype(atype).name}_{np.dtype(wtype).name}_{int(columns)}{int(zero)}{int(bias)}"
            v = Values(tag)
            n = (6,) if columns else ()
            b = [v.bytes(10, 6, dtype=wtype), v.positive(*n), v.whole(0, 9, *n, dtype=wtype) if zero else None]
            end = [v.normal(6)] if bias else [None]
            trim = lambda xs: xs if xs[-1] is not None else trim(xs[:-1])  # noqa: E731
            inputs = [v.bytes(2, 3, 10, dtype=atype), b[0], v.positive(), b[1], v.whole(0, 100, dtype=atype) if zero else None, b[2], *end]
            yield Case(f"MatMulIntegerToFloat_{tag}", "MatMulIntegerToFloat", trim(inputs), constant=(1, 3, 5, 6), tolerance=1e-5)
            if atype == U8:
                yield Case(f"DynamicQuantizeMatMul_{tag}", "DynamicQuantizeMatMul", trim([v.normal(2, 3, 10), *b, *end]), constant=(1, 2, 3, 4), tolerance=1e-5)
    v = Values("batched")
    yield Case("MatMulIntegerToFloat_batch", "MatMulIntegerToFloat", [v.bytes(2, 3, 10), v.bytes(2, 10, 6), v.positive(), v.positive()], tolerance=1e-5)
    for quantized, a, b in ((False, 0, 0), (True, 0, 1), (True, 1, 0)):
        inputs = [v.bytes(*((10, 4) if a else (4, 10))), v.positive(), v.whole(90, 140, dtype=U8), v.bytes(*((6, 10) if b else (10, 6)), dtype=I8), v.positive(6), v.whole(0, 0, 6, dtype=I8), v.whole(-500, 500, 6, dtype=np.int32)]
        if quantized:
            inputs += [v.positive(low=0.3, high=0.6), v.whole(100, 140, dtype=U8)]
        yield Case(f"QGemm_{int(quantized)}{a}{b}", "QGemm", inputs, {"transA": a, "transB": b, "alpha": 0.5}, constant=(1, 2, 3, 4, 5, 6, 7, 8), units=1, tolerance=1e-5)
    for last in (0, 1):
        x = v.bytes(1, 5, 6, 4) if last else v.bytes(1, 4, 5, 6)
        inputs = [x, v.positive(), v.whole(90, 140, dtype=U8), v.bytes(6, 4, 3, 3, dtype=I8), v.positive(6), v.whole(0, 0, 6, dtype=I8), v.positive(low=0.3, high=0.6), v.whole(90, 140, dtype=U8), v.whole(-500, 500, 6, dtype=np.int32)]
        yield Case(f"QLinearConv_last{last}", "QLinearConv", inputs, {"channels_last": last, "pads": [1, 1, 1, 1]}, constant=tuple(range(1, 9)), units=1)


def layers():
    for dtype in (np.uint16, np.int16, U8, I8):
        tag = np.dtype(dtype).name
        v = Values("linear" + tag)
        zero = v.whole(*((100, 200) if dtype in (np.uint16, U8) else (-50, 50)), dtype=dtype)
        yield Case(f"QuantizeLinear_{tag}", "QuantizeLinear", [v.normal(3, 8, scale=3), v.positive(), zero], constant=(1, 2))
        yield Case(f"DequantizeLinear_{tag}", "DequantizeLinear", [v.bytes(3, 8, dtype=dtype), v.positive(), zero], constant=(1, 2), tolerance=1e-6)
        zeros = np.full(3, zero, dtype)
        yield Case(f"QuantizeLinear_{tag}_axis", "QuantizeLinear", [v.normal(2, 3, 4, scale=3), v.positive(3), zeros], {"axis": 1}, constant=(1, 2))
        yield Case(f"DequantizeLinear_{tag}_axis", "DequantizeLinear", [v.bytes(3, 8, dtype=dtype), v.positive(3), zeros], {"axis": 0}, constant=(1, 2), tolerance=1e-6)
    for direction, wtype, columns, more in itertools.product(("forward", "reverse", "bidirectional"), (U8, I8), (False, True), (False, True)):
        tag = f"DynamicQuantizeLSTM_{direction}_{np.dtype(wtype).name}_{int(columns)}{int(more)}"
        v = Values(tag)
        d, hidden, width, batch, time = 2 if direction == "bidirectional" else 1, 4, 5, 2, 3
        parameter = (d, 4 * hidden) if columns else (d,)
        weights = lambda rows: v.whole(*((0, 255) if wtype == U8 else (-127, 127)), d, rows, 4 * hidden, dtype=wtype)  # noqa: E731
        zero = lambda: np.full(parameter, 130 if wtype == U8 else 0, wtype)  # noqa: E731
        scale = lambda: v.positive(*parameter, low=0.004, high=0.008)  # noqa: E731
        inputs = [v.normal(time, batch, width), weights(width), weights(hidden), v.normal(d, 8 * hidden, scale=0.3) if more else None, None,
                  v.normal(d, batch, hidden, scale=0.3) if more else None, v.normal(d, batch, hidden, scale=0.3) if more else None,
                  v.normal(d, 3 * hidden, scale=0.3) if more else None, scale(), zero(), scale(), zero()]
        yield Case(tag, "DynamicQuantizeLSTM", inputs, {"direction": direction, "hidden_size": hidden}, (True, True, True), constant=(1, 2, 8, 9, 10, 11), tolerance=0.03)


def cases():
    return [*elementwise(), *pools(), *products(), *layers()]
