"""Fused matrix products and convolutions, and products with weights of few bits."""

import itertools

import numpy as np

from .case import Case, Values


def matmuls():
    for a, b, alpha in itertools.product((0, 1), (0, 1), (1.0, 0.5)):
        for lead in ((), (3,), (2, 3)):
            name = f"fused_matmul_{a}{b}_{len(lead)}_{alpha}"
            v = Values(name)
            x, y = v.normal(*lead, *((5, 4) if a else (4, 5))), v.normal(*lead, *((6, 5) if b else (5, 6)))
            yield Case(name, "FusedMatMul", [x, y], {"transA": a, "transB": b, "alpha": alpha})
    v = Values("fused_matmul_more")
    yield Case("fused_matmul_weight", "FusedMatMul", [v.normal(2, 3, 5), v.normal(6, 5)], {"transB": 1, "alpha": 0.25}, constant=(1,))
    yield Case("fused_matmul_batch_a", "FusedMatMul", [v.normal(3, 2, 4, 5), v.normal(2, 4, 5, 6)], {"transBatchA": 1})
    yield Case("fused_matmul_batch_at", "FusedMatMul", [v.normal(5, 2, 4, 3), v.normal(2, 4, 5, 6)], {"transBatchA": 1, "transA": 1})
    yield Case("fused_matmul_batch_b", "FusedMatMul", [v.normal(2, 4, 3, 5), v.normal(5, 2, 4, 6)], {"transBatchB": 1})
    yield Case("fused_matmul_batch_bt", "FusedMatMul", [v.normal(2, 4, 3, 5), v.normal(6, 2, 4, 5)], {"transBatchB": 1, "transB": 1})
    yield Case("fused_matmul_vector", "FusedMatMul", [v.normal(5), v.normal(5, 6)])
    for activation in ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSigmoid"):
        more = {"LeakyRelu": {"activation_alpha": 0.2}, "Elu": {"activation_alpha": 0.7}, "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4}}.get(activation, {})
        for a, b in ((0, 0), (1, 1)):
            inputs = [v.normal(*((5, 4) if a else (4, 5))), v.normal(*((6, 5) if b else (5, 6))), v.normal(6)]
            yield Case(f"fused_gemm_{activation}_{a}{b}", "FusedGemm", inputs, {"activation": activation, "transA": a, "transB": b, "alpha": 0.5, "beta": 2.0, **more})


def convolutions():
    more = {"LeakyRelu": {"activation_params": [0.2]}, "Clip": {"activation_params": [-0.5, 0.5]}, "HardSigmoid": {"activation_params": [0.3, 0.4]}}
    for activation in ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"):
        for residual in (False, True):
            name = f"fused_conv_{activation}_{int(residual)}"
            v = Values(name)
            inputs = [v.normal(1, 4, 5, 5), v.normal(6, 2, 3, 3), v.normal(6)] + ([v.normal(1, 6, 5, 5)] if residual else [])
            yield Case(name, "FusedConv", inputs, {"activation": activation, "group": 2, "pads": [1, 1, 1, 1], **more.get(activation, {})}, constant=(1, 2))
    v = Values("nhwc")
    x, w, b = v.normal(2, 5, 6, 4), v.normal(6, 2, 3, 3), v.normal(6)
    attributes = {"group": 2, "strides": [1, 2], "pads": [1, 0, 1, 1]}
    like = Case("", "Conv", [x.transpose(0, 3, 1, 2), w, b], attributes, domain="")
    last = lambda y: y.transpose(0, 2, 3, 1)  # noqa: E731
    for op in ("NhwcConv", "NhwcFusedConv"):
        yield Case(op, op, [x, w, b], attributes, like=like, changed=last)
    z = v.normal(2, 5, 3, 6)
    like = Case("", "FusedConv", [x.transpose(0, 3, 1, 2), w, b, np.ascontiguousarray(z.transpose(0, 3, 1, 2))], {**attributes, "activation": "Relu"})
    yield Case("NhwcFusedConv_sum", "NhwcFusedConv", [x, w, b, z], {**attributes, "activation": "Relu"}, like=like, changed=last)


def bits():
    for count, block, zero in itertools.product((4, 8), (16, 32, 64, 128), ("none", "packed", "plain")):
        for columns in (block, 2 * block - 5, block - 3):
            rows, blocks = 5, -(-columns // block)
            name = f"nbits{count}_block{block}_{zero}_{columns}"
            v = Values(name)
            inputs = [v.normal(3, columns), v.bytes(rows, blocks, block * count // 8), v.positive(rows, blocks)]
            if zero == "packed":
                inputs.append(v.bytes(rows, -(-blocks * count // 8)))
            if zero == "plain":
                inputs.append(v.positive(rows, blocks, low=0, high=2 ** count - 1))
            if zero == "plain" and count == 8:
                continue
            yield Case(name, "MatMulNBits", inputs, {"N": rows, "K": columns, "bits": count, "block_size": block}, constant=(1, 2, 3), tolerance=1e-4)
    v = Values("nbits_more")
    inputs = [v.normal(2, 3, 40), v.bytes(6, 2, 16), v.positive(6, 2), None, None, v.normal(6)]
    yield Case("nbits_bias", "MatMulNBits", inputs, {"N": 6, "K": 40, "bits": 4, "block_size": 32}, constant=(1, 2, 5), tolerance=1e-4)
    groups = v.whole(0, 1, 64, dtype=np.int32)
    inputs = [v.normal(3, 64), v.bytes(6, 2, 16), v.positive(6, 2), None, groups]  # onnxruntime leaves zero points out where there are groups
    yield Case("nbits_groups", "MatMulNBits", inputs, {"N": 6, "K": 64, "bits": 4, "block_size": 32}, constant=(1, 2, 3, 4), tolerance=1e-4)
    for kind in (0, 1):
        inputs = [v.normal(3, 64), v.bytes(6 * 32), v.positive(6 * 64 // 16)]
        yield Case(f"bnb4_{kind}", "MatMulBnb4", inputs, {"N": 6, "K": 64, "block_size": 16, "quant_type": kind}, constant=(1, 2), tolerance=1e-4)
    for count, zero, columns in ((4, False, 64), (4, True, 64), (4, True, 80), (8, False, 64), (8, True, 64)):
        blocks = -(-columns // 32)
        inputs = [v.bytes(9, columns * count // 8), v.whole(0, 8, 2, 3), v.positive(9, blocks)] + ([v.bytes(9, -(-blocks * count // 8))] if zero else [])
        yield Case(f"gather_blocks{count}_{int(zero)}_{columns}", "GatherBlockQuantized", inputs, {"bits": count, "block_size": 32, "quantize_axis": 1}, constant=(0, 2, 3))
    inputs = [v.normal(3, 64), v.bytes(6 * 2 * 16).reshape(6, 2, 16), v.positive(12), v.bytes(6)]
    yield Case("nbits_flat", "MatMulNBits", inputs, {"N": 6, "K": 64, "bits": 4, "block_size": 32}, constant=(1, 2, 3), tolerance=1e-4)


def cases():
    return [*matmuls(), *convolutions(), *bits()]
