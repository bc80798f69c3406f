"""State of models: caches and counters that a graph updates, and the comparison with PyTorch."""

import copy

import pytest
import torch
from torch_compiled import compiled

import cermet
from cermet.torch.lower import ROWS

F = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Cache(torch.nn.Module):
    """Attention over a cache of keys, written at a position."""

    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(8, 8)
        self.register_buffer("keys", torch.zeros(1, 2, 16, 4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x, position):
        y = self.proj(x).view(1, 1, 2, 4).transpose(1, 2)
        self.keys.index_copy_(2, position, y)
        self.count.add_(1)
        mask = torch.arange(16) <= position[:, None]
        return F.scaled_dot_product_attention(y, self.keys, self.keys, attn_mask=mask)


@pytest.mark.parametrize("steps", [12])
def test_a_cache_over_many_steps(steps):
    model, made = Cache().eval(), []
    other = copy.deepcopy(model)
    address = model.keys.data_ptr()
    run = compiled(model, made)
    for step in range(steps):
        x, position = torch.randn(1, 8), torch.tensor([step])
        torch.testing.assert_close(run(x, position), other(x, position), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(model.keys, other.keys, rtol=1e-5, atol=1e-6)
    assert model.count == other.count == steps and model.keys.data_ptr() == address
    assert len(made) == 1 and not made[0].report.refusals
    model.keys.zero_(), other.keys.zero_()
    torch.testing.assert_close(run(x, position), other(x, position), rtol=1e-5, atol=1e-6)


def test_two_models_have_their_own_caches():
    models = [Cache().eval(), Cache().eval()]
    runs = [compiled(model) for model in models]
    for run, scale in zip(runs, (1.0, 2.0)):
        run(scale * torch.ones(1, 8), torch.tensor([3]))
    assert not torch.equal(models[0].keys, models[1].keys)


@pytest.mark.parametrize("last", [False, True])
def test_old_values_that_are_read_are_kept(last):
    def step(state, x):
        old = torch.linalg.inv(state) if last else state * 2  # by PyTorch, or by the session that writes
        new = torch.relu(state @ x)
        state.copy_(new)
        return old, new + 1

    state = torch.eye(32) + torch.randn(32, 32) / 100
    other, x = state.clone(), torch.randn(32, 32)
    run = compiled(step, fallback="allow")
    for found, expected in zip(run(state, x), step(other, x)):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state, other, rtol=1e-5, atol=1e-6)


def test_the_first_runs_are_compared():
    x = torch.randn(8, 8)

    def model(x):
        y = torch.tanh(x @ x)
        return torch.exp(y + 1) * torch.sin(y)

    torch.testing.assert_close(compiled(model, check=2)(x), model(x), rtol=1e-4, atol=1e-4)
    function, signature = ROWS[torch.ops.aten.exp.default]
    ROWS[torch.ops.aten.exp.default] = (lambda lowering, node, x: lowering.op("sinh", lowering(x))), signature
    try:
        torch._dynamo.reset()
        expected = r"check: expected what PyTorch computes, found a difference in aten.exp at test_torch_state.py:\d+"
        with pytest.raises(cermet.InternalError, match=expected):
            compiled(model, check=1)(x)
    finally:
        ROWS[torch.ops.aten.exp.default] = function, signature


def test_a_static_cache_of_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model, ids = transformers.LlamaForCausalLM(config).eval(), torch.randint(3, 200, (1, 7))
    words = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False, "cache_implementation": "static"}
    expected = model.generate(ids, disable_compile=True, **words)
    config = transformers.CompileConfig(backend="cermet", mode=None, options={"fallback": "error"})
    config._compile_all_devices = True
    assert torch.equal(model.generate(ids, compile_config=config, **words), expected)
