"""Writes a tiny random Llama that the compressed-tensors package quantized, and the logits it computes for it in float32.

usage: python3 make_quantized_reference.py OUT      needs torch, transformers, compressed-tensors

Each layer has a scheme of its own: int8 static, int8 weight-only, fp8 static, fp8 dynamic, fp8 weight-only, and int8
weight-only packed four to an int32. Dynamic int8 is left out, because this package divides by absmax / 127.5 where
runtimes take 127.
"""
import json
import sys

import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme, QuantizationStatus, apply_quantization_config
from compressed_tensors.quantization.utils import calculate_qparams
from transformers import LlamaConfig, LlamaForCausalLM

SHARED_INPUTS = {'k_proj': 'q_proj', 'v_proj': 'q_proj', 'up_proj': 'gate_proj'}
SCHEMES = [('int', 'tensor', 'int-quantized'), ('int', None, 'int-quantized'), ('float', 'tensor', 'float-quantized'), ('float', 'token', 'float-quantized'),
           ('float', None, 'float-quantized'), ('int', None, 'pack-quantized')]


def scheme(layer, kind, inputs, stored):
    common = dict(num_bits=8, type=kind, symmetric=True)
    return QuantizationScheme(
        targets=[rf're:model\.layers\.{layer}\..*_proj'], weights=QuantizationArgs(**common, strategy='channel'),
        input_activations=QuantizationArgs(**common, strategy=inputs, dynamic=inputs == 'token') if inputs else None,
        format=stored)


def largest_inputs(model, ids):
    found, hooks = {}, []
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            def note(_, x, name=name):
                found[name] = x[0].abs().max()
            hooks.append(module.register_forward_pre_hook(note))
    model(ids)
    for hook in hooks:
        hook.remove()
    return found


def main():
    out = sys.argv[1]
    torch.manual_seed(8)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=96, hidden_size=48, intermediate_size=78, num_hidden_layers=len(SCHEMES), num_attention_heads=3,
                                         num_key_value_heads=1, max_position_embeddings=128, initializer_range=0.2, tie_word_embeddings=False)).eval()
    ids = torch.randint(0, 96, (1, 20))
    largest = largest_inputs(model, ids)
    apply_quantization_config(model, QuantizationConfig(
        config_groups={f'group_{i}': scheme(i, *s) for i, s in enumerate(SCHEMES)}, ignore=['lm_head'], format='mixed-precision'))
    for name, module in model.named_modules():
        own = getattr(module, 'quantization_scheme', None)
        if own is None:
            continue
        weight = module.weight
        module.weight_scale.data.copy_(calculate_qparams(weight.amin(1, keepdim=True), weight.amax(1, keepdim=True), own.weights)[0])
        if own.input_activations is not None and not own.input_activations.dynamic:
            parent, _, leaf = name.rpartition('.')
            bound = 0.9 * largest[f'{parent}.{SHARED_INPUTS.get(leaf, leaf)}'].reshape(1)
            module.input_scale.data.copy_(calculate_qparams(-bound, bound, own.input_activations)[0])
        module.quantization_status = QuantizationStatus.FROZEN
    logits = model(ids).logits[0]
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(out)
    compressor.update_config(out)
    with open(f'{out}/reference.json', 'w') as f:
        json.dump({'input_ids': ids[0].tolist(), 'logits': [[float(f'{v:.7g}') for v in row] for row in logits.tolist()]}, f)


with torch.no_grad():
    main()
