"""torch.compile(model, backend="cermet")."""

import warnings

import pytest
import torch
from torch_compiled import compiled

import cermet

F = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(32), torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + F.gelu(self.out(y.transpose(1, 2).flatten(2)))


def test_the_backend_is_found_without_an_import():
    model, x = Block().eval(), torch.randn(2, 5, 32)
    torch.testing.assert_close(
        torch.compile(model, backend="cermet", fullgraph=True)(x), model(x), rtol=1e-5, atol=1e-5
    )


def test_a_block_is_one_session():
    model, x, made = Block().eval(), torch.randn(2, 5, 32), []
    run = compiled(model, made, fallback="error")
    torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(run(2 * x), model(2 * x), rtol=1e-5, atol=1e-5)
    assert len(made) == 1 and len(made[0].report.sessions) == 1 and not made[0].report.refusals


def test_what_stays_in_pytorch_is_reported():
    x, w, made = torch.randn(40, 40), torch.randn(40, 40), []
    with pytest.warns(
        UserWarning,
        match=r"operators in \d sessions?; \d stays? in PyTorch: .*linalg_inv_ex.* at test_torch_compile.py:\d+",
    ):
        result = compiled(lambda x, w: torch.linalg.inv(x @ w) @ torch.softmax(w, -1), made)(x, w)
    torch.testing.assert_close(result, torch.linalg.inv(x @ w) @ torch.softmax(w, -1), rtol=1e-3, atol=1e-3)
    assert len(made[0].report.sessions) == 2
    torch._dynamo.reset()
    with pytest.raises(cermet.Unsupported, match="linalg_inv_ex"):
        compiled(lambda x: torch.linalg.inv(x), fallback="error")(x)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(lambda x: torch.linalg.inv(x), fallback="allow")(x)


def test_options_are_checked():
    with pytest.raises(Exception, match="option fallback: expected warn, error or allow, found 'no'"):
        torch.compile(torch.relu, backend="cermet", options={"fallback": "no"})(torch.ones(2))
    with pytest.raises(Exception, match="option falback: expected one of fallback, check"):
        torch.compile(torch.relu, backend="cermet", options={"falback": "warn"})(torch.ones(2))


def test_weights_that_change_are_read_again():
    model, x, made = torch.nn.Linear(8, 8).eval(), torch.randn(3, 8), []
    run = compiled(model, made)
    for change in (
        lambda: None,
        lambda: model.weight.mul_(2),
        lambda: model.load_state_dict({name: torch.randn_like(value) for name, value in model.state_dict().items()}),
        lambda: setattr(model.weight, "data", torch.randn(8, 8)),
    ):
        change()
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
    model.weight.data.add_(1)  # which PyTorch does not count
    made[0].refresh()
    torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)


def test_weights_may_be_inputs_or_frozen():
    model, x = torch.nn.Linear(8, 8).eval(), torch.randn(3, 8)
    run = compiled(model, weights="inputs", fallback="error")
    torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
    model.weight.data.add_(1)
    torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
    torch._dynamo.reset()
    run = compiled(model, weights="frozen")
    before = run(x)
    model.weight.mul_(2)
    torch.testing.assert_close(run(x), before, rtol=0, atol=0)


def test_a_graph_that_needs_gradients_runs_in_pytorch():
    model, x = torch.nn.Linear(8, 8), torch.randn(3, 8)
    with torch.enable_grad(), pytest.warns(UserWarning, match="a graph that needs gradients runs in PyTorch"):
        torch.compile(model, backend="cermet")(x).sum().backward()
    assert model.weight.grad is not None


def test_results_have_pytorchs_strides():
    x = torch.randn(2, 3, 4, 5)
    channels_last = torch.nn.Conv2d(3, 8, 3).eval().to(memory_format=torch.channels_last)
    for function, given in (
        (lambda x: torch.relu(x.transpose(1, 2)), x),
        (channels_last, x.to(memory_format=torch.channels_last)),
        (lambda x: (x[0], x + 1, x), x),
    ):
        torch._dynamo.reset()
        expected, found = function(given), compiled(function)(given)
        for one, other in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(expected)):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
            assert one.stride() == other.stride()


def test_operands_with_strides():
    for x in (torch.randn(4, 6).t(), torch.randn(4, 1).expand(4, 6), torch.randn(8, 6)[::2], torch.randn(())):
        torch._dynamo.reset()
        torch.testing.assert_close(compiled(lambda x: torch.exp(x) + 1)(x), torch.exp(x) + 1, rtol=1e-6, atol=1e-6)


def test_inputs_that_are_updated():
    def step(cache, x, position):
        cache.index_copy_(1, position, x)
        return (cache * 2).sum(1)

    cache, other = torch.zeros(2, 8, 4), torch.zeros(2, 8, 4)
    made = []
    run = compiled(step, made)
    for i in range(4):
        x, position = torch.randn(2, 1, 4), torch.tensor([i])
        torch.testing.assert_close(run(cache, x, position), step(other, x, position))
        torch.testing.assert_close(cache, other, rtol=0, atol=0)
    assert not made[0].report.refusals


def test_random_numbers_stay_in_pytorch_in_their_order():
    def model(x):
        a = torch.rand_like(x) @ x
        return a + torch.randn_like(x) @ x

    x = torch.randn(64, 64)
    torch.manual_seed(3)
    expected = model(x)
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="random numbers"):
        torch.testing.assert_close(compiled(model)(x), expected, rtol=1e-4, atol=1e-4)


def test_sizes_that_change():
    model, made = Block().eval(), []
    run = compiled(model, made)
    for tokens in (5, 7, 9, 7, 33):
        x = torch.randn(2, tokens, 32)
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
    assert len(made) == 2  # static, then with a symbol
    assert len(made[1]._programs) == 3  # up to 8, 16 and 64 tokens


class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.positions = torch.nn.Embedding(50, 16), torch.nn.Embedding(64, 16)
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, ids):
        count = ids.shape[1]
        x = self.embedding(ids) + self.positions(torch.arange(count))
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mask = torch.ones(count, count, dtype=torch.bool).tril()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return y.transpose(1, 2).flatten(2)[:, -1], x[:, 1:]


def test_sessions_are_made_for_ranges_of_sizes():
    model, made = Tokens().eval(), []
    run = compiled(model, made, dynamic=True, fallback="error")
    for rows, count in ((2, 5), (2, 7), (3, 8), (2, 9), (2, 16), (2, 6)):
        ids = torch.randint(0, 50, (rows, count))
        torch.testing.assert_close(run(ids), model(ids), rtol=1e-5, atol=1e-5)
    assert len(made) == 1 and len(made[0]._programs) == 3


def test_sizes_that_a_range_cannot_have_get_sessions_of_their_own():
    made = []
    run = compiled(lambda x: torch.relu(x)[: x.shape[0] // 2], made, dynamic=True)
    for rows in (6, 9, 14, 9):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(run(x), torch.relu(x)[: rows // 2], rtol=0, atol=0)
    assert len(made) == 1 and len(made[0]._programs) == 3
