"""Pooling and its inverses, as the onnx package's reference implementation computes them."""
import numpy

from .case import REAL, Cases, Draw, Tensor, exact
from .onnx_node import nhwc, run


def onnx_names(attributes):
    names = {'kernel': 'kernel_shape'}
    return {names.get(k, k): int(v) if isinstance(v, bool) else v for k, v in attributes.items()}


def laid_out(x, layout):
    """The operand in a layout, from [N, C, ..]."""
    return x if layout == 'nchw' else Tensor(x.dtype, nhwc(x.objects), exact=True)


def pooled(c, op, node, x, within, absolute, extra=None, result=None, **attributes):
    """A case in each layout. `result`: from the padded operand; else ONNX's node."""
    y = result if result is not None else run(node, [x.array.astype(float)], **onnx_names(attributes), **(extra or {}))
    for layout in ('nchw', 'nhwc'):
        out = y if layout == 'nchw' else nhwc(y)
        c.add(op, [laid_out(x, layout)], [Tensor(x.dtype, out, exact=x.dtype in REAL)], within, absolute, layout=layout, **attributes)


def maxima(c, draw):
    for t in (*REAL, 'i8', 'u8'):
        x = draw.normal(t, (1, 2, 5, 7)) if t in REAL else draw.integers(t, (1, 2, 5, 7), 0 if t == 'u8' else -128, 127)
        pooled(c, 'max_pool', 'MaxPool', x, 0, 0, kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = draw.normal('f32', (2, 2, 6, 9))
    pooled(c, 'max_pool', 'MaxPool', x, 0, 0, kernel=[2, 3], dilations=[2, 3], pads=[1, 0, 0, 2])
    pooled(c, 'max_pool', 'MaxPool', x, 0, 0, kernel=[3, 2], strides=[2, 3], ceil_mode=True)
    whole = x.array.max(axis=(2, 3), keepdims=True)
    pooled(c, 'max_pool', '', x, 0, 0, result=whole)
    pooled(c, 'max_pool', 'MaxPool', draw.normal('f32', (1, 3, 11)), 0, 0, kernel=[4], strides=[3], pads=[2, 1])
    pooled(c, 'max_pool', 'MaxPool', draw.normal('f32', (1, 2, 4, 3, 5)), 0, 0, kernel=[2, 3, 2], strides=[2, 1, 3])
    for order in (0, 1):
        x = draw.normal('f32', (2, 2, 5, 6))
        y, places = run('MaxPool', [x.array], 2, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], storage_order=order)
        for layout in ('nchw', 'nhwc'):
            turn = (lambda a: a) if layout == 'nchw' else nhwc
            c.add('max_pool', [laid_out(x, layout)], [exact('f32', turn(y)), Tensor('i64', turn(places))], layout=layout, kernel=[3, 2], strides=[2, 2],
                  pads=[1, 0, 1, 1], storage_order=order, with_indices=True)


def means(c, draw):
    for t in REAL:
        for count in (False, True):
            pooled(c, 'average_pool', 'AveragePool', draw.normal(t, (1, 2, 5, 7)), 16, 1e-6, kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=count)
    x = draw.normal('f32', (2, 2, 6, 9))
    for count in (False, True):
        pooled(c, 'average_pool', 'AveragePool', x, 16, 1e-6, kernel=[2, 3], dilations=[2, 3], pads=[1, 0, 0, 2], count_include_pad=count)
        pooled(c, 'average_pool', 'AveragePool', x, 16, 1e-6, kernel=[3, 2], strides=[2, 3], pads=[1, 1, 0, 0], ceil_mode=True, count_include_pad=count)
    pooled(c, 'average_pool', '', x, 16, 4e-6, result=x.array.mean(axis=(2, 3), keepdims=True))
    pooled(c, 'average_pool', 'AveragePool', draw.normal('f32', (1, 3, 11)), 16, 1e-6, kernel=[4], strides=[3], pads=[2, 1])
    pooled(c, 'average_pool', 'AveragePool', draw.normal('f32', (1, 2, 4, 3, 5)), 16, 1e-6, kernel=[2, 3, 2], strides=[2, 1, 3])


def norms(c, draw):
    """ONNX's reference scales means of what is inside, so the padding is made of zeros first, as its node tests do."""
    def case(x, pads, within=64, **attributes):
        spread = [(0, 0), (0, 0), *zip(pads[:len(pads) // 2], pads[len(pads) // 2:])]
        named = onnx_names(attributes)
        y = run('LpPool', [numpy.pad(x.array, spread)], **named)
        pooled(c, 'lp_pool', '', x, within, 1e-6, result=y, **attributes, **({'pads': pads} if any(pads) else {}))

    for t in REAL:
        for p in (1, 2, 3):
            case(draw.normal(t, (1, 2, 5, 7)), [1, 1, 1, 1], kernel=[3, 3], strides=[2, 2], p=p)
    x = draw.normal('f32', (2, 2, 6, 9))
    case(x, [1, 0, 0, 2], kernel=[2, 3], dilations=[2, 3])
    case(x, [0, 0, 0, 0], kernel=[2, 3], strides=[2, 2])
    pooled(c, 'lp_pool', '', x, 64, 1e-6, result=numpy.sqrt((x.array ** 2).sum(axis=(2, 3), keepdims=True)))
    even = draw.normal('f32', (1, 1, 4, 5))  # the last column of windows has one column of x
    y = run('LpPool', [numpy.pad(even.array, [(0, 0), (0, 0), (0, 0), (0, 1)])], kernel_shape=[2, 2], strides=[2, 2])
    pooled(c, 'lp_pool', '', even, 64, 1e-6, result=y, kernel=[2, 2], strides=[2, 2], ceil_mode=True)


def unpooled(c, draw):
    for t in (*REAL, 'i8', 'u8'):
        x = draw.normal(t, (1, 2, 4, 6)) if t in REAL else draw.integers(t, (1, 2, 4, 6), 1, 100)
        y, places = run('MaxPool', [x.array.astype(float)], 2, kernel_shape=[2, 2], strides=[2, 2])
        z = run('MaxUnpool', [y, places], kernel_shape=[2, 2], strides=[2, 2])
        c.add('max_unpool', [Tensor(t, y, exact=t in REAL), Tensor('i64', places)], [Tensor(t, z, exact=t in REAL)], kernel=[2, 2], strides=[2, 2])
    y, places = numpy.array([[[[1.0, 2], [3, 4]]]]), numpy.array([[[[5, 7], [13, 15]]]])
    z = run('MaxUnpool', [y, places, numpy.array([1, 1, 5, 7])], kernel_shape=[2, 2], strides=[2, 2])
    c.add('max_unpool', [Tensor('f32', y), Tensor('i64', places)], [exact('f32', z)], kernel=[2, 2], strides=[2, 2], sizes=[5, 7])
    small = numpy.array([[[[1, 3], [5, 2]]]])
    z = run('MaxUnpool', [y, small], kernel_shape=[2, 3], strides=[2, 2], pads=[1, 1, 0, 1])
    c.add('max_unpool', [Tensor('f32', y), Tensor('i64', small)], [exact('f32', z)], kernel=[2, 3], strides=[2, 2], pads=[1, 1, 0, 1])
    c.add('max_unpool', [Tensor('f32', y), Tensor('i64', [[[[2, 0], [3, 1]]]])], [exact('f32', [[[[2, 4], [1, 3]]]])])


def images(c, draw):
    def case(x, image, kernel, **attributes):
        y = run('Col2Im', [x.array, numpy.array(image), numpy.array(kernel)], **attributes)
        c.add('col2im', [x], [exact(x.dtype, y)], 16, 1e-6, image_shape=image, kernel=kernel, **attributes)

    for t in REAL:
        case(draw.normal(t, (2, 18, 4)), [4, 4], [3, 3])
    case(draw.normal('f32', (1, 4, 9)), [5, 6], [2, 2], strides=[2, 2], pads=[0, 0, 1, 1])
    case(draw.normal('f32', (1, 12, 5)), [6, 6], [2, 3], dilations=[1, 3], pads=[0, 1, 0, 0])
    case(draw.normal('f32', (1, 10, 12)), [4, 5, 3], [1, 5, 1])
    x = draw.normal('f32', (2, 3, 6))
    c.add('col2im', [x], [exact('f32', x.objects.reshape(2, 3, 2, 3))], image_shape=[2, 3])
    c.add('col2im', [draw.normal('f32', (0, 3, 1))], [exact('f32', [], (0, 3))])


def cases():
    c, draw = Cases(), Draw(41)
    for family in (maxima, means, norms, unpooled, images):
        family(c, draw)
    return c
