"""Prefill and decode speed of transformers on PyTorch's CPU backend (oneDNN), for a table beside Cermet's.

usage: python3 bench/rivals/pytorch.py CONFIG.json [--threads 2] [--prompt-tokens 512] [--new-tokens 32] [--repeat 3]
Needs torch and transformers. Random weights in the configuration's dtype; prints one JSON object with medians in tokens per second.
"""
import argparse
import json
import statistics
import time

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('config')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--prompt-tokens', type=int, default=512)
    parser.add_argument('--new-tokens', type=int, default=32)
    parser.add_argument('--repeat', type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with open(args.config, encoding='utf-8') as file:
        fields = json.load(file)
    config = AutoConfig.for_model(**fields)
    dtype = getattr(torch, fields['dtype'])
    with torch.device('cpu'):
        torch.set_default_dtype(dtype)
        model = AutoModelForCausalLM.from_config(config, attn_implementation='sdpa').eval()
    prompt = torch.randint(0, config.vocab_size, (1, args.prompt_tokens))
    prefill, decode = [], []
    with torch.inference_mode():
        for _ in range(args.repeat + 1):  # the first round warms up
            start = time.perf_counter()
            out = model(prompt, use_cache=True, logits_to_keep=1)
            prefill.append(args.prompt_tokens / (time.perf_counter() - start))
            start = time.perf_counter()
            for _ in range(args.new_tokens):
                token = out.logits[:, -1].argmax(-1, keepdim=True)
                out = model(token, past_key_values=out.past_key_values, use_cache=True)
            decode.append(args.new_tokens / (time.perf_counter() - start))
    print(json.dumps({
        'name': f'transformers {transformers.__version__} on PyTorch {torch.__version__}',
        'dtype': fields['dtype'], 'threads': args.threads, 'prompt_tokens': args.prompt_tokens, 'new_tokens': args.new_tokens,
        'prefill_tokens_per_second': statistics.median(prefill[1:]), 'decode_tokens_per_second': statistics.median(decode[1:]),
    }))


if __name__ == '__main__':
    main()
