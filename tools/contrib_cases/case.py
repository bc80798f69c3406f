"""A case: one operator with operands, and how near to onnxruntime its results must be."""

import dataclasses
import zlib

import numpy as np


@dataclasses.dataclass
class Case:
    name: str
    op: str
    inputs: list  # arrays; None where an operand is not given
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: tuple = (True,)  # which results have a name
    constant: tuple = ()  # operands that the file holds
    domain: str = "com.microsoft"
    opset: int = 17
    ml: int = 3
    tolerance: float = 2e-5
    units: int = 0
    like: "Case | None" = None  # what onnxruntime runs instead
    changed: object = None  # what makes of its results those of this case
    types: tuple = ()  # ONNX types of results, where onnxruntime cannot infer them


class Values:
    """Operands that depend on a case's name alone."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape, scale=1.0, dtype=np.float32):
        return np.asarray(self.random.standard_normal(shape) * scale).astype(dtype)

    def positive(self, *shape, low=0.01, high=0.05, dtype=np.float32):
        return np.asarray(self.random.uniform(low, high, shape)).astype(dtype)

    def whole(self, low, high, *shape, dtype=np.int64):
        return np.asarray(self.random.integers(low, high + 1, shape)).astype(dtype)

    def bytes(self, *shape, dtype=np.uint8):
        limits = np.iinfo(dtype)
        return self.whole(limits.min, limits.max, *shape, dtype=dtype)
