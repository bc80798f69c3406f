"""Operators that torch.compile traces through."""

import pytest
import torch

import cermet
import cermet.torch
from cermet import _native
from cermet.fakes import result_shapes
from cermet.schemas import schema_of

ops = torch.ops.cermet


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def block(x, w, weight):
    y = ops.rms_norm(x, weight, eps=1e-5)
    values, indices = ops.topk(ops.linear(y, w), k=2)
    return torch.relu(values) + 1, indices


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_block_in_one_graph(backend):
    x, w, weight = torch.randn(5, 8), torch.randn(12, 8), torch.rand(8)
    compiled = torch.compile(block, backend=backend, fullgraph=True)
    for found, expected in zip(compiled(x, w, weight), block(x, w, weight)):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_numbers_of_rows_stay_symbolic():
    w, weight = torch.randn(12, 8), torch.rand(8)
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(block, backend=count, fullgraph=True, dynamic=True)
    for rows in (3, 5, 9, 40):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x, w, weight)[0], block(x, w, weight)[0], rtol=0, atol=0)
    assert len(graphs) == 1


def test_sums_of_symbolic_sizes_stay_symbolic():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x, y: ops.concat([x, y, x], axis=0) * 2, backend=count, fullgraph=True, dynamic=True)
    for a, b in ((3, 5), (4, 9), (7, 2)):
        x, y = torch.randn(a, 4), torch.randn(b, 4)
        torch.testing.assert_close(compiled(x, y), torch.cat([x, y, x]) * 2, rtol=0, atol=0)
    assert len(graphs) == 1


def test_an_operand_that_is_updated():
    def write(k, v, slots, k_cache, v_cache):
        ops.kv_cache_write(**{"k": k, "v": v, "slots": slots, "k_cache": k_cache, "v_cache": v_cache})
        return k_cache.sum() + v_cache.sum()

    arguments = torch.ones(1, 1, 4), torch.ones(1, 1, 4), torch.tensor([5], dtype=torch.int32)
    for backend in ("eager", "aot_eager"):
        caches = torch.zeros(2, 1, 8, 4), torch.zeros(2, 1, 8, 4)
        assert torch.compile(write, backend=backend, fullgraph=True)(*arguments, *caches) == 8
        assert caches[0].sum() == 4


def test_lists_of_tensors():
    def join(x):
        return ops.concat([x, x * 2], axis=0), ops.split(x, axis=1, sizes=[3, 5])

    x = torch.randn(4, 8)
    whole, parts = torch.compile(join, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(whole, torch.cat([x, x * 2]), rtol=0, atol=0)
    assert [tuple(p.shape) for p in parts] == [(4, 3), (4, 5)]


def test_errors_while_tracing_name_the_operand():
    with pytest.raises(Exception, match=r"(?s)linear.*w.*f32\[12, 7\]"):
        torch.compile(lambda x, w: ops.linear(x, w), backend="eager", fullgraph=True)(torch.randn(5, 8), torch.randn(12, 7))


def test_pytorchs_own_checks():
    checks = ("test_schema", "test_faketensor")
    for name, arguments, words in [
        ("rms_norm", (torch.randn(4, 8), torch.rand(8)), {"eps": 1e-5}),
        ("add_rms_norm", (torch.randn(4, 8), torch.randn(4, 8), torch.rand(8)), {}),
        ("linear", (torch.randn(4, 8), torch.randn(3, 8)), {"out_dtype": "bf16"}),
        ("transpose", (torch.randn(4, 8),), {"permutation": [1, 0]}),
        ("greater", (torch.randn(4, 8), torch.randn(4, 8)), {}),
    ]:
        torch.library.opcheck(getattr(ops, name).default, arguments, words, test_utils=checks)


def test_every_operator_is_there():
    for name in _native.op_names():
        schema = getattr(ops, name).default._schema
        assert [a.name for a in schema.arguments] == [*(o.name for o in schema_of(name).inputs), *(a.name for a in schema_of(name).attributes)]


def test_a_backward_pass_is_refused():
    y = ops.rms_norm(torch.randn(4, 8, requires_grad=True), torch.rand(8))
    with pytest.raises(NotImplementedError, match="rms_norm: expected no backward pass"):
        y.sum().backward()


def test_symbolic_sizes_that_are_no_linear_form_become_numbers():
    shapes = []

    def trace(x):
        return ops.reshape(x, shape=[-1, 2])

    compiled = torch.compile(trace, backend="eager", dynamic=True)
    for rows in (4, 6, 8):
        shapes.append(tuple(compiled(torch.randn(rows, 3)).shape))
    assert shapes == [(6, 2), (9, 2), (12, 2)]


def test_types_of_results_without_memory():
    linear = schema_of("linear")
    assert result_shapes(linear, (torch.randn(2, 8, device="meta"), torch.randn(3, 8, device="meta"), None), ("f16",)) == (("f16", (2, 3), -1),)
