"""flash_attention, incre_flash_attention, merge_attention_states, in double precision."""
import math

import numpy

from .cache import HND, NHD, in_columns, place
from .case import FP8, Cases, Draw, Tensor, UNIT, exact

INF = math.inf


def cache_tensor(draw, dtype, shape):
    return draw.integers(dtype, shape, -128, 127) if dtype == 'i8' else draw.coarse(dtype, shape, 1.0, 4)


class Scores:
    """What a call says about its scores."""

    def __init__(self, head_dim, scale=0.0, causal=True, window=0, softcap=0.0, sinks=None, alibi=None, window_left=-1, window_right=-1, **rest):
        self.scale, self.causal, self.softcap = scale or 1 / math.sqrt(head_dim), causal, softcap
        self.before, self.after = (given if given >= 0 else window - 1 if window else INF for given in (window_left, window_right))
        self.sinks, self.alibi = sinks and sinks.values, alibi and alibi.values

    def attend(self, q, keys, values, position, head):
        """One query over the keys of its sequence: output, log of the denominator."""
        scores = {}
        for j, key in enumerate(keys):
            distance = position - j
            if (self.causal and distance < 0) or distance > self.before or -distance > self.after:
                continue
            s = self.scale * math.fsum(q * key)
            if self.softcap:
                s = self.softcap * math.tanh(s / self.softcap)
            scores[j] = s - (self.alibi[head] * abs(distance) if self.alibi else 0)
        every = list(scores.values()) + ([self.sinks[head]] if self.sinks else [])
        top = max(every, default=-INF)
        if top == -INF:
            return numpy.zeros(values.shape[1]), -INF
        total = math.fsum(math.exp(s - top) for s in every)
        o = sum((math.exp(s - top) / total * values[j] for j, s in scores.items()), numpy.zeros(values.shape[1]))
        return o, top + math.log(total)


def allowed(settings, keys, size):
    """Error of float32 scores of magnitude up to about 8 and of sums over the keys."""
    return (keys + 60 + 8 * settings.get('softcap', 0)) * UNIT * size


def finish(c, op, operands, outputs, lse, settings, tensors, keys):
    attributes = {k: v for k, v in settings.items() if not isinstance(v, Tensor) and v is not None}
    size = max((abs(v) for t in tensors for v in t.values if math.isfinite(v)), default=1.0)
    results = [exact(attributes.get('out_dtype') or (operands[0].dtype if operands[0].dtype != 'f8_e4m3' else 'bf16'), outputs)] + ([exact('f32', lse)] if attributes.get('return_lse') else [])
    while operands[-1] is None:
        operands.pop()
    c.add(op, operands, results, [0, 4][:len(results)], [allowed(settings, keys, max(size, 1.0)), allowed(settings, keys, 1.0)][:len(results)], **attributes)


def flash(c, q, k, v, bounds=None, key_bounds=None, **settings):
    group = q.shape[1] // k.shape[1]
    scores = Scores(q.shape[2], **settings)
    starts, key_starts = (bounds.values if bounds else [0, q.shape[0]]), (key_bounds or bounds or Tensor('i32', [0, k.shape[0]])).values
    o, lse = numpy.zeros(q.shape[:2] + v.shape[2:]), numpy.zeros((q.shape[1], q.shape[0]))
    for begin, end, first, last in zip(starts, starts[1:], key_starts, key_starts[1:]):
        for t in range(begin, end):
            for h in range(q.shape[1]):
                position = last - first - (end - begin) + t - begin
                o[t, h], lse[h, t] = scores.attend(q.array[t, h], k.array[first:last, h // group], v.array[first:last, h // group], position, h)
    finish(c, 'flash_attention', [q, k, v, settings.get('sinks'), settings.get('alibi'), bounds, key_bounds], o, lse, settings, [v], k.shape[0])


LAYOUTS = {'bshd': (0, 1, 2, 3), 'bhsd': (0, 2, 1, 3), 'bhds': (0, 2, 3, 1)}


def laid_out(tensor, layout):
    """An operand [B, S, H, D] in another order."""
    array = numpy.transpose(tensor.array, LAYOUTS[layout])
    return Tensor(tensor.dtype, array.reshape(-1).tolist(), array.shape)


def batched(c, q, k, v, bias=None, mask=None, layouts=('bshd',) * 4, masked_score=None, lengths=None, **settings):
    """Operands [B, S, H, D] are given in order and stored in the layouts."""
    group, (count, tokens, heads, size), keys = q.shape[2] // k.shape[2], q.shape, k.shape[1]
    causal, scale = settings.get('causal', True), settings.get('scale') or 1 / math.sqrt(size)
    shape = (count, heads, tokens, keys)
    added = numpy.broadcast_to(bias.array, shape) if bias else numpy.zeros(shape)
    seen = numpy.broadcast_to(mask.array, shape) if mask else numpy.ones(shape)
    o, lse = numpy.zeros((count, tokens, heads, v.shape[3])), numpy.zeros((count, heads, tokens))
    for b, t, h in numpy.ndindex(count, tokens, heads):
        scores, own = {}, lengths.values[b] if lengths else keys
        for j in range(own):
            if causal and j > t + own - tokens:
                continue
            hidden = -INF if masked_score is None else masked_score
            scores[j] = scale * math.fsum(q.array[b, t, h] * k.array[b, j, h // group]) + added[b, h, t, j] if seen[b, h, t, j] else hidden
        top = max(scores.values(), default=-INF)
        if not scores or (top == -INF and settings.get('empty_rows') == 'zero'):
            lse[b, h, t] = -INF
            continue
        total = math.fsum(math.exp(s - top) for s in scores.values())
        o[b, t, h] = sum((math.exp(s - top) / total * v.array[b, j, h // group] for j, s in scores.items()), numpy.zeros(v.shape[3]))
        lse[b, h, t] = top + math.log(total)
    names = ('q_layout', 'k_layout', 'v_layout', 'o_layout')
    attributes = dict(settings, **{name: layout for name, layout in zip(names, layouts) if layout != 'bshd'})
    if masked_score is not None:
        attributes['masked_score'] = masked_score
    operands = [laid_out(x, layout) for x, layout in zip((q, k, v), layouts)] + [None] * 4 + [bias, mask, lengths]
    finish(c, 'flash_attention', operands, numpy.transpose(o, LAYOUTS[layouts[3]]), lse, attributes, [v], keys)


def batches(c, draw):
    def operands(dtype='f32', kv_heads=2):
        return draw.coarse(dtype, (2, 3, 2, 4)), draw.coarse(dtype, (2, 5, kv_heads, 4)), draw.coarse(dtype, (2, 5, kv_heads, 6))

    seen = Tensor('bool', [1, 1, 0, 1, 1], (5,))
    rows = Tensor('bool', [1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1], (3, 5))
    for layout in LAYOUTS:
        batched(c, *operands(), layouts=(layout, layout, layout, 'bshd' if layout == 'bshd' else 'bhsd'), causal=False)
    batched(c, *operands(), layouts=('bshd', 'bhds', 'bhsd', 'bshd'), scale=0.7, return_lse=True)
    batched(c, *operands(kv_heads=1), bias=draw.coarse('f32', (2, 1, 1, 5)), causal=False)
    for dtype in ('bf16', 'f16'):
        batched(c, *operands(dtype), bias=draw.coarse(dtype, (2, 3, 5)), causal=False)
        batched(c, *operands(dtype), bias=draw.coarse('f32', (2, 3, 1)), mask=seen, causal=False, out_dtype='f32')
    batched(c, *operands(), mask=rows, causal=False)
    batched(c, *operands(), mask=rows, bias=draw.coarse('f32', (1, 2, 3, 5)), masked_score=-1.5, causal=False)


def lengths(c, draw):
    """Fewer keys than there is memory for; rows that see none."""
    for dtype, lens in (('i32', [4, 5]), ('i64', [0, 2])):
        for settings in ({'causal': False}, {'return_lse': True}):
            batched(c, draw.coarse('f32', (2, 3, 2, 4)), draw.coarse('f32', (2, 5, 2, 4)), draw.coarse('f32', (2, 5, 2, 6)), lengths=Tensor(dtype, lens), **settings)
    rows = Tensor('bool', [1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1], (3, 5))
    batched(c, draw.coarse('f32', (2, 3, 2, 4)), draw.coarse('f32', (2, 5, 2, 4)), draw.coarse('f32', (2, 5, 2, 6)), mask=rows, causal=False, empty_rows='zero', return_lse=True)


def paged(c, draw, q, dtype, lens, starts=None, scales=None, layout=HND, heads=2, dv=6, block=8, spare=1, columns=False, index=('i32',) * 3, **settings):
    """Caches hold NaN wherever nothing may be read."""
    d, pages = q.shape[2], [-(-n // block) for n in lens]
    most, used = max(max(pages), 1), sum(pages)
    order = draw.random.permutation(used + spare).tolist()
    shape = (used + spare, heads, block) if layout == HND else (used + spare, block, heads)
    k, v = cache_tensor(draw, dtype, shape + (d,)), cache_tensor(draw, dtype, shape + (dv,))
    steps = [None] * 2 if scales is None else [draw.uniform('f32', {'head': (heads,), 'one': (1,)}.get(scales, shape), 0.005, 0.02) for _ in range(2)]
    table, taken, seen = [], 0, numpy.zeros(shape, bool)
    for n, count in zip(lens, pages):
        table.append(order[taken:taken + count] + [99999] * (most - count))
        taken += count
        for j in range(n):
            seen[tuple(place(table[-1][j // block] * block + j % block, block, layout, slice(None)))] = True
    if dtype != 'i8':
        for cache in (k, v):
            flags = numpy.repeat(seen.reshape(-1), cache.shape[-1])
            cache.values = [x if ok else math.nan for x, ok in zip(cache.values, flags)]
    settings['layout'] = layout
    scores, o, lse = Scores(d, **settings), numpy.zeros(q.shape[:2] + (dv,)), numpy.zeros((q.shape[1], q.shape[0]))
    bounds = starts or list(range(len(lens) + 1))
    for b, n in enumerate(lens):
        for h in range(q.shape[1]):
            own = h // (q.shape[1] // heads)
            at = [place(table[b][j // block] * block + j % block, block, layout, own) for j in range(n)]

            def rows(cache, step):
                vectors = [cache.array[a] * (1 if step is None else step.array[own if scales == 'head' else 0] if scales != 'token' else step.array[a]) for a in at]
                return numpy.array(vectors).reshape(n, cache.shape[-1])
            keys, values = rows(k, steps[0]), rows(v, steps[1])
            for t in range(bounds[b], bounds[b + 1]):
                o[t, h], lse[h, t] = scores.attend(q.array[t, h], keys, values, n - bounds[b + 1] + t, h) if n else (numpy.zeros(dv), -INF)
                if n == 0 and scores.sinks:
                    lse[h, t] = scores.sinks[h]
    operands = [q, k, in_columns(v) if columns else v, Tensor(index[0], table, (len(lens), most)), Tensor(index[1], lens), starts and Tensor(index[2], starts), *steps, settings.get('sinks'), settings.get('alibi')]
    attributes = {k: v for k, v in settings.items() if k != 'layout' or v != HND}
    finish(c, 'incre_flash_attention', operands, o, lse, attributes, [Tensor('f32', [3.0])], max(lens))


def options(draw, heads):
    """Settings one at a time, and together."""
    sinks, alibi = draw.coarse('f32', (heads,), 2), draw.uniform('f32', (heads,), 0.05, 0.6)
    return [{}, {'causal': False}, {'window': 3}, {'causal': False, 'window': 2}, {'softcap': 1.5}, {'scale': 0.7, 'return_lse': True}, {'sinks': sinks, 'return_lse': True},
            {'alibi': alibi}, {'causal': False, 'alibi': alibi}, {'sinks': sinks, 'alibi': alibi, 'softcap': 5.0, 'window': 4, 'scale': 0.9, 'return_lse': True}]


def prefill(c, draw):
    for settings in options(draw, 4):
        flash(c, draw.coarse('f32', (5, 4, 8)), draw.coarse('f32', (5, 2, 8)), draw.coarse('f32', (5, 2, 6)), **settings)
    for dtype, out in (('bf16', {}), ('f16', {'out_dtype': 'f32'}), ('f32', {'out_dtype': 'bf16'}), ('bf16', {'out_dtype': 'f16'})):
        flash(c, draw.coarse(dtype, (5, 2, 16)), draw.coarse(dtype, (5, 1, 16)), draw.coarse(dtype, (5, 1, 16)), **out)
    bounds = Tensor('i32', [0, 3, 3, 7])
    flash(c, draw.coarse('f32', (7, 2, 5)), draw.coarse('f32', (7, 2, 5)), draw.coarse('f32', (7, 2, 3)), bounds, return_lse=True)
    for key_bounds in ([0, 1, 4, 9], [0, 5, 5, 7]):  # fewer keys than queries: the first queries see none
        n = key_bounds[-1]
        for settings in ({}, {'causal': False}, {'window': 2}):
            flash(c, draw.coarse('f32', (7, 2, 5)), draw.coarse('f32', (n, 1, 5)), draw.coarse('f32', (n, 1, 3)), Tensor('i64', bounds.values), Tensor('i64', key_bounds), return_lse=True, **settings)
    flash(c, draw.coarse('f32', (3, 2, 5)), draw.coarse('f32', (2, 1, 5)), draw.coarse('f32', (2, 1, 3)), Tensor('i32', [0, 3]), Tensor('i32', [0, 2]),
          sinks=Tensor('f32', [0.5, -1]), return_lse=True)
    # Softmax must subtract the maximum: these scores are in the hundreds.
    flash(c, Tensor('f32', [[[100.0]], [[-90]], [[80]]]), Tensor('f32', [[[9.0]], [[9.5]], [[-9]]]), Tensor('f32', [[[1.0]], [[2]], [[4]]]), scale=1.0)


def decode(c, draw):
    for settings in options(draw, 4):
        paged(c, draw, draw.coarse('f32', (3, 4, 4)), 'f32', [5, 1, 9], dv=3, layout=NHD if 'sinks' in settings else HND, **settings)
        paged(c, draw, draw.coarse('f32', (5, 4, 5)), 'f32', [5, 3, 9], [0, 2, 2, 5], dv=3, **settings)
    for dtype in ('bf16', 'f16', 'f32'):
        for cache in ('bf16', 'f16'):
            paged(c, draw, draw.coarse(dtype, (2, 2, 9)), cache, [7, 9], heads=1, dv=9)
        for cache in ('i8', *FP8):
            for scales in ('head', 'token') if dtype == 'f32' else ('head',) if dtype == 'f16' else ('token',):
                paged(c, draw, draw.coarse(dtype, (2, 2, 6)), cache, [3, 9], scales=scales, layout=NHD if dtype == 'f16' else HND, heads=2 if dtype == 'f32' else 1, dv=4, out_dtype='f32')
    # Rows with a tail that end where the memory does (a multiple of 64 bytes), so that the address sanitizer sees a read behind them.
    paged(c, draw, draw.coarse('f32', (1, 2, 20)), 'i8', [16], scales='head', layout=NHD, dv=20, block=16, spare=0)
    paged(c, draw, draw.coarse('bf16', (2, 2, 8)), 'f8_e4m3', [3, 9], out_dtype='f16')
    for settings in ({}, {'sinks': Tensor('f32', [1.0, -2])}):  # a sequence of padding
        paged(c, draw, draw.coarse('f32', (3, 2, 8)), 'f32', [4, 0, 9], heads=1, return_lse=True, **settings)


def pages_of_tokens(c, draw):
    """Pages of one token, and values that are narrower than keys."""
    for layout in (HND, NHD):
        paged(c, draw, draw.coarse('f32', (3, 2, 6)), 'f32', [3, 5], [0, 1, 3], dv=4, block=1, layout=layout)
        paged(c, draw, draw.coarse('bf16', (2, 4, 12)), 'i8', [4, 2], scales='token', heads=1, dv=8, block=1, layout=layout, out_dtype='f32')


def eight_bits(c, draw):
    """Queries of e4m3; values in columns."""
    for scales in (None, 'head', 'token'):
        paged(c, draw, draw.coarse('f8_e4m3', (3, 2, 6)), 'f8_e4m3', [3, 21], [0, 1, 3], scales=scales, heads=1, dv=5, block=32, columns=True, strict=scales is None, out_dtype='f32')
    for dtype, cache in (('bf16', 'i8'), ('f32', 'f8_e5m2')):
        paged(c, draw, draw.coarse(dtype, (2, 2, 6)), cache, [18, 9], scales='token', dv=3, block=16, columns=True, out_dtype='f32')
    paged(c, draw, draw.coarse('f8_e4m3', (2, 2, 6)), 'f8_e4m3', [3, 9], heads=1, dv=4, strict=True)


def merge(c, draw):
    for dtype, second, out in (('f32', 'f32', {}), ('bf16', 'f16', {}), ('f16', 'bf16', {'out_dtype': 'f32'}), ('f32', 'f32', {'out_dtype': 'bf16'})):
        o1, o2 = draw.coarse(dtype, (4, 2, 5)), draw.coarse(second, (4, 2, 5))
        lse1, lse2 = draw.coarse('f32', (2, 4), 3), draw.coarse('f32', (2, 4), 3)
        lse1.values[:4], lse2.values[:4] = [-INF, -INF, 200.0, -300], [1.5, -INF, 199.0, -INF]
        o1.values[:5] = [math.nan] * 5  # a state without keys is not read into the result
        o, lse = numpy.zeros((4, 2, 5)), numpy.zeros((2, 4))
        for t in range(4):
            for h in range(2):
                a, b = float(lse1.array[h, t]), float(lse2.array[h, t])
                top = max(a, b)
                if top == -INF:
                    lse[h, t] = -INF
                    continue
                w1, w2 = math.exp(a - top), math.exp(b - top)
                left, right = (w * x.array[t, h] if w else numpy.zeros(5) for w, x in ((w1, o1), (w2, o2)))
                o[t, h], lse[h, t] = (left + right) / (w1 + w2), top + math.log(w1 + w2)
        if out:  # +inf says the same
            lse1.values[:4] = [INF, INF, 200.0, -300]
        c.add('merge_attention_states', [o1, lse1, o2, lse2], [exact(out.get('out_dtype', dtype), o), exact('f32', lse)], [0, 4], [60 * UNIT, 8 * UNIT], **out)


def strict(c, draw):
    flash(c, draw.coarse('bf16', (5, 2, 16)), draw.coarse('bf16', (5, 1, 16)), draw.coarse('bf16', (5, 1, 16)), strict=True)
    paged(c, draw, draw.coarse('f16', (2, 2, 8)), 'f16', [3, 9], dv=8, strict=True)


def cases():
    c, draw = Cases(), Draw(12)
    prefill(c, draw)
    decode(c, draw)
    merge(c, draw)
    batches(c, draw)
    strict(c, draw)
    pages_of_tokens(c, draw)
    eight_bits(c, draw)
    lengths(c, draw)
    draw = Draw(20)
    for settings in ({'window_left': 2, 'window_right': 1, 'causal': False}, {'window_left': 0, 'window': 3, 'causal': False}, {'window_right': 0, 'causal': False}, {'window_left': 2}):
        flash(c, draw.coarse('f32', (5, 2, 8)), draw.coarse('f32', (7, 1, 8)), draw.coarse('f32', (7, 1, 6)), return_lse=True, **settings)
        paged(c, draw, draw.coarse('f32', (5, 4, 5)), 'f32', [5, 3, 9], [0, 2, 2, 5], dv=3, **settings)
    for index in (('i64', 'i64', 'i64'), ('i64', 'i32', 'i32'), ('i32', 'i64', 'i32')):
        paged(c, draw, draw.coarse('f32', (3, 2, 4)), 'f32', [5, 9], [0, 1, 3], dv=3, index=index)
    paged(c, draw, draw.coarse('f32', (2, 2, 6)), 'i8', [3, 9], scales='one', dv=4, block=300)
    return c
