"""Attention, MultiHeadAttention, GroupQueryAttention, QAttention and RotaryEmbedding."""

import numpy as np

from .case import Case, Values

I32 = np.int32


def masks(v, batch, tokens, total):
    """mask_index of every kind; None is no mask."""
    yield "none", None
    yield "lengths", v.whole(1, total, batch, dtype=I32)
    ends = v.whole(total - 1, total, batch, dtype=I32)
    yield "ends_starts", np.concatenate([ends, v.whole(0, total - 2, batch, dtype=I32)])
    flags = v.whole(0, 1, batch, total, dtype=I32)
    flags[:, -1] = 1
    yield "flags", flags
    square = v.whole(0, 1, batch, tokens, total, dtype=I32)
    square[:, :, 0] = 1
    yield "square", square


def packed():
    batch, tokens, width, heads, size = 2, 4, 6, 2, 3
    for past in (0, 3):
        for one_way in (0, 1):
            for kind in ("none", "lengths", "ends_starts", "flags", "square"):
                name = f"attention_past{past}_oneway{one_way}_{kind}"
                v = Values(name)
                mask = dict(masks(v, batch, tokens, past + tokens))[kind]
                inputs = [v.normal(batch, tokens, width), v.normal(width, 3 * heads * size), v.normal(3 * heads * size), mask]
                outputs = (True,)
                if past:
                    inputs.append(v.normal(2, batch, heads, past, size))
                    outputs = (True, True)
                yield Case(name, "Attention", inputs, {"num_heads": heads, "unidirectional": one_way}, outputs, constant=(1, 2), tolerance=1e-3)
    v = Values("attention_more")
    inputs = [v.normal(batch, tokens, width), v.normal(width, 2 * heads * 3 + heads * 4), v.normal(2 * heads * 3 + heads * 4)]
    yield Case("attention_hidden_sizes", "Attention", inputs, {"num_heads": heads, "qkv_hidden_sizes": [6, 6, 8], "scale": 0.3})
    inputs = [v.normal(batch, tokens, width), v.normal(width, 18), v.normal(18), v.whole(1, 4, batch, dtype=I32)]
    yield Case("attention_filter", "Attention", inputs, {"num_heads": heads, "mask_filter_value": -3.0})
    inputs = [v.normal(batch, tokens, width), v.normal(width, 18), v.normal(18), None, None, v.normal(1, heads, tokens, tokens)]
    yield Case("attention_bias", "Attention", inputs, {"num_heads": heads}, (True, True))
    inputs = [v.normal(batch, tokens, width), v.normal(width, 18), v.normal(18), None, None, v.normal(batch, 1, tokens, tokens)]
    yield Case("attention_bias_batch", "Attention", inputs, {"num_heads": heads, "unidirectional": 1})
    yield Case("attention_long", "Attention", [v.normal(1, 9, 8), v.normal(8, 48), v.normal(48)], {"num_heads": 4, "unidirectional": 1}, constant=(1, 2))


def quantized():
    batch, tokens, width, heads, size = 2, 4, 6, 2, 3
    for past in (0, 3):
        for kind in ("none", "lengths", "flags"):
            for columns in (False, True):
                for wtype in (np.uint8, np.int8):
                    name = f"qattention_past{past}_{kind}_columns{int(columns)}_{np.dtype(wtype).name}"
                    v = Values(name)
                    mask = dict(masks(v, batch, tokens, past + tokens))[kind]
                    n = 3 * heads * size
                    scale = v.positive(n) if columns else v.positive()
                    zero = v.whole(0, 5, n, dtype=wtype) if columns else v.whole(0, 5, dtype=wtype)
                    inputs = [v.bytes(batch, tokens, width), v.bytes(width, n, dtype=wtype), v.normal(n), v.positive(), scale, mask,
                              v.whole(100, 150, dtype=np.uint8), zero]
                    outputs = (True,)
                    if past:
                        inputs.append(v.normal(2, batch, heads, past, size))
                        outputs = (True, True)
                    yield Case(name, "QAttention", inputs, {"num_heads": heads, "unidirectional": int(past > 0)}, outputs, constant=(1, 2, 3, 4, 6, 7), tolerance=1e-3)


def multi_head():
    batch, tokens, heads, size = 2, 3, 2, 4
    width = heads * size
    for keys in (3, 5):
        for kind in ("none", "lengths", "flags", "square"):
            for bias in (False, True):
                name = f"mha_keys{keys}_{kind}_bias{int(bias)}"
                v = Values(name)
                mask = dict(masks(v, batch, tokens, keys))[kind]
                inputs = [v.normal(batch, tokens, width), v.normal(batch, keys, width), v.normal(batch, keys, width), v.normal(3 * width) if bias else None, mask]
                yield Case(name, "MultiHeadAttention", inputs, {"num_heads": heads}, tolerance=1e-3)
    for one_way in (0, 1):
        for kind in ("none", "flags"):
            for bias in (False, True):
                past = 4
                name = f"mha_past_oneway{one_way}_{kind}_bias{int(bias)}"
                v = Values(name)
                mask = dict(masks(v, batch, tokens, past + tokens))[kind]
                added = v.normal(1, heads, tokens, past + tokens) if bias else None
                inputs = [v.normal(batch, tokens, width) for _ in range(3)] + [v.normal(3 * width) if bias else None, mask, added]
                inputs += [v.normal(batch, heads, past, size) for _ in range(2)]
                yield Case(name, "MultiHeadAttention", inputs, {"num_heads": heads, "unidirectional": one_way}, (True, True, True), tolerance=1e-3)
    v = Values("mha_more")
    query, key, value = v.normal(batch, tokens, width), v.normal(batch, 5, width), v.normal(batch, 5, heads * 3)
    yield Case("mha_value_size", "MultiHeadAttention", [query, key, value, v.normal(2 * width + heads * 3)], {"num_heads": heads, "scale": 0.4})
    cached = [v.normal(batch, heads, 5, size) for _ in range(2)]
    yield Case("mha_cached_keys", "MultiHeadAttention", [query] + cached, {"num_heads": heads})
    yield Case("mha_cached_keys_bias", "MultiHeadAttention", [query] + cached + [v.normal(3 * width)], {"num_heads": heads})
    yield Case("mha_scores", "MultiHeadAttention", [query, key, v.normal(batch, 5, width)], {"num_heads": heads}, (True, False, False, True), types=(1, 1))
    inputs = [query, key, v.normal(batch, 5, width), None, np.array([[1, 1, 0, 1, 0]] * 2, I32)]
    yield Case("mha_scores_mask", "MultiHeadAttention", inputs, {"num_heads": heads}, (True, False, False, True), types=(1, 1), tolerance=1e-3)
    inputs = [query, v.normal(batch, tokens, width), v.normal(batch, tokens, width)]
    yield Case("mha_scores_one_way", "MultiHeadAttention", inputs, {"num_heads": heads, "unidirectional": 1}, (True, False, False, True), types=(1, 1))
    apart = [v.normal(batch, 5, width) for _ in range(3)]
    whole = np.stack([x.reshape(batch, 5, heads, size) for x in apart], 3)
    plain = Case("", "MultiHeadAttention", apart, {"num_heads": heads})
    yield Case("mha_packed_qkv", "MultiHeadAttention", [whole], {"num_heads": heads}, like=plain)
    bias = v.normal(3 * width)
    yield Case("mha_packed_qkv_bias", "MultiHeadAttention", [whole, None, None, bias], {"num_heads": heads}, like=Case("", "MultiHeadAttention", apart + [bias], {"num_heads": heads}))
    both = np.stack([x.reshape(batch, 5, heads, size) for x in apart[1:]], 3)
    yield Case("mha_packed_kv", "MultiHeadAttention", [query, both], {"num_heads": heads}, like=Case("", "MultiHeadAttention", [query] + apart[1:], {"num_heads": heads}))


def grouped():
    heads, kv_heads = 2, 1

    def make(name, batch, tokens, past, lengths, total=None, packed=False, rotary=None, buffer=None, tolerance=2e-5, outputs=(True, True, True), more=(), **attributes):
        v = Values(name)
        size = 16 if rotary else 8
        query = v.normal(batch, tokens, (heads + 2 * kv_heads) * size if packed else heads * size)
        inputs = [query] + ([None, None] if packed else [v.normal(batch, tokens, kv_heads * size) for _ in range(2)])
        rows = buffer or past
        inputs += [v.normal(batch, kv_heads, rows, size) for _ in range(2)] if rows is not None else [None, None]
        total = total if total is not None else (past or 0) + tokens
        inputs += [np.array([n - 1 for n in lengths], I32), np.array(total, I32)]
        attributes.update(num_heads=heads, kv_num_heads=kv_heads)
        if rotary:
            angles = v.positive(16, rotary // 2, low=0, high=3)
            inputs += [np.cos(angles), np.sin(angles)]
            attributes.update(do_rotary=1)
        else:
            inputs += [None, None]
        inputs += [None] + [x(v) if callable(x) else x for x in more]
        while inputs[-1] is None:
            inputs.pop()
        return Case(name, "GroupQueryAttention", inputs, attributes, outputs, constant=(6,), tolerance=tolerance)

    for packed in (False, True):
        for rotary in (None, 16):
            tag = f"packed{int(packed)}_rotary{int(bool(rotary))}"
            yield make(f"gqa_prompt_{tag}", 1, 5, None, [5], packed=packed, rotary=rotary)
            yield make(f"gqa_prompts_{tag}", 2, 5, None, [5, 5], packed=packed, rotary=rotary)
            yield make(f"gqa_step_{tag}", 1, 1, 6, [7], packed=packed, rotary=rotary)
            yield make(f"gqa_steps_{tag}", 2, 1, 6, [7, 4], packed=packed, rotary=rotary)
            yield make(f"gqa_buffer_{tag}", 2, 1, 6, [7, 4], total=7, buffer=9, packed=packed, rotary=rotary)
            yield make(f"gqa_more_tokens_{tag}", 1, 3, 4, [7], packed=packed, rotary=rotary)
    heads, kv_heads = 4, 2
    yield make("gqa_first_with_buffer", 1, 4, None, [4], total=4, buffer=8)
    yield make("gqa_empty_past", 1, 4, 0, [4])
    yield make("gqa_interleaved", 1, 4, 2, [6], rotary=16, rotary_interleaved=1)
    yield make("gqa_window", 1, 7, None, [7], local_window_size=3)
    yield make("gqa_window_step", 2, 1, 6, [7, 5], local_window_size=3)
    yield make("gqa_scale_softcap", 1, 5, None, [5], scale=0.2, softcap=1.5)
    yield make("gqa_softcap_steps", 2, 1, 6, [7, 3], softcap=0.7)
    yield make("gqa_smooth", 1, 5, None, [5], smooth_softmax=1)
    yield make("gqa_smooth_steps", 2, 1, 6, [7, 3], smooth_softmax=1)
    yield make("gqa_sinks", 1, 5, None, [5], more=(None, lambda v: v.normal(heads)))
    yield make("gqa_bias", 1, 5, None, [5], more=(lambda v: v.normal(1, heads, 5, 5),))
    yield make("gqa_bias_step", 1, 1, 4, [5], more=(lambda v: v.normal(1, heads, 1, 5),))
    case = make("gqa_norms", 1, 5, None, [5], rotary=16, more=(None, None, None, None, lambda v: v.normal(16), lambda v: v.normal(16)))

    def normalized(x, weight):
        each = x.reshape(1, 5, -1, 16)
        return (each / np.sqrt((each * each).mean(-1, keepdims=True) + np.float32(1e-6)) * weight).reshape(x.shape)

    case.like = Case("", case.op, [normalized(case.inputs[0], case.inputs[14]), normalized(case.inputs[1], case.inputs[15]), *case.inputs[2:9]], case.attributes, case.outputs)
    yield case
    for shown in (1, 2):
        yield make(f"gqa_scores{shown}", 1, 4, None, [4], outputs=(True, True, True, True), qk_output=shown)
        yield make(f"gqa_scores{shown}_more", 1, 4, None, [4], outputs=(True, True, True, True), qk_output=shown, softcap=0.5, more=(lambda v: v.normal(1, heads, 4, 4),))


def rotary():
    for interleaved in (0, 1):
        for form in ("3d", "4d"):
            for one in (True, False):
                name = f"rotary_{form}_interleaved{interleaved}_start{int(one)}"
                v = Values(name)
                angles = v.positive(12, 4, low=0, high=3)
                x = v.normal(2, 3, 16) if form == "3d" else v.normal(2, 2, 3, 8)
                places = np.array([4], np.int64) if one else v.whole(0, 11, 2, 3)
                yield Case(name, "RotaryEmbedding", [x, places, np.cos(angles), np.sin(angles)], {"interleaved": interleaved})
    v = Values("rotary_part")
    angles = v.positive(12, 2, low=0, high=3)
    yield Case("rotary_part", "RotaryEmbedding", [v.normal(2, 3, 16), v.whole(0, 11, 2, 3), np.cos(angles), np.sin(angles)], {"num_heads": 2, "rotary_embedding_dim": 4})


def cases():
    return [*packed(), *quantized(), *multi_head(), *grouped(), *rotary()]
