"""cast between all pairs of types, from values where conversions differ."""
import math

from .case import FLOATS, INTEGERS, Cases, Tensor, clamp, exact, round_float, round_power

FRACTIONS = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -2.6, 1.9, 127.5, 128.5, -128.5, -129, 255.5, 300, 17, 19, 65504, 65519, 65520, 1e10, -1e10, 448, 464, 465, 2147483520,
             4294967040, -3e9, 1e19, -1e19, 2e19, 3.4e38, -3.4e38, 57344, 61440, 1e-3, -1e-7, 6e-8, 2.9e-8, 1e-40, 0.0009765625, 0.0029296875, math.inf, -math.inf, math.nan]
# One rounding differs from two: just past the middle of two bf16, f16, f32 and fp8 numbers by less than a narrower type in between can hold.
DOUBLES = [1 + 2.0 ** -8 + 2.0 ** -40, 1 + 2.0 ** -11 + 2.0 ** -40, 1 + 2.0 ** -24 + 2.0 ** -50, 1 + 2.0 ** -4 + 2.0 ** -30, 1 + 2.0 ** -3 + 2.0 ** -35, -1 - 2.0 ** -8 - 2.0 ** -45, 1e300, -1e-300, 3.5e38,
           1e-45, 2.0 ** -25 + 2.0 ** -70, 2147483647.5, 9007199254740993.0]
WHOLE = [0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 257, 2049, 32767, -32768, 65535, 65519, 65520, (1 << 24) + 1, 2147483647, -2147483648, 4294967295, (1 << 53) + 1, (1 << 60) + (1 << 36) + 1,
         (1 << 60) + (1 << 52) + 1, -(1 << 60) - (1 << 36) - 1, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1]


def round_integer(dtype, n):
    """The floating number nearest to an integer of any size, with one rounding."""
    precision, _, _ = FLOATS[dtype]
    excess = max(abs(n).bit_length() - precision, 0)
    kept, rest = divmod(abs(n), 1 << excess)
    half = (1 << excess) >> 1
    kept += excess and (rest > half or (rest == half and kept & 1))
    return round_float(dtype, math.copysign(math.ldexp(kept, excess), n))


def convert(source, target, value, rounding):
    if target == 'bool':
        return int(value != 0)
    if target == 'f8_e8m0':
        return round_power(value, rounding)
    if target in FLOATS:
        return round_integer(target, value) if isinstance(value, int) else round_float(target, value)
    if isinstance(value, int):  # the low bits, in two's complement
        least, most = INTEGERS[target]
        return (value - least) % (most - least + 1) + least
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return INTEGERS[target][int(value > 0)]
    return clamp(target, round(value) if rounding == 'nearest' else math.trunc(value))


def values_of(dtype):
    """Distinct elements of a type, in the order of the lists above."""
    if dtype == 'bool':
        return [0, 1]
    listed = FRACTIONS + (DOUBLES if dtype == 'f64' else []) if dtype in FLOATS else [w for w in WHOLE if clamp(dtype, w) == w]
    elements = Tensor(dtype, listed).values
    return [v for i, v in enumerate(elements) if repr(v) not in map(repr, elements[:i])]


def cases():
    c = Cases()
    types = ['bool', *INTEGERS, *FLOATS]
    for source in types:
        for target in types:
            values = values_of(source)
            roundings = ('zero', 'nearest', 'up') if target == 'f8_e8m0' else ('zero', 'nearest') if source in FLOATS and target in INTEGERS else ('zero',)
            for rounding in roundings if source != target else ('zero',):
                attributes = {'rounding': rounding} if rounding != 'zero' else {}
                results = [convert(source, target, v, rounding) for v in values]
                c.add('cast', [Tensor(source, values)], [exact(target, results) if target in FLOATS else Tensor(target, results)], out_dtype=target, **attributes)
    c.add('cast', [Tensor('f32', [], (2, 0))], [exact('bf16', [], (2, 0))], out_dtype='bf16')
    return c
