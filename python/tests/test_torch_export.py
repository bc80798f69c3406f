"""cermet.compile(module, args), over torch.export."""

import json

import pytest
import torch

import cermet
import cermet.torch


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def small():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)
    ).eval()


def test_a_module():
    model = small()
    compiled = cermet.compile(model, (torch.randn(2, 8),), fallback="error")
    for _ in range(3):
        x = torch.randn(2, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-6)
    assert compiled.report.in_sessions == compiled.report.operators == 4 and len(compiled.report.sessions) == 1
    assert json.loads(compiled.explain_json())["sessions"][0]["launches"] == compiled.report.launches
    assert "select-kernels" in compiled.explain()


def test_operands_are_checked():
    compiled = cermet.compile(small(), (torch.randn(2, 8),))
    with pytest.raises(
        cermet.InvalidArgument, match=r"operand 0: expected torch.float32 \[2, 8\], found torch.float32 \[3, 8\]"
    ):
        compiled(torch.randn(3, 8))
    with pytest.raises(cermet.InvalidArgument, match="operands: expected the structure"):
        compiled(torch.randn(2, 8), torch.randn(2, 8))
    with pytest.raises(TypeError, match="module: expected a torch.nn.Module, found function"):
        cermet.compile(lambda x: x)


def test_sizes_that_are_left_open():
    model = small()
    rows = torch.export.Dim("rows", min=1, max=64)
    compiled = cermet.compile(model, (torch.randn(2, 8),), dynamic_shapes=({0: rows},))
    for count in (1, 5, 64, 5):
        x = torch.randn(count, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-6)


def test_keywords_and_structures():
    class Model(torch.nn.Module):
        def forward(self, x, *, scale, parts):
            return {"sum": x * scale + parts[0], "parts": [parts[1], x]}

    model, given = Model(), {"scale": torch.tensor(2.0), "parts": (torch.ones(3), torch.zeros(3))}
    compiled = cermet.compile(model, (torch.ones(3),), given)
    x = torch.randn(3)
    found, expected = compiled(x, parts=given["parts"], scale=given["scale"]), model(x, **given)
    torch.testing.assert_close(found, expected)


def test_buffers_are_updated():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count += x
            return self.count * 2

    model = Counter()
    compiled = cermet.compile(model, (torch.ones(3),))
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2] and compiled(torch.ones(3)).tolist() == [4, 4, 4]
    assert model.count.tolist() == [2, 2, 2]


def test_weights_of_the_module_may_change():
    model, x = small(), torch.randn(2, 8)
    compiled = cermet.compile(model, (x,))
    compiled(x)
    model[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-6)
    model[0].weight.data.add_(1)
    compiled.refresh()
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-6)


def test_explain_sees_graphs_after_a_break():
    def model(x):
        y = torch.relu(x @ x)
        torch._dynamo.graph_break()
        return torch.linalg.inv(y @ y.T + torch.eye(8))

    explained = cermet.torch.explain(model, torch.randn(8, 8))
    assert len(explained.graphs) == 2 and explained.graphs[1].refusals[0].operator == "aten.linalg_inv_ex"
    assert "no row for the operator" in str(explained) and "matmul" in str(explained)
    assert json.loads(explained.json())["graphs"][1]["refused"][0]["line"].startswith("test_torch_export.py:")
