"""Rows of ATen operators, by family. ROWS has them all."""

from . import (  # noqa: F401
    activations,
    attention,
    convolution,
    creation,
    custom,
    elementwise,
    images,
    indexing,
    loops,
    movement,
    norms,
    ordering,
    pooling,
    products,
    reduce,
    scatter,
)
from .products import NAMED as NAMED
from .rows import ROWS as ROWS
