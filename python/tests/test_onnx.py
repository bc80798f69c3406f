"""ONNX models."""

import numpy as np
import pytest

import cermet


@pytest.fixture
def path(source):
    return source / "models/demo_onnx/classifier.onnx"


def test_a_model_on_arrays(path):
    model = cermet.OnnxModel(path, ranges={"batch": (1, 8)})
    assert [v.name for v in model.inputs] == ["x"] and model.inputs[0].dtype == "f32" and model.inputs[0].shape[0] == "batch"
    assert "probabilities" in [v.name for v in model.outputs]
    for batch in (1, 2, 8):
        results = model.run({"x": np.ones((batch, 4), np.float32)})
        np.testing.assert_allclose(results["probabilities"], np.tile([[0.466, 0.171, 0.363]], (batch, 1)), atol=1e-3)
    assert model.compiled_count == 1
    positional = model(np.ones((2, 4), np.float32))
    by_name = model(x=np.ones((2, 4), np.float32))
    np.testing.assert_array_equal(np.asarray(positional), np.asarray(by_name))


def test_results_are_the_callers(path):
    model = cermet.OnnxModel(path)
    first = model.run({"x": np.ones((1, 4), np.float32)})["probabilities"]
    kept = first.copy()
    model.run({"x": np.zeros((1, 4), np.float32)})
    np.testing.assert_array_equal(first, kept)


def test_mistakes(path, tmp_path):
    model = cermet.OnnxModel(path, ranges={"batch": (1, 8)})
    with pytest.raises(cermet.InvalidArgument, match="batch"):
        model(np.ones((9, 4), np.float32))
    with pytest.raises(cermet.InvalidArgument, match="x"):
        model(np.ones((2, 4), np.float64))
    np.testing.assert_array_equal(model(np.ones((2, 8), np.float32)[:, ::2]), model(np.ones((2, 4), np.float32)))  # copied
    with pytest.raises(TypeError, match=r"expected inputs \['x'\], found 0 without a name and \['y'\]"):
        model(y=np.ones((2, 4), np.float32))
    with pytest.raises(TypeError, match="found 0 without a name"):
        model()
    with pytest.raises(cermet.InvalidArgument, match="no_such_dimension"):
        cermet.OnnxModel(path, ranges={"no_such_dimension": 3})
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(cermet.InvalidFile, match="broken.onnx"):
        cermet.OnnxModel(broken)
    with pytest.raises(OSError):
        cermet.OnnxModel(tmp_path / "none.onnx")
    model.close()
    with pytest.raises(cermet.InvalidArgument, match="closed"):
        model(np.ones((2, 4), np.float32))


def test_a_device_that_computes_nothing(path):
    model = cermet.OnnxModel(path, device="null")
    with pytest.raises(cermet.Unsupported, match="computes"):
        model(np.ones((2, 4), np.float32))
