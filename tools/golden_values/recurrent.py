"""lstm, gru and rnn as ONNX defines them, in double precision."""
import numpy

from .case import REAL, Cases, Draw, Tensor, exact

FUNCTIONS = {  # with the defaults of alpha and beta, where they have them
    'Sigmoid': (lambda x: 1 / (1 + numpy.exp(-x)),), 'Tanh': (numpy.tanh,), 'Relu': (lambda x: numpy.maximum(x, 0),),
    'Affine': (lambda x, a, b: a * x + b, 1, 0), 'LeakyRelu': (lambda x, a: numpy.where(x < 0, a * x, x), 0.01),
    'ThresholdedRelu': (lambda x, a: numpy.where(x > a, x, 0), 1), 'ScaledTanh': (lambda x, a, b: a * numpy.tanh(b * x), 1, 1),
    'HardSigmoid': (lambda x, a, b: numpy.clip(a * x + b, 0, 1), 0.2, 0.5), 'Elu': (lambda x, a: numpy.where(x < 0, a * numpy.expm1(x), x), 1),
    'Softsign': (lambda x: x / (1 + abs(x)),), 'Softplus': (lambda x: numpy.log1p(numpy.exp(x)),)}
DEFAULTS = {'lstm': ['Sigmoid', 'Tanh', 'Tanh'], 'gru': ['Sigmoid', 'Tanh'], 'rnn': ['Tanh']}
GATES = {'lstm': 4, 'gru': 3, 'rnn': 1}


def functions_of(op, directions, activations=(), activation_alpha=(), activation_beta=(), clip=0, **_):
    alphas, betas = list(activation_alpha), list(activation_beta)

    def make(name):
        f, *parameters = FUNCTIONS[name]
        for i, given in enumerate((alphas, betas)):
            if i < len(parameters) and given:
                parameters[i] = given.pop(0)
        return lambda x, limit=clip: f(numpy.clip(x, -limit, limit) if limit else x, *parameters)

    made = [make(name) for name in (activations or DEFAULTS[op] * directions)]
    return [made[i:i + len(DEFAULTS[op])] for i in range(0, len(made), len(DEFAULTS[op]))]


def lstm_cell(f, x, h, c, w, r, wb, rb, p, input_forget=False, **_):
    i, o, forget, g = numpy.split(w @ x + r @ h + wb + rb, 4)
    pi, po, pf = numpy.split(p, 3)
    i = f[0](i + pi * c)
    forget = 1 - i if input_forget else f[0](forget + pf * c)
    c = forget * c + i * f[1](g)
    return f[0](o + po * c) * f[2](c, 0), c


def gru_cell(f, x, h, c, w, r, wb, rb, p, linear_before_reset=False, **_):
    (wz, wr, wh), (rz, rr, rh), (bz, br, bh), (sz, sr, sh) = (numpy.split(a, 3) for a in (w, r, wb, rb))
    z = f[0](wz @ x + rz @ h + bz + sz)
    reset = f[0](wr @ x + rr @ h + br + sr)
    n = f[1](wh @ x + bh + (reset * (rh @ h + sh) if linear_before_reset else rh @ (reset * h) + sh))
    return (1 - z) * n + z * h, c


def rnn_cell(f, x, h, c, w, r, wb, rb, p, **_):
    return f[0](w @ x + r @ h + wb + rb), c


CELLS = {'lstm': lstm_cell, 'gru': gru_cell, 'rnn': rnn_cell}


def run(op, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, direction='forward', **attributes):
    """Results y, y_h and y_c of arrays."""
    (steps, batch, _), (directions, rows, hidden) = x.shape, r.shape
    functions = functions_of(op, directions, **attributes)
    b = numpy.zeros((directions, 2 * rows)) if b is None else b
    p = numpy.zeros((directions, 3 * hidden)) if p is None else p
    y, y_h, y_c = numpy.zeros((steps, directions, batch, hidden)), numpy.zeros((directions, batch, hidden)), numpy.zeros((directions, batch, hidden))
    for d, n in numpy.ndindex(directions, batch):
        h = numpy.zeros(hidden) if h0 is None else h0[d, n]
        c = numpy.zeros(hidden) if c0 is None else c0[d, n]
        times = range(steps if lengths is None else int(lengths[n]))
        for t in reversed(times) if d == 1 or direction == 'reverse' else times:
            h, c = CELLS[op](functions[d], x[t, n], h, c, w[d], r[d], b[d][:rows], b[d][rows:], p[d], **attributes)
            y[t, d, n] = h
        y_h[d, n], y_c[d, n] = h, c
    return y, y_h, y_c


def operands(op, draw, dtype='f32', steps=3, batch=2, size=3, hidden=4, directions=1, bias=True, lengths=None, state=True, peepholes=True):
    rows = GATES[op] * hidden
    make = lambda shape, deviation: draw.coarse(dtype, shape, deviation)
    list_ = [make((steps, batch, size), 1), make((directions, rows, size), 0.5), make((directions, rows, hidden), 0.5),
             make((directions, 2 * rows), 0.5) if bias else None, Tensor('i32', lengths) if lengths else None,
             make((directions, batch, hidden), 1) if state else None]
    if op == 'lstm':
        list_ += [make((directions, batch, hidden), 1) if state else None, make((directions, 3 * hidden), 0.5) if peepholes else None]
    return list_


def add(c, op, given, constant=(1, 2), **attributes):
    arrays = [None if t is None else t.array for t in given]
    results = run(op, *arrays, **attributes)[:3 if op == 'lstm' else 2]
    c.add(op, given, [exact(given[0].dtype, r, r.shape) for r in results], 0, 2e-5, constant, **attributes)


def cases():
    c, draw = Cases(), Draw(23)
    for op in GATES:
        n = len(DEFAULTS[op])
        for dtype in REAL:
            add(c, op, operands(op, draw, dtype))
        add(c, op, operands(op, draw, bias=False, state=False, peepholes=False), constant=())
        add(c, op, operands(op, draw, steps=4, batch=3, directions=2, lengths=[2, 4, 0]), direction='bidirectional')
        add(c, op, operands(op, draw, steps=4, batch=2, lengths=[3, 1], peepholes=False), direction='reverse')
        add(c, op, operands(op, draw), clip=0.5)
        add(c, op, operands(op, draw, steps=2, batch=1, size=5, hidden=9, directions=2, state=False), direction='bidirectional')
        for names, alpha, beta in ((['Relu', 'Softsign', 'Softplus'], [], []), (['Affine', 'LeakyRelu', 'ScaledTanh'], [0.5, 0.2, 0.75], [0.25, 1.5]),
                                   (['HardSigmoid', 'Elu', 'ThresholdedRelu'], [], []), (['Elu', 'HardSigmoid', 'Affine'], [0.5], [0.25])):
            add(c, op, operands(op, draw, steps=2), activations=names[:n], **({'activation_alpha': alpha} if alpha else {}),
                **({'activation_beta': beta} if beta else {}))
        add(c, op, operands(op, draw, steps=2, directions=2), direction='bidirectional', activations=[*DEFAULTS[op], *(['Relu'] * n)])
    add(c, 'lstm', operands('lstm', draw), input_forget=True)
    for dtype in ('f32', 'bf16'):
        add(c, 'gru', operands('gru', draw, dtype), linear_before_reset=True)
    return c
