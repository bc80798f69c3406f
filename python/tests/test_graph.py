"""Graphs of operators."""

import numpy as np
import pytest

import cermet
from cermet import _native
from rows import normalized


def test_a_graph_runs_for_every_size_of_its_range(x, w):
    with cermet.Graph("block") as graph:
        graph.symbol("T", 1, 8)
        given = graph.input("x", ("T", 8))
        y = graph.rms_norm(given, w, names="normed")
        assert (y.name, y.dtype, y.shape) == ("normed", "f32", ("T", 8))
        graph.output("y", y)
        graph.output("double", graph.add(y, y))
        session = graph.compile()
    assert [(v.name, v.dtype, v.shape) for v in session.inputs] == [("x", "f32", ("T", 8))]
    for rows in (1, 6):
        y, double = session(x[:rows])
        np.testing.assert_allclose(y, normalized(x[:rows], w), rtol=1e-5)
        np.testing.assert_array_equal(double, 2 * y)
    assert session.steps >= 1 and session.constant_bytes >= 32
    assert "select-kernels" in session.explain()
    assert set(session.run({"x": x})) == {"y", "double"}


def test_results_go_where_the_caller_wants_them(x):
    graph = cermet.Graph()
    given = graph.input("x", (6, 8))
    graph.output("y", graph.relu(given))
    session = graph.compile()
    out = np.empty_like(x)
    assert session(x, out=out) is out
    np.testing.assert_array_equal(out, np.maximum(x, 0))
    np.testing.assert_array_equal(session(x=x), out)
    out.flags.writeable = False
    with pytest.raises(cermet.InvalidArgument, match="output 0: expected memory that may be written, found a read-only tensor"):
        session(x, out=out)
    with pytest.raises(cermet.InvalidArgument, match="graph: input 0 .x.: expected f32, found f64"):
        session(x.astype(np.float64))
    with pytest.raises(TypeError, match="expected inputs"):
        session(x, x)
    session.close()
    with pytest.raises(cermet.InvalidArgument, match="session: expected one that is open"):
        session(x)


def test_text_is_the_same_graph(x, w):
    graph = cermet.Graph("texts")
    given = graph.input("x", ("T", 8), np.float32)
    with graph.scope("layers.0"), graph.scope("norm"):
        y = graph.rms_norm(given, w, eps=1e-5)
    graph.output("y", graph.mul(y, graph.literal("two", np.full(1, 2, np.float32))))
    text = graph.text
    assert "// layers.0.norm" in text and "{eps = 1e-05}" in text
    copy = cermet.Graph.parse(text)
    assert copy.text == text
    with pytest.raises(cermet.InvalidArgument, match="constant 'rms_norm.weight': expected values"):
        copy.compile({"T": 8})
    copy.set_constant("rms_norm.weight", w)
    np.testing.assert_array_equal(copy.compile({"T": 8}, fusion="none")(x), graph.compile({"T": 6})(x))
    assert copy.find("nothing") is None and copy.find("two").dtype == "f32"


def test_super_kernels_are_marked(x):
    graph = cermet.Graph()
    given = graph.input("x", (6, 8))
    with graph.super_kernel("sp1", "stream-fusion=1:strict-scope-check=bypass"):
        y = graph.relu(given)
        with graph.super_kernel():
            y = graph.neg(y)
    graph.output("y", graph.exp(y))
    assert "relu(%x) : f32[6, 8] in sp1" in graph.text and "neg(%relu) : f32[6, 8] outside" in graph.text
    np.testing.assert_allclose(graph.compile()(x), np.exp(-np.maximum(x, 0)), rtol=1e-6)
    with pytest.raises(cermet.InvalidArgument, match="super-kernel 'sp2'"), graph.super_kernel("sp2", "fast=1"):
        pass


def test_super_kernels_of_a_compilation_keep_the_bits(x, w):
    graph = cermet.Graph()
    given = graph.input("x", ("T", 8))
    with graph.scope("layers.0"):
        y = graph.rms_norm(given, w)
    with graph.scope("layers.1"):
        y = graph.softmax(graph.linear(y, np.linspace(-1, 1, 128, dtype=np.float32).reshape(16, 8)))
    graph.output("y", y)
    expected = graph.compile({"T": 6}, fusion="none")(x)
    for options, marked in {
        ("decode", None): "3 of 3 nodes in 1 super-kernels",
        ("decode", "width=2:early-start=0"): "3 of 3 nodes in 1 super-kernels",
        ("layer", None): "3 of 3 nodes in 2 super-kernels",
        ("last:*.1", None): "2 of 3 nodes in 1 super-kernels",
    }.items():
        session = graph.compile({"T": 6}, fusion="none", super_kernel=options[0], super_kernel_options=options[1])
        assert f"mark-super-kernels: {marked}" in session.explain()
        for rows in (1, 6):
            np.testing.assert_array_equal(session(x[:rows]), expected[:rows])
    for options, message in {
        ("decode", "breadth=2"): 'super-kernel options: expected one of .*width.*, found "breadth"',
        ("decode", "width=two"): 'super-kernel option width: expected 0..1048576, found "two"',
        (None, "width=2"): "super-kernel options: expected a super-kernel beside them, found 'width=2' alone",
        ("x:nothing*", None): "super-kernel: expected 'x:nothing\\*' to fit a node",
    }.items():
        with pytest.raises(cermet.InvalidArgument, match=message):
            graph.compile({"T": 6}, super_kernel=options[0], super_kernel_options=options[1])


def test_operators_of_several_results_and_lists(x):
    graph = cermet.Graph()
    given = graph.input("x", (6, 8))
    left, right = graph.split(given, axis=1, parts=2)
    q, scale = graph.dynamic_quant(given)
    graph.output("swapped", graph.concat((right, left), axis=1))
    graph.output("q", q)
    graph.output("scale", scale)
    (applied,) = graph.apply("neg", [given])
    assert applied.shape == (6, 8)
    swapped, q, scale = graph.compile()(x)
    np.testing.assert_array_equal(swapped, np.roll(x, 4, axis=1))
    assert q.dtype == np.int8
    np.testing.assert_allclose(q * scale[:, None], x, atol=float(np.abs(x).max()) / 254 * 1.01)


def test_what_does_not_fit_is_named(x, w):
    graph = cermet.Graph("named")
    given = graph.input("x", ("T", 8))
    for call, message in {
        lambda: graph.rms_norm(given, w[:3]): "operand 1 .weight.",
        lambda: graph.rms_norm(given, w, eps="small"): "rms_norm: attribute .eps.: expected float",
        lambda: graph.relu(cermet.Graph().input("x", (2,))): "relu: input 0 .x.: expected a value of this graph, found one of another",
        lambda: graph.input("x", (2,)): "value 'x': expected a name of its own",
        lambda: graph.input("y", ("T-",)): "T-",
        lambda: graph.apply("lineer", [given]): "linear",
        lambda: graph.nothing(given): "nothing",
    }.items():
        with pytest.raises((cermet.InvalidArgument, TypeError, AttributeError), match=message):
            call()
    graph.output("y", graph.relu(given))
    with pytest.raises(cermet.InvalidArgument, match="maxima: expected the largest value of 'T'"):
        graph.compile()
    with pytest.raises(cermet.InvalidArgument, match="fusion"):
        graph.compile({"T": 8}, fusion="most")
    session = graph.compile({"T": 4})
    with pytest.raises(cermet.InvalidArgument, match="named: expected T from 0 to 4, found 6"):
        session(x)


def test_every_operator_is_a_method():
    assert set(_native.op_names()) <= set(dir(cermet.Graph()))
    for name in _native.op_names():
        assert callable(getattr(cermet.Graph, name, None) or getattr(cermet.Graph(), name)), name


def test_state_is_updated(x):
    with cermet.Graph("running") as graph:
        total, given = graph.input("total", (6, 8)), graph.input("x", (6, 8))
        next = graph.add(total, given)
        graph.update(total, next)
        graph.output("next", next)
        with pytest.raises(cermet.InvalidArgument, match="update of 'total': expected one of each input, found two"):
            graph.update(total, given)
        assert "update %total = %add" in graph.text
        session = graph.compile()
    state = np.zeros_like(x)
    for _ in range(3):
        assert session(state, x) is state
    np.testing.assert_allclose(state, x + x + x, rtol=1e-6)
    assert session.output_alias(0) == 0
    state.flags.writeable = False
    with pytest.raises(cermet.InvalidArgument, match="input 0: expected memory that may be written, found a read-only tensor"):
        session(state, x, out=(None,))


def test_sessions_share_weights(x, w):
    weights = cermet.Weights()
    sessions = []
    for size in ("T", "S"):
        with cermet.Graph("shared") as graph:
            graph.symbol(size, 1, 8)
            graph.output("y", graph.mul(graph.input("x", (size, 8)), graph.constant("w", w)))
            sessions.append(graph.compile(weights=weights))
    for session in sessions:
        np.testing.assert_allclose(session(x), x * w, rtol=1e-6)
    weights.set("w", 2 * w)
    for session in sessions:
        np.testing.assert_allclose(session(x), 2 * x * w, rtol=1e-6)
    with pytest.raises(cermet.InvalidArgument, match="weight 'w': expected f32.8., the type of the one that it replaces"):
        weights.set("w", w[:4])


def test_memory_of_the_caller(x):
    held = {}

    def allocate(bytes):
        memory = np.empty(bytes + 64, np.uint8)
        address = (memory.ctypes.data + 63) // 64 * 64
        held[address] = memory
        return address

    handle = cermet.Handle("cpu", 1)
    handle.set_allocator(allocate, lambda address, bytes: held.pop(address))
    with cermet.Graph(device=handle) as graph:
        graph.output("y", graph.softmax(graph.cumsum(graph.input("x", (6, 8)), axis=0)))
        session = graph.compile()
    assert held and session(x).shape == (6, 8)
    session.close()
    assert not held
    handle.set_allocator(lambda bytes: None, lambda address, bytes: None)
    graph = cermet.Graph(device=handle)
    graph.output("y", graph.softmax(graph.cumsum(graph.input("x", (6, 8)), axis=0)))
    with pytest.raises(cermet.OutOfMemory, match="from the caller's allocator"):
        graph.compile()
    with pytest.raises(TypeError, match="expected two functions"):
        handle.set_allocator(allocate, None)


def test_operands_lie_as_the_caller_has_them():
    graph = cermet.Graph("images")
    x = graph.input("x", (1, 3, 2, 4), order=(0, 2, 3, 1))
    graph.output("y", graph.relu(x), order=(0, 2, 3, 1))
    graph.output("plain", graph.neg(x))
    session = graph.compile()
    image = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3).transpose(0, 3, 1, 2) - 9
    y, plain = session(image)
    assert y.strides == image.strides
    np.testing.assert_array_equal(y, np.maximum(image, 0))
    np.testing.assert_array_equal(plain, -image)
    assert "order [0, 2, 3, 1]" in graph.text
    with pytest.raises(ValueError, match="expected an entry for each of 2 dimensions, found 1"):
        graph.input("z", (2, 3), order=(1,))
    with pytest.raises(cermet.InvalidArgument, match="input 0 .x.: expected"):
        session(np.ascontiguousarray(image))
