#!/usr/bin/env python3
"""Whole networks in PyTorch, compiled by Inductor and replayed as CUDA graphs: the peer of `cermet bench model FILE.onnx --device cuda`.

    bench/rivals/torch_networks.py NAME:BATCH ... [--dtype f16]      NAME: resnet50, mobilenet-v2, efficientnet-b0, convnext-t, vit-b16, bert-base, gpt2

Written out with torch.nn alone and random weights; images have their channels last. Prints a JSON line for each: the median seconds of a run, inputs on the GPU.
With --ours FOLDER, what `cermet bench model NAME-f16.onnx --device cuda --dim batch=B [--dim seq=128] --limits --json` printed is read from FOLDER/NAME-B.json, what it
printed with `--mode MODE` from FOLDER/NAME-B-MODE.json where there is one, and --record FILE is written with both sides.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

DTYPES = {'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32}


def conv(c, k, size, stride=1, groups=1, act=None):
    """Batch norms are folded into bias, as exporters do."""
    layers = [nn.Conv2d(c, k, size, stride, (size - 1) // 2, groups=groups)]
    return nn.Sequential(*layers, act()) if act else layers[0]


class Bottleneck(nn.Module):
    def __init__(self, c, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv(c, width, 1, act=nn.ReLU), conv(width, width, 3, stride, act=nn.ReLU), conv(width, 4 * width, 1))
        self.short = conv(c, 4 * width, 1, stride) if stride != 1 or c != 4 * width else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet50():
    layers, c = [conv(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(c, width, stride if i == 0 else 1))
            c = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Gate(nn.Module):
    def __init__(self, c, squeezed):
        super().__init__()
        self.down, self.up = nn.Conv2d(c, squeezed, 1), nn.Conv2d(squeezed, c, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    def __init__(self, c, k, expand, size, stride, act, gate):
        super().__init__()
        wide = c * expand
        layers = [conv(c, wide, 1, act=act)] if expand != 1 else []
        layers.append(conv(wide, wide, size, stride, groups=wide, act=act))
        if gate:
            layers.append(Gate(wide, max(1, c // 4)))
        self.body, self.keeps = nn.Sequential(*layers, conv(wide, k, 1)), stride == 1 and c == k

    def forward(self, x):
        return x + self.body(x) if self.keeps else self.body(x)


def inverted_network(stem, rows, last, act, gate):
    layers, c = [conv(3, stem, 3, 2, act=act)], stem
    for expand, k, count, stride, size in rows:
        for i in range(count):
            layers.append(Inverted(c, k, expand, size, stride if i == 0 else 1, act, gate))
            c = k
    return nn.Sequential(*layers, conv(c, last, 1, act=act), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, 1000))


def mobilenet_v2():
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3))
    return inverted_network(32, rows, 1280, nn.ReLU6, False)


def efficientnet_b0():
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
    return inverted_network(32, rows, 1280, nn.SiLU, True)


class LastNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class NextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, 1e-6)
        self.up, self.down, self.scale = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), nn.Parameter(torch.ones(c))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


def convnext_t():
    layers, c = [nn.Conv2d(3, 96, 4, 4), LastNorm(96, 1e-6)], 96
    for k, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if k != c:
            layers += [LastNorm(c, 1e-6), nn.Conv2d(c, k, 2, 2)]
        layers += [NextBlock(k) for _ in range(count)]
        c = k
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768, 1e-6), nn.Linear(768, 1000))


class Layer(nn.Module):
    """Of an encoder or, with `causal`, a decoder; norms come before (`first`) or after."""

    def __init__(self, width, heads, first, causal, gelu):
        super().__init__()
        self.heads, self.first, self.causal, self.gelu = heads, first, causal, gelu
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x):
        b, s, w = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(b, s, w))

    def feed(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.gelu))

    def forward(self, x):
        if self.first:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.head = nn.Conv2d(3, 768, 16, 16), nn.Parameter(torch.zeros(1, 1, 768))
        self.places = nn.Parameter(torch.zeros(1, 197, 768))
        self.layers, self.norm = nn.Sequential(*(Layer(768, 12, True, False, 'none') for _ in range(12))), nn.LayerNorm(768)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        return self.norm(self.layers(torch.cat((self.head.expand(x.shape[0], -1, -1), x), 1) + self.places))


class Text(nn.Module):
    def __init__(self, first, causal, words, gelu):
        super().__init__()
        self.words, self.places, self.first = nn.Embedding(words, 768), nn.Parameter(torch.zeros(1, 128, 768)), first
        self.layers, self.norm = nn.Sequential(*(Layer(768, 12, first, causal, gelu) for _ in range(12))), nn.LayerNorm(768)

    def forward(self, ids):
        x = self.words(ids) + self.places
        return self.norm(self.layers(x)) if self.first else self.layers(self.norm(x))


def image(batch, dtype):
    return torch.randn(batch, 3, 224, 224, device='cuda', dtype=dtype).to(memory_format=torch.channels_last)


def text(batch, _):
    return torch.randint(0, 1000, (batch, 128), device='cuda')


NETWORKS = {'resnet50': (resnet50, image), 'mobilenet-v2': (mobilenet_v2, image), 'efficientnet-b0': (efficientnet_b0, image), 'convnext-t': (convnext_t, image),
            'vit-b16': (Vit, image), 'bert-base': (lambda: Text(False, False, 30522, 'none'), text), 'gpt2': (lambda: Text(True, True, 50257, 'tanh'), text)}


def measure(name, batch, dtype):
    make, operand = NETWORKS[name]
    torch.manual_seed(0)
    model = make().eval().to('cuda', dtype)
    if operand is image:
        model = model.to(memory_format=torch.channels_last)
    x = operand(batch, dtype)
    compiled = torch.compile(model, mode='reduce-overhead', dynamic=False)
    seconds, in_a_row = [], 20
    with torch.inference_mode():
        begin = time.perf_counter()
        while time.perf_counter() - begin < 0.5:  # clocks are low after a wait
            compiled(x)
            torch.cuda.synchronize()
        for _ in range(30):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            compiled(x)
            begin.record()
            for _ in range(in_a_row):
                compiled(x)
            end.record()
            torch.cuda.synchronize()
            seconds.append(begin.elapsed_time(end) / 1e3 / in_a_row)
    return {'name': name, 'batch': batch, 'seconds': statistics.median(seconds), 'least_seconds': min(seconds)}


def record(path, ours, rounding, rows):
    """Both sides of every network that ran, from one run of the machine."""
    sides = {'ours': {}, 'torch_compiled': {}}
    for row in rows:
        name, batch = row['name'], str(row['batch'])
        own = json.loads((ours / f'{name}-{batch}.json').read_text())
        sides['ours'].setdefault(name, {})[batch] = own['seconds']
        if 'operations' in own:
            sides.setdefault('operations', {}).setdefault(name, {})[batch] = own['operations']
            sides.setdefault('limits', own['limits'])
        for mode in ('pattern', 'none'):
            if (ours / f'{name}-{batch}-{mode}.json').exists():
                sides.setdefault(mode, {}).setdefault(name, {})[batch] = json.loads((ours / f'{name}-{batch}-{mode}.json').read_text())['seconds']
        sides['torch_compiled'].setdefault(name, {})[batch] = row['seconds']
    head = {'date': datetime.date.today().isoformat(), 'machine': torch.cuda.get_device_name(), 'torch': torch.__version__,
            'what': 'whole networks in ' + rows[0]['dtype'] + ', 224 x 224 images or 128 tokens, inputs on the GPU; median seconds of a run, 20 in a row',
            'commands': ['cermet bench model NAME-f16.onnx --device cuda --dim batch=B [--dim seq=128] --rounding ' + rounding + ' --limits --json [--mode MODE]',
                         'bench/rivals/torch_networks.py NAME:B .. --ours FOLDER --record FILE']}
    pathlib.Path(path).write_text(json.dumps(head | sides, indent=1) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('networks', nargs='+')
    parser.add_argument('--dtype', choices=DTYPES, default='f16')
    parser.add_argument('--ours', type=pathlib.Path)
    parser.add_argument('--record')
    parser.add_argument('--rounding', choices=('fast', 'strict'), default='fast', help='of ours, for the record')
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows = []
    for network in args.networks:
        name, _, batch = network.partition(':')
        rows.append({**measure(name, int(batch or 1), DTYPES[args.dtype]), 'dtype': args.dtype, 'torch': torch.__version__})
        print(json.dumps(rows[-1]), flush=True)
        if args.record:
            record(args.record, args.ours, args.rounding, rows)


if __name__ == '__main__':
    main()
