"""Graphs on PyTorch's tensors."""

import pytest
import torch

import cermet


def gated(device="cpu"):
    """silu(x w^T) of rows, with weights on the device."""
    generator = torch.Generator().manual_seed(1)
    w = torch.randn(256, 512, generator=generator).bfloat16().to(device)
    graph = cermet.Graph("gated", device=device)
    x = graph.input("x", ("T", 512), torch.bfloat16)
    graph.output("y", graph.silu_and_mul(graph.linear(x, w)))
    return graph, w, torch.randn(64, 512, generator=generator).bfloat16().to(device)


def expected(x, w):
    product = (x.float() @ w.float().T).to(x.dtype).float()
    gate, up = product.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def test_results_are_tensors():
    graph, w, x = gated()
    session = graph.compile({"T": 64})
    y = session(x)
    assert type(y) is torch.Tensor and y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), expected(x, w), rtol=2e-2, atol=2e-1)
    out = torch.empty_like(y)
    assert session(x, out=out) is out
    torch.testing.assert_close(out, y, rtol=0, atol=0)
    with pytest.raises(cermet.InvalidArgument, match="stream: expected none on the CPU, found one"):
        session(x, stream=1)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")


@needs_gpu
def test_runs_on_the_current_stream():
    graph, w, x = gated("cuda")
    session = graph.compile({"T": 64})
    stream = torch.cuda.Stream()
    for rows in (1, 7, 64):
        with torch.cuda.stream(stream):
            big = torch.randn(2048, 2048, device="cuda") @ torch.randn(2048, 2048, device="cuda")  # so that there is something to wait for
            given = x[:rows] + 0 * big[0, 0].to(x.dtype)
            y = session(given)
            doubled = y * 2
        stream.synchronize()
        torch.testing.assert_close(y.float(), expected(x[:rows], w), rtol=2e-2, atol=2e-1)
        torch.testing.assert_close(doubled, y * 2, rtol=0, atol=0)


@needs_gpu
def test_captured_runs_are_the_same():
    graph, w, x = gated("cuda")
    session, alone = graph.compile({"T": 64}), graph.compile({"T": 64}, capture=False)
    out, plain = torch.empty(64, 128, dtype=x.dtype, device="cuda"), torch.empty(64, 128, dtype=x.dtype, device="cuda")
    for turn in range(5):  # launched, captured, replayed
        x.mul_(1 + turn)
        session(x, out=out)
        alone(x, out=plain)
        torch.testing.assert_close(out, plain, rtol=0, atol=0)


@needs_gpu
def test_pytorch_may_capture_it():
    graph, w, x = gated("cuda")
    session = graph.compile({"T": 64})
    out = torch.empty(64, 128, dtype=x.dtype, device="cuda")
    for _ in range(3):
        session(x, out=out)
    want = out.clone()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        session(x, out=out)
    out.zero_()
    captured.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, want, rtol=0, atol=0)


@needs_gpu
def test_memory_of_the_host_is_copied():
    graph, w, x = gated("cuda")
    session = graph.compile({"T": 64})
    out = torch.empty(64, 128, dtype=x.dtype)
    session(x.cpu(), out=out)
    torch.testing.assert_close(out, session(x).cpu(), rtol=0, atol=0)


@needs_gpu
@pytest.mark.parametrize("fusion", ["none", "full"])
def test_scaled_product_and_gate(fusion):
    generator = torch.Generator().manual_seed(2)
    x, w = (torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8) for shape in ((96, 256), (512, 256)))
    tokens, channels, scales = (torch.rand(shape, generator=generator) / 64 for shape in ((96,), (512,), (96, 512)))
    results = []
    for device in ("cpu", "cuda"):
        graph = cermet.Graph("scaled", device=device)
        operands = [t.to(device) for t in (x, w, tokens, channels)]
        y = graph.scaled_mm(graph.input("x", (96, 256), "i8"), operands[1], graph.input("tokens", (96,)), operands[3], out_dtype="bf16")
        for name, value in zip(("q", "scale"), graph.dequant_swiglu_quant(y, graph.input("scales", (96, 512)))):
            graph.output(name, value)
        graph.output("y", y)
        results.append([t.cpu() for t in graph.compile(fusion=fusion)(operands[0], operands[2], scales.to(device))])
    (q, scale, y), (other_q, other_scale, other_y) = results
    torch.testing.assert_close(other_y, y, rtol=0, atol=0)
    torch.testing.assert_close(other_scale, scale, rtol=1e-5, atol=0)
    assert (q.int() - other_q.int()).abs().max() <= 1
