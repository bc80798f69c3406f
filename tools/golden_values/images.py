"""Resampling, regions and boxes, as the onnx package's reference implementation computes them. Its float32 steps are made
in float64."""
import itertools
import math

import numpy
from onnx.reference.ops import op_grid_sample, op_resize

from .case import REAL, Cases, Draw, Tensor, exact
from .movement import TYPES, sample
from .onnx_node import run


def coordinates(self, n, dims, align_corners):
    return numpy.array([self._gs_denormalize(n=float(v), length=d, align_corners=align_corners) for v, d in zip(n, dims)])


op_grid_sample.GridSample._gs_denormalize_coordinates = coordinates


def resized(x, sizes=None, scales=None, roi=None, mode='nearest', **attributes):
    given = {k: int(v) if isinstance(v, bool) else v for k, v in attributes.items()}
    if mode == 'cubic':  # the node rounds its coefficient's products to float32
        filter_of = op_resize._cubic_coeffs_antialias if given.pop('antialias', 0) else op_resize._cubic_coeffs
        a = given.pop('cubic_coeff_a', -0.75)
        sizes = None if sizes is None else [n if s == -1 else s for s, n in zip(sizes, x.shape)]
        given.setdefault('coordinate_transformation_mode', 'half_pixel')
        return op_resize._interpolate_nd(x, lambda ratio, scale: filter_of(ratio, scale, A=a), output_size=sizes, scale_factors=scales, roi=roi, **given)
    sizes = None if sizes is None else numpy.array([n if s == -1 else s for s, n in zip(sizes, x.shape)])
    return run('Resize', [x, None if roi is None else numpy.array(roi), None if scales is None else numpy.array(scales, dtype='float32'), sizes], mode=mode, **given)


def nearest(c, x, **attributes):
    """The reference moves positions, so that every type is exact."""
    places = resized(numpy.arange(math.prod(x.shape), dtype=float).reshape(x.shape), **attributes).astype(int)
    c.add('resize', [x], [Tensor(x.dtype, x.objects.reshape(-1)[places], exact=True)], **attributes)


def of_nn(c, x, scales):
    """tf_half_pixel_for_nn of opset 11, which the onnx package no longer computes: element i stands at
    (i + 0.5) / scale of an axis whose size changes."""
    rules = dict(round_prefer_floor=lambda p: math.ceil(p - 0.5), round_prefer_ceil=lambda p: math.floor(p + 0.5), floor=math.floor, ceil=math.ceil)
    for rule, place in rules.items():
        places = [[i if s == 1 else min(max(place((i + 0.5) / s), 0), n - 1) for i in range(math.floor(n * s))] for n, s in zip(x.shape, scales)]
        c.add('resize', [x], [Tensor(x.dtype, x.objects[numpy.ix_(*places)], exact=True)], scales=scales,
              coordinate_transformation_mode='tf_half_pixel_for_nn', nearest_mode=rule)


def resizes(c, draw):
    for t in TYPES:
        nearest(c, sample(t, (2, 3)), sizes=[-1, 6])
    x = draw.normal('f32', (1, 2, 5, 6))
    c.add('resize', [x], [exact('f32', resized(x.array, mode='linear', sizes=[-1, -1, 7, 4]))], 16, 4e-6, mode='linear', dims=['1', '2', '7', '4'])
    transforms = ['half_pixel', 'half_pixel_symmetric', 'pytorch_half_pixel', 'align_corners', 'asymmetric']
    for transform in transforms:
        for rule in ('round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'):
            nearest(c, x, scales=[1.0, 1.0, 1.5, 0.625], coordinate_transformation_mode=transform, nearest_mode=rule)
        for mode, outside in itertools.product(('linear', 'cubic'), (False, True)):
            a = dict(mode=mode, scales=[1.0, 1.0, 1.5, 0.625], coordinate_transformation_mode=transform, exclude_outside=outside)
            c.add('resize', [x], [exact('f32', resized(x.array, **a))], 16, 4e-6, **a)
    of_nn(c, x, [1.0, 1.0, 1.5, 0.625])
    roi = [0.0, 0.0, 0.25, -0.125, 1.0, 1.0, 0.75, 1.25]
    for mode in ('nearest', 'linear', 'cubic'):
        a = dict(mode=mode, sizes=[-1, -1, 7, 4], coordinate_transformation_mode='tf_crop_and_resize', roi=roi, extrapolation_value=2.5)
        c.add('resize', [x], [exact('f32', resized(x.array, **a))], *((0, 0) if mode == 'nearest' else (16, 4e-6)), **a)
        one = dict(mode=mode, sizes=[-1, -1, 1, 1], coordinate_transformation_mode='pytorch_half_pixel')
        c.add('resize', [x], [exact('f32', resized(x.array, **one))], *((0, 0) if mode == 'nearest' else (16, 4e-6)), **one)
    crop = dict(sizes=[-1, -1, 3, 5], coordinate_transformation_mode='tf_crop_and_resize', roi=[0.0, 0.0, -0.5, 0.0, 1.0, 1.0, 0.5, 1.0])
    c.add('resize', [x], [exact('f32', resized(x.array, **crop))], **crop)
    wide = draw.normal('f32', (1, 1, 9, 14))
    for mode, outside in itertools.product(('linear', 'cubic'), (False, True)):
        a = dict(mode=mode, scales=[1.0, 1.0, 0.5, 0.375], antialias=True, exclude_outside=outside)
        c.add('resize', [wide], [exact('f32', resized(wide.array, **a))], 16, 4e-6, **a)
    for t in (*REAL, 'u8', 'i8', 'i32'):
        y = draw.normal(t, (1, 4, 5, 2)) if t in REAL else draw.integers(t, (1, 4, 5, 2), 0, 127)
        for mode in ('linear', 'cubic'):
            a = dict(mode=mode, sizes=[-1, 12, 15, -1])
            if mode == 'cubic':
                a['cubic_coeff_a'] = -0.618034  # no sum of integers is halfway between two others
            out = resized(y.array.astype(float), **a)
            c.add('resize', [y], [Tensor(t, out, exact=t in REAL)], *((16, 4e-6) if t in REAL else (0, 0)), **a)
    c.add('resize', [x], [x])


def points(c, draw):
    shapes = [(1, 2, 4, 5)]
    for mode, padding, align in itertools.product(('linear', 'nearest', 'cubic'), ('zeros', 'border', 'reflection'), (False, True)):
        for shape in shapes:
            x = draw.normal('f32', shape)
            grid = Tensor('f32', draw.integers('i32', (1, 3, 3, 2), -96, 96).array / 64)
            y = run('GridSample', [x.array, grid.array], mode=mode, padding_mode=padding, align_corners=int(align))
            c.add('grid_sample', [x, grid], [exact('f32', y)], 16, 4e-6, mode=mode, padding_mode=padding, align_corners=align)
    for t in REAL:
        for mode in ('linear', 'nearest'):
            x = draw.normal(t, (2, 2, 2, 4, 3))
            grid = Tensor(t, draw.integers('i32', (2, 2, 1, 3, 3), -40, 40).array / 32)
            y = run('GridSample', [x.array, grid.array], mode=mode)
            c.add('grid_sample', [x, grid], [exact(t, y)], 16, 4e-6, mode=mode)


def regions(c, draw):
    boxes = [[0, 0, 7, 7], [1.5, 2.25, 6.5, 4.75], [3, 3, 3, 3], [-4, -2, 6, 16]]
    for mode, transform, ratio in itertools.product(('avg', 'max'), ('half_pixel', 'output_half_pixel'), (0, 2)):
        x = draw.normal('f32', (2, 2, 8, 7))
        images = [0, 1, 1, 0]
        a = dict(mode=mode, coordinate_transformation_mode=transform, sampling_ratio=ratio, output_height=2, output_width=3, spatial_scale=0.5 if ratio else 1.0)
        y = run('RoiAlign', [x.array, numpy.array(boxes), numpy.array(images)], **a)
        c.add('roi_align', [x, Tensor('f32', boxes), Tensor('i64' if ratio else 'i32', images)], [exact('f32', y)], 64, 1e-5, **a)
    for t in REAL:
        x = draw.normal(t, (1, 2, 4, 4))
        y = run('RoiAlign', [x.array, numpy.array(boxes[:2]), numpy.array([0, 0])])
        c.add('roi_align', [x, Tensor(t, boxes[:2]), Tensor('i64', [0, 0])], [exact(t, y)], 64, 1e-5)


def suppressed(c, draw):
    def case(boxes, scores, most, overlap, least, centered):
        limits = [numpy.array([most]), numpy.array([overlap], dtype='float32'), None if least is None else numpy.array([least], dtype='float32')]
        found = run('NonMaxSuppression', [boxes.array.astype('float32'), scores.array.astype('float32'), *limits], center_point_box=int(centered))
        rows = scores.shape[0] * scores.shape[1] * min(scores.shape[2], most)
        padded = numpy.full((rows, 3), -1)
        padded[:len(found)] = numpy.array(found).reshape(-1, 3)
        a = dict(max_output_boxes_per_class=most, iou_threshold=overlap, center_point_box=centered)
        if least is not None:
            a['score_threshold'] = least
        c.add('non_max_suppression', [boxes, scores], [Tensor('i64', padded), Tensor('i64', [len(found)])], **a)

    for t, centered in itertools.product(REAL, (False, True)):
        boxes, scores = draw.coarse(t, (2, 12, 4), 1.5, 4), draw.coarse(t, (2, 2, 12), 1, 8)
        case(boxes, scores, 4, 0.25, 0.125, centered)
        case(boxes, scores, 20, 0.0, None, centered)
    c.add('non_max_suppression', [draw.normal('f32', (1, 3, 4)), draw.normal('f32', (1, 1, 3))], [Tensor('i64', [], (0, 3)), Tensor('i64', [0])])


def deformed(c, draw):
    def case(t, groups=1, offset_groups=1, bias=True, mask=True, rows=4, columns=4, **attributes):
        x, weight = draw.normal(t, (1, 4, 5, 5)), draw.normal(t, (2, 4 // groups, 2, 2))
        offset = Tensor(t, draw.integers('i32', (1, 8 * offset_groups, rows, columns), -24, 24).array / 16)
        b = draw.normal(t, (2,)) if bias else None
        m = draw.uniform(t, (1, 4 * offset_groups, rows, columns), 0, 1) if mask else None
        arrays = [None if o is None else o.array for o in (x, weight, offset, b, m)]
        y = run('DeformConv', arrays, kernel_shape=[2, 2], group=groups, offset_group=offset_groups, **attributes)
        c.add('deform_conv', [x, weight, offset, b, m], [exact(t, y)], 64, 1e-5, groups=groups, offset_groups=offset_groups, **attributes)

    for t in REAL:
        case(t)
    case('f32', bias=False, mask=False)
    case('f32', groups=2, bias=False)
    case('f32', groups=2, offset_groups=2, mask=False)
    case('f32', rows=2, columns=5, strides=[2, 1], pads=[0, 1, 0, 1], dilations=[1, 2])


def cases():
    c, draw = Cases(), Draw(43)
    for family in (resizes, points, regions, suppressed, deformed):
        family(c, draw)
    return c
