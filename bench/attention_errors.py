"""Errors of prefill attention against float64, beside PyTorch's cuDNN and FlashAttention-2 where torch and a GPU are.

usage: python3 bench/attention_errors.py [--device cuda] [--tokens 1024] [--kernel NAME [--config FIELDS]]
CERMET_BUILD names the folder of the build (default: build). bf16, causal, 8 query heads on 2 KV heads of 128. Inputs: random; one channel of the keys
1000 times larger; scores that jump by 100 and by 1000 in the middle of a row. Columns: the largest error and the root of the mean square, relative to the
root mean square of the values.
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADS, KV_HEADS, SIZE = 8, 2, 128


def to_bf16(x):
    """The nearest bf16 numbers, as their bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def inputs(kind, tokens, random):
    q, k, v = (random.standard_normal((tokens, heads, SIZE)) for heads in (HEADS, KV_HEADS, KV_HEADS))
    if kind == 'outlier channel':
        k[:, :, 5] *= 1000
    elif kind.startswith('jump'):
        # The last channel adds the jump to each score of the later keys.
        jump = float(kind.split()[-1]) * np.sqrt(SIZE)
        q[:, :, -1], k[:, :, -1] = 16, 0
        k[tokens // 2:, :, -1] = jump / 16
    return [to_bf16(x) for x in (q, k, v)]


def reference(q, k, v):
    q, k, v = (from_bf16(x).astype(np.float64) for x in (q, k, v))
    tokens, group = len(q), HEADS // KV_HEADS
    hidden = np.triu(np.ones((tokens, tokens), bool), 1)
    out = np.empty((tokens, HEADS, SIZE))
    for head in range(HEADS):
        scores = q[:, head] @ k[:, head // group].T / np.sqrt(SIZE)
        scores[hidden] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True))
        out[:, head] = weights @ v[:, head // group] / weights.sum(1, keepdims=True)
    return out


def cermet(operands, args, strict, folder):
    command = [str(pathlib.Path(os.environ.get('CERMET_BUILD', ROOT / 'build')) / 'bin/cermet'), 'call', 'flash_attention', '--device', args.device,
               '--attr', f'strict={str(strict).lower()}', '-o', str(folder / 'o.npy')]
    for option in ('kernel', 'config'):
        if getattr(args, option) and not (strict and option == 'config'):
            command += [f'--{option}', getattr(args, option)]
    for name, bits in zip('qkv', operands):
        np.save(folder / f'{name}.npy', bits)
        command += ['--input', f'{name}={folder / name}.npy:bf16']
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return from_bf16(np.load(folder / 'o.npy').view(np.uint16))


def rivals(operands):
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return
    if not torch.cuda.is_available():
        return
    q, k, v = (torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).cuda().transpose(0, 1)[None] for bits in operands)
    for name, backend in (('cuDNN', SDPBackend.CUDNN_ATTENTION), ('FlashAttention-2', SDPBackend.FLASH_ATTENTION)):
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        yield name, out[0].transpose(0, 1).float().cpu().numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--tokens', type=int, default=1024)
    parser.add_argument('--kernel', default='')
    parser.add_argument('--config', default='')
    args = parser.parse_args()
    random = np.random.default_rng(1)
    for kind in ('random', 'outlier channel', 'jump 100', 'jump 1000'):
        operands = inputs(kind, args.tokens, random)
        right = reference(*operands)
        scale = np.sqrt(np.mean(from_bf16(operands[2]).astype(np.float64) ** 2))
        with tempfile.TemporaryDirectory() as folder:
            found = [(f'cermet{", strict" if strict else ""}', cermet(operands, args, strict, pathlib.Path(folder))) for strict in (False, True)]
        for name, out in (*found, *rivals(operands)):
            error = np.abs(out.astype(np.float64) - right) / scale
            print(f'{kind:<18}{name:<18} max {error.max():.2e}  rms {np.sqrt(np.mean(error ** 2)):.2e}')
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
