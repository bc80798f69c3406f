"""Operators on NumPy's tensors."""

import pathlib
import sys
import threading
import time

import numpy as np
import pytest
from dlpack_objects import Foreign

import cermet
from cermet.kernels import rms_norm


def normalized(x, weight, eps=1e-6):
    x = x.astype(np.float64)
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight).astype(np.float32)


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal((6, 8)).astype(np.float32)


@pytest.fixture
def w():
    return np.linspace(0.5, 2, 8, dtype=np.float32)


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
    with pytest.raises(cermet.InvalidArgument, match="input 0 .x.: expected contiguous trailing dimensions, found strides"):
        rms_norm(np.zeros((6, 16), np.float32)[:, ::2], w)
    with pytest.raises(cermet.InvalidArgument, match="negative|contiguous"):
        rms_norm(x[:, ::-1], w)
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
    with pytest.raises(TypeError, match="rms_norm: input 1: expected a tensor .* found str"):
        cermet.get_op("rms_norm", (x, "w"))
    with pytest.raises(TypeError, match="eps: expected float, found 'x'"):
        rms_norm(x, w, eps="x")
    with pytest.raises(TypeError, match="permutation: expected ints, found '10'"):
        cermet.transpose(x, permutation="10")
    with pytest.raises(TypeError, match="largest: expected bool, found 'no'"):
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
    with pytest.raises(cermet.InvalidArgument, match=r"input 0 .x.: expected memory of the host \(kDLCPU\), found memory of cuda:0 \(kDLCUDA\)"):
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


def test_threads_share_an_operator(w):
    norm = cermet.get_op("rms_norm", (w[None], w))
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(50):
            x = random.standard_normal((random.integers(1, 40), 8)).astype(np.float32)
            if not np.allclose(norm(x, w), normalized(x, w), rtol=1e-4):
                failures.append(x.shape)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_python_runs_while_the_library_computes():
    a = np.ones((1500, 1500), np.float32)
    matmul = cermet.get_op("matmul", (a, a))
    seen = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # a thread gives up Python's lock only where it releases it
    try:
        for _ in range(5):
            state = {"begun": False, "done": False}

            def work(state=state):
                state["begun"] = True
                matmul(a, a)
                state["done"] = True

            thread = threading.Thread(target=work)
            thread.start()
            while not state["begun"]:
                time.sleep(0)
            seen.append(state["done"])
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not all(seen)


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
