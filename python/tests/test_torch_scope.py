"""Super-kernel regions and names inside models."""

import re

import pytest
import torch

import cermet
import cermet.torch
import cermet.torch.ascend as torchair
import cermet.torch.ascend as torch_npu


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def regions(model, *inputs):
    """Nodes in regions and all, as the compile step says: (3, 4, 1)."""
    text = str(cermet.torch.explain(model, *inputs))
    found = re.search(r"mark-super-kernels: (\d+) of (\d+) nodes in (\d+) super-kernels", text)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)


class Nested(torch.nn.Module):
    def forward(self, x):
        with cermet.super_kernel("sp1", "stream-fusion=1"):
            x = torch.relu(x @ x)
            with cermet.super_kernel(None):
                x = torch.softmax(x, -1)
            with cermet.super_kernel("sp2"):
                x = x @ x
        return torch.tanh(x)


X = torch.randn(16, 16)


def test_nested_regions():
    assert regions(Nested(), X) == (3, 5, 2)
    compiled = torch.compile(Nested(), backend="cermet", fullgraph=True)
    torch.testing.assert_close(compiled(X), Nested()(X), rtol=1e-5, atol=1e-6)


def test_the_same_bits_with_and_without():
    class Plain(Nested):
        def forward(self, x):
            return torch.tanh((lambda y: y @ y)(torch.softmax(torch.relu(x @ x), -1)))

    results = [
        torch.compile(model, backend="cermet", options={"rounding": "strict"})(X) for model in (Nested(), Plain())
    ]
    assert torch.equal(*results)


def test_a_decorator():
    class Model(torch.nn.Module):
        @cermet.super_kernel("all")
        def forward(self, x):
            return torch.relu(x @ x) + 1

    taken, every, count = regions(Model(), X)
    assert taken == every and count == 1


def test_an_early_return():
    class Model(torch.nn.Module):
        def forward(self, x):
            with cermet.super_kernel("sp1"):
                if x.shape[0] == 16:
                    return torch.relu(x @ x)
                x = x * 2
            return x

    assert regions(Model(), X) == (2, 2, 1)


def test_export_keeps_regions():
    compiled = cermet.compile(Nested(), (X,))
    torch.testing.assert_close(compiled(X), Nested()(X), rtol=1e-5, atol=1e-6)
    assert "mark-super-kernels: 3 of 5 nodes in 2 super-kernels" in compiled.explain()


def test_names_of_scopes_are_in_reports():
    class Inner(torch.nn.Module):
        def forward(self, x):
            with cermet.scope("router"):
                return x @ x

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Inner()])

        def forward(self, x):
            return self.layers[0](x) + 1

    assert "layers.0.router" in str(cermet.torch.explain(Outer(), X))


def test_a_graph_break_inside_is_reported():
    def model(x, options):
        with cermet.super_kernel("sp1", options):
            x = torch.relu(x @ x)
            torch._dynamo.graph_break()
            return x @ x

    expected = model(X, "")
    with pytest.warns(
        UserWarning, match=r"super_kernel 'sp1': expected its begin and end in one graph, found a graph break inside"
    ):
        torch.testing.assert_close(torch.compile(model, backend="cermet")(X, ""), expected)
    torch._dynamo.reset()
    with pytest.raises(
        Exception, match=r"super_kernel 'sp1': .* found a graph break inside at test_torch_scope.py:\d+"
    ):
        torch.compile(model, backend="cermet")(X, "strict-scope-check=abort")


def test_a_region_whose_operator_stays_in_pytorch():
    def model(x, options):
        with cermet.super_kernel("sp1", options):
            return torch.softmax(torch.linalg.inv(x), -1) @ x

    x = torch.randn(64, 64)
    with pytest.warns(UserWarning, match="linalg_inv_ex"):
        torch.testing.assert_close(torch.compile(model, backend="cermet")(x, ""), model(x, ""), rtol=1e-3, atol=1e-3)
    torch._dynamo.reset()
    with pytest.raises(
        Exception, match=r"super_kernel 'sp1': expected all its operators in a session, found aten.linalg_inv_ex"
    ):
        torch.compile(model, backend="cermet")(x, "strict-scope-check=abort")


def test_eager_mode_checks_options_and_does_nothing():
    with cermet.super_kernel("sp1", "stream-fusion=1"), cermet.scope("a"):
        assert torch.equal(X + 1, X + 1)
    with pytest.raises(cermet.InvalidArgument, match='found "strem-fusion"'):
        cermet.super_kernel("sp1", "strem-fusion=1")


class Original(torch.nn.Module):
    def forward(self, x1, x2, scale, pertoken_scale, weight_scale):
        product = torch_npu.npu_quant_matmul(x1, x2, scale, pertoken_scale=pertoken_scale, output_dtype=torch.bfloat16)
        gated = torch_npu.npu_dequant_swiglu_quant(product, weight_scale=weight_scale, activate_left=True, quant_mode=1)
        return gated, product


class Region(torch.nn.Module):
    def forward(self, x1, x2, scale, pertoken_scale, weight_scale):
        with torchair.scope.super_kernel("sp1", "stream-fusion=1"):
            product = torch_npu.npu_quant_matmul(
                x1, x2, scale, pertoken_scale=pertoken_scale, output_dtype=torch.bfloat16
            )
            gated = torch_npu.npu_dequant_swiglu_quant(
                product, weight_scale=weight_scale, activate_left=True, quant_mode=1
            )
            return gated, product


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
)
def test_a_program_of_torchair_runs_with_its_imports_renamed(device):
    m, k, n = 96, 768, 512
    x1 = torch.randint(-10, 10, (m, k), dtype=torch.int8)
    x2 = torch_npu.npu_format_cast(torch.randint(-10, 10, (k, n), dtype=torch.int8), 29)
    operands = [of.to(device) for of in (x1, x2, torch.rand(n), torch.rand(m), torch.rand(m, n))]
    backend = torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())
    results = []
    for model in (Original(), Region()):
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=backend, dynamic=False, fullgraph=True)
        results.append(torch.utils._pytree.tree_leaves(compiled(*operands)))
    for a, b, eager in zip(*results, torch.utils._pytree.tree_leaves(Original()(*operands))):
        assert torch.equal(a, b) and torch.equal(a, eager)
    taken, every, count = regions(Region(), *operands)
    assert taken >= 2 and count == 1 and regions(Original(), *operands)[2] == 0


def test_what_torchair_has_and_this_has_not_is_refused():
    with pytest.raises(cermet.Unsupported, match="npu_quant_matmul: output_dtype: expected bfloat16"):
        torch_npu.npu_quant_matmul(
            torch.zeros(2, 2, dtype=torch.int8), torch.zeros(2, 2, dtype=torch.int8), torch.ones(2)
        )
    with pytest.raises(cermet.Unsupported, match="npu_dequant_swiglu_quant: expected quant_mode 1"):
        torch_npu.npu_dequant_swiglu_quant(torch.zeros(2, 4))
