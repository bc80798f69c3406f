"""Writes tiny random checkpoints of several architectures with transformers, and the logits and greedy tokens it computes for them in float32.

usage: python3 make_reference_models.py OUT_DIR [--set dev|heldout|settings | --again]      needs torch, transformers

Each model lands in OUT_DIR/NAME with reference.json beside it. The logits are those of from_pretrained(dtype=float32): weights rounded to the stored type,
rotary frequencies exact. --again keeps the models that OUT_DIR has and their prompts, and recomputes every reference.json.
"""
import argparse
import json
import os

import torch
import transformers
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, MistralConfig, MixtralConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig

PROMPT_TOKENS, GREEDY_TOKENS = 24, 24
BASE = dict(vocab_size=320, hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            max_position_embeddings=512, bos_token_id=0, eos_token_id=1)
LLAMA3 = dict(rope_type='llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type='yarn', factor=4.0, original_max_position_embeddings=64)
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def base(**changes):
    return {**BASE, **changes}


# For each set: the first seed, and name -> (configuration, stored type). Order matters: model i takes seed + i.
SETS = {
    'dev': (100, {
        'llama-gqa-f32': (LlamaConfig(**BASE, tie_word_embeddings=False), F32),
        'llama-rope-scaled-bf16': (LlamaConfig(**BASE, tie_word_embeddings=True, rope_theta=500000.0, rope_scaling=LLAMA3), BF16),
        'qwen2-bias-f16': (Qwen2Config(**BASE, tie_word_embeddings=False), F16),
        'qwen3-qknorm-bf16': (Qwen3Config(**BASE, head_dim=32, tie_word_embeddings=True), BF16),
        'mixtral-bf16': (MixtralConfig(**BASE, num_local_experts=8, num_experts_per_tok=2, tie_word_embeddings=False), BF16),
        'qwen3moe-bf16': (Qwen3MoeConfig(**BASE, head_dim=32, moe_intermediate_size=48, num_experts=16, num_experts_per_tok=4, norm_topk_prob=True,
                                         tie_word_embeddings=True), BF16),
    }),
    'heldout': (100, {
        'llama-bias-mha-f16': (LlamaConfig(**base(num_key_value_heads=6), attention_bias=True, mlp_bias=True, tie_word_embeddings=True), F16),
        'llama-headdim-mqa-bf16': (LlamaConfig(**base(num_key_value_heads=1), head_dim=40, tie_word_embeddings=False, rope_theta=1e6), BF16),
        'qwen3moe-mixed-f32': (Qwen3MoeConfig(**base(num_hidden_layers=4), head_dim=16, moe_intermediate_size=40, num_experts=12, num_experts_per_tok=3,
                                              norm_topk_prob=False, decoder_sparse_step=2, mlp_only_layers=[1], tie_word_embeddings=False), F32),
        'mistral-window-bf16': (MistralConfig(**BASE, sliding_window=16, tie_word_embeddings=False), BF16),
        'qwen2-tied-bf16': (Qwen2Config(**base(num_hidden_layers=5), tie_word_embeddings=True, rope_theta=1e6), BF16),
        'mixtral-top1-f16': (MixtralConfig(**base(num_key_value_heads=3), num_local_experts=5, num_experts_per_tok=1, tie_word_embeddings=True), F16),
    }),
    'settings': (200, {
        'llama-yarn-f32': (LlamaConfig(**base(max_position_embeddings=256), tie_word_embeddings=False, rope_scaling=YARN), F32),
        'llama-yarn-bf16': (LlamaConfig(**base(max_position_embeddings=256), head_dim=32, tie_word_embeddings=True, rope_theta=500000.0,
                                        rope_scaling=dict(YARN, beta_fast=16, beta_slow=2, attention_factor=0.9)), BF16),
        'llama-rope-linear2-f32': (LlamaConfig(**BASE, tie_word_embeddings=False, rope_scaling=dict(rope_type='linear', factor=2.0)), F32),
        'llama-rope-linear2-f16': (LlamaConfig(**BASE, tie_word_embeddings=True, rope_scaling=dict(rope_type='linear', factor=2.0)), F16),
        'llama-rope-dynamic2-f32': (LlamaConfig(**BASE, tie_word_embeddings=False, rope_scaling=dict(rope_type='dynamic', factor=2.0)), F32),
        'llama-rope-dynamic2-maxpos16-f32': (LlamaConfig(**base(max_position_embeddings=16), tie_word_embeddings=False,
                                                         rope_scaling=dict(rope_type='dynamic', factor=2.0)), F32),
        'qwen3moe-bias-top1-bf16': (Qwen3MoeConfig(**base(num_key_value_heads=1), head_dim=24, moe_intermediate_size=48, num_experts=5,
                                                   num_experts_per_tok=1, norm_topk_prob=True, attention_bias=True, tie_word_embeddings=False), BF16),
        'qwen3-mixedwindow-f16': (Qwen3Config(**BASE, head_dim=32, use_sliding_window=True, sliding_window=8, max_window_layers=1,
                                              tie_word_embeddings=False), F16),
        'mistral-window-headdim-f16': (MistralConfig(**BASE, head_dim=24, sliding_window=8, tie_word_embeddings=False), F16),
        'mixtral-window-bf16': (MixtralConfig(**BASE, num_local_experts=4, num_experts_per_tok=2, sliding_window=8, tie_word_embeddings=False), BF16),
        'qwen2-mixedwindow-f32': (Qwen2Config(**BASE, use_sliding_window=True, sliding_window=8, max_window_layers=2, tie_word_embeddings=False), F32),
        'gemma2-softcap-window-bf16': (Gemma2Config(**base(num_hidden_layers=5), head_dim=24, query_pre_attn_scalar=20, sliding_window=7,
                                                    attn_logit_softcapping=3.0, final_logit_softcapping=8.0), BF16),
    }),
}


def random_model(config, seed):
    """Random weights large enough that logits spread; norms and biases differ from their initial ones and zeros."""
    torch.manual_seed(seed)
    config.initializer_range = 0.2
    # Gemma's norms multiply by 1 + weight, and its embeddings are large: without wide norms a token predicts itself.
    spread = 1.0 if config.model_type == 'gemma2' else 0.1
    model = AutoModelForCausalLM.from_config(config, attn_implementation='eager').eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith('norm.weight') or 'bias' in name:
                parameter.add_(torch.randn_like(parameter) * spread)
    return model


def router_margins(model, ids):
    """For each position, how far the last expert chosen was from the first one that was not: the smallest distance of router logits over the layers."""
    chosen = model.config.num_experts_per_tok
    margins = []
    for scores in model(ids, output_router_logits=True).router_logits:
        ordered = scores.float().sort(-1, descending=True).values
        margins.append(ordered[:, chosen - 1] - ordered[:, chosen])
    return [round(v, 5) for v in torch.stack(margins).min(0).values.tolist()]


def reference(folder, ids):
    """Logits of every position of `ids`, then greedy tokens with the distance of each one's logit from the runner-up's."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation='eager').eval()
    with torch.no_grad():
        logits = model(ids).logits[0]
        current, margins = ids, []
        for _ in range(GREEDY_TOKENS):
            last = model(current).logits[0, -1]
            best = last.topk(2).values
            margins.append(round((best[0] - best[1]).item(), 5))
            current = torch.cat((current, last.argmax().view(1, 1)), 1)
        result = dict(transformers=transformers.__version__, loaded='from_pretrained(dtype=float32)', input_ids=ids[0].tolist(),
                      logits=[[round(v, 5) for v in row] for row in logits.tolist()], greedy_ids=current[0, ids.shape[1]:].tolist(), greedy_margins=margins)
        if getattr(model.config, 'num_experts_per_tok', None):
            result['router_margins'] = router_margins(model, current)
    return result


def write(folder, weights_dtype, ids):
    result = dict(weights_dtype=weights_dtype, **reference(folder, ids))
    with open(os.path.join(folder, 'reference.json'), 'w', encoding='utf-8') as file:
        json.dump(result, file)
    print(folder, weights_dtype, 'smallest greedy margin', min(result['greedy_margins']), flush=True)


def remake(folder):
    with open(os.path.join(folder, 'reference.json'), encoding='utf-8') as file:
        known = json.load(file)
    write(folder, known['weights_dtype'], torch.tensor([known['input_ids']]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out')
    parser.add_argument('--set', default='dev', choices=SETS)
    parser.add_argument('--again', action='store_true')
    arguments = parser.parse_args()
    if arguments.again:
        for name in sorted(os.listdir(arguments.out)):
            remake(os.path.join(arguments.out, name))
        return
    first_seed, models = SETS[arguments.set]
    for i, (name, (config, dtype)) in enumerate(models.items()):
        folder = os.path.join(arguments.out, name)
        random_model(config, first_seed + i).to(dtype).save_pretrained(folder)
        write(folder, str(dtype).split('.')[-1], torch.randint(2, config.vocab_size, (1, PROMPT_TOKENS)))


if __name__ == '__main__':
    main()
