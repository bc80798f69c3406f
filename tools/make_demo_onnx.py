#!/usr/bin/env python3
"""Writes models/demo_onnx/classifier.onnx: probabilities = softmax(x @ w + bias), x f32[batch, 4]. Needs no package: the few fields are encoded here."""

import pathlib
import struct

FLOAT, INT64 = 1, 7


def varint(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, dims, values):
    packed = struct.pack(f"<{len(values)}f", *values)
    return b"".join(number(1, d) for d in dims) + number(2, FLOAT) + message(8, name) + message(9, packed)


def value(name, dims):
    shape = b"".join(message(1, message(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return message(1, name) + message(2, message(1, number(1, FLOAT) + message(2, shape)))


def node(op, inputs, outputs, name):
    return b"".join(message(1, i) for i in inputs) + b"".join(message(2, o) for o in outputs) + message(3, name) + message(4, op)


def main():
    weights = [((3 * i + 5) % 7 - 3) / 4 for i in range(12)]
    graph = message(1, node("Gemm", ["x", "w", "bias"], ["logits"], "head")) + message(1, node("Softmax", ["logits"], ["probabilities"], "softmax"))
    graph += message(2, "classifier") + message(5, tensor("w", [4, 3], weights)) + message(5, tensor("bias", [3], [0.5, 0, -0.5]))
    graph += message(11, value("x", ["batch", 4])) + message(12, value("probabilities", ["batch", 3]))
    model = number(1, 8) + message(2, "tools/make_demo_onnx.py") + message(7, graph) + message(8, number(2, 17))
    path = pathlib.Path(__file__).parent.parent / "models" / "demo_onnx" / "classifier.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model)


if __name__ == "__main__":
    main()
