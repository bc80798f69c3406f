"""A decode step of a Llama in PyTorch: "step WEIGHTS BATCH CONTEXT CONFIG", random weights, one CUDA graph a step. The layer is compiled by Inductor.

A single sequence: products by cuBLAS or, the other form, as reductions that Inductor fuses, which is how int8 weights are widened without a pass over memory.
Several: int8 weights mean int8 products of rows quantized on the fly, of which there are at least 32, because torch._int_mm wants more than 16.
"""
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch_memory import normalized, quantized, silu_and_mul
from torch_timer import Timer, random, scales


def rotated(x, cos, sin):
    left, right = x.float().chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1).to(x.dtype)


def linear(x, w, reduced):
    """w: a bf16 matrix, or int8 codes and scales."""
    codes, scale = w if isinstance(w, tuple) else (w, None)
    if reduced:  # of one row
        sums = (codes.float() * x.float()).sum(-1)
        return (sums if scale is None else sums * scale).to(x.dtype)[None]
    if scale is None:
        return F.linear(x, codes)
    b = x.shape[0]
    rows, row_scale = quantized(x.float())
    rows = F.pad(rows, (0, 0, 0, max(0, 32 - b)))
    return (torch._int_mm(rows, codes.t())[:b] * row_scale * scale).to(x.dtype)


def decoder_layer(x, w, keys, values, position, cos, sin, heads, kv_heads, d, packed, reduced):
    """[B, hidden]; keys and values go to `position` of caches that are full then: no mask, the least work there can be."""
    b = x.shape[0]
    h = normalized(x, w['norm1']).to(x.dtype)
    q, k, v = linear(h, w['qkv'], reduced).view(b, heads + 2 * kv_heads, d).split((heads, kv_heads, kv_heads), 1)
    q, k = rotated(q, cos, sin), rotated(k, cos, sin)
    keys.index_copy_(2, position, k[:, :, None])
    values.index_copy_(2, position, v[:, :, None])
    if packed:
        o = F.scaled_dot_product_attention(q.reshape(b, kv_heads, heads // kv_heads, d), keys, values)
    else:
        o = F.scaled_dot_product_attention(q[:, :, None], keys, values, enable_gqa=True)
    x = x + linear(o.reshape(b, heads * d), w['o'], reduced)
    h = normalized(x, w['norm2']).to(x.dtype)
    return x + linear(silu_and_mul(linear(h, w['gate_up'], reduced)), w['down'], reduced)


class Model:
    def __init__(self, path, kind, batch, context):
        with open(path, encoding='utf-8') as file:
            c = json.load(file)
        hidden, inner, self.d = c['hidden_size'], c['intermediate_size'], c.get('head_dim', c['hidden_size'] // c['num_attention_heads'])
        self.heads, self.kv_heads, vocab = c['num_attention_heads'], c['num_key_value_heads'], c['vocab_size']
        bf16 = lambda n, k: torch.randn(n, k, dtype=torch.bfloat16, device='cuda') * 0.02
        matrix = bf16 if kind == 'bf16' else lambda n, k: (random(n, k, dtype=torch.int8), scales(n))
        qkv = (self.heads + 2 * self.kv_heads) * self.d
        self.weights = [{'norm1': random(hidden), 'norm2': random(hidden), 'qkv': matrix(qkv, hidden), 'o': matrix(hidden, self.heads * self.d),
                         'gate_up': matrix(2 * inner, hidden), 'down': matrix(hidden, inner)} for _ in range(c['num_hidden_layers'])]
        self.table, self.norm = bf16(vocab, hidden), random(hidden)
        self.head = self.table if c.get('tie_word_embeddings') else bf16(vocab, hidden)  # of 16 bits, as Cermet's
        cache = lambda: random(batch, self.kv_heads, context, self.d)
        self.caches = [(cache(), cache()) for _ in self.weights]
        self.tokens, self.position = torch.zeros(batch, dtype=torch.long, device='cuda'), torch.tensor([context - 1], device='cuda')
        angles = torch.rand(self.d // 2, device='cuda')
        self.cos, self.sin = angles.cos(), angles.sin()

    def step(self, layer, last, packed, reduced):
        x = F.embedding(self.tokens, self.table)
        for w, (keys, values) in zip(self.weights, self.caches):
            x = layer(x, w, keys, values, self.position, self.cos, self.sin, self.heads, self.kv_heads, self.d, packed, reduced)
        self.tokens.copy_(last(x, self.norm, self.head, reduced))


def replay_seconds(step, seconds):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
        times, begin = [], time.perf_counter()
        while len(times) < 20 or time.perf_counter() - begin < seconds:
            times.append(Timer.replay(graph, stream))
    return statistics.median(times)


def best_token(x, norm, head, reduced):
    return linear(normalized(x, norm).to(x.dtype), head, reduced).argmax(-1)


def forms_of(timer, kind, batch):
    """(title, heads as rows, products as reductions, autotuned) of what is tried."""
    if batch > 1:
        forms = [('Inductor', False, False, False), ('Inductor, heads as rows', True, False, False)]
    else:
        forms = [('Inductor, products as reductions', False, True, False)] + [('Inductor', False, False, False)] * (kind == 'bf16')
    return forms + [('Inductor, autotuned', False, batch == 1, True)] * timer.autotune


def step(timer, kind, batch, context, path):
    model = Model(path, kind, int(batch), int(context))
    found = []
    for title, packed, reduced, autotune in forms_of(timer, kind, int(batch)):
        layer = timer.compiled(decoder_layer, autotune)
        last = torch.compile(best_token, dynamic=False)
        try:
            found.append((replay_seconds(lambda: model.step(layer, last, packed, reduced), timer.seconds), title))
        except Exception as error:  # a form that PyTorch refuses is left out
            refusal = error
    if not found:
        raise refusal
    seconds, title = min(found)
    weights = {'bf16': 'bf16'}.get(kind, 'int8 weights' if int(batch) == 1 else 'int8 products')
    return {'seconds': seconds, 'method': f'{title}, {weights}, one CUDA graph a step', 'context': int(context)}
