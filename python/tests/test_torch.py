"""Operators on PyTorch's tensors."""

import gc
import sys
import weakref

import numpy as np
import pytest
import torch

import cermet
from cermet.kernels import rms_norm


@pytest.fixture
def x():
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def w():
    return torch.linspace(0.5, 2, 8)


def normalized(x, w, eps=1e-6):
    return torch.nn.functional.rms_norm(x.float(), (x.shape[-1],), w.float(), eps)


def test_results_are_tensors(x, w):
    y = rms_norm(x, w)
    assert type(y) is torch.Tensor and y.is_contiguous()
    torch.testing.assert_close(y, normalized(x, w))
    matmul = cermet.get_op("matmul", (x, w[:, None]))
    torch.testing.assert_close(matmul(x, w[:, None]), x @ w[:, None])
    out = torch.empty(6, 8)
    assert rms_norm(x, w, out=out) is out
    torch.testing.assert_close(out, y, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_types(x, w, dtype):
    y = rms_norm(x.to(dtype), w.to(dtype))
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), normalized(x.to(dtype), w.to(dtype)), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_eight_bit_floats(x, dtype):
    y = cermet.cast(x, out_dtype=dtype)
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), x.to(dtype).float(), rtol=0, atol=0)
    torch.testing.assert_close(cermet.cast(y, out_dtype=torch.float32), y.float(), rtol=0, atol=0)


def test_bool(x):
    mask = cermet.greater(x, torch.zeros_like(x))
    assert mask.dtype == torch.bool
    torch.testing.assert_close(cermet.where(mask, x, -x), x.abs(), rtol=0, atol=0)


def test_the_same_bits_as_numpy(x, w):
    np.testing.assert_array_equal(rms_norm(x, w).numpy(), rms_norm(x.numpy(), w.numpy()))


def test_views_are_not_copied(x, w):
    wide = torch.zeros(6, 20)
    wide[:, 4:12] = x
    out = torch.zeros(6, 20)
    rms_norm(wide[:, 4:12], w, out=out[:, 4:12])
    torch.testing.assert_close(out[:, 4:12], rms_norm(x, w), rtol=0, atol=0)
    assert out[:, :4].abs().sum() == 0


def test_gradients_are_not_forgotten_silently(x, w):
    w.requires_grad_()
    with pytest.raises(cermet.InvalidArgument, match="rms_norm: input 1 .weight.: expected a tensor that no gradient is wanted of"):
        rms_norm(x, w)
    with torch.no_grad():
        torch.testing.assert_close(rms_norm(x, torch.nn.Parameter(w)), normalized(x, w))


def test_tensors_without_memory_are_refused(x, w):
    with pytest.raises((cermet.Error, RuntimeError, BufferError, ValueError)):
        rms_norm(x.to("meta"), w)
    with pytest.raises((cermet.Error, RuntimeError, BufferError, TypeError)):
        rms_norm(x.to_sparse(), w)


def test_memory_is_given_back(x, w):
    y = rms_norm(x, w)
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None
    before = sys.getrefcount(x), sys.getrefcount(w), x._version
    for _ in range(100):
        rms_norm(x, w)
        with pytest.raises(cermet.InvalidArgument):
            rms_norm(x, w[:4])
    assert (sys.getrefcount(x), sys.getrefcount(w), x._version) == before


def test_model_results_of_onnx(source):
    model = cermet.OnnxModel(source / "models/demo_onnx/classifier.onnx")
    results = model.run({"x": torch.ones(2, 4)})
    assert all(type(r) is torch.Tensor for r in results.values())
    torch.testing.assert_close(results["probabilities"][0], torch.tensor([0.466, 0.171, 0.363]), atol=1e-3, rtol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")
def test_the_current_stream_of_a_gpu(x, w):
    x, w = x.cuda(), w.cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        big = torch.randn(4096, 8192, device="cuda")
        ones = torch.ones(8192, device="cuda")
        y = rms_norm(big, ones)
    stream.synchronize()
    torch.testing.assert_close(y, normalized(big, ones), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(rms_norm(x, w), normalized(x, w))
    with pytest.raises(cermet.InvalidArgument, match="cuda:0"):
        rms_norm(x, w.cpu())


def test_operands_in_any_layout():
    a, b = torch.randn(4, 6), torch.randn(5, 6)
    torch.testing.assert_close(cermet.matmul(a, b.T), a @ b.T)
    torch.testing.assert_close(cermet.linear(a, b.T.contiguous().T), a @ b.T)
    torch.testing.assert_close(cermet.softmax(a[:, ::2]), torch.softmax(a[:, ::2], -1))
    torch.testing.assert_close(cermet.softmax(a.T), torch.softmax(a.T, -1))
    torch.testing.assert_close(cermet.rms_norm(a[:1].expand(4, 6)), cermet.rms_norm(a[:1].repeat(4, 1)))
    out = torch.zeros(6, 4).T
    assert cermet.rms_norm(a, out=out) is out
    torch.testing.assert_close(out, cermet.rms_norm(a))
    packed = cermet.get_op("linear", (a, cermet.weight(b.T.contiguous().T)))
    torch.testing.assert_close(packed(a), a @ b.T)


def test_scaled_mm_as_torch_calls_it():
    a, w = torch.randint(-9, 9, (4, 16), dtype=torch.int8), torch.randint(-9, 9, (16, 16), dtype=torch.int8)
    a_scale, b_scale = torch.rand(4, 1), torch.rand(1, 16)
    expected = (a.double() * a_scale) @ (w.T.double() * b_scale)
    torch.testing.assert_close(cermet.scaled_mm(a, w.t(), a_scale, b_scale).double(), expected, rtol=1e-5, atol=1e-6)
    f8 = torch.float8_e4m3fn
    y = cermet.scaled_mm(a.float().to(f8), w.float().to(f8).t(), a_scale, b_scale)
    torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-4)


def test_numbers_and_float64():
    a = torch.randn(4, 6, dtype=torch.bfloat16)
    torch.testing.assert_close(cermet.add(a, 1.0), a + 1)
    torch.testing.assert_close(cermet.where(a > 0, a, 0), torch.relu(a))
    assert cermet.rms_norm(a.double()).dtype == torch.float32
    assert cermet.add(a, a.double()).dtype == torch.bfloat16
    with pytest.raises(cermet.InvalidArgument, match=r"\(b\): .* \(b.to\(torch.bfloat16\) casts it\)"):
        cermet.add(a, a.float())
