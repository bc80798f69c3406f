"""Where PyTorch's operators differ from the library's: what an imported graph computes is PyTorch's."""

import pytest
import torch
from torch_compiled import compiled

import cermet
from cermet.schemas import schema_of

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def has(kind, attribute):
    return any(of.name == attribute for of in schema_of(kind).attributes)


def check(function, *inputs, tolerance=0.0, **options):
    """One session computes what PyTorch does."""
    torch._dynamo.reset()
    found = compiled(function, fallback="error", **{"rounding": "strict", **options})(*[of.clone() for of in inputs])
    expected = function(*inputs)
    for one, other in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(expected)):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def refused(function, *inputs, reason):
    torch._dynamo.reset()
    with pytest.raises(cermet.Unsupported, match=reason):
        compiled(function, fallback="error")(*inputs)
    torch._dynamo.reset()
    found = compiled(function, fallback="allow")(*inputs)
    torch.testing.assert_close(found, function(*inputs), equal_nan=True)


@pytest.mark.parametrize(
    "a, b",
    [
        (torch.int32, torch.float32),
        (torch.int64, torch.float16),
        (torch.bool, torch.int8),
        (torch.bfloat16, torch.float32),
        (torch.uint8, torch.int8),
        (torch.float16, torch.bfloat16),
        (torch.int64, torch.float64),
    ],
)
def test_types_are_promoted(a, b):
    x, y = torch.tensor([0, 1, 3]).to(a), torch.tensor([1, 1, 2]).to(b)
    for function in (
        torch.add,
        torch.mul,
        torch.maximum,
        torch.div,
        torch.eq,
        torch.lt,
        torch.atan2 if has_atan2() else torch.mul,
    ):
        check(function, x, y, tolerance=1e-6)


def has_atan2():
    from cermet import _native

    return "atan2" in _native.op_names()


def test_numbers_rank_below_tensors_and_0d_below_others():
    x, scalar = torch.tensor([1, 2, 3], dtype=torch.int8), torch.tensor(2.5, dtype=torch.float64)
    check(lambda x: x + 300, x.to(torch.int16))
    check(lambda x: x * 0.1, x)
    check(lambda x: x * 0.1, torch.randn(50).bfloat16())  # 0.1 is not rounded to bfloat16
    check(lambda x, s: x * s, torch.randn(3), scalar, tolerance=1e-6)
    check(lambda x: x == 1.5, x)


def test_division():
    check(torch.div, torch.tensor([7, -7, 5]), torch.tensor([2, 2, 3]))
    check(lambda x: torch.div(x, 2, rounding_mode="trunc"), torch.tensor([7, -7, 5]))
    check(lambda x: x // 2, torch.tensor([7, -7, -8, 0]))
    check(lambda x: x // -3, torch.tensor([7, -7, -9, 0]))
    check(lambda x: x % -3, torch.tensor([7, -7, -9, 0]))
    values = torch.tensor([6.0, -7.0, 1.0, 0.0, -0.0, 5.0, INF, NAN, 1e30])
    for divisor in (0.1, 2.0, 0.0, INF, -0.3):
        check(torch.floor_divide, values, torch.full_like(values, divisor))
        check(lambda x, y: torch.div(x, y, rounding_mode="trunc"), values, torch.full_like(values, divisor))


def test_integers_divided_by_what_may_be_0_stay_in_pytorch():
    x = torch.tensor([7, -7])
    for function in (
        torch.floor_divide,
        torch.remainder,
        torch.fmod,
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    ):
        refused(function, x, torch.tensor([2, 3]), reason="divisor may be 0")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(torch.floor_divide, fallback="allow")(x, torch.tensor([2, 0]))


def test_booleans():
    a, b = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    for function in (torch.add, torch.mul, torch.maximum, torch.minimum, torch.bitwise_xor, torch.lt, torch.eq):
        check(function, a, b)
    check(lambda x: (~x, x.sum(), x.any(), x.all(), x.float().mean()), a)


def test_attention_whose_query_sees_no_key_gives_0():
    q = torch.randn(1, 2, 4, 8)
    mask = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    mask[0, 0, 1] = False
    added = torch.zeros(1, 1, 4, 4).masked_fill(~mask, -INF)
    for given in (mask, added):
        expected = F.scaled_dot_product_attention(q, q, q, attn_mask=given)
        assert not expected[0, :, 1].any()
        check(lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m), q, given, tolerance=1e-6)
        check(lambda q, m=given: F.scaled_dot_product_attention(q, q, q, attn_mask=m), q, tolerance=1e-6)


@pytest.mark.parametrize("queries, keys", [(4, 4), (2, 5), (5, 2)])
def test_causal_attention_lines_up_the_first_query_with_the_first_key(queries, keys):
    q, k = torch.randn(1, 2, queries, 8), torch.randn(1, 2, keys, 8)
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), q, k, tolerance=1e-6)


def test_a_known_triangular_mask():
    q = torch.randn(2, 2, 6, 8)

    def model(q):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(6, 6, dtype=torch.bool).tril())

    check(model, q, tolerance=1e-6)


def test_grouped_heads():
    q, k = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)
    check(lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), q, k, tolerance=1e-6)


@pytest.mark.skipif(not has("reduce_sum", "overflow"), reason="sums of the library clamp")
def test_sums_of_integers_wrap():
    x = torch.tensor([2**62, 2**62, 5])
    check(lambda x: (x.sum(), x.cumsum(0)), x)


def test_products_of_integers_are_not_clamped():
    x = torch.full((70,), 2)
    if has("reduce_prod", "overflow"):
        check(torch.prod, x)
    else:
        refused(torch.prod, x, reason="products of integers, which PyTorch lets wrap")


def test_signs_and_zeros():
    x = torch.tensor([NAN, -1.0, 2.0, -0.0, 0.0, INF, -INF])
    check(
        lambda x: (torch.sign(x), torch.relu(x), torch.isnan(x), torch.isinf(x), torch.isfinite(x), torch.signbit(x)), x
    )
    check(lambda x: (x.clamp(0, 1), x.clamp(min=0), x.clamp(max=1), x.clamp(2, 1), torch.round(x), torch.trunc(x)), x)
    check(lambda x: (torch.maximum(x, x.flip(0)), x.amax(), x.argmax(), x.max(0).values, torch.nan_to_num(x)), x)


def test_indices():
    x = torch.randn(4, 5)
    i = torch.tensor([[0, -1], [2, 1]])
    check(lambda x, i: (x[i], x[:, i], x[i, i]), x, i)
    check(lambda x, i: x[i, :, None], x, i)
    y = torch.randn(3, 4, 5)
    check(lambda y, i: (y[i, :, i], y[:, i, i]), y, i)
    check(lambda x: x.index_put((torch.tensor([0, 0]),), torch.ones(5), accumulate=True), x)
    check(lambda x: torch.where(x > 0, x, 0), x)
    check(lambda x: x.masked_fill(x > 0, 3.0), x)


def test_sixteen_bits_are_rounded_after_each_operator_where_asked():
    x, y = torch.randn(64, 64).bfloat16(), torch.randn(64, 64).bfloat16()
    check(lambda x, y: torch.tanh(x * y + x) * y, x, y, rounding="strict", tolerance=1e-2)
    strict, fast = (compiled(lambda x, y: (x * y + x) * y, rounding=of)(x, y) for of in ("strict", "fast"))
    exact = (x.float() * y.float() + x.float()) * y.float()
    assert torch.equal(strict, (x * y + x) * y) and (fast - exact).abs().max() <= (strict - exact).abs().max()


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_variance_of_few_elements():
    check(lambda x: (x.var(), x.std(0), torch.var(x, 0, correction=3)), torch.randn(1, 1))
    check(lambda x: torch.var_mean(x, 1, correction=0), torch.randn(3, 7), tolerance=1e-6)


def test_empty_and_0d_tensors():
    for shape in ((0, 4), (2, 0), ()):
        x = torch.randn(shape)
        check(lambda x: (torch.exp(x) + 1, x.sum(), x.reshape(-1), x.clone()), x, tolerance=1e-6)
    check(lambda x: torch.cat([x, torch.ones(2, 4)]), torch.randn(0, 4))
    check(lambda x: (torch.softmax(x, 0), x.cumsum(0), x.sort().values), torch.tensor(2.0))


def test_complex_numbers_stay_in_pytorch():
    refused(lambda x: torch.view_as_real(torch.view_as_complex(x) * 2), torch.randn(4, 2), reason="complex numbers")


def test_more_dimensions_than_the_library_has_stay_in_pytorch():
    refused(lambda x: torch.exp(x.reshape(1, 1, 1, 1, 1, 1, 1, 2, 2)), torch.randn(2, 2), reason="rank 9, of at most 8")


def test_autocast_is_traced_as_casts():
    x, w = torch.randn(4, 8), torch.randn(8, 8)

    def model(x, w):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.relu(x @ w)

    check(model, x, w, tolerance=1e-2)


def test_results_that_are_inputs_or_views():
    x = torch.randn(3, 4)
    check(lambda x: (x, x.t(), x[1:], x.reshape(4, 3), x + 0), x)


def test_an_operator_of_the_library():
    x, w = torch.randn(3, 8), torch.rand(8)
    check(lambda x, w: torch.ops.cermet.rms_norm(x, w, eps=1e-5) + 1, x, w)
    check(lambda x: torch.ops.cermet.topk(x, k=2), x)
    check(lambda x: torch.ops.cermet.concat([x, x], axis=1), x)


def test_norms_and_activations():
    x = torch.randn(2, 6, 5, 5)
    w, b = torch.rand(6), torch.randn(6)
    check(lambda x, w, b: F.batch_norm(x, b, w, w, b), x, w, b, tolerance=1e-5)
    check(
        lambda x, w, b: (F.group_norm(x, 3, w, b), F.instance_norm(x), F.layer_norm(x, (5, 5)), F.rms_norm(x, (5,))),
        x,
        w,
        b,
        tolerance=1e-5,
    )
    check(
        lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.elu(x, 0.5), F.celu(x, 2.0)),
        x,
        tolerance=1e-6,
    )
    check(
        lambda x: (F.softplus(x, 2, 1), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.leaky_relu(x), F.glu(x, 1)),
        x,
        tolerance=1e-6,
    )


def test_images():
    x = torch.randn(1, 3, 7, 9)
    check(lambda x: (F.interpolate(x, scale_factor=1.5, mode="bilinear"), F.interpolate(x, (4, 5))), x, tolerance=1e-5)
    check(
        lambda x: (F.interpolate(x, scale_factor=2.3), F.interpolate(x, (14, 11), mode="bicubic", align_corners=True)),
        x,
        tolerance=1e-5,
    )
    check(
        lambda x: (F.adaptive_avg_pool2d(x, (3, 4)), F.avg_pool2d(x, 3, 2, 1), F.pad(x, (1, 2, -1, 3))),
        x,
        tolerance=1e-6,
    )
    check(lambda x: (F.max_pool2d(x, 3, 2, 1, return_indices=True), F.pad(x, (1, 2, 0, 3), mode="circular")), x)
    grid = torch.rand(1, 4, 5, 2) * 2 - 1
    check(lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=True), x, grid, tolerance=1e-5)
