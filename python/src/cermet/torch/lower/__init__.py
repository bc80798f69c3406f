"""Rows of ATen operators, by family. ROWS has them all."""

from . import (  # noqa: F401
    activations,
    attention,
    convolution,
    creation,
    custom,
    division,
    elementwise,
    images,
    indexing,
    functions,
    movement,
    norms,
    ordering,
    places,
    pooling,
    products,
    reduce,
    scatter,
)
from .products import NAMED as NAMED
from .rows import ROWS as ROWS
