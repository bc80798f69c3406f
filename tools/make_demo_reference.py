"""Writes reference.json for the demo model: what transformers computes in float32 (greedy continuations, margins, perplexity).

usage: python3 make_demo_reference.py [models/demo] [--text models/demo/heldout.txt] [--out reference.json]     needs torch, transformers, tokenizers
"""
import argparse
import json
import math
import os

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

PROMPTS = ['The PostgreSQL server', 'NAME\n       open, openat', 'def main():', 'The kernel allocates', '.. function:: ']
GREEDY_TOKENS = 48
CHARACTERS, CHARACTERS_OF_START, WINDOW = 260000, 20000, 512  # the start is for a test of seconds


def greedy(model, ids):
    """The most likely continuation and, for each token, the distance of its logit from the runner-up's."""
    ids, margins = torch.tensor([ids]), []
    start = ids.shape[1]
    for _ in range(GREEDY_TOKENS):
        best = model(ids).logits[0, -1].topk(2)
        margins.append(round((best.values[0] - best.values[1]).item(), 4))
        ids = torch.cat((ids, best.indices[:1].view(1, 1)), 1)
    return ids[0, start:].tolist(), margins


def perplexity(model, tokenizer, text):
    """Over consecutive windows, the tail dropped; every token but a window's first is scored."""
    ids = tokenizer.encode(text).ids
    total, count = 0.0, 0
    for begin in range(0, len(ids) - WINDOW + 1, WINDOW):
        window = torch.tensor([ids[begin:begin + WINDOW]])
        logits = model(window).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction='sum').item()
        count += WINDOW - 1
    return dict(file_chars=len(text), window=WINDOW, tokens=count, value=math.exp(total / count))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('model', nargs='?', default='models/demo')
    parser.add_argument('--text', default='models/demo/heldout.txt')
    parser.add_argument('--out', default='reference.json')
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(os.path.join(arguments.model, 'tokenizer.json'))
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).eval()
    with open(arguments.text, encoding='utf-8', newline='') as file:
        text = file.read()
    prompts = []
    with torch.inference_mode():
        for prompt in PROMPTS:
            ids = tokenizer.encode(prompt).ids
            greedy_ids, margins = greedy(model, ids)
            prompts.append(dict(prompt=prompt, ids=ids, greedy_ids=greedy_ids, greedy_margins=margins, text=tokenizer.decode(greedy_ids)))
        whole, start = (perplexity(model, tokenizer, text[:characters]) for characters in (CHARACTERS, CHARACTERS_OF_START))
    with open(arguments.out, 'w', encoding='utf-8') as file:
        json.dump(dict(perplexity=whole, perplexity_of_start=start, prompts=prompts), file, indent=1)
    print(f'perplexity {whole["value"]:.4f} over {whole["tokens"]} tokens; wrote {arguments.out}')


if __name__ == '__main__':
    main()
