"""The elementwise operators."""
import math
import operator

import numpy
from mpmath import mpf, power

from . import functions
from .case import INTEGERS, OF_DOUBLE, Cases, Draw, REAL, Tensor, exact

INF, NAN = math.inf, math.nan
COMMON = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 3.5, -2.5, 0.1, -0.1, 0.7, -0.9, 2, -3.25, 1e-3, -1e-3, 1e-10, -1e-10, 5, -5.25, 6, 6.5, -6, 3, -3, 7, 10,
          -10, 100, -100, 1000, INF, -INF, NAN]
WIDE = [1e-40, -1e-40, 1e-45, 1.1754944e-38, 8388607.5, 8388609, 4194304.5, 16777217, -16777216, 1e6, -1e4, 1e10, 3e38, -3e38, 0.99999994, 1.0000001, 2147483648]
TAILS = {
    'exp': [88.7, 88.72283, 88.73, 89, -87.3, -87.5, -95, -103.2, -103.97, -104, -120, 1e-7, 0.34657359, -0.34657359, 20.5, -20.5, 55.5],
    'log': [0.70710677, 0.70710683, 1.4142135, 0.999, 1.001, 2.7182817],
    'sin': [1.5707964, 3.1415927, -3.1415927, 0.78539819, 2.3561945, 6.2831855, 12.5, 50.1, -77.7],
    'cos': [1.5707964, 3.1415927, -1.5707964, 0.78539819, 2.3561945, 6.2831855, 12.5, 50.1, -77.7],
    'tanh': [1e-4, 0.02, 0.54, 0.55, 0.625, 1.25, -1.25, 4.5, 8.9, 9.0, 9.1, -9.02, 20, 44, 88, -90],
    'erf': [1e-4, 0.02, 0.46875, 0.84375, -0.84, 1.25, 1.9, 2.1, 2.857, 3.2, 3.9, 4.1, -3.5, 5.9, 10.5],
    'sigmoid': [17, -17, 20, -20, -50, -87, -88.5, -89, -100, 88.5, 104, -103],
    'silu': [-4, -8, -17, -20, -50, -80, -87, -88.5, -95, 20, 1e4],
    'gelu': [-2, -3.3, -4, -5, -5.5, -8, -9.3, -11, -12.5, -13, 2.3, 3.9, 4, 8, 9],
    'gelu_tanh': [-2, -3.3, -4, -5, -5.5, -7, -8, -9.3, -9.9, 2.3, 3.9, 4, 8, 9],
    'gelu_quick': [-4, -8, -17, -20, -40, -50, 8, 17, 40],
    'softplus': [-4, -8, -16, -17, -20, -50, -87, -88.5, -100, 16, 17, 20, 88, 89, 100],
    'elu': [-4, -8, -16, -17, -20, -0.01, -1e-5, -50, -100, 0.34],
    'hard_swish': [2.9999998, -2.9999998, 3.0000002, 1.2, -1.4],
    'tan': [1.5707964, 3.1415927, -1.5707964, 0.78539819, 2.3561945, 6.2831855, 12.5, 50.1, -77.7],
    'asin': [0.99999994, -0.99999994, 0.5000001, -0.49999997, 0.9, 1.0000001, 1e-4], 'acos': [0.99999994, -0.99999994, 0.5000001, -0.49999997, 0.9, 1.0000001, 1e-4],
    'atan': [0.41, -0.42, 2.414, 2.415, 0.99999994, 1e4], 'sinh': [1e-4, 0.3, -0.34, 44, 79.9, -80.1, 88.7, 89.4, -89.41, 89.42],
    'cosh': [1e-4, 0.3, -0.34, 44, 79.9, -80.1, 88.7, 89.4, -89.41, 89.42], 'asinh': [1e-4, 0.3, -0.02, 1e4, -1e4, 9e17, -2e18],
    'acosh': [1.0000001, 1.0001, 1.5, 1e4, 9e17, 2e18], 'atanh': [0.99999994, -0.99999994, 0.3, -0.02, 1e-4, 0.9999, 1.0000001],
    'mish': [-4, -8, -17, -20, -50, -87, -88.5, -95, 8, 20, 88.5, 1e4], 'celu': [-4, -8, -16, -17, -20, -0.01, -1e-5, -50, -100, 0.34],
    'selu': [-4, -8, -16, -17, -20, -0.01, -1e-5, -50, -100, 0.34], 'swish': [-4, -8, -17, -20, -40, 8, 17, 40],
    'hard_sigmoid': [2.4999998, -2.4999998, 2.6, -2.6, 1.2],
}
# Operator: function, allowed error in units of 2^-24, integers too. None allowed: the result is exact after one rounding.
UNARY = {
    'neg': (operator.neg, 0, True), 'abs': (abs, 0, True), 'square': (lambda x: x * x, 0, True), 'relu': (functions.relu, None, True),
    'exp': (functions.exp, 4, False), 'log': (functions.log, 8, False), 'sqrt': (functions.sqrt, 0, False), 'rsqrt': (functions.rsqrt, 3, False),
    'reciprocal': (functions.reciprocal, 0, False), 'sin': (functions.sin, 8, False), 'cos': (functions.cos, 8, False), 'tanh': (functions.tanh, 8, False),
    'erf': (functions.erf, 8, False), 'floor': (functions.floor, 0, False), 'ceil': (functions.ceil, 0, False), 'round': (functions.nearest, 0, False),
    'sigmoid': (functions.sigmoid, 8, False), 'silu': (functions.silu, 8, False), 'gelu': (functions.gelu, 8, False),
    'gelu_tanh': (functions.gelu_tanh, 8, False), 'gelu_quick': (functions.gelu_quick, 8, False), 'softplus': (functions.softplus, 8, False),
    'softsign': (functions.softsign, 4, False), 'hard_swish': (functions.hard_swish, 4, False)}
PARAMETERS = {
    'leaky_relu': (functions.leaky_relu, 2, [{'alpha': 0.01}, {'alpha': 0.25}, {'alpha': -0.5}]), 'elu': (functions.elu, 8, [{'alpha': 1.0}, {'alpha': 1.7}]),
    'hard_sigmoid': (functions.hard_sigmoid, 4, [{'alpha': 0.2, 'beta': 0.5}, {'alpha': 1 / 6, 'beta': 0.4}]),
    'clip': (functions.limit, 1, [{'low': 0.0, 'high': 6.0}, {'low': -2.5, 'high': 0.7}])}
# Behind those above, so that their random operands stay.
MORE_UNARY = {'sign': (functions.sign, 0, True), 'mish': (functions.mish, 16, False)}
MORE_UNARY |= {op: (getattr(functions, op), 8, False) for op in ('tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh')}
MORE_PARAMETERS = {
    'celu': (functions.celu, 8, [{'alpha': 1.0}, {'alpha': 0.5}, {'alpha': 2.0}]),
    'thresholded_relu': (functions.thresholded_relu, 0, [{'alpha': 1.0}, {'alpha': 0.25}]), 'swish': (functions.swish, 8, [{'alpha': 1.0}, {'alpha': 1.5}]),
    'selu': (functions.selu, 10, [{'alpha': 1.67326319217681884765625, 'gamma': 1.05070102214813232421875}, {'alpha': 2.0, 'gamma': 0.75}]),
    'shrink': (functions.shrink, 0, [{'lambd': 0.5, 'bias': 0.0}, {'lambd': 1.5, 'bias': 0.75}])}
SMALLEST = 8 * 2.0 ** -149  # intermediates may be subnormal
FLUSHED = 2.0 ** -125  # or, in float32, 0
FLUSHING = ('sigmoid', 'silu', 'gelu', 'gelu_tanh', 'gelu_quick', 'softplus', 'swish')


def tolerances(op, units, x, smallest=SMALLEST):
    """Allowed errors of one element: relative, absolute."""
    if not units:
        return 0, 0.0 if units == 0 else 2.0 ** -149
    if not math.isfinite(x):
        return units, 0.0
    if op in ('sin', 'cos'):  # relative to 1 but for the neighbourhood of the zero of sine at 0
        small = op == 'sin' and abs(x) < 1
        return (units, SMALLEST) if small else (0, units * 2.0 ** -24)
    if op == 'hard_swish' and abs(x) < 8:
        return 0, units * 2.0 ** -24 * max(abs(x) * (abs(x) / 6 + 0.5), 2.0 ** -100)
    if op == 'hard_sigmoid' and abs(x) < 8:
        return 0, units * 2.0 ** -24 * (abs(x) / 5 + 0.5)
    return units * 4 ** math.ceil(math.log(min(functions.condition(op, x), 2.0 ** 60), 4) - 1e-9), smallest * max(abs(x), 1000.0)


def unary(cases, op, dtype, values, function, units, attributes):
    """Cases of one type, one for each allowed error."""
    groups = {}
    for x in Tensor(dtype, values).values:
        relative, absolute = tolerances(op, units, x, FLUSHED if op in FLUSHING else SMALLEST)
        groups.setdefault((relative, 2.0 ** math.ceil(math.log2(absolute)) if absolute else 0.0), []).append(x)
    for (relative, absolute), xs in groups.items():
        cases.add(op, [Tensor(dtype, xs)], [exact(dtype, [function(x, *attributes.values()) for x in xs])], relative, absolute, **attributes)


def double(cases, op, function, units, attributes):
    """Cases of f64, whose errors are those of double."""
    groups = {}
    for x in COMMON + WIDER:
        if op in ('sin', 'cos', 'tan') and abs(x) > 1e6:
            continue
        relative, absolute = tolerances(op, units, x)
        absolute = 0.0 if not absolute else 2.0 ** -149 if units is None else 2.0 ** math.ceil(math.log2(absolute * OF_DOUBLE))
        groups.setdefault((relative * OF_DOUBLE, absolute), []).append(x)
    for (relative, absolute), xs in groups.items():
        cases.add(op, [Tensor('f64', xs)], [exact('f64', [function(x, *attributes.values()) for x in xs])], relative, absolute, **attributes)


def wrap(dtype, value):
    low, high = INTEGERS[dtype]
    return (value - low) % (high - low + 1) + low


WIDER = [1 + 2.0 ** -50, -1 - 2.0 ** -50, 0.1 + 2.0 ** -40, math.pi, -math.e, 4503599627370497.5, -12.3456789012345, 1e150, -1e150, 0.999999999999, -0.3333333333333333]
WHOLE = {'i32': [0, 1, -1, 7, -9, 46341, -46341, 2147483647, -2147483648, 65537], 'i64': [0, 1, -1, 7, (1 << 53) + 1, -(1 << 53) - 3, (1 << 63) - 1, -(1 << 63), 3037000500]}


RARE = {dtype: [0, 1, 7, 2, 3, INTEGERS[dtype][1], INTEGERS[dtype][1] - 1, INTEGERS[dtype][1] // 2] + ([-1, -7, -2, INTEGERS[dtype][0]] if dtype[0] == 'i' else [INTEGERS[dtype][1] // 2 + 1, 200])
        for dtype in ('i8', 'u8', 'i16', 'u16', 'u32', 'u64')}


def tests(cases):
    """is_nan and is_inf."""
    values = COMMON + [3e38, -3e38, 1e-40]
    for dtype in (*REAL, 'f64'):
        x = Tensor(dtype, values)
        cases.add('is_nan', [x], [Tensor('bool', [math.isnan(v) for v in x.values])])
        for negative, positive in ((1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)):
            found = [v == INF and positive != 0 or v == -INF and negative != 0 for v in x.values]
            cases.add('is_inf', [x], [Tensor('bool', found)], detect_negative=negative, detect_positive=positive)


def unary_cases(cases):
    draw = Draw(1)
    rows = {}
    for plain, parameters in ((UNARY, PARAMETERS), (MORE_UNARY, MORE_PARAMETERS)):
        rows |= {op: (function, units, integers, [{}]) for op, (function, units, integers) in plain.items()}
        rows |= {op: (function, units, False, attributes) for op, (function, units, attributes) in parameters.items()}
    for op, (function, units, integers, settings) in rows.items():
        for attributes in settings:
            large = [] if op in ('sin', 'cos', 'tan') else WIDE
            unary(cases, op, 'f32', COMMON + large + TAILS.get(op, []) + draw.normal('f32', (40,), 2.5).values, function, units, attributes)
            for dtype in ('bf16', 'f16'):
                unary(cases, op, dtype, COMMON + TAILS.get(op, [])[:9], function, units, attributes)
            double(cases, op, function, units, attributes)
        cases.add(op, [Tensor('f32', [], (0, 4))], [exact('f32', [], (0, 4))])
        for dtype, values in (WHOLE | RARE).items() if integers else ():
            whole = {'relu': lambda x: max(x, 0), 'sign': lambda x: (x > 0) - (x < 0)}.get(op, function)
            cases.add(op, [Tensor(dtype, values)], [Tensor(dtype, [wrap(dtype, whole(v)) for v in values])])
    cases.add('logical_not', [Tensor('bool', [1, 0, 1])], [Tensor('bool', [0, 1, 0])])
    for dtype, values in (WHOLE | RARE).items():
        cases.add('bitwise_not', [Tensor(dtype, values)], [Tensor(dtype, [wrap(dtype, ~v) for v in values])])
    tests(cases)


def divide(a, b):
    with numpy.errstate(all='ignore'):
        return float(numpy.float64(a) / numpy.float64(b))


def multiply(a, b):
    return NAN if math.isnan(a) or math.isnan(b) else divide(0, 0) if (a == 0 and math.isinf(b)) or (b == 0 and math.isinf(a)) else a * b


def raise_to(a, b):
    if math.isfinite(a) and math.isfinite(b) and a != 0 and b != 0:
        if a < 0 and b != int(b):
            return NAN
        value = power(mpf(abs(a)), mpf(b)) * (-1 if a < 0 and int(b) % 2 else 1)
        return functions.to_double(value) if abs(value) < 1e300 else math.copysign(INF, value)
    if a == 0 and b < 0:  # where Python refuses what Annex F of C defines
        return math.copysign(INF, a) if math.isfinite(b) and b == int(b) and int(b) % 2 else INF
    return math.pow(a, b)


def extreme(pick):
    return lambda a, b: NAN if a != a or b != b else pick(a, b)


def quiet(function):
    def call(a, b):
        with numpy.errstate(all='ignore'):
            return float(function(numpy.float64(a), numpy.float64(b)))
    return call


def truncated(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def whole_power(a, b):
    if b < 0:
        return 1 if a == 1 or (a == -1 and b % 2 == 0) else -1 if a == -1 else 0
    return pow(a, b, 1 << 64)


#: What integers do otherwise.
OF_WHOLE = {'mul': operator.mul, 'max': max, 'min': min, 'div': truncated, 'mod': lambda a, b: a % b if b else 0, 'fmod': lambda a, b: a - truncated(a, b) * b if b else 0,
            'pow': whole_power, 'prelu': lambda a, b: a * b if a < 0 else a}
ARITHMETIC = {'add': operator.add, 'sub': operator.sub, 'mul': multiply, 'div': divide, 'pow': raise_to, 'max': extreme(max), 'min': extreme(min)}
MORE_ARITHMETIC = {'mod': quiet(numpy.mod), 'fmod': quiet(numpy.fmod), 'prelu': lambda a, b: multiply(a, b) if a < 0 else a}
UNITS = {'pow': 2}
COMPARISONS = {'equal': operator.eq, 'not_equal': operator.ne, 'less': operator.lt, 'less_equal': operator.le, 'greater': operator.gt, 'greater_equal': operator.ge}
LOGIC = {'logical_and': operator.and_, 'logical_or': operator.or_, 'logical_xor': operator.xor}
BITS = {'bitwise_and': operator.and_, 'bitwise_or': operator.or_, 'bitwise_xor': operator.xor}
SHIFTS = {'shift_left': operator.lshift, 'shift_right': operator.rshift}
SPECIAL = [0.0, -0.0, 1, -1, 0.5, 2, -3, 2.5, 1.0000001, 1e-40, 3e38, -1e10, 7, INF, -INF, NAN]
SHAPES = [((3, 1), (1, 5)), ((), (2, 3)), ((0, 4), (1, 4)), ((2, 1, 3), (2, 2, 3)), ((4,), (3, 4)), ((1,), (7,))]


def elementwise(function, a, b):
    left, right = numpy.broadcast_arrays(a.objects, b.objects)
    return [function(x, y) for x, y in zip(left.reshape(-1), right.reshape(-1))], left.shape


def binary_cases(cases):
    draw = Draw(2)
    for op, function in {**ARITHMETIC, **COMPARISONS, **MORE_ARITHMETIC}.items():
        compares = op in COMPARISONS

        def add(a, b, units=UNITS.get(op, 0)):
            values, shape = elementwise(function, a, b)
            # Of two zeros either may be the larger.
            cases.add(op, [a, b], [Tensor('bool', values, shape) if compares else exact(a.dtype, values, shape)], units, SMALLEST if op in ('pow', 'max', 'min') else 0)
        grid = [(a, b) for a in SPECIAL for b in SPECIAL]
        add(Tensor('f32', [a for a, _ in grid]), Tensor('f32', [b for _, b in grid]))
        for shapes in SHAPES:
            add(draw.normal('f32', shapes[0], 3.0), draw.normal('f32', shapes[1], 3.0))
        for dtype in REAL[1:]:
            add(Tensor(dtype, draw.integers('i32', (5, 1), -4, 4).values, (5, 1)), Tensor(dtype, [0.0, -1, 2, 3, 0.1, INF, NAN], (1, 7)))
        doubles = [v for v in SPECIAL + [1 + 2.0 ** -52, 1 / 3] if op != 'pow' or v != 1.0000001]
        a, b = Tensor('f64', doubles, (len(doubles), 1)), Tensor('f64', doubles)
        values, shape = elementwise(function, a, b)
        cases.add(op, [a, b], [Tensor('bool', values, shape) if compares else exact('f64', values, shape)], UNITS.get(op, 0) * OF_DOUBLE,
                  SMALLEST if op in ('pow', 'max', 'min') else 0)
        if op in ('equal', 'not_equal'):
            a, b = Tensor('bool', [[0], [1]]), Tensor('bool', [0, 1])
            values, shape = elementwise(function, a, b)
            cases.add(op, [a, b], [Tensor('bool', values, shape)])
        for dtype, values in (WHOLE | RARE).items():
            whole = OF_WHOLE.get(op, function)
            a, b = Tensor(dtype, values, (len(values), 1)), Tensor(dtype, values)
            results, shape = elementwise(whole, a, b)
            cases.add(op, [a, b], [Tensor('bool' if compares else dtype, results if compares else [wrap(dtype, r) for r in results], shape)])
    for op, function in LOGIC.items():
        cases.add(op, [Tensor('bool', [0, 0, 1, 1]), Tensor('bool', [0, 1, 0, 1])], [Tensor('bool', [function(a, b) for a in (0, 1) for b in (0, 1)])])
        cases.add(op, [Tensor('bool', [[0], [1]]), Tensor('bool', [1, 0, 1])], [Tensor('bool', [[function(a, b) for b in (1, 0, 1)] for a in (0, 1)])])
    for op, function in BITS.items():
        for dtype, values in (WHOLE | RARE).items():
            a, b = Tensor(dtype, values, (len(values), 1)), Tensor(dtype, values)
            results, shape = elementwise(function, a, b)
            cases.add(op, [a, b], [Tensor(dtype, [wrap(dtype, r) for r in results], shape)])
    for op, function in SHIFTS.items():
        for dtype, values in RARE.items():
            if dtype[0] == 'u':
                a, b = Tensor(dtype, values, (len(values), 1)), Tensor(dtype, [0, 1, 3, 7, 8, 15, 16, 31, 32, 63, 64, 65, 200])
                results, shape = elementwise(function, a, b)
                cases.add(op, [a, b], [Tensor(dtype, [wrap(dtype, r) for r in results], shape)])


def cases():
    result = Cases()
    unary_cases(result)
    binary_cases(result)
    return result
