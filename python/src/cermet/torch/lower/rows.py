"""The table of ATen operators: a row is a function (lowering, node, *arguments) that makes the operator's results in a
Cermet graph, or raises Unsupported with
the reason. Rows are all there is: what has no row, or whose row raises, stays in PyTorch.

A row's arguments are those of the ATen operator: tensors as FX nodes, which lowering(node) turns into values of the
graph, and sizes as integers. It returns a
value, a list of them, or None in the list for a result that the graph does not use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch

aten = torch.ops.aten

ROWS: dict[Any, tuple[Callable, inspect.Signature]] = {}


def add_row(target: Any, function: Callable) -> None:
    ROWS[target] = function, inspect.signature(function)


def row(*targets: Any) -> Callable:
    """Registers a function as the row of operators: overloads, or packets for all their functional overloads."""

    def register(function: Callable) -> Callable:
        for overload in overloads(*targets):
            add_row(overload, function)
        return function

    return register


def overloads(*targets: Any) -> Iterable[Any]:
    for target in targets:
        if not isinstance(target, torch._ops.OpOverloadPacket):
            yield target
            continue
        for name in target.overloads():
            overload = getattr(target, name)
            if not overload._schema.is_mutable and not name.endswith("out") and not name.startswith("names"):
                yield overload


def packet(name: str) -> Any:
    """aten's operator of a name, None in releases that do not have it."""
    return getattr(aten, name, None)
