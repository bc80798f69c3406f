#!/usr/bin/env python3
"""Random networks of images, as wide as those in use: strict fusion must keep every bit of them, so that no block takes another kernel's sums.

usage: image_networks.py [--cermet PROGRAM] [--count N] [--first SEED]   prints the seeds that differ; exit code 1 where there are some
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTHS = [16, 24, 32, 64, 96, 128, 144, 192, 320]
MOST_OPERATIONS = 2e8  # of one convolution


class Network:
    """Values are (name, channels, rows, columns); a step that does not suit its operand adds nothing."""

    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []
        channels, rows = self.choose.choice([3, 16, 24, 32, 64, 96, 128, 192]), self.choose.choice([7, 14, 28, 29, 56])
        if channels >= 128:
            rows = min(rows, 28)
        self.samples = self.choose.choice([1, 1, 2])
        self.values = [("x", channels, rows, rows if self.choose.random() < 0.8 else rows + 3)]

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.float32), f"k{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])))

    def add(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def convolve(self, value, outputs, size, stride, group):
        name, channels, rows, columns = value
        if rows <= size or channels // group * outputs * size**2 * rows * columns / stride**2 > MOST_OPERATIONS:
            return None
        inputs = [name, self.weight(outputs, channels // group, size, size)]
        if self.choose.random() < 0.6:
            inputs.append(self.constant(self.random.standard_normal(outputs)))
        made = self.add("Conv", inputs, kernel_shape=[size] * 2, pads=[size // 2] * 4, strides=[stride] * 2, group=group)
        smaller = lambda extent: (extent + 2 * (size // 2) - size) // stride + 1
        return (made, outputs, smaller(rows), smaller(columns))

    def conv(self, value):
        return self.convolve(value, self.choose.choice(WIDTHS), self.choose.choice([1, 1, 1, 3, 3, 5]), self.choose.choice([1, 1, 1, 2]), 1)

    def depthwise(self, value):
        return self.convolve(value, value[1], self.choose.choice([3, 5, 7]), self.choose.choice([1, 2]), value[1])

    def activation(self, value):
        op = self.choose.choice(["Relu", "Sigmoid", "HardSwish", "Tanh", "Silu", "Clip"])
        if op == "Silu":
            return (self.add("Mul", [value[0], self.add("Sigmoid", [value[0]])]), *value[1:])
        return (self.add(op, [value[0]] + ([self.constant(0), self.constant(6)] if op == "Clip" else [])), *value[1:])

    def with_another(self, value):
        other = self.choose.choice([other for other in self.values if other[1:] == value[1:]])
        return (self.add(self.choose.choice(["Add", "Mul"]), [value[0], other[0]]), *value[1:])

    def concatenation(self, value):
        other = self.choose.choice([other for other in self.values if other[2:] == value[2:]])
        return (self.add("Concat", [value[0], other[0]], axis=1), value[1] + other[1], *value[2:]) if value[1] + other[1] <= 400 else None

    def pool(self, value):
        if value[2] < 4:
            return None
        made = self.add(self.choose.choice(["MaxPool", "AveragePool"]), [value[0]], kernel_shape=[2, 2], strides=[2, 2])
        return (made, value[1], value[2] // 2, value[3] // 2)

    def squeeze(self, value):
        channels, few = value[1], max(4, value[1] // 4)
        first = self.add("Conv", [self.add("GlobalAveragePool", [value[0]]), self.weight(few, channels, 1, 1)])
        second = self.add("Conv", [self.add("Relu", [first]), self.weight(channels, few, 1, 1)])
        return (self.add("Mul", [value[0], self.add("Sigmoid", [second])]), *value[1:])

    def batch_norm(self, value):
        parameters = [self.constant(np.abs(self.random.standard_normal(value[1])) + 0.1) for _ in range(4)]
        return (self.add("BatchNormalization", [value[0], *parameters]), *value[1:])

    def layer_norm(self, value):
        last = self.add("Transpose", [value[0]], perm=[0, 2, 3, 1])
        made = self.add("LayerNormalization", [last, self.constant(np.ones(value[1])), self.constant(np.zeros(value[1]))], axis=-1)
        return (self.add("Transpose", [made], perm=[0, 3, 1, 2]), *value[1:])

    def upsample(self, value):
        if value[2] > 28:
            return None
        made = self.add("Resize", [value[0], "", self.constant([1, 1, 2, 2])], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        return (made, value[1], 2 * value[2], 2 * value[3])

    def model(self):
        steps = [self.conv] * 3 + [self.activation] * 2 + [self.depthwise, self.with_another, self.with_another, self.concatenation]
        steps += [self.pool, self.squeeze, self.batch_norm, self.layer_norm, self.upsample]
        wanted = self.choose.randint(3, 7)
        while len(self.values) < wanted:
            if made := self.choose.choice(steps)(self.choose.choice(self.values[-2:])):
                self.values.append(made)
        read = {name for node in self.nodes for name in node.input}
        info = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.samples, *dims])
        outputs = [info(*value) for value in self.values[1:] if value[0] not in read or self.choose.random() < 0.08]
        graph = helper.make_graph(self.nodes, "g", [info(*self.values[0])], outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cermet", default="build/bin/cermet")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.count):
            path = pathlib.Path(folder) / f"{seed}.onnx"
            onnx.save(Network(seed).model(), path)
            done = subprocess.run([args.cermet, "bisect", path, "--tolerance", "0"], capture_output=True, text=True, env={**os.environ, "CERMET_ROUNDING": "exact"})
            path.unlink()
            if done.returncode != 0 or "culprit      none" not in done.stdout:
                differing += 1
                print(f"seed {seed}:\n{done.stdout}{done.stderr}")
    print(f"{args.count} networks, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
