"""What operators refuse, and what they say; devices and frameworks that are not there."""

import numpy as np
import pytest
from dlpack_objects import Foreign
from rows import normalized

import cermet
from cermet.kernels import rms_norm

MISTAKES = [
    ("rms_norm", lambda x, w: (x, w[:4]), {}, r"rms_norm: .*weight.*f32\[4\]"),
    ("rms_norm", lambda x, w: (x.astype(np.complex64), w), {}, "rms_norm.*complex|element type"),
    ("rms_norm", lambda x, w: (x.astype(np.int32), w), {}, "rms_norm.*i32"),
    ("rms_norm", lambda x, w: (None, w), {}, "rms_norm"),
    ("rms_norm", lambda x, w: (x, w, w), {}, "at most 2 operands, found 3"),
    ("rms_norm", lambda x, w: (x, w), {"epsilon": 1.0}, "epsilon"),
    ("rms_nrom", lambda x, w: (x, w), {}, "rms_norm"),
]


@pytest.mark.parametrize("name, inputs, attributes, message", MISTAKES)
def test_mistakes_are_named(x, w, name, inputs, attributes, message):
    with pytest.raises(cermet.Error, match=message) as raised:
        cermet.get_op(name, inputs(x, w), attributes)
    assert isinstance(raised.value, ValueError) and raised.value.status == "invalid_argument"


def test_mistakes_of_python(x, w):
    with pytest.raises(TypeError, match=r"rms_norm: operand 1 .weight.: expected a tensor .* found str"):
        cermet.get_op("rms_norm", (x, "w"))
    with pytest.raises(TypeError, match="rms_norm: attribute .eps.: expected float, found .x."):
        rms_norm(x, w, eps="x")
    with pytest.raises(TypeError, match="transpose: attribute .permutation.: expected ints, found .10."):
        cermet.transpose(x, permutation="10")
    with pytest.raises(TypeError, match="topk: attribute .largest.: expected bool, found .no."):
        cermet.topk(x, k=np.int32(1), largest="no")
    assert cermet.topk(x, k=np.int32(1), largest=np.bool_(False))[0].shape == (6, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilon'"):
        rms_norm(x, w, epsilon=1)
    with pytest.raises(TypeError, match="keywords"):
        cermet.get_op("rms_norm", (x, w))(x, w, eps=1)
    with pytest.raises(ImportError, match="rms_nrom"):
        from cermet.kernels import rms_nrom  # noqa: F401
    with pytest.raises(AttributeError, match="rms_nrom"):
        cermet.rms_nrom  # noqa: B018


def test_calls_check_what_they_get(x, w):
    norm = cermet.get_op("rms_norm", (x, w))
    with pytest.raises(cermet.InvalidArgument, match="weight"):
        norm(x, w[:4])
    with pytest.raises(cermet.InvalidArgument, match="stream"):
        norm(x, w, stream=1)
    np.testing.assert_allclose(norm(x, w), normalized(x, w), rtol=1e-5)


def test_other_frameworks_by_dlpack(x, w):
    foreign = Foreign(x)
    y = rms_norm(foreign, w)
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, rms_norm(x, w))
    assert foreign.freed == len(foreign.streams) > 0 and set(foreign.streams) == {None}


def test_the_wrong_device(x, w):
    with pytest.raises(cermet.InvalidArgument, match="input 0 .x.: expected memory of the host, found memory of cuda:0"):
        cermet.get_op("rms_norm", (x, w))(Foreign(x, device=(2, 0)), w)
    with pytest.raises(cermet.Error, match="cuda"):
        cermet.get_op("rms_norm", (x, w), device="cudaa")


def test_a_gpu_that_is_not_there(x, w):
    gpu = Foreign(x, device=(2, 0)), Foreign(w, device=(2, 0))
    norm = cermet.get_op("rms_norm", gpu, device="null:sm_90")
    assert norm.infer(*gpu) == (("f32", (6, 8), -1),)
    assert set(gpu[0].streams) == {1}  # the default stream, by the number that DLPack has for it
    with pytest.raises(cermet.Unsupported, match="expected a device that computes"):
        norm(*gpu)


def test_types_without_tensors():
    linear = cermet.get_op("linear", (("bf16", (4, 8)), ("bf16", (16, 8))), out_dtype="f32", device="null")
    assert linear.infer(("bf16", (7, 8)), ("bf16", (16, 8))) == (("f32", (7, 16), -1),)


def test_a_closed_operator(x, w):
    norm = cermet.get_op("rms_norm", (x, w))
    norm.close()
    norm.close()
    for use in (lambda: norm(x, w), lambda: norm.kernel, lambda: norm.infer(x, w)):
        with pytest.raises(cermet.InvalidArgument, match="operator: expected one that is open, found one that was closed"):
            use()
