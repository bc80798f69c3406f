"""Operands as NumPy's users have them: transposed, strided, of float64, numbers; what is read as it lies, what is copied and what is refused."""

import numpy as np
import pytest
from rows import normalized

import cermet

RANDOM = np.random.default_rng(3)


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


VIEWS = {
    "transposed": lambda a: np.asfortranarray(a),
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "columns backwards": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "a slice": lambda a: np.pad(a, [(0, 0)] * (a.ndim - 1) + [(2, 3)])[..., 2:-3],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim > 1 else a,
    "a field of records": lambda a: _field(a),
    "read-only": lambda a: _frozen(a),
}


def _field(a):
    made = np.zeros(a.shape, [("mark", "i1"), ("value", a.dtype)])
    made["value"] = a
    return made["value"]


def _frozen(a):
    made = a.copy()
    made.flags.writeable = False
    return made


CALLS = {
    "matmul": (lambda a, b: cermet.matmul(a, b), numbers(4, 6), numbers(6, 5)),
    "matmul of stacks": (lambda a, b: cermet.matmul(a, b), numbers(3, 4, 6), numbers(3, 6, 5)),
    "linear": (lambda x, w: cermet.linear(x, w), numbers(4, 6), numbers(5, 6)),
    "softmax": (lambda x: cermet.softmax(x), numbers(4, 6)),
    "rms_norm": (lambda x, w: cermet.rms_norm(x, w), numbers(4, 6), numbers(6)),
    "add": (lambda a, b: cermet.add(a, b), numbers(4, 6), numbers(4, 6)),
    "conv": (lambda x, w: cermet.conv(x, w), numbers(1, 2, 5, 5), numbers(3, 2, 3, 3)),
    "topk": (lambda x: cermet.topk(x, k=2)[1], numbers(4, 6)),
    "concat": (lambda a, b: cermet.concat([a, b], axis=0), numbers(4, 6), numbers(2, 6)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", CALLS)
def test_operands_in_any_layout(name, view):
    run, *operands = CALLS[name]
    for i in range(len(operands)):
        given = list(operands)
        given[i] = VIEWS[view](operands[i])
        dense = [np.ascontiguousarray(operand) for operand in given]
        np.testing.assert_allclose(run(*given), run(*dense), rtol=1e-5, atol=1e-6, err_msg=f"operand {i}")


def test_a_transposed_last_operand_of_a_product_is_taken_as_it_lies(monkeypatch):
    a, b = numbers(4, 6), numbers(5, 6)
    monkeypatch.setattr(cermet.operands, "_copy", None)  # nothing may be copied
    np.testing.assert_allclose(cermet.matmul(a, b.T), a @ b.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cermet.matmul(np.asfortranarray(a), b.T), a @ b.T, rtol=1e-5, atol=1e-6)
    product = cermet.get_op("matmul", (a, cermet.weight(b.T)))
    np.testing.assert_allclose(product(a), a @ b.T, rtol=1e-5, atol=1e-6)
    square = numbers(6, 6)
    np.testing.assert_allclose(cermet.matmul(a, square.T), a @ square.T, rtol=1e-5, atol=1e-6)
    with pytest.raises(cermet.InvalidArgument, match=r"operand 1 \(b\): expected dimension -2 to be 6 \(K of a\), found f32\[5, 6\]"):
        cermet.matmul(a, np.asfortranarray(b))


def test_constants_in_any_layout():
    x, w = numbers(4, 6), numbers(6, 5)
    for of in (w.T, np.asfortranarray(w.T), np.repeat(w.T, 2, -1)[:, ::2], w.T[::-1]):
        np.testing.assert_allclose(cermet.get_op("linear", (x, cermet.weight(of)))(x), x @ of.T, rtol=1e-5, atol=1e-6)


def scaled(a, b, a_scale, b_scale):
    return (a.astype(np.float64) * a_scale) @ (b.astype(np.float64) * b_scale)


@pytest.mark.parametrize("n", [5, 16])
def test_scaled_mm_as_torch_calls_it(n):
    a, w = RANDOM.integers(-9, 9, (4, 16), np.int8), RANDOM.integers(-9, 9, (n, 16), np.int8)
    a_scale, b_scale = np.abs(numbers(4, 1)), np.abs(numbers(1, n))
    expected = scaled(a, w.T, a_scale, b_scale)
    for b in (w, w.T):
        np.testing.assert_allclose(cermet.scaled_mm(a, b, a_scale, b_scale), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(cermet.scaled_mm(a, b, a_scale[:, 0], b_scale.T), expected, rtol=1e-5, atol=1e-6)
        one = np.float32([[0.5]])
        np.testing.assert_allclose(cermet.scaled_mm(a, b, one, one), scaled(a, w.T, 0.5, 0.5), rtol=1e-5, atol=1e-6)
        constant = cermet.get_op("scaled_mm", (a, cermet.weight(b), a_scale, b_scale))
        np.testing.assert_allclose(constant(a, None, a_scale, b_scale), expected, rtol=1e-5, atol=1e-6)
    strided = np.repeat(a_scale, 2, -1)[:, :1]  # [M, 1] with strides (2, 1)
    np.testing.assert_allclose(cermet.scaled_mm(a, w, strided, b_scale), expected, rtol=1e-5, atol=1e-6)


def test_scaled_mm_says_what_it_takes():
    a, b = np.ones((4, 16), np.int8), np.ones((16, 5), np.int8)
    with pytest.raises(cermet.InvalidArgument, match=r"operand 1 \(b\): expected \[N, 16\] \(K of a\), or the transpose of that.*found i8\[16, 5\]"):
        cermet.scaled_mm(a, b)
    with pytest.raises(cermet.InvalidArgument, match=r"\(b\): expected dimension 1 to be 16 \(K of a\).*transposed"):
        cermet.scaled_mm(a, np.ones((5, 12), np.int8).T)


def test_block_scales_by_columns():
    a, w = RANDOM.integers(-9, 9, (4, 256), np.int8), RANDOM.integers(-9, 9, (256, 256), np.int8)
    a_scale, b_scale = np.abs(numbers(4, 2)), np.abs(numbers(2, 2))
    expected = cermet.scaled_mm(a, w, a_scale, b_scale)
    np.testing.assert_array_equal(cermet.scaled_mm(a, w.T, np.asfortranarray(a_scale), np.asfortranarray(b_scale)), expected)


def test_results_with_strides():
    x = numbers(4, 6)
    expected = normalized(x, 1)
    for out in (np.zeros((6, 4), np.float32).T, np.zeros((4, 12), np.float32)[:, ::2], np.zeros((4, 6), np.float32)[::-1]):
        assert cermet.rms_norm(x, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-5)
    values, indices = np.zeros((2, 4), np.float32).T, np.zeros((2, 4), np.int32).T
    given = cermet.topk(x, k=2, out=(values, indices))
    assert given[0] is values and given[1] is indices
    np.testing.assert_array_equal(np.take_along_axis(x, indices.astype(np.int64), -1), values)
    with pytest.raises(cermet.InvalidArgument, match=r"output 0 \(y\): expected f32"):
        cermet.rms_norm(x, out=np.zeros((6, 4), np.float64).T)
    with pytest.raises(cermet.InvalidArgument, match=r"output 0 \(y\)"):
        cermet.rms_norm(x, out=np.zeros((6, 1), np.float32).T)


def test_a_strided_operand_in_place():
    wide = numbers(4, 12)
    x = wide[:, ::2]
    expected = normalized(x.copy(), 1)
    assert cermet.rms_norm(x, out=x) is x
    np.testing.assert_allclose(wide[:, ::2], expected, rtol=1e-5)


def test_state_is_never_copied():
    cache = np.zeros((2, 1, 8, 8), np.float32)[..., ::2]
    k, slots = np.ones((1, 1, 4), np.float32), np.array([5], np.int32)
    with pytest.raises(cermet.InvalidArgument, match="k_cache.*contiguous"):
        cermet.kv_cache_write(k, k, cache, cache.copy(), slots)


def test_caches_of_one_allocation():
    caches = np.zeros((2, 2, 1, 8, 4), np.float32)  # [blocks, k or v, heads, block, D]
    k, slots = np.ones((1, 1, 4), np.float32), np.array([5], np.int32)
    cermet.kv_cache_write(k, 2 * k, caches[:, 0], caches[:, 1], slots)
    assert caches[0, 0].sum() == 4 and caches[0, 1].sum() == 8 and caches.sum() == 12


def test_rope_in_place_on_slices_of_one_matrix():
    qkv = numbers(3, 6, 8)  # 4 heads of q, one of k, one of v
    angles = numbers(16, 4)
    positions = np.arange(3, dtype=np.int32)
    q, k, v = qkv[:, :4], qkv[:, 4:5], qkv[:, 5:].copy()
    names = [operand.name for operand in cermet.schemas.schema_of("rope").inputs]
    given = {"q": q, "k": k, "cos": np.cos(angles), "sin": np.sin(angles), "positions": positions}
    expected = cermet.rope(*(given[name].copy() for name in names))
    cermet.rope(*(given[name] for name in names), out=(q, k))
    np.testing.assert_array_equal(qkv[:, :4], expected[0])
    np.testing.assert_array_equal(qkv[:, 4:5], expected[1])
    np.testing.assert_array_equal(qkv[:, 5:], v)


def test_float64():
    wide = np.linspace(0, 1, 24).reshape(4, 6)
    y = cermet.rms_norm(wide)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, cermet.rms_norm(wide.astype(np.float32)))
    assert cermet.add(wide, wide).dtype == np.float64  # computed in float64 where all operands are and the operator does
    narrow = wide.astype(np.float32)
    np.testing.assert_array_equal(cermet.add(narrow, wide), narrow + narrow)
    half = wide.astype(np.float16)
    assert cermet.add(half, wide).dtype == np.float16
    assert cermet.rms_norm(half, np.ones(6)).dtype == np.float16
    assert cermet.get_op("rms_norm", (wide,))(wide).dtype == np.float32
    assert cermet.get_op("linear", (wide, cermet.weight(np.ones((5, 6)))))(wide).dtype == np.float32
    a = RANDOM.integers(-9, 9, (4, 6), np.int8)
    assert cermet.scaled_mm(a, a, np.float64(0.5)).dtype == np.float32


def test_numbers():
    x = numbers(4, 6)
    np.testing.assert_array_equal(cermet.add(x, 1.0), x + 1)
    np.testing.assert_array_equal(cermet.add(1, x), 1 + x)
    np.testing.assert_array_equal(cermet.mul(x.astype(np.float16), 2), x.astype(np.float16) * 2)
    np.testing.assert_array_equal(cermet.sub(2.5, x), np.float32(2.5) - x)
    whole = np.arange(6)
    assert cermet.add(whole, 1).dtype == np.int64
    np.testing.assert_array_equal(cermet.add(whole.astype(np.uint8), 200), whole.astype(np.uint8) + np.uint8(200))
    np.testing.assert_array_equal(cermet.greater(x, 0), x > 0)
    np.testing.assert_array_equal(cermet.where(x > 0, x, 0.0), np.maximum(x, 0))
    np.testing.assert_array_equal(cermet.where(x > 0, 1.0, 0.0), np.float32(x > 0))
    np.testing.assert_array_equal(cermet.add(x, np.float32(1)), x + 1)
    np.testing.assert_array_equal(cermet.add(x, np.array(1, np.float32)), x + 1)
    np.testing.assert_array_equal(cermet.add(x, np.float64(1)), x + 1)
    np.testing.assert_array_equal(cermet.get_op("add", (x, 1.0))(x, 3.0), x + 3)


def test_numbers_that_the_type_has_not():
    whole = np.arange(6, dtype=np.int32)
    with pytest.raises(cermet.InvalidArgument, match=r"add: operand 1 \(b\): expected a whole number beside i32 \(a\), found 1.5"):
        cermet.add(whole, 1.5)
    with pytest.raises(cermet.InvalidArgument, match=r"add: operand 0 \(a\): expected a number from 0 to 255 beside u8 \(b\), found 300"):
        cermet.add(300, whole.astype(np.uint8))
    with pytest.raises(TypeError, match=r"add: operand 0 \(a\): expected a tensor .*, found float"):
        cermet.add(1.0, 2.0)
    with pytest.raises(TypeError, match=r"softmax: operand 0 \(x\): expected a tensor .*, found list; np.asarray"):
        cermet.softmax([1, 2])
    with pytest.raises(TypeError, match=r"rms_norm: operand 1 \(weight\): expected a tensor .*, found float"):
        cermet.rms_norm(numbers(4, 6), 1.0)


@pytest.mark.parametrize(
    "array, words",
    [
        (np.array([1, "x"], object), r"one of objects \(object\); astype"),
        (np.array(["a", "b"]), r"one of strings \(<U1\); astype"),
        (np.arange(4, dtype=">f4"), r"one of other byte order \(>f4\); astype\(dtype.newbyteorder"),
        (np.arange(4).astype("M8[s]"), "one of dates"),
        (np.zeros(4, [("a", "f4")]), "one of records"),
    ],
)
def test_arrays_that_are_no_numbers(array, words):
    with pytest.raises(cermet.InvalidArgument, match=r"softmax: input 0 \(x\): expected .* found " + words):
        cermet.softmax(array)
    with pytest.raises(cermet.InvalidArgument, match=r"rms_norm: input 1 \(weight\): expected .* found " + words):
        cermet.get_op("rms_norm", (numbers(2, 4), array))
    with pytest.raises(cermet.InvalidArgument, match=r"rms_norm: output 0 \(y\): expected .* found " + words):
        cermet.rms_norm(numbers(2, 4), out=array)


def test_refusals_say_what_helps():
    x = numbers(4, 6)
    with pytest.raises(cermet.InvalidArgument, match=r"\(b\): expected f32 .* \(b.astype\('float32'\) casts it\)"):
        cermet.add(x, x.astype(np.float16))
    with pytest.raises(cermet.InvalidArgument, match=r"\(x\): .* \(x.astype\('\w+'\) casts it\)"):
        cermet.rms_norm(x.astype(np.int32))


def test_one_operand_by_itself():
    x = numbers(3, 4)
    for inputs in (x, (x,), [x], ("f32", (3, 4))):
        np.testing.assert_array_equal(cermet.get_op("softmax", inputs)(x), cermet.softmax(x))
    with pytest.raises(TypeError, match=r"rms_norm: inputs: expected its operands as a tuple, \(x, weight,\), found str"):
        cermet.get_op("rms_norm", "x")


def test_constants_are_left_out():
    x, w = numbers(4, 6), numbers(5, 6)
    linear = cermet.get_op("linear", (x, cermet.weight(w)))
    with pytest.raises(cermet.InvalidArgument, match=r"linear: input 1 \(w\): expected no tensor for a constant, found one"):
        linear(x, w)


def test_graphs_and_sessions():
    x = numbers(4, 6)
    graph = cermet.Graph("g")
    value = graph.input("x", (4, 6))
    value = graph.add(graph.rms_norm(value, np.ones(12)[::2]), 1.0)  # float64 and strided
    graph.output("y", graph.matmul(value, numbers(5, 6).T))
    session = graph.compile()
    expected = session(x)
    for view in VIEWS.values():
        if view is not VIEWS["repeated"]:
            np.testing.assert_array_equal(session(view(x)), expected)
    with pytest.raises(cermet.InvalidArgument, match=r"input 0 \(x\): expected f32, found f64"):
        session(x.astype(np.float64))


def test_onnx_inputs_in_any_layout(source):
    model = cermet.OnnxModel(source / "models" / "demo_onnx" / "classifier.onnx")
    x = numbers(2, 4)
    np.testing.assert_array_equal(model(np.asfortranarray(x)), model(x))


def test_models_say_it_in_words_of_python(demo):
    with pytest.raises(cermet.InvalidArgument, match="logits: ids: expected at least one token, found none"):
        demo.logits([])
    with demo.generate("The", max_new_tokens=8, stream=True) as stream:
        next(stream)
        for use in (lambda: demo.generate("A"), lambda: demo.logits([1])):
            with pytest.raises(cermet.InvalidArgument, match=r"stream from generate\(\) has not ended; read it to its end, or close\(\) it"):
                use()
    assert demo.generate("A", max_new_tokens=1).ids


@pytest.mark.parametrize("page", [1, 16])
def test_values_may_be_the_first_columns_of_the_keys(page):
    q, k = numbers(3, 4, 576), numbers(48 // page, 1, page, 576)
    table, length, starts = np.arange(48 // page, dtype=np.int32)[None, ::-1].copy(), np.array([40], np.int32), np.array([0, 3], np.int32)
    inside = cermet.incre_flash_attention(q, k, k[..., :512], table, length, starts)
    np.testing.assert_array_equal(inside, cermet.incre_flash_attention(q, k, np.ascontiguousarray(k[..., :512]), table, length, starts))
