#!/usr/bin/env python3
"""Reads a quantized folder with the packages `compressed-tensors` and `safetensors` (and, where asked, `transformers`), and compares with plain arithmetic.

    read_with_packages.py FOLDER [--transformers]

Fails where the values are not the same, or a package is absent.
"""

import json
import pathlib
import sys

import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.utils.match import match_name
from safetensors import safe_open


def fail(message):
    print(message)
    sys.exit(1)


def read_tensors(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                tensors[name] = file.get_tensor(name)
    return tensors


def scheme_of(config, module):
    """As readers choose: `ignore` wins; then exact names and patterns; then the class, which is Linear for all that asks here."""
    if any(match_name(module, name) for name in config.ignore):
        return None
    matching = [s for s in config.config_groups.values() if any(t == "Linear" or match_name(module, t) for t in s.targets)]
    if len(matching) > 1:
        fail(f"{module}: expected one group, found {len(matching)}")
    return matching[0] if matching else None


def compare_decompressed(config, tensors):
    linear = [name.removesuffix(".weight") for name, t in tensors.items() if name.endswith(".weight") and t.dim() == 2 and "embed" not in name]
    quantized = 0
    for module in linear:
        scheme = scheme_of(config, module)
        scale = tensors.get(module + ".weight_scale")
        if (scheme is None) != (scale is None):
            fail(f"{module}: expected a scale where a group targets it and nowhere else, found {scheme} and {None if scale is None else scale.shape}")
        if scheme is None:
            continue
        quantized += 1
        fixed = scheme.input_activations is not None and not scheme.input_activations.dynamic
        if fixed != (module + ".input_scale" in tensors):
            fail(f"{module}: expected an input scale where the group's inputs are static and nowhere else")
        codes = tensors[module + ".weight"]
        compressor = BaseCompressor.get_value_from_registry(scheme.format)
        found = compressor.decompress({"weight": codes, "weight_scale": scale}, scheme)["weight"]
        expected = (codes.float() * scale.float()).to(found.dtype)
        if not torch.equal(found, expected):
            fail(f"{module}: expected quantized values times scales, found up to {(found.float() - expected.float()).abs().max()} beside them")
    if quantized == 0:
        fail("expected quantized modules, found none")
    return quantized


def compare_loaded(folder, config, tensors):
    """transformers with the folder as it is, against transformers with the decompressed weights and no quantization."""
    from transformers import AutoConfig, AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    values = {}
    for name, tensor in tensors.items():
        module = name.removesuffix(".weight")
        if name.endswith(".weight") and module + ".weight_scale" in tensors:
            scale = tensors[module + ".weight_scale"]
            values[name] = (tensor.float() * scale.float()).to(scale.dtype)
        elif not name.endswith(("_scale",)):
            values[name] = tensor
    plain_config = AutoConfig.from_pretrained(folder)
    del plain_config.quantization_config
    plain = AutoModelForCausalLM.from_config(plain_config).to(loaded.dtype)
    missing, extra = plain.load_state_dict(values, strict=False)
    if extra or [name for name in missing if "lm_head" not in name]:
        fail(f"expected the model's tensors, found {extra} too many and {missing} too few")
    plain.tie_weights()
    ids = torch.arange(3, 19).unsqueeze(0)
    with torch.no_grad():
        found, expected = loaded(ids).logits.float(), plain(ids).logits.float()
    weights_alone = all(scheme.input_activations is None for scheme in config.config_groups.values())
    if weights_alone and not torch.equal(found, expected):
        fail(f"transformers: expected the logits of the decompressed weights, found up to {(found - expected).abs().max()} beside them")
    error = ((found - expected).norm() / expected.norm()).item()
    if not error < 0.2:  # inputs are quantized too: random weights, so only that the function is the same one
        fail(f"transformers: expected logits near those of the decompressed weights, found a relative distance of {error}")
    return error


def main():
    folder = pathlib.Path(sys.argv[1])
    raw = json.loads((folder / "config.json").read_text())["quantization_config"]
    config = QuantizationConfig.model_validate({k: v for k, v in raw.items() if k not in ("sparsity_config", "transform_config", "version")})
    tensors = read_tensors(folder)
    quantized = compare_decompressed(config, tensors)
    line = f"{quantized} modules decompress to quantized values times scales"
    if "--transformers" in sys.argv:
        line += f"; transformers' logits within {compare_loaded(folder, config, tensors):.3g} of the decompressed model's"
    print(line)


if __name__ == "__main__":
    main()
