#!/usr/bin/env python3
"""Reads a quantized folder with the packages `compressed-tensors` and `safetensors` (and, where asked, `transformers`), and compares with plain arithmetic.

    read_with_packages.py FOLDER [--transformers]

Fails where the values are not the same, or a package is absent.
"""

import json
import pathlib
import sys
import tempfile

import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.utils.match import match_name
from safetensors import safe_open
from safetensors.torch import save_file


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


def unpacked(tensors):
    """Tensors in which int8 values that are packed four to an int32 are int8 values again."""
    plain = {}
    for name, tensor in tensors.items():
        if name.endswith(".weight_packed"):
            rows, columns = tensors[name.replace("_packed", "_shape")].tolist()
            codes = (tensor.view(torch.uint8).to(torch.int16) - 128).to(torch.int8)
            plain[name.removesuffix("_packed")] = codes[:rows, :columns].contiguous()
        elif not name.endswith(".weight_shape"):
            plain[name] = tensor
    return plain


def scheme_of(config, module):
    """As readers choose: `ignore` wins; then exact names and patterns; then the class, which is Linear for all that asks here."""
    if any(match_name(module, name) for name in config.ignore):
        return None
    matching = [s for s in config.config_groups.values() if any(t == "Linear" or match_name(module, t) for t in s.targets)]
    if len(matching) > 1:
        fail(f"{module}: expected one group, found {len(matching)}")
    return matching[0] if matching else None


def compare_decompressed(config, stored):
    tensors = unpacked(stored)
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
        own = {kind: stored[f"{module}.{kind}"] for kind in ("weight", "weight_packed", "weight_shape", "weight_scale") if f"{module}.{kind}" in stored}
        if scheme.format == "pack-quantized" and "weight_packed" not in own:
            fail(f"{module}: expected packed values, found others")
        found = compressor.decompress(own, scheme)["weight"]
        expected = (codes.float() * scale.float()).to(found.dtype)
        if not torch.equal(found, expected):
            fail(f"{module}: expected quantized values times scales, found up to {(found.float() - expected.float()).abs().max()} beside them")
    if quantized == 0:
        fail("expected quantized modules, found none")
    return quantized


def compare_loaded(folder, config, tensors, most):
    """transformers with the folder as it is, against transformers with the decompressed weights and no quantization."""
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    values = {}
    for name, tensor in unpacked(tensors).items():
        module = name.removesuffix(".weight")
        if name.endswith(".weight") and module + ".weight_scale" in tensors:
            scale = tensors[module + ".weight_scale"]
            values[name] = (tensor.float() * scale.float()).to(scale.dtype)
        elif not name.endswith(("_scale",)):
            values[name] = tensor
    with tempfile.TemporaryDirectory() as plain_folder:
        plain_config = json.loads((folder / "config.json").read_text())
        del plain_config["quantization_config"]
        pathlib.Path(plain_folder, "config.json").write_text(json.dumps(plain_config))
        save_file(values, pathlib.Path(plain_folder, "model.safetensors"), metadata={"format": "pt"})
        plain, info = AutoModelForCausalLM.from_pretrained(plain_folder, dtype=loaded.dtype, output_loading_info=True)
    if info["missing_keys"] or info["unexpected_keys"]:
        fail(f"expected the model's tensors, found {info['unexpected_keys']} too many and {info['missing_keys']} too few")
    ids = torch.arange(3, 19).unsqueeze(0)
    with torch.no_grad():
        found, expected = loaded(ids).logits.float(), plain(ids).logits.float()
    weights_alone = all(scheme.input_activations is None for scheme in config.config_groups.values())
    if weights_alone and not torch.equal(found, expected):
        fail(f"transformers: expected the logits of the decompressed weights, found up to {(found - expected).abs().max()} beside them")
    error = ((found - expected).norm() / expected.norm()).item()
    if not error < most:  # inputs are quantized too: random weights, so only that the function is the same one
        fail(f"transformers: expected logits near those of the decompressed weights, found a relative distance of {error}")
    return error


def main():
    folder = pathlib.Path(sys.argv[1])
    raw = json.loads((folder / "config.json").read_text())["quantization_config"]
    config = QuantizationConfig.model_validate({k: v for k, v in raw.items() if k not in ("sparsity_config", "transform_config", "version")})
    tensors = read_tensors(folder)
    is_mixture = any(".experts." in name for name in tensors)  # whose routers turn small differences into other experts
    quantized = compare_decompressed(config, tensors)
    line = f"{quantized} modules decompress to quantized values times scales"
    if "--transformers" in sys.argv:
        line += f"; transformers' logits within {compare_loaded(folder, config, tensors, 0.5 if is_mixture else 0.2):.3g} of the decompressed model's"
    print(line)


if __name__ == "__main__":
    main()
