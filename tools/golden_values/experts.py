"""Mixtures of experts: choice, permutation, experts, and what counts them."""
import math

import mpmath
import numpy
from mpmath import mpf

from . import functions
from .case import FLOATS, REAL, Cases, Draw, Tensor, UNIT, exact, round_to
from .movement import moved
from .products import dot
from .quantization import codes_of, dynamic, quantized, settled
from .reductions import order

GATING = ('k', 'score', 'renormalize', 'groups', 'topk_groups', 'group_score', 'scale')


def gate(logits, bias=None, k=1, score='softmax', renormalize=True, groups=1, topk_groups=1, group_score='top2', scale=1.0):
    """Weights and ids of one token."""
    n = len(logits)
    if score == 'softmax':
        top = max(logits)
        broken = any(map(math.isnan, logits)) or math.isinf(top)
        powers = [mpf('nan')] * n if broken else [mpmath.exp(mpf(v) - mpf(top)) if v > -math.inf else mpf(0) for v in logits]
        scores = [float(p / mpmath.fsum(powers)) for p in powers]
    else:
        scores = [functions.sigmoid(v) for v in logits]
    plain = bias is None and groups == 1
    ranks = [order(v) for v in (logits if plain else [s + (bias[i] if bias is not None else 0) for i, s in enumerate(scores)])]
    allowed = range(n)
    if groups > 1:
        size = n // groups
        parts = [range(g * size, (g + 1) * size) for g in range(groups)]
        keys = []
        for part in parts:
            best = sorted((ranks[i] for i in part), reverse=True)[:1 if group_score == 'max' else 2]
            keys.append((max(b[0] for b in best), 0 if any(b[0] for b in best) else sum(b[1] for b in best)))
        kept = sorted(range(groups), key=lambda g: keys[g], reverse=True)[:topk_groups]
        allowed = [i for g in sorted(kept) for i in parts[g]]
    ids = sorted(allowed, key=lambda i: ranks[i], reverse=True)[:k]  # stable: ties go to the lower id
    weights = [scores[i] for i in ids]
    total = math.fsum(weights)
    if renormalize:
        weights = [w / total if total else 0.0 for w in weights]
    return [w * scale for w in weights], ids




def topk_gating(c, logits, bias=None, units=40, **attributes):
    settings = {n: v for n, v in attributes.items() if n in GATING}
    pairs = [gate(row.tolist(), bias and bias.array, **settings) for row in logits.array]
    k = attributes.get('k', 1)
    shape = (logits.shape[0], k)
    weights, ids = [w for p in pairs for w in p[0]], [i for p in pairs for i in p[1]]
    c.add('topk_gating', [logits] + ([bias] if bias else []), [exact('f32', weights, shape), Tensor(attributes.get('index_dtype', 'i32'), ids, shape)], [units, 0], [2.0 ** -140, 0], **attributes)


def choices(c, draw):
    inf, nan = math.inf, math.nan
    rows = [[1, 3, 3, 2, 3, 0, 3, -1], [0.0, -0.0, 0, 0, 0, 0, -0.0, 0], [-inf, 1, -inf, -inf, 2, -inf, -inf, -inf], [90, -90, 0, 80, 70, 0, 1, 2], [100, 101, 99, -3e38, 0, 1, 2, 3]]
    for score in ('softmax', 'sigmoid'):
        for k, settings in ((1, {}), (3, {}), (3, {'renormalize': False}), (8, {'scale': 2.5})):
            topk_gating(c, Tensor('f32', rows), k=k, score=score, units=300, **settings)
            topk_gating(c, draw.normal('f32', (3, 20)), k=k, score=score, **settings)
        for dtype in ('f32', 'bf16', 'f16'):
            topk_gating(c, draw.normal(dtype, (3, 12), 2), draw.normal(dtype, (12,)), k=4, score=score, renormalize=dtype != 'f16')
            for group_score in ('top2', 'max'):
                topk_gating(c, draw.normal(dtype, (4, 12), 2), draw.normal(dtype, (12,)), k=3, score=score, groups=4, topk_groups=2, group_score=group_score, scale=2.5)
                topk_gating(c, draw.normal(dtype, (4, 12), 2), k=2, score=score, groups=3, topk_groups=1, group_score=group_score)
    topk_gating(c, Tensor('f32', [[-60, -80, -61, -1000]]), k=2, score='sigmoid')
    topk_gating(c, Tensor('f32', [[-math.inf, -math.inf, -math.inf]]), k=2, score='sigmoid')  # the sum of scores is 0
    topk_gating(c, Tensor('f32', [[1, nan, 2, 3]]), k=2, score='sigmoid')
    topk_gating(c, Tensor('f32', [[1, nan, 2, 3]]), k=2)
    topk_gating(c, Tensor('f32', [], (0, 4)), k=2)


def permutation(ids, experts, first=0, rest=False):
    """Row of each pair, first row of each expert; with rest the last has all ids that are not those of the others, which begin with `first`."""
    if rest:
        ids = [i - first if 0 <= i - first < experts - 1 else experts - 1 for i in ids]
    pairs = sorted(range(len(ids)), key=lambda i: ids[i])
    row_of = [0] * len(ids)
    for row, pair in enumerate(pairs):
        row_of[pair] = row
    return row_of, [sum(i < e for i in ids) for e in range(experts + 1)]


def permutations(c, draw):
    for i, dtype in enumerate(('i8', 'f8_e4m3', 'f8_e5m2', 'f16', 'bf16', 'f32')):
        x = draw.integers(dtype, (5, 3), -99, 99) if dtype == 'i8' else draw.coarse(dtype, (5, 3))
        ids = Tensor('i64' if i % 2 else 'i32', [[2, 0], [0, 4], [2, 4], [0, 2], [4, 4]])
        row_of, offsets = permutation(ids.values, 6)
        rows = numpy.empty((10, 3), dtype=object)
        for pair, row in enumerate(row_of):
            rows[row] = x.objects[pair // 2]
        c.add('moe_permute', [x, ids], [moved(dtype, rows), Tensor('i32', offsets), Tensor('i32', row_of, ids.shape)], experts=6)
        if dtype in ('i8', 'f8_e4m3'):
            scales = Tensor('f32', [0.5, 0.25, 2, 0, 1.5])
            row_scales = [0.0] * len(row_of)
            for pair, row in enumerate(row_of):
                row_scales[row] = scales.values[pair // 2]
            c.add('moe_permute', [x, ids, scales], [moved(dtype, rows), Tensor('i32', offsets), Tensor('i32', row_of, ids.shape), Tensor('f32', row_scales)], experts=6)
            row_of, offsets = permutation(ids.values, 3, 2, True)
            for pair, row in enumerate(row_of):
                rows[row] = x.objects[pair // 2]
            c.add('moe_permute', [x, ids], [moved(dtype, rows), Tensor('i32', offsets), Tensor('i32', row_of, ids.shape)], experts=3, first=2, rest=True)
        c.add('expert_load', [ids], [Tensor('i32', [ids.values.count(e) for e in range(6)])], experts=6)
    c.add('moe_permute', [Tensor('f32', [[1, 2]]), Tensor('i32', [[0, 0]])], [Tensor('f32', [[1, 2], [1, 2]]), Tensor('i32', [0, 2]), Tensor('i32', [[0, 1]])])
    c.add('expert_load', [Tensor('i32', [], (0, 2))], [Tensor('i32', [0])])
    c.add('expert_load', [Tensor('i64', [[1, -1, 3], [-7, 1, 0]])], [Tensor('i32', [1, 2, 0, 1])], experts=4)
    c.add('moe_permute', [Tensor('f32', [], (0, 2)), Tensor('i32', [], (0, 3))], [Tensor('f32', [], (0, 2)), Tensor('i32', [0, 0, 0]), Tensor('i32', [], (0, 3))], experts=2)
    for rows_type, residual_type, out in (('f32', None, {}), ('bf16', 'f32', {}), ('f16', 'bf16', {'out_dtype': 'f32'}), ('f32', 'f16', {'out_dtype': 'bf16'}), ('bf16', None, {'out_dtype': 'f16'})):
        rows, weights = draw.normal(rows_type, (6, 19)), draw.normal('f32', (3, 2))
        row_of = Tensor('i64' if out else 'i32', [[5, 0], [2, 2], [1, 4]])
        residual = draw.normal(residual_type, (3, 19)) if residual_type else None
        y = numpy.einsum('tj,tjh->th', weights.array, rows.array[row_of.array]) + (residual.array if residual else 0)
        c.add('moe_unpermute', [rows, row_of, weights] + ([residual] if residual else []), [exact(out.get('out_dtype', rows_type), y)], 0, 6 * UNIT * 12, **out)


def multiplied(row, dtype, scale, settings):
    """A row as a quantized weight multiplies it, and whether float32 errors of its values change nothing."""
    if dtype in REAL:
        return numpy.array([round_to(dtype, float(numpy.float32(v))) for v in row]), settled(row, dtype)
    if scale is None:
        scaled, codes, scales, _ = dynamic(row.reshape(1, -1), out_dtype=dtype, **settings)
        return codes.array.reshape(-1) * scales.values[0], settled(scaled, dtype)
    scaled = quantized(row, scale, None)
    return numpy.array(codes_of(scaled, dtype), dtype=float) * scale, settled(scaled, dtype)


def experts_of(x, router, gate_up, down, bias, settings, activation, rows=lambda row: row, inner=lambda row: row):
    """Results and choices of rows of tokens. rows, inner: what becomes of a row of x and of what the second weights multiply before the products."""
    f, y, ids = gate_up.shape[1] // 2, numpy.zeros_like(x), []
    for t, token in enumerate(x):
        logits = [dot(token, r)[0] for r in router]
        weights, chosen = gate(logits, bias, **settings)
        near = gate([v + 1e-5 * (-1) ** i for i, v in enumerate(logits)], bias, **settings)[1], gate([v - 1e-5 * (-1) ** i for i, v in enumerate(logits)], bias, **settings)[1]
        assert near == (chosen, chosen), 'a choice of experts that float32 may make otherwise'
        row = rows(token)
        for w, e in zip(weights, chosen):
            hidden = numpy.array([activation(dot(row, gate_up[e][i])[0]) * dot(row, gate_up[e][f + i])[0] for i in range(f)])
            y[t] += w * (down[e] @ inner(hidden))
        ids.append(chosen)
    return y, ids


def mixture(c, draw, op, x_type, w_type, bias=None, residual=None, ranks=0, experts=4, stacked=True, **attributes):
    h, f, tokens = 5, 3, 3
    lead = (ranks, tokens) if ranks and stacked else (tokens,)
    x, router = draw.normal(x_type, lead + (h,)), draw.normal(w_type, (experts, h))
    gate_up, down = draw.coarse(w_type, (experts, 2 * f, h), 0.6), draw.coarse(w_type, (experts, h, f), 0.6)
    bias, residual = bias and draw.normal(bias, (experts,)), residual and draw.normal(residual, lead + (h,))
    settings = {n: attributes[n] for n in GATING if n in attributes}
    activation = functions.ACTIVATIONS[attributes.get('activation', 'silu')]
    y, ids = experts_of(x.array.reshape(-1, h), router.array, gate_up.array, down.array, bias and bias.array, settings, activation)
    y = y.reshape(x.shape) + (residual.array if residual else 0)
    flat = [e for chosen in ids for e in chosen]
    results = [exact(attributes.get('out_dtype', x_type), y), Tensor('i32', [flat.count(e) for e in range(experts)])]
    if ranks:
        attributes['ranks'] = ranks
        sent = [[sum(e * ranks // experts == j for chosen in ids[i * tokens:(i + 1) * tokens] for e in chosen) for j in range(ranks)] for i in range(ranks)]
        results.append(Tensor('i32', sent))
    operands = [x, router, gate_up, down, bias, residual]
    while operands[-1] is None:
        operands.pop()
    c.add(op, operands, results, 0, [400 * UNIT * max(1.0, float(abs(y).max())), 0, 0][:len(results)], constant=(2, 3), **attributes)


class Unsettled(Exception):
    pass


def quantized_mixture(c, draw, first, second, x_scale=None, hidden_scale=None, **attributes):
    """ep_moe with weights of the types `first` and `second`, drawn until no float32 error could choose another quantized value."""
    ranks, tokens, h, f, experts = 2, 2, 5, 3, 4
    settings, k = {n: v for n, v in attributes.items() if n == 'range'}, {'k': 2}

    def weight(dtype, shape):
        if dtype == 'i8':
            return draw.integers('i8', shape, -128, 127), Tensor('f32', draw.coarse('f32', shape[:2], 1).array * 2.0 ** -7)
        w = draw.normal(dtype, shape)
        return w, draw.normal('f32', shape[:2]) if dtype == 'f8_e4m3' else None

    def inner(row):
        values, is_settled = multiplied(row, attributes.get('hidden_dtype', second), hidden_scale, settings)
        if not is_settled:
            raise Unsettled
        return values

    while True:
        x, router = draw.normal('f32', (ranks, tokens, h)), draw.normal('f32', (experts, h))
        (gate_up, gate_up_scale), (down, down_scale) = weight(first, (experts, 2 * f, h)), weight(second, (experts, h, f))
        full = [w.array * (1.0 if s is None else s.array[..., None]) for w, s in ((gate_up, gate_up_scale), (down, down_scale))]
        same = lambda row: row
        try:
            y, ids = experts_of(x.array.reshape(-1, h), router.array, *full, None, k, functions.silu,
                                (lambda row: multiplied(row, first, x_scale, settings)[0]) if gate_up_scale else same, inner if down_scale or attributes.get('hidden_dtype') else same)
        except (Unsettled, AssertionError):
            continue
        break
    flat = [e for chosen in ids for e in chosen]
    sent = [[sum(e * ranks // experts == j for chosen in ids[i * tokens:(i + 1) * tokens] for e in chosen) for j in range(ranks)] for i in range(ranks)]
    number = lambda v: None if v is None else Tensor('f32', [v], ())
    operands = [x, router, gate_up, down, None, None, gate_up_scale, down_scale, number(x_scale), number(hidden_scale)]
    while operands[-1] is None:
        operands.pop()
    results = [exact('f32', y.reshape(x.shape)), Tensor('i32', [flat.count(e) for e in range(experts)]), Tensor('i32', sent)]
    c.add('ep_moe', operands, results, 0, [400 * UNIT * max(1.0, float(abs(y).max())), 0, 0], constant=(2, 3), ranks=ranks, **k, **attributes)


def mixtures(c, draw):
    for op, ranks in (('moe', 0), ('ep_moe', 2)):
        mixture(c, draw, op, 'f32', 'f32', ranks=ranks, k=2)
        for activation in functions.ACTIVATIONS:
            mixture(c, draw, op, 'f32', 'bf16', ranks=ranks, k=2, activation=activation, renormalize=activation != 'relu')
        for x, w, out in (('bf16', 'f16', {}), ('f16', 'f32', {'out_dtype': 'f32'}), ('f32', 'f32', {'out_dtype': 'bf16'}), ('bf16', 'bf16', {'out_dtype': 'f16'})):
            mixture(c, draw, op, x, w, 'f32' if out else 'bf16', 'bf16' if x == 'bf16' else 'f16', ranks, k=2, score='sigmoid', scale=1.5, **out)
        mixture(c, draw, op, 'f32', 'f32', 'f16', 'f32', ranks, 6, k=2, score='sigmoid', groups=3, topk_groups=2, group_score='top2')
        mixture(c, draw, op, 'f32', 'f32', 'bf16', None, ranks, 6, k=1, groups=2, topk_groups=1, group_score='max')
    mixture(c, draw, 'ep_moe', 'f32', 'f32', ranks=1, k=1)
    mixture(c, draw, 'ep_moe', 'f32', 'bf16', ranks=1, k=2, stacked=False, group='model')
    quantized_mixture(c, draw, 'i8', 'i8')
    quantized_mixture(c, draw, 'i8', 'i8', x_scale=0.03125, range='127.5', overlap=True)
    quantized_mixture(c, draw, 'f8_e4m3', 'f8_e4m3', hidden_scale=0.0078125)
    quantized_mixture(c, draw, 'i8', 'bf16')
    quantized_mixture(c, draw, 'f16', 'f8_e4m3')
    quantized_mixture(c, draw, 'f16', 'bf16', hidden_dtype='bf16')


def cases():
    c, draw = Cases(), Draw(13)
    choices(c, draw)
    permutations(c, draw)
    mixtures(c, draw)
    topk_gating(c, Draw(19).normal('f32', (3, 20)), k=4, index_dtype='i64')
    return c
