"""The rows of bench/gpu_suite.py: operator calls with what rivals are asked for, what is to be reached, and the models."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTEXT = 512
WEIGHTS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))  # N, K of the products of Llama-3.1-8B
TOKENS = (1, 2, 8, 16, 64, 128, 512, 2048, 8192)
MODELS = (('Llama-3.2-1B', ROOT / 'bench/models/llama-3.2-1b.json', {('bf16', 1): 800e-6, ('i8', 1): 500e-6}),
          ('Llama-3.1-8B', ROOT / 'bench/models/llama-3.1-8b.json', {('bf16', 1): 4000e-6, ('i8', 1): 2300e-6}))
COMPACT_GOALS = {'Llama-3.2-1B': 680e-6, 'Llama-3.1-8B': 3550e-6}  # of bf16 weights held in 12 bits
BATCHES = (1, 8, 64)
SUSTAINED = 0.5  # seconds for a row that draws the GPU's full power: for less, its clock is that of a burst, and whoever is measured first looks faster
TYPES = ('bf16', 'i8')
BATCH = 32  # images
CONVOLUTIONS = ((3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (256, 56, 512, 1, 2),
                (128, 28, 128, 3, 1), (256, 14, 256, 3, 1), (512, 7, 512, 3, 1))  # C, height and width, M, kernel, stride: of ResNet-50
EXPERTS, TOP_K, HIDDEN, EXPERT_INNER = 128, 8, 2048, 768  # Qwen3-30B-A3B


def memory_bound():
    """Operators that move bytes: 4.1 TB/s with many tokens, 2.2 us with few."""
    shapes = {
        'add_rms_norm': 'x=bf16[{t},4096] residual=bf16[{t},4096] weight=bf16[4096]',
        'rms_norm_quant': 'x=bf16[{t},4096] weight=bf16[4096]',
        'add_rms_norm_quant': 'x=bf16[{t},4096] residual=bf16[{t},4096] weight=bf16[4096]',
        'silu_and_mul': 'x=bf16[{t},28672]',
        'silu_and_mul_quant': 'x=bf16[{t},28672]',
        'dynamic_quant 4096': 'x=bf16[{t},4096]',
        'dynamic_quant 14336': 'x=bf16[{t},14336]',
    }
    for name, shape in shapes.items():
        for tokens in (16384, 16, 1):
            yield {'name': f'{name} T{tokens}', 'group': 'memory-bound', 'op': name.split()[0], 'shape': shape.format(t=tokens),
                   'rival': f"memory {name.replace(' ', ':')} {tokens}", 'goal': {'bytes_per_second': 4.1e12} if tokens == 16384 else {'seconds': 2.2e-6}}


def product(kind, m, n, k):
    if kind == 'bf16':
        return {'op': 'linear', 'shape': f'x=bf16[{m},{k}] w=bf16[{n},{k}]'}
    dtype = {'i8': 'i8', 'f8': 'f8_e4m3'}[kind]
    return {'op': 'scaled_mm', 'shape': f'a={dtype}[{m},{k}] b={dtype}[{n},{k}] a_scale=f32[{m}] b_scale=f32[{n}] out_dtype=bf16'}


def products():
    one_row = {(6144, 4096): (15.0, 8.6), (4096, 4096): (11.2, 6.6), (28672, 4096): (53.5, 28.5), (4096, 14336): (28.5, 15.8)}
    for kind in ('bf16', 'i8', 'f8'):
        for n, k in WEIGHTS:
            for m in TOKENS:
                goal = {'seconds': one_row[n, k][kind != 'bf16'] * 1e-6} if m == 1 else {'rival': 1.0}
                yield {'name': f'{kind} M{m} N{n} K{k}', 'group': f'products {kind}', 'sustained': m >= 512, 'm': m, 'n': n, 'k': k, **product(kind, m, n, k),
                       'rival': f'product {kind} {m} {n} {k}', 'goal': goal}


def grouped():
    """Experts with equally many rows each, or a row each for some where there are fewer rows than experts."""
    for tokens in (1, 8, 64, 512, 4096):
        for n, k in ((2 * EXPERT_INNER, HIDDEN), (HIDDEN, EXPERT_INNER)):
            rows = tokens * TOP_K
            yield {'name': f'grouped bf16 T{tokens} N{n} K{k}', 'group': 'mixtures', 'sustained': tokens >= 4096, 'op': 'grouped_linear', 'rival': f'grouped {rows} {EXPERTS} {n} {k}',
                   'shape': f'x=bf16[{rows},{k}] w=bf16[{EXPERTS},{n},{k}] offsets=i32[{EXPERTS + 1}]', 'goal': {'rival': 1.0}}


def mixture_parts(tokens):
    """Operators of one mixture block, in order; the two grouped products have rows of their own."""
    rows = tokens * TOP_K
    yield f'router T{tokens}', 'linear', f'x=bf16[{tokens},{HIDDEN}] w=bf16[{EXPERTS},{HIDDEN}] out_dtype=f32'
    yield f'gating T{tokens}', 'topk_gating', f'logits=f32[{tokens},{EXPERTS}] k={TOP_K}'
    yield f'permute T{tokens}', 'moe_permute', f'x=bf16[{tokens},{HIDDEN}] ids=i32[{tokens},{TOP_K}] experts={EXPERTS}'
    yield f'silu_and_mul T{tokens} of experts', 'silu_and_mul', f'x=bf16[{rows},{2 * EXPERT_INNER}]'
    yield f'unpermute T{tokens}', 'moe_unpermute', f'rows=bf16[{rows},{HIDDEN}] row_of=i32[{tokens},{TOP_K}] weights=f32[{tokens},{TOP_K}]'


def mixtures():
    for tokens in (1, 8, 64, 512, 4096):
        parts = []
        for name, op, shape in mixture_parts(tokens):
            parts.append(name)
            yield {'name': name, 'group': 'parts of a mixture', 'op': op, 'shape': shape}
        products_of = [f'grouped bf16 T{tokens} N{n} K{k}' for n, k in ((2 * EXPERT_INNER, HIDDEN), (HIDDEN, EXPERT_INNER))]
        yield {'name': f'mixture block T{tokens}', 'group': 'mixtures', 'sustained': tokens >= 4096, 'sum_of': parts + products_of, 'rival': f'mixture {tokens}', 'goal': {'rival': 1.0}}


def prefill_attention():
    """Causal; then with all keys visible, and with weights in two parts."""
    def row(b, s, d, causal=True, strict=False):
        t = b * s
        kind = ('causal' if causal else 'all keys') + (' strict' if strict else '')
        settings = ('' if causal else ' causal=false') + (' strict=true' if strict else '')
        return {'name': f'prefill attention B{b} S{s} D{d} {kind}', 'group': 'prefill attention', 'sustained': True, 'op': 'flash_attention', 'goal': {'rival': 1.0},
                'shape': f'q=bf16[{t},32,{d}] k=bf16[{t},8,{d}] v=bf16[{t},8,{d}] cu_seqlens=i32[{b + 1}]' + settings, 'rival': f'prefill {b} {s} {d} {int(causal)}'}

    for b, s, d in ((4, 4096, 128), (1, 16384, 128), (8, 1024, 64), (1, 8192, 96), (1, 8192, 192), (1, 8192, 256)):
        yield row(b, s, d)
    yield row(1, 16384, 128, causal=False)
    yield row(1, 16384, 128, strict=True)


def encoder_attention():
    """Of BERT-base, with a mask that is added, and ViT-B/16: heads of 64 in the order of the projections."""
    for b, s, bias in ((1, 128, 1), (32, 128, 1), (1, 197, 0), (32, 197, 0), (32, 512, 0)):
        shape = ' '.join(f'{name}=f16[{b},{s},12,64]' for name in 'qkv') + (f' bias=f16[{b},1,{s},{s}]' if bias else '') + ' causal=false'
        yield {'name': f'encoder attention B{b} S{s}' + (' with a bias' if bias else ''), 'group': 'encoder attention', 'sustained': b > 1, 'op': 'flash_attention',
               'goal': {'rival': 1.0}, 'shape': shape, 'rival': f'encoder {b} {s} {bias}'}


def decode_attention():
    """Pages of 16 tokens. Even lengths in the order of memory, scattered, and, with twice the pages, uneven lengths of the same mean."""
    goals = {(1, 4096): {'seconds': 9.0e-6}, (64, 4096): {'bytes_per_second': 4.4e12}, (1, 131072): {'bytes_per_second': 4.4e12}}
    for b, s, d in ((1, 1024, 64), (1, 4096, 128), (8, 4096, 128), (64, 1024, 128), (64, 4096, 128), (256, 1024, 128), (1, 131072, 128)):
        for paging in ('contiguous', 'scattered') + (('uneven',) if b > 1 else ()):
            if paging == 'contiguous' and (b, s) not in goals:
                continue
            pages = s // 16 * (2 if paging == 'uneven' else 1)
            shape = (f'q=bf16[{b},32,{d}] k_cache=bf16[{b * pages},8,16,{d}] v_cache=bf16[{b * pages},8,16,{d}] '
                     f'block_tables=i32[{b},{pages}] context_lens=i32[{b}]')
            yield {'name': f'decode attention B{b} S{s} D{d} {paging}', 'group': 'decode attention', 'op': 'incre_flash_attention', 'shape': shape,
                   'paging': paging, 'rival': f'decode {b} {s} {d} {paging}', 'goal': goals.get((b, s), {'rival': 1.0})}


def convolutions():
    """Channels last, with bias; depthwise ones of MobileNet behind those of ResNet-50."""
    for c, size, m, k, stride in CONVOLUTIONS:
        yield {'name': f'conv f16 B{BATCH} {c}x{size}x{size} -> {m} {k}x{k}/{stride}', 'group': 'convolutions', 'sustained': True, 'op': 'conv', 'goal': {'rival': 1.0},
               'shape': f'x=f16[{BATCH},{size},{size},{c}] weight=f16[{m},{c},{k},{k}] bias=f16[{m}] layout=nhwc strides=[{stride},{stride}] pads=[{", ".join([str(k // 2)] * 4)}]',
               'rival': f'conv {BATCH} {c} {size} {m} {k} {stride} 1'}
    for c, size, stride in ((96, 112, 2), (144, 56, 1), (384, 14, 1)):
        yield {'name': f'conv f16 B{BATCH} depthwise {c}x{size}x{size} 3x3/{stride}', 'group': 'convolutions', 'op': 'conv', 'goal': {'rival': 1.0},
               'shape': f'x=f16[{BATCH},{size},{size},{c}] weight=f16[{c},1,3,3] bias=f16[{c}] layout=nhwc group={c} strides=[{stride},{stride}] pads=[1, 1, 1, 1]',
               'rival': f'conv {BATCH} {c} {size} {c} 3 {stride} {c}'}


def group_norms():
    """Of image generators: 4.0 TB/s."""
    for batch, channels, size in ((2, 320, 64), (2, 320, 128), (16, 640, 32), (1, 128, 512), (32, 320, 64), (16, 320, 128), (64, 640, 32), (4, 128, 512)):
        yield {'name': f'group_norm f16 B{batch} {channels}x{size}x{size}', 'group': 'memory-bound', 'op': 'group_norm', 'goal': {'bytes_per_second': 4.0e12},
               'shape': f'x=f16[{batch},{channels},{size},{size}] weight=f16[{channels}] bias=f16[{channels}] groups=32'}


def operator_rows():
    return [*memory_bound(), *group_norms(), *products(), *grouped(), *mixtures(), *prefill_attention(), *encoder_attention(), *decode_attention(), *convolutions()]


def model_rows():
    for name, config, goals in MODELS:
        for weights in TYPES:
            for batch in BATCHES:
                yield {'name': f'{name} {weights} B{batch}', 'group': 'decode steps', 'model': name, 'config': str(config.relative_to(ROOT)), 'weights': weights,
                       'batch': batch, 'context': CONTEXT, 'rival': f'step {weights} {batch} {CONTEXT} {config}',
                       'goal': {'seconds': goals[weights, batch]} if (weights, batch) in goals else {'rival': 1.0}}
        yield {'name': f'{name} bf16, 12 bits B1', 'group': 'decode steps', 'model': name, 'config': str(config.relative_to(ROOT)), 'weights': 'bf16', 'compact': True,
               'batch': 1, 'context': CONTEXT, 'rival': f'step bf16 1 {CONTEXT} {config}', 'goal': {'seconds': COMPACT_GOALS[name]}}


def seconds_of(row, seconds):
    """How long to measure a row, where `seconds` is enough for a light one."""
    return max(seconds, SUSTAINED) if row.get('sustained') else seconds


def fastest_rival(row):
    """Name and figures of the fastest rival of a measured row, or (None, None)."""
    found = {name: rival for name, rival in row.get('rivals', {}).items() if 'seconds' in rival}
    name = min(found, key=lambda key: found[key]['seconds'], default=None)
    return name, found.get(name)


def goal_of(row):
    """What the goal is in words, and whether the row reaches it: None where nothing was measured to compare with."""
    key, value = next(iter(row['goal'].items()))
    if key == 'rival':
        rival = fastest_rival(row)[1]
        return 'the fastest rival', None if rival is None or 'seconds' not in row else row['seconds'] <= rival['seconds']
    if key == 'seconds':
        return f'{1e6 * value:.4g} us', row['seconds'] <= value if 'seconds' in row else None
    return f"{value / 1e12:g} T{'B' if key.startswith('bytes') else 'OP'}/s", row[key] >= value if key in row else None
