"""A part of a graph as one session, called on PyTorch's tensors."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import Error, OutOfMemory, Unsupported
from ..graph import Value
from .importer import add_node
from .lowering import Lowering, is_tensor
from .options import Options
from .partition import declare

Node = torch.fx.Node


class Segment:
    """Nodes that one session computes. inputs: nodes whose tensors a call takes, in order; outputs: those whose tensors
    it gives.
    """

    __name__ = "session"  # FX names what it calls by it

    def __init__(self, lowering: Lowering, nodes: list[Node], outputs: list[Node], options: Options):
        self.nodes, self.outputs = nodes, outputs
        self._device = lowering.device
        inside, graph = set(nodes), lowering.graph
        given = {
            value.id: node for node, value in lowering.values.items() if node not in inside and isinstance(value, Value)
        }
        #: Results that have an input's elements, by place: PyTorch expects memory of their own.
        copies = {i: given[lowering(node).id] for i, node in enumerate(outputs) if lowering(node).id in given}
        self._copies = {i: node for i, node in copies.items() if node not in lowering.known}
        computed = [(i, node) for i, node in enumerate(outputs) if i not in self._copies]
        for i, node in computed:
            graph.output(f"{node.name}.out{i}", lowering(node))
        self.session = graph.compile(rounding=options.rounding, fusion=options.fusion)
        names = {node.name: node for node in lowering.values}
        self.inputs = [names[value.name] for value in self.session.inputs]
        self._sources = [(i, self.inputs.index(node)) for i, node in self._copies.items()]
        self._results = [
            (i, lowering.shape(node), node.meta["val"].dtype, _strides(lowering, node)) for i, node in computed
        ]
        self._symbols = self._places_of_symbols(lowering)
        self._is_plain = not self._copies and bool(self.inputs) and not any(strides for *_, strides in self._results)

    def _places_of_symbols(self, lowering: Lowering) -> list[tuple[Any, int, int]]:
        """Where the operands say what a symbol is: (symbol, operand, axis)."""
        found: dict[Any, tuple[int, int]] = {}
        for i, node in enumerate(self.inputs):
            for axis, size in enumerate(lowering.shape(node)):
                if getattr(size, "is_symbol", False):
                    found.setdefault(size, (i, axis))
        if set(map(str, found)) != set(lowering.bindings.ranges):
            raise Unsupported("a size that no operand has")
        return [(symbol, *place) for symbol, place in found.items()]

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self._is_plain:
            made = self.session._native.run(tensors, tensors[0], None, None)
            return made if isinstance(made, tuple) else (made,)
        return self.into(tensors, {})

    def into(self, tensors: tuple[torch.Tensor, ...], places: dict[int, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Runs with memory of the caller for some results, by their place."""
        made: dict[int, torch.Tensor] = {}
        now = {symbol: tensors[i].shape[axis] for symbol, i, axis in self._symbols}
        for i, shape, dtype, _ in self._results:
            made[i] = places[i] if i in places else torch.empty(_numbers(shape, now), dtype=dtype, device=self._device)
        if made:
            results = tuple(made.values())
            self.session._native.run(tensors, results[0], results, None)
        for i, shape, dtype, strides in self._results:
            if strides and i not in places:
                strided = torch.empty_strided(
                    _numbers(shape, now), _numbers(strides, now), dtype=dtype, device=self._device
                )
                made[i] = strided.copy_(made[i])
        for i, source in self._sources:
            made[i] = tensors[source].clone()
        return tuple(made[i] for i in range(len(self.outputs)))


def _numbers(sizes: tuple[Any, ...], now: dict[Any, int]) -> tuple[int, ...]:
    """Sizes of a run."""
    return tuple(size if isinstance(size, int) else int(size.subs(now)) for size in sizes) if now else sizes


def _strides(lowering: Lowering, node: Node) -> tuple[int, ...] | None:
    """Strides that PyTorch expects of a result, where they are not those of row-major order."""
    fake = node.meta["val"]
    if fake.is_contiguous():
        return None
    strides = tuple(lowering.bindings.size(stride) for stride in fake.stride())
    return strides if all(strides) else None


def make_segment(scratch: Lowering, nodes: list[Node], outputs: list[Node], options: Options) -> Segment:
    """A segment with a graph of its own, of nodes that the scratch graph has taken. Raises Error with the library's
    message.
    """
    lowering = Lowering(scratch.graph_name, scratch.device, scratch.threads, scratch.bindings)
    lowering.known, lowering.names = scratch.known, scratch.names
    inside = set(nodes)
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand not in inside and operand not in lowering.values and operand not in lowering.known:
                if is_tensor(operand.meta.get("val")):
                    declare(lowering, operand)
        add_node(lowering, node)
    return Segment(lowering, nodes, outputs, options)


def is_fatal(error: Error) -> bool:
    """Whether an error of compiling is the user's to see, and no reason to let PyTorch compute."""
    return isinstance(error, OutOfMemory)
