"""sample: Philox 4x32-10 as Salmon, Moraes, Dror and Shaw define it (SC 2011), and the steps of the definition."""
import math
from fractions import Fraction

import mpmath
import numpy
from mpmath import mpf

from .case import Cases, Draw, Tensor
from .reductions import order

MASK = 0xffffffff


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


# Known answers of the authors' Random123 library.
assert philox([0] * 4, [0] * 2) == [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]
assert philox([MASK] * 4, [MASK] * 2) == [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]
assert philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]) == [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]


def uniform_bits(seed, step):
    words = philox([step & MASK, step >> 32 & MASK, 0, 0], [seed & MASK, seed >> 32 & MASK])
    return words[0] | words[1] << 32


def draw_token(logits, temperature, top_k, top_p, min_p, penalty, previous, seed, step):
    """The token, and whether a weight that float32 gets wrong by 4 units could change it."""
    x = numpy.array(logits, dtype=numpy.float32)
    with numpy.errstate(all='ignore'):
        for token in {p for p in previous if p >= 0}:
            x[token] = x[token] / numpy.float32(penalty) if x[token] > 0 else x[token] * numpy.float32(penalty)
        best = max(range(len(x)), key=lambda i: (order(float(x[i])), -i))
        z = x / numpy.float32(temperature)
    if temperature == 0 or not math.isfinite(z[best]):
        return best, True
    ranked = sorted(range(len(z)), key=lambda i: -z[i])[:top_k or None]
    powers = {i: mpmath.exp(mpf(float(z[i])) - mpf(float(z[ranked[0]]))) if z[i] > -math.inf else mpf(0) for i in ranked}

    def choose(factor):
        weights = {i: int(mpmath.floor(mpf(2) ** 40 * p * (1 if p == 1 else factor))) for i, p in powers.items()}
        kept = list(ranked)
        if top_p < 1:
            wanted, reached, kept = math.floor(Fraction(top_p) * sum(weights.values())), 0, []
            for i in ranked:
                kept.append(i)
                reached += weights[i]
                if reached >= wanted:
                    break
        kept = sorted(i for i in kept if powers[i] * (1 if powers[i] == 1 else factor) >= min_p)
        target = sum(weights[i] for i in kept) * uniform_bits(seed, step) >> 64
        reached = 0
        for i in kept:
            reached += weights[i]
            if reached > target:
                return i
        return kept[-1]
    error = mpf(2) ** -20
    choice = choose(mpf(1))
    return choice, choose(1 + error) == choice == choose(1 - error)


def sample(c, draw, logits, temperature=None, top_k=None, top_p=None, min_p=None, penalty=None, previous=None, seeds=None, steps=None):
    n = logits.shape[0]
    while True:
        s = seeds or draw.integers('i64', (n,), -(1 << 62), 1 << 62)
        t = steps or draw.integers('i64', (n,), 0, 1 << 40)

        def at(operand, b, default):
            return default if operand is None else operand.values[b]
        drawn = [draw_token(row.tolist(), at(temperature, b, 1.0), at(top_k, b, 0), at(top_p, b, 1.0), at(min_p, b, 0.0), at(penalty, b, 1.0),
                            previous.array[b].tolist() if previous else [], s.values[b], t.values[b]) for b, row in enumerate(logits.array)]
        if all(sure for _, sure in drawn):
            break
    c.add('sample', [logits, temperature, top_k, top_p, min_p, penalty, previous, s, t], [Tensor('i32', [i for i, _ in drawn], (n,))])


def advance_tokens(c, chosen, positions, lengths, tables, draws, made, count, **attributes):
    """ids and slots of the step before do not matter: they are replaced."""
    size, n = attributes.get('block_size', 16), len(chosen)
    after = [p + 1 for p in positions]
    slots = [tables[b][p // size] * size + p % size if p // size < len(tables[b]) else -1 for b, p in enumerate(after)]
    rows = [list(row) for row in made]
    rows[count % len(made)][:n] = chosen
    lists = [[7] * n, positions, [3] * n, lengths]
    c.add('advance_tokens', [Tensor('i32', v) for v in [chosen, *lists]] + [Tensor('i32', tables), Tensor('i64', draws), Tensor('i32', made), Tensor('i32', [count])],
          [Tensor('i32', v) for v in (chosen, after, slots, [v + 1 for v in lengths])] +
          [Tensor('i64', [v + 1 for v in draws]), Tensor('i32', rows), Tensor('i32', [count + 1])], **attributes)


def cases():
    c, draw = Cases(), Draw(14)
    inf, nan = math.inf, math.nan

    def floats(*v):
        return Tensor('f32', list(v))

    def whole(*v):
        return Tensor('i32', list(v))
    for dtype in ('f32', 'bf16', 'f16'):
        for _ in range(2):
            sample(c, draw, draw.normal(dtype, (6, 11), 2))
        sample(c, draw, draw.normal(dtype, (3, 40), 2), temperature=floats(0, 0.7, 1.6))
    for _ in range(4):
        sample(c, draw, draw.normal('f32', (6, 11), 2), top_k=whole(1, 2, 3, 0, 11, 99))
        sample(c, draw, draw.normal('f32', (6, 11), 2), top_p=floats(0.01, 0.3, 0.6, 0.9, 0.99, 1))
        sample(c, draw, draw.normal('f32', (6, 11), 2), min_p=floats(0, 0.05, 0.2, 0.5, 1, 0.01))
        sample(c, draw, draw.normal('f32', (4, 6), 1), penalty=floats(1, 1.5, 0.6, 4), previous=Tensor('i64', [[0, -1, 0], [2, 3, 2], [5, -1, -1], [1, 0, 4]]))
        sample(c, draw, draw.integers('f32', (5, 9), 0, 1), top_k=whole(1, 2, 3, 4, 5), top_p=floats(0.5, 1, 0.7, 0.4, 0.2))  # ties
        sample(c, draw, draw.normal('f32', (4, 33), 2), floats(0.5, 1.3, 0.9, 0), whole(9, 0, 20, 5), floats(0.8, 0.95, 1, 0.5), floats(0.02, 0, 0.1, 0), floats(1.2, 1, 0.8, 3),
               Tensor('i32', [[1, 2, 30], [0, 0, 0], [5, -1, 32], [7, 8, 9]]))
    sample(c, draw, Tensor('f32', [[1, nan, 2, nan], [1, inf, 2, inf], [-inf, -inf, -inf, -inf], [-inf, 1, -inf, -inf], [3, 1, 3, 2]]), temperature=floats(1, 1, 1, 1, 0))
    sample(c, draw, Tensor('f32', [[1, 2, 3], [3, 2, 1]]), seeds=Tensor('i64', [0, -1]), steps=Tensor('i64', [0, (1 << 63) - 1]))
    sample(c, draw, draw.normal('f32', (3, 5)), temperature=floats(1e-42, 1e30, 0.1))
    sample(c, draw, Tensor('f32', [[5.0], [nan], [-inf]]))
    advance_tokens(c, [5, 9, 0], [0, 15, 30], [1, 16, 31], [[4, 1], [2, 0], [3, 5]], [0, 1 << 40, 7], [[-2] * 4] * 3, 7)
    advance_tokens(c, [1, 2], [2, 11], [3, 12], [[9, 8, 7], [1, 2, 3]], [3, 3], [[-2, 6]], 0, block_size=4)  # the second has no room left
    return c
