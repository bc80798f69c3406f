"""Attention of PyTorch: "prefill B S D" (causal) and "decode B S D PAGING", 32 query and 8 KV heads, bf16. Caches here are never paged, lengths always even."""
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
    b, s, d = (int(size) for size in sizes)
    sets = timer.sets_for(4 * b * s * (HEADS + KV_HEADS) * d)
    q, k, v = random(sets, b, HEADS, s, d), random(sets, b, KV_HEADS, s, d), random(sets, b, KV_HEADS, s, d)
    call = lambda i: F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=True, enable_gqa=True)
    return timer.best([(title, with_backend(backend, call)) for title, backend in BACKENDS], sets)


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
