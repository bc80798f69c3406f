"""Convolutions of image networks beside onnxruntime: every distinct shape at batch 1, both in turn.

usage: python3 bench/rivals/onnxruntime_conv.py --cermet build/bin/cermet [--networks resnet50,vgg16] [--threads 2] [--rounds 2] [--json FILE]
Needs onnx and onnxruntime. A model of one Conv and its Relu runs with onnxruntime's profile on: the time is that of its Conv alone, without the reordering
of x and y around it. Run it as `chrt -f 20 python3 ..` where other programs are busy. Prints a row for each shape and a sum for each network.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper


class Conv:
    """Square windows: channels in, height of x, channels out, kernel, stride, padding, groups; how often a network has it."""

    def __init__(self, channels, size, outputs, kernel=1, stride=1, pad=None, group=1, relu=True, count=1):
        self.channels, self.size, self.outputs, self.kernel, self.stride = channels, size, outputs, kernel, stride
        self.pad = kernel // 2 if pad is None else pad
        self.group, self.relu, self.count = group, relu, count

    @property
    def places(self):
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def operations(self):
        return 2 * self.places ** 2 * self.outputs * self.channels // self.group * self.kernel ** 2

    def __str__(self):
        kind = 'dw ' if self.group > 1 else ''
        return f'{kind}{self.channels}x{self.size}x{self.size} -> {self.outputs} {self.kernel}x{self.kernel}/{self.stride}'


def depthwise(channels, size, kernel, stride=1, count=1, relu=True):
    return Conv(channels, size, channels, kernel, stride, group=channels, count=count, relu=relu)


def resnet50():
    yield Conv(3, 224, 64, 7, 2)
    inputs = 64
    for stage, (width, size, blocks) in enumerate(((64, 56, 3), (128, 28, 4), (256, 14, 6), (512, 7, 3))):
        first, stride = (size, 1) if stage == 0 else (2 * size, 2)
        yield Conv(inputs, first, width)
        yield Conv(width, first, width, 3, stride)
        yield Conv(inputs, first, 4 * width, 1, stride, relu=False)
        yield Conv(width, size, 4 * width, relu=False, count=blocks)
        yield Conv(4 * width, size, width, count=blocks - 1)
        yield Conv(width, size, width, 3, count=blocks - 1)
        inputs = 4 * width


def vgg16():
    yield Conv(3, 224, 64, 3)
    for inputs, size, outputs, count in ((64, 224, 64, 1), (64, 112, 128, 1), (128, 112, 128, 1), (128, 56, 256, 1), (256, 56, 256, 2), (256, 28, 512, 1),
                                         (512, 28, 512, 2), (512, 14, 512, 3)):
        yield Conv(inputs, size, outputs, 3, count=count)


def inverted_bottlenecks(inputs, size, blocks):
    """Blocks: expansion, outputs, kernel, stride, count."""
    for expansion, outputs, kernel, stride, count in blocks:
        for _ in range(count):
            width = inputs * expansion
            if expansion > 1:
                yield Conv(inputs, size, width)
            yield depthwise(width, size, kernel, stride)
            size //= stride
            yield Conv(width, size, outputs, relu=False)
            inputs, stride = outputs, 1


def mobilenet_v2():
    yield Conv(3, 224, 32, 3, 2)
    yield from inverted_bottlenecks(32, 112, ((1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 32, 3, 2, 3), (6, 64, 3, 2, 4), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3),
                                              (6, 320, 3, 1, 1)))
    yield Conv(320, 7, 1280)


def efficientnet_b0():
    yield Conv(3, 224, 32, 3, 2)
    yield from inverted_bottlenecks(32, 112, ((1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 40, 5, 2, 2), (6, 80, 3, 2, 3), (6, 112, 5, 1, 3), (6, 192, 5, 2, 4),
                                              (6, 320, 3, 1, 1)))
    yield Conv(320, 7, 1280)


def convnext_t():
    yield Conv(3, 224, 96, 4, 4, pad=0, relu=False)
    for channels, size, count in ((96, 56, 3), (192, 28, 3), (384, 14, 9), (768, 7, 3)):
        yield depthwise(channels, size, 7, count=count, relu=False)
        if channels < 768:
            yield Conv(channels, size, 2 * channels, 2, 2, pad=0, relu=False)


NETWORKS = {'resnet50': resnet50, 'vgg16': vgg16, 'mobilenet_v2': mobilenet_v2, 'efficientnet_b0': efficientnet_b0, 'convnext_t': convnext_t}


def distinct(convs):
    """Each shape once, with its count."""
    found = {}
    for conv in convs:
        key = (str(conv), conv.relu)
        if key in found:
            found[key].count += conv.count
        else:
            found[key] = conv
    return list(found.values())


def make_model(conv):
    weight = numpy.random.default_rng(0).normal(0, 0.1, (conv.outputs, conv.channels // conv.group, conv.kernel, conv.kernel)).astype('float32')
    nodes = [helper.make_node('Conv', ['x', 'w', 'b'], ['c' if conv.relu else 'y'], group=conv.group, kernel_shape=[conv.kernel] * 2,
                              strides=[conv.stride] * 2, pads=[conv.pad] * 4)]
    if conv.relu:
        nodes.append(helper.make_node('Relu', ['c'], ['y']))
    tensors = [helper.make_tensor('w', TensorProto.FLOAT, weight.shape, weight.tobytes(), raw=True),
               helper.make_tensor('b', TensorProto.FLOAT, [conv.outputs], numpy.zeros(conv.outputs, 'float32').tobytes(), raw=True)]
    graph = helper.make_graph(nodes, 'conv', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, conv.channels, conv.size, conv.size])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, conv.outputs, conv.places, conv.places])], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8).SerializeToString()


def rival_seconds(conv, threads, seconds, folder):
    """Median time of the Conv node."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_profiling, options.profile_file_prefix = True, str(pathlib.Path(folder) / 'profile')
    session = onnxruntime.InferenceSession(make_model(conv), options, providers=['CPUExecutionProvider'])
    x = numpy.random.default_rng(1).normal(0, 1, (1, conv.channels, conv.size, conv.size)).astype('float32')
    runs = max(20, int(seconds * 1e11 / max(conv.operations, 1e7)))
    for _ in range(min(runs, 2000)):
        session.run(None, {'x': x})
    path = pathlib.Path(session.end_profiling())
    events = json.loads(path.read_text())
    path.unlink()
    times = [e['dur'] for e in events if e.get('cat') == 'Node' and e['name'].endswith('kernel_time') and 'Conv' in e['args'].get('op_name', '')]
    return statistics.median(times[len(times) // 4:]) * 1e-6


def own_seconds(conv, threads, seconds, cermet, cold):
    size = conv.size
    shape = (f'f32[1,{size},{size},{conv.channels}] f32[{conv.outputs},{conv.channels // conv.group},{conv.kernel},{conv.kernel}] f32[{conv.outputs}] '
             f'layout=nhwc group={conv.group} strides=[{conv.stride},{conv.stride}] pads=[{", ".join([str(conv.pad)] * 4)}]')
    if conv.relu:
        shape += ' activation=relu'
    command = [cermet, 'bench', 'op', 'conv', '--shape', shape, '--threads', str(threads), '--seconds', str(seconds), '--json'] + (['--cold'] if cold else [])
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found['median_seconds'], found['kernel']


def limit(cermet, threads):
    """Operations a second that the machine can do."""
    command = [cermet, 'bench', 'op', 'conv', '--shape', 'f32[1,8,8,8] f32[8,8,1,1] layout=nhwc', '--threads', str(threads), '--seconds', '0', '--limits', '--json']
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)['limits']['f32_operations_per_second']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cermet', default='build/bin/cermet')
    parser.add_argument('--networks', default=','.join(NETWORKS))
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--seconds', type=float, default=0.1, help='of a measurement, about')
    parser.add_argument('--only', default='', help='shapes whose text contains this')
    parser.add_argument('--cold', action='store_true', help='operands of Cermet come from memory')
    parser.add_argument('--json', help='file for the rows')
    args = parser.parse_args()
    peak = limit(args.cermet, args.threads)
    print(f'onnxruntime {onnxruntime.__version__}, {args.threads} threads, peak {peak / 1e9:.0f} GFLOP/s')
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network in args.networks.split(','):
            total = [0, 0]
            for conv in distinct(NETWORKS[network]()):
                if args.only not in str(conv):
                    continue
                own, rival = [], []
                for _ in range(args.rounds):
                    seconds, kernel = own_seconds(conv, args.threads, args.seconds, args.cermet, args.cold)
                    own.append(seconds)
                    rival.append(rival_seconds(conv, args.threads, args.seconds, folder))
                ours, theirs = min(own), min(rival)
                total = [total[0] + conv.count * ours, total[1] + conv.count * theirs]
                rows.append({'network': network, 'conv': str(conv), 'count': conv.count, 'kernel': kernel, 'seconds': ours, 'rival_seconds': theirs,
                             'operations_per_second': conv.operations / ours, 'of_peak': conv.operations / ours / peak})
                print(f'{network:16} {str(conv):32} x{conv.count:<2} {kernel:16} {ours * 1e3:8.3f} ms {theirs * 1e3:8.3f} ms  {ours / theirs:5.2f}  '
                      f'{conv.operations / ours / 1e9:6.1f} GFLOP/s {100 * conv.operations / ours / peak:5.1f} %', flush=True)
            print(f'{network:16} {"all":32}     {"":16} {total[0] * 1e3:8.3f} ms {total[1] * 1e3:8.3f} ms  {total[0] / max(total[1], 1e-12):5.2f}', flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({'peak': peak, 'rows': rows}, indent=1) + '\n')


if __name__ == '__main__':
    main()
