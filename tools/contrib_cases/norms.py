"""Normalizations of sums and of embeddings, and activations."""

import numpy as np

from .case import Case, Values


def skip(op, tail):
    for dims in ((2, 3, 8), (5, 8)):
        for bias in (False, True):
            for all_results in (False, True):
                name = f"{op}_{len(dims)}d_bias{int(bias)}_all{int(all_results)}"
                v = Values(name)
                inputs = [v.normal(*dims), v.normal(*dims), v.normal(8)] + [v.normal(8) for _ in range(tail)] + ([v.normal(8)] if bias else [])
                yield Case(name, op, inputs, {"epsilon": 1e-5}, (True, False, False, True) if all_results else (True,), constant=(2,))
    v = Values(op)
    plain = [v.normal(2, 3, 8), v.normal(3, 8), v.normal(8)] + [None] * tail
    yield Case(f"{op}_broadcast", op, plain, {"epsilon": 1e-5}, (True, False, False, True))
    if tail:
        yield Case(f"{op}_no_beta", op, plain[:1] + [v.normal(1, 3, 8)] + plain[2:3], {"epsilon": 1e-5})
    yield Case(f"{op}_default_epsilon", op, [v.normal(2, 3, 8), v.normal(2, 3, 8), v.normal(8)])
    halves = [v.normal(2, 3, 16, dtype=np.float16), v.normal(2, 3, 16, dtype=np.float16), v.normal(16, dtype=np.float16)]
    yield Case(f"{op}_f16", op, halves, {"epsilon": 1e-5}, tolerance=2e-3)


def cases():
    found = [*skip("SkipLayerNormalization", 1), *skip("SkipSimplifiedLayerNormalization", 0)]
    for dims in ((2, 3, 8), (4, 8)):
        for axis in (-1, 1):
            v = Values(f"simplified{dims}{axis}")
            scale = v.normal(*dims[axis:])
            found.append(Case(f"simplified_{len(dims)}d_axis{axis}", "SimplifiedLayerNormalization", [v.normal(*dims), scale], {"axis": axis}, (True, True), domain=""))
    for segments in (False, True):
        for mask in (False, True):
            for places in (False, True):
                name = f"embed_segments{int(segments)}_mask{int(mask)}_places{int(places)}"
                v = Values(name)
                i32 = np.int32
                inputs = [v.whole(0, 9, 2, 4, dtype=i32), v.whole(0, 1, 2, 4, dtype=i32) if segments else None, v.normal(10, 8), v.normal(6, 8),
                          v.normal(2, 8) if segments else None, v.normal(8), v.normal(8), v.whole(0, 1, 2, 4, dtype=i32) if mask else None,
                          v.whole(0, 5, 2, 4, dtype=i32) if places else None]
                found.append(Case(name, "EmbedLayerNormalization", inputs, {"epsilon": 1e-5}, (True, True, True)))
    for segments in (False, True):
        for mask in (False, True):
            name = f"qembed_segments{int(segments)}_mask{int(mask)}"
            v = Values(name)
            i32, u8 = np.int32, np.uint8
            given = [v.whole(0, 9, 2, 4, dtype=i32), v.whole(0, 1, 2, 4, dtype=i32) if segments else None, v.bytes(10, 8), v.bytes(6, 8), v.bytes(2, 8) if segments else None,
                     v.bytes(8), v.bytes(8), v.whole(0, 1, 2, 4, dtype=i32) if mask else None]
            parameters = [[v.positive(), v.whole(100, 150, dtype=u8)] if segments or i != 2 else [None, None] for i in range(5)]
            found.append(Case(name, "QEmbedLayerNormalization", given + [p[0] for p in parameters] + [p[1] for p in parameters], {"epsilon": 1e-5}, (True, True),
                              constant=tuple(range(8, 18)), tolerance=1e-4))
    v = Values("gelu")
    x, bias = v.normal(3, 8, scale=3), v.normal(8)
    found += [Case("bias_gelu", "BiasGelu", [x, bias]), Case("gelu", "Gelu", [x]), Case("fast_gelu", "FastGelu", [x]), Case("fast_gelu_bias", "FastGelu", [x, bias]),
              Case("quick_gelu", "QuickGelu", [x]), Case("quick_gelu_alpha", "QuickGelu", [x], {"alpha": 0.7})]
    return found
