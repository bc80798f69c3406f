"""Elementwise functions with 60 digits, and what IEEE 754 says of zeros, infinities and NaN."""
import math

import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
INF, NAN = math.inf, math.nan


def real(function, at_inf, at_minus_inf, at_zero=None, domain=lambda x: True):
    """A function of a double: `function` of finite numbers, the given values at the infinities; at_zero(x) where the sign of zero matters."""
    def call(x, *parameters):
        if math.isnan(x):
            return NAN
        if math.isinf(x):
            value = at_inf if x > 0 else at_minus_inf
            return value(*parameters) if callable(value) else value
        if x == 0 and at_zero:
            return at_zero(x)
        return to_double(function(mpf(x), *map(mpf, parameters))) if domain(x) else NAN
    return call


def to_double(value):
    """Nearest double; a value below the smallest one keeps its sign."""
    result = float(value)
    return math.copysign(0.0, -1.0 if value < 0 else 1.0) if result == 0 and value != 0 else result


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def normal_cdf(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def tanh_argument(x):
    return mpmath.sqrt(2 / mpmath.pi) * (x + mpf('0.044715') * x ** 3)


def clip(x, low, high):
    return min(max(x, low), high)


def same(x):
    return x


identity = real(lambda x: x, INF, -INF, same)
exp = real(mpmath.exp, INF, 0.0)
log = real(mpmath.log, INF, NAN, lambda x: -INF, lambda x: x > 0)
sqrt = real(mpmath.sqrt, INF, NAN, same, lambda x: x > 0)
rsqrt = real(lambda x: 1 / mpmath.sqrt(x), 0.0, NAN, lambda x: math.copysign(INF, x), lambda x: x > 0)
reciprocal = real(lambda x: 1 / x, 0.0, -0.0, lambda x: math.copysign(INF, x))
sin = real(mpmath.sin, NAN, NAN, same)
cos = real(mpmath.cos, NAN, NAN)
tan = real(mpmath.tan, NAN, NAN, same)
asin = real(mpmath.asin, NAN, NAN, same, lambda x: abs(x) <= 1)
acos = real(mpmath.acos, NAN, NAN, None, lambda x: abs(x) <= 1)
atan = real(mpmath.atan, math.pi / 2, -math.pi / 2, same)
sinh = real(mpmath.sinh, INF, -INF, same)
cosh = real(mpmath.cosh, INF, INF)
asinh = real(mpmath.asinh, INF, -INF, same)
acosh = real(mpmath.acosh, INF, NAN, None, lambda x: x >= 1)
atanh = real(lambda x: mpmath.atanh(x) if abs(x) != 1 else x * mpmath.inf, NAN, NAN, same, lambda x: abs(x) <= 1)
tanh = real(mpmath.tanh, 1.0, -1.0, same)
erf = real(mpmath.erf, 1.0, -1.0, same)
floor = real(mpmath.floor, INF, -INF, same)


def whole(function):
    """A rounding function; a result of zero has the sign of the operand."""
    return lambda x: x if not math.isfinite(x) else math.copysign(float(function(x)), x)


ceil, nearest = whole(math.ceil), whole(round)  # Python rounds half to even
sigmoid = real(logistic, 1.0, 0.0)
silu = real(lambda x: x * logistic(x), INF, NAN, same)
gelu = real(lambda x: x * normal_cdf(x), INF, NAN, same)
gelu_tanh = real(lambda x: x / 2 * (1 + mpmath.tanh(tanh_argument(x))), INF, NAN, same)
gelu_quick = real(lambda x: x * logistic(mpf('1.702') * x), INF, NAN, same)
relu = real(lambda x: max(x, mpf(0)), INF, 0.0, same)
softplus = real(lambda x: mpmath.log1p(mpmath.exp(x)), INF, 0.0)
softsign = real(lambda x: x / (1 + abs(x)), NAN, NAN, same)
hard_swish = real(lambda x: x * clip(x / 6 + mpf('0.5'), 0, 1), INF, NAN, same)
sign = real(mpmath.sign, 1.0, -1.0, lambda x: 0.0)
mish = real(lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), INF, NAN, same)
celu = real(lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x / alpha), INF, lambda alpha: -alpha, same)
selu = real(lambda x, alpha, gamma: gamma * (x if x > 0 else alpha * mpmath.expm1(x)), INF, lambda alpha, gamma: -alpha * gamma, same)
swish = real(lambda x, alpha: x * logistic(alpha * x), lambda alpha: INF if alpha > 0 else NAN, lambda alpha: NAN if alpha > 0 else -INF, same)
thresholded_relu = real(lambda x, alpha: x if x > alpha else mpf(0), INF, 0.0)
shrink = real(lambda x, lambd, bias: x + bias if x < -lambd else x - bias if x > lambd else mpf(0), INF, -INF)
leaky_relu = real(lambda x, alpha: x if x > 0 else alpha * x, INF, lambda alpha: math.copysign(INF, -alpha), same)
elu = real(lambda x, alpha: x if x > 0 else alpha * mpmath.expm1(x), INF, lambda alpha: -alpha, same)
hard_sigmoid = real(lambda x, alpha, beta: clip(alpha * x + beta, 0, 1), lambda alpha, beta: float(alpha > 0), lambda alpha, beta: float(alpha < 0))
limit = real(clip, lambda low, high: high, lambda low, high: low)
ACTIVATIONS = {'identity': identity, 'relu': relu, 'sigmoid': sigmoid, 'silu': silu, 'gelu': gelu, 'gelu_tanh': gelu_tanh, 'gelu_quick': gelu_quick}
GELUS = {'none': gelu, 'tanh': gelu_tanh, 'quick': gelu_quick}


def condition(name, x):
    """How much a relative error of an intermediate argument grows in the result: the argument of the exponential that the tail follows."""
    return {'gelu': 1 + x * x / 2, 'gelu_tanh': 1 + abs(float(2 * tanh_argument(mpf(x)))), 'gelu_quick': 1 + abs(1.702 * x),
            'swish': 1 + 2 * abs(x), 'celu': 1 + 2 * abs(x)}.get(name, 1.0)
