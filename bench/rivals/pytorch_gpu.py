"""PyTorch on a GPU, for the rows of bench/gpu_suite.py: Inductor, cuBLAS, scaled products and cuDNN's attention, timed as Cermet is.

usage: python3 bench/rivals/pytorch_gpu.py [--only PART] [--models CONFIG.json ...] [--context 512] [--seconds 0.1]
Every row is captured in a CUDA graph over so many sets of operands that the L2 holds none of them, and replayed; medians. Prints one JSON object:
versions, rows {name: {seconds, method, sets}}, models {path: {seconds, method}}. A row that PyTorch refuses has {error} in place of seconds.
"""
import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

MOST_SETS = 8192
GRAPH_SECONDS = 0.002
EPS = 1e-6


class Timer:
    """Median seconds of one call over rotated operands."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.beyond_cache = 4 * torch.cuda.get_device_properties(0).L2_cache_size

    def sets_for(self, set_bytes):
        return max(1, min(-(-self.beyond_cache // set_bytes) + 1, MOST_SETS))

    def time(self, call, sets):
        """call(i) launches the work on set i and returns its results, which are kept so that they, too, rotate."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call(0)
            stream.synchronize()
            graph = self.capture(call, sets, sets)
            launches, one = sets, self.replay(graph, stream)
            if one < GRAPH_SECONDS and sets < 4096:
                launches = sets * max(1, min(int(GRAPH_SECONDS / one) + 1, 4096 // sets))
                if launches > sets:
                    graph = self.capture(call, launches, sets)
            self.replay(graph, stream)
            times, begin = [], time.perf_counter()
            while len(times) < 5 or time.perf_counter() - begin < self.seconds:
                times.append(self.replay(graph, stream) / launches)
        return statistics.median(times)

    @staticmethod
    def capture(call, launches, sets):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            kept = [call(i % sets) for i in range(launches)]
        del kept
        return graph

    @staticmethod
    def replay(graph, stream):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()
        start.record(stream)
        graph.replay()
        end.record(stream)
        stream.synchronize()
        return start.elapsed_time(end) * 1e-3


def random(*shape, dtype=torch.bfloat16):
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, dtype=dtype, device='cuda')
    if dtype == torch.float8_e4m3fn:
        return torch.randn(shape, dtype=torch.bfloat16, device='cuda').to(dtype)
    return torch.randn(shape, dtype=dtype, device='cuda')


def normalised(s, weight):
    f = s.float()
    return f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + EPS) * weight.float()


def quantized(v):
    scale = v.abs().amax(-1, keepdim=True) / 127
    return torch.round(v / scale).to(torch.int8), scale


def gated(x):
    gate, up = x.float().chunk(2, -1)
    return F.silu(gate) * up


def add_rms_norm(x, residual, weight):
    s = x + residual
    return normalised(s, weight).to(x.dtype), s


def rms_norm_quant(x, weight):
    return quantized(normalised(x, weight))


def add_rms_norm_quant(x, residual, weight):
    s = x + residual
    return (*quantized(normalised(s, weight)), s)


def silu_and_mul(x):
    return gated(x).to(x.dtype)


def silu_and_mul_quant(x):
    return quantized(gated(x))


def dynamic_quant(x):
    return quantized(x.float())


MEMORY_BOUND = {  # name: function, widths of its [T, width] operands, width of its weight
    'add_rms_norm': (add_rms_norm, (4096, 4096), 4096),
    'rms_norm_quant': (rms_norm_quant, (4096,), 4096),
    'add_rms_norm_quant': (add_rms_norm_quant, (4096, 4096), 4096),
    'silu_and_mul': (silu_and_mul, (28672,), 0),
    'silu_and_mul_quant': (silu_and_mul_quant, (28672,), 0),
    'dynamic_quant 4096': (dynamic_quant, (4096,), 0),
    'dynamic_quant 14336': (dynamic_quant, (14336,), 0),
}
TOKENS = (16384, 16, 1)
WEIGHTS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))


def memory_bound(timer, rows):
    for name, (function, widths, weight_width) in MEMORY_BOUND.items():
        for tokens in TOKENS:
            def measure():
                torch._dynamo.reset()
                compiled = torch.compile(function, dynamic=False)
                sets = timer.sets_for(2 * tokens * sum(widths))
                operands = [random(sets, tokens, width) for width in widths] + ([random(sets, weight_width)] if weight_width else [])
                unbound = list(zip(*[operand.unbind(0) for operand in operands]))
                return timer.time(lambda i: compiled(*unbound[i]), sets), 'Inductor', sets
            add_row(rows, f'{name} T{tokens}', measure)


def linear(timer, rows):
    for n, k in WEIGHTS:
        def measure():
            sets = timer.sets_for(2 * n * k)
            x, w = random(sets, 1, k), random(sets, n, k)
            best = None
            for library in ('cublas', 'cublaslt'):
                torch.backends.cuda.preferred_blas_library(library)
                seconds = timer.time(lambda i: F.linear(x[i], w[i]), sets)
                if best is None or seconds < best[0]:
                    best = (seconds, {'cublas': 'cuBLAS', 'cublaslt': 'cuBLASLt'}[library], sets)
            torch.backends.cuda.preferred_blas_library('default')
            return best
        add_row(rows, f'linear bf16 M1 N{n} K{k}', measure)


def scaled(timer, rows):
    """fp8 rows with a scale per row and column: 16 of them, because a single one is refused. int8 without scales."""
    for n, k in WEIGHTS:
        def measure(m=16):
            sets = timer.sets_for(n * k)
            a, b = random(sets, m, k, dtype=torch.float8_e4m3fn), random(sets, n, k, dtype=torch.float8_e4m3fn)
            a_scale, b_scale = torch.rand(sets, m, 1, device='cuda'), torch.rand(sets, 1, n, device='cuda')
            call = lambda i: torch._scaled_mm(a[i], b[i].t(), scale_a=a_scale[i], scale_b=b_scale[i], out_dtype=torch.bfloat16)
            return timer.time(call, sets), 'torch._scaled_mm, 16 rows', sets
        add_row(rows, f'scaled_mm f8 M16 N{n} K{k}', measure)

    def measure_int8():
        m, n, k = 8192, 4096, 4096
        sets = timer.sets_for(m * k + n * k + 2 * m * n)
        a, b = random(sets, m, k, dtype=torch.int8), random(sets, n, k, dtype=torch.int8)
        return timer.time(lambda i: torch._int_mm(a[i], b[i].t()), sets), 'torch._int_mm (cuBLASLt), int32 results', sets
    add_row(rows, 'scaled_mm i8 M8192 N4096 K4096', measure_int8)


def attention(timer, rows):
    heads, kv_heads, d = 32, 8, 128
    for b, s in ((1, 4096), (64, 4096), (1, 131072)):
        def measure(backend, title):
            sets = timer.sets_for(4 * b * s * kv_heads * d)
            q, k, v = random(sets, b, heads, 1, d), random(sets, b, kv_heads, s, d), random(sets, b, kv_heads, s, d)
            with sdpa_kernel(backend):
                return timer.time(lambda i: F.scaled_dot_product_attention(q[i], k[i], v[i], enable_gqa=True), sets), title, sets
        name = f'decode attention B{b} S{s}'
        add_row(rows, name, lambda: measure(SDPBackend.CUDNN_ATTENTION, 'cuDNN'))
        if 'error' in rows[name]:
            refusal = rows[name]['error']
            add_row(rows, name, lambda: measure(SDPBackend.FLASH_ATTENTION, 'FlashAttention-2 (cuDNN refused)'))
            rows[name]['cudnn_error'] = refusal


def add_row(rows, name, measure):
    try:
        seconds, method, sets = measure()
        rows[name] = {'seconds': seconds, 'method': method, 'sets': sets}
    except Exception as error:  # a peer that cannot do something is a result, too
        rows[name] = {'error': str(error).splitlines()[0][:200]}
    torch.cuda.empty_cache()
    print(name, rows[name], file=sys.stderr, flush=True)


def rotated(x, cos, sin):
    left, right = x.float().chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1).to(x.dtype)


def decoder_layer(x, w, keys, values, position, cos, sin, heads, kv_heads, d):
    """One token, [1, hidden]; its key and value go to `position` of caches that are full then: no mask, the least work there can be."""
    h = (normalised(x, w['norm1'])).to(x.dtype)
    q, k, v = F.linear(h, w['qkv']).view(1, heads + 2 * kv_heads, d).split((heads, kv_heads, kv_heads), 1)
    q, k = rotated(q, cos, sin), rotated(k, cos, sin)
    keys.index_copy_(2, position, k.transpose(0, 1)[None])
    values.index_copy_(2, position, v.transpose(0, 1)[None])
    o = F.scaled_dot_product_attention(q.transpose(0, 1)[None], keys, values, enable_gqa=True)
    x = x + F.linear(o.transpose(1, 2).reshape(1, heads * d), w['o'])
    h = (normalised(x, w['norm2'])).to(x.dtype)
    return x + F.linear(silu_and_mul(F.linear(h, w['gate_up'])), w['down'])


def decode_step(path, context, seconds):
    """A whole step, weights random: Inductor compiles one layer, all layers and the logits are one CUDA graph."""
    with open(path, encoding='utf-8') as file:
        c = json.load(file)
    hidden, inner, d = c['hidden_size'], c['intermediate_size'], c.get('head_dim', c['hidden_size'] // c['num_attention_heads'])
    heads, kv_heads, layers, vocab = c['num_attention_heads'], c['num_key_value_heads'], c['num_hidden_layers'], c['vocab_size']
    matrix = lambda n, k: torch.randn(n, k, dtype=torch.bfloat16, device='cuda') * 0.02
    weights = [{'norm1': random(hidden), 'norm2': random(hidden), 'qkv': matrix((heads + 2 * kv_heads) * d, hidden), 'o': matrix(hidden, heads * d),
                'gate_up': matrix(2 * inner, hidden), 'down': matrix(hidden, inner)} for _ in range(layers)]
    table = matrix(vocab, hidden)
    head = table if c.get('tie_word_embeddings') else matrix(vocab, hidden)
    caches = [(random(1, kv_heads, context, d), random(1, kv_heads, context, d)) for _ in range(layers)]
    token, position, norm = torch.zeros(1, dtype=torch.long, device='cuda'), torch.tensor([context - 1], device='cuda'), random(hidden)
    angles = torch.rand(d // 2, device='cuda')
    cos, sin = angles.cos(), angles.sin()
    torch._dynamo.reset()
    layer = torch.compile(decoder_layer, dynamic=False)
    last = torch.compile(lambda x, norm, head: F.linear(normalised(x, norm).to(x.dtype), head).argmax(-1), dynamic=False)

    def step():
        x = F.embedding(token, table)
        for w, (keys, values) in zip(weights, caches):
            x = layer(x, w, keys, values, position, cos, sin, heads, kv_heads, d)
        token.copy_(last(x, norm, head))

    with torch.no_grad():
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
    return {'seconds': statistics.median(times), 'method': 'PyTorch compiled (Inductor), one CUDA graph a step', 'context': context}


PARTS = {'memory_bound': memory_bound, 'linear': linear, 'scaled': scaled, 'attention': attention}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', action='append', choices=[*PARTS, 'none'], help='parts to run; all by default')
    parser.add_argument('--models', nargs='*', default=[])
    parser.add_argument('--context', type=int, default=512)
    parser.add_argument('--seconds', type=float, default=0.1)
    args = parser.parse_args()
    timer = Timer(args.seconds)
    result = {'versions': f'PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}', 'rows': {}, 'models': {}}
    with torch.no_grad():
        for name, part in PARTS.items():
            if args.only is None or name in args.only:
                part(timer, result['rows'])
    for path in args.models:
        try:
            result['models'][path] = decode_step(path, args.context, 0.5)
        except Exception as error:
            result['models'][path] = {'error': str(error).splitlines()[0][:200]}
        torch.cuda.empty_cache()
        print(path, result['models'][path], file=sys.stderr, flush=True)
    print(json.dumps(result))


if __name__ == '__main__':
    main()
