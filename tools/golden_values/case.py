"""What a golden case is: exact operands, exact results, and how far a float32 computation may be from them.

Tensors are arrays of Python numbers. Results of floating types are the mathematical values in double precision, not yet rounded to the type: a kernel has one
rounding of its own to make, and the test allows for it.
"""
import fractions
import math
import pathlib
import re

import numpy

# Element type: bits of the significand, least exponent of a normal number, largest value.
FLOATS = {
    'f8_e4m3': (4, -6, 448.0), 'f8_e5m2': (3, -14, 57344.0), 'f8_e4m3fnuz': (4, -7, 240.0), 'f8_e5m2fnuz': (3, -15, 57344.0), 'f8_e8m0': (1, -127, 2.0 ** 127), 'f16': (11, -14, 65504.0), 'bf16': (8, -126, float.fromhex('0x1.fep127')),
    'f32': (24, -126, float.fromhex('0x1.fffffep127')), 'f64': (53, -1022, float.fromhex('0x1.fffffffffffffp1023'))}
INTEGERS = {f'{kind}{bits}': ((-(1 << bits - 1), (1 << bits - 1) - 1) if kind == 'i' else (0, (1 << bits) - 1)) for kind in 'iu' for bits in (8, 16, 32, 64)}
FP8 = ('f8_e4m3', 'f8_e5m2')
STORED_ONLY = ('f8_e4m3fnuz', 'f8_e5m2fnuz', 'f8_e8m0')
REAL = ('f32', 'bf16', 'f16')
UNIT = 2.0 ** -24  # half a unit in the last place of float32, relative
OF_DOUBLE = 2.0 ** -28  # allowed errors of results that are computed in double, in those of float32


def round_power(value, rounding='nearest'):
    """The power of two of f8_e8m0 next to a double or an integer: below it, above it or the nearest, of two equally near the larger. Negative values give NaN."""
    if value < 0 or not math.isfinite(value):
        return math.nan
    exact = fractions.Fraction(value)
    for exponent in range(-127, 127):
        low, high = fractions.Fraction(2) ** exponent, fractions.Fraction(2) ** (exponent + 1)
        if exact <= low or (exact < high if rounding == 'zero' else rounding == 'nearest' and exact < (low + high) / 2):
            return 2.0 ** exponent
    return 2.0 ** 127


def round_float(dtype, value):
    """The number of a floating type nearest to a double, ties to even; types of 8 bits saturate, the others overflow to infinity."""
    if dtype == 'f8_e8m0':
        return round_power(value)
    precision, least, largest = FLOATS[dtype]
    value = float(value)
    if math.isnan(value):
        return value
    if math.isinf(value):
        return math.nan if dtype == 'f8_e4m3' or dtype in STORED_ONLY else value
    if value == 0 and dtype in STORED_ONLY:
        return 0.0
    if value == 0 or dtype == 'f64':
        return value
    exponent = max(math.frexp(value)[1] - 1, least) - (precision - 1)
    rounded = math.copysign(math.ldexp(round(math.ldexp(abs(value), -exponent)), exponent), value)  # Python rounds half to even
    if rounded == 0 and dtype in STORED_ONLY:
        return 0.0
    if abs(rounded) <= largest:
        return rounded
    return math.copysign(largest if dtype in FP8 or dtype in STORED_ONLY else math.inf, value)


def clamp(dtype, value):
    low, high = INTEGERS[dtype]
    return min(max(value, low), high)


def round_to(dtype, value):
    """A value as an element of a type: integers round half to even and saturate, NaN gives 0."""
    if dtype == 'bool':
        return int(value != 0)
    if dtype in FLOATS:
        return round_float(dtype, value)
    if isinstance(value, (int, numpy.integer)):
        return clamp(dtype, int(value))
    if math.isnan(value):
        return 0
    return clamp(dtype, round(value)) if math.isfinite(value) else INTEGERS[dtype][int(value > 0)]


class Tensor:
    """Dimensions, element type and elements in row-major order."""

    def __init__(self, dtype, values, shape=None, exact=False):
        array = numpy.asarray(values, dtype=object)
        self.dtype, self.shape = dtype, tuple(array.shape if shape is None else shape)
        self.values = [v if exact else round_to(dtype, v) for v in array.reshape(-1).tolist()]
        assert len(self.values) == math.prod(self.shape), (len(self.values), self.shape)

    def __str__(self):
        return f'{self.dtype}[{", ".join(map(str, self.shape))}]'

    @property
    def array(self):
        """Elements as float64, or as integers of 64 bits."""
        return numpy.array(self.values, dtype='float64' if self.dtype in FLOATS else 'int64').reshape(self.shape)

    @property
    def objects(self):
        array = numpy.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array.reshape(self.shape)


def number(value, dtype='f64', digits=None):
    """The shortest text that is read back as the element, or one of this many digits."""
    if isinstance(value, (bool, int, numpy.bool_, numpy.integer)):
        return str(int(value))
    if not math.isfinite(value):
        return 'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'
    if digits:
        return f'{value:.{digits}g}'
    rounded = round_float(dtype, value)
    return next(text for text in (f'{rounded:.{n}g}' for n in range(1, 18)) if round_float(dtype, float(text)) == rounded)


def attribute(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return f'"{value}"'
    return f'[{", ".join(map(attribute, value))}]' if isinstance(value, (list, tuple)) else str(value)


def documented_defaults():
    """Text of every attribute's default by operator and name, as the reference page states them."""
    defaults, op = {}, ''
    for line in pathlib.Path('docs/reference/operators.md').read_text().split('\n'):
        if line.startswith('### '):
            op = line[4:]
        elif match := re.match(r'\| `(\w+)` \| (?:bool|int|float|string|ints|floats|strings) \| `(.*?)` \|', line):
            defaults[op, match[1]] = match[2]
    return defaults


class Cases:
    """The cases of one file."""
    defaults = documented_defaults()

    def __init__(self):
        self.lines = []

    def add(self, op, inputs, outputs, within=0.0, absolute=0.0, constant=(), **attributes):
        """A call and its results. `within`: allowed error in units of 2^-24 of a result; `absolute`: added to that. Either may be a list, one for each
        result. Both 0: a floating result is exact, signs of zeros too. `constant`: operands that kernels may pack beforehand."""
        call = f'{op}({", ".join("-" if i is None else str(i) for i in inputs)})'
        attributes = {name: value for name, value in attributes.items() if attribute(value) != self.defaults[op, name]}  # a default is not given
        if attributes:
            call += ' {' + ', '.join(f'{name} = {attribute(value)}' for name, value in attributes.items()) + '}'
        self.lines.append(call)
        for index, tensor in enumerate(inputs):
            if tensor is not None:
                self.lines.append(' '.join(['  constant' if index in constant else '  in', *(number(v, tensor.dtype) for v in tensor.values)]))
        for index, tensor in enumerate(outputs):
            relative, fixed = (x[index] if isinstance(x, (list, tuple)) else x for x in (within, absolute))
            digits = 10 if (relative or fixed > 2.0 ** -126) and tensor.dtype != 'f64' else None  # references are allowed a 64th of these errors
            elements = (number(v, tensor.dtype, digits) for v in tensor.values)
            self.lines.append(' '.join([f'  out {str(tensor).replace(" ", "")} {relative:.3g} {fixed:.3g}:', *elements]))

    def text(self):
        return '\n'.join(self.lines) + '\n'


def exact(dtype, values, shape=None):
    """A floating result that is not rounded yet."""
    return Tensor(dtype, values, shape, exact=True)


def shortened(values):
    """Numbers of four decimal digits: short in text, not in binary."""
    return numpy.vectorize(lambda v: float(f'{v:.4g}'), otypes=[float])(values)


class Draw:
    """Random operands, the same in every run."""

    def __init__(self, seed):
        self.random = numpy.random.Generator(numpy.random.PCG64(seed))

    def normal(self, dtype, shape, deviation=1.0):
        return Tensor(dtype, shortened(self.random.normal(0, deviation, shape)), shape)

    def coarse(self, dtype, shape, deviation=1.0, steps=8):
        """Normal numbers with this many steps to 1, where the text would grow."""
        return Tensor(dtype, numpy.round(self.random.normal(0, steps * deviation, shape)) / steps, shape)

    def uniform(self, dtype, shape, low, high):
        return Tensor(dtype, shortened(self.random.uniform(low, high, shape)), shape)

    def integers(self, dtype, shape, low, high):
        return Tensor(dtype, self.random.integers(low, high, shape, endpoint=True), shape)


def f32(x):
    """Arrays of float32, whose NumPy arithmetic rounds every step: for operators that are defined step by step."""
    return numpy.asarray(x, dtype=numpy.float32)
