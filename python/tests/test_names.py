"""Names of the package: every operator is found under its own."""

import importlib
import pathlib
import pkgutil

import numpy as np
import pytest

import cermet
from cermet import _native, kernels, nodes


def test_every_operator_is_what_its_name_gives():
    for module in pkgutil.iter_modules([str(pathlib.Path(cermet.__file__).parent)]):  # a module becomes an attribute of the package
        if module.name not in ("torch", "_native"):
            importlib.import_module(f"cermet.{module.name}")
    for name in kernels.__all__:
        assert getattr(cermet, name) is getattr(kernels, name), name


def test_every_operator_is_a_method_of_a_graph():
    for name in nodes.GraphOperators().__dir__():
        if name.rstrip("_") in _native.op_names():
            assert name not in vars(cermet.Graph), name


def test_quantize_is_the_operator():
    q = cermet.quantize(np.float32([0.4, 1.6, -3]), np.float32(1.0))
    np.testing.assert_array_equal(q if isinstance(q, np.ndarray) else q[0], np.int8([0, 2, -3]))
    with pytest.raises(TypeError, match="calibration"):
        cermet.quantize("models/demo", "out", calibration="c.jsonl")
