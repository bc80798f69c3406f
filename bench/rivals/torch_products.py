"""Products of PyTorch: "product TYPE M N K", "grouped ROWS EXPERTS N K" and "mixture TOKENS" (a block of Qwen3-30B-A3B, bf16)."""
import torch
import torch.nn.functional as F
from torch_memory import silu_and_mul
from torch_timer import random, scales

TUNED = (16, 512)  # rows for which Inductor tunes a kernel of its own where that is asked for
EXPERTS, TOP_K, HIDDEN, INNER = 128, 8, 2048, 768


def with_library(library, call):
    def chosen(i):
        torch.backends.cuda.preferred_blas_library(library)
        return call(i)
    return chosen


def product(timer, kind, *sizes):
    return {'bf16': product_bf16, 'f8': product_f8, 'i8': product_i8}[kind](timer, *(int(size) for size in sizes))


def product_bf16(timer, m, n, k):
    sets = timer.sets_for(2 * (n * k + m * k + m * n))
    x, w = random(sets, m, k), random(sets, n, k)
    call = lambda i: F.linear(x[i], w[i])
    variants = [('cuBLAS', with_library('cublas', call)), ('cuBLASLt', with_library('cublaslt', call))]
    if m in TUNED and timer.autotune:
        tuned = timer.compiled(lambda x, w: F.linear(x, w), autotune=True)
        variants.append(('Inductor, autotuned', lambda i: tuned(x[i], w[i])))
    best = timer.best(variants, sets)
    torch.backends.cuda.preferred_blas_library('default')
    return best


def product_f8(timer, m, n, k):
    """A scale for each row and column, full accumulation. A single row is refused: 16 of them then."""
    rows = max(m, 16)
    sets = timer.sets_for(n * k + rows * k + 2 * rows * n)
    a, b = random(sets, rows, k, dtype=torch.float8_e4m3fn), random(sets, n, k, dtype=torch.float8_e4m3fn)
    a_scale, b_scale = scales(sets, rows, 1), scales(sets, 1, n)
    call = lambda i: torch._scaled_mm(a[i], b[i].t(), scale_a=a_scale[i], scale_b=b_scale[i], out_dtype=torch.bfloat16)
    return timer.best([('torch._scaled_mm' + (', 16 rows' if rows > m else ''), call)], sets)


def product_i8(timer, m, n, k):
    """The int32 product as it comes from the library, and, tuned by Inductor, with its scales."""
    rows = max(m, 32)  # more than 16 are wanted
    sets = timer.sets_for(n * k + rows * k + 4 * rows * n)
    a, b = random(sets, rows, k, dtype=torch.int8), random(sets, n, k, dtype=torch.int8)
    a_scale, b_scale = scales(sets, rows, 1), scales(sets, n)
    variants = [('torch._int_mm, int32 results', lambda i: torch._int_mm(a[i], b[i].t()))]
    if m in TUNED and timer.autotune:
        tuned = timer.compiled(lambda a, b, r, c: (torch._int_mm(a, b.t()) * r * c).to(torch.bfloat16), autotune=True)
        variants.append(('Inductor, autotuned, with scales', lambda i: tuned(a[i], b[i], a_scale[i], b_scale[i])))
    best = timer.best(variants, sets)
    best['method'] += f', {rows} rows' if rows > m else ''
    return best


def even_ends(rows, experts):
    """Where the rows of each expert end: spread as Cermet's rows spread them."""
    return torch.tensor([rows * (e + 1) // experts for e in range(experts)], dtype=torch.int32, device='cuda')


def grouped(timer, *sizes):
    rows, experts, n, k = (int(size) for size in sizes)
    sets = timer.sets_for(2 * (min(rows, experts) * n * k + rows * (n + k)))
    x, w, ends = random(sets, rows, k), random(sets, experts, n, k), even_ends(rows, experts)
    return timer.best([('torch._grouped_mm', lambda i: torch._grouped_mm(x[i], w[i].transpose(-2, -1), offs=ends))], sets)


def mixture_block(x, router, gate_up, down, ids):
    """The router's choice is computed, but rows go where `ids` says, which spreads them as Cermet's rows are spread."""
    tokens = x.shape[0]
    weights, chosen = torch.softmax(F.linear(x, router).float(), -1).topk(TOP_K)
    weights = weights / weights.sum(-1, keepdim=True) + 0 * chosen
    flat = ids.flatten()
    order = flat.argsort(stable=True)
    ends = torch.searchsorted(flat[order], torch.arange(EXPERTS, device=x.device), right=True).to(torch.int32)
    rows = x[order // TOP_K]
    inner = silu_and_mul(torch._grouped_mm(rows, gate_up.transpose(-2, -1), offs=ends))
    results = torch._grouped_mm(inner, down.transpose(-2, -1), offs=ends).float() * weights.flatten()[order, None]
    return torch.zeros(tokens, HIDDEN, device=x.device).index_add_(0, order // TOP_K, results).to(x.dtype)


def mixture(timer, tokens):
    tokens = int(tokens)
    touched = min(EXPERTS, tokens * TOP_K)
    sets = timer.sets_for(2 * touched * 3 * HIDDEN * INNER)
    x, router = random(sets, tokens, HIDDEN), random(sets, EXPERTS, HIDDEN)
    gate_up, down = random(sets, EXPERTS, 2 * INNER, HIDDEN), random(sets, EXPERTS, HIDDEN, INNER)
    ids = (torch.arange(tokens * TOP_K, device='cuda') * 7919 % EXPERTS).view(tokens, TOP_K)
    block = timer.compiled(mixture_block)
    return timer.best([('Inductor with torch._grouped_mm', lambda i: block(x[i], router[i], gate_up[i], down[i], ids))], sets)
