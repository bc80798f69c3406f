"""Attention of PyTorch: "prefill B S D CAUSAL" and "decode B S D PAGING", 32 query and 8 KV heads, bf16. Caches here are never paged, lengths always even.
"encoder B S BIAS": 12 heads of 64, f16, in the order of the projections, with a bias [B, 1, S, S] where BIAS is 1."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_timer import random

HEADS, KV_HEADS = 32, 8
BACKENDS = (('cuDNN', SDPBackend.CUDNN_ATTENTION), ('FlashAttention-2', SDPBackend.FLASH_ATTENTION))


def with_backend(backend, call):
    def chosen(i):
        with sdpa_kernel(backend):
            return call(i)
    return chosen


def prefill(timer, *sizes):
    b, s, d, causal = (int(size) for size in sizes)
    sets = timer.sets_for(4 * b * s * (HEADS + KV_HEADS) * d)
    q, k, v = random(sets, b, HEADS, s, d), random(sets, b, KV_HEADS, s, d), random(sets, b, KV_HEADS, s, d)
    call = lambda i: F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=bool(causal), enable_gqa=True)
    return timer.best([(title, with_backend(backend, call)) for title, backend in BACKENDS], sets)


def encoder(timer, *sizes):
    b, s, bias = (int(size) for size in sizes)
    sets = timer.sets_for(8 * b * s * 12 * 64 + 2 * bias * b * s * s)
    q, k, v = (random(sets, b, s, 12, 64, dtype=torch.float16).transpose(2, 3) for _ in range(3))
    added = random(sets, b, 1, s, s, dtype=torch.float16) if bias else [None] * sets
    call = lambda i: F.scaled_dot_product_attention(q[i], k[i], v[i], attn_mask=added[i])
    return timer.best([(title, with_backend(backend, call)) for title, backend in (*BACKENDS, ('memory-efficient', SDPBackend.EFFICIENT_ATTENTION))], sets)


def decode(timer, b, s, d, paging):
    """Also with the four queries of a KV head as rows of one head, which is the same for a single token and suits tensor cores."""
    b, s, d = int(b), int(s), int(d)
    sets = timer.sets_for(4 * b * s * KV_HEADS * d)
    q, k, v = random(sets, b, HEADS, 1, d), random(sets, b, KV_HEADS, s, d), random(sets, b, KV_HEADS, s, d)
    heads = lambda i: F.scaled_dot_product_attention(q[i], k[i], v[i], enable_gqa=True)
    rows = lambda i: F.scaled_dot_product_attention(q[i].view(b, KV_HEADS, HEADS // KV_HEADS, d), k[i], v[i])
    variants = [(title + form, with_backend(backend, call)) for title, backend in BACKENDS for form, call in (('', heads), (', heads as rows', rows))]
    best = timer.best(variants, sets)
    best['method'] += ', even lengths' if paging == 'uneven' else ''
    return best
