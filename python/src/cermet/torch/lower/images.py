"""Resampling, padding and rearrangement of images."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .rows import aten, packet, row

Node = torch.fx.Node

_NEAREST = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
_NEAREST_EXACT = {
    "mode": "nearest",
    "nearest_mode": "round_prefer_ceil",
    "coordinate_transformation_mode": "half_pixel",
}


def _resized(lowering: Any, node: Node, x: Node, scales: list[float | None] | None, of: dict[str, Any]) -> Any:
    """The operand in the result's size. Given scales decide where samples are, unless corners are aligned."""
    dtype = lowering.dtype(x)
    if not lowering.fake(x).numel() or not lowering.fake(node).numel():
        raise Unsupported("an image of no elements")
    have, want = lowering.shape(x), lowering.shape(node)
    size: dict[str, Any] = {"sizes": list(want)}
    aligned = of["coordinate_transformation_mode"] == "align_corners"
    if scales and all(scale is not None for scale in scales) and not aligned:
        all_scales = [1.0, 1.0, *(float(scale) for scale in scales)]  # type: ignore[arg-type]
        if any(int(n * scale) != m for n, scale, m in zip(have, all_scales, want)):
            raise Unsupported("an image whose size is not that of its scales")
        if any(n * scale != m for n, scale, m in zip(have, all_scales, want)):
            size = {"scales": all_scales}
    if not dtype.is_floating_point and of["mode"] != "nearest":
        raise Unsupported(f"samples between elements of {dtype}")
    made = lowering.op("resize", lowering(x), **size, **of)
    return lowering.reshape(made, want)


def _scale_list(node: Node, given: tuple) -> list[float | None] | None:
    """Scales of a call: one list in the form `vec`, else a number for each axis."""
    if not given:
        return None
    return list(given[0]) if isinstance(given[0], (list, tuple)) else None if given[0] is None else list(given)


for _name, _of in (("upsample_nearest", _NEAREST), ("_upsample_nearest_exact", _NEAREST_EXACT)):
    for _axes in (1, 2, 3):
        _packet = packet(f"{_name}{_axes}d")

        @row(_packet.vec, _packet.default)
        def upsample_nearest(lowering, node, x, size, *scales, of=_of):
            return _resized(lowering, node, x, _scale_list(node, scales), of)


def _smooth(mode: str, antialias: bool = False):
    def lower(lowering, node, x, size, align_corners, *scales):
        of = {"mode": mode, "coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel"}
        if antialias:
            of |= {"antialias": True, "exclude_outside": True} | ({"cubic_coeff_a": -0.5} if mode == "cubic" else {})
            if align_corners:
                raise Unsupported("antialiased samples with aligned corners")
        return _resized(lowering, node, x, _scale_list(node, scales), of)

    return lower


row(aten.upsample_linear1d.vec, aten.upsample_linear1d.default)(_smooth("linear"))
row(aten.upsample_bilinear2d.vec, aten.upsample_bilinear2d.default)(_smooth("linear"))
row(aten.upsample_trilinear3d.vec, aten.upsample_trilinear3d.default)(_smooth("linear"))
row(aten.upsample_bicubic2d.vec, aten.upsample_bicubic2d.default)(_smooth("cubic"))
row(aten._upsample_bilinear2d_aa.vec, aten._upsample_bilinear2d_aa.default)(_smooth("linear", True))
row(aten._upsample_bicubic2d_aa.vec, aten._upsample_bicubic2d_aa.default)(_smooth("cubic", True))

_SAMPLING = ("linear", "nearest", "cubic")
_PADDING = ("zeros", "border", "reflection")


@row(aten.grid_sampler.default, aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def grid_sampler(lowering, node, x, grid, interpolation, padding, align_corners):
    if not lowering.fake(x).numel() or not lowering.fake(grid).numel():
        raise Unsupported("an image of no elements")
    of = {"mode": _SAMPLING[interpolation], "padding_mode": _PADDING[padding], "align_corners": bool(align_corners)}
    return lowering.op("grid_sample", lowering(x), lowering(grid), **of)


@row(aten.pixel_shuffle.default)
def pixel_shuffle(lowering, node, x, factor):
    *lead, channels, height, width = lowering.shape(x)
    made = channels // (factor * factor)
    value = lowering.reshape(lowering(x), [*lead, made, factor, factor, height, width])
    rank = len(lead)
    order = [*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2]
    return lowering.reshape(lowering.transpose(value, order), lowering.shape(node))


def _padded(lowering: Any, node: Node, x: Node, pad: list[int], mode: str, value: float) -> Any:
    """`pad` counts from the last axis; negative numbers cut off."""
    made, rank = lowering(x), lowering.rank(x)
    front, behind = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        front[rank - 1 - i], behind[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    for axis in range(rank):
        if front[axis] < 0 or behind[axis] < 0:
            start, end = max(0, -front[axis]), int(made.shape[axis]) + min(0, behind[axis])
            made = lowering.slice(made, axis, start, end)
            front[axis], behind[axis] = max(0, front[axis]), max(0, behind[axis])
    if not any(front + behind):
        return made
    dtype = lowering.dtype(x)
    if not dtype.is_floating_point and int(value) != value:
        raise Unsupported(f"padding of {dtype} with {value}")
    if not lowering.fake(x).numel() and mode != "constant":
        raise Unsupported("padding of no elements")
    return lowering.op("pad", made, pads=front + behind, mode=mode, value=float(value))


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


@row(aten.pad.default)
def pad(lowering, node, x, pad, mode="constant", value=None):
    if mode == "circular":
        return _circular(lowering, x, pad)
    return _padded(lowering, node, x, pad, _MODES[mode], 0 if value is None else value)


@row(aten.constant_pad_nd.default)
def constant_pad(lowering, node, x, pad, value=0):
    return _padded(lowering, node, x, pad, "constant", value)


@row(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default)
def reflection_pad(lowering, node, x, pad):
    return _padded(lowering, node, x, pad, "reflect", 0)


@row(aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default)
def replication_pad(lowering, node, x, pad):
    return _padded(lowering, node, x, pad, "edge", 0)


def _circular(lowering: Any, x: Node, pad: list[int]) -> Any:
    """Each axis with its end in front and its start behind."""
    value, rank = lowering(x), lowering.rank(x)
    for i in range(len(pad) // 2):
        axis, front, behind = rank - 1 - i, pad[2 * i], pad[2 * i + 1]
        size = lowering.dims(value)[axis]
        if front < 0 or behind < 0:
            raise Unsupported("circular padding that cuts off")
        parts = [lowering.slice(value, axis, size - front, size)] if front else []
        parts += [value, *([lowering.slice(value, axis, 0, behind)] if behind else [])]
        value = parts[0] if len(parts) == 1 else lowering.op("concat", *parts, axis=axis)
    return value


@row(aten.col2im.default)
def col2im(lowering, node, x, output_size, kernel_size, dilation, padding, stride):
    value, shape = lowering(x), lowering.shape(x)
    if len(shape) == 2:
        value = lowering.reshape(value, [1, *shape])
    of = {
        "image_shape": output_size,
        "kernel": kernel_size,
        "strides": stride,
        "pads": list(padding) * 2,
        "dilations": dilation,
    }
    return lowering.reshape(lowering.op("col2im", value, **of), lowering.shape(node))


@row(aten.im2col.default)
def im2col(lowering, node, x, kernel_size, dilation, padding, stride):
    """Elements of the padded image by place."""
    *lead, height, width = lowering.shape(x)
    padded = _padded(lowering, node, x, [padding[1], padding[1], padding[0], padding[0]], "constant", 0)
    rows, columns = height + 2 * padding[0], width + 2 * padding[1]
    numbers = torch.arange(rows * columns, dtype=torch.float64).reshape(1, 1, rows, columns)
    places = aten.im2col.default(numbers, kernel_size, dilation, [0, 0], stride)[0].long()
    value = lowering.reshape(padded, [*lead, rows * columns])
    made = lowering.op("gather", value, lowering.constant(places, "places"), axis=len(lead))
    return lowering.reshape(made, lowering.shape(node))
