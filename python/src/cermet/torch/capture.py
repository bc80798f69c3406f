"""What AOTAutograd and torch.export take apart, and what they keep because a row knows it whole."""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import compat
from .lower import ROWS

aten = torch.ops.aten

#: Composite operators that stay one node each: pieces lose precision or what the library knows about the whole.
_COMPOSITES = (
    aten.linear.default, aten.matmul.default, aten.layer_norm.default, aten.rms_norm.default, aten.group_norm.default,
    aten.batch_norm.default, aten.instance_norm.default, aten.scaled_dot_product_attention.default, aten.conv1d.default,
    aten.conv2d.default, aten.conv3d.default, aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding,
    aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input, aten.softmax.int,
    aten.log_softmax.int, aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten.avg_pool1d.default,
    aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default, aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec, aten._upsample_nearest_exact1d.vec,
    aten._upsample_nearest_exact2d.vec, aten._upsample_nearest_exact3d.vec, aten.upsample_linear1d.vec,
    aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec, aten.upsample_bicubic2d.vec,
    aten._upsample_bilinear2d_aa.vec, aten._upsample_bicubic2d_aa.vec, aten.grid_sampler.default, aten.celu.default,
    aten.selu.default, aten.prelu.default, aten.repeat_interleave.self_int, aten.isfinite.default,
    aten.floor_divide.default, aten.pad.default,
)  # fmt: skip


def kept_composites() -> list[Any]:
    """Those of them that the dispatcher of this release would take apart."""
    return [operator for operator in _COMPOSITES if compat.is_composite(operator)]


@functools.cache
def decompositions() -> dict[Any, Any]:
    """PyTorch's table of core ATen without operators that have a row."""
    return {
        operator: function for operator, function in compat.core_aten_decompositions().items() if operator not in ROWS
    }


def export_decompositions() -> dict[Any, Any]:
    """The table for torch.export, in which composite operators are entries, too."""
    table = torch.export.default_decompositions()
    for operator in list(table.keys()):
        if operator in ROWS:
            del table[operator]
    return table  # type: ignore[return-value]
