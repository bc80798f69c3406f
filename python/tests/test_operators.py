"""Operators on NumPy's tensors."""

import pathlib
import sys

import numpy as np
import pytest
from rows import normalized

import cermet
from cermet.kernels import rms_norm


def test_an_operator_by_name(x):
    b = np.arange(24, dtype=np.float32).reshape(8, 3)
    matmul = cermet.get_op("matmul", (x, b))
    y = matmul(x, b)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    np.testing.assert_allclose(y, x @ b, rtol=1e-5, atol=1e-5)
    assert matmul.name == "matmul" and matmul.kernel and "matmul" in repr(matmul)


def test_other_shapes_and_types_of_the_same_operator(x, w):
    norm = cermet.get_op("rms_norm", (x, w))
    for rows in (1, 2, 3, 100, 6):
        more = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        np.testing.assert_allclose(norm(more, w), normalized(more, w), rtol=1e-5)
    half = norm(x.astype(np.float16), w.astype(np.float16))
    assert half.dtype == np.float16
    before = norm.bound_count
    norm(x, w), norm(x.astype(np.float16), w.astype(np.float16))
    assert norm.bound_count == before


def test_functions_and_attributes(x, w):
    np.testing.assert_allclose(rms_norm(x, w, eps=0.5), normalized(x, w, 0.5), rtol=1e-5)
    np.testing.assert_allclose(rms_norm(x, None, eps=0.5), normalized(x, 1, 0.5), rtol=1e-5)
    np.testing.assert_allclose(cermet.rms_norm(x, w), normalized(x, w), rtol=1e-5)
    assert cermet.get_op("rms_norm", (x, w), out_dtype=None)(x, w).dtype == np.float32
    np.testing.assert_allclose(cermet.get_op("rms_norm", (x, w), {"eps": 0.5})(x, w), normalized(x, w, 0.5), rtol=1e-5)
    assert cermet.transpose(x, permutation=[1, 0]).shape == (8, 6)
    assert cermet.transpose(x, permutation=(0, 1)).shape == (6, 8)


def test_several_results(x):
    values, indices = cermet.topk(x, k=2)
    np.testing.assert_array_equal(values, -np.sort(-x, -1)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(x, indices.astype(np.int64), -1), values)


def test_a_variable_number_of_operands_and_results(x):
    joined = cermet.concat([x, x, x], axis=0)
    np.testing.assert_array_equal(joined, np.concatenate([x, x, x]))
    parts = cermet.get_op("split", (joined,), axis=0, sizes=[6, 12])(joined)
    assert isinstance(parts, tuple) and [p.shape for p in parts] == [(6, 8), (12, 8)]
    whole = cermet.get_op("split", (x,), axis=0, sizes=[6])(x)
    assert isinstance(whole, tuple) and len(whole) == 1


def test_memory_of_the_caller(x, w):
    out = np.full((6, 8), -1, np.float32)
    assert rms_norm(x, w, out=out) is out
    np.testing.assert_allclose(out, normalized(x, w), rtol=1e-5)
    in_place = x.copy()
    assert rms_norm(in_place, w, out=in_place) is in_place
    np.testing.assert_array_equal(in_place, out)
    with pytest.raises(cermet.InvalidArgument, match=r"output 0.*expected f32\[M, 8\] with M = 6, found \[6, 7\]"):
        rms_norm(x, w, out=np.zeros((6, 7), np.float32))
    out.flags.writeable = False
    with pytest.raises((cermet.InvalidArgument, BufferError)):
        rms_norm(x, w, out=out)


def test_state_is_updated_in_place():
    cache = np.zeros((2, 1, 8, 4), np.float32)
    k = np.ones((1, 1, 4), np.float32)
    schema = cermet.schemas.schema_of("kv_cache_write")
    assert [o.shares for o in schema.outputs][:2] == ["k_cache", "v_cache"]
    v_cache = cache.copy()
    given = {"k": k, "v": 2 * k, "slots": np.array([5], np.int32), "k_cache": cache, "v_cache": v_cache}
    results = cermet.kv_cache_write(*(given.get(i.name) for i in schema.inputs))
    assert results[0] is cache and results[1] is v_cache
    assert cache.sum() == 4 and v_cache.sum() == 8


def test_views_are_read_where_they_are(x, w):
    wide = np.zeros((6, 20), np.float32)
    wide[:, 4:12] = x
    np.testing.assert_array_equal(rms_norm(wide[:, 4:12], w), rms_norm(x, w))
    frozen = x.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(rms_norm(frozen, w), rms_norm(x, w))


def test_sixteen_and_eight_bits(x, w):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = x.astype(ml_dtypes.bfloat16)
    y = rms_norm(half, w.astype(ml_dtypes.bfloat16))
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(y.astype(np.float32), normalized(half.astype(np.float32), w.astype(ml_dtypes.bfloat16).astype(np.float32)), rtol=2e-2)
    f8 = cermet.cast(x, out_dtype=ml_dtypes.float8_e4m3fn)
    assert f8.dtype == ml_dtypes.float8_e4m3fn
    np.testing.assert_array_equal(f8.astype(np.float32), x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32))
    np.testing.assert_array_equal(cermet.cast(f8, out_dtype="f32"), f8.astype(np.float32))


def test_bool_and_integers(x):
    mask = cermet.greater(x, np.zeros_like(x))
    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(mask, x > 0)
    np.testing.assert_array_equal(cermet.where(mask, x, -x), np.abs(x))
    a = np.arange(12, dtype=np.int64).reshape(3, 4)
    np.testing.assert_array_equal(cermet.add(a, a), a + a)


def test_constants_are_packed_once(x):
    w = np.random.default_rng(2).standard_normal((5, 8)).astype(np.float32)
    linear = cermet.get_op("linear", (x, cermet.weight(w)))
    np.testing.assert_allclose(linear(x), x @ w.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(linear(x[:1], None), x[:1] @ w.T, rtol=1e-4, atol=1e-5)
    with pytest.raises(cermet.InvalidArgument, match="constant"):
        linear(x, w)


def test_a_kernel_by_name(x):
    w = np.ones((5, 8), np.float32)
    kernels = [c["kernel"] for c in cermet.explain("linear", (x, w))["candidates"] if c["decline"] is None]
    for name in kernels:
        linear = cermet.get_op("linear", (x, w), kernel=name)
        assert linear.kernel == name
        np.testing.assert_allclose(linear(x, w), x @ w.T, rtol=1e-4, atol=1e-5)
    with pytest.raises(cermet.Error, match="no_such_kernel"):
        cermet.get_op("linear", (x, w), kernel="no_such_kernel")


def test_an_attribute_named_kernel():
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    pool = cermet.get_op("max_pool", (x,), kernel=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(pool(x)[0, 0], [[5, 7], [13, 15]])
    y, places = cermet.max_pool(x, kernel=[2, 2], strides=[2, 2], with_indices=True)  # a result that only this attribute brings
    np.testing.assert_array_equal(x.reshape(-1)[places], y)


def test_signs_of_zero_are_different_attributes():
    x = np.array([-1.0, 1.0], np.float32)
    low = cermet.clip(x, low=0.0, high=1.0)
    signed = cermet.clip(x, low=-0.0, high=1.0)
    assert not np.signbit(low[0]) and np.signbit(signed[0]) == np.signbit(cermet.get_op("clip", (x,), low=-0.0, high=1.0)(x)[0])


def test_tensors_are_let_go(x, w):
    norm = cermet.get_op("rms_norm", (x, w))
    out = np.empty_like(x)
    before = [sys.getrefcount(tensor) for tensor in (x, w, out)]
    for _ in range(100):
        norm(x, w)
        norm(x, w, out=out)
        with pytest.raises(cermet.InvalidArgument):
            norm(x, w[:4])
        with pytest.raises(cermet.InvalidArgument):
            norm(x, w, out=out[:2])
    assert [sys.getrefcount(tensor) for tensor in (x, w, out)] == before
    constant = cermet.get_op("linear", (x, cermet.weight(w[None])))
    constant.close()


def test_a_constant_is_kept_by_its_operator(x):
    w = np.ones((5, 8), np.float32)
    before = sys.getrefcount(w)
    linear = cermet.get_op("linear", (x, cermet.weight(w)))
    assert sys.getrefcount(w) > before
    linear.close()
    assert sys.getrefcount(w) == before


def test_attributes_that_change_do_not_pile_up(x):
    run = cermet.kernels.rms_norm.__globals__["_run"]
    for i in range(2 * run.kept):
        rms_norm(x, None, eps=1e-3 * (i + 1))
    assert len(run._operators) <= run.kept


def test_the_version(source: pathlib.Path):
    assert cermet.__version__ in (source / "CMakeLists.txt").read_text()
    assert "rms_norm" in dir(cermet) and "Model" in dir(cermet)
