#!/usr/bin/env python3
"""Gives a 16-bit checkpoint outliers in its activations without changing what it computes.

Some channels of every layer's two norms are multiplied by powers of two between 32 and 64, and divided out of the columns of the weights that read the norm: q, k
and v, and the router with the gate and up projections (of every expert). Products by powers of two are exact, so the new checkpoint computes the same function up
to the order of sums. Quantizers see activations in which a few channels are 32 to 64 times as large as the others, as large language models have them.

    tools/make_outlier_model.py models/demo /tmp/outliers --channels 4 --seed 1
"""

import argparse
import json
import pathlib
import re
import shutil
import sys

import numpy
import safetensors

READERS = [  # of each norm, within a layer
    ("input_layernorm", re.compile(r"self_attn\.[qkv]_proj$")),
    ("post_attention_layernorm", re.compile(r"(mlp|block_sparse_moe)\.(gate|((experts\.\d+\.)?(gate_proj|up_proj|w1|w3)))$")),
]


def to_float32(dtype, data):
    if dtype == "BF16":
        return (numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    return numpy.frombuffer(data, {"F16": numpy.float16, "F32": numpy.float32}[dtype]).astype(numpy.float32)


def from_float32(dtype, values):
    if dtype == "BF16":  # the low half is zero: only exponents were changed
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
    return values.astype({"F16": numpy.float16, "F32": numpy.float32}[dtype]).tobytes()


def multiplied(name, tensor, factors):
    """The tensor with its last dimension multiplied by factors (powers of two); an error where the element type cannot hold the result."""
    values = to_float32(tensor["dtype"], tensor["data"]).reshape(tensor["shape"])
    with numpy.errstate(over="ignore"):
        result = values * factors
    data = from_float32(tensor["dtype"], numpy.ascontiguousarray(result))
    if not numpy.array_equal(to_float32(tensor["dtype"], data).reshape(result.shape) / factors, values):
        sys.exit(f"{name}: expected values that {tensor['dtype']} holds after scaling, found others")
    return {**tensor, "data": data}


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": tensor["dtype"], "shape": tensor["shape"], "data_offsets": [at, at + len(tensor["data"])]}
        at += len(tensor["data"])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(tensor["data"] for tensor in tensors.values()))


def factors_of(source, seed, channels):
    """By norm: what its channels are multiplied by. Every checkpoint has the norms in its own files, so sizes come from there."""
    factors = {}
    generator = numpy.random.default_rng(seed)
    for name in sorted(source):
        match = re.fullmatch(r"(model\.layers\.\d+\.)(input_layernorm|post_attention_layernorm)\.weight", name)
        if not match:
            continue
        size = source[name]["shape"][0]
        factor = numpy.ones(size, numpy.float32)
        factor[generator.choice(size, min(channels, size), replace=False)] = 2.0 ** generator.integers(5, 7, min(channels, size))
        factors[match.group(1) + match.group(2)] = factor
    return factors


def factor_for(name, factors):
    """What a tensor's last dimension is multiplied by, or nothing."""
    if name.removesuffix(".weight") in factors:
        return factors[name.removesuffix(".weight")]
    match = re.fullmatch(r"(model\.layers\.\d+\.)(.+)\.weight", name)
    for norm, readers in READERS:
        if match and readers.fullmatch(match.group(2)):
            return 1 / factors[match.group(1) + norm]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="folder with config.json and safetensors files")
    parser.add_argument("out", type=pathlib.Path, help="folder to create")
    parser.add_argument("--channels", type=int, default=4, help="of each norm")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    files = {}
    for path in sorted(options.model.glob("*.safetensors")):
        files[path.name] = dict(safetensors.deserialize(path.read_bytes()))
    if not files:
        sys.exit(f"{options.model}: expected safetensors files, found none")
    if "quantization_config" in json.loads((options.model / "config.json").read_text()):
        sys.exit(f"{options.model}/config.json: expected a checkpoint in 16 bit, found a quantized one")
    factors = factors_of({name: tensor for tensors in files.values() for name, tensor in tensors.items()}, options.seed, options.channels)

    options.out.mkdir()
    for path in options.model.iterdir():
        if path.is_file() and path.suffix != ".safetensors" and path.name not in ("reference.json", "heldout.txt"):
            shutil.copyfile(path, options.out / path.name)
    for file, tensors in files.items():
        for name, tensor in tensors.items():
            factor = factor_for(name, factors)
            if factor is not None:
                tensors[name] = multiplied(name, tensor, factor)
        write(options.out / file, tensors)
    print(f"{options.out}: {options.channels} channels of {len(factors)} norms multiplied by 32 or 64")


if __name__ == "__main__":
    main()
