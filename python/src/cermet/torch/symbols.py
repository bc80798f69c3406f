"""Sizes that PyTorch leaves symbolic: as numbers of one run, or as expressions of symbols with a range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch

from ..errors import Unsupported


def dim_text(size: Any) -> str:
    """A dimension as graphs take it: "16", "2*T + 1". Raises Unsupported for other than sums and products."""
    if isinstance(size, int):
        return str(size)
    plain = (sympy.Add, sympy.Mul, sympy.Integer, sympy.Symbol)
    if not isinstance(size, sympy.Expr) or not all(isinstance(part, plain) for part in sympy.preorder_traversal(size)):
        raise Unsupported(f"the size {size}")
    return str(size)


def is_symbolic(arguments: Any) -> bool:
    """Whether an expression of symbols is among arguments."""
    return any(isinstance(of, sympy.Basic) for of in torch.utils._pytree.tree_leaves(arguments))


class Bindings:
    """What the symbols of a graph are: {symbol: number}. With ranges, {name: (least, greatest)}, they stay symbols."""

    def __init__(self, symbols: Mapping[Any, int] | None = None, ranges: Mapping[str, tuple[int, int]] | None = None):
        self.symbols = dict(symbols or {})
        self.ranges = dict(ranges or {})
        self._names = {str(symbol): symbol for symbol in self.symbols}

    def size(self, size: Any) -> Any:
        """A size as a number, or an expression where symbols stay; numbers stay what they are."""
        if not isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return size
        expression = size.node.expr
        if self.ranges:
            if isinstance(size, torch.SymInt) and not expression.free_symbols - set(self.symbols):
                return int(expression) if expression.is_Integer else expression
            raise Unsupported(f"the size {expression}")
        value = expression.subs(self.symbols)
        if value.free_symbols:
            raise Unsupported("a size that depends on elements")
        return bool(value) if isinstance(size, torch.SymBool) else int(value) if value.is_integer else float(value)

    def largest(self, size: Any) -> int:
        """The largest value of a size that grows with its symbols. Raises Unsupported for others."""
        if isinstance(size, int):
            return size
        symbols = {self._names[name]: end for name, (_, end) in self.ranges.items()}
        if any(not size.coeff(symbol).is_positive or size.diff(symbol).free_symbols for symbol in size.free_symbols):
            raise Unsupported(f"the size {size}")
        return int(size.subs(symbols))

    def parsed(self, text: str) -> Any:
        """A graph's dimension as an expression of PyTorch's symbols."""
        return sympy.sympify(text, locals=self._names)

    def arguments(self, node: torch.fx.Node) -> tuple[tuple, dict]:
        """A node's arguments, with numbers or expressions in place of nodes that give sizes."""

        def number(operand: torch.fx.Node) -> Any:
            value = operand.meta.get("val")
            return operand if value is None or isinstance(value, (torch.Tensor, list, tuple)) else self.size(value)

        # Lists of FX have no place for expressions, so they become Python's first.
        def converted(of: Any) -> Any:
            if isinstance(of, torch.fx.Node):
                return number(of)
            if isinstance(of, (list, tuple)):
                return type(of)(map(converted, of)) if type(of) in (list, tuple) else [converted(part) for part in of]
            return {key: converted(part) for key, part in of.items()} if isinstance(of, dict) else of

        return tuple(map(converted, node.args)), {key: converted(of) for key, of in node.kwargs.items()}


def symbols_of(placeholders: list[torch.fx.Node]) -> list[tuple[Any, int, int | None]]:
    """Where a run says what each symbol is: (symbol, input, axis), or no axis for an input that is a number."""
    found: dict[Any, tuple[int, int | None]] = {}
    for i, node in enumerate(placeholders):
        value = node.meta.get("val")
        sizes = list(enumerate(value.shape)) if isinstance(value, torch.Tensor) else [(None, value)]
        for axis, size in sizes:
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                found.setdefault(size.node.expr, (i, axis))
    return [(symbol, *place) for symbol, place in found.items()]


def range_end(size: int) -> int:
    """The power of two that ends the range of a size."""
    return 1 << max(size - 1, 0).bit_length()


def ranged(bindings: Bindings) -> Bindings:
    """The same symbols left open, up to the ends of their ranges."""
    return Bindings(
        bindings.symbols, {str(symbol): (1, range_end(number)) for symbol, number in bindings.symbols.items()}
    )
