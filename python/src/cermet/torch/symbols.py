"""Sizes that PyTorch leaves symbolic, as the numbers that they are in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..errors import Unsupported


class Bindings:
    """What the symbols of a graph are: {symbol: number}."""

    def __init__(self, symbols: Mapping[Any, int] | None = None):
        self.symbols = dict(symbols or {})

    def size(self, size: Any) -> Any:
        """A size as a number; numbers stay what they are."""
        if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            value = size.node.expr.subs(self.symbols)
            if value.free_symbols:
                raise Unsupported("a size that depends on elements")
            return bool(value) if isinstance(size, torch.SymBool) else int(value) if value.is_integer else float(value)
        return size

    def arguments(self, node: torch.fx.Node) -> tuple[tuple, dict]:
        """A node's arguments, with numbers in place of nodes that give sizes."""

        def number(operand: torch.fx.Node) -> Any:
            value = operand.meta.get("val")
            return operand if value is None or isinstance(value, (torch.Tensor, list, tuple)) else self.size(value)

        args, keywords = torch.fx.node.map_arg((node.args, dict(node.kwargs)), number)  # type: ignore[misc]
        return args, keywords


def bindings_of(placeholders: list[torch.fx.Node], args: list[Any]) -> Bindings:
    """The symbols that inputs of a graph are or have as sizes, from the inputs of a run."""
    symbols: dict[Any, int] = {}
    for node, given in zip(placeholders, args):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            _bind(symbols, value, given)
        elif isinstance(value, torch.Tensor) and isinstance(given, torch.Tensor):
            for size, number in zip(value.shape, given.shape):
                _bind(symbols, size, number)
    return Bindings(symbols)


def _bind(symbols: dict[Any, int], size: Any, number: Any) -> None:
    if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
        symbols[size.node.expr] = int(number)
